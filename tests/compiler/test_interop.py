"""Compiled functions called from C, numba and SciPy."""

import ctypes
import gc
import threading
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
from functrans import lax
from functrans.compiler.interop import CFunction
from functrans.errors import UnsupportedOperationError

pytest.importorskip("llvmlite")


def rosenbrock(x: Any, y: Any) -> Any:
    return (1.0 - x) ** 2 + 100.0 * (y - x * x) ** 2


def test_functions_of_numbers() -> None:
    f = ft.jit(rosenbrock).as_cfunc(0.0, 0.0)
    assert isinstance(f, CFunction)
    assert f.is_scalar
    assert f.signature == "double ft_rosenbrock(double, double)"
    assert f.native_name == "ft_rosenbrock"
    assert repr(f) == "<C function double ft_rosenbrock(double, double)>"
    assert f(1.5, 2.0) == f.ctypes(1.5, 2.0) == rosenbrock(1.5, 2.0)
    by_address = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_double)(f.address)
    assert by_address(1.5, 2.0) == rosenbrock(1.5, 2.0)
    with pytest.raises(TypeError, match="1 arguments for double ft_rosenbrock"):
        f(1.0)


@pytest.mark.parametrize(
    ("dtype", "c_type"),
    [
        ("f8", "double"), ("f4", "float"), ("i8", "int64_t"), ("i4", "int32_t"), ("i2", "int16_t"),
        ("u1", "uint8_t"), ("u8", "uint64_t"), ("?", "bool"),
    ],
)  # fmt: skip
def test_types_of_numbers(dtype: str, c_type: str) -> None:
    one = np.ones((), dtype)[()]
    f = ft.jit(lambda x, y: x | y if np.dtype(x.dtype).kind == "b" else x + y).as_cfunc(one, one)
    assert f.signature == f"{c_type} ft_lambda({c_type}, {c_type})"
    assert f(1, 1) == (one | one if dtype == "?" else one + one)
    assert f(0, 0) == 0


def test_functions_of_arrays() -> None:
    def step(x: Any, v: Any, h: Any) -> Any:
        return x + h * v, np.sum(v)

    x, v = np.arange(6.0).reshape(2, 3), np.ones((2, 3))
    f = ft.jit(step).as_cfunc(x, v, 0.1)
    assert not f.is_scalar
    assert f.signature == (
        "int32_t ft_step(const double *x, const double *v, const double *h, "
        "double *out0, double *out1)"
    )
    moved, total = f(x, v, 0.5)
    assert_array_equal(moved, x + 0.5)
    assert total == 6.0
    out, number = np.empty((2, 3)), np.empty(())
    given = [x, v, np.asarray(0.25), out, number]
    pointers = [a.ctypes.data_as(t) for a, t in zip(given, f.ctypes.argtypes, strict=True)]
    assert f.ctypes(*pointers) == 0
    assert_array_equal(out, x + 0.25)
    with pytest.raises(TypeError, match=r"v is f64\[3\], expected f64\[2,3\]"):
        f(x, v[0], 0.5)


def test_captured_arrays_are_read_at_every_call() -> None:
    w = np.ones(3)
    f = ft.jit(lambda x: np.sum(w * x)).as_cfunc(1.0)
    assert f(2.0) == 6.0
    w[:] = 2.0
    assert f(2.0) == 12.0


def test_captured_arrays_live_as_long_as_the_function() -> None:
    def made() -> CFunction:
        strided = np.ones(6)[::2]
        return ft.jit(lambda x: np.sum(strided * x)).as_cfunc(1.0)

    g = made()
    gc.collect()
    assert g(2.0) == 6.0


def test_quad_integrates_a_jitted_gradient() -> None:
    from scipy.integrate import quad

    slope = ft.jit(ft.grad(lambda x: np.sin(x) * np.exp(-x))).as_cfunc(1.0)
    for signature in (None, "double (double)", "double (double, void *)", "double (int, double *)"):
        found, _ = quad(slope.low_level_callable(signature), 0.0, 2.0)
        assert_allclose(found, np.sin(2.0) * np.exp(-2.0), rtol=1e-12)
    data = ctypes.c_double(3.0)
    with_data = slope.low_level_callable("double (int, double *, void *)", ctypes.byref(data))
    assert_allclose(quad(with_data, 0.0, 2.0)[0], np.sin(2.0) * np.exp(-2.0), rtol=1e-12)
    power = ft.jit(lambda x, a: x**a).as_cfunc(1.0, 1.0)
    assert_allclose(quad(power.low_level_callable(), 0.0, 1.0, args=(3.0,))[0], 0.25, rtol=1e-12)


def test_nquad_integrates_over_a_square() -> None:
    from scipy.integrate import nquad

    f = ft.jit(lambda x, y, a: a * np.exp(-x * y)).as_cfunc(1.0, 1.0, 1.0)
    fast, _ = nquad(f.low_level_callable(), [(0, 1), (0, 2)], args=(3.0,))
    slow, _ = nquad(lambda x, y, a: a * np.exp(-x * y), [(0, 1), (0, 2)], args=(3.0,))
    assert_allclose(fast, slow, rtol=1e-10)


def test_generic_filter_applies_a_function_of_a_window() -> None:
    from scipy.ndimage import generic_filter

    f = ft.jit(lambda w: np.max(w) - np.mean(w)).as_cfunc(np.ones(5))
    image = np.random.default_rng(0).normal(size=(9, 11))
    footprint = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
    fast = generic_filter(image, f.low_level_callable(), footprint=footprint)
    slow = generic_filter(image, lambda w: np.max(w) - np.mean(w), footprint=footprint)
    assert_allclose(fast, slow, rtol=1e-12, atol=1e-14)
    with pytest.raises(RuntimeError):  # another size of the window
        generic_filter(image, f.low_level_callable(), size=3)


def test_forms_that_a_function_has_not_are_refused() -> None:
    f = ft.jit(rosenbrock).as_cfunc(0.0, 0.0)
    with pytest.raises(TypeError, match=r"no form 'double \(double\)'; it has"):
        f.low_level_callable("double (double)")
    g = ft.jit(lambda x: x + 1.0).as_cfunc(np.ones((2, 2)))
    with pytest.raises(TypeError, match="none that SciPy calls"):
        g.low_level_callable()
    with pytest.raises(UnsupportedOperationError, match=r"pure_callback .* at test_interop.py:"):
        ft.jit(lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((), np.float64), x)).as_cfunc(
            np.float64(1.0)
        )


def test_numba_calls_functions_of_numbers() -> None:
    numba = pytest.importorskip("numba")
    slope = ft.jit(ft.grad(rosenbrock)).as_cfunc(0.0, 0.0).ctypes
    gc.collect()

    @numba.njit
    def total(n: int) -> float:
        result = 0.0
        for i in range(n):
            result += slope(i * 1e-6, 0.5)
        return result

    x = np.arange(1_000_000) * 1e-6
    want = np.sum(-2.0 * (1.0 - x) - 400.0 * x * (0.5 - x * x))
    assert_allclose(total(1_000_000), want, rtol=1e-9)


def test_numba_calls_functions_of_arrays() -> None:
    numba = pytest.importorskip("numba")
    f = ft.jit(lambda m, x: m @ x).as_cfunc(np.ones((3, 3)), np.ones(3))
    product = f.ctypes

    @numba.njit
    def iterate(m: Any, x: Any, n: int) -> Any:
        y = np.empty_like(x)
        for _ in range(n):
            if product(m.ctypes, x.ctypes, y.ctypes):
                raise ValueError
            x[:] = y / np.max(np.abs(y))
        return x

    m = np.array([[2.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 4.0]])
    x = iterate(m, np.ones(3), 200)
    values, vectors = np.linalg.eigh(m)
    assert_allclose(np.abs(x / np.linalg.norm(x)), np.abs(vectors[:, -1]), rtol=1e-9)
    assert values[-1] > 0


def test_errors_are_a_status() -> None:
    table = np.arange(3.0)
    f = ft.jit(lambda i: ft.numpy.take(table, i)).as_cfunc(1)
    assert f.ctypes(1) == 1.0
    assert f.status == 0
    f.check()
    assert np.isnan(f.ctypes(3))
    assert f.status != 0
    with pytest.raises(IndexError, match="out of bounds"):
        f.check()
    assert f.status == 0
    with pytest.raises(IndexError, match="out of bounds"):
        f(7)
    assert f(2) == 2.0

    inverse = ft.jit(np.linalg.inv).as_cfunc(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        inverse(np.zeros((2, 2)))
    assert_array_equal(inverse(np.eye(2)), np.eye(2))


def test_a_wrong_number_of_arguments_is_nan() -> None:
    f = ft.jit(rosenbrock).as_cfunc(0.0, 0.0)
    suffix, result, arguments = f._forms()["double (int, double *)"]
    many = ctypes.CFUNCTYPE(result, *arguments)(f._loaded.address(f.native_name + suffix))
    numbers = (ctypes.c_double * 3)(1.5, 2.0, 0.0)
    assert many(2, numbers) == rosenbrock(1.5, 2.0)
    assert np.isnan(many(3, numbers))


def test_code_lives_as_long_as_handles_do() -> None:
    from scipy.integrate import quad

    handle = ft.jit(lambda x: x * x).as_cfunc(1.0).ctypes
    callback = ft.jit(lambda x: 3.0 * x * x).as_cfunc(1.0).low_level_callable()
    ft.clear_caches()
    gc.collect()
    others = [ft.jit(lambda x, k=k: x + k).as_cfunc(1.0) for k in range(40)]
    assert handle(3.0) == 9.0
    assert_allclose(quad(callback, 0.0, 2.0)[0], 8.0)
    assert [f(1.0) for f in others] == [1.0 + k for k in range(40)]


def test_threads_call_it_without_the_lock() -> None:
    f = ft.jit(lambda x: lax.while_loop(lambda v: v < 1e6, lambda v: v * 1.0001, x)).as_cfunc(1.0)
    want = f(1.0)
    found: list[float] = []
    threads = [
        threading.Thread(target=lambda: found.extend(f.ctypes(1.0) for _ in range(5)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [want] * 20


def test_static_arguments_keep_their_values() -> None:
    f = ft.jit(lambda x, n: x**n, static_argnums=1).as_cfunc(1.0, 3)
    assert f.signature == "double ft_lambda(double)"
    assert f(2.0) == 8.0


@pytest.mark.parametrize(("dtype", "expected"), [("i1", -25), ("u1", 68), ("i2", -25)])
def test_narrow_results_fill_32_bits(dtype: str, expected: int) -> None:
    x = np.dtype(dtype).type(200 if dtype == "u1" else -77)
    f = ft.jit(lambda x: x - x // 3 * 2).as_cfunc(x)
    wide = ctypes.CFUNCTYPE(ctypes.c_int32, *f.ctypes.argtypes)(f.address)
    assert f(x) == wide(int(x)) == expected
