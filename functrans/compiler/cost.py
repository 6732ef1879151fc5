"""How long it takes to compile a program, before anything is planned.

Here: ``compile_seconds``, from the length of the code that each equation becomes. Not here: what is
done with it (``control.native``), how long a program runs (``passes.work``).

Elementwise equations are weighed by writing them once, for one element; routines, reductions and
control flow by what is usual. The time is in proportion to the lines of LLVM's text, half as much
where hardly anything is optimised, and to the equations, which are planned. Measured on straight
programs of 100 to 50,000 operations and on the benchmark workloads: right within a factor of two,
but for reductions in small arrays, which may be written several times.

Layer: ``compiler``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.compiler.axes import loop_axes, unrolled
from functrans.compiler.elements import is_dear
from functrans.compiler.functions import ProgramFunction
from functrans.compiler.parts import updates_of_parts
from functrans.compiler.prepare import prepare, programs_of
from functrans.compiler.sharing import shares_code
from functrans.compiler.support import obstacle
from functrans.core.avals import ShapedArray
from functrans.core.caching import remembered
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.lowering import IndexMap, Pointwise, Reduction
from functrans.core.primitive import Primitive
from functrans.emitter.builder import Module
from functrans.emitter.dtypes import loop_dtypes
from functrans.records import dataclass

LONG_PROGRAM_LINES = 2500
"""Lines from which a program is compiled with hardly any optimisation, at first or for good."""
_PROGRAM_S = 6e-3
_EQUATION_S = 25e-6
_LINE_S, _LONG_LINE_S = 45e-6, 20e-6
_ROUTINE_LINES = 300
_REDUCTION_LINES = 60
_UPDATE_LINES = 20
_STRUCTURE_LINES = 60
_LARGEST_SPECIAL = 8
_LOOP_COPIES = 2
"""Lanes, and what is left over."""


def compile_seconds(jaxpr: Jaxpr) -> float:
    """Roughly how long a prepared program takes to compile."""
    helpers: dict[Any, int] = {}
    size = _size(jaxpr, helpers)
    lines = size.lines + sum(helpers.values())
    per_line = _LINE_S if lines < LONG_PROGRAM_LINES else _LONG_LINE_S
    return _PROGRAM_S + _EQUATION_S * size.equations + per_line * lines


@dataclass(frozen=True, slots=True)
class _Size:
    """What a program comes to."""

    equations: int
    lines: int


def _size(jaxpr: Jaxpr, helpers: dict[Any, int]) -> _Size:
    """The size of a prepared program, with the programs in it.

    Args:
      jaxpr: the program.
      helpers: lines of functions that are written once, added here.
    """
    equations, lines = len(jaxpr.eqns), 0
    in_place = set(updates_of_parts(jaxpr))
    shared = shares_code(eqn for eqn in jaxpr.eqns if not any(map(_has_loops, eqn.outputs)))
    for eqn in jaxpr.eqns:
        if in_place.intersection(eqn.outputs):
            lines += _UPDATE_LINES
            continue
        programs = programs_of(eqn)
        if not programs:
            lines += _lines(eqn, helpers, shared)
            continue
        lines += _STRUCTURE_LINES
        for program in programs:
            inner = _size(prepare(program), helpers)
            equations += inner.equations
            lines += inner.lines
    return _Size(equations, lines)


def _has_loops(var: Var) -> bool:
    return type(var.aval) is not ShapedArray or bool(loop_axes(var.aval.shape))


def _lines(eqn: Equation, helpers: dict[Any, int], shared: bool) -> int:
    """Lines that a first-order equation becomes; a vector counts as its elements."""
    lower = eqn.primitive.lower
    if not eqn.outputs or obstacle(eqn) is not None:
        return 0
    out = eqn.outputs[0].aval
    shape: tuple[int, ...] = out.shape
    if isinstance(lower, Reduction):
        given = eqn.inputs[0].aval.shape
        if not loop_axes(given):
            return 2 * unrolled(given)
        return 4 * unrolled(given) + 20 * unrolled(shape) + _REDUCTION_LINES
    copies = unrolled(shape) * (_LOOP_COPIES if loop_axes(shape) else 1)
    if isinstance(lower, Pointwise):
        avals = tuple([x.aval for x in eqn.inputs])
        dtypes = loop_dtypes(eqn.primitive, avals, out)  # type: ignore[arg-type]  # arrays only
        numbers = tuple([_special_number(x) for x in eqn.inputs])
        params = tuple(eqn.params.items())
        own, once = _pointwise_lines(eqn.primitive, tuple(dtypes), numbers, params)
        helpers[eqn.primitive, dtypes] = once
        if shared and is_dear(eqn) and not loop_axes(shape):
            helpers[eqn.primitive, dtypes] += own
            return copies
        return copies * own
    if isinstance(lower, IndexMap):
        return copies
    return _ROUTINE_LINES


def _special_number(atom: Atom) -> float | None:
    """A constant that a rule may have special code for, such as an exponent of 2."""
    if not isinstance(atom, Literal) or not isinstance(atom.value, (int, float)):
        return None
    is_special = abs(atom.value) <= _LARGEST_SPECIAL and float(2 * atom.value).is_integer()
    return float(atom.value) if is_special else None


@remembered(2048)
def _pointwise_lines(
    primitive: Primitive,
    dtypes: tuple[np.dtype, ...],
    constants: tuple[float | None, ...],
    params: tuple[tuple[str, Any], ...],
) -> tuple[int, int]:
    """Lines for one element of an elementwise primitive, and of functions that it calls."""
    lower = primitive.lower
    assert isinstance(lower, Pointwise)
    writer = ProgramFunction(Module(), len(dtypes), 0)
    e = writer.routines
    numbers = [
        e.load(dtype, pointer) if constant is None else e.constant(dtype, constant)
        for dtype, constant, pointer in zip(dtypes, constants, writer.b.arguments, strict=False)
    ]
    try:
        lower.write(e, *numbers, **dict(params))
    finally:
        writer.release()
    writer.b.finish()
    *helpers, own = [text.count("\n") for text in writer.module.functions]
    return max(1, own - 3 - constants.count(None)), sum(helpers)
