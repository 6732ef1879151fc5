"""Mistakes that users of other libraries reported: one test per kind, in the order of frequency.

A hazard of values is checked in both modes, to the second order, eager and jitted, alone and in a
batch (``check``). Warnings are errors; where NumPy itself warns about the function's values, the
test says so by ``np.errstate``. Not here: what belongs to one transform or primitive alone.
"""

import gc
import math
import multiprocessing
import pickle
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from helpers import assert_close


def quiet() -> np.errstate:
    """NumPy may warn: the values themselves are not finite."""
    return np.errstate(all="ignore")


def check(fun: Callable[..., Any], x: Any, first: Any, second: Any = None) -> None:
    """Compare the gradient of a scalar function, and its Hessian if given, on every way to them.

    Args:
      fun: function of one array with a scalar result.
      x: point.
      first: gradient.
      second: Hessian.
    """
    x = np.asarray(x, float)
    first = np.broadcast_to(np.asarray(first, float), x.shape)
    ways = {"grad": ft.grad(fun), "jacfwd": ft.jacfwd(fun), "grad(jit)": ft.grad(ft.jit(fun))}
    for name, way in ways.items():
        _compare(name, way, x, first)
    if second is None:
        return
    second = np.broadcast_to(np.asarray(second, float), (*x.shape, *x.shape))
    for outer in (ft.jacfwd, ft.jacrev):
        for inner in (ft.jacfwd, ft.jacrev):
            _compare(f"{outer.__name__}({inner.__name__})", outer(inner(fun)), x, second)


def _compare(name: str, way: Callable[..., Any], x: np.ndarray, expected: np.ndarray) -> None:
    """Eager, jitted, and as both lanes of a batch."""
    assert_close(way(x), expected, name)
    assert_close(ft.jit(way)(x), expected, f"jit({name})")
    batch, both = np.stack([x, x]), np.stack([expected, expected])
    assert_close(ft.vmap(way)(batch), both, f"vmap({name})")
    assert_close(ft.jit(ft.vmap(way))(batch), both, f"jit(vmap({name}))")


# selections and kinks ---------------------------------------------------------------------------


def test_untaken_branch_never_contributes() -> None:
    with quiet():
        check(lambda x: np.where(x >= 0, x, np.sqrt(-x)), 1.0, 1.0, 0.0)
        check(lambda x: np.where(x < 1, np.cos(x), 0.0), np.inf, 0.0, 0.0)
        check(lambda x: np.where(x > 0, np.log(x) ** 2, x), -1.0, 1.0, 0.0)
        check(lambda x: np.where(x != 0, x**2 / x, 0.0), 0.0, 0.0, 0.0)
        nested = lambda x: np.where(  # noqa: E731  # a case like its neighbours
            x > 0, np.where(x > 1, np.sqrt(x - 1), np.arcsin(x)), np.log1p(x)
        )
        check(lambda x: nested(x), -0.5, 2.0, -4.0)
        check(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), [4.0, -1.0], [0.25, 0.0])


def test_zero_times_infinity_elsewhere_stays_nan() -> None:
    with quiet():
        check(lambda x: np.log(x) * 0.0, 0.0, np.nan)


def test_square_root_and_norm_at_zero() -> None:
    with quiet():
        check(np.sqrt, 0.0, np.inf, -np.inf)
        masked = ft.grad(lambda x: np.sum(np.sqrt(x) * np.array([0.0, 1.0])))
        assert_close(masked(np.array([0.0, 4.0])), np.array([0.0, 0.25]))
    zero, none = np.zeros(2), np.zeros((2, 2))
    for norm in (
        np.linalg.norm,
        lambda x: np.linalg.norm(x) ** 2,
        lambda x: np.hypot(x[0], x[1]),
        lambda x: np.abs(x[0] + 1j * x[1]),
        lambda x: np.linalg.norm(x, 3),
        lambda x: np.linalg.norm(x.reshape(1, 2), "fro"),
    ):
        check(norm, zero, zero, none)


def test_ties_of_absolute_values_extrema_and_clip() -> None:
    check(np.abs, 0.0, 0.0, 0.0)
    check(lambda x: np.maximum(x, 0.0), 0.0, 0.5, 0.0)
    check(lambda x: np.minimum(x, x), 2.0, 1.0, 0.0)
    check(lambda x: np.clip(x, 0.0, 1.0), 1.0, 1.0, 0.0)
    check(np.max, [1.0, 2.0, 2.0], [0.0, 0.5, 0.5], 0.0)
    check(lambda x: x[np.argmax(x)], [1.0, 2.0, 2.0], [0.0, 1.0, 0.0], 0.0)
    check(lambda h: np.sum(np.heaviside(np.array([-1.0, 0.0, 2.0]), h)), 0.3, 1.0, 0.0)
    with quiet():
        check(lambda x: np.maximum(x, np.nan), 1.0, 0.0)
        check(lambda x: np.fmax(x, np.nan), 1.0, 1.0)


def test_second_derivatives_of_piecewise_functions_agree() -> None:
    def fun(x: Any) -> Any:
        return np.sum(np.maximum(x, 0.0) ** 3 + np.abs(x) * x)

    x = np.array([-1.0, 0.0, 2.0])
    expected = np.array([-2.0, 0.0, 14.0])
    check(fun, x, [2.0, 0.0, 16.0], np.diag(expected))
    assert_close(ft.hessian_diag(fun)(x), expected)
    assert_close(ft.hvp(fun, (x,), (np.ones(3),)), expected)


def test_powers() -> None:
    check(lambda x: x**0, 0.0, 0.0, 0.0)
    check(lambda x: x**1, 0.0, 1.0, 0.0)
    check(lambda x: x**2, 0.0, 0.0, 2.0)
    check(lambda x: x**2.0, -0.0, 0.0, 2.0)
    check(lambda x: x**-2, -2.0, 0.25, 0.375)
    check(lambda x: np.power(2, x), 3.0, 8 * math.log(2), 8 * math.log(2) ** 2)
    check(lambda b: np.power(0.0, b), 2.0, 0.0, 0.0)
    check(lambda x: np.sum(x ** np.array([0, 1, 2, 3])), np.zeros(4), [0, 1, 0, 0])
    log2 = math.log(2)
    # At b = 0 the slope in the base vanishes, but it does not stay so: d2/(da db) a**b = 1/a.
    check(lambda v: v[0] ** v[1], [2.0, 0.0], [0.0, log2], [[0.0, 0.5], [0.5, log2**2]])


def test_sums_of_exponentials_with_equal_terms_are_curved() -> None:
    curvature = np.array([[0.25, -0.25], [-0.25, 0.25]])
    check(lambda v: np.logaddexp(v[0], v[1]), np.zeros(2), 0.5, curvature)
    check(lambda v: np.logaddexp2(v[0], v[1]), np.ones(2), 0.5, curvature * math.log(2))
    check(ft.scipy.special.logsumexp, np.zeros(2), 0.5, curvature)


# numbers ----------------------------------------------------------------------------------------


def test_complex_modes_agree() -> None:
    z = np.array([0.5 - 1.5j, -0.3 + 0.4j])
    for fun in (np.exp, np.arccosh, lambda z: z**2.5, lambda z: np.cumprod(z * 2)):
        forward = ft.jacfwd(fun, holomorphic=True)(z)
        assert_close(ft.jacrev(fun, holomorphic=True)(z), forward)
        assert_close(ft.jit(ft.jacrev(fun, holomorphic=True))(z), forward)
        step = 1e-6
        quotient = (fun(z + step) - fun(z - step)) / (2 * step)
        assert_close(np.sum(forward, axis=1), quotient, rtol=1e-7)
    check(lambda x: np.abs(x[0] + 1j * x[1]), [3.0, 4.0], [0.6, 0.8])
    check(lambda x: np.real(np.sign(x + 1j)), 0.0, 1.0)
    check(lambda x: np.real((2 + 3j) * x), 1.0, 2.0, 0.0)
    check(lambda x: np.imag(np.conj((2 + 3j) * x)), 1.0, -3.0, 0.0)


@pytest.mark.parametrize("shape", [(), (1,), (1, 3), (2, 1), (2, 3)])
def test_broadcasting_keeps_shapes(shape: tuple[int, ...]) -> None:
    a, other = np.full(shape, 1.5), np.arange(6.0).reshape(2, 3)
    count = 6 // a.size

    def fun(a: Any) -> Any:
        return np.sum(np.broadcast_to(a * 2.0, (2, 3)) ** 2 + a * other * 0)

    check(fun, a, 8 * 1.5 * count)
    assert ft.grad(fun)(a.astype(np.float32)).dtype == np.float32


def test_gradient_by_a_python_scalar_is_an_array() -> None:
    gradient = ft.grad(lambda x: x * np.ones(3) @ np.ones(3))(2.0)
    assert type(gradient) is np.ndarray
    assert gradient.shape == ()


def test_integers_raise_or_stay_constants() -> None:
    with pytest.raises(ft.errors.NonDifferentiableError, match="allow_int"):
        ft.grad(lambda n: n * 1.0)(3)
    assert ft.grad(lambda n: n * 1.0, allow_int=True)(np.array(3)).dtype.names == ("float0",)
    check(lambda x: np.sum(x * np.arange(3)), np.ones(3), [0, 1, 2], 0.0)
    check(lambda x: np.argmax(x) * np.sum(x), [1.0, 2.0], [1.0, 1.0], 0.0)


@pytest.mark.parametrize(
    "fun",
    [
        lambda x: np.sum(np.tanh(x) * 0.1 + 1),
        np.mean,
        np.std,
        np.linalg.norm,
        lambda x: np.prod(x) / 3,
        lambda x: np.sum(np.cumsum(x) ** 2),
        lambda x: np.median(x) * np.pi,
        lambda x: np.quantile(x, 0.3),
        lambda x: np.sum(np.sinc(x) + np.logaddexp(x, 1.0)),
    ],
)
def test_single_precision_is_kept(fun: Callable[..., Any]) -> None:
    x = np.array([0.5, 1.5, 2.5], np.float32)
    for way in (ft.grad(fun), ft.jacfwd(fun), ft.hessian(fun)):
        for result in (way(x), ft.jit(way)(x), ft.vmap(way)(x[None])):
            assert result.dtype == np.float32


def test_result_types_follow_nep_50() -> None:
    step = ft.jit(lambda x, rate: x - rate * x)
    x = np.ones(3, np.float32)
    assert step(x, 0.1).dtype == np.float32
    assert step(x, np.float64(0.1)).dtype == np.float64
    assert ft.vmap(lambda x: x * 0.1)(x).dtype == np.float32
    for result in (step(1.0, 0.1), ft.grad(lambda x: x * 2)(1.0), ft.jit(lambda x: x)(1.0)):
        assert type(result) is np.ndarray
        assert result.shape == ()


def test_ties_of_sorted_values() -> None:
    ties = np.array([2.0, 1.0, 1.0, 0.0])
    check(lambda x: np.sort(x)[1], ties, [0, 1, 0, 0], 0.0)
    check(lambda x: x[np.argsort(x, stable=True)][2], ties, [0, 0, 1, 0], 0.0)
    for median in (np.median, lambda x: np.quantile(x, 0.5)):
        check(median, [1.0, 1.0, 0.0, 2.0], [0.5, 0.5, 0.0, 0.0], 0.0)
    check(lambda x: np.quantile(x, 0.6), np.ones(4), [0.0, 0.2, 0.8, 0.0], 0.0)


# control flow and nesting -----------------------------------------------------------------------


def test_lane_not_taken_gives_no_nan_and_no_side_effect() -> None:
    def fun(x: Any) -> Any:
        return ft.lax.cond(x > 0, lambda x: np.log(x) + 0 * x, lambda x: x * x, x)

    x = np.array([2.0, -1.0, 4.0])
    assert_close(ft.vmap(ft.grad(fun))(x), np.array([0.5, -2.0, 0.25]))
    assert_close(ft.jit(ft.vmap(ft.hessian(fun)))(x), np.array([-0.25, 2.0, -0.0625]))
    assert_close(ft.vmap(ft.jacfwd(ft.jacfwd(fun)))(x), np.array([-0.25, 2.0, -0.0625]))
    seen: list[float] = []

    def noted(x: Any) -> Any:
        ft.debug.callback(lambda value: seen.append(float(value)), x)
        return x

    ft.vmap(lambda x: ft.lax.cond(x > 0, noted, lambda x: x, x))(x)
    assert sorted(seen) == [2.0, 4.0]


@pytest.mark.parametrize("derivative", [ft.grad, ft.jacfwd, lambda f: ft.jit(ft.grad(f))])
def test_perturbations_are_kept_apart(derivative: Any) -> None:
    assert derivative(lambda x: x * derivative(lambda y: x + y)(1.0))(1.0) == 1
    assert derivative(lambda x: x * derivative(lambda y: x * y)(1.0))(4.0) == 8

    def square(x: Any) -> Any:
        return x * x

    assert derivative(lambda x: square(derivative(square)(square(x))))(2.0) == 16 * 2**3


def test_closed_over_tracers_are_seen() -> None:
    def by_rule(c: Any) -> Any:
        double = ft.custom_vjp(lambda x: x * c)
        double.defvjp(lambda x: (x * c, None), lambda _, ct: (ct * c,))
        return double(3.0)

    check(lambda c: ft.jit(lambda x: x * c * c)(3.0), 2.0, 12.0, 6.0)
    check(lambda c: ft.lax.scan(lambda x, _: (x * c, None), 1.0, length=3)[0], 2.0, 12.0, 12.0)
    check(lambda c: ft.lax.while_loop(lambda x: x < 5, lambda x: x * c, 1.0), 2.0, 12.0, 12.0)
    check(lambda c: ft.checkpoint(lambda x: x * c**2)(3.0), 2.0, 12.0, 6.0)
    check(lambda c: np.sum(ft.jacobian(lambda x: x * c)(np.ones(2))), 2.0, 2.0, 0.0)
    assert ft.grad(by_rule)(2.0) == 3  # what the rule says nothing about: through the function
    assert ft.jit(ft.grad(by_rule))(2.0) == 3
    assert ft.jvp(by_rule, (2.0,), (1.0,))[1] == 3


# NumPy on traced values -------------------------------------------------------------------------


def _store(x: Any) -> Any:
    buffer = np.zeros(3)
    buffer[0] = x[0]
    return buffer.sum()


def _fill(x: Any) -> Any:
    buffer = np.zeros(3)
    buffer.fill(x[0])
    return buffer.sum()


def _add_in_place(x: Any) -> Any:
    buffer = np.zeros(3)
    buffer += x
    return buffer.sum()


def _out(x: Any) -> Any:
    buffer = np.zeros(3)
    np.sin(x, out=buffer)
    return buffer.sum()


def _copyto(x: Any) -> Any:
    buffer = np.zeros(3)
    np.copyto(buffer, x)
    return buffer.sum()


def _put(x: Any) -> Any:
    buffer = np.zeros(3)
    np.put(buffer, [0], x[0])
    return buffer.sum()


def _add_at(x: Any) -> Any:
    buffer = np.zeros(3)
    np.add.at(buffer, [0], x[0])
    return buffer.sum()


@pytest.mark.parametrize(
    "fun",
    [
        _store, _fill, _add_in_place, _out, _copyto, _put, _add_at,
        lambda x: np.array([x[0], x[1]]).sum(),
        lambda x: np.mean([x[0], x[1]]),
        lambda x: np.full(3, x[0]).sum(),
        lambda x: np.full_like(np.zeros(3), x[0]).sum(),
        lambda x: np.ones(3).dot(x),
        lambda x: np.ones(3)[x[0]],
        lambda x: math.sin(x[0]),
        lambda x: float(x[0]),
        lambda x: np.asarray(x).sum(),
        lambda x: (np.ma.masked_array(np.ones(3), [0, 1, 0]) * x).sum(),
        lambda x: (x * np.ma.masked_array(np.ones(3), [0, 1, 0])).sum(),
        lambda x: (x * np.ones((1, 3)).view(np.matrix)).sum(),
    ],
)  # fmt: skip
@pytest.mark.parametrize("transform", [ft.grad, ft.jacfwd, ft.jit, ft.vmap])
def test_numpy_that_does_not_dispatch_raises(fun: Any, transform: Any) -> None:
    x = np.ones((1, 3)) if transform is ft.vmap else np.ones(3)
    refused = pytest.raises(ft.errors.FunctransError, match=r"test_hazards\.py")
    with ft.config(plain=False), refused:
        transform(fun)(x)


def test_lists_of_traced_values() -> None:
    check(lambda x: fnp.mean(fnp.array([x, x + 2])), 1.0, 1.0, 0.0)
    check(lambda x: np.stack([x, x * x]).sum(), 3.0, 7.0, 2.0)
    jaxpr = ft.make_jaxpr(lambda x: np.stack([x] * 1000).sum())(1.0)
    assert len(jaxpr.eqns) < 1010
    assert ft.grad(lambda x: np.stack([x] * 30_000).sum())(1.0) == 30_000


# writes -----------------------------------------------------------------------------------------


def test_arguments_are_never_changed() -> None:
    def fun(x: Any) -> Any:
        x[0] = x[1] * 2
        x *= 3
        x[1:] += x[:-1]
        return np.sum(x**2)

    values = np.array([1.0, 2.0, 3.0])
    plain = values.copy()
    for way in (ft.grad(fun), ft.jacfwd(fun), ft.hessian(fun), ft.jit(fun), ft.jit(ft.grad(fun))):
        way(values)
        assert_close(values, plain)


def test_value_before_a_write_is_kept() -> None:
    def fun(x: Any) -> Any:
        old = np.sin(x)
        before = x * 1.0
        x[...] = x**2
        return np.sum(old * x + before)

    x = np.array([0.5, 1.5])
    first = np.cos(x) * x**2 + 2 * x * np.sin(x) + 1
    second = np.diag(-np.sin(x) * x**2 + 4 * x * np.cos(x) + 2 * np.sin(x))
    check(fun, x, first, second)


def test_writes_through_views() -> None:
    def rows(x: Any) -> Any:
        y = x.reshape(2, 2) * 1.0
        y[0][:] = y[1] * 2
        y[:, 1] *= y[:, 0]
        return np.sum(y)

    check(rows, [1.0, 2.0, 3.0, 4.0], [0, 0, 3 + 5 * 4, 5 * 3])  # 3 c + 5 c d


def test_reshape_of_a_view_and_of_a_copy() -> None:
    def view(x: Any) -> Any:
        y = x * 1.0
        y.reshape(-1)[0] = 7.0
        return np.sum(y * y)

    def copy(x: Any) -> Any:
        y = x * 1.0
        y.T.reshape(-1)[0] = 7.0
        return np.sum(y * y)

    x = np.arange(1.0, 5.0).reshape(2, 2)
    for fun, first in ((view, [[0.0, 4.0], [6.0, 8.0]]), (copy, 2 * x)):
        assert_close(ft.grad(fun)(x), np.array(first))
        assert_close(ft.jacfwd(fun)(x), np.array(first))


def test_writes_to_outer_arrays_raise() -> None:
    def in_scan(x: Any) -> Any:
        y = x * 1.0

        def body(carry: Any, _: Any) -> Any:
            y[0] = 1.0
            return carry, None

        return np.sum(ft.lax.scan(body, y, length=2)[0])

    def in_cond(x: Any) -> Any:
        y = x * 1.0

        def branch() -> Any:
            y[0] = 1.0
            return y

        return np.sum(ft.lax.cond(True, branch, lambda: y))

    def in_gradient(x: Any) -> Any:
        y = x * 1.0

        def inner(z: Any) -> Any:
            y[0] = z
            return z * z

        return ft.grad(inner)(1.0) * np.sum(y)

    for fun in (in_scan, in_cond, in_gradient):
        for way in (ft.grad(fun), ft.jit(fun)):
            with pytest.raises(ft.errors.FunctransError, match=r"test_hazards\.py"):
                way(np.ones(2))


def test_filling_in_a_loop_is_linear() -> None:
    def fun(x: Any, n: int) -> Any:
        y = np.zeros(n, like=x)
        for i in range(n):
            y[i] = x
        return np.sum(y)

    def seconds(n: int) -> float:
        best = math.inf
        for _ in range(2):
            start = time.perf_counter()
            assert ft.grad(fun)(1.0, n) == n
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(8_000) < 12 * seconds(2_000) + 0.2


def test_reused_buffer_counts_as_it_was() -> None:
    buffer = np.zeros(2)

    def fun(x: Any) -> Any:
        total = 0.0
        for k in range(1, 4):
            buffer[:] = k
            total = total + np.sum(x**2 * buffer)
        return total

    x = np.array([1.0, -2.0])
    for way in (ft.grad(fun), ft.jacfwd(fun), lambda x: ft.linearize(fun, x)[1](np.eye(2)[0])):
        expected = 12 * x if way(x).shape else np.array(12.0)
        assert_close(way(x), expected)
    assert_close(ft.hessian(fun)(x), 12 * np.eye(2))


def test_captured_array_that_changes_between_calls_is_seen() -> None:
    scale = np.array([1.0, 2.0])
    value = ft.jit(lambda x: np.sum(np.sin(x) * scale))
    for way in (ft.jit(ft.grad(value)), ft.grad(value), ft.jit(ft.jacfwd(value))):
        for k in (1.0, 5.0):
            scale[:] = k
            assert_close(way(np.zeros(2)), np.full(2, k))
    pullback = ft.vjp(lambda x: x * scale, np.ones(2))[1]
    scale[:] = 99.0
    assert_close(pullback(np.ones(2))[0], np.full(2, 5.0))


# shapes -----------------------------------------------------------------------------------------


def test_arrays_without_elements() -> None:
    none, tall = np.zeros(0), np.zeros((0, 3))
    check(np.sum, none, none, np.zeros((0, 0)))
    check(np.prod, none, none, np.zeros((0, 0)))
    check(lambda x: np.sum(np.cumsum(x) + np.cumprod(x)), none, none, np.zeros((0, 0)))
    check(lambda x: np.sum(np.take(x, np.zeros(0, int), axis=0)), tall, tall)
    check(lambda x: np.sum(x.T @ x), tall, tall)
    check(lambda x: np.sum(np.diff(x)), np.ones(1), 0.0, 0.0)
    check(lambda x: np.sum(np.max(x, axis=1)), tall, tall)
    check(lambda x: np.max(x, initial=3.0), none, none)
    for fun in (np.max, np.argmax):
        for way in (ft.grad(fun), ft.jit(fun)):
            with pytest.raises(ValueError, match=r"empty|zero-size"):
                way(none)
    assert ft.vmap(ft.hessian(lambda x: np.sum(np.sin(x))))(tall).shape == (0, 3, 3)
    assert ft.jit(ft.vmap(lambda x: ft.lax.scan(lambda c, a: (c + a, c), x[0], x)[1]))(
        tall
    ).shape == (0, 3)


def test_sums_of_exponentials_of_infinities() -> None:
    logsumexp = ft.scipy.special.logsumexp
    infinity = np.inf
    check(logsumexp, [-infinity, -infinity], [0.5, 0.5])
    check(logsumexp, [-infinity, 1.0], [0.0, 1.0], 0.0)
    check(logsumexp, [infinity, 1.0], [1.0, 0.0])
    check(logsumexp, [infinity, infinity], [0.5, 0.5])
    with quiet():  # the difference of equal infinities is evaluated, and not used
        check(lambda v: np.logaddexp(v[0], v[1]), [-infinity, -infinity], [0.5, 0.5])


def test_determinants_of_singular_matrices() -> None:
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    second = np.zeros((2, 2, 2, 2))
    second[0, 0, 1, 1] = second[1, 1, 0, 0] = 1
    second[0, 1, 1, 0] = second[1, 0, 0, 1] = -1
    check(np.linalg.det, singular, [[4.0, -2.0], [-2.0, 1.0]], second)
    check(np.linalg.det, np.zeros((2, 2)), 0.0, second)
    check(np.linalg.det, np.diag([1.0, 2.0, 0.0]), np.diag([0.0, 0.0, 2.0]))
    assert_close(ft.jit(np.linalg.slogdet)(singular)[1], np.linalg.slogdet(singular)[1])


def test_repeated_eigenvalues_and_singular_values() -> None:
    x = np.diag([1.0, 1.0, 2.0])
    trace = np.einsum("ik,jl->ijkl", np.eye(3), np.eye(3))
    check(lambda x: np.sum(np.linalg.eigvalsh(x)), x, np.eye(3), 0.0)
    check(lambda x: np.sum(np.linalg.svd(x, compute_uv=False)), x, np.eye(3))
    gradient = ft.grad(lambda x: np.sum(np.linalg.svd(x, compute_uv=False) ** 2))(x)
    assert_close(gradient, 2 * x)
    hessian = ft.hessian(lambda x: np.sum(np.linalg.svd(x, compute_uv=False) ** 2))(x)
    assert np.all(np.isfinite(hessian))
    assert trace.shape == hessian.shape


@pytest.mark.parametrize(
    ("fun", "first"),
    [
        (lambda x: np.sum(np.linalg.qr(x)[1] ** 2), lambda x: 2 * x),
        (lambda x: np.sum(np.linalg.svd(x)[1] ** 2), lambda x: 2 * x),
        (lambda x: np.sum(np.linalg.eigh(x)[0]), lambda x: np.eye(3)),
        (lambda x: np.linalg.slogdet(x)[1], lambda x: np.linalg.inv(x).T),
        (lambda x: np.sum(np.linalg.qr(x)[0] @ np.linalg.qr(x)[1]), np.ones_like),
    ],
)
def test_some_results_of_a_factorization_used(fun: Any, first: Any) -> None:
    x = np.array([[3.0, 0.5, 0.1], [0.5, 2.0, 0.3], [0.1, 0.3, 1.0]])
    check(fun, x, first(x))


def test_products_with_zeros() -> None:
    check(np.prod, [2.0, 3.0, 4.0], [12.0, 8.0, 6.0])
    check(np.prod, [0.0, 3.0, 4.0], [12.0, 0.0, 0.0], [[0, 4, 3], [4, 0, 0], [3, 0, 0]])
    check(np.prod, [0.0, 0.0, 4.0], 0.0, [[0, 4, 0], [4, 0, 0], [0, 0, 0]])
    check(np.prod, np.zeros(3), 0.0, 0.0)
    check(lambda x: np.sum(np.cumprod(x)), [2.0, 0.0, 3.0], [1.0, 8.0, 0.0])
    check(lambda x: np.sum(np.cumprod(x)), [0.0, 0.0, 3.0], [1.0, 0.0, 0.0])
    lanes = np.array([[0.0, 2.0], [0.0, 0.0], [3.0, 2.0]])
    check(lambda x: np.sum(np.prod(x, axis=1)), lanes, [[2.0, 0.0], [0.0, 0.0], [2.0, 3.0]])


# custom rules -----------------------------------------------------------------------------------


def test_rules_are_used_under_every_transform() -> None:
    @ft.custom_vjp
    def clipped(x: Any) -> Any:
        return np.sin(x)

    clipped.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (10 * ct * np.cos(x),))

    x = np.array([0.1, 0.2, 0.3])
    expected = 10 * np.cos(x)
    assert_close(ft.vmap(ft.grad(clipped))(x), expected)
    assert_close(ft.grad(lambda x: np.sum(ft.vmap(clipped)(x)))(x), expected)
    assert_close(ft.jit(ft.vmap(ft.grad(ft.jit(clipped))))(x), expected)
    # The second derivative goes through the rule, saved values included.
    assert_close(ft.vmap(ft.grad(ft.grad(clipped)))(x), -10 * np.sin(x))

    scaled = ft.custom_vjp(lambda n, x: x * n, nondiff_argnums=(0,))
    scaled.defvjp(lambda n, x: (x * n, None), lambda n, _, ct: (ct * n * 7,))
    for n in (2.0, np.array(3.0)):
        assert_close(ft.vmap(lambda x, n=n: ft.grad(lambda x: scaled(n, x))(x))(x), 7 * n + 0 * x)


# processes and threads --------------------------------------------------------------------------


def test_threads_share_functions_and_no_traces() -> None:
    fun = ft.jit(lambda x, a: np.sum(np.tanh(a @ x)))
    way = ft.grad(fun)
    failures: list[str] = []

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            for i in range(8):
                a = rng.normal(size=(3, 2 + (i + seed) % 3))
                x = rng.normal(size=a.shape[1])
                expected = a.T @ (1 - np.tanh(a @ x) ** 2)
                assert_close(way(x, a), expected)
                assert_close(ft.vmap(way, in_axes=(0, None))(x[None], a), expected[None])
        except Exception as error:  # the thread's own would be lost
            failures.append(repr(error))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def _cube(x: Any) -> Any:
    return x**3


def _in_child(connection: Any) -> None:
    connection.send(float(ft.jit(ft.grad(_cube))(2.0)))


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork beside threads
def test_other_processes(method: str) -> None:
    assert ft.jit(ft.grad(_cube))(2.0) == 12
    context = multiprocessing.get_context(method)
    mine, theirs = context.Pipe()
    process = context.Process(target=_in_child, args=(theirs,))
    process.start()
    assert mine.poll(30), "the child did not answer"
    assert mine.recv() == 12.0
    process.join(10)


def test_programs_and_gradients_are_pickled() -> None:
    jaxpr = ft.make_jaxpr(ft.grad(_cube))(2.0)
    again = pickle.loads(pickle.dumps(jaxpr))
    assert str(again) == str(jaxpr)
    assert ft.eval_jaxpr(again, None, 2.0)[0] == 12


def test_long_chains() -> None:
    def fun(x: Any) -> Any:
        for _ in range(10_000):
            x = x * 1.0001
        return x

    value = 1.0001**10_000
    assert_close(ft.grad(fun)(1.0), np.array(value), rtol=1e-9)
    assert_close(ft.jvp(fun, (1.0,), (1.0,))[1], np.array(value), rtol=1e-9)
    jaxpr = ft.make_jaxpr(fun)(1.0)
    assert len(jaxpr.eqns) == 10_000
    assert str(jaxpr).count("\n") >= 10_000


def test_nothing_leaks_without_the_collector() -> None:
    def run() -> list[Any]:
        captured = np.ones(3)

        def fun(x: Any) -> Any:
            return np.sum(np.sin(x) * captured)

        jitted = ft.jit(fun)
        for way in (ft.grad(fun), ft.hessian(fun), jitted, ft.grad(jitted), ft.jit(ft.grad(fun))):
            way(np.ones(3))
        ft.vjp(fun, np.ones(3))[1](1.0)
        return [weakref.ref(captured), weakref.ref(fun), weakref.ref(jitted)]

    gc.collect()
    gc.disable()
    try:
        watches = run()
        assert [watch() is None for watch in watches] == [True, True, True]
    finally:
        gc.enable()


# layouts and errors -----------------------------------------------------------------------------


def _layouts() -> dict[str, np.ndarray]:
    x = np.arange(1.0, 13.0).reshape(3, 4)
    read_only = x.copy()
    read_only.flags.writeable = False
    raw = np.zeros(x.nbytes + 1, np.uint8)
    misaligned = raw[1:].view(np.float64).reshape(3, 4)
    misaligned[...] = x
    return {
        "fortran": np.asfortranarray(x),
        "reversed": x[::-1, ::-1].copy()[::-1, ::-1],
        "strided": np.repeat(x, 2, axis=1)[:, ::2],
        "read-only": read_only,
        "misaligned": misaligned,
        "big-endian": x.astype(">f8"),
        "broadcast": np.broadcast_to(x[:1], (3, 4)),
    }


@pytest.mark.parametrize("layout", _layouts())
def test_layouts_of_arguments(layout: str) -> None:
    x = _layouts()[layout]
    plain = np.ascontiguousarray(x, float)
    second = np.zeros((3, 4, 3, 4))
    for i, j in np.ndindex(3, 4):
        second[i, j, i, j] = -np.sin(plain[i, j])
    fun = lambda x: np.sum(np.sin(x))  # noqa: E731  # one line
    for way in (ft.grad(fun), ft.jit(ft.grad(fun)), ft.jacfwd(fun), ft.grad(ft.jit(fun))):
        assert_close(way(x), np.cos(plain))
    assert_close(ft.hessian(fun)(x), second)
    assert_close(ft.vmap(ft.grad(fun))(x), np.cos(plain))


def test_special_values_in_jit() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    for fun in (np.isnan, np.isinf, np.signbit, lambda x: np.copysign(1.0, x), lambda x: x * 0.0):
        with quiet():
            expected = fun(x)
            found = ft.jit(fun)(x)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    assert not np.signbit(ft.jit(lambda x: x + 0.0)(-0.0))
    assert np.signbit(ft.jit(lambda x: x * 1.0)(-0.0))


def test_integer_arithmetic_at_the_edge_is_numpys() -> None:
    lowest = np.iinfo(np.int64).min
    a, b = np.array([7, lowest, 5]), np.array([0, -1, 70])
    for fun in (np.floor_divide, np.remainder, np.left_shift, np.right_shift):
        with quiet():
            assert_close(ft.jit(fun)(a, b), fun(a, b))
            assert_close(ft.vmap(fun)(a, b), fun(a, b))
    with quiet():
        wild = np.array([1e30, -1e30, np.nan])
        assert_close(ft.jit(lambda x: x.astype(np.int32))(wild), wild.astype(np.int32))


def test_errors_at_run_time_are_numpys() -> None:
    x = np.ones(3)
    with pytest.raises(IndexError, match=r"(?s)out of bounds.*test_hazards\.py"):
        ft.jit(lambda x, i: x[i])(x, 7)
    with pytest.raises(np.linalg.LinAlgError):
        ft.grad(ft.jit(lambda a: np.sum(np.linalg.inv(a))))(np.zeros((2, 2)))

    def fails(value: Any) -> Any:
        raise OSError("from the callback")

    shape = ft.ShapeDtypeStruct((3,), np.float64)
    with pytest.raises(OSError, match="from the callback"):
        ft.jit(lambda x: ft.pure_callback(fails, shape, x))(x)
    with pytest.raises(MemoryError):
        ft.jit(lambda x: np.broadcast_to(x, (2**40, 3)) * 2.0)(x)


def test_gradients_are_checked_with_a_seed() -> None:
    ft.check_grads(lambda x: np.sum(np.sin(x) * x), (np.array([0.3, -1.2]),), order=2)
    wrong = ft.custom_jvp(lambda x: np.sin(x))
    wrong.defjvp(lambda p, t: (np.sin(p[0]), 1.01 * t[0] * np.cos(p[0])))
    messages = set()
    for _ in range(2):
        with pytest.raises(AssertionError) as caught:
            ft.check_grads(wrong, (np.array([0.3, -1.2]),), order=1)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_unmapped_arguments_are_plain() -> None:
    def fun(x: Any, flag: Any, n: Any) -> Any:
        if flag > 0 and np.sin(flag) > 0:
            for _ in range(int(n)):
                x = x * x
        return x

    x = np.array([2.0, 3.0])
    assert_close(ft.vmap(fun, in_axes=(0, None, None))(x, 1.0, 2), x**4)
    way = ft.vmap(ft.grad(fun), in_axes=(0, None, None))
    assert_close(way(x, 1.0, 2), 4 * x**3)
    second = ft.vmap(ft.jacfwd(ft.grad(fun)), in_axes=(0, None, None))
    assert_close(second(x, 1.0, 2), 12 * x**2)


def test_many_indices_cost_as_much_as_one() -> None:
    x = np.ones(64)
    way = ft.grad(lambda x, i: x[i] * x[-1 - i])

    def seconds(indices: Any) -> float:
        start = time.perf_counter()
        for i in indices:
            way(x, i)
        return time.perf_counter() - start

    way(x, 0)
    rounds = [(seconds([5] * 60), seconds(range(60))) for _ in range(3)]
    assert min(b / a for a, b in rounds) < 5
