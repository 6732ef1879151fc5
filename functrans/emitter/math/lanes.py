"""Lanes that need different work.

Here: two polynomials in one pass, and the rare slow path of a few lanes. Not here: polynomials
alone (``emitter.math.common``).

Layer: ``emitter``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from functrans.emitter.builder import Builder
from functrans.emitter.types import F64, I1, Value


def horner_of(
    b: Builder, condition: Value, x: Value, yes: Sequence[float], no: Sequence[float]
) -> Value:
    """One of two polynomials per lane by Horner's rule, in a single pass.

    Each step picks its coefficient. A select runs beside the fma of another step, so two ranges of
    a function are served at about the price of one.

    Args:
      b: where to write.
      condition: which polynomial.
      x: argument of both.
      yes: coefficients where the condition holds, lowest order first; the shorter list counts as
        filled up with zeros.
      no: coefficients elsewhere.
    """
    return _sum(b, x, _picked(b, condition, x, yes, no))


def polynomial_of(
    b: Builder, condition: Value, x: Value, yes: Sequence[float], no: Sequence[float]
) -> Value:
    """As :func:`horner_of`, for long polynomials.

    From the third on, even and odd powers go side by side. The first two terms, the largest, do
    not: even and odd powers may cancel.
    """
    first, second, *others = _picked(b, condition, x, yes, no)
    square = b.fmul(x, x)
    even, odd = _sum(b, square, others[::2]), _sum(b, square, others[1::2])
    return b.fma(b.fma(b.fma(x, odd, even), x, second), x, first)


def _picked(
    b: Builder, condition: Value, x: Value, yes: Sequence[float], no: Sequence[float]
) -> list[Value]:
    size = max(len(yes), len(no))
    first = (*yes, *[0.0] * (size - len(yes)))
    second = (*no, *[0.0] * (size - len(no)))
    return [
        b.select(condition, b.const(x, c), b.const(x, d))
        for c, d in zip(first, second, strict=True)
    ]


def _sum(b: Builder, x: Value, coefficients: list[Value]) -> Value:
    *rest, total = coefficients
    for coefficient in reversed(rest):
        total = b.fma(total, x, coefficient)
    return total


def rarely(b: Builder, condition: Value, usual: Value, otherwise: Callable[[], Value]) -> Value:
    """``usual``, or the value of a block that is run only if a condition holds in some lane.

    The block's value must be right in every lane. The branch is marked as improbable: what the
    block needs (a call spoils all vector registers) should not burden the usual way.

    Args:
      b: where to write.
      condition: one truth value per lane.
      usual: the value where the condition holds in no lane.
      otherwise: writes the block.
    """
    some = b.call("llvm.expect.i1", [b.any_lane(condition), b.const(I1, False)], I1)
    return b.choose(some, lambda: [otherwise()], lambda: [usual])[0]


def lane_by_lane(
    b: Builder,
    name: str,
    x: Value,
    usual: Value,
    pick: Callable[[Builder, Value], Value],
    scalar: Callable[[Builder, Value], Value],
) -> Value:
    """Replace some lanes of a result by those of a scalar function in double precision.

    Args:
      b: where to write.
      name: which function this is; the symbol of an internal function is made from it.
      x: operand.
      usual: result for the lanes that are not picked.
      pick: whether one number, in double precision, is to be computed by ``scalar``.
      scalar: the function of one double.
    """

    def write(inner: Builder) -> None:
        operands, results = inner.arguments
        source, target = inner.alloca(operands.type), inner.alloca(results.type)
        inner.store(operands, source)
        inner.store(results, target)
        with inner.loop(inner.index(0), inner.index(lanes)) as i:
            one = inner.load(element, inner.element(source, i, element))
            wide = inner.convert("fpext", one, F64)
            with inner.when(pick(inner, wide)):
                result = inner.convert("fptrunc", scalar(inner, wide), element)
                inner.store(result, inner.element(target, i, element))
        inner.ret(inner.load(results.type, target))

    element, lanes = x.type.element, x.type.lanes
    return b.helper(f"math.{name}.f{element.bits}x{lanes}", [x, usual], x.type, write)
