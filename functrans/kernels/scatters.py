"""Writes that meet, for numba.

Here: functions that make the kernels, given ``numba.carray`` and ``numba.njit``. Not here: names
and compilation (``kernels.table``), the primitives (``primitives.gather_scatter``,
``primitives.scatter_reduce``).

Layer: ``kernels``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _scatter(carray: Any, combine: Callable[[Any, Any], Any]) -> Callable[..., None]:
    """``out[places[i] + offsets[j]]`` combined with ``v[i, j]``, one after the other."""

    def kernel(
        out_at: object,
        v_at: object,
        places_at: object,
        offsets_at: object,
        size: int,
        count: int,
        width: int,
        v_step: int,
    ) -> None:
        out = carray(out_at, size)
        v = carray(v_at, max((count * width - 1) * v_step + 1, 1))
        places, offsets = carray(places_at, count), carray(offsets_at, width)
        for i in range(count):
            place, first = places[i], i * width * v_step
            for j in range(width):
                at = place + offsets[j]
                out[at] = combine(out[at], v[first + j * v_step])

    return kernel


def scatter_add(carray: object, njit: Any) -> Callable[..., None]:
    """The kernel of ``np.add.at``."""
    return _scatter(carray, njit(lambda x, y: x + y))


def scatter_multiply(carray: object, njit: Any) -> Callable[..., None]:
    """The kernel of ``np.multiply.at``."""
    return _scatter(carray, njit(lambda x, y: x * y))


def neighbour_writes(carray: Any, njit: object) -> Callable[..., None]:
    """The previous and the next write to each place; ``latest``, ``before`` and ``after`` are -1.

    Places outside ``[0, extent)`` do not count.
    """

    def kernel(
        places_at: object,
        latest_at: object,
        before_at: object,
        after_at: object,
        count: int,
        extent: int,
    ) -> None:
        places, latest = carray(places_at, count), carray(latest_at, extent)
        before, after = carray(before_at, count), carray(after_at, count)
        for i in range(count):
            place = places[i]
            if 0 <= place < extent:
                previous = latest[place]
                latest[place] = i
                if previous >= 0:
                    before[i] = previous
                    after[previous] = i

    return kernel
