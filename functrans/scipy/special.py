"""``scipy.special``-shaped functions: sums of exponentials, and functions of one element.

Here: ``logsumexp``, ``softmax``, ``log_softmax``, and the whole namespace with SciPy's names, for
plain and traced arrays. Not here: where functions of one element are made (``special_gamma``,
``special_bessel``, ``special_statistics``), the primitives behind them (``primitives.reduction``,
``primitives.special`` and the modules beside it).

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.ir.avals import is_differentiable_dtype
from functrans.namespaces import listing as _listing
from functrans.numpy.common import as_array, axes_of
from functrans.primitives import activations, reduction
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute, sign
from functrans.primitives.structural import broadcast_to, cast, kept_shape, reshape
from functrans.scipy.special_bessel import agm as agm
from functrans.scipy.special_bessel import airy as airy
from functrans.scipy.special_bessel import airye as airye
from functrans.scipy.special_bessel import bei as bei
from functrans.scipy.special_bessel import beip as beip
from functrans.scipy.special_bessel import ber as ber
from functrans.scipy.special_bessel import berp as berp
from functrans.scipy.special_bessel import ellipe as ellipe
from functrans.scipy.special_bessel import ellipeinc as ellipeinc
from functrans.scipy.special_bessel import ellipj as ellipj
from functrans.scipy.special_bessel import ellipk as ellipk
from functrans.scipy.special_bessel import ellipkinc as ellipkinc
from functrans.scipy.special_bessel import ellipkm1 as ellipkm1
from functrans.scipy.special_bessel import elliprc as elliprc
from functrans.scipy.special_bessel import elliprd as elliprd
from functrans.scipy.special_bessel import elliprf as elliprf
from functrans.scipy.special_bessel import elliprg as elliprg
from functrans.scipy.special_bessel import elliprj as elliprj
from functrans.scipy.special_bessel import eval_chebyc as eval_chebyc
from functrans.scipy.special_bessel import eval_chebys as eval_chebys
from functrans.scipy.special_bessel import eval_chebyt as eval_chebyt
from functrans.scipy.special_bessel import eval_chebyu as eval_chebyu
from functrans.scipy.special_bessel import eval_gegenbauer as eval_gegenbauer
from functrans.scipy.special_bessel import eval_genlaguerre as eval_genlaguerre
from functrans.scipy.special_bessel import eval_hermite as eval_hermite
from functrans.scipy.special_bessel import eval_hermitenorm as eval_hermitenorm
from functrans.scipy.special_bessel import eval_jacobi as eval_jacobi
from functrans.scipy.special_bessel import eval_laguerre as eval_laguerre
from functrans.scipy.special_bessel import eval_legendre as eval_legendre
from functrans.scipy.special_bessel import eval_sh_chebyt as eval_sh_chebyt
from functrans.scipy.special_bessel import eval_sh_chebyu as eval_sh_chebyu
from functrans.scipy.special_bessel import eval_sh_jacobi as eval_sh_jacobi
from functrans.scipy.special_bessel import eval_sh_legendre as eval_sh_legendre
from functrans.scipy.special_bessel import exp1 as exp1
from functrans.scipy.special_bessel import expi as expi
from functrans.scipy.special_bessel import expn as expn
from functrans.scipy.special_bessel import h1vp as h1vp
from functrans.scipy.special_bessel import h2vp as h2vp
from functrans.scipy.special_bessel import hankel1 as hankel1
from functrans.scipy.special_bessel import hankel1e as hankel1e
from functrans.scipy.special_bessel import hankel2 as hankel2
from functrans.scipy.special_bessel import hankel2e as hankel2e
from functrans.scipy.special_bessel import hyp0f1 as hyp0f1
from functrans.scipy.special_bessel import hyp1f1 as hyp1f1
from functrans.scipy.special_bessel import hyp2f1 as hyp2f1
from functrans.scipy.special_bessel import hyperu as hyperu
from functrans.scipy.special_bessel import i0 as i0
from functrans.scipy.special_bessel import i0e as i0e
from functrans.scipy.special_bessel import i1 as i1
from functrans.scipy.special_bessel import i1e as i1e
from functrans.scipy.special_bessel import it2i0k0 as it2i0k0
from functrans.scipy.special_bessel import it2j0y0 as it2j0y0
from functrans.scipy.special_bessel import it2struve0 as it2struve0
from functrans.scipy.special_bessel import iti0k0 as iti0k0
from functrans.scipy.special_bessel import itj0y0 as itj0y0
from functrans.scipy.special_bessel import itmodstruve0 as itmodstruve0
from functrans.scipy.special_bessel import itstruve0 as itstruve0
from functrans.scipy.special_bessel import iv as iv
from functrans.scipy.special_bessel import ive as ive
from functrans.scipy.special_bessel import ivp as ivp
from functrans.scipy.special_bessel import j0 as j0
from functrans.scipy.special_bessel import j1 as j1
from functrans.scipy.special_bessel import jn as jn
from functrans.scipy.special_bessel import jv as jv
from functrans.scipy.special_bessel import jve as jve
from functrans.scipy.special_bessel import jvp as jvp
from functrans.scipy.special_bessel import k0 as k0
from functrans.scipy.special_bessel import k0e as k0e
from functrans.scipy.special_bessel import k1 as k1
from functrans.scipy.special_bessel import k1e as k1e
from functrans.scipy.special_bessel import kei as kei
from functrans.scipy.special_bessel import keip as keip
from functrans.scipy.special_bessel import kelvin as kelvin
from functrans.scipy.special_bessel import ker as ker
from functrans.scipy.special_bessel import kerp as kerp
from functrans.scipy.special_bessel import kn as kn
from functrans.scipy.special_bessel import kv as kv
from functrans.scipy.special_bessel import kve as kve
from functrans.scipy.special_bessel import kvp as kvp
from functrans.scipy.special_bessel import lambertw as lambertw
from functrans.scipy.special_bessel import lpmv as lpmv
from functrans.scipy.special_bessel import modstruve as modstruve
from functrans.scipy.special_bessel import shichi as shichi
from functrans.scipy.special_bessel import sici as sici
from functrans.scipy.special_bessel import spence as spence
from functrans.scipy.special_bessel import sph_harm_y as sph_harm_y
from functrans.scipy.special_bessel import sph_legendre_p as sph_legendre_p
from functrans.scipy.special_bessel import spherical_in as spherical_in
from functrans.scipy.special_bessel import spherical_jn as spherical_jn
from functrans.scipy.special_bessel import spherical_kn as spherical_kn
from functrans.scipy.special_bessel import spherical_yn as spherical_yn
from functrans.scipy.special_bessel import struve as struve
from functrans.scipy.special_bessel import wright_bessel as wright_bessel
from functrans.scipy.special_bessel import wrightomega as wrightomega
from functrans.scipy.special_bessel import y0 as y0
from functrans.scipy.special_bessel import y1 as y1
from functrans.scipy.special_bessel import yn as yn
from functrans.scipy.special_bessel import yv as yv
from functrans.scipy.special_bessel import yve as yve
from functrans.scipy.special_bessel import yvp as yvp
from functrans.scipy.special_gamma import beta as beta
from functrans.scipy.special_gamma import betainc as betainc
from functrans.scipy.special_gamma import betaincc as betaincc
from functrans.scipy.special_gamma import betainccinv as betainccinv
from functrans.scipy.special_gamma import betaincinv as betaincinv
from functrans.scipy.special_gamma import betaln as betaln
from functrans.scipy.special_gamma import binom as binom
from functrans.scipy.special_gamma import boxcox as boxcox
from functrans.scipy.special_gamma import boxcox1p as boxcox1p
from functrans.scipy.special_gamma import cbrt as cbrt
from functrans.scipy.special_gamma import comb as comb
from functrans.scipy.special_gamma import cosdg as cosdg
from functrans.scipy.special_gamma import cosm1 as cosm1
from functrans.scipy.special_gamma import cotdg as cotdg
from functrans.scipy.special_gamma import dawsn as dawsn
from functrans.scipy.special_gamma import digamma as digamma
from functrans.scipy.special_gamma import diric as diric
from functrans.scipy.special_gamma import entr as entr
from functrans.scipy.special_gamma import erf as erf
from functrans.scipy.special_gamma import erfc as erfc
from functrans.scipy.special_gamma import erfcinv as erfcinv
from functrans.scipy.special_gamma import erfcx as erfcx
from functrans.scipy.special_gamma import erfi as erfi
from functrans.scipy.special_gamma import erfinv as erfinv
from functrans.scipy.special_gamma import exp2 as exp2
from functrans.scipy.special_gamma import exp10 as exp10
from functrans.scipy.special_gamma import expit as expit
from functrans.scipy.special_gamma import expm1 as expm1
from functrans.scipy.special_gamma import exprel as exprel
from functrans.scipy.special_gamma import factorial as factorial
from functrans.scipy.special_gamma import fresnel as fresnel
from functrans.scipy.special_gamma import gamma as gamma
from functrans.scipy.special_gamma import gammainc as gammainc
from functrans.scipy.special_gamma import gammaincc as gammaincc
from functrans.scipy.special_gamma import gammainccinv as gammainccinv
from functrans.scipy.special_gamma import gammaincinv as gammaincinv
from functrans.scipy.special_gamma import gammaln as gammaln
from functrans.scipy.special_gamma import gammasgn as gammasgn
from functrans.scipy.special_gamma import huber as huber
from functrans.scipy.special_gamma import inv_boxcox as inv_boxcox
from functrans.scipy.special_gamma import inv_boxcox1p as inv_boxcox1p
from functrans.scipy.special_gamma import kl_div as kl_div
from functrans.scipy.special_gamma import kolmogi as kolmogi
from functrans.scipy.special_gamma import kolmogorov as kolmogorov
from functrans.scipy.special_gamma import log1p as log1p
from functrans.scipy.special_gamma import log_expit as log_expit
from functrans.scipy.special_gamma import log_ndtr as log_ndtr
from functrans.scipy.special_gamma import loggamma as loggamma
from functrans.scipy.special_gamma import logit as logit
from functrans.scipy.special_gamma import multigammaln as multigammaln
from functrans.scipy.special_gamma import ndtr as ndtr
from functrans.scipy.special_gamma import ndtri as ndtri
from functrans.scipy.special_gamma import ndtri_exp as ndtri_exp
from functrans.scipy.special_gamma import owens_t as owens_t
from functrans.scipy.special_gamma import perm as perm
from functrans.scipy.special_gamma import poch as poch
from functrans.scipy.special_gamma import polygamma as polygamma
from functrans.scipy.special_gamma import powm1 as powm1
from functrans.scipy.special_gamma import pseudo_huber as pseudo_huber
from functrans.scipy.special_gamma import psi as psi
from functrans.scipy.special_gamma import radian as radian
from functrans.scipy.special_gamma import rel_entr as rel_entr
from functrans.scipy.special_gamma import rgamma as rgamma
from functrans.scipy.special_gamma import round as round
from functrans.scipy.special_gamma import sinc as sinc
from functrans.scipy.special_gamma import sindg as sindg
from functrans.scipy.special_gamma import softplus as softplus
from functrans.scipy.special_gamma import tandg as tandg
from functrans.scipy.special_gamma import tklmbda as tklmbda
from functrans.scipy.special_gamma import voigt_profile as voigt_profile
from functrans.scipy.special_gamma import wofz as wofz
from functrans.scipy.special_gamma import xlog1py as xlog1py
from functrans.scipy.special_gamma import xlogy as xlogy
from functrans.scipy.special_gamma import zeta as zeta
from functrans.scipy.special_gamma import zetac as zetac
from functrans.scipy.special_statistics import bdtr as bdtr
from functrans.scipy.special_statistics import bdtrc as bdtrc
from functrans.scipy.special_statistics import bdtri as bdtri
from functrans.scipy.special_statistics import btdtria as btdtria
from functrans.scipy.special_statistics import btdtrib as btdtrib
from functrans.scipy.special_statistics import chdtr as chdtr
from functrans.scipy.special_statistics import chdtrc as chdtrc
from functrans.scipy.special_statistics import chdtri as chdtri
from functrans.scipy.special_statistics import chdtriv as chdtriv
from functrans.scipy.special_statistics import fdtr as fdtr
from functrans.scipy.special_statistics import fdtrc as fdtrc
from functrans.scipy.special_statistics import fdtri as fdtri
from functrans.scipy.special_statistics import gdtr as gdtr
from functrans.scipy.special_statistics import gdtrc as gdtrc
from functrans.scipy.special_statistics import gdtria as gdtria
from functrans.scipy.special_statistics import gdtrib as gdtrib
from functrans.scipy.special_statistics import gdtrix as gdtrix
from functrans.scipy.special_statistics import nbdtr as nbdtr
from functrans.scipy.special_statistics import nbdtrc as nbdtrc
from functrans.scipy.special_statistics import nbdtri as nbdtri
from functrans.scipy.special_statistics import nrdtrimn as nrdtrimn
from functrans.scipy.special_statistics import nrdtrisd as nrdtrisd
from functrans.scipy.special_statistics import pdtr as pdtr
from functrans.scipy.special_statistics import pdtrc as pdtrc
from functrans.scipy.special_statistics import pdtri as pdtri
from functrans.scipy.special_statistics import pdtrik as pdtrik
from functrans.scipy.special_statistics import stdtr as stdtr
from functrans.scipy.special_statistics import stdtridf as stdtridf
from functrans.scipy.special_statistics import stdtrit as stdtrit
from functrans.trace import dtype_of, shape_of


def _floating(a: Any) -> Any:
    """The operand with a floating dtype."""
    a = as_array(a)
    return a if is_differentiable_dtype(dtype_of(a)) else cast(a, np.float64)


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Non-negative axes in order; all of them for ``None``. A scalar has axes 0 and -1 (NumPy)."""
    return tuple(sorted(axes_of(axis, ndim)))


def logsumexp(
    a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False
) -> Any:
    """Logarithm of the sum of exponentials, without overflow.

    Args:
      a: array; integers are converted to ``f64``.
      axis: axis or tuple of axes, by default all.
      b: factors of the exponentials, broadcast against ``a``; may be negative or zero.
      keepdims: whether the axes stay, with extent 1.
      return_sign: whether to return ``(value, sign)``; without it a negative sum gives NaN.

    Returns:
      ``log(sum(b * exp(a)))``. ``-inf`` for an empty sum. Where the result is infinite, its
      derivative is split evenly between the elements that equal it.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> float(logsumexp(np.array([1000.0, 1000.0])))
      1000.6931471805599
    """
    a = _floating(a)
    if b is None:
        shape = shape_of(a)
        axes = _axes(axis, len(shape))
        value = reduction.logsumexp(a, axes)
        signs: Any = ew.where(value == -np.inf, 0.0, 1.0)
    else:
        b = _floating(b)
        shape = np.broadcast_shapes(shape_of(a), shape_of(b))
        axes = _axes(axis, len(shape))
        value, signs = _weighted(a, b, shape, axes)
        if not return_sign:
            value = ew.where(signs < 0, np.nan, value)
    if keepdims:
        kept = kept_shape(shape, axes)
        value, signs = reshape(value, kept), reshape(broadcast_to(signs, value.shape), kept)
    return (value, signs) if return_sign else value


def _weighted(a: Any, b: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Logarithm of the absolute sum of ``b exp(a)``, and the sign of the sum.

    The terms of either sign are summed apart, as ``exp(p)`` and ``exp(n)``; the difference is
    ``exp(p) - exp(n) = sign * exp(top) * (1 - exp(low - top))``.
    """
    size = broadcast_to(
        ew.where(b == 0, -np.inf, a + ew.log(absolute(ew.where(b == 0, 1, b)))), shape
    )
    is_negative = broadcast_to(b < 0, shape)
    plus = reduction.logsumexp(ew.where(is_negative, -np.inf, size), axes)
    minus = reduction.logsumexp(ew.where(is_negative, size, -np.inf), axes)
    signs = sign(ew.where(plus == minus, 0.0, ew.where(plus > minus, 1.0, -1.0)))
    top, low = ew.maximum(plus, minus), ew.minimum(plus, minus)
    gap = ew.where(low == -np.inf, -np.inf, low - ew.where(low == -np.inf, 0, top))
    return ew.where(low == -np.inf, top, top + activations.log1mexp(-gap)), signs


def softmax(x: Any, axis: Any = None) -> Any:
    """Exponentials divided by their sum over axes.

    Args:
      x: array.
      axis: axis or tuple of axes, by default all.

    Returns:
      Array of the shape of ``x`` that sums to 1 over the axes.

    Example:
      >>> softmax(np.array([0.0, 0.0]))
      array([0.5, 0.5])
    """
    x = _floating(x)
    return activations.softmax(x, _axes(axis, len(shape_of(x))))


def log_softmax(x: Any, axis: Any = None) -> Any:
    """Logarithm of :func:`softmax`, without underflow.

    Example:
      >>> log_softmax(np.array([0.0, -1000.0]))
      array([    0., -1000.])
    """
    x = _floating(x)
    return activations.log_softmax(x, _axes(axis, len(shape_of(x))))


__all__ = [
    "agm", "airy", "airye", "bdtr", "bdtrc", "bdtri", "bei", "beip", "ber", "berp", "beta",
    "betainc", "betaincc", "betainccinv", "betaincinv", "betaln", "binom", "boxcox", "boxcox1p",
    "btdtria", "btdtrib", "cbrt", "chdtr", "chdtrc", "chdtri", "chdtriv", "comb", "cosdg", "cosm1",
    "cotdg", "dawsn", "digamma", "diric", "ellipe", "ellipeinc", "ellipj", "ellipk", "ellipkinc",
    "ellipkm1", "elliprc", "elliprd", "elliprf", "elliprg", "elliprj", "entr", "erf", "erfc",
    "erfcinv", "erfcx", "erfi", "erfinv", "eval_chebyc", "eval_chebys", "eval_chebyt",
    "eval_chebyu", "eval_gegenbauer", "eval_genlaguerre", "eval_hermite", "eval_hermitenorm",
    "eval_jacobi", "eval_laguerre", "eval_legendre", "eval_sh_chebyt", "eval_sh_chebyu",
    "eval_sh_jacobi", "eval_sh_legendre", "exp1", "exp2", "exp10", "expi", "expit", "expm1", "expn",
    "exprel", "factorial", "fdtr", "fdtrc", "fdtri", "fresnel", "gamma", "gammainc", "gammaincc",
    "gammainccinv", "gammaincinv", "gammaln", "gammasgn", "gdtr", "gdtrc", "gdtria", "gdtrib",
    "gdtrix", "h1vp", "h2vp", "hankel1", "hankel1e", "hankel2", "hankel2e", "huber", "hyp0f1",
    "hyp1f1", "hyp2f1", "hyperu", "i0", "i0e", "i1", "i1e", "inv_boxcox", "inv_boxcox1p", "it2i0k0",
    "it2j0y0", "it2struve0", "iti0k0", "itj0y0", "itmodstruve0", "itstruve0", "iv", "ive", "ivp",
    "j0", "j1", "jn", "jv", "jve", "jvp", "k0", "k0e", "k1", "k1e", "kei", "keip", "kelvin", "ker",
    "kerp", "kl_div", "kn", "kolmogi", "kolmogorov", "kv", "kve", "kvp", "lambertw", "log1p",
    "log_expit", "log_ndtr", "log_softmax", "loggamma", "logit", "logsumexp", "lpmv", "modstruve",
    "multigammaln", "nbdtr", "nbdtrc", "nbdtri", "ndtr", "ndtri", "ndtri_exp", "nrdtrimn",
    "nrdtrisd", "owens_t", "pdtr", "pdtrc", "pdtri", "pdtrik", "perm", "poch", "polygamma", "powm1",
    "pseudo_huber", "psi", "radian", "rel_entr", "rgamma", "round", "shichi", "sici", "sinc",
    "sindg", "softmax", "softplus", "spence", "sph_harm_y", "sph_legendre_p", "spherical_in",
    "spherical_jn", "spherical_kn", "spherical_yn", "stdtr", "stdtridf", "stdtrit", "struve",
    "tandg", "tklmbda", "voigt_profile", "wofz", "wright_bessel", "wrightomega", "xlog1py", "xlogy",
    "y0", "y1", "yn", "yv", "yve", "yvp", "zeta", "zetac",
]  # fmt: skip
__dir__ = _listing(__all__)
