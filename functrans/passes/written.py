"""Recording what is asked for, too: equations as they were before they were linearized.

Here: ``WritingTrace``, and what it writes, which can be applied to other values. Not here: who
wants that (``transforms.dense``: columns of a Jacobian that are pushed as the function runs).

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from functrans.core.dispatch import bind, replaying
from functrans.core.primitive import Primitive
from functrans.core.source import capture
from functrans.core.state import name_scope, replayed
from functrans.passes.nodes import Node
from functrans.passes.recording import RecordingTrace, RecordingTracer
from functrans.passes.staging import StagingTracer


class Written(NamedTuple):
    """An equation as it was asked for, before it was linearized.

    Attributes:
      primitive: the operation.
      operands: for each its node, or what has none: a value of the enclosing trace.
      params: its static parameters.
      outs: likewise for the results.
      origin: the user's line, and the scope.
    """

    primitive: Primitive
    operands: list[Any]
    params: Mapping[str, Any]
    outs: list[Any]
    origin: tuple[Any, str]


class WritingTrace(RecordingTrace):
    """A recording trace that also writes down what it evaluates, in the order of evaluation.

    Attributes:
      written: the equations.
    """

    __slots__ = ("written",)

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.written: list[Written] = []

    def elementwise(self, primitive: Primitive, operands: tuple[Any, ...]) -> Any:
        """Evaluate an elementwise operation, record and write it."""
        values = self._operands(operands)
        out = super().elementwise(primitive, operands)
        self._write(primitive, values, {}, (out,))
        return out

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Evaluate an operation, record and write it."""
        values = self._operands(operands)
        outs = super().process(primitive, operands, params)
        if primitive.elementwise is None or params:
            self._write(primitive, values, params, outs)
        return outs

    def _place(self, x: Any) -> Any:
        """What a tracer stands for now, since it gets another value where it is written to.

        Its node, since other operands, from which no derivative comes, may have the same value.
        """
        if type(x) is not RecordingTracer or x._trace is not self:
            return x
        return x._value if x._node is None else x._node

    def _operands(self, operands: Sequence[Any]) -> list[Any]:
        places = map(self._place, operands)
        return [
            self.keep(x) if place is x else place for place, x in zip(places, operands, strict=True)
        ]

    def _write(
        self,
        primitive: Primitive,
        values: list[Any],
        params: Mapping[str, Any],
        outs: Sequence[Any],
    ) -> None:
        origin = replayed.get() or (capture(), name_scope.get())
        self.written.append(
            Written(primitive, values, params, list(map(self._place, outs)), origin)
        )

    def again(self, inputs: Sequence[Any], outs: Sequence[Any], others: Sequence[Any]) -> list[Any]:
        """The results of what was written for other inputs.

        Args:
          inputs: nodes of the inputs, ``None`` where they have none.
          outs: nodes of the results, or values of those that have none.
          others: values or tracers in place of the inputs.
        """
        pairs = zip(inputs, others, strict=True)
        known: dict[Any, Any] = {node: other for node, other in pairs if node is not None}
        with replaying() as replay:
            for primitive, operands, params, results, origin in self.written:
                if replay.is_on:
                    replay.at(*origin)
                found = bind(primitive, *[known.get(key_of(x), x) for x in operands], **params)
                known.update(zip(map(key_of, results), found, strict=True))
        return [known.get(key_of(out), out) for out in outs]


def key_of(value: object) -> Any:
    """What tells values apart: a node; a variable, whichever tracer stands for it."""
    if isinstance(value, Node):
        return value
    return value._var if type(value) is StagingTracer else id(value)
