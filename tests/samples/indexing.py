"""Rows of the primitives that read and write at index arrays and in windows."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from functrans.errors import ShapeError
from functrans.primitives import block_gather as bg
from functrans.primitives import dynamic_slicing as ds
from functrans.primitives import gather_scatter as gs
from functrans.primitives import scatter_reduce as sr
from samples.reductions import distinct_positions
from samples.row import Refused, Rng, Row, Sample, annulus, integers, spaced, uniform

Shape = tuple[int, ...]


# index arrays -----------------------------------------------------------------------------------


def _rest(shape: Shape, axes: Shape) -> Shape:
    return tuple(n for axis, n in enumerate(shape) if axis not in axes)


def _resolved(index: int, extent: int, mode: str) -> int | None:
    """Where an index points; ``None`` where it is dropped."""
    if mode == "clip":
        return min(max(index, 0), extent - 1)
    if mode == "wrap":
        return index % extent
    if not -extent <= index < extent:
        return None
    return index % extent


def places(
    indices: tuple[Any, ...], shape: Shape, axes: Shape, mode: str
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """Position in ``S + rest``, and the element of the array it stands for, or ``None``."""
    arrays = np.broadcast_arrays(*indices)
    rest_axes = [axis for axis in range(len(shape)) if axis not in axes]
    for position in np.ndindex(arrays[0].shape):
        found = [
            _resolved(int(array[position]), shape[axis], mode)
            for array, axis in zip(arrays, axes, strict=True)
        ]
        for rest in np.ndindex(_rest(shape, axes)):
            if any(index is None for index in found):
                yield (*position, *rest), None
                continue
            target = [0] * len(shape)
            for axis, index in zip((*axes, *rest_axes), (*found, *rest), strict=True):
                target[axis] = index  # type: ignore[assignment]  # None was handled
            yield (*position, *rest), tuple(target)


def _gather(x: Any, *indices: Any, axes: Shape, mode: str) -> np.ndarray:
    out = np.zeros(np.broadcast_shapes(*map(np.shape, indices)) + _rest(x.shape, axes), x.dtype)
    for position, target in places(indices, x.shape, axes, mode):
        if target is not None:
            out[position] = x[target]
    return out


def _writes(x: Any, v: Any, indices: Any, axes: Shape, mode: str) -> Iterator[tuple[Any, Any]]:
    for position, target in places(indices, x.shape, axes, mode):
        if target is not None:
            yield target, v[position] if np.ndim(v) else v


def _accumulate(v: Any, *indices: Any, shape: Shape, axes: Shape, mode: str) -> np.ndarray:
    return _scatter_add(np.zeros(shape, v.dtype), v, *indices, axes=axes, mode=mode)


def _scatter_add(x: Any, v: Any, *indices: Any, axes: Shape, mode: str, **_: Any) -> np.ndarray:
    out = x.copy()
    for target, value in _writes(x, v, indices, axes, mode):
        out[target] += value
    return out


def _scatter_set(x: Any, v: Any, *indices: Any, axes: Shape, mode: str, **_: Any) -> np.ndarray:
    out = x.copy()
    for target, value in _writes(x, v, indices, axes, mode):
        out[target] = value
    return out


def _scatter_reduce(
    x: Any, v: Any, *indices: Any, op: str, axes: Shape, mode: str, **_: Any
) -> Any:
    combine = {"multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}[op]
    out = x.copy()
    for target, value in _writes(x, v, indices, axes, mode):
        out[target] = combine(out[target], value)
    return out


def _meetings(indices: Any, extents: Shape, mode: str) -> tuple[Shape, dict[Any, list[Shape]]]:
    """Shape of the writes, and the writes to each place in order."""
    writes: dict[Any, list[Shape]] = {}
    for position, target in places(indices, extents, tuple(range(len(extents))), mode):
        if target is not None:
            writes.setdefault(target, []).append(position)
    return np.broadcast_shapes(*map(np.shape, indices)), writes


def _is_last_write(*indices: Any, extents: Shape, mode: str) -> np.ndarray:
    shape, writes = _meetings(indices, extents, mode)
    out = np.zeros(shape, bool)
    for positions in writes.values():
        out[positions[-1]] = True
    return out


def _neighbour_writes(*indices: Any, extents: Shape, mode: str) -> tuple[np.ndarray, np.ndarray]:
    shape, writes = _meetings(indices, extents, mode)
    numbers = np.arange(int(np.prod(shape))).reshape(shape)
    before, after = np.full(shape, -1), np.full(shape, -1)
    for positions in writes.values():
        for first, second in pairwise(positions):
            before[second] = numbers[first]
            after[first] = numbers[second]
    return before, after


def _places(index: Any, *, shape: Shape, axes: Shape, mode: str) -> np.ndarray:
    n = shape[axes[0]]
    out = np.zeros(np.shape(index), np.int64)
    for position, k in np.ndenumerate(index):
        if mode == "drop" and not -n <= k < n:
            out[position] = -1
        else:
            out[position] = min(max(k, 0), n - 1) if mode == "clip" else k % n
    return out


# label, shape of the array, shapes of the index arrays, axes, mode, whether indices may repeat
CASES: tuple[tuple[str, Shape, tuple[Shape, ...], Shape, str, bool], ...] = (
    ("vector", (5,), ((3,),), (0,), "raise", True),
    ("rows", (4, 2), ((3,),), (0,), "raise", True),
    ("columns", (2, 4), ((2, 2),), (1,), "raise", True),
    ("two_axes", (3, 2, 4), ((2, 1), (3,)), (0, 2), "raise", True),
    ("axes_swapped", (3, 4), ((2,), (2,)), (1, 0), "raise", True),
    ("0d_index", (4, 2), ((),), (0,), "raise", True),
    ("all_axes_0d", (3, 2), ((), ()), (0, 1), "raise", True),
    ("distinct", (6,), ((4,),), (0,), "raise", False),
    ("distinct_rows", (5, 3), ((3,),), (0,), "raise", False),
    ("clip", (3, 2), ((4,),), (0,), "clip", True),
    ("wrap", (3, 2), ((4,),), (0,), "wrap", True),
    ("drop", (3, 2), ((4,),), (0,), "drop", True),
    ("no_indices", (3, 2), ((0,),), (0,), "raise", True),
    ("empty_rest", (3, 0), ((2,),), (0,), "raise", True),
)


def _indices(rng: Rng, case: tuple[Any, ...]) -> tuple[Any, ...]:
    _, shape, index_shapes, axes, mode, may_repeat = case
    if not may_repeat:
        return (distinct_positions(rng, index_shapes[0], 0, shape[axes[0]]),)
    reach = 2 if mode != "raise" else 0
    return tuple(
        integers(rng, s, -shape[axis] - reach, shape[axis] + reach)
        for s, axis in zip(index_shapes, axes, strict=True)
    )


def _slot(case: tuple[Any, ...]) -> Shape:
    _, shape, index_shapes, axes, _, _ = case
    return np.broadcast_shapes(*index_shapes) + _rest(shape, axes)


VECTOR = CASES[0]


def _gather_samples(rng: Rng) -> Iterator[Sample]:
    for case in CASES:
        params = {"axes": case[3], "mode": case[4]}
        yield Sample(case[0], (uniform(rng, case[1]), *_indices(rng, case)), params)
    params = {"axes": (0,), "mode": "raise"}
    f32 = uniform(rng, (5,)).astype(np.float32)
    yield Sample("f32", (f32, *_indices(rng, VECTOR)), params)
    yield Sample("complex", (annulus(rng, (5,)), *_indices(rng, VECTOR)), params)
    small = integers(rng, (3,), 0, 5, np.uint8)
    yield Sample("int_by_uint8", (integers(rng, (5,)), small), params)


def _block_samples(rng: Rng) -> Iterator[Sample]:
    """Three columns by rows, between reads out of order; then neighbours, and one place."""
    columns = (np.arange(4)[:, None] + 4 * np.arange(3)).ravel()
    index = np.concatenate([[5, 1], columns, [7], np.arange(2, 10), [3, 3, 3, 3]])
    params = {
        "patterns": ((0, 4, 8, 1, 5, 9), (0, 1, 2, 3), (0, 0, 0, 0)),
        "ranges": ((2, 2, 0), (15, 2, 1), (23, 1, 2)),
    }
    x = uniform(rng, (12,))
    yield Sample("blocks", (x, index), params)
    yield Sample("f32", (x.astype(np.float32), index), params)
    yield Sample("complex", (annulus(rng, (12,)), index), params)
    yield Sample("int_by_int32", (integers(rng, (12,)), index.astype(np.int32)), params)
    yield Sample("no_blocks", (x, index), {"patterns": (), "ranges": ()})
    yield Sample("empty", (x, index[:0]), {"patterns": (), "ranges": ()})


def _accumulate_samples(rng: Rng) -> Iterator[Sample]:
    for case in CASES:
        params = {"axes": case[3], "mode": case[4], "shape": case[1]}
        yield Sample(case[0], (uniform(rng, _slot(case)), *_indices(rng, case)), params)
    params = {"axes": (0,), "mode": "raise", "shape": (5,)}
    yield Sample("scalar_value", (uniform(rng, ()), *_indices(rng, VECTOR)), params)
    f32 = uniform(rng, (3,)).astype(np.float32)
    yield Sample("f32", (f32, *_indices(rng, VECTOR)), params)
    yield Sample("complex", (annulus(rng, (3,)), *_indices(rng, VECTOR)), params)


def _scatter_samples(rng: Rng, **extra: Any) -> Iterator[Sample]:
    for case in CASES:
        params = {"axes": case[3], "mode": case[4], "unique_indices": not case[5], **extra}
        operands = spaced(rng, case[1]), uniform(rng, _slot(case)), *_indices(rng, case)
        yield Sample(case[0], operands, params)
    params = {"axes": (0,), "mode": "raise", "unique_indices": False, **extra}
    x, v = uniform(rng, (5,)), uniform(rng, ())
    yield Sample("scalar_value", (x, v, *_indices(rng, VECTOR)), params)
    yield Sample("constant_value", (x, np.float64(0.5), *_indices(rng, VECTOR)), params)
    f32 = uniform(rng, (5,)).astype(np.float32), uniform(rng, (3,)).astype(np.float32)
    yield Sample("f32", (*f32, *_indices(rng, VECTOR)), params)
    ints = integers(rng, (5,)), integers(rng, (3,))
    yield Sample("int", (*ints, *_indices(rng, VECTOR)), params)


def _linear_scatter_samples(rng: Rng) -> Iterator[Sample]:
    yield from _scatter_samples(rng)
    params = {"axes": (0,), "mode": "raise", "unique_indices": False}
    complex_pair = annulus(rng, (5,)), annulus(rng, (3,))
    yield Sample("complex", (*complex_pair, *_indices(rng, VECTOR)), params)


def _scatter_reduce_samples(rng: Rng) -> Iterator[Sample]:
    for op in ("multiply", "minimum", "maximum"):
        for sample in _scatter_samples(rng, op=op):
            label = f"{op}_{sample.label}"
            # One value for several places makes ties.
            is_smooth = op == "multiply" or "value" not in sample.label
            yield Sample(label, sample.operands, sample.params, is_smooth)
    params = {"axes": (0,), "mode": "raise", "unique_indices": False}
    operands = np.array([1.0, 0.0, 2.0]), np.array([1.0, 0.0, 1.0, 1.0]), np.array([0, 1, 0, 1])
    for op in ("multiply", "minimum", "maximum"):
        yield Sample(f"{op}_kinks", operands, {**params, "op": op}, is_smooth=False)


def _meeting_samples(rng: Rng) -> Iterator[Sample]:
    for label, shapes, extents, mode in (
        ("vector", ((6,),), (3,), "raise"),
        ("two", ((2, 3), (3,)), (2, 2), "raise"),
        ("drop", ((6,),), (3,), "drop"),
        ("clip", ((6,),), (3,), "clip"),
        ("wrap", ((6,),), (3,), "wrap"),
        ("0d", ((),), (3,), "raise"),
        ("empty", ((0,),), (3,), "raise"),
    ):
        reach = 2 if mode != "raise" else 0
        arrays = tuple(
            integers(rng, shape, -extent - reach, extent + reach)
            for shape, extent in zip(shapes, extents, strict=True)
        )
        yield Sample(label, arrays, {"extents": extents, "mode": mode})


def _places_samples(rng: Rng) -> Iterator[Sample]:
    for mode in ("raise", "clip", "wrap", "drop"):
        reach = 3 if mode != "raise" else 0
        for shape in ((6,), (2, 3), (), (0,)):
            index = integers(rng, shape, -4 - reach, 4 + reach)
            yield Sample(f"{mode}_{shape}", (index,), {"shape": (2, 4), "axes": (1,), "mode": mode})
    small = integers(rng, (3,), 0, 5, np.uint8)
    yield Sample("uint8", (small,), {"shape": (5,), "axes": (0,), "mode": "raise"})


AT = {"axes": (0,), "mode": "raise"}
WRONG_VALUE = Refused(
    "value", (np.ones(3), np.ones(4), np.zeros(2, int)), ShapeError, "value has shape",
    {**AT, "unique_indices": False},
)  # fmt: skip
WRONG_DTYPE = Refused(
    "dtype", (np.ones(3, "f4"), np.ones(2), np.zeros(2, int)), TypeError, "one dtype",
    {**AT, "unique_indices": False},
)  # fmt: skip

INDEX_ARRAYS = (
    Row(
        gs.gather_p,
        _gather_samples,
        _gather,
        rtol=0,
        is_flat=True,
        refused=(
            Refused("axes", (np.ones(3), np.zeros(2, int)), ShapeError, "one per axis", {
                "axes": (0, 1), "mode": "raise"}),
            Refused("axis", (np.ones(3), np.zeros(2, int)), ShapeError, "do not exist", {
                "axes": (1,), "mode": "raise"}),
            Refused("index_shapes", (np.ones((3, 3)), np.zeros(2, int), np.zeros(3, int)),
                ShapeError, "broadcast", {"axes": (0, 1), "mode": "raise"}),
        ),
    ),
    Row(
        bg.gather_blocks_p,
        _block_samples,
        lambda x, index, **_: np.array([x[i] for i in index], x.dtype),
        rtol=0,
        is_flat=True,
        is_planned=True,
        refused=(
            Refused("matrix", (np.ones((3, 3)), np.zeros(2, int)), ShapeError, "a vector", {
                "patterns": (), "ranges": ()}),
            Refused("too_long", (np.ones(3), np.zeros(2, int)), ShapeError, "end at 4", {
                "patterns": ((0, 1),), "ranges": ((0, 2, 0),)}),
            Refused("overlap", (np.ones(3), np.zeros(4, int)), ValueError, "does not fit", {
                "patterns": ((0, 1),), "ranges": ((0, 1, 0), (1, 1, 0))}),
        ),
    ),
    Row(
        gs.accumulate_p,
        _accumulate_samples,
        _accumulate,
        is_flat=True,
        refused=(
            Refused("value", (np.ones(4), np.zeros(2, int)), ShapeError, "value has shape", {
                **AT, "shape": (3,)}),
        ),
    ),
    Row(
        gs.scatter_add_p,
        _linear_scatter_samples,
        _scatter_add,
        is_flat=True,
        refused=(WRONG_VALUE, WRONG_DTYPE),
    ),
    Row(
        gs.scatter_set_p,
        _linear_scatter_samples,
        _scatter_set,
        rtol=0,
        is_flat=True,
        refused=(WRONG_VALUE, WRONG_DTYPE),
    ),
    Row(sr.scatter_reduce_p, _scatter_reduce_samples, _scatter_reduce, rtol=1e-14),
    Row(gs.is_last_write_p, _meeting_samples, _is_last_write, rtol=0),
    Row(
        gs.places_p,
        _places_samples,
        _places,
        rtol=0,
        refused=(
            Refused("axis", (np.zeros(2, int),), ShapeError, "do not exist", {
                "shape": (3,), "axes": (1,), "mode": "raise"}),
            Refused("two", (np.zeros(2, int),), ShapeError, "one per axis", {
                "shape": (3, 3), "axes": (0, 1), "mode": "raise"}),
        ),
    ),
    Row(sr.neighbour_writes_p, _meeting_samples, _neighbour_writes, rtol=0),
)  # fmt: skip


# windows ----------------------------------------------------------------------------------------

# label, shape of the array, sizes of the window, range of the starts
WINDOWS: tuple[tuple[str, Shape, Shape, int], ...] = (
    ("vector", (5,), (2,), 3),
    ("matrix", (4, 3), (2, 2), 2),
    ("out_of_bounds", (4, 3), (2, 3), 7),
    ("whole", (2, 3), (2, 3), 2),
    ("one_axis", (4, 3), (4, 1), 2),
    ("0d", (), (), 1),
    ("empty", (3, 2), (0, 2), 2),
)


def _starts(rng: Rng, shape: Shape, reach: int) -> tuple[Any, ...]:
    return tuple(integers(rng, (), -reach, reach + 1) for _ in shape)


def _window(starts: Any, shape: Shape, sizes: Shape) -> tuple[slice, ...]:
    entries = []
    for start, n, size in zip(starts, shape, sizes, strict=True):
        first = int(start) + (n if start < 0 else 0)
        first = min(max(first, 0), n - size)
        entries.append(slice(first, first + size))
    return tuple(entries)


def _dynamic_slice_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, sizes, reach in WINDOWS:
        yield Sample(label, (uniform(rng, shape), *_starts(rng, shape, reach)), {"sizes": sizes})
    f32 = uniform(rng, (5,)).astype(np.float32)
    yield Sample("f32", (f32, *_starts(rng, (5,), 3)), {"sizes": (2,)})
    yield Sample("complex", (annulus(rng, (5,)), np.int32(1)), {"sizes": (2,)})
    yield Sample("int", (integers(rng, (5,)), 2), {"sizes": (2,)})


def _dynamic_embed_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, sizes, reach in WINDOWS:
        yield Sample(label, (uniform(rng, sizes), *_starts(rng, shape, reach)), {"shape": shape})
    f32 = uniform(rng, (2,)).astype(np.float32)
    yield Sample("f32", (f32, *_starts(rng, (5,), 3)), {"shape": (5,)})
    yield Sample("complex", (annulus(rng, (2,)), 1), {"shape": (5,)})


def _dynamic_embed(v: Any, *starts: Any, shape: Shape) -> np.ndarray:
    out = np.zeros(shape, v.dtype)
    out[_window(starts, shape, v.shape)] = v
    return out


def _dynamic_update_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, sizes, reach in WINDOWS:
        operands = uniform(rng, shape), uniform(rng, sizes), *_starts(rng, shape, reach)
        yield Sample(label, operands, {"sizes": sizes})
    params = {"sizes": (2,)}
    x, starts = uniform(rng, (5,)), _starts(rng, (5,), 3)
    yield Sample("scalar_value", (x, uniform(rng, ()), *starts), params)
    yield Sample("constant_value", (x, np.float64(0.5), *starts), params)
    f32 = x.astype(np.float32), uniform(rng, (2,)).astype(np.float32)
    yield Sample("f32", (*f32, *starts), params)
    yield Sample("complex", (annulus(rng, (5,)), annulus(rng, (2,)), *starts), params)


def _dynamic_update(x: Any, v: Any, *starts: Any, sizes: Shape) -> np.ndarray:
    out = x.copy()
    out[_window(starts, x.shape, sizes)] = v
    return out


TOO_LARGE = (np.ones(3), 0)

WINDOW_ROWS = (
    Row(
        ds.dynamic_slice_p,
        _dynamic_slice_samples,
        lambda x, *starts, sizes: x[_window(starts, x.shape, sizes)],
        rtol=0,
        is_flat=True,
        refused=(
            Refused("size", TOO_LARGE, ShapeError, "does not fit", {"sizes": (4,)}),
            Refused("starts", (np.ones(3), 0, 0), ShapeError, "does not fit", {"sizes": (1,)}),
            Refused("float_start", (np.ones(3), 0.5), ShapeError, "integer", {"sizes": (1,)}),
        ),
    ),
    Row(
        ds.dynamic_embed_p,
        _dynamic_embed_samples,
        _dynamic_embed,
        rtol=0,
        is_flat=True,
        refused=(Refused("size", TOO_LARGE, ShapeError, "does not fit", {"shape": (2,)}),),
    ),
    Row(
        ds.dynamic_update_slice_p,
        _dynamic_update_samples,
        _dynamic_update,
        rtol=0,
        is_flat=True,
        refused=(
            Refused("value", (np.ones(3), np.ones(1), 0), ShapeError, "the value is", {
                "sizes": (2,)}),
        ),
    ),
)  # fmt: skip

ROWS = (*INDEX_ARRAYS, *WINDOW_ROWS)
