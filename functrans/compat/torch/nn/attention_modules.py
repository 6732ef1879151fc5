"""Attention as a module.

Not here: what it computes (``nn.attention``), layers made of it (``nn.transformer_modules``).

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any

from functrans.autograd.tensors import Tensor, refuse_device
from functrans.compat.torch.nn import init
from functrans.compat.torch.nn.attention import multi_head_attention_forward
from functrans.compat.torch.nn.layer_modules import Linear, empty_parameter
from functrans.compat.torch.nn.module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention in several heads between projections.

    Args:
      embed_dim: extent of the last axis of query and result.
      num_heads: number of heads; divides ``embed_dim``.
      dropout: probability that a weight is left out in training.
      bias: whether the projections add something.
      add_bias_kv: whether there is one more key and value, learned.
      add_zero_attn: whether there is one more key and value of zeros.
      kdim: extent of the last axis of keys, by default ``embed_dim``.
      vdim: extent of the last axis of values, by default ``embed_dim``.
      batch_first: whether tensors are ``[n, l, e]``, not ``[l, n, e]``.
      device: accepted for torch's sake.
      dtype: of the parameters.

    Raises:
      ValueError: extents are not positive.
      AssertionError: the heads do not divide the extent.

    Example:
      >>> from functrans.compat.torch import ones
      >>> attention = MultiheadAttention(4, 2)
      >>> x = ones(3, 4)
      >>> result, weights = attention(x, x, x)
      >>> result.shape, weights.shape
      (torch.Size([3, 4]), torch.Size([3, 3]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: object = None,
        dtype: Any = None,
    ) -> None:
        refuse_device(device)
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        same = self._qkv_same_embed_dim
        shapes: dict[str, tuple[int, ...] | None] = {
            "in_proj_weight": (3 * embed_dim, embed_dim) if same else None,
            "q_proj_weight": None if same else (embed_dim, embed_dim),
            "k_proj_weight": None if same else (embed_dim, self.kdim),
            "v_proj_weight": None if same else (embed_dim, self.vdim),
            "in_proj_bias": (3 * embed_dim,) if bias else None,
        }
        for name, shape in shapes.items():
            own = None if shape is None else empty_parameter(shape, dtype)
            self.register_parameter(name, own)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        for name in ("bias_k", "bias_v"):
            own = empty_parameter((1, 1, embed_dim), dtype) if add_bias_kv else None
            self.register_parameter(name, own)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for name in ("bias_k", "bias_v"):
            if getattr(self, name) is not None:
                init.xavier_normal_(getattr(self, name))

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None,
        average_attn_weights: bool = True, is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:  # fmt: skip
        """Result and weights; see ``functional.multi_head_attention_forward``."""
        q, k, v = query, key, value
        turns = self.batch_first and len(q.shape) == 3
        if turns:
            q, k, v = [x.transpose(0, 1) for x in (q, k, v)]
        out, weights = multi_head_attention_forward(
            q, k, v, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias,
            self.bias_k, self.bias_v, self.add_zero_attn, self.dropout, self.out_proj.weight,
            self.out_proj.bias, self.training, key_padding_mask, need_weights, attn_mask,
            not self._qkv_same_embed_dim, self.q_proj_weight, self.k_proj_weight,
            self.v_proj_weight, average_attn_weights=average_attn_weights, is_causal=is_causal,
        )  # fmt: skip
        return (out.transpose(0, 1) if turns else out), weights
