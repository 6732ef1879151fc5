"""Writing to sparse matrices with traced entries, and reading while they are written.

Here: which places an index means, entries by place. Not here: the matrices
(``plain.sparse.matrices``), how entries are kept while they are written (``plain.sparse.parts``).

Layer: ``plain.sparse``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array, Operand
from functrans.plain.memory import holds_tracer, settled
from functrans.plain.sparse.parts import Written, refused, scipy_class, sparse_library
from functrans.primitives.structural import cast


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
    own: Any, rows: np.ndarray, cols: np.ndarray, value: Any, *, keeps_zeros: bool = False
) -> None:
    """Write values to places; to some formats SciPy writes no zeros."""
    check_storable(own, value)
    drops_zeros = own.format in ("dok", "lil") and not keeps_zeros
    if own.format == "coo":
        drops_zeros = rows.ndim > 0 and not keeps_zeros
    if own._written is not None and own._written.drops_zeros != drops_zeros:
        own._settle()
    if own._written is None:
        if _written_in_place(own, rows, cols, value, is_diagonal=keeps_zeros):
            return
        distinct = own._distinct()
        stored = distinct._stored if distinct is own else None  # SciPy does not merge all
        entries: Any = distinct.entries
        if isinstance(entries, Tracer):  # others that share them stay as they are
            entries = entries[...].copy()  # type: ignore[index]  # tracers have indices
        own._memory, own._is_shared, own._seen, own._stored = None, False, None, stored
        own._written = Written(distinct.sites, entries, drops_zeros)
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


def exists(own: Any, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Whether SciPy stores entries at some places."""
    sites = own._visible("places")
    flat = sites[0] * own.shape[1] + sites[1]
    return np.isin(rows * own.shape[1] + cols, flat)


def _written_in_place(
    own: Any, rows: np.ndarray, cols: np.ndarray, value: Operand, *, is_diagonal: bool
) -> bool:
    """Write to the places that SciPy stores already, in the memory; whether these were all."""
    is_of_format = own.format in ("csc", "csr", "dia")
    if not is_of_format or not isinstance(own.entries, Tracer) or not rows.size:
        return False
    entries: Any = own.entries
    n = own._stored_count()
    if n is None:
        if own._is_shared:
            own._visible("places")
        return False
    flat = own.sites[0][:n] * own.shape[1] + own.sites[1][:n]
    order = np.argsort(flat, kind="stable")
    in_order, wanted = flat[order], (rows * own.shape[1] + cols).ravel()
    first = np.searchsorted(in_order, wanted)
    count = np.searchsorted(in_order, wanted, side="right") - first
    if np.any(count > 1):
        raise refused(
            "writing to a place of several entries", "add them up before: A.sum_duplicates()"
        )
    found = count == 1
    if own.format == "dia" and not found.all():
        if np.isin(cols - rows, own.sites[1] - own.sites[0]).any():
            raise refused("writing to a part of a diagonal", "use another format: A.tolil()")
        return False
    if is_diagonal and not found.all() and (~found).sum() >= n * 0.001:
        return False  # SciPy makes all entries anew
    if found.any():
        value = np.broadcast_to(value, rows.shape).reshape(-1)[np.flatnonzero(found)]
        entries[order[first[found]]] = value
    return bool(found.all())


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


def read_written(own: Any, key: Sequence[Array]) -> Any:
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
