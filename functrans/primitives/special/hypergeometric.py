"""Hypergeometric functions, elliptic integrals, and integrals of elementary functions.

Here: records of these, and the functions that apply them. Not here: orthogonal polynomials
(``polynomials``), incomplete gamma and beta functions (``gamma``).

Elliptic integrals are differentiated by way of Carlson's symmetric ones, whose derivatives have
neither cancellation nor removable singularities. Those of ``elliprd`` and ``elliprj`` are taken by
a complex step, which is exact to rounding since SciPy's code holds for complex numbers (Squire and
Trapp, Using complex variables to estimate derivatives of real functions, 1998); further ones are
refused.

Layer: ``primitives.special``. Source: DLMF chapters 6, 13, 15, 16, 19, 22 and 25 for the
derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.core.primitive import Primitive
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute, real
from functrans.primitives.family import user_function
from functrans.primitives.special.family import refused_derivative, routine, special_primitive

ArrayFunction = Callable[..., Any]


def _fixed(name: str, count: int) -> tuple[Any, ...]:
    """Refused derivatives in the parameters of a function."""
    return tuple(refused_derivative(name, i, "a parameter") for i in range(count))


# hypergeometric ----------------------------------------------------------------------------------

hyp0f1_p: Primitive = special_primitive(
    "hyp0f1",
    (*_fixed("hyp0f1", 1), lambda t, a, b, y: t * (hyp0f1(a + 1, b) / a)),
    ("", "ab"),
    parameters="a",
    has_complex=True,
)
hyp1f1_p: Primitive = special_primitive(
    "hyp1f1",
    (*_fixed("hyp1f1", 2), lambda t, a, b, c, y: t * (hyp1f1(a + 1, b + 1, c) * (a / b))),
    ("", "", "abc"),
    parameters="ab",
    has_complex=True,
)
hyp2f1_p: Primitive = special_primitive(
    "hyp2f1",
    (
        *_fixed("hyp2f1", 3),
        lambda t, a, b, c, d, y: t * (hyp2f1(a + 1, b + 1, c + 1, d) * (a * b / c)),
    ),
    ("", "", "", "abcd"),
    parameters="abc",
    has_complex=True,
)
hyperu_p: Primitive = special_primitive(
    "hyperu",
    (*_fixed("hyperu", 2), lambda t, a, b, c, y: -t * (hyperu(a + 1, b + 1, c) * a)),
    ("", "", "abc"),
    parameters="ab",
)
wright_bessel_p: Primitive = special_primitive(
    "wright_bessel",
    (*_fixed("wright_bessel", 2), lambda t, a, b, c, y: t * wright_bessel(a, b + a, c)),
    ("", "", "abc"),
)

hyp0f1: ArrayFunction = user_function(hyp0f1_p, "The confluent limit function ``0F1(v; z)``.")
hyp1f1: ArrayFunction = user_function(hyp1f1_p, "Kummer's function ``1F1(a; b; z)``.")
hyp2f1: ArrayFunction = user_function(hyp2f1_p, "Gauss's function ``2F1(a, b; c; z)``.")
hyperu: ArrayFunction = user_function(hyperu_p, "Tricomi's function ``U(a, b, x)``.")
wright_bessel: ArrayFunction = user_function(
    wright_bessel_p, "Wright's generalised Bessel function."
)

# integrals of elementary functions ---------------------------------------------------------------


def _next_lower(a: Array | complex, x: Array, y: Array) -> Array:
    """``expn(a - 1, x)``; of order 0 by the recurrence of DLMF 8.19.12."""
    is_zero = a == 0
    return ew.where(is_zero, (ew.exp(-x) + y) / x, expn(ew.where(is_zero, 1, a) - 1, x))


def sine_ratio(x: Array) -> Array:
    """``sin(x) / x``, 1 at 0 and 0 at infinity."""
    is_near, is_end = absolute(x) < 0.25, ew.isinf(x)
    far = ew.where(is_near | is_end, 1, x)
    outer = ew.where(is_end, 0, ew.sin(far) / far)
    return ew.where(is_near, _ratio_series(is_near, x, -1.0), outer)


def _sinh_ratio(x: Array) -> Array:
    """``sinh(x) / x``, 1 at 0; far out in exponentials, which do not meet as infinities."""
    is_near = absolute(x) < 1
    far = ew.where(is_near, 1, x)
    outer = (exp_over(far) + exp_over(-far)) * 0.5
    return ew.where(is_near, _ratio_series(is_near, x, 1.0), outer)


def _ratio_series(is_near: Array, x: Array, sign: float) -> Array:
    """``sin(x) / x`` or ``sinh(x) / x`` near 0 by its series, so that its derivatives hold."""
    near = ew.where(is_near, x, 0)
    inner = near * near * sign
    series: Any = 1.0
    for k in range(9, 0, -1):
        series = 1 + inner * series / (2 * k * (2 * k + 1))
    return series


def _cosine_over(x: Array) -> Array:
    """``cos(x) / x``, 0 at infinity; at 0 the pole alone, whose derivatives are infinite."""
    is_zero, is_end = x == 0, ew.isinf(x)
    inner = ew.where(is_zero | is_end, 1, x)
    pole = 1 / ew.where(is_zero, x, 1)
    return ew.where(is_zero, pole, ew.where(is_end, 0, ew.cos(inner) / inner))


def _spence_slope(x: Array) -> Array:
    """``log(x) / (1 - x)``, -1 at 1; at 0 the logarithm alone, whose derivative is infinite."""
    is_near, is_zero = absolute(x - 1) < 0.4, x == 0
    near = hyp2f1(1.0, 1.0, 2.0, 1 - ew.where(is_near, x, 1))
    far = ew.where(is_near | is_zero, 2, x)
    pole = ew.log(ew.where(is_zero, x, 1))
    return ew.where(is_near, -near, ew.where(is_zero, pole, ew.log(far) / (1 - far)))


expn_p: Primitive = special_primitive(
    "expn",
    (refused_derivative("expn", 0, "the order"), lambda t, a, b, y: -t * _next_lower(a, b, y)),
    ("", "aby"),
    parameters="a",
)
exp1_p: Primitive = special_primitive(
    "exp1", (lambda t, x, y: t * exp_over(-x),), ("x",), has_complex=True
)


def _exp_over_slope(x: Array, y: Array) -> Array:
    finite = ew.where(ew.isinf(x), 2, x)
    return y * ((finite - 1) / finite)


# The rule of a quotient would be a difference of infinities where it overflows.
exp_over_p: Primitive = special_primitive(
    "exp_over",
    (lambda t, x, y: t * _exp_over_slope(x, y),),
    ("xy",),
    lambda x: np.exp(x) / np.where(np.isinf(x), x.dtype.type(1), x),
    has_complex=True,
    expansion=lambda x: ew.exp(x) / ew.where(ew.isinf(x), 1, x),
)
exp_over: ArrayFunction = user_function(exp_over_p, "``exp(x) / x``.")
expi_p: Primitive = special_primitive(
    "expi", (lambda t, x, y: t * exp_over(x),), ("x",), has_complex=True
)
sici_s_p: Primitive = special_primitive(
    "sici_s", (lambda t, x, y: t * sine_ratio(x),), ("x",), "sici", output=0, has_complex=True
)
sici_c_p: Primitive = special_primitive(
    "sici_c", (lambda t, x, y: t * _cosine_over(x),), ("x",), "sici", output=1, has_complex=True
)
shichi_s_p: Primitive = special_primitive(
    "shichi_s", (lambda t, x, y: t * _sinh_ratio(x),), ("x",), "shichi", output=0, has_complex=True
)
shichi_c_p: Primitive = special_primitive(
    "shichi_c",
    (lambda t, x, y: t * ((exp_over(x) - exp_over(-x)) * 0.5),),
    ("x",),
    "shichi",
    output=1,
    has_complex=True,
)
spence_p: Primitive = special_primitive(
    "spence", (lambda t, x, y: t * _spence_slope(x),), ("x",), has_complex=True
)
lambertw_p: Primitive = special_primitive(
    "lambertw",
    (
        lambda t, x, k, y: t * (ew.exp(-y) / (1 + y)),
        refused_derivative("lambertw", 1, "the branch"),
    ),
    ("y", ""),
    lambda x, k: routine("lambertw")(x, k),
    names="xk",
    integers="k",
    has_complex=True,
)


def _wrightomega_slope(y: Array) -> Array:
    """``y / (1 + y)``; right of 1 by the inverse, so that the next order does not cancel."""
    is_right = real(y) > 1
    right = 1 / (1 + 1 / ew.where(is_right, y, 1))
    left = ew.where(is_right, 1, y)
    return ew.where(is_right, right, left / (1 + left))


wrightomega_p: Primitive = special_primitive(
    "wrightomega", (lambda t, x, y: t * _wrightomega_slope(y),), ("y",), has_complex=True
)

expn: ArrayFunction = user_function(expn_p, "The exponential integral of order ``n``.")
exp1: ArrayFunction = user_function(exp1_p, "The exponential integral ``E1``.")
expi: ArrayFunction = user_function(expi_p, "The exponential integral ``Ei``.")
sici_s: ArrayFunction = user_function(sici_s_p, "The sine integral.")
sici_c: ArrayFunction = user_function(sici_c_p, "The cosine integral.")
shichi_s: ArrayFunction = user_function(shichi_s_p, "The hyperbolic sine integral.")
shichi_c: ArrayFunction = user_function(shichi_c_p, "The hyperbolic cosine integral.")
spence: ArrayFunction = user_function(
    spence_p, "Spence's function, the integral of ``log(t) / (1 - t)`` from 1."
)
lambertw: ArrayFunction = user_function(lambertw_p, "A branch of the Lambert W function.")
wrightomega: ArrayFunction = user_function(wrightomega_p, "Wright's omega function.")

# Carlson's integrals -----------------------------------------------------------------------------

_STEP = 1e-30


def _complex_step(name: str, position: int) -> Callable[..., Any]:
    """The derivative of a function of SciPy in one operand, on real arrays.

    At 0 it is infinite, since these integrals vary there as a root or a logarithm; at infinity 0.
    """

    def derivative(*operands: Array) -> Array:
        moved = [x.astype(np.complex128) for x in operands]
        # The step is small against the operand.
        is_zero, is_infinite = operands[position] == 0, np.isinf(operands[position])
        x = np.where(is_infinite, 1, operands[position])
        step = _STEP * np.where(is_zero, 1, np.abs(x))
        moved[position] = x + 1j * step
        slope = routine(name)(*moved).imag / step
        slope = np.where(is_zero & ~np.isnan(slope), -np.inf, slope)
        return np.where(is_infinite, slope * 0, slope)

    return derivative


def _stepped(name: str, of: str, position: int, count: int) -> Primitive:
    """The derivative of ``of`` in one operand, which has none itself."""
    what = f"the second derivative of {of}"
    return special_primitive(
        name,
        tuple(refused_derivative(name, i, what) for i in range(count)),
        ("",) * count,
        _complex_step(of, position),
        is_wide=True,
    )


def _rc_slopes(x: Array | complex, y: Any, value: Array) -> tuple[Any, Any]:
    """The derivatives of ``elliprc(x, y)`` (by way of ``elliprd`` where ``y`` is positive)."""
    is_regular = y > 0
    inner = ew.where(is_regular, y, 1)
    outer = ew.where(is_regular, -1, y)
    root = ew.sqrt(x)
    return (
        ew.where(
            is_regular, elliprd(inner, inner, x) * (-1 / 6), (value - 1 / root) / (2 * (outer - x))
        ),
        ew.where(
            is_regular,
            elliprd(x, inner, inner) * (-1 / 3),
            (value - root / outer) / (2 * (x - outer)),
        ),
    )


elliprc_p: Primitive = special_primitive(
    "elliprc",
    (lambda t, a, b, y: t * _rc_slopes(a, b, y)[0], lambda t, a, b, y: t * _rc_slopes(a, b, y)[1]),
    ("aby", "aby"),
)
elliprf_p: Primitive = special_primitive(
    "elliprf",
    (
        lambda t, a, b, c, y: t * (elliprd(b, c, a) * (-1 / 6)),
        lambda t, a, b, c, y: t * (elliprd(a, c, b) * (-1 / 6)),
        lambda t, a, b, c, y: t * (elliprd(a, b, c) * (-1 / 6)),
    ),
    ("abc", "abc", "abc"),
)
elliprd_x_p: Primitive = _stepped("elliprd_x", "elliprd", 0, 3)
elliprd_z_p: Primitive = _stepped("elliprd_z", "elliprd", 2, 3)
elliprd_p: Primitive = special_primitive(
    "elliprd",
    (
        lambda t, a, b, c, y: t * elliprd_x(a, b, c),
        lambda t, a, b, c, y: t * elliprd_x(b, a, c),
        lambda t, a, b, c, y: t * elliprd_z(a, b, c),
    ),
    ("abc", "abc", "abc"),
)
elliprg_p: Primitive = special_primitive(
    "elliprg",
    (
        lambda t, a, b, c, y: t * _rg_slope(b, c, a),
        lambda t, a, b, c, y: t * _rg_slope(a, c, b),
        lambda t, a, b, c, y: t * _rg_slope(a, b, c),
    ),
    ("abc", "abc", "abc"),
)


def _rg_slope(x: Array | complex, y: Array | complex, z: Array) -> Array:
    """The derivative of ``elliprg`` in ``z``: from its integral, ``t / (t+z) = 1 - z / (t+z)``."""
    rest = elliprd(x, y, ew.where(z == 0, 1, z)) * z  # 0 at 0, where ``elliprd`` is infinite
    return elliprf(x, y, z) * 0.25 - rest * (1 / 12)


elliprj_x_p: Primitive = _stepped("elliprj_x", "elliprj", 0, 4)
elliprj_p_p: Primitive = _stepped("elliprj_p", "elliprj", 3, 4)
elliprj_rj_p: Primitive = special_primitive(
    "elliprj",
    (
        lambda t, a, b, c, d, y: t * elliprj_x(a, b, c, d),
        lambda t, a, b, c, d, y: t * elliprj_x(b, a, c, d),
        lambda t, a, b, c, d, y: t * elliprj_x(c, a, b, d),
        lambda t, a, b, c, d, y: t * elliprj_p(a, b, c, d),
    ),
    ("abcd",) * 4,
)

elliprc: ArrayFunction = user_function(elliprc_p, "Carlson's degenerate integral ``RC(x, y)``.")
elliprf: ArrayFunction = user_function(
    elliprf_p, "Carlson's integral of the first kind ``RF(x, y, z)``."
)
elliprd: ArrayFunction = user_function(
    elliprd_p, "Carlson's integral of the second kind ``RD(x, y, z)``."
)
elliprg: ArrayFunction = user_function(
    elliprg_p, "Carlson's symmetric integral of the second kind ``RG(x, y, z)``."
)
elliprj: ArrayFunction = user_function(
    elliprj_rj_p, "Carlson's integral of the third kind ``RJ(x, y, z, p)``."
)
elliprd_x: ArrayFunction = user_function(elliprd_x_p, "The derivative of ``elliprd`` in ``x``.")
elliprd_z: ArrayFunction = user_function(elliprd_z_p, "The derivative of ``elliprd`` in ``z``.")
elliprj_x: ArrayFunction = user_function(elliprj_x_p, "The derivative of ``elliprj`` in ``x``.")
elliprj_p: ArrayFunction = user_function(elliprj_p_p, "The derivative of ``elliprj`` in ``p``.")

# Legendre's integrals ----------------------------------------------------------------------------
# With s = sin(phi): F = s RF(c**2, 1 - m s**2, 1) and E - F = -m s**3 / 3 RD(c**2, 1 - m s**2, 1)
# (DLMF 19.25.5, 19.25.9), so that F_m = s**3 / 6 RD(c**2, 1, 1 - m s**2) and
# E_m = -s**3 / 6 RD(c**2, 1 - m s**2, 1).


def _within_period(phi: Array | complex) -> tuple[Any, Any, Any]:
    """The number of half periods in an angle, and sine and cosine of what is left of it."""
    turns = ew.rint(phi * (1 / math.pi))
    rest = phi - turns * math.pi
    return turns, ew.sin(rest), ew.cos(rest)


def _first_kind_slope(phi: Array | complex, m: Array) -> Array:
    turns, s, c = _within_period(phi)
    partial = s * s * s * elliprd(c * c, 1.0, 1 - m * (s * s))
    # The complete integral is infinite for m = 1: it is left out, not multiplied by 0.
    whole = elliprd(0.0, 1.0, 1 - ew.where(turns == 0, 0, m))
    return (partial + 2 * turns * whole) * (1 / 6)


def _second_kind_slope(phi: Array | complex, m: Array) -> Array:
    turns, s, c = _within_period(phi)
    partial = s * s * s * elliprd(c * c, 1 - m * (s * s), 1.0)
    whole = elliprd(0.0, 1 - ew.where(turns == 0, 0, m), 1.0)
    return (partial + 2 * turns * whole) * (-1 / 6)


ellipk_p: Primitive = special_primitive(
    "ellipk", (lambda t, x, y: t * (elliprd(0.0, 1.0, 1 - x) * (1 / 6)),), ("x",)
)
ellipkm1_p: Primitive = special_primitive(
    "ellipkm1", (lambda t, x, y: t * (elliprd(0.0, 1.0, x) * (-1 / 6)),), ("x",)
)
ellipe_p: Primitive = special_primitive(
    "ellipe", (lambda t, x, y: t * (elliprd(0.0, 1 - x, 1.0) * (-1 / 6)),), ("x",)
)
ellipkinc_p: Primitive = special_primitive(
    "ellipkinc",
    (
        lambda t, a, b, y: t / ew.sqrt(1 - b * ew.sin(a) ** 2),
        lambda t, a, b, y: t * _first_kind_slope(a, b),
    ),
    ("ab", "ab"),
)
ellipeinc_p: Primitive = special_primitive(
    "ellipeinc",
    (
        lambda t, a, b, y: t * ew.sqrt(1 - b * ew.sin(a) ** 2),
        lambda t, a, b, y: t * _second_kind_slope(a, b),
    ),
    ("ab", "ab"),
)

# Jacobi's functions: the amplitude ph has u = F(ph, m), so that ph_u = dn and ph_m = -F_m dn.


def _amplitude_slope(u: Array | complex, m: Array) -> Array:
    return -_first_kind_slope(ellipj_ph(u, m), m) * ellipj_dn(u, m)


def _delta_slope(u: Array | complex, m: Array, dn: Array) -> Array:
    """The derivative in ``m`` of ``dn = sqrt(1 - m sn**2)``."""
    sn, cn = ellipj_sn(u, m), ellipj_cn(u, m)
    return (sn * sn + 2 * m * sn * cn * _amplitude_slope(u, m)) / (-2 * dn)


def _jacobi(
    name: str, output: int, of_u: Callable[..., Any], of_m: Callable[..., Any]
) -> Primitive:
    return special_primitive(
        name,
        (lambda t, a, b, y: t * of_u(a, b), lambda t, a, b, y: t * of_m(a, b, y)),
        ("ab", "aby"),
        "ellipj",
        output=output,
    )


ellipj_sn_p: Primitive = _jacobi(
    "ellipj_sn",
    0,
    lambda u, m: ellipj_cn(u, m) * ellipj_dn(u, m),
    lambda u, m, y: ellipj_cn(u, m) * _amplitude_slope(u, m),
)
ellipj_cn_p: Primitive = _jacobi(
    "ellipj_cn",
    1,
    lambda u, m: -ellipj_sn(u, m) * ellipj_dn(u, m),
    lambda u, m, y: -ellipj_sn(u, m) * _amplitude_slope(u, m),
)
ellipj_dn_p: Primitive = _jacobi(
    "ellipj_dn",
    2,
    lambda u, m: -m * ellipj_sn(u, m) * ellipj_cn(u, m),
    lambda u, m, y: _delta_slope(u, m, y),
)
ellipj_ph_p: Primitive = _jacobi(
    "ellipj_ph", 3, lambda u, m: ellipj_dn(u, m), lambda u, m, y: _amplitude_slope(u, m)
)
agm_p: Primitive = special_primitive(
    "agm",
    (
        # agm(a, b) = pi / 2 / RF(0, a**2, b**2)
        lambda t, a, b, y: t * (elliprd(0.0, b * b, a * a) * (y * y * a) * (2 / (3 * math.pi))),
        lambda t, a, b, y: t * (elliprd(0.0, a * a, b * b) * (y * y * b) * (2 / (3 * math.pi))),
    ),
    ("aby", "aby"),
)

ellipk: ArrayFunction = user_function(ellipk_p, "The complete elliptic integral of the first kind.")
ellipkm1: ArrayFunction = user_function(ellipkm1_p, "``ellipk(1 - p)``, without cancellation.")
ellipe: ArrayFunction = user_function(
    ellipe_p, "The complete elliptic integral of the second kind."
)
ellipkinc: ArrayFunction = user_function(
    ellipkinc_p, "The incomplete elliptic integral of the first kind."
)
ellipeinc: ArrayFunction = user_function(
    ellipeinc_p, "The incomplete elliptic integral of the second kind."
)
ellipj_sn: ArrayFunction = user_function(ellipj_sn_p, "Jacobi's elliptic function ``sn``.")
ellipj_cn: ArrayFunction = user_function(ellipj_cn_p, "Jacobi's elliptic function ``cn``.")
ellipj_dn: ArrayFunction = user_function(ellipj_dn_p, "Jacobi's elliptic function ``dn``.")
ellipj_ph: ArrayFunction = user_function(ellipj_ph_p, "The amplitude of Jacobi's functions.")
agm: ArrayFunction = user_function(agm_p, "The arithmetic-geometric mean.")

PRIMITIVES: tuple[Primitive, ...] = (
    hyp0f1_p, hyp1f1_p, hyp2f1_p, hyperu_p, wright_bessel_p, expn_p, exp1_p, exp_over_p, expi_p,
    sici_s_p,
    sici_c_p, shichi_s_p, shichi_c_p, spence_p, lambertw_p, wrightomega_p, elliprc_p, elliprf_p,
    elliprd_x_p, elliprd_z_p, elliprd_p, elliprg_p, elliprj_x_p, elliprj_p_p, elliprj_rj_p,
    ellipk_p, ellipkm1_p, ellipe_p, ellipkinc_p, ellipeinc_p, ellipj_sn_p, ellipj_cn_p,
    ellipj_dn_p, ellipj_ph_p, agm_p,
)  # fmt: skip
