"""``torch.testing``: assertions on tensors, numbers and containers of them.

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.autograd.methods.rows import plain
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.not_offered import nothing_else
from functrans.core.boundary import boundary

__all__ = ["assert_allclose", "assert_close"]

_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
"""Relative and absolute tolerance by dtype; others have to be equal."""

_NUMBERS = (int, float, complex, np.generic)


@boundary
def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Assert that numbers are close: ``|actual - expected| <= atol + rtol * |expected|``.

    Args:
      actual: tensors, arrays, numbers, or sequences and mappings of these.
      expected: the same structure.
      allow_subclasses: whether tensors of subclasses are compared with others.
      rtol: relative tolerance; by default one that the dtypes tell.
      atol: absolute tolerance; both are given, or none.
      equal_nan: whether NaN is close to NaN.
      check_device: nothing, since all tensors lie on the CPU.
      check_dtype: whether dtypes have to be equal.
      check_layout: nothing, since all tensors are strided.
      check_stride: whether strides have to be equal.
      msg: what is said in place of the difference, or made of it.

    Raises:
      AssertionError: they differ; it says where, and by how much.
      TypeError: they cannot be compared.
      ValueError: one tolerance is given.

    Example:
      >>> import functrans.compat.torch as torch
      >>> torch.testing.assert_close(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
      Traceback (most recent call last):
      AssertionError: Tensor-likes are not close!
      <BLANKLINE>
      Mismatched elements: 1 / 2 (50.0%)
      Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)
      Greatest relative difference: 0.2 at index (1,) (up to 1.3e-06 allowed)
    """
    if (rtol is None) is not (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(
            f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
        )

    def difference(a: Any, b: Any, place: str) -> str | None:
        parts: list[tuple[str, Any, Any]] = []
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            if a.keys() != b.keys():
                return (
                    "The keys of the mappings do not match:\n"
                    f"Missing keys in the actual mapping: {[key for key in b if key not in a]}\n"
                    f"Additional keys in the actual mapping: {[key for key in a if key not in b]}"
                )
            parts = [(f"[{key!r}]", a[key], b[key]) for key in a]
        elif _is_sequence(a) and _is_sequence(b):
            if len(a) != len(b):
                return f"The length of the sequences mismatch: {len(a)} != {len(b)}"
            parts = [(f"[{i}]", x, y) for i, (x, y) in enumerate(zip(a, b, strict=True))]
        elif not a is b is None:
            if not allow_subclasses and type(a) is not type(b):
                raise _not_comparable(a, b)
            found = _attributes(a, b, check_dtype, check_stride)
            found = found or _values(a, b, rtol, atol, equal_nan)
            return f"{found}\n\nThe failure occurred for item {place}" if found and place else found
        return next(filter(None, (difference(x, y, place + key) for key, x, y in parts)), None)

    found = difference(actual, expected, "")
    if found is not None:
        raise AssertionError(msg(found) if callable(msg) else found if msg is None else msg)


def _is_sequence(x: object) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def _not_comparable(a: object, b: object) -> TypeError:
    return TypeError(
        f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}."
    )


def _attributes(a: Any, b: Any, check_dtype: bool, check_stride: bool) -> str | None:
    """How the attributes of two values differ.

    Raises:
      TypeError: they are not of one kind.
    """
    if isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS):
        differ = check_dtype and type(a) is not type(b)
        return f"The (d)types do not match: {type(a)} != {type(b)}." if differ else None
    if not any(isinstance(a, kind) and isinstance(b, kind) for kind in (Tensor, np.ndarray)):
        raise _not_comparable(a, b)
    names = ["shape", *["dtype"] * check_dtype, *["stride"] * check_stride]
    for name in names:
        x, y = (f() if callable(f := getattr(v, name)) and name == "stride" else f for v in (a, b))
        if x != y:
            return f"The values for attribute '{name}' do not match: {x} != {y}."
    return None


def _values(a: Any, b: Any, rtol: Any, atol: Any, equal_nan: bool) -> str | None:
    """How two values of one shape differ, by default tolerances for their dtypes."""
    arrays = [np.asarray(plain(x)) for x in (a, b)]
    if rtol is None:
        known = [_TOLERANCES.get(x.dtype.name, (0.0, 0.0)) for x in arrays]
        rtol, atol = map(max, zip(*known, strict=True))
    kind = np.int64 if all(x.dtype.kind in "iub" for x in arrays) else np.float64
    x, y = (v if v.dtype.kind == "c" else v.astype(kind) for v in arrays)
    with np.errstate(all="ignore"):
        is_exact = rtol == atol == 0
        close = x == y if is_exact else np.isclose(x, y, rtol, atol)
        close |= equal_nan & np.isnan(x) & np.isnan(y)
        if close.all():
            return None
        absolute = np.where(close, 0, np.abs(x - y))
        relative = np.where(close, 0.0, absolute / np.abs(y))
    bounds = ("", "") if is_exact else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    sentence = f"are not {'equal' if is_exact else 'close'}!\n\n"
    if not x.shape:
        return (
            f"Scalars {sentence}Expected {y} but got {x}.\n"
            f"Absolute difference: {absolute}{bounds[0]}\n"
            f"Relative difference: {relative}{bounds[1]}"
        )
    count = close.size - np.count_nonzero(close)
    lines = [f"Mismatched elements: {count} / {close.size} ({count / close.size:.1%})"]
    for name, by, bound in zip(("absolute", "relative"), (absolute, relative), bounds, strict=True):
        at = tuple(map(int, np.unravel_index(by.argmax(), by.shape)))
        lines.append(f"Greatest {name} difference: {by[at]} at index {at}{bound}")
    return f"Tensor-likes {sentence}" + "\n".join(lines)


@boundary
def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: Any = "",
) -> None:
    """``assert_close`` of anything that is an array, whatever its dtype; NaN is close to NaN."""
    a = np.asarray(plain(actual))
    b = (
        np.asarray(plain(expected))
        if isinstance(expected, Tensor)
        else np.asarray(expected, a.dtype)
    )
    b = np.broadcast_to(b, a.shape)
    given: Any = {"rtol": rtol, "atol": atol, "equal_nan": equal_nan, "msg": msg or None}
    assert_close(a, b, check_dtype=False, **given)


__getattr__ = nothing_else(__name__)
