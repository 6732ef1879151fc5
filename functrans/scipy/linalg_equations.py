"""Equations between matrices under SciPy's names: Sylvester's, Lyapunov's, Riccati's.

Not here: their records (``primitives.linalg.equations``).

Layer: ``scipy``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.numpy.linalg_norms import check_square, floating
from functrans.primitives.linalg import functions as linalg
from functrans.primitives.structural import broadcast_to
from functrans.scipy.dispatch import implements


@implements("linalg.solve_sylvester")
def solve_sylvester(a: ArrayLike, b: ArrayLike, q: ArrayLike) -> Array:
    """Solve ``a @ x + x @ b = q``, as ``scipy.linalg.solve_sylvester``.

    Args:
      a: ``[..., m, m]``.
      b: ``[..., n, n]``.
      q: ``[..., m, n]``.

    Raises:
      LinAlgError: ``a`` and ``-b`` share an eigenvalue.
      ShapeError: shapes do not fit.

    Example:
      >>> import functrans as ft
      >>> ft.grad(lambda q: np.sum(solve_sylvester(np.eye(1), np.eye(1), q)))(np.ones((1, 1)))
      array([[0.5]])
    """
    matrices = floating("solve_sylvester", a, b, q)
    lead = np.broadcast_shapes(*(shape_of(x)[:-2] for x in matrices))
    return linalg.sylvester(*(broadcast_to(x, (*lead, *shape_of(x)[-2:])) for x in matrices))


@implements("linalg.solve_continuous_lyapunov")
def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike) -> Array:
    """Solve ``a @ x + x @ a^H = q``, as ``scipy.linalg.solve_continuous_lyapunov``."""
    a, q = floating("solve_continuous_lyapunov", a, q)
    check_square("solve_continuous_lyapunov", a)
    return solve_sylvester(a, linalg.adjoint(a), q)


solve_lyapunov = solve_continuous_lyapunov

_DIRECT_LIMIT = 10  # SciPy's


@implements("linalg.solve_discrete_lyapunov")
def solve_discrete_lyapunov(a: ArrayLike, q: ArrayLike, method: str | None = None) -> Array:
    """Solve ``a @ x @ a^H - x + q = 0``, as ``scipy.linalg.solve_discrete_lyapunov``.

    Args:
      a: ``[n, n]``.
      q: ``[n, n]``.
      method: ``"direct"``, a system of ``n * n`` equations, by default for ``n < 10``; or
        ``"bilinear"``, which needs that -1 is no eigenvalue of ``a``.

    Raises:
      ValueError: the method is unknown.
    """
    a, q = floating("solve_discrete_lyapunov", a, q)
    check_square("solve_discrete_lyapunov", a)
    n = shape_of(a)[-1]
    chosen = (method or ("direct" if n < _DIRECT_LIMIT else "bilinear")).lower()
    if chosen == "bilinear":
        return linalg.stein(linalg.adjoint(a), q)
    if chosen != "direct":
        raise ValueError(f"solve_discrete_lyapunov: method={method!r}; expected direct or bilinear")
    system = np.eye(n * n, dtype=dtype_of(a)) - fnp.kron(a, fnp.conj(a))
    return fnp.reshape(fnp.linalg.solve(system, fnp.reshape(q, (n * n,))), (n, n))


def _riccati(name: str, operands: Any, e: Any, s: Any, *, is_discrete: bool) -> Any:
    a, b, q, r = floating(name, *operands)
    given_e = np.eye(shape_of(a)[-1], dtype=dtype_of(a)) if e is None else e
    given_s = np.zeros(shape_of(b), dtype_of(b)) if s is None else s
    matrices = floating(name, a, b, q, r, given_e, given_s)
    lead = np.broadcast_shapes(*(shape_of(x)[:-2] for x in matrices))
    matrices = [broadcast_to(x, (*lead, *shape_of(x)[-2:])) for x in matrices]
    options = {"has_e": e is not None, "has_s": s is not None}
    return linalg.riccati(*matrices, is_discrete=is_discrete, **options)


@implements("linalg.solve_continuous_are")
def solve_continuous_are(
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    e: Any = None,
    s: Any = None,
    balanced: bool = True,
) -> Array:
    """The stabilizing solution of the continuous-time algebraic Riccati equation.

    As ``scipy.linalg.solve_continuous_are``. The derivative is that of the equation, by the
    implicit function theorem, in all operands; ``q`` and ``r`` are Hermitian, and so are the
    changes of them.

    Raises:
      LinAlgError: there is no such solution.
      ShapeError: shapes do not fit.
    """
    return _riccati("solve_continuous_are", (a, b, q, r), e, s, is_discrete=False)


@implements("linalg.solve_discrete_are")
def solve_discrete_are(
    a: ArrayLike,
    b: ArrayLike,
    q: ArrayLike,
    r: ArrayLike,
    e: Any = None,
    s: Any = None,
    balanced: bool = True,
) -> Array:
    """The stabilizing solution of the discrete-time algebraic Riccati equation.

    As ``scipy.linalg.solve_discrete_are``; see :func:`solve_continuous_are`.
    """
    return _riccati("solve_discrete_are", (a, b, q, r), e, s, is_discrete=True)
