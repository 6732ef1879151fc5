"""NumPy's iterators over elements, where arrays may hold traced values.

``np.nditer`` chooses the order by the layout in memory, joins axes and allocates results. Here it
does so for arrays of numbers of elements in the same layout; the elements with these numbers are
what the iterator gives: views, so that ``v[...] = 2 * v`` writes, traced values too.

Here: ``np.nditer``, ``np.ndenumerate`` and ``np.broadcast`` of such arrays, and ``MAKERS``, what
calls of the three do. Not here: ``a.flat`` (``plain.memory``).

Layer: ``plain``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import DTypeLike

import functrans.numpy as fnp
from functrans.core.dispatch import Tracer
from functrans.core.jaxpr import Equation, Var
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.passes.layouts import plain_value
from functrans.passes.staging import StagingTracer
from functrans.plain.memory import Buffer, holds_tracer, settled
from functrans.plain.views import view_of_places
from functrans.primitives.gather_scatter import gather_p
from functrans.primitives.slicing import BasicIndex
from functrans.primitives.structural import transpose_p


def _operand(value: object) -> Any:
    """An operand as an array: a buffer, a traced value or a plain one."""
    if value is None or isinstance(value, (Tracer, np.ndarray)):
        return value
    value = settled(value)
    return fnp.asarray(value) if holds_tracer(value) else np.asarray(value)


def _is_live(value: object) -> bool:
    return type(value) is Buffer or isinstance(value, Tracer)


def _refuse(what: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{what}{here()}, for arrays that may hold traced values; loop over indices "
        "(np.ndindex(a.shape)) and use a[index], or use array operations"
    )


def _in_layout_of(value: Any, dtype: DTypeLike | None) -> np.ndarray:
    """A new array in the memory layout of another one, gaps and directions of axes included."""
    shape = value.shape
    value = plain_value(value)  # of values that are not known, as if none had been transposed
    if not isinstance(value, np.ndarray):
        return np.zeros(shape, dtype)
    item, new = value.itemsize, np.dtype(dtype).itemsize
    if any(stride % item for stride in value.strides):
        raise _refuse(
            "np.nditer of an array whose elements do not stand at multiples of their size"
        )
    steps = [stride // item for stride in value.strides]
    spans = [step * max(extent - 1, 0) for step, extent in zip(steps, value.shape, strict=True)]
    start = -sum(min(span, 0) for span in spans)
    memory = np.zeros(start + sum(max(span, 0) for span in spans) + 1, dtype)
    return as_strided(memory[start:], value.shape, [step * new for step in steps])


def _may_be_turned(value: object) -> bool:
    """Whether a traced value without a known layout may lie in memory in another one than C's."""
    is_view = isinstance(value, Tracer) and value._alias is not None
    while isinstance(value, Tracer) and type(value) is not StagingTracer:
        value = getattr(value, "_value", None)
    if type(value) is not StagingTracer:
        return False
    made_by = {out: eqn for eqn in value._trace.eqns for out in eqn.outputs}
    pending, seen = [value._var], set()
    while pending:
        eqn = made_by.get(pending.pop())
        if eqn is None or id(eqn) in seen:
            continue
        seen.add(id(eqn))
        if eqn.primitive is transpose_p or _is_backwards(eqn):
            return True
        if is_view and eqn.primitive is gather_p and value._var in eqn.outputs:
            return True
        pending.extend(atom for atom in eqn.inputs if isinstance(atom, Var))
    return False


def _is_backwards(eqn: Equation) -> bool:
    """Whether an equation takes a slice from the end to the start."""
    index = eqn.params.get("index")
    entries = index.entries if type(index) is BasicIndex else ()
    return any(type(entry) is slice and (entry.step or 1) < 0 for entry in entries)


def _numbered(value: Any) -> np.ndarray:
    """The numbers of the elements, in C order, in the memory layout of the array."""
    numbers = _in_layout_of(value, np.intp)
    numbers[...] = np.arange(numbers.size).reshape(numbers.shape)
    return numbers


def _index(value: Any, number: Any) -> tuple[int, ...]:
    return tuple(map(int, np.unravel_index(int(number), value.shape))) if value.shape else ()


def _viewed(value: Any, numbers: np.ndarray) -> Any:
    """The elements with some numbers as a view of an array: one element, or a row of them."""
    tracer: Any = value.traced() if type(value) is Buffer else value
    is_traced = isinstance(tracer, Tracer)
    if is_traced:
        if numbers.ndim:
            return view_of_places(tracer, numbers)
        if not tracer.shape:
            return tracer
        return tracer[(*_index(value, numbers), ...)]
    if not numbers.size:
        return value.reshape(-1)[:0]
    key: Any = (*_index(value, numbers.flat[0]), ...)
    first: Any = np.ndarray.__getitem__(value, key)
    if not numbers.ndim:
        return first
    step = numbers.strides[0] // numbers.itemsize * value.itemsize
    return as_strided(first, numbers.shape, (step,), subok=True)


_NDITER: Any = np.nditer


class Nditer:
    """``np.nditer`` of arrays that may hold traced values.

    Attributes:
      operands: the arrays, with those that it was asked to allocate.
      numbers: NumPy's iterator over the numbers of their elements.
    """

    def __init__(
        self,
        op: Any,
        flags: Any = None,
        op_flags: Any = None,
        op_dtypes: Any = None,
        order: str = "K",
        casting: str = "safe",
        op_axes: Any = None,
        itershape: Any = None,
        buffersize: int = 0,
    ) -> None:
        operands = [_operand(x) for x in op] if isinstance(op, (tuple, list)) else [_operand(op)]
        flags = list(flags or ())
        if order in ("K", "A") and any(map(_may_be_turned, operands)):
            raise _refuse(
                f"np.nditer with order={order!r} depends on the memory layout, which is not known "
                "while shapes and dtypes only are traced; order='C' does not"
            )
        layout: dict[str, Any] = {"order": order}
        if op_axes is not None:
            layout.update(op_axes=op_axes)
        if itershape is not None:
            layout.update(itershape=itershape)
        theirs: Any = _NDITER(
            [None if x is None else _in_layout_of(x, x.dtype) for x in operands],
            flags,
            op_flags,
            op_dtypes,
            casting=casting,
            buffersize=buffersize,
            **layout,
        )
        with theirs:
            if theirs.has_delayed_bufalloc:
                theirs.reset()
            for i, made in enumerate(theirs.operands):
                if operands[i] is None:
                    operands[i] = np.empty_like(made).view(Buffer)
                    operands[i]._is_own = True
            self.dtypes = theirs.dtypes
        for x, dtype in zip(operands, self.dtypes, strict=True):
            if x.dtype != dtype:
                raise _refuse(f"np.nditer was asked for {dtype} of an array of {x.dtype}")
        self.operands = tuple(operands)
        self.nop = len(operands)
        self._writes = _written(op_flags, self.nop)
        self.numbers = _NDITER(
            [_numbered(x) for x in operands],
            [flag for flag in flags if flag not in _OF_BUFFERS],
            [["readonly"]] * self.nop,
            **layout,
        )
        is_whole = self.numbers.itersize <= (buffersize or 8192) or "growinner" in flags
        if {"buffered", "external_loop"} <= set(flags) and not (is_whole and self._is_one_piece()):
            raise _refuse("np.nditer with the flags buffered and external_loop gives pieces")

    def _is_one_piece(self) -> bool:
        """Whether the iteration is a single row; it begins anew afterwards."""
        n_pieces = sum(1 for _ in self.numbers)
        self.numbers.reset()
        return n_pieces <= 1

    def _values(self, numbers: Any) -> Any:
        """What stands at the numbers that NumPy's iterator gives."""
        if self.nop == 1 and not isinstance(numbers, tuple):
            return self._value(0, numbers)
        return tuple([self._value(i, x) for i, x in enumerate(numbers)])

    def _value(self, i: int, numbers: np.ndarray) -> Any:
        value = _viewed(self.operands[i], numbers)
        if not self._writes[i] and isinstance(value, np.ndarray):
            value.flags.writeable = False
        return value

    def __iter__(self) -> Nditer:
        return self

    def __next__(self) -> Any:
        return self._values(next(self.numbers))

    @property
    def value(self) -> Any:
        """The elements at hand."""
        return self._values(self.numbers.value)

    def __getitem__(self, index: Any) -> Any:
        """An element at hand, by the number of its operand."""
        numbers = self.numbers.value
        places = list(enumerate(numbers if isinstance(numbers, tuple) else (numbers,)))
        if isinstance(index, slice):
            return tuple([self._value(i, x) for i, x in places[index]])
        return self._value(*places[index])

    def __setitem__(self, index: int, value: Any) -> None:
        """Write to the element at hand."""
        self[index][...] = value

    def __len__(self) -> int:
        return self.nop

    def __enter__(self) -> Nditer:
        return self

    def __exit__(self, *_: object) -> None:
        self.numbers.close()

    def __getattr__(self, name: str) -> Any:
        """Place and state of the iteration, of NumPy's iterator."""
        if name.startswith("__") or name in ("copy", "itviews"):
            raise _refuse(f"np.nditer(...).{name}")
        return getattr(self.numbers, name)

    def __setattr__(self, name: str, value: object) -> None:
        """The place is that of NumPy's iterator."""
        if name in ("multi_index", "index", "iterindex", "iterrange"):
            setattr(self.numbers, name, value)
        else:
            object.__setattr__(self, name, value)

    __class__ = property(lambda self: np.nditer)  # for isinstance


_OF_BUFFERS = frozenset(
    {"buffered", "growinner", "delay_bufalloc", "common_dtype", "refs_ok", "copy_if_overlap"}
)
"""Flags that say how NumPy moves elements, which are not moved here."""


def _written(op_flags: Any, n: int) -> list[bool]:
    """Which operands may be written to; those that are allocated are."""
    if op_flags is None:
        return [False] * n
    flags = list(op_flags)
    each = [flags] * n if flags and isinstance(flags[0], str) else flags
    return ["readwrite" in x or "writeonly" in x for x in each]


def nditer(op: Any, *args: Any, **kwargs: Any) -> Any:
    """``np.nditer``: NumPy's, unless an array may hold traced values."""
    operands = [_operand(x) for x in op] if isinstance(op, (tuple, list)) else [_operand(op)]
    if any(map(_is_live, operands)):
        return Nditer(op, *args, **kwargs)
    return np.nditer(op, *args, **kwargs)


class Ndenumerate:
    """``np.ndenumerate`` of an array that may hold traced values."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self._indices = np.ndindex(array.shape)

    def __iter__(self) -> Iterator[tuple[tuple[int, ...], Any]]:
        return self

    def __next__(self) -> tuple[tuple[int, ...], Any]:
        index = next(self._indices)
        return index, self.array[index]

    __class__ = property(lambda self: np.ndenumerate)  # for isinstance


def ndenumerate(arr: object) -> Any:
    """``np.ndenumerate``, likewise."""
    array = _operand(arr)
    return Ndenumerate(array) if _is_live(array) else np.ndenumerate(arr)


class Broadcast:
    """``np.broadcast`` of arrays of which some may hold traced values.

    Attributes:
      operands: the arrays.
      numbers: NumPy's iterator over the numbers of their elements.
    """

    def __init__(self, *operands: Any) -> None:
        self.operands = operands
        self.numbers = np.broadcast(*map(_numbered, operands))

    def __iter__(self) -> Broadcast:
        return self

    def __next__(self) -> tuple[Any, ...]:
        numbers = next(self.numbers)
        return tuple([x[_index(x, i)] for x, i in zip(self.operands, numbers, strict=True)])

    def __getattr__(self, name: str) -> Any:
        """Shape and place, of NumPy's iterator."""
        if name.startswith("__") or name == "iters":
            raise _refuse(f"np.broadcast(...).{name}")
        return getattr(self.numbers, name)

    __class__ = property(lambda self: np.broadcast)  # for isinstance


def broadcast(*args: Any) -> Any:
    """``np.broadcast``, likewise."""
    operands = [_operand(x) for x in args]
    return Broadcast(*operands) if any(map(_is_live, operands)) else np.broadcast(*args)


MAKERS: dict[type, Callable[..., Any]] = {
    np.nditer: nditer,
    np.ndenumerate: ndenumerate,
    np.broadcast: broadcast,
}
