"""Writes that meet, for numba.

Here: functions of arrays. Not here: names and compilation (``kernels.table``), the primitives
(``primitives.gather_scatter``, ``primitives.scatter_reduce``).

Layer: ``kernels``.
"""

from __future__ import annotations

from functrans.core.values import Array


def scatter_add(out: Array, v: Array, places: Array, offsets: Array, v_step: int) -> None:
    """``out[places[i] + offsets[j]] += v[i, j]``, one after the other; ``v_step`` 0: of one."""
    for i in range(len(places)):
        place, first = places[i], i * len(offsets) * v_step
        for j in range(len(offsets)):
            at = place + offsets[j]
            out[at] = out[at] + v[first + j * v_step]


def scatter_multiply(out: Array, v: Array, places: Array, offsets: Array, v_step: int) -> None:
    """``out[places[i] + offsets[j]] *= v[i, j]``, one after the other; ``v_step`` 0: by one."""
    for i in range(len(places)):
        place, first = places[i], i * len(offsets) * v_step
        for j in range(len(offsets)):
            at = place + offsets[j]
            out[at] = out[at] * v[first + j * v_step]


def neighbour_writes(places: Array, latest: Array, before: Array, after: Array) -> None:
    """The previous and the next write to each place; ``latest``, ``before`` and ``after`` are -1.

    Places that are no indices of ``latest`` do not count.
    """
    for i in range(len(places)):
        place = places[i]
        if 0 <= place < len(latest):
            previous = latest[place]
            latest[place] = i
            if previous >= 0:
                before[i] = previous
                after[previous] = i
