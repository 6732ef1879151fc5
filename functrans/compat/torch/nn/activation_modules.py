"""Activations as modules.

Here: rows of functions with settings, and ``PReLU``. Not here: what they compute
(``nn.functional``), what makes their classes (``nn.module_rows``).

Layer: ``compat``.
"""

from __future__ import annotations

import functools
from typing import Any

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.devices import check_device
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.layer_modules import empty_parameter
from functrans.compat.torch.nn.module import Module
from functrans.compat.torch.nn.module_rows import module_class

_activation = functools.partial(module_class, __name__)


def _check_bounds(values: dict[str, Any]) -> None:
    if values["min_val"] > values["max_val"]:
        raise AssertionError("min_val must be smaller than max_val")


ReLU = _activation("ReLU", functional.relu, "``max(input, 0)``.")
SiLU = _activation("SiLU", functional.silu, "``input * sigmoid(input)``.")
Mish = _activation("Mish", functional.mish, "``input * tanh(softplus(input))``.")
SELU = _activation(
    "SELU", functional.selu, "``elu`` with two constants that keep mean and variance."
)
Hardsigmoid = _activation(
    "Hardsigmoid", functional.hardsigmoid, "``input / 6 + 1 / 2``, held between 0 and 1."
)
Hardswish = _activation("Hardswish", functional.hardswish, "``input * hardsigmoid(input)``.")
Sigmoid = _activation("Sigmoid", functional.sigmoid, "``1 / (1 + exp(-input))``.")
Tanh = _activation("Tanh", functional.tanh, "Hyperbolic tangent.")
Softsign = _activation("Softsign", functional.softsign, "``input / (1 + abs(input))``.")
Tanhshrink = _activation("Tanhshrink", functional.tanhshrink, "``input - tanh(input)``.")
LogSigmoid = _activation("LogSigmoid", functional.logsigmoid, "Logarithm of the sigmoid.")
Hardtanh = _activation(
    "Hardtanh", functional.hardtanh, "``input`` held between two numbers.", prepare=_check_bounds
)
ReLU6 = _activation(
    "ReLU6", functional.hardtanh, "``input`` held between 0 and 6.", "inplace",
    base=Hardtanh, fixed={"min_val": 0.0, "max_val": 6.0},
)  # fmt: skip
LeakyReLU = _activation(
    "LeakyReLU", functional.leaky_relu, "``input``, times a slope where it is negative."
)
ELU = _activation(
    "ELU", functional.elu, "``input``; where it is negative, ``alpha * (exp(input) - 1)``."
)
CELU = _activation(
    "CELU",
    functional.celu,
    "``input``; where it is negative, ``alpha * (exp(input / alpha) - 1)``.",
)
GELU = _activation(
    "GELU", functional.gelu, "``input`` times the normal distribution function of it.",
    shown="approximate={0.approximate!r}",
)  # fmt: skip
Softplus = _activation("Softplus", functional.softplus, "``log(1 + exp(beta * input)) / beta``.")
Softshrink = _activation(
    "Softshrink", functional.softshrink, "``input`` moved towards 0 by a number.",
    shown="{0.lambd}",
)  # fmt: skip
Hardshrink = _activation(
    "Hardshrink", functional.hardshrink,
    "``input``; 0 where its absolute value is not larger than a number.", shown="{0.lambd}",
)  # fmt: skip
Threshold = _activation(
    "Threshold", functional.threshold,
    "``input`` where it is larger than a threshold, a value elsewhere.",
)  # fmt: skip
Softmax = _activation(
    "Softmax", functional.softmax, "Exponentials divided by their sum along an axis.", "dim"
)
Softmin = _activation("Softmin", functional.softmin, "``Softmax`` of the negative.", "dim")
LogSoftmax = _activation("LogSoftmax", functional.log_softmax, "Logarithm of ``Softmax``.", "dim")
GLU = _activation(
    "GLU", functional.glu, "The first half along an axis times the sigmoid of the second half."
)


class PReLU(Module):
    """``input``, times a parameter where it is negative."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        check_device(device)
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = empty_parameter((num_parameters,), dtype)
        self.weight._memory()[...] = init

    def forward(self, input: Tensor) -> Tensor:
        """``prelu`` with the parameter."""
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """The settings."""
        return f"num_parameters={self.num_parameters}"
