"""Short rows made long: neighbouring axes that are treated alike become one.

Here: ``with_merged_axes``. Images of 8 x 8 pixels are arrays of shape ``(n, channels, 8, 8)``,
whose rows are shorter than a vector register; sums over the pixels of a channel, and elementwise
work on them, see rows of 64 elements after this step. Not here: how a nest is written.

A *boundary* lies between two neighbouring axes of an array. Elementwise equations, broadcasting and
reductions tie the boundaries of their operands to those of their results; boundaries that are tied
go together or not at all. Some cannot go: between a reduced axis and a kept one, between axes of
which an operand is broadcast along one only, and in arrays that are sliced, transposed or joined,
which are read where they are needed and not stored. Arguments, results and operands of routines
keep their shapes: what lies between is the same memory under another shape.

A reduction over an array with short rows has its boundaries merged in any case, so that the order
of its additions depends on its own shape alone (``compiler.reductions``); where the arrays around
it keep theirs, its operand is stored.

Layer: ``compiler``.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from functrans.compiler.axes import loop_axes, vector_axis
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Var
from functrans.core.lowering import IndexMap, Pointwise, Reduction, same_place
from functrans.primitives.structural import broadcast_to_p, reshape_p, transpose_p, view_p

Shape = tuple[int, ...]
Boundary = tuple[Var, int]
"""A variable, and the number of the axis after which the boundary lies."""


def has_short_rows(shape: tuple[int, ...]) -> bool:
    """Whether loops over lanes would have other loops inside them.

    Short rows that are unrolled are read and written as a whole, which is as good as long ones.
    """
    loops = loop_axes(shape)
    return len(loops) > 1 and vector_axis(shape) != loops[-1]


def order_along(shape: Shape, axes: Sequence[int]) -> list[tuple[int, bool]]:
    """What the order of a reduction depends on: per axis its extent, and whether it is in lanes."""
    groups = [[axis] for axis in range(len(shape))]
    if has_short_rows(shape):
        groups = _joined(groups, axes)
    extents = [_product(shape[axis] for axis in group) for group in groups]
    found = []
    for number in reversed(range(len(groups))):
        if groups[number][0] in axes:
            found.append((extents[number], vector_axis(extents) == number))
            del extents[number]
    return found


def _joined(groups: list[list[int]], axes: Collection[int]) -> list[list[int]]:
    """Groups of axes, neighbours made one that are both reduced or both kept."""
    full: list[list[int]] = []
    for group in groups:
        if full and (full[-1][0] in axes) == (group[0] in axes):
            full[-1] = full[-1] + group
        else:
            full.append(group)
    return full


def with_merged_axes(jaxpr: Jaxpr) -> Jaxpr:
    """The program with longer rows; itself if all rows are long.

    Args:
      jaxpr: a program without calls; reductions may run over several axes.
    """
    arrays = {
        atom: atom.aval.shape
        for eqn in jaxpr.eqns
        for atom in (*eqn.inputs, *eqn.outputs)
        if isinstance(atom, Var) and type(atom.aval) is ShapedArray
    }
    if not any(has_short_rows(shape) for shape in arrays.values()):
        return jaxpr
    ties = _Ties(jaxpr)
    return _Writer(jaxpr, ties).program()


class _Ties:
    """Which boundaries go together, and which stay."""

    def __init__(self, jaxpr: Jaxpr) -> None:
        self.parent: dict[Boundary, Boundary] = {}
        self.stays: set[Boundary] = set()
        self.is_wanted: set[Boundary] = set()
        for eqn in jaxpr.eqns:
            self._tie(eqn)
        for boundary in self.stays.copy():
            self.stays.add(self.root(boundary))
        for eqn in jaxpr.eqns:
            for atom in eqn.outputs:
                if type(atom.aval) is ShapedArray and has_short_rows(atom.aval.shape):
                    self.is_wanted.update(map(self.root, boundaries(atom)))

    def root(self, boundary: Boundary) -> Boundary:
        """The one that stands for all that are tied to a boundary."""
        while (up := self.parent.get(boundary, boundary)) != boundary:
            self.parent[boundary] = self.parent.get(up, up)
            boundary = up
        return boundary

    def goes(self, boundary: Boundary) -> bool:
        """Whether a boundary is merged away."""
        root = self.root(boundary)
        return root in self.is_wanted and root not in self.stays

    def _join(self, a: Boundary, b: Boundary) -> None:
        a, b = self.root(a), self.root(b)
        if a != b:
            self.parent[a] = b
            if a in self.stays:
                self.stays.add(b)

    def _keep(self, boundary: Boundary) -> None:
        self.stays.add(self.root(boundary))

    def _tie(self, eqn: Equation) -> None:
        lower = eqn.primitive.lower
        if _is_alike(eqn):
            for out in eqn.outputs:
                for atom in eqn.inputs:
                    if isinstance(atom, Var):
                        self._tie_broadcast(atom, out)
        elif isinstance(lower, Reduction):
            self._tie_reduction(eqn)
        elif eqn.primitive is transpose_p and isinstance(eqn.inputs[0], Var):
            self._tie_transpose(eqn.inputs[0], eqn.outputs[0], eqn.params["axes"])
        elif isinstance(lower, IndexMap) and eqn.primitive is not reshape_p:
            for atom in (*eqn.inputs, *eqn.outputs):
                if isinstance(atom, Var):
                    for boundary in boundaries(atom):
                        self._keep(boundary)

    def _tie_broadcast(self, x: Var, out: Var) -> None:
        """An operand's axes have the extents of the result, or extent 1, in one merged axis."""
        shape, wanted = _shape(x), _shape(out)
        first = len(wanted) - len(shape)
        is_repeated: bool | None = None  # along the last axis of more than one element
        for axis, extent in enumerate(wanted):
            mine = axis - first
            own = shape[mine] if mine >= 0 else 1
            before = is_repeated
            if extent != 1:
                is_repeated = own == 1
            if not axis:
                continue
            if before is not None and before != is_repeated:
                self._keep((out, axis - 1))
            elif mine > 0 and own == extent and shape[mine - 1] == wanted[axis - 1]:
                self._join((x, mine - 1), (out, axis - 1))

    def _tie_transpose(self, x: Var, out: Var, axes: Sequence[int]) -> None:
        followed = {axis: place for place, axis in enumerate(axes)}
        for place, (axis, following) in enumerate(itertools.pairwise(axes)):
            if following == axis + 1:
                self._join((x, axis), (out, place))
            else:
                self._keep((out, place))
        for boundary in boundaries(x):
            if followed[boundary[1] + 1] != followed[boundary[1]] + 1:
                self._keep(boundary)

    def _tie_reduction(self, eqn: Equation) -> None:
        x, axes = eqn.inputs[0], set(eqn.params["axes"])
        out = eqn.outputs[0]
        kept = [axis for axis in range(len(x.aval.shape)) if axis not in axes]
        for place, (axis, following) in enumerate(itertools.pairwise(kept)):
            if following == axis + 1 and isinstance(x, Var):
                self._join((x, axis), (out, place))
            else:
                self._keep((out, place))
        if isinstance(x, Var):
            is_free = has_short_rows(_shape(x))
            for boundary in boundaries(x):
                axis = boundary[1]
                if not is_free or (axis in axes) != (axis + 1 in axes):
                    self._keep(boundary)


def _is_alike(eqn: Equation) -> bool:
    """Whether an element of the result depends on those in the same place of the operands."""
    lower = eqn.primitive.lower
    if isinstance(lower, IndexMap) and lower.trace is same_place:
        return True
    return isinstance(lower, Pointwise) or eqn.primitive is broadcast_to_p


def _shape(x: Var) -> Shape:
    return x.aval.shape if type(x.aval) is ShapedArray else ()


def boundaries(x: Var) -> list[Boundary]:
    """All boundaries of an array."""
    return [(x, axis) for axis in range(len(_shape(x)) - 1)]


class _Writer:
    """Writes the program anew: every variable in its merged shape, others where they are needed."""

    def __init__(self, jaxpr: Jaxpr, ties: _Ties) -> None:
        self.jaxpr = jaxpr
        self.ties = ties
        self.eqns: list[Equation] = []
        self.merged: dict[Var, Var] = {}
        self.plain: dict[Var, Var] = {}
        """Variables in their own shape, where the program needs them so."""

    def program(self) -> Jaxpr:
        """The whole program."""
        for var in (*self.jaxpr.constvars, *self.jaxpr.invars):
            self.plain[var] = var
        for eqn in self.jaxpr.eqns:
            lower = eqn.primitive.lower
            if _is_alike(eqn):
                self._append_alike(eqn)
            elif isinstance(lower, Reduction):
                self._append_reduction(eqn)
            elif eqn.primitive is transpose_p and isinstance(eqn.inputs[0], Var):
                self._append_transpose(eqn, eqn.inputs[0])
            elif eqn.primitive is reshape_p:
                self._append_reshape(eqn)
            else:
                inputs = tuple(map(self._in_own_shape, eqn.inputs))
                self.eqns.append(replace(eqn, inputs=inputs))
                self.plain.update((var, var) for var in eqn.outputs)
        outvars = tuple(map(self._in_own_shape, self.jaxpr.outvars))
        return replace(self.jaxpr, eqns=tuple(self.eqns), outvars=outvars, cache={})

    # shapes

    def _groups(self, var: Var) -> list[list[int]]:
        """The axes that make one axis each."""
        shape = _shape(var)
        groups: list[list[int]] = []
        for axis in range(len(shape)):
            if axis and self.ties.goes((var, axis - 1)):
                groups[-1].append(axis)
            else:
                groups.append([axis])
        return groups

    def _merged_shape(self, var: Var) -> Shape:
        shape = _shape(var)
        return tuple([_product(shape[axis] for axis in group) for group in self._groups(var)])

    def _view(self, x: Atom, shape: Shape, eqn: Equation | None = None) -> Var:
        out = Var(ShapedArray(shape, x.aval.dtype))
        made = Equation(view_p, (x,), {"shape": shape}, (out,))
        if eqn is not None:
            made = replace(made, source=eqn.source, scope=eqn.scope)
        self.eqns.append(made)
        return out

    def _in_own_shape(self, atom: Atom) -> Atom:
        if not isinstance(atom, Var) or type(atom.aval) is not ShapedArray:
            return atom
        known = self.plain.get(atom)
        if known is None:
            known = self.plain[atom] = self._view(self.merged[atom], _shape(atom))
        return known

    def _in_merged_shape(self, atom: Atom) -> Atom:
        if not isinstance(atom, Var):
            return atom
        known = self.merged.get(atom)
        if known is None:
            shape = self._merged_shape(atom)
            known = self.plain[atom]
            if shape != _shape(atom):
                known = self._view(known, shape)
            self.merged[atom] = known
        return known

    def _result(self, var: Var) -> Var:
        """The variable that an equation computes in place of another one."""
        shape = self._merged_shape(var)
        if shape == _shape(var):
            self.plain[var] = self.merged[var] = var
            return var
        self.merged[var] = new = Var(ShapedArray(shape, var.aval.dtype))
        return new

    # equations

    def _append_alike(self, eqn: Equation) -> None:
        groups = self._groups(eqn.outputs[0])
        outputs = tuple(map(self._result, eqn.outputs))
        inputs = [self._as_operand(atom, eqn.outputs[0], groups) for atom in eqn.inputs]
        params = eqn.params
        if eqn.primitive is broadcast_to_p:
            params = {"shape": outputs[0].aval.shape}
        self.eqns.append(replace(eqn, inputs=tuple(inputs), outputs=outputs, params=params))

    def _as_operand(self, atom: Atom, out: Var, groups: list[list[int]]) -> Atom:
        """An operand in the shape that goes with the merged result."""
        if not isinstance(atom, Var):
            return atom
        source = self._in_merged_shape(atom)
        shape = _shape(atom)
        first = len(_shape(out)) - len(shape)
        parts = [[shape[axis - first] for axis in group if axis >= first] for group in groups]
        wanted = tuple([_product(part) for part in parts if part])
        if source.aval.shape != wanted:
            new = Var(ShapedArray(wanted, source.aval.dtype))
            # Axes of extent 1 come and go: it is read through.
            self.eqns.append(Equation(reshape_p, (source,), {"shape": wanted}, (new,)))
            return new
        return source

    def _append_transpose(self, eqn: Equation, x: Var) -> None:
        groups = {group[0]: number for number, group in enumerate(self._groups(x))}
        axes = tuple([groups[axis] for axis in eqn.params["axes"] if axis in groups])
        inputs = (self._in_merged_shape(x),)
        outputs = (self._result(eqn.outputs[0]),)
        self.eqns.append(replace(eqn, inputs=inputs, outputs=outputs, params={"axes": axes}))

    def _append_reduction(self, eqn: Equation) -> None:
        x, out = eqn.inputs[0], eqn.outputs[0]
        axes = set(eqn.params["axes"])
        if not isinstance(x, Var):
            self.eqns.append(eqn)
            self.plain[out] = out
            return
        groups = self._groups(x)
        source = self._in_merged_shape(x)
        if has_short_rows(_shape(x)):
            groups, source = self._fully_merged(eqn, x, groups, source)
        numbers = tuple([i for i, group in enumerate(groups) if group[0] in axes])
        shape = source.aval.shape
        kept = tuple([n for i, n in enumerate(shape) if i not in numbers])
        result = self._result(out)
        params = {**eqn.params, "axes": numbers}
        if kept == result.aval.shape:
            self.eqns.append(replace(eqn, inputs=(source,), outputs=(result,), params=params))
            return
        part = Var(ShapedArray(kept, result.aval.dtype))
        self.eqns.append(replace(eqn, inputs=(source,), outputs=(part,), params=params))
        shape = result.aval.shape
        params = {"shape": shape}
        self.eqns.append(
            replace(eqn, primitive=reshape_p, inputs=(part,), outputs=(result,), params=params)
        )

    def _fully_merged(
        self, eqn: Equation, x: Var, groups: list[list[int]], source: Atom
    ) -> tuple[list[list[int]], Atom]:
        """All neighbours merged that are both reduced or both kept."""
        shape = _shape(x)
        full = _joined(groups, eqn.params["axes"])
        if len(full) == len(groups):
            return groups, source
        merged = tuple([_product(shape[axis] for axis in group) for group in full])
        return full, self._view(source, merged, eqn)

    def _append_reshape(self, eqn: Equation) -> None:
        """From any shape to any other of the same elements in the same order."""
        x, out = eqn.inputs[0], self._result(eqn.outputs[0])
        if isinstance(x, Var):
            x = self.merged.get(x) or self.plain[x]
        shape = out.aval.shape
        self.eqns.append(replace(eqn, inputs=(x,), outputs=(out,), params={"shape": shape}))


def _product(extents: Any) -> int:
    result = 1
    for extent in extents:
        result *= extent
    return result
