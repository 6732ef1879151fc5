"""The imperative graph as a program and as a picture.

Here: ``recorded_program`` (a Jaxpr of everything below some nodes, hooks as annotations) and how it
is drawn. Not here: printing of programs (``ir.printing``), nodes (``autograd.nodes``).

A node keeps of its operands only what its derivative reads. Leaves are arguments of the program;
so is an operand that was not kept: it is called ``unkept0``, ``unkept1``, ...

Layer: ``autograd``.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from functrans.control.native import jit_p
from functrans.ir.avals import PYTHON_SCALARS, Aval, ShapedArray
from functrans.ir.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.ir.primitive import multilinear
from functrans.ir.printing import annotation_text, atom_text, equation_line, variable_names
from functrans.passes.nodes import OUTPUT, LinearProgram, Node, ordered_nodes
from functrans.trace import Tracer, aval_of


@dataclass(frozen=True, slots=True)
class HookNote:
    """A hook as an annotation: its kind and the function.

    Attributes:
      kind: ``tensor hook``, ``node pre-hook``, ``node hook``, ``post-accumulate hook``.
      function: what is called.
    """

    kind: str
    function: Any

    def __str__(self) -> str:
        """``tensor hook clip``."""
        name = getattr(self.function, "__name__", None) or type(self.function).__name__
        return f"{self.kind} {name}"


class Mark(str):
    """An annotation that prints without quotes: the name of a node, ``retain_grad``."""

    __slots__ = ()

    @property
    def __name__(self) -> str:
        """What is printed."""
        return str(self)

    def __call__(self) -> None:
        """Annotations that can be called are printed by name; there is nothing to call."""


class _Recorded:
    """A program that is built from nodes."""

    def __init__(self) -> None:
        self.invars: list[Var] = []
        self.names: list[str] = []
        self.consts: dict[Var, Any] = {}
        self.eqns: list[Equation] = []
        self.atoms: dict[Node, Atom] = {}
        self.results: dict[Node, tuple[Var, ...]] = {}
        self.constants: dict[int, tuple[Var, Any]] = {}
        self.annotations: dict[Any, tuple[Any, ...]] = {}
        self.unkept = 0

    def argument(self, aval: Aval, name: str) -> Var:
        """A new argument."""
        var = Var(aval)
        self.invars.append(var)
        self.names.append(name)
        return var

    def constant(self, value: Any, aval: Aval) -> Atom:
        """An operand that has no node, of a type if it was not kept."""
        if type(value) in PYTHON_SCALARS:
            return Literal(value)
        if isinstance(value, np.generic):
            return Literal(value, ShapedArray((), value.dtype))
        if isinstance(value, (np.ndarray, Tracer)):
            known = self.constants.get(id(value))
            if known is None:
                known = self.constants[id(value)] = (Var(aval_of(value)), value)
                self.consts[known[0]] = value
            return known[0]
        self.unkept += 1
        return self.argument(aval.strong(), f"unkept{self.unkept - 1}")

    def note(self, place: Any, notes: Sequence[Any]) -> None:
        """Attach something to a variable or an equation."""
        if notes:
            self.annotations[place] = (*self.annotations.get(place, ()), *notes)

    def add(self, node: Any) -> None:
        """Append the equation of a node."""
        if node.primitive is OUTPUT:
            (main,) = node.parents
            self.atoms[node] = self.results[main][node.params["index"]]
            return
        if node.primitive is None:
            var = self.argument(node.aval, "")
            self.atoms[node] = var
            self.note(var, list(_notes_of_result(node)))
            self.note(var, list(_notes_of_node(node)))
            return
        values, parents = _operands(node), node.parents
        primitive, params = node.primitive, node.params
        own = node.aval if node.shape is not None else node.dtype[0]
        in_avals = [own] * len(parents)
        program = getattr(node, "subprogram", lambda: None)()
        if program is not None:
            primitive, params = jit_p, {"jaxpr": program, "name": program.name}
            in_avals = program.in_avals
            pairs = zip(values, parents, strict=True)
            arrays = [(v, p) for v, p in pairs if p is not None or hasattr(v, "shape")]
            if len(arrays) == len(in_avals):
                values, parents = map(list, zip(*arrays, strict=True))
        inputs = tuple(
            [
                self.constant(value, aval) if parent is None else self.atoms[parent]
                for value, parent, aval in zip(values, parents, in_avals, strict=True)
            ]
        )
        avals = [node.aval] if node.shape is not None else node.dtype
        outputs = tuple([Var(aval.strong()) for aval in avals])
        eqn = Equation(primitive, inputs, params, outputs, node.source)
        self.eqns.append(eqn)
        self.results[node] = outputs
        if len(outputs) == 1 and node.shape is not None:
            self.atoms[node] = outputs[0]
        if not hasattr(node, "name"):
            return
        for var, notes in zip(outputs, _notes_of_results(node), strict=True):
            self.note(var, notes)
        self.note(eqn, [Mark(node.name()), *_notes_of_node(node)])


def _operands(node: Any) -> Sequence[Any]:
    """The values of a node's operands, ``None`` where they were not kept."""
    n = len(node.parents)
    unknown: Sequence[Any] = (None,) * n
    values = getattr(node, "operands", None)
    if values is not None:
        return values if len(values) == n else unknown
    saved = node.saved
    if isinstance(saved, LinearProgram):
        return getattr(node, "primals", None) or unknown
    if node.primitive.elementwise is not None and saved is not None:
        return saved[:n]  # type: ignore[no-any-return]  # a list
    if not saved:
        return unknown
    if type(saved[0]) is tuple:
        return saved[0]
    is_kept = node.primitive.jvp is multilinear and len(saved) == n
    return saved if is_kept else unknown


def _notes_of_result(node: Any) -> Iterator[Any]:
    hooks = getattr(node, "tensor_hooks", None) or {}
    yield from [HookNote("tensor hook", hook) for hook in hooks.values()]
    if getattr(node, "retains", None) is not None:
        yield Mark("retain_grad")


def _notes_of_results(node: Any) -> list[list[Any]]:
    """What is attached to each result."""
    if node.shape is not None:
        return [list(_notes_of_result(node))]
    notes: list[list[Any]] = [[] for _ in node.dtype]
    for i, hooks in (node.output_hooks or {}).items():
        notes[i].extend([HookNote("tensor hook", hook) for hook in hooks.values()])
    for i in node.output_retains or ():
        notes[i].append(Mark("retain_grad"))
    return notes


def _notes_of_node(node: Any) -> Iterator[Any]:
    for kind, table in (
        ("node pre-hook", "prehooks"),
        ("node hook", "posthooks"),
        ("post-accumulate hook", "post_accumulate"),
    ):
        hooks = getattr(node, table, None) or {}
        yield from [HookNote(kind, hook) for hook in hooks.values()]


def recorded_program(roots: Sequence[Node]) -> Jaxpr:
    """The program of everything that nodes depend on.

    Args:
      roots: nodes of the results; all results of a node with several.

    Returns:
      A program with hooks as annotations.
    """
    program = _Recorded()
    for node in ordered_nodes(roots):
        program.add(node)
    outs: list[Atom] = []
    for root in roots:
        atom = program.atoms.get(root)
        outs.extend(program.results[root] if atom is None else (atom,))
    return Jaxpr(
        constvars=tuple(program.consts),
        consts=tuple(program.consts.values()),
        invars=tuple(program.invars),
        eqns=tuple(program.eqns),
        outvars=tuple(outs),
        name="recorded",
        arg_names=tuple(program.names),
        annotations=program.annotations,
    )


# pictures ----------------------------------------------------------------------------------------


def drawn_as_dot(roots: Sequence[Node]) -> str:
    """The graph below nodes as a Graphviz digraph; hooks stand below the equations."""
    return recorded_program(roots).to_dot()


_WIDTH, _HEIGHT, _GAP = 7.5, 22, 34  # of a letter, of a line, between rows; pixels


@dataclass(slots=True)
class _Box:
    lines: list[str]
    kind: str
    row: int
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return _WIDTH * max(map(len, self.lines)) + 16

    @property
    def height(self) -> float:
        return _HEIGHT * len(self.lines)


def drawn_as_html(roots: Sequence[Node]) -> str:
    """The graph below nodes as a page of HTML: a picture and the program.

    Values flow downwards. Boxes with hooks have a thick border; nothing is loaded from elsewhere.
    """
    jaxpr = recorded_program(roots)
    boxes, edges = _boxes(jaxpr)
    rows: dict[int, list[_Box]] = {}
    for box in boxes:
        rows.setdefault(box.row, []).append(box)
    width, y = 0.0, 10.0
    for row in sorted(rows):
        x = 10.0
        for box in rows[row]:
            box.x, box.y = x, y
            x += box.width + _GAP
        width = max(width, x)
        y += max(box.height for box in rows[row]) + _GAP
    shapes = [
        f'<line x1="{a.x + a.width / 2:.0f}" y1="{a.y + a.height:.0f}" x2="{b.x + b.width / 2:.0f}"'
        f' y2="{b.y:.0f}"/>'
        for a, b in edges
    ]
    for box in boxes:
        shapes.append(
            f'<rect class="{box.kind}" x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" '
            f'height="{box.height:.0f}" rx="4"/>'
        )
        shapes.extend(
            f'<text x="{box.x + 8:.0f}" y="{box.y + _HEIGHT * (i + 0.7):.0f}">'
            f"{html.escape(line)}</text>"
            for i, line in enumerate(box.lines)
        )
    style = (
        "text{font:12px monospace} rect{fill:#f4f4f4;stroke:#555} rect.argument{fill:#e4f0ff} "
        "rect.result{fill:#e6f6e6} rect.hooked{stroke:#c22;stroke-width:3} line{stroke:#777}"
    )
    return "\n".join(
        [
            "<!DOCTYPE html>",
            f'<html lang="en"><head><meta charset="utf-8"><title>{jaxpr.name}</title>',
            f"<style>{style}</style></head><body>",
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{y:.0f}">',
            *shapes,
            "</svg>",
            f"<pre>{html.escape(str(jaxpr))}</pre>",
            "</body></html>",
        ]
    )


def _boxes(jaxpr: Jaxpr) -> tuple[list[_Box], list[tuple[_Box, _Box]]]:
    """Arguments, equations and results, each in the row below all that it reads."""
    names = variable_names(jaxpr)
    home: dict[Any, _Box] = {}
    edges: list[tuple[_Box, _Box]] = []
    boxes: list[_Box] = []

    def box(text: str, kind: str, reads: Sequence[Any], places: Sequence[Any]) -> _Box:
        sources = [home[atom] for atom in dict.fromkeys(reads) if atom in home]
        notes = [annotation_text(jaxpr.annotations[p]) for p in places if p in jaxpr.annotations]
        is_hooked = any(
            type(note) is HookNote or note == "retain_grad"
            for place in places
            for note in jaxpr.annotations.get(place, ())
        )
        made = _Box(
            [text, *notes],
            "hooked" if is_hooked else kind,
            1 + max((source.row for source in sources), default=-1),
        )
        boxes.append(made)
        edges.extend((source, made) for source in sources)
        return made

    for var in (*jaxpr.constvars, *jaxpr.invars):
        home[var] = box(f"{names[var]}:{var.aval}", "argument", (), (var,))
    for eqn in jaxpr.eqns:
        made = box(equation_line(eqn, names), "equation", eqn.inputs, (*eqn.outputs, eqn))
        home.update(dict.fromkeys(eqn.outputs, made))
    box(", ".join([atom_text(a, names) for a in jaxpr.outvars]), "result", jaxpr.outvars, ())
    return boxes, edges
