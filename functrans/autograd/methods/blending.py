"""Operations of several tensors, element by element: bounds, choices, interpolation.

Not here: operations of two tensors (``arithmetic``).

Layer: ``autograd``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.autograd.composites import composite, named
from functrans.autograd.methods.arithmetic import in_dtype, joined, refuse_kinds
from functrans.autograd.methods.rows import (
    Row,
    check_tensor,
    constant,
    fixed,
    functions_of,
    into,
    lifted,
    looked_at,
    methods_of,
    number,
    rows_of,
    with_out,
)
from functrans.autograd.promotion import default_of, exact, number_dtype, result_dtype, to_dtype
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import elementwise
from functrans.core.values import Array
from functrans.primitives import elementwise as ew
from functrans.primitives import torch_elementwise as te
from functrans.primitives.structural import cast


def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """``input + weight * (end - input)``.

    Raises:
      RuntimeError: the dtypes differ.
    """
    for x, name in ((end, "end"), (weight, "weight")):
        is_number = name == "weight" and not getattr(x, "shape", ())
        if isinstance(x, Tensor) and x.dtype != input.dtype and not is_number:
            raise RuntimeError(f"expected dtype {input.dtype} for `{name}` but got dtype {x.dtype}")
    if isinstance(weight, Tensor):
        return joined("LerpBackward1", _blended, input, end, weight)
    if abs(weight) < 0.5:
        return joined("Lerp", lambda a, b: a + weight * (b - a), input, end)
    return joined("Lerp", lambda a, b: b - (b - a) * (1 - weight), input, end)


def _blended(a: Any, b: Any, weight: Any) -> Array | Tensor:
    """Computed from the end that is nearer."""
    step = b - a
    is_near = (weight < 0.5) & (weight > -0.5)
    return ew.where(is_near, a + weight * step, b - step * (1 - weight))


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: object = 1) -> Tensor:
    """``input + value * tensor1 * tensor2``."""
    value = number("addcmul", "value", value)
    if not isinstance(value, Tensor):
        value = exact(value, result_dtype(input, tensor1, tensor2))
    return joined("Addcmul", lambda x, a, b: x + (value * a) * b, input, tensor1, tensor2)


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: object = 1) -> Tensor:
    """``input + value * tensor1 / tensor2``.

    Raises:
      RuntimeError: the divided tensors are of integers.
    """
    if result_dtype(tensor1, tensor2).kind in "iub":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv"
            " will perform a true division of tensor1 and tensor2. The historic addcdiv behavior "
            "can be implemented as (input + value * torch.trunc(tensor1 / tensor2)).to(input.dtype)"
            " for integer inputs and as (input + value * tensor1 / tensor2) for float inputs. The "
            "future addcdiv behavior is just the latter implementation: (input + value * tensor1 / "
            "tensor2), for all dtypes."
        )
    value = number("addcdiv", "value", value)
    return joined("Addcdiv", lambda x, a, b: x + (value * a) / b, input, tensor1, tensor2)


def clamp(input: Tensor, min: object = None, max: Any = None) -> Tensor:
    """Each element at least ``min`` and at most ``max``.

    Raises:
      RuntimeError: neither is given.
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    refuse_complex_bounds(input, min, max)
    by_tensor = isinstance(min, Tensor) or isinstance(max, Tensor)
    if by_tensor:
        bounds = [None if b is None else lifted(b, input) for b in (min, max)]
        return _clamped_by_tensors("Clamp", input, *bounds)
    dtype = result_dtype(input, *[b for b in (min, max) if b is not None])
    low = None if min is None else exact(min, dtype)
    high = None if max is None else exact(max, dtype)

    def clamped(x: Any) -> Array | Tensor:
        x = cast(x, dtype)
        if low is not None and high is not None:
            return te.clamp(x, low, high)
        return te.clamp_max(x, high) if low is None else te.clamp_min(x, low)

    return composite("ClampBackward1", clamped, input)


def refuse_complex_bounds(*operands: object) -> None:
    """Refuse bounds of complex numbers, and such numbers themselves."""
    if result_dtype(*[x for x in operands if x is not None]).kind == "c":
        # torch's class and words, of relu, too: complex numbers have no order
        raise NotImplementedError("clamp is not supported for complex types")


def _clamped_by_tensors(label: str, x: Tensor, low: Any, high: Any) -> Tensor:
    """Bounds that are tensors get the gradient where they are the result, and ``x`` at ties."""
    if high is None:
        return joined(label, te.clamp_min, x, low)
    if low is None:
        return joined(label, te.clamp_max, x, high)
    return joined(label, te.clamp, x, low, high)


def clamp_min(input: Tensor, min: object) -> Tensor:
    """Each element at least ``min``."""
    refuse_complex_bounds(input, min)
    if isinstance(min, Tensor):
        return _clamped_by_tensors("ClampMinBackward1", input, min, None)
    return named(clamp(input, min=min), "ClampMin")


def clamp_max(input: Tensor, max: object) -> Tensor:
    """Each element at most ``max``."""
    refuse_complex_bounds(input, max)
    if isinstance(max, Tensor):
        return _clamped_by_tensors("ClampMaxBackward1", input, None, max)
    return named(clamp(input, max=max), "ClampMax")


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: object = None) -> Any:
    """``input`` where the condition holds, else ``other``; positions that are true, alone.

    Raises:
      TypeError: the condition is no tensor.
      RuntimeError: it is not of truth values.
    """
    if out is not None:
        return into(out, "where", where, condition, input, other)
    check_tensor("where", condition, "condition")
    if input is None and other is None:
        return tuple(
            constant(index, condition) for index in np.nonzero(np.atleast_1d(looked_at(condition)))
        )
    if condition.dtype.kind != "b" and condition.dtype != np.uint8:
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype}"
        )
    dtype = result_dtype(input, other)
    if not isinstance(input, Tensor) and not isinstance(other, Tensor) and dtype.kind in "fc":
        dtype = number_dtype(complex if dtype.kind == "c" else float, default_of(condition))
    mask = to_dtype(condition, np.dtype(bool))
    a, b = (in_dtype(x, dtype, exact) for x in (input, other))
    return named(elementwise(ew.where_p, mask, a, b), "Where")


def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor where the condition holds, else ``other``."""
    return where(condition, self, other)


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """The tensor with a number where a mask holds.

    Raises:
      RuntimeError: the mask is not of truth values, or the value has axes.
    """
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}"
        )
    if isinstance(value, Tensor):
        if value.shape:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{len(value.shape)} dimension(s)."
            )
        filler = to_dtype(value, input.dtype)
        return composite(
            "MaskedFillBackward1", lambda x, v: ew.where(mask._value, v, x), input, filler
        )
    number = exact(value, input.dtype)
    return composite("MaskedFill", lambda x, m: ew.where(m, number, x), input, mask)


def ldexp(input: Tensor, other: object) -> Tensor:
    """``input * 2 ** other``."""
    return joined("Ldexp", lambda x, n: x * ew.exp2(n), input, other, true=True)


def xlogy(input: Any, other: Any) -> Tensor:
    """``input * log(other)``, 0 where ``input`` is 0."""
    refuse_kinds("xlogy_cpu", "c", input, other)
    return joined("Xlogy", te.xlogy, input, other, true=True)


def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """0 below 0 and at NaN, 1 above, ``values`` at 0."""
    check_tensor("heaviside", values, "values", 2)
    if "c" in (input.dtype.kind, values.dtype.kind):
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    dtype = input.dtype
    return fixed(lambda x, at: ew.where(x == 0, at, cast(x > 0, dtype)), input, values)


ROWS: tuple[Row, ...] = (
    *rows_of("mfi", heaviside, lerp, addcmul, addcdiv, clamp_min, clamp_max, masked_fill, ldexp),
    *rows_of("mi", xlogy),
    Row("clamp", clamp, ("clip",), "mfi"),
)  # fmt: skip

METHODS: dict[str, Any] = {**methods_of(ROWS), "where": where_method}
FUNCTIONS: dict[str, Any] = {
    **functions_of(ROWS),
    "where": where,
    "xlogy": with_out("xlogy", xlogy),
}
