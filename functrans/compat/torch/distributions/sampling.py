"""Random numbers of distributions, drawn from the stream of ``torch.manual_seed``.

Here: numbers with parameters of any kind, and gamma variables and Dirichlet's probabilities, which
are differentiable in their parameters. Not here: the streams (``functrans.autograd.random``).

Derivatives are those at constant probability (implicit reparameterisation). For Dirichlet's
distribution the marginal of each component, a beta distribution, moves at constant probability and
the others shrink in proportion.

Layer: ``compat``. Source: Figurnov, Mohamed and Mnih, Implicit reparameterization gradients
(NeurIPS 2018); Jankowiak and Obermeyer, Pathwise derivatives beyond the reparameterization trick
(ICML 2018), for Dirichlet's distribution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.methods.rows import drawn_by_numpy
from functrans.autograd.recording import PERMANENT
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.functional_names import TORCH
from functrans.control.custom_rules import custom_jvp
from functrans.core.dispatch import dtype_of
from functrans.core.values import Array
from functrans.primitives.special.gamma import betainc_a
from functrans.primitives.structural import cast
from functrans.random.gamma import log_gamma_slope
from functrans.scipy import special as sp

Shape = Sequence[int]


def normal(shape: Shape, like: Tensor) -> Any:
    """Normal numbers, of the dtype of a tensor."""
    return TORCH.randn(shape, dtype=like.dtype)


def uniform(shape: Shape, like: Tensor) -> Any:
    """Numbers in [0, 1), of the dtype of a tensor."""
    return TORCH.rand(shape, dtype=like.dtype)


def numbers(draw: Callable[..., Any], shape: Shape, dtype: np.dtype, *parameters: Tensor) -> Any:
    """Numbers that have no derivative.

    Args:
      draw: from a generator of NumPy, a shape and arrays of parameters to the numbers.
      shape: of the numbers.
      dtype: of the numbers.
      *parameters: may be traced.
    """
    detached = [parameter.detach() for parameter in parameters]
    return drawn_by_numpy(None, draw, tuple(shape), np.dtype(dtype), *detached)


def exponential(shape: Shape, like: Tensor) -> Any:
    """Numbers of the exponential distribution of rate 1, PyTorch's for a seed."""
    return (-(-TORCH.rand(shape, dtype=np.float64)).log1p()).to(like.dtype)


def cauchy(shape: Shape, like: Tensor) -> Any:
    """Numbers of the Cauchy distribution, PyTorch's for a seed."""
    return ((TORCH.rand(shape, dtype=np.float64) - 0.5) * math.pi).tan().to(like.dtype)


@custom_jvp
def _moving_log_gamma(a: Array, log_x: Array) -> Any:
    """Logarithms of gamma variables, which move with the parameter at constant probability."""
    return log_x + 0.0 * a


@_moving_log_gamma.defjvp
def _moving_log_gamma_jvp(primals: Any, tangents: Any) -> Any:
    log_x = _moving_log_gamma(*primals)
    return log_x, tangents[0] * log_gamma_slope(primals[0], log_x)


def _log_gammas(rng: np.random.Generator, size: Any, a: np.ndarray) -> Any:
    """Logarithms of gamma variables: those of ``a + 1`` times ``u**(1/a)``, which underflows."""
    a = a.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(rng.standard_gamma(a + 1, size)) - rng.standard_exponential(size) / a


def log_gamma(shape: Shape, concentration: Tensor) -> Any:
    """Logarithms of numbers of the gamma distribution of rate 1."""
    a: Any = concentration.expand(shape)
    found = numbers(_log_gammas, shape, a.dtype, a)
    return found if _is_fixed(a) else _moving_log_gamma(a, found)


def _is_fixed(parameter: Any) -> bool:
    """Whether nobody asks for the derivative in a parameter."""
    return parameter._trace is PERMANENT and not parameter.requires_grad


def standard_gamma(shape: Shape, concentration: Tensor) -> Any:
    """Numbers of the gamma distribution of rate 1; positive."""
    tiny = np.log(np.finfo(concentration.dtype).tiny)
    return fnp.exp(fnp.maximum(log_gamma(shape, concentration), float(tiny)))


def _standard_gamma(input: Tensor) -> Any:
    return standard_gamma(input.shape, input)


def _sample_dirichlet(input: Tensor) -> Any:
    return dirichlet(input.shape, input)


@custom_jvp
def _moving_dirichlet(alpha: Array, x: Array) -> Any:
    """Probabilities that move with the parameters."""
    return x + 0.0 * alpha


@_moving_dirichlet.defjvp
def _moving_dirichlet_jvp(primals: Any, tangents: Any) -> Any:
    x = _moving_dirichlet(*primals)
    step = tangents[0] * dirichlet_slope(primals[0], x)
    return x, step - x * fnp.sum(step, axis=-1, keepdims=True)


def dirichlet_slope(alpha: Any, x: Any) -> Any:
    """``-I_a(a, b, x) / (p(x) (1 - x))`` of the beta distributions of the components."""
    dtype = dtype_of(x)
    a, x = cast(alpha, np.float64), cast(x, np.float64)
    b = fnp.sum(a, axis=-1, keepdims=True) - a
    x = fnp.clip(x, np.finfo(np.float64).tiny, 1.0 - np.finfo(np.float64).eps / 2)
    log_density = sp.xlogy(a - 1.0, x) + sp.xlog1py(b, -x) - sp.betaln(a, b)
    return cast(-betainc_a(a, b, x) * fnp.exp(-log_density), dtype)


def _probabilities(rng: np.random.Generator, size: Any, alpha: np.ndarray) -> Any:
    logs = _log_gammas(rng, size, alpha)
    shares = np.exp(logs - logs.max(-1, keepdims=True))
    return shares / shares.sum(-1, keepdims=True)


def dirichlet(shape: Shape, concentration: Tensor) -> Any:
    """Probabilities of Dirichlet's distribution, neither 0 nor 1."""
    alpha: Any = concentration.expand(shape)
    info = np.finfo(alpha.dtype)

    def draw(rng: np.random.Generator, size: Any, a: np.ndarray) -> Any:
        return np.clip(_probabilities(rng, size, a), info.tiny, 1 - info.epsneg)

    found = numbers(draw, shape, alpha.dtype, alpha)
    return found if _is_fixed(alpha) else _moving_dirichlet(alpha, found)
