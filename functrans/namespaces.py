"""What public namespaces list: ``__all__`` and ``dir()``.

Here: ``exported``, the names of a module that only re-exports, ``listing``, which makes the
``__dir__`` of a module from its ``__all__``, and ``missing``, the error for other names. Not here:
the names.

Layer: ``errors`` (imports nothing from functrans).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
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
