"""Convolutions and pooling, one node each.

Not here: other layers (``nn.layers``), the classes (``nn.modules``).

Layer: ``compat``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.autograd.methods.rows import form
from functrans.autograd.programs import Operation
from functrans.autograd.sizes import integer, wrong_type
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn.activations import check_tensor, short_dtype
from functrans.compat.torch.nn.layers import padded
from functrans.control.custom_rules import stop_gradient
from functrans.core.dispatch import bind, shape_of
from functrans.core.values import Array
from functrans.primitives import convolution, movement, structural
from functrans.primitives import torch_elementwise as te
from functrans.primitives.elementwise import maximum
from functrans.primitives.indexing import gather
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.sparse.products import csr_matmul
from functrans.primitives.structural import copy_p

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
    "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices",
]  # fmt: skip

# convolutions ------------------------------------------------------------------------------------


_LEAST = {
    "kernel_size": (1, "kernel size should be greater than zero"),
    "stride": (1, "non-positive stride is not supported, stride should be greater than zero"),
    "dilation": (1, "dilation should be greater than zero"),
    "padding": (0, "negative padding is not supported, pad must be non-negative"),
    "output_padding": (0, "negative output_padding is not supported"),
    "groups": (1, "non-positive groups is not supported"),
}
"""The least that functions take, and what PyTorch says of less."""


def per_axis(value: Any, n: int, argument: str, name: str = "") -> tuple[int, ...]:
    """One number for each of ``n`` axes.

    Args:
      value: a number for all, or several.
      n: how many.
      argument: its name.
      name: of the function; without it, in modules, sizes are not looked at, and truth values count
        as numbers.

    Raises:
      TypeError: a number is no integer.
      RuntimeError: it is too small, or there are more or fewer.
    """
    least, words = _LEAST.get(argument, (0, f"{argument} must be non-negative"))
    if type(value) is int and value >= least:
        return (value,) * n
    several = isinstance(value, (tuple, list))
    found = list(value) if several else [value]
    if not name:
        found = [int(v) if isinstance(v, bool) else v for v in found]
    found = [integer(v, argument, name, "tuple of ints") for v in found]
    if len(found) == 1:
        found *= n
    if len(found) != n:
        raise RuntimeError(
            f"{name}: expected {argument} to be a single integer value or a list of {n} values, "
            f"but got {argument}={found}"
        )
    if name and min(found) < least:
        raise RuntimeError(f"{name}: {words}, but got {argument}={value}")
    return tuple(found)


def _conv(
    x: Array, weight: Array, bias: Array | None, *, stride: tuple[int, ...],
    padding: tuple[tuple[int, int], ...], dilation: tuple[int, ...], groups: int,
) -> Array:  # fmt: skip
    out = convolution.conv(
        x, weight, stride, padding, rhs_dilation=dilation, feature_group_count=groups
    )
    if bias is not None:
        out = out + structural.reshape(bias, shape_of(bias) + (1,) * len(stride))
    return out


def _conv_transpose(
    x: Array, weight: Array, bias: object, *, stride: tuple[int, ...],
    padding: tuple[tuple[int, int], ...], dilation: tuple[int, ...], groups: int,
) -> Array:  # fmt: skip
    n = len(stride)
    cin, cout, *window = shape_of(weight)
    space = tuple(range(3, 3 + n))
    apart = structural.reshape(weight, (groups, cin // groups, cout, *window))
    turned = structural.transpose(movement.reverse(apart, space), (0, 2, 1, *space))
    kernel = structural.reshape(turned, (groups * cout, cin // groups, *window))
    out = convolution.conv(
        x, kernel, 1, padding, lhs_dilation=stride, rhs_dilation=dilation,
        feature_group_count=groups,
    )  # fmt: skip
    if bias is not None:
        out = out + structural.reshape(bias, shape_of(bias) + (1,) * n)
    return out


_CONV = Operation("Convolution", _conv)
_CONV_TRANSPOSE = Operation("Convolution", _conv_transpose)


def _batched(name: str, x: Any, n: int) -> tuple[Any, bool]:
    """An input with a batch axis, and whether one was added."""
    check_tensor(name, "input", 1, x)
    if len(x.shape) == n + 2:
        return x, False
    if len(x.shape) == n + 1:
        return x.unsqueeze(0) if hasattr(x, "unsqueeze") else x.reshape((1, *x.shape)), True
    raise RuntimeError(
        f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of "
        f"size: {list(x.shape)}"
    )


def _unbatched(x: Any, was_added: bool) -> Tensor:
    return x.reshape(x.shape[1:]) if was_added else x


def _pads(
    padding: int | str | Sequence[int],
    window: Sequence[int],
    dilation: Sequence[int],
    stride: Sequence[Any],
    name: str,
) -> tuple[Any, ...]:
    if isinstance(padding, str):
        if padding == "valid":
            return ((0, 0),) * len(window)
        if padding != "same":
            raise RuntimeError(f"Invalid padding string: {padding!r}")
        if any(s != 1 for s in stride):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        total = [d * (k - 1) for d, k in zip(dilation, window, strict=True)]
        return tuple((t // 2, t - t // 2) for t in total)
    return tuple((p, p) for p in per_axis(padding, len(window), "padding", name))


def _direct(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1, *,
    _rank: int = 1,
) -> Tensor:  # fmt: skip
    name = f"conv{_rank}d"
    x, was_added = _batched(name, input, _rank)
    (groups,) = per_axis(groups, 1, "groups", name)
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {list(weight.shape)} instead"
        )
    if x.shape[1] != weight.shape[1] * groups:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected "
            f"input{list(x.shape)} to have {weight.shape[1] * groups} channels, but got "
            f"{x.shape[1]} channels instead"
        )
    if x.dtype != weight.dtype:
        raise RuntimeError(
            f"Input type ({short_dtype(x.dtype)}) and weight type ({short_dtype(weight.dtype)}) "
            "should be the same"
        )
    stride = per_axis(stride, _rank, "stride", name)
    dilation = per_axis(dilation, _rank, "dilation", name)
    window = weight.shape[2:]
    pads = _pads(padding, window, dilation, stride, name)
    for extent, k, d, (low, high) in zip(x.shape[2:], window, dilation, pads, strict=True):
        if extent + low + high < d * (k - 1) + 1:
            size = " x ".join(str(e + a + b) for e, (a, b) in zip(x.shape[2:], pads, strict=True))
            raise RuntimeError(
                f"Calculated padded input size per channel: ({size}). Kernel size: "
                f"({' x '.join(map(str, window))}). Kernel size can't be greater than actual input "
                "size"
            )
    out = _CONV(x, weight, bias, stride=stride, padding=pads, dilation=dilation, groups=groups)
    return _unbatched(out, was_added)


conv1d = form(
    _direct,
    "conv1d",
    """Correlate ``[n, c, l]`` with kernels ``[out, c / groups, k]``.

    Args:
      input: with or without batch axis.
      weight: kernels.
      bias: added to the output channels.
      stride: distance of windows.
      padding: zeros on both sides, or ``"valid"``, ``"same"``.
      dilation: distance of the elements of a kernel.
      groups: groups of channels.

    Raises:
      RuntimeError: shapes or dtypes do not fit.
    """,
)
conv2d = form(
    _direct,
    "conv2d",
    "Correlate ``[n, c, h, w]`` with kernels ``[out, c / groups, kh, kw]``; see ``conv1d``.",
    _rank=2,
)
conv3d = form(_direct, "conv3d", "Correlate in three spatial axes; see ``conv1d``.", _rank=3)


def _transposed(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1,
    dilation: int | Sequence[int] = 1, *, _rank: int = 1,
) -> Tensor:  # fmt: skip
    n, name = _rank, f"conv_transpose{_rank}d"
    x, was_added = _batched(name, input, n)
    (groups,) = per_axis(groups, 1, "groups", name)
    if not math.prod(weight.shape):
        raise RuntimeError(f"non-empty 2D or 4D weight tensor expected, but got: {[*weight.shape]}")
    if x.shape[1] != weight.shape[0]:
        raise RuntimeError(
            f"Given transposed=1, weight of size {list(weight.shape)}, expected "
            f"input{list(x.shape)} to have {weight.shape[0]} channels, but got {x.shape[1]} "
            "channels instead"
        )
    dilation = per_axis(dilation, n, "dilation", name)
    pads = tuple(
        (d * (k - 1) - p, d * (k - 1) - p + extra)
        for d, k, p, extra in zip(
            dilation, weight.shape[2:], per_axis(padding, n, "padding", name),
            per_axis(output_padding, n, "output_padding", name), strict=True,
        )
    )  # fmt: skip
    stride = per_axis(stride, n, "stride", name)
    sizes = [
        (e - 1) * s + low + high - d * (k - 1) + 1
        for e, s, (low, high), d, k in zip(
            x.shape[2:], stride, pads, dilation, weight.shape[2:], strict=True
        )
    ]  # fmt: skip
    if min(sizes) < 1:
        given, made = (" x ".join(map(str, extents)) for extents in (x.shape[2:], sizes))
        raise RuntimeError(
            f"Given input size per channel: ({given}). Calculated output size per channel: "
            f"({made}). Output size is too small"
        )
    out = _CONV_TRANSPOSE(
        x, weight, bias, stride=stride, padding=pads, dilation=dilation, groups=groups
    )
    return _unbatched(out, was_added)


_OF_CONV = "The transpose of ``conv{0}d`` in its input; kernels ``[c, out / groups, {1}]``."
conv_transpose1d = form(_transposed, "conv_transpose1d", _OF_CONV.format(1, "k"))
conv_transpose2d = form(_transposed, "conv_transpose2d", _OF_CONV.format(2, "kh, kw"), _rank=2)
conv_transpose3d = form(_transposed, "conv_transpose3d", _OF_CONV.format(3, "kd, kh, kw"), _rank=3)


# pooling -----------------------------------------------------------------------------------------


def window_counts(
    space: Sequence[int], window: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[int, ...]:
    """How many windows there are along each axis."""
    return tuple(
        (e - d * (k - 1) - 1) // s + 1
        for e, k, s, d in zip(space, window, stride, dilation, strict=True)
    )


def windows_of(
    x: Array, window: tuple[int, ...], stride: tuple[int, ...], dilation: tuple[int, ...]
) -> list[Any]:
    """One array per element of the window: that element of all windows."""
    counts = window_counts(shape_of(x)[-len(window) :], window, stride, dilation)
    parts = []
    for place in itertools.product(*map(range, window)):
        entries = tuple(
            slice(p * d, p * d + s * (m - 1) + 1, s)
            for p, d, s, m in zip(place, dilation, stride, counts, strict=True)
        )
        parts.append(slice_index(x, BasicIndex((Ellipsis, *entries))))
    return parts


def _max_pool(
    x: Array, *, window: tuple[int, ...], stride: tuple[int, ...],
    pads: tuple[tuple[int, int], ...], dilation: tuple[int, ...],
) -> tuple[Array, ...]:  # fmt: skip
    """The largest elements of windows, and their places in the flattened space.

    The largest along the last axis, of these along the one before it, and so on. With each goes its
    number in the window; what follows has larger numbers, so that of equal elements the first is
    found if the number is the largest of those that were larger than all before them.
    """
    n = len(window)
    space = shape_of(x)[-n:]
    reach = [d * (k - 1) for d, k in zip(dilation, window, strict=True)]
    starts = [
        np.arange((e + low + high - r - 1) // s + 1) * s - low
        for e, r, s, (low, high) in zip(space, reach, stride, pads, strict=True)
    ]
    is_float = x.dtype.kind == "f"
    best: Any = padded(stop_gradient(x), pads, -math.inf if is_float else np.iinfo(x.dtype).min)
    dtype = np.min_scalar_type(math.prod(window))
    number: Any = np.zeros(shape_of(best)[-n:], dtype)
    corners: Any = 0
    for i in reversed(range(n)):
        step = math.prod(window[i + 1 :])
        behind = (1,) * (n - 1 - i)
        first = starts[i].reshape(-1, *behind)
        along = (window[i], *behind), (stride[i], *behind), (dilation[i], *behind)
        # Copied, since each is read three times, and four to six times faster without gaps.
        best, *parts = [bind(copy_p, part)[0] for part in windows_of(best, *along)]
        numbers = windows_of(number, *along)
        # Padding is not taken though all be infinitely small: the first element that is there.
        skipped = -(np.minimum(first, 0) // dilation[i]) * step
        number = numbers[0] + skipped.astype(dtype)
        for j, part in enumerate(parts, 1):
            is_larger = (part > best) | (part != part) if is_float else part > best
            best = maximum(best, part)
            found = structural.cast(is_larger, dtype) * (numbers[j] + dtype.type(j * step))
            number = maximum(number, found)
        corners = corners + first * math.prod(space[i + 1 :])
    offsets = np.zeros((), np.int64)
    for k, d, extent in zip(window, dilation, space, strict=True):
        offsets = offsets[..., None] * extent + np.arange(k) * d
    places = gather(offsets.reshape(-1), (number,), (0,)) + corners
    places = structural.broadcast_to(places, shape_of(best))
    return at_places(x, places, space), places


def at_places(x: Array, places: Array, space: tuple[int, ...]) -> Array:
    """Elements at places of the flattened space."""
    lead = shape_of(x)[: -len(space)]
    return gather(flattened(x), (places + planes(lead, space),), (0,))


def flattened(x: Array) -> Any:
    """All elements along one axis."""
    return structural.reshape(x, (math.prod(shape_of(x)),))


def planes(lead: tuple[int, ...], space: tuple[int, ...]) -> Any:
    """Where the spaces of an array ``[*lead, *space]`` start in its flattened form."""
    return np.arange(math.prod(lead)).reshape(*lead, *(1,) * len(space)) * math.prod(space)


def _window_sums(x: Array, window: tuple[int, ...], stride: tuple[int, ...]) -> Array:
    """Sums over windows, along one axis after the other."""
    n = len(window)
    for i in reversed(range(n)):
        behind = (1,) * (n - 1 - i)
        total, *parts = windows_of(x, (window[i], *behind), (stride[i], *behind), (1, *behind))
        for part in parts:
            total = total + part
        x = total
    return x


def _avg_pool(
    x: Array, *, window: tuple[int, ...], stride: tuple[int, ...],
    pads: tuple[tuple[int, int], ...], divisor: Any,
    counted: tuple[int, ...],
) -> Array:  # fmt: skip
    total = _window_sums(padded(x, pads, 0.0), window, stride)
    if divisor is not None:
        return _divided(total, divisor)
    space = shape_of(x)[-len(window) :]
    inside = np.pad(np.ones(space), [(c, c) for c in counted], constant_values=1.0)
    rest = [(low - c, high - c) for (low, high), c in zip(pads, counted, strict=True)]
    inside = np.pad(inside, rest)
    counts = _window_sums(inside, window, stride)
    return _divided(total, structural.cast(counts, total.dtype))


def _divided(total: Any, count: Any) -> Any:
    """Means; those of integers are rounded towards 0."""
    if total.dtype.kind == "i":
        return te.sign(total) * (te.absolute(total) // count)
    return total / (float(count) if isinstance(count, int) else count)


_MAX_POOL = Operation("MaxPool2DWithIndices", _max_pool)
_AVG_POOL = Operation("AvgPool2D", _avg_pool)


def _pool_arguments(
    name: str,
    x: Tensor,
    n: int,
    window: object,
    stride: object,
    padding: int | str | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool,
) -> tuple[Any, ...]:
    """Window, stride, pads and dilation per axis."""
    check_tensor(name, "input", 1, x)
    if len(x.shape) not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D or {n + 2}D (batch mode) tensor for input with optional 0 dim "
            f"batch size, but got: {list(x.shape)}"
        )
    window = per_axis(window, n, "kernel_size", name)
    stride = window if stride in (None, (), []) else per_axis(stride, n, "stride", name)
    padding = per_axis(padding, n, "padding", name)
    dilation = per_axis(dilation, n, "dilation", name)
    pads = []
    for extent, k, s, p, d in zip(x.shape[-n:], window, stride, padding, dilation, strict=True):
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, "
                f"kernel_size={k} and dilation={d}"
            )
        reach = d * (k - 1) + 1
        room = extent + 2 * p - reach
        count = (-(-room // s) if ceil_mode else room // s) + 1
        if count < 1:
            raise RuntimeError(
                f"Given input size: ({'x'.join(map(str, x.shape[-n - 1 :]))}). Calculated output "
                "size is too small"
            )
        high = p
        if ceil_mode:
            count -= (count - 1) * s >= extent + p
            high = max(p, (count - 1) * s + reach - extent - p)
        if d > extent and any(s * i < p and (s * i - p) % d >= extent for i in range(count)):
            raise RuntimeError(
                f"{name}: windows of {k} elements at distance {d} lie in the padding of {p} alone, "
                f"beside an axis of {extent}; they have no largest element"
            )
        pads.append((p, high))
    return window, stride, tuple(pads), dilation


def _max_pooled(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, ceil_mode: bool = False,
    return_indices: bool = False, *, _rank: int = 1, _has_places: bool = False,
) -> Any:  # fmt: skip
    window, strides, pads, dilations = _pool_arguments(
        f"max_pool{_rank}d", input, _rank, kernel_size, stride, padding, dilation, ceil_mode
    )
    out, places = _MAX_POOL(input, window=window, stride=strides, pads=pads, dilation=dilations)
    return (out, places) if return_indices or _has_places else out


max_pool1d = form(
    _max_pooled,
    "max_pool1d",
    """The largest element of windows of ``[n, c, l]``; of equal ones the first gets the gradient.

    Args:
      input: with or without batch axis.
      kernel_size: extent of the windows.
      stride: their distance, by default their extent.
      padding: elements on both sides that never are the largest.
      dilation: distance of the elements of a window.
      ceil_mode: whether windows may reach beyond the end.
      return_indices: whether to return ``(values, places)``.

    Raises:
      RuntimeError: the windows do not fit.
    """,
)
_LARGEST = "The largest element of windows of ``[n, c, {}]``; see ``max_pool1d``."
max_pool2d = form(_max_pooled, "max_pool2d", _LARGEST.format("h, w"), _rank=2)
max_pool3d = form(_max_pooled, "max_pool3d", _LARGEST.format("d, h, w"), _rank=3)
max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = (
    form(
        _max_pooled, f"max_pool{n}d_with_indices", f"``max_pool{n}d`` with the places.",
        _rank=n, _has_places=True,
    )
    for n in (1, 2, 3)
)  # fmt: skip


def _avg_pooled(
    input: Tensor, kernel_size: int | Sequence[int], stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0, ceil_mode: bool = False, count_include_pad: bool = True,
    divisor_override: int | None = None, *, _rank: int = 1,
) -> Tensor:  # fmt: skip
    window, strides, pads, _ = _pool_arguments(
        f"avg_pool{_rank}d", input, _rank, kernel_size, stride, padding, 1, ceil_mode
    )
    if input.dtype.kind in "iubc" and input.dtype != np.int64:
        kernel = "avg_pool3d_out_frame" if _rank == 3 else "avg_pool2d"
        # torch's class and words: its means are of floating numbers, and of int64
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{short_dtype(input.dtype)}'")
    divisor = divisor_override
    if divisor is not None:
        divisor = integer(divisor, "divisor_override", f"avg_pool{_rank}d")
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    is_even = not any(low or high for low, high in pads)
    if divisor is None and (is_even or (count_include_pad and not ceil_mode)):
        divisor = math.prod(window)
    counted = tuple(low if count_include_pad else 0 for low, _ in pads)
    return _AVG_POOL(
        input, window=window, stride=strides, pads=pads, divisor=divisor, counted=counted
    )


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: int | Sequence[int] | None = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Means of windows of ``[n, c, l]``.

    Args:
      input: with or without batch axis.
      kernel_size: extent of the windows.
      stride: their distance, by default their extent.
      padding: zeros on both sides.
      ceil_mode: whether windows may reach beyond the end.
      count_include_pad: whether these zeros count.

    Raises:
      RuntimeError: the windows do not fit.
    """
    return _avg_pooled(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


_MEANS = "Means of windows of ``[n, c, {}]``; see ``avg_pool1d``."
avg_pool2d = form(_avg_pooled, "avg_pool2d", _MEANS.format("h, w"), _rank=2)
avg_pool3d = form(_avg_pooled, "avg_pool3d", _MEANS.format("d, h, w"), _rank=3)


def adaptive_windows(extent: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The elements of as many windows as asked for, which together cover an axis.

    Returns:
      Their places ``[size, widest]``, the last one of a window repeated, and how many they are.
    """
    bounds = np.arange(size + 1) * extent
    starts, stops = bounds[:-1] // size, -(-bounds[1:] // size)
    counts = stops - starts
    places = starts[:, None] + np.arange(counts.max(initial=0))
    return np.minimum(places, stops[:, None] - 1), counts


def _adaptive_avg(x: Array, *, sizes: tuple[int, ...]) -> Array:
    counts: Any = 1
    for axis, size in enumerate(sizes, len(shape_of(x)) - len(sizes)):
        shape = shape_of(x)
        extent, outer, inner = shape[axis], math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        if size and extent % size == 0:
            x = structural.reshape(x, (*shape[:axis], size, extent // size, *shape[axis + 1 :]))
            x = structural.reduce_sum(x, (axis + 1,))
            counts = counts * (extent // size)
            continue
        # Uneven windows are rows of a sparse matrix of ones, a block for each of what is before
        # the axis: a NaN stays in its windows.
        places, own = adaptive_windows(extent, size)
        columns = places[np.arange(places.shape[1]) < own[:, None]]
        blocks = np.arange(outer)[:, None]
        columns = (columns + extent * blocks).reshape(-1)
        pointers = np.append(0, np.cumsum(np.tile(own, outer)))
        short = np.int32 if max(len(columns), outer * extent) < 1 << 31 else np.int64
        columns, pointers = columns.astype(short), pointers.astype(short)
        lines = structural.reshape(x, (outer * extent, inner))
        ones = np.ones(len(columns), x.dtype)
        x = csr_matmul(ones, columns, pointers, (outer * size, outer * extent), lines)
        x = structural.reshape(x, (*shape[:axis], size, *shape[axis + 1 :]))
        counts = counts * own.astype(x.dtype).reshape(-1, *(1,) * (len(shape) - 1 - axis))
    return x / counts


_ADAPTIVE_AVG = Operation("AdaptiveAvgPool2D", _adaptive_avg)


def _adaptive_sizes(x: Tensor, output_size: Any, n: int, name: str) -> tuple[int, ...]:
    given = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    if output_size is None or (n == 1 and None in given):
        raise wrong_type(None, "output_size", name, "tuple of ints")
    if len(given) != n:
        raise RuntimeError(f"{name}: output_size must be {n} numbers, but got {list(given)}")
    words = "elements of output_size must be greater than or equal to 0 but received {}"
    return tuple(
        x.shape[i - n] if k is None else integer(k, "output_size", name, "tuple of ints", 0, words)
        for i, k in enumerate(given)
    )


def _adaptive_mean(input: Tensor, output_size: int | Sequence[int], *, _rank: int = 1) -> Tensor:
    sizes = _adaptive_sizes(input, output_size, _rank, f"adaptive_avg_pool{_rank}d")
    return _ADAPTIVE_AVG(input, sizes=sizes)


SPACES = ("l", "h, w", "d, h, w")
"""The spatial axes of one, two and three dimensions."""
adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = (
    form(
        _adaptive_mean, f"adaptive_avg_pool{n}d",
        f"Means of as many windows as asked for, of ``[n, c, {space}]``.", _rank=n,
    )
    for n, space in enumerate(SPACES, 1)
)  # fmt: skip
