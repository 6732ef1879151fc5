"""The linear functions that ``vjp``, ``linearize`` and ``linear_transpose`` return.

Here: ``Pullback`` and ``Pushforward``, which check what they are given, and what they run: recorded
nodes, until somebody looks inside; a program and the arrays it reads from then on. So they are
pytrees, whose leaves are those arrays, and pickle. Not here: the recording
(``transforms.reverse``), the passes (``passes.pullback``, ``passes.pushforward``).

Layer: ``transforms``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from functrans import pytrees as tree
from functrans.core.analyses import analysis
from functrans.core.arguments import (
    canonical,
    check_same_structure,
    leaf_description,
    tangent_dtype,
)
from functrans.core.avals import PYTHON_SCALARS, Zero, is_differentiable_dtype
from functrans.core.boundary import boundary
from functrans.core.dispatch import Tracer, aval_of, dtype_of, shape_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.ownership import own_arrays
from functrans.core.source import here
from functrans.errors import NonDifferentiableError, ShapeError, UnsupportedOperationError
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import Node, ordered_nodes
from functrans.passes.programs import (
    hoist,
    intern,
    map_saved,
    permute,
    prune_jaxpr,
    select,
    spread,
    with_saved,
)
from functrans.passes.pullback import pull_back, transpose_linear
from functrans.passes.pushforward import push_forward
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.passes.written import key_of
from functrans.primitives.structural import cast
from functrans.records import dataclass

# what linear functions run -----------------------------------------------------------------------


class Run(Protocol):
    """What a linear function runs."""

    @property
    def foreign(self) -> Sequence[Any]:
        """Arrays that others have, which are no results."""

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Results, ``None`` for zero, of values; those of dtype ``float0`` count for nothing."""

    def with_inputs(self) -> tuple[list[Any], Callable[[Sequence[Any]], Run]]:
        """The values that it reads and that are no constants, and the same with others."""


class _Recorded:
    """A recorded function.

    Attributes:
      inputs: node of each leaf of its arguments; ``None`` where it has no derivative.
      outputs: node of each leaf of its results; likewise.
      foreign: see ``Run``.
    """

    __slots__ = ("foreign", "inputs", "nodes", "outputs")

    def __init__(
        self,
        inputs: Sequence[Node | None],
        outputs: Sequence[Node | None],
        foreign: Sequence[Any],
    ) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.foreign = foreign
        self.nodes: list[Node] | None = None
        """The nodes of the outputs, and all before them, once they are asked for."""

    def ordered(self) -> list[Node]:
        """All nodes, in order."""
        if self.nodes is None:
            self.nodes = ordered_nodes([node for node in self.outputs if node is not None])
        return self.nodes

    def with_inputs(self) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
        """What the nodes saved, but for Python's numbers that are the same in every call."""
        nodes = self.ordered()
        found: dict[Any, Any] = {}
        for node in nodes:
            _map_values(node, lambda value: found.setdefault(key_of(value), value))

        def exchanged(others: Sequence[Any]) -> _Recorded:
            given = dict(zip(found, others, strict=True))
            copies = with_saved(nodes, lambda node: _map_values(node, lambda x: given[key_of(x)]))

            def copied(own: Sequence[Node | None]) -> list[Node | None]:
                return [node if node is None else copies.get(node, node) for node in own]

            return type(self)(copied(self.inputs), copied(self.outputs), ())

        return list(found.values()), exchanged


def _map_values(node: Node, function: Callable[[Any], Any]) -> Any:
    """What a node saved, with the values that depend on the point exchanged."""

    def own(value: object) -> Any:
        is_value = isinstance(value, (np.ndarray, np.generic, Tracer))
        return function(value) if is_value else value

    saved = map_saved(node.saved, own)
    if node.primitive is None or node.primitive.elementwise is None:
        return saved
    depends = [*(parent is not None for parent in node.parents), True]
    return [
        function(value) if flag and type(value) in PYTHON_SCALARS else value
        for value, flag in zip(saved, depends, strict=True)
    ]


class RecordedPull(_Recorded):
    """The backward pass of a recorded function."""

    __slots__ = ()

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Pull cotangents back."""
        pairs = zip(self.outputs, values, strict=True)
        seeds = [(node, value) for node, value in pairs if node is not None]
        flags = [node is not None for node in self.inputs]
        found = pull_back(seeds, [node for node in self.inputs if node is not None])
        return spread(flags, found, lambda i: None)


class RecordedPush(_Recorded):
    """The forward pass of a recorded function."""

    __slots__ = ()

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Push tangents forward."""
        pairs = zip(self.inputs, values, strict=True)
        given = [(node, value) for node, value in pairs if node is not None]
        return push_forward(self.ordered(), given, self.outputs)


@dataclass(frozen=True, slots=True, eq=False)
class TransposedProgram:
    """A linear program backwards."""

    jaxpr: Jaxpr
    foreign: Sequence[Any] = ()

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Pull cotangents back."""
        found = transpose_linear(self.jaxpr, (), values)
        return [None if type(value) is Zero else value for value in found]

    def with_inputs(self) -> tuple[list[Any], Callable[[Sequence[Any]], TransposedProgram]]:
        """The captured arrays are constants of what it gives; they are found there."""
        return [], lambda _: self


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """A program and the arrays that it reads.

    Attributes:
      jaxpr: ``(*foreign, *values) -> results``, of values with derivatives.
      foreign: the arrays.
      takes: which values it takes.
      gives: which results it gives; the others are zero.
    """

    jaxpr: Jaxpr
    foreign: Sequence[Any]
    takes: tuple[bool, ...]
    gives: tuple[bool, ...]

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Run the program."""
        outs = evaluate(self.jaxpr, [*self.foreign, *select(values, self.takes)])
        return spread(self.gives, outs, lambda i: None)

    def with_inputs(self) -> tuple[list[Any], Callable[[Sequence[Any]], _Program]]:
        """The arrays."""
        return list(self.foreign), lambda others: _Program(
            self.jaxpr, others, self.takes, self.gives
        )


def _program_of(run: Run, given: Side, label: str) -> _Program:
    """The program of what a linear function runs."""
    values, exchanged = run.with_inputs()
    takes = tuple(given.has_tangents())
    gives: list[bool] = []
    k = len(values)

    def staged(*args: object) -> list[Any]:
        own = iter(args[k:])
        outs = exchanged(args[:k])([next(own) if flag else None for flag in takes])
        gives.extend(out is not None for out in outs)
        return [out for out in outs if out is not None]

    avals = [*map(aval_of, values), *(a.strong() for a in select(given.avals, takes))]
    program, captured = hoist(simplify(stage(staged, avals, label, name=label.partition(" ")[0])))
    kept = [*captured, *values]
    program, read = prune_jaxpr(program, (True,) * len(program.outvars))
    needed = [*read[: len(kept)], *(True for _ in avals[k:])]
    program = permute(program, [i for i, flag in enumerate(needed) if flag])
    return _Program(intern(program), select(kept, needed[: len(kept)]), takes, tuple(gives))


# the functions -----------------------------------------------------------------------------------


class Side(NamedTuple):
    """What a linear function is given, or what it returns.

    Attributes:
      treedef: its structure.
      avals: types of what its leaves belong to.
      what: what it is, for messages.
      of: what it belongs to, for messages.
      root: its name there.
      integers: whether integers have tangents, as those of a linear function do.
    """

    treedef: Any
    avals: tuple[Any, ...]
    what: str
    of: str
    root: str
    integers: bool = False

    def has_tangents(self) -> Iterator[bool]:
        """Which leaves have tangents."""
        return (self.integers or is_differentiable_dtype(aval.dtype) for aval in self.avals)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Structure:
    """A linear function without the arrays that it keeps.

    Two are equal if they compute the same, wherever their lines are and whatever their names.
    """

    cls: type[Any]
    label: str
    given: Side
    returned: Side
    jaxpr: Jaxpr
    takes: tuple[bool, ...]
    gives: tuple[bool, ...]

    def _key(self) -> tuple[Any, ...]:
        given, returned = self.given, self.returned
        return (
            self.cls, given.treedef, given.avals, returned.treedef, returned.avals, given.integers,
            self.takes, self.gives, self.jaxpr.in_avals,
        )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Structure):
            return NotImplemented
        if self._key() != other._key():
            return False
        return self.jaxpr is other.jaxpr or _code(self.jaxpr) == _code(other.jaxpr)

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return self.label


@analysis
def _code(jaxpr: Jaxpr) -> str | Jaxpr:
    """What programs that compute the same have in common."""
    try:
        return jaxpr.structural_hash()
    except UnsupportedOperationError:  # a user's function is a part of it
        return jaxpr


class LinearFunction:
    """A linear function: the derivative of a function at a point, or its transpose.

    It is a pytree. Its leaves are the arrays that it keeps of the point; the program that reads
    them is a part of the structure, so that functions from one place are of one structure. It
    pickles, and is equal to another one of the same program and arrays.
    """

    __slots__ = ("__weakref__", "_given", "_label", "_returned", "_run")

    def __init__(self, label: str, given: Side, returned: Side, run: Run) -> None:
        _register()
        self._label = label
        self._given = given
        self._returned = returned
        self._run = run

    def _apply(self, argument: object) -> Any:
        given, returned = self._given, self._returned
        leaves, treedef = tree.flatten(argument)
        check_same_structure(self._label, given.treedef, treedef, given.what, given.of)
        values = []
        for i, (leaf, aval) in enumerate(zip(leaves, given.avals, strict=True)):
            describe = functools.partial(leaf_description, self._label, argument, i, given.root)
            values.append(fit_tangent(leaf, aval, describe, integers=given.integers))
        results = []
        for value, aval in zip(self._run(values), returned.avals, strict=True):
            dtype = aval.dtype if returned.integers else tangent_dtype(aval.dtype)
            if value is None:
                value = np.zeros(aval.shape, dtype)
            results.append(value if dtype_of(value) == dtype else cast(value, dtype))
        return tree.unflatten(returned.treedef, own_arrays(results, [*self._run.foreign, *leaves]))

    def _parts(self) -> tuple[tuple[Any, ...], _Structure]:
        """The arrays that it keeps, and the rest."""
        if type(self._run) is not _Program:
            self._run = _program_of(self._run, self._given, self._label)
        run = self._run
        static = _Structure(
            type(self), self._label, self._given, self._returned, run.jaxpr, run.takes, run.gives
        )
        return tuple(run.foreign), static

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinearFunction):
            return NotImplemented
        if self is other:
            return True
        (arrays, static), (others, other_static) = self._parts(), other._parts()
        return static == other_static and all(map(np.array_equal, arrays, others))

    def __hash__(self) -> int:
        return hash((self._label, self._given.avals, self._returned.avals))

    def __reduce__(self) -> Any:
        arrays, static = self._parts()
        return _of_parts, (static, arrays)

    def __repr__(self) -> str:
        """``<pullback of loss: f64[3] -> f64[]>``."""
        given, returned = (
            ", ".join(map(str, side.avals)) for side in (self._given, self._returned)
        )
        return f"<{self._label}: {given} -> {returned}>"


def _of_parts(static: _Structure, arrays: Sequence[Any]) -> LinearFunction:
    run = _Program(static.jaxpr, tuple(arrays), static.takes, static.gives)
    made: LinearFunction = static.cls(static.label, static.given, static.returned, run)
    return made


@functools.cache
def _register() -> None:
    """Make linear functions containers: once the first one is made, for which optree is there."""
    import optree

    register: Any = optree.register_pytree_node  # typed for classes of collections
    for cls in (Pullback, Pushforward):
        register(cls, LinearFunction._parts, _of_parts, namespace=tree.NAMESPACE)


class Pullback(LinearFunction):
    """A linear function from cotangents of results to those of arguments."""

    __slots__ = ()

    @boundary
    def __call__(self, ct: Any) -> Any:
        """Pull a cotangent of the result back to the primals."""
        return self._apply(ct)


class Pushforward(LinearFunction):
    """A linear function from tangents of arguments to those of results."""

    __slots__ = ()

    @boundary
    def __call__(self, *tangents: Any) -> Any:
        """Push tangents of the primals forward to the result."""
        return self._apply(tangents)


# what is given to them ---------------------------------------------------------------------------


def fit_tangent(
    value: Any, aval: Any, describe: Callable[[], str], *, integers: bool = False
) -> Any:
    """A tangent or cotangent given by the user, in the dtype of what it belongs to.

    Args:
      value: what was given.
      aval: what it belongs to.
      describe: gives its description for messages.
      integers: whether integers have tangents, as those of a linear function do.

    Raises:
      ShapeError: the shape differs.
      NonDifferentiableError: complex where real is expected, or no number; not zero where it
        belongs to an integer or a boolean.
    """
    if not integers and not is_differentiable_dtype(aval.dtype):
        return _no_tangent(value, aval, describe)
    value = canonical(value, describe)
    if shape_of(value) != aval.shape:
        raise ShapeError(
            f"{describe()} has shape {shape_of(value)}{here()}, but what it belongs to is {aval}; "
            "shapes must be equal"
        )
    dtype = dtype_of(value)
    if dtype == aval.dtype and not isinstance(value, (int, float, complex)):
        return value
    if dtype.kind == "c" and aval.dtype.kind != "c":
        raise NonDifferentiableError(
            f"{describe()} is complex{here()}, but what it belongs to is real ({aval})"
        )
    if not is_differentiable_dtype(aval.dtype):
        if not np.can_cast(dtype, aval.dtype, "same_kind"):
            raise NonDifferentiableError(
                f"{describe()} is of {dtype}{here()}, but what it belongs to is {aval}; it would "
                "be cut to integers"
            )
        return np.asarray(value) if type(value) in PYTHON_SCALARS else value
    return value if isinstance(value, Tracer) and dtype == aval.dtype else cast(value, aval.dtype)


def _no_tangent(value: Any, aval: Any, describe: Callable[[], str]) -> Any:
    """The tangent or cotangent of an integer or a boolean, given as ``float0`` or as zeros."""
    if tree.is_float0(value):
        if value.shape != aval.shape:
            raise ShapeError(
                f"{describe()} has shape {value.shape}{here()}, but what it belongs to is {aval}; "
                "shapes must be equal"
            )
        return value
    value = canonical(value, describe)
    if isinstance(value, Tracer) or shape_of(value) not in ((), aval.shape) or np.any(value):
        raise NonDifferentiableError(
            f"{describe()} is {aval_of(value)}{here()}, but what it belongs to is of dtype "
            f"{aval.dtype} and has no derivative; use a float there (2.0, x.astype(float)), or "
            f"give np.zeros({aval.shape}, ft.float0) or 0 here"
        )
    return np.zeros(aval.shape, tree.FLOAT0)
