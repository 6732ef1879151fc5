"""The explicit table of all primitives: one row each, one file per family of rows.

Here: ``ROWS``, and the pairs of row and sample that the rule tests are parametrised over.
"""

from collections.abc import Callable
from typing import Any

import pytest

from samples import (
    control,
    elementwise,
    indexing,
    linalg,
    linalg_equations,
    movement,
    products,
    reductions,
    sparse_matrices,
    special,
    special_functions,
    spectral,
    threefry,
    torch_elementwise,
)
from samples.row import Refused as Refused
from samples.row import Row as Row
from samples.row import Sample as Sample

ROWS: tuple[Row, ...] = (
    *elementwise.ROWS,
    *special.ROWS,
    *special_functions.ROWS,
    *torch_elementwise.ROWS,
    *movement.ROWS,
    *reductions.ROWS,
    *indexing.ROWS,
    *products.ROWS,
    *sparse_matrices.ROWS,
    *linalg.ROWS,
    *linalg_equations.ROWS,
    *spectral.ROWS,
    *threefry.ROWS,
    *control.ROWS,
)

NOT_SAMPLED = {
    "empty_tape": "it has no operands: tests/test_tapes.py",
    "tape_add": "its operands are tapes, not arrays: tests/test_tapes.py",
    "tape_broadcast_to": "its operand is a tape, not an array: tests/test_tapes.py",
    "tape_sum_to": "its operand is a tape, not an array: tests/test_tapes.py",
    "tape_reshape": "its operand is a tape, not an array: tests/test_tapes.py",
    "debug_callback": "it has an effect and no results: tests/test_callbacks.py",
    "io_callback": "it has an effect, whose order counts: tests/test_callbacks.py",
    "guard": "it is never run: tests/control/test_specialize.py",
    "distributed_map": "it runs on workers: tests/test_dask_sums.py, tests/test_dask_map.py",
    "psum": "it needs a named axis around it: tests/test_collectives.py",
    "pmax": "it needs a named axis around it: tests/test_collectives.py",
    "pmin": "it needs a named axis around it: tests/test_collectives.py",
    "all_gather": "it needs a named axis around it: tests/test_collectives.py",
    "axis_index": "it needs a named axis around it: tests/test_collectives.py",
}
"""Primitives without a row, and where they are tested instead."""


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
