"""What a folder with exported code holds, for people: a text in Markdown.

Here: ``readme_text``, with a whole program in C that calls the function. Not here: what C is told
(``compiler.header``), files (``compiler.export``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Sequence

from functrans.compiler.interface import Interface, Leaf, Matrix


def readme_text(interface: Interface, about: Sequence[str], file: str, also: Sequence[str]) -> str:
    """The text.

    Args:
      interface: the function.
      about: what it is; the lines that the header begins with.
      file: name of the object file, shared library or text of LLVM.
      also: which further files there are.
    """
    name = interface.name
    lines = [f"# {name}", "", *about, ""]
    lines += _files(interface, file, also)
    lines += ["## A call", "", "```c", *_program(interface), "```", ""]
    lines += ["```sh", *_commands(interface, file), "```", ""]
    lines += ["## Arguments and results", "", *_leaves(interface), ""]
    for matrix in interface.matrices:
        lines += _matrix(matrix)
    lines += ["## What a call takes", "", *_needs(interface), ""]
    lines += ["## What it returns", "", *_statuses(interface), ""]
    return "\n".join(lines)


def _files(interface: Interface, file: str, also: Sequence[str]) -> list[str]:
    name = interface.name
    what = {".o": "the code, to be linked", ".ll": "the code, as LLVM's text"}
    rows = [
        (f"{name}.h", "declarations for C and C++"),
        (file, what.get(file[file.rindex(".") :], "the code, a shared library")),
    ]
    if "cmake" in also:
        rows.append((f"{name}.cmake", f"defines the target `{name}`, for CMake to include"))
    if "fortran" in also:
        rows.append((f"{name}.f90", f"the module `{name}_interface`, for Fortran"))
    return ["| file | holds |", "|---|---|", *(f"| `{key}` | {text} |" for key, text in rows), ""]


def _program(interface: Interface) -> list[str]:
    """A program that calls the function with zeros."""
    name, macro = interface.name, interface.macro
    lines = ["#include <stdio.h>", f'#include "{name}.h"', ""]
    lines += [
        f"static {leaf.c_type} {leaf.name}[{max(leaf.length, 1)}]; /* {_safe(leaf)} */"
        for leaf in interface.leaves
    ]
    lines += [
        f"static unsigned char workspace[{macro}_WORKSPACE_BYTES];",
        "",
        "int main(void)",
        "{",
    ]
    passed = []
    for group, _, type_ in interface.typed_groups:
        leaves = [leaf.name for leaf in group.leaves]
        if group.fields:
            pairs = zip(group.fields, leaves, strict=True)
            fields = ", ".join(f".{field} = {leaf}" for field, leaf in pairs)
            lines.append(f"    const {type_} its_{group.name} = {{{fields}}};")
            passed.append(f"&its_{group.name}")
        else:
            passed += leaves
    function = f"{name}_call" if interface.has_structs else name
    lines += [
        f"    int32_t status = {function}({', '.join([*passed, 'workspace'])});",
        f"    if (status != {macro}_SUCCESS) {{",
        f'        fprintf(stderr, "%s\\n", {name}_error_text(status));',
        "        return 1;",
        "    }",
        "    return 0;",
        "}",
    ]
    return lines


def _safe(leaf: Leaf) -> str:
    return leaf.note.replace("*/", "* /")


def _commands(interface: Interface, file: str) -> list[str]:
    blas = " -llapack -lblas" if interface.text.routines else ""
    if file.endswith(".ll"):
        return [f"clang -O2 -o program main.c {file}{blas} -lm"]
    where = "" if file.endswith(".o") else " -Wl,-rpath,'$ORIGIN'"
    return [f"cc -o program main.c {file}{where}{blas} -lm"]


def _leaves(interface: Interface) -> list[str]:
    """A table of arrays."""
    lines = ["| name | elements | in Python |", "|---|---|---|"]
    for leaf in interface.leaves:
        what = "result" if leaf in interface.results else "argument"
        lines.append(f"| `{leaf.name}` | {what}, `{leaf.c_type}[{leaf.length}]` | `{leaf.note}` |")
    lines += [
        f"| `{leaf.name}` | constant, `{leaf.c_type}[{leaf.length}]` | `{leaf.note}` |"
        for leaf in interface.constants
    ]
    return [*lines, "", "Arrays are in C order; results overlap neither arguments nor each other."]


def _matrix(matrix: Matrix) -> list[str]:
    """How to go through the entries of a sparse result."""
    lines = matrix.sizes[0 if matrix.is_by_rows else 1][0]
    row, column = ("i", "other") if matrix.is_by_rows else ("other", "i")
    return [
        matrix.note,
        "",
        "```c",
        f"for (int i = 0; i < {lines}; i++)",
        f"    for (int k = {matrix.indptr.name}[i]; k < {matrix.indptr.name}[i + 1]; k++) {{",
        f"        int other = {matrix.indices.name}[k];",
        f'        printf("(%d, %d): %g\\n", {row}, {column}, {matrix.entries.name}[k]);',
        "    }",
        "```",
        "",
    ]


def _needs(interface: Interface) -> list[str]:
    macro = interface.macro
    lines = [
        f"- A workspace of {interface.text.workspace_bytes:,} bytes (`{macro}_WORKSPACE_BYTES`) at "
        "any address, whose contents do not matter. Threads that call the function at the same "
        "time have one each.",
    ]
    if interface.stack_bytes is None:
        lines.append("- Stack; how much is not known.")
    else:
        lines.append(
            f"- At most {interface.stack_bytes:,} bytes of stack (`{macro}_STACK_BYTES`), beside "
            "what functions of libraries take."
        )
    lines.append("- No heap, no files, no threads, no variables of its own.")
    if interface.text.routines:
        lines.append(
            f"- BLAS and LAPACK: {', '.join(interface.text.routines)}. Their integers may have 32 "
            "or 64 bits."
        )
    return lines


def _statuses(interface: Interface) -> list[str]:
    """A table of numbers, names and messages."""
    texts = {0: "success", **{failure.status: failure.text for failure in interface.text.failures}}
    lines = ["| number | name | meaning |", "|---|---|---|"]
    for status, name in interface.statuses.items():
        text = " ".join(texts[status].replace("|", "\\|").split())
        lines.append(f"| {status} | `{name}` | {text} |")
    return lines
