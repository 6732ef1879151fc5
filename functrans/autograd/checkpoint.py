"""Recomputing in the backward pass what is not stored (``torch.utils.checkpoint``).

Not here: the transform of functions of arrays (``control.checkpoint``), hooks for saved tensors
(``autograd.graph``).

The non-reentrant form is a pair of hooks for saved tensors: packing keeps a number, unpacking runs
the function again under hooks that collect what it saves. The reentrant form is a ``Function`` that
runs a backward pass of its own inside the backward pass.

Layer: ``autograd``. Reference: Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016.
"""

from __future__ import annotations

import linecache
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans import pytrees as tree
from functrans.autograd import api, random
from functrans.autograd.function import Function, SavedTensor
from functrans.autograd.modes import enable_grad, modes, no_grad
from functrans.autograd.nodes import COMPOSITE, GraphNode, running
from functrans.autograd.on_values import transformed
from functrans.autograd.recording import PERMANENT, node_of
from functrans.autograd.residuals import Guard, modified
from functrans.autograd.tensors import Tensor
from functrans.control.checkpoint import checkpoint as checkpoint_values
from functrans.core.boundary import warn
from functrans.core.dispatch import owner
from functrans.core.source import capture, resolve
from functrans.namespaces import listing

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]
__dir__ = listing(__all__)


class CheckpointError(RuntimeError):
    """The second run of a checkpointed function saved other tensors than the first.

    Failing: ``checkpoint(lambda x: x.sin() * random.random(), x, use_reentrant=False)`` where the
    number decides which operations run. Repaired: make the function do the same in both runs.
    """


class _Settings(threading.local):
    """Settings of the calling thread.

    Attributes:
      early_stop: ``None``, or whether the second run ends with the last tensor needed.
      debug: ``None``, or whether errors tell the operations of both runs.
    """

    early_stop: bool | None = None
    debug: bool | None = None


_settings = _Settings()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Decide whether the second run ends with the last tensor that is needed.

    Args:
      enable: the decision, for all calls of ``checkpoint`` in the block.

    Example:
      >>> with set_checkpoint_early_stop(False):
      ...     pass
    """
    before = _settings.early_stop
    _settings.early_stop = bool(enable)
    try:
        yield
    finally:
        _settings.early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Decide whether errors tell the operations of both runs.

    Args:
      enabled: the decision for all calls of ``checkpoint`` in the block; ``None`` leaves it to the
        argument of each.

    Example:
      >>> with set_checkpoint_debug_enabled(True):
      ...     pass
    """
    before = _settings.debug
    _settings.debug = enabled
    try:
        yield
    finally:
        _settings.debug = before


def noop_context_fn() -> tuple[Any, Any]:
    """Contexts that do nothing, for both runs."""
    return nullcontext(), nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors among arguments outside of the graph, as leaves that require what they required.

    Args:
      inputs: arguments.

    Raises:
      RuntimeError: they are no tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(
            "Only tuple of tensors is supported. Got Unsupported input type: ",
            type(inputs).__name__,
        )
    detached: list[Any] = []
    for x in inputs:
        if not isinstance(x, Tensor):
            detached.append(x)
            continue
        own: Any = x
        leaf = own.detach()
        if own.requires_grad:
            leaf.requires_grad_()
        detached.append(leaf)
    return tuple(detached)


def check_backward_validity(inputs: Sequence[Any]) -> None:
    """Warn if no argument requires a gradient.

    Args:
      inputs: arguments.
    """
    if not any(isinstance(x, Tensor) and node_of(x) is not None for x in inputs):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


# random state ------------------------------------------------------------------------------------


class _RandomState:
    """The places in the random streams of the process."""

    def __init__(self) -> None:
        self.own = random.get_rng_state()
        self.numpy = np.random.get_state()  # noqa: NPY002  # the stream that users' code may use

    @contextmanager
    def restored(self) -> Iterator[None]:
        """These places, for a ``with`` block."""
        now = _RandomState()
        self._set()
        try:
            yield
        finally:
            now._set()

    def _set(self) -> None:
        random.set_rng_state(self.own)
        np.random.set_state(self.numpy)  # noqa: NPY002  # as above


# reentrant ---------------------------------------------------------------------------------------


class CheckpointFunction(Function):
    """The reentrant form: the second run has a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function, unrecorded."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random = _RandomState() if preserve_rng_state else None
        ctx.inputs = [None if isinstance(arg, Tensor) else arg for arg in args]
        ctx.places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Run the function again, recorded, and go back through it.

        Raises:
          RuntimeError: gradients of chosen inputs were asked for, or no result requires one.
        """
        run = running.backward
        if run is not None and not run.is_for_all:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[i] = tensor
        leaves = detach_variable(tuple(inputs))
        with enable_grad(), nullcontext() if ctx.random is None else ctx.random.restored():
            outputs = ctx.run_function(*leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [
            (out, gradient)
            for out, gradient in zip(outputs, args, strict=False)
            if isinstance(out, Tensor) and node_of(out) is not None
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        api.backward([out for out, _ in pairs], [gradient for _, gradient in pairs])
        return (None, None, *(x._grad if isinstance(x, Tensor) else None for x in leaves))


# without reentrance ------------------------------------------------------------------------------


class _Stop(Exception):  # noqa: N818  # no error: all tensors that are needed are there
    """Ends the second run."""


class _Holder:
    """Stands for a saved tensor.

    Attributes:
      frame: the call.
      index: which of the saved tensors of the call it is.
      shape: of the tensor.
      dtype: of the tensor.
    """

    __slots__ = ("dtype", "frame", "index", "shape")

    def __init__(self, frame: _Frame, index: int, tensor: Tensor) -> None:
        self.frame = frame
        self.index = index
        self.shape = tensor.shape
        self.dtype = tensor.dtype


class _Frame:
    """One call of a checkpointed function.

    Attributes:
      metadata: shape and dtype of each tensor that the first run saved.
      found: by number the tensors of the last second run that were not yet asked for, each with the
        version that it was saved at.
      log: in debug mode, the lines of operations that saved tensors in the first run.
      is_complete: whether the first run is over. A second run within it may save more tensors.
      is_checked: whether both runs are compared: not after a second run within the first.
      given: numbers of the tensors that were asked for since the last second run.
      run: weak reference to the backward pass of the last second run.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        context: Any,
        random_state: _RandomState | None,
        checks: bool,
        early_stop: bool,
        debug: bool,
    ) -> None:
        self.function = function
        self.kwargs = kwargs
        self.args = [None if isinstance(arg, Tensor) else arg for arg in args]
        self.places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        self.saved = [SavedTensor(args[i]) for i in self.places]
        self.node = GraphNode(COMPOSITE, {}, None, (), (), np.dtype(float), capture(2))
        self.node.label = "CheckpointInputs"
        self.context = context
        self.random_state = random_state
        self.checks = checks
        self.early_stop = early_stop
        self.debug = debug
        self.metadata: list[tuple[Any, Any]] = []
        self.found: dict[int, tuple[Tensor, int]] = {}
        self.log: list[str] = []
        self.given: set[int] = set()
        self.is_complete = False
        self.is_checked = True
        self.run: Callable[[], object] = lambda: None

    def pack(self, tensor: Tensor) -> _Holder:
        """Keep a number in place of a tensor."""
        holder = _Holder(self, len(self.metadata), tensor)
        self.metadata.append((holder.shape, holder.dtype))
        if self.debug:
            self.log.append(_line())
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        """The tensor of a number, from a second run."""
        current = running.backward
        if holder.index not in self.found:
            if current is not None and self.run() is current and holder.index in self.given:
                raise CheckpointError(
                    "torch.utils.checkpoint: Unpack is being triggered for a tensor that was "
                    "already unpacked once. If you are calling ctx.saved_tensors in backward, make "
                    "sure to do so only once: keep what it gives in variables."
                )
            self.found = self._recomputed()
            self.run = (lambda: None) if current is None else weakref.ref(current)
            self.given = set()
        self.given.add(holder.index)
        tensor, version = self.found.pop(holder.index)
        if tensor._stored().version != version:
            raise modified(Guard(tensor._stored(), tensor._value, "", version), self.node)
        return tensor

    def _recomputed(self) -> dict[int, tuple[Tensor, int]]:
        """The tensors that a second run saves."""
        found: list[tuple[Tensor, int]] = []
        log: list[str] = []
        n = len(self.metadata)

        def pack(tensor: Tensor) -> Tensor:
            if self.debug:
                log.append(_line())
            if len(found) == n and not self.early_stop:
                if not self.is_complete:
                    self.is_checked = False
                    return tensor.detach()
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation "
                    f"than during the original forward pass.{self._logs(log)}"
                )
            found.append((tensor.detach(), tensor._stored().version))
            if self.early_stop and len(found) == n:
                raise _Stop
            return tensor.detach()

        args = list(self.args)
        for i, saved in zip(self.places, self.saved, strict=True):
            args[i] = saved.tensor_for(self.node)
        before = modes.packers, modes.grad
        random_state = nullcontext() if self.random_state is None else self.random_state.restored()
        try:
            modes.update(packers=(*modes.packers, (pack, lambda tensor: tensor)), grad=True)
            with random_state, self.context:
                self.function(*args, **self.kwargs)
        except _Stop:
            pass
        finally:
            modes.packers, modes.grad = before
            modes.update()
        self._check(found, log)
        return dict(enumerate(found))

    def _check(self, found: Sequence[tuple[Tensor, int]], log: Sequence[str]) -> None:
        """Compare what the two runs saved."""
        if not self.is_checked:
            return
        if len(found) != len(self.metadata):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\nNumber of tensors saved during forward: "
                f"{len(self.metadata)}\nNumber of tensors saved during recomputation: "
                f"{len(found)}.{self._logs(log)}"
            )
        if not self.checks:
            return
        differences = [
            f"tensor at position {i}:\nsaved metadata: {_metadata(*before)}\n"
            f"recomputed metadata: {_metadata(after.shape, after.dtype)}"
            for i, (before, (after, _)) in enumerate(zip(self.metadata, found, strict=True))
            if before != (after.shape, after.dtype)
        ]
        if differences:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                "different metadata than during the forward pass.\n"
                f"{chr(10).join(differences)}.{self._logs(log)}"
            )

    def _logs(self, log: Sequence[str]) -> str:
        if not self.debug:
            return "\n\nTip: pass `debug=True` to see the operations of both runs."
        return (
            "\n\nAn error happened while unpacking tensors; dumping logs of both runs because you "
            "passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n"
            "Operations that saved tensors in the original forward:\n"
            f"{''.join(self.log)}\nOperations that saved tensors during recomputation:\n"
            f"{''.join(log)}"
        )


def _metadata(shape: Any, dtype: DTypeLike | None) -> dict[str, Any]:
    return {"shape": tuple(shape), "dtype": str(dtype)}


def _line() -> str:
    """The user's line of the operation that runs."""
    captured = capture(3)
    if captured is None:
        return traceback.format_stack(limit=1)[0]
    place = resolve(captured)
    assert place is not None
    text = linecache.getline(place.file, place.line).strip()
    return f"  {place.file}:{place.line}, in {place.function}\n    {text}\n"


# the functions -----------------------------------------------------------------------------------


def checkpoint(
    function: Callable[..., Any],
    *args: object,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[Any, Any]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: object,
) -> Any:
    """Call a function and store none of its intermediate tensors: the backward pass runs it again.

    Args:
      function: function of tensors. Both runs must do the same.
      *args: its arguments.
      use_reentrant: ``False`` for the form by hooks; ``True`` for the form with a backward pass of
        its own, which only knows positional arguments and ``backward()`` without ``inputs``.
      context_fn: gives two context managers: for the first run and for the second.
      determinism_check: ``"default"`` compares shapes and dtypes of both runs, ``"none"`` does not.
      debug: whether errors tell the operations of both runs.
      early_stop: whether the second run ends with the last tensor that is needed.
      **kwargs: arguments by name; ``preserve_rng_state`` (by default ``True``) says whether both
        runs draw the same random numbers.

    Returns:
      What the function returns.

    Raises:
      ValueError: an option does not go with ``use_reentrant=True``, or is unknown.
      CheckpointError: (in the backward pass) the second run saved other tensors than the first.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0, 2.0], requires_grad=True)
      >>> checkpoint(lambda x: (x * x * x).sum(), x, use_reentrant=False).backward()
      >>> x.grad
      tensor([ 3., 12.])
    """
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an "
            "exception. use_reentrant=False is recommended, but if you need to preserve the "
            "current default behavior, you can pass use_reentrant=True."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"determinism_check should be one of ['default', 'none'], but got {determinism_check}"
        )
    if _settings.debug is not None:
        debug = _settings.debug
    if _settings.early_stop is not None:
        early_stop = _settings.early_stop
    if use_reentrant and (context_fn is not noop_context_fn or debug):
        raise ValueError(
            "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
        )
    trace = owner(args)
    if trace is not None and trace is not PERMANENT:
        with context_fn()[0]:
            return _of_traced(function, args, kwargs)
    if use_reentrant:
        return CheckpointFunction.apply(function, preserve, *args)
    if not modes.grad:
        return function(*args, **kwargs)
    if modes.no_packers is not None:
        raise RuntimeError(modes.no_packers)
    first, second = context_fn()
    frame = _Frame(
        function,
        args,
        kwargs,
        second,
        _RandomState() if preserve else None,
        determinism_check == "default",
        early_stop,
        debug,
    )
    before = modes.packers
    try:
        modes.update(packers=(*before, (frame.pack, frame.unpack)))
        with first:
            result = function(*args, **kwargs)
        frame.is_complete = True
        return result
    finally:
        modes.packers = before
        modes.update()


def _of_traced(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tensor:
    """The call under a functional transform: the transform of functions of arrays.

    What is no tensor in the result is that of the one call that is traced.
    """
    places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
    plain: list[Any] = []
    treedefs: list[Any] = []

    def of_tensors(*tensors: object) -> list[Tensor]:
        full = list(args)
        for i, tensor in zip(places, tensors, strict=True):
            full[i] = tensor
        leaves, treedef = tree.flatten(function(*full, **kwargs))
        plain[:] = [None if isinstance(x, Tensor) else x for x in leaves]
        treedefs[:] = [treedef]
        return [x for x in leaves if isinstance(x, Tensor)]

    def recomputed(on_values: Any) -> Callable[..., Any]:
        on_values.takes_writes = True
        return checkpoint_values(on_values)

    found = iter(transformed(recomputed, of_tensors, [args[i] for i in places], {}))
    leaves = [next(found) if x is None else x for x in plain]
    return tree.unflatten(treedefs[0], leaves)


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: object,
    use_reentrant: bool | None = None,
    **kwargs: object,
) -> Tensor:
    """Call functions one after the other, in segments that are checkpointed; the last one is not.

    Args:
      functions: a sequence of functions, or a module of modules.
      segments: number of segments.
      input: argument of the first function.
      use_reentrant: see :func:`checkpoint`.
      **kwargs: ``preserve_rng_state``; see :func:`checkpoint`.

    Returns:
      The result of the last function.

    Raises:
      ValueError: there are more segments than functions, or an option is unknown.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor(2.0, requires_grad=True)
      >>> square = lambda x: x * x
      >>> checkpoint_sequential([square] * 3, 2, x, use_reentrant=False).backward()
      >>> x.grad
      tensor(1024.)
    """
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly. In version 2.9 we will raise an exception if use_reentrant is not "
            "passed. use_reentrant=False is recommended, but if you need to preserve the current "
            "default behavior, you can pass use_reentrant=True."
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    parts = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(parts) // segments
    if not size:
        raise ValueError(
            f"checkpoint_sequential: there are {segments} segments for {len(parts)} functions"
        )

    def run(start: int, end: int) -> Callable[[Any], Any]:
        def forward(x: Any) -> Any:
            for part in parts[start:end]:
                x = part(x)
            return x

        return forward

    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            run(start, end), input, use_reentrant=use_reentrant, preserve_rng_state=preserve
        )
    return run(end, len(parts))(input)
