"""Mistakes of NumPy's own that programs meet: one table, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Known:
    """A difference that is NumPy's mistake, or where NumPy states nothing.

    Attributes:
      pattern: of the expression.
      applies: whether it is met: ``(operands, found, expected) -> bool``.
      reason: what NumPy does, for the summary.
    """

    pattern: str
    applies: Callable[[list[Any], list[Any], list[Any]], bool]
    reason: str


def _starts_with_zero(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    return any(x.ndim == 1 and x.size and x[0] == 0 for x in map(np.asarray, operands))


def _only_zeros_differ(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    return all(
        bool(np.all((x == y) | ((x != x) & (y != y))))
        for x, y in zip(map(np.asarray, found), map(np.asarray, expected), strict=True)
    )


def _zero_meets_infinity(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    arrays = [np.asarray(x) for x in operands]
    return any(not np.isfinite(x).all() for x in arrays) and any((x == 0).any() for x in arrays)


def _is_infinite(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    return any(np.isinf(np.asarray(x)).any() for x in operands)


def _is_nan(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    return any(np.isnan(np.asarray(x)).any() for x in operands)


def _quotients_of_integers_by_zero(
    operands: list[Any], found: list[Any], expected: list[Any]
) -> bool:
    return all(np.asarray(x).dtype.kind in "iub" for x in expected) and any(
        not np.all(x) for x in operands
    )


def _wide_integers(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    integers = [np.asarray(x) for x in operands if np.asarray(x).dtype.kind in "iu"]
    return any((np.abs(x.astype(float)) > np.iinfo(x.dtype).max - 1000).any() for x in integers)


KNOWN = (
    Known(
        r"dot|matmul|@|matvec|vecmat|inner|einsum|kron",
        _zero_meets_infinity,
        "products with zeros are left out by some BLAS functions, where 0 * inf is NaN",
    ),
    Known(
        r"digitize",
        _is_nan,
        "bins that begin with NaN, or with a number before NaN, count as decreasing",
    ),
    Known(
        r"\.divide\(",
        _quotients_of_integers_by_zero,
        "the integer that an infinity is cast to depends on the vector instructions",
    ),
    Known(
        r"round",
        _wide_integers,
        "the integer that a number out of range is cast to depends on the vector instructions",
    ),
    Known(r"np\.i0", _is_infinite, "i0 of infinity is NaN, where its limit is infinite"),
    Known(
        r"max|min|clip|sort|ptp|median|quantile|percentile|unique|union|intersect|setxor",
        _only_zeros_differ,
        "which of 0.0 and -0.0 is the greater one depends on the vector instructions",
    ),
    Known(
        r"np\.polymul",
        _starts_with_zero,
        "polymul leaves out leading zeros, so that the shape depends on values",
    ),
)


def is_numpys_own(text: str, operands: dict[str, Any], found: Any, expected: Any) -> str | None:
    """The reason, if the difference is in the table."""
    for known in KNOWN:
        if re.search(known.pattern, text) and known.applies(
            list(operands.values()), list(found), list(expected)
        ):
            return known.reason
    return None
