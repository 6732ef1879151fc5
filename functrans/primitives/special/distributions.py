"""Distribution functions that are solved for a parameter, and Kolmogorov's distribution.

Here: records of these, and the functions that apply them. Not here: distribution functions and
quantiles that are incomplete gamma and beta functions (``scipy.special_statistics``).

Of ``F(p, q) = y``, solved for ``p``: ``p_y = 1 / F_p`` and ``p_q = -F_q / F_p``.

Layer: ``primitives.special``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functrans.core.primitive import Primitive
from functrans.core.values import Array, Operand
from functrans.primitives import elementwise as ew
from functrans.primitives.family import user_function
from functrans.primitives.special.family import common_dtype, special_primitive
from functrans.primitives.special.functions import gammainc_a, lgamma
from functrans.primitives.special.gamma import beta_density, betainc_a, betainc_b
from functrans.primitives.special.polynomials import student_density, student_df
from functrans.primitives.structural import cast

ArrayFunction = Callable[..., Any]


def gamma_density(a: Array, x: Array) -> Array:
    """``x**(a-1) exp(-x) / gamma(a)`` of positive ``x``."""
    dtype = common_dtype(a, x)
    a, x = cast(a, dtype), cast(x, dtype)
    return ew.exp((a - 1) * ew.log(x) - x - lgamma(a))


def _solved(
    name: str, count: int, unknown: int, slopes: Callable[..., tuple[Any, ...]]
) -> Primitive:
    """A distribution function solved for a parameter.

    Args:
      name: SciPy's name.
      count: number of operands; the one numbered ``unknown`` is the probability.
      unknown: the place of the parameter that is solved for among the distribution's operands.
      slopes: derivatives of the distribution function in its operands, as a function of these.
    """

    def partial(position: int) -> Callable[..., Any]:
        def apply(t: Any, *operands: Operand | None) -> Any:
            *given, y = operands
            given[unknown] = y
            found = slopes(*given)
            if position == unknown:
                return t / found[unknown]
            return -t * (found[position] / found[unknown])

        return apply

    letters = "abc"[:count].replace("abc"[unknown], "") + "y"
    return special_primitive(name, tuple(partial(i) for i in range(count)), (letters,) * count)


btdtria_p: Primitive = _solved(
    "btdtria", 3, 0, lambda a, b, x: (betainc_a(a, b, x), betainc_b(a, b, x), beta_density(a, b, x))
)
btdtrib_p: Primitive = _solved(
    "btdtrib", 3, 1, lambda a, b, x: (betainc_a(a, b, x), betainc_b(a, b, x), beta_density(a, b, x))
)
gdtrib_p: Primitive = _solved(
    "gdtrib",
    3,
    1,
    lambda a, b, x: (
        gamma_density(b, a * x) * x,
        gammainc_a(b, a * x),
        gamma_density(b, a * x) * a,
    ),
)
chdtriv_p: Primitive = _solved(
    "chdtriv",
    2,
    0,
    lambda v, x: (gammainc_a(v * 0.5, x * 0.5) * 0.5, gamma_density(v * 0.5, x * 0.5) * 0.5),
)
stdtridf_p: Primitive = _solved(
    "stdtridf", 2, 0, lambda df, x: (student_df(df, x), student_density(df, x))
)
pdtrik_p: Primitive = _solved(
    "pdtrik", 2, 0, lambda k, m: (-gammainc_a(k + 1, m), -gamma_density(k + 1, m))
)

_FAR_TERMS, _NEAR_TERMS = 6, 4


def _kolmogorov_slope(x: Array) -> Array:
    """The derivative of ``2 sum((-1)**(k-1) exp(-2 k**2 x**2))``; near 0 of its theta transform."""
    is_far = x > 0.8
    far, near = ew.where(is_far, x, 1), ew.where(is_far | (x < 0.03), 0.5, x)
    far_sum: Any = 0.0
    for k in range(1, _FAR_TERMS + 1):
        sign = 1.0 if k % 2 else -1.0
        far_sum = far_sum - far * ew.exp(far * far * (-2.0 * k * k)) * (8.0 * sign * k * k)
    near_sum: Any = 0.0
    squared = 1 / (near * near)
    for k in range(1, _NEAR_TERMS + 1):
        c = ((2 * k - 1) * math.pi) ** 2 / 8
        term = ew.exp(squared * -c) * (squared * (1 - squared * (2 * c)))
        near_sum = near_sum + term * math.sqrt(2 * math.pi)
    return ew.where(is_far, far_sum, ew.where(x < 0.03, 0, near_sum))


kolmogorov_p: Primitive = special_primitive(
    "kolmogorov", (lambda t, x, y: t * _kolmogorov_slope(x),), ("x",)
)
kolmogi_p: Primitive = special_primitive(
    "kolmogi", (lambda t, x, y: t / _kolmogorov_slope(y),), ("y",)
)

btdtria: ArrayFunction = user_function(btdtria_p, "``betainc(a, b, x) = p`` solved for ``a``.")
btdtrib: ArrayFunction = user_function(btdtrib_p, "``betainc(a, b, x) = p`` solved for ``b``.")
gdtrib: ArrayFunction = user_function(gdtrib_p, "``gammainc(b, a x) = p`` solved for ``b``.")
chdtriv: ArrayFunction = user_function(
    chdtriv_p, "``chdtr(v, x) = p`` solved for the degrees of freedom."
)
stdtridf: ArrayFunction = user_function(
    stdtridf_p, "``stdtr(df, t) = p`` solved for the degrees of freedom."
)
pdtrik: ArrayFunction = user_function(pdtrik_p, "``pdtr(k, m) = p`` solved for ``k``.")
kolmogorov: ArrayFunction = user_function(
    kolmogorov_p, "The complementary distribution function of Kolmogorov's distribution."
)
kolmogi: ArrayFunction = user_function(kolmogi_p, "The inverse of ``kolmogorov``.")

PRIMITIVES: tuple[Primitive, ...] = (
    btdtria_p, btdtrib_p, gdtrib_p, chdtriv_p, stdtridf_p, pdtrik_p, kolmogorov_p, kolmogi_p,
)  # fmt: skip
