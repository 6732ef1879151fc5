"""Which parts of the data one task evaluates, and how a worker makes them.

Here: ``grouped`` (from a graph and its parts to tasks of whole groups), and ``run_group``, which a
worker runs. Not here: what is done with a part (``running``), sums of groups (``totals``).

A group is some parts, in order. The tasks that make its parts, and nothing else, go with it: a
worker runs them one part after the other and drops each value after its last use, so that it holds
one part at a time, and the scheduler sees one task for the group. Tasks that several groups need
stay tasks of their own, and what lies on workers already stays there.

Layer: ``dask``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from functrans.records import dataclass

SHARED = -1
"""The owner of what several groups need."""

Step = tuple[Hashable, Any, int, tuple[Hashable, ...]]
"""``(key, node, part, dropped)``: make a value, or (``part >= 0``) run a part; then drop values."""


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """What a worker does for a group.

    Attributes:
      steps: in order.
      needed: keys of values that come from elsewhere.
    """

    steps: tuple[Step, ...]
    needed: tuple[Hashable, ...]


# on the driver ----------------------------------------------------------------------------------


def grouped(
    graph: Mapping[Hashable, Any],
    parts: Sequence[Sequence[Hashable]],
    groups: Sequence[Sequence[int]],
) -> tuple[list[Recipe], dict[Hashable, Any]]:
    """Recipes of groups, and the tasks that several of them need.

    Args:
      graph: tasks that make parts; keys that are not in it lie on workers.
      parts: per part, the keys of its arguments.
      groups: numbers of parts, each of which is in one group.
    """
    owners = _owners(graph, parts, groups)
    recipes = [_recipe(graph, parts, group, owners, i) for i, group in enumerate(groups)]
    shared = {key: graph[key] for key, owner in owners.items() if owner == SHARED and key in graph}
    return recipes, shared


def _owners(
    graph: Mapping[Hashable, Any],
    parts: Sequence[Sequence[Hashable]],
    groups: Sequence[Sequence[int]],
) -> dict[Hashable, int]:
    """Per key, the group that alone needs it."""
    owners: dict[Hashable, int] = {}
    for own, group in enumerate(groups):
        pending = [(key, own) for i in group for key in parts[i]]
        while pending:
            key, asker = pending.pop()
            known = owners.get(key)
            if known in (asker, SHARED):
                continue
            node = graph.get(key)
            is_own = known is None and node is not None and not node.is_coro
            owner = asker if is_own else SHARED
            owners[key] = owner
            if node is not None:
                pending += [(dependency, owner) for dependency in node.dependencies]
    return owners


def _recipe(
    graph: Mapping[Hashable, Any],
    parts: Sequence[Sequence[Hashable]],
    group: Sequence[int],
    owners: Mapping[Hashable, int],
    own: int,
) -> Recipe:
    made: set[Hashable] = set()
    steps: list[tuple[Hashable, Any, int, Sequence[Hashable]]] = []
    for i in group:
        for key in parts[i]:
            steps += [
                (inner, graph[inner], -1, tuple(graph[inner].dependencies))
                for inner in _in_order(graph, key, made, owners, own)
            ]
        steps.append((None, tuple(parts[i]), i, parts[i]))
    seen: set[Hashable] = set()
    backwards: list[Step] = []
    for key, node, part, used in reversed(steps):
        last = tuple(dict.fromkeys(k for k in used if k not in seen))
        seen.update(last)
        backwards.append((key, node, part, last))
    needed = tuple(key for key in dict.fromkeys(seen) if key not in made)
    return Recipe(tuple(reversed(backwards)), needed)


def _in_order(
    graph: Mapping[Hashable, Any],
    key: Hashable,
    made: set[Hashable],
    owners: Mapping[Hashable, int],
    own: int,
) -> Iterator[Hashable]:
    """The keys to be made for one, each after what it needs."""
    pending = [(key, False)]
    while pending:
        inner, is_ready = pending.pop()
        if inner in made or owners[inner] != own:
            continue
        if is_ready:
            made.add(inner)
            yield inner
            continue
        pending.append((inner, True))
        pending += [(dependency, False) for dependency in graph[inner].dependencies]


# on workers -------------------------------------------------------------------------------------


def run_group(
    recipe: Recipe,
    values: Sequence[Any],
    run: Callable[[int, list[Any]], Any],
    name: Callable[[int], str],
) -> Iterator[Any]:
    """What ``run`` gives for the parts of a group, one after the other.

    Args:
      recipe: what to do.
      values: of ``recipe.needed``.
      run: gets the number of a part and its arguments.
      name: what a part is called in messages.
    """
    known = dict(zip(recipe.needed, values, strict=True))
    following = iter([part for _, _, part, _ in recipe.steps if part >= 0])
    number = next(following)
    for key, node, part, dropped in recipe.steps:
        try:
            if part < 0:
                known[key] = node(known)
            else:
                result = run(part, [known[key] for key in node])
        except Exception as error:
            error.add_note(f"in {name(number)}")
            raise
        for key in dropped:
            del known[key]
        if part >= 0:
            yield result
            number = next(following, part)
