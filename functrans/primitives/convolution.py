"""Convolution: one primitive, ``conv_general``, and NumPy's one-dimensional functions made of it.

Here: the record, ``conv``, ``convolve``, ``correlate``. Not here: products without a window
(``dot``), smoothing and filters of ``scipy`` shape.

The layout is batch, channels, space for the left operand and output channels, input channels, space
for the kernel. With ``d`` and ``e`` the dilations of either, ``x`` the left operand spread by ``d``
and padded::

    f64[n, o, p] = conv_general(lhs: f64[n, c, s], rhs: f64[o, i, k])
    out[n, o, p] = sum over i, k of x[n, group(o) * i_extent + i, p * stride + k * e] * rhs[o, i, k]

The zeros between and around the elements are no factors: a NaN or an infinity of the kernel is in
the results where it meets an element of the left operand, and in no others.

No kernel is reversed, as in neural networks: this is a correlation. ``feature_group_count = g``
splits channels and output channels into ``g`` groups that are convolved apart;
``batch_group_count = g`` splits the batch and the output channels, and the groups of the batch are
laid side by side in the output channels. The two close the primitive under transposition and
batching: the cotangent of either operand and a batch of convolutions are one ``conv_general``
between views and reshapes.

Derivation of the cotangents (the padding in particular): Dumoulin & Visin, A guide to convolution
arithmetic for deep learning, arXiv:1603.07285 (2016), ch. 4.

Layer: ``primitives``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dispatch import aval_of, bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, Work, is_linear, multilinear
from functrans.core.source import here
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.primitives.complex_parts import conjugate
from functrans.primitives.family import promoted_dtype
from functrans.primitives.movement import reverse
from functrans.primitives.native.convolution import conv_general_lower, meets_zeros
from functrans.primitives.structural import cast, moveaxis, reshape, transpose

Shape = tuple[int, ...]
Padding = tuple[tuple[int, int], ...]

# Copies of windows are made in blocks of about so many bytes, half of a core's second cache.
_BLOCK_BYTES = 1 << 19
# One call of NumPy's one-dimensional routine pays from about so many multiplications on.
_LINE_WORK = 4096


# shapes -----------------------------------------------------------------------------------------


def _dilated(extent: int, dilation: int) -> int:
    """Extent after ``dilation - 1`` zeros were put between the elements."""
    return (extent - 1) * dilation + 1 if extent else 0


def _out_extent(
    extent: int, window: int, stride: int, pads: tuple[int, int], spread: int, dilation: int
) -> int:
    """Number of positions of a window along one axis."""
    room = _dilated(extent, spread) + pads[0] + pads[1] - _dilated(window, dilation)
    return room // stride + 1 if room >= 0 else 0


def _conv_shape(
    lhs: Shape,
    rhs: Shape,
    strides: Shape,
    padding: Padding,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    batch_group_count: int,
) -> Shape:
    """Shape of the result."""
    space = map(_out_extent, lhs[2:], rhs[2:], strides, padding, lhs_dilation, rhs_dilation)
    return (lhs[0] // batch_group_count, rhs[0], *space)


def _conv_general_aval(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    strides: Shape,
    padding: Padding,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    feature_group_count: int,
    batch_group_count: int,
) -> tuple[ShapedArray, ...]:
    what = f"conv: operands {lhs} [batch, channels, space] and {rhs} [out, in, space]"
    if lhs.ndim != rhs.ndim or lhs.ndim < 2:
        raise ShapeError(f"{what} must have the same number of axes, at least two")
    entries: dict[str, tuple[Any, ...]] = {
        "strides": strides,
        "lhs_dilation": lhs_dilation,
        "rhs_dilation": rhs_dilation,
        "padding": padding,
    }
    for name, value in entries.items():
        if len(value) != lhs.ndim - 2:
            raise ShapeError(
                f"{what}: {name}={value} has {len(value)} entries; one is needed for each of the "
                f"{lhs.ndim - 2} spatial axes"
            )
        if name != "padding" and min(value, default=1) < 1:
            raise ShapeError(f"{what}: {name}={value} must be positive")
    features, batches = feature_group_count, batch_group_count
    if min(features, batches) < 1 or (max(features, batches) > 1 and min(features, batches) != 1):
        raise ShapeError(
            f"{what}: feature_group_count={features} and batch_group_count={batches} must be "
            "positive, and one of them 1"
        )
    if lhs.shape[1] != rhs.shape[1] * features:
        raise ShapeError(
            f"{what}: the kernel's input channels, {rhs.shape[1]}, times feature_group_count="
            f"{features} must be the channels of the first operand, {lhs.shape[1]}"
        )
    if lhs.shape[0] % batches:
        raise ShapeError(f"{what}: batch_group_count={batches} must divide the batch extent")
    if rhs.shape[0] % (features * batches):
        raise ShapeError(
            f"{what}: the number of groups, {features * batches}, must divide the kernel's output "
            f"channels, {rhs.shape[0]}"
        )
    shape = _conv_shape(lhs.shape, rhs.shape, strides, padding, lhs_dilation, rhs_dilation, batches)
    return (ShapedArray(shape, promoted_dtype((lhs, rhs))),)


# evaluation -------------------------------------------------------------------------------------


def _conv_general_impl(
    lhs: Array,
    rhs: Array,
    *,
    strides: Shape,
    padding: Padding,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    feature_group_count: int,
    batch_group_count: int,
) -> tuple[Any, ...]:
    dtype = np.result_type(lhs, rhs)
    shape = _conv_shape(
        lhs.shape, rhs.shape, strides, padding, lhs_dilation, rhs_dilation, batch_group_count
    )
    if not (math.prod(shape) and rhs.size):
        return (np.zeros(shape, dtype),)
    # From here on: x[n, group, i, space], w[group, o, i, window], out[n, group, o, positions], and
    # numbers of 16 bits are summed in single precision.
    wide = np.result_type(dtype, np.float32) if dtype.kind in "fc" else dtype
    x, w = lhs.astype(wide, copy=False), rhs.astype(wide, copy=False)
    groups = feature_group_count * batch_group_count
    if batch_group_count > 1:
        x = np.moveaxis(x.reshape(groups, shape[0], *x.shape[1:]), 0, 1)
    else:
        x = x.reshape(x.shape[0], groups, rhs.shape[1], *x.shape[2:])
    w = w.reshape(groups, rhs.shape[0] // groups, *rhs.shape[1:])
    out = np.zeros((shape[0], groups, w.shape[1], *shape[2:]), wide)
    has_zeros = meets_zeros(lhs.shape[2:], padding, lhs_dilation)
    by_taps = math.prod(lhs_dilation) > 1 and math.prod(w.shape[3:]) <= math.prod(shape[2:])
    if by_taps or (has_zeros and dtype.kind in "fc" and not np.isfinite(w).all()):
        lows = tuple(low for low, _ in padding)
        _correlate_taps(x, w, out, strides, lows, lhs_dilation, rhs_dilation)
        return (out.astype(dtype, copy=False).reshape(shape),)
    x = _spread(x, padding, lhs_dilation)
    is_line = x.ndim == 4 and x.shape[2] == w.shape[1] == 1 and strides == rhs_dilation == (1,)
    if is_line and w.shape[3] * shape[2] >= _LINE_WORK:
        _correlate_lines(x[:, :, 0], w[:, 0, 0], out[:, :, 0])
    else:
        _correlate_windows(x, w, strides, rhs_dilation, out)
    return (out.astype(dtype, copy=False).reshape(shape),)


def _spread(x: Array, padding: Padding, dilation: Shape) -> Array:
    """The left operand with zeros between and around its elements; negative padding crops."""
    if not any(low or high for low, high in padding) and all(d == 1 for d in dilation):
        return x
    extents: list[int] = []
    sources: list[Any] = [...]
    targets: list[Any] = [...]
    lead, space = x.shape[:3], x.shape[3:]
    for n, (low, high), d in zip(space, padding, dilation, strict=True):
        extent = max(_dilated(n, d) + low + high, 0)
        # Element k goes to low + k * d; those outside [0, extent) are cropped.
        first = max(0, -(low // d))
        last = max(first, min(n, -((low - extent) // d)))
        end = low + (last - 1) * d + 1 if last > first else low + first * d
        extents.append(extent)
        sources.append(slice(first, last))
        targets.append(slice(low + first * d, end, d))
    out = np.zeros((*lead, *extents), x.dtype)
    out[tuple(targets)] = x[tuple(sources)]
    return out


def _correlate_lines(x: Array, w: Any, out: Any) -> None:
    """Correlate each line ``x[n, group]`` with the kernel ``w[group]``, by NumPy's routine."""
    for group, kernel in enumerate(w):
        flipped = kernel[::-1]
        for n in range(len(x)):
            out[n, group] = np.convolve(x[n, group], flipped, "valid")


def _correlate_windows(x: Array, w: Array, strides: Shape, dilation: Shape, out: Array) -> None:
    """Correlate by matrix products with copies of the windows, block by block.

    Positions are innermost in the copies; where the window is larger than the result (a kernel's
    cotangent) windows are, the batch is of the product's rows, and blocks of the sum are added up.
    """
    window, space = w.shape[3:], out.shape[3:]
    windows = np.lib.stride_tricks.as_strided(
        x,
        shape=(*x.shape[:3], *window, *space),
        strides=(
            *x.strides[:3],
            *(step * d for step, d in zip(x.strides[3:], dilation, strict=True)),
            *(step * d for step, d in zip(x.strides[3:], strides, strict=True)),
        ),
        writeable=False,
    )
    n, groups, channels = x.shape[:3]
    outs, terms, places = w.shape[1], math.prod(window), math.prod(space)
    if terms > places:
        row_bytes = x.itemsize * groups * n * places * (terms // window[0])
        rank = 3 + len(window)
        order = (1, 0, *range(rank, rank + len(space)), *range(2, rank))
        total: Any = 0
        for i, k in _blocks(channels, window[0], row_bytes):
            lines = windows[:, :, i, k].transpose(order).reshape(groups, n * places, -1)
            total = total + np.matmul(lines, w[:, :, i, k].reshape(groups, outs, -1).mT)
        out[...] = np.moveaxis(total.reshape(groups, n, *space, outs), (0, 1, -1), (1, 0, 2))
        return
    matrix = w.reshape(groups, outs, -1)  # [group, o, i and window]
    rows = space[0] if space else 1
    row_bytes = x.itemsize * groups * channels * terms * (places // rows)
    for lanes, chosen in _blocks(n, rows, row_bytes):
        block: Any = (lanes, ..., chosen, *(slice(None),) * (len(space) - 1)) if space else (lanes,)
        part, target = windows[block], out[block]
        columns = part.reshape(len(part), groups, matrix.shape[2], -1)
        target[...] = np.matmul(matrix, columns).reshape(target.shape)


def _blocks(outer: int, inner: int, inner_bytes: int) -> Iterator[tuple[slice, slice]]:
    """Slices of two extents, of about ``_BLOCK_BYTES`` together, at least one element each."""
    step = max(1, _BLOCK_BYTES // max(inner_bytes, 1))
    for first in range(0, outer, max(1, step // inner)):
        for second in range(0, inner, min(step, inner)):
            yield slice(first, first + max(1, step // inner)), slice(second, second + step)


def _correlate_taps(
    x: Array, w: Any, out: Any, strides: Shape, lows: Shape, spread: Shape, dilation: Shape
) -> None:
    """Add up products with one element of the window after the other.

    For left operands that are spread and for kernels that are not finite: no zero that is put
    between or around elements is a factor. Products that meet the same positions, of those that
    lie apart by the spread, are added up without gaps, for a block of the batch at a time.
    """
    taps = np.moveaxis(w, 2, -1)  # [group, o, window, i]
    phases: dict[Any, list[Any]] = {}
    for tap in np.ndindex(w.shape[3:]):
        met = [
            _met(k * e - low, n, m, s, d)
            for k, e, low, n, m, s, d in zip(
                tap, dilation, lows, x.shape[3:], out.shape[3:], strides, spread, strict=True
            )
        ]
        if all(target.stop > target.start for _, target in met):
            phase = tuple(target.start % target.step for _, target in met)
            phases.setdefault(phase, []).append((tap, met))
    block = max(1, 2 * _BLOCK_BYTES // out[0].nbytes)
    for first in range(0, len(x), block):
        part, whole = x[first : first + block], out[first : first + block]
        for phase, of_phase in phases.items():
            steps = [target.step for _, target in of_phase[0][1]]
            apart = whole[(..., *(slice(p, None, s) for p, s in zip(phase, steps, strict=True)))]
            total = np.zeros(apart.shape, out.dtype)
            for tap, met in of_phase:
                read = part[(..., *(source for source, _ in met))]
                factor = taps[(slice(None), slice(None), *tap)]
                terms = np.matmul(factor, read.reshape(*read.shape[:3], -1))
                within: Any = [slice(t.start // t.step, t.stop // t.step) for _, t in met]
                target = total[(..., *within)]
                target += terms.reshape(target.shape)
            apart[...] = total


def _met(first: int, n: int, positions: int, stride: int, spread: int) -> tuple[slice, slice]:
    """Which elements of an axis are at which positions, as slices of both.

    Element ``q`` is at position ``p`` where ``p * stride + first == q * spread``.
    """
    common = math.gcd(stride, spread)
    step = spread // common
    if first % common:
        return slice(0, 0, 1), slice(0, 0, 1)
    low = -(first // stride)  # the first position that is not before the elements
    start = -(first // common) * pow(stride // common, -1, step) % step
    start += step * max(0, -((start - low) // step))
    stop = min(positions, ((n - 1) * spread - first) // stride + 1)
    count = max(0, -((start - stop) // step))
    source = (start * stride + first) // spread
    return (
        slice(source, source + count * (stride // common), stride // common),
        slice(start, start + count * step, step),
    )


# transposes -------------------------------------------------------------------------------------


def _conv_general_transpose(
    cts: tuple[Array, ...],
    operands: Sequence[Any],
    *,
    strides: Shape,
    padding: Padding,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    feature_group_count: int,
    batch_group_count: int,
) -> tuple[Any, ...]:
    """Cotangent of one operand, as a convolution of the result's cotangent with the other one.

    Left operand: every element receives the cotangents of the positions whose window covers it.
    That is the cotangent, spread by the strides, under the reversed kernel with input and output
    channels exchanged, at the stride that the left operand was spread by. Kernel: an element is
    moved along the left operand by the strides, so that the cotangent acts as a kernel dilated by
    the strides, the batch as channels; or, where fewer zeros are put between elements so, the left
    operand acts as a kernel on the cotangent that was spread by the strides.
    """
    (ct,) = cts
    lhs, rhs = operands
    lhs_shape, rhs_shape, ct_shape = shape_of(lhs), shape_of(rhs), shape_of(ct)
    lhs_extents = list(map(_dilated, lhs_shape[2:], lhs_dilation))
    rhs_extents = list(map(_dilated, rhs_shape[2:], rhs_dilation))
    ct_extents = list(map(_dilated, ct_shape[2:], strides))
    lows = [low for low, _ in padding]
    fronts = [k - low - 1 for k, low in zip(rhs_extents, lows, strict=True)]
    backs = [n + low - p for n, low, p in zip(lhs_extents, lows, ct_extents, strict=True)]
    spread = {"padding": tuple(zip(fronts, backs, strict=True)), "lhs_dilation": strides}
    if is_linear(lhs):
        out = _pull_lhs(
            ct,
            rhs,
            lhs_shape,
            feature_group_count,
            batch_group_count,
            strides=lhs_dilation,
            rhs_dilation=rhs_dilation,
            **spread,
        )
        return (cast(out, lhs.aval.dtype), None)
    rank = len(ct_shape)
    swap = (1, 0, *range(2, rank))
    turned_lhs, turned_ct = transpose(lhs, swap), transpose(ct, swap)
    counts = {
        "feature_group_count": batch_group_count,
        "batch_group_count": feature_group_count,
    }
    if batch_group_count == 1 and math.prod(lhs_dilation) > math.prod(strides):
        # [o, (group, i), elements from the last to the first]
        out = bind(
            conv_general_p,
            turned_ct,
            turned_lhs,
            strides=rhs_dilation,
            rhs_dilation=lhs_dilation,
            **counts,
            **spread,
        )[0]
        out = _exchange_channels(transpose(out, swap), feature_group_count)
        return (None, cast(reverse(out, range(2, rank)), rhs.aval.dtype))
    backs = [
        p + k - n - low - 1
        for n, k, p, low in zip(lhs_extents, rhs_extents, ct_extents, lows, strict=True)
    ]
    out = bind(
        conv_general_p,
        turned_lhs,
        turned_ct,
        strides=rhs_dilation,
        padding=tuple(zip(lows, backs, strict=True)),
        lhs_dilation=lhs_dilation,
        rhs_dilation=strides,
        **counts,
    )[0]
    return (None, cast(transpose(out, swap), rhs.aval.dtype))


def _pull_lhs(
    ct: Array,
    rhs: Array,
    shape: Shape,
    feature_groups: int,
    batch_groups: int,
    **window: tuple[Any, ...],
) -> Array:
    """The cotangent of the left operand, of a shape; see ``_conv_general_transpose``."""
    groups = feature_groups * batch_groups
    kernel = _exchange_channels(reverse(rhs, range(2, len(shape))), groups)
    counts = {"feature_group_count": groups, "batch_group_count": 1}
    out = bind(conv_general_p, ct, kernel, **counts, **window)[0]
    if batch_groups == 1:
        return out
    split = reshape(out, (shape_of(out)[0], groups, *shape[1:]))  # [n, (group, i)]
    return reshape(moveaxis(split, 1, 0), shape)  # [(group, n), i]


def _exchange_channels(rhs: Array, groups: int) -> Array:
    """A kernel ``[(group, o), i, space]`` as ``[(group, i), o, space]``."""
    shape = shape_of(rhs)
    rank = len(shape)
    if groups == 1:
        return transpose(rhs, (1, 0, *range(2, rank)))
    outs, ins = shape[0] // groups, shape[1]
    split = reshape(rhs, (groups, outs, *shape[1:]))
    return reshape(
        transpose(split, (0, 2, 1, *range(3, rank + 1))), (groups * ins, outs, *shape[2:])
    )


# batching ---------------------------------------------------------------------------------------


def _conv_general_batch(
    size: int,
    operands: Sequence[Array],
    dims: Sequence[int | None],
    *,
    feature_group_count: int,
    batch_group_count: int,
    **window: tuple[Any, ...],
) -> tuple[Any, Any]:
    """A batch of convolutions as one: the batch axis joins the batch or the channels."""
    lhs, rhs = (
        x if dim is None else moveaxis(x, dim, 0) for x, dim in zip(operands, dims, strict=True)
    )
    groups = feature_group_count * batch_group_count
    own_lhs, own_rhs = (
        shape_of(x)[dim is not None :] for x, dim in zip((lhs, rhs), dims, strict=True)
    )
    shape = _conv_shape(own_lhs, own_rhs, batch_group_count=batch_group_count, **window)
    if not size:
        return (np.zeros((0, *shape), np.result_type(dtype_of(lhs), dtype_of(rhs))),), (0,)
    counts = {"feature_group_count": feature_group_count, "batch_group_count": batch_group_count}
    if dims[0] is not None and dims[1] is not None:
        # Groups [(batch, group)]; without groups the batch is the groups of the channels.
        name = "batch_group_count" if batch_group_count > 1 else "feature_group_count"
        counts[name] *= size
        if batch_group_count == 1:
            lhs = moveaxis(lhs, 0, 1)
        lhs = _join(lhs, 0 if batch_group_count > 1 else 1)
        out = bind(conv_general_p, lhs, _join(rhs, 0), **counts, **window)[0]
        return (reshape(out, (shape[0], size, *shape[1:])),), (1,)
    if dims[0] is not None:
        # The batch extent is [(group, batch, n)], so that groups stay outermost.
        n = own_lhs[0] // batch_group_count
        split = reshape(lhs, (size, batch_group_count, n, *own_lhs[1:]))
        lhs = reshape(moveaxis(split, 0, 1), (size * own_lhs[0], *own_lhs[1:]))
        out = bind(conv_general_p, lhs, rhs, **counts, **window)[0]
        return (reshape(out, (size, *shape)),), (0,)
    # The output channels are [(group, batch, o)].
    outs = own_rhs[0] // groups
    split = reshape(rhs, (size, groups, outs, *own_rhs[1:]))
    rhs = reshape(moveaxis(split, 0, 1), (size * own_rhs[0], *own_rhs[1:]))
    out = bind(conv_general_p, lhs, rhs, **counts, **window)[0]
    out = moveaxis(reshape(out, (shape[0], groups, size, outs, *shape[2:])), 2, 0)
    return (reshape(out, (size, *shape)),), (0,)


def _join(x: Array, axis: int) -> Array:
    """Merge an axis with the one behind it."""
    shape = shape_of(x)
    return reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def _conv_general_work(lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> Work:
    """Each result sums over one filter: the kernel without its output channels."""
    (out,) = _conv_general_aval(lhs, rhs, **params)
    factor = 8.0 if "c" in (lhs.dtype.kind, rhs.dtype.kind) else 2.0
    return Work(factor * out.size * math.prod(rhs.shape[1:]))


conv_general_p = Primitive(
    "conv_general",
    impl=_conv_general_impl,
    abstract_eval=_conv_general_aval,
    jvp=multilinear,
    transpose=_conv_general_transpose,
    batch=_conv_general_batch,
    lower=Routine(conv_general_lower),
    work=_conv_general_work,
)


# functions --------------------------------------------------------------------------------------


def conv(
    lhs: Any,
    rhs: Array,
    strides: int | Sequence[int] = 1,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    lhs_dilation: int | Sequence[int] = 1,
    rhs_dilation: int | Sequence[int] = 1,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
) -> Array:
    """Correlate over any number of spatial axes, as ``jax.lax.conv_general_dilated``.

    Args:
      lhs: ``[batch, channels, *space]``.
      rhs: kernel, ``[out_channels, channels / feature_group_count, *window]``.
      strides: distance of neighbouring windows, for all spatial axes or for each.
      padding: ``"VALID"`` (none), ``"SAME"`` (the result has ``ceil(extent / stride)``
        positions), or pairs ``(before, after)``; negative numbers crop.
      lhs_dilation: distance of neighbouring elements of ``lhs`` among zeros.
      rhs_dilation: distance of neighbouring elements of the kernel.
      feature_group_count: groups of channels convolved apart.
      batch_group_count: groups of the batch convolved apart, with their own output channels.

    Returns:
      ``[batch / batch_group_count, out_channels, *positions]``, of NumPy's common dtype.

    Raises:
      ShapeError: shapes, groups or the number of entries per axis do not fit.
      ValueError: ``padding`` is an unknown word, or ``"SAME"`` together with ``lhs_dilation``.
    """
    lhs_shape, rhs_shape = shape_of(lhs), shape_of(rhs)
    rank = max(len(lhs_shape) - 2, 0)
    steps, spread, dilation = (
        _per_axis(value, rank) for value in (strides, lhs_dilation, rhs_dilation)
    )
    if isinstance(padding, str):
        pads = _named_padding(padding, lhs_shape, rhs_shape, steps, spread, dilation)
    else:
        pads = tuple((operator.index(low), operator.index(high)) for low, high in padding)
    params = {
        "strides": steps,
        "padding": pads,
        "lhs_dilation": spread,
        "rhs_dilation": dilation,
        "feature_group_count": operator.index(feature_group_count),
        "batch_group_count": operator.index(batch_group_count),
    }
    if type(lhs) is np.ndarray and type(rhs) is np.ndarray:  # a trace checks by itself
        _conv_general_aval(aval_of(lhs), aval_of(rhs), **params)  # type: ignore[arg-type]  # arrays
    return bind(conv_general_p, lhs, rhs, **params)[0]


def _per_axis(value: int | Sequence[int], rank: int) -> Shape:
    """One number for each spatial axis."""
    if isinstance(value, Sequence):
        return tuple(map(operator.index, value))
    return (operator.index(value),) * rank


def _named_padding(
    name: str, lhs: Shape, rhs: Shape, strides: Shape, spread: Shape, dilation: Shape
) -> Padding:
    """Pairs for a named padding."""
    if name.upper() == "VALID":
        return ((0, 0),) * len(strides)
    if name.upper() != "SAME":
        raise ValueError(
            f"conv: padding={name!r}; expected 'SAME', 'VALID' or pairs (before, after), one per "
            f"spatial axis{here()}"
        )
    if any(d != 1 for d in spread):
        raise ValueError(
            f"conv: padding='SAME' is not defined for lhs_dilation={spread}; give pairs (before, "
            f"after){here()}"
        )
    pads = []
    for n, k, s, e in zip(lhs[2:], rhs[2:], strides, dilation, strict=True):
        total = max((-(-n // s) - 1) * s + _dilated(k, e) - n, 0)
        pads.append((total // 2, total - total // 2))
    return tuple(pads)


def convolve(a: Operand, v: Any, mode: str = "full") -> Any:
    """Convolution of two vectors, as ``np.convolve``.

    Args:
      a: ``[n]``.
      v: ``[m]``.
      mode: ``"full"`` (``n + m - 1`` results), ``"same"`` (``max(n, m)``) or ``"valid"``
        (``|n - m| + 1``).

    Raises:
      ShapeError: an operand is no vector, or empty.
      ValueError: the mode is unknown.
    """
    a, v = _vectors("convolve", a, v)
    if shape_of(a)[0] < shape_of(v)[0]:
        a, v = v, a
    return _slide("convolve", a, reverse(v, (0,)), mode)


def correlate(a: Array, v: Array, mode: str = "valid") -> Array:
    """Correlation of two vectors, the second one conjugated, as ``np.correlate``.

    Args:
      a: ``[n]``.
      v: ``[m]``.
      mode: as for :func:`convolve`.

    Raises:
      ShapeError: an operand is no vector, or empty.
      ValueError: the mode is unknown.
    """
    a, v = _vectors("correlate", a, v)
    if shape_of(a)[0] >= shape_of(v)[0]:
        return _slide("correlate", a, conjugate(v), mode)
    return reverse(_slide("correlate", conjugate(v), a, mode), (0,))


def _vectors(name: str, a: Operand, v: Operand) -> tuple[Any, Any]:
    """Both operands with one axis; scalars are vectors of one element."""
    shapes = [shape_of(x) or (1,) for x in (a, v)]
    if any(len(shape) != 1 or not shape[0] for shape in shapes):
        raise ShapeError(
            f"{name}: operands of shapes {shape_of(a)} and {shape_of(v)}; both must be vectors of "
            f"at least one element{here()}"
        )
    a, v = (reshape(x, shape) for x, shape in zip((a, v), shapes, strict=True))
    return a, v


def _slide(name: str, a: Operand, kernel: Array, mode: str) -> Array:
    """Correlate a vector with a kernel that is not longer."""
    n = shape_of(kernel)[0]
    pads = {"full": (n - 1, n - 1), "same": (n // 2, n - 1 - n // 2), "valid": (0, 0)}.get(mode)
    if pads is None:
        raise ValueError(f"{name}: mode={mode!r}; expected 'full', 'same' or 'valid'{here()}")
    lhs, rhs = (reshape(x, (1, 1, *shape_of(x))) for x in (a, kernel))
    return reshape(conv(lhs, rhs, padding=(pads,)), (shape_of(a)[0] - n + 1 + sum(pads),))


PRIMITIVES: tuple[Primitive, ...] = (conv_general_p,)
