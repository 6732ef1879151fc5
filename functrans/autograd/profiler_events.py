"""What a profiler has collected: events, averages, tables and files.

Not here: how events are collected (``autograd.profiler``).

Layer: ``autograd``. Reference: the Trace Event Format of Chrome, for ``export_chrome_trace``.
"""

from __future__ import annotations

import json
import os
import re
import weakref
from collections.abc import Callable, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any

from functrans.autograd.profiler_pages import events_page
from functrans.debugging.documents import framed

# names -------------------------------------------------------------------------------------------

_TORCH_NAMES = {
    "absolute": "abs", "broadcast_to": "expand", "convert_element_type": "_to_copy",
    "divide": "div", "dot_general": "mm", "equal": "eq", "greater": "gt", "greater_equal": "ge",
    "less": "lt", "less_equal": "le", "multiply": "mul", "negative": "neg", "not_equal": "ne",
    "power": "pow", "reduce_max": "amax", "reduce_min": "amin", "reduce_prod": "prod",
    "reduce_sum": "sum", "subtract": "sub", "torch_max": "amax", "torch_min": "amin",
    "transpose": "permute", "true_divide": "div",
}  # fmt: skip
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def torch_name(name: str) -> str:
    """The name under which torch's profiler shows an operation.

    Args:
      name: of a primitive, or the label of a node.

    Example:
      >>> torch_name("multiply"), torch_name("LogSoftmax"), torch_name("MulBackward0")
      ('aten::mul', 'aten::log_softmax', 'MulBackward0')
    """
    if "Backward" in name or name in ("CopySlices",) or "::" in name:
        return name
    plain = _WORD.sub("_", name).lower().removeprefix("torch_")
    return f"aten::{_TORCH_NAMES.get(plain, plain)}"


# events ------------------------------------------------------------------------------------------


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
class FunctionEvent:
    """One operation, backward node or named range.

    Attributes:
      id: number of the event.
      name: torch's name.
      thread: number of its thread.
      start: in microseconds since the profiler began.
      end: likewise.
      children: events in it.
      input_shapes: shapes of the operands, with ``record_shapes``.
      stack: lines of the user's code, innermost first, with ``with_stack``.
      memory: bytes that it left allocated, with ``profile_memory``.
      flops: operations of products, with ``with_flops``.
      is_user: whether ``record_function`` made it.
    """

    id: int
    name: str
    thread: int
    start: float
    above: InitVar[FunctionEvent | None]
    end: float = field(init=False)
    children: list[FunctionEvent] = field(default_factory=list)
    input_shapes: list[Any] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    memory: int = 0
    flops: int = 0
    is_user: bool = False
    _parent: Any = field(init=False)

    def __post_init__(self, above: FunctionEvent | None) -> None:
        self.end = self.start
        self._parent = None if above is None else weakref.ref(above)
        if above is not None:
            above.children.append(self)

    @property
    def parent(self) -> FunctionEvent | None:
        """The event that it lies in; referred to weakly, so that events die with their list."""
        return None if self._parent is None else self._parent()

    @property
    def key(self) -> str:
        """The name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Time from beginning to end."""
        return self.end - self.start

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """That time without that of the events in it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.children)

    @property
    def cpu_memory_usage(self) -> int:
        """Bytes that it left allocated."""
        return self.memory

    @property
    def self_cpu_memory_usage(self) -> int:
        """Those bytes without those of the events in it."""
        return self.memory - sum(child.memory for child in self.children)

    @property
    def count(self) -> int:
        """1."""
        return 1

    def __repr__(self) -> str:
        """Name and times."""
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={_time(self.cpu_time_total)} "
            f"cpu_start_us={self.start:.3f} cpu_end_us={self.end:.3f} "
            f"cpu_children={[child.id for child in self.children]} name={self.name} "
            f"thread={self.thread} input_shapes={self.input_shapes}>"
        )


@dataclass(eq=False, repr=False)
class FunctionEventAvg:
    """Events of one name taken together.

    Attributes:
      key: the name.
      count: number of events.
      cpu_time_total: sum of their times; of events inside one of the same key only the outer one.
      self_cpu_time_total: sum of their own times.
      cpu_memory_usage: bytes that they left allocated.
      self_cpu_memory_usage: those bytes without those of events inside.
      flops: operations of products.
      input_shapes: shapes of the operands, if events are grouped by them.
      stack: lines of the user's code, if events are grouped by them.
      is_user: whether ``record_function`` made them.
    """

    key: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    flops: int = 0
    input_shapes: Any = None
    stack: list[str] = field(default_factory=list)
    is_user: bool = False

    @property
    def cpu_time(self) -> float:
        """Mean time."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, event: Any) -> None:
        """Add an event, or other events taken together."""
        self.count += event.count
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.flops += event.flops
        self.is_user |= event.is_user
        if isinstance(event, FunctionEventAvg) or not _is_inside(event):
            self.cpu_time_total += event.cpu_time_total
            self.cpu_memory_usage += event.cpu_memory_usage

    def __repr__(self) -> str:
        """Name and times."""
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={_time(self.self_cpu_time_total)} "
            f"cpu_time={_time(self.cpu_time)} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


def _is_inside(event: FunctionEvent) -> bool:
    """Whether an event lies in one of its own name."""
    parent = event.parent
    while parent is not None:
        if parent.name == event.name:
            return True
        parent = parent.parent
    return False


class EventList(list[Any]):
    """Events, or events taken together.

    Args:
      events: what is in it.
      has_shapes: whether tables show shapes.
      has_memory: whether tables show memory.
      has_flops: whether tables show operations.
    """

    def __init__(
        self,
        events: Sequence[Any] = (),
        has_shapes: bool = False,
        has_memory: bool = False,
        has_flops: bool = False,
    ) -> None:
        super().__init__(events)
        self.has_shapes = has_shapes
        self.has_memory = has_memory
        self.has_flops = has_flops

    @property
    def self_cpu_time_total(self) -> float:
        """Sum of the own times of all events."""
        return float(sum(event.self_cpu_time_total for event in self))

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """Events taken together by name.

        Args:
          group_by_input_shape: and by the shapes of the operands.
          group_by_stack_n: and by so many lines of the user's code.
        """
        table: dict[Any, FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shape else ""
            stack = tuple(event.stack[:group_by_stack_n])
            key = (event.name, shapes, stack)
            entry = table.get(key)
            if entry is None:
                entry = table[key] = FunctionEventAvg(event.name)
                entry.stack = list(stack)
                if group_by_input_shape:
                    entry.input_shapes = event.input_shapes
            entry.add(event)
        return EventList(
            list(table.values()), group_by_input_shape, self.has_memory, self.has_flops
        )

    def total_average(self) -> FunctionEventAvg:
        """All events taken together, under the key ``Total``."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """A table of names, times and numbers.

        Args:
          sort_by: an attribute, largest first: ``cpu_time``, ``cpu_time_total``,
            ``self_cpu_time_total``, ``cpu_memory_usage``, ``self_cpu_memory_usage``, ``count``.
          row_limit: number of rows; -1 for all.
          max_src_column_width: width of the user's lines.
          max_name_column_width: width of the names.
          max_shapes_column_width: width of the shapes.
          header: a line above.
          top_level_events_only: whether events in others are left out.

        Raises:
          AttributeError: there is no such attribute.
        """
        rows = [e for e in self if not (top_level_events_only and getattr(e, "_parent", None))]
        if sort_by is not None:
            name = sort_by.replace("cuda", "cpu")
            rows.sort(key=lambda event: getattr(event, name), reverse=True)
        if row_limit >= 0:
            rows = rows[:row_limit]
        total = self.self_cpu_time_total
        columns = self._columns(
            total, max_name_column_width, max_shapes_column_width, max_src_column_width
        )
        cells = [[title for title, _ in columns]]
        cells += [[text(row) for _, text in columns] for row in rows]
        widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
        rule = "  ".join("-" * width for width in widths)
        lines = [] if header is None else [header]
        lines += [rule, "  ".join(t.rjust(w) for t, w in zip(cells[0], widths, strict=True)), rule]
        lines += [
            "  ".join(t.rjust(w) for t, w in zip(line, widths, strict=True)) for line in cells[1:]
        ]
        lines += [rule, f"Self CPU time total: {_time(total)}", ""]
        return "\n".join(lines)

    def _columns(
        self, total: float, name_width: int, shapes_width: int, source_width: int
    ) -> list[tuple[str, Callable[[Any], str]]]:
        def share(value: float) -> str:
            return f"{100 * value / total:.2f}%" if total else "0.00%"

        columns: list[tuple[str, Callable[[Any], str]]] = [
            ("Name", lambda e: _cut(e.key, name_width)),
            ("Self CPU %", lambda e: share(e.self_cpu_time_total)),
            ("Self CPU", lambda e: _time(e.self_cpu_time_total)),
            ("CPU total %", lambda e: share(e.cpu_time_total)),
            ("CPU total", lambda e: _time(e.cpu_time_total)),
            ("CPU time avg", lambda e: _time(e.cpu_time_total / e.count)),
        ]
        if self.has_memory:
            columns.append(("CPU Mem", lambda e: _bytes(e.cpu_memory_usage)))
            columns.append(("Self CPU Mem", lambda e: _bytes(e.self_cpu_memory_usage)))
        columns.append(("# of Calls", lambda e: str(e.count)))
        if self.has_shapes:
            columns.append(("Input Shapes", lambda e: _cut(str(e.input_shapes), shapes_width)))
        if any(event.stack for event in self):
            columns.append(
                ("Source Location", lambda e: _cut(e.stack[0] if e.stack else "", source_width))
            )
        if self.has_flops:
            columns.append(("Total FLOPs", lambda e: str(e.flops) if e.flops else "--"))
        return columns

    def __str__(self) -> str:
        """The table."""
        return self.table()

    def to_html(self) -> str:
        """A page that needs nothing else: the events over time, and a table by name."""
        is_averaged = not any(isinstance(event, FunctionEvent) for event in self)
        return events_page(self, self if is_averaged else self.key_averages(), _time)

    def _repr_html_(self) -> str:
        """What a notebook shows: ``to_html`` in a frame."""
        return framed(self.to_html(), 20)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events to a file for a trace viewer (``chrome://tracing``, Perfetto).

        Args:
          path: of the file; JSON.
        """
        process = os.getpid()
        entries = [
            {
                "name": event.name,
                "cat": "user_annotation" if event.is_user else "cpu_op",
                "ph": "X",
                "ts": event.start,
                "dur": event.cpu_time_total,
                "pid": process,
                "tid": event.thread,
                "args": {"Input Dims": event.input_shapes, "Call stack": "; ".join(event.stack)},
            }
            for event in self
        ]
        with Path(path).open("w", encoding="utf-8") as file:
            json.dump({"traceEvents": entries, "displayTimeUnit": "ms"}, file)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write own times by stack, one line each, for flame graphs.

        Args:
          path: of the file.
          metric: ``self_cpu_time_total``.

        Raises:
          ValueError: there is no such metric.
        """
        if metric not in ("self_cpu_time_total", "self_cuda_time_total"):
            raise ValueError(
                "metric should be one of: ['self_cpu_time_total', 'self_cuda_time_total']"
            )
        totals: dict[str, int] = {}
        for event in self:
            if event.stack:
                frames = [line.replace(";", ",").replace(" ", "_") for line in event.stack[::-1]]
                key = ";".join([*frames, event.name])
                totals[key] = totals.get(key, 0) + int(event.self_cpu_time_total)
        lines = [f"{key} {value}\n" for key, value in totals.items() if value > 0]
        Path(path).write_text("".join(lines), encoding="utf-8")


def _cut(text: str, width: int | None) -> str:
    return text if width is None or len(text) <= width else f"{text[: width - 3]}..."


def _time(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _bytes(n: int) -> str:
    for unit, size in (("Gb", 1 << 30), ("Mb", 1 << 20), ("Kb", 1 << 10)):
        if abs(n) >= size:
            return f"{n / size:.2f} {unit}"
    return f"{n} b"
