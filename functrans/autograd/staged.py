"""``jit`` of functions that work on tensors: whole steps with ``backward`` and optimizers.

Here: ``Session``, which makes the tensors that a function reaches arguments of the program while it
is traced, and ``StepPrograms``, the programs of a jitted function with what each depends on. Not
here: the Python state that a function reaches (``autograd.reachable``), the trace
(``autograd.recording``), the compiler, the cache of programs without tensors (``control.jit``).

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

import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from functrans import tree
from functrans.autograd.modes import modes
from functrans.autograd.reachable import HOOK_TABLES, MISSING, State
from functrans.autograd.recording import PERMANENT, ImperativeTrace
from functrans.autograd.tensors import Tensor
from functrans.control.explanations import Origin, origin
from functrans.control.inline import inline_calls
from functrans.control.jit import JitFunction, for_compiler, install_tensors
from functrans.control.native import call_program, jit_p
from functrans.errors import UnsupportedOperationError
from functrans.ir.jaxpr import Jaxpr
from functrans.ir.source import here
from functrans.passes.nodes import ordered_nodes
from functrans.passes.simplify import simplify
from functrans.staging import StagingTrace, StagingTracer
from functrans.state import current_config
from functrans.trace import aval_of, bind, tracing

_MAX_PROGRAMS = 64
_SETTLED = 3
"""Calls of one kind that may create state before it is an error."""

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
      view: how it is a view of another tensor.
    """

    tensor: Tensor
    value: Any
    node: Any
    grad: Any
    argument: StagingTracer | None
    version: int
    view: Any


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
        self.trace.stops = True
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
                tensor,
                tensor._value,
                tensor._node,
                tensor._grad,
                None,
                tensor._stored().version,
                tensor._view,
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
            tensor._view = entry.view
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
      reached: identities of tensors that the function reaches by itself.
      captured_leaves: which arguments were among them.
      origin: the kind of call that it was staged for.
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
    reached: frozenset[int]
    captured_leaves: tuple[bool, ...]
    origin: Origin

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Whether the program may be used now."""
        return self.captures(leaves) == self.captured_leaves and all(
            guard() for guard in self.guards
        )

    def captures(self, leaves: Sequence[Any]) -> tuple[bool, ...]:
        """Which arguments are tensors that the function reaches by itself, too."""
        return tuple([id(leaf) in self.reached for leaf in leaves])

    def _check_shared(self, operands: Sequence[Any]) -> None:
        """Refuse a write to memory that another operand shares.

        Raises:
          UnsupportedOperationError: it does.
        """
        targets = [place.tensor._value for place in self.written if not place.is_grad]
        arrays = [x for x in operands if isinstance(x, np.ndarray)]
        if not targets:
            return
        if all(x.base is None for x in arrays) and len(set(map(id, arrays))) == len(arrays):
            return
        for target in targets:
            for x in arrays:
                if x is not target and np.may_share_memory(x, target):
                    raise UnsupportedOperationError(
                        f"the jitted step writes to a tensor of shape {target.shape}, whose memory "
                        f"another operand of shape {x.shape} shares; pass copies"
                    )

    def run(self, leaves: Sequence[Any], name: str) -> Any:
        """Call the program, write back what changed, and return the results."""
        hidden = [place.place() for place in self.hidden]
        if self.is_recorded and modes.grad:
            operands = (*self.captured, *hidden, *leaves)
            outs = bind(jit_p, *operands, jaxpr=self.jaxpr, name=name)
        else:
            operands = (*self.captured, *map(plain, (*hidden, *leaves)))
            self._check_shared(operands)
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
            _repeats(leaves),
            modes.grad,
            current_config.get(),
        )
        name = getattr(function, "__name__", "step")
        known = self._programs.setdefault(key, [])
        for i, program in enumerate(known):
            if program.fits(leaves):
                if i:
                    known.insert(0, known.pop(i))
                return program.run(leaves, name)
        count = self._unsettled.get(key, 0)
        program, changed = _staged(function, args, kwargs, leaves, treedef, count < _SETTLED)
        if changed:
            self._unsettled[key] = count + 1
        else:
            self._unsettled.pop(key, None)
            known.insert(0, program)
            del known[_MAX_PROGRAMS:]
        return program.run(leaves, name)

    def kept(self) -> list[_Step]:
        """All programs."""
        return [program for programs in self._programs.values() for program in programs]

    def clear(self) -> None:
        """Forget all programs."""
        self._programs.clear()


def _repeats(leaves: Sequence[Any]) -> Hashable:
    """Which tensor arguments are the same as earlier ones."""
    first: dict[int, int] = {}
    return tuple(
        [first.setdefault(id(x), i) if isinstance(x, Tensor) else i for i, x in enumerate(leaves)]
    )


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
    may_change: bool,
) -> tuple[_Step, str]:
    """The program of a call, and what state it creates, so that the next is another."""
    label = repr(function)[1:-1]
    start = time.perf_counter()
    fun = function.function
    roots = [(fun, getattr(fun, "__name__", "step"))]
    before = State(roots)
    staging = StagingTrace(label)
    outer = modes.session
    is_done = False
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
                for reached, _ in before.tensors:  # arrays among the arguments may meet them
                    if _is_free(reached):
                        session.adopt(reached)
                result = function.call_with(args, kwargs, treedef, inner)
                step, changed = _closed(
                    function, session, before, State(roots), leaves, arguments, result, start
                )
                if changed and not may_change:
                    raise UnsupportedOperationError(
                        f"{label}: each call changes {changed}, so that no program could be used "
                        "twice; do that outside of the jitted step"
                    )
                is_done = True
                return step, changed
            finally:
                modes.update(session=outer)
                session.restore()
                if not is_done:
                    before.restore()


def _is_free(tensor: Tensor) -> bool:
    """Whether a tensor can be an argument just in case."""
    return (
        tensor._trace is PERMANENT
        and tensor._view is None
        and (tensor._node is None or tensor._node.primitive is None)
    )


def _adopt_argument(session: Session, leaf: Tensor, argument: StagingTracer) -> None:
    node = leaf._node
    if node is not None and node.primitive is not None:
        raise UnsupportedOperationError(
            f"{session.staging.label}: an argument is a tensor that was computed outside and "
            f"requires a gradient{here()}; pass tensor.detach(), or compute it inside the step"
        )
    if id(leaf) in session.entries:  # it came before: the first argument stands for it
        return
    entry = session.touch(leaf)
    entry.value = leaf._memory()
    entry.argument = argument
    leaf._view = None  # a write reaches its base through the memory
    leaf._value = StagingTracer(session.staging, argument._var)
    leaf._trace = session.trace


def _closed(
    function: JitFunction,
    session: Session,
    before: State,
    after: State,
    leaves: Sequence[Any],
    arguments: Sequence[StagingTracer],
    result: Any,
    start: float,
) -> tuple[_Step, str]:
    """Close the program over its results and over what it changed."""
    label = session.staging.label
    created = _check_changes(label, session, before)
    for entry in list(session.entries.values()):
        if isinstance(entry.tensor._grad, Tensor) and entry.tensor._grad is not entry.grad:
            session.take((entry.tensor._grad,))
    flat, treedef = tree.flatten(result)
    session.take(flat)
    outs = [x._value if isinstance(x, Tensor) else x for x in flat]
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
    # Tensors that were made arguments just in case are let go of.
    used: set[Any] = {atom for eqn in session.staging.eqns for atom in eqn.inputs}
    used.update(map(_var, (*values, *outs)))
    kept = [i for i, variable in enumerate(variables) if variable in used or i in given]
    given = [kept.index(i) for i in given]
    hidden, variables = [hidden[i] for i in kept], [variables[i] for i in kept]
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
    reached = frozenset(id(tensor) for tensor, _ in before.tensors)
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
        reached,
        tuple([id(leaf) in reached for leaf in leaves]),
        _origin(before, hidden, hoisted, len(captured), start),
    )
    return step, ", ".join(dict.fromkeys([*created, *(name for _, name in fresh)]))


def _origin(
    before: State, hidden: Sequence[_Hidden], jaxpr: Jaxpr, n_captured: int, start: float
) -> Origin:
    """What a program depends on: the tensors that it takes, and the numbers around it."""
    names = {id(tensor): name for tensor, name in before.tensors}
    paths = [f"a captured array {i}" for i in range(n_captured)]
    for i, place in enumerate(hidden):
        name = names.get(id(place.tensor), f"tensor {i}")
        paths.append(f"{name}.grad" if place.is_grad else name)
    paths += [f"argument {i}" for i in range(len(jaxpr.invars) - len(paths))]
    numbers = {
        watch.place(key): value
        for watch in before.watches
        for key, value in zip(watch.keys, watch.values, strict=True)
        if isinstance(value, (bool, int, float, complex))
    }
    staging_s = time.perf_counter() - start
    return origin(paths, jaxpr.in_avals, numbers, current_config.get(), (), staging_s)


def _check_changes(label: str, session: Session, before: State) -> list[str]:
    """Refuse changes of the Python state that a program cannot repeat.

    Returns:
      Where state was created, which the next call finds.

    Raises:
      UnsupportedOperationError: something was replaced.
    """
    created = []
    for watch in before.watches:
        for name, was, now in watch.changes():
            if was is MISSING or (was is None and isinstance(now, Tensor)):
                created.append(name)
                continue
            if isinstance(was, Tensor) and isinstance(now, Tensor):
                raise UnsupportedOperationError(
                    f"{label}: the step puts another tensor into {name}; a program writes to "
                    f"the tensors that there are: use {name}.copy_(...), or return the tensor"
                )
            old = "nothing" if now is MISSING else repr(was)
            raise UnsupportedOperationError(
                f"{label}: the step changes {name} (it was {old}), a Python value, which a "
                "program cannot do; make it a tensor, or change it outside of the step"
            )
    for value, copy, name in before.contents:
        same = np.array_equal(value, copy) if isinstance(value, np.ndarray) else value == copy
        if not same:
            what = "an array" if isinstance(value, np.ndarray) else "a set"
            raise UnsupportedOperationError(
                f"{label}: the step writes to {name}, {what}, which a program cannot do; use a "
                "tensor, or do it outside of the step"
            )
    return created


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


def _guards(session: Session, before: State) -> Iterator[Callable[[], bool]]:
    """What a program depends on beside its arguments."""
    yield before.holds
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
    return tuple(tuple(getattr(node, name, None) or ()) for name in HOOK_TABLES)


# the way in --------------------------------------------------------------------------------------


class _NeedsTensors(BaseException):
    """A function that is being staged by ``jit`` met a tensor."""


class _Probe:
    """Stands for a session where none is: it says that there should be one."""

    @property
    def trace(self) -> Any:
        """Leave the trace."""
        raise _NeedsTensors

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

    def programs(self, function: JitFunction) -> list[_Step]:
        """The programs of a function that are kept."""
        programs = self._programs.get(function)
        return [] if programs is None else programs.kept()

    def clear(self, function: JitFunction) -> None:
        """Forget a function's programs."""
        programs = self._programs.get(function)
        if programs is not None:
            programs.clear()


IMPERATIVE = Imperative()
install_tensors(IMPERATIVE)
