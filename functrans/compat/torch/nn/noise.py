"""Functions of layers that draw random numbers, activations in place, sums of embeddings.

Here: ``alpha_dropout`` and kin, ``rrelu``, ``gumbel_softmax``, ``elu_`` and kin, ``embedding_bag``.
Not here: ``dropout``, ``embedding`` (``nn.layers``), the classes (``nn.layer_modules``).

Layer: ``compat``. Reference: Klambauer et al., Self-normalizing neural networks, NeurIPS 2017; Jang
et al., Categorical reparameterization with Gumbel-softmax, ICLR 2017.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from functrans.autograd.factories import uniform
from functrans.autograd.methods.rows import documented, drawn, fixed, looked_at
from functrans.autograd.programs import Operation
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn.activations import (
    celu,
    elu,
    hardtanh,
    leaky_relu,
    selu,
    softmax,
    threshold,
)
from functrans.compat.torch.nn.layers import _check_probability, _dropped, embedding
from functrans.compat.torch.nn.randomness import drawn_for
from functrans.core.dispatch import shape_of
from functrans.primitives import elementwise as ew
from functrans.primitives import structural
from functrans.primitives.indexing import accumulate, gather, scatter

__all__ = [
    "alpha_dropout", "celu_", "dropout3d", "elu_", "embedding_bag", "feature_alpha_dropout",
    "gumbel_softmax", "hardtanh_", "leaky_relu_", "rrelu", "rrelu_", "selu_", "threshold_",
]  # fmt: skip


F = TypeVar("F", bound=Callable[..., Tensor])


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """``dropout`` of whole channels of ``[n, c, d, h, w]``."""
    _check_probability(p)
    lead = input.shape[:2] if len(input.shape) == 5 else input.shape[:1]
    return _dropped(input, p, training, inplace, (*lead, 1, 1, 1))


_ALPHA = -1.7580993408473766
"""What ``selu`` tends to for large negative arguments."""


def _alpha_dropped(
    input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...] | None
) -> Tensor:
    _check_probability(p)
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        out = input * 0.0
    else:
        scale = 1 / math.sqrt((1 - p) * (1 + p * _ALPHA * _ALPHA))
        dtype = input.dtype

        def draw(size: tuple[int, ...], is_plain: bool = True) -> np.ndarray:
            return uniform(None, size, np.dtype(np.float64)) < 1 - p

        kept: Any = drawn_for(input, draw, shape, dtype)
        out = input * (kept * scale) + (kept * (-_ALPHA * scale) + _ALPHA * scale * (1 - p))
    return input.copy_(out) if inplace else out


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Random elements at the least value of ``selu``, so that mean and variance stay.

    Args:
      input: a tensor.
      p: probability of that.
      training: nothing is done without it.
      inplace: whether the result is written into ``input``.

    Raises:
      ValueError: ``p`` is no probability.
    """
    return _alpha_dropped(input, p, training, inplace, None)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """``alpha_dropout`` of whole channels of ``[n, c, *]``."""
    shape = (*input.shape[:2], *(1 for _ in input.shape[2:]))
    return _alpha_dropped(input, p, training, inplace, shape)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """``input``; where it is negative, times a random slope, outside of training the mean slope.

    Args:
      input: a tensor.
      lower: the least slope.
      upper: the largest slope.
      training: whether slopes are random.
      inplace: whether the result is written into ``input``.
    """
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    whole: Any = input
    dtype, shape = whole.dtype, whole.shape

    def draw(size: tuple[int, ...]) -> np.ndarray:
        return lower + (upper - lower) * uniform(None, size, np.dtype(np.float64))

    slopes = drawn(draw, shape, dtype)
    ones = Tensor.of(np.ones((), dtype))
    factors = slopes.where((whole <= 0).detach(), ones)
    out = whole * factors
    return whole.copy_(out) if inplace else out


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A random class, as a vector of shares that has a derivative.

    Args:
      logits: logarithms of probabilities.
      tau: temperature.
      hard: whether the shares are 0 and 1; the derivative is that of the soft ones.
      eps: accepted for torch's sake.
      dim: the axis of the classes.
    """
    whole: Any = logits
    shape, dtype = whole.shape, whole.dtype

    def draw(size: tuple[int, ...]) -> np.ndarray:
        drawn_from = 1.0 - uniform(None, size, np.dtype(np.float64))
        exponential = np.maximum(-np.log(drawn_from), np.finfo(np.float64).tiny)
        return np.asarray(-np.log(exponential))

    soft: Any = softmax((whole + drawn(draw, shape, dtype)) / tau, dim)
    if not hard:
        return soft
    best = soft.max(dim, keepdim=True)[1]
    flat = Tensor.of(np.zeros(shape, dtype)).scatter_(dim, best, 1.0)
    return flat - soft.detach() + soft


def _written(function: F) -> F:
    """The form of a function of one tensor that writes into it."""
    name = function.__name__
    whole = inspect.signature(function)
    parameters = [p for p in whole.parameters.values() if p.name != "inplace"]

    def form(input: Tensor, *args: object, **kwargs: object) -> Tensor:
        return function(input, *args, inplace=True, **kwargs)

    form.__signature__ = whole.replace(parameters=parameters)  # type: ignore[attr-defined]  # for help()
    own: Any = documented(form, f"{name}_", f"``{name}`` into the tensor itself.")
    return own


celu_, elu_, selu_ = _written(celu), _written(elu), _written(selu)
hardtanh_, threshold_ = _written(hardtanh), _written(threshold)
leaky_relu_, rrelu_ = _written(leaky_relu), _written(rrelu)

# sums of embeddings ------------------------------------------------------------------------------


def _bags(rows: object, bag: object, factors: object, *, count: int) -> Any:
    if factors is not None:
        rows = rows * structural.reshape(factors, (shape_of(factors)[0], 1))
    return accumulate(rows, (bag,), (0,), (count, shape_of(rows)[1]))


_BAGS = Operation("EmbeddingBag", _bags)


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
    norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean",
    sparse: bool = False, per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """Sums, means or largest elements of rows of a table.

    Args:
      input: ``[n, k]`` integers: ``n`` bags; or one axis of integers, divided by ``offsets``.
      weight: the table ``[rows, width]``.
      offsets: where bags begin.
      max_norm: rows that are used and longer are shortened to it, in place.
      norm_type: of that norm.
      scale_grad_by_freq: whether a row's gradient is divided by how often it is used.
      mode: ``"sum"``, ``"mean"`` or ``"max"``.
      sparse: must be false.
      per_sample_weights: factors, for ``"sum"``.
      include_last_offset: whether the last offset is the end, not a bag.
      padding_idx: a row that does not count.

    Raises:
      ValueError: there is no such mode, or the offsets do not fit.
      NotImplementedError: weights with another mode than ``"sum"``; a sparse gradient.
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}')."
        )
    index, bag, count = _divided(input, offsets, include_last_offset)
    factors: Any = per_sample_weights
    if factors is not None:
        factors = factors.reshape(-1)
    if padding_idx is not None:
        padding_idx %= weight.shape[0]
        keep = np.flatnonzero(looked_at(index) != padding_idx)
        index, bag = index[keep], bag[keep]
        factors = None if factors is None else factors[keep]
    rows = embedding(index, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
    sizes = np.bincount(bag, minlength=count)
    if mode == "max":
        return _largest(rows, bag, count, sizes)
    out: Any = _BAGS(rows, bag, factors, count=count)
    if mode == "mean":
        shares = (1.0 / np.maximum(sizes, 1)).astype(weight.dtype)[:, None]
        out = out * Tensor.of(shares)
    return out


def _divided(input: Tensor, offsets: object, has_end: bool) -> tuple[Any, np.ndarray, int]:
    """Rows, the bag of each, and the number of bags."""
    if len(input.shape) == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                "of fixed length sequences. However, found offsets of type "
                f"{type(offsets)}"
            )
        count, width = input.shape
        return input.reshape(-1), np.repeat(np.arange(count), width), count
    if len(input.shape) != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {len(input.shape)}"
        )
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    starts = np.asarray(looked_at(offsets))
    if starts.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if starts.size and starts[0] != 0:
        raise ValueError(
            f"offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {starts[0]}"
        )
    ends = starts[1:] if has_end else np.append(starts[1:], input.shape[0])
    starts = starts[:-1] if has_end else starts
    return input, np.repeat(np.arange(len(starts)), ends - starts), len(starts)


def _largest(rows: Any, bag: np.ndarray, count: int, sizes: np.ndarray) -> Tensor:
    """The largest elements of bags; 0 for empty ones."""
    full = fixed(functools.partial(_places, bag, count), rows)
    picked = _PICK(rows, full, np.broadcast_to(np.arange(rows.shape[1]), full.shape))
    is_full = Tensor.of((sizes > 0).astype(rows.dtype)[:, None])
    return picked * is_full


def _places(bag: np.ndarray, count: int, x: Any) -> Any:
    """Where the first of the largest elements of each bag stands; NaN counts if it is the first."""
    n, width = shape_of(x)
    is_first = np.append(True, bag[1:] != bag[:-1])[:n, None]
    x = ew.where(x == x, x, ew.where(is_first, math.inf, -math.inf))
    best = scatter(np.full((count, width), -math.inf, x.dtype), x, (bag,), (0,), "maximum")
    place = ew.where(x == gather(best, (bag,), (0,)), np.arange(n)[:, None], n)
    first = scatter(np.full((count, width), n), place, (bag,), (0,), "minimum")
    return ew.minimum(first, max(n - 1, 0))


_PICK = Operation("EmbeddingBag", lambda x, rows, columns: gather(x, (rows, columns), (0, 1)))
