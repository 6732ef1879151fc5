"""Writing to sparse matrices with traced entries, and reading while they are written.

Here: which places an index means, entries by place. Not here: the matrices (``plain.sparse``), how
entries are kept while they are written (``plain.sparse_parts``).

Layer: ``plain``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.ir.source import here
from functrans.plain.memory import holds_tracer, settled
from functrans.plain.sparse_parts import Written, refused, scipy_class, sparse_library
from functrans.primitives.structural import cast
from functrans.trace import Tracer, dtype_of, shape_of


def addressed(own: Any, key: Any) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the places of an index."""
    key = settled(key)
    if holds_tracer(key):
        raise refused("an index that is traced", "rows and columns must be known")
    if own.ndim != 2:
        raise refused("writing to a row", "write to the matrix: A[i, j] = v")
    if type(key) is tuple:
        key = tuple([k.toarray() if sparse_library().issparse(k) else k for k in key])
    elif sparse_library().issparse(key):
        key = key.toarray()
    m, n = own.shape
    rows = np.broadcast_to(np.arange(m)[:, None], (m, n))[key]
    cols = np.broadcast_to(np.arange(n), (m, n))[key]
    return np.asarray(rows), np.asarray(cols)


def write(
    own: Any, rows: np.ndarray, cols: np.ndarray, value: Any, *, is_diagonal: bool = False
) -> None:
    """Write values to places; to some formats SciPy writes no zeros."""
    check_storable(own, value)
    if own._written is None:
        distinct = own._distinct()
        own._stored = distinct._stored if distinct is own else None  # SciPy does not merge all
        drops_zeros = own.format in ("dok", "lil")
        if own.format == "coo":
            drops_zeros = rows.ndim > 0 and not is_diagonal
        own._written = Written(distinct.sites, distinct.entries, drops_zeros)
    written = own._written
    keys = zip(rows.ravel().tolist(), cols.ravel().tolist(), strict=True)
    shape = shape_of(value)
    local = np.broadcast_to(np.arange(int(np.prod(shape))).reshape(shape), rows.shape)
    keep = np.ones(rows.size, bool)
    if not isinstance(value, Tracer):
        if written.drops_zeros:
            keep = np.broadcast_to(np.asarray(value) != 0, rows.shape).ravel()
        value = np.asarray(value).astype(own.dtype)
    elif value.dtype != own.dtype:
        value = cast(value, own.dtype)
    start = written.add(value.reshape(-1))
    is_appended = own.format == "coo"
    for key, number, is_entry in zip(keys, local.ravel().tolist(), keep.tolist(), strict=True):
        if is_appended:
            written.numbers.pop(key, None)
        if is_entry:
            written.numbers[key] = start + number
        else:
            written.numbers.pop(key, None)
    if is_appended:  # other writes may treat zeros otherwise
        own._settle()


def check_storable(own: Any, value: Any) -> None:
    """Refuse traced values that would be cut.

    Raises:
      TypeError: names the dtype of the matrix.
    """
    kind, stored = dtype_of(value).kind, own.dtype.kind
    if (stored in "biu" and kind in "fc" and isinstance(value, Tracer)) or (
        stored != "c" and kind == "c"
    ):
        needed = "complex" if kind == "c" else "float"
        raise TypeError(
            f"values of {dtype_of(value)} were written to a sparse matrix of {own.dtype}"
            f"{here()}; make it with dtype={needed}"
        )


def read_written(own: Any, key: Any) -> Any:
    """An entry or a small part while entries are written; ``None`` of larger parts."""
    written = own._written
    assert written is not None
    if type(key) is tuple and len(key) == 2 and all(isinstance(k, (int, np.integer)) for k in key):
        i, j = (int(k) + n * (k < 0) for k, n in zip(key, own.shape, strict=True))
        if not (0 <= i < own.shape[0] and 0 <= j < own.shape[1]):
            raise IndexError(f"index {key} is out of bounds for shape {own.shape}")
        number = written.numbers.get((i, j))
        if number is None:
            return np.zeros((), own.dtype)[()]
        return written.take(np.array([number]))[0]
    rows, cols = addressed(own, key)
    if rows.size > 4 * len(written.numbers) + 64:
        return None
    like = scipy_class(own.kind, "csr")(own.shape)[key]
    if not sparse_library().issparse(like):
        return None
    keys = zip(rows.ravel().tolist(), cols.ravel().tolist(), strict=True)
    numbers = np.array([written.numbers.get(place, -1) for place in keys], np.intp)
    at = np.flatnonzero(numbers >= 0)
    shape = tuple(map(int, like.shape))
    coords = tuple([c.astype(np.intp) for c in np.unravel_index(at, shape)])
    entries = written.take(numbers[at]) if len(at) else np.zeros(0, own.dtype)
    layout = "coo" if len(shape) == 1 else own.format
    result = own._made(own.kind, layout, shape, coords, entries)
    return result._told(own._mask_of_written(written, numbers[at], entries))
