"""Quadrature of ``scipy.integrate``: rules on samples, and adaptive integration of functions.

Here: ``trapezoid``, ``simpson`` and their cumulative forms, ``romb``, ``fixed_quad``, ``quad``,
``quad_vec``, ``dblquad``. Not here: initial value problems (``odes``).

``quad`` bisects the piece with the largest error estimate until the sum of estimates is small, as
QUADPACK does, with the Gauss-Kronrod rule of 21 points. That search carries no derivative. The
result is then the sum of the rule over the pieces that were found, as a function of the limits and
of all that the integrand depends on; its derivative is the same rule applied to the derivative of
the integrand, and at the limits the values of the integrand (Leibniz). The pieces suit the
integrand: where a derivative of it is much rougher, ask for a smaller tolerance.

Reference: Piessens et al., QUADPACK (1983); Kronrod, Nodes and weights of quadrature formulas
(1965).

Layer: ``scipy``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.control.custom_rules import stop_gradient
from functrans.control.scanning import while_loop
from functrans.core.arguments import further_arguments
from functrans.core.boundary import boundary, warn
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ConcretizationError, ShapeError, UnsupportedOperationError
from functrans.jitted.forks import forked
from functrans.numpy.common import layout_of
from functrans.primitives.structural import cast, normalize_axis
from functrans.scipy.dispatch import floats, implements, plain
from functrans.transforms.vectorize import vmap

# rules on samples -------------------------------------------------------------------------------


def _samples(name: str, y: ArrayLike, x: Any, axis: int) -> tuple[Any, Any, int]:
    """Samples with the axis last, widths of intervals (``None`` for equal ones), and the axis."""
    (y,) = floats(y)
    axis = normalize_axis(axis, len(shape_of(y)), "axis")
    moved = fnp.moveaxis(y, axis, -1)
    if x is None:
        return moved, None, axis
    (x,) = floats(x)
    if len(shape_of(x)) > 1:
        x = fnp.moveaxis(x, axis, -1)
    if shape_of(x)[-1:] != shape_of(moved)[-1:]:
        raise ShapeError(
            f"{name}: {shape_of(x)[-1:]} abscissas for samples of shape {shape_of(y)} along axis "
            f"{axis}{here()}"
        )
    return moved, fnp.diff(x, axis=-1), axis


def _started(out: Array | None, initial: object, axis: int) -> Array:
    """Cumulative results with a first element, if one is given."""
    if initial is not None:
        shape = (*shape_of(out)[:-1], 1)
        first = fnp.broadcast_to(cast(fnp.asarray(initial), dtype_of(out)), shape)
        out = fnp.concatenate((first, out), axis=-1)
    return fnp.moveaxis(out, -1, axis)


def _quotient(x: ArrayLike, y: ArrayLike) -> Any:
    """``x / y``, 0 where ``y`` is 0: two samples at one place."""
    if isinstance(y, (int, float)):
        return x / y if y else 0.0
    is_zero = y == 0
    return fnp.where(is_zero, 0, x / fnp.where(is_zero, 1, y))


def _parabolas(y: Any, widths: Any, dx: Any) -> Array:
    """Simpson's rule for an odd number of samples."""
    first, middle, last = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if widths is None:
        return fnp.sum(first + 4 * middle + last, axis=-1) * (dx / 3)
    h0, h1 = widths[..., ::2], widths[..., 1::2]
    both = h0 + h1
    product = h0 * h1
    terms = (
        first * (2 - _quotient(h1, h0))
        + middle * _quotient(both * both, product)
        + last * (2 - _quotient(h0, h1))
    )
    return fnp.sum(both / 6 * terms, axis=-1)


@implements("integrate.simpson")
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral by Simpson's rule, as ``scipy.integrate.simpson``.

    An even number of samples ends with the parabola through the last three. Of abscissas that are
    equal the parabola is not known; as in SciPy, its quotients count as 0.

    Reference: Cartwright, Simpson's rule cumulative integration with MS Excel and irregularly
    spaced data, J. Math. Sci. & Math. Education 11 (2016).
    """
    y, widths, _ = _samples("simpson", y, x, axis)
    n = shape_of(y)[-1]
    if n % 2:
        return _parabolas(y, widths, dx)
    if n == 2:
        return (y[..., 0] + y[..., 1]) * 0.5 * (dx if widths is None else widths[..., 0])
    start = None if widths is None else widths[..., :-1]
    total = _parabolas(y[..., :-1], start, dx)
    h0, h1 = (dx, dx) if widths is None else (widths[..., -2], widths[..., -1])
    alpha = _quotient(2 * h1 * h1 + 3 * h0 * h1, 6 * (h1 + h0))
    beta = _quotient(h1 * h1 + 3 * h0 * h1, 6 * h0)
    eta = _quotient(h1 * h1 * h1, 6 * h0 * (h0 + h1))
    return total + alpha * y[..., -1] + beta * y[..., -2] - eta * y[..., -3]


@implements("integrate.cumulative_simpson")
def cumulative_simpson(
    y: Any, *, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: Any = None
) -> Array:
    """Integrals up to each sample by Simpson's rule, as ``scipy.integrate.cumulative_simpson``.

    Less than three samples are integrated by the trapezoidal rule.
    """
    y, widths, own = _samples("cumulative_simpson", y, x, axis)
    n = shape_of(y)[-1]
    if n < 3:
        means = (y[..., 1:] + y[..., :-1]) * 0.5
        out = fnp.cumsum(means * (dx if widths is None else widths), axis=-1)
        return _started(out if initial is None else out + initial, initial, own)

    def first_intervals(y: Any, widths: Any) -> Any:
        """The integral of each parabola over the first of its two intervals."""
        f1, f2, f3 = y[..., :-2], y[..., 1:-1], y[..., 2:]
        if widths is None:
            return (1.25 * f1 + 2 * f2 - 0.25 * f3) * (dx / 3)
        h1, h2 = widths[..., :-1], widths[..., 1:]
        part = h1 / (h1 + h2)
        cross = part * (h1 / h2)
        return h1 / 6 * ((3 - part) * f1 + (3 + cross + part) * f2 - cross * f3)

    left = first_intervals(y, widths)
    mirrored = first_intervals(y[..., ::-1], None if widths is None else widths[..., ::-1])
    right = mirrored[..., ::-1]
    k = np.arange(n - 1)
    from_right = (k % 2 == 1) | (k == n - 2)
    place = np.where(from_right, n - 2 + np.maximum(k - 1, 0), k)
    pieces = fnp.take(fnp.concatenate((left, right), axis=-1), place, axis=-1)
    out = fnp.cumsum(pieces, axis=-1)
    if initial is not None:
        out = out + initial
    return _started(out, initial, own)


@implements("integrate.romb")
def romb(y: Any, dx: Any = 1.0, axis: int = -1, show: bool = False) -> Array:
    """Romberg's integration of ``2**k + 1`` equidistant samples, as ``scipy.integrate.romb``.

    Raises:
      ValueError: the number of samples is another one.
    """
    y, _, _ = _samples("romb", y, None, axis)
    count = shape_of(y)[-1] - 1
    levels = count.bit_length() - 1
    if count < 1 or 1 << levels != count:
        raise ValueError(f"romb: {count + 1} samples; expected one plus a power of 2{here()}")
    width = dx * count
    row = [(y[..., 0] + y[..., -1]) * 0.5 * width]
    step = count
    for i in range(1, levels + 1):
        width = width * 0.5
        middle = y[..., step // 2 : count : step]
        step //= 2
        new = [row[0] * 0.5 + width * fnp.sum(middle, axis=-1)]
        for j in range(1, i + 1):
            new.append(new[-1] + (new[-1] - row[j - 1]) / (4**j - 1))
        row = new
    return row[-1]


# rules on functions -----------------------------------------------------------------------------


@boundary
def fixed_quad(
    func: Callable[..., Any], a: Any, b: Any, args: tuple[Any, ...] = (), n: int = 5
) -> tuple[Any, None]:
    """Gaussian quadrature of fixed order, as ``scipy.integrate.fixed_quad``.

    Args:
      func: function of a vector of points, which returns values along its last axis.
      a: lower limit.
      b: upper limit.
      args: further arguments of ``func``.
      n: number of points.

    Returns:
      ``(value, None)``.

    Raises:
      ValueError: a limit is infinite, where that is known.

    Example:
      >>> float(fixed_quad(lambda x: x**3, 0.0, 2.0)[0])
      4.0
    """
    for name, limit in (("a", a), ("b", b)):
        if not np.all(np.isfinite(_known(limit))):
            raise ValueError(
                f"fixed_quad: {name} is {limit}{here()}; Gaussian quadrature is for finite limits: "
                "use quad"
            )
    nodes, weights = np.polynomial.legendre.leggauss(n)
    half = (b - a) * 0.5
    return half * fnp.sum(weights * func(half * (nodes + 1) + a, *args), axis=-1), None


_NODES = np.array(
    [
        0.995657163025808080735527280689003, 0.973906528517171720077964012084452,
        0.930157491355708226001207180059508, 0.865063366688984510732096688423493,
        0.780817726586416897063717578345042, 0.679409568299024406234327365114874,
        0.562757134668604683339000099272694, 0.433395394129247190799265943165784,
        0.294392862701460198131126603103866, 0.148874338981631210884826001129720, 0.0,
    ]
)  # fmt: skip
_KRONROD = np.array(
    [
        0.011694638867371874278064396062192, 0.032558162307964727478818972459390,
        0.054755896574351996031381300244580, 0.075039674810919952767043140916190,
        0.093125454583697605535065465083366, 0.109387158802297641899210590325805,
        0.123491976262065851077958109585166, 0.134709217311473325928054001771707,
        0.142775938577060080797094273138717, 0.147739104901338491374841515972068,
        0.149445554002916905664936468389821,
    ]
)  # fmt: skip
NODES = np.concatenate([-_NODES, _NODES[-2::-1]])
"""Points of the Gauss-Kronrod rule on [-1, 1], ascending."""
KRONROD = np.concatenate([_KRONROD, _KRONROD[-2::-1]])
"""Their weights."""
GAUSS = np.zeros(21)
"""The weights of the Gaussian rule of 10 points, which are every other one."""
GAUSS[1::2] = np.polynomial.legendre.leggauss(10)[1]


def _substituted(
    function: Callable[[Any], Any], a: Any, b: Any
) -> tuple[Callable[[Any], Any], Any, Any]:
    """An integral over a finite interval, of the same value.

    ``x = a + (1 - t) / t`` takes ``(0, 1]`` to ``[a, inf)``; the whole line is folded at 0.
    """
    low, high = (layout_of(v) if isinstance(v, Tracer) else v for v in (a, b))
    if low is None or high is None:
        return _substituted_later(function, a, b)
    low_is_infinite, high_is_infinite = bool(np.isinf(low)), bool(np.isinf(high))
    if not low_is_infinite and not high_is_infinite:
        return function, a, b
    if low_is_infinite and high_is_infinite:
        if low == high:
            return lambda t: function(t) * 0, 0.0, 1.0
        sign = 1.0 if low < high else -1.0

        def folded(t: Any) -> Array:
            x = (1 - t) / t
            return (function(x) + function(-x)) * (sign / (t * t))

        return folded, 0.0, 1.0
    start, direction, outer = (
        (a, np.sign(high), 1.0) if high_is_infinite else (b, np.sign(low), -1.0)
    )

    def moved(t: Any) -> Any:
        x = start + direction * ((1 - t) / t)
        return function(x) * (outer * direction / (t * t))

    return moved, 0.0, 1.0


def _substituted_later(
    function: Callable[[Any], Any], a: ArrayLike, b: ArrayLike
) -> tuple[Callable[[Any], Any], Any, Any]:
    """``_substituted`` of limits whose values are not known: which kind it is, is traced, too.

    The whole line is ``x = u / (1 - u**2)`` with ``u = 2 t - 1``, which evaluates the integrand
    once.
    """
    a, b = floats(a, b)
    a_is_infinite, b_is_infinite = fnp.isinf(a), fnp.isinf(b)
    low, high = fnp.where(a_is_infinite, 0, a), fnp.where(b_is_infinite, 0, b)
    is_line = a_is_infinite & b_is_infinite
    is_half = a_is_infinite ^ b_is_infinite
    start = fnp.where(b_is_infinite, low, high)
    a_sign, b_sign = stop_gradient(fnp.sign(a)), stop_gradient(fnp.sign(b))
    direction = fnp.where(b_is_infinite, b_sign, a_sign)
    outer = fnp.where(b_is_infinite, 1.0, -1.0) * direction
    across = 0.5 * (b_sign - a_sign)

    def moved(t: Any) -> Any:
        u, rest = 2 * t - 1, 4 * t * (1 - t)
        x = fnp.where(is_half, start + direction * ((1 - t) / t), low + (high - low) * t)
        width = fnp.where(is_half, outer / (t * t), high - low)
        x = fnp.where(is_line, u / rest, x)
        width = fnp.where(is_line, across * (2 * (1 + u * u) / (rest * rest)), width)
        return function(x) * width

    return moved, 0.0, 1.0


def _rule(values: Any, half: Any) -> tuple[Any, Any]:
    """The Kronrod sum of ``[21, ...]`` and QUADPACK's estimate of its error."""
    rest = len(shape_of(values)) - 1
    k = fnp.tensordot(KRONROD, values, 1) * half
    gap = fnp.abs(fnp.tensordot(KRONROD - GAUSS, values, 1) * half)
    mean = k / (2 * half)
    spread = fnp.tensordot(KRONROD, fnp.abs(values - mean), 1) * fnp.abs(half)
    safe = fnp.where(spread == 0, 1, spread)
    ratio = fnp.minimum(1.0, (200 * gap / safe) ** 1.5)
    error = fnp.where((spread != 0) & (gap != 0), spread * ratio, gap)
    size = fnp.tensordot(KRONROD, fnp.abs(values), 1) * fnp.abs(half)
    error = fnp.maximum(error, size * (50 * float(np.finfo(np.float64).eps)) * (size > 1e-290))
    while rest:
        error, rest = fnp.max(error, axis=-1), rest - 1
    return k, error


def _search(
    many: Callable[[Any], Any],
    a: Any,
    b: Any,
    edges: np.ndarray,
    tolerance: tuple[float, float],
    limit: int,
) -> tuple[Any, Any, Any]:
    """Bisect until the error is small: left ends and widths in units of ``b - a``, and the number.

    ``many`` takes points ``[points]``.
    """
    pieces = len(edges) - 1
    scale = b - a

    def piece(left: Any, width: Any) -> tuple[Any, Any]:
        half = scale * (width * 0.5)
        return _rule(many(a + scale * (left + width * 0.5 * (NODES + 1))), half)

    first = [piece(left, width) for left, width in zip(edges[:-1], np.diff(edges), strict=True)]
    sums = fnp.stack([value for value, _ in first])
    errors = fnp.stack([error for _, error in first])
    extra = limit - pieces
    rest = len(shape_of(sums)) - 1
    start = (
        np.asarray(pieces),
        np.concatenate([edges[:-1], np.zeros(extra)]),
        np.concatenate([np.diff(edges), np.zeros(extra)]),
        fnp.pad(sums, [(0, extra)] + [(0, 0)] * rest),
        fnp.pad(errors, (0, extra)),
    )

    def is_open(state: Any) -> Any:
        count, _, _, sums, errors = state
        size = fnp.abs(fnp.sum(sums, axis=0))
        size = fnp.max(size) if rest else size
        allowed = fnp.maximum(tolerance[0], tolerance[1] * size)
        return (fnp.sum(errors) > allowed) & (count < limit)

    def bisect(state: Any) -> tuple[Any, Any, Any, Any, Any]:
        count, lefts, widths, sums, errors = state
        worst = fnp.argmax(errors)
        left, width = lefts[worst], widths[worst] * 0.5
        one, two = piece(left, width), piece(left + width, width)
        lefts = fnp.asarray(lefts, like=left).at[count].set(left + width)
        widths = fnp.asarray(widths, like=left).at[worst].set(width).at[count].set(width)
        sums = sums.at[worst].set(one[0]).at[count].set(two[0])
        errors = errors.at[worst].set(one[1]).at[count].set(two[1])
        return count + 1, lefts, widths, sums, errors

    count, lefts, widths, _, errors = while_loop(is_open, bisect, start)
    return lefts, widths, (count, fnp.sum(errors))


def _adaptive(
    name: str,
    function: Callable[[Any], Any],
    a: Any,
    b: Any,
    tolerance: tuple[float, float],
    limit: int,
    points: Any,
) -> tuple[Any, Any, Any]:
    """Value, error estimate and number of pieces of an integral."""
    if limit < 1:
        raise ValueError(f"{name}: limit must be at least 1, got {limit}{here()}")
    limits = [layout_of(v) if isinstance(v, Tracer) else v for v in (a, b)]
    function, a, b = _substituted(function, a, b)
    edges = np.array([0.0, 1.0])
    if points is not None:
        low, high = limits
        if low is None or high is None or np.isinf(low) or np.isinf(high):
            raise UnsupportedOperationError(
                f"scipy.integrate.{name} with points needs limits that are known and finite"
                f"{here()}; add up the integrals between the points"
            )
        inner = (np.sort(np.asarray(points, float)) - low) / (high - low)
        edges = np.concatenate([[0.0], np.unique(inner[(inner > 0) & (inner < 1)]), [1.0]])
        limit = max(limit, len(edges) - 1)
    many = vmap(forked(function, f"scipy.integrate.{name}"))
    lefts, widths, (count, error) = stop_gradient(
        _search(
            lambda x: stop_gradient(many(x)),
            stop_gradient(a),
            stop_gradient(b),
            edges,
            tolerance,
            limit,
        )
    )
    known = layout_of(count) if isinstance(count, Tracer) else count
    if known is not None:  # the other places are empty
        lefts, widths = lefts[: int(known)], widths[: int(known)]
    scale = b - a
    starts, steps = lefts[:, None], widths[:, None]
    places = starts + steps * (0.5 * (NODES + 1))
    # An empty place is evaluated in the middle, where the integrand is as tame as anywhere.
    places = fnp.where(steps == 0, 0.5, places)
    weights = steps * (0.5 * KRONROD)
    flat = fnp.reshape(a + scale * places, (-1,))
    values = many(flat)
    return fnp.tensordot(fnp.reshape(weights, (-1,)), values, 1) * scale, error, count


def _warn(name: str, error: Any, value: Any, tolerance: tuple[float, float], limit: int) -> None:
    """SciPy's warning where values are known and the tolerance was not reached."""
    known = [layout_of(v) if isinstance(v, Tracer) else v for v in (error, value)]
    if any(v is None for v in known):
        return
    size = float(np.max(np.abs(np.asarray(known[1])), initial=0.0))
    if float(known[0]) > max(tolerance[0], tolerance[1] * size):
        warn(
            f"{name}: the error is estimated as {float(known[0]):.3g} after {limit} pieces"
            f"{here()}; the integrand may be rough or the integral divergent. Give points= where "
            "it is rough, or a larger limit",
            plain("integrate.IntegrationWarning"),
        )


class _TracedIntegrandError(Exception):
    """An integrand gave a traced value, or asked for one that is not known."""


def _numbers(function: Any) -> Any:
    """A function that SciPy calls, which raises where its result is traced."""

    def call(*args: Any) -> Any:
        try:
            value = function(*args)
        except ConcretizationError as error:
            raise _TracedIntegrandError from error
        if isinstance(value, Tracer):
            raise _TracedIntegrandError
        return value

    return call if callable(function) else function


def _by_scipy(name: str, functions: Any, numbers: Any, *options: Any, **keywords: Any) -> Any:
    """An integral by SciPy; ``None`` where it depends on traced values.

    Args:
      name: of SciPy's function.
      functions: the integrand and, behind the limits, functions that are limits, or numbers.
      numbers: the limits, and further arguments of the integrand.
      *options: further arguments.
      **keywords: likewise.
    """
    func, *limits = functions
    a, b, args = numbers
    if any(isinstance(v, Tracer) for v in (a, b, *args, *limits)):
        return None
    limits = [_numbers(limit) for limit in limits]
    try:
        return plain(f"integrate.{name}")(
            _numbers(func), a, b, *limits, *options, args=args, **keywords
        )
    except _TracedIntegrandError:
        return None


@boundary
def quad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    args: object = (),
    full_output: int = 0,
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
    limit: int = 50,
    points: object = None,
    weight: str | None = None,
    wvar: object = None,
    wopts: object = None,
    maxp1: int = 50,
    limlst: int = 50,
    complex_func: bool = False,
) -> tuple[Any, ...]:
    """Integrate a function of one variable, as ``scipy.integrate.quad``.

    Args:
      func: function of a number, and of ``args``. Where the integral depends on traced values it is
        traced, too, once along each of its paths where it uses ``if``.
      a: lower limit, which may be infinite.
      b: upper limit, likewise.
      args: further arguments of ``func``, or one.
      full_output: whether a dictionary is added: ``last``, the number of pieces, ``neval``, and
        ``success``, whether the tolerance was reached.
      epsabs: absolute tolerance.
      epsrel: relative tolerance.
      limit: most pieces. In staging (``jit``, ``vmap``) there is room for all of them.
      points: places where the integrand is rough; the limits must then be known and finite.
      weight: as in SciPy; not for traced values, as all that belongs to it.
      wvar: see ``weight``.
      wopts: see ``weight``.
      maxp1: see ``weight``.
      limlst: see ``weight``.
      complex_func: whether the integrand is complex; a traced one may always be.

    Returns:
      ``(value, error)``: the second one is an estimate without derivative. It is above the
      tolerance where that was not reached; if values are known, there is a warning then.

    Raises:
      UnsupportedOperationError: ``weight`` is given.

    Example:
      >>> import functrans as ft
      >>> slope = ft.grad(lambda p: quad(lambda x: np.exp(-p * x), 0.0, np.inf)[0])(2.0)
      >>> round(float(slope), 12)
      -0.25
    """
    args = further_arguments(args)
    found: tuple[Any, ...] | None = _by_scipy(
        "quad", [func], (a, b, args), full_output=full_output, epsabs=epsabs, epsrel=epsrel,
        limit=limit, points=points, weight=weight, wvar=wvar, wopts=wopts, maxp1=maxp1,
        limlst=limlst, complex_func=complex_func,
    )  # fmt: skip
    if found is not None:
        return found
    if weight is not None:
        raise UnsupportedOperationError(
            f"scipy.integrate.quad with weight={weight!r} cannot be traced{here()}; multiply the "
            "integrand by the weight"
        )
    tolerance = (float(epsabs), float(epsrel))
    value, error, count = _adaptive(
        "quad", lambda x: func(x, *args), a, b, tolerance, int(limit), points
    )
    if len(shape_of(value)):
        raise ShapeError(
            f"quad: the integrand has values of shape {shape_of(value)}{here()}; use quad_vec"
        )
    if not full_output:
        _warn("quad", error, value, tolerance, int(limit))
        return value, error
    allowed = fnp.maximum(tolerance[0], tolerance[1] * fnp.abs(stop_gradient(value)))
    info = {"neval": 21 * (2 * count - 1), "last": count, "success": error <= allowed}
    return value, error, info


_VECTOR_LIMIT = 200


@boundary
def quad_vec(
    f: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    epsabs: float = 1e-200,
    epsrel: float = 1e-8,
    norm: str = "2",
    cache_size: float = 100e6,
    limit: int = 10000,
    workers: object = 1,
    points: object = None,
    quadrature: str | None = None,
    full_output: bool = False,
    *,
    args: object = (),
) -> tuple[Any, ...]:
    """Integrate a function whose values are arrays, as ``scipy.integrate.quad_vec``.

    Args:
      f: function of a number, and of ``args``.
      a: lower limit, which may be infinite.
      b: upper limit, likewise.
      epsabs: absolute tolerance.
      epsrel: relative tolerance.
      norm: traced, the error is that of the worst element.
      cache_size: as in SciPy; traced, it has no effect.
      limit: most pieces; traced, 200 at most.
      workers: as in SciPy; traced, it has no effect.
      points: places where the integrand is rough.
      quadrature: as in SciPy; traced, it is the Gauss-Kronrod rule of 21 points.
      full_output: as in SciPy; not for traced values.
      args: further arguments, or the only one.

    Returns:
      ``(value, error)``; see :func:`quad`. With ``full_output`` more, as SciPy.

    Raises:
      UnsupportedOperationError: there are traced values with ``full_output`` or another rule.
    """
    args = further_arguments(args)
    found: tuple[Any, ...] | None = _by_scipy(
        "quad_vec", [f], (a, b, args), epsabs, epsrel, norm, cache_size, limit, workers, points,
        quadrature, full_output,
    )  # fmt: skip
    if found is not None:
        return found
    if full_output or quadrature not in (None, "gk21"):
        raise UnsupportedOperationError(
            f"quad_vec of traced values{here()} returns (value, error) by the rule 'gk21', but got "
            f"full_output={full_output} and quadrature={quadrature!r}; leave them out"
        )
    tolerance = (float(epsabs), float(epsrel))
    pieces = min(int(limit), _VECTOR_LIMIT)
    value, error, _ = _adaptive("quad_vec", lambda x: f(x, *args), a, b, tolerance, pieces, points)
    _warn("quad_vec", error, value, tolerance, pieces)
    return value, error


_INNER_LIMIT = 20


@boundary
def dblquad(
    func: Callable[..., Any],
    a: ArrayLike,
    b: ArrayLike,
    gfun: object,
    hfun: Any,
    args: tuple[Any, ...] = (),
    epsabs: float = 1.49e-8,
    epsrel: float = 1.49e-8,
) -> tuple[Any, Any]:
    """Integrate a function of two variables, as ``scipy.integrate.dblquad``.

    Args:
      func: function ``(y, x, *args)`` of numbers.
      a: lower limit of ``x``.
      b: upper limit of ``x``.
      gfun: lower limit of ``y``: a number, or a function of ``x``.
      hfun: upper limit of ``y``, likewise.
      args: further arguments of ``func``.
      epsabs: absolute tolerance of both integrals.
      epsrel: relative tolerance of both.

    Returns:
      ``(value, error)``. Traced, either integral has 20 pieces at most, and the error is that of
      the outer one.
    """

    def bound(limit: object, x: ArrayLike) -> Any:
        return limit(x) if callable(limit) else limit

    found: tuple[Any, Any] | None = _by_scipy(
        "dblquad", [func, gfun, hfun], (a, b, args), epsabs=epsabs, epsrel=epsrel
    )
    if found is not None:
        return found
    tolerance = (float(epsabs), float(epsrel))

    def inner(x: Any) -> Any:
        return _adaptive(
            "dblquad",
            lambda y: func(y, x, *args),
            bound(gfun, x),
            bound(hfun, x),
            tolerance,
            _INNER_LIMIT,
            None,
        )[0]

    value, error, _ = _adaptive("dblquad", inner, a, b, tolerance, _INNER_LIMIT, None)
    _warn("dblquad", error, value, tolerance, _INNER_LIMIT)
    return value, error


def _known(x: Any) -> Any:
    """The value of a limit; 0 where it is not known, which stands for a finite one."""
    value = layout_of(x) if isinstance(x, Tracer) else x
    return 0.0 if value is None else value
