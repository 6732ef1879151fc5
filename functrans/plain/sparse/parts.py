"""Parts of sparse matrices with traced entries: places, entries, entries that are written.

Here: vectors of entries, what a matrix is but for its entries (``Places``), entries by place while
they are written one by one (``Written``). Not here: the matrices (``plain.sparse.matrices``).

Layer: ``plain.sparse``.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans.core.dispatch import Tracer, bind, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.primitives.gather_scatter import accumulate_p

FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
KINDS = ("matrix", "array")


@functools.lru_cache(maxsize=1)
def sparse_library() -> Any:
    """SciPy's module, which is imported when it is needed."""
    import scipy.sparse.linalg

    return scipy.sparse


def scipy_class(kind: str, layout: str) -> type:
    """SciPy's class of a kind (``"matrix"``, ``"array"``) and format."""
    return getattr(sparse_library(), f"{layout}_{kind}")


def refused(what: str, advice: str) -> UnsupportedOperationError:
    """The error for an operation of traced sparse matrices that is not supported."""
    return UnsupportedOperationError(
        f"{what} of a sparse matrix with traced entries{here()} is not supported; {advice}"
    )


def pooled(arrays: list[Any]) -> Array:
    """Some vectors in one."""
    if len(arrays) == 1:
        return arrays[0]
    if not any(isinstance(x, Tracer) for x in arrays):
        return np.concatenate(arrays)
    return fnp.concatenate(arrays)


def accumulated(values: Array, places: np.ndarray, n: int) -> Array:
    """Sums of the values with the same place, for the places ``0 ... n - 1``."""
    return bind(accumulate_p, values, places, shape=(n,), axes=(0,), mode="clip")[0]


def merged(coords: tuple[np.ndarray, ...], shape: tuple[int, ...], data: Array) -> tuple[Any, Any]:
    """Coordinates that are all different, and sums of the entries."""
    flat = np.ravel_multi_index(coords, shape) if len(coords[0]) else np.zeros(0, np.intp)
    places, inverse = np.unique(flat, return_inverse=True)
    if len(places) == len(flat):
        return coords, data
    data = accumulated(data, inverse.astype(np.intp), len(places))
    return tuple([c.astype(np.intp) for c in np.unravel_index(places, shape)]), data


class Places:
    """Kind, format, shape and places of the entries of a matrix: all but the entries."""

    __slots__ = ("coords", "format", "kind", "shape", "stored")

    def __init__(
        self, kind: str, layout: str, shape: Any, coords: tuple[Array, ...], stored: Any
    ) -> None:
        self.kind, self.format, self.shape, self.coords = kind, layout, shape, coords
        self.stored = stored

    def __eq__(self, other: object) -> bool:
        """Whether all are the same."""
        return isinstance(other, Places) and (
            (self.kind, self.format, self.shape, self.stored)
            == (other.kind, other.format, other.shape, other.stored)
            and all(map(np.array_equal, self.coords, other.coords))
        )

    def __hash__(self) -> int:
        """Of what is not an array."""
        return hash((self.kind, self.format, self.shape, len(self.coords[0])))


# entries that are written one by one ------------------------------------------------------------


class Written:
    """Entries by place, while they are written: numbers in a list of vectors.

    Attributes:
      numbers: by row and column, the number of the entry.
      pieces: vectors of entries, and where their numbers start.
      begun: the number of the first entry that is written.
      drops_zeros: whether zeros that are written are no entries.
    """

    __slots__ = ("begun", "drops_zeros", "numbers", "pieces", "starts", "total")

    def __init__(self, coords: tuple[np.ndarray, ...], data: Any, drops_zeros: bool) -> None:
        self.drops_zeros = drops_zeros
        keys = zip(*(c.tolist() for c in coords), strict=True)
        self.numbers: dict[tuple[int, ...], int] = {key: i for i, key in enumerate(keys)}
        self.pieces = [data]
        self.starts = [0]
        self.begun = self.total = len(self.numbers)

    def add(self, piece: object) -> int:
        """Add a vector of entries; the number of its first one."""
        start = self.total
        self.pieces.append(piece)
        self.starts.append(start)
        self.total += shape_of(piece)[0]
        return start

    def take(self, numbers: np.ndarray) -> Array:
        """The entries of some numbers."""
        of_piece = np.searchsorted(self.starts, numbers, side="right") - 1
        needed, inverse = np.unique(of_piece, return_inverse=True)
        sizes = [shape_of(self.pieces[i])[0] for i in needed]
        offsets = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.intp)
        local = numbers - np.asarray(self.starts, np.intp)[of_piece] + offsets[inverse]
        return pooled([self.pieces[i] for i in needed])[local]


class SharedState:
    """What matrices of lists and keys share that SciPy makes of one another, and else is theirs."""

    __slots__ = (
        "_coords", "_dtype", "_entries", "_is_canonical", "_is_shared", "_memory", "_seen",
        "_sharers", "_stored", "_written", "blocksize",
    )  # fmt: skip

    _coords: tuple[np.ndarray, ...]
    _entries: Any
    _written: Written | None
    _memory: tuple[Any, np.ndarray] | None
    _stored: int | None
    blocksize: tuple[int, int] | None


def of_state(name: str) -> property:
    """The property of matrices that reads and writes a part of the state."""

    def put(self: Any, value: object) -> None:
        setattr(self._state, name, value)

    return property(lambda self: getattr(self._state, name), put)
