"""``Function``: operations with derivatives that the user writes.

Not here: contexts and nodes (``autograd.function_nodes``), calls on tensors of a functional
transform (``autograd.custom_functions``).

Layer: ``autograd``. Reference: PyTorch documentation, "Extending torch.autograd".
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.autograd.custom_functions import Rules, apply_traced, check_batched
from functrans.autograd.function_nodes import BackwardCFunction as BackwardCFunction
from functrans.autograd.function_nodes import FunctionCtx as FunctionCtx
from functrans.autograd.function_nodes import FunctionNode, checked_gradients, result_node
from functrans.autograd.function_nodes import SavedTensor as SavedTensor
from functrans.autograd.hooks import move_retain
from functrans.autograd.modes import modes
from functrans.autograd.nodes import COMPOSITE, GraphNode
from functrans.autograd.recording import (
    PERMANENT,
    ImperativeTrace,
    enter_session,
    made_anew,
    node_of,
    note_node,
)
from functrans.autograd.residuals import region_of
from functrans.autograd.tensors import Tensor, View
from functrans.autograd.writes import CopySlices, check_view, check_write, note_own, write
from functrans.core.avals import ShapedArray, is_differentiable_dtype
from functrans.core.boundary import warn
from functrans.core.dispatch import owner
from functrans.core.source import capture
from functrans.namespaces import listing

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "NestedIOFunction",
    "once_differentiable",
    "traceable",
]
__dir__ = listing(__all__)

# calls -------------------------------------------------------------------------------------------


class Function:
    """An operation with a derivative that the user writes (abstract).

    A subclass has static methods: ``forward(ctx, *args)``, or ``forward(*args)`` together with
    ``setup_context(ctx, inputs, output)``; ``backward(ctx, *grad_outputs)`` (also under the name
    ``vjp``), ``jvp(ctx, *grad_inputs)`` for forward mode. It is called by ``apply``. It also works
    on arrays under functional transforms; its methods get tensors there too.

    Example:
      >>> from functrans.autograd import tensor
      >>> class Cube(Function):
      ...     @staticmethod
      ...     def forward(ctx, x):
      ...         ctx.save_for_backward(x)
      ...         return x**3
      ...     @staticmethod
      ...     def backward(ctx, grad):
      ...         (x,) = ctx.saved_tensors
      ...         return grad * 3 * x**2
      >>> x = tensor(2.0, requires_grad=True)
      >>> Cube.apply(x).backward()
      >>> x.grad
      tensor(12.)
    """

    is_traceable = False
    generate_vmap_rule = False
    _backward_cls: Any = None

    def __init__(self, *args: object, **kwargs: object) -> None:
        warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Refuse: functions are not called on instances.

        Raises:
          RuntimeError: always.
        """
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use "
            "new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The operation: ``forward(ctx, *args)``, or ``forward(*args)`` with ``setup_context``.

        Raises:
          NotImplementedError: it is not overridden.
        """
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx: object, inputs: tuple[Any, ...], output: object) -> Any:
        """Say what ``backward`` needs, where ``forward`` has no context.

        Args:
          ctx: the context.
          inputs: arguments of ``forward``.
          output: its result.

        Raises:
          NotImplementedError: it is not overridden.
        """
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **_: Any) -> Any:
        """Gradients of the arguments from those of the results.

        Args:
          ctx: the context.
          *grad_outputs: a gradient per result.

        Returns:
          A gradient per argument of ``forward``, ``None`` for what has none.

        Raises:
          NotImplementedError: it is not overridden.
        """
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: object, *grad_inputs: object) -> Any:
        """Tangents of the results from those of the arguments.

        Args:
          ctx: the context.
          *grad_inputs: a tangent per argument, ``None`` for what is no tensor.

        Returns:
          A tangent per result.

        Raises:
          NotImplementedError: it is not overridden.
        """
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with "
            "forward mode AD."
        )

    @staticmethod
    def vmap(info: object, in_dims: tuple[Any, ...], *args: object) -> Any:
        """The operation on a batch.

        Args:
          info: has ``batch_size`` and ``randomness``.
          in_dims: batch axis of each argument, or ``None``.
          *args: the arguments.

        Returns:
          Results, and the batch axis of each.

        Raises:
          NotImplementedError: it is not overridden.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or "
            "set generate_vmap_rule=True."
        )

    @classmethod
    def call_backward(cls, ctx: object, gradients: Sequence[Any]) -> Any:
        """Call ``backward`` or ``vjp``, whichever there is.

        Args:
          ctx: the context.
          gradients: a gradient per result.

        Raises:
          RuntimeError: both are there.
        """
        has_backward = cls.backward is not Function.backward
        if has_backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You "
                "should only implement one of them."
            )
        function: Any = cls.backward if has_backward else cls.vjp
        return function(ctx, *gradients)

    @classmethod
    def apply(cls, *args: object, **kwargs: object) -> Any:
        """Call the operation.

        Args:
          *args: of ``forward``; gradients flow to tensors among them, not to tensors in containers.
          **kwargs: likewise; they are put in their place by the signature of ``forward``.

        Returns:
          What ``forward`` returns.

        Raises:
          RuntimeError: ``forward`` marks something as dirty that it does not return, or a leaf.
        """
        has_setup = cls.setup_context is not Function.setup_context
        named: dict[str, Any] = {}
        if kwargs or has_setup:
            lead = () if has_setup else (None,)
            bound = inspect.signature(cls.forward).bind(*lead, *args, **kwargs)
            bound.apply_defaults()
            args, named = bound.args[len(lead) :], bound.kwargs
        trace = owner(args)
        if modes.batches and isinstance(trace, ImperativeTrace) and trace.level:
            check_batched(_RULES, cls, named)
        if named:
            raise TypeError(
                f"{cls.__name__}.apply: keyword-only arguments of forward ({', '.join(named)}) "
                "cannot be passed"
            )
        if trace is None or trace is PERMANENT:
            enter_session(*args)
            held = [x for a in args if type(a) in (list, tuple, dict) for x in tree.leaves(a)]
            trace = owner((*args, *held))
        if trace is None or trace is PERMANENT:
            ends = [observer(cls.__name__, args) for observer in modes.observers]
            try:
                return apply_recorded(cls, new_context(cls), args)
            finally:
                for end in reversed(ends):
                    end()
        return apply_traced(_RULES, cls, args)


def new_context(cls: type[Function]) -> BackwardCFunction:
    """The context of a new call."""
    own = cls.__dict__.get("_backward_cls")
    if own is None:
        own = cls._backward_cls = type(
            f"{cls.__name__}Backward", (BackwardCFunction,), {"_forward_cls": cls}
        )
    ctx: BackwardCFunction = own()
    return ctx


def run_forward(cls: type[Function], ctx: object, args: Sequence[Any]) -> Any:
    """Run the user's ``forward``, unrecorded, and check what it marked and saved."""
    before = modes.grad
    modes.grad = False
    forward: Any = cls.forward
    try:
        if cls.setup_context is Function.setup_context:
            result = forward(ctx, *args)
        else:
            result = forward(*args)
            cls.setup_context(ctx, tuple(args), result)
        _check_marks(ctx)
        return result
    finally:
        modes.grad = before


def apply_recorded(
    cls: type[Function], ctx: Any, args: Sequence[Any], note: Callable[..., Any] | None = None
) -> Any:
    """Call a function on permanent tensors.

    Args:
      cls: the function.
      ctx: the context.
      args: its arguments.
      note: called with context, arguments and results before they are put into the graph.
    """
    positions = tuple([i for i, arg in enumerate(args) if isinstance(arg, Tensor)])
    inputs = [args[i] for i in positions]
    nodes = [node_of(x) for x in inputs]
    required = {i for i, node in zip(positions, nodes, strict=True) if node is not None}
    ctx.needs_input_grad = tuple([i in required for i in range(len(args))])
    result = run_forward(cls, ctx, args)
    many = isinstance(result, tuple)
    outs = list(result) if many else [result]
    is_recorded = modes.grad and bool(required)
    finish = _Results(cls, ctx, inputs, is_recorded)
    finish.check(outs)
    node = None
    if is_recorded and any(isinstance(out, Tensor) for out in outs):
        nodes = [_without_hooks(*pair, finish.dirty) for pair in zip(inputs, nodes, strict=True)]
        node = _node_of_call(ctx, outs, nodes, positions, len(args))
    if note is not None:
        note(ctx, args, outs)
    outs = [finish.one(out, i, node) for i, out in enumerate(outs)]
    if node is not None:
        _save(ctx, node, finish.made)
        if modes.is_special:
            note_node(node, (), ())
    else:
        ctx._saved = ()
    ctx.to_save = ctx.saved_for_forward = None
    ctx.dirty_tensors = ctx.non_differentiable = ()  # the node of a tensor must not refer to it
    return tuple(outs) if many else outs[0]


def _without_hooks(x: Tensor, node: Any, dirty: Mapping[int, Tensor]) -> Any:
    """The node of a tensor; of a view that was written to, another one of what it was.

    Only what reads the view before has a gradient there: what hooks on it see.
    """
    how = x._view
    if node is None or how is None or how.detach is not None or id(x) not in dirty:
        return node
    return made_anew(x)._node


def _node_of_call(
    ctx: Any, outs: Sequence[Any], nodes: Sequence[Any], positions: tuple[int, ...], n_args: int
) -> FunctionNode:
    """The node of a call."""
    constant = () if ctx._materialize_non_diff_grads else {id(x) for x in ctx.non_differentiable}
    results = tuple(
        [
            ShapedArray(o._value.shape, o._value.dtype)
            if isinstance(o, Tensor) and id(o) not in constant
            else None
            for o in outs
        ]
    )
    one = results[0] if len(results) == 1 else None
    filled = tuple([ShapedArray((), np.dtype(float)) if r is None else r for r in results])
    node = FunctionNode(
        COMPOSITE, {}, None, tuple(nodes), None if one is None else one.shape,
        filled if one is None else one.dtype, capture(2),
    )  # fmt: skip
    node.ctx = ctx
    node.positions, node.n_args, node.results = positions, n_args, results
    node.follows = any(isinstance(o, Tensor) and o._follows for o in outs)
    ctx._node = weakref.ref(node)
    return node


def _check_marks(ctx: Any) -> None:
    """Refuse marks and saved values that are no tensors."""
    for i, item in enumerate(ctx.to_save or ()):
        if item is not None and not isinstance(item, Tensor):
            raise TypeError(
                f"save_for_backward can only save variables, but argument {i} is of type "
                f"{type(item).__name__}"
            )
    for item in ctx.dirty_tensors:
        if not isinstance(item, Tensor):
            raise RuntimeError(
                f"mark_dirty can only accept variables, but argument {item!r} is of type "
                f"{type(item).__name__}"
            )
    for item in ctx.non_differentiable:
        if not isinstance(item, Tensor):
            raise RuntimeError(
                "mark_non_differentiable only accepts variable arguments, but got "
                f"{type(item).__name__}"
            )


def _save(ctx: Any, node: FunctionNode, made: dict[int, int]) -> None:
    """Keep what ``save_for_backward`` was given.

    Args:
      ctx: the context.
      node: the node.
      made: results of the node, identity to number.
    """
    saved = []
    for item in ctx.to_save or ():
        place = made.get(id(item))
        if item is None or place is None:
            saved.append(None if item is None else SavedTensor(item))
        else:
            saved.append(SavedTensor(item, place, node.name()))
    ctx._saved = tuple(saved)


def _same_memory(x: Tensor, creator: str) -> Tensor:
    """A view of all of a tensor, outside of the graph; detached, where nothing is recorded."""
    is_detached = not modes.grad and node_of(x) is not None and type(x._value) is np.ndarray
    storage = x._stored()
    result = Tensor.of(x._memory())
    result._storage = storage
    how = x._view
    base, steps = (x, ()) if how is None else (how.base, how.steps)
    if not is_detached:
        storage.note_view(result)
        made = result._view = View(base, steps, storage, creator)
        made.is_custom = True
        if how is not None:
            made.copy_from(how)
    result._inference, result._follows = x._inference, x._follows
    return result


class _Results:
    """What becomes of the results of ``forward``."""

    def __init__(
        self, cls: type[Function], ctx: Any, inputs: Sequence[Tensor], is_recorded: bool
    ) -> None:
        self.cls = cls
        self.inputs = {id(x) for x in inputs}
        self.dirty = {id(x): x for x in ctx.dirty_tensors}
        self.constant = {id(x) for x in ctx.non_differentiable}
        self.is_recorded = is_recorded
        self.line = capture(2)
        self.made: dict[int, int] = {}

    def check(self, outs: Sequence[Any]) -> None:
        """Refuse wrong uses of ``mark_dirty`` before the graph changes."""
        returned = {id(out) for out in outs}
        if any(key not in returned for key in self.dirty):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )
        for key, x in self.dirty.items():
            if key not in self.inputs:
                warn(
                    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors "
                    "that have been mutated should be passed to ctx.mark_dirty().",
                )
            if modes.grad and x._view is not None:
                check_view(x)
            if not self.is_recorded:
                continue
            node = node_of(x)
            if x._view is None and node is not None and node.primitive is None:
                raise RuntimeError(
                    "a leaf Variable that requires grad has been used in an in-place operation."
                )
            if x._view is not None and x._view.detach is None:
                base = x._view.base._node
                if base is not None and base.primitive is None:
                    raise RuntimeError(
                        "a view of a leaf Variable that requires grad is being used in an in-place "
                        "operation."
                    )
            if x._view is not None and sum(isinstance(o, Tensor) for o in outs) > 1:
                raise RuntimeError(
                    "If your Function modifies inplace an input that is a view of another Tensor, "
                    "your Function cannot return more than one Tensor. This is not supported by "
                    "the current autograd engine. You should either make sure the input is not a "
                    "view (using .clone() for example) or make your Function only return one "
                    "Tensor (potentially splitting it into two Functions: one doing the inplace "
                    "that returns a single Tensor and a second one that does the other operations)."
                )

    def one(self, out: Any, index: int, node: FunctionNode | None) -> Any:
        """A result in its place in the graph."""
        if not isinstance(out, Tensor):
            return out
        is_dirty = id(out) in self.dirty
        own = None
        if node is not None and id(out) not in self.constant and is_differentiable_dtype(out.dtype):
            own = result_node(node, index)
        if own is not None and (is_dirty or id(out) not in self.inputs):
            self.made[id(out)] = index
        if is_dirty:
            out._stored().bump(self.cls.__name__, self.line)
            if self.is_recorded:
                self._rebase(out, own)
                return out
            if node_of(out) is None:
                return out
        if is_dirty or id(out) in self.inputs:
            out = _same_memory(out, self.cls.__name__)
        elif out._view is not None and own is not None:
            how = out._view
            out._stored().note_view(out)
            made = out._view = View(how.base, how.steps, out._stored(), self.cls.__name__)
            made.copy_from(how)
            made.note_version(how.node_version if how.is_copied else how.version)
        if own is not None or id(out) in self.constant:
            out._node = own
        if own is not None and out._view is not None:
            out._view.is_custom = True
        return out

    def _rebase(self, out: Tensor, own: Any) -> None:
        """Put a tensor that was written to behind the node; the gradient of what it was goes."""
        how = out._view
        if own is not None:
            out._grad = None
        if how is None or how.detach is not None:
            if out._retains:
                move_retain(out, out._node, own)
            out._node = own
            note_own(out)
            return
        base = how.base
        written = CopySlices(
            COMPOSITE, {}, None, (base._node, own), base._value.shape, base._value.dtype, self.line
        )
        written.region = region_of(how.steps)
        if base._retains:
            move_retain(base, base._node, written)
        base._node = written
        how.note_version(-1)


def _write_checked(label: str, x: Tensor, new: Tensor) -> Tensor:
    """Write to an argument in a level."""
    check_write(x)
    return write(label, x, new)


_RULES = Rules(
    new_context=new_context,
    run_forward=run_forward,
    apply_recorded=apply_recorded,
    checked_gradients=checked_gradients,
    has_jvp=lambda cls: cls.jvp is not Function.jvp,
    has_vjp=lambda cls: cls.backward is not Function.backward or cls.vjp is not Function.vjp,
    has_vmap=lambda cls: cls.vmap is not Function.vmap,
    write=_write_checked,
)


# derivatives of derivatives ----------------------------------------------------------------------


class _ErrorNode(GraphNode):
    """Stands behind gradients that cannot be differentiated again."""

    def name(self) -> str:
        """``Error``."""
        return "Error"

    def pull(self, ct: object, records: bool, size: int | None = None) -> Sequence[Any]:
        """Refuse."""
        raise RuntimeError(
            "trying to differentiate twice a function that was marked with @once_differentiable"
        )


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a ``backward`` whose operations must not be differentiated.

    Args:
      fn: the static method, below ``@staticmethod``.

    Returns:
      The method; a second derivative through it raises.

    Example:
      >>> class Floor(Function):
      ...     @staticmethod
      ...     def forward(ctx, x):
      ...         return x.floor()
      ...     @staticmethod
      ...     @once_differentiable
      ...     def backward(ctx, grad):
      ...         return grad
    """

    @functools.wraps(fn)
    def wrapper(ctx: object, *args: object) -> Any:
        before = modes.grad
        modes.grad = False
        try:
            outputs = fn(ctx, *args)
        finally:
            modes.grad = before
        if not before or not any(isinstance(a, Tensor) and node_of(a) is not None for a in args):
            return outputs
        many = isinstance(outputs, tuple)
        results = []
        for out in outputs if many else (outputs,):
            if not isinstance(out, Tensor):
                results.append(out)
                continue
            node = _ErrorNode(
                COMPOSITE, {}, None, (), out._value.shape, out._value.dtype, capture(2)
            )
            results.append(Tensor.of(out._value, node, out.__dict__.get("_trace")))
        return tuple(results) if many else results[0]

    return wrapper


def traceable(fn_cls: type[Function]) -> type[Function]:
    """Mark a function as one whose ``forward`` is made of traceable operations only.

    Args:
      fn_cls: the class.

    Returns:
      The class.
    """
    fn_cls.is_traceable = True
    return fn_cls


class InplaceFunction(Function):
    """A ``Function`` with a flag for the in-place form.

    Attributes:
      inplace: whether the instance stands for the in-place form.
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


# nested arguments --------------------------------------------------------------------------------


def _tensors_in(value: object) -> Iterator[Any]:
    """Tensors (and ``None``) in nested lists, tuples and dictionaries, in order."""
    if value is None or isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item)


class _Place:
    """Stands for a tensor in a nested structure."""


_PLACE = _Place()


def _structure_of(value: object) -> Any:
    """A nested structure with places instead of tensors."""
    if isinstance(value, Tensor):
        return _PLACE
    return _mapped(value, _structure_of)


def _mapped(value: object, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, (list, tuple)):
        items = [function(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: function(item) for key, item in value.items()}
    return value


def _rebuilt(structure: object, values: Iterator[Any]) -> Any:
    """A nested structure with tensors in its places."""
    if structure is _PLACE:
        return next(values)
    return _mapped(structure, lambda item: _rebuilt(item, values))


class NestedIOFunction(Function):
    """A ``Function`` whose arguments and results are nested lists, tuples and dictionaries.

    A subclass has ``forward_extended(ctx, *args)`` and ``backward_extended(ctx, *grads)``, with the
    structure of the arguments and of the result; both get the context first.
    """

    @classmethod
    def apply(cls, *args: object, **kwargs: object) -> Any:
        """Call the operation on nested arguments.

        Args:
          *args: tensors, or nested containers of them.
          **kwargs: none are accepted.

        Returns:
          What ``forward_extended`` returns.

        Raises:
          TypeError: arguments are given by keyword.
        """
        if kwargs:
            raise TypeError(f"{cls.__name__}.apply takes no keyword arguments")
        shape = _Nested(args)
        flat = super().apply(shape, *[x for x in _tensors_in(args) if x is not None])
        many = flat if isinstance(flat, tuple) else (flat,)
        return _rebuilt(shape.output, iter(many))

    @classmethod
    def forward(cls, ctx: Any, shape: Any, *tensors: Any) -> Any:
        """Run ``forward_extended`` on the nested arguments."""
        nested = _NestedCtx(ctx)
        result = cls.forward_extended(nested, *_rebuilt(shape.input, iter(tensors)))
        ctx._nested_saved = nested._structure
        ctx._nested_shape = shape
        shape.output = _structure_of(result)
        flat = tuple([x for x in _tensors_in(result) if x is not None])
        return flat[0] if len(flat) == 1 else flat

    @classmethod
    def backward(cls, ctx: Any, *gradients: Any) -> Any:
        """Run ``backward_extended`` on nested gradients."""
        shape = ctx._nested_shape
        grads = _rebuilt(shape.output, iter(gradients))
        given = grads if isinstance(shape.output, tuple) else (grads,)
        result = cls.backward_extended(_NestedCtx(ctx, ctx._nested_saved), *given)
        return (None, *_tensors_in(result))

    @staticmethod
    def forward_extended(ctx: object, *args: object) -> Any:
        """The operation on nested arguments.

        Raises:
          NotImplementedError: it is not overridden.
        """
        raise NotImplementedError

    @staticmethod
    def backward_extended(ctx: object, *grad_output: object) -> Any:
        """Gradients of nested arguments from those of the nested result.

        Raises:
          NotImplementedError: it is not overridden.
        """
        raise NotImplementedError


class _Nested:
    """Structure of the arguments and of the result of one call.

    Attributes:
      input: the arguments.
      output: the result.
    """

    def __init__(self, args: Any) -> None:
        self.input = _structure_of(args)
        self.output: Any = None


class _NestedCtx(FunctionCtx):
    """A context that saves nested tensors."""

    def __init__(self, ctx: Any, structure: Any = ()) -> None:
        object.__setattr__(self, "_ctx", ctx)
        object.__setattr__(self, "_structure", structure)

    def save_for_backward(self, *args: object) -> None:
        """Keep nested tensors."""
        object.__setattr__(self, "_structure", _structure_of(args))
        self._ctx.save_for_backward(*[x for x in _tensors_in(args) if x is not None])

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The nested tensors."""
        return _rebuilt(self._structure, iter(self._ctx.saved_tensors))

    def mark_dirty(self, *args: object) -> None:
        """Say which nested tensors were written to."""
        self._ctx.mark_dirty(*[x for x in _tensors_in(args) if x is not None])

    def mark_non_differentiable(self, *args: object) -> None:
        """Say which nested tensors have no derivative."""
        self._ctx.mark_non_differentiable(*[x for x in _tensors_in(args) if x is not None])

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether missing gradients are zeros."""
        self._ctx.set_materialize_grads(value)

    def __getattr__(self, name: str) -> Any:
        """Attributes of the context."""
        return getattr(self._ctx, name)

    def __setattr__(self, name: str, value: Any) -> None:
        """The user's attributes are those of the context."""
        setattr(self._ctx, name, value)
