"""Bessel functions and relatives, elliptic and hypergeometric functions with SciPy's names.

Here: functions of elements that are primitives or composed of them. Not here: the primitives
(``primitives.special.bessel``, ``special.hypergeometric``, ``special.polynomials``).

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

import math
import operator
from typing import Any

from functrans.core.dispatch import dtype_of
from functrans.core.values import Array
from functrans.numpy.common import as_operand
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import complex_dtype, complex_of
from functrans.primitives.special import bessel as be
from functrans.primitives.special import functions as sf
from functrans.primitives.special import hypergeometric as hy
from functrans.primitives.special import polynomials as po
from functrans.primitives.special.family import common_dtype
from functrans.primitives.special.gamma import binom
from functrans.primitives.structural import cast
from functrans.scipy.special_common import ArrayFunction, as_complex, as_floating, public, several

# Bessel functions --------------------------------------------------------------------------------

i0 = public("i0", sf.i0, "x")
i1 = public("i1", sf.i1, "x")
i0e = public("i0e", sf.i0e, "x")
i1e = public("i1e", sf.i1e, "x")
j0 = public("j0", sf.j0, "x")
j1 = public("j1", sf.j1, "x")
y0 = public("y0", sf.y0, "x")
y1 = public("y1", sf.y1, "x")
k0 = public("k0", sf.k0, "x")
k1 = public("k1", sf.k1, "x")
k0e = public("k0e", sf.k0e, "x")
k1e = public("k1e", sf.k1e, "x")
_ORDER = "There is no derivative in the order."
jv = public("jv", be.jv, "v z", _ORDER)
jn = public("jn", be.jv, "n z", _ORDER)
yv = public("yv", be.yv, "v z", _ORDER)
yn = public("yn", be.yv, "n x", _ORDER)
iv = public("iv", be.iv, "v z", _ORDER)
kv = public("kv", be.kv, "v z", _ORDER)
kn = public("kn", be.kv, "n x", _ORDER)
jve = public("jve", be.jve, "v x", "Of real arguments. " + _ORDER)
yve = public("yve", be.yve, "v x", "Of real arguments. " + _ORDER)
ive = public("ive", be.ive, "v x", "Of real arguments. " + _ORDER)
kve = public("kve", be.kve, "v z", _ORDER)
struve = public("struve", be.struve, "v x", _ORDER)
modstruve = public("modstruve", be.modstruve, "v x", _ORDER)


def _of_complex(function: ArrayFunction) -> ArrayFunction:
    """A function of order and argument whose results are complex for real arguments too."""

    def applied(v: Array, z: Array) -> Any:
        return function(v, cast(z, complex_dtype(common_dtype(v, z))))

    applied.__doc__ = function.__doc__
    return applied


hankel1 = public("hankel1", _of_complex(be.hankel1), "v z", _ORDER)
hankel2 = public("hankel2", _of_complex(be.hankel2), "v z", _ORDER)
hankel1e = public("hankel1e", _of_complex(be.hankel1e), "v z", _ORDER)
hankel2e = public("hankel2e", _of_complex(be.hankel2e), "v z", _ORDER)


def _derivative(name: str, function: ArrayFunction, sign: float, phase: float) -> ArrayFunction:
    """A derivative of a Bessel function in the argument, by the binomial formula of DLMF 10.6.7.

    Args:
      name: SciPy's name.
      function: the function of order and argument.
      sign: between neighbouring orders.
      phase: factor per derivative.
    """

    def applied(v: Array, z: Any, n: int = 1) -> Any:
        order = operator.index(n)
        if order < 0:
            raise ValueError(f"{name}: n must not be negative, got {order}")
        v, z = as_operand(v), as_operand(z)
        total: Any = 0.0
        for k in range(order + 1):
            term = function(v - order + 2 * k, z)
            total = total + term * (math.comb(order, k) * sign**k * phase**order / 2**order)
        return total

    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = (
        f"The derivative of order ``n`` in the argument, as ``scipy.special.{name}(v, z, n=1)``. "
        f"{_ORDER}"
    )
    return applied


jvp = _derivative("jvp", be.jv, -1.0, 1.0)
yvp = _derivative("yvp", be.yv, -1.0, 1.0)
ivp = _derivative("ivp", be.iv, 1.0, 1.0)
kvp = _derivative("kvp", be.kv, 1.0, -1.0)
h1vp = _derivative("h1vp", hankel1, -1.0, 1.0)
h2vp = _derivative("h2vp", hankel2, -1.0, 1.0)


def _spherical(name: str, function: ArrayFunction) -> ArrayFunction:
    """A spherical Bessel function with SciPy's arguments."""

    def applied(n: Array, z: Array, derivative: bool = False) -> Any:
        n, z = as_operand(n), as_operand(z)
        return be.spherical_slope(function, n, z) if derivative else function(n, z)

    applied.__name__ = applied.__qualname__ = name
    applied.__doc__ = (
        f"{function.__doc__} As ``scipy.special.{name}(n, z, derivative=False)``; the order is of "
        "integers and has no derivative."
    )
    return applied


spherical_jn = _spherical("spherical_jn", be.spherical_jn)
spherical_yn = _spherical("spherical_yn", be.spherical_yn)
spherical_in = _spherical("spherical_in", be.spherical_in)
spherical_kn = _spherical("spherical_kn", be.spherical_kn)
airy = several("airy", "z", be.airy_ai, be.airy_aip, be.airy_bi, be.airy_bip)
airye = several("airye", "x", be.airye_ai, be.airye_aip, be.airye_bi, be.airye_bip)
ber = public("ber", be.ber, "x")
bei = public("bei", be.bei, "x")
ker = public("ker", be.ker, "x")
kei = public("kei", be.kei, "x")
berp = public("berp", be.berp, "x")
beip = public("beip", be.beip, "x")
kerp = public("kerp", be.kerp, "x")
keip = public("keip", be.keip, "x")
iti0k0 = several("iti0k0", "x", be.iti0k0_i, be.iti0k0_k)
itj0y0 = several("itj0y0", "x", be.itj0y0_j, be.itj0y0_y)
it2i0k0 = several("it2i0k0", "x", be.it2i0k0_i, be.it2i0k0_k)
it2j0y0 = several("it2j0y0", "x", be.it2j0y0_j, be.it2j0y0_y)
itstruve0 = public("itstruve0", be.itstruve0, "x")
it2struve0 = public("it2struve0", be.it2struve0, "x")
itmodstruve0 = public("itmodstruve0", be.itmodstruve0, "x")


def _pair(first: ArrayFunction, second: ArrayFunction) -> ArrayFunction:
    def function(x: Array) -> Any:
        return complex_of(first(x), second(x))

    function.__doc__ = f"{first.__name__} + 1j {second.__name__}"
    return function


kelvin = several(
    "kelvin",
    "x",
    _pair(be.ber, be.bei),
    _pair(be.ker, be.kei),
    _pair(be.berp, be.beip),
    _pair(be.kerp, be.keip),
)

# hypergeometric and elliptic functions -----------------------------------------------------------

_FIXED = "There are no derivatives in the parameters."
hyp0f1 = public("hyp0f1", hy.hyp0f1, "v z", _FIXED)
hyp1f1 = public("hyp1f1", hy.hyp1f1, "a b x", _FIXED)
hyp2f1 = public("hyp2f1", hy.hyp2f1, "a b c z", _FIXED)
hyperu = public("hyperu", hy.hyperu, "a b x", _FIXED)
wright_bessel = public("wright_bessel", hy.wright_bessel, "a b x", _FIXED)
expn = public("expn", hy.expn, "n x", _ORDER)
exp1 = public("exp1", hy.exp1, "z")
expi = public("expi", hy.expi, "x")
sici = several("sici", "x", hy.sici_s, hy.sici_c)
shichi = several("shichi", "x", hy.shichi_s, hy.shichi_c)
spence = public("spence", hy.spence, "z")
wrightomega = public("wrightomega", hy.wrightomega, "z")
elliprc = public("elliprc", hy.elliprc, "x y")
elliprf = public("elliprf", hy.elliprf, "x y z")
elliprd = public("elliprd", hy.elliprd, "x y z", "Differentiable once.")
elliprg = public("elliprg", hy.elliprg, "x y z")
elliprj = public("elliprj", hy.elliprj, "x y z p", "Differentiable once.")
ellipk = public("ellipk", hy.ellipk, "m")
ellipkm1 = public("ellipkm1", hy.ellipkm1, "p")
ellipe = public("ellipe", hy.ellipe, "m")
ellipkinc = public("ellipkinc", hy.ellipkinc, "phi m")
ellipeinc = public("ellipeinc", hy.ellipeinc, "phi m")
ellipj = several("ellipj", "u m", hy.ellipj_sn, hy.ellipj_cn, hy.ellipj_dn, hy.ellipj_ph)
agm = public("agm", hy.agm, "a b")


def lambertw(z: Any, k: object = 0, tol: float = 1e-8) -> Array:
    """A branch of the Lambert W function: ``w exp(w) = z``.

    Args:
      z: array; the result is complex for real arrays too, as SciPy's is.
      k: number of the branch, integers; there is no derivative in it.
      tol: SciPy's tolerance, which must be the default: smaller ones are of no use in float64.

    Returns:
      Complex array.

    Raises:
      ValueError: a tolerance was given.

    Example:
      >>> lambertw(0.0)
      np.complex128(0j)
    """
    if tol != 1e-8:
        raise ValueError(f"lambertw: tol must be 1e-8, got {tol}")
    return hy.lambertw(as_complex(as_operand(z)), as_operand(k))


# orthogonal polynomials --------------------------------------------------------------------------

_DEGREE = "There is no derivative in the degree and in parameters."
eval_jacobi = public("eval_jacobi", po.eval_jacobi, "n alpha beta x", _DEGREE)
eval_gegenbauer = public("eval_gegenbauer", po.eval_gegenbauer, "n alpha x", _DEGREE)
eval_legendre = public("eval_legendre", po.eval_legendre, "n x", _DEGREE)
eval_chebyt = public("eval_chebyt", po.eval_chebyt, "n x", _DEGREE)
eval_chebyu = public("eval_chebyu", po.eval_chebyu, "n x", _DEGREE)
eval_genlaguerre = public("eval_genlaguerre", po.eval_genlaguerre, "n alpha x", _DEGREE)
eval_laguerre = public("eval_laguerre", po.eval_laguerre, "n x", _DEGREE)
eval_hermite = public("eval_hermite", po.eval_hermite, "n x", _DEGREE)
eval_hermitenorm = public("eval_hermitenorm", po.eval_hermitenorm, "n x", _DEGREE)
lpmv = public("lpmv", po.lpmv, "m v x", _DEGREE)


def _moved(
    function: ArrayFunction, scale: float, shift: float, factor: float = 1.0
) -> ArrayFunction:
    """A polynomial of ``scale * x + shift``."""

    def applied(n: Array, x: Array) -> Any:
        return function(n, x * scale + shift) * factor

    applied.__doc__ = f"{(function.__doc__ or '').rstrip('.')}, on another interval."
    return applied


def _sh_jacobi(n: Array, p: Array, q: Array, x: Array) -> Array:
    """Jacobi's polynomial on [0, 1], normalised to leading coefficient 1."""
    (x,) = as_floating(x)
    scale = binom(2 * n + p - 1, n)
    return po.eval_jacobi(n, p - q, q - 1, x * 2 - 1) / scale


eval_chebyc = public("eval_chebyc", _moved(po.eval_chebyt, 0.5, 0.0, 2.0), "n x", _DEGREE)
eval_chebys = public("eval_chebys", _moved(po.eval_chebyu, 0.5, 0.0), "n x", _DEGREE)
eval_sh_legendre = public("eval_sh_legendre", _moved(po.eval_legendre, 2.0, -1.0), "n x", _DEGREE)
eval_sh_chebyt = public("eval_sh_chebyt", _moved(po.eval_chebyt, 2.0, -1.0), "n x", _DEGREE)
eval_sh_chebyu = public("eval_sh_chebyu", _moved(po.eval_chebyu, 2.0, -1.0), "n x", _DEGREE)
eval_sh_jacobi = public("eval_sh_jacobi", _sh_jacobi, "n p q x", _DEGREE)


def sph_legendre_p(n: Array, m: Array, theta: Any) -> Array:
    """The spherical Legendre polynomial of an angle.

    Args:
      n: degree, non-negative integers.
      m: order, integers.
      theta: polar angle.

    Raises:
      UnsupportedOperationError: SciPy is older than 1.15.

    Example:
      >>> round(float(sph_legendre_p(1, 0, 0.0)), 12)
      0.488602511903
    """
    return po.sph_legendre_p(as_operand(n), as_operand(m), *as_floating(as_operand(theta)))


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Array) -> Array:
    """The spherical harmonic of degree ``n`` and order ``m``.

    Args:
      n: degree, non-negative integers.
      m: order, integers.
      theta: polar angle, real.
      phi: azimuthal angle, real.

    Returns:
      Complex array of the broadcast shape, differentiable in both angles, at the poles too.

    Raises:
      UnsupportedOperationError: SciPy is older than 1.15.

    Example:
      >>> round(float(sph_harm_y(0, 0, 0.3, 0.1).real), 12)
      0.282094791774
    """
    n, m = as_operand(n), as_operand(m)
    theta, phi = as_floating(as_operand(theta), as_operand(phi))
    size = po.sph_legendre_p(n, m, theta)
    angle = m * phi
    if dtype_of(angle) != dtype_of(size):
        (angle,) = as_floating(angle)
    return complex_of(size * ew.cos(angle), size * ew.sin(angle))
