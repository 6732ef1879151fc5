"""Primitives between real and complex arrays: real, imag, conjugate, complex, complex absolute.

Here: the records and their functions. Not here: holomorphic functions (``elementwise``).

Convention (JAX's): the transpose of a map on complex numbers is taken without conjugation, so that
``grad`` of a holomorphic function with ``holomorphic=True`` is its complex derivative.

Layer: ``primitives``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray, Zero
from functrans.core.dispatch import bind, dtype_of, shape_of
from functrans.core.primitive import Primitive, is_linear, linear
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives.family import (
    broadcast_shapes,
    move_batch_axes,
    nothing,
    pointwise,
    promoted_dtype,
    user_function,
)
from functrans.primitives.structural import cast, unbroadcast


def real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex dtype; a real dtype is its own."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def complex_dtype(dtype: np.dtype) -> np.dtype:
    """The complex dtype with parts of a real dtype."""
    return dtype if dtype.kind == "c" else np.result_type(dtype, np.complex64)


def _check_number(x: ShapedArray) -> None:
    if x.dtype.kind == "b":  # NumPy's part of a boolean is no boolean
        raise TypeError(f"{x} has no parts and no conjugate")


def _part_aval(x: ShapedArray) -> tuple[ShapedArray, ...]:
    _check_number(x)
    return (ShapedArray(x.shape, real_dtype(x.dtype)),)


def _same_aval(x: ShapedArray) -> tuple[ShapedArray, ...]:
    _check_number(x)
    return (x.strong(),)


def _batch_of(get: Callable[..., Any]) -> Callable[..., Any]:
    def batch(size: int, operands: Sequence[Array], dims: Sequence[int | None]) -> tuple[Any, Any]:
        return bind(get(), operands[0]), dims

    return batch


def _real_transpose(cts: tuple[Any, ...], operands: Sequence[Any]) -> tuple[Any, ...]:
    return (cast(cts[0], operands[0].aval.dtype),)


real_p: Primitive = Primitive(
    "real",
    impl=lambda x: (np.positive(np.real(x)),),  # a copy
    abstract_eval=_part_aval,
    jvp=linear,
    transpose=_real_transpose,
    batch=_batch_of(lambda: real_p),
    lower=pointwise("real"),
    work=nothing,
)


def _imag_transpose(cts: tuple[Any, ...], operands: Sequence[Any]) -> tuple[Any, ...]:
    """Im(x) = Re(-i x), so that the cotangent is multiplied by -i."""
    return (cast(cts[0], operands[0].aval.dtype) * -1j,)


imag_p: Primitive = Primitive(
    "imag",
    impl=lambda x: (np.positive(np.imag(x)),),  # a copy
    abstract_eval=_part_aval,
    jvp=linear,
    transpose=_imag_transpose,
    batch=_batch_of(lambda: imag_p),
    lower=pointwise("imag"),
    work=nothing,
)


def _conjugate_transpose(cts: tuple[Array, ...], operands: Sequence[Any]) -> tuple[Any, ...]:
    return (conjugate(cts[0]),)


conjugate_p: Primitive = Primitive(
    "conjugate",
    impl=lambda x: (np.conjugate(x),),
    abstract_eval=_same_aval,
    jvp=linear,
    transpose=_conjugate_transpose,
    batch=_batch_of(lambda: conjugate_p),
    lower=pointwise("conjugate"),
)


def _complex_impl(re: Array | complex, im: Array | complex) -> tuple[Any, ...]:
    dtype = complex_dtype(np.result_type(re, im))
    out = np.empty(np.broadcast_shapes(np.shape(re), np.shape(im)), dtype)
    out.real = re
    out.imag = im
    return (out,)


def _complex_aval(re: ShapedArray, im: ShapedArray) -> tuple[ShapedArray, ...]:
    dtype = complex_dtype(promoted_dtype((re, im)))
    return (ShapedArray(broadcast_shapes("complex", [re.shape, im.shape]), dtype),)


def _complex_transpose(cts: tuple[Any, ...], operands: Sequence[Any]) -> tuple[Any, ...]:
    (ct,) = cts
    parts = (real(ct), -imag(ct))
    return tuple(
        unbroadcast(part, operand.aval.shape, operand.aval.dtype) if is_linear(operand) else None
        for part, operand in zip(parts, operands, strict=True)
    )


def _complex_batch(
    size: int, operands: Sequence[Array], dims: Sequence[int | None]
) -> tuple[Any, Any]:
    ndims = [len(shape_of(x)) - (dim is not None) for x, dim in zip(operands, dims, strict=True)]
    return bind(complex_p, *move_batch_axes(operands, dims, ndims)), (0,)


complex_p: Primitive = Primitive(
    "complex",
    impl=_complex_impl,
    abstract_eval=_complex_aval,
    jvp=linear,
    transpose=_complex_transpose,
    batch=_complex_batch,
    lower=pointwise("complex"),
    work=nothing,
)


def _complex_abs_jvp(
    primals: Sequence[Array], tangents: Sequence[Any], outs: Sequence[Array]
) -> tuple[Any, ...]:
    """d|x| = Re(conj(x) dx) / |x|, at 0 the constant 0, so that higher derivatives vanish, too."""
    (x,), (t,), (y,) = primals, tangents, outs
    if type(t) is Zero:
        return (Zero(ShapedArray(shape_of(y), dtype_of(y))),)
    is_zero = y == 0
    return (real(t * ew.where(is_zero, 0, conjugate(x) / ew.where(is_zero, 1, y))),)


complex_abs_p: Primitive = Primitive(
    "complex_abs",
    impl=lambda x: (np.absolute(x),),
    abstract_eval=_part_aval,
    jvp=_complex_abs_jvp,
    batch=_batch_of(lambda: complex_abs_p),
    lower=pointwise("complex_abs", cost=4),
    reasons=(("transpose", "not linear"),),
)


def is_complex(x: Any) -> bool:
    """Whether the dtype is complex."""
    return dtype_of(x).kind == "c"


def real(x: Any) -> Any:
    """Real part; a real operand itself."""
    return bind(real_p, x)[0] if is_complex(x) else x


def imag(x: Any) -> Any:
    """Imaginary part; zeros for a real operand."""
    return bind(imag_p, x)[0] if is_complex(x) else ew.where(True, 0, x)


def conjugate(x: Any) -> Any:
    """Complex conjugate; a real operand itself."""
    return bind(conjugate_p, x)[0] if is_complex(x) else x


def complex_of(re: Array | complex, im: Array | complex) -> Any:
    """``re + 1j * im`` without rounding or spurious NaN."""
    return bind(complex_p, re, im)[0]


def absolute(x: Any) -> Any:
    """Absolute value, real for complex operands; its derivative at 0 is 0."""
    if is_complex(x):
        return bind(complex_abs_p, x)[0]
    return _absolute(x)


_absolute = user_function(ew.absolute_p)


def sign(x: Array) -> Any:
    """Sign; ``x / |x|`` for complex operands (NumPy 2), 0 at 0, along an infinite part."""
    if not is_complex(x):
        return ew.sign(x)
    y = absolute(x)
    is_flat = (y == 0) | ew.isinf(y)
    apart, size = ew.where(is_flat, 1, x), ew.where(is_flat, 1, y)
    # Part by part: a complex quotient loses the signs of zeros.
    turned = complex_of(real(apart) / size, imag(apart) / size)
    return ew.where(is_flat, ew.sign(x), turned)


PRIMITIVES: tuple[Primitive, ...] = (real_p, imag_p, conjugate_p, complex_p, complex_abs_p)
