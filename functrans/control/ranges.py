"""Indices in loops whose range follows from the program: they need no check.

Here: ``with_indices_in_range``, for programs that leave Python, whose headers say what can fail.
Not here: index arrays that are known as a whole (``compiler.bounds``).

Integers are followed as intervals: counters of loops of known length, sums, differences and
products of what is known, and what loops stack. Where a result might leave its dtype, nothing is
known of it.

Layer: ``control``. Reference: Moore, Interval Analysis (1966), ch. 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from functrans.compiler.bounds import extents_of
from functrans.control.loops import scan_p, scan_shape
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.primitives import elementwise as ew
from functrans.primitives.structural import cast_p, weaken_p

Range = tuple[int, int]
"""The least and the greatest number that a value, or an element of it, may be."""


def with_indices_in_range(jaxpr: Jaxpr, constants: Mapping[Var, np.ndarray]) -> Jaxpr:
    """The program with modes that check nothing where indices are in range in each call.

    Args:
      jaxpr: a program.
      constants: arguments that are the same in every call.
    """
    known = {**constants, **dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))}
    ranges = {var: _of_array(np.asarray(value)) for var, value in known.items()}
    return _walked(jaxpr, ranges)


def _of_array(value: np.ndarray) -> Range | None:
    if value.dtype.kind not in "iu" or not value.size:
        return None
    return int(value.min()), int(value.max())


def _range(atom: Atom, ranges: Mapping[Var, Range | None]) -> Range | None:
    if isinstance(atom, Literal):
        return _of_array(np.asarray(atom.value))
    return ranges.get(atom)


def _walked(jaxpr: Jaxpr, ranges: dict[Var, Range | None]) -> Jaxpr:
    """The program; ranges of its variables are put among the others."""
    eqns = []
    for eqn in jaxpr.eqns:
        given = [_range(atom, ranges) for atom in eqn.inputs]
        if eqn.primitive is scan_p and eqn.params["length"]:
            eqn, found = _loop(eqn, given)
        else:
            eqn, found = _checked(eqn, given), [_result(eqn, given)] * len(eqn.outputs)
        eqns.append(eqn)
        ranges.update(zip(eqn.outputs, found, strict=True))
    if all(new is old for new, old in zip(eqns, jaxpr.eqns, strict=True)):
        return jaxpr
    return replace(jaxpr, eqns=tuple(eqns), cache={})


def _checked(eqn: Equation, given: Sequence[Range | None]) -> Equation:
    first = eqn.primitive.indices
    if first is None or eqn.params.get("mode") != "raise":
        return eqn
    least = 0
    for found, extent in zip(given[first:], extents_of(eqn), strict=True):
        if found is None or found[0] < -extent or found[1] >= extent:
            return eqn
        least = min(least, found[0])
    mode = "inside" if least >= 0 else "wrap"  # from the end on, which is all that wrapping does
    return replace(eqn, params={**eqn.params, "mode": mode})


def _result(eqn: Equation, given: Sequence[Range | None]) -> Range | None:
    """The range of the only result of an equation."""
    known = [own for own in given if own is not None]
    if len(known) < len(given) or len(eqn.outputs) != 1:
        return None
    if eqn.primitive in (cast_p, weaken_p):
        return _in_dtype(eqn.outputs[0], known[0])
    if eqn.primitive not in (ew.add_p, ew.subtract_p, ew.multiply_p):
        return None
    (a, b), (c, d) = known
    if eqn.primitive is ew.add_p:
        return _in_dtype(eqn.outputs[0], (a + c, b + d))
    if eqn.primitive is ew.subtract_p:
        return _in_dtype(eqn.outputs[0], (a - d, b - c))
    corners = (a * c, a * d, b * c, b * d)
    return _in_dtype(eqn.outputs[0], (min(corners), max(corners)))


def _in_dtype(var: Var, found: Range) -> Range | None:
    """A range, if all numbers in it are of the dtype."""
    if var.aval.dtype.kind not in "iu":
        return None
    info = np.iinfo(var.aval.dtype)
    return found if info.min <= found[0] and found[1] <= info.max else None


def _loop(eqn: Equation, given: Sequence[Range | None]) -> tuple[Equation, list[Range | None]]:
    """A loop of known length, and the ranges of its results."""
    shape = scan_shape(dict(eqn.params))
    body: Jaxpr = eqn.params["jaxpr"]
    n = shape.n_consts
    rounds: int = eqn.params["length"]
    steps = [_step(body, i, n) for i in range(shape.n_carry)]
    entering, final = [], []
    for i, step in enumerate(steps):
        var, start = body.invars[n + i], given[n + i]
        entering.append(_after(var, start, step, rounds - 1))
        final.append(_after(var, start, step, rounds))
    inner = [*given[:n], *entering, *given[n + shape.n_carry :]]
    ranges: dict[Var, Range | None] = dict(zip(body.invars, inner, strict=True))
    ranges |= {
        var: _of_array(np.asarray(value))
        for var, value in zip(body.constvars, body.consts, strict=True)
    }
    walked = _walked(body, ranges)
    stacked = [_range(atom, ranges) for atom in body.outvars[shape.n_carry :]]
    if walked is not body:
        eqn = replace(eqn, params={**eqn.params, "jaxpr": walked})
    return eqn, [*final, *stacked]


def _step(body: Jaxpr, number: int, n_consts: int) -> int | None:
    """What is added to a carried value in each round, if it is always the same."""
    own, out = body.invars[n_consts + number], body.outvars[number]
    if out is own:
        return 0
    for eqn in body.eqns:
        if out in eqn.outputs and eqn.primitive in (ew.add_p, ew.subtract_p):
            a, b = eqn.inputs
            if eqn.primitive is ew.add_p and b is own:
                a, b = b, a
            value = b.value if a is own and isinstance(b, Literal) else None
            if isinstance(value, (int, np.integer)):
                return int(value) if eqn.primitive is ew.add_p else -int(value)
    return None


def _after(var: Var, start: Range | None, step: int | None, rounds: int) -> Range | None:
    """The range of a carried value in its first rounds."""
    if start is None or step is None:
        return None
    moved = step * rounds
    return _in_dtype(var, (start[0] + min(moved, 0), start[1] + max(moved, 0)))
