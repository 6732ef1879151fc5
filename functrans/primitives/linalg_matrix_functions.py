"""Functions of square matrices: exponential, principal logarithm and root, any other function.

Here: ``matrix_function`` and its Fréchet derivative ``matrix_frechet``. Not here: functions that
are compositions of these (``functrans.scipy.linalg``), and
how a function that is given by one of numbers is evaluated (``linalg_parlett``).

For a function ``f`` of matrices let ``l(a, e)`` be its derivative at ``a`` in the direction ``e``.
Then ``f([[a, e], [0, a]]) = [[f(a), l(a, e)], [0, f(a)]]``. As ``l`` is one block of ``f``, its own
derivative in ``a`` is one block of ``l`` at the larger matrix, and so the family is closed under
derivatives of every order. For a power series ``f = sum c_k a^k``,
``l(a, e) = sum_ij c_(i+j+1) a^i e a^j``; hence the transpose of ``e -> l(a, e)`` is
``l(a^T, .)``. That holds for the primary functions here too.

Reference: Mathias, A chain rule for matrix functions and applications, SIAM J. Matrix Anal. Appl.
17 (1996); Higham, Functions of Matrices (2008), ch. 3; Al-Mohy & Higham, Computing the Fréchet
derivative of the matrix exponential, SIAM J. Matrix Anal. Appl. 30 (2009).

Layer: ``primitives``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.ir.avals import ShapedArray, Zero
from functrans.ir.primitive import Primitive, is_linear
from functrans.primitives.linalg_common import (
    NOT_LINEAR,
    batch_in_front,
    check_dtype,
    check_matrices,
    check_stacks,
    flat_stack,
    matrix_transpose,
    needed_scipy_linalg,
    working_dtype,
)
from functrans.primitives.linalg_parlett import NumberFunction, number_function
from functrans.primitives.movement import concatenate
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, zeros_like_aval
from functrans.trace import bind, dtype_of, shape_of

FunctionName = str | NumberFunction

BY_SCIPY = (("lower", "SciPy's routine is called; programs are compiled around it"),)


def _evaluate(a: np.ndarray, name: FunctionName) -> Any:
    """The function at one matrix, by SciPy, in double precision."""
    if not a.size:
        return a
    if isinstance(name, NumberFunction):
        return number_function(a, name)
    linalg = needed_scipy_linalg(name)
    a = a.astype(working_dtype(a.dtype), copy=False)
    if a.dtype.kind == "c" and name != "expm" and not a.imag.any():
        a = a.real  # quicker, and what SciPy gives for real matrices
    return getattr(linalg, name)(a)


def _matrix_function_impl(a: Any, *, name: FunctionName) -> tuple[Any, ...]:
    out = np.empty(a.shape, a.dtype)
    for matrix, value in zip(flat_stack(a), flat_stack(out), strict=True):
        value[...] = _evaluate(matrix, name)
    return (out,)


def _matrix_function_aval(a: ShapedArray, *, name: FunctionName) -> tuple[ShapedArray, ...]:
    check_matrices(str(name), a, square=True)
    return (a.strong(),)


def _matrix_function_jvp(
    primals: Any, tangents: Any, outs: Any, *, name: FunctionName
) -> tuple[Any, ...]:
    return bind(matrix_frechet_p, *primals, *tangents, name=name)


matrix_function_p: Primitive = Primitive(
    "matrix_function",
    impl=_matrix_function_impl,
    abstract_eval=_matrix_function_aval,
    jvp=_matrix_function_jvp,
    batch=batch_in_front(lambda: matrix_function_p),
    reasons=(*NOT_LINEAR, *BY_SCIPY),
)


def _frechet(a: np.ndarray, e: np.ndarray, name: FunctionName) -> Any:
    """The derivative of the function at one matrix, in one direction."""
    linalg = needed_scipy_linalg(str(name))
    n = len(a)
    if not n:
        return e
    if name == "expm" and np.isfinite(a).all() and np.isfinite(e).all():
        return linalg.expm_frechet(a, e, compute_expm=False)
    if name == "sqrtm":  # s s = a gives s s' + s' s = a'
        root = _evaluate(a, name).astype(e.dtype)  # SciPy's solver is wrong for mixed kinds
        return linalg.solve_sylvester(root, root, e)
    return _evaluate(np.block([[a, e], [np.zeros_like(a), a]]), name)[:n, n:]


def _matrix_frechet_impl(a: Any, e: Any, *, name: FunctionName) -> tuple[Any, ...]:
    out = np.empty(e.shape, e.dtype)
    for matrix, direction, value in zip(*map(flat_stack, (a, e, out)), strict=True):
        value[...] = _frechet(matrix, direction, name)
    return (out,)


def _matrix_frechet_aval(
    a: ShapedArray, e: ShapedArray, *, name: FunctionName
) -> tuple[ShapedArray, ...]:
    check_matrices(str(name), a, e, square=True)
    check_stacks(str(name), a, e)
    check_one_dtype(str(name), a, e)
    return (e.strong(),)


def _matrix_frechet_jvp(
    primals: Any, tangents: Any, outs: Any, *, name: FunctionName
) -> tuple[Any, ...]:
    a, e = primals
    a_dot, e_dot = tangents
    total: Any = None if type(e_dot) is Zero else bind(matrix_frechet_p, a, e_dot, name=name)[0]
    if type(a_dot) is not Zero:
        zero = np.zeros(shape_of(a), dtype_of(a))
        n = shape_of(a)[-1]
        wide = bind(
            matrix_frechet_p,
            _blocks(a, e, zero, a),
            _blocks(a_dot, zero, zero, a_dot),
            name=name,
        )[0]
        corner = slice_index(wide, BasicIndex((Ellipsis, slice(0, n), slice(n, None))))
        total = corner if total is None else total + corner
    return (zeros_like_aval(outs[0]) if total is None else total,)


def _blocks(a: Any, b: Any, c: Any, d: Any) -> Any:
    """``[[a, b], [c, d]]`` of each four matrices."""
    last = len(shape_of(a)) - 1
    rows = [concatenate(row, axis=last) for row in ((a, b), (c, d))]
    return concatenate(rows, axis=last - 1)


def _matrix_frechet_transpose(cts: Any, operands: Any, *, name: FunctionName) -> tuple[Any, ...]:
    a, e = operands
    if is_linear(a) or not is_linear(e):
        raise TypeError("matrix_frechet is linear in its direction only")
    return (None, bind(matrix_frechet_p, matrix_transpose(a), cts[0], name=name)[0])


matrix_frechet_p: Primitive = Primitive(
    "matrix_frechet",
    impl=_matrix_frechet_impl,
    abstract_eval=_matrix_frechet_aval,
    jvp=_matrix_frechet_jvp,
    transpose=_matrix_frechet_transpose,
    batch=batch_in_front(lambda: matrix_frechet_p),
    reasons=BY_SCIPY,
)


def check_one_dtype(name: str, *avals: ShapedArray) -> None:
    """Refuse operands of several dtypes.

    Raises:
      TypeError: names the avals.
    """
    for aval in avals:
        check_dtype(name, aval)
        if aval.dtype != avals[0].dtype:
            raise TypeError(
                f"{name}: operands of types {', '.join(map(str, avals))}; cast them to one dtype"
            )


def matrix_function(a: Any, name: FunctionName) -> Any:
    """A function of square matrices ``[..., n, n]``.

    Args:
      a: the matrices; for ``"logm"`` and ``"sqrtm"`` complex, since their results may be.
      name: ``"expm"``, ``"logm"`` or ``"sqrtm"``; or a function of numbers, and ``a`` complex.

    Returns:
      Matrices of the shape and dtype of ``a``.

    Raises:
      ImportError: SciPy is not installed.
    """
    return bind(matrix_function_p, a, name=name)[0]


def matrix_frechet(a: Any, e: Any, name: FunctionName) -> Any:
    """The Fréchet derivative of :func:`matrix_function` at ``a`` in the directions ``e``."""
    dtype = np.result_type(dtype_of(a), dtype_of(e))
    return bind(matrix_frechet_p, cast(a, dtype), cast(e, dtype), name=name)[0]


PRIMITIVES = (matrix_function_p, matrix_frechet_p)
