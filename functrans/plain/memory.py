"""Arrays that are real until a traced value is written to them: ``Buffer``.

Code that was written for NumPy makes an array and fills it: ``out = np.zeros(n)``, ``out[i] = x``.
In traced functions of such code (``plain.twins``) the functions that make arrays give a ``Buffer``,
which is an ndarray: it indexes, counts and decides as one. The first traced value that is written
to it, or to a view of it, makes its memory traced: from then on a tracer answers for every
reference, be it the array, a view made before, an attribute or an item of a list.

Here: the class, ``settled`` (values with what buffers stand for), ``given`` (results as buffers),
and calls on them. Not here: the memory that buffers share (``plain.homes``), methods by name
(``plain.buffer_methods``), tracers of views (``plain.views``), which functions give buffers
(``plain.library_calls``).

Layer: ``plain``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from functrans.arrays.callers import is_augmented
from functrans.arrays.masked import MaskedSelection
from functrans.core.dispatch import Alias, Tracer, aval_of, bind, standing, within
from functrans.core.source import here
from functrans.core.state import open_traces, rebinds
from functrans.core.values import Array, Operand
from functrans.errors import UnsupportedOperationError
from functrans.plain.homes import PLAIN_KINDS, Home, home_of, known_home, owner_of
from functrans.plain.standins import StandIn, original_class
from functrans.plain.views import memory_address, view_of
from functrans.primitives.structural import cast_p

BUFFER_KINDS = PLAIN_KINDS + "USmMVO"
"""Kinds of arrays that are buffers: those of labels and objects, too, which masks index."""


def homes_in(values: Any) -> list[Home]:
    """The memories of the arrays in some values, which are known as long as the list is held."""
    if type(values) is Buffer:
        return [values.home()]
    if type(values) is np.ndarray:
        return [home_of(values, is_outside=True)]
    if type(values) in (tuple, list):
        return [home for value in values for home in homes_in(value)]
    if type(values) is dict:
        return homes_in(list(values.values()))
    return []


def buffer_in(home: Home, array: np.ndarray) -> Buffer:
    """An array that lies in a memory as a buffer."""
    buffer = array.view(Buffer)
    buffer._home = home
    return buffer


class Buffer(np.ndarray):
    """See the module's docstring; ``plain.buffer_methods`` gives it further methods."""

    _home: Home | None
    _is_own: bool
    _origin: Home | None
    _trace: Any
    _tracer: Any
    _array: np.ndarray

    def __array_finalize__(self, other: Any) -> None:
        """Remember where it may come from; whether it is a view is asked when it matters."""
        stack = open_traces.get()
        self._home = None
        self._is_own = False
        self._trace = stack[-1] if stack else None
        self._tracer = None
        self._origin = other.home() if type(other) is Buffer else None

    # what it stands for --------------------------------------------------------------------------

    def home(self) -> Home:
        """The memory it lies in."""
        home = self._home
        if home is None:
            home, self._origin = self._found_home(), None
            self._home = home
        return home

    def _found_home(self) -> Home:
        """That of the array it is a view of, also where a function of a library made the view."""
        origin = self._origin
        if origin is not None and origin.holds(self):
            return origin
        owner = owner_of(self)
        known = known_home(owner)
        if known is not None:
            return known
        is_own = self._is_own or origin is not None  # what arrays make is theirs, or their view
        return Home(owner, self._trace, is_outside=not is_own)

    def traced(self) -> Any:
        """The tracer that stands for it, or ``None``."""
        home = self._home or self.home()
        if home.tracer is None:
            return None
        tracer = self._tracer
        if tracer is None or tracer.shape != self.shape:
            with within(home.trace):
                tracer = self._tracer = view_of(home.root, home.tracer, self)
        return tracer

    def made_traced(self) -> Any:
        """The tracer that stands for it, from now on if there is none yet."""
        home = self.home()
        if home.tracer is None:
            home.become_traced()
        return self.traced()

    _written = made_traced

    @property
    def at(self) -> Any:
        """Places for functional updates, as of a traced array."""
        tracer = self.traced()
        return (lifted(self) if tracer is None else tracer).at

    def plain(self) -> np.ndarray:
        """The same memory as an ordinary array."""
        array = self.__dict__.get("_array")  # the same each time: constants are known by identity
        return np.ndarray.view(self, np.ndarray) if array is None else array

    # Python ---------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        """``self[index]``."""
        tracer = self.traced()
        index = settled_index(index)
        if tracer is not None:
            return tracer[index] if self.ndim else self._of_number(tracer, index)
        if holds_tracer(index):
            if self.dtype.kind in PLAIN_KINDS:
                return lifted(self)[index]
            index = known_index(index)
        return super().__getitem__(index)

    def _of_number(self, tracer: Any, index: Any) -> Array:
        """``self[index]`` of an array without axes: the number, or a view."""
        if not holds_tracer(index):
            result = super().__getitem__(index)
            if type(result) is Buffer and self.home().holds(result):
                return result
        return tracer[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        """``self[index] = value``."""
        index = settled_index(index)
        if type(value) is Buffer and value.traced() is not None and self._shows(value, index):
            return  # the end of ``self[index] += value``, which has written to the view
        value = settled(value)
        if self.dtype.kind not in PLAIN_KINDS:
            super().__setitem__(known_index(index), value)
            return
        tracer = self.traced()
        if tracer is None and not (holds_tracer(value) or holds_tracer(index)):
            super().__setitem__(index, value)
            return
        self.check_storable(value)
        tracer = self.made_traced()
        tracer[index] = value

    def _shows(self, view: Buffer, index: Any) -> bool:
        """Whether ``self[index]`` is the memory of a view."""
        if view.home() is not self.home() or holds_tracer(index):
            return False
        own = np.ndarray.__getitem__(self, index)
        return (
            isinstance(own, np.ndarray)
            and own.shape == view.shape
            and own.strides == view.strides
            and memory_address(own) == memory_address(view)
        )

    def check_storable(self, value: Any) -> None:
        """Refuse what NumPy would cut: traced fractions in an array of integers.

        Raises:
          TypeError: names the dtype of the array.
        """
        is_traced = isinstance(value, (Tracer, MaskedSelection))
        if self.dtype.kind in "biu" and is_traced and value.dtype.kind in "fc":
            raise TypeError(
                f"a traced value of {value.dtype} was written to an array of {self.dtype}"
                f"{here()}; NumPy would cut it to an integer, which has no derivative. Make the "
                "array of floats: np.zeros(n), np.array([0.0, 1.0])"
            )

    def __iter__(self) -> Iterator[Any]:
        """The elements along the first axis."""
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.shape[0]))  # which may become traced in between

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Array | complex, **kwargs: object
    ) -> Any:
        """Ufuncs: of the tracer where there is one, and into ``out=``."""
        return call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: object, args: object, kwargs: object) -> Any:
        """NumPy's functions, as above."""
        target = TARGETS.get(func.__name__) if func.__module__ == "numpy" else None
        if target is not None:
            return write_by(func, target, args, kwargs)
        return call_settled(func, args, kwargs)

    def __reduce__(self) -> Any:
        """As an ordinary array."""
        return settled(self).__reduce__()

    def __deepcopy__(self, memo: object) -> Any:
        """A buffer of its own."""
        return self.copy()

    @property
    def _standing(self) -> Array:
        """What operators of traced arrays take it for."""
        return settled(self)


_OF_MATMUL = [(-2, -1)] * 3


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a ufunc, or a method of one, on what buffers stand for, and into ``out=``."""
    if method == "at":
        return _ufunc_at(ufunc, *inputs)
    function = getattr(ufunc, method)
    if (
        rebinds.get()
        and is_augmented(inputs, kwargs.get("out"))
        and any(isinstance(x, Tracer) or hasattr(x, "_never_written") for x in inputs[1:])
    ):
        del kwargs["out"]
    if kwargs.get("axes") == _OF_MATMUL and all(np.ndim(x) > 1 for x in inputs):
        kwargs.pop("axes")  # of ``a @= b``
    inputs = tuple([settled(x) for x in inputs])
    outs = kwargs.get("out")
    kwargs = {key: settled(value) for key, value in kwargs.items() if key != "out"}
    if outs is None:
        return given(function(*inputs, **kwargs))
    if outs is ...:
        return _in_arrays(function, inputs, kwargs)
    outs = outs if isinstance(outs, tuple) else (outs,)
    if not any_traced(outs) and not holds_tracer(inputs) and not holds_tracer(kwargs):
        plain = tuple([x.plain() if type(x) is Buffer else x for x in outs])
        function(*inputs, out=plain, **kwargs)
        return outs[0] if len(outs) == 1 else outs
    where = kwargs.pop("where", True)
    results = function(*inputs, **kwargs)
    results = results if isinstance(results, tuple) else (results,)
    stored = [
        stored_in(out, result, where, ufunc.__name__)
        for out, result in zip(outs, results, strict=True)
    ]
    return stored[0] if len(stored) == 1 else tuple(stored)


def _in_arrays(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call with ``out=...``, NumPy's word for results that are arrays, also without axes."""
    if not holds_tracer(args) and not holds_tracer(kwargs):
        return given(function(*args, out=..., **kwargs))
    result = function(*args, **kwargs)
    return tuple(map(new_array, result)) if type(result) is tuple else new_array(result)


NEVER = 99
"""The place of ``out`` among the arguments of a function that has it by keyword at most."""


def call_settled(
    func: Callable[..., Any], args: Any, kwargs: Any, place: int = NEVER, name: str = ""
) -> Any:
    """Call a function of a library on what buffers stand for; new arrays are buffers.

    Args:
      func: the function.
      args: its arguments.
      kwargs: likewise.
      place: that of ``out`` among the arguments.
      name: of the function, for messages.
    """
    out = args[place] if len(args) > place else kwargs.get("out")
    if out is None or type(out) is tuple:
        args = settled(tuple(args))
        return given(func(*args, **settled(kwargs)) if kwargs else func(*args))
    args = [None if i == place else settled(x) for i, x in enumerate(args)]
    kwargs = {key: settled(value) for key, value in kwargs.items() if key != "out"}
    if out is ...:
        return _in_arrays(func, args, kwargs)
    if any_traced((out,)) or holds_tracer(args) or holds_tracer(kwargs):
        name = name or getattr(func, "__name__", "the function")
        return stored_in(out, func(*args, **kwargs), True, name)
    if len(args) > place:
        args[place] = settled(out)
    else:
        kwargs["out"] = settled(out)
    func(*args, **kwargs)
    return out


class BufferFlat:
    """``buffer.flat``, to which traced values can be written.

    Attributes:
      buffer: the array.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer

    def _now(self) -> Any:
        tracer = self.buffer.traced()
        return np.ndarray.flat.__get__(self.buffer) if tracer is None else tracer.flat

    def __getitem__(self, index: Any) -> Any:
        """Elements, a copy."""
        index = settled(index)
        if holds_tracer((index,)):
            return lifted(self.buffer).flat[index]
        return given(self._now()[index])

    def __setitem__(self, index: object, value: Array | complex) -> None:
        """Write values, repeated as often as needed."""
        index, value = settled(index), settled(value)
        if holds_tracer(value) or holds_tracer((index,)):
            self.buffer.check_storable(value)
            self.buffer.made_traced()
        self._now()[index] = value

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        return len(self._now())

    def __getattr__(self, name: str) -> Any:
        """What else NumPy's iterator has."""
        return getattr(self._now(), name)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """The elements, in a copy."""
        return np.array(self.buffer.reshape(-1), *args, **kwargs)

    def __repr__(self) -> str:
        """As NumPy's."""
        return repr(self._now())


TARGETS = {
    "copyto": "dst", "put": "a", "place": "arr", "putmask": "a", "fill_diagonal": "a",
    "put_along_axis": "arr",
}  # fmt: skip
"""Functions of NumPy that write to their first argument, and its name."""


# what others ask ---------------------------------------------------------------------------------


def settled(value: Any) -> Any:
    """A value with tracers or ordinary arrays in place of the buffers in lists, tuples, dicts."""
    kind = type(value)
    if kind is Buffer:
        tracer = value.traced()
        return value.plain() if tracer is None else number_of(tracer)
    if kind is tuple or kind is list:
        for item in value:
            if type(item) in _MAY_HOLD:
                return kind([settled(item) for item in value])
        return value
    if kind is dict:
        return {key: settled(item) for key, item in value.items()}
    if kind is StandIn:
        return original_class(value)
    return settled(value.buffer.reshape(-1)) if kind is BufferFlat else value


_MAY_HOLD = frozenset({Buffer, BufferFlat, StandIn, list, tuple, dict})


def as_read(value: Any) -> Any:
    """The same for code that keeps what it is given: arrays that are not traced stay buffers."""
    kind = type(value)
    if kind is Buffer:
        return value if value.traced() is None else value.traced()
    if kind is tuple or kind is list:
        items = [as_read(item) for item in value]
        is_same = all(new is old for new, old in zip(items, value, strict=True))
        return value if is_same else kind(items)
    if kind is dict:
        return {key: as_read(item) for key, item in value.items()}
    if kind is BufferFlat:
        return value if value.buffer.traced() is None else settled(value)
    return original_class(value)


def number_of(tracer: Any) -> Array:
    """What is read of an array without axes: the number that it holds now, as NumPy's scalars."""
    return tracer if tracer.shape or tracer._alias is None else tracer._twin()


def new_array(result: Any) -> Any:
    """A new traced number as an array without axes, which may be written to."""
    if isinstance(result, Tracer) and not result.shape and result._alias is None:
        if result.aval.weak:
            (result,) = bind(cast_p, result, dtype=result.dtype)
        result._alias = Alias()
    return result


def run_through(value: Array) -> Any:
    """The items of an iterator as a list, so that they can be looked at."""
    return list(value) if isinstance(value, Iterator) else value


def settled_index(index: object) -> Any:
    """The same for an index, most of which hold no buffers."""
    return index if type(index) in (int, slice) else settled(index)


def known_index(index: Any) -> Any:
    """An index with plain numbers, which traces are asked for, in place of traced ones."""
    index = standing(index)
    if isinstance(index, Tracer):
        return np.asarray(index._concrete("index()"))
    if type(index) in (tuple, list):
        return type(index)([known_index(part) for part in index])
    return index


def given(result: Any, depth: int = 0) -> Any:
    """A result that user code may write to: new arrays are buffers.

    An array that somebody else holds, too, is taken for one from outside.
    """
    kind = type(result)
    if kind is np.ndarray:
        if result.dtype.kind not in (BUFFER_KINDS if result.ndim else PLAIN_KINDS):
            return result
        is_own = _is_sole(result, depth)
        buffer = result.view(Buffer)
        known = known_home(owner_of(result))
        if known is not None:
            buffer._home = known  # of a buffer among the arguments
        elif is_own:
            buffer._is_own = True
        return buffer
    if kind is tuple or kind is list:
        return kind([given(item, 1) for item in result])
    if isinstance(result, tuple) and hasattr(kind, "_make"):
        return with_items(result, [given(item, 1) for item in result], given)
    return result


def with_items(old: Any, items: list[Any], change: Callable[[Any], Any]) -> Any:
    """A named tuple of other items, with what its class keeps beside them, changed."""
    new = type(old)._make(items)
    for name, value in getattr(old, "__dict__", {}).items():
        setattr(new, name, change(value))
    return new


def _is_sole(result: Any, depth: int) -> bool:
    """Whether nobody but the caller holds the memory of a result."""
    owner = owner_of(result)
    limit: int = _OF_RESULT[depth] if owner is result else _OF_BASE
    return sys.getrefcount(owner) <= limit


def _references(result: object, depth: int = 0) -> int:
    """How often new arrays are held where ``_is_sole`` looks: by the same steps as there."""
    if type(result) is tuple:
        return next(_references(item, 1) for item in result)
    return _counted(result, depth)


def _counted(result: Any, depth: int) -> int:
    owner = owner_of(result)
    return sys.getrefcount(owner)


_OF_RESULT = (_references(np.zeros(2)), _references((np.zeros(2),)))
_OF_BASE = _references(np.zeros(2)[:1])


def outside(array: np.ndarray) -> Buffer:
    """An array that came from outside: what is computed from it are buffers, it is none to fill."""
    result = array.view(Buffer)
    owner = owner_of(array)
    result._home = known_home(owner) or Home(owner, None, is_outside=True)
    result._array = array
    return result


def holds_tracer(value: Any) -> bool:
    """Whether a value is traced, or one in its lists, tuples and dicts."""
    if isinstance(value, (Tracer, MaskedSelection)):
        return True
    kind = type(value)
    if kind is tuple or kind is list:
        return any(map(holds_tracer, value))
    return kind is dict and any(map(holds_tracer, value.values()))


def any_traced(values: Sequence[Any]) -> bool:
    """Whether one of some values is a tracer or a buffer that has become one."""
    return any(
        isinstance(x, (Tracer, MaskedSelection)) or (type(x) is Buffer and x.traced() is not None)
        for x in values
    )


def is_traced_number(value: Operand) -> bool:
    """Whether a value is traced, or a buffer that has become so."""
    return isinstance(value, Tracer) or (type(value) is Buffer and value.traced() is not None)


def lifted(array: Operand) -> Any:
    """The numbers of a buffer that stays real, or of an array, as a tracer."""
    return open_traces.get()[-1].lift(np.array(settled(array)))


def stored_in(out: Array, result: Array, where: bool, name: str) -> Buffer:
    """Write a result into ``out=``, and give that.

    Raises:
      UnsupportedOperationError: it is an array from outside.
      TypeError: the kind of the result would be lost.
    """
    if out is None:
        return result
    result = standing(result)
    if type(out) is Buffer:
        tracer = out.made_traced()
    elif isinstance(out, (Tracer, MaskedSelection)):
        tracer = standing(out)
    else:
        raise UnsupportedOperationError(
            f"{name} was asked to write a traced result into an array that came from outside"
            f"{here()}; arrays of the caller are never changed. Use the result: y = {name}(...)"
        )
    dtype = aval_of(result).dtype
    if not np.can_cast(dtype, tracer.dtype, "same_kind"):
        raise TypeError(
            f"Cannot cast ufunc {name!r} output from {dtype!r} to {tracer.dtype!r} with casting "
            f"rule 'same_kind'{here()}"
        )
    tracer[...] = result if where is True else np.where(where, result, tracer)
    return out


def _ufunc_at(ufunc: np.ufunc, target: Any, *rest: Any) -> None:
    rest = settled(rest)
    if type(target) is Buffer:
        if target.traced() is None and not holds_tracer(rest):
            ufunc.at(target.plain(), *rest)
            return
        for value in rest[1:]:
            target.check_storable(value)
        target = target.made_traced()
    ufunc.at(target, *rest)


def write_by(func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Call a function of NumPy that writes to its first argument, of this name."""
    args, kwargs = tuple(args), dict(kwargs)
    target, rest = (args[0], args[1:]) if args else (kwargs.pop(name), ())
    rest, kwargs = settled(rest), settled(kwargs)
    if type(target) is Buffer:
        if target.traced() is None and not holds_tracer(rest) and not holds_tracer(kwargs):
            return func(target.plain(), *rest, **kwargs)
        for value in (*rest, *kwargs.values()):
            target.check_storable(value)
        target = target.made_traced()
    return func(target, *rest, **kwargs)
