"""Operations across the elements of a batch (``vmap(axis_name=...)``): ``psum`` and its relatives.

Here: the primitives, the functions that users call. Not here: ``vmap``; the batch pass, which tells
rules the name of the axis that it batches over (``state.batch_axis``).

A collective is an equation with the name of its axis. When its own axis is batched, it becomes a
reduction over the batch axis, whose result no longer depends on the element; other batch axes pass
through. The transpose of ``psum`` is ``psum``: each element's cotangent flows to all of them.

Layer: ``control``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import canonical
from functrans.core.avals import Aval, ShapedArray, Zero
from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import Tracer, aval_of, bind, innermost_staging, shape_of
from functrans.core.primitive import Primitive, linear, nondifferentiable
from functrans.core.source import here
from functrans.core.state import batch_axis, open_traces
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.primitives.dynamic_slicing import dynamic_slice
from functrans.primitives.reduction import reduce_max, reduce_min
from functrans.primitives.structural import (
    broadcast_to,
    cast,
    moveaxis,
    normalize_axis,
    reduce_sum,
    reshape,
)

# named axes -------------------------------------------------------------------------------------


def _open_axes() -> dict[str, int]:
    """Names and sizes of the axes that collectives may refer to here; inner ones win."""
    axes: dict[str, int] = {}
    for trace in open_traces.get():
        if trace.is_staging:
            axes.update(trace.axes)
    return axes


def _size(who: str, axis_name: str) -> int:
    """Extent of a named axis."""
    axes = _open_axes()
    if axis_name not in axes:
        known = ", ".join(map(repr, axes)) or "none"
        raise NameError(
            f"{who}: there is no vmap with axis_name={axis_name!r} around this call{here()} (named "
            f"axes here: {known})"
        )
    return axes[axis_name]


def _names(axis_name: object) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


# psum -------------------------------------------------------------------------------------------


def _psum_impl(x: Array, *, axis_name: str) -> tuple[Any, ...]:
    return (x * _size("psum", axis_name),)


def _same_aval(x: ShapedArray, *, axis_name: str) -> tuple[Aval, ...]:
    return (x.strong(),)


def _psum_transpose(cts: Sequence[Any], operands: object, *, axis_name: str) -> tuple[Any, ...]:
    return bind(psum_p, cts[0], axis_name=axis_name)


def _psum_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, axis_name: str
) -> tuple[Any, Any]:
    (x,), (dim,) = operands, dims
    if batch_axis.get() != axis_name:
        return bind(psum_p, x, axis_name=axis_name), (dim,)
    return (x * size if dim is None else reduce_sum(x, (dim,)),), (None,)


psum_p = Primitive(
    "psum",
    impl=_psum_impl,
    abstract_eval=_same_aval,
    jvp=linear,
    transpose=_psum_transpose,
    batch=_psum_batch,
    reasons=(("lower", "vmap puts other operations in its place"),),
)


# pmax, pmin -------------------------------------------------------------------------------------


def _extremum(name: str, reduce: Callable[..., Any]) -> Primitive:
    """The primitive of a maximum or minimum over a named axis; ties share the derivative."""

    def impl(x: Array, *, axis_name: str) -> tuple[Any, ...]:
        return (x,)

    def jvp(
        primals: Sequence[Any], tangents: Sequence[Any], outs: Sequence[Any], *, axis_name: str
    ) -> tuple[Any, ...]:
        (x,), (x_dot,), (y,) = primals, tangents, outs
        if type(x_dot) is Zero:
            return (x_dot,)
        aval = aval_of(x)
        is_extreme = cast((x == y) | (x != x), aval.dtype)
        (count,) = bind(psum_p, is_extreme, axis_name=axis_name)
        return bind(psum_p, x_dot * (is_extreme / count), axis_name=axis_name)

    def batch(
        size: int, operands: Sequence[Any], dims: Sequence[int | None], *, axis_name: str
    ) -> Any:
        (x,), (dim,) = operands, dims
        if batch_axis.get() != axis_name:
            return bind(primitive, x, axis_name=axis_name), (dim,)
        return (x if dim is None else reduce(x, (dim,)),), (None,)

    primitive = Primitive(
        name,
        impl=impl,
        abstract_eval=_same_aval,
        jvp=jvp,
        batch=batch,
        reasons=(
            ("transpose", "not linear; its jvp is made of psum"),
            ("lower", "vmap puts other operations in its place"),
        ),
    )
    return primitive


pmax_p = _extremum("pmax", reduce_max)
pmin_p = _extremum("pmin", reduce_min)


# all_gather -------------------------------------------------------------------------------------


def _all_gather_impl(x: Array, *, axis_name: str, axis: int, size: int) -> tuple[Any, ...]:
    return (_repeated(x, axis, size),)


def _repeated(x: Array, axis: int, size: int) -> Any:
    """What all elements have in common, once for each."""
    shape = shape_of(x)
    front = broadcast_to(reshape(x, (1, *shape)), (size, *shape))
    return moveaxis(front, 0, axis)


def _all_gather_aval(x: ShapedArray, *, axis_name: str, axis: int, size: int) -> tuple[Aval, ...]:
    return (ShapedArray((*x.shape[:axis], size, *x.shape[axis:]), x.dtype),)


def _all_gather_transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, axis_name: str, axis: int, size: int
) -> tuple[Any, ...]:
    (total,) = bind(psum_p, cts[0], axis_name=axis_name)
    own = bind(axis_index_p, axis_name=axis_name, size=size)[0]
    shape = shape_of(total)
    starts = [own if i == axis else 0 for i in range(len(shape))]
    sizes = [1 if i == axis else extent for i, extent in enumerate(shape)]
    return (reshape(dynamic_slice(total, starts, sizes), operands[0].aval.shape),)


def _all_gather_batch(
    batch_size: int, operands: Any, dims: Sequence[Any], *, axis_name: str, axis: int, size: int
) -> tuple[Any, Any]:
    (x,), (dim,) = operands, dims
    if batch_axis.get() == axis_name:
        if dim is None:
            return (_repeated(x, axis, size),), (None,)
        return (moveaxis(x, dim, axis),), (None,)
    x = moveaxis(x, dim, 0)
    return bind(all_gather_p, x, axis_name=axis_name, axis=axis + 1, size=size), (0,)


all_gather_p = Primitive(
    "all_gather",
    impl=_all_gather_impl,
    abstract_eval=_all_gather_aval,
    jvp=linear,
    transpose=_all_gather_transpose,
    batch=_all_gather_batch,
    reasons=(("lower", "vmap puts other operations in its place"),),
)


# axis_index -------------------------------------------------------------------------------------


def _axis_index_impl(*, axis_name: str, size: int) -> tuple[Any, ...]:
    """The equation in the innermost program: there is no operand to tell where it belongs."""
    trace = innermost_staging()
    if trace is None:
        _size("axis_index", axis_name)
    return trace.process(axis_index_p, (), {"axis_name": axis_name, "size": size})


def _axis_index_aval(*, axis_name: str, size: int) -> tuple[Aval, ...]:
    return (ShapedArray((), np.dtype(np.int64)),)


def _axis_index_batch(
    batch_size: int,
    operands: Sequence[Any],
    dims: Sequence[int | None],
    *,
    axis_name: str,
    size: int,
) -> tuple[Any, ...]:
    return (np.arange(size),), (0,)


axis_index_p = Primitive(
    "axis_index",
    impl=_axis_index_impl,
    abstract_eval=_axis_index_aval,
    jvp=nondifferentiable,
    batch=_axis_index_batch,
    reasons=(
        ("lower", "vmap puts other operations in its place"),
        ("transpose", "it has no operands"),
    ),
)


# user functions ---------------------------------------------------------------------------------


def _each(
    who: str, x: Array | complex, axis_name: object, function: Callable[[Any, str], Any]
) -> Array | complex:
    """Apply a collective to the leaves of a pytree, over one axis after the other."""
    names = _names(axis_name)
    for name in names:
        _size(who, name)

    def apply(leaf: Any) -> Any:
        value = canonical(leaf, lambda: f"{who}: x")
        for name in names:
            value = function(value, name)
        return value

    return tree.map(apply, x)


def _sum_of(x: float, axis_name: str) -> Array | complex:
    if not isinstance(x, Tracer):
        return x * _size("psum", axis_name)
    if aval_of(x).dtype == np.dtype(bool):
        x = cast(x, np.int64)
    return bind(psum_p, x, axis_name=axis_name)[0]


def psum(x: float, axis_name: str | Sequence[str]) -> Any:
    """Sum over the elements of a batch.

    Args:
      x: pytree of arrays.
      axis_name: the ``axis_name`` of a ``vmap`` around the call, or several.

    Returns:
      Pytree of the sums, which are the same for all elements.

    Raises:
      NameError: there is no such axis.

    Example:
      >>> import functrans as ft, numpy as np
      >>> ft.vmap(lambda x: x / psum(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
      array([0.25, 0.75])
    """
    return _each("psum", x, axis_name, _sum_of)


def pmean(x: Array, axis_name: str | Sequence[str]) -> Any:
    """Mean over the elements of a batch; see :func:`psum`.

    Example:
      >>> import functrans as ft, numpy as np
      >>> ft.vmap(lambda x: x - pmean(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
      array([-1.,  1.])
    """
    return _each("pmean", x, axis_name, lambda v, name: _sum_of(v, name) / _size("pmean", name))


def pmax(x: Array, axis_name: str | Sequence[str]) -> Any:
    """Maximum over the elements of a batch; see :func:`psum`. Ties share the derivative.

    Example:
      >>> import functrans as ft, numpy as np
      >>> ft.vmap(lambda x: x - pmax(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
      array([-2.,  0.])
    """
    return _each("pmax", x, axis_name, lambda v, name: bind(pmax_p, v, axis_name=name)[0])


def pmin(x: Array, axis_name: str | Sequence[str]) -> Any:
    """Minimum over the elements of a batch; see :func:`psum`. Ties share the derivative.

    Example:
      >>> import functrans as ft, numpy as np
      >>> ft.vmap(lambda x: x - pmin(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
      array([0., 2.])
    """
    return _each("pmin", x, axis_name, lambda v, name: bind(pmin_p, v, axis_name=name)[0])


def all_gather(x: Array, axis_name: str, *, axis: int = 0, tiled: bool = False) -> Any:
    """The arrays of all elements of a batch, in each of them.

    Args:
      x: pytree of arrays.
      axis_name: the ``axis_name`` of a ``vmap`` around the call.
      axis: where the new axis goes, or (``tiled``) along which existing axis to concatenate.
      tiled: whether to concatenate in place of stacking.

    Raises:
      NameError: there is no such axis.
      UnsupportedOperationError: several axes are named.

    Example:
      >>> import functrans as ft, numpy as np
      >>> ft.vmap(lambda x: all_gather(x, "i"), axis_name="i")(np.array([1.0, 3.0]))
      array([[1., 3.],
             [1., 3.]])
    """
    if isinstance(axis_name, (tuple, list)):
        raise UnsupportedOperationError(
            f"all_gather: expected the name of one axis, got {axis_name!r}{here()}; gather over "
            "one axis after the other"
        )
    size = _size("all_gather", axis_name)

    def gather(value: Any, name: str) -> Any:
        shape = shape_of(value)
        own = normalize_axis(axis, len(shape) + (not tiled), "all_gather")
        (out,) = bind(all_gather_p, value, axis_name=name, axis=own, size=size)
        if tiled:
            out = reshape(out, (*shape[:own], size * shape[own], *shape[own + 1 :]))
        return out

    return _each("all_gather", x, axis_name, gather)


def axis_index(axis_name: str | Sequence[str]) -> Array:
    """The number of the element of a batch.

    Args:
      axis_name: the ``axis_name`` of a ``vmap`` around the call; several count in row-major order.

    Raises:
      NameError: there is no such axis.

    Example:
      >>> import functrans as ft, numpy as np
      >>> ft.vmap(lambda x: x * axis_index("i"), axis_name="i")(np.ones(3))
      array([0., 1., 2.])
    """
    index: Any = 0
    for name in _names(axis_name):
        size = _size("axis_index", name)
        own = bind(axis_index_p, axis_name=name, size=size)[0]
        index = own if isinstance(index, int) else index * size + own
    return index


def axis_size(axis_name: str | Sequence[str]) -> int:
    """The number of elements of a batch.

    Args:
      axis_name: the ``axis_name`` of a ``vmap`` around the call, or several.

    Raises:
      NameError: there is no such axis.

    Example:
      >>> import functrans as ft, numpy as np
      >>> ft.vmap(lambda x: x / axis_size("i"), axis_name="i")(np.ones(2))
      array([0.5, 0.5])
    """
    total = 1
    for name in _names(axis_name):
        total *= _size("axis_size", name)
    return total


PRIMITIVES: tuple[Primitive, ...] = (psum_p, pmax_p, pmin_p, all_gather_p, axis_index_p)

_guard(globals())
