"""How a primitive becomes native code: the kinds of ``lower`` in a record.

Here: one frozen class per kind; the compiler (``compiler``) treats each kind in one place. Not
here: what the rules speak (``emitter``), the rules themselves (beside their primitives). A rule is
given its emitter as an argument, so that nothing of ``emitter`` is imported by ``primitives``.

=============== ================================================================================
``Pointwise``   each element of the result is computed from elements of the operands
``IndexMap``    each element of the result is an element of an operand, or a constant
``Reduction``   elements along some axes are combined; the order is the compiler's
``Expansion``   the primitive is written in terms of other primitives
``Routine``     code of its own, on whole arrays in memory: loops, library calls, kernels
``Structured``  control flow: programs in the equation's parameters become blocks of the code
=============== ================================================================================

A primitive whose ``lower`` is ``None`` splits the plan: its ``impl`` is called between two native
segments, and the printed plan shows it.

Layer: ``core``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans.records import dataclass


@dataclass(frozen=True, slots=True)
class Pointwise:
    """The result's elements one by one.

    Attributes:
      write: ``(e, *numbers, **params) -> number`` (or a tuple, one per result): ``e`` is an
        ``emitter.numbers.Numbers``; operands are broadcast and, where the primitive has a
        ``function`` that is a ufunc, converted to the dtypes that NumPy would compute in.
      cost: work per element, in units of one addition; about 1 for arithmetic, 15 for ``exp``.
    """

    write: Callable[..., Any]
    cost: int = 1


@dataclass(frozen=True, slots=True)
class Read:
    """One possible origin of an element, see :class:`IndexMap`.

    Attributes:
      operand: position of the operand that is read.
      index: where, one entry per axis of the operand: an integer or an ``Affine`` of the loop
        variables, which knows ``+``, ``-``, ``*`` with integers and with its like.
      conditions: ``(affine, extent)`` pairs; the origin holds where ``0 <= affine < extent`` for
        all of them. Values that are 0 in all other places are said by an empty list of reads.
    """

    operand: int
    index: tuple[Any, ...]
    conditions: tuple[tuple[Any, int], ...] = ()


@dataclass(frozen=True, slots=True)
class IndexMap:
    """Elements that move but do not change.

    Attributes:
      trace: ``(index, avals, output, **params) -> reads``: ``index`` has one ``Affine`` per axis of
        the result of number ``output``; the first read whose conditions hold is taken, and the
        element is 0 where none holds. ``None`` says that there is no affine map at this index.
      is_view: whether the result has the operand's elements in the same order, so that it is the
        operand's memory where there is no affine map (a general reshape).
      routine: what serves where there is no affine map, if it is no view.
      prefers_routine: ``(avals, **params) -> bool``: whether the routine is to be preferred, for
        large operands.
    """

    trace: Callable[..., Any]
    is_view: bool = False
    routine: Routine | None = None
    prefers_routine: Callable[..., bool] | None = None


@dataclass(frozen=True, slots=True)
class Reduction:
    """Elements combined along ``axes`` (a parameter of the equation).

    Attributes:
      kind: ``sum``, ``prod``, ``max``, ``min``, ``any``, ``all``, ``and``, ``or``, ``xor``.
    """

    kind: str


@dataclass(frozen=True, slots=True)
class Expansion:
    """A primitive in terms of others.

    Attributes:
      function: ``(*operands, **params) -> results`` (a tuple), called on tracers when planned.
      supports: ``(*avals, **params) -> bool``: whether it serves these operands.
    """

    function: Callable[..., Any]
    supports: Callable[..., bool] | None = None


@dataclass(frozen=True, slots=True)
class Routine:
    """Code of its own on whole arrays.

    Attributes:
      write: ``(e, operands, results, **params) -> None``: ``e`` is an ``emitter.routine.Routines``
        (loops, numbers, workspace, calls, errors), operands and results are
        ``emitter.routine.Array``: C-contiguous, not overlapping, of concrete shape and dtype.
        Results are not initialised. May be ``None``-returning only; what cannot be written for a
        dtype is said by ``supports``.
      supports: ``(*avals, **params) -> bool``: whether this code serves these operands.
      in_place: position of the operand whose memory the first result may take over; the operand's
        and the result's pointers are then equal, and its elements are there already.
      one_thread: library code in it may not run on several threads at once.
    """

    write: Callable[..., None]
    supports: Callable[..., bool] | None = None
    in_place: int | None = None
    one_thread: bool = False


@dataclass(frozen=True, slots=True)
class Structured:
    """Control flow; the programs in the equation's parameters become parts of the code.

    Attributes:
      kind: ``call`` (the program ``jaxpr`` runs once, on the operands), ``scan``, ``while``,
        ``cond`` or ``cond_lanes``, with the parameters of the primitives of these names; or
        ``entries``, a loop over the entries of tapes.
      entry: for ``entries``: one of the result, from one of each operand and the parameters.
    """

    kind: str
    entry: Callable[..., Any] | None = None


def branch_number(index: Any, count: int) -> int:
    """The branch that a number means: what is the number of none means the last one."""
    number = int(index)
    return number if 0 <= number < count else count - 1


def same_place(
    index: tuple[Any, ...], avals: Sequence[Any], output: int, **params: object
) -> tuple[Read, ...]:
    """The ``trace`` of an operation that does nothing to the elements of its only operand."""
    return (Read(0, index),)
