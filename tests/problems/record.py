"""The record of a test problem of optimisation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A function to minimise.

    Attributes:
      name: the field's name of it.
      start: the standard starting point.
      minima: values at known minima, the least one first.
      objective: the function; ``residuals`` squared and added up where there are residuals.
      residuals: the vector whose sum of squares it is, if it is one.
      minimizer: a point where the first of ``minima`` is taken, if it is known in closed form.
      is_flat: the Hessian is singular at the minimum, or nearly so: methods are slow there, and
        stop early.
    """

    name: str
    start: np.ndarray
    minima: tuple[float, ...]
    objective: Callable[[Any], Any]
    residuals: Callable[[Any], Any] | None = None
    minimizer: np.ndarray | None = None
    is_flat: bool = False

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return self.start.size

    def gap(self, value: float) -> float:
        """How far a value is above the nearest known minimum, relative to it where it is not 0."""
        return min(abs(value - known) / max(1.0, abs(known)) for known in self.minima)


def squares(residuals: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The sum of squares of residuals."""

    def objective(x: Any) -> Any:
        return np.sum(residuals(x) ** 2)

    return objective
