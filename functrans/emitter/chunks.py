"""Functions of a number, called for all numbers on several threads.

Here: ``run_chunks`` and the code that it calls. Not here: how many threads there are
(``compiler.threads``), what the functions do (``emitter.routine``, ``compiler.parallel``).

Threads live as long as the region: starting one takes some ten microseconds, which regions that are
worth it do not notice. There is no pool, so nothing is left behind for a forked child to miss, and
any number of Python threads may be in a region at the same time; the threads never touch Python, so
that it does not matter who holds its lock.

Layer: ``emitter``.
"""

from __future__ import annotations

from functrans.emitter.builder import Builder
from functrans.emitter.types import I32, I64, POINTER, Value

MAX_THREADS = 256


def run_chunks(b: Builder, name: str, context: Value, count: int) -> None:
    """Call ``void @name(context, k)`` for all ``k`` below ``count``, in any order.

    The caller takes part. Threads take the next number from a counter that they share.
    """
    function = Value(f"@{name}", POINTER)
    b.helper("functrans.run_chunks", [function, context, b.index(count)], None, _write_run_chunks)


def _write_run_chunks(b: Builder) -> None:
    function, context, count = b.arguments
    job = b.alloca_bytes(32)
    fields = [b.offset(job, b.index(8 * i)) for i in range(4)]
    for value, field in zip((function, context, count, b.index(0)), fields, strict=True):
        b.store(value, field, 8)
    b.module.globals.setdefault(
        "@functrans.num_threads", "@functrans.num_threads = external global i32"
    )
    wanted = b.convert("sext", b.load(I32, Value("@functrans.num_threads", POINTER), 4), I64)
    wanted = b.intrinsic("smin", wanted, count)
    wanted = b.sub(b.intrinsic("smin", wanted, b.index(MAX_THREADS)), b.index(1))
    handles = b.alloca(I64, MAX_THREADS, align=8)
    started = b.alloca(I64, align=8)
    b.store(b.index(0), started, 8)
    worker = Builder(b.module, "functrans.worker", [POINTER], POINTER, "internal")
    _write_worker(worker)
    b.module.helpers["@functrans.worker"] = True
    address = Value("@functrans.worker", POINTER)
    with b.loop(b.index(0), wanted) as number:
        handle = b.element(handles, number, I64)
        status = b.call("pthread_create", [handle, Value("null", POINTER), address, job], I32)
        with b.when(b.icmp("eq", status, b.const(I32, 0)), "started"):
            # a thread that did not start leaves its work to the others
            known = b.load(I64, started, 8)
            b.store(b.load(I64, handle, 8), b.element(handles, known, I64), 8)
            b.store(b.add(known, b.index(1)), started, 8)
    b.call("functrans.worker", [job], POINTER)
    with b.loop(b.index(0), b.load(I64, started, 8)) as number:
        handle = b.load(I64, b.element(handles, number, I64), 8)
        b.call("pthread_join", [handle, Value("null", POINTER)], I32)
    b.ret()


def _write_worker(b: Builder) -> None:
    job = b.arguments[0]
    function, context, count, following = (b.offset(job, b.index(8 * i)) for i in range(4))
    called = b.load(POINTER, function, 8)
    argument = b.load(POINTER, context, 8)
    last = b.load(I64, count, 8)
    head, body, done = b.label("next"), b.label("chunk"), b.label("done")
    b.branch(head)
    b.start(head)
    number = b.emit(I64, f"atomicrmw add ptr {following.text}, i64 1 monotonic")
    b.branch_if(b.icmp("slt", number, last), body, done)
    b.start(body)
    b.statement(f"call void {called.text}(ptr {argument.text}, i64 {number.text})")
    b.branch(head)
    b.start(done)
    b.ret(Value("null", POINTER))
    b.finish()
