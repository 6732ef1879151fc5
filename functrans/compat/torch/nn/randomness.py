"""Random numbers of layers: masks of dropout.

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.autograd.factories import uniform
from functrans.autograd.methods.layouts import laid_out
from functrans.autograd.methods.rows import constant, drawn, drawn_in
from functrans.autograd.recording import enter_session
from functrans.autograd.tensors import Tensor


def kept_elements(like: Tensor, shape: tuple[int, ...] | None, p: float) -> Tensor:
    """Factors of dropout: 0 with probability ``p``, else ``1 / (1 - p)``.

    A step that ``jit`` has traced draws anew in each call.

    Args:
      like: gives the dtype.
      shape: of the factors; ``None`` is one for each element.
      p: probability of 0.
    """
    enter_session(like)
    dtype = like.dtype
    if p == 1:
        return constant(np.zeros((), dtype))
    scale = 1.0 / (1.0 - p)

    def draw(size: tuple[int, ...], is_plain: bool = True) -> Any:
        kept = uniform(None, size, np.dtype(np.float64)) < 1 - p
        return np.asarray(kept * dtype.type(scale), dtype)

    return drawn_for(like, draw, shape, dtype)


def drawn_for(like: Tensor, draw: Any, shape: tuple[int, ...] | None, dtype: np.dtype) -> Tensor:
    """Random numbers of a shape, or for the elements of a tensor in the order of memory."""
    return drawn_in(laid_out(like), draw, dtype) if shape is None else drawn(draw, shape, dtype)
