"""Arguments of jitted functions: which are traced, static or given away, and the keys of calls.

Here: ``Signature``, which takes the arguments of a call apart, and what a program depends on of a
call. Not here: what ``static_argnums`` and the like mean (``jitted.named_arguments``), what is done
with the parts (``jitted.jit``, ``jitted.staged_calls``).

Layer: ``jitted``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import canonical, name_of
from functrans.core.avals import PYTHON_SCALARS, aval_of_plain
from functrans.core.calling import call_traced
from functrans.core.dispatch import Tracer
from functrans.core.source import defined_at, here, signature_of
from functrans.core.state import LOOKS, Config, current_config, open_traces
from functrans.core.tapes import TapeValue
from functrans.errors import UnsupportedOperationError
from functrans.passes.simplify import exact_key


class Signature:
    """A function that is jitted, with what is static of its arguments and what is given away.

    Args:
      fun: the function.
      static_argnums: positions of arguments that it gets as they are.
      static_argnames: their names.
      donate_argnums: positions of arguments that the caller gives away.
      donate_argnames: their names.

    Attributes:
      name: of the function.
      label: of the jitted one, for messages.
    """

    __slots__ = (
        "donate_argnames", "donate_argnums", "fun", "label", "name", "static_argnames",
        "static_argnums",
    )  # fmt: skip

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: tuple[int, ...],
        static_argnames: frozenset[str],
        donate_argnums: tuple[int, ...],
        donate_argnames: frozenset[str],
    ) -> None:
        self.fun = fun
        self.name = name_of(fun)
        self.label = f"jit of {self.name}"
        self.static_argnums = static_argnums
        self.static_argnames = static_argnames
        self.donate_argnums = donate_argnums
        self.donate_argnames = donate_argnames

    def static_positions(self, n_args: int) -> set[int]:
        """Positions of static arguments, from the front."""
        return {i % n_args for i in self.static_argnums if -n_args <= i < n_args}

    def split(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], Any, Hashable]:
        """Leaves and structure of the traced arguments, and a key of the rest.

        The rest are the static ones, and the orders of dicts, which their structure leaves open.
        """
        names = self.static_argnames
        if not names and not self.static_argnums:
            return *tree.flatten((args, kwargs)), tree.dict_orders((args, kwargs))
        positions = self.static_positions(len(args))
        static: list[Any] = [
            (i, exact_key(self._hashable(args[i], args, i))) for i in sorted(positions)
        ]
        static += [
            (name, exact_key(self._hashable(kwargs[name], args, name)))
            for name in sorted(names & kwargs.keys())
        ]
        if static:
            args = tuple([arg for i, arg in enumerate(args) if i not in positions])
            kwargs = {name: value for name, value in kwargs.items() if name not in names}
        leaves, treedef = tree.flatten((args, kwargs))
        return leaves, treedef, (*static, *tree.dict_orders((args, kwargs)))

    def call_with(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        treedef: object,
        leaves: Sequence[Any],
    ) -> Any:
        """Call the function itself, with other leaves in place of those that ``split`` gave."""
        full, named, _ = self.arguments_with(args, kwargs, treedef, leaves)
        return call_traced(self.fun, *full, **named)

    def arguments_with(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        treedef: object,
        leaves: Sequence[Any],
    ) -> tuple[list[Any], dict[str, Any], Any]:
        """The arguments with other leaves in place of those that ``split`` gave.

        Returns:
          Positional ones, those by name, and the traced ones of both in their containers.
        """
        positions = self.static_positions(len(args))
        traced, traced_kwargs = tree.unflatten(treedef, list(leaves))
        given = iter(traced)
        full = [arg if i in positions else next(given) for i, arg in enumerate(args)]
        static = {k: v for k, v in kwargs.items() if k in self.static_argnames}
        return full, {**traced_kwargs, **static}, (traced, traced_kwargs)

    def _hashable(self, value: int, args: tuple[Any, ...], place: int | str) -> int:
        """A static value, which came at a position or under a name."""
        try:
            hash(value)
        except TypeError:
            name = self.names(args)[place] if isinstance(place, int) else place
            raise TypeError(
                f"{self.label}: static argument {name} is a {type(value).__name__}{here()}, which "
                "cannot be hashed, so that its program could not be found again; pass a tuple, a "
                "string or a frozen dataclass, or make it a traced argument if it holds arrays"
            ) from None
        return value

    def names(self, args: tuple[Any, ...]) -> list[str]:
        """A name for each positional argument: that of the parameter it is bound to."""
        try:
            bound = signature_of(self.fun).bind_partial(*args).arguments
        except (TypeError, ValueError):
            return [f"args[{i}]" for i in range(len(args))]
        names: list[str] = []
        for name, value in bound.items():
            if len(names) + 1 < len(args) and name == list(bound)[-1]:  # *args takes the rest
                names.extend(f"{name}[{i}]" for i in range(len(value)))
            else:
                names.append(name)
        return names if len(names) == len(args) else [f"args[{i}]" for i in range(len(args))]

    def paths(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
        """Key paths of the leaves of the traced arguments."""
        positions = self.static_positions(len(args))
        paths: list[str] = []
        for i, (name, arg) in enumerate(zip(self.names(args), args, strict=True)):
            if i not in positions:
                paths.extend(tree.key_paths(arg, name))
        for name in sorted(kwargs):
            if name not in self.static_argnames:
                paths.extend(tree.key_paths(kwargs[name], name))
        return paths

    def canonical(
        self, leaves: list[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> list[Any]:
        """Leaves as arrays, numbers or tracers."""
        values = []
        for i, leaf in enumerate(leaves):

            def describe(i: int = i) -> str:
                return f"{self.label}: {self.paths(args, kwargs)[i]}"

            known = isinstance(leaf, (np.ndarray, Tracer, TapeValue))
            if not known and aval_of_plain(leaf) is None:
                path = self.paths(args, kwargs)[i]
                kind = type(leaf).__qualname__
                if path == "self":
                    raise UnsupportedOperationError(
                        f"{self.label}{defined_at(self.fun)} decorates a method, whose self is of "
                        f"type {kind}{here()}: jit the bound method instead, step = "
                        f"ft.jit(obj.{name_of(self.fun)}), whose program keeps what obj's "
                        "attributes are when it is traced (one jitted anew sees others), or "
                        f"{tree.HOW_TO_REGISTER}: then they are arguments"
                    )
                name = path if path.isidentifier() else "..."
                raise UnsupportedOperationError(
                    f"{describe()} is of type {kind}{here()}, not an array of numbers; make the "
                    f'argument static (static_argnums, static_argnames="{name}") if the program '
                    "depends on its value, convert it with np.asarray(x), or "
                    f"{tree.HOW_TO_REGISTER}"
                )
            values.append(canonical(leaf, describe))
        return values

    def donated(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
        """Positions of the leaves that are given away; numbers are not worth it."""
        if not self.donate_argnums and not self.donate_argnames:
            return ()
        n_args, static = len(args), self.static_positions(len(args))
        positions = {i % n_args for i in self.donate_argnums if -n_args <= i < n_args}
        groups = [(arg, i in positions) for i, arg in enumerate(args) if i not in static]
        groups += [
            (kwargs[name], name in self.donate_argnames)
            for name in sorted(kwargs)
            if name not in self.static_argnames
        ]
        leaves = [(leaf, given) for arg, given in groups for leaf in tree.leaves(arg)]
        return tuple([i for i, (leaf, given) in enumerate(leaves) if given and np.ndim(leaf)])


# what a program depends on ------------------------------------------------------------------------

DEFAULT_CONFIG = current_config.get()
_LEAF_TYPES = frozenset({np.ndarray, float, int, complex, bool, np.float64, np.float32})


def unwatched(settings: Config) -> Config | None:
    """What a program depends on of a configuration, not how it is looked at."""
    settings = replace(settings, **LOOKS)
    return None if settings == DEFAULT_CONFIG else settings


def is_leaf(arg: object) -> bool:
    """Whether an argument is surely no container."""
    return type(arg) in _LEAF_TYPES or isinstance(arg, Tracer)


def leaf_key(leaf: Any) -> Hashable:
    """What a program depends on of a leaf; ``None`` for what is no array of numbers."""
    cls: type[Any] = type(leaf)
    if cls is np.ndarray:
        dtype = leaf.dtype
        return (leaf.shape, dtype) if dtype.isnative and dtype.kind in "fciub" else None
    if cls in PYTHON_SCALARS:
        return cls  # type: ignore[return-value]  # a class has a hash
    if isinstance(leaf, Tracer):
        aval = leaf.aval
        return _WEAK_KEYS[aval.dtype.kind] if aval.weak else (aval.shape, aval.dtype)
    return None


_WEAK_KEYS: dict[str, Hashable] = {"b": bool, "i": int, "f": float, "c": complex}


def axes_around() -> Hashable:
    """Named axes that collectives may refer to, with sizes."""
    return tuple(
        item for trace in open_traces.get() if trace.is_staging for item in trace.axes.items()
    )
