"""``Parameter`` and ``Buffer``: tensors that a module knows as its own.

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.autograd.forward_ad import unpack_dual
from functrans.autograd.overrides import type_name
from functrans.autograd.promotion import torch_defaults
from functrans.autograd.recording import enter_session
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import Tracer


def own(cls: type[Tensor], data: Any, requires_grad: bool) -> Any:
    """A leaf of a class on the memory of a tensor, a constant of all transforms around.

    Args:
      cls: the class.
      data: a tensor; ``None`` for one without elements.
      requires_grad: whether gradients are accumulated in it.
    """
    self: Tensor = object.__new__(cls)
    self._node = None
    self._follows = True
    if data is None:
        self._value = np.empty(0, torch_defaults.dtype)
    elif isinstance(data, Tensor):
        trace: Any = data._trace
        if trace.keeps_account:
            data = unpack_dual(data).primal
        if isinstance(data._value, Tracer):
            data = data.detach()
        enter_session(data)
        self._value = data._memory()
        self._storage = data._stored()
        self._level = data._level
        if "_trace" in data.__dict__:
            self._trace = data._trace
    else:
        raise TypeError(f"{cls.__name__}(): argument 'data' must be Tensor, not {type_name(data)}")
    if requires_grad:
        self.requires_grad_()
    return self


class Parameter(Tensor):
    """A tensor that becomes a parameter of a module when it is assigned as an attribute.

    Args:
      data: a tensor, whose memory is used.
      requires_grad: whether gradients are accumulated in it.

    Example:
      >>> from functrans.autograd import tensor
      >>> Parameter(tensor([1, 2], dtype=np.float32))
      Parameter containing:
      tensor([1., 2.], requires_grad=True)
    """

    _copies_grad = False

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        """The leaf."""
        return own(cls, data, requires_grad)

    def __repr__(self) -> str:
        """``Parameter containing:`` and the tensor."""
        return f"Parameter containing:\n{Tensor.__repr__(self)}"


class Buffer(Tensor):
    """A tensor that becomes a buffer of a module when it is assigned as an attribute.

    Args:
      data: a tensor, whose memory is used.
      persistent: whether it is a part of the module's ``state_dict``.
    """

    persistent: bool

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        """The leaf."""
        self = own(cls, data, isinstance(data, Tensor) and data.requires_grad)
        self.persistent = persistent
        return self
