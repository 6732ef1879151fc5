"""Scatters that multiply or take the larger or smaller value; every write counts.

Here: ``scatter_reduce``, and ``neighbour_writes`` (which of its writes meet). Not here: the linear
primitives at index arrays (``gather_scatter``), functions (``indexing``).

Layer: ``primitives``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.dispatch import Tracer, bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, nondifferentiable
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.family import add_tangents, once_each
from functrans.primitives.gather_scatter import (
    accumulate_p,
    batched_indices,
    gather_p,
    over_rest,
    scatter_add_p,
    scatter_aval,
    scatter_batch,
    scatter_map,
)
from functrans.primitives.index_arrays import (
    Axes,
    Shape,
    check_scatter,
    check_writes,
    index_shape,
    neighbour_writes,
    rest_shape,
    write_with,
)
from functrans.primitives.native.index import neighbour_writes_lower, scatter_reduce_lower
from functrans.primitives.structural import broadcast_to, cast, reshape

UFUNCS = {"multiply": np.multiply, "minimum": np.minimum, "maximum": np.maximum}

# neighbour_writes -------------------------------------------------------------------------------


def _neighbour_writes_impl(*indices: Any, extents: Shape, mode: str) -> tuple[Any, ...]:
    return neighbour_writes(indices, extents, mode)


def _neighbour_writes_aval(
    *indices: ShapedArray, extents: Shape, mode: str
) -> tuple[ShapedArray, ...]:
    shape = index_shape("scatter", [i.shape for i in indices])
    return (ShapedArray(shape, np.dtype(np.int64)),) * 2


def _neighbour_writes_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, extents: Shape, mode: str
) -> tuple[Any, Any]:
    """Positions count from the beginning of each element of the batch."""
    indices = batched_indices(size, operands, dims, True)
    links = bind(neighbour_writes_p, *indices, extents=(size, *extents), mode=mode)
    count = math.prod(shape_of(links[0])[1:])
    outs = tuple([ew.where(link < 0, link, ew.remainder(link, max(count, 1))) for link in links])
    return outs, (0, 0)


neighbour_writes_p = Primitive(
    "neighbour_writes",
    impl=_neighbour_writes_impl,
    abstract_eval=_neighbour_writes_aval,
    check=check_writes,
    jvp=nondifferentiable,
    batch=_neighbour_writes_batch,
    lower=Routine(neighbour_writes_lower),
    reasons=(("transpose", "integers have no derivative"),),
    indices=0,
    memory="own",
)


# scatter_reduce ---------------------------------------------------------------------------------


def _scatter_reduce_check(*avals: ShapedArray, op: str, mode: str, **_: object) -> None:
    if op not in UFUNCS:
        raise ValueError(f"op={op!r}; expected one of {', '.join(map(repr, UFUNCS))}")
    check_scatter(*avals, mode=mode)


def _scatter_reduce_impl(
    x: Array, v: Array, *indices: Any, axes: Axes, mode: str, unique_indices: bool, op: str
) -> tuple[Any, ...]:
    out = np.array(x, order="C")
    # np.maximum.at reports NaN operands as invalid, np.maximum does not.
    with np.errstate(invalid=None if op == "multiply" else "ignore"):
        write_with(UFUNCS[op], out, v, indices, axes, mode, unique_indices)
    return (out,)


def _scatter_reduce_jvp(
    primals: Sequence[Array],
    tangents: Sequence[Any],
    outs: Sequence[Array],
    *,
    axes: Axes,
    mode: str,
    unique_indices: bool,
    op: str,
) -> tuple[Any, ...]:
    """Each element and each value counts with its own weight, which the primals determine."""
    x, v, *indices = primals
    x_dot, v_dot, *_ = tangents
    (y,) = outs
    slot = index_shape("scatter", [shape_of(i) for i in indices]) + rest_shape(shape_of(x), axes)
    places = {"axes": axes, "mode": mode}
    v = broadcast_to(v, slot)
    if op == "multiply":
        weight_x, weight_v = _product_weights(x, v, indices, places, unique_indices)
    else:
        weight_x, weight_v = _extremum_weights(x, v, y, indices, places, unique_indices)
    total: Any = Zero(ShapedArray(shape_of(y), dtype_of(y)))
    if type(x_dot) is not Zero:
        total = x_dot * weight_x
    if type(v_dot) is not Zero:
        part = bind(accumulate_p, v_dot * weight_v, *indices, shape=shape_of(x), **places)
        total = add_tangents(total, part[0])
    return (total,)


def _extremum_weights(
    x: Array,
    v: Array,
    y: Array,
    indices: Sequence[Any],
    places: dict[str, Any],
    unique_indices: bool,
) -> tuple[Any, Any]:
    """Those that are equal to the result share its derivative evenly; NaN is equal to NaN."""
    dtype = dtype_of(y)
    (y_at,) = bind(gather_p, y, *indices, **places)
    x_wins = cast((x == y) | (x != x), dtype)
    v_wins = cast((v == y_at) | (v != v), dtype)
    (count,) = bind(
        scatter_add_p, x_wins, v_wins, *indices, unique_indices=unique_indices, **places
    )
    (count_at,) = bind(gather_p, count, *indices, **places)
    return x_wins / count, v_wins / ew.maximum(count_at, 1)  # it is 0 where the write is dropped


def _product_weights(
    x: Array, v: Array, indices: Sequence[Any], places: dict[str, Any], unique_indices: bool
) -> tuple[Any, Any]:
    """The product of all other factors, exact where factors are 0.

    Factors that meet at one place form a chain of links; the products before and behind each link
    are taken by doubling the length of the links, in as many steps as the binary logarithm of the
    number of factors has digits (Wyllie, The complexity of parallel computations, 1979).
    """
    slot = shape_of(v)
    ones = np.broadcast_to(np.ones((), dtype_of(x)), shape_of(x))
    (weight_x,) = bind(
        scatter_reduce_p, ones, v, *indices, unique_indices=unique_indices, op="multiply", **places
    )
    (weight_v,) = bind(gather_p, x, *indices, **places)
    if not unique_indices:
        extents = tuple([shape_of(x)[axis] for axis in places["axes"]])
        links = bind(neighbour_writes_p, *indices, extents=extents, mode=places["mode"])
        s = shape_of(links[0])
        count = math.prod(s)
        chain = reshape(v, (count, *slot[len(s) :]))
        for link in links:
            others = _product_along(chain, reshape(link, (count,)))
            weight_v = weight_v * reshape(others, slot)
    return weight_x, weight_v


def _product_along(v: Any, links: Any) -> Array:
    """Per element the product of all that its link leads to, itself not included."""
    total, jump = v, links
    for _ in range((shape_of(v)[0] - 1).bit_length() if shape_of(v)[0] else 0):
        if not isinstance(jump, Tracer) and not np.any(jump >= 0):
            break
        total = total * _linked(total, jump)
        jump = ew.where(jump < 0, -1, bind(gather_p, jump, jump, axes=(0,), mode="clip")[0])
    return _linked(total, links)


def _linked(v: Array, links: Array) -> Array:
    """Elements that links lead to; 1 where there is no link."""
    (found,) = bind(gather_p, v, links, axes=(0,), mode="clip")
    return ew.where(over_rest(links < 0, shape_of(v)), 1, found)


def _scatter_reduce_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None], **params: Any
) -> tuple[Any, Any]:
    return scatter_batch(scatter_reduce_p, size, operands, dims, **params)


scatter_reduce_p = Primitive(
    "scatter_reduce",
    impl=_scatter_reduce_impl,
    abstract_eval=scatter_aval,
    check=_scatter_reduce_check,
    jvp=_scatter_reduce_jvp,
    batch=_scatter_reduce_batch,
    lower=Routine(scatter_reduce_lower, in_place=0),
    reasons=(("transpose", "its jvp is made of linear primitives"),),
    axis_map=scatter_map,
    work=once_each,
    indices=2,
    memory="own",
)


PRIMITIVES: tuple[Primitive, ...] = (scatter_reduce_p, neighbour_writes_p)
