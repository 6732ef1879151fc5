"""``torch.sparse``: matrices of which some elements are given (COO), for products with dense ones.

Here: ``sparse_coo_tensor`` and ``dsmm`` of ``torch``, and the types by dtype. They are made of
operations on tensors, which differentiate them. Not here: other layouts, arithmetic, slices; use
``scipy.sparse`` beside tensors, or a mask.

Layer: ``compat``.
"""

from __future__ import annotations

import math
from typing import Any

from functrans.autograd.methods.conversion import CPU
from functrans.autograd.sizes import Size
from functrans.autograd.tensors import Tensor, called, refuse_device
from functrans.compat.torch.functional_names import FUNCTIONS, TORCH
from functrans.compat.torch.not_offered import nothing_else
from functrans.core.boundary import boundary


class SparseTensor:
    """Values at places, zeros elsewhere; those of one place are added up.

    Args:
      indices: places, ``[n_axes, n]``.
      values: one for each place.
      size: extents.

    Raises:
      RuntimeError: the shapes or indices do not fit.
      TypeError: the values are not of the type's dtype.
    """

    is_sparse, is_cuda, device = True, False, CPU

    def __init__(self, indices: Tensor, values: Tensor, size: Any) -> None:
        shape = Size(size)
        if tuple(indices.shape) != (len(shape), *values.shape) or len(values.shape) != 1:
            raise RuntimeError(
                f"sparse tensors have indices of shape [{len(shape)}, n] and n values for "
                f"{len(shape)} axes, but got {list(indices.shape)} and {list(values.shape)}"
            )
        for axis, extent in enumerate(shape if values.shape[0] else ()):
            low, high = int(indices[axis].min()), int(indices[axis].max())
            if low < 0 or high >= extent:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {axis}, size is {extent} but "
                    f"found index {low if low < 0 else high}"
                )
        kind: Any = _TYPES.get(str(values.dtype))
        if kind is None or not issubclass(kind, type(self)):
            raise TypeError(f"{type(self).__name__}() got values of dtype {values.dtype}")
        self.__class__ = kind
        self.places, self.entries, self.shape, self.dtype = indices, values, shape, values.dtype

    requires_grad = property(lambda self: self.entries.requires_grad)
    mT = property(lambda self: self.transpose(-1, -2))  # noqa: N815  # torch's name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"sparse tensors have no {name!r} here; they are multiplied by dense matrices, and "
            "become dense by to_dense()",
            name=name,
        )

    def _indices(self) -> Tensor:
        return self.places

    def _values(self) -> Tensor:
        return self.entries

    def size(self, dim: int | None = None) -> Any:
        """All extents, or that of an axis."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    ndimension = dim

    def transpose(self, dim0: int, dim1: int) -> SparseTensor:
        """Two axes exchanged."""
        order = list(range(self.dim()))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return SparseTensor(self.places[order], self.entries, [self.shape[i] for i in order])

    def t(self) -> SparseTensor:
        """A matrix transposed."""
        return self.transpose(0, 1)

    def to_dense(self) -> Tensor:
        """All elements."""
        steps = [math.prod(self.shape[axis + 1 :]) for axis in range(self.dim())]
        flat = sum(row * step for row, step in zip(self.places, steps, strict=True))
        whole = self.entries.new_zeros(math.prod(self.shape))
        return whole.index_add(0, flat, self.entries).reshape(self.shape)

    def matmul(self, dense: Tensor) -> Tensor:
        """The product with a dense matrix, or a vector."""
        (rows, columns), count = self.places, self.shape[0]
        values = self.entries if len(dense.shape) == 1 else self.entries[:, None]
        terms = dense.index_select(0, columns) * values
        return dense.new_zeros((count, *dense.shape[1:])).index_add(0, rows, terms)

    __matmul__ = matmul

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Products with dense matrices from the left."""
        if func.__name__ in ("mm", "matmul", "mv") and isinstance(args[0], cls) and not kwargs:
            return args[0].matmul(*args[1:])
        return NotImplemented


_TYPES = {
    f"torch.{dtype}": type(f"{name}Tensor", (SparseTensor,), {})
    for name, dtype in {
        "Byte": "uint8", "Char": "int8", "Double": "float64", "Float": "float32",
        "Half": "float16", "Int": "int32", "Long": "int64", "Short": "int16",
    }.items()
}  # fmt: skip
globals().update({kind.__name__: kind for kind in _TYPES.values()})


@boundary
def sparse_coo_tensor(
    indices: Any, values: Any, size: Any = None, *, dtype: Any = None, device: object = None,
    requires_grad: bool = False, check_invariants: object = None, is_coalesced: object = None,
) -> SparseTensor:  # fmt: skip
    """A sparse tensor of values at places.

    Args:
      indices: ``[n_axes, n]``.
      values: ``[n]``.
      size: extents; by default those that the indices need.
      dtype: of the values.
      device: must be the CPU.
      requires_grad: whether the values get gradients.
      check_invariants: accepted: they are checked.
      is_coalesced: accepted.

    Example:
      >>> import functrans.compat.torch as torch
      >>> places = torch.tensor([[0, 1, 1], [1, 0, 1]])
      >>> sparse = torch.sparse_coo_tensor(places, torch.tensor([1.0, 2.0, 3.0]), (2, 2))
      >>> torch.dsmm(sparse, torch.ones(2, 1))
      tensor([[1.],
              [5.]])
    """
    refuse_device(device)
    places = TORCH.as_tensor(indices)
    given = TORCH.as_tensor(values, dtype=dtype)
    if requires_grad:
        given = given.detach().requires_grad_()
    return SparseTensor(places, given, (places.amax(1) + 1).tolist() if size is None else size)


def _product(mat1: Any, mat2: Tensor) -> Tensor:
    """The product of a sparse and a dense matrix."""
    found: Tensor = FUNCTIONS["matmul"](mat1, mat2)
    return found


mm, dsmm, spmm = (boundary(called(_product, name)) for name in ("mm", "dsmm", "spmm"))

__getattr__ = nothing_else(__name__)
