"""Functions of a number, called for all numbers on several threads.

Here: ``run_chunks``, the call, and ``runtime_text``, the code that is called. Not here: how many
threads there are (``compiler.threads``), what the functions do (``emitter.routine``,
``compiler.parallel``).

Threads live as long as the region: starting one takes some ten microseconds, which regions that are
worth it do not notice. The caller waits for those that have begun; one that the system has not let
begin when all is done is left alone, and finds nothing to do: on a busy machine nobody waits for a
processor that would not be used. What such a thread reads lies in memory that the last one of them
frees; its code is a module of its own that is never unloaded, as a program may be meanwhile. There
is no pool, so nothing is left behind for a forked child to miss, and any number of Python threads
may be in a region at the same time; the threads never touch Python, so that it does not matter who
holds its lock. Threads are POSIX's, or those of Windows where there are no others. Their stacks are
of one size everywhere, which systems would give 512 KiB to 8 MiB, or what ``ulimit`` says.

Layer: ``emitter``.
"""

from __future__ import annotations

from functrans.emitter.builder import Builder, Module
from functrans.emitter.types import I32, I64, POINTER, Value

MAX_THREADS = 256
STACK_BYTES = 8 << 20
"""The stack of a thread; functions that run on it may keep an eighth of that on it."""
RUN_CHUNKS = "functrans.run_chunks"
"""The symbol of what runs a region."""
NUM_THREADS = "functrans.num_threads"
"""The symbol of how many threads there may be, a 32-bit integer."""


def run_chunks(b: Builder, name: str, context: Value, count: int, first: int = 0) -> None:
    """Call ``void @name(context, k)`` for all ``k`` below ``count``, in any order.

    The caller takes part. Threads take the next number from a counter that they share. Numbers from
    ``first`` on wait until those below are done: whoever finds none of them left gives its
    processor away until the others have finished theirs. Two regions would start threads twice.
    """
    arguments = [Value(f"@{name}", POINTER), context, b.index(count), b.index(first)]
    b.call(RUN_CHUNKS, arguments, None)


def runtime_text(is_windows: bool = False) -> str:
    """The module that defines ``void @functrans.run_chunks(function, context, count, first)``.

    Args:
      is_windows: whether threads are those of Windows; they are POSIX's otherwise.
    """
    module = Module()
    module.globals[NUM_THREADS] = f"@{NUM_THREADS} = external global i32"
    for own in ("functrans.take_chunks", "functrans.worker"):
        module.helpers[f"@{own}"] = True
    threads = _WindowsThreads if is_windows else _PosixThreads
    b = Builder(module, "functrans.take_chunks", [POINTER], None, "internal")
    _write_take(b, threads(b))
    _write_worker(Builder(module, "functrans.worker", [POINTER], POINTER, "internal"))
    b = Builder(module, RUN_CHUNKS, [POINTER, POINTER, I64, I64], None)
    _write_run_chunks(b, threads(b))
    return str(module)


_HEAD, _SLOT = 64, 16
"""Bytes of a region: function, context, count, next number, users, how many come first, how many of
these are done; then per thread its state and the region."""


_NULL = Value("null", POINTER)


class _PosixThreads:
    """How threads are started and waited for: pthreads."""

    def __init__(self, b: Builder) -> None:
        self._b = b

    def begin(self) -> None:
        """Before the first one is started."""
        self._attributes = self._b.alloca_bytes(128)  # pthread_attr_t, of 56 to 64 bytes
        self._b.call("pthread_attr_init", [self._attributes], I32)
        size = self._b.index(STACK_BYTES)
        self._b.call("pthread_attr_setstacksize", [self._attributes, size], I32)

    def start(self, handle: Value, function: Value, argument: Value) -> Value:
        """Start one and store its handle; whether that worked."""
        operands = [handle, self._attributes, function, argument]
        return self._b.icmp("eq", self._b.call("pthread_create", operands, I32), Value("0", I32))

    def end(self) -> None:
        """After the last one was started."""
        self._b.call("pthread_attr_destroy", [self._attributes], I32)

    def join(self, handle: Value) -> None:
        """Wait for one."""
        self._b.call("pthread_join", [self._b.load(I64, handle, 8), _NULL], I32)

    def leave(self, handle: Value) -> None:
        """Let one go."""
        self._b.call("pthread_detach", [self._b.load(I64, handle, 8)], I32)

    def give_way(self) -> None:
        """Let another one have this processor."""
        self._b.call("sched_yield", [], I32)


class _WindowsThreads:
    """The same with the functions of Windows.

    Reference: Windows API, processthreadsapi.h and synchapi.h.
    """

    _STACK_SIZE_PARAM_IS_A_RESERVATION = 0x00010000
    _INFINITE = -1

    def __init__(self, b: Builder) -> None:
        self._b = b

    def begin(self) -> None:
        """Before the first one is started."""

    def start(self, handle: Value, function: Value, argument: Value) -> Value:
        """Start one and store its handle; whether that worked."""
        b = self._b
        flags = b.const(I32, self._STACK_SIZE_PARAM_IS_A_RESERVATION)
        operands = [_NULL, b.index(STACK_BYTES), function, argument, flags, _NULL]
        thread = b.call("CreateThread", operands, POINTER)
        b.store(thread, handle, 8)
        return b.icmp("ne", thread, _NULL)

    def end(self) -> None:
        """After the last one was started."""

    def join(self, handle: Value) -> None:
        """Wait for one."""
        b = self._b
        thread = b.load(POINTER, handle, 8)
        b.call("WaitForSingleObject", [thread, b.const(I32, self._INFINITE)], I32)
        b.call("CloseHandle", [thread], I32)

    def leave(self, handle: Value) -> None:
        """Let one go."""
        self._b.call("CloseHandle", [self._b.load(POINTER, handle, 8)], I32)

    def give_way(self) -> None:
        """Let another one have this processor."""
        self._b.call("SwitchToThread", [], I32)


def _write_run_chunks(b: Builder, threads: _PosixThreads | _WindowsThreads) -> None:
    function, context, count, before = b.arguments
    wanted = b.convert("sext", b.load(I32, Value(f"@{NUM_THREADS}", POINTER), 4), I64)
    wanted = b.intrinsic("smin", wanted, count)
    wanted = b.sub(b.intrinsic("smin", wanted, b.index(MAX_THREADS)), b.index(1))
    own = b.alloca_bytes(_HEAD)
    place = b.alloca(POINTER, align=8)
    b.store(own, place, 8)
    with b.when(b.icmp("sgt", wanted, b.index(0)), "shared"):
        size = b.add(b.index(_HEAD), b.mul(wanted, b.index(_SLOT)))
        b.store(b.call("malloc", [size], POINTER), place, 8)
    shared = b.load(POINTER, place, 8)
    is_own = b.or_(b.icmp("eq", shared, own), b.icmp("eq", shared, _NULL))
    job = b.select(is_own, own, shared)
    wanted = b.select(is_own, b.index(0), wanted)
    fields = [b.offset(job, b.index(8 * i)) for i in range(7)]
    values = (function, context, count, b.index(0), b.index(1), before, b.index(0))
    for value, field in zip(values, fields, strict=True):
        b.store(value, field, 8)
    handles, slots = (b.alloca(I64, MAX_THREADS, align=8) for _ in range(2))
    started = b.alloca(I64, align=8)
    b.store(b.index(0), started, 8)
    address = Value("@functrans.worker", POINTER)
    threads.begin()
    with b.loop(b.index(0), wanted) as number:
        step = b.add(b.index(_HEAD), b.mul(number, b.index(_SLOT)))
        slot = b.offset(job, step)
        b.store(b.index(0), slot, 8)
        b.store(job, b.offset(slot, b.index(8)), 8)
        known = b.load(I64, started, 8)
        _atomically(b, "add", fields[4], 1)
        handle = b.element(handles, known, I64)
        is_started = threads.start(handle, address, slot)
        with b.when(is_started, "started"):
            b.store(step, b.element(slots, known, I64), 8)
            b.store(b.add(known, b.index(1)), started, 8)
        with b.when(b.not_(is_started), "failed"):  # its work is left to the others
            _atomically(b, "sub", fields[4], 1)
    threads.end()
    b.call("functrans.take_chunks", [job], None)
    with b.loop(b.index(0), b.load(I64, started, 8)) as number:
        handle = b.element(handles, number, I64)
        slot = b.offset(job, b.load(I64, b.element(slots, number, I64), 8))
        has_begun = b.icmp("eq", _atomically(b, "xchg", slot, 2), b.index(1))
        with b.when(has_begun, "wait"):
            threads.join(handle)
        with b.when(b.not_(has_begun), "leave"):
            threads.leave(handle)
    with b.when(b.not_(is_own), "release"):
        _release(b, job)
    b.ret()
    b.finish()


def _atomically(b: Builder, operation: str, place: Value, operand: int) -> Value:
    """Change a number in memory; gives the one before."""
    return b.emit(I64, f"atomicrmw {operation} ptr {place.text}, i64 {operand} acq_rel")


def _release(b: Builder, job: Value) -> None:
    """Give up a region; the last one that does frees its memory."""
    users = _atomically(b, "sub", b.offset(job, b.index(32)), 1)
    with b.when(b.icmp("eq", users, b.index(1)), "last"):
        b.call("free", [job], None)


def _write_worker(b: Builder) -> None:
    """A thread: it takes chunks, unless all were done before it began."""
    slot = b.arguments[0]
    job = b.load(POINTER, b.offset(slot, b.index(8)), 8)
    with b.when(b.icmp("eq", _atomically(b, "xchg", slot, 1), b.index(0)), "begun"):
        b.call("functrans.take_chunks", [job], None)
    _release(b, job)
    b.ret(_NULL)
    b.finish()


def _write_take(b: Builder, threads: _PosixThreads | _WindowsThreads) -> None:
    """Call the function for one number after the other, until there is none."""
    job = b.arguments[0]
    fields = [b.offset(job, b.index(8 * i)) for i in (0, 1, 2, 5)]
    called, argument = (b.load(POINTER, field, 8) for field in fields[:2])
    last, before = (b.load(I64, field, 8) for field in fields[2:])
    following, finished = (b.offset(job, b.index(8 * i)) for i in (3, 6))
    labels = ("next", "chosen", "early", "late", "waiting", "chunk", "done")
    head, chosen, early, late, waiting, body, done = map(b.label, labels)
    b.branch(head)
    b.start(head)
    number = b.emit(I64, f"atomicrmw add ptr {following.text}, i64 1 monotonic")
    b.branch_if(b.icmp("slt", number, last), chosen, done)
    call = f"call void {called.text}(ptr {argument.text}, i64 {number.text})"
    b.start(chosen)
    b.branch_if(b.icmp("slt", number, before), early, late)
    b.start(early)
    b.statement(call)
    _atomically(b, "add", finished, 1)
    b.branch(head)
    b.start(late)
    known = b.emit(I64, f"load atomic i64, ptr {finished.text} acquire, align 8")
    b.branch_if(b.icmp("slt", known, before), waiting, body)
    b.start(waiting)
    threads.give_way()
    b.branch(late)
    b.start(body)
    b.statement(call)
    b.branch(head)
    b.start(done)
    b.ret()
    b.finish()
