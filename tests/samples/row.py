"""The record of a row of the sample table, and generators of operands.

A row belongs to one primitive. It says where the primitive is defined (samples of operands and
parameters), what it computes (a definition in Python or NumPy, independent of the implementation
where there is one), what its derivative is like, and which operands it refuses. All rule tests run
over all rows.
"""

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from functrans.ir.primitive import Primitive, linear, multilinear, nondifferentiable
from functrans.trace import bind

Rng = np.random.Generator


@dataclass(frozen=True, slots=True)
class Sample:
    """Operands and parameters of one equation.

    Attributes:
      label: what is special about it; unique within the row.
      operands: arrays, NumPy scalars or Python numbers.
      params: static parameters.
      is_smooth: the primitive is twice differentiable around it, farther than the step of a
        difference quotient. False at ties, kinks, infinities and NaN.
      is_warned: NumPy warns there (overflow, division by zero).
    """

    label: str
    operands: tuple[Any, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    is_smooth: bool = True
    is_warned: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """An equation that must raise.

    Attributes:
      label: what is wrong with it.
      operands: see ``Sample``.
      error: the exception's class.
      match: regular expression that the message contains.
      params: see ``Sample``.
      call: the function that users call, where it is that which refuses; by default the abstract
        evaluation of the primitive.
    """

    label: str
    operands: tuple[Any, ...]
    error: type[Exception]
    match: str
    params: Mapping[str, Any] = field(default_factory=dict)
    call: Callable[..., Any] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """What the tests know about a primitive.

    Attributes:
      primitive: the record under test.
      make: gives the samples; the same labels, shapes, dtypes and parameters for every generator.
      reference: ``(*operands, **params) -> result`` or a tuple of results, what it computes.
      rtol: relative tolerance against the reference in double precision; 0 for exact equality.
      numpy: NumPy's function of the same dtypes, where there is one.
      linear_in: sets of operands in which the primitive is linear jointly; each has a transpose.
      zero_in: operands in which its derivative is zero wherever it exists.
      is_flat: its second derivative is zero wherever it exists.
      refused: operands that must raise.
      fd_scale: factor of the tolerance of difference quotients, for ill-conditioned results.
      compare: results to compare in place of the raw ones (up to a sign, for instance).
    """

    primitive: Primitive
    make: Callable[[Rng], Iterable[Sample]]
    reference: Callable[..., Any]
    rtol: float = 1e-12
    numpy: Any = None
    linear_in: tuple[tuple[int, ...], ...] = ()
    zero_in: tuple[int, ...] = ()
    is_flat: bool = False
    refused: tuple[Refused, ...] = ()
    fd_scale: float = 1.0
    compare: Callable[..., Any] | None = None

    @property
    def name(self) -> str:
        """Name of the primitive."""
        return self.primitive.name

    def samples(self, seed: int = 0) -> tuple[Sample, ...]:
        """The samples of one generator; another seed gives other values of the same shapes."""
        return tuple(self.make(np.random.default_rng([zlib.crc32(self.name.encode()), seed])))

    def sample(self, label: str, seed: int = 0) -> Sample:
        """One sample by its label, with operands of its own."""
        return next(sample for sample in self.samples(seed) if sample.label == label)

    def apply(self, sample: Sample, *operands: Any) -> tuple[Any, ...]:
        """Bind the primitive with the parameters of a sample."""
        return bind(self.primitive, *operands, **sample.params)

    @property
    def is_differentiable(self) -> bool:
        """Whether the primitive has a derivative rule."""
        return self.primitive.jvp is not nondifferentiable

    def moving(self, sample: Sample) -> tuple[int, ...]:
        """Positions of the operands that derivatives are taken in."""
        return tuple(i for i, x in enumerate(sample.operands) if is_floating_array(x))

    def linear_sets(self, sample: Sample) -> list[tuple[int, ...]]:
        """Sets of operands in which the primitive is jointly linear."""
        moving = self.moving(sample)
        if self.primitive.jvp is linear:
            return [moving] if moving else []
        if self.primitive.jvp is multilinear:
            return [(i,) for i in moving]
        sets = [tuple(i for i in each if i in moving) for each in self.linear_in]
        return [each for each in sets if each]


def is_floating_array(x: Any) -> bool:
    """Whether an operand is an array with tangents."""
    return isinstance(x, np.ndarray) and x.dtype.kind in "fc"


# generators -------------------------------------------------------------------------------------


def uniform(rng: Rng, shape: tuple[int, ...], low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Uniform float64 numbers; 0-d arrays are arrays."""
    return np.asarray(rng.uniform(low, high, shape))


def annulus(
    rng: Rng,
    shape: tuple[int, ...],
    low: float = 0.3,
    high: float = 1.5,
    angles: tuple[float, float] = (-2.8, 2.8),
) -> np.ndarray:
    """Complex numbers of bounded modulus, by default away from the negative axis."""
    modulus, angle = uniform(rng, shape, low, high), uniform(rng, shape, *angles)
    return np.asarray(modulus * np.exp(1j * angle))


def integers(
    rng: Rng, shape: tuple[int, ...], low: int = -5, high: int = 6, dtype: Any = np.int64
) -> np.ndarray:
    """Uniform integers, the upper bound excluded."""
    return np.asarray(rng.integers(low, high, shape), dtype)


def booleans(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Random booleans, at least one of each where there are two elements."""
    values = np.asarray(rng.integers(0, 2, shape), bool)
    if values.size > 1:
        values.flat[0], values.flat[1] = True, False
    return values


def spaced(rng: Rng, shape: tuple[int, ...], gap: float = 0.1) -> np.ndarray:
    """Distinct numbers in random order, every two of them farther apart than half the gap."""
    size = int(np.prod(shape))
    grid = (np.arange(size) - size / 2) * gap + rng.uniform(-gap / 4, gap / 4, size)
    return np.asarray(rng.permutation(grid).reshape(shape))


def as_dtype(sample: Sample, dtypes: Mapping[str, str], label: str) -> Sample:
    """A sample with its arrays converted: dtype name to dtype name."""
    return Sample(
        label,
        tuple(
            x.astype(dtypes[x.dtype.name])
            if isinstance(x, np.ndarray) and x.dtype.name in dtypes
            else x
            for x in sample.operands
        ),
        sample.params,
        sample.is_smooth,
        sample.is_warned,
    )


HALVED = {"float64": "float32", "complex128": "complex64"}


def by_element(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A definition for Python numbers, applied to broadcast arrays."""

    def apply(*operands: Any) -> np.ndarray:
        arrays = np.broadcast_arrays(*operands)
        values = [function(*row) for row in zip(*(a.ravel().tolist() for a in arrays), strict=True)]
        return np.array(values).reshape(arrays[0].shape)

    return apply
