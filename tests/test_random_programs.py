"""Random programs: transforms agree with each other, with loops and with difference quotients."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans.testing import central_difference
from helpers import assert_close
from random_programs import OPERATIONS, PROGRAMS, Program

SEEDS = st.integers(0, 1000)


def _points(program: Program, seed: int, size: int | None = None) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    lead = () if size is None else (size,)
    return tuple(np.asarray(rng.uniform(-1.5, 1.5, (*lead, *shape))) for shape in program.shapes)


def _difference(fun: Any, point: Any, direction: Any) -> list[Any]:
    """A difference quotient of fourth order."""
    near = central_difference(fun, point, direction, 1e-3)
    far = central_difference(fun, point, direction, 2e-3)
    return [(4 * a - b) / 3 for a, b in zip(near, far, strict=True)]


def _gradient(program: Program) -> Any:
    return ft.grad(program, argnums=(0, 1))


def test_the_grammar_has_many_operations() -> None:
    assert len(OPERATIONS) >= 30
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)


def test_programs_print() -> None:
    program = Program(((3,), ()), ((0, 0, 0), (14, 0, 2)))
    assert repr(program) == "f(v0: (3,), v1: ())\n  v2 = sin(v1)\n  v3 = add(v2, v0)"


@settings(max_examples=500)
@given(PROGRAMS, SEEDS)
def test_gradient_is_the_difference_quotient(program: Program, seed: int) -> None:
    point, direction = _points(program, seed), _points(program, seed + 1)
    value, tangent = ft.jvp(program, point, direction)
    assert_close(value, np.asarray(program(*point)))
    gradient = _gradient(program)(*point)
    assert [g.shape for g in gradient] == list(program.shapes)
    pulled = sum(np.sum(g * v) for g, v in zip(gradient, direction, strict=True))
    assert_close(np.asarray(pulled), tangent, "reverse against forward", 1e-10)
    if program.is_smooth:
        (expected,) = _difference(lambda *xs: [program(*xs)], point, direction)
        assert_close(tangent, expected, "forward against differences", 1e-6)


@settings(max_examples=100)
@given(PROGRAMS, SEEDS)
def test_second_derivatives_agree(program: Program, seed: int) -> None:
    point, direction = _points(program, seed), _points(program, seed + 1)
    gradient = _gradient(program)
    _, found = ft.jvp(gradient, point, direction)
    reverse = ft.vjp(gradient, *point)[1](direction)
    assert_close(reverse, found, "reverse over reverse", 1e-9)
    over_forward = ft.grad(lambda *xs: ft.jvp(program, xs, direction)[1], argnums=(0, 1))(*point)
    assert_close(over_forward, found, "reverse over forward", 1e-9)
    if program.is_smooth:
        expected = _difference(gradient, point, direction)
        assert_close(found, tuple(expected), "differences", 1e-5)


@settings(max_examples=120)
@given(PROGRAMS, SEEDS, st.sampled_from([(0, 0), (0, None), (None, 0)]))
def test_vmap_is_the_loop(program: Program, seed: int, axes: Any) -> None:
    stacked, shared = _points(program, seed, size=3), _points(program, seed)
    args = [s if axis == 0 else x for s, x, axis in zip(stacked, shared, axes, strict=True)]

    def row(i: int) -> list[Any]:
        return [x if axis is None else x[i] for x, axis in zip(args, axes, strict=True)]

    values = np.stack([program(*row(i)) for i in range(3)])
    assert_close(ft.vmap(program, in_axes=axes)(*args), values, "vmap")
    gradient = _gradient(program)
    rows = [gradient(*row(i)) for i in range(3)]
    expected = tuple(np.stack(column) for column in zip(*rows, strict=True))
    assert_close(ft.vmap(gradient, in_axes=axes)(*args), expected, "vmap of grad", 1e-10)
    total = ft.grad(lambda *xs: np.sum(ft.vmap(program, in_axes=axes)(*xs)), argnums=(0, 1))
    summed = tuple(
        column if axis == 0 else column.sum(0) for column, axis in zip(expected, axes, strict=True)
    )
    assert_close(total(*args), summed, "grad of vmap", 1e-10)


@settings(max_examples=100)
@given(PROGRAMS, SEEDS)
def test_jit_computes_the_same(program: Program, seed: int) -> None:
    point, direction = _points(program, seed), _points(program, seed + 1)
    gradient = _gradient(program)
    expected = gradient(*point)
    assert_close(ft.jit(program)(*point), np.asarray(program(*point)), "jit")
    assert_close(ft.jit(gradient)(*point), expected, "jit of grad", 1e-10)
    assert_close(_gradient(ft.jit(program))(*point), expected, "grad of jit", 1e-10)
    _, pushed = ft.jvp(gradient, point, direction)
    _, jitted = ft.jvp(ft.jit(gradient), point, direction)
    assert_close(jitted, pushed, "jvp of jit of grad", 1e-9)
    stacked = _points(program, seed, size=2)
    rows = [gradient(*(x[i] for x in stacked)) for i in range(2)]
    loop = tuple(np.stack(column) for column in zip(*rows, strict=True))
    assert_close(ft.jit(ft.vmap(gradient))(*stacked), loop, "jit of vmap of grad", 1e-10)


@settings(max_examples=50)
@given(PROGRAMS, SEEDS)
def test_checkpoint_computes_the_same(program: Program, seed: int) -> None:
    point = _points(program, seed)
    expected = _gradient(program)(*point)
    assert_close(_gradient(ft.checkpoint(program))(*point), expected, "checkpoint", 1e-12)
