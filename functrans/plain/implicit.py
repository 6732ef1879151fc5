"""Solutions that SciPy found on plain values, with derivatives: Newton steps of the condition.

A solver of SciPy's is run on values, and gives ``x`` with ``F(x, theta) = 0``. A Newton step from
``x``, ``x - F'(x, theta)^-1 F(x, theta)``, has the value ``x`` (but for the tolerance of the
solver) and, traced in ``theta``, the derivative of the solution: that of the implicit function
theorem. Each further step doubles the number of orders that are right. ``theta`` is never named: it
is all that the functions of the caller refer to, wherever it stands.

Here: the steps, minima within bounds, values of traced things. Not here: the solvers
(``plain.optimize``).

Layer: ``plain``. Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 15.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans.core.boundary import warn
from functrans.core.dispatch import Tracer, aval_of, shape_of
from functrans.core.source import here
from functrans.core.state import open_traces
from functrans.core.values import Array, Operand
from functrans.errors import ConcretizationError, FunctransError
from functrans.higher.towers import TowerTrace
from functrans.jitted.guards import stage_path, unmarked
from functrans.passes.evaluate import evaluate
from functrans.passes.layouts import plain_value as value_behind
from functrans.plain.memory import as_read, given, holds_tracer, settled
from functrans.plain.sparse.dense import TracedDense, array_of
from functrans.plain.sparse.matrices import TracedSparse
from functrans.plain.sparse.parts import scipy_class
from functrans.transforms.jacobian import jacfwd
from functrans.transforms.reverse import grad

TOLERANCE = 1e-3
"""A warning is given if the condition is larger than a relative change by this much makes it."""

UNCERTAIN = 1e-7
"""Relative change of a solution which no value tells from it where a double root is."""

_STEADY = 0.5
"""Relative change of the Jacobian from which on Newton's method is not sure to converge."""

NEAR = 1e-4
"""Distance from a bound, relative to it, up to which solvers stop before a bound that is active."""

_ORDERS_OF_SERIES = 15


# values -----------------------------------------------------------------------------------------


def without_traces(value: Any) -> Any:
    """A value without traces: numbers in place of tracers, functions that give numbers.

    Raises:
      ConcretizationError: there is a tracer without a value.
    """
    value = settled(value)
    if isinstance(value, Tracer):
        found = value_behind(value)
        if found is None or np.shape(found) != value.shape:
            raise ConcretizationError(
                f"a solver of SciPy was given {value._describe()}{here()}, whose value is not known"
            )
        return np.array(found)[()]
    if isinstance(value, TracedDense):
        return without_traces(value.array)
    if isinstance(value, TracedSparse):
        entries = np.asarray(without_traces(value.entries))
        container = scipy_class(value.kind, "coo")
        n = value._stored_count()
        sites = tuple([c[:n] for c in value.sites])
        return container((entries[:n], sites), shape=value.shape).asformat(value.format)
    if isinstance(value, TracedBounds):
        return value.plain()
    if type(value) in (tuple, list):
        return type(value)([without_traces(item) for item in value])
    if type(value) is dict:
        return {key: without_traces(item) for key, item in value.items()}
    is_of_scipy = type(value).__module__.startswith("scipy.")  # an operator, a strategy
    if callable(value) and not isinstance(value, type) and not is_of_scipy:
        return plain_function(value)
    return value


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function on plain arrays that gives numbers, whatever traced values it refers to."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return without_traces(function(*map(_own, args), **kwargs))

    return call


def _own(x: Array) -> Any:
    """An array that the function may write to."""
    return given(x.copy()) if type(x) is np.ndarray else x


def vector_of(value: Array) -> Array:
    """Numbers, which may be in lists, as a floating vector."""
    array = array_of(value)
    array = array.reshape(-1)
    return array if array.dtype.kind in "fc" else array.astype(np.float64)


# steps ------------------------------------------------------------------------------------------


def _count() -> int:
    """Number of steps after which all derivatives that may be asked for are right."""
    stack = open_traces.get()
    orders = max(len(stack), 3)
    if any(isinstance(trace, TowerTrace) for trace in stack):
        orders = max(orders, _ORDERS_OF_SERIES)
    return math.ceil(math.log2(orders + 1))


def solution(
    who: str,
    condition: Callable[[Any], Any],
    x: np.ndarray,
    *,
    bounds: Any = (),
    active: np.ndarray | None = None,
    is_elementwise: bool = False,
) -> Array:
    """The solution of a condition, with derivatives in all traced values that it refers to.

    Args:
      who: for messages.
      condition: function of a vector that gives a vector of the same length.
      x: the solution, as a plain vector.
      bounds: vector of the values of components that stay at a bound.
      active: which do.
      is_elementwise: whether each component of the condition refers to its own of the vector only.

    Returns:
      The vector, of the same value; ``x`` itself if nothing is traced.

    Raises:
      LinAlgError: the condition does not determine the solution.
    """
    condition = program(who, condition, x)
    active = np.zeros(len(x), bool) if active is None else active
    free = np.flatnonzero(~active)
    fixed = bounds[np.flatnonzero(active)] if active.any() else np.zeros(0)
    order = np.argsort(np.concatenate([free, np.flatnonzero(active)]))

    def whole(part: Array) -> Any:
        return part if not len(fixed) else fnp.concatenate([part, fixed])[order]

    def residual(part: Array) -> Any:
        return condition(whole(part))[free]

    part: Any = x[free]
    if len(free):
        first = residual(part)
        if not isinstance(first, Tracer) and not isinstance(fixed, Tracer):
            return x
        for step in range(_count()):
            value = first if step == 0 else residual(part)
            slope = _slope(residual, part, is_elementwise)
            if step == 0:
                _check(
                    who,
                    residual,
                    part,
                    without_traces(value),
                    without_traces(slope),
                    is_elementwise,
                )
            change = value / slope if is_elementwise else np.linalg.solve(slope, value)
            part = part - change
    found = whole(part)
    if not isinstance(found, Tracer):
        return x
    return x + (found - without_traces(found))


def _slope(residual: Callable[[Any], Any], x: Array, is_elementwise: bool) -> Array:
    if is_elementwise:
        return grad(lambda v: fnp.sum(residual(v)))(x)
    return jacfwd(residual)(x)


def _check(
    who: str,
    residual: Callable[..., Any],
    x: np.ndarray,
    value: Array,
    slope: Array,
    is_elementwise: bool,
) -> None:
    """Refuse a singular condition; warn of one that is not satisfied, or singular close by."""
    slope = np.asarray(slope)
    is_finite = bool(np.isfinite(slope).all())
    if is_elementwise:
        singular = np.sort(np.abs(slope))[::-1]
    elif is_finite:
        left, singular, right = np.linalg.svd(slope)
    if not is_finite or singular[-1] <= np.finfo(np.float64).eps * singular[0]:
        raise np.linalg.LinAlgError(
            f"{who}{here()}: the condition of the solution (gradient 0, or residual 0) has a "
            f"Jacobian that is {'singular' if is_finite else 'not finite'} there, so that the "
            "solution is no differentiable function of the traced values; look for unknowns that "
            "the condition does not determine"
        )
    signs = np.where(np.arange(len(x)) % 2, -1.0, 1.0)
    step = (1 + np.abs(x)) * signs
    moved = float(np.linalg.norm(slope * step if is_elementwise else slope @ step))
    scale = max(moved, float(np.linalg.norm(slope)))
    if not np.linalg.norm(value) <= TOLERANCE * scale:
        warn(
            f"{who}{here()}: the solver has not converged: the condition of the solution (gradient "
            f"0, or residual 0) is {np.linalg.norm(value):.2g} in norm at its result. Derivatives "
            "there are not those of a solution; give the solver more iterations or a smaller "
            "tolerance.",
            RuntimeWarning,
        )
        return
    # Twice a Newton step leads across the solution, the last of the singular vectors to where a
    # solution of higher multiplicity may lie, which no value tells from this one.
    if is_elementwise:
        step, weak = value / slope, np.abs(x)
    else:
        step = right.T @ ((left.T @ value) / singular)
        weak = right[-1] * np.linalg.norm(x) * (-1 if right[-1] @ step < 0 else 1)
    with np.errstate(all="ignore"):  # outside of the domain of the condition
        near = without_traces(_slope(residual, x - 2 * step - UNCERTAIN * weak, is_elementwise))
    if is_elementwise:
        change = np.abs((near - slope) / slope)
    else:
        change = np.linalg.norm((left.T @ (near - slope)) / singular[:, None])
    if not np.all(change <= _STEADY):
        warn(
            f"{who}{here()}: the Jacobian of the condition of the solution (gradient 0, or "
            f"residual 0) changes by {100 * np.max(change):.0f} % within the accuracy of the "
            "solution, as at a root of higher multiplicity, at a minimum that is flatter than a "
            "parabola, at a kink, or where the solver has not converged. Derivatives may be wrong; "
            "give the solver a smaller tolerance, or a condition whose Jacobian is regular.",
            RuntimeWarning,
        )


# programs ---------------------------------------------------------------------------------------


def program(who: str, function: Callable[[Any], Any], x: np.ndarray) -> Callable[[Any], Any]:
    """A function of a vector as the program that it is at a point: its code runs once.

    What it computes of values from outside is part of the program, so that it may be written to
    where the vector is traced within.

    Args:
      who: for messages.
      function: takes a vector, gives an array.
      x: the point, which decides what Python decides by values.

    Returns:
      A function of vectors; ``function`` itself where it asks for what has no program.
    """
    try:
        staged = stage_path(
            lambda v: [array_of(function(v))], [aval_of(x)], [x], who, name="", arg_names=[""],
            is_branch=True,
        )  # fmt: skip
    except FunctransError:
        return function
    jaxpr = unmarked(staged.jaxpr)
    return lambda v: evaluate(jaxpr, [v])[0]


# minima -----------------------------------------------------------------------------------------


def minimum(
    who: str, objective: Callable[[Any], Any], x: np.ndarray, lower: Any, upper: Any
) -> Array:
    """The minimum of a function within bounds, with derivatives.

    Components at a bound against which the function falls move with it; in the others the gradient
    vanishes.

    Args:
      who: for messages.
      objective: function of a vector that gives a number.
      x: the minimum, as a plain vector.
      lower: bounds, vectors that may be traced, or ``None``.
      upper: likewise.

    Returns:
      The vector, of the same value; ``x`` itself if nothing is traced.
    """
    condition = grad(program(who, lambda v: array_of(objective(v)).reshape(()), x))
    if lower is None and upper is None:
        return solution(who, condition, x)
    low = np.full(len(x), -np.inf) if lower is None else lower
    high = np.full(len(x), np.inf) if upper is None else upper
    slope = np.asarray(without_traces(condition(x)))
    curvature = np.abs(np.diag(np.asarray(without_traces(jacfwd(condition)(x)))))
    at_low = _is_active(x, np.asarray(without_traces(low)), slope, curvature)
    at_high = _is_active(-x, -np.asarray(without_traces(high)), -slope, curvature) & ~at_low
    bounds = low
    if at_high.any():
        bounds = np.where(at_high, high, low) if not holds_tracer((low, high)) else fnp.where(
            at_high, high, low
        )  # fmt: skip
    return solution(who, condition, x, bounds=bounds, active=at_low | at_high)


def _is_active(x: Operand, low: Array, slope: Array, curvature: Array) -> Array:
    """Whether a component is at a lower bound: a Newton step of it would end there or below."""
    distance = np.where(np.isfinite(low), x - low, np.inf)
    is_near = distance <= NEAR * (1 + np.abs(np.where(np.isfinite(low), low, 0.0)))
    return is_near & (slope > 0) & (slope >= curvature * np.where(is_near, distance, 0.0))


class TracedBounds:
    """Bounds that may be traced (abstract)."""

    def plain(self) -> Any:
        """SciPy's bounds, with values."""
        raise NotImplementedError


@functools.lru_cache(maxsize=1)
def bounds_class() -> Any:
    """What ``scipy.optimize.Bounds`` stands for: the same with bounds that may be traced."""
    import scipy.optimize

    of_scipy: Any = scipy.optimize.Bounds

    class Bounds(of_scipy, TracedBounds):  # type: ignore[misc]  # SciPy has no types
        __doc__ = of_scipy.__doc__

        def __init__(self, lb: Any = -np.inf, ub: Any = np.inf, keep_feasible: Any = False) -> None:
            lb, ub, keep_feasible = as_read(lb), as_read(ub), settled(keep_feasible)
            if not holds_tracer((lb, ub)):
                super().__init__(lb, ub, keep_feasible)
                return
            keep = np.atleast_1d(keep_feasible).astype(bool)
            self.lb, self.ub, self.keep_feasible = fnp.broadcast_arrays(
                array_of(lb), array_of(ub), keep
            )

        def plain(self) -> Any:
            """SciPy's bounds, with values."""
            return of_scipy(without_traces(self.lb), without_traces(self.ub), self.keep_feasible)

        def residual(self, x: Array) -> tuple[Any, Any]:
            """Distances from lower and upper bounds."""
            return settled(x) - self.lb, self.ub - settled(x)

    return Bounds


def bounds_of(bounds: Any, n: int) -> tuple[Any, Any]:
    """Bounds in one of SciPy's forms as two vectors, or ``None``."""
    if bounds is None:
        return None, None
    if hasattr(bounds, "lb"):
        lower, upper = (_spread(array_of(b).astype(np.float64), n) for b in (bounds.lb, bounds.ub))
        return lower, upper
    bounds = settled(bounds)
    pairs = [tuple(pair) for pair in bounds]
    return _one_side([p[0] for p in pairs], -np.inf), _one_side([p[1] for p in pairs], np.inf)


def _one_side(values: list[Any], default: float) -> Array:
    return array_of([default if b is None else b for b in values]).astype(np.float64)


def pair_of_bounds(bounds: object, n: int) -> tuple[Any, Any]:
    """The bounds of least squares, a pair of numbers or vectors."""
    if hasattr(bounds, "lb"):
        return bounds_of(bounds, n)
    lower, upper = (_spread(array_of(b).astype(np.float64), n) for b in settled(bounds))
    return lower, upper


def _spread(value: Any, n: int) -> Any:
    if shape_of(value) == (n,):
        return value
    return fnp.broadcast_to(value, (n,)) if isinstance(value, Tracer) else np.broadcast_to(value, n)
