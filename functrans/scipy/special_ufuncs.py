"""Ufuncs of ``scipy.special`` and the functions by which traced values answer them.

Here: ``SCIPY_UFUNCS``, by name, since SciPy may not be imported yet. Not here: the look-up
(``numpy.dispatch``), the functions.

Layer: ``numpy``, ``scipy`` (last of its modules).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.primitives.special import functions as sf
from functrans.primitives.special.gamma import riemann_zeta
from functrans.scipy import special

_PUBLIC = (
    "agm", "airy", "airye", "bdtr", "bdtrc", "bdtri", "bei", "beip", "ber", "berp", "beta",
    "betainc", "betaincc", "betainccinv", "betaincinv", "betaln", "binom", "boxcox", "boxcox1p",
    "btdtria", "btdtrib", "cbrt", "chdtr", "chdtrc", "chdtri", "chdtriv", "cosdg", "cosm1", "cotdg",
    "dawsn", "digamma", "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc", "ellipkm1",
    "elliprc", "elliprd", "elliprf", "elliprg", "elliprj", "entr", "erf", "erfc", "erfcinv",
    "erfcx", "erfi", "erfinv", "eval_chebyc", "eval_chebys", "eval_chebyt", "eval_chebyu",
    "eval_gegenbauer", "eval_genlaguerre", "eval_hermite", "eval_hermitenorm", "eval_jacobi",
    "eval_laguerre", "eval_legendre", "eval_sh_chebyt", "eval_sh_chebyu", "eval_sh_jacobi",
    "eval_sh_legendre", "exp1", "exp10", "exp2", "expi", "expit", "expm1", "expn", "exprel", "fdtr",
    "fdtrc", "fdtri", "fresnel", "gamma", "gammainc", "gammaincc", "gammainccinv", "gammaincinv",
    "gammaln", "gammasgn", "gdtr", "gdtrc", "gdtria", "gdtrib", "gdtrix", "hankel1", "hankel1e",
    "hankel2", "hankel2e", "huber", "hyp0f1", "hyp1f1", "hyp2f1", "hyperu", "i0", "i0e", "i1",
    "i1e", "inv_boxcox", "inv_boxcox1p", "it2i0k0", "it2j0y0", "it2struve0", "iti0k0", "itj0y0",
    "itmodstruve0", "itstruve0", "iv", "ive", "j0", "j1", "jn", "jv", "jve", "k0", "k0e", "k1",
    "k1e", "kei", "keip", "kelvin", "ker", "kerp", "kl_div", "kn", "kolmogi", "kolmogorov", "kv",
    "kve", "log1p", "log_expit", "log_ndtr", "loggamma", "logit", "lpmv", "modstruve", "nbdtr",
    "nbdtrc", "nbdtri", "ndtr", "ndtri", "ndtri_exp", "nrdtrimn", "nrdtrisd", "owens_t", "pdtr",
    "pdtrc", "pdtri", "pdtrik", "poch", "powm1", "pseudo_huber", "psi", "radian", "rel_entr",
    "rgamma", "round", "shichi", "sici", "sindg", "spence", "stdtr", "stdtridf", "stdtrit",
    "struve", "tandg", "tklmbda", "voigt_profile", "wofz", "wright_bessel", "wrightomega",
    "xlog1py", "xlogy", "y0", "y1", "yn", "yv", "yve", "zetac",
)  # fmt: skip


def _lambertw(z: object, k: object, tol: Any) -> Any:
    return special.lambertw(z, k, float(tol))


SCIPY_UFUNCS: dict[str, Callable[..., Any]] = {name: getattr(special, name) for name in _PUBLIC}
"""Name of a ufunc in ``scipy.special`` to the function of its operands."""

SCIPY_INNER_UFUNCS: dict[str, Callable[..., Any]] = {
    "_zeta": sf.zeta,
    "_riemann_zeta": riemann_zeta,
    "_lambertw": _lambertw,
}
"""The same of ufuncs that functions of ``scipy.special`` call."""

TABLE = {**SCIPY_UFUNCS, **SCIPY_INNER_UFUNCS}
"""Both, for the look-up."""
