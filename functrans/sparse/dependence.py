"""Index sets: which elements of an argument each element of a value depends on.

Here: ``Table``, ``Term``, ``Dependence`` and what happens to them when elements are moved, united
and combined. Not here: the rules of primitives (``sparse.rules``), the walk through a program
(``sparse.pattern``).

A value of any shape has one set per element. Sets are rows of a table in compressed form; a value
refers to them by an integer array of its own shape, its *places*: 0 is the empty set, ``r + 1`` row
``r``. So what only moves elements moves places. The set of an element is the union of the sets that
a few terms, pairs of a table and places, give it; unions are put together only where there get to
be too many terms. Two tables hold no memory: the identity (row ``r`` is ``{r}``) and the full one,
whose only row is everything.

Layer: ``sparse``. Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 7
(index domains).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.state import current_config
from functrans.primitives.structural import kept_shape
from functrans.records import dataclass

INDEX = np.dtype(np.int32)
"""Dtype of places and columns."""
MAX_ELEMENTS = int(np.iinfo(np.int32).max)

_FEW = 4
"""Up to this many elements a reduction gives each of them a term of its own."""
_MANY = 6
"""From this many terms on they are packed."""
_TOO_MANY = 12
"""From this many terms on they are united."""
_ENTRY_BYTES = 24
"""What an entry of a union needs while it is being made."""

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Sets of columns, row by row; compares by identity.

    Attributes:
      n_columns: number of elements of the argument.
      indptr: where the rows begin and end; ``None`` for the identity and the full table.
      indices: columns of all rows, increasing within a row.
      is_full: the only row is everything.
    """

    n_columns: int
    indptr: Any = None
    indices: Any = None
    is_full: bool = False

    @property
    def is_identity(self) -> bool:
        """Row ``r`` is ``{r}``."""
        return self.indptr is None and not self.is_full

    def counts(self, places: np.ndarray) -> np.ndarray:
        """How many columns the sets at some places (none of them empty) have."""
        if self.is_full:
            return np.full(places.shape, self.n_columns)
        if self.indptr is None:
            return np.ones(places.shape, np.int64)
        counts: np.ndarray = self.indptr[places] - self.indptr[places - 1]
        return counts

    def columns(self, places: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The columns of the sets at some places, one set after the other."""
        if self.is_full:
            return np.tile(np.arange(self.n_columns, dtype=INDEX), len(places))
        if self.indptr is None:
            return (places - 1).astype(INDEX, copy=False)
        starts = np.cumsum(counts) - counts
        shift = np.repeat(self.indptr[places - 1] - starts, counts)
        columns: np.ndarray = self.indices[np.arange(len(shift)) + shift]
        return columns


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """Sets of a table, one per element.

    Attributes:
      table: the sets.
      places: integers of the shape of the value.
    """

    table: Table
    places: np.ndarray


Dependence = tuple[Term, ...]
"""The set of an element is the union of what the terms give; no term: nothing depends."""


class Sets:
    """The operations on the sets of one walk.

    Attributes:
      n_columns: number of elements of the argument.
      what: what the pattern is of, for messages.
    """

    def __init__(self, n_columns: int, what: str) -> None:
        if n_columns >= MAX_ELEMENTS:
            raise ValueError(f"{what}: the argument has {n_columns} elements, more than 2**31 - 2")
        self.n_columns = n_columns
        self.what = what
        self.identity = Table(n_columns)
        self.full = Table(n_columns, is_full=True)

    def arguments(self, shapes: Sequence[Shape]) -> list[Dependence]:
        """The dependence of the parts of the argument: each element on itself."""
        start = 1
        found: list[Dependence] = []
        for shape in shapes:
            n = math.prod(shape)
            places = np.arange(start, start + n, dtype=INDEX).reshape(shape)
            found.append((Term(self.identity, places),) if n else ())
            start += n
        return found

    # places --------------------------------------------------------------------------------------

    def move(self, dep: Dependence, function: Callable[[np.ndarray], np.ndarray]) -> Dependence:
        """The dependence of a value whose elements are some of another one's, or zero.

        Args:
          dep: of the operand.
          function: does to integers what is done to the elements.
        """
        return tuple([Term(term.table, function(term.places)) for term in dep])

    def move_together(
        self,
        deps: Sequence[Dependence],
        shapes: Sequence[Shape],
        function: Callable[..., Sequence[np.ndarray]],
        shapes_out: Sequence[Shape],
    ) -> list[Dependence]:
        """``move`` of several operands to several results.

        Args:
          deps: of the operands.
          shapes: of the operands.
          function: does to arrays of integers what is done to the operands.
          shapes_out: of the results.
        """
        found: list[list[Term]] = [[] for _ in shapes_out]
        for slot in range(max(map(len, deps), default=0)):
            terms = [dep[slot] if slot < len(dep) else None for dep in deps]
            table, places = self._one_table(terms)
            moved = function(
                *[
                    np.zeros(shape, INDEX) if p is None else np.asarray(p)
                    for p, shape in zip(places, shapes, strict=True)
                ]
            )
            for own, out in zip(found, moved, strict=True):
                own.append(Term(table, out))
        return [
            self.union([tuple(own)], shape) for own, shape in zip(found, shapes_out, strict=True)
        ]

    def _one_table(self, terms: Sequence[Term | None]) -> tuple[Table, list[np.ndarray | None]]:
        """Terms of different values over one table."""
        tables = list({id(t.table): t.table for t in terms if t is not None}.values())
        if len(tables) == 1:
            return tables[0], [None if t is None else t.places for t in terms]
        joined, offsets = self._stack(tables)
        places: list[np.ndarray | None] = []
        for term in terms:
            if term is None:
                places.append(None)
                continue
            offset = INDEX.type(offsets[id(term.table)])
            places.append(np.where(term.places > 0, term.places + offset, 0).astype(INDEX))
        return joined, places

    def _stack(self, tables: Sequence[Table]) -> tuple[Table, dict[int, int]]:
        """One table with the rows of several, and where each begins."""
        starts, indices, offsets = [np.zeros(1, np.int64)], [], {}
        n_rows = n_entries = 0
        for table in tables:
            offsets[id(table)] = n_rows
            if table.indptr is not None:
                indptr, columns = table.indptr, table.indices
            elif table.is_full:
                indptr = np.array([0, self.n_columns])
                columns = np.arange(self.n_columns, dtype=INDEX)
            else:
                indptr = np.arange(self.n_columns + 1)
                columns = np.arange(self.n_columns, dtype=INDEX)
            starts.append(indptr[1:] + n_entries)
            indices.append(columns)
            n_rows += len(indptr) - 1
            n_entries += len(columns)
        return Table(self.n_columns, np.concatenate(starts), np.concatenate(indices)), offsets

    # unions --------------------------------------------------------------------------------------

    def union(self, deps: Sequence[Dependence], shape: Shape) -> Dependence:
        """The union, element by element, of dependences that broadcast to a shape."""
        terms: list[Term] = []
        full: Any = None
        for dep in deps:
            for term in dep:
                places = np.broadcast_to(term.places, shape)
                if not places.any():
                    continue
                if term.table is self.full:
                    full = places if full is None else np.maximum(full, places)
                elif not any(_is_same(term.table, places, other) for other in terms):
                    terms.append(Term(term.table, places))
        if full is not None:
            rest = [Term(t.table, np.where(full > 0, INDEX.type(0), t.places)) for t in terms]
            terms = [t for t in rest if t.places.any()]
        if len(terms) > _MANY:
            terms = _packed(terms, shape)
        if len(terms) > _TOO_MANY:
            terms = list(self._unite(terms, shape))
        if full is not None:
            terms.append(Term(self.full, full))
        return tuple(terms)

    def _unite(self, terms: Sequence[Term], shape: Shape) -> Dependence:
        size = math.prod(shape)
        everyone = np.arange(size)
        pairs = [(everyone, term.places.reshape(-1), term.table) for term in terms]
        return self.collect(pairs, shape)

    def collect(
        self, pairs: Sequence[tuple[np.ndarray, np.ndarray, Table]], shape: Shape
    ) -> Dependence:
        """The dependence of a value whose elements depend on several sets each.

        Args:
          pairs: numbers of elements of the result, places of sets that they depend on, the table.
          shape: of the result.

        Raises:
          MemoryError: the sets do not fit the budget.
        """
        size = math.prod(shape)
        full = np.zeros(size, bool)
        owners, columns = [], []
        total = 0
        for owner, places, table in pairs:
            kept = places > 0
            owner, places = owner[kept], places[kept]
            if table is self.full:
                full[owner] = True
                continue
            if not table.is_identity:
                owner, places = _distinct(owner, places, size)
            counts = table.counts(places)
            total += int(counts.sum())
            self.check(total, shape)
            owners.append(owner if table.is_identity else np.repeat(owner, counts))
            columns.append(table.columns(places, counts))
        terms: list[Term] = []
        if owners:
            owner, column = np.concatenate(owners), np.concatenate(columns)
            if full.any():
                kept = ~full[owner]
                owner, column = owner[kept], column[kept]
            indptr, indices = compressed(owner, column, (size, self.n_columns))
            counts = np.diff(indptr)
            full |= (counts == self.n_columns) & (self.n_columns > 1)
            places = np.where((counts > 0) & ~full, np.arange(1, size + 1), 0).astype(INDEX)
            if places.any():
                terms.append(Term(Table(self.n_columns, indptr, indices), places.reshape(shape)))
        if full.any():
            terms.append(Term(self.full, full.astype(INDEX).reshape(shape)))
        return tuple(terms)

    def check(self, n_entries: int, shape: Shape) -> None:
        """Refuse sets that do not fit the budget.

        Args:
          n_entries: number of their columns.
          shape: of the value that they belong to.

        Raises:
          MemoryError: with the estimate and the budget.
        """
        budget = current_config.get().jacobian_memory_bytes
        if n_entries * _ENTRY_BYTES > budget:
            raise MemoryError(
                f"{self.what}: an intermediate value of shape {shape} depends on {n_entries} pairs "
                f"of elements, which need {n_entries * _ENTRY_BYTES / 2**30:.1f} GiB, more than "
                f"the budget of {budget / 2**30:.1f} GiB. The derivative is dense there: use "
                "products with vectors (ft.jvp, ft.hvp), or raise the budget with "
                "ft.config(jacobian_memory_bytes=...)"
            )

    # reductions ----------------------------------------------------------------------------------

    def reduce(self, dep: Dependence, axes: Sequence[int], keepdims: bool = False) -> Dependence:
        """The dependence of a reduction over axes, in which every element counts."""
        if not dep:
            return ()
        shape = dep[0].places.shape
        rest = [axis for axis in range(len(shape)) if axis not in axes]
        extents = tuple([shape[axis] for axis in rest])
        n = math.prod([shape[axis] for axis in axes])
        kept = kept_shape(shape, tuple(axes))
        size = math.prod(extents)
        moved = [
            (term.table, term.places.transpose([*rest, *axes]).reshape(size, n)) for term in dep
        ]
        if n <= _FEW:
            terms = [
                Term(table, places[:, k].reshape(extents))
                for table, places in moved
                for k in range(n)
            ]
            found = self.union([tuple(terms)], extents)
        else:
            owner = np.repeat(np.arange(size), n)
            pairs = [(owner, places.reshape(-1), table) for table, places in moved]
            found = self.collect(pairs, extents)
        return self.move(found, lambda places: places.reshape(kept)) if keepdims else found

    def everything(self, deps: Sequence[Dependence]) -> Dependence:
        """The union of all elements of some values, as the dependence of a scalar."""
        parts = [self.reduce(dep, range(dep[0].places.ndim)) for dep in deps if dep]
        return self.union(parts, ())

    def rows(self, dep: Dependence, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
        """The sets of all elements in row-major order: ``indptr``, ``indices``."""
        size = math.prod(shape)
        terms = [Term(t.table, np.broadcast_to(t.places, shape)) for t in dep]
        if len(terms) == 1 and terms[0].table.is_identity:
            places = terms[0].places.reshape(-1)
            kept = places > 0
            indptr = np.concatenate([[0], np.cumsum(kept)])
            return indptr, (places[kept] - 1).astype(INDEX, copy=False)
        owners, columns = [], []
        total = 0
        for term in terms:
            places = term.places.reshape(-1)
            owner = np.flatnonzero(places)
            counts = term.table.counts(places[owner])
            total += int(counts.sum())
            self.check(total, shape)
            owners.append(np.repeat(owner, counts))
            columns.append(term.table.columns(places[owner], counts))
        if not owners:
            return np.zeros(size + 1, np.int64), np.zeros(0, INDEX)
        return compressed(np.concatenate(owners), np.concatenate(columns), (size, self.n_columns))


def is_equal(first: Dependence, second: Dependence, sets: Sets, shape: Shape) -> bool:
    """Whether two dependences of one shape are the same sets."""
    a, b = sets.rows(first, shape), sets.rows(second, shape)
    return np.array_equal(a[0], b[0]) and np.array_equal(a[1], b[1])


def compressed(
    owner: np.ndarray, column: np.ndarray, shape: tuple[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs as compressed rows: sorted, each once."""
    from scipy.sparse import coo_array

    matrix = coo_array((np.ones(len(owner), bool), (owner, column)), shape=shape).tocsr()
    matrix.sum_duplicates()
    return matrix.indptr.astype(np.int64), matrix.indices.astype(INDEX, copy=False)


def _distinct(owner: np.ndarray, places: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """The different pairs of element and place."""
    if not len(places):
        return owner, places
    top = int(places.max())
    if size == 1:
        seen = np.zeros(top + 1, bool)
        seen[places] = True
        found = np.flatnonzero(seen)
        return np.zeros(len(found), np.int64), found
    indptr, indices = compressed(owner, places, (size, top + 1))
    return np.repeat(np.arange(size), np.diff(indptr)), indices


def _is_same(table: Table, places: np.ndarray, other: Term) -> bool:
    """Whether a term is there already."""
    if other.table is not table:
        return False
    if other.places is places:
        return True
    size = places.size
    return (
        places.flat[0] == other.places.flat[0]
        and places.flat[size - 1] == other.places.flat[size - 1]
        and np.array_equal(places, other.places)
    )


def _packed(terms: Sequence[Term], shape: Shape) -> list[Term]:
    """The same sets by as few terms as the element with most of them has."""
    tables = list({id(term.table): term.table for term in terms}.values())
    found: list[Term] = []
    for table in tables:
        own = [term.places for term in terms if term.table is table]
        if len(own) == 1:
            found.append(Term(table, own[0]))
            continue
        stacked = np.stack(own)
        stacked.sort(axis=0)
        stacked[1:][stacked[1:] == stacked[:-1]] = 0
        stacked.sort(axis=0)
        found.extend(Term(table, row.reshape(shape)) for row in stacked if row.any())
    return found
