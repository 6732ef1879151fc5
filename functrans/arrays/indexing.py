"""How ``x[index]`` is taken apart when the index holds arrays: NumPy's advanced indexing.

Here: ``index_value`` (read), ``updated`` (write, or combine, as a function) for every index that
NumPy knows, in any mixture: integers, slices, ``None``, ``...``, integer arrays and lists, boolean
masks, traced integers, traced masks. Not here: the primitives (``primitives.indexing``,
``primitives.slicing``), basic indices and views (``items``), a selection by a traced mask
(``masked``).

The parts of an index, from left to right, take axes of the array. Slices are applied first, by one
basic index; then all index arrays at once, by one gather. The axes of the broadcast index arrays
(``S``) come where the first of them stood if they stand together, else in front.

Layer: ``arrays`` (below it).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.arrays.masked import MaskedSelection, known_mask, selected
from functrans.core.avals import PYTHON_SCALARS
from functrans.core.dispatch import Tracer, dtype_of, shape_of, standing
from functrans.core.source import here
from functrans.core.values import Array, Operand
from functrans.errors import ConcretizationError, ShapeError, UnsupportedOperationError
from functrans.passes.staging import has_answer
from functrans.primitives import elementwise as ew
from functrans.primitives.indexing import gather, scatter
from functrans.primitives.movement import stack
from functrans.primitives.slicing import BasicIndex, slice_index, slice_update
from functrans.primitives.structural import broadcast_to, cast, reshape, transpose
from functrans.records import dataclass

Shape = tuple[int, ...]

_ALL = slice(None)
_NUMBERS = frozenset("fciub")


@dataclass(frozen=True, slots=True, eq=False)
class IndexPlan:
    """An index taken apart, for an array of a shape.

    Attributes:
      cut: slices applied first, one per axis; ``None`` when all of them are full.
      arrays: index arrays.
      axes: the axes they index.
      layout: the axes of the result from left to right: ``"S"`` those of the index arrays, ``"r"``
        one that is not indexed, ``"n"`` a new one.
      is_unique: no place is selected twice.
    """

    cut: BasicIndex | None
    arrays: tuple[Any, ...]
    axes: tuple[int, ...]
    layout: tuple[str, ...]
    is_unique: bool


# taking apart -----------------------------------------------------------------------------------


def entries_of(index: object, shape: Shape) -> list[Any]:
    """The parts of an index: ints, slices, ``None``, arrays, tracers; ``...`` is filled in.

    Raises:
      IndexError: there are too many parts, or one of a kind that indexes nothing.
    """
    parts = [_entry(part) for part in (index if isinstance(index, tuple) else (index,))]
    if len(parts) > 1:
        parts = _with_known_masks(parts)
    used = 0
    for part in parts:
        if part is None or part is Ellipsis:
            continue
        used += len(part.shape) if is_mask(part) else 1
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > len(shape):
        raise IndexError(
            f"too many indices for array: array is {len(shape)}-dimensional, but {used} were "
            f"indexed{here()}"
        )
    rest: list[Any] = [_ALL] * (len(shape) - used)
    for position, part in enumerate(parts):
        if part is Ellipsis:  # a mark stays, since an ellipsis keeps index arrays apart
            return [*parts[:position], _Apart(), *rest, *parts[position + 1 :]]
    return parts + rest


def _with_known_masks(parts: list[Any]) -> list[Any]:
    """Parts of an index: a traced mask beside others is a plain one, if its trace can tell it."""
    masks = [part for part in parts if _is_traced_mask(part)]
    others = [part for part in parts if not (part is Ellipsis or _is_full(part))]
    if not masks or len(others) == 1 or not all(map(has_answer, masks)):
        return parts
    return [known_mask(part) if _is_traced_mask(part) else part for part in parts]


def _is_full(part: Array | complex | slice) -> bool:
    return isinstance(part, slice) and part == _ALL


class _Apart:
    """Stands where an ellipsis stood."""

    __slots__ = ()


def is_mask(part: Array | complex | slice) -> bool:
    """Whether a part of an index is an array of booleans."""
    return isinstance(part, (np.ndarray, Tracer)) and part.dtype.kind == "b"


def _entry(part: Any) -> Any:
    """One part of an index in a plain form."""
    if part is None or part is Ellipsis or type(part) is int:
        return part
    if isinstance(part, slice):
        bounds = (part.start, part.stop, part.step)
        return slice(*[None if b is None else operator.index(b) for b in bounds])
    part = standing(part)
    if isinstance(part, Tracer):
        part = _known(part)
    elif isinstance(part, (bool, np.bool_)):
        return np.asarray(part)
    elif isinstance(part, (list, tuple)):
        part = _sequence(part)
    elif not isinstance(part, np.ndarray):
        try:
            return operator.index(part)
        except TypeError:
            raise _bad_index(type(part).__name__) from None
    if part.dtype.kind not in "iub":
        raise _bad_index(f"an array of {part.dtype}")
    if not isinstance(part, Tracer) and type(part) is not np.ndarray:
        part = plain_array(part)
    if type(part) is np.ndarray and not part.ndim and part.dtype.kind != "b":
        return int(part)
    return part


def _bad_index(got: str) -> IndexError:
    return IndexError(
        "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or "
        f"boolean arrays are valid indices; got {got}{here()}"
    )


def _known(part: Tracer) -> Array | Tracer:
    """The plain array behind a traced index that has a value; else the tracer.

    A mask without elements has a value, too: it selects nothing.
    """
    if part.dtype.kind == "b" and 0 in part.shape:
        return np.zeros(part.shape, bool)
    inner: Any = part
    while isinstance(inner, Tracer):
        inner = getattr(inner, "_value", None)
    return part if inner is None else np.asarray(inner)


def _sequence(part: Sequence[Any]) -> Array:
    """A list of integers or booleans, which may be traced, as an array."""
    if not _holds_tracer(part):
        array = np.asarray(part)
        return array if array.size else array.astype(np.intp)
    items = [_sequence(item) if isinstance(item, (list, tuple)) else item for item in part]
    return stack(items, 0, np.result_type(*{dtype_of(item) for item in items}))


def _holds_tracer(part: Sequence[Any]) -> bool:
    return any(
        isinstance(item, Tracer) or (isinstance(item, (list, tuple)) and _holds_tracer(item))
        for item in part
    )


def plan_index(entries: list[Any], shape: Shape) -> IndexPlan:
    """How to apply an index to an array of a shape.

    Raises:
      IndexError: a mask does not fit the axes that it indexes.
    """
    has_arrays = any(isinstance(part, (np.ndarray, Tracer)) for part in entries)
    cut: list[Any] = []
    arrays: list[Any] = []
    axes: list[int] = []
    layout: list[str] = []
    groups = 0  # runs of index arrays that stand together
    is_open = False
    is_unique = True
    for part in entries:
        axis = len(cut)
        if part is None or isinstance(part, slice) or type(part) is _Apart:
            is_open = False
            if part is None:
                layout.append("n")
            elif isinstance(part, slice):
                layout.append("r")
                cut.append(part)
        elif type(part) is int and not has_arrays:
            cut.append(part)
        else:
            if not is_open:
                groups += 1
                is_open = True
                if groups == 1:
                    layout.append("S")
            places = (part,)
            if is_mask(part):
                _check_mask(part, shape, axis)
                places = part.nonzero()
            elif shape_of_index(part):
                is_unique = False
            arrays.extend(places)
            axes.extend(range(axis, axis + len(places)))
            cut.extend([_ALL] * len(places))
    if groups > 1:
        layout.remove("S")
        layout.insert(0, "S")
    if len(arrays) > 1:
        _check_broadcast(arrays)
    is_full = all(part == _ALL for part in cut)
    return IndexPlan(
        None if is_full else BasicIndex(tuple(cut)),
        tuple(arrays),
        tuple(axes),
        tuple(layout),
        is_unique,
    )


def shape_of_index(part: Array | complex) -> Shape:
    """Shape of an index array; a plain integer is a scalar."""
    return () if type(part) is int else shape_of(part)


def _check_broadcast(arrays: list[Any]) -> None:
    shapes = [shape_of_index(part) for part in arrays]
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        raise IndexError(
            "shape mismatch: indexing arrays could not be broadcast together with shapes "
            f"{' '.join(map(str, shapes))}{here()}"
        ) from None


def _check_mask(mask: Array, shape: Shape, axis: int) -> None:
    """Refuse a mask of other extents; one of extent 0 selects nothing of any axis, as in NumPy."""
    for i, extent in enumerate(mask.shape):
        if extent not in (0, shape[axis + i]):
            raise IndexError(
                f"boolean index did not match indexed array along axis {axis + i}; size of axis is "
                f"{shape[axis + i]} but size of corresponding boolean axis is {extent}{here()}"
            )


def _with_scalar_masks(x: Operand, entries: list[Any]) -> tuple[Any, list[Any]]:
    """Scalar booleans become index arrays of new axes of extent 1: ``[0]`` or ``[]``."""
    shape: list[int] = []
    rest = iter(shape_of(x))
    replaced: list[Any] = []
    for part in entries:
        if type(part) is np.ndarray and part.dtype.kind == "b" and not part.ndim:
            shape.append(1)
            replaced.append(np.zeros(int(part), np.intp))
            continue
        replaced.append(part)
        if part is not None and type(part) is not _Apart:
            shape.extend(next(rest) for _ in range(len(part.shape) if is_mask(part) else 1))
    return reshape(x, (*shape, *rest)), replaced


def _scalar_masks(entries: list[Any]) -> bool:
    return any(
        type(part) is np.ndarray and part.dtype.kind == "b" and not part.ndim for part in entries
    )


def _is_traced_mask(part: Array | complex | slice) -> bool:
    return isinstance(part, Tracer) and part.dtype.kind == "b"


def _traced_mask(entries: list[Any], x: Operand) -> tuple[Any, int] | None:
    """A traced mask among the parts of an index, and the axis where it begins."""
    masks = [part for part in entries if _is_traced_mask(part)]
    if not masks:
        return None
    axis = 0
    position = -1
    is_alone = len(masks) == 1
    for part in entries:
        if part is masks[0]:
            position = axis
            axis += len(shape_of(part))
        elif _is_full(part):
            axis += 1
        elif type(part) is not _Apart:
            is_alone = False
    if not is_alone:
        raise ConcretizationError(
            f"an index with the traced mask {masks[0]!r} was combined with other indices{here()}; "
            "how many elements it selects is not known while shapes and dtypes only are traced. "
            "Use x[mask] = v alone, np.where(mask, v, x), or let each mask have a program: jit "
            "with specialize=True."
        )
    _check_mask(masks[0], shape_of(x), position)
    return masks[0], position


# reading ----------------------------------------------------------------------------------------


def _is_index_array(index: object) -> bool:
    return type(index) is np.ndarray and index.dtype.kind in "iu" and index.ndim > 0


def index_value(x: Any, index: object, mode: str = "raise", fill_value: object = None) -> Any:
    """``x[index]`` as NumPy, a copy.

    Args:
      x: array.
      index: any index of NumPy.
      mode: what integers out of bounds mean; see ``primitives.indexing.gather``.
      fill_value: what ``mode="fill"`` reads there.

    Returns:
      The elements; for a traced mask a ``MaskedSelection``.

    Raises:
      IndexError: the index does not fit the array.
      ConcretizationError: a traced mask stands beside other indices.
    """
    if _is_index_array(index) and mode == "raise" and shape_of(x):
        return gather(x, (index,), (0,))  # the most frequent indices, at half the time
    if type(index) is int and mode == "raise" and shape_of(x):
        return slice_index(x, BasicIndex((index, *[_ALL] * (len(shape_of(x)) - 1))))
    entries = entries_of(index, shape_of(x))
    if _scalar_masks(entries):
        x, entries = _with_scalar_masks(x, entries)
    traced = _traced_mask(entries, x)
    if traced is not None:
        return selected(x, *traced)
    if mode != "raise":
        entries = _ints_as_arrays(entries)
    steps = plan_index(entries, shape_of(x))
    if steps.cut is not None:
        x = slice_index(x, steps.cut)
    if steps.arrays:
        x = gather(x, _counted(steps, shape_of(x), mode), steps.axes, mode, fill_value)
    order, final = _arrangement(steps, shape_of(x))
    return reshape(transpose(x, order), final)


def _ints_as_arrays(entries: list[Any]) -> list[Any]:
    """Integers as index arrays, which may be out of bounds."""
    return [np.asarray(part) if type(part) is int else part for part in entries]


def _counted(steps: IndexPlan, shape: Shape, mode: str) -> tuple[Any, ...]:
    """The index arrays; to be clipped, negative ones are counted from the end first."""
    if mode != "clip":
        return steps.arrays
    return tuple(
        [
            ew.where(ew.less(index, 0), ew.add(cast(index, np.intp), shape[axis]), index)
            for index, axis in zip(steps.arrays, steps.axes, strict=True)
        ]
    )


def _arrangement(steps: IndexPlan, shape: Shape) -> tuple[tuple[int, ...], Shape]:
    """How what was read, ``S + rest``, becomes the result: a permutation, then a reshape."""
    s = len(shape) - steps.layout.count("r")
    rest = s
    order: list[int] = []
    final: list[int] = []
    for kind in steps.layout:
        if kind == "n":
            final.append(1)
            continue
        own = range(s) if kind == "S" else range(rest, rest + 1)
        rest += kind == "r"
        order.extend(own)
        final.extend(shape[axis] for axis in own)
    return tuple(order), tuple(final)


# writing ----------------------------------------------------------------------------------------


def _product_of_writes(x: Operand, entries: list[Any], value: Operand, mode: str) -> Array:
    """Ones with values multiplied in at an index: what ``divide`` and ``power`` are made of."""
    ones = np.ones(shape_of(x), np.result_type(dtype_of(x), dtype_of(value)))
    return _written(ones, entries, value, "multiply", mode, False)


def _lone_mask(entries: list[Any]) -> Array | None:
    """The plain mask of an index that is nothing else, or ``None``."""
    parts = [part for part in entries if not _is_full(part)]
    if len(parts) == 1 and type(parts[0]) is np.ndarray and parts[0].dtype.kind == "b":
        return parts[0] if entries[0] is parts[0] else None
    return None


_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, new: new,
    "add": ew.add,
    "multiply": ew.multiply,
    "divide": ew.divide,
    "power": ew.power,
    "min": ew.minimum,
    "max": ew.maximum,
}
_SCATTER = {"set": "set", "add": "add", "multiply": "multiply", "min": "minimum", "max": "maximum"}


def updated(
    x: Any,
    index: object,
    value: Any,
    op: str = "set",
    mode: str = "raise",
    unique_indices: bool = False,
) -> Any:
    """An array with values written, or combined with it, at an index.

    Args:
      x: array; it is not changed.
      index: any index of NumPy.
      value: broadcasts to ``x[index]``; for a traced mask also a selection by the same mask.
      op: ``set`` (of several writes to one place the last one counts), ``add``, ``multiply``,
        ``divide``, ``power``, ``min`` or ``max`` (all of them count).
      mode: what integers out of bounds mean; see ``primitives.indexing.scatter``.
      unique_indices: the caller knows that no place is written twice.

    Raises:
      IndexError: the index does not fit the array.
      ShapeError: the value does not fit what the index selects.
    """
    shape = shape_of(x)
    entries = entries_of(index, shape)
    if _scalar_masks(entries):
        wide, entries = _with_scalar_masks(x, entries)
        return reshape(_written(wide, entries, value, op, mode, unique_indices), shape)
    return _written(x, entries, value, op, mode, unique_indices)


def _written(
    x: Any, entries: list[Any], value: Operand, op: str, mode: str, unique_indices: bool
) -> Array:
    """``updated`` for an index taken apart."""
    shape, dtype = shape_of(x), dtype_of(x)
    traced = _traced_mask(entries, x)
    if traced is not None:
        selection = MaskedSelection(x, *traced)
        try:
            aligned = selection.aligned(value)
        except ConcretizationError:  # it has as many elements as are selected
            known = entries_of(selection.index("written to"), shape)
            return _written(x, known, value, op, mode, unique_indices)
        new = _COMBINE[op](x, _converted(aligned, op, dtype))
        return ew.where(selection.wide_mask(), cast(new, dtype), x)
    if isinstance(value, MaskedSelection):
        value = value.selection("stored at another index than its own mask")
    value = _converted(as_value(value), op, dtype)
    check_storable(value, dtype)
    if mode != "raise":
        entries = _ints_as_arrays(entries)
    mask = _lone_mask(entries)
    if mask is not None and mask.size and op == "set" and not shape_of(value):
        _check_mask(mask, shape, 0)  # a selection: what is overwritten adds nothing to a derivative
        wide = mask.reshape(mask.shape + (1,) * (len(shape) - mask.ndim))
        return ew.where(wide, cast(value, dtype), x)
    steps = plan_index(entries, shape)
    cut = x if steps.cut is None else slice_index(x, steps.cut)
    if not steps.arrays:
        order, final = _arrangement(steps, shape_of(cut))
        part = reshape(fitted(value, final), shape_of(cut)) if shape_of(value) else value
        new = broadcast_to(cast(_COMBINE[op](cut, part), dtype), shape_of(cut))
    elif op not in _SCATTER:
        factor = _product_of_writes(x, entries, value, mode)
        return cast(_COMBINE[op](x, factor), dtype)
    else:
        slot = _slot(cut, steps)
        order, final = _arrangement(steps, slot)
        if shape_of(value):
            moved = tuple([slot[axis] for axis in order])
            value = reshape(fitted(value, final, is_gathered=True), moved)
            value = transpose(value, tuple(np.argsort(order).tolist()))
        is_unique = unique_indices or steps.is_unique
        places = _counted(steps, shape_of(cut), mode)
        new = scatter(cut, value, places, steps.axes, _SCATTER[op], mode, is_unique)
    return new if steps.cut is None else slice_update(x, new, steps.cut)


def _converted(value: Array | complex, op: str, dtype: np.dtype) -> Any:
    """A value in the dtype of the array, in which all but the writing of it is computed."""
    own = dtype_of(value)
    if op == "set" or own == dtype:
        return value
    if "fc".find(own.kind) > "fc".find(dtype.kind):
        raise TypeError(
            f"cannot {op} {own} values in an array of {dtype}{here()}; use "
            f"x = x.astype({str(own)!r}) first"
        )
    if type(value) in PYTHON_SCALARS:
        np.asarray(value, dtype)  # an OverflowError where it has no such number, as in NumPy
        return value
    return cast(value, dtype)


def check_storable(value: Operand, dtype: np.dtype) -> None:
    """Refuse to store a value where its kind would be lost.

    That is complex in real, and for traced values floating in integer too.

    Raises:
      TypeError: names both dtypes.
    """
    own = dtype_of(value)
    is_lost = own.kind == "c" and dtype.kind != "c"
    if is_lost or (isinstance(value, Tracer) and not np.can_cast(own, dtype, "same_kind")):
        raise TypeError(
            f"cannot store {dtype_of(value)} values in a traced array of {dtype}{here()}; use "
            f"x = x.astype({str(dtype_of(value))!r}) first"
        )


PLAIN_OPERANDS = frozenset({int, float, complex, bool, np.ndarray, np.float64, np.float32})
"""Types of plain operands that need no look (an exact type: a masked array is an ndarray, too)."""


def as_value(value: Any) -> Any:
    """A value to write as a tracer, an ndarray or a number."""
    if isinstance(value, (Tracer, np.generic)) or type(value) in PYTHON_SCALARS:
        return value
    value = standing(value)
    if isinstance(value, Tracer):
        return value
    if isinstance(value, (list, tuple)) and _holds_tracer(value):
        items = [as_value(item) for item in value]
        return stack(items, 0, np.result_type(*{dtype_of(item) for item in items}))
    return plain_array(value)


def check_not_in_parts(x: Any) -> None:
    """Refuse a collection of Dask, all of which would be made and held here."""
    if hasattr(type(x), "__dask_graph__") and type(x).__module__.partition(".")[0] == "dask":
        raise UnsupportedOperationError(
            f"a {type(x).__module__}.{type(x).__qualname__} meets a traced value{here()}. "
            "Transforms see its chunks as arguments of ft.dask.sum_over(f) or ft.dask.jacobian(f), "
            "where f is written for arrays; X.compute() makes an array of it"
        )


def plain_array(x: Any, dtype: DTypeLike | None = None) -> np.ndarray:
    """A value that holds no tracer as an array of numbers.

    Raises:
      UnsupportedOperationError: it is none, or a kind of array whose meaning would be lost.
    """
    check_not_in_parts(x)
    for cls in type(x).__mro__:
        if cls.__name__ in ("MaskedArray", "matrix") and cls.__module__.startswith("numpy"):
            remedy = (
                "Use x.filled(value) and np.where with the mask"
                if cls.__name__ == "MaskedArray"
                else "Use np.asarray(x)"
            )
            raise UnsupportedOperationError(
                f"a {type(x).__name__} meets a traced value{here()}; its arithmetic differs from "
                f"ndarray's and would be lost. {remedy}."
            )
    x = standing(x)
    if isinstance(x, Tracer):
        raise UnsupportedOperationError(
            f"an array that holds traced values was given{here()} where numbers are needed that "
            "are known before the program runs"
        )
    array = np.asarray(x, dtype)
    if array.dtype.kind not in _NUMBERS and array.dtype.name != "bfloat16":
        raise UnsupportedOperationError(
            f"expected an array of numbers, got {type(x).__name__} of dtype {array.dtype}{here()}; "
            "convert it with np.asarray(value, dtype=float) first"
        )
    return array


def _slot(x: Operand, steps: IndexPlan) -> Shape:
    """The shape ``S + rest`` that an index selects."""
    shape = shape_of(x)
    s = np.broadcast_shapes(*map(shape_of_index, steps.arrays))
    return s + tuple([n for axis, n in enumerate(shape) if axis not in steps.axes])


def fitted(value: Operand, shape: Shape, *, is_gathered: bool = False) -> Array:
    """A value broadcast to a shape; extra leading axes of extent 1 go, as in NumPy.

    Args:
      value: what is written.
      shape: what an index selects.
      is_gathered: whether index arrays select it; where they select nothing, NumPy does not look at
        extra axes.

    Raises:
      ShapeError: it does not fit.
    """
    own = shape_of(value)
    extra = len(own) - len(shape)
    if extra > 0 and own[:extra] == (1,) * extra:
        value = reshape(value, own[extra:])
    elif extra > 0 and is_gathered and 0 in shape and 0 in own[extra:]:
        value = np.zeros(own[extra:], dtype_of(value))
    try:
        return broadcast_to(value, shape)
    except ValueError:
        raise ShapeError(
            f"could not broadcast input array from shape {own} into shape {shape}, which the index "
            f"selects{here()}"
        ) from None
