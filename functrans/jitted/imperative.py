"""What ``jit`` asks the imperative side, once that is in use: the protocol ``Imperative``.

Here: the protocol, and the door by which the imperative side comes in. Not here: what it answers
(``autograd.jitted.staged``).

Layer: ``jitted``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from functrans.jitted.lowered import LoweredStep


class Steps(Protocol):
    """The programs of a jitted function that works on tensors; kept with the function."""

    def kept(self) -> list[Any]:
        """All programs: each has ``jaxpr``, ``origin`` and ``native``, as a ``Program`` has."""

    def clear(self) -> None:
        """Forget all programs."""


class Imperative(Protocol):
    """What works on tensors."""

    @property
    def is_staging(self) -> bool:
        """Whether a step is being traced in this thread."""

    def is_known(self, function: Any) -> bool:
        """Whether a function was found to work on tensors, or has declared state."""

    def is_tensor(self, leaf: Any) -> bool:
        """Whether an argument is a tensor."""

    def check_state(self, state: Any) -> None:
        """Check what is declared as the state of a function.

        Raises:
          TypeError: it does not say what it holds.
        """

    def note_made(self, function: Any) -> None:
        """Note that a jitted function is made, perhaps in a step that is being traced."""

    def meet(self, function: Any) -> None:
        """Note that a step that is being traced calls a jitted function."""

    def looking_for_tensors(self, function: Any) -> AbstractContextManager[None]:
        """Leave the block when a function that is being staged in it meets a tensor."""

    def call(self, function: Any, args: Any, kwargs: Mapping[str, Any]) -> Any:
        """Call a function that works on tensors; under a transform it runs as it is."""

    def lower(self, function: Any, args: Any, kwargs: Mapping[str, Any]) -> LoweredStep:
        """The program of a call of a function that works on tensors."""


class _Door:
    """Where the imperative side stands; ``None`` before it is imported."""

    side: Imperative | None = None


door = _Door()


def looking_for_tensors(function: Any) -> AbstractContextManager[None]:
    """Leave the block when a function that is being staged in it meets a tensor."""
    return nullcontext() if door.side is None else door.side.looking_for_tensors(function)
