"""Forward mode on tensors: dual numbers (``torch.autograd.forward_ad``).

Not here: how tangents are pushed forward (``passes.pushing``).

A level is a pushing trace with an imperative trace inside. A dual tensor belongs to the latter; its
value is a pushing tracer of primal and tangent, which may themselves be recorded tensors. So an
operation on ordinary tensors does not ask for tangents, and both orders of the two modes work:
gradients of dual tensors are dual tensors, and tangents have gradients. When the level ends, its
tensors become their primals.

Layer: ``autograd``. Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 3.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans.autograd.hooks import move_retain
from functrans.autograd.modes import modes
from functrans.autograd.recording import PERMANENT, ImperativeTrace, enter_session, node_of
from functrans.autograd.residuals import region_of, twins_of
from functrans.autograd.tensors import TWIN, Tensor, View
from functrans.autograd.views import in_place_of, view_node, viewed_as, whole_view
from functrans.core.avals import is_differentiable_dtype
from functrans.core.dispatch import Tracer, bind
from functrans.core.primitive import Primitive
from functrans.core.source import capture
from functrans.core.state import open_traces
from functrans.core.values import Array
from functrans.namespaces import listing
from functrans.passes.pushing import PushingTrace, PushingTracer
from functrans.primitives.structural import cast, copy_p

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]
__dir__ = listing(__all__)


class UnpackedDualTensor(NamedTuple):
    """What ``unpack_dual`` returns.

    Attributes:
      primal: the value, without tangent.
      tangent: the tangent, or ``None``.
    """

    primal: Any
    tangent: Any


class _DualValues(PushingTrace):
    """The pushing trace of a level; plain values may be asked of its tracers."""

    __slots__ = ()
    gives_values = True

    def elementwise(self, primitive: Primitive, operands: tuple[Any, ...]) -> Any:
        """Evaluate an elementwise operation."""
        return _apart(super().elementwise(primitive, operands), operands)

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Evaluate an operation."""
        return tuple([_apart(x, operands) for x in super().process(primitive, operands, params)])


def _apart(result: Any, operands: tuple[Any, ...]) -> Any:
    """A result in memory of its own: the operands' may be written to.

    Views are made anew after a write to what they view.
    """
    if type(result) is PushingTracer:
        for x in operands:
            if type(x) is PushingTracer and x._trace is result._trace:
                if _shares(result._value, x._value):
                    result._value = bind(copy_p, result._value)[0]
                if _shares(result._tangent, x._tangent):
                    result._tangent = bind(copy_p, result._tangent)[0]
    return result


def _shares(one: Any, other: Any) -> bool:
    """Whether a write to one may be seen in the other."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.may_share_memory(one, other)
    if not isinstance(one, Tensor) or not isinstance(other, Tensor):
        return False
    return one is other or (one._storage is not None and one._storage is other._storage)


class _DualTrace(ImperativeTrace):
    """The imperative trace of a level.

    Attributes:
      tensors: weak references to its tensors, by identity.
      adopted: the same to views that were there before, with their memory and what they view.
    """

    __slots__ = ("adopted", "tensors")
    keeps_account = True

    def __init__(self, label: str) -> None:
        super().__init__(label, is_plain=False)
        self.tensors: dict[int, Any] = {}
        self.adopted: list[tuple[Any, Any, Any]] = []

    def adopt(self, tensor: Tensor) -> None:
        """Give a tensor that was there before tangents of 0, and so its views: it is written to.

        Args:
          tensor: it, which is no view. Its memory stays its own, so that all see the write.
        """
        pushing: Any = self.parent
        storage, node, memory = tensor._stored(), tensor._node, tensor._memory()
        primal = Tensor.of(memory, node)
        primal._storage = storage
        tangent = Tensor.of(np.zeros(tensor.shape, tensor.dtype))
        value = memory if node is None else primal
        primal._follows = tangent._follows = tensor._follows
        tensor._trace = self
        tensor._value = PushingTracer(pushing, value, tangent._memory())
        _made_of(tensor, primal, tangent)
        if node is not None:
            tensor._node = view_node(tensor, node)
            if tensor._retains:  # value and tensor have nodes of their own; gradients take one way
                primal._node = view_node(tensor, node)
                move_retain(tensor, node, tensor._node)
        self.note(tensor)
        for reference in storage.views:
            view: Any = reference()
            how = getattr(view, "_view", None)
            if how is None or how.base is not tensor or view._trace is not PERMANENT:
                continue
            self.adopted.append((reference, view._value, how))
            view._trace = self
            view._value = PushingTracer(
                pushing, view._value, np.zeros(view.shape, view.dtype)
            )  # that of the base from its next use on
            self.note(view)

    def unrecorded(self, value: Array) -> Any:
        """A value as one of ``no_grad``; without its tangent, where inference mode hides it."""
        value = super().unrecorded(value)
        if modes.forward or not isinstance(value, PushingTracer):
            return value
        return PushingTracer(value._trace, value._value, None)

    def note(self, tensor: Tensor) -> None:
        """Note a new tensor, until it is gone."""
        key, tensors = id(tensor), self.tensors

        def gone(_: object) -> None:
            tensors.pop(key, None)

        tensors[key] = weakref.ref(tensor, gone)

    def lift(self, value: Any, operands: Sequence[Any] = ()) -> Tensor:
        """A tensor for a constant; of a permanent tensor one with its place in the graph."""
        if isinstance(value, Tensor) and value._trace is PERMANENT:
            (inner,), (node,), _ = self._taken_apart((value,))
            result = self.tensor(inner, node)
            result._follows = value._follows
            return result
        return super().lift(value, operands)

    def _taken_apart(self, operands: tuple[Any, ...]) -> tuple[list[Any], list[Any], bool]:
        """Values, nodes, and whether there is a node; those of permanent tensors too."""
        for operand in operands:
            if isinstance(operand, Tensor) and operand._trace is self and operand._place:
                operand._place.renew(operand)
        values, parents, has_parent = super()._taken_apart(operands)
        for i, operand in enumerate(operands):
            if isinstance(operand, Tensor) and operand._trace is PERMANENT:
                node = node_of(operand)
                values[i] = operand._value if node is None else operand
                parents[i] = node
                has_parent = has_parent or node is not None
        return values, parents, has_parent

    def end(self) -> None:
        """Make every tensor that is left its primal."""
        views: list[Tensor] = []
        alive = [reference() for reference in list(self.tensors.values())]
        left = [tensor for tensor in alive if tensor is not None and tensor._trace is self]
        for tensor in left:
            node_of(tensor)
        for tensor in left:
            how = tensor._view
            is_part = how is not None and (how.steps or how.detach is not None or how.is_custom)
            if how is not None and is_part and not how.is_copied:
                views.append(tensor)
            tensor.__dict__.pop("_dual", None)
            tensor.__dict__.pop("_place", None)
            primal = tensor._value
            while isinstance(primal, PushingTracer) and primal._trace is self.parent:
                primal = primal._value
            tensor.__dict__.pop("_trace", None)
            if isinstance(primal, Tensor):
                tensor._value, tensor._node = primal._memory(), node_of(primal)
                tensor._storage, tensor._view = primal._stored(), primal._view
                if primal._trace is not PERMANENT:  # of a transform that the level is inside
                    tensor._trace = primal._trace
            else:
                tensor._value, tensor._node, tensor._view = primal, None, None
            if views and views[-1] is tensor:
                tensor._view = how
        for tensor in views:
            _share(tensor)
        self.tensors.clear()
        for reference, memory, how in self.adopted:
            view = reference()
            if view is not None:
                view._value, view._view, view._storage = memory, how, how.base._stored()
                if how.base._trace is not PERMANENT:
                    view._trace, view._value = how.base._trace, how.base._trace.parent.lift(memory)
                how.note_version(-1)  # its node is that of its base


def _share(part: Tensor) -> None:
    """Let what was a view of a dual tensor be one of what this is without its tangent."""
    how = part._view
    assert how is not None
    base = how.base
    part._storage = base._stored()
    if not isinstance(base._value, Tracer) and base._trace is PERMANENT:
        part._value = region_of(how.steps)(base._memory())
        if how.detach is not None:
            part._node, part._view = part._node if how.is_own else None, None
            return
    whole = base._view
    if (
        whole is not None
        and how.detach is None
        and whole.detach is None
        and (whole.base._node is not None or base._node is None)  # else it was detached
    ):  # writes reach the primal
        how.base, how.steps = whole.base, (*whole.steps, *how.steps)
    part._storage.note_view(part)
    if part._node is not None and part._node is base._node:
        part._node = view_node(part, part._node)
    version = part._storage.version
    how.note_version(version if version == how.made_at else -1)  # after a write: that of its base


class _Level:
    """A dual level."""

    def __init__(self) -> None:
        stack = open_traces.get()
        self.pushing = _DualValues("a dual level")
        self.trace = _DualTrace("a dual level")
        self.pushing.parent = stack[-1] if stack else PERMANENT
        self.trace.parent = self.pushing
        self.pushing.source = self.trace.source = capture(2)
        open_traces.set((*stack, self.pushing, self.trace))

    def end(self) -> None:
        """Close its traces."""
        own = (self.trace, self.pushing)
        open_traces.set(tuple([t for t in open_traces.get() if not any(t is o for o in own)]))
        self.trace.end()
        for trace in own:
            trace.is_open = False


class _Levels(threading.local):
    """The dual level of the calling thread.

    Attributes:
      current: the level, or ``None``.
    """

    current: _Level | None = None


_levels = _Levels()


def enter_dual_level() -> int:
    """Begin a level, in which dual tensors can be made.

    Returns:
      Its number, 0.

    Raises:
      RuntimeError: there is a level already.

    Example:
      >>> level = enter_dual_level()
      >>> exit_dual_level(level=level)
    """
    if _levels.current is not None:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _levels.current = _Level()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End a level: tensors lose their tangents.

    Args:
      level: its number; the last one by default.

    Raises:
      RuntimeError: there is no level, or it is not the last one.
    """
    if level is not None and level != (0 if _levels.current is not None else -1):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was created. This "
            "is not supported."
        )
    if _levels.current is None:
        raise RuntimeError("Dual level must be a positive number.")
    current, _levels.current = _levels.current, None
    current.end()


class dual_level:  # noqa: N801  # torch's name
    """A level for a ``with`` block, in which forward-mode derivatives are computed.

    Raises:
      RuntimeError: there is a level already.

    Example:
      >>> from functrans.autograd import tensor
      >>> with dual_level():
      ...     x = make_dual(tensor(3.0), tensor(1.0))
      ...     y = x * x
      ...     unpack_dual(y)
      UnpackedDualTensor(primal=tensor(9.), tangent=tensor(6.))
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *_: object) -> None:
        """End the level."""
        exit_dual_level()


def _check_level(level: int | None) -> _Level | None:
    """The level of a number; ``None`` if there is none."""
    current = _levels.current
    if level is None:
        return current
    if level < 0:
        return None
    if current is None or level != 0:
        raise RuntimeError(f"Invalid level given: there is no dual level {level}")
    return current


def make_dual(tensor: Tensor, tangent: Any, *, level: int | None = None) -> Tensor:
    """A tensor with a tangent.

    Args:
      tensor: the primal. Gradients of the result flow to it.
      tangent: the tangent, of the same shape.
      level: number of the level; the current one by default.

    Returns:
      A dual tensor: what is computed from it has a tangent too.

    Raises:
      RuntimeError: there is no level, the shapes differ, or one of the two is dual already.
      ValueError: one of the two is of integers.

    Example:
      >>> from functrans.autograd import tensor
      >>> with dual_level():
      ...     unpack_dual(make_dual(tensor(3.0), tensor(1.0)) * 2).tangent
      tensor(2.)
    """
    current = _check_level(level)
    if current is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    for name, given in (("primal", tensor), ("tangent", tangent)):
        if not isinstance(given, Tensor):
            raise TypeError(f"make_dual: {name} must be a Tensor, got {type(given).__name__}")
        if not is_differentiable_dtype(given.dtype):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {given.dtype}"
            )
    if _tangent_of(current, tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the "
            "same level 0 is not supported."
        )
    if _tangent_of(current, tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not "
            "supported."
        )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(tensor.shape)} while the "
            f"given forward gradient is of size {list(tangent.shape)}."
        )
    enter_session(tensor, tangent)
    if tangent.dtype != tensor.dtype:
        tangent = cast(tangent, tensor.dtype)
    elif not _is_laid_out_like(tangent, tensor):
        tangent = _laid_out_like(tangent, tensor)
    primal = _below(current, whole_view(tensor))
    value = PushingTracer(current.pushing, primal, _below(current, tangent))
    node: Any = node_of(tensor)
    if node is not None:
        node = view_node(tensor, node)
    dual = current.trace.tensor(value, node)
    dual._storage = tensor._stored()  # views of the one are renewed after writes to the other
    _made_of(dual, tensor, tangent)
    dual._follows = tensor._follows
    return dual


def _made_of(dual: Tensor, primal: Tensor, tangent: Tensor) -> None:
    """Let a dual tensor and its views follow what is written to the two that it was made of."""
    twins = [in_place_of(x) for x in (primal, tangent)]
    for twin, x in zip(twins, (primal, tangent), strict=True):
        if x._view is None:  # the dual tensor keeps its shape if theirs is changed
            twin._view = View(x, (), x._stored(), TWIN)
            x._stored().note_view(twin)
    dual._dual = (*twins, tangent)
    dual._place = _Place(dual)
    storage = tangent._stored()
    alive = [reference for reference in storage.duals if reference() is not None]
    storage.duals = (*alive, weakref.ref(dual))


class _Place:
    """Where a dual tensor is in the graph: where its primal was when that was last written to.

    Attributes:
      version: that of the primal's memory when its node was looked at.
      node: that node.
    """

    __slots__ = ("node", "version")

    def __init__(self, dual: Tensor) -> None:
        self.note(dual)

    def note(self, dual: Tensor) -> None:
        """Note that the dual tensor is as the primal is."""
        primal = twins_of(dual)[0]
        self.version, self.node = primal._stored().version, node_of(primal)

    def renew(self, dual: Tensor) -> None:
        """Give the dual tensor the place that its primal has now, if that was written to."""
        given = twins_of(dual)[0]  # in the shape that it had
        if self.version == given._stored().version:
            return
        before = self.node
        self.note(dual)
        if self.node is before:
            return
        node: Any = None if self.node is None else view_node(dual, self.node)
        old = dual._value
        if isinstance(old, PushingTracer) and given._trace is not dual._trace:
            primal = given._memory() if node is None else whole_view(given)
            dual._value = PushingTracer(old._trace, primal, old._tangent)
        if dual._retains:
            move_retain(dual, dual._node, node)
        dual._node = node


def _is_laid_out_like(tangent: Tensor, primal: Tensor) -> bool:
    """Whether the elements of a tangent lie in its memory as those of the primal do."""
    own, other = tangent._memory(), primal._memory()
    if isinstance(own, Tracer) or isinstance(other, Tracer) or not own.size:
        return True
    is_part = primal._view is not None and primal._view.root.numel() != own.size
    steps = zip(own.strides, other.strides, own.shape, strict=True)
    return not is_part and all(mine == its or n == 1 for mine, its, n in steps)


def _laid_out_like(tangent: Tensor, primal: Tensor) -> Tensor:
    """A copy of a tangent in the layout of the primal: writes do not reach what was given."""
    if node_of(tangent) is not None:
        return tangent.clone()
    memory = np.empty_like(primal._memory())
    memory[...] = tangent._memory()
    copied = Tensor.of(memory)
    copied._follows = tangent._follows
    return copied


def _below(level: _Level, x: Tensor) -> Any:
    """A tensor as a value of the pushing trace."""
    if x._trace is level.trace:
        value: Any = x._value
        return value._value if isinstance(value, PushingTracer) else value
    return x._memory() if node_of(x) is None and not isinstance(x._value, Tracer) else x


def _tangent_of(level: _Level, x: Tensor) -> Array | Tensor | None:
    """The tangent of a tensor in a level; ``None`` if it has none."""
    if x._trace is not level.trace:
        return None
    node_of(x)
    value: Any = x._value
    if isinstance(value, PushingTracer) and value._trace is level.pushing:
        return value._tangent
    return None


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Primal and tangent of a tensor.

    Args:
      tensor: a tensor, dual or not.
      level: number of the level; the current one by default.

    Returns:
      ``(primal, tangent)``; the tangent is ``None`` where there is none, or no level.

    Raises:
      TypeError: it is no tensor.
      RuntimeError: there is no such level.

    Example:
      >>> from functrans.autograd import tensor
      >>> with dual_level():
      ...     unpack_dual(tensor(3.0))
      UnpackedDualTensor(primal=tensor(3.), tangent=None)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"unpack_dual: expected a Tensor, got {type(tensor).__name__}")
    current = _check_level(level)
    if current is None or tensor._trace is not current.trace:
        return UnpackedDualTensor(tensor if current is None else whole_view(tensor), None)
    tangent = _tangent_of(current, tensor)
    how = tensor._view
    if how is not None and how.steps and how.detach is None and how.base._trace is current.trace:
        whole = unpack_dual(how.base)
        if whole.tangent is not None and not (how.is_conj or how.is_copied):
            parts = [viewed_as(x, how) for x in whole]
            below = _below(current, tensor)
            if isinstance(below, Tensor):  # hooks are on its node
                parts[0]._node = node_of(whole_view(below))
            return UnpackedDualTensor(*parts)
    below = _below(current, tensor)
    if tangent is None:
        if how is not None and how.base._trace is current.trace and not how.is_copied:
            primal = unpack_dual(how.base).primal  # what was detached shares its memory
            primal = primal if how.detach is None else primal.detach()
            return UnpackedDualTensor(viewed_as(primal, how), None)
        return UnpackedDualTensor(whole_view(_as_tensor(below, tensor)), None)
    if tensor._dual is None and tensor._view is None:  # writes to the parts reach it from now on
        pair = [_apart_from(_as_tensor(x, tensor)) for x in (below, tangent)]
        pair[0]._storage = tensor._stored()
        _made_of(tensor, *pair)
        values: list[Any] = [_below(current, x) for x in pair]
        tensor._value = PushingTracer(current.pushing, *values)
        below, tangent = values
    if tensor._dual is None:
        return UnpackedDualTensor(
            whole_view(_as_tensor(below, tensor)), _as_tensor(tangent, tensor)
        )
    given, direction = twins_of(tensor)
    primal = whole_view(below if isinstance(below, Tensor) else given)
    own = tensor._dual[-1]
    if direction.dtype != tensor.dtype:
        own = _as_tensor(tangent, tensor)
    elif own.shape != tensor.shape:  # it was changed in place
        own = direction
    return UnpackedDualTensor(primal, own)


def _apart_from(part: Tensor) -> Tensor:
    """A part that may be written to: a copy, if nodes may have saved it."""
    if node_of(part) is None or isinstance(part._value, Tracer):
        return part
    copy: Tensor = bind(copy_p, part)[0]
    return copy


def _as_tensor(value: Array | Tensor, dual: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    result = Tensor.of(np.asarray(value))
    result._follows = dual._follows
    return result
