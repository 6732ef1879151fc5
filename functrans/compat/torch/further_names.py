"""Functions of ``torch`` beyond those that are methods of tensors, and settings.

Here: windows, ``gradient``, ``cumulative_trapezoid``, ``histogram``, ``stft``; settings that
programs make before they begin. Not here: the others (``functional_names``).

Layer: ``compat``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans import numpy as fnp
from functrans.autograd.anomaly import is_anomaly_enabled
from functrans.autograd.composites import composite, several
from functrans.autograd.dtypes import given_dtype
from functrans.autograd.labels import torch_type
from functrans.autograd.methods.conversion import CPU
from functrans.autograd.methods.joining import refuse_bools
from functrans.autograd.methods.legacy_types import TYPES, TensorType
from functrans.autograd.methods.linear_algebra import LINALG
from functrans.autograd.methods.rows import (
    check_tensor,
    documented,
    fixed,
    floating,
    refuse_out,
    results,
)
from functrans.autograd.methods.shaping import axis_of, extents
from functrans.autograd.promotion import torch_defaults, torch_tensor
from functrans.autograd.sizes import integer, wrong_type
from functrans.autograd.tensors import MEANINGLESS, Tensor, refuse_device

# windows -----------------------------------------------------------------------------------------


def _window(name: str, text: str, make: Callable[..., Any], **defaults: float) -> Any:
    """A function that makes windows; ``make`` gives the values at shares of the whole length."""
    keys = list(defaults)

    def window(
        window_length: int, periodic: bool = True, *args: float, dtype: DTypeLike | None = None,
        requires_grad: bool = False, out: Any = None, device: Any = None, **options: Any,
    ) -> Tensor:  # fmt: skip
        refuse_out(name, out)
        if len(args) > len(keys):
            raise TypeError(
                f"{name}() takes at most {2 + len(keys)} positional arguments but "
                f"{2 + len(args)} were given"
            )
        refuse_device(device)
        shape = {**defaults, **dict(zip(keys, args, strict=False))}
        for key, value in options.items():
            if key in shape:
                shape[key] = value
            elif key not in MEANINGLESS:
                raise TypeError(f"{name}() got an unexpected keyword argument {key!r}")
        words = f"{name} requires non-negative window_length, got window_length={{}}"
        n = integer(window_length, "window_length", name, least=0, words=words)
        count = n if periodic else n - 1
        places = np.arange(n) / count if n > 1 else np.full(n, 0.5)
        values = np.ones(n) if n == 1 else make(places, **shape)
        result: Any = torch_tensor(np.asarray(values, given_dtype(dtype or torch_defaults.dtype)))
        return result.requires_grad_(requires_grad)

    return documented(window, name, text)


def _cosines(share: np.ndarray, *weights: float) -> np.ndarray:
    total = np.zeros_like(share)
    for k, weight in enumerate(weights):
        total += (-1) ** k * weight * np.cos(2 * math.pi * k * share)
    return total


WINDOWS = (
    _window("hann_window", "A wave of the cosine.", lambda t: _cosines(t, 0.5, 0.5)),
    _window(
        "hamming_window",
        "A wave of the cosine that does not reach 0.",
        lambda t, alpha, beta: _cosines(t, alpha, beta),
        alpha=0.54,
        beta=0.46,
    ),
    _window(
        "blackman_window", "Three terms of a cosine series.", lambda t: _cosines(t, 0.42, 0.5, 0.08)
    ),
    _window("bartlett_window", "A triangle.", lambda t: 1 - np.abs(2 * t - 1)),
    _window(
        "kaiser_window",
        "Modified Bessel functions of a half circle.",
        lambda t, beta: np.i0(beta * np.sqrt(np.maximum(1 - (2 * t - 1) ** 2, 0))) / np.i0(beta),
        beta=12.0,
    ),
)

# differences and sums ----------------------------------------------------------------------------


def gradient(
    input: Tensor, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1
) -> tuple[Tensor, ...]:
    """Slopes along axes by differences of neighbours.

    Args:
      input: values on a grid.
      spacing: distance of the values, coordinates, or one of these for each axis.
      dim: axes, by default all.
      edge_order: 1 or 2: order of the differences at the ends.

    Returns:
      One tensor for each axis.

    Raises:
      RuntimeError: the numbers of axes and spacings differ.

    Example:
      >>> from functrans.autograd import tensor
      >>> gradient(tensor([1.0, 2.0, 4.0]))
      (tensor([1. , 1.5, 2. ]),)
    """
    check_tensor("gradient", input)
    dims = (
        range(len(input.shape)) if dim is None else dim if isinstance(dim, (tuple, list)) else [dim]
    )
    axes = [axis_of(d, len(input.shape)) for d in dims]
    many = isinstance(spacing, (tuple, list))
    given = list(spacing) if many else [spacing] * len(axes)
    if len(given) != len(axes):
        raise RuntimeError(
            f"torch.gradient expected spacing to be unspecified, a scalar or a list of length "
            f"{len(axes)}, but got a list of length {len(given)}"
        )

    def slopes(x: Any, *steps: Any) -> tuple[Any, ...]:
        found = [
            fnp.gradient(x, step, axis=axis, edge_order=edge_order)
            for step, axis in zip(steps, axes, strict=True)
        ]
        return tuple(found)

    if input.dtype == np.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if input.dtype.kind == "b":
        input - input  # which says what to use
    operands = [floating(x) if isinstance(x, Tensor) else x for x in (input, *given)]
    return several("Gradient", slopes, *operands)


def cumulative_trapezoid(
    y: Tensor, x: Tensor | None = None, *, dx: object = None, dim: int = -1
) -> Tensor:
    """Integrals from the first place to each other one, by the trapezoid rule.

    Args:
      y: values.
      x: their places.
      dx: distance of the places, by default 1.
      dim: the axis.

    Raises:
      RuntimeError: both ``x`` and ``dx`` are given.
    """
    if x is not None and dx is not None:
        raise RuntimeError("cumulative_trapezoid() got both x and dx; give one of them")
    refuse_bools("cumulative_trapezoid", y=y, x=x)
    whole: Any = y
    axis = axis_of(dim, len(whole.shape))
    n = whole.shape[axis]
    if not n:
        return whole.clone()
    mean = (whole.narrow(axis, 1, n - 1) + whole.narrow(axis, 0, n - 1)) / 2
    if x is None:
        return (mean * (1.0 if dx is None else dx)).cumsum(axis)
    places: Any = x
    if len(places.shape) == 1:
        widths = places[1:] - places[:-1]
        widths = widths.reshape(-1, *(1 for _ in whole.shape[axis + 1 :]))
    else:
        widths = places.narrow(axis, 1, n - 1) - places.narrow(axis, 0, n - 1)
    return (mean * widths).cumsum(axis)


_HISTOGRAM = results("histogram", "hist", "bin_edges")


def histogram(
    input: Tensor,
    bins: Any,
    *,
    range: Sequence[float] | None = None,
    weight: Tensor | None = None,
    density: bool = False,
) -> Any:
    """How many elements lie in each of several intervals, and the bounds of these.

    Args:
      input: a tensor.
      bins: number of intervals, or their bounds.
      range: bounds of all intervals together.
      weight: what each element counts.
      density: whether the integral is 1.
    """
    check_tensor("histogram", input)
    if isinstance(bins, bool):
        raise wrong_type(bins, "bins", "histogram", "int or Tensor")
    ends = None if range is None else (float(range[0]), float(range[1]))
    weights = () if weight is None else (weight,)

    def counted(x: Any, edges: object, *weights: object) -> Any:
        found = fnp.histogram(x, edges, ends, density, *weights)
        return tuple([fnp.astype(part, input.dtype) for part in found])

    found: Any = fixed(counted, input, bins, *weights)
    return _HISTOGRAM(*found)


def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Indices along each axis of places in a flattened tensor."""
    given = int(shape) if isinstance(shape, int) else tuple(shape)
    sizes = extents((given,), "unravel_index", "shape")
    found: Any = fixed(lambda places: tuple(fnp.unravel_index(places, sizes)), indices)
    return found


# short-time transforms ---------------------------------------------------------------------------


def stft(
    input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect",
    normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:  # fmt: skip
    """Fourier transforms of overlapping parts of signals.

    Args:
      input: ``[l]`` or ``[n, l]``.
      n_fft: length of the transforms.
      hop_length: distance of the parts, by default a quarter of that.
      win_length: length of the window, by default ``n_fft``.
      window: factors, by default 1.
      center: whether parts are centred, and the signal is continued at its ends.
      pad_mode: how: ``"reflect"``, ``"constant"``, ``"replicate"`` or ``"circular"``.
      normalized: whether the result is divided by the root of ``n_fft``.
      onesided: whether negative frequencies are left out, by default for real signals.
      return_complex: must be true for real signals.
      align_to_window: must be ``None``.

    Returns:
      ``[n, frequencies, parts]``.

    Raises:
      RuntimeError: lengths do not fit; a real result is asked for.
      NotImplementedError: ``align_to_window``.
    """
    check_tensor("stft", input)
    if align_to_window is not None:
        raise NotImplementedError("stft: align_to_window is not supported")
    x: Any = input
    is_complex = x.dtype.kind == "c"
    if (
        not return_complex
        and not is_complex
        and not (window is not None and window.dtype.kind == "c")
    ):
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further "
            "require that return_complex=True in a future PyTorch release."
        )
    n_fft = integer(n_fft, "n_fft", "stft")
    hop = n_fft // 4 if hop_length is None else integer(hop_length, "hop_length", "stft")
    width = n_fft if win_length is None else integer(win_length, "win_length", "stft")
    if len(x.shape) not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, got {len(x.shape)}D")
    if hop <= 0 or not 0 < width <= n_fft:
        raise RuntimeError(
            f"stft: expected hop_length > 0 and 0 < win_length <= n_fft, but got hop_length={hop}, "
            f"win_length={width} and n_fft={n_fft}"
        )
    if window is not None and window.shape != (width,):
        raise RuntimeError(
            f"stft: expected a 1D window tensor of size equal to win_length={width}, but got "
            f"window with size {list(window.shape)}"
        )
    places = _part_places(x.shape[-1], n_fft, hop, center, pad_mode)
    half = (onesided is None or onesided) and not is_complex
    left = (n_fft - width) // 2

    def transformed(v: Any, w: object = None) -> Any:
        parts = v[..., np.maximum(places, 0)] * (places >= 0).astype(v.dtype)
        if w is not None:
            parts = parts * fnp.pad(w, (left, n_fft - width - left))
        elif width < n_fft:
            parts = parts * np.pad(np.ones(width, v.dtype), (left, n_fft - width - left))
        spectrum = fnp.fft.rfft(parts) if half else fnp.fft.fft(parts)
        spectrum = fnp.moveaxis(spectrum, -1, -2)
        narrow = v.dtype.itemsize < (16 if v.dtype.kind == "c" else 8)
        spectrum = fnp.astype(spectrum, np.complex64) if narrow else spectrum
        return spectrum / math.sqrt(n_fft) if normalized else spectrum

    operands = (x,) if window is None else (x, window)
    return composite("Stft", transformed, *operands)


def _part_places(length: int, n_fft: int, hop: int, center: bool, mode: str) -> np.ndarray:
    """Where the elements of each part lie, ``[parts, n_fft]``; -1 is outside."""
    places = np.arange(length)
    if center:
        ends = n_fft // 2
        names = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
        if mode == "reflect" and ends >= length:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, "
                f"but got: padding ({ends}, {ends}) at dimension 2 of input [1, 1, {length}]"
            )
        if mode == "constant":
            places = np.pad(places, ends, constant_values=-1)
        elif mode in names:
            places = np.pad(places, ends, mode=names[mode])  # type: ignore[call-overload]  # a word NumPy knows
        else:
            raise RuntimeError(f"stft: unknown pad_mode {mode!r}")
    count = 1 + (len(places) - n_fft) // hop
    if len(places) < n_fft:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {len(places)}, but got n_fft={n_fft}")
    found: np.ndarray = places[np.arange(count)[:, None] * hop + np.arange(n_fft)]
    return found


# settings and questions --------------------------------------------------------------------------


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Tensor:
    """The memory of a buffer as a tensor, of one axis."""
    result: Any = torch_tensor(np.frombuffer(buffer, given_dtype(dtype), count, offset))
    return result.requires_grad_(requires_grad)


def from_dlpack(ext_tensor: Any) -> Tensor:
    """The memory of an object with ``__dlpack__``, on the CPU, as a tensor."""
    return torch_tensor(np.from_dlpack(ext_tensor))


def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values of a matrix, or of matrices along two axes."""
    if isinstance(dim, bool):
        dim, keepdim = (-2, -1), dim
    return LINALG["matrix_norm"](input, "nuc", dim, keepdim)


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element of a tensor is not 0.

    Raises:
      RuntimeError: there are more or none.
    """
    return input.is_nonzero()


def typename(obj: Any) -> str:
    """Torch's name of the type of a tensor; of others module and class."""
    if isinstance(obj, Tensor):
        return torch_type(obj.dtype)
    kind = obj if isinstance(obj, type) else type(obj)
    module = "" if kind.__module__ in ("builtins", "__builtin__") else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"


def set_default_device(device: object) -> None:
    """Accepted for the CPU.

    Raises:
      RuntimeError: another device.
    """
    refuse_device(device)


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted: products are not rounded more than their dtype.

    Raises:
      RuntimeError: there is no such word.
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', 'medium'")


def set_num_interop_threads(num: int) -> None:
    """Accepted: operations run one after the other.

    Raises:
      RuntimeError: it is not positive.
    """
    if num < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")


def set_default_tensor_type(t: object) -> None:
    """Set the default dtype to that of one of torch's types; ``set_default_dtype`` is newer.

    Args:
      t: a type as ``torch.DoubleTensor``, or its name.

    Raises:
      TypeError: it is no floating type.
    """
    kind = TYPES.get(t.removeprefix("torch.")) if isinstance(t, str) else t
    if not isinstance(kind, TensorType) or kind.dtype.kind != "f":
        raise TypeError("only floating-point types are supported as the default type")
    torch_defaults.dtype = kind.dtype


def set_warn_always(b: bool) -> None:
    """Whether what is warned of once is warned of each time from now on."""
    torch_defaults.warns_always = b


def _itself(model: Any) -> Any:
    """What is to be compiled."""
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    return model


_ANSWERS: dict[str, tuple[Callable[..., Any], str]] = {
    "compile": (
        lambda model=None, *, fullgraph=False, dynamic=None, backend=None, mode=None, options=None,
        disable=False: _itself if model is None else _itself(model),
        "The function or module itself, or a decorator that gives it: ``functrans.jit`` compiles.",
    ),
    "is_storage": (lambda obj: False, "``False``: memory is that of ndarrays."),
    "is_neg": (lambda input: False, "``False``: negatives are computed at once."),
    "is_signed": (
        lambda input: input.dtype.kind not in "ub", "Whether a tensor's dtype has negative numbers."
    ),
    "is_inference": (
        lambda input: input.is_inference(), "Whether a tensor was made in ``inference_mode``."
    ),
    "get_default_device": (lambda: CPU, "The CPU."),
    "use_deterministic_algorithms": (
        lambda mode, *, warn_only=False: None, "Accepted: all results are the same in each run."
    ),
    "are_deterministic_algorithms_enabled": (lambda: True, "``True``."),
    "get_float32_matmul_precision": (
        lambda: "highest", '``"highest"``: products are not rounded more than their dtype.'
    ),
    "get_num_interop_threads": (lambda: 1, "1: operations run one after the other."),
    "set_flush_denormal": (lambda mode: False, "``False``: subnormal numbers are numbers."),
    "is_warn_always_enabled": (
        lambda: torch_defaults.warns_always, "What ``set_warn_always`` set; ``False`` at first."
    ),
}  # fmt: skip
"""Functions that only give an answer or an argument, and their documentation."""

FUNCTIONS: dict[str, Any] = {
    **{
        function.__name__: function
        for function in (
            *WINDOWS, gradient, cumulative_trapezoid, histogram, unravel_index, stft, frombuffer,
            from_dlpack, nuclear_norm, is_nonzero, typename, set_default_device,
            set_float32_matmul_precision, is_anomaly_enabled, set_num_interop_threads,
            set_default_tensor_type, set_warn_always,
        )
    },
    **{name: documented(function, name, text) for name, (function, text) in _ANSWERS.items()},
}  # fmt: skip
