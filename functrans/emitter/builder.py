"""Instructions: a writer of LLVM's text.

Here: ``Module`` (functions, declarations, constants) and ``Builder`` (the instructions of one
function, in blocks, with loops and branches). Not here: NumPy's arithmetic
(``emitter.numbers``), vector math (``emitter.math``), compilation (``compiler``).

Text is written directly: it is what the cache keys on, and building an object for each instruction
of a program of 40,000 operations would cost more than compiling it. No instruction carries a
floating-point flag: nothing is reassociated, contracted or assumed finite.

Every arithmetic method works on scalars and on vectors; a scalar constant beside a vector is made
with ``const(like, number)``.

Layer: ``emitter``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from functrans.emitter.slots import Slots
from functrans.emitter.types import (
    CLOSE,
    I1,
    I64,
    OPEN,
    POINTER,
    Machine,
    Type,
    Value,
    constant,
    size,
)

_ANY = Machine()
BEGIN, END = "; begin ", "; end"
"""Comments around what is written for an equation or a step of the plan."""


class Module:
    """The text of a program: globals, declarations and functions.

    Attributes:
      machine: what it is written for.
    """

    def __init__(self, machine: Machine = _ANY) -> None:
        self.machine = machine
        self.globals: dict[str, str] = {}
        self.declarations: dict[str, str] = {}
        self.functions: list[str] = []
        self.parameters: dict[str, int] = {}
        """Sizes and numbers that the code reads from a table, with their positions in it."""
        self._numbers = 0
        self.helpers: dict[Any, Any] = {}
        """Internal functions that were written on demand, by name; see ``Builder.helper``."""
        self.number_of: Callable[[Any], int] | None = None
        """Numbers of what instructions are written for, where the text says so (``begin``)."""

    def __str__(self) -> str:
        """The module as LLVM assembly."""
        return "\n".join([*self.globals.values(), *self.declarations.values(), *self.functions, ""])

    def next_number(self) -> int:
        """A number for a name: another one at each call."""
        self._numbers += 1
        return self._numbers

    def table(self, numbers: Sequence[Any], element: Type) -> Value:
        """A constant array in memory; the same numbers are kept once.

        Returns:
          A pointer to its first element.
        """
        items = ", ".join(f"{element} {constant(element, n).text}" for n in numbers)
        body = f"[{len(numbers)} x {element}] [{items}]"
        for name, text in self.globals.items():
            if text.endswith(f"constant {body}, align 64"):
                return Value(name, POINTER)
        name = f"@table{len(self.globals)}"
        self.globals[name] = f"{name} = private unnamed_addr constant {body}, align 64"
        return Value(name, POINTER)


_MARK = re.compile(f"{OPEN}([^{CLOSE}]*){CLOSE}")


class Section:
    """A part of a function's text that can still grow.

    Attributes:
      lines: instructions, and sections between them.
      block: the block that its end belongs to.
    """

    __slots__ = ("block", "lines")

    def __init__(self, block: str) -> None:
        self.lines: list[str | Section] = []
        self.block = block

    def flatten(self, text: list[str]) -> None:
        """Append all lines to a list."""
        for line in self.lines:
            if type(line) is str:
                text.append(line)
            else:
                line.flatten(text)  # type: ignore[union-attr]  # a section


class Builder:
    """Writes one function.

    Attributes:
      module: where the function goes, and what it declares.
      arguments: operands for the function's parameters.
    """

    def __init__(
        self,
        module: Module,
        name: str,
        parameters: Sequence[Type],
        result: Type | None = None,
        linkage: str = "",
        attributes: str = "nounwind",
        noalias: bool = False,
    ) -> None:
        self.module = module
        self.arguments = [Value(f"%a{i}", type_) for i, type_ in enumerate(parameters)]
        declared = ", ".join(
            f"{a.type}{' noalias' if noalias and a.type.kind == 'p' else ''} {a.text}"
            for a in self.arguments
        )
        returned = "void" if result is None else str(result)
        prefix = f"{linkage} " if linkage else ""
        self._head = f"define {prefix}{returned} @{name}({declared}) {attributes} {{"
        self._allocas: list[str] = []
        self._body = Section("entry")
        self._section = self._body
        self.parameters: Value | None = None
        """The table of the program's parameters; without one they are constants."""
        self.slots = Slots()
        self._count = 0
        self._labels = 0

    # registers, blocks ---------------------------------------------------------------------------

    def emit(self, type: Type, text: str) -> Value:  # LLVM's term
        """Write an instruction and return its result."""
        self._count += 1
        name = f"%v{self._count}"
        self._section.lines.append(f"  {name} = {text}")
        return Value(name, type)

    def statement(self, text: str) -> None:
        """Write an instruction without a result."""
        self._section.lines.append(f"  {text}")

    def begin(self, what: Any) -> None:
        """Say in a comment, if the module does, what the following instructions are for."""
        number_of = self.module.number_of
        if number_of is not None:
            self.statement(f"{BEGIN}{number_of(what)}")

    def end(self) -> None:
        """End what ``begin`` began last."""
        if self.module.number_of is not None:
            self.statement(END)

    @property
    def block(self) -> str:
        """Name of the block that is being written."""
        return self._section.block

    def section(self) -> Section:
        """A place in the text, here, where instructions can be added later.

        What is added there is executed before what is written from now on.
        """
        section = Section(self.block)
        self._section.lines.append(section)
        return section

    def memory_section(self, section: Section) -> Section:
        """A section at the very start of another one."""
        first = Section(section.block)
        section.lines.insert(0, first)
        return first

    @contextmanager
    def within(self, section: Section) -> Iterator[None]:
        """Write at the end of a section, inside a ``with`` block."""
        outer = self._section
        self._section = section
        try:
            yield
        finally:
            self._section = outer

    def label(self, hint: str = "b") -> str:
        """A fresh name for a block."""
        self._labels += 1
        return f"{hint}{self._labels}"

    def start(self, label: str) -> None:
        """Go on in a new block."""
        self._section.lines.append(f"{label}:")
        self._section.block = label

    def branch(self, target: str) -> None:
        """Jump to a block."""
        self.statement(f"br label %{target}")

    def branch_if(self, condition: Value, then: str, otherwise: str) -> None:
        """Jump to one of two blocks."""
        self.statement(f"br i1 {condition.text}, label %{then}, label %{otherwise}")

    def phi(self, type: Type, incoming: Sequence[tuple[Value, str]]) -> Value:
        """A value that depends on the block control came from."""
        if type.kind == "p":
            self.slots.give_up(*[value for value, _ in incoming])
        pairs = ", ".join(f"[ {value.text}, %{block} ]" for value, block in incoming)
        return self.emit(type, f"phi {type} {pairs}")

    def ret(self, value: Value | None = None) -> None:
        """Return from the function."""
        self.statement("ret void" if value is None else f"ret {value.type} {value.text}")

    def finish(self) -> None:
        """Put the function into its module."""
        self.slots.settle()
        body: list[str] = []
        self._body.flatten(body)
        code = "\n".join(body)
        head = "\n".join([self._head, "entry:", *self._allocas])
        if OPEN in code:
            table = self.parameters
            names = {mark: f"%p{i}" for i, mark in enumerate(dict.fromkeys(_MARK.findall(code)))}
            if table is None:
                names = {mark: mark.split()[1] for mark in names}
            else:
                head += "".join(self._load_parameter(table, *item) for item in names.items())
            code = _MARK.sub(lambda match: names[match.group(1)], code)
        self.module.functions.append(f"{head}\n{code}\n}}")

    def load_first(self, name: str, offset: int) -> None:
        """Load a pointer from the record that is the first argument, before all else."""
        self._allocas.append(
            f"  {name}.a = getelementptr i8, ptr {self.arguments[0].text}, i64 {offset}\n"
            f"  {name} = load ptr, ptr {name}.a, align 8"
        )

    def _load_parameter(self, table: Value, mark: str, name: str) -> str:
        """Lines that load a parameter at the start of the function."""
        offset = 8 * self.module.parameters.setdefault(mark, len(self.module.parameters))
        type_ = mark.split()[0]
        return (
            f"\n  {name}.a = getelementptr i8, ptr {table.text}, i64 {offset}"
            f"\n  {name} = load {type_}, ptr {name}.a, align 8"
        )

    # constants -----------------------------------------------------------------------------------

    def const(self, like: Value | Type, number: object) -> Value:
        """A number of the type of a value, in all of its lanes."""
        return constant(like.type if isinstance(like, Value) else like, number)

    def index(self, number: int) -> Value:
        """A 64-bit integer."""
        return size(number)

    def null(self) -> Value:
        """The address of nothing."""
        return Value("null", POINTER)

    def true(self, lanes: int = 1) -> Value:
        """The truth value true."""
        return constant(I1.with_lanes(lanes), True)

    # arithmetic ----------------------------------------------------------------------------------

    def _binary(self, operation: str, a: Value, b: Value) -> Value:
        return self.emit(a.type, f"{operation} {a.type} {a.text}, {b.text}")

    def fadd(self, a: Value, b: Value) -> Value:
        """``a + b``."""
        return self._binary("fadd", a, b)

    def fsub(self, a: Value, b: Value) -> Value:
        """``a - b``."""
        return self._binary("fsub", a, b)

    def fmul(self, a: Value, b: Value) -> Value:
        """``a * b``."""
        return self._binary("fmul", a, b)

    def fdiv(self, a: Value, b: Value) -> Value:
        """``a / b``."""
        return self._binary("fdiv", a, b)

    def fneg(self, a: Value) -> Value:
        """``-a``: the sign bit turned over."""
        return self.emit(a.type, f"fneg {a.type} {a.text}")

    def add(self, a: Value, b: Value) -> Value:
        """Integer sum, wrapping."""
        return self._binary("add", a, b)

    def sub(self, a: Value, b: Value) -> Value:
        """Integer difference, wrapping."""
        return self._binary("sub", a, b)

    def mul(self, a: Value, b: Value) -> Value:
        """Integer product, wrapping."""
        return self._binary("mul", a, b)

    def sdiv(self, a: Value, b: Value) -> Value:
        """Signed quotient, rounded toward zero; undefined for 0 and for overflow."""
        return self._binary("sdiv", a, b)

    def udiv(self, a: Value, b: Value) -> Value:
        """Unsigned quotient; undefined for 0."""
        return self._binary("udiv", a, b)

    def srem(self, a: Value, b: Value) -> Value:
        """Signed remainder with the sign of ``a``; undefined for 0 and for overflow."""
        return self._binary("srem", a, b)

    def urem(self, a: Value, b: Value) -> Value:
        """Unsigned remainder; undefined for 0."""
        return self._binary("urem", a, b)

    def shl(self, a: Value, b: Value) -> Value:
        """Shift left; undefined for shifts of the width or more."""
        return self._binary("shl", a, b)

    def lshr(self, a: Value, b: Value) -> Value:
        """Logical shift right; undefined for shifts of the width or more."""
        return self._binary("lshr", a, b)

    def ashr(self, a: Value, b: Value) -> Value:
        """Arithmetic shift right; undefined for shifts of the width or more."""
        return self._binary("ashr", a, b)

    def and_(self, a: Value, b: Value) -> Value:
        """Bitwise and."""
        return self._binary("and", a, b)

    def or_(self, a: Value, b: Value) -> Value:
        """Bitwise or."""
        return self._binary("or", a, b)

    def xor(self, a: Value, b: Value) -> Value:
        """Bitwise exclusive or."""
        return self._binary("xor", a, b)

    def not_(self, a: Value) -> Value:
        """All bits turned over; of a truth value, its negation."""
        return self.xor(a, self.const(a, -1 if a.type.bits > 1 else 1))

    def fcmp(self, predicate: str, a: Value, b: Value) -> Value:
        """Compare floats; ``oeq``, ``olt``... are false and ``une``, ``ult``... true for NaN."""
        return self.emit(
            I1.with_lanes(a.type.lanes), f"fcmp {predicate} {a.type} {a.text}, {b.text}"
        )

    def icmp(self, predicate: str, a: Value, b: Value) -> Value:
        """Compare integers: ``eq``, ``ne``, ``slt``, ``ult``..."""
        return self.emit(
            I1.with_lanes(a.type.lanes), f"icmp {predicate} {a.type} {a.text}, {b.text}"
        )

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """``a`` where the condition holds, else ``b``; a scalar condition picks whole vectors."""
        if a.type.kind == "p":
            self.slots.give_up(a, b)
        return self.emit(
            a.type,
            f"select {condition.type} {condition.text}, {a.type} {a.text}, {b.type} {b.text}",
        )

    # intrinsics and calls ------------------------------------------------------------------------

    def intrinsic(self, name: str, *args: Value, result: Type | None = None) -> Value:
        """Call an intrinsic overloaded on the type of its first argument: ``llvm.fma`` and so on.

        Args:
          name: without the prefix ``llvm.`` and the suffix of the type.
          *args: operands.
          result: type of the result; that of the first operand if not given.
        """
        type_ = args[0].type
        suffix = f"{type_.kind}{type_.bits}"
        if type_.lanes > 1:
            suffix = f"v{type_.lanes}{suffix}"
        return self.call(f"llvm.{name}.{suffix}", args, result or type_)

    def call(self, name: str, args: Sequence[Value], result: Type | None) -> Value:
        """Call a function by its symbol; it is declared on the way.

        Returns:
          Its result; a value that must not be used when ``result`` is ``None``.
        """
        returned = "void" if result is None else str(result)
        self.slots.give_up(*args)
        if f"@{name}" not in self.module.helpers:
            types = ", ".join(str(a.type) for a in args)
            self.module.declarations.setdefault(name, f"declare {returned} @{name}({types})")
        text = f"call {returned} @{name}({', '.join(f'{a.type} {a.text}' for a in args)})"
        if result is None:
            self.statement(text)
            return Value("undef", I1)
        return self.emit(result, text)

    def helper(
        self,
        name: str,
        args: Sequence[Value],
        result: Type | None,
        write: Callable[[Builder], None],
    ) -> Value:
        """Call an internal function, writing it if the module does not have it yet.

        Args:
          name: its symbol, which says what it does and for which types.
          args: operands.
          result: type of its result.
          write: writes the body, with ``arguments`` as parameters, ends with ``ret``.
        """
        if f"@{name}" not in self.module.helpers:
            self.module.helpers[f"@{name}"] = True
            inner = Builder(
                self.module, name, [a.type for a in args], result, "internal", "nounwind noinline"
            )
            write(inner)
            inner.finish()
        return self.call(name, args, result)

    def fma(self, a: Value, b: Value, c: Value) -> Value:
        """``a * b + c``, rounded once."""
        return self.intrinsic("fma", a, b, c)

    def fabs(self, a: Value) -> Value:
        """Absolute value: the sign bit cleared."""
        return self.intrinsic("fabs", a)

    def copysign(self, magnitude: Value, sign: Value) -> Value:
        """A magnitude with the sign of another value."""
        return self.intrinsic("copysign", magnitude, sign)

    def sqrt(self, a: Value) -> Value:
        """Square root, correctly rounded; NaN for negative numbers."""
        return self.intrinsic("sqrt", a)

    def floor(self, a: Value) -> Value:
        """Round toward minus infinity."""
        return self.intrinsic("floor", a)

    def ceil(self, a: Value) -> Value:
        """Round toward plus infinity."""
        return self.intrinsic("ceil", a)

    def truncate(self, a: Value) -> Value:
        """Round toward zero, to a float."""
        return self.intrinsic("trunc", a)

    def round_even(self, a: Value) -> Value:
        """Round to the nearest integer, ties to even, to a float."""
        return self.intrinsic("roundeven", a)

    def fmin(self, a: Value, b: Value) -> Value:
        """The smaller; the number of a number and a NaN."""
        return self.intrinsic("minnum", a, b)

    def fmax(self, a: Value, b: Value) -> Value:
        """The larger; the number of a number and a NaN."""
        return self.intrinsic("maxnum", a, b)

    # conversions ---------------------------------------------------------------------------------

    def convert(self, operation: str, a: Value, target: Type) -> Value:
        """A conversion instruction (``fptosi``, ``sext``, ``bitcast``...).

        Args:
          operation: LLVM's name.
          a: what to convert.
          target: type to convert to; its lanes are taken from ``a``, but for a bitcast.
        """
        if operation != "bitcast":
            target = target.with_lanes(a.type.lanes)
        if target == a.type:
            return a
        return self.emit(target, f"{operation} {a.type} {a.text} to {target}")

    def bits(self, a: Value) -> Value:
        """The bits of a float as an integer."""
        return self.convert("bitcast", a, a.type.integer)

    def from_bits(self, a: Value) -> Value:
        """The float with the bits of an integer."""
        return self.convert("bitcast", a, Type("f", a.type.bits, a.type.lanes))

    # lanes ---------------------------------------------------------------------------------------

    def splat(self, a: Value, lanes: int) -> Value:
        """A scalar in all lanes."""
        if lanes == 1 or a.type.lanes == lanes:
            return a
        target = a.type.with_lanes(lanes)
        if a.text[0] not in "%@" and a.text[0] != OPEN:
            if a.text in {"0", "false"}:
                return Value("zeroinitializer", target)
            return Value(f"splat ({a.type} {a.text})", target)
        one = self.emit(target, f"insertelement {target} poison, {a.type} {a.text}, i64 0")
        return self.emit(
            target,
            f"shufflevector {target} {one.text}, {target} poison, <{lanes} x i32> zeroinitializer",
        )

    def extract(self, a: Value, lane: int | Value) -> Value:
        """One lane of a vector."""
        if a.type.lanes == 1:
            return a
        position = lane.text if isinstance(lane, Value) else str(lane)
        return self.emit(a.type.element, f"extractelement {a.type} {a.text}, i64 {position}")

    def insert(self, a: Value, element: Value, lane: int) -> Value:
        """A vector with one lane replaced."""
        return self.emit(
            a.type, f"insertelement {a.type} {a.text}, {element.type} {element.text}, i64 {lane}"
        )

    def shuffle(self, a: Value, b: Value, lanes: Sequence[int]) -> Value:
        """Lanes picked out of two vectors of one type, numbered one after the other."""
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        target = a.type.with_lanes(len(lanes))
        return self.emit(
            target,
            f"shufflevector {a.type} {a.text}, {b.type} {b.text}, <{len(lanes)} x i32> <{mask}>",
        )

    def any_lane(self, a: Value) -> Value:
        """Whether a truth value holds in some lane."""
        if a.type.lanes == 1:
            return a
        mask = self.convert("bitcast", a, Type("i", a.type.lanes))
        return self.icmp("ne", mask, self.const(mask, 0))

    # memory --------------------------------------------------------------------------------------

    def alloca(self, type: Type, count: int = 1, align: int = 64) -> Value:
        """Memory on the stack that lives as long as the function runs."""
        self._count += 1
        name = f"%m{self._count}"
        size = "" if count == 1 else f", i64 {count}"
        self._allocas.append(f"  {name} = alloca {type}{size}, align {align}")
        self.slots.add(name, name)
        return Value(name, POINTER)

    def alloca_bytes(self, size_bytes: int) -> Value:
        """Raw memory on the stack that lives as long as the function runs."""
        self._count += 1
        name = f"%m{self._count}"
        self._allocas.append(f"  {name} = alloca [{size_bytes} x i8], align 64")
        self.slots.add(name, name)
        return Value(name, POINTER)

    def element(self, pointer: Value, index: Value, type: Type) -> Value:
        """The address of an element of an array."""
        if index.text == "0":
            return pointer
        place = self.emit(
            POINTER, f"getelementptr inbounds {type.element}, ptr {pointer.text}, i64 {index.text}"
        )
        self.slots.move(pointer, index.text, type.size_bytes, place)
        return place

    def offset(self, pointer: Value, size_bytes: Value) -> Value:
        """An address some bytes further."""
        if size_bytes.text == "0":
            return pointer
        place = self.emit(POINTER, f"getelementptr i8, ptr {pointer.text}, i64 {size_bytes.text}")
        self.slots.move(pointer, size_bytes.text, 1, place)
        return place

    def boundary(self, pointer: Value, alignment: int) -> Value:
        """The last boundary of so many bytes, a power of 2, that is not behind an address."""
        mask = self.const(I64, -alignment)
        return self.call("llvm.ptrmask.p0.i64", [pointer, mask], POINTER)

    def load(self, type: Type, pointer: Value, align: int | None = None) -> Value:
        """Read a value; a vector needs the alignment of an element only."""
        align = align or type.size_bytes
        result = self.emit(type, f"load {type}, ptr {pointer.text}, align {align}")
        if type.lanes > 1:
            self._note_vector(type, pointer, result.text, None)
        return result

    def store(self, value: Value, pointer: Value, align: int | None = None) -> None:
        """Write a value; a vector needs the alignment of an element only."""
        align = align or value.type.size_bytes
        self.statement(f"store {value.type} {value.text}, ptr {pointer.text}, align {align}")
        if value.type.lanes > 1:
            self._count += 1
            self._note_vector(value.type, pointer, f"%s{self._count}", value)
        elif value.type.kind == "p":
            self.slots.give_up(value)

    def _note_vector(self, type: Type, pointer: Value, name: str, value: Value | None) -> None:
        """Give the last instruction a place of its own, if it may have to be split."""
        lines = self.slots.access(type, pointer, name, value)
        if lines is not None:
            lines.append(self._section.lines.pop())
            section = Section(self.block)
            section.lines = lines
            self._section.lines.append(section)

    def move_memory(self, source: Value, target: Value, size_bytes: Value) -> None:
        """Copy bytes from one place to another, which may overlap."""
        name = "llvm.memmove.p0.p0.i64"
        self.module.declarations.setdefault(name, f"declare void @{name}(ptr, ptr, i64, i1)")
        self.statement(
            f"call void @{name}(ptr {target.text}, ptr {source.text}, i64 {size_bytes.text}, "
            "i1 false)"
        )

    # control flow --------------------------------------------------------------------------------

    @contextmanager
    def loop(self, start: Value, stop: Value, step: int = 1, hint: str = "loop") -> Iterator[Value]:
        """A counted loop ``for i in range(start, stop, step)``; may run zero times.

        Values that change from one round to the next go through memory (``alloca``), which the
        optimiser turns into registers.

        Yields:
          The counter.
        """
        before, head, body, tail, done = (
            self.label(hint + part) for part in ("_p", "_h", "_b", "_t", "_d")
        )
        self.branch(before)
        self.start(before)  # of its own, since sections before it may still get blocks
        self.branch(head)
        self.start(head)
        self._count += 1
        name = f"%i{self._count}"
        self._count += 1
        following = f"%n{self._count}"
        self.statement(f"{name} = phi i64 [ {start.text}, %{before} ], [ {following}, %{tail} ]")
        counter = Value(name, I64)
        self.branch_if(self.icmp("slt", counter, stop), body, done)
        self.start(body)
        yield counter
        self.branch(tail)
        self.start(tail)
        self.statement(f"{following} = add nsw i64 {name}, {step}")
        self.branch(head)
        self.start(done)

    @contextmanager
    def when(self, condition: Value, hint: str = "if") -> Iterator[None]:
        """A block that is run only where a scalar condition holds."""
        then, done = self.label(hint), self.label(hint + "_d")
        self.branch_if(condition, then, done)
        self.start(then)
        yield
        self.branch(done)
        self.start(done)

    def choose(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]],
    ) -> list[Value]:
        """Values from one of two blocks, of which one is run.

        Args:
          condition: a scalar truth value.
          then: writes the first block and returns its values.
          otherwise: writes the second; types must agree.
        """
        yes, no, done = self.label("then"), self.label("else"), self.label("join")
        self.branch_if(condition, yes, no)
        self.start(yes)
        first, first_end = then(), self.block
        self.branch(done)
        self.start(no)
        second, second_end = otherwise(), self.block
        self.branch(done)
        self.start(done)
        return [
            self.phi(a.type, ((a, first_end), (b, second_end)))
            for a, b in zip(first, second, strict=True)
        ]
