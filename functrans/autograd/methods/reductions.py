"""Methods of ``Tensor`` that reduce axes or run along them: sums, products, means, norms, softmax.

Here also: the helpers of all reductions. Not here: extrema, sorting and selection
(``ordering``), matrix products (``products``).

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans import numpy as fnp
from functrans.autograd.composites import composite, named, several
from functrans.autograd.dtypes import given_dtype
from functrans.autograd.methods.arithmetic import joined, refuse_truth
from functrans.autograd.methods.rows import (
    Row,
    copied,
    documented,
    floating,
    functions_of,
    methods_of,
    number,
    rows_of,
)
from functrans.autograd.methods.shaping import axis_of
from functrans.autograd.programs import Operation
from functrans.autograd.promotion import result_dtype, to_dtype, torch_kind
from functrans.autograd.sizes import wrong_type
from functrans.autograd.tensors import Tensor
from functrans.core.boundary import warn
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy.common import NO_VALUE
from functrans.primitives import activations, complex_parts, cumulative, reduction, structural
from functrans.primitives import elementwise as ew
from functrans.primitives import torch_elementwise as te
from functrans.primitives.complex_parts import is_complex
from functrans.primitives.linalg.lstsq import norm_sqrt

Axes = tuple[int, ...]
_INT64 = np.dtype(np.int64)

# helpers -----------------------------------------------------------------------------------------


def axes_of(self: Tensor, dim: object) -> Axes:
    """Axes to reduce: all without ``dim``.

    Raises:
      IndexError: there is no such axis.
      RuntimeError: an axis is named twice.
    """
    ndim = len(self.shape)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = tuple(axis_of(d, ndim) for d in dims)
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"dim {axes[0]} appears multiple times in the list of dims")
    return tuple(sorted(axes)) if ndim else ()


def count_of(shape: Axes, axes: Axes) -> int:
    """How many elements each result is made of."""
    return math.prod(shape[i] for i in axes)


def reduced(
    label: str,
    self: Tensor,
    function: Callable[[Any, Axes], Any],
    dim: object = None,
    keepdim: bool = False,
) -> Tensor:
    """A reduction as one node.

    Args:
      label: torch's name of the node.
      self: the tensor.
      function: takes the operand and axes; gives a result without these axes.
      dim: axes as users give them.
      keepdim: whether the axes stay, with extent 1.
    """
    axes = axes_of(self, dim)
    if not keepdim:
        return composite(label, lambda x: function(x, axes), self)
    shape = structural.kept_shape(self.shape, axes)
    return composite(label, lambda x: structural.reshape(function(x, axes), shape), self)


def _widened(self: Tensor, dtype: DTypeLike | None) -> Tensor:
    """An operand in the dtype of its sum: integers are added up in int64."""
    if dtype is not None:
        return to_dtype(self, given_dtype(dtype))
    if self._value.dtype.kind in "iub":
        return to_dtype(self, _INT64)
    return self


def _check_floating(name: str, self: Tensor) -> None:
    if self._value.dtype.kind in "iub":
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point "
            f"or complex dtype. Got: {torch_kind(self.dtype)}"
        )


# sums, products, means ---------------------------------------------------------------------------


def sum_of(self: Tensor, dim: object = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum over some axes, or all; integers are added up in int64."""
    self = _widened(self, dtype)
    label = "Sum" if dim is None else "SumBackward1"
    axes = axes_of(self, dim)
    if not keepdim:
        if not axes:
            return copied(self, label)
        return named(structural.reduce_sum(self, axes), label)
    return reduced(label, self, structural.reduce_sum, dim, keepdim)


def nansum(self: Tensor, dim: object = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum of the elements that are numbers."""
    return reduced(
        "Nansum",
        _widened(self, dtype),
        lambda x, axes: structural.reduce_sum(ew.where(x != x, 0, x), axes),
        dim,
        keepdim,
    )


def mean(self: Tensor, dim: object = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean over some axes, or all.

    Raises:
      RuntimeError: the tensor is of integers.
    """
    if dtype is not None:
        self = to_dtype(self, given_dtype(dtype))
    _check_floating("mean", self)
    scale = float(count_of(self.shape, axes_of(self, dim)))
    return reduced(
        "Mean" if dim is None else "MeanBackward1",
        self,
        lambda x, axes: _quotient(structural.reduce_sum(x, axes), scale),
        dim,
        keepdim,
    )


def _quotient(x: Any, count: float) -> Any:
    """A sum divided by a count; NaN where that is 0."""
    return x / count if count > 0 else x * math.nan


def nanmean(
    self: Tensor, dim: object = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Mean of the elements that are numbers."""
    _check_floating("nanmean", self)

    def of(x: Any, axes: Axes) -> Any:
        is_number = x == x
        count = structural.reduce_sum(structural.cast(is_number, dtype_of(x)), axes)
        return structural.reduce_sum(ew.where(is_number, x, 0), axes) / count

    return reduced("Div", _widened(self, dtype), of, dim, keepdim)


def prod(self: Tensor, dim: Any = NO_VALUE, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Product over an axis, or all; the derivative is exact at zeros."""
    if dim is None:
        raise wrong_type(dim, "dim", "prod", "int")
    label, dim = ("Prod", None) if dim is NO_VALUE else ("ProdBackward1", dim)
    return reduced(label, _widened(self, dtype), reduction.reduce_prod, dim, keepdim)


def _deviations(x: Any, axes: Axes) -> Array | Tensor:
    shape = shape_of(x)
    total = structural.reduce_sum(x, axes)
    middle = _quotient(total, float(count_of(shape, axes)))
    return x - structural.expand_reduced(middle, shape, axes)


def _variance(x: Any, axes: Axes, correction: float) -> Array | Tensor:
    if count_of(shape_of(x), axes) <= correction:
        return _degenerate_variance(x, axes)
    d = _deviations(x, axes)
    squares = d * d
    if dtype_of(x).kind == "c":
        squares = complex_parts.real(d * complex_parts.conjugate(d))
    count = count_of(shape_of(x), axes) - correction
    return structural.reduce_sum(squares, axes) / count


def _degenerate_variance(x: Any, axes: Axes) -> Any:
    """The variance without degrees of freedom: NaN or infinite, and so is its slope."""
    d = bind(structural.stop_gradient_p, _deviations(x, axes))[0]
    slope = ew.where(complex_parts.absolute(d) > 0, math.inf, math.nan)
    if is_complex(x):
        x = complex_parts.real(x)
    slope = structural.cast(slope, dtype_of(x))
    value = structural.reduce_sum(complex_parts.absolute(d) ** 2, axes) / 0.0
    return te.with_slope(value, structural.reduce_sum(x * slope, axes))


def _arguments(name: str, dim: object, unbiased: object, correction: object) -> tuple[Any, float]:
    """Axes and correction from the forms that torch accepts: ``var(False)``, ``var(0, False)``."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    return dim, float(number(name, "correction", correction))


def _spread(name: str, text: str, with_mean: bool = False) -> Callable[..., Any]:
    """The variance or, of the name ``std``, its root; alone, or beside the mean as one node."""
    is_root = name.startswith("std")
    label = "".join(part.capitalize() for part in name.split("_"))

    def operation(
        self: Tensor,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor:
        dim, less = _arguments(name, dim, unbiased, correction)
        _check_floating(name, self)
        axes = axes_of(self, dim)
        if count_of(self.shape, axes) <= less:
            warn(
                f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than "
                "the reduction factor (input numel divided by output numel)."
            )

        def spread(x: Any, axes: Axes) -> Any:
            made = _variance(x, axes, less)
            return norm_sqrt(made) if is_root else made

        if not with_mean:
            return reduced(label, self, spread, dim, keepdim)
        count = float(count_of(self.shape, axes))
        shape = (structural.kept_shape if keepdim else structural.reduced_shape)(self.shape, axes)

        def both(x: Any) -> Any:
            middle = _quotient(structural.reduce_sum(x, axes), count)
            return structural.reshape(spread(x, axes), shape), structural.reshape(middle, shape)

        return several(label, both, self)  # type: ignore[return-value]  # of the two with_mean

    return documented(operation, name, text)


var = _spread("var", "Variance over some axes, or all.")
std = _spread(
    "std", "Standard deviation over some axes, or all; its derivative is 0 where it is 0."
)
var_mean = _spread("var_mean", "Variance and mean.", with_mean=True)
std_mean = _spread("std_mean", "Standard deviation and mean.", with_mean=True)


# norms -------------------------------------------------------------------------------------------


def vector_norm_of(x: Any, axes: Axes, p: float) -> Any:
    """The norm of vectors; its derivative is 0 where it is not defined."""
    if p == 2:
        size = complex_parts.real(x * complex_parts.conjugate(x)) if is_complex(x) else x * x
        return norm_sqrt(structural.reduce_sum(size, axes))
    a = te.absolute(x)
    if p == math.inf:
        return reduction.reduce_max(a, axes)
    if p == -math.inf:
        return reduction.reduce_min(a, axes)
    if p == 0:
        return structural.reduce_sum(structural.cast(x != 0, dtype_of(a)), axes) + (
            structural.reduce_sum(ew.where(ew.isfinite(a), a, 0), axes) * 0
        )
    if p == 1:
        return structural.reduce_sum(a, axes)
    return fnp.linalg.vector_norm(a, axis=axes, ord=p) if axes else a


def norm(
    self: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None
) -> Tensor:
    """The norm of the elements as a vector, of order ``p``.

    Raises:
      RuntimeError: the tensor is of integers, or ``p`` is ``"nuc"``.
    """
    if dtype is not None:
        self = to_dtype(self, given_dtype(dtype))
    if self.dtype.kind in "iub":
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{torch_kind(self.dtype)}"
        )
    order = 2.0 if p in ("fro", None) else p
    if order == "nuc":
        raise RuntimeError("norm(): use linalg.matrix_norm(x, 'nuc') for the nuclear norm")
    return reduced(
        "LinalgVectorNorm",
        self,
        lambda x, axes: vector_norm_of(x, axes, float(order)),
        dim,
        keepdim,
    )


def dist(self: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of the difference."""
    refuse_truth(self, other)
    dtype = result_dtype(self, other)
    if dtype.kind in "iub":
        raise RuntimeError(
            "norm(): input dtype should be either floating point or complex. Got "
            f"{torch_kind(dtype)} instead."
        )
    return joined(
        "Dist",
        lambda x, y: vector_norm_of(x - y, tuple(range(len(shape_of(x - y)))), float(p)),
        self,
        other,
    )


def renorm(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Each slice along an axis scaled so that its norm is at most ``maxnorm``."""
    ndim = len(self.shape)
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    axis = axis_of(dim, ndim)

    def of(x: Any) -> Any:
        shape = shape_of(x)
        axes = tuple(i for i in range(len(shape)) if i != axis)
        size = structural.expand_reduced(vector_norm_of(x, axes, float(p)), shape, axes)
        is_large = size > maxnorm
        return ew.where(is_large, x * (maxnorm / (ew.where(is_large, size, 1) + 1e-7)), x)

    return composite("Renorm", of, self)


# exponentials ------------------------------------------------------------------------------------


def logsumexp(self: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Logarithm of the sum of exponentials, without overflow.

    Raises:
      TypeError: no axes are given.
      RuntimeError: there is none among them.
    """
    if dim is None:
        raise wrong_type(dim, "dim", "logsumexp", "tuple of ints")
    if isinstance(dim, (tuple, list)) and not dim and self.shape:
        raise RuntimeError("logsumexp(): expected at least one axis, got dim=()")
    return reduced("Logsumexp", floating(self), _logsumexp, dim, keepdim)


def _logsumexp(x: Any, axes: Axes) -> Array | Tensor:
    shape = shape_of(x)
    if not count_of(shape, axes):
        return structural.reduce_sum(x, axes) - math.inf
    top = activations.top(x, axes)
    top = ew.where(complex_parts.absolute(top) == math.inf, 0.0, top)
    powers = ew.exp(x - structural.expand_reduced(top, shape, axes))
    return ew.log(structural.reduce_sum(powers, axes)) + top


def _softmax(
    name: str, label: str, function: Callable[..., Any], text: str
) -> Callable[..., Tensor]:
    applied = Operation(label, function)

    def operation(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
        if dtype is not None:
            self = to_dtype(self, given_dtype(dtype))
        if self.dtype.kind in "iubc":
            raise NotImplementedError(
                f"\"{name}_lastdim_kernel_impl\" not implemented for '{torch_kind(self.dtype)}'"
            )
        axis = axis_of(dim, len(self.shape))
        axes = (axis,) if self.shape else ()
        return applied(self, axes=axes)

    return documented(operation, name, text)


softmax = _softmax(
    "softmax", "Softmax", activations.softmax, "Exponentials divided by their sum along an axis."
)
log_softmax = _softmax(
    "log_softmax",
    "LogSoftmax",
    activations.log_softmax,
    "Logarithm of ``softmax``, without underflow.",
)


# along an axis -----------------------------------------------------------------------------------


def running(label: str, self: Tensor, function: Callable[[Any, int], Any], dim: int) -> Tensor:
    """An operation along an axis that keeps the shape; a tensor without axes is its own result."""
    axis = axis_of(dim, len(self.shape))
    if not self.shape:
        return copied(self, label)
    return composite(label, lambda x: function(x, axis), self)


def cumsum(self: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Running sums along an axis."""
    return running("Cumsum", _widened(self, dtype), cumulative.cumsum, dim)


def cumprod(self: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Running products along an axis; the derivative is exact at zeros."""
    return running("Cumprod", _widened(self, dtype), cumulative.cumprod, dim)


def logcumsumexp(self: Tensor, dim: int) -> Tensor:
    """Logarithms of running sums of exponentials."""
    return running("Logcumsumexp", floating(self), cumulative.cumlogsumexp, dim)


# truth -------------------------------------------------------------------------------------------


def _truth(
    self: Tensor, label: str, function: Callable[..., Array], dim: object, keepdim: bool
) -> Tensor:
    is_bytes = self.dtype == np.uint8

    def of(x: Any, axes: Any) -> Any:
        found = function(x != 0, axes)
        return structural.cast(found, np.dtype(np.uint8)) if is_bytes else found

    if isinstance(dim, (tuple, list)) and not dim:  # no axes, unlike in sums
        return composite(label, lambda x: of(x, ()), self)
    return reduced(label, self, of, dim, keepdim)


def any_of(self: Tensor, dim: object = None, keepdim: bool = False) -> Tensor:
    """Whether any element is not 0; 0 or 1 of the dtype uint8."""
    return _truth(self, "Any", reduction.reduce_any, dim, keepdim)


def all_of(self: Tensor, dim: object = None, keepdim: bool = False) -> Tensor:
    """Whether all elements are not 0; 0 or 1 of the dtype uint8."""
    return _truth(self, "All", reduction.reduce_all, dim, keepdim)


def count_nonzero(self: Tensor, dim: object = None) -> Tensor:
    """How many elements are not 0."""
    return reduced(
        "CountNonzero",
        self,
        lambda x, axes: structural.reduce_sum(structural.cast(x != 0, _INT64), axes),
        dim,
    )


def trace(self: Tensor) -> Tensor:
    """The sum of the diagonal of a matrix.

    Raises:
      RuntimeError: it is no matrix.
    """
    if len(self.shape) != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {len(self.shape)}")
    return composite("Trace", fnp.trace, _widened(self, None))


ROWS: tuple[Row, ...] = (
    *rows_of(
        "mf", nansum, mean, nanmean, prod, var, std, norm, dist, logsumexp, softmax, log_softmax,
        logcumsumexp, count_nonzero, trace,
    ),
    *rows_of("f", var_mean, std_mean),
    *rows_of("mfi", renorm, cumsum, cumprod),
    Row("sum", sum_of),
    Row("any", any_of),
    Row("all", all_of),
)  # fmt: skip

METHODS: dict[str, Any] = methods_of(ROWS)
FUNCTIONS: dict[str, Any] = functions_of(ROWS)
