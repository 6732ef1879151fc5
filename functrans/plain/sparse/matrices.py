"""Sparse matrices of plain code: SciPy's until a traced value meets them, then ``TracedSparse``.

SciPy's constructors give SciPy's matrices in twins too (``plain.sparse.in_twins``). With traced
entries they give a ``TracedSparse``: rows and columns that are known, and a traced vector of
entries. Whatever only moves entries (slices, transposes, conversions) is done by SciPy on a matrix
of the same format whose entries are *position numbers* 1, 2, ... of that vector; in the result they
say which entry went where. Sums merge triplets, products of two sparse matrices are expanded, and
products with dense arrays and systems are those of ``functrans.scipy.sparse``.

Here: that class. Not here: constructors, functions of matrices, solvers (``plain.sparse.names``).

Layer: ``plain.sparse``.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.core.dispatch import Tracer, bind, dtype_of, shape_of
from functrans.core.values import Array
from functrans.plain.memory import holds_tracer, settled
from functrans.plain.sparse.dense import Sparse, TracedDense, array_of
from functrans.plain.sparse.parts import (
    FORMATS,
    Places,
    SharedState,
    Written,
    accumulated,
    merged,
    of_state,
    pooled,
    refused,
    scipy_class,
    sparse_library,
)
from functrans.plain.sparse.patterns import (
    ALL,
    entry_order,
    models,
    of_numbers,
    stored_places,
    truth_of,
    unknown_pattern,
)
from functrans.plain.sparse.writing import addressed, exists, read_written, write
from functrans.plain.views import view_of_places
from functrans.primitives.gather_scatter import accumulate_p

_FLAT = frozenset({"coo", "csc", "csr"})
"""Formats whose data are the vector of entries."""


def container_kind(matrix: Any) -> str:
    """``"array"`` or ``"matrix"``, of which ``*`` is the matrix product."""
    if isinstance(matrix, TracedSparse):
        return matrix.kind
    return "array" if isinstance(matrix, sparse_library().sparray) else "matrix"


def is_sparse(value: object) -> bool:
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


def read_off(result: Any, pool: Array, kind: str | None = None) -> Any:
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
        kind = kind or container_kind(result)
        return TracedSparse(kind, result.format, tuple(map(int, result.shape)), coords, entries)
    numbers = np.asarray(result).astype(np.intp)
    if numbers.ndim == 0:
        return pool[int(numbers) - 1] if numbers > 0 else np.zeros((), dtype_of(pool))[()]
    if not numbers.any():
        return np.zeros(numbers.shape, dtype_of(pool))
    return np.where(numbers > 0, pool[np.maximum(numbers, 1) - 1], np.zeros((), dtype_of(pool)))


def as_scipy_stores(result: Any, change: Callable[..., Any], *operands: Any) -> TracedSparse:
    """A result whose places that SciPy stores are told from those that it does not store.

    Args:
      result: of all places, or any other value.
      change: SciPy's operation of operands with plain entries, which gives the result.
      operands: sparse matrices, arrays.
    """
    if not isinstance(result, TracedSparse):
        return result
    model, of_zeros = models(change, operands, lambda x: isinstance(x, TracedSparse))
    if model is not None:
        return patterned(result, model)
    truth = None if of_zeros is None else truth_of(result.entries)
    if truth is None:
        return result._rearranged(None, None)
    kept = entry_order(result, of_zeros)
    if kept is None or np.any(kept[0] < 0):
        return result._rearranged(None, None)
    truth[kept[0][: kept[1]]] = True
    return result._told(truth)


def patterned(result: TracedSparse, model: Any) -> TracedSparse:
    """A new matrix with the places that one of SciPy's stores, in its order, and others last."""
    found = entry_order(result, model)
    if found is None:
        return result._rearranged(None, None)
    order, n = found
    absent = order < 0
    if absent.any():  # SciPy stores zeros there
        where = tuple([c[:n][absent[:n]] for c in stored_places(model)])
        total = len(result.sites[0])
        sites = tuple(map(np.concatenate, zip(result.sites, where, strict=True)))
        zeros = np.zeros(len(where[0]), result.dtype)
        result = TracedSparse(
            result.kind, result.format, result.shape, sites, pooled([result.entries, zeros])
        )
        order[absent] = np.arange(total, total + len(where[0]))
    result = result._rearranged(order, n)
    if result.format == "bsr":
        result.blocksize = model.blocksize
    return result


def with_positions(matrix: TracedSparse, start: int = 1) -> Any:
    """SciPy's matrix of the same format with position numbers for entries (all different)."""
    n = len(matrix.sites[0])
    numbers = np.arange(start, start + n, dtype=np.int64)
    container = scipy_class(matrix.kind, "coo")
    return container((numbers, matrix.sites), shape=matrix.shape).asformat(matrix.format)


def ones(matrix: TracedSparse) -> Any:
    """SciPy's matrix of the same places and format, of ones."""
    container = scipy_class(matrix.kind, "coo")
    ones = np.ones(len(matrix.sites[0]), np.int64)
    return container((ones, matrix.sites), shape=matrix.shape).asformat(matrix.format)


def from_triplets(
    kind: str, layout: str, shape: tuple[int, ...], coords: tuple[np.ndarray, ...], data: Array
) -> TracedSparse:
    """The matrix of a format with these entries; those at the same place add up."""
    coords, data = merged(coords, shape, data)
    own = TracedSparse(kind, "coo", shape, coords, data)
    result: TracedSparse = read_off(with_positions(own).asformat(layout), data)
    return result


def over(numbers: Any, memory: Any) -> TracedSparse:
    """A matrix whose entries are those of a traced array, by their numbers, and stay so.

    Args:
      numbers: SciPy's matrix of numbers of elements in C order from 1, which are 0 at no entry.
      memory: the array, what ``data`` of the matrix is.
    """
    coo = numbers.tocoo()
    places = np.asarray(coo.data).astype(np.intp) - 1
    kept = places >= 0
    places, coords = places[kept], tuple([np.asarray(c)[kept].astype(np.intp) for c in coo.coords])
    shape = tuple(map(int, numbers.shape))
    form = (container_kind(numbers), numbers.format, shape, coords)
    if shape_of(memory) == (len(places),) and np.array_equal(places, np.arange(len(places))):
        result = TracedSparse(*form, memory)
    else:
        result = TracedSparse(*form, view_of_places(memory, places), (memory, places))
    result._is_shared = True
    result.blocksize = getattr(numbers, "blocksize", None)
    return result


def as_traced_sparse(matrix: Any) -> TracedSparse:
    """A sparse matrix as a ``TracedSparse``, whose entries may be plain."""
    if isinstance(matrix, TracedSparse):
        return matrix
    coo = matrix.tocoo()
    coords = tuple([np.asarray(c).astype(np.intp) for c in coo.coords])
    shape = tuple(map(int, matrix.shape))
    own = TracedSparse(container_kind(matrix), matrix.format, shape, coords, np.asarray(coo.data))
    return patterned(own, matrix) if matrix.format in ("bsr", "dia") else own


# the matrix -------------------------------------------------------------------------------------


class TracedSparse(Sparse):
    """A sparse matrix with traced entries, with the operators and methods of SciPy's.

    It keeps every place that may have an entry, those first that SciPy stores: what lets the
    pattern be seen shows these, and is refused where values that are not known decide about it.

    Attributes:
      kind: ``"matrix"`` or ``"array"``.
      format: as SciPy's.
      shape: likewise.
      blocksize: of blocks, if it is known.
    """

    __array_ufunc__ = None  # so that NumPy's operators leave the word to this class
    __array_priority__ = 20.0

    kind: str
    format: str
    shape: tuple[int, ...]
    _state: SharedState

    def __init__(
        self, kind: str, layout: str, shape: Any, coords: Any, entries: Any, memory: Any = None,
        stored: int | None = ALL,
    ) -> None:  # fmt: skip
        self._become(kind, layout, shape, coords, entries, memory, stored)

    def _become(
        self,
        kind: str,
        layout: str,
        shape: Any,
        coords: Any,
        entries: Any,
        memory: Any = None,
        stored: int | None = ALL,
    ) -> None:
        if "_state" not in self.__dict__:
            self._state = SharedState()
        self._stored = stored  # how many of the places SciPy stores: the first ones
        self._is_canonical = False  # whether triplets are known to be in order, and all different
        self._is_shared = False  # whether others may have the same entries
        self._sharers: list[weakref.ref[Any]] = []  # the matrices among them, and this one
        self._seen = None  # what ``data`` is where these are not all
        self.blocksize = None
        self.kind, self.format, self.shape = kind, layout, shape
        self._coords, self._entries, self._written = coords, entries, None
        self._memory = memory  # what ``data`` is and where the entries are in it, if they are not
        self._dtype = getattr(entries, "dtype", None)  # pytrees hold other things for a while

    def _unshare(self) -> None:
        """Leave the entries to the other matrices that share them."""
        old = self._state
        self._state = SharedState()
        for name in SharedState.__slots__:
            setattr(self._state, name, getattr(old, name))

    def _become_like(self, other: TracedSparse) -> None:
        coords = other.sites  # which settles what was written
        self._become(
            other.kind, other.format, other.shape, coords, other._entries, other._memory,
            other._stored,
        )  # fmt: skip
        self._seen, self.blocksize = other._seen, other.blocksize
        self._is_shared = other._is_shared

    def _share_with(self, sharers: list[weakref.ref[Any]]) -> None:
        """Know the other matrices of the same entries."""
        sharers.append(weakref.ref(self))
        self._is_shared, self._sharers = True, sharers

    def _has_sharers(self) -> bool:
        """Whether other matrices have the same entries."""
        others = [ref() for ref in self._sharers]
        return any(x is not None and x is not self for x in others)

    def __repr__(self) -> str:
        """Kind, dtype, shape and number of entries."""
        name = f"{self.format}_{self.kind}"
        n = self._stored_count()
        found = f"at most {len(self.sites[0])}" if n is None else n
        return f"<traced {name} of {self.dtype}, shape={self.shape}, nnz={found}>"

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
        own = TracedSparse(self.kind, "coo", self.shape, tuple(keys.T), entries)
        own = own._told(self._mask_of_written(written, numbers, entries))
        if self.format == "dok":
            own.format = "dok"  # in the order of writing
        else:
            layout = self.format
            result = read_off(with_positions(own).asformat(layout), own.entries)
            if own._stored is None:
                own = result._rearranged(None, None)
            else:
                own = patterned(result, of_numbers(own, np.ones(n)).asformat(layout))
        self._become_like(own)

    @staticmethod
    def _made(*parts: Any) -> TracedSparse:
        return TracedSparse(*parts)

    def _mask_of_written(
        self, written: Written, numbers: np.ndarray, entries: Array
    ) -> Array | None:
        """Which of the entries SciPy stores; ``None`` where that is not known."""
        if self._stored is None:
            return None
        is_new = numbers >= written.begun
        mask = is_new | (numbers < (written.begun if self._stored == ALL else self._stored))
        if not written.drops_zeros or not is_new.any():
            return mask
        truth = truth_of(entries)
        return None if truth is None else mask & (truth | ~is_new)

    @property
    def sites(self) -> tuple[np.ndarray, ...]:
        """Rows and columns of all places that may have an entry, those that SciPy stores first."""
        self._settle()
        return self._coords

    @property
    def coords(self) -> tuple[np.ndarray, ...]:
        """Rows and columns of the entries of a matrix of triplets, as SciPy's."""
        self._check_format("coords", "coo")
        return self._visible("coords")

    @property
    def entries(self) -> Any:
        """The entries of these places."""
        self._settle()
        return self._entries

    @property
    def places(self) -> Places:
        """All but the entries."""
        return Places(self.kind, self.format, self.shape, self.sites, self._stored)

    def _stored_count(self) -> int | None:
        """How many of the places SciPy stores: the first ones; ``None`` if that is not known."""
        n = len(self.sites[0])
        return n if self._stored == ALL else self._stored

    def _visible(self, what: str) -> tuple[np.ndarray, ...]:
        """Rows and columns of what SciPy stores."""
        n = self._stored_count()
        if n is None:
            raise unknown_pattern(f".{what}", self._entries)
        return tuple([c[:n] for c in self.sites])

    def _rearranged(self, order: np.ndarray | None, stored: int | None) -> TracedSparse:
        """The same matrix with places in another order, of which SciPy stores the first ones."""
        n = len(self.sites[0])
        if stored == n:
            stored = ALL
        if order is None or np.array_equal(order, np.arange(n)):
            result = self._with(self.entries)
            result._memory = self._memory
        else:
            sites = tuple([c[order] for c in self.sites])
            result = TracedSparse(self.kind, self.format, self.shape, sites, self.entries[order])
        result._stored = stored
        return result

    def _told(self, mask: Array | None) -> TracedSparse:
        """The same matrix, of which SciPy stores some places; ``None`` if it is not known which."""
        if mask is None:
            return self._rearranged(None, None)
        order = np.argsort(~mask, kind="stable")
        return self._rearranged(order, int(np.count_nonzero(mask)))

    def _distinct(self) -> TracedSparse:
        """The same matrix without two entries at one place."""
        coords, data = merged(self.sites, self.shape, self.entries)
        if coords is self.sites:
            return self
        stored = self._stored if self._stored == ALL else None
        own = TracedSparse(self.kind, "coo", self.shape, coords, data, None, stored)
        if self.format == "coo":
            return own
        result: TracedSparse = read_off(with_positions(own).asformat(self.format), data)
        result._stored = stored
        return result

    def _with(self, entries: Array) -> TracedSparse:
        form = (self.kind, self.format, self.shape, self.sites)
        result = TracedSparse(*form, entries, None, self._stored)
        result.blocksize = self.blocksize
        return result

    def _without_unstored(self) -> TracedSparse:
        self._visible("places")
        return self._without_zeros()

    def _without_zeros(self) -> TracedSparse:
        """The same matrix without places that SciPy does not store, where that is known."""
        n = self._stored_count()
        if n is None or self._stored == ALL:
            return self
        sites = tuple([c[:n] for c in self.sites])
        return TracedSparse(self.kind, self.format, self.shape, sites, self.entries[:n])

    def _mapped(self, of_scipy: Callable[[Any], Any], change: Callable[[Any], Any]) -> TracedSparse:
        """Other entries, in the format of what SciPy makes of a matrix.

        SciPy adds up the entries of places in the matrix itself before.
        """
        self._add_up_entries()
        own = self._distinct()
        return own._with(change(own.entries)).asformat(of_scipy(ones(own)).format)

    def _add_up_entries(self) -> None:
        if self.format in ("coo", "csc", "csr", "bsr"):
            self.sum_duplicates()

    def _moved(self, change: Callable[[Any], Any]) -> TracedSparse:
        """The result of an operation of SciPy's that only moves entries."""
        own = self._distinct()
        return as_scipy_stores(read_off(change(with_positions(own)), own.entries), change, self)

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
        return len(self._visible("nnz")[0])

    size = nnz

    def getnnz(self, axis: int | None = None) -> int | Array:
        """Number of stored entries, of the matrix or along an axis."""
        if axis is None:
            return self.nnz
        other = 1 - axis % 2
        return np.bincount(self._visible("getnnz()")[other], minlength=self.shape[other])

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
        n = len(self._visible("data")[0])
        self._is_shared = True
        if self._stored == ALL or not isinstance(self._entries, Tracer):
            return self._entries[:n] if self._stored != ALL else self._entries
        if self._seen is None:
            self._seen = view_of_places(self._entries, np.arange(n))
        return self._seen

    @data.setter
    def data(self, value: Any) -> None:
        value, old = array_of(value), self.data
        if value is old:  # the end of ``A.data *= c``
            return
        if shape_of(value) != shape_of(old):
            raise refused(
                f".data = ... of shape {shape_of(value)}", f"its data have shape {shape_of(old)}"
            )
        sharers, form = self._sharers, (self.kind, self.format, self.shape)
        if self._memory is None:
            self._become(*form, self._visible("data"), value)
        else:
            places = self._memory[1]
            self._become(*form, self.sites, view_of_places(value, places), (value, places))
        self._sharers = sharers  # of the arrays of places, still

    def _sharing(
        self, kind: str, layout: str, shape: tuple[int, ...], coords: tuple[Any, ...]
    ) -> TracedSparse:
        """A matrix of the same memory."""
        self._settle()
        own = TracedSparse(kind, layout, shape, coords, self._entries, self._memory, self._stored)
        if layout in ("dok", "lil"):
            own._state = self._state
            own._is_shared = True
            return own
        if not self._sharers:
            self._share_with([])
        own._share_with(self._sharers)
        return own

    @property
    def row(self) -> np.ndarray:
        """Rows of the entries of a matrix of triplets."""
        self._check_format("row", "coo")
        return self._visible("row")[0]

    @property
    def col(self) -> np.ndarray:
        """Columns of the entries of a matrix of triplets."""
        self._check_format("col", "coo")
        return self._visible("col")[-1]

    def _check_format(self, name: str, *layouts: str) -> None:
        if self.format not in layouts:
            raise AttributeError(f"a matrix of the format {self.format} has no attribute {name!r}")

    @property
    def indices(self) -> np.ndarray:
        """Columns (rows) of the entries of a matrix by rows (columns)."""
        self._check_format("indices", "csr", "csc")
        return self._visible("indices")[1 if self.format == "csr" else 0]

    @property
    def indptr(self) -> np.ndarray:
        """Where the rows (columns) of a matrix by rows (columns) begin."""
        self._check_format("indptr", "csr", "csc")
        axis = 0 if self.format == "csr" else 1
        counts = np.bincount(self._visible("indptr")[axis], minlength=self.shape[axis])
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)

    def copy(self) -> TracedSparse:
        """A matrix of its own."""
        return self._with(self.entries.copy())

    def astype(
        self, dtype: DTypeLike | None, casting: str = "unsafe", copy: bool = True
    ) -> TracedSparse:
        """Entries of another dtype."""
        dtype = getattr(dtype, "dtype", dtype)
        if np.dtype(dtype) == self.dtype:
            return self.copy() if copy else self
        own = self._with(self.entries.astype(dtype))
        own._add_up_entries()
        return own

    def asfptype(self) -> TracedSparse:
        """Entries in floating point."""
        return self if self.dtype.kind in "fc" else self.astype(np.float64)

    def asformat(self, format: str | None, copy: bool = False) -> TracedSparse:
        """The same matrix in another format."""
        if format is None or format == self.format:
            return self.copy() if copy else self
        if format == "coo" and not copy and self.format in (*_FLAT, "bsr"):
            own = self._sharing(self.kind, format, self.shape, self.sites)
            own._memory = None if self.format == "bsr" else self._memory
            return own
        result: TracedSparse = self._moved(lambda own: own.asformat(format))
        return result

    @property
    def T(self) -> TracedSparse:  # noqa: N802  # SciPy's name
        """The transpose."""
        return self.transpose()

    def transpose(self, axes: object = None, copy: bool = False) -> TracedSparse:
        """The transpose, of the same memory where SciPy's is."""
        if axes is None and not copy and self.ndim == 2 and self.format in _FLAT:
            coords = self.sites[::-1]
            layout = {"csr": "csc", "csc": "csr"}.get(self.format, self.format)
            return self._sharing(self.kind, layout, self.shape[::-1], coords)
        result: TracedSparse = self._moved(lambda own: own.transpose(axes))
        return result

    def reshape(self, *args: object, **kwargs: object) -> TracedSparse:
        """Another shape, of the same memory where SciPy's is."""
        if self.format in (*_FLAT, "bsr") and not kwargs.get("copy"):
            own = self.asformat("coo")
            numbers = with_positions(own).reshape(*args, **kwargs)
            if tuple(numbers.shape) == tuple(self.shape):
                return self
            coords = tuple([np.asarray(c).astype(np.intp) for c in numbers.coords])
            return own._sharing(self.kind, "coo", tuple(map(int, numbers.shape)), coords)
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

    def toarray(self, order: str | None = None, out: object = None) -> Any:
        """The dense array."""
        if out is not None:
            raise refused(".toarray(out=...)", "use its result")
        entries = self.entries
        return bind(accumulate_p, entries, *self.sites, shape=self.shape,
                    axes=tuple(range(self.ndim)), mode="clip")[0]  # fmt: skip

    def todense(self, order: str | None = None, out: object = None) -> Array | TracedDense:
        """The dense array; of a matrix, with the operators of ``np.matrix``."""
        return self._dense(self.toarray(order, out))

    def _dense(self, array: Array) -> Array | TracedDense:
        return TracedDense(array) if self.kind == "matrix" else array

    def sum(self, axis: Any = None, dtype: DTypeLike | None = None, out: object = None) -> Any:
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
        total = accumulated(entries, self.sites[1 - axis], self.shape[1 - axis])
        if self.kind == "array":
            return total
        return TracedDense(total[None, :] if axis == 0 else total[:, None])

    def mean(self, axis: Any = None, dtype: DTypeLike | None = None, out: Any = None) -> Any:
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
        if self.format in ("dok", "lil"):
            return self.tocsr().real
        if self.dtype.kind != "c":
            return self._sharing(self.kind, self.format, self.shape, self.sites)
        return self._with(np.real(self.entries))

    @property
    def imag(self) -> TracedSparse:
        """Imaginary parts."""
        return self._with(np.imag(self.entries))

    # what changes it ------------------------------------------------------------------------------

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
        keeps_zeros = self.format not in ("dok", "lil")
        write(self, steps - min(k, 0), steps + max(k, 0), values, keeps_zeros=keeps_zeros)

    def __setitem__(self, key: Any, value: Any) -> None:
        """``A[i, j] = value``."""
        is_whole = (
            type(key) is tuple
            and len(key) == 2
            and all(isinstance(k, slice) and k == slice(None) for k in key)
        )
        if self.format == "lil" and is_whole and is_sparse(value) and value.shape == self.shape:
            self._changed_to(as_traced_sparse(value))
            return
        rows, cols = addressed(self, key)
        kept = None
        if is_sparse(value):
            if self.format in ("csc", "csr"):  # SciPy adds the places of the other matrix only
                kept = ones(as_traced_sparse(value)._without_unstored()).toarray() != 0
            value = value.toarray()
        value = array_of(value)
        if kept is not None:
            kept = np.broadcast_to(kept, rows.shape) | exists(self, rows, cols)
            rows, cols, value = rows[kept], cols[kept], np.broadcast_to(value, rows.shape)[kept]
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

    def __getattr__(self, name: str) -> Any:
        """What SciPy's matrices have and these have not."""
        if name.startswith("_") or not hasattr(scipy_class("matrix", "csr"), name):
            raise AttributeError(f"a sparse matrix with traced entries has no attribute {name!r}")
        raise refused(f".{name}", "compute with A.tocoo(): .data, .row and .col, or A.toarray()")


@functools.lru_cache
def _copies(layout: str) -> bool:
    """Whether triplets that SciPy makes of a matrix have data of their own, if nobody says so."""
    model = scipy_class("array", layout)(np.eye(2))
    return not np.shares_memory(model.tocoo().data, model.data)


def _converting(layout: str) -> Callable[..., Any]:
    def convert(self: TracedSparse, copy: bool | None = None, **kwargs: object) -> TracedSparse:
        if copy is None:
            copy = layout == "coo" and self.format in (*_FLAT, "bsr") and _copies(self.format)
        if self.format == "coo" and layout in ("dia", "dok"):
            self.sum_duplicates()
        if kwargs:
            return self._moved(lambda own: getattr(own, f"to{layout}")(**kwargs))
        return self.asformat(layout, copy)

    convert.__doc__ = f"The matrix in the format {layout}."
    return convert


for _name in SharedState.__slots__:
    setattr(TracedSparse, _name, of_state(_name))
for _layout in FORMATS:
    setattr(TracedSparse, f"to{_layout}", _converting(_layout))


class TracedDict(TracedSparse, dict):  # type: ignore[misc,type-arg]  # SciPy's dok_matrix is a dict
    """A ``TracedSparse`` that was SciPy's matrix of keys before."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # dicts have none
