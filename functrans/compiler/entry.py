"""Calls: a native program as a Python function, at the price of a builtin.

Here: ``Entry``, which says what a program takes and returns, the native wrapper that checks
arguments, allocates results and calls the program (``emit_entry``), and the Python function made of
it (``make_function``). Not here: what to do with arguments that do not fit, which come back as
``NotImplemented`` for the caller to convert or to trace again.

A program is ``i32 @program(ptr in0, ..., ptr out0, ...)`` on addresses of data, followed by that of
the table of its parameters if it has one; it returns 0, or a number that says what went wrong. The
wrapper is a function of CPython's calling convention for positional arguments and becomes a builtin
function; a call through ctypes would cost several times as much. It reads array objects where
NumPy's headers put their fields; ``layout_is_known`` compares what it reads with what Python says,
once, and if they ever differ ``make_function`` returns a Python function that does the same more
slowly.

Addresses of objects and functions are symbols, never numbers in the text: the object code can be
kept on disk and loaded by another process.

References: Python/C API Reference, "Common Object Structures" (METH_FASTCALL); NumPy C-API, "Python
Types and C-Structures" (PyArrayObject, PyArray_Descr) and "Array API".

Layer: ``compiler``.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.emitter.builder import Builder, Module
from functrans.emitter.types import F64, I8, I32, I64, POINTER, Value
from functrans.machine.engine import Loaded
from functrans.records import dataclass, field

_HEADER = object.__basicsize__
"""Bytes of an object before its own fields."""

# The type is the last field of the header, also where the header is longer (free threading).
_TYPE_OF = _HEADER - 8
# Fields of PyArrayObject, after the header.
_DATA, _NDIM, _SHAPE, _DESCR, _FLAGS = (_HEADER + n for n in (0, 8, 16, 40, 48))
# Fields of PyArray_Descr since NumPy 2.0, after the header.
_TYPE, _KIND, _BYTE_ORDER, _ITEM_SIZE = (_HEADER + n for n in (0, 8, 10, 24))
_C_CONTIGUOUS, _OWNDATA, _ALIGNED, _WRITEABLE = 0x001, 0x004, 0x100, 0x400
# Positions in NumPy's table of functions, which are part of its binary interface.
_ARRAY_TYPE, _ARRAY_SCALAR, _NEW_FROM_DESCR = 2, 60, 94
_METH_FASTCALL = 0x0080

INTERRUPTED = 3
"""Status of a program that a signal ended: the exception is set already."""

SCALAR_KINDS = ("bool", "int", "float", "complex")


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """An array that a program takes or returns.

    Attributes:
      shape: its extents.
      dtype: its dtype, in native byte order.
      scalar: of a result without axes: it is returned as a NumPy scalar, not as an array.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    scalar: bool = False

    def __post_init__(self) -> None:
        dtype = np.dtype(self.dtype)
        # One of several equal dtypes (``long`` and ``longlong``) is the one of results.
        canonical = np.dtype(dtype.str) if dtype.kind in "biufc" else dtype
        object.__setattr__(self, "dtype", canonical)
        if self.scalar and self.shape:
            raise ValueError(f"an array of shape {self.shape} is no scalar")

    @property
    def size_bytes(self) -> int:
        """Memory of its elements."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class ScalarSpec:
    """A Python number that a program takes: the address of its value.

    Attributes:
      kind: ``"bool"`` (one byte), ``"int"`` (64 bits; others do not fit), ``"float"`` or
        ``"complex"`` (two floats); of exactly that type.
    """

    kind: str

    def __post_init__(self) -> None:
        if self.kind not in SCALAR_KINDS:
            raise ValueError(f"{self.kind!r} is none of {', '.join(SCALAR_KINDS)}")


Spec = ArraySpec | ScalarSpec


@dataclass(frozen=True, slots=True)
class Entry:
    """How a program is called.

    Attributes:
      name: symbol of the wrapper; ``f"{name}.packed"`` is the one for an array of addresses.
      program: symbol of the program.
      inputs: what it takes, in order.
      outputs: what it returns, in order.
      single: whether its only result is returned as it is, and not in a tuple.
      release_gil: whether other Python threads may run during the program.
      donated: outputs, by position, whose memory and object are those of an input; such an input
        must be writeable, no view, and share no memory with another one.
      parameters: a table of 64-bit integers whose address the program takes last; ``None`` for
        programs without one.
    """

    name: str
    program: str
    inputs: tuple[Spec, ...]
    outputs: tuple[ArraySpec, ...]
    single: bool = False
    release_gil: bool = False
    donated: Mapping[int, int] = field(default_factory=dict)
    parameters: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.single and len(self.outputs) != 1:
            raise ValueError(f"single: the program has {len(self.outputs)} results")
        for output, source in self.donated.items():
            given, returned = self.inputs[source], self.outputs[output]
            if not isinstance(given, ArraySpec) or given != returned or returned.scalar:
                raise ValueError(f"result {output} ({returned}) cannot be input {source} ({given})")
        if len(set(self.donated.values())) != len(self.donated):
            raise ValueError(f"an input is donated twice: {self.donated}")

    @property
    def packed(self) -> str:
        """Symbol of the function that takes one array of all addresses."""
        return f"{self.name}.packed"


# the wrapper ---------------------------------------------------------------------------------


def _symbol(name: str, b: Builder) -> Value:
    """The address of an object of this process, which the loader fills in."""
    b.module.globals.setdefault(f"@{name}", f"@{name} = external global i8")
    return Value(f"@{name}", POINTER)


def _field(b: Builder, pointer: Value, offset: int, type_: Any) -> Value:
    return b.load(type_, b.offset(pointer, b.index(offset)))


def _dtype_symbol(dtype: np.dtype[Any]) -> str:
    return f"functrans.dtype.{dtype.name}"


def _scalar_type_symbol(dtype: np.dtype[Any]) -> str:
    return f"functrans.scalar.{dtype.name}"


def _all_of(b: Builder, conditions: Sequence[Value]) -> Value:
    return functools.reduce(b.and_, conditions)


def _require(b: Builder, condition: Value, otherwise: str) -> None:
    """Go on only where a condition holds."""
    go_on = b.label("ok")
    b.branch_if(condition, go_on, otherwise)
    b.start(go_on)


def _write_array_check(b: Builder) -> None:
    """The body of ``@functrans.array``: the data of an array of the wanted form, or null.

    Arguments: the object, the number of axes, the extents, kind, item size and flags wanted, the
    scalar type of the dtype or null.
    """
    array, ndim, shape, kind, item_size, flags, type_ = b.arguments
    _require(b, b.icmp("eq", _field(b, array, _TYPE_OF, POINTER), _symbol("PyArray_Type", b)), "no")
    descr = _field(b, array, _DESCR, POINTER)
    order = _field(b, descr, _BYTE_ORDER, I8)
    native = b.or_(
        b.icmp("eq", order, b.const(I8, ord("="))), b.icmp("eq", order, b.const(I8, ord("|")))
    )
    any_type = b.icmp("eq", type_, Value("null", POINTER))
    same_type = b.icmp("eq", _field(b, descr, _TYPE, POINTER), type_)
    agree = [
        b.icmp("eq", _field(b, array, _NDIM, I32), ndim),
        b.icmp("eq", _field(b, descr, _KIND, I8), kind),
        b.icmp("eq", _field(b, descr, _ITEM_SIZE, I64), item_size),
        b.icmp("eq", b.and_(_field(b, array, _FLAGS, I32), flags), flags),
        native,
        b.or_(any_type, same_type),
    ]
    _require(b, _all_of(b, agree), "no")
    extents = _field(b, array, _SHAPE, POINTER)
    with b.loop(b.index(0), b.convert("sext", ndim, I64)) as axis:
        extent = b.load(I64, b.element(extents, axis, I64))
        _require(b, b.icmp("eq", extent, b.load(I64, b.element(shape, axis, I64))), "no")
    b.ret(_field(b, array, _DATA, POINTER))
    b.start("no")
    b.ret(Value("null", POINTER))


class _Wrapper:
    """Writes the wrapper of one entry."""

    def __init__(self, module: Module, entry: Entry) -> None:
        self.entry = entry
        self.b = Builder(module, entry.name, [POINTER, POINTER, I64], POINTER)
        self.undo: list[tuple[str, Value]] = []
        """Objects made so far, each with the block that releases it and then those before it."""

    def write(self) -> None:
        """The whole function."""
        b, entry = self.b, self.entry
        _, args, nargs = b.arguments
        _require(b, b.icmp("eq", nargs, b.index(len(entry.inputs))), "mismatch")
        objects = [_field(b, args, 8 * i, POINTER) for i in range(len(entry.inputs))]
        data = [self._input(i, obj) for i, obj in enumerate(objects)]
        for source in entry.donated.values():
            self._require_alone(source, data)
        answer = b.alloca(POINTER, align=8)
        b.store(null_pointer(), answer)
        results, slots = self._allocate(objects, data)
        status = self._run([*data, *slots])
        failed, fine = b.label("failed"), b.label("fine")
        b.branch_if(b.icmp("eq", status, b.const(I32, 0)), fine, failed)
        b.start(failed)
        number, way_out = b.label("number"), self._way_out()
        b.branch_if(b.icmp("eq", status, b.const(I32, INTERRUPTED)), way_out, number)
        b.start(number)
        long_status = b.convert("sext", status, I64)
        b.store(b.call("PyLong_FromLong", [long_status], POINTER), answer)
        b.branch(way_out)
        b.start(fine)
        b.ret(self._pack(results, slots))
        b.start("mismatch")
        refused = _symbol("functrans.NotImplemented", b)
        b.call("Py_IncRef", [refused], None)
        b.ret(refused)
        for label, obj in reversed(self.undo):
            b.start(label)
            b.call("Py_DecRef", [obj], None)
            self.undo.pop()
            b.branch(self._way_out())
        b.start("out")
        b.ret(b.load(POINTER, answer))  # null: an exception is set
        b.finish()

    # arguments

    def _input(self, position: int, obj: Value) -> Value:
        """Check an argument; the address of its value."""
        spec = self.entry.inputs[position]
        if isinstance(spec, ArraySpec):
            return self._array(spec, obj, position in self.entry.donated.values())
        read = {
            "bool": self._bool,
            "int": self._int,
            "float": self._float,
            "complex": self._complex,
        }
        return read[spec.kind](obj)

    def _array(self, spec: ArraySpec, obj: Value, donated: bool) -> Value:
        b = self.b
        null = Value("null", POINTER)
        shape = b.module.table(spec.shape, I64) if spec.shape else null
        known = spec.dtype.kind in "biufc"
        # A view is not taken over: whoever has the array behind it gave nothing away.
        flags = _C_CONTIGUOUS | _ALIGNED | (_WRITEABLE | _OWNDATA if donated else 0)
        wanted = [
            obj,
            b.const(I32, len(spec.shape)),
            shape,
            b.const(I8, ord(spec.dtype.kind)),
            b.index(spec.dtype.itemsize),
            b.const(I32, flags),
            null if known else _symbol(_scalar_type_symbol(spec.dtype), b),
        ]
        write = _write_array_check
        if spec.shape or donated or not known:
            data = b.helper("functrans.array", wanted, POINTER, write)
            _require(b, b.icmp("ne", data, null), "mismatch")
            return data
        # A NumPy scalar holds its value right behind the header.
        scalar_type = _symbol(_scalar_type_symbol(spec.dtype), b)
        is_scalar = b.icmp("eq", _field(b, obj, _TYPE_OF, POINTER), scalar_type)
        (data,) = b.choose(
            is_scalar,
            lambda: [b.offset(obj, b.index(_HEADER))],
            lambda: [b.helper("functrans.array", wanted, POINTER, write)],
        )
        _require(b, b.icmp("ne", data, null), "mismatch")
        return data

    def _exactly(self, obj: Value, kind: str) -> None:
        b = self.b
        wanted = _symbol(f"functrans.{kind}", b)
        _require(b, b.icmp("eq", _field(b, obj, _TYPE_OF, POINTER), wanted), "mismatch")

    def _float(self, obj: Value) -> Value:
        b = self.b
        self._exactly(obj, "float")
        slot = b.alloca(F64, align=8)
        b.store(b.call("PyFloat_AsDouble", [obj], F64), slot)
        return slot

    def _complex(self, obj: Value) -> Value:
        b = self.b
        self._exactly(obj, "complex")
        slot = b.alloca(F64, 2, align=16)
        b.store(b.call("PyComplex_RealAsDouble", [obj], F64), slot)
        imaginary = b.call("PyComplex_ImagAsDouble", [obj], F64)
        b.store(imaginary, b.element(slot, b.index(1), F64))
        return slot

    def _bool(self, obj: Value) -> Value:
        b = self.b
        self._exactly(obj, "bool")
        slot = b.alloca(I8, align=8)
        truth = b.icmp("eq", obj, _symbol("functrans.True", b))
        b.store(b.convert("zext", truth, I8), slot)
        return slot

    def _int(self, obj: Value) -> Value:
        b = self.b
        self._exactly(obj, "int")
        slot, overflow = b.alloca(I64, align=8), b.alloca(I32, align=8)
        b.store(b.call("PyLong_AsLongLongAndOverflow", [obj, overflow], I64), slot)
        _require(b, b.icmp("eq", b.load(I32, overflow), b.const(I32, 0)), "mismatch")
        return slot

    def _require_alone(self, source: int, data: Sequence[Value]) -> None:
        """Memory that will be written must not be read through another argument."""
        b, inputs = self.b, self.entry.inputs
        begin = b.convert("ptrtoint", data[source], I64)
        size = inputs[source].size_bytes  # type: ignore[union-attr]  # checked by Entry
        end = b.add(begin, b.index(size))
        for i, spec in enumerate(inputs):
            if i == source or not isinstance(spec, ArraySpec):
                continue
            other = b.convert("ptrtoint", data[i], I64)
            other_end = b.add(other, b.index(spec.size_bytes))
            apart = b.or_(b.icmp("ule", end, other), b.icmp("ule", other_end, begin))
            _require(b, apart, "mismatch")

    # results

    def _allocate(
        self, objects: Sequence[Value], data: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        """Result objects, none yet for NumPy scalars, and the addresses of their memory."""
        b, donated = self.b, self.entry.donated
        results, slots = [], []
        for i, spec in enumerate(self.entry.outputs):
            if i in donated:
                result = objects[donated[i]]
                b.call("Py_IncRef", [result], None)
                slots.append(data[donated[i]])
            elif spec.scalar:
                result = Value("null", POINTER)
                slots.append(b.alloca(I64, -(-spec.dtype.itemsize // 8), align=16))
            else:
                result = self._new_array(spec)
                slots.append(_field(b, result, _DATA, POINTER))
            results.append(result)
            if not spec.scalar:
                self._made(result)
        return results, slots

    def _new_array(self, spec: ArraySpec) -> Value:
        b = self.b
        null = Value("null", POINTER)
        descr = _symbol(_dtype_symbol(spec.dtype), b)
        b.call("Py_IncRef", [descr], None)  # the new array takes it
        shape = b.module.table(spec.shape, I64) if spec.shape else null
        ndim, flags = b.const(I32, len(spec.shape)), b.const(I32, 0)
        array_type = _symbol("PyArray_Type", b)
        operands = [array_type, descr, ndim, shape, null, null, flags, null]
        array = b.call("PyArray_NewFromDescr", operands, POINTER)
        self._require_object(array)
        return array

    def _require_object(self, obj: Value) -> None:
        """Leave with the exception that is set if there is no object."""
        _require(self.b, self.b.icmp("ne", obj, null_pointer()), self._way_out())

    def _made(self, obj: Value) -> None:
        """Have an object released if the call fails from here on."""
        self.undo.append((self.b.label("undo"), obj))

    def _way_out(self) -> str:
        """The block that releases the objects made so far and returns the answer."""
        return self.undo[-1][0] if self.undo else "out"

    def _run(self, pointers: list[Value]) -> Value:
        b, entry = self.b, self.entry
        if not entry.release_gil:
            return _call_program(b, entry, pointers)
        thread = b.call("PyEval_SaveThread", [], POINTER)
        status = _call_program(b, entry, pointers)
        b.call("PyEval_RestoreThread", [thread], None)
        return status

    def _pack(self, results: list[Value], slots: list[Value]) -> Value:
        """The object to return."""
        b, entry = self.b, self.entry
        for i, spec in enumerate(entry.outputs):
            if spec.scalar:
                descr = _symbol(_dtype_symbol(spec.dtype), b)
                operands = [slots[i], descr, Value("null", POINTER)]
                results[i] = b.call("PyArray_Scalar", operands, POINTER)
                self._require_object(results[i])
                self._made(results[i])
        if entry.single:
            return results[0]
        packed = b.call("PyTuple_New", [b.index(len(results))], POINTER)
        self._require_object(packed)
        for i, result in enumerate(results):
            b.call("PyTuple_SetItem", [packed, b.index(i), result], I32)  # takes the reference
        return packed


def _call_program(b: Builder, entry: Entry, pointers: Sequence[Value]) -> Value:
    """Call the program, which is declared unless the module defines it."""
    head = f"define i32 @{entry.program}("
    if any(text.startswith(head) for text in b.module.functions):
        b.module.helpers[f"@{entry.program}"] = True
    if entry.parameters is not None:
        table = b.module.table(entry.parameters, I64) if entry.parameters else null_pointer()
        pointers = [*pointers, table]
    return b.call(entry.program, pointers, I32)


def null_pointer() -> Value:
    """The address of nothing."""
    return Value("null", POINTER)


def _emit_packed(module: Module, entry: Entry) -> None:
    """``i32 @packed(ptr)``: the same program on an array of the addresses of its operands."""
    b = Builder(module, entry.packed, [POINTER], I32)
    count = len(entry.inputs) + len(entry.outputs)
    pointers = [_field(b, b.arguments[0], 8 * i, POINTER) for i in range(count)]
    b.ret(_call_program(b, entry, pointers))
    b.finish()


def emit_entry(module: Module, entry: Entry) -> None:
    """Write the wrapper of a program, and its form for an array of addresses.

    A module of its own, compiled at level 0 and linked against the program's address, compiles in
    0.7 ms, against 5 ms as a part of the program at level 1, and runs as fast; and wrappers for
    several sizes share one program.

    Args:
      module: where the wrapper goes; it may define the program.
      entry: how it is called.
    """
    _Wrapper(module, entry).write()
    _emit_packed(module, entry)


# symbols -------------------------------------------------------------------------------------


@functools.cache
def _interpreter_symbols() -> dict[str, int]:
    """Addresses in CPython and NumPy that every wrapper may use."""
    functions = [
        "Py_IncRef", "Py_DecRef", "PyFloat_AsDouble", "PyComplex_RealAsDouble",
        "PyComplex_ImagAsDouble", "PyLong_AsLongLongAndOverflow", "PyLong_FromLong", "PyTuple_New",
        "PyTuple_SetItem", "PyEval_SaveThread", "PyEval_RestoreThread",
    ]  # fmt: skip
    objects = {"NotImplemented": NotImplemented, "True": True}
    types = {"bool": bool, "int": int, "float": float, "complex": complex}
    table = _numpy_table()
    symbols = {name: _function_address(name) for name in functions}
    symbols |= {f"functrans.{name}": id(obj) for name, obj in (objects | types).items()}
    symbols["PyArray_Type"] = table[_ARRAY_TYPE]
    symbols["PyArray_Scalar"] = table[_ARRAY_SCALAR]
    symbols["PyArray_NewFromDescr"] = table[_NEW_FROM_DESCR]
    return symbols


def _function_address(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


def _numpy_table() -> Any:
    """NumPy's table of functions and types."""
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]  # where C finds it

    get = ctypes.pythonapi["PyCapsule_GetPointer"]  # a function of our own: types are set on it
    get.argtypes, get.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    address = get(_multiarray_umath._ARRAY_API, None)
    return ctypes.cast(address, ctypes.POINTER(ctypes.c_size_t))


def entry_symbols(entry: Entry) -> dict[str, int]:
    """Addresses that the wrapper of an entry refers to, for ``load_object``."""
    symbols = dict(_interpreter_symbols())
    for spec in (*entry.inputs, *entry.outputs):
        if isinstance(spec, ArraySpec):
            symbols[_dtype_symbol(spec.dtype)] = id(spec.dtype)
            symbols[_scalar_type_symbol(spec.dtype)] = id(spec.dtype.type)
    return symbols


# functions -----------------------------------------------------------------------------------


class _MethodDef(ctypes.Structure):
    """``PyMethodDef``: what a builtin function is made of."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Owner:
    """The ``__self__`` of a native function: it keeps alive what the function points into."""

    __slots__ = ("definition", "entry", "loaded", "name")

    def __init__(self, loaded: Loaded, entry: Entry) -> None:
        self.loaded = loaded
        self.entry = entry
        self.name = entry.name.encode()
        address = loaded.address(entry.name)
        self.definition = _MethodDef(self.name, address, _METH_FASTCALL, None)


def make_function(loaded: Loaded, entry: Entry) -> Callable[..., Any]:
    """A Python function of a loaded program.

    Args:
      loaded: the code, loaded with ``entry_symbols(entry)``.
      entry: what was given to ``emit_entry``.

    Returns:
      A function of positional arguments. It returns the result or the tuple of results;
      ``NotImplemented`` if an argument is not what the entry says; or the number, a Python integer,
      with which the program failed. It raises what a program that returns ``INTERRUPTED`` has set;
      one that runs without the GIL must take it for that (``PyGILState_Ensure``).
    """
    if not layout_is_known():
        return _python_function(loaded, entry)
    return _native_function(loaded, entry)


@functools.cache
def _new_function() -> Any:
    """``PyCFunction_NewEx``, as a function of its own: types are set on it."""
    new = ctypes.pythonapi["PyCFunction_NewEx"]
    new.argtypes = [ctypes.POINTER(_MethodDef), ctypes.py_object, ctypes.c_void_p]
    new.restype = ctypes.py_object
    return new


def _native_function(loaded: Loaded, entry: Entry) -> Callable[..., Any]:
    owner = _Owner(loaded, entry)
    function: Callable[..., Any] = _new_function()(ctypes.byref(owner.definition), owner, None)
    return function


# Holds the GIL, and raises what the program has set.
_PACKED_IN_PYTHON = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


def _python_function(loaded: Loaded, entry: Entry) -> Callable[..., Any]:
    """What ``make_function`` returns where the layout of array objects is not known."""
    program = _PACKED_IN_PYTHON(loaded.address(entry.packed))
    donated = entry.donated

    def call(*args: Any) -> Any:
        held = loaded  # the address is valid as long as the code lives
        if len(args) != len(entry.inputs):
            return NotImplemented
        operands = [_operand(s, arg) for s, arg in zip(entry.inputs, args, strict=True)]
        if any(operand is None for operand in operands):
            return NotImplemented
        for source in donated.values():
            others = (a for i, a in enumerate(operands) if i != source)
            flags = args[source].flags
            if not (flags.writeable and flags.owndata) or any(
                np.may_share_memory(args[source], other) for other in others
            ):
                return NotImplemented
        results = [
            args[donated[i]] if i in donated else np.empty(spec.shape, spec.dtype)
            for i, spec in enumerate(entry.outputs)
        ]
        pointers = [array.ctypes.data for array in (*operands, *results)]
        packed = (ctypes.c_void_p * len(pointers))(*pointers)
        status: int = program(ctypes.addressof(packed))
        del held
        if status:
            return status
        values = [
            result[()] if spec.scalar else result
            for result, spec in zip(results, entry.outputs, strict=True)
        ]
        return values[0] if entry.single else tuple(values)

    return call


def _operand(spec: Spec, arg: Any) -> Any:
    """An array that holds an argument, or ``None`` if it is not what the entry says."""
    if isinstance(spec, ArraySpec):
        if not spec.shape and type(arg) is spec.dtype.type:
            return np.asarray(arg)
        fits = (
            type(arg) is np.ndarray
            and arg.shape == spec.shape
            and arg.dtype == spec.dtype
            and arg.flags.c_contiguous
            and arg.flags.aligned
        )
        return arg if fits else None
    if type(arg).__name__ != spec.kind or type(arg) not in (bool, int, float, complex):
        return None
    if spec.kind == "int" and not -(2**63) <= arg < 2**63:
        return None
    return np.asarray(arg, dtype={"int": np.int64}.get(spec.kind))


@functools.cache
def layout_is_known() -> bool:
    """Whether array objects are laid out as the wrapper assumes, compared with Python's view."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    if _numpy_table()[_ARRAY_TYPE] != id(np.ndarray):
        return False
    samples = [
        np.arange(6.0).reshape(2, 3),
        np.arange(24, dtype=np.int16).reshape(2, 3, 4)[:, ::-1],
        np.array(True),
        np.zeros((3, 2), np.complex64, order="F"),
        np.arange(3, dtype=np.dtype(np.float64).newbyteorder()),
        np.array([1.0 + 2.0j]),
    ]
    samples[0].flags.writeable = False
    return all(_reads_right(array) for array in samples) and all(
        _scalar_reads_right(dtype.type(1)) for dtype in map(np.dtype, "?bhilBHILefdFD")
    )


def _at(address: int, type_: Any) -> Any:
    return type_.from_address(address).value


def _reads_right(array: np.ndarray[Any, Any]) -> bool:
    """Whether the fields of an array are where the wrapper reads them."""
    address, descr = id(array), id(array.dtype)
    ndim = _at(address + _NDIM, ctypes.c_int32)
    if (
        ndim != array.ndim
        or _at(address + _TYPE_OF, ctypes.c_void_p) != id(type(array))
        or _at(address + _DESCR, ctypes.c_void_p) != descr
    ):
        return False
    shape = _at(address + _SHAPE, ctypes.c_void_p)
    if ndim and not shape:
        return False
    flags = _at(address + _FLAGS, ctypes.c_int32)
    order = array.dtype.byteorder
    return (
        _at(address + _DATA, ctypes.c_void_p) == array.ctypes.data
        and [_at(shape + 8 * i, ctypes.c_int64) for i in range(ndim)] == list(array.shape)
        and bool(flags & _C_CONTIGUOUS) == array.flags.c_contiguous
        and bool(flags & _ALIGNED) == array.flags.aligned
        and bool(flags & _OWNDATA) == array.flags.owndata
        and bool(flags & _WRITEABLE) == array.flags.writeable
        and _at(descr + _TYPE, ctypes.c_void_p) == id(array.dtype.type)
        and _at(descr + _KIND, ctypes.c_char) == array.dtype.kind.encode()
        and _at(descr + _BYTE_ORDER, ctypes.c_char) == order.encode()
        and _at(descr + _ITEM_SIZE, ctypes.c_int64) == array.dtype.itemsize
    )


def _scalar_reads_right(scalar: np.generic) -> bool:
    """Whether the value of a NumPy scalar lies right behind the header."""
    return ctypes.string_at(id(scalar) + _HEADER, scalar.itemsize) == scalar.tobytes()
