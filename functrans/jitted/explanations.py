"""Why a jitted function was staged and compiled again, as a report.

Here: ``Origin``, what is noted when a program is staged, ``ProgramReport`` and ``Explanation``,
what ``explain()`` returns. Not here: when programs are staged (``jitted.jit``).

Layer: ``jitted``.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

from functrans import pytrees as tree
from functrans.compiler.compiled import Compiled, predicted_compile_s
from functrans.compiler.inspect import host_calls
from functrans.control.native import as_compiled, runs_of
from functrans.core.avals import Aval
from functrans.core.boundary import warn
from functrans.core.jaxpr import Jaxpr
from functrans.core.state import Config
from functrans.machine.engine import is_available
from functrans.records import dataclass, fields

_MAX_VALUE = 60
_MAX_FACTS = 16
_WEAK = {"b": "bool", "i": "int", "f": "float", "c": "complex"}


@dataclass(frozen=True, slots=True)
class Origin:
    """The kind of call that a program was staged for.

    Attributes:
      facts: what the program depends on, by key path or name: kinds of arguments, static values,
        settings that are not the default, named axes around the call.
      staging_s: seconds that staging took.
      number: programs that were staged later have higher numbers.
      keywords: arguments that were passed by keyword.
      structure: the containers of arguments, in which programs may differ, too.
    """

    facts: Mapping[str, str]
    staging_s: float
    number: int
    keywords: tuple[str, ...] = ()
    structure: Any = None


_numbers = itertools.count()


def origin(
    paths: Sequence[str],
    avals: Sequence[Aval],
    static: Mapping[str, Any],
    settings: Config,
    axes: Sequence[Any],
    staging_s: float,
    keywords: Sequence[str] = (),
    structure: object = None,
) -> Origin:
    """Note what a program depends on, as text."""
    facts = {path: kind_text(aval) for path, aval in zip(paths, avals, strict=True)}
    for name, value in static.items():
        text = repr(value)
        facts[name] = f"static {text if len(text) <= _MAX_VALUE else text[:_MAX_VALUE] + '...'}"
    default = Config()
    for field in fields(Config):
        value = getattr(settings, field.name)
        if field.name != "nan_watch" and value != getattr(default, field.name):
            facts[f"config({field.name})"] = repr(value)
    for name, size in axes:
        facts[f"axis {name!r}"] = str(size)
    return Origin(facts, staging_s, next(_numbers), tuple(sorted(keywords)), structure)


def kind_text(aval: Aval) -> str:
    """``f64[3]``; ``float`` for a Python number."""
    weak = getattr(aval, "weak", False)
    return _WEAK[aval.dtype.kind] if weak else str(aval)


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """One program that a jitted function keeps.

    Attributes:
      arguments: what it depends on, by key path or name: ``{"x": "f64[3]", "mode": "static 'a'"}``.
      changes: what differs from the nearest earlier program: ``("x: f64[3] -> f64[4]",)``; empty
        for the first one.
      nearest: number of that program, from 0; ``None`` for the first one.
      staging_s: seconds for running the function on tracers and simplifying its program.
      compile_s: seconds for planning and making machine code, or for loading it; ``None`` while
        there is none.
      was_cached: whether machine code came from disk.
      is_compiled: whether calls run machine code.
      reason: how calls run, and why.
      host_calls: equations that NumPy evaluates between native parts, with the user's lines.
      taken: how often the path was taken, of a function that is specialised; else ``None``.
    """

    arguments: Mapping[str, str]
    changes: tuple[str, ...]
    nearest: int | None
    staging_s: float
    compile_s: float | None
    was_cached: bool
    is_compiled: bool
    reason: str
    host_calls: tuple[str, ...]
    taken: int | None = None

    def __str__(self) -> str:
        """Some lines of text."""
        facts = [f"{name}: {kind}" for name, kind in self.arguments.items()]
        more = len(facts) - _MAX_FACTS
        given = ", ".join(facts[:_MAX_FACTS]) + (f", and {more} more" if more > 0 else "")
        lines = [given or "no arguments"]
        if self.nearest is None:
            lines.append("  the first program")
        else:
            changes = "; ".join(map(_in_words, self.changes))
            changes = changes or "it was dropped from the cache, or forgotten"
            lines.append(f"  unlike program {self.nearest + 1}: {changes}")
        lines.append(f"  staged in {1e3 * self.staging_s:.1f} ms; {self.reason}")
        if self.taken is not None:
            lines.append(f"  taken {self.taken} time{'' if self.taken == 1 else 's'}")
        for text, count in Counter(self.host_calls).items():
            lines.append(f"  NumPy call: {text}" + (f" ({count} times)" if count > 1 else ""))
        return "\n".join(lines)


class Explanation(Sequence[ProgramReport]):
    """The programs of a jitted function, the oldest first; prints as a report.

    Attributes:
      label: what is jitted: ``jit of loss``.
    """

    def __init__(self, label: str, programs: Sequence[ProgramReport]) -> None:
        self.label = label
        self._programs = tuple(programs)

    @overload
    def __getitem__(self, position: int) -> ProgramReport: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[ProgramReport]: ...
    def __getitem__(self, position: int | slice) -> Any:
        """One program, or some."""
        return self._programs[position]

    def __len__(self) -> int:
        """Number of programs."""
        return len(self._programs)

    def __iter__(self) -> Iterator[ProgramReport]:
        """One program after the other."""
        return iter(self._programs)

    def __str__(self) -> str:
        """The report."""
        count = len(self._programs)
        lines = [f"{self.label}: {count} program{'' if count == 1 else 's'}"]
        for number, program in enumerate(self._programs, 1):
            lines.append(f"{number}. {program}")
        return "\n".join(lines)

    __repr__ = __str__


def explain(
    label: str, programs: Sequence[tuple[Origin, Jaxpr, int | None]], settings: Config
) -> Explanation:
    """The report on programs, the oldest first, each with how often its path was taken."""
    reports: list[ProgramReport] = []
    for number, (source, jaxpr, taken) in enumerate(programs):
        earlier = [_changes(other, source) for other, _, _ in programs[:number]]
        nearest = min(range(number), key=lambda k: (_distance(earlier[k]), -k), default=None)
        known = runs_of(jaxpr)
        native = known.codes.get(True) or known.codes.get(False)
        reports.append(
            ProgramReport(
                source.facts,
                () if nearest is None else tuple(earlier[nearest]),
                nearest,
                source.staging_s,
                known.compile_s,
                native is not None and native.was_cached,
                native is not None,
                _how_it_runs(jaxpr, native, settings),
                tuple(host_calls(native.parts)) if native is not None else (),
                taken,
            )
        )
    return Explanation(label, reports)


MANY_PROGRAMS = 32
"""Programs of one function with which a warning says what changes between calls."""


def tell_of_the_last(explanation: Callable[[], Explanation], count: int) -> None:
    """Log that a program was made, and why; warn when they are many.

    Args:
      explanation: gives the report on all.
      count: how many there are.
    """
    logging = sys.modules.get("logging")  # where nobody has imported it, nobody listens
    logger = None if logging is None else logging.getLogger("functrans.jit")
    is_heard = logger is not None and logger.isEnabledFor(logging.INFO)  # type: ignore[union-attr]  # a module
    if not is_heard and count != MANY_PROGRAMS:
        return
    report = explanation()
    if is_heard:
        logger.info("%s, program %d: %s", report.label, len(report), report[-1])  # type: ignore[union-attr]  # heard
    if count == MANY_PROGRAMS:
        reason = "; ".join(map(_in_words, report[-1].changes)) or "it was dropped or forgotten"
        warn(
            f"{report.label} was staged and compiled {count} times, the last time because of "
            f"{reason}. Each kind of call has a program of its own: pad arrays to a few shapes, "
            "pass numbers that change as arrays and not as static arguments, or jit the part whose "
            "arguments keep their shapes; explain() tells of all programs",
            RuntimeWarning,
        )


_KEYWORDS = "passed by keyword"
_CONTAINERS = "containers"


def _changes(earlier: Origin, later: Origin) -> list[str]:
    """What is not the same, by key path."""
    before, after = earlier.facts, later.facts
    names = [*after, *(name for name in before if name not in after)]
    changes = [
        f"{name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
        for name in names
        if before.get(name) != after.get(name)
    ]
    if set(before) == set(after) and earlier.keywords != later.keywords:
        given = [", ".join(names) or "none" for names in (earlier.keywords, later.keywords)]
        changes.append(f"{_KEYWORDS}: {given[0]} -> {given[1]}")
    if not changes and earlier.structure != later.structure:
        described = [tree.describe(origin.structure) for origin in (earlier, later)]
        changes.append(f"{_CONTAINERS}: {described[0]} -> {described[1]}")
    return changes


def _in_words(change: str) -> str:
    """A change with what kind it is of: ``x: f64[3] -> f64[4] (another shape)``."""
    if change.startswith(f"{_KEYWORDS}: "):
        return f"{change} (another way to pass the same arguments)"
    if change.startswith(f"{_CONTAINERS}: "):
        return f"{change} (another structure of the arguments)"
    name, _, rest = change.rpartition(": ")
    before, _, after = rest.partition(" -> ")
    if name.startswith("config("):
        return f"{change.replace('absent', 'default')} (another setting)"
    if "() at " in name or name.startswith("a value-dependent shape at "):
        return f"{change} (another path)"
    if name.startswith("axis "):
        return f"{change} (another vmap around it)"
    if "static " in rest:
        return f"{change} (another static value)"
    if "absent" in (before, after):
        return f"{change} (another structure of the arguments)"
    if (before in _WEAK.values()) != (after in _WEAK.values()):
        return f"{change} (a Python number, whose type is weak, and an array differ)"
    has_same_dtype = before.partition("[")[0] == after.partition("[")[0]
    has_same_shape = before.partition("[")[2] == after.partition("[")[2]
    if has_same_dtype:
        return f"{change} (another shape)"
    return f"{change} (another dtype)" if has_same_shape else f"{change} (shape and dtype)"


def _distance(changes: Sequence[str]) -> int:
    """How much changed; a shape or a dtype alone counts less than both."""
    return sum(3 if _in_words(change).endswith("(shape and dtype)") else 2 for change in changes)


def _how_it_runs(jaxpr: Jaxpr, native: Compiled | None, settings: Config) -> str:
    known = runs_of(jaxpr)
    if native is not None:
        took = f"{1e3 * (known.compile_s or 0.0):.1f} ms"
        what = "machine code from disk" if native.was_cached else "compiled"
        return f"{what} in {took}{', not optimised yet' if native.is_quick else ''}"
    if known.codes:
        if not is_available():
            return "interpreted, since llvmlite is missing"
        return "interpreted, since it could not be compiled (a warning said why)"
    interpreted_s = known.interpreted_s
    if interpreted_s is None:
        return "not run on its own so far"
    if not settings.native:
        return "interpreted, since config(native=False) says so"
    predicted_s = predicted_compile_s(as_compiled(jaxpr))
    return (
        f"interpreted for {interpreted_s:.2g} s so far: compiling it is predicted to take "
        f"{predicted_s:.2g} s, and compile_budget_s is {settings.compile_budget_s:g} s"
    )
