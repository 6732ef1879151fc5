"""Functions of square matrices under SciPy's names.

Here: exponential, logarithm, roots and powers, trigonometric functions, and functions given by a
function of numbers. Not here: their record, which says how they are differentiated
(``primitives.linalg.matrix_functions``).

Real matrices may have complex logarithms and roots. If values are known (recording, pushing), the
result is real where SciPy's is; in staging (``jit``, ``vmap``) it is complex, unless ``real=True``
says that there is a real one.

Layer: ``scipy``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.control.closures import make_template
from functrans.core.arguments import name_of
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.state import open_traces
from functrans.core.values import Array
from functrans.higher.jet import jet
from functrans.numpy.common import layout_of
from functrans.numpy.linalg_norms import check_square, floating
from functrans.primitives.complex_parts import complex_dtype, imag, is_complex, real
from functrans.primitives.linalg import functions as linalg
from functrans.primitives.linalg.parlett import NumberFunction
from functrans.primitives.structural import cast
from functrans.scipy.dispatch import implements
from functrans.scipy.linalg_factors import realized


def _square(name: str, a: ArrayLike) -> Any:
    (a,) = floating(name, a)
    check_square(name, a)
    return a


def _expm(a: ArrayLike) -> Array:
    return linalg.matrix_function(a, "expm")


def _complex(a: ArrayLike) -> Array:
    return cast(a, complex_dtype(dtype_of(a)))


def _refuse_complex(function: str, result: ArrayLike, a: ArrayLike, *_: ArrayLike) -> Any:
    """What ``real=True`` asks of SciPy's result for a plain matrix."""
    if np.iscomplexobj(result) and not np.iscomplexobj(a):
        linalg.refuse_complex(function)
    return result


@implements("linalg.expm")
def expm(A: ArrayLike) -> Array:  # SciPy's name
    """Exponentials of square matrices ``[..., n, n]``, as ``scipy.linalg.expm``.

    Derivatives of every order are exact: they are those of the Fréchet derivative.

    Example:
      >>> import functrans as ft
      >>> ft.grad(lambda t: np.trace(expm(t * np.eye(2))))(0.0)
      array(2.)
    """
    return _expm(_square("expm", A))


@implements("linalg.expm_frechet")
def expm_frechet(
    A: ArrayLike,  # SciPy's names
    E: ArrayLike,
    method: str | None = None,
    compute_expm: bool = True,
    check_finite: bool = True,
) -> Any:
    """The exponential of ``A`` and its derivative in the direction ``E``.

    As ``scipy.linalg.expm_frechet``; traced, ``method`` is not used.
    """
    a, e = floating("expm_frechet", A, E)
    check_square("expm_frechet", a)
    slope = linalg.matrix_frechet(a, e, "expm")
    return (_expm(a), slope) if compute_expm else slope


def _principal(a: ArrayLike, name: str, is_real: bool) -> Array:
    """The logarithm or root: complex; in the kind of the matrix where it is known to be so."""
    return linalg.matrix_function(a if is_real else _complex(a), name)


@implements("linalg.logm", real=_refuse_complex)
def logm(A: ArrayLike, *, real: bool = False) -> Array:  # SciPy's name
    """Principal logarithms of square matrices, as ``scipy.linalg.logm``.

    Args:
      A: ``[..., n, n]``.
      real: whether real matrices have real results under ``jit`` and ``vmap`` too.

    Raises:
      LinAlgError: a real result is asked for and there is none.
    """
    a = _square("logm", A)
    return realized(_principal(a, "logm", real), a)


@implements("linalg.sqrtm", real=_refuse_complex)
def sqrtm(A: ArrayLike, *, real: bool = False) -> Array:  # SciPy's name
    """Principal square roots of square matrices, as ``scipy.linalg.sqrtm``.

    The derivative solves Sylvester's equation with the root.

    Args:
      A: ``[..., n, n]``.
      real: whether real matrices have real results under ``jit`` and ``vmap`` too.

    Raises:
      LinAlgError: a real result is asked for and there is none.

    Example:
      >>> import functrans as ft
      >>> ft.jit(lambda a: sqrtm(a, real=True))(np.diag([4.0, 9.0]))
      array([[2., 0.],
             [0., 3.]])
    """
    a = _square("sqrtm", A)
    return realized(_principal(a, "sqrtm", real), a)


@implements("linalg.fractional_matrix_power", real=_refuse_complex)
def fractional_matrix_power(
    A: ArrayLike, t: ArrayLike, *, real: bool = False
) -> Array:  # SciPy's name
    """Powers of square matrices, as ``scipy.linalg.fractional_matrix_power``.

    A whole number as exponent is done by products; any other one, which may be traced, by
    exponential and logarithm.

    Args:
      A: ``[..., n, n]``.
      t: the exponent.
      real: whether real matrices have real results under ``jit`` and ``vmap`` too.

    Raises:
      LinAlgError: a real result is asked for and there is none.
    """
    a = _square("fractional_matrix_power", A)
    if isinstance(t, (int, np.integer)) or (isinstance(t, float) and t.is_integer()):
        return fnp.linalg.matrix_power(a, int(t))
    return realized(_expm(_principal(a, "logm", real) * t), a, t)


def _cosine_and_sine(a: Array) -> tuple[Any, Any]:
    """Both from one exponential of a real matrix, from two of a complex one."""
    if not is_complex(a):
        turned = _expm(_complex(a) * 1j)
        return real(turned), imag(turned)
    up, down = _expm(a * 1j), _expm(a * -1j)
    return (up + down) * 0.5, (up - down) * -0.5j


@implements("linalg.cosm")
def cosm(A: ArrayLike) -> Array:  # SciPy's name
    """Cosines of square matrices, as ``scipy.linalg.cosm``."""
    return _cosine_and_sine(_square("cosm", A))[0]


@implements("linalg.sinm")
def sinm(A: ArrayLike) -> Array:  # SciPy's name
    """Sines of square matrices, as ``scipy.linalg.sinm``."""
    return _cosine_and_sine(_square("sinm", A))[1]


@implements("linalg.tanm")
def tanm(A: ArrayLike) -> Array:  # SciPy's name
    """Tangents of square matrices, as ``scipy.linalg.tanm``."""
    cosine, sine = _cosine_and_sine(_square("tanm", A))
    return fnp.linalg.solve(cosine, sine)


@implements("linalg.coshm")
def coshm(A: ArrayLike) -> Array:  # SciPy's name
    """Hyperbolic cosines of square matrices, as ``scipy.linalg.coshm``."""
    a = _square("coshm", A)
    return (_expm(a) + _expm(-a)) * 0.5


@implements("linalg.sinhm")
def sinhm(A: ArrayLike) -> Array:  # SciPy's name
    """Hyperbolic sines of square matrices, as ``scipy.linalg.sinhm``."""
    a = _square("sinhm", A)
    return (_expm(a) - _expm(-a)) * 0.5


@implements("linalg.tanhm")
def tanhm(A: ArrayLike) -> Array:  # SciPy's name
    """Hyperbolic tangents of square matrices, as ``scipy.linalg.tanhm``."""
    a = _square("tanhm", A)
    up, down = _expm(a), _expm(-a)
    return fnp.linalg.solve(up + down, up - down)


@implements("linalg.signm")
def signm(A: ArrayLike) -> Array:  # SciPy's name
    """The sign of square matrices, as ``scipy.linalg.signm``: ``a`` over the root of ``a @ a``.

    Reference: Higham, Functions of Matrices (2008), ch. 5.
    """
    a = _square("signm", A)
    root = linalg.matrix_function(_complex(a @ a), "sqrtm")
    return realized(_complex(a) @ linalg.inv(root), a)


@implements("linalg.funm")
def funm(A: ArrayLike, func: Callable[[Any], Any], disp: bool = True) -> Array:  # SciPy's name
    """A function of square matrices, from one of numbers, as ``scipy.linalg.funm``.

    Args:
      A: ``[..., n, n]``.
      func: traceable function of each element of an array of complex numbers, analytic at the
        eigenvalues.
      disp: traced, it must be true.

    Returns:
      Matrices like ``A``, real where SciPy's are and values are known. Derivatives of every order
      are exact, for equal eigenvalues too. If ``func`` refers to traced values, it has derivatives
      in them, and derivatives in ``A`` need eigenvalues that differ.

    Raises:
      ValueError: ``disp`` is false.

    Example:
      >>> import functrans as ft
      >>> ft.grad(lambda t: np.trace(funm(t * np.eye(2), np.exp)))(0.0)
      array(2.)

    Reference: Davies & Higham, A Schur-Parlett algorithm for computing matrix functions, SIAM J.
    Matrix Anal. Appl. 25 (2003).
    """
    a = _square("funm", A)
    if not disp:
        raise ValueError("funm: disp=False, the estimate of the error, cannot be traced")
    _, traced = make_template((func,), objects=True)
    if traced:
        return _nearly_realized(_by_eigenvectors(a, func), a)
    label = f"funm of {name_of(func)}"
    function = NumberFunction(label, functools.partial(_derivatives, func))
    return _nearly_realized(linalg.matrix_function(_complex(a), function), a)


def _derivatives(func: Callable[[Any], Any], points: np.ndarray, order: int) -> list[np.ndarray]:
    """A function of numbers and its derivatives, outside of all traces that are open."""
    token = open_traces.set(())
    try:
        if not order:
            found = [func(points)]
        else:
            value, series = jet(func, (points,), ([np.ones_like(points), *[0] * (order - 1)],))
            found = [value, *series]
    finally:
        open_traces.reset(token)
    return [np.broadcast_to(np.asarray(d), points.shape) for d in found]


def _by_eigenvectors(a: ArrayLike, func: Callable[[Any], Any]) -> Array:
    """``v diag(func(w)) v^-1``."""
    w, v = linalg.eig(a)
    n = shape_of(a)[-1]
    scaled = v * fnp.reshape(func(w), (*shape_of(w)[:-1], 1, n))
    return linalg.matrix_transpose(
        fnp.linalg.solve(linalg.matrix_transpose(v), linalg.matrix_transpose(scaled))
    )


def _nearly_realized(result: Array, a: ArrayLike) -> Array:
    """As SciPy does: real if the imaginary part is rounding error, and values are known."""
    values = layout_of(result)
    if is_complex(a) or values is None:
        return result
    scale = np.max(np.abs(values), initial=0.0) * float(np.finfo(values.real.dtype).eps) * 1e3
    return real(result) if (np.abs(values.imag) <= scale).all() else result
