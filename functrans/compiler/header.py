"""C headers of programs that leave Python.

Here: ``header_text``. Not here: what is declared (``compiler.interface``), files
(``compiler.export``), other languages (``compiler.bindings``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Sequence

from functrans.compiler.interface import Group, Interface, Leaf


def header_text(interface: Interface, about: Sequence[str]) -> str:
    """The header of a function.

    Args:
      interface: the function.
      about: lines of the comment at the top.
    """
    name, text, names = interface.name, interface.text, interface.statuses
    prefix = interface.macro
    lines = _comment([*about, "", *_usage(interface)])
    lines += [f"#ifndef {prefix}_H", f"#define {prefix}_H", ""]
    lines += ["#include <stdbool.h>", "#include <stdint.h>", ""]
    lines += ["#ifdef __cplusplus", 'extern "C" {', "#endif", ""]
    lines.append(f"#define {prefix}_WORKSPACE_BYTES {text.workspace_bytes}")
    if interface.stack_bytes is not None:
        lines.append(f"#define {prefix}_STACK_BYTES {interface.stack_bytes}")
    lines.append("")
    rows = [(0, "success"), *((failure.status, failure.text) for failure in text.failures)]
    lines.append("enum {")
    for number, (status, what) in enumerate(rows, 1):
        comma = "," if number < len(rows) else ""
        lines.append(f"    {names[status]} = {status}{comma} {_inline(what)}")
    lines += ["};", "", f"int32_t {name}("]
    for const, leaves in (("const ", interface.arguments), ("", interface.results)):
        for leaf in leaves:
            lines.append(f"    {const}{leaf.c_type} *{leaf.name}, {_inline(leaf.note)}")
    lines += ["    void *workspace);", ""]
    lines += ["/* What a status means. */", f"const char *{name}_error_text(int32_t status);", ""]
    for matrix in interface.matrices:
        lines.append(_inline(matrix.note))
        lines += [f"#define {macro} {size}" for macro, size in matrix.sizes]
        lines += [*map(_table, (matrix.indptr, matrix.indices)), ""]
    lines += map(_table, interface.tables)
    lines += ["", *_structs(interface)] if interface.tables else _structs(interface)
    lines += ["#ifdef __cplusplus", "}", "#endif", "", "#endif", ""]
    return "\n".join(lines)


def _table(leaf: Leaf) -> str:
    """The declaration of a constant array."""
    return f"extern const {leaf.c_type} {leaf.name}[{max(leaf.length, 1)}]; {_inline(leaf.note)}"


def _usage(interface: Interface) -> list[str]:
    """What a caller must know, and a call."""
    name, routines = interface.name, interface.text.routines
    prefix = interface.macro
    lines = [
        "Arrays are in C order. Results overlap neither arguments nor each other.",
        "The workspace begins at any address; what is in it does not matter. Threads that call the",
        "function at the same time have one each. Nothing else is written, no memory is allocated.",
    ]
    if routines:
        lines += [
            "",
            f"To be linked with BLAS and LAPACK: {', '.join(routines)}. Their integers may",
            "have 32 or 64 bits.",
        ]
    lines += ["", "A call:", ""]
    for leaf in interface.leaves:
        lines.append(f"    {leaf.c_type} {leaf.name}[{max(leaf.length, 1)}];")
    lines.append(f"    unsigned char workspace[{prefix}_WORKSPACE_BYTES];")
    passed = ", ".join([*(leaf.name for leaf in interface.leaves), "workspace"])
    lines.append(f"    int32_t status = {name}({passed});")
    lines.append(f"    if (status != {prefix}_SUCCESS) puts({name}_error_text(status));")
    return lines


def _structs(interface: Interface) -> list[str]:
    """The function once more, with structs for containers; nothing if there are none."""
    if not interface.has_structs:
        return []
    name = interface.name
    lines = ["/* The same, with a struct for each argument that is a container. */"]
    parameters, passed = [], []
    for group, const, type_ in interface.typed_groups:
        if group.fields:
            lines += [*_struct(group, const, type_), ""]
            parameters.append(f"const {type_} *{group.name}")
            passed += [f"{group.name}->{field}" for field in group.fields]
        else:
            parameters.append(f"{const}{group.leaves[0].c_type} *{group.name}")
            passed.append(group.name)
    lines.append(f"static inline int32_t {name}_call(")
    lines += [f"    {parameter}," for parameter in parameters]
    lines += ["    void *workspace)", "{", f"    return {name}({', '.join(passed)}, workspace);"]
    return [*lines, "}", ""]


def _struct(group: Group, const: str, type_: str) -> list[str]:
    rows = zip(group.fields, group.leaves, strict=True)
    fields = [f"    {const}{leaf.c_type} *{field}; {_inline(leaf.note)}" for field, leaf in rows]
    return ["typedef struct {", *fields, f"}} {type_};"]


def _comment(lines: Sequence[str]) -> list[str]:
    return ["/*", *(f" * {_safe(line)}".rstrip() for line in lines), " */"]


def _inline(text: str) -> str:
    return f"/* {_safe(text)} */"


def _safe(text: str) -> str:
    """A text that ends no comment and begins no other."""
    return " ".join(text.replace("*/", "* /").replace("/*", "/ *").split("\n"))
