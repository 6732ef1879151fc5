"""Python functions called from programs: when, how often, with what, and their derivatives."""

import math
import sys
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from functrans import lax
from functrans.errors import (
    NonDifferentiableError,
    ShapeError,
    TreeMismatchError,
    UnsupportedOperationError,
)

XS = np.array([0.1, -0.2, 0.3])
SCALAR = ft.ShapeDtypeStruct((), float)
TRIPLE = ft.ShapeDtypeStruct((3,), float)


class Log:
    """Notes the values that a callback gets."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def __call__(self, *values: Any) -> None:
        for value in values:
            assert type(value) is np.ndarray
        self.values.append(tuple(value.tolist() for value in values))

    def take(self) -> list[Any]:
        taken, self.values = self.values, []
        return taken


# debug ------------------------------------------------------------------------------------------


def test_callback_runs_once_per_evaluation_under_every_transform() -> None:
    log = Log()

    def f(x: Any) -> Any:
        ft.debug.callback(log, x)
        return np.sin(x)

    jitted = ft.jit(f)
    for run in (
        lambda: f(1.0),
        lambda: jitted(1.0),
        lambda: jitted(1.0),
        lambda: ft.grad(f)(1.0),
        lambda: ft.grad(jitted)(1.0),
        lambda: ft.jit(ft.grad(f))(1.0),
        lambda: ft.grad(ft.grad(f))(1.0),
        lambda: ft.jvp(f, (1.0,), (1.0,)),
        lambda: ft.jvp(jitted, (1.0,), (1.0,)),
        lambda: ft.value_and_grad(jitted)(1.0),
    ):
        run()
        assert log.take() == [(1.0,)]


def test_callback_runs_once_for_each_lane() -> None:
    log = Log()

    def f(x: Any, w: Any) -> Any:
        ft.debug.callback(log, x, w)
        return x * w

    want = [(0.1, 5.0), (-0.2, 5.0), (0.3, 5.0)]
    ft.vmap(f, (0, None))(XS, 5.0)
    assert log.take() == want
    ft.jit(ft.vmap(ft.grad(f), (0, None)))(XS, 5.0)
    assert log.take() == want
    ft.grad(lambda x: np.sum(ft.vmap(f, (0, None))(x, 5.0)))(XS)
    assert log.take() == want
    ft.vmap(ft.vmap(f, (0, None)), (None, 0))(XS[:2], np.array([5.0, 6.0]))
    assert sorted(log.take()) == [(-0.2, 5.0), (-0.2, 6.0), (0.1, 5.0), (0.1, 6.0)]
    ft.vmap(lambda x: ft.debug.callback(log) or x)(XS)
    assert log.take() == [(), (), ()]


def test_callback_in_loops() -> None:
    log = Log()

    def f(xs: Any) -> Any:
        return lax.scan(lambda c, x: (ft.debug.callback(log, c) or c + x, None), 0.0, xs)[0]

    for run in (f, ft.jit(f), ft.grad(f), ft.jit(ft.grad(f)), lambda x: ft.jvp(f, (x,), (x,))):
        run(np.array([1.0, 2.0]))
        assert log.take() == [(0.0,), (1.0,)]

    def g(n: Any) -> Any:
        return lax.while_loop(lambda i: i < n, lambda i: ft.debug.callback(log, i, n) or i + 1, 0)

    for h in (g, ft.jit(g)):
        h(2)
        assert log.take() == [(0, 2), (1, 2)]
    ft.vmap(g)(np.array([1, 3, 0]))
    assert log.take() == [(0, 1), (0, 3), (1, 3), (2, 3)]


def test_effect_takes_place_once_for_each_lane_that_takes_the_branch() -> None:
    positive, negative = Log(), Log()

    def f(x: Any) -> Any:
        return lax.cond(
            x > 0,
            lambda x: ft.debug.callback(positive, x) or x,
            lambda x: ft.debug.callback(negative, x) or -x,
            x,
        )

    for run in (
        ft.vmap(f), ft.jit(ft.vmap(f)), ft.vmap(ft.grad(f)), ft.jit(ft.vmap(ft.grad(f))),
        lambda x: ft.grad(lambda x: np.sum(ft.vmap(f)(x)))(x), lambda x: [f(v) for v in x],
    ):  # fmt: skip
        run(XS)
        assert positive.take() == [(0.1,), (0.3,)]
        assert negative.take() == [(-0.2,)]


def test_effect_of_constants_is_staged() -> None:
    log = Log()

    @ft.jit
    def f(x: Any) -> Any:
        ft.debug.callback(log, 7)
        return x * lax.cond(True, lambda: ft.debug.callback(log, 8) or 1.0, lambda: 2.0)

    for _ in range(2):
        assert f(3.0) == 3.0
        assert log.take() == [(7,), (8,)]


def test_effect_on_an_outer_value_belongs_to_the_loop() -> None:
    log = Log()

    def f(w: Any) -> Any:
        return lax.scan(lambda c, _: (ft.debug.callback(log, w) or c * w, None), 1.0, None, 3)[0]

    assert ft.grad(f)(2.0) == 12.0
    assert log.take() == [(2.0,)] * 3


def test_effects_keep_equations_alive_and_in_order() -> None:
    log = Log()

    @ft.jit
    def f(x: Any) -> Any:
        for _ in range(2):
            ft.debug.callback(log, np.sin(x))
        ft.debug.callback(log, x)
        return x

    f(0.0)
    assert log.take() == [(0.0,), (0.0,), (0.0,)]
    assert str(f.jaxpr(0.0)).count("debug_callback") == 3


def test_print(capsys: pytest.CaptureFixture[str]) -> None:
    @ft.jit
    def f(x: Any) -> Any:
        ft.debug.print("x = {x:.2f}, {} {y[0]}", "text", x=x, y=XS)
        return x

    f(1.0)
    ft.grad(f)(2.0)
    assert capsys.readouterr().out == "x = 1.00, text 0.1\nx = 2.00, text 0.1\n"
    with pytest.raises(KeyError):
        ft.debug.print("{y}", x=1.0)
    with pytest.raises(IndexError):
        ft.debug.print("{} {}", 1.0)
    with pytest.raises(TypeError, match="format string"):
        ft.debug.print(1.0)  # type: ignore[arg-type]  # refused


def test_breakpoint(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(
        sys, "breakpointhook", lambda: seen.append(sys._getframe(1).f_locals["values"])
    )
    ft.jit(lambda x: ft.debug.breakpoint(x=x, y=2 * x) or x)(2.0)
    assert seen == [{"x": 2.0, "y": 4.0}]
    assert "test_callbacks.py" in capsys.readouterr().out


def test_callback_that_raises() -> None:
    f = ft.jit(lambda x: ft.debug.callback(lambda _: 1 / 0, x) or x)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            f(1.0)


# pure_callback ----------------------------------------------------------------------------------


def cosine(x: Any, method: Any = None) -> Any:
    return ft.pure_callback(np.cos, ft.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method=method)


def test_pure_callback() -> None:
    for f in (cosine, ft.jit(cosine), lambda x: ft.jit(ft.jit(cosine))(x) + 0.0):
        assert_allclose(f(XS), np.cos(XS))
    assert ft.pure_callback(math.gamma, SCALAR, 5.0) == 24.0
    tree = {"a": SCALAR, "b": (TRIPLE, None)}
    result = ft.jit(
        lambda x: ft.pure_callback(
            lambda x, flag, n: {"a": n, "b": (x["x"] * 2, None)}, tree, {"x": x}, "flag", n=3.0
        )
    )(XS)
    assert result["a"] == 3.0
    assert_allclose(result["b"][0], 2 * XS)


def test_pure_callback_is_dropped_when_it_is_not_used() -> None:
    f = ft.jit(lambda x: (cosine(x), cosine(x), x)[2])
    assert not f.jaxpr(XS).eqns


@pytest.mark.parametrize("method", ["sequential", "expand_dims", "broadcast_all"])
def test_vmap_methods(method: str) -> None:
    shapes: list[Any] = []

    def product(x: Any, y: Any) -> Any:
        shapes.append((x.shape, y.shape))
        return x * y

    def f(x: Any, y: Any) -> Any:
        return ft.pure_callback(product, TRIPLE, x, y, vmap_method=method)

    xs = np.stack([XS, 2 * XS])
    for outer in (lambda g: g, ft.jit):
        assert_allclose(outer(ft.vmap(f, (0, None)))(xs, XS), xs * XS)
    want = {
        "sequential": [((3,), (3,))] * 2,
        "expand_dims": [((2, 3), (1, 3))],
        "broadcast_all": [((2, 3), (2, 3))],
    }[method]
    assert shapes == want * 2
    nested = ft.vmap(ft.vmap(f, (0, None)), (None, 0))(xs, xs)
    assert_allclose(nested, xs[None] * xs[:, None])


def test_vmap_without_a_method_raises() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"test_callbacks\.py.*vmap_method"):
        ft.vmap(cosine)(np.stack([XS, XS]))
    with pytest.raises(ValueError, match="vmap_method must be"):
        cosine(XS, "other")


def test_derivative_needs_a_rule() -> None:
    with pytest.raises(NonDifferentiableError, match="pure_callback"):
        ft.grad(lambda x: np.sum(cosine(x)))(XS)
    with pytest.raises(NonDifferentiableError, match="pure_callback"):
        ft.jvp(cosine, (XS,), (XS,))
    assert_allclose(ft.grad(lambda x: np.sum(x * cosine(ft.stop_gradient(x))))(XS), np.cos(XS))
    with pytest.raises(TypeError, match="not both"):
        ft.pure_callback(np.sin, TRIPLE, XS, jvp=lambda p, t: None, vjp=(abs, abs))


def called(fun: Any, x: Any) -> Any:
    return ft.pure_callback(fun, ft.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="sequential")


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_derivative_by_a_rule_of_the_caller(kind: str) -> None:
    def sine(x: Any) -> Any:
        if kind == "jvp":
            rules: Any = {"jvp": lambda p, t: (sine(p[0]), t[0] * called(np.cos, p[0]))}
        else:
            rules = {"vjp": (lambda x: (sine(x), x), lambda x, ct: (ct * called(np.cos, x),))}
        shape = ft.ShapeDtypeStruct(x.shape, x.dtype)
        return ft.pure_callback(np.sin, shape, x, vmap_method="sequential", **rules)

    def total(x: Any) -> Any:
        return np.sum(sine(x))

    for outer in (lambda g: g, ft.jit):
        assert_allclose(outer(ft.grad(total))(XS), np.cos(XS))
        assert_allclose(outer(lambda x: ft.jvp(total, (x,), (x,))[1])(XS), np.cos(XS) @ XS)
        assert_allclose(outer(ft.vmap(ft.grad(sine)))(XS), np.cos(XS))


@pytest.mark.parametrize(
    ("fun", "announced", "error", "match"),
    [
        (lambda x: x[:2], TRIPLE, ShapeError, r"shape \(2,\).*announced f64\[3\]"),
        (lambda x: x.astype(int), TRIPLE, TypeError, r"int64.*announced f64\[3\]"),
        (lambda x: (x, x), TRIPLE, TreeMismatchError, "structure"),
        (lambda x: {"a": x, "b": 2}, {"a": TRIPLE, "b": TRIPLE}, ShapeError, r"result\['b'\]"),
    ],
)
def test_result_that_was_not_announced(fun: Any, announced: Any, error: Any, match: str) -> None:
    for callback in (ft.pure_callback, ft.io_callback):
        with pytest.raises(error, match=match):
            ft.jit(lambda x: callback(fun, announced, x))(XS)  # noqa: B023  # called here
    with pytest.raises(TypeError, match=r"result_shape_dtypes\['b'\] is a str"):
        ft.pure_callback(fun, {"a": TRIPLE, "b": "x"}, XS)


def test_callback_cannot_write_to_values() -> None:
    def spoil(x: Any) -> Any:
        x[0] = 9.0
        return x

    with pytest.raises(ValueError, match="read-only"):
        ft.jit(lambda x: called(spoil, x))(XS)


# io_callback ------------------------------------------------------------------------------------


def test_io_callback_runs_exactly_once() -> None:
    count = 0

    def tick() -> Any:
        nonlocal count
        count += 1
        return float(count)

    def f(x: Any) -> Any:
        return ft.io_callback(tick, SCALAR, ordered=True) + x

    jitted = ft.jit(f)
    assert [f(0.0), jitted(0.0), jitted(0.0)] == [1.0, 2.0, 3.0]
    assert ft.vmap(f)(np.zeros(3)).tolist() == [4.0, 5.0, 6.0]
    assert ft.grad(f)(1.0) == 1.0
    assert ft.jit(ft.grad(f))(1.0) == 1.0
    assert count == 8
    ft.jit(lambda x: (ft.io_callback(lambda v: tick() and None, None, x), x)[1])(3.0)
    assert count == 9
