"""Orthogonal polynomials of tensors and what else ``torch.special`` has.

Here: Chebyshev, Hermite, Laguerre and Legendre polynomials by their recurrences. Not here: the
other functions (``functrans.autograd.methods.special``).

Layer: ``compat``. Source: DLMF section 18.9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd.composites import composite
from functrans.autograd.methods.rows import floating, looked_at
from functrans.autograd.promotion import result_dtype, torch_tensor
from functrans.autograd.tensors import Tensor
from functrans.core.values import Array
from functrans.primitives import elementwise as ew

_Step = Callable[[int, Any, Any, Any], Any]


def _polynomial(
    name: str, first: Callable[[Any], Any], step: _Step, shifted: bool = False
) -> Callable[..., Any]:
    """A polynomial of degree ``n``: 1, ``first(x)``, then ``step(k, x, last, before)``."""

    def polynomial(input: Tensor, n: object) -> Tensor:
        own: Any = input
        if not isinstance(own, Tensor):  # a number
            own = torch_tensor(np.asarray(own, result_dtype(float(own), n)))
        x = floating(own)
        degree = np.asarray(looked_at(n)).astype(int)

        def of(x: Array) -> Any:
            if shifted:
                x = 2.0 * x - 1.0
            one = x * 0.0 + 1.0
            before, last = one, first(x)
            out = ew.where(degree == 0, one, ew.where(degree == 1, last, one * 0.0))
            for k in range(1, int(degree.max(initial=0))):
                before, last = last, step(k, x, last, before)
                out = ew.where(degree == k + 1, last, out)
            return out

        return composite(f"Special_{name}", of, x)

    polynomial.__name__ = polynomial.__qualname__ = name
    polynomial.__doc__ = "A polynomial of degree ``n`` (an integer, or a tensor of them)."
    return polynomial


def _chebyshev(k: int, x: Array, last: Array, before: Array) -> Array:
    return 2.0 * x * last - before


def spherical_bessel_j0(input: Tensor) -> Tensor:
    """``sin(x) / x``, 1 at 0."""

    def of(x: Any) -> Any:
        is_small = abs(x) < 0.5
        safe = ew.where(is_small, 1.0, x)
        square = ew.where(is_small, x * x, 0.0)
        series: Any = 0.0
        for k in range(7, 0, -1):
            series = (1.0 + series) * (-square / float(2 * k * (2 * k + 1)))
        return ew.where(is_small, 1.0 + series, ew.sin(safe) / safe)

    return composite("SpecialSphericalBesselJ0", of, floating(input))


_CHEBYSHEV: dict[str, Callable[[Any], Any]] = {
    "t": lambda x: x,
    "u": lambda x: 2.0 * x,
    "v": lambda x: 2.0 * x - 1.0,
    "w": lambda x: 2.0 * x + 1.0,
}

POLYNOMIALS: dict[str, Any] = {
    **{
        f"{prefix}chebyshev_polynomial_{kind}": _polynomial(
            f"{prefix}chebyshev_polynomial_{kind}", first, _chebyshev, bool(prefix)
        )
        for kind, first in _CHEBYSHEV.items()
        for prefix in ("", "shifted_")
    },
    "hermite_polynomial_h": _polynomial(
        "hermite_polynomial_h",
        lambda x: 2.0 * x,
        lambda k, x, last, before: 2.0 * (x * last - k * before),
    ),
    "hermite_polynomial_he": _polynomial(
        "hermite_polynomial_he", lambda x: x, lambda k, x, last, before: x * last - k * before
    ),
    "laguerre_polynomial_l": _polynomial(
        "laguerre_polynomial_l",
        lambda x: 1.0 - x,
        lambda k, x, last, before: ((2 * k + 1 - x) * last - k * before) / (k + 1),
    ),
    "legendre_polynomial_p": _polynomial(
        "legendre_polynomial_p",
        lambda x: x,
        lambda k, x, last, before: ((2 * k + 1) * x * last - k * before) / (k + 1),
    ),
    "spherical_bessel_j0": spherical_bessel_j0,
}
