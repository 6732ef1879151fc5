"""The walk through a program that propagates index sets, control flow included.

Here: ``Walk``, and what calls, branches and loops do to index sets. Not here: first-order
primitives (``sparse.rules``), the program that is walked (``sparse.pattern``).

=============  ==================================================================================
calls          their program is walked
branches       the union of all of them; with a constant index, the one that is taken
``scan``       iteration by iteration, which is exact, as long as that is at most
               ``MAX_STEPS`` equations; in longer loops, and in loops of unknown length, a fixed
               point: every iteration depends on what any iteration depends on
``while``      a fixed point, since how often it runs depends on values
others         dense
=============  ==================================================================================

Layer: ``sparse``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.control.loops import scan_shape
from functrans.core.analyses import analysis
from functrans.core.avals import ShapedArray, Tape
from functrans.core.byte_order import native_array
from functrans.core.jaxpr import Equation, Jaxpr, Literal
from functrans.passes.programs import batch_jaxpr, hoist
from functrans.passes.staging import may_change, stage
from functrans.sparse.dependence import Sets, is_equal
from functrans.sparse.rules import dense, first_order
from functrans.sparse.values import UNKNOWN, Captured, Value, numbers, results

MAX_STEPS = 20_000
"""Equations of a loop up to which it is walked iteration by iteration."""


class Walk:
    """A walk through a program.

    Attributes:
      sets: the operations on index sets.
      captured: arrays that the program refers to and whose elements may change, by ``id``.
    """

    def __init__(self, sets: Sets) -> None:
        self.sets = sets
        self.captured: dict[int, Captured] = {}

    def run(self, jaxpr: Jaxpr, arguments: Sequence[Value]) -> list[Value]:
        """What the results of a program depend on, given what its arguments depend on."""
        env: dict[Any, Value] = dict(zip(jaxpr.invars, arguments, strict=True))
        for var, const in zip(jaxpr.constvars, jaxpr.consts, strict=True):
            env[var] = Value(var.aval, (), self.constant(const))
        last = _last_uses(jaxpr)
        for position, eqn in enumerate(jaxpr.eqns):
            operands = [_read(env, atom) for atom in eqn.inputs]
            env.update(zip(eqn.outputs, self.step(eqn, operands), strict=True))
            for var in last.get(position, ()):
                env.pop(var, None)
        return [_read(env, atom) for atom in jaxpr.outvars]

    def constant(self, const: Any) -> Any:
        """What is known of an object that a program refers to."""
        if type(const) is not np.ndarray:
            return UNKNOWN
        if not may_change(const):
            return native_array(const)
        return self.captured.setdefault(id(const), Captured(const))

    def step(self, eqn: Equation, operands: Sequence[Value]) -> Sequence[Value]:
        """The results of one equation."""
        if not any(v.dep for v in operands):
            return results(eqn, operands)
        rule = _RULES.get(eqn.primitive.name)
        if rule is not None:
            return rule(self, eqn, operands)
        if eqn.primitive.is_call:
            return self.run(eqn.params["jaxpr"], operands)
        deps = first_order(self.sets, eqn, operands)
        return [Value(var.aval, dep) for var, dep in zip(eqn.outputs, deps, strict=True)]

    def united(self, values: Sequence[Value]) -> Value:
        """The union of what several values of one type depend on."""
        first = values[0]
        if len(values) == 1:
            return first
        return Value(first.aval, self.sets.union([v.dep for v in values], first.shape))


@analysis
def _last_uses(jaxpr: Jaxpr) -> dict[int, list[Any]]:
    """By the number of an equation the variables that nothing reads after it."""
    last: dict[Any, int] = {}
    for position, eqn in enumerate(jaxpr.eqns):
        for atom in eqn.inputs:
            if type(atom) is not Literal:
                last[atom] = position
    for atom in jaxpr.outvars:
        last.pop(atom, None)
    dying: dict[int, list[Any]] = {}
    for var, position in last.items():
        dying.setdefault(position, []).append(var)
    return dying


def _read(env: dict[Any, Value], atom: object) -> Value:
    if type(atom) is Literal:
        return Value(atom.aval, (), atom.value)
    return env[atom]


def _anything(values: Sequence[Value]) -> list[Value]:
    """The same dependences, with numbers that change."""
    return [Value(v.aval, v.dep) for v in values]


# branches ---------------------------------------------------------------------------------------


def _cond(walk: Walk, eqn: Equation, operands: Sequence[Value]) -> list[Value]:
    index, *rest = operands
    branches = eqn.params["branches"]
    if index.is_known:
        return walk.run(branches[int(numbers(index))], rest)
    outs = [walk.run(branch, rest) for branch in branches]
    return [walk.united(column) for column in zip(*outs, strict=True)]


def _cond_lanes(walk: Walk, eqn: Equation, operands: Sequence[Value]) -> list[Value]:
    index, *rest = operands
    assert type(index.aval) is ShapedArray
    size = index.aval.shape[0]
    outs = []
    for branch in eqn.params["branches"]:
        program, _ = batch_jaxpr(branch, size, eqn.params["batched"], True)
        outs.append(walk.run(program, rest))
    return [walk.united(column) for column in zip(*outs, strict=True)]


# loops ------------------------------------------------------------------------------------------


def _scan(walk: Walk, eqn: Equation, operands: Sequence[Value]) -> list[Value]:
    shape = scan_shape(dict(eqn.params))
    jaxpr: Jaxpr = eqn.params["jaxpr"]
    _, consts, carry, xs = shape.unpack(operands)
    if shape.length is None or shape.length * len(jaxpr.eqns) > MAX_STEPS:
        return _scan_fixed_point(walk, eqn, operands)
    order = range(shape.length)[:: -1 if shape.reverse else 1]
    ys: list[list[Value]] = [[] for _ in jaxpr.outvars[len(carry) :]]
    for k in order:
        outs = walk.run(jaxpr, [*consts, *carry, *(_entry(walk, x, k, jaxpr) for x in xs)])
        carry = list(outs[: len(carry)])
        for column, y in zip(ys, outs[len(carry) :], strict=True):
            column.append(y)
    stacked = [
        _stack(walk, column[::-1] if shape.reverse else column, var.aval)
        for column, var in zip(ys, eqn.outputs[len(carry) :], strict=True)
    ]
    return [*carry, *stacked]


def _entry(walk: Walk, x: Value, k: int, jaxpr: Jaxpr) -> Value:
    """One entry of an operand that a loop goes through."""
    aval = x.aval
    if type(aval) is Tape:
        return Value(aval.element, x.dep)
    assert type(aval) is ShapedArray
    dep = walk.sets.move(x.dep, lambda places: places[k])
    known = numbers(x)[k] if x.is_known else UNKNOWN
    return Value(ShapedArray(aval.shape[1:], aval.dtype), dep, known)


def _stack(walk: Walk, entries: Sequence[Value], aval: Any) -> Value:
    """Entries of all iterations, as an array or a tape."""
    if type(aval) is Tape:
        out = Value(aval)
        return Value(aval, walk.sets.union([v.dep for v in entries], out.shape))
    if not entries:
        return Value(aval)
    if all(not v.dep for v in entries):
        known: Any = UNKNOWN
        if all(v.is_known for v in entries):
            known = np.stack([np.asarray(numbers(v), aval.dtype) for v in entries])
        return Value(aval, (), known)
    (dep,) = walk.sets.move_together(
        [v.dep for v in entries],
        [v.shape for v in entries],
        lambda *places: (np.stack(places),),
        [aval.shape],
    )
    return Value(aval, dep)


def _scan_fixed_point(walk: Walk, eqn: Equation, operands: Sequence[Value]) -> list[Value]:
    shape = scan_shape(dict(eqn.params))
    sets = walk.sets
    jaxpr: Jaxpr = eqn.params["jaxpr"]
    _, consts, carry, xs = shape.unpack(operands)
    any_xs = []
    for x, var in zip(xs, jaxpr.invars[shape.n_consts + shape.n_carry :], strict=True):
        dep = x.dep if type(x.aval) is Tape else sets.reduce(x.dep, (0,))
        any_xs.append(Value(var.aval, dep))
    final, ys = _fixed_point(walk, jaxpr, consts, carry, any_xs)
    stacked = []
    for y, var in zip(ys, eqn.outputs[len(carry) :], strict=True):
        to = Value(var.aval).shape
        stacked.append(
            Value(var.aval, sets.move(y.dep, lambda p, to=to: np.broadcast_to(p, to)))  # type: ignore[misc]  # mypy cannot infer the default
        )
    return [*final, *stacked]


def _fixed_point(
    walk: Walk, jaxpr: Jaxpr, consts: Sequence[Value], carry: Sequence[Value], xs: Sequence[Value]
) -> tuple[list[Value], list[Value]]:
    """The carry and the other results of a loop that may run any number of times."""
    carry = _anything(carry)
    n = len(carry)
    while True:
        outs = walk.run(jaxpr, [*consts, *carry, *xs])
        united = [
            walk.united([old, Value(old.aval, new.dep)])
            for old, new in zip(carry, outs, strict=False)
        ]
        is_done = all(
            is_equal(old.dep, new.dep, walk.sets, old.shape)
            for old, new in zip(carry, united, strict=True)
        )
        if is_done:
            return carry, _anything(outs[n:])
        carry = united


def _while(walk: Walk, eqn: Equation, operands: Sequence[Value]) -> list[Value]:
    n_cond, n_body = eqn.params["n_cond_consts"], eqn.params["n_body_consts"]
    consts, carry = operands[n_cond : n_cond + n_body], operands[n_cond + n_body :]
    final, ys = _fixed_point(walk, eqn.params["body_jaxpr"], consts, carry, ())
    tapes = [Value(var.aval, y.dep) for y, var in zip(ys, eqn.outputs[len(carry) :], strict=True)]
    return [*final, *tapes]


# calls ------------------------------------------------------------------------------------------


def _checkpoint(walk: Walk, eqn: Equation, operands: Sequence[Value]) -> list[Value]:
    return walk.run(eqn.params["jaxpr"], operands)


def _linear_call(walk: Walk, eqn: Equation, operands: Sequence[Value]) -> list[Value]:
    """The transpose of a user's backward function, as a program."""
    impl, params = eqn.primitive.impl, eqn.params
    program = stage(lambda *args: impl(*args, **params), [v.aval for v in operands], walk.sets.what)
    jaxpr, captured = hoist(program)
    lead = jaxpr.invars[: len(captured)]
    known = [
        Value(var.aval, (), walk.constant(const)) for var, const in zip(lead, captured, strict=True)
    ]
    return walk.run(jaxpr, [*known, *operands])


def _dense(walk: Walk, eqn: Equation, operands: Sequence[Value]) -> list[Value]:
    deps = dense(walk.sets, eqn, operands)
    return [Value(var.aval, dep) for var, dep in zip(eqn.outputs, deps, strict=True)]


_RULES: dict[str, Callable[[Walk, Equation, Sequence[Value]], list[Value]]] = {
    "cond": _cond, "cond_lanes": _cond_lanes, "scan": _scan, "while": _while,
    "checkpoint": _checkpoint, "binomial": _checkpoint, "revolve": _checkpoint,
    "custom_vmap": _checkpoint,
    "linear_call": _linear_call, "custom_jvp": _dense, "custom_vjp": _dense,
}  # fmt: skip
