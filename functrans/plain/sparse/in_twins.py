"""SciPy's sparse matrices in twins, whose operators know traced operands: ``SparseInTwins``.

They are subclasses of SciPy's classes, of the same arrays. A traced operand makes the result a
``TracedSparse``, and so does a traced value that is written to a matrix.

Here: the classes, and the ways into and out of twins. Not here: traced matrices
(``plain.sparse.matrices``), constructors (``plain.sparse.names``).

Layer: ``plain.sparse``.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.arrays.sparse import matmul
from functrans.core.dispatch import Tracer, within
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.plain.homes import PLAIN_KINDS, home_of
from functrans.plain.memory import buffer_in, given, settled
from functrans.plain.sparse.dense import Sparse
from functrans.plain.sparse.matrices import (
    TracedDict,
    TracedSparse,
    as_traced_sparse,
    container_kind,
    is_sparse,
    is_traced,
    over,
)
from functrans.plain.sparse.parts import FORMATS, KINDS, scipy_class, sparse_library
from functrans.plain.twins import ORIGINAL


class SparseInTwins(Sparse):
    """First base of the classes of SciPy's matrices in twins: operators know traced operands."""

    _is_from_outside = False

    def __reduce__(self) -> Any:
        """As SciPy's."""
        return in_world(self).__reduce__()

    def _find_home(self) -> None:
        """Know the memory of the data, which may become traced."""
        data = self.__dict__.get("data")
        if isinstance(data, np.ndarray) and data.dtype.kind in PLAIN_KINDS:
            home = home_of(data, is_outside=self._is_from_outside)
            if home is not self.__dict__.get("_home"):
                self.__dict__["_home"] = home
                home.watch(self._become_traced)

    def _become_traced(self) -> None:
        """Follow the memory of the data, of which an array became traced."""
        home = self.__dict__.get("_home")
        if home is None or home.tracer is None:  # it is traced already, its data are others
            return
        data = self.__dict__["data"]
        numbers = in_world(self)
        numbers.__dict__["data"] = np.arange(1, data.size + 1).reshape(data.shape)
        memory = buffer_in(home, data).traced()
        with within(home.trace):
            _turn_into(self, over(numbers, memory))
        turned: Any = self
        turned._share_with(_of_home.setdefault(home, []))


def _turn_into(matrix: Any, own: TracedSparse) -> None:
    matrix.__dict__.clear()
    matrix.__class__ = TracedDict if isinstance(matrix, dict) else TracedSparse
    matrix._become_like(own)


_of_home: weakref.WeakKeyDictionary[Any, list[weakref.ref[Any]]] = weakref.WeakKeyDictionary()
"""Traced matrices whose data are in a memory."""

_sharers: dict[int, list[weakref.ref[Any]]] = {}
"""Matrices of lists and keys, by identity of what holds the entries, which several may share."""


def _entries_of(matrix: Any) -> Array:
    return matrix.rows if matrix.format == "lil" else matrix._dict


def note_sharing(value: object) -> None:
    """Know a matrix of lists or keys as one that may share its entries."""
    matrix: Any = value if isinstance(value, SparseInTwins) else None
    if matrix is None or matrix.format not in ("dok", "lil"):
        return
    key = id(_entries_of(matrix))
    known = [ref for ref in _sharers.get(key, []) if ref() is not None and ref() is not matrix]

    def forget(_: object) -> None:
        if all(ref() is None for ref in _sharers.get(key, ())):
            _sharers.pop(key, None)

    _sharers[key] = [*known, weakref.ref(matrix, forget)]


def _turn_all(matrix: Any) -> None:
    """Make a matrix traced, and those that share its lists or keys."""
    others: list[Any] = []
    if matrix.format in ("dok", "lil"):
        held = _entries_of(matrix)
        found = [ref() for ref in _sharers.pop(id(held), [])]
        others = [
            x for x in found
            if isinstance(x, SparseInTwins) and x is not matrix and _entries_of(x) is held
        ]  # fmt: skip
    own = as_traced_sparse(matrix).copy()  # of entries that arrays do not show
    kinds = list(map(container_kind, others))
    _turn_into(matrix, own)
    for other, kind in zip(others, kinds, strict=True):
        shared = matrix._sharing(kind, matrix.format, matrix.shape, matrix.sites)
        _turn_into(other, shared)
        other._state = matrix._state


def _get_data(self: Any) -> Array:
    data = self.__dict__["data"]
    home = self.__dict__.get("_home")
    return data if home is None else buffer_in(home, data)


def _set_data(self: Any, value: Array) -> None:
    value = settled(value)
    if isinstance(value, Tracer):
        own = as_traced_sparse(self)
        own.data = value
        _turn_into(self, own)
        return
    self.__dict__["data"] = value
    self._find_home()


_data = property(_get_data, _set_data, None, "The entries, in the memory of the matrix.")


def _is_for_traced(self: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    return any(map(is_traced, args)) or any(map(is_traced, kwargs.values()))


def _operator(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def method(self: Any, *args: object, **kwargs: object) -> Any:
        args, kwargs = settled(args), settled(kwargs)
        if not _is_for_traced(self, args, kwargs):
            return given(plain(self, *args, **kwargs))
        product = _product(self, name, args)
        if product is not None:
            return product(in_world(self), args[0])  # whose arrays are known by identity
        return getattr(as_traced_sparse(self), name)(*args, **kwargs)

    return method


_PRODUCTS = {
    "__matmul__": matmul,
    "__mul__": matmul,
    "__rmatmul__": lambda own, x: matmul(x, own),
    "__rmul__": lambda own, x: matmul(x, own),
}
_STARS = frozenset({"__mul__", "__rmul__"})
"""Operators that are the matrix product of a ``spmatrix`` and an array."""


def _product(matrix: Any, name: str, args: Sequence[Any]) -> Callable[[Any, Any], Any] | None:
    """The product of a matrix and a dense traced array that an operator is."""
    if name not in _PRODUCTS or not isinstance(args[0], Tracer):
        return None
    is_star = name in _STARS
    return (
        None
        if is_star and (container_kind(matrix) == "array" or not args[0].shape)
        else _PRODUCTS[name]
    )


def _writer(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def method(self: Any, *args: object, **kwargs: object) -> Any:
        args, kwargs = settled(args), settled(kwargs)
        if self._is_from_outside:
            raise UnsupportedOperationError(
                f"a sparse matrix that came from outside of the function is changed{here()}; "
                "matrices of the caller are never changed. Change a copy of it (A = A.copy())"
            )
        if _is_for_traced(self, args, kwargs):
            home = self.__dict__.get("_home")
            is_in_place = name in _IN_PLACE or self.format in ("csc", "csr", "dia")
            if home is not None and is_in_place:  # all matrices of the memory follow
                home.become_traced()
            else:
                _turn_all(self)
            return getattr(self, name)(*args, **kwargs)
        return plain(self, *args, **kwargs)

    return method


_OPERATORS = (
    "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__matmul__",
    "__rmatmul__", "__truediv__", "__rtruediv__", "__pow__", "__lt__", "__le__", "__gt__",
    "__ge__", "__eq__", "__ne__", "multiply", "dot", "power", "maximum", "minimum", "toarray",
    "todense", "diagonal", "sum", "mean",
)  # fmt: skip
_WRITERS = ("__setitem__", "setdiag")
_IN_PLACE = {"__iadd__": "__add__", "__isub__": "__sub__", "__imul__": "__mul__",
             "__itruediv__": "__truediv__"}  # fmt: skip


def _in_place(name: str, plain: Any, is_always_in_place: bool) -> Callable[..., Any]:
    write = _writer(name, plain) if plain is not None else None
    operator = _IN_PLACE[name]

    def method(self: Any, other: Array) -> Any:
        other = settled(other)
        is_number = not is_sparse(other) and not np.ndim(other)
        result = NotImplemented
        if write is not None and (is_number or is_always_in_place):
            result = write(self, other)
        return getattr(self, operator)(other) if result is NotImplemented else result

    return method


def _class_in_twins(kind: str, layout: str) -> type:
    base = scipy_class(kind, layout)
    names: dict[str, Any] = {
        ORIGINAL: base,
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
        "__array_ufunc__": None,
        "__hash__": base.__hash__,
    }
    for name in _OPERATORS:
        if hasattr(base, name):
            names[name] = _operator(name, getattr(base, name))
    for name in _WRITERS:
        if hasattr(base, name):
            names[name] = _writer(name, getattr(base, name))
    for name in _IN_PLACE:
        names[name] = _in_place(name, getattr(base, name, None), layout == "lil")
    if layout not in ("dok", "lil"):  # whose entries are Python's numbers
        names["data"] = _data
    for other in FORMATS:
        names[f"_{other}_container"] = property(_container(kind, other))
    return type(base.__name__, (SparseInTwins, base), names)


def _container(kind: str, layout: str) -> Callable[[Any], type]:
    return lambda self: classes_in_twins()[kind, layout]


@functools.lru_cache(maxsize=1)
def classes_in_twins() -> dict[tuple[str, str], type]:
    """The classes of SciPy's matrices in twins, by kind and format."""
    return {(kind, layout): _class_in_twins(kind, layout) for kind in KINDS for layout in FORMATS}


def in_twins(matrix: Any, *, is_from_outside: bool = False) -> Any:
    """A sparse matrix of SciPy as twins see it: of the same arrays; other values as they are.

    Args:
      matrix: any value.
      is_from_outside: whether a matrix is the caller's, so that it is not changed.
    """
    if not sparse_library().issparse(matrix) or isinstance(matrix, SparseInTwins):
        return matrix
    found: Any = classes_in_twins().get((container_kind(matrix), matrix.format))
    if found is None or type(matrix) is not found.__dict__[ORIGINAL]:
        return matrix
    result = found.__new__(found)
    result.__dict__.update(matrix.__dict__)
    if is_from_outside:
        result._is_from_outside = True
    result._find_home()
    return result


def in_world(matrix: Any) -> Any:
    """A sparse matrix of twins as SciPy's own."""
    if not isinstance(matrix, SparseInTwins):
        return matrix
    original = type(matrix).__dict__[ORIGINAL]
    result = original.__new__(original)
    result.__dict__.update(matrix.__dict__)
    for name in ("_home", "_is_from_outside"):
        result.__dict__.pop(name, None)
    return result
