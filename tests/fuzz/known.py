"""Mistakes of NumPy's own that programs meet: one table, each with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from scipy import special


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


def _is_empty(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    return any(np.asarray(x).size == 0 for x in operands)


def _differences_wrap(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    signed = [np.asarray(x) for x in operands if np.asarray(x).dtype.kind == "i"]
    return any(x.size and float(x.max()) - float(x.min()) > np.iinfo(x.dtype).max for x in signed)


def _order_of_nan(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    """Only the numbers of NaN differ: at their places (inverses), or pointing to them (indices)."""
    is_nan = np.isnan(np.ravel(operands[0]))
    for one, other in zip(map(np.ravel, found), map(np.ravel, expected), strict=True):
        if one.dtype.kind not in "iu":
            if not np.array_equal(one, other, equal_nan=True):
                return False
            continue
        at = np.flatnonzero(one != other)
        is_inverse = one.size == is_nan.size and is_nan[at].all()
        if not (is_inverse or (is_nan[one[at]] & is_nan[other[at]]).all()):
            return False
    return True


def _is_among(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    """What was found is right by comparing each element with all others."""
    if len(operands) > 2:
        return False
    x, others = np.asarray(operands[0]), np.ravel(operands[-1])
    right = (x[..., None] == others).any(-1)
    return np.array_equal(found[0], right) or np.array_equal(found[0], ~right)


def _overflows(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    pairs = zip(map(np.asarray, found), map(np.asarray, expected), strict=True)
    return any((np.isinf(other) & np.isfinite(one)).any() for one, other in pairs)


def _has_infinite_magnitude(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    return any(not np.isfinite(np.abs(x)).all() for x in operands)


def _is_swapped_complex(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    arrays = [np.asarray(x) for x in operands]
    return any(x.dtype.kind == "c" and not x.dtype.isnative for x in arrays)


def _out_of_range(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    """Whether what differs are integers that numbers beyond them were cast to."""
    wide = [np.asarray(x).real for x in operands if np.asarray(x).dtype.kind in "fc"]
    targets = [np.iinfo(y.dtype) for y in map(np.asarray, expected) if y.dtype.kind in "iu"]
    return bool(targets) and any(
        not np.all((x > target.min - 1) & (x < target.max)) for x in wide for target in targets
    )


def _wide_integers(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    integers = [np.asarray(x) for x in operands if np.asarray(x).dtype.kind in "iu"]
    return any((np.abs(x.astype(float)) > np.iinfo(x.dtype).max - 1000).any() for x in integers)


def _repeats_infinity(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    arrays = [np.asarray(x) for x in operands]
    return any(1 in x.shape for x in arrays) and not all(np.isfinite(x).all() for x in arrays)


def _order_decides_sign_of_sum(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    """A sum of the first operand overflows in some order, or is as small as its rounding."""
    x = np.asarray(operands[0])
    if x.dtype.kind not in "fc":
        return False
    finite = x.real[np.isfinite(x.real)].astype(np.longdouble)
    limits, size = np.finfo(x.dtype), np.abs(finite).sum()
    is_rounding = finite.size == x.size and abs(finite.sum()) <= x.size * limits.eps * size
    return bool(size > limits.max or (is_rounding and size > 0))


def _is_log1p(operands: list[Any], found: list[Any], expected: list[Any]) -> bool:
    """What was found is SciPy's ``log1p`` of the complex operand, within a few units."""
    (one,), x = found, np.asarray(operands[0])
    if len(operands) > 1 or x.dtype.kind != "c":
        return False
    eps = np.finfo(one.dtype).eps
    return np.allclose(one, special.log1p(x), 8 * eps, 8 * eps * 1e-3, equal_nan=True)


CAST = "the integer that a number out of range is cast to depends on the vector instructions"
KNOWN = (
    Known(r"log1p", _is_log1p, "log1p of small complex numbers loses their digits: log(|1 + z|)"),
    Known(
        r"dot|matmul|@|matvec|vecmat|inner|einsum|kron",
        _zero_meets_infinity,
        "products with zeros are left out by some BLAS functions, where 0 * inf is NaN",
    ),
    Known(
        r"cond\(np\.sum",
        _order_decides_sign_of_sum,
        "the sign of a sum depends on its order where that overflows or is rounded to nothing",
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
    Known(r"irfft|hfft", _is_empty, "the first number of an empty array is read: any memory"),
    Known(r"round", _wide_integers, CAST),
    Known(r"astype|dtype|insert", _out_of_range, CAST),
    Known(r"np\.i0", _overflows, "i0 overflows where its value does not: beyond 710, and in half"),
    Known(
        r"unique_inverse|unique_all|return_in",
        _order_of_nan,
        "which of several NaN comes first depends on the vector instructions",
    ),
    Known(r"fft", _is_empty, "transforms of no numbers to some read memory that nobody wrote"),
    Known(
        r"einsum",
        _repeats_infinity,
        "along an axis of one that is repeated, some inner loops sum the others first: -inf * (inf "
        "- 1), where the sum of products is NaN",
    ),
    Known(
        r"intersect1d",
        _wide_integers,
        "wide integers that are one floating number count as common",
    ),
    Known(r"einsum", _is_empty, "diagonals of unequal extents read beyond an array"),
    Known(
        r"sign\(",
        _has_infinite_magnitude,
        "signs of complex numbers whose magnitude overflows are those of infinities",
    ),
    Known(r"signbit", _is_nan, "a NaN that an operation makes has any sign"),
    Known(r"isin", _is_among, "some complex numbers are not found among themselves"),
    Known(r"isin", _wide_integers, "wide integers that are one floating number are mixed up"),
    Known(r"lexsort", _is_swapped_complex, "complex keys of the other byte order are not sorted"),
    Known(
        r"quantile|percentile",
        _differences_wrap,
        "differences of neighbours wrap in narrow integers",
    ),
    Known(r"np\.i0", _is_infinite, "i0 of infinity is NaN, where its limit is infinite"),
    Known(
        r"max|min|clip|sort|ptp|median|quantile|percentile|unique|union|intersect|setxor|setdiff",
        _only_zeros_differ,
        "which of 0.0 and -0.0 is the greater one depends on the vector instructions",
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
