"""What the names of NumPy stand for in twins: ufuncs, types of numbers, functions.

Here: the twins of the names of a module of NumPy. Not here: the modules (``plain.libraries``),
NumPy's iterators (``plain.iterators``), its random numbers (``plain.generators``).

Layer: ``plain``.
"""

from __future__ import annotations

import functools
import itertools
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans.arrays.writes import fresh
from functrans.core.dispatch import Tracer
from functrans.core.values import Array
from functrans.plain.kinds import exemplar
from functrans.plain.library_calls import library, writing
from functrans.plain.memory import (
    TARGETS,
    Buffer,
    call_settled,
    call_ufunc,
    given,
    holds_tracer,
    new_array,
    settled,
)
from functrans.plain.sparse.dense import TracedDense
from functrans.plain.twins import register, registered


class Ufunc:
    """A ufunc, which takes lists of traced values, too.

    Attributes:
      ufunc: NumPy's or SciPy's.
    """

    def __init__(self, ufunc: Any) -> None:
        self.ufunc = ufunc

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """As the ufunc."""
        if any(type(x) in (list, tuple) and holds_tracer(settled(x)) for x in args):
            args = tuple([fnp.asarray(settled(x)) if type(x) in (list, tuple) else x for x in args])
        if "out" in kwargs or len(args) > self.ufunc.nin:
            outs = kwargs.pop("out", args[self.ufunc.nin :])
            args = args[: self.ufunc.nin]
            return call_ufunc(self.ufunc, "__call__", args, {**kwargs, "out": outs})
        result = self.ufunc(*args, **kwargs)
        if type(result) is not np.ndarray or not result.ndim:
            return result
        buffer = result.view(Buffer)
        buffer._is_own = True
        return buffer

    def __getattr__(self, name: str) -> Any:
        """Methods: ``reduce``, ``accumulate``, ``at`` ..."""
        value = getattr(self.ufunc, name)
        if callable(value) and name != "at":
            value = library(value)
            vars(self)[name] = value
        return value

    def __repr__(self) -> str:
        """Of the ufunc."""
        return repr(self.ufunc)


class ScalarType:
    """A type of NumPy's numbers: called, it converts; elsewhere it is the dtype that it stands for.

    Attributes:
      kind: NumPy's class.
      dtype: its dtype.
    """

    def __init__(self, kind: type[np.generic]) -> None:
        self.kind = kind
        self.dtype = np.dtype(kind)
        self.__name__ = kind.__name__

    def __call__(self, *args: object) -> Any:
        """As NumPy's class; of a traced value, the value in this dtype."""
        args = settled(args)
        if holds_tracer(args):
            return fnp.asarray(args[0]).astype(self.dtype)
        return given(self.kind(*args))

    def __getattr__(self, name: str) -> Any:
        """Of NumPy's class."""
        return getattr(self.kind, name)

    def __subclasscheck__(self, kind: type) -> bool:
        """As of NumPy's class: NumPy asks, in ``np.issubdtype``."""
        return issubclass(kind.kind if isinstance(kind, ScalarType) else kind, self.kind)

    def __instancecheck__(self, value: object) -> bool:
        """As of NumPy's class."""
        return isinstance(value, self.kind)

    def __eq__(self, other: object) -> bool:
        """Equal to NumPy's class."""
        return other is self.kind or (isinstance(other, ScalarType) and other.kind is self.kind)

    def __hash__(self) -> int:
        """Of NumPy's class."""
        return hash(self.kind)

    def __repr__(self) -> str:
        """Of NumPy's class."""
        return repr(self.kind)


_INDEXED = ("r_", "c_")


def names_of(module: types.ModuleType, ours: Any) -> dict[str, Any]:
    """Names of a module of NumPy that have twins, of those of functrans's module for it."""
    names: dict[str, Any] = {}
    for name in getattr(ours, "__all__", ()):
        theirs, own = getattr(module, name, None), getattr(ours, name)
        if theirs is None or isinstance(own, types.ModuleType):
            continue
        replaced = registered(theirs)
        if replaced is None:
            if name in TARGETS:
                replaced = writing(theirs, TARGETS[name])
            elif name in _OWN:
                replaced = _OWN[name]
            elif name in _OF_FUNCTIONS:
                replaced = library(own.traced)
            elif name in _INDEXED:
                replaced = _Indexed(own)
            elif isinstance(theirs, np.ufunc):
                replaced = Ufunc(theirs)
            elif isinstance(theirs, type) and issubclass(theirs, np.generic):
                if theirs in _ABSTRACT:
                    continue
                replaced = ScalarType(theirs)
            elif callable(own) and not (isinstance(theirs, type) and own is theirs):
                replaced = library(own)
            else:
                continue
            if name in _OF_VIEWS:
                replaced = _seeing(theirs, replaced)
            register(theirs, replaced)
        names[name] = replaced
    if module is np:
        names.update({name: _Indexed(getattr(np, name)) for name in ("mgrid", "ogrid")})
    return names


_ABSTRACT = frozenset(
    {
        np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact,
        np.floating, np.complexfloating, np.flexible, np.character, np.object_, np.str_, np.bytes_,
        np.void, np.datetime64, np.timedelta64,
    }
)  # fmt: skip


@functools.wraps(np.fromiter)
def _fromiter(iter: Any, dtype: np.dtype, count: int = -1, **kwargs: Any) -> Array:
    items = settled(list(itertools.islice(iter, count) if count >= 0 else iter))
    if holds_tracer(items):
        return fnp.asarray(items).astype(dtype)
    return given(np.fromiter(items, dtype, len(items), **kwargs))


class Vectorized(fnp.vectorize):
    """``np.vectorize``, of a function that may use traced values which are no arguments."""

    def __init__(self, pyfunc: Any = None, *args: Any, **kwargs: Any) -> None:
        self.options = args, kwargs
        if pyfunc is not None:
            super().__init__(lambda *a, **k: settled(pyfunc(*a, **k)), *args, **kwargs)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The function at each element; of a function, as a decorator with options."""
        if not hasattr(self, "pyfunc"):
            return Vectorized(args[0], *self.options[0], **self.options[1])
        return given(self.traced(*settled(args), **settled(kwargs)))


class _Indexed:
    """``np.r_``, ``np.c_``, ``np.mgrid`` or ``np.ogrid``, whose items may be buffers."""

    def __init__(self, own: Any) -> None:
        self.own = own

    def __getitem__(self, key: object) -> Any:
        """The items joined."""
        return given(self.own[settled(key)])


def _reshaping(name: str) -> Callable[..., Any]:
    """``np.reshape`` or ``np.ravel``: of a buffer, whose layout is known, the method."""
    plain = library(getattr(fnp, name))

    @functools.wraps(getattr(np, name))
    def call(*args: object, **kwargs: object) -> Any:
        if args and type(args[0]) is Buffer:
            return getattr(args[0], name)(*args[1:], **kwargs)
        return plain(*args, **kwargs)

    return call


def _extents(shape: int | tuple[int, ...]) -> Any:
    """A shape, whose extents may be traced, as integers."""
    if isinstance(shape, Tracer) and not shape.shape:
        return _index(shape)
    if isinstance(shape, (tuple, list, Tracer)):
        extents: Any = shape
        return tuple([_index(n) if isinstance(n, Tracer) else n for n in extents])
    return shape


_index: Callable[[Any], int] = operator.index


def _of_shape(name: str) -> Callable[..., Any]:
    """``np.zeros``, ``np.ones`` or ``np.empty``: NumPy would not say why it takes no tracer."""
    function = getattr(fnp, name)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if args:
            args = (_extents(settled(args[0])), *args[1:])
        return call_settled(function, args, kwargs)

    return call


def _array_of_matrix(name: str) -> Callable[..., Any]:
    """``np.array`` or ``np.asarray``, which make arrays of matrices, too."""
    function = getattr(fnp, name)

    @functools.wraps(function)
    def call(*args: object, **kwargs: Array) -> Any:
        if args and type(args[0]) is TracedDense:
            args = (args[0].array, *args[1:])
        return call_settled(function, args, kwargs)

    return call


def _making(name: str) -> Callable[..., Any]:
    """A function that makes arrays, also of a number."""
    plain = _array_of_matrix(name)

    @functools.wraps(plain)
    def call(*args: object, **kwargs: Array) -> Any:
        result = plain(*args, **kwargs)
        is_given = any(result is x for x in (*args, *kwargs.values()))
        return result if is_given else new_array(result)

    return call


def _as_array(name: str) -> Callable[..., Any]:
    """A function that makes an array of what is none: of a number, too."""
    plain = _array_of_matrix(name)

    @functools.wraps(plain)
    def call(*args: object, **kwargs: Array) -> Any:
        result = plain(*args, **kwargs)
        if isinstance(result, Tracer) and not isinstance(exemplar(result), np.ndarray):
            return new_array(fresh(result) if args and result is args[0] else result)
        return result

    return call


@functools.wraps(np.isscalar)
def _isscalar(element: object) -> bool:
    return np.isscalar(exemplar(element))


def _seeing(theirs: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives views, also of an array without axes."""

    @functools.wraps(theirs)
    def call(*args: object, **kwargs: Array) -> Any:
        first = args[0] if args else None
        if type(first) is Buffer and not first.ndim and first.traced() is not None:
            result = given(theirs(first.plain(), *args[1:], **kwargs))
            if type(result) is Buffer and result.home() is first.home():
                return result
        return plain(*args, **kwargs)

    return call


_OWN: dict[str, Any] = {
    "fromiter": _fromiter,
    "vectorize": Vectorized,
    "isscalar": _isscalar,
    **{name: _as_array(name) for name in ("asarray", "asanyarray")},
    **{
        name: _making(name)
        for name in ("array", "copy", "empty_like", "full", "full_like", "ones_like", "zeros_like")
    },
    **{name: _reshaping(name) for name in ("reshape", "ravel")},
    **{name: _of_shape(name) for name in ("zeros", "ones", "empty")},
}
_OF_VIEWS = frozenset(
    {
        "asanyarray", "asarray", "ascontiguousarray", "asfortranarray", "atleast_1d", "atleast_2d",
        "atleast_3d", "broadcast_to", "expand_dims", "imag", "matrix_transpose", "moveaxis",
        "permute_dims", "ravel", "real", "require", "reshape", "squeeze", "swapaxes", "transpose",
    }
)  # fmt: skip
"""Functions that give views."""

_OF_FUNCTIONS = frozenset({"apply_along_axis", "apply_over_axes", "piecewise", "fromfunction"})
"""Functions of functions, which may use traced values that are no arguments."""
