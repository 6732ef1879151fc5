"""Writes to the memory of tensors, and what they do to the graph.

Here: ``check_write`` (may it be written to), ``write`` (write, count it, give the tensor its new
node), and the nodes of what was written to. Not here: the in-place operations
(``autograd.methods``), how views of the same memory follow (``autograd.recording.renew``).

An in-place operation calls ``check_write``, computes its result as if it were not in place, and
hands that to ``write``.

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from functrans.arrays.indexing import index_value, updated
from functrans.autograd.hooks import move_retain
from functrans.autograd.labels import edge_of
from functrans.autograd.modes import RECORDING, entered, modes
from functrans.autograd.nodes import COMPOSITE, GraphNode
from functrans.autograd.overlaps import check_memory, check_places, share_memory
from functrans.autograd.promotion import CATEGORY, to_dtype, torch_kind
from functrans.autograd.recording import enter_session, node_of
from functrans.autograd.residuals import keep_result, region_of, root_of, twins_of
from functrans.autograd.tensors import ARGUMENT, IN_CUSTOM_FUNCTION, Tensor
from functrans.autograd.views import whole_view
from functrans.core.avals import ShapedArray, is_differentiable_dtype
from functrans.core.boundary import noted
from functrans.core.dispatch import Tracer, bind, dtype_of, inner_trace, shape_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import capture
from functrans.core.values import Array, Operand
from functrans.passes.cotangents import materialize
from functrans.passes.pushing import PushingTracer
from functrans.passes.staging import stage
from functrans.primitives.complex_parts import complex_of, conjugate, imag, real
from functrans.primitives.elementwise import where
from functrans.primitives.movement import stack
from functrans.primitives.structural import broadcast_to, copy_p, overwritten_p, reshape
from functrans.transforms.vectorize import vmap

# nodes of what was written to --------------------------------------------------------------------


class CopySlices(GraphNode):
    """The base of a view after the view was written to.

    Attributes:
      region: from an array of the base's shape to the part that was written to.
    """

    label = "CopySlices"
    region: Any = None

    def name(self) -> str:
        """``CopySlices``."""
        return "CopySlices"

    def subprogram(self) -> Jaxpr:
        """The write as a program of the base and of what was written."""
        part = self.parents[1]
        dtype = self.dtype if part is None else part.dtype
        shape = self.region(np.zeros(self.shape, _numbered(self.dtype))).shape
        avals = [ShapedArray(self.shape, self.dtype), ShapedArray(shape, dtype)]
        return stage(
            lambda base, part: [_placed(base, self.region, part)],
            avals,
            "CopySlices",
            name="CopySlices",
        )

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """The cotangent outside of the part for the base, inside for what was written.

        The view is taken of the gradient, which is the conjugate of the cotangent: a real part of
        it belongs to a real part of the value.
        """
        lead = () if size is None else (size,)
        full = materialize(ct, (*lead, *self.shape))
        gradient = _conjugated(full)
        inside = np.zeros(self.shape, _numbered(self.dtype))
        written = self.region(inside)
        written[...] = 1 + 1j if written.dtype.kind == "c" else 1
        if not np.may_share_memory(written, inside):
            inside = np.asarray(_placed(inside, self.region, written))
        if isinstance(full, Tracer):
            part = self.region(gradient) if size is None else vmap(self.region)(gradient)
        elif size is None:
            part = self.region(np.asarray(gradient)).copy()
        else:
            part = np.stack([self.region(np.asarray(one)) for one in gradient])
        return [_outside(inside, full), _conjugated(part)]


def _numbered(dtype: np.dtype) -> np.dtype:
    """The dtype of arrays of numbers of elements that views of a dtype can be taken of."""
    return np.dtype({"c": np.complex128, "f": np.float64}.get(dtype.kind, np.int64))


def _conjugated(x: Array) -> Array:
    return conjugate(x) if x.dtype.kind == "c" else x


def _outside(inside: np.ndarray, full: Array) -> Any:
    """What was not written to; a complex number may have been written to in one part."""
    if inside.dtype.kind != "c":
        return where(inside != 0, 0, full)
    in_real, in_imag = inside.real != 0, inside.imag != 0
    if np.array_equal(in_real, in_imag):
        return where(in_real, 0, full)
    return complex_of(where(in_real, 0, real(full)), where(in_imag, 0, imag(full)))


def _placed(base: Array | complex, region: Callable[[Any], Any], part: Array | Tensor) -> Array:
    """An array with another part.

    Args:
      base: the array.
      region: from the array to the part, as a view; that may be the real part of a complex array,
        or complex numbers whose parts lie in a real one; or conjugates.
      part: what is written.
    """
    shape = shape_of(base)
    n = math.prod(shape)
    places, is_whole = _places(shape, dtype_of(base), region)
    if is_whole:
        return reshape(updated(reshape(base, (n,)), places.astype(np.int64), part), shape)
    if places.dtype.kind == "c":
        places = np.stack([places.real, places.imag], -1)
        part = _pairs(part)
    if (places < 0).any():  # imaginary parts of conjugates
        part, places = where(places < 0, -part, part), np.abs(places)
    if dtype_of(base).kind != "c":
        return reshape(updated(reshape(base, (n,)), places.astype(np.int64), part), shape)
    flat = updated(reshape(_pairs(base), (2 * n,)), places.astype(np.int64), part)
    halves = reshape(flat, (*shape, 2))
    return complex_of(index_value(halves, (..., 0)), index_value(halves, (..., 1)))


def _places(
    shape: tuple[int, ...], dtype: np.dtype, region: Callable[[Any], Any]
) -> tuple[np.ndarray, bool]:
    """Where the elements of a part lie, and whether they are whole elements.

    Else they are numbered by the parts of complex numbers; negative for those of conjugates.
    """
    numbers = np.arange(math.prod(shape)).reshape(shape)
    if dtype.kind != "c":
        places = region(numbers.astype(_numbered(dtype)))
        return places, places.dtype.kind != "c"
    places = region(2 * numbers + 1j * (2 * numbers + 1))
    is_whole = places.dtype.kind == "c" and bool(
        np.all((places.real % 2 == 0) & (places.imag == places.real + 1))
    )
    return (places.real // 2 if is_whole else places), is_whole


def _pairs(x: Any) -> Any:
    """Complex numbers as pairs along another, last axis."""
    return stack((real(x), imag(x)), len(shape_of(x)))


class Overwritten(GraphNode):
    """A tensor of the graph after all of it was overwritten, maybe by one that is recorded."""

    def pull(self, ct: Operand, records: bool, size: int | None = None) -> Sequence[Any]:
        """Zeros, and the cotangent for what was written."""
        lead = () if size is None else (size,)
        return [np.zeros((*lead, *self.shape), self.dtype), ct][: len(self.parents)]


# writes ------------------------------------------------------------------------------------------


def check_view(x: Tensor, written: object = None) -> None:
    """Refuse to write to a view whose place in the graph would be lost.

    Args:
      x: a view.
      written: the node of what is written, if it has one.

    Raises:
      RuntimeError: it was made while nothing was recorded, by a ``Function``, or by a call that
        made several views.
    """
    how, node = x._view, x._node
    assert how is not None
    base = how.base._node
    if how.is_unrecorded and (base is not None or written is not None):
        raise RuntimeError(how.of_both_modes("is being"))
    if how.is_custom and not (node is None and written is None and type(x._value) is np.ndarray):
        raise RuntimeError(
            f"Output 0 of {how.creator} is a view and is being modified inplace. "
            f"{IN_CUSTOM_FUNCTION}"
        )
    if how.is_multiple and (base is not None or node is not None or written is not None):
        index = 0 if node is None else edge_of(node)[1]
        raise RuntimeError(
            f"Output {index} of {how.creator} is a view and is being modified "
            "inplace. This view is the output of a function that returns multiple views. "
            "Such functions do not allow the output views to be modified inplace. You "
            "should replace the inplace operation by an out-of-place one."
        )


def check_write(x: Tensor, is_constant: bool = False) -> None:
    """Refuse a write that would spoil the graph, before anything is changed.

    Args:
      x: what is to be written to.
      is_constant: whether all elements become one number, so that they may share memory.

    Raises:
      RuntimeError: a leaf that requires a gradient, or a view of one; an inference tensor outside
        of inference mode; memory that several elements share; a tensor that is captured by a
        function that is differentiated.
    """
    enter_session(x)
    if modes.level:
        if modes.grad:
            check_original(x)
        check_captured(x)
    check_inference(x)
    if modes.grad:
        check_leaf(x)
    root = root_of(x)
    if root._dual is not None:
        node_of(root)  # it may have been written to through its primal
        twins = twins_of(root)
        if share_memory(*twins):
            raise RuntimeError(
                "a dual tensor is being modified inplace whose primal and tangent share memory: "
                "give a copy for one of them, make_dual(x, x.clone())"
            )
        check_write(twins[0])
        check_write(twins[1])
    memory = x._memory()
    how = x._view
    if how is not None and (how.is_copied or isinstance(memory, Tracer)):
        root, region = how.root, region_of(how.path)
        whole = np.empty(root.shape, _numbered(root.dtype))
        memory = region(whole)
        if not np.may_share_memory(memory, whole):  # conjugates
            check_places(_places(root.shape, root.dtype, region)[0], is_constant)
            memory = root._memory()
    elif (
        isinstance(memory, Tracer) and modes.session is not None and id(x) in modes.session.entries
    ):
        memory = modes.session.entries[id(x)].value  # what stands for it has no strides
    if isinstance(memory, np.ndarray):
        check_memory(memory, is_constant)


def check_inference(x: Tensor) -> None:
    """Refuse to change inference tensors outside of inference mode.

    Raises:
      RuntimeError: it is one, and the mode is off.
    """
    if x._inference and not modes.inference:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make "
            "a clone to get a normal tensor before doing inplace update."
        )


def check_leaf(x: Tensor) -> None:
    """Refuse to change leaves in place that require a gradient, and views whose place is lost.

    Raises:
      RuntimeError: it is one, or a view of one.
    """
    node = x._node
    how = x._view
    if how is not None and how.detach is None:
        check_view(x)
        base = how.base
        while base._view is not None and base._view.detach is None:  # what was a dual tensor
            base = base._view.base
        end = base._node
        is_of_leaf = end is None and node is not None  # which is itself a view
        if is_of_leaf or (end is not None and end.primitive is None):
            of = "" if how.creator == ARGUMENT else "a view of "
            raise RuntimeError(
                f"{of}a leaf Variable that requires grad is being used in an in-place operation."
            )
    elif node is not None and node.primitive is None:
        leaf = "a leaf Variable that requires grad is being used in an in-place operation."
        raise noted(
            RuntimeError(leaf),
            "Write to it where nothing is recorded: with torch.no_grad(): w -= rate * w.grad",
        )


def check_original(x: Tensor) -> None:
    """Refuse a write to an argument of a transform whose original, too, is written to in the end.

    Raises:
      RuntimeError: nothing recorded may be written there.
    """
    root, how = root_of(x), x._view
    trace: Any = root._trace
    while id(root) in trace.unwritten:
        original = trace.arguments[id(root)]
        check_leaf(original)
        if how is not None and how.is_unrecorded and node_of(original) is not None:
            raise RuntimeError(how.of_both_modes("is being"))
        root = root_of(original)
        trace = root._trace


def check_captured(x: Tensor) -> None:
    """Refuse a write to a tensor that would outlive the transform that differentiates.

    A tensor of the caller that is written to at the end of the transform may not be read before.
    """
    root, how = root_of(x), x._view
    trace: Any = root._trace
    if id(root) in trace.unwritten:
        trace.unwritten.remove(id(root))
        modes.update(observers=(*modes.observers, _Reads(trace, root)))
    if isinstance(root._value, np.ndarray) and any(share_memory(root, x) for x in modes.mapped):
        raise RuntimeError(
            "a captured tensor is being modified inplace that is an argument of vmap, too, which "
            "reads it when the function has run. Write to the argument, or give vmap a copy "
            "(x.clone())"
        )
    levels = () if how is None else how.levels
    if any(root._level < level and level not in levels for level in modes.derivative[0]):
        raise RuntimeError(
            "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to "
            "call in-place operation that would mutate a captured Tensor: one made outside of the "
            "function, so that the write would outlive the transform. Give it as an argument, "
            "write to a copy (x = x.clone()) made inside, or use the operation without the "
            "underscore (of a layer's running statistics: call its eval(), or make it with "
            "track_running_stats=False)."
        )


class _Reads:
    """The observer that refuses to read a tensor of the caller when its argument was written to.

    Attributes:
      trace: that of the transform whose argument it is.
    """

    def __init__(self, trace: Any, argument: Tensor) -> None:
        self.trace = trace
        self.original = root_of(trace.arguments[id(argument)])
        self.argument = argument
        self.old = argument._value

    def __call__(self, name: str, operands: Sequence[object]) -> Callable[[], None]:
        """Look at the operands of an operation."""
        is_written = self.argument._value is not self.old
        if is_written and any(isinstance(x, Tensor) and self._is_old(x) for x in operands):
            raise RuntimeError(
                f"{name}: a tensor is read that is an argument of {self.trace.label}, too, and was "
                "modified inplace there; it does not have the new numbers before the transform "
                "ends. Read the argument, or give a copy (x.clone())"
            )
        return lambda: None

    def _is_old(self, x: Tensor) -> bool:
        """Whether a tensor is the original, or stands for it in a transform."""
        root = root_of(x)
        while root is not self.original:
            trace: Any = root._trace
            if trace is self.trace or id(root) not in trace.arguments:
                return False  # arguments that share memory are refused in the end
            root = root_of(trace.arguments[id(root)])
        return True


def check_read(name: str, x: object) -> None:
    """Refuse to read, by no operation that is recorded, what a write of a transform will change."""
    for observer in modes.observers:
        if type(observer) is _Reads:
            observer(name, (x,))


def without_hooks(x: Tensor) -> None:
    """Give a view that is about to be written to its place in the graph anew.

    The derivative of the write goes to its base, and not by hooks of the view that was.
    """
    how = x._view
    assert how is not None
    node, end = x._node, how.base._node
    while node is not None and node is not end and node.primitive is not None:
        if edge_of(node)[0].annotations:
            how.note_version(-1)
            node_of(x)
            return
        node = node.parents[0]


def check_result(x: Tensor, new: Tensor) -> None:
    """Refuse a result that a tensor's dtype cannot hold.

    Raises:
      RuntimeError: it cannot.
    """
    if CATEGORY[new._value.dtype.kind] > CATEGORY[x._value.dtype.kind]:
        raise RuntimeError(
            f"result type {torch_kind(new.dtype)} can't be cast to the desired output type "
            f"{torch_kind(x.dtype)}"
        )


def check_expands(own: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape that a tensor is expanded to; -1 leaves an axis as it is.

    Raises:
      RuntimeError: the tensor's own shape does not fit.
    """
    lead = (1,) * (len(sizes) - len(own))
    full = tuple(n if want == -1 else want for want, n in zip(sizes, (*lead, *own), strict=True))
    for axis, (n, want) in enumerate(zip((*lead, *own), full, strict=True)):
        if n not in (1, want):
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({n}) at "
                f"non-singleton dimension {axis}.  Target sizes: {list(sizes)}.  Tensor sizes: "
                f"{list(own)}"
            )
    return full


def write(label: str, x: Tensor, new: Tensor) -> Tensor:
    """Store a result in a tensor's memory, and put it into the graph.

    Args:
      label: name of the operation, with its underscore.
      x: what is written to; ``check_write`` was called.
      new: a tensor of its shape, or one that broadcasts to it.

    Returns:
      ``x``.

    Raises:
      RuntimeError: shape or dtype do not fit.
    """
    old, fresh = x._value, new._value
    is_narrow = fresh.shape != old.shape
    if is_narrow and label == "copy_" and len(fresh.shape) <= len(old.shape):
        check_expands(fresh.shape, old.shape)
    if is_narrow and fresh.shape and np.broadcast_shapes(fresh.shape, old.shape) != old.shape:
        raise RuntimeError(
            f"output with shape {list(x.shape)} doesn't match the broadcast shape "
            f"{list(np.broadcast_shapes(new.shape, x.shape))}"
        )
    if fresh.dtype != old.dtype:
        check_result(x, new)
    source = capture(2)
    memory = x._memory()
    by_numpy = new._node is None and type(memory) is type(fresh) is np.ndarray and x._view is None
    if is_narrow and not by_numpy:
        new = broadcast_to(new, old.shape)
    if fresh.dtype != old.dtype:
        new = to_dtype(new, old.dtype)
    written = node_of(new)  # before the write: it may be a view of the same memory
    is_counted = False  # of a dual tensor, by the write to its primal
    written_to = None  # that, whose place is the one that the primal has then
    if written is not None and x._view is not None and x._view.detach is None and modes.grad:
        check_view(x, written)
    if modes.mutation is not None:
        modes.mutation.before_write(x._stored())
    if isinstance(memory, Tracer) or isinstance(new._value, Tracer):
        value = new._value if new._trace is x._trace else _from_other_trace(x, new)
        trace: Any = x._trace
        is_constant = value is new or not isinstance(value, Tracer)
        if is_constant and (trace.level or trace.keeps_account):
            # views of it are of the trace, too, and writes to the other do not reach it
            value = trace.parent.lift(new._as_now() if new._trace is not trace else value)
            if trace.keeps_account and isinstance(x._value, PushingTracer):  # it has a tangent
                value = PushingTracer(trace.parent, value._value, np.zeros(x.shape, x.dtype))
        keeps_slope = not modes.grad
        with entered(RECORDING) if keeps_slope else nullcontext():
            if label in ("copy_", "fill_") and isinstance(value, Tracer):
                value = bind(copy_p, value)[0]  # it is that of another tensor
            _write_traced(x, value, keeps_slope)
        if (dual := root_of(x))._dual is not None:
            _write_through(label, dual)
            is_counted = any(twin._stored() is x._stored() for twin in twins_of(dual))
            written_to = dual
    else:
        if x._storage is not None:
            x._storage.release()
        keep_result(x, memory)
        _write_memory(x, new._value)
    if not is_counted:
        x._stored().bump(label, source)
    if written_to is not None:
        written_to._place.note(written_to)
    how = x._view
    if how is None or how.detach is not None:
        if modes.grad:
            node = written
            if x._node is not None and (node is None or label == "copy_"):
                parents = (x._node,) if node is None else (x._node, node)
                node = Overwritten(
                    COMPOSITE, {}, None, parents, x._value.shape, x._value.dtype, source
                )
                node.label = "".join([part.capitalize() for part in label.split("_")])
                if label == "copy_":
                    node.label = "torch::autograd::CopyBackwards"
            _move(x, node)
        note_own(x)
        return x
    base = how.base
    if modes.grad and (written is not None or base._node is not None):
        node = CopySlices(
            COMPOSITE, {}, None, (base._node, written), base._value.shape, base._value.dtype, source
        )
        node.region = region_of(how.steps)
        _move(base, node)
    elif modes.grad:
        x._node = None
    note_own(base)
    if x._retains:
        node_of(x)  # it is no longer what the gradient of what it was goes to
    return x


def note_own(x: Tensor) -> None:
    """Note of a detached tensor that it was written to, and is as the memory is.

    Args:
      x: a tensor; of others nothing is noted.
    """
    if x._view is not None:
        x._view.is_own = True
        x._view.note_version(x._stored().version)


def _write_through(label: str, dual: Tensor) -> None:
    """Write value and tangent of a dual tensor into the tensors that it was made of."""
    value, tangent = dual._value, None
    if isinstance(value, PushingTracer):
        value, tangent = value._value, value._tangent
    if tangent is None:
        tangent = np.zeros(dual.shape, dual.dtype)
    twins = twins_of(dual)
    for twin, new in zip(twins, (value, tangent), strict=True):
        write(label, twin, new if isinstance(new, Tensor) else Tensor.of(np.asarray(new)))
    follow_twins(dual)


def follow_twins(dual: Tensor) -> None:
    """Give a dual tensor the memory of the tensors that it is made of, whose writes reach it."""
    pushing: Any = dual._trace.parent
    dual._value = PushingTracer(pushing, *[_value_of(x) for x in twins_of(dual)])


def _value_of(twin: Tensor) -> Array | Tensor:
    """What a dual tensor computes with, of a part; it keeps its shape if the part's is changed."""
    is_traced = isinstance(twin._value, Tracer)
    return whole_view(twin) if is_traced or node_of(twin) is not None else twin._memory()


def _move(x: Tensor, node: object) -> None:
    """Give a tensor another node; ``retain_grad`` goes with it."""
    if x._retains:
        move_retain(x, x._node, node)
    x._node = node


def _from_other_trace(x: Tensor, new: Tensor) -> Array | Tensor:
    """The value to be written, where the tensors belong to different traces."""
    trace: Any = new._trace
    if inner_trace(x._trace, trace) is x._trace:  # a constant, whose derivatives are kept below
        is_constant = node_of(new) is None and not isinstance(new._value, Tracer)
        return new._value if is_constant else new
    root = root_of(x)
    if not trace.takes(root):
        raise RuntimeError(
            f"a tensor made outside of {trace.label} is being modified inplace by one that belongs "
            "to it: that would mutate a captured Tensor, and the write would outlive the transform."
            " Write to a copy (x = x.clone()) made inside, or use the operation without the "
            "underscore."
        )
    (trace.take_over if trace.level else trace.adopt)(root)
    return new._value


def _write_traced(x: Tensor, value: Any, keeps_slope: bool) -> None:
    """Give a tensor, and the base that it is a view of, another traced value.

    Args:
      x: the tensor.
      value: the value.
      keeps_slope: whether reverse mode goes to the old value, as after writes in ``no_grad``.
    """
    old = x._value
    has_slope = keeps_slope and isinstance(old, Tracer) and is_differentiable_dtype(old.dtype)
    x._value = bind(overwritten_p, value, old)[0] if has_slope else value
    how = x._view
    if how is not None:
        base = how.base
        whole = _placed(base._value, region_of(how.steps), value) if how.steps else value
        if how.detach is not None:  # what it is a copy of keeps its own derivative
            whole = how.detach(whole, base._value)
        _write_traced(base, whole, keeps_slope)


def _write_memory(x: Tensor, value: Array) -> None:
    """Write to the memory of a tensor; of a copy, to that of its base."""
    how = x._view
    if how is None or not how.is_copied:
        np.copyto(x._memory(), value)
    else:
        base = how.base
        _write_memory(base, _placed(base._memory(), region_of(how.steps), np.asarray(value)))
