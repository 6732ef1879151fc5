"""The imperative trace: operations on tensors are evaluated at once and recorded.

Here: ``ImperativeTrace``, and what is done beside recording in special modes. Not here: tensors
(``autograd.tensors``), nodes (``autograd.nodes``), the backward pass (``autograd.engine``).

There is one permanent trace, the outermost of all, to which tensors belong; its values are plain.
A transform of a function that is written with tensors opens another one inside its own trace; the
values of its tensors are tracers, and operations on them go on to that trace.

Layer: ``autograd``. Reference: PyTorch's documentation of autograd mechanics, for the behaviour.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.autograd.hooks import annotate, carry, move_retain, say
from functrans.autograd.labels import edge_of, label_of
from functrans.autograd.memory_order import is_dense
from functrans.autograd.modes import entered, modes
from functrans.autograd.nodes import COMPOSITE, AliasNode, GraphNode, running
from functrans.autograd.residuals import Guard, lies_in, map_residuals
from functrans.autograd.tensors import IN_CUSTOM_FUNCTION, Storage, Tensor, View, plain_of
from functrans.control.custom_rules import stop_gradient
from functrans.core.annotations import ANOMALY_ORIGIN, Annotation
from functrans.core.avals import PYTHON_SCALARS, is_differentiable_dtype
from functrans.core.boundary import cause
from functrans.core.dispatch import Trace, Tracer, bind, elementwise, shape_of
from functrans.core.primitive import Primitive
from functrans.core.quiet import begin_quiet, end_quiet, quietly
from functrans.core.source import capture
from functrans.core.state import open_traces
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError, TensorShapeError
from functrans.passes.nodes import OUTPUT, LinearProgram, Node, kept, record
from functrans.passes.pushing import PushingTracer
from functrans.passes.recording import RecordingTracer
from functrans.passes.value_tracers import explained
from functrans.primitives.structural import cast_p, overwritten_p, stop_gradient_p, unrecorded_p
from functrans.primitives.torch_elementwise import with_slope

_PACKAGE = __file__.rpartition("autograd")[0]
_NO_PARAMS: Mapping[str, Any] = {}
_new = object.__new__
_SCALARS = frozenset({float, int, complex, bool, np.float64, np.float32})


class ImperativeTrace(Trace):
    """Evaluates every operation on tensors and makes its node.

    Attributes:
      is_plain: whether values are arrays; else they may be tracers.
      stops: whether reverse mode of the traces around it does not go through what is computed in
        ``no_grad``.
      is_reverse: whether its values are recorded for reverse mode alone.
      outer: the modes in which its values are computed, if these are not those of its tensors.
      level: the number of the transform of ``torch.func`` that it belongs to, or 0.
      arguments: of a transform the caller's tensors, by the identities of those that stand for
        them.
      unwritten: those of these identities whose tensors would be written to in the end, but are
        not yet.
    """

    __slots__ = (
        "arguments", "is_plain", "is_reverse", "is_root", "level", "outer", "stops", "unwritten",
    )  # fmt: skip
    keeps_account = False
    """Whether it wants to know its tensors; see ``forward_ad``."""

    def __init__(self, label: str, is_plain: bool) -> None:
        super().__init__(label)
        self.is_plain = is_plain
        self.is_root = is_plain
        self.stops = self.is_reverse = False
        self.outer: Mapping[str, bool] | None = None
        self.level = 0
        self.arguments: dict[int, Tensor] = {}
        self.unwritten: set[int] = set()

    def takes(self, tensor: Tensor) -> bool:
        """Whether a tensor of an outer trace, which is no view, may be given values of this one."""
        is_made_inside = 0 < self.level <= tensor._level
        return is_made_inside or (self.keeps_account and not isinstance(tensor._value, Tracer))

    def take_over(self, tensor: Tensor) -> None:
        """Make a tensor that was made while this trace runs, and its views, tensors of it.

        Args:
          tensor: it, which is no view. Its value is a constant of the transform until it is
            written to.
        """
        assert self.parent is not None
        before, storage = tensor._stored(), Storage()
        storage.views = before.views  # what was saved of its memory refers to the other storage
        for x in (tensor, *[reference() for reference in storage.views]):
            if x is None or x._trace is self or not (x is tensor or x._view.root is tensor):
                continue  # also a dual tensor that is made of it
            node_of(x)  # a view takes over what was written to its base
            x._memory()
            x._value = self.parent.lift(x._as_now())  # of the transform
            x._trace, x._node, x._storage = self, None, storage
            if x._view is not None:
                x._view.note_version(0)

    def note(self, tensor: Tensor) -> None:
        """Note a new tensor of this trace, if it keeps account."""

    def tensor(self, value: Operand, node: GraphNode | None = None) -> Tensor:
        """A tensor of this trace."""
        return Tensor.of(value, node, None if self is PERMANENT else self)

    def enter(self, tensor: Tensor) -> Tensor:
        """A tensor as it is now, which becomes a constant of a program that is being staged."""
        enter_session(tensor)
        if modes.session is not None or not modes.level:
            return tensor
        node_of(tensor)  # a view takes over what was written to its base
        return tensor._as_now()

    def annotate(self, tracer: Any, note: Any, is_result: bool = True) -> None:
        """Attach an annotation of a program that runs on tensors to the graph."""
        node = node_of(tracer)
        if node is not None and isinstance(note, Annotation):
            carry(node, note)
        say(tracer, note, is_result)

    def lift(self, value: Operand, operands: Sequence[Any] = ()) -> Tensor:
        """A tensor for a constant, or for what was computed without it of operands."""
        if isinstance(value, Tensor) and value._trace is self:
            return value
        result = self.tensor(value)
        if namespaces.has_torch:
            mark_origin(result, operands)
        return result

    def _taken_apart(self, operands: tuple[Any, ...]) -> tuple[list[Any], list[Any], bool]:
        """Values, nodes, and whether there is a node."""
        values: list[Any] = []
        parents: list[Any] = []
        has_parent = False
        for operand in operands:
            if isinstance(operand, Tensor) and operand._trace is self:
                view = operand._view
                if view is not None and view.version != operand._storage.version:  # type: ignore[union-attr]  # views have one
                    renew(operand)
                values.append(operand._value)
                node = operand._node
                parents.append(node)
                if node is not None:
                    has_parent = True
            else:
                values.append(operand)
                parents.append(None)
        return values, parents, has_parent

    def elementwise(
        self, primitive: Primitive, operands: tuple[Any, ...], is_told: bool = False
    ) -> Any:
        """Evaluate an elementwise operation and record it; ``is_told`` where who watches knows."""
        if modes.is_watched and not is_told:
            if modes.session is not None and self is PERMANENT:
                inside: Trace = modes.session.take(operands)
                if not inside.is_direct:  # a branch of ``cond`` takes it
                    return elementwise(primitive, *operands)
                return inside.elementwise(primitive, operands)
            return _observed(primitive.name, operands, self.elementwise, primitive, operands, True)
        family = primitive.elementwise
        assert family is not None
        needed = 0
        has_torch = False
        if type(self) is ImperativeTrace:  # as below, where it counts
            values: list[Any] = []
            parents: list[Any] = []
            for operand, reads in zip(operands, family.reads):  # noqa: B905  # hot
                value = operand
                node = None
                if isinstance(operand, Tensor):
                    if operand._follows:
                        has_torch = True
                    if operand._trace is self:
                        view = operand._view
                        if view is not None and view.version != operand._storage.version:  # type: ignore[union-attr]  # views have one
                            renew(operand)
                        value, node = operand._value, operand._node
                        if node is not None:
                            needed |= reads
                values.append(value)
                parents.append(node)
        else:
            values, parents, _ = self._taken_apart(operands)
            for operand, parent, reads in zip(operands, parents, family.reads, strict=True):
                needed |= 0 if parent is None else reads
                has_torch = has_torch or (isinstance(operand, Tensor) and operand._follows)
        try:
            if self.is_plain:
                token = begin_quiet()
                try:
                    out = family.function(*values)
                finally:
                    end_quiet(token)
            elif self.outer is None:
                out = elementwise(primitive, *values)
            else:
                out = self._outside(elementwise, primitive, *values)
        except (ValueError, TypeError) as error:
            raise _clearer(primitive, values, {}, error) from cause(error)
        if not needed or not modes.grad:
            return self._result(out, operands)
        guards: list[Any] = []
        bit = 1 << len(values)
        if needed & (bit - 1):
            saved: list[Any] = []
            bit = 1
            for operand, value in zip(operands, values):  # noqa: B905  # hot
                if not needed & bit:
                    saved.append(None)
                elif value is not operand:
                    saved.append(value)
                    guards.append(guard_of(operand))
                elif type(value) in _SCALARS:
                    saved.append(value)
                else:
                    saved.append(kept(value))
                bit <<= 1
        else:
            saved = [None] * len(values)
        own = GraphNode(
            primitive, _NO_PARAMS, saved, tuple(parents), out.shape, out.dtype, capture()
        )
        if self is PERMANENT and not modes.is_inside:
            result: Tensor = _new(Tensor)
            result._value, result._node = out, own
        else:
            result = self.tensor(out, own)
        if has_torch:
            result._follows = True
        if needed & bit:
            saved.append(out)
            guards.append(guard_of(result, own.name()))
        else:
            saved.append(None)
        if guards:
            own.guards = guards
        if modes.is_special:
            note_node(own, operands, (result,))
        return result

    def _result(self, out: Array, operands: tuple[Any, ...]) -> Tensor:
        """A result that is not recorded."""
        if not modes.grad:
            out = self.unrecorded(out)
        result = self.tensor(out)
        if modes.inference:
            result._inference = True
        if out.dtype.kind in "iub" and any(map(follows, operands)):
            result._follows = True
        elif namespaces.has_torch:
            mark_origin(result, operands)
        return result

    def _outside(self, function: Callable[..., Any], *args: object) -> Any:
        """Call a function of values in the modes in which these are computed."""
        assert self.outer is not None
        with _inner(self.outer):
            return quietly(function, *args)

    def unrecorded(self, value: Array) -> Array:
        """A value as one of ``no_grad``, through which no reverse mode takes a derivative."""
        if not self.stops or not is_differentiable_dtype(value.dtype):
            return value
        stop = unrecorded_p if modes.forward else stop_gradient_p
        return _unrecorded(value, stop, self.is_reverse)

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Evaluate an operation and record it."""
        if primitive.elementwise is not None and not params:
            return (self.elementwise(primitive, operands),)
        if modes.is_watched:
            if modes.session is not None and self is PERMANENT:
                trace: Trace = modes.session.take(operands)
                if not trace.is_direct:
                    return bind(primitive, *operands, **params)
                return trace.process(primitive, operands, params)
            return _observed(primitive.name, operands, self._process, primitive, operands, params)
        return self._process(primitive, operands, params)

    def _process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        values, parents, _ = self._taken_apart(operands)
        if primitive is overwritten_p:
            parents = [None, parents[1]]
        elif not modes.grad or primitive is unrecorded_p:
            parents = [None] * len(parents)
        evaluate = quietly if self.outer is None else self._outside
        try:
            outs, nodes = evaluate(
                record,
                primitive,
                values,
                params,
                tuple(parents),
                capture(),
                self.is_plain,
                kept,
                GraphNode,
            )
        except (ValueError, TypeError, IndexError) as error:
            raise _clearer(primitive, values, params, error) from error
        if primitive.holds_programs:  # whose results may be numbers, as Python computes them
            outs = [np.asarray(x) if type(x) in PYTHON_SCALARS else x for x in outs]
        if self.is_plain and primitive.elementwise is None and primitive is not cast_p:
            for out in outs:
                if type(out) is np.ndarray and not out.flags.c_contiguous:  # hot: rarely so
                    outs = [in_rows(out, values, primitive.name) for out in outs]
                    break
        results = tuple(
            [
                self.tensor(out, node) if node is not None else self._result(out, operands)
                for out, node in zip(outs, nodes, strict=True)
            ]
        )
        if namespaces.has_torch:
            for result in results:
                mark_origin(result, operands)
        if self.is_plain and not modes.is_viewing:
            for i, out in enumerate(outs):
                if type(out) is np.ndarray and (out.base is not None or _is_among(out, values)):
                    _note_shared(primitive, operands, params, results, i)
        main = next((node for node in nodes if node is not None), None)
        if main is not None:
            if main.primitive is OUTPUT:
                main = main.parents[0]
            assert isinstance(main, GraphNode)
            self._guard(main, operands, results)
            if isinstance(main.saved, LinearProgram):
                main.primals = [
                    value if isinstance(x, Tensor) else kept(value)
                    for x, value in zip(operands, values, strict=True)
                ]
                main.primal_guards = [unsaved_guard(x) for x in operands if isinstance(x, Tensor)]
            if modes.is_special:
                note_node(main, operands, results)
        return results

    def _guard(self, node: GraphNode, operands: Sequence[Any], results: Sequence[Any]) -> None:
        """Guard what a node saved of the memory of tensors."""
        if isinstance(node.saved, LinearProgram):
            residuals = node.saved.residuals
            tensors = [x for x in operands if isinstance(x, Tensor)]
            node.guards = [
                *[guard_of(x) for x in tensors if lies_in(x._value, residuals)],
                *[guard_of(x, node.name()) for x in results if lies_in(x._value, residuals)],
            ]
            return
        held = set()

        def note(value: Array, _: object) -> None:
            held.add(id(value))

        map_residuals(node.saved, note, node)
        found = [guard_of(x) for x in operands if isinstance(x, Tensor) and id(x._value) in held]
        found += [guard_of(x, node.name()) for x in results if id(x._value) in held]
        if found:
            node.guards = found


PERMANENT = ImperativeTrace("the imperative graph", is_plain=True)
"""The trace of all tensors that no transform made."""
Tensor._trace = PERMANENT


def follows(x: Tensor | complex) -> bool:
    """Whether integers computed from it become the floating dtype of ``functrans.compat.torch``.

    Those do that were made there, and those that come from tensors narrower than float64.
    """
    if not isinstance(x, Tensor):
        return False
    dtype = x._value.dtype
    return x._follows if dtype.kind in "iub" else dtype.itemsize < (16 if dtype.kind == "c" else 8)


class Namespaces:
    """Which namespaces of tensors are in use.

    Attributes:
      has_torch: whether ``functrans.compat.torch`` is; only then results are marked as its own.
    """

    has_torch = False


namespaces = Namespaces()


def mark_origin(result: Tensor, operands: Sequence[Any]) -> None:
    """Mark a result as one of ``functrans.compat.torch`` if an operand is."""
    for x in operands:
        if isinstance(x, Tensor) and x._follows:
            result._follows = True
            return


def enter_session(*tensors: Any) -> None:
    """Make tensors a part of the step that ``jit`` is tracing in this thread, if there is one.

    Views with traced values take over what was written to their bases; other views share memory.
    """
    if modes.session is not None:
        modes.session.take(tensors)
        return
    for x in tensors:
        if not isinstance(x, Tensor) or x._view is None:
            continue
        if x._view.is_copied or isinstance(x._value, Tracer):
            node_of(x)


_MOVES = frozenset(
    {
        "broadcast_to", "dynamic_slice", "reshape", "reverse", "slice", "split", "transpose",
        "unstack",
    }
)  # fmt: skip
"""Primitives whose result may be a view of their first operand, of whatever dtype that is."""


IN_ROWS = frozenset((
    "Cummax", "Cummin", "Cumprod", "Cumsum", "FftC2C", "FftR2C", "Gather", "Index", "IndexCopy",
    "IndexSelect", "LinalgSolveEx", "LogSigmoid", "LogSoftmax", "Logcumsumexp", "MaskedFill",
    "Mvlgamma", "NativeBatchNorm", "NativeGroupNorm", "NativeLayerNorm", "Roll",
    "ScatterBackward0", "ScatterBackward1", "Softmax",
))  # fmt: skip
"""Operations whose results have the shape of an operand but, as PyTorch's, not its order."""


def in_rows(out: Any, values: Sequence[Any], label: str) -> Any:
    """A result in row-major order, as PyTorch has them, where it is no view of an operand.

    Elementwise operations keep the order of their operands, as they do here; NumPy's others do at
    times, and views of them would be refused.
    """
    if type(out) is not np.ndarray or out.flags.c_contiguous:
        return out
    arrays = [v for v in values if type(v) is np.ndarray]
    likes = [v for v in arrays if v.shape == out.shape and not v.flags.c_contiguous]
    if likes and label not in IN_ROWS and is_dense(out):
        return out
    if any(np.may_share_memory(out, v) for v in arrays):
        return out
    return np.ascontiguousarray(out)


def _is_among(out: Array, values: Sequence[Any]) -> bool:
    for value in values:  # noqa: SIM110  # hot
        if out is value:
            return True
    return False


def _note_shared(
    primitive: Primitive,
    operands: tuple[Any, ...],
    params: Mapping[str, Any],
    results: Sequence[Tensor],
    i: int,
) -> None:
    """Make a result that lies in the memory of an operand a view of it, or give it a copy."""
    result = results[i]
    value = result._value
    shares = [isinstance(x, Tensor) and np.may_share_memory(value, x._value) for x in operands]
    if not any(shares):
        return
    x, *rest = operands
    if primitive.name == "stop_gradient":
        result._storage = operands[shares.index(True)]._stored()
    elif not shares[0] or primitive.name not in _MOVES:
        result._value = value.copy()
    else:

        def step(part: object) -> Any:
            if isinstance(part, np.ndarray):
                return primitive.impl(part, *map(plain_of, rest), **params)[i]
            return bind(primitive, part, *rest, **params)[i]

        follow(result, x, step, label_of(primitive), is_multiple=len(results) > 1)


def follow(
    view: Tensor,
    x: Tensor,
    step: Callable[[Any], Any],
    label: str,
    *,
    is_multiple: bool = False,
    is_copied: bool = False,
) -> None:
    """Make a tensor in the memory of another one its view.

    Args:
      view: the tensor.
      x: the other one.
      step: the view as a function of arrays and of tensors.
      label: torch's name of the operation.
      is_multiple: whether the call made several views.
      is_copied: whether its memory is a conjugated copy.
    """
    storage, how = x._stored(), x._view
    base, steps = (x, ()) if how is None or how.detach is not None else (how.base, how.steps)
    view._storage = storage
    storage.note_view(view)
    made = view._view = View(base, (*steps, step), storage, label, is_multiple)
    made.is_unrecorded, made.is_inferred = not modes.grad, modes.inference
    if how is not None:
        made.is_unrecorded |= how.is_unrecorded
        made.is_inferred |= how.is_inferred
        made.is_multiple |= how.is_multiple
        made.is_custom = how.is_custom
        made.levels = how.levels
    if isinstance(x._value, Tracer):  # writes to it are written to its base, functionally
        made.is_conj = is_copied != (how is not None and how.is_conj)
        return
    if how is not None:
        made.copy_from(how)
    if is_copied:
        made.is_conj = not made.is_conj
        if not made.is_copied:
            made.set_copied()
    view._inference = x._inference


def is_stale(view: Tensor) -> bool:
    """Whether its base was written to since a view was made or renewed."""
    storage, how = view._storage, view._view
    if how is None or storage is None or how.version == storage.version:
        return False
    return not how.is_copied or how.node_version != storage.version


def innermost() -> ImperativeTrace:
    """The imperative trace that was opened last; the permanent one if none is open."""
    traces = (trace for trace in reversed(open_traces.get()) if isinstance(trace, ImperativeTrace))
    return next(traces, PERMANENT)


def _inner(outer: Mapping[str, bool]) -> entered:
    """The modes of what encloses a trace, with what was switched off in the trace."""
    inference = modes.inference or outer["inference"]
    return entered(
        {
            "grad": modes.grad and outer["grad"],
            "is_asked": False,
            "inference": inference,
            "forward": modes.forward and outer["forward"],
        }
    )


def _unrecorded(value: Operand, stop: Primitive, is_reverse: bool) -> Any:
    """A value through which no reverse mode around it takes a derivative.

    Args:
      value: an array or a tracer.
      stop: the operation that says so.
      is_reverse: whether its own trace is one of reverse mode alone, which needs no node then.
    """
    if is_reverse and type(value) is RecordingTracer:
        inner = value._value  # of a tensor the modes took care
        if isinstance(inner, Tracer) and not isinstance(inner, Tensor):
            inner = bind(stop, inner)[0]
        return RecordingTracer(value._trace, inner, None)
    return bind(stop, value)[0] if isinstance(value, Tracer) else value


def with_only(value: Operand, slope: object) -> Any:
    """A value with the derivative of another one, or with none, for all transforms around it."""
    value = stop_gradient(value)
    return value if slope is None else with_slope(value, slope)


def with_own_only(value: Any, slope: Any) -> Any:
    """The same for the transform that the value belongs to alone, as ``.data`` has it."""
    trace = value._trace if isinstance(value, Tracer) else None
    if not (type(slope) is type(value) and slope._trace is trace):
        slope = None
    if type(value) is RecordingTracer:
        return RecordingTracer(value._trace, value._value, None if slope is None else slope._node)
    if type(value) is PushingTracer:
        primal, own = value._value, None if slope is None else slope._value
        if value._trace.gives_values and (isinstance(primal, Tensor) or isinstance(own, Tensor)):
            primal = with_only(primal, own)  # a dual level is one with the graph
        return PushingTracer(value._trace, primal, None if slope is None else slope._tangent)
    return with_only(value, slope)


def guard_of(tensor: Tensor, origin: str = "") -> Guard:
    """A guard of a tensor's memory as it is now.

    Raises:
      RuntimeError: it is an inference tensor.
    """
    if tensor._inference:
        refuse_inference()
    storage = tensor._storage
    if storage is None:
        storage = tensor._stored()
    if not origin and tensor._node is not None and tensor._node.primitive is not None:
        origin = tensor._node
    return Guard(storage, tensor._value, origin)


def refuse_inference() -> None:
    """Refuse to save a tensor that was made in ``inference_mode``.

    Raises:
      RuntimeError: always.
    """
    raise RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
        "inference mode in computation tracked by autograd. To work around this, you can make "
        "a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
        "instead of `torch.inference_mode()`."
    )


def unsaved_guard(tensor: Tensor) -> Guard:
    """A guard of an operand that the first derivative may not need."""
    node = tensor._node
    origin = node if node is not None and node.primitive is not None else ""
    return Guard(tensor._stored(), tensor._value, origin)


def _clearer(primitive: Primitive, values: Any, params: Any, error: Exception) -> Exception:
    """The error that says where and what."""
    clearer = explained(primitive, tuple(values), params, error) or error
    if type(clearer) is ShapeError:
        return sizes_differ(clearer, values) or TensorShapeError(*clearer.args)
    return clearer


def sizes_differ(error: ValueError, operands: Sequence[Any]) -> TensorShapeError | None:
    """The error of operands that do not broadcast, with PyTorch's words first; else ``None``."""
    if "broadcast" in str(error):
        shapes = [shape_of(x)[::-1] for x in operands if hasattr(x, "shape")]
        for i, b in enumerate(shapes):
            for a in shapes[:i]:
                for axis, (m, n) in enumerate(zip(a, b, strict=False), 1):
                    if m != n and 1 not in (m, n):
                        return TensorShapeError(
                            f"The size of tensor a ({m}) must match the size of tensor b ({n}) at "
                            f"non-singleton dimension {max(len(a), len(b)) - axis}: {error}"
                        )
    return None


def _observed(name: str, operands: Sequence[Any], call: Callable[..., Any], *args: object) -> Any:
    """Tell those who watch of the beginning and the end of an operation."""
    ends = [observer(name, operands) for observer in modes.observers]
    try:
        return call(*args)
    finally:
        for end in reversed(ends):
            end()


def note_node(node: GraphNode, operands: Sequence[Any], results: Sequence[Any]) -> None:
    """What special modes add to a new node.

    Args:
      node: the node.
      operands: tensors or constants.
      results: tensors.
    """
    if modes.anomaly:
        stack = traceback.extract_stack()
        while stack and stack[-1].filename.startswith(_PACKAGE):
            stack.pop()
        lines = node.metadata["traceback_"] = stack.format()
        annotate(node, Annotation(ANOMALY_ORIGIN, "".join(lines)))
        if running.backward is not None and running.backward.node is not None:
            node.metadata["parent_"] = edge_of(running.backward.node)[0]
    if modes.packers:
        pack, unpack = modes.packers[-1]
        node.pack_residuals(pack, unpack, operands, results)


def made_anew(view: Tensor) -> Tensor:
    """A view as it is made of its base now."""
    how = view._view
    assert how is not None
    current = Tensor.of(how.base._value, how.base._node, view.__dict__.get("_trace"))
    for step in how.steps:
        current = step(current)
    return current


def renew(view: Tensor) -> None:
    """Give a view the node that its base has now, after its memory was written to.

    Raises:
      RuntimeError: the view was made by a ``Function``, or while nothing was recorded.
    """
    how = view._view
    assert how is not None
    storage = view._stored()
    node = view._node
    node_of(how.base)
    if how.is_copied and not isinstance(view._value, Tracer):
        view._value = how.copied()
        if how.node_version == storage.version:
            return
    if how.is_unrecorded and how.base._node is not None:
        if modes.grad:
            raise RuntimeError(how.of_both_modes("its base or another view of its base has been"))
        if not isinstance(view._value, Tracer):
            return
    if how.is_custom and (node is not None or isinstance(view._value, Tracer)):
        raise RuntimeError(
            f"Output 0 of {how.creator} is a view and its base or another view of its base has "
            f"been modified inplace. {IN_CUSTOM_FUNCTION}"
        )
    if how.detach is not None:
        current = how.base._value
        for step in how.steps:
            current = step(current)
        if isinstance(current, Tracer):
            current = how.detach(current, view._value if how.is_own else None)
        view._value = current  # an array is shared
    elif how.base._node is not None or isinstance(view._value, Tracer):
        before = modes.grad
        modes.grad = not how.is_unrecorded  # the mode of the view, whatever it is now
        try:
            current = made_anew(view)
        finally:
            modes.grad = before
        node = current._node
        if node is not None and node is how.base._node and how.steps:  # hooks are of one of them
            node = AliasNode(COMPOSITE, {}, None, (node,), node.shape, node.dtype, capture())
            node.label = how.creator
        if isinstance(view._value, Tracer):
            view._value = current._value
    elif node is not None and node.primitive is not None:  # its base was detached
        node = None
    if view._retains:
        move_retain(view, view._node, node)
    view._node = node
    how.note_version(storage.version)


def node_of(tensor: Tensor) -> Node | None:
    """The node of a tensor, as it is now."""
    how = tensor._view
    if how is not None and tensor._storage is not None and how.version != tensor._storage.version:
        renew(tensor)
    if tensor._place is not None:
        tensor._place.renew(tensor)
    return tensor._node
