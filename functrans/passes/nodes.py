"""Recorded equations: one node per equation, which keeps what its derivative reads.

Here: ``Node``, ``record`` (evaluate an equation and make its nodes), what is saved of a constant
operand, and the order of nodes. Not here: going through the nodes, backward (``pullback``) or
forward (``pushforward``); the trace that makes them while the user's function runs
(``passes.recording``).

Nodes point from result to operands; nothing points back, so that what no result needs is freed at
once. A node keeps only what its derivative reads:

=============  ===================================  ===============================================
kind           kept                                 pullback
=============  ===================================  ===============================================
elementwise    the operands its partials name       partials applied to the cotangent
linear         operands that are not differentiated the primitive's ``transpose``
multilinear    the other operands                   the primitive's ``transpose``, one at a time
linearize      residuals of the augmented equation  transpose of its linear program
derived        operands and results                 the jvp rule, staged in its tangents, transposed
of a program   the operands that are not linear     the primitive's ``transpose``
=============  ===================================  ===============================================

This is the one engine of derivatives: when the values are staging tracers, the same nodes linearize
a whole Jaxpr.

Layer: ``passes``. Reference: Radul et al., You Only Linearize Once, POPL 2023.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from operator import attrgetter
from typing import Any

import numpy as np

from functrans.core.annotations import Annotation
from functrans.core.avals import PYTHON_SCALARS, Aval, ShapedArray, Tape, is_differentiable_dtype
from functrans.core.boundary import at_user
from functrans.core.byte_order import in_native_order
from functrans.core.dispatch import Tracer, aval_of, bind, dtype_of, shape_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import Primitive, linear, multilinear, nondifferentiable
from functrans.core.source import Captured, SourceLine, resolve
from functrans.core.state import current_config
from functrans.core.values import Array, Operand
from functrans.errors import NonDifferentiableError
from functrans.passes.cotangents import zeros
from functrans.passes.staging import may_change
from functrans.primitives.structural import broadcast_to, cast_p, moveaxis
from functrans.primitives.tapes import entry_aval, tape_broadcast_to
from functrans.records import dataclass

_numbers = count()
_next_number = _numbers.__next__


class Node:
    """What a recorded equation keeps for its derivative.

    Not frozen: creating it is on the path of every eager operation (0.18 us against 0.68 us for a
    frozen dataclass of six fields). Nobody writes to it after creation.

    Attributes:
      primitive: the operation; ``None`` for an input of the traced function.
      params: its static parameters.
      saved: what the pullback reads, by kind; see the module docstring.
      parents: the node of each operand, ``None`` where no derivative flows.
      shape: shape of the result (``None`` for a node with several results).
      dtype: dtype of the result.
      number: increases with creation; the order of the backward pass.
      source: the user's line.
      annotations: what is attached to it.
      takes_none: whether its pullback runs also where no cotangent has come.
    """

    __slots__ = ("dtype", "number", "params", "parents", "primitive", "saved", "shape", "source")
    annotations: tuple[Annotation, ...] = ()  # class attributes: subclasses have others
    takes_none = False

    def __init__(
        self,
        primitive: Primitive | None,
        params: Mapping[str, Any],
        saved: Any,
        parents: tuple[Node | None, ...],
        shape: Any,
        dtype: Any,
        source: Captured | SourceLine | None,
    ) -> None:
        self.primitive = primitive
        self.params = params
        self.saved = saved
        self.parents = parents
        self.shape = shape
        self.dtype = dtype
        self.number = _next_number()
        self.source = source

    @property
    def aval(self) -> Aval:
        """Type of the result."""
        shape = self.shape
        if shape and type(shape[0]) is Tape:
            return shape[0]
        return ShapedArray(shape, self.dtype)

    def __repr__(self) -> str:
        """``Node(sin: f64[3])``."""
        name = self.primitive.name if self.primitive is not None else "input"
        return f"Node({name}: {self.shape})"


OUTPUT = Primitive(
    "output",
    impl=lambda *values, index: (values[index],),
    abstract_eval=lambda *avals, index: (avals[index],),
    jvp=linear,
)
"""Marks the node of one result of an equation with several; its parent is the equation's node."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearProgram:
    """The linear part of an equation whose primitive has a ``linearize`` rule.

    Attributes:
      jaxpr: takes residuals, then the tangents of the operands in ``targets``; gives the tangents
        of all results.
      targets: positions of the operands whose tangents it takes.
      residuals: values of the first arguments.
    """

    jaxpr: Jaxpr
    targets: tuple[int, ...]
    residuals: tuple[Any, ...]


class LinearNode(Node):
    """An equation of a linear program, which was not evaluated: it keeps what is not linear.

    Attributes:
      scope: name scope of the equation.
    """

    __slots__ = ("scope",)
    scope: str


def input_node(value: Operand) -> Node:
    """The node of an input of a traced function."""
    return Node(None, {}, None, (), shape_of(value), dtype_of(value), None)


def kept(value: Any) -> Any:
    """A constant operand that a derivative will read: an ndarray that may change is copied.

    A plain ndarray has no version counter, so that a later write into it could not be seen. A
    read-only view of a writable array changes with it; of a broadcast one only the elements that
    have memory of their own are copied. A tracer of an enclosing trace may be written to before a
    pullback is called.
    """
    if type(value) is not np.ndarray:
        return value._twin() if isinstance(value, Tracer) else value
    if not current_config.get().copy_residuals:
        return value
    if value.flags.writeable:
        return value.copy("K")
    if not may_change(value):
        return value
    own = tuple([slice(None) if stride else slice(0, 1) for stride in value.strides])
    return np.broadcast_to(value[own].copy("K"), value.shape)


def detached(part: Array, whole: Array) -> Array:
    """A small part of a large array as an array of its own.

    As a view, a residual would keep the large array alive; and a loop that reads row i and writes
    row i + 1 could not write in place. The copy has the layout of the view, since a later reshape
    is a view or a copy according to the layout.
    """
    n = getattr(whole, "size", 1)  # a number has none
    if type(part) is np.ndarray and part.flags.c_contiguous and _SMALL * part.size <= n:
        return part.copy()
    return part


_SMALL = 8


_NOTHING = (None,)
SOLE_REFERENCES = 2
"""``getrefcount(holder[key])`` of an object that only the holder has: the holder, the argument.

Not counted on a local variable, since whether that holds a reference depends on the interpreter.
"""


def is_writable(value: Any) -> bool:
    """Whether a value is an array with memory of its own that may be written to."""
    return type(value) is np.ndarray and value.flags.owndata and value.flags.writeable


def record(
    primitive: Primitive,
    operands: Sequence[Any],
    params: Mapping[str, Any],
    parents: tuple[Node | None, ...],
    source: Captured | None,
    is_plain: bool = False,
    keep: Callable[[Any], Any] = kept,
    kind: type[Node] = Node,
) -> tuple[tuple[Any, ...], tuple[Node | None, ...]]:
    """Evaluate an equation and make the node of each result.

    Args:
      primitive: the operation.
      operands: values (of the enclosing trace).
      params: static parameters.
      parents: node per operand, ``None`` for constants.
      source: the user's line.
      is_plain: no operand is a tracer, so that the dispatch can be left out.
      keep: makes of a constant operand what is saved of it.
      kind: class of the nodes.

    Returns:
      Results, and a node or ``None`` per result.
    """
    operands = in_native_order(operands) if is_plain else operands
    rule = primitive.jvp
    is_constant = rule is nondifferentiable or not any(parents)
    if not is_constant and primitive.linearize is not None:
        needs = tuple(parent is not None for parent in parents)
        outs, program = primitive.linearize(needs, operands, **params)
        saved: Any = program
    else:
        evaluate = (primitive.impl,) if is_plain else (bind, primitive)
        outs = at_user(*evaluate, *operands, **params)
        if is_constant:
            return outs, (None,) * len(outs)
        if primitive is cast_p or (rule is linear and len(parents) == 1):
            saved = _NOTHING
        elif rule is linear:
            saved = tuple(
                [
                    _linear_constant(value, keep) if parent is None else None
                    for value, parent in zip(operands, parents, strict=True)
                ]
            )
        elif rule is multilinear:
            saved = _multilinear_residuals(operands, parents, keep)
        else:
            saved = (
                tuple(
                    keep(value) if parent is None else value
                    for value, parent in zip(operands, parents, strict=True)
                ),
                outs,
            )
    if len(outs) == 1:
        (out,) = outs
        try:
            shape, dtype = out.shape, out.dtype if is_plain else out.aval.dtype
        except AttributeError:
            shape, dtype = shape_of(out), dtype_of(out)
        if not is_differentiable_dtype(dtype):
            return outs, (None,)
        return outs, (kind(primitive, params, saved, parents, shape, dtype, source),)
    avals = tuple(aval_of(out) for out in outs)
    main = kind(primitive, params, saved, parents, None, avals, source)
    nodes = tuple(
        kind(OUTPUT, {"index": i}, None, (main,), aval.shape, aval.dtype, source)
        if is_differentiable_dtype(aval.dtype)
        else None
        for i, aval in enumerate(avals)
    )
    return outs, nodes


def is_jointly_linear(primitive: Primitive) -> bool:
    """Whether nodes of a primitive keep nothing of what they are linear in.

    A cast is not marked, since it has no derivative between other dtypes; those have no nodes.
    """
    return primitive.jvp is linear or primitive is cast_p


def _linear_constant(value: Array | complex, keep: Callable[[Any], Any]) -> Any:
    """What a jointly linear equation keeps of a constant operand: its tangent, if it has one."""
    if type(value) in PYTHON_SCALARS:
        return type(value)(0) if isinstance(value, (float, complex)) else value
    aval = aval_of(value)
    return zeros(aval) if is_differentiable_dtype(aval.dtype) else keep(value)


def _multilinear_residuals(
    operands: Sequence[Any], parents: tuple[Node | None, ...], keep: Callable[[Any], Any]
) -> tuple[Any, ...]:
    """Operands that the transposes of the differentiated ones read."""
    wanted = sum(parent is not None for parent in parents)
    return tuple(
        keep(value) if parent is None else (value if wanted > 1 else None)
        for value, parent in zip(operands, parents, strict=True)
    )


def line_of(node: Node) -> str:
    """The user's line of a node, for messages."""
    line = resolve(node.source)
    return f" (at {line})" if line is not None else ""


def jvp_rule(node: Node) -> Callable[..., Any]:
    """The jvp rule of a node's primitive.

    Raises:
      NonDifferentiableError: it has none.
    """
    primitive = node.primitive
    assert primitive is not None
    rule = primitive.jvp
    if not callable(rule):
        raise NonDifferentiableError(
            f"primitive {primitive.name} has no derivative rule (field jvp is None)"
            f"{line_of(node)}; use ft.stop_gradient or give a custom rule "
            "(ft.custom_jvp)"
        )
    return rule


_number_of = attrgetter("number")


def ordered_nodes(roots: Sequence[Node], oldest: int = -1) -> list[Node]:
    """All nodes that roots depend on, in order of creation; iterative, for deep graphs.

    Args:
      roots: nodes.
      oldest: the number of the first one that counts, besides roots.
    """
    seen = set(roots)
    pending = list(seen)
    while pending:
        for parent in pending.pop().parents:
            if parent is not None and parent not in seen and parent.number >= oldest:
                seen.add(parent)
                pending.append(parent)
    return sorted(seen, key=_number_of)


def fill(n: int, positions: Sequence[int], values: Sequence[Any]) -> list[Any]:
    """Values at positions of a list, ``None`` elsewhere."""
    slots: list[Any] = [None] * n
    for position, value in zip(positions, values, strict=True):
        slots[position] = value
    return slots


def batch_first(value: Array, dim: int | None, size: int) -> Array:
    """A result with its batch axis in front."""
    if dim is None:
        return with_batch(value, size, aval_of(value))
    return moveaxis(value, dim, 0)


def with_batch(value: Array | complex, size: int, aval: Aval) -> Any:
    """A value broadcast to its aval with a batch axis in front (of the entries of a tape)."""
    if type(aval) is Tape:
        return tape_broadcast_to(value, (size, *entry_aval(aval).shape))
    return broadcast_to(value, (size, *aval.shape))
