"""Functions of layers with weights: ``linear``, convolutions, pooling, norms, ``embedding``.

Not here: activations, losses and recurrent layers (``nn.activations``, ``nn.losses``,
``nn.recurrent``), the classes (``nn.modules``).

Layer: ``compat``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.autograd.composites import composite
from functrans.autograd.dtypes import limits_of
from functrans.autograd.labels import torch_type
from functrans.autograd.methods.arithmetic import promoted
from functrans.autograd.methods.reductions import axes_of, vector_norm_of
from functrans.autograd.methods.shaping import axis_of, extents
from functrans.autograd.modes import no_grad
from functrans.autograd.programs import Operation
from functrans.autograd.recording import enter_session
from functrans.autograd.sizes import integer
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.functional_names import TORCH
from functrans.compat.torch.nn.activations import check_tensor, short_dtype
from functrans.compat.torch.nn.randomness import kept_elements
from functrans.compat.torch.values import assign, value_of
from functrans.control.custom_rules import stop_gradient
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.values import Array
from functrans.primitives import dot, movement, structural
from functrans.primitives import elementwise as ew
from functrans.primitives import torch_elementwise as te
from functrans.primitives.indexing import gather

__all__ = [
    "batch_norm", "bilinear", "cosine_similarity", "dropout", "dropout1d", "dropout2d", "embedding",
    "group_norm", "instance_norm", "layer_norm", "linear", "normalize", "one_hot", "pad",
    "rms_norm",
]  # fmt: skip

# products ----------------------------------------------------------------------------------------


def _linear(x: Array | Tensor, weight: Array | Tensor, bias: Array | Tensor) -> Array | Tensor:
    last = len(shape_of(x)) - 1
    out = dot.dot_general(x, weight, ((last,), (1,)), ((), ()))
    return out if bias is None else out + bias


def _bilinear(a: Any, b: Any, weight: object, bias: object) -> Any:
    n = len(shape_of(a)) - 1
    # a[..., i] w[o, i, j] -> [..., o, j], then with b[..., j]
    left = dot.dot_general(a, weight, ((n,), (1,)), ((), ()))
    lead = tuple(range(n))
    out = dot.dot_general(left, b, ((n + 1,), (n,)), (lead, lead))
    return out if bias is None else out + bias


_ADDMM = Operation("Addmm", _linear)
_MM = Operation("Mm", _linear)
_BILINEAR = Operation("Trilinear", _bilinear)


def _check_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Refuse what does not fit."""
    check_tensor("linear", "input", 1, x)
    check_tensor("linear", "weight", 2, weight)
    if bias is not None:
        check_tensor("linear", "bias", 3, bias)
    own, given = x._value, weight._value
    if not (given.shape and own.shape):
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {len(x.shape)}D and "
            f"{len(weight.shape)}D"
        )
    if len(given.shape) > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {len(given.shape)}D"
        )
    if len(given.shape) == 1 and bias is not None and (bias.shape or len(own.shape) > 1):
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    n, k = given.shape if len(given.shape) == 2 else (1, given.shape[0])
    if own.shape[-1] != k:
        rows = math.prod(x.shape[:-1])
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1]} and {k}x{n})"
        )
    if own.dtype != given.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {short_dtype(x.dtype)} and "
            f"{short_dtype(weight.dtype)}"
        )
    if bias is not None and bias._value.shape not in ((n,), (1,), ()):
        raise RuntimeError(
            f"The expanded size of the tensor ({n}) must match the existing size "
            f"({bias.shape[-1]}) at non-singleton dimension 1.  Target sizes: "
            f"{[math.prod(x.shape[:-1]), n]}.  Tensor sizes: {list(bias.shape)}"
        )


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``.

    Args:
      input: ``[*, in_features]``.
      weight: ``[out_features, in_features]``; ``[in_features]`` for a result without the last axis.
      bias: ``[out_features]``, or ``None``.

    Raises:
      TypeError: an operand is no tensor.
      RuntimeError: shapes or dtypes do not fit.

    Example:
      >>> from functrans.autograd import tensor
      >>> linear(tensor([1.0, 2.0]), tensor([[1.0, 1.0]]), tensor([0.5]))
      tensor([3.5])
      >>> linear(tensor([1.0, 2.0]), tensor([3.0, 4.0]))
      tensor(11.)
    """
    _check_linear(input, weight, bias)
    if len(weight.shape) == 1:
        out: Tensor = input @ weight
        return out if bias is None else out + bias
    return (_MM if bias is None else _ADDMM)(input, weight, bias)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input1 @ weight[o] @ input2 + bias[o]`` for each output ``o``."""
    return _BILINEAR(input1, input2, weight, bias)


# embedding ---------------------------------------------------------------------------------------


def _embedding(index: Array, weight: Array, share: Array | None, *, padding: int | None) -> Array:
    out = gather(weight, (index,), (0,))
    wide = (*shape_of(index), 1)
    if padding is not None:
        is_padding = structural.reshape(index == padding, wide)
        out = ew.where(is_padding, stop_gradient(out), out)
    if share is not None:
        part = out * structural.reshape(share, wide)
        out = part + stop_gradient(out - part)
    return out


_EMBEDDING = Operation("Embedding", _embedding)


def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of a table.

    Args:
      input: integers.
      weight: ``[rows, width]``.
      padding_idx: a row that gets no gradient.
      max_norm: rows that are used and longer are shortened to it, in place.
      norm_type: of that norm.
      scale_grad_by_freq: whether a row's gradient is divided by how often it is used.
      sparse: must be false; gradients are dense.

    Raises:
      IndexError: there is no such row.
      NotImplementedError: a sparse gradient is asked for.
    """
    check_tensor("embedding", "indices", 2, input)
    if sparse:
        raise NotImplementedError("embedding: gradients are dense; sparse=True is not supported")
    if input.dtype.kind not in "iu":
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {torch_type(input.dtype)} instead (while checking arguments for "
            "embedding)"
        )
    n = weight.shape[0]
    if padding_idx is not None:
        padding_idx = integer(padding_idx, "padding_idx", "embedding")
        if not -n <= padding_idx < n:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= n
    index = input._value
    if not isinstance(index, Tracer) and index.size and not ((index >= 0) & (index < n)).all():
        raise IndexError("index out of range in self")
    if max_norm is not None:
        _shorten(np.asarray(index), weight, max_norm, norm_type)
    share = None
    if scale_grad_by_freq:
        counts = np.bincount(np.ravel(index), minlength=n)
        share = (1.0 / np.asarray(counts)[index]).astype(weight.dtype)
    return _EMBEDDING(input, weight, share, padding=padding_idx)


def _shorten(index: np.ndarray, weight: Tensor, limit: float, order: float) -> None:
    rows = np.unique(index)
    value = value_of(weight)
    norms = np.linalg.norm(value[rows], order, axis=1, keepdims=True)
    factor = np.where(norms > limit, limit / (norms + 1e-7), 1.0).astype(weight.dtype)
    new = value.copy()
    new[rows] = value[rows] * factor
    with no_grad():
        assign("embedding_renorm_", weight, new)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Rows of the identity for integers.

    Raises:
      RuntimeError: there is no such class.
    """
    enter_session(tensor)
    num_classes = integer(num_classes, "num_classes", "one_hot")
    value: Any = tensor._value
    if isinstance(value, Tracer):
        if num_classes == -1:
            raise RuntimeError("one_hot(): give num_classes where the classes are traced")
        traced: Any = value
        made = structural.cast(traced[..., None] == np.arange(num_classes), np.dtype(np.int64))
        return Tensor.of(made, None, tensor._trace)
    if num_classes == -1:
        if not value.size:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        num_classes = int(value.max()) + 1
    if value.size and value.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if value.size and value.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    made = np.asarray(value)[..., None] == np.arange(num_classes)
    return TORCH.tensor(made.astype(np.int64, order="C"))


# dropout -----------------------------------------------------------------------------------------


def _check_probability(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _dropped(
    input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...] | None
) -> Tensor:
    if not training or p == 0 or not input.numel():
        return input
    factors = kept_elements(input, shape, p)
    if inplace:
        input *= factors
        return input
    return input * factors


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeros at random places, and the rest divided by ``1 - p``.

    Args:
      input: a tensor.
      p: probability of a zero.
      training: nothing is done without it.
      inplace: whether the result is written into ``input``.

    Raises:
      ValueError: ``p`` is no probability.
    """
    _check_probability(p)
    return _dropped(input, p, training, inplace, None)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """``dropout`` of whole channels of ``[n, c, l]``."""
    _check_probability(p)
    return _dropped(input, p, training, inplace, (*input.shape[:-1], 1))


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """``dropout`` of whole channels of ``[n, c, h, w]``."""
    _check_probability(p)
    return _dropped(input, p, training, inplace, (*input.shape[:2], 1, 1))


# norms -------------------------------------------------------------------------------------------


def _mean(x: Array | Tensor, axes: tuple[int, ...]) -> Array | Tensor:
    """Mean along axes, which stay with extent 1."""
    shape = shape_of(x)
    count = math.prod(shape[i] for i in axes)
    kept = structural.kept_shape(shape, axes)
    return structural.reshape(structural.reduce_sum(x, axes), kept) / float(count)


def _standardized(x: Array | Tensor, axes: tuple[int, ...], eps: float) -> Array | Tensor:
    centred = x - _mean(x, axes)
    return centred / ew.sqrt(_mean(centred * centred, axes) + eps)


def _affine(
    x: Array | Tensor, weight: Any, bias: Any, shape: tuple[int, ...] | None = None
) -> Array | Tensor:
    if weight is not None:
        x = x * (weight if shape is None else structural.reshape(weight, shape))
    if bias is not None:
        x = x + (bias if shape is None else structural.reshape(bias, shape))
    return x


def _layer_norm(
    x: Array | Tensor,
    weight: Array | Tensor | None,
    bias: Array | Tensor | None,
    *,
    n: int,
    eps: float,
) -> Array | Tensor:
    ndim = len(shape_of(x))
    return _affine(_standardized(x, tuple(range(ndim - n, ndim)), eps), weight, bias)


def _rms_norm(x: Array, weight: object, *, n: int, eps: float) -> Array | Tensor:
    ndim = len(shape_of(x))
    scale = ew.sqrt(_mean(x * x, tuple(range(ndim - n, ndim))) + eps)
    return _affine(x * (1 / scale), weight, None)  # the result is not kept


def _group_norm(
    x: Array, weight: object, bias: object, *, groups: int, eps: float
) -> Array | Tensor:
    shape = shape_of(x)
    apart = structural.reshape(x, (shape[0], groups, shape[1] // groups, *shape[2:]))
    axes = tuple(range(2, len(shape) + 1))
    out = structural.reshape(_standardized(apart, axes, eps), shape)
    return _affine(out, weight, bias, (shape[1],) + (1,) * (len(shape) - 2))


def _batch_norm(
    x: Array, weight: Array | None, bias: Array | None, *, eps: float
) -> tuple[Any, Any, Any]:
    shape = shape_of(x)
    axes = (0, *range(2, len(shape)))
    wide = (shape[1],) + (1,) * (len(shape) - 2)
    mean = _mean(x, axes)
    centred = x - mean
    variance = _mean(centred * centred, axes)
    out = _affine(centred * (1 / ew.sqrt(variance + eps)), weight, bias, wide)
    flat = (shape[1],)
    return (
        out,
        structural.reshape(stop_gradient(mean), flat),
        structural.reshape(stop_gradient(variance), flat),
    )


def _batch_norm_fixed(
    x: Array, mean: Array, variance: Array, weight: Array, bias: Array, *, eps: float
) -> Array | Tensor:
    shape = shape_of(x)
    wide = (shape[1],) + (1,) * (len(shape) - 2)
    scale = structural.reshape(ew.sqrt(variance + eps), wide)
    return _affine((x - structural.reshape(mean, wide)) * (1 / scale), weight, bias, wide)


_LAYER_NORM = Operation("NativeLayerNorm", _layer_norm)
_RMS_NORM = Operation("FusedRmsNorm", _rms_norm)
_GROUP_NORM = Operation("NativeGroupNorm", _group_norm)
_BATCH_NORM = Operation("NativeBatchNorm", _batch_norm)
_BATCH_NORM_FIXED = Operation("NativeBatchNorm", _batch_norm_fixed)


def _check_normalized(x: Tensor, normalized_shape: Sequence[int]) -> int:
    shape = extents((tuple(normalized_shape),), "layer_norm", "normalized_shape")
    n = len(shape)
    if not n or x.shape[len(x.shape) - n :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape "
            f"[*, {', '.join(map(str, shape))}], but got input of size{list(x.shape)}"
        )
    return n


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Values less their mean, divided by their deviation, over the last axes.

    Args:
      input: a tensor.
      normalized_shape: extents of the last axes.
      weight: factors, of that shape.
      bias: added, of that shape.
      eps: added to the variance.

    Raises:
      RuntimeError: the shapes do not fit.
    """
    n = _check_normalized(input, normalized_shape)
    return _LAYER_NORM(input, weight, bias, n=n, eps=float(eps))


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Values divided by the root of the mean of their squares, over the last axes."""
    n = _check_normalized(input, normalized_shape)
    small = float(limits_of(input.dtype).eps) if eps is None else float(eps)
    return _RMS_NORM(input, weight, n=n, eps=small)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """``layer_norm`` of groups of channels of ``[n, c, *]``.

    Raises:
      RuntimeError: the channels cannot be divided into so many groups.
    """
    if len(input.shape) < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {len(input.shape)}"
        )
    words = "Expected num groups to be greater than 0, got {}"
    num_groups = integer(num_groups, "num_groups", "group_norm", least=1, words=words)
    if input.shape[1] % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of "
            f"shape {list(input.shape)} and num_groups={num_groups}"
        )
    if math.prod(input.shape) == num_groups:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"{list(input.shape)}"
        )
    return _GROUP_NORM(input, weight, bias, groups=num_groups, eps=float(eps))


def batch_norm(
    input: Tensor, running_mean: Tensor | None, running_var: Tensor | None,
    weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """Values less their mean, divided by their deviation, per channel of ``[n, c, *]``.

    Args:
      input: a tensor.
      running_mean: mean over batches; moved towards this one's in training, used otherwise.
      running_var: variance over batches, likewise.
      weight: factors of the channels.
      bias: added to the channels.
      training: whether mean and variance are those of this batch.
      momentum: weight of this batch in the running values.
      eps: added to the variance.

    Raises:
      ValueError: in training, a channel has one value only.
    """
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "Expected running_mean and running_var to be defined when training=False"
            )
        return _BATCH_NORM_FIXED(input, running_mean, running_var, weight, bias, eps=float(eps))
    shape = input.shape
    count = math.prod(shape) // max(shape[1], 1)
    if count == 1:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input size "
            f"torch.Size([{', '.join(map(str, shape))}])"
        )
    out, mean, variance = _BATCH_NORM(input, weight, bias, eps=float(eps))
    with no_grad():
        _move(running_mean, mean, momentum, 1.0)
        _move(running_var, variance, momentum, count / (count - 1))
    return out


def _move(running: Tensor | None, value: Tensor, momentum: float, factor: float) -> None:
    if running is not None:
        new = (1 - momentum) * value_of(running) + (momentum * factor) * value_of(value)
        assign("batch_norm_", running, new)


def instance_norm(
    input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
    weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
    momentum: float = 0.1, eps: float = 1e-5,
) -> Tensor:  # fmt: skip
    """``layer_norm`` of each channel of ``[n, c, *]``.

    Args:
      input: a tensor.
      running_mean: mean over examples; moved in training, used otherwise.
      running_var: variance over examples, likewise.
      weight: factors of the channels.
      bias: added to the channels.
      use_input_stats: whether mean and variance are those of each example.
      momentum: weight of these examples in the running values.
      eps: added to the variance.

    Raises:
      ValueError: a channel has one value only.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    count = math.prod(input.shape[2:])
    if count == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    if running_mean is not None or running_var is not None:
        _move_by_instances(input, running_mean, running_var, momentum, count)
    return group_norm(input, input.shape[1], weight, bias, eps)


def _move_by_instances(
    input: Any, running_mean: Any, running_var: Any, momentum: float, count: int
) -> None:
    """Move running values towards the means over examples of their means and variances."""
    with no_grad():
        axes = tuple(range(2, len(input.shape)))
        mean = input.mean(axes)
        spread = ((input - mean.reshape((*mean.shape, *(1 for _ in axes)))) ** 2).mean(axes)
        _move(running_mean, mean.mean(0), momentum, 1.0)
        _move(running_var, spread.mean(0), momentum, count / (count - 1))


def _normalize(x: Array | Tensor, *, p: float, axes: tuple[int, ...], eps: float) -> Array | Tensor:
    kept = structural.kept_shape(shape_of(x), axes)
    norm = structural.reshape(vector_norm_of(x, axes, p), kept)
    return x / te.clamp_min(norm, eps)


_NORMALIZE = Operation("Div", _normalize)


def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along an axis, several or all divided by their norm, which is at least ``eps``."""
    axes = axes_of(input, dim)
    if not input.shape:
        return normalize(input[None], p, 0, eps)[0]
    return _NORMALIZE(input, p=float(p), axes=axes, eps=float(eps))


def _cosine(a: Any, b: Any, *, axis: int, eps: float) -> Any:
    shape = np.broadcast_shapes(shape_of(a), shape_of(b))

    def unit(x: Any) -> Any:
        x = structural.broadcast_to(x, shape)
        norm = te.clamp_min(vector_norm_of(x, (axis,), 2.0), eps)
        return x / structural.reshape(norm, structural.kept_shape(shape, (axis,)))

    return structural.reduce_sum(unit(a) * unit(b), (axis,))


_COSINE = Operation("Sum", _cosine)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between vectors along an axis."""
    axis = axis_of(dim, max(len(x1.shape), len(x2.shape)))
    if not x1.shape and not x2.shape:
        return cosine_similarity(x1[None], x2[None], 0, eps)
    x1, x2 = promoted(x1, x2)
    if x1.dtype.kind in "iubc":
        raise RuntimeError(
            "expected common dtype to be floating point, yet common dtype is "
            f"{short_dtype(x1.dtype)}"
        )
    return _COSINE(x1, x2, axis=axis, eps=float(eps))


# shapes ------------------------------------------------------------------------------------------


def padded(x: Any, pads: Sequence[tuple[int, int]], value: float) -> Array:
    """An array with a value added around its last axes."""
    if not any(low or high for low, high in pads):
        return x
    lead = len(shape_of(x)) - len(pads)
    config = [(0, 0, 0)] * lead + [(low, high, 0) for low, high in pads]
    return movement.pad(x, value, config)


_PAD = Operation("ConstantPadNd", padded)
_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
    """Add elements at the ends of the last axes.

    Args:
      input: a tensor.
      pad: numbers before and after, for the last axis first; negative ones crop.
      mode: ``"constant"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.
      value: of the elements for ``"constant"``, by default 0.

    Raises:
      RuntimeError: the numbers are odd in number, or too many.
      NotImplementedError: there is no such mode.
    """
    check_tensor("pad", "input", 1, input)
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > len(input.shape):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {len(input.shape)}"
        )
    pad = extents(pad, "pad", "pad")
    pairs = tuple(zip(pad[::2], pad[1::2], strict=True))[::-1]
    if mode == "constant":
        return _PAD(input, pads=pairs, value=float(value or 0.0))
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    lead = len(input.shape) - len(pairs)
    places = []
    for n, (before, after) in zip(input.shape[lead:], pairs, strict=True):
        widths = (max(before, 0), max(after, 0))
        kept = slice(max(-before, 0), n + sum(widths) - max(-after, 0))
        places.append(np.pad(np.arange(n), widths, mode=_MODES[mode])[kept])  # type: ignore[call-overload]  # a word NumPy knows

    def taken(x: Array) -> Array:
        for i, place in enumerate(places):
            x = _take(x, place, lead + i)
        return x

    return composite(f"{mode.capitalize()}Pad", taken, input)


def _take(x: Array, places: np.ndarray, axis: int) -> Array:
    """Elements at places along an axis."""
    out = gather(x, (places,), (axis,))
    ndim = len(shape_of(x))
    order = (*range(1, axis + 1), 0, *range(axis + 1, ndim))
    return structural.transpose(out, order)
