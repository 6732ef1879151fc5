"""Instructions of LLVM that the back end of a target cannot make code of, as other instructions.

Here: ``with_known_instructions``. Not here: making code (``machine.engine``).

Layer: ``machine``.
"""

from __future__ import annotations

import re

_DECLARATION = re.compile(
    r"^declare (\S.*) @llvm\.(minimum|maximum)\.(v(\d+))?f(\d+)\(.*$", re.MULTILINE
)
_WITHOUT_EXTREMA = ("armv", "thumb")
"""What triples of architectures without these begin with: LLVM ends the process over them."""


def with_known_instructions(text: str, triple: str) -> str:
    """A module with functions of its own in place of instructions that its target lacks."""
    if not triple.startswith(_WITHOUT_EXTREMA):
        return text
    return re.sub(r"@llvm\.(minimum|maximum)\.", r"@\1.", _DECLARATION.sub(_extremum, text))


def _extremum(declared: re.Match[str]) -> str:
    """The smaller, or larger, one of two numbers; NaN if one is NaN, and -0.0 is below 0.0.

    Equal numbers have the same bits, but for zeros, whose signs are joined.
    """
    type_, name, lanes, count, bits = declared.groups()
    flag, whole = "i1", f"i{bits}"
    if count:
        flag, whole = f"<{count} x i1>", f"<{count} x i{bits}>"
    first, joined = {"minimum": ("olt", "or"), "maximum": ("ogt", "and")}[name]
    symbol = f"@{name}.{lanes or ''}f{bits}"
    return "\n".join(
        [
            f"define internal {type_} {symbol}({type_} %a, {type_} %b) nounwind {{",
            f"  %wins = fcmp {first} {type_} %a, %b",
            f"  %equal = fcmp oeq {type_} %a, %b",
            f"  %none = fcmp uno {type_} %a, %b",
            f"  %x = bitcast {type_} %a to {whole}",
            f"  %y = bitcast {type_} %b to {whole}",
            f"  %both = {joined} {whole} %x, %y",
            f"  %same = bitcast {whole} %both to {type_}",
            f"  %nan = fadd {type_} %a, %b",
            f"  %r = select {flag} %wins, {type_} %a, {type_} %b",
            f"  %s = select {flag} %equal, {type_} %same, {type_} %r",
            f"  %t = select {flag} %none, {type_} %nan, {type_} %s",
            f"  ret {type_} %t",
            "}",
        ]
    )
