"""What the families of dense linear algebra share: stacks of matrices, weights, checks, LAPACK.

Here: adjoints and sums of stacks of matrices, constant weights of triangles, checks of avals, the
batching rule, and the access to LAPACK. Not here: records (``linalg.triangular``,
``linalg.solve``, ``linalg.det``, ``linalg.factor``, ``linalg.spectral``, ``linalg.lstsq``;
``linalg`` lists them).

All these primitives act on the last two axes; the axes before them are a stack. Batching is
therefore to move the batch axis to the front. The operands of one equation have equal stacks.

Evaluation uses NumPy, and SciPy's LAPACK where NumPy has no such routine (LU factors, triangular
systems). Without SciPy, and for big stacks of small matrices, where a Python loop over LAPACK calls
is the slower way, loops over the columns of all matrices at once take their place.

Layer: ``primitives.linalg``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.axes import AxisMap
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.primitive import Primitive, Work
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import conjugate, real_dtype
from functrans.primitives.structural import reduce_sum, reshape, to_front, transpose

NOT_LINEAR = (("transpose", "not linear"),)
INDEX_DTYPE = np.dtype(np.int32)

# stacks of matrices -----------------------------------------------------------------------------


def matrix_transpose(x: Any) -> Array:
    """Swap the last two axes."""
    ndim = len(shape_of(x))
    return transpose(x, (*range(ndim - 2), ndim - 1, ndim - 2))


def adjoint(x: Any) -> Any:
    """Conjugate transpose of each matrix."""
    return conjugate(matrix_transpose(x))


def from_triangle(x: Any, *, lower: bool = True, hermitian: bool = True) -> Array:
    """Hermitian matrices, or symmetric ones, of which one triangle is given.

    This is what routines that read one triangle work on. The rules of these routines apply it to
    tangents: what is not read has no derivative, whatever its tangent is.
    """
    n, dtype = shape_of(x)[-1], real_dtype(dtype_of(x))
    weights, is_read = lower_half(n, dtype), np.tri(n, dtype=bool)
    if not lower:
        weights, is_read = weights.T, is_read.T
    half = ew.where(is_read, x, 0) * weights
    return half + (adjoint(half) if hermitian else matrix_transpose(half))


def frobenius_product(a: Array, b: Array) -> Array:
    """``sum_ij a_ij b_ij`` of each pair of matrices; nothing is conjugated."""
    ndim = len(shape_of(b))
    return reduce_sum(a * b, (ndim - 2, ndim - 1))


def sum_over_rows(x: Array) -> Array:
    """``[..., m, n]`` to ``[..., n]``."""
    return reduce_sum(x, (len(shape_of(x)) - 2,))


def as_column(x: Array) -> Array:
    """``[..., n]`` to ``[..., n, 1]``."""
    return reshape(x, (*shape_of(x), 1))


def as_row(x: Array) -> Array:
    """``[..., n]`` to ``[..., 1, n]``."""
    *stack, n = shape_of(x)
    return reshape(x, (*stack, 1, n))


def reciprocal_or_zero(x: Array) -> Array:
    """``1 / x``, but 0 where ``x`` is exactly 0."""
    is_zero = x == 0
    return ew.where(is_zero, 0, 1 / ew.where(is_zero, 1, x))


# constants of derivative rules ------------------------------------------------------------------


def frozen(x: np.ndarray) -> np.ndarray:
    """The array, read-only: recording need not copy it."""
    x.flags.writeable = False
    return x


def identity(n: int, dtype: np.dtype) -> np.ndarray:
    """The identity matrix."""
    return frozen(np.eye(n, dtype=dtype))


def lower_half(n: int, dtype: np.dtype) -> np.ndarray:
    """Weights 1 below the diagonal, 1/2 on it, 0 above it."""
    weights = np.tri(n, dtype=dtype)
    np.fill_diagonal(weights, 0.5)
    return frozen(weights)


def strict_lower(rows: int, columns: int) -> np.ndarray:
    """Mask of what is below the diagonal."""
    return frozen(np.tri(rows, columns, -1, dtype=bool))


# facts ------------------------------------------------------------------------------------------


def of_stacks(a: ShapedArray, *others: ShapedArray, **params: object) -> list[AxisMap]:
    """An ``axis_map``: matrices of one stack do not mix with others."""
    n = a.ndim - 2
    return [(*range(n), *(None,) * (aval.ndim - n)) for aval in (a, *others)]


def of_systems(*avals: ShapedArray, **params: object) -> list[AxisMap]:
    """An ``axis_map``: besides, columns of the right-hand sides, the last operand, do not mix."""
    *maps, last = of_stacks(*avals)
    return [*maps, (*last[:-1], len(last) - 1)]


def complex_factor(*avals: ShapedArray) -> int:
    """Real multiplications and additions for one of each of the operands' dtype."""
    return 4 if any(aval.dtype.kind == "c" for aval in avals) else 1


def cubic(factor: float) -> Callable[..., Work]:
    """The ``work`` of a factorization: ``factor * m * n * min(m, n)`` for each matrix.

    Reference: Golub & Van Loan, Matrix Computations, 4th ed. (2013), the flops of each chapter.
    """

    def work(a: ShapedArray, *others: ShapedArray, **params: object) -> Work:
        return Work(factor * a.size * min(a.shape[-2:]) * complex_factor(a, *others))

    return work


def substitutions(count: int) -> Callable[..., Work]:
    """The ``work`` of some triangular systems with the last operand as right-hand side."""

    def work(*avals: ShapedArray, **params: object) -> Work:
        b = avals[-1]
        return Work(float(count * b.shape[-2] * b.size * complex_factor(*avals)))

    return work


# checks of avals --------------------------------------------------------------------------------


def check_matrices(name: str, *avals: ShapedArray, square: bool = False) -> None:
    """Refuse what is no stack of (square) matrices of a supported dtype.

    Raises:
      ShapeError: fewer than two axes, or not square.
      TypeError: not f32, f64, c64 or c128.
    """
    for aval in avals:
        check_dtype(name, aval)
        if aval.ndim < 2:
            raise ShapeError(
                f"{name}: expected matrices, got {aval}; the last two axes are rows and columns"
            )
        if square and aval.shape[-1] != aval.shape[-2]:
            raise ShapeError(
                f"{name}: expected square matrices, got {aval}; the last two extents must be equal"
            )


def check_dtype(name: str, aval: ShapedArray) -> None:
    """Refuse dtypes that LAPACK does not know.

    Raises:
      TypeError: not f32, f64, c64 or c128.
    """
    if aval.dtype.char not in "fdFD":
        raise TypeError(
            f"{name}: array type {aval.dtype.name} is unsupported in linalg; cast it to float32, "
            "float64, complex64 or complex128"
        )


def check_stacks(name: str, *avals: ShapedArray, core: int = 2) -> None:
    """Refuse operands whose leading axes differ.

    Raises:
      ShapeError: names the avals.
    """
    first = avals[0].shape[:-2]
    for aval in avals[1:]:
        if aval.shape[: aval.ndim - core] != first:
            raise ShapeError(
                f"{name}: the axes before the last {core} of {aval} must be those before the last "
                f"two of {avals[0]}; broadcast the operands first"
            )


# batching ---------------------------------------------------------------------------------------


def per_matrix(name: str, **fields: Any) -> Primitive:
    """A primitive on stacks of matrices whose results are new; ``fields`` are all the others."""

    def batch(
        size: int, operands: Sequence[Array], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        outs = bind(primitive, *to_front(size, operands, dims), **params)
        return outs, (0,) * len(outs)

    primitive = Primitive(name, batch=batch, axis_map=of_stacks, memory="own", **fields)
    return primitive


# evaluation -------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def scipy_linalg() -> ModuleType | None:
    """SciPy's ``linalg``, imported at first use; ``None`` where SciPy is not installed."""
    try:
        from scipy import linalg
    except ImportError:
        return None
    return linalg


def needed_scipy_linalg(name: str) -> ModuleType:
    """SciPy's ``linalg``, for functions that have no other implementation.

    Raises:
      ImportError: SciPy is not installed.
    """
    linalg = scipy_linalg()
    if linalg is None:
        raise ImportError(f"{name} calls SciPy, which is not installed; pip install scipy")
    return linalg


def flat_stack(x: np.ndarray) -> np.ndarray:
    """``[..., m, n]`` to ``[stack, m, n]``."""
    shape = x.shape
    return x.reshape(math.prod(shape[:-2]), *shape[-2:])
