"""Compiled samples of all primitives give the bits of the interpreter in compiler-math mode.

Also their derivatives, all layouts of operands, and extents around every size at which the
compiler changes its mind. Whole programs: ``test_bitwise_programs``.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from compiler.bitwise import assert_compiled_is_reference, assert_same_bits
from samples import Row, each_sample


def _name(row: Row, label: str) -> str:
    return f"{row.name} {label}"


@each(("row", "label"), each_sample(), by="row", one_of=2)
def test_sample(row: Row, label: str) -> None:
    sample = row.sample(label)
    assert_compiled_is_reference(row.bound(sample), *sample.operands, what=_name(row, label))


@each(
    ("row", "label"),
    each_sample(
        lambda row, sample: bool(
            row.is_differentiable and sample.has_derivative and row.moving(sample)
        )
    ),
    by="row",
    one_of=4,
    full=2,
)
def test_derivatives_of_sample(row: Row, label: str) -> None:
    sample = row.sample(label)
    fun = row.function(sample)
    points = [sample.operands[i] for i in row.moving(sample)]
    directions = row.direction(sample, np.random.default_rng(0))

    def derivatives(points: Any, directions: Any) -> Any:
        _, tangents = ft.jvp(fun, tuple(points), tuple(directions))
        outs, pullback = ft.vjp(fun, *points)
        return tangents, pullback(outs)

    assert_compiled_is_reference(derivatives, points, directions, what=_name(row, label))


# layouts ----------------------------------------------------------------------------------------


def _misaligned(x: np.ndarray) -> np.ndarray:
    memory = np.empty(x.nbytes + 1, np.uint8)
    view = memory[1:].view(x.dtype) if x.size else np.empty(0, x.dtype)
    result: np.ndarray = view.reshape(x.shape)
    result[...] = x
    return result


def _gaps(x: np.ndarray, step: int) -> np.ndarray:
    wide = np.empty(tuple(2 * n for n in x.shape), x.dtype)
    view: np.ndarray = wide[tuple(slice(None, None, step) for _ in x.shape)]
    view[...] = x
    return view


def _read_only(x: np.ndarray) -> np.ndarray:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "strided": lambda x: _gaps(x, 2),
    "negative": lambda x: _gaps(x, -2),
    "fortran": lambda x: np.asarray(x, order="F").copy(order="F"),
    "misaligned": _misaligned,
    "read-only": _read_only,
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
}
LAYOUT_SHAPES = ((5,), (70,), (3, 4), (40, 3), (9, 40), (4, 5, 33), (0,), (3, 0))


def _mixed(x: Any, y: Any) -> Any:
    """Elementwise, reductions along both ends, movement."""
    total = x * y + x
    return total, np.sum(total, axis=0), np.sum(x, axis=-1), np.flip(y, -1), np.moveaxis(x, 0, -1)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i4", "f2"])
def test_layout_of_operands_does_not_matter(layout: str, dtype: str) -> None:
    rng = np.random.default_rng(5)
    jitted = ft.jit(_mixed)
    for shape in LAYOUT_SHAPES:
        x, y = _values(rng, shape, dtype), _values(rng, shape, dtype)
        arranged = [LAYOUTS[layout](a) for a in (x, y)]
        if layout == "broadcast":
            x, y = (np.ascontiguousarray(a) for a in arranged)
        expected = jitted(x, y)
        found = jitted(*arranged)
        with ft.config(compiler_math=True):
            reference = jitted(*arranged)
        for one, other, third in zip(found, expected, reference, strict=True):
            assert_same_bits(one, other, f"{layout} {shape}")
            assert_same_bits(one, third, f"{layout} {shape}")


# extents ----------------------------------------------------------------------------------------

LENGTHS = (
    *(0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100),
    *(255, 256, 257, 511, 512, 513, 1000, 1025, 8193, 131073),
)
MATRICES = (
    *((3, 5), (9, 9), (7, 33), (33, 7), (64, 64), (1, 65), (65, 1), (17, 100), (100, 17)),
    *((2, 1000), (1000, 2), (1000, 3), (3, 513), (513, 3), (16, 40), (40, 16), (31, 33)),
    *((20, 20), (31, 31), (10, 31), (31, 10), (0, 5), (5, 0), (0, 40), (40, 0), (600, 70)),
)
CUBES = (
    *((2, 3, 4), (5, 10, 4), (100, 10, 4), (40, 5, 40), (40, 40, 3), (3, 40, 40), (600, 3, 3)),
    *((5, 17, 20), (1, 100, 1), (17, 17, 17), (32, 1, 32), (2, 33, 9), (9, 33, 2), (520, 2, 33)),
    *((0, 3, 4), (3, 0, 40)),
)
SHAPES = (*((n,) for n in LENGTHS), *MATRICES, *CUBES)
FEWER = (
    *((0,), (1,), (8,), (17,), (33,), (65,), (257,), (1025,), (3, 5), (7, 33), (33, 7), (64, 64)),
    *((1000, 3), (3, 513), (31, 33), (0, 5), (5, 0), (2, 3, 4), (100, 10, 4), (40, 5, 40)),
    *((2, 33, 9), (32, 1, 32)),
)
"""Extents for all dtypes but double precision."""
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
}


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Numbers whose products neither grow nor vanish."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.asarray(rng.integers(0, 2, shape), dtype)
    if kind in "iu":
        return np.asarray(rng.integers(1 if kind == "u" else -50, 50, shape), dtype)
    size = rng.uniform(0.9, 1.1, shape)
    if kind == "c":
        return np.asarray(size * np.exp(1j * rng.uniform(-3, 3, shape)), dtype)
    return np.asarray(size * rng.choice([-1.0, 1.0], shape), dtype)


def _axes(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for count in range(1, len(shape) + 1):
        yield from itertools.combinations(range(len(shape)), count)


def _each(dtypes: str) -> list[Any]:
    """Pairs of shape and dtype."""
    return [
        pytest.param(shape, dtype, id=f"{dtype}-{'x'.join(map(str, shape))}")
        for dtype in dtypes.split()
        for shape in (SHAPES if dtype == "f8" else FEWER)
    ]


@each(("shape", "dtype"), _each("f8 f4 c16 i8 b1 f2"), by="dtype", one_of=4, full=4)
def test_reductions_of_extents(shape: tuple[int, ...], dtype: str) -> None:
    """All reductions over all sets of axes, alone in a program and of a computed operand."""
    x = _values(np.random.default_rng(len(shape)), shape, dtype)
    kinds = [kind for kind in REDUCTIONS if x.size or kind not in ("max", "min")]

    def together(x: Any) -> Any:
        y = -x if dtype not in ("b1",) else ~x
        return [REDUCTIONS[kind](y, axis=axes) for kind in kinds for axes in _axes(shape)]

    assert_compiled_is_reference(together, x, what="together")
    ordered = [kind for kind in ("sum", "prod") if dtype != "b1"]
    if dtype != "f8":
        return
    for kind, axes in itertools.product(ordered, _axes(shape)):

        def alone(x: Any, kind: str = kind, axes: tuple[int, ...] = axes) -> Any:
            return REDUCTIONS[kind](x, axis=axes)

        assert_compiled_is_reference(alone, x, what=f"{kind} over {axes}")


def _elementwise(x: Any) -> Any:
    y = x * x + x
    return np.tanh(y) * np.exp(-y) + np.sin(x), np.sqrt(y * y + 1), y > x, y.astype(np.float32)


@each(("shape", "dtype"), _each("f8 f4"), by="dtype")
def test_elementwise_of_extents(shape: tuple[int, ...], dtype: str) -> None:
    x = _values(np.random.default_rng(1), shape, dtype)
    assert_compiled_is_reference(_elementwise, 3 * x)


@each(("shape", "dtype"), _each("i8 i2 u1 b1 c16 f2"), by="dtype", one_of=4, full=2)
def test_arithmetic_of_extents(shape: tuple[int, ...], dtype: str) -> None:
    x = _values(np.random.default_rng(2), shape, dtype)
    assert_compiled_is_reference(
        lambda x: (x + x, x * (x + x), x == x * x, x.astype(np.float64)), x
    )


def _movement(x: Any) -> list[Any]:
    outs = [x.reshape(-1), np.transpose(x), np.expand_dims(x, 0) * x]
    for axis in range(len(x.shape)):
        first = (slice(None),) * axis
        outs += [
            np.flip(x, axis) + x,
            np.roll(x, 1, axis) * x,
            np.concatenate([x, x[(*first, slice(None, None, -1))]], axis),
            np.pad(x, [(1, 2) if a == axis else (0, 0) for a in range(len(x.shape))]),
            x[(*first, slice(1, None))] - x[(*first, slice(None, -1))],
            x[(*first, slice(None, None, 2))] * 3,
            np.stack([x, x + x], axis),
            np.cumsum(x, axis),
        ]
    return outs


@each(("shape", "dtype"), _each("f8 i4 c16 f2"), by="dtype", one_of=3, full=2)
def test_movement_of_extents(shape: tuple[int, ...], dtype: str) -> None:
    x = _values(np.random.default_rng(3), shape, dtype)
    assert_compiled_is_reference(_movement, x)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_derivatives_of_extents(shape: tuple[int, ...]) -> None:
    """Backward passes: broadcasts, transposes of slices, several reductions in one program."""
    x = _values(np.random.default_rng(4), shape, "f8")

    def loss(x: Any) -> Any:
        centred = x - np.mean(x, axis=0, keepdims=True) if x.size else x
        total = np.sum(np.tanh(centred) * np.sum(x, axis=-1, keepdims=True))
        return total + np.sum((x[1:] - x[:-1]) ** 2) + np.sum(np.pad(x, 1) ** 3)

    assert_compiled_is_reference(ft.value_and_grad(loss), x)


def test_a_difference_is_noticed() -> None:
    one = np.array([0.0, 1.0, np.nan])
    assert_same_bits(one, np.array([0.0, 1.0, -np.nan]))
    for other in ([-0.0, 1.0, np.nan], [0.0, 1 + 2**-52, np.nan], [0.0, 1.0, 1.0]):
        with pytest.raises(AssertionError, match="differ"):
            assert_same_bits(one, np.array(other))
    with pytest.raises(AssertionError, match="float32"):
        assert_same_bits(one.astype(np.float32), one)
