"""Events of ``solve_ivp``: when a function of time and state vanishes along a solution.

Here: what users say about events, the search among the steps that were taken, and the times and
states of events with their derivatives. Not here: the steps (``scipy.integrate.odes_loop``), what
users call (``scipy.integrate.odes``).

An event ``g(t, y(t)) = 0`` is looked for where ``g`` changes its sign from one end of a step to the
other. Its time is a root along the polynomial of that step. How many there are depends on values,
so the search is on plain numbers, with SciPy's ``brentq``; the derivatives of a time are then
those of the implicit function: ``dt = -(dg/dy dy) / (dg/dt + dg/dy y')``.

Layer: ``scipy``. References: Hairer, Norsett & Wanner, Solving Ordinary Differential Equations I,
2nd ed. (1993), II.6 (event location); Krantz & Parks, The Implicit Function Theorem (2002).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import functrans.numpy as fnp
from functrans import pytrees as tree
from functrans.core.arguments import name_of
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of, dtype_of, shape_of
from functrans.core.ownership import own_array
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.jitted.forks import forked
from functrans.numpy.common import is_known, value_of
from functrans.records import dataclass
from functrans.scipy.integrate.odes_results import OdeSolution
from functrans.solvers.implicit import implicit_diff


@dataclass(frozen=True, slots=True)
class Event:
    """What a user says about an event.

    Attributes:
      function: ``(t, y, *args)`` that returns a number.
      limit: how often it happens until it ends the integration; infinite for never.
      direction: 1 if only upward crossings count, -1 for downward ones, 0 for both.
    """

    function: Callable[..., Any]
    limit: float
    direction: float

    @property
    def name(self) -> str:
        """What it is, for messages."""
        return f"solve_ivp: event {name_of(self.function)}"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence of an event.

    Attributes:
      event: number of the event.
      step: number of the step.
      time: when, a plain number.
    """

    event: int
    step: int
    time: Any


def prepare(events: object) -> tuple[Event, ...]:
    """Events with their attributes ``terminal`` and ``direction``.

    Args:
      events: one function or several.

    Raises:
      TypeError: one cannot be called.
      ValueError: ``terminal`` is not a boolean or a positive integer.
    """
    functions = tuple(events) if isinstance(events, Iterable) else (events,)
    found = []
    for function in functions:
        function = forked(
            traced_form("solve_ivp: events", function), "solve_ivp: events", is_pure=True
        )
        terminal = getattr(function, "terminal", None)
        is_number = terminal is None or isinstance(terminal, (bool, int, float, np.generic))
        limit = float(terminal or np.inf) if is_number else -1.0
        if not (limit == np.inf or (limit >= 0 and limit == np.floor(limit))):
            raise ValueError(
                f"solve_ivp: terminal of event {name_of(function)} must be a boolean or a positive "
                f"integer, got {terminal!r}"
            )
        direction = float(np.sign(getattr(function, "direction", 0)))
        found.append(Event(function, limit, direction))
    return tuple(found)


def plain_values(values: object) -> Any:
    """A pytree of the plain arrays behind traced ones.

    Raises:
      UnsupportedOperationError: there are none, as in ``jit`` and ``vmap``.
    """
    return tree.map(lambda x: _known("solve_ivp", x) if isinstance(x, Tracer) else x, values)


def _known(who: str, x: ArrayLike) -> Array:
    """The plain value of an array."""
    if not is_known(x):
        raise UnsupportedOperationError(
            f"{who}: the number of events depends on values, and {aval_of(x)} has none yet, since "
            f"this is traced code (jit, vmap){here()}. Call solve_ivp with events outside of jit "
            "and vmap: grad, jvp, jacobian and hessian work on it there. Or look for one event "
            "along the solution: ask for dense_output=True and max_steps, and brentq of "
            "functrans.scipy.optimize finds its time, with derivatives: "
            "t = brentq(lambda t: event(t, result.sol(t)), t0, t1)"
        )
    return value_of(x)


def _value(event: Event, t: object, y: ArrayLike, args: Sequence[Any]) -> Any:
    """The value of an event in the precision of the time."""
    value = fnp.asarray(event.function(t, y, *args))
    if shape_of(value) not in ((), (1,)):
        raise ShapeError(f"{event.name} returned {aval_of(value)}{here()}; it must return a number")
    if dtype_of(value).kind == "c":
        raise TypeError(
            f"{event.name} returned {aval_of(value)}{here()}; a change of sign needs real numbers: "
            "return the real part or the absolute value less a threshold"
        )
    return fnp.reshape(value, ()).astype(dtype_of(t))


def locate(
    events: Sequence[Event],
    args: Sequence[Any],
    times: np.ndarray,
    states: np.ndarray,
    between: Callable[[int], OdeSolution],
) -> tuple[list[Occurrence], bool]:
    """All events up to the one that ends the integration.

    A zero at the end of a step is found in that step, and not in the next one again.

    Args:
      events: what to look for.
      args: further arguments of the events, plain.
      times: ends of the steps, ``f64[k + 1]``.
      states: states there, ``f64[k + 1, n]``.
      between: the solution within a step, by the step's number.

    Returns:
      Occurrences by steps, and whether the last one is the end.

    Raises:
      UnsupportedOperationError: an event refers to arrays without values.
      ShapeError, TypeError: an event does not return a number.
    """
    sign = 1.0 if times[-1] >= times[0] else -1.0

    def values_at(i: int) -> list[float]:
        t, y = times[i], states[i]
        return [float(_known(e.name, _value(e, t, y, args))) for e in events]

    found: list[Occurrence] = []
    counts = [0] * len(events)
    is_at_end = [False] * len(events)
    before = values_at(0) if events else []
    for k in range(len(times) - 1 if events else 0):
        after = values_at(k + 1)
        own = []
        for i, event in enumerate(events):
            g, g_new = before[i], after[i]
            is_again, is_at_end[i] = is_at_end[i], False
            if not is_again and _crosses(g, g_new, event.direction):
                is_at_end[i] = g != 0 and g_new == 0
                root = _search(event, args, between(k), times[k], times[k + 1], g, g_new)
                own.append(Occurrence(i, k, root))
                counts[i] += 1
        before = after
        if any(counts[each.event] >= events[each.event].limit for each in own):
            for each in sorted(own, key=lambda each: sign * float(each.time)):
                found.append(each)
                if counts[each.event] >= events[each.event].limit:
                    return found, True
        found += own
    return found, False


def _crosses(g: float, g_new: float, direction: float) -> bool:
    """Whether an event happens between two values."""
    up, down = g <= 0 <= g_new, g >= 0 >= g_new
    return (up and direction >= 0) or (down and direction <= 0)


def _search(
    event: Event, args: Sequence[Any], sol: OdeSolution, low: Any, high: Any, g: float, g_new: float
) -> Array:
    """The time of an event within a step: plain, in the precision of times.

    The values at both ends are those that have a change of sign; the polynomial may differ from the
    states there by rounding.
    """
    from scipy.optimize import brentq

    real = np.asarray(low).dtype
    ends = {float(high): g_new, float(low): g}

    def value(t: float) -> float:
        if t in ends:
            return ends[t]
        at = np.asarray(t, real)[()]
        return float(value_of(_value(event, at, sol(at), args)))

    tol = 4 * float(np.finfo(real).eps)
    return np.asarray(brentq(value, float(low), float(high), xtol=tol, rtol=tol, maxiter=500), real)


def with_derivatives(
    events: Sequence[Event],
    args: Sequence[Any],
    found: Sequence[Occurrence],
    between: Callable[[int], OdeSolution],
    n: int,
    times_dtype: object,
    states_dtype: object,
) -> tuple[list[Any], list[Any]]:
    """Times and states of events as functions of all that the solution depends on.

    Args:
      events: the events.
      args: their further arguments.
      found: occurrences, in the order of integration.
      between: the solution within a step, by the step's number.
      n: number of components.
      times_dtype: precision of times.
      states_dtype: precision of states.

    Returns:
      Per event, its times ``f64[m]`` and the states there ``f64[m, n]``.
    """
    times: list[list[Any]] = [[] for _ in events]
    states: list[list[Any]] = [[] for _ in events]
    for each in found:
        sol = between(each.step)
        time = _root(events[each.event], args, sol, each.time)
        times[each.event].append(time)
        states[each.event].append(sol(time))
    return (
        [fnp.stack(own) if own else np.zeros(0, times_dtype) for own in times],
        [fnp.stack(own) if own else np.zeros((0, n), states_dtype) for own in states],
    )


def _root(event: Event, args: Sequence[Any], sol: OdeSolution, time: object) -> Any:
    """A time that has been found, with the derivatives of the implicit function."""

    def condition(t: object) -> Any:
        return _value(event, t, sol(t), args)

    def divided(matvec: Callable[[Any], Any], b: ArrayLike) -> Any:
        return b / matvec(np.ones((), dtype_of(b)))

    call = implicit_diff(condition, solve=divided, symmetric=True, traceable=True, tol=None)
    return own_array(call(lambda t: t)(time))
