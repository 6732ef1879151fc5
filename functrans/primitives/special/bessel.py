"""Bessel functions and their relatives: Airy, Kelvin, Struve, spherical, parabolic cylinder.

Here: records of these, and the functions that apply them. Not here: orders 0 and 1 (``functions``),
derivatives of cylinder functions (``cylinder``).

Derivatives in the argument follow from recurrences and differential equations, so that the family
is closed and derivatives of any order are there. In the order there are none.

Layer: ``primitives.special``. Source: DLMF chapters 9, 10, 11 and 12 for the derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.dispatch import dtype_of
from functrans.core.primitive import Primitive
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute
from functrans.primitives.family import user_function
from functrans.primitives.special import cylinder as cy
from functrans.primitives.special.family import refused_derivative, special_primitive
from functrans.primitives.special.functions import i0, j0, k0, y0
from functrans.primitives.special.gamma import rgamma

ArrayFunction = Callable[..., Any]

# cylinder functions ------------------------------------------------------------------------------


def _cylinder(
    name: str, slope: Callable[..., Any], saves: str = "ab", kinds: str = "rc"
) -> Primitive:
    """A function of order and argument.

    Args:
      name: SciPy's name.
      slope: ``(order, x, y)`` to the derivative in the argument.
      saves: which of the operands and the result it reads.
      kinds: whether it takes real arguments, and complex ones, where it is holomorphic.
    """
    return special_primitive(
        name,
        (refused_derivative(name, 0, "the order"), lambda t, v, x, y: t * slope(v, x, y)),
        ("", saves),
        parameters="a",
        has_complex="c" in kinds,
        has_real="r" in kinds,
    )


_FAR_STRUVE = 10.0


def _struve_slope(function: ArrayFunction, sign: int, v: Array | complex, x: Array) -> Array:
    """The derivative of a Struve function: ``(f_{v-1} + s f_{v+1} + term) / 2``.

    The term is ``(x / 2)**v / (sqrt(pi) gamma(v + 3/2))``. Orders 0 and -1, which are regular at 0,
    ask for none below: ``f_{-1} = 2 / pi + s f_1`` (DLMF 11.4.23, 11.4.25).
    """
    is_below, is_zero = v == -1, v == 0
    order = ew.where(is_below, 1, v)
    above = function(order + 1, x)
    base = ew.where(is_zero, 1, x * 0.5)  # the power is constant
    term = ew.power(base, order) * rgamma(order + 1.5) / math.sqrt(math.pi)
    below = function(ew.where(is_zero, 2, order) - 1, x)
    below = ew.where(is_zero, above * sign + term, below)
    slope = (below + above * sign + term) * 0.5
    return ew.where(is_below, slope * sign, slope)


def _far_struve_slope(v: Any, x: Array, y: Array) -> Array:
    """That of ``struve``: ``f_{v-1} - v f_v / x`` far out, since ``f_{v+1}`` is the largest there.

    Source: DLMF 11.4.27.
    """
    is_far = (absolute(x) > _FAR_STRUVE) & (v > 0)
    far = ew.where(is_far, x, 1)
    outer = struve(ew.where(is_far, v, 1) - 1, far) - v * ew.where(is_far, y, 0) / far
    return ew.where(is_far, outer, _struve_slope(struve, -1, v, ew.where(is_far, 1, x)))


jv_p: Primitive = _cylinder("jv", lambda v, x, y: cy.jv_derivative(1, v, x))
yv_p: Primitive = _cylinder("yv", lambda v, x, y: cy.yv_derivative(1, v, x))
iv_p: Primitive = _cylinder("iv", lambda v, x, y: cy.iv_derivative(1, v, x))
kv_p: Primitive = _cylinder("kv", lambda v, x, y: cy.kv_derivative(1, v, x))
hankel1_p: Primitive = _cylinder(
    "hankel1", lambda v, x, y: cy.hankel1_derivative(1, v, x), kinds="c"
)
hankel2_p: Primitive = _cylinder(
    "hankel2", lambda v, x, y: cy.hankel2_derivative(1, v, x), kinds="c"
)
# Of real arguments these two are not scaled.
jve_p: Primitive = _cylinder("jve", lambda v, x, y: cy.jv_derivative(1, v, x), kinds="r")
yve_p: Primitive = _cylinder("yve", lambda v, x, y: cy.yv_derivative(1, v, x), kinds="r")


def _ive_slope(v: Array | complex, x: Array, y: Array) -> Array:
    is_far, slope = cy.scaled_slope("ive", v, x)
    near = cy.ive_derivative(1, v, x) - ew.sign(x) * ew.where(x == 0, 0, y)
    return ew.where(is_far, slope, near)


def _kve_slope(v: Array | complex, x: Array, y: Array) -> Array:
    near = cy.kve_derivative(1, v, x) + ew.where(x == 0, 0, y)
    if dtype_of(x).kind == "c":
        return near
    is_far, slope = cy.scaled_slope("kve", v, x)
    return ew.where(is_far, slope, near)


ive_p: Primitive = _cylinder("ive", _ive_slope, "aby", kinds="r")
kve_p: Primitive = _cylinder("kve", _kve_slope, "aby")
hankel1e_p: Primitive = _cylinder(
    "hankel1e", lambda v, x, y: cy.hankel1e_derivative(1, v, x) - 1j * y, "aby", kinds="c"
)
hankel2e_p: Primitive = _cylinder(
    "hankel2e", lambda v, x, y: cy.hankel2e_derivative(1, v, x) + 1j * y, "aby", kinds="c"
)
struve_p: Primitive = _cylinder(
    "struve", lambda v, x, y: _far_struve_slope(v, x, y), "aby", kinds="r"
)
modstruve_p: Primitive = _cylinder(
    "modstruve", lambda v, x, y: _struve_slope(modstruve, 1, v, x), kinds="r"
)

jv: ArrayFunction = user_function(jv_p, "The Bessel function of the first kind.")
yv: ArrayFunction = user_function(yv_p, "The Bessel function of the second kind.")
iv: ArrayFunction = user_function(iv_p, "The modified Bessel function of the first kind.")
kv: ArrayFunction = user_function(kv_p, "The modified Bessel function of the second kind.")
hankel1: ArrayFunction = user_function(hankel1_p, "The Hankel function of the first kind.")
hankel2: ArrayFunction = user_function(hankel2_p, "The Hankel function of the second kind.")
jve: ArrayFunction = user_function(jve_p, "``jv(v, x) * exp(-abs(x.imag))``.")
yve: ArrayFunction = user_function(yve_p, "``yv(v, x) * exp(-abs(x.imag))``.")
ive: ArrayFunction = user_function(ive_p, "``iv(v, x) * exp(-abs(x.real))``.")
kve: ArrayFunction = user_function(kve_p, "``kv(v, z) * exp(z)``.")
hankel1e: ArrayFunction = user_function(hankel1e_p, "``hankel1(v, z) * exp(-1j * z)``.")
hankel2e: ArrayFunction = user_function(hankel2e_p, "``hankel2(v, z) * exp(1j * z)``.")
struve: ArrayFunction = user_function(struve_p, "The Struve function.")
modstruve: ArrayFunction = user_function(modstruve_p, "The modified Struve function.")

# spherical Bessel functions ----------------------------------------------------------------------
# f_n' = (n f_{n-1} -+ (n+1) f_{n+1}) / (2n+1), also at 0 (DLMF 10.51.2, 10.51.5).


_SPHERICAL_SIGNS = {
    "spherical_jn": (1, -1),
    "spherical_yn": (1, -1),
    "spherical_in": (1, 1),
    "spherical_kn": (-1, -1),
}


def spherical_slope(function: ArrayFunction, n: Array, x: Array) -> Array:
    """The derivative of a spherical Bessel function, given by the function that applies it."""
    below, above = _SPHERICAL_SIGNS[function.__name__]
    lower = ew.where(n == 0, 0, function(ew.maximum(n - 1, 0), x))
    return (below * n * lower + above * (n + 1) * function(n + 1, x)) / (2 * n + 1)


def _spherical(name: str, get: Callable[[], ArrayFunction]) -> Primitive:
    def partial(t: Array, n: Array, x: Array, y: Array | None) -> Any:
        return t * spherical_slope(get(), n, x)

    return special_primitive(
        name,
        (refused_derivative(name, 0, "the order"), partial),
        ("", "ab"),
        integers="a",
        has_complex=True,
    )


spherical_jn_p: Primitive = _spherical("spherical_jn", lambda: spherical_jn)
spherical_yn_p: Primitive = _spherical("spherical_yn", lambda: spherical_yn)
spherical_in_p: Primitive = _spherical("spherical_in", lambda: spherical_in)
spherical_kn_p: Primitive = _spherical("spherical_kn", lambda: spherical_kn)

spherical_jn: ArrayFunction = user_function(
    spherical_jn_p, "The spherical Bessel function of the first kind."
)
spherical_yn: ArrayFunction = user_function(
    spherical_yn_p, "The spherical Bessel function of the second kind."
)
spherical_in: ArrayFunction = user_function(
    spherical_in_p, "The modified spherical Bessel function of the first kind."
)
spherical_kn: ArrayFunction = user_function(
    spherical_kn_p, "The modified spherical Bessel function of the second kind."
)


# functions of which SciPy gives several at once --------------------------------------------------


def _result(
    name: str,
    function: str,
    output: int | None,
    slope: Callable[..., Any],
    saves: str = "xy",
    **options: Any,
) -> Primitive:
    """One result of a function of one argument."""
    return special_primitive(
        name, (lambda t, x, y: t * slope(x, y),), (saves,), function, output=output, **options
    )


_BERP_SERIES = (-1 / 16, 1 / 18432, -1 / 176947200)
_BEIP_SERIES = (1 / 2, -1 / 384, 1 / 1474560, -1 / 29727129600)
"""``berp(x) / x**3`` and ``beip(x) / x`` in powers of ``x**4`` (DLMF 10.65.1)."""


def _polynomial(coefficients: Sequence[float], x: Array) -> Array:
    """The value of a polynomial, lowest power first."""
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = total * x + c
    return total


def _kelvin_ratio(series: Sequence[float], x: Array, y: Array, factor: Array | complex) -> Array:
    """``y / x``, near 0 the factor times a series in the fourth power of ``x``."""
    squared = x * x
    is_near = squared < 0.25
    inner = ew.where(is_near, squared, 0)
    return ew.where(
        is_near, _polynomial(series, inner * inner) * factor, y / ew.where(is_near, 1, x)
    )


def _rest_over_x(sign: float, x: Array) -> Array:
    """``(i0(x) - 1) / x`` of sign 1, ``(1 - j0(x)) / x`` of sign -1; a series near 0."""
    squared = x * x
    is_near = squared < 1
    series = [sign ** (k - 1) / (4**k * math.factorial(k) ** 2) for k in range(1, 9)]
    far = ew.where(is_near, 1, x)
    rest = i0(far) - 1 if sign > 0 else 1 - j0(far)
    return ew.where(is_near, _polynomial(series, ew.where(is_near, squared, 0)) * x, rest / far)


def _struve_over_x(x: Any) -> Array:
    """``struve(0, x) / x``; near 0 its series (DLMF 11.2.1)."""
    squared = x * x
    is_near = squared < 1
    odd = [math.prod(range(1, 2 * k + 2, 2)) for k in range(9)]
    series = [(-1) ** k * (2 / math.pi) / odd[k] ** 2 for k in range(9)]
    far = ew.where(is_near, 1, x)
    return ew.where(
        is_near, _polynomial(series, ew.where(is_near, squared, 0)), struve(0, far) / far
    )


def _upper_root(x: Array) -> Array:
    return ew.where(x > 0, ew.sqrt(ew.where(x > 0, x, 1)), 0)


airy_ai_p: Primitive = _result(
    "airy_ai", "airy", 0, lambda x, y: airy_aip(x), "x", has_complex=True
)
airy_aip_p: Primitive = _result(
    "airy_aip", "airy", 1, lambda x, y: x * airy_ai(x), "x", has_complex=True
)
airy_bi_p: Primitive = _result(
    "airy_bi", "airy", 2, lambda x, y: airy_bip(x), "x", has_complex=True
)
airy_bip_p: Primitive = _result(
    "airy_bip", "airy", 3, lambda x, y: x * airy_bi(x), "x", has_complex=True
)
# Of real numbers: times exp(2/3 x sqrt(x)) and exp(-2/3 x sqrt(x)); SciPy gives NaN for Ai below 0.
airye_ai_p: Primitive = _result("airye_ai", "airye", 0, lambda x, y: airye_aip(x) + ew.sqrt(x) * y)
airye_aip_p: Primitive = _result(
    "airye_aip", "airye", 1, lambda x, y: x * airye_ai(x) + ew.sqrt(x) * y
)
airye_bi_p: Primitive = _result(
    "airye_bi", "airye", 2, lambda x, y: airye_bip(x) - _upper_root(x) * y
)
airye_bip_p: Primitive = _result(
    "airye_bip", "airye", 3, lambda x, y: x * airye_bi(x) - _upper_root(x) * y
)
# ber + i bei and ker + i kei solve x**2 w'' + x w' = i x**2 w (DLMF 10.61.3).
ber_p: Primitive = _result("ber", "ber", None, lambda x, y: berp(x), "x")
bei_p: Primitive = _result("bei", "bei", None, lambda x, y: beip(x), "x")
ker_p: Primitive = _result("ker", "ker", None, lambda x, y: kerp(x), "x")
kei_p: Primitive = _result("kei", "kei", None, lambda x, y: keip(x), "x")
berp_p: Primitive = _result(
    "berp", "berp", None, lambda x, y: -bei(x) - _kelvin_ratio(_BERP_SERIES, x, y, x * x)
)
beip_p: Primitive = _result(
    "beip", "beip", None, lambda x, y: ber(x) - _kelvin_ratio(_BEIP_SERIES, x, y, 1.0)
)
kerp_p: Primitive = _result("kerp", "kerp", None, lambda x, y: -kei(x) - y / x)
keip_p: Primitive = _result("keip", "keip", None, lambda x, y: ker(x) - y / ew.where(x == 0, 1, x))
iti0k0_i_p: Primitive = _result("iti0k0_i", "iti0k0", 0, lambda x, y: i0(x), "x")
iti0k0_k_p: Primitive = _result("iti0k0_k", "iti0k0", 1, lambda x, y: k0(x), "x")
itj0y0_j_p: Primitive = _result("itj0y0_j", "itj0y0", 0, lambda x, y: j0(x), "x")
itj0y0_y_p: Primitive = _result("itj0y0_y", "itj0y0", 1, lambda x, y: y0(x), "x")
it2i0k0_i_p: Primitive = _result("it2i0k0_i", "it2i0k0", 0, lambda x, y: _rest_over_x(1.0, x), "x")
it2i0k0_k_p: Primitive = _result("it2i0k0_k", "it2i0k0", 1, lambda x, y: -k0(x) / x, "x")
it2j0y0_j_p: Primitive = _result("it2j0y0_j", "it2j0y0", 0, lambda x, y: _rest_over_x(-1.0, x), "x")
it2j0y0_y_p: Primitive = _result("it2j0y0_y", "it2j0y0", 1, lambda x, y: -y0(x) / x, "x")
itstruve0_p: Primitive = _result("itstruve0", "itstruve0", None, lambda x, y: struve(0, x), "x")
it2struve0_p: Primitive = _result(
    "it2struve0", "it2struve0", None, lambda x, y: -_struve_over_x(x), "x"
)
itmodstruve0_p: Primitive = _result(
    "itmodstruve0", "itmodstruve0", None, lambda x, y: modstruve(0, x), "x"
)

airy_ai: ArrayFunction = user_function(airy_ai_p, "The Airy function ``Ai``.")
airy_aip: ArrayFunction = user_function(airy_aip_p, "The derivative of ``Ai``.")
airy_bi: ArrayFunction = user_function(airy_bi_p, "The Airy function ``Bi``.")
airy_bip: ArrayFunction = user_function(airy_bip_p, "The derivative of ``Bi``.")
airye_ai: ArrayFunction = user_function(airye_ai_p, "``Ai``, scaled.")
airye_aip: ArrayFunction = user_function(airye_aip_p, "The derivative of ``Ai``, scaled.")
airye_bi: ArrayFunction = user_function(airye_bi_p, "``Bi``, scaled.")
airye_bip: ArrayFunction = user_function(airye_bip_p, "The derivative of ``Bi``, scaled.")
ber: ArrayFunction = user_function(ber_p, "The Kelvin function ``ber``.")
bei: ArrayFunction = user_function(bei_p, "The Kelvin function ``bei``.")
ker: ArrayFunction = user_function(ker_p, "The Kelvin function ``ker``.")
kei: ArrayFunction = user_function(kei_p, "The Kelvin function ``kei``.")
berp: ArrayFunction = user_function(berp_p, "The derivative of ``ber``.")
beip: ArrayFunction = user_function(beip_p, "The derivative of ``bei``.")
kerp: ArrayFunction = user_function(kerp_p, "The derivative of ``ker``.")
keip: ArrayFunction = user_function(keip_p, "The derivative of ``kei``.")
iti0k0_i: ArrayFunction = user_function(iti0k0_i_p, "The integral of ``i0`` from 0.")
iti0k0_k: ArrayFunction = user_function(iti0k0_k_p, "The integral of ``k0`` from 0.")
itj0y0_j: ArrayFunction = user_function(itj0y0_j_p, "The integral of ``j0`` from 0.")
itj0y0_y: ArrayFunction = user_function(itj0y0_y_p, "The integral of ``y0`` from 0.")
it2i0k0_i: ArrayFunction = user_function(it2i0k0_i_p, "The integral of ``(i0(t) - 1) / t``.")
it2i0k0_k: ArrayFunction = user_function(it2i0k0_k_p, "The upper integral of ``k0(t) / t``.")
it2j0y0_j: ArrayFunction = user_function(it2j0y0_j_p, "The integral of ``(1 - j0(t)) / t``.")
it2j0y0_y: ArrayFunction = user_function(it2j0y0_y_p, "The upper integral of ``y0(t) / t``.")
itstruve0: ArrayFunction = user_function(itstruve0_p, "The integral of ``struve(0, t)`` from 0.")
it2struve0: ArrayFunction = user_function(
    it2struve0_p, "The upper integral of ``struve(0, t) / t``."
)
itmodstruve0: ArrayFunction = user_function(
    itmodstruve0_p, "The integral of ``modstruve(0, t)`` from 0."
)

PRIMITIVES: tuple[Primitive, ...] = (
    jv_p, yv_p, iv_p, kv_p, hankel1_p, hankel2_p, jve_p, yve_p, ive_p, kve_p, hankel1e_p,
    hankel2e_p, struve_p, modstruve_p, spherical_jn_p, spherical_yn_p, spherical_in_p,
    spherical_kn_p, airy_ai_p, airy_aip_p, airy_bi_p, airy_bip_p, airye_ai_p, airye_aip_p,
    airye_bi_p, airye_bip_p, ber_p, bei_p, ker_p, kei_p, berp_p, beip_p, kerp_p, keip_p,
    iti0k0_i_p, iti0k0_k_p, itj0y0_j_p, itj0y0_y_p, it2i0k0_i_p, it2i0k0_k_p, it2j0y0_j_p,
    it2j0y0_y_p, itstruve0_p, it2struve0_p, itmodstruve0_p,
)  # fmt: skip
