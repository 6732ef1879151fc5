"""The names that Python code mentions: which attributes a function can possibly read.

Here: ``Mentions``, names found in code objects. Not here: the walk that finds the code
(``autograd.reachable``).

An attribute that no code mentions cannot be read by name; code that reads attributes by reflection
(``getattr``, ``vars``, ``__dict__``) mentions that, and then every name counts.

Layer: ``autograd``.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator

REFLECTION = frozenset(
    {
        "__dict__",
        "__getattribute__",
        "asdict",
        "astuple",
        "attrgetter",
        "deepcopy",
        "eval",
        "exec",
        "getattr",
        "getmembers",
        "globals",
        "hasattr",
        "locals",
        "methodcaller",
        "vars",
    }
)
"""Names whose use may read attributes that are not named."""
CONSTRUCTION = ("__init__", "__new__", "__post_init__")
"""Methods that run where a class is called."""
_RARE = frozenset({*CONSTRUCTION, "__init_subclass__", "__repr__", "__str__"})


class Mentions:
    """Names that code mentions: of attributes, of globals, and texts that could be names.

    Special methods count without a mention, but for those that make or print an object.

    Attributes:
      names: them.
      is_all: whether any name may be meant.
      counts_special: whether special methods count, as they do in classes.
      matches: whether code takes objects apart by position (``case Point(x, y)``).

    Example:
      >>> mentions = Mentions()
      >>> mentions.add((lambda trainer: trainer.model).__code__)
      ['model']
      >>> "losses" in mentions
      False
    """

    def __init__(self, counts_special: bool = True) -> None:
        self.counts_special = counts_special
        self.names: set[str] = set()
        self.is_all = False
        self.matches = False

    def __contains__(self, name: object) -> bool:
        """Whether a name may be meant."""
        if self.is_all or name in self.names:
            return True
        is_special = isinstance(name, str) and name.startswith("__") and name.endswith("__")
        return is_special and self.counts_special and name not in _RARE

    def add(self, code: types.CodeType) -> list[str]:
        """Add what a code object mentions, functions inside it included; the names that are new."""
        found = dict.fromkeys(mentioned(code))
        if not found.keys().isdisjoint(("type", "__class__")):
            found.update(dict.fromkeys(CONSTRUCTION))
        if not found.keys().isdisjoint(("print", "repr", "str", "format")):
            found.update(dict.fromkeys(("__repr__", "__str__")))
        new = [name for name in found if name not in self.names]
        self.names.update(new)
        self.matches = self.matches or any(step.opname == "MATCH_CLASS" for step in _steps(code))
        self.is_all = self.is_all or not REFLECTION.isdisjoint(new)
        return new


def mentioned(code: types.CodeType) -> Iterator[str]:
    """The names that a code object mentions."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from mentioned(constant)
        elif isinstance(constant, str) and constant.isidentifier():
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from (x for x in constant if isinstance(x, str) and x.isidentifier())


def globals_of(code: types.CodeType) -> tuple[list[str], list[str]]:
    """Names of the globals that a code object reads or writes, and of modules that it imports."""
    names: dict[str, None] = {}
    modules: dict[str, None] = {}
    for step in _steps(code):
        if step.opname in _GLOBAL:
            names[step.argval] = None
        elif step.opname == "IMPORT_NAME" and step.argval:
            modules[step.argval] = None
    return list(names), list(modules)


_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})


def _steps(code: types.CodeType) -> Iterator[dis.Instruction]:
    """The instructions of a code object and of those inside it."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _steps(constant)
