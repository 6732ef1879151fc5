"""Keys and the bits that they stand for.

Here: making and splitting keys, random bits, and the checks of arguments that all samplers share.
Not here: distributions.

A key is two words, ``uint32[2]``. What is drawn from it is a function of key, shape and dtype
alone: element ``i`` is the block of Threefry-2x32 of the key and the counter ``i``. Keys and bits
are those of JAX (``jax_threefry_partitionable``).

Layer: ``random``.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from textwrap import fill
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from functrans import numpy as fnp
from functrans.core.caching import remembered
from functrans.core.dispatch import Tracer, bind, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives.special.family import common_dtype
from functrans.primitives.structural import broadcast_to, cast, stop_gradient_p
from functrans.primitives.threefry import threefry2x32

Shape = tuple[int, ...]

_WORD = np.dtype(np.uint32)
_MASK = 0xFFFFFFFF
_SHARED_COUNTERS = 1 << 16


_Sampler = TypeVar("_Sampler", bound=Callable[..., Any])


def sampler(*values: float, **meanings: str) -> Callable[[_Sampler], _Sampler]:
    """Complete the docstring of a sampler of floats with what is the same of all of them.

    Args:
      *values: what the example gives for the parameters.
      **meanings: of the parameters, which are the arguments beside key, shape and dtype.
    """
    default = "; by default that of the parameters." if meanings else "."
    arguments = {
        "key": "a key.",
        **{name: f"{meaning}." for name, meaning in meanings.items()},
        "shape": f"shape of the result{default}",
        "dtype": f"a floating dtype{default}",
    }
    lines = [
        fill(f"{name}: {text}", 96, initial_indent="  ", subsequent_indent="    ")
        for name, text in arguments.items()
    ]
    errors = ["  TypeError: ``key`` is no key, ``dtype`` not floating."]
    if meanings:
        errors.append("  ShapeError: the parameters do not broadcast to ``shape``.")

    def complete(function: _Sampler) -> _Sampler:
        given = "".join([f", {value}" for value in values])
        example = f"{function.__name__}(np.array([0, 0], np.uint32){given}, shape=(3,)).shape"
        sections = [
            inspect.getdoc(function) or "",
            "\n".join(["Args:", *lines]),
            "Returns:\n  Array of ``shape`` and ``dtype``.",
            "\n".join(["Raises:", *errors]),
            f"Example:\n  >>> {example}\n  (3,)",
        ]
        function.__doc__ = "\n\n".join(sections)
        return function

    return complete


# arguments --------------------------------------------------------------------------------------


def checked_key(name: str, key: object) -> Array | Tracer:
    """The key.

    Raises:
      TypeError: it is not one key.
    """
    if not isinstance(key, (np.ndarray, Tracer)) or dtype_of(key) != _WORD or shape_of(key) != (2,):
        what = (
            f"{dtype_of(key)}{list(shape_of(key))}"
            if isinstance(key, (np.ndarray, Tracer))
            else f"{type(key).__name__} {key!r}"
        )
        raise TypeError(
            f"random.{name}: a key is an array uint32[2], got {what}{here()}; make one with "
            "ft.random.key(seed), and use ft.vmap for several keys"
        )
    return key


def checked_shape(name: str, shape: Any) -> Shape:
    """A shape as a tuple; one integer is the extent of one axis.

    Raises:
      TypeError: it holds something else than integers, such as traced values.
      ValueError: an extent is negative.
    """
    try:
        extents = (shape,) if isinstance(shape, (int, np.integer)) else tuple(shape)
        result = tuple(operator.index(extent) for extent in extents)
    except TypeError:
        raise TypeError(
            f"random.{name}: a shape is an integer or a tuple of integers, got {shape!r}{here()}"
        ) from None
    if any(extent < 0 for extent in result):
        raise ValueError(f"random.{name}: a shape has no negative extents, got {result}{here()}")
    return result


def checked_float(name: str, dtype: Any, *, has_complex: bool = False) -> np.dtype:
    """A dtype of 16, 32 or 64 bits.

    Raises:
      TypeError: it is another one.
    """
    result: np.dtype = np.dtype(dtype)
    allowed = ("float16", "float32", "float64", *(("complex64", "complex128") * has_complex))
    if result.name not in allowed:
        raise TypeError(
            f"random.{name}: dtype must be one of {', '.join(allowed)}, got {result}{here()}"
        )
    return result


def checked_integer(name: str, dtype: DTypeLike | None) -> np.dtype:
    """A dtype of integers.

    Raises:
      TypeError: it is another one.
    """
    result: np.dtype = np.dtype(dtype)
    if result.kind not in "iu":
        raise TypeError(f"random.{name}: dtype must be of integers, got {result}{here()}")
    return result


def checked(name: str, key: Any, shape: object, dtype: object) -> tuple[Shape, np.dtype]:
    """Shape and dtype of floats to be drawn with a key, which is checked, too."""
    checked_key(name, key)
    return checked_shape(name, shape), checked_float(name, dtype)


def parameters(
    name: str, key: object, shape: object, dtype: object, *values: object, lead: Shape = ()
) -> tuple[Shape, np.dtype, list[Any]]:
    """Shape and dtype of the result, and parameters in them.

    Args:
      name: the sampler's.
      key: is checked.
      shape: what the user gave; ``None`` for that of the parameters.
      dtype: what the user gave; ``None`` for the floating dtype of the parameters.
      *values: parameters.
      lead: a shape that the result has at least.

    Raises:
      ShapeError: the parameters do not broadcast to the shape.
      TypeError: the dtype is not floating, or a parameter is complex.
    """
    checked_key(name, key)
    values = tuple(
        value if isinstance(value, (Tracer, np.ndarray, int, float)) else np.asarray(value)
        for value in values
    )
    common = common_dtype(*values)
    if common.kind == "c":
        raise TypeError(f"random.{name}: parameters must be real, got {common}{here()}")
    dtype = checked_float(name, common if dtype is None else dtype)
    shapes = [shape_of(value) for value in values]
    try:
        own = np.broadcast_shapes(lead, *shapes)
        wanted = own if shape is None else checked_shape(name, shape)
        fits = np.broadcast_shapes(own, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        text = " and ".join(map(str, shapes))
        asked = "" if shape is None else f" to {shape}"
        raise ShapeError(f"random.{name}: parameters of shapes {text} do not broadcast{asked}")
    return wanted, dtype, [broadcast_to(cast(value, dtype), wanted) for value in values]


# keys -------------------------------------------------------------------------------------------


def _words(seed: object, name: str) -> Any:
    """The upper and the lower half of an integer of 64 bits, as a key."""
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool):
        number = int(seed)
        if not -(1 << 63) <= number < 1 << 64:
            raise OverflowError(f"random.{name}: {number} does not fit into 64 bits{here()}")
        return np.array([number >> 32 & _MASK, number & _MASK], _WORD)
    if not isinstance(seed, Tracer):
        seed = np.asarray(seed)
    if dtype_of(seed).kind not in "iu" or shape_of(seed):
        found = f"{dtype_of(seed)}{list(shape_of(seed))}"
        raise TypeError(f"random.{name}: one integer is needed, got {found}{here()}")
    if not isinstance(seed, Tracer):
        return _words(int(seed), name)
    wide = cast(seed, np.uint64)
    return cast(fnp.stack([wide >> np.uint64(32), wide & np.uint64(_MASK)]), _WORD)


def key(seed: object) -> Any:
    """A key of a seed.

    Args:
      seed: an integer of 64 bits, which may be traced.

    Returns:
      ``uint32[2]``: the upper and the lower half of the seed.

    Raises:
      TypeError: the seed is not one integer.
      OverflowError: it has more than 64 bits.

    Example:
      >>> key(3)
      array([0, 3], dtype=uint32)
    """
    return _words(seed, "key")


def split(key: Any, num: object = 2) -> Any:
    """New keys that are independent of each other; do not use the old one any more.

    Args:
      key: a key.
      num: how many, or a shape.

    Returns:
      ``uint32[*num, 2]``; iterate over it, or map over it with ``ft.vmap``.

    Raises:
      TypeError: ``key`` is no key, ``num`` no shape.

    Example:
      >>> first, second = split(np.array([0, 3], np.uint32))
      >>> bool((first == second).any())
      False
    """
    shape = checked_shape("split", num)
    return pairs(blocks(checked_key("split", key), shape))


def fold_in(key: Any, data: Any) -> Array:
    """A new key of a key and an integer, such as the number of a step.

    Args:
      key: a key.
      data: an integer of 0 to 2**32 - 1; it may be traced, and is taken modulo 2**32 then.

    Returns:
      ``uint32[2]``.

    Raises:
      TypeError: ``key`` is no key, ``data`` not one integer.
      OverflowError: ``data`` is negative or has more than 32 bits.

    Example:
      >>> steps = [fold_in(np.array([0, 3], np.uint32), i) for i in range(3)]
      >>> len({tuple(step) for step in steps})
      3
    """
    checked_key("fold_in", key)
    if not isinstance(data, Tracer) and not 0 <= int(data) < 1 << 32:
        raise OverflowError(
            f"fold_in(key, data): data must be an integer of 0 to 2**32 - 1, but is {int(data)}; "
            "fold in its halves one after the other"
        )
    word = _words(data, "fold_in")[1]
    return pairs(threefry2x32(key[0], key[1], np.uint32(0), word))


def pairs(packed: Any) -> Any:
    """Packed blocks as words along a last axis."""
    packed = packed if isinstance(packed, Tracer) else np.asarray(packed)
    return cast(fnp.stack([packed >> np.uint64(32), packed & np.uint64(_MASK)], -1), _WORD)


# bits -------------------------------------------------------------------------------------------


@remembered(8)
def _small_counters(size: int) -> np.ndarray:
    counters = np.arange(size, dtype=_WORD)
    counters.flags.writeable = False
    return counters


def _counters(size: int) -> tuple[Any, np.ndarray]:
    """Both words of the numbers below ``size``."""
    if size <= _SHARED_COUNTERS:
        return np.uint32(0), _small_counters(size)
    if size <= _MASK:
        return np.uint32(0), np.arange(size, dtype=_WORD)
    numbers = np.arange(size, dtype=np.uint64)
    return (numbers >> np.uint64(32)).astype(_WORD), numbers.astype(_WORD)


def blocks(key: Any, shape: Shape) -> Any:
    """64 bits per element."""
    high, low = _counters(math.prod(shape))
    return fnp.reshape(threefry2x32(key[0], key[1], high, low), shape)


def raw_bits(key: object, shape: Shape, width: int) -> Any:
    """``width`` bits per element, as an unsigned integer."""
    packed = blocks(key, shape)
    if width == 64:
        return packed
    return cast((packed >> np.uint64(32)) ^ packed, np.dtype(f"uint{width}"))


def bits(key: object, shape: object = (), dtype: DTypeLike | None = np.uint32) -> Any:
    """Uniformly distributed bits.

    Args:
      key: a key.
      shape: shape of the result.
      dtype: an unsigned integer dtype.

    Returns:
      Array of ``shape`` and ``dtype``.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` not unsigned.

    Example:
      >>> bits(np.array([0, 3], np.uint32), (2,)).dtype
      dtype('uint32')
    """
    checked_key("bits", key)
    dtype = np.dtype(dtype)
    if dtype.kind != "u":
        raise TypeError(f"random.bits: dtype must be an unsigned integer, got {dtype}{here()}")
    return raw_bits(key, checked_shape("bits", shape), 8 * dtype.itemsize)


def without_derivative(x: Any) -> Any:
    """The value without its derivative."""
    return bind(stop_gradient_p, x)[0] if isinstance(x, Tracer) else x
