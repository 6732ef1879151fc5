"""Images of other sizes, padding, rearranged channels and windows as modules.

Here: rows of functions with settings, and ``Upsample``. Not here: what they compute
(``nn.resampling``, ``nn.layers``), what makes the classes of rows (``nn.module_rows``).

Layer: ``compat``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.module import Module
from functrans.compat.torch.nn.module_rows import module_class

_row = functools.partial(module_class, __name__)


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


PixelShuffle = _row("PixelShuffle", functional.pixel_shuffle, "Channels moved into space.")
PixelUnshuffle = _row("PixelUnshuffle", functional.pixel_unshuffle, "Space moved into channels.")
ChannelShuffle = _row(
    "ChannelShuffle", functional.channel_shuffle, "Channels in turn from each group."
)
Unfold = _row("Unfold", functional.unfold, "The windows of images as columns.")
Fold = _row("Fold", functional.fold, "Images that sum up what columns say of their windows.")

# padding -----------------------------------------------------------------------------------------


def _constant(input: Tensor, padding: Any, value: float) -> Tensor:
    return functional.pad(input, padding, "constant", value)


def _in_mode(mode: str) -> Callable[..., Tensor]:
    def pad(input: Tensor, padding: Any) -> Tensor:
        return functional.pad(input, padding, mode)

    return pad


_reflect, _replicate, _circular = map(_in_mode, ("reflect", "replicate", "circular"))


def _pad(
    name: str, rank: int, function: Callable[..., Tensor], summary: str, **options: Any
) -> Any:
    """A row whose setting ``padding`` is a number for each end of the last axes."""

    def prepare(values: dict[str, Any]) -> None:
        padding = values["padding"]
        is_sequence = isinstance(padding, (tuple, list))
        values["padding"] = tuple(padding) if is_sequence else (padding,) * (2 * rank)

    return _row(name, function, summary, **{"shown": "{0.padding}", "prepare": prepare, **options})


_constant_pad = functools.partial(_pad, shown="padding={0.padding}, value={0.value}")
_zero_pad = functools.partial(_pad, settings="padding", fixed={"value": 0.0})

ConstantPad1d = _constant_pad("ConstantPad1d", 1, _constant, "A number added around the last axis.")
ConstantPad2d = _constant_pad(
    "ConstantPad2d", 2, _constant, "A number added around the last two axes."
)
ConstantPad3d = _constant_pad(
    "ConstantPad3d", 3, _constant, "A number added around the last three axes."
)
ZeroPad1d = _zero_pad("ZeroPad1d", 1, _constant, "Zeros added around the last axis.")
ZeroPad2d = _zero_pad("ZeroPad2d", 2, _constant, "Zeros added around the last two axes.")
ZeroPad3d = _zero_pad("ZeroPad3d", 3, _constant, "Zeros added around the last three axes.")
ReflectionPad1d = _pad("ReflectionPad1d", 1, _reflect, "The last axis mirrored at the ends.")
ReflectionPad2d = _pad("ReflectionPad2d", 2, _reflect, "The last two axes mirrored at the ends.")
ReflectionPad3d = _pad("ReflectionPad3d", 3, _reflect, "The last three axes mirrored at the ends.")
ReplicationPad1d = _pad(
    "ReplicationPad1d", 1, _replicate, "The outermost elements of the last axis repeated."
)
ReplicationPad2d = _pad(
    "ReplicationPad2d", 2, _replicate, "The outermost elements of the last two axes repeated."
)
ReplicationPad3d = _pad(
    "ReplicationPad3d", 3, _replicate, "The outermost elements of the last three axes repeated."
)
CircularPad1d = _pad("CircularPad1d", 1, _circular, "The last axis repeated as a ring.")
CircularPad2d = _pad("CircularPad2d", 2, _circular, "The last two axes repeated as a ring.")
CircularPad3d = _pad("CircularPad3d", 3, _circular, "The last three axes repeated as a ring.")
