"""The random bits of a key and a counter: Threefry-2x32 with 20 rounds.

Here: the primitive ``threefry2x32``, elementwise from two words of key and two of counter to the
two words of the block, packed into one. Not here: keys and distributions (``functrans.random``).

It is one primitive, and not a hundred additions, shifts and exclusive ors, for the sake of the
interpreter: ``impl`` goes through blocks that stay in the cache. Compiled, it is that arithmetic,
fused with what reads it.

Layer: ``primitives``. Source: Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1,
2, 3 (SC'11), with the constants of Random123.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dispatch import elementwise
from functrans.core.lowering import Pointwise
from functrans.core.primitive import Primitive, nondifferentiable
from functrans.core.values import Array
from functrans.primitives.family import broadcast_shapes, elementwise_primitive

if TYPE_CHECKING:
    from functrans.emitter.numbers import Number, Numbers

_PARITY = 0x1BD11BDA
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_GROUPS = 5
_BLOCK = 4096
_WORD, _PAIR = np.dtype(np.uint32), np.dtype(np.uint64)


def _rounds(
    keys: tuple[np.ndarray, ...], x0: np.ndarray, x1: np.ndarray, shifted: np.ndarray
) -> None:
    """All rounds, in place in ``x0`` and ``x1``; ``keys`` are the three words of the schedule."""
    x0 += keys[0]
    x1 += keys[1]
    for group in range(_GROUPS):
        for distance in _ROTATIONS[group % 2]:
            x0 += x1
            np.right_shift(x1, np.uint32(32 - distance), out=shifted)
            np.left_shift(x1, np.uint32(distance), out=x1)
            x1 |= shifted
            x1 ^= x0
        x0 += keys[(group + 1) % 3]
        x1 += keys[(group + 2) % 3]
        x1 += np.uint32(group + 1)


def _threefry(k0: object, k1: object, c0: object, c1: object) -> np.ndarray:
    """The blocks of broadcast words."""
    k0, k1, c0, c1 = (np.asarray(word) for word in (k0, k1, c0, c1))
    shape = np.broadcast_shapes(k0.shape, k1.shape, c0.shape, c1.shape)
    out = np.empty(shape, _PAIR)
    flat = out.reshape(-1)
    is_shared = k0.size == k1.size == 1
    key_shape = (1,) if is_shared else shape
    keys = [
        np.broadcast_to(word.reshape(()) if is_shared else word, key_shape) for word in (k0, k1)
    ]
    keys = [word.reshape(-1) for word in keys]
    keys.append(keys[0] ^ keys[1] ^ np.uint32(_PARITY))
    counters = [np.broadcast_to(word, shape).reshape(-1) for word in (c0, c1)]
    x0, x1, shifted = np.empty((3, min(_BLOCK, flat.size)), _WORD)
    for start in range(0, flat.size, _BLOCK):
        part = slice(start, min(start + _BLOCK, flat.size))
        n = part.stop - start
        x0[:n], x1[:n] = counters[0][part], counters[1][part]
        schedule = tuple(word if is_shared else word[part] for word in keys)
        _rounds(schedule, x0[:n], x1[:n], shifted[:n])
        flat[part] = x0[:n]
        flat[part] <<= np.uint64(32)
        flat[part] |= x1[:n]
    return out


def _threefry_aval(*avals: ShapedArray) -> tuple[ShapedArray, ...]:
    if any(aval.dtype != _WORD for aval in avals):
        text = ", ".join(map(str, avals))
        raise TypeError(f"threefry2x32: all four words must be uint32, got {text}")
    return (ShapedArray(broadcast_shapes("threefry2x32", [aval.shape for aval in avals]), _PAIR),)


def _threefry_lower(e: Numbers, k0: Number, k1: Number, c0: Number, c1: Number) -> Number:
    # They come in the dtype of the result.
    k0, k1, c0, c1 = (e.cast(word, _WORD) for word in (k0, k1, c0, c1))
    parity = e.like(k0, _PARITY)
    keys = (k0, k1, e.bitwise_xor(e.bitwise_xor(k0, k1), parity))
    x0, x1 = e.add(c0, k0), e.add(c1, k1)
    for group in range(_GROUPS):
        for distance in _ROTATIONS[group % 2]:
            x0 = e.add(x0, x1)
            left = e.left_shift(x1, e.like(x1, distance))
            right = e.right_shift(x1, e.like(x1, 32 - distance))
            x1 = e.bitwise_xor(e.bitwise_or(left, right), x0)
        x0 = e.add(x0, keys[(group + 1) % 3])
        x1 = e.add(e.add(x1, keys[(group + 2) % 3]), e.like(x1, group + 1))
    high = e.cast(x0, _PAIR)
    return e.bitwise_or(e.left_shift(high, e.like(high, 32)), e.cast(x1, _PAIR))


threefry2x32_p: Primitive = elementwise_primitive(
    "threefry2x32",
    _threefry,
    nondifferentiable,
    (),
    "abcd",
    abstract_eval=_threefry_aval,
    lower=Pointwise(_threefry_lower, 110),
)

PRIMITIVES: tuple[Primitive, ...] = (threefry2x32_p,)


def threefry2x32(k0: object, k1: object, c0: object, c1: object) -> Array:
    """The block of a key and a counter.

    Args:
      k0: first word of the key, uint32.
      k1: second word of the key, uint32.
      c0: first word of the counter, uint32.
      c1: second word of the counter, uint32; all four broadcast.

    Returns:
      The two words of the block, the first one in the upper half of a uint64.

    Raises:
      TypeError: a word is not uint32.
      ShapeError: the words do not broadcast.
    """
    return elementwise(threefry2x32_p, k0, k1, c0, c1)
