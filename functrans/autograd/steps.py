"""The program of a step that works on tensors, and how it is called.

Here: ``Step``, and the places that its operands come from and its results go to. Not here: how a
step becomes a program (``autograd.staged``), the compiler.

A place is looked up at each call: a tensor, its gradient, or a slot: an attribute or an entry of a
dictionary that the step puts another tensor into.

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from functrans import tree
from functrans.autograd.modes import modes
from functrans.autograd.overlaps import check_memory
from functrans.autograd.recording import mark_origin
from functrans.autograd.tensors import Tensor
from functrans.autograd.watches import Watch
from functrans.control.explanations import Origin
from functrans.control.native import call_program, jit_p
from functrans.errors import UnsupportedOperationError
from functrans.ir.jaxpr import Jaxpr
from functrans.trace import bind

Leaves = Sequence[Any]
"""The leaves of the arguments of a call."""


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """A tensor that the function reaches: its array is an operand, or is written to.

    Attributes:
      tensor: it.
    """

    tensor: Tensor

    def now(self, leaves: Leaves) -> Any:
        """The tensor."""
        return self.tensor

    def store(self, value: Any, leaves: Leaves) -> None:
        """Write an array to its memory."""
        _write(self.tensor, value)


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """A tensor among the arguments.

    Attributes:
      index: of the leaf.
    """

    index: int

    def now(self, leaves: Leaves) -> Any:
        """The tensor that is given in this call."""
        return leaves[self.index]

    def store(self, value: Any, leaves: Leaves) -> None:
        """Write an array to its memory."""
        _write(leaves[self.index], value)


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """Where the Python state holds a tensor or a number.

    Attributes:
      watch: the holder.
      key: the name or position in it.
    """

    watch: Watch
    key: Any

    def now(self, leaves: Leaves) -> Any:
        """What it holds."""
        return self.watch.now(self.key)

    def store(self, value: Any, leaves: Leaves) -> None:
        """Write to the memory of the tensor that it holds."""
        _write(self.watch.now(self.key), value)


@dataclass(frozen=True, slots=True, eq=False)
class GradientMemory:
    """The gradient that a tensor has: its array is an operand, or is written to.

    Attributes:
      of: where the tensor is.
    """

    of: Memory | Argument | Slot

    def now(self, leaves: Leaves) -> Any:
        """The gradient, a tensor."""
        return self.of.now(leaves)._grad

    def store(self, value: Any, leaves: Leaves) -> None:
        """Write an array to its memory."""
        _write(self.now(leaves), value)


@dataclass(frozen=True, slots=True, eq=False)
class Gradient:
    """The place of a gradient, which gets another tensor.

    Attributes:
      of: where the tensor is that has the gradient.
    """

    of: Memory | Argument | Slot

    def now(self, leaves: Leaves) -> Any:
        """The gradient that there is."""
        return self.of.now(leaves)._grad

    def store(self, value: Any, leaves: Leaves) -> None:
        """Give the tensor another gradient."""
        self.of.now(leaves)._grad = Tensor.of(np.asarray(value))


Holder = Memory | Argument | Slot
Place = Holder | GradientMemory | Gradient


def _write(tensor: Tensor, value: Any) -> None:
    memory = tensor._memory()
    if memory is not value:
        if not memory.flags.forc:
            check_memory(memory, is_constant=bool((value == value.flat[:1]).all()))
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
    place: Holder | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A staged step.

    Attributes:
      jaxpr: ``(*captured, *hidden, *leaves) -> (*written, *replaced, *outputs)``.
      captured: arrays that it refers to.
      hidden: where hidden operands are.
      treedef: structure of the results.
      results: what the leaves of the result are.
      written: where the first outputs are written to.
      replaced: slots that get a new tensor each.
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
    replaced: tuple[Slot, ...]
    cleared: tuple[Holder, ...]
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
        held = [id(slot.now(leaves)) for slot in self.replaced]
        others = {*map(id, leaves), *self.reached}
        return len(set(held)) == len(held) and others.isdisjoint(held)

    def _check_shared(
        self, hidden: Sequence[Any], operands: Sequence[Any], targets: Sequence[Any]
    ) -> None:
        """Refuse a write to memory that another operand shares.

        Raises:
          UnsupportedOperationError: it does.
        """
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

    def run(self, leaves: Sequence[Any], name: str) -> Any:
        """Call the program, write back what changed, and return the results."""
        hidden = [place.now(leaves) for place in self.hidden]
        arrays = [plain(x) for x in hidden]
        operands = (*self.captured, *arrays, *map(plain, leaves))
        targets = [
            place.now(leaves)._memory() for place in self.written if not isinstance(place, Gradient)
        ]
        self._check_shared(arrays, operands, targets)
        if self.is_recorded and modes.grad:
            tensors = (*self.captured, *hidden, *leaves)
            outs = bind(jit_p, *tensors, jaxpr=self.jaxpr, name=name)
        else:
            outs = tuple(call_program(self.jaxpr, operands, name, self.given))
        n, m = len(self.written), len(self.written) + len(self.replaced)
        # A result may have taken over the memory that another one is to be written to.
        memory = set(map(id, targets))

        def own(out: Any) -> Any:
            return out if id(plain(out)) not in memory else plain(out).copy()

        changed = []
        for place, out in zip(self.written, outs, strict=False):
            value = plain(out)
            is_there = not isinstance(place, Gradient) and value is place.now(leaves)._value
            changed.append(value if is_there else own(value))
        replaced = [Tensor.of(np.asarray(plain(own(out)))) for out in outs[n:m]]
        results = self._results(leaves, replaced, iter(map(own, outs[m:])))
        for x in (*replaced, *results):
            if isinstance(x, Tensor):
                mark_origin(x, (*hidden, *leaves))
        for place, value in zip(self.written, changed, strict=True):
            place.store(value, leaves)
        for slot, tensor in zip(self.replaced, replaced, strict=True):
            slot.watch.put(slot.key, tensor)
        for place in self.cleared:
            place.now(leaves)._grad = None
        return tree.unflatten(self.treedef, results)

    def _results(
        self, leaves: Sequence[Any], replaced: Sequence[Tensor], outputs: Iterator[Any]
    ) -> list[Any]:
        results: list[Any] = []
        for result in self.results:
            if result.place is not None:
                results.append(result.place.now(leaves))
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
                    value.requires_grad_()  # type: ignore[attr-defined]  # a method
                results.append(value)
        return results
