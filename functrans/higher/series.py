"""Arithmetic of truncated power series, coefficient by coefficient.

Here: ``Series``, whose coefficients are computed when they are asked for, and the rules that
elementwise, linear and multilinear primitives have for them. Not here: the trace that applies them,
control flow and the transform (``higher.jet``).

The coefficients of ``x(t) = x_0 + x_1 t + x_2 t^2 + ...`` are arrays; ``None`` is zero. A product
is a convolution, a linear operation acts on each coefficient. Every other primitive ``y = f(x)``
has a jvp rule, and that is a differential equation: ``y'(t) = jvp(x(t), x'(t), y(t))``, so that
``(k + 1) y_{k+1}`` is coefficient ``k`` of the rule's result. The rule runs once, on series, and
the result refers back to ``y``: coefficient ``k`` of the rule reads only coefficients up to ``k``
of ``y``, which are known when it is asked for. So the recurrences of ``exp``, ``log``, ``tanh``,
``erf``, ``arctan`` and so on, each of quadratic cost in the order, follow from their derivatives;
only ``sin`` and its like (which refer to each other), powers and ``sqrt`` have rules of their own.

Layer: ``higher``. Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 13;
McIlroy, Power Series, Power Serious, J. Functional Programming 9 (1999).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from functrans.core.dispatch import aval_of, bind, dtype_of, shape_of
from functrans.core.primitive import Primitive
from functrans.core.values import Array
from functrans.passes.cotangents import zeros
from functrans.primitives import elementwise as ew
from functrans.primitives.special import functions as sf
from functrans.primitives.structural import broadcast_to, cast


class Series:
    """A power series; see the module docstring.

    Attributes:
      value: coefficient 0.
      rule: ``(k, wanted)`` gives coefficient ``k >= 1`` once those below are known; ``wanted`` is
        the highest one that is asked for. ``None``: the rest is zero.
    """

    __slots__ = ("_known", "rule", "value")

    def __init__(self, value: Any, rule: Callable[[int, int], Any] | None) -> None:
        self.value = value
        self.rule = rule
        self._known: list[Any] = []

    def __getitem__(self, k: int) -> Any:
        """Coefficient ``k``; ``None`` for zero."""
        if not k:
            return self.value
        known = self._known
        while len(known) < k:
            if self.rule is None:
                return None
            known.append(self.rule(len(known) + 1, k))
        return known[k - 1]

    def settled(self, order: int) -> Series | None:
        """This series with the coefficients up to an order only; ``None`` if they are all zero."""
        self[order]
        self.rule = None
        return self if any(c is not None for c in self._known) else None


def given_series(value: Any, coefficients: Sequence[Any]) -> Series:
    """The series of known coefficients, from that of ``t`` on."""
    series = Series(value, None)
    series._known.extend(coefficients)
    return series


def slope(x: Series) -> Series:
    """The derivative of a series by ``t``."""
    first = x[1]
    return Series(
        zeros(aval_of(x.value).strong()) if first is None else first,
        lambda k, wanted: scaled(k + 1, x[k + 1]),
    )


def scaled(factor: float, x: Any) -> Any:
    """A multiple of a coefficient."""
    return None if x is None else x if factor == 1 else x * float(factor)


def total(terms: Sequence[Any]) -> Any:
    """The sum of coefficients; ``None`` for none."""
    found = None
    for term in terms:
        if term is not None:
            found = term if found is None else found + term
    return found


def convolve(
    a: Series,
    b: Any,
    k: int,
    start: int = 0,
    end: int | None = None,
    times: Callable[..., Any] = ew.multiply,
) -> Any:
    """``sum(a[j] * b[k - j])`` over ``j`` from ``start`` to ``end`` (``k``); ``None`` for zero."""
    terms = []
    for j in range(start, (k if end is None else end) + 1):
        left, right = a[j], b[k - j]
        if left is not None and right is not None:
            terms.append(times(left, right))
    return total(terms)


def square(x: Series, k: int, start: int = 0) -> Any:
    """``sum(x[j] * x[k - j])`` over ``j`` from ``start`` to ``k - start``, with half the products.

    From 0 on it is coefficient ``k`` of the square of a series.
    """
    half = convolve(x, x, k, start, (k - 1) // 2) if k else None
    middle = None if k % 2 or x[k // 2] is None else x[k // 2] * x[k // 2]
    return total([scaled(2, half), middle])


class Constant:
    """A constant in place of a series."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __getitem__(self, k: int) -> Any:
        """Coefficient ``k``."""
        return None if k else self.value


def _rule_of(
    primitive: Primitive, operands: Sequence[Any], y: Series
) -> Callable[[int, int], Any] | None:
    """The rule of an elementwise primitive, of operands that are ``Series`` or ``Constant``."""
    family = primitive.elementwise
    assert family is not None
    varying = [i for i, x in enumerate(operands) if type(x) is Series]
    if all(family.partials[i] in _SIGNS for i in varying):
        signs = [(operands[i], family.partials[i]) for i in varying if family.partials[i]]
        return lambda k, wanted: total([scaled(sign, x[k]) for x, sign in signs])
    make = _ELEMENTWISE.get(primitive)
    return None if make is None else make(operands, y)


_SIGNS = (None, 0, 1, -1)


def elementwise_series(
    primitive: Primitive, operands: Sequence[Series | None], values: Sequence[Any], out: Any
) -> Series | None:
    """The series of an elementwise primitive that has a rule; ``None`` where it has none.

    Args:
      primitive: the operation.
      operands: the series of each operand, ``None`` for a constant.
      values: the operands.
      out: the result.
    """
    y = Series(out, None)
    given = [Constant(v) if x is None else x for x, v in zip(operands, values, strict=True)]
    rule = _rule_of(primitive, given, y)
    if rule is None:
        return None
    shape, dtype = shape_of(out), dtype_of(out)
    own = rule

    def fitted(k: int, wanted: int) -> Array | None:
        coefficient = own(k, wanted)
        return None if coefficient is None else broadcast_to(cast(coefficient, dtype), shape)

    y.rule = fitted
    return y


def solved(out: Any, rate: Callable[[Series], Series | None]) -> Series:
    """The series ``y`` of ``y' = rate(y)`` with the value ``out``.

    Args:
      out: coefficient 0.
      rate: gives the series of the derivative, from that of the result; called at most once, when
        the first coefficient is asked for. ``None`` for zero.
    """
    y = Series(out, None)
    found: list[Series | None] = []

    def rule(k: int, wanted: int) -> Any:
        if not found:
            found.append(rate(y))
        (w,) = found
        return None if w is None else scaled(1 / k, w[k - 1])

    y.rule = rule
    return y


# linear in each operand -------------------------------------------------------------------------


def linear_series(
    primitive: Primitive,
    operands: Sequence[Series | None],
    values: Sequence[Any],
    params: Mapping[str, Any],
    outs: Sequence[Any],
    filled: Callable[[Any], Any],
) -> list[Series]:
    """The series of the results of a primitive that is linear in all operands together.

    Args:
      primitive: the operation.
      operands: the series of each operand, ``None`` for a constant.
      values: the operands.
      params: static parameters.
      outs: the results.
      filled: gives what stands for the tangent of a constant or of a zero coefficient.
    """
    found: dict[int, Sequence[Any] | None] = {}

    def all_at(k: int) -> Sequence[Any] | None:
        if k not in found:
            terms = [None if x is None else x[k] for x in operands]
            if all(term is None for term in terms):
                found[k] = None
            else:
                given = [
                    filled(v) if term is None else term
                    for term, v in zip(terms, values, strict=True)
                ]
                found[k] = bind(primitive, *given, **params)
        return found[k]

    def rule(i: int) -> Callable[[int, int], Any]:
        def at(k: int, wanted: int) -> Any:
            results = all_at(k)
            return None if results is None else results[i]

        return at

    return [Series(out, rule(i)) for i, out in enumerate(outs)]


def multilinear_series(
    primitive: Primitive,
    operands: Sequence[Series | None],
    values: Sequence[Any],
    params: Mapping[str, Any],
    outs: Sequence[Any],
) -> list[Series]:
    """The series of the result of a primitive that is linear in one operand at a time."""
    varying = [i for i, x in enumerate(operands) if x is not None]

    def rule(k: int, wanted: int) -> Any:
        terms = []
        for orders in product(range(k + 1), repeat=len(varying) - 1):
            last = k - sum(orders)
            if last < 0:
                continue
            given = list(values)
            for i, order in zip(varying, (*orders, last), strict=True):
                given[i] = operands[i][order]  # type: ignore[index]  # it varies
            if all(given[i] is not None for i in varying):
                terms.append(bind(primitive, *given, **params)[0])
        return total(terms)

    return [Series(outs[0], rule)]


# elementwise rules ------------------------------------------------------------------------------

Rule = Callable[[int, int], Any]


def _multiply(operands: Sequence[Any], y: Series) -> Rule:
    a, b = operands
    if a is b:
        return lambda k, wanted: square(a, k)
    return lambda k, wanted: convolve(a, b, k)


def _mul_strong_zero(operands: Sequence[Any], y: Series) -> Rule:
    a, b = operands
    return lambda k, wanted: convolve(a, b, k, times=ew.mul_strong_zero)


def _divide(operands: Sequence[Any], y: Series) -> Rule:
    """``b y = a``: the coefficient of ``a`` less the known part of the convolution."""
    a, b = operands
    if type(b) is Constant:
        return lambda k, wanted: None if a[k] is None else a[k] / b.value

    def rule(k: int, wanted: int) -> Any:
        known = convolve(b, y, k, 1)
        rest = total([a[k], None if known is None else -known])
        return None if rest is None else rest / b.value

    return rule


def _where(operands: Sequence[Any], y: Series) -> Rule:
    condition, a, b = operands

    def rule(k: int, wanted: int) -> Any:
        left, right = a[k], b[k]
        if left is None and right is None:
            return None
        return ew.where(condition.value, 0 if left is None else left, 0 if right is None else right)

    return rule


def _sqrt(operands: Sequence[Any], y: Series) -> Rule:
    """``y y = x``; as in the derivative, 0 times the infinite slope at 0 is 0."""
    (x,) = operands
    half = 0.5 / y.value

    def rule(k: int, wanted: int) -> Any:
        known = square(y, k, 1) if k > 1 else None
        rest = total([x[k], None if known is None else -known])
        return None if rest is None else ew.mul_strong_zero(rest, half)

    return rule


def _circular(partner: Callable[[Any], Any], own: float, other: float) -> Callable[..., Any]:
    """The rule of ``y' = own z x'``, ``z' = other y x'``, where ``z`` is the partner of ``y``."""

    def make(operands: Sequence[Any], y: Series) -> Rule:
        (x,) = operands
        z = Series(partner(x.value), None)

        def of(factor: float, base: Series) -> Rule:
            def rule(k: int, wanted: int) -> Any:
                terms = [
                    scaled(factor * j / k, x[j] * base[k - j])
                    for j in range(1, k + 1)
                    if x[j] is not None and base[k - j] is not None
                ]
                return total(terms)

            return rule

        z.rule = of(other, y)
        return of(own, z)

    return make


_LARGEST_PRODUCT = 64


def _power(operands: Sequence[Any], y: Series) -> Rule | None:
    """A power with a number as exponent.

    With a small natural exponent a product, exact also at 0. Otherwise ``x y' = b x' y`` (Griewank
    & Walther, table 13.2). At 0 that is ``0 / 0``: coefficients below the exponent are 0, those
    above infinite where the path moves at all. With an infinite exponent a step, whose slope has
    no slope of its own.
    """
    x, exponent = operands
    if type(exponent) is not Constant or not isinstance(
        exponent.value, (int, float, np.integer, np.floating)
    ):
        return None
    b = exponent.value if isinstance(exponent.value, int) else float(exponent.value)
    if b == 0:
        return lambda k, wanted: None
    if math.isinf(b):
        return lambda k, wanted: None if x[k] is None else ew.power_in_base(x[k], x.value, b, None)
    if 0 < b <= _LARGEST_PRODUCT and b == int(b):
        power = _natural_power(x, int(b))
        return lambda k, wanted: power[k]

    def rule(k: int, wanted: int) -> Any:
        terms = [
            scaled((j * (b + 1) - k) / k, x[j] * y[k - j])
            for j in range(1, k + 1)
            if x[j] is not None and y[k - j] is not None
        ]
        rest = total(terms)
        if rest is None:
            return None
        is_zero = x.value == 0
        regular = rest / ew.where(is_zero, 1, x.value)
        if k < b:
            return ew.where(is_zero, 0, regular)
        first = x[1]
        steep = 0.0 if first is None else ew.mul_strong_zero(first, _binomial_sign(b, k) * np.inf)
        return ew.where(is_zero, steep, regular)

    return rule


def _binomial_sign(b: float, k: int) -> float:
    """The sign of ``b (b - 1) ... (b - k + 1)``."""
    sign = 1.0
    for j in range(k):
        if b - j < 0:
            sign = -sign
    return sign


def _natural_power(x: Any, n: int) -> Any:
    """A series to a natural power, by repeated squaring."""
    if n == 1:
        return x
    root = _natural_power(x, n // 2)
    squared = Series(root.value * root.value, lambda k, wanted: square(root, k))
    if n % 2 == 0:
        return squared
    return Series(squared.value * x.value, lambda k, wanted: convolve(squared, x, k))


def _tanh_slope(operands: Sequence[Any], y: Series) -> Rule:
    """``1 - y**2``, of which only coefficient 0 is hard to compute."""
    result = operands[1]

    def rule(k: int, wanted: int) -> Any:
        return scaled(-1, square(result, k))

    return rule


def _sigmoid_slope(operands: Sequence[Any], y: Series) -> Rule:
    """``y - y**2`` likewise."""
    x, result = operands
    tilt = sf.sigmoid_tilt(x.value, result.value)

    def rule(k: int, wanted: int) -> Any:
        known = square(result, k, 1) if k > 1 else None
        first = None if result[k] is None else result[k] * tilt
        return total([first, None if known is None else -known])

    return rule


_ELEMENTWISE: Mapping[Primitive, Callable[[Sequence[Any], Series], Rule | None]] = {
    ew.multiply_p: _multiply,
    ew.mul_strong_zero_p: _mul_strong_zero,
    ew.divide_p: _divide,
    ew.where_p: _where,
    ew.sqrt_p: _sqrt,
    ew.power_p: _power,
    ew.tanh_slope_p: _tanh_slope,
    sf.sigmoid_slope_p: _sigmoid_slope,
    ew.sin_p: _circular(ew.cos, 1, -1),
    ew.cos_p: _circular(ew.sin, -1, 1),
    ew.sinh_p: _circular(ew.cosh, 1, 1),
    ew.cosh_p: _circular(ew.sinh, 1, 1),
}
