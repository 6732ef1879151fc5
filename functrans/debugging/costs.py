"""What a program costs: operations, bytes, peak memory, per equation and in total.

Here: ``program_cost`` and the table it prints. Not here: the work of an equation, from its record
(``passes.work``), the time that compiling takes (``compiler.cost``), the page of a cost
(``debugging.memory``).

The figures follow from shapes alone. An equation reads its operands and writes its
results once: what a compiler fuses moves fewer bytes, what does not fit in caches the given ones.
A scan is its length times its body, a ``while_loop`` one iteration, a ``cond`` its most expensive
branch. The peak counts the arguments, and values until their last use.

Layer: ``debugging``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from functrans.core.analyses import analysis
from functrans.core.deferred import deferred
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.source import SourceLine
from functrans.debugging.documents import framed
from functrans.ir.printing import equation_line, line_resolver, variable_names
from functrans.passes.executables import last_uses
from functrans.passes.work import aval_bytes, operations, rounds
from functrans.records import dataclass

_UNITS = ("", "k", "M", "G", "T", "P")


@dataclass(frozen=True, slots=True)
class EquationCost:
    """What one equation of a program costs, all its iterations taken together.

    Attributes:
      primitive: its name.
      text: the equation on one line, as printed.
      flops: additions, multiplications and comparisons.
      transcendentals: evaluations of functions such as ``exp``.
      bytes_read: of operands.
      bytes_written: of results.
      peak_bytes: memory in use while it runs.
      source: the user's line, or ``None``.
      scope: its name scope.
      inner: costs of the programs in it, in order, for one run of each.
      runs: how often the programs in it run.
    """

    primitive: str
    text: str
    flops: float
    transcendentals: float
    bytes_read: float
    bytes_written: float
    peak_bytes: int
    source: SourceLine | None
    scope: str
    inner: tuple[Cost, ...] = ()
    runs: int = 1

    @property
    def bytes(self) -> float:
        """Read and written."""
        return self.bytes_read + self.bytes_written


@dataclass(frozen=True, slots=True)
class Cost:
    """What a program costs; prints as a table.

    Attributes:
      name: of the program.
      equations: in order.
      peak_bytes: most memory in use at one time: arguments, constants and values.
      argument_bytes: of arguments and constants.
      result_bytes: of results.
      is_bounded: ``False`` if there is a loop whose number of iterations is not known, of which
        one was counted.
    """

    name: str
    equations: tuple[EquationCost, ...]
    peak_bytes: int
    argument_bytes: int
    result_bytes: int
    is_bounded: bool

    @property
    def flops(self) -> float:
        """Additions, multiplications and comparisons."""
        return sum(eqn.flops for eqn in self.equations)

    @property
    def transcendentals(self) -> float:
        """Evaluations of functions such as ``exp``."""
        return sum(eqn.transcendentals for eqn in self.equations)

    @property
    def bytes_read(self) -> float:
        """Bytes of operands."""
        return sum(eqn.bytes_read for eqn in self.equations)

    @property
    def bytes_written(self) -> float:
        """Bytes of results of equations."""
        return sum(eqn.bytes_written for eqn in self.equations)

    @property
    def bytes(self) -> float:
        """Read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float:
        """Flops per byte; 0 for a program that moves none."""
        return self.flops / self.bytes if self.bytes else 0.0

    def by_primitive(self) -> dict[str, tuple[int, float, float]]:
        """Per primitive: equations, flops with functions, bytes; the programs inside counted too.

        A program in an equation counts as often as it runs.
        """
        table: dict[str, tuple[int, float, float]] = {}
        _add_primitives(self, 1, table)
        return dict(sorted(table.items(), key=lambda row: (-row[1][1], -row[1][2], row[0])))

    def by_scope(self) -> dict[str, tuple[int, float, float]]:
        """Per name scope (``ft.named_scope``): equations, flops with functions, bytes."""
        table: dict[str, tuple[int, float, float]] = {}
        for eqn in self.equations:
            n, flops, moved = table.get(eqn.scope, (0, 0.0, 0.0))
            table[eqn.scope] = n + 1, flops + eqn.flops + eqn.transcendentals, moved + eqn.bytes
        return table

    def table(self, limit: int | None = 20) -> str:
        """The dearest equations with their shares and the user's lines.

        Args:
          limit: number of rows; ``None`` for all.
        """
        work = self.flops + self.transcendentals
        ordered = sorted(
            self.equations, key=lambda eqn: (-(eqn.flops + eqn.transcendentals), -eqn.bytes)
        )
        shown = ordered if limit is None else ordered[:limit]
        at_least = "" if self.is_bounded else "; while loops count one iteration"
        lines = [
            f"{self.name or 'program'}: {quantity(self.flops)}flop, "
            f"{quantity(self.transcendentals).rstrip()} functions, "
            f"{quantity(self.bytes_read)}B read, "
            f"{quantity(self.bytes_written)}B written, peak {quantity(self.peak_bytes)}B{at_least}",
            f"{'flop':>9} {'funcs':>9} {'bytes':>9} {'share':>6}  equation",
        ]
        for eqn in shown:
            share = (eqn.flops + eqn.transcendentals) / work if work else 0.0
            place = f"  # {eqn.source}" if eqn.source is not None else ""
            lines.append(
                f"{quantity(eqn.flops):>9} {quantity(eqn.transcendentals):>9} "
                f"{quantity(eqn.bytes):>9} {100 * share:5.1f}%  {eqn.text}{place}"
            )
        if len(shown) < len(ordered):
            lines.append(f"... and {len(ordered) - len(shown)} more equations")
        return "\n".join(lines)

    def to_html(self) -> str:
        """A page that needs nothing else: memory in use over the equations, and all of them."""
        page: str = deferred.cost_page(self)
        return page

    def _repr_html_(self) -> str:
        """What a notebook shows: ``to_html`` in a frame."""
        return framed(self.to_html(), len(self.equations) + 9)

    def __str__(self) -> str:
        """The table."""
        return self.table()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The table, in IPython."""
        printer.text(str(self))


def _add_primitives(cost: Cost, times: int, table: dict[str, tuple[int, float, float]]) -> None:
    for eqn in cost.equations:
        for inner in eqn.inner:
            _add_primitives(inner, times * eqn.runs, table)
        own = 0.0 if eqn.inner else eqn.flops + eqn.transcendentals
        moved = 0.0 if eqn.inner else eqn.bytes
        n, flops, total = table.get(eqn.primitive, (0, 0.0, 0.0))
        table[eqn.primitive] = n + 1, flops + times * own, total + times * moved


def quantity(number: float) -> str:
    """``12.3 k``: three digits and a unit prefix, in powers of 1000."""
    value = float(number)
    for unit in _UNITS:
        if abs(value) < 999.5 or unit == _UNITS[-1]:
            break
        value /= 1000.0
    digits = f"{value:.0f}" if value == int(value) and not unit else f"{value:.3g}"
    return f"{digits} {unit}"


@analysis
def program_cost(jaxpr: Jaxpr) -> Cost:
    """What one run of a program costs; see the module for what is counted."""
    names = variable_names(jaxpr)
    resolve = line_resolver()
    given = sum(aval_bytes(var.aval) for var in (*jaxpr.constvars, *jaxpr.invars))
    lasting = {*jaxpr.constvars, *jaxpr.invars}
    now = peak = given
    equations = []
    is_bounded = True
    alive: dict[Var, int] = {}
    for eqn, dying in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
        inner = tuple(map(program_cost, subjaxprs(eqn.params)))
        runs = rounds(eqn) if inner else 1
        is_bounded &= runs is not None and all(cost.is_bounded for cost in inner)
        for out in eqn.outputs:
            alive[out] = aval_bytes(out.aval)
            now += alive[out]
        own = [cost.peak_bytes - cost.argument_bytes - cost.result_bytes for cost in inner]
        extra = max([0, *own])  # arguments and results are counted already
        peak = max(peak, now + extra)
        flops, functions, read, written = _figures(eqn, inner, runs or 1)
        equations.append(
            EquationCost(
                eqn.primitive.name, equation_line(eqn, names), flops, functions, read, written,
                now + extra, resolve(eqn.source), eqn.scope, inner, runs or 1,
            )
        )  # fmt: skip
        for var in dying:
            if var not in lasting:
                now -= alive.pop(var, 0)
    results = sum(aval_bytes(atom.aval) for atom in jaxpr.outvars)
    return Cost(jaxpr.name, tuple(equations), peak, given, results, is_bounded)


def _figures(eqn: Equation, inner: Sequence[Cost], runs: int) -> tuple[float, float, float, float]:
    """Flops, functions, bytes read and written."""
    if inner:
        if "branches" in eqn.params:
            dearest = max(inner, key=lambda cost: (cost.flops + cost.transcendentals, cost.bytes))
            inner = (dearest,)
        return (
            runs * sum(cost.flops for cost in inner),
            runs * sum(cost.transcendentals for cost in inner),
            runs * sum(cost.bytes_read for cost in inner),
            runs * sum(cost.bytes_written for cost in inner),
        )
    read = sum(aval_bytes(a.aval) for a in eqn.inputs if not isinstance(a, Literal))
    written = sum(aval_bytes(out.aval) for out in eqn.outputs)
    return *operations(eqn), read, written


def inner_programs(eqn: Equation) -> Iterator[tuple[str, Jaxpr]]:
    """The programs in an equation with the names of their parameters."""
    for key, value in eqn.params.items():
        if isinstance(value, Jaxpr):
            yield key, value
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, Jaxpr):
                    yield f"{key}[{i}]", item
