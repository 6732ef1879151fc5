"""Linear programs of a batch of known directions, without sums over what is zero in them.

Here: ``evaluate_without_zeros``, and ``may_be_shorter``, which says where it is worth it.

The directions of a Jacobian are the rows of the identity, and much of what is made of them is zero
whatever the other values are: an angle of a finger moves the bones of that finger. *Masks* say
where a tangent may be other than zero; they begin with the directions and go through the program. A
sum over an axis (of all bones) of which each direction has only a short range is evaluated for a
few groups of directions, over the range of each.

Terms that are left out are zero by structure. Where they would be 0 times an infinity, the sum is
not NaN.

Layer: ``passes``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, bind
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.lowering import IndexMap
from functrans.core.primitive import Primitive
from functrans.passes.staging import StagingTracer, may_change
from functrans.primitives.dot import dot_general_p
from functrans.primitives.elementwise import (
    add_p,
    divide_p,
    mul_strong_zero_p,
    multiply_p,
    negative_p,
    subtract_p,
    where_p,
)
from functrans.primitives.movement import concatenate
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import reduce_sum_p

Mask = np.ndarray
"""Where a value may be other than zero; axes along which that does not change have extent 1."""
Range = tuple[int, int]

_LARGEST_MASK = 1 << 18
_SMALLEST = 1 << 14
"""Elements of a sum's operand from which it is looked at."""
_MOST_GROUPS = 8
_LINEAR = {
    add_p, subtract_p, multiply_p, divide_p, negative_p, mul_strong_zero_p, where_p,
}  # fmt: skip
"""Elementwise primitives that are zero where all operands that depend on the directions are."""


def evaluate_without_zeros(program: Jaxpr, directions: Sequence[np.ndarray]) -> list[Any]:
    """Results of a program that is linear in all its arguments, along a batch of directions.

    Args:
      program: its arguments and results have the batch as their first axis.
      directions: one array per argument.
    """
    return _Evaluation(program, directions).run()


def may_be_shorter(primitive: Primitive, operands: Sequence[Any], n: int) -> bool:
    """Whether an operation is a sum that is looked at, for a batch of some directions."""
    if primitive is not reduce_sum_p:
        return False
    shape = getattr(operands[0], "shape", None)  # a value's or a node's
    return shape is not None and n * math.prod(shape) >= _SMALLEST


class _Evaluation:
    def __init__(self, program: Jaxpr, directions: Sequence[np.ndarray]) -> None:
        self.program = program
        self.values: dict[Var, Any] = {
            **dict(zip(program.constvars, map(_plain, program.consts), strict=True)),
            **dict(zip(program.invars, directions, strict=True)),
        }
        self.linear: set[Atom] = set(program.invars)
        self.masks: dict[Var, Mask | None] = {}
        """Of tracers that depend on the directions; ``None`` where nothing is known."""
        self.makers = {var: eqn for eqn in program.eqns for var in eqn.outputs}
        self.parts: dict[Any, Any] = {}

    def run(self) -> list[Any]:
        """Evaluate the equations in order; the results."""
        for eqn in self.program.eqns:
            operands = [self._value(x) for x in eqn.inputs]
            outs = self._in_groups(eqn) or bind(eqn.primitive, *operands, **eqn.params)
            self.values.update(zip(eqn.outputs, outs, strict=True))
            if any(x in self.linear for x in eqn.inputs):
                self.linear.update(eqn.outputs)
                if any(isinstance(out, Tracer) for out in outs):
                    mask = self._mask_of(eqn)
                    self.masks.update(dict.fromkeys(eqn.outputs, mask))
        return [self._value(x) for x in self.program.outvars]

    def _value(self, atom: Atom) -> Any:
        return atom.value if isinstance(atom, Literal) else self.values[atom]

    # masks

    def _mask(self, atom: Atom) -> Mask | None:
        """The mask of an operand; of one that does not depend on the directions, all true."""
        shape = atom.aval.shape
        if atom not in self.linear:
            return np.ones((1,) * len(shape), bool)
        value = self._value(atom)
        if not isinstance(value, Tracer):
            return _compressed(np.asarray(value) != 0)
        return self.masks.get(atom)  # type: ignore[arg-type]  # no literal depends on them

    def _mask_of(self, eqn: Equation) -> Mask | None:
        """The mask of the result of an equation, if it has one that is not true everywhere."""
        if len(eqn.outputs) != 1:
            return None
        aval: Any = eqn.outputs[0].aval
        masks = [self._mask(x) for x in eqn.inputs]
        if any(mask is None for mask in masks):
            return None
        if eqn.primitive in _LINEAR:
            own = [
                mask
                for x, mask in zip(eqn.inputs, masks, strict=True)
                if x in self.linear and mask is not None
            ]
            shape = (len(aval.shape),)
            padded = [mask.reshape((1,) * (shape[0] - mask.ndim) + mask.shape) for mask in own]
            found = padded[0]
            for other in padded[1:]:
                found = found | other
            return found
        if eqn.primitive is reduce_sum_p:
            (mask,) = masks
            return mask.any(axis=eqn.params["axes"])  # type: ignore[union-attr]  # checked above
        if eqn.primitive is dot_general_p:
            return self._mask_of_product(eqn, masks)
        if isinstance(eqn.primitive.lower, IndexMap):
            return self._moved(eqn, masks)
        return None

    def _moved(self, eqn: Equation, masks: Sequence[Any]) -> Mask | None:
        """The mask of elements that move.

        What does not depend on the directions and is joined with what does is zero: the program
        is linear.
        """
        arrays = []
        for x, mask in zip(eqn.inputs, masks, strict=True):
            aval: Any = x.aval
            if aval.size > _LARGEST_MASK or aval.dtype != eqn.outputs[0].aval.dtype:
                return None
            own = mask if x in self.linear else False
            arrays.append(np.broadcast_to(own, aval.shape).astype(aval.dtype))
        (out,) = eqn.primitive.impl(*arrays, **eqn.params)
        return _compressed(np.asarray(out) != 0) if np.size(out) <= _LARGEST_MASK else None

    def _mask_of_product(self, eqn: Equation, masks: Sequence[Any]) -> Mask:
        pairs = [
            *zip(*eqn.params["contract"], strict=True),
            *zip(*eqn.params["batch"], strict=True),
        ]
        shapes = [list(mask.shape) for mask in masks]
        for i, j in pairs:
            shapes[0][i] = shapes[1][j] = max(shapes[0][i], shapes[1][j])
        arrays = [
            np.broadcast_to(mask, shape).astype(float)
            for mask, shape in zip(masks, shapes, strict=True)
        ]
        (out,) = dot_general_p.impl(*arrays, **eqn.params)
        return _compressed(out != 0)

    # sums

    def _in_groups(self, eqn: Equation) -> tuple[Any, ...] | None:
        """A sum for groups of directions, each over its own range, where that is less work."""
        if eqn.primitive is not reduce_sum_p or eqn.inputs[0] not in self.linear:
            return None
        (x,) = eqn.inputs
        aval: Any = x.aval
        mask = self._mask(x)
        if mask is None or aval.size < _SMALLEST or aval.dtype.kind != "f":
            return None
        if mask.shape[0] == 1 or 0 in eqn.params["axes"]:
            return None
        axis = max(eqn.params["axes"], key=lambda a: mask.shape[a])
        extent = mask.shape[axis]
        if extent == 1:
            return None
        others = tuple(a for a in range(mask.ndim) if a not in (0, axis))
        groups = _groups(np.any(mask, axis=others, keepdims=True).reshape(len(mask), extent))
        work = sum((stop - start) * (high - low) for (start, stop), (low, high) in groups)
        if 2 * work > mask.shape[0] * extent:
            return None
        pieces = []
        kept: Any = eqn.outputs[0].aval
        for (start, stop), (low, high) in groups:
            if low == high:
                nothing = np.zeros((stop - start, *kept.shape[1:]), kept.dtype)
                nothing.flags.writeable = False  # nobody's to change: a constant of the program
                pieces.append(nothing)
                continue
            part = self._part(x, {0: (start, stop), axis: (low, high)})
            pieces.extend(bind(reduce_sum_p, part, **eqn.params))
        return (concatenate(pieces, 0),)

    def _part(self, atom: Atom, ranges: dict[int, Range]) -> Any:
        """A part of a value, computed from parts of what it is computed from."""
        if isinstance(atom, Literal) or not ranges:
            return self._value(atom)
        key = (atom, tuple(sorted(ranges.items())))
        if key not in self.parts:
            self.parts[key] = self._new_part(atom, ranges)
        return self.parts[key]

    def _new_part(self, var: Var, ranges: dict[int, Range]) -> Any:
        eqn = self.makers.get(var)
        shape = var.aval.shape
        if eqn is not None and math.prod(shape) >= _SMALLEST:
            if eqn.primitive.elementwise is not None:
                lead = len(shape)
                operands = []
                for x in eqn.inputs:
                    own = x.aval.shape
                    shift = lead - len(own)
                    kept = {
                        a - shift: r for a, r in ranges.items() if a >= shift and own[a - shift] > 1
                    }
                    operands.append(self._part(x, kept))
                return bind(eqn.primitive, *operands, **eqn.params)[0]
            if eqn.primitive is dot_general_p:
                pair = [
                    self._part(x, {at[a]: r for a, r in ranges.items() if a in at})
                    for x, at in zip(eqn.inputs, _axes_of_product(eqn), strict=True)
                ]
                return bind(dot_general_p, *pair, **eqn.params)[0]
        entries = [slice(None)] * len(shape)
        for axis, (start, stop) in ranges.items():
            entries[axis] = slice(start, stop)
        return slice_index(self._value(var), BasicIndex(tuple(entries)))


def _plain(value: Any) -> Any:
    """An index array that nobody can change, in place of a tracer that stands for it."""
    if not isinstance(value, StagingTracer) or value._var not in value._trace.constvars:
        return value
    const = value._trace.consts[value._trace.constvars.index(value._var)]
    is_index = isinstance(const, np.ndarray) and const.dtype.kind in "iub"
    return const if is_index and not may_change(const) else value


def _axes_of_product(eqn: Equation) -> tuple[dict[int, int], dict[int, int]]:
    """For either operand, which of its axes each axis of the result is."""
    contract, batch = eqn.params["contract"], eqn.params["batch"]
    found: tuple[dict[int, int], dict[int, int]] = ({}, {})
    for number, pair in enumerate(zip(*batch, strict=True)):
        for own, axis in zip(found, pair, strict=True):
            own[number] = axis
    place = len(batch[0])
    for own, x, summed, lead in zip(found, eqn.inputs, contract, batch, strict=True):
        for axis in range(len(x.aval.shape)):
            if axis not in summed and axis not in lead:
                own[place] = axis
                place += 1
    return found


def _compressed(mask: Mask) -> Mask:
    """A mask with extent 1 along axes where nothing changes."""
    for axis, extent in enumerate(mask.shape):
        if extent > 1:
            first = mask.take([0], axis=axis)
            if (mask == first).all():
                mask = first
    return mask


def _groups(table: Mask) -> list[tuple[Range, Range]]:
    """Groups of neighbouring directions with a range for each, a few of them and of little work.

    Args:
      table: by direction, where it may be other than zero.
    """
    groups: list[tuple[Range, Range]] = []
    for number, row in enumerate(table):
        places = np.flatnonzero(row)
        own = (int(places[0]), int(places[-1]) + 1) if len(places) else (0, 0)
        if groups and groups[-1][1] == own:
            groups[-1] = ((groups[-1][0][0], number + 1), own)
        else:
            groups.append(((number, number + 1), own))
    while len(groups) > _MOST_GROUPS:
        joined = [_joined(*pair) for pair in itertools.pairwise(groups)]
        more = [
            _work(both) - _work(a) - _work(b)
            for both, (a, b) in zip(joined, itertools.pairwise(groups), strict=True)
        ]
        place = more.index(min(more))
        groups[place : place + 2] = [joined[place]]
    return groups


def _joined(first: tuple[Range, Range], second: tuple[Range, Range]) -> tuple[Range, Range]:
    ranges = [own for _, own in (first, second) if own[0] < own[1]]
    low, high = min((r[0] for r in ranges), default=0), max((r[1] for r in ranges), default=0)
    return (first[0][0], second[0][1]), (low, high)


def _work(group: tuple[Range, Range]) -> int:
    (start, stop), (low, high) = group
    return (stop - start) * (high - low)
