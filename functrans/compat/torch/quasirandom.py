"""``torch.quasirandom``: points of Sobol sequences, those of ``scipy.stats.qmc``.

Layer: ``compat``.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.methods.rows import into
from functrans.autograd.promotion import torch_defaults
from functrans.autograd.random import stream
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.functional_names import TORCH

__all__ = ["SobolEngine"]


class SobolEngine:
    """A Sobol sequence, whose points fill the unit cube evenly.

    Points that are not scrambled are torch's; scrambled ones are SciPy's for the seed.

    Args:
      dimension: of the points.
      scramble: whether they are scrambled (a random linear matrix and a random shift).
      seed: of that; by default it is drawn from torch's generator.

    Raises:
      ValueError: SciPy knows no sequence of this dimension.

    Example:
      >>> SobolEngine(2).draw(3)
      tensor([[0.  , 0.  ],
              [0.5 , 0.5 ],
              [0.75, 0.25]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        words = stream(None).integers(1, 0, 2**32)[0] if scramble and seed is None else seed
        self._words = None if words is None else int(words) % 2**64
        self.reset()

    def reset(self) -> SobolEngine:
        """Begin again."""
        from scipy.stats import qmc  # 0.3 s

        self._points: Any = qmc.Sobol(
            self.dimension, scramble=self.scramble, bits=self.MAXBIT, rng=self._words
        )
        self.num_generated = 0
        return self

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DTypeLike | None = None) -> Tensor:
        """The next points, ``[n, dimension]``."""
        n = int(operator.index(n))  # of a truth value, too, as in torch
        kind = torch_defaults.dtype if dtype is None else dtype

        def drawn() -> Tensor:
            first = min(n, 0 if self.num_generated else 1)  # or SciPy warns of uneven numbers
            points = [self._points.random(first), self._points.random(n - first)]
            self.num_generated += n
            return TORCH.tensor(np.concatenate(points), dtype=kind)

        return drawn() if out is None else into(out, "draw", drawn)

    def draw_base2(
        self, m: int, out: Tensor | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """The next ``2 ** m`` points.

        Raises:
          ValueError: the number of all points would not be a power of 2.
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n, out, dtype)

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave out points."""
        self._points.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        """As torch prints it."""
        words = [f"dimension={self.dimension}"]
        if self.scramble:
            words.append("scramble=True")
        if self.seed is not None:
            words.append(f"seed={self.seed}")
        return f"SobolEngine({', '.join(words)})"
