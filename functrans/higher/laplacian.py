"""The forward Laplacian: ``laplacian`` and ``forward_laplacian``.

Here: the trace that carries value, Jacobian and Laplacian through a function in one pass, and the
transforms. Not here: the arithmetic of Jacobian blocks (``higher.curvature``).

For ``y = f(x)`` the chain rule of second order gives, with a sum over the directions ``i``::

    J_y[i] = f'(x) J_x[i]        L_y = f'(x) L_x + sum_i f''(x)[J_x[i], J_x[i]]

A linear operation has no second term. For an elementwise one ``f'`` and ``f''`` are arrays of the
shape of the result, computed once for all directions; the second term is ``f''`` times a sum of
squares. For a product of two values it is twice the product of their derivatives, summed. Any
other operation (a loop, a factorization) is differentiated twice by its own jvp rule, for all
directions as one batch.

Layer: ``higher``. Reference: Li et al., A computational framework for neural network-based
variational Monte Carlo with Forward Laplacian, Nature Machine Intelligence 6 (2024).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import (
    argument_paths,
    canonical,
    check_argnums,
    differentiable_leaf,
    flatten_call,
    name_of,
    named,
    positions,
    result_leaf,
    split_leaves,
    unflatten_call,
)
from functrans.core.avals import PYTHON_SCALARS, ShapedArray, Zero, is_differentiable_dtype
from functrans.core.calling import traced_form
from functrans.core.dispatch import (
    aval_of,
    bind,
    dtype_of,
    innermost_staging,
    shape_of,
    standing,
    tracing,
)
from functrans.core.jaxpr import Jaxpr
from functrans.core.ownership import own_arrays
from functrans.core.primitive import Primitive, linear, multilinear
from functrans.core.source import here
from functrans.core.transformed import transform
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError, ShapeError
from functrans.higher.curvature import (
    Block,
    Places,
    add_blocks,
    aligned_operands,
    cross_dot,
    dense,
    paired,
    push_dot,
    push_elementwise,
    push_linear,
    seed,
)
from functrans.higher.towers import TowerTrace, TowerTracer
from functrans.passes.batch import evaluate_batched
from functrans.passes.cotangents import zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import batch_first
from functrans.passes.programs import Flags, derived, jvp_jaxpr, spread
from functrans.passes.pushing import PushingTrace, PushingTracer
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.primitives import elementwise as ew
from functrans.primitives.dot import dot_general_p
from functrans.primitives.structural import (
    broadcast_to,
    cast,
    reduce_sum,
    reshape,
    transpose,
)
from functrans.records import dataclass
from functrans.transforms.reverse import plain_leaf, split_aux


@dataclass(frozen=True, slots=True, eq=False)
class _Curved:
    """The derivatives of a value.

    Attributes:
      blocks: its Jacobian, by number of the input; those that are zero are left out.
      laplacian: its Laplacian, ``None`` for zero.
    """

    blocks: Mapping[int, Block]
    laplacian: Any


class _LaplacianTrace(TowerTrace):
    """Evaluates every operation on values, Jacobians and Laplacians.

    Attributes:
      shapes: of the inputs.
      weights: per input, the weights of its directions, or ``None``.
    """

    __slots__ = ("shapes", "weights")

    def __init__(
        self, label: str, shapes: Sequence[tuple[int, ...]], weights: Sequence[Any]
    ) -> None:
        super().__init__(label)
        self.shapes = shapes
        self.weights = weights

    def raised(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        towers: Sequence[Any],
        params: Mapping[str, Any],
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Results of an operation, their Jacobians and Laplacians."""
        if primitive.is_call:
            return self._call(primitive, values, towers, **params)
        rule = primitive.jvp
        if rule is linear or primitive.moves:
            return self._linear(primitive, values, towers, params)
        if primitive.elementwise is not None and not params:
            return self._elementwise(primitive, values, towers)
        if primitive is dot_general_p:
            return self._dot(values, towers, **params)
        if rule is multilinear and sum(t is not None for t in towers) == 1:
            return self._linear(primitive, values, towers, params)
        return self._generic(primitive, values, towers, params)

    def _elementwise(
        self, primitive: Primitive, values: Sequence[Any], towers: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        (out,) = bind(primitive, *values)
        shape = shape_of(out)
        if not is_differentiable_dtype(dtype_of(out)):
            return (out,), (None,)
        second = _SecondDerivatives(primitive, values, out)
        blocks: dict[int, Block] = {}
        terms = [
            push_elementwise(
                primitive, values, [None if t is None else t.laplacian for t in towers], out
            )
        ]
        pairs: dict[tuple[int, int], Any] = {}
        for k in _inputs(towers):
            own, places = aligned_operands(_blocks(towers, k), shape)
            lead = next(block.lead for block in own if block is not None)
            arrays = [None if block is None else block.array for block in own]
            pushed = push_elementwise(primitive, values, arrays, out, lead)
            if pushed is not None:
                blocks[k] = Block(pushed, places)
            present = [i for i, block in enumerate(own) if block is not None]
            for i, j in ((i, j) for i in present for j in present if i <= j):
                if second.may_be_nonzero(i, j):
                    products = paired(own[i], own[j], self.weights[k])  # type: ignore[arg-type]  # present
                    pairs[i, j] = pairs[i, j] + products if (i, j) in pairs else products
        for (i, j), products in pairs.items():
            factor = second.of(i, j)
            if factor is not None:
                term = ew.mul_strong_zero(products, factor)
                term = term if i == j else term * 2.0
                terms.append(broadcast_to(cast(term, dtype_of(out)), shape))
        return (out,), (_curved(blocks, _sum(terms)),)

    def _linear(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        towers: Sequence[Any],
        params: Mapping[str, Any],
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        outs = bind(primitive, *values, **params)
        if primitive.jvp is multilinear:  # in the one operand that varies

            def filled(value: object) -> Any:
                return value
        else:
            filled = _still
        found: list[dict[int, Block]] = [{} for _ in outs]
        for k in _inputs(towers):
            results = push_linear(primitive, params, values, _blocks(towers, k), outs, filled)
            for own, block in zip(found, results, strict=True):
                own[k] = block
        second: Sequence[Any] = [None] * len(outs)
        laplacians = [None if t is None else t.laplacian for t in towers]
        if any(term is not None for term in laplacians):
            given = [
                (zeros(aval_of(v).strong()) if t is not None else filled(v))
                if term is None
                else term
                for v, t, term in zip(values, towers, laplacians, strict=True)
            ]
            second = bind(primitive, *given, **params)
        return outs, [
            _curved(own, term) if is_differentiable_dtype(dtype_of(out)) else None
            for out, own, term in zip(outs, found, second, strict=True)
        ]

    def _dot(
        self, values: Sequence[Any], towers: Sequence[Any], *, contract: Any, batch: Any
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        params = {"contract": contract, "batch": batch}
        outs = bind(dot_general_p, *values, **params)
        dtype = dtype_of(outs[0])
        terms: list[Any] = []
        for i, tower in enumerate(towers):
            if tower is not None and tower.laplacian is not None:
                given = [tower.laplacian if i == j else value for j, value in enumerate(values)]
                terms.extend(bind(dot_general_p, *given, **params))
        blocks: dict[int, Block] = {}
        for k in _inputs(towers):
            pair = _blocks(towers, k)
            for i, block in enumerate(pair):
                if block is not None:
                    pushed = push_dot(block, values[1 - i], i, contract, batch)
                    blocks[k] = add_blocks(blocks[k], pushed) if k in blocks else pushed
            blocks[k] = Block(cast(blocks[k].array, dtype), blocks[k].places)
            if pair[0] is not None and pair[1] is not None:
                crossed = cross_dot(pair[0], pair[1], contract, batch, self.weights[k])
                terms.append(crossed * 2.0)
        total = _sum(terms)
        return outs, (_curved(blocks, None if total is None else cast(total, dtype)),)

    def _generic(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        towers: Sequence[Any],
        params: Mapping[str, Any],
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """By the jvp rule of the operation, applied twice; all directions as one batch."""
        if (
            not callable(primitive.jvp)
            and primitive.jvp is not multilinear
            and not hasattr(primitive.jvp, "rule")
        ):
            raise NonDifferentiableError(
                f"primitive {primitive.name} has no derivative rule (field jvp is None){here()}; "
                "use ft.stop_gradient or give a custom rule (ft.custom_jvp)"
            )
        program = stage(
            lambda *operands: bind(primitive, *operands, **params),
            [aval_of(value) for value in values],
            f"laplacian of {primitive.name}",
            name=primitive.name,
        )
        n = len(program.outvars)
        terms: list[list[Any]] = [[] for _ in range(n)]
        outs: Sequence[Any] | None = None
        laplacians = [None if t is None else t.laplacian for t in towers]
        if any(term is not None for term in laplacians):
            once, nonzero = jvp_jaxpr(program, _present(laplacians))
            results = evaluate(once, [*values, *(t for t in laplacians if t is not None)])
            outs = results[:n]
            for own, term in zip(terms, spread(nonzero, results[n:], _nothing), strict=True):
                own.append(term)
        found: list[dict[int, Block]] = [{} for _ in range(n)]
        for k in _inputs(towers):
            results, size = self._second(program, values, _blocks(towers, k), k)
            for i, (_, first, second) in enumerate(results):
                if first is not None:
                    lead = self.shapes[k]
                    array = reshape(first, (*lead, *shape_of(first)[1:]))
                    found[i][k] = Block(array, (None,) * len(lead))
                if second is not None and size:
                    terms[i].append(self._over_directions(second, k))
            outs = [value for value, _, _ in results] if outs is None else outs
        assert outs is not None
        return outs, [
            _curved(own, _sum(term)) if is_differentiable_dtype(dtype_of(out)) else None
            for out, own, term in zip(outs, found, terms, strict=True)
        ]

    def _second(
        self, program: Jaxpr, values: Sequence[Any], blocks: Sequence[Block | None], k: int
    ) -> tuple[list[tuple[Any, Any, Any]], int]:
        """Results with their first and second derivatives in the directions of one input."""
        n = len(program.outvars)
        size = math.prod(self.shapes[k])
        flags = _present(blocks)
        once, nonzero = jvp_jaxpr(program, flags)
        both = (*flags, *(False,) * sum(flags))
        twice, nonzero_twice = jvp_jaxpr(once, both)
        lanes = []
        for value, block in zip(values, blocks, strict=True):
            if block is not None:
                lanes.append(reshape(dense(block), (size, *shape_of(value))))
        dims = [None] * len(values) + [0] * (2 * len(lanes))
        results, out_dims = evaluate_batched(twice, size, [*values, *lanes, *lanes], dims)
        m = len(once.outvars)
        shared = [
            value if dim is None else None
            for value, dim in zip(results[:n], out_dims[:n], strict=True)
        ]
        batched = [
            batch_first(value, dim, size) for value, dim in zip(results, out_dims, strict=True)
        ]
        first = spread(nonzero, batched[n:m], _nothing)
        of_all = spread(nonzero_twice, batched[m:], _nothing)
        second = spread(nonzero, of_all[n:], _nothing)
        if any(value is None for value in shared):
            shared = list(evaluate(program, values))
        return list(zip(shared, first, second, strict=True)), size

    def _over_directions(self, lanes: object, k: int) -> Any:
        """The weighted sum of second derivatives over the directions of an input."""
        weights = self.weights[k]
        if weights is not None:
            extents = (shape_of(lanes)[0], *(1,) * (len(shape_of(lanes)) - 1))
            lanes = lanes * reshape(weights, extents)
        return reduce_sum(lanes, (0,))

    def _call(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        towers: Sequence[Any],
        *,
        jaxpr: Jaxpr,
        **params: object,
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """A call of a compiled function stays one, of values and derivatives."""
        kinds = tuple(map(_kind, towers))
        has_weights = tuple(weights is not None for weights in self.weights)
        own = [w for w in self.weights if w is not None]
        program, out_kinds = derived(
            jaxpr,
            ("laplacian", kinds, has_weights, tuple(self.shapes)),
            lambda: _laplacian_program(jaxpr, kinds, self.shapes, self.weights),
        )
        parts = [part for tower in towers for part in _parts(tower)]
        results = bind(primitive, *values, *own, *parts, jaxpr=program, **params)
        n = len(jaxpr.outvars)
        rest = iter(results[n:])
        return results[:n], [_joined(kind, rest) for kind in out_kinds]


_Kind = tuple[tuple[tuple[int, Places, tuple[int, ...]], ...], bool] | None


def _kind(tower: _Curved | None) -> _Kind:
    """What is static of the derivatives of a value."""
    if tower is None:
        return None
    blocks = [(k, block.places, block.lead) for k, block in sorted(tower.blocks.items())]
    return tuple(blocks), tower.laplacian is not None


def _parts(tower: _Curved | None) -> list[Any]:
    """The arrays of the derivatives of a value."""
    if tower is None:
        return []
    parts = [block.array for _, block in sorted(tower.blocks.items())]
    return parts if tower.laplacian is None else [*parts, tower.laplacian]


def _joined(kind: _Kind, parts: Any) -> _Curved | None:
    """The derivatives of a value from their arrays."""
    if kind is None:
        return None
    blocks = {k: Block(next(parts), places) for k, places, _ in kind[0]}
    return _Curved(blocks, next(parts) if kind[1] else None)


def _laplacian_program(
    jaxpr: Jaxpr, kinds: Sequence[_Kind], shapes: Sequence[tuple[int, ...]], weights: Sequence[Any]
) -> tuple[Jaxpr, tuple[_Kind, ...]]:
    """The program ``(*args, *weights, *derivatives) -> (*outs, *derivatives)``."""
    n = len(jaxpr.invars)
    present = [w is not None for w in weights]
    out_kinds: list[_Kind] = []

    def run(*args: object) -> list[Any]:
        m = n + sum(present)
        rest = iter(args[m:])
        own = spread(tuple(present), args[n:m], _nothing)
        trace = _LaplacianTrace(f"laplacian of {jaxpr.name or 'a program'}", shapes, own)
        towers = [_joined(kind, rest) for kind in kinds]
        with tracing(trace):
            tracers = [
                value if tower is None else TowerTracer(trace, value, tower)
                for value, tower in zip(args[:n], towers, strict=True)
            ]
            values, towers = trace.taken_apart(evaluate(jaxpr, tracers))
        out_kinds.extend(map(_kind, towers))
        return values + [part for tower in towers for part in _parts(tower)]

    avals: list[Any] = list(jaxpr.in_avals)
    avals.extend(aval_of(w) for w in weights if w is not None)
    for aval, kind in zip(jaxpr.in_avals, kinds, strict=True):
        if kind is not None:
            blocks, has_laplacian = kind
            avals.extend(ShapedArray((*lead, *aval.shape), aval.dtype) for _, _, lead in blocks)
            avals.extend([aval.strong()] * has_laplacian)
    program = stage(run, avals, f"laplacian of {jaxpr.name}", name=jaxpr.name)
    return simplify(program), tuple(out_kinds)


class _SecondDerivatives:
    """The second derivatives of an elementwise operation, each computed when it is asked for."""

    def __init__(self, primitive: Primitive, values: Sequence[Any], out: Any) -> None:
        family = primitive.elementwise
        assert family is not None
        self.partials = family.partials
        self.saves = family.saves
        self.values = values
        self.out = out

    def may_be_nonzero(self, i: int, j: int) -> bool:
        """Whether the derivative by operands ``i`` and ``j`` may be another than zero."""
        result = 1 << len(self.values)
        return callable(self.partials[i]) and bool(self.saves[i] & (1 << j | result))

    def of(self, i: int, j: int) -> Any:
        """The second derivative by operands ``i`` and ``j``; ``None`` for zero.

        It is the derivative by operand ``j`` of the partial derivative by operand ``i``, to which
        the result contributes.
        """
        trace = PushingTrace("laplacian")
        with tracing(trace, [*self.values, self.out]):
            operands = list(self.values)
            one = np.ones(shape_of(operands[j]), _tangent_dtype(operands[j]))[()]
            operands[j] = PushingTracer(trace, operands[j], one)
            out = self.out
            slope = self._partial(j)
            if slope is not None:
                out = PushingTracer(trace, out, slope)
            result = self.partials[i](1.0, *operands, out)
            return trace.split(result)[1]

    def _partial(self, j: int) -> Any:
        """The first derivative by an operand, of the shape of the result."""
        partial = self.partials[j]
        if partial is None or (not callable(partial) and partial == 0):
            return None
        slope = partial(1.0, *self.values, self.out) if callable(partial) else float(partial)
        if type(slope) is Zero:
            return None
        return broadcast_to(cast(slope, dtype_of(self.out)), shape_of(self.out))


def _tangent_dtype(value: object) -> np.dtype:
    return dtype_of(value)


def _inputs(towers: Sequence[_Curved | None]) -> list[int]:
    """Numbers of the inputs that operands depend on."""
    return sorted({k for tower in towers if tower is not None for k in tower.blocks})


def _blocks(towers: Sequence[_Curved | None], k: int) -> list[Block | None]:
    return [None if tower is None else tower.blocks.get(k) for tower in towers]


def _present(items: Sequence[Any]) -> Flags:
    return tuple(item is not None for item in items)


def _nothing(_: int) -> None:
    return None


def _curved(blocks: Mapping[int, Block], laplacian: object) -> _Curved | None:
    return _Curved(blocks, laplacian) if blocks or laplacian is not None else None


def _sum(terms: Sequence[Any]) -> Any:
    total = None
    for term in terms:
        if term is not None:
            total = term if total is None else total + term
    return total


def _still(value: Any) -> Any:
    """The tangent of an operand that does not vary."""
    if not is_differentiable_dtype(dtype_of(value)):
        return value
    if type(value) in PYTHON_SCALARS:
        return type(value)(0)
    return zeros(aval_of(value).strong())


# the transforms ---------------------------------------------------------------------------------


@transform
def laplacian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    weights: object = None,
) -> Callable[..., Any]:
    """The Laplacian of a function, in one forward pass.

    The sum of the second derivatives by each element of the arguments, of every element of the
    result. It is the trace of the Hessian, without the Hessian and without products with it: value,
    Jacobian and Laplacian go through the function together (:func:`forward_laplacian`).

    Args:
      fun: function of pytrees of real floating arrays; it runs on values, once.
      argnums: which positional arguments to differentiate.
      has_aux: whether ``fun`` returns ``(out, aux)``.
      weights: weights of the second derivatives, such as inverse masses or a diagonal diffusion:
        a tree prefix of the argument (a tuple for several), with arrays that broadcast to its
        leaves; they may be negative.

    Returns:
      Function that gives the Laplacian, shaped like the result, or ``(laplacian, aux)``.

    Raises:
      NonDifferentiableError: an argument is not a real floating one, or weights are complex; names
        the key path.
      ShapeError: weights do not fit.
      TreeMismatchError: weights are no tree prefix of the argument.

    Example:
      >>> import numpy as np
      >>> laplacian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
      array(18.)

    Reference: Li et al., Nature Machine Intelligence 6 (2024).
    """
    run = _forward("laplacian", fun, argnums, has_aux, weights)

    @named("laplacian", fun)
    def laplacian_function(*args: object, **kwargs: object) -> Any:
        call = run(args, kwargs)
        result = tree.unflatten(call.treedef, call.own(call.laplacians()))
        return (result, call.aux) if has_aux else result

    return laplacian_function


@transform
def forward_laplacian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    weights: object = None,
) -> Callable[..., Any]:
    """Value, Jacobian and Laplacian of a function, in one forward pass.

    Arguments and errors as :func:`laplacian`.

    Returns:
      Function that gives ``(out, jacobian, laplacian)`` or ``(out, jacobian, laplacian, aux)``; the
      Jacobian as :func:`ft.jacfwd` has it, the Laplacian shaped like ``out``.

    Example:
      >>> import numpy as np
      >>> forward_laplacian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
      (array(9.), array([ 3., 12.]), array(18.))
    """
    run = _forward("forward_laplacian", fun, argnums, has_aux, weights)

    @named("forward_laplacian", fun)
    def forward_laplacian_function(*args: object, **kwargs: object) -> tuple[Any, ...]:
        call = run(args, kwargs)
        values = tree.unflatten(call.treedef, call.own(call.values))
        second = tree.unflatten(call.treedef, call.own(call.laplacians()))
        result = (values, call.jacobian(), second)
        return (*result, call.aux) if has_aux else result

    return forward_laplacian_function


class _Call:
    """One pass through a function.

    Attributes:
      values: leaves of the result.
      towers: derivatives of each, ``None`` for a constant.
      treedef: structure of the result.
      aux: second result when ``has_aux``.
    """

    def __init__(
        self,
        label: str,
        fun: Callable[..., Any],
        argnums: int | tuple[int, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        has_aux: bool,
        weights: Any,
    ) -> None:
        self.argnums = argnums
        numbers = positions(label, argnums, len(args))
        given, self.treedefs, self.counts = flatten_call(args, numbers)
        path = argument_paths(label, args, numbers)

        self.leaves = []
        for i, leaf in enumerate(given):
            value = differentiable_leaf(leaf, functools.partial(path, i))
            if dtype_of(value).kind == "c":
                raise NonDifferentiableError(
                    f"{path(i)} is {aval_of(value)}{here()}; a Laplacian is taken in real "
                    "arguments. Pass real and imaginary part apart."
                )
            self.leaves.append(value)
        shapes = [shape_of(leaf) for leaf in self.leaves]
        own_weights = self._weights(label, weights, args, numbers, path)
        staging = innermost_staging()
        trace = _LaplacianTrace(label, shapes, own_weights)
        foreign = [*self.leaves, *(w for w in own_weights if w is not None)]
        with tracing(trace, foreign):
            tracers = []
            for k, leaf in enumerate(self.leaves):
                block = seed(shapes[k], dtype_of(leaf))
                if staging is not None:  # times a captured array it is no constant
                    block = Block(staging.lift(block.array), block.places)
                tracers.append(TowerTracer(trace, leaf, _Curved({k: block}, None)))
            result = fun(
                *unflatten_call(args, numbers, tracers, self.treedefs, self.counts), **kwargs
            )
            self.aux = None
            if has_aux:
                result, aux = split_aux(result, label)
                self.aux = tree.map(lambda leaf: plain_leaf(trace, leaf), aux)
            outs, self.treedef = tree.flatten(result)
            self.values, self.towers = [], []
            for i, out in enumerate(map(standing, outs)):
                value, tower = trace.split(out)
                if value is out:
                    value = result_leaf(out, label, result, i)
                if not is_differentiable_dtype(dtype_of(value)):
                    raise NonDifferentiableError(
                        f"{label}: result {i} is {aval_of(value)}{here()}, which has no derivative"
                    )
                self.values.append(value)
                self.towers.append(tower)

    def _weights(
        self, label: str, weights: object, args: Any, numbers: Any, path: Callable[[int], str]
    ) -> list[Any]:
        """Weights per leaf, of its shape."""
        if weights is None:
            return [None] * len(self.leaves)
        chosen: Any = tuple(args[number] for number in numbers)
        chosen = chosen[0] if isinstance(self.argnums, int) else chosen
        found: list[Any] = []
        each = tree.broadcast_prefix(weights, chosen, label, "weights")
        for i, (weight, leaf) in enumerate(zip(each, self.leaves, strict=True)):
            if weight is None:
                found.append(None)
                continue
            value = canonical(weight, lambda i=i: f"{path(i)}: weights")  # type: ignore[misc]  # bound now
            if dtype_of(value).kind == "c":
                raise NonDifferentiableError(
                    f"{path(i)}: its weights are {aval_of(value)}{here()}, but weights of second "
                    "derivatives are real; take the Laplacian for their real and imaginary parts"
                )
            shape = shape_of(leaf)
            own = shape_of(value)
            try:
                fits = np.broadcast_shapes(own, shape) == shape
            except ValueError:
                fits = False
            if not fits:
                raise ShapeError(
                    f"{path(i)} is {aval_of(leaf)}, but its weights are {aval_of(value)}{here()}; "
                    "they must broadcast to its shape"
                )
            found.append(broadcast_to(cast(value, dtype_of(leaf)), shape))
        return found

    def own(self, values: Sequence[Any]) -> list[Any]:
        """Results as arrays of their own."""
        return own_arrays(list(values), [*self.leaves, *self.values])

    def laplacians(self) -> list[Any]:
        """The Laplacian of each leaf of the result."""
        return [
            np.zeros(shape_of(value), dtype_of(value))
            if tower is None or tower.laplacian is None
            else tower.laplacian
            for value, tower in zip(self.values, self.towers, strict=True)
        ]

    def jacobian(self) -> Array:
        """The Jacobian, trees of results over trees of arguments."""
        built = []
        for value, tower in zip(self.values, self.towers, strict=True):
            row = []
            for k, leaf in enumerate(self.leaves):
                block = None if tower is None else tower.blocks.get(k)
                n, m = len(shape_of(leaf)), len(shape_of(value))
                if block is None:
                    row.append(np.zeros(shape_of(value) + shape_of(leaf), dtype_of(value)))
                else:
                    row.append(transpose(dense(block), (*range(n, n + m), *range(n))))
            trees = split_leaves(self.own(row), self.treedefs, self.counts)
            built.append(trees[0] if isinstance(self.argnums, int) else tuple(trees))
        return tree.unflatten(self.treedef, built)


def _forward(
    who: str, fun: Callable[..., Any], argnums: object, has_aux: bool, weights: object
) -> Callable[[tuple[Any, ...], dict[str, Any]], _Call]:
    fun = traced_form(who, fun)
    numbers = check_argnums(who, argnums)
    label = f"{who} of {name_of(fun)}"

    def run(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call:
        return _Call(label, fun, numbers, args, kwargs, has_aux, weights)

    return run
