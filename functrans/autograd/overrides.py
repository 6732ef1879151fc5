"""``__torch_function__``: arguments of other classes that take a call over.

Here: ``handle_torch_function``; ``taken_over``, which functions and methods ask when they refuse
their arguments, so that calls with tensors alone never do; ``install``, which makes methods of
functions. Not here: ``torch.overrides`` (``compat``).

Layer: ``autograd``. Reference: PyTorch's notes on extending torch, for the protocol.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, MethodType
from typing import Any

from functrans.autograd.promotion import with_python_numbers
from functrans.autograd.tensors import Tensor, called
from functrans.core.boundary import shorten


def takes_over(arg: object) -> bool:
    """Whether an argument is no tensor and its class implements ``__torch_function__``."""
    is_other = not isinstance(arg, Tensor) and hasattr(type(arg), "__torch_function__")
    return is_other and not is_pytorchs(arg)


def is_pytorchs(arg: object) -> bool:
    """Whether an argument is a tensor of PyTorch, whose own hook would call the function again."""
    hook = getattr(type(arg), "__torch_function__", None)
    return getattr(hook, "__module__", "") == "torch._tensor"


PYTORCHS = (
    "it is a tensor of PyTorch; make one of functrans of it with torch.as_tensor(x), or import all "
    "that the program takes from torch out of functrans.compat.torch (which its install() does)"
)
"""What to do with one."""


def type_name(x: object) -> str:
    """The name of the type of a wrong argument; of a tensor of PyTorch, what to do with it."""
    return f"torch.Tensor: {PYTORCHS}" if is_pytorchs(x) else type(x).__name__


def refused(operand: object) -> Any:
    """What operators answer to an operand that they do not take.

    Raises:
      TypeError: it is a tensor of PyTorch.
    """
    if is_pytorchs(operand):
        raise TypeError(f"an operand must be Tensor, not {type_name(operand)}")
    return NotImplemented


def _overloaded(args: Iterable[object]) -> list[object]:
    """One argument of each class that takes over, in order; subclasses come before classes."""
    found: list[object] = []
    for arg in args:
        if not takes_over(arg) or any(type(arg) is type(other) for other in found):
            continue
        places = [i for i, other in enumerate(found) if isinstance(arg, type(other))]
        found.insert(places[0] if places else len(found), arg)
    return found


def handle_torch_function(
    public_api: Callable[..., object],
    relevant_args: Iterable[object],
    *args: object,
    **kwargs: object,
) -> Any:
    """Call ``__torch_function__`` of the arguments that take a call over, until one answers.

    Args:
      public_api: the function that was called.
      relevant_args: arguments that may take over.
      *args: its arguments.
      **kwargs: its keywords.

    Raises:
      TypeError: none takes it over, or all return ``NotImplemented``.

    Example:
      >>> class Named:
      ...     @classmethod
      ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
      ...         return func.__name__
      >>> import functrans.compat.torch as torch
      >>> torch.add(torch.ones(2), Named()), torch.ones(2).mul(Named())
      ('add', 'mul')
    """
    overloaded = _overloaded(relevant_args)
    types = tuple(map(type, overloaded))
    for arg in overloaded:
        result = type(arg).__torch_function__(public_api, types, args, kwargs)  # type: ignore[attr-defined]  # it takes over
        if result is not NotImplemented:
            return result
    name = f"{public_api.__module__}.{public_api.__name__}"
    raise TypeError(
        f"no implementation found for {name!r} on types that implement __torch_function__: "
        f"{list(types)}"
    )


def taken_over(
    function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, Any]
) -> Any:
    """What arguments make of a call that a function refused; ``NotImplemented`` if none does.

    Args:
      function: it; nothing has been changed yet.
      args: its arguments; those in lists and tuples count, too.
      kwargs: its keywords.
    """
    given = (*args, *kwargs.values())
    inside = [x for arg in given if isinstance(arg, (list, tuple)) for x in arg]
    if not any(map(takes_over, (*given, *inside))):
        return NotImplemented
    return handle_torch_function(function, (*given, *inside), *args, **kwargs)


def overridable(function: Any) -> Any:
    """A boundary whose arguments may take a call over; what is one already or none, as it is."""
    if not isinstance(function, (FunctionType, MethodType)):
        return function
    if shorten.__name__ in function.__code__.co_names:
        return function

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        try:
            args = with_python_numbers(args, kwargs)
            return function(*args, **kwargs)
        except Exception as error:
            if (answer := taken_over(call, args, kwargs)) is not NotImplemented:
                return answer
            shorten(error)
            raise

    return call


def install(methods: Mapping[str, Any]) -> None:
    """Give ``Tensor`` methods and properties."""
    for name, method in methods.items():
        method = called(method, name)
        if isinstance(method, FunctionType) and not name.startswith("_"):
            method = overridable(method)
            method.__module__ = Tensor.__module__
            method.__qualname__ = f"Tensor.{name}"  # so that it pickles
        setattr(Tensor, name, method)
