"""Data in parts: Dask arrays, bags and lists of delayed loaders, part by part.

Here: ``Chunks``, what a program is told of the parts, and ``chunks_of``. Not here: what is done
with them (``sums``, ``running``).

Layer: ``dask``.
"""

from __future__ import annotations

import itertools
import math
import operator
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from functrans import pytrees as tree
from functrans.core.avals import ShapedArray
from functrans.core.caching import Recent, remembered
from functrans.core.source import here
from functrans.dask.scheduling import Told, description, schedule, stack_items
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.records import dataclass, field


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """Parts of data, each of which is a list of arguments.

    Attributes:
      graph: Dask's tasks that make the parts; what lies on workers is not in it.
      held: per part, keys of what it needs that lies on workers.
      keys: per part, the keys of its arguments in the graph.
      treedefs: per argument, its structure.
      kinds: per part, which of ``avals`` it has.
      avals: the different avals that parts have, those of the leaves of all arguments.
      rows: per part, its range of rows; ``None`` where it is not known.
      data: the collections, which have to live as long as their parts are asked for.
      work: what tasks do with the parts, for the ways that were taken last.
      seconds: per program, how long tasks took in the last call.
      places: where workers hold what lies there.
      noun: what a part is called in messages.
    """

    graph: Mapping[Hashable, Any]
    held: tuple[tuple[Hashable, ...], ...]
    keys: tuple[tuple[Hashable, ...], ...]
    treedefs: tuple[Any, ...]
    kinds: tuple[int, ...]
    avals: tuple[tuple[ShapedArray, ...], ...]
    rows: tuple[tuple[int, int], ...] | None
    data: tuple[Any, ...]
    work: Recent[Hashable, Any] = field(default_factory=lambda: Recent(4))
    seconds: Recent[Hashable, float] = field(default_factory=lambda: Recent(16))
    places: Told = field(default_factory=WeakKeyDictionary)
    noun: str = "chunk"

    def __len__(self) -> int:
        """Number of parts."""
        return len(self.keys)

    def __repr__(self) -> str:
        """How many parts, for printed programs."""
        return f"<{len(self)} {self.noun}s>"

    def collections(self) -> list[Any]:
        """The collections, each by itself."""
        return _collections(self.data)

    def name(self, number: int) -> str:
        """One part, for messages."""
        text = f"{self.noun} {number} of {len(self)}"
        if self.rows is None:
            return text
        first, last = self.rows[number]
        return f"{text} (rows {first}:{last})"


@remembered(64)
def items(count: int) -> Chunks:
    """Parts without data: what each gets are its elements of operands."""
    empty: tuple[tuple[Any, ...], ...] = ((),) * count
    return Chunks({}, empty, empty, (), (0,) * count, ((),), None, (), noun="item")


class KnownParts:
    """What the parts of the last call were, where only their making tells; it keeps no data."""

    __slots__ = ("_data", "_found")

    def __init__(self) -> None:
        self._data: tuple[Any, ...] = ()
        self._found: Any = None

    def of(self, data: Sequence[Any], ask: Callable[[], Any]) -> Any:
        """What ``ask`` tells of data, asked once for the same objects."""
        objects = _collections(data)
        before = [reference() for reference in self._data]
        is_same = len(before) == len(objects) and all(map(operator.is_, before, objects))
        if not is_same:
            self._found = ask()
            self._data = tuple(map(weakref.ref, objects))
        return self._found


def is_data(value: object) -> bool:
    """Whether an argument is data in parts."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_delayed, value))
    return _is_collection(value) and not _is_delayed(value)


def _is_collection(value: object) -> bool:
    return hasattr(value, "__dask_graph__") and not isinstance(value, type)


def _is_delayed(value: object) -> bool:
    return _is_collection(value) and type(value).__module__.startswith("dask.delayed")


def chunks_of(who: str, data: Sequence[Any], paths: Sequence[str], described: KnownParts) -> Chunks:
    """Parts of arguments, of which the same chunks belong together.

    Args:
      who: the caller, for messages.
      data: Dask arrays, bags, or lists of delayed values.
      paths: where the arguments stand, for messages.
      described: what the parts of the last call were.

    Raises:
      ShapeError: sizes of chunks are not known, or the arguments are cut differently.
      UnsupportedOperationError: an argument is another collection of Dask.
    """
    columns: list[Sequence[Hashable]] = []
    sizes: list[tuple[int, ...] | None] = []
    for value, path in zip(data, paths, strict=True):
        column, extents = _column(who, value, path)
        columns.append(column)
        sizes.append(extents)
    _check_cuts(who, columns, sizes, paths)
    graph = _graph(data)
    keys: tuple[tuple[Hashable, ...], ...] = tuple(zip(*columns, strict=True))
    known = next((extents for extents in sizes if extents is not None), None)
    if all(extents is not None for extents in sizes):
        each = [tuple(_array_aval(value, i) for value in data) for i in range(len(columns[0]))]
        treedefs: tuple[Any, ...] = (tree.LEAF,) * len(data)
    else:
        each, treedefs = described.of(data, lambda: _asked(who, graph, keys))
    avals = tuple(dict.fromkeys(each))
    ends = None if known is None else list(itertools.accumulate(known))
    rows = (
        None
        if ends is None or known is None
        else tuple((end - extent, end) for end, extent in zip(ends, known, strict=True))
    )
    kinds = tuple(map(avals.index, each))
    held = tuple(_missing(graph, part) for part in keys)
    return Chunks(graph, held, keys, treedefs, kinds, avals, rows, tuple(data))


def _graph(data: Sequence[Any]) -> Mapping[Hashable, Any]:
    """The optimised tasks of collections."""
    from dask._task_spec import convert_legacy_graph
    from dask.highlevelgraph import HighLevelGraph

    graph: dict[Hashable, Any] = {}
    groups: dict[Any, list[Any]] = {}
    for item in _collections(data):  # together, so that what several come from is made once
        groups.setdefault(item.__dask_optimize__, []).append(item)
    for optimize, items in groups.items():
        whole = HighLevelGraph.merge(*(item.__dask_graph__() for item in items))
        graph.update(optimize(whole, [item.__dask_keys__() for item in items]))
    for value in data:
        if _is_bag(value):
            graph |= {_stacked(key): (stack_items, key) for key in value.__dask_keys__()}
    tasks: Mapping[Hashable, Any] = convert_legacy_graph(graph)
    return tasks


def _missing(graph: Mapping[Hashable, Any], keys: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Keys of what others need that is not in a graph."""
    pending = list(keys)
    seen: set[Hashable] = set()
    found: list[Hashable] = []
    while pending:
        key = pending.pop()
        if key in seen:
            continue
        seen.add(key)
        if key in graph:
            pending += graph[key].dependencies
        else:
            found.append(key)
    return tuple(found)


def _collections(data: Sequence[Any]) -> list[Any]:
    """Collections, and those in lists."""
    listed = [value if isinstance(value, (list, tuple)) else [value] for value in data]
    return [item for items in listed for item in items]


def _is_bag(value: object) -> bool:
    return type(value).__name__ == "Bag"


def _stacked(key: Hashable) -> Hashable:
    return "stacked", key


def _column(who: str, value: Any, path: str) -> tuple[Sequence[Hashable], tuple[int, ...] | None]:
    """Keys of the parts of one argument, and the extents of their first axes if it is an array."""
    if isinstance(value, (list, tuple)):
        return [item.key for item in value], None
    if _is_bag(value):
        return list(map(_stacked, value.__dask_keys__())), None
    kind = type(value).__name__
    if not (kind == "Array" and hasattr(value, "chunks")):
        advice = (
            "give .to_dask_array(lengths=True) of it"
            if "Frame" in kind or "Series" in kind
            else ("expected a dask.array.Array, a Bag, or a list of delayed values")
        )
        raise UnsupportedOperationError(
            f"{who}: {path} is a {type(value).__module__}.{kind}{here()}; {advice}"
        )
    if value.dtype.kind not in "biufc" and value.dtype.name != "bfloat16":
        raise UnsupportedOperationError(
            f"{who}: {path} has dtype {value.dtype}{here()}; expected numbers"
        )
    if value.ndim == 0:
        raise ShapeError(
            f"{who}: {path} has no axis to be cut along{here()}; compute() it and pass the number"
        )
    if any(math.isnan(extent) for extents in value.chunks for extent in extents):
        raise ShapeError(
            f"{who}: sizes of the chunks of {path} are not known{here()}; call its "
            "compute_chunk_sizes(), or .to_dask_array(lengths=True) of a dataframe"
        )
    cut = [axis for axis, extents in enumerate(value.chunks) if axis and len(extents) > 1]
    if cut:
        raise ShapeError(
            f"{who}: {path} has chunks {value.chunks}{here()}; expected chunks along the first "
            f"axis only: .rechunk({{{', '.join(f'{axis}: -1' for axis in cut)}}})"
        )
    keys = [(value.name, i, *(0,) * (value.ndim - 1)) for i in range(len(value.chunks[0]))]
    return keys, tuple(map(int, value.chunks[0]))


def _check_cuts(
    who: str, columns: Sequence[Sequence[Hashable]], sizes: Sequence[Any], paths: Sequence[str]
) -> None:
    """Refuse arguments whose parts do not belong together."""
    for i in range(1, len(columns)):
        if len(columns[i]) != len(columns[0]) or (
            sizes[0] is not None and sizes[i] is not None and sizes[i] != sizes[0]
        ):
            texts = [
                f"{path}: {_in_words(column, extents)}"
                for path, column, extents in zip(paths, columns, sizes, strict=True)
            ]
            raise ShapeError(
                f"{who}: arguments are cut differently{here()}: {'; '.join(texts)}; rechunk one of "
                f"them, such as {paths[i]}.rechunk({{0: {paths[0]}.chunks[0]}})"
            )


def _in_words(column: Sequence[Hashable], extents: tuple[int, ...] | None) -> str:
    if extents is None:
        return f"{len(column)} parts"
    shown = ", ".join(map(str, extents[:5])) + (", ..." if len(extents) > 5 else "")
    return f"{len(column)} chunks of {shown} rows"


def _array_aval(value: Any, i: int) -> ShapedArray:
    return ShapedArray((int(value.chunks[0][i]), *map(int, value.shape[1:])), np.dtype(value.dtype))


def _asked(
    who: str, graph: Mapping[Hashable, Any], keys: Sequence[Sequence[Hashable]]
) -> tuple[list[tuple[ShapedArray, ...]], tuple[Any, ...]]:
    """Avals and structures of parts that only their making tells."""
    tasks: dict[Hashable, Any] = {
        ("describe", i): (description, list(part)) for i, part in enumerate(keys)
    }
    found = schedule({**graph, **tasks}, list(tasks))
    treedefs = found[0][1]
    for i, (_, own) in enumerate(found):
        if own != treedefs:
            raise ShapeError(
                f"{who}: chunk {i} has the structure {own}, but chunk 0 has {treedefs}; all "
                "must be the same"
            )
    return [avals for avals, _ in found], treedefs
