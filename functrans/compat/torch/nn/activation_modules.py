"""Activations as modules.

Not here: what they compute (``nn.functional``), what their classes are made of
(``nn.module_rows``).

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any

from functrans.autograd.tensors import Tensor, refuse_device
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.init import constant_
from functrans.compat.torch.nn.layer_modules import empty_parameter
from functrans.compat.torch.nn.module import Module
from functrans.compat.torch.nn.module_rows import Applied

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid",
    "Softmax", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


def _check_bounds(values: dict[str, Any]) -> None:
    if values["min_val"] > values["max_val"]:
        raise AssertionError("min_val must be smaller than max_val")


class ReLU(Applied, function=functional.relu):
    """``max(input, 0)``."""


class SiLU(Applied, function=functional.silu):
    """``input * sigmoid(input)``."""


class Mish(Applied, function=functional.mish):
    """``input * tanh(softplus(input))``."""


class SELU(Applied, function=functional.selu):
    """``elu`` with two constants that keep mean and variance."""


class Hardsigmoid(Applied, function=functional.hardsigmoid):
    """``input / 6 + 1 / 2``, held between 0 and 1."""


class Hardswish(Applied, function=functional.hardswish):
    """``input * hardsigmoid(input)``."""


class Sigmoid(Applied, function=functional.sigmoid):
    """``1 / (1 + exp(-input))``."""


class Tanh(Applied, function=functional.tanh):
    """Hyperbolic tangent."""


class Softsign(Applied, function=functional.softsign):
    """``input / (1 + abs(input))``."""


class Tanhshrink(Applied, function=functional.tanhshrink):
    """``input - tanh(input)``."""


class LogSigmoid(Applied, function=functional.logsigmoid):
    """Logarithm of the sigmoid."""


class Hardtanh(Applied, function=functional.hardtanh, prepare=_check_bounds):
    """``input`` held between two numbers."""


class ReLU6(
    Hardtanh,
    function=functional.hardtanh,
    settings="inplace",
    fixed={"min_val": 0.0, "max_val": 6.0},
):
    """``input`` held between 0 and 6."""


class LeakyReLU(Applied, function=functional.leaky_relu):
    """``input``, times a slope where it is negative."""


class ELU(Applied, function=functional.elu):
    """``input``; where it is negative, ``alpha * (exp(input) - 1)``."""


class CELU(Applied, function=functional.celu):
    """``input``; where it is negative, ``alpha * (exp(input / alpha) - 1)``."""


class GELU(Applied, function=functional.gelu, shown="approximate={0.approximate!r}"):
    """``input`` times the normal distribution function of it."""


class Softplus(Applied, function=functional.softplus):
    """``log(1 + exp(beta * input)) / beta``."""


class Softshrink(Applied, function=functional.softshrink, shown="{0.lambd}"):
    """``input`` moved towards 0 by a number."""


class Hardshrink(Applied, function=functional.hardshrink, shown="{0.lambd}"):
    """``input``; 0 where its absolute value is not larger than a number."""


class Threshold(Applied, function=functional.threshold):
    """``input`` where it is larger than a threshold, a value elsewhere."""


class Softmax(Applied, function=functional.softmax, settings="dim"):
    """Exponentials divided by their sum along an axis."""


class Softmin(Applied, function=functional.softmin, settings="dim"):
    """``Softmax`` of the negative."""


class LogSoftmax(Applied, function=functional.log_softmax, settings="dim"):
    """Logarithm of ``Softmax``."""


class GLU(Applied, function=functional.glu):
    """The first half along an axis times the sigmoid of the second half."""


class PReLU(Module):
    """``input``, times a parameter where it is negative."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: object = None, dtype: Any = None
    ) -> None:
        refuse_device(device)
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty_parameter((num_parameters,), dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the parameter to what it was at first."""
        constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """``prelu`` with the parameter."""
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The settings."""
        return f"num_parameters={self.num_parameters}"
