"""Lists of traced numbers in place of arrays, in every function of one array or of two."""

import importlib
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from functrans.errors import FunctransError

POINT = np.array([0.3, 0.6, 0.2])
MODULES = ("scipy.special", "scipy.stats", "scipy.linalg", "scipy.signal", "scipy.ndimage",
           "scipy.fft", "numpy", "numpy.linalg", "numpy.fft")  # fmt: skip
LEFT = {
    "copyto", "place", "putmask", "astype", "eigh", "eigvalsh", "fromfile", "genfromtxt", "loadtxt",
    "fromregex", "fromstring", "load", "frombuffer", "einsum", "einsum_path", "histogramdd",
    "spectrogram",
}  # fmt: skip
"""Functions that write to their first argument, whose arguments are options or files, for which a
list is one array for each axis, or that refuse lists of plain numbers, too."""


def _functions() -> list[tuple[str, str]]:
    found = []
    for module in MODULES:
        own = importlib.import_module(f"functrans.{module}")
        for name in own.__all__:
            value = getattr(own, name)
            if callable(value) and not isinstance(value, type) and name not in LEFT:
                found.append((module, name))
    return found


def _differentiable(outs: Any) -> list[Any]:
    return [x for x in ft.tree.leaves(outs) if np.asarray(x).dtype.kind in "fc"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", MODULES)
def test_lists_are_taken_as_arrays_are(module: str) -> None:
    n = 0
    for name in [name for own, name in _functions() if own == module]:
        function = getattr(importlib.import_module(f"functrans.{module}"), name)
        for count in (1, 2):

            def of_arrays(x: Any, function: Any = function, count: int = count) -> Any:
                return function(*[x * (1 + 0.1 * i) for i in range(count)])

            def of_lists(x: Any, function: Any = function, count: int = count) -> Any:
                return function(*[[v * (1 + 0.1 * i) for v in x] for i in range(count)])

            try:
                expected = _differentiable(ft.jvp(of_arrays, (POINT,), (POINT,)))
            except (AttributeError, TypeError, ValueError, IndexError, FunctransError):
                continue  # it takes other arguments
            if len(expected) < 2:
                break  # no derivative
            found = _differentiable(ft.jvp(of_lists, (POINT,), (POINT,)))
            for a, b in zip(found, expected, strict=True):
                assert_allclose(a, b, 1e-12, 1e-14, err_msg=f"{module}.{name}")
            n += 1
            break
    assert n > {"numpy.linalg": 3, "scipy.linalg": 2, "scipy.ndimage": 3}.get(module, 5)


@pytest.mark.parametrize("form", [lambda x: np.sin(x), lambda x: np.dot(x, x), np.sum, np.cumsum])
def test_lists_of_numbers_as_arguments_stand_for_arrays(form):
    def f(x):
        return np.sum(form(x)) * 2.0

    x = [0.5, 1.5, -1.0]
    expected = ft.grad(f)(np.array(x))
    for transform in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        found = transform(f)(x)
        assert type(found) is list
        np.testing.assert_allclose(found, expected, 1e-14)
    np.testing.assert_allclose(ft.jit(f)(x), f(x), 1e-14)
