"""What the names of ``scipy.sparse`` and ``scipy.sparse.linalg`` stand for in twins.

Constructors and functions of matrices are SciPy's where no value is traced. Those that only move
entries (``diags``, ``hstack``, ``block_diag`` ...) run on position numbers where one is; products
(``kron``) run once for each factor.

Here: constructors, functions, solvers, the tables of names. Not here: the matrices
(``plain.sparse.matrices``).

Layer: ``plain.sparse``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

import functrans.numpy as fnp
import functrans.scipy.linalg
import functrans.scipy.sparse.linalg as own_linalg
from functrans import pytrees as tree
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.plain.memory import given, homes_in, settled
from functrans.plain.sparse.dense import array_of
from functrans.plain.sparse.in_memory import IN_MEMORY
from functrans.plain.sparse.in_twins import in_twins, in_world, note_sharing
from functrans.plain.sparse.keys import KEYS
from functrans.plain.sparse.matrices import (
    TracedSparse,
    as_scipy_stores,
    as_traced_sparse,
    container_kind,
    from_triplets,
    is_sparse,
    is_traced,
    over,
    read_off,
    with_positions,
)
from functrans.plain.sparse.operators import paired
from functrans.plain.sparse.parts import (
    FORMATS,
    KINDS,
    Places,
    pooled,
    refused,
    scipy_class,
    sparse_library,
)
from functrans.plain.sparse.patterns import of_numbers

for _name, _method in {**KEYS, **IN_MEMORY}.items():
    setattr(TracedSparse, _name, _method)

# constructors -----------------------------------------------------------------------------------


class SparseType:
    """A class of SciPy's matrices: called, it makes one, with traced entries if it is given some.

    Attributes:
      original: SciPy's class.
    """

    def __init__(self, kind: str, layout: str) -> None:
        self.original = scipy_class(kind, layout)
        self.kind, self.format = kind, layout
        self.__name__ = self.original.__name__
        self.__doc__ = self.original.__doc__

    def __call__(
        self,
        arg1: object,
        shape: tuple[int, ...] | None = None,
        dtype: DTypeLike | None = None,
        copy: bool = False,
        **kwargs: object,
    ) -> Any:
        """The matrix."""
        known = homes_in(arg1)
        arg1 = settled(arg1)
        dtype = getattr(dtype, "dtype", dtype)
        if is_traced(arg1):
            result = self._of_traced(arg1, settled(shape), kwargs)
            if dtype is not None and np.dtype(dtype) != result.dtype:
                return result.astype(dtype)
            return result.copy() if copy else result
        source, arg1 = arg1, in_world(arg1)
        shape = settled(shape)
        result = in_twins(self.original(arg1, shape=shape, dtype=dtype, copy=copy, **kwargs))
        for matrix in (source, result):
            note_sharing(matrix)
        del known
        return result

    def _of_traced(
        self, arg1: object, shape: tuple[int, ...] | None, kwargs: dict[str, Any]
    ) -> TracedSparse:
        if isinstance(arg1, TracedSparse):
            own = arg1.asformat(self.format)
            return own._sharing(self.kind, self.format, own.shape, own.sites)
        if type(arg1) is tuple and len(arg1) in (2, 3):
            return self._of_parts(arg1, shape, kwargs)
        return self._of_dense(array_of(arg1))

    def _of_parts(
        self, parts: tuple[Any, ...], shape: object, kwargs: dict[str, Any]
    ) -> TracedSparse:
        """Of entries and where they are: ``(data, (row, col))``, ``(data, indices, indptr)``."""
        data, rest = array_of(parts[0]), parts[1:]
        if is_traced(rest):
            raise refused("traced rows and columns", "where entries are must be known")
        numbers = np.arange(1, int(np.prod(shape_of(data))) + 1).reshape(shape_of(data))
        if len(rest) == 1 and self.format not in ("dia", "coo"):  # triplets may repeat a place
            pattern = scipy_class(self.kind, "coo")((numbers, *rest), shape=shape)
            own = over(pattern, data)
            result = from_triplets(self.kind, self.format, own.shape, own.sites, own.entries)
            return as_scipy_stores(
                result, lambda numbers: self.original((numbers, *rest), shape=shape), data
            )
        numbered = self.original((numbers, *rest), shape=shape, **kwargs)
        return over(numbered, data) if isinstance(data, Tracer) else read_off(numbered, data)

    def _of_dense(self, dense: Array) -> TracedSparse:
        """Of a dense array: every element is an entry."""
        numbers = np.arange(1, int(np.prod(shape_of(dense))) + 1).reshape(shape_of(dense))
        result = read_off(self.original(numbers), dense.reshape(-1))
        result = as_scipy_stores(result, self.original, dense)
        result._is_canonical = True
        return result

    def __instancecheck__(self, value: object) -> bool:
        """Whether a matrix is of this kind and format."""
        if isinstance(value, TracedSparse):
            return (value.kind, value.format) == (self.kind, self.format)
        return isinstance(value, self.original)

    def __getattr__(self, name: str) -> Any:
        """Of SciPy's class."""
        return getattr(self.original, name)

    def __eq__(self, other: object) -> bool:
        """Equal to SciPy's class."""
        return other is self.original or (
            isinstance(other, SparseType) and other.original is self.original
        )

    def __hash__(self) -> int:
        """Of SciPy's class."""
        return hash(self.original)

    def __repr__(self) -> str:
        """Of SciPy's class."""
        return repr(self.original)


class SparseBase:
    """A base class of SciPy's matrices, for ``isinstance``.

    Attributes:
      original: SciPy's class.
    """

    def __init__(self, original: type, kind: str) -> None:
        self.original, self.kind = original, kind

    def __instancecheck__(self, value: Any) -> bool:
        """Whether a matrix is of this kind."""
        if isinstance(value, TracedSparse):
            return value.kind == self.kind
        return isinstance(value, self.original)

    def __repr__(self) -> str:
        """Of SciPy's class."""
        return repr(self.original)


# functions --------------------------------------------------------------------------------------


def plain_or(function: Callable[..., Any], traced: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's function on plain values, another one where something is traced."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        known = homes_in((args, kwargs))
        args, kwargs = settled(args), settled(kwargs)
        if is_traced(args) or any(map(is_traced, kwargs.values())):
            return traced(*args, **kwargs)
        result = function(*args, **kwargs)
        is_tuple = type(result) is tuple
        results = [in_twins(given(item)) for item in (result if is_tuple else (result,))]
        del known
        return tuple(results) if is_tuple else results[0]

    return call


def refuser(module: str, name: str, advice: str) -> Callable[..., Any]:
    """A function that refuses traced values, naming SciPy's and what to do."""

    def refuse(*args: object, **kwargs: object) -> Any:
        raise UnsupportedOperationError(
            f"{module}.{name} of traced values{here()} is not supported; {advice}"
        )

    return refuse


class _Numbering:
    """Position numbers in place of all entries, and the entries in one pool."""

    def __init__(self) -> None:
        self.pools: list[Any] = []
        self.stored: list[np.ndarray] | None = []
        self.count = 1

    def _taken(self, vector: Array, stored: int | None) -> int:
        start, n = self.count, shape_of(vector)[0]
        self.pools.append(vector)
        self.count += n
        if stored is None:
            self.stored = None
        elif self.stored is not None:
            self.stored.append(np.arange(n) < stored)
        return start

    def of_sparse(self, matrix: Any) -> Any:
        """A sparse matrix of numbers."""
        matrix = as_traced_sparse(matrix)
        own = matrix._distinct()
        stored = own._stored_count() if own is matrix else None  # SciPy does not merge entries
        return with_positions(own, self._taken(own.entries, stored))

    def of_dense(self, values: Any) -> np.ndarray:
        """An array of numbers."""
        values = array_of(values)
        shape = shape_of(values)
        start = self._taken(values.reshape(-1), int(np.prod(shape)))
        return np.arange(start, start + int(np.prod(shape))).reshape(shape)

    def of_any(self, value: object) -> Any:
        """A matrix, sparse or dense; ``None`` stays."""
        if value is None:
            return None
        return self.of_sparse(value) if is_sparse(value) else self.of_dense(value)

    def pool(self) -> Array:
        """All entries."""
        dtype = np.result_type(*(dtype_of(x) for x in self.pools))
        return pooled([x.astype(dtype) for x in self.pools])

    def read(
        self, function: Callable[[Any], Any], numbers: object, dtype: DTypeLike | None = None
    ) -> Any:
        """The result of a function of matrices of numbers, with the entries in their place."""
        pool = self.pool()
        found = read_off(function(numbers), pool)
        if self.stored is None or not isinstance(found, TracedSparse):
            found = found._rearranged(None, None) if isinstance(found, TracedSparse) else found
        else:
            stored = np.concatenate(self.stored)
            found = as_scipy_stores(found, lambda x: function(_valued(numbers, x, stored)), pool)
        return found if dtype is None else found.astype(dtype)


def _valued(numbers: Any, values: np.ndarray, stored: np.ndarray) -> Any:
    """Matrices of numbers with values in their place, without those that SciPy does not store."""
    if type(numbers) is list:
        return [_valued(item, values, stored) for item in numbers]
    if numbers is None:
        return None
    if not sparse_library().issparse(numbers):
        return values[numbers - 1]
    coo = numbers.tocoo()
    own = np.asarray(coo.data).astype(np.intp)
    own, coords = own[own > 0], tuple([c[own > 0] for c in coo.coords])
    kept = stored[own - 1]
    coords = tuple([c[kept] for c in coords])
    result = scipy_class(container_kind(numbers), "coo")(
        (values[own[kept] - 1], coords), numbers.shape
    )
    return result.asformat(numbers.format)


def _diagonals(name: str) -> Callable[..., Any]:
    function = getattr(sparse_library(), name)

    def traced(
        diagonals: Any,
        offsets: Any = 0,
        shape: tuple[int, ...] | None = None,
        format: str | None = None,
        dtype: DTypeLike | None = None,
    ) -> Any:
        numbering = _Numbering()
        if not _is_scalar(offsets):
            parts = list(diagonals)
            numbers: Any = [np.atleast_1d(numbering.of_dense(part)) for part in parts]
            if len(parts) != len(np.atleast_1d(offsets)):
                raise ValueError("Different number of diagonals and offsets.")
        else:
            own = array_of(diagonals)
            numbers = numbering.of_dense(own)

        def of(own: Sequence[Array]) -> Any:
            stored = np.result_type(*own)  # and no warning that this is so
            return function(own, offsets=offsets, shape=shape, format=format, dtype=stored)

        return numbering.read(of, numbers, dtype)

    return plain_or(function, traced)


def _is_scalar(value: Any) -> bool:
    return np.ndim(value) == 0


def _spdiags(
    data: Array | complex, diags: list[Any], m: object = None, n: object = None, format: Any = None
) -> Any:
    numbering = _Numbering()
    numbers = numbering.of_dense(data)
    return numbering.read(lambda own: sparse_library().spdiags(own, diags, m, n, format), numbers)


def _of_blocks(name: str) -> Callable[..., Any]:
    function = getattr(sparse_library(), name)

    def traced(
        blocks: Sequence[Any], format: str | None = None, dtype: DTypeLike | None = None
    ) -> Any:
        numbering = _Numbering()
        if name in ("bmat", "block_array"):
            numbers: Any = [[numbering.of_any(block) for block in row] for row in blocks]
            numbers = [[_sparse_of(block, blocks) for block in row] for row in numbers]
        elif name == "block_diag":
            numbers = [numbering.of_any(block) for block in blocks]
        else:
            numbers = [_sparse_of(numbering.of_any(block), [blocks]) for block in blocks]
        return numbering.read(lambda own: function(own, format=format), numbers, dtype)

    return plain_or(function, traced)


def _sparse_of(block: object, rows: Sequence[Any]) -> Any:
    """A dense block as a sparse one, of the kind of the others."""
    if block is None or sparse_library().issparse(block):
        return block
    kinds = {container_kind(own) for row in rows for own in row if is_sparse(own)}
    return scipy_class("array" if "array" in kinds else "matrix", "coo")(block)


def _moving(name: str) -> Callable[..., Any]:
    function = getattr(sparse_library(), name)

    def traced(A: TracedSparse, *args: object, **kwargs: object) -> Any:  # SciPy's name
        numbering = _Numbering()
        return numbering.read(lambda own: function(own, *args, **kwargs), numbering.of_any(A))

    return plain_or(function, traced)


def _kron(A: Array | TracedSparse, B: Any, format: object = None) -> Any:  # SciPy's names
    a, b = (as_traced_sparse(x if is_sparse(x) else _coo_of(x))._distinct() for x in (A, B))
    at_a, at_b = with_positions(a), with_positions(b)
    result = paired(
        sparse_library().kron(at_a, _of_ones(at_b), format),
        sparse_library().kron(_of_ones(at_a), at_b, format),
        a.entries,
        b.entries,
    )
    return as_scipy_stores(result, lambda p, q: sparse_library().kron(p, q, format), a, b)


def _coo_of(dense: Any) -> Any:
    return SparseType("matrix", "coo")(dense)


def _of_ones(numbers: Any) -> Any:
    result = numbers.copy().tocoo()
    result.data = np.ones_like(result.data)
    return result.asformat(numbers.format)


def _kronsum(A: TracedSparse, B: Any, format: object = None) -> TracedSparse:  # SciPy's names
    a, b = (x if is_sparse(x) else _coo_of(x) for x in (A, B))
    eye = sparse_library().eye_array if container_kind(a) == "array" else sparse_library().eye
    left = _kron(in_twins(eye(b.shape[0])), a, "coo")
    total = left + _kron(b, in_twins(eye(a.shape[0])), "coo")
    return total.asformat(format)


def _issparse(x: Array | TracedSparse) -> bool:
    return is_sparse(x)


def _isspmatrix(x: TracedSparse) -> bool:
    return is_sparse(x) and container_kind(x) == "matrix"


def _is_format(layout: str) -> Callable[[Any], bool]:
    return lambda x: _isspmatrix(x) and x.format == layout


def _of_sparse() -> dict[str, Any]:
    """Names of ``scipy.sparse``."""
    module = sparse_library()
    names: dict[str, Any] = {
        f"{layout}_{kind}": SparseType(kind, layout) for kind in KINDS for layout in FORMATS
    }
    names.update(
        diags=_diagonals("diags"),
        diags_array=_diagonals("diags_array"),
        spdiags=plain_or(module.spdiags, _spdiags),
        kron=plain_or(module.kron, _kron),
        kronsum=plain_or(module.kronsum, _kronsum),
        issparse=_issparse,
        isspmatrix=_isspmatrix,
        spmatrix=SparseBase(module.spmatrix, "matrix"),
        sparray=SparseBase(module.sparray, "array"),
        **{name: _of_blocks(name) for name in ("hstack", "vstack", "bmat", "block_diag")},
        **{name: _moving(name) for name in ("tril", "triu")},
        **{f"isspmatrix_{layout}": _is_format(layout) for layout in FORMATS},
    )
    if hasattr(module, "block_array"):
        names["block_array"] = _of_blocks("block_array")
    return _with_others(module, names, "compute with its entries: A.tocoo()")


def _with_others(module: Any, names: dict[str, Any], advice: str) -> dict[str, Any]:
    """All names of a module: its other functions are SciPy's, and refuse traced values."""
    for name in module.__all__:
        value = getattr(module, name, None)
        if name in names or not callable(value) or isinstance(value, type):
            continue
        names[name] = plain_or(value, refuser(module.__name__, name, advice))
    return {name: value for name, value in names.items() if hasattr(module, name)}


# systems ----------------------------------------------------------------------------------------


def _as_own(matrix: Any) -> Any:
    """A matrix as ``functrans.scipy.sparse.linalg`` takes it."""
    if isinstance(matrix, TracedSparse):
        return matrix.compressed()
    return in_world(matrix)


def _vector(b: Any) -> Array:
    return b.toarray() if is_sparse(b) else array_of(b)


def _solved(A: TracedSparse, b: Array) -> Array:  # SciPy's names
    """The solution of a system, of a sparse or a dense matrix."""
    if is_sparse(A):
        return own_linalg.spsolve(_as_own(A), b)
    return np.linalg.solve(array_of(A), b)


def _spsolve(
    A: TracedSparse, b: Array, permc_spec: object = None, use_umfpack: bool = True
) -> Array:
    is_sparse_b = is_sparse(b)
    b = _vector(b)
    is_vector = len(shape_of(b)) == 1 or shape_of(b)[1] == 1
    x = _solved(A, b.reshape(-1) if is_vector else b)
    if is_sparse_b and not is_vector:
        return SparseType("matrix", "csc")(x)
    return x


class Factors:
    """A factorized matrix: SciPy's for plain values; systems with traced ones have derivatives.

    Attributes:
      shape: of the matrix.
    """

    def __init__(self, matrix: Any, options: dict[str, Any], factors: Any = None) -> None:
        self._matrix, self._options, self._factors = matrix, options, factors
        self.shape = tuple(matrix.shape)
        if factors is None and not is_traced(matrix):
            self._factors = sparse_library().linalg.splu(in_world(matrix), **options)

    def solve(self, rhs: Array, trans: str = "N") -> Any:
        """Solve with the matrix, its transpose or its adjoint."""
        rhs = settled(rhs)
        if self._factors is not None and not is_traced(rhs):
            return given(self._factors.solve(np.asarray(rhs), trans))
        rhs = array_of(rhs)
        if not is_traced(self._matrix):
            return self._own.solve(rhs, trans)
        matrix = self._matrix
        if trans == "T":
            matrix = matrix.T
        elif trans == "H":
            matrix = matrix.getH()
        elif trans != "N":
            raise ValueError(f"trans must be 'N', 'T', or 'H', got {trans!r}")
        return _solved(matrix, rhs)

    @functools.cached_property
    def _own(self) -> Any:
        return own_linalg.splu(in_world(self._matrix))

    def __getattr__(self, name: str) -> Any:
        """Of SciPy's factors."""
        if name.startswith("_"):
            raise AttributeError(name)
        if self._factors is None:
            raise refused(f"splu(A).{name}", "only .solve has derivatives")
        return in_twins(given(getattr(self._factors, name)))


def _splu(A: TracedSparse, **options: object) -> Factors:  # SciPy's name
    return Factors(settled(A), options)


def _factorized(A: TracedSparse) -> Callable[..., Any]:  # SciPy's name
    return Factors(settled(A), {}).solve


def from_superlu(factors: Any) -> Factors:
    """SciPy's factors of the caller's."""
    n = factors.shape[0]
    steps = np.arange(n)
    rows = sparse_library().csc_array((np.ones(n), (factors.perm_r, steps)), shape=(n, n))
    cols = sparse_library().csc_array((np.ones(n), (steps, factors.perm_c)), shape=(n, n))
    matrix = (rows.T @ (factors.L @ factors.U) @ cols.T).tocsc()
    return Factors(matrix, {}, factors)


def _iterative(name: str) -> Callable[..., Any]:
    """An iterative solver: of traced values the solution itself, with derivatives."""
    function = getattr(sparse_library().linalg, name)

    def traced(A: TracedSparse, b: Array, x0: object = None, **options: object) -> tuple[Any, ...]:
        if options.get("callback") is not None:
            raise refused(f"{name}(callback=...)", "leave it out")
        if not is_sparse(A) and not isinstance(A, (np.ndarray, Tracer)):
            raise UnsupportedOperationError(
                f"scipy.sparse.linalg.{name} of a {type(A).__name__} with traced values{here()} is "
                f"not supported; use functrans.scipy.sparse.linalg.{_krylov(name)}(matvec, b), "
                "which takes functions"
            )
        if options.get("shift"):
            raise refused(f"{name}(shift=...)", "subtract it from the matrix")
        b = _vector(b)
        return _solved(A, b.reshape(-1)), 0

    return plain_or(function, traced)


def _krylov(name: str) -> str:
    return name if name in ("cg", "bicgstab", "gmres") else "gmres"


_ITERATIVE = ("cg", "cgs", "gmres", "bicg", "bicgstab", "lgmres", "minres", "qmr", "gcrotmk",
              "tfqmr")  # fmt: skip


def _inverse(A: TracedSparse) -> TracedSparse:  # SciPy's name
    return SparseType(container_kind(A), "csc")(_solved(A, np.eye(A.shape[0])))


def _exponential(A: TracedSparse) -> Any:  # SciPy's name
    dense = A.toarray() if is_sparse(A) else array_of(A)
    result = functrans.scipy.linalg.expm(dense)
    return SparseType(container_kind(A), "csc")(result) if is_sparse(A) else result


def _expm_multiply(
    A: TracedSparse,
    B: Array,
    start: Any = None,
    stop: Any = None,
    num: Any = None,
    endpoint: Any = None,
    traceA: object = None,
) -> Array:
    dense = A.toarray() if is_sparse(A) else array_of(A)
    vectors = _vector(B)
    if (start, stop, num, endpoint) == (None, None, None, None):
        return functrans.scipy.linalg.expm(dense) @ vectors
    times = np.linspace(
        start, stop, num=50 if num is None else num, endpoint=True if endpoint is None else endpoint
    )
    return fnp.stack([functrans.scipy.linalg.expm(t * dense) @ vectors for t in times])


def _norm(x: TracedSparse, ord: object = None, axis: object = None) -> Array:
    if axis is not None:
        raise refused("norm(axis=...)", "use .multiply(A).sum(axis)")
    own = as_traced_sparse(x)._distinct()
    sizes = abs(own.entries)
    if ord in (None, "fro"):
        return np.sqrt((sizes * sizes).sum())
    if ord in (1, np.inf):
        total = own._with(sizes).sum(axis=0 if ord == 1 else 1)
        return np.max(array_of(total))
    raise refused(f"norm(ord={ord!r})", "use 'fro', 1 or inf, or np.linalg.norm of .toarray()")


def _eigsh(
    A: TracedSparse,
    k: int = 6,
    M: TracedSparse | None = None,
    sigma: Any = None,
    which: str = "LM",
    v0: object = None,
    ncv: object = None,
    maxiter: object = None,
    tol: object = 0,
    return_eigenvectors: bool = True,
    **options: object,
) -> Any:
    """Eigenvalues of the dense matrix, of which those that were asked for are taken."""
    if options or which not in ("LM", "SM", "LA", "SA"):
        raise refused(f"eigsh(which={which!r}, {', '.join(options)})", "use scipy.linalg.eigh")
    dense = _vector(A)
    values, vectors = functrans.scipy.linalg.eigh(dense, None if M is None else _vector(M))
    shifted = values if sigma is None else 1.0 / (values - sigma)  # as SciPy looks at them
    key = {"LM": -abs(shifted), "SM": abs(shifted), "LA": -shifted, "SA": shifted}[which]
    taken = fnp.sort(fnp.argsort(key)[:k])
    return (values[taken], vectors[:, taken]) if return_eigenvectors else values[taken]


def _triangular(
    A: Any,
    b: Array,
    lower: bool = True,
    overwrite_A: bool = False,
    overwrite_b: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    own = (np.tril if lower else np.triu)(A.toarray())
    b = _vector(b)
    return functrans.scipy.linalg.solve_triangular(own, b, lower=lower, unit_diagonal=unit_diagonal)


def _matrix_power(A: Array, power: int) -> Any:  # SciPy's name
    if power < 1:
        raise refused(f"matrix_power(A, {power})", "powers are 1, 2, ...")
    result = A
    for _ in range(power - 1):
        result = result @ A
    return result


def _of_linalg() -> dict[str, Any]:
    """Names of ``scipy.sparse.linalg``."""
    module = sparse_library().linalg
    names: dict[str, Any] = {
        "splu": functools.wraps(module.splu)(_splu),
        "factorized": functools.wraps(module.factorized)(_factorized),
        "spsolve": plain_or(module.spsolve, _spsolve),
        "inv": plain_or(module.inv, _inverse),
        "expm": plain_or(module.expm, _exponential),
        "expm_multiply": plain_or(module.expm_multiply, _expm_multiply),
        "norm": plain_or(module.norm, _norm),
        "eigsh": plain_or(module.eigsh, _eigsh),
        "spsolve_triangular": plain_or(module.spsolve_triangular, _triangular),
        "matrix_power": plain_or(module.matrix_power, _matrix_power),
        **{name: _iterative(name) for name in _ITERATIVE},
    }
    return _with_others(module, names, "use the dense function: np.linalg, scipy.linalg")


NAMES: dict[str, Callable[[], dict[str, Any]]] = {
    "scipy.sparse": _of_sparse,
    "scipy.sparse.linalg": _of_linalg,
}
"""By module of SciPy, what gives the twins of its names."""


@functools.lru_cache(maxsize=1)
def register_container() -> None:
    """Let pytrees look into ``TracedSparse``: its entries are the child."""
    import optree

    register: Any = optree.register_pytree_node
    register(
        TracedSparse,
        lambda own: ((own.entries,), own.places, ("entries",)),
        _unflatten,
        path_entry_type=optree.GetAttrEntry,
        namespace=tree.NAMESPACE,
    )


def _unflatten(places: Places, children: Any) -> Any:
    """The matrix; of plain entries, SciPy's."""
    (entries,) = children
    form = (places.kind, places.format, places.shape, places.coords)
    own = TracedSparse(*form, entries, None, places.stored)
    if type(entries) is np.ndarray and entries.shape == (len(places.coords[0]),):
        if places.stored is None:  # of values that were not known
            own = own._told(entries != 0)
        return in_twins(of_numbers(own, own.entries))
    return own
