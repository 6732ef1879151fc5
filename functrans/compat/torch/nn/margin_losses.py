"""Losses of distances and margins, and of sequences, one node each.

Not here: the usual losses (``nn.losses``), the classes (``nn.loss_modules``).

Layer: ``compat``. Reference: Graves et al., Connectionist temporal classification, ICML 2006.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.methods.arithmetic import promoted, refuse_truth
from functrans.autograd.methods.rows import fixed, known, plain
from functrans.autograd.programs import Operation
from functrans.autograd.promotion import to_dtype
from functrans.autograd.sizes import integer
from functrans.autograd.tensors import Tensor, plain_of
from functrans.compat.torch.nn.activations import short_dtype
from functrans.compat.torch.nn.losses import _reduced, reduction_of
from functrans.control.custom_rules import stop_gradient
from functrans.core.dispatch import shape_of
from functrans.core.values import Array
from functrans.lax import scan
from functrans.numpy.linalg_norms import abs_squared
from functrans.primitives import elementwise as ew
from functrans.primitives import movement, structural
from functrans.primitives import torch_elementwise as te
from functrans.primitives.complex_parts import absolute
from functrans.primitives.indexing import take_along_axis
from functrans.primitives.reduction import reduce_max
from functrans.primitives.special.functions import softplus

__all__ = [
    "cosine_embedding_loss", "ctc_loss", "gaussian_nll_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "pairwise_distance", "pdist",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip

_INT64 = np.dtype(np.int64)


def _relu(x: Any) -> Any:
    return ew.where(x > 0, x, 0.0)


# distances ---------------------------------------------------------------------------------------


def _norm(d: Array, order: float) -> Array:
    """The norm along the last axis; its derivative at 0 is 0."""
    last = len(shape_of(d)) - 1
    size = absolute(d)
    if order == math.inf:
        return reduce_max(size, (last,))
    if order == 1.0:
        return structural.reduce_sum(size, (last,))
    powers = abs_squared(d) if order == 2.0 else ew.where(size > 0, size, 1.0) ** order * (size > 0)
    if order == 0.0:
        return structural.reduce_sum(structural.cast(size > 0, size.dtype), (last,))
    total = structural.reduce_sum(powers, (last,))
    is_zero = total == 0
    safe = ew.where(is_zero, 1.0, total)
    return ew.where(is_zero, 0.0, ew.sqrt(safe) if order == 2.0 else safe ** (1.0 / order))


def _distance(a: Any, b: Any, *, p: float, eps: float, keepdim: bool) -> Array:
    out = _norm(a - b + eps, p)
    return structural.reshape(out, (*shape_of(out), 1)) if keepdim else out


_DISTANCE = Operation("Norm", _distance)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Norms of the differences of vectors along the last axis.

    Args:
      x1: ``[*, d]``.
      x2: ``[*, d]``.
      p: order of the norm.
      eps: added to the differences.
      keepdim: whether the last axis stays, with extent 1.

    Example:
      >>> from functrans.autograd import tensor
      >>> pairwise_distance(tensor([[0.0, 0.0]]), tensor([[3.0, 4.0]]), eps=0.0)
      tensor([5.])
    """
    if not x1.shape and not x2.shape:
        found = pairwise_distance(x1[None], x2[None], p, eps, keepdim)
        return found[0] if keepdim else found
    refuse_truth(x1, x2)
    x1, x2 = promoted(x1, x2, true=True)
    return _DISTANCE(x1, x2, p=float(p), eps=float(eps), keepdim=bool(keepdim))


def _pdist(x: Array, *, p: float) -> Array:
    rows, columns = np.triu_indices(shape_of(x)[0], 1)
    return _norm(x[rows] - x[columns], p)


_PDIST = Operation("PdistForward", _pdist)


def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Norms of the differences of all pairs of rows.

    Raises:
      RuntimeError: the input has not two axes, or ``p`` is negative.
    """
    if len(input.shape) != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {len(input.shape)}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return _PDIST(input, p=float(p))


# margins -----------------------------------------------------------------------------------------


def _triplet(
    a: Any, b: Any, c: object, *, margin: float, p: float, eps: float, swap: bool, reduction: str
) -> Any:
    near, far = _norm(a - b + eps, p), _norm(a - c + eps, p)
    if swap:
        far = ew.minimum(far, _norm(b - c + eps, p))
    return _reduced(te.clamp_min(margin + near - far, 0.0), reduction)


_TRIPLET = Operation("TripletMarginLoss", _triplet)


def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
    eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """By how much vectors are not nearer to one than to another, by a margin.

    Args:
      anchor: ``[*, d]``.
      positive: what should be near.
      negative: what should be far.
      margin: by how much.
      p: order of the norm.
      eps: added to differences.
      swap: whether the distance of ``positive`` and ``negative`` counts, too.
      size_average: deprecated.
      reduce: deprecated.
      reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
      ValueError: there is no such reduction, or the margin is not positive.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _TRIPLET(
        anchor, positive, negative, margin=float(margin), p=float(p), eps=float(eps),
        swap=bool(swap), reduction=reduction,
    )  # fmt: skip


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[..., Any] | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``triplet_margin_loss`` with a distance of the user's.

    Raises:
      ValueError: there is no such reduction, or the margin is not positive.
    """
    reduction = reduction_of(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function or pairwise_distance
    near: Any = distance(anchor, positive)
    far: Any = distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    loss: Any = (margin + near - far).clamp(min=0.0)
    if reduction == "none":
        return loss
    return loss.mean() if reduction == "mean" else loss.sum()


def _cosine(a: Any, b: Any, y: Any, *, margin: float, reduction: str) -> Any:
    last = len(shape_of(a)) - 1
    eps = 1e-12  # as in torch: keeps the derivative finite at 0
    aa = structural.reduce_sum(a * a, (last,)) + eps
    bb = structural.reduce_sum(b * b, (last,)) + eps
    cosine = structural.reduce_sum(a * b, (last,)) / ew.sqrt(aa * bb)
    loss = ew.where(
        y == 1, 1.0 - cosine, ew.where(y == -1, te.clamp_min(cosine - margin, 0.0), 0.0)
    )
    return _reduced(loss, reduction)


_COSINE = Operation("CosineEmbeddingLoss", _cosine)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """By how much the cosine of vectors is not 1 (target 1), or above a margin (target -1).

    Raises:
      RuntimeError: the numbers of axes do not fit.
      ValueError: there is no such reduction.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if len(target.shape) not in (0, 1) or len(input1.shape) != len(target.shape) + 1:
        raise RuntimeError(
            f"{len(target.shape)}D target tensor expects {len(target.shape) + 1}D input tensors, "
            f"but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    return _COSINE(input1, input2, target, margin=float(margin), reduction=reduction)


def _multi_margin(x: Any, y: Any, weight: Any, *, p: int, margin: float, reduction: str) -> Any:
    rows, classes = shape_of(x)
    column = structural.reshape(y, (rows, 1))
    own = take_along_axis(x, column, 1)
    loss = _relu(margin - own + x) ** p
    if weight is not None:
        loss = loss * structural.reshape(weight[y], (rows, 1))
    loss = ew.where(np.arange(classes) == column, 0.0, loss)
    return _reduced(structural.reduce_sum(loss, (1,)) / float(classes), reduction)


_MULTI_MARGIN = Operation("MultiMarginLoss", _multi_margin)


def multi_margin_loss(
    input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """By how much scores of other classes are not below that of the right one, by a margin.

    Args:
      input: ``[n, c]`` or ``[c]``.
      target: classes.
      p: power, 1 or 2.
      margin: by how much.
      weight: factors of the classes.
      size_average: deprecated.
      reduce: deprecated.
      reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
      ValueError: there is no such reduction or power.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    settings = {"p": int(p), "margin": float(margin), "reduction": reduction}
    return _by_rows(_MULTI_MARGIN, input, target, weight, **settings)


def _by_rows(operation: Operation, input: Any, target: Any, *more: Any, **settings: Any) -> Tensor:
    """A loss of rows, or of one.

    Raises:
      RuntimeError: classes of another dtype than int64.
    """
    if target.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {short_dtype(target.dtype)}")
    if len(input.shape) > 1:
        return operation(input, target, *more, **settings)
    out = operation(input.reshape(1, -1), target.reshape(1, *target.shape), *more, **settings)
    return out.reshape(()) if settings["reduction"] == "none" else out


def _multilabel_margin(x: Any, y: Any, *, reduction: str) -> Any:
    rows, classes = shape_of(x)
    before = _all_so_far(y >= 0)
    safe = ew.where(before, y, 0)
    hits = structural.reshape(safe, (rows, classes, 1)) == np.arange(classes)
    hits = hits & structural.reshape(before, (rows, classes, 1))
    is_target = reduce_max(structural.cast(hits, np.int64), (1,)) > 0
    own = take_along_axis(x, safe, 1)
    gaps = (
        1.0
        - structural.reshape(own, (rows, classes, 1))
        + structural.reshape(x, (rows, 1, classes))
    )
    counted = structural.reshape(before, (rows, classes, 1)) & ~structural.reshape(
        is_target, (rows, 1, classes)
    )
    loss = ew.where(counted, _relu(gaps), 0.0)
    return _reduced(structural.reduce_sum(loss, (1, 2)) / float(classes), reduction)


def _all_so_far(x: Any) -> Any:
    """Whether a truth value and all before it along the last axis hold."""
    parts = []
    so_far: Any = None
    for i in range(shape_of(x)[-1]):
        now = x[..., i]
        so_far = now if so_far is None else so_far & now
        parts.append(so_far)
    return movement.stack(parts, axis=-1)


_MULTILABEL_MARGIN = Operation("MultilabelMarginLoss", _multilabel_margin)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """By how much scores of other classes are not below those of the right ones.

    Args:
      input: ``[n, c]`` or ``[c]``.
      target: per row the right classes, then -1.
      size_average: deprecated.
      reduce: deprecated.
      reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
      ValueError: there is no such reduction.
      RuntimeError: the extents differ.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if input.shape != target.shape:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    return _by_rows(_MULTILABEL_MARGIN, input, target, reduction=reduction)


def _multilabel_soft(x: Any, y: Any, weight: object, *, reduction: str) -> Any:
    loss = y * softplus(-x) + (1.0 - y) * softplus(x)
    if weight is not None:
        loss = loss * weight
    last = len(shape_of(loss)) - 1
    mean = structural.reduce_sum(loss, (last,)) / float(shape_of(loss)[-1])
    return _reduced(mean, reduction)


_MULTILABEL_SOFT = Operation("MultilabelSoftMarginLoss", _multilabel_soft)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of independent classes, averaged over them.

    Raises:
      ValueError: there is no such reduction.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    return _MULTILABEL_SOFT(input, target, weight, reduction=reduction)


# likelihoods -------------------------------------------------------------------------------------


def _gaussian(x: Any, y: Any, variance: Any, *, full: bool, eps: float, reduction: str) -> Any:
    held = variance + stop_gradient(ew.where(variance < eps, eps - variance, 0))
    loss = 0.5 * (ew.log(held) + (x - y) * (x - y) / held)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduced(loss, reduction)


_GAUSSIAN = Operation("GaussianNllLoss", _gaussian)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Negative logarithm of the density of a normal distribution.

    Args:
      input: means.
      target: where the density is asked for.
      var: variances; one per row is enough.
      full: whether the constant is added.
      eps: the least variance; gradients pass it unchanged.
      reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
      ValueError: a variance is negative, or extents do not fit.
    """
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        spread: Any = Tensor.of(np.full(input.shape, var, input.dtype))
    else:
        spread = var
        value = plain_of(var)
        if isinstance(value, (np.ndarray, np.generic)) and bool(np.any(np.less(value, 0))):
            raise ValueError("var has negative entry/entries")
    if spread.shape != input.shape:
        if spread.shape == input.shape[:-1]:
            spread = spread.unsqueeze(-1)
        elif not (spread.shape[:-1] == input.shape[:-1] and spread.shape[-1] == 1):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    return _GAUSSIAN(input, target, spread, full=bool(full), eps=float(eps), reduction=reduction)


# sequences ---------------------------------------------------------------------------------------

_NEVER = -1e30
"""The logarithm of a probability of 0; finite, so that derivatives are."""


def _log_sum(*xs: Any) -> Array:
    best = xs[0]
    for x in xs[1:]:
        best = ew.maximum(best, x)
    best = stop_gradient(best)
    total: Any = 0.0
    for x in xs:
        total = total + ew.exp(x - best)
    return best + ew.log(total)


def _ctc(
    log_probs: Array,
    labels: Array,
    lengths: Array,
    counts: Array,
    may_skip: Array,
    *,
    zero_infinity: bool,
    reduction: str,
) -> Array:
    """``labels`` are ``[n, s]`` with blanks between; ``counts`` the numbers of labels."""
    steps, batch, _ = shape_of(log_probs)
    width = shape_of(labels)[1]
    index = structural.broadcast_to(labels, (steps, batch, width))
    emitted = take_along_axis(log_probs, index, 2)
    start = ew.where(np.arange(width) < 2, emitted[0], _NEVER)
    never = np.full((batch, 2), _NEVER, log_probs.dtype)

    def step(alpha: Array, now: Sequence[Array]) -> Any:
        chance, t = now
        before = movement.concatenate([never[:, :1], alpha[:, :-1]], 1)
        skipped = movement.concatenate([never, alpha[:, :-2]], 1)
        skipped = ew.where(may_skip, skipped, _NEVER)
        new = ew.maximum(_log_sum(alpha, before, skipped), _NEVER) + chance
        new = ew.where(structural.reshape(t < lengths, (batch, 1)), new, alpha)
        return new, None

    alpha = start
    if steps > 1:
        alpha, _ = scan(step, start, (emitted[1:], np.arange(1, steps)))
    ends = 2 * counts
    last = take_along_axis(alpha, structural.reshape(ends, (batch, 1)), 1)
    prior = take_along_axis(alpha, structural.reshape(ew.maximum(ends - 1, 0), (batch, 1)), 1)
    prior = ew.where(structural.reshape(counts > 0, (batch, 1)), prior, _NEVER)
    loss = structural.reshape(-_log_sum(last, prior), (batch,))
    impossible = loss > -_NEVER / 2
    if zero_infinity:
        loss = ew.where(impossible, 0.0, loss)
    else:
        loss = ew.where(impossible, math.inf, loss)
    if reduction == "mean":
        loss = loss / structural.cast(ew.maximum(counts, 1), log_probs.dtype)
        return structural.reduce_sum(loss, (0,)) / float(batch)
    return _reduced(loss, reduction)


_CTC = Operation("CtcLoss", _ctc)


def _vector(lengths: Any) -> Tensor:
    if not isinstance(lengths, Tensor):
        lengths = Tensor.of(np.asarray(lengths))
    return to_dtype(lengths, _INT64).reshape(-1)


def _rows_of(targets: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Targets that are joined as a row for each sequence."""
    if targets.size != counts.sum():
        raise RuntimeError("Expected target_lengths to sum up to the number of targets")
    rows = np.zeros((len(counts), int(counts.max(initial=0))), np.int64)
    rows[np.arange(rows.shape[1]) < counts[:, None]] = targets
    return rows


def _with_blanks(most: int, blank: int, targets: Array, counts: Array) -> tuple[Any, Any]:
    """Labels with blanks between them, and which may follow the label before the blank."""
    batch, width = shape_of(targets)
    most = max(most, 1)
    rows = movement.pad(
        structural.cast(targets, _INT64), np.int64(blank), [(0, 0, 0), (0, most - width, 0)]
    )
    is_label = np.arange(most) < structural.reshape(counts, (batch, 1))
    rows = ew.where(is_label, rows, blank)
    pairs = movement.stack([np.full((batch, most), blank, np.int64), rows], 2)
    pairs = structural.reshape(pairs, (batch, 2 * most))
    labels = movement.concatenate([pairs, np.full((batch, 1), blank, np.int64)], 1)
    later, earlier = labels[:, 2:], labels[:, :-2]
    may_skip = (later != blank) & (later != earlier)
    return labels, movement.concatenate([np.zeros((batch, 2), bool), may_skip], 1)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: object,
    target_lengths: object,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Negative logarithm of the probability of sequences, over all their alignments.

    Args:
      log_probs: ``[t, n, c]`` or ``[t, c]``: logarithms of probabilities.
      targets: ``[n, s]``, or all of them joined; without blanks.
      input_lengths: how many steps count, per sequence.
      target_lengths: how many labels, per sequence.
      blank: the class that stands for nothing.
      reduction: ``"mean"`` (divided by the numbers of labels), ``"sum"`` or ``"none"``.
      zero_infinity: whether what cannot be aligned counts 0.

    Raises:
      ValueError: there is no such reduction.
      RuntimeError: lengths do not fit.
    """
    reduction, blank = reduction_of(reduction), integer(blank, "blank", "ctc_loss")
    scores: Any = log_probs
    alone = len(scores.shape) == 2
    if alone:
        scores = scores.unsqueeze(1)
    steps, batch, classes = scores.shape
    lengths, counts = (_vector(given) for given in (input_lengths, target_lengths))
    if lengths.shape != (batch,) or counts.shape != (batch,):
        raise RuntimeError("input_lengths and target_lengths must be of size batch_size")
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    longest = known(lengths)
    if longest is not None and longest.size and int(longest.max()) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value "
            f"{int(longest.max())}"
        )
    rows: Any = targets
    if len(rows.shape) == 1 and not alone:
        rows = Tensor.of(_rows_of(plain(rows), plain(counts)))
    rows = rows.reshape(batch, -1)
    numbers = known(counts)
    most = rows.shape[1] if numbers is None else int(numbers.max(initial=0))
    found: Any = fixed(functools.partial(_with_blanks, most, blank), rows, counts)
    labels, may_skip = found
    out = _CTC(
        scores,
        labels,
        lengths,
        counts,
        may_skip,
        zero_infinity=bool(zero_infinity),
        reduction=reduction,
    )
    return out.reshape(()) if alone and reduction == "none" else out
