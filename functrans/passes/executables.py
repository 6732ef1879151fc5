"""Programs on plain values as Python functions.

Here: ``generated`` and ``loop_executable``: source with one statement per equation: fast locals
instead of an environment, no dispatch. An equation costs 0.05 us besides its NumPy call, against
0.6 us in the loop of ``passes.evaluate``; generating costs 10 us per equation, which is why a
program's first run is the loop. Which memory is used again says ``passes.reuse``.

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from types import TracebackType
from typing import Any

import numpy as np

from functrans.core.analyses import analysis
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.source import resolve
from functrans.errors import FunctransError
from functrans.passes.reuse import Plan, plan_reuse, ufunc_of


@analysis
def last_uses(jaxpr: Jaxpr) -> list[list[Var]]:
    """Per equation, the variables that no later equation nor the result reads."""
    alive = {v for v in jaxpr.outvars if isinstance(v, Var)}
    found = []
    for eqn in reversed(jaxpr.eqns):
        dying = []
        for var in (*eqn.outputs, *eqn.inputs):
            if isinstance(var, Var) and var not in alive:
                alive.add(var)
                dying.append(var)
        found.append(dying)
    found.reverse()
    return found


_ORDERS = ("<", "<=", ">", ">=")
"""Operators that complex numbers of Python do not have."""


_FREED_SIZE_BYTES = 4096


class _Source:
    """Names of variables and the values that generated source refers to."""

    def __init__(self) -> None:
        self.names: dict[Var, str] = {}
        self.namespace: dict[str, Any] = {}
        self._name_of: dict[int, str] = {}

    def bind(self, var: Var) -> str:
        """The name of a new variable."""
        name = self.names[var] = f"v{len(self.names)}"
        return name

    def value(self, value: object) -> str:
        """The name of a value from outside."""
        name = self._name_of.get(id(value))
        if name is None:
            name = self._name_of[id(value)] = f"k{len(self.namespace)}"
            self.namespace[name] = value  # keeps it alive, so that its id stays its own
        return name

    def atom(self, atom: Atom) -> str:
        """A variable or a literal."""
        if isinstance(atom, Var):
            return self.names[atom]
        value = atom.value
        if type(value) is int or (type(value) is float and abs(value) < np.inf):
            return f"({value!r})"
        return self.value(value)

    def function(
        self, jaxpr: Jaxpr, head: Sequence[str], body: Sequence[str], tail: Sequence[str]
    ) -> Callable[..., Any]:
        """The function ``run`` of some lines, of which ``body`` has one per equation."""
        explain = self.value(partial(_explain, jaxpr, len(head) + 1))
        lines = [
            *head,
            *body,
            *tail,
            " except Exception as error:",
            f"  {explain}(error)",
            "  raise",
        ]
        code = compile("\n".join(lines), f"<program {jaxpr.name}>", "exec")
        exec(code, self.namespace)
        run: Callable[..., Any] = self.namespace.pop("run")  # no cycle through its globals
        return run


def generated(jaxpr: Jaxpr) -> Callable[..., list[Any]]:
    """Compile a program to a Python function."""
    source = _Source()
    parameters = [source.bind(var) for var in (*jaxpr.constvars, *jaxpr.invars)]
    head = [f"def run({', '.join(parameters)}):", " try:"]
    body = _statements(source, jaxpr, "  ", plan_reuse(jaxpr, last_uses(jaxpr)))
    results = ", ".join(map(source.atom, jaxpr.outvars))
    return source.function(jaxpr, head, body, [f"  return [{results}]"])


def _statements(
    source: _Source, jaxpr: Jaxpr, indent: str, plan: Plan | None, kept: Collection[Var] = ()
) -> list[str]:
    """One line per equation; large values are freed after their last use, except ``kept``."""
    lines = []
    for number, (eqn, dying) in enumerate(zip(jaxpr.eqns, last_uses(jaxpr), strict=True)):
        if plan is not None and number in plan.updates:
            line = indent + _update(source, eqn, plan.updates[number])
        else:
            is_copied = plan is not None and number in plan.copies
            line = f"{indent}{_statement(source, eqn)}{'.copy()' if is_copied else ''}"
        freed = [source.names[var] for var in dying if var not in kept and _is_large(var)]
        lines.append(f"{line}; del {', '.join(freed)}" if freed else line)
    return lines


@analysis
def loop_executable(jaxpr: Jaxpr, n_consts: int, n_carry: int) -> Callable[..., tuple[Any, ...]]:
    """The function that runs the program of a loop's body for all iterations.

    Args:
      jaxpr: ``(*consts, *carry, *xs) -> (*carry, *ys)``.
      n_consts: number of arguments that stay the same.
      n_carry: number of arguments that each iteration computes for the next one.

    Returns:
      Function ``(numbers, *jaxpr.consts, *consts, *carry, *xs, *ys) -> carry``: for each of
      ``numbers`` it reads an entry of every sequence in ``xs`` and writes one of every sequence in
      ``ys``.
    """
    source = _Source()
    variables = (*jaxpr.constvars, *jaxpr.invars)
    names = [source.bind(var) for var in variables]
    first_x = len(jaxpr.constvars) + n_consts + n_carry
    carry = names[first_x - n_carry : first_x]
    xs = [f"x{i}" for i in range(len(names) - first_x)]
    ys = [f"y{i}" for i in range(len(jaxpr.outvars) - n_carry)]
    parameters = ["numbers", *names[:first_x], *xs, *ys]
    reads = [f"{name} = {x}[i]" for name, x in zip(names[first_x:], xs, strict=True)]
    plan = plan_reuse(jaxpr, last_uses(jaxpr), variables[first_x - n_carry : first_x])
    own = [source.names[var] for var in variables if plan is not None and var in plan.owned]
    head = [
        f"def run({', '.join(parameters)}):",
        " try:",
        *(f"  {name} = {name}.copy()" for name in own),
        "  for i in numbers:",
        f"   {'; '.join(reads) if reads else 'pass'}",
    ]
    freeable = {*jaxpr.constvars, *jaxpr.invars}
    body = _statements(source, jaxpr, "   ", plan, freeable)
    outs = list(map(source.atom, jaxpr.outvars))
    tail = [f"   {y}[i] = {out}" for y, out in zip(ys, outs[n_carry:], strict=True)]
    moves = [(c, out) for c, out in zip(carry, outs, strict=False) if c != out]
    if moves:
        tail.append(f"   {', '.join([c for c, _ in moves])} = {', '.join([o for _, o in moves])}")
    tail.append(f"  return ({', '.join([*carry, ''])})")
    return source.function(jaxpr, head, body, tail)


def _is_large(var: Var) -> bool:
    """Whether the memory of a value is worth a statement that frees it."""
    aval = var.aval
    return type(aval) is not ShapedArray or aval.size * aval.dtype.itemsize >= _FREED_SIZE_BYTES


def _statement(source: _Source, eqn: Equation) -> str:
    """The statement of an equation."""
    primitive = eqn.primitive
    operands = [source.atom(atom) for atom in eqn.inputs]
    family = primitive.elementwise
    if family is not None and not eqn.params:
        is_complex = any(atom.aval.dtype.kind == "c" for atom in eqn.inputs)
        symbol = "" if is_complex and family.operator in _ORDERS else family.operator
        if symbol == "/" and not eqn.outputs[0].aval.shape:  # Python's numbers may raise
            symbol = ""
        if symbol:
            *left, right = operands
            expression = f"{' '.join((*left, symbol))} {right}"
        else:
            expression = f"{source.value(family.function)}({', '.join(operands)})"
        return f"{source.bind(eqn.outputs[0])} = {expression}"
    if primitive.expression is not None and eqn.inputs[0].aval.shape:
        direct = primitive.expression(*[atom.aval for atom in eqn.inputs], **eqn.params)
        if direct is not None:
            text, values = direct
            expression = text.format(operands[0], *map(source.value, values))
            return f"{source.bind(eqn.outputs[0])} = {expression}"
    function = partial(primitive.impl, **eqn.params) if eqn.params else primitive.impl
    call = f"{source.value(function)}({', '.join(operands)})"
    if not eqn.outputs:
        return call
    if len(eqn.outputs) == 1:
        return f"{source.bind(eqn.outputs[0])} = {call}[0]"
    return f"{', '.join(map(source.bind, eqn.outputs))} = {call}"


def _update(source: _Source, eqn: Equation, position: int) -> str:
    """The statement of an equation that writes into the memory of an operand."""
    primitive = eqn.primitive
    operands = [source.atom(atom) for atom in eqn.inputs]
    if primitive.in_place is not None:
        call = f"{source.value(partial(primitive.in_place, **eqn.params))}({', '.join(operands)})"
        return f"{source.bind(eqn.outputs[0])}, = {call}"
    call = f"{source.value(ufunc_of(primitive))}({', '.join(operands)}, out={operands[position]})"
    return f"{source.bind(eqn.outputs[0])} = {call}"


def _explain(jaxpr: Jaxpr, first_line: int, error: Exception) -> None:
    """Add the equation and the user's line to an error that came out of an executable."""
    traceback: TracebackType | None = error.__traceback__
    if traceback is None:
        return
    number = traceback.tb_lineno - first_line
    if 0 <= number < len(jaxpr.eqns):
        add_place(jaxpr, jaxpr.eqns[number], error)


def add_place(jaxpr: Jaxpr, eqn: Equation, error: Exception) -> None:
    """Add an equation and the user's line to an error, unless the error says where it is."""
    if not getattr(error, "__notes__", None) and not isinstance(error, FunctransError):
        line = resolve(eqn.source)
        where = f" (at {line})" if line is not None else ""
        program = f" of {jaxpr.name}" if jaxpr.name else ""
        error.add_note(f"in operation {eqn.primitive.name}{program}{where}")
