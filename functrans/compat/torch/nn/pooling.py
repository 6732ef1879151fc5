"""Pooling beyond the usual: in three axes, adaptive, by a norm, and back.

Here: the functional forms. Not here: the usual ones and convolutions (``nn.convolutions``), the
classes (``nn.pooling_modules``).

Layer: ``compat``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.autograd.programs import Operation
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn.activations import check_tensor
from functrans.compat.torch.nn.convolutions import (
    _ADAPTIVE_AVG,
    _adaptive_sizes,
    _avg_pooled,
    _max_pooled,
    _transposed,
    avg_pool1d,
    avg_pool2d,
    flattened,
    largest,
    per_axis,
    planes,
)
from functrans.compat.torch.nn.layers import _take, padded
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.values import Array
from functrans.primitives import structural
from functrans.primitives.indexing import scatter
from functrans.primitives.slicing import BasicIndex, slice_index

__all__ = [
    "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices", "avg_pool3d", "conv_transpose3d", "local_response_norm",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d_with_indices", "max_pool2d_with_indices",
    "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | str | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Tensor:
    """The transpose of ``conv3d`` in its input; kernels ``[c, out / groups, kd, kh, kw]``."""
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


def max_pool3d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of windows of ``[n, c, d, h, w]``; see ``max_pool1d``."""
    return _max_pooled(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """``max_pool1d`` with the places."""
    return _max_pooled(1, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """``max_pool2d`` with the places."""
    return _max_pooled(2, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | str | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """``max_pool3d`` with the places."""
    return _max_pooled(3, input, kernel_size, stride, padding, dilation, ceil_mode, True)


def avg_pool3d(
    input: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | str | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """Means of windows of ``[n, c, d, h, w]``; see ``avg_pool1d``."""
    return _avg_pooled(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Means of as many windows as asked for, of ``[n, c, d, h, w]``."""
    return _ADAPTIVE_AVG(input, sizes=_adaptive_sizes(input, output_size, 3))


# the largest of as many windows as asked for -----------------------------------------------------


def _adaptive_max(x: Array, *, sizes: tuple[int, ...]) -> tuple[Array, ...]:
    space = shape_of(x)[-len(sizes) :]
    starts = [np.arange(m) * e // m for m, e in zip(sizes, space, strict=True)]
    stops = [-(-np.arange(1, m + 1) * e // m) for m, e in zip(sizes, space, strict=True)]
    widest = [int((b - a).max(initial=1)) for a, b in zip(starts, stops, strict=True)]

    def along(y: Array, i: int) -> list[Any]:
        places = [starts[i] + j for j in range(widest[i])]
        axis = len(shape_of(y)) - len(sizes) + i
        return [_take(y, np.where(p < stops[i], p, space[i]), axis) for p in places]

    ones = (1,) * len(sizes)
    return largest(x, [(0, 1) for _ in sizes], starts, widest, ones, along)


_ADAPTIVE_MAX = Operation("AdaptiveMaxPool2D", _adaptive_max)


def _adaptive_maxed(
    n: int, input: Tensor, output_size: int | Sequence[int], return_indices: bool
) -> Any:
    check_tensor(f"adaptive_max_pool{n}d", "input", 1, input)
    out, places = _ADAPTIVE_MAX(input, sizes=_adaptive_sizes(input, output_size, n))
    return (out, places) if return_indices else out


def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> Any:
    """The largest elements of as many windows as asked for, of ``[n, c, l]``."""
    return _adaptive_maxed(1, input, output_size, return_indices)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Tensor:
    """The largest elements of as many windows as asked for, of ``[n, c, h, w]``."""
    return _adaptive_maxed(2, input, output_size, return_indices)


def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> Any:
    """The largest elements of as many windows as asked for, of ``[n, c, d, h, w]``."""
    return _adaptive_maxed(3, input, output_size, return_indices)


def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> Any:
    """``adaptive_max_pool1d`` with the places."""
    return _adaptive_maxed(1, input, output_size, True)


def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> Any:
    """``adaptive_max_pool2d`` with the places."""
    return _adaptive_maxed(2, input, output_size, True)


def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False
) -> Any:
    """``adaptive_max_pool3d`` with the places."""
    return _adaptive_maxed(3, input, output_size, True)


# back --------------------------------------------------------------------------------------------


def _unpooled(x: Any, places: Any, *, space: tuple[int, ...]) -> Any:
    lead = shape_of(x)[: -len(space)]
    zeros = np.zeros(math.prod(lead + space), x.dtype)
    index = flattened(places + planes(lead, space))
    return structural.reshape(scatter(zeros, flattened(x), (index,), (0,), "set"), (*lead, *space))


_UNPOOL = Operation("MaxUnpool2D", _unpooled)


def _unpool(
    n: int,
    input: Any,
    indices: Any,
    window: object,
    stride: Any,
    padding: int | str | Sequence[int],
    output_size: Any,
) -> Tensor:
    window = per_axis(window, n)
    stride = window if stride is None else per_axis(stride, n)
    padding = per_axis(padding, n)
    usual = tuple(
        (e - 1) * s + k - 2 * p
        for e, k, s, p in zip(input.shape[-n:], window, stride, padding, strict=True)
    )
    space = usual if output_size is None else tuple(int(s) for s in output_size)[-n:]
    for size, default, s in zip(space, usual, stride, strict=True):
        if not default - s < size < default + s:
            raise ValueError(
                f"invalid output_size {output_size} (dim 0 must be between {default - s} and "
                f"{default + s})"
            )
    places = indices._value
    if (
        not isinstance(places, Tracer)
        and places.size
        and not ((places >= 0) & (places < math.prod(space))).all()
    ):
        raise RuntimeError(
            f"Found an invalid max index: {int(places.max())} (output volumes are of size "
            f"{'x'.join(map(str, space))})"
        )
    return _UNPOOL(input, indices, space=space)


def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: int | Sequence[int] | None = None,
    padding: Any = 0,
    output_size: int | Sequence[int] | None = None,
) -> Tensor:
    """Elements put back where ``max_pool1d`` found them, among zeros.

    Args:
      input: results of the pooling.
      indices: their places.
      kernel_size: as in the pooling.
      stride: as in the pooling.
      padding: as in the pooling.
      output_size: extents of the result, where several are possible.

    Raises:
      ValueError: ``output_size`` does not fit.
      RuntimeError: a place does not exist.
    """
    return _unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | str | Sequence[int] = 0,
    output_size: int | Sequence[int] | None = None,
) -> Tensor:
    """Elements put back where ``max_pool2d`` found them; see ``max_unpool1d``."""
    return _unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | str | Sequence[int] = 0,
    output_size: int | Sequence[int] | None = None,
) -> Tensor:
    """Elements put back where ``max_pool3d`` found them; see ``max_unpool1d``."""
    return _unpool(3, input, indices, kernel_size, stride, padding, output_size)


# norms -------------------------------------------------------------------------------------------


def _lp_pool(
    n: int, input: Any, order: float, window: object, stride: object, ceil_mode: bool
) -> Any:
    window = per_axis(window, n)
    pools: Sequence[Any] = (avg_pool1d, avg_pool2d, avg_pool3d)
    mean = pools[n - 1](input.pow(order), window, stride, 0, ceil_mode)
    positive = mean.sign() * mean.abs().relu()
    return (positive * float(math.prod(window))).pow(1.0 / order)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Roots of sums of powers of windows of ``[n, c, l]``."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Roots of sums of powers of windows of ``[n, c, h, w]``."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Roots of sums of powers of windows of ``[n, c, d, h, w]``."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _response(x: Array, *, size: int, alpha: float, beta: float, k: float) -> Array:
    shape = shape_of(x)
    squares = structural.reshape(x * x, (*shape[:2], math.prod(shape[2:])))
    squares = padded(squares, [(size // 2, (size - 1) // 2), (0, 0)], 0.0)
    total: Any = None
    for i in range(size):
        part = slice_index(squares, BasicIndex((slice(None), slice(i, i + shape[1]), slice(None))))
        total = part if total is None else total + part
    total = structural.reshape(total, shape)
    return x / (k + total * (alpha / size)) ** beta


_RESPONSE = Operation("Div", _response)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Values divided by a power of the mean square of neighbouring channels of ``[n, c, *]``.

    Raises:
      ValueError: there are fewer than three axes.
    """
    if len(input.shape) < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {len(input.shape)} dimensions)"
        )
    return _RESPONSE(input, size=int(size), alpha=float(alpha), beta=float(beta), k=float(k))
