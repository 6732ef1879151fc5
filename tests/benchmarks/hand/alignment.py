"""Alignment of proteins: table and adjoint of ``examples/alignment.py``, called as numba's own.

``gradient`` is what a user of numba alone would write around them: the log-sum-exp over the
table, its gradient, and arrays for the results.
"""

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit


def _example() -> Any:
    path = Path(__file__).resolve().parents[3] / "examples" / "alignment.py"
    spec = importlib.util.spec_from_file_location("alignment_example", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = _example()
fill = njit(nogil=True)(example.fill)
pull = njit(nogil=True)(example.pull)


@njit(nogil=True)
def table(scores: np.ndarray, opening: float, extending: float) -> np.ndarray:
    """Return the table ``f64[3, n + 1, m + 1]``."""
    out = np.zeros((3, scores.shape[0] + 1, scores.shape[1] + 1))
    fill(scores, opening, extending, out)
    return out


@njit(nogil=True)
def gradient(scores: np.ndarray, opening: float, extending: float) -> np.ndarray:
    """Return the gradient of the logarithm of the sum of weights in the scores."""
    cells = table(scores, opening, extending)
    top = cells[0].max()
    bar = np.zeros_like(cells)
    total = 0.0
    for i in range(cells.shape[1]):
        for j in range(cells.shape[2]):
            bar[0, i, j] = np.exp(cells[0, i, j] - top)
            total += bar[0, i, j]
    bar[0] /= total
    out, opening_bar, extending_bar = np.zeros_like(scores), np.zeros(()), np.zeros(())
    pull(scores, opening, extending, cells, bar, out, opening_bar, extending_bar)
    return out
