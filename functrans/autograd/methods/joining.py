"""Operations that join or rearrange tensors into new memory: ``cat``, ``roll``, ``tril``, ...

Layer: ``autograd``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.composites import composite
from functrans.autograd.methods.arithmetic import joined
from functrans.autograd.methods.rows import (
    Row,
    by_name,
    check_tensor,
    constant,
    copied,
    documented,
    floating,
    functions_of,
    looked_at,
    methods_of,
    rows_of,
    with_out,
    with_out_by_name,
)
from functrans.autograd.methods.shaping import (
    axis_of,
    expand,
    extents,
    new_extents,
    refuse_number,
    reshape,
    reshaped,
)
from functrans.autograd.overrides import type_name
from functrans.autograd.promotion import result_dtype, torch_kind
from functrans.autograd.sizes import Size, integer
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import shape_of
from functrans.primitives import creation, movement, structural
from functrans.primitives import elementwise as ew

# joining -----------------------------------------------------------------------------------------


def _list_of(name: str, tensors: object) -> list[Tensor]:
    """Tensors of a sequence."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not "
            f"{type(tensors).__name__}"
        )
    if not tensors:
        raise ValueError(f"{name}(): expected a non-empty list of Tensors")
    for i, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type_name(x)}")
    return list(tensors)


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors one after the other along an axis.

    Raises:
      RuntimeError: there are none, one has no axes, or the other extents differ.
    """
    parts = _list_of("torch.cat", tensors)
    for i, x in enumerate(parts):
        if not x.shape:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    dtype = result_dtype(*parts)
    rest = [x for x in parts if x.shape != (0,)] or parts
    first = rest[0].shape
    axis = axis_of(dim, len(first))
    for i, x in enumerate(rest):
        if len(x.shape) != len(first):
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {len(first)} and {len(x.shape)}"
            )
        for k, (n, m) in enumerate(zip(first, x.shape, strict=True)):
            if k != axis and n != m:
                raise RuntimeError(
                    "Sizes of tensors must match except in dimension "
                    f"{axis}. Expected size {n} but got size {m} for tensor number {i} in the list."
                )
    return composite("Cat", lambda *xs: movement.concatenate(xs, axis, dtype), *rest)


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape along another axis.

    Raises:
      RuntimeError: there are none, or the shapes differ.
    """
    parts = _list_of("stack", tensors)
    axis = axis_of(dim, len(parts[0].shape) + 1)
    for i, x in enumerate(parts):
        if x.shape != parts[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(parts[0].shape)} at "
                f"entry 0 and {list(x.shape)} at entry {i}"
            )
    dtype = result_dtype(*parts)
    return composite("Stack", lambda *xs: movement.stack(xs, axis, dtype), *parts)


def at_least(ndim: int, x: Tensor) -> Tensor:
    """A tensor with axes of extent 1 put around it until it has enough of them."""
    have = len(x.shape)
    if have >= ndim:
        return x
    shapes = {
        1: (1,),
        2: (1, *x.shape) if have else (1, 1),
        3: {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}.get(have, ()),
    }
    return reshaped(x, shapes[ndim], "Unsqueeze")


def _atleast(ndim: int) -> Callable[..., Any]:
    def operation(*tensors: Any) -> Any:
        many = len(tensors) == 1 and isinstance(tensors[0], (tuple, list))
        given = tuple(tensors[0]) if many else tensors
        for i, x in enumerate(given):
            check_tensor(f"atleast_{ndim}d", x, "tensors", i + 1)
        found = tuple([at_least(ndim, x) for x in given])
        return found[0] if len(given) == 1 and not many else found

    operation.__doc__ = f"Tensors with at least {ndim} axes."
    return operation


def _stacked(ndim: int, axis_for: Callable[[int], int]) -> Callable[..., Any]:
    def operation(tensors: Sequence[Tensor]) -> Tensor:
        parts = [at_least(ndim, x) for x in _list_of("stack", tensors)]
        return cat(parts, axis_for(len(parts[0].shape)))

    operation.__doc__ = "Tensors one after the other along one of the first axes."
    return operation


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Vectors and matrices as columns side by side."""
    parts = [
        reshape(x, (math.prod(x.shape), 1)) if len(x.shape) < 2 else x
        for x in _list_of("column_stack", tensors)
    ]
    return cat(parts, 1)


def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of a larger one."""
    parts = [at_least(2, x) for x in _list_of("torch.block_diag", tensors)]
    rows, columns = (sum(x.shape[i] for x in parts) for i in (0, 1))
    dtype = result_dtype(*parts)

    def of(*xs: object) -> Any:
        above = left = 0
        lines = []
        for x in xs:
            m, n = shape_of(x)
            config = ((0, 0, 0), (left, columns - left - n, 0))
            lines.append(movement.pad(structural.cast(x, dtype), dtype.type(0), config))
            above, left = above + m, left + n
        return movement.concatenate(lines, 0, dtype) if rows else lines[0]

    return composite("BlockDiag", of, *parts)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinates of a grid: each vector along its own axis."""
    parts = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    if indexing not in ("ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[:2] = [1, 0]
    sizes = [math.prod(parts[i].shape) for i in order]
    grids = []
    for i, x in enumerate(parts):
        shape = [1] * len(parts)
        shape[order.index(i)] = -1
        grids.append(expand(reshape(x, shape), sizes))
    return tuple(grids)


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Tensors expanded to their common extents.

    Raises:
      RuntimeError: they do not broadcast.
    """
    parts = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    for i, x in enumerate(parts):
        check_tensor("broadcast_tensors", x, "tensors", i + 1)
    shape = broadcast_shapes(*[x.shape for x in parts])
    return tuple([x if x.shape == shape else expand(x, shape) for x in parts])


def broadcast_shapes(*shapes: Any) -> Size:
    """The common extents of several shapes.

    Raises:
      RuntimeError: there are none.
    """
    try:
        return Size(np.broadcast_shapes(*shapes))
    except ValueError:
        raise RuntimeError(
            "Shape mismatch: objects cannot be broadcast to a single shape: "
            f"got {', '.join(map(repr, map(tuple, shapes)))}"
        ) from None


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of elements of vectors, a row each."""
    if len(tensors) == 1:
        check_tensor("cartesian_prod", tensors[0], "tensors")
        return tensors[0]
    return stack([reshape(grid, -1) for grid in meshgrid(*tensors)], 1)


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of ``r`` elements of a vector, a row each."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    r = integer(r, "r", "combinations", least=0, words="Expect a non-negative number, but got {}")
    chosen = list(choose(range(input.shape[0]), r))
    index = np.array(chosen, np.int64).reshape(len(chosen), r)
    if not r:
        return input[:0]
    return composite("Stack", lambda x: x[index] if index.size else fnp.take(x, index), input)


# repeating and moving ----------------------------------------------------------------------------


def repeat(self: Tensor, *args: Any, repeats: Any = None) -> Tensor:
    """The tensor side by side with itself, as often as asked along each axis.

    Raises:
      RuntimeError: there are fewer numbers than axes.
    """
    counts = extents(args or (repeats,), "repeat", "repeats")
    if len(counts) < len(self.shape):
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            "tensor"
        )
    own = (1,) * (len(counts) - len(self.shape)) + self.shape
    new_extents([n * k for n, k in zip(own, counts, strict=True)], "repeat")
    return composite("Repeat", lambda x: fnp.tile(x, counts), self)


def tile(self: Tensor, *args: Any, dims: Any = None) -> Tensor:
    """As ``repeat``; numbers that are missing in front are 1."""
    counts = extents(args or (dims,), "tile", "dims")
    return repeat(self, (1,) * (len(self.shape) - len(counts)) + counts)


def repeat_interleave(
    self: Tensor, repeats: Any, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element of an axis several times.

    Raises:
      RuntimeError: negative numbers, or another extent of the result than was told.
    """
    flat = reshape(self, -1) if dim is None else self
    axis = 0 if dim is None else axis_of(dim, len(self.shape))
    if not flat.shape:  # the words of PyTorch
        axis_of(axis + 1, 0)
    if not isinstance(repeats, (Tensor, np.ndarray)):
        words = "Repeats must be non-negative"
        repeats = integer(repeats, "repeats", "repeat_interleave", "int or Tensor", 0, words)
    elif output_size is not None and int(looked_at(repeats).sum()) != output_size:
        raise RuntimeError("allocated size does not match required size")
    label = "IndexSelect" if isinstance(repeats, Tensor) else "View"
    return composite(label, lambda x, counts: fnp.repeat(x, counts, axis), flat, repeats)


def _repeat_interleave(
    self: Tensor, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None
) -> Tensor:
    """Each element of an axis several times; of numbers alone, the place of each as often."""
    if repeats is not None:
        return repeat_interleave(self, repeats, dim, output_size=output_size)
    if len(self.shape) != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if self.dtype not in (np.int32, np.int64):
        kind = torch_kind(self.dtype)
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{kind}'")
    if (looked_at(self) < 0).any():
        raise RuntimeError("repeats can not be negative")
    places = constant(np.arange(len(looked_at(self)), dtype=self.dtype), self)
    return repeat_interleave(places, self, output_size=output_size)


def roll(self: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Elements moved along axes, those from the end to the beginning.

    Raises:
      RuntimeError: the numbers of shifts and axes differ.
    """
    steps = extents((shifts,), "roll", "shifts")
    if not steps:
        raise RuntimeError("`shifts` required")
    if dims is None or (isinstance(dims, (tuple, list)) and not dims):
        return composite("Roll", lambda x: fnp.roll(x, sum(steps)), self)
    given = dims if isinstance(dims, (tuple, list)) else (dims,)
    axes = tuple(axis_of(d, len(self.shape)) for d in given)
    refuse_number(
        len(self.shape), "Dimension specified as 0 but tensor has no dimensions", IndexError
    )
    if len(axes) != len(steps):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}"
        )
    return composite("Roll", lambda x: movement.roll(x, steps, axes), self)


def flip(self: Tensor, *args: Any, dims: Any = None) -> Tensor:
    """Axes the other way round."""
    axes = tuple(axis_of(d, len(self.shape)) for d in extents(args or (dims,), "flip", "dims"))
    if len(set(axes)) != len(axes):
        raise RuntimeError(f"dim {axes[0]} appears multiple times in the list of dims")
    if not axes or not self.shape:
        return copied(self, "Flip")
    return composite("Flip", lambda x: movement.reverse(x, axes), self)


def rot90(self: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """The plane of two axes turned by right angles.

    Raises:
      RuntimeError: there are not two axes.
    """
    ndim, k = len(self.shape), integer(k, "k", "rot90")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    return composite("Rot90", lambda x: fnp.rot90(x, k, tuple(dims)), self)


# diagonals and triangles -------------------------------------------------------------------------


def diag(self: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with a vector on its diagonal, or the diagonal of a matrix.

    Raises:
      RuntimeError: it is neither vector nor matrix.
    """
    offset = integer(diagonal, "diagonal", "diag")
    if len(self.shape) == 1:
        return diag_embed(self, offset)
    if len(self.shape) != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {len(self.shape)}D")
    return composite("DiagonalBackward0_copy", lambda x: creation.diagonal(x, offset), self)


def diag_embed(self: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices with the last axis on their diagonals."""
    ndim, offset = len(self.shape) + 1, integer(offset, "offset", "diag_embed")
    i, j = axis_of(dim1, ndim), axis_of(dim2, ndim)
    if i == j:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if i > j:
        i, j, offset = j, i, -offset

    def of(x: Any) -> Any:
        *lead, n = shape_of(x)
        inside = ew.where(np.eye(n, dtype=bool), structural.reshape(x, (*lead, 1, n)), 0)
        around = [(0, 0, 0)] * len(lead)
        above, left = (max(-offset, 0), max(offset, 0))
        around += [(above, left, 0), (left, above, 0)]
        full = movement.pad(structural.cast(inside, x.dtype), x.dtype.type(0), around)
        order = list(range(len(lead)))
        order.insert(i, len(lead))
        order.insert(j, len(lead) + 1)
        return structural.transpose(full, tuple(order))

    return composite("DiagEmbed", of, self)


def diagflat(self: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on its diagonal."""
    return diag_embed(reshape(self, -1), offset)


def _triangle(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    label = name.capitalize()

    def operation(self: Tensor, diagonal: int = 0) -> Tensor:
        if len(self.shape) < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        count = integer(diagonal, "diagonal", name)
        return composite(label, lambda x: function(x, count), self)

    return documented(operation, name, "A triangle of matrices, 0 elsewhere.")


def _triangle_indices(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def operation(row: int, col: int, offset: int = 0, *, dtype: Any = None, **_: object) -> Tensor:
        row, col = (
            integer(n, each, name, "int", 0, f"{each} must be non-negative, got{{}}")
            for each, n in (("row", row), ("col", col))
        )
        places = np.stack(function(row, integer(offset, "offset", name), col))
        result = constant(places.astype(dtype or np.int64))
        result._follows = True
        return result

    operation.__doc__ = "Row and column of each element of a triangle."
    return operation


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The matrix of powers of a vector."""
    dtype = np.result_type(x.dtype, np.int64) if x.dtype.kind in "iub" else x.dtype
    N = N if N is None else integer(N, "N", "vander", least=0, words="N must be non-negative.")
    return composite("Cumprod", lambda v: structural.cast(fnp.vander(v, N, increasing), dtype), x)


def refuse_bools(name: str, **operands: Tensor | None) -> None:
    """Refuse operands of truth values."""
    for argument, operand in operands.items():
        if operand is not None and operand.dtype.kind == "b":
            raise RuntimeError(
                f"{name}: received a bool input for `{argument}`, but bool is not supported"
            )


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The integral along an axis by the trapezoidal rule.

    Raises:
      RuntimeError: a tensor is of truth values.
    """
    refuse_bools("trapezoid", y=y, x=x)
    axis = axis_of(dim, len(y.shape))
    if x is None:
        return composite("MulBackward1", lambda v: fnp.trapezoid(v, dx=dx, axis=axis), floating(y))
    return joined("DivBackward1", lambda v, at: fnp.trapezoid(v, at, axis=axis), y, x, true=True)


def constant_pad_nd(input: Tensor, pad: Sequence[int], value: float = 0) -> Tensor:
    """A constant added before and after axes; pairs of numbers, the last axis first.

    Raises:
      RuntimeError: the numbers do not fit.
    """
    pad = extents(pad, "pad", "pad")
    if len(pad) % 2 or len(pad) > 2 * len(input.shape):
        raise RuntimeError(
            "Padding length must be divisible by 2 and at most twice the number of dimensions of "
            f"the input, but got {len(pad)} for {len(input.shape)}D"
        )
    pairs = [(before, after, 0) for before, after in zip(pad[::2], pad[1::2], strict=True)][::-1]
    config = [(0, 0, 0)] * (len(input.shape) - len(pairs)) + pairs
    filler = input.dtype.type(0 if value is None else value)
    return composite("ConstantPadNd", lambda x: movement.pad(x, filler, config), input)


ROWS: tuple[Row, ...] = (
    *rows_of("m", repeat, repeat_interleave),
    *rows_of("mf", tile, roll, flip, rot90, diag, diag_embed, diagflat),
    *rows_of("mfi", _triangle("tril", creation.tril), _triangle("triu", creation.triu)),
    *rows_of("f", combinations, vander),
    Row("repeat_interleave", _repeat_interleave, (), "f"),
    Row("fliplr", lambda self: flip(self, 1)),
    Row("flipud", lambda self: flip(self, 0)),
)  # fmt: skip

METHODS: dict[str, Any] = methods_of(ROWS)
FUNCTIONS: dict[str, Any] = {
    **functions_of(ROWS),
    **{name: with_out(name, cat) for name in ("cat", "concat", "concatenate")},
    **by_name(
        block_diag, constant_pad_nd, trapezoid, meshgrid, broadcast_tensors, broadcast_shapes,
        cartesian_prod,
    ),
    **with_out_by_name(stack, column_stack),
    "hstack": with_out("hstack", _stacked(1, lambda ndim: 0 if ndim == 1 else 1)),
    "vstack": with_out("vstack", _stacked(2, lambda ndim: 0)),
    "row_stack": with_out("row_stack", _stacked(2, lambda ndim: 0)),
    "dstack": with_out("dstack", _stacked(3, lambda ndim: 2)),
    "trapz": trapezoid,
    "atleast_1d": _atleast(1),
    "atleast_2d": _atleast(2),
    "atleast_3d": _atleast(3),
    "tril_indices": _triangle_indices("tril_indices", np.tril_indices),
    "triu_indices": _triangle_indices("triu_indices", np.triu_indices),
}  # fmt: skip
