"""Functions as SciPy's solvers want them: ``as_scipy``.

Here: values and exact derivatives of a function of a pytree as functions of a float64 vector, each
computed once at a point. Not here: calls of SciPy's solvers (``optimize.drivers``,
``optimize.fitting``).

Layer: ``scipy``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import pytrees as tree
from functrans.control.closures import make_template
from functrans.core.arguments import further_arguments, name_of
from functrans.core.boundary import boundary, cause
from functrans.core.caching import Recent
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of
from functrans.core.progress import Progress
from functrans.core.source import attribute, here
from functrans.core.values import Array
from functrans.errors import ConcretizationError, ShapeError, UnsupportedOperationError
from functrans.flatten_util import ravel_pytree
from functrans.jitted.jit import jit as jitted
from functrans.sparse.api import sparse_hessian, sparse_jacobian
from functrans.transforms.jacobian import hessian, jacobian
from functrans.transforms.products import hvp
from functrans.transforms.reverse import value_and_grad

Unravel = Callable[[Any], Any]
_FLOAT64 = np.dtype(np.float64)


def refuse_traced(who: str, *values: object) -> None:
    """Refuse traced values: SciPy's solvers are no operations that can be traced.

    Functions among the values are looked into, and bounds and constraints of SciPy's classes.

    Raises:
      UnsupportedOperationError: there is one; names what can be done.
    """
    sides = [(attribute(value, "lb"), attribute(value, "ub")) for value in values]
    _, held = make_template((values, sides), objects=True)
    if held:
        raise UnsupportedOperationError(
            f"{who}: {held[0]._describe()} is traced{here()}, but SciPy's solvers work on plain "
            "arrays. To differentiate through the solver, decorate the function that calls it with "
            "ft.implicit_diff. For a solver that is compiled with the program around it, under jit "
            "and vmap too, use minimize_bfgs, root_newton, newton, bisect or brentq of "
            "functrans.scipy.optimize."
        )


def ravel_start(who: str, x0: Any) -> tuple[np.ndarray, Unravel]:
    """A start as a float64 vector, and the function back.

    Raises:
      TypeError: a leaf is no real floating-point array.
    """
    refuse_traced(who, x0)
    x0 = as_vector(x0)
    leaves, treedef = tree.flatten(x0)
    for leaf, path in zip(leaves, tree.key_paths(x0, "x0"), strict=True):
        _float_of(who, np.asarray(leaf), path)
    flat, unravel = ravel_pytree(x0)
    if treedef is tree.LEAF and np.ndim(x0) <= 1 and flat.dtype == np.float64:
        shape = np.shape(x0)
        unravel = (lambda x: x[0]) if shape == () else _identity
    return np.asarray(flat, np.float64), unravel


def as_vector(x0: Any) -> Any:
    """A list or tuple of numbers, and an array or number that is an integer, in floating point.

    They are vectors to SciPy; other pytrees stay as they are.
    """
    if type(x0) in (list, tuple) and x0 and all(_is_number(value) for value in x0):
        x0 = np.asarray(x0)
    if isinstance(x0, (int, np.ndarray, np.generic)) and np.asarray(x0).dtype.kind in "iu":
        return np.asarray(x0, np.float64)
    return x0


def _is_number(value: ArrayLike) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _identity(x: ArrayLike) -> Any:
    return x


def _float_of(who: str, value: np.ndarray, path: str) -> np.dtype:
    """The dtype of an array of unknowns."""
    kind = value.dtype.kind
    if kind == "c":
        raise TypeError(
            f"{who}: {path} is complex ({value.dtype}){here()}, but SciPy's solvers work on real "
            "unknowns; make real and imaginary part two leaves: {'re': x.real, 'im': x.imag}"
        )
    if kind != "f" and value.dtype.name != "bfloat16":
        raise TypeError(
            f"{who}: {path} has dtype {value.dtype}{here()}; unknowns are floating-point numbers: "
            "write 1.0 in place of 1, or convert it with np.asarray(..., dtype=float)"
        )
    return value.dtype


class ScipyFunction:
    """A function and its derivatives on float64 vectors, each computed once at a point.

    Made by :func:`as_scipy`. It is itself a function: ``fun``.

    Attributes:
      x0: the start as a vector; ``None`` if none was given.
      nfev: number of evaluations of the function; one that comes with a derivative counts.
      njev: number of gradients or Jacobians computed.
      nhev: number of Hessians and of Hessian-vector products computed.
    """

    @boundary
    def __init__(
        self,
        f: Callable[..., Any],
        x0: Any = None,
        args: tuple[Any, ...] = (),
        *,
        jit: bool = True,
        sparse: bool = False,
        cache_size: int = 4,
        who: str = "as_scipy",
        is_objective: bool = False,
    ) -> None:
        given = f
        f = traced_form(who, f)
        args = further_arguments(args)
        if cache_size < 1:
            raise ValueError(f"{who}: cache_size must be at least 1, got {cache_size}")
        self._who = who
        self._given = (given, x0, args, jit, sparse, cache_size, is_objective)
        self._label = f"{who}: {name_of(f)}"
        self._jit = jit
        self._sparse = sparse
        self._unravel: Unravel = _identity
        self.x0: np.ndarray | None = None
        if x0 is not None:
            self.x0, self._unravel = ravel_start(who, x0)
        self._lock = RLock()
        self._points: Recent[bytes, dict[Any, Any]] = Recent(cache_size)
        self._is_scalar: bool | None = None
        self._uses_jac = False
        self.nfev = self.njev = self.nhev = 0
        self._progress: Progress | None = None

        unravel = self._unravel

        @functools.wraps(f, assigned=("__name__", "__qualname__"), updated=())
        def flat(x: ArrayLike) -> Any:
            result = f(unravel(x), *args)
            leaves = tree.leaves(result)
            if is_objective and len(leaves) == 1 and np.size(leaves[0]) == 1:
                return np.reshape(leaves[0], ())
            if len(leaves) == 1 and np.ndim(leaves[0]) <= 1:
                return leaves[0]
            return ravel_pytree(result)[0]

        del flat.__wrapped__
        self._flat = flat
        self._made: dict[str, Callable[..., Any]] = {}

    def __reduce__(self) -> Any:
        """Pickles as its arguments, so that it can be sent to other processes."""
        f, x0, args, jit, sparse, cache_size, is_objective = self._given
        maker = functools.partial(
            ScipyFunction,
            jit=jit,
            sparse=sparse,
            cache_size=cache_size,
            who=self._who,
            is_objective=is_objective,
        )
        return maker, (f, x0, args)

    def __repr__(self) -> str:
        """``<as_scipy: f, 3 evaluations>``."""
        return f"<{self._label}, {self.nfev} evaluations>"

    # structure --------------------------------------------------------------------------------

    def unravel(self, x: Any) -> Any:
        """A vector as a pytree like ``x0``."""
        return self._unravel(np.array(x, np.float64))

    def ravel(self, x: Any) -> np.ndarray:
        """A pytree like ``x0`` as a vector."""
        return np.array(ravel_pytree(x)[0], np.float64)

    # what SciPy calls -------------------------------------------------------------------------

    def __call__(self, x: ArrayLike) -> Any:
        """``fun``."""
        return self.fun(x)

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Show how many evaluations there were, while a solver runs that takes its time."""
        with Progress(self._label, unit=" evaluations") as progress:
            self._progress = progress
            try:
                yield
            finally:
                self._progress = None

    def fun(self, x: Any) -> Any:
        """The value at a vector.

        Args:
          x: ``f64[n]``.

        Returns:
          A float, or a new array ``f64[m]``.
        """
        with self._lock:
            point, memo = self._point(x)
            if "value" not in memo:
                if self._uses_jac and self._is_scalar:
                    self._evaluate_both(point, memo)
                else:
                    self._evaluate(point, memo)
            return _own(memo["value"])

    def jac(self, x: Any) -> Any:
        """Gradient ``f64[n]`` of a scalar function, or Jacobian ``f64[m, n]`` (sparse if asked)."""
        with self._lock:
            point, memo = self._point(x)
            if "jac" not in memo:
                if self._is_scalar is None:
                    self._evaluate(point, memo)
                if self._is_scalar:
                    self._uses_jac = True
                    self._evaluate_both(point, memo)
                else:
                    memo["jac"] = self._derivative("jac", point)
                    self.njev += 1
            return _own(memo["jac"])

    def fun_and_jac(self, x: ArrayLike) -> tuple[Any, Any]:
        """Both, for ``jac=True``."""
        with self._lock:
            self._uses_jac = True
            return self.fun(x), self.jac(x)

    def hess(self, x: ArrayLike, v: ArrayLike | None = None) -> Any:
        """Hessian ``f64[n, n]`` of a scalar function (sparse if asked).

        Of a function with ``m`` results, as constraints are, the sum of their Hessians with weights
        ``v: f64[m]``.

        Raises:
          TypeError: weights are missing, or given for a scalar function.
        """
        with self._lock:
            point, memo = self._point(x)
            is_scalar = self._kind(point, memo)
            if v is None and not is_scalar:
                raise TypeError(
                    f"{self._label}: the Hessian of a function with several results needs weights: "
                    "hess(x, v)"
                )
            weights = None if v is None else np.array(v, np.float64).reshape(-1)
            key = ("hess", None if weights is None else weights.tobytes())
            if key not in memo:
                self._forget(memo, "hess")
                if weights is None:
                    memo[key] = self._derivative("hess", point)
                else:
                    memo[key] = self._derivative("weighted", point, weights)
                self.nhev += 1
            return _own(memo[key])

    def hessp(self, x: ArrayLike, p: ArrayLike) -> np.ndarray:
        """Product ``f64[n]`` of the Hessian of a scalar function with a vector, without the matrix.

        Raises:
          TypeError: the function is not scalar.
        """
        with self._lock:
            point, memo = self._point(x)
            if not self._kind(point, memo):
                raise TypeError(
                    f"{self._label}: hessp is for scalar functions; use hess(x, v) @ p here"
                )
            vector = np.array(p, np.float64).reshape(point.shape)
            key = ("hessp", vector.tobytes())
            if key not in memo:
                self._forget(memo, "hessp")
                memo[key] = self._derivative("hessp", point, vector)
                self.nhev += 1
            return np.array(memo[key])

    def constraint(self, lb: ArrayLike, ub: ArrayLike, keep_feasible: bool = False) -> Any:
        """``lb <= f(x) <= ub`` as ``scipy.optimize.NonlinearConstraint``, with exact derivatives.

        Args:
          lb: lower bounds, a number or one for each result.
          ub: upper bounds; equal to ``lb`` for equations.
          keep_feasible: see SciPy.
        """
        from scipy.optimize import NonlinearConstraint

        def hess(x: ArrayLike, v: ArrayLike) -> Any:
            return self.hess(x, v)

        def fun(x: Array) -> Any:
            return np.atleast_1d(self.fun(x))

        def jac(x: Any) -> Any:
            return self._as_rows(self.jac(x))

        return NonlinearConstraint(fun, lb, ub, jac=jac, hess=hess, keep_feasible=keep_feasible)

    # evaluation -------------------------------------------------------------------------------

    def _as_rows(self, jac: Any) -> Any:
        return jac if jac.ndim == 2 else jac.reshape(1, -1)

    def _point(self, x: ArrayLike) -> tuple[np.ndarray, dict[Any, Any]]:
        """The point as an array of its own, and what is known there."""
        array = np.asarray(x)
        if array.dtype.kind == "c":
            raise TypeError(f"{self._label}: expected a real vector, got {array.dtype}")
        point = array.astype(_FLOAT64).ravel()  # a copy: SciPy goes on writing to its own
        if self.x0 is not None and point.size != self.x0.size:
            raise ShapeError(
                f"{self._label}: expected a vector of {self.x0.size} numbers, as x0 has, got shape "
                f"{array.shape}"
            )
        return point, self._points.kept(point.tobytes(), {})

    @staticmethod
    def _forget(memo: dict[Any, Any], kind: str) -> None:
        """Drop the last matrix or product of a kind: for other weights or vectors."""
        for key in [key for key in memo if isinstance(key, tuple) and key[0] == kind]:
            del memo[key]

    def _kind(self, point: np.ndarray, memo: dict[Any, Any]) -> bool:
        """Whether the function is scalar."""
        if self._is_scalar is None:
            self._evaluate(point, memo)
        return bool(self._is_scalar)

    def _evaluate(self, point: np.ndarray, memo: dict[Any, Any]) -> None:
        value = self._run("value", point)
        self._keep_value(value, memo)
        self.nfev += 1

    def _keep_value(self, value: Array, memo: dict[Any, Any]) -> None:
        self._is_scalar = np.ndim(value) == 0
        memo["value"] = float(value) if self._is_scalar else _real(self._label, value, self._jit)

    def _evaluate_both(self, point: np.ndarray, memo: dict[Any, Any]) -> None:
        value, gradient = self._run("value_and_grad", point)
        self._keep_value(value, memo)
        memo["jac"] = _real(self._label, gradient, self._jit)
        self.nfev += 1
        self.njev += 1

    def _derivative(self, kind: str, *arguments: np.ndarray) -> Any:
        return _real(self._label, self._run(kind, *arguments), self._jit)

    def _run(self, kind: str, *arguments: np.ndarray) -> Any:
        """Evaluate the function or a derivative, which is made when it is first needed."""
        made = self._made.get(kind)
        if made is None:
            made = self._made[kind] = self._make(kind)
        try:
            result = made(*arguments)
            if self._progress is not None:
                self._progress.advance()
        except ConcretizationError as error:
            if not self._jit:
                raise
            asked = str(error).partition(", but ")[0]
            raise ConcretizationError(
                f"{asked}, but {self._label} is compiled, for which it runs once on shapes and "
                "dtypes only, without values. Pass jit=False if it must see values, or use "
                "np.where, ft.lax.cond or ft.lax.while_loop in place of Python's if/while."
            ) from cause(error)
        leaves = result if type(result) is tuple else (result,)
        if all(type(leaf) is np.ndarray and leaf.dtype is _FLOAT64 for leaf in leaves):
            return result
        for leaf in leaves:
            if isinstance(leaf, Tracer):
                refuse_traced(self._who, leaf)
        for leaf in leaves[:1]:
            dtype = getattr(leaf, "dtype", np.asarray(leaf).dtype if np.isscalar(leaf) else None)
            if dtype is not None and dtype.kind == "c":
                raise TypeError(
                    f"{self._label}: the function returned {aval_of(leaf)}, but SciPy's solvers "
                    "need real results: return its real and imaginary parts, or abs(.)**2"
                )
        return result

    def _make(self, kind: str) -> Callable[..., Any]:
        flat = self._flat

        def weighted(x: ArrayLike, v: ArrayLike) -> Any:
            return np.sum(v * np.reshape(flat(x), -1))

        if self._sparse and kind in ("jac", "hess", "weighted"):
            if kind == "jac":
                return sparse_jacobian(flat)
            return sparse_hessian(flat if kind == "hess" else weighted)
        table: dict[str, Callable[..., Any]] = {
            "value": flat,
            "value_and_grad": value_and_grad(flat),
            "jac": jacobian(flat),
            "hess": hessian(flat),
            "weighted": hessian(weighted),
            "hessp": lambda x, p: hvp(flat, (x,), (p,)),
        }
        return jitted(table[kind]) if self._jit else table[kind]


def _own(value: Array) -> Any:
    """A memoised value for the caller to change."""
    return value if isinstance(value, float) else value.copy()


def _real(label: str, value: Array, is_own: bool) -> Array:
    """A result as float64, in memory of its own; sparse matrices stay so."""
    if is_own and type(value) is np.ndarray and value.dtype is _FLOAT64:
        return value  # of a compiled function, which gives its results away
    if hasattr(value, "tocsr"):
        return value.astype(np.float64)
    if value.dtype.kind == "c":
        raise TypeError(f"{label}: a derivative is complex ({value.dtype}); expected real numbers")
    return np.array(value, np.float64)


@boundary
def as_scipy(
    f: Callable[..., Any],
    x0: object = None,
    args: tuple[Any, ...] = (),
    *,
    jit: bool = True,
    sparse: bool = False,
    cache_size: int = 4,
) -> ScipyFunction:
    """Prepare a function for SciPy's solvers, with exact derivatives.

    Args:
      f: function ``(x, *args)`` of a pytree with a scalar result (an objective), or with several
        (residuals, constraints, equations), which are put into one vector.
      x0: a pytree like ``x`` of real floating-point arrays, usually the start; without one, ``x``
        is a vector. A list or tuple of numbers is a vector, and integers in a vector become
        floating-point numbers, as in SciPy.
      args: further arguments, or the only one.
      jit: whether function and derivatives are compiled. ``False`` for functions whose course
        depends on values.
      sparse: whether Jacobians of several results, and Hessians, are sparse arrays
        (``scipy.sparse``), computed by colouring.
      cache_size: number of points whose results are remembered.

    Returns:
      An object with ``fun``, ``jac``, ``hess``, ``hessp``, ``fun_and_jac`` on vectors ``f64[n]``,
      which return new float64 arrays; ``x0`` as a vector, ``unravel`` and ``ravel``; and the
      numbers of evaluations ``nfev``, ``njev``, ``nhev``. Nothing is computed twice at a point, and
      once gradients are asked for, they are computed with the value. Threads may share it.

    Raises:
      TypeError: ``x0`` or a result is complex, or a leaf of the pytree ``x0`` is of integers.
      UnsupportedOperationError: ``f`` or ``x0`` refers to traced values.

    Example:
      >>> from scipy.optimize import minimize
      >>> import functrans as ft
      >>> f = as_scipy(ft.scipy.optimize.rosen, np.array([-1.2, 1.0]))
      >>> result = minimize(f.fun, f.x0, jac=f.jac, hess=f.hess, method="trust-exact")
      >>> np.round(f.unravel(result.x), 6)
      array([1., 1.])
    """
    refuse_traced("as_scipy", f, args)
    return ScipyFunction(f, x0, args, jit=jit, sparse=sparse, cache_size=cache_size)


def rosen(x: Any) -> Array:
    """Rosenbrock's function, ``sum(100 (x[i+1] - x[i]**2)**2 + (1 - x[i])**2)``.

    Args:
      x: ``f64[n, ...]``; the sum is over the first axis.

    Example:
      >>> float(rosen(np.array([0.0, 1.0])))
      101.0
    """
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2, axis=0)
