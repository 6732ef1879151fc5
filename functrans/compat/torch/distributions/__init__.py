"""``torch.distributions``: distributions, transforms, constraints, divergences.

Layer: ``compat``.
"""

import sys as _sys

from functrans.autograd.methods.joining import FUNCTIONS as _JOINING
from functrans.compat.torch.distributions import composed as _composed
from functrans.compat.torch.distributions import constraint_registry as constraint_registry
from functrans.compat.torch.distributions import constraints as constraints
from functrans.compat.torch.distributions import kl as kl
from functrans.compat.torch.distributions import transforms as transforms
from functrans.compat.torch.distributions import utils as utils
from functrans.compat.torch.distributions.composed import *
from functrans.compat.torch.distributions.constraint_registry import biject_to as biject_to
from functrans.compat.torch.distributions.constraint_registry import transform_to as transform_to
from functrans.compat.torch.distributions.continuous import *
from functrans.compat.torch.distributions.continuous import Beta as Beta
from functrans.compat.torch.distributions.discrete import *
from functrans.compat.torch.distributions.distribution import Distribution as Distribution
from functrans.compat.torch.distributions.distribution import ExponentialFamily as ExponentialFamily
from functrans.compat.torch.distributions.kl import kl_divergence as kl_divergence
from functrans.compat.torch.distributions.kl import register_kl as register_kl
from functrans.compat.torch.distributions.multivariate import *
from functrans.compat.torch.distributions.multivariate import Dirichlet as Dirichlet
from functrans.compat.torch.distributions.transformed import *
from functrans.compat.torch.distributions.transforms import *
from functrans.compat.torch.not_offered import nothing_else as _nothing_else
from functrans.compat.torch.submodules import add_aliases as _add_aliases
from functrans.core.boundary import guard as _guard

transforms.CumulativeDistributionTransform = _composed.CumulativeDistributionTransform  # type: ignore[attr-defined]  # torch has it there
Beta._dirichlet = property(  # type: ignore[attr-defined]  # libraries set its parameters
    lambda self: Dirichlet(_JOINING["stack"]([self.concentration1, self.concentration0], -1))
)
_guard(globals(), list(globals()), homes=("functrans.compat.torch",))

__getattr__ = _nothing_else(__name__)

_MODULES = (
    "bernoulli", "beta", "binomial", "categorical", "cauchy", "chi2", "continuous_bernoulli",
    "dirichlet", "exp_family", "exponential", "fishersnedecor", "gamma", "generalized_pareto",
    "geometric", "gumbel", "half_cauchy", "half_normal", "independent", "inverse_gamma",
    "kumaraswamy", "laplace", "lkj_cholesky", "log_normal", "logistic_normal",
    "lowrank_multivariate_normal", "mixture_same_family", "multinomial", "multivariate_normal",
    "negative_binomial", "normal", "one_hot_categorical", "pareto", "poisson",
    "relaxed_bernoulli", "relaxed_categorical", "studentT", "transformed_distribution", "uniform",
    "von_mises", "weibull", "wishart",
)  # fmt: skip
"""Torch's submodules that have a distribution each: here the package has all of their names."""

_add_aliases(__name__, dict.fromkeys(_MODULES, _sys.modules[__name__]))
