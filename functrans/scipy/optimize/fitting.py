"""``least_squares`` and ``curve_fit``: SciPy's, with exact Jacobians.

Layer: ``scipy``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.arguments import name_of, part_of
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.progress import Progress
from functrans.core.values import Array
from functrans.scipy.optimize.arguments import (
    finished,
    flat_bounds,
    flat_callback,
    flat_derivative,
    matrix_of,
)
from functrans.scipy.optimize.objective import ScipyFunction, refuse_traced


@boundary
def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: object = None,
    bounds: ArrayLike = (-np.inf, np.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: str = "linear",
    f_scale: float = 1.0,
    diff_step: Any = None,
    tr_solver: str | None = None,
    tr_options: dict[str, Any] | None = None,
    jac_sparsity: Any = None,
    max_nfev: int | None = None,
    verbose: int = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
    *,
    sparse: bool = False,
    jit: bool = True,
) -> Any:
    """Minimise a sum of squares: ``scipy.optimize.least_squares`` with the exact Jacobian.

    Args:
      fun: function ``(x, *args, **kwargs)`` of a pytree that returns the residuals, arrays of any
        structure.
      x0: start, a pytree of real floating-point arrays; a list or tuple of numbers is a vector.
      jac: by default exact. A function ``(x, *args, **kwargs)``, or one of SciPy's names for
        differences.
      bounds: as in SciPy, or a pair of pytrees like ``x0``.
      method: as in SciPy.
      ftol: as in SciPy.
      xtol: as in SciPy.
      gtol: as in SciPy.
      x_scale: as in SciPy.
      loss: as in SciPy.
      f_scale: as in SciPy.
      diff_step: as in SciPy, for differences.
      tr_solver: as in SciPy.
      tr_options: as in SciPy.
      jac_sparsity: as in SciPy, for differences.
      max_nfev: as in SciPy.
      verbose: as in SciPy.
      args: further arguments.
      kwargs: further arguments by name.
      callback: as in SciPy, given pytrees.
      sparse: whether the Jacobian is a sparse array, for ``tr_solver="lsmr"``.
      jit: whether functions are compiled; ``False`` if they must see values.

    Returns:
      SciPy's ``OptimizeResult`` with ``x`` as a pytree like ``x0``. A result that has not converged
      has ``success=False``, and a warning is given.

    Raises:
      TypeError: ``x0`` is complex, or a leaf of a pytree is of integers; residuals are complex.
      UnsupportedOperationError: there are traced values.

    Example:
      >>> t = np.arange(6.0)
      >>> y = 3.0 * np.exp(-0.5 * t)
      >>> result = least_squares(
      ...     lambda p: p["a"] * np.exp(-p["k"] * t) - y, {"a": 1.0, "k": 1.0}
      ... )
      >>> round(float(result.x["a"]), 6), round(float(result.x["k"]), 6)
      (3.0, 0.5)
    """
    import scipy.optimize

    who = "least_squares"
    own = dict(kwargs or {})
    refuse_traced(who, fun, args, own, jac, bounds, x_scale, f_scale, ftol, xtol, gtol)
    fun = traced_form(who, fun)
    bound = functools.partial(fun, **own) if own else fun
    function = ScipyFunction(bound, x0, args, jit=jit, sparse=sparse, who=who)
    if callable(jac):
        given = functools.partial(jac, **own) if own else jac
        jac = flat_derivative(function, given, args)
    elif jac is None:
        jac = matrix_of(function)

    options: dict[str, Any] = {} if x_scale is None else {"x_scale": x_scale}
    if callback is not None:
        options["callback"] = flat_callback(function, callback)
    with function.reported():
        result = scipy.optimize.least_squares(
            lambda x: np.atleast_1d(function.fun(x)), function.x0, jac=jac,
            bounds=flat_bounds(who, x0, bounds), method=method, ftol=ftol, xtol=xtol, gtol=gtol,
            loss=loss, f_scale=f_scale, diff_step=diff_step, tr_solver=tr_solver,
            tr_options=tr_options or {}, jac_sparsity=jac_sparsity, max_nfev=max_nfev,
            verbose=verbose, **options,
        )  # fmt: skip
    return finished(who, function, result)


@boundary
def curve_fit(
    f: Callable[..., Any],
    xdata: ArrayLike,
    ydata: ArrayLike,
    p0: ArrayLike | None = None,
    sigma: ArrayLike | None = None,
    absolute_sigma: bool = False,
    check_finite: bool | None = None,
    bounds: ArrayLike = (-np.inf, np.inf),
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: str | None = None,
    jit: bool = True,
    **kwargs: object,
) -> tuple[Any, ...]:
    """Fit a function to data: ``scipy.optimize.curve_fit`` with the exact Jacobian.

    Args:
      f: function ``(xdata, *parameters)`` of numbers, which returns something like ``ydata``.
      xdata: passed to ``f``.
      ydata: ``f64[m]``.
      p0: start; by default as in SciPy, which counts the arguments of ``f``.
      sigma: as in SciPy.
      absolute_sigma: as in SciPy.
      check_finite: as in SciPy.
      bounds: as in SciPy.
      method: as in SciPy.
      jac: by default exact. A function ``(xdata, *parameters)``, or one of SciPy's names for
        differences.
      full_output: as in SciPy.
      nan_policy: as in SciPy.
      jit: whether functions are compiled; ``False`` if they must see values.
      **kwargs: as in SciPy.

    Returns:
      ``(popt, pcov)``, or with ``full_output`` more, as SciPy.

    Raises:
      RuntimeError: (by SciPy) the fit has not converged.
      UnsupportedOperationError: there are traced values.

    Example:
      >>> t = np.arange(6.0)
      >>> popt, pcov = curve_fit(lambda t, a, k: a * np.exp(-k * t), t, 3.0 * np.exp(-0.5 * t))
      >>> np.round(popt, 6)
      array([3. , 0.5])
    """
    import scipy.optimize

    who = "curve_fit"
    f = traced_form(who, f)
    refuse_traced(who, f, xdata, ydata, p0, sigma, bounds, jac, kwargs)
    if p0 is not None:
        p0 = np.asarray(p0)
        p0 = p0.astype(np.float64) if p0.dtype.kind in "iub" else p0
        if p0.dtype.kind == "c":
            raise TypeError(f"{who}: p0 is complex; parameters are real numbers")
    n = np.size(ydata)
    # SciPy drops data that are NaN or incomplete, and so calls f with other data than these.
    is_short = nan_policy == "omit"
    functions: dict[int, tuple[Any, ScipyFunction]] = {}
    progress = Progress(f"{who}: {name_of(f)}", unit=" evaluations")

    def of(data: ArrayLike) -> ScipyFunction:
        known = functions.get(id(data))
        if known is None:
            functions.clear()
            of_parameters = part_of(f, lambda p: f(data, *p))
            function = ScipyFunction(of_parameters, jit=jit, who=who)
            known = functions[id(data)] = (data, function)
        return known[1]

    @functools.wraps(f)  # whose arguments SciPy counts
    def fun(data: ArrayLike, *parameters: Array) -> Any:
        progress.advance()
        return of(data).fun(parameters)

    if jac is None:

        def jac(data: ArrayLike, *parameters: Array) -> Any:
            matrix = of(data).jac(parameters)
            if matrix.ndim == 2:
                return matrix
            # one value for all data
            return np.broadcast_to(matrix, (np.size(data) if is_short else n, matrix.size)).copy()

    options = dict(kwargs)
    if check_finite is not None:
        options["check_finite"] = check_finite
    with progress:
        return scipy.optimize.curve_fit(
            fun, xdata, ydata, p0=p0, sigma=sigma, absolute_sigma=absolute_sigma, bounds=bounds,
            method=method, jac=jac, full_output=full_output, nan_policy=nan_policy, **options,
        )  # fmt: skip
