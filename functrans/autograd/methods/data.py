"""The attribute ``data`` of tensors: their memory outside of all graphs, and other memory for it.

Layer: ``autograd``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.autograd.forward_ad import unpack_dual
from functrans.autograd.modes import modes
from functrans.autograd.nodes import leaf_like
from functrans.autograd.recording import enter_session, node_of, with_only, with_own_only
from functrans.autograd.tensors import TWIN, Tensor
from functrans.autograd.views import detached, in_place_of
from functrans.core.avals import is_differentiable_dtype
from functrans.core.dispatch import Tracer
from functrans.passes.pushing import PushingTracer


def _get_data(self: Tensor) -> Tensor:
    """A tensor on the same memory, outside of the graph; its writes are not noticed.

    Of an argument in which the innermost transform does not differentiate, that is the argument:
    of the graph of that transform it is no part, and it stays in those around it.
    """
    if modes.level and id(self) in modes.derivative[1]:
        return self[...]
    return detached(self, with_own_only)


def _delete_data(self: Tensor) -> None:
    raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    given: Any = value._trace
    if modes.level and any(isinstance(x._value, Tracer) for x in (self, value)):
        raise RuntimeError(
            "mutating directly with `.data` inside functorch transform is not allowed. Use "
            "x.detach().copy_(other), or a new tensor."
        )
    if given.keeps_account:  # its numbers alone, without the tangent
        value = unpack_dual(value).primal.detach()
    node = node_of(self)
    if self._view is not None and isinstance(self._value, Tracer):
        raise RuntimeError(
            "data set to a view of a traced tensor, which would still write to its base; make a "
            "new tensor (x = other.detach())"
        )
    if node is not None and not is_differentiable_dtype(value.dtype):
        raise RuntimeError(
            "data set to a tensor that requires gradients must be floating point or complex dtype"
        )
    if node is not None and (value.shape, value.dtype) != (node.shape, node.dtype):
        if node.primitive is not None:
            raise RuntimeError(
                f"data of shape {list(value.shape)} and dtype {value.dtype} set to a tensor that "
                f"was computed with shape {list(node.shape)} and dtype {node.dtype}; its gradient "
                "would not fit. Use detach() first, or set the data of a leaf."
            )
        node = leaf_like(node, value)  # type: ignore[arg-type]  # computed by nothing: a leaf
    enter_session(self, value)
    trace: Any = self._trace
    if trace.keeps_account:
        _set_primal(self, value)
        return
    _keep_duals(self)
    if self._view is not None and self._view.is_copied:  # else made anew of the base's memory
        self._stored().forget_view(self)
        self._view, self._storage = None, None
    memory, how = value._memory(), value._view
    self._node = node
    self._value = memory.copy("K") if how is not None and how.is_copied else memory
    if isinstance(memory, Tracer):
        self._stored().bump("data", None)


def _keep_duals(x: Tensor) -> None:
    """Leave dual tensors that were made of a tensor as they are, whose data will be others.

    Raises:
      RuntimeError: it is their tangent.
    """
    storage = x._stored()
    duals = [dual for dual in [reference() for reference in storage.duals] if dual is not None]
    if any(dual._dual is not None and dual._dual[2] is x for dual in duals):
        raise RuntimeError(
            "data set to the tangent of a dual tensor, which would keep the old ones; write to it "
            "(tangent.copy_(other)), or make another dual tensor"
        )
    before = None
    for twin in [reference() for reference in storage.views]:
        if twin is not None and twin._view.base is x and twin._view.creator == TWIN:
            before = twin._view.base = before or in_place_of(x)


def _set_primal(dual: Tensor, value: Tensor) -> None:
    """Give a tensor of a dual level other numbers, which no derivative is taken through.

    Its tangent and its node stay; what shared its memory keeps the old numbers.

    Raises:
      RuntimeError: the shape or dtype is not that of its tangent.
    """
    old, before = dual._value, in_place_of(dual)
    if (value.shape, value.dtype) != (dual.shape, dual.dtype):
        raise RuntimeError(
            f"data of shape {list(value.shape)} and dtype {value.dtype} set to a dual tensor of "
            f"shape {list(dual.shape)} and dtype {dual.dtype}; its tangent would not fit"
        )
    for view in [reference() for reference in dual._stored().views]:
        if view is not None and view._view.base is dual:
            view._view.base = before
    new = with_own_only(value._memory(), None)
    primal = new._value if isinstance(new, PushingTracer) else new
    if isinstance(old, PushingTracer):
        if isinstance(old._value, Tensor) and isinstance(primal, np.ndarray):
            primal = Tensor.of(primal, node_of(old._value))
        elif isinstance(old._value, Tensor):
            primal = with_only(primal, old._value)
        dual._value = PushingTracer(old._trace, primal, old._tangent)
    else:
        dual._value = primal
    dual._dual, dual._place, dual._storage = None, None, None


DATA = property(_get_data, _set_data, _delete_data)
