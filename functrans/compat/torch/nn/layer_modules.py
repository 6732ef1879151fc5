"""Linear layers, embeddings, dropout and norms as modules.

Not here: what they compute (``nn.layers``, ``nn.noise``), what their classes are made of
(``nn.module_rows``).

Layer: ``compat``.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from functrans.autograd.methods.shaping import axis_of, new_extents
from functrans.autograd.modes import no_grad
from functrans.autograd.promotion import torch_defaults
from functrans.autograd.tensors import Tensor, refuse_device
from functrans.compat.torch.nn import functional, init
from functrans.compat.torch.nn.module import Module
from functrans.compat.torch.nn.module_rows import Applied
from functrans.compat.torch.nn.parameter import Parameter

__all__ = [
    "AlphaDropout", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Bilinear", "Dropout", "Dropout1d",
    "Dropout2d", "Dropout3d", "Embedding", "EmbeddingBag", "FeatureAlphaDropout", "Flatten",
    "GroupNorm", "Identity", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm",
    "Linear", "RMSNorm", "RReLU", "Softmax2d", "Unflatten",
]  # fmt: skip


def empty_parameter(shape: tuple[int, ...], dtype: Any) -> Parameter:
    """A parameter without values yet."""
    value = np.empty(new_extents(shape, "empty"), dtype or torch_defaults.dtype)
    own: Parameter = Parameter(Tensor.of(value))
    return own


class Identity(Module):
    """Gives its input back; arguments are accepted and ignored."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """The input."""
        return input


class Linear(Module):
    """``input @ weight.T + bias``.

    Args:
      in_features: extent of the input's last axis.
      out_features: extent of the result's last axis.
      bias: whether something is added.
      device: accepted for torch's sake.
      dtype: of the parameters, by default float32.

    Example:
      >>> Linear(3, 2)
      Linear(in_features=3, out_features=2, bias=True)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: object = None,
        dtype: Any = None,
    ) -> None:
        refuse_device(device)
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in_features), dtype)
        self.register_parameter("bias", empty_parameter((out_features,), dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """``linear`` with the parameters."""
        own = self.__dict__["_parameters"]
        try:
            weight, bias = own["weight"], own["bias"]
        except KeyError:  # another attribute stands for one
            weight, bias = self.weight, self.bias
        return functional.linear(input, weight, bias)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """``input1 @ weight[o] @ input2 + bias[o]`` for each output ``o``."""

    def __init__(
        self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
        device: object = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        refuse_device(device)
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = empty_parameter((out_features, in1_features, in2_features), dtype)
        self.register_parameter("bias", empty_parameter((out_features,), dtype) if bias else None)
        bound = 1 / math.sqrt(in1_features)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """``bilinear`` with the parameters."""
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class _Table(Module):
    """A table of rows."""

    _padding_word: ClassVar[str] = "padding_idx"

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None,
        max_norm: float | None, norm_type: float, scale_grad_by_freq: bool, sparse: bool,
        weight: Any, device: object, dtype: Any,
    ) -> None:  # fmt: skip
        refuse_device(device)
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError(f"{self._padding_word} must be within num_embeddings")
            self.padding_idx = padding_idx % num_embeddings
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        if weight is None:
            self.weight = empty_parameter((num_embeddings, embedding_dim), dtype)
            self.reset_parameters()
        else:
            self.weight = Parameter(weight)

    def reset_parameters(self) -> None:
        """Draw the table anew; the row of ``padding_idx`` is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                init.zeros_(self.weight[self.padding_idx])

    def _shown_norm(self) -> str:
        text = "" if self.max_norm is None else f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text

    def _shown_padding(self) -> str:
        return "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"


class Embedding(_Table):
    """Rows of a table; see ``functional.embedding``."""

    _padding_word = "Padding_idx"

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
        sparse: bool = False, _weight: Any = None, _freeze: bool = False, device: object = None,
        dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            num_embeddings, embedding_dim, padding_idx, max_norm, norm_type, scale_grad_by_freq,
            sparse, _weight, device, dtype,
        )  # fmt: skip
        self.weight.requires_grad_(not _freeze)

    def forward(self, input: Tensor) -> Tensor:
        """``embedding`` with the table."""
        return functional.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """The settings."""
        sizes = f"{self.num_embeddings}, {self.embedding_dim}"
        return sizes + self._shown_padding() + self._shown_norm()

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, **options: Any
    ) -> Embedding:
        """A module with a given table."""
        rows, width = embeddings.shape
        return cls(rows, width, padding_idx, _weight=embeddings, _freeze=freeze, **options)


def _flatten(input: Any, start_dim: int = 1, end_dim: int = -1) -> Any:
    n = len(input.shape)
    start, end = axis_of(start_dim, n), axis_of(end_dim, n)
    joined = math.prod(input.shape[start : end + 1])
    return input.reshape((*input.shape[:start], joined, *input.shape[end + 1 :]))


def _unflatten(input: Any, dim: int, unflattened_size: Any) -> Any:
    axis = axis_of(dim, len(input.shape))
    return input.reshape((*input.shape[:axis], *unflattened_size, *input.shape[axis + 1 :]))


def _sizes_as_tuple(values: dict[str, Any]) -> None:
    values["unflattened_size"] = tuple(values["unflattened_size"])


class Flatten(Applied, function=_flatten):
    """Join axes, by default all but the first."""


class Unflatten(Applied, function=_unflatten, prepare=_sizes_as_tuple):
    """Divide an axis into several."""


# dropout -----------------------------------------------------------------------------------------


def _check_probability(values: dict[str, Any]) -> None:
    p = values["p"]
    if p < 0 or p > 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


class _DropoutNd(
    Applied, settings="p inplace", shown="p={0.p}, inplace={0.inplace}", prepare=_check_probability
):
    """What is random in training."""


class Dropout(_DropoutNd, function=functional.dropout):
    """Zeros at random places in training; see ``functional.dropout``."""


class Dropout1d(_DropoutNd, function=functional.dropout1d):
    """Zeros in random channels of ``[n, c, l]`` in training."""


class Dropout2d(_DropoutNd, function=functional.dropout2d):
    """Zeros in random channels of ``[n, c, h, w]`` in training."""


# norms -------------------------------------------------------------------------------------------


class _Affine(Module):
    """A norm whose results are multiplied by a weight, and to which a bias is added."""

    def _register(self, shape: tuple[int, ...], dtype: Any, weight: bool, bias: bool) -> None:
        """Make the parameters that are wanted; the others are ``None``."""
        for name, has in (("weight", weight), ("bias", bias)):
            self.register_parameter(name, empty_parameter(shape, dtype) if has else None)

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


def _as_shape(given: Any) -> tuple[int, ...]:
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


class LayerNorm(_Affine):
    """Values less their mean, divided by their deviation, over the last axes."""

    def __init__(
        self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True,
        bias: bool = True, device: object = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        refuse_device(device)
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        self._register(
            self.normalized_shape, dtype, elementwise_affine, elementwise_affine and bias
        )
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """``layer_norm`` with the parameters."""
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Values divided by the root of the mean of their squares, over the last axes."""

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: object = None,
        dtype: Any = None,
    ) -> None:
        refuse_device(device)
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        own = empty_parameter(self.normalized_shape, dtype) if elementwise_affine else None
        self.register_parameter("weight", own)
        if own is not None:
            init.ones_(own)

    def forward(self, input: Tensor) -> Tensor:
        """``rms_norm`` with the weight."""
        return functional.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Affine):
    """``LayerNorm`` of groups of channels."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
        device: object = None, dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        refuse_device(device)
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self._register((num_channels,), dtype, affine, affine and bias)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """``group_norm`` with the parameters."""
        return functional.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class _NormBase(_Affine):
    _version = 2
    ranks: ClassVar[tuple[int, ...]]

    def __init__(
        self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
        affine: bool = True, track_running_stats: bool = True, device: object = None,
        dtype: Any = None, *, bias: bool = True,
    ) -> None:  # fmt: skip
        refuse_device(device)
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        self._register((num_features,), dtype, affine, affine and bias)
        dtype = dtype or torch_defaults.dtype
        for name in ("running_mean", "running_var"):
            value = Tensor.of(np.zeros(num_features, dtype)) if track_running_stats else None
            self.register_buffer(name, value)
        count = Tensor.of(np.array(0)) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        rank = len(input.shape)
        if rank not in self.ranks:
            expected = " or ".join(f"{n}D" for n in self.ranks)
            raise ValueError(f"expected {expected} input (got {rank}D input)")

    def _plan_own(self, state: Any, prefix: str, metadata: Any, *rest: Any) -> None:
        key = f"{prefix}num_batches_tracked"
        if self.track_running_stats and metadata.get("version", 0) < 2 and key not in state:
            state[key] = self.num_batches_tracked  # older states and plain dictionaries lack it
        super()._plan_own(state, prefix, metadata, *rest)

    def reset_running_stats(self) -> None:
        """Forget all batches."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Set the weight to 1, the bias to 0, and forget all batches."""
        self.reset_running_stats()
        super().reset_parameters()

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    def forward(self, input: Any) -> Tensor:
        """``batch_norm`` with the parameters and running values."""
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked += 1
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        is_training = self.training or self.running_mean is None
        keeps = not self.training or self.track_running_stats
        mean, variance = (self.running_mean, self.running_var) if keeps else (None, None)
        return functional.batch_norm(
            input, mean, variance, self.weight, self.bias, is_training, momentum, self.eps
        )


class BatchNorm1d(_BatchNorm):
    """Values standardized per channel of ``[n, c]`` or ``[n, c, l]``."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Values standardized per channel of ``[n, c, h, w]``."""

    ranks = (4,)


class Dropout3d(_DropoutNd, function=functional.dropout3d):
    """Zeros in random channels of ``[n, c, d, h, w]`` in training."""


class AlphaDropout(_DropoutNd, function=functional.alpha_dropout):
    """Random elements at the least value of ``SELU`` in training."""


class FeatureAlphaDropout(_DropoutNd, function=functional.feature_alpha_dropout):
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


class _InstanceNorm(_NormBase):
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
        self._check_input_dim(input)
        is_alone = len(input.shape) == self.ranks[0]
        channels = input.shape[0 if is_alone else 1]
        if channels != self.num_features and self.affine:
            raise ValueError(
                f"expected input's size at dim={0 if is_alone else 1} to match num_features "
                f"({self.num_features}), but got: {channels}."
            )
        uses_input = self.training or not self.track_running_stats
        momentum = 0.0 if self.momentum is None else self.momentum
        out: Any = functional.instance_norm(
            input.unsqueeze(0) if is_alone else input, self.running_mean, self.running_var,
            self.weight, self.bias, uses_input, momentum, self.eps,
        )  # fmt: skip
        return out.squeeze(0) if is_alone else out


class InstanceNorm1d(_InstanceNorm):
    """Values standardized per example and channel of ``[n, c, l]``."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Values standardized per example and channel of ``[n, c, h, w]``."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Values standardized per example and channel of ``[n, c, d, h, w]``."""

    ranks = (4, 5)
