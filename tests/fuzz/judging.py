"""When two results of one operation are equal: a policy for each class of operations.

Structure, shape and dtype are equal always. Values, by policy:

``exact``
    The same numbers: integers, comparisons, selections, movement, and the real operations that IEEE
    754 rounds correctly. The sign of a zero counts; of a NaN neither sign nor payload. Products,
    quotients and magnitudes of complex numbers are rounded in several steps, and may differ by
    ``ULPS``.
``ulps``
    Elementwise functions, whose vector and scalar forms differ by a few units in the last place;
    complex powers by as many times the exponent, whose product with a logarithm is rounded.
``exponential``
    Functions that grow like the exponential, whose relative error is that of the operand times it.
``sum``
    Sums of products, in any order: the error is bounded by rounding times the same sums of
    magnitudes. Where those overflow, or a magnitude is extreme, the order decides what overflows or
    vanishes, and values are not compared; NaN and infinities among tame numbers are.
``norm``
    Algorithms whose error is relative to the largest number in them: compared for tame operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .common import Finding

ULPS = 8
NORM_ULPS = 2000


def leaves(value: Any) -> list[Any]:
    """Arrays of a result that may be a tuple."""
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value]


def _is_inexact(x: np.ndarray) -> bool:
    return x.dtype.kind in "fc"


def _parts(x: np.ndarray) -> np.ndarray:
    """Real numbers; the parts of complex ones along one more axis."""
    return np.stack([x.real, x.imag], axis=-1) if x.dtype.kind == "c" else x


def _wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.longdouble) if x.dtype.kind != "c" else x.astype(np.clongdouble)


def is_tame(x: Any) -> bool:
    """Whether sums and products of such numbers neither overflow nor vanish."""
    x = np.asarray(x)
    if not _is_inexact(x):
        return bool(np.all(np.abs(x.astype(float)) < 2.0**10))
    magnitude = np.abs(_parts(x)).astype(np.longdouble)
    finite = magnitude[np.isfinite(magnitude) & (magnitude != 0)]
    bits = 4 if x.dtype.itemsize == 2 else 20
    return bool(np.all((finite > 2.0**-bits) & (finite < 2.0**bits)))


def same_bits(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Elementwise: the same number, with the same sign if it is zero; any NaN for a NaN."""
    one, other = _parts(found), _parts(expected)
    same = one == other
    if _is_inexact(one):
        same &= np.signbit(one) == np.signbit(other)
        same |= np.isnan(one) & np.isnan(other)
    return same.all(axis=-1) if expected.dtype.kind == "c" else same


def _within(found: np.ndarray, expected: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Elementwise: finite numbers within the bound; others the same, also with the same sign."""
    near = np.abs(_wide(found) - _wide(expected)) <= bound
    return near | same_bits(found, expected)


def _ulp(x: np.ndarray) -> np.ndarray:
    """The unit in the last place of a magnitude."""
    magnitude = np.abs(_parts(x))
    if x.dtype.kind == "c":
        magnitude = magnitude.max(axis=-1)
    magnitude = np.where(np.isfinite(magnitude), magnitude, 0)
    return np.spacing(magnitude).astype(np.longdouble)


def _by_ulps(
    found: np.ndarray, expected: np.ndarray, operands: Sequence[np.ndarray] = ()
) -> np.ndarray:
    sizes = np.abs(_wide(np.concatenate([np.ravel(x) for x in operands] or [np.ones(1)])))
    scale = 1 + sizes[np.isfinite(sizes)].max(initial=0)
    same = _within(found, expected, ULPS * scale * _ulp(expected))
    if expected.dtype.kind == "f":
        # Just below and just above overflow.
        top = np.finfo(expected.dtype).max
        edge = np.isinf(expected) & (np.abs(found) >= top * (1 - ULPS * np.finfo(top).eps))
        same |= edge & (np.signbit(found) == np.signbit(expected))
        return same
    # NumPy's complex functions have no stated results at infinities and NaN, nor these as results.
    same |= ~np.isfinite(expected)
    for x in operands:
        if x.ndim <= expected.ndim and all(
            n in (1, m) for n, m in zip(x.shape[::-1], expected.shape[::-1], strict=False)
        ):
            same |= ~np.isfinite(x)
    return same


def _eps(x: np.ndarray, operands: Sequence[np.ndarray]) -> float:
    """Rounding of the coarsest dtype that takes part."""
    return max(float(np.finfo(v.dtype).eps) for v in (x, *operands) if _is_inexact(v))


def _as_sum(
    found: np.ndarray,
    expected: np.ndarray,
    operands: Sequence[np.ndarray],
    magnitudes: Callable[[], Any],
) -> np.ndarray:
    size = sum(v.size for v in operands) + 8
    try:
        scale = np.abs(_wide(np.asarray(magnitudes())))
    except Exception:
        scale = np.asarray(np.inf)
    if scale.shape != expected.shape or not all(is_tame(v) for v in operands):
        return np.ones(expected.shape, bool)
    scale = np.where(np.isfinite(scale), scale, np.abs(_wide(expected)))
    same = _within(found, expected, size * _eps(expected, operands) * scale)
    if expected.dtype.kind == "c":
        same |= ~np.isfinite(expected)
    return same


def _as_norm(found: np.ndarray, expected: np.ndarray, operands: Sequence[np.ndarray]) -> np.ndarray:
    everything = (*operands, expected)
    if not all(np.isfinite(v).all() and is_tame(v) for v in operands):
        return np.ones(expected.shape, bool)
    top = max((float(np.max(np.abs(v))) for v in everything if v.size), default=0.0)
    scale = max(top, top * top, 1.0)
    return _within(found, expected, np.asarray(NORM_ULPS * _eps(expected, operands) * scale))


def compare(
    found: Any,
    expected: Any,
    policy: str,
    operands: Sequence[np.ndarray],
    magnitudes: Callable[[], Any],
    counts: Counter[str],
) -> None:
    """Compare the results of one step.

    Args:
      found: the result that is judged.
      expected: NumPy's.
      policy: how values are compared.
      operands: what the step read.
      magnitudes: computes the same step of magnitudes.
      counts: what was compared.

    Raises:
      Finding: they differ; its signature is only the kind of difference.
    """
    ones, others = leaves(found), leaves(expected)
    if len(ones) != len(others):
        raise Finding("number of results", f"{len(ones)} instead of {len(others)}")
    for i, (one, other) in enumerate(zip(ones, others, strict=True)):
        one, other = np.asarray(one), np.asarray(other)
        for what, value, wanted in (
            ("shape", one.shape, other.shape),
            ("dtype", one.dtype.newbyteorder("="), other.dtype.newbyteorder("=")),
        ):
            if value != wanted:
                raise Finding(what, f"result {i}: {what} {value} instead of {wanted}")
        counts["outputs compared"] += 1
        used = policy if _is_inexact(other) else "exact"
        counts[f"outputs compared, {used}"] += 1
        if used == "exact":
            same = same_bits(one, other)
            if not same.all() and any(v.dtype.kind == "c" for v in (other, *operands)):
                same |= _by_ulps(one, other)
        elif used == "ulps":
            same = _by_ulps(one, other, operands if other.dtype.kind == "c" else ())
        elif used == "exponential":
            same = _by_ulps(one, other, operands)
        elif used == "sum":
            same = _as_sum(one, other, operands, lambda i=i: leaves(magnitudes())[i])
        else:
            same = _as_norm(one, other, operands)
        if not same.all():
            raise Finding("values", _difference(one, other, same))


def _difference(found: np.ndarray, expected: np.ndarray, same: np.ndarray) -> str:
    place = tuple(int(i) for i in np.argwhere(~same)[0])
    return (
        f"{found[place]!r} instead of {expected[place]!r} at {place}, {int((~same).sum())} of "
        f"{same.size} differ\n{found!r}\ninstead of\n{expected!r}"
    )
