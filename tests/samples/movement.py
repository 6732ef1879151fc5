"""Rows of the primitives that change shapes, places and dtypes: structural, slicing, movement."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from functrans.errors import ShapeError
from functrans.primitives import movement as mv
from functrans.primitives import slicing as sl
from functrans.primitives import structural as st
from functrans.primitives.slicing import BasicIndex
from samples.row import Refused, Rng, Row, Sample, annulus, booleans, integers, uniform

FULL = slice(None)


def over_shapes(*cases: tuple[str, tuple[int, ...], dict[str, Any]]) -> Callable[[Rng], Any]:
    """Samples of one operand: label, shape, parameters; the first also in other dtypes."""

    def make(rng: Rng) -> Iterator[Sample]:
        for label, shape, params in cases:
            yield Sample(label, (uniform(rng, shape),), params)
        _, shape, params = cases[0]
        yield Sample("f32", (uniform(rng, shape).astype(np.float32),), params)
        yield Sample("complex", (annulus(rng, shape),), params)
        yield Sample("int", (integers(rng, shape),), params)
        yield Sample("bool", (booleans(rng, shape),), params)

    return make


# structural -------------------------------------------------------------------------------------


def _cast_samples(rng: Rng) -> Iterator[Sample]:
    x = uniform(rng, (2, 3))
    z = annulus(rng, (3,))
    cases = (
        ("f64_f32", x, "f4"),
        ("f32_f64", x.astype(np.float32), "f8"),
        ("f64_c128", x, "c16"),
        ("c128_f64", z, "f8"),
        ("c128_c64", z, "c8"),
        ("f64_i64", x * 3, "i8"),
        ("i64_f64", integers(rng, (3,)), "f8"),
        ("bool_f64", booleans(rng, (3,)), "f8"),
        ("f64_bool", uniform(rng, (3,)).round(), "?"),
        ("c128_bool", z, "?"),
        ("empty", np.ones((2, 0)), "f4"),
    )
    for label, value, dtype in cases:
        yield Sample(label, (value,), {"dtype": np.dtype(dtype)})
    yield Sample("float", (1.5,), {"dtype": np.dtype("f4")})


def _cast(x: Any, *, dtype: np.dtype) -> np.ndarray:
    items = np.asarray(x).ravel().tolist()
    if dtype.kind in "fi":
        items = [item.real if isinstance(item, complex) else item for item in items]
    convert = {"f": float, "c": complex, "i": int, "b": bool}[dtype.kind]
    return np.array([convert(item) for item in items], dtype).reshape(np.shape(x))


def _broadcast(x: Any, *, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape, x.dtype) + x if x.dtype != bool else np.zeros(shape, bool) | x


def _reduce_sum(x: Any, *, axes: tuple[int, ...]) -> Any:
    order = [a for a in range(x.ndim) if a not in axes] + list(axes)
    kept = [x.shape[a] for a in order[: x.ndim - len(axes)]]
    lanes = x.transpose(order).reshape(*kept, -1) if x.size else np.zeros((*kept, 1), x.dtype)
    total = np.zeros(kept, x.dtype)
    for i in range(lanes.shape[-1]):
        total = total + lanes[..., i] if x.dtype != bool else total | lanes[..., i]
    return total


STRUCTURAL = (
    Row(st.cast_p, _cast_samples, _cast, rtol=0, linear_in=((0,),), is_flat=True),
    Row(
        st.reshape_p,
        over_shapes(
            ("2,3->3,2", (2, 3), {"shape": (3, 2)}),
            ("2,3->6", (2, 3), {"shape": (6,)}),
            ("0d->1,1", (), {"shape": (1, 1)}),
            ("1->0d", (1,), {"shape": ()}),
            ("empty", (2, 0), {"shape": (0, 5)}),
        ),
        lambda x, shape: np.array(x.ravel().tolist(), x.dtype).reshape(shape),
        rtol=0,
        is_flat=True,
        refused=(Refused("size", (np.ones(6),), ShapeError, "cannot reshape", {"shape": (4,)}),),
    ),
    Row(
        st.view_p,
        over_shapes(
            ("2,3->3,2", (2, 3), {"shape": (3, 2)}),
            ("2,3->6", (2, 3), {"shape": (6,)}),
            ("0d->1,1", (), {"shape": (1, 1)}),
            ("1->0d", (1,), {"shape": ()}),
            ("empty", (2, 0), {"shape": (0, 5)}),
        ),
        lambda x, shape: np.array(x.ravel().tolist(), x.dtype).reshape(shape),
        rtol=0,
        is_flat=True,
        refused=(Refused("size", (np.ones(6),), ShapeError, "cannot reshape", {"shape": (4,)}),),
    ),
    Row(
        st.transpose_p,
        over_shapes(
            ("2,3,4", (2, 3, 4), {"axes": (2, 0, 1)}),
            ("2,3", (2, 3), {"axes": (1, 0)}),
            ("identity", (2, 3), {"axes": (0, 1)}),
            ("0d", (), {"axes": ()}),
            ("empty", (0, 3), {"axes": (1, 0)}),
        ),
        lambda x, axes: np.einsum(x, list(range(x.ndim)), list(axes)),
        rtol=0,
        is_flat=True,
        refused=(
            Refused("axes", (np.ones((2, 3)),), ShapeError, "no permutation", {"axes": (0, 0)}),
        ),
    ),
    Row(
        st.broadcast_to_p,
        over_shapes(
            ("3->2,3", (3,), {"shape": (2, 3)}),
            ("2,1->4,2,3", (2, 1), {"shape": (4, 2, 3)}),
            ("0d", (), {"shape": (2,)}),
            ("0d->0d", (), {"shape": ()}),
            ("1->0", (1,), {"shape": (2, 0)}),
            ("large", (50, 1), {"shape": (50, 60)}),
        ),
        _broadcast,
        rtol=0,
        is_flat=True,
        refused=(
            Refused("shape", (np.ones(2),), ShapeError, "does not broadcast", {"shape": (3,)}),
            Refused("rank", (np.ones((1, 1)),), ShapeError, "does not broadcast", {"shape": (1,)}),
        ),
    ),
    Row(
        st.reduce_sum_p,
        over_shapes(
            ("2,3,4", (2, 3, 4), {"axes": (0, 2)}),
            ("all", (2, 3), {"axes": (0, 1)}),
            ("one", (3,), {"axes": (0,)}),
            ("none", (2,), {"axes": ()}),
            ("empty_axis", (2, 0), {"axes": (1,)}),
            ("empty_kept", (2, 0), {"axes": (0,)}),
        ),
        _reduce_sum,
        is_flat=True,
    ),
)


# slicing ----------------------------------------------------------------------------------------

INDICES = (
    ("row", (3, 4), (1,)),
    ("negative", (3, 4), (-1, -2)),
    ("step", (5, 4), (slice(None, None, 2), slice(1, 3))),
    ("backwards", (5,), (slice(None, None, -2),)),
    ("newaxis", (3, 4), (None, slice(1, None), None, 2)),
    ("ellipsis", (2, 3, 4), (Ellipsis, slice(None, -1))),
    ("whole", (3,), ()),
    ("0d", (), (None,)),
    ("empty_result", (3, 4), (slice(2, 2),)),
    ("empty_operand", (0, 4), (FULL, 1)),
)


def _slot(shape: tuple[int, ...], entries: tuple[Any, ...]) -> tuple[int, ...]:
    return np.empty(shape)[entries].shape


def _embed_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, entries in INDICES:
        params = {"index": BasicIndex(entries), "shape": shape}
        yield Sample(label, (uniform(rng, _slot(shape, entries)),), params)
    yield Sample("f32", (uniform(rng, (3,)).astype(np.float32),), {
        "index": BasicIndex((0,)), "shape": (2, 3)})  # fmt: skip
    yield Sample("complex", (annulus(rng, (3,)),), {"index": BasicIndex((0,)), "shape": (2, 3)})


def _embed(v: Any, *, index: BasicIndex, shape: tuple[int, ...]) -> np.ndarray:
    positions = np.arange(int(np.prod(shape))).reshape(shape)[index.entries].ravel()
    flat = [0] * int(np.prod(shape))
    for position, value in zip(positions.tolist(), v.ravel().tolist(), strict=True):
        flat[position] = value
    return np.array(flat, v.dtype).reshape(shape)


def _update_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, entries in INDICES:
        value = uniform(rng, _slot(shape, entries))
        yield Sample(label, (uniform(rng, shape), value), {"index": BasicIndex(entries)})
    middle = {"index": BasicIndex((slice(1, 3),))}
    yield Sample("broadcast_row", (uniform(rng, (4, 3)), uniform(rng, (3,))), middle)
    yield Sample("broadcast_0d", (uniform(rng, (4, 3)), uniform(rng, ())), middle)
    yield Sample("float", (uniform(rng, (4, 3)), 2.5), middle)
    f32 = uniform(rng, (4, 3)).astype(np.float32), uniform(rng, (2, 3)).astype(np.float32)
    yield Sample("f32", f32, middle)
    yield Sample("complex", (annulus(rng, (4,)), annulus(rng, (2,))), middle)
    yield Sample("int", (integers(rng, (4,)), integers(rng, (2,))), middle)


def _update(x: Any, v: Any, *, index: BasicIndex) -> np.ndarray:
    out = x.copy()
    positions = np.arange(x.size).reshape(x.shape)[index.entries]
    values = np.broadcast_to(v, positions.shape).ravel().tolist()
    for position, value in zip(positions.ravel().tolist(), values, strict=True):
        out.flat[position] = value
    return out


SLICING = (
    Row(
        sl.slice_p,
        over_shapes(
            *((label, shape, {"index": BasicIndex(entries)}) for label, shape, entries in INDICES)
        ),
        lambda x, index: x[index.entries],
        rtol=0,
        is_flat=True,
        refused=(
            Refused("bounds", (np.ones(3),), IndexError, "3", {"index": BasicIndex((3,))}),
            Refused(
                "rank", (np.ones(3),), IndexError, "too many indices", {"index": BasicIndex((0, 0))}
            ),
        ),
    ),
    Row(sl.embed_p, _embed_samples, _embed, rtol=0, is_flat=True),
    Row(sl.slice_update_p, _update_samples, _update, rtol=0, is_flat=True),
)


# joining and splitting --------------------------------------------------------------------------


def _join_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("two", (uniform(rng, (2, 3)), uniform(rng, (1, 3))), {"axis": 0})
    yield Sample("last_axis", (uniform(rng, (2, 1)), uniform(rng, (2, 3))), {"axis": 1})
    yield Sample("three", tuple(uniform(rng, (n,)) for n in (2, 0, 3)), {"axis": 0})
    yield Sample("one", (uniform(rng, (2,)),), {"axis": 0})
    yield Sample("empty", (uniform(rng, (0, 2)), uniform(rng, (0, 2))), {"axis": 0})
    f32 = tuple(uniform(rng, (2,)).astype(np.float32) for _ in range(2))
    yield Sample("f32", f32, {"axis": 0})
    yield Sample("complex", (annulus(rng, (2,)), annulus(rng, (1,))), {"axis": 0})
    yield Sample("int", (integers(rng, (2,)), integers(rng, (1,))), {"axis": 0})


def _concatenate(*arrays: Any, axis: int) -> np.ndarray:
    rows = [row for array in arrays for row in np.moveaxis(array, axis, 0)]
    if not rows:
        return arrays[0]
    return np.moveaxis(np.array(rows), 0, axis)


def _stack_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("front", (uniform(rng, (2, 3)), uniform(rng, (2, 3))), {"axis": 0})
    yield Sample("middle", tuple(uniform(rng, (2, 3)) for _ in range(3)), {"axis": 1})
    yield Sample("last", (uniform(rng, (2,)), uniform(rng, (2,))), {"axis": 1})
    yield Sample("0d", (uniform(rng, ()), uniform(rng, ())), {"axis": 0})
    yield Sample("one", (uniform(rng, (2,)),), {"axis": 0})
    yield Sample("empty", (uniform(rng, (0,)), uniform(rng, (0,))), {"axis": 1})
    f32 = tuple(uniform(rng, (2,)).astype(np.float32) for _ in range(2))
    yield Sample("f32", f32, {"axis": 0})
    yield Sample("complex", (annulus(rng, (2,)), annulus(rng, (2,))), {"axis": 0})
    yield Sample("int", (integers(rng, (2,)), integers(rng, (2,))), {"axis": 0})


def _split(x: Any, *, sizes: tuple[int, ...], axis: int) -> tuple[np.ndarray, ...]:
    ends = np.cumsum(sizes)
    return tuple(
        np.take(x, range(end - size, end), axis) for end, size in zip(ends, sizes, strict=True)
    )


def _padded(x: Any, value: Any, *, config: tuple[tuple[int, int, int], ...]) -> np.ndarray:
    """Element by element from the definition: element ``k`` goes to ``low + k * (gap + 1)``."""
    shape = [
        low + high + n + max(n - 1, 0) * gap
        for n, (low, high, gap) in zip(x.shape, config)  # noqa: B905  # same rank
    ]
    out = np.full(shape, value, x.dtype)
    for place in np.ndindex(x.shape):
        target = tuple(low + k * (gap + 1) for k, (low, _, gap) in zip(place, config))  # noqa: B905  # same rank
        if all(0 <= t < n for t, n in zip(target, shape, strict=True)):
            out[target] = x[place]
    return out


def _pad_samples(rng: Rng) -> Iterator[Sample]:
    cases: tuple[tuple[str, tuple[int, ...], Any], ...] = (
        ("edges", (3,), ((1, 2, 0),)),
        ("interior", (3, 2), ((0, 1, 2), (1, 0, 1))),
        ("crop", (5,), ((-1, -2, 0),)),
        ("crop_and_interior", (4,), ((-1, 2, 1),)),
        ("crop_all", (3,), ((2, -4, 0),)),
        ("nothing", (2, 2), ((0, 0, 0), (0, 0, 0))),
        ("0d", (), ()),
        ("empty", (0,), ((1, 1, 3),)),
    )
    for label, shape, config in cases:
        yield Sample(label, (uniform(rng, shape), uniform(rng, ())), {"config": config})
    config = {"config": ((1, 1, 1),)}
    f32 = uniform(rng, (3,)).astype(np.float32), uniform(rng, ()).astype(np.float32)
    yield Sample("f32", f32, config)
    yield Sample("constant_value", (uniform(rng, (3,)), np.float64(0.5)), config)
    yield Sample("complex", (annulus(rng, (2,)), annulus(rng, ())), config)
    yield Sample("int", (integers(rng, (2,)), np.array(7)), config)


MOVEMENT = (
    Row(
        mv.concatenate_p,
        _join_samples,
        _concatenate,
        rtol=0,
        is_flat=True,
        refused=(
            Refused("shapes", (np.ones((2, 3)), np.ones((2, 4))), ShapeError, "operand 1", {
                "axis": 0}),
            Refused("dtypes", (np.ones(2), np.ones(2, "f4")), TypeError, "dtypes", {"axis": 0}),
            Refused("nothing", (), ShapeError, "no arrays", call=lambda: mv.concatenate(())),
        ),
    ),
    Row(
        mv.split_p,
        over_shapes(
            ("two", (5, 2), {"sizes": (2, 3), "axis": 0}),
            ("last", (2, 4), {"sizes": (1, 0, 3), "axis": 1}),
            ("one", (2,), {"sizes": (2,), "axis": 0}),
            ("empty", (0,), {"sizes": (0, 0), "axis": 0}),
        ),
        _split,
        rtol=0,
        is_flat=True,
        refused=(
            Refused("sizes", (np.ones(3),), ShapeError, "do not add up", {
                "sizes": (1, 1), "axis": 0}),
        ),
    ),
    Row(
        mv.stack_p,
        _stack_samples,
        lambda *arrays, axis: np.moveaxis(np.array(arrays), 0, axis),
        rtol=0,
        is_flat=True,
        refused=(
            Refused("shapes", (np.ones(2), np.ones(3)), ShapeError, "operand 1", {"axis": 0}),
        ),
    ),
    Row(
        mv.unstack_p,
        over_shapes(
            ("front", (3, 2), {"axis": 0}),
            ("last", (2, 3), {"axis": 1}),
            ("to_0d", (2,), {"axis": 0}),
            ("middle", (2, 2, 2), {"axis": 1}),
            ("empty", (2, 0), {"axis": 0}),
        ),
        lambda x, axis: tuple(np.take(x, i, axis) for i in range(x.shape[axis])),
        rtol=0,
        is_flat=True,
    ),
    Row(
        mv.pad_p,
        _pad_samples,
        _padded,
        rtol=0,
        is_flat=True,
        refused=(
            Refused("rank", (np.ones(2), np.float64(0)), ShapeError, "one per axis", {
                "config": ()}),
            Refused("negative", (np.ones(2), np.float64(0)), ShapeError, "does not fit", {
                "config": ((-3, 0, 0),)}),
            Refused("value", (np.ones(2), np.zeros(2)), ShapeError, "scalar", {
                "config": ((1, 1, 0),)}),
        ),
    ),
    Row(
        mv.reverse_p,
        over_shapes(
            ("both", (2, 3), {"axes": (0, 1)}),
            ("last", (2, 3), {"axes": (1,)}),
            ("none", (2,), {"axes": ()}),
            ("empty", (0, 2), {"axes": (0,)}),
        ),
        lambda x, axes: np.flip(x, axes) if axes else x,
        rtol=0,
        is_flat=True,
    ),
)  # fmt: skip

ROWS = (*STRUCTURAL, *SLICING, *MOVEMENT)
