"""Methods of ``Tensor`` that compare its elements: extrema, sorting, selection, counting.

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.composites import composite, several
from functrans.autograd.methods import arithmetic
from functrans.autograd.methods.arithmetic import refuse_kinds
from functrans.autograd.methods.reductions import axes_of, reduced
from functrans.autograd.methods.rows import (
    Row,
    constant,
    copied,
    documented,
    fixed,
    floating,
    functions_of,
    known,
    looked_at,
    methods_of,
    results,
    rows_of,
    with_out_by_name,
)
from functrans.autograd.methods.shaping import axis_of, refuse_number
from functrans.autograd.promotion import result_dtype, torch_kind
from functrans.autograd.sizes import integer
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy.common import NO_VALUE
from functrans.primitives import cumulative, reduction, sorting, structural
from functrans.primitives import elementwise as ew
from functrans.primitives import torch_elementwise as te
from functrans.primitives.indexing import take_along_axis

_PAIRS = {
    name: results(name, "values", "indices")
    for name in (
        "max", "min", "median", "nanmedian", "mode", "sort", "topk", "kthvalue", "cummax", "cummin",
    )
}  # fmt: skip
_MinMax = results("aminmax", "min", "max")


def _pair(name: str, label: str, x: Tensor, of: Callable[[Any], Any]) -> Any:
    """Elements and where they stand, as a function of arrays says; a number stands at 0."""
    if x.shape:
        return _PAIRS[name](*several(label, of, x))
    return _PAIRS[name](copied(x, label), constant(np.zeros((), np.int64), x))


def _selected(
    name: str,
    label: str,
    self: Tensor,
    index_of: Callable[[Any, int], Any],
    dim: int,
    keepdim: bool,
) -> Any:
    """One element of each line along an axis, and where it stands.

    Args:
      name: of the named tuple.
      label: torch's name of the node.
      self: the tensor.
      index_of: from the operand and an axis to positions, without the axis.
      dim: the axis.
      keepdim: whether it stays, with extent 1.
    """
    axis = axis_of(dim, len(self.shape))
    if self.shape and not self.shape[axis]:
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")

    def of(x: Any) -> Any:
        shape = shape_of(x)
        kept = (*shape[:axis], 1, *shape[axis + 1 :])
        index = structural.reshape(index_of(x, axis), kept)
        values = sorting.select_along(x, index, axis)
        if keepdim:
            return values, index
        short = (*shape[:axis], *shape[axis + 1 :])
        return structural.reshape(values, short), structural.reshape(index, short)

    return _pair(name, label, self, of)


# extrema -----------------------------------------------------------------------------------------


def _extremum(
    name: str, of_two: Callable[..., Any], of_axes: Any, position: Any
) -> Callable[..., Any]:
    label = name.capitalize()

    def operation(
        input: Tensor, dim: Any = NO_VALUE, keepdim: bool = False, *, other: object = None
    ) -> Any:
        if isinstance(dim, Tensor) or other is not None:
            return of_two(input, dim if other is None else other)
        if input.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        if dim is NO_VALUE:
            if not math.prod(input.shape):
                raise RuntimeError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                    "Specify the reduction dim with the 'dim' argument."
                )
            return reduced(f"{label}Backward1", input, of_axes)
        return _selected(name, label, input, position, dim, keepdim)

    return documented(
        operation,
        name,
        f"The {name}imum of all elements, which share the derivative at ties; of each line along "
        "an axis with its position; or of two tensors.",
    )


def _amax(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def operation(input: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
        refuse_kinds(f"{name[1:]}_values_cpu", "c", input)
        axes = axes_of(input, dim)
        if any(not input.shape[axis] for axis in axes):
            raise IndexError(f"{name}(): Expected reduction dim to have non-zero size.")
        return reduced(name.capitalize(), input, function, dim, keepdim)

    return documented(
        operation, name, "The extremum over axes; elements at a tie share the derivative evenly."
    )


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """The smallest and the largest element, of all or along an axis."""
    refuse_kinds("aminmax_cpu", "c", input)
    return _MinMax(
        reduced("Aminmax", input, reduction.torch_min, dim, keepdim),
        reduced("Aminmax", input, reduction.torch_max, dim, keepdim),
    )


def _position(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def operation(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
        if input.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        if dim is None:
            if not math.prod(input.shape):
                raise IndexError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
                )
            kept = (1,) * len(input.shape) if keepdim else ()

            def of(x: Any) -> Any:
                flat = structural.reshape(x, (math.prod(shape_of(x)),))
                return structural.reshape(function(flat, 0), kept)

            return composite("", of, input)
        axis = axis_of(dim, len(input.shape))
        if not input.shape:
            return constant(np.zeros((), np.int64), input)
        return reduced("", input, lambda x, axes: function(x, axes[0]), axis, keepdim)

    return documented(
        operation, name, "The position of the extremum, of all elements or along an axis."
    )


def _cumulative(name: str, running: Any, at_least: Any) -> Callable[..., Any]:
    def operation(input: Tensor, dim: int) -> Any:
        refuse_kinds(f"{name}_cpu", "c", input)
        axis = axis_of(dim, len(input.shape))

        def of(x: Any) -> Any:
            shape = shape_of(x)
            places = np.arange(shape[axis]).reshape((-1,) + (1,) * (len(shape) - axis - 1))
            is_new = at_least(x, running(x, axis)) | (x != x)
            index = cumulative.cummax(ew.where(is_new, places, 0), axis)
            return take_along_axis(x, index, axis), index

        return _pair(name, name.capitalize(), input, of)

    return documented(operation, name, "Running extrema along an axis, and the position of each.")


# order -------------------------------------------------------------------------------------------


def _sorted_positions(x: Any, axis: int, descending: bool) -> Array:
    """Positions in order, stable."""
    if not descending:
        return sorting.argsort(x, axis)
    n = shape_of(x)[axis]
    backwards = n - 1 - sorting.argsort(fnp.flip(x, axis), axis)
    return fnp.flip(backwards, axis)


def _refuse_complex(name: str, x: Tensor) -> None:
    if x.dtype.kind == "c":
        raise RuntimeError(f"{name} does not support complex dtypes on CPU")


def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The elements of each line in order, and where they stood; equal ones keep their order."""
    _refuse_complex("Sort", input)
    axis = axis_of(dim, len(input.shape))

    def of(x: Any) -> Any:
        index = _sorted_positions(x, axis, descending)
        return sorting.select_along(x, index, axis), index

    return _pair("sort", "Sort", input, of)


def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """Positions that sort each line."""
    return sort(input, dim, descending).indices


def msort(input: Tensor) -> Tensor:
    """Sorted along the first axis."""
    return sort(input, 0).values


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The ``k`` largest or smallest elements of each line, in order, and where they stand.

    Raises:
      RuntimeError: there are fewer.
    """
    _refuse_complex("topk", input)
    axis, k = axis_of(dim, len(input.shape)), integer(k, "k", "topk")
    if not 0 <= k <= (input.shape[axis] if input.shape else 1):
        raise RuntimeError("selected index k out of range")

    def of(x: Any) -> Any:
        index = _sorted_positions(x, axis, largest)
        index = index[(slice(None),) * axis + (slice(0, k),)]
        return sorting.select_along(x, index, axis), index

    return _pair("topk", "Topk", input, of)


def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """The ``k``-th smallest element of each line, and where it stands.

    Raises:
      RuntimeError: there are fewer.
    """
    refuse_kinds("kthvalue_cpu", "c", input)
    axis, k = axis_of(dim, len(input.shape)), integer(k, "k", "kthvalue")
    if not 1 <= k <= (input.shape[axis] if input.shape else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")

    def position(x: Any, axis: int) -> Any:
        return _sorted_positions(x, axis, False)[(slice(None),) * axis + (k - 1,)]

    return _selected("kthvalue", "Kthvalue", input, position, dim, keepdim)


def _median(name: str, is_nan_skipped: bool) -> Callable[..., Any]:
    label = name.capitalize()

    def position(x: Any, axis: int) -> Any:
        order = _sorted_positions(x, axis, False)
        shape = shape_of(x)
        kept = (*shape[:axis], 1, *shape[axis + 1 :])
        if is_nan_skipped:
            numbers = structural.reduce_sum(structural.cast(x == x, np.int64), (axis,))
            middle = ew.maximum(numbers - 1, 0) // 2
            found = take_along_axis(order, structural.reshape(middle, kept), axis)
            return structural.reshape(found, shape_of(middle))
        middle = order[(slice(None),) * axis + ((shape[axis] - 1) // 2,)]
        has_nan = reduction.reduce_any(x != x, (axis,))
        first = reduction.argmax(structural.cast(x != x, np.int64), axis)
        return ew.where(has_nan, first, middle)

    def operation(input: Tensor, dim: Any = NO_VALUE, keepdim: bool = False) -> Any:
        refuse_kinds("median_cpu" if dim is NO_VALUE else "median_out", "c", input)
        if dim is not NO_VALUE:
            own = "NanmedianBackward1" if is_nan_skipped else "MedianBackward1"
            return _selected(name, own, input, position, dim, keepdim)

        def of(x: Any) -> Any:
            x = structural.reshape(x, (math.prod(shape_of(x)),))
            if not shape_of(x)[0]:  # NaN, of integers the least
                nothing = math.nan if x.dtype.kind == "f" else np.iinfo(x.dtype).min
                return ew.where(True, x.dtype.type(nothing), structural.reduce_sum(x, (0,)))
            constant = bind(structural.stop_gradient_p, x)[0]
            middle = constant[position(constant, 0)]
            if input.dtype.kind in "iub":
                return middle
            is_middle = (constant == middle) | ((constant != constant) & (middle != middle))
            count = structural.reduce_sum(structural.cast(is_middle, dtype_of(x)), (0,))
            shared = structural.reduce_sum(ew.where(is_middle, x, 0), (0,)) / count
            return te.with_slope(middle, shared)

        return composite(label, of, input)

    return documented(
        operation, name, "The lower median, of all elements or of each line with its position."
    )


def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """The most frequent element of each line, the smallest of several, and its last position."""

    def position(x: Any, axis: int) -> Any:
        order = sorting.argsort(x, axis)
        values = sorting.select_along(x, order, axis)
        n, last = shape_of(x)[axis], len(shape_of(x)) - 1
        values, order = (structural.moveaxis(part, axis, last) for part in (values, order))
        column = structural.reshape(values, (*shape_of(values), 1))
        row = structural.reshape(values, (*shape_of(values)[:-1], 1, n))
        counts = structural.reduce_sum(structural.cast(column == row, np.int64), (last + 1,))
        # the last of the first group of that size; NaN, which equal nothing, count as none
        first = reduction.argmax(counts, last)
        place = first + ew.maximum(reduction.reduce_max(counts, (last,)), 1) - 1
        place = structural.reshape(place, (*shape_of(place), 1))
        found = take_along_axis(order, place, last)
        return structural.reshape(found, shape_of(found)[:-1])

    refuse_kinds("mode_cpu", "c", input)
    return _selected("mode", "Mode", input, position, dim, keepdim)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(name: str, skips_nan: bool) -> Callable[..., Any]:
    """Quantiles by interpolation between the two elements next to a place in the order."""

    def operation(
        input: Tensor,
        q: Any,
        dim: int | None = None,
        keepdim: bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor:
        if input.dtype.kind not in "fV":
            raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
        if interpolation not in _INTERPOLATIONS:
            raise RuntimeError(
                f"{name}() interpolation must be one of linear, lower, higher, midpoint or "
                f"nearest, but got {interpolation}"
            )
        places = known(q)
        if places is not None and np.any((places < 0) | (places > 1)):
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {places}")
        if not math.prod(input.shape):
            raise RuntimeError(f"{name}() input tensor must be non-empty")
        ndim = len(input.shape)
        axis = None if dim is None else axis_of(dim, ndim)

        def of(v: Any, q: object) -> Any:
            at = structural.cast(q, dtype_of(v))
            shape = shape_of(v)
            if axis is None or not shape:
                lines = structural.reshape(v, (math.prod(shape),))
                kept = (1,) * ndim
            else:
                lines = structural.moveaxis(v, axis, ndim - 1)
                kept = (*shape[:axis], 1, *shape[axis + 1 :])
            line = structural.reshape(at, shape_of(at) or (1,))
            found = _interpolated(lines, line, skips_nan, interpolation)
            last = len(shape_of(found)) - 1
            found = structural.moveaxis(found, last, 0)
            short = kept if keepdim else shape_of(found)[1:]
            return structural.reshape(found, (*shape_of(at), *short))

        return composite("SqueezeBackward4", of, input, q)

    what = "the elements that are numbers" if skips_nan else "all elements or along an axis"
    return documented(operation, name, f"Quantiles of {what}.")


def _interpolated(lines: Any, at: Any, skips_nan: bool, interpolation: str) -> Any:
    """Quantiles along the last axis, which becomes that of the quantiles."""
    *lead, n = shape_of(lines)
    last = len(lead)
    order = sorting.select_along(lines, sorting.argsort(lines, last), last)  # NaN last
    is_nan = lines != lines
    if skips_nan:
        numbers = structural.reduce_sum(structural.cast(lines == lines, dtype_of(lines)), (last,))
        end = ew.maximum(structural.reshape(numbers, (*lead, 1)) - 1, 0.0)
        rank = end * at
    else:
        has_nan = structural.reshape(reduction.reduce_any(is_nan, (last,)), (*lead, 1))
        rank = ew.where(has_nan, dtype_of(lines).type(n - 1), at * (n - 1))
    if interpolation in ("lower", "higher", "nearest"):
        rounding = {"lower": ew.floor, "higher": ew.ceil, "nearest": ew.rint}[interpolation]
        return take_along_axis(order, structural.cast(rounding(rank), np.int64), last)
    below, above = ew.floor(rank), ew.ceil(rank)
    weight = 0.5 if interpolation == "midpoint" else rank - below
    low, high = (
        take_along_axis(order, structural.cast(place, np.int64), last) for place in (below, above)
    )
    step = high - low
    return ew.where(weight < 0.5, low + weight * step, high - step * (1 - weight))


# counting ----------------------------------------------------------------------------------------


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Positions of elements that are not 0: a row each, or a tensor per axis."""
    value = np.asarray(looked_at(input))
    if as_tuple:
        return tuple(constant(i, input) for i in np.nonzero(np.atleast_1d(value)))
    if not value.ndim:
        return constant(np.zeros((int(bool(value)), 0), np.int64), input)
    return constant(np.argwhere(value), input)


def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The distinct elements, or slices along an axis, in order.

    They have the derivative of the first of those that are equal.
    """
    refuse_kinds("unique", "c", input)
    find: Any = np.unique
    _, first, *rest = find(
        np.asarray(looked_at(input)),
        return_index=True,
        return_inverse=return_inverse,
        return_counts=return_counts,
        axis=dim,
    )
    values = _chosen(input, first, dim)
    return (values, *(constant(part, input) for part in rest)) if rest else values


def _chosen(x: Tensor, places: np.ndarray, dim: int | None) -> Tensor:
    """Elements, or slices along an axis."""
    lines = x.reshape(-1) if dim is None else x
    return lines.index_select(dim or 0, constant(places))


def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements, or slices along an axis, without those that equal the one before."""
    refuse_kinds("unique", "c", input)
    value = np.asarray(looked_at(input))
    lines = value.reshape(-1) if dim is None else np.moveaxis(value, dim, 0)
    steps = lines[1:] != lines[:-1]
    is_new = np.concatenate([[True], steps.any(tuple(range(1, steps.ndim)))])[: len(lines)]
    found = [_chosen(input, np.flatnonzero(is_new), dim)]
    if return_inverse:
        inverse = np.cumsum(is_new) - 1
        found.append(constant(inverse.reshape(value.shape) if dim is None else inverse, input))
    if return_counts:
        ends = np.append(np.flatnonzero(is_new), len(lines))
        found.append(constant(np.diff(ends), input))
    return found[0] if len(found) == 1 else tuple(found)


def searchsorted(
    sorted_sequence: Tensor,
    input: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """Where elements would stand in sorted sequences, the last axis.

    Raises:
      RuntimeError: ``side`` is none or contradicts ``right``; ``sorter`` are no indices of the
        sequences; the extents do not fit.
    """
    lines = sorted_sequence if sorter is None else _in_order(sorted_sequence, sorter)
    way = side or ("right" if right else "left")
    if way not in ("left", "right") or (right and way == "left"):
        raise RuntimeError(
            "torch.searchsorted(): side can only be 'left' or 'right', and not be the opposite of "
            f"right, but got side={side!r}, right={right}"
        )
    shape, wanted_shape = tuple(lines.shape), shape_of(input)
    if not shape or (len(shape) > 1 and shape[:-1] != wanted_shape[:-1]):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but we got "
            f"boundaries tensor {list(shape)} and input value tensor {list(wanted_shape)}"
        )
    refuse_kinds("searchsorted_out_cpu", "c", lines, input)
    dtype = result_dtype(lines, input)

    def of(*operands: Any) -> Any:
        rows, wanted = (structural.cast(x, dtype) for x in operands)
        found = sorting.searchsorted(rows, wanted, way)
        return structural.cast(found, np.dtype(np.int32)) if out_int32 else found

    return fixed(of, *[arithmetic.in_dtype(x, dtype) for x in (lines, input)])


def _in_order(lines: Tensor, sorter: Tensor) -> Tensor:
    """Sequences in the order that indices tell."""
    if sorter.shape != lines.shape or sorter.dtype != np.int64:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, and sorter must be "
            f"a tensor of long dtype, but got boundary tensor {list(lines.shape)} and got sorter "
            f"tensor {list(sorter.shape)} of dtype {torch_kind(sorter.dtype)}"
        )
    places = known(sorter)
    if places is not None and not ((places >= 0) & (places < lines.shape[-1])).all():
        raise RuntimeError("torch.searchsorted(): sorter index out of range")
    return fixed(lambda x, i: fnp.take_along_axis(x, i, -1), lines, sorter)


def bucketize(
    input: object, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Tensor:
    """In which interval between boundaries each element lies."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number occurs, or the sum of its weights.

    Raises:
      RuntimeError: the tensor is no vector of integers that are not negative.
    """
    numbers = known(input)
    is_negative = numbers is not None and bool((numbers < 0).any())
    if len(input.shape) != 1 or input.dtype.kind not in "iub" or is_negative:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    words = "minlength should be >= 0"
    minlength = integer(minlength, "minlength", "bincount", least=0, words=words)
    if weights is None:
        return fixed(lambda x: fnp.bincount(x, minlength=minlength), input)
    dtype = weights.dtype if weights.dtype.kind == "f" else np.dtype(float)
    return fixed(lambda x, w: structural.cast(fnp.bincount(x, w, minlength), dtype), input, weights)


def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Counts of elements in intervals of one width."""
    refuse_kinds("histogram_cpu", "iubc", input)
    words = "torch.histogram(): bins must be > 0, but got {} for dimension 0"
    bins = integer(bins, "bins", "histc", least=1, words=words)

    def of(x: Any) -> Any:
        ends: tuple[Any, Any] = (float(min), float(max))
        if min == max and 0 not in shape_of(x):
            axes = tuple(range(len(shape_of(x))))
            ends = (reduction.reduce_min(x, axes), reduction.reduce_max(x, axes))
        is_point = ends[0] == ends[1]
        ends = (ew.where(is_point, ends[0] - 1, ends[0]), ew.where(is_point, ends[1] + 1, ends[1]))
        return structural.cast(fnp.histogram(x, bins, ends)[0], input.dtype)

    return fixed(of, input)


def diff(
    input: Tensor, n: int = 1, dim: int = -1, prepend: object = None, append: object = None
) -> Tensor:
    """Differences of neighbours along an axis, ``n`` times."""
    refuse_number(len(input.shape), "diff expects input to be at least one-dimensional")
    n = integer(n, "n", "diff", least=0, words="order must be non-negative but got {}")
    axis = axis_of(dim, len(input.shape))
    ends = {"prepend": prepend, "append": append}
    given = {k: v for k, v in ends.items() if v is not None}

    def of(x: Any, *others: object) -> Any:
        return fnp.diff(x, n, axis, **dict(zip(given, others, strict=True)))

    return composite("Sub", of, input, *given.values())


def cov(
    input: Tensor, *, correction: int = 1, fweights: object = None, aweights: object = None
) -> Tensor:
    """The covariance matrix of variables, one per row."""
    correction = integer(correction, "correction", "cov")
    weights = {"fweights": fweights, "aweights": aweights}
    given = {k: v for k, v in weights.items() if v is not None}

    def of(x: Any, *others: Any) -> Any:
        found = fnp.cov(x, ddof=correction, **dict(zip(given, others, strict=True)))
        return structural.cast(found, x.dtype)

    return composite("Squeeze", of, floating(input), *given.values())


def corrcoef(input: Tensor) -> Tensor:
    """The correlation matrix of variables, one per row."""
    return composite(
        "ClampBackward1", lambda x: structural.cast(fnp.corrcoef(x), x.dtype), floating(input)
    )


max_of = _extremum("max", arithmetic.METHODS["maximum"], reduction.reduce_max, reduction.argmax)
min_of = _extremum("min", arithmetic.METHODS["minimum"], reduction.reduce_min, reduction.argmin)

ROWS: tuple[Row, ...] = (
    *rows_of(
        "mf", max_of, min_of, _amax("amax", reduction.torch_max),
        _amax("amin", reduction.torch_min), aminmax, _position("argmax", reduction.argmax),
        _position("argmin", reduction.argmin),
        _cumulative("cummax", cumulative.cummax, ew.greater_equal),
        _cumulative("cummin", cumulative.cummin, ew.less_equal), sort, argsort, msort, topk,
        kthvalue, _median("median", False), _median("nanmedian", True), mode,
        _quantile("quantile", False), _quantile("nanquantile", True), nonzero, unique,
        unique_consecutive, bincount, histc, diff, cov, corrcoef,
    ),
    Row("argwhere", nonzero),
)  # fmt: skip

METHODS: dict[str, Any] = methods_of(ROWS)
FUNCTIONS: dict[str, Any] = {
    **functions_of(ROWS),
    **with_out_by_name(searchsorted, bucketize),
}  # fmt: skip
