"""Rules that are told what is zero: ``symbolic_zeros=``, and their kin.

``KNOWN`` holds, for each call, the numbers and what the rules were given: what JAX gives them.
"""

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.errors import ShapeError, TreeMismatchError

X = np.arange(1.0, 4.0)


def marks(values: Any) -> str:
    """``t`` for arrays, ``.`` for symbolic zeros."""
    return "".join("." if type(value) is ft.SymbolicZero else "t" for value in values)


class Ruled:
    """A function of two floats and an integer with rules that note what they get."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.jvp: Any = ft.custom_jvp(lambda x, y, n: (x * y, x * n, n))
        self.jvp.defjvp(self._push, symbolic_zeros=True)
        self.vjp: Any = ft.custom_vjp(lambda x, y, n: (x * y, x * n, y))
        self.vjp.defvjp(self._forward, self._backward, symbolic_zeros=True)

    def _push(self, primals: Any, tangents: Any) -> Any:
        (x, y, n), (x_dot, y_dot, _) = primals, tangents
        self.seen.add(marks(tangents))
        out = self.jvp(x, y, n)
        first = second = ft.zero_from_primal(out[0], symbolic_zeros=True)
        if "t" in marks(tangents):
            in_x, in_y = (type(t) is not ft.SymbolicZero for t in (x_dot, y_dot))
            first = (x_dot * y if in_x else 0.0) + (x * y_dot if in_y else 0.0)
            second = x_dot * n if in_x else second
        return out, (first, second, ft.zero_from_primal(n, symbolic_zeros=True))

    def _forward(self, x: Any, y: Any, n: Any) -> Any:
        self.seen.add("".join("p" if arg.perturbed else "-" for arg in (x, y, n)))
        x, y, n = x.value, y.value, n.value
        return (x * y, x * n, y), (x, y, n)

    def _backward(self, residuals: Any, cts: Any) -> Any:
        self.seen.add(marks(cts))
        x, y, n = residuals
        a, b, c = (0.0 if type(ct) is ft.SymbolicZero else ct for ct in cts)
        in_y = a * x + c
        zero = ft.zero_from_primal(y, symbolic_zeros=True)
        return a * y + b * n, zero if marks(cts) == ".t." else in_y, None


KNOWN: dict[str, tuple[Callable[[Any], Any], Any, set[str], set[str]]] = {
    "first": (
        lambda f: ft.grad(lambda x, y: f(x, y, 3)[0])(2.0, 5.0), 5.0, {"t.."}, {"p--", "t.."},
    ),
    "second": (
        lambda f: ft.grad(lambda x, y: f(x, y, 3)[0], 1)(2.0, 5.0), 2.0, {".t."}, {"-p-", "t.."},
    ),
    "one result": (
        lambda f: ft.grad(lambda x, y: f(x, y, 3)[1], (0, 1))(2.0, 5.0), (3.0, 0.0), {"tt."},
        {"pp-", ".t."},
    ),
    "two results": (
        lambda f: ft.grad(lambda x, y: (lambda o: o[0] + o[1])(f(x, y, 3)), (0, 1))(2.0, 5.0),
        (8.0, 2.0), {"tt."}, {"pp-", "tt."},
    ),
    "jit of grad": (
        lambda f: ft.jit(ft.grad(lambda x, y: f(x, y, 3)[0]))(2.0, 5.0), 5.0, {"t.."},
        {"p--", "t.."},
    ),
    "grad of jit": (
        lambda f: ft.grad(ft.jit(lambda x, y: f(x, y, 3)[0]))(2.0, 5.0), 5.0, {"t.."},
        {"p--", "t.."},
    ),
    "vmap of grad": (
        lambda f: ft.vmap(ft.grad(lambda x, y: f(x, y, 3)[0]), (0, None))(X, 5.0), [5.0] * 3,
        {"t.."}, {"p--", "t.."},
    ),
    "grad of vmap": (
        lambda f: ft.grad(lambda y: np.sum(ft.vmap(lambda x: f(x, y, 3)[0])(X)))(5.0), 6.0,
        {".t."}, {"-p-", "t.."},
    ),
    "vmap over the integer": (
        lambda f: ft.vmap(ft.grad(lambda x, n: f(x, 5.0, n)[1]), (None, 0))(2.0, np.arange(3)),
        [0.0, 1.0, 2.0], {"t.."}, {"p--", ".t."},
    ),
    "hessian": (
        lambda f: ft.grad(ft.grad(lambda x: f(x, x, 3)[0]))(2.0), 2.0, {"tt."}, {"pp-", "t.."},
    ),
    "scan": (
        lambda f: ft.grad(
            lambda x: ft.lax.scan(lambda c, _: (f(c, 2.0, 3)[0], None), x, None, length=3)[0]
        )(2.0),
        8.0, {"t.."}, {"p--", "t.."},
    ),
    "nothing": (lambda f: ft.grad(lambda x: f(3.0, 2.0, 3)[0] * x)(2.0), 6.0, set(), set()),
}  # fmt: skip


@each("name", KNOWN)
def test_rules_are_told_what_is_zero(name: str) -> None:
    call, expected, pushed, pulled = KNOWN[name]
    ruled = Ruled()
    np.testing.assert_allclose(call(ruled.jvp), expected)
    assert ruled.seen == pushed
    ruled = Ruled()
    np.testing.assert_allclose(call(ruled.vjp), expected)
    assert ruled.seen == pulled


def test_without_the_option_there_are_arrays() -> None:
    seen = []
    f = ft.custom_jvp(lambda x, y, n: x * y)

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        seen.extend(t.dtype for t in tangents)
        return f(*primals), ft.zero_from_primal(2.0, symbolic_zeros=True)  # may be returned

    assert ft.grad(f)(2.0, 3.0, 1) == 0.0
    assert seen == [np.float64, np.float64, ft.float0]


def test_zeros_of_primals() -> None:
    zeros = ft.zero_from_primal({"a": np.ones((2, 3), np.float32), "n": 3})
    assert (zeros["a"].dtype, zeros["a"].shape, zeros["n"].dtype) == (np.float32, (2, 3), ft.float0)
    symbolic = ft.zero_from_primal({"a": np.ones((2, 3), np.float32), "n": 3}, symbolic_zeros=True)
    assert repr(symbolic) == "{'a': SymbolicZero(f32[2,3]), 'n': SymbolicZero(float0[])}"
    zero = symbolic["a"]
    assert (zero.shape, zero.dtype, zero.ndim, zero.size) == ((2, 3), np.float32, 2, 6)
    f = ft.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], ft.zero_from_primal(X, symbolic_zeros=True)))
    with pytest.raises(ShapeError, match=r"tangent_out of the jvp rule is SymbolicZero\(f64\[3\]"):
        ft.grad(f)(2.0)


# names of arguments -----------------------------------------------------------------------------


def power(kind: str, x: Any, n: int, scale: float = 1.0) -> Any:
    return scale * x**n


NAMED = {
    "names": {"nondiff_argnames": ("n", "kind")},
    "one name": {"nondiff_argnames": "kind", "nondiff_argnums": 2},
    "both": {"nondiff_argnums": (0,), "nondiff_argnames": ["n"]},
    "the same twice": {"nondiff_argnums": (0, 2), "nondiff_argnames": ["n"]},
}


@pytest.mark.parametrize("name", NAMED)
def test_names_stand_for_positions(name: str) -> None:
    @functools.partial(ft.custom_jvp, **NAMED[name])
    def f(kind: str, x: Any, n: int, scale: float = 1.0) -> Any:
        return power(kind, x, n, scale)

    @f.defjvp
    def _(kind: str, n: int, primals: Any, tangents: Any) -> Any:
        assert (kind, n) == ("plain", 3)
        return f(kind, primals[0], n, primals[1]), 100.0 * tangents[0]

    @functools.partial(ft.custom_vjp, **NAMED[name])
    def g(kind: str, x: Any, n: int, scale: float = 1.0) -> Any:
        return power(kind, x, n, scale)

    g.defvjp(lambda *args: (g(*args), args[1:]), lambda kind, n, kept, ct: (100.0 * ct, None))
    for ruled in (f, g):
        slope = ft.grad(lambda x, ruled=ruled: ruled("plain", x, n=3))
        assert slope(2.0) == ft.jit(slope)(2.0) == 100.0
        np.testing.assert_array_equal(ft.vmap(slope)(X), [100.0] * 3)


def test_unknown_names_are_refused() -> None:
    for make in (ft.custom_jvp, ft.custom_vjp):
        with pytest.raises(ValueError, match=r"no argument 'k' .* there are kind, x, n, scale"):
            make(power, nondiff_argnames="k")


# functions with closures ------------------------------------------------------------------------


@functools.partial(ft.custom_vjp, nondiff_argnums=(0,))
def applied(fun: Any, x: Any, *consts: Any) -> Any:
    return fun(x, *consts)


applied.defvjp(
    lambda fun, *args: (applied(fun, *args), args),
    lambda fun, args, ct: ft.vjp(fun, *args)[1](ct),
)


def through_closure(scale: Any) -> Any:
    converted, consts = ft.closure_convert(lambda v: {"a": scale**3 * v * X}, X)
    return np.sum(applied(converted, X, *consts)["a"])


CLOSED: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "grad": (lambda f: ft.grad(f)(2.0), 168.0),
    "jit of grad": (lambda f: ft.jit(ft.grad(f))(2.0), 168.0),
    "vmap of grad": (lambda f: ft.vmap(ft.grad(f))(X), 42.0 * X**2),
    "hessian": (lambda f: ft.hessian(f)(2.0), 168.0),
    "call": (lambda f: f(2.0), 112.0),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closures_become_arguments(name: str) -> None:
    call, expected = CLOSED[name]
    np.testing.assert_allclose(call(through_closure), expected)


def test_conversion_of_closures_by_itself() -> None:
    converted, consts = ft.closure_convert(lambda x, y: (x["a"] * y, X), {"a": X}, 2.0)
    assert consts == []
    found = converted({"a": 2.0 * X}, 3.0)
    np.testing.assert_array_equal(found[0], 6.0 * X)
    with pytest.raises(TreeMismatchError, match="closure_convert of <lambda>: args has structure"):
        converted(X, 3.0)
    with pytest.raises(ShapeError, match=re.escape("the program was made for f64[3]")):
        converted({"a": 1.0}, 3.0)
    seen = []

    def f(s: Any) -> Any:
        converted, consts = ft.closure_convert(lambda x: s * x + s, 1.0)
        seen.append(len(consts))
        return converted(3.0, *consts)

    assert ft.grad(f)(2.0) == 4.0
    assert seen == [1]


def test_bound_keywords_are_part_of_a_function() -> None:
    def scaled(x: Any, *, a: float) -> Any:
        return a * x

    for make in (ft.custom_jvp, ft.custom_vjp):
        f = make(functools.partial(scaled, a=0.5))
        if make is ft.custom_jvp:
            f.defjvp(lambda p, t, f=f: (f(*p), 5.0 * t[0]))
        else:
            f.defvjp(lambda x, f=f: (f(x), None), lambda _, ct: (5.0 * ct,))
        assert (f(2.0), ft.grad(f)(2.0), ft.jit(ft.grad(f))(2.0)) == (1.0, 5.0, 5.0)
