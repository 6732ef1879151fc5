"""Methods of ``Tensor`` that share its memory: views.

Here: other extents, other orders of axes. Not here: parts (``parts``, ``indexing``), what makes new
memory (``joining``), views of complex numbers (``complex_numbers``).

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from functrans.autograd.composites import named
from functrans.autograd.dtypes import DTYPE_LIKE
from functrans.autograd.methods.layouts import viewed_layout
from functrans.autograd.methods.rows import (
    Row,
    functions_of,
    methods_of,
    plain,
    rows_of,
)
from functrans.autograd.modes import RECORDING, entered, modes
from functrans.autograd.nodes import leaf_like
from functrans.autograd.residuals import root_of, twins_of
from functrans.autograd.sizes import integer, wrong_type
from functrans.autograd.tensors import Tensor
from functrans.autograd.views import on_either, view
from functrans.autograd.writes import (
    check_captured,
    check_expands,
    check_inference,
    check_leaf,
    follow_twins,
)
from functrans.core.dispatch import Tracer
from functrans.numpy.common import NO_VALUE
from functrans.primitives import structural

Shape = tuple[int, ...]

# arguments ---------------------------------------------------------------------------------------


def extents(sizes: Any, name: str, argument: str = "size") -> Shape:
    """Sizes given one by one or as one sequence.

    Raises:
      TypeError: one of them is no integer.
    """
    if not isinstance(sizes, (tuple, list)):
        raise wrong_type(sizes, argument, name, "tuple of ints")
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = sizes[0]
    if len(sizes) > 1:  # a truth value in front is refused, and others are not, as in PyTorch
        sizes = [sizes[0], *[int(n) if type(n) is bool else n for n in sizes[1:]]]
    return tuple([integer(n, argument, name, "tuple of ints") for n in sizes])


def new_extents(sizes: Any, name: str) -> Shape:
    """Those of a tensor that is made.

    Raises:
      TypeError: one of them is no integer.
      RuntimeError: one of them is negative.
    """
    found = extents(sizes, name)
    for n in found:
        if n < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {[*found]}")
    return found


def axis_of(dim: int, ndim: int) -> int:
    """A dimension counted from the front.

    Raises:
      IndexError: there is no such dimension.
      TypeError: it is no integer.
    """
    dim = integer(dim, "dim")
    low, high = (-ndim, ndim - 1) if ndim else (-1, 0)
    if not low <= dim <= high:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})"
        )
    return dim % ndim if ndim else 0


def refuse_number(ndim: int, message: str, kind: type[Exception] = RuntimeError) -> None:
    """Refuse a tensor without axes.

    Raises:
      RuntimeError: it has none; or an error of another kind.
    """
    if not ndim:
        raise kind(message)


def resolved(shape: Shape, size: int) -> Shape:
    """Extents with -1 replaced.

    Raises:
      RuntimeError: the sizes do not fit.
    """
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    known = math.prod(n for n in shape if n != -1)
    if -1 in shape:
        if not known and not size:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
                "unspecified dimension size -1 can be any value and is ambiguous"
            )
        if not known or size % known:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
        return tuple(size // known if n == -1 else n for n in shape)
    if known != size:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return shape


# extents -----------------------------------------------------------------------------------------


def reshaped(self: Tensor, shape: Shape, label: str) -> Tensor:
    """A view with other extents."""
    return view(label, self, lambda x: structural.reshape(x, shape), lambda x: np.reshape(x, shape))


def _is_viewable(self: Tensor, shape: Shape) -> bool:
    own = viewed_layout(self)
    if not own.size:
        return True
    try:
        np.reshape(own, shape, copy=False)
    except ValueError:
        return False
    return True


def reshape(self: Tensor, *args: Any, shape: Any = None) -> Tensor:
    """The same elements in C order with other extents: a view where the layout allows it."""
    full = resolved(extents(args or (shape,), "reshape", "shape"), math.prod(self.shape))
    if _is_viewable(self, full):
        return reshaped(self, full, "View")
    if isinstance(self._value, Tracer):
        self = self.contiguous()
    return reshaped(self, full, "UnsafeView")


def view_as_shape(self: Tensor, *args: Any, size: Any = None) -> Tensor:
    """A view with other extents, or of another dtype.

    Raises:
      RuntimeError: the memory layout allows no view.
    """
    if len(args) == 1 and isinstance(args[0], DTYPE_LIKE):
        return _reinterpreted(self, np.dtype(args[0]))
    full = resolved(extents(args or (size,), "view"), math.prod(self.shape))
    if not _is_viewable(self, full):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return reshaped(self, full, "View")


def _reinterpreted(self: Tensor, dtype: np.dtype) -> Tensor:
    """The same bytes as another dtype."""
    if self._view is not None and self._view.is_copied:
        raise RuntimeError(
            "torch.Tensor.view is not supported for conjugate view tensors when converting to a "
            "different dtype."
        )
    own = np.asarray(plain(self))
    if not own.ndim and dtype.itemsize != own.itemsize:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {own.dtype} as {dtype} (different element sizes)"
        )
    result = self.detach()
    result._value = self._memory().view(dtype)
    return result


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """A view with the extents of another tensor."""
    return view_as_shape(self, other.shape)


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """The same elements with the extents of another tensor."""
    return reshape(self, other.shape)


def flatten(self: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Neighbouring axes as one.

    Raises:
      RuntimeError: the first axis comes after the last.
    """
    ndim = len(self.shape)
    start, end = axis_of(start_dim, ndim), axis_of(end_dim, ndim)
    if not ndim:
        return reshape(self, 1)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start == end:
        return self
    shape = self.shape
    return reshape(self, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


def ravel(self: Tensor) -> Tensor:
    """All axes as one, its elements side by side."""
    return reshape(self.contiguous(), -1) if math.prod(self.shape) else reshape(self, 0)


def unflatten(self: Tensor, dim: int, sizes: Any) -> Tensor:
    """One axis as several.

    Raises:
      RuntimeError: the sizes do not fit.
    """
    axis = axis_of(dim, len(self.shape))
    refuse_number(
        len(self.shape), "unflatten: Dimension specified as 0 but tensor has no dimensions"
    )
    n, sizes = self.shape[axis], extents((sizes,), "unflatten", "sizes")
    known = math.prod(size for size in sizes if size != -1)
    if (-1 not in sizes and known != n) or (-1 in sizes and (not known or n % known)):
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({n}) in the input tensor"
        )
    return reshape(self, (*self.shape[:axis], *resolved(sizes, n), *self.shape[axis + 1 :]))


def squeeze(self: Tensor, dim: Any = NO_VALUE) -> Tensor:
    """Without axes of extent 1: all, or some."""
    ndim = len(self.shape)
    label = "Squeeze"
    if dim is NO_VALUE:
        drop = {i for i, n in enumerate(self.shape) if n == 1}
    else:
        label = "SqueezeBackward2" if isinstance(dim, (tuple, list)) else "SqueezeBackward1"
        dims = dim if isinstance(dim, (tuple, list)) else (dim,)
        drop = {axis_of(d, max(ndim, 1)) for d in dims}  # numbers have an axis to name
        drop = {i for i in drop if i < ndim and self.shape[i] == 1}
    shape = tuple(n for i, n in enumerate(self.shape) if i not in drop)
    return reshaped(self, shape, label)


def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """With another axis of extent 1."""
    at = axis_of(dim, len(self.shape) + 1)
    return reshaped(self, (*self.shape[:at], 1, *self.shape[at:]), "Unsqueeze")


def expand(self: Tensor, *args: Any, size: Any = None) -> Tensor:
    """Axes of extent 1 repeated, without memory; -1 leaves an axis as it is.

    Raises:
      RuntimeError: the sizes do not fit.
    """
    shape = extents(args or (size,), "expand")
    if len(shape) < len(self.shape):
        raise RuntimeError(
            f"expand({torch_text(self)}, size={list(shape)}): the number of sizes provided "
            f"({len(shape)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(self.shape)})"
        )
    full = check_expands(self.shape, shape)
    return view(
        "Expand",
        self,
        lambda x: structural.broadcast_to(x, full),
        lambda x: x[...] if x.shape == full else _repeated(x, full),
    )


def torch_text(self: Tensor) -> str:
    """How torch describes a tensor in messages: its dtype and sizes."""
    return f"torch.{self.dtype.name}{list(self.shape)}"


def _repeated(x: np.ndarray, shape: Shape) -> np.ndarray:
    """An array broadcast; parts of it that do not overlap can be written to."""
    steps = (0,) * (len(shape) - x.ndim) + x.strides
    own = (1,) * (len(shape) - x.ndim) + x.shape
    strides = [0 if n == 1 else step for n, step in zip(own, steps, strict=True)]
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=x.flags.writeable)


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Expanded to the extents of another tensor."""
    return expand(self, other.shape)


# order of axes -----------------------------------------------------------------------------------


def permute(self: Tensor, *args: Any, dims: Any = None) -> Tensor:
    """Axes in another order.

    Raises:
      RuntimeError: they are no permutation.
    """
    ndim = len(self.shape)
    given = extents(args or (dims,), "permute", "dims")
    if len(given) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the "
            f"length of the desired ordering of dimensions i.e. input.dim() = {ndim} is not equal "
            f"to len(dims) = {len(given)}"
        )
    axes = tuple(axis_of(d, ndim) for d in given)
    if sorted(axes) != list(range(ndim)):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return permuted(self, axes, "Permute")


def permuted(self: Tensor, axes: Shape, label: str) -> Tensor:
    """Axes in another order, all given and none negative."""
    return view(
        label, self, lambda x: structural.transpose(x, axes), lambda x: np.transpose(x, axes)
    )


def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two axes exchanged."""
    ndim = len(self.shape)
    axes = list(range(ndim))
    i, j = axis_of(dim0, ndim), axis_of(dim1, ndim)
    if ndim:
        axes[i], axes[j] = axes[j], axes[i]
    return permuted(self, tuple(axes), "Transpose")


def t(self: Tensor) -> Tensor:
    """A matrix transposed; a vector as it is.

    Raises:
      RuntimeError: there are more than two axes.
    """
    if len(self.shape) > 2:
        raise RuntimeError(
            f"t() expects a tensor with <= 2 dimensions, but self is {len(self.shape)}D"
        )
    return permuted(self, tuple(reversed(range(len(self.shape)))), "T")


def _reversed_axes(self: Tensor) -> Tensor:
    return permuted(self, tuple(reversed(range(len(self.shape)))), "Permute")


def matrix_transposed(self: Tensor) -> Tensor:
    """The last two axes exchanged.

    Raises:
      RuntimeError: there is one.
    """
    if len(self.shape) == 1:
        raise RuntimeError(
            "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor."
        )
    return transpose(self, -2, -1) if self.shape else self


def adjoint(self: Tensor) -> Tensor:
    """The conjugate of the transposed matrix."""
    turned = matrix_transposed(self)
    return turned.conj() if self.dtype.kind == "c" else turned


def movedim(self: Tensor, source: object, destination: object) -> Tensor:
    """Some axes put elsewhere, the others in order."""
    ndim = len(self.shape)
    sources = source if isinstance(source, (tuple, list)) else (source,)
    targets = destination if isinstance(destination, (tuple, list)) else (destination,)
    if len(sources) != len(targets):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(sources)} dims) should contain the same number of dims as destination "
            f"({list(targets)} dims)"
        )
    sources = [axis_of(d, ndim) for d in sources]
    targets = [axis_of(d, ndim) for d in targets]
    if not ndim:
        return permuted(self, (), "Permute")
    order = [axis for axis in range(ndim) if axis not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return permuted(self, tuple(order), "Permute")


# in place ----------------------------------------------------------------------------------------


def reformed(function: Callable[..., Tensor], label: str) -> Callable[..., Any]:
    """The in-place form of a view: the tensor itself becomes it."""

    def method(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        is_traced = isinstance(self._value, Tracer)
        if modes.level:
            check_captured(self)
            if is_traced and id(self) in self._trace.arguments:  # type: ignore[attr-defined]  # its trace has
                raise RuntimeError(
                    f"{self._trace.label} changes the shape of an argument in place, and the "
                    "tensor that was given to the transform would keep its own. Use the operation "
                    "without the underscore."
                )
            originals = [self]
            while id(originals[-1]) in modes.derivative[1]:
                originals.append(modes.derivative[1][id(originals[-1])])
            for original in originals[:0:-1]:
                become(original, *args, **kwargs)
        return become(self, *args, **kwargs)

    def become(self: Tensor, *args: object, **kwargs: object) -> Tensor:
        is_traced = isinstance(self._value, Tracer)
        node = None if is_traced else self._node
        how = self._view
        check_inference(self)
        if modes.grad and not modes.inference:
            root = root_of(self)
            for x in (self, *(twins_of(root) if root._dual else ())):
                check_leaf(x)
        elif node is not None and node.primitive is None:
            made = function(self.detach() if how is None else self, *args, **kwargs)
            self._stored().version += 1
            if made.shape == self.shape and made.stride() == self.stride():
                return self  # as it was, and so is its place in the graph
            _become(self, made, leaf_like(node, made), function in (t, transpose))
            node.is_turned = True
            return self
        is_kept = not modes.grad and (is_traced or node is not None)  # as derivatives are kept
        with entered(RECORDING) if is_kept else nullcontext():
            made = function(self, *args, **kwargs)
            twins = [function(x, *args, **kwargs) for x in twins_of(self)] if self._dual else ()
        if not is_traced:
            own = f"SqueezeBackward{3 + int(made._node.name()[-1])}" if _is_squeeze(made) else label
            named(made, own)
        _become(self, made, made._node, function in (t, transpose))
        if twins:
            self._dual = (*twins, twins[1])
            follow_twins(self)
        if is_traced:
            return self
        self._stored().version += 1
        if self._view is not None:
            self._view.note_version(self._storage.version)  # type: ignore[union-attr]  # it was made
        return self

    method.__doc__ = f"In place: {function.__doc__}"
    return method


def _become(x: Tensor, made: Tensor, node: Any, is_exchange: bool) -> None:
    """Let a tensor be a view of itself; the views of it stay what they are.

    Args:
      x: the tensor.
      made: the view.
      node: the place of the tensor in the graph from now on.
      is_exchange: whether the view exchanges axes; else it adds some of extent 1, or leaves them.
    """
    shape, how = x.shape, x._view
    x._value, x._node = made._value, node
    if made._view is None:
        return
    if how is not None and how.detach is None:
        x._view = made._view  # later writes go through this one, too
        return
    step = made._view.steps[-1]
    if how is not None:
        how.steps = (*how.steps, step)
    if is_exchange:
        probe = np.broadcast_to(0.0, range(2, len(shape) + 2))  # its extents tell axes apart
        order = tuple(np.argsort(step(probe).shape).tolist())
        back = on_either(lambda x: structural.transpose(x, order), lambda x: np.transpose(x, order))
    else:
        back = on_either(lambda x: structural.reshape(x, shape), lambda x: x.reshape(shape))
    for held in [reference() for reference in x._stored().views]:
        if held is not None and held is not made and held._view.base is x:
            held._view.steps = (back, *held._view.steps)


def _is_squeeze(x: Tensor) -> bool:
    """Whether the node of a tensor is a squeeze; its number tells which axes were named."""
    return x._node is not None and x._node.name().startswith("Squeeze")


ROWS: tuple[Row, ...] = (
    *rows_of("mf", reshape, flatten, ravel, unflatten, squeeze, unsqueeze, permute, t, adjoint),
    *rows_of("m", view_as, reshape_as, expand, expand_as),
    Row("broadcast_to", expand),
    Row("transpose", transpose, ("swapaxes", "swapdims")),
    Row("movedim", movedim, ("moveaxis",)),
)  # fmt: skip

METHODS: dict[str, Any] = {
    **methods_of(ROWS),
    "view": view_as_shape,
    "T": property(_reversed_axes),
    "mT": property(matrix_transposed),
    "H": property(adjoint),
    "mH": property(adjoint),
    "t_": reformed(t, "TBackward1"),
    "transpose_": reformed(transpose, "TransposeBackward1"),
    "swapaxes_": reformed(transpose, "TransposeBackward1"),
    "swapdims_": reformed(transpose, "TransposeBackward1"),
    "squeeze_": reformed(squeeze, "SqueezeBackward1"),
    "unsqueeze_": reformed(unsqueeze, "UnsqueezeBackward1"),
}
FUNCTIONS: dict[str, Any] = functions_of(ROWS)
