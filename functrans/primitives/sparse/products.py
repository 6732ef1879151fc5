"""Products with matrices in compressed sparse rows (CSR).

Here: the records ``csr_matmul`` and ``csr_sample``, and their native code. Not here: the arrays
that users hold and their operators (``sparse_arrays``), systems of equations (``solve``).

=================  ================================================================================
``csr_matmul``     ``A @ x`` or ``A.T @ x``, linear in the entries and in ``x``
``csr_sample``     the entries of ``a @ b.T`` at the places of a pattern, linear in both
=================  ================================================================================

A matrix ``[m, n]`` is ``data[..., nnz]``, ``indices[nnz]`` (columns) and ``indptr[m + 1]`` (where
rows begin), as SciPy has it; entries at the same place add up. The two primitives are each other's
transposes, so that derivatives of all orders cost as much as products and never touch an element
outside the pattern.

A product with the transpose adds rows to rows in place of collecting them, so that no transposed
copy is made. Native code checks every index where it uses it: index arrays are ordinary operands.

Layer: ``primitives.sparse``. Reference: Gustavson, Two fast algorithms for sparse matrices, ACM
TOMS 4 (1978), 250-269.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dispatch import bind, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, is_linear, multilinear
from functrans.errors import ShapeError
from functrans.primitives.linalg.triangular import fold_batch
from functrans.primitives.movement import concatenate
from functrans.primitives.native.index import read_index
from functrans.primitives.native.routine_loops import (
    LoopVariable,
    load_run,
    plus,
    store_run,
    vectors,
    zeros,
)
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, moveaxis, reshape, to_front

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

Trans = str

FLIPPED = {"N": "T", "T": "N"}

_BAD_POINTERS = "the row pointers must rise from 0 to the number of entries"


def _bad_columns(n: int) -> str:
    return f"a column index of a sparse matrix is out of bounds for {n} columns"


# checks and evaluation --------------------------------------------------------------------------


@lru_cache(maxsize=1)
def scipy_sparse() -> ModuleType:
    """``scipy.sparse``.

    Raises:
      ImportError: SciPy is not installed.
    """
    try:
        import scipy.sparse
    except ImportError:
        raise ImportError(
            "products with sparse matrices call SciPy, which is not installed; pip install scipy"
        ) from None
    return scipy.sparse


def check_csr(
    name: str, data: ShapedArray, indices: ShapedArray, indptr: ShapedArray, shape: tuple[int, int]
) -> None:
    """Refuse arrays that are no matrix in compressed rows.

    Raises:
      ShapeError, TypeError: says what does not fit.
    """
    for what, array in (("indices", indices), ("indptr", indptr)):
        if array.dtype.kind not in "iu" or len(array.shape) != 1:
            raise TypeError(f"{name}: {what} is {array}; expected a vector of integers")
    if not data.shape or data.shape[-1:] != indices.shape:
        raise ShapeError(
            f"{name}: {data} are the entries and {indices} their columns; there must be as many of "
            "both"
        )
    if indptr.shape[0] != shape[0] + 1:
        raise ShapeError(
            f"{name}: indptr is {indptr}; a matrix of shape {shape} needs {shape[0] + 1} row "
            "pointers"
        )


def check_pattern(indices: Any, indptr: Any, n: int) -> None:
    """Refuse index arrays that point outside the matrix.

    Raises:
      IndexError: a column does not exist.
      ValueError: the row pointers do not rise from 0 to the number of entries.
    """
    is_rising = indptr[0] == 0 and indptr[-1] == len(indices)
    if not is_rising or np.any(indptr[1:] < indptr[:-1]):
        raise ValueError(_BAD_POINTERS)
    if len(indices):
        unsigned = indices.view(f"u{indices.itemsize}")  # negative ones are large
        if unsigned.max() >= n:
            raise IndexError(_bad_columns(n))


def _stacked(x: Any, ndim: int) -> Any:
    """All leading axes as one."""
    return x.reshape(math.prod(x.shape[: x.ndim - ndim]), *x.shape[x.ndim - ndim :])


def _csr_matmul_impl(
    data: Any, x: Any, indices: Any, indptr: Any, *, shape: tuple[int, int], trans: Trans
) -> tuple[Any, ...]:
    check_pattern(indices, indptr, shape[1])
    sparse = scipy_sparse()
    own = (shape, sparse.csr_array) if trans == "N" else (shape[::-1], sparse.csc_array)
    rows = own[0][0]
    out = np.empty((*x.shape[:-2], rows, x.shape[-1]), x.dtype)
    dtype = np.dtype(np.float32) if x.dtype == np.float16 else x.dtype  # SciPy has no float16
    for entries, factor, result in zip(
        _stacked(data, 1), _stacked(x, 2), _stacked(out, 2), strict=True
    ):
        arrays = (entries.astype(dtype, copy=False), indices, indptr)
        matrix = own[1](arrays, shape=own[0], copy=False)
        if factor.shape[1] == 1:
            result[:, 0] = matrix @ factor[:, 0].astype(dtype, copy=False)
        else:
            result[...] = matrix @ factor.astype(dtype, copy=False)
    return (out,)


def rows_of(indptr: Any) -> Any:
    """The row of each entry."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def _csr_sample_impl(
    a: Any, b: Any, indices: Any, indptr: Any, *, shape: tuple[int, int]
) -> tuple[Any, ...]:
    check_pattern(indices, indptr, shape[1])
    rows = rows_of(indptr)
    if a.shape[-1] == 1:
        return (a[..., rows, 0] * b[..., indices, 0],)
    return (np.einsum("...pk,...pk->...p", a[..., rows, :], b[..., indices, :]),)


# native code ------------------------------------------------------------------------------------


@contextmanager
def _each_row(
    e: Routines, indices: Array, indptr: Array, stack: int
) -> Iterator[tuple[Value, Value, Value, Value]]:
    """Loops over the rows of all matrices of a stack.

    Yields:
      Number of the matrix, number of the row, its first entry and the one behind its last.
    """
    m, nnz = indptr.shape[0] - 1, indices.shape[0]
    b = e.b
    is_bad = b.icmp("ne", read_index(e, indptr, b.index(0)), b.index(0))
    e.fail_when(is_bad, ValueError, _BAD_POINTERS)
    is_bad = b.icmp("ne", read_index(e, indptr, b.index(m)), b.index(nnz))
    e.fail_when(is_bad, ValueError, _BAD_POINTERS)
    with e.count(stack) as s, e.count(m) as i:
        start = read_index(e, indptr, i)
        stop = read_index(e, indptr, b.add(i, b.index(1)))
        is_bad = b.or_(b.icmp("ugt", start, stop), b.icmp("ugt", stop, b.index(nnz)))
        e.fail_when(is_bad, ValueError, _BAD_POINTERS)
        yield s, i, start, stop


def _column(e: Routines, indices: Array, p: Value, n: int) -> Value:
    """The column of an entry."""
    j = read_index(e, indices, p)
    e.fail_when(e.b.icmp("uge", j, e.b.index(n)), IndexError, _bad_columns(n))
    return j


def _at(e: Routines, *terms: tuple[Value, int]) -> Value:
    """The sum of indices times strides."""
    total: Value = e.b.index(0)
    for index, stride in terms:
        total = plus(e, total, e.b.mul(index, e.b.index(stride)))
    return total


def _csr_matmul_lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    shape: tuple[int, int],
    trans: Trans,
) -> None:
    """Row by row: a sum of rows of ``x`` in registers, or one row of ``x`` added to many rows."""
    data, x, indices, indptr = operands
    (out,) = results
    m, n = shape
    k, nnz = x.shape[-1], indices.shape[0]
    if trans == "T":
        zeros(e, out)
    if not k:
        return
    with _each_row(e, indices, indptr, math.prod(data.shape[:-1])) as (s, i, start, stop):

        def entry(p: Value, lanes: int) -> Any:
            return e.splat(load_run(e, data, _at(e, (s, nnz), (p, 1))), lanes)

        def collect(first: Value, lanes: int) -> None:
            total = LoopVariable(e, e.constant(out.dtype, 0, lanes))
            with e.count(stop, start) as p:
                j = _column(e, indices, p, n)
                row = load_run(e, x, plus(e, _at(e, (s, n * k), (j, k)), first), lanes)
                total.set(e.add(total.get(), e.multiply(entry(p, lanes), row)))
            store_run(e, out, plus(e, _at(e, (s, m * k), (i, k)), first), total.get())

        def spread(first: Value, lanes: int) -> None:
            row = load_run(e, x, plus(e, _at(e, (s, m * k), (i, k)), first), lanes)
            with e.count(stop, start) as p:
                j = _column(e, indices, p, n)
                to = plus(e, _at(e, (s, n * k), (j, k)), first)
                moved = e.add(load_run(e, out, to, lanes), e.multiply(entry(p, lanes), row))
                store_run(e, out, to, moved)

        vectors(e, k, out.dtype, collect if trans == "N" else spread)


def _csr_sample_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, shape: tuple[int, int]
) -> None:
    """One inner product of two rows per entry."""
    a, b, indices, indptr = operands
    (out,) = results
    m, n = shape
    k, nnz = a.shape[-1], indices.shape[0]
    with _each_row(e, indices, indptr, math.prod(a.shape[:-2])) as (s, i, start, stop):
        left = _at(e, (s, m * k), (i, k))
        with e.count(stop, start) as p:
            right = _at(e, (s, n * k), (_column(e, indices, p, n), k))
            total = LoopVariable(e, e.constant(out.dtype, 0))
            with e.count(k) as c:
                factors = (load_run(e, x, e.b.add(at, c)) for x, at in ((a, left), (b, right)))
                total.set(e.add(total.get(), e.multiply(*factors)))
            store_run(e, out, _at(e, (s, nnz), (p, 1)), total.get())


def _supports(*avals: ShapedArray, **_: str | tuple[int, ...]) -> bool:
    """Booleans are left to SciPy, where a sum is a union."""
    return avals[0].dtype.kind in "iufc"


# csr_matmul -------------------------------------------------------------------------------------


def _csr_matmul_aval(
    data: ShapedArray,
    x: ShapedArray,
    indices: ShapedArray,
    indptr: ShapedArray,
    *,
    shape: tuple[int, int],
    trans: Trans,
) -> tuple[ShapedArray, ...]:
    check_csr("csr_matmul", data, indices, indptr, shape)
    rows, columns = shape if trans == "N" else shape[::-1]
    if len(x.shape) < 2 or x.shape[-2] != columns or x.shape[:-2] != data.shape[:-1]:
        raise ShapeError(
            f"csr_matmul: a matrix of shape {(rows, columns)} with the entries {data} cannot be "
            f"multiplied by {x}; expected {(*data.shape[:-1], columns, 'k')}"
        )
    if data.dtype != x.dtype:
        raise TypeError(f"csr_matmul: the entries are {data} and the factor is {x}; cast one")
    return (ShapedArray((*x.shape[:-2], rows, x.shape[-1]), x.dtype),)


def check_trans(*avals: ShapedArray, trans: Trans, **_: object) -> None:
    """The ``check`` of primitives of sparse matrices, which know no adjoints."""
    if trans not in FLIPPED:
        raise ValueError(f"trans={trans!r}; expected one of {', '.join(FLIPPED)}")


def _csr_matmul_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, shape: tuple[int, int], trans: Trans
) -> tuple[Any, ...]:
    data, x, *pattern = operands
    (ct,) = cts
    if is_linear(x):
        params = {"shape": shape, "trans": FLIPPED[trans]}
        return (None, *bind(csr_matmul_p, data, ct, *pattern, **params), None, None)
    pair = (ct, x) if trans == "N" else (x, ct)
    return (*bind(csr_sample_p, *pair, *pattern, shape=shape), None, None, None)


def block_diagonal(
    size: int, pattern: object, dims: object, shape: tuple[int, int]
) -> tuple[Any, Any, tuple[int, int]]:
    """The patterns of a batch of matrices as that of one matrix; with its shape."""
    m, n = shape
    indices, indptr = (cast(x, np.dtype(np.int64)) for x in to_front(size, pattern, dims))
    nnz = shape_of(indices)[-1]
    number = np.arange(size)[:, None]
    starts = slice_index(indptr, BasicIndex((slice(None), slice(0, m)))) + number * nnz
    columns = reshape(indices + number * n, (size * nnz,))
    pointers = concatenate((reshape(starts, (size * m,)), np.array([size * nnz])), 0)
    return columns, pointers, (size * m, size * n)


def joined(x: Any, ndim: int) -> Any:
    """``[batch, *stack, r, ...]`` to ``[*stack, batch * r, ...]``; ``ndim`` is of ``[r, ...]``."""
    axis = len(shape_of(x)) - ndim - 1
    moved = moveaxis(x, 0, axis)
    lead, (size, rows, *rest) = shape_of(moved)[:axis], shape_of(moved)[axis:]
    return reshape(moved, (*lead, size * rows, *rest))


def _csr_matmul_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any], *, shape: tuple[int, int], trans: Trans
) -> tuple[Any, Any]:
    data, x, *pattern = operands
    rows = shape["NT".index(trans)]
    if dims[0] is None and dims[2] is None and dims[3] is None:
        wide, axis, moved = fold_batch(x, dims[1])
        (out,) = bind(csr_matmul_p, data, wide, *pattern, shape=shape, trans=trans)
        return (reshape(out, (*moved[: axis - 1], rows, *moved[axis:])),), (axis,)
    data, x = to_front(size, (data, x), dims[:2])
    if dims[2] is None and dims[3] is None:
        return bind(csr_matmul_p, data, x, *pattern, shape=shape, trans=trans), (0,)
    *pattern, whole = block_diagonal(size, pattern, dims[2:], shape)
    (out,) = bind(csr_matmul_p, joined(data, 1), joined(x, 2), *pattern, shape=whole, trans=trans)
    axis = len(shape_of(out)) - 2
    return (reshape(out, (*shape_of(out)[:axis], size, rows, shape_of(out)[-1])),), (axis,)


csr_matmul_p: Primitive = Primitive(
    "csr_matmul",
    impl=_csr_matmul_impl,
    abstract_eval=_csr_matmul_aval,
    check=check_trans,
    jvp=multilinear,
    transpose=_csr_matmul_transpose,
    batch=_csr_matmul_batch,
    lower=Routine(_csr_matmul_lower, supports=_supports),
)


# csr_sample -------------------------------------------------------------------------------------


def _csr_sample_aval(
    a: ShapedArray,
    b: ShapedArray,
    indices: ShapedArray,
    indptr: ShapedArray,
    *,
    shape: tuple[int, int],
) -> tuple[ShapedArray, ...]:
    out = ShapedArray((*a.shape[:-2], *indices.shape), a.dtype)
    check_csr("csr_sample", out, indices, indptr, shape)
    fits = a.shape[-2:-1] == shape[:1] and b.shape[-2:-1] == shape[1:]
    if not fits or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"csr_sample: {a} and {b} have no product a @ b.T of shape {shape}; expected "
            f"{(shape[0], 'k')} and {(shape[1], 'k')} behind equal leading axes"
        )
    if a.dtype != b.dtype:
        raise TypeError(f"csr_sample: the factors are {a} and {b}; cast one")
    return (out,)


def _csr_sample_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, shape: tuple[int, int]
) -> tuple[Any, ...]:
    a, b, *pattern = operands
    (ct,) = cts
    if is_linear(a):
        (moved,) = bind(csr_matmul_p, ct, b, *pattern, shape=shape, trans="N")
        return moved, None, None, None
    (moved,) = bind(csr_matmul_p, ct, a, *pattern, shape=shape, trans="T")
    return None, moved, None, None


def _csr_sample_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, shape: tuple[int, int]
) -> tuple[Any, Any]:
    a, b = to_front(size, operands[:2], dims[:2])
    pattern = operands[2:]
    if dims[2] is None and dims[3] is None:
        return bind(csr_sample_p, a, b, *pattern, shape=shape), (0,)
    *pattern, whole = block_diagonal(size, pattern, dims[2:], shape)
    (out,) = bind(csr_sample_p, joined(a, 2), joined(b, 2), *pattern, shape=whole)
    axis = len(shape_of(out)) - 1
    nnz = shape_of(operands[2])[0 if dims[2] is None else 1 - dims[2]]
    return (reshape(out, (*shape_of(out)[:axis], size, nnz)),), (axis,)


csr_sample_p: Primitive = Primitive(
    "csr_sample",
    impl=_csr_sample_impl,
    abstract_eval=_csr_sample_aval,
    jvp=multilinear,
    transpose=_csr_sample_transpose,
    batch=_csr_sample_batch,
    lower=Routine(_csr_sample_lower, supports=_supports),
)


# functions --------------------------------------------------------------------------------------


def csr_matmul(
    data: Any, indices: Any, indptr: Any, shape: tuple[int, int], x: Any, trans: Trans = "N"
) -> Any:
    """``A @ x`` or ``A.T @ x`` with a matrix in compressed rows.

    Args:
      data: entries ``[nnz]``.
      indices: their columns.
      indptr: where rows begin, ``[m + 1]``.
      shape: ``(m, n)``.
      x: ``[n, k]`` (``[m, k]`` for the transpose), of the same dtype.
      trans: ``"N"`` or ``"T"``.

    Raises:
      ShapeError, TypeError: shapes or dtypes do not fit.
      IndexError, ValueError: (when it is evaluated) the index arrays are no pattern of that shape.
    """
    return bind(csr_matmul_p, data, x, indices, indptr, shape=shape, trans=trans)[0]


PRIMITIVES: tuple[Primitive, ...] = (csr_matmul_p, csr_sample_p)
