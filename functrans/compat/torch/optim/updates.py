"""What the updates of optimizers are made of: options, and the numbers and means of a state.

Here: functions of values, of arrays or of what stands for them while ``jit`` traces a step. Not
here: ``Optimizer`` (``optim.optimizer``), the algorithms (``optim.algorithms``).

Layer: ``compat``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.promotion import torch_defaults, torch_tensor
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.values import assign, value_of
from functrans.core.dispatch import Tracer
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.structural import broadcast_to, cast

# options -----------------------------------------------------------------------------------------

_NOT_NEGATIVE = {
    "lr": "learning rate",
    "momentum": "momentum value",
    "lr_decay": "lr_decay value",
    "eps": "epsilon value",
    "weight_decay": "weight_decay value",
    "momentum_decay": "momentum_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
}
"""Options that must not be negative, and torch's words for them."""


def check_positive(name: str, value: Any) -> None:
    """Refuse a negative option.

    Raises:
      ValueError: in torch's words.
    """
    if not isinstance(value, Tensor) and value < 0.0:
        raise ValueError(f"Invalid {name}: {value}")


def options(names: Mapping[str, Any]) -> dict[str, Any]:
    """The options among the local names of a constructor."""
    return {n: x for n, x in names.items() if n not in ("self", "params", "__class__")}


def checked(names: Mapping[str, Any]) -> dict[str, Any]:
    """``options``, of which those that most optimizers share are checked.

    Raises:
      ValueError: one is out of range.
      NotImplementedError: ``differentiable`` is true.
    """
    found = options(names)
    for name, words in _NOT_NEGATIVE.items():
        if name in found:
            check_positive(words, found[name])
    for i, beta in enumerate(found.get("betas", ())):
        if not isinstance(beta, Tensor) and not 0.0 <= beta < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
    if found.get("differentiable"):
        raise NotImplementedError(
            "differentiable=True is not supported; write the update with out-of-place operations, "
            "or differentiate through functrans.func.grad"
        )
    return found


# numbers -----------------------------------------------------------------------------------------


def number(x: Any, dtype: DTypeLike | None) -> Any:
    """An option as a number; a tensor's value in the dtype of the parameter."""
    if isinstance(x, Tensor):
        value = value_of(x)
        return cast(value, dtype) if isinstance(value, Tracer) else value.item()
    return x


def is_nonzero(x: Any) -> bool:
    """Whether a number takes part; one that a schedule changes between jitted steps does."""
    return isinstance(x, Tracer) or bool(x)


def power(base: Any, exponent: object) -> Any:
    """A power of numbers."""
    return ew.power(base, exponent) if isinstance(exponent, Tracer) else base**exponent


def root(x: Any) -> Any:
    """The root of a number."""
    return ew.sqrt(x) if isinstance(x, Tracer) else math.sqrt(x)


def like(x: Any, dtype: DTypeLike | None) -> Any:
    """A number that multiplies arrays of a dtype."""
    return cast(x, dtype) if isinstance(x, Tracer) else x


def filled(number: Any, like: Any) -> Any:
    """An array of one number, shaped like another; traced if the number is."""
    if isinstance(number, Tracer):
        return broadcast_to(cast(number, like.dtype), like.shape)
    return np.full(like.shape, number, like.dtype)


# states ------------------------------------------------------------------------------------------


def scalar_dtype() -> np.dtype:
    """The dtype of numbers in states: float64 where that is the default one, else float32."""
    return torch_defaults.dtype if torch_defaults.dtype == np.float64 else np.dtype(np.float32)


def scalar(value: float) -> Tensor:
    """A number of a state."""
    return torch_tensor(np.array(value, scalar_dtype()))


def begin(state: dict[str, Any], value: Any, *names: str) -> None:
    """The number of steps and zeros under names."""
    state["step"] = scalar(0.0)
    for name in names:
        state[name] = torch_tensor(np.zeros(value.shape, value.dtype))


def kept(state: dict[str, Any], name: str, p: Any, value: Any) -> None:
    """Store a part of the state, in place where there is one."""
    have = state.get(name)
    if have is None:
        trace = p.__dict__.get("_trace") if isinstance(value, Tracer) else None
        own = value if isinstance(value, Tracer) else np.array(value)
        state[name] = torch_tensor(own, trace)
    else:
        assign("optimizer_step_", have, value)


def next_step(state: dict[str, Any]) -> Array | complex:
    """The number of this step: a Python number, or what stands for it in a traced step."""
    step = state["step"]
    value = value_of(step) + np.float32(1.0)
    assign("add_", step, value)
    return cast(value, np.float64) if isinstance(value, Tracer) else float(value)


def assigned(label: str, x: Tensor, value: Any) -> Array:
    """``assign``, which gives the value."""
    assign(label, x, value)
    return value


def moved(label: str, mean: Tensor, x: Any, share: Any) -> Any:
    """A mean that goes a share of the way to what is new."""
    have = value_of(mean)
    return assigned(label, mean, have + share * (x - have))


def blended(label: str, mean: Tensor, x: Any, keep: float) -> Array:
    """A mean of which a share is kept."""
    return assigned(label, mean, keep * value_of(mean) + (1 - keep) * x)


# parameters --------------------------------------------------------------------------------------


def with_gradients(group: dict[str, Any]) -> Iterable[tuple[Any, Any, Any]]:
    """Parameters that have a gradient, with their values and those of the gradients.

    The gradients point uphill; of a group that is to be maximized, downhill.
    """
    maximize = group["maximize"]
    for p in group["params"]:
        grad = p.grad
        if grad is not None:
            value = value_of(grad)
            yield p, value_of(p), -value if maximize else value


def started(
    optimizer: Any, group: dict[str, Any], *names: str
) -> Iterable[tuple[Any, Any, Any, Any, Any, Any]]:
    """What most updates begin with: ``(parameter, value, gradient, state, step, rate)``, decayed.

    Args:
      optimizer: has the states.
      group: the parameters.
      *names: of what a state has at first, zeros.
    """
    for p, value, grad in with_gradients(group):
        lr = number(group["lr"], value.dtype)
        state = optimizer.state[p]
        if not state:
            begin(state, value, *names)
        step = next_step(state)
        yield p, *decayed(group, value, grad, lr), state, step, lr


def decayed(group: dict[str, Any], value: Any, grad: Any, lr: object = None) -> tuple[Any, Any]:
    """A value and its gradient with the decay in one of them: in the value if it is decoupled."""
    decay = group["weight_decay"]
    if not decay:
        return value, grad
    if group.get("decoupled_weight_decay"):
        return value * (1 - lr * decay), grad
    return value, grad + decay * value
