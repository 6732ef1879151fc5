"""Fourier transforms in compiled programs: NumPy's loops, and half of the work where one can."""

import itertools
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.compiler import symbols
from functrans.compiler.support import HostCall
from functrans.primitives.native import ufuncs


def _interpreted(f: Any, x: np.ndarray) -> Any:
    return ft.eval_jaxpr(ft.make_jaxpr(f)(x), [], x)[0]


def _numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    rng = np.random.default_rng(len(shape) + sum(shape))
    x = rng.normal(size=shape) * 4
    return (x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


CASES = [
    *itertools.product([(1,), (2,), (8,), (9,), (3, 8), (0, 4)], [(-1,)]),
    *itertools.product([(5, 6), (64, 750)], [(0,), (0, 1), (1, 0)]),
    *itertools.product([(3, 4, 5)], [(1,), (0, 2), (2, 0, 1)]),
]


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16", "i4", "?"])
@pytest.mark.parametrize(("shape", "axes"), CASES)
def test_compiled_transforms_are_numpys_to_the_bit(
    name: str, dtype: str, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    if name == "irfftn" and shape[axes[-1]] == 1:
        return  # a signal without elements
    if name == "rfftn" and dtype[0] == "c":
        return
    x = _numbers(shape, dtype)

    def transform(x: Any) -> Any:
        return getattr(fnp.fft, name)(x, axes=axes)

    jitted = ft.jit(transform)
    found, expected = jitted(x), _interpreted(transform, x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    (program,) = jitted.kept_programs()
    assert not any(isinstance(part, HostCall) for part in program.native.parts)
    theirs = getattr(np.fft, name)(x, axes=axes)
    assert found.dtype == theirs.dtype
    scale = np.abs(theirs).max(initial=0) or 1
    tolerance = 1e-6 if found.dtype.char in "fF" else 1e-14
    np.testing.assert_allclose(found, theirs, rtol=0, atol=tolerance * scale)


PARTS: dict[str, Any] = {
    "real part of a transform": lambda x, a: fnp.fft.fft(x, axis=a).real * 2,
    "real part of an inverse": lambda x, a: fnp.fft.ifft(x, axis=a).real,
    "filter": lambda x, a: fnp.fft.ifft(fnp.fft.fft(x, axis=a) * 3j, axis=a).real,
    "both parts": lambda x, a: fnp.fft.ifft(x, axis=a).real + fnp.fft.ifft(x, axis=a).imag,
    "spectrum and its real part": lambda x, a: (lambda z: z.real + abs(z))(fnp.fft.fft(x, axis=a)),
    "imaginary part": lambda x, a: fnp.fft.fft(x, axis=a).imag,
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((1,), 0), ((2,), 0), ((7,), 0), ((3, 8), 1), ((8, 3), 0)]
)
def test_half_of_a_spectrum_gives_the_same(
    name: str, dtype: str, shape: tuple[int, ...], axis: int
) -> None:
    x = _numbers(shape, dtype)
    for f in (
        lambda x: PARTS[name](x, axis),
        ft.grad(lambda x: (PARTS[name](x, axis) ** 2).sum()),
    ):
        found, expected = ft.jit(f)(x), _interpreted(f, x)
        assert found.dtype == expected.dtype
        tolerance = (1e-5 if dtype in ("f4", "c8") else 1e-13) * (np.abs(expected).max() or 1)
        np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_real_sides_are_transformed_as_such() -> None:
    def smooth(u: Any) -> Any:
        return fnp.fft.ifft(fnp.fft.fft(u) * np.exp(-np.arange(16.0))).real

    text = str(ft.jit(smooth).plan(np.ones(16)))
    assert "irfft" in text
    assert text.count("fft_c2c[axes=(0,), inverse=False] u") == 1
    assert "inverse=True" not in text
    gradient = ft.jit(ft.grad(lambda u: (smooth(u) ** 2).sum()))
    assert "cast[dtype=c128]" not in str(gradient.plan(np.ones(16)))


def test_loops_that_numpy_does_not_have_are_named() -> None:
    assert ufuncs.find_loop("sin.d->d") == (np.sin, np.sin.types.index("d->d"))
    assert ufuncs.find_loop("fft._pocketfft_umath.fft.ii->i") is None
    assert ufuncs.find_loop("fft.nothing.fft.Dd->D") is None
    with pytest.raises(LookupError, match=r"has no loop fft\._pocketfft_umath"):
        symbols.address("ufunc.fft._pocketfft_umath.fft.ii->i")
