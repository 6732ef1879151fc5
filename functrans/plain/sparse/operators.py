"""The operators of sparse matrices with traced entries.

Sums merge triplets, products of two sparse matrices are expanded, products with dense arrays are
those of ``functrans.scipy.sparse``.

Here: the methods, which ``TracedSparse`` is given. Not here: that class
(``plain.sparse.matrices``).

Layer: ``plain.sparse``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.arrays.sparse import SparseArray, compressed, matmul
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.plain.memory import settled
from functrans.plain.sparse.dense import TracedDense, array_of
from functrans.plain.sparse.matrices import (
    TracedSparse,
    as_scipy_stores,
    as_traced_sparse,
    container_kind,
    from_triplets,
    is_sparse,
    ones,
    read_off,
    with_positions,
)
from functrans.plain.sparse.parts import pooled, refused, scipy_class, sparse_library
from functrans.plain.sparse.writing import check_storable


class _Operators:
    """Methods of ``TracedSparse``."""

    def __bool__(self: Any) -> bool:
        """Not one truth value, as SciPy's."""
        raise ValueError("The truth value of an array with more than one element is ambiguous.")

    __hash__ = object.__hash__

    def __imul__(self: Any, other: Any) -> Any:
        """In place by a number, as SciPy; else the product."""
        if is_sparse(other) or np.ndim(settled(other)):
            return self * other
        return self._scaled_in_place(operator.imul, other)

    def __itruediv__(self: Any, other: object) -> Any:
        """In place by a number, as SciPy; else the quotient."""
        if is_sparse(other) or np.ndim(settled(other)):
            return self / other
        return self._scaled_in_place(operator.itruediv, other)

    def _scaled_in_place(
        self: Any, change: Callable[[Any, Any], Any], factor: object
    ) -> TracedSparse:
        """This matrix with entries that are changed in the memory that it may share."""
        factor = array_of(factor)
        data = self._entries if self._memory is None else self._memory[0]
        if self._written is None and self.format not in ("dok", "lil") and isinstance(data, Tracer):
            check_storable(self, factor)
            change(data, factor)
            return self
        plain = {operator.imul: operator.mul, operator.itruediv: operator.truediv}[change]
        return self._changed_to(plain(self, factor))

    def __iadd__(self: Any, other: object) -> Any:
        """In place in a matrix of lists, as SciPy; else the sum."""
        return self._changed_to(self + other) if self.format == "lil" else self + other

    def __isub__(self: Any, other: object) -> Any:
        """In place in a matrix of lists, as SciPy; else the difference."""
        return self._changed_to(self - other) if self.format == "lil" else self - other

    def _changed_to(self: Any, other: object) -> TracedSparse:
        """This matrix with the entries of another one."""
        if not isinstance(other, TracedSparse):
            self[:, :] = other
            return self
        check_storable(self, other.entries)
        layout, dtype = self.format, self.dtype
        if layout == "lil":  # which shares its lists no longer
            self._unshare()
        other = other.asformat(layout)
        self._become_like(other if other.dtype == dtype else other.astype(dtype))
        return self

    def __neg__(self: Any) -> Any:
        """Negative entries."""
        if self.format in ("bsr", "coo", "csc", "csr", "dia"):
            return self._with(-self.entries)
        return self._mapped(operator.neg, lambda entries: -entries)

    def __pos__(self: Any) -> Any:
        """A copy."""
        return self.copy()

    def __abs__(self: Any) -> Any:
        """Absolute values."""
        return self._mapped(abs, abs)

    def __round__(self: Any, ndigits: int = 0) -> Any:
        """Rounded entries."""
        return self._mapped(lambda own: own, lambda entries: np.round(entries, ndigits))

    def _sum(self: Any, other: Any, sign: int, own_sign: int = 1) -> TracedSparse:
        """``own_sign * self + sign * other``."""
        other = settled(other)
        if is_sparse(other):
            if tuple(self.shape) != tuple(other.shape):
                raise ValueError(f"inconsistent shapes {self.shape} and {other.shape}{here()}")
            a, b = self._distinct(), as_traced_sparse(other)._distinct()
            like = ones(a) + ones(b) if sign == own_sign else ones(a) - 2 * ones(b)
            coords = tuple(map(np.concatenate, zip(a.sites, b.sites, strict=True)))
            left = a.entries if own_sign > 0 else -a.entries
            dtype = np.result_type(a.dtype, b.dtype)
            right = b.entries if sign > 0 else -b.entries
            data = pooled([x.astype(dtype) for x in (left, right)])
            result = from_triplets(container_kind(like), like.format, self.shape, coords, data)
            return as_scipy_stores(result, _SUMS[own_sign, sign], self, other)
        if isinstance(other, TracedDense):
            other = other.array
        if not np.shape(other):
            if not isinstance(other, Tracer) and other == 0:
                return self.copy() if own_sign > 0 else -self
            raise NotImplementedError(
                f"adding a nonzero number to a sparse matrix is not supported{here()}; use "
                "A.toarray() + c"
            )
        dense = self.toarray() if own_sign > 0 else -self.toarray()
        other = array_of(other)
        return self._dense(dense + (other if sign > 0 else -other))

    def __add__(self: Any, other: object) -> Any:
        """``self + other``."""
        return self._sum(other, 1)

    __radd__ = __add__

    def __sub__(self: Any, other: object) -> Any:
        """``self - other``."""
        return self._sum(other, -1)

    def __rsub__(self: Any, other: object) -> Any:
        """``other - self``."""
        return self._sum(other, 1, -1)

    def _scaled(self: Any, factor: object) -> TracedSparse:
        result = self._with(self.entries * factor)
        if self.format == "lil":  # which 0 makes empty
            result = as_scipy_stores(result, lambda p, c: p * c[()], self, factor)
        return result

    def multiply(self: Any, other: object) -> TracedSparse:
        """The product element by element, with a number, an array or a sparse matrix."""
        other = settled(other)
        if isinstance(other, TracedDense):
            other = other.array
        if not is_sparse(other):
            other = array_of(other)
            if not shape_of(other):
                return self._scaled(other)
            result = self._times_dense(other, lambda a, b: a * b)
            return as_scipy_stores(result, lambda p, q: p.multiply(q), self, other)
        a, b = self._distinct(), as_traced_sparse(other)._distinct()
        at_a = with_positions(a).multiply(ones(b))
        at_b = ones(a).multiply(with_positions(b))
        result = paired(at_a, at_b, a.entries, b.entries)
        return as_scipy_stores(result, lambda p, q: p.multiply(q), self, other)

    def _times_dense(self: Any, other: Array, combine: Callable[[Any, Any], Any]) -> TracedSparse:
        """The entries combined with those of a dense array at the same places."""
        own = self._distinct()
        pattern = with_positions(own).multiply(np.ones(shape_of(other), np.int64))
        if not sparse_library().issparse(pattern):
            pattern = scipy_class(self.kind, "coo")(pattern)
        moved = read_off(pattern, own.entries)
        shape = (1,) * (len(moved.shape) - len(shape_of(other))) + shape_of(other)
        index = tuple(
            [c if n > 1 else np.zeros_like(c) for c, n in zip(moved.sites, shape, strict=True)]
        )
        return moved._with(combine(moved.entries, other.reshape(shape)[index]))

    def __mul__(self: Any, other: Any) -> Any:
        """The product: with a number; of a matrix, the matrix product; of an array, elementwise."""
        other = settled(other)
        if not is_sparse(other) and not np.shape(other):
            return self._scaled(array_of(other))
        return self.multiply(other) if self.kind == "array" else self._product(other)

    def __rmul__(self: Any, other: Array | complex) -> Any:
        """The product, in the other order."""
        other = settled(other)
        if not is_sparse(other) and not np.shape(other):
            return self._scaled(array_of(other))
        return self.multiply(other) if self.kind == "array" else self._product_of(other)

    def __truediv__(self: Any, other: object) -> Any:
        """The quotient by a number or a dense array."""
        other = settled(other)
        if is_sparse(other):
            raise refused("the quotient by a sparse matrix", "divide by .toarray()")
        other = array_of(other)
        if not shape_of(other):
            return self._with(self.entries / other)
        result = self._times_dense(other, lambda a, b: a / b)
        return as_scipy_stores(result, lambda p, q: p / q, self, other)

    def __rtruediv__(self: Any, other: object) -> Any:
        """Refused, as by SciPy."""
        return NotImplemented

    def power(self: Any, n: object, dtype: DTypeLike | None = None) -> Any:
        """Powers of the entries."""
        if not isinstance(n, (int, float, np.number)) or n <= 0:
            raise NotImplementedError(f"the exponent must be a positive number{here()}")
        own = self if dtype is None else self.astype(dtype)
        own = own._without_zeros() if n < 1 else own
        return own._mapped(lambda ones: ones.power(n), lambda entries: entries**n)

    def __pow__(self: Any, n: object) -> Any:
        """Powers: of a matrix, matrix powers; of an array, those of the entries."""
        if self.kind == "array":
            return self.power(n)
        if not isinstance(n, (int, np.integer)) or n < 0:
            raise refused(f"the power {n!r}", "matrix powers are natural numbers")
        if n == 0:
            raise refused("the power 0", "it is the identity: eye(n)")
        result = self
        for _ in range(int(n) - 1):
            result = result @ self
        return result

    # matrix products ------------------------------------------------------------------------------

    def compressed(self: Any) -> SparseArray:
        """The matrix of ``functrans.scipy.sparse`` of the same entries, by rows or columns."""
        layout = self.format if self.format in ("csr", "csc") else "csr"
        own, axis = self.asformat(layout), 0 if layout == "csr" else 1
        entries, places = own.entries, own.sites
        major = places[axis]
        if np.any(major[1:] < major[:-1]):  # places that SciPy does not store are last
            order = np.argsort(major, kind="stable")
            entries, places = entries[order], tuple([c[order] for c in places])
        counts = np.bincount(major, minlength=own.shape[axis])
        pointers = np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)
        return compressed((entries, places[1 - axis], pointers), own.shape, layout)

    def _product(self: Any, other: Any) -> Any:
        """``self @ other``."""
        other = settled(other)
        if is_sparse(other):
            if self.ndim == 1 or len(other.shape) == 1:
                raise refused("a product with a sparse vector", "use .toarray() of it")
            return _sparse_product(self, as_traced_sparse(other))
        is_matrix = isinstance(other, TracedDense)
        dense = array_of(other)
        if self.ndim == 1:
            return self.toarray() @ dense
        result = matmul(self.compressed(), dense)
        return TracedDense(result) if is_matrix else result

    def _product_of(self: Any, other: object) -> Any:
        """``other @ self``."""
        other = settled(other)
        if is_sparse(other):
            return as_traced_sparse(other)._product(self)
        is_matrix = isinstance(other, TracedDense)
        dense = array_of(other)
        if self.ndim == 1:
            return dense @ self.toarray()
        result = matmul(dense, self.compressed())
        return TracedDense(result) if is_matrix else result

    def __matmul__(self: Any, other: object) -> Array:
        """The matrix product."""
        if not is_sparse(other) and not np.shape(settled(other)):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._product(other)

    def __rmatmul__(self: Any, other: object) -> Array:
        """The matrix product, in the other order."""
        if not is_sparse(other) and not np.shape(settled(other)):
            raise ValueError("Scalar operands are not allowed, use '*' instead")
        return self._product_of(other)

    def dot(self: Any, other: Array) -> Any:
        """The matrix product, or the product with a number."""
        if not is_sparse(other) and not np.shape(settled(other)):
            return self._scaled(array_of(other))
        return self._product(other)


def paired(at_a: Any, at_b: Any, a: Array, b: Array) -> TracedSparse:
    """Products of the entries that two matrices of positions with the same pattern name."""
    layout = at_a.format
    left, right = (at.tocsr().copy() for at in (at_a, at_b))
    for at in (left, right):
        at.sum_duplicates()
        at.eliminate_zeros()
    entries = a[left.data.astype(np.intp) - 1] * b[right.data.astype(np.intp) - 1]
    left.data = np.arange(1, left.nnz + 1)
    return read_off(left.asformat(layout), entries)


def _sparse_product(a: TracedSparse, b: TracedSparse) -> TracedSparse:
    """The product of two sparse matrices: all products of entries, added up by place."""
    if a.shape[1] != b.shape[0]:
        raise ValueError(f"matmul: shapes {a.shape} and {b.shape} do not fit{here()}")
    left, right = a, b
    a, b = a._distinct(), b._distinct()
    like = ones(a) @ ones(b)
    order = np.argsort(b.sites[0], kind="stable")
    counts = np.bincount(b.sites[0], minlength=b.shape[0])
    starts = np.concatenate([[0], np.cumsum(counts)])
    times = counts[a.sites[1]]
    of_a = np.repeat(np.arange(len(times)), times)
    within = np.arange(len(of_a)) - np.repeat(np.cumsum(times) - times, times)
    of_b = order[starts[a.sites[1][of_a]] + within]
    coords = (a.sites[0][of_a], b.sites[1][of_b])
    data = a.entries[of_a] * b.entries[of_b]
    shape = (a.shape[0], b.shape[1])
    result = from_triplets(container_kind(like), like.format, shape, coords, data)
    return as_scipy_stores(result, operator.matmul, left, right)


_SUMS = {(1, 1): operator.add, (1, -1): operator.sub, (-1, 1): lambda p, q: q - p}
"""SciPy's operations, by the signs of the operands."""


def _elementwise(name: str) -> Callable[..., Any]:
    def apply(self: TracedSparse) -> Any:
        function = getattr(np, name)
        own = self._without_zeros() if name == "sqrt" else self  # whose slope is infinite there
        return own._mapped(operator.methodcaller(name), function)

    apply.__doc__ = f"``np.{name}`` of the entries."
    return apply


def _refusing(name: str) -> Callable[..., Any]:
    def refuse(self: Any, other: object) -> Any:
        raise refused(f"{name}", "compare the entries: A.tocoo().data, or A.toarray()")

    refuse.__doc__ = "Refused."
    return refuse


_ELEMENTWISE = (
    "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "rint", "sign",
    "expm1", "log1p", "deg2rad", "rad2deg", "floor", "ceil", "trunc", "sqrt",
)  # fmt: skip
_COMPARISONS = ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__")

for _name in _ELEMENTWISE:
    setattr(TracedSparse, _name, _elementwise(_name))
for _name in _COMPARISONS:
    setattr(TracedSparse, _name, _refusing(_name))
for _name, _method in vars(_Operators).items():
    if callable(_method):
        setattr(TracedSparse, _name, _method)
