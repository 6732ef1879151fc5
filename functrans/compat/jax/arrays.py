"""``Array``: NumPy's arrays with what JAX's have beside it, for results outside of transforms.

Under a trace results are left as they are: there, traced values and the arrays that traced
functions make have ``at`` of their own.

Layer: ``compat``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from functrans import pytrees
from functrans.core.state import open_traces
from functrans.numpy.at import At
from functrans.numpy.dispatch import has_tracer


class Array(np.ndarray):
    """An array with functional updates, ``x.at[i].set(v)``.

    Example:
      >>> import functrans.compat.jax.numpy as jnp
      >>> jnp.zeros(3).at[1].set(2.0)
      Array([0., 2., 0.])
    """

    @property
    def at(self) -> At:
        """Places for functional updates."""
        return _Places(np.asarray(self))

    def __getitem__(self, index: Any) -> Any:
        """``self[index]``; integers of the index may be traced."""
        if has_tracer((index,)):
            return At(np.asarray(self))[index].get(mode="clip")
        return super().__getitem__(index)

    def block_until_ready(self) -> Array:
        """The array itself."""
        return self

    def __round__(self, ndigits: int | None = None) -> Any:
        """Of an array without axes, as of a number."""
        return given(np.round(self, ndigits or 0))


def _reducing(name: str) -> Callable[..., Any]:
    plain = getattr(np.ndarray, name)

    @functools.wraps(plain)
    def method(self: Array, *args: object, **options: object) -> Any:
        if options.get("where", 0) is None:
            del options["where"]
        return plain(self, *args, **options)

    return method


for _name in ("all", "any", "max", "mean", "min", "prod", "std", "sum", "var"):
    setattr(Array, _name, _reducing(_name))


class _Places(At):
    """Places whose updates give an ``Array``."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        """A place of the array."""
        return _Place(super().__getitem__(index))


class _Place:
    """A place whose updates give an ``Array``."""

    __slots__ = ("_place",)

    def __init__(self, place: Any) -> None:
        self._place = place

    def __getattr__(self, name: str) -> Any:
        """An update."""
        return giving(getattr(self._place, name))


def _viewed(leaf: Any) -> Any:
    if type(leaf) is np.ndarray or isinstance(leaf, (np.number, np.bool_)):
        return np.asarray(leaf).view(Array)
    return leaf


def given(value: Any) -> Any:
    """A result with ``Array`` in place of NumPy's arrays and numbers, unless a trace is open."""
    return value if open_traces.get() else pytrees.map(_viewed, value)


def giving(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose results are ``given``."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return given(function(*args, **kwargs))

    return call


class Transformed:
    """A transformed function whose results are ``given``; all else is its own."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function, updated=())
        self._function = function

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """As the function."""
        return given(self._function(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        """As of the function."""
        return getattr(self.__dict__["_function"], name)

    def __get__(self, instance: Any, owner: object = None) -> Any:
        """As a method."""
        return self if instance is None else MethodType(self, instance)


def transforming(transform: Callable[..., Any]) -> Callable[..., Any]:
    """A transform that gives functions whose results are ``given``, or a decorator."""

    @functools.wraps(transform)
    def call(*args: object, **kwargs: object) -> Any:
        result = transform(*args, **kwargs)
        return (
            transforming(result) if isinstance(result, functools.partial) else Transformed(result)
        )

    return call


_TRANSFORMS = frozenset(
    {
        "jax.checkpoint", "jax.grad", "jax.hessian", "jax.jacfwd", "jax.jacobian", "jax.jacrev",
        "jax.jit", "jax.remat", "jax.value_and_grad", "jax.vmap",
    }
)  # fmt: skip
_FUNCTIONS = frozenset({"jax.device_put", "jax.jvp", "jax.linearize", "jax.vjp"})
_OF_ARRAYS = (
    "jax.flatten_util.", "jax.lax.", "jax.nn.", "jax.numpy.", "jax.ops.", "jax.random.",
    "jax.scipy.",
)  # fmt: skip


def adapted(name: str, value: Any) -> Any:
    """What is offered for a name: functions of arrays give ``Array``."""
    if name in _TRANSFORMS:
        return transforming(value)
    is_function = isinstance(value, (FunctionType, MethodType))
    if name in _FUNCTIONS or (is_function and name.startswith(_OF_ARRAYS)):
        return giving(value)
    return value
