"""``functrans.random``: random numbers as functions of keys, as in JAX.

A sampler gives the same numbers for the same key, under every transform and compiled or not; new
numbers need a new key (``split``, ``fold_in``). Samples are differentiable in the parameters of
their distribution. Not here: ``numpy.random``, whose numbers are constants of a traced function.

Layer: ``random``.
"""

from functrans.core.boundary import guard as _guard
from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing

# isort: off
from functrans.random.continuous import (
    cauchy as cauchy, double_sided_maxwell as double_sided_maxwell, exponential as exponential,
    gumbel as gumbel, laplace as laplace, logistic as logistic, lognormal as lognormal,
    maxwell as maxwell, pareto as pareto, rademacher as rademacher, rayleigh as rayleigh,
    triangular as triangular, truncated_normal as truncated_normal, wald as wald,
    weibull_min as weibull_min,
)  # fmt: skip
from functrans.random.discrete import (
    bernoulli as bernoulli, binomial as binomial, categorical as categorical,
    geometric as geometric, multinomial as multinomial, poisson as poisson,
)  # fmt: skip
from functrans.random.gamma import (
    beta as beta, chisquare as chisquare, dirichlet as dirichlet, f as f, gamma as gamma,
    generalized_normal as generalized_normal, loggamma as loggamma, t as t,
)  # fmt: skip
from functrans.random.keys import bits as bits, fold_in as fold_in, key as key, split as split
from functrans.random.multivariate import (
    ball as ball, multivariate_normal as multivariate_normal, orthogonal as orthogonal,
)  # fmt: skip
from functrans.random.permuting import choice as choice, permutation as permutation
from functrans.random.uniform import normal as normal, randint as randint, uniform as uniform
# isort: on

PRNGKey = key  # JAX's older name

__all__ = _exported(globals())
__dir__ = _listing(__all__)
_guard(globals(), __all__)
