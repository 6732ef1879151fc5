"""What matrices of keys (``dok_matrix``) have of a dict, with traced entries.

Here: the methods, which ``plain.sparse.names`` gives to ``TracedSparse``. Not
here: that class (``plain.sparse.matrices``).

Layer: ``plain.sparse``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans.plain.memory import settled
from functrans.plain.sparse.dense import array_of
from functrans.plain.sparse.matrices import TracedSparse, is_sparse
from functrans.plain.sparse.parts import scipy_class
from functrans.plain.sparse.writing import write

_NOTHING = object()


def _of_keys(self: Any, name: str) -> dict[Any, int]:
    """Numbers of the entries by key."""
    self._check_format(name, "dok")
    sites = self._visible(name)
    keys = zip(*(c.tolist() for c in sites), strict=True) if len(sites) > 1 else sites[0].tolist()
    return {key: i for i, key in enumerate(keys)}


class _Keys:
    """Methods of ``TracedSparse``."""

    def keys(self: Any) -> Any:
        """Places of the entries."""
        return _of_keys(self, "keys").keys()

    def values(self: Any) -> Any:
        """The entries."""
        return self._items("values").values()

    def items(self: Any) -> Any:
        """Places and entries."""
        return self._items("items").items()

    def _items(self: Any, name: str) -> dict[Any, Any]:
        numbers, entries = _of_keys(self, name), self.entries
        return {key: entries[i] for key, i in numbers.items()}

    def __len__(self: Any) -> int:
        """Number of entries; of other formats there is no length, as in SciPy."""
        if self.format == "dok":
            return len(_of_keys(self, "len()"))
        raise TypeError("sparse array length is ambiguous; use getnnz()")

    def __iter__(self: Any) -> Iterator[Any]:
        """What SciPy's give: rows, or keys where its matrices of keys give these."""
        if self.format == "dok" and _gives_keys(self.kind):
            return iter(self.keys())
        return (self[i] for i in range(self.shape[0]))

    def __contains__(self: Any, key: object) -> bool:
        """Whether there is an entry."""
        return key in _of_keys(self, "in")

    def get(self: Any, key: object, default: object = 0.0) -> Any:
        """The entry at a place, or another value."""
        numbers = _of_keys(self, "get")
        if key not in numbers:
            model = scipy_class(self.kind, "dok")(self.shape)
            model.get(key)  # which checks it
            parts = key if isinstance(key, tuple) else (key,)
            parts = tuple([int(k) % n for k, n in zip(parts, self.shape, strict=True)])
            key = parts if self.ndim > 1 else parts[0]
        return self.entries[numbers[key]] if key in numbers else default

    def setdefault(self: Any, key: object, default: object = None, /) -> Any:
        """The entry at a place, which becomes another value if there is none."""
        numbers = _of_keys(self, "setdefault")
        if key in numbers:
            return self.entries[numbers[key]]
        self.update({key: default})
        return default

    def update(self: Any, val: Any) -> None:
        """Write entries, zeros as well."""
        self._check_format("update", "dok")
        pairs = val.items() if isinstance(val, dict) or is_sparse(val) else val
        for key, value in list(settled(pairs) if type(pairs) is list else pairs):
            scipy_class(self.kind, "dok")(self.shape).update({key: 1.0})  # which checks the key
            rows, cols = (np.asarray(k) for k in key)
            write(self, rows, cols, array_of(value), keeps_zeros=True)

    def pop(self: Any, key: object, default: object = _NOTHING, /) -> Any:
        """Remove an entry, which is given."""
        numbers = _of_keys(self, "pop")
        if key not in numbers:
            if default is _NOTHING:
                raise KeyError(key)
            return default
        value = self.entries[numbers[key]]
        self._remove(numbers[key])
        return value

    def popitem(self: Any) -> Any:
        """Remove the last entry, which is given."""
        numbers = _of_keys(self, "popitem")
        if not numbers:
            raise KeyError("popitem(): dictionary is empty")
        key = list(numbers)[-1]
        return key, self.pop(key)

    def __delitem__(self: Any, key: object, /) -> None:
        """Remove an entry."""
        self.pop(key)

    def clear(self: Any) -> None:
        """Remove all entries."""
        self._check_format("clear", "dok")
        empty = tuple([c[:0] for c in self.sites])
        self._become(self.kind, "dok", self.shape, empty, np.zeros(0, self.dtype))

    def _remove(self: Any, number: int) -> None:
        order = np.delete(np.arange(len(self.sites[0])), number)
        n = self._stored_count() - 1
        sites = tuple([c[order] for c in self.sites])
        form = (self.kind, "dok", self.shape, sites)
        self._become_like(TracedSparse(*form, self.entries[order], None, n))


def _gives_keys(kind: str) -> bool:
    model = scipy_class(kind, "dok")((1, 2))
    model[0, 1] = 1.0
    return type(next(iter(model))) is tuple


KEYS = {name: method for name, method in vars(_Keys).items() if callable(method)}
"""Methods of ``TracedSparse``, by name."""
