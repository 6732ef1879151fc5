"""What stands for NumPy, SciPy and functrans in twins: the same modules with functions that trace.

A module of a library is a ``Proxy``: the names for which functrans has a function are that one, all
others are the module's own.

Here: the proxies, the look-up of what a function, class or module of a library becomes. Not here:
how functions are called (``plain.library_calls``), NumPy's names (``plain.numpy_names``), objects
that users have made before (``plain.objects``), Python's own modules (``plain.numbers``), user code
(``plain.twins``).

Layer: ``plain``.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans.core.deferred import deferred
from functrans.plain import iterators, series
from functrans.plain.distributions import Distribution
from functrans.plain.library_calls import called_by_scipy, compiled, library, of_code, of_functrans
from functrans.plain.memory import holds_tracer, settled
from functrans.plain.numpy_names import Ufunc, names_of
from functrans.plain.readers import stand_in
from functrans.plain.twins import makers, makers_of_bases, register, registered, twin
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
        return of_code(value)
    return of_functrans(value) if root == "functrans" else library(value)


def _array_namespace(of_scipy: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's ``array_namespace``, of traced values beside arrays, too."""

    @functools.wraps(of_scipy)
    def array_namespace(*arrays: Any) -> Any:
        return twin(fnp) if holds_tracer(settled(arrays)) else library_twin(of_scipy(*arrays))

    return array_namespace


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
        vars(found).update(names_of(module, _counterpart(name, "numpy")))
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
                replaced = of_code(theirs)
            elif hasattr(theirs, "rvs"):
                replaced = Distribution(own, theirs)
            else:
                replaced = called_by_scipy(library(own)) if is_function else own
            register(theirs, replaced)
        names[name] = replaced
    return names


def find_in_scipy(value: object) -> Any:
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
        found = find_in_scipy(value)
        if found is not None:
            return found
    elif top != "functrans":
        return value
    return library_twin(value)


def install() -> None:
    """Make the tables."""
    for original, make in iterators.MAKERS.items():
        stand_in(original, make)
    for original, (make, member) in series.MAKERS.items():
        stand_in(original, make, member)
    _module(np)
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
    makers_of_bases.insert(0, (_is_of_cython, compiled))
    for kind in (type(np.r_), type(np.c_)):
        makers[kind] = library_twin


def _is_of_cython(kind: type) -> bool:
    return kind.__name__ in ("cython_function_or_method", "fused_cython_function")


def _any_module(of_users: Any) -> Callable[[types.ModuleType], Any]:
    def make(module: types.ModuleType) -> Any:
        return of_users(module) if is_user_module(module.__name__) else _module(module)

    return make
