"""Pooling beyond the usual and norms of channels as modules.

Here: functions with settings, and ``ConvTranspose3d``. Not here: what they compute
(``nn.pooling``), the usual ones (``nn.convolution_modules``), what their classes are made
of (``nn.module_rows``).

Layer: ``compat``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.convolution_modules import (
    WINDOW,
    AvgPool2d,
    _MaxPool,
    _TransposedConv,
    per_axis_settings,
    stride_or_window,
)
from functrans.compat.torch.nn.module_rows import Applied

__all__ = [
    "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool3d",
    "ConvTranspose3d", "LPPool1d", "LPPool2d", "LPPool3d", "LocalResponseNorm", "MaxPool3d",
    "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip


class _AdaptiveMaxPool(Applied, shown="output_size={0.output_size}"):
    """The largest elements of as many windows as asked for."""


class _MaxUnpool(Applied, settings="kernel_size stride padding", takes="input indices output_size"):
    """Elements put back where windows had their largest."""


def _with_float_norm(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def pool(input: Tensor, norm_type: float, *args: object, **settings: object) -> Any:
        return function(input, float(norm_type), *args, **settings)

    return pool


class ConvTranspose3d(_TransposedConv):
    """The transpose of ``Conv3d``."""

    rank = 3
    function = staticmethod(functional.conv_transpose3d)


class MaxPool3d(_MaxPool, function=functional.max_pool3d):
    """The largest element of windows of ``[n, c, d, h, w]``."""


class AvgPool3d(AvgPool2d, function=functional.avg_pool3d, shown=WINDOW, prepare=stride_or_window):
    """Means of windows of ``[n, c, d, h, w]``."""


class AdaptiveAvgPool3d(Applied, function=functional.adaptive_avg_pool3d):
    """Means of as many windows as asked for, of ``[n, c, d, h, w]``."""


class AdaptiveMaxPool1d(_AdaptiveMaxPool, function=functional.adaptive_max_pool1d):
    """The largest elements of as many windows as asked for, of ``[n, c, l]``."""


class AdaptiveMaxPool2d(_AdaptiveMaxPool, function=functional.adaptive_max_pool2d):
    """The largest elements of as many windows as asked for, of ``[n, c, h, w]``."""


class AdaptiveMaxPool3d(_AdaptiveMaxPool, function=functional.adaptive_max_pool3d):
    """The largest elements of as many windows as asked for, of ``[n, c, d, h, w]``."""


class MaxUnpool1d(
    _MaxUnpool, function=functional.max_unpool1d, prepare=functools.partial(per_axis_settings, 1)
):
    """Elements put back where ``MaxPool1d`` found them."""


class MaxUnpool2d(
    _MaxUnpool, function=functional.max_unpool2d, prepare=functools.partial(per_axis_settings, 2)
):
    """Elements put back where ``MaxPool2d`` found them."""


class MaxUnpool3d(
    _MaxUnpool, function=functional.max_unpool3d, prepare=functools.partial(per_axis_settings, 3)
):
    """Elements put back where ``MaxPool3d`` found them."""


class LPPool1d(Applied, function=_with_float_norm(functional.lp_pool1d)):
    """Roots of sums of powers of windows of ``[n, c, l]``."""


class LPPool2d(Applied, function=_with_float_norm(functional.lp_pool2d)):
    """Roots of sums of powers of windows of ``[n, c, h, w]``."""


class LPPool3d(Applied, function=_with_float_norm(functional.lp_pool3d)):
    """Roots of sums of powers of windows of ``[n, c, d, h, w]``."""


class LocalResponseNorm(
    Applied,
    function=functional.local_response_norm,
    shown="{0.size}, alpha={0.alpha}, beta={0.beta}, k={0.k}",
):
    """Values divided by a power of the mean square of neighbouring channels."""
