"""``functrans.random``: random numbers as functions of keys, as in JAX.

A sampler gives the same numbers for the same key, under every transform and compiled or not; new
numbers need a new key (``split``, ``fold_in``). Samples are differentiable in the parameters of
their distribution. Not here: ``numpy.random``, whose numbers are constants of a traced function.

Layer: ``random``.
"""

from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.random.continuous import cauchy as cauchy
from functrans.random.continuous import double_sided_maxwell as double_sided_maxwell
from functrans.random.continuous import exponential as exponential
from functrans.random.continuous import gumbel as gumbel
from functrans.random.continuous import laplace as laplace
from functrans.random.continuous import logistic as logistic
from functrans.random.continuous import lognormal as lognormal
from functrans.random.continuous import maxwell as maxwell
from functrans.random.continuous import pareto as pareto
from functrans.random.continuous import rademacher as rademacher
from functrans.random.continuous import rayleigh as rayleigh
from functrans.random.continuous import triangular as triangular
from functrans.random.continuous import truncated_normal as truncated_normal
from functrans.random.continuous import wald as wald
from functrans.random.continuous import weibull_min as weibull_min
from functrans.random.discrete import bernoulli as bernoulli
from functrans.random.discrete import binomial as binomial
from functrans.random.discrete import categorical as categorical
from functrans.random.discrete import geometric as geometric
from functrans.random.discrete import multinomial as multinomial
from functrans.random.discrete import poisson as poisson
from functrans.random.gamma import beta as beta
from functrans.random.gamma import chisquare as chisquare
from functrans.random.gamma import dirichlet as dirichlet
from functrans.random.gamma import f as f
from functrans.random.gamma import gamma as gamma
from functrans.random.gamma import generalized_normal as generalized_normal
from functrans.random.gamma import loggamma as loggamma
from functrans.random.gamma import t as t
from functrans.random.keys import bits as bits
from functrans.random.keys import fold_in as fold_in
from functrans.random.keys import key as key
from functrans.random.keys import split as split
from functrans.random.multivariate import ball as ball
from functrans.random.multivariate import multivariate_normal as multivariate_normal
from functrans.random.multivariate import orthogonal as orthogonal
from functrans.random.permuting import choice as choice
from functrans.random.permuting import permutation as permutation
from functrans.random.uniform import normal as normal
from functrans.random.uniform import randint as randint
from functrans.random.uniform import uniform as uniform

PRNGKey = key  # JAX's older name

__all__ = _exported(globals())
__dir__ = _listing(__all__)
