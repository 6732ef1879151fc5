"""Pickles that nobody vouches for: tensors, arrays, numbers and containers, and nothing else.

Here: ``read_weights``, a reader of pickles of its own. Not here: archives (``archives``), and which
of the two readers ``load`` uses (``saving``).

pickle's reader calls what a file names, and sets what a file says on whatever it has made. This one
looks names up in a table of pairs (module, name), imports nothing, and calls nothing but the makers
below, each of which checks its arguments:

- A dtype is one of numbers, chosen by its name; of its state only the byte order is read.
- An array has as many bytes as its shape and dtype say; a tensor lies within its memory
  (``memory_part``). State is set once, on arrays and dtypes that this file made, and attributes on
  tensors and ordered dictionaries only, under names that their classes do not have.
- What is made takes memory in proportion to the file: makers that copy are charged for it.
- Keys are numbers, texts, tensors and small tuples of them: the hash of a tuple is recursive.

Layer: ``compat``. Reference: Python documentation, ``pickletools``.
"""

from __future__ import annotations

import codecs
import math
import pickle
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.dtypes import dtype as torch_dtype
from functrans.autograd.methods.conversion import bfloat16_dtype, device
from functrans.autograd.methods.state import unpickled
from functrans.autograd.sizes import Size
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.archives import (
    ORIGIN,
    known,
    of_type,
    parameter_of,
    tensor_of,
    tensor_of_bytes,
)
from functrans.compat.torch.nn.parameter import Buffer, Parameter
from functrans.core.values import Array

ADVICE = "If you trust where the file comes from, use load(f, weights_only=False)."
_TENSORS = (Tensor, Parameter, Buffer)
_MAPPINGS = (dict, OrderedDict, defaultdict, Counter)
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes))
_SMALL_KEY = 1000
_NUMBERS = {np.dtype(code).str[1:]: np.dtype(code) for code in "?bBhHiIlLqQefdgFDG"}


def _refuse(what: str) -> NoReturn:
    raise pickle.UnpicklingError(f"Weights only load failed: {what}. {ADVICE}")


# makers -----------------------------------------------------------------------------------------


def _array(machine: PickleMachine, kind: object, shape: Any, code: object) -> np.ndarray:
    if kind is not np.ndarray:
        _refuse("the file holds an array of a class of its own")
    array = np.ndarray((0,), np.int8)
    machine.unbuilt[id(array)] = array
    return array


def _build_array(machine: PickleMachine, array: np.ndarray, state: Any) -> None:
    _, shape, dtype, is_fortran, raw = state
    if type(raw) is not bytes:
        _refuse("the file holds an array of Python objects")
    extents, dtype = _extents(shape), _number_dtype(dtype)
    if math.prod(extents) * dtype.itemsize != len(raw):
        _refuse("an array in the file has other bytes than its shape says")
    machine.charge(len(raw))
    # NumPy takes the bytes themselves as memory: others may hold them, and they are immutable.
    own = bytes(memoryview(_truth_values(dtype, raw)))
    setting: Any = array
    setting.__setstate__((1, extents, dtype, bool(is_fortran), own))


def _array_of_buffer(
    machine: PickleMachine,
    buffer: Any,
    dtype: DTypeLike | None,
    shape: object,
    order: object,
    axes: object = None,
) -> np.ndarray:
    if type(buffer) not in (bytes, bytearray) or type(order) is not str:
        _refuse("the file holds an array without memory")
    dtype = _number_dtype(dtype)
    if dtype.kind == "b":
        machine.charge(len(buffer))
    array: Any = np.frombuffer(_truth_values(dtype, buffer), dtype)
    if order == "K" and axes is not None:
        array = array.reshape(_extents(shape)).transpose(axes)
    else:
        array = array.reshape(_extents(shape), order=order)
    return array


def _scalar(machine: PickleMachine, dtype: DTypeLike | None, raw: object) -> np.generic:
    dtype = _number_dtype(dtype)
    if type(raw) is not bytes or len(raw) != dtype.itemsize:
        _refuse("a number in the file has other bytes than its dtype says")
    return np.frombuffer(_truth_values(dtype, raw), dtype)[0]


def _truth_values(dtype: np.dtype, raw: Any) -> Any:
    """The bytes; for booleans 0 and 1 alone, which is what NumPy and compiled code rely on."""
    return (np.frombuffer(raw, np.uint8) != 0).tobytes() if dtype.kind == "b" else raw


def _dtype(
    machine: PickleMachine, name: object, align: object = False, copy: object = False
) -> np.dtype:
    found = name if isinstance(name, np.dtype) else None
    if type(name) is str:
        found = _NUMBERS.get(name)
    if found is None:
        _refuse(f"the file names the dtype {name!r}, which is none of numbers")
    own = np.dtype(found, copy=True)  # BUILD changes it in place, and pickle knows it by identity
    machine.unbuilt[id(own)] = own
    return own


def _build_dtype(dtype: np.dtype, state: Any) -> None:
    _, order, *parts = state[:5]
    if order not in ("<", ">", "|", "=") or any(part is not None for part in parts):
        _refuse("the file holds a dtype with fields or parts")
    if not dtype.newbyteorder(order).isnative:
        setting: Any = dtype
        setting.__setstate__((3, order, None, None, None, -1, -1, 0))


def _number_dtype(dtype: object) -> np.dtype:
    """NumPy's own object for a dtype that the file made."""
    if isinstance(dtype, torch_dtype):
        return dtype.dtype
    if not isinstance(dtype, np.dtype):
        raise TypeError(f"a dtype was expected, not {type(dtype).__name__}")
    return dtype if dtype.kind == "V" else np.dtype(dtype.str)


def _extents(shape: Any) -> tuple[int, ...]:
    if type(shape) not in (tuple, Size) or any(type(n) is not int or n < 0 for n in shape):
        raise ValueError("a shape is no tuple of extents")
    return tuple(shape)


def _built(machine: PickleMachine, value: Any) -> np.ndarray:
    if type(value) is not np.ndarray or id(value) in machine.unbuilt:
        raise TypeError("a tensor without memory")
    return value


def _tensor(machine: PickleMachine, memory: Array, *args: Any) -> Tensor:
    return tensor_of(_built(machine, memory), *args)


def _tensor_of_bytes(machine: PickleMachine, memory: Any, *args: Any) -> Tensor:
    offset, size, stride, requires_grad, hooks, dtype, *rest = args
    dtype = _number_dtype(dtype)
    own = _built(machine, memory)
    return tensor_of_bytes(own, offset, size, stride, requires_grad, hooks, dtype, *rest)


def _parameter(machine: PickleMachine, data: Any, grad: Any, hooks: Any, state: Any = None) -> Any:
    if type(data) not in _TENSORS:
        raise TypeError("a parameter without tensor")
    return parameter_of(data, grad, hooks, _attributes(machine, Parameter, state))


def _typed(machine: PickleMachine, make: object, kind: object, args: object, state: object) -> Any:
    maker = {id(tensor_of): _tensor, id(tensor_of_bytes): _tensor_of_bytes}.get(id(make))
    if maker is None or kind not in _TENSORS:
        _refuse("the file holds a tensor of a class of its own")
    own = dict(state) if type(state) is dict else {}
    origin = {ORIGIN: own.pop(ORIGIN)} if ORIGIN in own else {}
    attributes = {**origin, **_attributes(machine, kind, own)}
    return of_type(lambda *given: maker(machine, *given), kind, args, attributes)


def _pickled(
    machine: PickleMachine, kind: object, value: object, requires_grad: object, extra: object,
    follows: object = False, part: Any = None,
) -> Tensor:  # fmt: skip
    if kind not in _TENSORS:
        _refuse("the file holds a tensor of a class of its own")
    if part is not None:
        shape, dtype, offset, strides = part
        part = shape, _number_dtype(dtype), offset, strides
    own = _attributes(machine, kind, extra)
    return unpickled(kind, _built(machine, value), bool(requires_grad), own, bool(follows), part)


def _attributes(machine: PickleMachine, kind: type, state: object) -> dict[str, Any]:
    """What users put on an object; nothing that its class has or keeps there."""
    if not state:
        return {}
    if type(state) is not dict:
        raise TypeError("attributes that are no dictionary")
    machine.charge(len(state))
    for name in state:
        is_kept = kind is not OrderedDict and str(name).startswith("_")
        if type(name) is not str or is_kept or hasattr(kind, name):
            _refuse(f"the file sets the attribute {name!r} of {kind.__name__}")
    return state


def _items(machine: PickleMachine, items: Any = ()) -> Sequence[Any]:
    """A list or tuple of the file, which a maker is about to copy."""
    if type(items) not in (list, tuple):
        raise TypeError(f"a list was expected, not {type(items).__name__}")
    machine.charge(len(items))
    return items


def _keys(machine: PickleMachine, items: object = ()) -> Any:
    for item in _items(machine, items):
        _check_key(item)
    return items


def _check_key(key: object) -> None:
    """Refuse what takes long to hash, or a deep stack."""
    rest, seen = [key], 0
    while rest:
        value = rest.pop()
        seen += 1
        if seen > _SMALL_KEY:
            _refuse("the file holds a key of many parts")
        if type(value) is tuple or type(value) is Size:
            if len(value) > _SMALL_KEY:
                _refuse("the file holds a key of many parts")
            rest.extend(value)
        elif type(value) not in _PLAIN and not isinstance(
            value, (Tensor, np.generic, np.dtype, torch_dtype)
        ):
            _refuse(f"the file holds a key of type {type(value).__name__}")


def _integers(*values: object) -> tuple[Any, ...]:
    if any(value is not None and type(value) is not int for value in values):
        raise TypeError("integers were expected")
    return values


def _ordered(machine: PickleMachine, items: Sequence[Any] = ()) -> OrderedDict[Any, Any]:
    pairs = [tuple(_items(machine, pair)) for pair in _items(machine, items)]
    _keys(machine, [key for key, _ in pairs])
    return OrderedDict(pairs)


def _counter(machine: PickleMachine, counts: object = None) -> Counter[Any]:
    if counts is not None and type(counts) is not dict:
        raise TypeError("counts that are no dictionary")
    machine.charge(len(counts or ()))
    return Counter(counts)


def _defaultdict(machine: PickleMachine, factory: Any = None) -> defaultdict[Any, Any]:
    if factory is not None and id(factory) not in _FACTORIES:
        _refuse("the file holds a defaultdict of a function")
    return defaultdict(factory)


def _bytes(machine: PickleMachine, text: object, encoding: object) -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise TypeError("a text in Latin-1 was expected")
    machine.charge(len(text))
    return text.encode("latin-1")


def _bytearray(machine: PickleMachine, raw: object = b"", *encoding: object) -> bytearray:
    if type(raw) is not bytes:
        return bytearray(_bytes(machine, raw, *encoding))
    machine.charge(len(raw))
    return bytearray(raw)


def _complex(machine: PickleMachine, *parts: Any) -> complex:
    if any(type(part) is not float and type(part) is not int for part in parts):
        raise TypeError("two numbers were expected")
    return complex(*parts)


def _size(machine: PickleMachine, extents: object = ()) -> Size:
    return Size(_integers(*_items(machine, extents)))


def _device(machine: PickleMachine, name: object, index: object = None) -> device:
    if type(name) is not str:
        raise TypeError("a device without name")
    return device(name, *_integers(index))


_CONTAINERS = (
    set, frozenset, complex, slice, range, bytearray,
    list, dict, tuple, int, float, bool, str, bytes,
)  # fmt: skip
_FACTORIES = {id(kind) for kind in (list, dict, set, int, float, bool, str, OrderedDict)}


_FOUND: dict[tuple[str, str], Any] = {
    **{(name, kind.__name__): kind for kind in _CONTAINERS for name in ("builtins", "__builtin__")},
    ("__builtin__", "xrange"): range,
    **{("collections", kind.__name__): kind for kind in (OrderedDict, defaultdict, deque, Counter)},
    ("_codecs", "encode"): codecs.encode,
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("functrans.autograd.tensors", "Tensor"): Tensor,
    ("functrans.autograd.methods.state", "unpickled"): unpickled,
    ("functrans.autograd.methods.state", "_unpickled"): unpickled,
    ("functrans.compat.torch.nn.parameter", "Parameter"): Parameter,
    ("functrans.compat.torch.nn.parameter", "Buffer"): Buffer,
    ("functrans.autograd.sizes", "Size"): Size,
    ("functrans.compat.torch.functional_names", "Size"): Size,
    **{
        (f"numpy.{core}.{module}", name): maker
        for core in ("core", "_core")
        for module, name, maker in (
            ("multiarray", "_reconstruct", _array),
            ("multiarray", "scalar", _scalar),
            ("numeric", "_frombuffer", _array_of_buffer),
        )
    },
}
"""What names in a file stand for, other than PyTorch's (``archives.known``)."""

_MAKERS: dict[int, Callable[..., Any]] = {
    id(stands): maker
    for stands, maker in (
        (set, lambda machine, *args: set(_keys(machine, *args))),
        (frozenset, lambda machine, *args: frozenset(_keys(machine, *args))),
        (complex, _complex),
        (slice, lambda machine, *args: slice(*_integers(*args))),
        (range, lambda machine, *args: range(*_integers(*args))),
        (bytearray, _bytearray),
        (bytes, lambda machine: b""),  # as protocols below 3 write it
        (OrderedDict, _ordered),
        (defaultdict, _defaultdict),
        (deque, lambda machine, items=(), *size: deque(_items(machine, items), *_integers(*size))),
        (Counter, _counter),
        (codecs.encode, _bytes),
        (np.dtype, _dtype),
        (_array, _array),
        (_scalar, _scalar),
        (_array_of_buffer, _array_of_buffer),
        (unpickled, _pickled),
        (Size, _size),
        (device, _device),
        (tensor_of, _tensor),
        (tensor_of_bytes, _tensor_of_bytes),
        (parameter_of, _parameter),
        (of_type, _typed),
    )
}
"""What is done where a file calls something: the only calls there are."""


def _named(module: str, name: str) -> Any:
    if type(module) is not str or type(name) is not str:
        raise TypeError("a name that is no text")
    if module.partition(".")[0] == "torch":
        return known(module, name)
    if (module, name) == ("ml_dtypes", "bfloat16"):
        return bfloat16_dtype()
    found = _FOUND.get((module, name))
    if found is None:
        _refuse(f"the file names {module}.{name}, which is neither a tensor nor a container")
    return found


# the machine ------------------------------------------------------------------------------------


class PickleMachine:
    """The stack machine that pickles are programs of.

    Attributes:
      position: of the next instruction.
      stack: what was made and not yet used.
      memo: what was made and may be used again, by number.
      unbuilt: arrays and dtypes without state yet, by ``id``.
    """

    def __init__(self, data: bytes, memory: Callable[[Any], np.ndarray] | None) -> None:
        self.data, self.position = data, 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.unbuilt: dict[int, Any] = {}
        self.memory = memory
        self._left = 4 * len(data) + 4096

    def charge(self, amount: int) -> None:
        """Note a copy of so many bytes or elements."""
        self._left -= amount
        if self._left < 0:
            _refuse("the file asks for far more memory than it has itself")

    def run(self) -> dict[str, Any]:
        """What the pickle makes."""
        data, size = self.data, len(self.data)
        while self.position < size:
            code = data[self.position]
            self.position += 1
            if code == pickle.STOP[0]:
                return self.stack.pop()
            act = _INSTRUCTIONS.get(code)
            if act is None:
                _refuse(f"the file has the instruction {bytes([code])!r}")
            act(self)
        raise EOFError("it ends early")

    def take(self, count: int) -> bytes:
        """The next bytes."""
        start, self.position = self.position, self.position + count
        if count < 0 or self.position > len(self.data):
            raise EOFError("it ends early")
        return self.data[start : self.position]

    def integer(self, size: int, signed: bool = False) -> int:
        """An integer of so many bytes."""
        return int.from_bytes(self.take(size), "little", signed=signed)

    def line(self) -> bytes:
        """The rest of the line."""
        end = self.data.find(b"\n", self.position)
        if end < 0:
            raise EOFError("it ends early")
        found = self.take(end - self.position)
        self.position += 1
        return found

    def marked(self) -> list[Any]:
        """What was pushed since the last mark."""
        start = self.marks.pop()
        found = self.stack[start:]
        del self.stack[start:]
        return found

    def top(self, count: int) -> tuple[Any, ...]:
        """The last values, removed."""
        if len(self.stack) < count:
            raise IndexError("the stack is empty")
        found = tuple(self.stack[-count:])
        del self.stack[-count:]
        return found

    def call(self, function: object, args: Any) -> None:
        """Push what a maker makes."""
        maker = _MAKERS.get(id(function))
        if maker is None or type(args) is not tuple:
            _refuse(f"the file calls {getattr(function, '__name__', type(function).__name__)}")
        self.stack.append(maker(self, *args))

    def build(self) -> None:
        """Give the last value its state."""
        target, state = self.top(2)
        self.stack.append(target)
        if type(target) is OrderedDict:
            target.__dict__.update(_attributes(self, OrderedDict, state))
        elif self.unbuilt.pop(id(target), None) is None:
            _refuse(f"the file sets the state of {type(target).__name__}")
        elif isinstance(target, np.dtype):
            _build_dtype(target, state)
        else:
            _build_array(self, target, state)

    def extend(self, items: list[Any]) -> None:
        """Append to a list or deque."""
        if type(self.stack[-1]) not in (list, deque):
            _refuse(f"the file appends to {type(self.stack[-1]).__name__}")
        self.stack[-1].extend(items)

    def set_items(self, items: Any) -> None:
        """Set keys and values of a dictionary."""
        if type(self.stack[-1]) not in _MAPPINGS or len(items) % 2:
            _refuse(f"the file sets items of {type(self.stack[-1]).__name__}")
        for i in range(0, len(items), 2):
            _check_key(items[i])
            self.stack[-1][items[i]] = items[i + 1]

    def add_items(self, items: list[Any]) -> None:
        """Add to a set."""
        if type(self.stack[-1]) is not set:
            _refuse(f"the file adds to {type(self.stack[-1]).__name__}")
        self.stack[-1].update(_keys(self, items))


def _push(make: Callable[[PickleMachine], Any]) -> Callable[[PickleMachine], None]:
    return lambda machine: machine.stack.append(make(machine))


def _protocol(machine: PickleMachine) -> None:
    number = machine.integer(1)
    if number > pickle.HIGHEST_PROTOCOL:
        raise ValueError(f"unsupported pickle protocol: {number}")


def _text_integer(machine: PickleMachine) -> int:
    line = machine.line()
    return {b"00": False, b"01": True}[line] if line in (b"00", b"01") else int(line)


def _quoted(machine: PickleMachine) -> str:
    text = machine.line().strip()
    if len(text) < 2 or text[:1] not in (b"'", b'"') or text[-1:] != text[:1]:
        raise ValueError("a text without quotes")
    return codecs.escape_decode(text[1:-1])[0].decode("ascii")


def _pop(machine: PickleMachine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.stack.pop()


def _put(number: Callable[[PickleMachine], int]) -> Callable[[PickleMachine], None]:
    def act(machine: PickleMachine) -> None:
        machine.memo[number(machine)] = machine.stack[-1]

    return act


def _dictionary(machine: PickleMachine) -> None:
    items = machine.marked()
    machine.stack.append({})
    machine.set_items(items)


def _persistent(machine: PickleMachine) -> np.ndarray:
    (identity,) = machine.top(1)
    if machine.memory is None:
        _refuse("the file refers to a memory, but is no archive")
    return machine.memory(identity)


def _text(size: int) -> Callable[[PickleMachine], str]:
    return lambda m: str(m.take(m.integer(size)), "utf-8", "surrogatepass")


def _raw(size: int) -> Callable[[PickleMachine], bytes]:
    return lambda m: m.take(m.integer(size))


_INSTRUCTIONS: dict[int, Callable[[PickleMachine], Any]] = {
    code[0]: act
    for code, act in {
        pickle.PROTO: _protocol,
        pickle.FRAME: lambda m: m.take(8),
        pickle.MARK: lambda m: m.marks.append(len(m.stack)),
        pickle.POP: _pop,
        pickle.POP_MARK: lambda m: m.marked(),
        pickle.DUP: lambda m: m.stack.append(m.stack[-1]),
        pickle.NONE: _push(lambda m: None),
        pickle.NEWTRUE: _push(lambda m: True),
        pickle.NEWFALSE: _push(lambda m: False),
        pickle.INT: _push(_text_integer),
        pickle.BININT: _push(lambda m: m.integer(4, signed=True)),
        pickle.BININT1: _push(lambda m: m.integer(1)),
        pickle.BININT2: _push(lambda m: m.integer(2)),
        pickle.LONG: _push(lambda m: int(m.line().rstrip(b"L"))),
        pickle.LONG1: _push(lambda m: m.integer(m.integer(1), signed=True)),
        pickle.LONG4: _push(lambda m: m.integer(m.integer(4, signed=True), signed=True)),
        pickle.FLOAT: _push(lambda m: float(m.line())),
        pickle.BINFLOAT: _push(lambda m: struct.unpack(">d", m.take(8))[0]),
        pickle.STRING: _push(_quoted),
        pickle.BINSTRING: _push(lambda m: m.take(m.integer(4, signed=True)).decode("ascii")),
        pickle.SHORT_BINSTRING: _push(lambda m: m.take(m.integer(1)).decode("ascii")),
        pickle.UNICODE: _push(lambda m: str(m.line(), "raw-unicode-escape")),
        pickle.SHORT_BINUNICODE: _push(_text(1)),
        pickle.BINUNICODE: _push(_text(4)),
        pickle.BINUNICODE8: _push(_text(8)),
        pickle.SHORT_BINBYTES: _push(_raw(1)),
        pickle.BINBYTES: _push(_raw(4)),
        pickle.BINBYTES8: _push(_raw(8)),
        pickle.BYTEARRAY8: _push(lambda m: bytearray(m.take(m.integer(8)))),
        pickle.EMPTY_LIST: _push(lambda m: []),
        pickle.EMPTY_TUPLE: _push(lambda m: ()),
        pickle.EMPTY_DICT: _push(lambda m: {}),
        pickle.EMPTY_SET: _push(lambda m: set()),
        pickle.LIST: _push(lambda m: m.marked()),
        pickle.TUPLE: _push(lambda m: tuple(m.marked())),
        pickle.TUPLE1: _push(lambda m: m.top(1)),
        pickle.TUPLE2: _push(lambda m: m.top(2)),
        pickle.TUPLE3: _push(lambda m: m.top(3)),
        pickle.DICT: _dictionary,
        pickle.FROZENSET: _push(lambda m: frozenset(_keys(m, m.marked()))),
        pickle.APPEND: lambda m: m.extend([m.stack.pop()]),
        pickle.APPENDS: lambda m: m.extend(m.marked()),
        pickle.SETITEM: lambda m: m.set_items(m.top(2)),
        pickle.SETITEMS: lambda m: m.set_items(m.marked()),
        pickle.ADDITEMS: lambda m: m.add_items(m.marked()),
        pickle.GET: _push(lambda m: m.memo[int(m.line())]),
        pickle.BINGET: _push(lambda m: m.memo[m.integer(1)]),
        pickle.LONG_BINGET: _push(lambda m: m.memo[m.integer(4)]),
        pickle.PUT: _put(lambda m: int(m.line())),
        pickle.BINPUT: _put(lambda m: m.integer(1)),
        pickle.LONG_BINPUT: _put(lambda m: m.integer(4)),
        pickle.MEMOIZE: _put(lambda m: len(m.memo)),
        pickle.GLOBAL: _push(lambda m: _named(m.line().decode(), m.line().decode())),
        pickle.STACK_GLOBAL: _push(lambda m: _named(*m.top(2))),
        pickle.REDUCE: lambda m: m.call(*m.top(2)),
        pickle.NEWOBJ: lambda m: m.call(*m.top(2)),
        pickle.BUILD: lambda m: m.build(),
        pickle.BINPERSID: _push(_persistent),
    }.items()
}  # fmt: skip
"""Of pickle's instructions those that data need. There is none for classes (``INST``, ``OBJ``,
``EXT1``), keyword arguments and memory outside of the file."""


def read_weights(data: bytes, memory: Callable[[Any], np.ndarray] | None = None) -> tuple[Any, int]:
    """Read a pickle of tensors, arrays, numbers and containers.

    Args:
      data: begins with the pickle.
      memory: of tensors, by PyTorch's persistent ids.

    Returns:
      What it makes, and its length.

    Raises:
      UnpicklingError: the pickle holds something else, or is damaged.
    """
    machine = PickleMachine(data, memory)
    return machine.run(), machine.position
