"""Traced values that Python functions hold in their closures, made visible and exchanged.

Here: ``Template``, functions (and arguments) with holes in the place of the tracers that they refer
to. Not here: who fills the holes (``control.custom_rules``).

A rule that the user wrote runs later than the function that it belongs to, under other traces: in a
backward pass, or when a staged program is differentiated. What it refers to must then be the value
of that time, not a tracer of a trace that is closed. Closures, default arguments,
``functools.partial``, containers, jitted functions and functions with custom rules are looked
through. Attributes of other objects are where a derivative would be lost without a word (solvers,
``objects=True``); elsewhere a tracer in one raises ``EscapedTracerError`` when it is used too late.

Layer: ``control``.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.dispatch import Tracer
from functrans.core.source import here
from functrans.core.transformed import Wrapper
from functrans.errors import UnsupportedOperationError


class Hole:
    """Stands for a tracer that was taken out."""

    __slots__ = ()


_LIBRARIES = frozenset({"functrans", "numpy", "scipy"}) | sys.stdlib_module_names
_ATOMS = frozenset({int, float, str, bytes, bool, complex, type(None), type})


def _is_object(value: object) -> bool:
    """Whether a value is of a class that a user wrote: what it refers to are its attributes."""
    if not hasattr(value, "__dict__") or isinstance(value, (type, ModuleType)):
        return False
    module = type(value).__module__
    library = module.partition(".")[0]
    return module == "__main__" or library not in _LIBRARIES


def _children(value: Any, objects: bool = False) -> list[Any]:
    """What a value refers to, as far as it is looked through."""
    cls = type(value)
    if cls in _ATOMS or isinstance(value, (np.ndarray, np.generic)):
        return []
    if cls is FunctionType:
        found = list(value.__defaults__ or ())
        found.extend((value.__kwdefaults__ or {}).values())
        for cell in value.__closure__ or ():
            try:
                found.append(cell.cell_contents)
            except ValueError:  # not bound yet
                continue
        return found
    if cls is functools.partial:
        return [value.func, *value.args, *value.keywords.values()]
    if cls is MethodType:
        return [value.__func__, value.__self__]
    if isinstance(value, Wrapper):
        return list(value.parts())
    leaves = tree.leaves(value)
    if len(leaves) != 1 or leaves[0] is not value:
        return leaves
    return list(vars(value).values()) if objects and _is_object(value) else []


class _Graph:
    """Everything reachable from some roots, and what of it leads to marked values."""

    def __init__(
        self, roots: Sequence[Any], is_marked: Callable[[Any], bool], objects: bool
    ) -> None:
        self.marked: list[Any] = []
        self.values: dict[int, Any] = {}
        self.children: dict[int, list[Any]] = {}
        parents: dict[int, list[int]] = {}
        pending = list(roots)
        while pending:
            value = pending.pop()
            key = id(value)
            if key in self.values:
                continue
            self.values[key] = value  # keeps it alive, so that its id stays its own
            if is_marked(value):
                self.marked.append(value)
                continue
            own = self.children[key] = _children(value, objects)
            for child in own:
                parents.setdefault(id(child), []).append(key)
            pending.extend(own)
        self.leads: set[int] = set()
        stack = [id(value) for value in self.marked]
        while stack:
            key = stack.pop()
            if key not in self.leads:
                self.leads.add(key)
                stack.extend(parents.get(key, ()))


class _Exchange:
    """Copies of what leads to marked values, with other values in their place."""

    def __init__(self, graph: _Graph, replacement: dict[int, Any]) -> None:
        self.graph = graph
        self.done: dict[int, Any] = dict(replacement)

    def __call__(self, value: Any) -> Any:
        key = id(value)
        if key in self.done:
            return self.done[key]
        if key not in self.graph.leads:
            return value
        cls = type(value)
        if cls is FunctionType:
            return self._function(value)
        if cls is functools.partial:
            keywords = {name: self(item) for name, item in value.keywords.items()}
            new: Any = functools.partial(self(value.func), *map(self, value.args), **keywords)
        elif cls is MethodType:
            new = MethodType(self(value.__func__), self(value.__self__))
        elif isinstance(value, Wrapper):
            new = value.with_parts(lambda: tuple(map(self, value.parts())))
        elif tree.structure(value) is tree.LEAF:
            return self._object(value)
        else:
            leaves, treedef = tree.flatten(value)
            new = tree.unflatten(treedef, list(map(self, leaves)))
        self.done[key] = new
        return new

    def _object(self, value: object) -> Any:
        """A shallow copy of an object; its attributes come last, since they may refer to it."""
        cls = type(value)
        try:
            new = object.__new__(cls)
        except TypeError:
            names = [name for name, own in vars(value).items() if id(own) in self.graph.leads]
            raise UnsupportedOperationError(
                f"a {cls.__name__} holds a traced value in its attribute {names[0]!r}{here()}, and "
                "cannot be copied without it; pass the value as an argument of the function"
            ) from None
        self.done[id(value)] = new
        vars(new).update({name: self(own) for name, own in vars(value).items()})
        return new

    def _function(self, function: FunctionType) -> Any:
        """A copy of a function; its cells are filled last, since it may refer to itself."""
        old_cells = function.__closure__ or ()
        cells = tuple([CellType() if self._is_exchanged(cell) else cell for cell in old_cells])
        new = FunctionType(function.__code__, function.__globals__, function.__name__, None, cells)
        self.done[id(function)] = new
        if function.__defaults__:
            new.__defaults__ = tuple(map(self, function.__defaults__))
        if function.__kwdefaults__:
            new.__kwdefaults__ = {k: self(v) for k, v in function.__kwdefaults__.items()}
        new.__qualname__ = function.__qualname__
        new.__module__ = function.__module__
        for cell, old in zip(cells, old_cells, strict=True):
            if cell is not old:
                cell.cell_contents = self(old.cell_contents)
        return new

    def _is_exchanged(self, cell: CellType) -> bool:
        try:
            return id(cell.cell_contents) in self.graph.leads
        except ValueError:  # not bound yet
            return False


class Template:
    """Functions and values with holes in the place of tracers.

    Attributes:
      parts: the functions and values.
      holes: the holes, in the order of the tracers.
    """

    __slots__ = ("graph", "holes", "parts")

    def __init__(
        self, parts: tuple[Any, ...], holes: tuple[Hole, ...], objects: bool = False
    ) -> None:
        self.parts = parts
        self.holes = holes
        self.graph = _Graph(parts, lambda value: type(value) is Hole, objects) if holes else None

    def fill(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The functions with values in the holes."""
        if self.graph is None:
            return self.parts
        replacement = {id(hole): value for hole, value in zip(self.holes, values, strict=True)}
        return tuple(map(_Exchange(self.graph, replacement), self.parts))


def make_template(
    parts: tuple[Any, ...], *, objects: bool = False
) -> tuple[Template, list[Tracer]]:
    """Take the tracers out of functions and values.

    Args:
      parts: the functions and values.
      objects: whether attributes of objects are looked through; those that lead to tracers are
        then copied.

    Returns:
      The template, and the tracers that its holes stand for.

    Raises:
      UnsupportedOperationError: an object that holds a tracer cannot be copied.
    """
    graph = _Graph(parts, lambda value: isinstance(value, Tracer), objects)
    if not graph.marked:
        return Template(parts, ()), []
    holes = tuple([Hole() for _ in graph.marked])
    replacement = {id(t): hole for t, hole in zip(graph.marked, holes, strict=True)}
    exchange = _Exchange(graph, replacement)
    return Template(tuple(map(exchange, parts)), holes, objects), graph.marked
