"""Pooling beyond the usual and norms of channels as modules.

Here: classes that hold settings. Not here: what they compute (``nn.pooling``), the usual ones
(``nn.convolution_modules``).

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.convolution_modules import (
    AvgPool2d,
    _AdaptivePool,
    _MaxPool,
    _TransposedConv,
)
from functrans.compat.torch.nn.convolutions import per_axis
from functrans.compat.torch.nn.module import Module


class ConvTranspose3d(_TransposedConv):
    """The transpose of ``Conv3d``."""

    rank = 3
    function = staticmethod(functional.conv_transpose3d)


class MaxPool3d(_MaxPool):
    """The largest element of windows of ``[n, c, d, h, w]``."""

    function = staticmethod(functional.max_pool3d)


class AvgPool3d(AvgPool2d):
    """Means of windows of ``[n, c, d, h, w]``."""

    def forward(self, input: Tensor) -> Tensor:
        """The pooling."""
        return functional.avg_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip


class AdaptiveAvgPool3d(_AdaptivePool):
    """Means of as many windows as asked for, of ``[n, c, d, h, w]``."""

    function = staticmethod(functional.adaptive_avg_pool3d)


class _AdaptiveMaxPool(Module):
    function: ClassVar[Callable[..., Any]]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        """The pooling."""
        return type(self).function(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        """The settings."""
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of as many windows as asked for, of ``[n, c, l]``."""

    function = staticmethod(functional.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of as many windows as asked for, of ``[n, c, h, w]``."""

    function = staticmethod(functional.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of as many windows as asked for, of ``[n, c, d, h, w]``."""

    function = staticmethod(functional.adaptive_max_pool3d)


class _MaxUnpool(Module):
    rank: ClassVar[int]
    function: ClassVar[Callable[..., Any]]

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = per_axis(kernel_size, self.rank)
        self.stride = self.kernel_size if stride is None else per_axis(stride, self.rank)
        self.padding = per_axis(padding, self.rank)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        """The elements where they were."""
        return type(self).function(  # type: ignore[no-any-return]  # a tensor
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )

    def extra_repr(self) -> str:
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Elements put back where ``MaxPool1d`` found them."""

    rank = 1
    function = staticmethod(functional.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Elements put back where ``MaxPool2d`` found them."""

    rank = 2
    function = staticmethod(functional.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Elements put back where ``MaxPool3d`` found them."""

    rank = 3
    function = staticmethod(functional.max_unpool3d)


class _LPPool(Module):
    function: ClassVar[Callable[..., Any]]

    def __init__(
        self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """The pooling."""
        return type(self).function(  # type: ignore[no-any-return]  # a tensor
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """Roots of sums of powers of windows of ``[n, c, l]``."""

    function = staticmethod(functional.lp_pool1d)


class LPPool2d(_LPPool):
    """Roots of sums of powers of windows of ``[n, c, h, w]``."""

    function = staticmethod(functional.lp_pool2d)


class LPPool3d(_LPPool):
    """Roots of sums of powers of windows of ``[n, c, d, h, w]``."""

    function = staticmethod(functional.lp_pool3d)


class LocalResponseNorm(Module):
    """Values divided by a power of the mean square of neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """The values."""
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
