"""Closing the program of a step over what the step changed, and what that depends on.

Here: ``closed``, from the end of a trace to a ``Step``: which tensors are operands and results,
what is refused, the guards. Not here: the trace (``autograd.session``), the programs of a function
(``autograd.staged``), calling them (``autograd.steps``).

If a tensor that is an argument, hidden or not, holds another value when the trace ends, that is a
hidden result, written back after each call; so is its ``.grad``. The Python state that the function
can reach (attributes, dictionaries, lists, variables of enclosing functions) is compared before and
after: a tensor that the step puts in the place of another one is a result that is put there after
each call; a number that the step itself changes cannot be a part of the program, and is refused.

Layer: ``autograd``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from functrans import tree
from functrans.autograd.hooks import HOOK_TABLES, refuse_hooks
from functrans.autograd.reachable import State, own_attributes
from functrans.autograd.recording import PERMANENT
from functrans.autograd.session import Entry, Session
from functrans.autograd.steps import (
    Argument,
    Gradient,
    GradientMemory,
    Holder,
    Leaves,
    Memory,
    Place,
    Result,
    Slot,
    Step,
)
from functrans.autograd.tensors import Tensor
from functrans.autograd.watches import MISSING
from functrans.control.explanations import Origin, origin
from functrans.control.inline import inline_calls
from functrans.control.jit import JitFunction, for_compiler
from functrans.control.native import jit_p
from functrans.errors import UnsupportedOperationError
from functrans.ir.jaxpr import Jaxpr
from functrans.passes.nodes import ordered_nodes
from functrans.passes.simplify import simplify
from functrans.staging import StagingTracer
from functrans.state import current_config


def closed(
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
    flat, treedef = tree.flatten(result)
    session.take(flat)
    _refuse_other_nodes(label, session, before)
    places = _Places(session, before, leaves, changed)
    hidden: list[Place] = []
    variables: list[Any] = []
    written: list[Place] = []
    values: list[Any] = []
    cleared: list[Holder] = []
    given: list[int] = []
    for entry in session.entries.values():
        tensor = entry.tensor
        place = places.of(tensor)
        is_argument = isinstance(place, Argument)
        if entry.argument is not None and not is_argument:
            hidden.append(place)
            variables.append(entry.argument._var)
        if (
            entry.argument is not None
            and _var(tensor._value) is not entry.argument._var
            and not (
                isinstance(place, GradientMemory) and places.grads[id(tensor)]._grad is not tensor
            )
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
                written.append(Gradient(holder))
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
    _refuse_shared_memory(
        label, [*fresh, *((new, slot.watch.place(slot.key)) for slot, _, new in changed)]
    )
    for tensor, _ in fresh:
        written.append(Memory(tensor))
        values.append(tensor._value)
    values.extend(new._value for *_, new in changed)
    results, outs = _results(flat, places, session)
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
    slots = {id(was) for _, was, _ in changed}
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
        tuple(_guards(session, before, changed, places)),
        tuple(len(captured) + i for i in given),
        any(result.kind == "recorded" for result in results),
        reached,
        tuple([id(leaf) in reached for leaf in leaves]),
        _origin(before, session, hidden, hoisted, len(captured), start),
    )
    return step, ", ".join(dict.fromkeys([*created, *(name for _, name in fresh)]))


_Changed = Sequence[tuple[Slot, Tensor, Tensor]]
"""Slots with the tensors before and after the step."""


class _Places:
    """Where the tensors of a step are found in a later call.

    Attributes:
      grads: tensors by the identity of the gradient that they had.
      arguments: positions of tensors among the arguments, by identity.
      reached: identities of the tensors that the function reaches by itself, slots apart.
      new: positions of the tensors that slots get, by identity.
    """

    def __init__(self, session: Session, before: State, leaves: Leaves, changed: _Changed) -> None:
        entries = session.entries.values()
        self.grads = {id(entry.grad): entry.tensor for entry in entries if entry.grad is not None}
        self.arguments: dict[int, int] = {}
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor):
                self.arguments.setdefault(id(leaf), i)
        self.slots = {id(was): slot for slot, was, _ in changed}
        self.new = {id(new): i for i, (*_, new) in enumerate(changed)}
        self.reached = {id(tensor) for tensor, _ in before.tensors} - self.slots.keys()

    def holder_of(self, tensor: Tensor) -> Holder:
        """Where a tensor is that is no gradient."""
        if id(tensor) in self.arguments:
            return Argument(self.arguments[id(tensor)])
        slot = self.slots.get(id(tensor))
        return Memory(tensor) if slot is None else slot

    def was_replaced(self, gradient: Tensor) -> bool:
        """Whether the step put another one into the place of a gradient."""
        return self.grads[id(gradient)]._grad is not gradient

    def of(self, tensor: Tensor) -> Place:
        """Where a tensor is."""
        owner = self.grads.get(id(tensor))
        if owner is None or id(tensor) in self.reached or id(tensor) in self.arguments:
            return self.holder_of(tensor)
        return GradientMemory(self.holder_of(owner))


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
            results.append(Result("place", place=Argument(places.arguments[id(x)])))
        elif id(x) in places.new:
            results.append(Result("replaced", places.new[id(x)]))
        elif id(x) in places.reached and id(x) in session.entries:
            results.append(Result("place", place=Memory(x)))
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
    """Refuse to keep two new tensors on the same memory: each would get its own.

    Raises:
      UnsupportedOperationError: names their places.
    """
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
    """Refuse changes of what requires a gradient, which no program can repeat.

    Raises:
      UnsupportedOperationError: names the tensor.
    """
    names = {id(tensor): name for tensor, name in before.tensors}
    for entry in session.entries.values():
        tensor, node = entry.tensor, entry.tensor._node
        name = names.get(id(tensor), "an argument")
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
    names = {id(tensor): name for tensor, name in before.tensors}
    paths = [f"a captured array {i}" for i in range(n_captured)]
    for i, place in enumerate(hidden):
        if isinstance(place, Slot):
            paths.append(place.watch.place(place.key))
        else:
            paths.append(_name_of(place, names, i))
    paths += [f"argument {i}" for i in range(len(jaxpr.invars) - len(paths))]
    numbers = {
        watch.place(key): value for watch in before.watches for key, value in watch.numbers()
    }
    for entry in session.entries.values():
        if entry.node is not None and id(entry.tensor) in names:
            numbers[f"{names[id(entry.tensor)]}.grad is None"] = entry.grad is None
    staging_s = time.perf_counter() - start
    return origin(paths, jaxpr.in_avals, numbers, current_config.get(), (), staging_s)


def _name_of(place: Place, names: Mapping[int, str], number: int) -> str:
    if isinstance(place, (Gradient, GradientMemory)):
        return f"{_name_of(place.of, names, number)}.grad"
    if isinstance(place, Memory):
        return names.get(id(place.tensor), f"tensor {number}")
    return (
        f"argument {place.index}" if isinstance(place, Argument) else place.watch.place(place.key)
    )


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
                    if now._view is not None and id(now._view.root) in session.entries:
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
    for content in before.contents:
        if not content.holds():
            raise UnsupportedOperationError(
                f"{label}: the step writes to {content.name}, {content.kind}, which a program "
                "cannot do; use a tensor, or do it outside of the step"
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
    """Refuse a change of shape, and a write to memory that another argument reads as its own.

    Raises:
      UnsupportedOperationError: names the shapes.
    """
    entries = [entry for entry in session.entries.values() if entry.argument is not None]
    for entry in entries:
        if _var(entry.tensor._value) is entry.argument._var:  # type: ignore[union-attr]  # it has one
            continue
        if entry.tensor.shape != entry.value.shape:
            raise UnsupportedOperationError(
                f"{label}: the step changes the shape of a tensor that was there before it from "
                f"{entry.value.shape} to {entry.tensor.shape}, which a program cannot do; use the "
                "operation without the underscore, or reshape a clone()"
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
    session: Session, before: State, changed: _Changed, places: _Places
) -> Iterator[Callable[[Leaves], bool]]:
    """What a program depends on beside its arguments."""
    for watch, key, *_ in session.numbers:
        watch.free[key] = _is_float
    for slot, was, _ in changed:
        slot.watch.free[slot.key] = _like(session.entries.get(id(was)), was)
    yield lambda _: before.holds()
    for entry in session.entries.values():
        holder = places.holder_of(entry.tensor)
        is_gradient = isinstance(places.of(entry.tensor), GradientMemory)
        if not isinstance(holder, Slot) and not is_gradient:
            yield _same_tensor(entry, holder)
        owner = places.grads.get(id(entry.tensor))
        if owner is not None and id(entry.tensor) in places.reached:
            yield _is_gradient_of(entry.tensor, places.holder_of(owner))


def _is_gradient_of(tensor: Tensor, holder: Holder) -> Callable[[Leaves], bool]:
    return lambda leaves: holder.now(leaves)._grad is tensor


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


def _same_tensor(entry: Entry, holder: Memory | Argument) -> Callable[[Leaves], bool]:
    had_grad, requires = entry.grad is not None, entry.node is not None
    grad_dtype = entry.grad.dtype if entry.grad is not None else None
    shape, dtype = entry.value.shape, entry.value.dtype
    hooks = _hooks_of(entry.node)
    attributes = own_attributes(entry.tensor)

    def holds(leaves: Leaves) -> bool:
        tensor = holder.now(leaves)
        value, grad = tensor._value, tensor._grad
        return (
            value.shape == shape
            and value.dtype == dtype
            and (tensor._node is not None) == requires
            and (grad is not None) == had_grad
            and (grad is None or grad.dtype == grad_dtype)
            and _hooks_of(tensor._node) == hooks
            and own_attributes(tensor) == attributes
        )

    return holds


def _hooks_of(node: Any) -> tuple[Any, ...]:
    """Numbers of the hooks on a leaf."""
    if node is None:
        return ()
    return tuple(tuple(getattr(node, name, None) or ()) for name in HOOK_TABLES)
