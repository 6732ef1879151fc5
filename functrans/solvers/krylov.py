"""Iterative solvers of linear systems: ``cg``, ``bicgstab``, ``gmres``.

Here: the iterations, as ``while_loop``s over vectors. Not here: their derivatives, which are those
of ``custom_linear_solve``. ``functrans.scipy.sparse.linalg`` re-exports the functions.

Layer: ``solvers``. Reference: Saad, Iterative Methods for Sparse Linear Systems, 2nd ed. (2003).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.arrays.sparse import SparseArray, as_sparse, is_sparse
from functrans.control.bodies import flatten_operands
from functrans.control.scanning import fori_loop, while_loop
from functrans.core.avals import is_differentiable_dtype
from functrans.core.dispatch import Tracer, aval_of, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError, TreeMismatchError, UnsupportedOperationError
from functrans.primitives.movement import concatenate, split
from functrans.primitives.structural import cast, reshape
from functrans.solvers.custom_root import custom_root
from functrans.solvers.linear_solve import custom_linear_solve

Vector = Any
Product = Callable[[Vector], Vector]


# vectors ----------------------------------------------------------------------------------------


class Space:
    """Pytrees of one structure as vectors.

    Args:
      who: for messages.
      example: the pytree that the others are like.
      name: what it is, for messages.

    Attributes:
      treedef: structure.
      shapes: of the leaves.
      sizes: number of elements of the leaves.
      dtypes: of the leaves.
      dtype: of the vector.

    Raises:
      TreeMismatchError: there is no array in it.
      TypeError: a leaf is not floating.
    """

    __slots__ = ("dtype", "dtypes", "name", "shapes", "sizes", "treedef", "who")

    def __init__(self, who: str, example: Any, name: str) -> None:
        leaves, self.treedef, paths = flatten_operands(who, example, name)
        if not leaves:
            raise TreeMismatchError(f"{who}: {name} has no arrays{here()}")
        for leaf, path in zip(leaves, paths, strict=True):
            if not is_differentiable_dtype(dtype_of(leaf)):
                raise TypeError(
                    f"{who}: {path} is {aval_of(leaf)}{here()}; convert it with "
                    "np.asarray(x, dtype=float)"
                )
        self.who = who
        self.name = name
        self.shapes = [shape_of(leaf) for leaf in leaves]
        self.sizes = tuple([math.prod(shape) for shape in self.shapes])
        self.dtypes = [dtype_of(leaf) for leaf in leaves]
        self.dtype = np.result_type(*self.dtypes)

    @property
    def size(self) -> int:
        """Length of the vectors."""
        return sum(self.sizes)

    def ravel(self, value: Any, what: str) -> Array:
        """The vector of a pytree.

        Raises:
          TreeMismatchError, ShapeError: it is unlike the example.
        """
        leaves, treedef, paths = flatten_operands(self.who, value, what)
        if treedef != self.treedef:
            raise TreeMismatchError(
                f"{self.who}: {what} has structure {tree.describe(treedef)}, but {self.name} has "
                f"{tree.describe(self.treedef)}{here()}; both must be the same"
            )
        for leaf, path, shape in zip(leaves, paths, self.shapes, strict=True):
            if shape_of(leaf) != shape:
                raise ShapeError(
                    f"{self.who}: {path} has shape {shape_of(leaf)}, but {self.name} has {shape} "
                    f"there{here()}; both must be the same"
                )
        flat = [reshape(cast(x, self.dtype), (n,)) for x, n in zip(leaves, self.sizes, strict=True)]
        return flat[0] if len(flat) == 1 else concatenate(flat, 0)

    def unravel(self, vector: Any) -> Any:
        """The pytree of a vector."""
        parts = [vector] if len(self.sizes) == 1 else split(vector, self.sizes, 0)
        leaves = [
            cast(reshape(part, shape), dtype)
            for part, shape, dtype in zip(parts, self.shapes, self.dtypes, strict=True)
        ]
        return tree.unflatten(self.treedef, leaves)


def _product(who: str, A: Any, name: str) -> Callable[[Any], Any]:
    """A matrix or a function as a function."""
    if isinstance(A, (np.ndarray, Tracer)):
        shape = shape_of(A)
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ShapeError(f"{who}: {name} must be a square matrix, got {aval_of(A)}{here()}")
        return lambda x: A @ x
    if is_sparse(A):
        return _sparse_product(who, as_sparse(A), name)
    if callable(A) and not hasattr(A, "rmatvec"):
        return A
    raise UnsupportedOperationError(
        f"{who}: {name} is of type {type(A).__qualname__}{here()}; expected a square matrix (also "
        "one of scipy.sparse) or a function x -> A x of operations that can be traced"
    )


def _sparse_product(who: str, A: SparseArray, name: str) -> Callable[[Any], Any]:
    """The product with a sparse matrix."""
    n = A.shape[0]
    if A.shape != (n, n):
        raise ShapeError(f"{who}: {name} must be a square matrix, got shape {A.shape}{here()}")

    def product(x: Array) -> Any:
        if shape_of(x) != (n,):
            raise ShapeError(
                f"{who}: {name} has shape {A.shape}, but the vector is {aval_of(x)}{here()}; give "
                f"a vector of {n} numbers"
            )
        return A @ x

    return product


def dot(x: Vector, y: Vector) -> Any:
    """``sum(conj(x) * y)``."""
    return np.vdot(x, y)


def norm(x: Vector) -> Any:
    """Euclidean norm."""
    return np.sqrt(dot(x, x).real)


# iterations -------------------------------------------------------------------------------------

# Each takes the product, the right-hand side, the start, the preconditioner, the absolute tolerance
# and the greatest number of iterations; and returns the solution, whether the residual is below the
# tolerance, and the number of iterations.


def _cg(
    product: Product, b: Vector, x: Vector, M: Product, tol: Any, maxiter: int
) -> tuple[Array, ...]:
    """Saad, algorithm 9.1; the residual is that of the recurrence."""
    r = b - product(x)
    z = M(r)

    def step(state: Any) -> Any:
        x, r, p, rho, k, _ = state
        q = product(p)
        curvature = dot(p, q).real
        is_broken = curvature <= 0  # the matrix is not positive definite
        alpha = np.where(is_broken, 0.0 * rho, rho / _nonzero(curvature))
        x, r = x + alpha * p, r - alpha * q
        z = M(r)
        new = dot(r, z).real
        return x, r, z + (new / rho) * p, new, k + 1, is_broken

    def goes_on(state: Any) -> Array:
        _, r, _, rho, k, is_broken = state
        return (norm(r) > tol) & (k < maxiter) & (rho > 0) & ~is_broken

    start = (x, r, z, dot(r, z).real, np.int64(0), np.bool_(False))
    x, r, _, _, k, _ = while_loop(goes_on, step, start)
    return x, norm(r) <= tol, k


def _bicgstab(product: Product, b: Vector, x: Vector, M: Product, tol: Any, maxiter: int) -> Any:
    """Saad, algorithm 7.7, preconditioned from the right."""
    r = b - product(x)

    def step(state: Any) -> Any:
        x, r, p, rho, k, _ = state
        y = M(p)
        v = product(y)
        along = dot(shadow, v)
        alpha = np.where(along == 0, 0.0 * rho, rho / _nonzero(along))
        s = r - alpha * v
        z = M(s)
        t = product(z)
        tt = dot(t, t)
        omega = np.where(tt == 0, 0.0 * tt, dot(t, s) / _nonzero(tt))
        x = x + alpha * y + omega * z
        r = s - omega * t
        new = dot(shadow, r)
        beta = np.where(omega == 0, 0.0 * omega, (new / rho) * (alpha / _nonzero(omega)))
        p = r + beta * (p - omega * v)
        is_broken = (new == 0) | (omega == 0) | (along == 0)
        return x, r, p, new, k + 1, is_broken

    def goes_on(state: Any) -> Any:
        _, r, _, _, k, is_broken = state
        return (norm(r) > tol) & (k < maxiter) & ~is_broken

    shadow = r
    start = (x, r, r, dot(r, r), np.int64(0), np.bool_(False))
    x, r, _, _, k, _ = while_loop(goes_on, step, start)
    return x, norm(r) <= tol, k


def _nonzero(value: Array) -> Any:
    """The value, 1 in place of 0."""
    return np.where(value == 0, 1.0 + value, value)


def _gmres(restart: int) -> Callable[..., Any]:
    """Saad, algorithm 6.9 with restarts: Gram-Schmidt twice, Givens rotations, from the right."""

    def solve(
        product: Product, b: Vector, x: Vector, M: Product, tol: Operand, maxiter: int
    ) -> Any:
        n, m, dtype = b.shape[0], restart, b.dtype
        if n == 0:
            return x, np.bool_(True), np.int64(0)
        eye = np.eye(m, dtype=dtype)

        def arnoldi(state: Any) -> Any:
            basis, upper, cosines, sines, g, k, _ = state
            w = product(M(basis[k]))
            h = np.conj(basis) @ w
            w = w - h @ basis
            again = np.conj(basis) @ w
            w = w - again @ basis
            h = h + again
            length = norm(w)
            is_broken = length <= 100 * np.finfo(dtype).eps * norm(h)
            h = h + np.where(np.arange(m + 1) == k + 1, cast(length, dtype), np.zeros((), dtype))
            basis = basis.at[k + 1].set(np.where(is_broken, 0.0 * w, w / _nonzero(length)))

            def rotate(i: Any, h: Any) -> Any:
                first = cosines[i] * h[i] + sines[i] * h[i + 1]
                second = -np.conj(sines[i]) * h[i] + cosines[i] * h[i + 1]
                return h.at[i].set(first).at[i + 1].set(second)

            h = fori_loop(0, k, rotate, h)
            below, above = h[k + 1], h[k]
            radius = np.sqrt((above * np.conj(above)).real + (below * np.conj(below)).real)
            size = np.sqrt((above * np.conj(above)).real)
            phase = np.where(size == 0, 1.0 + 0 * above, above / _nonzero(size))
            c = np.where(radius == 0, 1.0, size / _nonzero(radius))
            s = phase * np.conj(below) / _nonzero(radius)
            upper = upper.at[:, k].set(h[:m].at[k].set(phase * radius))
            g = g.at[k + 1].set(-np.conj(s) * g[k]).at[k].set(c * g[k])
            return (
                basis, upper, cosines.at[k].set(cast(c, dtype)), sines.at[k].set(s), g, k + 1,
                is_broken,
            )  # fmt: skip

        def cycle(state: Sequence[Array]) -> tuple[Array, ...]:
            x, r, total, _ = state

            def goes_on_inside(state: Sequence[Array]) -> Array:
                _, _, _, _, g, k, is_broken = state
                is_within = (k < m) & (total + k < maxiter)
                return is_within & (np.abs(g[k]) > tol) & ~is_broken

            beta = norm(r)
            basis = np.zeros((m + 1, n), dtype) + 0 * r
            basis = basis.at[0].set(r / _nonzero(beta))
            g = np.zeros(m + 1, dtype) + 0 * r[0]
            start = (
                basis, np.zeros((m, m), dtype) + 0 * r[0], g, g,
                g.at[0].set(cast(beta, dtype)), np.int64(0), np.bool_(False),
            )  # fmt: skip
            basis, upper, _, _, g, k, _ = while_loop(goes_on_inside, arnoldi, start)
            is_used = np.arange(m) < k
            both = is_used[:, None] & is_used[None, :]
            matrix = np.where(both, upper, eye)
            y = _back_substitution(matrix, np.where(is_used, g[:m], 0.0 * g[:m]))
            x = x + M(y @ basis[:m])
            new = b - product(x)
            return x, new, total + k, ~(norm(new) <= 0.999 * beta)

        def goes_on(state: Sequence[Array]) -> Array:
            _, r, total, is_stuck = state
            return (norm(r) > tol) & (total < maxiter) & ~is_stuck

        start = (x, b - product(x), np.int64(0), np.bool_(False))
        x, r, total, _ = while_loop(goes_on, cycle, start)
        return x, norm(r) <= tol, total

    return solve


def _back_substitution(upper: Array, rhs: Array) -> Array:
    """The solution of a small triangular system; 0 where a diagonal entry vanishes."""
    m = rhs.shape[0]

    def step(j: Array, y: Any) -> Any:
        i = m - 1 - j
        diagonal = upper[i, i]
        value = (rhs[i] - upper[i] @ y) / _nonzero(diagonal)
        return y.at[i].set(np.where(diagonal == 0, 0.0 * value, value))

    return fori_loop(0, m, step, 0.0 * rhs)


# functions --------------------------------------------------------------------------------------


def _floating(leaf: Operand) -> Any:
    """A leaf of a right-hand side; integers become floating-point numbers, as in SciPy."""
    return cast(leaf, np.dtype(np.float64)) if dtype_of(leaf).kind in "iu" else leaf


def _solve(
    who: str,
    iterate: Callable[..., Any],
    A: Any,
    b: Any,
    x0: object,
    rtol: float,
    atol: float,
    maxiter: int | None,
    M: Any,
    symmetric: bool,
) -> tuple[Any, Any]:
    """Solution and ``info`` of a solver."""
    b = tree.map(_floating, b)
    space = Space(who, b, "b")
    if maxiter is None:
        maxiter = 10 * space.size
    matvec = _product(who, A, "A")
    precondition = None if M is None else _product(who, M, "M")

    def apply(vector: Any) -> Any:
        return space.ravel(matvec(space.unravel(vector)), "A x")

    def prepare(vector: Array) -> Array:
        if precondition is None:
            return vector
        return space.ravel(precondition(space.unravel(vector)), "M x")

    def from_zero(product: Product, rhs: Vector) -> tuple[Array, ...]:
        x, converged, k = iterate(product, rhs, 0.0 * rhs, prepare, rtol * norm(rhs), maxiter)
        return x, np.where(converged, 0, k)

    def conjugated(product: Product, rhs: Vector) -> tuple[Array, ...]:
        # The transpose of a Hermitian matrix is its conjugate.
        x, info = from_zero(lambda v: np.conj(product(np.conj(v))), np.conj(rhs))
        return np.conj(x), info

    is_hermitian = symmetric and space.dtype.kind == "c"
    is_symmetric = symmetric and not is_hermitian
    other = conjugated if is_hermitian else None if symmetric else from_zero

    def system(product: Product, rhs: Vector) -> tuple[Any, ...]:
        return custom_linear_solve(product, rhs, from_zero, other, is_symmetric, has_aux=True)

    right = space.ravel(b, "b")
    if x0 is None and type(atol) in (int, float) and atol == 0:
        solution, info = system(apply, right)
        return space.unravel(solution), info

    # A start and an absolute tolerance belong to this right-hand side, not to those of tangents and
    # cotangents: 0 could meet the tolerance.
    def from_start(residual: Product, start: Vector) -> tuple[Array, ...]:
        tol = np.maximum(rtol * norm(right), atol)
        x, converged, k = iterate(apply, right, start, prepare, tol, maxiter)
        return x, np.where(converged, 0, k)

    solution, info = custom_root(
        lambda x: apply(x) - right,
        0.0 * right if x0 is None else space.ravel(x0, "x0"),
        from_start,
        lambda product, rhs: system(product, rhs)[0],
        has_aux=True,
    )
    return space.unravel(solution), info


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, Any]:
    """Solve a Hermitian positive definite system by conjugate gradients.

    Args:
      A: square matrix, also of ``scipy.sparse``, or linear function of a pytree like ``b``.
      b: right-hand side, a pytree of arrays.
      x0: start, by default 0.
      tol: relative tolerance of the residual: the iteration ends when
        ``norm(b - A x) <= max(tol * norm(b), atol)``.
      rtol: SciPy's name for ``tol``, which it replaces.
      atol: absolute tolerance.
      maxiter: greatest number of iterations, by default ten for each unknown.
      M: preconditioner, like ``A``: an approximation of its inverse, positive definite.

    Returns:
      ``(x, info)``: ``info`` is 0 if the iteration converged, else the number of iterations.
      Derivatives in both modes solve systems with ``A``.

    Raises:
      ShapeError, TreeMismatchError: ``A`` is not square, or ``x0`` unlike ``b``.

    Example:
      >>> import numpy as np
      >>> x, info = cg(np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]))
      >>> np.round(x, 6), int(info)
      (array([0.090909, 0.636364]), 0)

    Reference: Hestenes & Stiefel, J. Res. Nat. Bur. Standards 49 (1952), 409-436.
    """
    return _solve("cg", _cg, A, b, x0, tol if rtol is None else rtol, atol, maxiter, M, True)


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, Any]:
    """Solve a system by stabilised biconjugate gradients.

    Arguments, results and errors as :func:`cg`, for any regular matrix. A breakdown of the
    recurrence is reported as no convergence.

    Example:
      >>> import numpy as np
      >>> x, info = bicgstab(np.array([[4.0, 1.0], [0.0, 3.0]]), np.array([1.0, 3.0]))
      >>> np.round(x, 6) + 0.0, int(info)
      (array([0., 1.]), 0)

    Reference: van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992), 631-644.
    """
    return _solve(
        "bicgstab", _bicgstab, A, b, x0, tol if rtol is None else rtol, atol, maxiter, M, False
    )


def gmres(
    A: Any,
    b: Any,
    x0: object = None,
    *,
    tol: float = 1e-5,
    rtol: float | None = None,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, Any]:
    """Solve a system by the generalised minimal residual method.

    Arguments, results and errors as :func:`cg`, for any regular matrix.

    Args:
      A: see ``cg``.
      b: see ``cg``.
      x0: see ``cg``.
      tol: see ``cg``.
      rtol: see ``cg``.
      atol: see ``cg``.
      restart: size of the subspace, of which all vectors are kept.
      maxiter: greatest number of products in all, by default ten for each unknown. An iteration
        also ends when a restart no longer reduces the residual.
      M: preconditioner, applied from the right.

    Returns:
      ``(x, info)``.

    Example:
      >>> import numpy as np
      >>> x, info = gmres(np.array([[4.0, 1.0], [0.0, 3.0]]), np.array([1.0, 3.0]))
      >>> np.round(x, 6) + 0.0, int(info)
      (array([0., 1.]), 0)

    Reference: Saad & Schultz, SIAM J. Sci. Stat. Comput. 7 (1986), 856-869.
    """
    if restart < 1:
        raise ValueError(f"gmres: restart must be at least 1, got {restart}")
    n = sum(math.prod(shape_of(leaf)) for leaf in tree.leaves(b))
    iterate = _gmres(max(1, min(restart, n)))
    return _solve(
        "gmres", iterate, A, b, x0, tol if rtol is None else rtol, atol, maxiter, M, False
    )
