"""Windows and macOS, simulated: what is asked of the system, and code for their conventions.

Code for another system is made by the same LLVM. On this one's processor it runs here as well: that
of macOS as it is, that of Windows through functions that pass arguments from one convention to the
other.
"""

import ctypes
import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import lax
from functrans.compiler import threads
from functrans.compiler.compiled import plan_of
from functrans.compiler.programs import ProgramText, write_program
from functrans.compiler.support import NativePart
from functrans.emitter.chunks import NUM_THREADS, RUN_CHUNKS, runtime_text
from functrans.emitter.spare import GIVE_BLOCK, TAKE_BLOCK
from functrans.errors import CompilationError
from functrans.machine import cache, engine, system
from functrans.machine.engine import Target, compile_object, load_object, object_symbols
from processors import ON_X86

ROOT = Path(__file__).parent.parent.parent
PLATFORMS = {"windows": "win32", "macos": "darwin", "posix": "linux"}
TARGETS = {
    "windows": [
        ("x86_64-pc-windows-msvc-elf", "x86-64"),
        ("x86_64-pc-windows-msvc-elf", "haswell"),
    ],
    "macos": [("x86_64-apple-darwin24.0.0-elf", "x86-64"), ("arm64-apple-darwin24.0.0-elf", "")],
    "posix": [("aarch64-unknown-linux-gnu", ""), ("x86_64-unknown-linux-musl", "x86-64")],
}
"""Triples as ``engine`` makes them of those of processes, and processors."""

C99 = {
    *("malloc", "free", "realloc", "memcpy", "memmove", "memset", "fmod", "fmodf", "floor"),
    *("floorf", "ceil", "ceilf", "trunc", "truncf", "fma", "fmaf", "nearbyint", "nearbyintf"),
}
PTHREADS = {
    *("pthread_create", "pthread_detach", "sched_yield", "usleep", "pthread_attr_init"),
    *("pthread_attr_setstacksize", "pthread_attr_destroy"),
}
PYTHON = {"PyErr_CheckSignals", "PyGILState_Ensure", "PyGILState_Release"}
SHOWN: dict[str | None, set[str]] = {
    "ucrtbase.dll": C99,
    "kernel32.dll": {"CreateThread", "CloseHandle", "SwitchToThread", "Sleep"},
    "ntdll.dll": {"__chkstk", "memcpy"},
    None: C99 | PTHREADS | PYTHON | {"bzero", "__bzero", "madvise"},
}
"""What libraries have of what programs may need."""

VECTOR = np.linspace(0.1, 3.0, 1000)
LONG = np.linspace(0.1, 3.0, 20_001)
PROGRAMS: dict[str, tuple[Callable[..., Any], Any]] = {
    "sum": (lambda x: np.sum(np.sin(x) * np.exp(x)), VECTOR),
    "remainders": (lambda x: np.floor_divide(x, 0.3) + x % 0.7 + np.fmod(x, 0.2), VECTOR),
    "powers": (lambda x: np.power(x, x) + np.arctan2(x, 2.0) + np.rint(9 * x), VECTOR),
    "float32": (lambda x: np.floor_divide(x, np.float32(0.3)) + np.tanh(x), np.float32(VECTOR)),
    "float16": (lambda x: (x.astype(np.float16) * 3).astype(np.float64), VECTOR),
    "heap": (lambda x: np.cumsum(np.sort(np.sin(x))[::-1]), LONG),
    # of two matrices: x @ x.T is left to BLAS, of which there is one, that of this system
    "product": (lambda x: x @ (x - 1.0).T, np.cos(np.arange(90_000.0)).reshape(300, 300)),
    "threads": (lambda x: np.tanh(x) * np.exp(-x * x) + np.sin(x), np.linspace(-3, 3, 300_000)),
    "integers": (lambda n: (n // 3) ** 5 % 7, np.arange(-100, 100)),
    "complex": (lambda z: np.exp(z) / z, VECTOR + 1j),
    "loop": (lambda x: lax.scan(lambda c, k: (c * k + np.sin(c), c), x, x)[1].sum(0), VECTOR[:40]),
    "tape": (
        ft.grad(
            lambda x: lax.while_loop(
                lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] * np.sin(c[1])), (0, x)
            )[1].sum()
        ),
        VECTOR,
    ),
}


def written(name: str) -> ProgramText:
    fun, x = PROGRAMS[name]
    (part,) = plan_of(ft.jit(fun).jaxpr(x))
    assert isinstance(part, NativePart)
    return write_program(part.jaxpr)


program_of = functools.cache(written)


@functools.cache
def all_targets() -> None:
    llvm = engine._llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def code_for(text: str, triple: str, cpu: str = "", features: str = "") -> bytes:
    all_targets()
    return compile_object(text, 1, Target(triple, cpu, features, ""))


# what is asked -----------------------------------------------------------------------------------


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], list[Any]]]:
    """Lets the platform and its libraries seem to be others; gives what libraries are opened."""

    def begin(kind: str) -> list[Any]:
        opened: list[Any] = []

        def library(name: str | None) -> Any:
            opened.append(name)
            if name not in SHOWN:
                raise OSError(name)
            return SimpleNamespace(**{each: stand_in(each) for each in SHOWN[name]})

        python = SimpleNamespace(**{each: stand_in(each) for each in PYTHON})
        fake = {**vars(ctypes), "CDLL": library, "pythonapi": python}
        monkeypatch.setattr(system, "ctypes", SimpleNamespace(**fake))
        seen = {**vars(sys), "platform": PLATFORMS[kind]}
        monkeypatch.setattr(system, "sys", SimpleNamespace(**seen))
        return opened

    system._libraries.cache_clear()
    system._function_address.cache_clear()
    yield begin
    system._libraries.cache_clear()
    system._function_address.cache_clear()


@functools.cache
def stand_in(name: str) -> Any:
    return ctypes.CFUNCTYPE(None)(lambda: None)


def address_of(name: str) -> int | None:
    return ctypes.cast(stand_in(name), ctypes.c_void_p).value


def test_functions_of_windows_are_those_of_its_libraries(simulate: Any) -> None:
    opened = simulate("windows")
    assert system.function_address("malloc") == address_of("malloc")
    assert opened == ["ucrtbase.dll", "kernel32.dll", "ntdll.dll"]  # and never ``CDLL(None)``
    for name in ("CreateThread", "__chkstk", "PyErr_CheckSignals"):
        assert system.function_address(name) == address_of(name)
    for name in ("pthread_create", "aligned_alloc"):
        assert system.function_address(name) == 0


def test_functions_of_macos_are_those_of_the_process(simulate: Any) -> None:
    opened = simulate("macos")
    assert system.function_address("pthread_create") == address_of("pthread_create")
    assert opened == [None]


def test_functions_of_c23_have_stand_ins_where_the_library_is_older(simulate: Any) -> None:
    simulate("posix")
    assert system.function_address("roundeven") == address_of("nearbyint")
    assert system.function_address("roundevenf") == address_of("nearbyintf")


@pytest.mark.parametrize("kind", ["windows", "macos", "posix"])
def test_the_system_has_every_function_that_programs_call(kind: str, simulate: Any) -> None:
    texts = [program_of(name).text for name in PROGRAMS] + [runtime_text(kind)]
    names: set[str] = set()
    for triple, cpu in TARGETS[kind]:
        for text in texts:
            defined, undefined = object_symbols(code_for(text, triple, cpu))
            assert defined in (["program"], [TAKE_BLOCK, GIVE_BLOCK, RUN_CHUNKS])
            names.update(undefined)
    simulate(kind)
    ours = {name for name in names if name.startswith(("functrans.", "ft_"))}
    assert ours >= {RUN_CHUNKS, NUM_THREADS, "ft_c_PyErr_CheckSignals"}
    assert {"malloc", "free", "fmod", "realloc"} <= names
    assert not [name for name in names - ours if not system.function_address(name)]


def test_windows_threads_are_asked_for_on_windows(
    simulate: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate("windows")
    assert f"@{RUN_CHUNKS}(" in written("threads").text
    monkeypatch.setitem(SHOWN, "kernel32.dll", set())
    with pytest.raises(CompilationError, match="'CloseHandle'"):
        threads._load_runtime()


def test_abort_is_left_alone_on_windows(simulate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def libc() -> Any:
        raise AssertionError("signals of POSIX")

    simulate("windows")
    monkeypatch.setattr(engine, "_libc", libc)
    assert compile_object("define void @f() { ret void }", 0)


@pytest.mark.parametrize(
    ("kind", "variables", "expected"),
    [
        ("windows", {"LOCALAPPDATA": "local"}, "local/functrans"),
        ("windows", {}, "home/AppData/Local/functrans"),
        ("macos", {"XDG_CACHE_HOME": "xdg"}, "home/Library/Caches/functrans"),
        ("posix", {"XDG_CACHE_HOME": "xdg"}, "xdg/functrans"),
    ],
)
def test_caches_are_where_the_system_has_them(
    kind: str,
    variables: dict[str, str],
    expected: str,
    simulate: Any,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in ("FUNCTRANS_CACHE_DIR", "LOCALAPPDATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    simulate(kind)
    assert cache.default_directory() == tmp_path / expected


@pytest.mark.parametrize(("kind", "is_asked"), [("windows", False), ("macos", True)])
def test_owners_of_files_are_asked_where_there_are_owners(
    kind: str, is_asked: bool, simulate: Any, tmp_path: Path
) -> None:
    tmp_path.chmod(0o777)
    simulate(kind)
    assert (cache._not_own(tmp_path.stat()) is not None) is is_asked


def test_where_there_is_no_machine_code_programs_are_interpreted() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            """
import platform, sys, warnings
from types import SimpleNamespace
import numpy as np
import functrans as ft
from functrans.machine import system
platform.machine = lambda: "ARM64"
system.sys = SimpleNamespace(**{**vars(sys), "platform": "win32"})
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(ft.jit(lambda x: 2 * x)(np.arange(3.0)))
print(*[w.message for w in caught])
system.sys.platform = "linux"
print(system.unsupported_platform())
system.sys.byteorder = "big"
print(system.unsupported_platform())
""",
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.splitlines() == [
        "[0. 2. 4.]",
        "functrans: programs are interpreted: machine code is not made for Windows on ARM",
        "None",
        "64-bit big-endian processes",
    ]


# code that runs ----------------------------------------------------------------------------------

ENTER = """
define i32 @enter(ptr %f, ptr %x, ptr %y, ptr %table) {
  %status = call CONVENTION i32 %f(ptr %x, ptr %y, ptr %table)
  ret i32 %status
}
"""

# Functions of C for code of Windows; the probe of the stack finds all of it there.
FOR_WINDOWS = """
declare ptr @malloc(i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
declare double @fmod(double, double)
declare float @fmodf(float, float)
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memmove(ptr, ptr, i64)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @sched_yield()
declare i32 @usleep(i32)
define win64cc ptr @w.malloc(i64 %n) { %r = call ptr @malloc(i64 %n) ret ptr %r }
define win64cc ptr @w.realloc(ptr %p, i64 %n) { %r = call ptr @realloc(ptr %p, i64 %n) ret ptr %r }
define win64cc void @w.free(ptr %p) { call void @free(ptr %p) ret void }
define win64cc double @w.fmod(double %x, double %y) {
  %r = call double @fmod(double %x, double %y)
  ret double %r
}
define win64cc float @w.fmodf(float %x, float %y) {
  %r = call float @fmodf(float %x, float %y)
  ret float %r
}
define win64cc ptr @w.memcpy(ptr %a, ptr %b, i64 %n) {
  %r = call ptr @memcpy(ptr %a, ptr %b, i64 %n)
  ret ptr %r
}
define win64cc ptr @w.memmove(ptr %a, ptr %b, i64 %n) {
  %r = call ptr @memmove(ptr %a, ptr %b, i64 %n)
  ret ptr %r
}
define void @w.__chkstk() { ret void } ; changes no register

@started = global i64 0
@closed = global i64 0
%thread = type { ptr, ptr, i64 } ; function, argument, handle
define ptr @begin(ptr %thread) {
  %f = load ptr, ptr %thread
  %at = getelementptr %thread, ptr %thread, i64 0, i32 1
  %x = load ptr, ptr %at
  %r = call win64cc i32 %f(ptr %x)
  ret ptr null
}
define win64cc ptr @w.CreateThread(ptr %s, i64 %stack, ptr %f, ptr %x, i32 %flags, ptr %id) {
  %thread = call ptr @malloc(i64 24)
  store %thread zeroinitializer, ptr %thread
  store ptr %f, ptr %thread
  %at = getelementptr %thread, ptr %thread, i64 0, i32 1
  store ptr %x, ptr %at
  %handle = getelementptr %thread, ptr %thread, i64 0, i32 2
  %status = call i32 @pthread_create(ptr %handle, ptr null, ptr @begin, ptr %thread)
  %n = atomicrmw add ptr @started, i64 1 monotonic
  %stack_is_right = icmp eq i64 %stack, 8388608
  %flags_are_right = icmp eq i32 %flags, 65536
  %right = and i1 %stack_is_right, %flags_are_right
  %r = select i1 %right, ptr %thread, ptr null
  ret ptr %r
}
define win64cc void @w.Sleep(i32 %milliseconds) {
  %microseconds = mul i32 %milliseconds, 1000
  %status = call i32 @usleep(i32 %microseconds)
  ret void
}
define win64cc i32 @w.SwitchToThread() {
  %status = call i32 @sched_yield()
  ret i32 1
}
define win64cc i32 @w.CloseHandle(ptr %thread) {
  %at = getelementptr %thread, ptr %thread, i64 0, i32 2
  %handle = load i64, ptr %at
  %n = atomicrmw add ptr @closed, i64 1 monotonic
  %status = call i32 @pthread_detach(i64 %handle)
  ret i32 1
}
"""


class Foreign:
    """Code for another system that runs on this one."""

    def __init__(self, kind: str) -> None:
        self.triple = TARGETS[kind][0][0]
        if kind == "macos" and not ON_X86:
            self.triple = TARGETS[kind][1][0]
        convention = {"windows": "win64cc", "macos": ""}[kind]
        text = ENTER.replace("CONVENTION", convention)
        self.between = load_object(
            compile_object(text + (FOR_WINDOWS if kind == "windows" else ""), 1)
        )
        self.symbols = {
            name.removeprefix("w."): address for name, address in self.between.addresses.items()
        }
        number = ctypes.addressof(threads._count)
        threads.get_num_threads()
        self.runtime = load_object(
            code_for(runtime_text(kind), self.triple),
            {**self.symbols, NUM_THREADS: number},
        )
        for symbol in (RUN_CHUNKS, TAKE_BLOCK, GIVE_BLOCK):
            self.symbols[symbol] = self.runtime.address(symbol)

    def run(self, name: str, x: np.ndarray, result: np.ndarray) -> int:
        program = program_of(name)
        own = engine.target()
        code = code_for(program.text, self.triple, own.cpu, own.features)
        python = {
            symbol: ctypes.cast(getattr(ctypes.pythonapi, symbol[5:]), ctypes.c_void_p).value or 0
            for symbol in object_symbols(code)[1]
            if symbol.startswith("ft_c_")
        }
        loaded = load_object(code, {**python, **self.symbols})
        table = np.array(program.table, np.int64)
        enter = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(
            self.between.address("enter")
        )
        return enter(
            loaded.address("program"), x.ctypes.data, result.ctypes.data, table.ctypes.data
        )

    def number(self, name: str) -> int:
        return ctypes.c_int64.from_address(self.between.address(name)).value


@functools.cache
def foreign(kind: str) -> Foreign:
    return Foreign(kind)


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = threads.get_num_threads()
    threads.set_num_threads(2)
    yield
    threads.set_num_threads(before)


# ``poll_when`` calls Python, in the convention of this system
RUN = [name for name in PROGRAMS if name != "tape"]


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("name", RUN)
@pytest.mark.parametrize("kind", ["windows", "macos"])
def test_code_of_other_systems_computes_the_same(kind: str, name: str) -> None:
    if kind == "windows" and not ON_X86:
        pytest.skip("code for Windows is that of x86-64")
    fun, x = PROGRAMS[name]
    expected = np.asarray(ft.jit(fun)(x))
    result = np.zeros_like(expected)
    assert foreign(kind).run(name, x, result) == 0
    np.testing.assert_array_equal(result, expected)


@pytest.mark.skipif(not ON_X86, reason="code for Windows is that of x86-64")
@pytest.mark.usefixtures("two_threads")
def test_every_thread_of_windows_is_closed() -> None:
    code = foreign("windows")
    x = PROGRAMS["threads"][1]
    before = code.number("started")
    for _ in range(20):
        assert code.run("threads", x, np.empty_like(x)) == 0
    # One for each region, but for those that a thread takes that waits since the region before.
    assert code.number("started") - before <= 20
    assert code.number("closed") == code.number("started") > 0


DEEP = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define void @deep(ptr %sums, i64 %k) {
  %frame = alloca [1048576 x i8]
  call void @llvm.memset.p0.i64(ptr %frame, i8 1, i64 1048576, i1 true)
  %slot = getelementptr i64, ptr %sums, i64 %k
  store i64 %k, ptr %slot
  ret void
}
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_stacks_of_threads_do_not_depend_on_the_system() -> None:
    program = f"""
import ctypes, resource, sys, time
import numpy as np
import functrans as ft
from functrans.compiler import threads
from functrans.machine.engine import compile_object, load_object
resource.setrlimit(resource.RLIMIT_STACK, (64 << 20, resource.RLIM_INFINITY))  # for this thread
ft.set_num_threads(4)
deep = load_object(compile_object({DEEP!r}, 1))
types = ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
run = ctypes.CFUNCTYPE(None, *types)(threads._runtime().address({RUN_CHUNKS!r}))
sums = np.zeros(2_000, np.int64)
for _ in range(20):
    run(deep.address("deep"), sums.ctypes.data, sums.size, 0)
print(sums.sum())
"""
    done = subprocess.run(
        ["sh", "-c", 'ulimit -S -s 256 && exec "$@"', "sh", sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 1_999 * 1_000
