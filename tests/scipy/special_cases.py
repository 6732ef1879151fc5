"""The table of functions of elements in ``scipy.special``: points, and definitions in mpmath.

One row per function: where it is smooth, which operands have a derivative, what it is in mpmath.
Functions with several results have a definition per result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

Point = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """A function and where it is tested.

    Attributes:
      name: SciPy's name.
      points: operands, one tuple per point.
      moving: operands that derivatives are taken in; by default the last one.
      exact: definitions of the results in mpmath, by which first derivatives are checked at 30
        digits; without them they are checked against differences.
      refused: operands in which a derivative is refused.
      order: how many derivatives there are, up to 2.
      rtol: tolerance of values and exact derivatives.
      has_f32: whether single precision is meant to work at these points.
      tolerance: of difference quotients, for values that SciPy rounds badly.
    """

    name: str
    points: tuple[Point, ...]
    moving: tuple[int, ...] = (-1,)
    exact: tuple[Callable[..., Any], ...] = ()
    refused: tuple[int, ...] = ()
    order: int = 2
    rtol: float = 1e-12
    has_f32: bool = True
    tolerance: float = 1e-6

    @property
    def count(self) -> int:
        """Number of operands."""
        return len(self.points[0])

    @property
    def positions(self) -> tuple[int, ...]:
        """The operands that derivatives are taken in, from 0."""
        return tuple(i % self.count for i in self.moving)

    def operands(self, dtype: Any = np.float64) -> tuple[np.ndarray, ...]:
        """All points at once: integers where each number is written as one."""
        columns = zip(*self.points, strict=True)
        return tuple(
            np.array(column) if all(isinstance(x, int) for x in column) else np.array(column, dtype)
            for column in columns
        )


def one(name: str, *points: float, exact: Any = None, **options: Any) -> Case:
    """A function of one operand."""
    definitions = exact if isinstance(exact, tuple) else () if exact is None else (exact,)
    return Case(name, tuple((x,) for x in points), exact=definitions, **options)


def many(name: str, *points: Point, exact: Any = None, **options: Any) -> Case:
    """A function of several operands."""
    definitions = exact if isinstance(exact, tuple) else () if exact is None else (exact,)
    return Case(name, points, exact=definitions, **options)


def ordered(name: str, *points: Point, exact: Any = None, **options: Any) -> Case:
    """A function of an order and an argument, differentiable in the argument only."""
    return many(name, *points, exact=exact, refused=(0,), **options)


def degreed(name: str, *points: Point, exact: Any = None, **options: Any) -> Case:
    """A polynomial: integer degree, without derivatives in degree and parameters."""
    return many(name, *points, exact=exact, **options)


BOTH = (0, 1)
ALL = (0, 1, 2)


def _lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _upper(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def _beta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def _student(df: Any, x: Any) -> Any:
    half = _beta(df / 2, mp.mpf(1) / 2, df / (df + x * x)) / 2
    return half if x < 0 else 1 - half


def _boxcox(x: Any, power: Any) -> Any:
    return (x**power - 1) / power if power else mp.log(x)


def _carlson_g(x: Any, y: Any, z: Any) -> Any:
    return (z * mp.elliprf(x, y, z) - (x - z) * (y - z) * mp.elliprd(x, y, z) / 3
            + mp.sqrt(x * y / z)) / 2  # fmt: skip


def _normal(x: Any) -> Any:
    return mp.ncdf(x)


def _sum_of(term: Callable[[Any], Any], count: int) -> Any:
    return mp.fsum(term(k) for k in range(1, count))


def _kolmogorov(x: Any) -> Any:
    return 2 * _sum_of(lambda k: (-1) ** (k - 1) * mp.exp(-2 * k * k * x * x), 60)


def _owen(h: Any, a: Any) -> Any:
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


CASES: tuple[Case, ...] = (
    # gamma
    one("gamma", 0.3, 1.0, 4.5, -1.5, exact=mp.gamma),
    one("gammaln", 0.3, 1.5, 4.5, 60.0, exact=mp.loggamma),
    one("loggamma", 0.3, 1.5, 4.5, exact=mp.loggamma),
    one("rgamma", 0.3, 1.0, 4.5, 0.0, -1.0, -2.0, -1.5, exact=mp.rgamma),
    one("digamma", 0.3, 1.5, 4.5, exact=mp.digamma),
    one("psi", 0.3, 1.5, 4.5, exact=mp.digamma),
    one("gammasgn", 0.3, 4.5, -1.5, -0.5, exact=lambda x: mp.sign(mp.gamma(x))),
    many("poch", (1.5, 2.0), (3.2, 0.5), (0.4, 1.7), moving=BOTH, exact=mp.rf),
    many("binom", (5.5, 2.0), (3.2, 0.5), (7.0, 3.5), moving=BOTH, exact=mp.binomial),
    many("beta", (1.5, 2.0), (0.3, 4.5), moving=BOTH, exact=mp.beta),
    many("betaln", (1.5, 2.0), (0.3, 4.5), moving=BOTH, exact=lambda a, b: mp.log(mp.beta(a, b))),
    many("gammainc", (0.5, 0.2), (2.0, 3.0), (2.5, 1.5), (12.0, 9.0), (0.3, 4.0), moving=BOTH,
         exact=_lower),
    many("gammaincc", (0.5, 0.2), (2.0, 3.0), (2.5, 1.5), (12.0, 9.0), (0.3, 4.0), moving=BOTH,
         exact=_upper),
    many("gammaincinv", (0.5, 0.2), (2.0, 0.7), (12.0, 0.5), moving=BOTH),
    many("gammainccinv", (0.5, 0.2), (2.0, 0.7), (12.0, 0.5), moving=BOTH),
    many("betainc", (0.5, 1.5, 0.2), (2.0, 3.0, 0.5), (5.5, 0.7, 0.9), moving=ALL, exact=_beta),
    many("betaincc", (0.5, 1.5, 0.2), (2.0, 3.0, 0.5), (5.5, 0.7, 0.9), moving=ALL,
         exact=lambda a, b, x: 1 - _beta(a, b, x)),
    many("betaincinv", (0.5, 1.5, 0.2), (2.0, 3.0, 0.5), (5.5, 0.7, 0.9), moving=ALL),
    many("betainccinv", (0.5, 1.5, 0.2), (2.0, 3.0, 0.5), (5.5, 0.7, 0.9), moving=ALL),
    one("zetac", 2.5, 4.0, 0.5, -1.5, exact=lambda s: mp.zeta(s) - 1),
    # error functions
    one("erf", -0.7, 0.0, 0.3, 2.0, exact=mp.erf),
    one("erfc", -0.7, 0.0, 0.3, 2.0, exact=mp.erfc),
    one("erfcx", -0.7, 0.0, 0.3, 2.0, exact=lambda x: mp.exp(x * x) * mp.erfc(x)),
    one("erfi", -0.7, 0.0, 0.3, 2.0, exact=mp.erfi),
    one("erfinv", -0.7, 0.0, 0.3, 0.9, exact=mp.erfinv),
    one("erfcinv", 0.1, 0.5, 1.3, exact=lambda x: mp.erfinv(1 - x)),
    one("dawsn", -0.7, 0.0, 0.3, 2.0,
        exact=lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)),
    one("wofz", -0.7, 0.0, 0.3, 2.0, exact=lambda z: mp.exp(-z * z) * mp.erfc(-1j * z)),
    one("fresnel", -0.7, 0.0, 0.3, 2.0, exact=(mp.fresnels, mp.fresnelc)),
    one("ndtr", -0.7, 0.0, 0.3, 2.0, exact=_normal),
    one("ndtri", 0.1, 0.5, 0.8, exact=lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1)),
    one("ndtri_exp", -3.0, -0.5, -20.0),
    one("log_ndtr", -6.0, -0.7, 0.3, 2.0, exact=lambda x: mp.log(_normal(x))),
    many("owens_t", (0.5, 0.7), (-1.2, 2.0), (2.0, -0.3), moving=BOTH, exact=_owen),
    many("voigt_profile", (0.5, 1.2, 0.7), (-2.0, 0.6, 1.5), moving=ALL,
         exact=lambda x, s, g: mp.re(_faddeeva((x + 1j * g) / (s * mp.sqrt(2))))
         / (s * mp.sqrt(2 * mp.pi))),
    # logarithms and powers
    one("expit", -3.0, 0.0, 2.5, exact=lambda x: 1 / (1 + mp.exp(-x))),
    one("logit", 0.1, 0.5, 0.8, exact=lambda p: mp.log(p / (1 - p))),
    one("log_expit", -3.0, 0.0, 2.5, exact=lambda x: -mp.log(1 + mp.exp(-x))),
    many("xlogy", (0.5, 0.7), (-1.2, 2.0), (0.0, 1.5), moving=BOTH,
         exact=lambda x, y: x * mp.log(y)),
    many("xlog1py", (0.5, 0.7), (-1.2, 2.0), (0.0, -0.5), moving=BOTH,
         exact=lambda x, y: x * mp.log1p(y)),
    one("entr", 0.1, 0.5, 1.8, exact=lambda x: -x * mp.log(x)),
    many("rel_entr", (0.5, 0.7), (1.2, 2.0), moving=BOTH, exact=lambda x, y: x * mp.log(x / y)),
    many("kl_div", (0.5, 0.7), (1.2, 2.0), moving=BOTH,
         exact=lambda x, y: x * mp.log(x / y) - x + y),
    one("exprel", -3.0, 1e-9, 0.0, 0.4, 2.5, 30.0,
        exact=lambda x: mp.expm1(x) / x if x else mp.mpf(1)),
    many("boxcox", (0.5, 0.7), (1.2, -2.0), (3.0, 1e-8), (2.0, 0.5), moving=BOTH, exact=_boxcox),
    many("boxcox1p", (0.5, 0.7), (1.2, -2.0), (3.0, 1e-8), (-0.4, 0.5), moving=BOTH,
         exact=lambda x, k: _boxcox(1 + x, k)),
    many("inv_boxcox", (0.5, 0.7), (0.2, -2.0), (3.0, 1e-8), (-0.4, 0.5), moving=BOTH,
         exact=lambda y, k: mp.exp(mp.log1p(k * y) / k)),
    many("inv_boxcox1p", (0.5, 0.7), (0.2, -2.0), (3.0, 1e-8), (-0.4, 0.5), moving=BOTH,
         exact=lambda y, k: mp.expm1(mp.log1p(k * y) / k)),
    one("cosm1", -3.0, 1e-6, 2.5, exact=lambda x: mp.cos(x) - 1),
    many("powm1", (0.5, 0.7), (1.2, -2.0), moving=BOTH, exact=lambda x, y: x**y - 1),
    one("exp10", -3.0, 0.0, 2.5, exact=lambda x: mp.mpf(10) ** x),
    one("sindg", -30.0, 0.0, 100.0, exact=lambda x: mp.sin(mp.radians(x))),
    one("cosdg", -30.0, 0.0, 100.0, exact=lambda x: mp.cos(mp.radians(x))),
    one("tandg", -30.0, 0.0, 100.0, exact=lambda x: mp.tan(mp.radians(x))),
    one("cotdg", -30.0, 10.0, 100.0, exact=lambda x: mp.cot(mp.radians(x))),
    many("tklmbda", (0.5, 0.7), (-1.2, -2.0), (2.0, 0.2), moving=BOTH),
    one("kolmogorov", 0.3, 0.79, 0.81, 1.5, exact=_kolmogorov),
    one("kolmogi", 0.1, 0.5, 0.9),
    one("log1p", -0.5, 0.0, 2.5, exact=mp.log1p),
    one("expm1", -0.5, 0.0, 2.5, exact=mp.expm1),
    one("exp2", -0.5, 0.0, 2.5, exact=lambda x: mp.mpf(2) ** x),
    one("cbrt", -0.5, 0.3, 2.5, exact=lambda x: mp.sign(x) * mp.cbrt(abs(x))),
    one("round", -0.4, 0.3, 2.7, exact=mp.nint),
    many("radian", (10.0, 20.0, 30.0), moving=ALL),
    many("huber", (1.5, 0.7), (1.2, -2.0), (0.5, 3.0), moving=BOTH,
         exact=lambda d, r: r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2)),
    many("pseudo_huber", (1.5, 0.7), (1.2, -2.0), (0.5, 3.0), (2.0, 0.0), moving=BOTH,
         exact=lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1)),
    # Bessel
    *(one(name, 0.3, 1.5, 6.0, exact=lambda x, k=kind, n=order: k(n, x))
      for name, kind, order in (
          ("i0", mp.besseli, 0), ("i1", mp.besseli, 1), ("j0", mp.besselj, 0),
          ("j1", mp.besselj, 1), ("y0", mp.bessely, 0), ("y1", mp.bessely, 1),
          ("k0", mp.besselk, 0), ("k1", mp.besselk, 1))),
    one("i0e", -1.5, 0.3, 6.0, exact=lambda x: mp.besseli(0, x) * mp.exp(-abs(x))),
    one("i1e", -1.5, 0.3, 6.0, exact=lambda x: mp.besseli(1, x) * mp.exp(-abs(x))),
    one("k0e", 0.3, 1.5, 6.0, exact=lambda x: mp.besselk(0, x) * mp.exp(x)),
    one("k1e", 0.3, 1.5, 6.0, exact=lambda x: mp.besselk(1, x) * mp.exp(x)),
    ordered("jv", (0.0, 1.5), (2.5, 0.7), (3.0, 12.0), exact=mp.besselj),
    ordered("jn", (0, 1.5), (2, 0.7), (3, 12.0), exact=mp.besselj),
    ordered("yv", (0.0, 1.5), (2.5, 0.7), (3.0, 12.0), exact=mp.bessely),
    ordered("yn", (0, 1.5), (2, 0.7), (3, 12.0), exact=mp.bessely),
    ordered("iv", (0.0, 1.5), (2.5, 0.7), (3.0, 12.0), exact=mp.besseli),
    ordered("kv", (0.0, 1.5), (2.5, 0.7), (3.0, 12.0), exact=mp.besselk),
    ordered("kn", (0, 1.5), (2, 0.7), (3, 12.0), exact=mp.besselk),
    ordered("jve", (0.0, 1.5), (2.5, 0.7), (3.0, 12.0), exact=mp.besselj),
    ordered("yve", (0.0, 1.5), (2.5, 0.7), (3.0, 12.0), exact=mp.bessely),
    ordered("ive", (0.0, 1.5), (2.5, 0.7), (2.0, -3.0),
            exact=lambda v, x: mp.re(mp.besseli(v, x)) * mp.exp(-abs(x))),
    ordered("kve", (0.0, 1.5), (2.5, 0.7), (3.0, 12.0),
            exact=lambda v, x: mp.besselk(v, x) * mp.exp(x)),
    ordered("struve", (0.0, 1.5), (2.5, 0.7), (1.0, 8.0), exact=mp.struveh),
    ordered("modstruve", (0.0, 1.5), (2.5, 0.7), (1.0, 8.0), exact=mp.struvel),
    ordered("hankel1", (0.0, 1.5), (2.5, 0.7), exact=mp.hankel1),
    ordered("hankel2", (0.0, 1.5), (2.5, 0.7), exact=mp.hankel2),
    ordered("hankel1e", (0.0, 1.5), (2.5, 0.7),
            exact=lambda v, z: mp.hankel1(v, z) * mp.exp(-1j * z)),
    ordered("hankel2e", (0.0, 1.5), (2.5, 0.7),
            exact=lambda v, z: mp.hankel2(v, z) * mp.exp(1j * z)),
    ordered("spherical_jn", (0, 1.5), (2, 0.7), (1, 0.0), (3, 12.0), has_f32=False),
    ordered("spherical_yn", (0, 1.5), (2, 0.7), (3, 12.0), has_f32=False),
    ordered("spherical_in", (0, 1.5), (2, 0.7), (1, 0.0), (3, 6.0), has_f32=False),
    ordered("spherical_kn", (0, 1.5), (2, 0.7), (3, 6.0), has_f32=False),
    one("airy", -2.5, 0.0, 1.2,
        exact=(mp.airyai, lambda x: mp.airyai(x, derivative=1), mp.airybi,
               lambda x: mp.airybi(x, derivative=1))),
    one("airye", 0.5, 1.2, 4.0,
        exact=tuple(
            (lambda x, f=f, d=d, s=s: f(x, derivative=d) * mp.exp(s * mp.mpf(2) / 3 * x**1.5))
            for f, s in ((mp.airyai, 1), (mp.airybi, -1)) for d in (0, 1))),
    *(one(name, 0.5, 1.2, 4.0, exact=lambda x, f=kind: f(0, x))
      for name, kind in (("ber", mp.ber), ("bei", mp.bei), ("ker", mp.ker), ("kei", mp.kei))),
    *(one(name, 0.5, 1.2, 4.0, exact=lambda x, f=kind: mp.diff(lambda t: f(0, t), x), rtol=1e-11)
      for name, kind in (("berp", mp.ber), ("beip", mp.bei), ("kerp", mp.ker), ("keip", mp.kei))),
    one("kelvin", 0.5, 1.2, 4.0),
    one("iti0k0", 0.5, 1.2, 4.0),
    one("itj0y0", 0.5, 1.2, 4.0),
    one("it2i0k0", 0.5, 1.2, 4.0),
    one("it2j0y0", 0.5, 1.2, 4.0, tolerance=1e-4, has_f32=False),
    one("itstruve0", 0.5, 1.2, 4.0),
    one("it2struve0", 0.5, 1.2, 4.0),
    one("itmodstruve0", 0.5, 1.2, 4.0),
    # hypergeometric
    many("hyp0f1", (1.5, 0.7), (0.5, -2.0), exact=mp.hyp0f1, refused=(0,)),
    many("hyp1f1", (1.5, 2.5, 0.7), (0.5, 3.0, -2.0), exact=mp.hyp1f1, refused=BOTH),
    many("hyp2f1", (1.5, 2.5, 3.0, 0.3), (0.5, 3.0, 1.2, -2.0), exact=mp.hyp2f1, refused=ALL),
    many("hyperu", (1.5, 2.5, 0.7), (0.5, 3.0, 2.0), exact=mp.hyperu, refused=BOTH),
    many("wright_bessel", (1.0, 1.5, 0.7), (0.5, 1.0, 2.0), refused=BOTH),
    ordered("expn", (0, 1.5), (1, 0.7), (3, 2.0), exact=mp.expint),
    one("exp1", 0.5, 1.2, 4.0, exact=mp.e1),
    one("expi", -0.5, 1.2, 4.0, exact=mp.ei),
    one("sici", 0.2, 1.2, 4.0, exact=(mp.si, mp.ci)),
    one("shichi", 0.2, 1.2, 4.0, exact=(mp.shi, mp.chi)),
    one("spence", 0.2, 0.9, 1.0, 1.1, 4.0, exact=lambda z: mp.re(mp.polylog(2, 1 - z))),
    one("lambertw", 0.0, 0.5, 4.0, exact=mp.lambertw),
    one("wrightomega", -2.0, 0.5, 4.0, exact=lambda x: mp.lambertw(mp.exp(x))),
    many("elliprc", (0.5, 1.2), (1.0, 1.0), (2.0, -0.7), moving=BOTH, exact=mp.elliprc),
    many("elliprf", (0.5, 1.2, 2.0), (1.0, 1.0, 0.3), moving=ALL, exact=mp.elliprf),
    many("elliprd", (0.5, 1.2, 2.0), (1.0, 0.3, 1.0), moving=ALL, exact=mp.elliprd, order=1),
    many("elliprg", (0.5, 1.2, 2.0), (1.0, 1.0, 0.3), moving=ALL, exact=_carlson_g),
    many("elliprj", (0.5, 1.2, 2.0, 0.7), (1.0, 0.3, 1.0, 1.0), moving=(0, 1, 2, 3),
         exact=mp.elliprj, order=1),
    one("ellipk", -2.0, 0.0, 0.4, 0.9, exact=mp.ellipk),
    one("ellipkm1", 0.1, 0.5, 1.5, exact=lambda p: mp.ellipk(1 - p)),
    one("ellipe", -2.0, 0.0, 0.4, 0.9, exact=mp.ellipe),
    many("ellipkinc", (0.5, 0.7), (-1.2, -2.0), (4.0, 0.3), moving=BOTH, exact=mp.ellipf),
    many("ellipeinc", (0.5, 0.7), (-1.2, -2.0), (4.0, 0.3), moving=BOTH, exact=mp.ellipe),
    many("ellipj", (0.5, 0.7), (-1.2, 0.2), (4.0, 0.3), moving=BOTH,
         exact=(*((lambda u, m, k=k: mp.ellipfun(k, u, m=m)) for k in ("sn", "cn", "dn")),)),
    many("agm", (0.5, 0.7), (3.0, 3.0), moving=BOTH, exact=mp.agm),
    # polynomials
    degreed("eval_jacobi", (0, 0.5, 1.5, 0.3), (1, 0.5, 1.5, 1.0), (4, 0.5, 1.5, -0.6),
            exact=mp.jacobi, refused=(1, 2)),
    degreed("eval_gegenbauer", (0, 0.5, 0.3), (1, 1.5, 1.0), (4, 0.7, -0.6), exact=mp.gegenbauer,
            refused=(1,)),
    degreed("eval_legendre", (0, 0.3), (1, 1.0), (4, -0.6), exact=mp.legendre),
    degreed("eval_chebyt", (0, 0.3), (1, 1.0), (4, -0.6), exact=mp.chebyt),
    degreed("eval_chebyu", (0, 0.3), (1, 1.0), (4, -0.6), exact=mp.chebyu),
    degreed("eval_chebyc", (0, 0.3), (1, 1.0), (4, -0.6),
            exact=lambda n, x: 2 * mp.chebyt(n, x / 2)),
    degreed("eval_chebys", (0, 0.3), (1, 1.0), (4, -0.6), exact=lambda n, x: mp.chebyu(n, x / 2)),
    degreed("eval_genlaguerre", (0, 0.5, 0.3), (1, 1.5, 1.0), (4, 0.7, 2.6), exact=mp.laguerre,
            refused=(1,)),
    degreed("eval_laguerre", (0, 0.3), (1, 1.0), (4, 2.6), exact=lambda n, x: mp.laguerre(n, 0, x)),
    degreed("eval_hermite", (0, 0.3), (1, 1.0), (4, -0.6), exact=mp.hermite),
    degreed("eval_hermitenorm", (0, 0.3), (1, 1.0), (4, -0.6),
            exact=lambda n, x: mp.hermite(n, x / mp.sqrt(2)) / mp.mpf(2) ** (mp.mpf(n) / 2)),
    degreed("eval_sh_legendre", (0, 0.3), (1, 1.0), (4, 0.6),
            exact=lambda n, x: mp.legendre(n, 2 * x - 1)),
    degreed("eval_sh_chebyt", (0, 0.3), (1, 1.0), (4, 0.6),
            exact=lambda n, x: mp.chebyt(n, 2 * x - 1)),
    degreed("eval_sh_chebyu", (0, 0.3), (1, 1.0), (4, 0.6),
            exact=lambda n, x: mp.chebyu(n, 2 * x - 1)),
    degreed("eval_sh_jacobi", (1, 2.5, 1.5, 0.3), (4, 2.5, 1.5, 0.6)),
    many("lpmv", (0, 2.5, 0.3), (1, 3.0, -0.6), (2, 4.0, 0.5)),
    # distributions
    many("bdtr", (2, 5, 0.3), (4, 7, 0.6), tolerance=1e-6),
    many("bdtrc", (2, 5, 0.3), (4, 7, 0.6)),
    many("bdtri", (2, 5, 0.3), (4, 7, 0.6)),
    many("nbdtr", (2, 5, 0.3), (4, 7, 0.6)),
    many("nbdtrc", (2, 5, 0.3), (4, 7, 0.6)),
    many("nbdtri", (2, 5, 0.3), (4, 7, 0.6)),
    many("pdtr", (2, 1.5), (4, 7.0), exact=lambda k, m: _upper(k + 1, m)),
    many("pdtrc", (2, 1.5), (4, 7.0), exact=lambda k, m: _lower(k + 1, m)),
    many("pdtri", (2, 0.3), (4, 0.7)),
    many("pdtrik", (0.3, 1.5), (0.7, 7.0), moving=BOTH, has_f32=False),
    many("chdtr", (1.5, 0.7), (4.0, 7.0), moving=BOTH, exact=lambda v, x: _lower(v / 2, x / 2)),
    many("chdtrc", (1.5, 0.7), (4.0, 7.0), moving=BOTH, exact=lambda v, x: _upper(v / 2, x / 2)),
    many("chdtri", (1.5, 0.7), (4.0, 0.2), moving=BOTH),
    many("chdtriv", (0.7, 1.5), (0.2, 4.0), moving=BOTH, has_f32=False),
    many("gdtr", (1.5, 2.0, 0.7), (0.4, 3.0, 5.0), moving=ALL,
         exact=lambda a, b, x: _lower(b, a * x)),
    many("gdtrc", (1.5, 2.0, 0.7), (0.4, 3.0, 5.0), moving=ALL,
         exact=lambda a, b, x: _upper(b, a * x)),
    many("gdtrix", (1.5, 2.0, 0.7), (0.4, 3.0, 0.5), moving=ALL),
    many("gdtria", (0.7, 2.0, 1.5), (0.5, 3.0, 4.0), moving=ALL),
    many("gdtrib", (1.5, 0.7, 2.0), (0.4, 0.5, 5.0), moving=ALL, has_f32=False),
    many("fdtr", (3.0, 5.0, 0.7), (2.5, 8.0, 2.0), moving=ALL),
    many("fdtrc", (3.0, 5.0, 0.7), (2.5, 8.0, 2.0), moving=ALL),
    many("fdtri", (3.0, 5.0, 0.7), (2.5, 8.0, 0.2), moving=ALL),
    many("stdtr", (3.0, 0.7), (2.5, -2.0), (8.0, 0.01), moving=BOTH, exact=_student),
    many("stdtrit", (3.0, 0.7), (2.5, 0.2), moving=BOTH),
    many("stdtridf", (0.7, 0.6), (0.2, -1.0), moving=BOTH, has_f32=False),
    many("btdtria", (0.3, 2.0, 0.4), (0.7, 1.5, 0.6), moving=ALL, has_f32=False),
    many("btdtrib", (2.0, 0.3, 0.4), (1.5, 0.7, 0.6), moving=ALL, has_f32=False),
    many("nrdtrimn", (0.3, 2.0, 0.4), moving=ALL),
    many("nrdtrisd", (0.4, 0.7, 1.5), moving=ALL),
)  # fmt: skip


def _faddeeva(z: Any) -> Any:
    return mp.exp(-z * z) * mp.erfc(-1j * z)
