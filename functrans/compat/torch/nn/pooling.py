"""Pooling beyond the usual: adaptive, by a norm, and back.

Not here: the usual ones and convolutions (``nn.convolutions``), the classes
(``nn.convolution_modules``).

Layer: ``compat``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.autograd.methods.rows import form
from functrans.autograd.programs import Operation
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn.activations import check_tensor
from functrans.compat.torch.nn.convolutions import (
    SPACES,
    _adaptive_sizes,
    adaptive_windows,
    at_places,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    flattened,
    per_axis,
    planes,
)
from functrans.compat.torch.nn.layers import padded
from functrans.control.branches import cond
from functrans.control.custom_rules import stop_gradient
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.values import Array
from functrans.primitives import movement, structural
from functrans.primitives.elementwise import where
from functrans.primitives.indexing import gather, scatter
from functrans.primitives.reduction import argmax, reduce_any
from functrans.primitives.slicing import BasicIndex, slice_index

__all__ = [
    "adaptive_max_pool1d", "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices",
    "local_response_norm", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_unpool1d", "max_unpool2d",
    "max_unpool3d",
]  # fmt: skip

# the largest of as many windows as asked for -----------------------------------------------------


def _adaptive_max(x: Array, *, sizes: tuple[int, ...]) -> tuple[Array, ...]:
    n = len(sizes)
    lead, space = shape_of(x)[:-n], shape_of(x)[-n:]
    windows: Any = np.zeros((1,) * 2 * n, np.int64)
    for i, (extent, size) in enumerate(zip(space, sizes, strict=True)):
        along, _ = adaptive_windows(extent, size)
        ones = (1,) * (n - 1)
        shape = (*ones[:i], size, *ones, along.shape[1], *ones[i:])
        windows = windows * extent + along.reshape(shape)
    if not math.prod(sizes):
        places = np.zeros((*lead, *sizes), np.int64)
        return at_places(x, places, space), places
    windows = windows.reshape(math.prod(sizes), math.prod(windows.shape[n:]))
    rows = structural.reshape(stop_gradient(x), (math.prod(lead), math.prod(space)))
    elements = structural.transpose(gather(rows, (windows,), (1,)), (2, 0, 1))
    number = argmax(elements, -1)
    if x.dtype.kind == "f":  # of several NaN the last one counts, as in PyTorch

        def last(numbers: Array, elements: Array) -> Array:
            is_nan = elements != elements
            behind = argmax(movement.reverse(is_nan, (2,)), -1)
            has_nan = reduce_any(is_nan, (2,))
            return where(has_nan, windows.shape[1] - 1 - behind, numbers)

        has_nan = reduce_any(rows != rows, (0, 1))
        number = cond(has_nan, last, lambda numbers, _: numbers, number, elements)
    at = number + np.arange(len(windows)) * windows.shape[1]
    places = structural.reshape(gather(windows.reshape(-1), (at,), (0,)), (*lead, *sizes))
    return at_places(x, places, space), places


_ADAPTIVE_MAX = Operation("AdaptiveMaxPool2D", _adaptive_max)


def _adaptive_maxed(
    input: Tensor, output_size: int | Sequence[int], return_indices: bool = False, *,
    _rank: int = 1, _has_places: bool = False,
) -> Any:  # fmt: skip
    name = f"adaptive_max_pool{_rank}d"
    check_tensor(name, "input", 1, input)
    out, places = _ADAPTIVE_MAX(input, sizes=_adaptive_sizes(input, output_size, _rank, name))
    return (out, places) if return_indices or _has_places else out


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = (
    form(
        _adaptive_maxed, f"adaptive_max_pool{n}d",
        f"The largest elements of as many windows as asked for, of ``[n, c, {space}]``.", _rank=n,
    )
    for n, space in enumerate(SPACES, 1)
)  # fmt: skip
(
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d_with_indices,
) = (
    form(
        _adaptive_maxed, f"adaptive_max_pool{n}d_with_indices",
        f"``adaptive_max_pool{n}d`` with the places.", _rank=n, _has_places=True,
    )
    for n in (1, 2, 3)
)  # fmt: skip


# back --------------------------------------------------------------------------------------------


def _unpooled(x: Any, places: Any, *, space: tuple[int, ...], is_checked: bool) -> Any:
    lead, size = shape_of(x)[: -len(space)], math.prod(space)
    if is_checked:
        index: tuple[Array, ...] = (flattened(places + planes(lead, space)),)
    else:  # the program raises where a place is outside of its plane
        place = flattened(where(places < 0, size, places))
        row = structural.broadcast_to(planes(lead, space) // max(size, 1), shape_of(places))
        index = (flattened(row), place)
    shape = (math.prod(lead), size) if len(index) == 2 else (math.prod(lead) * size,)
    zeros = np.zeros(shape, x.dtype)
    out = scatter(zeros, flattened(x), index, tuple(range(len(index))), "set")
    return structural.reshape(out, (*lead, *space))


_UNPOOL = Operation("MaxUnpool2D", _unpooled)


def _unpool(
    input: Tensor, indices: Tensor, kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    output_size: int | Sequence[int] | None = None, *, _rank: int = 1,
) -> Tensor:  # fmt: skip
    n, name = _rank, f"max_unpool{_rank}d"
    window, pads = per_axis(kernel_size, n, "kernel_size"), per_axis(padding, n, "padding")
    strides = window if stride is None else per_axis(stride, n, "stride")
    usual = tuple(
        (e - 1) * s + k - 2 * p
        for e, k, s, p in zip(input.shape[-n:], window, strides, pads, strict=True)
    )
    sizes: Any = output_size
    space = usual if sizes is None else per_axis(sizes[-n:], n, "output_size", name)
    for size, default, s in zip(space, usual, strides, strict=True):
        if not default - s < size < default + s:
            raise ValueError(
                f"invalid output_size {output_size} (dim 0 must be between {default - s} and "
                f"{default + s})"
            )
    places: Any = indices._value
    if places.dtype.kind not in "iu":
        raise RuntimeError(f"elements in indices should be type int64 but got: {places.dtype}")
    is_checked = not isinstance(places, Tracer)
    if is_checked:
        outside = places.view(f"u{places.itemsize}") >= math.prod(space)  # negative ones are large
        if outside.any():
            raise RuntimeError(
                f"Found an invalid max index: {int(places[outside][0])} (output volumes are of "
                f"size {'x'.join(map(str, space))})"
            )
    return _UNPOOL(input, indices, space=space, is_checked=is_checked)


max_unpool1d = form(
    _unpool,
    "max_unpool1d",
    """Elements put back where ``max_pool1d`` found them, among zeros.

    Of several at one place the last one counts, and only it has a gradient (in PyTorch all of them
    have).

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
    """,
)
_BACK = "Elements put back where ``max_pool{}d`` found them; see ``max_unpool1d``."
max_unpool2d = form(_unpool, "max_unpool2d", _BACK.format(2), _rank=2)
max_unpool3d = form(_unpool, "max_unpool3d", _BACK.format(3), _rank=3)


# norms -------------------------------------------------------------------------------------------


def _lp_pool(
    input: Tensor, norm_type: float, kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None, ceil_mode: bool = False, *, _rank: int = 1,
) -> Tensor:  # fmt: skip
    window = per_axis(kernel_size, _rank, "kernel_size", f"lp_pool{_rank}d")
    x: Any = input
    mean: Any = (avg_pool1d, avg_pool2d, avg_pool3d)[_rank - 1](
        x.pow(norm_type), window, stride, 0, ceil_mode
    )
    positive = mean.sign() * mean.abs().relu()
    return (positive * float(math.prod(window))).pow(1.0 / norm_type)


lp_pool1d, lp_pool2d, lp_pool3d = (
    form(
        _lp_pool, f"lp_pool{n}d", f"Roots of sums of powers of windows of ``[n, c, {space}]``.",
        _rank=n,
    )
    for n, space in enumerate(SPACES, 1)
)  # fmt: skip


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
    (size,) = per_axis(size, 1, "kernel_size", "local_response_norm")
    return _RESPONSE(input, size=size, alpha=float(alpha), beta=float(beta), k=float(k))
