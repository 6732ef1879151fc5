"""Relatives of the error function, of logarithms and of powers.

Here: records of these, and the functions that apply them. Not here: ``erf``, ``ndtr`` and other
functions with a native form (``functions``), what is composed of them (``scipy.special``).

Layer: ``primitives.special``. Source: DLMF chapters 4 and 7 for the derivatives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functrans.core.dispatch import dtype_of
from functrans.core.primitive import Primitive
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute, imag, real
from functrans.primitives.family import user_function
from functrans.primitives.special.family import special_primitive
from functrans.primitives.special.functions import FAR, erf, erfcx_slope, far_series, inverse_bell
from functrans.primitives.special.hypergeometric import exp_over, hyp1f1, hyp2f1

ArrayFunction = Callable[..., Any]
_ROOT_PI = math.sqrt(math.pi)
_ROOT_2_PI = math.sqrt(2 * math.pi)

# the error function ------------------------------------------------------------------------------


def _far_term(is_far: Array, x: Array, sign: float) -> Array:
    """``sum((3/2)_n (sign / x**2)**n) / x**2`` where it holds, for numbers far from 0."""
    inverse = 1 / ew.where(is_far, x, math.sqrt(FAR))
    z = inverse * inverse
    return z * far_series(z * sign)


def _dawsn_slope(x: Array, y: Array) -> Array:
    """The derivative ``1 - 2 x y``; its series where that cancels, about the real axis."""
    squared = real(x * x) if dtype_of(x).kind == "c" else x * x
    is_far = squared > FAR
    near = 1 - 2 * ew.where(is_far, 0, x) * ew.where(is_far, 0, y)
    return ew.where(is_far, _far_term(is_far, x, 1.0) * -0.5, near)


def _wofz_slope(x: Array, y: Array) -> Array:
    """The derivative ``2j / sqrt(pi) - 2 x y``; its series where that cancels, above the axis."""
    is_far = (imag(x) >= 0) & (real(x) * real(x) + imag(x) * imag(x) > FAR)
    near = 2j / _ROOT_PI - 2 * ew.where(is_far, 0, x) * ew.where(is_far, 0, y)
    return ew.where(is_far, _far_term(is_far, x, 1.0) * (-1j / _ROOT_PI), near)


complex_erf_p: Primitive = special_primitive(
    "complex_erf",
    (lambda t, x, y: t * (ew.exp(-(x * x)) * (2 / _ROOT_PI)),),
    ("x",),
    "erf",
    has_complex=True,
)
complex_erfc_p: Primitive = special_primitive(
    "complex_erfc",
    (lambda t, x, y: t * (ew.exp(-(x * x)) * (-2 / _ROOT_PI)),),
    ("x",),
    "erfc",
    has_complex=True,
)
complex_erfcx_p: Primitive = special_primitive(
    "complex_erfcx", (lambda t, x, y: t * erfcx_slope(x, y),), ("xy",), "erfcx", has_complex=True
)
erfi_p: Primitive = special_primitive(
    "erfi", (lambda t, x, y: t * (ew.exp(x * x) * (2 / _ROOT_PI)),), ("x",), has_complex=True
)
erfcinv_p: Primitive = special_primitive(
    "erfcinv", (lambda t, x, y: t * (inverse_bell(x, y) * (-_ROOT_PI / 2)),), ("xy",)
)
dawsn_p: Primitive = special_primitive(
    "dawsn", (lambda t, x, y: t * _dawsn_slope(x, y),), ("xy",), has_complex=True
)
wofz_p: Primitive = special_primitive(
    "wofz", (lambda t, x, y: t * _wofz_slope(x, y),), ("xy",), has_complex=True, has_real=False
)
fresnel_s_p: Primitive = special_primitive(
    "fresnel_s",
    (lambda t, x, y: t * ew.sin(x * x * (math.pi / 2)),),
    ("x",),
    "fresnel",
    output=0,
    has_complex=True,
)
fresnel_c_p: Primitive = special_primitive(
    "fresnel_c",
    (lambda t, x, y: t * ew.cos(x * x * (math.pi / 2)),),
    ("x",),
    "fresnel",
    output=1,
    has_complex=True,
)
ndtri_exp_p: Primitive = special_primitive(
    "ndtri_exp", (lambda t, x, y: t * (ew.exp(x + y * y * 0.5) * _ROOT_2_PI),), ("xy",)
)
owens_t_p: Primitive = special_primitive(
    "owens_t",
    (
        lambda t, a, b, y: (
            t * (ew.exp(a * a * -0.5) * erf(a * b * math.sqrt(0.5)) * (-0.5 / _ROOT_2_PI))
        ),
        lambda t, a, b, y: t * (ew.exp(a * a * (1 + b * b) * -0.5) / ((1 + b * b) * (2 * math.pi))),
    ),
    ("ab", "ab"),
)

complex_erf: ArrayFunction = user_function(complex_erf_p, "``erf`` of complex numbers.")
complex_erfc: ArrayFunction = user_function(complex_erfc_p, "``erfc`` of complex numbers.")
complex_erfcx: ArrayFunction = user_function(complex_erfcx_p, "``erfcx`` of complex numbers.")
erfi: ArrayFunction = user_function(erfi_p, "The imaginary error function, ``-1j erf(1j z)``.")
erfcinv: ArrayFunction = user_function(erfcinv_p, "The inverse of ``erfc``.")
dawsn: ArrayFunction = user_function(
    dawsn_p, "Dawson's integral, ``sqrt(pi) / 2 exp(-x**2) erfi(x)``."
)
wofz: ArrayFunction = user_function(
    wofz_p, "The Faddeeva function ``exp(-z**2) erfc(-1j z)`` of complex numbers."
)
fresnel_s: ArrayFunction = user_function(fresnel_s_p, "Fresnel's sine integral.")
fresnel_c: ArrayFunction = user_function(fresnel_c_p, "Fresnel's cosine integral.")
ndtri_exp: ArrayFunction = user_function(ndtri_exp_p, "The inverse of ``log_ndtr``.")
owens_t: ArrayFunction = user_function(owens_t_p, "Owen's T function.")

# logarithms and entropy --------------------------------------------------------------------------
# Where a factor is 0 the product with an infinite logarithm is 0, in values and in tangents that
# are 0.


def _quotient(a: Array | complex, b: Array) -> Array:
    """``a / b``, and 0 where both are."""
    are_zero = (a == 0) & (b == 0)
    return ew.where(are_zero, 0, a / ew.where(are_zero, 1, b))


def _times_log(a: Array, log: Array) -> Array:
    """``a * log``, and 0 where ``a`` is and the logarithm is a number."""
    return ew.where((a == 0) & ew.logical_not(ew.isnan(log)), 0, a * log)


logit_p: Primitive = special_primitive(
    "logit",
    (lambda t, x, y: t / x + t / (1 - x),),  # the product underflows, and with it the next order
    ("x",),
)


def _beside(b: Array | complex, t: Array | complex) -> Any:
    """``b``, complex if the result is, as its tangents tell: SciPy takes that logarithm."""
    return b + 0j if dtype_of(t).kind == "c" and dtype_of(b).kind != "c" else b


xlogy_p: Primitive = special_primitive(
    "xlogy",
    (
        lambda t, a, b, y: ew.mul_strong_zero(t, ew.log(_beside(b, t))),
        lambda t, a, b, y: t * _quotient(a, b),
    ),
    ("b", "ab"),
    has_complex=True,
    expansion=lambda a, b: ew.where((a == 0) & (b == b), 0, a * ew.log(b)),
)
xlog1py_p: Primitive = special_primitive(
    "xlog1py",
    (
        lambda t, a, b, y: ew.mul_strong_zero(t, ew.log1p(_beside(b, t))),
        lambda t, a, b, y: t * _quotient(a, 1 + b),
    ),
    ("b", "ab"),
    has_complex=True,
    expansion=lambda a, b: ew.where((a == 0) & (b == b), 0, a * ew.log1p(b)),
)
entr_p: Primitive = special_primitive(
    "entr", (lambda t, x, y: ew.mul_strong_zero(t, -ew.log(x) - 1),), ("x",)
)
rel_entr_p: Primitive = special_primitive(
    "rel_entr",
    (
        lambda t, a, b, y: ew.mul_strong_zero(t, ew.log(a / b) + 1),
        lambda t, a, b, y: -t * _quotient(a, b),
    ),
    ("ab", "ab"),
)
kl_div_p: Primitive = special_primitive(
    "kl_div",
    (
        lambda t, a, b, y: ew.mul_strong_zero(t, ew.log(a / b)),
        lambda t, a, b, y: t * (1 - _quotient(a, b)),
    ),
    ("ab", "ab"),
)

logit: ArrayFunction = user_function(logit_p, "``log(p / (1 - p))``.")
xlogy: ArrayFunction = user_function(xlogy_p, "``x * log(y)``, 0 where ``x`` is 0.")
xlog1py: ArrayFunction = user_function(xlog1py_p, "``x * log1p(y)``, 0 where ``x`` is 0.")
entr: ArrayFunction = user_function(entr_p, "``-x * log(x)``, 0 at 0, ``-inf`` below.")
rel_entr: ArrayFunction = user_function(rel_entr_p, "``x * log(x / y)``, 0 where ``x`` is 0.")
kl_div: ArrayFunction = user_function(kl_div_p, "``x * log(x / y) - x + y``.")

# powers ------------------------------------------------------------------------------------------
# exprel(x) = expm1(x) / x is the integral of exp(s x) over s in [0, 1]; its derivative, that of
# s exp(s x), is 1F1(2; 3; x) / 2. Likewise log1p(x) / x = 2F1(1, 1; 2; -x).


_FAR_EXPONENT = 40.0
_OVERFLOW = 800.0  # exp of it is infinite


def _exprel_slope(x: Array) -> Array:
    """The derivative of ``exprel``; far out in exponentials, for which SciPy's loop has no end."""
    is_far, is_end = absolute(x) > _FAR_EXPONENT, x > _OVERFLOW
    near = hyp1f1(2.0, 3.0, ew.where(is_far, 0, x)) * 0.5
    far = ew.where(is_far & ew.logical_not(is_end), x, 1)
    inverse = 1 / far
    outer = exp_over(far) * (1 - inverse) + inverse * inverse
    end = ew.exp(ew.where(is_end, x, 0))  # infinite, as all its derivatives
    return ew.where(is_end, end, ew.where(is_far, outer, near))


def log1p_ratio_slope(x: Any) -> Array:
    """The derivative of ``log1p(x) / x``, which is -1/2 at 0."""
    is_near = (x > -0.5) & (x < 0.5)
    near = hyp2f1(2.0, 2.0, 3.0, -ew.where(is_near, x, 0)) * -0.5
    far = ew.where(is_near, 1, x)
    return ew.where(is_near, near, (1 / (1 + far) - ew.log1p(far) / far) / far)


def _boxcox_slope(log: Array, power: Array) -> Array:
    """The derivative in ``power`` of ``expm1(power * log) / power``; its limit at ``-inf``."""
    is_end = log == -math.inf
    inner = ew.where(is_end, 0, log)
    limit = 1 / (ew.where(is_end & (power > 0), power, 1) ** 2)
    return ew.where(is_end, limit, inner * inner * _exprel_slope(inner * power))


def _inverse_slopes(y: Array | complex, x: Any, power: Any) -> tuple[Any, Any]:
    """The derivatives of ``(1 + power * y)**(1 / power) = x`` in ``y`` and in ``power``."""
    # Where it overflows for small powers, so do all derivatives: no difference of infinities.
    is_over = ew.isinf(x) & (power >= 0) & (power < 0.5)
    base = 1 + power * y
    first = ew.where(is_over, 1, x) / ew.where(is_over, 1, base)
    first = ew.where(is_over, ew.exp(ew.where(is_over, y, 0)), first)
    return first, x * (y * y) * log1p_ratio_slope(power * y)


exprel_p: Primitive = special_primitive("exprel", (lambda t, x, y: t * _exprel_slope(x),), ("x",))
boxcox_p: Primitive = special_primitive(
    "boxcox",
    (lambda t, a, b, y: t * ew.power(a, b - 1), lambda t, a, b, y: t * _boxcox_slope(ew.log(a), b)),
    ("ab", "ab"),
)
boxcox1p_p: Primitive = special_primitive(
    "boxcox1p",
    (
        lambda t, a, b, y: t * ew.power(1 + a, b - 1),
        lambda t, a, b, y: t * _boxcox_slope(ew.log1p(a), b),
    ),
    ("ab", "ab"),
)
inv_boxcox_p: Primitive = special_primitive(
    "inv_boxcox",
    (
        lambda t, a, b, y: t * _inverse_slopes(a, y, b)[0],
        lambda t, a, b, y: t * _inverse_slopes(a, y, b)[1],
    ),
    ("aby", "aby"),
)
inv_boxcox1p_p: Primitive = special_primitive(
    "inv_boxcox1p",
    (
        lambda t, a, b, y: t * _inverse_slopes(a, y + 1, b)[0],
        lambda t, a, b, y: t * _inverse_slopes(a, y + 1, b)[1],
    ),
    ("aby", "aby"),
)
cosm1_p: Primitive = special_primitive("cosm1", (lambda t, x, y: -t * ew.sin(x),), ("x",))
powm1_p: Primitive = special_primitive(
    "powm1",
    (
        lambda t, a, b, y: t * (b * ew.power(a, b - 1)),
        lambda t, a, b, y: t * _times_log(ew.power(a, b), ew.log(a)),
    ),
    ("ab", "ab"),
)
exp10_p: Primitive = special_primitive("exp10", (lambda t, x, y: t * (y * math.log(10)),), ("y",))
sindg_p: Primitive = special_primitive(
    "sindg", (lambda t, x, y: t * (cosdg(x) * (math.pi / 180)),), ("x",)
)
cosdg_p: Primitive = special_primitive(
    "cosdg", (lambda t, x, y: t * (sindg(x) * (-math.pi / 180)),), ("x",)
)
tandg_p: Primitive = special_primitive(
    "tandg", (lambda t, x, y: t * ((1 + y * y) * (math.pi / 180)),), ("y",)
)
cotdg_p: Primitive = special_primitive(
    "cotdg", (lambda t, x, y: t * ((1 + y * y) * (-math.pi / 180)),), ("y",)
)


def _quantile_rate(p: Array, power: Array) -> Array:
    """The derivative of Tukey's quantile function, ``p**(power-1) + (1-p)**(power-1)``."""
    return ew.power(p, power - 1) + ew.power(1 - p, power - 1)


tklmbda_p: Primitive = special_primitive(
    "tklmbda",
    (
        lambda t, a, b, y: t / _quantile_rate(y, b),
        lambda t, a, b, y: (
            -t
            * (
                (_boxcox_slope(ew.log(y), b) - _boxcox_slope(ew.log1p(-y), b))
                / _quantile_rate(y, b)
            )
        ),
    ),
    ("by", "by"),
)

exprel: ArrayFunction = user_function(exprel_p, "``expm1(x) / x``, 1 at 0.")
boxcox: ArrayFunction = user_function(
    boxcox_p, "``(x**lmbda - 1) / lmbda``, the logarithm where ``lmbda`` is 0."
)
boxcox1p: ArrayFunction = user_function(boxcox1p_p, "``boxcox(1 + x, lmbda)``.")
inv_boxcox: ArrayFunction = user_function(inv_boxcox_p, "The inverse of ``boxcox`` in ``x``.")
inv_boxcox1p: ArrayFunction = user_function(inv_boxcox1p_p, "The inverse of ``boxcox1p``.")
cosm1: ArrayFunction = user_function(cosm1_p, "``cos(x) - 1``, without cancellation.")
powm1: ArrayFunction = user_function(powm1_p, "``x**y - 1``, without cancellation.")
exp10: ArrayFunction = user_function(exp10_p, "``10**x``.")
sindg: ArrayFunction = user_function(sindg_p, "The sine of an angle in degrees.")
cosdg: ArrayFunction = user_function(cosdg_p, "The cosine of an angle in degrees.")
tandg: ArrayFunction = user_function(tandg_p, "The tangent of an angle in degrees.")
cotdg: ArrayFunction = user_function(cotdg_p, "The cotangent of an angle in degrees.")
tklmbda: ArrayFunction = user_function(
    tklmbda_p, "The cumulative distribution function of Tukey's lambda distribution."
)

PRIMITIVES: tuple[Primitive, ...] = (
    complex_erf_p, complex_erfc_p, complex_erfcx_p, erfi_p, erfcinv_p, dawsn_p, wofz_p,
    fresnel_s_p, fresnel_c_p, ndtri_exp_p, owens_t_p, logit_p, xlogy_p, xlog1py_p, entr_p,
    rel_entr_p, kl_div_p, exprel_p, boxcox_p, boxcox1p_p, inv_boxcox_p, inv_boxcox1p_p, cosm1_p,
    powm1_p, exp10_p, sindg_p, cosdg_p, tandg_p, cotdg_p, tklmbda_p,
)  # fmt: skip
