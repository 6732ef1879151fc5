"""How long operations take: ``profile``, ``record_function``, and events for other profilers.

Here: the observers of operations and backward nodes. Not here: what is collected of them
(``autograd.profiler_events``), who calls observers (``autograd.recording``, ``autograd.engine``).

An observer is called with the name and the operands of an operation when it begins, and returns
what is called when it ends. Without a profiler there is none, and nothing is measured. Events nest:
the time of an event without that of the events inside is its own time.

Times are in microseconds, as in torch. Memory is what an operation leaves allocated, as
``tracemalloc`` counts it: arrays, and the Python objects of the graph.

Layer: ``autograd``. Reference: the Trace Event Format of Chrome, for ``export_chrome_trace``.
"""

from __future__ import annotations

import bisect
import functools
import os
import pkgutil
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from functrans.autograd.modes import modes
from functrans.autograd.profiler_events import EventList as EventList
from functrans.autograd.profiler_events import FunctionEvent as FunctionEvent
from functrans.autograd.profiler_events import FunctionEventAvg as FunctionEventAvg
from functrans.autograd.profiler_events import torch_name
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import Tracer
from functrans.namespaces import listing
from functrans.passes.nodes import Node
from functrans.passes.nodes import _next_number as next_number

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "emit_itt",
    "emit_nvtx",
    "load_nvprof",
    "profile",
    "record_function",
]
__dir__ = listing(__all__)

_clock = time.perf_counter_ns
_PACKAGE = str(Path(__file__).resolve().parent.parent) + os.sep

# collecting --------------------------------------------------------------------------------------


def _shape(x: Any) -> list[int]:
    return list(x.shape) if isinstance(x, (Tensor, np.ndarray, Tracer)) else []


def _stack() -> list[str]:
    """Lines of the user's code, innermost first."""
    lines = []
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_PACKAGE):
            lines.append(f"{name}({frame.f_lineno}): {frame.f_code.co_name}")
        frame = frame.f_back
    return lines


def _flops(name: str, shapes: Sequence[Sequence[int]]) -> int:
    """Additions and multiplications of an operation, where they follow from the shapes."""
    given = [shape for shape in shapes if shape]
    if name in ("aten::mm", "aten::bmm", "aten::addmm", "aten::mv", "aten::dot"):
        if len(given) < 2:
            return 0
        first, second = given[0], given[1]
        inner = first[-1]
        rows = int(np.prod(first))
        return 2 * rows * (int(np.prod(second)) // max(inner, 1))
    if name in ("aten::add", "aten::mul") and given:
        return int(max(np.prod(shape) for shape in given))
    return 0


class _Collector:
    """Events of one profiler, from all threads that it watches."""

    def __init__(self, shapes: bool, memory: bool, stack: bool, flops: bool) -> None:
        self.shapes = shapes
        self.memory = memory
        self.stack = stack
        self.flops = flops
        self.events: list[FunctionEvent] = []
        self.begin = _clock()
        self._open = threading.local()

    def __call__(self, name: str, operands: Any) -> Callable[[], None]:
        """An operation begins."""
        event = self.start(torch_name(name))
        if self.shapes or self.flops:
            shapes = [_shape(x) for x in operands]
            event.flops = _flops(event.name, shapes) if self.flops else 0
            event.input_shapes = shapes if self.shapes else []
        if self.stack:
            event.stack = _stack()
        return functools.partial(self.stop, event)

    def start(self, name: str) -> FunctionEvent:
        """An event begins now."""
        held = self._open.__dict__.setdefault("stack", [])
        parent = held[-1] if held else None
        now = (_clock() - self.begin) / 1e3
        event = FunctionEvent(len(self.events), name, threading.get_ident(), now, parent)
        self.events.append(event)
        held.append(event)
        if self.memory:
            event.memory = -tracemalloc.get_traced_memory()[0]
        return event

    def stop(self, event: FunctionEvent) -> None:
        """An event ends now."""
        event.end = (_clock() - self.begin) / 1e3
        if self.memory:
            event.memory += tracemalloc.get_traced_memory()[0]
        held = self._open.__dict__.get("stack", [])
        if event in held:
            del held[held.index(event) :]


class profile:  # noqa: N801  # torch's name
    """Measure the operations and backward nodes of a ``with`` block.

    Args:
      enabled: whether anything is measured.
      use_cuda: accepted for torch's sake, as are ``use_device``, ``use_kineto``, ``use_cpu``.
      record_shapes: whether shapes of operands are noted.
      with_flops: whether operations of products are counted.
      profile_memory: whether allocated bytes are noted, by ``tracemalloc``.
      with_stack: whether lines of the user's code are noted.
      with_modules: accepted for torch's sake.
      **options: accepted for torch's sake.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0, 2.0], requires_grad=True)
      >>> with profile() as prof:
      ...     (x * x).sum().backward()
      >>> sorted({event.name for event in prof.function_events})
      ['MulBackward0', 'SumBackward0', 'aten::mul', 'aten::sum']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        **options: object,
    ) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes or with_flops
        self.with_flops = with_flops
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_modules = with_modules
        self.entered = False
        self._traces = False
        self._collector: _Collector | None = None
        self.function_events: EventList | None = None

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._collector = _Collector(
            self.record_shapes, self.profile_memory, self.with_stack, self.with_flops
        )
        if self.profile_memory and not tracemalloc.is_tracing():
            tracemalloc.start()
            self._traces = True
        modes.change({"observers": (*modes.observers, self._collector)})
        return self

    def __exit__(self, *_: object) -> None:
        """Stop measuring."""
        if not self.enabled or self._collector is None:
            return
        own = self._collector
        observers = list(modes.observers)
        if own in observers:
            observers.remove(own)
        modes.observers = tuple(observers)
        modes.update()
        if self._traces:
            tracemalloc.stop()
            self._traces = False
        self.function_events = EventList(
            own.events, self.record_shapes, self.profile_memory, self.with_flops
        )

    def _events(self) -> EventList:
        if self.function_events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self.function_events

    def __repr__(self) -> str:
        """The table."""
        events = self.function_events
        return "<unfinished profiler_legacy.profile>" if events is None else repr(events)

    def __str__(self) -> str:
        """The table."""
        return "<unfinished profile>" if self.function_events is None else str(self.function_events)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._events())

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of the own times of all events, in microseconds."""
        return self._events().self_cpu_time_total

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """A table of all events; see ``EventList.table``."""
        return self._events().table(sort_by, row_limit, **options)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """Events taken together by name; see ``EventList.key_averages``."""
        return self._events().key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """All events taken together."""
        return self._events().total_average()

    def to_html(self) -> str:
        """A page that needs nothing else: the events over time, and a table by name."""
        return self._events().to_html()

    def _repr_html_(self) -> str | None:
        """What a notebook shows: ``to_html`` in a frame; its text before the profiler ended."""
        events = self.function_events
        return None if events is None else events._repr_html_()

    def export_chrome_trace(self, path: str) -> None:
        """Write the events to a file for a trace viewer."""
        self._events().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write own times by stack, for flame graphs.

        Args:
          path: of the file.
          metric: ``self_cpu_time_total``.

        Raises:
          AssertionError: the profiler did not note stacks.
        """
        assert self.with_stack, "export_stacks() requires with_stack=True"
        self._events().export_stacks(path, metric)


class record_function:  # noqa: N801  # torch's name
    """A named range for the profilers that run; a context manager and a decorator.

    Args:
      name: of the range.
      args: a text to go with it.

    Example:
      >>> with profile() as prof, record_function("preparation"):
      ...     pass
      >>> prof.function_events[0].name
      'preparation'
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._ends: list[Callable[[], None]] = []

    def __enter__(self) -> record_function:
        for observer in modes.observers:
            if isinstance(observer, _Collector):
                event = observer.start(self.name)
                event.is_user = True
                self._ends.append(functools.partial(observer.stop, event))
            else:
                self._ends.append(observer(f"user::{self.name}", ()))
        return self

    def __exit__(self, *_: object) -> None:
        """End the range."""
        while self._ends:
            self._ends.pop()()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function."""

        @functools.wraps(function)
        def in_range(*args: object, **kwargs: object) -> Tensor:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return in_range


# events for other profilers ----------------------------------------------------------------------


class _Emitter:
    """Hands the names of operations to another profiler while a ``with`` block runs (abstract).

    Forward operations carry the sequence number of the node that they make, backward nodes that of
    the operation that made them.
    """

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.entered = False
        self._starts: list[int] = []
        self._observer: Any = None

    def _package(self, name: str) -> Any:
        try:
            return pkgutil.resolve_name(name)
        except ImportError:
            raise ImportError(
                f"{type(self).__name__} needs the package {name} (pip install {name}); without it "
                "use functrans.autograd.profiler.profile"
            ) from None

    def _load(self) -> tuple[Callable[[str], Any], Callable[[], Any]]:
        """What begins and what ends a range; raises if the package is missing."""
        raise NotImplementedError

    def __enter__(self) -> _Emitter:
        if not self.enabled:
            return self
        if self.entered:
            raise RuntimeError(f"{type(self).__name__} context manager is not reentrant")
        push, pop = self._load()
        self.entered = True

        def observer(name: str, operands: Any) -> Callable[[], None]:
            text = torch_name(name).removeprefix("user::")
            if not name.startswith("user::"):
                text += f", seq = {self._sequence(operands)}"
                if self.record_shapes and operands:
                    text += f", sizes = {[_shape(x) for x in operands]}"
            push(text)
            return lambda: (pop(), None)[1]

        self._observer = observer
        modes.change({"observers": (*modes.observers, observer)})
        return self

    def _sequence(self, operands: Any) -> int:
        """The number from which nodes of a forward operation count; a backward node has its own."""
        if len(operands) == 1 and isinstance(operands[0], Node):
            place = bisect.bisect_right(self._starts, operands[0].number)
            return self._starts[place - 1] if place else operands[0].number
        self._starts.append(next_number())
        return self._starts[-1]

    def __exit__(self, *_: object) -> None:
        """Stop."""
        own = self._observer
        observers = list(modes.observers)
        if own in observers:
            observers.remove(own)
        modes.observers = tuple(observers)
        modes.update()
        self._observer = None


class emit_nvtx(_Emitter):  # noqa: N801  # torch's name
    """Hand operations to NVIDIA's profilers through the package ``nvtx``.

    Args:
      enabled: whether it does anything.
      record_shapes: whether shapes of operands are part of the names.

    Raises:
      ImportError: when it is entered without the package.
    """

    def _load(self) -> tuple[Callable[[str], Any], Callable[[], Any]]:
        nvtx = self._package("nvtx")
        return nvtx.push_range, nvtx.pop_range


class emit_itt(_Emitter):  # noqa: N801  # torch's name
    """Hand operations to Intel's VTune through the package ``ittapi``.

    Args:
      enabled: whether it does anything.
      record_shapes: whether shapes of operands are part of the names.

    Raises:
      ImportError: when it is entered without the package.
    """

    def _load(self) -> tuple[Callable[[str], Any], Callable[[], Any]]:
        ittapi = self._package("ittapi")
        domain = ittapi.domain("functrans")
        handle = ittapi.string_handle
        return (
            lambda text: ittapi.task_begin(domain, handle(text)),
            lambda: ittapi.task_end(domain),
        )


def load_nvprof(path: str) -> EventList:
    """Read the ranges of ``emit_nvtx`` from a file of ``nvprof``.

    Args:
      path: of the SQLite file.

    Raises:
      FileNotFoundError: there is no such file.
    """
    import sqlite3

    if not Path(path).exists():
        raise FileNotFoundError(f"load_nvprof: there is no file {path}")
    connection = sqlite3.connect(path)
    try:
        names = dict(connection.execute("SELECT _id_, value FROM StringTable"))
        query = (
            "SELECT start.id, start.name, start.timestamp, stop.timestamp "
            "FROM CUPTI_ACTIVITY_KIND_MARKER AS start "
            "INNER JOIN CUPTI_ACTIVITY_KIND_MARKER AS stop ON start.id = stop.id "
            "WHERE start.name != 0 AND stop.name = 0 ORDER BY start.timestamp"
        )
        rows = list(connection.execute(query))
    finally:
        connection.close()
    events: list[FunctionEvent] = []
    held: list[FunctionEvent] = []
    first = rows[0][2] if rows else 0
    for number, name, start, stop in rows:
        begin, end = (start - first) / 1e3, (stop - first) / 1e3
        while held and held[-1].end <= begin:
            held.pop()
        parent = held[-1] if held else None
        event = FunctionEvent(number, names[name], 0, begin, parent)
        event.end = end
        events.append(event)
        held.append(event)
    return EventList(events)
