"""Which elements of its operands each element of a result depends on: first-order primitives.

Here: ``RULES`` for primitives whose elements go different ways, and the rules of families for all
others. Not here: control flow (``sparse.control_rules``), index sets (``sparse.dependence``).

The programs that are walked are linear in what the sets are of: tangents. So there are rules for
what is linear, and everything else (a primitive that nobody wrote a rule for) is dense: each
element of its results depends on all elements of its operands.

======================================  =========================================================
elementwise                             the same element of the operands in which the partial is
                                        not 0; products with constants: where they are not 0
movement, gathers and scatters          the element that is moved there; with indices that depend
                                        on an argument: all along the indexed axes
sums, products with matrices            all elements that are summed; where a matrix is constant,
                                        those with a coefficient that is not 0
cumulative sums, recurrences            the elements before
sorting, Fourier transforms             all along the axis
triangular systems                      the rows before in the order of substitution
linear algebra                          all of the matrices, per element of the batch
convolutions                            the window; a kernel's part of the channel
======================================  =========================================================

Layer: ``sparse``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.ir.jaxpr import Equation
from functrans.ir.lowering import IndexMap, Pointwise
from functrans.ir.primitive import linear, nondifferentiable
from functrans.primitives.index_arrays import read_at
from functrans.primitives.structural import kept_shape
from functrans.sparse import products
from functrans.sparse.dependence import INDEX, Dependence, Sets, Shape, Term
from functrans.sparse.values import Value, numbers

Rule = Callable[[Sets, Equation, Sequence[Value]], list[Dependence]]


def first_order(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """The dependence of the results of an equation without programs in its parameters."""
    primitive = eqn.primitive
    rule = RULES.get(primitive.name)
    if rule is not None:
        return rule(sets, eqn, operands)
    if primitive.elementwise is not None:
        return elementwise(sets, eqn, operands)
    if primitive.jvp is nondifferentiable:
        return [() for _ in eqn.outputs]
    if primitive.jvp is linear and isinstance(primitive.lower, IndexMap):
        return movement(sets, eqn, operands)
    if isinstance(primitive.lower, Pointwise):
        return [sets.union([v.dep for v in operands], _shape(eqn))]
    return dense(sets, eqn, operands)


# families ---------------------------------------------------------------------------------------


def dense(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """Every element of the results depends on every element of the operands."""
    everything = sets.everything([v.dep for v in operands])
    return [_spread(sets, everything, _shape(eqn, i)) for i in range(len(eqn.outputs))]


def elementwise(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """The same element of each operand in which there is a derivative."""
    shape = _shape(eqn)
    primitive = eqn.primitive
    if primitive.jvp is nondifferentiable:
        return [()]
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


def _same(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """The same elements."""
    return [operands[0].dep]


def _either(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """The same elements of all operands."""
    return [sets.union([v.dep for v in operands], _shape(eqn))]


def _cast(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """The same elements, if the result is floating."""
    return [operands[0].dep if eqn.params["dtype"].kind in "fc" else ()]


def _nothing(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """No derivative goes through."""
    return [() for _ in eqn.outputs]


def movement(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """Elements move: what the primitive does to places."""
    impl, params = eqn.primitive.impl, eqn.params
    shapes = [_shape(eqn, i) for i in range(len(eqn.outputs))]
    if len(operands) == 1 and len(shapes) == 1:
        return [sets.move(operands[0].dep, lambda places: np.asarray(impl(places, **params)[0]))]
    return sets.move_together(
        [v.dep for v in operands],
        [v.shape for v in operands],
        lambda *places: impl(*places, **params),
        shapes,
    )


def _indexed(n_values: int) -> Rule:
    """Movement whose operands after the first ``n_values`` are indices."""

    def rule(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
        values, indices = operands[:n_values], operands[n_values:]
        if not all(index.is_known for index in indices):
            return _indexed_anywhere(sets, eqn, operands, n_values)
        given = [np.asarray(numbers(index)) for index in indices]
        impl, params = eqn.primitive.impl, eqn.params
        return sets.move_together(
            [v.dep for v in values],
            [v.shape for v in values],
            lambda *places: impl(*places, *given, **params),
            [_shape(eqn)],
        )

    return rule


def _indexed_anywhere(
    sets: Sets, eqn: Equation, operands: Sequence[Value], n_values: int
) -> list[Dependence]:
    """Reading or writing at indices that may be anything."""
    name, params = eqn.primitive.name, eqn.params
    shape = _shape(eqn)
    x = operands[0]
    if name == "gather":
        axes = params["axes"]
        return [_spread(sets, sets.reduce(x.dep, axes), shape)]
    if name in ("select_along", "place_along"):
        return [_along(sets, x.dep, (params["axis"],), shape)]
    if name == "dynamic_slice":
        moving = [k for k, (n, size) in enumerate(zip(x.shape, shape, strict=True)) if n != size]
        return [_along(sets, x.dep, moving, shape)]
    if name == "dynamic_embed":
        moving = [k for k, (n, size) in enumerate(zip(x.shape, shape, strict=True)) if n != size]
        return [_along(sets, x.dep, moving, shape)]
    if name == "dynamic_update_slice":
        sizes = params["sizes"]
        written = _spread(sets, operands[1].dep, sizes)
        moving = [k for k, (n, size) in enumerate(zip(sizes, shape, strict=True)) if n != size]
        return [sets.union([x.dep, _along(sets, written, moving, shape)], shape)]
    # writes of values of shape S + rest into the axes of x or of zeros
    axes = params["axes"]
    v = operands[n_values - 1]
    rest = [n for axis, n in enumerate(shape) if axis not in axes]
    written = v.dep
    if v.shape:
        written = sets.reduce(v.dep, range(len(v.shape) - len(rest)))
        kept = kept_shape(shape, axes)
        written = sets.move(written, lambda places: places.reshape(kept))
    deps = [written] if n_values == 1 else [x.dep, written]
    return [sets.union(deps, shape)]


# sums -------------------------------------------------------------------------------------------


def _reduction(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """All elements along the axes."""
    return [sets.reduce(operands[0].dep, eqn.params["axes"])]


def _accumulate(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """Values added up at indices."""
    v, *indices = operands
    if not all(index.is_known for index in indices):
        return _indexed_anywhere(sets, eqn, operands, 1)
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
        return _indexed_anywhere(sets, eqn, operands, 2)
    shape = _shape(eqn)
    return [sets.union([x.dep, _added(sets, v, indices, shape, eqn.params)], shape)]


def _dot_general(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """The contracted axes; with a constant matrix, where it is not 0."""
    contract, batch = eqn.params["contract"], eqn.params["batch"]
    shape = _shape(eqn)
    deps = [
        _dot(sets, operands, own, contract, batch, shape) for own in (0, 1) if operands[own].dep
    ]
    return [sets.union(deps, shape)]


def _dot(
    sets: Sets, operands: Sequence[Value], own: int, contract: Any, batch: Any, shape: Shape
) -> Dependence:
    """The dependence of a product on one of its operands."""
    x, other = operands[own], operands[1 - own]
    free = [
        [k for k in range(len(v.shape)) if k not in contract[i] and k not in batch[i]]
        for i, v in enumerate(operands)
    ]
    n_batch = len(batch[0])
    other_free = len(free[1 - own])
    if other.is_known:
        matrix = np.asarray(numbers(other))
        if not np.all(matrix):
            return _dot_sparse(sets, x, matrix, own, contract, batch, free, shape)
    summed = sets.reduce(x.dep, contract[own])  # the other axes stay in order
    left = [k for k in range(len(x.shape)) if k not in contract[own]]
    order = [left.index(k) for k in (*batch[own], *free[own])]
    extents = [x.shape[k] for k in (*batch[own], *free[own])]
    at = n_batch if own else len(extents)
    aligned = (*extents[:at], *(1,) * other_free, *extents[at:])
    return sets.union(
        [sets.move(summed, lambda places: places.transpose(order).reshape(aligned))], shape
    )


def _dot_sparse(
    sets: Sets,
    x: Value,
    matrix: np.ndarray,
    own: int,
    contract: Any,
    batch: Any,
    free: list[list[int]],
    shape: Shape,
) -> Dependence:
    """A product with a constant that has zeros."""

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


def _prefixes(operand: int) -> Rule:
    """The elements before along the axis, and the element itself."""

    def rule(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
        if any(v.dep for i, v in enumerate(operands) if i != operand):
            return dense(sets, eqn, operands)
        dep, params = operands[operand].dep, eqn.params
        return [_before(sets, dep, _shape(eqn), params["axis"], params["reverse"])]

    return rule


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


# along axes -------------------------------------------------------------------------------------


def _lanes(get: Callable[[Equation], Sequence[int]]) -> Rule:
    """All elements along some axes, whose extents may change."""

    def rule(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
        axes = get(eqn)
        found = []
        for i in range(len(eqn.outputs)):
            shape = _shape(eqn, i)
            found.append(
                sets.union([_along(sets, v.dep, axes, shape) for v in operands if v.dep], shape)
            )
        return found

    return rule


def _along(sets: Sets, dep: Dependence, axes: Sequence[int], shape: Shape) -> Dependence:
    """Everything along some axes, in a result whose other extents are the same."""
    return _spread(sets, sets.reduce(dep, axes, keepdims=True), shape)


def _matrices(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """All elements of the matrices of one element of the batch.

    Operands and results have the same leading axes, the batch, and then one matrix each.
    """
    deps = []
    batch = operands[0].shape[:-2]
    n = len(batch)
    for v in operands:
        if v.dep:
            if v.shape[:n] != batch:
                return dense(sets, eqn, operands)
            deps.append(sets.reduce(v.dep, range(n, len(v.shape))))
    union = sets.union(deps, batch)
    found = []
    for i in range(len(eqn.outputs)):
        shape = _shape(eqn, i)
        if shape[:n] != batch:
            return dense(sets, eqn, operands)
        aligned = (*batch, *(1,) * (len(shape) - n))
        moved = sets.move(union, lambda places, to=aligned: places.reshape(to))  # type: ignore[misc]  # mypy cannot infer the default
        found.append(_spread(sets, moved, shape))
    return found


def _solve(position: int) -> Rule:
    """A linear system: a column of the solution depends on that of the right side only."""

    def rule(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
        b = operands[position]
        shape = _shape(eqn)
        if any(v.dep for v in operands if v is not b) or len(b.shape) < 2 or b.shape != shape:
            return _matrices(sets, eqn, operands)
        return [_along(sets, b.dep, (len(shape) - 2,), shape)]

    return rule


def _triangular_solve(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """Substitution: the rows before in its order."""
    a, b = operands
    shape = _shape(eqn)
    if a.dep or b.shape != shape:
        return _matrices(sets, eqn, operands)
    is_forward = eqn.params["lower"] == (eqn.params["trans"] == "N")
    return [_before(sets, b.dep, shape, len(shape) - 2, not is_forward)]


def _recursive_filter(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    """The elements before along the last axis."""
    *filters, x = operands
    shape = _shape(eqn)
    if any(v.dep for v in filters) or x.shape != shape:
        return dense(sets, eqn, operands)
    return [_before(sets, x.dep, shape, len(shape) - 1, False)]


# tapes ------------------------------------------------------------------------------------------


def _tape_add(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    return [sets.union([v.dep for v in operands], _shape(eqn))]


def _tape_broadcast(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    return [_spread(sets, operands[0].dep, _shape(eqn))]


def _tape_reshape(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    shape = _shape(eqn)
    return [sets.move(operands[0].dep, lambda places: places.reshape(shape))]


def _tape_sum(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    before, after = operands[0].shape, _shape(eqn)
    extra = len(before) - len(after)
    axes = [k for k, n in enumerate(before) if k < extra or (after[k - extra] == 1 and n != 1)]
    summed = sets.reduce(operands[0].dep, axes)
    return [sets.move(summed, lambda places: places.reshape(after))]


# helpers ----------------------------------------------------------------------------------------


def _shape(eqn: Equation, i: int = 0) -> Shape:
    """Shape of a result."""
    return Value(eqn.outputs[i].aval).shape


def _spread(sets: Sets, dep: Dependence, shape: Shape) -> Dependence:
    """A dependence broadcast to a shape."""
    return sets.move(dep, lambda places: np.broadcast_to(places, shape))


def _axis(eqn: Equation) -> Sequence[int]:
    return (eqn.params["axis"],)


def _axes(eqn: Equation) -> Sequence[int]:
    axes: Sequence[int] = eqn.params["axes"]
    return axes


RULES: dict[str, Rule] = {
    **dict.fromkeys(("multiply", "mul_strong_zero"), _product),
    "where": _where,
    **dict.fromkeys(("weaken", "name", "copy"), _same),
    "cast": _cast,
    "stop_gradient": _nothing,
    "unrecorded": _same,
    "overwritten": _either,
    "reduce_sum": _reduction,
    **dict.fromkeys(("reduce_max", "reduce_min", "reduce_prod", "logsumexp"), _reduction),
    "gather": _indexed(1),
    "select_along": _indexed(1),
    "place_along": _indexed(1),
    "dynamic_slice": _indexed(1),
    "dynamic_embed": _indexed(1),
    "dynamic_update_slice": _indexed(2),
    "scatter_set": _indexed(2),
    "accumulate": _accumulate,
    "scatter_add": _scatter_add,
    "dot_general": _dot_general,
    **products.RULES,
    "conv_general": _conv_general,
    "linear_recurrence": _prefixes(1),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp"), _prefixes(0)),
    "sort": _lanes(_axis),
    **dict.fromkeys(("fft_c2c", "rfft", "irfft"), _lanes(_axes)),
    "triangular_solve": _triangular_solve,
    "linear_solve": _solve(3),
    "banded_solve": _solve(1),
    "recursive_filter": _recursive_filter,
    **dict.fromkeys(
        (
            *("lu", "inv", "det", "slogdet", "cholesky", "qr", "eigh", "eig", "svd", "cofactor"),
            *("matrix_function", "matrix_derivative", "sylvester", "riccati"),
        ),
        _matrices,
    ),
    "tape_add": _tape_add,
    "tape_broadcast_to": _tape_broadcast,
    "tape_reshape": _tape_reshape,
    "tape_sum_to": _tape_sum,
}
"""Rules by the name of the primitive."""
