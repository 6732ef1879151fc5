"""The explicit table of all primitives: one row each, one file per family of rows.

Here: ``ROWS``, and the pairs of row and sample that the rule tests are parametrised over.
"""

from collections.abc import Callable
from typing import Any

import pytest

from samples import elementwise, indexing, linalg, movement, products, reductions, spectral
from samples.row import Refused as Refused
from samples.row import Row as Row
from samples.row import Sample as Sample

ROWS: tuple[Row, ...] = (
    *elementwise.ROWS,
    *movement.ROWS,
    *reductions.ROWS,
    *indexing.ROWS,
    *products.ROWS,
    *linalg.ROWS,
    *spectral.ROWS,
)


def each_sample(keep: Callable[[Row, Sample], bool] = lambda row, sample: True) -> list[Any]:
    """Parameters ``(row, label)`` of all samples that a condition keeps."""
    return [
        pytest.param(row, sample.label, id=f"{row.name}-{sample.label}")
        for row in ROWS
        for sample in row.samples()
        if keep(row, sample)
    ]


def each_row(keep: Callable[[Row], bool] = lambda row: True) -> list[Any]:
    """Parameters ``row`` of all rows that a condition keeps."""
    return [pytest.param(row, id=row.name) for row in ROWS if keep(row)]
