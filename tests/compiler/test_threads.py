"""Chunks of parallel regions: every chunk once, on any number of threads, whatever happens."""

import contextvars
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from functrans.compiler import threads
from functrans.compiler.threads import get_num_threads, run_chunks, set_num_threads

ROOT = Path(__file__).parent.parent.parent
COUNTS = pytest.mark.parametrize("count", [1, 2, 3, 8])


@pytest.fixture(autouse=True)
def number_of_threads() -> Iterator[None]:
    before = get_num_threads()
    yield
    set_num_threads(before)


def run(code: str, **environment: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        timeout=120,
    ).stdout.strip()


@COUNTS
@pytest.mark.parametrize("n_chunks", [0, 1, 2, 7, 100])
def test_every_chunk_is_run_once(count: int, n_chunks: int) -> None:
    set_num_threads(count)
    done: list[int] = []
    for _ in range(20):
        run_chunks(done.append, n_chunks)
    assert sorted(done) == sorted(list(range(n_chunks)) * 20)


def test_chunks_run_at_the_same_time() -> None:
    set_num_threads(3)
    together = threading.Barrier(3, timeout=30)
    run_chunks(lambda chunk: together.wait() and None, 3)


def test_one_thread_is_the_caller() -> None:
    set_num_threads(1)
    names: set[int] = set()
    run_chunks(lambda chunk: names.add(threading.get_ident()), 50)
    assert names == {threading.get_ident()}


@COUNTS
def test_an_exception_is_raised_after_all_chunks_have_finished(count: int) -> None:
    set_num_threads(count)
    done: list[int] = []

    def task(chunk: int) -> None:
        done.append(chunk)
        if chunk in (3, 5):
            raise ArithmeticError(chunk)

    with pytest.raises(ArithmeticError, match="3"):
        run_chunks(task, 10)
    assert sorted(done) == list(range(10))
    run_chunks(done.append, 10)
    assert len(done) == 20


def test_an_interrupt_ends_the_region_and_is_raised() -> None:
    set_num_threads(2)
    done: list[int] = []

    def task(chunk: int) -> None:
        done.append(chunk)
        if chunk == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_chunks(task, 100_000)
    assert len(done) < 100_000
    before = len(done)
    run_chunks(done.append, 4)
    assert len(done) == before + 4


def test_a_region_in_a_chunk_is_serial() -> None:
    set_num_threads(4)
    seen: list[tuple[int, int, bool]] = []

    def outer(i: int) -> None:
        own = threading.get_ident()
        run_chunks(lambda j: seen.append((i, j, threading.get_ident() == own)), 5)

    run_chunks(outer, 6)
    assert sorted(seen) == [(i, j, True) for i in range(6) for j in range(5)]


def test_several_python_threads_are_in_regions_at_once() -> None:
    set_num_threads(3)
    sums = [0] * 8

    def work(number: int) -> None:
        for _ in range(50):
            found: list[int] = []
            run_chunks(found.append, 11)
            assert sorted(found) == list(range(11))
            sums[number] += sum(found)

    callers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sums == [50 * 55] * 8


def test_the_number_may_change_while_regions_run() -> None:
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for count in (1, 4, 2):
                set_num_threads(count)

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(200):
            found: list[int] = []
            run_chunks(found.append, 9)
            assert sorted(found) == list(range(9))
    finally:
        stop.set()
        changer.join()


def test_chunks_see_the_callers_context() -> None:
    set_num_threads(4)
    setting = contextvars.ContextVar("setting", default=0)
    setting.set(7)
    seen: list[int] = []
    run_chunks(lambda chunk: seen.append(setting.get()), 40)
    assert seen == [7] * 40


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_child_process_makes_its_own_workers() -> None:
    out = run(
        """
import os, threading
from functrans.compiler.threads import run_chunks, set_num_threads
set_num_threads(3)
run_chunks(lambda chunk: None, 10)
stop = threading.Event()
def work():
    while not stop.is_set():
        run_chunks(lambda chunk: None, 5)
busy = threading.Thread(target=work)
busy.start()
for _ in range(10):
    child = os.fork()
    if not child:
        together = threading.Barrier(3, timeout=30)
        run_chunks(lambda chunk: together.wait() and None, 3)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
busy.join()
run_chunks(lambda chunk: None, 10)
print("fine")
"""
    )
    assert out == "fine"


def test_the_environment_sets_the_number() -> None:
    code = "from functrans.compiler.threads import get_num_threads; print(get_num_threads())"
    assert run(code, FUNCTRANS_NUM_THREADS="5") == "5"
    if hasattr(os, "sched_getaffinity"):
        assert run(code, FUNCTRANS_NUM_THREADS="") == str(len(os.sched_getaffinity(0)))


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_a_wrong_environment_is_an_error(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCTRANS_NUM_THREADS", text)
    with pytest.raises(ValueError, match="FUNCTRANS_NUM_THREADS"):
        threads._default_count()


@pytest.mark.parametrize("number", [0, -3])
def test_a_number_below_one_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        set_num_threads(number)


@pytest.mark.parametrize("number", [1.0, "2", True, None])
def test_a_number_that_is_no_integer_is_refused(number: object) -> None:
    with pytest.raises(TypeError, match="integer"):
        set_num_threads(number)  # type: ignore[arg-type]  # on purpose


def test_blas_libraries_are_limited_where_that_is_possible() -> None:
    out = run(
        """
import sys, types
calls = []
fake = types.ModuleType("threadpoolctl")
fake.threadpool_limits = lambda **given: calls.append(given)
sys.modules["threadpoolctl"] = fake
from functrans.compiler.threads import set_num_threads
set_num_threads(3)
print(calls)
sys.modules["threadpoolctl"] = None
set_num_threads(2)
"""
    )
    assert out == "[{'limits': 3, 'user_api': 'blas'}]"


def test_regions_after_the_pool_has_shut_down_are_serial() -> None:
    out = run(
        """
import atexit
from functrans.compiler.threads import run_chunks, set_num_threads
set_num_threads(2)
run_chunks(lambda chunk: None, 2)
done = []
atexit.register(lambda: (run_chunks(done.append, 3), print(done)))
"""
    )
    assert out == "[0, 1, 2]"
