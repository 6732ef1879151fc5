"""Matrices of a structure under SciPy's names.

Here: matrices made of vectors (Toeplitz, Hankel, circulant, companion, ...), block-diagonal ones,
Khatri and Rao's product. Not here: systems with such matrices (``linalg_systems``), constant
matrices, which are SciPy's own (``linalg``).

Each is a gather with constant indices, so that its derivative is a sum along diagonals.

Layer: ``scipy``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.numpy.common import as_array
from functrans.scipy.dispatch import floats, implements, plain


def _vectors(name: str, *operands: Any, least: int = 1) -> list[Any]:
    """Vectors ``[..., n]`` with equal stacks."""
    arrays = [fnp.atleast_1d(as_array(x)) for x in operands]
    for x in arrays:
        if shape_of(x)[-1] < least:
            raise ShapeError(
                f"{name}: expected vectors of at least {least} elements, got shape {shape_of(x)}"
                f"{here()}"
            )
    lead = np.broadcast_shapes(*(shape_of(x)[:-1] for x in arrays))
    return [fnp.broadcast_to(x, (*lead, shape_of(x)[-1])) for x in arrays]


@implements("linalg.toeplitz")
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix of constant diagonals, as ``scipy.linalg.toeplitz``.

    Args:
      c: first column ``[..., m]``.
      r: first row ``[..., n]``; its first element is not used; by default the conjugate of ``c``.

    Returns:
      ``[..., m, n]``.

    Example:
      >>> import functrans as ft
      >>> ft.jit(toeplitz)(np.array([1.0, 2.0, 3.0]))
      array([[1., 2., 3.],
             [2., 1., 2.],
             [3., 2., 1.]])
    """
    c, r = _vectors("toeplitz", c, fnp.conj(c) if r is None else r)
    m, n = shape_of(c)[-1], shape_of(r)[-1]
    values = fnp.concatenate((c[..., ::-1], r[..., 1:]), axis=-1)
    return fnp.take(values, m - 1 - np.arange(m)[:, None] + np.arange(n), axis=-1)


@implements("linalg.hankel")
def hankel(c: Any, r: Any = None) -> Any:
    """The matrix of constant anti-diagonals, as ``scipy.linalg.hankel``.

    Args:
      c: first column; as in SciPy, an array of several axes is one long vector.
      r: last row; its first element is not used; by default zeros.
    """
    c = fnp.ravel(as_array(c))
    r = np.zeros(shape_of(c), dtype_of(c)) if r is None else fnp.ravel(as_array(r))
    m, n = shape_of(c)[0], shape_of(r)[0]
    return fnp.take(fnp.concatenate((c, r[1:])), np.arange(m)[:, None] + np.arange(n))


@implements("linalg.circulant")
def circulant(c: ArrayLike) -> Array:
    """Circulant matrices of first columns ``[..., n]``, as ``scipy.linalg.circulant``."""
    c = fnp.atleast_1d(as_array(c))
    n = shape_of(c)[-1]
    return fnp.take(c, (np.arange(n)[:, None] - np.arange(n)) % max(n, 1), axis=-1)


def circulant_product(c: ArrayLike, x: ArrayLike) -> Array:
    """The product of a circulant matrix of first column ``[n]`` with ``[n, k]``."""
    is_real = dtype_of(c).kind != "c" and dtype_of(x).kind != "c"
    if is_real:
        half = fnp.fft.rfft(c)[:, None] * fnp.fft.rfft(x, axis=0)
        return fnp.fft.irfft(half, n=shape_of(x)[0], axis=0)
    return fnp.fft.ifft(fnp.fft.fft(c)[:, None] * fnp.fft.fft(x, axis=0), axis=0)


@implements("linalg.companion")
def companion(a: Array) -> Array:
    """Companion matrices of polynomials, highest power first, as ``scipy.linalg.companion``."""
    (a,) = floats(*_vectors("companion", a, least=2))
    *lead, n = shape_of(a)
    first = (-a[..., 1:] / a[..., :1])[..., None, :]
    below = np.broadcast_to(np.eye(n - 2, n - 1, dtype=dtype_of(a)), (*lead, n - 2, n - 1))
    return fnp.concatenate((first, below), axis=-2)


@implements("linalg.convolution_matrix")
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix that convolves a vector with ``a``, as ``scipy.linalg.convolution_matrix``.

    Args:
      a: ``[..., m]``.
      n: length of the vectors that it multiplies.
      mode: ``"full"``, ``"same"`` or ``"valid"``.

    Raises:
      ValueError: ``n`` is not positive, or the mode is unknown.
    """
    (a,) = _vectors("convolution_matrix", a)
    if n <= 0:
        raise ValueError(f"convolution_matrix: n must be positive, got {n}{here()}")
    m = shape_of(a)[-1]
    if mode == "same":
        start, count = (min(n, m) - 1) // 2, max(n, m)
    elif mode == "valid":
        start, count = min(n, m) - 1, max(n, m) - min(n, m) + 1
    elif mode == "full":
        start, count = 0, n + m - 1
    else:
        raise ValueError(f"convolution_matrix: mode={mode!r}; expected 'full', 'same' or 'valid'")
    place = start + np.arange(count)[:, None] - np.arange(n)
    inside = (place >= 0) & (place < m)
    return fnp.where(inside, fnp.take(a, np.where(inside, place, 0), axis=-1), 0)


@implements("linalg.fiedler_companion")
def fiedler_companion(a: Array) -> Array:
    """Fiedler's pentadiagonal companion matrix, as ``scipy.linalg.fiedler_companion``.

    Args:
      a: coefficients ``[n]`` of a polynomial, highest power first; the first is not 0.
    """
    (a,) = floats(*_vectors("fiedler_companion", a))
    if len(shape_of(a)) != 1:
        raise ShapeError(f"fiedler_companion: expected a vector, got shape {shape_of(a)}{here()}")
    n = shape_of(a)[0]
    # where each coefficient goes is read off the matrix of the polynomial of their numbers
    numbers = plain("linalg.fiedler_companion")(np.array([1.0, *range(2, n + 1)]))
    places = np.where(numbers < 0, -numbers - 1, 0).astype(np.int64)
    ones = np.where(numbers > 0, 1.0, 0.0).astype(dtype_of(a))
    return fnp.where(numbers < 0, -fnp.take(a / a[0], places), ones)
