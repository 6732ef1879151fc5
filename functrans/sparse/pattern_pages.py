"""A sparsity pattern with its colouring as a page: an SVG, and which products there are.

Here: the page behind ``SparseFunction.to_html``. Not here: spy plots on matplotlib's axes
(``sparse.picture``), the frame of a page (``debugging.documents``).

Layer: ``sparse``.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np

from functrans.debugging.documents import HUES, document
from functrans.sparse.coloring import Coloring, sources

_SIZE, _MOST_CELLS, _LEAST_CELL = 520, 260, 2
"""Of the longer side, in pixels; rows or columns that are drawn one by one; pixels of a cell."""
_MOST_PRODUCTS, _MOST_MEMBERS = 60, 24

_STYLE = """
body { padding: 14px 20px 30px; } h1 { font-size: 17px; margin: 0; }
p { color: var(--quiet); margin: 2px 0 10px; }
.both { display: flex; flex-wrap: wrap; gap: 20px; align-items: flex-start; }
svg { background: var(--panel); border: 1px solid var(--line); max-width: 100%; height: auto; }
svg:hover path:not(:hover) { opacity: .3; }
table { border-collapse: collapse; font-size: 12.5px; } td, th { padding: 1px 12px 1px 0;
  text-align: left; vertical-align: top; } th { color: var(--quiet); font-weight: 400; }
i { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin-right: 6px; }
""" + "\n".join(f".k{i} {{ fill: {hue}; background: {hue}; }}" for i, hue in enumerate(HUES))


def pattern_page(matrix: Any, coloring: Coloring, title: str) -> str:
    """The page.

    Args:
      matrix: the pattern, a ``csr_array`` of booleans.
      coloring: its colouring.
      title: what it is a pattern of.
    """
    n_rows, n_cols = matrix.shape
    note = (
        f"{n_rows} x {n_cols}, {matrix.nnz} entries, {coloring.n_colors} colours "
        f"({coloring.kind}): {coloring.n_column_colors} products with columns in forward mode, "
        f"{coloring.n_row_colors} with rows in reverse mode"
    )
    body = [
        f'<h1>{escape(title)}</h1><p>{escape(note)}</p><div class="both">',
        *_picture(matrix, coloring, f"{title}: {note}"),
        *_table(coloring),
        "</div>",
    ]
    return document(title, _STYLE, body)


def _picture(matrix: Any, coloring: Coloring, label: str) -> Iterator[str]:
    """Entries as squares, those of one product as one shape; cells of many entries where large."""
    n_rows, n_cols = matrix.shape
    longest = max(n_rows, n_cols, 1)
    per_cell = -(-longest // _MOST_CELLS)
    cells = -(-longest // per_cell)
    scale = max(_SIZE // cells, _LEAST_CELL)
    width, height = (max(-(-n // per_cell), 1) for n in (n_cols, n_rows))
    row = np.repeat(np.arange(n_rows), np.diff(matrix.indptr)) // per_cell
    column = matrix.indices // per_cell
    found = sources(matrix, coloring)
    number = found.color + np.where(found.is_row, coloring.n_column_colors, 0)
    yield (
        f'<svg role="img" aria-label="{escape(label)}" width="{scale * width}" '
        f'height="{scale * height}" viewBox="0 0 {width} {height}">'
    )
    places = np.unique(np.stack([number, row, column]), axis=1) if len(number) else np.zeros((3, 0))
    _, first = np.unique(places[1] * width + places[2], return_index=True)
    places = places[:, np.sort(first)].astype(np.int64)  # one colour where entries share a cell
    for color in np.unique(places[0]):
        own = places[:, places[0] == color]
        way = "".join([f"M{x} {y}h.9v.9h-.9z" for _, y, x in own.T.tolist()])
        title = escape(_product(coloring, int(color)))
        yield f'<path class="k{color % len(HUES)}" d="{way}"><title>{title}</title></path>'
    yield "</svg>"


def _product(coloring: Coloring, number: int) -> str:
    """What one product of an evaluation takes together."""
    n = coloring.n_column_colors
    colors = coloring.column_colors if number < n else coloring.row_colors
    kind, own = ("column", number) if number < n else ("row", number - n)
    assert colors is not None
    members = np.flatnonzero(colors == own)
    shown = ", ".join(map(str, members[:_MOST_MEMBERS].tolist()))
    rest = f" and {len(members) - _MOST_MEMBERS} more" if len(members) > _MOST_MEMBERS else ""
    return f"{kind}{'s' * (len(members) != 1)} {shown}{rest}"


def _table(coloring: Coloring) -> Iterator[str]:
    """What each colour stands for, in words."""
    if not coloring.n_colors:
        return
    yield "<table><thead><tr><th>colour</th><th>product with</th></tr></thead><tbody>"
    for number in range(min(coloring.n_colors, _MOST_PRODUCTS)):
        swatch = f'<i class="k{number % len(HUES)}"></i>{number}'
        yield f"<tr><td>{swatch}</td><td>{escape(_product(coloring, number))}</td></tr>"
    rest = coloring.n_colors - _MOST_PRODUCTS
    if rest > 0:
        yield f"<tr><td></td><td>and {rest} more</td></tr>"
    yield "</tbody></table>"
