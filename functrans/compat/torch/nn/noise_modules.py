"""Layers that draw random numbers, sums of embeddings, norms of instances as modules.

Here: classes that hold parameters, and functions with settings. Not here: what they compute
(``nn.noise``, ``nn.layers``), what their classes are made of (``nn.module_rows``).

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any

from functrans.autograd.tensors import Tensor, refuse_device
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.layer_modules import _BatchNorm, _Dropout, _Table
from functrans.compat.torch.nn.module import Module
from functrans.compat.torch.nn.module_rows import Applied

__all__ = [
    "AlphaDropout", "BatchNorm3d", "Dropout3d", "EmbeddingBag", "FeatureAlphaDropout",
    "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "RReLU", "Softmax2d",
]  # fmt: skip


class Dropout3d(_Dropout, function=functional.dropout3d):
    """Zeros in random channels of ``[n, c, d, h, w]`` in training."""


class AlphaDropout(_Dropout, function=functional.alpha_dropout):
    """Random elements at the least value of ``SELU`` in training."""


class FeatureAlphaDropout(_Dropout, function=functional.feature_alpha_dropout):
    """``AlphaDropout`` of whole channels."""


class RReLU(Applied, function=functional.rrelu, settings="lower upper inplace"):
    """The input; where it is negative, times a slope that is random in training."""


class Softmax2d(Module):
    """``softmax`` over the channels of ``[n, c, h, w]``."""

    def forward(self, input: Tensor) -> Tensor:
        """The shares.

        Raises:
          ValueError: there are not three or four axes.
        """
        if len(input.shape) not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {len(input.shape)}D instead"
            )
        return functional.softmax(input, -3)


class EmbeddingBag(_Table):
    """Sums, means or largest elements of rows of a table; see ``functional.embedding_bag``."""

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, mode: str = "mean",
        sparse: bool = False, _weight: Any = None, include_last_offset: bool = False,
        padding_idx: int | None = None, device: object = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq,
            sparse, _weight, device, dtype,
        )  # fmt: skip
        self.mode = mode
        self.include_last_offset = include_last_offset

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        """``embedding_bag`` with the table."""
        return functional.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The settings."""
        sizes = f"{self.num_embeddings}, {self.embedding_dim}"
        return f"{sizes}{self._shown_norm()}, mode={self.mode!r}{self._shown_padding()}"

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, **options: Any
    ) -> EmbeddingBag:
        """A module with a given table."""
        rows, width = embeddings.shape
        made = cls(rows, width, _weight=embeddings, **options)
        made.weight.requires_grad_(not freeze)
        return made


class BatchNorm3d(_BatchNorm):
    """Values standardized per channel of ``[n, c, d, h, w]``."""

    ranks = (5,)
    shown = "5D"


class _InstanceNorm(_BatchNorm):
    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
        track_running_stats: bool = False, device: object = None, dtype: Any = None, *,
        bias: bool = True,
    ) -> None:  # fmt: skip
        refuse_device(device)
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def forward(self, input: Any) -> Tensor:
        """``instance_norm`` with the parameters and running values."""
        if len(input.shape) not in self.ranks:
            raise ValueError(f"expected {self.shown} input (got {len(input.shape)}D input)")
        is_alone = len(input.shape) == self.ranks[0]
        channels = input.shape[0 if is_alone else 1]
        if channels != self.num_features and self.affine:
            raise ValueError(
                f"expected input's size at dim={0 if is_alone else 1} to match num_features "
                f"({self.num_features}), but got: {channels}."
            )
        out: Any = functional.instance_norm(
            input.unsqueeze(0) if is_alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return out.squeeze(0) if is_alone else out


class InstanceNorm1d(_InstanceNorm):
    """Values standardized per example and channel of ``[n, c, l]``."""

    ranks = (2, 3)
    shown = "2D or 3D"


class InstanceNorm2d(_InstanceNorm):
    """Values standardized per example and channel of ``[n, c, h, w]``."""

    ranks = (3, 4)
    shown = "3D or 4D"


class InstanceNorm3d(_InstanceNorm):
    """Values standardized per example and channel of ``[n, c, d, h, w]``."""

    ranks = (4, 5)
    shown = "4D or 5D"
