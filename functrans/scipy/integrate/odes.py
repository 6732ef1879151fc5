"""Initial value problems: ``odeint`` and ``solve_ivp``, differentiable in all that they are given.

Here: what users call: arguments and their checks, pytrees, warnings. Not here: the loop over steps
(``scipy.integrate.odes_loop``), the steps (``scipy.integrate.odes_methods``), the adjoint equation
(``scipy.integrate.odes_adjoint``), the search for events (``scipy.integrate.odes_events``), results
(``scipy.integrate.odes_results``).

``odeint`` has JAX's signature, ``solve_ivp`` SciPy's. Both stage the right-hand side once; what it
refers to (arrays, tracers) becomes an argument of the program, so that derivatives in closed-over
values are those in arguments.

Layer: ``scipy``.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import functrans.numpy as fnp
from functrans import pytrees as tree
from functrans.control.bodies import finish_results, flatten_operands, stage_body
from functrans.control.custom_rules import stop_gradient
from functrans.control.native import jit_p
from functrans.core.arguments import name_of
from functrans.core.avals import is_differentiable_dtype
from functrans.core.boundary import boundary, warn
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of, bind, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError, TreeMismatchError, UnsupportedOperationError
from functrans.jitted.forks import forked
from functrans.passes.evaluate import evaluate
from functrans.passes.layouts import plain_value
from functrans.passes.programs import derived, hoist
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.scipy.dispatch import plain
from functrans.scipy.integrate.odes_adjoint import integrate_backsolve
from functrans.scipy.integrate.odes_events import (
    Event,
    locate,
    plain_values,
    prepare,
    with_derivatives,
)
from functrans.scipy.integrate.odes_loop import RUNNING, TOO_MANY, Options, integrate
from functrans.scipy.integrate.odes_methods import Method, Tolerances, methods
from functrans.scipy.integrate.odes_results import MESSAGES, OdeResult, OdeSolution, make_result

CHECKPOINTS = 32
"""States kept between two output times in reverse mode."""

ROWS, GROWTH = 64, 4
"""Steps after which events are first looked for, and by how much their number grows."""

_ADJOINTS = ("discrete", "backsolve")


# arguments --------------------------------------------------------------------------------------


def _array(who: str, what: str, value: Any, ndim: int) -> Array:
    """An array of numbers of a certain rank."""
    array = fnp.asarray(value)
    if len(shape_of(array)) != ndim:
        raise ShapeError(f"{who}: {what} must be {ndim}-D, got {aval_of(array)}{here()}")
    return array


def _inexact(x: Array) -> Any:
    """An array in a floating dtype."""
    x = fnp.asarray(x)
    return x if dtype_of(x).kind in "fc" else x.astype(np.float64)


def _real_dtype(dtype: np.dtype) -> np.dtype:
    return np.empty(0, dtype).real.dtype


def _is_plain(values: Sequence[Any]) -> bool:
    return not any(isinstance(value, Tracer) for value in values)


def _have_values(operands: Sequence[Any]) -> bool:
    """Whether values are known, as in ``grad`` and ``jvp``."""
    return all(not isinstance(x, Tracer) or plain_value(x) is not None for x in operands)


def _check_direction(who: str, times: ArrayLike) -> None:
    """Refuse times that go back and forth, where they are known."""
    if isinstance(times, Tracer):
        return
    if not np.all(np.isfinite(times)):
        raise ValueError(f"{who}: times must be finite, got {times}")
    later, earlier = np.asarray(times)[1:], np.asarray(times)[:-1]
    if np.any(later < earlier) and np.any(later > earlier):
        raise ValueError(f"{who}: times must increase or decrease throughout, got {times}")


class _Problem:
    """A right-hand side as a program of vectors, with all that it depends on.

    Attributes:
      who: the function that users call, for messages.
      start: the first time.
      y: the first state as a vector.
      operands: what the right-hand side refers to, then the leaves of its arguments.
    """

    def __init__(
        self, who: str, fun: Any, start: ArrayLike, y0: Any, args: tuple[Any, ...]
    ) -> None:
        self.who = f"{who}: {name_of(fun)}"
        leaves, self.treedef = tree.flatten(y0)
        self.paths = tree.key_paths(y0, "y0")
        leaves = [_inexact(leaf) for leaf in leaves]
        self.dtype = (
            np.result_type(*(dtype_of(leaf) for leaf in leaves)) if leaves else np.dtype(float)
        )
        self.shapes = [shape_of(leaf) for leaf in leaves]
        self.y = self._vector(leaves)
        self.start = fnp.asarray(start).astype(_real_dtype(self.dtype))

        def vector_fun(t: Array, y: Array, args: Any) -> Array:
            return self._slope(fun(t, self.state(y), *args))

        fun = forked(fun, self.who, is_pure=True)
        vector_fun.__name__ = name_of(fun)
        values, treedef, paths = flatten_operands(self.who, (self.start, self.y, args), "args")
        names = ["t", "y", *(path.replace("args[2]", "args", 1) for path in paths[2:])]
        avals = [aval_of(value) for value in values]
        body = stage_body(self.who, vector_fun, treedef, avals, names)
        self.jaxpr = body.jaxpr
        self.operands = [*body.captured, *values[2:]]
        self.n_captured = len(body.captured)

    def _vector(self, leaves: Sequence[Any]) -> Array:
        if len(leaves) == 1:
            return fnp.reshape(leaves[0], (-1,)).astype(self.dtype)
        if not leaves:
            return fnp.zeros(0, self.dtype)
        return fnp.concatenate([fnp.reshape(leaf, (-1,)).astype(self.dtype) for leaf in leaves])

    def state(self, y: Array) -> Any:
        """The state of a vector ``[n]``, or states of ``[m, n]``, in the user's structure."""
        lead = shape_of(y)[:-1]
        if len(self.shapes) == 1:
            return tree.unflatten(self.treedef, [fnp.reshape(y, (*lead, *self.shapes[0]))])
        leaves, position = [], 0
        for shape in self.shapes:
            size = int(np.prod(shape))
            leaves.append(fnp.reshape(y[..., position : position + size], (*lead, *shape)))
            position += size
        return tree.unflatten(self.treedef, leaves)

    def _slope(self, value: ArrayLike) -> Any:
        """The vector of what the right-hand side returns."""
        if self.treedef is tree.LEAF and isinstance(value, (list, tuple)):
            value = fnp.stack([fnp.asarray(part) for part in value]) if value else fnp.zeros(0)
        leaves, treedef = tree.flatten(value)
        if treedef != self.treedef:
            raise TreeMismatchError(
                f"{self.who}: the right-hand side returned {tree.describe(treedef)}, but the state "
                f"is {tree.describe(self.treedef)}; both must have one structure"
            )
        for leaf, shape, path in zip(leaves, self.shapes, self.paths, strict=True):
            if shape_of(leaf) != shape and not (shape_of(leaf) == () and shape == (1,)):
                raise ShapeError(
                    f"{self.who}: the right-hand side returned {aval_of(leaf)} for {path}, whose "
                    f"shape is {list(shape)}; the slope has the shape of the state"
                )
            if dtype_of(leaf).kind == "c" and self.dtype.kind != "c":
                raise TypeError(
                    f"{self.who}: the right-hand side returned {aval_of(leaf)} for {path}, which "
                    "is real; start with a complex state: y0 + 0j"
                )
        return self._vector(leaves)

    def slope(self, values: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
        """``(t, y, *params) -> dy/dt`` and ``params``: the operands that have derivatives."""
        varies = [is_differentiable_dtype(dtype_of(value)) for value in values]
        fixed = [None if flag else value for value, flag in zip(values, varies, strict=True)]
        n = self.n_captured

        def slope(t: ArrayLike, y: ArrayLike, *params: Any) -> Any:
            given = iter(params)
            own = [next(given) if f else x for x, f in zip(fixed, varies, strict=True)]
            return evaluate(self.jaxpr, [*own[:n], t, y, *own[n:]])[0]

        return slope, tuple([x for x, flag in zip(values, varies, strict=True) if flag])


def _solve(
    problem: _Problem,
    method: Method,
    times: Array,
    bound: Array,
    settings: dict[str, Any],
    n_rows: int | None,
) -> tuple[Any, Any, Any, Any]:
    """Run the program of an integration; it is staged once per right-hand side and settings.

    Args:
      problem: right-hand side and first state.
      method: the formulas of a step.
      times: output times.
      bound: the last time.
      settings: ``rtol``, ``atol``, ``max_step``, ``first_step``, ``max_steps``, ``checkpoints``,
        ``adjoint``.
      n_rows: steps to record in place of output times.
    """
    tolerances = [settings["rtol"], settings["atol"], settings["max_step"]]
    has_first = settings["first_step"] is not None
    if has_first:
        tolerances.append(settings["first_step"])
    real = _real_dtype(problem.dtype)
    sizes = [stop_gradient(fnp.asarray(x)).astype(real) for x in tolerances]
    operands = [problem.y, problem.start, times, bound, *sizes, *problem.operands]
    first = 4 + len(sizes)

    def run(*values: ArrayLike) -> list[Any]:
        y, start, times, bound, rtol, atol, max_step, *rest = values
        options = Options(
            Tolerances(rtol, atol),
            max_step,
            rest[0] if has_first else None,
            settings["max_steps"],
            settings["checkpoints"],
        )
        slope, params = problem.slope(values[first:])
        if n_rows is None and settings["adjoint"] == "backsolve":
            out = integrate_backsolve(method, slope, y, start, times, bound, params, options)
        else:
            out = integrate(method, slope, y, start, times, bound, params, options, n_rows)
        return tree.leaves(out)

    avals = tuple(map(aval_of, operands))
    static = (method.name, settings["max_steps"], settings["checkpoints"], settings["adjoint"])

    def make() -> tuple[Any, tuple[Any, ...]]:
        return hoist(simplify(stage(run, avals, problem.who, name=problem.jaxpr.name)))

    program, extra = derived(problem.jaxpr, ("ode", *static, n_rows, avals, has_first), make)
    outs = bind(jit_p, *extra, *operands, jaxpr=program, name=problem.jaxpr.name)
    *values, status, attempts, accepted = finish_results(outs, operands, None)
    return (values[0] if n_rows is None else values), status, attempts, accepted


def _settings(
    who: str,
    rtol: Any,
    atol: object,
    max_step: object,
    first_step: Any,
    max_steps: Any,
    checkpoints: Any,
    adjoint: str,
    dtype: np.dtype,
) -> dict[str, Any]:
    """Checked settings."""
    for name, value in (("rtol", rtol), ("atol", atol), ("max_step", max_step)):
        if _is_plain(tree.leaves(value)) and not np.all(np.asarray(value) >= 0):
            raise ValueError(f"{who}: {name} must not be negative, got {value!r}")
    for name, value in (("max_step", max_step), ("first_step", first_step)):
        if value is not None and _is_plain([value]) and not np.all(np.asarray(value) > 0):
            raise ValueError(f"{who}: {name} must be positive, got {value!r}")
    if adjoint not in _ADJOINTS:
        raise ValueError(f"{who}: adjoint must be one of {_ADJOINTS}, got {adjoint!r}")
    if adjoint == "backsolve" and dtype.kind == "c":
        raise TypeError(
            f"{who}: adjoint='backsolve' takes real states, got {dtype}; use 'discrete'"
        )
    if max_steps is not None:
        if max_steps < 1:
            raise ValueError(
                f"{who}: the maximum number of steps must be positive, got {max_steps}"
            )
        max_steps = None if max_steps == np.inf else int(max_steps)
    if checkpoints is not None and checkpoints < 1:
        raise ValueError(f"{who}: checkpoints must be positive or None, got {checkpoints}")
    if _is_plain(tree.leaves(rtol)):
        rtol = np.maximum(rtol, 10 * np.finfo(dtype).eps)
    return {
        "rtol": rtol,
        "atol": atol,
        "max_step": max_step,
        "first_step": first_step,
        "max_steps": max_steps,
        "checkpoints": checkpoints,
        "adjoint": adjoint,
    }


def _method(who: str, name: str) -> Method:
    """A method by name."""
    table = methods()
    if name in table:
        return table[name]
    advice = "; for stiff problems there is 'Rodas4'" if name in ("Radau", "BDF", "LSODA") else ""
    raise ValueError(f"{who}: method must be one of {tuple(table)}, got {name!r}{advice}")


# what users call --------------------------------------------------------------------------------


@boundary
def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: object,
    *parameters: Any,
    args: tuple[Any, ...] | None = None,
    rtol: object = 1.4e-8,
    atol: object = 1.4e-8,
    mxstep: object = np.inf,
    hmax: object = np.inf,
    h0: object = None,
    tfirst: bool = False,
    method: str = "RK45",
    adjoint: str = "discrete",
    checkpoints: int | None = CHECKPOINTS,
) -> Any:
    """Solve ``dy/dt = func(y, t, *args)`` and return ``y`` at times, as SciPy's and JAX's.

    Differentiable in ``y0``, ``t``, ``args`` and what ``func`` refers to, in both modes and any
    order (with ``adjoint="backsolve"``, in reverse mode). See :func:`solve_ivp` for what the
    derivative is.

    Args:
      func: function ``(y, t, *args)`` that returns a pytree like ``y0``; it is staged once.
      y0: state at ``t[0]``: an array or a pytree of arrays. A list of numbers is a vector.
      t: times ``f64[m]``, all increasing or all decreasing.
      *parameters: further arguments of ``func``, pytrees of arrays, one by one as JAX takes them.
        A single tuple with as many entries as ``func`` takes further arguments is ``args``.
      args: further arguments of ``func`` as SciPy takes them: a tuple.
      rtol: relative tolerance, a number or ``f64[n]`` in the order of the leaves.
      atol: absolute tolerance, likewise.
      mxstep: maximum number of steps between two times.
      hmax: longest step.
      h0: first step; by default it is chosen.
      tfirst: whether ``func`` is ``(t, y, *args)``.
      method: ``"RK45"``, ``"DOP853"``, ``"RK23"``, or ``"Rodas4"`` for stiff problems.
      adjoint: ``"discrete"`` or ``"backsolve"``.
      checkpoints: states that reverse mode keeps between two times; ``None`` for all.

    Returns:
      Pytree like ``y0`` with a leading axis ``m``. Times that were not reached have NaN, and
      outside of traced code there is an ``IntegrationWarning``.

    Raises:
      ValueError: times that go back and forth, a bad tolerance, an unknown method.
      TreeMismatchError, ShapeError, TypeError: ``func`` returns what is not like ``y0``; its
        arguments are given in both ways.

    Example:
      >>> import functrans as ft
      >>> def final(rate):
      ...     return odeint(lambda y, t, k: -k * y, 1.0, np.array([0.0, 1.0]), rate)[-1]
      >>> bool(abs(ft.grad(final)(2.0) + np.exp(-2.0)) < 1e-7)
      True
    """
    func = traced_form("odeint", func)
    chosen = _method("odeint", method)
    times = _array("odeint", "t", t, 1)
    _check_direction("odeint", times)
    if shape_of(times)[0] == 0:
        raise ValueError("odeint: t is empty; its first element is the time of y0")
    if args is not None:
        if parameters:
            raise TypeError(
                f"odeint: got {len(parameters)} further arguments and args={args!r}{here()}; pass "
                "those of the function in one of the two ways"
            )
        if not isinstance(args, tuple):
            raise TypeError(f"odeint: args must be a tuple, got {args!r}{here()}; write args=(a,)")
        parameters = args
    elif (
        len(parameters) == 1
        and type(parameters[0]) is tuple
        and len(parameters[0]) == _further_arguments(func)
    ):
        (parameters,) = parameters
    if type(y0) is list and y0 and all(map(_is_number, y0)):
        y0 = fnp.stack([fnp.asarray(part) for part in y0])

    def fun(t: object, y: Any, *own: object) -> Any:
        return func(t, y, *own) if tfirst else func(y, t, *own)

    fun.__name__ = name_of(func)
    problem = _Problem("odeint", fun, times[0], y0, parameters)
    settings = _settings(
        "odeint", rtol, atol, hmax, h0, mxstep, checkpoints, adjoint, problem.dtype
    )
    times = times.astype(_real_dtype(problem.dtype))
    values, status, _, _ = _solve(problem, chosen, times, times[-1], settings, None)
    _warn("odeint", status)
    return problem.state(values)


def _further_arguments(func: Callable[..., Any]) -> int | None:
    """How many arguments a function needs behind state and time; ``None`` where it cannot say."""
    try:
        parameters = inspect.signature(func).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is p.empty for p in parameters) - 2


def _is_number(value: object) -> bool:
    """Whether a value is one number, traced or not."""
    return tree.structure(value) is tree.LEAF and shape_of(value) == ()


def _warn(who: str, status: Any) -> None:
    """Say that an integration ended early, where that is known."""
    if not isinstance(status, Tracer) and int(status) != RUNNING:
        code = -2 if int(status) == TOO_MANY else -1
        warn(
            f"{who}: {MESSAGES[code]} Values at later times are NaN.{here()}",
            plain("integrate.IntegrationWarning"),
        )


@boundary
def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: tuple[Any, ...] | None = None,
    *,
    rtol: object = 1e-3,
    atol: object = 1e-6,
    max_step: object = np.inf,
    first_step: Any = None,
    max_steps: int | None = None,
    adjoint: str = "discrete",
    checkpoints: int | None = CHECKPOINTS,
    **options: Any,
) -> OdeResult:
    """Solve ``dy/dt = fun(t, y, *args)`` on an interval, as SciPy's ``solve_ivp``.

    Differentiable in ``y0``, ``t_span``, ``t_eval``, ``args`` and what ``fun`` refers to. With
    ``adjoint="discrete"`` the derivative is that of the discrete solution for the steps that were
    taken, the choice of step sizes counted as constant: exact for the numbers that are returned, in
    both modes and any order, with memory bounded by ``checkpoints``. With ``"backsolve"`` reverse
    mode solves the adjoint equation backwards, and the gradient is as exact as that solution.

    Args:
      fun: function ``(t, y, *args)``; returns ``dy/dt`` as an array or a list of numbers. It is
        staged once.
      t_span: first and last time.
      y0: state at the first time, ``f64[n]`` or ``c128[n]``.
      method: ``"RK45"``, ``"RK23"``, ``"DOP853"``, or ``"Rodas4"`` for stiff problems, whose
        Jacobian is exact.
      t_eval: output times in the interval, in the order of integration. Without them the steps of
        the solver are returned; in ``jit`` and ``vmap``, where their number is not known, both
        ends.
      dense_output: whether to return a function of time as ``sol``. ``jit`` and ``vmap`` need
        ``max_steps``, the number of steps that there is room for.
      events: a function ``(t, y, *args)`` that returns a number, or several. An event happens where
        that number changes its sign from one end of a step to the other; two changes within one
        step are not seen, and ``max_step`` makes steps shorter. Attributes of the function:
        ``terminal`` (true, or after how many times the integration ends) and ``direction``
        (positive: only upwards, negative: only downwards). Not in ``jit`` and ``vmap``, since their
        number depends on values.
      vectorized: has no effect.
      args: more arguments of ``fun``.
      rtol: relative tolerance.
      atol: absolute tolerance, a number or ``f64[n]``.
      max_step: longest step.
      first_step: first step; by default it is chosen.
      max_steps: maximum number of attempted steps between two output times; with events, of
        accepted steps.
      adjoint: ``"discrete"`` or ``"backsolve"``; with events or dense output the derivative is the
        discrete one.
      checkpoints: states that reverse mode keeps between two output times; ``None`` for all.
      **options: none; others of SciPy's are refused with what to do.

    Returns:
      ``OdeResult``. If the end was not reached, ``success`` is false, and the times that were not
      are left out; in traced code their states are NaN. With events, ``t_events`` and ``y_events``
      are lists of their times and states, which have derivatives too. A terminal event ends ``t``,
      ``y`` and ``sol``, with status 1; without ``t_eval`` it is their last point.

    Raises:
      ValueError: a bad tolerance, an unknown method, ``t_eval`` outside of the interval, a bad
        ``terminal``.
      ShapeError, TypeError: ``fun`` returns what is not like ``y0``; an event does not return a
        number; an unknown option.
      UnsupportedOperationError: events in staged code; dense output of unknown size.

    Example:
      >>> result = solve_ivp(lambda t, y: -y, (0.0, 1.0), np.array([1.0]), rtol=1e-8, atol=1e-8)
      >>> result.success, round(float(result.y[0, -1]), 6)
      (True, 0.367879)
      >>> def hit_ground(t, y):
      ...     return y[0]
      >>> hit_ground.terminal = True
      >>> result = solve_ivp(lambda t, y: [y[1], -9.81], (0, 9), [2.0, 0.0], events=hit_ground)
      >>> result.status, round(float(result.t[-1]), 6)  # sqrt(2 * 2 / 9.81)
      (1, 0.638551)

    Reference: Hairer, Norsett & Wanner, Solving Ordinary Differential Equations I, 2nd ed. (1993).
    """
    fun = traced_form("solve_ivp", fun)
    looked_for = None if events is None else prepare(events)
    for name in options:
        if name in ("jac", "jac_sparsity", "lband", "uband"):
            advice = "the Jacobian of 'Rodas4' is exact, and the other methods use none"
        elif name == "min_step":
            advice = "the shortest step is what times of this precision resolve"
        else:
            raise TypeError(f"solve_ivp() got an unexpected keyword argument {name!r}")
        raise TypeError(f"solve_ivp: {name} is not an option{here()}; leave it out: {advice}")
    chosen = _method("solve_ivp", method)
    if args is not None and not isinstance(args, (tuple, list)):
        raise TypeError(
            f"solve_ivp: args must be a tuple, got {type(args).__name__}; write args=(p,)"
        )
    ends = [fnp.asarray(end) for end in t_span]
    if len(ends) != 2:
        raise ValueError(f"solve_ivp: t_span must be two times, got {len(ends)}")
    y0 = _array("solve_ivp", "y0", y0, 1)
    problem = _Problem("solve_ivp", fun, ends[0], y0, tuple(args or ()))
    settings = _settings(
        "solve_ivp",
        rtol,
        atol,
        max_step,
        first_step,
        max_steps,
        checkpoints,
        adjoint,
        problem.dtype,
    )
    real = _real_dtype(problem.dtype)
    bound = ends[1].astype(real)
    _check_direction("solve_ivp", fnp.stack([problem.start, bound]))
    operands = [problem.y, problem.start, bound, *problem.operands]
    is_plain = _is_plain(operands)
    if t_eval is not None:
        times = _array("solve_ivp", "t_eval", t_eval, 1).astype(real)
        is_plain = is_plain and _is_plain([times])
        _check_inside(times, problem.start, bound)
    else:
        times = fnp.stack([problem.start, bound])
    has_steps = t_eval is None or (dense_output and settings["max_steps"] is None)
    is_found = has_steps and not is_plain and _have_values(operands)  # on plain numbers
    if looked_for is not None or is_found:
        wanted = None if t_eval is None else times
        given = tuple(args or ())
        return _with_events(
            problem, chosen, wanted, bound, settings, looked_for, given, dense_output
        )
    solution = None
    if dense_output or (t_eval is None and is_plain):
        n_rows = _row_count(problem, chosen, bound, settings, is_plain)
        rows, status, attempts, accepted = _solve(problem, chosen, times, bound, settings, n_rows)
        t_old, sizes, y_old, dense = rows[2:]
        solution = OdeSolution(t_old, sizes, y_old, dense, np.bool_(chosen.is_nested))
        if t_eval is None and is_plain:
            n = int(accepted)
            times = np.concatenate([np.reshape(problem.start, 1), rows[0][:n]])
            values = np.concatenate([problem.y[None], rows[1][:n]])
        else:
            values = None
        is_reached = fnp.abs(stop_gradient(rows[0][-1] - problem.start)) >= fnp.abs(
            stop_gradient(times - problem.start)
        )
        if values is None:  # not far beyond the last step, where it may overflow
            values = solution(fnp.where(is_reached, times, problem.start)).T
        is_over = (status == RUNNING) & (stop_gradient(rows[0][-1] - bound) != 0)
        status = fnp.where(is_over, TOO_MANY, status)
        values = fnp.where(is_reached[:, None], values, np.nan)
    else:
        values, status, attempts, accepted = _solve(problem, chosen, times, bound, settings, None)
    if is_plain:
        is_there = np.all(np.isfinite(values), axis=1) if int(status) != RUNNING else slice(None)
        times, values = times[is_there], values[is_there]
    code = fnp.where(status == RUNNING, 0, fnp.where(status == TOO_MANY, -2, -1))
    if is_plain:
        code = int(code)
    sol = solution if dense_output else None
    return make_result(times, values, sol, chosen, settings, attempts, accepted, code)


def _with_events(
    problem: _Problem,
    method: Method,
    t_eval: Any,
    bound: Any,
    settings: dict[str, Any],
    events: Sequence[Event] | None,
    args: tuple[Any, ...],
    dense_output: bool,
) -> OdeResult:
    """Solve, look for events, and end where one of them says so.

    Which steps there are and in which of them events happen is found on plain numbers. The same
    steps are then taken once more if the problem is traced.
    """
    plain_problem = copy.copy(problem)
    known = plain_values((problem.y, problem.start, problem.operands))
    plain_problem.y, start, plain_problem.operands = known
    end, wanted, plain_args = plain_values((bound, t_eval, args))
    start, end = plain_problem.start, end = np.asarray(start), np.asarray(end)
    sizes = {name: settings[name] for name in ("rtol", "atol", "max_step", "first_step")}
    plain_settings = {**settings, **plain_values(sizes)}
    _check_direction("solve_ivp", np.stack([start, end]))
    if wanted is not None:
        _check_inside(wanted, start, end)

    def steps(rows: Sequence[Any], part: slice) -> OdeSolution:
        t_old, sizes, y_old, dense = (row[part] for row in rows[2:])
        return OdeSolution(t_old, sizes, y_old, dense, np.bool_(method.is_nested))

    def between(rows: Sequence[Any]) -> Callable[[int], OdeSolution]:
        return lambda i: steps(rows, slice(i, i + 1))

    most = np.inf if settings["max_steps"] is None else settings["max_steps"]
    n_rows = int(min(ROWS, most))
    while True:
        rows, status, attempts, accepted = _solve(
            plain_problem, method, end[None], end, plain_settings, n_rows
        )
        is_at_end = bool(rows[0][-1] == end)
        n_steps = max(int(accepted), int(is_at_end))  # an interval without length is one step
        ends = np.concatenate([start[None], rows[0][:n_steps]])
        states = np.concatenate([plain_problem.y[None], rows[1][:n_steps]])
        found, is_over = locate(events or (), plain_args, ends, states, between(rows))
        if is_over or is_at_end or int(status) != RUNNING:
            break
        if n_rows == most:
            status = np.int64(TOO_MANY)
            break
        n_rows = int(min(n_rows * GROWTH, most))
    if is_over:
        n_steps = found[-1].step + 1
    if not _is_plain([problem.y, problem.start, bound, *problem.operands]):
        n_rows = 1 << max(n_steps - 1, 0).bit_length()
        rows, *_ = _solve(problem, method, bound[None], bound, settings, n_rows)
    solution = steps(rows, slice(max(n_steps, 1)))
    real = _real_dtype(problem.dtype)
    n = shape_of(problem.y)[0]
    t_events: Any = None
    y_events: Any = None
    times: Any
    values: Any
    if events is not None:
        t_events, y_events = with_derivatives(
            events, args, found, between(rows), n, real, problem.dtype
        )
    if wanted is not None:
        last = found[-1].time if is_over else ends[-1]
        sign = 1.0 if end >= start else -1.0
        times = t_eval[: int(np.count_nonzero(sign * wanted <= sign * last))]
        values = solution(times).T
    else:
        times, values = [problem.start[None]], [problem.y[None]]
        if is_over:
            last = found[-1].event
            times += [rows[0][: n_steps - 1], t_events[last][-1:]]
            values += [rows[1][: n_steps - 1], y_events[last][-1:]]
        else:
            times.append(rows[0][: int(accepted)])
            values.append(rows[1][: int(accepted)])
        times, values = fnp.concatenate(times), fnp.concatenate(values)
    code = 1 if is_over else {RUNNING: 0, TOO_MANY: -2}.get(int(status), -1)
    sol = solution if dense_output else None
    return make_result(
        times, values, sol, method, settings, attempts, accepted, code, t_events, y_events
    )


def _check_inside(times: Array, start: Array, bound: Array) -> None:
    """Refuse output times outside of the interval, where they are known."""
    if not _is_plain([times, start, bound]) or not np.size(times):
        return
    sign = 1.0 if bound >= start else -1.0
    if np.any(np.diff(sign * times) < 0):
        raise ValueError(f"solve_ivp: t_eval must be in the order of integration, got {times}")
    if sign * times[0] < sign * start or sign * times[-1] > sign * bound:
        raise ValueError(
            f"solve_ivp: t_eval must be within t_span = ({start}, {bound}), got {times[0]} to "
            f"{times[-1]}"
        )


def _row_count(
    problem: _Problem, method: Method, bound: Any, settings: dict[str, Any], is_plain: bool
) -> int:
    """How many steps to record: as many as there are, rounded up; in traced code ``max_steps``."""
    if is_plain:
        _, _, _, accepted = _solve(problem, method, bound[None], bound, settings, None)
        return 1 << max(int(accepted) - 1, 0).bit_length()
    if settings["max_steps"] is None:
        raise UnsupportedOperationError(
            "solve_ivp: dense_output in traced code needs to know how many steps there is room "
            f"for{here()}; give max_steps, or t_eval in place of dense_output"
        )
    return int(settings["max_steps"])
