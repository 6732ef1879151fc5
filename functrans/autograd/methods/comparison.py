"""Comparisons, logic and tests of ``Tensor``: results are tensors of truth values.

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.methods.arithmetic import (
    apply,
    checked_operand,
    other_operand,
    promoted,
    refuse_kinds,
)
from functrans.autograd.methods.rows import (
    Row,
    check_tensor,
    documented,
    fixed,
    functions_of,
    looked_at,
    methods_of,
    rows_of,
    with_out,
)
from functrans.autograd.promotion import torch_kind
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import elementwise
from functrans.primitives import elementwise as ew


def _comparison(name: str, primitive: Any, operand: Callable[..., Any]) -> Callable[..., Any]:
    is_of_order = name not in ("eq", "ne")

    def operation(input: Tensor, other: Any) -> Tensor:
        other = operand(input, other)
        if other is NotImplemented:
            return NotImplemented
        if is_of_order and (input.dtype.kind == "c" or not isinstance(other, (int, float))):
            refuse_kinds(f"{name}_cpu", "c", input, other)
        return apply(primitive, input, other)

    return documented(operation, name, f"``{name}`` of two tensors, or of a tensor and a number.")


def _logical(name: str, primitive: Any) -> Callable[..., Any]:
    def operation(input: Tensor, other: Tensor) -> Tensor:
        return elementwise(primitive, *(apply(ew.not_equal_p, x, 0) for x in (input, other)))

    return documented(operation, name, f"``{name}`` of two tensors; numbers other than 0 are true.")


def logical_not(input: Tensor) -> Tensor:
    """Whether each element is 0."""
    return apply(ew.equal_p, input, 0)


def bitwise_not(input: Tensor) -> Tensor:
    """Each bit inverted.

    Raises:
      RuntimeError: the tensor is not of integers or truth values.
    """
    if input.dtype.kind not in "iub":
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return elementwise(ew.invert_p, input)


def _test(name: str, function: Callable[[Tensor], Any]) -> Row:
    def operation(input: Tensor) -> Tensor:
        return function(input)

    return Row(name, documented(operation, name, f"``{name}`` of each element."))


def _is_infinite(name: str, infinity: float, x: Tensor) -> Tensor:
    if x.dtype.kind == "c":
        raise RuntimeError(f"{name} does not support complex inputs.")
    return apply(ew.equal_p, x, infinity)


def _same_dtype(input: Tensor, other: Tensor) -> None:
    if input.dtype != other.dtype:
        raise RuntimeError(f"{torch_kind(input.dtype)} did not match {torch_kind(other.dtype)}")


def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    """Whether elements differ by at most ``atol + rtol * |other|``."""
    _same_dtype(input, other)
    return fixed(lambda x, y: fnp.isclose(x, y, rtol, atol, equal_nan), input, other)


def allclose(
    input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> bool:
    """Whether all elements differ by at most ``atol + rtol * |other|``."""
    return bool(np.all(looked_at(isclose(input, other, rtol, atol, equal_nan), "bool()")))


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are the same."""
    check_tensor("equal", other, "other", 2)
    if input.shape != other.shape:
        return False
    return bool(np.all(looked_at(input, "bool()") == looked_at(other, "bool()")))


def isin(
    elements: object, test_elements: object, *, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Whether each element is among those of another tensor."""
    operands = promoted(elements, test_elements)
    return fixed(lambda x, among: fnp.isin(x, among, invert=invert), *operands)


_COMPARISONS = (
    ("eq", ew.equal_p, ()),
    ("ne", ew.not_equal_p, ("not_equal",)),
    ("lt", ew.less_p, ("less",)),
    ("le", ew.less_equal_p, ("less_equal",)),
    ("gt", ew.greater_p, ("greater",)),
    ("ge", ew.greater_equal_p, ("greater_equal",)),
)

ROWS: tuple[Row, ...] = (
    *rows_of(
        "mfi", _logical("logical_and", ew.logical_and_p), _logical("logical_or", ew.logical_or_p),
        _logical("logical_xor", ew.logical_xor_p), logical_not, bitwise_not,
    ),
    *rows_of("mf", isclose, allclose, equal),
    *(
        Row(name, _comparison(name, p, partial(checked_operand, name)), aliases, "mfi")
        for name, p, aliases in _COMPARISONS
    ),
    _test("isnan", ew.isnan),
    _test("isinf", ew.isinf),
    _test("isfinite", ew.isfinite),
    _test("isposinf", partial(_is_infinite, "isposinf", np.inf)),
    _test("isneginf", partial(_is_infinite, "isneginf", -np.inf)),
    _test("isreal", lambda x: fixed(fnp.isreal, x)),
)  # fmt: skip

METHODS: dict[str, Any] = {
    **methods_of(ROWS),
    **{f"__{name}__": _comparison(name, p, other_operand) for name, p, _ in _COMPARISONS},
    "__invert__": bitwise_not,
}
FUNCTIONS: dict[str, Any] = {**functions_of(ROWS), "isin": with_out("isin", isin)}
