"""``minimize``, ``minimize_scalar``, ``root``, ``root_scalar``: SciPy's, with exact derivatives.

Here: what each of SciPy's methods can use is filled in. Not here: least squares
(``optimize.fitting``), solvers that can be traced (``optimize.traced``).

Layer: ``scipy``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.arguments import further_arguments, part_of
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.values import Array
from functrans.jitted.jit import jit as jitted
from functrans.scipy.optimize.arguments import (
    finished,
    flat_bounds,
    flat_callback,
    flat_constraints,
    flat_derivative,
    warn_of,
)
from functrans.scipy.optimize.objective import ScipyFunction, refuse_traced
from functrans.transforms.reverse import grad

_USES_JAC = frozenset(
    {
        "cg", "bfgs", "newton-cg", "l-bfgs-b", "tnc", "slsqp", "dogleg", "trust-ncg",
        "trust-krylov", "trust-exact", "trust-constr",
    }
)  # fmt: skip
_USES_HESS = frozenset(
    {"newton-cg", "dogleg", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr"}
)
_USES_HESSP = frozenset({"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"})
_TAKES_SPARSE = frozenset({"newton-cg", "trust-constr"})
MAX_HESSIAN = 200
"""Unknowns up to which a method that could do with products is given the matrix."""


@boundary
def minimize(
    fun: Callable[..., Any],
    x0: object,
    args: tuple[Any, ...] = (),
    method: str | None = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: ArrayLike | None = None,
    constraints: ArrayLike = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    *,
    sparse: bool = False,
    jit: bool = True,
) -> Any:
    """Minimise a scalar function: ``scipy.optimize.minimize`` with exact derivatives.

    Gradient, Hessian and Hessian-vector products are given to the methods that use them, also those
    of constraints; above 200 unknowns, products in place of the Hessian where a method takes them.
    What the caller gives is used instead.

    Args:
      fun: function ``(x, *args)`` of a pytree with a real scalar result.
      x0: start, a pytree of real floating-point arrays; a list or tuple of numbers is a vector.
      args: further arguments of ``fun`` and of derivatives that are given, or the only one.
      method: as in SciPy.
      jac: by default exact. A function ``(x, *args)``, ``True`` if ``fun`` returns value and
        gradient, or ``False`` or one of SciPy's names for differences.
      hess: by default exact. A function, or one of SciPy's names or strategies.
      hessp: a function ``(x, p, *args)``.
      bounds: as in SciPy for the vector of all unknowns, or a pair of pytrees like ``x0``.
      constraints: as in SciPy; their functions are given pytrees. Derivatives that are missing, or
        are the default of ``NonlinearConstraint``, are filled in.
      tol: as in SciPy.
      callback: as in SciPy, given pytrees.
      options: as in SciPy.
      sparse: whether Hessians (for ``trust-constr``, ``newton-cg``) and Jacobians of constraints
        (for ``trust-constr``) are sparse.
      jit: whether functions are compiled; ``False`` if they must see values.

    Returns:
      SciPy's ``OptimizeResult``; ``x`` is a pytree like ``x0``, all else belongs to the vector of
      all unknowns. A result that has not converged has ``success=False``, and a warning is given.

    Raises:
      TypeError: ``x0`` is complex, or a leaf of a pytree is of integers; ``fun`` is not real.
      UnsupportedOperationError: there are traced values: see ``minimize_bfgs`` and
        ``ft.implicit_diff``.

    Example:
      >>> from functrans.scipy.optimize import rosen
      >>> result = minimize(rosen, np.array([-1.2, 1.0]), method="trust-exact")
      >>> np.round(result.x, 6), result.nfev < 30
      (array([1., 1.]), True)
    """
    import scipy.optimize

    who = "minimize"
    args = further_arguments(args)
    refuse_traced(who, fun, args, jac, hess, hessp, bounds, constraints, tol, options)
    given_both = jac is True
    own_fun = (lambda x, *rest: fun(x, *rest)[0]) if given_both else fun
    function = ScipyFunction(own_fun, x0, args, jit=jit, sparse=sparse, who=who, is_objective=True)
    name = method.lower() if isinstance(method, str) else None
    has_constraints = not (isinstance(constraints, (tuple, list)) and not constraints)
    if method is None:
        name = "slsqp" if has_constraints else "bfgs" if bounds is None else "l-bfgs-b"
    uses = {
        kind: name is None or name in names
        for kind, names in (("jac", _USES_JAC), ("hess", _USES_HESS), ("hessp", _USES_HESSP))
    }
    target: Any = function.fun
    if given_both:

        def target(x: ArrayLike) -> Any:
            value, gradient = fun(function.unravel(x), *args)
            return float(value), function.ravel(gradient)

    elif callable(jac):
        jac = flat_derivative(function, jac, args)
    elif jac is None:
        jac = function.jac if uses["jac"] else None
    elif jac is False:
        jac = None
    if callable(hess) and not hasattr(hess, "initialize"):
        hess = flat_derivative(function, hess, args)
    if callable(hessp):
        given_hessp = hessp

        def hessp(x: ArrayLike, p: object) -> Array:
            result = given_hessp(function.unravel(x), function.unravel(p), *args)
            return function.ravel(result)

    is_exact = jac is not None and not isinstance(jac, str)
    if hess is None and hessp is None and uses["hess"] and is_exact:
        assert function.x0 is not None
        takes_matrix = function.x0.size <= MAX_HESSIAN or not uses["hessp"]
        if sparse and name in (*_TAKES_SPARSE, None):
            hess = function.hess
        elif takes_matrix and not (sparse and uses["hessp"]):
            hess = _dense_of(function)
        else:
            hessp = function.hessp
    with function.reported():
        result = scipy.optimize.minimize(
            target,
            function.x0,
            method=method,
            jac=jac,
            hess=hess,
            hessp=hessp,
            bounds=flat_bounds(who, x0, bounds),
            constraints=flat_constraints(
                who, x0, constraints, with_hess=name in ("trust-constr", None),
                sparse=sparse and name == "trust-constr", jit=jit,
            ),
            tol=tol,
            callback=flat_callback(function, callback),
            options=options,
        )  # fmt: skip
    return finished(who, function, result)


def _dense_of(function: ScipyFunction) -> Callable[[Any], Any]:
    def dense(x: ArrayLike) -> Any:
        matrix = function.hess(x)
        return matrix.toarray() if hasattr(matrix, "toarray") else matrix

    return dense


@boundary
def minimize_scalar(
    fun: Callable[..., Any],
    bracket: Any = None,
    bounds: ArrayLike | None = None,
    args: tuple[Any, ...] = (),
    method: Any = None,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
    *,
    jit: bool = True,
) -> Any:
    """Minimise a function of one number: ``scipy.optimize.minimize_scalar``, compiled.

    SciPy's methods for one unknown use no derivatives. Arguments are SciPy's; ``jit=False`` if the
    function must see values.

    Returns:
      SciPy's ``OptimizeResult``; one that has not converged has ``success=False``, and a warning is
      given.

    Raises:
      UnsupportedOperationError: there are traced values.

    Example:
      >>> result = minimize_scalar(lambda x: (x - 2.0) ** 2 + 1.0)
      >>> round(float(result.x), 6)
      2.0
    """
    import scipy.optimize

    who = "minimize_scalar"
    args = further_arguments(args)
    refuse_traced(who, fun, args, bracket, bounds, tol, options)
    function = ScipyFunction(_of_number(who, fun), None, args, jit=jit, who=who)
    with function.reported():
        result = scipy.optimize.minimize_scalar(
            function.fun, bracket=bracket, bounds=bounds, method=method, tol=tol, options=options
        )
    if not result.success:
        warn_of(who, str(result.message))
    return result


def _of_number(who: str, fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a vector of one number."""
    fun = traced_form(who, fun)

    def of_vector(x: Array, *args: Array) -> Array:
        return fun(x[0], *args)

    return part_of(fun, of_vector)


@boundary
def root(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    method: str = "hybr",
    jac: object = None,
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    *,
    jit: bool = True,
) -> Any:
    """Find a root of a function: ``scipy.optimize.root`` with the exact Jacobian.

    Args:
      fun: function ``(x, *args)`` of a pytree that returns as many numbers as ``x`` has.
      x0: start, a pytree of real floating-point arrays; a list or tuple of numbers is a vector.
      args: further arguments of ``fun`` and of ``jac``, or the only one.
      method: as in SciPy; ``"hybr"`` and ``"lm"`` use the Jacobian.
      jac: by default exact. A function ``(x, *args)``, ``True`` if ``fun`` returns both, or
        ``False`` for differences.
      tol: as in SciPy.
      callback: as in SciPy, given pytrees.
      options: as in SciPy.
      jit: whether functions are compiled; ``False`` if they must see values.

    Returns:
      SciPy's ``OptimizeResult`` with ``x`` as a pytree like ``x0``. A result that has not converged
      has ``success=False``, and a warning is given.

    Raises:
      TypeError: ``x0`` is complex, or a leaf of a pytree is of integers.
      UnsupportedOperationError: there are traced values: see ``root_newton`` and
        ``ft.implicit_diff``.

    Example:
      >>> result = root(lambda x: np.cos(x) - x, np.array([1.0, 0.5]))
      >>> np.round(result.x, 6)
      array([0.739085, 0.739085])
    """
    import scipy.optimize

    who = "root"
    args = further_arguments(args)
    refuse_traced(who, fun, args, jac, tol, options)
    given_both = jac is True
    own_fun = (lambda x, *rest: fun(x, *rest)[0]) if given_both else fun
    function = ScipyFunction(own_fun, x0, args, jit=jit, who=who)
    uses_jac = not isinstance(method, str) or method.lower() in ("hybr", "lm")

    def target(x: ArrayLike) -> Any:
        if given_both:
            value, matrix = fun(function.unravel(x), *args)
            return np.atleast_1d(value), matrix
        return np.atleast_1d(function.fun(x))

    if callable(jac):
        jac = flat_derivative(function, jac, args)
    elif jac is None and uses_jac:

        def jac(x: ArrayLike) -> Array:
            return np.atleast_2d(function.jac(x))

    with function.reported():
        result = scipy.optimize.root(
            target, function.x0, method=method, jac=jac, tol=tol,
            callback=flat_callback(function, callback), options=options,
        )  # fmt: skip
    return finished(who, function, result)


def _with_args(fun: Callable[..., Any], args: tuple[Any, ...], x: ArrayLike) -> Array:
    return fun(x, *args)


@boundary
def root_scalar(
    f: Callable[..., Any],
    args: tuple[Any, ...] = (),
    method: str | None = None,
    bracket: ArrayLike | None = None,
    fprime: object = None,
    fprime2: Any = None,
    x0: ArrayLike | None = None,
    x1: ArrayLike | None = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict[str, Any] | None = None,
    *,
    jit: bool = True,
) -> Any:
    """Find a root of a function of one number: ``scipy.optimize.root_scalar``.

    Exact first and second derivatives are given to ``"newton"`` and ``"halley"``; a start alone
    means ``"newton"``. Arguments are SciPy's; ``jit=False`` if the function must see values.

    Returns:
      SciPy's ``RootResults``; a warning is given if it has not converged.

    Raises:
      UnsupportedOperationError: there are traced values: see ``newton``, ``brentq``, ``bisect``.

    Example:
      >>> result = root_scalar(lambda x: x**3 - 2.0, x0=1.0)
      >>> round(float(result.root), 6), result.method
      (1.259921, 'newton')
    """
    import scipy.optimize

    who = "root_scalar"
    args = further_arguments(args)
    refuse_traced(who, f, args, x0, x1, bracket, fprime, fprime2, xtol, rtol, options)
    function = ScipyFunction(_of_number(who, f), None, args, jit=jit, who=who)

    def derivative(order: int) -> Callable[[Any], float]:
        def number(x: ArrayLike) -> Any:
            return f(x, *args)

        derived = number
        for _ in range(order):
            derived = grad(derived)
        run = jitted(derived) if jit else derived
        return lambda x: float(run(float(x)))

    target: Any = function.fun
    if fprime is True:  # the function returns derivatives too
        target = functools.partial(_with_args, f, args)
    if callable(fprime):
        fprime = functools.partial(_with_args, fprime, args)
    if callable(fprime2):
        fprime2 = functools.partial(_with_args, fprime2, args)
    if method is None and bracket is None and x0 is not None and x1 is None and fprime is None:
        method = "newton" if fprime2 is None else "halley"
    if fprime is None and method in ("newton", "halley"):
        fprime = derivative(1)
    if fprime2 is None and method == "halley":
        fprime2 = derivative(2)
    with function.reported():
        result = scipy.optimize.root_scalar(
            target, method=method, bracket=bracket, x0=x0, x1=x1, xtol=xtol, rtol=rtol,
            maxiter=maxiter, options=options, fprime=fprime, fprime2=fprime2,
        )  # fmt: skip
    if not result.converged:
        warn_of(who, f"{result.flag}.")
    return result
