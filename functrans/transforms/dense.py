"""Dense Jacobians: from a recorded call to blocks by result and argument.

Here: ``DenseJacobian``: the basis of tangents or cotangents, pushed or pulled as one batch or in
chunks, and the assembly of the result. Not here: the transforms (``transforms.jacobian``), the
passes over the recorded nodes (``passes.pullback``, ``passes.pushforward``), the choice of
direction (``transforms.directions``) and of chunks (``transforms.chunks``).

The function runs once on values, so that Python's ``if`` and ``while`` work. On plain arrays each
chunk is written to its place in the result. In a program that is being staged the chunks are a
loop, so that its length does not grow with their number.

Layer: ``transforms``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans import pytrees as tree
from functrans.core.analyses import analysis
from functrans.core.arguments import (
    argument_paths,
    differentiable_leaf,
    flatten_call,
    name_of,
    positions,
    split_leaves,
    unflatten_call,
)
from functrans.core.avals import is_differentiable_dtype
from functrans.core.deferred import deferred
from functrans.core.dispatch import (
    Tracer,
    aval_of,
    dtype_of,
    innermost_staging,
    program_effects,
    shape_of,
)
from functrans.core.jaxpr import Jaxpr, subjaxprs
from functrans.core.ownership import own_arrays
from functrans.core.progress import Progress
from functrans.core.source import here
from functrans.core.state import current_config
from functrans.core.values import Array
from functrans.debugging.watched import recording_trace
from functrans.errors import NonDifferentiableError, UnsupportedOperationError
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram, Node, ordered_nodes
from functrans.passes.programs import batch_jaxpr, hoist, jvp_jaxpr, select, spread
from functrans.passes.pullback import pull_back
from functrans.passes.pushforward import push_forward
from functrans.passes.simplify import simplify
from functrans.passes.staging import has_answer, stage
from functrans.passes.work import forward_bytes, residual_bytes, reverse_bytes
from functrans.passes.written import WritingTrace, Written
from functrans.passes.zeros import evaluate_without_zeros, may_be_shorter
from functrans.primitives.creation import diagonal
from functrans.primitives.elementwise import equal
from functrans.primitives.movement import concatenate
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, reshape, transpose
from functrans.transforms.chunks import Chunking, lanes_in_cache
from functrans.transforms.directions import cheapest_passes, dependences, pass_work
from functrans.transforms.reverse import Recorded


class DenseJacobian:
    """One recorded call of a function, and what its Jacobian needs."""

    def __init__(
        self,
        who: str,
        fun: Callable[..., Any],
        argnums: int | tuple[int, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        has_aux: bool,
        holomorphic: bool | None,
        allow_int: bool | None,
        chunking: Chunking = Chunking(),  # noqa: B008  # frozen
        direction: str = "forward",
    ) -> None:
        self.who = who
        self.label = label = f"{who} of {name_of(fun)}"
        self.chunking = chunking
        self.direction = direction
        self.argnums = argnums
        numbers = positions(label, argnums, len(args))
        leaves, self.treedefs, self.counts = flatten_call(args, numbers)
        path = argument_paths(label, args, numbers)

        self.leaves = [
            differentiable_leaf(
                leaf,
                functools.partial(path, i),
                allow_int=allow_int,
                is_complex_ok=holomorphic is not False or direction != "forward",
            )
            for i, leaf in enumerate(leaves)
        ]
        if holomorphic:
            for i, leaf in enumerate(self.leaves):
                if dtype_of(leaf).kind != "c":
                    raise NonDifferentiableError(
                        f"{path(i)} is {aval_of(leaf)}{here()}; holomorphic=True needs complex "
                        "inputs"
                    )

        def call(tracers: list[Any]) -> Any:
            return fun(
                *unflatten_call(args, numbers, tracers, self.treedefs, self.counts), **kwargs
            )

        writes = direction == "forward" and _are_staged(self.leaves)
        make_trace = WritingTrace if writes else recording_trace
        self.recorded = Recorded(call, self.leaves, label, has_aux, make_trace)
        self.outs = self.recorded.outs
        self._check_kinds(holomorphic)

    def _check_kinds(self, holomorphic: bool | None) -> None:
        """Refuse results without derivative, and complex ones that a direction cannot give.

        Forward mode pushes real directions only, reverse mode pulls real functionals only, unless
        the function is holomorphic (``None``: it is, if arguments and results all are complex).
        """
        for i, out in enumerate(self.outs):
            if not is_differentiable_dtype(dtype_of(out)):
                raise NonDifferentiableError(
                    f"{self.label}: result {i} is {aval_of(out)}{here()}, which has no derivative"
                )
        complex_leaves = [dtype_of(leaf).kind == "c" for leaf in self.leaves]
        complex_outs = [dtype_of(out).kind == "c" for out in self.outs]
        if holomorphic is None:
            holomorphic = all(complex_leaves) and all(complex_outs)
        if holomorphic:
            if not all(complex_outs):
                i = complex_outs.index(False)
                raise NonDifferentiableError(
                    f"{self.label}: result {i} is {aval_of(self.outs[i])}{here()}; "
                    "holomorphic=True needs complex results"
                )
            return
        if self.direction == "auto" and (any(complex_leaves) or any(complex_outs)):
            self.direction = "reverse" if any(complex_leaves) else "forward"
        if self.direction == "forward" and any(complex_leaves):
            i = complex_leaves.index(True)
            raise NonDifferentiableError(
                f"{self.label}: an argument is complex ({aval_of(self.leaves[i])}){here()}, and "
                "forward "
                "mode gives no derivative of a function that is not holomorphic; use reverse mode"
            )
        if self.direction == "reverse" and any(complex_outs):
            i = complex_outs.index(True)
            raise NonDifferentiableError(
                f"{self.label}: result {i} is complex ({aval_of(self.outs[i])}){here()}; use "
                "holomorphic=True for a holomorphic function of complex inputs, or its real and "
                "imaginary parts"
            )

    def blocks(self) -> list[list[Any]]:
        """Blocks by result and input, in the direction that was asked for or is cheaper."""
        outs, inputs = range(len(self.outs)), range(len(self.leaves))
        if self.direction == "auto":
            rows, columns = self._cheapest()
        else:
            is_reverse = self.direction == "reverse"
            rows, columns = (set(outs), set()) if is_reverse else (set(), set(inputs))
        if columns and self._recomputes():
            return self._pushed_blocks()
        table: list[list[Any]] = [[None for _ in inputs] for _ in outs]
        total = sum(math.prod(shape_of(self.outs[i])) for i in rows)
        total += sum(math.prod(shape_of(self.leaves[j])) for j in columns)
        with Progress(self.who, total, self.chunking.progress) as progress:
            for i in sorted(rows):
                table[i] = self._row_blocks(i, progress)
            rest = [i for i in outs if i not in rows]
            for j in sorted(columns):
                for i, block in zip(rest, self._column_blocks(j, rest, progress), strict=True):
                    table[i][j] = block
        for i in outs:
            for j in inputs:
                if table[i][j] is None:  # the result does not depend on the input
                    table[i][j] = self._zero_block(i, j, is_row=i in rows)
        return table

    def _cheapest(self) -> tuple[set[int], set[int]]:
        """Which results to pull back and which inputs to push forward, by cost."""
        outs, inputs = self.recorded.out_nodes, self.recorded.inputs
        n_out = sum(math.prod(shape_of(out)) for out in self.outs)
        n_in = sum(math.prod(shape_of(leaf)) for leaf in self.leaves)
        if len(outs) == len(inputs) == 1:  # the same work for each, in both directions
            rows, columns = ({0}, set()) if n_out <= n_in else (set(), {0})
        else:
            nodes = ordered_nodes([node for node in outs if node is not None])
            edges = dependences(outs, inputs)
            row_costs = [
                _cost(out, pass_work(nodes, inputs, [node]))
                for out, node in zip(self.outs, outs, strict=True)
            ]
            column_costs = [
                _cost(leaf, pass_work(nodes, [node], outs))
                for leaf, node in zip(self.leaves, inputs, strict=True)
            ]
            rows, columns = cheapest_passes(row_costs, column_costs, edges)
        import logging  # 3 ms at import, and few want it

        kind = "mixed" if rows and columns else "forward" if columns else "reverse"
        logging.getLogger("functrans").debug(
            "%s: %s mode for %d results of %d arguments", self.label, kind, n_out, n_in
        )
        return rows, columns

    def _zero_block(self, i: int, j: int, *, is_row: bool) -> Array:
        """The block of a result that does not depend on an input."""
        shape = shape_of(self.outs[i]) + shape_of(self.leaves[j])
        node = self.recorded.inputs[j]
        if node is None:
            return np.zeros(shape, tree.FLOAT0)
        return np.zeros(shape, node.dtype if is_row else dtype_of(self.outs[i]))

    def _row_blocks(self, i: int, progress: Progress) -> list[Any]:
        """The blocks of one result, a batch of cotangents pulled back; ``None`` for zero."""
        out, node = self.outs[i], self.recorded.out_nodes[i]
        shape, dtype = shape_of(out), dtype_of(out)
        n = math.prod(shape)
        inputs = self.recorded.inputs
        wanted = [own for own in inputs if own is not None]
        if node is None or n == 0:
            progress.advance(n)
            return [None] * len(inputs)
        nodes = ordered_nodes([node])
        shapes = [own.shape for own in wanted]

        def pull(seeds: Array, size: int | None) -> list[Any]:
            found = pull_back([(node, seeds)], wanted, size=size)
            return [
                None if ct is None else cast(ct, own.dtype)
                for ct, own in zip(found, wanted, strict=True)
            ]

        if n == 1 and self.chunking.memory_bytes is None:
            found = pull(np.ones(shape, dtype)[()], None)
            self._is_staged(found)
            progress.advance(1)
        else:
            needed = reverse_bytes(nodes, node, wanted)
            found = self._in_chunks(
                n, nodes, needed, shape, dtype, pull, shapes, progress, is_row=True
            )
        rest = iter(found)
        blocks = [None if own is None else next(rest) for own in inputs]
        return [
            None if block is None else _shaped(block, shape + shape_of(leaf))
            for block, leaf in zip(blocks, self.leaves, strict=True)
        ]

    def _column_blocks(self, j: int, outs: Sequence[int], progress: Progress) -> list[Any]:
        """The blocks of one input, a batch of tangents pushed forward; ``None`` for zero."""
        leaf, node = self.leaves[j], self.recorded.inputs[j]
        shape = shape_of(leaf)
        n = math.prod(shape)
        out_nodes = [self.recorded.out_nodes[i] for i in outs]
        if node is None or n == 0:
            progress.advance(n)
            return [None] * len(outs)
        nodes = ordered_nodes([own for own in out_nodes if own is not None])
        shapes = [shape_of(self.outs[i]) for i in outs]
        dtypes = [dtype_of(self.outs[i]) for i in outs]

        def push(seeds: Any, size: int | None) -> list[Any]:
            found = push_forward(nodes, [(node, seeds)], out_nodes, size=size)
            return [
                None if t is None else cast(t, dtype)
                for t, dtype in zip(found, dtypes, strict=True)
            ]

        def push_staged(seeds: Any, size: int | None) -> list[Any]:
            if size is None or isinstance(seeds, Tracer):
                return push(seeds, size)
            flags: list[bool] = []

            def pushed(tangents: Any) -> list[Any]:
                found = push(tangents, size)
                flags[:] = [t is not None for t in found]
                return [t for t in found if t is not None]

            program = stage(pushed, [aval_of(seeds)], self.label)
            return spread(flags, evaluate_without_zeros(program, [seeds]), lambda i: None)

        needed = forward_bytes(_above(node, nodes), out_nodes)
        evaluated = push_staged if self._has_large_sums(n) else push
        found = self._in_chunks(
            n, nodes, needed, shape, node.dtype, evaluated, shapes, progress, is_row=False
        )
        return [
            None if block is None else _shaped(block, own + shape)
            for block, own in zip(found, shapes, strict=True)
        ]

    def _has_large_sums(self, n: int) -> bool:
        """Whether a batch of tangents may have long sums of what is zero by structure."""
        trace = self.recorded.trace
        if type(trace) is not WritingTrace or any(_has_effects(eqn) for eqn in trace.written):
            return False
        return any(may_be_shorter(eqn.primitive, eqn.operands, n) for eqn in trace.written)

    def _recomputes(self) -> bool:
        """Whether columns are pushed as the function runs, not by what was recorded of it.

        In a program that is being staged, and where the linear part of an equation computes its
        values again (checkpoints): all columns at once, so that they are computed once.
        """
        recorded = self.recorded
        if type(recorded.trace) is not WritingTrace or self.chunking != Chunking():
            return False
        nodes = ordered_nodes([node for node in recorded.out_nodes if node is not None])
        if not any(
            type(node.saved) is LinearProgram and recomputes(node.saved.jaxpr) for node in nodes
        ) or any(_has_effects(eqn) for eqn in recorded.trace.written):
            return False
        n = sum(math.prod(shape_of(leaf)) for leaf in self.leaves)
        return self._lanes(n, nodes, forward_bytes(nodes, recorded.out_nodes)) >= n

    def _pushed_blocks(self) -> list[list[Any]]:
        """The blocks by columns, from tangents that are pushed as the function runs."""
        recorded = self.recorded
        assert type(recorded.trace) is WritingTrace
        places = zip(recorded.out_nodes, recorded.outs, strict=True)
        outs = [out if node is None else node for node, out in places]
        written = functools.partial(recorded.trace.again, recorded.inputs, outs)
        flags = tuple([node is not None for node in recorded.inputs])
        avals = [aval_of(leaf) for leaf in recorded.leaves]
        staged = stage(lambda *leaves: written(leaves), avals, self.label)
        program, captured = hoist(simplify(staged))
        known = (*captured, *recorded.leaves)
        pushed, nonzero = jvp_jaxpr(program, (*(False for _ in captured), *flags))
        sizes = [
            math.prod(shape_of(x)) if flag else 0 for x, flag in zip(avals, flags, strict=True)
        ]
        *starts, n = accumulate(sizes, initial=0)
        seeds = []
        for start, leaf in select([*zip(starts, recorded.leaves, strict=True)], flags):
            rows = np.eye(n, math.prod(shape_of(leaf)), -start, dtype_of(leaf))
            rows.flags.writeable = False  # nobody's to change
            seeds.append(rows.reshape(n, *shape_of(leaf)))
        lanes = (*(False for _ in known), *(True for _ in seeds))
        n_outs = len(self.outs)
        force = (*(False for _ in range(n_outs)), *(True for _ in range(sum(nonzero))))
        batched, _ = batch_jaxpr(pushed, n, lanes, force)
        columns = evaluate(batched, [*known, *seeds])[n_outs:]
        table: list[list[Any]] = []
        for i, found in enumerate(spread(nonzero, columns, lambda i: None)):
            table.append([self._zero_block(i, j, is_row=False) for j in range(len(flags))])
            if found is None:
                continue
            found = cast(found, dtype_of(self.outs[i]))
            for j, flag in enumerate(flags):
                if flag:
                    place = BasicIndex((slice(starts[j], starts[j] + sizes[j]),))
                    shape = shape_of(self.outs[i]) + shape_of(self.leaves[j])
                    table[i][j] = _shaped(_last(slice_index(found, place)), shape)
        return table

    def _in_chunks(
        self,
        n: int,
        nodes: Sequence[Node],
        lane_bytes: int,
        shape: tuple[int, ...],
        dtype: DTypeLike | None,
        evaluate: Callable[[Any, int | None], list[Any]],
        shapes: Sequence[tuple[int, ...]],
        progress: Progress,
        *,
        is_row: bool,
    ) -> list[Any]:
        """The rows or columns of some blocks, evaluated in chunks.

        Args:
          n: how many there are.
          nodes: what is gone through.
          lane_bytes: memory of one of them.
          shape: shape of a seed.
          dtype: its dtype.
          evaluate: ``(seeds, size)`` gives a batch per block, or ``None`` for zero.
          shapes: shape of one row or column of each block.
          progress: where to report.
          is_row: whether they are rows.

        Returns:
          Blocks whose elements are those of ``[n, *shape]`` for rows, of ``[*shape, n]`` for
          columns; ``None`` for zero.
        """
        step = self._lanes(n, nodes, lane_bytes)
        if step >= n and self.chunking == Chunking() and _are_staged(self.leaves):
            cached = lanes_in_cache(n, lane_bytes)
            if cached < n and self._is_staged(evaluate(_basis(n, 0, cached, shape, dtype), cached)):
                return self._in_a_loop(n, cached, shape, dtype, evaluate, is_row)
        wholes: list[Any] = [None] * len(shapes)
        places: list[Any] = [None] * len(shapes)
        start = 0
        if step < n:
            size = min(step, n - start)
            first = evaluate(_basis(n, 0, size, shape, dtype), size)
            if any(isinstance(batch, Tracer) for batch in first):
                if self._is_staged(first):
                    return self._in_a_loop(n, step, shape, dtype, evaluate, is_row)
                return self._of_tracers(n, step, shape, dtype, evaluate, first, progress, is_row)
            for k, (batch, own) in enumerate(zip(first, shapes, strict=True)):
                if batch is not None:  # in its final shape: a view of it would be copied
                    wholes[k] = np.empty(shape + own if is_row else own + shape, batch.dtype)
                    places[k] = wholes[k].reshape((n, *own) if is_row else (*own, n))
            while True:
                for place, batch in zip(places, first, strict=True):
                    if place is not None:
                        _write(place, batch, start, is_row)
                del batch
                progress.advance(size)
                start += size
                if start >= n:
                    return wholes
                first.clear()  # before the next chunk is made
                size = min(step, n - start)
                first = evaluate(_basis(n, start, size, shape, dtype), size)
        found = evaluate(_basis(n, 0, n, shape, dtype), n)
        self._is_staged(found)
        progress.advance(n)
        return found if is_row else [None if b is None else _last(b) for b in found]

    def _of_tracers(
        self,
        n: int,
        step: int,
        shape: tuple[int, ...],
        dtype: DTypeLike | None,
        evaluate: Callable[[Any, int | None], list[Any]],
        first: list[Any],
        progress: Progress,
        is_row: bool,
    ) -> list[Any]:
        """Chunks under a trace that has values; they are joined, as operations of that trace."""
        pieces = [first]
        progress.advance(step)
        for start in range(step, n, step):
            size = min(step, n - start)
            pieces.append(evaluate(_basis(n, start, size, shape, dtype), size))
            progress.advance(size)
        joined = [_join(column) for column in zip(*pieces, strict=True)]
        return joined if is_row else [None if b is None else _last(b) for b in joined]

    def _in_a_loop(
        self,
        n: int,
        step: int,
        shape: tuple[int, ...],
        dtype: DTypeLike | None,
        evaluate: Callable[[Any, int | None], list[Any]],
        is_row: bool,
    ) -> list[Any]:
        """Chunks as a loop of the program that is being staged."""
        n_loops = -(-n // step)
        starts = np.minimum(np.arange(n_loops) * step, n - step)  # the last two may overlap
        has_block: list[bool] = []

        def body(carry: Any, start: Array) -> tuple[Any, list[Any]]:
            numbers = np.arange(n) - np.arange(step)[:, None]
            seeds = reshape(cast(equal(numbers, start), dtype), (step, *shape))
            found = evaluate(seeds, step)
            has_block[:] = [batch is not None for batch in found]
            return carry, [batch for batch in found if batch is not None]

        _, stacked = deferred.scan(body, None, starts)
        given = iter(stacked)
        wholes: list[Any] = []
        twice = n_loops * step - n
        for flag in has_block:
            if not flag:
                wholes.append(None)
                continue
            rows = next(given)
            whole = reshape(rows, (n_loops * step, *shape_of(rows)[2:]))
            if twice:
                parts = (slice(n - step), slice(n - step + twice, None))
                whole = concatenate([slice_index(whole, BasicIndex((p,))) for p in parts], 0)
            wholes.append(whole)
        return wholes if is_row else [None if b is None else _last(b) for b in wholes]

    def _is_staged(self, found: Sequence[Any]) -> bool:
        """Whether rows or columns are values of a program that is being staged."""
        is_staged = any(isinstance(b, Tracer) and b._trace.is_staging for b in found)
        if is_staged and self.chunking.progress:
            raise UnsupportedOperationError(
                f"{self.label}: progress was asked for inside a function that is staged (jit, "
                f"vmap){here()}; ask for it outside, or leave it out"
            )
        return is_staged

    def _lanes(self, n: int, nodes: Sequence[Node], lane_bytes: int) -> int:
        """How many rows or columns to evaluate at once."""
        fixed = 0
        if self.chunking.memory_bytes is not None:
            fixed = self._result_bytes()[2] + residual_bytes(nodes)
        return self.chunking.lanes(self.label, n, lane_bytes, fixed)

    def _result_bytes(self) -> tuple[int, int, int]:
        """Number of results, number of arguments, bytes of the dense result."""
        n_out = sum(math.prod(shape_of(out)) for out in self.outs)
        n_in = sum(math.prod(shape_of(leaf)) for leaf in self.leaves)
        return n_out, n_in, n_out * n_in * max((dtype_of(x).itemsize for x in self.outs), default=8)

    def diagonal(self) -> Any:
        """The diagonal of a square Jacobian, in the structure of the argument."""
        out_nodes = self.recorded.out_nodes
        nodes = ordered_nodes([node for node in out_nodes if node is not None])
        diagonals = []
        total = sum(math.prod(shape_of(leaf)) for leaf in self.leaves)
        with Progress(self.who, total, self.chunking.progress) as progress:
            for k, (leaf, node) in enumerate(zip(self.leaves, self.recorded.inputs, strict=True)):
                shape = shape_of(leaf)
                n = math.prod(shape)
                needed = forward_bytes(_above(node, nodes), [out_nodes[k]])
                step = self._diagonal_lanes(n, nodes, needed)
                pieces = []
                for start in range(0, n, step):
                    size = min(step, n - start)
                    seeds = _basis(n, start, size, shape, node.dtype)
                    (tangents,) = push_forward(nodes, [(node, seeds)], [out_nodes[k]], size=size)
                    self._is_staged([tangents])
                    if tangents is None:
                        tangents = np.zeros((size, n), node.dtype)
                    rows = reshape(tangents, (size, n))
                    pieces.append(diagonal(slice_index(rows, _columns(start, size))))
                    del tangents, rows
                    progress.advance(size)
                joined = _join(pieces) if pieces else np.zeros(0, node.dtype)
                diagonals.append(reshape(joined, shape))
        return split_leaves(own_arrays(diagonals, self.leaves), self.treedefs, self.counts)[0]

    def _diagonal_lanes(self, n: int, nodes: Sequence[Node], lane_bytes: int) -> int:
        """As ``_lanes``, for a result of the argument's size."""
        fixed = 0
        if self.chunking.memory_bytes is not None:
            fixed = 8 * self._result_bytes()[1] + residual_bytes(nodes)
        return self.chunking.lanes(self.label, n, lane_bytes, fixed)

    def check_size(self) -> None:
        """Refuse a result that cannot fit.

        Raises:
          MemoryError: with the estimate and the budget.
        """
        n_out, n_in, n_bytes = self._result_bytes()
        own = self.chunking.memory_bytes
        budget = current_config.get().jacobian_memory_bytes if own is None else own
        if n_bytes > budget:
            setting = "ft.config(jacobian_memory_bytes=...)" if own is None else "memory_bytes=..."
            raise MemoryError(
                f"{self.label}: the dense result of {n_out} x {n_in} entries needs "
                f"{n_bytes} bytes ({n_bytes / 2**30:.1f} GiB), more than the budget of {budget} "
                f"bytes ({budget / 2**30:.1f} GiB){here()}. Use ft.sparse_jacobian if most of them "
                "are zero, products with vectors (ft.jvp, ft.vjp, ft.hvp), or raise the budget "
                f"with {setting}."
            )

    def assemble(self, rows: list[list[Any]]) -> Any:
        """Trees of results over trees of arguments."""
        flat = own_arrays([block for row in rows for block in row], self.leaves)
        n = len(self.leaves)
        built = []
        for i in range(len(rows)):
            trees = split_leaves(flat[i * n : (i + 1) * n], self.treedefs, self.counts)
            built.append(trees[0] if isinstance(self.argnums, int) else tuple(trees))
        return tree.unflatten(self.recorded.treedef, built)


def _are_staged(leaves: Sequence[Any]) -> bool:
    """Whether some values are those of a program that is being staged, and none is asked for."""
    config = current_config.get()
    return (
        config.nan_watch is None
        and innermost_staging() is not None
        and any(isinstance(leaf, Tracer) for leaf in leaves)
        and not any(map(has_answer, leaves))
    )


def _has_effects(eqn: Written) -> bool:
    return bool(eqn.primitive.effects) or program_effects(eqn.params)


@analysis
def recomputes(jaxpr: Jaxpr) -> bool:
    """Whether a linear program computes values again that it could have been given."""
    return any(
        eqn.primitive.name in ("checkpoint", "revolve")
        or any(map(recomputes, subjaxprs(eqn.params)))
        for eqn in jaxpr.eqns
    )


def _basis(
    n: int, start: int, size: int, shape: tuple[int, ...], dtype: DTypeLike | None
) -> np.ndarray:
    """Rows ``start`` to ``start + size`` of the identity, each in a shape."""
    rows = np.zeros((size, n), dtype)
    rows[np.arange(size), np.arange(start, start + size)] = 1
    rows.flags.writeable = False  # nobody's to change: staged, it is a constant of the program
    return rows.reshape((size, *shape))


def _above(root: Node | None, nodes: Sequence[Node]) -> list[Node]:
    """The nodes that depend on an input, with its own."""
    found = {root}
    for node in nodes:
        if any([parent in found for parent in node.parents if parent is not None]):  # noqa: C419  # a list is faster
            found.add(node)
    return [node for node in nodes if node in found]


def _cost(value: Array | complex, work: float) -> int:
    """The cost of all rows of a result, or all columns of an argument."""
    return math.prod(shape_of(value)) * (1 + round(work))


def _shaped(block: Array, shape: tuple[int, ...]) -> Array:
    """A block in its shape; itself if it has it."""
    return block if shape_of(block) == shape else reshape(block, shape)


def _write(whole: Any, batch: Any, start: int, is_row: bool) -> None:
    """Put a chunk of rows or columns into its place in a block."""
    size = len(batch)
    if is_row:
        whole[start : start + size] = batch
    else:
        whole[..., start : start + size] = np.moveaxis(batch, 0, -1)


def _columns(start: int, size: int) -> BasicIndex:
    """The index of some columns."""
    return BasicIndex((slice(None), slice(start, start + size)))


def _join(pieces: Sequence[Any]) -> Any:
    """The chunks of a batch as one, ``None`` where none has anything."""
    if pieces[0] is None:
        return None
    return pieces[0] if len(pieces) == 1 else concatenate(pieces, 0)


def _last(block: Array) -> Array:
    """Move the leading batch axis to the end."""
    axes = (*range(1, len(shape_of(block))), 0)
    return transpose(block, axes)
