"""Large blocks of temporary memory, of which one is kept for the next call.

Here: ``take_block`` and ``give_block``, the calls, and ``write_spare``, the code that is called.
Not here: what lies where in a block (``compiler.storage``).

A system that gives memory back zeroes every page of it anew: 10 ms for 64 MB where pages are huge,
50 where they are not, which is more than what most programs compute on it. So that memory is asked
for in huge pages where they must be asked for (Linux), and the last block that was given back, of
at most ``KEPT_BYTES``, waits for the next program that needs no larger one. In front of a block lie
its size and the address that ``free`` takes.

Layer: ``emitter``. Reference: Linux, madvise(2).
"""

from __future__ import annotations

from functrans.emitter.builder import Builder, Module
from functrans.emitter.types import I32, I64, POINTER, Value

LARGE_BYTES = 1 << 20
"""Blocks of this size and more are taken so: smaller ones stay with the C library."""
KEPT_BYTES = 64 << 20
"""Most bytes that wait for another program."""
TAKE_BLOCK, GIVE_BLOCK = "functrans.take_block", "functrans.give_block"
"""Symbols of the two."""

_HUGE_PAGE_BYTES = 2 << 20
_MADV_HUGEPAGE = 14
_PAGE_BYTES = 4096
_HEAD = 128
"""Bytes in front of a block, at most, and to the boundary that it begins at."""
_ALIGNMENT = 64
_KEPT = "@functrans.kept_block"
_NULL = Value("null", POINTER)


def take_block(b: Builder, size: Value) -> Value:
    """Memory of a size at a boundary of 64 bytes; null if there is none."""
    return b.call(TAKE_BLOCK, [size], POINTER)


def give_block(b: Builder, block: Value) -> None:
    """Give memory back that was taken."""
    b.call(GIVE_BLOCK, [block], None)


def write_spare(module: Module, has_huge_pages: bool) -> None:
    """Define both in a module.

    Args:
      module: of the code that all programs of a process share.
      has_huge_pages: whether ``madvise`` gives pages of 2 MB.
    """
    module.globals[_KEPT] = f"{_KEPT} = internal global ptr null"
    _write_take(Builder(module, TAKE_BLOCK, [I64], POINTER), has_huge_pages)
    _write_give(Builder(module, GIVE_BLOCK, [POINTER], None))


def _write_take(b: Builder, has_huge_pages: bool) -> None:
    size = b.arguments[0]
    kept = _exchanged(b, _NULL)
    with b.when(b.icmp("ne", kept, _NULL), "kept"):
        with b.when(b.icmp("sge", _size_of(b, kept), size), "fits"):
            b.ret(kept)
            b.start(b.label("unreached"))
        _free(b, kept)
    whole = b.add(size, b.index(_HEAD))
    start = b.call("malloc", [whole], POINTER)
    with b.when(b.icmp("eq", start, _NULL), "lost"):
        b.ret(_NULL)
        b.start(b.label("unreached"))
    if has_huge_pages:
        with b.when(b.icmp("sge", size, b.index(2 * _HUGE_PAGE_BYTES)), "huge"):
            page = b.boundary(b.offset(start, b.index(_PAGE_BYTES - 1)), _PAGE_BYTES)
            length = b.sub(whole, b.index(_PAGE_BYTES))
            b.call("madvise", [page, length, b.const(I32, _MADV_HUGEPAGE)], I32)
    block = b.boundary(b.offset(start, b.index(_HEAD)), _ALIGNMENT)
    b.store(size, b.offset(block, b.index(-16)), 8)
    b.store(start, b.offset(block, b.index(-8)), 8)
    b.ret(block)
    b.finish()


def _write_give(b: Builder) -> None:
    block = b.arguments[0]
    place = b.alloca(POINTER, align=8)
    b.store(block, place, 8)
    with b.when(b.icmp("sle", _size_of(b, block), b.index(KEPT_BYTES)), "keep"):
        b.store(_exchanged(b, block), place, 8)
    left = b.load(POINTER, place, 8)
    with b.when(b.icmp("ne", left, _NULL), "left"):
        _free(b, left)
    b.ret()
    b.finish()


def _exchanged(b: Builder, block: Value) -> Value:
    """Keep another block; gives the one before."""
    return b.emit(POINTER, f"atomicrmw xchg ptr {_KEPT}, ptr {block.text} acq_rel")


def _size_of(b: Builder, block: Value) -> Value:
    return b.load(I64, b.offset(block, b.index(-16)), 8)


def _free(b: Builder, block: Value) -> None:
    b.call("free", [b.load(POINTER, b.offset(block, b.index(-8)), 8)], None)
