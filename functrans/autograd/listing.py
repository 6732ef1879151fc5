"""The imperative graph as a program.

Here: ``recorded_program`` (a Jaxpr of everything below some nodes, hooks as annotations), and its
form for Graphviz. Not here: printing of programs (``ir.printing``), pages with a picture
(``autograd.pictures``), nodes (``autograd.nodes``).

A node keeps of its operands only what its derivative reads. Leaves are arguments of the program;
so is an operand that was not kept: it is called ``unkept0``, ``unkept1``, ...

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.control.native import jit_p
from functrans.core.annotations import NODE_NAME, Annotation
from functrans.core.avals import PYTHON_SCALARS, Aval, ShapedArray
from functrans.core.dispatch import Tracer, aval_of
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.primitive import multilinear
from functrans.passes.nodes import OUTPUT, LinearProgram, Node, ordered_nodes


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

    def note(self, place: object, notes: Sequence[Any]) -> None:
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
            self.note(var, sorted(node.annotations, key=_when))
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
        notes = sorted(node.annotations, key=_when)
        for i, var in enumerate(outputs):
            self.note(var, [n for n in notes if n.kind.place == "result" and n.result == i])
        if hasattr(node, "name"):
            name = Annotation(NODE_NAME, node.name())
            self.note(eqn, [name, *[n for n in notes if n.kind.place != "result"]])


def _when(note: Annotation) -> int:
    return note.kind.when


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
        return saved[:n]
    if not saved:
        return unknown
    if type(saved[0]) is tuple:
        return saved[0]
    is_kept = node.primitive.jvp is multilinear and len(saved) == n
    return saved if is_kept else unknown


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


def drawn_as_dot(roots: Sequence[Node]) -> str:
    """The graph below nodes as a Graphviz digraph; hooks stand below the equations."""
    return recorded_program(roots).to_dot()
