"""Arguments of SciPy's solvers that refer to the unknowns, for vectors in place of pytrees.

Here: derivatives, bounds, constraints, callbacks, and results.

Layer: ``scipy``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import pytrees as tree
from functrans.core.arguments import check_callable, further_arguments
from functrans.core.boundary import warn
from functrans.core.dispatch import Tracer
from functrans.flatten_util import ravel_pytree
from functrans.scipy.optimize.objective import ScipyFunction, as_vector


def flat_derivative(
    function: ScipyFunction, given: Callable[..., Any], args: Any
) -> Callable[..., Any]:
    """A derivative that the caller gives for pytrees, on vectors."""

    @functools.wraps(given, updated=())
    def derivative(x: ArrayLike, *rest: Any) -> Any:
        result = given(function.unravel(x), *rest, *args)
        leaves, treedef = tree.flatten(result)
        if treedef is tree.LEAF and not isinstance(leaves[0], Tracer):
            return result
        return np.asarray(ravel_pytree(result)[0], np.float64)

    return derivative


def flat_bounds(who: str, x0: object, bounds: ArrayLike | None) -> Any:
    """Bounds on the vector; a pair of pytrees like ``x0`` becomes SciPy's.

    Raises:
      TypeError: they are given for a vector, but ``x0`` is none.
    """
    if bounds is None:
        return None
    from scipy.optimize import Bounds

    x0 = as_vector(x0)
    treedef = tree.structure(x0)
    if (
        treedef is not tree.LEAF
        and isinstance(bounds, tuple)
        and len(bounds) == 2
        and all(tree.structure(part) == treedef for part in bounds)
    ):
        parts = []
        for part in bounds:
            full = tree.map(
                lambda b, x: np.broadcast_to(np.asarray(b, float), np.shape(x)), part, x0
            )
            parts.append(np.asarray(ravel_pytree(full)[0], np.float64))
        return Bounds(*parts)
    return bounds


def flat_callback(
    function: ScipyFunction, callback: Callable[..., Any] | None
) -> Callable[..., Any] | None:
    """A callback that is given pytrees, of the signature that SciPy looks for."""
    if callback is None:
        return None
    check_callable("callback", callback)
    names = list(inspect.signature(callback).parameters)
    if names == ["intermediate_result"]:

        def by_result(intermediate_result: Any) -> Any:
            copied = type(intermediate_result)(intermediate_result)
            copied.x = function.unravel(intermediate_result.x)
            return callback(intermediate_result=copied)

        return by_result

    def by_point(x: ArrayLike, *rest: object) -> Any:
        return callback(function.unravel(x), *rest)

    return by_point


def flat_constraints(
    who: str, x0: Any, constraints: Any, *, with_hess: bool, sparse: bool, jit: bool
) -> Sequence[Any]:
    """Constraints on the vector, with exact derivatives where the caller gives none."""
    from scipy.optimize import BFGS, HessianUpdateStrategy, NonlinearConstraint

    if constraints is None or (isinstance(constraints, Sequence) and not constraints):
        return ()
    several = list(constraints) if isinstance(constraints, (tuple, list)) else [constraints]
    found = []
    for i, each in enumerate(several):
        what = f"{who}: constraint {i}"
        if isinstance(each, dict):
            args = further_arguments(each.get("args", ()))
            function = ScipyFunction(each["fun"], x0, args, jit=jit, who=what)
            given = each.get("jac")
            own = {**each, "fun": _rows_of(function), "args": ()}
            own["jac"] = function.jac if given is None else flat_derivative(function, given, args)
            found.append(own)
        elif isinstance(each, NonlinearConstraint):
            function = ScipyFunction(each.fun, x0, jit=jit, sparse=sparse, who=what)
            jac: Any = each.jac
            if callable(jac):
                jac = flat_derivative(function, jac, ())
            elif jac == "2-point":  # SciPy's default
                jac = matrix_of(function)
            hess: Any = each.hess
            is_default = hess is None or type(hess) is BFGS
            if callable(hess) and not isinstance(hess, HessianUpdateStrategy):
                hess = flat_derivative(function, hess, ())
            elif is_default and with_hess:
                hess = function.hess
            options = {} if hess is None else {"hess": hess}
            found.append(
                NonlinearConstraint(
                    _rows_of(function),
                    each.lb,
                    each.ub,
                    jac=jac,
                    keep_feasible=each.keep_feasible,
                    finite_diff_rel_step=each.finite_diff_rel_step,
                    finite_diff_jac_sparsity=each.finite_diff_jac_sparsity,
                    **options,
                )
            )
        else:
            found.append(each)
    return found


def _rows_of(function: ScipyFunction) -> Callable[[Any], np.ndarray]:
    def rows(x: ArrayLike) -> np.ndarray:
        return np.atleast_1d(function.fun(x))

    return rows


def matrix_of(function: ScipyFunction) -> Callable[[Any], Any]:
    """The Jacobian of a function, as a matrix also for one result."""

    def matrix(x: ArrayLike) -> Any:
        jac = function.jac(x)
        return jac if jac.ndim == 2 else jac.reshape(1, -1)

    return matrix


def finished(who: str, function: ScipyFunction, result: Any) -> Any:
    """SciPy's result with ``x`` as the pytree; warns if it has not converged."""
    result.x = function.unravel(result.x)
    if not result.success:
        warn_of(who, str(result.message))
    return result


def warn_of(who: str, message: str) -> None:
    """Warn of a result that has not converged."""
    from scipy.optimize import OptimizeWarning

    warn(
        f"{who}: not converged: {message.rstrip('.')}. The result has success=False.",
        OptimizeWarning,
    )
