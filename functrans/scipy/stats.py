"""``scipy.stats``-shaped distributions and summary statistics that can be traced.

Here: the namespace. Not here: how distributions work (``stats_families``), their formulas
(``stats_continuous``, ``stats_positive``, ``stats_discrete``, ``stats_multivariate``), summary
statistics (``stats_summary``), lines and correlations (``stats_relations``).

Layer: ``numpy``, ``scipy``.
"""

from functrans.core.boundary import guard as _guard
from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing

# isort: off
from functrans.scipy.stats_continuous import (
    beta as beta, cauchy as cauchy, gennorm as gennorm, gumbel_l as gumbel_l, gumbel_r as gumbel_r,
    laplace as laplace, logistic as logistic, norm as norm, powerlaw as powerlaw,
    skewnorm as skewnorm, t as t, truncnorm as truncnorm, uniform as uniform, vonmises as vonmises,
    wrapcauchy as wrapcauchy,
)  # fmt: skip
from functrans.scipy.stats_discrete import (
    bernoulli as bernoulli, betabinom as betabinom, binom as binom, dlaplace as dlaplace,
    geom as geom, hypergeom as hypergeom, nbinom as nbinom, poisson as poisson, zipf as zipf,
)  # fmt: skip
from functrans.scipy.stats_multivariate import (
    dirichlet as dirichlet, gaussian_kde as gaussian_kde, multinomial as multinomial,
    multivariate_normal as multivariate_normal, multivariate_t as multivariate_t,
    wishart as wishart,
)  # fmt: skip
from functrans.scipy.stats_positive import (
    chi as chi, chi2 as chi2, expon as expon, f as f, fisk as fisk, gamma as gamma,
    gompertz as gompertz, halfcauchy as halfcauchy, halfnorm as halfnorm, invgamma as invgamma,
    invweibull as invweibull, lognorm as lognorm, lomax as lomax, maxwell as maxwell,
    pareto as pareto, rayleigh as rayleigh, weibull_min as weibull_min,
)  # fmt: skip
from functrans.scipy.stats_relations import (
    LinregressResult as LinregressResult, PearsonRResult as PearsonRResult,
    linregress as linregress, pearsonr as pearsonr,
)  # fmt: skip
from functrans.scipy.stats_summary import (
    entropy as entropy, gmean as gmean, hmean as hmean, kurtosis as kurtosis, moment as moment,
    pmean as pmean, sem as sem, skew as skew, zmap as zmap, zscore as zscore,
)  # fmt: skip
# isort: on

__all__ = _exported(globals())
__dir__ = _listing(__all__)
_guard(globals(), __all__)
