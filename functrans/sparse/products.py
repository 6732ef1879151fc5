"""Which elements of its operands a product with a sparse matrix depends on.

Here: ``RULES`` of ``csr_matmul`` and ``csr_sample``, which ``sparse.rules`` takes over. With a
known pattern the sets are exact; entries that are known to be 0 do not count. With a pattern that
depends on an argument everything depends on everything.

Layer: ``sparse``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from functrans.core.jaxpr import Equation
from functrans.core.values import Array
from functrans.primitives.sparse.products import rows_of
from functrans.sparse.dependence import Dependence, Sets, Shape
from functrans.sparse.values import Value, numbers


def _pattern(operands: Sequence[Value]) -> tuple[np.ndarray, np.ndarray] | None:
    """Row and column of each entry, if they are known."""
    indices, indptr = operands[2:]
    if not indices.is_known or not indptr.is_known:
        return None
    return rows_of(np.asarray(numbers(indptr))), np.asarray(numbers(indices)).astype(np.int64)


def _everywhere(sets: Sets, operands: Sequence[Value], shape: Shape) -> list[Dependence]:
    """All elements of the first two operands."""
    everything = sets.everything([v.dep for v in operands[:2]])
    return [sets.move(everything, lambda places: np.broadcast_to(places, shape))]


def _flat(shape: Shape, *index: Array) -> np.ndarray:
    """Numbers of elements in C order, of broadcast indices."""
    return np.ravel_multi_index(np.broadcast_arrays(*index), shape).reshape(-1)


def _csr_matmul(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    data, x = operands[:2]
    m, n = eqn.params["shape"]
    is_transposed = eqn.params["trans"] == "T"
    height, k = n if is_transposed else m, x.shape[-1]
    shape = (*x.shape[:-2], height, k)
    pattern = _pattern(operands)
    if pattern is None:
        return _everywhere(sets, operands, shape)
    rows, columns = pattern[::-1] if is_transposed else pattern
    stack = math.prod(shape[:-2])
    p = np.arange(len(rows))
    if data.is_known:  # entries that are 0 everywhere
        entries = np.asarray(numbers(data)).reshape(stack, len(rows))
        p = p[np.any(entries != 0, axis=0)]
    s = np.arange(stack)[:, None, None]
    c = np.arange(k)
    pairs = []
    if stack * k * len(p):
        owner = _flat((stack, height, k), s, rows[p, None], c)
        for term in x.dep:
            places = term.places.reshape(stack, -1, k)[:, columns[p]]
            pairs.append((owner, places.reshape(-1), term.table))
        for term in data.dep:
            places = term.places.reshape(stack, -1)[:, p, None]
            places = np.broadcast_to(places, (stack, len(p), k))
            pairs.append((owner, places.reshape(-1), term.table))
    return [sets.collect(pairs, shape)] if pairs else [()]


def _csr_sample(sets: Sets, eqn: Equation, operands: Sequence[Value]) -> list[Dependence]:
    a, b = operands[:2]
    shape = (*a.shape[:-2], *operands[2].shape)
    pattern = _pattern(operands)
    if pattern is None:
        return _everywhere(sets, operands, shape)
    stack, count, k = math.prod(shape[:-1]), shape[-1], a.shape[-1]
    if not stack * count * k:
        return [()]
    owner = np.repeat(np.arange(stack * count), k)
    pairs = []
    for value, at in zip((a, b), pattern, strict=True):
        for term in value.dep:
            places = term.places.reshape(stack, -1, k)[:, at]
            pairs.append((owner, places.reshape(-1), term.table))
    return [sets.collect(pairs, shape)]


RULES = {"csr_matmul": _csr_matmul, "csr_sample": _csr_sample}
"""Rules by the name of the primitive."""
