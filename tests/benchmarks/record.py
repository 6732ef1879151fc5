"""What a benchmark is: frozen records, no behaviour.

A ``Workload`` is one computation that several contenders carry out; a ``Contender`` is one way to
do it with one library. ``ProcessWorkload`` is the other kind: the duration of a fresh process
(import time). Layer: lowest of the benchmark package; imports neither NumPy nor a contender, so
that a worker can time those imports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Inputs = Mapping[str, np.ndarray]
    Build = Callable[[Inputs], Callable[[], Any]]
    MakeInputs = Callable[[np.random.Generator], dict[str, np.ndarray]]


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to carry out a workload.

    Attributes:
      library: key of ``libraries.LIBRARIES``.
      variant: ``eager`` (uncompiled), ``jit`` (compiled) or ``hand`` (derivative written by hand).
      build: takes the inputs as NumPy arrays, converts them, and returns the callable of no
        arguments that is timed; it returns finished results (nothing may be left in flight).
      to_numpy: turns what the callable returns into a tuple of NumPy arrays, in an order common
        to all contenders; ``None`` takes the library's ``leaves_to_numpy``.
    """

    library: str
    variant: str
    build: Build
    to_numpy: Callable[[Any], tuple[np.ndarray, ...]] | None = None

    @property
    def label(self) -> str:
        """Name in reports and on the command line, such as ``jax-jit``."""
        return f"{self.library}-{self.variant}"


@dataclass(frozen=True, slots=True)
class Workload:
    """One computation, its inputs and its contenders.

    Attributes:
      name: identifier, unique.
      description: one line with the sizes.
      make_inputs: draws the inputs from a generator with a fixed seed; called once per run.
      contenders: at most one per label.
      rtol: two results agree when the largest difference is at most ``rtol`` times the largest
        magnitude, result array by result array.
      dtype: dtype of every result; anything else counts as a mismatch.
      first_call_timeout_s: a first call that takes longer is cut off and reported as such.
    """

    name: str
    description: str
    make_inputs: MakeInputs
    contenders: tuple[Contender, ...]
    rtol: float
    dtype: str = "float64"
    first_call_timeout_s: float = 60.0


@dataclass(frozen=True, slots=True)
class ProcessWorkload:
    """Python statements, each timed in fresh processes that alternate.

    Attributes:
      name: identifier, unique.
      description: one line.
      statements: label (a library's key) to the statement that is timed.
      repeats: processes per statement.
    """

    name: str
    description: str
    statements: Mapping[str, str]
    repeats: int = 20
