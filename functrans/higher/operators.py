"""Derivatives as linear operators: ``jacobian_operator`` and ``hessian_operator``.

Here: a function recorded once, through which batches of tangents and cotangents go as often as
wanted, and the ``scipy.sparse.linalg.LinearOperator`` made of it. Not here: Gauss-Newton products
(``higher.gauss_newton``), dense matrices (``transforms.jacobian``).

SciPy is imported when an operator is made.

Layer: ``higher``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.core.arguments import name_of, part_of
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.passes.nodes import ordered_nodes
from functrans.passes.pullback import pull_back
from functrans.passes.pushforward import push_forward
from functrans.primitives.structural import broadcast_to, cast
from functrans.transforms.reverse import grad, record_primals


class Linearization:
    """A function recorded at a point.

    Attributes:
      leaves: leaves of the point.
      treedef: their structure.
      outs: leaves of the result.
      out_treedef: their structure.
    """

    def __init__(self, who: str, fun: Callable[..., Any], point: Any) -> None:
        recorded, self.leaves, self.treedef = record_primals(who, fun, (point,), False)
        self.outs, self.out_treedef = recorded.outs, recorded.treedef
        self.label = f"{who} of {name_of(fun)}"
        self._inputs, self._out_nodes = recorded.inputs, recorded.out_nodes
        self._nodes = ordered_nodes([node for node in self._out_nodes if node is not None])

    def push(self, tangents: Sequence[Any], size: int | None = None) -> list[Any]:
        """Tangents of the results, one per leaf; ``size`` is a leading batch axis."""
        pairs = list(zip(self._inputs, tangents, strict=True))
        found = push_forward(self._nodes, pairs, self._out_nodes, size=size)
        return [_whole(t, out, size) for t, out in zip(found, self.outs, strict=True)]

    def pull(self, cts: Sequence[Any], size: int | None = None) -> list[Any]:
        """Cotangents of the point, one per leaf; ``size`` is a leading batch axis."""
        pairs = [
            (node, ct) for node, ct in zip(self._out_nodes, cts, strict=True) if node is not None
        ]
        found = pull_back(pairs, self._inputs, size=size) if pairs else [None] * len(self.leaves)
        return [_whole(ct, leaf, size) for ct, leaf in zip(found, self.leaves, strict=True)]


def _whole(value: object, like: object, size: int | None) -> Array:
    """A tangent with its full shape and dtype; zeros for ``None``."""
    shape = shape_of(like) if size is None else (size, *shape_of(like))
    if value is None:
        return np.zeros(shape, dtype_of(like))
    return broadcast_to(cast(value, dtype_of(like)), shape)


# vectors ----------------------------------------------------------------------------------------


class Layout:
    """How a vector holds the leaves of a pytree, one after the other."""

    def __init__(self, leaves: Sequence[Any]) -> None:
        self.shapes = [shape_of(leaf) for leaf in leaves]
        self.dtypes = [dtype_of(leaf) for leaf in leaves]
        self.sizes = [math.prod(shape) for shape in self.shapes]
        self.size = sum(self.sizes)
        self.dtype = np.result_type(*self.dtypes) if leaves else np.dtype(np.float64)

    def split(self, columns: Any) -> list[Any]:
        """Leaves ``[k, *shape]`` from columns ``[size, k]``."""
        parts = np.split(columns.T, np.cumsum(self.sizes[:-1]), axis=1)
        k = columns.shape[1]
        return [
            np.ascontiguousarray(part, dtype).reshape((k, *shape))
            for part, shape, dtype in zip(parts, self.shapes, self.dtypes, strict=True)
        ]

    def join(self, leaves: Sequence[Any], k: int) -> Any:
        """Columns ``[size, k]`` from leaves ``[k, *shape]``."""
        if not leaves:
            return np.zeros((0, k), self.dtype)
        rows = [np.asarray(leaf).reshape(k, n) for leaf, n in zip(leaves, self.sizes, strict=True)]
        return np.concatenate(rows, axis=1, dtype=self.dtype).T


def linear_operator(
    apply: Callable[[list[Any], int], list[Any]],
    adjoint: Callable[[list[Any], int], list[Any]],
    columns: Layout,
    rows: Layout,
) -> Any:
    """A ``LinearOperator`` of batched maps between leaves.

    Args:
      apply: ``(leaves, k)`` to leaves, all with a leading axis of extent ``k``.
      adjoint: the transpose of it.
      columns: layout of what ``apply`` takes.
      rows: layout of what it gives.
    """
    from scipy.sparse.linalg import LinearOperator

    def product(function: Any, given: Layout, result: Layout) -> Callable[[Any], Any]:
        def times(matrix: Array) -> Any:
            matrix = np.asarray(matrix)
            is_vector = matrix.ndim == 1 or matrix.shape == (given.size,)
            block = matrix.reshape(given.size, -1)
            k = block.shape[1]
            if not k:
                return np.zeros((result.size, 0), result.dtype)
            found = result.join(function(given.split(block), k), k)
            return found[:, 0] if is_vector else found

        return times

    def adjoint_of_complex(function: Any) -> Callable[[Any], Any]:
        def times(matrix: Array) -> Any:
            return np.conj(function(np.conj(matrix)))

        return times

    forward = product(apply, columns, rows)
    backward = product(adjoint, rows, columns)
    dtype = np.result_type(columns.dtype, rows.dtype)
    if dtype.kind == "c":
        backward = adjoint_of_complex(backward)
    return LinearOperator(
        (rows.size, columns.size),
        matvec=forward,
        matmat=forward,
        rmatvec=backward,
        rmatmat=backward,
        dtype=dtype,
    )


def plain_point(label: str, values: Sequence[Any]) -> None:
    """Refuse traced values.

    Raises:
      UnsupportedOperationError: one of them is traced.
    """
    if any(isinstance(value, Tracer) for value in values):
        raise UnsupportedOperationError(
            f"{label}: a LinearOperator works on plain arrays, but the function or its argument "
            f"is traced{here()}; use ft.jvp, ft.vjp or ft.hvp inside of transforms"
        )


@boundary
def jacobian_operator(fun: Callable[..., Any], x: Any) -> Any:
    """The Jacobian of a function at a point, as a linear operator.

    The function runs once. Products go through the recorded operations, several columns at once.

    Args:
      fun: function of one pytree of floating arrays; close over the rest.
      x: the point. Its leaves, one after the other, are the elements of the vectors.

    Returns:
      ``scipy.sparse.linalg.LinearOperator`` of shape ``(elements of the result, elements of x)``,
      with products with vectors and matrices from both sides.

    Raises:
      NonDifferentiableError: a leaf of ``x`` is not floating.
      UnsupportedOperationError: inside of another transform.

    Example:
      >>> import numpy as np
      >>> operator = jacobian_operator(np.sin, np.zeros(3))
      >>> operator @ np.ones(3)
      array([1., 1., 1.])
    """
    fun = traced_form("jacobian_operator", fun)
    record = Linearization("jacobian_operator", fun, x)
    plain_point(record.label, [*record.leaves, *record.outs])
    return linear_operator(record.push, record.pull, Layout(record.leaves), Layout(record.outs))


@boundary
def hessian_operator(fun: Callable[..., Any], x: Any) -> Any:
    """The Hessian of a scalar function at a point, as a linear operator.

    Function and gradient run once. A product is one forward pass through the recorded gradient, for
    all columns at once.

    Args:
      fun: scalar function of one pytree of floating arrays; close over the rest.
      x: the point. Its leaves, one after the other, are the elements of the vectors.

    Returns:
      Symmetric ``scipy.sparse.linalg.LinearOperator``, for ``scipy.sparse.linalg.cg``, ``eigsh``
      and the like.

    Raises:
      NonDifferentiableError, ShapeError: as :func:`ft.grad`.
      UnsupportedOperationError: inside of another transform.

    Example:
      >>> import numpy as np
      >>> operator = hessian_operator(lambda x: np.sum(x**3), np.array([1.0, 2.0]))
      >>> operator @ np.array([1.0, 1.0])
      array([ 6., 12.])
    """
    fun = traced_form("hessian_operator", fun)
    record = Linearization("hessian_operator", part_of(fun, grad(fun)), x)
    plain_point(record.label, [*record.leaves, *record.outs])
    layout = Layout(record.leaves)
    return linear_operator(record.push, record.push, layout, layout)
