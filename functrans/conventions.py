"""Derivatives at kinks: one declared value per row, queryable and tested.

Here: the table ``KINKS`` and ``kink`` to look a row up. The page ``docs/conventions.md`` is made
from it, and ``tests/test_conventions.py`` evaluates each example. Not here: the rules that realise
the values (records of the primitives).

Layer: ``errors`` (imports nothing from functrans).
"""

from __future__ import annotations

from functrans.namespaces import listing as _listing
from functrans.records import dataclass


@dataclass(frozen=True, slots=True)
class Kink:
    """One convention.

    Attributes:
      function: name of the function.
      point: where the derivative is not defined by limits, or is infinite.
      rule: the convention in words.
      example: an expression in ``ft``, ``np`` and ``fnp`` (functrans.numpy).
      value: what the example gives, as an expression.
      reason: why this value.
    """

    function: str
    point: str
    rule: str
    example: str
    value: str
    reason: str


KINKS: tuple[Kink, ...] = (
    Kink(
        "absolute", "x = 0", "derivative 0", "ft.grad(np.abs)(0.0)", "0.0",
        "the midpoint of the subgradients [-1, 1]; also for complex x",
    ),
    Kink(
        "maximum, minimum", "a == b", "half to each operand",
        "ft.grad(np.maximum, (0, 1))(1.0, 1.0)", "(0.5, 0.5)",
        "symmetric in the operands; the parts sum to 1",
    ),
    Kink(
        "maximum, minimum", "a NaN operand", "the NaN operand gets the tangent",
        "ft.grad(np.maximum, (0, 1))(np.nan, 1.0)", "(1.0, 0.0)",
        "it is the result",
    ),
    Kink(
        "fmax, fmin", "a == b", "half to each operand",
        "ft.grad(np.fmax, (0, 1))(1.0, 1.0)", "(0.5, 0.5)",
        "as maximum and minimum; a NaN operand loses against a number",
    ),
    Kink(
        "max, min", "ties", "split evenly among the tied elements",
        "ft.grad(np.max)(np.array([1.0, 2.0, 2.0]))", "np.array([0.0, 0.5, 0.5])",
        "symmetric in the elements",
    ),
    Kink(
        "clip", "x equal to a bound", "derivative 1 on the closed interval",
        "ft.grad(lambda x: np.clip(x, 0.0, 1.0))(1.0)", "1.0",
        "a parameter that sits on its bound can leave it again",
    ),
    Kink(
        "sign, floor, ceil, trunc, rint", "everywhere", "derivative 0, also at the jumps",
        "ft.grad(np.floor)(1.0)", "0.0",
        "piecewise constant",
    ),
    Kink(
        "sqrt", "x = 0", "infinite; 0 where the cotangent is exactly zero",
        "ft.grad(lambda x: np.sqrt(x) ** 2)(0.0)", "0.0",
        "the chain rule's 0 * inf has the limit 0 for every smooth outer function that is flat "
        "there",
    ),
    Kink(
        "sqrt", "x = 0, nonzero cotangent", "infinite",
        "ft.grad(np.sqrt)(0.0)", "np.inf",
        "the one-sided limit",
    ),
    Kink(
        "norm", "x = 0", "derivative 0",
        "ft.grad(np.linalg.norm)(np.zeros(2))", "np.zeros(2)",
        "the centre of the subgradients, the unit ball",
    ),
    Kink(
        "norm", "x = 0, second order", "0",
        "ft.hessian(lambda x: np.linalg.norm(x) ** 2)(np.zeros(2))", "np.zeros((2, 2))",
        "follows from the derivative 0 at 0; np.sum(x ** 2) is the smooth function and has 2 I",
    ),
    Kink(
        "eigh, eigvalsh, svd, svdvals", "equal values",
        "the coupling of their vectors is left out: first derivatives of functions of the values "
        "alone are exact; those through the vectors, and second ones, lack it (for functions of "
        "matrices use `scipy.linalg.expm`, `sqrtm`, `logm`, which are exact there)",
        "ft.grad(lambda a: np.sum(np.linalg.eigvalsh(a) ** 2))(np.eye(2))", "2 * np.eye(2)",
        "1 / (difference of the values) would be infinite; values alone stay finite",
    ),
    Kink(
        "hypot", "a = b = 0", "derivative 0",
        "ft.grad(np.hypot, (0, 1))(0.0, 0.0)", "(0.0, 0.0)",
        "as norm",
    ),
    Kink(
        "power", "x ** 0 at x = 0", "derivative 0 in x",
        "ft.grad(lambda x: x ** 0)(0.0)", "0.0",
        "x ** 0 is the constant 1",
    ),
    Kink(
        "power", "0 ** b, derivative in b", "0 for b > 0",
        "ft.grad(lambda b: np.power(0.0, b))(2.0)", "0.0",
        "0 ** b is the constant 0 for positive b",
    ),
    Kink(
        "power", "negative base", "NaN in the exponent; in the base that of either mode",
        "ft.jacfwd(np.power, (0, 1))(-2.0, 3.0)", "(12.0, np.nan)",
        "a real power of a negative number is a function of its base alone",
    ),
    Kink(
        "logaddexp, logsumexp", "equal operands, also both -inf", "split evenly",
        "ft.grad(np.logaddexp, (0, 1))(-np.inf, -np.inf)", "(0.5, 0.5)",
        "the limit along the diagonal",
    ),
    Kink(
        "scipy.special: xlogy, xlog1py, entr, rel_entr, kl_div", "a logarithm of 0",
        "infinite; 0 where the cotangent is exactly zero",
        "ft.grad(lambda p: ft.scipy.special.entr(p) * p)(0.0)", "0.0",
        "as sqrt: the chain rule's 0 * inf has the limit 0",
    ),
    Kink(
        "where", "the branch that is not taken", "contributes exactly 0",
        "ft.grad(lambda x: np.where(x >= 0, x, np.sqrt(-x)))(1.0)", "1.0",
        "its NaN and infinities are not part of the function; off with ft.config(safe_where=False)",
    ),
    Kink(
        "sort", "ties", "the tangent moves with the stable permutation",
        "ft.grad(lambda x: np.sort(x)[0])(np.array([1.0, 1.0]))", "np.array([1.0, 0.0])",
        "each element keeps its own derivative; use min or max for shared ones",
    ),
    Kink(
        "nn.relu, nn.relu6, nn.leaky_relu, nn.elu, nn.selu", "x = 0", "the slope below 0",
        "ft.grad(ft.nn.relu)(0.0)", "0.0",
        "a unit that is off stays off; as in JAX (relu) and PyTorch",
    ),
    Kink(
        "nn.hard_tanh, nn.hard_sigmoid, nn.hard_silu", "at a limit", "the slope from inside",
        "ft.grad(ft.nn.hard_tanh)(1.0)", "1.0",
        "as clip; relu6 is clipped at 6",
    ),
    Kink(
        "scipy.stats: pdf, pmf", "an end of the support, or of a parameter's range",
        "from inside; outside, and at infinity, 0",
        "ft.grad(ft.scipy.stats.gamma.pdf)(0.0, 2.0)", "1.0",
        "where observations are bounded, the inside is what a fit moves in",
    ),
)  # fmt: skip


def kink(function: str) -> tuple[Kink, ...]:
    """The conventions of a function.

    Args:
      function: its name, as in NumPy.

    Returns:
      Rows of the table; empty when the function has no kink.

    Example:
      >>> [row.rule for row in kink("clip")]
      ['derivative 1 on the closed interval']
    """
    return tuple(row for row in KINKS if function in row.function.split(", "))


__all__ = [
    "Kink", "kink",
]  # fmt: skip
__dir__ = _listing(__all__)
