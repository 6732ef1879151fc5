"""Primitives for linear systems: LU factors, and solves with given factors.

Here: ``lu`` (differentiable), ``lu_factor`` (constants for the next one) and ``linear_solve``. Not
here: triangular systems (``triangular``), right-hand sides that are vectors and stacks that
broadcast (``functrans.numpy.linalg``), inverses (``det``).

A system ``a @ x = b`` is two equations: ``factors = lu_factor(a)`` and
``x = linear_solve(a, *factors, b)``. The factors carry no derivative; ``linear_solve`` is
differentiated in ``a`` and ``b`` themselves, and its tangent and its transpose are
``linear_solve`` with the same factors. So one factorization serves every order of derivative.

Layer: ``primitives.linalg``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, is_linear, nondifferentiable
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import conjugate
from functrans.primitives.dot import matmul
from functrans.primitives.linalg.common import (
    INDEX_DTYPE,
    NOT_LINEAR,
    as_column,
    check_dtype,
    check_matrices,
    check_stacks,
    cubic,
    flat_stack,
    identity,
    of_systems,
    per_matrix,
    scipy_linalg,
    strict_lower,
    substitutions,
)
from functrans.primitives.linalg.triangular import (
    LAPACK_LETTER,
    TRANS_CODE,
    TRANSPOSED,
    applied,
    check_system,
    fold_batch,
    minus,
    substitute,
    triangle_of,
    triangular_solve,
)
from functrans.primitives.movement import concatenate
from functrans.primitives.native.fortran import (
    INTEGER,
    Interchanges,
    Status,
    convert,
    double_of,
    each_matrix,
    exchange_rows,
    in_double,
    move_by_row,
    number_of,
)
from functrans.primitives.native.fortran import factorize as write_factors
from functrans.primitives.native.triangles import solve_triangle
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.sorting import select_along
from functrans.primitives.structural import broadcast_to, reshape, to_front, zeros_like_aval

if TYPE_CHECKING:
    from functrans.emitter.routine import Array, Routines

# LU factors -------------------------------------------------------------------------------------


def _eliminate(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian elimination with partial pivoting in all matrices of a stack at once."""
    lu = a.copy()
    count, rows, columns = lu.shape
    steps = min(rows, columns)
    pivots = np.empty((count, steps), INDEX_DTYPE)
    lanes = np.arange(count)
    with np.errstate(all="ignore"):
        for j in range(steps):
            pivot = j + np.argmax(np.abs(lu[:, j:, j]), axis=1) if count else lanes
            pivots[:, j] = pivot
            row = lu[lanes, pivot]
            lu[lanes, pivot] = lu[:, j]
            lu[:, j] = row
            divisor = lu[:, j, j]
            lu[:, j + 1 :, j] /= np.where(divisor == 0, 1, divisor)[:, None]
            lu[:, j + 1 :, j + 1 :] -= lu[:, j + 1 :, j, None] * lu[:, j, None, j + 1 :]
    return lu, pivots


def factorize(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Packed LU factors and LAPACK's row interchanges, counted from 0, in the operand's dtype."""
    stack = a.shape[:-2]
    steps = min(a.shape[-2:])
    linalg = scipy_linalg()
    matrices = flat_stack(a)
    if a.size == 0 or linalg is None or len(matrices) > 4 * steps * steps:
        lu, pivots = _eliminate(matrices)
        return lu.reshape(a.shape), pivots.reshape(*stack, steps)
    getrf = getattr(linalg.lapack, LAPACK_LETTER[a.dtype.char] + "getrf")
    if not stack:
        lu, pivots, _ = getrf(a)
        return lu, pivots.astype(INDEX_DTYPE, copy=False)
    lu = np.empty(matrices.shape, a.dtype)
    pivots = np.empty((len(matrices), steps), INDEX_DTYPE)
    for i, matrix in enumerate(matrices):
        lu[i], pivots[i], _ = getrf(matrix)
    return lu.reshape(a.shape), pivots.reshape(*stack, steps)


def permutation_of(pivots: np.ndarray, rows: int) -> np.ndarray:
    """The order of rows that interchanges lead to: ``a[permutation]`` is ``l @ u``."""
    stack = pivots.shape[:-1]
    count = math.prod(stack)
    flat = pivots.reshape(count, pivots.shape[-1])
    order = np.tile(np.arange(rows, dtype=INDEX_DTYPE), (count, 1))
    lanes = np.arange(count)
    for j in range(pivots.shape[-1]):
        other = flat[:, j]
        swapped = order[lanes, other]
        order[lanes, other] = order[:, j]
        order[:, j] = swapped
    return order.reshape(*stack, rows)


def _lu_impl(a: Any) -> tuple[Any, ...]:
    lu, pivots = factorize(a)
    return lu, pivots, permutation_of(pivots, a.shape[-2])


def _lu_aval(a: ShapedArray) -> tuple[ShapedArray, ...]:
    check_matrices("lu", a)
    *stack, rows, columns = a.shape
    return (
        a.strong(),
        ShapedArray((*stack, min(rows, columns)), INDEX_DTYPE),
        ShapedArray((*stack, rows), INDEX_DTYPE),
    )


def _lu_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any]
) -> tuple[Any, ...]:
    """From ``p a = l u``, with ``p`` locally constant.

    For square ``l`` and ``u``: ``l^-1 p a_dot u^-1 = l^-1 l_dot + u_dot u^-1``, whose first term is
    strictly lower and whose second is upper triangular, so that the triangles of the left side are
    the two. Rows below and columns beyond the square part follow from ``p a = l u`` there.

    Reference: de Hoog, Anderssen & Lukas, Differentiation of matrix functionals using triangular
    factorization, Math. Comp. 80 (2011).
    """
    (a_dot,) = tangents
    lu, _, permutation = outs
    shape = shape_of(lu)
    rows, columns = shape[-2:]
    k = min(rows, columns)
    wide = broadcast_to(as_column(permutation), shape)
    pa_dot = select_along(a_dot, wide, len(shape) - 2)
    square = _block(lu, slice(0, k), slice(0, k))
    eye = identity(k, dtype_of(lu))
    lower = triangle_of(square, True, strict=True) + eye
    upper = triangle_of(square, False)

    def left_divide(x: Any) -> Any:
        return triangular_solve(square, x, lower=True, unit_diagonal=True)

    def right_divide(x: Any) -> Any:
        return triangular_solve(square, x, lower=False, left_side=False)

    inner = right_divide(left_divide(_block(pa_dot, slice(0, k), slice(0, k))))
    below = strict_lower(k, k)
    lower_dot = matmul(lower, ew.where(below, inner, 0))
    upper_dot = matmul(ew.where(below, 0, inner), upper)
    lu_dot = lower_dot + upper_dot
    if rows > k:
        rest = _block(lu, slice(k, None), slice(0, k))
        rest_dot = _block(pa_dot, slice(k, None), slice(0, k)) - matmul(rest, upper_dot)
        lu_dot = concatenate((lu_dot, right_divide(rest_dot)), axis=len(shape) - 2)
    if columns > k:
        rest = _block(lu, slice(0, k), slice(k, None))
        rest_dot = _block(pa_dot, slice(0, k), slice(k, None)) - matmul(lower_dot, rest)
        lu_dot = concatenate((lu_dot, left_divide(rest_dot)), axis=len(shape) - 1)
    return (lu_dot, zeros_like_aval(outs[1]), zeros_like_aval(outs[2]))


def _block(x: Any, rows: slice, columns: slice) -> Any:
    """``x[..., rows, columns]``."""
    return slice_index(x, BasicIndex((Ellipsis, rows, columns)))


def _lu_lower(e: Routines, operands: Sequence[Array], results: Sequence[Array]) -> None:
    (a,) = operands
    rows, columns = a.shape[-2:]
    steps = min(rows, columns)
    if results[2].size == 0:
        return
    factors = e.workspace((columns, rows), a.dtype)
    interchanges, status = Interchanges(e, steps), Status(e)
    with each_matrix(e, (a, *results), len(a.shape) - 2) as (matrix, lu, pivots, permutation):
        with e.count(rows) as i:
            e.write(permutation, i, e.cast(number_of(e, i), INDEX_DTYPE))
        if not steps:
            return
        write_factors(e, matrix, factors, interchanges, status)
        move_by_row(e, factors, lu)
        with e.count(steps) as j:
            row = interchanges.row(j)
            e.write(pivots, j, e.cast(row, INDEX_DTYPE))
            first, second = e.read(permutation, j), e.read(permutation, row.value)
            e.write(permutation, j, second)
            e.write(permutation, row.value, first)


lu_p: Primitive = per_matrix(
    "lu",
    impl=_lu_impl,
    abstract_eval=_lu_aval,
    jvp=_lu_jvp,
    lower=Routine(_lu_lower, in_place=0),
    reasons=NOT_LINEAR,
    work=cubic(2 / 3),
)


def lu(a: Any) -> tuple[Any, Any, Any]:
    """LU factorization with partial pivoting.

    Args:
      a: ``[..., m, n]``.

    Returns:
      ``(lu, pivots, permutation)``: ``l`` (below the diagonal; its diagonal is 1) and ``u`` in one
      array; LAPACK's row interchanges counted from 0, ``[..., min(m, n)]``; the order of rows
      ``[..., m]`` for which ``a[permutation]`` is ``l @ u``. Indices are int32.
    """
    return bind(lu_p, a)


def _lu_factor_impl(a: Any, *, check: bool) -> tuple[Any, ...]:
    factors, pivots = factorize(a.astype(double_of(a.dtype), copy=False))
    if check and (np.diagonal(factors, axis1=-2, axis2=-1) == 0).any():
        raise np.linalg.LinAlgError("Singular matrix")
    return factors, pivots


def _lu_factor_aval(a: ShapedArray, *, check: bool) -> tuple[ShapedArray, ...]:
    check_matrices("lu_factor", a, square=True)
    return (ShapedArray(a.shape, double_of(a.dtype)), ShapedArray(a.shape[:-1], INDEX_DTYPE))


def _lu_factor_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, check: bool
) -> None:
    (a,) = operands
    n = a.shape[-1]
    if a.size == 0:
        return
    factors = e.workspace((n, n), results[0].dtype)
    interchanges, status = Interchanges(e, n), Status(e)
    with each_matrix(e, (a, *results), len(a.shape) - 2) as (matrix, lu, pivots):
        write_factors(e, matrix, factors, interchanges, status)
        if check:
            e.fail_when(status.is_bad(), np.linalg.LinAlgError, "Singular matrix")
        move_by_row(e, factors, lu)
        with e.count(n) as j:
            e.write(pivots, j, e.cast(interchanges.row(j), INDEX_DTYPE))


lu_factor_p: Primitive = per_matrix(
    "lu_factor",
    impl=_lu_factor_impl,
    abstract_eval=_lu_factor_aval,
    jvp=nondifferentiable,
    lower=Routine(_lu_factor_lower),
    reasons=(("transpose", "has no derivative: linear_solve is differentiated in the matrix"),),
    work=cubic(2 / 3),
)


def lu_factor(a: Any, *, check: bool = True) -> tuple[Any, Any]:
    """Factors of square matrices for ``linear_solve``; they carry no derivative.

    Args:
      a: ``[..., n, n]``.
      check: raise for an exactly singular matrix, as ``numpy.linalg.solve`` does.

    Returns:
      Packed factors in double precision, as NumPy computes, and row interchanges.

    Raises:
      LinAlgError: a matrix is singular.
    """
    return bind(lu_factor_p, a, check=check)


# linear_solve -----------------------------------------------------------------------------------


_FEW_ROWS, _FEW_COLUMNS = 32, 8
"""Systems that are solved column by column: OpenBLAS shares any number of columns above one among
threads, which costs milliseconds where these must be woken on a busy machine (1 us a column)."""


def _linear_solve_impl(
    a: object, factors: Any, pivots: Any, b: Any, *, trans: str
) -> tuple[Any, ...]:
    if b.size == 0:
        return (np.empty(b.shape, b.dtype),)
    factors, rhs = flat_stack(factors), flat_stack(b)
    n = rhs.shape[-2]
    pivots = pivots.reshape(len(rhs), n)
    if int(pivots.view(np.uint32).max()) >= n:
        raise ValueError(f"linear_solve: pivots {pivots.tolist()} are no rows of {n}")
    linalg = scipy_linalg()
    if linalg is None or 2 * len(rhs) > n * n + 4:
        x = _solve_by_substitution(factors, pivots, rhs.astype(factors.dtype, copy=False), trans)
        return (x.astype(b.dtype, copy=False).reshape(b.shape),)
    getrs = getattr(linalg.lapack, LAPACK_LETTER[factors.dtype.char] + "getrs")
    out = np.empty(rhs.shape, b.dtype)
    k = rhs.shape[-1]
    for lu, order, right, x in zip(factors, pivots, rhs, out, strict=True):
        if n <= _FEW_ROWS and k <= _FEW_COLUMNS:
            for j in range(k):
                x[:, j] = getrs(lu, order, right[:, j], trans=TRANS_CODE[trans])[0]
        else:
            x[...] = getrs(lu, order, right, trans=TRANS_CODE[trans])[0]
    return (out.reshape(b.shape),)


def _solve_by_substitution(
    lu: np.ndarray, pivots: np.ndarray, b: np.ndarray, trans: str
) -> np.ndarray:
    """The two substitutions of each system of a stack, and the permutation."""
    order = permutation_of(pivots, b.shape[-2])[:, :, None]
    if trans == "N":
        x = substitute(lu, np.take_along_axis(b, order, axis=1), True, True)
        return substitute(lu, x, False, False)
    lu = lu.swapaxes(-1, -2)
    if trans == "C":
        lu = lu.conj()
    permuted = substitute(lu, substitute(lu, b, True, False), False, True)
    x = np.empty_like(permuted)
    np.put_along_axis(x, order, permuted, axis=1)
    return x


def _linear_solve_aval(
    a: ShapedArray, factors: ShapedArray, pivots: ShapedArray, b: ShapedArray, *, trans: str
) -> tuple[ShapedArray, ...]:
    check_system("linear_solve", a, b)
    check_dtype("linear_solve", factors)
    check_stacks("linear_solve", a, factors)
    check_stacks("linear_solve", a, pivots, core=1)
    return (b.strong(),)


def _linear_solve_check(
    a: ShapedArray, factors: ShapedArray, pivots: ShapedArray, b: ShapedArray, *, trans: str
) -> None:
    if pivots.dtype != INDEX_DTYPE or factors.shape != a.shape or pivots.shape != a.shape[:-1]:
        raise TypeError(f"linear_solve: factors {factors} and pivots {pivots} of {a} do not fit")


def _linear_solve_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any], *, trans: str
) -> tuple[Any, ...]:
    """``op(a) x = b`` gives ``op(a) x_dot = b_dot - op(a_dot) x``: the same factors again.

    The factors' tangents are not read: what they would contribute comes through ``a_dot``.
    """
    a, factors, pivots, _ = primals
    a_dot, _, _, b_dot = tangents
    (x,) = outs
    if type(a_dot) is not Zero:
        b_dot = minus(b_dot, matmul(applied(a_dot, trans), x))
    if type(b_dot) is Zero:
        return (zeros_like_aval(x),)
    return bind(linear_solve_p, a, factors, pivots, b_dot, trans=trans)


def _linear_solve_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, trans: str
) -> tuple[Any, ...]:
    a, factors, pivots, b = operands
    if is_linear(a) or not is_linear(b):
        raise TypeError("linear_solve is linear in its right-hand side only")
    if trans == "C":
        a, factors, trans = conjugate(a), conjugate(factors), "T"
    solved = bind(linear_solve_p, a, factors, pivots, cts[0], trans=TRANSPOSED[trans])
    return (None, None, None, *solved)


def _linear_solve_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any], *, trans: str
) -> tuple[Any, Any]:
    *system, b = operands
    if dims[:3] == (None, None, None):
        wide, out_dim, shape = fold_batch(b, dims[3])
        (x,) = bind(linear_solve_p, *system, wide, trans=trans)
        return (reshape(x, shape),), (out_dim,)
    return bind(linear_solve_p, *to_front(size, operands, dims), trans=trans), (0,)


def _linear_solve_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, trans: str
) -> None:
    """From ``p a = l u``: ``a^-1 = u^-1 l^-1 p``, and the transpose in the other order."""
    _, factors, pivots, b = operands
    (out,) = results
    if out.size == 0:
        return
    stack = len(out.shape) - 2
    n = out.shape[-2]
    scratch = in_double(e, out.reshape(*out.shape[stack:]))

    def permute(pivots: Array, x: Array, is_inverse: bool) -> None:
        with e.count(n) as step:
            j = e.b.sub(e.b.index(n - 1), step) if is_inverse else step
            row = e.cast(e.read(pivots, j), INTEGER).value  # of other pivots than ours: a row too
            exchange_rows(e, x, j, e.b.intrinsic("umin", row, e.b.index(n - 1)))

    if scratch is None:
        convert(e, b, out)
    with each_matrix(e, (factors, pivots, b, out), stack) as (lu, order, right, solution):
        x = scratch or solution
        if scratch is not None:
            convert(e, right, scratch)
        if trans == "N":
            permute(order, x, False)
            solve_triangle(e, lu, x, lower=True, unit_diagonal=True)
            solve_triangle(e, lu, x, lower=False)
        else:
            solve_triangle(e, lu, x, lower=False, trans=trans)
            solve_triangle(e, lu, x, lower=True, trans=trans, unit_diagonal=True)
            permute(order, x, True)
        if scratch is not None:
            convert(e, scratch, solution)


linear_solve_p: Primitive = Primitive(
    "linear_solve",
    impl=_linear_solve_impl,
    abstract_eval=_linear_solve_aval,
    check=_linear_solve_check,
    jvp=_linear_solve_jvp,
    transpose=_linear_solve_transpose,
    batch=_linear_solve_batch,
    lower=Routine(_linear_solve_lower, in_place=3),
    axis_map=of_systems,
    memory="own",
    work=substitutions(2),
)


def linear_solve(a: Any, factors: Any, pivots: Any, b: Any, *, trans: str = "N") -> Any:
    """Solve ``op(a) @ x = b`` with factors that ``lu_factor`` made of ``a``.

    Args:
      a: ``[..., n, n]``; read by derivatives only.
      factors: packed LU factors of ``a``.
      pivots: row interchanges of ``a``.
      b: ``[..., n, k]``, of the dtype of ``a``.
      trans: ``"N"``, ``"T"`` or ``"C"``: ``op(a)`` is ``a``, its transpose or its adjoint.

    Returns:
      ``x``, shaped as ``b``. Factors of a singular matrix give infinities and NaN.
    """
    return bind(linear_solve_p, a, factors, pivots, b, trans=trans)[0]


PRIMITIVES: tuple[Primitive, ...] = (lu_p, lu_factor_p, linear_solve_p)
