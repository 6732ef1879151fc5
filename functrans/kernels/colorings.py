"""Greedy colourings of the columns of sparse matrices and of graphs, for numba.

Here: functions of arrays, which are run as they are on lists, too, where compiling them would not
pay. Not here: names and compilation (``kernels.table``), what colourings are for
(``sparse.coloring``).

Matrices come in compressed form: the columns ``indices[indptr[i] : indptr[i + 1]]`` of row ``i``,
and for columns the same the other way round. Colours count from 0; before the call all are -1, and
what is not in ``order`` stays -1.

Layer: ``kernels``. Reference: Gebremedhin, Manne & Pothen, What color is your Jacobian?, SIAM
Review 47 (2005).
"""

from __future__ import annotations

from functrans.core.values import Array


def column_coloring(
    row_ptr: Array,
    row_ind: Array,
    col_ptr: Array,
    col_ind: Array,
    order: Array,
    colors: Array,
    mark: Array,
) -> None:
    """Partial distance-2 colouring: columns of one colour have no row in common.

    ``mark`` has one entry per column, -1; ``colors`` is the result.
    """
    for at in range(len(order)):
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


def star_coloring(ptr: Array, ind: Array, order: Array, colors: Array, mark: Array) -> None:
    """Star colouring of a graph: neighbours differ, and every path of four has three colours.

    In a path ``v, w, x`` whose ends have one colour, that of the middle is the smaller one; so a
    path of four with two colours would need each to be smaller than the other.
    """
    for at in range(len(order)):
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


def incidence_order(
    row_ptr: Array,
    row_ind: Array,
    col_ptr: Array,
    col_ind: Array,
    order: Array,
    degree: Array,
    head: Array,
    after: Array,
    before: Array,
    seen: Array,
) -> None:
    """Columns in the order in which each has most neighbours among those before it.

    Columns are in lists by their number of such neighbours: ``head`` begins each list, ``after``
    and ``before`` link it; all begin in the list of 0. ``seen`` has one entry per column, -1.
    """
    for j in range(len(order)):
        before[j] = j - 1
        after[j] = j + 1 if j + 1 < len(order) else -1
    top = 0
    for at in range(len(order)):
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
