"""Gauss-Newton products: ``ggn``.

Here: products with the generalized Gauss-Newton matrix of a model and a loss, its dense form, its
diagonal, and the linear operator. Not here: Hessians (``transforms.jacobian``).

Layer: ``higher``. Reference: Schraudolph, Fast Curvature Matrix-Vector Products for
Second-Order Gradient Descent, Neural Computation 14 (2002); Martens, New Insights and Perspectives
on the Natural Gradient Method, JMLR 21 (2020).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import check_same_structure, leaf_description, name_of, part_of
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import aval_of, dtype_of, shape_of
from functrans.core.ownership import own_arrays
from functrans.core.values import Array
from functrans.higher.operators import Layout, Linearization, linear_operator, plain_point
from functrans.transforms.chunks import check_chunking
from functrans.transforms.dense import DenseJacobian
from functrans.transforms.linear_functions import fit_tangent
from functrans.transforms.reverse import grad


class GaussNewton:
    """The generalized Gauss-Newton matrix of a model and a loss; made by :func:`ggn`."""

    def __init__(self, model: Callable[..., Any], loss: Callable[..., Any]) -> None:
        self._model = model
        self._loss = loss
        self.__name__ = f"ggn of {name_of(model)} and {name_of(loss)}"

    def __repr__(self) -> str:
        """``<ggn of model and loss>``."""
        return f"<{self.__name__}>"

    def __call__(self, params: object, v: Any) -> Any:
        """The product of the matrix with a vector.

        Args:
          params: where; a pytree of floating arrays.
          v: the vector, shaped like ``params``.

        Returns:
          The product, shaped like ``params``.

        Raises:
          NonDifferentiableError: a leaf of ``params`` is not floating.
          TreeMismatchError, ShapeError: ``v`` does not fit; or the loss gives no scalar.
        """
        model, curvature = self._record(params)
        label = self.__name__
        given, treedef = tree.flatten((v,))
        check_same_structure(label, model.treedef, treedef, "v", "params")
        vectors = [
            fit_tangent(leaf, aval_of(own), functools.partial(leaf_description, label, v, i, "v"))
            for i, (leaf, own) in enumerate(zip(given, model.leaves, strict=True))
        ]
        products = _product(model, curvature, vectors, None)
        (result,) = tree.unflatten(model.treedef, own_arrays(products, [*model.leaves, *given]))
        return result

    def dense(
        self,
        params: object,
        *,
        chunk_size: int | str = "auto",
        memory_bytes: int | None = None,
        progress: bool | Callable[[int, int], Any] = False,
    ) -> Any:
        """The matrix itself, in chunks of columns.

        Args:
          params: where.
          chunk_size: how many columns are evaluated at once; ``"auto"``: as many as fit.
          memory_bytes: the budget; see :func:`ft.jacrev`.
          progress: ``True`` for a bar, or a function of ``(done, total)`` columns.

        Returns:
          Blocks of shape ``leaf.shape + leaf.shape``, nested as :func:`ft.hessian` has them.

        Raises:
          MemoryError: the matrix, or a column, exceeds the budget.
        """
        call = self._columns("ggn.dense", params, chunk_size, memory_bytes, progress)
        call.check_size()
        return call.assemble(call.blocks())

    def diagonal(
        self,
        params: object,
        *,
        chunk_size: int | str = "auto",
        memory_bytes: int | None = None,
        progress: bool | Callable[[int, int], Any] = False,
    ) -> Any:
        """The diagonal of the matrix, without the matrix in memory.

        Arguments and errors as :meth:`dense`.

        Returns:
          A pytree shaped like ``params``.
        """
        call = self._columns("ggn.diagonal", params, chunk_size, memory_bytes, progress)
        return call.diagonal()

    def operator(self, params: object) -> Any:
        """The matrix as ``scipy.sparse.linalg.LinearOperator``.

        The model runs once; the leaves of ``params``, one after the other, are the elements of the
        vectors.

        Raises:
          UnsupportedOperationError: inside of another transform.
        """
        model, curvature = self._record(params)
        plain_point(self.__name__, [*model.leaves, *curvature.outs])
        layout = Layout(model.leaves)
        times = functools.partial(_product, model, curvature)
        return linear_operator(times, times, layout, layout)

    def _record(self, params: object) -> tuple[Linearization, Linearization]:
        """The model at the parameters, and the gradient of the loss at its result."""
        model = Linearization("ggn", self._model, params)
        outs = tree.unflatten(model.out_treedef, model.outs)
        return model, Linearization("ggn", part_of(self._loss, grad(self._loss)), outs)

    def _columns(
        self, who: str, params: object, chunk_size: object, memory_bytes: object, progress: object
    ) -> DenseJacobian:
        """The product as a function of the vector, which is linear, recorded at zero."""
        chunking = check_chunking(who, chunk_size, memory_bytes, progress)
        model, curvature = self._record(params)

        def times(v: Array) -> Any:
            leaves, _ = tree.flatten((v,))
            (result,) = tree.unflatten(model.treedef, _product(model, curvature, leaves, None))
            return result

        times.__name__ = self.__name__
        zeros = [np.zeros(shape_of(leaf), dtype_of(leaf)) for leaf in model.leaves]
        start = tree.unflatten(model.treedef, zeros)
        return DenseJacobian(
            who, times, 0, start, {},
            has_aux=False, holomorphic=False, allow_int=None, chunking=chunking,
        )  # fmt: skip


def _product(
    model: Linearization, curvature: Linearization, vectors: list[Any], size: int | None
) -> list[Any]:
    """Forward through the model, through the gradient of the loss, and back through the model."""
    return model.pull(curvature.push(model.push(vectors, size), size), size)


@boundary
def ggn(model: Callable[..., Any], loss: Callable[..., Any]) -> GaussNewton:
    """The generalized Gauss-Newton matrix ``J^T H J`` of a model and a loss.

    ``J`` is the Jacobian of the model by its parameters, ``H`` the Hessian of the loss by the
    model's result. The matrix is positive semidefinite where the loss is convex. It is the Hessian
    of ``loss(model(params))`` without the second derivatives of the model. For a loss that is a
    negative log-likelihood in natural parameters (squares, cross entropy of logits, Poisson with a
    log rate) it is the Fisher matrix.

    Args:
      model: function of one pytree of floating arrays, the parameters; close over data. It may
        return a pytree of arrays.
      loss: scalar function of the model's result; close over targets.

    Returns:
      Function ``(params, v) -> product``, differentiable and usable under ``jit`` and ``vmap``.
      It has methods ``dense(params)``, ``diagonal(params)`` and ``operator(params)``.

    Raises:
      TypeError: an argument is no function.

    Example:
      >>> import numpy as np
      >>> data = np.array([[1.0, 2.0], [3.0, 4.0]])
      >>> product = ggn(lambda w: data @ w, lambda out: 0.5 * np.sum(out**2))
      >>> product(np.zeros(2), np.array([1.0, 0.0]))
      array([10., 14.])
      >>> product.dense(np.zeros(2))
      array([[10., 14.],
             [14., 20.]])

    Reference: Schraudolph, Neural Computation 14 (2002).
    """
    model = traced_form("ggn", model)
    loss = traced_form("ggn", loss)
    return GaussNewton(model, loss)
