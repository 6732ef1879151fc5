"""``jit`` of functions that work on tensors: whole steps with ``backward`` and optimizers.

Here: how a step becomes a program, and ``StepPrograms``, the programs of a jitted function with
what each depends on. Not here: the tensors of the trace (``autograd.session``), calling a program
(``autograd.steps``), the Python state that a function reaches (``autograd.reachable``), the
compiler, the cache of programs without tensors (``control.jit``).

If a tensor that is an argument, hidden or not, holds another value when the trace ends, that is a
hidden result, written back after each call; so is its ``.grad``. The Python state that the function
can reach (attributes, dictionaries, lists, variables of enclosing functions) is compared before and
after: a tensor that the step puts in the place of another one is a result that is put there after
each call. A number that the step itself changes cannot be a part of the program, and is refused;
one that somebody else changes leads to another program, but for those that are arguments. A step
that creates tensors in that state (an optimizer's, in its first step) is staged once more, with
these as arguments.

Layer: ``autograd``.
"""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from functrans import tree
from functrans.autograd.modes import modes
from functrans.autograd.reachable import HOOK_TABLES, MISSING, State
from functrans.autograd.recording import PERMANENT
from functrans.autograd.session import Entry, Session
from functrans.autograd.steps import Gradient, Memory, Place, Result, Slot, Step, plain
from functrans.autograd.tensors import Tensor
from functrans.control.explanations import Origin, explain, origin
from functrans.control.inline import inline_calls
from functrans.control.jit import JitFunction, for_compiler, install_tensors
from functrans.control.lowered import LoweredStep
from functrans.control.native import jit_p
from functrans.errors import UnsupportedOperationError
from functrans.ir.jaxpr import Jaxpr
from functrans.passes.nodes import ordered_nodes
from functrans.passes.simplify import simplify
from functrans.staging import StagingTrace, StagingTracer
from functrans.state import current_config
from functrans.trace import aval_of, tracing

_MAX_PROGRAMS = 64
_MANY_PROGRAMS = 8
"""Programs for one kind of call with which a warning says what changes between calls."""
_SETTLED = 3
"""Calls of one kind that may create state before it is an error."""


class StepPrograms:
    """The programs of a jitted function that works on tensors."""

    def __init__(self, function: JitFunction) -> None:
        self._function = weakref.ref(function)
        self._programs: dict[Hashable, list[Step]] = {}
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
            self._keep(known, program)
        return program.run(leaves, name)

    def _keep(self, known: list[Step], program: Step) -> None:
        known.insert(0, program)
        del known[_MAX_PROGRAMS:]
        if len(known) == _MANY_PROGRAMS:
            function = self._function()
            label = repr(function)[1:-1]
            programs = sorted(known, key=lambda step: step.origin.number)
            report = explain(label, [(p.origin, p.jaxpr) for p in programs], current_config.get())
            warnings.warn(
                f"{label} was compiled {_MANY_PROGRAMS} times for the same kinds of arguments; the "
                f"last time because of {'; '.join(report[-1].changes) or 'replaced state'}. A "
                "number that changes between calls is better a tensor; explain() tells of all "
                "programs",
                RuntimeWarning,
                stacklevel=5,
            )

    def lower(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> LoweredStep:
        """The program of a call, which is not run."""
        function = self._function()
        assert function is not None
        leaves, treedef, _ = function.split(args, kwargs)
        program, changed = _staged(function, args, kwargs, leaves, treedef, True, is_kept=False)
        return LoweredStep(function, program.jaxpr, program.captured, changed)

    def kept(self) -> list[Step]:
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
    is_kept: bool = True,
) -> tuple[Step, str]:
    """The program of a call, and what state it creates, so that the next is another.

    Args:
      function: the jitted function.
      args: its arguments.
      kwargs: its arguments by name.
      leaves: their leaves.
      treedef: their structure.
      may_change: whether it may create state.
      is_kept: whether state that it creates is to stay, for the program to fill.
    """
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
                        session.adopt_argument(leaf, argument)
                        inner.append(leaf)
                    else:
                        inner.append(argument)
                for watch, key in before.numbers:
                    session.adopt_number(watch, key)
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
                is_done = is_kept
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


def _closed(
    function: JitFunction,
    session: Session,
    before: State,
    after: State,
    leaves: Sequence[Any],
    arguments: Sequence[StagingTracer],
    result: Any,
    start: float,
) -> tuple[Step, str]:
    """Close the program over its results and over what it changed."""
    label = session.staging.label
    session.restore_numbers()
    created, changed = _changes(label, session, before, leaves)
    for entry in list(session.entries.values()):
        if isinstance(entry.tensor._grad, Tensor) and entry.tensor._grad is not entry.grad:
            session.take((entry.tensor._grad,))
    by_identity = {id(leaf): i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)}
    slots = {id(was): slot for slot, was, _ in changed}
    hidden: list[Place] = []
    variables: list[Any] = []
    written: list[Place] = []
    values: list[Any] = []
    cleared: list[Tensor] = []
    given: list[int] = []
    grads = {
        id(entry.grad): entry.tensor for entry in session.entries.values() if entry.grad is not None
    }
    flat, treedef = tree.flatten(result)
    session.take([x for x in flat if id(x) not in by_identity])
    for entry in session.entries.values():
        tensor = entry.tensor
        owner = grads.get(id(tensor))
        place: Place = Memory(tensor) if owner is None else Gradient(owner)
        place = slots.get(id(tensor), place)
        if entry.argument is not None and id(tensor) not in by_identity:
            hidden.append(place)
            variables.append(entry.argument._var)
        if (
            entry.argument is not None
            and _var(tensor._value) is not entry.argument._var
            and (owner is None or owner._grad is tensor)
        ):
            written.append(place)
            values.append(tensor._value)
            if id(tensor) not in by_identity and owner is None:
                given.append(len(hidden) - 1)
        now = tensor._grad
        if now is not entry.grad:
            if now is None:
                cleared.append(tensor)
            else:
                written.append(Gradient(tensor))
                values.append(now._value)
    _refuse_shared(label, session)
    known = set(session.entries)
    fresh = [
        (tensor, name)
        for tensor, name in after.tensors
        if tensor._trace is session.trace
        and id(tensor) not in known
        and not any(tensor is new for *_, new in changed)
    ]
    for tensor, _ in fresh:
        written.append(Memory(tensor))
        values.append(tensor._value)
    values.extend(new._value for *_, new in changed)
    results, outs = _results(flat, by_identity, before, changed, session)
    for watch, key, _, argument in session.numbers:
        hidden.append(Slot(watch, key))
        variables.append(argument._var)
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
        tensor._node = tensor._view = None
        tensor.__dict__.pop("_trace", None)
    for slot, was, _ in changed:
        slot.watch.put(slot.key, was)  # until the program has run
    hoisted, captured = for_compiler(simplify(inline_calls(jaxpr, jit_p)))
    reached = frozenset(id(tensor) for tensor, _ in before.tensors if id(tensor) not in slots)
    hoisted.cache["gives_what_it_can"] = True  # of its own accord: nothing to be warned of
    step = Step(
        hoisted,
        captured,
        tuple(hidden),
        treedef,
        tuple(results),
        tuple(written),
        tuple([slot for slot, *_ in changed]),
        tuple(cleared),
        tuple(_guards(session, before, changed)),
        tuple(len(captured) + i for i in given),
        any(isinstance(x, Tensor) and _is_live(x._node) for x in flat),
        reached,
        tuple([id(leaf) in reached for leaf in leaves]),
        _origin(before, session, hidden, hoisted, len(captured), start),
    )
    return step, ", ".join(dict.fromkeys([*created, *(name for _, name in fresh)]))


_Changed = Sequence[tuple[Slot, Tensor, Tensor]]
"""Slots with the tensors before and after the step."""


def _results(
    flat: Sequence[Any],
    by_identity: Mapping[int, int],
    before: State,
    changed: _Changed,
    session: Session,
) -> tuple[list[Result], list[Any]]:
    """What each leaf of the result is, and the values that the program returns for them."""
    new = {id(tensor): i for i, (*_, tensor) in enumerate(changed)}
    there = {id(tensor) for tensor, _ in before.tensors} - {id(was) for _, was, _ in changed}
    results: list[Result] = []
    outs: list[Any] = []
    for x in flat:
        if isinstance(x, Tensor) and id(x) in by_identity:
            results.append(Result("argument", by_identity[id(x)]))
        elif isinstance(x, Tensor) and id(x) in new:
            results.append(Result("replaced", new[id(x)]))
        elif isinstance(x, Tensor) and id(x) in there and id(x) in session.entries:
            results.append(Result("place", place=Memory(x)))
        else:
            results.append(Result("tensor" if isinstance(x, Tensor) else "array"))
            outs.append(x._value if isinstance(x, Tensor) else x)
    return results, outs


def _origin(
    before: State,
    session: Session,
    hidden: Sequence[Place],
    jaxpr: Jaxpr,
    n_captured: int,
    start: float,
) -> Origin:
    """What a program depends on: the tensors that it takes, and the numbers around it."""
    names = {id(tensor): name for tensor, name in before.tensors}
    paths = [f"a captured array {i}" for i in range(n_captured)]
    for i, place in enumerate(hidden):
        if isinstance(place, Slot):
            paths.append(place.watch.place(place.key))
        else:
            name = names.get(id(place.tensor), f"tensor {i}")
            paths.append(f"{name}.grad" if isinstance(place, Gradient) else name)
    paths += [f"argument {i}" for i in range(len(jaxpr.invars) - len(paths))]
    numbers = {
        watch.place(key): value for watch in before.watches for key, value in watch.numbers()
    }
    for entry in session.entries.values():
        if entry.node is not None and id(entry.tensor) in names:
            numbers[f"{names[id(entry.tensor)]}.grad is None"] = entry.grad is None
    staging_s = time.perf_counter() - start
    return origin(paths, jaxpr.in_avals, numbers, current_config.get(), (), staging_s)


def _changes(
    label: str, session: Session, before: State, leaves: Sequence[Any]
) -> tuple[list[str], list[tuple[Slot, Tensor, Tensor]]]:
    """What the step changed in the Python state; a change that no program can repeat is refused.

    Returns:
      Where state was created, which the next call finds; and slots with other tensors than before.

    Raises:
      UnsupportedOperationError: a number, an array or a set was changed, or a tensor was replaced
        in a way that a program cannot repeat.
    """
    for watch in before.watches:
        for _, _, now in watch.changes():
            if isinstance(now, Tensor) and id(now) in session.born:
                session.take((now,))
    created: list[str] = []
    replaced: list[tuple[Slot, Tensor, Tensor]] = []
    for watch in before.watches:
        for key, was, now in watch.changes():
            name = watch.place(key)
            if was is MISSING or (was is None and isinstance(now, Tensor)):
                if isinstance(now, Tensor):
                    _refuse_graph(label, name, now)
                    if now._view is not None and id(now._view.base) in session.entries:
                        raise UnsupportedOperationError(
                            f"{label}: the step keeps a view of a tensor in {name}; the memory of "
                            "what a program makes is its own: keep a clone()"
                        )
                created.append(name)
                continue
            if isinstance(was, Tensor) and isinstance(now, Tensor):
                _refuse_graph(label, name, now)
                reason = _why_not_replaced(session, before, was, now, leaves)
                if any(now is new for *_, new in replaced):
                    reason = "the step puts it into two places"
                if reason:
                    raise UnsupportedOperationError(
                        f"{label}: the step puts another tensor into {name}, which a program "
                        f"cannot do here ({reason}); write to the tensor that there is: use "
                        f"{name}.copy_(...), or return the tensor"
                    )
                replaced.append((Slot(watch, key), was, now))
                continue
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
    return created, replaced


def _refuse_graph(label: str, name: str, tensor: Tensor) -> None:
    """Refuse to keep a tensor together with the graph that it was computed by.

    Raises:
      UnsupportedOperationError: gradients flow to it.
    """
    if tensor._node is not None and tensor._node.primitive is not None and _is_live(tensor._node):
        raise UnsupportedOperationError(
            f"{label}: the step keeps a tensor in {name} that requires a gradient; its graph ends "
            "with the step: keep tensor.detach()"
        )


def _why_not_replaced(
    session: Session, before: State, was: Tensor, now: Tensor, leaves: Sequence[Any]
) -> str:
    """Why a program cannot put one tensor in the place of another; empty if it can."""
    if id(now) in session.entries or now._trace is not session.trace:
        return "the new one was there before the step, or is no result of an operation"
    if now._view is not None and id(now._view.base) in session.entries:
        return "the new one is a view of a tensor that was there before"
    if was._node is not None or was._grad is not None or was._view is not None:
        return "the old one requires a gradient, or is a view"
    if now._node is not None and now._node.primitive is None:
        return "the new one requires a gradient"
    if before.visits.get(id(was), 0) != 1 or any(was is leaf for leaf in leaves):
        return "the old one is reached in other ways, too"
    return ""


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


def _guards(session: Session, before: State, changed: _Changed) -> Iterator[Callable[[], bool]]:
    """What a program depends on beside its arguments."""
    for watch, key, *_ in session.numbers:
        watch.free[key] = _is_float
    for slot, was, _ in changed:
        slot.watch.free[slot.key] = _like(session.entries.get(id(was)), was)
    yield before.holds
    slots = {id(was) for _, was, _ in changed}
    for entry in session.entries.values():
        if id(entry.tensor) not in slots:
            yield _same_tensor(entry)


def _is_float(value: Any) -> bool:
    return type(value) is float


def _like(entry: Entry | None, was: Tensor) -> Callable[[Any], bool]:
    """Whether a tensor may take the place of another one in a slot."""
    shape, dtype = was.shape, was.dtype
    if entry is not None:
        shape, dtype = entry.value.shape, entry.value.dtype

    def fits(value: Any) -> bool:
        return (
            type(value) is Tensor
            and value._trace is PERMANENT
            and value._node is None
            and value._grad is None
            and value._view is None
            and value._value.shape == shape
            and value._value.dtype == dtype
        )

    return fits


def _same_tensor(entry: Entry) -> Callable[[], bool]:
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

    @property
    def born(self) -> dict[int, Tensor]:
        """Nothing: constants are none of its business."""
        return {}

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

    def lower(self, function: JitFunction, args: Any, kwargs: Any) -> LoweredStep:
        """The program of a call of a function that works on tensors."""
        programs = self._programs.get(function)
        if programs is None:
            programs = self._programs[function] = StepPrograms(function)
        return programs.lower(args, kwargs)

    def programs(self, function: JitFunction) -> list[Step]:
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
