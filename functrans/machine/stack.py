"""How much stack machine code takes: a bound that is read from its assembly.

Here: ``stack_bytes``. Not here: who makes the assembly (``machine.engine``).

The compiler changes the stack pointer by constants only. So instructions are followed in the order
in which they stand: what lowers the pointer adds to the depth, what raises it subtracts, and behind
the end of a path the depth is the largest so far. A call needs the depth where it stands and what
the function that is called needs. Functions outside do not count. What cannot be read gives no
number rather than one that is too small.

Layer: ``machine``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from functrans.records import dataclass, field

_FUNCTION = re.compile(r"^([A-Za-z_][\w.$]*):")
_KNOWN_AWAY = 1 << 40
"""A depth that no stack has."""


@dataclass(frozen=True, slots=True)
class _Instructions:
    """What instructions of an architecture do with the stack pointer.

    Each pattern begins where the instruction does. ``n`` and ``m`` are groups for a number, ``k``
    for a shift of it, ``r`` for a register that holds it, and ``l`` for a list of registers.

    Attributes:
      at_entry: what the call itself has taken.
      down: lower it, by ``size`` where there is no group.
      up: raise it likewise.
      size: of what is pushed and popped.
      aligned: lower it to a multiple of a power of two, whose negative is ``n``; or ``e``, whose
        exponent that is.
      ignored: set it back, at the end of a path.
      call: call ``f``.
      tail: jump to ``f``, another function.
      end: leave the function.
      writes: any instruction that sets it.
    """

    at_entry: int
    size: int
    down: str
    up: str
    aligned: str
    ignored: str
    call: str
    tail: str
    end: str
    writes: str


_NAME = r"(?P<f>[A-Za-z_][\w.$]*)"
_X86 = _Instructions(
    at_entry=8,
    size=8,
    down=r"pushq |subq\s+\$(?P<n>\d+), %rsp$|addq\s+\$-(?P<m>\d+), %rsp$",
    up=r"popq |addq\s+\$(?P<n>\d+), %rsp$|subq\s+\$-(?P<m>\d+), %rsp$",
    aligned=r"andq \$-(?P<n>\d+), %rsp$",
    ignored=r"(leaq -?\d+\(%rbp\)|movq %rbp), %rsp$",
    call=rf"callq {_NAME}(@PLT)?$",
    tail=rf"jmp {_NAME}(@PLT)?( # TAILCALL)?$",
    end=r"retq?$|ud2$",
    writes=r"(?!cmp|test)\w+ .*%[re]?sp$|callq \*|jmpq? \*%",
)
_ARM = _Instructions(
    at_entry=0,
    size=0,
    down=r"sub sp, sp, #(?P<n>\d+)(?P<k>, lsl #12)?$|st\w+ .*\[sp, #-(?P<m>\d+)\]!$",
    up=r"add sp, sp, #(?P<n>\d+)(?P<k>, lsl #12)?$|ld\w+ .*\[sp\], #(?P<m>\d+)$",
    aligned=r"and sp, (?P<r>x\d+), #(?P<n>0xf+[0-9a-f]+)$",
    ignored=r"mov sp, x29$|sub sp, x29, #\d+$|add sp, x29, ",
    call=rf"bl {_NAME}$",
    tail=rf"b {_NAME}$",
    end=r"ret$|brk ",
    writes=r"\w+ sp,|.*\[sp.*\]!|.*\[sp\], |blr |br ",
)
_ARM_32 = _Instructions(
    at_entry=0,
    size=0,
    down=r"v?push \{(?P<l>.*)\}$|sub sp, sp, #(?P<n>\d+)$|str\w* .*\[sp, #-(?P<m>\d+)\]!$",
    up=r"v?pop \{(?P<l>.*)\}$|add sp, sp, #(?P<n>\d+)$|ldr\w* .*\[sp\], #(?P<m>\d+)$",
    aligned=r"bfc sp, #0, #(?P<e>\d+)$",
    ignored=r"mov sp, r\d+$|sub sp, r11, #\d+$",
    call=rf"bl {_NAME}(\(PLT\))?$",
    tail=rf"b {_NAME}(\(PLT\))?$",
    end=r"bx lr$|pop \{.*pc\}$|ldr pc, |udf |mov pc, lr$",
    writes=r"(?!stm|cmp)\w+ sp!?,|.*\[sp.*\]!|.*\[sp\], |blx |bx ",
)
_RISCV = _Instructions(
    at_entry=0,
    size=0,
    down=r"addi sp, sp, -(?P<n>\d+)$|sub sp, sp, (?P<r>\w+)$",
    up=r"addi sp, sp, (?P<n>\d+)$|add sp, sp, (?P<r>\w+)$",
    aligned=r"andi sp, sp, -(?P<n>\d+)$",
    ignored=r"addi sp, s0, -\d+$|mv sp, s0$",
    call=rf"call {_NAME}(@plt)?$",
    tail=rf"tail {_NAME}(@plt)?$",
    end=r"ret$|jr |unimp$",
    writes=r"\w+ sp,|jalr ",
)
_ARCHITECTURES = {
    "x86_64": _X86, "aarch64": _ARM, "arm64": _ARM, "riscv64": _RISCV, "armv7": _ARM_32,
}  # fmt: skip

_CONSTANTS: tuple[tuple[str, Callable[[int, int], int]], ...] = (
    (r"lui (?P<r>\w+), (?P<n>\d+)$", lambda old, n: n << 12),
    (r"li (?P<r>\w+), (?P<n>-?\d+)$", lambda old, n: n),
    (r"addiw? (?P<r>\w+), (?P=r), (?P<n>-?\d+)$", lambda old, n: old + n),
    (r"slli (?P<r>\w+), (?P=r), (?P<n>\d+)$", lambda old, n: old << n),
    (r"sub (?P<r>x\d+), sp, #(?P<n>\d+)(?P<k>, lsl #12)?$", lambda old, n: n),
    (r"sub (?P<r>x\d+), (?P=r), #(?P<n>\d+)(?P<k>, lsl #12)?$", lambda old, n: old + n),
)
"""Instructions that make constants by which the pointer is lowered in the end: the distance from
it, on ARM."""


@dataclass(slots=True)
class _Frame:
    """What a function needs.

    Attributes:
      own: its largest depth; ``None`` where it cannot be read.
      calls: functions that it calls, and the largest depth there.
    """

    own: int | None
    calls: dict[str, int] = field(default_factory=dict)


def stack_bytes(assembly: str, name: str, triple: str) -> int | None:
    """The most bytes of stack that a function takes, with those that it calls in the same text.

    Args:
      assembly: of a module.
      name: of the function.
      triple: what it is for.

    Returns:
      The number, or ``None`` if the assembly cannot be read that far: of another architecture, say.
    """
    instructions = _ARCHITECTURES.get(triple.partition("-")[0])
    if instructions is None:
        return None
    frames = {own: _frame(lines, instructions) for own, lines in _functions(assembly).items()}
    for own in (name, f"_{name}"):
        if own in frames:
            return _need(own, frames, ())
    return None


def _functions(assembly: str) -> Mapping[str, Sequence[str]]:
    """The instructions of each function."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in assembly.splitlines():
        label = _FUNCTION.match(line)
        if label:
            current = found.setdefault(label[1], [])
        elif line.startswith("\t") and not line.startswith("\t."):
            current.append(" ".join(re.split("//|@ ", line)[0].split()))
    return found


def _frame(lines: Sequence[str], known: _Instructions) -> _Frame:
    frame = _Frame(known.at_entry)
    depth = largest = known.at_entry
    constants: dict[str, int] = {}
    for line in lines:
        for pattern, combined in _CONSTANTS:
            made = re.match(pattern, line)
            if made:
                constants[made["r"]] = combined(constants.get(made["r"], 0), _amount(made, 0))
        if re.match(known.end, line):
            depth = largest
        elif lowered := re.match(known.down, line):
            depth += _changed(lowered, constants, known.size)
        elif raised := re.match(known.up, line):
            depth -= _changed(raised, constants, known.size)
        elif aligned := re.match(known.aligned, line):
            groups = aligned.groupdict()
            n = 1 << int(groups["e"]) if "e" in groups else int(groups["n"], 0)
            depth += constants.get(groups.get("r", ""), 0) + (n if n < 1 << 32 else (1 << 64) - n)
        elif called := re.match(known.call, line):
            frame.calls[called["f"]] = max(depth, frame.calls.get(called["f"], 0))
        elif left := re.match(known.tail, line):
            frame.calls[left["f"]] = max(depth, frame.calls.get(left["f"], 0))
            depth = largest
        elif re.match(known.writes, line) and not re.match(known.ignored, line):
            return _Frame(None)
        largest = max(largest, depth)
    frame.own = largest if largest < _KNOWN_AWAY else None
    return frame


def _amount(found: re.Match[str], otherwise: int) -> int:
    """The number in an instruction."""
    groups = found.groupdict()
    text = groups.get("n") or groups.get("m")
    return otherwise if text is None else int(text) << (12 if groups.get("k") else 0)


def _changed(found: re.Match[str], constants: Mapping[str, int], size: int) -> int:
    """By how much an instruction changes the pointer."""
    groups = found.groupdict()
    if groups.get("l"):
        registers = groups["l"].split(", ")
        return len(registers) * (8 if registers[0].startswith("d") else 4)
    register = groups.get("r")
    return constants.get(register, _KNOWN_AWAY) if register else _amount(found, size)


def _need(name: str, frames: Mapping[str, _Frame], callers: tuple[str, ...]) -> int | None:
    """What a function needs with those that it calls; ``None`` if it calls itself."""
    frame = frames.get(name)
    if frame is None:
        return 0  # outside
    if frame.own is None or name in callers:
        return None
    most = frame.own
    for called, depth in frame.calls.items():
        below = _need(called, frames, (*callers, name))
        if below is None:
            return None
        most = max(most, depth + below)
    return most
