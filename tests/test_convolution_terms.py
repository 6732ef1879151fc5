"""A convolution is the sum of the products of elements that meet, and of nothing else.

NaN and infinities of either operand, or of a cotangent, stay where they belong: the zeros that lie
around and between elements are no factors.
"""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.compat.torch.nn import functional
from functrans.primitives.convolution import conv

Terms = tuple[np.ndarray, np.ndarray, np.ndarray]
Rng = np.random.Generator

NOT_FINITE = (np.inf, -np.inf, np.nan)


def _axis_terms(n: int, k: int, stride: int, pads: Any, spread: int, dilation: int) -> Any:
    """Triples (position, element, element of the kernel) that meet along one axis; the extent."""
    extent = (n - 1) * spread + 1 + sum(pads)
    positions = max((extent - (k - 1) * dilation - 1) // stride + 1, 0)
    met = {pads[0] + i * spread: i for i in range(n)}
    return [
        (p, met[p * stride + t * dilation], t)
        for p in range(positions)
        for t in range(k)
        if p * stride + t * dilation in met
    ], positions


def _terms(lhs: Any, rhs: Any, p: dict[str, Any]) -> tuple[Terms, tuple[int, ...]]:
    """Flat indices of result, left operand and kernel, for every product; the result's shape."""
    features, batches = p["feature_group_count"], p["batch_group_count"]
    axes = list(
        map(_axis_terms, lhs[2:], rhs[2:],
            p["strides"], p["padding"], p["lhs_dilation"], p["rhs_dilation"])
    )  # fmt: skip
    shape = (lhs[0] // batches, rhs[0], *(positions for _, positions in axes))
    rows = []
    for n, o, i in itertools.product(range(shape[0]), range(rhs[0]), range(rhs[1])):
        row = n + o // (rhs[0] // batches) * shape[0]
        channel = i + o // (rhs[0] // features) * rhs[1]
        for places in itertools.product(*(found for found, _ in axes)):
            out, left, right = zip(*places, strict=True)
            rows.append(((n, o, *out), (row, channel, *left), (o, i, *right)))
    flat = [
        np.array([np.ravel_multi_index(row[k], dims) for row in rows], int)
        for k, dims in enumerate((shape, lhs, rhs))
    ]
    return (flat[0], flat[1], flat[2]), shape


def _sums(terms: Terms, operands: list[Any], which: int) -> np.ndarray:
    """Sums of the products of two operands, where those of the third one are."""
    one, other = (k for k in range(3) if k != which)
    out = np.zeros_like(operands[which])
    products = operands[one].reshape(-1)[terms[one]] * operands[other].reshape(-1)[terms[other]]
    np.add.at(out.reshape(-1), terms[which], products)
    return out


def _whole(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers but 0, of which sums are exact."""
    return rng.integers(1, 5, shape) * rng.choice([-1.0, 1.0], shape)


def _spoiled(rng: Rng, operands: list[np.ndarray], most: int = 8) -> Iterator[list[np.ndarray]]:
    """The operands, with one element of one of them, or of two, not finite."""
    for which, x in enumerate(operands):
        for number in rng.permutation(x.size)[:most]:
            changed = [y.copy() for y in operands]
            changed[which].reshape(-1)[number] = NOT_FINITE[rng.integers(3)]
            yield changed
            other = changed[which - 1].reshape(-1)
            other[rng.integers(other.size)] = NOT_FINITE[rng.integers(3)]
            yield changed


def _random_case(rng: Rng, rank: int) -> tuple[Any, Any, dict[str, Any]]:
    features, batches = [(1, 1), (2, 1), (1, 2)][int(rng.integers(3))]
    space, window = rng.integers(1, 7 - rank, rank), rng.integers(1, 4, rank)
    if rng.random() < 0.3:
        window[-1] = space[-1] + 1
    p = {
        "strides": tuple(rng.integers(1, 3, rank).tolist()),
        "padding": tuple(map(tuple, rng.integers(-1, 4, (rank, 2)).tolist())),
        "lhs_dilation": tuple(rng.integers(1, 4, rank).tolist()),
        "rhs_dilation": tuple(rng.integers(1, 3, rank).tolist()),
        "feature_group_count": features,
        "batch_group_count": batches,
    }
    ins, outs = rng.integers(1, 3, 2).tolist()
    lhs = (batches, ins * features, *space.tolist())
    return lhs, (outs * features * batches, ins, *window.tolist()), p


def _check(run: Callable[..., Any], operands: list[Any], terms: Terms, rtol: float = 0) -> None:
    with np.errstate(all="ignore"):
        expected = [_sums(terms, operands, which) for which in range(3)]
        found = run(*operands)
    for name, got, want in zip(("result", "lhs", "rhs"), found, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol, err_msg=name)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_values_and_cotangents_hold_only_what_meets(rank: int, seed: int) -> None:
    rng = np.random.default_rng((rank, seed))
    shape: tuple[int, ...] = (0,)
    while 0 in shape:
        lhs, rhs, params = _random_case(rng, rank)
        terms, shape = _terms(lhs, rhs, params)

    def run(ct: Any, x: Any, w: Any) -> Any:
        out, pull = ft.vjp(lambda x, w: conv(x, w, **params), x, w)
        return (out, *pull(ct))

    native = ft.jit(run)
    for operands in _spoiled(rng, [_whole(rng, dims) for dims in (shape, lhs, rhs)]):
        _check(run, operands, terms)
        _check(native, operands, terms)


@pytest.mark.parametrize("dtype", ["f2", "f4", "c8", "c16"])
def test_all_inexact_dtypes_hold_only_what_meets(rng: Rng, dtype: str) -> None:
    params = {
        "strides": (2,), "padding": ((2, 3),), "lhs_dilation": (3,), "rhs_dilation": (2,),
        "feature_group_count": 1, "batch_group_count": 1,
    }  # fmt: skip
    lhs, rhs = (2, 2, 4), (3, 2, 3)
    terms, shape = _terms(lhs, rhs, params)
    empty = np.zeros(shape, dtype)
    native = ft.jit(lambda x, w: conv(x, w, **params))
    batched = ft.vmap(lambda x, w: conv(x, w, **params))
    for x, w in _spoiled(rng, [_whole(rng, dims).astype(dtype) for dims in (lhs, rhs)]):
        with np.errstate(all="ignore"):
            expected = _sums(terms, [empty, x, w], 0)
            finite = np.isfinite(expected)
            for found in (conv(x, w, **params), native(x, w), batched(x[None], w[None])[0]):
                np.testing.assert_array_equal(np.isfinite(found), finite)
                np.testing.assert_allclose(found[finite], expected[finite], rtol=1e-6)
                if np.dtype(dtype).kind == "f":
                    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("function", [np.convolve, np.correlate])
def test_vectors_agree_with_numpy_where_not_finite(rng: Rng, function: Any, mode: str) -> None:
    def run(a: Any, v: Any) -> Any:
        return function(a, v, mode)

    native, batched = ft.jit(run), ft.vmap(run)
    for extents in ((2, 5), (5, 5), (6, 3), (5, 1)):
        for a, v in _spoiled(rng, [_whole(rng, (n,)) for n in extents]):
            with np.errstate(all="ignore"):
                expected = run(a, v)
                np.testing.assert_array_equal(native(a, v), expected)
                np.testing.assert_array_equal(batched(a[None], v[None])[0], expected)
                value, _ = ft.value_and_grad(lambda a, v: run(a, v)[0])(a, v)
            np.testing.assert_array_equal(value, expected[0])


def test_long_vectors_agree_with_numpy_where_not_finite() -> None:
    a = np.arange(1.0, 301.0)
    a[250] = np.inf
    for mode in ("full", "same"):
        expected = np.convolve(a, a, mode)
        assert np.isfinite(expected).sum() >= 100
        found = ft.jit(np.convolve, static_argnums=2)(a, a, mode)
        np.testing.assert_allclose(found, expected, rtol=1e-14)
        (found,) = ft.vmap(lambda x, mode=mode: np.convolve(x, a, mode))(a[None])
        np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.parametrize("rank", [1, 2])
def test_layers_of_the_facade_hold_only_what_meets(rng: Rng, rank: int) -> None:
    forward = getattr(functional, f"conv{rank}d")
    back = getattr(functional, f"conv_transpose{rank}d")
    lhs, rhs = (1, 2, *(5, 4)[:rank]), (3, 2, *(3, 2)[:rank])
    window = {"strides": (2,) * rank, "padding": ((1, 1),) * rank, "rhs_dilation": (1,) * rank}
    counts = {"feature_group_count": 1, "batch_group_count": 1}
    terms, shape = _terms(lhs, rhs, {**window, **counts, "lhs_dilation": (1,) * rank})
    # What the transposed layer lacks: elements behind the last window.
    lost = [n - ((p - 1) * 2 + k - 2) for n, k, p in zip(lhs[2:], rhs[2:], shape[2:], strict=True)]
    for ct, x, w in _spoiled(rng, [_whole(rng, dims) for dims in (shape, lhs, rhs)]):
        leaves = [ft.tensor(y, requires_grad=True) for y in (x, w)]
        with np.errstate(all="ignore"):
            expected = [_sums(terms, [ct, x, w], which) for which in range(3)]
            out = forward(*leaves, stride=2, padding=1)
            out.backward(ft.tensor(ct))
            turned = back(ft.tensor(ct), ft.tensor(w), stride=2, padding=1, output_padding=lost)
        np.testing.assert_array_equal(out.detach().numpy(), expected[0])
        for leaf, want in zip(leaves, expected[1:], strict=True):
            np.testing.assert_array_equal(leaf.grad.numpy(), want)
        np.testing.assert_array_equal(turned.numpy(), expected[1])
