"""Images of other sizes, padding, rearranged channels and windows as modules.

Not here: what they compute (``nn.resampling``, ``nn.layers``), what their classes are made of
(``nn.module_rows``).

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.module import Module
from functrans.compat.torch.nn.module_rows import Applied

__all__ = [
    "ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d",
    "ConstantPad2d", "ConstantPad3d", "Fold", "PixelShuffle", "PixelUnshuffle", "ReflectionPad1d",
    "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "Unfold", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip


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


class PixelShuffle(Applied, function=functional.pixel_shuffle):
    """Channels moved into space."""


class PixelUnshuffle(Applied, function=functional.pixel_unshuffle):
    """Space moved into channels."""


class ChannelShuffle(Applied, function=functional.channel_shuffle):
    """Channels in turn from each group."""


class Unfold(Applied, function=functional.unfold):
    """The windows of images as columns."""


class Fold(Applied, function=functional.fold):
    """Images that sum up what columns say of their windows."""


# padding -----------------------------------------------------------------------------------------


def _constant(input: Tensor, padding: Any, value: float) -> Tensor:
    return functional.pad(input, padding, "constant", value)


def _in_mode(mode: str) -> Callable[..., Tensor]:
    def pad(input: Tensor, padding: Any) -> Tensor:
        return functional.pad(input, padding, mode)

    return pad


_reflect, _replicate, _circular = map(_in_mode, ("reflect", "replicate", "circular"))


def _for_each_end(rank: int) -> Callable[[dict[str, Any]], None]:
    """Makes ``padding`` a number for each end of the last axes."""

    def prepare(values: dict[str, Any]) -> None:
        padding = values["padding"]
        is_sequence = isinstance(padding, (tuple, list))
        values["padding"] = tuple(padding) if is_sequence else (padding,) * (2 * rank)

    return prepare


class _Pad(Applied, shown="{0.padding}"):
    """Something added around the last axes."""


class _ConstantPad(Applied, function=_constant, shown="padding={0.padding}, value={0.value}"):
    """A number added around the last axes."""


class ConstantPad1d(_ConstantPad, prepare=_for_each_end(1)):
    """A number added around the last axis."""


class ConstantPad2d(_ConstantPad, prepare=_for_each_end(2)):
    """A number added around the last two axes."""


class ConstantPad3d(_ConstantPad, prepare=_for_each_end(3)):
    """A number added around the last three axes."""


class ZeroPad1d(ConstantPad1d, settings="padding", fixed={"value": 0.0}, shown="{0.padding}"):
    """Zeros added around the last axis."""


class ZeroPad2d(ConstantPad2d, settings="padding", fixed={"value": 0.0}, shown="{0.padding}"):
    """Zeros added around the last two axes."""


class ZeroPad3d(ConstantPad3d, settings="padding", fixed={"value": 0.0}, shown="{0.padding}"):
    """Zeros added around the last three axes."""


class ReflectionPad1d(_Pad, function=_reflect, prepare=_for_each_end(1)):
    """The last axis mirrored at the ends."""


class ReflectionPad2d(_Pad, function=_reflect, prepare=_for_each_end(2)):
    """The last two axes mirrored at the ends."""


class ReflectionPad3d(_Pad, function=_reflect, prepare=_for_each_end(3)):
    """The last three axes mirrored at the ends."""


class ReplicationPad1d(_Pad, function=_replicate, prepare=_for_each_end(1)):
    """The outermost elements of the last axis repeated."""


class ReplicationPad2d(_Pad, function=_replicate, prepare=_for_each_end(2)):
    """The outermost elements of the last two axes repeated."""


class ReplicationPad3d(_Pad, function=_replicate, prepare=_for_each_end(3)):
    """The outermost elements of the last three axes repeated."""


class CircularPad1d(_Pad, function=_circular, prepare=_for_each_end(1)):
    """The last axis repeated as a ring."""


class CircularPad2d(_Pad, function=_circular, prepare=_for_each_end(2)):
    """The last two axes repeated as a ring."""


class CircularPad3d(_Pad, function=_circular, prepare=_for_each_end(3)):
    """The last three axes repeated as a ring."""
