"""What SciPy does to sparse matrices in the memory of their data, with traced entries.

Here: the methods, which ``plain.sparse.names`` gives to ``TracedSparse``. Not here: that class
(``plain.sparse.matrices``), writing to places (``plain.sparse.writing``).

Layer: ``plain.sparse``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.arrays.writes import register_view
from functrans.core.dispatch import Tracer
from functrans.plain.sparse.matrices import TracedSparse
from functrans.plain.sparse.parts import refused
from functrans.plain.sparse.patterns import truth_of
from functrans.plain.views import first_and


class _InMemory:
    """Methods of ``TracedSparse``."""

    def sum_duplicates(self: Any) -> None:
        """Add up entries at the same place, and order them."""
        if self.format == "coo":
            self._become_canonical()
        else:
            self._ordered_by("sum_duplicates")

    def sort_indices(self: Any) -> None:
        """Order the entries of rows (columns)."""
        self._ordered_by("sort_indices")

    def _ordered_by(self: Any, name: str) -> None:
        def change(numbers: object) -> Any:
            getattr(numbers, name)()
            return numbers

        moved = self._moved(change)
        if all(map(np.array_equal, self.sites, moved.sites)):
            return
        self._check_alone(name)
        self._become_like(moved)

    def _become_canonical(self: Any) -> None:
        """Order triplets, of which SciPy makes new arrays the first time."""
        if self._is_canonical:
            return

        def change(numbers: Any) -> Any:
            numbers.sum_duplicates()
            return numbers

        self._become_like(self._moved(change))
        self._is_canonical = True

    def _check_alone(self: Any, name: str) -> None:
        """Refuse what SciPy does in the memory that others see, in another order."""
        is_shared = self._is_shared or self._has_sharers()
        if is_shared and self.format in ("csc", "csr"):
            raise refused(
                f".{name}() where others share the data", f"call it on a copy: A.copy().{name}()"
            )

    def eliminate_zeros(self: Any) -> None:
        """Drop entries that are zero."""
        n, truth = self._stored_count(), truth_of(self.entries)
        if truth is not None and n is not None and truth[:n].all():
            return
        is_in_memory = self.format in ("csc", "csr")
        is_moved = is_in_memory and self._is_shared
        if is_in_memory and self._has_sharers():
            raise refused(
                ".eliminate_zeros() where other matrices (transposes, real parts) share the arrays",
                "call it on a copy: A = A.copy(); A.eliminate_zeros()",
            )
        is_moved = is_moved and isinstance(self.entries, Tracer)
        if n is None:
            self._become_like(self._rearranged(None, None))
        elif truth is None:
            told = self._rearranged(None, None)
            if is_moved:
                told = told._with(_moved_somewhere(self.entries, n))
                told._stored, told._is_shared = None, True
            self._become_like(told)
        else:
            truth[n:] = False
            told = self._told(truth)
            if is_moved:
                told = self._moved_together(told, np.flatnonzero(truth))
            self._become_like(told)

    def _moved_together(self: Any, told: TracedSparse, kept: np.ndarray) -> TracedSparse:
        """A matrix of some of the entries, which are moved to the front in the memory, as SciPy's.

        Args:
          told: of the same entries in memory of its own.
          kept: the numbers of these.
        """
        memory, n, k = self.entries, len(self._visible("data")[0]), len(kept)
        told = told.copy()
        memory[:k] = told.entries[:k]
        if k < n // 2:  # SciPy copies what is left
            return told
        sites, rest = told.sites, told.entries[k:]
        form = (self.kind, self.format, self.shape, sites)
        result = TracedSparse(*form, first_and(memory, k, rest), None, k)
        result._is_shared = True
        return result


def _moved_somewhere(memory: Any, n: int) -> Any:
    """Move entries that are not zero to the front where it is not known which; they stay a view.

    Args:
      memory: the entries, which are changed.
      n: how many of them SciPy stores.
    """
    before, front = memory.copy(), memory[:n]
    truth = front != 0
    count, rank = np.sum(truth), np.cumsum(truth) - 1
    by_rank = np.argsort(~truth, kind="stable")
    is_copied = count < n // 2  # SciPy copies what is left
    memory[:n] = np.where(np.arange(n) < count, front[by_rank], front)
    own = np.concatenate([truth, np.zeros(len(before) - n, bool)])
    place = np.concatenate([np.maximum(rank, 0), np.zeros(len(before) - n, np.intp)])

    def read(base: Any) -> Any:
        return np.where(own, np.where(is_copied, before, base[place]), before)

    def write(base: Any, view: Any) -> Any:
        raise refused(
            "writing to entries after .eliminate_zeros() where others share the data",
            "call it on a copy: A = A.copy(); A.eliminate_zeros()",
        )

    return register_view(memory, read(memory), read, write)


IN_MEMORY = {name: method for name, method in vars(_InMemory).items() if callable(method)}
"""Methods of ``TracedSparse``, by name."""
