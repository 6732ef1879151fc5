"""``ft.nn.initializers``: random arrays for weights, under JAX's names.

Here: functions ``(key, shape, dtype=float) -> array``, and functions that make them. Axes of a
weight are those of input, output, and a receptive field, which counts to both.

Layer: ``nn``.

References: Glorot & Bengio, AISTATS 2010; He et al., ICCV 2015; LeCun et al., Efficient BackProp
(1998); Saxe et al., ICLR 2014.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.core.boundary import guard as _guard
from functrans.namespaces import listing as _listing
from functrans.primitives.structural import moveaxis, reshape
from functrans.random.continuous import truncated_normal as random_truncated_normal
from functrans.random.multivariate import orthogonal as random_orthogonal
from functrans.random.uniform import normal as random_normal
from functrans.random.uniform import uniform as random_uniform

Initializer = Callable[..., Any]
Axes = int | Sequence[int]


def zeros(key: Any, shape: Sequence[int], dtype: DTypeLike | None = float) -> Any:
    """Zeros.

    Example:
      >>> import functrans as ft
      >>> zeros(ft.random.key(0), (2,))
      array([0., 0.])
    """
    return np.zeros(tuple(shape), dtype)


def ones(key: object, shape: Sequence[int], dtype: DTypeLike | None = float) -> Any:
    """Ones.

    Example:
      >>> import functrans as ft
      >>> ones(ft.random.key(0), (2,))
      array([1., 1.])
    """
    return np.ones(tuple(shape), dtype)


def constant(value: Any, dtype: Any = float) -> Initializer:
    """One value.

    Example:
      >>> import functrans as ft
      >>> constant(3.0)(ft.random.key(0), (2,))
      array([3., 3.])
    """

    def init(key: Any, shape: Sequence[int], dtype: object = dtype) -> Any:
        return np.full(tuple(shape), value, dtype)

    return init


def normal(stddev: Any = 1e-2, dtype: Any = float) -> Initializer:
    """Normal numbers of mean 0.

    Example:
      >>> import functrans as ft
      >>> normal(0.1)(ft.random.key(0), (2,)).shape
      (2,)
    """

    def init(key: object, shape: Sequence[int], dtype: Any = dtype) -> Any:
        return random_normal(key, tuple(shape), dtype) * np.dtype(dtype).type(stddev)

    return init


def truncated_normal(
    stddev: Any = 1e-2, dtype: Any = float, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """Normal numbers between two bounds, scaled by ``stddev``.

    Example:
      >>> import functrans as ft
      >>> bool(abs(truncated_normal(1.0)(ft.random.key(0), (99,))).max() < 2)
      True
    """

    def init(key: Any, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Any:
        numbers = random_truncated_normal(key, lower, upper, tuple(shape), dtype)
        return numbers * np.dtype(dtype).type(stddev)

    return init


def uniform(scale: Any = 1e-2, dtype: Any = float) -> Initializer:
    """Uniform numbers from 0 to ``scale``.

    Example:
      >>> import functrans as ft
      >>> bool(uniform(0.5)(ft.random.key(0), (99,)).max() < 0.5)
      True
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        return random_uniform(key, tuple(shape), dtype) * np.dtype(dtype).type(scale)

    return init


def _extents(
    shape: Sequence[int], in_axis: Axes, out_axis: Axes, batch_axis: Axes
) -> tuple[float, float]:
    """Numbers of inputs and of outputs of one element's sum."""

    def product(axes: Axes) -> int:
        names = (axes,) if isinstance(axes, int) else axes
        return math.prod(shape[axis] for axis in names)

    field = math.prod(shape) / product(in_axis) / product(out_axis) / product(batch_axis)
    return product(in_axis) * field, product(out_axis) * field


_STDDEV_TRUNCATED = 0.87962566103423978
"""Standard deviation of the normal distribution between -2 and 2."""


def variance_scaling(
    scale: float,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: DTypeLike | None = float,
) -> Initializer:
    """Random numbers of variance ``scale / n``.

    Args:
      scale: positive number.
      mode: what ``n`` is: ``"fan_in"``, ``"fan_out"``, ``"fan_avg"``, ``"fan_geo_avg"``.
      distribution: ``"truncated_normal"``, ``"normal"`` or ``"uniform"``.
      in_axis: axis or axes of the inputs.
      out_axis: axis or axes of the outputs.
      batch_axis: axes that count to neither.
      dtype: of the numbers.

    Raises:
      ValueError: ``mode`` or ``distribution`` is an unknown word, or the shape has too few axes.

    Example:
      >>> import functrans as ft
      >>> init = variance_scaling(1.0, "fan_in", "uniform")
      >>> bool(abs(init(ft.random.key(0), (3, 100))).max() <= 1.0)
      True
    """

    def init(key: object, shape: Sequence[int], dtype: DTypeLike | None = dtype) -> Any:
        if len(shape) < 2:
            raise ValueError(
                f"an initializer that scales needs axes of inputs and outputs, got shape "
                f"{tuple(shape)}; use normal or uniform for vectors"
            )
        fan_in, fan_out = _extents(shape, in_axis, out_axis, batch_axis)
        fans = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }
        if mode not in fans:
            raise ValueError(f"mode must be one of {', '.join(fans)}, got {mode!r}")
        stddev = math.sqrt(scale / fans[mode])
        if distribution == "normal":
            return normal(stddev, dtype)(key, shape)
        if distribution == "truncated_normal":
            return truncated_normal(stddev / _STDDEV_TRUNCATED, dtype)(key, shape)
        if distribution == "uniform":
            bound = math.sqrt(3) * stddev
            return random_uniform(key, tuple(shape), dtype, -bound, bound)
        raise ValueError(
            f"distribution must be 'truncated_normal', 'normal' or 'uniform', got {distribution!r}"
        )

    return init


def _scaled(scale: float, mode: str, distribution: str, name: str) -> Callable[..., Initializer]:
    @functools.wraps(variance_scaling)
    def make(
        in_axis: Axes = -2,
        out_axis: Axes = -1,
        batch_axis: Axes = (),
        dtype: DTypeLike | None = float,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    del make.__wrapped__  # the signature is its own
    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"""``variance_scaling({scale}, {mode!r}, {distribution!r})``.

    Example:
      >>> import functrans as ft
      >>> {name}()(ft.random.key(0), (3, 4)).shape
      (3, 4)
    """
    return make


glorot_uniform = _scaled(1.0, "fan_avg", "uniform", "glorot_uniform")
glorot_normal = _scaled(1.0, "fan_avg", "truncated_normal", "glorot_normal")
lecun_uniform = _scaled(1.0, "fan_in", "uniform", "lecun_uniform")
lecun_normal = _scaled(1.0, "fan_in", "truncated_normal", "lecun_normal")
he_uniform = _scaled(2.0, "fan_in", "uniform", "he_uniform")
he_normal = _scaled(2.0, "fan_in", "truncated_normal", "he_normal")
xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: object = float) -> Initializer:
    """Matrices with orthogonal rows or columns, whichever are fewer, times ``scale``.

    Args:
      scale: number.
      column_axis: the axis that is the matrix's columns; the others are its rows.
      dtype: of the numbers.

    Example:
      >>> import functrans as ft
      >>> q = orthogonal()(ft.random.key(0), (4, 3))
      >>> bool(np.allclose(q.T @ q, np.eye(3)))
      True
    """

    def init(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        if len(shape) < 2:
            raise ValueError(
                f"orthogonal: an array of shape {tuple(shape)} is no matrix; two axes are needed"
            )
        columns = shape[column_axis]
        rows = math.prod(shape) // columns
        n = max(rows, columns)
        matrix = random_orthogonal(key, n, (), dtype)[:rows, :columns]
        rest = [extent for k, extent in enumerate(shape) if k != column_axis % len(shape)]
        whole = moveaxis(reshape(matrix, (*rest, columns)), len(rest), column_axis % len(shape))
        return whole * np.dtype(dtype).type(scale)

    return init


__all__ = [
    "Initializer", "constant", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones",
    "orthogonal", "truncated_normal", "uniform", "variance_scaling", "xavier_normal",
    "xavier_uniform", "zeros",
]  # fmt: skip
__dir__ = _listing(__all__)
_guard(globals(), __all__)
