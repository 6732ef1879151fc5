"""Which places of a sparse matrix with traced entries SciPy stores.

A traced matrix keeps all places that may have an entry, since an entry that happens to be zero has
derivatives. Those that SciPy stores come first; how many they are is known where values are, and
where an operation of SciPy's keeps zeros, whatever the values. SciPy itself says so: the operation
is done on plain numbers, too.

Here: plain matrices in the place of traced ones, what they say about a result. Not here: the
matrices (``plain.sparse.matrices``).

Layer: ``plain.sparse``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.arrays.masked import known_mask
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ConcretizationError, FunctransError
from functrans.passes.layouts import plain_value
from functrans.passes.staging import has_answer
from functrans.plain.sparse.parts import refused, scipy_class

ALL = -1
"""In place of a number of places: SciPy stores all of them."""


def known_numbers(entries: Any) -> Array | None:
    """Plain numbers of entries; ``None`` where they are not known."""
    found = plain_value(entries)
    return None if found is None else np.asarray(found)


def truth_of(entries: object) -> Any:
    """Which entries are not zero; ``None`` where that is not known."""
    found = known_numbers(entries)
    if found is not None:
        return found != 0
    return known_mask(entries != 0) if has_answer(entries) else None


def unknown_pattern(what: str, entries: object) -> FunctransError:
    """The error for a question of which entries SciPy stores, where that is not known."""
    if known_numbers(entries) is not None:
        return refused(
            what, "how SciPy stores it is not known (several entries were at one place, or it is "
            "made of diagonals of other lengths); call A.sum_duplicates() before, or A.tocsr()"
        )  # fmt: skip
    return ConcretizationError(
        f"{what} of a sparse matrix was asked{here()}, of which SciPy drops entries that are zero. "
        "Which ones are is not known while shapes and dtypes only are traced. Products, solutions, "
        "sums and .toarray() do not depend on it; make the matrix of entries and their places, "
        "csr_matrix((data, (rows, columns))), or let each pattern have a program: jit with "
        "specialize=True"
    )


def of_numbers(own: Any, numbers: np.ndarray) -> Any:
    """SciPy's matrix of the places that are stored, with plain numbers in the same order."""
    n = own._stored_count()
    coords = tuple([c[:n].copy() for c in own.sites])  # SciPy may order them in place
    numbers, layout = np.array(numbers[:n]), own.format
    if layout in ("csr", "csc") and own.ndim == 2:
        major, minor = coords if layout == "csr" else coords[::-1]
        extent = own.shape[0 if layout == "csr" else 1]
        pointers = np.concatenate([[0], np.cumsum(np.bincount(major, minlength=extent))])
        return scipy_class(own.kind, layout)((numbers, minor, pointers), shape=own.shape)
    if layout == "dok":
        result = scipy_class(own.kind, "dok")(own.shape, dtype=numbers.dtype)
        keys = zip(*(c.tolist() for c in coords), strict=True) if own.ndim > 1 else coords[0]
        result._dict.update(zip(keys, numbers, strict=True))
        return result
    coo = scipy_class(own.kind, "coo")((numbers, coords), shape=own.shape)
    if layout == "bsr" and own.blocksize is not None:
        return coo.tobsr(blocksize=own.blocksize)
    return coo.asformat(layout)


def stored_places(matrix: Any) -> tuple[np.ndarray, ...]:
    """Where SciPy stores entries of a matrix, zeros as well, in their order."""
    if matrix.format in ("dia", "bsr"):  # whose zeros SciPy drops on the way
        matrix = matrix.copy()
        matrix.data = np.ones(matrix.data.shape, np.int64)
    return tuple([np.asarray(c).astype(np.intp) for c in matrix.tocoo().coords])


def _flat(coords: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> np.ndarray:
    return np.ravel_multi_index(coords, shape) if len(coords[0]) else np.zeros(0, np.intp)


def entry_order(own: Any, model: object) -> tuple[np.ndarray, int] | None:
    """The order of the places of a matrix that SciPy's has, others last, and how many those are.

    ``None`` where the two have not the same places. Places without an entry have the number -1.
    """
    flat, wanted = (_flat(c, own.shape) for c in (own.sites, stored_places(model)))
    if len(flat) == len(wanted) and np.array_equal(flat, wanted):
        return np.arange(len(flat)), len(flat)
    by_place = np.argsort(flat, kind="stable")
    in_order = flat[by_place]
    if np.any(in_order[1:] == in_order[:-1]) or len(np.unique(wanted)) < len(wanted):
        return None
    at = np.searchsorted(in_order, wanted)
    found = np.zeros(len(wanted), bool)
    inside = at < len(flat)
    found[inside] = in_order[at[inside]] == wanted[inside]
    numbers = np.full(len(wanted), -1, np.intp)
    numbers[found] = by_place[at[found]]
    rest = np.setdiff1d(np.arange(len(flat)), numbers[found])
    return np.concatenate([numbers, rest]), len(wanted)


def _generic(n: int, dtype: np.dtype, seed: int) -> np.ndarray:
    return (
        np.random.default_rng(seed)
        .uniform(1.0, 2.0, n)
        .astype(dtype if dtype.kind == "c" else float)
    )


def models(
    change: Callable[..., Any], operands: tuple[Any, ...], is_traced_sparse: Callable[[Any], bool]
) -> tuple[Any, Any]:
    """What SciPy makes of plain operands: with their values, and the same with zeros if unknown.

    ``(result, None)`` where values are known or do not matter, ``(None, result of zeros)`` where
    they do, ``(None, None)`` where nothing is known.
    """
    if any(is_traced_sparse(x) and x._stored_count() is None for x in operands):
        return None, None

    def of(fill: Callable[[int, Any], Any]) -> Any:
        plain: list[Any] = []
        for k, x in enumerate(operands):
            if is_traced_sparse(x):
                numbers = fill(k, x.entries)
                plain.append(None if numbers is None else of_numbers(x, numbers))
            else:
                plain.append(fill(k, x) if isinstance(x, Tracer) else x)
        if any(x is None for x in plain):
            return None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                return change(*plain)
            except ValueError:
                if any(getattr(x, "format", "") == "dia" for x in plain):
                    return None  # SciPy adds diagonals only if they are stored in equal lengths
                raise

    def generic(k: int, x: Array) -> np.ndarray:
        known = known_numbers(x)
        n = int(np.prod(shape_of(x)))
        return _generic(n, dtype_of(x), k).reshape(shape_of(x)) if known is None else known

    def zeros(k: int, x: Array) -> np.ndarray:
        known = known_numbers(x)
        return np.zeros(shape_of(x), dtype_of(x)) if known is None else known

    result = of(lambda k, x: known_numbers(x))
    if result is not None:
        return result, None
    most, least = of(generic), of(zeros)
    if most is None or least is None:
        return None, None
    if not hasattr(most, "format"):
        return most, None
    is_same = all(map(np.array_equal, stored_places(most), stored_places(least)))
    return (most, None) if is_same else (None, least)
