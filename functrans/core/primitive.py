"""The record of a primitive: everything functrans knows about one atomic operation.

Here: ``Primitive``, its family data ``Elementwise``, and the marker values of the ``jvp`` field.
Not here: the records themselves (``primitives/``, one file per family; ``control/`` for those
whose rules run a pass), nor the code that interprets them (``passes/``).

One calling convention: arrays are positional, static parameters are keywords with hashable values,
every rule returns a tuple, also for one output.

========== ======================================================================================
field      signature
========== ======================================================================================
impl       ``(*arrays, **params) -> arrays``
abstract_eval  ``(*avals, **params) -> avals``
jvp        ``(primals, tangents, outs, **params) -> tangents``; a tangent may be ``Zero``;
           or one of the markers ``linear``, ``multilinear``, ``nondifferentiable``
transpose  ``(cts, operands, **params) -> cts``: operands in which the equation is linear come as
           ``LinearOperand(aval)``; one cotangent per operand, ``None`` for the others
batch      ``(size, operands, dims, **params) -> (outs, out_dims)``; dims are ints or ``None``
lower      how it becomes native code: one of the kinds of ``core.lowering``
linearize  ``(needs, operands, **params) -> (outs, residuals, linear)``, only where the derived
           form would redo expensive work: ``linear`` is a ``LinearProgram``
check      ``(*avals, **params) -> None``; raises for what abstract evaluation takes on trust, in
           programs that come from elsewhere; only the checker of programs calls it
effects    names of the effects, a frozenset; an equation that has one is never dropped
in_place   as ``impl``, but it may write into the memory of its first operand; only where the
           result is that operand with some elements changed
prune      ``(used, **params) -> (params, inputs, outputs)``, only where parameters are programs:
           the equation that gives the results in ``used``, and which of its operands and
           results it has (flags)
axis_map   ``(*avals, **params) -> maps``: per operand a sequence with an entry per axis of it: the
           axis of the results along which the operation acts on each element apart, or ``None``
           where elements are mixed, moved or left out. By default from ``lower``
causal     ``(*avals, **params) -> (operand, axis, reverse)``: along the axis, each element of the
           result depends only on elements of the operand up to its place (from it on in reverse)
expression ``(*avals, **params) -> (text, values) | None``: a Python expression of arrays that
           gives what ``impl`` does, at less cost: ``{0}`` is the operand, others are the values
work       ``(*avals, **params) -> Work`` of one run, where ``lower`` and ``moves`` do not tell it
stage      ``(operands, **params) -> (operands, params)``, only where a parameter is a Python
           function: what they become when the equation is put into a program
========== ======================================================================================

Layer: ``core``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from functrans.core.avals import Aval
from functrans.core.lowering import Expansion, IndexMap, Pointwise, Reduction, Routine, Structured
from functrans.records import dataclass, field

Rule = Callable[..., Any]
Lowering = Pointwise | IndexMap | Reduction | Expansion | Routine | Structured


@dataclass(frozen=True, slots=True)
class Marker:
    """A named constant in a field of a primitive; see ``linear`` and its siblings."""

    name: str


linear = Marker("linear")
"""Jointly linear in all differentiable operands: the tangent is the same primitive."""

multilinear = Marker("multilinear")
"""Linear in each differentiable operand when the others are fixed."""

nondifferentiable = Marker("nondifferentiable")
"""Outputs have no tangent (booleans, integers, indices)."""


@dataclass(frozen=True, slots=True)
class Joint:
    """A jvp rule that computes results and tangents together, as control flow must.

    Stands in the field ``jvp``; running the equation first, for the results that an ordinary rule
    is given, would run a loop twice.

    Attributes:
      rule: ``(primals, tangents, **params) -> (outs, tangents)``; tangents may be ``Zero``.
    """

    rule: Rule


class Work(NamedTuple):
    """What a run takes; moving elements is no work.

    Attributes:
      flops: additions, multiplications and comparisons of real numbers; a fused or complex
        operation counts as its parts (a complex product is six).
      functions: evaluations of functions such as ``exp``.
    """

    flops: float = 0.0
    functions: float = 0.0


class LinearOperand:
    """Stands in a ``transpose`` rule for an operand in which the equation is linear.

    Attributes:
      aval: shape and dtype of the operand.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the operand."""
        return self.aval.shape


def is_linear(operand: object) -> bool:
    """Whether a ``transpose`` rule's operand is the linear one."""
    return type(operand) is LinearOperand


@dataclass(frozen=True, slots=True, eq=False)
class Elementwise:
    """Family data of a primitive which acts on broadcast elements.

    Attributes:
      function: evaluates it on plain arrays, with NumPy's broadcasting and promotion.
      partials: per operand, the partial derivative applied to a tangent, ``(t, *operands, out)``;
        or a constant 0, 1, -1; or ``None`` where there is none (booleans, integers). A diagonal
        map is its own transpose, so that it serves cotangents too. It may give a ``Zero``.
      saves: per operand, a bit mask of what its partial reads: bit ``i`` is operand ``i``, the
        highest bit is the output. Only that is kept for the backward pass.
      ufunc: the ufunc whose resolution of dtypes holds; ``None`` where none does.
      operator: Python's operator, such as ``"+"``, that does on arrays what ``ufunc`` does.
      reads: per operand, ``saves`` with a bit beyond all others; 0 where no cotangent comes.
    """

    function: Callable[..., Any]
    partials: tuple[Any, ...]
    saves: tuple[int, ...]
    ufunc: np.ufunc | None = None
    operator: str = ""
    reads: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        has_some = any(partial is not None for partial in self.partials)
        pairs = zip(self.saves, self.partials, strict=True)
        reads = tuple([bits | 1 << 31 if has_some and p != 0 else 0 for bits, p in pairs])
        object.__setattr__(self, "reads", reads)


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """One atomic operation with all its rules; see the module docstring for signatures.

    Attributes:
      holds_programs: parameters hold programs, whose effects are the equation's.
      moves: whether it is a linear map with entries 0 and 1: each element of a result is a sum of
        elements of operands, most often of one. Masks of cotangents go the way of values then. By
        default what is linear and lowered as an ``IndexMap``.
      memory: where results lie: ``"own"`` memory that nothing else shares; ``"shares"`` that of
        operands, perhaps; ``"held"`` likewise, and something else may hold operands afterwards. By
        default ``"own"`` of elementwise and multilinear operations and reductions, ``"held"`` of
        those that hold programs or have effects, and ``"shares"`` of all others.
      indices: position of the first operand that is an array of indices into the parameter ``axes``
        (or into an array of ``extents``), if all from it on are; the parameter ``mode`` says what
        those mean that are out of bounds.
      takes_masks: whether the transpose rule takes cotangents that are ``Masked``, and gives them.
      is_call: the equation runs the program in its parameter ``jaxpr`` once and does nothing else,
        so that a pass may put the program in its place.
      reasons: why a field that is ``None`` is so, by field name; ``test_completeness`` reads it.
    """

    name: str
    impl: Rule
    abstract_eval: Rule
    jvp: Rule | Marker | Joint
    transpose: Rule | None = None
    batch: Rule | None = None
    lower: Lowering | None = None
    linearize: Rule | None = None
    effects: frozenset[str] = frozenset()
    elementwise: Elementwise | None = None
    reasons: tuple[tuple[str, str], ...] = ()
    stage: Rule | None = None
    in_place: Rule | None = None
    prune: Rule | None = None
    holds_programs: bool = False
    is_call: bool = False
    check: Rule | None = None
    moves: bool | None = None
    takes_masks: bool = False
    memory: str = ""
    work: Callable[..., Work] | None = None
    axis_map: Rule | None = None
    causal: Rule | None = None
    expression: Rule | None = None
    indices: int | None = None

    def __post_init__(self) -> None:
        """Fill in what follows from other fields."""
        if self.moves is None:
            moves = self.jvp is linear and isinstance(self.lower, IndexMap)
            object.__setattr__(self, "moves", moves)
        if not self.memory:
            is_held = self.holds_programs or self.effects
            is_own = (
                self.elementwise is not None
                or self.jvp is multilinear
                or isinstance(self.lower, Pointwise | Reduction)
            )
            memory = "held" if is_held else "own" if is_own else "shares"
            object.__setattr__(self, "memory", memory)

    def __repr__(self) -> str:
        """The primitive's name."""
        return f"Primitive({self.name})"
