"""Spy plots: patterns with entries in the colours that they are evaluated with.

Here: ``draw``, on matplotlib, which is imported at first use. Not here: what is drawn.

Layer: ``sparse``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.sparse.coloring import Coloring, sources

_CYCLE = 20
_LARGE = 400
"""From this many rows or columns on an entry is a pixel."""


def draw(
    matrix: Any, coloring: Coloring, ax: Any, rows: slice | None, columns: slice | None
) -> Any:
    """Draw a pattern; see ``SparseFunction.spy``."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError(
            "spy draws with matplotlib, which is not installed: pip install 'functrans[viz]'"
        ) from None

    if ax is None:
        ax = plt.gca()
    n_rows, n_cols = matrix.shape
    top, bottom, _ = (rows or slice(None)).indices(n_rows)
    left, right, _ = (columns or slice(None)).indices(n_cols)
    found = sources(matrix, coloring)
    row = np.repeat(np.arange(n_rows), np.diff(matrix.indptr))
    column = matrix.indices
    kept = (row >= top) & (row < bottom) & (column >= left) & (column < right)
    number = found.color + np.where(found.is_row, coloring.n_column_colors, 0)
    palette: Any = plt.get_cmap("tab20")
    hues = palette.colors
    extent = max(bottom - top, right - left, 1)
    if extent > _LARGE:
        style: dict[str, Any] = {"marker": ",", "linestyle": "none", "rasterized": True}
    else:
        size = 72 * ax.get_window_extent().width / ax.figure.dpi / extent
        style = {"marker": "s", "linestyle": "none", "markersize": 0.9 * size, "mew": 0}
    for color in range(min(coloring.n_colors, _CYCLE)):
        own = kept & (number % _CYCLE == color)
        ax.plot(column[own], row[own], color=hues[color % len(hues)], **style)
    ax.set_xlim(left - 0.5, right - 0.5)
    ax.set_ylim(bottom - 0.5, top - 0.5)
    ax.set_aspect("equal")
    ax.set_title(
        f"{n_rows} x {n_cols}, {matrix.nnz} entries, {coloring.n_colors} colors ({coloring.kind})"
    )
    return ax
