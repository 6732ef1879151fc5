"""Colourings of random patterns are valid, whatever the kind and the order."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from functrans.kernels import table
from functrans.sparse import Coloring, color_pattern
from functrans.sparse.coloring import KINDS, ORDERS, as_pattern, sources, work
from scipy import sparse

SIZES = st.integers(0, 9)


@st.composite
def patterns(draw: Any, square: bool = False) -> np.ndarray:
    """Random boolean matrices, some with dense rows and columns."""
    n = draw(SIZES)
    m = n if square else draw(SIZES)
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    matrix = rng.random((n, m)) < draw(st.sampled_from([0.1, 0.3, 0.7]))
    if draw(st.booleans()) and n and m:
        matrix[rng.integers(n)] = True
        matrix[:, rng.integers(m)] = True
    return matrix


def _read(pattern: np.ndarray, coloring: Coloring, rng: np.random.Generator) -> None:
    """Entries of a random matrix of the pattern are what is read from its products."""
    values = pattern * rng.uniform(1, 2, pattern.shape)
    if coloring.kind == "star":
        values = values + values.T
    matrix = as_pattern(pattern, "test")
    found = sources(matrix, coloring)
    products = []
    for colors, dense in ((coloring.column_colors, values), (coloring.row_colors, values.T)):
        count = 0 if colors is None or not len(colors) else int(np.max(colors)) + 1
        products.append([dense[:, colors == color].sum(axis=1) for color in range(count)])
    rows = np.repeat(np.arange(len(pattern)), np.diff(matrix.indptr))
    for k, (i, j) in enumerate(zip(rows, matrix.indices, strict=True)):
        own = products[1] if found.is_row[k] else products[0]
        assert own[found.color[k]][found.place[k]] == pytest.approx(values[i, j], rel=1e-12)


@settings(max_examples=200)
@given(patterns(), st.sampled_from([*KINDS[:3], "auto"]), st.sampled_from(ORDERS))
def test_entries_can_be_read(pattern: np.ndarray, kind: str, order: str) -> None:
    coloring = color_pattern(pattern, kind, order)
    coloring.check(pattern)
    assert coloring.n_colors <= sum(pattern.shape)
    _read(pattern, coloring, np.random.default_rng(0))


@settings(max_examples=200)
@given(patterns(square=True), st.sampled_from(ORDERS))
def test_entries_of_symmetric_patterns_can_be_read(pattern: np.ndarray, order: str) -> None:
    pattern = pattern | pattern.T
    coloring = color_pattern(pattern, "star", order)
    coloring.check(pattern)
    _read(pattern, coloring, np.random.default_rng(0))


@settings(max_examples=100)
@given(patterns(square=True))
def test_star_colorings_leave_no_path_of_two_colors(pattern: np.ndarray) -> None:
    diagonal = np.eye(len(pattern), dtype=bool)
    pattern = (pattern | pattern.T) & ~diagonal
    colors = color_pattern(pattern | diagonal, "star").column_colors
    assert colors is not None
    edges = list(zip(*np.nonzero(pattern), strict=True))
    assert all(colors[a] != colors[b] for a, b in edges)
    for b, c in edges:
        for a in np.flatnonzero(pattern[b]):
            for d in np.flatnonzero(pattern[c]):
                if len({a, b, c, d}) == 4:
                    assert len({colors[v] for v in (a, b, c, d)}) >= 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ORDERS)
def test_kernels_give_what_the_loops_give(
    kind: str, order: str, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    pattern = rng.random((40, 40)) < 0.08
    pattern = pattern | pattern.T
    used: list[str] = []

    def always(name: str, saved_s: float) -> bool:
        assert saved_s >= 0
        used.append(name)
        return True

    monkeypatch.setattr(table, "pays", always)
    compiled = color_pattern(pattern, kind, order)
    assert used
    monkeypatch.setattr(table, "pays", lambda name, saved_s: False)
    interpreted = color_pattern(pattern, kind, order)
    for name in ("column_colors", "row_colors"):
        np.testing.assert_array_equal(getattr(compiled, name), getattr(interpreted, name))


def test_numbers_of_colors() -> None:
    band = sparse.diags_array([np.ones(29), np.ones(30), np.ones(29)], offsets=[-1, 0, 1])
    assert color_pattern(band, "column").n_colors == 3
    assert color_pattern(band, "row").n_colors == 3
    assert color_pattern(band, "star").n_colors == 3
    arrow = np.eye(30)
    arrow[0] = arrow[:, 0] = 1
    assert color_pattern(arrow, "column").n_colors == 30
    assert color_pattern(arrow, "bidirectional").n_colors == 3
    assert color_pattern(arrow, "star").n_colors == 2
    assert color_pattern(arrow, "auto").kind == "bidirectional"
    assert color_pattern(np.ones((1, 30)), "auto").kind == "row"
    assert color_pattern(np.ones((30, 1)), "auto").kind == "column"
    assert color_pattern(np.zeros((4, 5))).n_colors in (0, 1)


def test_dense_columns_are_found_too() -> None:
    pattern = np.eye(50) + np.eye(50, k=1)
    pattern[:, 3] = pattern[7] = 1
    coloring = color_pattern(pattern, "bidirectional")
    assert coloring.n_colors <= 6
    assert work(coloring) == coloring.n_column_colors + 2 * coloring.n_row_colors


def test_orders_are_orders() -> None:
    rng = np.random.default_rng(0)
    pattern = rng.random((60, 60)) < 0.1
    first = color_pattern(pattern, order="random", seed=1).column_colors
    again = color_pattern(pattern, order="random", seed=1).column_colors
    other = color_pattern(pattern, order="random", seed=2).column_colors
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    best = color_pattern(pattern, order="auto").n_colors
    assert best <= min(color_pattern(pattern, order=order).n_colors for order in ORDERS[1:4])


def test_stored_zeros_count() -> None:
    matrix = sparse.csr_array((np.zeros(2), ([0, 0], [0, 1])), shape=(1, 2))
    assert color_pattern(matrix).n_colors == 2


def test_errors() -> None:
    with pytest.raises(ValueError, match="kind must be one of"):
        color_pattern(np.eye(2), "diagonal")
    with pytest.raises(ValueError, match="order must be one of"):
        color_pattern(np.eye(2), order="any")
    with pytest.raises(ft.errors.ShapeError, match="square"):
        color_pattern(np.ones((2, 3)), "star")
    with pytest.raises(ValueError, match="symmetric"):
        color_pattern(np.tri(3), "star")
    with pytest.raises(TypeError, match="a pattern is a matrix"):
        color_pattern("no matrix")
    coloring = Coloring("column", (2, 2), np.zeros(2, np.int64))
    with pytest.raises(ValueError, match=r"the entry \(0, 0\) cannot be read"):
        coloring.check(np.ones((2, 2)))
    with pytest.raises(ft.errors.ShapeError, match="shape"):
        coloring.check(np.ones((3, 2)))
    assert repr(coloring) == "Coloring('column', 1 colors, 2 x 2)"
