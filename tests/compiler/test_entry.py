"""Calls of native programs: what fits, what does not, results, references, memory."""

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from functrans.compiler import entry as entry_module
from functrans.compiler.entry import (
    ArraySpec,
    Entry,
    ScalarSpec,
    emit_entry,
    entry_symbols,
    layout_is_known,
    make_function,
)
from functrans.emitter.builder import Builder, Module
from functrans.emitter.types import I8, I32, POINTER
from functrans.machine.engine import Loaded, compile_object, load_object

ROOT = Path(__file__).parent.parent.parent
F8 = np.dtype("f8")
DTYPES = [np.dtype(c) for c in "?bhilBHILefdFD"]
MAKERS = pytest.mark.parametrize(
    "make", [entry_module._native_function, entry_module._python_function], ids=["native", "python"]
)
Make = Callable[..., Callable[..., Any]]


def copying_program(entry: Entry, status: int = 0) -> Module:
    """Copies the bytes of input ``i`` to output ``i``, then returns a status."""
    module = Module()
    b = Builder(module, entry.program, [POINTER] * (len(entry.inputs) + len(entry.outputs)), I32)
    for i, spec in enumerate(entry.outputs):
        source, goal = b.arguments[i], b.arguments[len(entry.inputs) + i]
        with b.loop(b.index(0), b.index(spec.size_bytes)) as k:
            b.store(b.load(I8, b.element(source, k, I8)), b.element(goal, k, I8))
    b.ret(b.const(I32, status))
    b.finish()
    return module


def build(make: Make, inputs: Any, outputs: Any, status: int = 0, **options: Any) -> Any:
    entry = Entry("entry", "program", tuple(inputs), tuple(outputs), **options)
    wrapper = Module()
    emit_entry(wrapper, entry)
    return make(linked(str(copying_program(entry, status)), wrapper, entry_symbols(entry)), entry)


def linked(program: str, wrapper: Module, symbols: Mapping[str, int]) -> Loaded:
    loaded = load_object(compile_object(program, 1), symbols)
    return load_object(
        compile_object(str(wrapper), 0), {**symbols, **loaded.addresses}, uses=(loaded,)
    )


def copy(make: Make, spec: ArraySpec, **options: Any) -> Any:
    return build(make, [spec], [spec], single=True, **options)


def test_the_layout_of_arrays_is_known() -> None:
    assert layout_is_known()


def test_the_wrapper_may_be_in_the_programs_module() -> None:
    entry = Entry("entry", "program", (ArraySpec((2,), F8),), (ArraySpec((2,), F8),))
    module = copying_program(entry)
    emit_entry(module, entry)
    for level in range(4):
        loaded = load_object(compile_object(str(module), level), entry_symbols(entry))
        (result,) = make_function(loaded, entry)(np.array([1.0, 2.0]))
        np.testing.assert_array_equal(result, [1.0, 2.0])


@MAKERS
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3), (1, 2, 1, 2)], ids=str)
def test_arrays_go_in_and_come_out(make: Make, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    f = copy(make, ArraySpec(shape, dtype))
    x = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    result = f(x)
    assert type(result) is np.ndarray
    assert result.dtype == dtype
    assert result.shape == shape
    assert result.flags.c_contiguous
    assert result.flags.writeable
    assert result.flags.owndata
    assert not np.shares_memory(result, x)
    np.testing.assert_array_equal(result, x)


@MAKERS
def test_dtypes_of_other_libraries_go_in_and_come_out(make: Make) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    dtype = np.dtype(ml_dtypes.bfloat16)
    f = copy(make, ArraySpec((3,), dtype))
    x = np.array([1.0, 2.0, 3.0], dtype)
    assert f(x).dtype == dtype
    np.testing.assert_array_equal(f(x), x)
    assert f(x.view(np.uint16)) is NotImplemented
    assert f(x.astype(np.float16)) is NotImplemented
    assert f(x.view("V2")) is NotImplemented


class Subclass(np.ndarray):
    pass


BASE = np.arange(6.0).reshape(2, 3)
MISALIGNED = np.frombuffer(b"\0" * 49, np.uint8)[1:].view(F8).reshape(2, 3)
UNFIT = {
    "shape": np.zeros((3, 2)),
    "fewer axes": np.zeros(6),
    "more axes": np.zeros((1, 2, 3)),
    "longer": np.zeros((2, 4)),
    "f4": np.zeros((2, 3), "f4"),
    "i8": np.zeros((2, 3), "i8"),
    "u8": np.zeros((2, 3), "u8"),
    "c8": np.zeros((2, 3), "c8"),
    "datetime": np.zeros((2, 3), "M8[s]"),
    "object": np.zeros((2, 3), object),
    "void": np.zeros((2, 3), "V8"),
    "structured": np.zeros((2, 3), [("a", "f8")]),
    "byte order": BASE.astype(F8.newbyteorder()),
    "strided": np.zeros((2, 6))[:, ::2],
    "negative": np.zeros((2, 3))[::-1],
    "transposed": np.zeros((3, 2)).T,
    "Fortran": np.zeros((2, 3), order="F"),
    "broadcast": np.broadcast_to(np.zeros(3), (2, 3)),
    "misaligned": MISALIGNED,
    "subclass": np.zeros((2, 3)).view(Subclass),
    "masked": np.ma.zeros((2, 3)),
    "list": BASE.tolist(),
    "number": 1.0,
    "none": None,
    "type": np.ndarray,
}


@MAKERS
@pytest.mark.parametrize("name", UNFIT)
def test_what_does_not_fit_is_not_implemented(make: Make, name: str) -> None:
    f = copy(make, ArraySpec((2, 3), F8))
    assert f(UNFIT[name]) is NotImplemented
    np.testing.assert_array_equal(f(BASE), BASE)


@MAKERS
def test_what_reads_the_same_fits(make: Make) -> None:
    f = copy(make, ArraySpec((2, 3), F8))
    read_only = BASE.copy()
    read_only.flags.writeable = False
    for x in (read_only, np.zeros((2, 9))[:, :9].reshape(6, 3)[2:4], BASE.astype("<f8")):
        np.testing.assert_array_equal(f(x), x)
    # An extent of one has no stride.
    one = np.zeros((5, 1, 3))[::2][1:2]
    g = copy(make, ArraySpec((1, 1, 3), F8))
    np.testing.assert_array_equal(g(one), one)
    long = copy(make, ArraySpec((3,), np.dtype("q")))
    for code in "lq":
        x = np.arange(3).astype(code)
        if x.itemsize == 8:
            np.testing.assert_array_equal(long(x), x)


@MAKERS
def test_the_number_of_arguments_is_checked(make: Make) -> None:
    f = copy(make, ArraySpec((3,), F8))
    x = np.zeros(3)
    assert f() is NotImplemented
    assert f(x, x) is NotImplemented


@MAKERS
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numpy_scalars_go_in_and_come_out(make: Make, dtype: np.dtype) -> None:
    f = copy(make, ArraySpec((), dtype, scalar=True))
    for x in (dtype.type(1), np.array(1, dtype)):
        result = f(x)
        assert type(result) is dtype.type
        assert result == 1
    for x in (1, 1.0, True, 1j):
        if type(x) is not dtype.type:
            assert f(x) is NotImplemented
    other = np.float32 if dtype != np.float32 else np.float64
    assert f(other(1)) is NotImplemented
    assert f(np.array([1], dtype)) is NotImplemented


@MAKERS
@pytest.mark.parametrize(
    ("kind", "dtype", "fit", "unfit"),
    [
        ("float", "f8", [0.1, -0.0, float("inf")], [1, True, 1j, np.float64(1.0), "1"]),
        ("int", "i8", [0, -1, 2**63 - 1, -(2**63)], [2**63, -(2**63) - 1, 10**30, True, 1.0]),
        ("bool", "?", [True, False], [0, 1, 1.0, np.True_, None]),
        ("complex", "c16", [1 + 2j, complex(-0.0, float("inf"))], [1.0, 1, np.complex128(1)]),
    ],
)
def test_python_numbers_go_in(
    make: Make, kind: str, dtype: str, fit: list[Any], unfit: list[Any]
) -> None:
    f = build(make, [ScalarSpec(kind)], [ArraySpec((), np.dtype(dtype), scalar=True)], single=True)
    for x in fit:
        assert np.array(f(x)).tobytes() == np.array(x, dtype).tobytes()
    for x in unfit:
        assert f(x) is NotImplemented


@MAKERS
def test_several_results_are_a_tuple(make: Make) -> None:
    specs = [ArraySpec((2,), F8), ArraySpec((), F8, scalar=True), ArraySpec((3,), np.dtype("i4"))]
    f = build(make, specs, specs)
    a, b, c = f(np.ones(2), np.float64(5.0), np.arange(3, dtype="i4"))
    np.testing.assert_array_equal(a, np.ones(2))
    assert type(b) is np.float64
    assert b == 5.0
    np.testing.assert_array_equal(c, np.arange(3))
    assert build(make, [], [])() == ()
    assert build(make, specs[:1], specs[:1])(np.ones(2))[0].shape == (2,)


@MAKERS
@pytest.mark.parametrize("status", [1, 2, 4, 7, -3])
def test_a_failing_program_returns_its_number(make: Make, status: int) -> None:
    specs = [ArraySpec((1000,), F8), ArraySpec((), F8, scalar=True)]
    f = build(make, specs, specs, status=status)
    for _ in range(3):
        result = f(np.ones(1000), np.float64(5.0))
        assert type(result) is int
        assert result == status


@MAKERS
@pytest.mark.parametrize("release_gil", [False, True])
def test_an_exception_that_the_program_has_set_is_raised(make: Make, release_gil: bool) -> None:
    spec = ArraySpec((1000,), F8)
    entry = Entry("entry", "program", (), (spec, spec), release_gil=release_gil)
    text = f"""
    @type = external global i8
    declare i32 @PyGILState_Ensure()
    declare void @PyGILState_Release(i32)
    declare void @PyErr_SetNone(ptr)
    define i32 @program(ptr %x, ptr %y) {{
      %state = call i32 @PyGILState_Ensure()
      call void @PyErr_SetNone(ptr @type)
      call void @PyGILState_Release(i32 %state)
      ret i32 {entry_module.INTERRUPTED}
    }}
    """
    wrapper = Module()
    emit_entry(wrapper, entry)
    symbols = entry_symbols(entry) | {"type": id(KeyboardInterrupt)}
    f = make(linked(text, wrapper, symbols), entry)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            f()


@MAKERS
def test_a_donated_input_is_the_result(make: Make) -> None:
    spec = ArraySpec((4,), F8)
    f = build(make, [spec, spec], [spec, spec], donated={1: 0})
    x, y = np.arange(4.0), np.ones(4)
    first, second = f(x, y)
    assert second is x
    np.testing.assert_array_equal(first, np.arange(4.0))
    np.testing.assert_array_equal(x, y)


@MAKERS
def test_a_donated_input_must_be_writeable_and_alone_and_no_view(make: Make) -> None:
    spec = ArraySpec((4,), F8)
    f = build(make, [spec, spec], [spec], single=True, donated={0: 0})
    memory, x = np.zeros(10), np.zeros(4)
    assert f(x, memory[4:8]) is x
    assert f(x, x) is NotImplemented
    assert f(x, x[:]) is NotImplemented
    assert f(memory[3:7], x) is NotImplemented
    x.flags.writeable = False
    assert f(x, memory[4:8]) is NotImplemented


@pytest.mark.parametrize(
    "wrong",
    [
        {"single": True, "outputs": 2},
        {"donated": {0: 1}},
        {"donated": {0: 2}},
        {"donated": {0: 0, 1: 0}, "outputs": 2},
    ],
)
def test_entries_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    spec = ArraySpec((4,), F8)
    outputs = (spec,) * wrong.pop("outputs", 1)
    inputs = (spec, ArraySpec((3,), F8), ScalarSpec("float"))
    with pytest.raises(ValueError, match=r"."):
        Entry("entry", "program", inputs, outputs, **wrong)
    with pytest.raises(ValueError, match="quaternion"):
        ScalarSpec("quaternion")
    with pytest.raises(ValueError, match="no scalar"):
        ArraySpec((1,), F8, scalar=True)


def test_the_packed_form_takes_addresses() -> None:
    spec = ArraySpec((4,), F8)
    entry = Entry("entry", "program", (spec,) * 40, (spec,) * 40)
    module = copying_program(entry)
    emit_entry(module, entry)
    loaded = load_object(compile_object(str(module), 0), entry_symbols(entry))
    arrays = [np.full(4, float(i)) for i in range(40)] + [np.empty(4) for _ in range(40)]
    addresses = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    packed = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(loaded.address(entry.packed))
    assert packed(ctypes.addressof(addresses)) == 0
    np.testing.assert_array_equal(arrays[:40], arrays[40:])
    results = make_function(loaded, entry)(*arrays[:40])
    np.testing.assert_array_equal(results, arrays[:40])


def test_the_function_keeps_its_code_alive() -> None:
    f = copy(make_function, ArraySpec((3,), F8))
    assert type(f) is type(len)
    for _ in range(20):
        copy(make_function, ArraySpec((3,), F8))
    np.testing.assert_array_equal(f(np.ones(3)), np.ones(3))


def test_other_threads_run_while_the_gil_is_released() -> None:
    """A program that waits for another Python thread to write to its input."""
    entry = Entry("entry", "program", (ArraySpec((1,), np.dtype("i8")),), (), release_gil=True)
    text = """
    define i32 @program(ptr %x) {
    entry:
      br label %wait
    wait:
      %v = load atomic i64, ptr %x monotonic, align 8
      %c = icmp eq i64 %v, 0
      br i1 %c, label %wait, label %done
    done:
      %s = trunc i64 %v to i32
      ret i32 %s
    }
    """
    wrapper = Module()
    emit_entry(wrapper, entry)
    f = make_function(linked(text, wrapper, entry_symbols(entry)), entry)
    x = np.zeros(1, "i8")
    timer = threading.Timer(0.05, lambda: x.fill(9))
    timer.start()
    assert f(x) == 9
    timer.join()


def test_reference_counts_do_not_change() -> None:
    arrays = [ArraySpec((3,), F8), ArraySpec((2,), np.dtype("i4"))]
    inputs = [*arrays, ScalarSpec("float"), ScalarSpec("int"), ScalarSpec("bool")]
    outputs = [ArraySpec((3,), F8), ArraySpec((), F8, scalar=True)]
    functions = [
        build(make_function, inputs, outputs, status=status, **options)
        for status in (0, 1)
        for options in ({}, {"donated": {0: 0}}, {"release_gil": True})
    ]
    given = [np.ones(3), np.ones(2, "i4"), 2.5, 12345678901234, True]
    refused = [*given[:4], 1]
    watched = [*given, np.dtype("f8"), np.dtype("i4"), None, NotImplemented, np.float64, np.ndarray]
    before = [sys.getrefcount(obj) for obj in watched]
    for _ in range(100_000 // len(functions)):
        for f in functions:
            f(*given)
            f(*refused)
    after = [sys.getrefcount(obj) for obj in watched]
    assert np.abs(np.subtract(after, before)).max() < 20


MEMORY = """
import numpy as np
from tests.compiler.test_entry import *
f8 = np.dtype("f8")
spec, number = ArraySpec((100,), f8), ArraySpec((), f8, scalar=True)
functions = [
    build(make_function, [spec, number], [spec, number], status=status, release_gil=gil)
    for status in (0, 4) for gil in (False, True)
]
x, y = np.ones(100), np.float64(2.0)
def resident_bytes():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
def calls(n):
    for _ in range(n):
        for f in functions:
            f(x, y)
            f(y, x)
calls(5000)
before = resident_bytes()
calls(25_000)
print((resident_bytes() - before) / 100_000)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_calls_do_not_take_memory() -> None:
    out = subprocess.run(
        [sys.executable, "-c", MEMORY],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=300,
    ).stdout
    assert float(out) < 1.0


def test_a_failed_allocation_is_a_memory_error() -> None:
    small, huge = ArraySpec((2,), F8), ArraySpec((2**57,), F8)
    f = build(make_function, [small, small], [small, huge])
    x = np.ones(2)
    before = sys.getrefcount(np.dtype("f8"))
    for _ in range(50):
        with pytest.raises(MemoryError):
            f(x, x)
    assert abs(sys.getrefcount(np.dtype("f8")) - before) < 10


def test_wrappers_grow_with_the_number_of_results_alone() -> None:
    def lines(count: int) -> int:
        module = Module()
        emit_entry(module, Entry("entry", "program", (), (ArraySpec((2,), F8),) * count))
        return str(module).count("\n")

    assert lines(60) - lines(40) == lines(40) - lines(20) > 0


def test_object_code_names_no_address_of_this_process() -> None:
    entry = Entry("entry", "program", (ArraySpec((3,), F8),), (ArraySpec((3,), F8),))
    wrapper = Module()
    emit_entry(wrapper, entry)
    code = compile_object(str(wrapper), 0)
    for address in entry_symbols(entry).values():
        assert address.to_bytes(8, "little") not in code


def test_where_the_layout_is_unknown_a_python_function_does_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(entry_module, "layout_is_known", lambda: False)
    f = copy(make_function, ArraySpec((3,), F8))
    assert type(f) is not type(len)
    np.testing.assert_array_equal(f(np.ones(3)), np.ones(3))


@pytest.mark.parametrize("field", ["_DATA", "_NDIM", "_SHAPE", "_DESCR", "_FLAGS", "_ITEM_SIZE"])
def test_the_self_test_sees_another_layout(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = np.zeros((2, 3), complex)
    assert entry_module._reads_right(sample)
    # Another field of the same object that holds something else: the strides, or the item size's
    # neighbour, or half of an address.
    other = {"_ITEM_SIZE": 32, "_FLAGS": 0}.get(field, 24)
    monkeypatch.setattr(entry_module, field, entry_module._HEADER + other)
    assert not entry_module._reads_right(sample)
