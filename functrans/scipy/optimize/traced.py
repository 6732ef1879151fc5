"""Solvers that are programs themselves: under ``jit`` and ``vmap``, compiled, differentiable.

Here: ``newton``, ``bisect``, ``brentq`` for one unknown, ``root_newton`` for systems,
``minimize_bfgs``. Their derivatives are those of the conditions that their results satisfy. Not
here: SciPy's solvers (``optimize.drivers``).

A result that has not converged is NaN where nothing can be raised, that is in staged programs, and
an error where values are at hand.

Layer: ``scipy``. References: Brent, Algorithms for Minimization Without Derivatives (1973), ch. 4;
Nocedal & Wright, Numerical Optimization, 2nd ed. (2006), chs. 3, 6 and 11.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from functrans import pytrees as tree
from functrans.control.scanning import while_loop
from functrans.core.arguments import further_arguments, name_of
from functrans.core.avals import is_differentiable_dtype
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of, dtype_of, shape_of
from functrans.core.ownership import own_array
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ConvergenceError
from functrans.jitted.forks import forked
from functrans.solvers.implicit import LinearSolver, implicit_diff
from functrans.solvers.krylov import Space
from functrans.transforms.jacobian import jacfwd
from functrans.transforms.reverse import grad, value_and_grad


def _flagged(who: str, x: Array, converged: ArrayLike, what: Callable[[], str]) -> Array:
    """The result, or NaN where it has not converged."""
    if isinstance(converged, Tracer):
        flag: Any = converged
        return np.where(flag, x, np.nan * x)
    if not np.all(converged):
        raise ConvergenceError(f"{who}: {what()}{here()}")
    return x


def _loop(goes_on: Callable[[Any], Any], body: Callable[[Any], Any], state: object) -> Any:
    """A loop of Python on plain values, a ``while_loop`` on traced ones."""
    if any(isinstance(leaf, Tracer) for leaf in tree.leaves(state)):
        return while_loop(goes_on, body, state)
    while goes_on(state):
        state = body(state)
    return state


def _floating(who: str, name: str, value: ArrayLike) -> Tracer | Array:
    """A start as an array."""
    dtype = dtype_of(value)
    if isinstance(value, int) or (dtype.kind in "iu" and not isinstance(value, Tracer)):
        value = np.asarray(value, np.float64)
        dtype = value.dtype
    if not is_differentiable_dtype(dtype) or dtype.kind == "c":
        raise TypeError(f"{who}: {name} is {aval_of(value)}{here()}; it must be real and floating")
    return value if isinstance(value, Tracer) else np.asarray(value)


def _resolution(*values: ArrayLike) -> float:
    """The least relative tolerance that is of use in the precision of some numbers."""
    return 4 * float(np.finfo(np.result_type(*map(dtype_of, values))).eps)


# one unknown ------------------------------------------------------------------------------------


@boundary
def newton(
    func: Callable[..., Any],
    x0: ArrayLike,
    fprime: Callable[..., Any] | None = None,
    args: tuple[Any, ...] = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
) -> Any:
    """Find a root of a function of one number by Newton's method, element by element.

    Args:
      func: function ``(x, *args)`` of an array that acts on each element; derivatives are taken in
        ``args`` and in the traced values that it refers to.
      x0: start, an array of any shape.
      fprime: derivative, by default exact.
      args: further arguments.
      tol: the iteration ends when no element of a step is longer, or longer than the numbers
        resolve.
      maxiter: greatest number of steps.

    Returns:
      The roots, with the shape of ``x0``; NaN in staged programs where it has not ended.

    Raises:
      ConvergenceError: the iteration has not converged.

    Example:
      >>> import functrans as ft
      >>> square_root = ft.jit(lambda a: newton(lambda x, a: x * x - a, 1.0, args=(a,)))
      >>> square_root(2.0), ft.grad(square_root)(4.0)
      (array(1.41421356), array(0.25))
    """
    who = f"newton of {name_of(func)}"
    func = forked(traced_form("newton", func), "newton", is_pure=True)
    if fprime is not None:
        fprime = forked(traced_form("newton: fprime", fprime), "newton: fprime", is_pure=True)
    args = further_arguments(args)
    start = _floating("newton", "x0", x0)

    def solver(x: Any, *own: Any) -> Any:
        def slope(x: ArrayLike) -> Any:
            if fprime is not None:
                return fprime(x, *own)
            return grad(lambda v: np.sum(func(v, *own)))(x)

        def body(state: Any) -> tuple[Any, Any, Any]:
            x, _, k = state
            value = func(x, *own)
            step = np.where(value == 0, 0.0 * x, value / slope(x))
            size = np.abs(step)
            size = np.where(size <= _resolution(x) * np.abs(x), 0.0 * size, size)
            return x - step, np.max(size, initial=0.0), k + 1

        def goes_on(state: Array) -> Any:
            _, size, k = state
            return ~(size <= tol) & (k < maxiter)

        first = (x, np.full((), np.inf, dtype_of(x)) + 0.0 * np.sum(func(x, *own)), np.int64(0))
        with np.errstate(all="ignore"):
            x, size, k = _loop(goes_on, body, body(first))
        return _flagged(
            who, x, size <= tol, lambda: f"after {int(k)} steps the last was {float(size):.3g}, "
            f"longer than {tol:g}; start nearer to the root or allow more steps (maxiter)",
        )  # fmt: skip

    def diagonal(matvec: Callable[[Any], Any], b: Array) -> Any:
        return b / matvec(np.ones(shape_of(b), dtype_of(b)))

    call = implicit_diff(func, solve=diagonal, symmetric=True, traceable=True, tol=None)(solver)
    return own_array(call(start, *args))


def _bracketed(
    name: str,
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: tuple[Any, ...],
    xtol: float,
    rtol: float,
    maxiter: int,
    search: Callable[..., Any],
) -> Array:
    """The root in a bracket, with its derivative."""
    who = f"{name} of {name_of(f)}"
    f = forked(traced_form(name, f), name, is_pure=True)
    args = further_arguments(args)
    low, high = _floating(name, "a", a), _floating(name, "b", b)
    for what, value in (("a", low), ("b", high)):
        if shape_of(value):
            raise TypeError(
                f"{name}: {what} is {aval_of(value)}{here()}; a bracket is of two numbers: use "
                "ft.vmap for several"
            )

    def solver(ends: Array, *own: ArrayLike) -> Array:
        low, high = ends

        def value(x: ArrayLike) -> Any:
            return f(x, *own)

        f_low, f_high = value(low), value(high)
        has_change = np.sign(f_low) * np.sign(f_high) <= 0
        if not isinstance(has_change, Tracer) and not has_change:
            raise ValueError(
                f"{who}: f(a) = {float(f_low):.3g} and f(b) = {float(f_high):.3g} have one sign"
                f"{here()}; give an interval in which the function changes sign"
            )
        least = max(rtol, _resolution(low, high))
        x, is_found, k = search(value, low, high, f_low, f_high, xtol, least, maxiter)
        return _flagged(
            who, x, is_found & has_change, lambda: f"{int(k)} steps were not enough; allow more "
            "(maxiter) or a larger xtol",
        )  # fmt: skip

    def condition(x: ArrayLike, *own: ArrayLike) -> Any:
        return f(x, *own)

    def divided(matvec: Callable[[Any], Any], b: ArrayLike) -> Array:
        return b / matvec(np.ones((), dtype_of(b)))

    call = implicit_diff(condition, solve=divided, symmetric=True, traceable=True, tol=None)(solver)
    return own_array(call((low, high), *args))


def _bisection(
    f: Callable[..., Any],
    low: Any,
    high: Any,
    f_low: Any,
    f_high: ArrayLike,
    xtol: Array,
    rtol: Array,
    maxiter: int,
) -> tuple[Array, ...]:
    def body(state: Any) -> tuple[Any, ...]:
        low, high, f_low, _, k = state
        middle = low + 0.5 * (high - low)
        value = f(middle)
        is_left = np.sign(value) * np.sign(f_low) > 0
        is_zero = value == 0
        new_low = np.where(is_zero | is_left, middle, low)
        new_high = np.where(is_zero | ~is_left, middle, high)
        return new_low, new_high, np.where(is_left, value, f_low), middle, k + 1

    def goes_on(state: Array) -> Array:
        low, high, _, middle, k = state
        return (np.abs(high - low) > xtol + rtol * np.abs(middle)) & (k < maxiter)

    low, high = (
        np.where(f_high == 0, high, low), np.where((f_low == 0) & (f_high != 0), low, high)
    )  # fmt: skip
    low, high, _, _, k = _loop(goes_on, body, (low, high, f_low, low, np.int64(0) + 0 * _zero(low)))
    middle = low + 0.5 * (high - low)
    return middle, np.abs(high - low) <= xtol + rtol * np.abs(middle), k


def _zero(x: Array) -> Array:
    """An integer 0 that belongs to the trace of a value."""
    return (x != x).astype(np.int64) * 0


def _brent(
    f: Any, low: Any, high: Any, f_low: Any, f_high: Any, xtol: object, rtol: object, maxiter: int
) -> Any:
    """Brent, ch. 4, section 3.

    ``b`` is the best point, ``c`` on the other side, ``a`` the one before ``b``.
    """

    def body(state: Any) -> tuple[Array, ...]:
        a, b, c, fa, fb, fc, d, e, k = state
        is_same = np.sign(fb) * np.sign(fc) > 0
        c, fc = np.where(is_same, a, c), np.where(is_same, fa, fc)
        d, e = np.where(is_same, b - a, d), np.where(is_same, b - a, e)
        swap = np.abs(fc) < np.abs(fb)
        a, b, c = np.where(swap, b, a), np.where(swap, c, b), np.where(swap, b, c)
        fa, fb, fc = np.where(swap, fb, fa), np.where(swap, fc, fb), np.where(swap, fb, fc)
        tol = 0.5 * (xtol + rtol * np.abs(b))
        m = 0.5 * (c - b)
        s = fb / np.where(fa == 0, 1.0, fa)
        q, r = fa / np.where(fc == 0, 1.0, fc), fb / np.where(fc == 0, 1.0, fc)
        is_secant = a == c
        p = np.where(is_secant, 2 * m * s, s * (2 * m * q * (q - r) - (b - a) * (r - 1)))
        q = np.where(is_secant, 1 - s, (q - 1) * (r - 1) * (s - 1))
        q = np.where(p > 0, -q, q)
        p = np.abs(p)
        may = (np.abs(e) >= tol) & (np.abs(fa) > np.abs(fb))
        may = may & (2 * p < np.minimum(3 * m * q - np.abs(tol * q), np.abs(e * q))) & (q != 0)
        step = np.where(may, p / np.where(q == 0, 1.0, q), m)
        d, e = step, np.where(may, d, m)
        is_done = (np.abs(m) <= tol) | (fb == 0)
        move = np.where(np.abs(d) > tol, d, np.where(m > 0, tol, -tol))
        new = np.where(is_done, b, b + move)
        f_new = f(new)
        return (
            np.where(is_done, a, b), new, c, np.where(is_done, fa, fb), f_new, fc, d, e, k + 1
        )  # fmt: skip

    def is_found(state: Any) -> Any:
        _, b, c, _, fb, fc, _, _, _ = state
        is_across = np.sign(fb) * np.sign(fc) <= 0
        return (fb == 0) | (is_across & (np.abs(c - b) <= xtol + rtol * np.abs(b)))

    def goes_on(state: Array) -> Array:
        return ~is_found(state) & (state[8] < maxiter)

    start = (
        low, high, low, f_low, f_high, f_low, high - low, high - low, np.int64(0) + _zero(low)
    )  # fmt: skip
    zero_at_low = f_low == 0
    start = (
        low, np.where(zero_at_low, low, high), low, f_low, np.where(zero_at_low, f_low, f_high),
        *start[5:],
    )  # fmt: skip
    state = _loop(goes_on, body, start)
    return state[1], is_found(state), state[8]


@boundary
def bisect(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: tuple[Any, ...] = (),
    xtol: float = 2e-12,
    rtol: float = 8.881784197001252e-16,
    maxiter: int = 100,
) -> Array:
    """Find the root of a continuous function between two numbers by bisection.

    Args:
      f: function ``(x, *args)`` of a number; derivatives are taken in ``args`` and in the traced
        values that it refers to.
      a: one end of the bracket.
      b: the other end; ``f(a)`` and ``f(b)`` have different signs.
      args: further arguments.
      xtol: absolute tolerance.
      rtol: relative tolerance, at least four times the precision of the numbers.
      maxiter: greatest number of steps.

    Returns:
      The root; NaN in staged programs if there is no change of sign or ``maxiter`` is too small.

    Raises:
      ValueError: ``f(a)`` and ``f(b)`` have one sign.
      ConvergenceError: ``maxiter`` is too small.

    Example:
      >>> bisect(lambda x: x**3 - 2.0, 0.0, 2.0)
      array(1.25992105)
    """
    return _bracketed("bisect", f, a, b, args, xtol, rtol, maxiter, _bisection)


@boundary
def brentq(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: tuple[Any, ...] = (),
    xtol: float = 2e-12,
    rtol: float = 8.881784197001252e-16,
    maxiter: int = 100,
) -> Array:
    """Find the root of a continuous function between two numbers by Brent's method.

    Arguments, result and errors as :func:`bisect`, with fewer evaluations for smooth functions.

    Example:
      >>> import functrans as ft
      >>> brentq(lambda x: np.cos(x) - x, 0.0, 1.0)
      array(0.73908513)
      >>> ft.vmap(lambda c: brentq(lambda x: x**3 - c, 0.0, 3.0))(np.array([1.0, 8.0]))
      array([1., 2.])
    """
    return _bracketed("brentq", f, a, b, args, xtol, rtol, maxiter, _brent)


# systems ----------------------------------------------------------------------------------------


@boundary
def root_newton(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    tol: float = 1e-10,
    maxiter: int = 100,
    solve: str | LinearSolver = "auto",
) -> Any:
    """Find a root of a system by Newton's method with backtracking.

    Args:
      fun: function ``(x, *args)`` of a pytree that returns one like it; derivatives are taken in
        ``args`` and in the traced values that it refers to.
      x0: start, a pytree of real floating-point arrays.
      args: further arguments.
      tol: the iteration ends when the norm of a step is at most ``tol * (1 + norm(x))``; at least
        four times the precision of the numbers.
      maxiter: greatest number of steps.
      solve: how the linear systems of derivatives are solved; see ``ft.implicit_diff``.

    Returns:
      ``x``; NaN in staged programs that have not converged.

    Raises:
      ConvergenceError: the iteration has not converged.
      LinAlgError: the Jacobian is singular at a point on the way.

    Example:
      >>> import functrans as ft
      >>> def circle_and_line(p, r):
      ...     return np.array([p[0] ** 2 + p[1] ** 2 - r**2, p[0] - p[1]], like=p)
      >>> root = ft.jit(lambda r: root_newton(circle_and_line, np.array([1.0, 0.5]), (r,)))
      >>> root(np.sqrt(2.0)), ft.jacobian(root)(np.sqrt(2.0))
      (array([1., 1.]), array([0.70710678, 0.70710678]))
    """
    who = f"root_newton of {name_of(fun)}"
    fun = forked(traced_form("root_newton", fun), "root_newton", is_pure=True)
    args = further_arguments(args)
    start = Space("root_newton", x0, "x0")
    least = max(tol, _resolution(np.zeros(0, start.dtype)))

    def solver(x: Any, *own: Array) -> Any:
        space = Space(who, x, "x0")

        def residual(v: ArrayLike) -> Any:
            return space.ravel(fun(space.unravel(v), *own), "the result of fun")

        def body(state: Any) -> tuple[Any, Any, Any, Any]:
            x, f, _, k = state
            step = -_newton_step(who, jacfwd(residual)(x), f)
            x, f, _ = _backtrack(residual, x, f, step)
            return x, f, _size(step) / (1.0 + _size(x)), k + 1

        def goes_on(state: Array) -> Any:
            _, _, size, k = state
            return ~(size <= least) & (k < maxiter)

        vector = space.ravel(x, "x0")
        f = residual(vector)
        first = (vector + 0.0 * f, f, np.inf + 0.0 * _size(f), np.int64(0))
        vector, f, size, k = _loop(goes_on, body, first)
        flagged = _flagged(
            who, vector, size <= least,
            lambda: f"after {int(k)} steps the last one was {float(size):.3g} of x in norm, more "
            f"than {least:g}, and the residual {float(_size(f)):.3g}; start nearer to the root or "
            "allow more steps (maxiter)",
        )  # fmt: skip
        return space.unravel(flagged)

    call = implicit_diff(fun, solve=solve, traceable=True, tol=None)(solver)
    return call(start.unravel(start.ravel(x0, "x0")), *args)


def _newton_step(who: str, matrix: Array, f: Array) -> Any:
    """The solution of the linear system."""
    try:
        return np.linalg.solve(matrix, f)
    except np.linalg.LinAlgError as error:
        raise np.linalg.LinAlgError(
            f"{who}: the Jacobian is singular at a point on the way to the root ({error}){here()}; "
            "start elsewhere"
        ) from None


def _size(vector: Any) -> Any:
    return np.sqrt(np.sum(vector * vector))


def _backtrack(residual: Callable[[Any], Any], x: Any, f: Array, step: Any) -> Any:
    """The first of halved steps that reduces the norm of the residual, or a very short one."""
    size = _size(f)

    def goes_on(state: Array) -> Array:
        _, new, t = state
        return ~(_size(new) <= (1.0 - 1e-4 * t) * size) & (t > 1e-10)

    def body(state: Any) -> tuple[Array, ...]:
        _, _, t = state
        t = 0.5 * t
        return x + t * step, residual(x + t * step), t

    ahead = x + step
    return _loop(goes_on, body, (ahead, residual(ahead), 1.0 + 0.0 * size))


# minimisation -----------------------------------------------------------------------------------


class MinimizeResult(NamedTuple):
    """Result of ``minimize_bfgs``; its fields are named as in SciPy's ``OptimizeResult``.

    Attributes:
      x: the minimum, a pytree like the start.
      success: whether the gradient is below the tolerance.
      fun: the value there.
      jac: the gradient there, a pytree like ``x``.
      nit: number of steps.
      nfev: number of evaluations of value and gradient.
    """

    x: Any
    success: Any
    fun: Any
    jac: Any
    nit: Any
    nfev: Any


@boundary
def minimize_bfgs(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    *,
    gtol: float = 1e-5,
    maxiter: int | None = None,
    solve: str | LinearSolver = "auto",
) -> MinimizeResult:
    """Minimise a function by the method of Broyden, Fletcher, Goldfarb and Shanno.

    Args:
      fun: function ``(x, *args)`` of a pytree with a real scalar result; derivatives are taken in
        ``args`` and in the traced values that it refers to.
      x0: start, a pytree of real floating-point arrays.
      args: further arguments.
      gtol: the iteration ends when no component of the gradient is larger.
      maxiter: greatest number of steps, by default 200 for each unknown.
      solve: how the linear systems of derivatives are solved; see ``ft.implicit_diff``.

    Returns:
      A ``MinimizeResult``. One that has not converged has ``success=False``; its ``x`` is the best
      point found, and derivatives of that have no meaning. ``x`` and ``fun`` have derivatives,
      those of the minimum; the gradient ``jac`` stays 0 there.

    Raises:
      TypeError: ``x0`` is complex or of integers.

    Example:
      >>> import functrans as ft
      >>> from functrans.scipy.optimize import rosen
      >>> solve = ft.jit(lambda x0: minimize_bfgs(rosen, x0))
      >>> result = solve(np.array([-1.2, 1.0]))
      >>> np.round(result.x, 4), bool(result.success)
      (array([1., 1.]), True)
    """
    who = f"minimize_bfgs of {name_of(fun)}"
    fun = forked(traced_form("minimize_bfgs", fun), "minimize_bfgs", is_pure=True)
    args = further_arguments(args)
    start = Space("minimize_bfgs", x0, "x0")
    if start.dtype.kind == "c":
        raise TypeError(f"minimize_bfgs: x0 is complex{here()}; make its parts two unknowns")
    limit = 200 * max(1, start.size) if maxiter is None else maxiter

    def solver(x: Array, *own: object) -> tuple[Any, ...]:
        space = Space(who, x, "x0")

        def both(v: ArrayLike) -> tuple[Any, Any]:
            return value_and_grad(lambda w: fun(space.unravel(w), *own))(v)

        vector, value, g, k, count = _bfgs(both, space.ravel(x, "x0"), gtol, limit)
        largest = np.max(np.abs(g), initial=0.0)
        return space.unravel(vector), (largest <= gtol, value, space.unravel(g), k, count)

    call = implicit_diff(
        grad(fun), solve=solve, has_aux=True, symmetric=True, traceable=True, tol=None
    )(solver)
    x, (success, value, g, k, count) = call(start.unravel(start.ravel(x0, "x0")), *args)
    if any(isinstance(leaf, Tracer) for leaf in tree.leaves(x)):
        value = fun(x, *args)  # which has derivatives
    return MinimizeResult(x, success, value, g, k, count)


def _bfgs(both: Callable[[Any], Any], x: ArrayLike, gtol: float, maxiter: int) -> tuple[Any, ...]:
    """Nocedal & Wright, algorithm 6.1: point, value, gradient, steps, evaluations."""
    n, dtype = shape_of(x)[0], dtype_of(x)
    eye = np.eye(n, dtype=dtype)
    value, g = both(x)

    def body(state: Any) -> tuple[Array, Array, Array, Array, Array, Array, Array]:
        x, value, g, inverse, k, count, _ = state
        p = -(inverse @ g)
        slope = np.sum(g * p)
        is_down = slope < 0
        p = np.where(is_down, p, -g)
        slope = np.where(is_down, slope, -np.sum(g * g))
        first = np.where(k == 0, np.minimum(1.0, 1.0 / np.maximum(np.sum(np.abs(g)), 1e-300)), 1.0)
        t, new_value, new_g, tries, is_found = _wolfe(both, x, value, slope, p, first + 0.0 * slope)
        s, y = t * p, new_g - g
        sy, yy = np.sum(s * y), np.sum(y * y)
        is_curved = sy > 1e-10 * np.sqrt(np.sum(s * s) * yy)
        # The first matrix is scaled by the curvature that was found (6.20).
        scaled = np.where(k == 0, eye * (sy / np.where(yy == 0, 1.0, yy)), inverse)
        rho = 1.0 / np.where(is_curved, sy, 1.0)
        left = eye - rho * s[:, None] * y[None, :]
        updated = left @ scaled @ left.T + rho * s[:, None] * s[None, :]
        inverse = np.where(is_curved & is_found, updated, eye)
        return (
            np.where(is_found, x + s, x), np.where(is_found, new_value, value),
            np.where(is_found, new_g, g), inverse, k + 1, count + tries,
            ~is_found & ~(np.sum(np.abs(state[3] - eye)) > 0),
        )  # fmt: skip

    def goes_on(state: Array) -> Array:
        _, _, g, _, k, _, is_stuck = state
        return ~(np.max(np.abs(g), initial=0.0) <= gtol) & (k < maxiter) & ~is_stuck

    zero = np.int64(0) + 0 * (value != value).astype(np.int64)
    start = (x + 0.0 * g, value, g, eye + 0.0 * value, zero, zero + 1, zero != 0)
    x, value, g, _, k, count, _ = _loop(goes_on, body, start)
    return x, value, g, k, count


def _wolfe(
    both: Callable[[Any], Any], x: Array, value: Array, slope: Array, p: Array, t: Array
) -> tuple[Array, ...]:
    """A step with sufficient decrease and curvature (weak Wolfe conditions), by bisection.

    Length, value, gradient, number of evaluations, whether there is decrease. Reference: Lewis &
    Overton, Nonsmooth optimization via quasi-Newton methods, Math. Program. 141 (2013), 135-163.
    """

    def evaluate(t: Array, low: Array, high: Array, k: Array) -> tuple[Array, ...]:
        new, g = both(x + t * p)
        decreases = new <= value + 1e-4 * t * slope
        is_flat = np.sum(g * p) >= 0.9 * slope
        # Where values differ by rounding only, the slope tells (Hager & Zhang's approximate test).
        noise = 1e-13 * np.abs(value)
        is_small = (new <= value + noise) & (np.sum(g * p) <= -0.998 * slope) & is_flat
        good = (decreases | is_small) & np.isfinite(new)
        low = np.where(good, t, low)
        high = np.where(good, high, t)
        following = np.where(np.isfinite(high), 0.5 * (low + high), 2.0 * t)
        return t, new, g, low, high, k + 1, good & is_flat, good, following

    def body(state: Any) -> tuple[Array, ...]:
        _, _, _, low, high, k, _, _, following = state
        return evaluate(following, low, high, k)

    def goes_on(state: Array) -> Array:
        return ~state[6] & (state[5] < 50)

    none = 0 * (value != value).astype(np.int64)
    start = evaluate(t, 0.0 * t, np.inf + 0.0 * t, none)
    t, new, g, _, _, k, is_found, good, _ = _loop(goes_on, body, start)
    return t, new, g, k, is_found | good
