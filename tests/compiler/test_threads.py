"""Threads: how many there are, and loops that run on several of them."""

import ctypes
import dataclasses
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft
from compiler.routine_harness import Program, program
from functrans.compiler import parallel, threads
from functrans.compiler.compiled import plan_of
from functrans.compiler.programs import write_program
from functrans.compiler.support import NativePart
from functrans.core.lowering import Routine
from functrans.emitter.chunks import RUN_CHUNKS
from functrans.emitter.numbers import Number
from functrans.emitter.routine import Array, Routines
from functrans.emitter.types import I64, Value
from functrans.machine.engine import compile_object, load_object
from functrans.primitives.elementwise import sin_p

RNG = np.random.default_rng(0)
TASKS = Path("/proc/self/task")
VECTOR = RNG.normal(size=300_011)
MATRIX = RNG.normal(size=(1003, 307))


@pytest.fixture(autouse=True)
def _count() -> Iterator[None]:
    before = threads.get_num_threads()
    yield
    threads.set_num_threads(before)


def wave(x: Any) -> Any:
    return np.tanh(x) * np.exp(-(x**2)) + np.sin(x)


def rows(x: Any) -> Any:
    return np.sum(wave(x), axis=1), np.max(wave(x), axis=1)


def shifted(x: Any) -> Any:
    """Cut at both ends of the loop."""
    y = wave(x)
    return np.concatenate([y[1:] - y[:-1], y[:1]])


def text_of(fun: Any, *args: Any) -> str:
    (part,) = plan_of(ft.jit(fun).jaxpr(*args))
    assert isinstance(part, NativePart)
    return write_program(part.jaxpr).text


@pytest.mark.parametrize(
    ("fun", "x"),
    [
        (wave, VECTOR),
        (shifted, VECTOR),
        (rows, MATRIX),
        (wave, VECTOR.astype(np.float32)),
        (lambda x: wave(x).T, MATRIX),
        (ft.grad(lambda x: np.sum(wave(x))), VECTOR),
    ],
    ids=["wave", "shifted", "rows", "float32", "transposed", "gradient"],
)
def test_results_do_not_depend_on_the_number(fun: Any, x: Any) -> None:
    assert "run_chunks" in text_of(fun, x)
    results = []
    for count in (1, 2, 3, 7):
        threads.set_num_threads(count)
        outs = ft.jit(fun)(x)
        results.append([np.asarray(out).tobytes() for out in np.atleast_1d(outs)])
    assert all(result == results[0] for result in results)


def test_chunks_agree_with_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    chunked = ft.jit(shifted)(VECTOR)
    monkeypatch.setattr(parallel, "WORTH_CHUNKS", 1 << 60)
    assert "run_chunks" not in text_of(lambda x: shifted(x) + 0.0, VECTOR)
    whole = ft.jit(lambda x: shifted(x) + 0.0)(VECTOR)
    np.testing.assert_array_equal(chunked + 0.0, whole)


def test_sums_over_the_outermost_loop_stay_in_one_piece() -> None:
    assert "run_chunks" not in text_of(lambda x: np.sum(wave(x)), VECTOR)


def test_two_python_threads_in_parallel_loops() -> None:
    threads.set_num_threads(2)
    f = ft.jit(wave)
    want = f(VECTOR)
    wrong: list[int] = []

    def work(k: int) -> None:
        wrong.extend(k for _ in range(5) if not np.array_equal(f(VECTOR), want))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


IN_TWO_STEPS = """
define void @piece(ptr %numbers, i64 %k) {
  %own = getelementptr i64, ptr %numbers, i64 %k
  %is_early = icmp slt i64 %k, 40
  br i1 %is_early, label %wait, label %sum
wait:
  %round = phi i64 [ 0, %0 ], [ %after, %wait ]
  %after = add i64 %round, 1
  store volatile i64 %after, ptr %own
  %is_more = icmp slt i64 %after, 2000
  br i1 %is_more, label %wait, label %end
sum:
  %j = phi i64 [ 0, %0 ], [ %next, %sum ]
  %before = phi i64 [ 0, %0 ], [ %total, %sum ]
  %place = getelementptr i64, ptr %numbers, i64 %j
  %number = load i64, ptr %place
  %total = add i64 %before, %number
  %next = add i64 %j, 1
  %is_left = icmp slt i64 %next, 40
  br i1 %is_left, label %sum, label %store
store:
  store i64 %total, ptr %own
  br label %end
end:
  ret void
}
"""


def _run_in_two_steps(count: int, times: int) -> None:
    """Regions one after the other, whose pieces of the second step add up those of the first."""
    loaded = load_object(compile_object(IN_TWO_STEPS, 1))
    types = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    run = ctypes.CFUNCTYPE(None, *types)(threads._runtime().address(RUN_CHUNKS))
    before = ft.get_num_threads()
    threads.limit_num_threads(count)  # those of BLAS stay as they are
    try:
        for _ in range(times):
            numbers = np.zeros(80, np.int64)
            run(loaded.address("piece"), numbers.ctypes.data, numbers.size, 40)
            assert (numbers == [2_000] * 40 + [80_000] * 40).all()
    finally:
        threads.limit_num_threads(before)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_pieces_that_come_first_are_done_before_the_others_begin(count: int) -> None:
    _run_in_two_steps(count, 100)


def pieces(scratch_bytes: int) -> Program:
    """A routine whose pieces write ones into memory of their own and add them up."""

    def write(e: Routines, operands: Any, results: Any) -> None:
        def first(e: Routines, arrays: list[Array], k: Value) -> None:
            (out,) = arrays
            e.write(out, k, e.constant(out.dtype, 5))

        def piece(e: Routines, arrays: list[Array], k: Value) -> None:
            out, memory = arrays
            place = e.b.add(k, e.b.index(3))
            own = Array(memory.pointer, (scratch_bytes // 8,), out.dtype)
            low = e.b.emit(I64, f"ptrtoint ptr {own.pointer.text} to i64")
            low = e.b.and_(low, e.b.index(63))
            e.fill(own, e.constant(out.dtype, 1))
            e.write(out, place, e.cast(Number(np.dtype(np.int64), (low,)), out.dtype))
            with e.count(own.size) as i:
                total = e.add(e.read(out, place), e.read(own, i))
                e.write(out, place, total)

        e.in_chunks(6, [results[0]], piece, before=(3, first), scratch_bytes=scratch_bytes)

    primitive = dataclasses.replace(sin_p, lower=Routine(write))
    return program(primitive, np.zeros(9), level=0)


def test_pieces_have_memory_of_their_own() -> None:
    before = threads.get_num_threads()
    try:
        for count in (1, 4):
            threads.limit_num_threads(count)
            (found,) = pieces(8 * 1001)(np.zeros(9))
            assert found.tolist() == [5] * 3 + [1001] * 6
    finally:
        threads.limit_num_threads(before)


def test_pieces_without_memory_fail() -> None:
    with pytest.raises(MemoryError, match="no memory for what threads copy"):
        pieces(1 << 60)(np.zeros(9))


def test_python_threads_with_small_stacks() -> None:
    """A product, a triangular system and a factor take little of the caller's stack."""
    code = """
import threading
import numpy as np
import functrans as ft

a = np.tril(np.ones((700, 700))) / 700 + np.eye(700)
solve = ft.jit(lambda a, b: ft.lax.linalg.triangular_solve(a, b, left_side=True, lower=True))
calls = (ft.jit(np.matmul), a, a), (solve, a, a), (ft.jit(np.linalg.cholesky), a @ a.T)
expected = [f(*args) for f, *args in calls]
found = []
threading.stack_size(128 << 10)
thread = threading.Thread(target=lambda: found.extend(f(*args) for f, *args in calls))
thread.start()
thread.join()
assert all(map(np.array_equal, found, expected)) and len(found) == 3
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, (run.returncode, run.stderr)


# Only Linux tells a process of its threads by a file, and Python does not know these.
@pytest.mark.skipif(not TASKS.is_dir(), reason="threads are counted in Linux's /proc")
def test_threads_that_wait_for_another_region_end_soon() -> None:
    at_first = len(list(TASKS.iterdir()))
    _run_in_two_steps(40, 20)  # a part of the threads finds a place to wait in
    for _ in range(600):
        if len(list(TASKS.iterdir())) <= at_first:
            break
        time.sleep(0.1)
    assert len(list(TASKS.iterdir())) <= at_first


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_after_a_parallel_loop() -> None:
    program = """
import os, sys
import numpy as np
import functrans as ft
ft.set_num_threads(2)
x = np.linspace(0.0, 1.0, 400_000)
f = ft.jit(lambda x: np.tanh(x) * np.exp(-x ** 2) + np.sin(x))
want = f(x)
for _ in range(3):
    child = os.fork()
    if child == 0:
        new = ft.jit(lambda x: np.cos(np.exp(x) * np.tanh(x)) + np.sin(x))(x)
        os._exit(0 if np.array_equal(f(x), want) and np.isfinite(new).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(f(x), want)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_programs_may_go_before_all_of_their_threads_began() -> None:
    program = """
import gc
import numpy as np
import functrans as ft
from functrans.machine import engine
ft.set_num_threads(60)
x = np.linspace(0.0, 1.0, 400_000)
want = np.sin(x) * np.exp(x)
for i in range(40):
    f = ft.jit(lambda x: np.sin(x) * np.exp(x) + i)
    np.testing.assert_allclose(f(x), want + i, rtol=1e-14)
    del f
    ft.clear_caches()
    gc.collect()
    with engine._exclusive():  # frees what is gone
        pass
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "FUNCTRANS_CACHE_DIR": "off"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]


def test_threads_that_load_what_programs_share_at_once_get_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # programs keep its address alone: that of another one would be freed beneath them
    load, both = threads._load_runtime, threading.Barrier(2, timeout=60)

    def load_together() -> Any:
        both.wait()
        return load()

    monkeypatch.setattr(threads, "_runtimes", {})
    monkeypatch.setattr(threads, "_load_runtime", load_together)
    addresses: list[int] = []
    workers = [
        threading.Thread(target=lambda: addresses.append(threads._runtime_address(RUN_CHUNKS)))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert addresses == [threads._runtime_address(RUN_CHUNKS)] * 2


def test_number_from_the_environment() -> None:
    program = "import functrans as ft; print(ft.get_num_threads())"
    env = {**os.environ, "FUNCTRANS_NUM_THREADS": "5"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "5", done.stderr
    env["FUNCTRANS_NUM_THREADS"] = "none"
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
    )
    assert "FUNCTRANS_NUM_THREADS is 'none', expected a positive integer" in done.stderr


@pytest.mark.parametrize(
    ("given", "expected"), [("3", "3"), ("2,4", "2"), ("", None), ("many", None), ("0", None)]
)
def test_number_of_openmp_counts_where_ours_is_not_given(given: str, expected: str | None) -> None:
    program = "import functrans as ft; print(ft.get_num_threads())"
    env = {name: x for name, x in os.environ.items() if name != "FUNCTRANS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", program], env={**env, "OMP_NUM_THREADS": given},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert done.stdout.strip() == (expected or str(here))


def test_threadpoolctl_limits_them() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    before = threads.get_num_threads()
    threads.set_num_threads(2)
    with threadpoolctl.threadpool_limits(limits=1):
        assert threads.get_num_threads() == 1
    assert threads.get_num_threads() == 2
    with threadpoolctl.threadpool_limits(limits=1, user_api="functrans"):
        assert threads.get_num_threads() == 1
    (own,) = threadpoolctl.ThreadpoolController().select(user_api="functrans").info()
    assert own["num_threads"] == 2
    threads.set_num_threads(before)


@pytest.mark.parametrize("count", [0, -1])
def test_number_must_be_positive(count: int) -> None:
    with pytest.raises(ValueError, match=f"expected a positive number of threads, got {count}"):
        threads.set_num_threads(count)


@pytest.mark.parametrize("count", ["2", 1.0, True])
def test_number_must_be_an_integer(count: Any) -> None:
    with pytest.raises(TypeError, match="expected an integer"):
        threads.set_num_threads(count)
    assert threads.get_num_threads() >= 1
