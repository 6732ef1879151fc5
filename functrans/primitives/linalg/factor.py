"""Primitives for Cholesky and QR factors.

Here: ``cholesky`` and ``qr``. Not here: LU (``solve``), eigen- and singular values
(``spectral``).

Layer: ``primitives.linalg``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive
from functrans.errors import NonDifferentiableError
from functrans.primitives.complex_parts import real_dtype
from functrans.primitives.dot import matmul
from functrans.primitives.linalg.common import (
    NOT_LINEAR,
    adjoint,
    check_matrices,
    cubic,
    from_triangle,
    lower_half,
    per_matrix,
)
from functrans.primitives.linalg.triangular import triangular_solve
from functrans.primitives.movement import concatenate
from functrans.primitives.native.fortran import (
    LETTER,
    Status,
    call,
    clear_triangle,
    convert,
    double_of,
    each_matrix,
    fill_identity,
    in_double,
    move,
    move_by_column,
    move_by_row,
)
from functrans.primitives.native.triangles import factors_on_tiles, write_cholesky
from functrans.primitives.slicing import BasicIndex, slice_index

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

# cholesky ---------------------------------------------------------------------------------------


def _cholesky_aval(a: ShapedArray) -> tuple[ShapedArray, ...]:
    check_matrices("cholesky", a, square=True)
    return (a.strong(),)


def _cholesky_jvp(primals: object, tangents: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, ...]:
    """From ``a = l l^H``: ``l^-1 a_dot l^-H = l^-1 l_dot + (l^-1 l_dot)^H``.

    ``l^-1 l_dot`` is lower triangular with a real diagonal, so it is the lower triangle of the left
    side with half of its diagonal.

    The lower triangle is read; so its tangent, mirrored, is the tangent of the matrix.

    Reference: Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016).
    """
    (l_factor,) = outs
    a_dot = from_triangle(tangents[0])
    half = triangular_solve(l_factor, a_dot, lower=True)
    inner = triangular_solve(l_factor, adjoint(half), lower=True)  # Hermitian
    dtype = dtype_of(l_factor)
    weights = lower_half(shape_of(l_factor)[-1], real_dtype(dtype))
    return (matmul(l_factor, inner * weights),)


def _cholesky_lower(e: Routines, operands: Sequence[Array], results: Sequence[Array]) -> None:
    """By column the matrix is ``a^T``; from its upper triangle ``a^T = (l^T)^H l^T``.

    The upper factor ``l^T`` by column is ``l`` by row.
    """
    (a,), (out,) = operands, results
    if a.size == 0:
        return
    n = a.shape[-1]
    scratch, status = in_double(e, out.reshape(n, n)), Status(e)
    with each_matrix(e, (a, out), len(a.shape) - 2) as (matrix, factor):
        x = scratch or factor
        convert(e, matrix, x)

        def factored(size: int | Value, corner: Array | Value) -> None:
            name = f"lapack.{LETTER[x.dtype.char]}potrf"
            call(e, name, "U", size, corner, n, status.clear().pointer)
            error = np.linalg.LinAlgError
            e.fail_when(status.is_bad(), error, "Matrix is not positive definite")

        if factors_on_tiles(n, x.dtype):
            write_cholesky(e, x, lambda size, corner: factored(e.by_reference(size), corner))
        else:
            factored(n, x)
        if scratch is not None:
            convert(e, scratch, factor)
        clear_triangle(e, factor, is_upper=True)


cholesky_p: Primitive = per_matrix(
    "cholesky",
    impl=lambda a: (np.linalg.cholesky(a),),
    abstract_eval=_cholesky_aval,
    jvp=_cholesky_jvp,
    lower=Routine(_cholesky_lower, in_place=0),
    reasons=NOT_LINEAR,
    work=cubic(1 / 3),
)


def cholesky(a: Any) -> Any:
    """Lower Cholesky factors of Hermitian positive definite matrices ``[..., n, n]``.

    The lower triangle is read, and only that has a derivative: cotangents are lower triangular.

    Raises:
      LinAlgError: a matrix is not positive definite.
    """
    return bind(cholesky_p, a)[0]


# qr ---------------------------------------------------------------------------------------------


def _qr_impl(a: Any, *, mode: Any) -> tuple[Any, ...]:
    return tuple(np.linalg.qr(a, mode=mode))


def _qr_aval(a: ShapedArray, *, mode: str) -> tuple[ShapedArray, ...]:
    check_matrices("qr", a)
    *stack, rows, columns = a.shape
    k = rows if mode == "complete" else min(rows, columns)
    if mode == "raw":
        shapes = (*stack, columns, rows), (*stack, k)
    else:
        shapes = (*stack, rows, k), (*stack, k, columns)
    return tuple(ShapedArray(shape, a.dtype) for shape in shapes)


def _qr_check(a: ShapedArray, *, mode: str) -> None:
    if mode not in ("reduced", "complete", "raw"):
        raise ValueError(f"qr: mode={mode!r}; expected 'reduced', 'complete' or 'raw'")


def _qr_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any], *, mode: str
) -> tuple[Any, ...]:
    """From ``a = q r`` with ``q^H q = 1``, ``r`` upper triangular with a real diagonal.

    For at least as many rows as columns let ``w = a_dot r^-1`` and ``t = r_dot r^-1``, upper
    triangular with a real diagonal. Then ``q^H w = q^H q_dot + t``, where ``q^H q_dot`` is
    anti-Hermitian, so that ``q^H w + w^H q = t + t^H`` determines ``t``; ``r_dot = t r`` and
    ``q_dot = w - q t``.

    A wide matrix ``[x y]`` with square ``x`` has ``r = [u v]``: ``x = q u`` as above, and
    ``v_dot = q_dot^H y + q^H y_dot``. Where ``r`` (or ``u``) is singular there is no derivative:
    infinities and NaN.

    Reference: Roberts & Roberts, QR and LQ decomposition matrix backpropagation algorithms,
    arXiv:2009.10071 (2020); Walter & Lehmann, AIP Conf. Proc. 1389 (2011).
    """
    (a,), (a_dot,), (q, r) = primals, tangents, outs
    rows, columns = shape_of(a)[-2:]
    if mode == "raw" or (mode == "complete" and rows > columns):
        raise NonDifferentiableError(
            f"qr: mode={mode!r} of a matrix with {rows} rows and {columns} columns has no "
            "derivative: it depends on reflections that are no function of q and r. Use "
            "mode='reduced'; for a projection on the complement of the range use 1 - q q^H."
        )
    left, right = (Ellipsis, slice(0, rows)), (Ellipsis, slice(rows, None))
    is_wide = columns > rows
    square = _part(r, left) if is_wide else r
    w = triangular_solve(
        square, _part(a_dot, left) if is_wide else a_dot, lower=False, left_side=False
    )
    symmetric = matmul(adjoint(q), w)
    symmetric = symmetric + adjoint(symmetric)
    weights = lower_half(shape_of(q)[-1], real_dtype(dtype_of(q))).T
    t = symmetric * weights
    q_dot = w - matmul(q, t)
    r_dot = matmul(t, square)
    if is_wide:
        v_dot = matmul(adjoint(q_dot), _part(a, right)) + matmul(adjoint(q), _part(a_dot, right))
        r_dot = concatenate((r_dot, v_dot), axis=len(shape_of(r)) - 1)
    return q_dot, r_dot


def _part(x: Any, entries: tuple[Any, ...]) -> Any:
    return slice_index(x, BasicIndex(entries))


_BLOCK = 64
"""At least as many columns as LAPACK reflects at once, for the size of its workspace."""


def _qr_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, mode: str
) -> None:
    """Reflections of a copy by column, then ``r`` from it, then ``q`` in its place."""
    (a,) = operands
    rows, columns = a.shape[-2:]
    steps = min(rows, columns)
    first, second = results
    if steps == 0:
        if mode == "complete":  # no reflections
            with each_matrix(e, (first,), len(a.shape) - 2) as (q,):
                fill_identity(e, q)
        return
    width = columns if mode == "raw" else first.shape[-1]
    work = double_of(a.dtype)
    memory = e.workspace((max(columns, width), rows), work)
    tau = e.workspace((steps,), work)
    size = _BLOCK * max(columns, width)
    space, status = e.workspace((size,), work), Status(e)
    letter = LETTER[work.char]
    error = np.linalg.LinAlgError, "Incorrect argument found while performing QR factorization"
    with each_matrix(e, (a, first, second), len(a.shape) - 2) as (matrix, left, right):
        move_by_column(e, matrix, memory)
        end = status.clear().pointer
        call(e, f"lapack.{letter}geqrf", rows, columns, memory, rows, tau, space, size, end)
        e.fail_when(status.is_bad(), *error)
        if mode == "raw":
            move(e, memory, left, (columns * rows,), (1,), (1,))
            convert(e, tau, right)
        else:
            k = right.shape[0]
            move(e, memory, right, (k, columns), (1, rows), (columns, 1))
            clear_triangle(e, right, is_upper=False)
            name = f"lapack.{letter}{'un' if work.kind == 'c' else 'or'}gqr"
            end = status.clear().pointer
            call(e, name, rows, width, steps, memory, rows, tau, space, size, end)
            e.fail_when(status.is_bad(), *error)
            move_by_row(e, memory, left)


qr_p: Primitive = per_matrix(
    "qr",
    impl=_qr_impl,
    abstract_eval=_qr_aval,
    check=_qr_check,
    jvp=_qr_jvp,
    lower=Routine(_qr_lower),
    reasons=NOT_LINEAR,
    work=cubic(4.0),
)


def qr(a: Any, mode: str = "reduced") -> tuple[Any, Any]:
    """QR factors of matrices ``[..., m, n]``.

    Args:
      a: the matrices; their first ``min(m, n)`` columns must be independent for a derivative.
      mode: ``"reduced"``, ``"complete"`` or ``"raw"``, as in ``numpy.linalg.qr``.

    Returns:
      ``(q, r)``, in raw mode ``(h, tau)``.

    Raises:
      NonDifferentiableError: the derivative of a raw or really complete factorization is asked for.
    """
    return bind(qr_p, a, mode=mode)


PRIMITIVES: tuple[Primitive, ...] = (cholesky_p, qr_p)
