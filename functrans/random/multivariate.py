"""Distributions of vectors and matrices.

Here: ``multivariate_normal``, ``ball``, ``orthogonal``. Not here: ``dirichlet`` (``gamma``),
``multinomial`` (``discrete``).

Layer: ``random``. Source: Barthe, Guedon, Mendelson and Naor, A probabilistic approach to the
geometry of the l_p^n-ball, Annals of Probability 33 (2005); Mezzadri, How to generate random
matrices from the classical compact groups, Notices of the AMS 54 (2007).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans import numpy as fnp
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives.special.family import common_dtype
from functrans.primitives.structural import cast
from functrans.random.continuous import exponential
from functrans.random.gamma import generalized_normal
from functrans.random.keys import checked, checked_float, checked_key, checked_shape, split
from functrans.random.uniform import normal, standard_normal


def multivariate_normal(
    key: object,
    mean: object,
    cov: object,
    shape: object = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
) -> Array:
    """Normal vectors.

    Args:
      key: a key.
      mean: mean, ``[..., n]``; differentiable.
      cov: covariance, ``[..., n, n]``, symmetric; differentiable.
      shape: leading shape of the result; by default that of ``mean`` and ``cov``.
      dtype: a floating dtype; by default that of the parameters.
      method: ``"cholesky"`` for a positive definite covariance; ``"eigh"`` or ``"svd"`` for a
        semidefinite one.

    Returns:
      Array of shape ``(*shape, n)``.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` not floating.
      ShapeError: the shapes of the parameters do not fit.
      ValueError: there is no such method.

    Example:
      >>> multivariate_normal(np.array([0, 0], np.uint32), np.zeros(2), np.eye(2), (5,)).shape
      (5, 2)
    """
    checked_key("multivariate_normal", key)
    if method not in ("cholesky", "eigh", "svd"):
        raise ValueError(
            "random.multivariate_normal: method must be 'cholesky', 'eigh' or 'svd', got "
            f"{method!r}{here()}"
        )
    mean, cov = (x if isinstance(x, Tracer) else np.asarray(x) for x in (mean, cov))
    found = f"shapes {shape_of(mean)} and {shape_of(cov)}"
    if not shape_of(mean) or shape_of(cov)[-2:] != shape_of(mean)[-1:] * 2:
        raise ShapeError(
            f"random.multivariate_normal: mean [..., n] and cov [..., n, n] are needed, got {found}"
            f"{here()}"
        )
    common = common_dtype(mean, cov)
    dtype = checked_float("multivariate_normal", common if dtype is None else dtype)
    own = (shape_of(mean)[:-1], shape_of(cov)[:-2])
    try:
        lead = np.broadcast_shapes(*own)
        wanted = lead if shape is None else checked_shape("multivariate_normal", shape)
        fits = np.broadcast_shapes(lead, wanted) == wanted
    except ValueError:
        fits = False
    if not fits:
        raise ShapeError(f"random.multivariate_normal: {found} do not broadcast to {shape}{here()}")
    mean, cov = cast(mean, dtype), cast(cov, dtype)
    if method == "cholesky":
        factor = fnp.linalg.cholesky(cov)
    elif method == "eigh":
        values, vectors = fnp.linalg.eigh(cov)
        factor = vectors * fnp.sqrt(fnp.maximum(values, 0.0))[..., None, :]
    else:
        vectors, values, _ = fnp.linalg.svd(cov)
        factor = vectors * fnp.sqrt(values)[..., None, :]
    z = standard_normal(key, (*wanted, shape_of(mean)[-1]), dtype)
    return mean + fnp.matmul(factor, z[..., None])[..., 0]


def ball(
    key: object, d: int, p: Any = 2.0, shape: object = (), dtype: object = np.float64
) -> Array:
    """Points uniformly distributed in the unit ball of the ``p`` norm.

    Args:
      key: a key.
      d: dimension.
      p: exponent of the norm, a positive number or infinity.
      shape: leading shape of the result.
      dtype: a floating dtype.

    Returns:
      Array of shape ``(*shape, d)``.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` not floating.

    Example:
      >>> points = ball(np.array([0, 0], np.uint32), 3, shape=(100,))
      >>> bool((np.linalg.norm(points, axis=-1) <= 1).all())
      True
    """
    shape, dtype = checked("ball", key, shape, dtype)
    key_direction, key_size = split(key)
    x = generalized_normal(key_direction, p, (*shape, d), dtype)
    size = fnp.sum(fnp.abs(x) ** p, axis=-1) + exponential(key_size, shape, dtype)
    return cast(x / (size ** (1.0 / p))[..., None], dtype)


def orthogonal(
    key: object,
    n: int,
    shape: object = (),
    dtype: DTypeLike | None = np.float64,
    m: int | None = None,
) -> Array:
    """Orthogonal matrices, uniformly distributed (Haar's measure); unitary ones if complex.

    Args:
      key: a key.
      n: number of rows.
      shape: leading shape of the result.
      dtype: a floating or complex dtype of 32 bits a part, or more.
      m: number of columns, ``n`` by default: orthonormal columns, or rows if ``m > n``.

    Returns:
      Array of shape ``(*shape, n, m)``.

    Raises:
      TypeError: ``key`` is no key, ``dtype`` of integers.

    Example:
      >>> q = orthogonal(np.array([0, 0], np.uint32), 3)
      >>> bool(np.allclose(q @ q.T, np.eye(3)))
      True
    """
    checked_key("orthogonal", key)
    m = n if m is None else m
    shape, long, short = checked_shape("orthogonal", shape), max(n, m), min(n, m)
    q, r = fnp.linalg.qr(normal(key, (*shape, long, short), dtype))
    diagonal = fnp.diagonal(r, axis1=-2, axis2=-1)
    q = q * (diagonal / fnp.abs(diagonal))[..., None, :]
    return q if n >= m else fnp.conj(fnp.swapaxes(q, -1, -2))
