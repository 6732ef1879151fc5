"""Users' functions of data in parts as programs, one for each kind of part.

Layer: ``dask``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.bodies import Body, stage_body
from functrans.core.arguments import canonical, name_of
from functrans.core.dispatch import aval_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import here
from functrans.dask.chunks import Chunks, KnownParts, chunks_of, is_data
from functrans.passes.evaluate import evaluate
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.records import dataclass

Programs = tuple[Jaxpr, ...]
"""``(*part, *operands) -> results``, one for each kind of part."""


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """A call on data in parts.

    Attributes:
      programs: one for each kind of part.
      chunks: the parts.
      operands: what is the same for all parts: captured values and arguments.
      treedef: structure of the result, the same for all parts.
    """

    programs: Programs
    chunks: Chunks
    operands: list[Any]
    treedef: Any


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """Arguments of a call, by position and by name: leaves that are data in parts, and others.

    Attributes:
      leaves: all of them.
      treedef: structure of ``(args, kwargs)``.
      paths: what leaves are called.
      places: which of them are data.
    """

    leaves: list[Any]
    treedef: Any
    paths: list[str]
    places: list[int]

    @property
    def others(self) -> list[int]:
        """Which leaves are no data."""
        return [i for i in range(len(self.leaves)) if i not in self.places]

    def chunks(self, label: str, known: KnownParts) -> Chunks:
        """The parts of the data."""
        data = [self.leaves[i] for i in self.places]
        return chunks_of(label, data, [self.paths[i] for i in self.places], known)

    def value(self, label: str, i: int) -> Any:
        """A leaf that is no data, as an operand."""
        return canonical(self.leaves[i], f"{label}: {self.paths[i]}".__str__)

    def of_part(
        self, given: Sequence[Any], chunks: Chunks
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments by position and by name, of the leaves of a part and those that are no data."""
        own = iter(given)
        data = {
            i: tree.unflatten(part, [next(own) for _ in range(part.num_leaves)])
            for i, part in zip(self.places, chunks.treedefs, strict=True)
        }
        full = [data[i] if i in data else next(own) for i in range(self.treedef.num_leaves)]
        arguments: tuple[tuple[Any, ...], dict[str, Any]] = tree.unflatten(self.treedef, full)
        return arguments


def arguments_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
    """What a call is given, taken apart; data is a leaf."""
    leaves, treedef = tree.flatten(
        (args, kwargs), is_leaf=lambda node: node is not args and is_data(node)
    )
    numbers, keywords = tree.unflatten(treedef, range(len(leaves)))
    paths = tree.key_paths(numbers, "args") + tree.key_paths(keywords, "kwargs")
    return Arguments(leaves, treedef, paths, [i for i, leaf in enumerate(leaves) if is_data(leaf)])


def stage_parts(
    label: str,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    known: KnownParts,
    finish: Callable[[Any], Any] | None = None,
) -> Parts:
    """Stage a function for each kind of part of its arguments.

    Args:
      label: what it is, for messages.
      fun: the user's function.
      args: its arguments, some of which are data.
      kwargs: those by name.
      known: what parts of the last call were.
      finish: what to make of the result.

    Raises:
      TypeError: no argument is data, or results of parts have different structures.
    """
    arguments = arguments_of(args, kwargs)
    if not arguments.places:
        raise TypeError(
            f"{label}: no argument is data in parts{here()}; expected a dask.array.Array, a Bag, "
            "or a list of delayed values"
        )
    chunks = arguments.chunks(label, known)
    operands = [arguments.value(label, i) for i in arguments.others]

    def flat(*given: Any) -> Any:
        positional, keywords = arguments.of_part(given, chunks)
        return fun(*positional, **keywords)

    flat.__name__ = name_of(fun)
    bodies = []
    for avals in chunks.avals:
        given = [*avals, *map(aval_of, operands)]
        structure = tree.structure((0,) * len(given))
        try:
            bodies.append(stage_body(label, flat, structure, given, finish=finish))
        except Exception as error:
            data = [arguments.leaves[i] for i in arguments.places]
            rows = {value.shape[0] for value in data if hasattr(value, "chunks")}
            for i, value in zip(arguments.others, operands, strict=True):
                if np.ndim(value) and len(value) in rows:
                    error.add_note(
                        f"{arguments.paths[i]} is an array of NumPy with as many rows as the "
                        "data, and goes whole to each chunk; dask.array.from_array cuts it"
                    )
            raise
    for body in bodies:
        if body.treedef != bodies[0].treedef:
            raise TypeError(
                f"{label}: results of parts have different structures, "
                f"{tree.in_words(bodies[0].treedef)} and {tree.in_words(body.treedef)}"
            )
    programs, captured = _joined(bodies, len(chunks.avals[0]))
    return Parts(programs, chunks, [*captured, *operands], bodies[0].treedef)


def _joined(bodies: Sequence[Body], n: int) -> tuple[Programs, list[Any]]:
    """Programs ``(*part, *captured, *operands)`` that take what any of them captures."""
    captured: list[Any] = []
    for body in bodies:
        captured += [value for value in body.captured if not any(value is c for c in captured)]
    if not captured:
        return tuple(body.jaxpr for body in bodies), []
    programs = []
    for body in bodies:
        own = [next(i for i, c in enumerate(captured) if c is value) for value in body.captured]
        avals = body.jaxpr.in_avals[len(own) :]
        given = [*avals[:n], *(aval_of(value).strong() for value in captured), *avals[n:]]

        def run(*args: Any, body: Body = body, own: Sequence[int] = tuple(own)) -> list[Any]:
            part, rest = args[:n], args[n:]
            consts = [rest[i] for i in own]
            return evaluate(body.jaxpr, [*consts, *part, *rest[len(captured) :]])

        programs.append(simplify(stage(run, given, body.label, name=body.jaxpr.name)))
    return tuple(programs), captured
