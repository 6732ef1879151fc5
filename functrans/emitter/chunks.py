"""Functions of a number, called for all numbers on several threads.

Here: ``run_chunks``, the call, and ``runtime_text``, the code that is called. Not here: how many
threads there are (``compiler.threads``), what the functions do (``emitter.routine``,
``compiler.parallel``).

A thread that has done its part waits for another region, while it gives its processor to whoever
wants it, and ends after a tenth of a millisecond or two. Starting a thread takes ten microseconds,
and until it begins some forty pass, which is a tenth of a small matrix product; regions that follow
each other closely do not pay that again. No thread waits for longer, so that beside other processes
none takes time from them.

The caller waits for those that have begun; one that the system has not let begin when all is done
is left alone, and finds nothing to do: on a busy machine nobody waits for a processor that would
not be used. What such a thread reads lies in memory that the last one of them frees; its code is a
module of its own that is never unloaded, as a program may be meanwhile. A forked child has no
threads that wait; one that it would give a region to does not begin, and is left alone as others.
Any number of Python threads may be in a region at the same time; the threads never touch Python, so
that it does not matter who holds its lock. Threads are POSIX's, or those of Windows where there are
no others. Their stacks are of one size everywhere, which systems would give 512 KiB to 8 MiB, or
what ``ulimit`` says.

Layer: ``emitter``.
"""

from __future__ import annotations

from functrans.emitter.builder import Builder, Module
from functrans.emitter.spare import write_spare
from functrans.emitter.types import I1, I32, I64, POINTER, Value

MAX_THREADS = 256
STACK_BYTES = 8 << 20
"""The stack of a thread; functions that run on it may keep an eighth of that on it."""
RUN_CHUNKS = "functrans.run_chunks"
"""The symbol of what runs a region."""
PLACES = 16
"""As many threads may wait for another region."""
WAITING_ROUNDS = 400
"""How often one that waits looks for a region and gives its processor away."""
PATIENCE_ROUNDS = 2000
"""How often the caller does so before it begins to sleep between, when it waits for a thread."""
NAP_MICROSECONDS = 100
NUM_THREADS = "functrans.num_threads"
"""The symbol of how many threads there may be, a 32-bit integer."""


def run_chunks(b: Builder, name: str, context: Value, count: int | Value, first: int = 0) -> None:
    """Call ``void @name(context, k)`` for all ``k`` below ``count``, in any order.

    The caller takes part. Threads take the next number from a counter that they share. Numbers from
    ``first`` on wait until those below are done: whoever finds none of them left gives its
    processor away until the others have finished theirs. Two regions would start threads twice.
    """
    number = count if isinstance(count, Value) else b.index(count)
    arguments = [Value(f"@{name}", POINTER), context, number, b.index(first)]
    b.call(RUN_CHUNKS, arguments, None)


def runtime_text(kind: str = "posix", has_affinity: bool = False) -> str:
    """The module that defines ``void @functrans.run_chunks(function, context, count, first)``.

    It has what else all programs of a process share: the block of memory that is kept.

    Args:
      kind: that of the system: threads are those of Windows there, and POSIX's otherwise.
      has_affinity: whether the C library has ``AFFINITY``: threads begin on other processors.
    """
    module = Module()
    write_spare(module, has_huge_pages=kind == "posix")
    module.globals[NUM_THREADS] = f"@{NUM_THREADS} = external global i32"
    module.globals[_WAITING] = f"{_WAITING} = internal global [{PLACES} x i64] zeroinitializer"
    for own in ("take_chunks", "worker", "wait_for_region", "give_region"):
        module.helpers[f"@functrans.{own}"] = True

    def threads(b: Builder) -> _Threads:
        return _WindowsThreads(b) if kind == "windows" else _PosixThreads(b, has_affinity)

    if has_affinity and kind != "windows":
        module.helpers["@functrans.begin_elsewhere"] = True
        _write_begin_elsewhere(
            Builder(module, "functrans.begin_elsewhere", [POINTER], None, "internal")
        )
    b = Builder(module, "functrans.take_chunks", [POINTER], None, "internal")
    _write_take(b, threads(b))
    b = Builder(module, "functrans.wait_for_region", [], I64, "internal")
    _write_wait(b, threads(b))
    _write_give(Builder(module, "functrans.give_region", [I64], I64, "internal"))
    _write_worker(Builder(module, "functrans.worker", [POINTER], POINTER, "internal"))
    b = Builder(module, RUN_CHUNKS, [POINTER, POINTER, I64, I64], None)
    _write_run_chunks(b, threads(b))
    return str(module)


_HEAD, _SLOT = 64, 16
"""Bytes of a region: function, context, count, next number, users, how many come first, how many of
these are done; then per thread its state and the region."""
_HAS_BEGUN, _IS_LEFT, _IS_DONE = 1, 2, 3
"""States of a thread in a region, after 0: it takes chunks, it need not begin, it has ended."""
_WAITING = "@functrans.waiting"
"""Places of threads that wait: 0 free, 1 taken, else the address of a slot that it is to begin."""
_NULL = Value("null", POINTER)
AFFINITY = ("sched_getaffinity", "sched_getcpu", "pthread_attr_setaffinity_np")
"""Functions by which threads are kept off a processor."""
_MASK_WORDS = 16
"""A set of processors, of 64 bits each."""


class _PosixThreads:
    """How threads are started and waited for: pthreads.

    A thread does not begin on the processor of who starts it. Linux would leave it there where each
    of the others has one thread to run, if only one that waits, as those of BLAS libraries do for a
    while, and gives it away each time: the caller would do all the work, and the thread nothing.

    Reference: pthread_attr_setaffinity_np(3), sched_getcpu(3), cpu_set_t of the GNU C library.
    """

    def __init__(self, b: Builder, has_affinity: bool) -> None:
        self._b = b
        self._has_affinity = has_affinity

    def begin(self) -> None:
        """Before the first one is started."""
        self._attributes = self._b.alloca_bytes(128)  # pthread_attr_t, of 56 to 64 bytes
        self._b.call("pthread_attr_init", [self._attributes], I32)
        size = self._b.index(STACK_BYTES)
        self._b.call("pthread_attr_setstacksize", [self._attributes, size], I32)
        self._handle = self._b.alloca(I64, align=8)

    def start(self, function: Value, argument: Value) -> Value:
        """Start one that nobody waits for; whether that worked."""
        b = self._b
        if self._has_affinity:
            b.call("functrans.begin_elsewhere", [self._attributes], None)
        operands = [self._handle, self._attributes, function, argument]
        is_started = b.icmp("eq", b.call("pthread_create", operands, I32), Value("0", I32))
        with b.when(is_started, "started"):
            b.call("pthread_detach", [b.load(I64, self._handle, 8)], I32)
        return is_started

    def end(self) -> None:
        """After the last one was started."""
        self._b.call("pthread_attr_destroy", [self._attributes], I32)

    def give_way(self) -> None:
        """Let another one have this processor."""
        self._b.call("sched_yield", [], I32)

    def nap(self) -> None:
        """Sleep for a moment."""
        self._b.call("usleep", [Value(str(NAP_MICROSECONDS), I32)], I32)


def _write_begin_elsewhere(b: Builder) -> None:
    """Attributes of threads that begin on any processor of the caller but the one it runs on."""
    (attributes,) = b.arguments
    size = b.index(8 * _MASK_WORDS)
    mask = b.alloca_bytes(8 * _MASK_WORDS)
    found = b.call("sched_getaffinity", [Value("0", I32), size, mask], I32)
    own = b.convert("sext", b.call("sched_getcpu", [], I32), I64)
    is_known = b.and_(
        b.icmp("eq", found, Value("0", I32)), b.icmp("ult", own, b.index(64 * _MASK_WORDS))
    )
    with b.when(is_known, "known"):
        place = b.element(mask, b.udiv(own, b.index(64)), I64)
        bit = b.emit(I64, f"shl i64 1, {b.urem(own, b.index(64)).text}")
        others = b.and_(b.load(I64, place, 8), b.emit(I64, f"xor i64 {bit.text}, -1"))
        b.store(others, place, 8)
        words = [b.load(I64, b.offset(mask, b.index(8 * i)), 8) for i in range(_MASK_WORDS)]
        some = words[0]
        for word in words[1:]:
            some = b.emit(I64, f"or i64 {some.text}, {word.text}")
        with b.when(b.icmp("ne", some, b.index(0)), "others"):
            b.call("pthread_attr_setaffinity_np", [attributes, size, mask], I32)
    b.ret()
    b.finish()


class _WindowsThreads:
    """The same with the functions of Windows.

    Reference: Windows API, processthreadsapi.h and synchapi.h.
    """

    _STACK_SIZE_PARAM_IS_A_RESERVATION = 0x00010000

    def __init__(self, b: Builder) -> None:
        self._b = b

    def begin(self) -> None:
        """Before the first one is started."""

    def start(self, function: Value, argument: Value) -> Value:
        """Start one that nobody waits for; whether that worked."""
        b = self._b
        flags = b.const(I32, self._STACK_SIZE_PARAM_IS_A_RESERVATION)
        operands = [_NULL, b.index(STACK_BYTES), function, argument, flags, _NULL]
        thread = b.call("CreateThread", operands, POINTER)
        is_started = b.icmp("ne", thread, _NULL)
        with b.when(is_started, "started"):
            b.call("CloseHandle", [thread], I32)
        return is_started

    def end(self) -> None:
        """After the last one was started."""

    def give_way(self) -> None:
        """Let another one have this processor."""
        self._b.call("SwitchToThread", [], I32)

    def nap(self) -> None:
        """Sleep for a moment."""
        self._b.call("Sleep", [Value("1", I32)], None)


_Threads = _PosixThreads | _WindowsThreads


def _write_run_chunks(b: Builder, threads: _Threads) -> None:
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
    threads.begin()
    with b.loop(b.index(0), wanted) as number:
        slot = _slot_of(b, job, number)
        b.store(b.index(0), slot, 8)
        b.store(job, b.offset(slot, b.index(8)), 8)
        _atomically(b, "add", fields[4], 1)
        _give_or_start(b, threads, slot, fields[4])
    threads.end()
    b.call("functrans.take_chunks", [job], None)
    with b.loop(b.index(0), wanted) as number:
        slot = _slot_of(b, job, number)
        state = _atomically(b, "xchg", slot, _IS_LEFT)
        with b.when(b.icmp("eq", state, b.index(_HAS_BEGUN)), "wait"):
            _write_until_done(b, slot, threads)
    with b.when(b.not_(is_own), "release"):
        _release(b, job)
    b.ret()
    b.finish()


def _give_or_start(b: Builder, threads: _Threads, slot: Value, users: Value) -> None:
    """Give a slot to a thread that waits, or to a new one; else others do its work."""
    number = b.emit(I64, f"ptrtoint ptr {slot.text} to i64")
    is_given = b.call("functrans.give_region", [number], I64)
    with b.when(b.icmp("eq", is_given, b.index(0)), "none_waits"):
        is_started = threads.start(Value("@functrans.worker", POINTER), slot)
        with b.when(b.not_(is_started), "failed"):
            _atomically(b, "xchg", slot, _IS_DONE)
            _atomically(b, "sub", users, 1)


def _slot_of(b: Builder, job: Value, number: Value) -> Value:
    """The slot of a thread in a region."""
    return b.offset(job, b.add(b.index(_HEAD), b.mul(number, b.index(_SLOT))))


def _write_until_done(b: Builder, slot: Value, threads: _Threads) -> None:
    """Wait for a thread: its last chunk may be a short one or a long one."""
    rounds = b.alloca(I64, align=8)
    b.store(b.index(0), rounds, 8)
    head, later, way, nap, done = map(b.label, ("waits", "later", "way", "nap", "has_ended"))
    b.branch(head)
    b.start(head)
    state = _observed(b, slot)
    known = b.load(I64, rounds, 8)
    b.store(b.add(known, b.index(1)), rounds, 8)
    b.branch_if(b.icmp("eq", state, b.index(_IS_DONE)), done, later)
    b.start(later)
    b.branch_if(b.icmp("sgt", known, b.index(PATIENCE_ROUNDS)), nap, way)
    b.start(way)
    threads.give_way()
    b.branch(head)
    b.start(nap)
    threads.nap()
    b.branch(head)
    b.start(done)


def _atomically(b: Builder, operation: str, place: Value, operand: int) -> Value:
    """Change a number in memory; gives the one before."""
    return b.emit(I64, f"atomicrmw {operation} ptr {place.text}, i64 {operand} acq_rel")


def _observed(b: Builder, place: Value) -> Value:
    """What another thread may just have written."""
    return b.emit(I64, f"load atomic i64, ptr {place.text} acquire, align 8")


def _exchanged(b: Builder, place: Value, expected: int, new: str) -> Value:
    """Put a number into memory where another one is; whether it was."""
    operands = f"ptr {place.text}, i64 {expected}, i64 {new} acq_rel monotonic"
    pair = b.emit(I64, f"cmpxchg {operands}")
    return b.emit(I1, f"extractvalue {{ i64, i1 }} {pair.text}, 1")


def _release(b: Builder, job: Value) -> None:
    """Give up a region; the last one that does frees its memory."""
    users = _atomically(b, "sub", b.offset(job, b.index(32)), 1)
    with b.when(b.icmp("eq", users, b.index(1)), "last"):
        b.call("free", [job], None)


def _write_worker(b: Builder) -> None:
    """A thread: it takes chunks, unless all were done before it began, and waits for more."""
    head, done = b.label("region"), b.label("no_more")
    first = b.emit(I64, f"ptrtoint ptr {b.arguments[0].text} to i64")
    place = b.alloca(I64, align=8)
    b.store(first, place, 8)
    b.branch(head)
    b.start(head)
    slot = b.emit(POINTER, f"inttoptr i64 {b.load(I64, place, 8).text} to ptr")
    job = b.load(POINTER, b.offset(slot, b.index(8)), 8)
    with b.when(b.icmp("eq", _atomically(b, "xchg", slot, _HAS_BEGUN), b.index(0)), "begun"):
        b.call("functrans.take_chunks", [job], None)
        _atomically(b, "xchg", slot, _IS_DONE)
    _release(b, job)
    following = b.call("functrans.wait_for_region", [], I64)
    b.store(following, place, 8)
    b.branch_if(b.icmp("eq", following, b.index(0)), done, head)
    b.start(done)
    b.ret(_NULL)
    b.finish()


def _place_of(b: Builder, number: Value) -> Value:
    return b.element(Value(_WAITING, POINTER), number, I64)


def _write_give(b: Builder) -> None:
    """Give a slot to a thread that waits; whether there is one."""
    with b.loop(b.index(0), b.index(PLACES)) as number:
        place = _place_of(b, number)
        with b.when(_exchanged(b, place, 1, b.arguments[0].text), "given"):
            b.ret(b.index(1))
            b.start(b.label("unreached"))
    b.ret(b.index(0))
    b.finish()


def _write_wait(b: Builder, threads: _Threads) -> None:
    """Wait for a slot in a free place, for a while; 0 if none comes, or no place is free."""
    with b.loop(b.index(0), b.index(PLACES)) as number:
        place = _place_of(b, number)
        with b.when(_exchanged(b, place, 0, "1"), "placed"):
            with b.loop(b.index(0), b.index(WAITING_ROUNDS)):
                threads.give_way()
                _return_given(b, place, b.icmp("ne", _observed(b, place), b.index(1)))
            _return_given(b, place, b.not_(_exchanged(b, place, 1, "0")))  # at the last moment
            b.ret(b.index(0))
            b.start(b.label("unreached"))
    b.ret(b.index(0))
    b.finish()


def _return_given(b: Builder, place: Value, is_given: Value) -> None:
    """Leave a place and return what lies in it, if a slot was given."""
    with b.when(is_given, "came"):
        b.ret(_atomically(b, "xchg", place, 0))
        b.start(b.label("unreached"))


def _write_take(b: Builder, threads: _Threads) -> None:
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
    known = _observed(b, finished)
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
