"""What a routine's lowering is given: arrays in memory and the means to work on them.

Here: ``Array`` (memory of concrete shape and dtype) and ``Routines`` (numbers, loops over indices,
workspace, library symbols, errors). Not here: numbers (``emitter.numbers``), where the memory comes
from (``compiler``).

Layer: ``emitter``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from functrans.emitter.builder import Builder
from functrans.emitter.chunks import run_chunks
from functrans.emitter.numbers import Number, Numbers
from functrans.emitter.types import I64, POINTER, Type, Value
from functrans.records import dataclass

_ALIGNMENT = 64


def strides_of(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements from one index to the next, per axis of an array in C order."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class Array:
    """An array in memory, C-contiguous.

    Attributes:
      pointer: address of the first element.
      shape: extents, Python integers.
      dtype: dtype of the elements; booleans take a byte, complex numbers two floats.
    """

    pointer: Value
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next, per axis."""
        return strides_of(self.shape)

    def reshape(self, *shape: int) -> Array:
        """The same memory with other extents."""
        return Array(self.pointer, shape, self.dtype)


def _refuse(*_: object) -> Any:
    raise NotImplementedError("a function of its own has no workspace and no errors")


Piece = Callable[["Routines", list[Array], Value], None]
"""Writes a piece of code, given its emitter, the arrays in it, and its number."""


@contextmanager
def _taken(b: Builder, size_bytes: int, lost: Value) -> Iterator[Value]:
    """Memory from the heap, for what is written then; if there is none, ``lost`` is set instead."""
    block = b.call("malloc", [b.index(size_bytes + _ALIGNMENT - 1)], POINTER)
    is_lost = b.icmp("eq", block, Value("null", POINTER))
    with b.when(is_lost, "lost"):
        b.statement(f"store atomic i64 1, ptr {lost.text} monotonic, align 8")
    with b.when(b.not_(is_lost), "found"):
        yield b.boundary(b.offset(block, b.index(_ALIGNMENT - 1)), _ALIGNMENT)
        b.call("free", [block], None)


class Routines(Numbers):
    """The emitter of a routine: all of :class:`Numbers`, and whole arrays.

    Attributes:
      b: the instructions (``emitter.builder.Builder``).
      on_threads: whether pieces run on several threads, which they do not if this code does.
    """

    def __init__(
        self,
        builder: Builder,
        workspace: Callable[[int], Value],
        fail: Callable[[Value, Callable[[str], Exception], str], None],
        symbol: Callable[[str], str],
    ) -> None:
        super().__init__(builder)
        self._workspace = workspace
        self._fail = fail
        self._symbol = symbol
        self.on_threads = True

    def on(self, builder: Builder) -> Routines:
        """The emitter of another function of the program, without workspace and errors."""
        inner = Routines(builder, _refuse, _refuse, self._symbol)
        inner.on_threads = self.on_threads
        return inner

    # memory

    def workspace_on_stack(self) -> None:
        """Have scratch memory, some 100 kB of it, in a function of its own."""
        self._workspace = self.b.alloca_bytes

    def workspace(self, shape: Sequence[int], dtype: Any) -> Array:
        """Scratch memory, not initialised, that is valid during this routine."""
        dtype = np.dtype(dtype)
        size = math.prod(shape) * dtype.itemsize
        return Array(self._workspace(max(size, 1)), tuple(shape), dtype)

    def address(self, array: Array, index: Value | Sequence[Value | int]) -> Value:
        """Address of an element, by its flat index or by one index per axis."""
        flat = index if isinstance(index, Value) else self.flat_index(array, index)
        size = self.b.mul(flat, self.b.index(array.dtype.itemsize))
        return self.b.offset(array.pointer, size)

    def flat_index(self, array: Array, index: Sequence[Value | int]) -> Value:
        """Number of an element in C order."""
        flat: Value | None = None
        for i, stride in zip(index, array.strides, strict=True):
            value = i if isinstance(i, Value) else self.b.index(i)
            term = value if stride == 1 else self.b.mul(value, self.b.index(stride))
            flat = term if flat is None else self.b.add(flat, term)
        return flat if flat is not None else self.b.index(0)

    def read(self, array: Array, index: Value | Sequence[Value | int]) -> Number:
        """An element."""
        return self.load(array.dtype, self.address(array, index))

    def write(self, array: Array, index: Value | Sequence[Value | int], number: Number) -> None:
        """Set an element, to a number of the array's dtype.

        Raises:
          TypeError: it is of another dtype; LLVM takes memory for whatever it is told.
        """
        if number.dtype != array.dtype:
            raise TypeError(f"a number of dtype {number.dtype} for an array of {array.dtype}")
        self.store(number, self.address(array, index))

    def copy(self, source: Array, target: Array) -> None:
        """Copy all elements of an array of the same size and dtype (``memmove``)."""
        if source.pointer.text == target.pointer.text:
            return
        size = source.size * source.dtype.itemsize
        self.b.move_memory(source.pointer, target.pointer, self.b.index(size))

    def fill(self, array: Array, number: Number) -> None:
        """Set all elements to one number."""
        with self.count(array.size) as i:
            self.write(array, i, number)

    # loops

    @contextmanager
    def count(self, stop: int | Value, start: int | Value = 0) -> Iterator[Value]:
        """``for i in range(start, stop)``; yields ``i``."""
        first = start if isinstance(start, Value) else self.b.index(start)
        last = stop if isinstance(stop, Value) else self.b.index(stop)
        with self.b.loop(first, last) as i:
            yield i

    @contextmanager
    def each(self, shape: Sequence[int | Value]) -> Iterator[tuple[Value, ...]]:
        """Nested loops over all indices of a shape, in C order; yields one value per axis."""
        if not shape:
            yield ()
            return
        with self.count(shape[0]) as i, self.each(shape[1:]) as rest:
            yield (i, *rest)

    def in_chunks(
        self,
        count: int | Value,
        arrays: Sequence[Array],
        write: Piece,
        *,
        before: tuple[int, Piece] | None = None,
        on_threads: bool = True,
        scratch_bytes: int = 0,
    ) -> None:
        """Run a piece of code for all ``k`` below ``count``, on as many threads as there may be.

        Args:
          count: number of pieces; it must not depend on the number of threads.
          arrays: what the code reads and writes; no piece writes what another one reads.
          write: writes the code, given the emitter of a function of its own (``on``), the arrays in
            it, and ``k``.
          before: how many other pieces are done before any of these begins, which may read what
            they write, and what writes their code.
          on_threads: whether it is worth threads.
          scratch_bytes: memory of its own that each piece has, but those before, at a boundary of
            64 bytes; it comes behind the arrays. It is not on the stack, which may be the caller's.
        """
        b = self.b
        on_threads = on_threads and self.on_threads
        name = f"chunk{b.module.next_number()}"
        inner = Builder(b.module, name, [POINTER, I64], None, "internal")
        shared = list(arrays)
        lost = None
        if scratch_bytes and on_threads:
            lost = self.workspace((1,), np.int64)
            b.store(b.index(0), lost.pointer, 8)
            shared.append(lost)
        elif scratch_bytes:
            shared.append(self.workspace((scratch_bytes,), np.uint8))
        pointers = [array.pointer for array in shared]
        if b.parameters is not None:
            inner.parameters = Value("%parameters", POINTER)
            inner.load_first("%parameters", 8 * len(pointers))
            pointers.append(b.parameters)
        context = b.alloca_bytes(8 * len(pointers))
        for i, pointer in enumerate(pointers):
            b.store(pointer, b.offset(context, b.index(8 * i)), 8)
        own = []
        for i, array in enumerate(shared):
            place = inner.offset(inner.arguments[0], inner.index(8 * i))
            own.append(Array(inner.load(POINTER, place, 8), array.shape, array.dtype))

        def write_piece(k: Value) -> None:
            if lost is None:
                write(self.on(inner), own, k)
                return
            with _taken(inner, scratch_bytes, own[-1].pointer) as memory:
                scratch = Array(memory, (scratch_bytes,), np.dtype(np.uint8))
                write(self.on(inner), [*own[:-1], scratch], k)

        first, number = 0, inner.arguments[1]
        if before is None:
            write_piece(number)
        else:
            first, write_before = before
            k = inner.sub(number, inner.index(first))
            is_before = inner.icmp("slt", k, inner.index(0))
            with inner.when(is_before, "before"):
                write_before(self.on(inner), own[: len(arrays)], number)
            with inner.when(inner.not_(is_before), "then"):
                write_piece(k)
        inner.ret()
        inner.finish()
        total = b.add(count, b.index(first)) if isinstance(count, Value) else count + first
        if on_threads:
            run_chunks(b, name, context, total, first)
            if lost is not None:
                is_lost = b.icmp("ne", b.load(I64, lost.pointer, 8), b.index(0))
                self.fail_when(is_lost, MemoryError, "no memory for what threads copy")
            return
        b.module.helpers[f"@{name}"] = True  # defined, not declared
        with self.count(total) as k:
            b.call(name, [context, k], None)

    # library code

    def call_symbol(self, name: str, args: Sequence[Value], result: Type | None = None) -> Value:
        """Call library code by name.

        Args:
          name: ``"blas.dgemm"``, ``"lapack.dpotrf"`` (Fortran conventions: every argument is an
            address, integers are 32 bits), ``"kernel.sort_f64"`` (numba kernels, see
            ``functrans.kernels``), ``"c.malloc"``.
          args: operands.
          result: type of its result.
        """
        return self.b.call(self._symbol(name), args, result)

    def symbol_place(self, name: str) -> Value:
        """The address that a name of library code or data stands for."""
        symbol = f"@{self._symbol(name)}"
        self.b.module.globals.setdefault(symbol, f"{symbol} = external global i8")
        return Value(symbol, POINTER)

    def by_reference(self, value: Value) -> Value:
        """Address of a stack slot that holds a value, as Fortran wants its arguments."""
        slot = self.b.alloca(value.type, align=8)
        self.b.store(value, slot)
        return slot

    # errors

    def fail_when(self, condition: Value, error: Callable[[str], Exception], message: str) -> None:
        """Leave the program with an exception where a scalar condition holds.

        Args:
          condition: a scalar truth value.
          error: class of the exception, or what makes one of the text; it is raised with the
            user's line as a note.
          message: its text.
        """
        self._fail(condition, error, message)
