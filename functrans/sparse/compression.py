"""Compressed evaluation: the entries of a sparse derivative from few products, in one program.

Here: the program ``leaves -> entries`` that ``jit`` compiles. Not here: patterns, colourings, the
functions that users call (``sparse.api``).

A colour of columns is one product with a direction of zeros and ones, in forward mode (over reverse
mode for a Hessian); a colour of rows one product in reverse mode. Up to ``_AT_ONCE`` products are
batched in one pass; more go through a loop by as many, over the linearized function, so that
intermediate values stay small. The entries are gathered from the products in the order of the
result's ``data``.

Layer: ``sparse``. Reference: Gebremedhin, Manne & Pothen, What color is your Jacobian?, SIAM
Review 47 (2005).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.control.scanning import map as loop_map
from functrans.core.dispatch import aval_of, dtype_of, innermost_staging, shape_of
from functrans.core.jaxpr import Var
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError, ShapeError
from functrans.passes.staging import StagingTracer
from functrans.primitives import elementwise as ew
from functrans.primitives.indexing import gather
from functrans.primitives.movement import concatenate, concatenate_p, stack
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, reshape, reshape_p
from functrans.sparse.coloring import Coloring, sources
from functrans.sparse.pattern import Call
from functrans.sparse.separate import separate_products
from functrans.transforms.forward import jvp, linearize
from functrans.transforms.reverse import vjp
from functrans.transforms.vectorize import vmap

_AT_ONCE = 16
"""Products that are batched in one pass."""
_LONGEST_ROW = 40
"""Entries that are written side by side: those of all rows of a function's unit, as a camera's."""
_WIDEST = 16
"""The longest of the rows that it consists of: the compiler writes such rows as a whole."""
_MOST_BLOCKS = 8
_SHORTEST_BLOCK = 256


def entries_program(
    call: Call,
    order: int,
    matrix: Any,
    coloring: Coloring,
    positions: np.ndarray,
    fixed: Sequence[np.ndarray] = (),
) -> Callable[..., Any]:
    """The function of all leaves that gives the entries of the derivative.

    Args:
      call: the call that it is the derivative of.
      order: 1 for the Jacobian, 2 for the Hessian.
      matrix: the pattern, with sorted rows.
      coloring: fits the pattern.
      positions: numbers of the entries of the pattern, by rows, in the order of the result.
      fixed: arrays that the pattern depends on.

    Raises:
      ValueError: the colouring does not fit the pattern.
    """
    n_rows, n_cols = matrix.shape
    found = sources(matrix, coloring)
    start = coloring.n_column_colors * n_rows
    flat = np.where(
        found.is_row, start + found.color * n_cols + found.place, found.color * n_rows + found.place
    )
    places = flat[positions]
    gathered = as_constant(places)
    columns, rows = coloring.column_colors, coloring.row_colors
    n_columns_colors, n_row_colors = coloring.n_column_colors, coloring.n_row_colors
    derivative = call.derivative(order)
    label = call.label

    def entries(*leaves: Array) -> Any:
        xs = tuple([leaf for leaf, flag in zip(leaves, call.moving, strict=True) if flag])
        avals = [aval_of(x) for x in xs]

        def fun(*own: Array) -> list[Any]:
            outs = derivative(own, leaves)
            _check_results(label, outs, avals, n_rows, is_reverse=n_row_colors > 0)
            return outs

        if not matrix.nnz:
            like = fun(*xs) or xs
            return np.zeros(0, np.result_type(*[dtype_of(value) for value in like]))
        parts = []
        if n_columns_colors:
            assert columns is not None
            apart = _apart(fun, xs, columns, n_columns_colors, fixed)
            if apart is not None and not n_row_colors:
                found_parts = _interleaved(apart, places, n_rows)
                if found_parts is not None:
                    return found_parts
            parts.append(
                _column_products(fun, xs, columns, n_columns_colors)
                if apart is None
                else stack(apart)
            )
        if n_row_colors:
            assert rows is not None
            parts.append(_row_products(fun, xs, rows, n_row_colors))
        dtype = np.result_type(*[dtype_of(part) for part in parts])
        flat = [reshape(cast(p, dtype), (math.prod(shape_of(p)),)) for p in parts]
        return gather(
            flat[0] if len(flat) == 1 else concatenate(flat, 0), (gathered,), (0,), "raise"
        )

    return entries


def as_constant(array: np.ndarray) -> np.ndarray:
    """An array that nobody writes to: the given one, if it is in C order."""
    array = np.ascontiguousarray(array)
    array.flags.writeable = False
    return array


def _check_results(
    label: str, outs: Sequence[Any], avals: Sequence[Any], n_rows: int, *, is_reverse: bool
) -> None:
    """Refuse results that do not fit the pattern, or whose derivative is no matrix."""
    n = sum(math.prod(shape_of(out)) for out in outs)
    if n != n_rows:
        raise ShapeError(
            f"{label}: the results have {n} elements, the pattern has {n_rows} rows{here()}; a "
            "pattern has a row per element of the results and a column per element of the arguments"
        )
    complex_in = [aval.dtype.kind == "c" for aval in avals]
    complex_out = [dtype_of(out).kind == "c" for out in outs]
    if any(complex_in) and not (all(complex_in) and all(complex_out)):
        raise NonDifferentiableError(
            f"{label}: a function of complex arguments has a sparse derivative if it is "
            f"holomorphic, with complex arguments and results throughout{here()}; use real and "
            "imaginary parts as arguments and results"
        )
    if is_reverse and any(complex_out) and not any(complex_in):
        raise NonDifferentiableError(
            f"{label}: complex results of real arguments need products with columns{here()}; use "
            "mode='forward'"
        )


def _column_products(
    fun: Callable[..., list[Any]], xs: tuple[Any, ...], colors: np.ndarray, n_colors: int
) -> Array:
    """Products with the columns of each colour: ``[colours, rows]``."""
    avals = [aval_of(x) for x in xs]
    if n_colors <= _AT_ONCE:

        def product(*seed: Array) -> Any:
            return _joined(jvp(fun, xs, seed)[1])

        return vmap(product)(*_seeds(colors, n_colors, avals))
    _, push = linearize(fun, *xs)
    return _chunked(lambda seed: _joined(push(*seed)), colors, n_colors, avals)


def _apart(
    fun: Callable[..., list[Any]],
    xs: tuple[Any, ...],
    colors: np.ndarray,
    n_colors: int,
    fixed: Sequence[np.ndarray],
) -> list[Any] | None:
    """Products with the columns of each colour, each by a program of its own."""
    if n_colors > _AT_ONCE:
        return None
    avals: list[Any] = [aval_of(x) for x in xs]
    found = separate_products(
        lambda *ts: jvp(fun, xs, ts)[1], avals, _directions(colors, n_colors, avals), fixed
    )
    return None if found is None else [_joined(outs) for outs in found]


def _interleaved(products: Sequence[Any], places: np.ndarray, n_rows: int) -> Any:
    """Entries whose places repeat a pattern, as slices of the products side by side.

    Args:
      products: a vector per colour.
      places: of the entries in all of them, one after the other.
      n_rows: elements of a product.

    Returns:
      The entries, or ``None`` where there is no such pattern.
    """
    vectors = _Products(products)
    blocks = strided_blocks(places, n_rows, vectors.row_length())
    if blocks is None:
        return None
    parts = []
    for offsets, step, count, width in blocks:
        columns = [vectors.column(*divmod(offset, n_rows), step, count) for offset in offsets]
        rows = [stack(columns[i : i + width], 1) for i in range(0, len(columns), width)]
        parts.append(reshape(stack(rows, 1), (count * len(offsets),)))
    return parts[0] if len(parts) == 1 else concatenate(parts, 0)


class _Products:
    """Vectors of a program that is being staged, read behind the equations that made them vectors.

    What is read with a step from an array of rows that was made a vector is a column of the rows,
    which costs nothing; the vector would be in memory.
    """

    def __init__(self, products: Sequence[Any]) -> None:
        self.products = products
        self.staging = innermost_staging()
        eqns = self.staging.eqns
        self.makers = {var: eqn for eqn in eqns for var in eqn.outputs}

    def row_length(self) -> int:
        """Elements of a product that were one row of a result before it was made a vector."""
        for product in self.products:
            eqn = self._maker(product)
            while eqn is not None and eqn.primitive in (concatenate_p, reshape_p):
                shape = eqn.inputs[0].aval.shape
                if len(shape) > 1:
                    return max(1, math.prod(shape[1:]))
                eqn = self.makers.get(eqn.inputs[0])
        return 1

    def column(self, number: int, first: int, step: int, count: int) -> Any:
        """Elements of a product."""
        x = self.products[number]
        while (eqn := self._maker(x)) is not None:
            shape = eqn.inputs[0].aval.shape
            if eqn.primitive is concatenate_p:
                part = self._part(eqn, first, first + step * (count - 1))
                if part is None:
                    break
                x, first = part
            elif eqn.primitive is reshape_p and len(shape) > 1:
                length = math.prod(shape[1:])
                if not length or step % length:
                    break
                places = [int(i) for i in np.unravel_index(first % length, shape[1:])]
                start, step = first // length, step // length
                rows = slice(start, start + step * (count - 1) + 1, step)
                return slice_index(self._tracer(eqn.inputs[0]), BasicIndex((rows, *places)))
            else:
                break
        return slice_index(x, BasicIndex((slice(first, first + step * (count - 1) + 1, step),)))

    def _maker(self, x: Any) -> Any:
        return self.makers.get(getattr(x, "_var", None))

    def _tracer(self, var: Any) -> Any:
        return StagingTracer(self.staging, var)

    def _part(self, eqn: Any, first: int, last: int) -> tuple[Any, int] | None:
        """The operand of a ``concatenate`` of vectors that holds a range, and where it begins."""
        for x in eqn.inputs:
            extent = x.aval.size
            if first < extent:
                return (self._tracer(x), first) if last < extent and isinstance(x, Var) else None
            first, last = first - extent, last - extent
        return None


def strided_blocks(
    places: np.ndarray, extent: int, row: int = 1
) -> list[tuple[tuple[int, ...], int, int, int]] | None:
    """Where numbers are a few rows of a table, each row the one before plus one step.

    Args:
      places: the numbers.
      extent: numbers of one row of the table do not cross multiples of this.
      row: steps over a multiple of this are preferred.

    Returns:
      Blocks, which follow each other: the first row, the step, the number of rows, and a divisor
      of the rows' length that is short enough for rows to be written as a whole.
    """
    blocks: list[tuple[tuple[int, ...], int, int, int]] = []
    start = 0
    while start < len(places):
        if len(blocks) == _MOST_BLOCKS:
            return None
        rest = places[start:]
        best, other = (_longest_block(rest, extent, n) for n in (row, 1))
        if other[1] > best[1]:
            best = other
        period, length, step, width = best
        if length < _SHORTEST_BLOCK:
            return None
        blocks.append((tuple(rest[:period].tolist()), step, length // period, width))
        start += length
    return blocks


def _longest_block(rest: np.ndarray, extent: int, row: int) -> tuple[int, int, int, int]:
    """Period, length, step and width of the longest block at the beginning."""
    best = (0, 0, 0, 0)
    for period in range(1, min(_LONGEST_ROW, len(rest) // 2) + 1):
        width = next(w for w in range(min(period, _WIDEST), 0, -1) if period % w == 0)
        step = int(rest[period] - rest[0])
        if step < 1 or step % row or (width < period and width < 4):
            continue
        steady = rest[period:] - rest[:-period] == step
        steady &= rest[period:] // extent == rest[:-period] // extent
        length = len(steady) if steady.all() else int(np.argmin(steady))
        count = 1 + length // period
        if count * period > best[1]:
            best = (period, count * period, step, width)
    return best


def _row_products(
    fun: Callable[..., list[Any]], xs: tuple[Any, ...], colors: np.ndarray, n_colors: int
) -> Any:
    """Products with the rows of each colour: ``[colours, columns]``."""
    outs, pull = vjp(fun, *xs)
    avals = [aval_of(out) for out in outs]

    def product(seed: Sequence[Any]) -> Any:
        return _joined(pull(list(seed)))

    if n_colors <= _AT_ONCE:
        return vmap(lambda *seed: product(seed))(*_seeds(colors, n_colors, avals))
    return _chunked(product, colors, n_colors, avals)


def _joined(parts: Sequence[Any]) -> Array:
    """All elements of several arrays."""
    dtype = np.result_type(*[dtype_of(part) for part in parts])
    flat = [reshape(cast(part, dtype), (math.prod(shape_of(part)),)) for part in parts]
    return flat[0] if len(flat) == 1 else concatenate(flat, 0)


def _seeds(colors: np.ndarray, n_colors: int, avals: Sequence[Any]) -> list[Any]:
    """Directions of zeros and ones, one per colour, cut into arrays of some shapes.

    They are parts of the program: all that is made of one of them is made from one array, which
    costs less than to read what was made of it when the program was staged.
    """
    staging = innermost_staging()
    assert staging is not None
    return [staging.lift(seed) for seed in _directions(colors, n_colors, avals)]


def _directions(colors: np.ndarray, n_colors: int, avals: Sequence[Any]) -> list[np.ndarray]:
    """The arrays themselves."""
    found, start = [], 0
    for aval in avals:
        own = colors[start : start + aval.size]
        start += aval.size
        rows = (own == np.arange(n_colors)[:, None]).astype(aval.dtype)
        found.append(as_constant(rows.reshape((n_colors, *aval.shape))))
    return found


def _chunked(
    product: Callable[[Sequence[Any]], Any], colors: np.ndarray, n_colors: int, avals: Sequence[Any]
) -> Any:
    """Products of many colours, some at a time; directions are made as they are needed."""
    constant = as_constant(np.asarray(colors, np.int64))

    def one(color: object) -> Any:
        seed, start = [], 0
        for aval in avals:
            own = slice_index(constant, BasicIndex((slice(start, start + aval.size),)))
            start += aval.size
            seed.append(reshape(cast(ew.equal(own, color), aval.dtype), aval.shape))
        return product(seed)

    n_chunks = -(-n_colors // _AT_ONCE)
    numbers = np.arange(n_chunks * _AT_ONCE).reshape(n_chunks, _AT_ONCE)
    chunks = loop_map(vmap(one), numbers)
    rows = reshape(chunks, (n_chunks * _AT_ONCE, shape_of(chunks)[2]))
    return slice_index(rows, BasicIndex((slice(0, n_colors),)))
