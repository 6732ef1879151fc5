"""Dtypes in registers: how NumPy's numbers are read, written and converted.

Here: which LLVM type stands for a dtype, loads and stores, and ``cast`` with the results of NumPy's
``astype`` on x86-64. Not here: arithmetic (``emitter.numbers``), the 16-bit floats
(``emitter.halves``).

========= ==================== ===========================================
dtype     in memory            in registers
========= ==================== ===========================================
bool      a byte               ``i1``
int, uint their width          their width
float16   16 bits              ``float``, holding a value of the dtype
bfloat16  16 bits              ``float``, holding a value of the dtype
complex   real, imaginary      two floats
========= ==================== ===========================================

``bfloat16`` (of the package ml_dtypes) is known by its name, since that package is optional.

Layer: ``emitter``.
"""

from __future__ import annotations

import functools
import struct
from typing import Any

import numpy as np

from functrans.emitter import halves
from functrans.emitter.builder import Builder
from functrans.emitter.types import F32, F64, I1, I8, I16, I32, I64, Type, Value, constant

Parts = tuple[Value, ...]


@functools.cache
def kind_of(dtype: np.dtype) -> str:
    """One of ``b``, ``i``, ``u``, ``f``, ``c``.

    Raises:
      TypeError: the dtype is none of numbers.
    """
    kind = "f" if dtype.name == "bfloat16" else dtype.kind
    if kind not in "biufc" or (kind == "f" and dtype.itemsize > 8) or dtype.itemsize > 16:
        raise TypeError(f"dtype {dtype} has no native code")
    return kind


@functools.cache
def register_type(dtype: np.dtype) -> Type:
    """The type of one part of a number in registers, one lane."""
    kind = kind_of(dtype)
    if kind == "b":
        return I1
    if kind in "iu":
        return Type("i", 8 * dtype.itemsize)
    width = dtype.itemsize // 2 if kind == "c" else dtype.itemsize
    return F64 if width == 8 else F32


def is_half(dtype: np.dtype) -> bool:
    """Whether results have to be rounded to a 16-bit float."""
    return dtype.itemsize == 2 and kind_of(dtype) == "f"


def rounded(b: Builder, dtype: np.dtype, value: Value) -> Value:
    """A float in a register rounded to its dtype: changes 16-bit floats only."""
    if not is_half(dtype):
        return value
    if dtype.kind == "f":
        return halves.round_to_half(b, value)
    return halves.round_to_brain(b, value)


def float_bits(b: Builder, dtype: np.dtype, value: Value) -> Value:
    """The bits of a float in the width of its dtype."""
    if not is_half(dtype):
        return b.bits(value)
    return halves.half_bits(b, value) if dtype.kind == "f" else halves.brain_bits(b, value)


def float_from_bits(b: Builder, dtype: np.dtype, bits: Value) -> Value:
    """The register of a float with these bits."""
    if not is_half(dtype):
        return b.from_bits(bits)
    if dtype.kind == "f":
        return halves.half_from_bits(b, bits)
    return halves.brain_from_bits(b, bits)


# memory -------------------------------------------------------------------------------------------


def load(b: Builder, dtype: np.dtype, pointer: Value, lanes: int) -> Parts:
    """The parts of the numbers at an address."""
    kind = kind_of(dtype)
    register = register_type(dtype)
    if kind == "b":
        byte = b.load(I8.with_lanes(lanes), pointer)
        return (b.icmp("ne", byte, b.const(byte, 0)),)
    if kind == "c":
        both = b.load(register.with_lanes(2 * lanes), pointer)
        if lanes == 1:
            return b.extract(both, 0), b.extract(both, 1)
        return (
            b.shuffle(both, both, range(0, 2 * lanes, 2)),
            b.shuffle(both, both, range(1, 2 * lanes, 2)),
        )
    if is_half(dtype):
        return (float_from_bits(b, dtype, b.load(I16.with_lanes(lanes), pointer)),)
    return (b.load(register.with_lanes(lanes), pointer),)


def store(b: Builder, dtype: np.dtype, parts: Parts, pointer: Value) -> None:
    """Write numbers to an address."""
    kind = kind_of(dtype)
    value = parts[0]
    lanes = value.type.lanes
    if kind == "b":
        b.store(b.convert("zext", value, I8), pointer)
    elif kind == "c":
        if lanes == 1:
            for i, part in enumerate(parts):
                b.store(part, b.element(pointer, b.index(i), part.type))
        else:
            order = [lane + half * lanes for lane in range(lanes) for half in (0, 1)]
            b.store(b.shuffle(value, parts[1], order), pointer, value.type.size_bytes)
    elif is_half(dtype):
        b.store(float_bits(b, dtype, value), pointer)
    else:
        b.store(value, pointer)


def constant_parts(dtype: np.dtype, value: Any, lanes: int) -> Parts:
    """A number of a dtype as operands, the same in all lanes; integers wrap."""
    kind = kind_of(dtype)
    register = register_type(dtype).with_lanes(lanes)
    if kind == "c":
        number = complex(value)
        return constant(register, number.real), constant(register, number.imag)
    if kind == "f":
        with np.errstate(all="ignore"):
            return (constant(register, float(np.asarray(value).astype(dtype))),)
    if kind == "b":
        return (constant(register, bool(value)),)
    return (constant(register, int(value)),)


def literal(value: Value) -> float | int | None:
    """The number that a constant operand stands for, the same in all lanes; else ``None``."""
    text = value.text.removeprefix(f"splat ({value.type.element} ").removesuffix(")")
    if text == "zeroinitializer":
        return 0
    if text[0] in "%@<":
        return None
    if value.type.kind == "i":
        return {"true": 1, "false": 0}[text] if value.type.bits == 1 else int(text)
    if not text.startswith("0x") or text[2] in "HKLM":
        return None
    return float(struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0])


# conversions --------------------------------------------------------------------------------------


def is_nonzero(b: Builder, dtype: np.dtype, parts: Parts) -> Value:
    """Truth of a number: NaN is true."""
    kind = kind_of(dtype)
    if kind == "b":
        return parts[0]
    if kind in "iu":
        return b.icmp("ne", parts[0], b.const(parts[0], 0))
    truths = [b.fcmp("une", part, b.const(part, 0)) for part in parts]
    return truths[0] if len(truths) == 1 else b.or_(*truths)


def cast(b: Builder, parts: Parts, source: np.dtype, target: np.dtype) -> Parts:
    """Convert as ``astype`` does."""
    if source == target:
        return parts
    old, new = kind_of(source), kind_of(target)
    if new == "b":
        return (is_nonzero(b, source, parts),)
    if new == "c":
        width = np.dtype(f"f{target.itemsize // 2}")
        if old == "c":
            inner = np.dtype(f"f{source.itemsize // 2}")
            return tuple(cast(b, (part,), inner, width)[0] for part in parts)
        (re,) = cast(b, parts, source, width)
        return re, b.const(re, 0)
    if old == "c":
        return cast(b, parts[:1], np.dtype(f"f{source.itemsize // 2}"), target)
    value = parts[0]
    register = register_type(target)
    if new == "f":
        if old == "f":
            return (_float_to_float(b, value, source, target),)
        operation = "sitofp" if old == "i" else "uitofp"
        return (rounded(b, target, b.convert(operation, value, register)),)
    if old == "f":
        return (_float_to_integer(b, value, target),)
    if register.bits < value.type.bits:
        return (b.convert("trunc", value, register),)
    return (b.convert("sext" if old == "i" else "zext", value, register),)


def _float_to_float(b: Builder, value: Value, source: np.dtype, target: np.dtype) -> Value:
    wide = register_type(target)
    if wide.bits > value.type.bits:
        return b.convert("fpext", value, wide)
    if wide.bits < value.type.bits:
        if is_half(target) and target.kind == "f":
            value = halves.double_to_float_by_odd(b, value)
        else:
            value = b.convert("fptrunc", value, wide)
    return rounded(b, target, value)


def _float_to_integer(b: Builder, value: Value, target: np.dtype) -> Value:
    """Truncate as x86-64 does, where NumPy leaves the conversion to C.

    The instruction gives the smallest integer for what does not fit; narrow integers are the low
    bits of 32, ``uint32`` those of 64, and ``uint64`` is taken in two halves. (NumPy's own uint32
    of numbers outside of it depends on the position in the array; inside of it there is no choice.)
    """
    bits = 8 * target.itemsize
    register = register_type(target)
    if target.kind == "u" and bits == 64:
        half = b.const(value, 2.0**63)
        is_high = b.fcmp("oge", value, half)
        shifted = b.select(is_high, b.fsub(value, half), value)
        low = _truncated(b, shifted, I64)
        return b.select(is_high, b.xor(low, b.const(low, 1 << 63)), low)
    whole = I64 if bits == 64 or (target.kind == "u" and bits == 32) else I32
    result = _truncated(b, value, whole)
    return b.convert("trunc", result, register) if bits < whole.bits else result


def _truncated(b: Builder, value: Value, integer: Type) -> Value:
    """``cvttsd2si``: the smallest integer for NaN and for what does not fit."""
    fits = b.fcmp("olt", b.fabs(value), b.const(value, 2.0 ** (integer.bits - 1)))
    safe = b.select(fits, value, b.const(value, 0))
    result = b.convert("fptosi", safe, integer)
    return b.select(fits, result, b.const(result, 1 << (integer.bits - 1)))
