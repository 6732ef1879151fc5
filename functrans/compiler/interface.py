"""What C sees of a program that leaves Python: names, types and numbers.

Here: names that C takes (``c_name``, ``c_names``), ``Leaf``, an array that C passes, ``Group``,
leaves that belong together, and ``Interface``, all of a function. Not here: the function itself
(``compiler.standalone``), the texts that declare it (``compiler.header``, ``compiler.bindings``).

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
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t
char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr
constinit
continue decltype default delete do double dynamic_cast else enum explicit export extern false float
for friend goto if inline int linux long main mutable namespace new noexcept not not_eq nullptr
operator or or_eq private protected public register reinterpret_cast requires restrict return short
signed sizeof static static_assert static_cast struct switch template this thread_local throw true
try typedef typeid typename typeof typeof_unqual union unix unsigned using virtual void volatile
wchar_t while xor xor_eq
NULL int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t
INT8_MAX INT16_MAX INT32_MAX INT64_MAX INT8_MIN INT16_MIN INT32_MIN INT64_MIN
UINT8_MAX UINT16_MAX UINT32_MAX UINT64_MAX SIZE_MAX
"""
"""Words of C and C++ that are no names, and names of what headers of exported code include."""


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


def macro_of(name: str) -> str:
    """``SLOPE`` for ``slope``; another one for each name, so that ``SLOPE`` is given ``slope``."""
    if name == name.lower():
        return name.upper()
    return name.lower() if name == name.upper() else name


def size_macros(prefix: str) -> tuple[str, ...]:
    """Macros of the sizes of a sparse matrix."""
    return tuple([f"{prefix}_{what}" for what in ("ROWS", "COLUMNS", "NNZ")])


@dataclass(frozen=True, slots=True)
class Leaf:
    """An array that C passes or is given.

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
    def root(self) -> str:
        """The argument that it belongs to, or ``"out"``."""
        found = re.match(r"\w+", self.path)
        return found[0] if found else self.path

    @property
    def note(self) -> str:
        """What it is, in words."""
        what = f"{self.path}: {self.aval.dtype}{list(self.aval.shape)}"
        if self.aval.dtype.kind == "c":
            what += ", pairs of real and imaginary parts"
        if self.c_type == "uint16_t" and self.aval.dtype.kind != "u":
            what += ", as bits"
        return what


@dataclass(frozen=True, slots=True)
class Group:
    """The leaves of one argument, or of the result.

    Attributes:
      name: the argument's in C.
      fields: names of the leaves within it; empty if it is an array, and no container.
      leaves: its leaves.
    """

    name: str
    fields: tuple[str, ...]
    leaves: tuple[Leaf, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """A sparse matrix among the results: its entries are one, its pattern is constant.

    Attributes:
      prefix: what its macros begin with.
      path: what Python calls it.
      shape: its rows and columns.
      is_by_rows: whether entries are stored row by row; else column by column.
      entries: the result.
      indptr: table of where rows, or columns, begin.
      indices: table of the columns, or rows, of entries.
    """

    prefix: str
    path: str
    shape: tuple[int, int]
    is_by_rows: bool
    entries: Leaf
    indptr: Leaf
    indices: Leaf

    @property
    def sizes(self) -> tuple[tuple[str, int], ...]:
        """Macros and their values."""
        rows, columns = self.shape
        values = (rows, columns, self.entries.aval.size)
        return tuple(zip(size_macros(self.prefix), values, strict=True))

    @property
    def note(self) -> str:
        """Where its entries are, in words."""
        line, other = ("row", "columns") if self.is_by_rows else ("column", "rows")
        return (
            f"{self.path}: {self.shape[0]} x {self.shape[1]}, sparse. The entries of {line} i are "
            f"{self.entries.name}[k] for k from {self.indptr.name}[i] to {self.indptr.name}[i + 1] "
            f"- 1, in {other} {self.indices.name}[k]."
        )


@dataclass(frozen=True, slots=True)
class Interface:
    """A function as C sees it.

    Attributes:
      name: its name.
      text: its code, what it needs and can end with.
      arguments: leaves of its arguments, in order.
      results: leaves of its result.
      tables: constant arrays beside it that the user gave.
      matrices: sparse matrices among the results.
      stack_bytes: the most stack that a call takes; ``None`` if it is not known.
    """

    name: str
    text: StandaloneText
    arguments: tuple[Leaf, ...]
    results: tuple[Leaf, ...]
    tables: tuple[Leaf, ...] = ()
    matrices: tuple[Matrix, ...] = ()
    stack_bytes: int | None = None

    @property
    def macro(self) -> str:
        """What names of macros and statuses begin with; names that differ in case only differ."""
        return macro_of(self.name)

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """Arguments and results, in order."""
        return (*self.arguments, *self.results)

    @property
    def constants(self) -> tuple[Leaf, ...]:
        """Constant arrays beside the function."""
        return (*(x for m in self.matrices for x in (m.indptr, m.indices)), *self.tables)

    @property
    def declaration(self) -> str:
        """The declaration, on one line."""
        given = [f"const {leaf.c_type} *{leaf.name}" for leaf in self.arguments]
        made = [f"{leaf.c_type} *{leaf.name}" for leaf in self.results]
        return f"int32_t {self.name}({', '.join([*given, *made, 'void *workspace'])})"

    @property
    def statuses(self) -> Mapping[int, str]:
        """Names of the numbers that it returns: ``SOLVE_LIN_ALG_ERROR``.

        Errors of one kind are numbered from the second one on.
        """
        prefix = self.macro
        names = {0: f"{prefix}_SUCCESS"}
        counts: Counter[str] = Counter()
        for failure in self.text.failures:
            kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", failure.kind).upper()
            counts[kind] += 1
            number = f"_{counts[kind]}" if counts[kind] > 1 else ""
            names[failure.status] = f"{prefix}_{kind}{number}"
        return names

    @property
    def reserved(self) -> tuple[str, ...]:
        """Macros and statuses of the header, which nothing else in it may be called."""
        own = [f"{self.macro}_{what}" for what in ("H", "WORKSPACE_BYTES", "STACK_BYTES")]
        sizes = [macro for matrix in self.matrices for macro, _ in matrix.sizes]
        return (*own, *sizes, *self.statuses.values())

    @property
    def groups(self) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
        """Arguments, and the result, each with its leaves."""
        reserved = self.reserved
        taken: list[str] = [self.name, "workspace", *reserved]
        found = []
        for leaves in (self.arguments, self.results):
            by_root: dict[str, list[Leaf]] = {}
            for leaf in leaves:
                by_root.setdefault(leaf.root, []).append(leaf)
            names = c_names(tuple(by_root), "arg", taken)
            taken += names
            rows = zip(names, by_root.items(), strict=True)
            found.append(tuple(_group(name, *item, reserved) for name, item in rows))
        return found[0], found[1]

    @property
    def has_structs(self) -> bool:
        """Whether some argument, or the result, is a container."""
        return any(group.fields for groups in self.groups for group in groups)

    @property
    def typed_groups(self) -> tuple[tuple[Group, str, str], ...]:
        """Arguments and result, each with ``"const "`` or nothing, and the name of its struct."""
        arguments, results = self.groups
        both = [(group, "const ") for group in arguments] + [(group, "") for group in results]
        taken = [f"{self.name}_call", f"{self.name}_error_text"]
        taken += [*self.reserved, *(leaf.name for leaf in self.constants)]
        taken += [group.name for group, _ in both]
        types = c_names([f"{self.name}_{group.name}" for group, _ in both], "arg", taken)
        return tuple([(*pair, type_) for pair, type_ in zip(both, types, strict=True)])


def _group(name: str, root: str, leaves: Sequence[Leaf], taken: Collection[str]) -> Group:
    paths = [leaf.path.removeprefix(root) for leaf in leaves]
    fields = c_names(paths, "item", taken) if any(paths) else ()
    return Group(name, tuple(fields), tuple(leaves))
