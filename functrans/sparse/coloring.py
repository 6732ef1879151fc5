"""Colourings of sparsity patterns: which columns or rows a derivative is taken in at once.

Here: ``Coloring``, ``color_pattern``, their check. Not here: the greedy loops
(``kernels.colorings``), what is evaluated with a colouring (``sparse.compression``).

=================  ================================================================================
kind               entries are read directly from
=================  ================================================================================
``column``         products with columns added up: columns of one colour share no row
``row``            products with rows added up: rows of one colour share no column
``bidirectional``  both: dense rows by products with rows, the other entries by products with
                   columns, or dense columns and the other way round, whichever is less work
``star``           products of a symmetric matrix: of the two places of an entry, one is alone in
                   its row with its colour
=================  ================================================================================

Layer: ``sparse``. Reference: Gebremedhin, Manne & Pothen, What color is your Jacobian?, SIAM
Review 47 (2005); Coleman & Verma, The efficient computation of sparse Jacobian matrices using
automatic differentiation, SIAM J. Sci. Comput. 19 (1998); Hossain & Steihaug, Computing a sparse
Jacobian matrix by rows and columns, Optim. Methods Softw. 10 (1998).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.kernels import colorings as loops
from functrans.kernels import table as kernels
from functrans.records import dataclass

KINDS = ("column", "row", "bidirectional", "star")
ORDERS = ("auto", "natural", "largest_first", "incidence_degree", "random")

_STEP_S = 8e-8
"""What a kernel saves per step of a colouring loop."""


@dataclass(frozen=True, slots=True, eq=False)
class Coloring:
    """A colouring of the columns and rows of a pattern.

    Attributes:
      kind: ``"column"``, ``"row"``, ``"bidirectional"`` or ``"star"``.
      shape: of the matrix.
      column_colors: colour of each column from 0, ``i64[columns]``; -1 for a column that no entry
        is read from. ``None`` where there are products with rows only.
      row_colors: the same for rows; ``None`` where there are products with columns only.
    """

    kind: str
    shape: tuple[int, int]
    column_colors: np.ndarray | None = None
    row_colors: np.ndarray | None = None

    @property
    def n_column_colors(self) -> int:
        """Number of products with columns: forward mode."""
        return _count(self.column_colors)

    @property
    def n_row_colors(self) -> int:
        """Number of products with rows: reverse mode."""
        return _count(self.row_colors)

    @property
    def n_colors(self) -> int:
        """Number of products that an evaluation needs."""
        return self.n_column_colors + self.n_row_colors

    def __repr__(self) -> str:
        """``Coloring('star', 3 colors, 10000 x 10000)``."""
        return f"Coloring({self.kind!r}, {self.n_colors} colors, {self.shape[0]} x {self.shape[1]})"

    def check(self, pattern: object) -> None:
        """Refuse a colouring from which some entry of a pattern cannot be read.

        Args:
          pattern: anything that ``scipy.sparse.csr_array`` accepts.

        Raises:
          ShapeError: the shapes differ.
          ValueError: two columns or rows of one colour overlap; names an entry.
        """
        matrix = as_pattern(pattern, "Coloring.check")
        _check_shape(self, matrix.shape)
        sources(matrix, self)


def _count(colors: np.ndarray | None) -> int:
    return 0 if colors is None or not len(colors) else int(colors.max()) + 1


def _check_shape(coloring: Coloring, shape: tuple[int, ...]) -> None:
    if tuple(coloring.shape) != tuple(shape):
        raise ShapeError(
            f"the coloring is for a matrix of shape {coloring.shape}, the pattern has shape {shape}"
            f"{here()}; color the pattern anew with ft.sparse.color_pattern"
        )


def as_pattern(pattern: object, who: str) -> Any:
    """A pattern as a ``csr_array`` of booleans with sorted columns, each once.

    Raises:
      TypeError: it is no matrix.
    """
    from scipy.sparse import csr_array

    try:
        matrix = csr_array(pattern)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{who}: a pattern is a matrix (scipy.sparse or dense), got "
            f"{type(pattern).__name__}: {error}{here()}"
        ) from None
    if matrix.ndim != 2:
        raise TypeError(f"{who}: a pattern is a matrix, got shape {matrix.shape}{here()}")
    if matrix.has_canonical_format and matrix.dtype == bool:
        return matrix
    matrix = csr_array(
        (np.ones(matrix.nnz, bool), matrix.indices, matrix.indptr), shape=matrix.shape, copy=True
    )
    matrix.sum_duplicates()
    return matrix


# the choice -------------------------------------------------------------------------------------


def color_pattern(
    pattern: object, kind: str = "column", order: str = "auto", seed: int = 0
) -> Coloring:
    """Colour the columns or rows of a pattern, greedily.

    Args:
      pattern: anything that ``scipy.sparse.csr_array`` accepts; stored entries count, also zeros.
      kind: ``"column"``, ``"row"``, ``"bidirectional"``, ``"star"`` (symmetric patterns), or
        ``"auto"``: of the first three the one with the least work, where a colour of rows, which
        is a product in reverse mode, counts twice.
      order: in which order: ``"natural"``, ``"largest_first"`` (most neighbours first),
        ``"incidence_degree"`` (most coloured neighbours first), ``"random"``; ``"auto"`` takes the
        best of the first three, and stops at the first that has the fewest colours possible.
      seed: of the random order.

    Returns:
      The colouring.

    Raises:
      TypeError: ``pattern`` is no matrix.
      ShapeError: a star colouring of a matrix that is not square.
      ValueError: unknown ``kind`` or ``order``; the pattern is not symmetric.

    Example:
      >>> import numpy as np
      >>> color_pattern(np.eye(4) + np.eye(4, k=1)).column_colors
      array([0, 1, 0, 1])
    """
    if kind not in (*KINDS, "auto"):
        raise ValueError(f"color_pattern: kind must be one of {KINDS} or 'auto', got {kind!r}")
    if order not in ORDERS:
        raise ValueError(f"color_pattern: order must be one of {ORDERS}, got {order!r}")
    matrix = as_pattern(pattern, "color_pattern")
    if kind == "column":
        return Coloring(kind, matrix.shape, _columns(matrix, order, seed))
    if kind == "row":
        return Coloring(kind, matrix.shape, None, _columns(_transposed(matrix), order, seed))
    if kind == "bidirectional":
        return _bidirectional(matrix, order, seed)
    if kind == "star":
        return _star(matrix, order, seed)
    return _cheapest(matrix, order, seed)


def _cheapest(matrix: Any, order: str, seed: int) -> Coloring:
    """The one of three kinds with the least work; ties in the order column, row, both."""
    columns = color_pattern(matrix, "column", order, seed)
    other = _transposed(matrix)
    best = columns
    if _ROW_COST * _longest(other) < work(columns):
        best = min(columns, color_pattern(matrix, "row", order, seed), key=work)
    if min(_dense_bound(matrix)[1], _dense_bound(other)[1]) < work(best):
        best = min(best, _bidirectional(matrix, order, seed), key=work)
    return best


_ROW_COST = 2
"""What a product with rows, in reverse mode, costs in products with columns."""


def work(coloring: Coloring) -> int:
    """The work of an evaluation, in products with columns."""
    return coloring.n_column_colors + _ROW_COST * coloring.n_row_colors


def _longest(matrix: Any) -> int:
    """Most entries in a row: fewer colours of columns are impossible."""
    return int(np.diff(matrix.indptr).max(initial=0))


def _transposed(matrix: Any) -> Any:
    """The transpose as a ``csr_array``."""
    found = matrix.T.tocsr()
    found.sort_indices()
    return found


def _best(
    order: str, bound: int, run: Callable[[str], np.ndarray], orders: tuple[str, ...]
) -> np.ndarray:
    """The colouring in an order, or the best one of several."""
    if order != "auto":
        return run(order)
    best: np.ndarray | None = None
    for name in orders:
        found = run(name)
        if best is None or _count(found) < _count(best):
            best = found
        if _count(best) <= bound:
            break
    assert best is not None
    return best


def _columns(matrix: Any, order: str, seed: int, of: np.ndarray | None = None) -> np.ndarray:
    """Colours of columns none of which share a row with another one of their colour.

    Args:
      matrix: the pattern.
      order: see ``color_pattern``.
      seed: see ``color_pattern``.
      of: the columns to colour; by default all.
    """
    graph = _Graph(matrix)
    bound = _longest(matrix)

    def run(name: str) -> np.ndarray:
        places = graph.order(name, seed)
        if of is not None:
            keep = np.zeros(matrix.shape[1], bool)
            keep[of] = True
            places = places[keep[places]]
        return graph.color(places)

    return _best(order, bound, run, ("natural", "largest_first", "incidence_degree"))


class _Graph:
    """A pattern by rows and by columns, in the form of the kernels."""

    def __init__(self, matrix: Any) -> None:
        by_column = _transposed(matrix)
        self.n_rows, self.n_cols = matrix.shape
        self.row_ptr, self.row_ind = _int64(matrix.indptr), _int64(matrix.indices)
        self.col_ptr, self.col_ind = _int64(by_column.indptr), _int64(by_column.indices)

    @functools.cached_property
    def lengths(self) -> np.ndarray:
        """Entries per row."""
        return np.diff(self.row_ptr)

    @functools.cached_property
    def n_steps(self) -> int:
        """Pairs of entries in one row: what a pass over all neighbours costs."""
        return int((self.lengths**2).sum())

    @functools.cached_property
    def degrees(self) -> np.ndarray:
        """Per column how many entries its rows have."""
        counts = np.concatenate([[0], np.cumsum(self.lengths[self.col_ind])])
        degrees: np.ndarray = counts[self.col_ptr[1:]] - counts[self.col_ptr[:-1]]
        return degrees

    def order(self, name: str, seed: int) -> np.ndarray:
        """The columns in an order."""
        n = self.n_cols
        if name == "natural":
            return np.arange(n)
        if name == "random":
            return np.random.default_rng(seed).permutation(n)
        if name == "largest_first":
            return np.argsort(-self.degrees, kind="stable")
        order, degree = np.zeros(n, np.int64), np.zeros(n, np.int64)
        head = np.full(n + 1, -1)
        if n:
            head[0] = 0
        after, before, seen = (np.full(n, -1) for _ in range(3))
        _run(
            loops.incidence_order,
            self.n_steps * 4,
            (self.row_ptr, self.row_ind, self.col_ptr, self.col_ind),
            (order, degree, head, after, before, seen),
        )
        return order

    def color(self, order: np.ndarray) -> np.ndarray:
        """The greedy colouring of the columns in an order."""
        colors, mark = np.full(self.n_cols, -1), np.full(self.n_cols, -1)
        _run(
            loops.column_coloring,
            self.n_steps,
            (self.row_ptr, self.row_ind, self.col_ptr, self.col_ind, _int64(order)),
            (colors, mark),
        )
        return colors

    def star(self, order: np.ndarray) -> np.ndarray:
        """The greedy star colouring of a symmetric pattern in an order."""
        colors, mark = np.full(self.n_cols, -1), np.full(self.n_cols + 1, -1)
        _run(
            loops.star_coloring,
            self.n_steps,
            (self.row_ptr, self.row_ind, _int64(order)),
            (colors, mark),
        )
        return colors


def _int64(array: Array) -> np.ndarray:
    return np.ascontiguousarray(array, np.int64)


def _run(
    loop: Callable[..., None],
    n_steps: int,
    given: tuple[np.ndarray, ...],
    written: tuple[np.ndarray, ...],
) -> None:
    """Run a loop compiled, or in Python where compiling it would not pay yet."""
    if kernels.pays(loop.__name__, n_steps * _STEP_S):
        kernels.function(loop.__name__)(*given, *written)
        return
    lists = [array.tolist() for array in (*given, *written)]
    loop(*lists)
    for array, values in zip(written, lists[len(given) :], strict=True):
        array[:] = values


# both directions --------------------------------------------------------------------------------


def _bidirectional(matrix: Array, order: str, seed: int) -> Coloring:
    by_rows = _with_dense_rows(matrix, order, seed)
    columns, rows = _with_dense_rows(_transposed(matrix), order, seed)
    first = Coloring("bidirectional", matrix.shape, by_rows[1], by_rows[0])
    second = Coloring("bidirectional", matrix.shape, columns, rows)
    return min(first, second, key=work)


def _with_dense_rows(matrix: Any, order: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Colours of some dense rows, and of the columns of the rest."""
    bound, _ = _dense_bound(matrix)
    dense = np.flatnonzero(np.diff(matrix.indptr) > bound)
    rows = _columns(_transposed(matrix), order, seed, dense)
    rest = _without_rows(matrix, dense)
    used = np.unique(rest.indices)
    return rows, _columns(rest, order, seed, used)


def _dense_bound(matrix: Any) -> tuple[int, int]:
    """With how many entries a row counts as dense, and how many colours that promises.

    The number of denser rows and the bound itself, the fewest colours that the columns of the rest
    can have, are least together.
    """
    lengths = np.diff(matrix.indptr)
    bounds = np.unique(np.concatenate([[0], lengths]))
    longer = len(lengths) - np.searchsorted(np.sort(lengths), bounds, side="right")
    best = int(np.argmin(bounds + longer))
    return int(bounds[best]), int((bounds + longer)[best])


def _without_rows(matrix: Any, rows: np.ndarray) -> Any:
    """The pattern with the entries of some rows left out."""
    from scipy.sparse import csr_array

    lengths = np.diff(matrix.indptr)
    is_out = np.zeros(len(lengths), bool)
    is_out[rows] = True
    kept = ~np.repeat(is_out, lengths)
    indptr = np.concatenate([[0], np.cumsum(np.where(is_out, 0, lengths))])
    indices = matrix.indices[kept]
    return csr_array((np.ones(len(indices), bool), indices, indptr), shape=matrix.shape)


# symmetric --------------------------------------------------------------------------------------


def _star(matrix: Any, order: str, seed: int) -> Coloring:
    n, m = matrix.shape
    if n != m:
        raise ShapeError(
            f"color_pattern: a star coloring needs a square matrix, got {matrix.shape}{here()}"
        )
    if not is_symmetric(matrix):
        raise ValueError(
            f"color_pattern: a star coloring needs a symmetric pattern{here()}; take the union "
            "with the transpose, or kind='column'"
        )
    graph = _Graph(matrix)

    def run(name: str) -> np.ndarray:
        if name == "distance-2":  # a star colouring too, and sometimes a better one
            return graph.color(graph.order("natural", seed))
        return graph.star(graph.order(name, seed))

    # A path of three has two colours at least, a path of four three.
    bound = min(_longest(matrix), 3)
    orders = ("natural", "distance-2", "largest_first", "incidence_degree")
    return Coloring("star", matrix.shape, _best(order, bound, run, orders))


def is_symmetric(matrix: Any) -> bool:
    """Whether a pattern is its own transpose."""
    other = _transposed(matrix)
    return np.array_equal(matrix.indptr, other.indptr) and np.array_equal(
        matrix.indices, other.indices
    )


# where entries are read -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Sources:
    """Where the entries of a pattern, in the order of rows, are read.

    Attributes:
      is_row: entries that are read from a product with rows; the others from one with columns.
      color: of the product.
      place: element of the product: a row for products with columns, a column for the others.
    """

    is_row: np.ndarray
    color: np.ndarray
    place: np.ndarray


def sources(matrix: Any, coloring: Coloring) -> Sources:
    """Where each entry of a pattern is read.

    Raises:
      ValueError: the colouring does not allow it; names an entry.
    """
    n_rows, n_cols = matrix.shape
    column = matrix.indices.astype(np.int64)
    row = np.repeat(np.arange(n_rows), np.diff(matrix.indptr))
    is_row = np.zeros(len(column), bool)
    is_found = np.zeros(len(column), bool)
    color, place = np.zeros(len(column), np.int64), row.copy()
    if coloring.column_colors is not None:
        own = np.asarray(coloring.column_colors, np.int64)[column]
        is_found = _alone(row, own, n_rows)
        color = own
        if coloring.kind == "star" and not np.all(is_found):
            other = np.asarray(coloring.column_colors, np.int64)[row]
            mirrored = ~is_found & _alone(column, other, n_cols)
            color = np.where(mirrored, other, own)
            place = np.where(mirrored, column, row)
            is_found = is_found | mirrored
    if coloring.row_colors is not None:
        other = np.asarray(coloring.row_colors, np.int64)[row]
        is_row = ~is_found & _alone(column, other, n_cols)
        color = np.where(is_row, other, color)
        place = np.where(is_row, column, place)
        is_found = is_found | is_row
    if not np.all(is_found):
        bad = int(np.argmin(is_found))
        raise ValueError(
            f"the entry ({row[bad]}, {column[bad]}) cannot be read with this {coloring!r}"
            f"{here()}: another entry of the pattern adds to it in every product. Color the "
            "pattern itself with ft.sparse.color_pattern"
        )
    return Sources(is_row, color, place)


def _alone(line: np.ndarray, color: np.ndarray, n_lines: int) -> np.ndarray:
    """Which entries have a colour that no other entry of their line has."""
    top = int(color.max(initial=-1)) + 1
    if not top:
        return np.zeros(len(line), bool)
    key = line * np.int64(top) + color
    if n_lines * top <= 16 * len(line) + 1024:
        counts = np.bincount(key[color >= 0], minlength=n_lines * top)[np.maximum(key, 0)]
    else:
        _, inverse, found = np.unique(key, return_inverse=True, return_counts=True)
        counts = found[inverse]
    result: np.ndarray = (counts == 1) & (color >= 0)
    return result
