"""Products of arrays: one primitive, ``dot_general``, and NumPy's products made of it.

Here: the record, ``dot_general``, ``matmul``, ``dot``, ``vdot``, ``inner``, ``outer``,
``tensordot``, ``vecdot``, ``matvec``, ``vecmat``. Not here: ``einsum`` and other compositions
(``functrans.numpy``), convolution (``convolution``).

``dot_general`` contracts pairs of axes and keeps pairs of batch axes::

    f64[batch, a_free, b_free] = dot_general[contract, batch](a, b)

Batch axes come first in the order given, then the other axes of ``a`` and of ``b`` in their own
order. It is linear in each operand, and the cotangent of either operand is a ``dot_general`` of the
result's cotangent and the other operand. The order of those two is chosen so that the result has
its axes in place; where neither order does, one ``transpose`` (a view) follows.

Layer: ``primitives``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.axes import AxisMap
from functrans.core.caching import remembered
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, Work, is_linear, multilinear
from functrans.core.source import here
from functrans.core.values import Array, Operand
from functrans.errors import ShapeError
from functrans.primitives.complex_parts import conjugate
from functrans.primitives.family import promoted_dtype
from functrans.primitives.native.dot import dot_supports, write_dot
from functrans.primitives.structural import (
    cast,
    inverse_permutation,
    moveaxis,
    normalize_axis,
    reshape,
    transpose,
)
from functrans.records import dataclass

Shape = tuple[int, ...]
Pairs = tuple[tuple[int, ...], tuple[int, ...]]

_NO_AXES: Pairs = ((), ())


def _free_axes(ndim: int, contract: tuple[int, ...], batch: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of an operand that are neither contracted nor batch axes."""
    return tuple(axis for axis in range(ndim) if axis not in contract and axis not in batch)


# evaluation -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """How the operands of one kind of product are laid out for a matrix product.

    Attributes:
      a_axes: axes of ``a`` as batch, free, contract; ``None`` where they lie so.
      b_axes: axes of ``b`` as batch, contract, free; ``None`` where they lie so.
      a_free: number of free axes of ``a``.
      b_free: number of free axes of ``b``.
      contract: number of contracted pairs.
      batch: number of batch pairs.
    """

    a_axes: tuple[int, ...] | None
    b_axes: tuple[int, ...] | None
    a_free: int
    b_free: int
    contract: int
    batch: int


@remembered(4096)
def _layout(a_ndim: int, b_ndim: int, contract: Pairs, batch: Pairs, by: bool) -> _Layout:
    """The layout of a product.

    The pairs are taken in the order of the axes of operand ``by``, which then more likely need not
    be copied.
    """
    pairs = sorted(zip(*contract, strict=True), key=lambda pair: pair[by])
    a_free = _free_axes(a_ndim, contract[0], batch[0])
    b_free = _free_axes(b_ndim, contract[1], batch[1])
    a_axes = (*batch[0], *a_free, *(a for a, _ in pairs))
    b_axes = (*batch[1], *(b for _, b in pairs), *b_free)
    return _Layout(
        a_axes=None if a_axes == tuple(range(a_ndim)) else a_axes,
        b_axes=None if b_axes == tuple(range(b_ndim)) else b_axes,
        a_free=len(a_free),
        b_free=len(b_free),
        contract=len(pairs),
        batch=len(batch[0]),
    )


def _dot_general_impl(a: Array, b: Array, *, contract: Pairs, batch: Pairs) -> tuple[Any, ...]:
    if len(contract[0]) == 1 and not batch[0]:
        a_ndim, b_ndim = a.ndim, b.ndim
        if a_ndim <= 2 and b_ndim <= 2:  # BLAS reads transposed views without a copy
            if a_ndim == 2 and contract[0][0] == 0:
                a = a.T
            if b_ndim == 2 and contract[1][0] == 1:
                b = b.T
            return (a.dot(b),)
    a_ndim, b_ndim = np.ndim(a), np.ndim(b)
    if not (a_ndim and b_ndim):
        return (a * b,)
    if a_ndim == b_ndim == 1 and not contract[0] and not batch[0]:
        return (a[:, None] * b,)
    layout = _layout(a_ndim, b_ndim, contract, batch, b.size > a.size)
    if layout.a_axes is not None:
        a = a.transpose(layout.a_axes)
    if layout.b_axes is not None:
        b = b.transpose(layout.b_axes)
    return (_matrix_product(a, b, layout) if layout.contract else _outer_product(a, b, layout),)


def _outer_product(a: Array, b: Array, layout: _Layout) -> Array:
    """The product of ``a[batch, free]`` and ``b[batch, free]``, by broadcasting."""
    lead, rest = b.shape[: layout.batch], b.shape[layout.batch :]
    if a.shape[: layout.batch] != lead:
        raise _extents_differ()
    return a.reshape(a.shape + (1,) * layout.b_free) * b.reshape(lead + (1,) * layout.a_free + rest)


def _matrix_product(a: Array, b: Array, layout: _Layout) -> Array:
    """The product of ``a[batch, free, contract]`` and ``b[batch, contract, free]``."""
    start, end = layout.batch, layout.batch + layout.a_free
    lead, rows, summed = a.shape[:start], a.shape[start:end], a.shape[end:]
    split = start + layout.contract
    columns = b.shape[split:]
    if b.shape[:split] != lead + summed:
        raise _extents_differ()
    if not (start and layout.contract == layout.a_free == layout.b_free == 1):
        m, n, k = math.prod(rows), math.prod(columns), math.prod(summed)
        a, b = a.reshape(*lead, m, k), b.reshape(*lead, k, n)
    if not start:
        return a.dot(b).reshape(rows + columns)
    out = np.matmul(a, b)
    if a.dtype == b.dtype != out.dtype:  # bfloat16, which NumPy multiplies in single precision
        out = out.astype(a.dtype)
    return out if len(rows) == 1 == len(columns) else out.reshape(lead + rows + columns)


def _extents_differ() -> ValueError:
    """The error for operands that the abstract evaluation would refuse in more detail."""
    return ValueError("dot_general: extents of paired axes differ")


# rules ------------------------------------------------------------------------------------------


def _dot_general_aval(
    a: ShapedArray, b: ShapedArray, *, contract: Pairs, batch: Pairs
) -> tuple[ShapedArray, ...]:
    for kind, pairs in (("contract", contract), ("batch", batch)):
        if len(pairs[0]) != len(pairs[1]):
            raise ShapeError(
                f"dot_general: {kind} names axes {pairs[0]} of the first operand and {pairs[1]} of "
                "the second; axes come in pairs, so both must be of one length"
            )
    for x, axes in ((a, (*contract[0], *batch[0])), (b, (*contract[1], *batch[1]))):
        if len(set(axes)) != len(axes) or not all(0 <= axis < x.ndim for axis in axes):
            raise ShapeError(
                f"dot_general: axes {axes} of {x} must be distinct and in [0, {x.ndim})"
            )
    for kind, pairs in (("contracted", contract), ("batch", batch)):
        for i, j in zip(*pairs, strict=True):
            if a.shape[i] != b.shape[j]:
                raise ShapeError(
                    f"dot_general: {kind} axis {i} of {a} has extent {a.shape[i]}, but axis {j} of "
                    f"{b} has extent {b.shape[j]}; paired axes must have equal extents"
                )
    a_free = _free_axes(a.ndim, contract[0], batch[0])
    b_free = _free_axes(b.ndim, contract[1], batch[1])
    shape = (
        *(a.shape[axis] for axis in batch[0]),
        *(a.shape[axis] for axis in a_free),
        *(b.shape[axis] for axis in b_free),
    )
    return (ShapedArray(shape, promoted_dtype((a, b))),)


@dataclass(frozen=True, slots=True, eq=False)
class _Adjoint:
    """The product that gives the cotangent of one operand.

    Attributes:
      ct_is_first: whether the result's cotangent is the first operand of the product.
      contract: contracted axes.
      batch: batch axes.
      axes: permutation that brings the product's axes into the operand's order.
    """

    ct_is_first: bool
    contract: Pairs
    batch: Pairs
    axes: tuple[int, ...]


@remembered(4096)
def _adjoint(ndim: int, other_ndim: int, contract: Pairs, batch: Pairs, is_first: bool) -> _Adjoint:
    """The product for the cotangent of an operand.

    Args:
      ndim: rank of the operand.
      other_ndim: rank of the other operand.
      contract: contracted axes, the operand's own first.
      batch: batch axes, the operand's own first.
      is_first: whether the operand is the first one of the product.
    """
    own_free = _free_axes(ndim, contract[0], batch[0])
    other_free = _free_axes(other_ndim, contract[1], batch[1])
    n_batch = len(batch[0])
    start = n_batch + (len(own_free) if is_first else 0)
    ct_contract = tuple(range(start, start + len(other_free)))
    ct_batch = tuple(range(n_batch))
    partner = dict(zip(contract[1], contract[0], strict=True))
    contracted = tuple(partner[axis] for axis in sorted(contract[1]))
    orders = {True: (*batch[0], *own_free, *contracted), False: (*batch[0], *contracted, *own_free)}
    in_place = tuple(range(ndim))
    ct_is_first = orders[True] == in_place or orders[False] != in_place
    pairs = (ct_contract, other_free), (ct_batch, batch[1])
    if not ct_is_first:
        pairs = (other_free, ct_contract), (batch[1], ct_batch)
    return _Adjoint(ct_is_first, *pairs, inverse_permutation(orders[ct_is_first]))


def _dot_general_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, contract: Pairs, batch: Pairs
) -> tuple[Any, ...]:
    (ct,) = cts
    a, b = operands
    if is_linear(a):
        ndim, other_ndim = a.aval.ndim, len(shape_of(b))
        adjoint = _adjoint(ndim, other_ndim, contract, batch, True)
        return (_pull_operand(ct, b, adjoint, a.aval.dtype), None)
    ndim, other_ndim = b.aval.ndim, len(shape_of(a))
    adjoint = _adjoint(ndim, other_ndim, contract[::-1], batch[::-1], False)
    return (None, _pull_operand(ct, a, adjoint, b.aval.dtype))


def _pull_operand(ct: Array, other: Array, adjoint: _Adjoint, dtype: np.dtype) -> Array:
    """The cotangent of one operand."""
    first, second = (ct, other) if adjoint.ct_is_first else (other, ct)
    product = _product(first, second, adjoint.contract, adjoint.batch)
    return cast(transpose(product, adjoint.axes), dtype)


def _after_batch(pairs: Pairs, dims: Sequence[int | None]) -> Pairs:
    """Axes after a batch axis was put into one or both operands."""
    a, b = (
        axes if dim is None else tuple(axis + (axis >= dim) for axis in axes)
        for axes, dim in zip(pairs, dims, strict=True)
    )
    return a, b


def _dot_general_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, contract: Pairs, batch: Pairs
) -> tuple[Any, Any]:
    a, b = operands
    a_dim, b_dim = dims
    contract, batch = _after_batch(contract, dims), _after_batch(batch, dims)
    if a_dim is not None and b_dim is not None:
        batch = (a_dim, *batch[0]), (b_dim, *batch[1])
        return bind(dot_general_p, a, b, contract=contract, batch=batch), (0,)
    picked = _product_with_basis(a, b, dims, contract, batch)
    if picked is not None:
        return picked
    # The batch axis is a free axis of its operand; it stays where the product puts it.
    a_free = _free_axes(len(shape_of(a)), contract[0], batch[0])
    b_free = _free_axes(len(shape_of(b)), contract[1], batch[1])
    out_dim = len(batch[0])
    out_dim += a_free.index(a_dim) if b_dim is None else len(a_free) + b_free.index(b_dim)
    return bind(dot_general_p, a, b, contract=contract, batch=batch), (out_dim,)


def _product_with_basis(
    a: Array, b: Array, dims: Sequence[int | None], contract: Pairs, batch: Pairs
) -> tuple[Any, Any] | None:
    """A product with all unit vectors, as Jacobians push and pull them: the other operand itself.

    No product is computed, and an infinite element does not meet the zeros of the basis. Only what
    nobody can write to is looked at, as a Jacobian's basis is.
    """
    basis, other, axis = (b, a, contract[0]) if dims[0] is None else (a, b, contract[1])
    if not (
        type(basis) is np.ndarray
        and not basis.flags.writeable
        and basis.ndim == 2
        and basis.shape[0] == basis.shape[1]
        and len(axis) == 1
        and not batch[0]
        and basis.dtype.kind in "fc"
        and _is_identity(basis)
    ):
        return None
    last = len(shape_of(other)) - 1
    where = last if dims[0] is None else 0
    dtype = np.result_type(basis.dtype, dtype_of(other))
    return (cast(moveaxis(other, axis[0], where), dtype),), (where,)


def _is_identity(matrix: np.ndarray) -> bool:
    return np.count_nonzero(matrix) == len(matrix) and bool(np.all(np.diagonal(matrix) == 1))


def _dot_general_map(
    a: ShapedArray, b: ShapedArray, *, contract: Pairs, batch: Pairs
) -> list[AxisMap]:
    places: list[AxisMap] = []
    first = len(batch[0])
    for aval, summed, own in zip((a, b), contract, batch, strict=True):
        free = _free_axes(aval.ndim, summed, own)
        where = {m: k for k, m in enumerate(own)} | {m: first + k for k, m in enumerate(free)}
        places.append([where.get(m) for m in range(aval.ndim)])
        first += len(free)
    return places


def _dot_general_work(a: ShapedArray, b: ShapedArray, *, contract: Pairs, batch: Pairs) -> Work:
    free = _free_axes(b.ndim, contract[1], batch[1])
    factor = 8.0 if "c" in (a.dtype.kind, b.dtype.kind) else 2.0
    return Work(factor * a.size * math.prod([b.shape[m] for m in free]))


dot_general_p = Primitive(
    "dot_general",
    impl=_dot_general_impl,
    abstract_eval=_dot_general_aval,
    jvp=multilinear,
    transpose=_dot_general_transpose,
    batch=_dot_general_batch,
    lower=Routine(write_dot, dot_supports),
    axis_map=_dot_general_map,
    work=_dot_general_work,
)


def _product(a: Operand, b: Any, contract: Pairs, batch: Pairs) -> Array:
    """``dot_general`` of normalized axes; multiplication where an operand is a scalar."""
    if not (shape_of(a) and shape_of(b)):
        return a * b
    return bind(dot_general_p, a, b, contract=contract, batch=batch)[0]


# functions --------------------------------------------------------------------------------------


def dot_general(
    a: Any, b: Any, contract: Sequence[Sequence[int]], batch: Sequence[Sequence[int]] = _NO_AXES
) -> Array:
    """Contract pairs of axes, keep pairs of batch axes.

    Args:
      a: first operand.
      b: second operand.
      contract: axes of ``a`` and axes of ``b`` that are multiplied and summed over, pairwise.
      batch: axes of ``a`` and axes of ``b`` that are kept once, pairwise.

    Returns:
      ``[batch, free axes of a, free axes of b]``, of NumPy's common dtype.

    Raises:
      ShapeError: extents of paired axes differ, or axes do not come in pairs.
      AxisError: an axis does not exist.
    """
    ndims = len(shape_of(a)), len(shape_of(b))
    normalized = [
        tuple(
            tuple(normalize_axis(axis, ndim, name) for axis in axes)
            for axes, ndim in zip(pairs, ndims, strict=True)
        )
        for name, pairs in (("contract", contract), ("batch", batch))
    ]
    return _product(a, b, *normalized)  # type: ignore[arg-type]  # both are pairs


def matmul(a: Any, b: Any) -> Any:
    """Matrix product as ``np.matmul``: 1-D operands are vectors, leading axes broadcast.

    Raises:
      ShapeError: an operand is a scalar, or extents do not fit.
    """
    if type(a) is np.ndarray and type(b) is np.ndarray:
        return np.matmul(a, b)
    a_ndim, b_ndim = len(shape_of(a)), len(shape_of(b))
    if 0 < a_ndim <= 2 and 0 < b_ndim <= 2:
        try:
            return bind(dot_general_p, a, b, contract=((a_ndim - 1,), (0,)), batch=_NO_AXES)[0]
        except ShapeError:
            if shape_of(a)[-1] == shape_of(b)[0]:
                raise
            raise ShapeError(
                f"matmul: operands of shapes {shape_of(a)} and {shape_of(b)}: the last axis of the "
                f"first has extent {shape_of(a)[-1]}, the first of the second has extent "
                f"{shape_of(b)[0]}; they must be equal{here()}"
            ) from None
    return _broadcast_product("matmul", a, b, min(a_ndim, 2), min(b_ndim, 2))


def vecdot(a: Array, b: Array, axis: int = -1) -> Array:
    """Inner products of the vectors along an axis, as ``np.vecdot``: the first is conjugated."""
    a, b = (
        moveaxis(x, normalize_axis(axis, len(shape_of(x)), "axis"), len(shape_of(x)) - 1)
        for x in (a, b)
    )
    return _broadcast_product("vecdot", conjugate(a), b, 1, 1)


def matvec(a: Array, b: Array) -> Array:
    """Products of the matrices ``a[..., m, n]`` and vectors ``b[..., n]``, as ``np.matvec``."""
    return _broadcast_product("matvec", a, b, 2, 1)


def vecmat(a: Array, b: Array) -> Array:
    """Products of the vectors ``a[..., n]``, conjugated, and matrices, as ``np.vecmat``."""
    return _broadcast_product("vecmat", conjugate(a), b, 1, 2)


def _broadcast_product(name: str, a: Operand, b: Operand, a_core: int, b_core: int) -> Array:
    """A matrix product whose leading axes broadcast.

    Leading axes of equal extent become batch axes. One that only one operand has, or that has
    extent 1 in the other, is a free axis of that operand: nothing is expanded.

    Args:
      name: for messages.
      a: ``[..., n]`` or ``[..., m, n]``.
      b: ``[..., n]`` or ``[..., n, p]``.
      a_core: how many of its last axes belong to the product, 1 or 2.
      b_core: the same for ``b``.
    """
    a_shape, b_shape = shape_of(a), shape_of(b)
    if len(a_shape) < a_core or len(b_shape) < b_core or not (a_core and b_core):
        raise ShapeError(
            f"{name}: operands of shapes {a_shape} and {b_shape}; the product needs at least "
            f"{max(a_core, 1)} and {max(b_core, 1)} axes, use multiply for scalars{here()}"
        )
    if a_shape[-1] != b_shape[-b_core]:
        raise ShapeError(
            f"{name}: operands of shapes {a_shape} and {b_shape}: the extent {a_shape[-1]} of the "
            f"first operand's last axis differs from {b_shape[-b_core]}, the second's axis "
            f"{-b_core}; they must be equal{here()}"
        )
    a_lead, b_lead = a_shape[: len(a_shape) - a_core], b_shape[: len(b_shape) - b_core]
    lead = max(len(a_lead), len(b_lead))
    labels = _leading_labels(a_lead, b_lead)
    if labels is None:
        raise ShapeError(
            f"{name}: leading axes of shapes {a_shape} and {b_shape} do not broadcast; extents "
            f"must be equal or 1, counted from the last axis{here()}"
        )
    a_labels, b_labels = labels
    a, b = (
        reshape(x, (*(own[position - lead] for position in kept), *shape_of(x)[len(own) :]))
        for x, own, kept in ((a, a_lead, a_labels), (b, b_lead, b_labels))
    )
    shared = [position for position in a_labels if position in b_labels]
    a_only = [position for position in a_labels if position not in shared]
    b_only = [position for position in b_labels if position not in shared]
    batch = (
        tuple(a_labels.index(position) for position in shared),
        tuple(b_labels.index(position) for position in shared),
    )
    contract = (len(a_labels) + a_core - 1,), (len(b_labels),)
    row, column = [lead] * (a_core - 1), [lead + 1] * (b_core - 1)
    a_first = [*shared, *a_only, *row, *b_only, *column]
    b_first = [*shared, *b_only, *column, *a_only, *row]
    if a_first != sorted(a_first) and b_first == sorted(b_first):
        product = _product(b, a, contract[::-1], batch[::-1])
        return transpose(product, _sorting_axes(b_first))
    return transpose(_product(a, b, contract, batch), _sorting_axes(a_first))


def _leading_labels(a_lead: Shape, b_lead: Shape) -> tuple[list[int], list[int]] | None:
    """Which axes of the broadcast shape either operand has, without those it stretches.

    Args:
      a_lead: extents of the first operand's leading axes.
      b_lead: extents of the second's.

    Returns:
      Positions in the broadcast shape, per operand; both have an axis where their extents are
      equal. ``None`` where the extents do not broadcast.
    """
    lead = max(len(a_lead), len(b_lead))
    a_labels, b_labels = [], []
    for position in range(lead):
        missing_a, missing_b = (position < lead - len(own) for own in (a_lead, b_lead))
        m = 1 if missing_a else a_lead[position - lead]
        n = 1 if missing_b else b_lead[position - lead]
        if m != n and m != 1 and n != 1:
            return None
        if not missing_a and (m == n or n == 1):
            a_labels.append(position)
        if not missing_b and (m == n or m == 1):
            b_labels.append(position)
    return a_labels, b_labels


def _sorting_axes(labels: list[int]) -> tuple[int, ...]:
    """The permutation that brings axes into the order of their labels."""
    return tuple(sorted(range(len(labels)), key=labels.__getitem__))


def dot(a: Array, b: Array) -> Any:
    """Product as ``np.dot``: last axis of ``a`` with the last but one of ``b``; scalars multiply.

    Raises:
      ShapeError: extents do not fit.
    """
    if type(a) is np.ndarray and type(b) is np.ndarray:
        return np.dot(a, b)
    a_ndim, b_ndim = len(shape_of(a)), len(shape_of(b))
    contract = (a_ndim - 1,), (max(b_ndim - 2, 0),)
    return _product(a, b, contract, _NO_AXES)


def inner(a: Array, b: Array) -> Any:
    """Product over the last axes of both operands, as ``np.inner``; scalars multiply.

    Raises:
      ShapeError: extents do not fit.
    """
    contract = (len(shape_of(a)) - 1,), (len(shape_of(b)) - 1,)
    return _product(a, b, contract, _NO_AXES)


def vdot(a: Array, b: Array) -> Array:
    """Inner product of the flattened operands, the first one conjugated, as ``np.vdot``.

    Raises:
      ShapeError: sizes differ.
    """
    return bind(
        dot_general_p, _ravel(conjugate(a)), _ravel(b), contract=((0,), (0,)), batch=_NO_AXES
    )[0]


def outer(a: Array | complex, b: Array | complex) -> Any:
    """Outer product of the flattened operands, as ``np.outer``."""
    return bind(dot_general_p, _ravel(a), _ravel(b), contract=_NO_AXES, batch=_NO_AXES)[0]


def _ravel(x: Array | complex) -> Array:
    """Flatten in row-major order; a scalar becomes a vector of one element."""
    return reshape(x, (math.prod(shape_of(x)),))


def tensordot(a: Array, b: Array | complex, axes: Any = 2) -> Any:
    """Contraction over several axes, as ``np.tensordot``.

    Args:
      a: first operand.
      b: second operand.
      axes: how many last axes of ``a`` and first axes of ``b``; or a pair of axes or of sequences
        of axes.

    Raises:
      ShapeError: extents do not fit.
      AxisError: an axis does not exist.
    """
    a_ndim, b_ndim = len(shape_of(a)), len(shape_of(b))
    try:
        first, second = axes
    except TypeError:
        count = max(operator.index(axes), 0)  # as NumPy's: fewer than none are none
        if count > min(a_ndim, b_ndim):
            raise ShapeError(
                f"tensordot: axes={count} of operands of rank {a_ndim} and {b_ndim}; it must be "
                f"at most {min(a_ndim, b_ndim)}{here()}"
            ) from None
        first, second = range(a_ndim - count, a_ndim), range(count)
    contract = tuple(
        tuple(np.atleast_1d(given).tolist()) if np.size(given) else () for given in (first, second)
    )
    return dot_general(a, b, contract)


PRIMITIVES: tuple[Primitive, ...] = (dot_general_p,)
