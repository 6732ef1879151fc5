"""The cheapest passes for a Jacobian: rows of some results, columns of some arguments.

Here: ``cheapest_passes``. Not here: the passes, and what they do (``transforms.jacobian``).

A block of a Jacobian is found by pulling back its rows or by pushing forward its columns. The rows
of a result, once pulled back, hold its blocks with all arguments; the columns of an argument those
of all results. So a choice is a set of results and arguments such that each block which is not zero
has its result or its argument in it. The cheapest one is a minimum-weight vertex cover of a
bipartite graph, which is the minimum cut of a flow network (König's theorem with weights).

Layer: ``transforms``. Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 8;
Ford & Fulkerson, Flows in Networks (1962).
"""

from __future__ import annotations

from collections.abc import Sequence

from functrans.passes.nodes import Node
from functrans.passes.work import node_work


def cheapest_passes(
    rows: Sequence[float], columns: Sequence[float], edges: Sequence[Sequence[int]]
) -> tuple[set[int], set[int]]:
    """Results to pull back and arguments to push forward, at the least cost.

    Args:
      rows: cost of all rows of each result.
      columns: cost of all columns of each argument.
      edges: per result, the arguments that it depends on.

    Returns:
      Numbers of results and of arguments. Where both directions cost the same, results.
    """
    # Flow from a source over each result, along the blocks, over each argument to a sink. What is
    # left of the capacities tells the cut: results that cannot be reached, arguments that can.
    left_rows, left_columns = list(rows), list(columns)
    flow: dict[tuple[int, int], float] = {}

    def reach() -> tuple[dict[int, int | None], dict[int, int], int | None]:
        """Results and arguments that more flow can reach, by whom; an argument with capacity."""
        by_result: dict[int, int | None] = {i: None for i, left in enumerate(left_rows) if left > 0}
        by_column: dict[int, int] = {}
        pending = list(by_result)
        while pending:
            i = pending.pop()
            for j in edges[i]:
                if j in by_column:
                    continue
                by_column[j] = i
                if left_columns[j] > 0:
                    return by_result, by_column, j
                for k, edge in enumerate(edges):
                    if j in edge and k not in by_result and flow.get((k, j), 0) > 0:
                        by_result[k] = j
                        pending.append(k)
        return by_result, by_column, None

    while True:
        by_result, by_column, end = reach()
        if end is None:
            break
        path = []
        j: int | None = end
        amount = left_columns[end]
        while j is not None:
            i = by_column[j]
            path.append((i, j, 1))
            j = by_result[i]
            if j is not None:
                path.append((i, j, -1))
                amount = min(amount, flow[i, j])
        start = path[-1][0]
        amount = min(amount, left_rows[start])
        left_rows[start] -= amount
        left_columns[end] -= amount
        for i, j, sign in path:
            flow[i, j] = flow.get((i, j), 0.0) + sign * amount
    chosen = {i for i, own in enumerate(edges) if own and i not in by_result}
    return chosen, set(by_column)


def dependences(out_nodes: Sequence[Node | None], inputs: Sequence[Node | None]) -> list[list[int]]:
    """Per result, the numbers of the inputs that it depends on."""
    number = {node: j for j, node in enumerate(inputs) if node is not None}
    return [sorted(number[n] for n in _below(node) if n in number) for node in out_nodes]


def pass_work(
    nodes: Sequence[Node], starts: Sequence[Node | None], ends: Sequence[Node | None]
) -> float:
    """The work of one tangent or cotangent between some inputs and some results.

    Args:
      nodes: all nodes in order of creation.
      starts: inputs.
      ends: results.
    """
    reached = {node for node in starts if node is not None}
    for node in nodes:
        if any(parent in reached for parent in node.parents if parent is not None):
            reached.add(node)
    wanted: set[Node] = set()
    for end in ends:
        wanted |= _below(end)
    return sum(node_work(node) for node in nodes if node in reached and node in wanted)


def _below(root: Node | None) -> set[Node]:
    """The nodes that a result depends on, with its own."""
    if root is None:
        return set()
    seen = {root}
    pending = [root]
    while pending:
        for parent in pending.pop().parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                pending.append(parent)
    return seen
