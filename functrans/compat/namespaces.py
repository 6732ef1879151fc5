"""Modules made of a table of names: how ``compat.jax`` and ``compat.autograd`` are built.

Here: ``build``, which makes these modules, whose names are looked up when they are first used, and
``install``, which makes them what ``import jax`` finds. Not here: the tables.

Layer: ``compat``.
"""

from __future__ import annotations

import functools
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from types import FunctionType, MappingProxyType, ModuleType
from typing import Any

from functrans.core.boundary import boundary

Rows = Sequence[str]
"""Lines ``"place: name name public=name"``; ``*`` stands for all public names of the place."""


class Names:
    """What a module made of a table offers.

    Args:
      module: the module.
      library: what users call it.
      rows: where its names come from.
      dropped: keywords that its functions take and that change nothing.
      adapt: what is offered for a name and what it stands for.
    """

    def __init__(
        self,
        module: ModuleType,
        library: str,
        rows: Rows,
        dropped: Sequence[str],
        adapt: Callable[[str, Any], Any],
    ) -> None:
        self.module = module
        self.adapt = adapt
        self.library = library
        self.dropped = dropped
        self.places: dict[str, tuple[str, str]] = {}
        self.whole: list[str] = []
        for row in rows:
            place, _, names = row.partition(":")
            for name in names.split():
                public, _, own = name.partition("=")
                if name == "*":
                    self.whole.append(place)
                else:
                    self.places[public] = (place, own or public)

    def get(self, name: str) -> Any:
        """What a name stands for, at its first use; ``__all__`` for all names.

        Raises:
          AttributeError: it is not offered, or needs a package that is not installed.
        """
        if name == "__all__":
            return self.listed()
        value = self._looked_up(name)
        if self.dropped and isinstance(value, FunctionType):
            value = without(value, self.dropped)
        value = self.adapt(f"{self.library}.{name}", value)
        vars(self.module)[name] = value
        return value

    def _looked_up(self, name: str) -> Any:
        if name in self.places:
            place, own = self.places[name]
            try:
                return getattr(pkgutil.resolve_name(place), own)
            except ImportError as error:
                raise AttributeError(
                    f"{self.library}.{name} needs another package: {error}", name=name
                ) from None
        if not name.startswith("__"):
            for place in self.whole:
                source = pkgutil.resolve_name(place)
                if name in public_names(source):
                    return getattr(source, name)
        raise AttributeError(
            f"{self.library}.{name} is not offered by {self.module.__name__}; dir() lists what is",
            name=name,
            obj=self.module,
        )

    def listed(self) -> list[str]:
        """All names."""
        own = [
            name
            for name, value in vars(self.module).items()
            if not name.startswith("_")
            and not (isinstance(value, ModuleType) and value.__spec__)  # of this library
        ]
        there = [name for name, (place, _) in self.places.items() if _is_installed(place)]
        sources = map(pkgutil.resolve_name, self.whole)
        whole = [name for source in sources for name in public_names(source)]
        return sorted({*own, *there, *whole})


@functools.cache
def _is_installed(place: str) -> bool:
    """Whether the package of a place is there."""
    return find_spec(place.partition(".")[0]) is not None


def without(function: Callable[..., Any], dropped: Sequence[str]) -> Callable[..., Any]:
    """A function that takes further keywords, which change nothing.

    Example:
      >>> without(abs, ["precision"])(-1, precision=None)
      1
    """

    @functools.wraps(function)
    def call(*args: object, **options: object) -> Any:
        for name in dropped:
            options.pop(name, None)
        return function(*args, **options)

    return call


def public_names(source: object) -> list[str]:
    """Names of a module, or of an object that stands for one."""
    listed = getattr(source, "__all__", None)
    return [name for name in dir(source) if name[0] != "_"] if listed is None else list(listed)


def _public(row: str) -> list[str]:
    """The names of a row."""
    return [name.partition("=")[0] for name in row.partition(":")[2].split()]


def build(
    package: str,
    library: str,
    table: Mapping[str, Rows],
    dropped: Mapping[str, Sequence[str]] = MappingProxyType({}),
    adapt: Callable[[str, Any], Any] = lambda name, value: value,
) -> None:
    """Make the modules of a table, below a package that is being imported.

    Args:
      package: its qualified name; it becomes one of them.
      library: the name of the library whose names these are.
      table: name below the package (``""`` for itself) to where its names come from.
      dropped: name to keywords that functions of this module take and that change nothing.
      adapt: what is offered for a qualified name and what it stands for.
    """
    for name, rows in table.items():
        whole = f"{package}.{name}" if name else package
        module: Any = sys.modules.get(whole) or ModuleType(whole)
        own = f"{library}.{name}" if name else library
        names = Names(module, own, rows, dropped.get(name, ()), adapt)
        module.__doc__ = module.__doc__ or f"``{names.library}``: names over functrans."
        module.__path__ = getattr(module, "__path__", [])  # import statements ask for it
        module.__getattr__, module.__dir__ = boundary(names.get), names.listed
        sys.modules[whole] = module
        if name:
            above, _, last = name.rpartition(".")
            if not any(
                last in _public(row) for row in table[above]
            ):  # a name of its own goes first
                setattr(sys.modules[whole.rpartition(".")[0]], last, module)


def install(package: str, library: str) -> None:
    """Let ``import`` find the modules of a package under the library's own name, in this process.

    Raises:
      ImportError: the library itself is imported already.
    """
    package_module = sys.modules[package]
    found = sys.modules.get(library)
    if found is not None and found is not package_module:
        raise ImportError(
            f"{library} itself is imported already, from {getattr(found, '__file__', '?')}; call "
            f"{package}.install() before"
        )
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            sys.modules[library + name.removeprefix(package)] = module
