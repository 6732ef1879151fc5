"""Exact algebra: equations that equal something simpler bit for bit.

Here: ``rewrite_exactly`` and its table of rules. Not here: the walk that applies it, folding of
constants, common subexpressions and dead code (``passes.simplify``).

A rule holds for every input, signed zeros, infinities and NaN included, and keeps shape, dtype and
weakness. Hence it is *not* done: ``x * 0``, ``x - x``, ``x / x``, ``x + 0.0`` (``-0.0 + 0.0`` is
``0.0``; ``x + -0.0`` and ``x - 0.0`` are ``x``), ``x ** 2`` to ``x * x``, reordering of sums, and
``z * 1`` of complex ``z`` (``inf * 0`` is NaN).

A rule returns ``None`` (does not apply), an atom (the result is this value), or the parameters and
operands of an equation of the same primitive.

Layer: ``passes``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from functrans.core.jaxpr import Atom, Equation, Literal, Var
from functrans.core.primitive import Primitive
from functrans.primitives.complex_parts import complex_p, conjugate_p, imag_p, real_p
from functrans.primitives.dot import dot_general_p
from functrans.primitives.elementwise import (
    add_p,
    divide_p,
    invert_p,
    logical_not_p,
    multiply_p,
    negative_p,
    power_p,
    subtract_p,
    where_p,
)
from functrans.primitives.movement import reverse_p
from functrans.primitives.structural import broadcast_to_p, cast_p, reshape_p, transpose_p


class Known(Protocol):
    """What a rule may ask about the program so far."""

    def maker(self, atom: Atom) -> Equation | None:
        """The equation of which the atom is the only output, if rules may look through it."""

    def may_drop(self, atom: Atom) -> bool:
        """Whether nothing that an operand depends on carries an annotation."""


Result = Atom | Equation | tuple[tuple[Atom, ...], Mapping[str, Any]] | None
Rule = Callable[[Equation, Known], Result]


def rewrite_exactly(eqn: Equation, known: Known) -> Atom | Equation | None:
    """A simpler form of an equation, of the same type; ``None`` when there is none."""
    rule = _RULES.get(eqn.primitive)
    if rule is None:
        return None
    result = rule(eqn, known)
    aval = eqn.outputs[0].aval
    if result is None or isinstance(result, (Var, Literal)):
        return result if result is not None and result.aval == aval else None
    if not isinstance(result, Equation):
        inputs, params = result
        result = replace(eqn, inputs=inputs, params=params)
    made = result.primitive.abstract_eval(*[a.aval for a in result.inputs], **result.params)
    return result if made == (aval,) else None


# arithmetic -------------------------------------------------------------------------------------


def _is_number(atom: Atom, number: float) -> bool:
    """Whether the atom is a real literal equal to ``number``, sign of zero included."""
    if not isinstance(atom, Literal) or atom.aval.dtype.kind == "c":
        return False
    value = atom.value
    return bool(value == number) and math.copysign(1.0, value) == math.copysign(1.0, number)


def _is_real(eqn: Equation) -> bool:
    return eqn.outputs[0].aval.dtype.kind != "c"


def _multiply(eqn: Equation, known: Known) -> Result:
    a, b = eqn.inputs
    if _is_real(eqn):
        if _is_number(b, 1.0):
            return a
        if _is_number(a, 1.0):
            return b
    return None


def _divide_or_power(eqn: Equation, known: Known) -> Result:
    a, b = eqn.inputs
    return a if _is_number(b, 1.0) and _is_real(eqn) else None


def _subtract(eqn: Equation, known: Known) -> Result:
    a, b = eqn.inputs
    return a if _is_number(b, 0.0) else None


def _add(eqn: Equation, known: Known) -> Result:
    a, b = eqn.inputs
    if _is_real(eqn):
        neutral = 0.0 if eqn.outputs[0].aval.dtype.kind in "iu" else -0.0
        if _is_number(b, neutral):
            return a
        if _is_number(a, neutral):
            return b
    return None


def _involution(eqn: Equation, known: Known) -> Result:
    """``f(f(x))`` is ``x``."""
    inner = known.maker(eqn.inputs[0])
    return inner.inputs[0] if inner is not None and inner.primitive is eqn.primitive else None


def _negative(eqn: Equation, known: Known) -> Result:
    """``-(-x)`` is ``x``, and ``-(-x * a)`` of real numbers is ``x * a``."""
    inner = known.maker(eqn.inputs[0])
    if inner is None or inner.primitive is not multiply_p or not _is_real(eqn):
        return _involution(eqn, known)
    for position in (0, 1):
        factor = known.maker(inner.inputs[position])
        if factor is not None and factor.primitive is negative_p:
            inputs = list(inner.inputs)
            inputs[position] = factor.inputs[0]
            return replace(eqn, primitive=multiply_p, inputs=tuple(inputs))
    return None


def _where(eqn: Equation, known: Known) -> Result:
    """Known conditions, equal branches, negated conditions, and the same condition twice."""
    condition, a, b = eqn.inputs
    if isinstance(condition, Literal):
        taken, other = (a, b) if condition.value else (b, a)
        return taken if known.may_drop(other) else None
    if a is b or (isinstance(a, Literal) and a == b):
        return a if known.may_drop(condition) else None
    inner = known.maker(condition)
    if inner is not None and inner.primitive is logical_not_p:
        return (inner.inputs[0], b, a), eqn.params
    for position in (1, 2):
        inner = known.maker(eqn.inputs[position])
        if inner is None or inner.primitive is not where_p:
            continue
        untaken = inner.inputs[3 - position]
        is_same = inner.inputs[0] is condition and inner.outputs[0].aval == eqn.outputs[0].aval
        if is_same and known.may_drop(untaken):
            inputs = list(eqn.inputs)
            inputs[position] = inner.inputs[position]
            return tuple(inputs), eqn.params
    return None


def _part_of_complex(eqn: Equation, known: Known) -> Result:
    """``real(complex(a, b))`` is ``a``; ``imag(complex(a, b))`` is ``b``."""
    inner = known.maker(eqn.inputs[0])
    if inner is None or inner.primitive is not complex_p:
        return None
    a, b = inner.inputs
    part, other = (a, b) if eqn.primitive is real_p else (b, a)
    return part if known.may_drop(other) else None


# movement ---------------------------------------------------------------------------------------


def _last_wins(eqn: Equation, known: Known) -> Result:
    """A reshape or broadcast to the operand's own shape; one of another is the outer one."""
    (x,) = eqn.inputs
    if x.aval == eqn.outputs[0].aval:
        return x
    inner = known.maker(x)
    if inner is None or inner.primitive is not eqn.primitive:
        return None
    return inner.inputs, eqn.params


def _transpose(eqn: Equation, known: Known) -> Result:
    axes = eqn.params["axes"]
    if axes == tuple(range(len(axes))):
        return eqn.inputs[0]
    inner = known.maker(eqn.inputs[0])
    if inner is None or inner.primitive is not transpose_p:
        return None
    return inner.inputs, {"axes": tuple(inner.params["axes"][axis] for axis in axes)}


def _dot_general(eqn: Equation, known: Known) -> Result:
    """Read what is transposed as it lies, where that leaves the axes of the result in order."""
    inputs = list(eqn.inputs)
    roles = {name: list(eqn.params[name]) for name in ("contract", "batch")}
    for side, x in enumerate(eqn.inputs):
        inner = known.maker(x)
        if inner is None or inner.primitive is not transpose_p:
            continue
        axes = inner.params["axes"]
        taken = {*roles["contract"][side], *roles["batch"][side]}
        free = [axis for place, axis in enumerate(axes) if place not in taken]
        if free == sorted(free):
            inputs[side] = inner.inputs[0]
            for pair in roles.values():
                pair[side] = tuple([axes[place] for place in pair[side]])
    if inputs == list(eqn.inputs):
        return None
    return tuple(inputs), {**eqn.params, **{name: tuple(pair) for name, pair in roles.items()}}


def _reverse(eqn: Equation, known: Known) -> Result:
    axes = set(eqn.params["axes"])
    if not axes:
        return eqn.inputs[0]
    inner = known.maker(eqn.inputs[0])
    if inner is None or inner.primitive is not reverse_p:
        return None
    return inner.inputs, {"axes": tuple(sorted(axes ^ set(inner.params["axes"])))}


# casts ------------------------------------------------------------------------------------------

_MANTISSA_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_EXPONENT_BITS = {"float16": 5, "bfloat16": 8, "float32": 8, "float64": 11}


def _integer_bits(dtype: np.dtype) -> int:
    """Bits of the magnitude of an integer or boolean."""
    if dtype.kind == "b":
        return 1
    return 8 * dtype.itemsize - (dtype.kind == "i")


def is_exact_cast(source: np.dtype, target: np.dtype) -> bool:
    """Whether a conversion keeps every value of the source dtype."""
    if source == target or source.kind == "b":
        return True
    if source.kind in "iu":
        if target.kind in "iu":
            fits = _integer_bits(source) <= _integer_bits(target)
            return fits and not (source.kind == "i" and target.kind == "u")
        return _integer_bits(source) <= _MANTISSA_BITS.get(_part_name(target), 0)
    a, b = _part_name(source), _part_name(target)
    if (source.kind == "c" and target.kind != "c") or a not in _MANTISSA_BITS:
        return False
    return _MANTISSA_BITS[a] <= _MANTISSA_BITS.get(b, 0) and _EXPONENT_BITS[a] <= _EXPONENT_BITS[b]


def _part_name(dtype: np.dtype) -> str:
    """The dtype's name; for complex dtypes that of their parts."""
    return f"float{4 * dtype.itemsize}" if dtype.kind == "c" else dtype.name


def _cast(eqn: Equation, known: Known) -> Result:
    """A cast to the operand's own dtype; a cast of an exact cast.

    Floating numbers that an integer dtype cannot hold have no defined conversion; hence nothing is
    merged on the way from floating to integer, and an integer that passed through a floating dtype
    must fit the target.
    """
    (x,) = eqn.inputs
    if x.aval == eqn.outputs[0].aval:
        return x
    inner = known.maker(x)
    if inner is None or inner.primitive is not cast_p:
        return None
    source = inner.inputs[0].aval.dtype
    middle, target = inner.params["dtype"], eqn.params["dtype"]
    if source.kind in "fc" and target.kind in "iu":
        return None
    same_kind = (source.kind in "biu") == (middle.kind in "biu")
    if is_exact_cast(source, middle) and (same_kind or is_exact_cast(source, target)):
        return inner.inputs, eqn.params
    return None


_RULES: Mapping[Primitive, Rule] = {
    multiply_p: _multiply,
    divide_p: _divide_or_power,
    power_p: _divide_or_power,
    subtract_p: _subtract,
    add_p: _add,
    negative_p: _negative,
    conjugate_p: _involution,
    invert_p: _involution,
    logical_not_p: _involution,
    where_p: _where,
    real_p: _part_of_complex,
    imag_p: _part_of_complex,
    reshape_p: _last_wins,
    broadcast_to_p: _last_wins,
    transpose_p: _transpose,
    dot_general_p: _dot_general,
    reverse_p: _reverse,
    cast_p: _cast,
}
