"""What the names of ``scipy.optimize`` stand for in twins: SciPy's solvers, with derivatives.

SciPy solves on values, by the method that was asked for, and gives what it gives to plain code.
Solutions then get derivatives in all traced values that functions, data and bounds refer to
(``plain.implicit``); what a callback collects on the way are plain iterates. Where values are not
known (``jit``, ``vmap``), solvers that are programs themselves take the place of those that have
one; the others are refused.

Here: which condition belongs to which solver, and results. Not here: the derivatives
(``plain.implicit``), solvers that are traced (``functrans.scipy.optimize``).

Layer: ``plain``.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import functrans.numpy as fnp
import functrans.scipy.linalg
import functrans.scipy.optimize as own
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.source import here
from functrans.core.values import Array, Operand
from functrans.errors import ConcretizationError, UnsupportedOperationError
from functrans.plain.implicit import (
    bounds_class,
    bounds_of,
    minimum,
    pair_of_bounds,
    program,
    solution,
    vector_of,
    without_traces,
)
from functrans.plain.memory import given, settled
from functrans.plain.solvers_later import solved_later
from functrans.plain.sparse.dense import array_of
from functrans.plain.sparse.names import plain_or, refuser
from functrans.solvers.implicit import fixed_point as traced_fixed_point
from functrans.transforms.jacobian import jacfwd
from functrans.transforms.reverse import grad

Given = dict[str, Any]
Finish = Callable[[Given, Any], Any]


@functools.lru_cache(maxsize=1)
def _library() -> Any:
    import scipy.optimize

    return scipy.optimize


# calls ------------------------------------------------------------------------------------------


def _solver(
    name: str,
    finish: Finish,
    staged: Callable[..., Any] | None = None,
    later: Callable[[Given], Any] | None = None,
) -> Callable[..., Any]:
    """The twin of a solver: SciPy's on values, then the derivatives of what it gives.

    Args:
      name: of the solver.
      finish: makes the result of the arguments by name and of SciPy's result.
      staged: what to call where values are not known.
      later: in place of it, makes the result of the arguments by name.
    """
    function = getattr(_library(), name)
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        args, kwargs = settled(args), settled(kwargs)
        bound = signature.bind(*args, **kwargs)
        try:
            result = function(
                *map(without_traces, args), **{key: without_traces(x) for key, x in kwargs.items()}
            )
            bound.apply_defaults()
            return given(finish(bound.arguments, result))
        except Exception as error:
            if not _is_of_unknown_value(error):
                raise
            if later is not None:
                bound.apply_defaults()
                return given(later(bound.arguments))
            if staged is not None:
                return given(staged(*args, **kwargs))
            raise UnsupportedOperationError(
                f"scipy.optimize.{name}{here()}: {_advice(name)}"
            ) from error

    return call


def _is_of_unknown_value(error: BaseException | None) -> bool:
    """Whether an error is, or was raised for, a value that is not known."""
    while error is not None:
        if isinstance(error, ConcretizationError):
            return True
        error = error.__cause__
    return False


def _advice(name: str) -> str:
    return (
        "SciPy's solvers work on values, which are not known here, under jit or vmap. Solvers that "
        "are compiled with the program around them are minimize_bfgs, root_newton, newton, bisect "
        "and brentq of functrans.scipy.optimize; ft.implicit_diff gives derivatives to any other "
        f"that calls scipy.optimize.{name}"
    )


def _further(args: Sequence[Array]) -> tuple[Any, ...]:
    return tuple(args) if isinstance(args, (tuple, list)) else (args,)


def _function(a: Given, name: str) -> Callable[[Any], Any]:
    """The function of the unknowns alone."""
    function, args = a[name], _further(a.get("args", ()))
    return lambda x: settled(function(x, *args))


def _vector_function(
    a: Given, name: str, shape: tuple[int, ...], has_jac: bool = False
) -> Callable[..., Any]:
    function = _function(a, name)

    def flat(v: Array) -> Any:
        result = function(v.reshape(shape))
        return vector_of(result[0] if has_jac else result)

    return flat


def _is_traced(value: Array) -> bool:
    return isinstance(value, Tracer)


# results ----------------------------------------------------------------------------------------

_LASTING = frozenset(
    {"success", "status", "message", "nit", "nfev", "njev", "nhev", "active_mask", "maxcv"}
)
"""Fields of results that are no functions of the solution."""


@functools.lru_cache(maxsize=1)
def _result_class() -> Callable[..., Any]:
    class TracedResult(_library().OptimizeResult):  # type: ignore[misc]  # SciPy has no types
        """SciPy's result, whose solution has derivatives; it has no fields that would lose them."""

        def __getattr__(self, name: str) -> Any:
            """Fields."""
            if name in object.__getattribute__(self, "hidden"):
                raise UnsupportedOperationError(
                    f"the field {name!r} of this result is what the solver knew on its way, which "
                    f"has no derivatives{here()}; compute it at the solution: ft.hessian(fun)(x), "
                    "ft.jacobian(fun)(x)"
                )
            return super().__getattr__(name)

        def __getitem__(self, name: str) -> Any:
            """Fields."""
            return getattr(self, name) if name not in self else super().__getitem__(name)

        def __repr__(self) -> str:
            """Names of the fields."""
            return f"<traced result with {', '.join(self)}>"

    return TracedResult


def _result(plain: Any, **traced: Array) -> Any:
    """A result of SciPy's with fields that are traced."""
    names = list(plain.keys())
    kept = {name: plain[name] for name in names if name in _LASTING}
    result = _result_class()(**{name: given(x) for name, x in traced.items()}, **kept)
    object.__setattr__(result, "hidden", frozenset(names) - frozenset(result))
    return result


# where values are not known ---------------------------------------------------------------------


def _with_arguments(a: Given, *names: str) -> dict[str, Callable[[Any], Any]]:
    """Functions of the unknowns alone, by name."""
    return {name: _function(a, name) for name in names if callable(a.get(name))}


def _refuse_later(name: str, a: Given, *options: str) -> None:
    """Refuse options that are not for programs."""
    for option in options:
        given_one = a.get(option)
        if (
            given_one is not None
            and given_one is not False
            and not (isinstance(given_one, (tuple, list, int)) and not given_one)
        ):
            raise UnsupportedOperationError(
                f"scipy.optimize.{name} with {option}{here()} is not supported where values are "
                f"not known, under jit or vmap. {_advice(name)}"
            )


def _start(a: Given) -> Any:
    x0 = array_of(a["x0"])
    return fnp.asarray(x0, dtype=np.float64) if x0.dtype.kind != "c" else x0


def _system_later(name: str, function: str, jacobian: str) -> Callable[[Given], Any]:
    """``fsolve`` or ``root`` as a part of a program."""

    def later(a: Given) -> Any:
        _refuse_later(name, a, "full_output", "callback")
        start = _start(a)
        shape, is_pair = start.shape, a.get("jac") is True
        functions = _with_arguments(a, function, jacobian)
        others = {
            key: value
            for key, value in a.items()
            if key not in (function, jacobian, "x0", "args", "callback", "full_output")
        }
        if is_pair:
            others[jacobian] = True

        def solve(own: Any, x0: np.ndarray) -> Any:
            result = getattr(_library(), name)(x0=x0.reshape(shape), **own, **others)
            return result if name == "fsolve" else result.x

        def residual(own: Any) -> Callable[[Any], Any]:
            return _vector_function(own, function, shape, is_pair)

        who = f"scipy.optimize.{name}"
        x, own = solved_later(who, functions, residual, solve, start.reshape(-1))
        if name == "fsolve":
            return x.reshape(shape)
        fun = residual(own)(x).reshape(shape)
        return _later_result(x=x.reshape(shape), fun=fun)

    return later


def _minimize_later(a: Given) -> Any:
    """``minimize`` as a part of a program."""
    _refuse_later("minimize", a, "bounds", "constraints", "callback", "hessp")
    start = _start(a)
    is_pair = a["jac"] is True
    functions = _with_arguments(a, "fun", "jac", "hess")
    others = {key: a[key] for key in ("method", "tol", "options")}
    others |= {key: a[key] for key in ("jac", "hess") if key not in functions}

    def solve(own: Any, x0: np.ndarray) -> Any:
        return _library().minimize(x0=x0, **own, **others).x

    def objective(own: Any) -> Callable[[Any], Any]:
        of = own["fun"]
        return lambda v: array_of(of(v)[0] if is_pair else of(v)).reshape(())

    x, own = solved_later(
        "scipy.optimize.minimize", functions, lambda own: grad(objective(own)), solve,
        start.reshape(-1),
    )  # fmt: skip
    return _later_result(x=x, fun=objective(own)(x))


def _later_result(**fields: object) -> Any:
    """A result of which only these fields are known while the program is staged."""
    result = _result_class()(**{name: given(x) for name, x in fields.items()})
    object.__setattr__(result, "hidden", _LASTING | {"jac", "hess", "hess_inv"})
    return result


# minima -----------------------------------------------------------------------------------------


def _refuse_constraints(name: str, constraints: tuple[Any, ...]) -> None:
    """Refuse constraints other than bounds."""
    if not (isinstance(constraints, (tuple, list)) and not constraints):
        raise UnsupportedOperationError(
            f"scipy.optimize.{name} with constraints and traced values{here()} is not supported; "
            "solve the conditions of Karush, Kuhn and Tucker by root, or decorate the function "
            "that calls it with ft.implicit_diff and those conditions. Bounds are supported"
        )


def _at_minimum(
    name: str, result: Any, objective: Callable[..., Any], lower: object, upper: object
) -> Any:
    """A result with the derivatives of a minimum."""
    plain = np.asarray(result.x, np.float64)
    shape = plain.shape

    who = f"scipy.optimize.{name}"
    flat = program(who, lambda v: objective(v.reshape(shape)), plain.reshape(-1))
    x = minimum(who, flat, plain.reshape(-1), lower, upper)
    if not _is_traced(x):
        return result
    fields = {"x": x.reshape(shape), "fun": array_of(flat(x)).reshape(())}
    if "jac" in result:
        fields["jac"] = grad(lambda v: array_of(flat(v)).reshape(()))(x)
    if "hess" in result:
        fields["hess"] = jacfwd(grad(lambda v: array_of(flat(v)).reshape(())))(x)
    return _result(result, **fields)


def _minimize(a: Given, result: Any) -> Any:
    function = _function(a, "fun")
    objective: Callable[[Any], Any] = function
    if a["jac"] is True:
        objective = lambda x: function(x)[0]  # noqa: E731  # value and gradient are given
    lower, upper = bounds_of(a["bounds"], np.size(result.x))
    constraints = a["constraints"]
    if not (isinstance(constraints, (tuple, list)) and not constraints):
        x = np.asarray(result.x)
        if not _is_traced(array_of(objective(x))) and not _constraints_traced(constraints, x):
            return result
    _refuse_constraints("minimize", constraints)
    return _at_minimum("minimize", result, objective, lower, upper)


def _constraints_traced(constraints: object, x: np.ndarray) -> bool:
    """Whether the constraints refer to traced values."""
    several = constraints if isinstance(constraints, (tuple, list)) else [constraints]
    for each in several:
        if isinstance(each, dict):
            value = each["fun"](x, *_further(each.get("args", ())))
        elif hasattr(each, "fun"):
            value = each.fun(x)
        else:
            continue
        if _is_traced(array_of(settled(value))):
            return True
    return False


def _minimize_scalar(a: Given, result: object) -> Any:
    bounds = a["bounds"]
    lower, upper = (None, None) if bounds is None else bounds_of([bounds], 1)
    return _at_minimum("minimize_scalar", result, _function(a, "fun"), lower, upper)


def _global(name: str) -> Finish:
    def finish(a: Given, result: Any) -> Any:
        options = a.get("minimizer_kwargs") or {}
        if name in ("basinhopping", "dual_annealing", "shgo") and "args" in options:
            a = {**a, "args": options["args"]}
        objective = _function(a, "func")
        constraints = a.get("constraints") or options.get("constraints") or ()
        if constraints and _is_traced(array_of(objective(np.asarray(result.x)))):
            _refuse_constraints(name, constraints)
        bounds = a.get("bounds", options.get("bounds"))
        lower, upper = bounds_of(bounds, np.size(result.x))
        return _at_minimum(name, result, objective, lower, upper)

    return finish


def _only_point(name: str, function: str, bounds: Callable[[Given], Any]) -> Finish:
    """A minimiser that gives the point alone."""

    def finish(a: Given, result: object) -> Any:
        point = result[0] if isinstance(result, tuple) else result
        plain = np.asarray(point, np.float64)
        objective = _function(a, function)
        lower, upper = bounds_of(bounds(a), plain.size)
        x = minimum(
            f"scipy.optimize.{name}",
            lambda v: objective(v.reshape(plain.shape)),
            plain.reshape(-1),
            lower,
            upper,
        )
        if not _is_traced(x):
            return result
        x = x.reshape(plain.shape)
        if not isinstance(result, tuple):
            return x
        if name == "fmin_l_bfgs_b":
            return x, array_of(objective(x)).reshape(()), result[2]
        raise UnsupportedOperationError(
            f"scipy.optimize.{name} with full_output or retall and traced values{here()} is not "
            "supported; use minimize, whose result has derivatives"
        )

    return finish


def _no_bounds(a: Given) -> Any:
    return None


# least squares ----------------------------------------------------------------------------------


def _losses() -> dict[str, Callable[[Any], Any]]:
    return {
        "linear": lambda z: z,
        "soft_l1": lambda z: 2 * (np.sqrt(1 + z) - 1),
        "huber": lambda z: np.where(z <= 1, z, 2 * np.sqrt(np.where(z <= 1, 1.0, z)) - 1),
        "cauchy": np.log1p,
        "arctan": np.arctan,
    }


def _least_squares(a: Given, result: Any) -> Any:
    kwargs = a["kwargs"] or {}
    function, args = a["fun"], _further(a["args"])
    loss, scale = a["loss"], settled(a["f_scale"])

    def residuals(x: Array) -> Any:
        return vector_of(function(x, *args, **kwargs))

    def cost(x: Array) -> Any:
        z = (residuals(x) / scale) ** 2
        rho = array_of(loss(z))[0] if callable(loss) else _losses()[loss](z)
        return 0.5 * scale**2 * fnp.sum(rho)

    plain = np.asarray(result.x)
    lower, upper = pair_of_bounds(a["bounds"], plain.size)
    x = minimum("scipy.optimize.least_squares", cost, plain, lower, upper)
    if not _is_traced(x):
        return result
    traced: dict[str, Any] = {"x": x, "fun": residuals(x), "cost": cost(x)}
    if loss == "linear":
        traced["jac"] = jacfwd(residuals)(x)
        traced["grad"] = traced["jac"].T @ traced["fun"]
    return _result(result, **traced)


def _linear_least_squares(a: Given, result: Any) -> Any:
    matrix, b = a["A"], array_of(a["b"])

    def residuals(x: Array) -> Any:
        return matrix @ x - b

    plain = np.asarray(result.x)
    lower, upper = pair_of_bounds(a["bounds"], plain.size)
    x = minimum(
        "scipy.optimize.lsq_linear", lambda v: 0.5 * fnp.sum(residuals(v) ** 2), plain, lower, upper
    )
    if not _is_traced(x):
        return result
    r = residuals(x)
    return _result(result, x=x, fun=r, cost=0.5 * fnp.sum(r**2))


def _nnls(a: Given, result: Sequence[Any]) -> Any:
    matrix, b = array_of(a["A"]), array_of(a["b"])

    def cost(v: Array) -> Any:
        return 0.5 * fnp.sum((matrix @ v - b) ** 2)

    x = minimum("scipy.optimize.nnls", cost, result[0], np.zeros(len(result[0])), None)
    return (x, fnp.linalg.norm(matrix @ x - b)) if _is_traced(x) else result


def _sum_of_squares(
    name: str, residuals: Callable[..., Any], plain: Array, lower: Any, upper: Any
) -> Array:
    return minimum(
        f"scipy.optimize.{name}", lambda v: 0.5 * fnp.sum(residuals(v) ** 2), plain, lower, upper
    )


def _inverse_of_normal(residuals: Callable[..., Any], x: Operand) -> Array:
    jac = jacfwd(residuals)(x)
    return np.linalg.inv(jac.T @ jac)


def _leastsq(a: Given, result: Sequence[Any]) -> Any:
    plain = np.asarray(result[0], np.float64)
    residuals = _vector_function(a, "func", plain.shape)
    x = _sum_of_squares("leastsq", residuals, plain.reshape(-1), None, None)
    if not _is_traced(x):
        return result
    found = x.reshape(plain.shape)
    if not a["full_output"]:
        return found, result[1]
    info = {"nfev": result[2]["nfev"], "fvec": residuals(x)}
    return found, _inverse_of_normal(residuals, x), info, *result[3:]


def _curve_fit(a: Given, result: Sequence[Array]) -> Any:
    function, data, plain = a["f"], a["xdata"], np.asarray(result[0])
    y = array_of(a["ydata"])
    data = array_of(data) if isinstance(data, (list, tuple, np.ndarray)) else settled(data)
    sigma = None if a["sigma"] is None else array_of(a["sigma"])
    if sigma is not None and len(shape_of(sigma)) == 2:
        sigma = fnp.linalg.cholesky(sigma)

    def residuals(p: Array) -> Any:
        r = vector_of(function(data, *p)) - y.reshape(-1)
        if sigma is None:
            return r
        if len(shape_of(sigma)) == 2:
            return functrans.scipy.linalg.solve_triangular(sigma, r, lower=True)
        return r / sigma

    lower, upper = pair_of_bounds(a["bounds"], plain.size)
    x = _sum_of_squares("curve_fit", residuals, plain, lower, upper)
    if not _is_traced(x):
        return result
    if a["full_output"] or a["nan_policy"] is not None:
        raise UnsupportedOperationError(
            f"scipy.optimize.curve_fit with full_output or nan_policy and traced values{here()} is "
            "not supported; use least_squares, whose result has derivatives"
        )
    covariance = _inverse_of_normal(residuals, x)
    if not a["absolute_sigma"]:
        n = int(np.prod(shape_of(y)))
        covariance = covariance * (fnp.sum(residuals(x) ** 2) / (n - plain.size))
    return x, covariance


# roots ------------------------------------------------------------------------------------------


def _at_root(
    name: str, residual: Callable[..., Any], plain: np.ndarray, is_elementwise: bool = False
) -> Array:
    """A root, with derivatives, of the shape of the plain one."""
    if plain.dtype.kind == "c":
        if not _is_traced(residual(plain.reshape(-1))):
            return plain
        raise UnsupportedOperationError(
            f"scipy.optimize.{name} of complex unknowns and traced values{here()} is not "
            "supported; make real and imaginary parts two unknowns"
        )
    x = solution(
        f"scipy.optimize.{name}",
        residual,
        plain.reshape(-1).astype(np.float64),
        is_elementwise=is_elementwise,
    )
    return x.reshape(plain.shape) if _is_traced(x) else plain


def _root(a: Given, result: Any) -> Any:
    plain = np.asarray(result.x)
    residual = _vector_function(a, "fun", plain.shape, a["jac"] is True)
    x = _at_root("root", residual, plain)
    if not _is_traced(x):
        return result
    return _result(result, x=x, fun=residual(x.reshape(-1)).reshape(plain.shape))


def _system(name: str, function: str) -> Finish:
    def finish(a: Given, result: Array) -> Any:
        has_info = isinstance(result, tuple)
        plain = np.asarray(result[0] if has_info else result)
        residual = _vector_function(a, function, plain.shape)
        x = _at_root(name, residual, plain)
        if not _is_traced(x):
            return result
        if not has_info:
            return x
        info = {"nfev": result[1]["nfev"], "fvec": residual(x.reshape(-1))}
        return x, info, *result[2:]

    return finish


def _number(name: str, function: str) -> Finish:
    """A root of one number, alone or with SciPy's record."""

    def finish(a: Given, result: Any) -> Any:
        has_record = isinstance(result, tuple)
        plain = np.asarray(result[0] if has_record else result)
        residual = _vector_function(a, function, plain.shape)
        x = _at_root(name, residual, plain, is_elementwise=plain.ndim > 0)
        if not _is_traced(x):
            return result
        if not has_record:
            return x
        record = result[1]
        if hasattr(record, "root"):
            record.root = x
        return x, record, *result[2:]

    return finish


def _root_scalar(a: Given, result: Any) -> Any:
    plain = np.asarray(result.root)
    function = _vector_function(a, "f", plain.shape, a["fprime"] is True or a["fprime2"] is True)
    x = _at_root("root_scalar", function, plain)
    if _is_traced(x):
        result.root = x
    return result


def _fixed_point(a: Given, result: object) -> Any:
    plain = np.asarray(result)
    function = _vector_function(a, "func", plain.shape)
    x = _at_root("fixed_point", lambda v: function(v) - v, plain)
    return x if _is_traced(x) else result


def _fixed_point_later(a: Given) -> Any:
    """``fixed_point`` as a part of a program; where SciPy accelerates it, by Anderson's method."""
    start = _start(a)
    depth = 0 if a["method"] == "iteration" else min(math.prod(start.shape), 3)
    func = _function(a, "func")
    return traced_fixed_point(func, start, xtol=a["xtol"], maxiter=a["maxiter"], anderson=depth)


def _staged(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A solver that is a program itself, with those arguments that it shares with SciPy's."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        bound = inspect.signature(getattr(_library(), name)).bind(*args, **kwargs)
        bound.apply_defaults()
        names = inspect.signature(function).parameters
        given_names = {
            key: value
            for key, value in bound.arguments.items()
            if key in names and key not in _TOLERANCES
        }
        lost = bound.arguments.get("full_output") or bound.arguments.get("x1") is not None
        if lost:
            raise UnsupportedOperationError(
                f"scipy.optimize.{name}(full_output=..., x1=...){here()}: {_advice(name)}"
            )
        for key in kwargs.keys() & _TOLERANCES & names.keys():
            given_names[key] = kwargs[key]
        return function(**given_names)

    return call


_TOLERANCES = frozenset({"xtol", "rtol", "tol", "maxiter"})


# names ------------------------------------------------------------------------------------------


def _of_optimize() -> dict[str, Any]:
    """Names of ``scipy.optimize``."""
    module = _library()
    brackets = ("brentq", "brenth", "ridder", "bisect", "toms748")
    points = {
        "fmin": ("func", _no_bounds),
        "fmin_powell": ("func", _no_bounds),
        "fmin_bfgs": ("f", _no_bounds),
        "fmin_cg": ("f", _no_bounds),
        "fmin_ncg": ("f", _no_bounds),
        "fmin_l_bfgs_b": ("func", lambda a: a["bounds"]),
        "fminbound": ("func", lambda a: [(a["x1"], a["x2"])]),
        "brent": ("func", _no_bounds),
        "golden": ("func", _no_bounds),
    }
    iterations = (
        "anderson", "broyden1", "broyden2", "diagbroyden", "excitingmixing", "linearmixing",
        "newton_krylov",
    )  # fmt: skip
    names: dict[str, Any] = {
        "minimize": _solver("minimize", _minimize, later=_minimize_later),
        "minimize_scalar": _solver("minimize_scalar", _minimize_scalar),
        "least_squares": _solver("least_squares", _least_squares),
        "lsq_linear": _solver("lsq_linear", _linear_least_squares),
        "nnls": _solver("nnls", _nnls),
        "leastsq": _solver("leastsq", _leastsq),
        "curve_fit": _solver("curve_fit", _curve_fit),
        "root": _solver("root", _root, later=_system_later("root", "fun", "jac")),
        "fsolve": _solver(
            "fsolve", _system("fsolve", "func"), later=_system_later("fsolve", "func", "fprime")
        ),
        "root_scalar": _solver("root_scalar", _root_scalar),
        "newton": _solver("newton", _number("newton", "func"), _staged(own.newton, "newton")),
        "fixed_point": _solver("fixed_point", _fixed_point, later=_fixed_point_later),
        "Bounds": bounds_class(),
    }
    for name in brackets:
        program = own.bisect if name == "bisect" else own.brentq
        names[name] = _solver(name, _number(name, "f"), _staged(program, name))
    for name, (function, bounds) in points.items():
        names[name] = _solver(name, _only_point(name, function, bounds))
    for name in iterations:
        names[name] = _solver(name, _system(name, "F"))
    for name in ("differential_evolution", "basinhopping", "dual_annealing", "direct", "shgo"):
        names[name] = _solver(name, _global(name))
    for name in module.__all__:
        value = getattr(module, name)
        if name in names or not inspect.isroutine(value) or hasattr(own, name):
            continue
        advice = "make it one operation with ft.external(f, out_like), or use minimize or root"
        names[name] = plain_or(value, refuser("scipy.optimize", name, advice))
    return names


NAMES: dict[str, Callable[[], dict[str, Any]]] = {"scipy.optimize": _of_optimize}
"""By module of SciPy, what gives the twins of its names."""
