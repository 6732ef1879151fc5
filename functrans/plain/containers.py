"""Containers of a program in twins: the same items, keys and settings, which are twins.

Here: how they are made, and what is written back to those of the program. Not here: ``twin`` of any
value (``plain.twins``).

Layer: ``plain``.
"""

from __future__ import annotations

import collections
import types
from typing import Any

from functrans.plain.memory import of_fields
from functrans.plain.memos import memo
from functrans.plain.twins import given_back, makers, makers_of_bases, twin


def _twin_list(value: Any) -> Any:
    items = list(map(twin, value))
    if all(new is old for new, old in zip(items, value, strict=True)):
        memo().shared.append(value)
        return value
    result = _emptied(value)
    result.extend(items)
    memo().containers.append((value, result, items))
    return result


def _twin_dict(value: dict[Any, Any]) -> Any:
    """Functions, classes and objects are found under their twins."""
    pairs = [(key, twin(key), item, twin(item)) for key, item in value.items()]
    if all(own is key and new is item for key, own, item, new in pairs):
        memo().shared.append(value)
        return value
    items = _emptied(value)
    items.update({own: new for _, own, _, new in pairs})
    memo().containers.append((value, items, [(own, new) for _, own, _, new in pairs]))
    return items


def _twin_namespace(value: types.SimpleNamespace) -> Any:
    items = _twin_dict(value.__dict__)
    if items is value.__dict__:
        return value
    result = types.SimpleNamespace()
    memo().containers[-1] = value.__dict__, result.__dict__, memo().containers[-1][2]
    result.__dict__.update(items)
    return result


def _emptied(value: Any) -> Any:
    """An empty container of the same class and settings."""
    kind = type(value)
    if kind is collections.defaultdict:
        return kind(twin(value.default_factory))
    return kind((), value.maxlen) if kind is collections.deque else kind()


def _twin_set(value: Any) -> Any:
    pairs = [(item, twin(item)) for item in value]
    if all(new is item for item, new in pairs):
        return value
    items = type(value)([new for _, new in pairs])
    if type(value) is set:
        memo().containers.append((value, items, [new for _, new in pairs]))
    return items


def give_back_items(container: Any, twin: Any, first: Any) -> None:
    """Write to a container from outside what was written to its twin.

    Args:
      container: of the world.
      twin: its twin.
      first: what the twin held at first, in order: items, or keys and items.
    """
    if isinstance(twin, dict):
        now: Any = list(twin.items())
        if len(now) == len(first) and all(
            a is b for pair, old in zip(now, first, strict=True)
            for a, b in zip(pair, old, strict=True)
        ):  # fmt: skip
            return
        olds = {id(x): old for pair, known in zip(first, container.items(), strict=True)
                for x, old in zip(pair, known, strict=True)}  # fmt: skip

        def old(value: Any) -> Any:
            return olds[id(value)] if id(value) in olds else given_back(value)

        new = {old(key): old(item) for key, item in now}
        container.clear()
        container.update(new)
        return
    items = list(twin)
    is_same = len(items) == len(first) and all(a is b for a, b in zip(items, first, strict=True))
    if is_same or (type(twin) is set and set(map(id, items)) == set(map(id, first))):
        return
    olds = {id(new): old for new, old in zip(first, container, strict=True)}
    found = [olds[id(item)] if id(item) in olds else given_back(item) for item in items]
    container.clear()
    (container.update if type(twin) is set else container.extend)(found)


def _twin_tuple(value: tuple[Any, ...]) -> Any:
    items = list(map(twin, value))
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    return tuple(items)


def _twin_named_tuple(value: Any) -> Any:
    items = list(map(twin, value))
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    return of_fields(value, items, twin)


makers.update(
    {
        list: _twin_list,
        collections.deque: _twin_list,
        dict: _twin_dict,
        collections.OrderedDict: _twin_dict,
        collections.defaultdict: _twin_dict,
        collections.Counter: _twin_dict,
        types.SimpleNamespace: _twin_namespace,
        tuple: _twin_tuple,
        set: _twin_set,
        frozenset: _twin_set,
    }
)
makers_of_bases.append(
    (lambda kind: issubclass(kind, tuple) and hasattr(kind, "_fields"), _twin_named_tuple)
)
