"""Fourier transforms of tensors: the functions of ``torch.fft``.

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans import numpy as fnp
from functrans.autograd.composites import composite
from functrans.autograd.methods.rows import (
    check_tensor,
    constant,
    copied,
    documented,
    floating,
    with_out,
)
from functrans.autograd.promotion import to_dtype, torch_defaults
from functrans.autograd.sizes import integer
from functrans.autograd.tensors import Tensor, called
from functrans.core.dispatch import dtype_of
from functrans.core.values import Array

_NORMS = (None, "forward", "backward", "ortho")


def _narrowed(made: Any, x: Any) -> Array:
    """A result as wide as the operand: NumPy's transforms of float32 may be wider."""
    from_dtype, dtype = dtype_of(x), dtype_of(made)
    is_narrow = from_dtype.itemsize < (16 if from_dtype.kind == "c" else 8)
    if not is_narrow:
        return made
    return fnp.astype(made, np.complex64 if dtype.kind == "c" else np.float32)


def _one_axis(name: str, label: str) -> Callable[..., Any]:
    function = getattr(fnp.fft, name)

    def operation(
        input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None
    ) -> Tensor:
        _check(f"fft_{name}", input, norm)
        n = n if n is None else _points(n, "n", name)
        return composite(
            _label(label, input), lambda x: _narrowed(function(x, n, dim, norm), x), floating(input)
        )

    return documented(operation, name, f"``np.fft.{name}`` of a tensor along an axis.")


def _label(label: str, x: Tensor) -> str:
    """The name of a transform's node: that of real numbers is another one."""
    return "FftR2C" if label == "FftC2C" and x.dtype.kind != "c" else label


def _points(n: Any, argument: str, name: str) -> int:
    words = "Invalid number of data points ({}) specified"
    return integer(n, argument, f"fft_{name}", least=-1 if argument == "s" else 1, words=words)


def _check(name: str, x: Tensor, norm: str | None) -> None:
    check_tensor(name, x)
    if norm not in _NORMS:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _several_axes(name: str, label: str, default: Any) -> Callable[..., Any]:
    function = getattr(fnp.fft, name)

    def operation(
        input: Tensor, s: Any = None, dim: Any = default, norm: str | None = None
    ) -> Tensor:
        _check(f"fft_{name}", input, norm)
        axes = dim
        s = (s,) if isinstance(s, int) else s
        axes = (axes,) if isinstance(axes, int) else axes
        if axes is None and s is not None:
            axes = tuple(range(-len(s), 0))
        if not input.shape and not axes and label == "FftC2C":
            own = floating(input)
            return copied(to_dtype(own, np.result_type(own.dtype, np.complex64)), label)
        s = s if s is None else tuple([_points(n, "s", name) for n in s])
        return composite(label, lambda x: _narrowed(function(x, s, axes, norm), x), floating(input))

    return documented(operation, name, f"``np.fft.{name}`` of a tensor along axes.")


def _shift(name: str) -> Callable[..., Any]:
    function = getattr(fnp.fft, name)

    def operation(input: Tensor, dim: Any = None) -> Tensor:
        check_tensor(f"fft_{name}", input)
        return composite("Roll", lambda x: function(x, dim), input)

    return documented(operation, name, f"``np.fft.{name}`` of a tensor.")


def _frequencies(name: str) -> Callable[..., Any]:
    function = getattr(np.fft, name)

    def operation(
        n: int,
        d: float = 1.0,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        n = integer(n, "n", f"fft_{name}", least=0)
        values = function(n, d) if n else np.empty(0)
        result: Any = constant(values.astype(dtype or torch_defaults.dtype))
        result._follows = True
        return result.requires_grad_() if requires_grad else result

    operation.__doc__ = f"``np.fft.{name}`` as a tensor."
    return called(operation, name)


_TABLE: dict[str, Any] = {
    "fft": _one_axis("fft", "FftC2C"),
    "ifft": _one_axis("ifft", "FftC2C"),
    "rfft": _one_axis("rfft", "FftR2C"),
    "irfft": _one_axis("irfft", "FftC2R"),
    "hfft": _one_axis("hfft", "FftC2R"),
    "ihfft": _one_axis("ihfft", "FftR2C"),
    "fft2": _several_axes("fft2", "FftC2C", (-2, -1)),
    "ifft2": _several_axes("ifft2", "FftC2C", (-2, -1)),
    "rfft2": _several_axes("rfft2", "FftR2C", (-2, -1)),
    "irfft2": _several_axes("irfft2", "FftC2R", (-2, -1)),
    "fftn": _several_axes("fftn", "FftC2C", None),
    "ifftn": _several_axes("ifftn", "FftC2C", None),
    "rfftn": _several_axes("rfftn", "FftR2C", None),
    "irfftn": _several_axes("irfftn", "FftC2R", None),
    "fftshift": _shift("fftshift"),
    "ifftshift": _shift("ifftshift"),
    "fftfreq": _frequencies("fftfreq"),
    "rfftfreq": _frequencies("rfftfreq"),
}

FFT: dict[str, Any] = {
    name: with_out(name, function, name.endswith("freq")) for name, function in _TABLE.items()
}
