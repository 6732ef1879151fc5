"""The native code of irregular operations gives the results of ``impl``, bit by bit."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each, share
from compiler.routine_harness import program, run, same_bits, serves
from functrans.extend import IndexMap, Primitive, Read, Routine, bind, nondifferentiable
from functrans.primitives import convolution as cv
from functrans.primitives import cumulative as cu
from functrans.primitives import dynamic_slicing as ds
from functrans.primitives import gather_scatter as gs
from functrans.primitives import reduction as rd
from functrans.primitives import scatter_reduce as sr
from functrans.primitives import sorting as so
from helpers import evaluated, rounding_of
from samples import ROWS, Row

Rng = np.random.Generator

EXACT = (
    "gather",
    "accumulate",
    "scatter_add",
    "scatter_set",
    "is_last_write",
    "places",
    "scatter_reduce",
    "neighbour_writes",
    "select_along",
    "place_along",
    "dynamic_slice",
    "dynamic_embed",
    "dynamic_update_slice",
    "cumsum",
    "cumprod",
    "cummax",
    "cummin",
    "linear_recurrence",
    "sort",
    "argsort",
    "top_k",
    "lexsort",
    "searchsorted",
    "argmax",
    "argmin",
)
ROUNDED = ("conv_general", "cumlogsumexp")
FUSED = ("multiply", "cumprod", "linear_recurrence")
"""NumPy may fuse the products and sums of complex numbers, by the processor."""

DTYPES = tuple(map(np.dtype, ("f8", "f4", "f2", "c16", "c8", "i8", "i4", "i2", "u8", "u1", "?")))


def _samples(names: tuple[str, ...]) -> list[Any]:
    return [
        pytest.param(row, sample.label, id=f"{row.name}-{sample.label}")
        for row in ROWS
        if row.name in names
        for sample in row.samples()
    ]


def values(rng: Rng, shape: tuple[int, ...], dtype: np.dtype, special: bool = True) -> Any:
    """Numbers of a dtype with ties; floats with NaN of both signs, infinities and zeros."""
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if rng.random() < 0.5 else (0, 5)
        return np.asarray(rng.integers(low, high, shape, dtype=dtype, endpoint=True))
    x = np.asarray(rng.integers(-3, 4, shape) if rng.random() < 0.5 else rng.normal(size=shape))
    x = x.astype(dtype)
    if dtype.kind == "c":
        x += (1j * rng.integers(-2, 3, shape)).astype(dtype)
    if special and x.ndim and x.size:
        odd = [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0]
        if dtype.kind == "c":
            odd += [complex(1, np.nan), complex(np.nan, 1), complex(0, np.nan)]
        for number in odd:
            places = rng.integers(0, x.size, rng.integers(0, 3))
            x.flat[places] = number
    return x


def check(primitive: Any, *operands: Any, **params: Any) -> None:
    """Native code and ``impl`` agree, in results or in refusing an index."""
    with np.errstate(all="ignore"):
        try:
            expected = primitive.impl(*operands, **params)
        except IndexError:
            with pytest.raises(IndexError, match=r"out of bounds|is empty"):
                run(primitive, *operands, in_place=True, **params)
            return
    name = params.get("op", primitive.name)
    found = [run(primitive, *operands, in_place=flag, **params) for flag in (False, True)]
    for one, other in zip((*found[0], *found[1]), (*expected, *expected), strict=True):
        if one.dtype.kind == "c" and name in FUSED:
            finite = np.isfinite(other) & np.isfinite(one)
            rtol = rounding_of(other)
            np.testing.assert_allclose(one[finite], other[finite], rtol=rtol * 100)
        else:
            same_bits(one, other)


# samples ----------------------------------------------------------------------------------------


@each(("row", "label"), _samples(EXACT), by="row")
def test_samples(row: Row, label: str) -> None:
    sample = row.sample(label)
    assert serves(row.primitive, *sample.operands, **sample.params)
    expected = evaluated(row, sample)
    for in_place in (True, False):
        found = run(row.primitive, *sample.operands, in_place=in_place, **sample.params)
        for one, other in zip(found, expected, strict=True):
            same_bits(one, other)


@each(("row", "label"), _samples(ROUNDED), by="row")
def test_samples_with_rounding(row: Row, label: str) -> None:
    sample = row.sample(label)
    expected = evaluated(row, sample)
    found = run(row.primitive, *sample.operands, **sample.params)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        rtol = rounding_of(other)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def test_the_text_has_no_floating_point_flags() -> None:
    for row in ROWS:
        if row.name in EXACT + ROUNDED:
            sample = row.samples()[0]
            text = program(row.primitive, *sample.operands, **sample.params).text
            assert not re.search(r"\b(fast|nnan|ninf|nsz|arcp|contract|afn|reassoc)\b", text)


# index arrays -----------------------------------------------------------------------------------

MODES = ("raise", "clip", "wrap", "drop")


def _shape(rng: Rng, rank: int, high: int) -> tuple[int, ...]:
    low = 0 if rng.random() < 0.1 else 1
    return tuple(int(n) for n in rng.integers(low, high, rank))


def _random_indices(
    rng: Rng, shape: tuple[int, ...], axes: tuple[int, ...], mode: str
) -> list[np.ndarray]:
    full = _shape(rng, int(rng.integers(0, 3)), 8)
    indices = []
    for number, axis in enumerate(axes):
        drop = int(rng.integers(0, len(full) + 1)) if number and rng.random() < 0.3 else 0
        own = tuple(1 if number and rng.random() < 0.2 else n for n in full[drop:])
        dtype = np.dtype(str(rng.choice(["i8", "i4", "i1", "u1", "u8"])))
        reach = 3 if mode != "raise" or rng.random() < 0.1 else 0
        low = -shape[axis] - reach if dtype.kind == "i" else 0
        high = max(shape[axis] + reach, low + 1)
        indices.append(np.asarray(rng.integers(low, high, own)).astype(dtype))
    return indices


@pytest.mark.parametrize("mode", [*MODES, "inside"])
@pytest.mark.parametrize("columns", [1, 7, 9, 41])
def test_rows_of_elements_at_the_same_indices(columns: int, mode: str) -> None:
    """One of the index arrays has one index for each row of what is read."""
    rng = np.random.default_rng(columns)
    for dtype, axes in ((np.dtype("f8"), (0, 1)), (np.dtype("c16"), (1, 0))):
        x = values(rng, (30, 20), dtype)
        low, reach = (0, 0) if mode == "inside" else (-20, 3 if mode != "raise" else 0)
        rows = rng.integers(low, 20 + reach, (3, 1)).astype(np.int32)
        places = rng.integers(low, 20 + reach, (1, columns))
        more = rng.integers(low, 20, (2, 3, 1))
        check(gs.gather_p, x, rows, places, axes=axes, mode=mode)
        check(gs.gather_p, x, places, more, axes=axes, mode=mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(12))
def test_index_arrays(seed: int, mode: str) -> None:
    rng = np.random.default_rng([seed, MODES.index(mode)])
    dtype = DTYPES[seed % len(DTYPES)]
    shape = _shape(rng, int(rng.integers(1, 4)), 20 if seed % 3 == 0 else 6)
    count = int(rng.integers(1, len(shape) + 1))
    axes = tuple(int(axis) for axis in rng.permutation(len(shape))[:count])
    indices = _random_indices(rng, shape, axes, mode)
    s = np.broadcast_shapes(*(index.shape for index in indices))
    rest = tuple(n for axis, n in enumerate(shape) if axis not in axes)
    x = values(rng, shape, dtype)
    v = values(rng, s + rest if rng.random() < 0.7 else (), dtype)
    at: dict[str, Any] = {"axes": axes, "mode": mode}
    check(gs.gather_p, x, *indices, **at)
    if len(axes) == 1:
        check(gs.places_p, *indices, shape=shape, **at)
    check(gs.accumulate_p, v, *indices, shape=shape, **at)
    check(gs.scatter_add_p, x, v, *indices, unique_indices=False, **at)
    check(gs.scatter_set_p, x, v, *indices, unique_indices=False, **at)
    for op in ("multiply", "minimum", "maximum"):
        check(sr.scatter_reduce_p, x, v, *indices, unique_indices=False, op=op, **at)
    extents = tuple(shape[axis] for axis in axes)
    check(gs.is_last_write_p, *indices, extents=extents, mode=mode)
    inside = all(np.all((i >= -n) & (i < n)) for i, n in zip(indices, extents, strict=True))
    if inside or mode == "drop" or (mode != "raise" and 0 not in extents):
        check(sr.neighbour_writes_p, *indices, extents=extents, mode=mode)


def test_many_writes_happen_in_order(rng: Rng) -> None:
    x, v = rng.normal(size=(50, 70)), rng.normal(size=(3000, 70))
    index = rng.integers(-50, 50, 3000)
    at: dict[str, Any] = {"axes": (0,), "mode": "raise", "unique_indices": False}
    check(gs.scatter_add_p, x, v, index, **at)
    check(gs.scatter_set_p, x, v, index, **at)
    check(sr.scatter_reduce_p, x, v, index, op="multiply", **at)


@pytest.mark.parametrize(
    ("primitive", "operands", "params"),
    [
        (gs.gather_p, (np.ones((3, 2)), np.array([0, 3])), {}),
        (gs.gather_p, (np.ones((3, 0)), np.array([-4])), {}),
        (gs.gather_p, (np.ones((0, 2)), np.array([0])), {"mode": "clip"}),
        (gs.scatter_set_p, (np.ones(3), np.ones(1), np.array([7])), {"unique_indices": True}),
        (gs.accumulate_p, (np.ones(1), np.array([2**62])), {"shape": (3,)}),
        (gs.accumulate_p, (np.ones(1), np.array([-(2**63)])), {"shape": (3,)}),
    ],
)
def test_indices_out_of_bounds_fail(primitive: Any, operands: Any, params: Any) -> None:
    params = {"axes": (0,), "mode": "raise", **params}
    with pytest.raises(IndexError):
        primitive.impl(*operands, **params)
    with pytest.raises(IndexError, match=r"axis 0"):
        run(primitive, *operands, **params)


# windows ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_windows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dtype = DTYPES[seed % len(DTYPES)]
    shape = _shape(rng, seed % 4, 9)
    sizes = tuple(int(rng.integers(0, n + 1)) for n in shape)
    starts = []
    for name in rng.choice(["i8", "i4", "u1", "u8"], len(shape)):
        kind = np.dtype(str(name))
        starts.append(np.asarray(rng.integers(-12 if kind.kind == "i" else 0, 12)).astype(kind))
    x, v = values(rng, shape, dtype), values(rng, sizes, dtype)
    check(ds.dynamic_slice_p, x, *starts, sizes=sizes)
    check(ds.dynamic_embed_p, v, *starts, shape=shape)
    check(ds.dynamic_update_slice_p, x, v, *starts, sizes=sizes)
    check(ds.dynamic_update_slice_p, x, values(rng, (), dtype), *starts, sizes=sizes)


def test_a_large_unsigned_start_is_not_negative() -> None:
    check(ds.dynamic_slice_p, np.arange(9.0), np.uint64(2**64 - 1), sizes=(4,))


# along an axis ----------------------------------------------------------------------------------

LANES = (
    ((7,), 0),
    ((0, 3), 1),
    ((3, 0), 1),
    ((6, 5), 1),
    ((5, 7), 0),
    ((3, 4, 5), 1),
    ((4, 300), 0),
    ((2, 3, 260), 1),
)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative(dtype: np.dtype, reverse: bool) -> None:
    number = DTYPES.index(dtype)
    for seed, (shape, axis) in share(list(enumerate(LANES)), 3, number + reverse):
        rng = np.random.default_rng([seed, number])
        x, a = values(rng, shape, dtype), values(rng, shape, dtype)
        params = {"axis": axis, "reverse": reverse}
        check(cu.cumsum_p, x, **params)
        check(cu.cumprod_p, x, **params)
        check(cu.linear_recurrence_p, a, x, **params)
        if dtype.kind != "c":
            check(cu.cummax_p, x, **params)
            check(cu.cummin_p, x, **params)


SIZES = (1, 2, 3, 4, 5, 16, 17, 20, 33, 64, 65, 257, 1000)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_argmax_argmin(dtype: np.dtype) -> None:
    number = DTYPES.index(dtype)
    for seed, size in share(list(enumerate((*SIZES, 5000))), 3, number):
        rng = np.random.default_rng([seed, number])
        for shape, axis in (((2, size), 1), ((size, 3), 0)):
            x = values(rng, shape, dtype, special=seed % 2 == 0)
            check(rd.argmax_p, x, axis=axis)
            check(rd.argmin_p, x, axis=axis)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_sorts(dtype: np.dtype) -> None:
    number = DTYPES.index(dtype)
    for seed, size in share(list(enumerate(SIZES)), 3, number):
        rng = np.random.default_rng([seed, number])
        shape, axis = ((2, size), 1) if seed % 2 else ((size, 3), 0)
        x = values(rng, shape, dtype)
        check(so.sort_p, x, axis=axis, stable=True)
        check(so.argsort_p, x, axis=axis, stable=True)


@pytest.mark.parametrize("size", [4096, 4097, 9000, 20000])
def test_long_sorts(size: int) -> None:
    """More than one block: the number of rounds over all blocks is even or odd."""
    rng = np.random.default_rng(size)
    for dtype in (np.dtype("f8"), np.dtype("i4")):
        x = values(rng, (size,), dtype)
        cases = [x, np.sort(x), np.sort(x)[::-1].copy(), np.zeros_like(x)]
        if dtype.kind == "f":
            cases.append(np.where(rng.random(size) < 0.7, np.nan, x))
        for case in cases:
            check(so.sort_p, case, axis=0, stable=True)
            check(so.argsort_p, case, axis=0, stable=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_top_k(dtype: np.dtype) -> None:
    for seed, (size, k) in enumerate(((5, 0), (5, 5), (40, 3), (100, 32), (100, 33), (500, 60))):
        rng = np.random.default_rng([seed, DTYPES.index(dtype)])
        x = values(rng, (2, size), dtype)
        check(so.top_k_p, x, k=k)
        check(so.top_k_p, np.sort(x, axis=-1), k=k)


@pytest.mark.parametrize("seed", range(8))
def test_lexsort(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, axis = ((3, 40), 1) if seed % 2 else ((25, 2), 0)
    keys = [values(rng, shape, DTYPES[k]) for k in rng.integers(0, len(DTYPES), 1 + seed % 3)]
    check(so.lexsort_p, *keys, axis=axis)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_searchsorted(dtype: np.dtype, side: str) -> None:
    rng = np.random.default_rng(DTYPES.index(dtype))
    for size in (0, 1, 2, 7, 8, 100):
        a = np.sort(values(rng, (size,), dtype))
        check(so.searchsorted_p, a, values(rng, (3, 20), dtype), side=side)
    lanes = np.sort(values(rng, (2, 3, 9), dtype), axis=-1)
    check(so.searchsorted_p, lanes, values(rng, (2, 3, 4), dtype), side=side)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_along_axis(dtype: np.dtype) -> None:
    rng = np.random.default_rng(DTYPES.index(dtype))
    for shape, axis in LANES:
        if not shape[axis]:
            continue
        picked = (*shape[:axis], 4, *shape[axis + 1 :])
        indices = rng.integers(-shape[axis], shape[axis], picked)
        check(so.select_along_p, values(rng, shape, dtype), indices, axis=axis)
        v = values(rng, picked, dtype)
        check(so.place_along_p, v, indices, axis=axis, size=shape[axis])


# convolution ------------------------------------------------------------------------------------


def _random_convolution(rng: Rng, dtypes: tuple[str, str]) -> tuple[Any, Any, dict[str, Any]]:
    rank = int(rng.integers(0, 4))
    feature, batch = [(1, 1), (2, 1), (3, 1), (1, 2)][int(rng.integers(0, 4))]
    ins, outs = int(rng.integers(1, 4)), int(rng.integers(1, 7))
    space, window = rng.integers(1, 12, rank), rng.integers(1, 6, rank)
    if rank and rng.random() < 0.3:
        window[-1], space[-1] = 20, 23
    pads = rng.integers(-1, 4, (rank, 2))
    params = {
        "strides": tuple(map(int, rng.integers(1, 4, rank))),
        "padding": tuple((int(low), int(high)) for low, high in pads),
        "lhs_dilation": tuple(map(int, rng.integers(1, 3, rank))),
        "rhs_dilation": tuple(map(int, rng.integers(1, 4, rank))),
        "feature_group_count": feature,
        "batch_group_count": batch,
    }
    lhs = values(rng, (2 * batch, ins * feature, *space), np.dtype(dtypes[0]), special=False)
    rhs = values(rng, (outs * feature * batch, ins, *window), np.dtype(dtypes[1]), special=False)
    return lhs, rhs, params


@pytest.mark.parametrize(
    "dtypes",
    ["f8 f8", "f4 f4", "f4 f8", "c16 c16", "c8 f4", "i8 i8", "i4 u1", "? ?", "i4 f4", "f2 f2"],
)
def test_convolutions(dtypes: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        lhs, rhs, params = _random_convolution(rng, tuple(dtypes.split()))  # type: ignore[arg-type]  # two words
        with np.errstate(all="ignore"):
            (expected,) = cv.conv_general_p.impl(lhs, rhs, **params)
        (found,) = run(cv.conv_general_p, lhs, rhs, **params)
        assert found.dtype == expected.dtype
        rtol = 3e-2 if expected.dtype == np.float16 else rounding_of(expected)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * 10)


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "c8"])
@pytest.mark.parametrize(("groups", "pad"), [(1, 0), (2, 0), (1, 1)])
def test_convolutions_that_are_products(rng: Rng, dtype: str, groups: int, pad: int) -> None:
    lhs = values(rng, (2, 32 * groups, 20, 20), np.dtype(dtype), special=False)
    rhs = values(rng, (32 * groups, 32, 1, 1), np.dtype(dtype), special=False)
    params = {
        "strides": (1, 1),
        "padding": ((pad, pad), (pad, pad)),
        "lhs_dilation": (1, 1),
        "rhs_dilation": (1, 1),
        "feature_group_count": groups,
        "batch_group_count": 1,
    }
    assert "gemm" in program(cv.conv_general_p, lhs, rhs, **params).text
    (found,) = run(cv.conv_general_p, lhs, rhs, **params)
    (expected,) = cv.conv_general_p.impl(lhs, rhs, **params)
    rtol = rounding_of(expected) * 10
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


# writing in place -------------------------------------------------------------------------------


def _no_copy(primitive: Any) -> bool:
    rule = primitive.lower
    assert isinstance(rule, Routine)
    return rule.in_place == 0


@pytest.mark.parametrize(
    ("primitive", "write"),
    [
        (gs.scatter_add_p, {"axes": (0,), "mode": "raise", "unique_indices": False}),
        (gs.scatter_set_p, {"axes": (0,), "mode": "raise", "unique_indices": False}),
        (
            sr.scatter_reduce_p,
            {"axes": (0,), "mode": "raise", "unique_indices": False, "op": "maximum"},
        ),
        (ds.dynamic_update_slice_p, {"sizes": (2,)}),
    ],
)
def test_one_element_is_written_without_a_copy(primitive: Any, write: dict[str, Any]) -> None:
    assert _no_copy(primitive)
    index: Callable[[int], Any] = (
        (lambda k: k) if "sizes" in write else (lambda k: np.array([k, k + 1]))
    )
    operands = np.arange(1000.0), np.array([5.0, -5.0]), index(3)
    code = program(primitive, *operands, in_place=True, **write)
    assert "memmove" not in code.text
    check(primitive, *operands, **write)


# maps that loops cannot follow ------------------------------------------------------------------


def shifted(x):
    """Row ``i`` moved to the right by ``i``."""
    out = np.zeros_like(x)
    for i, row in enumerate(x):
        out[i, i:] = row[: len(row) - i]
    return (out,)


def shifted_map(index, avals, output):
    source = index[1] - index[0]
    return (Read(0, (index[0], source), ((source, avals[0].shape[1]),)),)


def shifted_routine(e, operands, results):
    """The same with a 7 where nothing is moved to, by which one sees that it ran."""
    (x,), (out,) = operands, results
    rows, columns = x.shape
    e.fill(out, e.constant(x.dtype, 7))
    with e.count(rows) as i:
        shift = e.b.intrinsic("smin", i, e.b.index(columns))
        with e.count(e.b.sub(e.b.index(columns), shift)) as j:
            start = e.b.mul(i, e.b.index(columns))
            e.write(out, e.b.add(e.b.add(start, j), shift), e.read(x, e.b.add(start, j)))


def scattered_map(index, avals, output):
    """Each element from another place, said one by one."""
    (n,) = avals[0].shape
    return tuple(Read(0, ((7 * k) % n,), ((index[0] - k, 1),)) for k in range(n))


MAPS = {
    "backwards": (lambda x: (x[::-1].copy(),), lambda index, avals, output: (
        Read(0, (avals[0].shape[0] - 1 - index[0],)),
    )),
    "negative": (lambda x: (x[::-1].copy(),), lambda index, avals, output: (
        Read(0, (-index[0] + (avals[0].shape[0] - 1),)),
    )),
    "not_affine": (lambda x: (x.copy(),), lambda index, avals, output: None),
    "in_many_parts": (lambda x: (x[7 * np.arange(len(x)) % len(x)],), scattered_map),
    "in_two_entries": (shifted, shifted_map),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
def test_maps_without_a_routine_go_to_numpy_where_loops_cannot_follow(name):
    impl, trace = MAPS[name]
    p = Primitive(name, impl, lambda x: (x.strong(),), nondifferentiable, lower=IndexMap(trace))
    x = np.arange(100.0) if name != "in_two_entries" else np.arange(1.0, 101.0).reshape(10, 10)
    f = ft.jit(lambda x: np.exp(bind(p, 2 * x)[0] / 100))
    np.testing.assert_allclose(f(x), np.exp(impl(2 * x)[0] / 100))
    plan = str(f.plan(x))
    assert ("NumPy" in plan) == (name not in ("backwards", "negative")), plan


def test_a_condition_in_two_entries_is_a_case_for_the_routine():
    lower = IndexMap(shifted_map, routine=Routine(shifted_routine))
    p = Primitive("shifted", shifted, lambda x: (x.strong(),), nondifferentiable, lower=lower)
    x = np.arange(1.0, 65.0).reshape(8, 8)
    f = ft.jit(lambda x: bind(p, x)[0])
    np.testing.assert_array_equal(f(x), np.where(np.tri(8, k=-1), 7, shifted(x)[0]))
    assert "NumPy" not in str(f.plan(x))


def copied_routine(e, operands, results):
    for result in results:
        e.copy(operands[0], result)


NO_MAP = {
    "preferred": lambda k: {"prefers_routine": lambda avals: True},
    "not_preferred": lambda k: {"prefers_routine": lambda avals: False},
    "plain": lambda k: {},
}


@pytest.mark.parametrize("name", NO_MAP)
@pytest.mark.parametrize("size", [100, 5000])
@pytest.mark.parametrize("without", [(0,), (1,), (0, 1)])
def test_a_result_without_a_map_comes_from_the_routine(name, size, without):
    def trace(index, avals, output):
        return None if output in without else (Read(0, tuple(index)),)

    p = Primitive(
        "twice", lambda x: (x.copy(), x.copy()), lambda x: (x.strong(), x.strong()),
        nondifferentiable,
        lower=IndexMap(trace, routine=Routine(copied_routine), **NO_MAP[name](size)),
    )  # fmt: skip
    f = ft.jit(lambda x: bind(p, 2 * x))
    for result in f(np.arange(float(size))):
        np.testing.assert_array_equal(result, 2 * np.arange(float(size)))
    assert "NumPy" not in str(f.plan(np.arange(float(size))))


def test_maps_of_many_parts_that_meet_are_numpys():
    def placed(shift):
        def trace(index, avals, output):
            return tuple(
                Read(0, ((7 * j) % 100,), ((index[0] - 3 * j - shift, 3),)) for j in range(20)
            )

        def impl(x):
            at = (np.arange(100) - shift) // 3
            return (np.where((at >= 0) & (at < 20), x[7 * at % 100], 0),)

        return Primitive(
            f"placed{shift}",
            impl,
            lambda x: (x.strong(),),
            nondifferentiable,
            lower=IndexMap(trace),
        )

    first, second = placed(0), placed(1)
    x = np.arange(100.0) + 1
    f = ft.jit(lambda x: (bind(first, x)[0], bind(second, x)[0].sum()))
    found = f(x)
    np.testing.assert_array_equal(found[0], first.impl(x)[0])
    assert found[1] == second.impl(x)[0].sum()
    assert "NumPy" in str(f.plan(x))
