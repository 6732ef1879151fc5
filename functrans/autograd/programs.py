"""Operations of several equations that are staged once and run as one node.

Here: ``Operation``: a function of arrays that becomes, per kind of operands, a forward program with
residuals and its transpose; both run as generated Python functions. Not here: ``composite``
(``autograd.composites``), which records the equations anew at every call and needs no key.

An operation costs a look-up, two generated functions and one node, whatever the number of its
equations; the equations cost their NumPy calls. Its derivative is derived, as all are: the program
is linearized and transposed. A derivative of a derivative runs the function on tensors.

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np

from functrans.autograd.composites import CompositeNode, composite, rounded
from functrans.autograd.modes import modes
from functrans.autograd.nodes import COMPOSITE, GraphNode
from functrans.autograd.recording import (
    PERMANENT,
    guard_of,
    in_rows,
    mark_origin,
    namespaces,
    node_of,
    note_node,
    refuse_inference,
    unsaved_guard,
)
from functrans.autograd.residuals import Packed
from functrans.autograd.tensors import Tensor
from functrans.core.avals import ShapedArray, is_differentiable_dtype
from functrans.core.caching import Recent, listed
from functrans.core.dispatch import Tracer
from functrans.core.jaxpr import Jaxpr, Var
from functrans.core.quiet import quietly
from functrans.core.source import capture
from functrans.passes.batch import evaluate_batched
from functrans.passes.cotangents import materialize
from functrans.passes.evaluate import evaluate, executable
from functrans.passes.nodes import OUTPUT, batch_first, kept
from functrans.passes.programs import linearize_jaxpr, transpose_jaxpr
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.records import dataclass, field

_MAX_PLANS = 128


@dataclass(slots=True, eq=False)
class OperationPlan:
    """What an operation is for one kind of operands.

    Attributes:
      function: the operation's, for operands of such dtypes.
      primal: ``(*arrays) -> (*outs, *residuals)``.
      linear: its linear part, ``(*residuals, *tangents) -> tangents``; ``None`` without parents.
      positions: of the operands that are arrays.
      targets: of the operands that get a cotangent.
      out_avals: of the results.
      has_tangent: per result, whether it depends on the targets.
      is_many: whether the function returns a tuple.
      shared: per result, whether it may lie in the memory of an operand.
      guarded: positions of operands in whose memory residuals lie.
      guarded_outs: likewise of results.
      backwards: by which results have a cotangent, the transposed program as a function, the
        program, and the positions of the operands that it gives cotangents of.
    """

    function: Callable[..., Any]
    primal: Jaxpr
    run: Callable[..., list[Any]]
    linear: Jaxpr | None
    positions: tuple[int, ...]
    targets: tuple[int, ...]
    out_avals: tuple[ShapedArray, ...]
    has_tangent: tuple[bool, ...]
    is_many: bool
    shared: tuple[bool, ...]
    guarded: tuple[int, ...]
    guarded_outs: tuple[int, ...]
    backwards: dict[tuple[bool, ...], Any] = field(default_factory=dict)

    def backward(self, given: tuple[bool, ...]) -> Any:
        """The pullback for the results that have a cotangent."""
        known = self.backwards.get(given)
        if known is None:
            assert self.linear is not None
            n = len(self.linear.invars) - len(self.targets)
            is_linear = (False,) * n + (True,) * len(self.targets)
            flags = tuple([g for g, has in zip(given, self.has_tangent, strict=True) if has])
            program, is_nonzero = transpose_jaxpr(self.linear, is_linear, flags)
            found = tuple([t for t, flag in zip(self.targets, is_nonzero, strict=True) if flag])
            run = partial(executable(program), *program.consts)
            known = self.backwards[given] = (run, program, found)
        return known


class Operation:
    """An operation on tensors that is one node, made of functrans operations.

    Args:
      label: torch's name of the node, without ``Backward0``.
      function: of tensors, arrays or tracers alike, without control flow that depends on values;
        returns an array or a tuple of arrays.

    Example:
      >>> from functrans.autograd import tensor
      >>> square = Operation("Square", lambda x: x * x)
      >>> x = tensor([1.0, 2.0], requires_grad=True)
      >>> y = square(x)
      >>> y
      tensor([1., 4.], grad_fn=<SquareBackward0>)
    """

    __slots__ = ("function", "label", "plans")

    def __init__(self, label: str, function: Callable[..., Any]) -> None:
        self.label = label
        self.function = function
        self.plans: Recent[Hashable, OperationPlan] = listed(
            "plans of operations", Recent(_MAX_PLANS)
        )

    def __repr__(self) -> str:
        """``Operation(Gelu)``."""
        return f"Operation({self.label})"

    def __call__(self, *operands: Any, **static: object) -> Any:
        """Apply the operation.

        Args:
          *operands: tensors, arrays, or ``None``.
          **static: hashable parameters of the function.
        """
        if not modes.is_watched:
            return self._apply(operands, static)
        if modes.session is not None:
            return self._traced(operands, static)
        ends = [observer(self.label, operands) for observer in modes.observers]
        try:
            return self._apply(operands, static)
        finally:
            for end in reversed(ends):
                end()

    def _apply(self, operands: tuple[Any, ...], static: dict[str, Any]) -> Any:
        values: list[Any] = []
        nodes: list[Any] = []
        key: list[Any] = []
        records = modes.grad
        has_node = False
        for x in operands:
            node = None
            if isinstance(x, Tensor):
                value = x._value
                if isinstance(value, Tracer) or x._trace is not PERMANENT:
                    return self._traced(operands, static)
                if records:
                    node = x._node if x._view is None else node_of(x)
                    if node is not None:
                        has_node = True
            elif x is None:
                values.append(None)
                nodes.append(None)
                key.append(None)
                continue
            elif isinstance(x, Tracer):
                return self._traced(operands, static)
            else:
                value = kept(x)
            values.append(value)
            nodes.append(node)
            key.append((value.shape, value.dtype, node is not None))
        if static:
            key.extend(static.items())
        place = tuple(key)
        plan = self.plans.get(place)
        if plan is None:
            plan = _make_plan(self.label, rounded(self.function, values), values, nodes, static)
            self.plans[place] = plan
        if len(plan.positions) == len(values):
            found = quietly(plan.run, *values)
        else:
            found = quietly(plan.run, *[values[i] for i in plan.positions])
        n = len(plan.out_avals)
        outs = found[:n]
        for i, is_shared in enumerate(plan.shared):
            if is_shared:
                outs[i] = _own(outs[i], values)
        outs = [in_rows(out, values, self.label) for out in outs]
        if not has_node or plan.linear is None:
            return _finished(plan, outs, [None] * n, operands)
        node = ProgramNode(
            COMPOSITE,
            {},
            found[n:],
            tuple(nodes),
            None if plan.is_many else outs[0].shape,
            plan.out_avals if plan.is_many else outs[0].dtype,
            capture(2),
        )
        node.label = self.label
        node.plan = plan
        node.function = partial(plan.function, **static) if static else plan.function
        node.operands = values
        of_operands = {i: unsaved_guard(x) for i, x in enumerate(operands) if isinstance(x, Tensor)}
        node.operand_guards = tuple(of_operands.values())
        guards = [of_operands[i] for i in plan.guarded if i in of_operands]
        if any(operands[i]._inference for i in plan.guarded if i in of_operands):
            refuse_inference()
        if plan.is_many:
            places = [
                GraphNode(OUTPUT, {"index": i}, None, (node,), aval.shape, aval.dtype, node.source)
                if has
                else None
                for i, (aval, has) in enumerate(zip(plan.out_avals, plan.has_tangent, strict=True))
            ]
        else:
            places = [node]
        results = _finished(plan, outs, places, operands)
        made = results if plan.is_many else (results,)
        guards.extend([guard_of(made[i], node.name()) for i in plan.guarded_outs])
        node.guards = guards
        if modes.is_special:
            note_node(node, operands, made)
        return results

    def _traced(self, operands: tuple[Any, ...], static: dict[str, Any]) -> Tensor:
        """Where values are traced, the equations go to their trace."""
        return composite(self.label, partial(self.function, **static), *operands)


def _make_plan(
    label: str,
    function: Callable[..., Any],
    values: Sequence[Any],
    nodes: Sequence[Any],
    static: dict[str, Any],
) -> OperationPlan:
    """Stage, linearize and analyse a function for operands like these."""
    positions = tuple([i for i, value in enumerate(values) if value is not None])
    is_many: list[bool] = []

    def flat(*args: object) -> list[Any]:
        full: list[Any] = [None] * len(values)
        for i, arg in zip(positions, args, strict=True):
            full[i] = arg
        outs = function(*full, **static)
        is_many.append(isinstance(outs, tuple))
        return list(outs) if isinstance(outs, tuple) else [outs]

    avals = [ShapedArray(values[i].shape, values[i].dtype) for i in positions]
    jaxpr = simplify(stage(flat, avals, label, name=label))
    n = len(jaxpr.outvars)
    out_avals = tuple([aval.strong() for aval in jaxpr.out_avals])
    needs = tuple([nodes[i] is not None for i in positions])
    linear = None
    has_tangent = (False,) * n
    if any(needs):
        split = linearize_jaxpr(jaxpr, needs)
        if any(split.out_nonzero):
            jaxpr, linear = split.primal, split.linear
            has_tangent = split.out_nonzero
    roots = _roots(jaxpr)
    residuals = [roots.get(v) for v in jaxpr.outvars[n:] if isinstance(v, Var)]
    argument = dict(zip(jaxpr.invars, positions, strict=True))
    out_roots = [roots.get(v) if isinstance(v, Var) else None for v in jaxpr.outvars[:n]]
    return OperationPlan(
        function=function,
        primal=jaxpr,
        run=partial(executable(jaxpr), *jaxpr.consts),
        linear=linear,
        positions=positions,
        targets=tuple([i for i, need in zip(positions, needs, strict=True) if need]),
        out_avals=out_avals,
        has_tangent=tuple(
            [
                has and is_differentiable_dtype(aval.dtype)
                for has, aval in zip(has_tangent, out_avals, strict=True)
            ]
        ),
        is_many=is_many[0],
        shared=tuple([root in argument or root is None for root in out_roots]),
        guarded=tuple(dict.fromkeys(argument[root] for root in residuals if root in argument)),
        guarded_outs=tuple(
            [
                i
                for i, root in enumerate(out_roots)
                if root is not None and root not in argument and root in residuals
            ]
        ),
    )


def _roots(jaxpr: Jaxpr) -> dict[Var, Var]:
    """Per variable the one whose memory it may lie in; itself where it has its own."""
    roots: dict[Var, Var] = {var: var for var in (*jaxpr.constvars, *jaxpr.invars)}
    for eqn in jaxpr.eqns:
        first = eqn.inputs[0] if eqn.inputs and eqn.primitive.memory != "own" else None
        for var in eqn.outputs:
            roots[var] = roots[first] if isinstance(first, Var) else var
    return roots


def _own(out: Any, values: Sequence[Any]) -> Any:
    """A result with memory of its own."""
    if isinstance(out, np.ndarray):
        shares = any(isinstance(v, np.ndarray) and np.may_share_memory(out, v) for v in values)
        return out.copy() if shares or not out.flags.writeable else out
    return out if hasattr(out, "shape") else np.asarray(out)


def _finished(
    plan: OperationPlan, outs: list[Any], nodes: Sequence[Any], operands: Sequence[Any]
) -> Any:
    if not plan.is_many:
        result = Tensor.of(outs[0], nodes[0])
        if namespaces.has_torch:
            mark_origin(result, operands)
        if modes.inference:
            result._inference = True
        return result
    results = tuple([Tensor.of(out, node) for out, node in zip(outs, nodes, strict=True)])
    if namespaces.has_torch:
        for result in results:
            mark_origin(result, operands)
    if modes.inference:
        for result in results:
            result._inference = True
    return results


def _unpacked(saved: Sequence[Any]) -> list[Any]:
    """Residuals as arrays; each is unpacked once."""
    packed = {id(x): x for x in saved if type(x) is Packed}
    values = {key: x.value() for key, x in packed.items()}
    return [values.get(id(x), x) for x in saved]


class ProgramNode(CompositeNode):
    """The node of an :class:`Operation`.

    Attributes:
      plan: its programs; ``saved`` are the residuals.
    """

    plan: Any = None
    inner: Any = ((), ())
    packed = (np.ndarray, np.generic)
    packs_operands = False

    def reads_nothing(self) -> bool:
        """Whether its pullback reads no operand: programs are named by what they are."""
        return True

    def free(self) -> None:
        """Give residuals up."""
        super().free()
        if self.is_freed:
            self.saved = None

    def replace_residuals(self, function: Callable[[Any], Any]) -> None:
        """Put what a function makes of each residual in its place."""
        self.saved = list(map(function, self.saved))

    def read(self) -> Sequence[Any]:
        """All residuals: the program has no others."""
        return self.saved

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """Run the transposed program; on tensors, pull back through the function's equations."""
        saved = self.residuals()
        if records:
            return super().pull(ct, True, size)
        if self.is_packed:
            saved = _unpacked(saved)
        plan = self.plan
        cts = ct if plan.is_many else [ct]
        given = tuple([c is not None for c in cts])
        run, program, found = plan.backward(given)
        results: list[Any] = [None] * len(self.parents)
        lead = () if size is None else (size,)
        args = [
            *saved,
            *[
                materialize(c, (*lead, *aval.shape))
                for c, aval, has in zip(cts, plan.out_avals, plan.has_tangent, strict=True)
                if has and c is not None
            ],
        ]
        if size is not None:
            dims = [None] * len(saved) + [0] * (len(args) - len(saved))
            outs, out_dims = evaluate_batched(program, size, args, dims)
            values = [batch_first(o, d, size) for o, d in zip(outs, out_dims, strict=True)]
        elif any(isinstance(arg, Tracer) for arg in args):
            values = evaluate(program, args)
        else:
            values = run(*args)
        for i, value in zip(found, values, strict=True):
            results[i] = value
        return results
