"""Primitives around the determinant: inverse, determinant, its logarithm, and cofactors.

Here: ``inv``, ``det``, ``slogdet`` and ``cofactor``, the derivatives of the determinant, which are
exact at singular matrices too, to every order. Not here: linear systems (``solve``).

Layer: ``primitives.linalg``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, is_linear
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import imag, real, real_dtype
from functrans.primitives.dot import matmul
from functrans.primitives.linalg.common import (
    NOT_LINEAR,
    check_matrices,
    check_stacks,
    cubic,
    flat_stack,
    frobenius_product,
    matrix_transpose,
    per_matrix,
)
from functrans.primitives.movement import concatenate
from functrans.primitives.native.fortran import (
    Interchanges,
    Status,
    convert,
    double_of,
    each_matrix,
    exchange_rows,
    factorize,
    fill_identity,
    in_double,
    number_of,
    offset,
)
from functrans.primitives.native.routine_loops import LoopVariable
from functrans.primitives.native.triangles import solve_triangle
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import zeros_like_aval
from functrans.records import dataclass

if TYPE_CHECKING:
    from functrans.emitter.numbers import Number
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

# inverse ----------------------------------------------------------------------------------------


def _inv_impl(a: Any, *, check: bool) -> tuple[Any, ...]:
    try:
        return (np.linalg.inv(a),)
    except np.linalg.LinAlgError:
        if check:
            raise
    if a.ndim == 2:
        return (np.full(a.shape, np.nan, a.dtype),)
    inverses = [_inv_impl(matrix, check=False)[0] for matrix in flat_stack(a)]
    return (np.reshape(inverses, a.shape),)


def _square_aval(name: str) -> Callable[..., Any]:
    def abstract_eval(a: ShapedArray, **params: object) -> tuple[ShapedArray, ...]:
        check_matrices(name, a, square=True)
        return (a.strong(),)

    return abstract_eval


def _inv_jvp(
    primals: object, tangents: Sequence[Any], outs: Sequence[Any], *, check: bool
) -> tuple[Any, ...]:
    """``a x = 1`` gives ``x_dot = -x a_dot x``."""
    (a_dot,), (x,) = tangents, outs
    return (-matmul(matmul(x, a_dot), x),)


def _inv_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, check: bool
) -> None:
    (a,), (out,) = operands, results
    if a.size == 0:
        return
    n = a.shape[-1]
    factors = e.workspace((n, n), double_of(a.dtype))
    scratch = in_double(e, out.reshape(n, n))
    interchanges, status = Interchanges(e, n), Status(e)
    with each_matrix(e, (a, out), len(a.shape) - 2) as (matrix, inverse):
        factorize(e, matrix, factors, interchanges, status)
        is_singular = status.is_bad()
        if check:
            e.fail_when(is_singular, np.linalg.LinAlgError, "Singular matrix")
        invert(e, factors, interchanges, scratch or inverse)
        if scratch is not None:
            convert(e, scratch, inverse)
        if not check:
            with e.b.when(is_singular):
                e.fill(inverse, e.constant(a.dtype, np.nan))


def invert(e: Routines, factors: Array, interchanges: Interchanges, x: Array) -> None:
    """The inverse, by row, of the matrix whose LU factors lie by column: ``u^-1 l^-1 p``."""
    n = x.shape[0]
    fill_identity(e, x)
    with e.count(n) as j:
        exchange_rows(e, x, j, interchanges.row(j).value)
    solve_triangle(e, factors, x, lower=True, unit_diagonal=True, by_column=True)
    solve_triangle(e, factors, x, lower=False, by_column=True)


inv_p: Primitive = per_matrix(
    "inv",
    impl=_inv_impl,
    abstract_eval=_square_aval("inv"),
    jvp=_inv_jvp,
    lower=Routine(_inv_lower, in_place=0),
    reasons=NOT_LINEAR,
    work=cubic(2.0),
)


def inv(a: Any, *, check: bool = True) -> Any:
    """Inverses of square matrices.

    Args:
      a: ``[..., n, n]``.
      check: raise for a singular matrix; else its inverse is NaN.

    Raises:
      LinAlgError: a matrix is singular.
    """
    return bind(inv_p, a, check=check)[0]


# determinant ------------------------------------------------------------------------------------


def _per_matrix_aval(name: str) -> Callable[..., Any]:
    def abstract_eval(a: ShapedArray) -> tuple[ShapedArray, ...]:
        check_matrices(name, a, square=True)
        return (ShapedArray(a.shape[:-2], a.dtype),)

    return abstract_eval


def _det_jvp(primals: Sequence[Any], tangents: Sequence[Any], outs: object) -> tuple[Any, ...]:
    """Jacobi's formula: ``det_dot = sum_ij cofactor(a)_ij a_dot_ij``; it needs no inverse."""
    return (frobenius_product(cofactor(primals[0]), tangents[0]),)


def _det_lower(e: Routines, operands: Sequence[Array], results: Sequence[Array]) -> None:
    """The product of the pivots; by logarithms, as NumPy does, where it leaves the normal range."""
    (a,), (out,) = operands, results
    if a.shape[-1] == 0:
        e.fill(out, e.constant(out.dtype, 1))
        return
    with _factored(e, a, (out,)) as (factors, (det,)):
        product = LoopVariable(e, e.constant(factors.memory.dtype, 1))
        is_normal = LoopVariable(e, e.constant(bool, True))
        with factors.pivots() as (pivot, is_exchanged):
            value = e.multiply(product.get(), pivot)
            value = e.select(is_exchanged, e.negative(value), value)
            product.set(value)
            is_normal.set(e.logical_and(is_normal.get(), _is_normal(e, value)))
        index = e.b.index(0)
        e.write(det, index, e.cast(product.get(), a.dtype))
        with e.b.when(e.b.not_(is_normal.get().value)):
            sign, logarithm = _sign_and_logarithm(e, factors)
            size = e.cast(e.exp(logarithm), sign.dtype)
            e.write(det, index, e.cast(e.multiply(sign, size), a.dtype))


def _is_normal(e: Routines, x: Number) -> Number:
    """Whether a product has lost nothing to overflow or underflow; false for NaN."""
    limits = np.finfo(np.float64)
    size = e.complex_abs(x) if x.kind == "c" else e.absolute(x)
    is_low = e.less_equal(size, e.like(size, limits.max))
    return e.logical_and(is_low, e.greater_equal(size, e.like(size, limits.tiny / limits.eps)))


@dataclass(frozen=True, slots=True)
class _Factors:
    """LU factors of a matrix.

    Attributes:
      e: the emitter.
      memory: the factors by column.
      interchanges: the rows that were exchanged.
      is_singular: whether a pivot is exactly 0.
    """

    e: Routines
    memory: Array
    interchanges: Interchanges
    is_singular: Value

    @contextmanager
    def pivots(self) -> Iterator[tuple[Number, Number]]:
        """Loop over the diagonal; yields a pivot, and whether its row was exchanged."""
        e, n = self.e, self.memory.shape[0]
        with e.count(n) as j:
            pivot = e.load(self.memory.dtype, offset(e, self.memory, [(j, n + 1)]))
            yield pivot, e.not_equal(self.interchanges.row(j), number_of(e, j))


@contextmanager
def _factored(
    e: Routines, a: Array, results: Sequence[Array]
) -> Iterator[tuple[_Factors, list[Array]]]:
    """Loop over a stack of matrices, not 0x0; yields factors, and the places of results."""
    n = a.shape[-1]
    memory = e.workspace((n, n), double_of(a.dtype))
    interchanges, status = Interchanges(e, n), Status(e)
    with each_matrix(e, (a, *results), len(a.shape) - 2) as (matrix, *places):
        factorize(e, matrix, memory, interchanges, status)
        yield _Factors(e, memory, interchanges, status.is_bad()), places


def _sign_and_logarithm(e: Routines, factors: _Factors) -> tuple[Number, Number]:
    """Sign, or phase, of a determinant and the logarithm of its absolute value."""
    sign = LoopVariable(e, e.constant(factors.memory.dtype, 1))
    logarithm = LoopVariable(e, e.constant(np.float64, 0))
    with factors.pivots() as (pivot, is_exchanged):
        size = e.complex_abs(pivot) if pivot.kind == "c" else e.absolute(pivot)
        logarithm.set(e.add(logarithm.get(), e.log(size)))
        if pivot.kind == "c":
            parts = tuple(e.b.fdiv(part, size.value) for part in pivot.parts)
            unit = dataclasses.replace(pivot, parts=parts)
        else:
            is_negative = e.less(pivot, e.like(pivot, 0))
            unit = e.select(is_negative, e.like(pivot, -1), e.like(pivot, 1))
        value = e.multiply(sign.get(), unit)
        sign.set(e.select(is_exchanged, e.negative(value), value))
    numbers = []
    for carried, at_singular in ((sign, 0), (logarithm, -np.inf)):
        x = carried.get()
        is_singular = dataclasses.replace(e.constant(bool, False), parts=(factors.is_singular,))
        numbers.append(e.select(is_singular, e.like(x, at_singular), x))
    return numbers[0], numbers[1]


det_p: Primitive = per_matrix(
    "det",
    impl=lambda a: (np.linalg.det(a),),
    abstract_eval=_per_matrix_aval("det"),
    jvp=_det_jvp,
    lower=Routine(_det_lower),
    reasons=NOT_LINEAR,
    work=cubic(2 / 3),
)


def det(a: Any) -> Any:
    """Determinants of square matrices ``[..., n, n]``."""
    return bind(det_p, a)[0]


def _slogdet_aval(a: ShapedArray) -> tuple[ShapedArray, ...]:
    check_matrices("slogdet", a, square=True)
    return ShapedArray(a.shape[:-2], a.dtype), ShapedArray(a.shape[:-2], real_dtype(a.dtype))


def _slogdet_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any]
) -> tuple[Any, ...]:
    """``log det`` has the derivative ``trace(a^-1 a_dot)``: real part of modulus, rest of phase.

    At a singular matrix the logarithm is ``-inf`` and its derivative NaN.
    """
    (a,), (a_dot,), (sign, _) = primals, tangents, outs
    log_dot = frobenius_product(matrix_transpose(inv(a, check=False)), a_dot)
    if dtype_of(a).kind != "c":
        return zeros_like_aval(sign), log_dot
    return imag(log_dot) * (sign * 1j), real(log_dot)


def _slogdet_lower(e: Routines, operands: Sequence[Array], results: Sequence[Array]) -> None:
    (a,) = operands
    if a.shape[-1] == 0:
        for out, value in zip(results, (1, 0), strict=True):
            e.fill(out, e.constant(out.dtype, value))
        return
    with _factored(e, a, results) as (factors, (sign, logarithm)):
        numbers = _sign_and_logarithm(e, factors)
        for place, x in zip((sign, logarithm), numbers, strict=True):
            e.write(place, e.b.index(0), e.cast(x, place.dtype))


slogdet_p: Primitive = per_matrix(
    "slogdet",
    impl=lambda a: tuple(np.linalg.slogdet(a)),
    abstract_eval=_slogdet_aval,
    jvp=_slogdet_jvp,
    lower=Routine(_slogdet_lower),
    reasons=NOT_LINEAR,
    work=cubic(2 / 3),
)


def slogdet(a: Any) -> tuple[Any, Any]:
    """Sign (phase) and logarithm of the absolute value of the determinant."""
    return bind(slogdet_p, a)


# cofactors --------------------------------------------------------------------------------------
#
# The derivatives of the determinant form one family. Write F_k(a; h_1 .. h_k) for its k-th
# derivative at a in the directions h_1 .. h_k, and C_k(a; h_1 .. h_k) for the gradient of
# F_{k+1}(a; h_1 .. h_k, h) in h. C_0 is the matrix of cofactors. Then
#
#   d/da C_k(a; h_1 .. h_k) [h] = C_{k+1}(a; h_1 .. h_k, h),
#
# C_k is linear in each h_i, and since F_{k+1} is symmetric, the transpose of C_k in h_i is C_k with
# the cotangent in place of h_i. So one primitive serves all orders, and nothing is divided by the
# determinant.
#
# Evaluation: with a = u s v^H, det(a) = det(u) det(v^H) det(m) for m = u^H a v with u, v held
# fixed. At the diagonal m = s the Leibniz formula gives, for the direction m_i in m,
#
#   F_k = sum over distinct i_1 .. i_k of p(i_1 .. i_k) sum over permutations q of
#         sign(q) prod_j h_j[i_j, i_q(j)],     p = product of the s_i not listed,
#
# and C_k leaves out h_{k+1}, whose row i_{k+1} and column i_q(k+1) index the result.
# A well-conditioned matrix has C_0 = det(a) a^-T, which costs a tenth.
#
# Reference: Jacobi's formula; Bhatia & Jain, Higher order derivatives and perturbation bounds for
# determinants, Linear Algebra Appl. 431 (2009).

_WELL_CONDITIONED = 1e4
"""Largest condition number for cofactors by the inverse: they lose that factor times eps."""


def _products_of_others(s: np.ndarray, order: int) -> np.ndarray:
    """``p[..., i_1, .., i_order]``: the product of all but the listed; 0 if one is listed twice."""
    n = s.shape[-1]
    eye = np.eye(n, dtype=bool)
    taken = np.zeros((n,), bool)
    for position in range(order - 1):  # taken[i_1 .. i_position, j]: j is among them
        taken = taken[..., None, :] | eye.reshape(*(1,) * position, n, n)
    s = np.where(taken, 1.0, s.reshape(*s.shape[:-1], *(1,) * (order - 1), n))
    ones = np.ones((*s.shape[:-1], 1), s.dtype)
    before = np.cumprod(np.concatenate((ones, s[..., :-1]), axis=-1), axis=-1)
    after = np.cumprod(np.concatenate((ones, s[..., :0:-1]), axis=-1), axis=-1)[..., ::-1]
    products: np.ndarray = np.where(taken, 0.0, before * after)
    return products


def _parity(order: tuple[int, ...]) -> int:
    """Sign of a permutation."""
    inversions = sum(order[i] > order[j] for j in range(len(order)) for i in range(j))
    return -1 if inversions % 2 else 1


def _cofactor_of_diagonal(s: np.ndarray, directions: list[np.ndarray]) -> np.ndarray:
    """``C_k`` at diagonal matrices ``s[stack, n]``; the directions are ``[stack, n, n]``."""
    k = len(directions)
    n = s.shape[-1]
    products = _products_of_others(s, k + 1)
    batch = k + 1  # einsum's label of the stack; labels 0 .. k are i_1 .. i_{k+1}
    out = np.zeros((len(s), n, n), np.result_type(s, *directions))
    diagonal = np.einsum("...ii->...i", out)
    operands: list[Any]
    for order in permutations(range(k + 1)):
        operands = [products, [batch, *range(k + 1)]]
        for j, direction in enumerate(directions):
            operands += [direction, [batch, j, order[j]]]
        row, column = k, order[k]
        if row == column:
            diagonal += _parity(order) * np.einsum(*operands, [batch, row])
        else:
            out += _parity(order) * np.einsum(*operands, [batch, row, column])
    return out


def _cofactor_impl(a: Any, *directions: Any) -> tuple[Any, ...]:
    work = double_of(a.dtype)
    matrices = flat_stack(a).astype(work, copy=False)
    flat = [flat_stack(h).astype(work, copy=False) for h in directions]
    out = np.empty(matrices.shape, work)
    if not directions and a.size:
        out, is_done = _cofactor_by_inverse(matrices)
        left = np.flatnonzero(~is_done)
        if len(left):
            out[left] = _cofactor_by_svd(matrices[left], [])
    elif a.size:
        out = _cofactor_by_svd(matrices, flat)
    return (out.reshape(a.shape).astype(a.dtype, copy=False),)


def _cofactor_by_inverse(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cofactors of the well-conditioned matrices of a stack, and which those are."""
    (inverse,) = _inv_impl(a, check=False)
    with np.errstate(all="ignore"):
        condition = np.linalg.norm(a, 1, (-2, -1)) * np.linalg.norm(inverse, 1, (-2, -1))
        cofactors = np.linalg.det(a)[:, None, None] * inverse.swapaxes(-1, -2)
    return cofactors, condition < _WELL_CONDITIONED  # NaN is not


def _cofactor_by_svd(a: np.ndarray, directions: list[np.ndarray]) -> np.ndarray:
    """Cofactors by singular values; NaN for matrices that are not finite."""
    out = np.full(a.shape, np.nan, a.dtype)
    finite = np.isfinite(a).all(axis=(-2, -1))
    u, s, vh = np.linalg.svd(a[finite])
    u_conj, v = u.conj(), vh.conj().swapaxes(-1, -2)
    rotated = [u_conj.swapaxes(-1, -2) @ h[finite] @ v for h in directions]
    unit = (np.linalg.det(u) * np.linalg.det(vh))[:, None, None]
    out[finite] = unit * (u_conj @ _cofactor_of_diagonal(s, rotated) @ vh.conj())
    return out


def _cofactor_aval(a: ShapedArray, *directions: ShapedArray) -> tuple[ShapedArray, ...]:
    check_matrices("cofactor", a, *directions, square=True)
    check_stacks("cofactor", a, *directions)
    return (a.strong(),)


def _cofactor_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any]
) -> tuple[Any, ...]:
    a, *directions = primals
    a_dot, *direction_dots = tangents
    terms = [] if type(a_dot) is Zero else [cofactor(a, *directions, a_dot)]
    for i, h_dot in enumerate(direction_dots):
        if type(h_dot) is not Zero:
            terms.append(cofactor(a, *directions[:i], h_dot, *directions[i + 1 :]))
    if not terms:
        return (zeros_like_aval(outs[0]),)
    return (sum(terms[1:], start=terms[0]),)


def _cofactor_transpose(cts: Sequence[Any], operands: Sequence[Any]) -> tuple[Any, ...]:
    flags = [is_linear(operand) for operand in operands]
    if flags[0] or sum(flags) != 1:
        raise TypeError("cofactor is linear in each of its directions, one at a time")
    pulled = cofactor(*(cts[0] if flag else x for flag, x in zip(flags, operands, strict=True)))
    return tuple(pulled if flag else None for flag in flags)


cofactor_p: Primitive = per_matrix(
    "cofactor",
    impl=_cofactor_impl,
    abstract_eval=_cofactor_aval,
    jvp=_cofactor_jvp,
    transpose=_cofactor_transpose,
    reasons=(("lower", "NumPy's routines are called; programs are compiled around it"),),
)


def cofactor(a: Any, *directions: object) -> Any:
    """Cofactors of square matrices, or their derivative of any order in given directions.

    Args:
      a: ``[..., n, n]``, singular or not.
      *directions: ``[..., n, n]`` each; their number is the order. Order ``k`` takes memory for
        ``n ** (k + 1)`` numbers a matrix.

    Returns:
      ``[..., n, n]``: the gradient of the determinant, or its derivative in the directions.
    """
    if not directions and shape_of(a)[-1] in (2, 3):
        return _small_cofactor(a)
    return bind(cofactor_p, a, *directions)[0]


def _small_cofactor(a: Any) -> Any:
    """Cofactors of 2x2 and 3x3 matrices by products of entries: compiled with what is around them.

    Of 3x3 matrices the rows are cross products of the other two; with rows and columns repeated,
    each factor is a window of the matrix.
    """
    ndim = len(shape_of(a))

    def window(x: Any, rows: slice, columns: slice) -> Any:
        return slice_index(x, BasicIndex((*(slice(None),) * (ndim - 2), rows, columns)))

    whole = slice(None)
    if shape_of(a)[-1] == 2:
        turned = window(a, slice(None, None, -1), slice(None, None, -1))
        signs = np.array([[1, -1], [-1, 1]], dtype_of(a))
        signs.flags.writeable = False
        return ew.multiply(turned, signs)
    first, second = slice(1, 4), slice(2, 5)
    a = concatenate([a, window(a, slice(0, 2), whole)], ndim - 2)
    a = concatenate([a, window(a, whole, slice(0, 2))], ndim - 1)
    down = ew.multiply(window(a, first, first), window(a, second, second))
    up = ew.multiply(window(a, first, second), window(a, second, first))
    return ew.subtract(down, up)


PRIMITIVES: tuple[Primitive, ...] = (inv_p, det_p, slogdet_p, cofactor_p)
