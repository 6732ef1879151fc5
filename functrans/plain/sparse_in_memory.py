"""What SciPy does to sparse matrices in the memory of their data, with traced entries.

Here: the methods, which ``plain.sparse_names`` gives to ``TracedSparse``. Not here: that class
(``plain.sparse``), writing to places (``plain.sparse_writing``).

Layer: ``plain``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.plain.sparse import TracedSparse
from functrans.plain.sparse_parts import refused
from functrans.plain.sparse_patterns import truth_of
from functrans.plain.views import first_and
from functrans.trace import Tracer


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
        def change(numbers: Any) -> Any:
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
        if self._is_shared and self.format in ("csc", "csr"):
            raise refused(
                f".{name}() where others share the data", f"call it on a copy: A.copy().{name}()"
            )

    def eliminate_zeros(self: Any) -> None:
        """Drop entries that are zero."""
        n, truth = self._stored_count(), truth_of(self.entries)
        if n is None or truth is None:
            self._become_like(self._rearranged(None, None))
        elif not truth[:n].all():
            truth[n:] = False
            told = self._told(truth)
            if (
                self._is_shared
                and self.format in ("csc", "csr")
                and isinstance(told.entries, Tracer)
            ):
                told = self._moved_together(told, np.flatnonzero(truth))
            self._become_like(told)

    def _moved_together(self: Any, told: TracedSparse, kept: np.ndarray) -> TracedSparse:
        """A matrix of some of the entries, which are moved to the front in the memory, as SciPy's.

        Args:
          told: of the same entries in memory of its own.
          kept: the numbers of these.
        """
        memory, n, k = self.entries, len(self._visible("data")[0]), len(kept)
        memory[:k] = told.entries[:k]
        if k < n // 2:  # SciPy copies what is left
            return told
        sites, rest = told.sites, told.entries[k:]
        form = (self.kind, self.format, self.shape, sites)
        result = TracedSparse(*form, first_and(memory, k, rest), None, k)
        result._is_shared = True
        return result


IN_MEMORY = {name: method for name, method in vars(_InMemory).items() if callable(method)}
"""Methods of ``TracedSparse``, by name."""
