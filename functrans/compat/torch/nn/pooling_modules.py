"""Pooling beyond the usual and norms of channels as modules.

Here: rows of functions with settings, and ``ConvTranspose3d``. Not here: what they compute
(``nn.pooling``), the usual ones (``nn.convolution_modules``), what makes the classes of rows
(``nn.module_rows``).

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
    _TransposedConv,
    max_pool_class,
    per_axis_settings,
    stride_or_window,
)
from functrans.compat.torch.nn.module_rows import module_class

_pool = functools.partial(module_class, __name__)
_adaptive_max = functools.partial(_pool, shown="output_size={0.output_size}")


def _unpool(name: str, rank: int, function: Callable[..., Any], summary: str) -> Any:
    return _pool(
        name, function, summary, "kernel_size stride padding",
        takes="input indices output_size", prepare=functools.partial(per_axis_settings, rank),
    )  # fmt: skip


def _lp_pool(name: str, function: Callable[..., Any], summary: str) -> Any:
    @functools.wraps(function)
    def pool(input: Tensor, norm_type: float, *args: Any, **settings: Any) -> Any:
        return function(input, float(norm_type), *args, **settings)

    return _pool(name, pool, summary)


class ConvTranspose3d(_TransposedConv):
    """The transpose of ``Conv3d``."""

    rank = 3
    function = staticmethod(functional.conv_transpose3d)


MaxPool3d = max_pool_class(
    __name__, "MaxPool3d", functional.max_pool3d,
    "The largest element of windows of ``[n, c, d, h, w]``.",
)  # fmt: skip
AvgPool3d = _pool(
    "AvgPool3d", functional.avg_pool3d, "Means of windows of ``[n, c, d, h, w]``.",
    base=AvgPool2d, shown=WINDOW, prepare=stride_or_window,
)  # fmt: skip
AdaptiveAvgPool3d = _pool(
    "AdaptiveAvgPool3d", functional.adaptive_avg_pool3d,
    "Means of as many windows as asked for, of ``[n, c, d, h, w]``.",
)  # fmt: skip
AdaptiveMaxPool1d = _adaptive_max(
    "AdaptiveMaxPool1d", functional.adaptive_max_pool1d,
    "The largest elements of as many windows as asked for, of ``[n, c, l]``.",
)  # fmt: skip
AdaptiveMaxPool2d = _adaptive_max(
    "AdaptiveMaxPool2d", functional.adaptive_max_pool2d,
    "The largest elements of as many windows as asked for, of ``[n, c, h, w]``.",
)  # fmt: skip
AdaptiveMaxPool3d = _adaptive_max(
    "AdaptiveMaxPool3d", functional.adaptive_max_pool3d,
    "The largest elements of as many windows as asked for, of ``[n, c, d, h, w]``.",
)  # fmt: skip
MaxUnpool1d = _unpool(
    "MaxUnpool1d", 1, functional.max_unpool1d, "Elements put back where ``MaxPool1d`` found them."
)
MaxUnpool2d = _unpool(
    "MaxUnpool2d", 2, functional.max_unpool2d, "Elements put back where ``MaxPool2d`` found them."
)
MaxUnpool3d = _unpool(
    "MaxUnpool3d", 3, functional.max_unpool3d, "Elements put back where ``MaxPool3d`` found them."
)
LPPool1d = _lp_pool(
    "LPPool1d", functional.lp_pool1d, "Roots of sums of powers of windows of ``[n, c, l]``."
)
LPPool2d = _lp_pool(
    "LPPool2d", functional.lp_pool2d, "Roots of sums of powers of windows of ``[n, c, h, w]``."
)
LPPool3d = _lp_pool(
    "LPPool3d", functional.lp_pool3d, "Roots of sums of powers of windows of ``[n, c, d, h, w]``."
)
LocalResponseNorm = _pool(
    "LocalResponseNorm", functional.local_response_norm,
    "Values divided by a power of the mean square of neighbouring channels.",
    shown="{0.size}, alpha={0.alpha}, beta={0.beta}, k={0.k}",
)  # fmt: skip
