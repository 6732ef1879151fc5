"""Closing the program of a step over what the step changed, and what that depends on.

Here: ``closed``, from the end of a trace to a ``Step``: which tensors are operands and results,
what is refused, the guards. Not here: the trace (``autograd.jitted.session``), the programs of a
function (``autograd.jitted.staged``), calling them (``autograd.jitted.steps``).

If a tensor that is an argument, hidden or not, holds another value when the trace ends, that is a
hidden result, written back after each call; so is its ``.grad``. The state that the function holds
is compared before and after: a tensor that the step puts in the place of another one is a result
that is put there after each call, and so is a number of declared state. Other numbers that the step
changes are refused.

Layer: ``autograd.jitted``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.autograd.hooks import refuse_hooks
from functrans.autograd.jitted.held import MISSING, SCALARS, State
from functrans.autograd.jitted.session import Entry, Session
from functrans.autograd.jitted.steps import Leaves, Place, Result, Step
from functrans.autograd.recording import PERMANENT
from functrans.autograd.tensors import Tensor
from functrans.compiler.execution import execution_of
from functrans.control.inline import inline_calls
from functrans.control.native import jit_p
from functrans.core.jaxpr import Jaxpr
from functrans.core.state import current_config
from functrans.errors import UnsupportedOperationError
from functrans.jitted.captured import for_compiler
from functrans.jitted.explanations import Origin, origin
from functrans.jitted.jit import JitFunction
from functrans.passes.nodes import ordered_nodes
from functrans.passes.simplify import simplify
from functrans.passes.staging import StagingTracer
from functrans.records import dataclass, field


class Counts(BaseException):
    """A step changes a number of its declared state, which is to be an argument.

    Attributes:
      place: the identity of the holder, and the key.
    """

    def __init__(self, place: tuple[int, Any]) -> None:
        self.place = place


@dataclass(slots=True, eq=False)
class _Changes:
    """What a step changed in the state that it holds.

    Attributes:
      created: values where none was, with their places.
      replaced: slots with the tensors before and after.
      counted: slots of numbers, with the numbers before and the tracers after.
      assigned: slots of other values, with these before and after.
    """

    created: list[tuple[Any, str]] = field(default_factory=list)
    replaced: list[tuple[Place, Tensor, Tensor]] = field(default_factory=list)
    counted: list[tuple[Place, Any, StagingTracer]] = field(default_factory=list)
    assigned: list[tuple[Place, Any, Any]] = field(default_factory=list)


def closed(
    function: JitFunction,
    session: Session,
    before: State,
    counts: Mapping[tuple[int, Any], bool],
    leaves: Sequence[Any],
    arguments: Sequence[StagingTracer],
    result: Tensor | None,
    start: float,
) -> tuple[Step, str]:
    """Close the program over its results and over what it changed.

    Args:
      function: the jitted function.
      session: its trace.
      before: the state that it holds, as it was.
      counts: numbers that it is known to change, and whether these are arguments.
      leaves: of its arguments.
      arguments: what stood for them.
      result: what it returned.
      start: when the trace began.

    Returns:
      The program, and names of what it created in the state.

    Raises:
      Counts: it changes a number that is not known to change.
    """
    label = session.staging.label
    session.restore_numbers()
    changes = _changes(session, before, counts, leaves)
    changed = changes.replaced
    for entry in list(session.entries.values()):
        if isinstance(entry.tensor._grad, Tensor) and entry.tensor._grad is not entry.grad:
            session.take((entry.tensor._grad,))
    flat, treedef = tree.flatten(result)
    session.take(flat)
    _refuse_other_nodes(label, session, before)
    places = _Places(session, before, leaves, changed)
    hidden: list[Place] = []
    variables: list[Any] = []
    written: list[Place] = []
    values: list[Any] = []
    cleared: list[Place] = []
    given: list[int] = []
    for entry in session.entries.values():
        tensor = entry.tensor
        place = places.of(tensor)
        is_argument = place.kind == "argument"
        if entry.argument is not None and not is_argument:
            hidden.append(place)
            variables.append(entry.argument._var)
        if (
            entry.argument is not None
            and _var(tensor._value) is not entry.argument._var
            and not (place.kind == "gradient" and places.was_replaced(tensor))
        ):
            written.append(place)
            values.append(tensor._value)
            if not is_argument:
                given.append(len(hidden) - 1)
        now = tensor._grad
        if now is not entry.grad:
            holder = places.holder_of(tensor)
            if now is None:
                cleared.append(holder)
            else:
                written.append(holder.derived("new gradient"))
                values.append(now._value)
    _refuse_shared(label, session)
    created = [
        (tensor, name)
        for tensor, name in before.added(changes.created)
        if tensor._trace is session.trace
        and id(tensor) not in session.entries
        and not any(tensor is new for *_, new in changed)
    ]
    _refuse_shared_memory(label, [*created, *((new, slot.name) for slot, _, new in changed)])
    for tensor, _ in created:
        written.append(places.holder_of(tensor))
        values.append(tensor._value)
    values.extend(new._value for *_, new in changed)
    values.extend(new for *_, new in changes.counted)
    results, outs = _results(flat, places, session)
    for part, key, _, numbers in session.numbers:
        hidden.extend(Place.slots(part, key))
        variables.extend([number._var for number in numbers])
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
    for tensor, _ in created:  # their arrays come when the program has run
        tensor._value = np.empty(tensor.shape, tensor.dtype)
        tensor._node = tensor._view = None
        tensor.__dict__.pop("_trace", None)
    for slot, was, _ in (*changed, *changes.counted, *changes.assigned):
        slot.put(was)  # until the program has run
    hoisted, captured = for_compiler(simplify(inline_calls(jaxpr, jit_p)))
    entries = [e.tensor for e in session.entries.values()]
    reached = places.reached | {id(x) for x in entries if places.of(x).kind == "memory"}
    execution_of(hoisted).gives_what_it_can = True  # of its own accord: nothing to be warned of
    step = Step(
        hoisted,
        captured,
        tuple(hidden),
        treedef,
        tuple(results),
        tuple(written),
        tuple([slot for slot, *_ in changed]),
        tuple([slot for slot, *_ in changes.counted]),
        tuple([(slot, now) for slot, _, now in changes.assigned]),
        tuple(cleared),
        tuple(_guards(session, before, changed, places)),
        tuple(len(captured) + i for i in given),
        any(result.kind == "recorded" for result in results),
        frozenset(reached),
        tuple([id(leaf) in reached for leaf in leaves]),
        _origin(before, session, hidden, hoisted, len(captured), start),
    )
    names = [name for _, name in (*changes.created, *created)]
    return step, ", ".join(dict.fromkeys(names))


class _Places:
    """Where the tensors of a step are found in a later call.

    Attributes:
      grads: tensors by the identity of the gradient that they had.
      arguments: positions of tensors among the arguments, by identity.
      reached: identities of the tensors that the function reaches by itself, slots apart.
      new: positions of the tensors that slots get, by identity.
    """

    def __init__(
        self,
        session: Session,
        before: State,
        leaves: Leaves,
        changed: Sequence[tuple[Place, Tensor, Tensor]],
    ) -> None:
        entries = session.entries.values()
        self._names = before.names
        self.grads = {id(entry.grad): entry.tensor for entry in entries if entry.grad is not None}
        self.arguments: dict[int, int] = {}
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                self.arguments.setdefault(id(leaf), i)
        self.slots = {id(was): slot for slot, was, _ in changed}
        self.new = {id(new): i for i, (*_, new) in enumerate(changed)}
        self.reached = before.names.keys() - self.slots.keys()

    def holder_of(self, tensor: Tensor) -> Place:
        """Where a tensor is that is no gradient."""
        if id(tensor) in self.arguments:
            i = self.arguments[id(tensor)]
            return Place("argument", itemgetter(i), f"argument {i}")
        slot = self.slots.get(id(tensor))
        name = self._names.get(id(tensor), "a tensor")
        return Place("memory", lambda _: tensor, name) if slot is None else slot

    def was_replaced(self, gradient: Tensor) -> bool:
        """Whether the step put another one into the place of a gradient."""
        return self.grads[id(gradient)]._grad is not gradient

    def of(self, tensor: Tensor) -> Place:
        """Where a tensor is."""
        owner = self.grads.get(id(tensor))
        if owner is None or id(tensor) in self.reached or id(tensor) in self.arguments:
            return self.holder_of(tensor)
        return self.holder_of(owner).derived("gradient")


def _results(
    flat: Sequence[Any], places: _Places, session: Session
) -> tuple[list[Result], list[Any]]:
    """What each leaf of the result is, and the values that the program returns for them."""
    results: list[Result] = []
    outs: list[Any] = []
    first: dict[int, int] = {}
    for i, x in enumerate(flat):
        if not isinstance(x, Tensor):
            results.append(Result("array"))
            outs.append(x)
        elif id(x) in places.arguments:
            results.append(Result("place", place=places.holder_of(x)))
        elif id(x) in places.new:
            results.append(Result("replaced", places.new[id(x)]))
        elif id(x) in session.entries and places.of(x).kind == "memory":
            results.append(Result("place", place=places.of(x)))
        elif id(x) in first:
            results.append(Result("same", first[id(x)]))
        else:
            node = x._node
            is_leaf = node is not None and node.primitive is None
            live = node is not None and not is_leaf and _is_live(node)
            if live:
                refuse_hooks(session.trace.label, [node], session.hooks_before)
            results.append(Result("leaf" if is_leaf else "recorded" if live else "tensor"))
            outs.append(x._value)
            first[id(x)] = i
    return results, outs


def _refuse_shared_memory(label: str, kept: Sequence[tuple[Tensor, str]]) -> None:
    """Refuse to keep two new tensors on the same memory: each would get its own."""
    places: dict[int, str] = {}
    for tensor, name in kept:
        memory = id(tensor._stored())
        if memory in places:
            raise UnsupportedOperationError(
                f"{label}: the step keeps tensors on the same memory in {places[memory]} and in "
                f"{name}; keep one of them, or a clone()"
            )
        places[memory] = name


def _refuse_other_nodes(label: str, session: Session, before: State) -> None:
    """Refuse changes of what requires a gradient, which no program can repeat."""
    for entry in session.entries.values():
        tensor, node = entry.tensor, entry.tensor._node
        name = before.names.get(id(tensor), "an argument")
        if tensor._view is not None or entry.argument is None:
            continue
        if node is not None and node.primitive is not None:
            if entry.node is None:
                _refuse_graph(label, name, tensor)
        elif (node is None) != (entry.node is None):
            raise UnsupportedOperationError(
                f"{label}: the step changes whether {name} requires a gradient; do it outside"
            )


def _origin(
    before: State,
    session: Session,
    hidden: Sequence[Place],
    jaxpr: Jaxpr,
    n_captured: int,
    start: float,
) -> Origin:
    """What a program depends on: the tensors that it takes, and the numbers around it."""
    paths = [f"a captured array {i}" for i in range(n_captured)]
    for i, place in enumerate(hidden):
        is_known = not place.name.startswith("a tensor")
        paths.append(place.name if is_known else place.name.replace("a tensor", f"tensor {i}"))
    paths += [f"argument {i}" for i in range(len(jaxpr.invars) - len(paths))]
    facts = before.facts()
    for entry in session.entries.values():
        if entry.node is not None and id(entry.tensor) in before.names:
            facts[f"{before.names[id(entry.tensor)]}.grad is None"] = entry.grad is None
    staging_s = time.perf_counter() - start
    return origin(paths, jaxpr.in_avals, facts, current_config.get(), (), staging_s)


def _changes(
    session: Session, before: State, counts: Mapping[tuple[int, Any], bool], leaves: Sequence[Any]
) -> _Changes:
    """What the step changed in its state; a change that no program can repeat is refused."""
    label = session.staging.label
    everything = [(part, *change) for part in before.parts for change in part.changes()]
    for *_, now in everything:
        if isinstance(now, Tensor) and id(now) in session.born:
            session.take((now,))
    found = _Changes()
    for part, key, was, now in everything:
        name = part.place(key)
        if was is MISSING or (was is None and isinstance(now, Tensor)):
            if isinstance(now, Tensor):
                _refuse_graph(label, name, now)
                if now._view is not None and id(now._view.root) in session.entries:
                    raise UnsupportedOperationError(
                        f"{label}: the step keeps a view of a tensor in {name}; the memory of "
                        "what a program makes is its own: keep a clone()"
                    )
            found.created.append((now, name))
        elif isinstance(was, Tensor) and isinstance(now, Tensor):
            _refuse_graph(label, name, now)
            reason = _why_not_replaced(session, before, was, now, leaves)
            if any(now is new for *_, new in found.replaced):
                reason = "the step puts it into two places"
            if reason:
                raise UnsupportedOperationError(
                    f"{label}: the step puts another tensor into {name}, which a program "
                    f"cannot do here ({reason}); write to the tensor that there is: use "
                    f"{name}.copy_(...), or return the tensor"
                )
            found.replaced.append((Place.slot(part, key), was, now))
        elif part.is_declared and isinstance(was, SCALARS) and type(now) is StagingTracer:
            found.counted.append((Place.slot(part, key), was, now))
        elif part.is_declared and _is_plain(was) and _is_plain(now):
            place = id(part.holder), key if isinstance(key, (str, int)) else id(key)
            if type(was) in _NUMBERS and type(now) in _NUMBERS and place not in counts:
                raise Counts(place)
            found.assigned.append((Place.slot(part, key), was, now))
        else:
            old = "nothing" if now is MISSING else repr(was)
            raise UnsupportedOperationError(
                f"{label}: the step changes {name} (it was {old}), a Python value, which a "
                "program cannot do; make it a tensor, change it outside of the step, or, if it is "
                "a number, declare what holds it: ft.jit(step, state=...)"
            )
    return found


_NUMBERS = (int, float)


def _is_plain(value: object) -> bool:
    """Whether a value is a number or text, or a container of these alone."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    return isinstance(value, SCALARS)


def _refuse_graph(label: str, name: str, tensor: Tensor) -> None:
    """Refuse to keep a tensor together with the graph that it was computed by."""
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
    if now._view is not None and id(now._view.root) in session.entries:
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
    """Refuse a change of shape, and a write to memory that another argument reads as its own."""
    entries = [entry for entry in session.entries.values() if entry.argument is not None]
    for entry in entries:
        if _var(entry.tensor._value) is entry.argument._var:  # type: ignore[union-attr]  # it has one
            continue
        if entry.tensor.shape != entry.value.shape:
            raise UnsupportedOperationError(
                f"{label}: the step changes the shape of a tensor that was there before it from "
                f"{entry.value.shape} to {tuple(entry.tensor.shape)}, which a program cannot do; "
                "use the operation without the underscore, or reshape a clone()"
            )
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


def _guards(
    session: Session,
    before: State,
    changed: Sequence[tuple[Place, Tensor, Tensor]],
    places: _Places,
) -> Iterator[Callable[[Leaves], bool]]:
    """What a program depends on beside its arguments."""
    for part, key, was, _ in session.numbers:
        part.free[key] = _like_numbers(was, key)
    for slot, was, _ in changed:
        assert slot.part is not None
        slot.part.free[slot.key] = _like(session.entries.get(id(was)), was)
    yield lambda _: before.holds()
    for entry in session.entries.values():
        holder = places.holder_of(entry.tensor)
        if holder.kind != "slot" and places.of(entry.tensor).kind != "gradient":
            yield _same_tensor(entry, holder)
        owner = places.grads.get(id(entry.tensor))
        if owner is not None and id(entry.tensor) in places.reached:
            yield _is_gradient_of(entry.tensor, places.holder_of(owner))


def _is_gradient_of(tensor: Tensor, holder: Place) -> Callable[[Leaves], bool]:
    return lambda leaves: holder.find(leaves)._grad is tensor


def _like_numbers(was: Any, key: Any) -> Callable[[Any], bool]:
    """Whether numbers may take the place of others; a momentum 0 is none."""
    if type(was) is not tuple:
        is_any = key != "momentum"
        return lambda value: type(value) is type(was) and (is_any or value != 0)
    types = [type(x) for x in was]
    return lambda value: type(value) is tuple and [type(x) for x in value] == types


def _like(entry: Entry | None, was: Tensor) -> Callable[[Any], bool]:
    """Whether a tensor may take the place of another one in a slot."""
    shape, dtype = was.shape, was.dtype
    if entry is not None:
        shape, dtype = entry.value.shape, entry.value.dtype

    def fits(value: object) -> bool:
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


def _same_tensor(entry: Entry, holder: Place) -> Callable[[Leaves], bool]:
    had_grad, requires = entry.grad is not None, entry.node is not None
    grad_dtype = entry.grad.dtype if entry.grad is not None else None
    shape, dtype = entry.value.shape, entry.value.dtype
    hooks = () if entry.node is None else _hooks_of(entry.node)
    attributes = _own_attributes(entry.tensor)
    find = holder.find

    def holds(leaves: Leaves) -> bool:
        tensor = find(leaves)
        value, grad, node = tensor._value, tensor._grad, tensor._node
        return (
            value.shape == shape
            and value.dtype == dtype
            and (node is not None) == requires
            and (grad is not None) == had_grad
            and (grad is None or grad.dtype == grad_dtype)
            and (node is None or _hooks_of(node) == hooks)
            and _own_attributes(tensor) == attributes
        )

    return holds


def _hooks_of(node: Any) -> tuple[Any, ...]:
    """Numbers of the hooks on a leaf."""
    return tuple([note.number for note in node.annotations if note.number >= 0])


_INTERNAL = frozenset(vars(Tensor)) | {"_value", "_node", "_trace"}


def _own_attributes(tensor: Tensor) -> list[Any] | None:
    """What users attached to a tensor, for comparison; ``None`` for nothing."""
    attributes = tensor.__dict__
    if attributes.keys() <= _INTERNAL:
        return None
    return [
        (name, value if isinstance(value, SCALARS) else id(value))
        for name, value in attributes.items()
        if name not in _INTERNAL
    ]
