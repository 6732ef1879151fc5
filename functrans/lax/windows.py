"""``ft.lax``: reductions by a function, of whole axes and of windows, under JAX's names.

The function that combines is associative and works on arrays element by element: ``lax.add``,
``lax.max``, ``lambda a, b: ...`` of such.

Layer: ``lax``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.lax.structural import pad
from functrans.numpy.common import as_array
from functrans.primitives import movement
from functrans.primitives.structural import cast, moveaxis, normalize_axis, reshape


def reduce(
    operands: object,
    init_values: object,
    computation: Callable[..., Any],
    dimensions: Sequence[int],
) -> Array:
    """Combine the elements of axes by an associative function.

    Args:
      operands: array, or pytree of arrays of one shape.
      init_values: neutral element of ``computation``, of the structure of ``operands``.
      computation: function of two values of that structure.
      dimensions: axes.

    Example:
      >>> reduce(np.arange(4.0), 0.0, np.add, (0,))
      np.float64(6.0)
    """
    leaves, structure = tree.flatten(operands)
    starts = tree.leaves(init_values)
    ndim = len(shape_of(leaves[0]))
    axes = sorted({normalize_axis(axis, ndim, "axis") for axis in dimensions})
    parts = []
    for leaf, start in zip(leaves, starts, strict=True):
        x = as_array(leaf)
        for to, axis in enumerate(axes):
            x = moveaxis(x, axis, to)
        shape = shape_of(x)
        x = reshape(x, (math.prod(shape[: len(axes)]), *shape[len(axes) :]))
        first = np.broadcast_to(1, (1, *shape[len(axes) :])) * cast(as_array(start), dtype_of(x))
        parts.append(movement.concatenate((cast(first, dtype_of(x)), x), 0))

    def joined(a: list[Any], b: list[Any]) -> list[Any]:
        result = computation(tree.unflatten(structure, a), tree.unflatten(structure, b))
        return tree.leaves(result)

    n = shape_of(parts[0])[0]
    while n > 1:  # neighbours are joined, so that order is kept
        half = n // 2
        pairs = joined([x[0 : 2 * half : 2] for x in parts], [x[1 : 2 * half : 2] for x in parts])
        if n % 2:
            pairs = [
                movement.concatenate((pair, x[-1:]), 0)
                for pair, x in zip(pairs, parts, strict=True)
            ]
        parts, n = pairs, half + n % 2
    return tree.unflatten(structure, [x[0] for x in parts])


def reduce_window(
    operand: object,
    init_value: object,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """Combine the elements of every window by an associative function.

    Args:
      operand: array.
      init_value: neutral element of ``computation``, with which the array is padded.
      computation: function of two arrays, as ``lax.add`` or ``lax.max``.
      window_dimensions: extent of the window along each axis.
      window_strides: distance of neighbouring windows.
      padding: ``"VALID"``, ``"SAME"``, or pairs ``(before, after)``.
      base_dilation: distance of neighbouring elements of ``operand``.
      window_dilation: distance of neighbouring elements of the window.

    Raises:
      ValueError: ``padding`` is an unknown word.

    Example:
      >>> reduce_window(np.arange(4.0), -np.inf, np.maximum, (2,), (1,), "VALID")
      array([1., 2., 3.])
    """
    x = as_array(operand)
    ones = (1,) * len(shape_of(x))
    spread = ones if base_dilation is None else tuple(base_dilation)
    dilation = ones if window_dilation is None else tuple(window_dilation)
    widths = [(k - 1) * d + 1 for k, d in zip(window_dimensions, dilation, strict=True)]
    extents = [(n - 1) * d + 1 if n else 0 for n, d in zip(shape_of(x), spread, strict=True)]
    pads = padding_pairs(padding, extents, widths, window_strides)
    config = [(low, high, d - 1) for (low, high), d in zip(pads, spread, strict=True)]
    x = pad(x, init_value, config)
    counts = [
        max((n - w) // s + 1, 0)
        for n, w, s in zip(shape_of(x), widths, window_strides, strict=True)
    ]
    result: Any = None
    for places in itertools.product(*map(range, window_dimensions)):
        entries = [
            slice(at * d, at * d + (count - 1) * s + 1 if count else at * d, s)
            for at, d, count, s in zip(places, dilation, counts, window_strides, strict=True)
        ]
        part = x[tuple(entries)]
        result = part if result is None else computation(result, part)
    return result


def padding_pairs(
    padding: str | Sequence[tuple[int, int]],
    extents: Sequence[int],
    widths: Sequence[int],
    strides: Sequence[int],
) -> list[tuple[int, int]]:
    """Pairs ``(before, after)`` for a word.

    Raises:
      ValueError: it is an unknown one.
    """
    if not isinstance(padding, str):
        return [(low, high) for low, high in padding]
    if padding.upper() == "VALID":
        return [(0, 0)] * len(extents)
    if padding.upper() not in ("SAME", "SAME_LOWER"):
        raise ValueError(
            f"padding={padding!r}; expected 'SAME', 'SAME_LOWER', 'VALID' or pairs (before, after)"
        )
    pairs = []
    for n, width, stride in zip(extents, widths, strides, strict=True):
        total = max((-(-n // stride) - 1) * stride + width - n, 0)
        less, more = total // 2, total - total // 2
        pairs.append((less, more) if padding.upper() == "SAME" else (more, less))
    return pairs


padtype_to_pads = padding_pairs  # JAX's name

_guard(globals())
