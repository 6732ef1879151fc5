"""Frequencies of Fourier transforms with the dtype that the array API standard has.

Here: ``fftfreq`` and ``rfftfreq``. Not here: the transforms (``fft``).

Layer: ``numpy``. Reference: Python array API standard 2024.12.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.core.boundary import boundary


@boundary
def fftfreq(n: int, d: float = 1.0, device: Any = None, *, dtype: object = None) -> np.ndarray:
    """The frequencies of a discrete Fourier transform.

    Args:
      n: length.
      d: distance of the samples.
      device: ``"cpu"`` or ``None``.
      dtype: a floating dtype; float64 by default.

    Returns:
      Array ``[n]``.

    Raises:
      TypeError: ``dtype`` is not a real floating one.

    Example:
      >>> fftfreq(4, dtype=np.float32)
      array([ 0.  ,  0.25, -0.5 , -0.25], dtype=float32)
    """
    return _frequencies("fftfreq", np.fft.fftfreq(n, d, device=device), dtype)


@boundary
def rfftfreq(
    n: int, d: float = 1.0, device: Any = None, *, dtype: DTypeLike | None = None
) -> np.ndarray:
    """The frequencies of a discrete Fourier transform of real numbers.

    Args:
      n: length.
      d: distance of the samples.
      device: ``"cpu"`` or ``None``.
      dtype: a floating dtype; float64 by default.

    Returns:
      Array ``[n // 2 + 1]``.

    Raises:
      TypeError: ``dtype`` is not a real floating one.

    Example:
      >>> rfftfreq(4)
      array([0.  , 0.25, 0.5 ])
    """
    return _frequencies("rfftfreq", np.fft.rfftfreq(n, d, device=device), dtype)


def _frequencies(name: str, values: np.ndarray, dtype: Any) -> np.ndarray:
    if dtype is not None and np.dtype(dtype).kind != "f":
        raise TypeError(f"numpy.fft.{name}: dtype must be real and floating, got {np.dtype(dtype)}")
    return values if dtype is None else values.astype(dtype)
