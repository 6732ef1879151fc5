"""The names by which users know nodes, results and dtypes: torch's.

Here: ``label_of`` (a primitive's node), ``torch_type`` (a dtype), ``edge_of`` (the node of a result
among several). Not here: nodes (``autograd.nodes``).

Layer: ``autograd``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.passes.nodes import OUTPUT


def edge_of(node: Any) -> tuple[Any, int]:
    """The node that users see, and which of its results is meant."""
    if node is not None and node.primitive is OUTPUT:
        return node.parents[0], node.params["index"]
    return node, 0


LABELS = {
    "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "negative": "Neg",
    "power": "Pow", "reduce_sum": "Sum", "transpose": "Permute", "dot_general": "Mm",
    "slice": "Slice", "slice_update": "CopySlices", "broadcast_to": "Expand",
    "convert_element_type": "ToCopy", "absolute": "Abs", "where": "Where",
}  # fmt: skip


def label_of(primitive: Any) -> str:
    """Torch's name of a primitive's node."""
    name = primitive.name.removeprefix("torch_")
    return LABELS.get(name) or "".join(part.capitalize() for part in name.split("_"))


_TORCH_TYPES = {
    "float64": "Double", "float32": "Float", "float16": "Half", "bfloat16": "BFloat16",
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip


def torch_type(dtype: np.dtype) -> str:
    """Torch's name of a kind of tensor: ``torch.DoubleTensor``."""
    return f"torch.{_TORCH_TYPES.get(dtype.name, dtype.name)}Tensor"


SAVES_NOTHING = frozenset(
    f"{name}Backward{number}"
    for number, names in {
        "0": """
            Add AffineGridGenerator AsStrided BlockDiag Cat Ceil Col2Im ConstantPadNd Cumsum Deg2Rad
            DiagEmbed DiagonalScatter FftC2R Flip Floor Frac Gradient Im2Col Lerp Mean
            NativeChannelShuffle PixelShuffle PixelUnshuffle Rad2Deg Repeat Roll Rot90 Round
            SelectScatter Sign SliceScatter Split SplitWithSizes Stack Sub Trace Tril Triu Trunc
            Unbind Unfold UpsampleBicubic2D UpsampleBilinear2D UpsampleLinear1D UpsampleNearest1D
            UpsampleNearest2D UpsampleNearest3D UpsampleTrilinear3D View
        """,
        "0_copy": "Diagonal",
        "1": "Mean Mul Round Rsub Sum",
    }.items()
    for name in names.split()
)
SAVES_NOTHING |= {name.removesuffix("Backward0") for name in SAVES_NOTHING}
"""Nodes that save nothing in torch, and so take a second backward pass: names and labels."""

SAVES_OPERANDS = frozenset(
    {
        "AbsBackward0", "DivBackward0", "ErfinvBackward0", "MulBackward0",
        "NativeGroupNormBackward0", "NativeLayerNormBackward0", "SincBackward0",
    }
)  # fmt: skip
"""Nodes that may save their result here, and operands in torch, where the result is written to."""
