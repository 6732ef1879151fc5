"""Names of JAX that have no counterpart in functrans: devices and kinds of keys.

There is one device, the CPU; dtypes are those that are asked for, as with JAX's ``jax_enable_x64``.

Layer: ``compat``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans import pytrees
from functrans.compat.namespaces import without
from functrans.control.branches import cond as functrans_cond
from functrans.core.dispatch import Tracer, aval_of
from functrans.core.values import Array
from functrans.jitted.jit import jit as functrans_jit
from functrans.primitives.structural import cast
from functrans.records import dataclass

__version__ = "0.10.2"
"""The version of JAX whose names these are."""
__version_info__ = (0, 10, 2)

ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = str | type | np.dtype | None

# devices ------------------------------------------------------------------------------------------


class Device:
    """The CPU."""

    platform = device_kind = "cpu"
    id = process_index = 0

    def __repr__(self) -> str:
        return "CpuDevice(id=0)"


CPU = Device()


class Sharding:
    """Where the parts of an array lie in JAX; here arrays lie in one memory, and have none.

    Raises:
      RuntimeError: one is made.
    """

    def __init__(self, *args: object, **options: object) -> None:
        raise RuntimeError(
            f"{type(self).__name__}: functrans has one device, the CPU; leave out shardings"
        )


def shard_map(*args: object, **options: object) -> Any:
    """Functions of several devices.

    Raises:
      RuntimeError: always.
    """
    raise RuntimeError(
        "shard_map and pmap: functrans has one device, the CPU; use vmap, which computes the same"
    )


pmap = shard_map


class NamedSharding(Sharding):
    """See ``Sharding``."""


class PartitionSpec(Sharding):
    """See ``Sharding``."""


class Mesh(Sharding):
    """See ``Sharding``."""


def devices(backend: str | None = None) -> list[Device]:
    """The CPU.

    Raises:
      RuntimeError: another backend is asked for.
    """
    if backend not in (None, "cpu"):
        raise RuntimeError(
            f"devices: there is no backend {backend!r}; functrans computes on the CPU"
        )
    return [CPU]


def device_count(backend: str | None = None) -> int:
    """1."""
    return len(devices(backend))


def process_index(backend: str | None = None) -> int:
    """0."""
    return devices(backend)[0].process_index


def default_backend() -> str:
    """``"cpu"``."""
    return CPU.platform


def device_put(x: Any, device: object = None, **options: object) -> Any:
    """Arrays of a pytree's numbers and arrays."""
    return pytrees.map(fnp.array, x)


def device_get(x: Any) -> Any:
    """A pytree with copies of its arrays, of NumPy."""
    return pytrees.map(lambda leaf: np.array(leaf) if isinstance(leaf, Array) else leaf, x)


def block_until_ready(x: Any) -> Any:
    """The pytree itself: results are there when a function returns."""
    return x


def effects_barrier() -> None:
    """Nothing: effects have happened when a function returns."""


@dataclass(frozen=True)
class AbstractArray:
    """What ``typeof`` gives: shape and dtype; it lies nowhere in particular.

    Attributes:
      shape: extents.
      dtype: NumPy's.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    weak_type = False
    vma = frozenset[str]()
    sharding = SimpleNamespace(
        mesh=SimpleNamespace(empty=True, are_all_axes_explicit=False, axis_names=()), spec=()
    )

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def typeof(x: Any) -> AbstractArray:
    """Shape and dtype."""
    aval = aval_of(x)
    return AbstractArray(aval.shape, aval.dtype)


def ensure_compile_time_eval() -> AbstractContextManager[None]:
    """A context that changes nothing here."""
    return nullcontext()


# dtypes and keys ----------------------------------------------------------------------------------


class extended(np.generic):  # noqa: N801  # JAX's name
    """Dtypes of keys in JAX; keys are ``uint32[2]`` here, and no array has one."""


class prng_key(extended):  # noqa: N801  # JAX's name
    """The dtype of keys in JAX; keys are ``uint32[2]`` here."""


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> np.dtype:
    """The dtype itself."""
    return np.dtype(dtype)


def scalar_type_of(x: Any) -> type:
    """Python's type of numbers of a dtype's kind."""
    return {"b": bool, "i": int, "u": int, "f": float, "c": complex}[aval_of(x).dtype.kind]


def key_data(keys: object) -> Any:
    """The keys themselves, which are ``uint32[..., 2]``."""
    return fnp.asarray(keys)


wrap_key_data = clone = key_data


def key_impl(keys: object) -> str:
    """``"threefry2x32"``."""
    return "threefry2x32"


# keywords that speak of devices, layouts or speed -------------------------------------------------


def _product(function: Callable[..., Any]) -> Callable[..., Any]:
    """A product, with JAX's keywords for exactness."""
    plain = without(function, ("precision", "out_sharding"))

    @functools.wraps(function)
    def call(*args: object, preferred_element_type: Any = None, **options: object) -> Any:
        result = plain(*args, **options)
        dtype = preferred_element_type
        return result if dtype is None else cast(result, np.dtype(dtype))

    return call


matmul, dot, vdot, inner, outer, tensordot, einsum, convolve, correlate, vecdot = (
    _product(function)
    for function in (
        fnp.matmul, fnp.dot, fnp.vdot, fnp.inner, fnp.outer, fnp.tensordot, fnp.einsum,
        fnp.convolve, fnp.correlate, fnp.vecdot,
    )
)  # fmt: skip


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction, whose axes may be a list, and ``where`` none."""
    plain = without(function, ("promote_integers",))

    @functools.wraps(function)
    def call(a: Any, axis: object = None, *args: object, **options: object) -> Any:
        axis = tuple(axis) if isinstance(axis, list) else axis
        if options.get("where", 0) is None:
            del options["where"]
        return plain(a, axis, *args, **options)

    return call


all, amax, amin, any, max, mean, min, prod, std, sum, var = (
    _reduction(function)
    for function in (
        fnp.all, fnp.amax, fnp.amin, fnp.any, fnp.max, fnp.mean, fnp.min, fnp.prod, fnp.std,
        fnp.sum, fnp.var,
    )
)  # fmt: skip


def of_copies(function: Callable[..., Any]) -> Callable[..., Any]:
    """What writes into an array, as a function that returns another one: ``inplace=False``."""

    @functools.wraps(function)
    def call(a: Any, *args: Any, inplace: bool = True, **options: Any) -> Any:
        if inplace:
            raise ValueError(
                f"{function.__name__}: arrays of JAX are not written to; pass inplace=False, and "
                "take the result"
            )
        traced = (x for x in (*args, *options.values()) if isinstance(x, Tracer))
        copy = fnp.array(a, like=next(traced, None))
        function(copy, *args, **options)
        return copy

    return call


fill_diagonal, place = of_copies(fnp.fill_diagonal), of_copies(fnp.place)
put, put_along_axis = of_copies(fnp.put), of_copies(fnp.put_along_axis)


def _symmetrized(function: Callable[..., Any]) -> Callable[..., Any]:
    """A factorization of the mean of a matrix and its adjoint, if ``symmetrize_input``."""

    @functools.wraps(function)
    def call(a: Any, *args: Any, symmetrize_input: bool = True, **options: Any) -> Any:
        if symmetrize_input:
            a = fnp.asarray(a)
            a = (a + fnp.conj(fnp.matrix_transpose(a))) / 2
        return function(a, *args, **options)

    return call


cholesky, eigh = _symmetrized(fnp.linalg.cholesky), _symmetrized(fnp.linalg.eigh)

_UNUSED_BY_JIT = (
    "in_shardings", "out_shardings", "keep_unused", "device", "backend", "inline",
    "compiler_options",
)  # fmt: skip
_jit = without(functrans_jit, _UNUSED_BY_JIT)


def jit(fun: Callable[..., Any] | None = None, **options: object) -> Any:
    """``functrans.jit``; without a function, a decorator."""
    return functools.partial(_jit, **options) if fun is None else _jit(fun, **options)


def cond(pred: Any, true_fun: Any, false_fun: Any, *operands: Any, **options: object) -> Any:
    """``functrans.lax.cond``; also with an operand before each function, as older code has it."""
    if callable(true_fun) or len(operands) != 2 or options:
        return functrans_cond(pred, true_fun, false_fun, *operands, **options)
    on_true, on_false = false_fun, operands[1]
    pair = (true_fun, operands[0])
    return functrans_cond(pred, lambda x: on_true(x[0]), lambda x: on_false(x[1]), pair)


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """The function itself."""
    return fun
