"""Sparse matrices of plain code: SciPy's until a traced value meets them, then ``TracedSparse``.

SciPy's constructors give SciPy's matrices in twins too (``plain.sparse_in_twins``). With traced
entries they give a ``TracedSparse``: rows and columns that are known, and a traced vector of
entries. Whatever only moves entries (slices, transposes, conversions) is done by SciPy on a matrix
of the same format whose entries are *position numbers* 1, 2, ... of that vector; in the result they
say which entry went where. Sums merge triplets, products of two sparse matrices are expanded, and
products with dense arrays and systems are those of ``functrans.scipy.sparse``.

Here: that class. Not here: constructors, functions of matrices, solvers (``plain.sparse_names``).

Layer: ``plain``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.ir.source import here
from functrans.plain.memory import holds_tracer, settled
from functrans.plain.sparse_dense import Sparse, TracedDense, array_of
from functrans.plain.sparse_parts import (
    FORMATS,
    Places,
    Written,
    accumulated,
    merged,
    pooled,
    refused,
    scipy_class,
    sparse_library,
)
from functrans.plain.sparse_writing import addressed, check_storable, read_written, write
from functrans.plain.views import places_in
from functrans.primitives.gather_scatter import accumulate_p
from functrans.sparse_arrays import SparseArray, compressed, matmul
from functrans.trace import Tracer, bind, dtype_of, shape_of

_FLAT = frozenset({"coo", "csc", "csr"})
"""Formats whose data are the vector of entries."""


def kind_of(matrix: Any) -> str:
    """``"array"`` or ``"matrix"``, of which ``*`` is the matrix product."""
    if isinstance(matrix, TracedSparse):
        return matrix.kind
    return "array" if isinstance(matrix, sparse_library().sparray) else "matrix"


def is_sparse(value: Any) -> bool:
    """Whether a value is a sparse matrix."""
    return isinstance(value, TracedSparse) or sparse_library().issparse(value)


def is_traced(value: Any) -> bool:
    """Whether a value is a tracer or a sparse matrix with traced entries, or holds one."""
    if isinstance(value, (TracedSparse, TracedDense)):
        return True
    if type(value) in (tuple, list):
        return any(map(is_traced, value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        return any(map(is_traced, value.flat))
    return holds_tracer(value)


def read_off(result: Any, pool: Any, kind: str | None = None) -> Any:
    """What SciPy made of position numbers, with the entries of a pool in their place.

    Args:
      result: sparse matrix, array or number of positions, which are 0 where no entry is.
      pool: vector of entries.
      kind: of the matrix, in place of the result's.
    """
    if sparse_library().issparse(result):
        coo = result.tocoo()
        numbers = np.asarray(coo.data).astype(np.intp)
        kept = numbers > 0
        coords = tuple([np.asarray(c)[kept].astype(np.intp) for c in coo.coords])
        entries = pool[numbers[kept] - 1]
        kind = kind or kind_of(result)
        return TracedSparse(kind, result.format, tuple(map(int, result.shape)), coords, entries)
    numbers = np.asarray(result).astype(np.intp)
    if numbers.ndim == 0:
        return pool[int(numbers) - 1] if numbers > 0 else np.zeros((), dtype_of(pool))[()]
    if not numbers.any():
        return np.zeros(numbers.shape, dtype_of(pool))
    return np.where(numbers > 0, pool[np.maximum(numbers, 1) - 1], np.zeros((), dtype_of(pool)))


def positions(matrix: TracedSparse, start: int = 1) -> Any:
    """SciPy's matrix of the same format with position numbers for entries (all different)."""
    n = len(matrix.coords[0])
    numbers = np.arange(start, start + n, dtype=np.int64)
    container = scipy_class(matrix.kind, "coo")
    return container((numbers, matrix.coords), shape=matrix.shape).asformat(matrix.format)


def from_triplets(
    kind: str, layout: str, shape: tuple[int, ...], coords: tuple[np.ndarray, ...], data: Any
) -> TracedSparse:
    """The matrix of a format with these entries; those at the same place add up."""
    coords, data = merged(coords, shape, data)
    own = TracedSparse(kind, "coo", shape, coords, data)
    result: TracedSparse = read_off(positions(own).asformat(layout), data)
    return result


def over(numbers: Any, memory: Any) -> TracedSparse:
    """The matrix whose entries are those of a traced array, by their numbers, and stay so.

    Args:
      numbers: SciPy's matrix of numbers of elements in C order from 1, which are 0 at no entry.
      memory: the array, what ``data`` of the matrix is.
    """
    coo = numbers.tocoo()
    places = np.asarray(coo.data).astype(np.intp) - 1
    kept = places >= 0
    places, coords = places[kept], tuple([np.asarray(c)[kept].astype(np.intp) for c in coo.coords])
    shape = tuple(map(int, numbers.shape))
    form = (kind_of(numbers), numbers.format, shape, coords)
    if shape_of(memory) == (len(places),) and np.array_equal(places, np.arange(len(places))):
        return TracedSparse(*form, memory)
    return TracedSparse(*form, places_in(memory, places), (memory, places))


def traced_form(matrix: Any) -> TracedSparse:
    """A sparse matrix as a ``TracedSparse``, whose entries may be plain."""
    if isinstance(matrix, TracedSparse):
        return matrix
    coo = matrix.tocoo()
    coords = tuple([np.asarray(c).astype(np.intp) for c in coo.coords])
    shape = tuple(map(int, matrix.shape))
    return TracedSparse(kind_of(matrix), matrix.format, shape, coords, np.asarray(coo.data))


# the matrix -------------------------------------------------------------------------------------


class TracedSparse(Sparse):
    """A sparse matrix with traced entries, with the operators and methods of SciPy's.

    ``nnz`` and the pattern count every place that may have an entry: unlike SciPy's sums, sums keep
    places where entries cancel.

    Attributes:
      kind: ``"matrix"`` or ``"array"``.
      format: as SciPy's.
      shape: likewise.
    """

    __array_ufunc__ = None  # so that NumPy's operators leave the word to this class
    __array_priority__ = 20.0

    kind: str
    format: str
    shape: tuple[int, ...]
    _coords: tuple[np.ndarray, ...]
    _entries: Any
    _written: Written | None
    _memory: tuple[Any, np.ndarray] | None

    def __init__(
        self, kind: str, layout: str, shape: Any, coords: Any, entries: Any, memory: Any = None
    ) -> None:
        self._become(kind, layout, shape, coords, entries, memory)

    def _become(
        self, kind: str, layout: str, shape: Any, coords: Any, entries: Any, memory: Any = None
    ) -> None:
        self.kind, self.format, self.shape = kind, layout, shape
        self._coords, self._entries, self._written = coords, entries, None
        self._memory = memory  # what ``data`` is and where the entries are in it, if they are not
        self._dtype = getattr(entries, "dtype", None)  # pytrees hold other things for a while

    def _become_like(self, other: TracedSparse) -> None:
        coords = other.coords  # which settles what was written
        self._become(other.kind, other.format, other.shape, coords, other._entries, other._memory)

    def __repr__(self) -> str:
        """Kind, dtype, shape and number of entries."""
        name = f"{self.format}_{self.kind}"
        return f"<traced {name} of {self.dtype}, shape={self.shape}, nnz={self.nnz}>"

    # entries --------------------------------------------------------------------------------------

    def _settle(self) -> None:
        written = self._written
        if written is None:
            return
        self._written = None
        n = len(written.numbers)
        keys = np.array(list(written.numbers), np.intp).reshape(n, len(self.shape))
        numbers = np.fromiter(written.numbers.values(), np.intp, n)
        entries = written.take(numbers) if n else np.zeros(0, self._dtype)
        coords = tuple(keys.T)
        own = TracedSparse(self.kind, "coo", self.shape, coords, entries)
        self._become_like(read_off(positions(own).asformat(self.format), entries))

    @property
    def coords(self) -> tuple[np.ndarray, ...]:
        """Rows and columns of the entries, in the order in which they are stored."""
        self._settle()
        return self._coords

    @property
    def entries(self) -> Any:
        """The entries, in that order."""
        self._settle()
        return self._entries

    @property
    def places(self) -> Places:
        """All but the entries."""
        return Places(self.kind, self.format, self.shape, self.coords)

    def _distinct(self) -> TracedSparse:
        """The same matrix without two entries at one place."""
        coords, data = merged(self.coords, self.shape, self.entries)
        if coords is self.coords:
            return self
        if self.format == "coo":
            return TracedSparse(self.kind, "coo", self.shape, coords, data)
        own = TracedSparse(self.kind, "coo", self.shape, coords, data)
        result: TracedSparse = read_off(positions(own).asformat(self.format), data)
        return result

    def _with(self, entries: Any) -> TracedSparse:
        return TracedSparse(self.kind, self.format, self.shape, self.coords, entries)

    def _mapped(self, of_scipy: Callable[[Any], Any], change: Callable[[Any], Any]) -> TracedSparse:
        """Other entries, in the format of what SciPy makes of a matrix."""
        own = self._distinct()
        return own._with(change(own.entries)).asformat(of_scipy(_ones(own)).format)

    def _moved(self, change: Callable[[Any], Any]) -> Any:
        """The result of an operation of SciPy's that only moves entries."""
        own = self._distinct()
        return read_off(change(positions(own)), own.entries)

    # what SciPy's have ----------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """The dtype of the entries."""
        return self._dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self.coords[0]) if self._written is None else len(self._written.numbers)

    size = nnz

    def getnnz(self, axis: int | None = None) -> Any:
        """Number of stored entries, of the matrix or along an axis."""
        if axis is None:
            return self.nnz
        other = 1 - axis % 2
        return np.bincount(self.coords[other], minlength=self.shape[other])

    def get_shape(self) -> tuple[int, ...]:
        """The shape."""
        return self.shape

    def getformat(self) -> str:
        """The format."""
        return self.format

    @property
    def data(self) -> Any:
        """The entries in the order in which they are stored, in the memory of the matrix."""
        self._settle()
        if self._memory is not None:
            return self._memory[0]
        if self.format not in _FLAT:
            raise refused(f".data in the format {self.format}", "convert it first: A.tocsr().data")
        return self._entries

    @data.setter
    def data(self, value: Any) -> None:
        value, old = array_of(value), self.data
        if value is old:  # the end of ``A.data *= c``
            return
        if shape_of(value) != shape_of(old):
            raise refused(
                f".data = ... of shape {shape_of(value)}", f"its data have shape {shape_of(old)}"
            )
        if self._memory is None:
            self._become(self.kind, self.format, self.shape, self.coords, value)
        else:
            places = self._memory[1]
            entries = places_in(value, places)
            self._become(self.kind, self.format, self.shape, self.coords, entries, (value, places))

    def _sharing(self, kind: str, layout: str, shape: Any, coords: Any) -> TracedSparse:
        """A matrix of the same memory."""
        return TracedSparse(kind, layout, shape, coords, self._entries, self._memory)

    @property
    def row(self) -> np.ndarray:
        """Rows of the entries of a matrix of triplets."""
        self._check_format("row", "coo")
        return self.coords[0]

    @property
    def col(self) -> np.ndarray:
        """Columns of the entries of a matrix of triplets."""
        self._check_format("col", "coo")
        return self.coords[-1]

    def _check_format(self, name: str, *layouts: str) -> None:
        if self.format not in layouts:
            raise AttributeError(f"a matrix of the format {self.format} has no attribute {name!r}")

    @property
    def indices(self) -> np.ndarray:
        """Columns (rows) of the entries of a matrix by rows (columns)."""
        self._check_format("indices", "csr", "csc")
        return self.coords[1 if self.format == "csr" else 0]

    @property
    def indptr(self) -> np.ndarray:
        """Where the rows (columns) of a matrix by rows (columns) begin."""
        self._check_format("indptr", "csr", "csc")
        axis = 0 if self.format == "csr" else 1
        counts = np.bincount(self.coords[axis], minlength=self.shape[axis])
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)

    def copy(self) -> TracedSparse:
        """A matrix of its own."""
        return self._with(self.entries.copy())

    def astype(self, dtype: Any, casting: str = "unsafe", copy: bool = True) -> TracedSparse:
        """Entries of another dtype."""
        dtype = getattr(dtype, "dtype", dtype)
        own = self._distinct()
        return own._with(own.entries.astype(dtype))

    def asfptype(self) -> TracedSparse:
        """Entries in floating point."""
        return self if self.dtype.kind in "fc" else self.astype(np.float64)

    def asformat(self, format: str | None, copy: bool = False) -> TracedSparse:
        """The same matrix in another format."""
        if format is None or format == self.format:
            return self.copy() if copy else self
        if format == "coo" and not copy and self.format in (*_FLAT, "bsr"):
            return TracedSparse(self.kind, format, self.shape, self.coords, self._entries)
        result: TracedSparse = self._moved(lambda own: own.asformat(format))
        return result

    @property
    def T(self) -> TracedSparse:  # noqa: N802  # SciPy's name
        """The transpose."""
        return self.transpose()

    def transpose(self, axes: Any = None, copy: bool = False) -> TracedSparse:
        """The transpose, of the same memory where SciPy's is."""
        if axes is None and not copy and self.ndim == 2 and self.format in _FLAT:
            coords = self.coords[::-1]
            layout = {"csr": "csc", "csc": "csr"}.get(self.format, self.format)
            return self._sharing(self.kind, layout, self.shape[::-1], coords)
        result: TracedSparse = self._moved(lambda own: own.transpose(axes))
        return result

    def reshape(self, *args: Any, **kwargs: Any) -> TracedSparse:
        """Another shape."""
        result: TracedSparse = self._moved(lambda own: own.reshape(*args, **kwargs))
        return result

    def getrow(self, i: int) -> TracedSparse:
        """A row, as a matrix."""
        result: TracedSparse = self._moved(lambda own: own.getrow(i))
        return result

    def getcol(self, j: int) -> TracedSparse:
        """A column, as a matrix."""
        result: TracedSparse = self._moved(lambda own: own.getcol(j))
        return result

    def diagonal(self, k: int = 0) -> Any:
        """A diagonal, as a vector."""
        return self._moved(lambda own: own.diagonal(k))

    def trace(self, offset: int = 0) -> Any:
        """The sum of a diagonal."""
        return self.diagonal(offset).sum()

    def toarray(self, order: str | None = None, out: Any = None) -> Any:
        """The dense array."""
        if out is not None:
            raise refused(".toarray(out=...)", "use its result")
        entries = self.entries
        return bind(accumulate_p, entries, *self.coords, shape=self.shape,
                    axes=tuple(range(self.ndim)), mode="clip")[0]  # fmt: skip

    def todense(self, order: str | None = None, out: Any = None) -> Any:
        """The dense array; of a matrix, with the operators of ``np.matrix``."""
        return self._dense(self.toarray(order, out))

    def _dense(self, array: Any) -> Any:
        return TracedDense(array) if self.kind == "matrix" else array

    def sum(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The sum of all entries, of rows or of columns."""
        if out is not None:
            raise refused(".sum(out=...)", "use its result")
        entries = self.entries if dtype is None else self.entries.astype(dtype)
        if axis is None or self.ndim == 1:
            return entries.sum()
        if isinstance(axis, tuple):
            if len(axis) == 2:
                return entries.sum()
            (axis,) = axis
        axis = range(-2, 2)[axis + 2] % 2
        total = accumulated(entries, self.coords[1 - axis], self.shape[1 - axis])
        if self.kind == "array":
            return total
        return TracedDense(total[None, :] if axis == 0 else total[:, None])

    def mean(self, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        """The mean of all places, of rows or of columns."""
        whole = axis is None or (isinstance(axis, tuple) and len(axis) == 2)
        axis = axis[0] if isinstance(axis, tuple) and not whole else axis
        n = int(np.prod(self.shape)) if whole else self.shape[axis]
        return self.sum(axis, dtype, out) / n

    def conj(self, copy: bool = True) -> TracedSparse:
        """Complex conjugate entries."""
        if self.dtype.kind != "c":
            return self.copy() if copy else self
        return self._with(np.conj(self.entries))

    conjugate = conj

    def getH(self) -> TracedSparse:  # noqa: N802  # SciPy's name
        """The adjoint."""
        return self.conj().transpose()

    H = property(getH)

    @property
    def real(self) -> TracedSparse:
        """Real parts."""
        if self.dtype.kind != "c":
            return self._sharing(self.kind, self.format, self.shape, self.coords)
        return self._with(np.real(self.entries))

    @property
    def imag(self) -> TracedSparse:
        """Imaginary parts."""
        return self._with(np.imag(self.entries))

    # what changes it ------------------------------------------------------------------------------

    def sum_duplicates(self) -> None:
        """Add up entries at the same place."""
        own = self._distinct()
        if own is not self:
            self._become_like(own)

    def sort_indices(self) -> None:
        """Order the entries of rows (columns)."""
        own = self._distinct()
        numbers = positions(own)
        numbers.sort_indices()
        self._become_like(read_off(numbers, own.entries))

    def eliminate_zeros(self) -> None:
        """Nothing: which entries are zero is not asked."""

    def setdiag(self, values: Any, k: int = 0) -> None:
        """Write a diagonal."""
        values = array_of(values)
        m, n = self.shape
        length = min(m + min(k, 0), n - max(k, 0))
        if length <= 0:
            raise ValueError("k exceeds array dimensions")
        if shape_of(values):
            length = min(length, shape_of(values)[0])
            values = values[:length]
        steps = np.arange(length)
        write(self, steps - min(k, 0), steps + max(k, 0), values)

    def __setitem__(self, key: Any, value: Any) -> None:
        """``A[i, j] = value``."""
        rows, cols = addressed(self, key)
        if is_sparse(value):
            value = value.toarray()
        value = array_of(value)
        while len(shape_of(value)) > rows.ndim:
            value = value[0] if shape_of(value)[0] == 1 else value[..., 0]
        write(self, rows, cols, value)

    def __getitem__(self, key: Any) -> Any:
        """``A[i, j]``, rows, columns or parts."""
        key = settled(key)
        if holds_tracer(key):
            raise refused("an index that is traced", "rows and columns must be known")
        if self._written is not None:
            found = read_written(self, key)
            if found is not None:
                return found
        return self._moved(lambda own: own[key])

    # arithmetic -----------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        """Not one truth value, as SciPy's."""
        raise ValueError("The truth value of an array with more than one element is ambiguous.")

    def __len__(self) -> int:
        """Not one length, as SciPy's."""
        raise TypeError("sparse array length is ambiguous; use getnnz()")

    __hash__ = object.__hash__

    def __imul__(self, other: Any) -> Any:
        """In place by a number, as SciPy; else the product."""
        if is_sparse(other) or np.ndim(settled(other)):
            return self * other
        return self._scaled_in_place(operator.imul, other)

    def __itruediv__(self, other: Any) -> Any:
        """In place by a number, as SciPy; else the quotient."""
        if is_sparse(other) or np.ndim(settled(other)):
            return self / other
        return self._scaled_in_place(operator.itruediv, other)

    def _scaled_in_place(self, change: Callable[[Any, Any], Any], factor: Any) -> TracedSparse:
        """This matrix with entries that are changed in the memory that it may share."""
        factor = array_of(factor)
        data = self._entries if self._memory is None else self._memory[0]
        if self._written is None and self.format not in ("dok", "lil") and isinstance(data, Tracer):
            check_storable(self, factor)
            change(data, factor)
            return self
        plain = {operator.imul: operator.mul, operator.itruediv: operator.truediv}[change]
        return self._changed_to(plain(self, factor))

    def __iadd__(self, other: Any) -> Any:
        """In place in a matrix of lists, as SciPy; else the sum."""
        return self._changed_to(self + other) if self.format == "lil" else self + other

    def __isub__(self, other: Any) -> Any:
        """In place in a matrix of lists, as SciPy; else the difference."""
        return self._changed_to(self - other) if self.format == "lil" else self - other

    def _changed_to(self, other: Any) -> TracedSparse:
        """This matrix with the entries of another one."""
        if not isinstance(other, TracedSparse):
            self[:, :] = other
            return self
        check_storable(self, other.entries)
        layout, dtype = self.format, self.dtype
        other = other.asformat(layout)
        self._become_like(other if other.dtype == dtype else other.astype(dtype))
        return self

    def __neg__(self) -> TracedSparse:
        """Negative entries."""
        return self._mapped(operator.neg, lambda entries: -entries)

    def __pos__(self) -> TracedSparse:
        """A copy."""
        return self.copy()

    def __abs__(self) -> TracedSparse:
        """Absolute values."""
        return self._mapped(abs, abs)

    def __round__(self, ndigits: int = 0) -> TracedSparse:
        """Rounded entries."""
        return self._mapped(lambda own: own, lambda entries: np.round(entries, ndigits))

    def _sum(self, other: Any, sign: int, own_sign: int = 1) -> Any:
        """``own_sign * self + sign * other``."""
        other = settled(other)
        if is_sparse(other):
            if tuple(self.shape) != tuple(other.shape):
                raise ValueError(f"inconsistent shapes {self.shape} and {other.shape}{here()}")
            a, b = self._distinct(), traced_form(other)._distinct()
            like = _ones(a) + _ones(b) if sign == own_sign else _ones(a) - 2 * _ones(b)
            coords = tuple(map(np.concatenate, zip(a.coords, b.coords, strict=True)))
            left = a.entries if own_sign > 0 else -a.entries
            dtype = np.result_type(a.dtype, b.dtype)
            right = b.entries if sign > 0 else -b.entries
            data = pooled([x.astype(dtype) for x in (left, right)])
            return from_triplets(kind_of(like), like.format, self.shape, coords, data)
        if isinstance(other, TracedDense):
            other = other.array
        if not np.shape(other):
            if not isinstance(other, Tracer) and other == 0:
                return self.copy() if own_sign > 0 else -self
            raise NotImplementedError(
                f"adding a nonzero number to a sparse matrix is not supported{here()}; use "
                "A.toarray() + c"
            )
        dense = self.toarray() if own_sign > 0 else -self.toarray()
        other = array_of(other)
        return self._dense(dense + (other if sign > 0 else -other))

    def __add__(self, other: Any) -> Any:
        """``self + other``."""
        return self._sum(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        """``self - other``."""
        return self._sum(other, -1)

    def __rsub__(self, other: Any) -> Any:
        """``other - self``."""
        return self._sum(other, 1, -1)

    def _scaled(self, factor: Any) -> TracedSparse:
        return self._with(self.entries * factor)

    def multiply(self, other: Any) -> Any:
        """The product element by element, with a number, an array or a sparse matrix."""
        other = settled(other)
        if isinstance(other, TracedDense):
            other = other.array
        if not is_sparse(other):
            other = array_of(other)
            if not shape_of(other):
                return self._scaled(other)
            return self._times_dense(other, lambda a, b: a * b)
        a, b = self._distinct(), traced_form(other)._distinct()
        at_a = positions(a).multiply(_ones(b))
        at_b = _ones(a).multiply(positions(b))
        return paired(at_a, at_b, a.entries, b.entries)

    def _times_dense(self, other: Any, combine: Callable[[Any, Any], Any]) -> Any:
        """The entries combined with those of a dense array at the same places."""
        own = self._distinct()
        pattern = positions(own).multiply(np.ones(shape_of(other), np.int64))
        if not sparse_library().issparse(pattern):
            pattern = scipy_class(self.kind, "coo")(pattern)
        moved = read_off(pattern, own.entries)
        shape = (1,) * (len(moved.shape) - len(shape_of(other))) + shape_of(other)
        index = tuple(
            [c if n > 1 else np.zeros_like(c) for c, n in zip(moved.coords, shape, strict=True)]
        )
        return moved._with(combine(moved.entries, other.reshape(shape)[index]))

    def __mul__(self, other: Any) -> Any:
        """The product: with a number; of a matrix, the matrix product; of an array, elementwise."""
        other = settled(other)
        if not is_sparse(other) and not np.shape(other):
            return self._scaled(array_of(other))
        return self.multiply(other) if self.kind == "array" else self._product(other)

    def __rmul__(self, other: Any) -> Any:
        """The product, in the other order."""
        other = settled(other)
        if not is_sparse(other) and not np.shape(other):
            return self._scaled(array_of(other))
        return self.multiply(other) if self.kind == "array" else self._product_of(other)

    def __truediv__(self, other: Any) -> Any:
        """The quotient by a number or a dense array."""
        other = settled(other)
        if is_sparse(other):
            raise refused("the quotient by a sparse matrix", "divide by .toarray()")
        other = array_of(other)
        if not shape_of(other):
            return self._with(self.entries / other)
        return self._times_dense(other, lambda a, b: a / b)

    def __rtruediv__(self, other: Any) -> Any:
        """Refused, as by SciPy."""
        return NotImplemented

    def power(self, n: Any, dtype: Any = None) -> TracedSparse:
        """Powers of the entries."""
        if not isinstance(n, (int, float, np.number)) or n <= 0:
            raise NotImplementedError(f"the exponent must be a positive number{here()}")
        own = self if dtype is None else self.astype(dtype)
        return own._mapped(lambda ones: ones.power(n), lambda entries: entries**n)

    def __pow__(self, n: Any) -> Any:
        """Powers: of a matrix, matrix powers; of an array, those of the entries."""
        if self.kind == "array":
            return self.power(n)
        if not isinstance(n, (int, np.integer)) or n < 0:
            raise refused(f"the power {n!r}", "matrix powers are natural numbers")
        if n == 0:
            raise refused("the power 0", "it is the identity: eye(n)")
        result = self
        for _ in range(int(n) - 1):
            result = result @ self
        return result

    # matrix products ------------------------------------------------------------------------------

    def compressed(self) -> SparseArray:
        """The matrix of ``functrans.scipy.sparse`` of the same entries, by rows or columns."""
        layout = self.format if self.format in ("csr", "csc") else "csr"
        own = self.asformat(layout)
        return compressed((own.entries, own.indices, own.indptr), own.shape, layout)

    def _product(self, other: Any) -> Any:
        """``self @ other``."""
        other = settled(other)
        if is_sparse(other):
            if self.ndim == 1 or len(other.shape) == 1:
                raise refused("a product with a sparse vector", "use .toarray() of it")
            return _sparse_product(self, traced_form(other))
        is_matrix = isinstance(other, TracedDense)
        dense = array_of(other)
        if self.ndim == 1:
            return self.toarray() @ dense
        result = matmul(self.compressed(), dense)
        return TracedDense(result) if is_matrix else result

    def _product_of(self, other: Any) -> Any:
        """``other @ self``."""
        other = settled(other)
        if is_sparse(other):
            return traced_form(other)._product(self)
        is_matrix = isinstance(other, TracedDense)
        dense = array_of(other)
        if self.ndim == 1:
            return dense @ self.toarray()
        result = matmul(dense, self.compressed())
        return TracedDense(result) if is_matrix else result

    def __matmul__(self, other: Any) -> Any:
        """The matrix product."""
        if not is_sparse(other) and not np.shape(settled(other)):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._product(other)

    def __rmatmul__(self, other: Any) -> Any:
        """The matrix product, in the other order."""
        if not is_sparse(other) and not np.shape(settled(other)):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._product_of(other)

    def dot(self, other: Any) -> Any:
        """The matrix product, or the product with a number."""
        if not is_sparse(other) and not np.shape(settled(other)):
            return self._scaled(array_of(other))
        return self._product(other)

    def __getattr__(self, name: str) -> Any:
        """What SciPy's matrices have and these have not."""
        if name.startswith("_") or not hasattr(scipy_class("matrix", "csr"), name):
            raise AttributeError(f"a sparse matrix with traced entries has no attribute {name!r}")
        raise refused(f".{name}", "compute with A.tocoo(): .data, .row and .col, or A.toarray()")


def _converting(layout: str) -> Callable[..., Any]:
    def convert(self: TracedSparse, copy: bool = layout == "coo", **kwargs: Any) -> Any:
        if kwargs:
            return self._moved(lambda own: getattr(own, f"to{layout}")(**kwargs))
        return self.asformat(layout, copy)

    convert.__doc__ = f"The matrix in the format {layout}."
    return convert


def _elementwise(name: str) -> Callable[..., Any]:
    def apply(self: TracedSparse) -> Any:
        function = getattr(np, name)
        return self._mapped(operator.methodcaller(name), function)

    apply.__doc__ = f"``np.{name}`` of the entries."
    return apply


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: Any, other: Any) -> Any:
        raise refused(f"{name}", "compare the entries: A.tocoo().data, or A.toarray()")

    refuse.__doc__ = "Refused."
    return refuse


_ELEMENTWISE = (
    "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "rint", "sign",
    "expm1", "log1p", "deg2rad", "rad2deg", "floor", "ceil", "trunc", "sqrt",
)  # fmt: skip
_COMPARISONS = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")

for _layout in FORMATS:
    setattr(TracedSparse, f"to{_layout}", _converting(_layout))
for _name in _ELEMENTWISE:
    setattr(TracedSparse, _name, _elementwise(_name))
for _name in _COMPARISONS:
    setattr(TracedSparse, _name, _refusing(_name))


class TracedDict(TracedSparse, dict):  # type: ignore[misc,type-arg]  # SciPy's dok_matrix is a dict
    """A ``TracedSparse`` that was SciPy's matrix of keys before."""

    __hash__ = object.__hash__  # type: ignore[assignment,misc]  # dicts have none


def _ones(matrix: TracedSparse) -> Any:
    """SciPy's matrix of the same places and format, of ones."""
    container = scipy_class(matrix.kind, "coo")
    ones = np.ones(len(matrix.coords[0]), np.int64)
    return container((ones, matrix.coords), shape=matrix.shape).asformat(matrix.format)


def paired(at_a: Any, at_b: Any, a: Any, b: Any) -> Any:
    """Products of the entries that two matrices of positions with the same pattern name."""
    layout = at_a.format
    left, right = (at.tocsr().copy() for at in (at_a, at_b))
    for at in (left, right):
        at.sum_duplicates()
        at.eliminate_zeros()
    entries = a[left.data.astype(np.intp) - 1] * b[right.data.astype(np.intp) - 1]
    left.data = np.arange(1, left.nnz + 1)
    return read_off(left.asformat(layout), entries)


def _sparse_product(a: TracedSparse, b: TracedSparse) -> TracedSparse:
    """The product of two sparse matrices: all products of entries, added up by place."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not fit{here()}")
    a, b = a._distinct(), b._distinct()
    like = _ones(a) @ _ones(b)
    order = np.argsort(b.coords[0], kind="stable")
    counts = np.bincount(b.coords[0], minlength=b.shape[0])
    starts = np.concatenate([[0], np.cumsum(counts)])
    times = counts[a.coords[1]]
    of_a = np.repeat(np.arange(len(times)), times)
    within = np.arange(len(of_a)) - np.repeat(np.cumsum(times) - times, times)
    of_b = order[starts[a.coords[1][of_a]] + within]
    coords = (a.coords[0][of_a], b.coords[1][of_b])
    data = a.entries[of_a] * b.entries[of_b]
    shape = (a.shape[0], b.shape[1])
    return from_triplets(kind_of(like), like.format, shape, coords, data)
