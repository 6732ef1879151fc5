"""The profiler: events and their nesting, tables, files, and that nothing is left behind."""

import json
import sqlite3
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from functrans.autograd import tensor
from functrans.autograd.modes import modes
from functrans.autograd.profiler import (
    emit_itt,
    emit_nvtx,
    load_nvprof,
    profile,
    record_function,
)
from functrans.compat.torch.nn import functional as F  # noqa: N812  # as torch code has it


def work() -> Any:
    x = tensor(np.ones((8, 4)), requires_grad=True)
    w = tensor(np.ones((3, 4)), requires_grad=True)
    with record_function("forward"):
        loss = (F.linear(x, w) * 2.0).sum()
    loss.backward()
    return loss


def test_operations_ranges_and_backward_nodes_are_events() -> None:
    with profile() as prof:
        work()
    names = [event.name for event in prof.function_events]
    assert names[:4] == ["forward", "aten::mm", "aten::mul", "aten::sum"]
    assert {"SumBackward0", "MulBackward0", "MmBackward0"} <= set(names)
    outer = prof.function_events[0]
    assert outer.is_user
    assert [child.name for child in outer.children] == ["aten::mm", "aten::mul", "aten::sum"]
    inner = sum(child.cpu_time_total for child in outer.children)
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - inner)
    assert 0 < inner <= outer.cpu_time_total


def test_nothing_is_measured_outside() -> None:
    assert modes.observers == ()
    with profile() as prof:
        pass
    work()
    assert len(prof.function_events) == 0
    with profile(enabled=False) as off:
        work()
        assert not modes.is_watched
    assert off.function_events is None
    with pytest.raises(ZeroDivisionError), profile():
        raise ZeroDivisionError
    assert modes.observers == ()


def test_averages_add_up() -> None:
    with profile(record_shapes=True) as prof:
        for _ in range(3):
            work()
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::mul"].count == 3
    total = sum(row.self_cpu_time_total for row in rows.values())
    assert prof.self_cpu_time_total == pytest.approx(total)
    assert prof.total_average().count == len(prof.function_events)
    shaped = prof.key_averages(group_by_input_shape=True)
    assert [r.input_shapes for r in shaped if r.key == "aten::mm"] == [[[8, 4], [3, 4], []]]


def test_the_table_is_sorted_and_cut() -> None:
    with profile(record_shapes=True, profile_memory=True, with_flops=True) as prof:
        work()
    averages = prof.key_averages()
    text = averages.table(sort_by="cpu_time_total", row_limit=2)
    lines = text.splitlines()
    assert lines[1].split()[0] == "Name"
    assert len([line for line in lines if "aten::" in line or "Backward" in line]) <= 2
    longest = max(averages, key=lambda row: row.cpu_time_total)
    assert lines[3].strip().startswith(longest.key)
    assert lines[-1].startswith("Self CPU time total: ")
    (product,) = [row for row in averages if row.key == "aten::mm"]
    assert product.flops == 2 * 8 * 4 * 3
    assert product.cpu_memory_usage >= 8 * 3 * 8
    with pytest.raises(AttributeError):
        averages.table(sort_by="beauty")


def test_stacks_name_the_users_lines(tmp_path: Path) -> None:
    with profile(with_stack=True) as prof:
        for _ in range(20):
            work()
    (event,) = [e for e in prof.key_averages(group_by_stack_n=1) if e.key == "aten::mul"]
    assert "test_profiler.py" in event.stack[0]
    assert event.stack[0].endswith(": work")
    prof.export_stacks(str(tmp_path / "stacks.txt"))
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert any(line.rsplit(" ", 1)[0].endswith(";aten::mm") for line in lines)
    assert all(int(line.rsplit(" ", 1)[1]) > 0 for line in lines)
    with profile() as plain:
        work()
    with pytest.raises(AssertionError, match="requires with_stack=True"):
        plain.export_stacks(str(tmp_path / "none.txt"))


def test_the_trace_is_json_with_nested_times(tmp_path: Path) -> None:
    with profile() as prof:
        work()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    entries = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(entries) == len(prof.function_events)
    outer, inner = entries[0], entries[1]
    assert outer["ph"] == "X"
    assert outer["cat"] == "user_annotation"
    assert outer["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]


def test_a_profiler_is_not_entered_twice() -> None:
    prof = profile()
    with prof, pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()
    with pytest.raises(RuntimeError, match="didn't finish running"):
        profile().key_averages()


def test_record_function_decorates() -> None:
    @record_function("named")
    def double(x: Any) -> Any:
        return x * 2

    with profile() as prof:
        assert double(tensor(2.0)).item() == 4.0
    assert [event.name for event in prof.function_events] == ["named", "aten::mul"]


def test_ranges_for_nvtx_carry_sequence_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("nvtx")
    texts: list[str] = []
    depth: list[int] = []
    module.push_range = lambda message=None, color="blue", domain=None: (
        texts.append(message),
        depth.append(1),
    )
    module.pop_range = lambda domain=None: depth.pop()
    monkeypatch.setitem(__import__("sys").modules, "nvtx", module)
    x = tensor(np.ones(3), requires_grad=True)
    with emit_nvtx(record_shapes=True), record_function("outer"):
        ((x * x).exp() * x).sum().backward()
    assert not depth
    assert texts[0] == "outer"
    numbers = {text.split(",")[0]: int(text.split("seq = ")[1].split(",")[0]) for text in texts[1:]}
    assert numbers["aten::exp"] == numbers["ExpBackward0"]
    assert numbers["aten::sum"] == numbers["SumBackward0"]
    first = next(text for text in texts if text.startswith("aten::mul"))
    assert "sizes = [[3], [3]]" in first
    last = [text for text in texts if text.startswith("MulBackward0")][-1]
    assert last.split("seq = ")[1].split(",")[0] == first.split("seq = ")[1].split(",")[0]


class FakeItt(ModuleType):
    """The part of ``ittapi`` that is used, with its types: a task needs a handle of its name."""

    class Handle:
        def __init__(self, text: str) -> None:
            self.text = text

    def __init__(self) -> None:
        super().__init__("ittapi")
        self.begun: list[str] = []
        self.open = 0

    def domain(self, name: str) -> object:
        assert name == "functrans"
        return self

    def string_handle(self, text: str) -> Handle:
        return FakeItt.Handle(text)

    def task_begin(self, domain: object, name: Handle) -> None:
        assert domain is self
        if not isinstance(name, FakeItt.Handle):
            raise TypeError("The passed string handle is not a valid instance of StringHandle.")
        self.begun.append(name.text)
        self.open += 1

    def task_end(self, domain: object) -> None:
        assert domain is self
        self.open -= 1


def test_ranges_for_itt(monkeypatch: pytest.MonkeyPatch) -> None:
    module = FakeItt()
    monkeypatch.setitem(__import__("sys").modules, "ittapi", module)
    emitter = emit_itt(record_shapes=True)
    with emitter, record_function("outer"):
        work()
        with pytest.raises(RuntimeError, match="not reentrant"):
            emitter.__enter__()
    assert module.open == 0
    assert module.begun[0] == "outer"
    assert any(text.startswith("aten::mm, seq = ") and "[8, 4]" in text for text in module.begun)
    assert any(text.startswith("MmBackward0") for text in module.begun)
    count = len(module.begun)
    with emit_itt(enabled=False):
        work()
    assert len(module.begun) == count
    with pytest.raises(ZeroDivisionError), emit_itt(), record_function("fails"):
        raise ZeroDivisionError
    assert module.open == 0
    assert modes.observers == ()


@pytest.mark.parametrize(("emit", "package"), [(emit_nvtx, "nvtx"), (emit_itt, "ittapi")])
def test_ranges_for_the_real_packages(emit: Any, package: str) -> None:
    pytest.importorskip(package)
    with emit(record_shapes=True), record_function("outer"):
        loss = work()
    assert loss.item() == 8 * 3 * 4 * 2.0
    assert modes.observers == ()


@pytest.mark.parametrize(("emit", "package"), [(emit_nvtx, "nvtx"), (emit_itt, "ittapi")])
def test_missing_packages_are_named(
    emit: Any, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ImportError, match=f"pip install {package}"), emit():
        pass
    assert modes.observers == ()


def test_files_of_nvprof_are_read(tmp_path: Path) -> None:
    path = tmp_path / "profile.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE StringTable (_id_ INTEGER, value TEXT)")
        connection.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (id INTEGER, name INTEGER, timestamp INTEGER)"
        )
        connection.executemany("INSERT INTO StringTable VALUES (?, ?)", [(1, "outer"), (2, "in")])
        rows = [(7, 1, 0), (8, 2, 1000), (8, 0, 3000), (7, 0, 9000)]
        connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (?, ?, ?)", rows)
    connection.close()
    events = load_nvprof(str(path))
    assert [(e.name, e.cpu_time_total) for e in events] == [("outer", 9.0), ("in", 2.0)]
    assert events[0].children == [events[1]]
    with pytest.raises(FileNotFoundError):
        load_nvprof(str(tmp_path / "missing"))
