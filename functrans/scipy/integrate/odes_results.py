"""What ``solve_ivp`` returns.

Here: ``OdeResult`` with SciPy's names, ``OdeSolution`` between the steps. Not here: how they come
about (``scipy.integrate.odes``).

Layer: ``scipy``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import functrans.numpy as fnp
from functrans.control.custom_rules import stop_gradient
from functrans.core.dispatch import Tracer, aval_of, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.scipy.integrate.odes_methods import Method, interpolate
from functrans.scipy.reprs import aligned, summary

MESSAGES = {
    1: "A termination event occurred.",
    0: "The solver successfully reached the end of the integration interval.",
    -1: "Required step size is less than spacing between numbers.",
    -2: "The maximum number of steps was reached.",
}


class OdeSolution(NamedTuple):
    """A solution between its steps; call it with times.

    Attributes:
      t_old: times at which the steps begin, ``f64[k]``; the last step may be repeated.
      sizes: their sizes, with sign, ``f64[k]``.
      y_old: states at which they begin, ``f64[k, n]``.
      dense: vectors of their polynomials, ``f64[k, p, n]``.
      is_nested: whether the polynomials have factors ``x`` and ``1 - x`` in turn.
    """

    t_old: Any
    sizes: Any
    y_old: Any
    dense: Any
    is_nested: Any

    def __repr__(self) -> str:
        """Shapes in place of numbers."""
        return summary("OdeSolution", self._asdict())

    def __call__(self, t: object) -> Array:
        """States at times.

        Args:
          t: scalar, or ``f64[m]``; outside of the interval, the polynomial of the nearest step.

        Returns:
          ``f64[n]`` or ``f64[n, m]``.

        Raises:
          ShapeError: ``t`` has more than one axis.
        """
        times = fnp.asarray(t)
        ndim = len(shape_of(times))
        if ndim > 1:
            raise ShapeError(
                f"OdeSolution: t must be a scalar or 1-D, got {aval_of(times)}{here()}; ravel it"
            )
        flat = fnp.reshape(times, (-1,)).astype(dtype_of(self.t_old))
        sign = stop_gradient(fnp.where(self.sizes[0] >= 0, 1.0, -1.0))
        begins, at = sign * stop_gradient(self.t_old), sign * stop_gradient(flat)
        index = fnp.sum((at[:, None] >= begins[None, 1:]).astype(np.int64), axis=1)
        x = ((flat - self.t_old[index]) / self.sizes[index])[:, None]
        dense = fnp.moveaxis(self.dense[index], 1, 0)
        values = interpolate(self.y_old[index], dense, self.is_nested, x)
        return values[0] if ndim == 0 else values.T


class OdeResult(NamedTuple):
    """What ``solve_ivp`` returns, with SciPy's names; ``result["y"]`` is ``result.y``.

    Attributes:
      t: times, ``f64[m]``.
      y: states, ``f64[n, m]``.
      sol: the solution between the steps, or ``None``.
      nfev: evaluations of the right-hand side, without those of derivatives.
      njev: evaluations of its Jacobian.
      nlu: factorizations.
      status: 0 at success, 1 if an event ended the integration, -1 if the step size became too
        small, -2 after too many steps.
      success: whether the end of the interval or a terminal event was reached.
      n_steps: accepted steps; with events also those that were taken beyond a terminal one.
      n_rejected: rejected ones.
      t_events: per event, its times ``f64[k]``; ``None`` without events.
      y_events: per event, the states at its times, ``f64[k, n]``.
    """

    t: Any
    y: Any
    sol: OdeSolution | Any
    nfev: Any
    njev: Any
    nlu: Any
    status: Any
    success: Any
    n_steps: Any
    n_rejected: Any
    t_events: list[Array] | Any = None
    y_events: list[Array] | Any = None

    @property
    def message(self) -> str:
        """What the status means."""
        if isinstance(self.status, Tracer):
            return "The status is known when the traced program runs."
        return MESSAGES[int(self.status)]

    def __repr__(self) -> str:
        """One line per field, as SciPy's results have."""
        return aligned([("message", self.message), *zip(self._fields, self, strict=True)])

    def __getitem__(self, name: Any) -> Any:
        """An attribute by name, or a field by number."""
        if isinstance(name, str):
            return getattr(self, name)
        return tuple(self)[name]


def make_result(
    times: object,
    values: Any,
    sol: OdeSolution | None,
    method: Method,
    settings: dict[str, Any],
    attempts: Any,
    accepted: Any,
    code: Any,
    *events: Any,
) -> OdeResult:
    """What users get, of states ``[m, n]``."""
    return OdeResult(
        times,
        values.T,
        sol,
        _number_of(attempts * method.evaluations + (2 if settings["first_step"] is None else 1)),
        _number_of(attempts * method.jacobians),
        _number_of(attempts * method.jacobians),
        code,
        code >= 0,
        _number_of(accepted),
        _number_of(attempts - accepted),
        *events,
    )


def _number_of(x: Any) -> Tracer | int:
    """An int where it is known."""
    return x if isinstance(x, Tracer) else int(x)
