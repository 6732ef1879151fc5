"""What public namespaces list: ``__all__`` and ``dir()``.

Here: ``exported``, the names of a module that only re-exports, ``imported`` and ``places_in``, for
names that are imported when they are asked for, ``listing``, which makes the ``__dir__`` of a
module from its ``__all__``, and ``missing``, the error for other names. Not here: the names.

Layer: ``errors`` (imports nothing from functrans).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any


def exported(names: Mapping[str, Any], also: Sequence[str] = ()) -> list[str]:
    """The ``__all__`` of a module that only re-exports.

    Args:
      names: ``globals()`` of the module, at its end. Names without an underscore in front count,
        those of modules do not.
      also: names of modules that count, and names that are imported when they are asked for.

    Returns:
      The names, sorted.
    """
    found = {
        name
        for name, value in names.items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    return sorted(found.union(also) - {"annotations"})


def missing(module: str, name: str) -> AttributeError:
    """The error for a name that a module has not, of which Python suggests similar ones."""
    message = f"module {module!r} has no attribute {name!r}"
    return AttributeError(message, name=name, obj=sys.modules[module])


def listing(names: Sequence[str]) -> Callable[[], list[str]]:
    """The ``__dir__`` of a module whose ``__all__`` is given."""

    def listed() -> list[str]:
        """All public names."""
        return sorted(names)

    return listed


def imported(module: str, name: str) -> Any:
    """What a module has under a name, or the module of that name in a package."""
    value = vars(import_module(module)).get(name)
    return import_module(f"{module}.{name}") if value is None else value


def places_in(file: str) -> dict[str, tuple[str, str]]:
    """Names that a module imports for type checkers only: by public name, what ``imported`` takes.

    Args:
      file: ``__file__`` of the module. An indented ``from module import name as public`` counts.
    """
    with open(file, encoding="utf-8") as source:  # noqa: PTH123  # pathlib is slow to import
        text = source.read()
    lines = re.findall(r"^ +from (\S+) import (\w+) as (\w+)", text, re.MULTILINE)
    return {public: (module, name) for module, name, public in lines}
