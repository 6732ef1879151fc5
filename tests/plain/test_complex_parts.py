"""Real and imaginary parts of complex arrays that are filled, seen before and after."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from helpers import check_scalar_program

POINT = np.array([0.7, -0.4, 1.3, 0.2, 2.1, -1.6])
check = functools.partial(check_scalar_program, x=POINT)

MADE: dict[str, Callable[[Any], Any]] = {
    "vector": lambda x: np.zeros(6, complex),
    "matrix": lambda x: np.full((2, 3), 0.5 - 1j),
    "of columns": lambda x: np.ones((2, 3), complex, order="F"),
    "view": lambda x: np.zeros((3, 4), complex)[1:, ::-1][:, :3],
    "transposed": lambda x: np.zeros((3, 2), complex).T,
    "single": lambda x: np.zeros(6, np.complex64),
    "of traced values": lambda x: x * 1j,
    "one": lambda x: np.zeros((), complex),
}

SEEN: dict[str, Callable[[Any], Any]] = {
    "real": lambda y: y.real,
    "imag": lambda y: y.imag,
    "function real": np.real,
    "function imag": np.imag,
    "real of a view": lambda y: y[..., None].real,
    "part of imag": lambda y: y.imag[..., None],
    "real of imag": lambda y: y.imag.real,
}


def _fitting(x: Any, part: Any) -> Any:
    return x[: part.size].reshape(part.shape)


def _augment(part: Any, x: Any) -> None:
    part += _fitting(x, part)
    part *= x[1]


WRITES: dict[str, Callable[[Any, Any], None]] = {
    "whole": lambda part, x: part.__setitem__(..., _fitting(x, part)),
    "augmented": _augment,
    "fill": lambda part, x: part.fill(x[0]),
    "out": lambda part, x: np.sin(_fitting(x, part), out=part),
    "elements": lambda part, x: [part.flat.__setitem__(i, x[i]) for i in range(part.size)],
}


@each("write", WRITES)
@each("see", SEEN)
@each("make", MADE, by="make")
def test_parts_are_views(make: str, see: str, write: str) -> None:
    def f(x: Any) -> Any:
        y = MADE[make](x)
        early, other = SEEN[see](y), y.real
        WRITES[write](early, x)
        late = SEEN[see](y)
        total = (late**2).sum() + (y * np.conj(y)).real.sum() * 0.5
        WRITES[write](late, x[::-1])
        y *= 1 + 0.5j
        return total + (early * late).sum() + other.sum() + (y.imag**2).sum()

    if MADE[make](POINT).dtype == np.complex64:
        value = f(POINT)
        np.testing.assert_allclose(ft.jit(f)(POINT), value, 1e-5)
        np.testing.assert_allclose(ft.jvp(f, (POINT,), (POINT,))[0], value, 1e-5)
        return
    check(f, is_short=True)


def set_parts(x: Any) -> Any:
    y = np.zeros(6, complex)
    y.real = x
    y.imag[:] = x**2
    y.imag[::2] -= x[0]
    y.real[y.real > 1] = x[1]
    return (np.abs(y) ** 2).sum()


def spectrum(x: Any) -> Any:
    y = np.zeros(4, complex)
    re, im = y.real, y.imag
    for k in range(4):
        re[k] = (x * np.cos(k * np.arange(6))).sum()
        im[k] = -(x * np.sin(k * np.arange(6))).sum()
    return (np.abs(y) ** 2 * np.arange(4)).sum() + np.angle(y)[1]


def real_of_real(x: Any) -> Any:
    y = np.zeros(6)
    part = y.real
    part[:] = x
    y.real += x
    return (y**2).sum() + y.imag.sum()


@pytest.mark.parametrize("f", [set_parts, spectrum, real_of_real])
def test_programs_with_parts(f: Any) -> None:
    check(f)


def test_other_views_of_bits_are_refused() -> None:
    def pairs(x: Any) -> Any:
        y = np.zeros(3, complex)
        y.view(float)[:] = x
        return np.abs(y).sum()

    with pytest.raises(ft.errors.UnsupportedOperationError, match="seen as one of float64"):
        ft.grad(pairs)(POINT)
