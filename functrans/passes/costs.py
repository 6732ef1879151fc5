"""What a program costs: operations, bytes, peak memory, per equation and in total.

Here: ``program_cost`` and the table it prints. Not here: the work by which modes are chosen
(``passes.work``), the time that compiling takes (``compiler.cost``).

The figures follow from shapes alone. One flop is an addition or a multiplication of real numbers;
a fused or complex operation counts as its parts (a complex product is six). Functions such as
``exp`` are counted apart, one for each element. An equation reads its operands and writes its
results once: what a compiler fuses moves fewer bytes, what does not fit in caches the given ones.
A scan is its length times its body, a ``while_loop`` one iteration, a ``cond`` its most expensive
branch. The peak counts the arguments, and values until their last use.

Layer: ``passes``. Reference: for factorizations, Golub & Van Loan, Matrix Computations, 4th ed.
(2013), table of flops in each chapter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from functrans.ir.analyses import analysis
from functrans.ir.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.ir.lowering import Pointwise, Reduction
from functrans.ir.printing import equation_line, line_resolver, variable_names
from functrans.ir.source import SourceLine
from functrans.passes.evaluate import last_uses
from functrans.passes.work import aval_bytes

_TRANSCENDENTAL_COST = 5.0
"""From this cost of an elementwise primitive on (in additions) it counts as a function."""
_COMPLEX_FLOPS = {"multiply": 6, "divide": 11, "add": 2, "subtract": 2, "negative": 2}
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
        runs = _runs(eqn) if inner else 1
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


def _runs(eqn: Equation) -> int | None:
    """How often the programs of an equation run; ``None`` if data decide."""
    if eqn.primitive.name == "while":
        return None
    if "length" in eqn.params:
        length: int | None = eqn.params["length"]
        return length
    return 1


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
    flops, functions = _operations(eqn)
    return flops, functions, read, written


def _operations(eqn: Equation) -> tuple[float, float]:
    """Flops and functions of a first-order equation."""
    name = eqn.primitive.name
    formula = _FORMULAS.get(name)
    if formula is not None:
        return formula(eqn), 0.0
    if not eqn.outputs or not hasattr(_result(eqn), "size"):
        return 0.0, 0.0
    size = _result(eqn).size
    is_complex = any(x.aval.dtype.kind == "c" for x in (*eqn.inputs, *eqn.outputs))
    lower = eqn.primitive.lower
    if isinstance(lower, Pointwise) or eqn.primitive.elementwise is not None:
        if name in _FREE:
            return 0.0, 0.0
        work = lower.cost if isinstance(lower, Pointwise) else _TRANSCENDENTAL_COST
        if work >= _TRANSCENDENTAL_COST and name not in _ARITHMETIC:
            return 0.0, float(size)
        return float(size * (_COMPLEX_FLOPS.get(name, 2) if is_complex else 1)), 0.0
    if name in ("logsumexp", "cumlogsumexp"):
        return float(_given(eqn).size), float(_given(eqn).size)
    if isinstance(lower, Reduction) or name in _ACCUMULATING:
        return float(_given(eqn).size * (2 if is_complex else 1)), 0.0
    return 0.0, 0.0


_ARITHMETIC = frozenset(
    {"divide", "sqrt", "rsqrt", "reciprocal", "hypot", "complex_abs", "norm_sqrt", "relu",
     "torch_sign", "torch_absolute", "torch_maximum", "torch_minimum", "torch_fmax", "torch_fmin",
     "clamp_min", "clamp_max", "clamp", "torch_hypot", "torch_copysign", "torch_remainder",
     "with_slope", "external_linear"}
)  # fmt: skip
"""Elementwise primitives that cost more than an addition and are arithmetic all the same."""
_FREE = frozenset(
    {
        "cast",
        "real",
        "imag",
        "complex",
        "copysign",
        "signbit",
        "stop_gradient",
        "unrecorded",
        "overwritten",
    }
)
_ACCUMULATING = frozenset(
    {"reduce_max", "reduce_min", "reduce_prod", "argmax", "argmin", "scatter_add", "accumulate",
     "scatter_reduce", "cumsum", "cumprod", "cummax", "cummin", "linear_recurrence",
     "dynamic_embed", "searchsorted"}
)  # fmt: skip


# formulas by shape ------------------------------------------------------------------------------


def _given(eqn: Equation, i: int = 0) -> Any:
    """The type of an operand, an array."""
    return eqn.inputs[i].aval


def _result(eqn: Equation) -> Any:
    """The type of the result, an array."""
    return eqn.outputs[0].aval


def _matrix(eqn: Equation) -> tuple[int, int, int]:
    """Number of matrices, rows, columns of the first operand."""
    shape = _given(eqn).shape
    if len(shape) < 2:
        return 1, math.prod(shape), 1
    return math.prod(shape[:-2]), shape[-2], shape[-1]


def _complex_factor(eqn: Equation) -> int:
    return 4 if any(x.aval.dtype.kind == "c" for x in eqn.inputs) else 1


def _dot(eqn: Equation) -> float:
    terms = math.prod(_given(eqn).shape[axis] for axis in eqn.params["contract"][0])
    return float(2 * _result(eqn).size * terms * _complex_factor(eqn))


def _cubic(factor: float) -> Callable[[Equation], float]:
    """``factor * rows * columns * min(rows, columns)`` for each matrix."""

    def formula(eqn: Equation) -> float:
        count, rows, columns = _matrix(eqn)
        return factor * count * rows * columns * min(rows, columns) * _complex_factor(eqn)

    return formula


def _solve(factor: float) -> Callable[[Equation], float]:
    """A factorization and the substitution for the last operand."""

    def formula(eqn: Equation) -> float:
        count, rows, _ = _matrix(eqn)
        right = max(1, _result(eqn).size // max(1, count * rows))
        work = factor * rows**3 + 2.0 * rows * rows * right
        return float(count * work * _complex_factor(eqn))

    return formula


def _triangular(eqn: Equation) -> float:
    rows = _given(eqn).shape[-1] if _given(eqn).shape else 1
    return float(rows * _result(eqn).size * _complex_factor(eqn))


def _fourier(eqn: Equation) -> float:
    """Cooley and Tukey's count, half of it where one side is real."""
    out, given = _result(eqn), _given(eqn)
    big = max((out, given), key=lambda aval: aval.size)
    axes = eqn.params.get("axes") or (len(big.shape) - 1,)
    extent = math.prod(big.shape[axis] for axis in axes)
    factor = 2.5 if eqn.primitive.name in ("rfft", "irfft") else 5.0
    return float(factor * big.size * math.log2(max(2, extent)))


def _sorting(eqn: Equation) -> float:
    aval = _given(eqn)
    extent = max(aval.shape, default=1)
    return float(aval.size * math.log2(max(2, extent)))


def _convolution(eqn: Equation) -> float:
    """Each result sums over one filter: the kernel without its output channels."""
    out, kernel = _result(eqn), _given(eqn, 1)
    channels = kernel.shape[0] if kernel.shape else 1
    return float(2.0 * out.size * kernel.size / max(1, channels) * _complex_factor(eqn))


_FORMULAS: Mapping[str, Callable[[Equation], float]] = {
    "dot_general": _dot,
    "conv_general": _convolution,
    "cholesky": _cubic(1 / 3),
    "lu": _cubic(2 / 3),
    "lu_factor": _cubic(2 / 3),
    "det": _cubic(2 / 3),
    "slogdet": _cubic(2 / 3),
    "inv": _cubic(2.0),
    "pinv": _cubic(22.0),
    "qr": _cubic(4.0),
    "svd": _cubic(22.0),
    "lstsq": _cubic(4.0),
    "eigh": _cubic(9.0),
    "eig": _cubic(25.0),
    "linear_solve": _solve(2 / 3),
    "triangular_solve": _triangular,
    "fft_c2c": _fourier,
    "rfft": _fourier,
    "irfft": _fourier,
    "sort": _sorting,
    "argsort": _sorting,
    "lexsort": _sorting,
    "top_k": _sorting,
}


def inner_programs(eqn: Equation) -> Iterator[tuple[str, Jaxpr]]:
    """The programs in an equation with the names of their parameters."""
    for key, value in eqn.params.items():
        if isinstance(value, Jaxpr):
            yield key, value
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, Jaxpr):
                    yield f"{key}[{i}]", item
