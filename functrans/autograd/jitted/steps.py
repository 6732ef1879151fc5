"""The program of a step that works on tensors, and how it is called.

Here: ``Step``, and the places that its operands come from and its results go to. Not here: how a
step becomes a program (``autograd.jitted.staged``), the compiler.

A place is looked up at each call: a tensor, its gradient, or a slot: an attribute or an entry of a
dictionary that the step puts another tensor or number into.

Layer: ``autograd.jitted``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.autograd.jitted.held import Part
from functrans.autograd.modes import modes
from functrans.autograd.overlaps import check_memory
from functrans.autograd.recording import mark_origin
from functrans.autograd.tensors import Tensor
from functrans.control.native import call_program, jit_p
from functrans.core.dispatch import bind
from functrans.core.jaxpr import Jaxpr
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.jitted.explanations import Origin
from functrans.records import dataclass

Leaves = Sequence[Any]
"""The leaves of the arguments of a call."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a tensor, or a number, is found in each call.

    Attributes:
      kind: ``"memory"``: one and the same tensor; ``"argument"``: a leaf of the arguments;
        ``"slot"``: what a part of the state holds under a key; ``"gradient"``: that of a tensor.
        The array of each is an operand, or is written to. ``"new gradient"``: a tensor whose
        gradient is to be another one.
      find: gives it, from the leaves of the arguments.
      name: how to say where it is.
      part: of the state, for a slot.
      key: in that part.
    """

    kind: str
    find: Callable[[Leaves], Any]
    name: str
    part: Part | None = None
    key: Any = None

    @classmethod
    def slot(cls, part: Part, key: str) -> Place:
        """A place in the state."""
        return cls("slot", lambda _: part.now(key), part.place(key), part, key)

    @classmethod
    def slots(cls, part: Part, key: str) -> list[Place]:
        """The places of a number in the state, or of each number of a tuple."""
        value = part.now(key)
        if type(value) is not tuple:
            return [cls.slot(part, key)]

        def one(i: int) -> Place:
            return cls("slot", lambda _: part.now(key)[i], f"{part.place(key)}[{i}]")

        return [one(i) for i in range(len(value))]

    def derived(self, kind: str) -> Place:
        """The gradient of the tensor here, or the place of that."""
        find = self.find
        name = f"{self.name}.grad"
        return Place(kind, (lambda x: find(x)._grad) if kind == "gradient" else find, name)

    def store(self, value: Array | complex, leaves: Leaves) -> None:
        """Write an array to the memory of the tensor, or make it its gradient."""
        found = self.find(leaves)
        if self.kind == "new gradient":
            found._grad = Tensor.of(np.asarray(value))
        else:
            _write(found, value)

    def put(self, value: object) -> None:
        """Put another value into a slot."""
        assert self.part is not None
        self.part.put(self.key, value)


def _write(tensor: Tensor, value: Any) -> None:
    memory = tensor._memory()
    if memory is not value:
        if not memory.flags.forc:
            check_memory(memory, is_constant=bool((value == value.flat[:1]).all()))
        tensor._stored().release()
        np.copyto(memory, value)
    tensor._stored().bump("a jitted step", None)


def plain(leaf: Any) -> Any:
    """The array of an operand or result."""
    return leaf._memory() if isinstance(leaf, Tensor) else leaf


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a leaf of the result is.

    Attributes:
      kind: ``"array"``, ``"tensor"`` (without gradient), ``"leaf"`` (a tensor that requires one)
        and ``"recorded"`` (a tensor that gradients flow to): the next output of the program;
        ``"place"``: a tensor that was there; ``"replaced"``: the tensor that a slot got;
        ``"same"``: an earlier leaf.
      index: of the slot or leaf.
      place: where the tensor is.
    """

    kind: str
    index: int = 0
    place: Place | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A staged step.

    Attributes:
      jaxpr: ``(*captured, *hidden, *leaves) -> (*written, *replaced, *counted, *outputs)``.
      captured: arrays that it refers to.
      hidden: where hidden operands are.
      treedef: structure of the results.
      results: what the leaves of the result are.
      written: where the first outputs are written to.
      replaced: slots that get a new tensor each.
      counted: slots that get another number each.
      assigned: slots with the values that they get in each call.
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
    hidden: tuple[Place, ...]
    treedef: Any
    results: tuple[Result, ...]
    written: tuple[Place, ...]
    replaced: tuple[Place, ...]
    counted: tuple[Place, ...]
    assigned: tuple[tuple[Place, Any], ...]
    cleared: tuple[Place, ...]
    guards: tuple[Callable[[Leaves], bool], ...]
    given: tuple[int, ...]
    is_recorded: bool
    reached: frozenset[int]
    captured_leaves: tuple[bool, ...]
    origin: Origin

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Whether the program may be used now."""
        return (
            self._captures(leaves) == self.captured_leaves
            and all(guard(leaves) for guard in self.guards)
            and self._slots_are_apart(leaves)
        )

    def _captures(self, leaves: Sequence[Any]) -> tuple[bool, ...]:
        """Which arguments are tensors that the function reaches by itself, too."""
        return tuple([id(leaf) in self.reached for leaf in leaves])

    def _slots_are_apart(self, leaves: Sequence[Any]) -> bool:
        """Whether the tensors in slots are reached in no other way."""
        if not self.replaced:
            return True
        held = [id(slot.find(leaves)) for slot in self.replaced]
        others = {*map(id, leaves), *self.reached}
        return len(set(held)) == len(held) and others.isdisjoint(held)

    def _check_shared(
        self, hidden: Sequence[Any], operands: Sequence[Any], targets: Sequence[Any]
    ) -> None:
        """Refuse a write to memory that another operand shares."""
        if not targets:
            return
        own = list(map(id, hidden))
        arrays = [x for x in operands if isinstance(x, np.ndarray)]
        if all(x.base is None for x in arrays) and len(set(own)) == len(own):
            return
        for target in targets:
            for x in arrays:
                if (x is not target and np.may_share_memory(x, target)) or (
                    x is target and own.count(id(x)) > 1
                ):
                    raise UnsupportedOperationError(
                        f"the jitted step writes to a tensor of shape {target.shape}, whose memory "
                        f"another operand of shape {x.shape} shares; pass copies"
                    )

    def run(self, leaves: Sequence[Any], name: str) -> Tensor | None:
        """Call the program, write back what changed, and return the results."""
        hidden = [place.find(leaves) for place in self.hidden]
        arrays = [plain(x) for x in hidden]
        operands = (*self.captured, *arrays, *map(plain, leaves))
        targets = [
            place.find(leaves)._memory() for place in self.written if place.kind != "new gradient"
        ]
        self._check_shared(arrays, operands, targets)
        if self.is_recorded and modes.grad:
            tensors = (*self.captured, *hidden, *leaves)
            outs = bind(jit_p, *tensors, jaxpr=self.jaxpr, name=name)
        else:
            outs = tuple(call_program(self.jaxpr, operands, name, self.given))
        n, m = len(self.written), len(self.written) + len(self.replaced)
        end = m + len(self.counted)
        # A result may have taken over the memory that another one is to be written to.
        memory = set(map(id, targets))

        def own(out: Array) -> Any:
            return out if id(plain(out)) not in memory else plain(out).copy()

        changed = []
        for place, out in zip(self.written, outs, strict=False):
            value = plain(out)
            is_there = place.kind != "new gradient" and value is place.find(leaves)._value
            changed.append(value if is_there else own(value))
        replaced = [Tensor.of(np.asarray(plain(own(out)))) for out in outs[n:m]]
        results = self._results(leaves, replaced, iter(map(own, outs[end:])))
        for x in (*replaced, *results):
            if isinstance(x, Tensor):
                mark_origin(x, (*hidden, *leaves))
        for place, value in zip(self.written, changed, strict=True):
            place.store(value, leaves)
        for slot, tensor in zip(self.replaced, replaced, strict=True):
            slot.put(tensor)
        for slot, number in zip(self.counted, outs[m:end], strict=True):
            slot.put(plain(number).item())
        for slot, value in self.assigned:
            slot.put(copy.deepcopy(value))
        for place in self.cleared:
            place.find(leaves)._grad = None
        return tree.unflatten(self.treedef, results)

    def _results(
        self, leaves: Sequence[Any], replaced: Sequence[Tensor], outputs: Iterator[Any]
    ) -> list[Any]:
        results: list[Any] = []
        for result in self.results:
            if result.place is not None:
                results.append(result.place.find(leaves))
            elif result.kind == "replaced":
                results.append(replaced[result.index])
            elif result.kind == "same":
                results.append(results[result.index])
            elif result.kind == "array":
                results.append(plain(next(outputs)))
            else:
                value = next(outputs)
                if result.kind != "recorded" or not isinstance(value, Tensor):
                    value = Tensor.of(plain(value))
                    value._inference = modes.inference
                if result.kind == "leaf":
                    value.requires_grad_()
                results.append(value)
        return results
