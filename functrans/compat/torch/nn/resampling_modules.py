"""Images of other sizes, padding, rearranged channels and windows as modules.

Here: classes that hold settings. Not here: what they compute (``nn.resampling``, ``nn.layers``).

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.module import Module


class Upsample(Module):
    """Images of other sizes; see ``functional.interpolate``."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, (tuple, list)):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The image."""
        return functional.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            self.recompute_scale_factor,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The settings."""
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """``Upsample`` with the nearest elements."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """``Upsample`` on straight lines, the outermost elements where they are."""

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """Channels moved into space."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The image."""
        return functional.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The settings."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Space moved into channels."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The image."""
        return functional.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The settings."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels in turn from each group."""

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """The image."""
        return functional.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The settings."""
        return f"groups={self.groups}"


class Unfold(Module):
    """The windows of images as columns."""

    def __init__(
        self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """The columns."""
        return functional.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """Images that sum up what columns say of their windows."""

    def __init__(
        self,
        output_size: Any,
        kernel_size: Any,
        dilation: Any = 1,
        padding: Any = 0,
        stride: Any = 1,
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """The images."""
        return functional.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


# padding -----------------------------------------------------------------------------------------


class _Pad(Module):
    """Elements added at the ends of the last axes."""

    rank: ClassVar[int]
    mode: ClassVar[str]

    def __init__(self, padding: Any) -> None:
        super().__init__()
        n = 2 * self.rank
        self.padding = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * n

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        return functional.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.padding}"


class _ConstantPad(_Pad):
    mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        """The padded input."""
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """The settings."""
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.padding}"


class ConstantPad1d(_ConstantPad):
    """A number added around the last axis."""

    rank = 1


class ConstantPad2d(_ConstantPad):
    """A number added around the last two axes."""

    rank = 2


class ConstantPad3d(_ConstantPad):
    """A number added around the last three axes."""

    rank = 3


class ZeroPad1d(_ZeroPad):
    """Zeros added around the last axis."""

    rank = 1


class ZeroPad2d(_ZeroPad):
    """Zeros added around the last two axes."""

    rank = 2


class ZeroPad3d(_ZeroPad):
    """Zeros added around the last three axes."""

    rank = 3


class ReflectionPad1d(_Pad):
    """The last axis mirrored at the ends."""

    rank = 1
    mode = "reflect"


class ReflectionPad2d(_Pad):
    """The last two axes mirrored at the ends."""

    rank = 2
    mode = "reflect"


class ReflectionPad3d(_Pad):
    """The last three axes mirrored at the ends."""

    rank = 3
    mode = "reflect"


class ReplicationPad1d(_Pad):
    """The outermost elements of the last axis repeated."""

    rank = 1
    mode = "replicate"


class ReplicationPad2d(_Pad):
    """The outermost elements of the last two axes repeated."""

    rank = 2
    mode = "replicate"


class ReplicationPad3d(_Pad):
    """The outermost elements of the last three axes repeated."""

    rank = 3
    mode = "replicate"


class CircularPad1d(_Pad):
    """The last axis repeated as a ring."""

    rank = 1
    mode = "circular"


class CircularPad2d(_Pad):
    """The last two axes repeated as a ring."""

    rank = 2
    mode = "circular"


class CircularPad3d(_Pad):
    """The last three axes repeated as a ring."""

    rank = 3
    mode = "circular"
