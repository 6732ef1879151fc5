"""The tensors of a step that ``jit`` is tracing.

Here: ``Session``, which makes the tensors that a function reaches arguments of its program while it
is traced. Not here: closing the program (``autograd.jitted.staged``), running it
(``autograd.jitted.steps``), the trace itself (``autograd.recording``).

While a step is traced, every permanent tensor that an operation meets becomes a hidden argument:
its value is a tracer until the trace ends, and so is every number that an object offers as one (an
optimizer its learning rates). Modules, optimizers and the like say that they are used (``meet``);
if the state of the step does not have them yet, it is traced anew with them.

Layer: ``autograd.jitted``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from functrans.autograd.hooks import registered
from functrans.autograd.jitted.held import Part
from functrans.autograd.memory_order import dense_like, is_dense
from functrans.autograd.recording import (
    PERMANENT,
    ImperativeTrace,
    is_stale,
    node_of,
    renew,
)
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import Tracer, aval_of
from functrans.core.jaxpr import Var
from functrans.core.source import here
from functrans.errors import UnsupportedOperationError
from functrans.passes.staging import StagingTrace, StagingTracer
from functrans.records import dataclass

_BYTE = np.dtype(np.uint8)
_VIEWS = ("broadcast_to", "reshape", "slice", "transpose")
_LIKE = ("cast", "copy", "stop_gradient")


def _bytes_like(x: np.ndarray) -> np.ndarray:
    """An array of bytes with the extents and layout of another one, gaps included."""
    strides = [abs(stride) // x.itemsize for stride in x.strides]
    size = 1 + sum((n - 1) * stride for n, stride in zip(x.shape, strides, strict=True))
    return np.ndarray(x.shape, _BYTE, np.empty(max(size, 1), _BYTE), 0, strides)


@dataclass(slots=True, eq=False)
class Entry:
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


class Meets(BaseException):
    """A step that is being traced meets something that is no part of its state so far.

    Attributes:
      value: a module, an optimizer, a jitted function, or a tensor.
    """

    def __init__(self, value: Any) -> None:
        self.value = value


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
      born: tensors that were made while it is traced, by identity: constants of the program.
      hooks_before: the number of the newest hook before.
      known: objects that belong to its state, or were made while it is traced, by identity.
      numbers: numbers that are arguments: where each, or a tuple of them, stands, and what stands
        for it.
    """

    def __init__(
        self, staging: StagingTrace, label: str, known: Mapping[int, Any], meets: bool = True
    ) -> None:
        self.staging = staging
        self.hooks_before = registered.newest
        self.trace = StagedTrace(label, is_plain=False)
        self.trace.stops = True
        self.trace.session = self
        self.entries: dict[int, Entry] = {}
        self.born: dict[int, Tensor] = {}
        self.known = dict(known)
        self._meets = meets
        self._layouts: dict[Any, np.ndarray] = {}
        self._rows: set[Any] = set()
        self._n_laid_out = 0
        self.numbers: list[tuple[Part, Any, Any, tuple[StagingTracer, ...]]] = []

    def meet(self, holder: object) -> None:
        """Note that an object with state is used.

        Raises:
          Meets: it is no part of the state so far.
        """
        if self._meets and id(holder) not in self.known:
            raise Meets(holder)

    def note_made(self, holder: object) -> None:
        """Note that an object with state was made by the step: what it holds goes with it."""
        self.known[id(holder)] = holder

    def take(self, operands: Sequence[Any]) -> StagedTrace:
        """Adopt the permanent tensors among operands; the trace that they belong to now."""
        for operand in operands:
            if isinstance(operand, Tensor):
                if operand._trace is PERMANENT:
                    self.adopt(operand)
                elif operand._view is not None and is_stale(operand):
                    renew(operand)
        return self.trace

    def touch(self, tensor: Tensor) -> Entry:
        """Note a permanent tensor whose gradient may change."""
        entry = self.entries.get(id(tensor))
        if entry is None:
            entry = self.entries[id(tensor)] = Entry(
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
        node = node_of(tensor)
        if node is not None and node.primitive is not None:
            raise UnsupportedOperationError(
                f"{self.staging.label}: a tensor that was computed outside of the jitted step "
                f"requires a gradient{here()}; its graph is no part of the program. Compute it "
                "inside, or pass tensor.detach()."
            )
        if tensor._view is not None:
            self._adopt_view(tensor)
            return
        if id(tensor) in self.born and not isinstance(tensor._value, Tracer):
            tensor._value = self.staging.lift(tensor._memory())
            tensor._trace = self.trace
            return
        entry = self.touch(tensor)
        if entry.argument is None:
            value = tensor._memory()
            entry.value = value
            entry.argument = self.staging.argument(aval_of(value))
            tensor._value = StagingTracer(self.staging, entry.argument._var)
            tensor._trace = self.trace

    def share(self, tensor: Tensor) -> None:
        """Note that a new tensor lies in the memory of an array: it is no constant."""
        self.born.pop(id(tensor), None)

    def adopt_argument(self, leaf: Tensor, argument: StagingTracer) -> None:
        """Let an argument of the function stand for the tensor that was given.

        Raises:
          UnsupportedOperationError: it was computed outside of the step, and gradients flow to it.
        """
        node = node_of(leaf)
        if node is not None and node.primitive is not None:
            raise UnsupportedOperationError(
                f"{self.staging.label}: an argument is a tensor that was computed outside and "
                f"requires a gradient{here()}; pass tensor.detach(), or compute it inside the step"
            )
        if id(leaf) in self.entries:  # it came before: the first argument stands for it
            return
        entry = self.touch(leaf)
        entry.value = leaf._memory()
        entry.argument = argument
        leaf._view = None  # a write reaches its base through the memory
        leaf._value = StagingTracer(self.staging, argument._var)
        leaf._trace = self.trace

    def adopt_number(self, part: Part, key: str) -> bool:
        """Make a number, or each of a tuple, an argument, if it is one now; whether it is."""
        value = part.now(key)
        numbers = value if type(value) is tuple else (value,)
        if not numbers or any(type(x) not in (int, float) for x in numbers):
            return False
        arguments = tuple([self.staging.argument(aval_of(x)) for x in numbers])
        self.numbers.append((part, key, value, arguments))
        part.put(key, arguments if numbers is value else arguments[0])
        return True

    def restore_numbers(self) -> None:
        """Put the numbers back, where the step did not put others."""
        for part, key, value, arguments in self.numbers:
            now = part.now(key)
            if now is arguments or now is arguments[0]:
                part.put(key, value)

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

    def put_in_rows(self, results: Any) -> None:
        """Note that results are in row-major order, whatever the order of their operands is."""
        for x in results if isinstance(results, tuple) else (results,):
            if isinstance(x, Tensor) and isinstance(x._value, StagingTracer):
                self._rows.add(x._value._var)

    def layout(self, value: Any) -> np.ndarray:
        """An array of bytes that lies in memory as a value does outside of ``jit``.

        Views and elementwise operations carry the order of axes on; other results are row-major.
        """
        layouts = self._layouts
        for entry in self.entries.values():
            if entry.argument is not None and isinstance(entry.value, np.ndarray):
                whole = entry.value
                if not whole.flags.c_contiguous and entry.argument._var not in layouts:
                    layouts[entry.argument._var] = _bytes_like(whole)
        for eqn in self.staging.eqns[self._n_laid_out :]:
            if not eqn.inputs or not eqn.outputs or eqn.outputs[0] in self._rows:
                continue
            name, out = eqn.primitive.name, eqn.outputs[0]
            given = [layouts.get(x) if isinstance(x, Var) else None for x in eqn.inputs]
            made: Any = None
            if name in _VIEWS:
                first = np.empty(eqn.inputs[0].aval.shape, _BYTE) if given[0] is None else given[0]
                made = (
                    np.broadcast_to(first, out.aval.shape)
                    if name == "broadcast_to"
                    else eqn.primitive.impl(first, **eqn.params)[0]
                )
            elif eqn.primitive.elementwise is not None or name in _LIKE:
                alike = (x for x in given if x is not None and x.shape == out.aval.shape)
                like = next(alike, None)
                if like is not None and (name != "copy" or is_dense(like)):
                    made = dense_like(like, _BYTE)
            if made is not None and not made.flags.c_contiguous:
                layouts[out] = made
        self._n_laid_out = len(self.staging.eqns)
        found = layouts.get(value._var) if isinstance(value, StagingTracer) else None
        return np.empty(value.shape, _BYTE) if found is None else found

    def restore(self) -> None:
        """Give all tensors their arrays back, and numbers their places; the session is over."""
        del self.trace.session  # a cycle until here
        self.restore_numbers()
        for entry in self.entries.values():
            tensor = entry.tensor
            tensor._value = entry.value
            tensor._node = entry.node
            tensor._grad = entry.grad
            tensor._view = entry.view
            tensor.__dict__.pop("_trace", None)
            if tensor._storage is not None:
                tensor._storage.version = entry.version
