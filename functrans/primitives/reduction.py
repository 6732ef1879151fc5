"""Reduction primitives: extrema, product, their positions, truth, bits and logsumexp over axes.

Here: ``reduce_max``, ``reduce_min``, ``torch_max``, ``torch_min``, ``reduce_prod``, ``logsumexp``,
``argmax``, ``argmin``, ``reduce_any``, ``reduce_all`` and the bitwise reductions. Not here:
``reduce_sum`` (``structural``), ``keepdims``, ``where``, ``initial`` and means (``numpy``), running
reductions (``cumulative``, on which the product's derivative rests).

``axes`` is a tuple of distinct non-negative axes, which the result loses. The operand's dtype is
kept: integers are not widened (``numpy`` does).

Conventions at kinks: extrema share the tangent evenly among tied elements, and among the NaN where
the result is NaN. An infinite logsumexp shares it evenly among the elements equal to it, so that
the weights add up to 1 also for all ``-inf``. The derivative of a product is the product of the
others, never a quotient: zeros are exact at every order.

Layer: ``primitives`` (above ``cumulative``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.axes import over_axes
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import Expansion, Reduction, Routine
from functrans.core.primitive import Marker, Primitive, Work, nondifferentiable
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import real
from functrans.primitives.cumulative import cumprod, shift
from functrans.primitives.native.sorting import argextremum_lower
from functrans.primitives.structural import (
    batched_axes,
    cast,
    expand_reduced,
    inverse_permutation,
    normalize_axis,
    reduce_sum,
    reduced_shape,
    reshape,
    stop_gradient_p,
    transpose,
    zeros_like_aval,
)


def _reduction(
    name: str,
    impl: Callable[..., Any],
    jvp: Callable[..., Any] | Marker,
    *,
    dtype: np.dtype | None = None,
    kinds: str = "",
    has_identity: bool = True,
    lower: Reduction | Expansion,
    work: Callable[..., Work] | None = None,
) -> Primitive:
    """A primitive that reduces over ``axes``.

    Args:
      name: name in printed programs.
      impl: ``(x, axes) -> array``.
      jvp: its rule.
      dtype: dtype of the result; by default the operand's.
      kinds: kinds of dtypes it takes; by default all.
      has_identity: whether a reduction over no elements has a value.
      lower: how it becomes native code.
      work: as in ``Primitive``.
    """

    def evaluate(x: Array, *, axes: tuple[int, ...]) -> tuple[Any, ...]:
        if not has_identity:
            _check_not_empty(name, shape_of(x), axes)
        return (impl(x, axes),)

    def abstract_eval(x: ShapedArray, *, axes: tuple[int, ...]) -> tuple[ShapedArray, ...]:
        if not has_identity:
            _check_not_empty(name, x.shape, axes)
        if kinds and x.dtype.kind not in kinds:
            raise TypeError(f"{name}: not defined for {x}; cast the operand first")
        return (ShapedArray(reduced_shape(x.shape, axes), dtype or x.dtype),)

    def batch(
        size: int, operands: Sequence[Any], dims: Sequence[Any], *, axes: tuple[int, ...]
    ) -> tuple[Any, Any]:
        moved, out_dim = batched_axes(axes, dims[0])
        return bind(primitive, operands[0], axes=moved), (out_dim,)

    reason = "has no derivative" if jvp is nondifferentiable else "not linear"
    primitive = Primitive(
        name,
        impl=evaluate,
        abstract_eval=abstract_eval,
        jvp=jvp,
        batch=batch,
        lower=lower,
        axis_map=over_axes,
        memory="own",
        work=work,
        reasons=(("transpose", reason),),
    )
    return primitive


def _check_not_empty(name: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Refuse a reduction over no elements, as NumPy does."""
    if 0 in shape and any(shape[axis] == 0 for axis in axes):
        raise ShapeError(
            f"{name}: zero-size array of shape {tuple(shape)} has no element to choose over axes "
            f"{tuple(axes)}; test the size first, or give the reduction an initial value"
        )


# extrema ----------------------------------------------------------------------------------------


def _extremum_jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    outs: Sequence[Array],
    *,
    axes: tuple[int, ...],
) -> tuple[Any, ...]:
    """The mean of the tangents of the elements that are the extremum."""
    (x,), (t,), (y,) = primals, tangents, outs
    if type(t) is Zero:
        return (zeros_like_aval(y),)
    wins = (x == expand_reduced(y, shape_of(x), axes)) | (x != x)
    count = reduce_sum(cast(wins, np.int64), axes)
    return (reduce_sum(ew.where(wins, t, 0), axes) / cast(count, dtype_of(y)),)


def _extremum(name: str, ufunc: np.ufunc, kind: str, jvp: Callable[..., Any]) -> Primitive:
    return _reduction(
        name,
        lambda x, axes: ufunc.reduce(x, axis=axes),
        jvp,
        has_identity=False,
        lower=Reduction(kind),
    )


reduce_max_p = _extremum("reduce_max", np.maximum, "max", _extremum_jvp)
reduce_min_p = _extremum("reduce_min", np.minimum, "min", _extremum_jvp)


def _torch_extremum_jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    outs: Sequence[Array],
    *,
    axes: tuple[int, ...],
) -> tuple[Any, ...]:
    """The mean of the tangents of the elements equal to the extremum: 0 / 0 where it is NaN."""
    (x,), (t,), (y,) = primals, tangents, outs
    if type(t) is Zero:
        return (zeros_like_aval(y),)
    dtype = dtype_of(y)
    wins = cast(x == expand_reduced(y, shape_of(x), axes), dtype)
    return (reduce_sum(t * wins, axes) / reduce_sum(wins, axes),)


torch_max_p = _extremum("torch_max", np.maximum, "max", _torch_extremum_jvp)
torch_min_p = _extremum("torch_min", np.minimum, "min", _torch_extremum_jvp)


def reduce_max(x: Any, axes: tuple[int, ...]) -> Any:
    """Maximum over axes; NaN if there is one."""
    return bind(reduce_max_p, x, axes=axes)[0] if axes else x


def reduce_min(x: Any, axes: tuple[int, ...]) -> Any:
    """Minimum over axes; NaN if there is one."""
    return bind(reduce_min_p, x, axes=axes)[0] if axes else x


def torch_max(x: Any, axes: tuple[int, ...]) -> Any:
    """Maximum over axes; where it is NaN, so are the derivatives of all elements."""
    return bind(torch_max_p, x, axes=axes)[0]


def torch_min(x: Any, axes: tuple[int, ...]) -> Any:
    """Minimum over axes; where it is NaN, so are the derivatives of all elements."""
    return bind(torch_min_p, x, axes=axes)[0]


# product ----------------------------------------------------------------------------------------


def _products_of_others(x: Array, axes: tuple[int, ...]) -> Array:
    """For each element the product of all others in its lane: of those before, of those after."""
    shape = shape_of(x)
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    order = (*kept, *axes)
    lanes = transpose(x, order)
    apart = shape_of(lanes)
    lanes = reshape(lanes, (*apart[: len(kept)], math.prod(apart[len(kept) :])))
    axis = len(kept)
    before = shift(cumprod(lanes, axis), axis, fill=1)
    after = shift(cumprod(lanes, axis, reverse=True), axis, reverse=True, fill=1)
    return transpose(reshape(before * after, apart), inverse_permutation(order))


def _reduce_prod_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], outs: Any, *, axes: tuple[int, ...]
) -> tuple[Any, ...]:
    (x,), (t,), (y,) = primals, tangents, outs
    if type(t) is Zero:
        return (zeros_like_aval(y),)
    return (reduce_sum(t * _products_of_others(x, axes), axes),)


reduce_prod_p = _reduction(
    "reduce_prod",
    lambda x, axes: np.multiply.reduce(x, axis=axes, dtype=dtype_of(x)),
    _reduce_prod_jvp,
    lower=Reduction("prod"),
)


def reduce_prod(x: Array, axes: tuple[int, ...]) -> Array:
    """Product over axes in the operand's own dtype; 1 over no elements."""
    return bind(reduce_prod_p, x, axes=axes)[0] if axes else x


# logsumexp --------------------------------------------------------------------------------------


def _logsumexp_impl(x: Array, axes: tuple[int, ...]) -> Array:
    """``m + log k + log1p(s / k)``.

    ``m`` is the maximum, ``k`` the number of elements whose exponential rounds to that of the
    maximum, ``s`` the sum of the others' exponentials: terms far below the maximum still count
    where ``m`` is near 0.
    """
    with np.errstate(all="ignore"):
        level = x.real
        m = np.maximum.reduce(level, axis=axes, keepdims=True, initial=-math.inf)
        m = np.where(np.isfinite(m), m, 0).astype(level.dtype, copy=False)
        e = np.asarray(x - m)
        np.exp(e, out=e)
        if x.dtype.kind == "c":
            total = np.log(np.add.reduce(e, axis=axes, keepdims=True))
        else:
            at_top = e == 1
            k = np.add.reduce(at_top, axis=axes, keepdims=True, dtype=x.dtype)
            has_top = k > 0
            e[at_top] = 0
            s = np.add.reduce(e, axis=axes, keepdims=True, dtype=x.dtype)
            k = np.where(has_top, k, 1)
            total = np.where(has_top, np.log(k) + np.log1p(s / k), np.log(s))
        return np.reshape(total + m, reduced_shape(x.shape, axes))[()]


def _logsumexp_jvp(
    primals: tuple[Any, ...],
    tangents: Sequence[Any],
    outs: tuple[Any, ...],
    *,
    axes: tuple[int, ...],
) -> tuple[Any, ...]:
    """Softmax weights ``exp(x - max x)``, divided by their sum.

    The maximum cancels, so that it counts as a constant. Where it is infinite the elements equal to
    it have weight ``exp(0)``, the others 0.
    """
    (x,), (t,), (y,) = primals, tangents, outs
    shape = shape_of(x)
    if type(t) is Zero or any(shape[axis] == 0 for axis in axes):
        return (zeros_like_aval(y),)
    weights = ew.exp(_below_top(x, axes))
    return (reduce_sum(t * weights, axes) / reduce_sum(weights, axes),)


def _below_top(x: Array, axes: tuple[int, ...]) -> Array:
    """``x`` minus its maximum; if that is infinite, 0 where ``x`` is the same, else -inf."""
    level = real(x) if dtype_of(x).kind == "c" else x
    top = bind(stop_gradient_p, reduce_max(level, axes))[0]
    is_infinite = ew.isinf(top)
    shape = shape_of(x)
    below = x - expand_reduced(ew.where(is_infinite, 0, top), shape, axes)
    number = dtype_of(x).type
    at_top = ew.where(level == expand_reduced(top, shape, axes), number(0), number(-math.inf))
    return ew.where(expand_reduced(is_infinite, shape, axes), at_top, below)


def _logsumexp_lower(x: Array, *, axes: tuple[int, ...]) -> tuple[Any, ...]:
    """The steps of ``_logsumexp_impl`` as primitives."""
    shape, dtype = shape_of(x), dtype_of(x)
    kept = reduced_shape(shape, axes)
    if any(shape[axis] == 0 for axis in axes):
        return (ew.log(reduce_sum(ew.exp(x), axes)),)
    m = reduce_max(real(x) if dtype.kind == "c" else x, axes)
    if dtype.kind == "c":
        m = ew.where(ew.isfinite(m), m, 0)
        e = ew.exp(x - expand_reduced(m, shape, axes))
        return (ew.log(reduce_sum(e, axes)) + m,)
    e = ew.exp(_below_top(x, axes))
    at_top = e == 1
    k = reduce_sum(cast(at_top, dtype), axes)
    has_top = k > 0
    s = reduce_sum(ew.where(at_top, 0, e), axes)
    k = ew.where(has_top, k, 1)
    total = ew.where(has_top, ew.log(k) + ew.log1p(s / k), ew.log(s))
    return (reshape(total + m, kept),)


logsumexp_p = _reduction(
    "logsumexp",
    _logsumexp_impl,
    _logsumexp_jvp,
    kinds="fcV",
    lower=Expansion(_logsumexp_lower),
    work=lambda x, **params: Work(x.size, x.size),
)


def logsumexp(x: Operand, axes: tuple[int, ...]) -> Any:
    """``log(sum(exp(x)))`` over axes without overflow; ``-inf`` over no elements.

    Args:
      x: real or complex ``[...]``; integers become float64. A complex result is the principal
        branch of the logarithm.
      axes: axes that the result loses.
    """
    if dtype_of(x).kind in "biu":
        x = cast(x, np.float64)
    return bind(logsumexp_p, x, axes=axes)[0] if axes else x


# positions --------------------------------------------------------------------------------------


def _position(name: str, function: Callable[..., Any], is_max: bool) -> Primitive:
    """``argmax`` or ``argmin``: the first position of the extremum, of the first NaN if any."""

    def impl(x: Array, *, axis: int) -> tuple[Any, ...]:
        _check_not_empty(name, x.shape, (axis,))
        return (function(x, axis=axis).astype(np.int64, copy=False),)

    def abstract_eval(x: ShapedArray, *, axis: int) -> tuple[ShapedArray, ...]:
        _check_not_empty(name, x.shape, (axis,))
        return (ShapedArray(reduced_shape(x.shape, (axis,)), np.dtype(np.int64)),)

    def batch(
        size: int, operands: Sequence[Array], dims: Sequence[Any], *, axis: int
    ) -> tuple[Any, Any]:
        (moved,), out_dim = batched_axes((axis,), dims[0])
        return bind(primitive, operands[0], axis=moved), (out_dim,)

    primitive = Primitive(
        name,
        impl=impl,
        abstract_eval=abstract_eval,
        jvp=nondifferentiable,
        batch=batch,
        lower=Routine(argextremum_lower(is_max)),
        memory="own",
        reasons=(("transpose", "has no derivative"),),
    )
    return primitive


argmax_p = _position("argmax", np.argmax, is_max=True)
argmin_p = _position("argmin", np.argmin, is_max=False)


def argmax(x: Array, axis: int) -> Any:
    """First position of the maximum along an axis, ``i64``; of the first NaN if there is one."""
    return bind(argmax_p, x, axis=normalize_axis(axis, len(shape_of(x)), "argmax"))[0]


def argmin(x: Array, axis: int) -> Any:
    """First position of the minimum along an axis, ``i64``; of the first NaN if there is one."""
    return bind(argmin_p, x, axis=normalize_axis(axis, len(shape_of(x)), "argmin"))[0]


# truth and bits ---------------------------------------------------------------------------------

_BOOL = np.dtype(bool)

reduce_any_p = _reduction(
    "reduce_any",
    lambda x, axes: np.logical_or.reduce(x, axis=axes, dtype=bool),
    nondifferentiable,
    dtype=_BOOL,
    lower=Reduction("any"),
)
reduce_all_p = _reduction(
    "reduce_all",
    lambda x, axes: np.logical_and.reduce(x, axis=axes, dtype=bool),
    nondifferentiable,
    dtype=_BOOL,
    lower=Reduction("all"),
)
reduce_bitwise_and_p = _reduction(
    "reduce_bitwise_and",
    lambda x, axes: np.bitwise_and.reduce(x, axis=axes),
    nondifferentiable,
    kinds="biu",
    lower=Reduction("and"),
)
reduce_bitwise_or_p = _reduction(
    "reduce_bitwise_or",
    lambda x, axes: np.bitwise_or.reduce(x, axis=axes),
    nondifferentiable,
    kinds="biu",
    lower=Reduction("or"),
)
reduce_bitwise_xor_p = _reduction(
    "reduce_bitwise_xor",
    lambda x, axes: np.bitwise_xor.reduce(x, axis=axes),
    nondifferentiable,
    kinds="biu",
    lower=Reduction("xor"),
)


def reduce_any(x: Array | complex, axes: tuple[int, ...]) -> Array:
    """Whether any element over axes is nonzero (NaN is)."""
    return bind(reduce_any_p, x, axes=axes)[0]


def reduce_all(x: Any, axes: tuple[int, ...]) -> Array:
    """Whether all elements over axes are nonzero (NaN is)."""
    return bind(reduce_all_p, x, axes=axes)[0]


def reduce_bitwise_and(x: Array, axes: tuple[int, ...]) -> Array:
    """Bitwise and over axes of booleans or integers; all bits set over no elements."""
    return bind(reduce_bitwise_and_p, x, axes=axes)[0] if axes else x


def reduce_bitwise_or(x: Array, axes: tuple[int, ...]) -> Array:
    """Bitwise or over axes of booleans or integers; 0 over no elements."""
    return bind(reduce_bitwise_or_p, x, axes=axes)[0] if axes else x


def reduce_bitwise_xor(x: Array, axes: tuple[int, ...]) -> Array:
    """Bitwise exclusive or over axes of booleans or integers; parity for booleans."""
    return bind(reduce_bitwise_xor_p, x, axes=axes)[0] if axes else x


PRIMITIVES: tuple[Primitive, ...] = (
    reduce_max_p, reduce_min_p, torch_max_p, torch_min_p, reduce_prod_p, logsumexp_p, argmax_p,
    argmin_p, reduce_any_p, reduce_all_p, reduce_bitwise_and_p, reduce_bitwise_or_p,
    reduce_bitwise_xor_p,
)  # fmt: skip
