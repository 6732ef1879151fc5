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

from functrans import numpy as fnp
from functrans.errors import ShapeError
from functrans.ir.source import here
from functrans.numpy.common import as_array
from functrans.scipy.dispatch import floats, implements
from functrans.trace import dtype_of, shape_of


def _vector(name: str, x: Any, least: int = 1) -> Any:
    """An operand that must be one vector.

    Raises:
      ShapeError: it is not, or is too short.
    """
    x = as_array(x)
    shape = shape_of(x) or (1,)
    if len(shape) != 1 or shape[0] < least:
        raise ShapeError(
            f"{name}: expected a vector of at least {least} elements, got shape {shape}{here()}; "
            "use ft.vmap for stacks"
        )
    return fnp.reshape(x, shape)


@implements("linalg.toeplitz")
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix of constant diagonals, as ``scipy.linalg.toeplitz``.

    Args:
      c: first column ``[m]``.
      r: first row ``[n]``, without its first element; by default the conjugate of ``c``.

    Returns:
      ``[m, n]``.

    Example:
      >>> import functrans as ft
      >>> ft.jit(toeplitz)(np.array([1.0, 2.0, 3.0]))
      array([[1., 2., 3.],
             [2., 1., 2.],
             [3., 2., 1.]])
    """
    c = _vector("toeplitz", c)
    r = fnp.conj(c) if r is None else _vector("toeplitz", r)
    m, n = shape_of(c)[0], shape_of(r)[0]
    values = fnp.concatenate((c[::-1], r[1:]))
    return fnp.take(values, m - 1 - np.arange(m)[:, None] + np.arange(n))


@implements("linalg.hankel")
def hankel(c: Any, r: Any = None) -> Any:
    """The matrix of constant anti-diagonals, as ``scipy.linalg.hankel``.

    Args:
      c: first column ``[m]``.
      r: last row ``[n]``, without its first element; by default zeros.
    """
    c = _vector("hankel", c)
    r = np.zeros(shape_of(c), dtype_of(c)) if r is None else _vector("hankel", r)
    m, n = shape_of(c)[0], shape_of(r)[0]
    return fnp.take(fnp.concatenate((c, r[1:])), np.arange(m)[:, None] + np.arange(n))


@implements("linalg.circulant")
def circulant(c: Any) -> Any:
    """Circulant matrices of first columns ``[..., n]``, as ``scipy.linalg.circulant``."""
    c = fnp.atleast_1d(as_array(c))
    n = shape_of(c)[-1]
    return fnp.take(c, (np.arange(n)[:, None] - np.arange(n)) % max(n, 1), axis=-1)


def circulant_product(c: Any, x: Any) -> Any:
    """The product of a circulant matrix of first column ``[n]`` with ``[n, k]``."""
    is_real = dtype_of(c).kind != "c" and dtype_of(x).kind != "c"
    if is_real:
        half = fnp.fft.rfft(c)[:, None] * fnp.fft.rfft(x, axis=0)
        return fnp.fft.irfft(half, n=shape_of(x)[0], axis=0)
    return fnp.fft.ifft(fnp.fft.fft(c)[:, None] * fnp.fft.fft(x, axis=0), axis=0)


@implements("linalg.companion")
def companion(a: Any) -> Any:
    """The companion matrix of a polynomial, highest power first, as ``scipy.linalg.companion``."""
    (a,) = floats(_vector("companion", a, 2))
    n = shape_of(a)[0] - 1
    first = (-a[1:] / a[0])[None, :]
    return fnp.concatenate((first, np.eye(n - 1, n, dtype=dtype_of(a))))


@implements("linalg.leslie")
def leslie(f: Any, s: Any) -> Any:
    """Leslie's matrix of fecundities and survival rates, as ``scipy.linalg.leslie``."""
    f, s = _vector("leslie", f, 2), _vector("leslie", s)
    n = shape_of(f)[0]
    if shape_of(s)[0] != n - 1:
        raise ShapeError(
            f"leslie: {n} fecundities need {n - 1} survival rates, got {shape_of(s)[0]}{here()}"
        )
    below = fnp.diag(s)
    rest = fnp.concatenate((below, np.zeros((n - 1, 1), dtype_of(s))), axis=1)
    return fnp.concatenate((f[None, :], rest))


@implements("linalg.fiedler")
def fiedler(a: Any) -> Any:
    """``|a[i] - a[j]|``, as ``scipy.linalg.fiedler``."""
    a = _vector("fiedler", a)
    return fnp.abs(a[:, None] - a)


@implements("linalg.convolution_matrix")
def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix that convolves a vector with ``a``, as ``scipy.linalg.convolution_matrix``.

    Args:
      a: ``[m]``.
      n: length of the vectors that it multiplies.
      mode: ``"full"``, ``"same"`` or ``"valid"``.

    Raises:
      ValueError: ``n`` is not positive, or the mode is unknown.
    """
    a = _vector("convolution_matrix", a)
    if n <= 0:
        raise ValueError(f"convolution_matrix: n must be positive, got {n}{here()}")
    m = shape_of(a)[0]
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
    return fnp.where(inside, fnp.take(a, np.where(inside, place, 0)), 0)


@implements("linalg.block_diag")
def block_diag(*arrs: Any) -> Any:
    """Matrices along the diagonal of one matrix, as ``scipy.linalg.block_diag``.

    Args:
      *arrs: matrices ``[..., m, n]`` with stacks that broadcast; vectors are one row.

    Example:
      >>> import functrans as ft
      >>> ft.jit(block_diag)(np.ones((1, 2)), np.array([[3.0]]))
      array([[1., 1., 0.],
             [0., 0., 3.]])
    """
    blocks = [fnp.atleast_2d(as_array(x)) for x in arrs]
    dtype = np.result_type(*(dtype_of(x) for x in blocks))
    lead = np.broadcast_shapes(*(shape_of(x)[:-2] for x in blocks))
    width = sum(shape_of(x)[-1] for x in blocks)
    rows, at = [], 0
    for block in blocks:
        m, n = shape_of(block)[-2:]
        block = fnp.broadcast_to(block, (*lead, m, n))
        left, right = (np.zeros((*lead, m, k), dtype) for k in (at, width - at - n))
        rows.append(fnp.concatenate((left, block, right), axis=-1))
        at += n
    return fnp.concatenate(rows, axis=-2)


@implements("linalg.khatri_rao")
def khatri_rao(a: Any, b: Any) -> Any:
    """Kronecker products of columns, as ``scipy.linalg.khatri_rao``."""
    a, b = as_array(a), as_array(b)
    if len(shape_of(a)) < 2 or len(shape_of(b)) < 2 or shape_of(a)[-1] != shape_of(b)[-1]:
        raise ShapeError(
            f"khatri_rao: expected matrices with equally many columns, got {shape_of(a)} and "
            f"{shape_of(b)}{here()}"
        )
    product = a[..., :, None, :] * b[..., None, :, :]
    *lead, m, p, n = shape_of(product)
    return fnp.reshape(product, (*lead, m * p, n))
