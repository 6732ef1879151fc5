"""What NumPy's functions and the methods of arrays ask of a tensor.

Here: copies that are recorded (``x.copy()``, ``np.copy(x)``), values that a function must know
(``np.unique(x)``), writes by NumPy's functions (``np.copyto(x, 1.0)``), names of ndarrays that
tensors do not have. Not here: the functions (``functrans.numpy``), torch's names (the modules
beside this one).

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd.methods.rows import by_name
from functrans.autograd.methods.state import clone, plain
from functrans.autograd.refusals import asked
from functrans.autograd.tensors import Tensor
from functrans.autograd.writes import check_write, write
from functrans.core.dispatch import Tracer
from functrans.numpy.array_api import refuse_dlpack


def copy(self: Tensor, order: Any = "C") -> Tensor:
    """A copy, through which gradients flow; ``clone`` with NumPy's name.

    Args:
      self: the tensor.
      order: memory layout, as in ``np.copy``.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0, 2.0], requires_grad=True)
      >>> x.copy()
      tensor([1., 2.], grad_fn=<CloneBackward0>)
    """
    result = clone(self)
    if isinstance(result._value, np.ndarray):
        result._value = np.array(result._value, order=order, copy=None)
    return result


def _concrete(self: Tensor, what: str) -> Any:
    """The value, for a function whose result depends on it in kind."""
    value = self._value
    return asked(value, what, what) if isinstance(value, Tracer) else plain(self, what)


def dlpack(self: Tensor, **options: object) -> Any:
    """Hand the memory to another library, which shares it (``np.from_dlpack``).

    Args:
      self: the tensor.
      **options: of the protocol: ``stream``, ``max_version``, ``dl_device``, ``copy``.

    Raises:
      BufferError: it requires a gradient, which the other library would not see.
      UnsupportedOperationError: it is traced.

    Example:
      >>> import numpy as np
      >>> from functrans.autograd import tensor
      >>> np.from_dlpack(tensor([1.0, 2.0]))
      array([1., 2.])
    """
    if isinstance(self._value, Tracer):
        return refuse_dlpack(self, **options)
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    return plain(self, "__dlpack__").__dlpack__(**options)


def _rebind(self: Tensor, other: Tensor) -> None:
    """Take the values of another tensor over, in place."""
    check_write(self)
    write("copy_", self, other)


MISSING: list[Callable[[str], AttributeError | None]] = []
"""What other namespaces say to names that tensors do not have."""


def _missing(self: Tensor, name: str) -> Any:
    """Say where a name of ndarrays is to be had."""
    load = getattr(Tracer, "__getattr__", None)
    if load is not None:
        return load(self, name)
    for hint in MISSING:
        if error := hint(name):
            raise error
    message = f"{type(self).__name__!r} object has no attribute {name!r}"
    if hasattr(np.ndarray, name):
        message += f"; an array has: x.detach().numpy().{name}"
    raise AttributeError(message, name=name, obj=self)


_OPERATORS: dict[np.ufunc, str] = {
    np.add: "radd",
    np.subtract: "rsub",
    np.multiply: "rmul",
    np.divide: "rtruediv",
    np.floor_divide: "rfloordiv",
    np.remainder: "rmod",
    np.power: "rpow",
    np.bitwise_and: "rand",
    np.bitwise_or: "ror",
    np.bitwise_xor: "rxor",
    np.left_shift: "rlshift",
    np.right_shift: "rrshift",
    np.less: "gt",
    np.less_equal: "ge",
    np.greater: "lt",
    np.greater_equal: "le",
    np.equal: "eq",
    np.not_equal: "ne",
}
"""NumPy's functions behind the operators of its scalars, to the tensor's reflected ones."""


def array_ufunc(self: Tensor, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """``__array_ufunc__``: a scalar of NumPy's on the left of an operator is a number."""
    if ufunc in _OPERATORS and method == "__call__" and not kwargs:
        number, other = inputs
        if isinstance(number, np.ndarray) and not number.shape and ufunc.types[0].endswith("?"):
            number = number[()]  # NumPy compares scalars as arrays
        if isinstance(number, np.generic) and other is self:
            return getattr(self, f"__{_OPERATORS[ufunc]}__")(number)
    tracer: Any = super(Tensor, self)
    return tracer.__array_ufunc__(ufunc, method, *inputs, **kwargs)


METHODS: dict[str, Any] = {
    "__array_ufunc__": array_ufunc,
    **by_name(copy, _concrete, _rebind),
    "__dlpack__": dlpack,
    "_fresh": clone,
    "__getattr__": _missing,
}  # fmt: skip
