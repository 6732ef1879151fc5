"""Triangular systems.

Here: ``triangular_solve``, the substitution that evaluates it without LAPACK, and what it shares
with ``linear_solve``. Not here: general systems (``solve``).

Layer: ``primitives.linalg``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, is_linear
from functrans.errors import ShapeError
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import conjugate
from functrans.primitives.dot import matmul
from functrans.primitives.linalg.common import (
    adjoint,
    check_matrices,
    check_stacks,
    flat_stack,
    matrix_transpose,
    of_systems,
    scipy_linalg,
    substitutions,
)
from functrans.primitives.native.fortran import convert, each_matrix
from functrans.primitives.native.triangles import solve_triangle
from functrans.primitives.structural import moveaxis, reshape, to_front, zeros_like_aval

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines

TRANSPOSED = {"N": "T", "T": "N"}
"""``trans`` of the transposed system; that of ``"C"`` is the conjugate of ``"N"``."""

LAPACK_LETTER = {"f": "s", "d": "d", "F": "c", "D": "z"}
TRANS_CODE = {"N": 0, "T": 1, "C": 2}


def applied(a: Any, trans: str) -> Any:
    """``a``, its transpose or its adjoint."""
    return a if trans == "N" else matrix_transpose(a) if trans == "T" else adjoint(a)


def fold_batch(b: Any, dim: int) -> tuple[Any, int, tuple[int, ...]]:
    """Put the batch axis of right-hand sides among their columns: ``[..., n, batch * k]``.

    Returns:
      The wide right-hand sides, where the batch axis ends up in the result, and the result's shape.
    """
    position = len(shape_of(b)) - 2
    moved = moveaxis(b, dim, position)
    shape = shape_of(moved)
    wide = (*shape[:position], shape[position] * shape[position + 1])
    return reshape(moved, wide), position, shape


# triangular_solve -------------------------------------------------------------------------------


def substitute(t: np.ndarray, b: np.ndarray, lower: bool, unit_diagonal: bool) -> np.ndarray:
    """Forward or backward substitution in all systems of a stack at once.

    A zero on the diagonal gives infinities and NaN, as BLAS does.
    """
    n = t.shape[-1]
    x = b.copy()
    with np.errstate(all="ignore"):
        for i in range(n) if lower else range(n - 1, -1, -1):
            known = slice(0, i) if lower else slice(i + 1, n)
            x[:, i] -= np.matmul(t[:, i, None, known], x[:, known])[:, 0]
            if not unit_diagonal:
                x[:, i] /= t[:, i, i, None]
    return x


def _triangular_solve_impl(
    a: Any, b: Any, *, lower: bool, trans: str, unit_diagonal: bool
) -> tuple[Any, ...]:
    shape = b.shape
    n, k = shape[-2:]
    if b.size == 0:
        return (np.empty(shape, b.dtype),)
    a, b = flat_stack(a), flat_stack(b)
    linalg = scipy_linalg()
    if linalg is None or 2 * len(b) > n * n + 4:
        if trans != "N":
            a, lower = a.swapaxes(-1, -2), not lower
        x = substitute(a.conj() if trans == "C" else a, b, lower, unit_diagonal)
        return (x.reshape(shape),)
    trsm = getattr(linalg.blas, LAPACK_LETTER[b.dtype.char] + "trsm")
    out = np.empty((len(b), n, k), b.dtype)
    for matrix, rhs, x in zip(a, b, out, strict=True):
        code, is_lower = TRANS_CODE[trans], lower
        if code != 2 and not matrix.flags.f_contiguous:  # BLAS reads the transpose without a copy
            matrix, code, is_lower = matrix.T, 1 - code, not lower  # the same system
        x[...] = trsm(1.0, matrix, rhs, lower=is_lower, trans_a=code, diag=unit_diagonal)
    return (out.reshape(shape),)


def _triangular_solve_aval(
    a: ShapedArray, b: ShapedArray, **params: object
) -> tuple[ShapedArray, ...]:
    check_system("triangular_solve", a, b)
    return (b.strong(),)


def check_system(name: str, a: ShapedArray, b: ShapedArray) -> None:
    """Refuse a matrix and right-hand sides that make no system.

    Raises:
      ShapeError: shapes do not fit.
      TypeError: dtypes differ, or are not those of LAPACK.
    """
    check_matrices(name, a, square=True)
    check_matrices(name, b)
    check_stacks(name, a, b)
    if a.dtype != b.dtype:
        raise TypeError(f"{name}: operands {a} and {b} must have one dtype; cast them first")
    if a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"{name}: {a} and {b} do not fit; the rows of the right-hand side must be as many as "
            "those of the matrix"
        )


def _triangular_solve_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    outs: Sequence[Any],
    *,
    lower: bool,
    trans: str,
    unit_diagonal: bool,
) -> tuple[Any, ...]:
    """``op(a) x = b`` gives ``op(a) x_dot = b_dot - op(a_dot) x``, of ``a_dot`` its triangle."""
    (a, _), (a_dot, b_dot), (x,) = primals, tangents, outs
    if type(a_dot) is not Zero:
        triangle = triangle_of(a_dot, lower, unit_diagonal)
        b_dot = minus(b_dot, matmul(applied(triangle, trans), x))
    if type(b_dot) is Zero:
        return (zeros_like_aval(x),)
    return bind(triangular_solve_p, a, b_dot, lower=lower, trans=trans, unit_diagonal=unit_diagonal)


def minus(tangent: object, other: Any) -> Any:
    """A tangent, which may be ``Zero``, less something."""
    return -other if type(tangent) is Zero else tangent - other


def triangle_of(x: Any, lower: bool, strict: bool = False) -> Any:
    """The lower or upper triangle, with or without the diagonal; 0 elsewhere."""
    rows, columns = shape_of(x)[-2:]
    if lower:
        mask = np.tri(rows, columns, -1 if strict else 0, dtype=bool)
    else:
        mask = ~np.tri(rows, columns, 0 if strict else -1, dtype=bool)
    return ew.where(mask, x, 0)


def _triangular_solve_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, lower: bool, trans: str, unit_diagonal: bool
) -> tuple[Any, ...]:
    a, b = operands
    if is_linear(a) or not is_linear(b):
        raise TypeError("triangular_solve is linear in its right-hand side only")
    if trans == "C":
        a, trans = conjugate(a), "T"
    solved = bind(
        triangular_solve_p,
        a,
        cts[0],
        lower=lower,
        trans=TRANSPOSED[trans],
        unit_diagonal=unit_diagonal,
    )
    return (None, *solved)


def _triangular_solve_batch(
    size: int, operands: list[Any], dims: Sequence[Any], **params: object
) -> tuple[Any, Any]:
    if dims[0] is None:
        wide, out_dim, shape = fold_batch(operands[1], dims[1])
        (x,) = bind(triangular_solve_p, operands[0], wide, **params)
        return (reshape(x, shape),), (out_dim,)
    return bind(triangular_solve_p, *to_front(size, operands, dims), **params), (0,)


def _triangular_solve_lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    lower: bool,
    trans: str,
    unit_diagonal: bool,
) -> None:
    a, b = operands
    (out,) = results
    if out.size == 0:
        return
    convert(e, b, out)
    with each_matrix(e, (a, out), len(a.shape) - 2) as (matrix, x):
        solve_triangle(e, matrix, x, lower=lower, trans=trans, unit_diagonal=unit_diagonal)


def _triangular_solve_causal(
    a: ShapedArray, b: ShapedArray, *, lower: bool, trans: str, **params: object
) -> tuple[int, int, bool]:
    """Substitution: rows before in its order."""
    return 1, b.ndim - 2, lower != (trans == "N")


triangular_solve_p: Primitive = Primitive(
    "triangular_solve",
    impl=_triangular_solve_impl,
    abstract_eval=_triangular_solve_aval,
    jvp=_triangular_solve_jvp,
    transpose=_triangular_solve_transpose,
    batch=_triangular_solve_batch,
    lower=Routine(_triangular_solve_lower, in_place=1),
    axis_map=of_systems,
    memory="own",
    work=substitutions(1),
    causal=_triangular_solve_causal,
)


def triangular_solve(
    a: Any,
    b: Any,
    *,
    lower: bool,
    trans: str = "N",
    unit_diagonal: bool = False,
    left_side: bool = True,
) -> Any:
    """Solve ``op(a) @ x = b``, or ``x @ op(a) = b``, with a triangular matrix.

    Args:
      a: ``[..., n, n]``; only the named triangle is read.
      b: ``[..., n, k]``, or ``[..., k, n]`` if ``left_side`` is false.
      lower: whether the lower triangle is read.
      trans: ``"N"``, ``"T"`` or ``"C"``: ``op(a)`` is ``a``, its transpose or its adjoint.
      unit_diagonal: take the diagonal to be 1 and do not read it.
      left_side: whether the matrix stands to the left of ``x``.

    Returns:
      ``x``, shaped as ``b``. A zero on the diagonal gives infinities and NaN, no error.

    Raises:
      ShapeError: shapes do not fit.
      TypeError: dtypes differ, or are not those of LAPACK.
    """
    if not left_side:
        if trans == "C":
            a, trans = conjugate(a), "T"
        b, trans = matrix_transpose(b), TRANSPOSED[trans]
    check_system("triangular_solve", *(ShapedArray(shape_of(x), dtype_of(x)) for x in (a, b)))
    (x,) = bind(triangular_solve_p, a, b, lower=lower, trans=trans, unit_diagonal=unit_diagonal)
    return x if left_side else matrix_transpose(x)


PRIMITIVES: tuple[Primitive, ...] = (triangular_solve_p,)
