"""Functions of square matrices by Schur's form and Parlett's recurrence, in blocks.

Here: ``number_function``, for functions of numbers whose derivatives are given. Not here: its
record (``matrix_functions``).

Eigenvalues that are close form a cluster. The diagonal block of each is a Taylor series at the
mean, so that equal eigenvalues and matrices without a basis of eigenvectors are no exception; the
blocks beside the diagonal solve Sylvester's equation.

Layer: ``primitives.linalg``. Reference: Davies & Higham, A Schur-Parlett algorithm for computing
matrix functions, SIAM J. Matrix Anal. Appl. 25 (2003); Higham, Functions of Matrices (2008), ch. 9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.values import Array
from functrans.primitives.linalg.common import needed_scipy_linalg
from functrans.records import dataclass

_CLOSE = 0.1  # distance of eigenvalues of one cluster, of those of size 1 and more
_FLOOR = 0.01  # of that, times the norm of the matrix: near 0, for split multiple eigenvalues
_SMALLEST = 1e-9
_MORE_TERMS = 40  # of a series, than the size of its block


@dataclass(frozen=True, slots=True, eq=False)
class NumberFunction:
    """A function of complex numbers and its derivatives.

    Attributes:
      label: for messages and printed programs.
      derivatives: ``(points, order)`` to the value and the derivatives up to an order, each an
        array of the points' shape.
    """

    label: str
    derivatives: Callable[[np.ndarray, int], Sequence[np.ndarray]]

    def __repr__(self) -> str:
        """The label."""
        return self.label


def number_function(a: np.ndarray, function: NumberFunction) -> Array:
    """The function of one complex square matrix.

    Raises:
      ImportError: SciPy is not installed.
    """
    if not np.isfinite(a).all():
        return np.full_like(a, np.nan)
    t, q = schur_form(a, function.label)
    return (q @ number_function_of_triangle(t, function) @ q.conj().T).astype(a.dtype)


def schur_form(a: np.ndarray, label: str) -> tuple[Any, Any]:
    """Complex upper triangular ``t`` and unitary ``q`` with ``a = q t q^H``.

    Of a matrix without imaginary part in real arithmetic: its real eigenvalues are real numbers,
    on the branch cuts of functions and not an ulp beside them.
    """
    linalg = needed_scipy_linalg(label)
    if not a.imag.any():
        t, q = linalg.schur(a.real.astype(np.float64, copy=False))
        return linalg.rsf2csf(t, q)
    return linalg.schur(a.astype(np.complex128, copy=False), output="complex")


def number_function_of_triangle(t: np.ndarray, function: NumberFunction) -> np.ndarray:
    """The function of one complex upper triangular matrix."""
    distance = _CLOSE
    while True:
        result, has_converged = _of_triangle(t, function, distance)
        if has_converged or distance < _SMALLEST:
            return result
        distance /= 10


def _clusters(values: np.ndarray, distance: float, norm: float) -> np.ndarray:
    """The number of the cluster of each eigenvalue: chains of close ones, in order."""
    size = np.maximum(np.abs(values)[:, None], np.abs(values))
    reach = distance * np.maximum(np.minimum(size, 1), _FLOOR * norm)
    is_close = np.abs(values[:, None] - values) <= reach
    labels = np.arange(len(values))
    while True:
        lowest = np.where(is_close, labels, len(values)).min(1)
        if (lowest == labels).all():
            return np.unique(labels, return_inverse=True)[1]
        labels = lowest


def _of_triangle(
    t: np.ndarray, function: NumberFunction, distance: float
) -> tuple[np.ndarray, bool]:
    """The function of ``t``, and whether all series have converged.

    Each cluster's mean is that of the eigenvalues as they are given: equal ones have their own
    value as mean, while reordering moves them by rounding errors, perhaps over a branch cut.
    """
    values = np.diag(t)
    labels = _clusters(values, distance, float(np.abs(t).max()))
    means = np.bincount(labels, values.real) + 1j * np.bincount(labels, values.imag)
    means /= np.bincount(labels)
    t, q, ends = _ordered(t, np.eye(len(t), dtype=t.dtype), labels)
    blocks = [slice(*pair) for pair in zip([0, *ends[:-1]], ends, strict=True)]
    out = np.zeros_like(t)
    has_converged = _diagonal(t, blocks, means, function, out)
    _beside(t, blocks, function.label, out)
    return q @ out @ q.conj().T, has_converged


def _ordered(
    t: np.ndarray, q: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """Schur's form with each cluster in one place, and where these end."""
    if (np.diff(labels) < 0).any():
        sort = needed_scipy_linalg("funm").lapack.ztrsen
        for label in range(labels.max(), -1, -1):  # each moves to the front
            is_moved = labels == label
            t, q, *_ = sort(is_moved.astype(np.int32), t, q, job=b"N")
            labels = np.concatenate([labels[is_moved], labels[~is_moved]])
    return t, q, [int(end) for end in np.cumsum(np.bincount(labels))]


def _diagonal(
    t: np.ndarray,
    blocks: Sequence[slice],
    means: np.ndarray,
    function: NumberFunction,
    out: np.ndarray,
) -> bool:
    """Fill in the diagonal blocks; whether their series have converged."""
    known = list(function.derivatives(means, 0))
    has_converged = True
    for i, block in enumerate(blocks):
        m = block.stop - block.start
        moved = t[block, block] - means[i] * np.eye(m)
        power = np.eye(m, dtype=t.dtype)
        total = known[0][i] * power
        n_small, k = 0, 0
        while n_small < 2 or k < m:
            k += 1
            power = power @ moved / k
            if not power.any():
                break
            if k > m + _MORE_TERMS:
                has_converged = False
                break
            if k >= len(known):
                known = list(function.derivatives(means, k + 4))
            term = known[k][i] * power
            total = total + term
            is_small = np.abs(term).max() <= 1e-16 * np.abs(total).max()
            n_small = n_small + 1 if is_small else 0
        has_converged = has_converged and bool(np.isfinite(total).all())
        out[block, block] = total
    return has_converged


def _beside(t: np.ndarray, blocks: Sequence[slice], label: str, out: np.ndarray) -> None:
    """Fill in the blocks above the diagonal, since ``out`` commutes with ``t``."""
    solve = needed_scipy_linalg(label).lapack.ztrsyl
    for j, right in enumerate(blocks):
        for left in blocks[:j][::-1]:
            between = slice(left.stop, right.start)
            rest = (
                out[left, left] @ t[left, right]
                - t[left, right] @ out[right, right]
                + out[left, between] @ t[between, right]
                - t[left, between] @ out[between, right]
            )
            if left.stop - left.start == 1 == right.stop - right.start:
                out[left, right] = rest / (t[left, left] - t[right, right])
            else:
                x, scale, _ = solve(t[left, left], t[right, right], rest, isgn=-1)
                out[left, right] = x / scale
