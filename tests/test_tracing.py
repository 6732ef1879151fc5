"""Tracing: who takes an operation, in-place syntax, mutation, threads, control flow."""

import asyncio
import contextvars
import math
import operator
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.core.dispatch import Tracer, tracing
from functrans.core.state import open_traces
from functrans.errors import (
    AliasedWriteError,
    ConcretizationError,
    EscapedTracerError,
    ShapeError,
    UnsupportedOperationError,
)
from functrans.passes.layouts import copy_in_layout
from functrans.passes.recording import RecordingTrace

X = np.array([0.5, -1.0, 2.0])


def forward(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Derivative by forward mode."""
    return lambda x: ft.jvp(f, (x,), (np.ones_like(x),))[1]


def linearized(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: ft.linearize(f, x)[1](1.0)


DERIVATIVES = {
    "reverse": ft.grad,
    "forward": forward,
    "linearized": linearized,
    "jacfwd": ft.jacfwd,
}
PAIRS = [(outer, inner) for outer in DERIVATIVES for inner in DERIVATIVES]


# dispatch ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_perturbations_are_not_confused(outer: str, inner: str) -> None:
    d_outer, d_inner = DERIVATIVES[outer], DERIVATIVES[inner]
    assert d_outer(lambda x: x * d_inner(lambda y: x + y)(1.0))(1.0) == 1
    assert d_outer(lambda x: x * d_inner(lambda y: x * y)(1.0))(4.0) == 8
    assert d_outer(lambda x: d_inner(lambda y: x * x * y)(x))(3.0) == 6
    # the inner function does not use its own argument
    assert d_outer(lambda x: x * d_inner(lambda y: x * x)(1.0))(3.0) == 0
    assert d_outer(lambda x: d_inner(lambda y: x)(1.0) + x)(3.0) == 1


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_a_function_nested_in_itself(outer: str, inner: str) -> None:
    d_outer, d_inner = DERIVATIVES[outer], DERIVATIVES[inner]

    def cube(x: Any) -> Any:
        return x**3

    assert d_outer(d_inner(cube))(2.0) == 12
    assert d_outer(lambda x: cube(d_inner(cube)(x)))(1.0) == pytest.approx(3 * 9 * 6)


def test_three_levels_keep_their_tracers_apart() -> None:
    def fun(x: Any) -> Any:
        return ft.grad(lambda y: ft.grad(lambda z: x * y * y * z * z)(y) * x)(x)

    # d/dy (2 x^2 y^3) at y = x: 6 x^4
    np.testing.assert_allclose(ft.grad(fun)(2.0), 24 * 2.0**3)
    np.testing.assert_allclose(forward(fun)(2.0), 24 * 2.0**3)


def test_a_jacobian_of_a_closure_is_not_all_zeros() -> None:
    def fun(x: Any) -> Any:
        return np.sum(ft.jacobian(lambda y: np.sin(y) * x)(X) ** 2)

    expected = 2 * X * np.cos(X) ** 2 + 0
    np.testing.assert_allclose(ft.grad(fun)(X), expected)
    np.testing.assert_allclose(ft.grad(lambda x: np.sum(ft.vmap(lambda y: y * x)(X)))(2.0), X.sum())


def test_plain_operations_are_evaluated_at_once_under_every_trace() -> None:
    seen = []

    def fun(x: Any) -> Any:
        y = np.sin(X) * 2
        seen.append(type(y))
        return np.sum(x * y)

    ft.grad(fun)(X)
    ft.vmap(fun)(X[None])
    ft.make_jaxpr(fun)(X)
    ft.jvp(fun, (X,), (X,))
    assert set(seen) == {np.ndarray}
    assert "sin" not in str(ft.make_jaxpr(fun)(X))


def test_values_of_enclosing_traces_are_constants() -> None:
    def fun(x: Any) -> Any:
        value, inner = ft.value_and_grad(lambda y: x * 2.0)(1.0)
        assert isinstance(value, Tracer)
        assert type(inner) is np.ndarray
        return value + inner

    assert ft.grad(fun)(3.0) == 2


def test_arguments_of_an_inner_function_may_be_outer_values() -> None:
    for inner in DERIVATIVES.values():
        for outer in DERIVATIVES.values():
            assert outer(lambda x, inner=inner: inner(lambda y: y * y * y)(x))(2.0) == 12


# escaped tracers --------------------------------------------------------------------------------


def leak(transform: Callable[..., Any]) -> Any:
    kept = []

    def leaking(x: Any) -> Any:
        kept.append(x)
        return x * x

    transform(leaking)
    return kept[0]


LEAKS: dict[str, Callable[..., Any]] = {
    "grad": lambda f: ft.grad(f)(2.0),
    "jvp": lambda f: ft.jvp(f, (2.0,), (1.0,)),
    "vmap": lambda f: ft.vmap(f)(X),
    "make_jaxpr": lambda f: ft.make_jaxpr(f)(2.0),
    "jit": lambda f: ft.jit(f)(2.0),
    "linearize": lambda f: ft.linearize(f, 2.0),
}
USES: dict[str, Callable[..., Any]] = {
    "operator": lambda t: t + 1.0,
    "function": lambda t: np.sin(t),
    "in grad": lambda t: ft.grad(lambda x: x * t)(1.0),
    "result of grad": lambda t: ft.grad(lambda x: t)(1.0),
    "result of jvp": lambda t: ft.jvp(lambda x: t, (1.0,), (1.0,)),
    "result of vmap": lambda t: ft.vmap(lambda x: t)(X),
    "result of make_jaxpr": lambda t: ft.make_jaxpr(lambda x: t)(X),
    "result of vjp": lambda t: ft.vjp(lambda x: (x, t), 1.0),
    "aux": lambda t: ft.grad(lambda x: (x, t), has_aux=True)(1.0),
    "argument": lambda t: ft.grad(lambda x: x)(t),
    "tangent": lambda t: ft.jvp(lambda x: x, (1.0,), (t,)),
    "cotangent": lambda t: ft.vjp(lambda x: x, 1.0)[1](t),
    "mapped": lambda t: ft.vmap(lambda x: x)(t),
    "captured": lambda t: ft.make_jaxpr(lambda x: x * t)(1.0),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("origin", LEAKS)
def test_escaped_tracers_raise(origin: str, use: str) -> None:
    tracer = leak(LEAKS[origin])
    with pytest.raises(EscapedTracerError, match=r"leaking.*had returned.*has_aux=True"):
        USES[use](tracer)
    assert open_traces.get() == ()


def test_a_pullback_outlives_its_function_but_not_the_enclosing_one() -> None:
    kept = []

    def fun(x: Any) -> Any:
        out, pullback = ft.vjp(lambda y: y * y * x, x)
        kept.append(pullback)
        return out

    ft.grad(fun)(2.0)
    with pytest.raises(EscapedTracerError):
        kept[0](1.0)


# traces are closed, errors come out -------------------------------------------------------------


@pytest.mark.parametrize("origin", LEAKS)
def test_an_error_in_the_function_closes_its_trace(origin: str) -> None:
    def failing(x: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        LEAKS[origin](failing)
    assert open_traces.get() == ()


def test_an_error_raised_from_one_of_ours_stays_the_users() -> None:
    def fun(x: Any) -> Any:
        try:
            bool(x > 0)
        except ConcretizationError as error:
            raise ValueError("mine") from error

    with pytest.raises(ValueError, match="mine"):
        ft.make_jaxpr(fun)(1.0)


def test_an_error_that_numpy_wrapped_comes_out_as_ours() -> None:
    buffer = np.zeros(3)

    def fun(x: Any) -> Any:
        buffer[0] = x
        return x

    for transform in LEAKS.values():
        refused = pytest.raises(ConcretizationError, match=r"float\(\).*fun")
        with ft.config(plain=False), refused:
            transform(fun)


# threads and tasks ------------------------------------------------------------------------------


def test_threads_do_not_see_each_others_traces() -> None:
    barrier = threading.Barrier(4)

    def work(k: int) -> Any:
        def fun(x: Any) -> Any:
            barrier.wait()
            assert len(open_traces.get()) == 1
            y = np.sin(k * x)
            barrier.wait()
            return y * ft.grad(lambda z: z * z * x)(1.0)

        with ft.config(safe_where=k % 2 == 0) as config:
            assert config.safe_where == (k % 2 == 0)
            return ft.grad(fun)(0.5)

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, range(4)))
    expected = [k * np.cos(k * 0.5) * 2 * 0.5 + 2 * np.sin(k * 0.5) for k in range(4)]
    np.testing.assert_allclose(results, expected)


def test_a_traced_value_may_be_used_in_a_worker_thread() -> None:
    def fun(x: Any) -> Any:
        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda k: np.sin(k * x), range(4)))

    expected = sum(k * np.cos(k * 0.5) for k in range(4))
    np.testing.assert_allclose(ft.grad(fun)(0.5), expected)
    np.testing.assert_allclose(forward(fun)(0.5), expected)
    np.testing.assert_allclose(ft.vmap(fun)(np.array([0.5]))[0], fun(0.5))


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_a_transform_in_a_worker_thread_knows_its_arguments_trace(outer: str, inner: str) -> None:
    def fun(x: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            work = DERIVATIVES[inner](lambda y: x * y * y)  # x is closed over, too
            return pool.submit(work, x).result()

    assert DERIVATIVES[outer](fun)(3.0) == 12  # 2 x^2


@pytest.mark.parametrize(("outer", "inner"), PAIRS)
def test_values_of_unrelated_traces_do_not_mix(outer: str, inner: str) -> None:
    def fun(x: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(DERIVATIVES[inner](lambda y: x * y * y), 3.0).result()

    with pytest.raises(UnsupportedOperationError, match=r"copy_context"):
        DERIVATIVES[outer](fun)(2.0)

    def repaired(x: Any) -> Any:
        context = contextvars.copy_context()
        with ThreadPoolExecutor(1) as pool:
            work = DERIVATIVES[inner](lambda y: x * y * y)
            return pool.submit(context.run, work, 3.0).result()

    assert DERIVATIVES[outer](repaired)(2.0) == 6


def test_tasks_do_not_see_each_others_traces() -> None:
    async def work(k: int) -> Any:
        with ft.config(safe_where=k % 2 == 0):
            await asyncio.sleep(0)
            assert open_traces.get() == ()
            result = ft.grad(lambda x: np.sin(k * x))(0.5)
            await asyncio.sleep(0)
            with np.errstate(all="ignore"):
                safe = ft.grad(lambda x: np.where(x > 1, x, np.arcsin(x)))(2.0)
            assert np.isnan(safe) == (k % 2 == 1)
            return result

    async def main() -> Any:
        return await asyncio.gather(*map(work, range(4)))

    np.testing.assert_allclose(asyncio.run(main()), [k * np.cos(k * 0.5) for k in range(4)])


def test_tasks_inside_a_traced_function() -> None:
    def fun(x: Any) -> Any:
        async def part(k: int) -> Any:
            await asyncio.sleep(0)
            return ft.grad(lambda y: x * y**k)(x)

        async def main() -> Any:
            return sum(await asyncio.gather(*map(part, (1, 2, 3))))

        return asyncio.run(main())

    # x + 2 x^2 + 3 x^3
    np.testing.assert_allclose(ft.grad(fun)(2.0), 1 + 4 * 2 + 9 * 4)


def test_a_task_that_outlives_the_traced_function_is_not_inside_it() -> None:
    results = []

    async def later() -> None:
        await asyncio.sleep(0)
        results.append(ft.grad(lambda y: y * y)(3.0))

    async def main() -> None:
        tasks = []

        def fun(x: Any) -> Any:
            tasks.append(asyncio.get_running_loop().create_task(later()))
            return x * x

        ft.vmap(fun)(X)
        await asyncio.gather(*tasks)

    asyncio.run(main())
    assert results == [6]


# Python on values -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DERIVATIVES)
def test_python_values_of_traced_ones(name: str) -> None:
    def fun(x: Any) -> Any:
        assert x
        assert int(x) == 2
        assert x == 2.5
        assert x in (1.0, 2.5)
        assert f"{x:.2f}" == "2.50"
        assert f"{x}" == "2.5"
        assert "abc"[int(x)] == "c"
        assert max(x, 1.0) == x
        assert min(x * 2, x) == x
        assert divmod(x, 2.0)[0] == 1
        for _ in range(int(x)):
            x = x * 2
        while x > 3:
            x = x / 4
        return 3 * x if x > 0 else -x

    assert DERIVATIVES[name](fun)(2.5) == 3


@pytest.mark.parametrize("name", DERIVATIVES)
def test_conversions_that_lose_the_derivative_raise(name: str) -> None:
    conversions: list[Callable[[Any], Any]] = [
        float, complex, math.sin, math.floor, np.asarray, np.array, lambda x: x.item(), np.float64,
    ]  # fmt: skip
    refused = pytest.raises(ConcretizationError, match=r"test_tracing\.py|lose")
    for convert in conversions:
        with ft.config(plain=False), refused:
            DERIVATIVES[name](lambda x, convert=convert: x * convert(x))(2.5)


@pytest.mark.parametrize("trace", ["vmap", "make_jaxpr", "jit"])
def test_staged_values_have_no_python_value(trace: str) -> None:
    conversions: list[Callable[[Any], Any]] = [
        bool, int, float, complex, math.sin, lambda x: f"{x:.2f}", lambda x: x.item(), range,
        lambda x: "abc"[x], lambda x: 1 if x > 0 else 2,
    ]  # fmt: skip
    for convert in conversions:
        with pytest.raises(ConcretizationError, match=r"test_tracing\.py"):
            LEAKS[trace](lambda x, convert=convert: x * convert(x))
    texts: list[str] = []
    LEAKS[trace](lambda x: texts.append(f"{x} {x!r}") or x)
    assert texts[0].startswith("Traced<f64")


def test_iteration_length_and_unpacking() -> None:
    def fun(x: Any) -> Any:
        a, b, c = x
        assert len(x) == 3
        first, *rest = x[:, None] * 2
        return a * b + c + np.sum(first) + sum(np.sum(row) for row in rest) + x[-1] + x[np.int64(0)]

    expected = ft.grad(lambda x: x[0] * x[1] + x[2] + 2 * np.sum(x) + x[2] + x[0])(X)
    np.testing.assert_allclose(ft.grad(fun)(X), expected)
    np.testing.assert_allclose(ft.vmap(fun)(X[None])[0], fun(X))


# in-place syntax --------------------------------------------------------------------------------


def everywhere(fun: Callable[[Any], Any], x: np.ndarray) -> None:
    """A function with in-place syntax gives what NumPy gives, and its derivatives agree."""
    expected = fun(x.copy())
    value, gradient = ft.value_and_grad(fun)(x)
    np.testing.assert_allclose(value, expected)
    direction = np.cos(np.arange(x.size)).reshape(x.shape)
    h = 1e-6
    slope = (fun(x + h * direction) - fun(x - h * direction)) / (2 * h)
    np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-5, atol=1e-7)
    out, tangent = ft.jvp(fun, (x,), (direction,))
    np.testing.assert_allclose([out, tangent], [expected, np.sum(gradient * direction)])
    _, pushforward = ft.linearize(fun, x)
    np.testing.assert_allclose(pushforward(direction), tangent)
    np.testing.assert_allclose(ft.jacfwd(fun)(x), gradient)
    np.testing.assert_allclose(ft.vmap(fun)(np.stack([x, 2 * x])), [expected, fun(2 * x)])
    np.testing.assert_allclose(ft.vmap(ft.grad(fun))(np.stack([x, x]))[1], gradient)
    np.testing.assert_allclose(ft.jit(fun)(x), expected)
    np.testing.assert_allclose(ft.jit(ft.grad(fun))(x), gradient)
    curve = (ft.grad(fun)(x + h * direction) - ft.grad(fun)(x - h * direction)) / (2 * h)
    np.testing.assert_allclose(ft.hvp(fun, (x,), (direction,)), curve, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        ft.hessian(fun)(x).reshape(x.size, -1) @ direction.ravel(),
        curve.ravel(),
        rtol=1e-4,
        atol=1e-6,
    )


def total(*arrays: Any) -> Any:
    """A scalar that weighs every element differently."""
    parts = [
        np.sum(np.sin(np.arange(a.size) + 1.0 + 3 * k).reshape(a.shape) * a**2)
        for k, a in enumerate(arrays)
    ]
    return sum(parts)


def write_elements(x: Any) -> Any:
    y = np.zeros(4, like=x)
    y[0] = x[0] * x[1]
    y[1:3] = x[1:]
    y[-1] = 2.0
    y[1] += x[0]
    y[2] *= y[1]
    return total(y, x)


def augmented(x: Any) -> Any:
    y = x
    y += 1.0
    y *= y
    y -= [1.0, 2.0, 3.0]
    y /= 2.0
    y **= 2
    x[0] -= 3.0
    return total(x, y)  # y is x


def views_follow_writes(x: Any) -> Any:
    y = x * 1.0
    first, last, odd = y[:2], y[1:], y[::2]
    first[:] = 1.0
    last[0] = y[2] * 3.0  # seen by first, too
    odd *= 2.0
    inner = last[1:]
    inner[...] = first[1:] + 1.0
    return total(y, first, last, odd, inner)


def views_of_dead_views(x: Any) -> Any:
    y = x * 2.0
    inner = y[1:][:1][::-1]
    inner += 5.0
    return total(y, inner)


def overlapping_assignment(x: Any) -> Any:
    y = x * 1.0
    y[1:] = y[:-1]
    y[:-1] += y[1:]
    y[::-1] -= y * 0.5
    return total(y, x)


def old_value_survives(x: Any) -> Any:
    y = np.exp(x)
    z = y * y
    y[...] = 3.0
    w = y * x
    return total(z, w, y)


def self_assignment(x: Any) -> Any:
    y = np.sin(x)
    y[...] = y
    y[:2] = y[1:] * y[:2]
    y[0:3] = y
    return total(y)


def rebinding_is_not_writing(x: Any) -> Any:
    y = x[1:]
    x = x + 1.0
    x[1] = 7.0
    return total(x, y)


def write_through_reshape(x: Any) -> Any:
    y = x * 1.0
    y.reshape(3, 1)[1, 0] = 4.0
    y[:, None][2] = 5.0
    return total(y)


def masks(x: Any) -> Any:
    y = x * 2.0
    y[y > 0] *= 3.0
    y[x < 0] = 1.5
    return total(y)


def index_arrays(x: Any) -> Any:
    y = x * 2.0
    y[[0, 2]] = y[[2, 1]]
    y[np.array([1])] += x[0]
    return total(y)


def copies_are_independent(x: Any) -> Any:
    y = x * 1.0
    parts = [+y, y.copy(), np.array(y, like=y), np.copy(y), y.astype(float), abs(y), y[...] + 0]
    for k, part in enumerate(parts):
        part[0] = float(k)
    return total(y, *parts)


def constants_become_traced(x: Any) -> Any:
    y = np.array([1.0, 2.0, 3.0], like=x)
    y[1] = x[0]
    z = np.zeros((2, 3), like=x)
    z[0] = y
    z[1, 1:] = x[:2] * z[0, :2]
    return total(y, z)


def broadcast_writes(x: Any) -> Any:
    z = np.zeros((2, 3), like=x)
    z[:] = x
    z[:, 1] = x[0]
    z[1] += x
    z[:, None, 2] = x[1]
    z[0, :2] = x[None, :2]  # leading axes of extent 1 go
    return total(z)


IN_PLACE = [
    write_elements, augmented, views_follow_writes, views_of_dead_views, overlapping_assignment,
    old_value_survives, self_assignment, rebinding_is_not_writing, masks, index_arrays,
    copies_are_independent, constants_become_traced, broadcast_writes,
]  # fmt: skip


@pytest.mark.parametrize("fun", IN_PLACE, ids=lambda fun: fun.__name__)
def test_in_place_syntax_is_numpys(fun: Any) -> None:
    everywhere(fun, X)


def test_write_through_reshape() -> None:
    x = X.copy()
    expected = write_through_reshape(x)
    np.testing.assert_allclose(ft.value_and_grad(write_through_reshape)(X)[0], expected)
    np.testing.assert_allclose(ft.jvp(write_through_reshape, (X,), (X,))[0], expected)


def random_index(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A basic index."""
    entries: list[Any] = []
    for extent in shape:
        if rng.random() < 0.3 and extent:
            entries.append(int(rng.integers(-extent, extent)))
            continue
        bounds = [
            int(rng.integers(-extent, extent + 1)) if rng.random() < 0.6 else None for _ in "ab"
        ]
        entries.append(slice(*bounds, int(rng.choice([1, 1, 2, -1]))))
    if rng.random() < 0.2:
        entries.insert(int(rng.integers(len(entries) + 1)), None)
    return tuple(entries[: int(rng.integers(1, len(entries) + 1))])


VIEWS: list[Callable[[Any], Any]] = [
    lambda a: a.T,
    lambda a: a.reshape(-1),
    lambda a: a.ravel(),
    lambda a: np.flip(a),
    lambda a: a[None],
    lambda a: np.squeeze(a),
    lambda a: np.moveaxis(a, 0, -1),
    lambda a: np.expand_dims(a, 0),
    lambda a: np.atleast_2d(a),
    lambda a: np.split(a, [1])[-1],
    lambda a: a.swapaxes(0, -1),
    lambda a: a.copy(),
    lambda a: a.astype(float),
    lambda a: +a,
    lambda a: a * 1.5,
]


def random_program(seed: int, has_layout: bool) -> Callable[[Any], list[Any]]:
    """A function that takes views and writes into arrays, in random order."""

    def program(x: Any) -> list[Any]:
        rng = np.random.default_rng(seed)
        arrays = [x, x * 2.0 + 1.0] + ([x.T * 1.5] if has_layout else [])
        for _ in range(14):
            a = arrays[int(rng.integers(len(arrays)))]
            b = arrays[int(rng.integers(len(arrays)))]
            kind = rng.integers(7)
            index = random_index(rng, a.shape)
            if kind == 0:
                arrays.append(a[index])
            elif kind == 1:
                a[index] = float(rng.normal())
            elif kind == 2:
                a[index] = a[index] * 0.5 + 1.0
            elif kind == 3:
                a += float(rng.normal())
            elif kind == 4 and b.shape == a.shape:
                a[...] = b
            elif kind == 5:
                a[index] *= 0.7
            elif kind == 6 and has_layout:
                arrays.append(VIEWS[int(rng.integers(len(VIEWS)))](a))
            if arrays[-1].ndim == 0:
                arrays.pop()
            if rng.random() < 0.15 and len(arrays) > 3:
                del arrays[int(rng.integers(2, len(arrays)))]
        return arrays

    return program


def laid_out_inputs(values: np.ndarray) -> list[np.ndarray]:
    """The values in memory in several ways."""
    wide = np.repeat(np.repeat(values, 2, 0), 2, 1)
    return [
        values.copy(),
        np.asfortranarray(values),
        wide[::2, ::2],
        np.repeat(values, 2, 1)[:, ::2],
        np.repeat(values, 2, 0)[::2],
        values[::-1].copy()[::-1],
        values[:, ::-1].copy()[:, ::-1],
    ]


@pytest.mark.parametrize("seed", range(60))
def test_random_writes_and_views_are_numpys(seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(3, 4))
    program = random_program(seed, has_layout=True)
    builds = laid_out_inputs(values)
    x = builds[seed % len(builds)]
    expected = program(laid_out_inputs(values)[seed % len(builds)])
    results = [
        ft.vjp(program, x)[0],
        ft.jvp(program, (x,), (x,))[0],
        ft.jvp(lambda x: ft.vjp(program, x)[0], (x,), (x,))[0],
    ]
    for outs in results:
        for out, want in zip(outs, expected, strict=True):
            np.testing.assert_allclose(out, want)
    np.testing.assert_array_equal(x, values)
    by_reverse, by_forward = ft.jacrev(program)(x), ft.jacfwd(program)(x)
    for first, second in zip(by_reverse, by_forward, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-12)


@pytest.mark.parametrize("seed", range(60, 100))
def test_random_writes_are_the_same_in_every_trace(seed: int) -> None:
    program = random_program(seed, has_layout=False)
    everywhere(lambda x: total(*program(x)), np.random.default_rng(seed).normal(size=(2, 3)))


def test_copies_keep_the_layout() -> None:
    for value in laid_out_inputs(np.arange(12.0).reshape(3, 4)):
        copy = copy_in_layout(value, value)
        np.testing.assert_array_equal(copy, value)
        assert not np.shares_memory(copy, value)
        for name in ("c_contiguous", "f_contiguous"):
            assert getattr(copy.flags, name) == getattr(value.flags, name)
        for shape in [(12,), (4, 3), (3, 2, 2)]:
            is_view = [np.shares_memory(a.reshape(shape), a) for a in (copy, value)]
            assert is_view[0] == is_view[1]


@pytest.mark.parametrize("trace", ["vmap", "make_jaxpr", "jit"])
def test_staging_refuses_a_write_that_depends_on_the_layout(trace: str) -> None:
    def fun(x: Any) -> Any:
        m = x * np.ones((2, 3, 1))
        flat = m.T.reshape(-1)
        flat[0] = 1.0
        return np.sum(m)

    with pytest.raises(UnsupportedOperationError, match=r"layout.*copy"):
        LEAKS[trace](fun)


def test_writes_to_a_read_only_view_raise() -> None:
    def fun(x: Any) -> Any:
        y = np.broadcast_to(x, (2, 3))
        y[0, 0] = 1.0
        return np.sum(y)

    for transform in (ft.grad(fun), ft.jit(fun), lambda x: ft.jvp(fun, (x,), (x,))):
        with pytest.raises(ValueError, match="read-only"):
            transform(X)


@pytest.mark.parametrize("outer", ["grad", "jvp", "vmap", "jit"])
@pytest.mark.parametrize("inner", ["grad", "jvp", "vmap", "jit", "fori_loop"])
def test_writing_to_an_outer_array_raises(outer: str, inner: str) -> None:
    inners: dict[str, Callable[..., Any]] = {
        "grad": lambda f: ft.grad(lambda z: f(z))(1.0),
        "jvp": lambda f: ft.jvp(f, (1.0,), (1.0,))[1],
        "vmap": lambda f: np.sum(ft.vmap(f)(X)),
        "jit": lambda f: ft.jit(f)(1.0),
        "fori_loop": lambda f: ft.lax.fori_loop(0, 3, lambda i, c: f(c), 1.0),
    }

    def fun(x: Any) -> Any:
        y = x * np.ones(3)

        def inner_function(z: Any) -> Any:
            y[0] = 3.0
            return z * z

        return inners[inner](inner_function) + np.sum(y)

    outers: dict[str, Callable[..., Any]] = {
        "grad": lambda: ft.grad(fun)(2.0),
        "jvp": lambda: ft.jvp(fun, (2.0,), (1.0,)),
        "vmap": lambda: ft.vmap(fun)(X),
        "jit": lambda: ft.jit(fun)(2.0),
    }
    with pytest.raises(AliasedWriteError, match=r"(?s)fun.*inner_function"):
        outers[outer]()
    assert open_traces.get() == ()


def test_an_inner_value_cannot_be_stored_in_an_outer_array() -> None:
    def fun(x: Any) -> Any:
        y = x * np.ones(3)

        def inner(z: Any) -> Any:
            y[:] = z
            return z

        ft.grad(inner)(1.0)
        return np.sum(y)

    with pytest.raises(AliasedWriteError):
        ft.grad(fun)(2.0)


def test_an_outer_value_can_be_stored_in_an_inner_array() -> None:
    def fun(x: Any) -> Any:
        def inner(z: Any) -> Any:
            y = np.zeros(3, like=z)
            y[0] = x
            y[1] = z
            y += x
            return np.sum(y * y)

        return ft.grad(inner)(1.0)  # 2 * (z + x)

    assert ft.grad(fun)(2.0) == 2
    assert forward(fun)(2.0) == 2
    assert ft.jit(fun)(2.0) == 6


def test_failed_writes_change_nothing() -> None:
    def fun(x: Any) -> Any:
        y = x * 1.0
        view = y[:2]
        shape_error = ShapeError if isinstance(x, Tracer) else ValueError
        attempts: list[tuple[Any, Any, Any]] = [
            (slice(None), np.ones(4), shape_error),
            (slice(0, 2), x, shape_error),
            (5, 1.0, IndexError),
            ((0, 0), 1.0, IndexError),
            (0, 1j, TypeError),
            (slice(None), np.ones(3) * 1j, (TypeError, np.exceptions.ComplexWarning)),
            ([0, 1], np.ones(3), shape_error),
        ]
        for index, value, error in attempts:
            with pytest.raises(error):
                y[index] = value
        with pytest.raises(TypeError):
            view += 1j
        with pytest.raises(ValueError):  # noqa: PT011  # NumPy's own text
            view += np.ones((2, 2))
        return total(y, view)

    everywhere(fun, X)


def test_views_do_not_pile_up() -> None:
    def fun(x: Any) -> Any:
        y = x * 1.0
        for _ in range(1000):
            y[1:]
        assert len(y._alias.views) <= 16
        keep = [y[k:] for k in range(40)]
        assert len(y._alias.views) >= 40
        y[0] = 1.0
        del keep
        return np.sum(y)

    ft.grad(fun)(np.ones(50))


# filling an array in a loop ---------------------------------------------------------------------

ROWS, COLUMNS = 300, 10_000  # a copy per row would take seconds


def fill_rows(x: Any) -> Any:
    y = np.zeros((ROWS, COLUMNS), like=x)
    y[0] = x
    for i in range(1, ROWS):
        y[i] = y[i - 1] * 0.5 + i
    return y


def accumulate_rows(x: Any) -> Any:
    y = np.zeros((ROWS, COLUMNS), like=x)
    for i in range(ROWS):
        y[i] += x * i
        y[i] *= 0.5
        y[i, 2:5] = y[i - 1, 2:5]
    return y


@pytest.mark.parametrize(
    "run",
    [
        lambda x: ft.grad(lambda x: np.sum(fill_rows(x)))(x),
        lambda x: ft.grad(lambda x: np.sum(accumulate_rows(x)))(x),
        lambda x: ft.jvp(accumulate_rows, (x,), (x,)),
        lambda x: ft.jvp(fill_rows, (x,), (x,)),
        lambda x: ft.linearize(fill_rows, x)[1](x),
        lambda x: ft.grad(lambda x: sum(np.sum(row) for row in x))(np.ones((ROWS, COLUMNS))),
    ],
    ids=["grad", "grad of +=", "jvp of +=", "jvp", "linearize", "grad of reading"],
)
def test_filling_an_array_row_by_row_is_linear(run: Any) -> None:
    x = np.ones(COLUMNS)
    run(x)
    start = time.process_time()
    run(x)
    assert time.process_time() - start < 1.5  # a copy per row takes 4 s and more


def test_filling_an_array_gives_the_right_gradient() -> None:
    n = 2000

    def fun(x: Any) -> Any:
        y = np.zeros(n, like=x)
        for i in range(n):
            y[i] = x * i
        return np.sum(y * y)

    expected = 2 * 3.0 * np.sum(np.arange(n, dtype=float) ** 2)
    np.testing.assert_allclose(ft.grad(fun)(3.0), expected)
    np.testing.assert_allclose(forward(fun)(3.0), expected)


def test_writes_in_place_when_nothing_else_sees_the_array() -> None:
    def fun(x: Any) -> Any:
        y = np.zeros(3, like=x)
        y[0] = x[0]
        buffer = y._value
        address = buffer.ctypes.data
        del buffer
        y[1] = x[1]
        assert y._value.ctypes.data == address
        held = y._value  # what a debugger does
        y[2] = 1.0
        assert y._value is not held
        assert held[2] == 0.0
        z = y * y  # saves y
        y[0] = 7.0
        w = y[1:]  # a view
        y[1] = 8.0
        assert w._value[0] == 8.0
        return np.sum(z) + np.sum(y)

    np.testing.assert_allclose(ft.grad(fun)(X), [2 * X[0], 2 * X[1], 0])


def test_pullback_in_place_does_not_touch_the_callers_cotangent() -> None:
    def fun(x: Any) -> Any:
        y = x * 2.0
        y[0] = x[1]
        y[1] = x[0] * y[2]
        return y, y[1:], y[0]

    ct = np.ones(3)
    cts = (ct, ct[1:], 1.0)
    _, pullback = ft.vjp(fun, X)
    first = pullback(cts)[0]
    np.testing.assert_array_equal(ct, np.ones(3))
    np.testing.assert_array_equal(pullback(cts)[0], first)
    expected = ft.jacrev(fun)(X)
    np.testing.assert_allclose(first, expected[0].sum(0) + expected[1].sum(0) + expected[2])


def test_pushforward_in_place_does_not_touch_the_callers_tangent() -> None:
    def fun(x: Any) -> Any:
        x[0] = x[1] * 2.0
        x[1] = 5.0
        return x

    tangent = np.ones(3)
    _, pushforward = ft.linearize(fun, X)
    for _ in range(2):
        np.testing.assert_array_equal(pushforward(tangent), [2, 0, 1])
    np.testing.assert_array_equal(tangent, np.ones(3))
    np.testing.assert_array_equal(ft.jvp(fun, (X,), (tangent,))[1], [2, 0, 1])
    np.testing.assert_array_equal(tangent, np.ones(3))


# mutated arrays ---------------------------------------------------------------------------------

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "grad": ft.grad,
    "jit of grad": lambda f: ft.jit(ft.grad(f)),
    "grad of jit": lambda f: ft.grad(ft.jit(f)),
    "vmap of grad": lambda f: lambda x: ft.vmap(ft.grad(f))(np.stack([x, x]))[1],
    "grad of vmap": lambda f: ft.grad(lambda x: np.sum(ft.vmap(f)(x[None]))),
    "jacfwd": ft.jacfwd,
    "jacrev": ft.jacrev,
    "linearize": lambda f: lambda x: np.array([ft.linearize(f, x)[1](e) for e in np.eye(3)]),
    "vjp": lambda f: lambda x: ft.vjp(f, x)[1](1.0)[0],
    "jit of jacfwd": lambda f: ft.jit(ft.jacfwd(f)),
    "hessian": lambda f: lambda x: ft.hessian(lambda z: f(z) ** 2 / 2)(x) @ np.ones(3) / 9,
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize(
    "read",
    [
        lambda buffer: buffer,
        lambda buffer: np.broadcast_to(buffer, (1, 3)),
        lambda buffer: buffer[::-1],
        lambda buffer: memoryview_of(buffer),
    ],
    ids=["array", "broadcast", "view", "read-only view"],
)
def test_a_reused_buffer_gives_the_right_derivative(name: str, read: Any) -> None:
    buffer = np.zeros(3)

    def fun(x: Any) -> Any:
        total = 0.0
        for k in range(3):
            buffer[:] = k
            total = total + np.sum(x * read(buffer))
        return total

    np.testing.assert_allclose(TRANSFORMS[name](fun)(X * 0 + 1.0), [3, 3, 3])


def memoryview_of(array: np.ndarray) -> np.ndarray:
    """A read-only view of a writable array."""
    view = array.view()
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("nbytes", [80, 80_000])
def test_a_captured_array_that_does_not_change_is_copied_once(nbytes: int) -> None:
    weights = np.ones(nbytes // 8)

    def fun(x: Any) -> Any:
        copies = []
        for _ in range(3):
            x = x * weights
            copies.append(x._node.saved[1])
        assert all(copy is not weights for copy in copies)
        assert (copies[0] is copies[1]) == (nbytes > 10_000)
        weights[0] = 2.0
        x = x * weights
        assert x._node.saved[1] is not copies[0]
        assert copies[0][0] == 1.0
        weights[0] = 1.0
        return np.sum(x)

    ft.grad(fun)(np.ones(nbytes // 8))


def test_copies_can_be_switched_off() -> None:
    def fun(x: Any) -> Any:
        y = x * X
        assert y._node.saved[1] is X
        return np.sum(y)

    with ft.config(copy_residuals=False, plain=False):
        np.testing.assert_array_equal(ft.grad(fun)(X), X)


@pytest.mark.parametrize("name", ["grad", "vjp", "jacfwd", "jacrev"])
def test_an_argument_written_to_while_the_function_runs(name: str) -> None:
    x = np.array([1.0, 2.0, 3.0])

    def fun(z: Any) -> Any:
        y = np.sum(z * z)
        x[:] = 100.0  # the caller's own array
        return y

    np.testing.assert_allclose(TRANSFORMS[name](fun)(x), [2, 4, 6])


def test_a_changed_captured_array_is_seen_by_a_jitted_function() -> None:
    w = np.ones(3)
    value = ft.jit(lambda x: np.sum(x * w))
    gradient = ft.jit(ft.grad(lambda x: np.sum(x * x * w)))
    np.testing.assert_allclose([value(X), *gradient(X)], [X.sum(), *(2 * X)])
    w[:] = [1.0, 2.0, 3.0]
    np.testing.assert_allclose([value(X), *gradient(X)], [X @ w, *(2 * X * w)])


# the trace object -------------------------------------------------------------------------------


def test_tracing_restores_the_stack() -> None:
    outer, inner = RecordingTrace("outer"), RecordingTrace("inner")

    def fail() -> None:
        with tracing(inner):
            assert open_traces.get() == (outer, inner)
            assert inner.parent is outer
            raise KeyError

    with tracing(outer):
        with pytest.raises(KeyError):
            fail()
        assert open_traces.get() == (outer,)
        assert not inner.is_open
    assert open_traces.get() == ()
    assert not outer.is_open


# augmented assignment to numbers ---------------------------------------------------------------

NUMBERS: dict[str, Callable[[Any], Any]] = {
    "argument": lambda x: x,
    "ufunc": np.sin,
    "element": lambda x: np.stack([x, 2.0 * x])[1],
    "reduction": lambda x: np.sum(np.stack([x, x * x])),
    "item of a list": lambda x: [x * 3.0][0],
    "product": lambda x: np.stack([x, 1.0]) @ np.array([0.5, 2.0]),
}
AUGMENTED: dict[str, Callable[[Any, Any], Any]] = {
    "+=": operator.iadd,
    "-=": operator.isub,
    "*=": operator.imul,
    "/=": operator.itruediv,
    "//=": operator.ifloordiv,
    "%=": operator.imod,
    "**=": operator.ipow,
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("sign", AUGMENTED)
def test_another_name_of_a_number_keeps_it(number: str, sign: str) -> None:
    """As Python's and NumPy's numbers; arrays are written to."""

    def f(x: Any) -> Any:
        first = NUMBERS[number](x)
        second = first
        second = AUGMENTED[sign](second, 1.5)
        third = second
        third = AUGMENTED[sign](third, first)
        return first + 10.0 * second + 100.0 * third

    x, h = 1.37, 1e-6
    value, slope = f(x), (f(x + h) - f(x - h)) / (2 * h)
    for run in (
        lambda x: ft.value_and_grad(f)(x),
        lambda x: ft.jvp(f, (x,), (1.0,)),
        lambda x: (ft.jit(f)(x), ft.jit(ft.grad(f))(x)),
        lambda x: [y[0] for y in ft.vmap(ft.value_and_grad(f))(np.array([x]))],
    ):
        found = run(x)
        np.testing.assert_allclose(found[0], value, rtol=1e-14)
        np.testing.assert_allclose(found[1], slope, rtol=1e-6)


def test_a_number_of_an_enclosing_function_is_added_to() -> None:
    def outer(x: Any) -> Any:
        total = x * 2.0

        def inner(y: Any) -> Any:
            own = total
            own += y * y
            return own

        return ft.grad(inner)(x) + total

    assert ft.grad(outer)(3.0) == 4.0


def test_a_view_without_axes_is_written_to() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        view = y[1:2].reshape(())
        view += 5.0
        return y

    x = np.arange(3.0)
    for run in (f, ft.jit(f), lambda x: ft.vjp(f, x)[0]):
        np.testing.assert_array_equal(run(x), [0.0, 6.0, 2.0])
