"""What the compiler makes of a program, as text for people.

Here: ``plan``, the schedule of a program with its NumPy calls, ``llvm_text`` and ``assembly_text``.
Not here: the schedule itself (``compiler.schedule``), the code (``compiler.programs``), why a
function was staged again (``jitted.explanations``).

The text of a plan depends on the program alone: it is the same in every run and on every machine.
Variables have the names that the printed program gives them.

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from functrans.compiler.compiled import optimisation_level, plan_of
from functrans.compiler.donation import Planned, planned
from functrans.compiler.parallel import is_parallel
from functrans.compiler.prepare import prepare
from functrans.compiler.programs import write_program
from functrans.compiler.schedule import Item, Nest, View
from functrans.compiler.support import HostCall, NativePart
from functrans.core.jaxpr import Equation, Jaxpr, Var, subjaxprs
from functrans.core.lowering import Structured
from functrans.core.source import resolve
from functrans.ir.printing import atom_text, equation_line, param_text, variable_names
from functrans.machine import engine
from functrans.records import dataclass

_INDENT = "    "
_KINDS = {
    "scan": "loop",
    "entries": "loop over entries of tapes",
    "while": "loop without a known end",
    "cond": "branches",
}

Names = Mapping[Var, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is computed in which order, and where; printing it shows the text.

    Attributes:
      text: the plan, one numbered item after the other.
      host_calls: why equations are left to NumPy, each with the user's line.
      memory_bytes: temporary memory of the native parts.
      lines: lines of LLVM's text.
    """

    text: str
    host_calls: tuple[str, ...]
    memory_bytes: int
    lines: int

    def __str__(self) -> str:
        """The text."""
        return self.text

    __repr__ = __str__


def plan(jaxpr: Jaxpr) -> Plan:
    """The plan of a simplified program, without compiling it.

    Args:
      jaxpr: the program.

    Example:
      >>> import functrans as ft
      >>> import numpy as np
      >>> plan(ft.make_jaxpr(lambda x: np.sum(np.sin(x) * 2.0))(np.ones(1000)))
      plan of <lambda>: f64[1000] -> f64[]
      1. loops 1000, the last one over lanes: stores d:f64[]; b, c in registers
          b:f64[1000] = sin a
          ...
      temporary memory: 0 bytes; ... lines of LLVM
    """
    prepared = prepare(jaxpr)
    names = variable_names(prepared)
    given = ", ".join(str(aval) for aval in jaxpr.in_avals)
    results = ", ".join(str(aval) for aval in jaxpr.out_avals)
    lines = [f"plan of {jaxpr.name or 'a program'}: {given} -> {results}"]
    reasons: list[str] = []
    number = memory_bytes = text_lines = 0
    for part in plan_of(jaxpr):
        if isinstance(part, HostCall):
            number += 1
            reasons.append(host_call_text(part))
            lines.append(f"{number}. NumPy call: {reasons[-1]}")
            lines.append(_INDENT + equation_line(part.eqn, names))
            continue
        with planned(part.jaxpr) as order:
            items = list(_items(order, names, number + 1))
        number += sum(not line.startswith(" ") for line in items)
        lines.extend(items)
        text = write_program(part.jaxpr)
        memory_bytes += text.memory_bytes
        text_lines += text.text.count("\n")
    lines.append(f"temporary memory: {memory_bytes} bytes; {text_lines} lines of LLVM")
    return Plan("\n".join(lines), tuple(reasons), memory_bytes, text_lines)


def host_call_text(call: HostCall) -> str:
    """Why an equation is left to NumPy, and at which line of the user it is."""
    line = resolve(call.eqn.source)
    return f"{call.reason} at {line}" if line is not None else call.reason


def _items(plan: Planned, names: Names, first: int) -> Iterator[str]:
    """Lines of the items of a schedule; those that begin an item have no indentation."""
    for number, item in enumerate(plan.schedule.items):
        head, *rest = item_lines(plan, number, item, names)
        yield f"{first + number}. {head}"
        yield from (_INDENT + line for line in rest)


def item_lines(plan: Planned, number: int, item: Item, names: Names) -> list[str]:
    """What an item of a schedule is, and below it its equations."""
    if isinstance(item, Nest):
        return _nest(plan, number, item, names)
    results = _bound(item.eqn.outputs, names)
    if isinstance(item, View):
        operand = atom_text(item.eqn.inputs[0], names)
        return [f"view: {results} is the memory of {operand}", equation_line(item.eqn, names)]
    lower = item.eqn.primitive.lower
    if isinstance(lower, Structured):
        return [f"{_KINDS[lower.kind]}: stores {results}", *_structure(item.eqn, names)]
    name = item.eqn.primitive.name
    return [f"routine {name}: stores {results}", equation_line(item.eqn, names)]


def _nest(plan: Planned, number: int, nest: Nest, names: Names) -> list[str]:
    """A loop nest: its extents, what it stores and what is only ever in registers."""
    writer = plan.writers[number]
    assert writer is not None
    kept = [root.var for root in nest.roots]
    eqns = [plan.schedule.jaxpr.eqns[i] for i in nest.equations]
    fused = [var for eqn in eqns for var in eqn.outputs if var not in kept]
    if not nest.extents:
        head = "straight-line code"
    else:
        head = f"loops {' x '.join(map(str, nest.extents))}"
        if nest.vector == len(nest.extents) - 1:
            head += ", the last one over lanes"
        elif nest.vector is not None:
            head += f", number {nest.vector + 1} over lanes"
        if is_parallel(plan.body, writer):
            head += ", on threads"
    head += f": stores {_bound(kept, names)}"
    if fused:
        head += f"; {', '.join(names[var] for var in fused)} in registers"
    return [head, *[equation_line(eqn, names) for eqn in eqns]]


def _structure(eqn: Equation, names: Names) -> list[str]:
    """Control flow: its operands and parameters, and the plans of its programs."""
    params = [
        f"{key}={param_text(value)}"
        for key, value in eqn.params.items()
        if next(subjaxprs({key: value}), None) is None
    ]
    operands = " ".join(atom_text(atom, names) for atom in eqn.inputs)
    lines = [f"{eqn.primitive.name}[{', '.join(params)}] {operands}"]
    for key, value in eqn.params.items():
        programs = value if isinstance(value, tuple) else (value,)
        for k, program in enumerate(programs):
            if not isinstance(program, Jaxpr):
                continue
            label = key if len(programs) == 1 else f"{key}[{k}]"
            lines.extend(_program(label, prepare(program)))
    return lines


def _program(label: str, jaxpr: Jaxpr) -> Iterator[str]:
    """A program inside another one; it has names of its own."""
    names = variable_names(jaxpr)
    arguments = _bound((*jaxpr.constvars, *jaxpr.invars), names)
    results = " ".join(atom_text(atom, names) for atom in jaxpr.outvars)
    yield f"{label} of {arguments} gives {results}:"
    with planned(jaxpr) as order:
        yield from (_INDENT + line for line in _items(order, names, 1))


def _bound(variables: Sequence[Var], names: Names) -> str:
    return " ".join(f"{names[var]}:{var.aval}" for var in variables) or "nothing"


# text of code ------------------------------------------------------------------------------------


def llvm_text(jaxpr: Jaxpr) -> str:
    """LLVM assembly of a simplified program as the compiler writes it, one module per part."""
    return "\n".join(text for text, _ in _modules(jaxpr))


def assembly_text(jaxpr: Jaxpr) -> str:
    """Assembly of this machine for a simplified program, one file per part.

    Raises:
      CompilationError: LLVM is missing.
    """
    return "\n".join(engine.assembly(text, level) for text, level in _modules(jaxpr))


def _modules(jaxpr: Jaxpr) -> Iterator[tuple[str, int]]:
    """Modules of the native parts, and the levels that they are compiled at."""
    for part in plan_of(jaxpr):
        if isinstance(part, NativePart):
            text = write_program(part.jaxpr).text
            yield text, optimisation_level(text)


def host_calls(parts: Sequence[Any]) -> list[str]:
    """The NumPy calls among the parts of a program, as text."""
    return [host_call_text(part) for part in parts if isinstance(part, HostCall)]
