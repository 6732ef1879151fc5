"""How many rows or columns of a Jacobian are evaluated at once.

Here: the options ``chunk_size``, ``memory_bytes`` and ``progress`` of Jacobians, and the plan that
is made of them. Not here: the evaluation (``transforms.jacobian``), the estimates that the plan is
made from (``passes.work``), reports (``core.progress``).

Layer: ``transforms``.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from functrans.core.progress import tqdm_class
from functrans.core.source import here
from functrans.core.state import current_config
from functrans.records import dataclass

_ALLOCATOR = 4 / 3
"""Memory that the process takes per byte in arrays: free blocks are not all used again."""


@dataclass(frozen=True, slots=True)
class Chunking:
    """What a user asked for.

    Attributes:
      chunk_size: rows or columns at once; ``None`` for as many as fit.
      memory_bytes: what result, residuals and one chunk may take together; ``None`` for the budget
        of the configuration, which each of result and chunk may take.
      progress: as ``asked`` of ``core.progress.Progress``.
    """

    chunk_size: int | None = None
    memory_bytes: int | None = None
    progress: Any = False

    def lanes(self, label: str, n: int, lane_bytes: int, fixed_bytes: int) -> int:
        """How many rows or columns to evaluate at once.

        Args:
          label: what is evaluated, for messages.
          n: how many there are.
          lane_bytes: memory of one.
          fixed_bytes: memory of the result and of what was recorded.

        Raises:
          MemoryError: not even one fits ``memory_bytes``.
        """
        if not n:
            return 1
        if self.memory_bytes is not None:
            left = self.memory_bytes - fixed_bytes
            if left < lane_bytes:
                raise MemoryError(
                    f"{label}: memory_bytes={self.memory_bytes} is too small{here()}: the result "
                    f"and what was recorded for it take {fixed_bytes} bytes, and each row or "
                    f"column {lane_bytes} more. Give {fixed_bytes + lane_bytes} bytes at least, or "
                    "use products with vectors (ft.jvp, ft.vjp, ft.hvp)."
                )
        else:
            left = current_config.get().jacobian_memory_bytes
        if self.chunk_size is not None:
            return self.chunk_size
        return max(1, min(n, int(left / (max(1, lane_bytes) * _ALLOCATOR))))


def lanes_in_cache(n: int, lane_bytes: int) -> int:
    """How many rows or columns a compiled program evaluates at once, where all would fit.

    Batches of all of them would go to memory and back with every operation. Chunks that stay in the
    cache of a processor do not, and they run on several threads.

    Args:
      n: how many there are.
      lane_bytes: memory of one.
    """
    step = min(_CACHE_BYTES // max(1, lane_bytes), -(-n // _FEWEST_CHUNKS))
    return step if n * lane_bytes > 2 * _CACHE_BYTES and step >= _FEWEST_LANES else n


_CACHE_BYTES = 2 << 20
"""What the arrays of a chunk may take together; few of them are used at the same time."""
_FEWEST_CHUNKS = 8
_FEWEST_LANES = 16
"""Rows or columns from which matrix products with a chunk are as fast as with all."""


def check_chunking(who: str, chunk_size: Any, memory_bytes: Any, progress: object) -> Chunking:
    """The options of a Jacobian, checked.

    Raises:
      ValueError: ``chunk_size`` is neither ``"auto"`` nor a positive integer, or ``memory_bytes``
        neither ``None`` nor one.
      TypeError: ``progress`` is neither a bool nor a function.
      ImportError: ``progress=True`` and tqdm is not installed.
    """
    size = check_chunk_size(who, chunk_size)
    if memory_bytes is not None:
        given = memory_bytes
        try:
            memory_bytes = operator.index(given)
        except TypeError:
            is_number = isinstance(given, float) and math.isfinite(given)
            memory_bytes = int(given) if is_number else 0
        if memory_bytes < 1:
            raise ValueError(
                f"{who}: memory_bytes must be None or a positive number of bytes, got "
                f"{given!r}{here()}"
            )
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise TypeError(
            f"{who}: progress must be a bool or a function of (done, total), got "
            f"{type(progress).__name__}{here()}"
        )
    if progress is True:
        tqdm_class(who)
    return Chunking(size, memory_bytes, progress or False)


def check_chunk_size(who: str, chunk_size: int | str | None) -> int | None:
    """A chunk size given by the user; ``None`` for ``"auto"``.

    Raises:
      ValueError: it is neither ``"auto"`` nor a positive integer.
    """
    if chunk_size == "auto":
        return None
    try:
        size = 0 if isinstance(chunk_size, bool) else operator.index(chunk_size)  # type: ignore[arg-type]  # what else is refused
    except TypeError:
        size = 0
    if size < 1:
        raise ValueError(
            f"{who}: chunk_size must be 'auto' or a positive integer, got {chunk_size!r}"
        )
    return size
