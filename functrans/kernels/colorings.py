"""Greedy colourings of the columns of sparse matrices and of graphs, for numba.

Here: functions that make the kernels, given ``numba.carray`` and ``numba.njit``. Not here: names
and compilation (``kernels.table``), what colourings are for (``sparse.coloring``).

Matrices come in compressed form: the columns ``indices[indptr[i] : indptr[i + 1]]`` of row ``i``,
and for columns the same the other way round. Colours count from 0; before the call all are -1, and
what is not in ``order`` stays -1.

Layer: ``kernels``. Reference: Gebremedhin, Manne & Pothen, What color is your Jacobian?, SIAM
Review 47 (2005).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def column_coloring(carray: Callable[..., Any], njit: Callable[..., Any]) -> Callable[..., None]:
    """Partial distance-2 colouring: columns of one colour have no row in common.

    ``mark`` has one entry per column, -1; ``colors`` is the result.
    """

    def kernel(
        row_ptr_at: Sequence[Any],
        row_ind_at: Sequence[Any],
        col_ptr_at: Sequence[Any],
        col_ind_at: Sequence[Any],
        order_at: Sequence[Any],
        colors_at: Sequence[Any],
        mark_at: Sequence[Any],
        n_rows: int,
        n_cols: int,
        n_entries: int,
        n_order: int,
    ) -> None:
        row_ptr, row_ind = carray(row_ptr_at, n_rows + 1), carray(row_ind_at, n_entries)
        col_ptr, col_ind = carray(col_ptr_at, n_cols + 1), carray(col_ind_at, n_entries)
        order, colors = carray(order_at, n_order), carray(colors_at, n_cols)
        mark = carray(mark_at, n_cols)
        for at in range(n_order):
            j = order[at]
            for p in range(col_ptr[j], col_ptr[j + 1]):
                i = col_ind[p]
                for q in range(row_ptr[i], row_ptr[i + 1]):
                    color = colors[row_ind[q]]
                    if color >= 0:
                        mark[color] = j
            color = 0
            while mark[color] == j:
                color += 1
            colors[j] = color

    return kernel


def star_coloring(carray: Callable[..., Any], njit: Callable[..., Any]) -> Callable[..., None]:
    """Star colouring of a graph: neighbours differ, and every path of four has three colours.

    In a path ``v, w, x`` whose ends have one colour, that of the middle is the smaller one; so a
    path of four with two colours would need each to be smaller than the other.
    """

    def kernel(
        ptr_at: Sequence[Any],
        ind_at: Sequence[Any],
        order_at: Sequence[Any],
        colors_at: Sequence[Any],
        mark_at: Sequence[Any],
        n: int,
        n_entries: int,
        n_order: int,
    ) -> None:
        ptr, ind = carray(ptr_at, n + 1), carray(ind_at, n_entries)
        order, colors = carray(order_at, n_order), carray(colors_at, n)
        mark = carray(mark_at, n)
        for at in range(n_order):
            v = order[at]
            for p in range(ptr[v], ptr[v + 1]):
                w = ind[p]
                if w == v:
                    continue
                middle = colors[w]
                if middle >= 0:
                    mark[middle] = v
                for q in range(ptr[w], ptr[w + 1]):
                    x = ind[q]
                    color = colors[x]
                    if x != v and color >= 0 and (middle < 0 or color < middle):
                        mark[color] = v
            color = 0
            while mark[color] == v:
                color += 1
            colors[v] = color

    return kernel


def incidence_order(carray: Callable[..., Any], njit: Callable[..., Any]) -> Callable[..., None]:
    """Columns in the order in which each has most neighbours among those before it.

    Columns are in lists by their number of such neighbours: ``head`` begins each list, ``after``
    and ``before`` link it; all begin in the list of 0. ``seen`` has one entry per column, -1.
    """

    def kernel(
        row_ptr_at: Sequence[Any],
        row_ind_at: Sequence[Any],
        col_ptr_at: Sequence[Any],
        col_ind_at: Sequence[Any],
        order_at: Sequence[Any],
        degree_at: Sequence[Any],
        head_at: Sequence[Any],
        after_at: Sequence[Any],
        before_at: Sequence[Any],
        seen_at: Sequence[Any],
        n_rows: int,
        n_cols: int,
        n_entries: int,
    ) -> None:
        row_ptr, row_ind = carray(row_ptr_at, n_rows + 1), carray(row_ind_at, n_entries)
        col_ptr, col_ind = carray(col_ptr_at, n_cols + 1), carray(col_ind_at, n_entries)
        order, degree = carray(order_at, n_cols), carray(degree_at, n_cols)
        head, seen = carray(head_at, n_cols + 1), carray(seen_at, n_cols)
        after, before = carray(after_at, n_cols), carray(before_at, n_cols)
        for j in range(n_cols):
            before[j] = j - 1
            after[j] = j + 1 if j + 1 < n_cols else -1
        top = 0
        for at in range(n_cols):
            while head[top] < 0:
                top -= 1
            j = head[top]
            order[at] = j
            head[top] = after[j]
            if after[j] >= 0:
                before[after[j]] = -1
            degree[j] = -1
            for p in range(col_ptr[j], col_ptr[j + 1]):
                i = col_ind[p]
                for q in range(row_ptr[i], row_ptr[i + 1]):
                    k = row_ind[q]
                    old = degree[k]
                    if old < 0 or seen[k] == j:
                        continue
                    seen[k] = j
                    if before[k] >= 0:
                        after[before[k]] = after[k]
                    else:
                        head[old] = after[k]
                    if after[k] >= 0:
                        before[after[k]] = before[k]
                    degree[k] = old + 1
                    first = head[old + 1]
                    before[k] = -1
                    after[k] = first
                    if first >= 0:
                        before[first] = k
                    head[old + 1] = k
                    if old + 1 > top:
                        top = old + 1

    return kernel
