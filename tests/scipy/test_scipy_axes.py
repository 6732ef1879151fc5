"""Traced functions of SciPy accept the axes that SciPy's accept, and refuse the same ones.

Booleans and arrays as axes are left out: what SciPy makes of them follows from how an axis happens
to be used, and differs between functions.
"""

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import functrans as ft

X = np.arange(1.0, 65.0).reshape(8, 8) + np.sin(np.arange(64.0)).reshape(8, 8)
WEIGHTS = np.array([0.2, 0.5, 0.3])
SECTIONS = np.array([[1.0, 0.5, 0.2, 1.0, 0.1, 0.1]])

# Arguments before those for axes, of functions that have more than one.
ARGUMENTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    **dict.fromkeys(["fftconvolve", "oaconvolve", "csd", "coherence"], lambda a: (a, a)),
    **dict.fromkeys(["correlate", "convolve", "correlate1d", "convolve1d"], lambda a: (a, WEIGHTS)),
    **dict.fromkeys(
        [
            f"{name}_filter{end}"
            for name in ("maximum", "minimum", "uniform", "median", "gaussian")
            for end in ("", "1d")
        ],
        lambda a: (a, 3),
    ),
    **dict.fromkeys(["gaussian_laplace", "gaussian_gradient_magnitude"], lambda a: (a, 0.7)),
    "percentile_filter": lambda a: (a, 50, 3),
    "rank_filter": lambda a: (a, 1, 3),
    "rotate": lambda a: (a, 90.0),
    "lfilter": lambda a: (WEIGHTS, WEIGHTS + 1, a),
    "filtfilt": lambda a: (WEIGHTS[:2], np.array([1.2, 0.5]), a),
    "upfirdn": lambda a: (WEIGHTS, a),
    "resample": lambda a: (a, 4),
    "resample_poly": lambda a: (a, 2, 1),
    "savgol_filter": lambda a: (a, 3, 1),
    "sosfilt": lambda a: (SECTIONS, a),
    "romb": lambda a: (a[:5, :5],),
    "solve_circulant": lambda a: (a[0], a),
}
AXES: tuple[Any, ...] = (None, 0, -1, 1, 5, (), (0,), [0], (0, 0), (0, 1), 1.0, (0.0,), "a")
# What SciPy accepts or refuses by accident, and functrans does not follow.
_BY_INT = "SciPy converts the axis by int()"
EXCEPTIONS: dict[str, tuple[tuple[Any, ...], str]] = {
    **dict.fromkeys(["coherence", "csd", "istft", "stft", "welch"], ((1.0,), _BY_INT)),
    **dict.fromkeys(
        ["convolve", "correlate", "median_filter", "percentile_filter", "rank_filter"],
        ((-1,), "SciPy compares negative axes with those that it has made non-negative"),
    ),
    "resample": (((0,), [0]), "SciPy selects extents by the axis, as an array"),
    "rotate": (((0, 0),), "a plane of one axis twice"),
}
LEFT_OUT = {
    "decimate": "filters of SciPy that are no arrays",
    "sosfiltfilt": "its margin is longer than the signal",
}


def _rows() -> list[tuple[str, str, str]]:
    return [
        (module, name, parameter)
        for module in ("fft", "signal", "ndimage", "integrate", "linalg", "special", "stats")
        for name in getattr(ft.scipy, module).__all__
        if hasattr(getattr(getattr(ft.scipy, module), name), "traced") and name not in LEFT_OUT
        for parameter in inspect.signature(getattr(getattr(ft.scipy, module), name)).parameters
        if parameter.removesuffix("es").removesuffix("is").endswith("ax")
    ]


@pytest.mark.parametrize(("module", "name", "parameter"), _rows())
@pytest.mark.filterwarnings("ignore")
def test_plain_and_traced_calls_accept_the_same_axes(
    module: str, name: str, parameter: str
) -> None:
    arguments = ARGUMENTS.get(name, lambda a: (a,))
    exceptions, _ = EXCEPTIONS.get(name, ((), ""))
    traced = getattr(getattr(ft.scipy, module), name)
    plain = getattr(import_module(f"scipy.{module}"), name)

    def outcome(run: Callable[[], Any]) -> Any:
        try:
            return [np.asarray(y) for y in ft.tree.leaves(run())]
        except (TypeError, ValueError, IndexError, RuntimeError) as error:
            return error

    accepted = 0
    for axis in AXES:
        if any(axis is one or (type(axis) is type(one) and axis == one) for one in exceptions):
            continue
        expected = outcome(lambda axis=axis: plain(*arguments(X), **{parameter: axis}))
        found = outcome(
            lambda axis=axis: ft.vjp(lambda x: traced(*arguments(x), **{parameter: axis}), X)[0]
        )
        case = (axis, expected, found)
        assert isinstance(found, Exception) == isinstance(expected, Exception), case
        if isinstance(expected, Exception):
            continue
        accepted += 1
        assert len(found) == len(expected), case
        for y, exact in zip(found, expected, strict=True):
            assert y.shape == exact.shape, case
            np.testing.assert_allclose(y, exact, rtol=1e-8, atol=1e-8, err_msg=str(case))
    assert accepted
