"""Containers of a program in twins: the same items, keys and settings, which are twins.

Here: how they are made, and what is written back to those of the program. Not here: ``twin`` of any
value (``plain.twins``).

Layer: ``plain``.
"""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any

from functrans.core.dispatch import Tracer
from functrans.plain.memory import Buffer, settled, with_items
from functrans.plain.memos import memo
from functrans.plain.twin_classes import change_attributes
from functrans.plain.twins import (
    ATOMS,
    CONTAINERS,
    fill_of_containers,
    given_back,
    givers,
    is_of_twin,
    makers,
    makers_of_bases,
    plain_number,
    twin,
)


def _twin_list(value: Sequence[Any]) -> Any:
    result = _emptied(value)
    memo().note(value, result)  # it may hold itself
    result.extend(map(twin, value))
    if all(map(operator.is_, result, value)):
        memo().share(value)
        return value
    memo().containers.append((value, result, list(result)))
    return result


def _twin_dict(value: dict[Any, Any]) -> dict[str, Any]:
    return _filled(value, _emptied(value))


def _filled(value: dict[Any, Any], items: dict[Any, Any]) -> dict[str, Any]:
    """The twin of a dictionary, in an empty one; functions and objects are found under theirs."""
    memo().note(value, items)
    pairs = [(key, twin(key), item, twin(item)) for key, item in value.items()]
    if all(own is key and new is item for key, own, item, new in pairs):
        memo().share(value)
        return value
    items.update({own: new for _, own, _, new in pairs})
    memo().containers.append((value, items, [(own, new) for _, own, _, new in pairs]))
    return items


def _twin_namespace(value: types.SimpleNamespace) -> Any:
    result = types.SimpleNamespace()
    items = _filled(value.__dict__, result.__dict__)
    return value if items is value.__dict__ else result


def _emptied(value: Any) -> Any:
    """An empty container of the same class and settings."""
    kind = type(value)
    if kind is collections.defaultdict:
        return kind(twin(value.default_factory))
    return kind((), value.maxlen) if kind is collections.deque else kind()


def _twin_set(value: Any) -> Any:
    pairs = [(item, twin(item)) for item in value]
    if all(new is item for item, new in pairs):
        memo().share(value)
        return value
    items = type(value)([new for _, new in pairs])
    if type(value) is set:
        memo().containers.append((value, items, [new for _, new in pairs]))
    return items


def _fill(value: Any, result: Any) -> None:
    """Put twins of the items of an object of a user's class into its twin."""
    memo().note(value, result)
    own = _builtin(value)
    if issubclass(own, dict):
        if own is collections.defaultdict:
            result.default_factory = twin(value.default_factory)
        first: Any = [(twin(key), twin(item)) for key, item in own.items(value)]
        own.update(result, dict(first))
    else:
        if own is collections.deque:
            own.__init__(result, (), value.maxlen)
        first = [twin(item) for item in own.__iter__(value)]
        _put(own, result, first)
    memo().containers.append((value, result, first))


def _builtin(container: object) -> Any:
    """The class whose methods say what a container holds, whatever a user's class makes of them."""
    own = type(container)
    return own if own in makers else next(x for x in CONTAINERS if isinstance(container, x))


def _put(own: Any, container: object, items: list[Any]) -> None:
    (own.update if issubclass(own, set) else own.extend)(container, items)


def give_back_items(container: Any, twin: Any, first: Any) -> None:
    """Write to a container from outside what was written to its twin.

    Args:
      container: of the world.
      twin: its twin.
      first: what the twin held at first, in order: items, or keys and items.
    """
    own = _builtin(container)
    if issubclass(own, dict):
        now: Any = list(own.items(twin))
        if len(now) == len(first) and all(
            a is b for pair, old in zip(now, first, strict=True)
            for a, b in zip(pair, old, strict=True)
        ):  # fmt: skip
            return
        olds = {id(x): old for pair, known in zip(first, own.items(container), strict=True)
                for x, old in zip(pair, known, strict=True)}  # fmt: skip

        def old(value: object) -> Any:
            return olds[id(value)] if id(value) in olds else given_back(value)

        new = {old(key): old(item) for key, item in now}
        own.clear(container)
        own.update(container, new)
        return
    items = list(own.__iter__(twin))
    is_same = len(items) == len(first) and all(a is b for a, b in zip(items, first, strict=True))
    if is_same or (own is set and set(map(id, items)) == set(map(id, first))):
        return
    olds = {id(new): old for new, old in zip(first, own.__iter__(container), strict=True)}
    found = [olds[id(item)] if id(item) in olds else given_back(item) for item in items]
    own.clear(container)
    _put(own, container, found)


def _twin_tuple(value: Any) -> Any:
    return _of_items(value, list(map(twin, value)), twin)


def _of_items(value: Any, items: list[Any], change: Callable[[Any], Any]) -> Any:
    """A tuple, named or not, of other items; itself if they are the same."""
    if all(map(operator.is_, items, value)):
        return value
    return tuple(items) if type(value) is tuple else with_items(value, items, change)


def _replace_items(value: object, change: Callable[[Any], Any]) -> None:
    """Change the items of a list or deque."""
    own = _builtin(value)
    for i, item in enumerate(own.__iter__(value)):
        new = change(item)
        if new is not item:
            own.__setitem__(value, i, new)


# what is given back ------------------------------------------------------------------------------


def _give_items(value: Any) -> list[Any]:
    """A list or deque with its items given back, the same one."""
    if not memo().has_visited(value):
        _replace_items(value, given_back)
    return value


def _give_dict(value: Any) -> dict[str, Any]:
    if memo().has_visited(value):
        return value
    own = _builtin(value)
    pairs = [(key, given_back(key), item, given_back(item)) for key, item in own.items(value)]
    if any(new is not key for key, new, _, _ in pairs):
        own.clear(value)
        own.update(value, {new: item for _, new, _, item in pairs})
    else:
        for key, _, item, new in pairs:
            if new is not item:
                own.__setitem__(value, key, new)
    return value


def _give_set(value: Any) -> Any:
    if isinstance(value, set) and memo().has_visited(value):
        return value
    own: Any = frozenset if isinstance(value, frozenset) else set
    items = list(own.__iter__(value))
    new = list(map(given_back, items))
    if all(map(operator.is_, new, items)):
        return value
    if own is frozenset:
        return frozenset(new)
    set.clear(value)
    set.update(value, new)
    return value


def _give_tuple(value: Any) -> Any:
    items = list(map(given_back, value))
    if getattr(value, "__dict__", None):  # what its class keeps beside them is given back, too
        return with_items(value, items, given_back)
    return _of_items(value, items, given_back)


def _give_namespace(value: object) -> Any:
    _give_dict(value.__dict__)
    return value


_GIVERS: dict[type, Callable[[Any], Any]] = {
    collections.OrderedDict: _give_dict,
    collections.defaultdict: _give_dict,
    list: _give_items,
    collections.deque: _give_items,
    dict: _give_dict,
    set: _give_set,
    frozenset: _give_set,
    tuple: _give_tuple,
    types.SimpleNamespace: _give_namespace,
}
givers.update(_GIVERS)
fill_of_containers.update(dict.fromkeys(CONTAINERS, _fill))
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
    (lambda kind: issubclass(kind, tuple) and hasattr(kind, "_fields"), _twin_tuple)
)


def without(value: Any, trace: Any, seen: set[int]) -> Any:
    """A value of a twin with plain numbers in place of those of a trace that has ended.

    Args:
      value: any; containers and objects are changed.
      trace: that trace.
      seen: identities of what was looked through.
    """
    kind = type(value)
    if kind in ATOMS:
        return value
    if kind is Buffer:
        found = settled(value)
        return without(found, trace, seen) if isinstance(found, Tracer) else value
    if isinstance(value, Tracer):
        return plain_number(value) if value._trace is trace else value
    if kind is tuple or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        return _of_items(value, [without(item, trace, seen) for item in value], lambda x: x)
    if id(value) in seen:
        return value
    seen.add(id(value))
    if kind is collections.deque or isinstance(value, list):
        _replace_items(value, lambda item: without(item, trace, seen))
    elif isinstance(value, dict):
        own = _builtin(value)
        changed = {k: new for k, x in own.items(value) if (new := without(x, trace, seen)) is not x}
        own.update(value, changed)
    if kind is types.SimpleNamespace or is_of_twin(kind):
        change_attributes(value, lambda content: without(content, trace, seen))
    return value
