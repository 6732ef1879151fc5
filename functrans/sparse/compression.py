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
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError, ShapeError
from functrans.primitives import elementwise as ew
from functrans.primitives.indexing import gather
from functrans.primitives.movement import concatenate
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, reshape
from functrans.sparse.coloring import Coloring, sources
from functrans.sparse.pattern import Call
from functrans.transforms.forward import jvp, linearize
from functrans.transforms.reverse import vjp
from functrans.transforms.vectorize import vmap

_AT_ONCE = 16
"""Products that are batched in one pass."""


def entries_program(
    call: Call, order: int, matrix: Any, coloring: Coloring, positions: np.ndarray
) -> Callable[..., Any]:
    """The function of all leaves that gives the entries of the derivative.

    Args:
      call: the call that it is the derivative of.
      order: 1 for the Jacobian, 2 for the Hessian.
      matrix: the pattern, with sorted rows.
      coloring: fits the pattern.
      positions: numbers of the entries of the pattern, by rows, in the order of the result.

    Raises:
      ValueError: the colouring does not fit the pattern.
    """
    n_rows, n_cols = matrix.shape
    found = sources(matrix, coloring)
    start = coloring.n_column_colors * n_rows
    flat = np.where(
        found.is_row, start + found.color * n_cols + found.place, found.color * n_rows + found.place
    )
    gathered = _constant(flat[positions])
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
            parts.append(_column_products(fun, xs, columns, n_columns_colors))
        if n_row_colors:
            assert rows is not None
            parts.append(_row_products(fun, xs, rows, n_row_colors))
        dtype = np.result_type(*[dtype_of(part) for part in parts])
        flat = [reshape(cast(p, dtype), (math.prod(shape_of(p)),)) for p in parts]
        return gather(
            flat[0] if len(flat) == 1 else concatenate(flat, 0), (gathered,), (0,), "raise"
        )

    return entries


def _constant(array: np.ndarray) -> np.ndarray:
    """An array that nobody writes to."""
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
    found, start = [], 0
    for aval in avals:
        own = colors[start : start + aval.size]
        start += aval.size
        rows = (own == np.arange(n_colors)[:, None]).astype(aval.dtype)
        found.append(staging.lift(_constant(rows.reshape((n_colors, *aval.shape)))))
    return found


def _chunked(
    product: Callable[[Sequence[Any]], Any], colors: np.ndarray, n_colors: int, avals: Sequence[Any]
) -> Any:
    """Products of many colours, some at a time; directions are made as they are needed."""
    constant = _constant(np.asarray(colors, np.int64))

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
