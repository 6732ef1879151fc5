"""Convolutions and pooling as modules.

Not here: what they compute (``nn.convolutions``, ``nn.pooling``), what their classes are made of
(``nn.module_rows``).

Layer: ``compat``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from functrans.autograd.tensors import Tensor, refuse_device
from functrans.compat.torch.nn import functional, init
from functrans.compat.torch.nn.convolutions import per_axis
from functrans.compat.torch.nn.layer_modules import empty_parameter
from functrans.compat.torch.nn.module import Module
from functrans.compat.torch.nn.module_rows import Applied

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "Conv1d",
    "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CosineSimilarity",
    "LPPool1d", "LPPool2d", "LPPool3d", "LocalResponseNorm", "MaxPool1d", "MaxPool2d", "MaxPool3d",
    "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
]  # fmt: skip

# convolutions ------------------------------------------------------------------------------------


class _ConvNd(Module):
    rank: ClassVar[int]
    function: ClassVar[Callable[..., Any]]
    is_transposed: ClassVar[bool] = False

    def __init_subclass__(cls, rank: int = 0, function: Any = None) -> None:
        super().__init_subclass__()
        if rank:
            cls.rank, cls.function = rank, staticmethod(function)

    def _set_up(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int],
        padding: int | str | Sequence[int],
        dilation: int | Sequence[int],
        groups: int,
        bias: bool,
        padding_mode: str,
        output_padding: int | Sequence[int],
        dtype: object,
    ) -> None:
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
        self.kernel_size = per_axis(kernel_size, self.rank, "kernel_size")
        self.stride = per_axis(stride, self.rank, "stride")
        is_word = isinstance(padding, str)
        self.padding = padding if is_word else per_axis(padding, self.rank, "padding")
        self.dilation = per_axis(dilation, self.rank, "dilation")
        self.output_padding = per_axis(output_padding, self.rank, "output_padding")
        self.groups = groups
        self.padding_mode = padding_mode
        first, second = out_channels, in_channels // groups
        if self.is_transposed:
            first, second = in_channels, out_channels // groups
        self.weight = empty_parameter((first, second, *self.kernel_size), dtype)
        self.register_parameter("bias", empty_parameter((out_channels,), dtype) if bias else None)
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


class _DirectConv(_ConvNd):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: object = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        refuse_device(device)
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
        return type(self).function(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )


class Conv1d(_DirectConv, rank=1, function=functional.conv1d):
    """Correlation along one spatial axis; see ``functional.conv1d``."""


class Conv2d(_DirectConv, rank=2, function=functional.conv2d):
    """Correlation along two spatial axes; see ``functional.conv2d``."""


class Conv3d(_DirectConv, rank=3, function=functional.conv3d):
    """Correlation along three spatial axes; see ``functional.conv3d``."""


class _ConvTransposeNd(_ConvNd):
    is_transposed = True

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1,
        padding: Any = 0, output_padding: Any = 0, groups: int = 1, bias: bool = True,
        dilation: Any = 1, padding_mode: str = "zeros", device: object = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        refuse_device(device)
        super().__init__()
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        self._set_up(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, output_padding, dtype,
        )  # fmt: skip

    def forward(self, input: Tensor) -> Tensor:
        """The transposed convolution with the parameters."""
        return type(self).function(
            input, self.weight, self.bias, self.stride, self.padding, self.output_padding,
            self.groups, self.dilation,
        )  # fmt: skip


class ConvTranspose1d(_ConvTransposeNd, rank=1, function=functional.conv_transpose1d):
    """The transpose of ``Conv1d``."""


class ConvTranspose2d(_ConvTransposeNd, rank=2, function=functional.conv_transpose2d):
    """The transpose of ``Conv2d``."""


# pooling -----------------------------------------------------------------------------------------


def stride_or_window(values: dict[str, Any]) -> None:
    """Windows follow one another by default."""
    if values["stride"] is None:
        values["stride"] = values["kernel_size"]


def per_axis_settings(rank: int, values: dict[str, Any]) -> None:
    """``stride_or_window``, and one number for each axis."""
    stride_or_window(values)
    for name in ("kernel_size", "stride", "padding"):
        values[name] = per_axis(values[name], rank, name)


WINDOW = "kernel_size={0.kernel_size}, stride={0.stride}, padding={0.padding}"


class _MaxPoolNd(
    Applied, settings="kernel_size stride padding dilation return_indices ceil_mode",
    shown=f"{WINDOW}, dilation={{0.dilation}}, ceil_mode={{0.ceil_mode}}", prepare=stride_or_window,
):  # fmt: skip
    """The largest elements of windows."""


class MaxPool1d(_MaxPoolNd, function=functional.max_pool1d):
    """The largest element of windows of ``[n, c, l]``."""


class MaxPool2d(_MaxPoolNd, function=functional.max_pool2d):
    """The largest element of windows of ``[n, c, h, w]``."""


class AvgPool1d(
    Applied,
    function=functional.avg_pool1d,
    shown=WINDOW,
    prepare=functools.partial(per_axis_settings, 1),
):
    """Means of windows of ``[n, c, l]``."""


class AvgPool2d(Applied, function=functional.avg_pool2d, shown=WINDOW, prepare=stride_or_window):
    """Means of windows of ``[n, c, h, w]``."""


class AdaptiveAvgPool1d(Applied, function=functional.adaptive_avg_pool1d):
    """Means of as many windows as asked for, of ``[n, c, l]``."""


class AdaptiveAvgPool2d(Applied, function=functional.adaptive_avg_pool2d):
    """Means of as many windows as asked for, of ``[n, c, h, w]``."""


class CosineSimilarity(Applied, function=functional.cosine_similarity, takes="x1 x2", shown=""):
    """Cosine of the angle between vectors along an axis."""


class _AdaptiveMaxPool(Applied, shown="output_size={0.output_size}"):
    """The largest elements of as many windows as asked for."""


class _MaxUnpool(Applied, settings="kernel_size stride padding", takes="input indices output_size"):
    """Elements put back where windows had their largest."""


def _with_float_norm(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def pool(input: Tensor, norm_type: float, *args: object, **settings: object) -> Any:
        return function(input, float(norm_type), *args, **settings)

    return pool


class ConvTranspose3d(_ConvTransposeNd, rank=3, function=functional.conv_transpose3d):
    """The transpose of ``Conv3d``."""


class MaxPool3d(_MaxPoolNd, function=functional.max_pool3d):
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
