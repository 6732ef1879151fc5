"""Compiled programs as C functions, for numba, SciPy and everything else that calls addresses.

Here: ``CFunction``, which ``jit(f).as_cfunc(*args)`` returns, and the native wrappers behind it.
Not here: how Python calls a program (``compiler.entry``).

A function of numbers that gives one number becomes ``double f(double, ...)``; every other function
becomes ``int32_t f(const double *in0, ..., double *out0, ...)`` on elements in C order, which
returns 0 or the number of an error. Both run without Python, with or without the global lock, in
any thread. Arrays that the function refers to are read where they are, at each call.

The wrappers are a module of their own beside the program's code. An error of a function that
returns a number is kept in a cell of that module, and the result is NaN (0 for integers).

References: SciPy documentation of ``LowLevelCallable`` (signatures of ``quad``, ``nquad`` and
``generic_filter``); Python/C API Reference, "Non-Python created threads".

Layer: ``compiler``.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.compiler.compiled import Compiled, NativeFunction, compiled, native_error
from functrans.compiler.entry import INTERRUPTED, ArraySpec, Entry, ScalarSpec, Spec
from functrans.compiler.inspect import host_call_text
from functrans.compiler.support import HostCall
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Jaxpr
from functrans.emitter.builder import Builder, Module
from functrans.emitter.types import F32, F64, I8, I16, I32, I64, POINTER, Type, Value
from functrans.errors import UnsupportedOperationError
from functrans.machine.engine import compile_object, load_object

_TYPES: dict[str, tuple[Type, Any, str]] = {
    "float64": (F64, ctypes.c_double, "double"),
    "float32": (F32, ctypes.c_float, "float"),
    "int64": (I64, ctypes.c_int64, "int64_t"),
    "int32": (I32, ctypes.c_int32, "int32_t"),
    "int16": (I16, ctypes.c_int16, "int16_t"),
    "int8": (I8, ctypes.c_int8, "int8_t"),
    "uint64": (I64, ctypes.c_uint64, "uint64_t"),
    "uint32": (I32, ctypes.c_uint32, "uint32_t"),
    "uint16": (I16, ctypes.c_uint16, "uint16_t"),
    "uint8": (I8, ctypes.c_uint8, "uint8_t"),
    "bool": (I8, ctypes.c_bool, "bool"),
}
"""Numbers that C functions take and return: in LLVM, ctypes and C."""

_KINDS = {"bool": "bool", "int": "int64", "float": "float64", "complex": "complex128"}
_STATUS = "functrans.status"
# What SciPy asks of functions of numbers, and of functions of the elements around a pixel.
_ONE = "double (double)"
_ONE_DATA = "double (double, void *)"
_MANY = "double (int, double *)"
_MANY_DATA = "double (int, double *, void *)"
_FILTER = "int (double *, npy_intp, double *, void *)"
_FILTER_INTPTR = "int (double *, intptr_t, double *, void *)"


class CFunction:
    """A compiled function with a C interface; made by ``jit(f).as_cfunc(*args)``.

    It can be called from Python, from ``@numba.njit`` code (``.ctypes``), from SciPy's compiled
    routines (``.low_level_callable()``) and from anything else that calls an address. The code
    lives as long as this object, its ``.ctypes`` or a ``LowLevelCallable`` made of it; whoever
    keeps ``.address`` alone must keep one of these as well.

    Attributes:
      native_name: its symbol.
      signature: its declaration in C.
      is_scalar: whether it takes and returns numbers; otherwise it takes addresses, first of all
        arguments, then of all results, and returns 0 or the number of an error.

    Example:
      >>> import numpy as np
      >>> import functrans as ft
      >>> rosenbrock = ft.jit(lambda x, y: (1 - x) ** 2 + 100 * (y - x * x) ** 2)
      >>> f = rosenbrock.as_cfunc(1.0, 1.0)
      >>> f.signature
      'double ft_lambda(double, double)'
      >>> f.ctypes(0.0, 2.0)
      401.0
      >>> outer = ft.jit(lambda x, y: np.outer(x, y)).as_cfunc(np.ones(2), np.ones(3))
      >>> outer.signature
      'int32_t ft_lambda(const double *x, const double *y, double *out0)'
      >>> outer(np.array([1.0, 2.0]), np.arange(3.0))
      array([[0., 1., 2.],
             [0., 2., 4.]])
    """

    def __init__(self, jaxpr: Jaxpr, captured: Sequence[Any], name: str) -> None:
        program = compiled(jaxpr)
        self._function = _whole(program, name)
        self._prepared = program.prepared
        entry = self._function.entry
        # The prefix keeps it apart from the functions that it calls.
        self.native_name = "ft_" + (re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "f")
        fixed = [*program.prepared.consts, *captured]
        self._fixed = [
            _in_memory(value, spec) for value, spec in zip(fixed, entry.inputs, strict=False)
        ]
        self._inputs = entry.inputs[len(fixed) :]
        self._outputs = entry.outputs
        self._avals = jaxpr.out_avals
        names = [_identifier(path) for path in jaxpr.arg_names[len(captured) :]]
        unique = len(set(names)) == len(names) == len(self._inputs) and all(names)
        self._names = names if unique else [f"in{i}" for i in range(len(self._inputs))]
        self.is_scalar = len(self._outputs) == 1 and all(
            _is_number(spec) for spec in (*self._inputs, *self._outputs)
        )
        module = Module()
        _Wrappers(module, self.native_name, entry, len(fixed), self._inputs, self.is_scalar).write()
        symbols = {entry.program: self._function.program.address("program")}
        symbols |= {f"functrans.fixed{i}": array.ctypes.data for i, array in enumerate(self._fixed)}
        symbols |= _gil_functions()
        self._loaded = load_object(
            compile_object(str(module), 1), symbols, uses=(self._function.program,)
        )
        self._status = ctypes.c_int32.from_address(self._loaded.address(_STATUS))
        self.signature = self._declaration()

    # as a function ---------------------------------------------------------------------------

    @property
    def address(self) -> int:
        """Where the code is, valid as long as this object lives."""
        return self._loaded.address(self.native_name)

    @property
    def ctypes(self) -> Any:
        """The function for ``ctypes``; numba takes it in ``@numba.njit`` code as well.

        Of numbers it is called with numbers. Of arrays it is called with addresses: with
        ``x.ctypes`` in numba, with ``x.ctypes.data_as(ctypes.POINTER(ctypes.c_double))`` elsewhere.
        """
        if self.is_scalar:
            result = _TYPES[_dtype_name(self._outputs[0])][1]
            arguments = [_TYPES[_dtype_name(spec)][1] for spec in self._inputs]
        else:
            result = ctypes.c_int32
            arguments = [_pointer_type(spec) for spec in (*self._inputs, *self._outputs)]
        return self._foreign(self.address, result, arguments)

    def _foreign(self, address: int, result: Any, arguments: Sequence[Any]) -> Any:
        """A ctypes function that keeps the code alive."""
        function: Any = ctypes.CFUNCTYPE(result, *arguments)(address)
        function.functrans_owner = self
        return function

    def __call__(self, *args: object) -> Any:
        """Call the function on numbers, or on arrays of the right shapes and dtypes.

        Returns:
          A number, or an array or tuple of arrays: the leaves of the result.

        Raises:
          TypeError: another number of arguments, or other shapes.
        """
        if len(args) != len(self._inputs):
            raise TypeError(f"{self.native_name}: {len(args)} arguments for {self.signature}")
        if self.is_scalar:
            value = self.ctypes(*args)
            self.check()
            return value
        given = [
            _checked(self.native_name, name, arg, spec)
            for name, arg, spec in zip(self._names, args, self._inputs, strict=True)
        ]
        results = [np.empty(spec.shape, spec.dtype) for spec in self._outputs]
        pointers = [
            array.ctypes.data_as(_pointer_type(spec))
            for array, spec in zip((*given, *results), (*self._inputs, *self._outputs), strict=True)
        ]
        status = self.ctypes(*pointers)
        if status:
            raise self._error(status)
        return results[0] if len(results) == 1 else tuple(results)

    def low_level_callable(self, signature: str | None = None, user_data: Any = None) -> Any:
        """The function as SciPy's compiled routines call it.

        Args:
          signature: one of ``"double (double)"``, ``"double (double, void *)"``, ``"double (int,
            double *)"`` and ``"double (int, double *, void *)"`` for functions of floats (``quad``,
            ``nquad``), or ``"int (double *, npy_intp, double *, void *)"`` for a function of one
            ``f64[n]`` that gives a float (``scipy.ndimage.generic_filter``). If it is not given,
            the first that fits.
          user_data: accepted by SciPy for the signatures with ``void *``; the function ignores it.

        Returns:
          A ``scipy.LowLevelCallable``.

        Raises:
          TypeError: the function has no such form.
        """
        from scipy import LowLevelCallable

        forms = self._forms()
        signature = next(iter(forms), None) if signature is None else signature
        if signature not in forms:
            raise TypeError(
                f"{self.signature} has no form {signature!r}; "
                f"it has {', '.join(map(repr, forms)) or 'none that SciPy calls'}"
            )
        suffix, result, arguments = forms[signature]
        address = self._loaded.address(f"{self.native_name}{suffix}")
        function = self._foreign(address, result, arguments)
        data = None if user_data is None else ctypes.cast(user_data, ctypes.c_void_p)
        return LowLevelCallable(function, data, signature)

    def _forms(self) -> dict[str, tuple[str, Any, tuple[Any, ...]]]:
        """Signatures that the function has: suffix of the symbol, result, arguments."""
        number, many = ctypes.c_double, ctypes.POINTER(ctypes.c_double)
        size, data = ctypes.c_ssize_t, ctypes.c_void_p
        forms: dict[str, tuple[str, Any, tuple[Any, ...]]] = {}
        if _is_filter(self._inputs, self._outputs):
            arguments = (many, size, many, data)
            return dict.fromkeys((_FILTER, _FILTER_INTPTR), (".filter", ctypes.c_int, arguments))
        if not self.is_scalar or any(
            _dtype_name(spec) != "float64" for spec in (*self._inputs, *self._outputs)
        ):
            return forms
        if len(self._inputs) == 1:
            forms[_ONE] = ("", number, (number,))
            forms[_ONE_DATA] = (".data", number, (number, data))
        forms[_MANY] = (".many", number, (ctypes.c_int, many))
        forms[_MANY_DATA] = (".many_data", number, (ctypes.c_int, many, data))
        return forms

    # errors ----------------------------------------------------------------------------------

    @property
    def status(self) -> int:
        """Number of the latest error of any call, in any thread, since the last ``check()``; or 0.

        Functions of numbers return NaN then (0 for integers). Functions of arrays return it.
        """
        return self._status.value

    def check(self) -> None:
        """Raise the exception that ``status`` stands for, if it is not 0, and set it to 0."""
        status, self._status.value = self._status.value, 0
        if status:
            raise self._error(status)

    def _error(self, status: int) -> BaseException:
        if status == INTERRUPTED:
            return KeyboardInterrupt(f"{self.native_name} was interrupted")
        return native_error(self._function.part.jaxpr, status)

    # text ------------------------------------------------------------------------------------

    def _declaration(self) -> str:
        if self.is_scalar:
            names = [_TYPES[_dtype_name(spec)][2] for spec in self._inputs]
            result = _TYPES[_dtype_name(self._outputs[0])][2]
            return f"{result} {self.native_name}({', '.join(names) or 'void'})"
        parameters = [
            f"const {_c_name(spec)} *{name}"
            for name, spec in zip(self._names, self._inputs, strict=True)
        ]
        parameters += [f"{_c_name(spec)} *out{i}" for i, spec in enumerate(self._outputs)]
        return f"int32_t {self.native_name}({', '.join(parameters)})"

    def __repr__(self) -> str:
        """``<C function double f(double)>``."""
        return f"<C function {self.signature}>"


# arguments ---------------------------------------------------------------------------------------


def _whole(program: Compiled, name: str) -> NativeFunction:
    """The function that is the whole program."""
    calls = [host_call_text(part) for part in program.parts if isinstance(part, HostCall)]
    if calls or not isinstance(program.parts[0], NativeFunction):
        raise UnsupportedOperationError(
            f"as_cfunc: {name} is not native as a whole, and C code cannot call NumPy: "
            f"{'; '.join(calls)}"
        )
    return program.parts[0]


def _in_memory(value: object, spec: Spec) -> np.ndarray:
    """An array with the elements of a constant, the constant itself if it is laid out so."""
    if isinstance(spec, ScalarSpec):
        return np.asarray(value, _KINDS[spec.kind])
    array = np.asarray(value)
    is_plain = array.dtype == spec.dtype and array.flags.c_contiguous and array.flags.aligned
    return array if is_plain else np.array(array, spec.dtype, order="C")


def _dtype_name(spec: Spec) -> str:
    return _KINDS[spec.kind] if isinstance(spec, ScalarSpec) else spec.dtype.name


def _is_number(spec: Spec) -> bool:
    """Whether C passes it as a number."""
    shape = () if isinstance(spec, ScalarSpec) else spec.shape
    return not shape and _dtype_name(spec) in _TYPES


def _is_filter(inputs: Sequence[Spec], outputs: Sequence[ArraySpec]) -> bool:
    """Whether a function takes a vector of floats and gives a float."""
    if len(inputs) != 1 or len(outputs) != 1:
        return False
    (given,), (result,) = inputs, outputs
    if not isinstance(given, ArraySpec):
        return False
    return len(given.shape) == 1 and given.dtype == result.dtype == np.float64 and not result.shape


def _pointer_type(spec: Spec) -> Any:
    known = _TYPES.get(_dtype_name(spec))
    return ctypes.c_void_p if known is None else ctypes.POINTER(known[1])


def _c_name(spec: Spec) -> str:
    name = _dtype_name(spec)
    complex_names = {"complex128": "double _Complex", "complex64": "float _Complex"}
    return _TYPES[name][2] if name in _TYPES else complex_names.get(name, "void")


def _identifier(path: str) -> str:
    name = re.sub(r"\W+", "_", path, flags=re.ASCII).strip("_")
    return name if name.isidentifier() else ""


def _checked(label: str, name: str, arg: object, spec: Spec) -> np.ndarray:
    """An argument as an array that C code reads."""
    dtype = np.dtype(_dtype_name(spec))
    shape = () if isinstance(spec, ScalarSpec) else spec.shape
    array = np.asarray(arg)
    if array.shape != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
        expected, received = ShapedArray(shape, dtype), ShapedArray(array.shape, array.dtype)
        raise TypeError(f"{label}: {name} is {received}, expected {expected}")
    return np.require(array, dtype, ["C", "A"])


def _gil_functions() -> dict[str, int]:
    """Addresses of what a wrapper needs of Python after an interrupt."""
    names = ("PyGILState_Ensure", "PyGILState_Release", "PyErr_Clear", "PyErr_SetInterrupt")
    return {
        name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0
        for name in names
    }


# code --------------------------------------------------------------------------------------------


def _is_narrow(type_: Type) -> bool:
    """Whether a result fills less than 32 bits: callers on macOS expect it extended to these."""
    return type_.kind == "i" and type_.bits < 32


class _Wrappers:
    """Writes the functions with C interfaces that call a program."""

    def __init__(
        self,
        module: Module,
        name: str,
        entry: Entry,
        n_fixed: int,
        inputs: Sequence[Spec],
        is_scalar: bool,
    ) -> None:
        self.module = module
        self.name = name
        self.entry = entry
        self.n_fixed = n_fixed
        self.inputs = inputs
        self.outputs = entry.outputs
        self.is_scalar = is_scalar

    def write(self) -> None:
        """All forms that the function has."""
        self.module.globals[f"@{_STATUS}"] = f"@{_STATUS} = global i32 0, align 4"
        if not self.is_scalar:
            self._on_addresses()
            if _is_filter(self.inputs, self.outputs):
                self._filter()
            return
        types = [_TYPES[_dtype_name(spec)][0] for spec in self.inputs]
        self._on_numbers("", types)
        if all(_dtype_name(spec) == "float64" for spec in (*self.inputs, *self.outputs)):
            if len(types) == 1:
                self._on_numbers(".data", [*types, POINTER])
            self._many(".many", [I32, POINTER])
            self._many(".many_data", [I32, POINTER, POINTER])

    def _call(self, b: Builder, pointers: Sequence[Value]) -> Value:
        """The status of the program, called on addresses."""
        fixed = []
        for i in range(self.n_fixed):
            name = f"@functrans.fixed{i}"
            self.module.globals.setdefault(name, f"{name} = external global i8")
            fixed.append(Value(name, POINTER))
        operands = [*fixed, *pointers]
        if self.entry.parameters is not None:
            null = Value("null", POINTER)
            table = self.entry.parameters
            operands.append(self.module.table(table, I64) if table else null)
        status = b.call(self.entry.program, operands, I32)
        with b.when(b.icmp("ne", status, b.const(I32, 0)), "failed"):
            b.statement(f"store atomic i32 {status.text}, ptr @{_STATUS} monotonic, align 4")
            interrupted = b.icmp("eq", status, b.const(I32, INTERRUPTED))
            with b.when(interrupted, "interrupted"):
                self._interrupt(b)
        return status

    def _interrupt(self, b: Builder) -> None:
        """Let Python raise KeyboardInterrupt as soon as it runs: C code cannot raise it."""
        state = b.call("PyGILState_Ensure", (), I32)
        b.call("PyErr_Clear", (), None)
        b.call("PyErr_SetInterrupt", (), None)
        b.call("PyGILState_Release", (state,), None)

    def _number_or_nan(self, b: Builder, status: Value, slot: Value) -> None:
        type_ = _TYPES[_dtype_name(self.outputs[0])][0]
        result = b.load(type_, slot)
        wrong = b.const(type_, float("nan") if type_.kind == "f" else 0)
        result = b.select(b.icmp("eq", status, b.const(I32, 0)), result, wrong)
        signed = _dtype_name(self.outputs[0]).startswith("int")
        b.ret(b.convert("sext" if signed else "zext", result, I32) if _is_narrow(type_) else result)

    def _result_slot(self, b: Builder) -> Value:
        """Memory for the result, with something in it for LLVM to read after an error."""
        type_ = _TYPES[_dtype_name(self.outputs[0])][0]
        slot = b.alloca(type_, align=16)
        b.store(b.const(type_, 0), slot)
        return slot

    def _on_numbers(self, suffix: str, parameters: Sequence[Type]) -> None:
        """``double f(double, ...)``; a pointer at the end is not looked at."""
        result = _TYPES[_dtype_name(self.outputs[0])][0]
        result = I32 if _is_narrow(result) else result
        b = Builder(self.module, f'"{self.name}{suffix}"', list(parameters), result)
        slots = []
        for argument, _ in zip(b.arguments, self.inputs, strict=False):
            slot = b.alloca(argument.type, align=16)
            b.store(argument, slot)
            slots.append(slot)
        out = self._result_slot(b)
        status = self._call(b, [*slots, out])
        self._number_or_nan(b, status, out)
        b.finish()

    def _many(self, suffix: str, parameters: Sequence[Type]) -> None:
        """``double f(int n, double *x)``: NaN unless there are as many numbers as arguments."""
        b = Builder(self.module, f'"{self.name}{suffix}"', list(parameters), F64)
        count, numbers = b.arguments[:2]
        wanted = b.const(I32, len(self.inputs))
        fits, other = b.label("fits"), b.label("other")
        b.branch_if(b.icmp("eq", count, wanted), fits, other)
        b.start(fits)
        out = self._result_slot(b)
        slots = [b.offset(numbers, b.index(8 * i)) for i in range(len(self.inputs))]
        status = self._call(b, [*slots, out])
        self._number_or_nan(b, status, out)
        b.start(other)
        b.ret(b.const(F64, float("nan")))
        b.finish()

    def _on_addresses(self) -> None:
        """``int32_t f(const double *in0, ..., double *out0, ...)``."""
        count = len(self.inputs) + len(self.outputs)
        b = Builder(self.module, f'"{self.name}"', [POINTER] * count, I32)
        b.ret(self._call(b, b.arguments))
        b.finish()

    def _filter(self) -> None:
        """``int f(double *x, npy_intp n, double *result, void *)``: 1 if it went well."""
        (given,) = self.inputs
        assert isinstance(given, ArraySpec)
        parameters = [POINTER, I64, POINTER, POINTER]
        b = Builder(self.module, f'"{self.name}.filter"', parameters, I32)
        numbers, size, result, _ = b.arguments
        fits, other = b.label("fits"), b.label("other")
        b.branch_if(b.icmp("eq", size, b.index(given.shape[0])), fits, other)
        b.start(fits)
        status = self._call(b, [numbers, result])
        b.ret(b.convert("zext", b.icmp("eq", status, b.const(I32, 0)), I32))
        b.start(other)
        b.ret(b.const(I32, 0))
        b.finish()
