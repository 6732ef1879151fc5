"""Activations as modules.

Here: classes that hold parameters and settings. Not here: what they compute (``nn.functional``),
``Module`` (``nn.module``).

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.devices import check_device
from functrans.compat.torch.nn import functional
from functrans.compat.torch.nn.layer_modules import empty_parameter
from functrans.compat.torch.nn.module import Module

# activations -------------------------------------------------------------------------------------


class _Simple(Module):
    """A function without settings."""

    function: ClassVar[Callable[..., Any]]

    def forward(self, input: Tensor) -> Tensor:
        """The function."""
        return type(self).function(input)  # type: ignore[no-any-return]  # a tensor


class _InPlace(Module):
    """A function that may write its result into its argument."""

    function: ClassVar[Callable[..., Any]]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The function."""
        return type(self).function(input, inplace=self.inplace)  # type: ignore[no-any-return]  # a tensor

    def extra_repr(self) -> str:
        """The settings."""
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """``max(input, 0)``."""

    function = staticmethod(functional.relu)


class SiLU(_InPlace):
    """``input * sigmoid(input)``."""

    function = staticmethod(functional.silu)


class Mish(_InPlace):
    """``input * tanh(softplus(input))``."""

    function = staticmethod(functional.mish)


class SELU(_InPlace):
    """``elu`` with two constants that keep mean and variance."""

    function = staticmethod(functional.selu)


class Hardsigmoid(_InPlace):
    """``input / 6 + 1 / 2``, held between 0 and 1."""

    function = staticmethod(functional.hardsigmoid)


class Hardswish(_InPlace):
    """``input * hardsigmoid(input)``."""

    function = staticmethod(functional.hardswish)


class Sigmoid(_Simple):
    """``1 / (1 + exp(-input))``."""

    function = staticmethod(functional.sigmoid)


class Tanh(_Simple):
    """Hyperbolic tangent."""

    function = staticmethod(functional.tanh)


class Softsign(_Simple):
    """``input / (1 + abs(input))``."""

    function = staticmethod(functional.softsign)


class Tanhshrink(_Simple):
    """``input - tanh(input)``."""

    function = staticmethod(functional.tanhshrink)


class LogSigmoid(_Simple):
    """Logarithm of the sigmoid."""

    function = staticmethod(functional.logsigmoid)


class Hardtanh(Module):
    """``input`` held between two numbers."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if min_val > max_val:
            raise AssertionError("min_val must be smaller than max_val")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The function."""
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        text = f"min_val={self.min_val}, max_val={self.max_val}"
        return f"{text}, inplace=True" if self.inplace else text


class ReLU6(Hardtanh):
    """``input`` held between 0 and 6."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """The settings."""
        return "inplace=True" if self.inplace else ""


class LeakyReLU(Module):
    """``input``, times a slope where it is negative."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The function."""
        return functional.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        text = f"negative_slope={self.negative_slope}"
        return f"{text}, inplace=True" if self.inplace else text


class _Alpha(Module):
    function: ClassVar[Callable[..., Any]]

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The function."""
        return type(self).function(input, self.alpha, self.inplace)  # type: ignore[no-any-return]  # a tensor

    def extra_repr(self) -> str:
        """The settings."""
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class ELU(_Alpha):
    """``input``; where it is negative, ``alpha * (exp(input) - 1)``."""

    function = staticmethod(functional.elu)


class CELU(_Alpha):
    """``input``; where it is negative, ``alpha * (exp(input / alpha) - 1)``."""

    function = staticmethod(functional.celu)


class GELU(Module):
    """``input`` times the normal distribution function of it."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """The function."""
        return functional.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        """The settings."""
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """``log(1 + exp(beta * input)) / beta``."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """The function."""
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        """The settings."""
        return f"beta={self.beta}, threshold={self.threshold}"


class _Shrink(Module):
    function: ClassVar[Callable[..., Any]]

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """The function."""
        return type(self).function(input, self.lambd)  # type: ignore[no-any-return]  # a tensor

    def extra_repr(self) -> str:
        """The settings."""
        return str(self.lambd)


class Softshrink(_Shrink):
    """``input`` moved towards 0 by a number."""

    function = staticmethod(functional.softshrink)


class Hardshrink(_Shrink):
    """``input``; 0 where its absolute value is not larger than a number."""

    function = staticmethod(functional.hardshrink)


class Threshold(Module):
    """``input`` where it is larger than a threshold, a value elsewhere."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """The function."""
        return functional.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """The settings."""
        text = f"threshold={self.threshold}, value={self.value}"
        return f"{text}, inplace=True" if self.inplace else text


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


class _Along(Module):
    function: ClassVar[Callable[..., Any]]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The function."""
        return type(self).function(input, self.dim)  # type: ignore[no-any-return]  # a tensor

    def extra_repr(self) -> str:
        """The settings."""
        return f"dim={self.dim}"


class Softmax(_Along):
    """Exponentials divided by their sum along an axis."""

    function = staticmethod(functional.softmax)


class Softmin(_Along):
    """``Softmax`` of the negative."""

    function = staticmethod(functional.softmin)


class LogSoftmax(_Along):
    """Logarithm of ``Softmax``."""

    function = staticmethod(functional.log_softmax)


class GLU(Module):
    """The first half along an axis times the sigmoid of the second half."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """The function."""
        return functional.glu(input, self.dim)

    def extra_repr(self) -> str:
        """The settings."""
        return f"dim={self.dim}"
