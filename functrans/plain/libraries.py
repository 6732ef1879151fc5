"""What stands for NumPy, SciPy and functrans in twins: the same modules with functions that trace.

A module of a library is a ``Proxy``: the names for which functrans has a function are that one, all
others are the module's own. Functions get what buffers stand for, and give buffers
(``plain.memory``). Objects that users have made before (a spline, a frozen distribution, a function
compiled by numba) are remade from what they were made of.

Here: the proxies, functions of libraries, NumPy's types. Not here: Python's own modules
(``plain.numbers``), user code (``plain.twins``).

Layer: ``plain``.
"""

from __future__ import annotations

import functools
import itertools
import operator
import sys
import types
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans.arrays.writes import fresh
from functrans.core.boundary import note_refusal
from functrans.core.deferred import deferred
from functrans.core.dispatch import Tracer
from functrans.core.values import Array, Operand
from functrans.errors import FunctransError
from functrans.plain import iterators, series
from functrans.plain.kinds import exemplar
from functrans.plain.memory import (
    NEVER,
    TARGETS,
    Buffer,
    call_settled,
    call_ufunc,
    given,
    holds_tracer,
    new_array,
    settled,
    write_by,
)
from functrans.plain.readers import stand_in
from functrans.plain.sparse.dense import TracedDense
from functrans.plain.twins import (
    makers,
    makers_by_name,
    makers_of_bases,
    original_of,
    register,
    registered,
    twin,
    twin_of_code,
)
from functrans.plain.users import is_user_function, is_user_module

PROXIED = ("numpy", "scipy", "functrans")
"""Libraries whose modules are proxied. Others get arrays as they are."""


class Proxy:
    """A module of a library, as twins see it."""

    def __init__(self, module: types.ModuleType, names: dict[str, Any]) -> None:
        vars(self).update(names)
        vars(self)["__original__"] = module

    def __getattr__(self, name: str) -> Any:
        """What has no twin in functrans: the module's own, which gets arrays or tracers."""
        value = getattr(vars(self)["__original__"], name)
        replaced = library_twin(value)
        vars(self)[name] = replaced
        return replaced

    def __setattr__(self, name: str, value: Any) -> None:
        """Written to the module itself."""
        setattr(vars(self)["__original__"], name, value)
        vars(self).pop(name, None)

    def __dir__(self) -> list[str]:
        """Of the module."""
        return dir(vars(self)["__original__"])

    def __repr__(self) -> str:
        """Of the module."""
        return repr(vars(self)["__original__"])


def _own(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of functrans for twins: it makes the twins of functions that it is given itself.

    So programs hold functions that can be found by name.
    """

    @functools.wraps(function)
    def call(*args: object, **kwargs: float) -> Any:
        args = tuple([_by_itself(arg) for arg in args])
        return call_settled(function, args, {k: _by_itself(arg) for k, arg in kwargs.items()})

    return call


def _by_itself(value: object) -> Any:
    if type(value) is types.FunctionType and value.__closure__ is None:
        return original_of(value)
    return value


def library_twin(value: Any) -> Any:
    """What stands for a function, class or module of a library."""
    found = registered(value)
    if found is not None:
        return found
    if isinstance(value, types.ModuleType):
        return _module(value)
    if isinstance(value, type):
        return stand_in(value)
    if not callable(value):
        return value
    if isinstance(getattr(type(value), "__call__", None), types.FunctionType):  # noqa: B004
        return value  # an object, which has other methods, too
    module = getattr(value, "__module__", None)
    root = module.partition(".")[0] if isinstance(module, str) else ""
    if root == "scipy" and type(value) is types.FunctionType:
        return _of_code(value)
    return _own(value) if root == "functrans" else library(value)


def _of_code(function: Any) -> Callable[..., Any]:
    """A function of SciPy that functrans does not have: its own code on traced values.

    It is traced as user code is. Much of SciPy asks ``array_namespace`` whose functions to call
    (the array API); traced values say functrans's.
    """
    plain = library(function)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        if not holds_tracer(settled((args, kwargs))):
            return plain(*args, **kwargs)
        args = tuple(map(_held, args))
        try:
            return twin_of_code(function)(*args, **{k: _held(arg) for k, arg in kwargs.items()})
        except FunctransError:
            raise
        except Exception as error:
            if not getattr(error, "__notes__", None):
                error.add_note(
                    f"in {function.__module__}.{function.__name__}, whose own code was traced; if "
                    "it takes such arguments as plain arrays, make it one operation with "
                    "ft.external(f, out_like)"
                )
            raise

    call.is_of_code = True  # type: ignore[attr-defined]  # for ``is_of_code``
    return call


def is_of_code(function: object) -> bool:
    """Whether a twin is one of SciPy's functions whose own code is traced."""
    return getattr(function, "is_of_code", False)


class _Held:
    """An object of SciPy's, as the distribution of a statistic is: its methods are traced, too."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getattr__(self, name: str) -> Any:
        """Of the object."""
        found = getattr(self.value, name)
        if type(found) is types.MethodType:
            return functools.partial(_of_code(found.__func__), found.__self__)
        return found


def _held(value: object) -> Any:
    kind = type(value)
    is_held = kind.__module__ == "scipy.stats._stats_py" and not issubclass(kind, tuple)
    return _Held(value) if is_held else value


def _compiled(function: Any) -> Any:
    """A function that Cython compiled: SciPy's takes the memory of arrays, which no tracer has."""
    if not str(getattr(function, "__module__", "")).startswith("scipy."):
        return function
    plain = library(function)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        for value in settled((*args, *kwargs.values())):
            if isinstance(value, Tracer):
                error = deferred.conversion_error(value, sys._getframe(1))
                note_refusal(value._trace, error)
                raise error
        return plain(*args, **kwargs)

    return call


def _array_namespace(of_scipy: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's ``array_namespace``, of traced values beside arrays, too."""

    @functools.wraps(of_scipy)
    def array_namespace(*arrays: Any) -> Any:
        return twin(fnp) if holds_tracer(settled(arrays)) else library_twin(of_scipy(*arrays))

    return array_namespace


def library(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a library for twins: it gets what buffers stand for, and gives buffers."""
    place = _place_of_out(function)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return call_settled(function, args, kwargs, place)

    return call


def _place_of_out(function: Callable[..., Any]) -> int:
    """Where ``out`` is among the arguments of a function of functrans."""
    code = getattr(getattr(function, "traced", function), "__code__", None)
    names = () if code is None else code.co_varnames[: code.co_argcount]
    return names.index("out") if "out" in names else NEVER


def _writing(function: Callable[..., Any], target: str) -> Callable[..., Any]:
    """A function that writes to its first argument."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: Array) -> Any:
        return write_by(function, target, args, kwargs)

    return call


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


# modules ------------------------------------------------------------------------------------------

_proxies: dict[str, Any] = {}


def _module(module: types.ModuleType) -> Any:
    """What stands for a module."""
    name = module.__name__
    found = _proxies.get(name)
    if found is not None:
        return found
    top = name.partition(".")[0]
    if top not in PROXIED:
        return module
    found = _proxies[name] = Proxy(module, {})
    register(module, found)
    if top == "numpy":
        vars(found).update(_of_numpy(module))
    elif top == "scipy":
        of_scipy = resolve_name("scipy._lib._array_api").array_namespace
        if registered(of_scipy) is None:
            register(of_scipy, _array_namespace(of_scipy))
        vars(found).update(_of_scipy(module))
    return found


def _counterpart(name: str, root: str) -> Any:
    """The module of functrans for one of NumPy or SciPy, or ``None``."""
    found: Any = fnp if root == "numpy" else deferred.scipy_names.namespace
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


_INDEXED = ("r_", "c_")


def _of_numpy(module: types.ModuleType) -> dict[str, Any]:
    """Names of a module of NumPy that have twins."""
    ours = _counterpart(module.__name__, "numpy")
    names: dict[str, Any] = {}
    for name in getattr(ours, "__all__", ()):
        theirs, own = getattr(module, name, None), getattr(ours, name)
        if theirs is None or isinstance(own, types.ModuleType):
            continue
        replaced = registered(theirs)
        if replaced is None:
            if name in TARGETS:
                replaced = _writing(theirs, TARGETS[name])
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


def _of_scipy(module: types.ModuleType) -> dict[str, Any]:
    """Names of a module of SciPy that have twins."""
    ours = _counterpart(module.__name__, "scipy")
    names: dict[str, Any] = deferred.scipy_names.NAMES.get(module.__name__, dict)()
    for name, replaced in names.items():
        register(getattr(module, name), replaced)
    for name in getattr(ours, "__all__", ()):
        own = getattr(ours, name)
        if isinstance(own, types.ModuleType):
            continue
        theirs = getattr(module, name, None)
        if theirs is None:
            continue
        replaced = registered(theirs)
        if replaced is None:
            if own is theirs:
                continue
            is_function = isinstance(own, types.FunctionType | type) or isinstance(theirs, type)
            if getattr(getattr(own, "traced", None), "__wrapped__", None) is theirs:
                replaced = _of_code(theirs)
            elif hasattr(theirs, "rvs"):
                replaced = Distribution(own, theirs)
            else:
                replaced = _called_by_scipy(library(own)) if is_function else own
            register(theirs, replaced)
        names[name] = replaced
    return names


def _called_by_scipy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function without the option by which functions of SciPy call each other undecorated."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        kwargs.pop("_no_deco", None)
        return function(*args, **kwargs)

    return call


def _find_in_scipy(value: object) -> Any:
    """What stands for a function, class or object that came from a module of SciPy by name."""
    path = (getattr(value, "__module__", None) or type(value).__module__).split(".")
    for depth in (3, 2):
        name = ".".join(path[:depth])
        if len(path) >= depth and not path[depth - 1].startswith("_"):
            _module(resolve_name(name))
            found = registered(value)
            if found is not None:
                return found
    return None


def _by_name(value: object) -> Any:
    """The twin of a function or class by the library that it is of."""
    if isinstance(value, np.ufunc):
        _module(np)
        if registered(value) is None:
            _module(resolve_name("scipy.special"))
        found = registered(value)
        return Ufunc(value) if found is None else found
    module = getattr(value, "__module__", None) or ""
    top = module.partition(".")[0]
    if top == "numpy":
        for name in ("numpy", "numpy.linalg", "numpy.fft"):
            _module(resolve_name(name))
    elif top == "scipy":
        found = _find_in_scipy(value)
        if found is not None:
            return found
    elif top != "functrans":
        return value
    return library_twin(value)


# objects that were made before ------------------------------------------------------------------


class Distribution:
    """A distribution of SciPy, whose densities and probabilities are functrans's.

    Attributes:
      own: functrans's distribution; ``None`` of one that functrans does not have.
      scipy: SciPy's, which has all other methods, for plain parameters.
    """

    def __init__(self, own: Any, scipy: Any) -> None:
        self.own, self.scipy = own, scipy

    def __getattr__(self, name: str) -> Any:
        """A method."""
        found = getattr(self.own, name, None)
        if found is None:
            value = getattr(self.scipy, name)
            return library(value) if callable(value) else value
        is_multivariate = not hasattr(self.scipy, "ppf")
        return library(_without_ones(found) if is_multivariate else found)

    def __call__(self, *args: object, **kwargs: object) -> Frozen:
        """The distribution with parameters."""
        return Frozen(self, args, kwargs)

    freeze = __call__

    def __repr__(self) -> str:
        """Of SciPy's."""
        return repr(self.scipy)


def _without_ones(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose results have no axes of one element, as SciPy's of several variables."""
    return lambda *args, **kwargs: fnp.squeeze(method(*args, **kwargs))


_WITHOUT_ARGUMENT = frozenset(
    {"mean", "var", "std", "median", "entropy", "support", "stats", "rvs"}
)


class Frozen:
    """A distribution with parameters, as ``norm(loc=1.0, scale=2.0)`` gives it."""

    def __init__(self, distribution: Distribution, args: Any, kwargs: Any) -> None:
        self.dist, self.args, self.kwds = distribution, args, kwargs

    def __getattr__(self, name: str) -> Any:
        """A method, which is given the parameters."""
        if name == "median":
            return lambda: self.ppf(0.5)
        if name == "interval":
            return lambda confidence: (
                self.ppf((1 - confidence) / 2),
                self.ppf((1 + confidence) / 2),
            )
        method = getattr(self.dist, name)
        if name in _WITHOUT_ARGUMENT:
            return lambda *args, **kwargs: method(*self.args, *args, **self.kwds, **kwargs)
        return lambda x, *args, **kwargs: method(x, *self.args, *args, **self.kwds, **kwargs)


def _distribution(value: Any) -> Distribution:
    """A distribution of SciPy, or one that is frozen."""
    if hasattr(value, "dist") and hasattr(value, "kwds"):
        found = twin(value.dist)
        is_ours = isinstance(found, Distribution)
        return found(*map(twin, value.args), **value.kwds) if is_ours else value
    found = _find_in_scipy(value)
    if found is None:  # SciPy freezes copies
        named: Any = getattr(resolve_name("scipy.stats"), getattr(value, "name", ""), None)
        if type(named) is type(value) and (named.a, named.b) == (value.a, value.b):
            found = registered(named)
    return Distribution(None, value) if found is None else found


_PARAMETERS = {
    "dirichlet_frozen": ("dirichlet", "alpha"),
    "gaussian_kde": ("gaussian_kde", "dataset", "factor", "weights"),
    "multinomial_frozen": ("multinomial", "n", "p"),
    "multivariate_normal_frozen": ("multivariate_normal", "mean", "cov", "allow_singular"),
    "multivariate_t_frozen": ("multivariate_t", "loc", "shape", "df"),
    "wishart_frozen": ("wishart", "df", "scale"),
}
"""Distributions of several variables with parameters: what makes them, from which attributes."""


def _of_several(value: Any) -> Any:
    """A distribution of several variables with parameters, or a density from samples."""
    if type(value).__name__ not in _PARAMETERS:
        return value
    name, *attributes = _PARAMETERS[type(value).__name__]
    make = twin(getattr(resolve_name("scipy.stats"), name))
    return make(*(getattr(value, attribute) for attribute in attributes))


def _vectorized(value: Any) -> Vectorized:
    return Vectorized(
        twin(value.pyfunc), otypes=value.otypes, excluded=value.excluded, signature=value.signature
    )


def _piecewise(value: Any) -> Callable[..., Any]:
    """A spline or another piecewise polynomial of SciPy."""
    own = deferred.scipy_names.namespace.interpolate
    if hasattr(value, "t"):
        return library(own.BSpline(value.t, value.c, value.k, value.extrapolate, value.axis))
    return library(own.PPoly(value.c, value.x, value.extrapolate, value.axis))


def _interp1d(value: Any) -> Callable[..., Any]:
    own = deferred.scipy_names.namespace.interpolate
    return library(
        own.interp1d(
            value.x,
            value.y,
            kind=value._spline.k if value._kind == "spline" else value._kind,
            axis=value.axis,
            bounds_error=value.bounds_error,
            fill_value=value.fill_value,
        )
    )


def _giving(kind: type) -> type:
    """A class of random number generators whose arrays can be written to."""

    def method(name: str) -> Callable[..., Any]:
        plain = getattr(kind, name)

        @functools.wraps(plain)
        def draw(self: Any, *args: object, **kwargs: object) -> Any:
            return given(plain(self, *settled(args), **settled(kwargs)))

        return _shuffle(plain) if name == "shuffle" else draw

    names = [n for n in dir(kind) if not n.startswith("_") and callable(getattr(kind, n))]
    own = type(kind.__name__, (kind,), {name: method(name) for name in names})
    register(kind, own)
    return own


def _shuffle(plain: Callable[..., Any]) -> Callable[..., Any]:
    """The method ``shuffle`` of a generator: the rows of a traced array in the order of numbers.

    NumPy would exchange rows of what is no array, two at a time, which are views of each other.
    """

    @functools.wraps(plain)
    def shuffle(*args: Any, **kwargs: Any) -> None:
        *own, x = settled(args)[: 1 + (len(args) > 0 and not isinstance(args[0], Tracer))]
        if not isinstance(x, Tracer):
            plain(*settled(args), **settled(kwargs))
            return
        rest = settled(args)[len(own) + 1 :]
        axis = operator.index(kwargs.get("axis", rest[0] if rest else 0))
        order = np.arange(np.shape(x)[axis])
        plain(*own, order)
        operator.setitem(x, ..., fnp.take(x, order, axis=axis))  # type: ignore[call-overload]  # tracers have operators

    return shuffle


def _install_random() -> None:
    generator = _giving(np.random.Generator)
    state = _giving(np.random.RandomState)
    make = functools.wraps(np.random.default_rng)(
        lambda *args, **kwargs: generator(
            np.random.default_rng(*settled(args), **settled(kwargs)).bit_generator
        )
    )
    register(np.random.default_rng, make)
    makers_by_name["numpy.random.mtrand.RandomState"] = lambda rng: state(rng._bit_generator)
    register(np.random.shuffle, _shuffle(np.random.shuffle))
    makers_by_name["numpy.random._generator.Generator"] = lambda rng: generator(rng.bit_generator)


def _dispatcher(value: Any) -> Any:
    """A function compiled by numba: the function of Python that it was compiled from."""
    return twin(value.py_func)


def install() -> None:
    """Make the tables."""
    for original, make in iterators.MAKERS.items():
        stand_in(original, make)
    for original, (make, member) in series.MAKERS.items():
        stand_in(original, make, member)
    _module(np)
    _install_random()
    makers[types.ModuleType] = _any_module(makers[types.ModuleType])
    makers[np.ufunc] = _by_name
    makers[types.BuiltinFunctionType] = _by_name
    makers[type(np.sum)] = _by_name  # functions that dispatch
    makers[type] = _by_name
    functions = makers[types.FunctionType]

    def function(value: types.FunctionType) -> Any:
        top = value.__globals__.get("__name__", "").partition(".")[0]
        is_library = top in PROXIED and not is_user_function(value)
        return _by_name(value) if is_library else functions(value)  # type: ignore[misc]

    makers[types.FunctionType] = function
    makers_by_name.update(
        {
            "scipy.stats._distn_infrastructure.rv_generic": _distribution,
            "scipy.stats._distn_infrastructure.rv_frozen": _distribution,
            "scipy.stats._multivariate.multi_rv_generic": _distribution,
            "scipy.stats._multivariate.multi_rv_frozen": _of_several,
            "scipy.stats._kde.gaussian_kde": _of_several,
            "numpy.vectorize": _vectorized,
            "scipy.interpolate._interpolate.PPoly": _piecewise,
            "scipy.interpolate._bsplines.BSpline": _piecewise,
            "scipy.interpolate._interpolate.interp1d": _interp1d,
            "scipy.sparse._base._spbase": lambda matrix: deferred.scipy_names.of_matrix(matrix),
            "builtins.SuperLU": lambda factors: deferred.scipy_names.of_superlu(factors),
            "numba.core.dispatcher.Dispatcher": _dispatcher,
        }
    )
    makers_of_bases.insert(0, (_is_of_cython, _compiled))
    for kind in (type(np.r_), type(np.c_)):
        makers[kind] = library_twin


def _is_of_cython(kind: type) -> bool:
    return kind.__name__ in ("cython_function_or_method", "fused_cython_function")


def _any_module(of_users: Any) -> Callable[[types.ModuleType], Any]:
    def make(module: types.ModuleType) -> Any:
        return of_users(module) if is_user_module(module.__name__) else _module(module)

    return make


def is_traced_number(value: Operand) -> bool:
    """Whether a value is traced, or a buffer that has become so."""
    return isinstance(value, Tracer) or (type(value) is Buffer and value.traced() is not None)
