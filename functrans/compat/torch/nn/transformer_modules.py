"""``Transformer`` and its parts as modules.

Not here: attention (``nn.attention_modules``).

Layer: ``compat``. Reference: Vaswani et al., Attention is all you need, NeurIPS 2017.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.promotion import torch_defaults, torch_tensor
from functrans.autograd.tensors import Tensor, refuse_device
from functrans.compat.torch.nn import functional, init
from functrans.compat.torch.nn.attention import additive_mask
from functrans.compat.torch.nn.attention_modules import MultiheadAttention
from functrans.compat.torch.nn.containers import ModuleList
from functrans.compat.torch.nn.layer_modules import Dropout, LayerNorm, Linear
from functrans.compat.torch.nn.module import Module

__all__ = [
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer",
]  # fmt: skip


def _activation(given: Any) -> Callable[..., Any]:
    """A function, or the one of a name."""
    if not isinstance(given, str):
        return given
    if given == "relu":
        return functional.relu
    if given == "gelu":
        return functional.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {given}")


class _TransformerLayer(Module):
    """Attentions and a network of two layers, each with a bypass and a norm."""

    attentions: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: object = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        refuse_device(device)
        super().__init__()
        for name in self.attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, dtype=dtype
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, dtype=dtype)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, dtype=dtype)
        self.norm_first = norm_first
        numbers = range(1, len(self.attentions) + 2)
        for i in numbers:
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, dtype=dtype))
        for i in numbers:
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _activation(activation)

    def _network(self, x: Tensor) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_TransformerLayer):
    """Attention to itself and a network of two layers, each with a bypass and a norm.

    Args:
      d_model: extent of the last axis.
      nhead: number of heads.
      dim_feedforward: width between the two layers.
      dropout: probability of zeros in training.
      activation: ``"relu"``, ``"gelu"`` or a function.
      layer_norm_eps: added to variances.
      batch_first: whether tensors are ``[n, l, e]``.
      norm_first: whether norms come before, not after.
      bias: whether layers and norms add something.
      device: accepted for torch's sake.
      dtype: of the parameters.
    """

    attentions = ("self_attn",)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The layer; masks as in ``MultiheadAttention``."""
        x: Any = src
        masks = (src_mask, src_key_padding_mask, is_causal)
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *masks)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, *masks))
        return self.norm2(x + self._ff_block(x))

    def _sa_block(self, x: Tensor, mask: object, padding: object, is_causal: bool) -> Tensor:
        return self.dropout1(_attended(self.self_attn, x, x, mask, padding, is_causal))

    def _ff_block(self, x: Tensor) -> Tensor:
        return self.dropout2(self._network(x))


class TransformerDecoderLayer(_TransformerLayer):
    """Attention to itself, attention to the encoder's result, and a network of two layers.

    Arguments as of ``TransformerEncoderLayer``.
    """

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """The layer; masks as in ``MultiheadAttention``."""
        x: Any = tgt
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory_mask, memory_key_padding_mask, memory_is_causal)
        if self.norm_first:
            y = self.norm1(x)
            x = x + self.dropout1(_attended(self.self_attn, y, y, *own))
            x = x + self.dropout2(_attended(self.multihead_attn, self.norm2(x), memory, *other))
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(x + self.dropout1(_attended(self.self_attn, x, x, *own)))
        attended = _attended(self.multihead_attn, x, memory, *other)
        x = self.norm2(x + self.dropout2(attended))
        return self.norm3(x + self._ff_block(x))

    def _ff_block(self, x: Any) -> Tensor:
        return self.dropout3(self._network(x))


def _attended(
    attention: MultiheadAttention,
    x: Tensor,
    to: Tensor,
    mask: object,
    padding: Any,
    is_causal: bool,
) -> Tensor:
    return attention(
        x, to, to, attn_mask=mask, key_padding_mask=padding, need_weights=False,
        is_causal=is_causal,
    )[0]  # fmt: skip


def _copies(module: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(count)])


def _is_causal(mask: Any, given: bool | None) -> bool:
    """Whether a mask is the causal one; found out if it is not said."""
    if given is not None:
        return bool(given)
    if mask is None or len(mask.shape) != 2 or mask.shape[0] != mask.shape[1]:
        return False
    wanted = _causal_mask(mask.shape[0], mask.dtype)
    return bool((mask == wanted).all())


def _causal_mask(size: int, dtype: DTypeLike | None) -> Tensor:
    return torch_tensor(np.triu(np.full((size, size), -np.inf, dtype), 1))


class TransformerEncoder(Module):
    """Encoder layers one after the other.

    Args:
      encoder_layer: a layer; it is copied.
      num_layers: how many.
      norm: applied to the result, or ``None``.
      enable_nested_tensor: accepted for torch's sake.
      mask_check: accepted for torch's sake.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """All layers."""
        x: Any = src
        padding = additive_mask(src_key_padding_mask, x.dtype, "src_key_padding_mask")
        mask = additive_mask(mask, x.dtype, "mask")
        causal = _is_causal(mask, is_causal)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        return x if self.norm is None else self.norm(x)


class TransformerDecoder(Module):
    """Decoder layers one after the other.

    Args:
      decoder_layer: a layer; it is copied.
      num_layers: how many.
      norm: applied to the result, or ``None``.
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """All layers."""
        x: Any = tgt
        causal = _is_causal(tgt_mask, tgt_is_causal)
        for layer in self.layers:
            x = layer(
                x, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """Encoder and decoder.

    Args:
      d_model: extent of the last axis.
      nhead: number of heads.
      num_encoder_layers: how many.
      num_decoder_layers: how many.
      dim_feedforward: width between the two layers of networks.
      dropout: probability of zeros in training.
      activation: ``"relu"``, ``"gelu"`` or a function.
      custom_encoder: in place of a ``TransformerEncoder``.
      custom_decoder: in place of a ``TransformerDecoder``.
      layer_norm_eps: added to variances.
      batch_first: whether tensors are ``[n, l, e]``.
      norm_first: whether norms come before, not after.
      bias: whether layers and norms add something.
      device: accepted for torch's sake.
      dtype: of the parameters.

    Example:
      >>> from functrans.compat.torch import ones
      >>> model = Transformer(4, 2, 1, 1, dim_feedforward=8)
      >>> model(ones(3, 1, 4), ones(2, 1, 4)).shape
      torch.Size([2, 1, 4])
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6,
        num_decoder_layers: int = 6, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Any = "relu", custom_encoder: Any = None, custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False,
        bias: bool = True, device: object = None, dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        refuse_device(device)
        super().__init__()
        layer = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first,
            norm_first, bias, None, dtype,
        )  # fmt: skip

        def norm() -> LayerNorm:
            return LayerNorm(d_model, eps=layer_norm_eps, bias=bias, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*layer), num_encoder_layers, norm()
        )
        self.decoder = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*layer), num_decoder_layers, norm()
        )
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if len(p.shape) > 1:
                init.xavier_uniform_(p)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None, tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None, src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        """What the decoder makes of ``tgt`` and of what the encoder makes of ``src``.

        Raises:
          RuntimeError: numbers of axes or extents do not fit.
        """
        is_batched = len(src.shape) == 3
        axis = 0 if self.batch_first else 1
        if is_batched and src.shape[axis] != tgt.shape[axis]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        return self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )  # fmt: skip

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: object = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """What is added to scores so that a row sees only columns up to its own number."""
        return _causal_mask(sz, dtype or torch_defaults.dtype)
