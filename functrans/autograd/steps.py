"""The program of a step that works on tensors, and how it is called.

Here: ``Step``, and the places that its operands come from and its results go to. Not here: how a
step becomes a program (``autograd.staged``), the compiler.

A place is looked up at each call: a tensor, its gradient, or a slot: an attribute or an entry of a
dictionary that the step puts another tensor into.

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from functrans import tree
from functrans.autograd.modes import modes
from functrans.autograd.reachable import Watch
from functrans.autograd.tensors import Tensor
from functrans.control.explanations import Origin
from functrans.control.native import call_program, jit_p
from functrans.errors import UnsupportedOperationError
from functrans.ir.jaxpr import Jaxpr
from functrans.trace import bind


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """A tensor: its array is an operand, or is written to.

    Attributes:
      tensor: it.
    """

    tensor: Tensor

    def now(self) -> Any:
        """The tensor."""
        return self.tensor

    def store(self, value: Any) -> None:
        """Write an array to its memory."""
        _write(self.tensor, value)


@dataclass(frozen=True, slots=True, eq=False)
class Gradient:
    """The gradient of a tensor.

    Attributes:
      tensor: the tensor.
    """

    tensor: Tensor

    def now(self) -> Any:
        """The gradient, a tensor."""
        return self.tensor._grad

    def store(self, value: Any) -> None:
        """Give the tensor another gradient."""
        self.tensor._grad = Tensor.of(np.asarray(value))


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """Where the Python state holds a tensor or a number.

    Attributes:
      watch: the holder.
      key: the name or position in it.
    """

    watch: Watch
    key: Any

    def now(self) -> Any:
        """What it holds."""
        return self.watch.now(self.key)

    def store(self, value: Any) -> None:
        """Write to the memory of the tensor that it holds."""
        _write(self.now(), value)


Place = Memory | Gradient | Slot


def _write(tensor: Tensor, value: Any) -> None:
    memory = tensor._memory()
    if memory is not value:
        np.copyto(memory, value)
    tensor._stored().bump("a jitted step", None)


def plain(leaf: Any) -> Any:
    """The array of an operand or result."""
    return leaf._memory() if isinstance(leaf, Tensor) else leaf


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What a leaf of the result is.

    Attributes:
      kind: ``"tensor"`` and ``"array"``: the next output of the program; ``"argument"``: a tensor
        among the arguments; ``"place"``: a tensor that the function reaches; ``"replaced"``: the
        tensor that a slot got.
      index: of the argument or of the slot.
      place: where the tensor is.
    """

    kind: str
    index: int = 0
    place: Place | None = None


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
    cleared: tuple[Tensor, ...]
    guards: tuple[Callable[[], bool], ...]
    given: tuple[int, ...]
    is_recorded: bool
    reached: frozenset[int]
    captured_leaves: tuple[bool, ...]
    origin: Origin

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Whether the program may be used now."""
        return (
            self._captures(leaves) == self.captured_leaves
            and all(guard() for guard in self.guards)
            and self._slots_are_apart(leaves)
        )

    def _captures(self, leaves: Sequence[Any]) -> tuple[bool, ...]:
        """Which arguments are tensors that the function reaches by itself, too."""
        return tuple([id(leaf) in self.reached for leaf in leaves])

    def _slots_are_apart(self, leaves: Sequence[Any]) -> bool:
        """Whether the tensors in slots are reached in no other way."""
        if not self.replaced:
            return True
        held = [id(slot.now()) for slot in self.replaced]
        others = {*map(id, leaves), *self.reached}
        return len(set(held)) == len(held) and others.isdisjoint(held)

    def _check_shared(self, operands: Sequence[Any], targets: Sequence[Any]) -> None:
        """Refuse a write to memory that another operand shares.

        Raises:
          UnsupportedOperationError: it does.
        """
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
        hidden = [place.now() for place in self.hidden]
        targets = [place.now()._value for place in self.written if not isinstance(place, Gradient)]
        if self.is_recorded and modes.grad:
            operands = (*self.captured, *hidden, *leaves)
            outs = bind(jit_p, *operands, jaxpr=self.jaxpr, name=name)
        else:
            operands = (*self.captured, *map(plain, (*hidden, *leaves)))
            self._check_shared(operands, targets)
            outs = tuple(call_program(self.jaxpr, operands, name, self.given))
        n, m = len(self.written), len(self.written) + len(self.replaced)
        # A result may have taken over the memory that another one is to be written to.
        memory = set(map(id, targets))

        def own(out: Any) -> Any:
            return out if id(plain(out)) not in memory else plain(out).copy()

        changed = []
        for place, out in zip(self.written, outs, strict=False):
            value = plain(out)
            is_there = not isinstance(place, Gradient) and value is place.now()._value
            changed.append(value if is_there else own(value))
        replaced = [Tensor.of(np.asarray(plain(own(out)))) for out in outs[n:m]]
        outputs = iter(outs[m:])
        results = []
        for result in self.results:
            if result.place is not None:
                results.append(result.place.now())
            elif result.kind == "argument":
                results.append(leaves[result.index])
            elif result.kind == "replaced":
                results.append(replaced[result.index])
            else:
                value = own(next(outputs))
                is_done = isinstance(value, Tensor)
                is_tensor = result.kind == "tensor"
                results.append(
                    (value if is_done else Tensor.of(value)) if is_tensor else plain(value)
                )
        for place, value in zip(self.written, changed, strict=True):
            place.store(value)
        for slot, tensor in zip(self.replaced, replaced, strict=True):
            slot.watch.put(slot.key, tensor)
        for tensor in self.cleared:
            tensor._grad = None
        return tree.unflatten(self.treedef, results)
