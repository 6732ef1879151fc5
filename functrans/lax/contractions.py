"""``ft.lax``: matrix products and convolutions, under JAX's names and keywords.

``precision`` is accepted and changes nothing: products are computed in the operands' common dtype,
or in ``preferred_element_type``.

Layer: ``lax``.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import shape_of
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.numpy import flip
from functrans.numpy.common import as_array
from functrans.primitives import convolution
from functrans.primitives import dot as products
from functrans.primitives.structural import cast
from functrans.primitives.structural import transpose as transposed


class Precision(enum.Enum):
    """How exact JAX multiplies matrices on accelerators; here all are alike."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def _result(x: Any, preferred_element_type: Any) -> Any:
    return x if preferred_element_type is None else cast(x, np.dtype(preferred_element_type))


def dot(
    lhs: object, rhs: object, precision: object = None, preferred_element_type: object = None
) -> Any:
    """The product of vectors and matrices.

    Raises:
      ShapeError: an operand has another number of axes than one or two.

    Example:
      >>> dot(np.ones((2, 3)), np.ones(3))
      array([3., 3.])
    """
    a, b = as_array(lhs), as_array(rhs)
    if not {len(shape_of(a)), len(shape_of(b))} <= {1, 2}:
        raise ShapeError(
            f"dot: expected vectors or matrices, got shapes {shape_of(a)} and {shape_of(b)}; use "
            "dot_general"
        )
    return _result(products.dot(a, b), preferred_element_type)


def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: object = None,
    preferred_element_type: object = None,
) -> Array:
    """Contract pairs of axes, keep pairs of batch axes.

    Args:
      lhs: first operand.
      rhs: second operand.
      dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.
      precision: not used.
      preferred_element_type: dtype of the result.

    Returns:
      ``[batch, free axes of lhs, free axes of rhs]``.

    Example:
      >>> dot_general(np.ones((2, 3)), np.ones((3, 4)), (((1,), (0,)), ((), ()))).shape
      (2, 4)
    """
    contract, batch = dimension_numbers
    product = products.dot_general(as_array(lhs), as_array(rhs), contract, batch)
    return _result(product, preferred_element_type)


def batch_matmul(lhs: object, rhs: object, precision: object = None) -> Array:
    """Products of matrices, the other axes being those of a batch.

    Example:
      >>> batch_matmul(np.ones((5, 2, 3)), np.ones((5, 3, 4))).shape
      (5, 2, 4)
    """
    return products.matmul(as_array(lhs), as_array(rhs))


# convolutions -------------------------------------------------------------------------------------


class ConvDimensionNumbers(NamedTuple):
    """Which axes of a convolution are batch, channels and space.

    Attributes:
      lhs_spec: axes of batch, channels, space of the operand.
      rhs_spec: axes of output channels, input channels, space of the kernel.
      out_spec: as ``lhs_spec``, of the result.
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: Any
) -> ConvDimensionNumbers:
    """Axes of a convolution from three words, as ``("NHWC", "HWIO", "NHWC")``.

    Args:
      lhs_shape: of the operand.
      rhs_shape: of the kernel.
      dimension_numbers: words with ``N`` and ``C`` (in the kernel's ``O`` and ``I``) and the same
        letters for space; ``None`` for batch, channels, space.

    Raises:
      ValueError: the words do not fit the shapes or each other.

    Example:
      >>> conv_dimension_numbers((1, 5, 2), (3, 2, 4), ("NHC", "HIO", "NHC")).lhs_spec
      (0, 2, 1)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    ndim = len(lhs_shape)
    if dimension_numbers is None:
        return ConvDimensionNumbers(*(tuple(range(ndim)),) * 3)
    lhs, rhs, out = dimension_numbers
    space = [letter for letter in rhs if letter not in "OI"]
    for word, pair in ((lhs, "NC"), (rhs, "OI"), (out, "NC")):
        if len(word) != ndim or {*word} != {*pair, *space} or ndim != len(rhs_shape):
            raise ValueError(
                f"dimension_numbers={dimension_numbers!r} do not fit shapes {tuple(lhs_shape)} and "
                f"{tuple(rhs_shape)}: a word names each axis once, N and C (of the kernel O and "
                "I), and equal letters for space"
            )
    return ConvDimensionNumbers(
        *(
            tuple([word.index(letter) for letter in (*pair, *space)])
            for word, pair in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
        )
    )


def conv_general_dilated(
    lhs: object,
    rhs: object,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: object = None,
    preferred_element_type: object = None,
) -> Array:
    """Correlate over any number of spatial axes.

    Args:
      lhs: operand.
      rhs: kernel.
      window_strides: distance of neighbouring windows along each spatial axis.
      padding: ``"VALID"``, ``"SAME"``, or pairs ``(before, after)``.
      lhs_dilation: distance of neighbouring elements of ``lhs`` among zeros.
      rhs_dilation: distance of neighbouring elements of the kernel.
      dimension_numbers: see :func:`conv_dimension_numbers`.
      feature_group_count: groups of channels convolved apart.
      batch_group_count: groups of the batch convolved apart.
      precision: not used.
      preferred_element_type: dtype of the result.

    Raises:
      ShapeError: shapes, groups or the number of entries per axis do not fit.
      ValueError: ``padding`` or ``dimension_numbers`` are none.

    Example:
      >>> conv_general_dilated(np.ones((1, 1, 4)), np.ones((1, 1, 2)), (1,), "VALID")
      array([[[2., 2., 2.]]])
    """
    a, b = as_array(lhs), as_array(rhs)
    numbers = conv_dimension_numbers(shape_of(a), shape_of(b), dimension_numbers)
    result = convolution.conv(
        transposed(a, numbers.lhs_spec),
        transposed(b, numbers.rhs_spec),
        tuple(window_strides),
        padding,
        1 if lhs_dilation is None else tuple(lhs_dilation),
        1 if rhs_dilation is None else tuple(rhs_dilation),
        feature_group_count,
        batch_group_count,
    )
    order = tuple(np.argsort(numbers.out_spec).tolist())
    return _result(transposed(result, order), preferred_element_type)


def conv(
    lhs: Any,
    rhs: object,
    window_strides: Sequence[int],
    padding: str,
    precision: object = None,
    preferred_element_type: object = None,
) -> Array:
    """``conv_general_dilated`` without dilation, of batch, channels, space.

    Example:
      >>> conv(np.ones((1, 1, 4)), np.ones((1, 1, 2)), (1,), "SAME").shape
      (1, 1, 4)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: object,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: object = None,
    preferred_element_type: Any = None,
) -> Array:
    """``conv_general_dilated`` of batch, channels, space.

    Example:
      >>> conv_with_general_padding(
      ...     np.ones((1, 1, 4)), np.ones((1, 1, 2)), (1,), [(1, 1)], None, None
      ... ).shape
      (1, 1, 5)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def conv_transpose(
    lhs: object,
    rhs: object,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: object = None,
    transpose_kernel: bool = False,
    precision: object = None,
    preferred_element_type: object = None,
) -> Array:
    """Convolution whose strides spread the operand: the transpose of a strided one.

    Args:
      lhs: operand.
      rhs: kernel.
      strides: by how much each spatial axis becomes larger.
      padding: of the convolution that this would be the transpose of: ``"SAME"`` (extents times
        strides), ``"VALID"``; or pairs that are used as they are.
      rhs_dilation: distance of neighbouring elements of the kernel.
      dimension_numbers: by default batch, space, channels, with kernels of space, input, output.
      transpose_kernel: whether the kernel is flipped and its channels exchanged.
      precision: not used.
      preferred_element_type: dtype of the result.

    Example:
      >>> conv_transpose(np.ones((1, 3, 1)), np.ones((2, 1, 1)), (2,), "SAME").shape
      (1, 6, 1)
    """
    a, b = as_array(lhs), as_array(rhs)
    ndim = len(shape_of(a))
    if dimension_numbers is None:
        space = "HWD"[: ndim - 2] if ndim <= 5 else "".join(map(chr, range(97, 95 + ndim)))
        dimension_numbers = (f"N{space}C", f"{space}IO", f"N{space}C")
    numbers = conv_dimension_numbers(shape_of(a), shape_of(b), dimension_numbers)
    extents = [shape_of(b)[k] for k in numbers.rhs_spec[2:]]
    dilation = (1,) * len(extents) if rhs_dilation is None else tuple(rhs_dilation)
    pads = padding
    if isinstance(padding, str):
        widths = [(k - 1) * d + 1 for k, d in zip(extents, dilation, strict=True)]
        pads = [
            _transposed_padding(width, stride, padding)
            for width, stride in zip(widths, strides, strict=True)
        ]
    if transpose_kernel:
        b = flip(b, numbers.rhs_spec[2:])
        first, second, *rest = numbers.rhs_spec
        numbers = numbers._replace(rhs_spec=(second, first, *rest))
    return conv_general_dilated(
        a, b, (1,) * len(extents), pads, strides, dilation, numbers,
        preferred_element_type=preferred_element_type,
    )  # fmt: skip


def _transposed_padding(width: int, stride: int, name: str) -> tuple[int, int]:
    """The pair for a word: how much of a full convolution of the spread operand is kept."""
    if name == "SAME":
        total = width + stride - 2
        before = width - 1 if stride > width - 1 else -(-total // 2)
    elif name == "VALID":
        total = width + stride - 2 + max(width - stride, 0)
        before = width - 1
    else:
        raise ValueError(f"conv_transpose: padding={name!r}; expected 'SAME', 'VALID' or pairs")
    return before, total - before


_guard(globals())
