"""The row of the primitive of random bits.

The reference works on Python integers, word by word; the published vectors are in
``tests/random/test_keys.py``.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans.errors import ShapeError
from functrans.primitives.threefry import threefry2x32_p
from samples.row import Refused, Rng, Row, Sample

MASK = 0xFFFFFFFF


def _turn(x: int, distance: int) -> int:
    return (x << distance | x >> (32 - distance)) & MASK


def block(k0: int, k1: int, c0: int, c1: int) -> int:
    """One block, as the definition has it: rounds, and a word of the key after every fourth."""
    schedule = (k0, k1, k0 ^ k1 ^ 0x1BD11BDA)
    x, y = (c0 + k0) & MASK, (c1 + k1) & MASK
    distances = (13, 15, 26, 6, 17, 29, 16, 24)
    for number in range(20):
        x = (x + y) & MASK
        y = _turn(y, distances[number % 8]) ^ x
        if number % 4 == 3:
            turn = number // 4 + 1
            x = (x + schedule[turn % 3]) & MASK
            y = (y + schedule[(turn + 1) % 3] + turn) & MASK
    return x << 32 | y


def _reference(*words: Any) -> np.ndarray:
    broadcast = np.broadcast_arrays(*words)
    blocks = [block(*map(int, row)) for row in zip(*(w.ravel() for w in broadcast), strict=True)]
    return np.array(blocks, np.uint64).reshape(broadcast[0].shape)


def _words(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(rng.integers(0, 2**32, shape), np.uint32)


def _make(rng: Rng) -> Iterator[Sample]:
    yield Sample("one", tuple(_words(rng, ()) for _ in range(4)))
    yield Sample(
        "one key", (_words(rng, ()), _words(rng, ()), _words(rng, (5,)), _words(rng, (5,)))
    )
    yield Sample(
        "broadcast", (_words(rng, (2, 1)), _words(rng, (2, 1)), _words(rng, ()), _words(rng, (3,)))
    )
    yield Sample("all", tuple(_words(rng, (2, 3)) for _ in range(4)))
    yield Sample("empty", tuple(_words(rng, (0, 3)) for _ in range(4)))


def _refused_words() -> tuple[Refused, ...]:
    word = np.zeros(2, np.uint32)
    return (
        Refused("signed", (word, word, word, word.astype(np.int32)), TypeError, "must be uint32"),
        Refused("shapes", (word, word, word, np.zeros(3, np.uint32)), ShapeError, "broadcast"),
    )


ROWS: tuple[Row, ...] = (Row(threefry2x32_p, _make, _reference, rtol=0, refused=_refused_words()),)
