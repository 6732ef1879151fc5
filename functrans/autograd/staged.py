"""``jit`` of functions that work on tensors: whole steps with ``backward`` and optimizers.

Here: ``Session``, which makes the tensors that a function reaches arguments of the program while it
is traced, and ``StepPrograms``, the programs of a jitted function with what each depends on. Not
here: the trace (``autograd.recording``), the compiler, the cache of programs without tensors
(``control.jit``).

While a step is traced, every permanent tensor that an operation meets becomes a hidden argument:
its value is a tracer until the trace ends. If it then holds another value, that is a hidden result,
written back after each call; so is its ``.grad``. The Python state that the function can reach
(attributes, dictionaries, lists, variables of enclosing functions) is compared before and after: a
number that the step itself changes cannot be a part of the program, and is refused; one that
somebody else changes leads to another program. A step that creates tensors in that state (an
optimizer's, in its first step) is staged once more, with these as arguments.

Layer: ``autograd``.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from functrans import tree
from functrans.autograd.modes import modes
from functrans.autograd.recording import PERMANENT, ImperativeTrace
from functrans.autograd.tensors import Tensor
from functrans.control.custom_rules import stop_gradient
from functrans.control.inline import inline_calls
from functrans.control.jit import JitFunction, for_compiler, install_tensors
from functrans.control.native import call_program, jit_p
from functrans.errors import UnsupportedOperationError
from functrans.ir.avals import is_differentiable_dtype
from functrans.ir.jaxpr import Jaxpr
from functrans.ir.source import here
from functrans.passes.nodes import ordered_nodes
from functrans.passes.simplify import simplify
from functrans.staging import StagingTrace, StagingTracer
from functrans.state import current_config
from functrans.trace import Tracer, aval_of, bind, tracing

_MAX_PROGRAMS = 64
_SETTLED = 3
"""Calls of one kind that may create state before it is an error."""

# what a function can reach -----------------------------------------------------------------------

_SCALARS = (bool, int, float, complex, str, bytes, type(None), np.generic)
_MAX_ITEMS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class _Item:
    """A value in the Python state of a function.

    Attributes:
      read: gives the value that is there now.
      value: the value that was there.
      name: how to say where it is.
    """

    read: Callable[[], Any]
    value: Any
    name: str

    def holds(self) -> bool:
        """Whether the same value is there."""
        try:
            now = self.read()
        except (KeyError, IndexError, AttributeError, ValueError):
            return False
        return now is self.value or (
            isinstance(self.value, _SCALARS)
            and type(now) is type(self.value)
            and bool(now == self.value)
        )


def _read(holder: Any, key: Any) -> Callable[[], Any]:
    return lambda: holder[key]


def _cell(cell: Any) -> Callable[[], Any]:
    return lambda: cell.cell_contents


class _State:
    """What a function can reach: numbers and texts, sizes of containers, tensors.

    Attributes:
      items: numbers, texts and sizes.
      tensors: tensors with the way to each.
    """

    def __init__(self, roots: Sequence[Any]) -> None:
        self.items: list[_Item] = []
        self.tensors: list[tuple[Tensor, str]] = []
        self._seen: dict[int, Any] = {}
        pending = [(root, name) for root, name in roots]
        while pending and len(self._seen) < _MAX_ITEMS:
            value, name = pending.pop()
            pending.extend(self._look(value, name))

    def _look(self, value: Any, name: str) -> Iterator[tuple[Any, str]]:
        if id(value) in self._seen or isinstance(value, (*_SCALARS, types.ModuleType, type)):
            return
        self._seen[id(value)] = value
        if isinstance(value, Tensor):
            self.tensors.append((value, name))
            return
        if isinstance(value, (np.ndarray, Tracer)):
            return
        if isinstance(value, JitFunction):
            yield value.function, name
        elif isinstance(value, types.MethodType):
            yield value.__self__, name
            yield value.__func__, name
        elif isinstance(value, types.FunctionType):
            if value.__module__ and value.__module__.split(".")[0] in _OWN:
                return
            for variable, cell in zip(
                value.__code__.co_freevars, value.__closure__ or (), strict=True
            ):
                try:
                    inner = cell.cell_contents
                except ValueError:
                    continue
                yield from self._note(inner, variable, _cell(cell))
            for variable in value.__code__.co_names:
                if variable in value.__globals__:
                    inner = value.__globals__[variable]
                    yield from self._note(inner, variable, _read(value.__globals__, variable))
        elif isinstance(value, Mapping):
            if isinstance(value, dict):
                self.items.append(_Item(_size(value), len(value), f"len({name})"))
            for key in list(value):
                yield from self._note(value[key], f"{name}[{key!r}]", _read(value, key))
        elif isinstance(value, (list, tuple)):
            if isinstance(value, list):
                self.items.append(_Item(_size(value), len(value), f"len({name})"))
            for i, inner in enumerate(value):
                yield from self._note(inner, f"{name}[{i}]", _read(value, i))
        elif hasattr(value, "__dict__"):
            own = vars(value)
            for key in list(own):
                yield from self._note(own[key], f"{name}.{key}", _read(own, key))

    def _note(self, value: Any, name: str, read: Callable[[], Any]) -> Iterator[tuple[Any, str]]:
        if isinstance(value, _SCALARS):
            self.items.append(_Item(read, value, name))
        else:
            yield value, name


_OWN = frozenset({"functrans", "numpy", "scipy"})


def _size(container: Any) -> Callable[[], int]:
    return lambda: len(container)


# tracing -----------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Entry:
    """A permanent tensor that a step reached.

    Attributes:
      tensor: the tensor.
      value: its array before the step.
      node: its node before the step.
      grad: its gradient before the step.
      argument: what stands for the array in the trace; ``None`` if only the gradient was asked for.
      version: of its storage before the step.
    """

    tensor: Tensor
    value: Any
    node: Any
    grad: Any
    argument: StagingTracer | None
    version: int


class StagedTrace(ImperativeTrace):
    """The imperative trace of a step that is being staged.

    Attributes:
      session: what it belongs to.
    """

    __slots__ = ("session",)
    session: Session

    def _taken_apart(self, operands: tuple[Any, ...]) -> tuple[list[Any], list[Any], bool]:
        self.session.take(operands)
        return super()._taken_apart(operands)

    def _result(self, out: Any, *args: Any) -> Tensor:
        """A result that is not recorded: under ``no_grad`` no derivative goes through it."""
        if not modes.grad and is_differentiable_dtype(out.dtype):
            out = stop_gradient(out)
        return super()._result(out, *args)


class Session:
    """The tensors of a step that is being traced.

    Attributes:
      staging: the trace of values.
      trace: the trace of tensors.
      entries: permanent tensors that were reached, by identity.
    """

    def __init__(self, staging: StagingTrace, label: str) -> None:
        self.staging = staging
        self.trace = StagedTrace(label, is_plain=False)
        self.trace.session = self
        self.entries: dict[int, _Entry] = {}

    def take(self, operands: Sequence[Any]) -> StagedTrace:
        """Adopt the permanent tensors among operands; the trace that they belong to now."""
        for operand in operands:
            if isinstance(operand, Tensor) and operand._trace is PERMANENT:
                self.adopt(operand)
        return self.trace

    def touch(self, tensor: Tensor) -> _Entry:
        """Note a permanent tensor whose gradient may change."""
        entry = self.entries.get(id(tensor))
        if entry is None:
            entry = self.entries[id(tensor)] = _Entry(
                tensor, tensor._value, tensor._node, tensor._grad, None, tensor._stored().version
            )
        return entry

    def adopt(self, tensor: Tensor) -> None:
        """Make a permanent tensor's value an argument.

        Raises:
          UnsupportedOperationError: it was computed outside of the step, and gradients flow to it.
        """
        node = tensor._node
        if node is not None and node.primitive is not None:
            raise UnsupportedOperationError(
                f"{self.staging.label}: a tensor that was computed outside of the jitted step "
                f"requires a gradient{here()}; its graph is no part of the program. Compute it "
                "inside, or pass tensor.detach()."
            )
        if tensor._view is not None:
            self._adopt_view(tensor)
            return
        entry = self.touch(tensor)
        if entry.argument is None:
            value = tensor._memory()
            entry.value = value
            entry.argument = self.staging.argument(aval_of(value))
            tensor._value = StagingTracer(self.staging, entry.argument._var)
            tensor._trace = self.trace

    def _adopt_view(self, tensor: Tensor) -> None:
        """A view of a permanent tensor: the same view of what stands for its base."""
        how = tensor._view
        assert how is not None
        entry = self.touch(tensor)
        base = how.base
        if base._trace is PERMANENT:
            self.adopt(base)
        current = base
        for step in how.steps:
            current = step(current)
        entry.argument = None
        tensor._value = current._value
        tensor._trace = self.trace

    def restore(self) -> None:
        """Give all tensors their arrays back."""
        for entry in self.entries.values():
            tensor = entry.tensor
            tensor._value = entry.value
            tensor._node = entry.node
            tensor._grad = entry.grad
            tensor.__dict__.pop("_trace", None)
            if tensor._storage is not None:
                tensor._storage.version = entry.version


# programs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Hidden:
    """A hidden argument: a tensor's array, or that of its gradient.

    Attributes:
      tensor: the tensor.
      is_grad: whether its gradient is meant.
    """

    tensor: Tensor
    is_grad: bool

    def place(self) -> Any:
        """The tensor whose array it is now."""
        return self.tensor._grad if self.is_grad else self.tensor


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """A staged step.

    Attributes:
      jaxpr: ``(*captured, *hidden, *leaves) -> (*written, *results)``.
      captured: arrays that it refers to.
      hidden: hidden arguments.
      treedef: structure of the results.
      is_tensor: whether each result is a tensor, with whether it is one of its arguments.
      written: what each of the first results is written to.
      cleared: tensors whose gradient is ``None`` afterwards.
      guards: what must be as it was.
      given: positions of operands that results may take over.
      is_recorded: whether gradients flow through a result.
    """

    jaxpr: Jaxpr
    captured: tuple[Any, ...]
    hidden: tuple[_Hidden, ...]
    treedef: Any
    is_tensor: tuple[bool, ...]
    written: tuple[_Hidden, ...]
    cleared: tuple[Tensor, ...]
    guards: tuple[Callable[[], bool], ...]
    given: tuple[int, ...]
    is_recorded: bool

    def fits(self) -> bool:
        """Whether the program may be used now."""
        return all(guard() for guard in self.guards)

    def run(self, leaves: Sequence[Any], name: str) -> Any:
        """Call the program, write back what changed, and return the results."""
        hidden = [place.place() for place in self.hidden]
        if self.is_recorded and modes.grad:
            operands = (*self.captured, *hidden, *leaves)
            outs = bind(jit_p, *operands, jaxpr=self.jaxpr, name=name)
        else:
            operands = (*self.captured, *map(plain, (*hidden, *leaves)))
            outs = tuple(call_program(self.jaxpr, operands, name, self.given))
        n = len(self.written)
        # A result may have taken over the memory that another one is to be written to.
        memory = {id(place.tensor._value) for place in self.written if not place.is_grad}
        changed = []
        for place, out in zip(self.written, outs, strict=False):
            value = plain(out)
            is_there = not place.is_grad and value is place.tensor._value
            changed.append(value.copy() if id(value) in memory and not is_there else value)
        results = []
        for out, flag in zip(outs[n:], self.is_tensor, strict=True):
            value = out if id(plain(out)) not in memory else plain(out).copy()
            is_done = isinstance(value, Tensor)
            results.append((value if is_done else Tensor.of(value)) if flag else plain(value))
        for place, value in zip(self.written, changed, strict=True):
            _store(place, value)
        for tensor in self.cleared:
            tensor._grad = None
        return tree.unflatten(self.treedef, results)


def _store(place: _Hidden, value: Any) -> None:
    tensor = place.tensor
    if place.is_grad:
        tensor._grad = Tensor.of(np.asarray(value))
        return
    memory = tensor._memory()
    if memory is not value:
        np.copyto(memory, value)
    tensor._stored().bump("a jitted step", None)


class StepPrograms:
    """The programs of a jitted function that works on tensors."""

    def __init__(self, function: JitFunction) -> None:
        self._function = weakref.ref(function)
        self._programs: dict[Hashable, list[_Step]] = {}
        self._unsettled: dict[Hashable, int] = {}
        """Calls in a row, by kind, that changed the state that they depend on."""

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the function through a program that fits."""
        function = self._function()
        assert function is not None
        leaves, treedef, static = function.split(args, kwargs)
        key = (
            treedef,
            static,
            tuple(map(_leaf_key, leaves)),
            modes.grad,
            current_config.get(),
        )
        name = getattr(function, "__name__", "step")
        known = self._programs.setdefault(key, [])
        for i, program in enumerate(known):
            if program.fits():
                if i:
                    known.insert(0, known.pop(i))
                return program.run(leaves, name)
        program, changed = _staged(function, args, kwargs, leaves, treedef)
        if changed:
            count = self._unsettled[key] = self._unsettled.get(key, 0) + 1
            if count > _SETTLED:
                raise UnsupportedOperationError(
                    f"{repr(function).strip('<>')}: each call changes {changed}, so that no "
                    "program could be used twice; do that outside of the jitted step"
                )
        else:
            self._unsettled.pop(key, None)
            known.insert(0, program)
            del known[_MAX_PROGRAMS:]
        return program.run(leaves, name)

    def clear(self) -> None:
        """Forget all programs."""
        self._programs.clear()


def plain(leaf: Any) -> Any:
    """The array of an argument."""
    return leaf._memory() if isinstance(leaf, Tensor) else leaf


def _leaf_key(leaf: Any) -> Hashable:
    if isinstance(leaf, Tensor):
        return Tensor, leaf.shape, leaf.dtype, leaf._node is None
    value = aval_of(leaf)
    return value.shape, value.dtype, value.weak  # type: ignore[union-attr]  # no tape


def _staged(
    function: JitFunction,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    leaves: Sequence[Any],
    treedef: Any,
) -> tuple[_Step, str]:
    """The program of a call, and what state it creates, so that the next is another."""
    label = repr(function).strip("<>")
    fun = function.function
    roots = [(fun, getattr(fun, "__name__", "step"))]
    before = _State(roots)
    staging = StagingTrace(label)
    outer = modes.session
    with tracing(staging):
        session = Session(staging, label)
        with tracing(session.trace):
            modes.update(session=session)
            try:
                inner: list[Any] = []
                arguments: list[StagingTracer] = []
                for leaf in leaves:
                    argument = staging.argument(aval_of(plain(leaf)))
                    arguments.append(argument)
                    if isinstance(leaf, Tensor):
                        _adopt_argument(session, leaf, argument)
                        inner.append(leaf)
                    else:
                        inner.append(argument)
                result = function.call_with(args, kwargs, treedef, inner)
                return _closed(function, session, before, _State(roots), leaves, arguments, result)
            finally:
                modes.update(session=outer)
                session.restore()


def _adopt_argument(session: Session, leaf: Tensor, argument: StagingTracer) -> None:
    node = leaf._node
    if node is not None and node.primitive is not None:
        raise UnsupportedOperationError(
            f"{session.staging.label}: an argument is a tensor that was computed outside and "
            f"requires a gradient{here()}; pass tensor.detach(), or compute it inside the step"
        )
    entry = session.touch(leaf)
    entry.value = leaf._memory()
    entry.argument = argument
    leaf._value = StagingTracer(session.staging, argument._var)
    leaf._trace = session.trace


def _closed(
    function: JitFunction,
    session: Session,
    before: _State,
    after: _State,
    leaves: Sequence[Any],
    arguments: Sequence[StagingTracer],
    result: Any,
) -> tuple[_Step, str]:
    """Close the program over its results and over what it changed."""
    label = session.staging.label
    for item in before.items:
        if not item.holds() and not item.name.startswith("len("):
            raise UnsupportedOperationError(
                f"{label}: the step changes {item.name} (it was {item.value!r}), a Python value, "
                "which a program cannot do; make it a tensor, or change it outside of the step"
            )
    flat, treedef = tree.flatten(result)
    outs = []
    for x in flat:
        value = x._value if isinstance(x, Tensor) else x
        outs.append(value)
    by_identity = {id(leaf): i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
    grads = {
        id(entry.grad): entry.tensor for entry in session.entries.values() if entry.grad is not None
    }
    hidden: list[_Hidden] = []
    variables: list[Any] = []
    written: list[_Hidden] = []
    values: list[Any] = []
    cleared: list[Tensor] = []
    given: list[int] = []
    for entry in session.entries.values():
        tensor = entry.tensor
        if entry.argument is not None and id(tensor) not in by_identity:
            owner = grads.get(id(tensor))
            hidden.append(_Hidden(tensor if owner is None else owner, owner is not None))
            variables.append(entry.argument._var)
        if entry.argument is not None and _var(tensor._value) is not entry.argument._var:
            owner = grads.get(id(tensor))
            if owner is None or owner._grad is tensor:
                written.append(_Hidden(tensor if owner is None else owner, owner is not None))
                values.append(tensor._value)
                if id(tensor) not in by_identity and owner is None:
                    given.append(len(hidden) - 1)
        now = tensor._grad
        if now is not entry.grad:
            if now is None:
                cleared.append(tensor)
            else:
                written.append(_Hidden(tensor, True))
                values.append(now._value)
    _refuse_shared(label, session)
    known = set(session.entries)
    fresh = [
        (tensor, name)
        for tensor, name in after.tensors
        if tensor._trace is session.trace and id(tensor) not in known
    ]
    for tensor, _ in fresh:
        written.append(_Hidden(tensor, False))
        values.append(tensor._value)
    jaxpr = session.staging.jaxpr(
        [*variables, *(argument._var for argument in arguments)],
        [*values, *outs],  # what is written in place comes first, to be given its own memory
        getattr(function, "__name__", "step"),
        [],
    )
    for tensor, _ in fresh:  # their arrays come when the program has run
        tensor._value = np.empty(tensor.shape, tensor.dtype)
        tensor._node = None
        tensor.__dict__.pop("_trace", None)
    hoisted, captured = for_compiler(simplify(inline_calls(jaxpr, jit_p)))
    grown = [item.name for item in before.items if not item.holds()]
    hoisted.cache["gives_what_it_can"] = True  # of its own accord: nothing to be warned of
    step = _Step(
        hoisted,
        captured,
        tuple(hidden),
        treedef,
        tuple(isinstance(x, Tensor) for x in flat),
        tuple(written),
        tuple(cleared),
        tuple(_guards(session, before)),
        tuple(len(captured) + i for i in given),
        any(isinstance(x, Tensor) and _is_live(x._node) for x in flat),
    )
    return step, ", ".join([*grown, *(name for _, name in fresh)])


def _is_live(node: Any) -> bool:
    """Whether gradients can still flow to a node: not if a backward pass freed its graph."""
    return node is not None and not any(
        getattr(each, "is_freed", False) for each in ordered_nodes([node])
    )


def _refuse_shared(label: str, session: Session) -> None:
    """Refuse a write to memory that another argument of the program reads under its own name.

    Raises:
      UnsupportedOperationError: names the shapes.
    """
    entries = [entry for entry in session.entries.values() if entry.argument is not None]
    for entry in entries:
        if _var(entry.tensor._value) is entry.argument._var:  # type: ignore[union-attr]  # it has one
            continue
        for other in entries:
            if other is not entry and np.may_share_memory(entry.value, other.value):
                raise UnsupportedOperationError(
                    f"{label}: the step writes to a tensor of shape {entry.tensor.shape} whose "
                    f"memory another tensor of shape {other.tensor.shape} shares without being a "
                    "view of it (detach, from_numpy, the same array twice); use one of the two "
                    "inside the step"
                )


def _var(value: Any) -> Any:
    return value._var if isinstance(value, StagingTracer) else None


def _guards(session: Session, before: _State) -> Iterator[Callable[[], bool]]:
    """What a program depends on beside its arguments."""
    for item in before.items:
        yield item.holds
    for entry in session.entries.values():
        yield _same_tensor(entry)


def _same_tensor(entry: _Entry) -> Callable[[], bool]:
    tensor, had_grad, requires = entry.tensor, entry.grad is not None, entry.node is not None
    shape, dtype = entry.value.shape, entry.value.dtype
    hooks = _hooks_of(entry.node)

    def holds() -> bool:
        value = tensor._value
        return (
            value.shape == shape
            and value.dtype == dtype
            and (tensor._node is not None) == requires
            and (tensor._grad is not None) == had_grad
            and _hooks_of(tensor._node) == hooks
        )

    return holds


def _hooks_of(node: Any) -> tuple[Any, ...]:
    """Numbers of the hooks on a leaf."""
    if node is None:
        return ()
    tables = ("tensor_hooks", "prehooks", "posthooks", "post_accumulate")
    return tuple(tuple(getattr(node, name, None) or ()) for name in tables)


# the way in --------------------------------------------------------------------------------------


class _NeedsTensors(BaseException):
    """A function that is being staged by ``jit`` met a tensor."""


class _Probe:
    """Stands for a session where none is: it says that there should be one."""

    def take(self, operands: Sequence[Any]) -> Any:
        """Leave the trace."""
        raise _NeedsTensors

    def touch(self, tensor: Tensor) -> Any:
        """Leave the trace."""
        raise _NeedsTensors


_PROBE = _Probe()


class Imperative:
    """What ``control.jit`` asks about tensors."""

    def __init__(self) -> None:
        self._programs: weakref.WeakKeyDictionary[JitFunction, StepPrograms] = (
            weakref.WeakKeyDictionary()
        )

    def is_known(self, function: JitFunction) -> bool:
        """Whether a function was found to work on tensors."""
        return function in self._programs

    def is_own(self, leaf: Any) -> bool:
        """Whether an argument is a tensor that no transform made."""
        return isinstance(leaf, Tensor) and leaf._trace is PERMANENT

    @contextmanager
    def looking_for_tensors(self, function: JitFunction) -> Iterator[list[bool]]:
        """Notice permanent tensors in a function that is being staged.

        Yields:
          A list that has an element afterwards if there were any; nothing was staged then.
        """
        found: list[bool] = []
        outer = modes.session
        modes.update(session=outer or _PROBE)
        try:
            yield found
        except _NeedsTensors:
            if outer is not None:
                raise
            found.append(True)
            self._programs[function] = StepPrograms(function)
        finally:
            modes.update(session=outer)

    def call(self, function: JitFunction, args: Any, kwargs: Any) -> Any:
        """Call a function that works on tensors."""
        programs = self._programs.get(function)
        if programs is None:
            programs = self._programs[function] = StepPrograms(function)
        return programs.call(args, kwargs)

    def clear(self, function: JitFunction) -> None:
        """Forget a function's programs."""
        programs = self._programs.get(function)
        if programs is not None:
            programs.clear()


IMPERATIVE = Imperative()
install_tensors(IMPERATIVE)
