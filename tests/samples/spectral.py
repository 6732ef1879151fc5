"""Rows of the discrete Fourier transforms, defined by their matrices."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans.errors import ShapeError
from functrans.primitives import fft
from samples.row import Refused, Rng, Row, Sample, annulus, integers, uniform

Axes = tuple[int, ...]


def _transform(x: Any, axis: int, sign: int) -> Any:
    n = x.shape[axis]
    matrix = np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    return np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)


def _fft(x: Any, *, axes: Axes, inverse: bool) -> Any:
    out = x.astype(complex)
    for axis in axes:
        out = _transform(out, axis, 1 if inverse else -1)
    return out


def _rfft(x: Any, *, axes: Axes) -> Any:
    half = np.arange(x.shape[axes[-1]] // 2 + 1)
    return np.take(_fft(x, axes=axes, inverse=False), half, axes[-1])


def _irfft(x: Any, *, axes: Axes, n: int) -> Any:
    out = _fft(x, axes=axes[:-1], inverse=True)
    frequencies = np.arange(n // 2 + 1)
    weights = np.where((frequencies == 0) | (2 * frequencies == n), 1.0, 2.0)
    matrix = np.exp(2j * np.pi * np.outer(np.arange(n), frequencies) / n) * weights
    return np.moveaxis(np.tensordot(matrix, out, (1, axes[-1])), 0, axes[-1]).real


def _fft_samples(rng: Rng) -> Iterator[Sample]:
    for suffix, inverse in (("", False), ("_inverse", True)):
        for label, shape, axes in (
            ("vector", (5,), (0,)),
            ("last", (2, 4), (1,)),
            ("first", (4, 2), (0,)),
            ("plane", (3, 2, 4), (2, 0)),
            ("one_point", (1,), (0,)),
            ("empty", (0, 3), (1,)),
        ):
            params = {"axes": axes, "inverse": inverse}
            yield Sample(label + suffix, (annulus(rng, shape),), params)
        params = {"axes": (0,), "inverse": inverse}
        yield Sample("real" + suffix, (uniform(rng, (4,)),), params)
    params = {"axes": (0,), "inverse": False}
    yield Sample("c64", (annulus(rng, (4,)).astype(np.complex64),), params)
    yield Sample("f32", (uniform(rng, (4,)).astype(np.float32),), params)
    yield Sample("int", (integers(rng, (4,)),), params)


def _rfft_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, axes in (
        ("odd", (5,), (0,)),
        ("even", (4,), (0,)),
        ("last", (2, 4), (1,)),
        ("first", (3, 2), (0,)),
        ("plane", (3, 4), (0, 1)),
        ("plane_swapped", (3, 4), (1, 0)),
        ("one_point", (1,), (0,)),
        ("empty", (0, 3), (1,)),
    ):
        yield Sample(label, (uniform(rng, shape),), {"axes": axes})
    yield Sample("f32", (uniform(rng, (4,)).astype(np.float32),), {"axes": (0,)})
    yield Sample("int", (integers(rng, (5,)),), {"axes": (0,)})


def _irfft_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape, axes, n in (
        ("odd", (3,), (0,), 5),
        ("even", (3,), (0,), 4),
        ("last", (2, 3), (1,), 4),
        ("first", (2, 2), (0,), 3),
        ("plane", (3, 3), (0, 1), 4),
        ("one_point", (1,), (0,), 1),
        ("empty", (0, 2), (1,), 3),
    ):
        yield Sample(label, (annulus(rng, shape),), {"axes": axes, "n": n})
    yield Sample("c64", (annulus(rng, (3,)).astype(np.complex64),), {"axes": (0,), "n": 4})


TWICE = {"axes": (0, 0)}

ROWS = (
    Row(
        fft.fft_c2c_p,
        _fft_samples,
        _fft,
        is_flat=True,
        refused=(
            Refused("twice", (np.ones(3),), ShapeError, "distinct", {**TWICE, "inverse": False}),
            Refused("empty", (np.ones(0),), ShapeError, "one element", {
                "axes": (0,), "inverse": False}),
        ),
    ),
    Row(
        fft.rfft_p,
        _rfft_samples,
        _rfft,
        is_flat=True,
        refused=(
            Refused("complex", (np.ones(3) * 1j,), TypeError, "real array", {"axes": (0,)}),
            Refused("twice", (np.ones(3),), ShapeError, "distinct", TWICE),
        ),
    ),
    Row(
        fft.irfft_p,
        _irfft_samples,
        _irfft,
        is_flat=True,
        refused=(
            Refused("real", (np.ones(3),), TypeError, "complex array", {"axes": (0,), "n": 4}),
            Refused("extent", (np.ones(3) * 1j,), ShapeError, "frequencies", {
                "axes": (0,), "n": 8}),
        ),
    ),
)  # fmt: skip
