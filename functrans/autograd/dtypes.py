"""``dtype``: NumPy's dtypes with what torch's answer.

Here: the class, and ``torch_dtype``, its instance for a dtype of NumPy. Values, equations and
tensors of ``functrans.autograd`` have NumPy's dtypes; ``Tensor.dtype`` gives these objects for
tensors of ``functrans.compat.torch`` alone. NumPy's classes of dtypes take no attributes and no
subclasses; it takes an object with an attribute ``dtype`` for a dtype, and so these go wherever
a dtype is expected.

Layer: ``autograd``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.autograd.labels import torch_type
from functrans.autograd.sizes import wrong_type
from functrans.core.boundary import boundary


def limits_of(own: Any) -> Any:
    """``np.finfo`` of a dtype, of bfloat16 too."""
    if own.kind != "V":
        return np.finfo(own)
    from ml_dtypes import finfo

    return finfo(own.name)  # type: ignore[no-untyped-call]  # not in its stubs


class dtype:  # noqa: N801  # torch's name
    """A dtype as torch has it: one object for each, equal to NumPy's.

    Attributes:
      dtype: NumPy's.
      is_floating_point: whether its numbers are floating and real.
      is_complex: whether they are complex.
      is_signed: whether there are negative ones.

    All that NumPy's dtype has, this one has too (``kind``, ``itemsize``, ``name``).

    Example:
      >>> single = torch_dtype(np.dtype(np.float32))
      >>> single, single.is_floating_point, single.itemsize, single == np.float32
      (torch.float32, True, 4, True)
      >>> np.zeros(2, single).dtype
      dtype('float32')
    """

    __slots__ = (
        "char", "dtype", "is_complex", "is_floating_point", "is_signed", "itemsize", "kind", "name",
        "type",
    )  # fmt: skip

    @boundary
    def __init__(self, own: np.dtype) -> None:
        self.dtype = own
        self.char, self.kind, self.name, self.type = own.char, own.kind, own.name, own.type
        self.itemsize = own.itemsize
        self.is_floating_point = own.kind in "fV"
        self.is_complex = own.kind == "c"
        self.is_signed = own.kind not in "ub"

    def to_real(self) -> dtype:
        """The dtype of real and imaginary parts; itself if it is real."""
        return torch_dtype(np.empty(0, self.dtype).real.dtype) if self.is_complex else self

    def to_complex(self) -> dtype:
        """The complex dtype with such parts; itself if it is complex.

        Raises:
          RuntimeError: NumPy has none with such parts, or these are integers.
        """
        if self.kind not in "fcV" or self.name == "float16":
            raise RuntimeError(f"Unknown Complex ScalarType for {torch_type(self.dtype)[6:-6]}")
        is_wide = self.itemsize > (8 if self.is_complex else 4)
        return torch_dtype(np.dtype(np.complex128 if is_wide else np.complex64))

    def __getattr__(self, name: str) -> Any:
        """What NumPy's dtype has."""
        if name.startswith("__"):
            raise AttributeError(f"'torch.dtype' object has no attribute {name!r}", name=name)
        return getattr(self.dtype, name)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same dtype, this library's or NumPy's."""
        return self is other or (isinstance(other, (np.dtype, type)) and self.dtype == other)

    def __hash__(self) -> int:
        """That of NumPy's."""
        return hash(self.dtype)

    def __repr__(self) -> str:
        """``torch.float32``."""
        return f"torch.{self.name}"

    def __reduce__(self) -> Any:
        """By NumPy's dtype."""
        return torch_dtype, (self.dtype,)


DTYPE_LIKE = (np.dtype, type, dtype)
"""What an argument is that means a dtype."""


def given_dtype(given: Any, name: str = "") -> np.dtype:
    """NumPy's dtype of an argument of a function that means one.

    Raises:
      TypeError: it is something else, as the name of a dtype.
    """
    if not isinstance(given, DTYPE_LIKE):
        raise wrong_type(given, "dtype", name, "torch.dtype")
    return np.dtype(given)


_KNOWN: dict[int, dtype] = {}
"""NumPy's number of a dtype to the object."""
_NAMED: dict[str, dtype] = {}


def torch_dtype(own: np.dtype) -> dtype:
    """The object for a dtype of NumPy."""
    try:
        return _KNOWN[own.num]
    except KeyError:  # two numbers of NumPy may be one dtype (long, long long)
        found = _KNOWN[own.num] = _NAMED.setdefault(own.name, dtype(own))
        return found
