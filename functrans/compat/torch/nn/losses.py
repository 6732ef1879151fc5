"""Loss functions, one node each.

Not here: the classes (``nn.modules``).

A loss with ``reduction="mean"`` or ``"sum"`` is one program with the reduction in it.

Layer: ``compat``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functrans.autograd.methods.shaping import axis_of
from functrans.autograd.programs import Operation
from functrans.autograd.promotion import result_dtype, to_dtype
from functrans.autograd.sizes import integer
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn.activations import check_tensor, short_dtype
from functrans.core.boundary import warn
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.values import Array, Operand
from functrans.primitives import elementwise as ew
from functrans.primitives import structural
from functrans.primitives import torch_elementwise as te
from functrans.primitives.activations import log_softmax
from functrans.primitives.indexing import gather, take_along_axis
from functrans.primitives.special.functions import softplus as softplus_of

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy",
    "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss",
    "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
]  # fmt: skip

_FEW_CLASSES = 32
"""Up to this number a comparison with all classes is faster than a look-up and its transpose."""


def reduction_of(reduction: str, size_average: object = None, reduce: object = None) -> str:
    """The reduction that is meant, also by torch's deprecated arguments.

    Raises:
      ValueError: there is no such reduction.
    """
    if size_average is not None or reduce is not None:
        if reduce is None or reduce:
            reduction = "mean" if size_average is None or size_average else "sum"
        else:
            reduction = "none"
        warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' "
            "instead."
        )
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _all_axes(x: Operand) -> tuple[int, ...]:
    return tuple(range(len(shape_of(x))))


def _reduced(x: Operand, reduction: str) -> Any:
    if reduction == "none":
        return x
    total = structural.reduce_sum(x, _all_axes(x))
    if reduction == "sum":
        return total
    n = math.prod(shape_of(x))
    return total / float(n) if n else total * math.nan


# element by element ------------------------------------------------------------------------------


def _mse(x: Array | Tensor, y: Array | Tensor, *, reduction: str) -> Array | Tensor:
    difference = x - y
    return _reduced(difference * difference, reduction)


def _smooth_l1(x: Array, y: Array, *, beta: float, reduction: str) -> Any:
    distance = te.absolute(x - y)
    if not beta:
        return _reduced(distance, reduction)
    far = distance >= beta  # NaN is not
    inside = ew.where(far, 0.0, x - y)
    return _reduced(ew.where(far, distance - 0.5 * beta, 0.5 / beta * (inside * inside)), reduction)


def _huber(x: Array, y: Array, *, delta: float, reduction: str) -> Any:
    distance = te.absolute(x - y)
    far = distance >= delta  # NaN is not
    inside = ew.where(far, 0.0, x - y)
    return _reduced(
        ew.where(far, delta * (distance - 0.5 * delta), 0.5 * (inside * inside)), reduction
    )


def _bce(x: Array, y: Array, weight: object, *, reduction: str) -> Any:
    loss = te.binary_cross_entropy(x, y)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _bce_logits(x: Array, y: Array, weight: object, pos_weight: Any, *, reduction: str) -> Any:
    if pos_weight is None:
        loss = softplus_of(-x) + (1.0 - y) * x
    else:
        loss = (1.0 - y) * x + (1.0 + (pos_weight - 1.0) * y) * softplus_of(-x)
    return _reduced(loss if weight is None else loss * weight, reduction)


def _kl(x: Array, y: Array, *, reduction: str, is_log: bool) -> Any:
    loss = ew.exp(y) * (y - x) if is_log else te.xlogy(y, y) - y * x
    if reduction == "batchmean":
        return structural.reduce_sum(loss, _all_axes(loss)) / float(max(shape_of(loss)[0], 1))
    return _reduced(loss, reduction)


def _poisson(x: Array, y: Array, *, log_input: bool, full: bool, eps: float, reduction: str) -> Any:
    loss = ew.exp(x) - y * x if log_input else x - y * ew.log(x + eps)
    if full:
        inside = ew.where(y > 1, y, 2.0)
        stirling = inside * ew.log(inside) - inside + 0.5 * ew.log(2 * math.pi * inside)
        loss = loss + ew.where(y > 1, stirling, 0.0)
    return _reduced(loss, reduction)


def _hinge_embedding(x: Array, y: Array, *, margin: float, reduction: str) -> Any:
    apart = ew.where(y != 1, te.clamp_min(margin - x, 0.0), 0.0)
    return _reduced(apart + ew.where(y != -1, x, 0.0), reduction)


def _margin_ranking(a: Any, b: Any, y: Any, *, margin: float, reduction: str) -> Any:
    gap = -y * (a - b) + margin
    return _reduced(te.clamp_min(gap, 0.0), reduction)


_MSE = Operation("MseLoss", _mse)
_L1 = Operation("L1Loss", lambda x, y, *, reduction: _reduced(te.absolute(x - y), reduction))
_SMOOTH_L1 = Operation("SmoothL1Loss", _smooth_l1)
_HUBER = Operation("HuberLoss", _huber)
_BCE = Operation("BinaryCrossEntropy", _bce)
_BCE_LOGITS = Operation("BinaryCrossEntropyWithLogits", _bce_logits)
_KL = Operation("KlDiv", _kl)
_SOFT_MARGIN = Operation(
    "SoftMarginLoss", lambda x, y, *, reduction: _reduced(softplus_of(-y * x), reduction)
)
_POISSON = Operation("PoissonNllLoss", _poisson)
_HINGE_EMBEDDING = Operation("HingeEmbeddingLoss", _hinge_embedding)
_MARGIN_RANKING = Operation("MarginRankingLoss", _margin_ranking)


def _pair(name: str, input: Any, target: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors of one dtype; torch warns where their shapes differ."""
    check_tensor(name, "input", 1, input)
    check_tensor(name, "target", 2, target)
    if input.shape != target.shape:
        warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). This will likely lead to incorrect results due to "
            "broadcasting. Please ensure they have the same size."
        )
        try:
            np.broadcast_shapes(input.shape, target.shape)
        except ValueError:
            raise _cannot_broadcast(input.shape, target.shape) from None
    if input.dtype != target.dtype:
        dtype = result_dtype(input, target)
        input, target = to_dtype(input, dtype), to_dtype(target, dtype)
    return input, target


def _cannot_broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> RuntimeError:
    for i, (m, n) in enumerate(zip(reversed(a), reversed(b), strict=False)):
        if m != n and 1 not in (m, n):
            axis = max(len(a), len(b)) - 1 - i
            return RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at "
                f"non-singleton dimension {axis}"
            )
    return RuntimeError(f"shapes {list(a)} and {list(b)} do not broadcast")


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Squared differences, averaged, summed, or each.

    Args:
      input: a tensor.
      target: a tensor, usually of its shape.
      size_average: deprecated.
      reduce: deprecated.
      reduction: ``"mean"``, ``"sum"`` or ``"none"``.
      weight: factors of the squares; the mean is divided by their sum.

    Raises:
      ValueError: there is no such reduction.
      RuntimeError: the shapes do not fit.

    Example:
      >>> from functrans.autograd import tensor
      >>> mse_loss(tensor([1.0, 2.0]), tensor([0.0, 0.0]))
      tensor(2.5)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    input, target = _pair("mse_loss", input, target)
    if weight is None:
        return _MSE(input, target, reduction=reduction)
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    return _weighted(_MSE(input, target, reduction="none"), weight, reduction)


def _weighted(each: Any, weight: Any, reduction: str) -> Tensor:
    each = each * weight
    if reduction == "none":
        return each
    return each.sum() if reduction == "sum" else each.sum() / weight.sum()


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Absolute differences; the derivative at 0 is 0."""
    reduction = reduction_of(reduction, size_average, reduce)
    return _L1(*_pair("l1_loss", input, target), reduction=reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Absolute differences less ``beta / 2``; below ``beta`` squares divided by ``2 * beta``."""
    reduction = reduction_of(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    pair = _pair("smooth_l1_loss", input, target)
    return _SMOOTH_L1(*pair, beta=float(beta), reduction=reduction)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Half the squares of differences up to ``delta``, linear beyond."""
    reduction = reduction_of(reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    pair = _pair("huber_loss", input, target)
    if weight is None:
        return _HUBER(*pair, delta=float(delta), reduction=reduction)
    each = _HUBER(*pair, delta=float(delta), reduction="none")
    return _weighted(each, weight, reduction)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Cross entropy of probabilities ``input`` and ``target``; logarithms are at least -100.

    Raises:
      ValueError: the shapes differ.
      RuntimeError: an input is not between 0 and 1.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensor("binary_cross_entropy", "input", 1, input)
    check_tensor("binary_cross_entropy", "target", 2, target)
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. Please ensure they have the same size."
        )
    value = input._value
    if not isinstance(value, Tracer) and not ((value >= 0) & (value <= 1)).all():
        raise RuntimeError("all elements of input should be between 0 and 1")
    return _BCE(input, target, weight, reduction=reduction)


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Cross entropy of ``sigmoid(input)`` and ``target``.

    Args:
      input: logits.
      target: probabilities, of their shape.
      weight: factors of the elements.
      size_average: deprecated.
      reduce: deprecated.
      reduction: ``"mean"``, ``"sum"`` or ``"none"``.
      pos_weight: factors of the positive terms.

    Raises:
      ValueError: the shapes differ.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    return _BCE_LOGITS(input, target, weight, pos_weight, reduction=reduction)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``target * (log(target) - input)``; ``input`` is a logarithm already.

    Args:
      input: logarithms of probabilities.
      target: probabilities.
      size_average: deprecated.
      reduce: deprecated.
      reduction: ``"batchmean"``, ``"mean"``, ``"sum"`` or ``"none"``.
      log_target: whether the target is a logarithm, too.
    """
    if reduction != "batchmean":
        reduction = reduction_of(reduction, size_average, reduce)
        if reduction == "mean":
            warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support "
                "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
                "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
                "major release."
            )
    return _KL(input, target, reduction=reduction, is_log=bool(log_target))


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-target * input))`` for targets 1 and -1."""
    reduction = reduction_of(reduction, size_average, reduce)
    pair = _pair("soft_margin_loss", input, target)
    return _SOFT_MARGIN(*pair, reduction=reduction)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
    size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Negative log-likelihood of counts; ``input`` is the mean, or its logarithm."""
    reduction = reduction_of(reduction, size_average, reduce)
    return _POISSON(
        input, target, log_input=bool(log_input), full=bool(full), eps=float(eps),
        reduction=reduction,
    )  # fmt: skip


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``input`` for targets 1, ``max(0, margin - input)`` for targets -1."""
    reduction = reduction_of(reduction, size_average, reduce)
    return _HINGE_EMBEDDING(input, target, margin=float(margin), reduction=reduction)


def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """``max(0, -target * (input1 - input2) + margin)``."""
    reduction = reduction_of(reduction, size_average, reduce)
    return _MARGIN_RANKING(input1, input2, target, margin=float(margin), reduction=reduction)


# classes -----------------------------------------------------------------------------------------


def _picked(x: Any, target: Array | Tensor, axis: int, is_checked: bool) -> Array | Tensor:
    """Elements of ``x`` at classes along an axis; ``x`` has the axis, ``target`` has not."""
    shape = shape_of(x)
    wide = structural.reshape(target, structural.kept_shape(shape, (axis,)))
    if is_checked and shape[axis] <= _FEW_CLASSES:
        classes = np.arange(shape[axis]).reshape((-1,) + (1,) * (len(shape) - axis - 1))
        return structural.reduce_sum(ew.where(wide == classes, x, 0.0), (axis,))
    return structural.reshape(take_along_axis(x, wide, axis), shape_of(target))


def _column(weight: Any, ndim: int) -> Array:
    """Weights of classes, with axes of extent 1 behind."""
    return structural.reshape(weight, shape_of(weight) + (1,) * (ndim - 1))


def _nll(
    log_p: Array | Tensor,
    target: Array | Tensor,
    weight: Array | None,
    *,
    axis: int,
    ignored: int | None,
    reduction: str,
    smoothing: float,
    is_checked: bool,
) -> Any:
    """Negative log-likelihood of classes, from logarithms of probabilities."""
    counts = None
    if ignored is not None:
        counts = target != ignored
        target = ew.where(counts, target, 0)
    shape = shape_of(log_p)
    loss = -_picked(log_p, target, axis, is_checked)
    factor: Any = None
    if weight is not None:
        factor = gather(weight, (target,), (0,))
        loss = loss * factor
    if counts is not None:
        loss = ew.where(counts, loss, 0.0)
        mask = structural.cast(counts, dtype_of(log_p))
        factor = mask if factor is None else factor * mask
    total_axes = _all_axes(loss)
    if smoothing:
        if weight is None:
            spread = -structural.reduce_sum(log_p, (axis,))
        else:
            column = _column(weight, len(shape) - axis)
            spread = -structural.reduce_sum(log_p * column, (axis,))
        if counts is not None:
            spread = ew.where(counts, spread, 0.0)
        loss = (1.0 - smoothing) * loss + (smoothing / shape[axis]) * spread
    if reduction == "none":
        return loss
    total = structural.reduce_sum(loss, total_axes)
    if reduction == "sum":
        return total
    if factor is None:
        n = math.prod(shape_of(loss))
        return total / float(n) if n else total * math.nan
    return total / structural.reduce_sum(factor, total_axes)


def _nll_of_logits(
    x: Any, target: Any, weight: Array | None, *, axis: int, **static: Any
) -> Array | Tensor:
    return _nll(log_softmax(x, (axis,)), target, weight, axis=axis, **static)


def _soft_cross_entropy(
    x: Array, target: Array, weight: object, *, axis: int, reduction: str, smoothing: float
) -> Any:
    """Cross entropy with probabilities of classes as targets."""
    shape = shape_of(x)
    log_p = log_softmax(x, (axis,))
    if smoothing:
        target = target * (1.0 - smoothing) + smoothing / shape[axis]
    each = log_p * target
    if weight is not None:
        each = each * _column(weight, len(shape) - axis)
    loss = -structural.reduce_sum(each, (axis,) if reduction == "none" else _all_axes(each))
    return loss / (math.prod(shape) / max(shape[axis], 1)) if reduction == "mean" else loss


_NLL = Operation("NllLoss", _nll)
_CROSS_ENTROPY = Operation("NllLoss", _nll_of_logits)
_SOFT_CROSS_ENTROPY = Operation("Div", _soft_cross_entropy)


def _checked_classes(
    x: Tensor, target: Tensor, weight: Any, axis: int, ignore_index: int
) -> tuple[int | None, bool]:
    """The class that is ignored, if it occurs, and whether the others were seen to exist."""
    ignore_index = integer(ignore_index, "ignore_index", "nll_loss")
    shape, value = x.shape, target._value
    expected = shape[:axis] + shape[axis + 1 :]
    if value.shape != expected:
        if axis and value.shape[:1] != shape[:1]:
            raise ValueError(
                f"Expected input batch_size ({shape[0]}) to match target batch_size "
                f"({value.shape[0] if value.shape else 1})."
            )
        raise RuntimeError(
            f"Expected target size {list(expected)}, got {target.shape}"
            if len(shape) > 2
            else f"size mismatch (got input: {list(shape)}, target: {list(value.shape)})"
        )
    if value.dtype != np.int64:
        got = short_dtype(value.dtype)
        if value.dtype != np.uint8:
            raise RuntimeError(f"expected target dtype to be Long or Byte, but got {got}")
        if len(shape) > 2:
            raise RuntimeError(f"expected scalar type Long but found {got}")
    n = shape[axis]
    if weight is not None and tuple(weight.shape) != (n,):
        raise RuntimeError(
            "weight tensor should be defined either for all or no classes, got weight tensor of "
            f"shape {list(weight.shape)}"
        )
    if isinstance(value, Tracer):
        return ignore_index, False
    if value.dtype == np.int64 and (value.view(np.uint64) < n).all() and not 0 <= ignore_index < n:
        return None, True
    is_ignored = value == ignore_index
    bad = ~is_ignored & ((value < 0) | (value >= n))
    if bad.any():
        raise IndexError(f"Target {value[bad].flat[0]} is out of bounds.")
    return (ignore_index if is_ignored.any() else None), True


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negative log-likelihood of classes.

    Args:
      input: logarithms of probabilities, ``[n, classes, *]`` or ``[classes]``.
      target: integers, ``[n, *]`` or ``[]``.
      weight: of each class; the mean is divided by the sum of those that occur.
      size_average: deprecated.
      ignore_index: a class that does not count.
      reduce: deprecated.
      reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    Raises:
      IndexError: there is no such class.
      ValueError: numbers of samples differ.
    """
    reduction = reduction_of(reduction, size_average, reduce)
    check_tensor("nll_loss_nd", "input", 1, input)
    check_tensor("nll_loss_nd", "target", 2, target)
    if not input.shape:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    axis = 0 if len(input.shape) == 1 else 1
    ignored, is_checked = _checked_classes(input, target, weight, axis, ignore_index)
    return _NLL(
        input, target, weight,
        axis=axis, ignored=ignored, reduction=reduction, smoothing=0.0, is_checked=is_checked,
    )  # fmt: skip


def cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Cross entropy of the softmax of logits and classes, or probabilities of classes.

    Args:
      input: logits, ``[n, classes, *]`` or ``[classes]``.
      target: integers, ``[n, *]`` or ``[]``; or probabilities of the shape of ``input``.
      weight: of each class; the mean is divided by the sum of those that occur.
      size_average: deprecated.
      ignore_index: a class that does not count.
      reduce: deprecated.
      reduction: ``"mean"``, ``"sum"`` or ``"none"``.
      label_smoothing: the share of each target that is spread over all classes.

    Raises:
      IndexError: there is no such class.
      ValueError: numbers of samples differ.
      RuntimeError: the smoothing is not between 0 and 1.

    Example:
      >>> from functrans.autograd import tensor
      >>> cross_entropy(tensor([[0.0, 0.0]]), tensor([1]))
      tensor(0.6931)
    """
    if size_average is not None or reduce is not None or reduction not in ("mean", "sum", "none"):
        reduction = reduction_of(reduction, size_average, reduce)
    check_tensor("cross_entropy_loss", "input", 1, input)
    check_tensor("cross_entropy_loss", "target", 2, target)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(
            f"label_smoothing must be between 0.0 and 1.0. Got: {float(label_smoothing):g}"
        )
    shape = input.shape
    axis = axis_of(0 if len(shape) == 1 else 1, len(shape))
    if target.shape == shape and target.dtype.kind not in "iu":
        return _SOFT_CROSS_ENTROPY(
            input, target, weight,
            axis=axis, reduction=reduction, smoothing=float(label_smoothing),
        )  # fmt: skip
    ignored, is_checked = _checked_classes(input, target, weight, axis, ignore_index)
    return _CROSS_ENTROPY(
        input, target, weight,
        axis=axis, ignored=ignored, reduction=reduction, smoothing=float(label_smoothing),
        is_checked=is_checked,
    )  # fmt: skip
