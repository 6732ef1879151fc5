"""Derivatives of derivatives of piecewise linear functions: zeros that are part of the graph.

Here: ``dependent``, which makes the recorded gradient of such a function depend on its operands, as
torch has it: the gradient of ``relu`` requires a gradient, which is 0. Not here: the gradients
(``autograd.nodes``), when they are recorded (``autograd.engine``).

To functrans the gradient of ``relu`` is a constant factor times the gradient of the result, so that
nothing leads from it to the operand. A program that takes its derivative all the same (a penalty on
gradients, a product with the Hessian) expects zeros.

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.autograd.nodes import COMPOSITE, GraphNode
from functrans.autograd.residuals import FREED
from functrans.autograd.tensors import Tensor
from functrans.passes.cotangents import Masked

PIECEWISE_LINEAR = frozenset(
    {
        "Abs", "AdaptiveMaxPool2D", "AdaptiveMaxPool3D", "Cdist", "Copysign", "Dist",
        "Hardshrink", "Hardsigmoid", "Hardtanh", "L1Loss", "LeakyRelu",
        "LinalgVectorNorm", "MaxPool2DWithIndices", "MaxPool3DWithIndices", "MultiMarginLoss",
        "MultilabelMarginLoss", "NllLoss", "Norm", "Pow", "PreluKernel", "Relu",
        "RreluWithNoise", "Softshrink", "Threshold", "TripletMarginLoss",
    }
)  # fmt: skip
"""Labels of nodes whose gradient depends on the operands in torch; some are curved elsewhere."""


class FlatNode(GraphNode):
    """A gradient as a function of the operands: of derivative 0 in all but the gradient itself."""

    def free(self) -> None:
        """Refuse another pass, as nodes do that keep what they need."""
        self.is_freed = True

    def pull(self, ct: Any, records: bool, size: int | None = None) -> Sequence[Any]:
        """The cotangent for the gradient; zeros for the operands, also behind an infinite slope."""
        if self.is_freed:
            raise RuntimeError(FREED)
        zeros = [None if p is None else Masked(p.dtype.type(0), np.False_) for p in self.parents]
        return [ct, *zeros[1:]]


def dependent(node: Any, gradients: Sequence[Any]) -> Sequence[Any]:
    """The recorded gradients of a node, those of real operands as functions of all of them.

    Args:
      node: the node that was pulled back.
      gradients: one or ``None`` per operand, tensors.
    """
    label = node.name().partition("Backward")[0]
    operands = tuple([p for p in node.parents if p is not None and p.dtype.kind != "c"])
    results: list[Any] = []
    for gradient in gradients:
        if gradient is None or gradient.dtype.kind == "c":
            results.append(gradient)
            continue
        parents = (gradient._node, *operands)
        flat = FlatNode(COMPOSITE, {}, None, parents, gradient.shape, gradient.dtype, node.source)
        flat.label = f"{label}BackwardBackward0"
        result = Tensor.of(gradient._value, flat, gradient.__dict__.get("_trace"))
        result._storage = gradient._stored()
        results.append(result)
    return results
