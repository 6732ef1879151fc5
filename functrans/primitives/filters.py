"""Recursive filters: each result is a term minus a combination of the results before it.

Here: ``recursive_filter``. Not here: combinations of the terms, which are convolutions
(``convolution``), and first-order recurrences with varying coefficients (``cumulative``).

Layer: ``primitives``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.axes import AxisMap
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, is_linear
from functrans.errors import ShapeError
from functrans.primitives.linalg.common import check_dtype
from functrans.primitives.movement import pad, reverse
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import (
    broadcast_to,
    cast,
    moveaxis,
    reshape,
    to_front,
    zeros_like_aval,
)

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines


def _filter_rows(c: np.ndarray, x: np.ndarray) -> np.ndarray:
    """One filter for all rows of ``x``, by SciPy, or a loop over columns without it."""
    try:
        from scipy.signal import lfilter
    except ImportError:
        y = x.copy()
        for i in range(x.shape[-1]):
            for k in range(1, min(len(c), i) + 1):
                y[:, i] -= c[k - 1] * y[:, i - k]
        return y
    one = np.ones(1, x.dtype)
    return lfilter(one, np.concatenate([one, c]), x)


def _recursive_filter_impl(c: Any, x: Any) -> tuple[Any, ...]:
    if not x.size or not c.size:
        return (x.copy(),)
    if c.ndim == 1:
        rows = x.reshape(-1, x.shape[-1])
        return (_filter_rows(c, rows).astype(x.dtype, copy=False).reshape(x.shape),)
    out = np.empty(x.shape, x.dtype)
    for lane in np.ndindex(x.shape[:-1]):
        out[lane] = _filter_rows(c[lane], x[lane][None])[0]
    return (out,)


def _recursive_filter_aval(c: ShapedArray, x: ShapedArray) -> tuple[ShapedArray, ...]:
    check_dtype("recursive_filter", x)
    if c.dtype != x.dtype:
        raise TypeError(f"recursive_filter: types {c} and {x} differ; cast them to one dtype")
    if not x.ndim or not c.ndim or (c.ndim > 1 and c.shape[:-1] != x.shape[:-1]):
        raise ShapeError(
            f"recursive_filter: coefficients {c} do not fit {x}; expected one vector, or one for "
            "each row"
        )
    return (x.strong(),)


def _delayed(y: Any, steps: int) -> Any:
    """``y[..., i - steps]``, 0 before the start."""
    config = [(0, 0, 0)] * (len(shape_of(y)) - 1)
    return pad(y, 0, [*config, (steps, -steps, 0)])


def _recursive_filter_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any]
) -> tuple[Any, ...]:
    """``y'[i] = x'[i] - sum_k c'[k] y[i - k] - sum_k c[k] y'[i - k]``: the same filter."""
    c, _ = primals
    c_dot, x_dot = tangents
    (y,) = outs
    if type(c_dot) is not Zero:
        for k in range(1, min(shape_of(c)[-1], shape_of(y)[-1] - 1) + 1):
            weight = slice_index(c_dot, BasicIndex((Ellipsis, slice(k - 1, k))))
            term = weight * _delayed(y, k)
            x_dot = -term if type(x_dot) is Zero else x_dot - term
    if type(x_dot) is Zero:
        return (zeros_like_aval(y),)
    return bind(recursive_filter_p, c, x_dot)


def _recursive_filter_transpose(cts: Sequence[Any], operands: Sequence[Any]) -> tuple[Any, ...]:
    """The filter is a Toeplitz matrix: its transpose runs backwards."""
    c, x = operands
    if is_linear(c) or not is_linear(x):
        raise TypeError("recursive_filter is linear in its terms only")
    last = (len(x.shape) - 1,)
    (y,) = bind(recursive_filter_p, c, reverse(cts[0], last))
    return (None, reverse(y, last))


def _recursive_filter_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any]
) -> tuple[Any, Any]:
    c, x = operands
    if dims[0] is None and len(shape_of(c)) == 1:
        return bind(recursive_filter_p, c, moveaxis(x, dims[1], 0)), (0,)
    c, x = to_front(size, operands, dims)
    if len(shape_of(c)) < len(shape_of(x)):  # one vector for all rows of each example
        extents = shape_of(c)
        ones = (1,) * (len(shape_of(x)) - len(extents))
        c = broadcast_to(reshape(c, (size, *ones, extents[-1])), (*shape_of(x)[:-1], extents[-1]))
    return bind(recursive_filter_p, c, x), (0,)


_UNROLLED = 32


def _recursive_filter_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array]
) -> None:
    c, x = operands
    (out,) = results
    if out.size == 0:
        return
    order, n = c.shape[-1], out.shape[-1]
    rows = math.prod(out.shape[:-1])
    terms, ys = x.reshape(rows, n), out.reshape(rows, n)
    b = e.b
    one_filter = len(c.shape) == 1
    weights = c.reshape(1 if one_filter else rows, order)
    total = e.workspace((), out.dtype)
    start = min(order, n) if order <= _UNROLLED else n
    with e.count(rows) as row:
        own = b.index(0) if one_filter else row
        with e.count(start) as i:  # the sum is shorter near the start
            e.write(total, [], e.read(terms, (row, i)))
            stop = b.select(b.icmp("slt", i, b.index(order)), i, b.index(order))
            with e.count(stop) as k:
                before = b.sub(b.sub(i, b.index(1)), k)
                product = e.multiply(e.read(weights, (own, k)), e.read(ys, (row, before)))
                e.write(total, [], e.subtract(e.read(total, []), product))
            e.write(ys, (row, i), e.read(total, []))
        if start == n:
            return
        own_weights = [e.read(weights, (own, k)) for k in range(order)]
        with e.count(n, start) as i:
            value = e.read(terms, (row, i))
            for back in range(order, 0, -1):  # what was computed last is needed last
                earlier = e.read(ys, (row, b.sub(i, b.index(back))))
                value = e.subtract(value, e.multiply(own_weights[back - 1], earlier))
            e.write(ys, (row, i), value)


def _recursive_filter_map(c: ShapedArray, x: ShapedArray) -> list[AxisMap]:
    return [(*range(c.ndim - 1), None), (*range(x.ndim - 1), None)]


def _causal(c: ShapedArray, x: ShapedArray) -> tuple[int, int, bool]:
    return 1, x.ndim - 1, False


recursive_filter_p: Primitive = Primitive(
    "recursive_filter",
    impl=_recursive_filter_impl,
    abstract_eval=_recursive_filter_aval,
    jvp=_recursive_filter_jvp,
    transpose=_recursive_filter_transpose,
    batch=_recursive_filter_batch,
    lower=Routine(_recursive_filter_lower, in_place=1),
    causal=_causal,
    axis_map=_recursive_filter_map,
    memory="own",
)


def recursive_filter(c: Any, x: Any) -> Any:
    """``y[i] = x[i] - c[0] y[i - 1] - c[1] y[i - 2] - ...`` along the last axis.

    Args:
      c: coefficients, ``[p]`` for all rows or ``[..., p]``.
      x: terms ``[..., n]``.

    Returns:
      ``y``, shaped as ``x``, in the common dtype; what lies before the start is 0.

    Reference: Oppenheim & Schafer, Discrete-Time Signal Processing (1989), ch. 6.
    """
    dtype = np.result_type(dtype_of(c), dtype_of(x))
    return bind(recursive_filter_p, cast(c, dtype), cast(x, dtype))[0]


PRIMITIVES: tuple[Primitive, ...] = (recursive_filter_p,)
