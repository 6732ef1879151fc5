"""Functions of square matrices: exponential, principal logarithm and root, any other function.

Here: ``matrix_function`` and its Fréchet derivatives of every order, ``matrix_derivative``. Not
here: functions that are compositions of these (``functrans.scipy.linalg``), and how a function
that is given by one of numbers is evaluated (``parlett``).

Let ``d(a; e_1, ..., e_k)`` be the derivative of order ``k`` of a function ``f`` of matrices at
``a``, which is linear in each of its directions and symmetric in them. Its derivative in ``a``
is the one of the next order with one direction more, so that the family is closed under
derivatives. For a power series ``f = sum c_m a^m`` it is the sum over all words
``a^i0 e_p1 a^i1 ... e_pk a^ik``, and ``tr(c^T d(a; e_1, ..., e_k))`` is a sum over cyclic words:
hence the transpose in one direction is the derivative at ``a^T`` with ``c`` in its place and the
other directions transposed. That holds for the primary functions here too.

All of it is decided at ``a`` alone: the branch of a logarithm or root at a negative eigenvalue is
chosen once, in the Schur form of ``a``, whatever the directions are.

Reference: Higham & Relton, Higher order Fréchet derivatives of matrix functions and the level-2
condition number, SIAM J. Matrix Anal. Appl. 35 (2014); Mathias, A chain rule for matrix functions
and applications, SIAM J. Matrix Anal. Appl. 17 (1996); Higham, Functions of Matrices (2008), ch. 3.

Layer: ``primitives.linalg``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.dispatch import bind, dtype_of
from functrans.core.primitive import Primitive, is_linear
from functrans.core.values import Array
from functrans.primitives.linalg.common import (
    NOT_LINEAR,
    check_dtype,
    check_matrices,
    check_stacks,
    flat_stack,
    matrix_transpose,
    needed_scipy_linalg,
    per_matrix,
)
from functrans.primitives.linalg.parlett import (
    NumberFunction,
    number_function,
    number_function_of_triangle,
    schur_form,
)
from functrans.primitives.native.fortran import double_of
from functrans.primitives.structural import cast, zeros_like_aval

FunctionName = str | NumberFunction

BY_SCIPY = (("lower", "SciPy's routine is called; programs are compiled around it"),)


def _evaluate(a: np.ndarray, name: FunctionName) -> Array:
    """The function at one matrix, by SciPy, in double precision."""
    if not a.size:
        return a
    if isinstance(name, NumberFunction):
        return number_function(a, name)
    linalg = needed_scipy_linalg(name)
    is_real = a.dtype.kind != "c"
    a = a.astype(double_of(a.dtype), copy=False)
    if not is_real and name != "expm" and not a.imag.any():
        a = a.real  # quicker, and what SciPy gives for real matrices
    value = getattr(linalg, name)(a)
    if is_real and value.dtype.kind == "c":
        refuse_complex(name)
    return value


def refuse_complex(name: str) -> NoReturn:
    """Say that a real result was wanted of a matrix that has none."""
    raise np.linalg.LinAlgError(
        f"{name}: the matrix has no real result, since it has negative eigenvalues; take the "
        "complex one, without real=True"
    )


def _matrix_function_impl(a: Array, *, name: FunctionName) -> tuple[Any, ...]:
    out = np.empty(a.shape, a.dtype)
    for matrix, value in zip(flat_stack(a), flat_stack(out), strict=True):
        value[...] = _evaluate(matrix, name)
    return (out,)


def _matrix_function_aval(a: ShapedArray, *, name: FunctionName) -> tuple[ShapedArray, ...]:
    check_matrices(str(name), a, square=True)
    return (a.strong(),)


def _matrix_function_check(*avals: ShapedArray, name: FunctionName) -> None:
    if name not in ("expm", "logm", "sqrtm") and not isinstance(name, NumberFunction):
        raise ValueError(f"name={name!r}; expected 'expm', 'logm', 'sqrtm' or a function")


def _matrix_function_jvp(
    primals: tuple[Array, ...],
    tangents: tuple[Array, ...],
    outs: tuple[Array, ...],
    *,
    name: FunctionName,
) -> tuple[Any, ...]:
    return bind(matrix_derivative_p, *primals, *tangents, name=name)


matrix_function_p: Primitive = per_matrix(
    "matrix_function",
    impl=_matrix_function_impl,
    abstract_eval=_matrix_function_aval,
    check=_matrix_function_check,
    jvp=_matrix_function_jvp,
    reasons=(*NOT_LINEAR, *BY_SCIPY),
)


def nested(a: np.ndarray, directions: Sequence[np.ndarray]) -> np.ndarray:
    """The matrix whose function has the derivative of ``f`` as its upper right block.

    ``[[a, e], [0, a]]`` for one direction; for another one the same with this matrix in place of
    ``a`` and as many copies of the direction as there are blocks.
    """
    for e in directions:
        copies = np.kron(np.eye(len(a) // len(e)), e)
        a = np.block([[a, copies], [np.zeros_like(a), a]])
    return a


def _derivative(a: Array, directions: Sequence[Any], name: FunctionName) -> Array:
    """The derivative of the function at one matrix.

    The directions are brought to the size of ``a`` first: SciPy scales and squares by norms.
    """
    linalg = needed_scipy_linalg(str(name))
    n, dtype = len(a), a.dtype
    sizes = [np.abs(e).max(initial=0.0) for e in directions]
    if not all(sizes):
        return np.zeros_like(a)
    if not all(map(np.isfinite, (*sizes, np.abs(a).max()))):
        return np.full_like(a, np.nan)
    scale = max(np.abs(a).max(), np.finfo(np.float64).tiny)
    a = a.astype(double_of(dtype), copy=False)
    directions = [
        e.astype(a.dtype) * (scale / size) for e, size in zip(directions, sizes, strict=True)
    ]
    if name == "expm":
        if len(directions) == 1:
            result = linalg.expm_frechet(a, directions[0], compute_expm=False)
        else:
            result = linalg.expm(nested(a, directions))[:n, -n:]
    else:
        t, q = schur_form(a, str(name))
        values = t.diagonal()
        if (
            dtype.kind != "c"
            and name in ("logm", "sqrtm")
            and ((values.real < 0) & (values.imag == 0)).any()
        ):
            refuse_complex(name)  # also where nothing asks for the function itself
        back = q.conj().T
        directions = [back @ e @ q for e in directions]
        if name == "sqrtm":
            inner = _root_derivative(t, directions)
        else:
            wide = nested(t, directions)
            if isinstance(name, NumberFunction):
                whole = number_function_of_triangle(wide, name)
            else:
                whole = getattr(linalg, name)(wide)
            inner = whole[:n, -n:]
        result = q @ inner @ back
    for size in sizes:
        result = result * (size / scale)
    return result if dtype.kind == "c" else result.real


def _root_derivative(t: np.ndarray, directions: Sequence[np.ndarray]) -> Array:
    """The derivative of the root ``s`` of an upper triangular matrix.

    ``s s = t`` gives Sylvester's equation ``s d + d s = r`` for the derivative in each subset of
    the directions; ``r`` is the direction, for a single one, less the products of the derivatives
    in two subsets that make up the whole.
    """
    linalg = needed_scipy_linalg("sqrtm")
    root = linalg.sqrtm(t).astype(t.dtype)
    known = {0: root}
    for subset in range(1, 1 << len(directions)):
        right = np.zeros_like(t) if subset & (subset - 1) else directions[subset.bit_length() - 1]
        part = (subset - 1) & subset
        while part:
            right = right - known[part] @ known[subset ^ part]
            part = (part - 1) & subset
        x, scale, info = linalg.lapack.ztrsyl(root, root, right)
        if info:  # singular: the derivative is infinite
            return np.full_like(t, np.nan)
        known[subset] = x / scale
    return known[(1 << len(directions)) - 1]


def _matrix_derivative_impl(a: Array, *directions: Array, name: FunctionName) -> tuple[Any, ...]:
    out = np.empty(a.shape, a.dtype)
    for matrix, *each, value in zip(*map(flat_stack, (a, *directions, out)), strict=True):
        value[...] = _derivative(matrix, each, name)
    return (out,)


def _matrix_derivative_aval(
    a: ShapedArray, *directions: ShapedArray, name: FunctionName
) -> tuple[ShapedArray, ...]:
    check_matrices(str(name), a, *directions, square=True)
    check_stacks(str(name), a, *directions)
    check_one_dtype(str(name), a, *directions)
    return (a.strong(),)


def _matrix_derivative_jvp(
    primals: tuple[Array, ...],
    tangents: tuple[Any, ...],
    outs: tuple[Array, ...],
    *,
    name: FunctionName,
) -> tuple[Any, ...]:
    """Linear in each direction; in ``a`` the derivative of the next order."""
    terms: list[Any] = []
    for i, tangent in enumerate(tangents):
        if type(tangent) is not Zero:
            operands = (*primals, tangent) if i == 0 else (*primals[:i], tangent, *primals[i + 1 :])
            terms += bind(matrix_derivative_p, *operands, name=name)
    return (sum(terms[1:], terms[0]) if terms else zeros_like_aval(outs[0]),)


def _matrix_derivative_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, name: FunctionName
) -> tuple[Any, ...]:
    which = [is_linear(x) for x in operands]
    if which[0] or sum(which) != 1:
        raise TypeError("matrix_derivative is linear in one of its directions at a time")
    turned = (
        cts[0] if linear else matrix_transpose(x) for x, linear in zip(operands, which, strict=True)
    )
    (ct,) = bind(matrix_derivative_p, *turned, name=name)
    return tuple(ct if linear else None for linear in which)


matrix_derivative_p: Primitive = per_matrix(
    "matrix_derivative",
    impl=_matrix_derivative_impl,
    abstract_eval=_matrix_derivative_aval,
    check=_matrix_function_check,
    jvp=_matrix_derivative_jvp,
    transpose=_matrix_derivative_transpose,
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


def matrix_function(a: Any, name: FunctionName) -> Array:
    """A function of square matrices ``[..., n, n]``.

    Args:
      a: the matrices; complex for ``"logm"`` and ``"sqrtm"`` if their results may be.
      name: ``"expm"``, ``"logm"`` or ``"sqrtm"``; or a function of numbers, and ``a`` complex.

    Returns:
      Matrices of the shape and dtype of ``a``.

    Raises:
      ImportError: SciPy is not installed.
      LinAlgError: a real matrix has no real logarithm or root.
    """
    return bind(matrix_function_p, a, name=name)[0]


def matrix_frechet(a: Array, e: Array, name: FunctionName) -> Array:
    """The Fréchet derivative of :func:`matrix_function` at ``a`` in the directions ``e``."""
    dtype = np.result_type(dtype_of(a), dtype_of(e))
    return bind(matrix_derivative_p, cast(a, dtype), cast(e, dtype), name=name)[0]


PRIMITIVES: tuple[Primitive, ...] = (matrix_function_p, matrix_derivative_p)
