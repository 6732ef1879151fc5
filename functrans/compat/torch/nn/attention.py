"""Attention as functions.

Not here: the classes (``nn.attention_modules``, ``nn.transformer_modules``).

Layer: ``compat``. Reference: Vaswani et al., Attention is all you need, NeurIPS 2017.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.programs import Operation
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn.activations import softmax
from functrans.compat.torch.nn.layers import dropout, linear, pad
from functrans.core.dispatch import shape_of
from functrans.core.values import Array
from functrans.primitives import activations, dot, movement, structural
from functrans.primitives import elementwise as ew

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def _masked(scores: Array | Tensor, mask: Any, causal: bool) -> Any:
    """Scores, with those that must not count at minus infinity."""
    if causal:
        rows, columns = shape_of(scores)[-2:]
        scores = ew.where(np.tril(np.ones((rows, columns), bool)), scores, -math.inf)
    if mask is not None:
        is_bool = mask.dtype == bool
        scores = ew.where(mask, scores, -math.inf) if is_bool else scores + mask
    return scores


def _weights(scores: Array) -> Array:
    """``softmax`` of the last axis; 0 where no score counts."""
    shape = shape_of(scores)
    last = len(shape) - 1
    best = scores > -math.inf
    count = structural.reduce_sum(structural.cast(best, np.int64), (last,))
    is_empty = structural.reshape(count == 0, (*shape[:-1], 1))
    safe = ew.where(is_empty, 0.0, scores)
    return ew.where(is_empty, 0.0, activations.softmax(safe, (last,)))


def _attention(
    q: Array | Tensor,
    k: Array | Tensor,
    v: Array | Tensor,
    mask: Array | complex | None,
    factors: Array | None,
    *,
    scale: float,
    causal: bool,
) -> Array | Tensor:
    n = len(shape_of(q))
    lead = tuple(range(n - 2))
    scores = dot.dot_general(q, k, ((n - 1,), (n - 1,)), (lead, lead)) * scale
    scores = _masked(scores, mask, causal)
    weights = activations.softmax(scores, (n - 1,)) if mask is None else _weights(scores)
    if factors is not None:
        weights = weights * factors
    return dot.dot_general(weights, v, ((n - 1,), (n - 2,)), (lead, lead))


_ATTENTION = Operation("ScaledDotProductAttention", _attention)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:  # fmt: skip
    """``softmax(query @ key.T * scale + mask) @ value``.

    Args:
      query: ``[*, l, e]``.
      key: ``[*, s, e]``.
      value: ``[*, s, f]``.
      attn_mask: where to look, as truth values, or what to add.
      dropout_p: probability that a weight is left out.
      is_causal: whether a row sees only columns up to its own number.
      scale: by default ``1 / sqrt(e)``.
      enable_gqa: whether several heads of the query share one of key and value.

    Raises:
      RuntimeError: the shapes do not fit; a mask with ``is_causal``.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([[1.0, 0.0], [0.0, 1.0]])
      >>> scaled_dot_product_attention(x, x, x, is_causal=True)[0]
      tensor([1., 0.])
    """
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
            "is_causal=True"
        )
    query, key, value = _fitted(query, key, value, enable_gqa)
    factor = 1 / math.sqrt(query.shape[-1] or 1) if scale is None else float(scale)
    factors = None
    if dropout_p:
        ones = Tensor.of(np.ones((*query.shape[:-1], key.shape[-2]), query.dtype))
        factors = dropout(ones, dropout_p)
    return _ATTENTION(query, key, value, attn_mask, factors, scale=factor, causal=bool(is_causal))


def _fitted(query: Any, key: Any, value: Any, groups: bool) -> tuple[Any, Any, Any]:
    """Operands with equal leading axes."""
    if groups and query.shape[-3] != key.shape[-3]:
        heads = query.shape[-3]
        if heads % key.shape[-3] or heads % value.shape[-3]:
            raise RuntimeError(
                "Number of heads in key and value must divide the number of heads in query, but "
                f"got {heads}, {key.shape[-3]} and {value.shape[-3]}"
            )
        key = key.repeat_interleave(heads // key.shape[-3], -3)
        value = value.repeat_interleave(heads // value.shape[-3], -3)
    leads = [x.shape[:-2] for x in (query, key, value)]
    if leads[0] == leads[1] == leads[2]:
        return query, key, value
    try:
        lead = np.broadcast_shapes(*leads)
    except ValueError:
        raise RuntimeError(
            "scaled_dot_product_attention: leading axes do not broadcast: "
            f"{', '.join(str(list(x.shape)) for x in (query, key, value))}"
        ) from None
    return tuple([x.expand(*lead, *x.shape[-2:]) for x in (query, key, value)])


# several heads -----------------------------------------------------------------------------------


def additive_mask(mask: Any, dtype: DTypeLike | None, name: str) -> Any:
    """A mask of truth values (true: not to be looked at) as numbers to add.

    Raises:
      AssertionError: it is neither of truth values nor of floating numbers.
    """
    if mask is None:
        return None
    if mask.dtype != bool:
        if mask.dtype.kind not in "fV":
            raise AssertionError(f"only bool and floating types of {name} are supported")
        return mask
    return Tensor.of(np.zeros(mask.shape, dtype)).masked_fill(mask, -math.inf)


def _check_shapes(query: Tensor, key: Tensor, padding: Any, mask: Any) -> bool:
    """Whether there is a batch axis."""
    ndim = len(query.shape)
    if ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor"
        )
    kind = "batched" if ndim == 3 else "unbatched"
    if len(key.shape) != ndim:
        raise AssertionError(
            f"For {kind} ({ndim}-D) `query`, expected `key` and `value` to be {ndim}-D but found "
            f"{len(key.shape)}-D"
        )
    if padding is not None and len(padding.shape) != ndim - 1:
        raise AssertionError(
            f"For {kind} ({ndim}-D) `query`, expected `key_padding_mask` to be `None` or "
            f"{ndim - 1}-D but found {len(padding.shape)}-D tensor instead"
        )
    if mask is not None and len(mask.shape) not in (2, 3):
        raise AssertionError(
            f"For {kind} ({ndim}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but "
            f"found {len(mask.shape)}-D tensor instead"
        )
    return ndim == 3


def _projected(
    query: Tensor, key: Tensor, value: Tensor, weights: Sequence[Any], bias: Any, embed: int
) -> tuple[Any, Any, Any]:
    biases = (None,) * 3 if bias is None else [bias[i * embed : (i + 1) * embed] for i in range(3)]
    return tuple(  # type: ignore[return-value]  # three
        [linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)]
    )


def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int,
    in_proj_weight: Tensor | None, in_proj_bias: Tensor | None, bias_k: Tensor | None,
    bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float, out_proj_weight: Tensor,
    out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
    need_weights: bool = True, attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False, q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None, static_v: Tensor | None = None,
    average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attention in several heads between projections.

    Args:
      query: ``[l, n, e]`` or ``[l, e]``.
      key: ``[s, n, k]`` or ``[s, k]``.
      value: ``[s, n, v]`` or ``[s, v]``.
      embed_dim_to_check: ``e``.
      num_heads: number of heads.
      in_proj_weight: ``[3 e, e]``: of query, key and value.
      in_proj_bias: ``[3 e]``.
      bias_k: one more key.
      bias_v: one more value.
      add_zero_attn: whether one more key and value of zeros are added.
      dropout_p: probability that a weight is left out, in training.
      out_proj_weight: ``[e, e]``.
      out_proj_bias: ``[e]``.
      training: whether there is dropout.
      key_padding_mask: ``[n, s]``; true for keys that must not be looked at, or what is added.
      need_weights: whether the weights are returned.
      attn_mask: ``[l, s]`` or ``[n * heads, l, s]``, as ``key_padding_mask``.
      use_separate_proj_weight: whether the three weights below are used.
      q_proj_weight: ``[e, e]``.
      k_proj_weight: ``[e, k]``.
      v_proj_weight: ``[e, v]``.
      static_k: keys ``[n * heads, s, e / heads]`` in place of projected ones.
      static_v: likewise values.
      average_attn_weights: whether the mean of the heads is returned.
      is_causal: says that ``attn_mask`` is causal.

    Returns:
      ``(result, weights)``: ``[l, n, e]``, and ``[n, l, s]`` or ``[n, heads, l, s]`` or ``None``.

    Raises:
      AssertionError: shapes do not fit.
      RuntimeError: ``is_causal`` without a mask.
    """
    is_batched = _check_shapes(query, key, key_padding_mask, attn_mask)
    q: Any = query
    k: Any = key
    v: Any = value
    padding: Any = key_padding_mask
    if not is_batched:
        q, k, v = [x.unsqueeze(1) for x in (q, k, v)]
        padding = None if padding is None else padding.unsqueeze(0)
    length, batch, embed = q.shape
    if embed != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed}"
        )
    width = embed // num_heads
    if width * num_heads != embed:
        raise AssertionError(f"embed_dim {embed} not divisible by num_heads {num_heads}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    padding = additive_mask(padding, q.dtype, "key_padding_mask")
    mask = additive_mask(attn_mask, q.dtype, "attn_mask")
    if use_separate_proj_weight:
        weights: Any = (q_proj_weight, k_proj_weight, v_proj_weight)
    else:
        whole: Any = in_proj_weight
        weights = tuple([whole[i * embed : (i + 1) * embed] for i in range(3)])
    q, k, v = _projected(q, k, v, weights, in_proj_bias, embed)
    mask = _checked_mask(mask, length, k.shape[0], batch * num_heads)
    if bias_k is not None and bias_v is not None:
        k, v = _joined(k, bias_k.repeat(1, batch, 1)), _joined(v, bias_v.repeat(1, batch, 1))
        mask, padding = _one_more(mask), _one_more(padding)
    q = _heads(q, batch * num_heads, width)
    k = _heads(k, batch * num_heads, width) if static_k is None else static_k
    v = _heads(v, batch * num_heads, width) if static_v is None else static_v
    if add_zero_attn:
        zero = Tensor.of(np.zeros((batch * num_heads, 1, width), k.dtype))
        k, v = _JOIN(k, zero, axis=1), _JOIN(v, zero, axis=1)
        mask, padding = _one_more(mask), _one_more(padding)
    count = k.shape[1]
    if padding is not None:
        if padding.shape != (batch, count):
            raise AssertionError(
                f"expecting key_padding_mask shape of {(batch, count)}, but got {padding.shape}"
            )
        wide = padding.reshape(batch, 1, 1, count).expand(-1, num_heads, -1, -1)
        wide = wide.reshape(batch * num_heads, 1, count)
        mask = wide if mask is None else mask + wide
    share = dropout_p if training else 0.0
    out: Any
    attention: Any = None
    if need_weights:
        scores: Any = (q * math.sqrt(1.0 / width)) @ k.transpose(-2, -1)
        attention = softmax(scores if mask is None else scores + mask, -1)
        attention = dropout(attention, share) if share else attention
        out = attention @ v
    else:
        if mask is not None:
            mask = mask.expand(batch * num_heads, length, count)
            mask = mask.reshape(batch, num_heads, length, count)
        q, k, v = [x.reshape(batch, num_heads, -1, width) for x in (q, k, v)]
        out = scaled_dot_product_attention(q, k, v, mask, share)
        out = out.reshape(batch * num_heads, length, width)
    out = out.transpose(0, 1).reshape(length * batch, embed)
    out = linear(out, out_proj_weight, out_proj_bias)
    out = out.reshape(length, batch, embed)
    if attention is not None:
        attention = attention.reshape(batch, num_heads, length, count)
        attention = attention.mean(1) if average_attn_weights else attention
    if not is_batched:
        out = out.squeeze(1)
        attention = None if attention is None else attention.squeeze(0)
    return out, attention


_JOIN = Operation("Cat", lambda a, b, *, axis: movement.concatenate([a, b], axis))


def _joined(a: Any, b: Any) -> Any:
    return _JOIN(a, b, axis=0)


def _one_more(mask: Any) -> Tensor | None:
    return None if mask is None else pad(mask, (0, 1))


def _heads(x: Tensor, count: int, width: int) -> Tensor:
    return x.reshape(x.shape[0], count, width).transpose(0, 1)


def _checked_mask(mask: Any, length: int, count: int, heads: int) -> Any:
    """A mask with an axis for the heads."""
    if mask is None:
        return None
    need = (length, count) if len(mask.shape) == 2 else (heads, length, count)
    if mask.shape != need:
        raise RuntimeError(
            f"The shape of the {len(mask.shape)}D attn_mask is {mask.shape}, but should be {need}."
        )
    return mask.unsqueeze(0) if len(mask.shape) == 2 else mask
