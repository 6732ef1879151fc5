"""The simplify pass: the same results, to the last bit, from fewer equations.

Here: ``simplify`` and the passes it is made of (the tuple ``PIPELINE``): sub-programs first, then
one forward walk that folds constants, applies exact algebra and merges common subexpressions, then
removal of dead code (``passes.dce``). Not here: the algebraic rules (``passes.algebra``).

Each pass is a pure function of a Jaxpr that keeps the avals of arguments and results, returns the
same object when there is nothing to do, and takes time linear in the program. Simplifying twice
changes nothing more.

Effects and annotations stay: an equation with an effect is never dropped, merged or folded; a live
variable or equation with annotations is never merged, folded or looked through, and no rule drops
an operand that depends on one. Dead annotated equations go, with their annotations.

"The same bits" is said of values: which NaN a NaN is, and the order in which NumPy adds, may depend
on the memory layout that an operation finds.

Only scalars are folded: captured arrays are inputs of the program, since their owner may write to
them between two evaluations.

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans.core.analyses import analysis, remember
from functrans.core.avals import ShapedArray, aval_of_plain
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.state import current_config
from functrans.core.values import Array
from functrans.ir.check import check_jaxpr, check_same_signature
from functrans.passes.algebra import rewrite_exactly
from functrans.passes.dce import drop_dead, has_annotations
from functrans.primitives.elementwise import power_p

_LARGEST_INT = np.iinfo(np.int64).max


@analysis
def simplify(jaxpr: Jaxpr) -> Jaxpr:
    """The program with constants folded, common subexpressions merged and dead code removed.

    Args:
      jaxpr: the program; the result is cached with it.
    Returns:
      A program with the same arguments, results, effects and live annotations, which computes the
      same bits. Unused constants are gone, arguments are not.
    """
    result = jaxpr
    for step in PIPELINE:
        before, result = result, step(result)
        if current_config.get().check_jaxprs:
            check_jaxpr(result)
            check_same_signature(before, result, step.__name__)
    remember(result, simplify, result)
    return result


# sub-programs -----------------------------------------------------------------------------------


def simplify_subprograms(jaxpr: Jaxpr) -> Jaxpr:
    """Simplify the programs in the parameters of all equations, each once."""
    eqns = [
        eqn if next(subjaxprs(eqn.params), None) is None else _with_simple_params(eqn)
        for eqn in jaxpr.eqns
    ]
    return _with_equations(jaxpr, eqns, jaxpr.outvars)


def _with_simple_params(eqn: Equation) -> Equation:
    params = {key: _simplified_param(value) for key, value in eqn.params.items()}
    if all(params[key] is value for key, value in eqn.params.items()):
        return eqn
    return replace(eqn, params=params)


def _simplified_param(value: object) -> Any:
    if isinstance(value, Jaxpr):
        return simplify(value)
    if type(value) is tuple:
        items = tuple([simplify(item) if isinstance(item, Jaxpr) else item for item in value])
        return value if all(a is b for a, b in zip(items, value, strict=True)) else items
    return value


# the forward walk -------------------------------------------------------------------------------


class Walk:
    """What a forward walk over a program has learnt so far.

    Attributes:
      annotations: those of the program.
      replaced: what stands for variables that are no longer bound.
      makers: per variable its equation, if that has one output, no effect and no annotation.
      values: outputs by what computes them, for merging.
      watched: variables that carry an annotation, or depend on one that does.
    """

    __slots__ = ("annotations", "makers", "replaced", "values", "watched")

    def __init__(self, annotations: Mapping[Any, tuple[Any, ...]]) -> None:
        self.annotations = annotations
        self.replaced: dict[Var, Atom] = {}
        self.makers: dict[Var, Equation] = {}
        self.values: dict[Hashable, tuple[Var, ...]] = {}
        self.watched: set[Any] = {key for key in annotations if type(key) is Var}

    def current(self, atom: Atom) -> Atom:
        """The atom that stands for an atom of the original program."""
        return self.replaced.get(atom, atom) if isinstance(atom, Var) else atom

    def maker(self, atom: Atom) -> Equation | None:
        """The equation of which the atom is the only output, if rules may look through it."""
        return self.makers.get(atom) if isinstance(atom, Var) else None

    def may_drop(self, atom: Atom) -> bool:
        """Whether nothing that an operand depends on carries an annotation."""
        return atom not in self.watched

    def is_opaque(self, eqn: Equation, original: Equation) -> bool:
        """Whether an equation must stay as it is."""
        if eqn.primitive.effects:
            return True
        for sub in subjaxprs(eqn.params):
            if sub.effects or has_annotations(sub):
                return True
        notes = self.annotations
        return bool(notes) and (original in notes or any(var in notes for var in eqn.outputs))

    def keep(self, eqn: Equation, is_opaque: bool) -> None:
        """Note an equation that stays in the program."""
        if not is_opaque and len(eqn.outputs) == 1:
            self.makers[eqn.outputs[0]] = eqn
        if self.annotations and (is_opaque or any(atom in self.watched for atom in eqn.inputs)):
            self.watched.update(eqn.outputs)


Found = Equation | tuple[Atom, ...] | None
Step = Callable[[Equation, Walk], Found]
"""Returns what stands for the equation's outputs, or an equation with the same outputs, which is
looked at again, or ``None``."""


def walk_forward(jaxpr: Jaxpr, steps: Sequence[Step]) -> Jaxpr:
    """Apply steps to each equation until none applies, operands first.

    Args:
      jaxpr: the program.
      steps: in the order in which they are tried; ``find_common`` only as the last one.
    """
    walk = Walk(jaxpr.annotations)
    eqns: list[Equation] = []
    renewed: dict[Any, Equation] = {}
    for original in jaxpr.eqns:
        eqn = original
        if walk.replaced:
            inputs = tuple([walk.current(atom) for atom in original.inputs])
            if any(a is not b for a, b in zip(inputs, original.inputs, strict=True)):
                eqn = replace(original, inputs=inputs)
        is_opaque = walk.is_opaque(eqn, original)
        found: Found = None if is_opaque else _apply(eqn, steps, walk)
        if type(found) is tuple:
            walk.replaced.update(zip(eqn.outputs, found, strict=True))
            continue
        if found is not None:
            eqn = found  # type: ignore[assignment]  # a tuple was handled above
        if eqn is not original and original in jaxpr.annotations:
            renewed[original] = eqn
        eqns.append(eqn)
        walk.keep(eqn, is_opaque)
    outvars = tuple([walk.current(atom) for atom in jaxpr.outvars])
    return _with_equations(jaxpr, eqns, outvars, renewed)


def _apply(eqn: Equation, steps: Sequence[Step], walk: Walk) -> Found:
    """What the steps make of an equation."""
    while True:
        for step in steps:
            found = step(eqn, walk)
            if type(found) is tuple:
                return found
            if found is not None:
                eqn = found  # type: ignore[assignment]  # a tuple was handled above
                break
        else:
            return eqn


def _with_equations(
    jaxpr: Jaxpr,
    eqns: Sequence[Equation],
    outvars: tuple[Atom, ...],
    renewed: Mapping[Any, Equation] | None = None,
) -> Jaxpr:
    """The program with other equations; annotations move to those that replace others."""
    is_same = len(eqns) == len(jaxpr.eqns) and all(
        a is b for a, b in zip(eqns, jaxpr.eqns, strict=True)
    )
    if is_same and all(a is b for a, b in zip(outvars, jaxpr.outvars, strict=True)):
        return jaxpr
    annotations = jaxpr.annotations
    if annotations:
        if renewed is None:  # one for one
            renewed = dict(zip(jaxpr.eqns, eqns, strict=True))
        annotations = {renewed.get(key, key): values for key, values in annotations.items()}
    return replace(jaxpr, eqns=tuple(eqns), outvars=outvars, annotations=annotations, cache={})


# constants --------------------------------------------------------------------------------------


def fold(eqn: Equation, walk: Walk) -> Found:
    """Evaluate an equation of literals whose results are scalars.

    An evaluation that raises is left to the program, which then raises when it runs.
    """
    for atom in eqn.inputs:
        if type(atom) is not Literal:
            return None
    if not eqn.inputs or "axis_name" in eqn.params:  # a collective depends on the batch around it
        return None
    if any(var.aval.shape for var in eqn.outputs if type(var.aval) is ShapedArray) or not all(
        _is_data(value) for value in eqn.params.values()
    ):
        return None
    operands = [atom.value for atom in eqn.inputs]  # type: ignore[union-attr]  # literals
    if all(type(value) is int for value in operands) and eqn.primitive is power_p:
        return None  # a Python integer may grow without bound
    try:
        with np.errstate(all="ignore"):
            results = eqn.primitive.impl(*operands, **eqn.params)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return None
    literals = tuple([_literal(result) for result in results])
    for literal, var in zip(literals, eqn.outputs, strict=True):
        if literal is None or literal.aval != var.aval:
            return None
    return literals  # type: ignore[return-value]  # None was ruled out


def _is_data(value: object) -> bool:
    """Whether a parameter is neither a program nor a function, whose evaluation may not end."""
    if type(value) is tuple:
        return all(map(_is_data, value))
    return not isinstance(value, Jaxpr) and not callable(value)


def _literal(value: Array | complex) -> Literal | None:
    """The literal of a scalar result; ``None`` for what no literal can hold."""
    if isinstance(value, np.ndarray):
        value = value[()]
    if isinstance(value, int) and abs(value) > _LARGEST_INT:
        return None
    return Literal(value) if aval_of_plain(value) is not None else None


# algebra ----------------------------------------------------------------------------------------


def apply_algebra(eqn: Equation, walk: Walk) -> Found:
    """Apply the rules of ``passes.algebra``."""
    found = rewrite_exactly(eqn, walk)
    return found if found is None or type(found) is Equation else (found,)  # type: ignore[return-value]  # an atom


# common subexpressions --------------------------------------------------------------------------


def find_common(eqn: Equation, walk: Walk) -> Found:
    """The outputs of an earlier equation that computes the same; else note this one."""
    params = eqn.params
    key = (
        eqn.primitive,
        eqn.inputs,
        tuple([(name, exact_key(params[name])) for name in sorted(params)]) if params else (),
    )
    earlier = walk.values.setdefault(key, eqn.outputs)
    return None if earlier is eqn.outputs else earlier


_COMPARED_BY_VALUE = frozenset({int, str, bytes, type(None)})


def exact_key(value: Any) -> Hashable:
    """A key that tells ``1``, ``1.0``, ``True`` apart, ``0.0`` and ``-0.0``; NaN equals NaN."""
    cls = type(value)
    if cls is tuple:
        return (cls, tuple([exact_key(item) for item in value]))
    if cls in _COMPARED_BY_VALUE:
        return (cls, value)
    if cls is float or cls is complex or isinstance(value, np.generic):
        return (cls, repr(value))
    return (cls, value)


# dead code --------------------------------------------------------------------------------------


# the pipeline -----------------------------------------------------------------------------------


def simplify_forward(jaxpr: Jaxpr) -> Jaxpr:
    """Folding, algebra and merging in one walk, since each makes work for the others."""
    return walk_forward(jaxpr, (fold, apply_algebra, find_common))


PIPELINE: tuple[Callable[[Jaxpr], Jaxpr], ...] = (simplify_subprograms, simplify_forward, drop_dead)
