"""Which code comes from which step of a plan, and from which equation.

Here: ``anatomy``, a program as equations, steps and lines of code that refer to one another. Not
here: the plan as text (``compiler.inspect``), its picture (``debugging.explorer``).

The text of a program is written once more with comments around what each step and each equation
writes (``Builder.begin``). For LLVM the same is said by debug locations, which its passes and its
choice of instructions carry along: a "line" stands for steps, a "column" in it for equations. The
instructions are those of a program without them. Where LLVM moves an instruction to another block,
it keeps the line if that block is of the same line, and drops the column: the step is known then,
the equation is not.

A function in the text that others share (``exp`` of lanes, a product of matrices, a range of a loop
on threads) has the origins of its callers.

Layer: ``compiler``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from functrans.compiler.compiled import optimisation_level, plan_of
from functrans.compiler.donation import planned
from functrans.compiler.inspect import host_call_text, item_lines
from functrans.compiler.prepare import prepare
from functrans.compiler.programs import write_program
from functrans.compiler.schedule import Nest
from functrans.compiler.support import HostCall
from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.core.lowering import Structured
from functrans.core.source import SourceLine
from functrans.emitter.builder import BEGIN, END
from functrans.errors import CompilationError
from functrans.ir.printing import equation_line, line_resolver, variable_names
from functrans.machine import engine
from functrans.records import dataclass, field

NO_NUMBERS: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Origin:
    """What code is for: numbers of steps and of equations."""

    steps: frozenset[int] = NO_NUMBERS
    eqns: frozenset[int] = NO_NUMBERS

    def __or__(self, other: Origin) -> Origin:
        """What either is for."""
        return Origin(self.steps | other.steps, self.eqns | other.eqns)


NOTHING = Origin()


@dataclass(frozen=True, slots=True)
class EquationRow:
    """An equation of the program as it is compiled.

    Attributes:
      text: on one line.
      line: the user's line, or ``None``.
      depth: how many programs it is in, below the outermost.
      title: of the program that begins with it; empty where none does.
    """

    text: str
    line: SourceLine | None
    depth: int
    title: str = ""


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of the plan: a loop nest, a routine, control flow, a call of NumPy.

    Attributes:
      label: its number in the plan; ``2.body.1`` is the first step of a loop that is the second.
      text: what it is.
      around: positions of the steps that it is in, the outermost first.
      eqns: numbers of its equations.
    """

    label: str
    text: str
    around: tuple[int, ...]
    eqns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CodeRow:
    """A line of code."""

    text: str
    origin: Origin


@dataclass(slots=True)
class Anatomy:
    """A program: equations, steps and code, which refer to one another by position.

    Attributes:
      equations: in order; those of inner programs after the equation that they are in.
      steps: of the plan, in order.
      llvm: LLVM's text as it is written.
      machine: instructions of this machine; empty where there is no LLVM.
      obstacle: why there are none.
    """

    equations: list[EquationRow] = field(default_factory=list)
    steps: list[StepRow] = field(default_factory=list)
    llvm: list[CodeRow] = field(default_factory=list)
    machine: list[CodeRow] = field(default_factory=list)
    obstacle: str = ""


def anatomy(jaxpr: Jaxpr) -> Anatomy:
    """A simplified program as the compiler sees it.

    Args:
      jaxpr: the program.

    Example:
      >>> import functrans as ft
      >>> import numpy as np
      >>> found = anatomy(ft.make_jaxpr(lambda x: np.sum(np.sin(x) * 2.0))(np.ones(1000)))
      >>> [(step.label, step.eqns) for step in found.steps]
      [('1', (0, 1, 2))]
      >>> {min(row.origin.eqns) for row in found.llvm if row.origin.eqns}
      {0, 1, 2}
    """
    return _Anatomist(variable_names(prepare(jaxpr))).whole(jaxpr)


class _Anatomist:
    def __init__(self, names: Mapping[Var, str]) -> None:
        self._names = names
        self._found = Anatomy()
        self._resolve = line_resolver()
        self._eqns: dict[Equation, int] = {}
        self._steps: dict[tuple[Jaxpr, int], set[int]] = {}
        """Steps of an item of a schedule; several where equations share a program."""

    def whole(self, jaxpr: Jaxpr) -> Anatomy:
        found = self._found
        parts = plan_of(jaxpr)
        number = 0
        for part in parts:
            if isinstance(part, HostCall):
                number += 1
                self._equation(part.eqn, self._names, 0, "")
                text = f"NumPy call: {host_call_text(part)}"
                found.steps.append(StepRow(str(number), text, (), (self._eqns[part.eqn],)))
                continue
            self._program(part.jaxpr, self._names, 0, "")
            number = self._items(part.jaxpr, self._names, "", number, ())
        for part in parts:
            if not isinstance(part, HostCall):
                self._code(part.jaxpr)
        return found

    # equations -----------------------------------------------------------------------------------

    def _program(self, jaxpr: Jaxpr, names: Mapping[Var, str], depth: int, title: str) -> None:
        for eqn in jaxpr.eqns:
            self._equation(eqn, names, depth, title)
            title = ""
            if isinstance(eqn.primitive.lower, Structured):
                for key, program in _inner(eqn):
                    self._program(program, variable_names(program), depth + 1, key)

    def _equation(
        self, eqn: Equation, names: Mapping[Var, str], depth: int, title: str
    ) -> None:  # fmt: skip
        if eqn in self._eqns:  # of a program that several equations share
            return
        rows = self._found.equations
        self._eqns[eqn] = len(rows)
        line = self._resolve(eqn.source)
        rows.append(EquationRow(equation_line(eqn, names), line, depth, title))

    # steps ---------------------------------------------------------------------------------------

    def _items(
        self,
        jaxpr: Jaxpr,
        names: Mapping[Var, str],
        prefix: str,
        number: int,
        around: tuple[int, ...],
    ) -> int:
        """The steps of a program, numbered from ``number + 1`` on; gives the last number."""
        rows = self._found.steps
        with planned(jaxpr) as plan:
            heads = [
                (item, item_lines(plan, k, item, names)[0])
                for k, item in enumerate(plan.schedule.items)
            ]
        for k, (item, head) in enumerate(heads):
            number += 1
            if isinstance(item, Nest):
                eqns = tuple([self._eqns[jaxpr.eqns[i]] for i in item.equations])
            else:
                eqns = (self._eqns[item.eqn],)
            own = len(rows)
            self._steps.setdefault((jaxpr, k), set()).add(own)
            label = f"{prefix}{number}"
            rows.append(StepRow(label, head, around, eqns))
            if not isinstance(item, Nest) and isinstance(item.eqn.primitive.lower, Structured):
                for key, program in _inner(item.eqn):
                    inner = variable_names(program)
                    self._items(program, inner, f"{label}.{key}.", 0, (*around, own))
        return number

    # code ----------------------------------------------------------------------------------------

    def _code(self, jaxpr: Jaxpr) -> None:
        """The code of a native part."""
        marked: dict[Any, int] = {}
        text = write_program(jaxpr, lambda what: marked.setdefault(what, len(marked))).text
        origins = list(map(self._origin, marked))
        rows = _with_origins(text, origins)
        self._found.llvm += rows
        plain = "".join([f"{row.text}\n" for row in rows])
        noted, places = _with_locations(rows)
        try:
            listing = engine.assembly(noted, optimisation_level(plain))
        except CompilationError as error:
            self._found.obstacle = str(error)
            return
        self._found.machine += _instructions(listing, places)

    def _origin(self, what: Equation | tuple[Jaxpr, int]) -> Origin:
        if isinstance(what, Equation):
            number = self._eqns.get(what)
            return NOTHING if number is None else Origin(NO_NUMBERS, frozenset({number}))
        steps = frozenset(self._steps.get(what, ()))
        own = {self._found.steps[step].eqns for step in steps}
        single = [eqns for eqns in own if len(eqns) == 1]
        return Origin(steps, frozenset().union(*single))


def _inner(eqn: Equation) -> Iterator[tuple[str, Jaxpr]]:
    """The programs of control flow as they are compiled, with the names of their parameters."""
    for key, value in eqn.params.items():
        programs = value if isinstance(value, tuple) else (value,)
        for k, program in enumerate(programs):
            if isinstance(program, Jaxpr):
                label = key.removesuffix("_jaxpr").replace("jaxpr", "body")
                yield (label if len(programs) == 1 else f"{label}[{k}]"), prepare(program)


# LLVM's text ------------------------------------------------------------------------------------

_DEFINED = re.compile(r"define .*?@([^\s(]+)\(")
_USED = re.compile(r"@([\w.$-]+)")


def _with_origins(text: str, origins: Sequence[Origin]) -> list[CodeRow]:
    """Lines of a text with what they are for, without the comments that say so."""
    lines: list[tuple[str, str, Origin]] = []
    """Function, text, origin within the function."""
    function = ""
    stack = [NOTHING]
    for line in text.splitlines():
        if line.startswith(f"  {BEGIN}"):
            own, outer = origins[int(line[len(BEGIN) + 2 :])], stack[-1]
            # an equation stands for itself, not for the step that it is in
            stack.append(Origin(outer.steps | own.steps, own.eqns or outer.eqns))
            continue
        if line.startswith(f"  {END}"):
            stack.pop()
            continue
        found = _DEFINED.match(line)
        if found:
            function, stack = found[1], [NOTHING]
        lines.append((function, line, stack[-1]))
        if line == "}":
            function = ""
    callers = _origins_of_functions(lines)
    return [
        CodeRow(line, _within(origin, callers.get(function, NOTHING)))
        for function, line, origin in lines
    ]


def _within(own: Origin, around: Origin) -> Origin:
    """What code is for in a function that is for something itself."""
    return Origin(own.steps | around.steps, own.eqns or around.eqns)


def _origins_of_functions(lines: Sequence[tuple[str, str, Origin]]) -> Mapping[str, Origin]:
    """What functions are for: what is written where they are called, or handed to others."""
    found: dict[str, Origin] = dict.fromkeys((name for name, _, _ in lines if name), NOTHING)
    uses = [
        (function, name, origin)
        for function, line, origin in lines
        if line.startswith("  ")
        for name in _USED.findall(line)
        if name in found and name != function
    ]
    while True:
        before = dict(found)
        for function, name, origin in uses:
            found[name] |= _within(origin, before[function])
        if found == before:
            return found


def _with_locations(
    rows: Sequence[CodeRow],
) -> tuple[str, tuple[Sequence[frozenset[int]], Sequence[frozenset[int]]]]:
    """A text with origins as debug locations, and what their lines and columns are, from 1 on."""
    lines_of: dict[frozenset[int], int] = {}
    columns_of: dict[frozenset[int], int] = {NO_NUMBERS: 0}
    locations: dict[tuple[int, int, int], int] = {}
    """Numbers of the entries below, by function, line and column."""
    notes = [
        "!llvm.dbg.cu = !{!0}",
        "!llvm.module.flags = !{!1}",
        "!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !2, isOptimized: true, "
        "runtimeVersion: 0, emissionKind: LineTablesOnly)",
        '!1 = !{i32 2, !"Debug Info Version", i32 3}',
        '!2 = !DIFile(filename: "plan", directory: "")',
        "!3 = !DISubroutineType(types: !{})",
    ]
    lines = []
    count, function = 4, 0
    for row in rows:
        line = row.text
        if _DEFINED.match(line):
            function, count = count, count + 1
            place = lines_of.setdefault(row.origin.steps, len(lines_of) + 1)
            notes.append(
                f'!{function} = distinct !DISubprogram(name: "f{function}", scope: !2, file: !2, '
                f"line: {place}, scopeLine: {place}, type: !3, unit: !0, "
                "spFlags: DISPFlagDefinition | DISPFlagOptimized)"
            )
            line = f"{line.removesuffix('{')}!dbg !{function} {{"
        elif line == "}":
            function = 0
        elif function and line.startswith("  "):
            place = lines_of.setdefault(row.origin.steps, len(lines_of) + 1)
            column = columns_of.setdefault(row.origin.eqns, len(columns_of))
            column = column if column <= _MOST_COLUMNS else 0
            number = locations.get((function, place, column))
            if number is None:
                number = locations[function, place, column] = count
                notes.append(
                    f"!{number} = !DILocation(line: {place}, column: {column}, scope: !{function})"
                )
                count += 1
            line += f", !dbg !{number}"
        lines.append(line)
    return "\n".join([*lines, *notes, ""]), (list(lines_of), list(columns_of))


_MOST_COLUMNS = (1 << 16) - 1
"""Columns have 16 bits."""


# assembly ---------------------------------------------------------------------------------------

_LOCATION = re.compile(r"\s*\.loc\s+\d+\s+(\d+)\s+(\d+)")
_BLOCK = re.compile(r"\.LBB\w+:|[A-Za-z_$][\w.$]*:")
_ENDS = re.compile(r"\s*\.size\b|\.Lfunc_end")


def _instructions(
    listing: str, places: tuple[Sequence[frozenset[int]], Sequence[frozenset[int]]]
) -> list[CodeRow]:
    """Instructions and labels of assembly with what they are for; no directives, no data.

    The function of the program comes before those that it calls.
    """
    functions: list[list[CodeRow]] = []
    rows: list[CodeRow] = []
    origin = NOTHING
    is_code = False
    for row in listing.splitlines():
        found = _LOCATION.match(row)
        text = row.partition("#")[0].rstrip()
        if found:
            line, column = int(found[1]), int(found[2])  # 0 of what LLVM cannot place
            origin = Origin(places[0][line - 1], places[1][column]) if line else NOTHING
        elif row.lstrip().startswith(".type") and "@function" in row.replace("%", "@"):
            is_code, origin, rows = True, NOTHING, []
            functions.append(rows)
        elif _ENDS.match(row):
            is_code = False
        elif is_code and _BLOCK.match(text) and not text.startswith((".Ltmp", ".Lfunc")):
            rows.append(CodeRow(text, origin if text[0] == "." else NOTHING))
        elif is_code and text.strip() and not text.strip().startswith(".") and ":" not in text:
            rows.append(CodeRow(text.expandtabs(4), origin))
    functions.sort(key=lambda rows: not rows or rows[0].text != "program:")
    return [row for rows in functions for row in rows]
