"""Rows of the special functions whose values are SciPy's.

Definitions are mpmath's, or series and quadratures in mpmath, so that SciPy is not compared with
itself.
"""

from collections.abc import Callable, Iterator
from typing import Any

import mpmath as mp
import numpy as np

import functrans as ft
from functrans.core.dispatch import elementwise
from functrans.errors import NonDifferentiableError
from functrans.primitives.special import bessel as be
from functrans.primitives.special import cylinder as cy
from functrans.primitives.special import distributions as di
from functrans.primitives.special import elementary as el
from functrans.primitives.special import functions as sf
from functrans.primitives.special import gamma as ga
from functrans.primitives.special import hypergeometric as hy
from functrans.primitives.special import polynomials as po
from samples.elementwise import Draw, span
from samples.row import Refused, Rng, Row, Sample, annulus, integers


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """A definition in mpmath as one of arrays."""

    def reference(*operands: Any) -> np.ndarray:
        arrays = np.broadcast_arrays(*operands)
        flat = [
            complex(function(*map(_exact, row)))
            for row in zip(*(x.ravel() for x in arrays), strict=True)
        ]
        values = np.array(flat, np.complex128).reshape(arrays[0].shape)
        return values if any(x.dtype.kind == "c" for x in arrays) else values.real

    return reference


def _exact(x: Any) -> Any:
    if isinstance(x, (int, np.integer)):
        return int(x)
    return mp.mpc(complex(x)) if np.iscomplexobj(x) else mp.mpf(float(x))


def row(
    primitive: Any,
    definition: Callable[..., Any],
    *draws: Draw,
    is_complex: bool = False,
    fixed: tuple[int, ...] = (),
    refuses_complex: bool = True,
    has_f32: bool = True,
    rtol: float = 1e-11,
    **options: Any,
) -> Row:
    """A row of an elementwise special function.

    Args:
      primitive: its record.
      definition: in mpmath.
      *draws: where each operand is drawn from; of integers, integers.
      is_complex: whether there are samples of complex numbers.
      fixed: operands in which a derivative is refused.
      refuses_complex: whether complex numbers must raise, if there are no samples of them.
      has_f32: whether there is a sample in single precision.
      rtol: tolerance of the values.
      **options: see ``Row``.
    """

    def make(rng: Rng) -> Iterator[Sample]:
        def drawn(*shapes: tuple[int, ...]) -> tuple[np.ndarray, ...]:
            return tuple(draw(rng, shape) for draw, shape in zip(draws, shapes, strict=True))

        count = len(draws)
        yield Sample("same", drawn(*((3,),) * count))
        yield Sample("0d", drawn(*((),) * count))
        yield Sample("empty", drawn(*((2, 0),) * count))
        if count > 1:
            shapes = [(2, 1)] + [(3,)] * (count - 1)
            yield Sample("broadcast", drawn(*shapes))
        f32 = [x.astype(np.float32) if x.dtype.kind == "f" else x for x in drawn(*((2,),) * count)]
        if has_f32 and all(x.dtype.kind == "f" for x in f32):
            yield Sample("f32", tuple(f32))
        if is_complex:
            operands = list(drawn(*((2,),) * count))
            operands[-1] = annulus(rng, (2,), 0.5, 1.5, angles=(-1.2, 1.2))
            yield Sample("complex", tuple(operands))

    def in_operand(position: int) -> Refused:
        point = tuple(draw(np.random.default_rng(1), ()).item() for draw in draws)

        def moved(x: Any) -> Any:
            return elementwise(primitive, *point[:position], x, *point[position + 1 :])

        return Refused(
            f"operand_{position}", point, NonDifferentiableError,
            f"{primitive.name} has no derivative in its",
            call=lambda *_: ft.grad(moved)(point[position]),
        )  # fmt: skip

    rng = np.random.default_rng(0)
    has_integers = [draw(rng, (1,)).dtype.kind == "i" for draw in draws]
    refused = [in_operand(i) for i in fixed if not has_integers[i]]
    shapes = tuple(
        np.ones(2 + (i == 0), np.int64 if each else np.float64)
        for i, each in enumerate(has_integers)
    )
    if len(draws) > 1:
        refused.append(Refused("shapes", shapes, ValueError, f"{primitive.name}: operands of shap"))
    if refuses_complex and not is_complex:
        operands = [*shapes[:-1], np.ones(2) * 1j]
        operands[0] = operands[0][:2]
        refused.append(
            Refused("complex", tuple(operands), TypeError, f"{primitive.name}: not defined")
        )
    options.setdefault("refused", tuple(refused))
    return Row(primitive, make, _real(definition), fixed=fixed, rtol=rtol, **options)


def ints(low: int, high: int) -> Draw:
    return lambda rng, shape: integers(rng, shape, low, high)


def derivative(function: Callable[..., Any], *orders: int) -> Callable[..., Any]:
    """A partial derivative of a definition, by differences in 45 digits."""

    def value(*operands: Any) -> Any:
        with mp.workdps(45):
            moving = [i for i, n in enumerate(orders) if n]

            def along(*xs: Any) -> Any:
                given = list(operands)
                for i, x in zip(moving, xs, strict=True):
                    given[i] = x
                return function(*given)

            step = mp.mpf(10) ** -12
            (first, *second) = [i for i in moving for _ in range(orders[i])]

            def difference(f: Callable[..., Any], i: int) -> Callable[..., Any]:
                def quotient(*given: Any) -> Any:
                    low, high = list(given), list(given)
                    low[i] -= step
                    high[i] += step
                    return (f(*high) - f(*low)) / (2 * step)

                return quotient

            slope = difference(function, first)
            for i in second:
                slope = difference(slope, i)
            return slope(*map(mp.mpmathify, operands))

    return value


def _lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _beta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def _root(function: Callable[[Any], Any], low: float, high: float) -> Any:
    """The zero of an increasing or decreasing function between bounds, by bisection."""
    low, high = mp.mpf(low), mp.mpf(high)
    sign = mp.sign(function(low))
    for _ in range(60):
        middle = (low + high) / 2
        if mp.sign(function(middle)) == sign:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _student(df: Any, x: Any) -> Any:
    half = _beta(df / 2, mp.mpf(1) / 2, df / (df + x * x)) / 2
    return half if x < 0 else 1 - half


def _boxcox(x: Any, power: Any) -> Any:
    return (x**power - 1) / power


def _kolmogorov(x: Any) -> Any:
    return 2 * mp.fsum((-1) ** (k - 1) * mp.exp(-2 * k * k * x * x) for k in range(1, 60))


def _carlson_g(x: Any, y: Any, z: Any) -> Any:
    return (z * mp.elliprf(x, y, z) - (x - z) * (y - z) * mp.elliprd(x, y, z) / 3
            + mp.sqrt(x * y / z)) / 2  # fmt: skip


def _spherical(function: Callable[..., Any]) -> Callable[..., Any]:
    half = mp.mpf(1) / 2
    return lambda n, x: mp.sqrt(mp.pi / (2 * x)) * function(n + half, x)


def _wright(a: Any, b: Any, x: Any) -> Any:
    return mp.nsum(lambda k: x**k / mp.factorial(k) * mp.rgamma(a * k + b), [0, mp.inf])


def _quad(function: Callable[[Any], Any], low: Any, high: Any) -> Any:
    return mp.quad(function, [low, high])


def _sph_legendre(n: Any, m: Any, theta: Any) -> Any:
    return mp.re(mp.spherharm(n, m, theta, 0))


def _faddeeva(z: Any) -> Any:
    return mp.exp(-z * z) * mp.erfc(-1j * z)


HALF, POSITIVE, UNIT = span(0.3, 2.5), span(0.6, 3), span(0.15, 0.85)
ABOUT_ZERO = span(-1.5, 1.5)


GAMMA = (
    row(sf.zeta_s_p, lambda s, q: mp.zeta(s, q, 1), span(1.5, 4), HALF, order=1),
    row(sf.zeta_ss_p, lambda s, q: mp.zeta(s, q, 2), span(1.5, 4), HALF, fixed=(0,)),
    row(sf.gammainc_a_p, derivative(_lower, 1, 0), POSITIVE, POSITIVE, order=1),
    row(sf.gammainc_aa_p, derivative(_lower, 2, 0), POSITIVE, POSITIVE, fixed=(0,)),
    row(ga.gamma_p, mp.gamma, HALF, refuses_complex=False),
    row(ga.loggamma_p, mp.loggamma, HALF, refuses_complex=False),
    row(ga.rgamma_p, mp.rgamma, span(-2.4, 2.4), refuses_complex=False),
    row(ga.complex_digamma_p, mp.digamma, HALF, fixed=(0,), refuses_complex=False, order=0),
    row(ga.poch_p, mp.rf, HALF, HALF),
    row(ga.binom_p, mp.binomial, span(3, 6), HALF),
    row(ga.riemann_zeta_p, mp.zeta, span(1.5, 4), order=2),
    row(ga.riemann_zeta_s_p, lambda s: mp.zeta(s, 1, 1), span(1.5, 4), order=1),
    row(ga.riemann_zeta_ss_p, lambda s: mp.zeta(s, 1, 2), span(1.5, 4), fixed=(0,), order=0),
    row(ga.zeta_decrease_p, lambda s, q, h: mp.zeta(s, q) - mp.zeta(s, q + h), ints(2, 5),
        POSITIVE, POSITIVE),
    row(ga.digamma_rise_p, lambda q, h: mp.digamma(q + h) - mp.digamma(q), POSITIVE, POSITIVE),
    row(ga.zetac_p, lambda s: mp.zeta(s) - 1, span(1.5, 4), order=2),
    row(ga.beta_p, mp.beta, HALF, HALF),
    row(ga.betaln_p, lambda a, b: mp.log(mp.beta(a, b)), HALF, HALF),
    row(ga.betainc_p, _beta, HALF, HALF, UNIT, order=2),
    row(ga.betaincc_p, lambda a, b, x: 1 - _beta(a, b, x), HALF, HALF, UNIT, order=2),
    row(ga.betainc_a_p, derivative(_beta, 1, 0, 0), HALF, HALF, UNIT, order=1),
    row(ga.betainc_b_p, derivative(_beta, 0, 1, 0), HALF, HALF, UNIT, order=1),
    row(ga.betainc_aa_p, derivative(_beta, 2, 0, 0), HALF, HALF, UNIT, fixed=(0, 1)),
    row(ga.betainc_ab_p, derivative(_beta, 1, 1, 0), HALF, HALF, UNIT, fixed=(0, 1)),
    row(ga.betainc_bb_p, derivative(_beta, 0, 2, 0), HALF, HALF, UNIT, fixed=(0, 1)),
    row(ga.gammaincinv_p, lambda a, y: _root(lambda x: _lower(a, x) - y, 1e-9, 30), POSITIVE,
        UNIT, order=2),
    row(ga.gammainccinv_p, lambda a, y: _root(lambda x: 1 - _lower(a, x) - y, 1e-9, 30), POSITIVE,
        UNIT, order=2),
    row(ga.betaincinv_p, lambda a, b, y: _root(lambda x: _beta(a, b, x) - y, 1e-12, 1 - 1e-12),
        POSITIVE, POSITIVE, UNIT, order=2),
    row(ga.betainccinv_p, lambda a, b, y: _root(lambda x: 1 - _beta(a, b, x) - y, 1e-12, 1 - 1e-12),
        POSITIVE, POSITIVE, UNIT, order=2),
)  # fmt: skip

ELEMENTARY = (
    row(el.complex_erf_p, mp.erf, ABOUT_ZERO, is_complex=True),
    row(el.complex_erfc_p, mp.erfc, ABOUT_ZERO, is_complex=True),
    row(el.complex_erfcx_p, lambda z: mp.exp(z * z) * mp.erfc(z), ABOUT_ZERO, is_complex=True),
    row(el.erfi_p, mp.erfi, ABOUT_ZERO, is_complex=True),
    row(el.erfcinv_p, lambda x: mp.erfinv(1 - x), UNIT),
    row(el.dawsn_p, lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), ABOUT_ZERO,
        is_complex=True),
    row(el.wofz_p, _faddeeva, lambda r, s: annulus(r, s), is_complex=True),
    row(el.fresnel_s_p, mp.fresnels, ABOUT_ZERO, is_complex=True),
    row(el.fresnel_c_p, mp.fresnelc, ABOUT_ZERO, is_complex=True),
    row(el.ndtri_exp_p, lambda y: mp.sqrt(2) * mp.erfinv(2 * mp.exp(y) - 1), span(-3, -0.3)),
    row(el.owens_t_p, lambda h, a: _quad(
        lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), 0, a) / (2 * mp.pi),
        ABOUT_ZERO, ABOUT_ZERO),
    row(el.logit_p, lambda p: mp.log(p / (1 - p)), UNIT),
    row(el.xlogy_p, lambda x, y: x * mp.log(y), ABOUT_ZERO, POSITIVE, is_complex=True),
    row(el.xlog1py_p, lambda x, y: x * mp.log1p(y), ABOUT_ZERO, POSITIVE, is_complex=True),
    row(el.entr_p, lambda x: -x * mp.log(x), POSITIVE),
    row(el.rel_entr_p, lambda x, y: x * mp.log(x / y), POSITIVE, POSITIVE),
    row(el.kl_div_p, lambda x, y: x * mp.log(x / y) - x + y, POSITIVE, POSITIVE),
    row(el.exprel_p, lambda x: mp.expm1(x) / x, ABOUT_ZERO),
    row(el.boxcox_p, _boxcox, POSITIVE, ABOUT_ZERO),
    row(el.boxcox1p_p, lambda x, k: _boxcox(1 + x, k), POSITIVE, ABOUT_ZERO),
    row(el.inv_boxcox_p, lambda y, k: (1 + k * y) ** (1 / k), UNIT, UNIT),
    row(el.inv_boxcox1p_p, lambda y, k: (1 + k * y) ** (1 / k) - 1, UNIT, UNIT),
    row(el.cosm1_p, lambda x: mp.cos(x) - 1, ABOUT_ZERO),
    row(el.powm1_p, lambda x, y: x**y - 1, POSITIVE, ABOUT_ZERO),
    row(el.exp10_p, lambda x: mp.mpf(10) ** x, span(-1, 1)),
    row(el.sindg_p, lambda x: mp.sin(mp.radians(x)), span(-200, 200)),
    row(el.cosdg_p, lambda x: mp.cos(mp.radians(x)), span(-200, 200)),
    row(el.tandg_p, lambda x: mp.tan(mp.radians(x)), span(-70, 70)),
    row(el.cotdg_p, lambda x: mp.cot(mp.radians(x)), span(30, 150)),
    row(el.tklmbda_p, lambda x, k: _root(
        lambda p: (p**k - (1 - p) ** k) / k - x, 1e-12, 1 - 1e-12), UNIT, UNIT),
)  # fmt: skip

HYPERGEOMETRIC = (
    row(hy.hyp0f1_p, mp.hyp0f1, HALF, ABOUT_ZERO, fixed=(0,), is_complex=True),
    row(hy.hyp1f1_p, mp.hyp1f1, HALF, HALF, ABOUT_ZERO, fixed=(0, 1), is_complex=True),
    row(hy.hyp2f1_p, mp.hyp2f1, HALF, HALF, POSITIVE, span(-0.6, 0.6), fixed=(0, 1, 2),
        refuses_complex=False),
    row(hy.hyperu_p, mp.hyperu, HALF, HALF, POSITIVE, fixed=(0, 1)),
    row(hy.wright_bessel_p, _wright, HALF, POSITIVE, HALF, fixed=(0, 1)),
    row(hy.expn_p, mp.expint, ints(0, 4), POSITIVE),
    row(hy.exp1_p, mp.e1, HALF, is_complex=True),
    row(hy.exp_over_p, lambda x: mp.exp(x) / x, HALF, is_complex=True),
    row(hy.expi_p, mp.ei, HALF, is_complex=True),
    row(hy.sici_s_p, mp.si, HALF, is_complex=True),
    row(hy.sici_c_p, mp.ci, HALF, is_complex=True),
    row(hy.shichi_s_p, mp.shi, HALF, is_complex=True),
    row(hy.shichi_c_p, mp.chi, HALF, is_complex=True),
    row(hy.spence_p, lambda z: _spence(z), HALF, is_complex=True),
    row(hy.lambertw_p, lambda z, k: mp.lambertw(z, k),
        lambda r, s: annulus(r, s, 0.5, 1.5), ints(0, 2), is_complex=False, refused=()),
    row(hy.wrightomega_p, lambda z: mp.lambertw(mp.exp(z)), ABOUT_ZERO, is_complex=True),
    row(hy.elliprc_p, mp.elliprc, POSITIVE, POSITIVE, order=2),
    row(hy.elliprf_p, mp.elliprf, POSITIVE, POSITIVE, POSITIVE, order=2),
    row(hy.elliprd_p, mp.elliprd, POSITIVE, POSITIVE, POSITIVE, order=1),
    row(hy.elliprd_x_p, derivative(mp.elliprd, 1, 0, 0), POSITIVE, POSITIVE, POSITIVE,
        fixed=(0, 1, 2), order=0),
    row(hy.elliprd_z_p, derivative(mp.elliprd, 0, 0, 1), POSITIVE, POSITIVE, POSITIVE,
        fixed=(0, 1, 2), order=0),
    row(hy.elliprg_p, _carlson_g, POSITIVE, POSITIVE, POSITIVE, order=2),
    row(hy.elliprj_rj_p, mp.elliprj, POSITIVE, POSITIVE, POSITIVE, POSITIVE, order=1),
    row(hy.elliprj_x_p, derivative(mp.elliprj, 1, 0, 0, 0), POSITIVE, POSITIVE, POSITIVE, POSITIVE,
        fixed=(0, 1, 2, 3), order=0),
    row(hy.elliprj_p_p, derivative(mp.elliprj, 0, 0, 0, 1), POSITIVE, POSITIVE, POSITIVE, POSITIVE,
        fixed=(0, 1, 2, 3), order=0),
    row(hy.ellipk_p, mp.ellipk, span(-1, 0.8), order=2),
    row(hy.ellipkm1_p, lambda p: mp.ellipk(1 - p), HALF, order=2),
    row(hy.ellipe_p, mp.ellipe, span(-1, 0.8), order=2),
    row(hy.ellipkinc_p, mp.ellipf, ABOUT_ZERO, UNIT, order=2),
    row(hy.ellipeinc_p, mp.ellipe, ABOUT_ZERO, UNIT, order=2),
    *(row(primitive, lambda u, m, k=kind: mp.ellipfun(k, u, m=m), ABOUT_ZERO, UNIT,
          order=2)
      for primitive, kind in ((hy.ellipj_sn_p, "sn"), (hy.ellipj_cn_p, "cn"),
                              (hy.ellipj_dn_p, "dn"))),
    row(hy.ellipj_ph_p, lambda u, m: _quad(lambda t: mp.ellipfun("dn", t, m=m), 0, u), ABOUT_ZERO,
        UNIT, order=2),
    row(hy.agm_p, mp.agm, POSITIVE, POSITIVE, order=2),
)  # fmt: skip


def _spence(z: Any) -> Any:
    value = mp.polylog(2, 1 - z)
    return value if isinstance(z, mp.mpc) else mp.re(value)


ORDER = span(0.2, 2.5)


def _slope_of(function: Callable[..., Any], scale: complex) -> Callable[..., Any]:
    """A derivative of a Bessel function by Cauchy's formula, times ``exp(scale * x)``."""

    def definition(k: int, v: Any, x: Any) -> Any:
        radius, count = mp.mpf(1) / 8, 64
        circle = [radius * mp.expjpi(mp.mpf(2 * i) / count) for i in range(count)]
        mean = mp.fsum(function(v, x + z) / z**k for z in circle) / count
        value = mp.factorial(k) * mean * mp.exp(scale * x)
        return value if isinstance(x, mp.mpc) else mp.re(value)

    return definition


BESSEL = (
    row(be.jv_p, mp.besselj, ORDER, HALF, fixed=(0,), is_complex=True),
    row(be.yv_p, mp.bessely, ORDER, HALF, fixed=(0,), is_complex=True, fd_scale=10),
    row(be.iv_p, mp.besseli, ORDER, HALF, fixed=(0,), is_complex=True),
    row(be.kv_p, mp.besselk, ORDER, HALF, fixed=(0,), is_complex=True, fd_scale=10),
    row(be.hankel1_p, mp.hankel1, ORDER, lambda r, s: annulus(r, s, 0.7, 1.5), is_complex=True,
        fixed=(0,), refused=()),
    row(be.hankel2_p, mp.hankel2, ORDER, lambda r, s: annulus(r, s, 0.7, 1.5), is_complex=True,
        fixed=(0,), refused=()),
    row(be.jve_p, mp.besselj, ORDER, HALF, fixed=(0,)),
    row(be.yve_p, mp.bessely, ORDER, HALF, fixed=(0,), fd_scale=10),
    row(be.ive_p, lambda v, x: mp.besseli(v, x) * mp.exp(-x), ORDER, HALF, fixed=(0,)),
    row(be.kve_p, lambda v, x: mp.besselk(v, x) * mp.exp(x), ORDER, HALF, fixed=(0,),
        is_complex=True, fd_scale=10),
    row(be.hankel1e_p, lambda v, z: mp.hankel1(v, z) * mp.exp(-1j * z), ORDER,
        lambda r, s: annulus(r, s, 0.7, 1.5), is_complex=True, fixed=(0,), refused=()),
    row(be.hankel2e_p, lambda v, z: mp.hankel2(v, z) * mp.exp(1j * z), ORDER,
        lambda r, s: annulus(r, s, 0.7, 1.5), is_complex=True, fixed=(0,), refused=()),
    *(row(primitive, _slope_of(function, scale), ints(0, 4), ORDER, HALF, fixed=(1,),
          is_complex=is_complex, fd_scale=10)
      for primitive, function, scale, is_complex in (
          (cy.jv_derivative_p, mp.besselj, 0, True), (cy.yv_derivative_p, mp.bessely, 0, True),
          (cy.iv_derivative_p, mp.besseli, 0, True), (cy.kv_derivative_p, mp.besselk, 0, True),
          (cy.ive_derivative_p, mp.besseli, -1, False),
          (cy.kve_derivative_p, mp.besselk, 1, True))),
    *(row(primitive, _slope_of(function, scale), ints(0, 4), ORDER,
          lambda r, s: annulus(r, s, 0.7, 1.5), fixed=(1,), is_complex=True, refused=())
      for primitive, function, scale in (
          (cy.hankel1_derivative_p, mp.hankel1, 0), (cy.hankel2_derivative_p, mp.hankel2, 0),
          (cy.hankel1e_derivative_p, mp.hankel1, -1j), (cy.hankel2e_derivative_p, mp.hankel2, 1j))),
    row(be.struve_p, mp.struveh, ORDER, HALF, fixed=(0,)),
    row(be.modstruve_p, mp.struvel, ORDER, HALF, fixed=(0,)),
    row(be.spherical_jn_p, _spherical(mp.besselj), ints(0, 4), HALF, is_complex=True),
    row(be.spherical_yn_p, _spherical(mp.bessely), ints(0, 3), POSITIVE, is_complex=True,
        fd_scale=10),
    row(be.spherical_in_p, _spherical(mp.besseli), ints(0, 4), HALF, is_complex=True),
    row(be.spherical_kn_p, lambda n, x: _spherical(mp.besselk)(n, x), ints(0, 3), POSITIVE,
        is_complex=True, fd_scale=10),
    *(row(primitive, lambda x, f=f, d=d: f(x, derivative=d), ABOUT_ZERO, is_complex=True)
      for primitive, f, d in (
          (be.airy_ai_p, mp.airyai, 0), (be.airy_aip_p, mp.airyai, 1), (be.airy_bi_p, mp.airybi, 0),
          (be.airy_bip_p, mp.airybi, 1))),
    *(row(primitive, lambda x, f=f, d=d, s=s: f(x, derivative=d) * mp.exp(s * 2 * x**1.5 / 3), HALF)
      for primitive, f, d, s in (
          (be.airye_ai_p, mp.airyai, 0, 1), (be.airye_aip_p, mp.airyai, 1, 1),
          (be.airye_bi_p, mp.airybi, 0, -1), (be.airye_bip_p, mp.airybi, 1, -1))),
    *(row(primitive, lambda x, f=f: f(0, x), HALF)
      for primitive, f in ((be.ber_p, mp.ber), (be.bei_p, mp.bei), (be.ker_p, mp.ker),
                           (be.kei_p, mp.kei))),
    *(row(primitive, derivative(lambda x, f=f: f(0, x), 1), HALF)
      for primitive, f in ((be.berp_p, mp.ber), (be.beip_p, mp.bei), (be.kerp_p, mp.ker),
                           (be.keip_p, mp.kei))),
    row(be.iti0k0_i_p, lambda x: _quad(lambda t: mp.besseli(0, t), 0, x), HALF),
    row(be.iti0k0_k_p, lambda x: _quad(lambda t: mp.besselk(0, t), 0, x), HALF),
    row(be.itj0y0_j_p, lambda x: _quad(lambda t: mp.besselj(0, t), 0, x), HALF, rtol=1e-9),
    row(be.itj0y0_y_p, lambda x: _quad(lambda t: mp.bessely(0, t), 0, x), HALF, rtol=1e-9),
    row(be.it2i0k0_i_p, lambda x: _quad(lambda t: (mp.besseli(0, t) - 1) / t, 1e-25, x), HALF),
    row(be.it2i0k0_k_p, lambda x: mp.quad(lambda t: mp.besselk(0, t) / t, [x, x + 4, mp.inf]),
        HALF),
    row(be.it2j0y0_j_p, lambda x: _quad(lambda t: (1 - mp.besselj(0, t)) / t, 1e-25, x), HALF),
    row(be.it2j0y0_y_p, lambda x: _it_y0(x), HALF),
    row(be.itstruve0_p, lambda x: _quad(lambda t: mp.struveh(0, t), 0, x), HALF, rtol=1e-9),
    row(be.it2struve0_p, lambda x: mp.pi / 2 - _quad(lambda t: mp.struveh(0, t) / t, 1e-30, x),
        HALF, rtol=1e-9),
    row(be.itmodstruve0_p, lambda x: _quad(lambda t: mp.struvel(0, t), 0, x), HALF, rtol=1e-9),
)  # fmt: skip


def _it_y0(x: Any) -> Any:
    """The integral of ``y0(t) / t`` from ``x`` on, by the power series (DLMF 10.8.2)."""
    half, log = x * x / 4, mp.log(x / 2) + mp.euler
    terms = (
        (-half) ** k / mp.factorial(k) ** 2 * (log - mp.harmonic(k) - mp.mpf(1) / (2 * k)) / (2 * k)
        for k in range(1, 40)
    )
    return 2 / mp.pi * (mp.pi**2 / 12 - log**2 / 2 - mp.fsum(terms))


POLYNOMIALS = (
    row(po.eval_jacobi_p, mp.jacobi, ints(0, 5), HALF, HALF, span(-0.9, 0.9), fixed=(1, 2),
        refuses_complex=False),
    row(po.eval_gegenbauer_p, mp.gegenbauer, ints(0, 5), HALF, span(-0.9, 0.9), fixed=(1,),
        refuses_complex=False),
    row(po.eval_legendre_p, mp.legendre, ints(0, 5), span(-0.9, 0.9), is_complex=True),
    row(po.eval_chebyt_p, mp.chebyt, ints(0, 5), span(-0.9, 0.9), is_complex=True),
    row(po.eval_chebyu_p, mp.chebyu, ints(0, 5), span(-0.9, 0.9), is_complex=True),
    row(po.eval_genlaguerre_p, mp.laguerre, ints(0, 5), HALF, HALF, fixed=(1,),
        refuses_complex=False),
    row(po.eval_laguerre_p, lambda n, x: mp.laguerre(n, 0, x), ints(0, 5), HALF, is_complex=True),
    row(po.eval_hermite_p, mp.hermite, ints(0, 5), ABOUT_ZERO),
    row(po.eval_hermitenorm_p,
        lambda n, x: mp.hermite(n, x / mp.sqrt(2)) / mp.mpf(2) ** (mp.mpf(n) / 2), ints(0, 5),
        ABOUT_ZERO),
    row(po.lpmv_p, lambda m, v, x: mp.re(mp.legenp(v, m, x)), ints(0, 3), span(2.2, 3.8),
        span(-0.8, 0.8), fixed=(1,)),
    row(po.sph_legendre_p_p, _sph_legendre, ints(2, 5), ints(-2, 3), span(0.3, 2.8)),
    row(po.stdtr_p, _student, POSITIVE, ABOUT_ZERO, order=2),
    row(po.stdtrit_p, lambda df, p: _root(lambda x: _student(df, x) - p, -40, 40), POSITIVE,
        UNIT, order=2),
)  # fmt: skip

DISTRIBUTIONS = (
    row(di.btdtria_p, lambda p, b, x: _root(lambda a: _beta(a, b, x) - p, 1e-3, 60), UNIT, POSITIVE,
        span(0.3, 0.7), rtol=1e-8, fd_scale=10, order=2),
    row(di.btdtrib_p, lambda a, p, x: _root(lambda b: _beta(a, b, x) - p, 1e-3, 60), POSITIVE, UNIT,
        span(0.3, 0.7), rtol=1e-8, fd_scale=10, order=2),
    row(di.gdtrib_p, lambda a, p, x: _root(lambda b: _lower(b, a * x) - p, 1e-3, 60), HALF, UNIT,
        POSITIVE, rtol=1e-8, fd_scale=10, order=2),
    row(di.chdtriv_p, lambda p, x: _root(lambda v: _lower(v / 2, x / 2) - p, 1e-3, 60), UNIT,
        POSITIVE, rtol=1e-8, fd_scale=10, order=2),
    row(di.stdtridf_p, lambda p, t: _root(lambda df: _student(df, t) - p, 1e-2, 200),
        span(0.78, 0.80), span(0.88, 0.95), rtol=1e-7, fd_scale=100, has_f32=False, order=2),
    row(di.pdtrik_p, lambda p, m: _root(lambda k: 1 - _lower(k + 1, m) - p, -0.9, 60),
        span(0.5, 0.9), POSITIVE, rtol=1e-8, fd_scale=10, order=2),
    row(di.kolmogorov_p, _kolmogorov, span(0.4, 1.5)),
    row(di.kolmogi_p, lambda p: _root(lambda x: _kolmogorov(x) - p, 0.2, 4), span(0.1, 0.9)),
)  # fmt: skip

ROWS: tuple[Row, ...] = (
    *GAMMA, *ELEMENTARY, *HYPERGEOMETRIC, *BESSEL, *POLYNOMIALS, *DISTRIBUTIONS,
)  # fmt: skip
