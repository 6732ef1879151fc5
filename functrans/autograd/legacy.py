"""Names from before tensors and variables were one: ``Variable``, ``variable``.

Layer: ``autograd``.
"""

from __future__ import annotations

from typing import Any

from functrans.autograd.engine import Engine
from functrans.autograd.tensors import Tensor
from functrans.autograd.views import detached
from functrans.core.boundary import boundary


class _VariableMeta(type):
    """Makes every tensor an instance of ``Variable``."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tensor)


class Variable(metaclass=_VariableMeta):
    """A tensor on the memory of another one; kept for old code, which should use tensors.

    Args:
      data: a tensor.
      requires_grad: whether gradients are accumulated in it.

    Raises:
      TypeError: ``data`` is no tensor.

    Example:
      >>> from functrans.autograd import tensor
      >>> Variable(tensor([1.0]), requires_grad=True)
      tensor([1.], requires_grad=True)
    """

    _execution_engine = Engine()

    @boundary
    def __new__(cls, data: Tensor, requires_grad: bool = False, volatile: object = None) -> Any:
        """The tensor."""
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        result: Any = detached(data)
        return result.requires_grad_() if requires_grad else result


def variable(*_: object, **__: object) -> Any:
    """Removed in torch; raises.

    Raises:
      RuntimeError: always.
    """
    raise RuntimeError("torch.autograd.variable(...) is deprecated, use torch.tensor(...) instead")
