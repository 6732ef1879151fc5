"""Convolutions and pooling as modules.

Here: classes that hold parameters and settings. Not here: what they compute (``nn.functional``),
``Module`` (``nn.module``).

Layer: ``compat``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.devices import check_device
from functrans.compat.torch.nn import functional, init
from functrans.compat.torch.nn.convolutions import per_axis
from functrans.compat.torch.nn.layer_modules import empty_parameter
from functrans.compat.torch.nn.module import Module

# convolutions and pooling ------------------------------------------------------------------------


class _Conv(Module):
    rank: ClassVar[int]
    is_transposed: ClassVar[bool] = False

    def _set_up(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any,
        dilation: Any, groups: int, bias: bool, padding_mode: str, output_padding: Any, dtype: Any,
    ) -> None:  # fmt: skip
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in ("zeros", "reflect", "replicate", "circular"):
            raise ValueError(
                "padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, but "
                f"got padding_mode='{padding_mode}'"
            )
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string '{padding}', should be one of {{'valid', 'same'}}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_axis(kernel_size, self.rank)
        self.stride = per_axis(stride, self.rank)
        self.padding = padding if isinstance(padding, str) else per_axis(padding, self.rank)
        self.dilation = per_axis(dilation, self.rank)
        self.output_padding = per_axis(output_padding, self.rank)
        self.groups = groups
        self.padding_mode = padding_mode
        first, second = out_channels, in_channels // groups
        if self.is_transposed:
            first, second = in_channels, out_channels // groups
        self.weight = empty_parameter((first, second, *self.kernel_size), dtype)
        if bias:
            self.bias = empty_parameter((out_channels,), dtype)
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan = self.weight.shape[1] * math.prod(self.kernel_size)
            if fan:
                init.uniform_(self.bias, -1 / math.sqrt(fan), 1 / math.sqrt(fan))

    def extra_repr(self) -> str:
        """The settings."""
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        if self.padding != (0,) * self.rank:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self.rank:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self.rank:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _DirectConv(_Conv):
    function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        self._set_up(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, 0, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """The convolution with the parameters."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            if isinstance(padding, str):
                total = [
                    d * (k - 1) if padding == "same" else 0
                    for d, k in zip(self.dilation, self.kernel_size, strict=True)
                ]
                pairs = [(t // 2, t - t // 2) for t in total]
            else:
                pairs = [(p, p) for p in padding]
            flat = [n for pair in reversed(pairs) for n in pair]
            input, padding = functional.pad(input, flat, self.padding_mode), 0
        return type(self).function(  # type: ignore[no-any-return]  # a tensor
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv1d(_DirectConv):
    """Correlation along one spatial axis; see ``functional.conv1d``."""

    rank = 1
    function = staticmethod(functional.conv1d)


class Conv2d(_DirectConv):
    """Correlation along two spatial axes; see ``functional.conv2d``."""

    rank = 2
    function = staticmethod(functional.conv2d)


class Conv3d(_DirectConv):
    """Correlation along three spatial axes; see ``functional.conv3d``."""

    rank = 3
    function = staticmethod(functional.conv3d)


class _TransposedConv(_Conv):
    is_transposed = True
    function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        check_device(device)
        super().__init__()
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self._set_up(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, output_padding, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """The transposed convolution with the parameters."""
        return type(self).function(  # type: ignore[no-any-return]  # a tensor
            input, self.weight, self.bias, self.stride, self.padding, self.output_padding,
            self.groups, self.dilation,
        )  # fmt: skip


class ConvTranspose1d(_TransposedConv):
    """The transpose of ``Conv1d``."""

    rank = 1
    function = staticmethod(functional.conv_transpose1d)


class ConvTranspose2d(_TransposedConv):
    """The transpose of ``Conv2d``."""

    rank = 2
    function = staticmethod(functional.conv_transpose2d)


class _MaxPool(Module):
    function: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        """The pooling."""
        return type(self).function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of windows of ``[n, c, l]``."""

    function = staticmethod(functional.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of windows of ``[n, c, h, w]``."""

    function = staticmethod(functional.max_pool2d)


class AvgPool1d(Module):
    """Means of windows of ``[n, c, l]``."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = per_axis(kernel_size, 1)
        self.stride = self.kernel_size if stride is None else per_axis(stride, 1)
        self.padding = per_axis(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """The pooling."""
        return functional.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(Module):
    """Means of windows of ``[n, c, h, w]``."""

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """The pooling."""
        return functional.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The settings."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptivePool(Module):
    function: ClassVar[Callable[..., Any]]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """The pooling."""
        return type(self).function(input, self.output_size)  # type: ignore[no-any-return]  # a tensor

    def extra_repr(self) -> str:
        """The settings."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptivePool):
    """Means of as many windows as asked for, of ``[n, c, l]``."""

    function = staticmethod(functional.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptivePool):
    """Means of as many windows as asked for, of ``[n, c, h, w]``."""

    function = staticmethod(functional.adaptive_avg_pool2d)


class CosineSimilarity(Module):
    """Cosine of the angle between vectors along an axis."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """The cosine."""
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)
