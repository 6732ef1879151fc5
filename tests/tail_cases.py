"""The table of functions of elements by their tails: definitions in mpmath, points, bounds.

One row per function and operand that derivatives are taken in. Points come from a formula, so that
only what mpmath says of them is kept (``tail_references.npz``, by ``python -m
tests.tail_references``).

The bound of the error of a row in an order is ``bound * eps * (1 + condition)``, where the
condition is the sum of ``|x_j dg/dx_j / g|`` over the operands of the exact derivative ``g``: what
one rounding of the operands does to it. A monotone tail, and a pole that the operand approaches
exactly, have a small condition, so that the bound is one of the relative error there. It is
``USUAL``, but for the rows of ``BOUNDS``, which say why.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mpmath as mp

COUNT = 200
_GOLDEN = (math.sqrt(5) - 1) / 2
# Where the derivatives of a function beside 0 or beside an end are looked at.
Piece = Callable[[float], float]


def _short(x: float) -> float:
    """A number of 30 bits, so that sums and differences with small numbers are exact."""
    mantissa, exponent = math.frexp(x)
    return math.ldexp(round(mantissa * 2**30), exponent - 30)


def line(low: float, high: float) -> Piece:
    """Points that are spread evenly."""
    return lambda u: _short(low + (high - low) * u)


def logs(low: float, high: float) -> Piece:
    """Points whose logarithms are spread evenly; negative ones where both ends are."""
    sign, a, b = math.copysign(1, low), math.log(abs(low)), math.log(abs(high))
    return lambda u: sign * _short(math.exp(a + (b - a) * u))


def beside(end: float, side: int, low: float = 1e-15, high: float = 0.1) -> Piece:
    """Points beside an end, at distances whose logarithms are spread evenly."""
    distance = logs(low, high)
    return lambda u: end + side * distance(u)


def each(*values: float) -> Piece:
    """Certain points, or parameters."""
    return lambda u: values[min(int(u * len(values)), len(values) - 1)]


def spread(pieces: tuple[Piece, ...], count: int, phase: float) -> Iterator[float]:
    """Points of all pieces in turn."""
    for i in range(count):
        yield pieces[i % len(pieces)](math.modf(phase + (i + 1) * _GOLDEN)[0])


@dataclass(frozen=True, slots=True)
class Tail:
    """A function, and where its derivatives are compared with mpmath's.

    Attributes:
      name: NumPy's or SciPy's name.
      exact: its definition in mpmath.
      domains: pieces of the line per operand.
      moving: the operand that derivatives are taken in.
      result: which result it is of a function with several.
      count: number of points.
      is_scipy: whether it is one of ``scipy.special``.
    """

    name: str
    exact: Callable[..., Any]
    domains: tuple[tuple[Piece, ...], ...]
    moving: int = 0
    result: int | None = None
    count: int = COUNT
    is_scipy: bool = True

    @property
    def key(self) -> str:
        """The name of the row."""
        result = "" if self.result is None else f"-{self.result}"
        place = f"@{self.moving}" if len(self.domains) > 1 else ""
        return f"{'special' if self.is_scipy else 'numpy'}.{self.name}{result}{place}"

    def points(self) -> list[tuple[float, ...]]:
        """The operands, a tuple per point."""
        columns = [
            spread(pieces, self.count, 0.137 * i + (0.31 * i) * _GOLDEN)
            for i, pieces in enumerate(self.domains)
        ]
        return list(dict.fromkeys(zip(*columns, strict=True)))


# definitions -------------------------------------------------------------------------------------


def _normal(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _expit(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _upper(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def _beta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def _boxcox(x: Any, power: Any) -> Any:
    return mp.expm1(power * mp.log(x)) / power if power else mp.log(x)


def _bessel(kind: Callable[..., Any], order: int, scale: int = 0) -> Callable[..., Any]:
    def function(x: Any) -> Any:
        value = kind(order, x)
        return value * mp.exp(scale * abs(x)) if scale else value

    return function


def _macdonald(order: Any, x: Any, scaled: bool = True) -> Any:
    """``K`` times ``exp(x)``, the integral of ``exp(x - x cosh(t)) cosh(v t)``, by trapezoids.

    It converges geometrically, ``exp(-pi**2 / h)`` for the step ``h``, and as that of a Gaussian
    for large ``x``; mpmath's own takes minutes for whole orders in many digits.
    """
    size = mp.mp.dps * mp.log(10) + 10
    step = min(mp.pi**2 / size, mp.pi / mp.sqrt(x * size))
    total, k, term = mp.mpf(1) / 2, 0, mp.mpf(1)
    while term > total * mp.eps:
        k += 1
        half = mp.sinh(k * step / 2)
        term = mp.exp(-2 * x * half * half) * mp.cosh(order * k * step)
        total += term
    return total * step * (1 if scaled else mp.exp(-x))


def _sinc(x: Any) -> Any:
    return mp.sin(mp.pi * x) / (mp.pi * x) if x else mp.mpf(1)


def _cbrt(x: Any) -> Any:
    return mp.sign(x) * mp.cbrt(abs(x))


def _owen(h: Any, a: Any) -> Any:
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


def _voigt(x: Any, s: Any, g: Any) -> Any:
    z = (x + 1j * g) / (s * mp.sqrt(2))
    return mp.re(mp.exp(-z * z) * mp.erfc(-1j * z)) / (s * mp.sqrt(2 * mp.pi))


def _lgamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x)))


# points ------------------------------------------------------------------------------------------

_TINY, _HUGE = 1e-100, 1e100
_AROUND = (logs(_TINY, 1.0), logs(-_TINY, -1.0))
_POLES = tuple(beside(-n, side, 1e-14, 0.4) for n in (1, 2, 5) for side in (-1, 1))


def _both(high: float, low: float = _TINY) -> tuple[Piece, ...]:
    """Numbers of both signs."""
    return (logs(low, high), logs(-low, -high), line(-min(high, 30.0), min(high, 30.0)))


_ALL = _both(_HUGE)
_POSITIVE = (logs(_TINY, _HUGE), line(0.0, 30.0))
_UNIT = (logs(1e-300, 0.5), line(0.0, 1.0), beside(1.0, -1))
_INSIDE = (*_AROUND, beside(1.0, -1), beside(-1.0, 1))


def numpy(name: str, exact: Any, *domains: tuple[Piece, ...], **options: Any) -> list[Tail]:
    """A function of NumPy: a row per operand."""
    return [Tail(name, exact, domains, i, is_scipy=False, **options) for i in range(len(domains))]


def one(name: str, exact: Any, *pieces: Piece, **options: Any) -> list[Tail]:
    """A function of SciPy of one operand."""
    return [Tail(name, exact, (pieces,), **options)]


def many(
    name: str, exact: Any, *domains: tuple[Piece, ...], moving: tuple[int, ...] = (), **options: Any
) -> list[Tail]:
    """A function of SciPy of several operands, a row for each that derivatives are taken in."""
    options.setdefault("count", 60)
    return [Tail(name, exact, domains, i, **options) for i in moving or range(len(domains))]


def ordered(name: str, exact: Any, *domains: tuple[Piece, ...], **options: Any) -> list[Tail]:
    """A function of SciPy that has derivatives in the last operand only."""
    return many(name, exact, *domains, moving=(len(domains) - 1,), **options)


_NUMPY = (
    numpy("exp", mp.exp, _both(700.0)),
    numpy("exp2", lambda x: mp.mpf(2) ** x, _both(1000.0)),
    numpy("expm1", mp.expm1, _both(700.0)),
    numpy("log", mp.log, (*_POSITIVE, beside(1.0, 1), beside(1.0, -1))),
    numpy("log2", lambda x: mp.log(x, 2), (*_POSITIVE, beside(1.0, 1))),
    numpy("log10", mp.log10, (*_POSITIVE, beside(1.0, -1))),
    numpy("log1p", mp.log1p, (*_AROUND[:1], logs(-_TINY, -0.9), logs(1.0, _HUGE), beside(-1.0, 1))),
    numpy("sqrt", mp.sqrt, _POSITIVE),
    numpy("cbrt", _cbrt, _both(1e90, 1e-90)),
    numpy("square", lambda x: x * x, _ALL),
    numpy("reciprocal", lambda x: 1 / x, _both(1e90, 1e-90)),
    numpy("sin", mp.sin, _ALL),
    numpy("cos", mp.cos, _ALL),
    numpy("tan", mp.tan, _both(1e8)),
    numpy("arcsin", mp.asin, _INSIDE),
    numpy("arccos", mp.acos, _INSIDE),
    numpy("arctan", mp.atan, _both(1e75)),
    numpy("sinh", mp.sinh, _both(700.0)),
    numpy("cosh", mp.cosh, _both(700.0)),
    numpy("tanh", mp.tanh, _both(350.0)),
    numpy("arcsinh", mp.asinh, _both(1e90)),
    numpy("arccosh", mp.acosh, (beside(1.0, 1), logs(1.0, 1e90), line(1.0, 30.0))),
    numpy("arctanh", mp.atanh, _INSIDE),
    numpy("sinc", _sinc, (*_both(1e6, 1e-90), line(-3.0, 3.0))),
    numpy("i0", _bessel(mp.besseli, 0), _both(690.0)),
    numpy("degrees", mp.degrees, _ALL),
    numpy("radians", mp.radians, _ALL),
    numpy("absolute", abs, _ALL),
    numpy("add", lambda a, b: a + b, _ALL, _ALL),
    numpy("subtract", lambda a, b: a - b, _ALL, _ALL),
    numpy("multiply", lambda a, b: a * b, _ALL, _ALL),
    numpy("divide", lambda a, b: a / b, _both(1e90, 1e-90), _both(1e60, 1e-60)),
    numpy(
        "power",
        lambda a, b: a**b,
        (logs(1e-20, 1e20), line(0.1, 3.0)),
        (line(-5.0, 5.0), each(0.5, 1.5, 2.0, 3.0)),
    ),
    numpy("float_power", lambda a, b: a**b, (logs(1e-20, 1e20),), (line(-5.0, 5.0),)),
    numpy("arctan2", mp.atan2, _both(1e60, 1e-60), _both(1e60, 1e-60)),
    numpy("hypot", mp.hypot, _both(1e60, 1e-60), _both(1e60, 1e-60)),
    numpy(
        "logaddexp",
        lambda a, b: mp.log(mp.exp(a) + mp.exp(b)),
        (line(-300.0, 300.0), line(-3.0, 3.0)),
        (line(-300.0, 300.0), line(-3.0, 3.0)),
    ),
    numpy(
        "logaddexp2",
        lambda a, b: mp.log(mp.mpf(2) ** a + mp.mpf(2) ** b, 2),
        (line(-400.0, 400.0), line(-3.0, 3.0)),
        (line(-400.0, 400.0), line(-3.0, 3.0)),
    ),
)
_ERROR_FUNCTIONS = (
    one("erf", mp.erf, *_both(26.0)),
    one("erfc", mp.erfc, *_both(26.0)),
    one(
        "erfcx",
        lambda x: mp.exp(x * x) * mp.erfc(x),
        logs(_TINY, 1e3),
        line(-25.0, 30.0),
        count=100,
    ),
    one("erfi", mp.erfi, *_both(26.0)),
    one("erfinv", mp.erfinv, *_INSIDE),
    one("erfcinv", lambda x: mp.erfinv(1 - x), logs(1e-50, 1.0), line(0.0, 2.0), beside(2.0, -1)),
    one("dawsn", lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), *_both(30.0)),
    one("fresnel", mp.fresnels, *_both(30.0), result=0),
    one("fresnel", mp.fresnelc, *_both(30.0), result=1),
    one("ndtr", _normal, *_both(37.0)),
    one("log_ndtr", lambda x: mp.log(_normal(x)), *_both(37.0), logs(-1.0, -1e3)),
    one(
        "ndtri",
        lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
        logs(1e-50, 0.5),
        line(0.0, 1.0),
        beside(1.0, -1),
    ),
    many("owens_t", _owen, (line(-5.0, 5.0),), (line(-3.0, 3.0),), count=12),
    many(
        "voigt_profile", _voigt, (line(-5.0, 5.0),), (line(0.3, 3.0),), (line(0.1, 3.0),), count=12
    ),
)
_LOGARITHMS = (
    one("expit", _expit, *_both(350.0)),
    one("logit", lambda p: mp.log(p / (1 - p)), *_UNIT),
    one("log_expit", lambda x: -mp.log1p(mp.exp(-x)), *_both(350.0)),
    one("log1p", mp.log1p, logs(_TINY, 1e90), beside(-1.0, 1)),
    one("expm1", mp.expm1, *_both(700.0)),
    one("exp2", lambda x: mp.mpf(2) ** x, *_both(1000.0)),
    one("exp10", lambda x: mp.mpf(10) ** x, *_both(300.0)),
    one("cbrt", _cbrt, *_both(1e90, 1e-90)),
    one("exprel", lambda x: mp.expm1(x) / x if x else mp.mpf(1), *_both(700.0)),
    one("entr", lambda x: -x * mp.log(x), *_POSITIVE),
    one("cosm1", lambda x: mp.cos(x) - 1, *_both(1e3)),
    *(
        one(name, exact, *_both(1e4, 1e-90))
        for name, exact in (
            ("sindg", lambda x: mp.sin(mp.radians(x))),
            ("cosdg", lambda x: mp.cos(mp.radians(x))),
            ("tandg", lambda x: mp.tan(mp.radians(x))),
        )
    ),
    one(
        "cotdg", lambda x: mp.cot(mp.radians(x)), logs(1e-6, 179.0), line(1.0, 179.0)
    ),  # SciPy's is infinite below
    many("xlogy", lambda x, y: x * mp.log(y), _ALL, _POSITIVE),
    many("xlog1py", lambda x, y: x * mp.log1p(y), _ALL, (*_AROUND[:1], logs(-_TINY, -0.9))),
    many("rel_entr", lambda x, y: x * mp.log(x / y), _POSITIVE, _POSITIVE),
    many("kl_div", lambda x, y: x * mp.log(x / y) - x + y, _POSITIVE, _POSITIVE),
    many("boxcox", _boxcox, (logs(1e-20, 1e20),), (line(-3.0, 3.0), logs(1e-10, 1.0))),
    many(
        "boxcox1p",
        lambda x, k: _boxcox(1 + x, k),
        (logs(1e-20, 1e20), line(-0.9, 0.0)),
        (line(-3.0, 3.0), logs(1e-10, 1.0)),
    ),
    many(
        "inv_boxcox",
        lambda y, k: mp.exp(mp.log1p(k * y) / k),
        (line(0.1, 9.0),),
        (line(0.0, 3.0), logs(1e-10, 1.0)),
    ),
    many(
        "inv_boxcox1p",
        lambda y, k: mp.expm1(mp.log1p(k * y) / k),
        (logs(1e-20, 9.0),),
        (line(0.0, 3.0), logs(1e-10, 1.0)),
    ),
    many("powm1", lambda x, y: mp.expm1(y * mp.log(x)), (logs(1e-20, 1e20),), (line(-3.0, 3.0),)),
    many(
        "pseudo_huber",
        lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1),
        (logs(1e-5, 1e5),),
        _both(1e5, 1e-5),
    ),
)
_GAMMA_FUNCTIONS = (
    one("gamma", mp.gamma, *_both(170.0, 1e-90), *_POLES),
    one("gammaln", _lgamma, logs(1e-90, 1e90), line(0.0, 30.0), line(-30.0, 0.0), *_POLES),
    one("loggamma", mp.loggamma, logs(1e-90, 1e90), line(0.0, 30.0)),
    one("rgamma", mp.rgamma, *_both(170.0, 1e-90), *_POLES),
    one("digamma", mp.digamma, logs(1e-90, 1e90), line(-30.0, 30.0), *_POLES),
    one("psi", mp.digamma, logs(1e-90, 1e90), line(-30.0, 30.0), *_POLES),
    one("zetac", lambda s: mp.zeta(s) - 1, line(1.1, 50.0), beside(1.0, 1, 1e-10), count=40),
    many("poch", mp.rf, (line(0.1, 20.0),), (line(0.1, 20.0),)),
    many("binom", mp.binomial, (line(5.0, 20.0),), (line(0.1, 4.9),)),
    many("beta", mp.beta, (logs(1e-20, 100.0),), (logs(1e-20, 100.0),)),
    many("betaln", lambda a, b: mp.log(mp.beta(a, b)), (logs(1e-20, 1e9),), (logs(1e-20, 1e9),)),
    many("gammainc", _lower, (logs(0.1, 30.0),), (logs(1e-5, 60.0),), count=20),
    many("gammaincc", _upper, (logs(0.1, 30.0),), (logs(1e-5, 60.0),), count=20),
    many("betainc", _beta, (logs(0.3, 10.0),), (logs(0.3, 10.0),), (line(0.01, 0.99),), count=40),
)
_BESSEL_FUNCTIONS = (
    *(
        one(name, _bessel(mp.besseli, n), *_both(700.0, 1e-90), count=100)
        for name, n in (("i0", 0), ("i1", 1))
    ),
    *(
        one(
            name,
            lambda x, n=n: _macdonald(n, x, False),
            logs(1e-20, 700.0),
            line(0.0, 30.0),
            count=50,
        )
        for name, n in (("k0", 0), ("k1", 1))
    ),
    *(
        one(
            name,
            _bessel(mp.besselj, n),
            logs(1e-90, 1.0),
            logs(-1e-90, -1.0),
            line(-50.0, 50.0),
            count=100,
        )
        for name, n in (("j0", 0), ("j1", 1))
    ),
    *(
        one(name, _bessel(mp.bessely, n), logs(1e-90, 1.0), line(0.0, 50.0), count=60)
        for name, n in (("y0", 0), ("y1", 1))
    ),
    *(
        one(
            name,
            _bessel(mp.besseli, n, -1),
            *_AROUND,
            line(-30.0, 30.0),
            logs(1.0, 1e20),
            logs(-1.0, -1e20),
            count=100,
        )
        for name, n in (("i0e", 0), ("i1e", 1))
    ),
    *(
        one(
            name,
            lambda x, n=n: _macdonald(n, x),
            logs(1e-20, 1.0),
            line(0.0, 30.0),
            logs(1.0, 1e20),
            count=50,
        )
        for name, n in (("k0e", 0), ("k1e", 1))
    ),
    *(
        ordered(name, kind, (each(0.0, 1.0, 2.0, 0.5, 3.7),), pieces, count=30)
        for name, kind, pieces in (
            ("jv", mp.besselj, (logs(1e-5, 1.0), line(0.0, 50.0))),
            ("yv", mp.bessely, (logs(1e-5, 1.0), line(0.0, 50.0))),
            ("iv", mp.besseli, (logs(1e-5, 1.0), line(0.0, 500.0))),
            ("kv", lambda v, x: _macdonald(v, x, False), (logs(1e-5, 1.0), line(0.0, 500.0))),
            ("ive", lambda v, x: mp.besseli(v, x) * mp.exp(-x), (logs(1e-5, 1.0), logs(1.0, 1e8))),
            ("kve", _macdonald, (logs(1e-5, 1.0), logs(1.0, 1e8))),
            ("struve", mp.struveh, (logs(1e-5, 1.0), line(0.0, 20.0), logs(20.0, 1e4))),
            ("modstruve", mp.struvel, (logs(1e-5, 1.0), line(0.0, 20.0))),
        )
    ),
    *(
        one("airy", exact, line(-10.0, 10.0), logs(1e-20, 1.0), result=i, count=60)
        for i, exact in enumerate(
            (
                mp.airyai,
                lambda x: mp.airyai(x, derivative=1),
                mp.airybi,
                lambda x: mp.airybi(x, derivative=1),
            )
        )
    ),
    *(
        one(
            "airye",
            lambda x, f=f, d=d, s=s: f(x, derivative=d) * mp.exp(s * 2 * x * mp.sqrt(x) / 3),
            line(0.0, 10.0),
            logs(1e-20, 1.0),
            logs(1.0, 1e3),
            result=i,
            count=40,
        )
        for i, (f, d, s) in enumerate(
            ((mp.airyai, 0, 1), (mp.airyai, 1, 1), (mp.airybi, 0, -1), (mp.airybi, 1, -1))
        )
    ),
    *(
        one(name, lambda x, f=kind: f(0, x), line(0.1, 10.0), count=60)
        for name, kind in (("ber", mp.ber), ("bei", mp.bei), ("ker", mp.ker), ("kei", mp.kei))
    ),
)
_INTEGRALS = (
    one("exp1", mp.e1, logs(1e-90, 700.0), line(0.0, 30.0)),
    one("expi", mp.ei, logs(1e-90, 700.0), line(0.0, 30.0), logs(-1e-90, -700.0)),
    ordered("expn", mp.expint, (each(0, 1, 2, 3, 7),), (logs(1e-5, 1.0), line(0.0, 100.0))),
    one("sici", mp.si, *_both(100.0, 1e-90), result=0),
    one("sici", mp.ci, logs(1e-90, 1.0), line(0.0, 100.0), result=1),
    one("shichi", mp.shi, *_both(700.0, 1e-90), result=0),
    one("shichi", mp.chi, logs(1e-90, 1.0), line(0.0, 100.0), result=1),
    one(
        "spence",
        lambda z: mp.re(mp.polylog(2, 1 - z)),
        logs(1e-20, 1.0),
        beside(1.0, 1),
        line(0.1, 2.0),
        count=40,
    ),
    one(
        "wrightomega",
        lambda x: mp.re(mp.lambertw(mp.exp(x))),
        line(-30.0, 30.0),
        logs(-1.0, -600.0),
        logs(1.0, 1e5),
        count=100,
    ),
    one("lambertw", mp.lambertw, *_AROUND[:1], logs(1.0, _HUGE), line(-0.36, 0.0), count=100),
    one("ellipk", mp.ellipk, logs(1e-20, 1.0), logs(-1e-20, -1e20), beside(1.0, -1)),
    one("ellipkm1", lambda p: mp.ellipk(1 - p), logs(1e-50, 1.0), line(0.1, 5.0)),
    one("ellipe", mp.ellipe, logs(1e-20, 1.0), logs(-1e-20, -1e20), beside(1.0, -1)),
    many("ellipkinc", mp.ellipf, (line(-1.5, 1.5),), (line(-5.0, 0.99),), count=40),
    many("ellipeinc", mp.ellipe, (line(-1.5, 1.5),), (line(-5.0, 0.99),), count=40),
    many("elliprc", mp.elliprc, (logs(1e-3, 1e3),), (logs(1e-3, 1e3),), count=40),
    many("elliprf", mp.elliprf, *3 * ((logs(1e-3, 1e3),),), count=40),
    many("agm", mp.agm, (logs(1e-3, 1e3),), (logs(1e-3, 1e3),), count=40),
    ordered("hyp0f1", mp.hyp0f1, (line(0.5, 5.0),), (line(-20.0, 50.0),), count=40),
    ordered(
        "hyp1f1", mp.hyp1f1, (line(0.5, 5.0),), (line(0.5, 5.0),), (line(-20.0, 50.0),), count=40
    ),
    ordered(
        "hyp2f1",
        mp.hyp2f1,
        (line(0.5, 3.0),),
        (line(0.5, 3.0),),
        (line(0.5, 3.0),),
        (line(-3.0, 0.95),),
        count=40,
    ),
    ordered(
        "hyperu", mp.hyperu, (line(0.5, 3.0),), (line(0.5, 3.0),), (line(0.1, 10.0),), count=40
    ),
)

TAILS: tuple[Tail, ...] = tuple(
    row
    for group in (
        *_NUMPY,
        *_ERROR_FUNCTIONS,
        *_LOGARITHMS,
        *_GAMMA_FUNCTIONS,
        *_BESSEL_FUNCTIONS,
        *_INTEGRALS,
    )
    for row in group
)

USUAL = (16.0, 16.0, 16.0)
_SCIPY = "the values are SciPy's"
_CANCELS = "far out the derivative is a small difference of the function and its neighbour"
_COMPOSED = "it is composed of operations whose derivatives cancel where they are small"
_DIGAMMAS = "the derivative is a difference of digammas"
_SWITCH = "the slope of expit is made of its result until that is 1/256 from 1"
BOUNDS: dict[str, tuple[tuple[float, ...], str]] = {
    "special.erfcx": ((16, 64, 4e3), _CANCELS + "; the series holds from 10 on"),
    "special.dawsn": ((16, 128, 1e4), _CANCELS + "; the series holds from 10 on"),
    "special.log_ndtr": ((16, 16, 256), "that of erfcx cancels between -14 and -5"),
    "special.voigt_profile@0": ((16, 64, 4e3), _COMPOSED),
    "special.voigt_profile@1": ((16, 2e3, 2e5), _COMPOSED),
    "special.voigt_profile@2": ((16, 1e3, 4e3), _COMPOSED),
    "special.log_expit": ((16, 16, 32), _SWITCH),
    "special.cotdg": ((4e8, 4e8, 4e8), _SCIPY + ", which round the angle"),
    "special.poch@0": ((16, 32, 128), _DIGAMMAS),
    "special.binom@0": ((16, 64, 256), _DIGAMMAS),
    "special.beta@0": ((64, 64, 64), _SCIPY),
    "special.beta@1": ((64, 64, 64), _SCIPY),
    "special.betaln@0": ((1e6, 16, 16), _SCIPY),
    "special.betaln@1": ((1e6, 16, 16), _SCIPY),
    "special.i1e": ((16.0, 64.0, 1e3), _CANCELS + "; the series holds from 25 on"),
    "special.k0e": ((16.0, 64.0, 2e3), _CANCELS + "; the series holds from 25 on"),
    "special.k1e": ((16.0, 64.0, 2e3), _CANCELS + "; the series holds from 25 on"),
    "special.modstruve@1": ((64.0, 64.0, 64.0), _SCIPY),
    "special.ive@1": ((256.0, 128.0, 2e3), _SCIPY + ", and " + _CANCELS),
    "special.kei": ((2e6, 2e6, 4e6), _SCIPY),
    "special.i0e": ((16, 32, 1e3), _CANCELS + "; the series holds from 25 on"),
    "special.airye-0": ((300, 2e5, 4e9), _SCIPY + ", and " + _CANCELS),
    "special.airye-1": ((400, 2e5, 4e9), _SCIPY + ", and " + _CANCELS),
    "special.airye-2": ((300, 2e5, 4e9), _SCIPY + ", and " + _CANCELS),
    "special.airye-3": ((300, 2e5, 4e9), _SCIPY + ", and " + _CANCELS),
    "special.ker": ((5e5, 5e5, 2e6), _SCIPY),
    "special.lambertw": ((16, 64, 64), "beside its branch point -1/e the result is the condition"),
    "special.agm@0": ((16, 16, 64), "the derivative is made of several elliptic integrals"),
    "special.hyp2f1@3": ((16, 64, 128), _SCIPY),
    "special.hyperu@2": ((1e9, 3e6, 3e6), _SCIPY),
}
"""Bounds of orders 0, 1 and 2 of the rows that have others than ``USUAL``, and why."""

_INF = math.inf
_BOTH = ("f8", "f4")


@dataclass(frozen=True, slots=True)
class Ends:
    """A function at the ends of its domain, at poles and far out, where it has limits.

    Attributes:
      name: ``numpy.`` or ``special.`` and the name.
      limits: points, and the limits of the first and the second derivative there.
      parameters: operands before the one that derivatives are taken in.
      result: which result it is of a function with several.
      dtypes: letters of the dtypes in which the points are taken.
    """

    name: str
    limits: tuple[tuple[float, float, float], ...]
    parameters: tuple[float, ...] = ()
    result: int | None = None
    dtypes: tuple[str, ...] = _BOTH


_FLAT = ((_INF, 0.0, 0.0), (-_INF, 0.0, 0.0))
_RISING = ((_INF, _INF, _INF),)
_POLE_UP, _POLE_DOWN = ((0.0, -_INF, _INF),), ((0.0, _INF, -_INF),)

ENDS: tuple[Ends, ...] = (
    Ends("numpy.arccosh", ((1.0, _INF, -_INF), (_INF, 0.0, 0.0))),
    Ends("numpy.arccosh", ((1e150, 1e-150, -1e-300),), dtypes=("f8",)),
    Ends("numpy.arccosh", ((1e15, 1e-15, -1e-30), (1e30, 1e-30, 0.0)), dtypes=("f4",)),
    Ends("numpy.arcsinh", _FLAT),
    Ends(
        "numpy.arcsinh",
        ((1e150, 1e-150, -1e-300), (-1e150, 1e-150, 1e-300), (1e200, 1e-200, 0.0)),
        dtypes=("f8",),
    ),
    Ends("numpy.arcsinh", ((1e15, 1e-15, -1e-30), (1e30, 1e-30, 0.0)), dtypes=("f4",)),
    Ends("special.erf", _FLAT),
    Ends("special.erfc", _FLAT),
    Ends("special.ndtr", _FLAT),
    Ends("special.erf", ((1.7e308, 0.0, 0.0), (-1e155, 0.0, 0.0)), dtypes=("f8",)),
    Ends("special.log_ndtr", ((_INF, 0.0, 0.0), (-_INF, _INF, -1.0))),
    Ends("special.log_ndtr", ((-1e155, 1e155, -1.0), (1.7e308, 0.0, 0.0)), dtypes=("f8",)),
    Ends("special.log_ndtr", ((-1e20, 1e20, -1.0), (-3e38, 3e38, -1.0)), dtypes=("f4",)),
    Ends("special.exprel", (*_RISING, (1e15, _INF, _INF), (-_INF, 0.0, 0.0))),
    Ends("special.exprel", ((1e200, _INF, _INF), (-1e100, 1e-200, 2e-300)), dtypes=("f8",)),
    Ends("special.rgamma", ((_INF, 0.0, 0.0),)),
    *(Ends(f"special.{n}", _FLAT[:1], (2.5,)) for n in ("gammainc", "gammaincc")),
    Ends("special.zetac", ((_INF, 0.0, 0.0), (1.0, -_INF, _INF))),
    Ends("special.zeta", ((1.0, -_INF, _INF), (_INF, 0.0, 0.0))),
    Ends("special.i0", (*_RISING, (-_INF, -_INF, _INF))),
    Ends("special.i1", (*_RISING, (-_INF, _INF, -_INF))),
    Ends("special.j0", _FLAT),
    Ends("special.j1", _FLAT),
    Ends("special.y0", (*_POLE_DOWN, _FLAT[0])),
    Ends("special.y1", (*_POLE_DOWN, _FLAT[0])),
    Ends("special.k0", (*_POLE_UP, _FLAT[0])),
    Ends("special.k1", (*_POLE_UP, _FLAT[0])),
    Ends("special.k0e", (*_POLE_UP, _FLAT[0])),
    Ends("special.k1e", (*_POLE_UP, _FLAT[0])),
    *(Ends("special.jv", _FLAT, (order,)) for order in (0.0, 1.0, 2.0)),
    *(Ends("special.yv", (*_POLE_DOWN, _FLAT[0]), (order,)) for order in (0.0, 0.5, 1.0, 2.0)),
    *(Ends("special.iv", _RISING, (order,)) for order in (0.0, 0.5, 1.0, 2.0)),
    *(Ends("special.kv", (*_POLE_UP, _FLAT[0]), (order,)) for order in (0.0, 0.5, 1.0, 2.0)),
    *(Ends("special.kve", (*_POLE_UP, _FLAT[0]), (order,)) for order in (0.0, 0.5, 1.0, 2.0)),
    *(Ends(f"special.{name}", _POLE_DOWN, (0.5,)) for name in ("jv", "iv", "ive")),
    Ends("special.ker", _POLE_UP),
    Ends("special.kei", ((0.0, 0.0, _INF),)),
    Ends("special.exp1", (*_POLE_UP, _FLAT[0])),
    Ends("special.expi", ((0.0, _INF, -_INF), *_RISING, (-_INF, 0.0, 0.0))),
    Ends("special.sici", _FLAT, result=0),
    Ends("special.sici", (*_POLE_DOWN, _FLAT[0]), result=1),
    Ends("special.shichi", (*_RISING, (-_INF, _INF, -_INF), (1e3, _INF, _INF)), result=0),
    Ends("special.shichi", (*_POLE_DOWN, *_RISING, (1e3, _INF, _INF)), result=1),
    Ends("special.spence", ((0.0, -_INF, _INF),)),
    Ends("special.ellipk", ((1.0, _INF, _INF), (-_INF, 0.0, 0.0))),
    Ends("special.ellipkm1", (*_POLE_UP, _FLAT[0])),
    Ends("special.ellipe", ((1.0, -_INF, -_INF), (-_INF, -0.0, 0.0))),
)
"""Limits by elementary calculus, and as the scan of mpmath's values beside the points has them."""

LEFT_OUT: dict[str, str] = {
    "polynomials, which have no tails": (
        "eval_chebyc eval_chebys eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre"
        " eval_hermite eval_hermitenorm eval_jacobi eval_laguerre eval_legendre eval_sh_chebyt"
        " eval_sh_chebyu eval_sh_jacobi eval_sh_legendre lpmv"
    ),
    "distribution functions and inverses, made of incomplete gamma and beta functions": (
        "bdtr bdtrc bdtri betaincc betainccinv betaincinv btdtria btdtrib chdtr chdtrc chdtri"
        " chdtriv fdtr fdtrc fdtri gammainccinv gammaincinv gdtr gdtrc gdtria gdtrib gdtrix nbdtr"
        " nbdtrc nbdtri nrdtrimn nrdtrisd pdtr pdtrc pdtri pdtrik stdtr stdtridf stdtrit"
    ),
    "other names of rows": "jn jve kn yn yve",
    "complex results": "hankel1 hankel1e hankel2 hankel2e wofz",
    "derivatives and integrals of functions in rows, for which mpmath takes hours": (
        "beip berp it2i0k0 it2j0y0 it2struve0 iti0k0 itj0y0 itmodstruve0 itstruve0 keip kelvin kerp"
    ),
    "piecewise linear or quadratic": "gammasgn huber radian round",
    "functions of several parameters that are not in the table yet": (
        "ellipj elliprd elliprg elliprj tklmbda wright_bessel"
    ),
    "inverses and sums without a definition in mpmath": "kolmogi kolmogorov ndtri_exp",
}
"""Ufuncs of SciPy that have no row, by reason; ``special_cases`` has points of each."""
