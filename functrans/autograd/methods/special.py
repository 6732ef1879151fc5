"""Special functions of tensors: what ``torch.special`` has beyond the elementary functions.

Layer: ``autograd``. Sources: DLMF chapters 5, 8, 10, 25.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functrans.autograd.composites import composite
from functrans.autograd.methods import blending, pointwise, reductions
from functrans.autograd.methods.arithmetic import joined
from functrans.autograd.methods.pointwise import unary
from functrans.autograd.methods.rows import (
    Row,
    documented,
    floating,
    functions_of,
    methods_of,
    with_out,
)
from functrans.autograd.sizes import integer
from functrans.autograd.tensors import Tensor
from functrans.primitives import torch_elementwise as te
from functrans.primitives.special import functions as sf


def _of_order(n: int) -> Callable[..., Any]:
    """The derivative of order ``n`` of ``digamma``: ``(-1)**(n+1) n! zeta(n+1, x)``."""
    factor = (-1.0) ** (n + 1) * math.factorial(n)
    return lambda x: factor * sf.zeta(float(n + 1), x)


def _is_order(n: Tensor) -> bool:
    return not n.shape and n.dtype.kind in "iu"


def polygamma(n: int, input: Tensor) -> Tensor:
    """The derivative of order ``n`` of ``digamma``.

    Raises:
      RuntimeError: ``n`` is negative.
    """
    if isinstance(n, Tensor) and not (isinstance(input, Tensor) and _is_order(n)):
        n, input = input, n
    n = integer(n, "n", "polygamma")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    x = floating(input)
    return composite("Polygamma", sf.digamma if n == 0 else _of_order(n), x)


def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension ``p``."""
    words = "p has to be greater than or equal to 1"
    p = integer(p, "p", "mvlgamma", least=1, words=words)

    def of(x: Any) -> Any:
        total = sf.lgamma(x)
        for j in range(1, p):
            total = total + sf.lgamma(x - 0.5 * j)
        return total + p * (p - 1) / 4 * math.log(math.pi)

    return composite("Mvlgamma", of, floating(input))


_JOINED: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("xlog1py", "SpecialXlog1Py", te.xlog1py),
    ("zeta", "SpecialZeta", sf.zeta),
    ("gammainc", "Igamma", sf.gammainc),
    ("gammaincc", "Igammac", sf.gammaincc),
)
"""Functions of two operands; but for the first they are differentiable in the second."""


def _of_two(name: str, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def operation(input: Any, other: Any) -> Tensor:
        return joined(label, function, input, other, true=True)

    return documented(operation, name, f"``{name}`` of two tensors, or of a tensor and a number.")


_TWO = {name: _of_two(name, label, function) for name, label, function in _JOINED}

_UNARY: tuple[tuple[str, str, Callable[..., Any], bool], ...] = (
    ("erfcx", "SpecialErfcx", sf.erfcx, True),
    ("ndtr", "MulBackward1", sf.ndtr, True),
    ("ndtri", "SpecialNdtri", sf.ndtri, True),
    ("log_ndtr", "SpecialLogNdtr", sf.log_ndtr, True),
    ("i0e", "SpecialI0E", sf.i0e, True),
    ("i1", "SpecialI1", sf.i1, True),
    ("i1e", "SpecialI1E", sf.i1e, True),
    ("entr", "SpecialEntr", te.entropy, True),
    ("bessel_j0", "SpecialBesselJ0", sf.j0, True),
    ("bessel_j1", "SpecialBesselJ1", sf.j1, True),
    ("bessel_y0", "SpecialBesselY0", sf.y0, True),
    ("bessel_y1", "SpecialBesselY1", sf.y1, True),
    ("modified_bessel_i0", "SpecialModifiedBesselI0", sf.i0, True),
    ("modified_bessel_i1", "SpecialModifiedBesselI1", sf.i1, True),
    ("modified_bessel_k0", "SpecialModifiedBesselK0", sf.k0, True),
    ("modified_bessel_k1", "SpecialModifiedBesselK1", sf.k1, True),
    ("scaled_modified_bessel_k0", "SpecialScaledModifiedBesselK0", sf.k0e, True),
    ("scaled_modified_bessel_k1", "SpecialScaledModifiedBesselK1", sf.k1e, True),
)

ROWS: tuple[Row, ...] = (
    Row("mvlgamma", mvlgamma, ("multigammaln",), "mf"),
    Row("polygamma", polygamma, (), "mi"),
    Row("igamma", _TWO["gammainc"], (), "mfi"),
    Row("igammac", _TWO["gammaincc"], (), "mfi"),
)

METHODS: dict[str, Any] = methods_of(ROWS)
METHODS.pop("multigammaln")
FUNCTIONS: dict[str, Any] = {**functions_of(ROWS), "polygamma": with_out("polygamma", polygamma)}
_SHARED = {
    "expit": "sigmoid", "exp2": "exp2", "expm1": "expm1", "log1p": "log1p", "erf": "erf",
    "erfc": "erfc", "erfinv": "erfinv", "gammaln": "lgamma", "digamma": "digamma",
    "psi": "digamma", "i0": "i0", "sinc": "sinc", "round": "round", "logit": "logit",
}  # fmt: skip
SPECIAL: dict[str, Any] = {
    **{name: pointwise.FUNCTIONS[ours] for name, ours in _SHARED.items()},
    **functions_of(
        Row(name, unary(name, label, function, complex_=False, is_one=is_one), (), "f")
        for name, label, function, is_one in _UNARY
    ),
    "softmax": reductions.FUNCTIONS["softmax"],
    "log_softmax": reductions.FUNCTIONS["log_softmax"],
    "logsumexp": reductions.FUNCTIONS["logsumexp"],
    "xlogy": blending.FUNCTIONS["xlogy"],
    **{name: with_out(name, function) for name, function in _TWO.items()},
    "polygamma": FUNCTIONS["polygamma"],
    "multigammaln": FUNCTIONS.pop("multigammaln"),
}
