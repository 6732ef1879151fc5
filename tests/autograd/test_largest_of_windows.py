"""Pooling takes the largest element of each window: the first of equal ones, a NaN before all."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.compat import torch

F = torch.nn.functional


def _expected(x: np.ndarray, windows: list[list[list[int]]]) -> tuple[np.ndarray, np.ndarray]:
    """Values and places, where windows are lists of places per axis."""
    space = x.shape[2:]
    shape = (*x.shape[:2], *(len(axis) for axis in windows))
    values, places = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    for cell in np.ndindex(shape):
        own = [axis[k] for axis, k in zip(windows, cell[2:], strict=True)]
        found = None
        for place in itertools.product(*own):
            value = x[(*cell[:2], *place)]
            if found is None or value > x[(*cell[:2], *found)] or np.isnan(value):
                found = place
        values[cell] = x[(*cell[:2], *found)]
        places[cell] = np.ravel_multi_index(found, space)
    return values, places


def _spoiled(rng: np.random.Generator, shape: tuple[int, ...], seed: int) -> np.ndarray:
    x = rng.integers(-2, 3, shape).astype(("f4", "f8")[seed % 2])
    mask = rng.random(shape)
    x[mask < (0.3, 0.0, 1.0)[seed % 3]] = -np.inf
    x[mask > (1.0, 0.8)[seed % 2]] = np.nan
    return x


def _check(pool: Any, x: np.ndarray, windows: list[list[list[int]]]) -> None:
    values, places = _expected(x, windows)
    leaf = torch.from_numpy(x).requires_grad_()
    found, index = pool(leaf, return_indices=True)
    np.testing.assert_array_equal(found.detach().numpy(), values)
    np.testing.assert_array_equal(index.numpy(), places)
    assert index.dtype == torch.int64
    ct = np.arange(1.0, values.size + 1).reshape(values.shape).astype(x.dtype)
    found.backward(torch.from_numpy(ct))
    expected = np.zeros((*x.shape[:2], math.prod(x.shape[2:])), x.dtype)
    lead = np.indices(values.shape)[:2]
    np.add.at(expected, (*lead, places), ct)
    np.testing.assert_array_equal(leaf.grad.numpy().reshape(expected.shape), expected)
    mapped, at = torch.func.vmap(lambda x: pool(x, return_indices=True))(leaf.detach()[None])
    np.testing.assert_array_equal(mapped[0].numpy(), values)
    np.testing.assert_array_equal(at[0].numpy(), places)
    np.testing.assert_array_equal(ft.jit(lambda x: pool(x))(torch.from_numpy(x)).numpy(), values)


@pytest.mark.parametrize("seed", range(12))
def test_windows_at_a_distance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 1 + seed % 3
    extents = rng.integers(5, 8, n)
    window, stride, dilation = (rng.integers(1, high, n).tolist() for high in (4, 4, 3))
    padding = [int(rng.integers(k // 2 + 1)) for k in window]
    windows = []
    for e, k, s, d, p in zip(extents.tolist(), window, stride, dilation, padding, strict=True):
        starts = range(-p, e + p - d * (k - 1), s)
        own = [[a + d * j for j in range(k) if 0 <= a + d * j < e] for a in starts]
        windows.append(own)
    pool = getattr(F, f"max_pool{n}d")
    x = _spoiled(rng, (2, 2, *extents), seed)

    def run(x: Any, return_indices: bool = False) -> Any:
        return pool(x, window, stride, padding, dilation, return_indices=return_indices)

    _check(run, x, windows)


@pytest.mark.parametrize("seed", range(12))
def test_as_many_windows_as_asked_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 1 + seed % 3
    extents, sizes = rng.integers(3, 7, n).tolist(), rng.integers(1, 8, n).tolist()
    windows = [
        [list(range(k * e // m, -(-(k + 1) * e // m))) for k in range(m)]
        for e, m in zip(extents, sizes, strict=True)
    ]
    pool = getattr(F, f"adaptive_max_pool{n}d")
    x = _spoiled(rng, (2, 2, *extents), seed)

    def run(x: Any, return_indices: bool = False) -> Any:
        return pool(x, sizes, return_indices)

    _check(run, x, windows)


def test_whole_numbers_are_padded_by_the_smallest() -> None:
    x = torch.tensor([[[-7, -3, -9]]])
    found, places = F.max_pool1d(x, 2, 1, 1, return_indices=True)
    assert found.tolist() == [[[-7, -3, -3, -9]]]
    assert places.tolist() == [[[0, 1, 1, 2]]]


def test_the_last_window_of_ceil_mode_may_be_short_of_its_extent() -> None:
    x = torch.arange(4.0).reshape(1, 1, 4)
    assert F.max_pool1d(x, 3, 3, dilation=2, ceil_mode=True).tolist() == [[[2.0]]]
    with pytest.raises(RuntimeError, match="too small"):
        F.max_pool1d(x, 3, 3, dilation=2)


def test_windows_in_the_padding_alone_are_refused() -> None:
    x = torch.arange(2.0).reshape(1, 1, 2)
    assert F.max_pool1d(x, 2, 1, 1, dilation=2).tolist() == [[[1.0, 0.0]]]
    with pytest.raises(RuntimeError, match="distance 3 lie in the padding of 1 alone"):
        F.max_pool1d(x, 2, 1, 1, dilation=3)


@pytest.mark.parametrize("seed", range(9))
def test_means_of_as_many_windows_as_asked_for(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 1 + seed % 3
    extents, sizes = rng.integers(3, 7, n).tolist(), rng.integers(1, 8, n).tolist()
    x = rng.standard_normal((2, *extents))
    x[(0, *(e // 2 for e in extents))] = (np.nan, np.inf, 1.0)[seed % 3]
    expected = np.empty((2, *sizes))
    for place in np.ndindex(*sizes):
        window = [
            slice(k * e // m, -(-(k + 1) * e // m))
            for k, e, m in zip(place, extents, sizes, strict=True)
        ]
        expected[(slice(None), *place)] = x[(slice(None), *window)].reshape(2, -1).mean(1)
    found = getattr(F, f"adaptive_avg_pool{n}d")(torch.tensor(x)[:, None], sizes)
    np.testing.assert_allclose(found.numpy()[:, 0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("words", [{"kernel_size": 0}, {"stride": 0}, {"dilation": -1}])
def test_windows_without_extent_or_distance_are_refused(words: dict[str, int]) -> None:
    for rank in (1, 2, 3):
        x = torch.ones((1, 1, *(4,) * rank))
        for name in ("max_pool", "avg_pool"):
            if name == "avg_pool" and "dilation" in words:
                continue
            with pytest.raises(RuntimeError, match="should be greater than zero, but got"):
                getattr(F, f"{name}{rank}d")(x, **{"kernel_size": 2, **words})


@pytest.mark.parametrize("name", ["adaptive_max_pool", "adaptive_avg_pool"])
def test_negative_numbers_of_windows_are_refused(name: str) -> None:
    for rank in (1, 2, 3):
        x = torch.ones((1, 1, *(4,) * rank))
        with pytest.raises(RuntimeError, match="must be greater than or equal to 0 but received"):
            getattr(F, f"{name}{rank}d")(x, -1)


@pytest.mark.parametrize("place", [6, -1, 4])
def test_places_outside_of_a_plane_are_refused_when_they_are_traced(place: int) -> None:
    values = torch.tensor([[[1.0, 2.0], [3.0, 4.0]]])

    def run(values: Any, places: Any) -> Any:
        return F.max_unpool1d(values, places, 2)

    right = torch.tensor([[[0, 3], [1, 2]]])
    expected = [[[1.0, 0.0, 0.0, 2.0], [0.0, 3.0, 4.0, 0.0]]]
    for form in (run, ft.jit(run), torch.func.vmap(run)):
        assert form(values, right).tolist() == expected
        with pytest.raises((IndexError, RuntimeError), match="index"):
            form(values, torch.tensor([[[0, 3], [place, 2]]]))
    with pytest.raises(RuntimeError, match="should be type int64"):
        run(values, torch.ones(1, 2, 2))
    with pytest.raises(RuntimeError, match=f"invalid max index: {place} "):
        run(values, torch.tensor([[[0, 3], [place, 2]]]))


def test_no_windows_at_all() -> None:
    x = torch.ones(1, 1, 3, 3, requires_grad=True)
    found, places = F.adaptive_max_pool2d(x, (0, None), return_indices=True)
    assert found.shape == places.shape == (1, 1, 0, 3)
    found.sum().backward()
    assert x.grad.tolist() == torch.zeros(1, 1, 3, 3).tolist()
    assert F.adaptive_avg_pool2d(x, 0).shape == (1, 1, 0, 0)
