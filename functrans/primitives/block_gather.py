"""Reading a vector at constant indices that repeat a pattern: the entries of a banded matrix.

Here: ``gather_blocks`` and ``find_blocks``, the patterns of an index array. Not here: indices
without a pattern (``gather_scatter``), who looks for patterns (``compiler.bounds``).

A *block* is a run of results whose indices are one index, read, plus offsets that are a part of the
code. Its elements need no index each: they are loaded into vectors (neighbours at once), and stored
as vectors. Places of entries of a chain, a band or a grid by rows fall into few patterns, since a
colouring repeats; blocks of one pattern that follow each other are a range, and the ranges are a
table. What is in no range is read index by index.

Layer: ``primitives``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dispatch import bind, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, linear
from functrans.errors import ShapeError
from functrans.primitives.gather_scatter import accumulate_p, gather_p
from functrans.primitives.index_arrays import read_at
from functrans.primitives.native.index import read_index
from functrans.primitives.native.routine_loops import (
    copy_run,
    load_run,
    most_lanes,
    plus,
    store_run,
)

if TYPE_CHECKING:
    from functrans.emitter.numbers import Number
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

Pattern = tuple[int, ...]
"""Offsets from the first index of a block."""
Range = tuple[int, int, int]
"""Number of the first result, number of blocks, number of the pattern."""

_LONGEST_PERIOD = 128
_BLOCK = 64
"""Elements of a block, at least: what a round costs is shared by them."""
_LANES = 8
"""Of a vector of doubles: blocks of whole vectors are preferred."""
_MAX_PATTERNS = 64
_MAX_RANGES = 4096
_WRITTEN = 256
"""Elements of blocks that are written out: of the patterns that cover most."""
_SMALLEST = 512
"""Indices from which a look is worth it."""
_LOWEST_SHARE = 0.5
"""Of the results that must be in blocks."""
_SAMPLE = 2048


# patterns ---------------------------------------------------------------------------------------


def find_blocks(index: np.ndarray) -> tuple[tuple[Pattern, ...], tuple[Range, ...]] | None:
    """Patterns and ranges of a vector of indices; ``None`` if few of them repeat.

    Indices repeat with period ``p`` where ``index[k + p] - index[k]`` stays the same.

    Example:
      >>> from functrans.primitives.block_gather import find_blocks
      >>> index = np.arange(3000).reshape(3, 1000).T.ravel()  # by columns
      >>> patterns, ranges = find_blocks(index)
      >>> patterns[0][:6], ranges
      ((0, 1000, 2000, 1, 1001, 2001), ((0, 41, 0),))
    """
    if index.ndim != 1 or index.size < _SMALLEST:
        return None
    index = index.astype(np.int64, copy=False)
    period = _period(index)
    if period is None:
        return None
    length = period * -(-_BLOCK // period)
    whole = math.lcm(period, _LANES)
    if -(-_BLOCK // whole) * whole <= 2 * _BLOCK:
        length = -(-_BLOCK // whole) * whole
    patterns: list[Pattern] = []
    phases: dict[bytes, tuple[int, int]] = {}  # steps of a period: pattern, distance to its start
    ranges: list[Range] = []
    steps = np.diff(index)
    taken = 0
    for first, stop in _repeating(index, period, 2 * length):
        first = max(first, taken)
        if stop - first < 2 * length or len(ranges) == _MAX_RANGES:
            continue
        own = steps[first : first + period]
        if own.tobytes() not in phases:
            if len(patterns) == _MAX_PATTERNS:
                continue
            for shift in range(period):
                phases[np.roll(own, -shift).tobytes()] = len(patterns), -shift % period
            block = index[first : first + length] - index[first]
            patterns.append(tuple(block.tolist()))
        number, shift = phases[own.tobytes()]
        start = first + shift
        ranges.append((start, (stop - start) // length, number))
        taken = start + (stop - start) // length * length
    covered = [sum(count for _, count, k in ranges if k == n) for n in range(len(patterns))]
    kept = sorted(range(len(patterns)), key=lambda n: -covered[n])[: max(_WRITTEN // length, 1)]
    if sum(covered[n] for n in kept) * length < _LOWEST_SHARE * index.size:
        return None
    own_ranges = tuple([(first, count, kept.index(k)) for first, count, k in ranges if k in kept])
    return tuple([patterns[n] for n in kept]), own_ranges


def _period(index: np.ndarray) -> int | None:
    """The period that most indices of a sample have; the shortest of those."""
    places = np.linspace(0, max(index.size - _SAMPLE, 0), 4).astype(int)
    parts = [index[place : place + _SAMPLE] for place in sorted(set(places.tolist()))]
    best, best_share = None, _LOWEST_SHARE * sum(len(part) for part in parts)
    for period in range(1, _LONGEST_PERIOD + 1):
        share = 0.0
        for part in parts:
            change = part[period:] - part[:-period]
            share += np.count_nonzero(change[1:] == change[:-1])
        if share > 1.02 * best_share:
            best, best_share = period, share
    return best


def _repeating(index: np.ndarray, period: int, shortest: int) -> Iterator[tuple[int, int]]:
    """Ranges of indices that repeat, from the first to the one behind the last."""
    change = index[period:] - index[:-period]
    ends = np.flatnonzero(change[1:] != change[:-1]) + 1
    firsts = np.concatenate([[0], ends])
    stops = np.concatenate([ends, [len(change)]]) + period
    for k in np.flatnonzero(stops - firsts >= shortest).tolist():
        yield int(firsts[k]), int(stops[k])


# the rules --------------------------------------------------------------------------------------


def _impl(x: Any, index: object, **_: object) -> tuple[Any, ...]:
    return (read_at(x, (index,), (0,), "raise"),)


def _abstract_eval(
    x: ShapedArray, index: ShapedArray, *, patterns: Sequence[Pattern], ranges: Sequence[Range]
) -> tuple[ShapedArray, ...]:
    if len(x.shape) != 1 or len(index.shape) != 1:
        raise ShapeError(
            f"gather_blocks: got shapes {x.shape} and {index.shape}; a vector and a vector of "
            "indices are needed"
        )
    taken = 0
    for first, count, pattern in ranges:
        if first < taken or count < 1 or not 0 <= pattern < len(patterns):
            raise ValueError(f"gather_blocks: the range {(first, count, pattern)} does not fit")
        taken = first + count * len(patterns[pattern])
    if taken > index.shape[0]:
        raise ShapeError(
            f"gather_blocks: the ranges end at {taken}, there are {index.shape[0]} indices"
        )
    return (ShapedArray(index.shape, x.dtype),)


def _check(x: ShapedArray, index: ShapedArray, **_: object) -> None:
    """Offsets are not looked at when it runs: they must be made from the indices themselves."""
    raise ValueError("gather_blocks is made when a program is planned, from indices that are known")


def _transpose(cts: Sequence[Any], operands: Sequence[Any], **_: object) -> tuple[Any, ...]:
    x, index = operands
    params = {"shape": shape_of(x), "axes": (0,), "mode": "raise"}
    return (bind(accumulate_p, cts[0], index, **params)[0], None)


def _batch(size: int, operands: object, dims: object, **_: object) -> tuple[Any, Any]:
    """The rule of ``gather``: elements of a block are no neighbours any more."""
    rule: Any = gather_p.batch
    batched: tuple[Any, Any] = rule(size, operands, dims, axes=(0,), mode="raise")
    return batched


def _lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    patterns: Sequence[Pattern],
    ranges: Sequence[Range],
) -> None:
    """Block by block; then what is between the ranges."""
    x, index = operands
    (out,) = results
    for number, pattern in enumerate(patterns):
        own = [(first, count) for first, count, k in ranges if k == number]
        with _each_range(e, own) as (first, count), e.count(count) as block:
            start = plus(e, first, e.b.mul(block, e.b.index(len(pattern))))
            _read_block(e, x, read_index(e, index, start), out, start, pattern)
    between = _between(patterns, ranges, index.size)
    with _each_range(e, between) as (first, count), e.count(count) as k:
        place = plus(e, first, k)
        copy_run(e, x, read_index(e, index, place), out, place, 1)


def _read_block(
    e: Routines, x: Array, base: Value, out: Array, start: Value, pattern: Pattern
) -> None:
    """The elements of one block, in vectors."""
    at, lanes = 0, most_lanes(x.dtype)
    starts = _windows(pattern, lanes)
    windows = [(first, load_run(e, x, plus(e, base, first), lanes)) for first in starts]
    while at < len(pattern):
        lanes = min(lanes, 1 << ((len(pattern) - at).bit_length() - 1))
        offsets = pattern[at : at + lanes]
        if windows and lanes == windows[0][1].lanes:
            elements = _from_windows(e, windows, offsets)
        else:
            elements = _elements(e, x, base, offsets)
        store_run(e, out, plus(e, start, at), elements)
        at += lanes


def _windows(pattern: Pattern, lanes: int) -> list[int]:
    """First offsets of runs of lanes that cover a pattern; none if single elements are as well.

    They reach from the lowest to the highest offset at most: there the array has elements.
    """
    found: list[int] = []
    last = max(pattern) - lanes + 1
    offsets = sorted(set(pattern))
    for offset in offsets:
        if not found or offset >= found[-1] + lanes:
            found.append(min(offset, last))
    is_worth_it = last >= offsets[0] and 2 * len(found) <= len(offsets)
    return found if is_worth_it else []


def _from_windows(e: Routines, windows: Sequence[tuple[int, Number]], offsets: Pattern) -> Number:
    """Elements picked out of runs, as many as a run has."""
    lanes = len(offsets)
    owner = [max(k for k, (first, _) in enumerate(windows) if first <= o) for o in offsets]
    place = [o - windows[k][0] for o, k in zip(offsets, owner, strict=True)]
    used = list(dict.fromkeys(owner))
    number = windows[used[0]][1]
    if len(used) == 1 and place == list(range(lanes)):
        return number
    parts = list(number.parts)
    for step, window in enumerate(used[1:] or used):
        # what was picked before stays where it is; the first time it is picked out as well
        mask = [
            lanes + place[i] if owner[i] == window else i if step else place[i]
            for i in range(lanes)
        ]
        other = windows[window][1].parts
        parts = [e.b.shuffle(a, b, mask) for a, b in zip(parts, other, strict=True)]
    return type(number)(number.dtype, tuple(parts))


def _elements(e: Routines, x: Array, base: Value, offsets: Pattern) -> Number:
    """Elements at some offsets as the lanes of one number."""
    lanes = len(offsets)
    if offsets == tuple(range(offsets[0], offsets[0] + lanes)):
        return load_run(e, x, plus(e, base, offsets[0]), lanes)
    known = {offset: load_run(e, x, plus(e, base, offset)) for offset in dict.fromkeys(offsets)}
    number = e.splat(known[offsets[0]], lanes)
    parts = list(number.parts)
    for lane, offset in enumerate(offsets):
        if offset != offsets[0]:
            for k, part in enumerate(known[offset].parts):
                parts[k] = e.b.insert(parts[k], part, lane)
    return type(number)(number.dtype, tuple(parts))


def _between(
    patterns: Sequence[Pattern], ranges: Sequence[Range], size: int
) -> list[tuple[int, int]]:
    """First result and number of those that are in no range."""
    found, taken = [], 0
    for first, count, pattern in ranges:
        found.append((taken, first - taken))
        taken = first + count * len(patterns[pattern])
    found.append((taken, size - taken))
    return [(first, count) for first, count in found if count]


@contextmanager
def _each_range(e: Routines, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[Value, Value]]:
    """A loop over a table of pairs of numbers."""
    word = e.b.index(0).type
    firsts = e.b.module.table([first for first, _ in ranges], word)
    counts = e.b.module.table([count for _, count in ranges], word)
    with e.count(len(ranges)) as k:
        place = e.b.mul(k, e.b.index(8))
        yield (e.b.load(word, e.b.offset(firsts, place)), e.b.load(word, e.b.offset(counts, place)))


gather_blocks_p = Primitive(
    "gather_blocks",
    impl=_impl,
    abstract_eval=_abstract_eval,
    check=_check,
    jvp=linear,
    transpose=_transpose,
    batch=_batch,
    lower=Routine(_lower),
    moves=True,
    memory="own",
)

PRIMITIVES: tuple[Primitive, ...] = (gather_blocks_p,)
