"""C headers of programs that leave Python.

Here: names that C takes (``c_name``, ``c_names``), ``Leaf``, an argument or result of a C function,
and ``header_text``. Not here: the function itself (``compiler.standalone``), files
(``compiler.export``).

Every leaf is a flat pointer. Complex numbers are pairs of floats, since C and C++ name their types
in different ways, and the 16-bit floats are their bits.

Layer: ``compiler``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from functrans.compiler.standalone import StandaloneText
from functrans.core.avals import ShapedArray
from functrans.records import dataclass

_C_TYPES = {
    "float64": "double", "float32": "float", "complex128": "double", "complex64": "float",
    "float16": "uint16_t", "bfloat16": "uint16_t", "bool": "bool",
}  # fmt: skip
"""Types of elements in C, but for integers."""

_C_WORDS = """
alignas alignof and auto bool break case catch char const constexpr continue default delete do
double else enum explicit export extern false float for friend goto if inline int long main mutable
namespace new not nullptr operator or private protected public register restrict return short signed
sizeof static struct switch template this throw true try typedef typeid typename typeof union
unsigned using virtual void volatile while xor NULL class asm
"""
"""Words of C and C++ that are no names."""


def is_c_name(name: str) -> bool:
    """Whether C and C++ take a name."""
    return bool(re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII)) and name not in _C_WORDS.split()


def c_name(text: str, otherwise: str) -> str:
    """A name for what a text calls something: ``params_w`` for ``params['w']``."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or otherwise
    name = name if name[0].isalpha() else f"{otherwise}_{name}"
    return name if is_c_name(name) else f"{name}_"


def c_names(texts: Sequence[str], otherwise: str, taken: Collection[str]) -> list[str]:
    """Different names for some texts: those that would be alike, or are taken, are numbered."""
    used = set(taken)
    found = []
    for text in texts:
        wish = name = c_name(text, otherwise)
        number = 0
        while name in used:
            number += 1
            name = f"{wish}_{number}"
        used.add(name)
        found.append(name)
    return found


@dataclass(frozen=True, slots=True)
class Leaf:
    """An argument or a result of a C function.

    Attributes:
      name: its name in C.
      path: what Python calls it.
      aval: its shape and dtype.
    """

    name: str
    path: str
    aval: ShapedArray

    @property
    def c_type(self) -> str:
        """The type of what it points to."""
        name = self.aval.dtype.name
        return _C_TYPES.get(name) or f"{name}_t"

    @property
    def length(self) -> int:
        """How many of these there are."""
        size: int = self.aval.size
        return size * (2 if self.aval.dtype.kind == "c" else 1)

    @property
    def note(self) -> str:
        """What it is, in words."""
        what = f"{self.path}: {self.aval.dtype}{list(self.aval.shape)}"
        if self.aval.dtype.kind == "c":
            what += ", pairs of real and imaginary parts"
        if self.c_type == "uint16_t" and self.aval.dtype.kind != "u":
            what += ", as bits"
        return what


def declaration_of(name: str, arguments: Sequence[Leaf], results: Sequence[Leaf]) -> str:
    """The declaration of a function, on one line."""
    given = [f"const {leaf.c_type} *{leaf.name}" for leaf in arguments]
    made = [f"{leaf.c_type} *{leaf.name}" for leaf in results]
    return f"int32_t {name}({', '.join([*given, *made, 'void *workspace'])})"


def status_names(name: str, text: StandaloneText) -> Mapping[int, str]:
    """Names of the numbers that a function returns: ``SOLVE_LIN_ALG_ERROR``.

    Errors of one kind are numbered from the second one on.
    """
    prefix = name.upper()
    names = {0: f"{prefix}_OK"}
    counts: Counter[str] = Counter()
    for failure in text.failures:
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", failure.kind).upper()
        counts[kind] += 1
        number = f"_{counts[kind]}" if counts[kind] > 1 else ""
        names[failure.status] = f"{prefix}_{kind}{number}"
    return names


def header_text(
    name: str,
    text: StandaloneText,
    arguments: Sequence[Leaf],
    results: Sequence[Leaf],
    about: Sequence[str],
) -> str:
    """The header of a function.

    Args:
      name: the function's.
      text: what it needs and can end with.
      arguments: leaves of its arguments, in order.
      results: leaves of its result.
      about: lines of the comment at the top.
    """
    prefix, names = name.upper(), status_names(name, text)
    lines = [*_comment([*about, "", *_usage(name, text, arguments, results)])]
    lines += [f"#ifndef {prefix}_H", f"#define {prefix}_H", ""]
    lines += ["#include <stdbool.h>", "#include <stdint.h>", ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines += [f"#define {prefix}_WORKSPACE_BYTES {text.workspace_bytes}", ""]
    lines += ["enum {", f"    {names[0]} = 0,"]
    for failure in text.failures:
        lines += [f"    {names[failure.status]} = {failure.status}, {_inline(failure.text)}"]
    lines += ["};", "", f"int32_t {name}("]
    for const, leaves in (("const ", arguments), ("", results)):
        for leaf in leaves:
            lines.append(f"    {const}{leaf.c_type} *{leaf.name}, {_inline(leaf.note)}")
    lines += ["    void *workspace);", ""]
    lines += ["/* What a status means. */", f"const char *{name}_error_text(int32_t status);", ""]
    lines += ["#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(lines)


def _usage(
    name: str, text: StandaloneText, arguments: Sequence[Leaf], results: Sequence[Leaf]
) -> list[str]:
    """What a caller must know, and a call."""
    prefix = name.upper()
    lines = [
        "Arrays are in C order. Results overlap neither arguments nor each other.",
        "The workspace begins at any address; what is in it does not matter. Threads that call the",
        "function at the same time have one each. Nothing else is written, no memory is allocated.",
    ]
    if text.routines:
        lines += [
            "",
            f"To be linked with BLAS and LAPACK: {', '.join(text.routines)}. Their integers may",
            "have 32 or 64 bits.",
        ]
    lines += ["", "A call:", ""]
    for leaf in (*arguments, *results):
        lines.append(f"    {leaf.c_type} {leaf.name}[{max(leaf.length, 1)}];")
    lines.append(f"    unsigned char workspace[{prefix}_WORKSPACE_BYTES];")
    passed = ", ".join([*(leaf.name for leaf in (*arguments, *results)), "workspace"])
    lines.append(f"    int32_t status = {name}({passed});")
    lines.append(f"    if (status != {prefix}_OK) puts({name}_error_text(status));")
    return lines


def _comment(lines: Sequence[str]) -> list[str]:
    return ["/*", *(f" * {_safe(line)}".rstrip() for line in lines), " */"]


def _inline(text: str) -> str:
    return f"/* {_safe(text)} */"


def _safe(text: str) -> str:
    """A text that ends no comment and begins no other."""
    return " ".join(text.replace("*/", "* /").replace("/*", "/ *").split("\n"))
