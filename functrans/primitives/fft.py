"""Discrete Fourier transforms: complex, real to half-complex and back, over several axes.

Here: the records ``fft_c2c``, ``rfft``, ``irfft`` and their functions, without normalization, for
axes of given length. Not here: NumPy's ``fft`` functions with ``n``, ``s``, ``axis`` and ``norm``
(``functrans.numpy.fft``), which pad, crop and scale outside.

With ``w = exp(-2 pi i / n)``, per axis::

    fft_c2c:            y_k = sum over j of x_j w^(jk);        inverse=True: w^(-jk)
    rfft:   x real,     y_k = sum over j of x_j w^(jk),        k = 0 ... n // 2
    irfft:  y real,     y_j = Re sum over k of c_k x_k w^(-jk),  k = 0 ... n // 2

where ``c_k`` is 1 for ``k = 0`` and ``k = n / 2`` and 2 for the others, which stand for their
mirror images too. ``rfft`` and ``irfft`` do this along the last of ``axes`` and ``fft_c2c`` along
the others. Transposes (no conjugation; that of taking the real part embeds in the complex numbers):

- the matrix ``w^(jk)`` is symmetric, so that ``fft_c2c`` is its own transpose;
- ``rfft``: ``x_bar_j = Re sum_k y_bar_k w^(jk) = irfft(conj(y_bar) / c)_j``;
- ``irfft``: ``x_bar_k = c_k sum_j y_bar_j w^(-jk) = c_k conj(rfft(y_bar))_k``.

With further axes both follow from ``F conj(x) = conj(F_inverse x)``, unnormalized. All three are
linear and act on each row apart, so that a batch axis is one more axis.

Layer: ``primitives``. Reference: Van Loan, Computational Frameworks for the Fast Fourier Transform
(1992), ch. 1 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.axes import along_axes
from functrans.core.dispatch import bind, dtype_of
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive, Work, linear
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives.complex_parts import complex_dtype, conjugate, real_dtype
from functrans.primitives.native.ufuncs import (
    fft_c2c_lower,
    has_transforms,
    irfft_lower,
    rfft_lower,
)
from functrans.primitives.structural import cast

Axes = tuple[int, ...]


def _check_axes(name: str, x: ShapedArray, axes: Axes) -> None:
    """Refuse axes that do not exist, come twice, or have no elements."""
    if not axes or len(set(axes)) != len(axes) or not all(0 <= axis < x.ndim for axis in axes):
        raise ShapeError(
            f"{name}: axes {axes} of {x} must be one or more distinct axes in [0, {x.ndim})"
        )
    if any(x.shape[axis] < 1 for axis in axes):
        raise ShapeError(
            f"{name}: cannot transform {x} along axes {axes}; each needs at least one element"
        )


def _with_extent(shape: tuple[int, ...], axis: int, extent: int) -> tuple[int, ...]:
    """The shape with another extent along an axis."""
    return (*shape[:axis], extent, *shape[axis + 1 :])


def spectrum_dtype(dtype: np.dtype) -> np.dtype:
    """Dtype of a transform: integers become double precision, half precision becomes single."""
    return complex_dtype(dtype) if dtype.kind not in "iub" else np.dtype(np.complex128)


def _ready(x: Array) -> Array:
    """An operand in a dtype that NumPy transforms."""
    return x if x.dtype.kind in "fciub" else x.astype(np.float32)  # bfloat16


def _wide(x: Array, axes: Axes) -> Array:
    """An operand in double precision where NumPy would round between axes."""
    x = _ready(x)
    double = np.complex128 if x.dtype.kind == "c" else np.float64
    return x.astype(double) if len(axes) > 1 and x.dtype.kind in "fc" else x


# complex ----------------------------------------------------------------------------------------


def _fft_c2c_impl(x: Array, *, axes: Axes, inverse: bool) -> tuple[Any, ...]:
    if len(axes) == 1 and x.dtype.kind != "c":
        return (_transformed_real(_ready(x), axes[0], inverse),)
    wide = _wide(x, axes)
    transform = np.fft.ifftn if inverse else np.fft.fftn
    out = transform(wide, axes=axes, norm="forward" if inverse else "backward")
    return (out.astype(spectrum_dtype(x.dtype), copy=False),)


def _transformed_real(x: Array, axis: int, inverse: bool) -> Array:
    """The half of the spectrum that a real array has, and its mirror image."""
    n = x.shape[axis]
    lines = (slice(None),) * axis
    out = np.empty(x.shape, spectrum_dtype(x.dtype))
    half = out[(*lines, slice(n // 2 + 1))]
    half[...] = np.fft.rfft(x, axis=axis)
    if inverse:
        np.conjugate(half, out=half)
    np.conjugate(
        half[(*lines, slice((n - 1) // 2, 0, -1))], out=out[(*lines, slice(n // 2 + 1, n))]
    )
    return out


def _fft_c2c_aval(x: ShapedArray, *, axes: Axes, inverse: bool) -> tuple[ShapedArray, ...]:
    _check_axes("fft_c2c", x, axes)
    return (ShapedArray(x.shape, spectrum_dtype(x.dtype)),)


def _fft_c2c_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, axes: Axes, inverse: bool
) -> tuple[Any, ...]:
    return (cast(fft_c2c(cts[0], axes, inverse=inverse), operands[0].aval.dtype),)


def _batched(axes: Axes, dim: int) -> Axes:
    """Axes after a batch axis was put in."""
    return tuple([axis + (axis >= dim) for axis in axes])


def _fft_c2c_batch(
    size: int, operands: Sequence[Array], dims: Sequence[Any], *, axes: Axes, inverse: bool
) -> tuple[Any, Any]:
    moved = _batched(axes, dims[0])
    return bind(fft_c2c_p, operands[0], axes=moved, inverse=inverse), dims


def _work(factor: float) -> Callable[..., Work]:
    """Cooley and Tukey's count, half of it where one side is real."""

    def work(x: ShapedArray, *, axes: Axes, **params: Any) -> Work:
        shape = list(x.shape)
        if "n" in params:  # of the real result
            shape[axes[-1]] = params["n"]
        extent = math.prod(shape[axis] for axis in axes)
        return Work(factor * math.prod(shape) * math.log2(max(2, extent)))

    return work


fft_c2c_p = Primitive(
    "fft_c2c",
    impl=_fft_c2c_impl,
    abstract_eval=_fft_c2c_aval,
    jvp=linear,
    transpose=_fft_c2c_transpose,
    batch=_fft_c2c_batch,
    lower=Routine(fft_c2c_lower, supports=has_transforms),
    axis_map=along_axes,
    memory="own",
    work=_work(5.0),
)


def fft_c2c(x: Array, axes: Axes, *, inverse: bool = False) -> Array:
    """Unnormalized Fourier transform of a complex or real array.

    Args:
      x: ``c128[...]``, ``c64[...]`` or real; no axis in ``axes`` is empty.
      axes: distinct and non-negative.
      inverse: whether the exponent has the other sign.

    Raises:
      ShapeError: an axis is empty, comes twice or does not exist.
    """
    return bind(fft_c2c_p, x, axes=axes, inverse=inverse)[0]


# real to half-complex ---------------------------------------------------------------------------


def _mirror_weights(n: int, axis: int, ndim: int, dtype: np.dtype) -> Array:
    """The weights ``c`` of a half spectrum, along ``axis``."""
    weights = np.full(n // 2 + 1, 2, dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return weights.reshape((-1,) + (1,) * (ndim - 1 - axis))


def _rfft_impl(x: Array, *, axes: Axes) -> tuple[Any, ...]:
    out = np.fft.rfftn(_wide(x, axes), axes=axes)
    return (out.astype(spectrum_dtype(x.dtype), copy=False),)


def _rfft_aval(x: ShapedArray, *, axes: Axes) -> tuple[ShapedArray, ...]:
    _check_axes("rfft", x, axes)
    if x.dtype.kind == "c":
        raise TypeError(f"rfft: expected a real array, got {x}; use fft for complex ones")
    shape = _with_extent(x.shape, axes[-1], x.shape[axes[-1]] // 2 + 1)
    return (ShapedArray(shape, spectrum_dtype(x.dtype)),)


def _rfft_transpose(
    cts: tuple[Any, ...], operands: Sequence[Any], *, axes: Axes
) -> tuple[Any, ...]:
    (ct,) = cts
    aval = operands[0].aval
    n = aval.shape[axes[-1]]
    weights = _mirror_weights(n, axes[-1], aval.ndim, real_dtype(dtype_of(ct)))
    return (cast(irfft(conjugate(ct) / weights, axes, n), aval.dtype),)


def _rfft_batch(
    size: int, operands: Sequence[Array], dims: Sequence[Any], *, axes: Axes
) -> tuple[Any, Any]:
    return bind(rfft_p, operands[0], axes=_batched(axes, dims[0])), dims


rfft_p = Primitive(
    "rfft",
    impl=_rfft_impl,
    abstract_eval=_rfft_aval,
    jvp=linear,
    transpose=_rfft_transpose,
    batch=_rfft_batch,
    lower=Routine(rfft_lower, supports=has_transforms),
    axis_map=along_axes,
    memory="own",
    work=_work(2.5),
)


def rfft(x: Array, axes: Axes) -> Array:
    """Unnormalized Fourier transform of a real array, half of the spectrum.

    Args:
      x: real; no axis in ``axes`` is empty.
      axes: distinct and non-negative; the last one gets extent ``n // 2 + 1``.

    Raises:
      ShapeError: an axis is empty, comes twice or does not exist.
      TypeError: the array is complex.
    """
    return bind(rfft_p, x, axes=axes)[0]


# half-complex to real ---------------------------------------------------------------------------


def _irfft_impl(x: Array, *, axes: Axes, n: int) -> tuple[Any, ...]:
    wide = _wide(x, axes)
    if len(axes) > 1:
        wide = np.fft.ifftn(wide, axes=axes[:-1], norm="forward")
    out = np.fft.irfft(wide, n, axis=axes[-1], norm="forward")
    return (out.astype(real_dtype(x.dtype), copy=False),)


def _irfft_aval(x: ShapedArray, *, axes: Axes, n: int) -> tuple[ShapedArray, ...]:
    _check_axes("irfft", x, axes)
    if x.dtype.kind != "c":
        raise TypeError(f"irfft: expected a complex array, got {x}; cast it first")
    if n < 1 or x.shape[axes[-1]] != n // 2 + 1:
        raise ShapeError(
            f"irfft: {n} points need {n // 2 + 1} frequencies along axis {axes[-1]}, got {x}"
        )
    return (ShapedArray(_with_extent(x.shape, axes[-1], n), real_dtype(x.dtype)),)


def _irfft_transpose(
    cts: tuple[Array, ...], operands: Sequence[Any], *, axes: Axes, n: int
) -> tuple[Any, ...]:
    (ct,) = cts
    aval = operands[0].aval
    weights = _mirror_weights(n, axes[-1], aval.ndim, dtype_of(ct))
    return (cast(conjugate(rfft(ct, axes)) * weights, aval.dtype),)


def _irfft_batch(
    size: int, operands: Sequence[Any], dims: Sequence[Any], *, axes: Axes, n: int
) -> tuple[Any, Any]:
    return bind(irfft_p, operands[0], axes=_batched(axes, dims[0]), n=n), dims


irfft_p = Primitive(
    "irfft",
    impl=_irfft_impl,
    abstract_eval=_irfft_aval,
    jvp=linear,
    transpose=_irfft_transpose,
    batch=_irfft_batch,
    lower=Routine(irfft_lower, supports=has_transforms),
    axis_map=along_axes,
    memory="own",
    work=_work(2.5),
)


def irfft(x: Any, axes: Axes, n: int) -> Array:
    """Unnormalized inverse of :func:`rfft`: a real array from half of its spectrum.

    Args:
      x: complex, of extent ``n // 2 + 1`` along the last of ``axes``.
      axes: distinct and non-negative.
      n: extent of the result along the last of ``axes``.

    Raises:
      ShapeError: the extent does not fit ``n``, or an axis is empty, comes twice or does not exist.
      TypeError: the array is real.
    """
    return bind(irfft_p, x, axes=axes, n=n)[0]


PRIMITIVES: tuple[Primitive, ...] = (fft_c2c_p, rfft_p, irfft_p)
