"""``scipy.stats``-shaped distributions and summary statistics that can be traced.

Here: the namespace. Not here: how distributions work (``stats_families``), their formulas
(``stats_continuous``, ``stats_positive``, ``stats_discrete``, ``stats_multivariate``), summary
statistics (``stats_summary``), lines and correlations (``stats_relations``).

Layer: ``numpy``, ``scipy``.
"""

from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.scipy.stats_continuous import beta as beta
from functrans.scipy.stats_continuous import cauchy as cauchy
from functrans.scipy.stats_continuous import gennorm as gennorm
from functrans.scipy.stats_continuous import gumbel_l as gumbel_l
from functrans.scipy.stats_continuous import gumbel_r as gumbel_r
from functrans.scipy.stats_continuous import laplace as laplace
from functrans.scipy.stats_continuous import logistic as logistic
from functrans.scipy.stats_continuous import norm as norm
from functrans.scipy.stats_continuous import powerlaw as powerlaw
from functrans.scipy.stats_continuous import skewnorm as skewnorm
from functrans.scipy.stats_continuous import t as t
from functrans.scipy.stats_continuous import truncnorm as truncnorm
from functrans.scipy.stats_continuous import uniform as uniform
from functrans.scipy.stats_continuous import vonmises as vonmises
from functrans.scipy.stats_continuous import wrapcauchy as wrapcauchy
from functrans.scipy.stats_discrete import bernoulli as bernoulli
from functrans.scipy.stats_discrete import betabinom as betabinom
from functrans.scipy.stats_discrete import binom as binom
from functrans.scipy.stats_discrete import dlaplace as dlaplace
from functrans.scipy.stats_discrete import geom as geom
from functrans.scipy.stats_discrete import hypergeom as hypergeom
from functrans.scipy.stats_discrete import nbinom as nbinom
from functrans.scipy.stats_discrete import poisson as poisson
from functrans.scipy.stats_discrete import zipf as zipf
from functrans.scipy.stats_multivariate import dirichlet as dirichlet
from functrans.scipy.stats_multivariate import gaussian_kde as gaussian_kde
from functrans.scipy.stats_multivariate import multinomial as multinomial
from functrans.scipy.stats_multivariate import multivariate_normal as multivariate_normal
from functrans.scipy.stats_multivariate import multivariate_t as multivariate_t
from functrans.scipy.stats_multivariate import wishart as wishart
from functrans.scipy.stats_positive import chi as chi
from functrans.scipy.stats_positive import chi2 as chi2
from functrans.scipy.stats_positive import expon as expon
from functrans.scipy.stats_positive import f as f
from functrans.scipy.stats_positive import fisk as fisk
from functrans.scipy.stats_positive import gamma as gamma
from functrans.scipy.stats_positive import gompertz as gompertz
from functrans.scipy.stats_positive import halfcauchy as halfcauchy
from functrans.scipy.stats_positive import halfnorm as halfnorm
from functrans.scipy.stats_positive import invgamma as invgamma
from functrans.scipy.stats_positive import invweibull as invweibull
from functrans.scipy.stats_positive import lognorm as lognorm
from functrans.scipy.stats_positive import lomax as lomax
from functrans.scipy.stats_positive import maxwell as maxwell
from functrans.scipy.stats_positive import pareto as pareto
from functrans.scipy.stats_positive import rayleigh as rayleigh
from functrans.scipy.stats_positive import weibull_min as weibull_min
from functrans.scipy.stats_relations import LinregressResult as LinregressResult
from functrans.scipy.stats_relations import PearsonRResult as PearsonRResult
from functrans.scipy.stats_relations import linregress as linregress
from functrans.scipy.stats_relations import pearsonr as pearsonr
from functrans.scipy.stats_summary import entropy as entropy
from functrans.scipy.stats_summary import gmean as gmean
from functrans.scipy.stats_summary import hmean as hmean
from functrans.scipy.stats_summary import kurtosis as kurtosis
from functrans.scipy.stats_summary import moment as moment
from functrans.scipy.stats_summary import pmean as pmean
from functrans.scipy.stats_summary import sem as sem
from functrans.scipy.stats_summary import skew as skew
from functrans.scipy.stats_summary import zmap as zmap
from functrans.scipy.stats_summary import zscore as zscore

__all__ = _exported(globals())
__dir__ = _listing(__all__)
