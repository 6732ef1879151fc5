"""Banded linear systems, stored by diagonals as LAPACK does.

Here: ``banded_solve``. Not here: dense systems (``solve``), the storage of symmetric bands
(``functrans.scipy.linalg``, which fills in the other half).

``ab[u + i - j, j]`` is ``a[i, j]``, with ``l`` diagonals below and ``u`` above the main one. A
system costs ``O(n l (l + u))``, so that each solve factorizes anew.

Layer: ``primitives.linalg``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.dispatch import bind, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, is_linear
from functrans.errors import ShapeError
from functrans.primitives.linalg.common import (
    as_column,
    check_matrices,
    check_stacks,
    flat_stack,
    needed_scipy_linalg,
    of_systems,
)
from functrans.primitives.linalg.matrix_functions import check_one_dtype
from functrans.primitives.linalg.triangular import TRANS_CODE, TRANSPOSED, fold_batch
from functrans.primitives.movement import pad
from functrans.primitives.native.fortran import (
    INTEGER,
    LETTER,
    Status,
    call,
    convert,
    double_of,
    each_matrix,
    move_by_column,
    move_by_row,
)
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import reshape, to_front, zeros_like_aval

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines

_SINGULAR = "Singular matrix"


def _banded_solve_impl(ab: Any, b: Any, *, bands: tuple[int, int], trans: str) -> tuple[Any, ...]:
    out = np.empty(b.shape, b.dtype)
    if not b.size:
        return (out,)
    lapack = needed_scipy_linalg("banded_solve").lapack
    dtype = double_of(b.dtype)
    letter = LETTER[dtype.char]
    factorize, solve = (getattr(lapack, letter + name) for name in ("gbtrf", "gbtrs"))
    low, high = bands
    rows, n = ab.shape[-2:]
    for diagonals, rhs, x in zip(*map(flat_stack, (ab, b, out)), strict=True):
        wide = np.zeros((low + rows, n), dtype, order="F")
        wide[low:] = diagonals
        factors, pivots, info = factorize(wide, low, high, overwrite_ab=True)
        if info > 0:
            raise np.linalg.LinAlgError(_SINGULAR)
        x[...] = solve(factors, low, high, rhs.astype(dtype), pivots, trans=TRANS_CODE[trans])[0]
    return (out,)


def _banded_solve_aval(
    ab: ShapedArray, b: ShapedArray, *, bands: tuple[int, int], trans: str
) -> tuple[ShapedArray, ...]:
    check_matrices("banded_solve", ab, b)
    check_stacks("banded_solve", ab, b)
    check_one_dtype("banded_solve", ab, b)
    if ab.shape[-2] != sum(bands) + 1 or ab.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"banded_solve: the diagonals are {ab} and the right-hand side is {b}; expected "
            f"{sum(bands) + 1} diagonals for {bands[0]} below and {bands[1]} above the main one, "
            "and as many columns as the right-hand side has rows"
        )
    return (b.strong(),)


def banded_product(ab: Any, x: Any, bands: tuple[int, int], trans: str) -> Any:
    """``op(a) @ x`` for a matrix stored by diagonals and ``x[..., n, k]``."""
    rest = [(0, 0, 0)] * (len(shape_of(x)) - 2)
    total: Any = None
    for number in range(sum(bands) + 1):
        down = number - bands[1]  # this diagonal takes column j to row j + down
        diagonal = as_column(slice_index(ab, BasicIndex((Ellipsis, number, slice(None)))))
        if trans == "N":
            term = pad(diagonal * x, 0, [*rest, (down, -down, 0), (0, 0, 0)])
        else:
            term = diagonal * pad(x, 0, [*rest, (-down, down, 0), (0, 0, 0)])
        total = term if total is None else total + term
    return total


def _banded_solve_jvp(
    primals: Sequence[Any],
    tangents: tuple[Any, ...],
    outs: Sequence[Any],
    *,
    bands: tuple[int, int],
    trans: str,
) -> tuple[Any, ...]:
    """``op(a) x' = b' - op(a') x``."""
    ab_dot, b_dot = tangents
    (x,) = outs
    if type(ab_dot) is not Zero:
        moved = banded_product(ab_dot, x, bands, trans)
        b_dot = -moved if type(b_dot) is Zero else b_dot - moved
    if type(b_dot) is Zero:
        return (zeros_like_aval(x),)
    return bind(banded_solve_p, primals[0], b_dot, bands=bands, trans=trans)


def _banded_solve_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, bands: tuple[int, int], trans: str
) -> tuple[Any, ...]:
    ab, b = operands
    if is_linear(ab) or not is_linear(b):
        raise TypeError("banded_solve is linear in its right-hand side only")
    return (None, *bind(banded_solve_p, ab, cts[0], bands=bands, trans=TRANSPOSED[trans]))


def _banded_solve_batch(
    size: int, operands: list[Any], dims: Sequence[Any], **params: Any
) -> tuple[Any, Any]:
    if dims[0] is None:
        wide, out_dim, shape = fold_batch(operands[1], dims[1])
        (x,) = bind(banded_solve_p, operands[0], wide, **params)
        return (reshape(x, shape),), (out_dim,)
    return bind(banded_solve_p, *to_front(size, operands, dims), **params), (0,)


def _banded_solve_lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    bands: tuple[int, int],
    trans: str,
) -> None:
    """LAPACK's ``gbtrf`` and ``gbtrs``, with room above the diagonals for the fill-in."""
    ab, b = operands
    (out,) = results
    if out.size == 0:
        return
    low, high = bands
    rows, n = ab.shape[-2:]
    columns = out.shape[-1]
    work = double_of(out.dtype)
    tall = rows + low
    factors, x = e.workspace((n, tall), work), e.workspace((columns, n), work)
    double = e.workspace((rows, n), work)
    pivots, status = e.workspace((n,), INTEGER), Status(e)
    letter = LETTER[work.char]
    with each_matrix(e, (ab, b, out), len(out.shape) - 2) as (diagonals, rhs, solution):
        convert(e, diagonals, double)
        e.fill(factors, e.constant(work, 0))
        with e.count(rows) as i, e.count(n) as j:
            e.write(factors, (j, e.b.add(i, e.b.index(low))), e.read(double, (i, j)))
        move_by_column(e, rhs, x)
        end = status.clear().pointer
        call(e, f"lapack.{letter}gbtrf", n, n, low, high, factors, tall, pivots, end)
        e.fail_when(status.is_bad(), np.linalg.LinAlgError, _SINGULAR)
        call(
            e,
            f"lapack.{letter}gbtrs",
            trans,
            n,
            low,
            high,
            columns,
            factors,
            tall,
            pivots,
            x,
            n,
            status.clear().pointer,
        )
        move_by_row(e, x, solution)


banded_solve_p: Primitive = Primitive(
    "banded_solve",
    impl=_banded_solve_impl,
    abstract_eval=_banded_solve_aval,
    jvp=_banded_solve_jvp,
    transpose=_banded_solve_transpose,
    batch=_banded_solve_batch,
    lower=Routine(_banded_solve_lower),
    axis_map=of_systems,
    memory="own",
)


def banded_solve(ab: Any, b: Any, bands: tuple[int, int], trans: str = "N") -> Any:
    """Solve ``op(a) @ x = b`` with a banded matrix.

    Args:
      ab: the diagonals ``[..., l + u + 1, n]``, the uppermost first.
      b: ``[..., n, k]``, of the same dtype.
      bands: ``(l, u)``, the numbers of diagonals below and above the main one.
      trans: ``"N"`` or ``"T"``: ``op(a)`` is ``a`` or its transpose.

    Returns:
      ``x``, shaped as ``b``.

    Raises:
      LinAlgError: a matrix is singular.
    """
    return bind(banded_solve_p, ab, b, bands=bands, trans=trans)[0]


PRIMITIVES: tuple[Primitive, ...] = (banded_solve_p,)
