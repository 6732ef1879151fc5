"""The arithmetic of binomial checkpointing: which steps run again, which states are kept.

Here: plain functions of integers, and the policy ``Binomial``. Not here: the loops that follow such
a schedule (``control.revolve``).

A chain of ``length`` steps is reversed with room for ``n`` states, the first one among them. From a
kept state, and with ``s`` places for it and what comes after it, the chain is cut where both parts
can be reversed with equally few repetitions: with ``beta(s, r) = binomial(s + r, s)``, the longest
chain that ``s`` states reverse when no step is run more than ``r`` times.

Layer: ``control``. Reference: Griewank & Walther, Algorithm 799: revolve, ACM Transactions on
Mathematical Software 26 (2000), 19-45; Stumm & Walther, New algorithms for optimal online
checkpointing, SIAM Journal on Scientific Computing 32 (2010), 836-854.
"""

from __future__ import annotations

import operator
from math import comb

from functrans.records import dataclass

_LEVELS = 48
"""How often the distance between states that are kept may double: more steps than can be run."""


@dataclass(frozen=True, slots=True)
class Binomial:
    """The policy of ``checkpoint_policies.binomial``: loops keep ``n`` states for reverse mode."""

    n: int

    def __call__(self, *args: object, **params: object) -> bool:
        """Refuse to be asked about single equations, as other policies are.

        Raises:
          TypeError: always.
        """
        raise TypeError(
            "checkpoint_policies.binomial: it says how loops are reversed, not which results are "
            "stored, so it does not combine with other policies; checkpoint the loop's body with "
            "those instead"
        )


def binomial(n: int) -> Binomial:
    """A policy that reverses loops with a bounded number of stored states.

    In reverse mode, each ``scan``, ``fori_loop`` and ``while_loop`` of the function (not those in
    their bodies) keeps ``n`` of its states, and one more to work with, whatever the number of
    iterations, and runs the iterations between them again. Where that number is known beforehand,
    so few iterations run again as is possible (``revolve``). What is outside of loops is stored as
    without the policy.

    Args:
      n: states that are kept at a time.

    Raises:
      TypeError: ``n`` is no integer.
      ValueError: it is not positive.

    Example:
      >>> import functrans as ft
      >>> def power(x):
      ...     return ft.lax.fori_loop(0, 100, lambda i, y: x * y, 1.0)
      >>> ft.grad(ft.checkpoint(power, policy=binomial(5)))(1.0)
      array(100.)

    Reference: Griewank & Walther, Algorithm 799: revolve, ACM TOMS 26 (2000).
    """
    number = operator.index(n)
    if number < 1:
        raise ValueError(f"checkpoint_policies.binomial: n must be at least 1, got {number}")
    return Binomial(number)


def repetitions(length: int, n: int) -> int:
    """The least ``r`` such that ``n`` states reverse so many steps, each run ``r`` times at most.

    Example:
      >>> repetitions(10, 3)
      2
    """
    r = 0
    while comb(n + r, n) < length:
        r += 1
    return r


def cut(length: int, n: int) -> int:
    """After how many of ``length >= 2`` steps to keep the next state, with ``n >= 2`` places.

    Example:
      >>> cut(10, 3)
      4
    """
    r = repetitions(length, n)
    behind = comb(n + r - 2, n) if r >= 2 else 0
    return max(1, behind, length - comb(n - 1 + r, n - 1))


def first_positions(length: int, n: int) -> list[int]:
    """Steps before which states are kept in the first sweep.

    Example:
      >>> first_positions(10, 3)
      [0, 4, 7]
    """
    positions, place = [0], 0
    while length - place > 1 and n - len(positions) + 1 > 1:
        place += cut(length - place, n - len(positions) + 1)
        positions.append(place)
    return positions


def online_stores(n: int) -> tuple[list[int], list[int]]:
    """Where states are kept of a chain whose length is not known before it ends.

    States at a distance are kept; when all places are taken, every second one is given up, and the
    distance doubles.

    Args:
      n: places.

    Returns:
      The steps before which a state is kept, and the place of each, in order.

    Example:
      >>> steps, places = online_stores(4)
      >>> steps[:8], places[:8]
      ([0, 1, 2, 3, 4, 6, 8, 12], [0, 1, 2, 3, 1, 3, 2, 3])
    """
    held = list(range(n))
    steps, places = list(range(n)), list(range(n))
    if n == 1:
        return steps, places
    distance, following = 1, n
    for _ in range(_LEVELS):
        kept, free = held[::2], held[1::2]
        distance *= 2
        following = len(kept) * distance
        held = kept
        for place in free:
            steps.append(following)
            places.append(place)
            held = [*held, place]
            following += distance
    return steps, places
