"""Large loops on several threads.

Here: ``write_in_chunks``, which writes a nest as a function of a range of its outermost loop and
calls it for all ranges. Not here: the code that runs them on threads (``emitter.chunks``), how many
threads there are (``compiler.threads``).

The ranges depend on sizes alone, and no sum runs across them, so that results do not depend on the
number of threads.

Layer: ``compiler``.
"""

from __future__ import annotations

import math

from functrans.compiler.elements import may_fail
from functrans.compiler.functions import ChunkFunction, Passed
from functrans.compiler.nests import NestWriter
from functrans.compiler.places import Body
from functrans.compiler.reductions import LANES
from functrans.compiler.storage import Stored
from functrans.core.jaxpr import Var
from functrans.emitter.chunks import run_chunks
from functrans.emitter.types import Value

WORTH_CHUNKS = 2_000_000
"""Work of a nest, in additions, from which threads are worth their start: some 0.3 ms."""
CHUNKS = 32
ROUNDING = 64
"""Ranges begin at multiples of this, so that only the last one has a remainder."""
LARGEST_FRAME_BYTES = 1 << 20
"""Partial results of a range that go onto a thread's stack (``chunks.STACK_BYTES``)."""


def is_parallel(w: Body, writer: NestWriter) -> bool:
    """Whether a nest is large enough, and its outermost loop free of sums and errors."""
    nest = writer.nest
    if not nest.extents or isinstance(w.program, ChunkFunction):
        return False
    if not w.program.routines.on_threads:
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
    return not any(may_fail(w.jaxpr.eqns[number]) for number in nest.equations)


def write_in_chunks(w: Body, writer: NestWriter) -> bool:
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
    function = ChunkFunction(w.whole, name)
    context, env = _pass_on(w, writer, function)
    _write_function(w, writer, function, env, (extent, length))
    b = w.b
    run_chunks(b, name, context, count)
    return True


def _pass_on(
    w: Body, writer: NestWriter, function: ChunkFunction
) -> tuple[Value, dict[Var, Stored]]:
    """Write addresses and numbers into a record that the function reads them from."""
    passed = Passed(w.b, function.b)
    env: dict[Var, Stored] = {}
    read = {
        atom
        for number in writer.nest.equations
        for atom in w.jaxpr.eqns[number].inputs
        if isinstance(atom, Var)
    }
    for var in (*read, *(root.var for root in writer.nest.roots)):
        stored = w.env.get(var)
        if stored is not None and var not in env:
            env[var] = passed.stored(stored)
    return passed.record(w.program.b.arguments[-1]), env


def _write_function(
    w: Body,
    writer: NestWriter,
    function: ChunkFunction,
    env: dict[Var, Stored],
    sizes: tuple[int, int],
) -> None:
    """Write the function of one range."""
    extent, length = sizes
    b = function.b
    body = w.for_chunk(function, env)
    part = NestWriter(body, writer.nest)
    part.explore()
    start = b.mul(b.arguments[1], b.index(length))
    stop = b.intrinsic("smin", b.add(start, b.index(length)), b.index(extent))
    part.limits = (start, stop)
    part.write()
    function.frame.release()
    b.ret()
    function.frame.acquire(b.ret)
    b.finish()
