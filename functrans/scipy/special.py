"""``functrans.scipy.special``: the namespace of ``scipy.special`` for plain and traced arrays.

Not here: the functions (``special_gamma``, ``special_bessel``, ``special_statistics``,
``special_sums``), the primitives behind them (``primitives.special.functions`` and the modules
beside it).

Layer: ``numpy``, ``scipy``.
"""

from functrans.core.boundary import guard as _guard
from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing

# isort: off
from functrans.scipy.special_bessel import (
    agm as agm, airy as airy, airye as airye, bei as bei, beip as beip, ber as ber, berp as berp,
    ellipe as ellipe, ellipeinc as ellipeinc, ellipj as ellipj, ellipk as ellipk,
    ellipkinc as ellipkinc, ellipkm1 as ellipkm1, elliprc as elliprc, elliprd as elliprd,
    elliprf as elliprf, elliprg as elliprg, elliprj as elliprj, eval_chebyc as eval_chebyc,
    eval_chebys as eval_chebys, eval_chebyt as eval_chebyt, eval_chebyu as eval_chebyu,
    eval_gegenbauer as eval_gegenbauer, eval_genlaguerre as eval_genlaguerre,
    eval_hermite as eval_hermite, eval_hermitenorm as eval_hermitenorm, eval_jacobi as eval_jacobi,
    eval_laguerre as eval_laguerre, eval_legendre as eval_legendre,
    eval_sh_chebyt as eval_sh_chebyt, eval_sh_chebyu as eval_sh_chebyu,
    eval_sh_jacobi as eval_sh_jacobi, eval_sh_legendre as eval_sh_legendre, exp1 as exp1,
    expi as expi, expn as expn, h1vp as h1vp, h2vp as h2vp, hankel1 as hankel1,
    hankel1e as hankel1e, hankel2 as hankel2, hankel2e as hankel2e, hyp0f1 as hyp0f1,
    hyp1f1 as hyp1f1, hyp2f1 as hyp2f1, hyperu as hyperu, i0 as i0, i0e as i0e, i1 as i1,
    i1e as i1e, it2i0k0 as it2i0k0, it2j0y0 as it2j0y0, it2struve0 as it2struve0, iti0k0 as iti0k0,
    itj0y0 as itj0y0, itmodstruve0 as itmodstruve0, itstruve0 as itstruve0, iv as iv, ive as ive,
    ivp as ivp, j0 as j0, j1 as j1, jn as jn, jv as jv, jve as jve, jvp as jvp, k0 as k0,
    k0e as k0e, k1 as k1, k1e as k1e, kei as kei, keip as keip, kelvin as kelvin, ker as ker,
    kerp as kerp, kn as kn, kv as kv, kve as kve, kvp as kvp, lambertw as lambertw, lpmv as lpmv,
    modstruve as modstruve, shichi as shichi, sici as sici, spence as spence,
    sph_harm_y as sph_harm_y, sph_legendre_p as sph_legendre_p, spherical_in as spherical_in,
    spherical_jn as spherical_jn, spherical_kn as spherical_kn, spherical_yn as spherical_yn,
    struve as struve, wright_bessel as wright_bessel, wrightomega as wrightomega, y0 as y0,
    y1 as y1, yn as yn, yv as yv, yve as yve, yvp as yvp,
)  # fmt: skip
from functrans.scipy.special_gamma import (
    beta as beta, betainc as betainc, betaincc as betaincc, betainccinv as betainccinv,
    betaincinv as betaincinv, betaln as betaln, binom as binom, boxcox as boxcox,
    boxcox1p as boxcox1p, cbrt as cbrt, comb as comb, cosdg as cosdg, cosm1 as cosm1,
    cotdg as cotdg, dawsn as dawsn, digamma as digamma, diric as diric, entr as entr, erf as erf,
    erfc as erfc, erfcinv as erfcinv, erfcx as erfcx, erfi as erfi, erfinv as erfinv, exp2 as exp2,
    exp10 as exp10, expit as expit, expm1 as expm1, exprel as exprel, factorial as factorial,
    fresnel as fresnel, gamma as gamma, gammainc as gammainc, gammaincc as gammaincc,
    gammainccinv as gammainccinv, gammaincinv as gammaincinv, gammaln as gammaln,
    gammasgn as gammasgn, huber as huber, inv_boxcox as inv_boxcox, inv_boxcox1p as inv_boxcox1p,
    kl_div as kl_div, kolmogi as kolmogi, kolmogorov as kolmogorov, log1p as log1p,
    log_expit as log_expit, log_ndtr as log_ndtr, loggamma as loggamma, logit as logit,
    multigammaln as multigammaln, ndtr as ndtr, ndtri as ndtri, ndtri_exp as ndtri_exp,
    owens_t as owens_t, perm as perm, poch as poch, polygamma as polygamma, powm1 as powm1,
    pseudo_huber as pseudo_huber, psi as psi, radian as radian, rel_entr as rel_entr,
    rgamma as rgamma, round as round, sinc as sinc, sindg as sindg, softplus as softplus,
    tandg as tandg, tklmbda as tklmbda, voigt_profile as voigt_profile, wofz as wofz,
    xlog1py as xlog1py, xlogy as xlogy, zeta as zeta, zetac as zetac,
)  # fmt: skip
from functrans.scipy.special_statistics import (
    bdtr as bdtr, bdtrc as bdtrc, bdtri as bdtri, btdtria as btdtria, btdtrib as btdtrib,
    chdtr as chdtr, chdtrc as chdtrc, chdtri as chdtri, chdtriv as chdtriv, fdtr as fdtr,
    fdtrc as fdtrc, fdtri as fdtri, gdtr as gdtr, gdtrc as gdtrc, gdtria as gdtria,
    gdtrib as gdtrib, gdtrix as gdtrix, nbdtr as nbdtr, nbdtrc as nbdtrc, nbdtri as nbdtri,
    nrdtrimn as nrdtrimn, nrdtrisd as nrdtrisd, pdtr as pdtr, pdtrc as pdtrc, pdtri as pdtri,
    pdtrik as pdtrik, stdtr as stdtr, stdtridf as stdtridf, stdtrit as stdtrit,
)  # fmt: skip
from functrans.scipy.special_sums import (
    log_softmax as log_softmax, logsumexp as logsumexp, softmax as softmax,
)  # fmt: skip
# isort: on

__all__ = _exported(globals())
__dir__ = _listing(__all__)
_guard(globals(), __all__)
