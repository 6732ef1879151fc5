"""Torch's oldest constructors: ``Tensor(...)``, ``tensor.new(...)``, ``FloatTensor(...)``.

Here: ``TensorType``, the types by dtype, which make, check and convert tensors; what their
constructors have in common. Not here: ``tensor`` and its kin (``autograd.factories``).

Layer: ``autograd``. Reference: PyTorch's documentation of ``torch.Tensor``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.autograd.factories import FLOAT64
from functrans.autograd.given_data import array_of
from functrans.autograd.labels import torch_type
from functrans.autograd.promotion import torch_defaults, torch_kind
from functrans.autograd.sizes import Size
from functrans.autograd.tensors import Tensor, refuse_device
from functrans.autograd.views import view
from functrans.core.boundary import boundary


def _alias(x: Tensor) -> Tensor:
    """Another tensor on the same memory, in the graph."""
    return view("Alias", x, lambda v: v, lambda v: v[...])


def _is_size(arg: object) -> bool:
    return isinstance(arg, (int, np.integer)) and not isinstance(arg, bool)


def _size(name: str, args: tuple[Any, ...]) -> tuple[int, ...]:
    for i, arg in enumerate(args):
        if not _is_size(arg):
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {i + 1} with error "
                f'"type must be tuple of ints,but got {type(arg).__name__}"'
            )
        if arg < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {arg}: "
                f"[{', '.join(map(str, args))}]"
            )
    return tuple([int(arg) for arg in args])


def made(
    name: str, dtype: np.dtype, follows: bool, args: tuple[Any, ...], device: object
) -> Tensor:
    """A tensor of sizes or of data, as torch's oldest constructors make it.

    Args:
      name: of the constructor, for messages.
      dtype: that of the tensor.
      follows: whether it comes from ``functrans.compat.torch``.
      args: sizes; or one ``Size``, one tensor, whose memory is used, or one sequence of data.
      device: must be the CPU.

    Raises:
      TypeError: the arguments are something else.
      RuntimeError: a negative size; another device.
    """
    refuse_device(device)
    first = args[0] if args else Size((0,))
    if len(args) == 1 and isinstance(first, Tensor):
        return _alias(first)
    if isinstance(first, Size) and len(args) < 2:
        value = np.zeros(_size(name, first), dtype)
    elif _is_size(first):
        value = np.zeros(_size(name, args), dtype)
    elif len(args) > 1:
        _size(name, args)
        raise AssertionError  # the first one is no size
    elif isinstance(first, (str, bytes)):
        raise TypeError(f"{name}(): invalid data type '{type(first).__name__}'")
    elif not hasattr(first, "__len__") or getattr(first, "shape", None) == ():
        raise TypeError(f"{name}(): data must be a sequence (got {type(first).__name__})")
    else:
        data = first if isinstance(first, (list, tuple, np.ndarray)) else list(first)
        value = array_of(data, dtype, dtype)
    result = FLOAT64.made(value, False)
    result._follows = follows
    return result


@boundary
def _new(
    cls: type[Tensor], *args: object, data: object = None, device: object = None, **rest: object
) -> Any:
    """A tensor of sizes, of data, or on the memory of another one, as torch's class makes it.

    Its dtype is the default one of ``functrans.compat.torch``.
    """
    if rest:
        keyword = next(iter(rest))
        if cls.__init__ is object.__init__:
            raise TypeError(f"new() received an unexpected keyword argument {keyword!r}")
        args = args[:1]  # the arguments of a subclass's own constructor
    result = made(
        "new", torch_defaults.dtype, True, args if data is None else (data, *args), device
    )
    if cls is Tensor:
        return result
    self = object.__new__(cls)
    self.__dict__.update(result.__dict__)
    return self


def new(self: Tensor, *args: object, device: object = None) -> Tensor:
    """A tensor of sizes or of data in the dtype of this one.

    Raises:
      TypeError: a tensor of another dtype is given.
    """
    if len(args) == 1 and isinstance(args[0], Tensor):
        _check_dtype(args[0], self.dtype)
    return made("new", self.dtype, self._follows, args, device)


def _check_dtype(x: Tensor, dtype: np.dtype) -> None:
    if x.dtype != dtype:
        raise TypeError(
            f"expected a tensor of dtype {torch_kind(dtype)}, but got one of {torch_kind(x.dtype)};"
            f" convert it with x.to(dtype)"
        )


class TensorType:
    """A type of tensors by dtype: makes them when it is called, and knows them.

    Args:
      dtype: that of the tensors.

    Attributes:
      dtype: that of the tensors.

    Example:
      >>> FloatTensor = TensorType(np.dtype(np.float32))
      >>> FloatTensor([1, 2])
      tensor([1., 2.])
      >>> isinstance(FloatTensor(2, 3), FloatTensor)
      True
    """

    is_cuda = False
    is_sparse = False

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype
        self.__module__, _, self.__name__ = torch_type(dtype).rpartition(".")
        self.__qualname__ = self.__name__

    @boundary
    def __call__(self, *args: object, device: object = None) -> Tensor:
        """A tensor of sizes, of data, or on the memory of another one of this dtype."""
        if len(args) == 1 and isinstance(args[0], Tensor):
            _check_dtype(args[0], self.dtype)
        return made("new", self.dtype, True, args, device)

    def __instancecheck__(self, x: Any) -> bool:
        """Whether it is a tensor of this dtype."""
        return isinstance(x, Tensor) and x.dtype == self.dtype

    def __repr__(self) -> str:
        """``<class 'torch.FloatTensor'>``."""
        return f"<class '{self.__module__}.{self.__name__}'>"


TYPES: dict[str, TensorType] = {
    torch_type(dtype).removeprefix("torch."): TensorType(dtype)
    for dtype in map(
        np.dtype,
        (
            "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool",
            "complex64", "complex128",
        ),
    )
}  # fmt: skip
"""Torch's types by name, without ``torch.``."""

METHODS: dict[str, Any] = {"__new__": staticmethod(_new), "new": new}
