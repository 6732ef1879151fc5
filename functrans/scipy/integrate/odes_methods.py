"""One step of each method for ordinary differential equations.

Here: ``Method``, its explicit Runge-Kutta and Rosenbrock forms, and ``interpolate`` between steps.
Not here: which steps are taken (``scipy.integrate.odes_loop``), what users call
(``scipy.integrate.odes``).

A step takes the state as one vector and gives the next state, its slope, an estimate of the error
in units of the tolerance, and the vectors of a polynomial between the two states. The tables of the
explicit methods are SciPy's own, read from its public classes at first use.

Layer: ``scipy``. Reference: Hairer, Norsett & Wanner, Solving Ordinary Differential Equations I,
2nd ed. (1993), II.4-II.6; Hairer & Wanner, Solving Ordinary Differential Equations II, 2nd ed.
(1996), IV.7 and VI.4 (Rodas).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import functrans.numpy as fnp
from functrans.control.branches import cond
from functrans.control.custom_rules import stop_gradient
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.primitives.linalg.solve import linear_solve, lu_factor
from functrans.records import dataclass
from functrans.transforms.forward import jvp
from functrans.transforms.jacobian import jacfwd

Slope = Callable[[Any, Any], Any]
"""``(t, y[n]) -> dy/dt[n]``."""


@dataclass(frozen=True, slots=True)
class Tolerances:
    """What counts as an error of one, per component: ``atol + rtol * |y|``."""

    rtol: Any
    atol: Any


@dataclass(frozen=True, slots=True, eq=False)
class Method:
    """A one-step method.

    Attributes:
      name: as users give it.
      order: of the error estimate.
      n_dense: vectors of the polynomial between two states.
      is_nested: the polynomial alternates factors ``x`` and ``1 - x`` (DOP853) instead of powers.
      evaluations: of the slope, per step.
      jacobians: per step.
      step: ``(slope, t, y, h, f, tolerances, wants_dense) -> (y_new, f_new, dense, error)``.
    """

    name: str
    order: int
    n_dense: int
    is_nested: bool
    evaluations: int
    jacobians: int
    step: Callable[..., tuple[Any, Any, Any, Any]]


def combination(weights: Sequence[float], vectors: Sequence[Any]) -> Array:
    """A linear combination; vectors of weight 0 are left out."""
    total: Any = None
    for weight, vector in zip(weights, vectors, strict=False):
        if weight != 0:
            term = vector * float(weight)
            total = term if total is None else total + term
    return fnp.zeros_like(vectors[0]) if total is None else total


def mean_square(x: Any) -> Array:
    """Mean of the squared absolute values; 0 for no elements."""
    parts = fnp.real(x) ** 2 + fnp.imag(x) ** 2 if dtype_of(x).kind == "c" else x * x
    return fnp.sum(parts) / max(shape_of(x)[0], 1)


def error_norm(error: Any, y: ArrayLike, y_new: ArrayLike, tolerances: Tolerances) -> Array:
    """Root mean square of an error in units of the tolerances; infinite where it is no number."""
    larger = fnp.maximum(fnp.abs(y), fnp.abs(y_new))
    scaled = mean_square(error / (tolerances.atol + tolerances.rtol * larger))
    norm = fnp.sqrt(scaled)
    return fnp.where(fnp.isfinite(norm), norm, np.inf)


def interpolate(y: Any, dense: Any, is_nested: ArrayLike, x: Any) -> Array:
    """The state at a fraction ``x`` of a step that began at ``y``."""
    n = shape_of(dense)[0]
    total = dense[n - 1] * x
    for i in reversed(range(n - 1)):
        factor = fnp.where(is_nested, 1.0 - x, x).astype(dtype_of(x)) if i % 2 else x
        total = (total + dense[i]) * factor
    return y + total


# explicit Runge-Kutta ---------------------------------------------------------------------------


def _stages(
    slope: Slope, t: Array, y: Array, h: Array, f: ArrayLike, a: Array, c: Array
) -> list[Any]:
    """The slopes of an explicit method."""
    slopes = [f]
    for row, node in zip(a[1:], c[1:], strict=True):
        slopes.append(slope(t + float(node) * h, y + h * combination(row, slopes)))
    return slopes


def _explicit(name: str, table: Any) -> Method:
    """An explicit method with a polynomial of powers (RK23, RK45)."""

    def step(
        slope: Slope,
        t: Array,
        y: Array,
        h: Array,
        f: ArrayLike,
        tolerances: Tolerances,
        wants_dense: ArrayLike,
    ) -> tuple[Any, Any, Any, Any]:
        slopes = _stages(slope, t, y, h, f, table.A, table.C)
        y_new = y + h * combination(table.B, slopes)
        f_new = slope(t + h, y_new)
        slopes.append(f_new)
        dense = fnp.stack([h * combination(column, slopes) for column in table.P.T])
        error = stop_gradient(h * combination(table.E, slopes))
        norm = error_norm(error, stop_gradient(y), stop_gradient(y_new), tolerances)
        return y_new, f_new, dense, norm

    order = int(table.error_estimator_order)
    return Method(name, order, table.P.shape[1], False, int(table.n_stages), 0, step)


def _dop853(table: Any) -> Method:
    """The method of order 8, with error estimates of orders 5 and 3."""
    n_more, n_slopes = len(table.A_EXTRA), int(table.n_stages) + 1

    def step(
        slope: Slope, t: Any, y: Any, h: Any, f: Any, tolerances: Tolerances, wants_dense: object
    ) -> tuple[Any, Any, Any, Any]:
        slopes = _stages(slope, t, y, h, f, table.A, table.C)
        y_new = y + h * combination(table.B, slopes)
        f_new = slope(t + h, y_new)
        slopes.append(f_new)
        assert len(slopes) == n_slopes

        def between() -> Array:
            own = list(slopes)
            for row, node in zip(table.A_EXTRA, table.C_EXTRA, strict=True):
                own.append(slope(t + float(node) * h, y + h * combination(row, own)))
            change = y_new - y
            first = [change, h * f - change, 2.0 * change - h * (f_new + f)]
            return fnp.stack([*first, *(h * combination(row, own) for row in table.D)])

        n_dense = 3 + len(table.D)
        shape = (n_dense, *shape_of(y))
        dense = cond(wants_dense, between, lambda: fnp.zeros(shape, dtype_of(y)))
        frozen = [stop_gradient(k) for k in slopes]
        size = fnp.maximum(fnp.abs(stop_gradient(y)), fnp.abs(stop_gradient(y_new)))
        scale = tolerances.atol + tolerances.rtol * size
        fifth = mean_square(combination(table.E5, frozen) / scale)
        third = mean_square(combination(table.E3, frozen) / scale)
        both = fifth + 0.01 * third
        norm = fnp.abs(stop_gradient(h)) * fifth / fnp.sqrt(fnp.where(both > 0, both, 1.0))
        return y_new, f_new, dense, fnp.where(fnp.isfinite(norm), norm, np.inf)

    return Method("DOP853", 7, 3 + len(table.D), True, n_slopes - 1 + n_more, 0, step)


# Rosenbrock -------------------------------------------------------------------------------------

_GAMMA = 0.25
_ALPHA = (0.0, 0.386, 0.21, 0.63, 1.0, 1.0)
_DIAGONAL = (0.25, -0.1043, 0.1035, -0.03620000000000023, 0.0, 0.0)
_A = (
    (),
    (1.544,),
    (0.9466785280815826, 0.2557011698983284),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950),
    (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950, 1.0),
)
_C = (
    (),
    (-5.6688,),
    (-2.430093356833875, -0.2063599157091915),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
    (
        8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136,
        -6.058818238834054,
    ),
)  # fmt: skip
_DENSE = (
    (10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823,
     1.025137723295662),
    (-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386,
     -6.594389125716872),
)  # fmt: skip


def _rodas_step(
    slope: Slope, t: Any, y: Any, h: Any, f: object, tolerances: Tolerances, wants_dense: object
) -> tuple[Any, Any, Any, Any]:
    """A step of Rodas: six linear systems with one matrix, ``1 / (gamma h) - df/dy``.

    With ``u_i`` the solution of ``(1 / (gamma h) - J) u_i = f(t + alpha_i h, y + sum a_ij u_j)
    + sum (c_ij / h) u_j + d_i h df/dt``, the next state is that of the last slope and ``u_6`` is
    the error.
    """
    n = shape_of(y)[0]
    dtype = dtype_of(y)
    jacobian = jacfwd(lambda y: slope(t, y), holomorphic=dtype.kind == "c")(y)
    _, rate = jvp(lambda t: slope(t, y), (t,), (fnp.ones_like(t),))
    matrix = fnp.eye(n, dtype=dtype) / (_GAMMA * h) - jacobian
    factors, pivots = lu_factor(matrix, check=False)
    solutions: list[Any] = []
    for i in range(6):
        value = f if i == 0 else slope(t + _ALPHA[i] * h, y + combination(_A[i], solutions))
        right = value + _DIAGONAL[i] * h * rate
        if solutions:
            right = right + combination(_C[i], solutions) / h
        solutions.append(fnp.reshape(linear_solve(matrix, factors, pivots, right[:, None]), (n,)))
    y_new = y + combination((*_A[5], 1.0), solutions)
    f_new = slope(t + h, y_new)
    error = stop_gradient(solutions[5])
    norm = error_norm(error, stop_gradient(y), stop_gradient(y_new), tolerances)
    change = y_new - y
    second, third = (combination(row, solutions) for row in _DENSE)
    # y + x (y_new - y) + x (1 - x) (second + x third), by powers of x
    dense = fnp.stack([change + second, third - second, -third])
    return y_new, f_new, dense, norm


@functools.cache
def methods() -> dict[str, Method]:
    """All methods, by name."""
    from scipy.integrate import DOP853, RK23, RK45

    return {
        "RK23": _explicit("RK23", RK23),
        "RK45": _explicit("RK45", RK45),
        "DOP853": _dop853(DOP853),
        "Rodas4": Method("Rodas4", 3, 3, False, 7, 1, _rodas_step),
    }
