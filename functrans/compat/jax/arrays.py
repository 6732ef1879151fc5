"""``Array``: NumPy's arrays with what JAX's have beside it, and the boundary that gives them.

All that functions of ``compat.jax`` return goes through ``called``, and so does what the functions
that they return give.

Layer: ``compat``.
"""

from __future__ import annotations

import functools
import operator
import sys
from abc import ABC
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from functrans import pytrees, tree
from functrans.arrays.callers import is_augmented
from functrans.compat.jax.settings import config, edge, shorten_as_set
from functrans.compat.jax.values import CPU, of_copies
from functrans.control import custom_rules
from functrans.core.arguments import name_of
from functrans.core.boundary import at_user
from functrans.core.calling import call_traced
from functrans.core.dispatch import Tracer
from functrans.core.source import here, is_internal, is_own
from functrans.core.state import config as functrans_config
from functrans.core.state import rebinds
from functrans.core.transformed import Wrapper, by_name
from functrans.core.values import Array as ArrayOrTracer
from functrans.core.values import P, R
from functrans.jitted.jit import JitFunction
from functrans.jitted.lowered import Lowered
from functrans.numpy.at import At
from functrans.numpy.dispatch import has_tracer
from functrans.transforms.linear_functions import LinearFunction
from functrans.tree.registration import Partial


class Array(np.ndarray):
    """An array with functional updates, ``x.at[i].set(v)``.

    Example:
      >>> import functrans.compat.jax.numpy as jnp
      >>> jnp.zeros(3).at[1].set(2.0)
      Array([0., 2., 0.])
    """

    _never_written = True
    """Whether ``a += x`` makes another array, of any ``a``."""

    @property
    def at(self) -> At:
        """Places for functional updates."""
        return _Places(np.asarray(self))

    def __getitem__(self, index: Any) -> Any:
        """``self[index]``; integers of the index may be traced."""
        try:
            if type(index) is int or not has_tracer((index,)):
                return given(super().__getitem__(index))
            return At(np.asarray(self))[index].get(mode="clip")
        except Exception as error:
            shorten_as_set(error)
            raise

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any
    ) -> Any:
        """A ufunc of NumPy."""
        plain = list(map(_bare, inputs))
        options = {name: _bare(option) for name, option in options.items()}
        try:
            if out is not None and not is_augmented(inputs, out):
                options["out"] = tuple(map(_bare, out))
                result = getattr(ufunc, method)(*plain, **options)
                return result if result is NotImplemented or len(out) > 1 else out[0]
            result = getattr(ufunc, method)(*plain, **options)
            if config.is_changed():
                _check_numbers(ufunc.__name__, plain, result)
            return given(result)
        except Exception as error:
            shorten_as_set(error)
            raise

    def block_until_ready(self) -> Array:
        """The array itself."""
        return self

    def devices(self) -> set[Any]:
        """Where it lies."""
        return {CPU}

    def sort(self, *args: Any, **options: Any) -> Any:
        """A sorted copy; in place in code that is written for NumPy."""
        if is_internal(sys._getframe(1).f_code.co_filename):
            return super().sort(*args, **options)
        return given(np.sort(np.asarray(self), *args, **options))

    def __round__(self, ndigits: int | None = None) -> Any:
        """Of an array without axes, as of a number."""
        return given(np.round(self, ndigits or 0))


def _bare(x: Any) -> Any:
    """NumPy's own array."""
    return x.view(np.ndarray) if type(x) is Array else x


class AnyArray(ABC):  # noqa: B024  # for ``isinstance``
    """``jax.Array``: arrays that come from these modules, and traced ones; not NumPy's own.

    Example:
      >>> import functrans.compat.jax as jax
      >>> isinstance(jax.numpy.ones(2), jax.Array), isinstance(np.ones(2), jax.Array)
      (True, False)
    """

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        """Numbers of NumPy are what ``jnp.float32(1)`` gives."""
        return issubclass(other, ArrayOrTracer) and (
            issubclass(other, Array) or not issubclass(other, np.ndarray)
        )


def _reducing(name: str) -> Callable[..., Any]:
    plain = getattr(np.ndarray, name)

    @functools.wraps(plain)
    def method(self: Array, *args: object, **options: object) -> Any:
        if options.get("where", 0) is None:
            del options["where"]
        return given(plain(self.view(np.ndarray), *args, **options))

    return method


for _name in (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "choose", "compress", "diagonal",
    "dot", "max", "mean", "min", "nonzero", "prod", "repeat", "searchsorted", "std", "sum",
    "take", "trace", "var",
):  # fmt: skip
    setattr(Array, _name, _reducing(_name))


def _rebinding(name: str, operate: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """An augmented assignment: another array, but for code that is written for NumPy."""
    in_place = getattr(np.ndarray, name)

    def method(self: Array, other: object) -> Any:
        is_numpys = is_internal(sys._getframe(1).f_code.co_filename)
        return (in_place if is_numpys else operate)(self, other)

    return method


for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor",
    "lshift", "rshift",
):  # fmt: skip
    _method = f"__i{_name.rstrip('_')}__"
    setattr(Array, _method, _rebinding(_method, getattr(operator, _name)))


class _Places(At):
    """Places whose updates give an ``Array``."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        """A place of the array."""
        return _Place(super().__getitem__(index))


class _Place:
    """A place whose updates give an ``Array``."""

    __slots__ = ("_place",)

    def __init__(self, place: object) -> None:
        self._place = place

    def __getattr__(self, name: str) -> Any:
        """An update."""
        return giving(getattr(self._place, name))


# the boundary -------------------------------------------------------------------------------------


def given(value: Any) -> Any:
    """A result as code written for JAX knows it.

    NumPy's arrays and numbers are ``Array``, and functions that functrans made give such in turn.
    """
    if type(value) is np.ndarray:
        return value.view(Array)
    if isinstance(value, (Tracer, Array)):
        return value
    if isinstance(value, (np.number, np.bool_)):
        return np.asarray(value).view(Array)
    return tree.map(_given_leaf, value, is_leaf=_is_function)


def _given_leaf(leaf: Any) -> Any:
    if type(leaf) is np.ndarray or isinstance(leaf, (np.number, np.bool_)):
        return np.asarray(leaf).view(Array)
    if isinstance(leaf, Lowered) or _is_function(leaf):
        if isinstance(leaf, JitFunction):
            return Jitted(leaf)
        return Linear(leaf) if isinstance(leaf, LinearFunction) else Given(leaf)
    if isinstance(leaf, dict):  # of a class that is no container, as results of SciPy's are
        return type(leaf)({name: given(value) for name, value in leaf.items()})
    return leaf


def _is_function(value: Any) -> bool:
    """Whether a value is a function that functrans made."""
    if not callable(value) or isinstance(value, (type, Given)):
        return False
    function = value.func if type(value) is functools.partial else value
    code = getattr(function, "__code__", None)
    if code is not None:
        return is_own(code.co_filename)
    return type(function).__module__.startswith("functrans.") and not isinstance(value, Partial)


def _apart(result: Any, args: tuple[Any, ...]) -> Any:
    """A result that shares no memory with NumPy's arrays among the arguments, which may change."""
    if type(result) is np.ndarray:
        for arg in args:
            if type(arg) is np.ndarray and np.may_share_memory(arg, result):
                return result.copy()
    elif type(result) in (list, tuple):  # parts of an array
        return type(result)([_apart(part, args) for part in result])
    return result


def called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a function of functrans for code written for JAX."""
    token = rebinds.set(True)
    try:
        if config.is_changed():
            return _watched(function, args, kwargs)
        return given(_apart(at_user(function, *args, **kwargs), args))
    finally:
        rebinds.reset(token)


def _watched(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same under settings of ``jax.config``."""
    with functrans_config(**config.in_force()):
        result = given(_apart(at_user(function, *args, **kwargs), args))
    _check_numbers(name_of(function), (args, kwargs), result)
    return result


def _check_numbers(what: str, operands: Any, result: Any) -> None:
    """Raise where NaN comes to exist, or an infinity, if ``jax.config`` says so."""
    watch = config.in_force().get("nan_watch")
    if watch is None or not any(map(watch.is_bad, tree.leaves(result))):
        return
    if not any(map(watch.is_bad, tree.leaves(operands))):
        kind = "nan" if watch.nan else "inf"
        raise FloatingPointError(f"invalid value ({kind}) encountered in {what}{here()}")


def giving(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results are ``given``."""

    @edge
    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return called(function, args, kwargs)

    return call


class Given(Wrapper):
    """A function that functrans made, whose results are ``given``; all else is its own."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function

    @edge
    def __call__(self, *args: object, **kwargs: object) -> Any:
        """As the function."""
        return called(self._function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        """As of the function, whose methods give such results, too."""
        if name == "_function":  # while it is unpickled
            raise AttributeError(name)
        found = getattr(self._function, name)
        return giving(found) if isinstance(found, MethodType) else found

    def __get__(self, instance: object, owner: object = None) -> Any:
        """As a method."""
        return self if instance is None else MethodType(self, instance)

    def parts(self) -> tuple[Any, ...]:
        """The function."""
        return (self._function,)

    def with_parts(self, parts: Callable[[], tuple[Any, ...]]) -> Given:
        """The same of another function."""
        return type(self)(*parts())

    def __reduce__(self) -> Any:
        return by_name(self, self._function) or (type(self), (self._function,))

    def __repr__(self) -> str:
        return repr(self._function)


class Jitted(Given):
    """A jitted function, whose machine code takes NumPy's own arrays at once."""

    def __init__(self, function: JitFunction) -> None:
        super().__init__(function)
        self.__wrapped__ = function.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """As the function."""
        try:
            return called(self._function, tuple(map(_plain, args)), kwargs)
        except Exception as error:
            shorten_as_set(error)
            raise


def _plain(arg: Any) -> Any:
    """An argument with NumPy's own arrays."""
    return pytrees.map(_bare, arg) if type(arg) in (dict, list, tuple) else _bare(arg)


class Linear(Given):
    """A linear function, which is a container of the arrays that it keeps."""


tree.register_pytree_node(
    Linear, lambda linear: ((linear._function,), None), lambda _, parts: Linear(*parts)
)


class Taking(Wrapper):
    """A user's function whose arguments are ``given``, outside of traces, too."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """As the function."""
        return call_traced(self._function, *given(args), **given(kwargs))

    parts, with_parts = Given.parts, Given.with_parts


class custom_jvp(custom_rules.custom_jvp[P, R]):  # noqa: N801  # JAX's name
    """``functrans.custom_jvp`` for functions of ``Array``."""

    def __init__(self, fun: Callable[P, R], *args: Any, **options: Any) -> None:
        super().__init__(Taking(fun), *args, **options)

    __call__ = giving(custom_rules.custom_jvp.__call__)

    def _rules(self) -> tuple[Callable[..., Any], ...]:
        return tuple(map(Taking, super()._rules()))


class custom_vjp(custom_rules.custom_vjp[P, R]):  # noqa: N801  # JAX's name
    """``functrans.custom_vjp`` for functions of ``Array``."""

    def __init__(self, fun: Callable[P, R], *args: Any, **options: Any) -> None:
        super().__init__(Taking(fun), *args, **options)

    __call__ = giving(custom_rules.custom_vjp.__call__)

    def _rules(self) -> tuple[Callable[..., Any], ...]:
        return tuple(map(Taking, super()._rules()))


_AS_THEY_ARE = (
    "jax.config", "jax.debug.", "jax.device_get", "jax.disable_jit", "jax.dtypes.", "jax.errors.",
    "jax.tree.", "jax.tree_", "jax.typing.",
)  # fmt: skip
"""Names that are not of functions of arrays."""


def adapted(name: str, value: Any) -> Any:
    """What is offered for a name: functions give ``Array``, and functions that do."""
    is_function = isinstance(value, (FunctionType, MethodType)) or name == "jax.numpy.vectorize"
    if not is_function or name.startswith(_AS_THEY_ARE):
        return edge(value) if is_function else value
    function = giving(value)
    place, _, own = name.rpartition(".")
    ufunc = getattr(np, own, None) if place == "jax.numpy" else None
    if isinstance(ufunc, np.ufunc) and ufunc.nin == 2:
        methods = {kind: getattr(ufunc, kind) for kind in ("reduce", "accumulate", "outer")}
        for kind, method in {**methods, "at": of_copies(ufunc.at)}.items():
            setattr(function, kind, giving(method))
    return function
