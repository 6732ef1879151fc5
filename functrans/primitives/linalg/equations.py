"""Linear and quadratic equations between matrices: Sylvester's and Riccati's.

Here: ``sylvester`` and ``riccati``, the latter with its implicit derivative. Not here: Lyapunov
equations, which are compositions (``functrans.scipy.linalg``), and systems of vectors
(``solve``).

Layer: ``primitives.linalg``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.primitive import Primitive, is_linear
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.primitives.dot import matmul
from functrans.primitives.linalg.common import (
    NOT_LINEAR,
    adjoint,
    check_matrices,
    check_stacks,
    flat_stack,
    identity,
    matrix_transpose,
    needed_scipy_linalg,
    per_matrix,
)
from functrans.primitives.linalg.det import inv
from functrans.primitives.linalg.matrix_functions import BY_SCIPY, check_one_dtype
from functrans.primitives.native.fortran import double_of
from functrans.primitives.structural import zeros_like_aval

# a x + x b = q ----------------------------------------------------------------------------------


def _sylvester_impl(a: Array, b: Array, q: Array) -> tuple[Any, ...]:
    solve = needed_scipy_linalg("sylvester").solve_sylvester
    out = np.empty(q.shape, q.dtype)
    if q.size:
        dtype = double_of(q.dtype)
        wide = (m.astype(dtype, copy=False) for m in (a, b, q))
        for *equation, x in zip(*map(flat_stack, (*wide, out)), strict=True):
            x[...] = solve(*equation)
    return (out,)


def _sylvester_aval(a: ShapedArray, b: ShapedArray, q: ShapedArray) -> tuple[ShapedArray, ...]:
    check_matrices("sylvester", a, b, square=True)
    check_matrices("sylvester", q)
    check_stacks("sylvester", a, b, q)
    check_one_dtype("sylvester", a, b, q)
    if q.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise ShapeError(
            f"sylvester: the right-hand side is {q}, but must have {a.shape[-1]} rows and "
            f"{b.shape[-1]} columns, as many as the matrices {a} and {b} have"
        )
    return (q.strong(),)


def _sylvester_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], outs: Sequence[Any]
) -> tuple[Any, ...]:
    """``a x' + x' b = q' - a' x - x b'``."""
    a, b, _ = primals
    a_dot, b_dot, q_dot = tangents
    (x,) = outs
    terms = [] if type(q_dot) is Zero else [q_dot]
    if type(a_dot) is not Zero:
        terms.append(-matmul(a_dot, x))
    if type(b_dot) is not Zero:
        terms.append(-matmul(x, b_dot))
    if not terms:
        return (zeros_like_aval(x),)
    return bind(sylvester_p, a, b, sum(terms[1:], terms[0]))


def _sylvester_transpose(cts: tuple[Array, ...], operands: Sequence[Any]) -> tuple[Any, ...]:
    a, b, q = operands
    if is_linear(a) or is_linear(b) or not is_linear(q):
        raise TypeError("sylvester is linear in its right-hand side only")
    return (None, None, *bind(sylvester_p, matrix_transpose(a), matrix_transpose(b), cts[0]))


sylvester_p: Primitive = per_matrix(
    "sylvester",
    impl=_sylvester_impl,
    abstract_eval=_sylvester_aval,
    jvp=_sylvester_jvp,
    transpose=_sylvester_transpose,
    reasons=BY_SCIPY,
)


def sylvester(a: Array, b: Array, q: Array) -> Array:
    """Solve ``a x + x b = q``.

    Args:
      a: ``[..., m, m]``.
      b: ``[..., n, n]``.
      q: ``[..., m, n]``; all of one dtype and with equal stacks.

    Returns:
      ``x``, shaped as ``q``. It is unique where ``a`` and ``-b`` share no eigenvalue.

    Reference: Bartels & Stewart, Comm. ACM 15 (1972).
    """
    return bind(sylvester_p, a, b, q)[0]


# Riccati equations ------------------------------------------------------------------------------


def _riccati_impl(
    a: Array,
    b: Array,
    q: Array,
    r: Array,
    e: Array,
    s: Array,
    *,
    is_discrete: bool,
    has_e: bool,
    has_s: bool,
) -> tuple[Any, ...]:
    linalg = needed_scipy_linalg("riccati")
    solve = linalg.solve_discrete_are if is_discrete else linalg.solve_continuous_are
    out = np.empty(q.shape, q.dtype)
    dtype = double_of(q.dtype)
    wide = (m.astype(dtype, copy=False) for m in (a, b, q, r, e, s))
    for *matrices, e_one, s_one, x in zip(*map(flat_stack, (*wide, out)), strict=True):
        options = {"e": e_one if has_e else None, "s": s_one if has_s else None}
        x[...] = solve(*matrices, **options) if x.size else x
    return (out,)


def _riccati_aval(*operands: ShapedArray, **options: bool) -> tuple[ShapedArray, ...]:
    a, b, q, r, e, s = operands
    check_matrices("riccati", a, q, r, e, square=True)
    check_matrices("riccati", b, s)
    check_stacks("riccati", *operands)
    check_one_dtype("riccati", *operands)
    n, m = a.shape[-1], r.shape[-1]
    if any(
        x.shape[-2:] != want for x, want in ((b, (n, m)), (q, (n, n)), (e, (n, n)), (s, (n, m)))
    ):
        raise ShapeError(
            f"riccati: a is {a} and r is {r}, so b and s need {n} rows and {m} columns, q and e "
            f"are {n} by {n}; got b {b}, s {s}, q {q}, e {e}"
        )
    return (q.strong(),)


def _riccati_jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    outs: Sequence[Array],
    *,
    is_discrete: bool,
    has_e: bool,
    has_s: bool,
) -> tuple[Any, ...]:
    """The implicit function theorem: a linear equation with the matrix of the closed loop.

    With ``g = e^H x b + s``, ``h = r`` (continuous) or ``g = a^H x b + s``, ``h = r + b^H x b``
    (discrete), ``k = h^-1 g^H`` and ``c = a - b k``, the equations are::

        a^H x e + e^H x a - g h^-1 g^H + q = 0
        a^H x a - e^H x e - g h^-1 g^H + q = 0

    Their derivatives are ``c^H x' e + e^H x' c + w = 0`` and ``c^H x' c - e^H x' e + w = 0``, where
    ``w`` is what comes from the other operands: ``g' k``, its adjoint and ``k^H h' k`` with ``x``
    held fixed, and the first two terms. Divided by ``e`` from both sides, they are Lyapunov's
    and Stein's equations for ``c e^-1``.

    Reference: Lancaster & Rodman, Algebraic Riccati Equations (1995), ch. 11 and 14.
    """
    a, b, _, r, e, s = primals
    a_dot, b_dot, q_dot, r_dot, e_dot, s_dot = tangents
    (x,) = outs
    first, first_dot = (a, a_dot) if is_discrete else (e, e_dot)
    xb = matmul(x, b)
    g = matmul(adjoint(first), xb) + s
    g_dot = _sum(_adjoint_product(first_dot, xb), _product(matmul(adjoint(first), x), b_dot), s_dot)
    h, h_dot = r, r_dot
    if is_discrete:
        h = r + matmul(adjoint(b), xb)
        turned = _product(adjoint(xb), b_dot)
        h_dot = _sum(r_dot, turned, _adjoint(turned))
    k = matmul(inv(h), adjoint(g))
    loss = _negative(_adjoint_product(_adjoint(g_dot), k))
    if is_discrete:
        moved = _sum(
            _adjoint_product(a_dot, matmul(x, a)), _negative(_adjoint_product(e_dot, matmul(x, e)))
        )
    else:
        moved = _sum(_adjoint_product(a_dot, matmul(x, e)), _product(matmul(adjoint(a), x), e_dot))
    curved = h_dot if type(h_dot) is Zero else matmul(adjoint(k), matmul(h_dot, k))
    half = _sum(moved, loss)
    w = _sum(q_dot, half, _adjoint(half), curved)
    if type(w) is Zero:
        return (zeros_like_aval(x),)
    inverse = inv(e)
    w = matmul(adjoint(inverse), matmul(w, inverse))
    loop = matmul(a - matmul(b, k), inverse)
    return (stein(loop, w) if is_discrete else sylvester(adjoint(loop), loop, -w),)


def _product(x: Operand, t: Any) -> Array | Zero:
    """``x t`` for a tangent that may be ``Zero``; what comes of ``Zero`` is only known to be so."""
    return t if type(t) is Zero else matmul(x, t)


def _adjoint_product(t: Array | Zero, x: Array) -> Array | Zero:
    """``t^H x`` likewise."""
    return t if type(t) is Zero else matmul(adjoint(t), x)


def _adjoint(t: Any) -> Any:
    return t if type(t) is Zero else adjoint(t)


def _negative(t: Any) -> Array | Zero:
    return t if type(t) is Zero else -t


def _sum(*terms: Any) -> Any:
    """The sum of tangents; those that are ``Zero`` are left out."""
    kept = [t for t in terms if type(t) is not Zero]
    return sum(kept[1:], kept[0]) if kept else terms[0]


def stein(c: Array, w: Any) -> Array:
    """Solve ``x - c^H x c = w`` where -1 is no eigenvalue of ``c``.

    The bilinear transform makes it Lyapunov's equation: with ``d = (c + 1)^-1`` and
    ``m = (c - 1) d``, ``m^H x + x m = -2 d^H w d``.

    Reference: Gajic & Qureshi, Lyapunov Matrix Equation in System Stability and Control (1995).
    """
    eye = identity(shape_of(c)[-1], dtype_of(c))
    d = inv(c + eye)
    m = matmul(c - eye, d)
    return sylvester(adjoint(m), m, matmul(adjoint(d), matmul(w, d)) * -2)


riccati_p: Primitive = per_matrix(
    "riccati",
    impl=_riccati_impl,
    abstract_eval=_riccati_aval,
    jvp=_riccati_jvp,
    reasons=(*NOT_LINEAR, *BY_SCIPY),
)


def riccati(
    a: Any, b: Any, q: Any, r: Any, e: Any, s: Any, *, is_discrete: bool, has_e: bool, has_s: bool
) -> Any:
    """The stabilizing solution of an algebraic Riccati equation.

    Args:
      a: ``[..., n, n]``.
      b: ``[..., n, m]``.
      q: ``[..., n, n]``, Hermitian.
      r: ``[..., m, m]``, Hermitian and not singular.
      e: ``[..., n, n]``, the identity if ``has_e`` is false.
      s: ``[..., n, m]``, zero if ``has_s`` is false.
      is_discrete: which of the two equations.
      has_e: whether ``e`` is not the identity.
      has_s: whether ``s`` is not zero.

    Returns:
      ``x``, Hermitian. Derivatives are those of Hermitian changes of ``q`` and ``r``.

    Raises:
      LinAlgError: there is no such solution.
    """
    options = {"is_discrete": is_discrete, "has_e": has_e, "has_s": has_s}
    return bind(riccati_p, a, b, q, r, e, s, **options)[0]


PRIMITIVES: tuple[Primitive, ...] = (sylvester_p, riccati_p)
