"""``torch.quasirandom``: points of Sobol sequences.

Layer: ``compat``.
"""

from __future__ import annotations

import operator
from typing import SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.methods.rows import into
from functrans.autograd.promotion import torch_defaults
from functrans.autograd.random import stream, words_of_seed
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.functional_names import TORCH

__all__ = ["SobolEngine"]


class SobolEngine:
    """A Sobol sequence, whose points fill the unit cube evenly.

    The points are torch's, scrambled ones too: the directions of each coordinate are multiplied by
    a random triangular matrix of bits and the points are shifted (J. Matoušek, On the
    L2-discrepancy for anchored boxes, Journal of Complexity 14, 1998). Directions are those of
    ``scipy.stats.qmc``, by S. Joe and F. Y. Kuo.

    Args:
      dimension: of the points.
      scramble: whether they are scrambled.
      seed: of that; by default it is torch's generator that draws.

    Attributes:
      shift, quasi: ``int64[dimension]``, the shift and the state, in units of ``2**-30``.
      sobolstate: ``int64[dimension, 30]``, the directions.
      num_generated: points that were drawn or left out.

    Raises:
      ValueError: there is no sequence of this dimension, or the seed has more than 64 bits.

    Example:
      >>> SobolEngine(2).draw(3)
      tensor([[0.  , 0.  ],
              [0.5 , 0.5 ],
              [0.75, 0.25]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        from scipy.stats import qmc  # 0.3 s

        dimension = int(operator.index(dimension))
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        directions = qmc.Sobol(dimension, scramble=False, bits=self.MAXBIT)._sv.astype(np.int64)
        shift = np.zeros(dimension, np.int64)
        if scramble:
            shift, matrices = self._drawn()
            directions = _scrambled(directions, matrices)
        self._shift, self._directions = shift, directions
        self.reset()

    def _drawn(self) -> tuple[np.ndarray, np.ndarray]:
        """The shift, and a triangular matrix of bits for each coordinate."""
        d, bits = self.dimension, self.MAXBIT
        count = d * bits * (1 + bits)
        if self.seed is None:
            words = stream(None).words(count)
        else:
            seed = int(operator.index(self.seed))
            if not -(1 << 63) <= seed < 1 << 64:
                raise ValueError(f"Overflow when unpacking long long: {seed} has more than 64 bits")
            words = words_of_seed(seed, count)
        drawn = (words & np.uint64(1)).astype(np.int64)
        shift = drawn[: d * bits].reshape(d, bits) @ (1 << np.arange(bits))
        matrices = np.tril(drawn[d * bits :].reshape(d, bits, bits), -1)
        return shift, matrices | np.eye(bits, dtype=np.int64)

    shift = property(lambda self: TORCH.tensor(self._shift), doc="The shift, in units of 2**-30.")
    sobolstate = property(lambda self: TORCH.tensor(self._directions), doc="The directions.")
    quasi = property(
        lambda self: TORCH.tensor(self._state(-1)[0]), doc="The point before the next."
    )

    def _state(self, first: int, count: int = 1) -> np.ndarray:
        """Points from one, counted from the next, in units of ``2**-30``: by Gray codes."""
        numbers = np.maximum(self.num_generated + first + np.arange(count), 0)
        codes = numbers ^ numbers >> 1
        points = np.repeat(self._shift[None], count, 0)
        for bit in range(int(codes.max(initial=0)).bit_length()):
            points ^= np.where((codes >> bit & 1)[:, None], self._directions[:, bit], 0)
        return points

    def reset(self) -> SobolEngine:
        """Begin again."""
        self.num_generated = 0
        return self

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DTypeLike | None = None) -> Tensor:
        """The next points, ``[n, dimension]``.

        Raises:
          RuntimeError: ``n`` is negative, or the sequence of ``2**30`` points ends.
        """
        n = self._count(n)
        kind = torch_defaults.dtype if dtype is None else dtype

        def drawn() -> Tensor:
            points = self._state(0, n) * 2.0**-self.MAXBIT
            if self.num_generated == 0:  # as in torch, which rounds this one
                points[:1] = points[:1].astype(torch_defaults.dtype)
            self.num_generated += n
            return TORCH.tensor(points, dtype=kind)

        return drawn() if out is None else into(out, "draw", drawn)

    def _count(self, n: SupportsIndex) -> int:
        """A number of points that there are."""
        count = int(operator.index(n))  # of a truth value, too, as in torch
        left = (1 << self.MAXBIT) - self.num_generated
        if not 0 <= count <= left:
            raise RuntimeError(
                f"SobolEngine: cannot give {count} points; expected 0 to {left}, what is left of "
                f"the sequence of 2**{self.MAXBIT}"
            )
        return count

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
        self.num_generated += self._count(n)
        return self

    def __repr__(self) -> str:
        """As torch prints it."""
        words = [f"dimension={self.dimension}"]
        if self.scramble:
            words.append("scramble=True")
        if self.seed is not None:
            words.append(f"seed={self.seed}")
        return f"SobolEngine({', '.join(words)})"


def _scrambled(directions: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Directions ``i64[d, bits]`` times ``matrices`` of bits, whose first row gives the highest."""
    places = np.arange(directions.shape[1])[::-1]
    bits = directions[:, :, None] >> places & 1
    product: np.ndarray = (bits @ matrices.swapaxes(1, 2) & 1) @ (1 << places)
    return product
