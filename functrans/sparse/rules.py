"""Which elements of its operands each element of a result depends on: first-order primitives.

Here: what follows from the facts on a primitive's record, and ``RULES`` for the few of which these
do not tell enough, since zeros in a constant or known indices make sets smaller. Not here: control
flow (``sparse.walk``), index sets (``sparse.dependence``).

The programs that are walked are linear in what the sets are of: tangents.

======================================  =========================================================
elementwise                             the same element of the operands in which the partial is
                                        not 0; products with constants, and selections by them:
                                        where they are not 0
movement (``moves``)                    the element that is moved there, if that is known
cumulative (``causal``)                 the elements before
others, by ``axis_map``                 all elements along the axes that are mixed; the same ones
                                        along all other axes
sums at indices, products, convolution  the elements with a coefficient that is not 0
======================================  =========================================================

Layer: ``sparse``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray, is_differentiable_dtype
from functrans.core.axes import AxisMap
from functrans.core.jaxpr import Equation
from functrans.core.lowering import IndexMap, Pointwise, Reduction
from functrans.core.primitive import linear, nondifferentiable
from functrans.passes.apart import axis_maps
from functrans.primitives.index_arrays import read_at
from functrans.sparse import products
from functrans.sparse.dependence import INDEX, Dependence, Sets, Shape, Term
from functrans.sparse.values import Value, numbers

Rule = Callable[[Sets, Equation, Sequence[Value]], list[Dependence]]


def first_order(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """The dependence of the results of an equation without programs in its parameters."""
    primitive = eqn.primitive
    if primitive.jvp is nondifferentiable:
        return [() for _ in eqn.outputs]
    rule = RULES.get(primitive.name)
    if rule is not None:
        return rule(sets, eqn, operands)
    if primitive.elementwise is not None:
        return elementwise(sets, eqn, operands)
    if any(type(x.aval) is not ShapedArray for x in (*eqn.inputs, *eqn.outputs)):
        return dense(sets, eqn, operands)
    if primitive.causal is not None:
        operand, axis, is_reverse = primitive.causal(*_avals(operands), **eqn.params)
        b, shape = operands[operand], _shape(eqn)
        if b.shape == shape and not any(v.dep for v in operands if v is not b):
            return [_before(sets, b.dep, shape, axis, is_reverse)]
    found = movement(sets, eqn, operands) if primitive.moves else None
    return mapped(sets, eqn, operands) if found is None else found


# families ---------------------------------------------------------------------------------------


def dense(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """Every element of the results depends on every element of the operands."""
    everything = sets.everything([v.dep for v in operands])
    return [_spread(sets, everything, _shape(eqn, i)) for i in range(len(eqn.outputs))]


def elementwise(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """The same element of each operand in which there is a derivative."""
    shape = _shape(eqn)
    primitive = eqn.primitive
    family = primitive.elementwise
    assert family is not None
    partials = (1,) * len(operands) if primitive.jvp is linear else family.partials
    deps = [
        v.dep
        for v, partial in zip(operands, partials, strict=True)
        if v.dep and partial is not None and partial != 0
    ]
    return [sets.union(deps, shape)]


def _product(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """A constant factor hides the elements where it is 0."""
    shape = _shape(eqn)
    deps = []
    for own, other in (operands, operands[::-1]):
        if own.dep:
            deps.append(_where_nonzero(sets, own.dep, other, shape))
    return [sets.union(deps, shape)]


def _where_nonzero(sets: Sets, dep: Dependence, factor: Value, shape: Shape) -> Dependence:
    if not factor.is_known:
        return dep
    is_nonzero = np.not_equal(numbers(factor), 0)
    return dep if np.all(is_nonzero) else _masked(sets, dep, is_nonzero, shape)


def _masked(sets: Sets, dep: Dependence, mask: Any, shape: Shape) -> Dependence:
    """The dependence where a mask holds."""
    mask = np.broadcast_to(mask, shape)
    return sets.move(dep, lambda places: np.where(mask, places, INDEX.type(0)))


def _where(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """Both branches; with a constant condition, each where it is taken."""
    condition, a, b = operands
    shape = _shape(eqn)
    deps = [a.dep, b.dep]
    if condition.is_known:
        taken = np.asarray(numbers(condition)).astype(bool)
        deps = [_masked(sets, a.dep, taken, shape), _masked(sets, b.dep, ~taken, shape)]
    return [sets.union(deps, shape)]


def movement(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence] | None:
    """Elements move: what the primitive does to places.

    ``None`` where it is not known where from, or several elements meet in one.
    """
    primitive, params = eqn.primitive, eqn.params
    if isinstance(primitive.lower, Pointwise | Reduction):
        return None
    indices = [i for i, v in enumerate(operands) if not is_differentiable_dtype(v.aval.dtype)]
    if not all(operands[i].is_known for i in indices):
        return None
    given = {i: np.asarray(numbers(operands[i])) for i in indices}
    values = [v for i, v in enumerate(operands) if i not in given]

    def moved(*places: np.ndarray) -> list[np.ndarray]:
        rest = iter(places)
        arguments = [given[i] if i in given else next(rest) for i in range(len(operands))]
        return [np.asarray(out) for out in primitive.impl(*arguments, **params)]

    if not isinstance(primitive.lower, IndexMap):
        counts = moved(*[np.ones(v.shape, INDEX) for v in values])
        if any((own > 1).any() for own in counts):
            return None
    if len(values) == 1 and len(eqn.outputs) == 1:
        return [sets.move(values[0].dep, lambda places: moved(places)[0])]
    shapes = [_shape(eqn, i) for i in range(len(eqn.outputs))]
    return sets.move_together([v.dep for v in values], [v.shape for v in values], moved, shapes)


def mapped(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """All elements along the axes that are mixed, the same ones along all others."""
    outs: list[Any] = [var.aval for var in eqn.outputs]
    maps = axis_maps(eqn.primitive, _avals(operands), outs, eqn.params)
    if all(k is None for v, own in zip(operands, maps, strict=True) if v.dep for k in own):
        return dense(sets, eqn, operands)
    found: list[Dependence] = []
    for out in outs:
        shape, is_floating = out.shape, is_differentiable_dtype(out.dtype)
        pairs = zip(operands, maps, strict=True)
        deps = [_along(sets, v, own, shape) for v, own in pairs if v.dep and is_floating]
        found.append(sets.union(deps, shape))
    return found


def _along(sets: Sets, v: Value, own: AxisMap, shape: Shape) -> Dependence:
    """What a result depends on of an operand, broadcast to it; ``own`` maps the operand's axes."""
    skipped = len(shape) - len(own)
    is_one = [k is None and n == 1 for n, k in zip(v.shape, own, strict=True)]
    if skipped >= 0 and all(is_one[m] or k == skipped + m for m, k in enumerate(own)):
        return v.dep
    kept = [k for k in own if k is not None]
    dep = sets.reduce(v.dep, [m for m, k in enumerate(own) if k is None])
    extents = [n if k in kept else 1 for k, n in enumerate(shape)]
    order = np.argsort(kept)
    return sets.move(dep, lambda places: places.transpose(order).reshape(extents))


# sums -------------------------------------------------------------------------------------------


def _accumulate(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """Values added up at indices."""
    v, *indices = operands
    if not all(index.is_known for index in indices):
        return mapped(sets, eqn, operands)
    return [_added(sets, v, indices, _shape(eqn), eqn.params)]


def _added(
    sets: Sets, v: Value, indices: Sequence[Value], shape: Shape, params: Mapping[str, Any]
) -> Dependence:
    """Zeros of a shape with values added at known indices."""
    if not v.dep:
        return ()
    where = np.arange(1, math.prod(shape) + 1, dtype=np.int64).reshape(shape)
    given = tuple([np.asarray(numbers(index)) for index in indices])
    owner = read_at(where, given, params["axes"], params["mode"])
    slots = owner.shape
    owner = owner.reshape(-1)
    kept = owner > 0
    pairs = [
        (owner[kept] - 1, np.broadcast_to(t.places, slots).reshape(-1)[kept], t.table)
        for t in v.dep
    ]
    if len(np.unique(owner[kept])) == int(kept.sum()):
        terms = []
        for own, places, table in pairs:
            moved = np.zeros(math.prod(shape), INDEX)
            moved[own] = places
            terms.append(Term(table, moved.reshape(shape)))
        return sets.union([tuple(terms)], shape)
    return sets.collect(pairs, shape)


def _scatter_add(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """An array with values added at indices."""
    x, v, *indices = operands
    if not all(index.is_known for index in indices):
        return mapped(sets, eqn, operands)
    shape = _shape(eqn)
    return [sets.union([x.dep, _added(sets, v, indices, shape, eqn.params)], shape)]


def _dot_general(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """The contracted axes; with a constant matrix, where it is not 0."""
    contract, batch = eqn.params["contract"], eqn.params["batch"]
    shape = _shape(eqn)
    for own, other in ((0, 1), (1, 0)):
        if operands[other].is_known:
            matrix = np.asarray(numbers(operands[other]))
            if not np.all(matrix):
                return [_dot_sparse(sets, operands[own], matrix, own, contract, batch, shape)]
    return mapped(sets, eqn, operands)


def _dot_sparse(
    sets: Sets,
    x: Value,
    matrix: np.ndarray,
    own: int,
    contract: Any,
    batch: Any,
    shape: Shape,
) -> Dependence:
    """A product with a constant that has zeros."""
    ranks = (len(x.shape), matrix.ndim) if own == 0 else (matrix.ndim, len(x.shape))
    free = [
        [k for k in range(rank) if k not in contract[i] and k not in batch[i]]
        for i, rank in enumerate(ranks)
    ]

    def arranged(array: np.ndarray, which: int) -> np.ndarray:
        axes = [*batch[which], *free[which], *contract[which]]
        extents = [
            math.prod([array.shape[k] for k in part])
            for part in (batch[which], free[which], contract[which])
        ]
        return array.transpose(axes).reshape(extents)

    b, j, k = np.nonzero(arranged(matrix, 1 - own))
    pairs = []
    n_other = math.prod([matrix.shape[axis] for axis in free[1 - own]])
    for term in x.dep:
        places = arranged(term.places, own)
        n_own = places.shape[1]
        i = np.arange(n_own)[:, None]
        owner = (b * n_own + i) * n_other + j if own == 0 else (b * n_other + j) * n_own + i
        pairs.append((owner.reshape(-1), places[b, i, k].reshape(-1), term.table))
    return sets.collect(pairs, shape)


def _before(sets: Sets, dep: Dependence, shape: Shape, axis: int, is_reverse: bool) -> Dependence:
    """The elements up to each along an axis, or from it on."""
    n = shape[axis]
    size = math.prod(shape)
    sets.check(size * (n + 1) // 2 if dep else 0, shape)
    later, earlier = np.tril_indices(n)
    if is_reverse:
        later, earlier = n - 1 - later, n - 1 - earlier
    owner = np.moveaxis(np.arange(size).reshape(shape), axis, -1)[..., later].reshape(-1)
    pairs = [
        (owner, np.moveaxis(t.places, axis, -1)[..., earlier].reshape(-1), t.table) for t in dep
    ]
    return sets.collect(pairs, shape)


def _conv_general(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """The window of the image; all of a channel's kernel."""
    lhs, rhs = operands
    impl, params, shape = eqn.primitive.impl, eqn.params, _shape(eqn)
    deps: list[Dependence] = []
    if lhs.dep:
        counts = range(math.prod(rhs.shape[1:]))
        constant = np.asarray(numbers(rhs)) if rhs.is_known else None
        for at in counts:
            position: Any = np.unravel_index(at, rhs.shape[1:])
            kernel = np.zeros(rhs.shape)
            kernel[(slice(None), *position)] = 1
            if constant is not None:
                kernel[(slice(None), *position)] = constant[(slice(None), *position)] != 0
                if not kernel.any():
                    continue

            def shifted(places: np.ndarray, kernel: np.ndarray = kernel) -> np.ndarray:
                moved = impl(places.astype(np.float64), kernel, **params)[0]
                return np.asarray(np.rint(moved), INDEX)

            deps = [sets.union([*deps, sets.move(lhs.dep, shifted)], shape)]
    if rhs.dep:
        summed = sets.reduce(rhs.dep, range(1, len(rhs.shape)))
        channels = (shape[1], *(1,) * (len(shape) - 2))
        deps.append(sets.move(summed, lambda places: places.reshape(channels)))
    return [sets.union(deps, shape)]


# tapes ------------------------------------------------------------------------------------------


def _tape_broadcast(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    return [sets.union([v.dep for v in operands], _shape(eqn))]


def _tape_reshape(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    return [sets.move(operands[0].dep, lambda places: places.reshape(_shape(eqn)))]


def _tape_sum(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    before, after = operands[0].shape, _shape(eqn)
    extra = len(before) - len(after)
    axes = [k for k, n in enumerate(before) if k < extra or (after[k - extra] == 1 and n != 1)]
    summed = sets.reduce(operands[0].dep, axes)
    return [sets.move(summed, lambda places: places.reshape(after))]


# helpers ----------------------------------------------------------------------------------------


def _avals(operands: Sequence[Value]) -> list[Any]:
    return [v.aval for v in operands]


def _shape(eqn: Equation, i: int = 0) -> Shape:
    """Shape of a result."""
    return Value(eqn.outputs[i].aval).shape


def _spread(sets: Sets, dep: Dependence, shape: Shape) -> Dependence:
    """A dependence broadcast to a shape."""
    return sets.move(dep, lambda places: np.broadcast_to(places, shape))


RULES: dict[str, Rule] = {
    **dict.fromkeys(("multiply", "mul_strong_zero"), _product),
    "where": _where,
    "accumulate": _accumulate,
    "scatter_add": _scatter_add,
    "dot_general": _dot_general,
    **products.RULES,
    "conv_general": _conv_general,
    **dict.fromkeys(("tape_add", "tape_broadcast_to"), _tape_broadcast),
    "tape_reshape": _tape_reshape,
    "tape_sum_to": _tape_sum,
}
"""Rules by the name of the primitive."""
