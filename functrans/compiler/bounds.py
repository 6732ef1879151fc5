"""Index arrays that are known when a program is planned are checked then, and not at each call.

Here: ``with_checked_indices``. Not here: what the modes of indexing mean, patterns of indices
(``primitives``).

A check per index costs about as much as the read behind it, and keeps it out of vectors. An index
array that nobody can change (the places of a sparse matrix's entries, a mesh) needs none.

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans.core.jaxpr import Equation, Jaxpr, Var
from functrans.primitives.block_gather import find_blocks, gather_blocks_p
from functrans.primitives.gather_scatter import gather_p

_SMALLEST = 4
"""Bytes of an element from which vectors of single elements are worth it."""


def with_checked_indices(jaxpr: Jaxpr, constants: Mapping[Var, np.ndarray]) -> Jaxpr:
    """The program with mode ``inside`` where all index arrays are constant and fit.

    Where such indices repeat a pattern, the read is a ``gather_blocks``.

    Args:
      jaxpr: a program.
      constants: arguments that are the same unchangeable array in every call.
    """
    if not constants:
        return jaxpr
    eqns = tuple([_checked(eqn, constants) for eqn in jaxpr.eqns])
    if all(new is old for new, old in zip(eqns, jaxpr.eqns, strict=True)):
        return jaxpr
    return replace(jaxpr, eqns=eqns, cache={})


def _checked(eqn: Equation, constants: Mapping[Var, np.ndarray]) -> Equation:
    first = eqn.primitive.indices
    if first is None:
        return eqn
    indices = [constants.get(atom) for atom in eqn.inputs[first:]]  # type: ignore[arg-type]  # no literal is among them
    extents = extents_of(eqn)
    for index, extent in zip(indices, extents, strict=True):
        if index is None or not fits(index, extent):
            return eqn
    return _in_blocks(eqn, indices) or replace(eqn, params={**eqn.params, "mode": "inside"})


def _in_blocks(eqn: Equation, indices: Sequence[Any]) -> Equation | None:
    """A read of a vector whose indices repeat a pattern."""
    aval = eqn.inputs[0].aval
    if eqn.primitive is not gather_p or len(aval.shape) != 1 or aval.dtype.itemsize < _SMALLEST:
        return None
    found = find_blocks(indices[0])
    if found is None:
        return None
    patterns, ranges = found
    return replace(eqn, primitive=gather_blocks_p, params={"patterns": patterns, "ranges": ranges})


def extents_of(eqn: Equation) -> Sequence[int]:
    """Of the indexed axes."""
    params: Mapping[str, Any] = eqn.params
    if "extents" in params:
        return params["extents"]
    shape = params["shape"] if "shape" in params else eqn.inputs[0].aval.shape
    return [shape[axis] for axis in params["axes"]]


def fits(index: np.ndarray, extent: int) -> bool:
    """Whether all indices are in ``[0, extent)``, where every mode means the same."""
    return not index.size or (index.min() >= 0 and index.max() < extent)
