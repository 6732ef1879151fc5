"""What type checkers know of transformed functions, arrays and tensors.

mypy and pyright check each ``assert_type``; at run time the same lines are calls.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, assert_type, cast

import numpy as np
from numpy.typing import NDArray

import functrans as ft
import functrans.functional as ff
from functrans.core.jaxpr import Jaxpr
from functrans.jitted.jit import JitFunction

x, v = np.arange(1.0, 4.0), np.ones(3)


def loss(w: ft.Array, scale: float = 1.0, *, shift: int = 0) -> float:
    """A scalar function."""
    return cast(float, scale * np.sum(w**2) + shift)


def both(w: ft.Array) -> tuple[ft.Array, str]:
    """A result and something beside it."""
    return np.sum(w**2), "beside"


def test_arrays() -> None:
    assert isinstance(x, ft.Array)
    assert isinstance(np.float64(1.0), ft.Array)
    assert not isinstance(1.0, ft.Array)
    assert not isinstance(ft.tensor([1.0]), ft.Array)
    assert issubclass(np.ndarray, ft.Array)
    seen = []

    def f(w: ft.Array) -> ft.Array:
        seen.append((isinstance(w, ft.Array), isinstance(w, ft.Tracer)))
        assert_type(w, np.ndarray)
        assert_type(w * 2, ft.Array)
        assert_type(w.shape, tuple[Any, ...])
        return cast(ft.Array, np.sum(w[1:] * w.T[:-1]) + w @ w + w.sum())

    ft.grad(f)(x)
    ft.jit(f)(x)
    f(x)
    assert seen == [(True, True), (True, True), (True, False)]


def test_gradients() -> None:
    gradient: Callable[[ft.Array], Any] = ft.grad(loss)
    assert_type(ft.grad(loss)(x, 2.0, shift=1), Any)
    assert_type(ft.grad(both, has_aux=True)(x), tuple[Any, str])
    assert_type(ft.value_and_grad(loss)(x), tuple[float, Any])
    assert_type(ft.value_and_grad(both, has_aux=True)(x), tuple[tuple[ft.Array, str], Any])
    assert_type(ft.grad(np.sin)(1.0), Any)
    for transform in (ft.jacobian, ft.jacrev, ft.jacfwd, ft.hessian):
        assert callable(transform)
    assert_type(ft.jacobian(both, has_aux=True)(x), tuple[Any, str])
    assert_type(ft.jacrev(both, has_aux=True)(x), tuple[Any, str])
    assert_type(ft.jacfwd(both, has_aux=True)(x), tuple[Any, str])
    assert_type(ft.hessian(both, has_aux=True)(x), tuple[Any, str])
    assert_type(ft.jacobian(loss)(x, 2.0), Any)
    assert_type(ft.hessian_diag(loss)(x, shift=2), Any)
    assert gradient(x).shape == (3,)


def test_scalar_losses_are_any_or_of_a_dtype() -> None:
    def any_loss(w: ft.Array) -> Any:
        return np.sum(w**2)

    def number(w: NDArray[np.float64], scale: float = 1.0) -> float:
        return scale * np.sum(w**2)

    def mean(w: NDArray[np.float64]) -> np.floating[Any]:
        return np.mean((w - 1.0) ** 2)

    assert_type(ft.grad(any_loss)(x), Any)
    assert_type(ft.value_and_grad(number)(x, scale=2.0), tuple[float, Any])
    assert_type(ft.jit(mean)(x), np.floating[Any])
    assert_type(ft.vmap(any_loss)(np.ones((2, 3))), Any)
    assert ft.grad(number)(x, 0.5).shape == ft.grad(mean)(x).shape


def test_options_of_ufuncs_are_those_of_functions() -> None:
    assert_type(ft.grad(np.arctan2, argnums=1)(1.0, 2.0), Any)
    assert_type(ft.value_and_grad(np.exp, allow_int=False)(1.0), Any)
    assert_type(ft.vmap(np.add, in_axes=(0, None))(x, 1.0), Any)
    assert_type(ft.jit(np.sin, donate_argnums=0)(v.copy()), Any)
    assert_type(ft.jacobian(np.sin, mode="forward")(x), Any)
    assert_type(ft.hessian(np.exp)(1.0), Any)


def test_what_wrong_calls_are() -> None:
    for wrong in (
        lambda: ft.grad(loss, argnms=0),  # type: ignore[call-overload]  # pyright: ignore
        lambda: ft.grad(np.sin, argnms=0),  # type: ignore[call-overload]  # pyright: ignore
        lambda: ft.vmap(loss, in_axis=0),  # type: ignore[call-overload]  # pyright: ignore
        lambda: ft.jit(static_argnum=0),  # type: ignore[call-overload]  # pyright: ignore
        lambda: ft.grad(loss)(x, sale=2.0),  # type: ignore[call-arg]  # pyright: ignore
        lambda: ft.vmap(loss)(),  # type: ignore[call-arg]  # pyright: ignore
        lambda: ft.jit(loss)(x, 1.0, 2),  # type: ignore[call-arg]  # pyright: ignore
        lambda: ft.checkpoint(loss)(w=x, v=x),  # type: ignore[call-arg]  # pyright: ignore
    ):
        try:
            wrong()
        except (TypeError, ValueError):
            continue
        raise AssertionError("it was accepted")


def test_results_that_are_kept() -> None:
    def row(w: ft.Array, k: int = 2) -> ft.Array:
        return w * k

    assert_type(ft.vmap(row)(x), ft.Array)
    assert_type(ft.vmap(row, in_axes=(0, None))(x, 3), ft.Array)
    assert_type(ft.checkpoint(row)(x, k=3), ft.Array)
    assert_type(ft.jit(row)(x), ft.Array)
    assert_type(ft.jit(ft.vmap(ft.checkpoint(row)))(x), ft.Array)
    assert_type(ft.jit(row).function(x), ft.Array)
    assert_type(ft.jit(np.sin)(x), Any)
    assert_type(ft.vmap(np.sin)(x), Any)
    assert_type(ft.make_jaxpr(row)(x), Jaxpr)
    assert_type(ft.make_jaxpr(row, return_shape=True)(x), tuple[Jaxpr, Any])
    assert_type(ft.stop_gradient("text"), str)
    assert_type(ft.named_scope("part")(row)(x), ft.Array)


def test_decorators() -> None:
    @ft.jit
    def plain(w: ft.Array, n: int = 2) -> ft.Array:
        return w**n

    @ft.jit(static_argnums=1)
    def with_options(w: ft.Array, n: int = 2) -> ft.Array:
        return w**n

    @partial(ft.jit, static_argnames="n")
    def by_partial(w: ft.Array, n: int = 2) -> ft.Array:
        return w**n

    @ft.checkpoint(policy=None)
    def checkpointed(w: ft.Array, n: int = 2) -> ft.Array:
        return w**2 * n

    @ft.custom_jvp
    def ruled(w: ft.Array) -> ft.Array:
        return w**2

    @ruled.defjvp
    def rule(primals: tuple[ft.Array], tangents: tuple[ft.Array]) -> tuple[ft.Array, ft.Array]:
        return ruled(*primals), 2 * primals[0] * tangents[0]

    @ft.custom_vjp
    def pulled(w: ft.Array) -> ft.Array:
        return w**2

    pulled.defvjp(lambda w: (w**2, w), lambda w, ct: (2 * w * ct,))

    @ft.custom_gradient
    def together(w: ft.Array) -> tuple[ft.Array, Callable[[ft.Array], ft.Array]]:
        return w**2, lambda ct: 2 * w * ct

    class Model:
        @ft.jit(static_argnums=0)
        def step(self, w: ft.Array) -> ft.Array:
            return w + 1

    assert_type(plain(x), ft.Array)
    assert_type(plain(x, n=3), ft.Array)
    assert_type(with_options(x, 3), ft.Array)
    assert by_partial(x, n=3).shape == (3,)  # Any to mypy
    assert_type(checkpointed(x, 3), ft.Array)
    assert_type(ruled(x), ft.Array)
    assert_type(pulled(x), ft.Array)
    assert_type(together(x), ft.Array)
    assert_type(Model().step(x), ft.Array)
    assert_type(rule((x,), (v,)), tuple[ft.Array, ft.Array])
    jitted: JitFunction[..., ft.Array] = plain
    assert jitted(x).shape == (3,)


def test_products() -> None:
    def f(w: ft.Array) -> ft.Array:
        return w**2

    assert_type(ft.jvp(f, (x,), (v,)), tuple[ft.Array, ft.Array])
    assert_type(ft.jvp(both, (x,), (v,), has_aux=True), tuple[ft.Array, ft.Array, str])
    out, pullback = ft.vjp(f, x)
    assert_type(out, ft.Array)
    assert_type(pullback(v), tuple[Any, ...])
    _, pullback, beside = ft.vjp(both, x, has_aux=True)
    assert_type(beside, str)
    out, pushforward = ft.linearize(f, x)
    assert_type(pushforward(v), ft.Array)
    assert_type(ft.linear_transpose(f, x), Callable[[Any], Any])
    point: ft.Array = x
    assert_type(ff.vjp(loss, point), tuple[float, ft.Array])
    assert_type(ff.hvp(loss, point, v), tuple[float, ft.Array])
    assert_type(ff.vhp(loss, (point, 1.0), (v, 0.0)), tuple[float, tuple[ft.Array, float]])
    assert_type(ff.jvp(f, x, v), tuple[ft.Array, ft.Array])


def test_functions_of_arrays() -> None:
    fnp = ft.numpy
    assert_type(fnp.sin(x), ft.Array)
    assert_type(fnp.add(x, 1.0), ft.Array)
    assert_type(fnp.matmul(x, x), ft.Array)
    assert_type(fnp.exp([1.0, 2.0]), ft.Array)
    assert_type(fnp.modf(x), tuple[ft.Array, ft.Array])


def test_control_flow() -> None:
    def body(carry: ft.Array, _: Any) -> tuple[ft.Array, float]:
        return carry + 1, 1.0

    assert_type(ft.lax.scan(body, x, None, 3), tuple[ft.Array, float])
