"""Rows of the products: ``dot_general`` and ``conv_general``."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from functrans.errors import ShapeError
from functrans.primitives import convolution as cv
from functrans.primitives import dot as dt
from samples.row import Refused, Rng, Row, Sample, annulus, integers, uniform

Shape = tuple[int, ...]
Pairs = tuple[Shape, Shape]
NONE: Pairs = ((), ())

# label, shape of either operand, contracted axes, batch axes
PRODUCTS: tuple[tuple[str, Shape, Shape, Pairs, Pairs], ...] = (
    ("vectors", (3,), (3,), ((0,), (0,)), NONE),
    ("matrix_vector", (2, 3), (3,), ((1,), (0,)), NONE),
    ("vector_matrix", (2,), (2, 3), ((0,), (0,)), NONE),
    ("matrices", (2, 3), (3, 4), ((1,), (0,)), NONE),
    ("transposed", (3, 2), (4, 3), ((0,), (1,)), NONE),
    ("outer", (2,), (3,), NONE, NONE),
    ("batched", (2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
    ("batch_inside", (3, 2, 4), (4, 5, 2), ((2,), (0,)), ((1,), (2,))),
    ("two_contracted", (2, 3, 4), (4, 5, 3), ((1, 2), (2, 0)), NONE),
    ("two_batch", (2, 3, 4), (3, 2, 4), ((2,), (2,)), ((0, 1), (1, 0))),
    ("only_batch", (3,), (3,), NONE, ((0,), (0,))),
    ("empty_sum", (2, 0), (0, 3), ((1,), (0,)), NONE),
    ("empty_free", (0, 2), (2, 3), ((1,), (0,)), NONE),
    ("empty_batch", (0, 2), (0, 2), ((1,), (1,)), ((0,), (0,))),
)


def _dot_samples(rng: Rng) -> Iterator[Sample]:
    for label, a, b, contract, batch in PRODUCTS:
        params = {"contract": contract, "batch": batch}
        yield Sample(label, (uniform(rng, a), uniform(rng, b)), params)
    params = {"contract": ((1,), (0,)), "batch": NONE}
    f32 = uniform(rng, (2, 3)).astype(np.float32)
    yield Sample("f32", (f32, uniform(rng, (3,)).astype(np.float32)), params)
    yield Sample("mixed", (f32, uniform(rng, (3, 2))), params)
    yield Sample("complex", (annulus(rng, (2, 3)), annulus(rng, (3, 2))), params)
    yield Sample("complex_real", (annulus(rng, (2, 3)), uniform(rng, (3,))), params)
    yield Sample("int", (integers(rng, (2, 3)), integers(rng, (3,))), params)


def _dot_general(a: Any, b: Any, *, contract: Pairs, batch: Pairs) -> np.ndarray:
    a_labels = list(range(a.ndim))
    b_labels = list(range(a.ndim, a.ndim + b.ndim))
    for pairs in (contract, batch):
        for i, j in zip(*pairs, strict=True):
            b_labels[j] = i
    gone = set(contract[0])
    lead = list(batch[0])
    a_free = [i for i in a_labels if i not in gone and i not in lead]
    b_free = [j for j in b_labels if j >= a.ndim]
    return np.einsum(a, a_labels, b, b_labels, [*lead, *a_free, *b_free])


# convolution ------------------------------------------------------------------------------------

# label, shape of either operand, parameters that differ from the plain ones
CONVOLUTIONS: tuple[tuple[str, Shape, Shape, dict[str, Any]], ...] = (
    ("line", (1, 2, 6), (3, 2, 3), {}),
    ("plane", (2, 2, 4, 5), (3, 2, 2, 3), {}),
    ("padded", (1, 1, 4), (2, 1, 3), {"padding": ((2, 1),)}),
    ("cropped", (1, 1, 7), (1, 1, 2), {"padding": ((-1, -2),)}),
    ("strided", (1, 1, 7), (2, 1, 3), {"strides": (2,)}),
    ("kernel_dilated", (1, 1, 7), (1, 1, 3), {"rhs_dilation": (2,)}),
    ("lhs_dilated", (1, 1, 4), (1, 1, 3), {"lhs_dilation": (2,), "padding": ((1, 2),)}),
    ("all_of_it", (2, 2, 5), (2, 2, 2), {
        "strides": (2,), "lhs_dilation": (3,), "rhs_dilation": (2,), "padding": ((1, -1),)}),
    ("feature_groups", (2, 4, 5), (6, 2, 2), {"feature_group_count": 2}),
    ("depthwise", (1, 3, 4), (3, 1, 2), {"feature_group_count": 3}),
    ("batch_groups", (4, 2, 5), (6, 2, 2), {"batch_group_count": 2}),
    ("no_space", (2, 3), (4, 3), {}),
    ("empty_batch", (0, 2, 5), (3, 2, 2), {}),
    ("no_positions", (1, 1, 2), (1, 1, 3), {}),
)  # fmt: skip


def _conv_params(rank: int, **changed: Any) -> dict[str, Any]:
    return {
        "strides": (1,) * rank,
        "padding": ((0, 0),) * rank,
        "lhs_dilation": (1,) * rank,
        "rhs_dilation": (1,) * rank,
        "feature_group_count": 1,
        "batch_group_count": 1,
        **changed,
    }


def _conv_samples(rng: Rng) -> Iterator[Sample]:
    for label, lhs, rhs, changed in CONVOLUTIONS:
        params = _conv_params(len(lhs) - 2, **changed)
        yield Sample(label, (uniform(rng, lhs), uniform(rng, rhs)), params)
    params = _conv_params(1)
    f32 = uniform(rng, (1, 1, 5)).astype(np.float32), uniform(rng, (1, 1, 2)).astype(np.float32)
    yield Sample("f32", f32, params)
    yield Sample("complex", (annulus(rng, (1, 1, 4)), annulus(rng, (1, 1, 2))), params)
    yield Sample("int", (integers(rng, (1, 1, 4)), integers(rng, (1, 1, 2))), params)


def _spread(x: Any, axis: int, dilation: int, pads: tuple[int, int] = (0, 0)) -> Any:
    """Put zeros between elements, then zeros around them (or crop)."""
    n = x.shape[axis]
    shape = list(x.shape)
    shape[axis] = (n - 1) * dilation + 1 if n else 0
    out = np.zeros(shape, x.dtype)
    np.moveaxis(out, axis, 0)[::dilation] = np.moveaxis(x, axis, 0)
    low, high = (max(pad, 0) for pad in pads)
    out = np.pad(out, [(low, high) if a == axis else (0, 0) for a in range(out.ndim)])
    crop = slice(max(-pads[0], 0), out.shape[axis] - max(-pads[1], 0))
    return np.moveaxis(np.moveaxis(out, axis, 0)[crop], 0, axis)


def _conv_general(lhs: Any, rhs: Any, **params: Any) -> np.ndarray:
    """One output element after the other, from the definition."""
    x, kernel = lhs, rhs
    for i in range(lhs.ndim - 2):
        x = _spread(x, i + 2, params["lhs_dilation"][i], params["padding"][i])
        kernel = _spread(kernel, i + 2, params["rhs_dilation"][i])
    window = kernel.shape[2:]
    space = tuple(
        max((n - k) // s + 1, 0) if n >= k else 0
        for n, k, s in zip(x.shape[2:], window, params["strides"], strict=True)
    )
    features, batches = params["feature_group_count"], params["batch_group_count"]
    rows = x.shape[0] // batches
    out = np.zeros((rows, rhs.shape[0], *space), np.result_type(lhs, rhs))
    for place in np.ndindex(out.shape):
        n, o, *position = place
        group = o // (rhs.shape[0] // features)
        first = group * rhs.shape[1]
        row = n + (o // (rhs.shape[0] // batches)) * rows
        starts = [p * s for p, s in zip(position, params["strides"], strict=True)]
        part = x[(row, slice(first, first + rhs.shape[1]),
                  *(slice(a, a + k) for a, k in zip(starts, window, strict=True)))]  # fmt: skip
        out[place] = (part * kernel[o]).sum()
    return out


ROWS = (
    Row(
        dt.dot_general_p,
        _dot_samples,
        _dot_general,
        refused=(
            Refused("extents", (np.ones(2), np.ones(3)), ShapeError, "paired axes", {
                "contract": ((0,), (0,)), "batch": NONE}),
            Refused("pairs", (np.ones((2, 2)), np.ones(2)), ShapeError, "in pairs", {
                "contract": ((0, 1), (0,)), "batch": NONE}),
            Refused("twice", (np.ones((2, 2)), np.ones((2, 2))), ShapeError, "distinct", {
                "contract": ((0,), (0,)), "batch": ((0,), (1,))}),
        ),
    ),
    Row(
        cv.conv_general_p,
        _conv_samples,
        _conv_general,
        refused=(
            Refused("rank", (np.ones((1, 1, 3)), np.ones((1, 1))), ShapeError, "same number", (
                _conv_params(1))),
            Refused("channels", (np.ones((1, 2, 3)), np.ones((1, 1, 2))), ShapeError, "channels",
                _conv_params(1)),
            Refused("strides", (np.ones((1, 1, 3)), np.ones((1, 1, 2))), ShapeError, "positive",
                _conv_params(1, strides=(0,))),
        ),
    ),
)  # fmt: skip
