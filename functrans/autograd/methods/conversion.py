"""Conversions of ``Tensor`` and tensors made like it: dtypes, ``new_zeros``, what it lies in.

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.dtypes import DTYPE_LIKE
from functrans.autograd.factories import FLOAT64
from functrans.autograd.given_data import array_of
from functrans.autograd.labels import torch_type
from functrans.autograd.methods.legacy_types import TYPES, TensorType
from functrans.autograd.methods.reductions import sum_of
from functrans.autograd.methods.rows import by_name, constant, documented, looked_at, plain
from functrans.autograd.methods.shaping import extents, new_extents
from functrans.autograd.promotion import default_of, exact, torch_defaults, with_default
from functrans.autograd.random import made_like
from functrans.autograd.tensors import Tensor, refuse_device
from functrans.core.boundary import boundary
from functrans.errors import TensorDeviceError

_KINDS = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga",
    "maia", "xla", "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


class device:  # noqa: N801  # torch's name
    """Where a tensor lies: always the CPU. Others have names, and are refused where they are used.

    Args:
      type: ``"cpu"``, or with an index ``"cpu:0"``.
      index: which of several.

    Raises:
      RuntimeError: there is no such kind, or the index is none.

    Example:
      >>> device("cpu")
      device(type='cpu')
    """

    @boundary
    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:
        name = type.type if isinstance(type, device) else str(type)
        kind, colon, number = name.partition(":")
        if kind not in _KINDS:
            raise RuntimeError(
                f"Expected one of {', '.join(_KINDS)} device type at start of device string: {name}"
            )
        if bool(colon) != number.isdecimal():
            raise RuntimeError(f"Invalid device string: {name!r}")
        self.type: str = kind
        self.index: int | None = int(number) if number else index

    def __eq__(self, other: object) -> bool:
        """Whether it is the same kind of device."""
        return isinstance(other, device) and self.type == other.type

    def __hash__(self) -> int:
        """By the kind."""
        return hash(self.type)

    def __repr__(self) -> str:
        """``device(type='cpu')``."""
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        """``cpu``, or ``cuda:1``."""
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __enter__(self) -> device:
        """Tensors are made there: nothing to do."""
        refuse_device(self)
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to undo."""


class _Word:
    """A word of torch's, as an object."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __eq__(self, other: object) -> bool:
        """Whether it is the same word of the same kind."""
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """By the word."""
        return hash(self._name)

    def __repr__(self) -> str:
        """``torch.strided``."""
        return f"torch.{self._name}"


class layout(_Word):  # noqa: N801  # torch's name
    """How the elements of a tensor lie in memory: ``torch.strided``.

    Example:
      >>> from functrans.autograd import tensor
      >>> tensor([1.0]).layout
      torch.strided
    """


class memory_format(_Word):  # noqa: N801  # torch's name
    """An order of axes in memory; factories and conversions ignore it, but for C order.

    Example:
      >>> memory_format("channels_last")
      torch.channels_last
    """


STRIDED = layout("strided")
CPU = device("cpu")


def bfloat16_dtype() -> np.dtype:
    """The dtype bfloat16 of the package ml_dtypes.

    Raises:
      ImportError: it is not installed.
    """
    try:
        from ml_dtypes import bfloat16
    except ImportError:
        raise ImportError(
            "bfloat16 needs the package ml_dtypes: pip install 'functrans[bfloat16]' (for tensors; "
            "autocast('cpu') is not offered with it, either)"
        ) from None
    dtype: np.dtype = np.dtype(bfloat16)
    return dtype


def _to(dtype: DTypeLike | None) -> Callable[..., Any]:
    def method(self: Tensor, memory_format: object = None) -> Tensor:
        return self.to(dtype)

    method.__doc__ = f"The tensor as {np.dtype(dtype).name}; itself if it is."
    return method


def bfloat16(self: Tensor, memory_format: object = None) -> Tensor:
    """The tensor as bfloat16."""
    return self.to(bfloat16_dtype())


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of another one."""
    return self.to(other.dtype)


def type_of(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Tensor | str:
    """Torch's name of its type, or the tensor in another dtype.

    Args:
      self: the tensor.
      dtype: a dtype, one of torch's types (``torch.LongTensor``) or the name of one.
      non_blocking: accepted for torch's sake.

    Raises:
      ValueError: there is no such type.
      TypeError: it is something else.
    """
    if dtype is None:
        return torch_type(self.dtype)
    if isinstance(dtype, str):
        known = TYPES.get(dtype.removeprefix("torch.")) if dtype.startswith("torch.") else None
        if dtype == "torch.BFloat16Tensor":
            return bfloat16(self)
        if known is None:
            raise ValueError(f"invalid type: {dtype!r}")
        dtype = known.dtype
    elif isinstance(dtype, TensorType):
        dtype = dtype.dtype
    elif dtype is Tensor:
        dtype = torch_defaults.dtype
    elif isinstance(dtype, type) and not issubclass(dtype, np.generic):
        raise ValueError(f"invalid type: {dtype.__name__!r}")
    elif not isinstance(dtype, DTYPE_LIKE):
        raise TypeError("dtype must be a type, str, or dtype object")
    return self.to(dtype)


# tensors like it ---------------------------------------------------------------------------------


def _new(name: str, make: Callable[..., np.ndarray]) -> Callable[..., Any]:
    def method(
        self: Tensor,
        *sizes: Any,
        size: Any = None,
        dtype: Any = None,
        requires_grad: bool = False,
        device: object = None,
        **_: object,
    ) -> Tensor:
        if not sizes and size is None:
            raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
        refuse_device(device)
        shape = new_extents(sizes or (size,), name)
        result = FLOAT64.made(make(shape, dtype or self.dtype), requires_grad)
        return made_like(with_default(result, [self]), self)

    return documented(method, name, "A tensor of other extents in the same dtype.")


def new_full(
    self: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: object = None,
    **_: object,
) -> Tensor:
    """A tensor of one number in the same dtype."""
    refuse_device(device)
    shape = new_extents((size,), "new_full")
    value = np.full(shape, exact(plain(fill_value), np.dtype(dtype or self.dtype)))
    return made_like(with_default(FLOAT64.made(value, requires_grad), [self]), self)


def new_empty_strided(
    self: Tensor,
    size: Any,
    stride: Any,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: object = None,
    **_: object,
) -> Tensor:
    """A tensor of a layout in the same dtype, whose elements are not set: zeros."""
    refuse_device(device)
    kind = dtype or self.dtype
    result = FLOAT64.empty_strided(size, stride, dtype=kind, requires_grad=requires_grad)
    return made_like(with_default(result, [self]), self)


def new_tensor(
    self: Tensor,
    data: object,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: object = None,
    **_: object,
) -> Tensor:
    """A tensor of data; without a dtype in that of this one."""
    refuse_device(device)
    value = array_of(data, dtype or self.dtype, default_of(self))
    return with_default(FLOAT64.made(value, requires_grad), [self])


# other -------------------------------------------------------------------------------------------


def sum_to_size(self: Tensor, *args: Any, size: Any = None) -> Tensor:
    """Summed over the axes that broadcasting from a size made."""
    shape = extents(args or (size,), "sum_to_size")
    lead = len(self.shape) - len(shape)
    axes = tuple(
        i for i, n in enumerate(self.shape) if i < lead or (shape[i - lead] == 1 and n != 1)
    )
    if lead < 0 or any(
        shape[i - lead] not in (1, n) for i, n in enumerate(self.shape) if i >= lead
    ):
        raise RuntimeError(f"size {list(shape)} is not expandable to size {list(self.shape)}.")
    if not axes:
        return self
    made = sum_of(self, axes, True)
    return made.reshape(shape) if lead else made


def is_nonzero(self: Tensor) -> bool:
    """Whether the only element is not 0.

    Raises:
      RuntimeError: there are more or none.
    """
    size = looked_at(self, "bool()").size
    if size != 1:
        what = "more than one value" if size else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(looked_at(self))


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor, which is dense; in a dtype, if one is given."""
    return self if dtype is None else self.to(dtype)


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Write a Python function of each element.

    Raises:
      RuntimeError: the tensor requires a gradient.
    """
    if self.requires_grad:
        raise RuntimeError("Can't call apply_() on Variable that requires grad.")
    new = np.array([callable(v) for v in looked_at(self).reshape(-1).tolist()], self.dtype)
    return self.copy_(constant(new.reshape(self.shape)))


def _contains(self: Tensor, element: Any) -> bool:
    return bool(np.any(looked_at(self, "item()") == plain(element)))


def _unavailable(self: Tensor, *_: object, **__: object) -> NoReturn:
    """Refused: there is no GPU."""
    raise TensorDeviceError("cuda(): functrans computes on the CPU; remove the call")


METHODS: dict[str, Any] = {
    **by_name(
        bfloat16, type_as, new_empty_strided, new_full, new_tensor, sum_to_size, is_nonzero, apply_,
        to_dense,
    ),
    **{
        name: _to(dtype)
        for name, dtype in {
            "float": np.float32, "double": np.float64, "half": np.float16, "long": np.int64,
            "int": np.int32, "short": np.int16, "char": np.int8, "byte": np.uint8,
            "bool": np.bool_, "cfloat": np.complex64, "cdouble": np.complex128,
        }.items()
    },
    "type": type_of,
    "new_zeros": _new("new_zeros", np.zeros),
    "new_ones": _new("new_ones", np.ones),
    "new_empty": _new("new_empty", np.zeros),
    "is_signed": lambda self: self.dtype.kind not in "ub",
    "is_same_size": lambda self, other: self.shape == other.shape,
    "__contains__": _contains,
    "device": property(lambda self: CPU),
    "is_cpu": property(lambda self: True),
    "layout": property(lambda self: STRIDED),
    "names": property(lambda self: (None,) * len(self.shape)),
    "itemsize": property(lambda self: self.dtype.itemsize),
    "nbytes": property(lambda self: math.prod(self.shape) * self.dtype.itemsize),
    "ndim": property(lambda self: len(self.shape)),
    "get_device": lambda self: -1,
    "cuda": _unavailable,
    "pin_memory": lambda self, *_: self,
    "share_memory_": lambda self: self,
    **dict.fromkeys(
        ("is_cuda", "is_sparse", "is_quantized", "is_mps", "is_meta"),
        property(lambda self: False),
    ),
    **dict.fromkeys(("is_shared", "is_pinned", "has_names"), lambda self: False),
}  # fmt: skip
