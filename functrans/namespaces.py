"""What public namespaces list: ``__all__`` and ``dir()``.

Here: ``exported``, the names of a module that only re-exports, and ``listing``, which makes the
``__dir__`` of a module from its ``__all__``. Not here: the names.

Layer: ``errors`` (imports nothing from functrans).
"""

from __future__ import annotations

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


def listing(names: Sequence[str]) -> Callable[[], list[str]]:
    """The ``__dir__`` of a module whose ``__all__`` is given."""

    def listed() -> list[str]:
        """All public names."""
        return sorted(names)

    return listed
