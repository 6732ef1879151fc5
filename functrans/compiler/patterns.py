"""Sparse results of programs that leave Python: entries are results, patterns constants.

Here: ``without_patterns``, which takes the patterns out of a program, and ``Table``, a constant
array of exported code. Not here: how they are declared (``compiler.header``), where patterns come
from (``functrans.sparse``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.arrays.sparse import SparseArray
from functrans.compiler.interface import Leaf, Matrix, c_name, c_names, macro_of
from functrans.core.avals import ShapedArray
from functrans.core.jaxpr import Jaxpr
from functrans.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Table:
    """A constant array of the code.

    Attributes:
      name: its symbol.
      path: what Python calls it.
      array: what it holds.
    """

    name: str
    path: str
    array: np.ndarray

    @property
    def leaf(self) -> Leaf:
        """How C sees it."""
        return Leaf(self.name, self.path, ShapedArray(self.array.shape, self.array.dtype))


@dataclass(frozen=True, slots=True)
class Pattern:
    """Where the entries of a sparse result are.

    Attributes:
      result: number of the result that holds the entries.
      shape: rows and columns.
      is_by_rows: whether entries are stored row by row; else column by column.
      indptr: where rows, or columns, begin.
      indices: columns, or rows, of the entries.
    """

    result: int
    shape: tuple[int, int]
    is_by_rows: bool
    indptr: Table
    indices: Table

    def matrix(self, prefix: str, entries: Leaf) -> Matrix:
        """The result as C sees it, with macros of a prefix."""
        return Matrix(
            prefix=prefix,
            path=entries.path.removesuffix(".data"),
            shape=self.shape,
            is_by_rows=self.is_by_rows,
            entries=entries,
            indptr=self.indptr.leaf,
            indices=self.indices.leaf,
        )


def without_patterns(
    jaxpr: Jaxpr, captured: Sequence[Any], treedef: Any, name: str
) -> tuple[Jaxpr, list[str], list[Pattern]]:
    """A copy of a program without results that are patterns of sparse ones, if constant.

    Args:
      jaxpr: the program.
      captured: what its first arguments always are.
      treedef: structure of its results.
      name: of the function in C.

    Returns:
      The program, the key paths of its results, and the patterns.
    """
    paths = tree.paths_of(treedef, "out")
    known = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
    known |= dict(zip(jaxpr.invars, captured, strict=False))
    kept = dict(enumerate(jaxpr.outvars))
    found = [
        (matrix, [known[jaxpr.outvars[i]] for i in (matrix.indptr, matrix.indices)])
        for matrix in _sparse_results(treedef, 0)
        if jaxpr.outvars[matrix.indptr] in known and jaxpr.outvars[matrix.indices] in known
    ]
    for matrix, _ in found:
        del kept[matrix.indptr], kept[matrix.indices]
    numbers = {place: number for number, place in enumerate(kept)}
    patterns = [
        Pattern(
            numbers[matrix.data],
            matrix.shape,
            matrix.format == "csr",
            *(
                Table(f"{name}_{c_name(paths[i], 'out')}", paths[i], np.asarray(array, order="C"))
                for i, array in zip((matrix.indptr, matrix.indices), arrays, strict=True)
            ),
        )
        for matrix, arrays in found
    ]
    jaxpr = replace(jaxpr, outvars=tuple(kept.values()), cache={})
    return jaxpr, [paths[place] for place in kept], patterns


def prefixes_of(patterns: Sequence[Pattern], paths: Sequence[str], name: str) -> list[str]:
    """What macros of patterns begin with: they differ where names of results differ in case only.

    Args:
      patterns: those of a program.
      paths: key paths of its results.
      name: of the function in C.
    """
    own = [c_name(paths[p.result].removesuffix(".data"), "out").upper() for p in patterns]
    return c_names([f"{macro_of(name)}_{text}" for text in own], "out", ())


def _sparse_results(treedef: Any, start: int) -> Iterator[SparseArray]:
    """The sparse matrices of a structure, with the numbers of their leaves in place of arrays."""
    if treedef is tree.LEAF:
        return
    if treedef.type is SparseArray:
        yield tree.unflatten(treedef, range(start, start + treedef.num_leaves))
        return
    for child in tree.children_of(treedef):
        yield from _sparse_results(child, start)
        start += child.num_leaves
