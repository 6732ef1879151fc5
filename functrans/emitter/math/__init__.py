"""Vector math: elementary and special functions as branch-free instructions.

Here: one module per family of functions. Each function takes a builder and operands of type float
or double, in any number of lanes, and returns a value of the same type:
``exponential.exp(b, x)``. It serves all inputs, subnormal numbers, infinities and NaN too, and
calls no library. Polynomials are minimax fits, computed with Remez' exchange algorithm in
multiple precision; the comment above a table says what was fitted, where, and to which error.
Not here: dtypes (``emitter.numbers``), instructions (``emitter.builder``).

``BOUNDS`` states the error that no result exceeds, in units of the last place of the exact result;
the tests hold every function to it.

Layer: ``emitter``.
"""

from collections.abc import Mapping

from functrans.emitter.math import geometry, inverse_trigonometry, special, trigonometry

BOUNDS: Mapping[str, float] = {
    "exp": 1.5,
    "exp2": 1.0,
    "expm1": 2.0,
    "log": 1.0,
    "log2": 1.0,
    "log10": 1.0,
    "log1p": 2.0,
    "pow": 1.5,
    "cbrt": 1.0,
    **trigonometry.BOUNDS,
    **inverse_trigonometry.BOUNDS,
    **geometry.BOUNDS,
    "sinh": 2.0,
    "cosh": 2.0,
    "tanh": 2.0,
    "asinh": 1.5,
    "acosh": 2.0,
    "atanh": 1.5,
    "expit": 2.0,
    "softplus": 2.0,
    **special.BOUNDS,
}
