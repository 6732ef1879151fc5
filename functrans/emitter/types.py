"""Types and values of emitted code.

Here: ``Type`` (a number or pointer, in one or several lanes), ``Value`` (a typed operand of an
instruction) and ``Machine`` (what is fast). Not here: instructions (``emitter.builder``).

Layer: ``emitter``.
"""

from __future__ import annotations

import functools
import struct
from typing import Any

import numpy as np

from functrans.records import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """What code is written for; it decides how fast results come, and not what they are.

    Attributes:
      registers: how many vectors of 64 bytes the processor's vector registers hold.
    """

    registers: int = 8


@dataclass(frozen=True, slots=True)
class Type:
    """An LLVM type.

    Attributes:
      kind: ``"f"`` a floating number, ``"i"`` an integer (signedness belongs to the instruction),
        ``"p"`` a pointer.
      bits: width of one element; 1 for truth values, 64 for pointers.
      lanes: number of elements; 1 is a scalar and not a vector of one.
    """

    kind: str
    bits: int
    lanes: int = 1

    @property
    def element(self) -> Type:
        """The type of one lane."""
        return Type(self.kind, self.bits)

    def with_lanes(self, lanes: int) -> Type:
        """The same elements in another number of lanes."""
        return _vector(self.kind, self.bits, lanes)

    @property
    def integer(self) -> Type:
        """The integer type of the same width and lanes: what ``bitcast`` turns it into."""
        return _vector("i", self.bits, self.lanes)

    @property
    def size_bytes(self) -> int:
        """Memory of one element in an array: truth values take a byte."""
        return max(1, self.bits // 8)

    def __str__(self) -> str:
        """The type in LLVM's notation: ``double``, ``<8 x double>``, ``i1``, ``ptr``."""
        return _text(self.kind, self.bits, self.lanes)


@functools.cache
def _vector(kind: str, bits: int, lanes: int) -> Type:
    return Type(kind, bits, lanes)


@functools.cache
def _text(kind: str, bits: int, lanes: int) -> str:
    if kind == "f":
        element = {16: "half", 32: "float", 64: "double"}[bits]
    elif kind == "p":
        element = "ptr"
    else:
        element = f"i{bits}"
    return element if lanes == 1 else f"<{lanes} x {element}>"


F64 = Type("f", 64)
F32 = Type("f", 32)
I64 = Type("i", 64)
I32 = Type("i", 32)
I16 = Type("i", 16)
I8 = Type("i", 8)
I1 = Type("i", 1)
POINTER = Type("p", 64)


class Value:
    """An operand of an instruction: a register, a constant or an argument.

    Attributes:
      text: how LLVM's text refers to it.
      type: its type.
    """

    __slots__ = ("text", "type")

    def __init__(self, text: str, type: Type) -> None:  # LLVM's term
        self.text = text
        self.type = type

    def __repr__(self) -> str:
        """``double %v1``."""
        return f"{self.type} {self.text}"


def float_text(number: float, bits: int) -> str:
    """A floating constant, exactly: the bits of the double of that value, in hexadecimal."""
    if bits == 32:
        with np.errstate(all="ignore"):
            number = float(np.float32(number))
    elif bits == 16:
        with np.errstate(all="ignore"):
            half = np.float16(number)
        return f"0xH{half.view(np.uint16):04X}"
    return f"0x{struct.unpack('<Q', struct.pack('<d', number))[0]:016X}"


def constant(type: Type, number: Any) -> Value:  # LLVM's term
    """A number as an operand, the same in all lanes.

    Args:
      type: its type.
      number: a Python or NumPy number; for integers any that fits after wrapping to the width.
    """
    if type.kind == "f":
        element = float_text(float(number), type.bits)
    elif type.bits == 1:
        element = "true" if number else "false"
    else:
        wrapped = int(number) & ((1 << type.bits) - 1)
        if wrapped >> (type.bits - 1):
            wrapped -= 1 << type.bits
        element = str(wrapped)
    if type.lanes == 1:
        return Value(element, type)
    if element in {"0", "false", "0x0000000000000000"}:
        return Value("zeroinitializer", type)
    return Value(f"splat ({type.element} {element})", type)


SMALLEST_SIZE = 128
"""Numbers of at least this size are taken for extents that differ between calls."""
OPEN, CLOSE = "\N{MATHEMATICAL LEFT ANGLE BRACKET}", "\N{MATHEMATICAL RIGHT ANGLE BRACKET}"


def size(number: int) -> Value:
    """A 64-bit integer; a large one is a *parameter* of the program.

    Its text is a mark, which ``emitter.builder.Builder.finish`` turns into a register that is
    loaded from the program's table of parameters. So programs for other extents have the same text,
    and the same machine code serves them all.
    """
    if -SMALLEST_SIZE < number < SMALLEST_SIZE:
        return Value(str(number), Type("i", 64))
    return Value(f"{OPEN}i64 {number}{CLOSE}", Type("i", 64))


def parameter(number: float, bits: int) -> Value:
    """A floating number as a parameter of the program; see :func:`size`."""
    type_ = Type("f", bits)
    return Value(f"{OPEN}{type_} {float_text(number, bits)}{CLOSE}", type_)
