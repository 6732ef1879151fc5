"""Large loops on several threads.

Here: ``write_in_chunks``, which writes a nest as a function of a range of its outermost loop and
calls it for all ranges, and the code that runs them on threads. Not here: how many threads there
are (``compiler.threads``).

The ranges depend on sizes alone, and no sum runs across them, so that results do not depend on the
number of threads. Threads live as long as the region: starting one takes some ten microseconds,
which regions of this size do not notice. There is no pool, so nothing is left behind for a forked
child to miss, and any number of Python threads may be in a region at the same time; the threads
never touch Python, so that it does not matter who holds its lock.

Layer: ``compiler``.
"""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

from functrans.compiler.reductions import LANES
from functrans.compiler.storage import Frame, Stored
from functrans.emitter.builder import Builder, Module
from functrans.emitter.routine import Routines
from functrans.emitter.types import I32, I64, POINTER, Value
from functrans.ir.jaxpr import Var
from functrans.ir.lowering import Pointwise

if TYPE_CHECKING:
    from functrans.compiler.bodies import BodyWriter
    from functrans.compiler.nests import NestWriter

WORTH_CHUNKS = 2_000_000
"""Work of a nest, in additions, from which threads are worth their start: some 0.3 ms."""
CHUNKS = 32
ROUNDING = 64
"""Ranges begin at multiples of this, so that only the last one has a remainder."""
LARGEST_FRAME_BYTES = 1 << 20
"""Partial results of a range that go onto a thread's stack, which has eight times as much."""
MAX_THREADS = 256


class ChunkFunction:
    """A function that does one range of a nest; stands for the program in it."""

    def __init__(self, outer: Any, name: str) -> None:
        self.outer = outer
        self.module: Module = outer.module
        self.b = Builder(self.module, name, [POINTER, I64], None, "internal")
        self.frame = Frame(self.b, only_stack=True)
        self.routines = Routines(self.b, self.frame.scratch, outer.fail_when, outer.symbol)
        self.b.take_parameters(Value("%parameters", POINTER))

    def at_line(self, source: Any) -> None:
        """Nothing here can fail, so that lines do not matter."""


def is_parallel(w: BodyWriter, writer: NestWriter) -> bool:
    """Whether a nest is large enough, and its outermost loop free of sums and errors."""
    nest = writer.nest
    if os.name == "nt" or not nest.extents or isinstance(w.program, ChunkFunction):
        return False
    if writer.cost * math.prod(nest.extents) < WORTH_CHUNKS or nest.extents[0] < 2:
        return False
    for root in nest.roots:
        if root.reduced is not None:
            loop = root.loops.index(root.reduced)
            inside = math.prod(nest.extents[loop + 1 :]) * math.prod(
                n for axis, n in enumerate(root.space) if axis not in root.loops
            )
            size_bytes = inside * LANES * 4 * root.var.aval.dtype.itemsize
            if loop == 0 or size_bytes > LARGEST_FRAME_BYTES:
                return False
    return not any(_may_fail(w.jaxpr.eqns[number]) for number in nest.equations)


def _may_fail(eqn: Any) -> bool:
    """Whether an elementwise equation can end the program: integer powers can."""
    lower = eqn.primitive.lower
    return (
        isinstance(lower, Pointwise)
        and eqn.primitive.name == "power"
        and eqn.outputs[0].aval.dtype.kind in "iu"
    )


def write_in_chunks(w: BodyWriter, writer: NestWriter) -> bool:
    """Write a nest as chunks on threads, if it is worth it; otherwise nothing is written."""
    if not is_parallel(w, writer):
        return False
    nest = writer.nest
    for root in nest.roots:
        w.declare(root)
    extent = nest.extents[0]
    length = -(-extent // CHUNKS)
    if extent >= CHUNKS * ROUNDING:
        length = -(-length // ROUNDING) * ROUNDING
    count = -(-extent // length)
    name = f"chunk{w.program.module.next_number()}"
    function = ChunkFunction(w.program, name)
    context, env = _pass_on(w, writer, function)
    _write_function(w, writer, function, env, (extent, length))
    b = w.b
    declared = Value(f"@{name}", POINTER)
    b.helper("functrans.run_chunks", [declared, context, b.index(count)], None, _write_run_chunks)
    return True


def _pass_on(
    w: BodyWriter, writer: NestWriter, function: ChunkFunction
) -> tuple[Value, dict[Var, Stored]]:
    """Write addresses and numbers into a record that the function reads them from."""
    b, inner = w.b, function.b
    values: list[Value] = []
    env: dict[Var, Stored] = {}

    def across(value: Value) -> Value:
        if value.text[0] not in "%":
            return value  # a constant
        position = len(values)
        values.append(value)
        slot = inner.offset(inner.arguments[0], inner.index(64 * position))
        return inner.load(value.type, slot, 8)

    read = {
        atom
        for number in writer.nest.equations
        for atom in w.jaxpr.eqns[number].inputs
        if isinstance(atom, Var)
    }
    for var in (*read, *(root.var for root in writer.nest.roots)):
        stored = w.env.get(var)
        if stored is None or var in env:
            continue
        copy = Stored(stored.shape, stored.dtype)
        copy.pointer = across(stored.pointer) if stored.pointer is not None else None
        if stored.pointer is None or stored.size == 1:
            for flat, number in stored.elements.items():
                copy.elements[flat] = type(number)(number.dtype, tuple(map(across, number.parts)))
        env[var] = copy
    values.append(w.program.b.arguments[-1])
    context = b.alloca_bytes(64 * len(values))
    function.b.load_first("%parameters", 64 * (len(values) - 1))
    for position, value in enumerate(values):
        b.store(value, b.offset(context, b.index(64 * position)), 8)
    return context, env


def _write_function(
    w: BodyWriter,
    writer: NestWriter,
    function: ChunkFunction,
    env: dict[Var, Stored],
    sizes: tuple[int, int],
) -> None:
    """Write the function of one range."""
    extent, length = sizes
    b = function.b
    body = w.for_chunk(function, env)
    part = type(writer)(body, writer.nest)
    part.explore()
    start = b.mul(b.arguments[1], b.index(length))
    stop = b.intrinsic("smin", b.add(start, b.index(length)), b.index(extent))
    part.limits = (start, stop)
    part.write()
    function.frame.release()
    b.ret()
    function.frame.acquire(None)
    b.finish()


# threads -----------------------------------------------------------------------------------------


def _write_run_chunks(b: Builder) -> None:
    """``run_chunks(function, context, count)``: call ``function(context, k)`` for all ``k``.

    The caller takes part. Threads take the next number from a counter that they share.
    """
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
