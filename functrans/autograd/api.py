"""``backward`` and ``grad``: the two ways to ask for gradients.

Here: their arguments and the errors that they raise before anything is changed. Not here: the pass
(``autograd.engine``).

Messages are those of PyTorch where code matches on them.

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans.autograd.engine import run_backward
from functrans.autograd.hooks import made_by, retain
from functrans.autograd.labels import edge_of
from functrans.autograd.modes import torch_defaults
from functrans.autograd.nodes import GraphNode, LeafNode
from functrans.autograd.recording import PERMANENT, mark_origin, namespaces, node_of
from functrans.autograd.tensors import Tensor
from functrans.core.avals import is_differentiable_dtype
from functrans.core.boundary import boundary, noted, warn
from functrans.passes.nodes import OUTPUT
from functrans.primitives.structural import cast


class GradientEdge(NamedTuple):
    """A place in the graph that gradients flow through, in place of the tensor itself.

    Made by :func:`functrans.autograd.graph.get_gradient_edge`, or of a pair of ``next_functions``.

    Attributes:
      node: the node that computed the tensor.
      output_nr: which of its results.
      ownership_token: an object that is kept as long as the edge.
    """

    node: Any
    output_nr: int
    ownership_token: Any = None


@boundary
def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place of a tensor in the graph.

    Args:
      tensor: it must require a gradient.

    Raises:
      RuntimeError: it does not.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor(2.0, requires_grad=True)
      >>> get_gradient_edge(x * 3).output_nr
      0
    """
    node = node_of(tensor)
    if node is None:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require "
            "gradients"
        )
    return GradientEdge(made_by(tensor, node), edge_of(node)[1])


def _many(given: Any) -> tuple[Any, ...]:
    if isinstance(given, (Tensor, GradientEdge)):
        return (given,)
    return tuple(given)


def _place(x: Any) -> Any:
    """The node of a tensor or an edge."""
    if not isinstance(x, GradientEdge):
        return node_of(x) if isinstance(x, Tensor) else None
    node, index, _ = x
    if node.below is not None and not node.below[1].is_open:
        node = node.below[0]
    n = 1 if node.shape is not None else len(node.dtype)
    if not 0 <= index < n:
        raise IndexError(f"{node.name()} has {n} results; there is none of number {index}")
    if node.shape is not None:
        return node
    aval = node.dtype[index]
    return GraphNode(OUTPUT, {"index": index}, None, (node,), aval.shape, aval.dtype, None)


def _checked_inputs(inputs: object, name: str) -> tuple[Any, ...]:
    """The tensors and edges that gradients are wanted of."""
    given = _many(inputs)
    if not given:
        raise RuntimeError(f"`inputs` argument to `{name}()` cannot be empty.")
    for x in given:
        if not isinstance(x, (Tensor, GradientEdge)):
            raise RuntimeError(
                f"all inputs have to be Tensors or GradientEdges, but got {type(x).__name__}"
            )
    return given


def _trace_of(*groups: Sequence[Any]) -> Any:
    """The trace of the gradients: an inner one if anything belongs to one."""
    traces = (x._trace for group in groups for x in group if isinstance(x, Tensor))
    return next((trace for trace in traces if trace is not PERMANENT), PERMANENT)


def _roots(
    outputs: Sequence[Any], gradients: Sequence[Any], is_batched: bool, trace: Any
) -> list[tuple[Any, Tensor]]:
    """Node and gradient of each output."""
    roots = []
    for i, (output, gradient) in enumerate(zip(outputs, gradients, strict=True)):
        place = _place(output)
        if place is None:
            if isinstance(output, Tensor):
                missing = "does not require grad and does not have a grad_fn"
                raise noted(
                    RuntimeError(f"element {i} of tensors {missing}"),
                    "Make the tensors that it is computed from with requires_grad=True, and do not "
                    "detach them or compute under no_grad().",
                )
            raise RuntimeError(f"element {i} of outputs is no tensor")
        shape, dtype = place.shape, place.dtype
        if gradient is None:
            if shape and int(np.prod(shape)) != 1:
                raise noted(
                    RuntimeError("grad can be implicitly created only for scalar outputs"),
                    "Sum it, y.sum().backward(), or give the gradient: y.backward(gradient)",
                )
            if dtype.kind == "c":
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {dtype}"
                )
            gradient = trace.tensor(np.ones(shape, dtype))
            mark_origin(gradient, (output,))
        else:
            gradient = _checked(gradient, i, shape, dtype, is_batched, trace)
        roots.append((place, gradient))
    return roots


def _checked(
    gradient: Tensor, i: int, shape: Sequence[Any], dtype: np.dtype, is_batched: bool, trace: Any
) -> Tensor:
    """A gradient that fits its output."""
    if not isinstance(gradient, Tensor):
        raise TypeError(
            f"gradients can be either Tensors or None, but got {type(gradient).__name__}"
        )
    given = gradient.shape[1:] if is_batched else gradient.shape
    if given != shape:
        if is_batched:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output "
                "as the batch dimension. The sizes of the remaining dimensions are expected to "
                "match the shape of corresponding output, but a mismatch was detected: "
                f"grad_output[{i}] has a shape of {_size(gradient.shape)} and output[{i}] has a "
                f"shape of {_size(shape)}. If you only want some tensors in `grad_output` to be "
                "considered batched, consider using vmap."
            )
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {_size(gradient.shape)} and "
            f"output[{i}] has a shape of {_size(shape)}."
        )
    if (gradient.dtype.kind == "c") != (dtype.kind == "c"):
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. "
            f"Mismatch in dtype: grad_output[{i}] has a dtype of {gradient.dtype} and output[{i}] "
            f"has a dtype of {dtype}."
        )
    if gradient.dtype != dtype:
        gradient = cast(gradient, dtype)
    if gradient._trace is trace:
        return gradient
    fitting: Tensor = trace.lift(gradient if trace.keeps_account else gradient._value)
    return fitting


def _size(shape: Sequence[int]) -> str:
    return f"torch.Size([{', '.join(map(str, shape))}])"


def _gradients(given: Any, n: int) -> tuple[Any, ...]:
    """One gradient or ``None`` per output."""
    if given is None:
        return (None,) * n
    gradients = (given,) if isinstance(given, Tensor) else tuple(given)
    if len(gradients) != n:
        raise RuntimeError(f"got {n} tensors and {len(gradients)} gradients")
    return gradients


def _batch_size(gradients: Sequence[Any]) -> int:
    """The extent of the leading axis of gradients, which were checked otherwise."""
    if any(gradient is None for gradient in gradients):
        raise ValueError(
            "If `is_grads_batched=True`, every output needs a gradient with a leading batch axis; "
            "got None in grad_outputs"
        )
    sizes = [gradient.shape[0] for gradient in gradients]
    if len(set(sizes)) != 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return int(sizes[0])


_told: set[str] = set()


def _warn_once(text: str) -> None:
    if text not in _told or torch_defaults.warns_always:
        _told.add(text)
        warn(text)


def backward(
    tensors: Any,
    grad_tensors: object = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: object = None,
) -> None:
    """Add the gradients of leaves to their ``.grad``.

    Args:
      tensors: a tensor, or several; also ``GradientEdge``.
      grad_tensors: gradients of the tensors, ``None`` for a scalar's 1.
      retain_graph: whether the graph can be used again; ``create_graph`` if not given.
      create_graph: whether the gradients are differentiable.
      inputs: tensors to which gradients are added, in place of all leaves.

    Raises:
      RuntimeError: a tensor requires no gradient, a gradient is missing or does not fit, the graph
        was freed, a saved tensor was written to.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0, 2.0], requires_grad=True)
      >>> backward((x * x).sum())
      >>> x.grad
      tensor([2., 4.])
    """
    if create_graph:
        _warn_once(
            "Using backward() with create_graph=True will create a reference cycle between the "
            "parameter and its gradient which can cause a memory leak: use autograd.grad, or set "
            ".grad of the parameters to None afterwards."
        )
    if inputs is not None:
        inputs = _checked_inputs(inputs, "backward")
    outputs = _many(tensors)
    gradients = _gradients(grad_tensors, len(outputs))
    trace = _trace_of(outputs, inputs or (), gradients)
    roots = _roots(outputs, gradients, is_batched=False, trace=trace)
    keeps = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        run_backward(roots, None, accumulate=True, keeps=keeps, records=create_graph, trace=trace)
        return
    places = []
    for x in inputs:
        place = _place(x)
        if place is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        places.append(place)
    for x, place in zip(inputs, places, strict=True):
        if isinstance(x, Tensor) and place.primitive is not None:
            retain(place, x)
            x._retains = True
    run_backward(roots, places, accumulate=True, keeps=keeps, records=create_graph, trace=trace)


def grad(
    outputs: object,
    inputs: object,
    grad_outputs: object = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of tensors in others.

    Args:
      outputs: a tensor, or several; also ``GradientEdge``.
      inputs: tensors (or edges) whose gradients are returned.
      grad_outputs: gradients of the outputs, ``None`` for a scalar's 1.
      retain_graph: whether the graph can be used again; ``create_graph`` if not given.
      create_graph: whether the gradients are differentiable.
      only_inputs: ignored; deprecated in torch.
      allow_unused: whether inputs that no output depends on give ``None``; an error otherwise.
      is_grads_batched: gradients have a leading axis, and so have the results.
      materialize_grads: zeros in place of ``None``.

    Returns:
      A gradient per input.

    Raises:
      RuntimeError: as ``backward``; an input was not used.
      ValueError: ``materialize_grads`` with ``allow_unused=False``; a batch of gradients that is
        incomplete or of different extents.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor(3.0, requires_grad=True)
      >>> (slope,) = grad(x**2, x, create_graph=True)
      >>> grad(slope, x)
      (tensor(2.),)
    """
    if not only_inputs:
        warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use "
            "torch.autograd.backward.",
            FutureWarning,
        )
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, "
            "but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    outputs, inputs = _many(outputs), _checked_inputs(inputs, "grad")
    gradients = _gradients(grad_outputs, len(outputs))
    trace = _trace_of(outputs, inputs, gradients)
    places = []
    for x in inputs:
        if materialize_grads and not isinstance(x, Tensor):
            raise RuntimeError(
                "materialize_grads cannot be used when the given input is a GradientEdge"
            )
        place = _place(x)
        if place is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        places.append(place)
    roots = _roots(outputs, gradients, is_grads_batched, trace)
    size = _batch_size(gradients) if is_grads_batched else None
    keeps = create_graph if retain_graph is None else retain_graph
    found = run_backward(
        roots, places, accumulate=False, keeps=keeps, records=create_graph, size=size, trace=trace
    )
    if not allow_unused:
        for i, gradient in enumerate(found):
            if gradient is None:
                raise RuntimeError(
                    f"The differentiated Tensor at index {i} appears to not have been used in the "
                    "graph. Set allow_unused=True if this is the desired behavior."
                )
    if materialize_grads:
        found = [
            _zeros(place, trace, create_graph) if g is None else g
            for g, place in zip(found, places, strict=True)
        ]
    if namespaces.has_torch:
        for x, gradient in zip(inputs, found, strict=True):
            if gradient is not None:
                mark_origin(gradient, (x,))
    return tuple(found)


def _zeros(place: Any, trace: Any, requires_grad: bool) -> Tensor:
    """Zeros for an input that no output depends on."""
    zeros: Tensor = trace.tensor(np.zeros(place.shape, place.dtype))
    if requires_grad:
        zeros._node = LeafNode(zeros._weak(), place.shape, place.dtype)
    return zeros


def check_requires_grad(dtype: np.dtype) -> None:
    """Refuse gradients of integers.

    Raises:
      RuntimeError: the dtype has none.
    """
    if not is_differentiable_dtype(dtype):
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
