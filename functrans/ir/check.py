"""The type checker of programs.

Here: ``check_jaxpr``, which passes are tested with. Not here: checks of the user's arguments, which
stand beside the transforms.

Layer: ``ir``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.annotations import Annotation
from functrans.core.avals import ShapedArray, aval_of_plain
from functrans.core.boundary import boundary
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.errors import JaxprTypeError
from functrans.ir.parameters import parameters_problem
from functrans.ir.printing import equation_text

_MOST_BYTES = 1 << 47
"""What a process can address; sizes beyond it would not fit the arithmetic of addresses."""


@boundary
def check_jaxpr(jaxpr: Jaxpr) -> None:
    """Check that a program is well formed, in time linear in its size.

    Every variable is bound once, before it is read; constants and literals have the avals they are
    declared with; the abstract evaluation of every equation gives the avals of its outputs;
    parameters are hashable and canonical (``ir.parameters``, and the field ``check`` of
    primitives), so that any evaluator can run it; annotations sit on variables and equations of the
    program; the same holds for all sub-programs. Constants may be tracers.

    Args:
      jaxpr: the program.
    Raises:
      JaxprTypeError: it is ill-formed; the message shows the equation.
    """
    checked: set[Jaxpr] = set()
    pending: list[tuple[Jaxpr, str]] = [(jaxpr, jaxpr.name)]
    while pending:
        current, where = pending.pop()
        if current in checked:
            continue
        checked.add(current)
        _check_program(current, where)
        for i, eqn in enumerate(current.eqns):
            place = f"{where}, equation {i} ({eqn.primitive.name})"
            pending.extend((sub, place) for sub in subjaxprs(eqn.params))


def _check_program(jaxpr: Jaxpr, where: str) -> None:
    """Check one program without its sub-programs."""
    prefix = f"check_jaxpr{f': {where}' if where else ''}"
    bound: set[Any] = set()
    _check_consts(jaxpr, prefix)
    for kind, variables in (("constant", jaxpr.constvars), ("argument", jaxpr.invars)):
        for i, var in enumerate(variables):
            if type(var) is not Var:
                raise JaxprTypeError(f"{prefix}: {kind} {i} is not a Var but {var!r}")
            if var in bound:
                raise JaxprTypeError(f"{prefix}: {kind} {i} ({var}) is bound twice")
            if _is_too_large(var.aval):
                raise JaxprTypeError(f"{prefix}: {kind} {i}, {var.aval}, is larger than any memory")
            bound.add(var)
    for i, eqn in enumerate(jaxpr.eqns):
        problem = _equation_problem(eqn, bound)
        if problem:
            raise JaxprTypeError(f"{prefix}: equation {i}, {equation_text(jaxpr, eqn)}: {problem}")
        bound.update(eqn.outputs)
    for i, atom in enumerate(jaxpr.outvars):
        problem = _atom_problem(atom, bound)
        if problem:
            raise JaxprTypeError(f"{prefix}: result {i}: {problem}")
    if any(type(name) is not str for name in (jaxpr.name, *jaxpr.arg_names)):
        raise JaxprTypeError(f"{prefix}: a name is no text, in {(jaxpr.name, *jaxpr.arg_names)!r}")
    if jaxpr.arg_names and len(jaxpr.arg_names) != len(jaxpr.invars):
        raise JaxprTypeError(
            f"{prefix}: {len(jaxpr.arg_names)} arg_names for {len(jaxpr.invars)} arguments"
        )
    if jaxpr.annotations:
        known = bound | set(jaxpr.eqns)
        for key, values in jaxpr.annotations.items():
            if key not in known:
                raise JaxprTypeError(
                    f"{prefix}: annotation {values!r} is attached to {key!r}, which is not a "
                    "variable or an equation of the program"
                )
            notes = [] if isinstance(key, Var) else values
            for note in notes:
                if isinstance(note, Annotation) and note.kind.place == "result":
                    raise JaxprTypeError(f"{prefix}: {note} is attached to {key!r}, no result")


def _check_consts(jaxpr: Jaxpr, prefix: str) -> None:
    """Constants match the variables they are bound to."""
    if len(jaxpr.consts) != len(jaxpr.constvars):
        raise JaxprTypeError(
            f"{prefix}: {len(jaxpr.constvars)} variables for {len(jaxpr.consts)} constants"
        )
    for i, (var, const) in enumerate(zip(jaxpr.constvars, jaxpr.consts, strict=True)):
        aval = aval_of_plain(const) or getattr(const, "aval", None)  # a tracer knows its aval
        if aval is None:
            raise JaxprTypeError(
                f"{prefix}: constant {i} is no array of numbers but {type(const).__name__}"
            )
        if aval != var.aval:
            raise JaxprTypeError(f"{prefix}: constant {i} is {aval}, its variable {var.aval}")


def _atom_problem(atom: Literal | Var, bound: set[Any]) -> str:
    """What is wrong with an operand or a result; empty when nothing is."""
    if type(atom) is Var:
        return "" if atom in bound else f"{atom} is read before it is bound"
    if type(atom) is not Literal:
        return f"{atom!r} is neither a Var nor a Literal"
    if type(atom.value) is np.ndarray or aval_of_plain(atom.value) != atom.aval:
        return f"Literal {atom.value!r} is declared {atom.aval}, but is {_plain_text(atom.value)}"
    return ""


def _plain_text(value: object) -> str:
    aval = aval_of_plain(value)
    return f"{type(value).__name__} {aval if aval is not None else ''}".strip()


def _equation_problem(eqn: Equation, bound: set[Any]) -> str:
    """What is wrong with an equation; empty when nothing is."""
    for i, atom in enumerate(eqn.inputs):
        problem = _atom_problem(atom, bound)
        if problem:
            return f"operand {i}: {problem}"
    for key, value in eqn.params.items():
        try:
            hash(value)
        except TypeError as error:
            return f"parameter {key} is not hashable ({error})"
    try:
        expected = tuple(eqn.primitive.abstract_eval(*[a.aval for a in eqn.inputs], **eqn.params))
    except Exception as error:  # whatever a rule raises is a finding
        return f"abstract_eval raised {type(error).__name__}: {error}"
    return parameters_problem(eqn) or _outputs_problem(eqn, expected, bound)


def _outputs_problem(eqn: Equation, expected: Sequence[Any], bound: set[Any]) -> str:
    """What is wrong with the outputs of an equation; empty when nothing is."""
    if len(expected) != len(eqn.outputs):
        return f"it has {len(eqn.outputs)} outputs, abstract_eval gives {len(expected)}"
    seen: set[Any] = set()
    for i, (var, aval) in enumerate(zip(eqn.outputs, expected, strict=True)):
        if type(var) is not Var:
            return f"output {i} is not a Var but {var!r}"
        if var in bound or var in seen:
            return f"output {i} is bound twice"
        seen.add(var)
        if var.aval != aval:
            return f"output {i} is declared {var.aval}, abstract_eval gives {aval}"
        if _is_too_large(aval):
            return f"output {i}, {aval}, is larger than any memory"
    return ""


def _is_too_large(aval: object) -> bool:
    """Whether no array has this shape; NumPy counts the other extents of one without elements."""
    if type(aval) is not ShapedArray:
        return False
    return math.prod([n or 1 for n in aval.shape]) * aval.dtype.itemsize >= _MOST_BYTES


def check_same_signature(before: Jaxpr, after: Jaxpr, what: str) -> None:
    """Check that a pass kept the types of arguments and results.

    Raises:
      JaxprTypeError: an aval changed; the message names the pass and the position.
    """
    for kind, old, new in (
        ("arguments", before.in_avals, after.in_avals),
        ("results", before.out_avals, after.out_avals),
    ):
        if old != new:
            raise JaxprTypeError(
                f"{what} changed the {kind} from ({_avals_text(old)}) to ({_avals_text(new)})"
            )


def _avals_text(avals: Sequence[Any]) -> str:
    return ", ".join(map(str, avals))
