"""``custom_vmap`` and ``sequential_vmap``: rules are used, and change no number.

The property: a function with a rule that computes what ``vmap`` would has the results of the
function without it, under every composition of transforms; and the rule is called wherever a batch
is computed.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.errors import ShapeError, TreeMismatchError, UnsupportedOperationError

X, Y = np.arange(3.0) + 0.5, np.arange(3.0) + 2.0
M = np.ones((3, 2)) * X[:, None]


def function(x: Any, y: Any = 2.0) -> Any:
    """Two results, the second of which ignores ``y``'s derivative in ``x``."""
    return {"a": np.sin(x) * y, "b": np.sum(x) + 0.5 * y}


def total(out: Any) -> Any:
    return np.sum(out["a"]) + 2.0 * np.sum(out["b"])


class Ruled:
    """The function with a rule that notes its calls."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.f = ft.custom_vmap(function)
        self.f.def_vmap(self.rule)

    def rule(self, axis_size: int, in_batched: Any, x: Any, y: Any) -> Any:
        """Both operands are widened, and the whole is computed at once."""
        self.calls.append((axis_size, tuple(in_batched)))
        x = x if in_batched[0] else np.broadcast_to(x, (axis_size, *np.shape(x)))
        y = y if in_batched[1] else np.broadcast_to(y, (axis_size,))
        rows = np.reshape(x, (axis_size, -1))
        a = np.reshape(np.sin(rows) * y[:, None], np.shape(x))
        return {"a": a, "b": np.sum(rows, 1) + 0.5 * y}, {"a": True, "b": True}


COMPOSITIONS: dict[str, Callable[[Any], Any]] = {
    "vmap": lambda f: ft.vmap(f)(X, Y),
    "vmap of one": lambda f: ft.vmap(f, (0, None))(X, 2.0),
    "vmap of the other": lambda f: ft.vmap(f, (None, 0))(1.0, Y),
    "vmap of rows": lambda f: ft.vmap(f)(M, Y),
    "vmap of columns": lambda f: ft.vmap(lambda x, y: f(x, y)["a"], (1, 0), 1)(M.T, Y),
    "nested": lambda f: ft.vmap(ft.vmap(f, (0, None)), (None, 0))(X, Y),
    "keywords and defaults": lambda f: ft.vmap(lambda x: (f(x), f(y=x, x=x)))(X),
    "jit of vmap": lambda f: ft.jit(ft.vmap(f))(X, Y),
    "vmap of jit": lambda f: ft.vmap(ft.jit(f))(X, Y),
    "vmap of jvp": lambda f: ft.vmap(lambda x, y: ft.jvp(f, (x, y), (x, 1.0)))(X, Y),
    "vmap of jvp in one": lambda f: ft.vmap(lambda x: ft.jvp(lambda x: f(x, 2.0), (x,), (1.0,)))(X),
    "vmap of tangents": lambda f: ft.vmap(lambda t: ft.jvp(f, (1.0, 2.0), (t, 1.0)))(X),
    "jvp of vmap": lambda f: ft.jvp(ft.vmap(f), (X, Y), (Y, X)),
    "vmap of grad": lambda f: ft.vmap(ft.grad(lambda x, y: total(f(x, y)), (0, 1)))(X, Y),
    "vmap of grad in one": lambda f: ft.vmap(
        ft.grad(lambda x, y: total(f(x, y)), (0, 1)), (0, None)
    )(X, 2.0),
    "grad of vmap": lambda f: ft.grad(lambda x, y: total(ft.vmap(f)(x, y)), (0, 1))(X, Y),
    "grad of vmap of one": lambda f: ft.grad(
        lambda x, y: total(ft.vmap(f, (0, None))(x, y)), (0, 1)
    )(X, 2.0),
    "vmap of cotangents": lambda f: ft.vmap(
        lambda ct: ft.jit(lambda x, y: ft.vjp(f, x, y)[1]({"a": ct, "b": 1.0}))(1.0, 2.0)
    )(X),
    "jit of jacrev": lambda f: ft.jit(ft.jacrev(f))(X, 2.0),
    "jacfwd of vmap": lambda f: ft.jacfwd(ft.vmap(f), (0, 1))(X, Y),
    "jit of hessian": lambda f: ft.jit(ft.hessian(lambda x: total(f(x, 2.0)) ** 2))(X),
    "vmap of hessian": lambda f: ft.vmap(ft.hessian(lambda x: total(f(x, 2.0)) ** 2))(X),
    "vmap of grad of grad": lambda f: ft.vmap(
        ft.grad(lambda x: ft.grad(lambda x: total(f(x, x)))(x) ** 2)
    )(X),
    "vmap of linearize": lambda f: ft.vmap(lambda x, y: ft.linearize(f, x, y)[1](1.0, y))(X, Y),
    "vmap of jet": lambda f: ft.vmap(lambda x: ft.jet(f, (x, x), ([1.0, 0.5], [2.0, 0.0])))(X),
    "vmap of scan": lambda f: ft.vmap(
        lambda y: ft.lax.scan(lambda c, x: (c + f(x, y)["a"], c), 0.0, X)
    )(Y),
    "vmap of cond": lambda f: ft.vmap(
        lambda x: ft.lax.cond(x > 1, lambda x: f(x, 2.0)["a"], lambda x: x, x)
    )(X),
    "vmap of grad of checkpoint": lambda f: ft.vmap(
        ft.grad(ft.checkpoint(lambda x, y: total(f(x, y))))
    )(X, Y),
    "vmap of integers": lambda f: ft.vmap(f)(np.arange(3), Y),
}
"""By name; each of them computes a batch of calls."""


def assert_same(received: Any, expected: Any) -> None:
    assert ft.tree.structure(received) == ft.tree.structure(expected)
    for a, b in zip(ft.tree.leaves(received), ft.tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@each("name", COMPOSITIONS)
def test_rules_change_no_number(name: str) -> None:
    ruled = Ruled()
    expected = COMPOSITIONS[name](function)
    assert_same(COMPOSITIONS[name](ruled.f), expected)
    assert ruled.calls
    assert_same(COMPOSITIONS[name](ft.sequential_vmap(function)), expected)


UNBATCHED: dict[str, Callable[[Any], Any]] = {
    "call": lambda f: f(1.0, 2.0),
    "jit": lambda f: ft.jit(f)(1.0, 2.0),
    "grad": lambda f: ft.grad(lambda x, y: total(f(x, y)), (0, 1))(1.0, 2.0),
    "jit of grad": lambda f: ft.jit(ft.grad(lambda x, y: total(f(x, y)), (0, 1)))(1.0, 2.0),
    "hessian": lambda f: ft.hessian(lambda x: total(f(x, 2.0)))(X),
    "laplacian": lambda f: ft.laplacian(lambda x: total(f(x, 2.0)))(X),
    "vmap of other things": lambda f: ft.vmap(lambda x: f(1.0, 2.0)["a"] * x)(X),
    "compiled": lambda f: [ft.jit(lambda x: f(x, 2.0))(X) for _ in range(3)],
}


@each("name", UNBATCHED)
def test_without_a_batch_no_rule_is_needed(name: str) -> None:
    assert_same(UNBATCHED[name](ft.custom_vmap(function)), UNBATCHED[name](function))


def test_python_may_ask_for_values_where_there_are_some() -> None:
    f = ft.custom_vmap(lambda x: x * x if x > 0 else -x)
    assert (f(3.0), ft.grad(f)(3.0), ft.grad(f)(-3.0)) == (9.0, 6.0, -1.0)


def test_the_rule_is_told_what_is_batched() -> None:
    for name, expected in {
        "vmap": (3, (True, True)), "vmap of one": (3, (True, False)),
        "vmap of the other": (3, (False, True)), "vmap of jvp in one": (3, (True, False)),
    }.items():  # fmt: skip
        ruled = Ruled()
        COMPOSITIONS[name](ruled.f)
        assert ruled.calls == [expected]


def test_results_may_stay_unbatched() -> None:
    f = ft.custom_vmap(lambda x, y: (x * y, 3.0 * y))
    f.def_vmap(lambda n, in_batched, x, y: ((x * y, 3.0 * y), in_batched))
    a, b = ft.vmap(f, (0, None), (0, None))(X, 2.0)
    np.testing.assert_array_equal(a, 2.0 * X)
    assert b == 6.0
    slopes = ft.vmap(ft.grad(lambda x, y: f(x, y)[0] * f(x, y)[1], (0, 1)), (0, None))(X, 2.0)
    np.testing.assert_allclose(slopes, [12.0 * np.ones(3), 12.0 * X])


def test_a_sequential_batch_is_a_loop() -> None:
    f = ft.sequential_vmap(np.sin)
    program = ft.make_jaxpr(ft.vmap(f))(X)
    assert [eqn.primitive.name for eqn in program.eqns] == ["scan"]


def _with_rule(rule: Any) -> Callable[[], Any]:
    def run() -> Any:
        f = ft.custom_vmap(lambda x: 2.0 * x)
        if rule is not None:
            f.def_vmap(rule)
        return ft.vmap(f)(X)

    return run


def _refers(y: Any) -> Any:
    f = ft.custom_vmap(lambda x: x * y)
    f.def_vmap(lambda n, in_batched, x: (x * y, True))
    return f(y)


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no rule": (_with_rule(None), TypeError, "has no rule for vmap yet"),
    "no pair": (_with_rule(lambda n, b, x: x), TypeError, "expected a pair (out, out_batched)"),
    "flag": (
        _with_rule(lambda n, b, x: (x, False)), ShapeError,
        "out is f64[3], but out_batched=False tells f64[]",
    ),
    "shape": (
        _with_rule(lambda n, b, x: (x[0], True)), ShapeError,
        "tells f64[3]: the result of the function, with an axis of 3 in front",
    ),
    "dtype": (_with_rule(lambda n, b, x: (1j * x, True)), TypeError, "out is c128[3]"),
    "structure": (
        _with_rule(lambda n, b, x: ((x,), (True,))), TreeMismatchError, "out has structure (*,)",
    ),
    "structure of flags": (
        _with_rule(lambda n, b, x: (x, {"a": True})), TreeMismatchError, "out_batched={'a': True}",
    ),
    "refers to a mapped value": (
        lambda: ft.vmap(_refers)(X), UnsupportedOperationError, "pass it as an argument",
    ),
    "no function": (lambda: ft.custom_vmap(3.0), TypeError, "custom_vmap: expected a function"),
    "keyword only": (
        lambda: ft.vmap(lambda v: ft.custom_vmap(lambda *, x: x)(x=v))(X), TypeError,
        "keyword-only arguments (x)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, error, says = REFUSED[name]
    with pytest.raises(error, match=re.escape(says)):
        call()
