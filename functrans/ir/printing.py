"""Programs as text and as Graphviz graphs.

Here: ``pretty``, ``to_dot``, and ``equation_text`` for messages. Not here: reading text back (there
is no parser; ``ir.serialize`` writes and reads files).

Arguments that have a short name keep it; other variables are named ``a``, ``b``, ... in the order
in which they are bound, ``_`` where nothing reads them. Each program has its own names. A
sub-program that occurs again is printed once, marked ``@1``, and then referred to. Nothing printed
depends on addresses or hashes, so that the text of a program is the same in every run::

    { lambda k:f64[3] ; x:f64[3] y:f64[]. let
        a:f64[3] = multiply x k
        b:f64[3] = multiply a y
        c:f64[] = reduce_sum[axes=(0,)] b
      in (c,) }

Layer: ``ir``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any

import numpy as np

from functrans.core.annotations import Annotation
from functrans.core.avals import dtype_name
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.source import Captured, SourceLine

_WIDTH = 100
_INDENT = "    "
_MAX_ARGUMENT_NAME = 20
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_ARGUMENTS = re.compile(r"^(args\[\d+\]|kwargs(?=\[))")
_KEYWORDS = frozenset({"_", "lambda", "let", "in"})

Names = dict[Var, str]


# names ------------------------------------------------------------------------------------------


def letters(number: int) -> str:
    """The name of the n-th variable: ``a``, ..., ``z``, ``aa``, ..."""
    text = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(97 + rest) + text
    return text


def _argument_name(path: str) -> str:
    """An identifier from a key path: ``layers_0_w`` from ``args[1]['layers'][0]['w']``.

    Empty where there is none or a long one (``args[0]``), so that a letter is used.
    """
    text = re.sub(r"\W+", "_", _ARGUMENTS.sub("", path)).strip("_")
    return text if text.isidentifier() and len(text) <= _MAX_ARGUMENT_NAME else ""


def variable_names(jaxpr: Jaxpr) -> Names:
    """Names of all variables that a program binds, as printed."""
    names: Names = {}
    taken = set(_KEYWORDS)
    if len(jaxpr.arg_names) == len(jaxpr.invars):
        for var, path in zip(jaxpr.invars, jaxpr.arg_names, strict=True):
            name = _argument_name(path)
            if name and name not in taken:
                taken.add(name)
                names[var] = name
    read = _read_vars(jaxpr)
    number = 0
    for var in _bound_vars(jaxpr):
        if var in names:
            continue
        if var not in read:
            names[var] = "_"
            continue
        name = letters(number)
        while name in taken:
            number += 1
            name = letters(number)
        names[var] = name
        number += 1
    return names


def _bound_vars(jaxpr: Jaxpr) -> Iterator[Var]:
    """All variables in the order in which they are bound."""
    yield from jaxpr.constvars
    yield from jaxpr.invars
    for eqn in jaxpr.eqns:
        yield from eqn.outputs


def _read_vars(jaxpr: Jaxpr) -> set[Any]:
    """Variables that get a letter: arguments, constants and whatever is read or annotated."""
    read: set[Any] = {*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars, *jaxpr.annotations}
    for eqn in jaxpr.eqns:
        read.update([atom for atom in eqn.inputs if type(atom) is Var])
    return read


# values -----------------------------------------------------------------------------------------


def literal_text(literal: Literal) -> str:
    """``2.0`` for a Python scalar, ``2.0:f32[]`` for a NumPy scalar."""
    return str(literal.value) if literal.aval.weak else f"{literal.value!s}:{literal.aval}"


def atom_text(atom: Atom, names: Mapping[Var, str]) -> str:
    """A variable's name or a literal's value; ``?`` for a variable that nothing binds."""
    return literal_text(atom) if isinstance(atom, Literal) else names.get(atom, "?")


def callable_text(value: object) -> str:
    """Name of a function: ``<callable model.loss>``."""
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    return f"<callable {getattr(value, '__module__', None) or '?'}.{name}>"


def param_text(value: object) -> str:
    """A static parameter that holds no program."""
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, np.dtype):
        return dtype_name(value)
    if isinstance(value, np.generic):
        return f"{value!s}:{dtype_name(value.dtype)}[]"
    if type(value) is tuple:
        return _tuple_text([param_text(item) for item in value])
    text = str(value)
    if callable(value) or _ADDRESS.search(text):
        return callable_text(value) if callable(value) else f"<{type(value).__qualname__}>"
    return text


def _tuple_text(items: Sequence[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def annotation_text(values: Sequence[Any]) -> str:
    """What is attached to a variable or an equation: ``{clip_gradient, 'label'}``."""
    return "{" + ", ".join(map(_annotation_item, values)) + "}"


def _annotation_item(value: object) -> str:
    if isinstance(value, Annotation):
        return str(value)
    if callable(value):
        return str(getattr(value, "__name__", None) or type(value).__name__)
    return param_text(value)


# the user's lines -------------------------------------------------------------------------------


def line_resolver() -> Callable[[Captured | SourceLine | None], SourceLine | None]:
    """A function like ``source.resolve`` that takes a function's line table apart only once."""
    tables: dict[int, tuple[list[int], list[int], CodeType]] = {}
    known: dict[tuple[int, int], SourceLine] = {}

    def resolve(captured: Captured | SourceLine | None) -> SourceLine | None:
        if captured is None or isinstance(captured, SourceLine):
            return captured
        code, offset = captured
        key = (id(code), offset)  # hashing a code object takes time in proportion to its size
        found = known.get(key)
        if found is None:
            table = tables.get(id(code))
            if table is None:
                rows = [(start, line) for start, _, line in code.co_lines() if line is not None]
                table = tables[id(code)] = ([r[0] for r in rows], [r[1] for r in rows], code)
            starts, lines, _ = table
            position = bisect_right(starts, offset) - 1
            line = lines[position] if position >= 0 else code.co_firstlineno
            found = known[key] = SourceLine(code.co_filename, line, code.co_qualname)
        return found

    return resolve


# text -------------------------------------------------------------------------------------------


def pretty(jaxpr: Jaxpr, source: bool = False, hooks: bool = True) -> str:
    """The program as text, in time linear in its size.

    Args:
      jaxpr: the program.
      source: write the user's line behind each equation.
      hooks: write annotations behind the variables and equations that carry them.
    Returns:
      Lines of text, the same in every run.
    """
    return "\n".join(_Printer(jaxpr, source, hooks).program(jaxpr, ""))


def equation_text(jaxpr: Jaxpr, eqn: Equation) -> str:
    """One equation of a program on one line, sub-programs left out; for messages."""
    return equation_line(eqn, variable_names(jaxpr))


def equation_line(eqn: Equation, names: Mapping[Var, str]) -> str:
    """One equation on one line, with the names of its program; sub-programs left out."""
    params = ", ".join(f"{key}={_short(value)}" for key, value in eqn.params.items())
    outputs = " ".join(f"{atom_text(v, names)}:{v.aval}" for v in eqn.outputs) or "()"
    head = f"{eqn.primitive.name}[{params}]" if params else eqn.primitive.name
    return " ".join([f"{outputs} = {head}", *(atom_text(a, names) for a in eqn.inputs)])


def _short(value: int | str | tuple[int, ...]) -> str:
    if isinstance(value, Jaxpr):
        return "{...}"
    if type(value) is tuple:
        return _tuple_text([_short(item) for item in value])
    return param_text(value)


def _repeated_subjaxprs(jaxpr: Jaxpr) -> dict[Jaxpr, int]:
    """Sub-programs that occur more than once; the values are 0, no number yet."""
    counts: dict[Jaxpr, int] = {}
    pending = [jaxpr]
    while pending:
        current = pending.pop()
        for eqn in current.eqns:
            for sub in subjaxprs(eqn.params):
                counts[sub] = counts.get(sub, 0) + 1
                if counts[sub] == 1:
                    pending.append(sub)
    return dict.fromkeys((sub for sub, count in counts.items() if count > 1), 0)


class _Printer:
    """Settings of one printout, and the sub-programs that were printed already."""

    def __init__(self, jaxpr: Jaxpr, source: bool, hooks: bool) -> None:
        self.resolve = line_resolver() if source else None
        self.hooks = hooks
        self.repeated = _repeated_subjaxprs(jaxpr)  # set to its number when it is printed
        self.printed = 0

    def program(self, jaxpr: Jaxpr, indent: str) -> list[str]:
        """Lines of a program; the first has no indentation."""
        names = variable_names(jaxpr)
        notes: Mapping[Any, tuple[Any, ...]] = jaxpr.annotations if self.hooks else {}
        consts = [self._binding(var, names, notes) for var in jaxpr.constvars]
        args = [self._binding(var, names, notes) for var in jaxpr.invars]
        lines = _wrapped(["{ lambda", *consts, ";", *args], ". let", indent)
        inner = indent + _INDENT
        for eqn in jaxpr.eqns:
            lines.extend(self._equation(eqn, names, notes, inner))
        outs = [atom_text(atom, names) for atom in jaxpr.outvars]
        results = [f"{text}," for text in outs[:-1]] + [
            f"{text}," if len(outs) == 1 else text for text in outs[-1:]
        ]
        lines.extend(_results(results, indent))
        return lines

    def _binding(self, var: Var, names: Names, notes: Mapping[Any, tuple[Any, ...]]) -> str:
        """``a:f64[3]``, and what is attached to it."""
        text = f"{names[var]}:{var.aval}"
        return text + annotation_text(notes[var]) if notes and var in notes else text

    def _equation(
        self, eqn: Equation, names: Names, notes: Mapping[Any, tuple[Any, ...]], indent: str
    ) -> list[str]:
        """Lines of one equation."""
        outputs = " ".join([self._binding(var, names, notes) for var in eqn.outputs]) or "()"
        operands = "".join([" " + atom_text(atom, names) for atom in eqn.inputs])
        tail = operands + self._remarks(eqn, notes)
        head = f"{indent}{outputs} = {eqn.primitive.name}"
        if not eqn.params:
            return [head + tail]
        if next(subjaxprs(eqn.params), None) is None:
            params = ", ".join([f"{k}={param_text(value)}" for k, value in eqn.params.items()])
            return [f"{head}[{params}]{tail}"]
        lines = [f"{head}["]
        inner = indent + _INDENT
        for key, value in eqn.params.items():
            first, *rest = self._param(value, inner)
            lines.append(f"{inner}{key}={first}")
            lines.extend(rest)
        lines.append(f"{indent}]{tail}")
        return lines

    def _param(self, value: object, indent: str) -> list[str]:
        """Lines of a parameter; the first has no indentation."""
        if isinstance(value, Jaxpr):
            number = self.repeated.get(value)
            if number is None:
                return self.program(value, indent)
            if number:
                return [f"@{number}"]
            self.printed += 1
            self.repeated[value] = self.printed
            first, *rest = self.program(value, indent)
            return [f"@{self.repeated[value]} {first}", *rest]
        if type(value) is not tuple or not any(isinstance(item, Jaxpr) for item in value):
            return [param_text(value)]
        lines = ["("]
        for item in value:
            first, *rest = self._param(item, indent + _INDENT)
            lines.append(indent + _INDENT + first)
            lines.extend(rest)
            lines[-1] += ","
        lines.append(f"{indent})")
        return lines

    def _remarks(self, eqn: Equation, notes: Mapping[Any, tuple[Any, ...]]) -> str:
        """Annotations, name scope and the user's line."""
        text = f" {annotation_text(notes[eqn])}" if notes and eqn in notes else ""
        remarks = [eqn.scope] if eqn.scope else []
        if self.resolve is not None:
            line = self.resolve(eqn.source)
            if line is not None:
                remarks.append(str(line))
        return f"{text}  # {', '.join(remarks)}" if remarks else text


def _wrapped(words: list[str], end: str, indent: str) -> list[str]:
    """Words filled into lines; all but the first line are indented under the opening brace."""
    words[-1] += end
    lines = []
    current = words[0]
    room = _WIDTH - len(indent)
    for word in words[1:]:
        if len(current) + 1 + len(word) > room:
            lines.append(current)
            current = f"{indent}  {_INDENT}{word}"
            room = _WIDTH
        else:
            current = f"{current} {word}"
    return [*lines, current]


def _results(outs: list[str], indent: str) -> list[str]:
    """``in (c, d) }``, filled into lines."""
    if not outs:
        return [f"{indent}  in () }}"]
    first, *rest = _wrapped([f"in ({outs[0]}", *outs[1:]], ") }", indent)
    return [f"{indent}  {first}", *rest]


# graph ------------------------------------------------------------------------------------------


def to_dot(jaxpr: Jaxpr) -> str:
    """The program as a Graphviz digraph.

    One node an argument, constant, literal result or equation; the sub-programs of an equation are
    clusters, joined to it by a dashed edge. Edges carry avals.
    """
    lines = ["digraph jaxpr {", "  rankdir=TB;", '  node [shape=box, fontname="monospace"];']
    _graph(jaxpr, "p", "  ", lines)
    return "\n".join([*lines, "}"])


def _graph(jaxpr: Jaxpr, prefix: str, indent: str, lines: list[str]) -> None:
    """Append the nodes and edges of one program; node names begin with ``prefix``."""
    names = variable_names(jaxpr)
    home: dict[Var, str] = {}

    def node(name: str, label: str, style: str = "") -> None:
        lines.append(f"{indent}{name} [label={_quoted(label)}{style}];")

    def edge(atom: Atom, target: str) -> None:
        if isinstance(atom, Var) and atom in home:
            lines.append(f"{indent}{home[atom]} -> {target} [label={_quoted(str(atom.aval))}];")

    for i, var in enumerate(jaxpr.constvars):
        home[var] = f"{prefix}_c{i}"
        node(home[var], f"{names[var]}:{var.aval}", ", shape=ellipse, style=dashed")
    for i, var in enumerate(jaxpr.invars):
        home[var] = f"{prefix}_i{i}"
        node(home[var], f"{names[var]}:{var.aval}", ", shape=ellipse")
    for i, eqn in enumerate(jaxpr.eqns):
        name = f"{prefix}_e{i}"
        for atom in dict.fromkeys(eqn.inputs):
            edge(atom, name)
        notes = [annotation_text(jaxpr.annotations[k]) for k in (*eqn.outputs, eqn)
                 if k in jaxpr.annotations]  # fmt: skip
        node(name, "\n".join([equation_line(eqn, names), *notes]))
        home.update(dict.fromkeys(eqn.outputs, name))
        for j, sub in enumerate(subjaxprs(eqn.params)):
            inner = f"{name}_s{j}"
            lines.append(f"{indent}subgraph cluster_{inner} {{")
            lines.append(f"{indent}  label={_quoted(sub.name or eqn.primitive.name)};")
            _graph(sub, inner, indent + "  ", lines)
            lines.append(f"{indent}}}")
            lines.append(f"{indent}{name} -> {inner}_o0 [style=dashed];")
    node(f"{prefix}_o0", _tuple_text([atom_text(a, names) for a in jaxpr.outvars] or [""])
         if jaxpr.outvars else "()", ", shape=ellipse, peripheries=2")  # fmt: skip
    for atom in dict.fromkeys(jaxpr.outvars):
        edge(atom, f"{prefix}_o0")


def _quoted(text: str) -> str:
    """A Graphviz string: quotes and backslashes escaped, lines left-justified."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\l") + ("\\l" if "\n" in text else "") + '"'
