"""Traces that look for NaN in what they evaluate; used while ``debug_nans`` is on.

Here: ``recording_trace`` and ``pushing_trace``, which give the plain traces while it is off. Not
here: what is looked for, and how it is reported (``debugging.watching``).

Layer: ``debugging``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from functrans.core.primitive import Primitive
from functrans.core.state import current_config
from functrans.passes.pushing import PushingTrace
from functrans.passes.recording import RecordingTrace


class _WatchedRecording(RecordingTrace):
    """A recording trace that has every result checked."""

    __slots__ = ()

    def elementwise(self, primitive: Primitive, operands: tuple[Any, ...]) -> Any:
        """Evaluate an elementwise operation, record and check it."""
        out = super().elementwise(primitive, operands)
        self._check(primitive, operands, {}, (out,))
        return out

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Evaluate an operation, record and check it."""
        outs = super().process(primitive, operands, params)
        if primitive.elementwise is None or params:
            self._check(primitive, operands, params, outs)
        return outs

    def _check(
        self,
        primitive: Primitive,
        operands: Sequence[Any],
        params: Mapping[str, Any],
        outs: Sequence[Any],
    ) -> None:
        watch = current_config.get().nan_watch
        if watch is not None:
            values, _ = self.taken_apart(operands)
            results, _ = self.taken_apart(outs)
            watch.operation(primitive, values, params, results)


class _WatchedPushing(PushingTrace):
    """A pushing trace that has every result and tangent checked."""

    __slots__ = ()

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Evaluate an operation and its jvp, and check both."""
        outs = super().process(primitive, operands, params)
        watch = current_config.get().nan_watch
        if watch is not None:
            values, dots = self.taken_apart(operands)
            results, out_dots = self.taken_apart(outs)
            watch.operation(primitive, values, params, results)
            watch.tangents(primitive, values, dots, params, out_dots)
        return outs


def recording_trace(label: str) -> RecordingTrace:
    """A recording trace, which checks what it evaluates if the configuration says so."""
    kind = RecordingTrace if current_config.get().nan_watch is None else _WatchedRecording
    return kind(label)


def pushing_trace(label: str) -> PushingTrace:
    """A pushing trace, which checks what it evaluates if the configuration says so."""
    kind = PushingTrace if current_config.get().nan_watch is None else _WatchedPushing
    return kind(label)
