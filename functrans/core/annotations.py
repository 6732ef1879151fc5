"""Annotations: what is attached to programs and to recorded graphs beside their equations.

Here: ``Annotation``, and the table of its kinds, ``KINDS``. Not here: who adds them
(``autograd.hooks``), who meets them (``autograd.engine``), how programs that carry them print
(``ir.printing``).

An equation in either form carries them: a node in ``annotations``, a ``Jaxpr`` in a mapping from
variables (``place`` is ``"result"``) and equations. Passes never merge, fold, look through or drop
what carries one. A new kind is a row: a backward pass calls ``value`` when its kind says so.

Layer: ``core``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from functrans.records import dataclass


class When(IntEnum):
    """When a backward pass meets an annotation, and with what it calls it; in this order."""

    NEVER = 0
    GRADIENT = 1
    """With the gradient of the result; what it returns replaces that."""
    KEPT = 2
    """With the gradient of the result, as those before have left it."""
    BEFORE = 3
    """With the gradients of the results; what it returns replaces them."""
    READ = 4
    """Not by the pass: the residuals say themselves how they are read."""
    ACCUMULATED = 5
    """With the leaf, after its gradient was added to ``.grad``."""
    AFTER = 6
    """With the gradients of operands and results; what it returns replaces those of operands."""
    FAILED = 7
    """Not called, but shown, when the pullback has raised."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of annotation.

    Attributes:
      name: for people.
      place: what carries it: ``"result"``, ``"equation"`` or ``"saved values"`` of one.
      when: when a backward pass meets it.
      stays: whether it belongs to the tensor, and stays when its leaf gets another node.
      text: how it prints.
    """

    name: str
    place: str
    when: When
    stays: bool = False
    text: str = "{kind} {value}"


TENSOR_HOOK = Kind("tensor hook", "result", When.GRADIENT, stays=True)
MULTI_GRAD_HOOK = Kind("multi-grad hook", "result", When.GRADIENT, stays=True)
RETAINED = Kind("retain_grad", "result", When.KEPT, text="{kind}")
PRE_HOOK = Kind("node pre-hook", "equation", When.BEFORE)
SAVED_VALUE_HOOK = Kind("saved-value hook", "saved values", When.READ)
POST_ACCUMULATE_HOOK = Kind("post-accumulate hook", "result", When.ACCUMULATED, stays=True)
POST_HOOK = Kind("node hook", "equation", When.AFTER)
ANOMALY_ORIGIN = Kind("anomaly origin", "equation", When.FAILED, text="{kind}")
NODE_NAME = Kind("node name", "equation", When.NEVER, text="{value}")
TRACED_HOOK = Kind("traced hook", "result", When.NEVER, text="{value}")
"""What a hook was, in a program that holds what it does as equations."""

KINDS = (
    TENSOR_HOOK, MULTI_GRAD_HOOK, RETAINED, PRE_HOOK, SAVED_VALUE_HOOK, POST_ACCUMULATE_HOOK,
    POST_HOOK, ANOMALY_ORIGIN, NODE_NAME, TRACED_HOOK,
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Annotation:
    """Something attached to an equation.

    Attributes:
      kind: what it is.
      value: the function that is called, or what it says.
      result: which of the results it is attached to, if it is attached to one.
      number: of a hook, counted over all; -1 of others.
      handle: of a hook, a weak reference to what removes it.
    """

    kind: Kind
    value: Any
    result: int = 0
    number: int = -1
    handle: Any = None

    def __str__(self) -> str:
        """``tensor hook clip``."""
        name = self.value
        if not isinstance(name, str):
            name = getattr(name, "__name__", None) or type(name).__name__
        return self.kind.text.format(kind=self.kind.name, value=name)
