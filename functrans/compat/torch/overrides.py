"""``torch.overrides``: functions that other classes implement by ``__torch_function__``.

Here: what a function does that lets its arguments take over, and questions. Functions and methods
of tensors let arguments of other classes take over (``functrans.autograd.overrides``); subclasses
of ``Tensor`` do not.

Layer: ``compat``. Reference: PyTorch's notes on extending torch, for the protocol.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

from functrans.autograd.overrides import handle_torch_function as handle_torch_function
from functrans.autograd.overrides import takes_over
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.functional_names import FUNCTIONS
from functrans.compat.torch.not_offered import nothing_else

__all__ = [
    "handle_torch_function", "has_torch_function", "has_torch_function_unary",
    "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property", "resolve_name",
    "wrap_torch_function",
]  # fmt: skip

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def is_tensor_like(inp: object) -> bool:
    """Whether an object is a tensor, or its class implements ``__torch_function__``.

    Example:
      >>> import functrans.compat.torch as torch
      >>> is_tensor_like(torch.ones(2)), is_tensor_like([1.0])
      (True, False)
    """
    return isinstance(inp, Tensor) or hasattr(inp, "__torch_function__")


def has_torch_function(relevant_args: Iterable[object]) -> bool:
    """Whether one of the arguments takes a call over.

    Example:
      >>> import functrans.compat.torch as torch
      >>> has_torch_function((torch.ones(2), 3.0))
      False
    """
    return any(map(takes_over, relevant_args))


def has_torch_function_unary(obj: object) -> bool:
    """Whether an argument takes a call over."""
    return takes_over(obj)


def has_torch_function_variadic(*args: object) -> bool:
    """Whether one of the arguments takes a call over."""
    return has_torch_function(args)


def wrap_torch_function(
    dispatcher: Callable[Parameters, Sequence[object]],
) -> Callable[[Callable[Parameters, Result]], Callable[Parameters, Result]]:
    """A decorator of functions whose arguments may take a call over.

    Args:
      dispatcher: from the arguments to those that may.

    Example:
      >>> @wrap_torch_function(lambda a: (a,))
      ... def double(a):
      ...     return a + a
      >>> double(2)
      4
    """

    def decorate(func: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @functools.wraps(func)
        def wrapped(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_method_or_property(func: Callable[..., object]) -> bool:
    """Whether a function is one of ``Tensor``'s methods.

    Example:
      >>> import functrans.compat.torch as torch
      >>> is_tensor_method_or_property(torch.Tensor.add), is_tensor_method_or_property(torch.add)
      (True, False)
    """
    name = getattr(func, "__name__", "")
    return getattr(Tensor, name, None) is func or name == "__get__"


def resolve_name(f: object) -> str | None:
    """The qualified name of a function of torch or of a method of ``Tensor``.

    Example:
      >>> import functrans.compat.torch as torch
      >>> resolve_name(torch.add), resolve_name(torch.Tensor.add)
      ('torch.add', 'torch.Tensor.add')
    """
    name = getattr(f, "__name__", "")
    if getattr(Tensor, name, None) is f:
        return f"torch.Tensor.{name}"
    return f"torch.{name}" if FUNCTIONS.get(name) is f else None


__getattr__ = nothing_else(__name__)
