"""Cumulative primitives: sum, product, maximum, minimum, logsumexp along one axis, and recurrences.

Here: ``cumsum``, ``cumprod``, ``cummax``, ``cummin``, ``cumlogsumexp``, the first-order
``linear_recurrence`` in which their derivatives are written, and ``shift``. Not here: reductions
(``reduction``), loops with a body (``control``).

Every one of them takes ``axis`` (non-negative) and ``reverse`` (accumulate from the last element to
the first), and keeps shape and dtype of the operand; integers are not widened (``numpy`` does).

Derivatives, with ``p`` the preceding element (``shift``), are recurrences ``h = a * p(h) + b``:

============= ====================================== ==========================================
primitive     a                                      b
============= ====================================== ==========================================
cumprod       x                                      t * p(y), 1 before the first
cummax/min    1 where ``y`` goes on, 0 where it      t where ``x`` is the extremum so far;
              changes                                ``h`` is divided by the number of ties
cumlogsumexp  exp(p(y) - y)                          t * exp(x - y)
============= ====================================== ==========================================

There is no division by ``x``, so that zeros are exact at every order. A running extremum that
several elements of the prefix reach shares its tangent evenly among them, and all NaN of a prefix
share it: the last element then has the derivative of the reduction (``reduce_max``). An infinite
running logsumexp shares evenly among the elements equal to it, as ``logsumexp`` does.

Layer: ``primitives``. Reference: Blelloch, Prefix Sums and Their Applications, CMU-CS-90-190.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.axes import along_axis
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Marker, Primitive, Work, is_linear, linear
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.kernels import table as kernels
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import is_complex, real
from functrans.primitives.family import add_tangents, once_each
from functrans.primitives.native.cumulative import (
    cumlogsumexp_lower,
    cumulative_lower,
    linear_recurrence_lower,
    running_extremum_lower,
)
from functrans.primitives.slicing import BasicIndex, embed, slice_index
from functrans.primitives.structural import cast, normalize_axis, to_front, zeros_like_aval

_FEW_LANES = 16
_NUMBER_S, _ROW_S = 1e-7, 1.5e-6
"""What a step takes without a kernel: for one number, for one row."""


def _along(ndim: int, axis: int, entry: slice) -> BasicIndex:
    """The basic index that takes a slice of one axis."""
    return BasicIndex((slice(None),) * axis + (entry,) + (slice(None),) * (ndim - axis - 1))


def shift(x: Array, axis: int, reverse: bool = False, fill: Array | complex = 0) -> Array:
    """The preceding element of each (the following one in ``reverse``); ``fill`` for the first.

    Args:
      x: ``[..., n, ...]``.
      axis: non-negative axis of extent ``n``.
      reverse: take the following element.
      fill: Python scalar which stands before the first element.

    Returns:
      An array like ``x``.
    """
    shape = shape_of(x)
    head = _along(len(shape), axis, slice(None, -1))
    tail = _along(len(shape), axis, slice(1, None))
    source, target = (tail, head) if reverse else (head, tail)
    moved = embed(slice_index(x, source), target, shape)
    if fill == 0:
        return moved
    is_first = np.zeros(shape[axis : axis + 1] + (1,) * (len(shape) - axis - 1), dtype=bool)
    is_first[(slice(-1, None) if reverse else slice(1)),] = True
    return ew.where(is_first, fill, moved)


# linear_recurrence ------------------------------------------------------------------------------


def _linear_recurrence_impl(a: Any, b: Any, *, axis: int, reverse: bool) -> tuple[Any, ...]:
    """Evaluate in order, so that overflow of a product of coefficients cannot become NaN.

    One row of all lanes a step (1.5 us); a few lanes are faster one number after the other:
    Python's (100 ns per element), or NumPy's (160 ns), which round to their dtype. Much work is
    left to a kernel.
    """
    out = np.empty(b.shape, b.dtype)
    if not out.size:
        return (out,)
    length = out.shape[axis]
    lost_s = min(_NUMBER_S * out.size, _ROW_S * length)
    kernel = kernels.name_for("linear_recurrence", b.dtype)
    if kernels.pays(kernel, lost_s):
        sizes = (math.prod(out.shape[:axis]), length, math.prod(out.shape[axis + 1 :]))
        given = [np.require(x, requirements=["C", "A"]).reshape(sizes) for x in (a, b)]
        kernels.function(kernel)(*given, out.reshape(sizes), reverse)
        return (out,)
    direction = slice(None, None, -1 if reverse else 1)
    rows_a, rows_b, rows = (np.moveaxis(v, axis, 0)[direction] for v in (a, b, out))
    few = _FEW_LANES if b.dtype == np.float64 else _FEW_LANES // 2
    if rows.size <= few * length and b.dtype.kind in "fc":
        lanes_a, lanes_b = (v.reshape(length, -1).T for v in (rows_a, rows_b))
        if b.dtype == np.float64:
            lanes_a, lanes_b = lanes_a.tolist(), lanes_b.tolist()
        lanes = [list(_recurrence(*lane)) for lane in zip(lanes_a, lanes_b, strict=True)]
        rows[...] = np.array(lanes, b.dtype).T.reshape(rows.shape)
        return (out,)
    rows[0] = rows_b[0]
    for i in range(1, length):
        row = rows[i : i + 1]
        np.multiply(rows_a[i : i + 1], rows[i - 1 : i], out=row)
        np.add(row, rows_b[i : i + 1], out=row)
    return (out,)


def _recurrence(a: Sequence[Any], b: Sequence[Any]) -> Iterator[Any]:
    """The recurrence on numbers; ``a[0]`` is not read."""
    h = b[0]
    yield h
    for factor, term in zip(a[1:], b[1:], strict=True):
        h = factor * h + term
        yield h


def _linear_recurrence_aval(
    a: ShapedArray, b: ShapedArray, *, axis: int, reverse: bool
) -> tuple[ShapedArray, ...]:
    if a.shape != b.shape or a.dtype != b.dtype:
        raise ShapeError(
            f"linear_recurrence: coefficients {a} and terms {b} must have the same shape and dtype;"
            " broadcast and cast them first"
        )
    return (b.strong(),)


def _linear_recurrence_jvp(
    primals: tuple[Array, ...],
    tangents: tuple[Any, ...],
    outs: tuple[Array, ...],
    *,
    axis: int,
    reverse: bool,
) -> tuple[Any, ...]:
    """``h' = a * p(h') + (a' * p(h) + b')``."""
    (a, _), (a_dot, b_dot), (h,) = primals, tangents, outs
    terms = b_dot
    if type(a_dot) is not Zero:
        terms = add_tangents(b_dot, a_dot * shift(h, axis, reverse))
    if type(terms) is Zero:
        return (zeros_like_aval(h),)
    return bind(linear_recurrence_p, a, terms, axis=axis, reverse=reverse)


def _linear_recurrence_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, axis: int, reverse: bool
) -> tuple[Any, ...]:
    """The transpose in ``b`` runs the other way, each coefficient one place earlier."""
    a, _ = operands
    if is_linear(a):
        raise TypeError(
            "linear_recurrence is not linear in its coefficients; it has no transpose there"
        )
    moved = shift(a, axis, not reverse)
    return (None, *bind(linear_recurrence_p, moved, cts[0], axis=axis, reverse=not reverse))


def _linear_recurrence_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None], *, axis: int, reverse: bool
) -> tuple[Any, Any]:
    moved = to_front(size, operands, dims)
    return bind(linear_recurrence_p, *moved, axis=axis + 1, reverse=reverse), (0,)


def _causal_in_terms(*avals: ShapedArray, axis: int, reverse: bool) -> tuple[int, int, bool]:
    return 1, axis, reverse


linear_recurrence_p = Primitive(
    "linear_recurrence",
    impl=_linear_recurrence_impl,
    abstract_eval=_linear_recurrence_aval,
    jvp=_linear_recurrence_jvp,
    transpose=_linear_recurrence_transpose,
    batch=_linear_recurrence_batch,
    lower=Routine(linear_recurrence_lower),
    memory="own",
    axis_map=along_axis,
    causal=_causal_in_terms,
    work=once_each,
)


# the family -------------------------------------------------------------------------------------


def _accumulate(ufunc: np.ufunc, x: Any, axis: int, reverse: bool) -> Array:
    """``ufunc.accumulate`` in the operand's own dtype and in either direction."""
    if not reverse:
        return ufunc.accumulate(x, axis=axis, dtype=x.dtype)
    out = np.empty(x.shape, x.dtype)
    ufunc.accumulate(np.flip(x, axis), axis=axis, dtype=x.dtype, out=np.flip(out, axis))
    return out


def _causal(x: ShapedArray, *, axis: int, reverse: bool) -> tuple[int, int, bool]:
    return 0, axis, reverse


def _same_aval(x: ShapedArray, *, axis: int, reverse: bool) -> tuple[ShapedArray, ...]:
    return (x.strong(),)


def _cumulative(
    name: str,
    ufunc: np.ufunc,
    jvp: Callable[..., Any] | Marker,
    lower: Routine,
    *,
    impl: Callable[..., Any] | None = None,
    abstract_eval: Callable[..., Any] = _same_aval,
    transpose: Callable[..., Any] | None = None,
    work: Callable[..., Work] = once_each,
) -> Primitive:
    """A primitive that accumulates a ufunc."""

    def accumulate(x: Any, *, axis: int, reverse: bool) -> tuple[Any, ...]:
        return (_accumulate(ufunc, x, axis, reverse),)

    def batch(
        size: int, operands: Sequence[Array], dims: Sequence[Any], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        moved = axis + (axis >= dims[0])
        return bind(primitive, operands[0], axis=moved, reverse=reverse), dims

    primitive = Primitive(
        name,
        impl=impl or accumulate,
        abstract_eval=abstract_eval,
        jvp=jvp,
        transpose=transpose,
        batch=batch,
        lower=lower,
        moves=jvp is linear,
        memory="own",
        axis_map=along_axis,
        causal=_causal,
        work=work,
        reasons=() if transpose is not None else (("transpose", "not linear"),),
    )
    return primitive


def _apply(primitive: Primitive, x: Operand, axis: int, reverse: bool) -> Array:
    """Apply a cumulative primitive along an axis that may be negative."""
    axis = normalize_axis(axis, len(shape_of(x)), primitive.name)
    return bind(primitive, x, axis=axis, reverse=reverse)[0]


def _cumsum_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, axis: int, reverse: bool
) -> tuple[Any, ...]:
    return bind(cumsum_p, cts[0], axis=axis, reverse=not reverse)


cumsum_p = _cumulative(
    "cumsum",
    np.add,
    linear,
    Routine(cumulative_lower(lambda e, before, x: e.add(before, x))),
    transpose=_cumsum_transpose,
)


def cumsum(x: Any, axis: int, reverse: bool = False) -> Any:
    """Sums of all prefixes (suffixes in ``reverse``) along an axis."""
    return _apply(cumsum_p, x, axis, reverse)


def _cumprod_jvp(
    primals: Any, tangents: Sequence[Any], outs: Sequence[Any], *, axis: int, reverse: bool
) -> tuple[Any, ...]:
    """``y' = x * p(y') + t * p(y)``."""
    (x,), (t,), (y,) = primals, tangents, outs
    if type(t) is Zero:
        return (zeros_like_aval(y),)
    terms = t * shift(y, axis, reverse, fill=1)
    return bind(linear_recurrence_p, x, terms, axis=axis, reverse=reverse)


cumprod_p = _cumulative(
    "cumprod",
    np.multiply,
    _cumprod_jvp,
    Routine(cumulative_lower(lambda e, before, x: e.multiply(before, x))),
)


def cumprod(x: Array, axis: int, reverse: bool = False) -> Array:
    """Products of all prefixes (suffixes in ``reverse``) along an axis."""
    return _apply(cumprod_p, x, axis, reverse)


def _running_extremum_jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    outs: Sequence[Array],
    *,
    axis: int,
    reverse: bool,
) -> tuple[Any, ...]:
    """A sum over the holders in each run of equal ``y``, divided by their number so far.

    A run begins with a holder. With ``c`` the number of holders up to an element, ``c - 1`` at the
    last beginning of a run is the number of holders before that run.
    """
    (x,), (t,), (y,) = primals, tangents, outs
    if type(t) is Zero:
        return (zeros_like_aval(y),)
    before = shift(y, axis, reverse)
    goes_on = (y == before) | (before != before)
    holds = (x == y) | (x != x)
    so_far = cumsum(cast(holds, np.int64), axis, reverse)
    before_run = cummax(ew.where(goes_on, 0, so_far - 1), axis, reverse)
    dtype = dtype_of(y)
    total = bind(
        linear_recurrence_p, cast(goes_on, dtype), ew.where(holds, t, 0), axis=axis, reverse=reverse
    )[0]
    return (total / cast(so_far - before_run, dtype),)


cummax_p = _cumulative(
    "cummax", np.maximum, _running_extremum_jvp, Routine(running_extremum_lower(is_max=True))
)


def cummax(x: Array, axis: int, reverse: bool = False) -> Array:
    """Maxima of all prefixes (suffixes in ``reverse``) along an axis; NaN spreads."""
    return _apply(cummax_p, x, axis, reverse)


cummin_p = _cumulative(
    "cummin", np.minimum, _running_extremum_jvp, Routine(running_extremum_lower(is_max=False))
)


def cummin(x: Array, axis: int, reverse: bool = False) -> Array:
    """Minima of all prefixes (suffixes in ``reverse``) along an axis; NaN spreads."""
    return _apply(cummin_p, x, axis, reverse)


# cumlogsumexp -----------------------------------------------------------------------------------


def _cumlogsumexp_impl(x: Array, *, axis: int, reverse: bool) -> tuple[Any, ...]:
    with np.errstate(all="ignore"):
        if x.dtype.kind != "c":
            return (_accumulate(np.logaddexp, x, axis, reverse),)
        out = np.array(x)  # NumPy's logaddexp has no complex loop
        rows = np.moveaxis(out, axis, 0)[:: -1 if reverse else 1]
        for i in range(1, rows.shape[0]):
            rows[i] = _complex_logaddexp(rows[i - 1], rows[i])
    return (out,)


def _complex_logaddexp(a: Array, b: Array) -> Array:
    """``log(exp(a) + exp(b))``, scaled by the larger real part where that is finite."""
    scale = np.maximum(a.real, b.real)
    scale = np.where(np.isinf(scale), 0, scale)
    return np.log(np.exp(a - scale) + np.exp(b - scale)) + scale


def _cumlogsumexp_aval(x: ShapedArray, *, axis: int, reverse: bool) -> tuple[ShapedArray, ...]:
    if x.dtype.kind in "biu":
        raise TypeError(f"cumlogsumexp: expected a floating or complex array, got {x}; cast it")
    return (x.strong(),)


def _cumlogsumexp_jvp(
    primals: tuple[Any, ...],
    tangents: Sequence[Any],
    outs: tuple[Any, ...],
    *,
    axis: int,
    reverse: bool,
) -> tuple[Any, ...]:
    """``y' = exp(p(y) - y) * p(y') + exp(x - y) * t``, the two weights adding up to 1.

    For real operands both weights are logistic functions of ``x - p(y)``, written through
    ``logaddexp``, so that they keep their relative accuracy for large ``|y|``. Where ``y`` is
    infinite and ``k`` elements so far equal it, the weight of the newest of them is ``1 / k``; the
    first element above ``-inf`` has weight 1.
    """
    (x,), (t,), (y,) = primals, tangents, outs
    if type(t) is Zero:
        return (zeros_like_aval(y),)
    dtype = dtype_of(y)
    x_level, y_level = real(x), real(y)
    before = shift(y, axis, reverse, fill=-math.inf)
    is_infinite = ew.isinf(y_level)
    highs = cumsum(cast(x_level == math.inf, np.int64), axis, reverse)
    lows = cumsum(cast(x_level == -math.inf, np.int64), axis, reverse)
    count = ew.where(is_infinite, ew.where(y_level > 0, highs, lows), 1)
    share = cast(x_level == y_level, dtype) / cast(count, dtype)
    is_settled = is_infinite | (real(before) == -math.inf)
    x, y, before = (ew.where(is_settled, 0, value) for value in (x, y, before))
    if is_complex(x):
        weight, carry = ew.exp(x - y), ew.exp(before - y)
    else:
        gap = x - before
        weight, carry = ew.exp(-ew.logaddexp(0, -gap)), ew.exp(-ew.logaddexp(0, gap))
    weight = ew.where(is_settled, share, weight)
    carry = ew.where(is_settled, 1 - share, carry)
    return bind(linear_recurrence_p, carry, t * weight, axis=axis, reverse=reverse)


cumlogsumexp_p = _cumulative(
    "cumlogsumexp",
    np.logaddexp,
    _cumlogsumexp_jvp,
    Routine(cumlogsumexp_lower),
    impl=_cumlogsumexp_impl,
    abstract_eval=_cumlogsumexp_aval,
    work=lambda x, **params: Work(x.size, x.size),
)


def cumlogsumexp(x: Array, axis: int, reverse: bool = False) -> Array:
    """``log(cumsum(exp(x)))`` without overflow; integers become float64."""
    if dtype_of(x).kind in "biu":
        x = cast(x, np.float64)
    return _apply(cumlogsumexp_p, x, axis, reverse)


PRIMITIVES: tuple[Primitive, ...] = (
    linear_recurrence_p, cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p,
)  # fmt: skip
