"""Reads at index arrays, moved in front of the computation of what they read from.

Here: ``with_gathers_in_front``. An array that is computed for all vertices of a mesh, and of which
a read at an index array takes a few, need not be computed for the others: where each element along
the read axis comes from elements at the same place of the operands, the operands are read instead.
Elementwise equations, moved elements and reductions over other axes are such, products over a few
terms too (``compiler.products``). The indices are resolved once, by ``places``, with the errors of
the read that the user wrote; what stands in front are reads that need no check.

What something else reads in full stays as it is, and is read from. So does what a routine computes,
what may fail, and a reduction whose order of additions would change: results keep their bits. All
reads at the same indices move together; they do where that is less work.

Not here: reads at indices that are known (``compiler.bounds``), their code (``primitives.native``).

Layer: ``compiler``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from functrans.compiler.bounds import fits
from functrans.compiler.elements import may_fail, pointwise_cost, step_cost
from functrans.compiler.equations import equations_of
from functrans.compiler.invariants import may_move
from functrans.compiler.merging import order_along
from functrans.compiler.reductions import is_ordered
from functrans.core.affine import as_affine, variable
from functrans.core.avals import ShapedArray
from functrans.core.axes import AxisMap, of_broadcast, reduced
from functrans.core.dispatch import bind
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.lowering import IndexMap, Pointwise, Reduction
from functrans.primitives.elementwise import where
from functrans.primitives.gather_scatter import gather_p, places_p
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import reshape, transpose, view_p

_READ = 4
"""Work of reading one element at an index, in additions in lanes."""
_RUN = 8
"""Elements next to one another from which they are read like others."""
_COMPARED_BYTES = 1 << 24
"""Size of a constant array up to which its elements are compared."""


class _Key(NamedTuple):
    """What reads have in common that move together."""

    indices: Var
    mode: str
    extent: int


class _Want(NamedTuple):
    """What is read of a variable: elements along one axis."""

    key: _Key
    axis: int


Wanted = Mapping[Var, _Want | None]
"""What is read of variables; ``None``: everything."""


def with_gathers_in_front(
    jaxpr: Jaxpr, constants: Mapping[Var, np.ndarray], lasting: Collection[Var] = ()
) -> Jaxpr:
    """The program with less computed of what is read at index arrays only.

    Args:
      jaxpr: a program without calls; reductions may run over several axes.
      constants: arguments that are the same unchangeable array in every call.
      lasting: arguments that are the same in all rounds of the loop that the program is.
    """
    makers = {var: i for i, eqn in enumerate(jaxpr.eqns) for var in eqn.outputs}
    if not any(_key_of(eqn) and eqn.inputs[0] in makers for eqn in jaxpr.eqns):
        return jaxpr
    known = _lasting_equations(jaxpr, lasting)
    refused: set[_Key] = set()
    while True:
        plan = _Plan(jaxpr, makers, known, refused)
        if not plan.reads:
            return jaxpr
        writer = _Writer(plan, constants)
        bad = writer.unprofitable()
        if not bad:
            return writer.program()
        refused |= bad


def _key_of(eqn: Equation) -> _Key | None:
    """The key of a read that takes fewer elements along one axis than there are."""
    if eqn.primitive is not gather_p or len(eqn.params["axes"]) != 1:
        return None
    x, index = eqn.inputs
    if not isinstance(x, Var) or not isinstance(index, Var):
        return None
    shape: tuple[int, ...] = x.aval.shape
    extent = shape[eqn.params["axes"][0]]
    if not 0 < index.aval.size < extent or 0 in shape:  # type: ignore[union-attr]  # no tape
        return None
    return _Key(index, eqn.params["mode"], extent)


def _lasting_equations(jaxpr: Jaxpr, lasting: Collection[Var]) -> set[int]:
    """Equations that are moved out of a loop."""
    same: set[Any] = set(lasting)
    found = set()
    for number, eqn in enumerate(jaxpr.eqns):
        if all(isinstance(x, Literal) or x in same for x in eqn.inputs):
            same.update(eqn.outputs)
            if may_move(eqn):
                found.add(number)
    return found


def _work(eqn: Equation) -> int:
    """Work of an equation, in additions."""
    lower = eqn.primitive.lower
    out: Any = eqn.outputs[0].aval
    if isinstance(lower, Pointwise):
        return pointwise_cost(eqn) * out.size
    if isinstance(lower, Reduction):
        return step_cost(lower.kind, out.dtype) * eqn.inputs[0].aval.size  # type: ignore[union-attr]  # no tape
    return 0


def _work_of_read(key: _Key, x: Atom, axis: int) -> int:
    """Work of reading at the indices of a key."""
    shape = x.aval.shape
    each = _READ if math.prod(shape[axis + 1 :]) < _RUN else 1
    return each * math.prod(shape) // key.extent * key.indices.aval.size  # type: ignore[union-attr]  # no tape


def _read_along(x: Any, at: Any, axis: int, mode: str) -> Any:
    """Elements of an array at places along one axis, which stays where it is."""
    shape = x.shape
    if not axis:
        return bind(gather_p, x, at, axes=(0,), mode=mode)[0]
    front = math.prod(shape[:axis])
    if axis > 1:
        x = bind(view_p, x, shape=(front, *shape[axis:]))[0]
    rows = np.arange(front)[:, None]
    out = bind(gather_p, x, rows, at, axes=(0, 1), mode=mode)[0]
    return reshape(out, (*shape[:axis], at.shape[0], *shape[axis + 1 :]))


# along which axes -------------------------------------------------------------------------------


def _axes_of_operands(eqn: Equation, axis: int, count: int) -> AxisMap | None:
    """Per operand the axis that an axis of the results comes from; ``None`` of one without it.

    Args:
      eqn: an equation.
      axis: of its results.
      count: how many elements are to be computed along it.

    Returns:
      ``None`` where the equation cannot be computed for some elements only.
    """
    lower = eqn.primitive.lower
    avals: Any = [x.aval for x in eqn.inputs]
    outs: Any = [var.aval for var in eqn.outputs]
    if any(type(aval) is not ShapedArray for aval in (*avals, *outs)) or eqn.effects:
        return None
    if isinstance(lower, Pointwise):
        if may_fail(eqn):
            return None
        axes = [_inverse(of_broadcast(aval.shape, outs[0].shape), axis) for aval in avals]
    elif isinstance(lower, Reduction):
        (aval,) = avals
        over = eqn.params["axes"]
        own = _inverse(reduced(over, aval.ndim), axis)
        if is_ordered(lower.kind, outs[0].dtype):
            fewer = _with_extent(aval, own, count).shape
            if order_along(aval.shape, over) != order_along(fewer, over):
                return None
        axes = [own]
    elif isinstance(lower, IndexMap):
        found = _axes_of_map(eqn, lower, axis)
        if found is None:
            return None
        axes = found
    else:
        return None
    fewer_avals = [_with_extent(aval, own, count) for aval, own in zip(avals, axes, strict=True)]
    expected = tuple([_with_extent(aval, axis, count) for aval in outs])
    try:
        made = eqn.primitive.abstract_eval(*fewer_avals, **_params_for(eqn, axis, count))
    except (IndexError, TypeError, ValueError):  # its parameters tell the extent
        return None
    return axes if tuple(made) == expected else None


def _inverse(own: AxisMap, axis: int) -> int | None:
    """The axis of an operand that becomes an axis of the result."""
    return own.index(axis) if axis in own else None


def _with_extent(aval: ShapedArray, axis: int | None, count: int) -> ShapedArray:
    if axis is None:
        return aval
    shape = aval.shape
    return replace(aval, shape=(*shape[:axis], count, *shape[axis + 1 :]))


def _params_for(eqn: Equation, axis: int, count: int) -> Mapping[str, Any]:
    """The parameters of an equation of fewer elements."""
    if "shape" not in eqn.params:
        return eqn.params
    shape = eqn.params["shape"]
    return {**eqn.params, "shape": (*shape[:axis], count, *shape[axis + 1 :])}


def _axes_of_map(eqn: Equation, lower: IndexMap, axis: int) -> list[int | None] | None:
    """As above, for moved elements: whichever is read, it is at the same place along an axis."""
    avals: Any = [x.aval for x in eqn.inputs]
    found: dict[int, int | None] = {}
    for output, var in enumerate(eqn.outputs):
        shape: tuple[int, ...] = var.aval.shape
        reads = lower.trace(tuple(map(variable, range(len(shape)))), avals, output, **eqn.params)
        if reads is None:
            return None
        for read in reads:
            entries = list(map(as_affine, read.index))
            conditions = [(as_affine(entry), n) for entry, n in read.conditions]
            own = [j for j, entry in enumerate(entries) if entry.coefficient(axis)]
            extents = [*zip(entries, avals[read.operand].shape, strict=True), *conditions]
            for entry, n in extents:
                if entry.coefficient(axis) and (entry != variable(axis) or n != shape[axis]):
                    return None
            place = own[0] if own else None
            if len(own) > 1 or found.setdefault(read.operand, place) != place:
                return None
    return [found.get(i) for i in range(len(avals))]


# what moves -------------------------------------------------------------------------------------


class _Plan:
    """Which equations are computed for some elements only.

    Attributes:
      jaxpr: the program.
      makers: the number of each variable's equation.
      wanted: what is read of variables.
      moved: per number of an equation that is computed for some elements the axes of its operands.
      reads: numbers of the reads that move.
    """

    def __init__(
        self,
        jaxpr: Jaxpr,
        makers: Mapping[Var, int],
        stays: Collection[int],
        refused: Collection[_Key],
    ) -> None:
        self.jaxpr, self.makers = jaxpr, makers
        wanted: dict[Var, _Want | None] = {x: None for x in jaxpr.outvars if isinstance(x, Var)}
        self.wanted: Wanted = wanted
        self.moved: dict[int, tuple[int, AxisMap]] = {}
        reads: list[int] = []

        def want(x: Atom, what: _Want | None) -> None:
            if isinstance(x, Var) and wanted.setdefault(x, what) != what:
                wanted[x] = None

        for number in reversed(range(len(jaxpr.eqns))):
            eqn = jaxpr.eqns[number]
            wishes = {wanted[var] for var in eqn.outputs if var in wanted}
            wish = wishes.pop() if len(wishes) == 1 else None
            key = _key_of(eqn)
            axes = None
            if wish is not None and number not in stays:
                count: int = wish.key.indices.aval.size  # type: ignore[union-attr]  # no tape
                axes = _axes_of_operands(eqn, wish.axis, count)
            if wish is not None and axes is not None:
                self.moved[number] = wish.axis, axes
                for x, axis in zip(eqn.inputs, axes, strict=True):
                    want(x, None if axis is None else _Want(wish.key, axis))
            elif key is not None and key not in refused:
                x, index = eqn.inputs
                want(x, _Want(key, eqn.params["axes"][0]))
                want(index, None)
                reads.append(number)
            else:
                for x in eqn.inputs:
                    want(x, None)
        self.reads = [n for n in reversed(reads) if makers.get(self._source(n)) in self.moved]

    def _source(self, number: int) -> Any:
        return self.jaxpr.eqns[number].inputs[0]


class _Chain(NamedTuple):
    """What reads at the same indices are made of.

    Attributes:
      moved: numbers of the equations that are computed for some elements.
      bases: what is read instead, and along which axis.
    """

    moved: set[int]
    bases: dict[tuple[Var, int], None]


class _Writer:
    """Writes the program anew."""

    def __init__(self, plan: _Plan, constants: Mapping[Var, np.ndarray]) -> None:
        self.plan = plan
        self.eqns_of = plan.jaxpr.eqns
        self.constants = constants
        self.eqns: list[Equation] = []
        self.consts: dict[Var, Any] = {}
        self.fewer: dict[tuple[Var, int, _Key], Atom] = {}
        """What there is of variables of which some elements are read."""
        self.places: dict[_Key, Var] = {}
        """Where the indices of a key point, in one row."""
        self.renamed: dict[Atom, Atom] = {}
        """Results of reads that are there under another name."""
        self.inside: set[_Key] = set()
        """Keys whose indices are known to be in bounds."""

    # whether it pays

    def _chain(self, numbers: Sequence[int]) -> _Chain:
        """What some reads need."""
        plan = self.plan
        chain = _Chain(set(), {})
        stack = [(self.eqns_of[n].inputs[0], self.eqns_of[n].params["axes"][0]) for n in numbers]
        while stack:
            x, axis = stack.pop()
            number = plan.makers.get(x)  # type: ignore[arg-type]  # no literal is read
            if number not in plan.moved:
                chain.bases[x, axis] = None  # type: ignore[index]  # likewise
            elif number not in chain.moved:
                chain.moved.add(number)
                operands = zip(self.eqns_of[number].inputs, plan.moved[number][1], strict=True)
                stack.extend((own, at) for own, at in operands if at is not None)
        return chain

    def unprofitable(self) -> set[_Key]:
        """The keys of reads that stay, since moving them would be more work."""
        groups: dict[_Key, list[int]] = {}
        for number in self.plan.reads:
            key = _key_of(self.eqns_of[number])
            assert key is not None
            groups.setdefault(key, []).append(number)
        return {key for key, numbers in groups.items() if not self._pays(key, numbers)}

    def _pays(self, key: _Key, numbers: Sequence[int]) -> bool:
        chain = self._chain(numbers)
        bases = [(x, axis) for x, axis in chain.bases if not self._is_uniform(x, axis)]
        if not bases:  # nothing would look at the indices
            return False
        before: float = sum(_work(self.eqns_of[number]) for number in chain.moved)
        after = before * key.indices.aval.size / key.extent  # type: ignore[union-attr]  # no tape
        for x in {self.eqns_of[number].inputs[0] for number in numbers}:
            before += x.aval.size  # type: ignore[union-attr]  # it was stored
        for number in numbers:
            x = self.eqns_of[number].inputs[0]
            before += _work_of_read(key, x, self.eqns_of[number].params["axes"][0])
        for x, axis in bases:
            after += _work_of_read(key, x, axis)
            maker = self.plan.makers.get(x)
            if maker is not None and isinstance(
                self.eqns_of[maker].primitive.lower, Pointwise | IndexMap | Reduction
            ):
                after += x.aval.size  # type: ignore[union-attr]  # it will be stored
        return after < before

    def _is_uniform(self, x: Var, axis: int) -> bool:
        """Whether a variable is a constant whose elements along an axis are the same."""
        value = self.constants.get(x)
        if value is None or value.nbytes > _COMPARED_BYTES:
            return False
        raw = np.ascontiguousarray(value)[..., None].view(np.uint8)
        return bool((raw == raw.take([0], axis)).all())

    # equations

    def program(self) -> Jaxpr:
        """The whole program."""
        jaxpr, plan = self.plan.jaxpr, self.plan
        reads = set(plan.reads)
        written: set[int] = set()
        for number, eqn in enumerate(jaxpr.eqns):
            if number in reads:
                self._append_places(eqn)
                for own in sorted(self._chain([number]).moved - written):
                    written.add(own)
                    self._append_fewer(own)
                self._append_read(eqn)
            elif number not in plan.moved:
                self.eqns.append(replace(eqn, inputs=self._current(eqn.inputs)))
        return replace(
            jaxpr,
            constvars=(*jaxpr.constvars, *self.consts),
            consts=(*jaxpr.consts, *self.consts.values()),
            eqns=tuple(self.eqns),
            outvars=self._current(jaxpr.outvars),
            cache={},
        )

    def _current(self, atoms: Sequence[Atom]) -> tuple[Atom, ...]:
        return tuple([self.renamed.get(x, x) for x in atoms])

    def _append(
        self, fun: Callable[..., Any], inputs: Sequence[Atom], out: Var, eqn: Equation
    ) -> Var:
        """Append the equations of a function with one result."""
        eqns, consts = equations_of(
            lambda *xs: [fun(*xs)], self._current(inputs), [out], eqn.source
        )
        self.eqns.extend(eqns)
        self.consts.update(consts)
        return out

    def _append_places(self, eqn: Equation) -> None:
        key = _key_of(eqn)
        assert key is not None
        if key in self.places:
            return
        aval: Any = key.indices.aval
        value = self.constants.get(key.indices)
        index = key.indices
        if aval.ndim != 1:
            flat = Var(ShapedArray((aval.size,), aval.dtype))
            index = self._append(lambda x: reshape(x, flat.aval.shape), [index], flat, eqn)
        if value is not None and fits(value, key.extent):
            self.inside.add(key)
        else:
            at = Var(ShapedArray((aval.size,), np.dtype(np.int64)))
            params = {"shape": eqn.inputs[0].aval.shape, "axes": eqn.params["axes"]}
            index = self._append(
                lambda x: bind(places_p, x, **params, mode=key.mode)[0], [index], at, eqn
            )
        self.places[key] = index

    def _append_fewer(self, number: int) -> None:
        """The equation of this number, for the elements that are read."""
        eqn = self.eqns_of[number]
        axis, axes = self.plan.moved[number]
        want = next(w for var in eqn.outputs if (w := self.plan.wanted.get(var)) is not None)
        count: int = want.key.indices.aval.size  # type: ignore[union-attr]  # no tape
        inputs = [
            now if own is None else self._fewer(x, own, want.key, eqn)  # type: ignore[arg-type]  # a literal has no axis
            for x, now, own in zip(eqn.inputs, self._current(eqn.inputs), axes, strict=True)
        ]
        outputs = [Var(_with_extent(var.aval, axis, count)) for var in eqn.outputs]  # type: ignore[arg-type]  # no tapes
        for var, new in zip(eqn.outputs, outputs, strict=True):
            self.fewer[var, axis, want.key] = new
        params = _params_for(eqn, axis, count)
        self.eqns.append(replace(eqn, inputs=tuple(inputs), params=params, outputs=tuple(outputs)))

    def _fewer(self, x: Var, axis: int, key: _Key, eqn: Equation) -> Atom:
        """The elements of a variable that are read."""
        known = self.fewer.get((x, axis, key))
        if known is not None:
            return known
        aval: Any = x.aval
        count = key.indices.aval.size  # type: ignore[union-attr]  # no tape
        out = self.fewer[x, axis, key] = Var(_with_extent(aval.strong(), axis, count))
        if self._is_uniform(x, axis):
            full = (slice(None),) * axis
            first = BasicIndex((*full, slice(0, count)))
            return self._append(lambda x: slice_index(x, first), [x], out, eqn)
        at = self.places[key]
        mode = "clip" if key.mode == "drop" and key not in self.inside else "inside"
        if at is key.indices and aval.ndim == 1:
            mode = "raise"  # the indices are known: perhaps they are read in blocks
        return self._append(lambda x, at: _read_along(x, at, axis, mode), [x, at], out, eqn)

    def _append_read(self, eqn: Equation) -> None:
        """What the read gives, in its own shape."""
        key = _key_of(eqn)
        assert key is not None
        x = eqn.inputs[0]
        (axis,) = eqn.params["axes"]
        known = self.fewer[x, axis, key]  # type: ignore[index]  # a variable is read
        (out,) = eqn.outputs
        shape: tuple[int, ...] = out.aval.shape
        s = len(key.indices.aval.shape)
        may_be_outside = key.mode == "drop" and key not in self.inside
        if known.aval == out.aval and not axis and not may_be_outside:
            self.renamed[out] = known
            return

        def in_its_shape(y: Any, at: Any) -> Any:
            front, behind = y.shape[:axis], y.shape[axis + 1 :]
            y = reshape(y, (*front, *shape[:s], *behind))
            if axis and s:  # the last step, so that it is made one with a transpose behind it
                order = (*range(axis, axis + s), *range(axis), *range(axis + s, len(shape)))
                y = transpose(y, order)
            if not may_be_outside:
                return y
            is_inside = reshape(at, (*shape[:s], *(1,) * (len(shape) - s))) >= 0
            return where(is_inside, y, np.zeros((), y.dtype)[()])

        self._append(in_its_shape, [known, self.places[key]], out, eqn)
