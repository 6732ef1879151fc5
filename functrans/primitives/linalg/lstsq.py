"""Primitives for least squares: the pseudo-inverse and least-squares solutions; norms' square root.

Here: ``pinv``, ``lstsq`` and ``norm_sqrt``. Not here: solves of square systems (``solve``).

Layer: ``primitives.linalg``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.dispatch import bind, shape_of
from functrans.core.lowering import Expansion
from functrans.core.primitive import Primitive
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import real_dtype
from functrans.primitives.dot import matmul
from functrans.primitives.family import unary, user_function
from functrans.primitives.linalg.common import (
    INDEX_DTYPE,
    NOT_LINEAR,
    adjoint,
    as_column,
    check_matrices,
    check_stacks,
    cubic,
    flat_stack,
    from_triangle,
    matrix_transpose,
    per_matrix,
)
from functrans.primitives.linalg.spectral import check_finite, eigh_p, push_singular_values, svd_p
from functrans.primitives.reduction import reduce_max
from functrans.primitives.structural import zeros_like_aval

# pseudo-inverse ---------------------------------------------------------------------------------


def _pinv_impl(a: Array, rtol: Array, *, hermitian: bool) -> tuple[Any, ...]:
    check_finite(a)
    return (np.linalg.pinv(a, rtol=rtol, hermitian=hermitian),)


def _pinv_aval(a: ShapedArray, rtol: ShapedArray, *, hermitian: bool) -> tuple[ShapedArray, ...]:
    check_matrices("pinv", a, square=hermitian)
    if rtol.shape != a.shape[:-2]:
        raise ShapeError(f"pinv: rtol {rtol} must have one tolerance for each matrix of {a}")
    *stack, rows, columns = a.shape
    return (ShapedArray((*stack, columns, rows), a.dtype),)


def _pinv_jvp(
    primals: tuple[Array, ...],
    tangents: tuple[Any, ...],
    outs: tuple[Array, ...],
    *,
    hermitian: bool,
) -> tuple[Any, ...]:
    """The tangent under perturbations that keep the rank.

    With ``x`` the pseudo-inverse and ``d = a_dot^H``::

        x_dot = -x a_dot x + x x^H d (1 - a x) + (1 - x a) d x^H x

    A singular value that is cut off stays cut off. A perturbation that raises the rank has no
    derivative; this is its part that keeps the rank.

    Reference: Golub & Pereyra, SIAM Journal on Numerical Analysis 10 (1973), equation 4.12.
    """
    (a, _), (a_dot, _), (x,) = primals, tangents, outs
    if type(a_dot) is Zero:
        return (zeros_like_aval(x),)
    if hermitian:
        a, a_dot = from_triangle(a), from_triangle(a_dot)
    d = adjoint(a_dot)
    x_adjoint = adjoint(x)
    left = matmul(x, matmul(x_adjoint, d))
    right = matmul(matmul(d, x_adjoint), x)
    inner = matmul(matmul(x, a_dot), x)
    return (left - matmul(matmul(left, a), x) + right - matmul(x, matmul(a, right)) - inner,)


def _pinv_lower(a: Array, rtol: Array, *, hermitian: bool) -> tuple[Any, ...]:
    """By singular values; of Hermitian matrices by eigenvalues, which are those up to signs."""
    if 0 in shape_of(a)[-2:]:
        return (matrix_transpose(a),)
    if hermitian:
        values, basis = bind(eigh_p, a, uplo="L", vectors=True)
        left, right = basis, adjoint(basis)
    else:
        u, values, vh = bind(svd_p, a, full_matrices=False, compute_uv=True)
        left, right = adjoint(vh), adjoint(u)
    (sizes,) = bind(ew.absolute_p, values)
    cutoff = as_column(rtol * reduce_max(sizes, (len(shape_of(sizes)) - 1,)))
    is_large = sizes > cutoff
    inverse = ew.where(is_large, 1 / ew.where(is_large, values, 1), 0)
    return (matmul(left, as_column(inverse) * right),)


pinv_p: Primitive = per_matrix(
    "pinv",
    impl=_pinv_impl,
    abstract_eval=_pinv_aval,
    jvp=_pinv_jvp,
    lower=Expansion(_pinv_lower),
    reasons=NOT_LINEAR,
    work=cubic(22.0),
)


def pinv(a: Array | complex, rtol: Any, *, hermitian: bool = False) -> Any:
    """Pseudo-inverses of matrices ``[..., m, n]``.

    Args:
      a: the matrices.
      rtol: ``[...]``; singular values below this part of the largest one count as 0.
      hermitian: read the lower triangle of Hermitian matrices only, which is faster.
    """
    return bind(pinv_p, a, rtol, hermitian=hermitian)[0]


# least squares ----------------------------------------------------------------------------------


def _lstsq_impl(a: Array, b: Array, *, rcond: float) -> tuple[Any, ...]:
    check_finite(a)
    if a.ndim == 2:
        x, _, rank, s = np.linalg.lstsq(a, b, rcond)
        return x, np.asarray(rank, INDEX_DTYPE), s
    stack, k = a.shape[:-2], min(a.shape[-2:])
    x = np.empty((*stack, a.shape[-1], b.shape[-1]), b.dtype)
    ranks = np.empty(stack, INDEX_DTYPE)
    s = np.empty((*stack, k), real_dtype(b.dtype))
    outs = zip(flat_stack(x), ranks.reshape(-1, 1), s.reshape(len(flat_stack(x)), k), strict=True)
    for matrix, right, results in zip(flat_stack(a), flat_stack(b), outs, strict=True):
        results[0][...], _, results[1][...], results[2][...] = np.linalg.lstsq(matrix, right, rcond)
    return x, ranks, s


def _lstsq_aval(a: ShapedArray, b: ShapedArray, *, rcond: float) -> tuple[ShapedArray, ...]:
    check_matrices("lstsq", a, b)
    check_stacks("lstsq", a, b)
    if a.shape[-2] != b.shape[-2] or a.dtype != b.dtype:
        raise ShapeError(f"lstsq: {a} and {b} must have as many rows, and one dtype")
    *stack, rows, columns = a.shape
    return (
        ShapedArray((*stack, columns, b.shape[-1]), b.dtype),
        ShapedArray(tuple(stack), INDEX_DTYPE),
        ShapedArray((*stack, min(rows, columns)), real_dtype(a.dtype)),
    )


def _lstsq_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], outs: Sequence[Array], *, rcond: float
) -> tuple[Any, ...]:
    """``x = p b`` with ``p`` the pseudo-inverse of ``a``, differentiated as that one is.

    With ``d = a_dot^H`` and the residual ``r = b - a x``::

        x_dot = p (b_dot - a_dot x) + p p^H d r + (1 - p a) d p^H x

    The products are with ``x`` and ``r`` themselves, so that the tangent is as accurate as they
    are; ``p`` never multiplies ``b``.
    """
    (a, b), (a_dot, b_dot), (x, rank, s) = primals, tangents, outs
    p = pinv(a, np.full(shape_of(a)[:-2], rcond))
    if type(a_dot) is Zero:
        return matmul(p, b_dot), zeros_like_aval(rank), zeros_like_aval(s)
    d = adjoint(a_dot)
    p_adjoint = adjoint(p)
    residual = b - matmul(a, x)
    change = -matmul(a_dot, x) if type(b_dot) is Zero else b_dot - matmul(a_dot, x)
    inside = change + matmul(p_adjoint, matmul(d, residual))
    outside = matmul(d, matmul(p_adjoint, x))
    x_dot = matmul(p, inside - matmul(a, outside)) + outside
    (s_dot,) = push_singular_values(a, a_dot)
    return x_dot, zeros_like_aval(rank), s_dot


lstsq_p: Primitive = per_matrix(
    "lstsq",
    impl=_lstsq_impl,
    abstract_eval=_lstsq_aval,
    jvp=_lstsq_jvp,
    reasons=(*NOT_LINEAR, ("lower", "NumPy's routine is called; programs are compiled around it")),
    work=cubic(4.0),
)


def lstsq(a: Array | complex, b: Array | complex, rcond: float) -> tuple[Any, Any, Any]:
    """Least-squares solutions of least norm.

    Args:
      a: ``[..., m, n]``.
      b: ``[..., m, k]``, of the same dtype.
      rcond: singular values below this part of the largest one count as 0.

    Returns:
      ``(x, rank, s)``: ``[..., n, k]``, int32 ``[...]``, and singular values of ``a``.
    """
    return bind(lstsq_p, a, b, rcond=rcond)


# norms ------------------------------------------------------------------------------------------


def _norm_sqrt_partial(t: Array, x: Array | None, y: Array) -> Array:
    """``t / (2 y)``, and 0 where ``y`` is 0; every further derivative is 0 there, too."""
    return t * (0.5 / ew.where(y == 0, np.inf, y))


norm_sqrt_p = unary("norm_sqrt", np.sqrt, _norm_sqrt_partial, "y", cost=4)
norm_sqrt = user_function(
    norm_sqrt_p, "The square root whose derivative at 0 is 0: that of norms, by convention."
)

PRIMITIVES: tuple[Primitive, ...] = (pinv_p, lstsq_p, norm_sqrt_p)
