"""Rows of the reductions, the cumulative and the ordering primitives."""

import math
import operator
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np

from functrans.errors import ShapeError
from functrans.primitives import cumulative as cu
from functrans.primitives import reduction as rd
from functrans.primitives import sorting as so
from samples.row import (
    Refused,
    Rng,
    Row,
    Sample,
    annulus,
    booleans,
    integers,
    spaced,
    uniform,
)

NAN, INF = math.nan, math.inf


# reductions over axes ---------------------------------------------------------------------------


def reduction(
    primitive: Any,
    fold: Callable[[list[Any]], Any],
    kinds: str,
    *,
    draw: Callable[..., np.ndarray] = spaced,
    over_nothing: bool = True,
    kinks: tuple[tuple[float, ...], ...] = (),
    kinks_are_smooth: bool = False,
    **options: Any,
) -> Row:
    """A row of a reduction, defined by what it makes of the list of elements.

    Args:
      primitive: the record.
      fold: Python numbers to one number.
      kinds: of ``f``, ``c``, ``i``, ``b``: the kinds of operands.
      draw: gives float64 operands.
      over_nothing: whether no elements have a value.
      kinks: operands with ties, zeros, infinities, NaN; reduced over the last axis.
      kinks_are_smooth: whether the reduction has derivatives of all orders there nevertheless.
      **options: of the row.
    """

    def make(rng: Rng) -> Iterator[Sample]:
        first = draw if "f" in kinds else integers
        yield Sample("2,3,4", (first(rng, (2, 3, 4)),), {"axes": (0, 2)})
        yield Sample("all", (first(rng, (2, 3)),), {"axes": (0, 1)})
        yield Sample("last", (first(rng, (2, 4)),), {"axes": (1,)})
        yield Sample("one_element", (first(rng, (1,)),), {"axes": (0,)})
        yield Sample("empty_kept", (first(rng, (0, 2)),), {"axes": (1,)})
        if over_nothing:
            is_finite = math.isfinite(fold([]))
            yield Sample("empty", (first(rng, (2, 0)),), {"axes": (1,)}, is_smooth=is_finite)
        if "f" in kinds:
            yield Sample("f32", (first(rng, (2, 3)).astype(np.float32),), {"axes": (1,)})
        if "c" in kinds:
            yield Sample("complex", (annulus(rng, (2, 3)),), {"axes": (1,)})
        if "i" in kinds:
            yield Sample("int", (integers(rng, (2, 3)),), {"axes": (0,)})
        if "b" in kinds:
            yield Sample("bool", (booleans(rng, (2, 3)),), {"axes": (0,)})
        if kinks:
            yield Sample("kinks", (np.array(kinks),), {"axes": (1,)}, is_smooth=kinks_are_smooth)

    def reference(x: Any, *, axes: tuple[int, ...]) -> np.ndarray:
        kept = [a for a in range(x.ndim) if a not in axes]
        shape = [x.shape[a] for a in kept]
        lanes: Any = [()] * math.prod(shape)
        if x.size:
            lanes = x.transpose((*kept, *axes)).reshape(math.prod(shape), -1)
        return np.array([fold([v.item() for v in lane]) for lane in lanes]).reshape(shape)

    refused = options.pop("refused", ())
    if not over_nothing:
        params = {"axes": (1,)}
        refused = (Refused("empty", (np.ones((2, 0)),), ShapeError, "no element", params),)
    return Row(primitive, make, reference, refused=refused, **options)


def _maximum(values: list[Any]) -> Any:
    return NAN if any(v != v for v in values) else max(values)


def _minimum(values: list[Any]) -> Any:
    return NAN if any(v != v for v in values) else min(values)


def _product(values: list[Any]) -> Any:
    return reduce(operator.mul, values, 1)


def _logsumexp(values: list[Any]) -> Any:
    if any(isinstance(v, complex) for v in values):
        return np.log(sum(np.exp(v) for v in values))
    if any(v != v for v in values):
        return NAN
    top = max(values, default=-INF)
    if math.isinf(top):
        return top
    return top + math.log(math.fsum(math.exp(v - top) for v in values))


def _all_bits(values: list[Any]) -> Any:
    is_bool = bool(values) and isinstance(values[0], bool)
    return reduce(operator.and_, values, True if is_bool else -1)


TIES = (1.0, 3.0, 3.0), (2.0, 2.0, 2.0), (NAN, 1.0, NAN), (INF, 1.0, INF)
ZEROS = (2.0, 0.0, 3.0), (0.0, 0.0, 3.0), (0.0, 0.0, 0.0), (1.0, 2.0, 3.0)
INFINITE = (-INF, -INF, -INF), (-INF, 0.0, 1.0), (INF, 1.0, INF), (0.0, 0.0, 0.0)
NOT_INTEGER = Refused("float", (np.ones(2),), TypeError, "not defined", {"axes": (0,)})

EXTREMA = (
    reduction(
        rd.reduce_max_p, _maximum, "fib", over_nothing=False, kinks=TIES, rtol=0, is_flat=True
    ),
    reduction(
        rd.reduce_min_p, _minimum, "fib", over_nothing=False, kinks=TIES, rtol=0, is_flat=True
    ),
    *(
        reduction(p, f, "fib", over_nothing=False, kinks=TIES[:2], rtol=0, is_flat=True)
        for p, f in ((rd.torch_max_p, _maximum), (rd.torch_min_p, _minimum))
    ),
    reduction(rd.reduce_prod_p, _product, "fci", draw=uniform, kinks=ZEROS, kinks_are_smooth=True),
    reduction(
        rd.logsumexp_p,
        _logsumexp,
        "fc",
        draw=uniform,
        kinks=INFINITE,
        refused=(Refused("int", (np.ones(2, int),), TypeError, "not defined", {"axes": (0,)}),),
    ),
    reduction(rd.reduce_any_p, any, "fib", kinks=ZEROS, rtol=0),
    reduction(rd.reduce_all_p, all, "fib", kinks=ZEROS, rtol=0),
    reduction(rd.reduce_bitwise_and_p, _all_bits, "ib", rtol=0, refused=(NOT_INTEGER,)),
    reduction(
        rd.reduce_bitwise_or_p,
        lambda values: reduce(operator.or_, values, 0),
        "ib",
        rtol=0,
        refused=(NOT_INTEGER,),
    ),
    reduction(
        rd.reduce_bitwise_xor_p,
        lambda values: reduce(operator.xor, values, 0),
        "ib",
        rtol=0,
        refused=(NOT_INTEGER,),
    ),
)


# along one axis ---------------------------------------------------------------------------------


def along(
    function: Callable[[list[Any]], list[Any]],
) -> Callable[..., np.ndarray]:
    """A definition for the list of elements of one lane, applied along an axis."""

    def reference(x: Any, *, axis: int, **params: Any) -> np.ndarray:
        lanes = np.moveaxis(x, axis, -1)
        flat = lanes.reshape(-1, lanes.shape[-1]) if x.size else np.empty((0, lanes.shape[-1]))
        rows = [function([v.item() for v in lane], **params) for lane in flat]
        length = len(rows[0]) if rows else lanes.shape[-1]
        return np.moveaxis(np.array(rows).reshape(*lanes.shape[:-1], length), -1, axis)

    return reference


def axis_samples(
    kinds: str,
    draw: Callable[..., np.ndarray],
    kinks: tuple[tuple[float, ...], ...],
    kinks_are_smooth: bool = False,
    **extra: Any,
) -> Callable[[Rng], Iterator[Sample]]:
    """Samples of a primitive that acts along one axis and keeps the shape."""

    def make(rng: Rng) -> Iterator[Sample]:
        yield Sample("vector", (draw(rng, (5,)),), {"axis": 0, **extra})
        yield Sample("first", (draw(rng, (3, 2)),), {"axis": 0, **extra})
        yield Sample("middle", (draw(rng, (2, 3, 2)),), {"axis": 1, **extra})
        yield Sample("one_element", (draw(rng, (1,)),), {"axis": 0, **extra})
        yield Sample("empty", (draw(rng, (2, 0)),), {"axis": 1, **extra})
        yield Sample("empty_lanes", (draw(rng, (0, 2)),), {"axis": 1, **extra})
        yield Sample("f32", (draw(rng, (4,)).astype(np.float32),), {"axis": 0, **extra})
        if "c" in kinds:
            yield Sample("complex", (annulus(rng, (4,)),), {"axis": 0, **extra})
        if "i" in kinds:
            yield Sample("int", (integers(rng, (6,)),), {"axis": 0, **extra})
        yield Sample("kinks", (np.array(kinks),), {"axis": 1, **extra}, kinks_are_smooth)

    return make


def cumulative(
    primitive: Any,
    step: Callable[[Any, Any], Any],
    kinds: str,
    draw: Callable[..., np.ndarray] = uniform,
    kinks: tuple[tuple[float, ...], ...] = ZEROS,
    **options: Any,
) -> Row:
    """A row of a running reduction."""

    def make(rng: Rng) -> Iterator[Sample]:
        for is_reverse in (False, True):
            for sample in axis_samples(kinds, draw, kinks, kinks is ZEROS, reverse=is_reverse)(rng):
                label = f"{sample.label}_reverse" if is_reverse else sample.label
                yield Sample(label, sample.operands, sample.params, sample.is_smooth)

    def lane(values: list[Any], *, reverse: bool) -> list[Any]:
        ordered = values[::-1] if reverse else values
        results = ordered[:1]
        for value in ordered[1:]:
            results.append(step(results[-1], value))
        return results[::-1] if reverse else results

    return Row(primitive, make, along(lane), **options)


def _recurrence_samples(rng: Rng) -> Iterator[Sample]:
    for reverse in (False, True):
        suffix = "_reverse" if reverse else ""
        for label, shape, axis in (
            ("vector", (4,), 0),
            ("first", (3, 2), 0),
            ("many_lanes", (3, 20), 0),
            ("last", (2, 3), 1),
            ("one_element", (1,), 0),
            ("empty", (2, 0), 1),
        ):
            operands = uniform(rng, shape), uniform(rng, shape)
            yield Sample(label + suffix, operands, {"axis": axis, "reverse": reverse})
    params = {"axis": 0, "reverse": False}
    f32 = uniform(rng, (3,)).astype(np.float32), uniform(rng, (3,)).astype(np.float32)
    yield Sample("f32", f32, params)
    yield Sample("complex", (annulus(rng, (3,)), annulus(rng, (3,))), params)
    yield Sample("int", (integers(rng, (3,)), integers(rng, (3,))), params)


def _recurrence(a: Any, b: Any, *, axis: int, reverse: bool) -> np.ndarray:
    out = np.empty_like(b)
    rows_a, rows_b, rows = (np.moveaxis(v, axis, 0) for v in (a, b, out))
    order = range(len(rows))
    previous = np.zeros_like(rows_b[0]) if len(rows) else None
    for i in reversed(order) if reverse else order:
        is_first = i == (len(rows) - 1 if reverse else 0)
        rows[i] = rows_b[i] if is_first else rows_a[i] * previous + rows_b[i]
        previous = rows[i]
    return out


CUMULATIVE = (
    Row(
        cu.linear_recurrence_p,
        _recurrence_samples,
        _recurrence,
        linear_in=((1,),),
        refused=(
            Refused("shapes", (np.ones(2), np.ones(3)), ShapeError, "same shape", {
                "axis": 0, "reverse": False}),
        ),
    ),
    cumulative(cu.cumsum_p, operator.add, "fci", is_flat=True),
    cumulative(cu.cumprod_p, operator.mul, "fci"),
    cumulative(
        cu.cummax_p, lambda a, b: _maximum([a, b]), "fi", spaced, TIES, rtol=0, is_flat=True
    ),
    cumulative(
        cu.cummin_p, lambda a, b: _minimum([a, b]), "fi", spaced, TIES, rtol=0, is_flat=True
    ),
    cumulative(
        cu.cumlogsumexp_p,
        lambda a, b: _logsumexp([a, b]),
        "fc",
        uniform,
        INFINITE,
        refused=(
            Refused("int", (np.ones(2, int),), TypeError, "expected a floating", {
                "axis": 0, "reverse": False}),
        ),
    ),
)  # fmt: skip


# ordering ---------------------------------------------------------------------------------------


def _key(value: Any) -> tuple[Any, ...]:
    """NumPy's order: NaN last, complex numbers by real, then by imaginary part."""
    if isinstance(value, complex):
        return (False, value.real, value.imag)
    return (value != value, 0 if value != value else value)


def _argsorted(values: list[Any], **_: Any) -> list[int]:
    return sorted(range(len(values)), key=lambda i: _key(values[i]))


def _sorted(values: list[Any], **_: Any) -> list[Any]:
    return sorted(values, key=_key)


def ordering(primitive: Any, lane: Callable[..., list[Any]], **options: Any) -> Row:
    def make(rng: Rng) -> Iterator[Sample]:
        yield from axis_samples("ci", spaced, TIES, stable=True)(rng)
        yield Sample("unstable", (spaced(rng, (2, 5)),), {"axis": 1, "stable": False})

    return Row(primitive, make, along(lane), rtol=0, **options)


def _argextremum(primitive: Any, pick: Callable[[list[Any]], Any]) -> Row:
    def position(values: list[Any]) -> list[int]:
        nans = [i for i, v in enumerate(values) if v != v]
        return [nans[0] if nans else values.index(pick(values))]

    def make(rng: Rng) -> Iterator[Sample]:
        for sample in axis_samples("i", spaced, TIES)(rng):
            if sample.label != "empty":
                yield sample

    def reference(x: Any, *, axis: int) -> np.ndarray:
        if not x.size:
            return np.zeros(x.shape[:axis] + x.shape[axis + 1 :], np.int64)
        return along(position)(x, axis=axis).squeeze(axis)

    empty = Refused("empty", (np.ones((2, 0)),), ShapeError, "no element", {"axis": 1})
    return Row(primitive, make, reference, rtol=0, refused=(empty,))


def distinct_positions(rng: Rng, shape: tuple[int, ...], axis: int, extent: int) -> np.ndarray:
    """Indices into an axis of an extent that do not repeat within a lane."""
    lanes = np.empty(shape, np.int64)
    rows = np.moveaxis(lanes, axis, -1)
    for lane in np.ndindex(rows.shape[:-1]):
        rows[lane] = rng.permutation(extent)[: rows.shape[-1]]
    return lanes


SELECTIONS = (
    ("vector", (5,), (3,), 0),
    ("first", (4, 2), (2, 2), 0),
    ("last", (2, 4), (2, 3), 1),
    ("permutation", (2, 3), (2, 3), 1),
    ("empty", (2, 3), (2, 0), 1),
    ("empty_lanes", (0, 3), (0, 2), 1),
)


def _select_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, picked, axis in SELECTIONS:
        indices = distinct_positions(rng, picked, axis, shape[axis])
        yield Sample(label, (uniform(rng, shape), indices), {"axis": axis})
    indices = distinct_positions(rng, (3,), 0, 3)
    yield Sample("f32", (uniform(rng, (3,)).astype(np.float32), indices), {"axis": 0})
    yield Sample("complex", (annulus(rng, (3,)), indices), {"axis": 0})
    yield Sample("int", (integers(rng, (3,)), indices), {"axis": 0})


def _place_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, picked, axis in SELECTIONS:
        indices = distinct_positions(rng, picked, axis, shape[axis])
        yield Sample(label, (uniform(rng, picked), indices), {"axis": axis, "size": shape[axis]})
    params = {"axis": 0, "size": 5}
    indices = distinct_positions(rng, (3,), 0, 5)
    yield Sample("f32", (uniform(rng, (3,)).astype(np.float32), indices), params)
    yield Sample("complex", (annulus(rng, (3,)), indices), params)


def _place(v: Any, indices: Any, *, axis: int, size: int) -> np.ndarray:
    out = np.zeros((*v.shape[:axis], size, *v.shape[axis + 1 :]), v.dtype)
    for place in np.ndindex(v.shape):
        target = (*place[:axis], indices[place], *place[axis + 1 :])
        out[target] = v[place]
    return out


def _top_k_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("vector", (spaced(rng, (5,)),), {"k": 2})
    yield Sample("matrix", (spaced(rng, (2, 4)),), {"k": 3})
    yield Sample("few_of_many", (spaced(rng, (2, 40)),), {"k": 3})
    yield Sample("all", (spaced(rng, (4,)),), {"k": 4})
    yield Sample("none", (spaced(rng, (2, 3)),), {"k": 0})
    yield Sample("f32", (spaced(rng, (4,)).astype(np.float32),), {"k": 2})
    yield Sample("int", (integers(rng, (6,)),), {"k": 3})
    yield Sample("kinks", (np.array(TIES),), {"k": 2}, is_smooth=False)
    many_ties = np.repeat(np.arange(4.0), 8)[None]
    yield Sample("ties_of_many", (many_ties,), {"k": 3}, is_smooth=False)


def _top_k(x: Any, *, k: int) -> tuple[np.ndarray, np.ndarray]:
    def lane(values: list[Any]) -> list[int]:
        keys = [_key(value) for value in values]
        return sorted(range(len(values)), key=lambda i: (not keys[i][0], -keys[i][1]))[:k]

    indices = along(lane)(x, axis=x.ndim - 1).astype(np.int64)
    return np.take_along_axis(x, indices, -1), indices


def _lexsort_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("two", (spaced(rng, (5,)), integers(rng, (5,), 0, 3)), {"axis": 0})
    yield Sample("three", tuple(integers(rng, (2, 6), 0, 3) for _ in range(3)), {"axis": 1})
    yield Sample("first_axis", tuple(integers(rng, (4, 2), 0, 3) for _ in range(2)), {"axis": 0})
    yield Sample("empty", (spaced(rng, (2, 0)), integers(rng, (2, 0))), {"axis": 1})


def _lexsort(*keys: Any, axis: int) -> np.ndarray:
    columns = [np.moveaxis(key, axis, -1) for key in keys]
    out = np.empty(columns[0].shape, np.int64)
    for lane in np.ndindex(out.shape[:-1]):
        rows = [tuple(column[lane][i] for column in columns[::-1]) for i in range(out.shape[-1])]
        out[lane] = sorted(range(len(rows)), key=rows.__getitem__)
    return np.moveaxis(out, -1, axis)


def _searchsorted_samples(rng: Rng) -> Iterator[Sample]:
    for side in ("left", "right"):
        ascending = np.sort(integers(rng, (5,)).astype(np.float64))
        values = integers(rng, (2, 3)).astype(np.float64)
        yield Sample(f"vector_{side}", (ascending, values), {"side": side})
        lanes = np.sort(spaced(rng, (2, 4)), axis=-1)
        yield Sample(f"lanes_{side}", (lanes, spaced(rng, (2, 3))), {"side": side})
    yield Sample("0d", (np.sort(spaced(rng, (4,))), spaced(rng, ())), {"side": "left"})
    yield Sample("empty", (np.zeros(0), spaced(rng, (2,))), {"side": "left"})


def _searchsorted(a: Any, v: Any, *, side: str) -> np.ndarray:
    lanes = np.broadcast_to(a, (*v.shape, a.shape[-1])) if a.ndim == 1 else a[:, None, :]
    compare = operator.lt if side == "left" else operator.le
    return compare(lanes, v[..., None]).sum(-1)


def _argpartition_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("vector", (spaced(rng, (7,)),), {"kth": (2,), "axis": 0})
    yield Sample("two", (spaced(rng, (2, 7)),), {"kth": (1, 4), "axis": 1})
    yield Sample("first", (spaced(rng, (5, 2)),), {"kth": (3,), "axis": 0})


def _not_partitioned(outs: Any, x: Any, *, kth: tuple[int, ...], axis: int) -> Any:
    """What a partition promises: a permutation with the elements ``kth`` in their places."""
    (indices,) = outs
    placed = np.take(np.take_along_axis(x, indices, axis), kth, axis)
    numbers = np.moveaxis(np.sort(indices, axis), axis, -1)
    return numbers - np.arange(x.shape[axis]), placed - np.take(np.sort(x, axis), kth, axis)


ORDERING = (
    ordering(so.sort_p, _sorted, is_flat=True),
    ordering(so.argsort_p, _argsorted),
    _argextremum(rd.argmax_p, max),
    _argextremum(rd.argmin_p, min),
    Row(
        so.select_along_p,
        _select_samples,
        lambda x, indices, axis: np.take_along_axis(x, indices, axis),
        rtol=0,
        is_flat=True,
        refused=(
            Refused("lanes", (np.ones((2, 3)), np.zeros((4, 1), int)), ShapeError, "must agree", {
                "axis": 1}),
        ),
    ),
    Row(
        so.place_along_p,
        _place_samples,
        _place,
        rtol=0,
        is_flat=True,
        refused=(
            Refused("shapes", (np.ones(2), np.zeros(3, int)), ShapeError, "same shape", {
                "axis": 0, "size": 4}),
        ),
    ),
    Row(
        so.top_k_p,
        _top_k_samples,
        _top_k,
        rtol=0,
        is_flat=True,
        refused=(
            Refused("k", (np.ones(2),), ShapeError, "k = 3", {"k": 3}),
            Refused("0d", (np.array(1.0),), ShapeError, "last axis", {"k": 0}),
        ),
    ),
    Row(
        so.lexsort_p,
        _lexsort_samples,
        _lexsort,
        rtol=0,
        refused=(
            Refused("shapes", (np.ones(2), np.ones(3)), ShapeError, "same shape", {"axis": 0}),
        ),
    ),
    Row(
        so.searchsorted_p,
        _searchsorted_samples,
        _searchsorted,
        rtol=0,
        refused=(
            Refused("lanes", (np.ones((2, 3)), np.ones(3)), ShapeError, "leading axes", {
                "side": "left"}),
            Refused("side", (), ValueError, "'left' or 'right'",
                call=lambda: so.searchsorted(np.ones(2), 1.0, "middle")),
        ),
    ),
    Row(
        so.argpartition_p,
        _argpartition_samples,
        residuals=_not_partitioned,
        rtol=0,
        refused=(
            Refused("kth", (np.ones(2),), ShapeError, "below its extent", {
                "kth": (2,), "axis": 0}),
        ),
    ),
)  # fmt: skip

ROWS = (*EXTREMA, *CUMULATIVE, *ORDERING)
