"""Progress of long work: a bar where somebody looks, and nothing anywhere else."""

import io
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import functrans as ft
from functrans.core import progress
from functrans.scipy import optimize

ROOT = Path(__file__).resolve().parent.parent


class Bar:
    """Stands for a bar of tqdm, and notes what is done with it."""

    made: ClassVar[list["Bar"]] = []

    def __init__(self, total: Any, desc: str, unit: str, leave: bool = True) -> None:
        self.total, self.desc, self.unit, self.leave = total, desc, unit, leave
        self.start_t = 0.0
        self.n = 0
        self.notes: list[str] = []
        self.is_open = True
        Bar.made.append(self)

    def update(self, n: int) -> None:
        self.n += n

    def set_postfix_str(self, note: str) -> None:
        self.notes.append(note)

    def close(self) -> None:
        self.is_open = False


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Bar]]:
    """The bars that are shown on a terminal, at once."""
    module: Any = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    package: Any = types.ModuleType("tqdm")
    package.auto = module
    package.__spec__ = module.__spec__ = object()
    monkeypatch.setitem(sys.modules, "tqdm", package)
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    monkeypatch.setattr(progress, "_is_terminal", lambda: True)
    monkeypatch.setattr(progress, "DELAY_S", 0.0)
    monkeypatch.setattr(Bar, "made", [])
    yield Bar.made
    assert not [bar.desc for bar in Bar.made if bar.is_open]


def loss(x: Any) -> Any:
    return np.sum(np.sin(x) * x**2)


def test_jacobians_in_chunks(bars: list[Bar]) -> None:
    ft.hessian(loss, chunk_size=2)(np.ones(7))
    (bar,) = [bar for bar in bars if not bar.desc.startswith("compiling")]
    assert (bar.desc, bar.total, bar.n, bar.leave) == ("hessian", 7, 7, False)


def test_solvers(bars: list[Bar]) -> None:
    with ft.config(native=False):
        optimize.minimize(optimize.rosen, np.zeros(3))
        optimize.least_squares(lambda x: x**2 - 1.0, np.ones(2) * 3)
        optimize.root(lambda x: x**2 - 1.0, np.ones(2) * 3)
        optimize.minimize_scalar(lambda x: (x - 2.0) ** 2)
        optimize.root_scalar(lambda x: x**3 - 2.0, x0=1.0)
        optimize.curve_fit(lambda x, a, b: a * np.exp(b * x), np.arange(5.0), np.arange(5.0) + 1)
    names = [bar.desc.partition(":")[0] for bar in bars if bar.unit == " evaluations"]
    assert names == [
        "minimize", "least_squares", "root", "minimize_scalar", "root_scalar", "curve_fit"
    ]  # fmt: skip
    assert all(bar.n > 3 for bar in bars if bar.unit == " evaluations")


def test_compilation(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", "off")
    ft.jit(lambda x: np.sort(np.argpartition(np.sin(x * 1.25), 3)) + x)(np.ones(8))
    (bar,) = bars
    assert bar.desc == "compiling <lambda>"
    assert bar.n == bar.total == 2 * 2  # two native parts
    assert "machine code" in bar.notes


def test_dask_on_threads(bars: list[Bar]) -> None:
    dask = pytest.importorskip("dask.array")
    data = dask.from_array(np.arange(12.0), chunks=3)
    with ft.config(native=False):
        found = ft.dask.sum_over(lambda w, x: np.sum(w * x))(2.0, data)
    assert found == 132.0
    shown = [bar for bar in bars if bar.desc == "Dask"]
    assert shown
    assert all(bar.n == bar.total for bar in shown)


def test_dask_on_a_cluster(bars: list[Bar]) -> None:
    dask = pytest.importorskip("dask.array")
    distributed = pytest.importorskip("distributed")
    data = dask.from_array(np.arange(12.0), chunks=3)
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster),
        ft.config(native=False),
    ):
        found = ft.dask.sum_over(lambda w, x: np.sum(w * x))(2.0, data)
        assert found == 132.0
    shown = [bar for bar in bars if bar.desc == "Dask"]
    assert shown
    assert all(bar.n == bar.total for bar in shown)


def test_off_by_configuration(bars: list[Bar]) -> None:
    with ft.config(progress=False):
        ft.hessian(loss, chunk_size=2)(np.ones(7))
        ft.jit(lambda x: np.sin(x * 1.5) + x)(np.ones(8))
    assert not bars


def test_the_setting_does_not_stage_anew(bars: list[Bar]) -> None:
    f = ft.jit(loss)
    f(np.ones(3))
    with ft.config(progress=False):
        f(np.ones(3))
    assert f.cache_size == 1


def test_nothing_before_two_seconds_have_passed(
    bars: list[Bar], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(progress, "DELAY_S", 2.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.Progress("work", 5) as report:
        now = 101.9
        report.advance()
        assert not bars
        now = 102.5
        report.say("half")
        report.advance(2)
        (bar,) = bars
        assert (bar.n, bar.start_t, bar.notes) == (3, -2.5, ["half"])
        report.advance()
        assert bar.n == 4


def test_a_bar_comes_without_a_report(bars: list[Bar]) -> None:
    with progress.Progress("work", is_timed=True) as report:
        assert report._timer is not None
        report._timer.join()
        (bar,) = bars
        report.advance(3)
        assert bar.n == 3


def test_work_that_ends_leaves_no_timer(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "DELAY_S", 1e6)
    report = progress.Progress("work", is_timed=True)
    report.__enter__()
    timer = report._timer
    report.__exit__(ZeroDivisionError)
    assert timer is not None
    timer.join()  # at once
    assert not bars


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_no_terminal(stream: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert not progress.is_shown()


def test_notebooks(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_is_terminal", lambda: False)
    assert not progress.is_shown()
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(
        sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell)
    )  # fmt: skip
    assert progress.is_shown()


def test_without_tqdm_nothing_is_shown(bars: list[Bar], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)
    ft.hessian(loss, chunk_size=2)(np.ones(7))
    assert not bars


@pytest.mark.parametrize(("value", "expected"), [("off", "False"), ("on", "True"), ("no", "must")])
def test_the_environment_sets_the_default(value: str, expected: str) -> None:
    code = "import functrans.core.state as s; print(s.Config().progress)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT,
        env={"PATH": "", "FUNCTRANS_PROGRESS": value},
    )  # fmt: skip
    assert expected in run.stdout + run.stderr


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_bar_that_cannot_be_drawn_stops_no_work(
    bars: list[Bar], monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def fails(bar: Bar, _: Any) -> None:
        bar.is_open = False
        bar._lock.acquire()  # type: ignore[attr-defined]  # as tqdm's, which an interrupt leaves held
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(Bar, "update", fails)
        broken.setattr(Bar, "set_postfix_str", fails)
        if error is OSError:
            ft.hessian(loss, chunk_size=2)(np.ones(7))
        else:
            with pytest.raises(KeyboardInterrupt):
                ft.hessian(loss, chunk_size=2)(np.ones(7))
    before = len(bars)
    ft.hessian(loss, chunk_size=3)(np.ones(7))
    assert len(bars) > before
    locks = [bar._lock for bar in bars]  # type: ignore[attr-defined]
    assert len(set(map(id, locks))) == len(bars)
