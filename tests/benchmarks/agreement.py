"""Do the contenders of a workload compute the same thing?

Every pair is compared, and each with itself called later: array by array, in the maximum norm,
relative to the larger magnitude. Layer: above ``record``; knows nothing about processes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True, slots=True)
class Agreement:
    """Outcome of the comparison of all results of a workload.

    Attributes:
      contenders: how many delivered a result.
      largest: largest relative difference over all pairs whose shapes match.
      mismatches: one line per pair or result that is not acceptable.
    """

    contenders: int
    largest: float
    mismatches: tuple[str, ...]


def difference(left: np.ndarray, right: np.ndarray) -> float:
    """``max|left - right|`` relative to the larger magnitude; infinite where either is not finite.

    Both arrays have one shape.
    """
    if left.size == 0:
        return 0.0
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return float("inf")
    scale = max(float(np.abs(left).max()), float(np.abs(right).max()))
    gap = float(np.abs(left - right).max())
    return gap / scale if scale else gap


def _describe(arrays: Arrays) -> str:
    return "(" + ", ".join(f"{a.dtype}{list(a.shape)}" for a in arrays) + ")"


def _gap(ours: Arrays, theirs: Arrays) -> tuple[float, int]:
    """Largest difference and the position of the array that has it; shapes are equal."""
    gaps = [difference(a, b) for a, b in zip(ours, theirs, strict=True)]
    worst = max(gaps, default=0.0)
    return worst, gaps.index(worst) if gaps else 0


def _pairs(results: Mapping[str, Sequence[Arrays]]) -> Iterator[tuple[str, Arrays, str, Arrays]]:
    """First results of every two contenders, and first and later results of each."""
    for (left, ours), (right, theirs) in combinations(results.items(), 2):
        yield left, ours[0], right, theirs[0]
    for label, (first, *later) in results.items():
        for result in later:
            yield label, first, f"{label} called later", result


def compare(results: Mapping[str, Sequence[Arrays]], rtol: float, dtype: str) -> Agreement:
    """Compare the results of all contenders, and check their dtypes.

    ``results`` maps labels to one or more results, which should all be the same.
    """
    mismatches = [
        f"{label} returns {_describe(repeats[0])}, expected {dtype}"
        for label, repeats in results.items()
        if any(array.dtype != np.dtype(dtype) for array in repeats[0])
    ]
    largest = 0.0
    for left, ours, right, theirs in _pairs(results):
        if [a.shape for a in ours] != [a.shape for a in theirs]:
            mismatches.append(f"{left} {_describe(ours)} against {right} {_describe(theirs)}")
            continue
        worst, where = _gap(ours, theirs)
        largest = max(largest, worst)
        if worst > rtol:
            mismatches.append(
                f"{left} and {right} differ by {worst:.2e} > {rtol:.0e} in result {where}"
            )
    return Agreement(len(results), largest, tuple(mismatches))
