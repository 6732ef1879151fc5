"""The record of a row of the sample table, and generators of operands.

A row belongs to one primitive. It says where the primitive is defined (samples of operands and
parameters), what it computes (a definition in Python or NumPy, independent of the implementation
where there is one), what its derivative is like, and which operands it refuses. All rule tests run
over all rows.
"""

import functools
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from functrans.core.avals import is_differentiable_dtype
from functrans.core.dispatch import bind, dtype_of
from functrans.core.jaxpr import subjaxprs
from functrans.core.primitive import Primitive, linear, multilinear, nondifferentiable
from functrans.testing import random_like

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
      has_derivative: False where the primitive has no derivative for these parameters.
      expected: the results, where the row has no reference.
    """

    label: str
    operands: tuple[Any, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    is_smooth: bool = True
    has_derivative: bool = True
    expected: tuple[Any, ...] | None = None

    @property
    def has_program(self) -> bool:
        """Whether there is a program among the parameters, whose dtypes are fixed."""
        return any(True for _ in subjaxprs(self.params))


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


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """What the tests know about a primitive.

    Attributes:
      primitive: the record under test.
      make: gives the samples; the same labels, shapes, dtypes and parameters for every generator.
      reference: ``(*operands, **params) -> result`` or a tuple of results, what it computes;
        without one, the samples say what they expect.
      residuals: ``(outs, *operands, **params) -> arrays`` in place of a reference: what must
        vanish, where results are unique only up to signs or order.
      rtol: relative and absolute tolerance of either in double precision; 0 for exact equality.
      numpy: NumPy's function of the same dtypes, where there is one.
      linear_in: sets of operands in which the primitive is linear jointly; each has a transpose.
      zero_in: operands in which its derivative is zero wherever it exists.
      is_flat: its second derivative is zero wherever it exists.
      refused: operands that must raise.
      fixed: operands that derivatives are not taken in, though they are floating.
      hermitian: operands that derivatives are taken in along Hermitian directions only.
      differentiated: ``(*operands, **params) -> outs`` in place of the primitive itself: what
        derivatives are taken of, where operands depend on each other or results have a gauge.
      fd_scale: factor of the tolerance of difference quotients, for ill-conditioned results.
      order: how many derivatives there are, where further ones are refused.
      is_planned: only plans hold it; ``check_jaxpr`` refuses it in any other program.
    """

    primitive: Primitive
    make: Callable[[Rng], Iterable[Sample]]
    reference: Callable[..., Any] | None = None
    residuals: Callable[..., Any] | None = None
    rtol: float = 1e-12
    numpy: Any = None
    linear_in: tuple[tuple[int, ...], ...] = ()
    zero_in: tuple[int, ...] = ()
    is_flat: bool = False
    refused: tuple[Refused, ...] = ()
    fixed: tuple[int, ...] = ()
    hermitian: tuple[int, ...] = ()
    differentiated: Callable[..., Any] | None = None
    fd_scale: float = 1.0
    order: int = 9
    is_planned: bool = False

    @property
    def name(self) -> str:
        """Name of the primitive."""
        return self.primitive.name

    def samples(self, seed: int = 0) -> tuple[Sample, ...]:
        """The samples of one generator; another seed gives other values of the same shapes."""
        return _made(self, seed)

    def sample(self, label: str, seed: int = 0) -> Sample:
        """One sample by its label, with arrays of its own."""
        sample = next(sample for sample in self.samples(seed) if sample.label == label)
        own = (x.copy() if isinstance(x, np.ndarray) else x for x in sample.operands)
        return replace(sample, operands=tuple(own))

    def apply(self, sample: Sample, *operands: Any) -> tuple[Any, ...]:
        """Bind the primitive with the parameters of a sample."""
        return bind(self.primitive, *operands, **sample.params)

    def bound(self, sample: Sample) -> Callable[..., tuple[Any, ...]]:
        """``apply`` as a function of operands, for transforms: they look at what a closure holds,
        which the whole row would be."""
        return functools.partial(bind, self.primitive, **sample.params)

    @property
    def is_differentiable(self) -> bool:
        """Whether the primitive has a derivative rule."""
        return self.primitive.jvp not in (None, nondifferentiable)

    def moving(self, sample: Sample) -> tuple[int, ...]:
        """Positions of the operands that derivatives are taken in."""
        return tuple(
            i for i, x in enumerate(sample.operands) if is_floating_array(x) and i not in self.fixed
        )

    def linear_sets(self, sample: Sample) -> list[tuple[int, ...]]:
        """Sets of operands in which the primitive is jointly linear."""
        moving = self.moving(sample)
        if self.primitive.jvp is linear:
            return [moving] if moving else []
        if self.primitive.jvp is multilinear:
            return [(i,) for i in moving]
        sets = [tuple(i for i in each if i in moving) for each in self.linear_in]
        return list(dict.fromkeys(each for each in sets if each))

    def function(self, sample: Sample) -> Callable[..., tuple[Any, ...]]:
        """The floating results as a function of the operands that derivatives are taken in."""
        moving, fixed, params = self.moving(sample), sample.operands, sample.params
        run = self.differentiated or functools.partial(bind, self.primitive)

        def fun(*values: Any) -> tuple[Any, ...]:
            operands = list(fixed)
            for i, value in zip(moving, values, strict=True):
                operands[i] = value
            outs = run(*operands, **params)
            return tuple(out for out in outs if is_differentiable_dtype(dtype_of(out)))

        return fun

    def direction(self, sample: Sample, rng: Rng) -> list[np.ndarray]:
        """A random tangent for each operand that derivatives are taken in."""
        tangents = []
        for i in self.moving(sample):
            tangent = random_like(rng, sample.operands[i])
            if i in self.hermitian:
                tangent = (tangent + tangent.conj().swapaxes(-1, -2)) / 2
            tangents.append(tangent)
        return tangents


@functools.lru_cache(maxsize=1024)
def _made(row: Row, seed: int) -> tuple[Sample, ...]:
    return tuple(row.make(np.random.default_rng([zlib.crc32(row.name.encode()), seed])))


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
    operands = tuple(
        x.astype(dtypes[x.dtype.name])
        if isinstance(x, (np.ndarray, np.generic)) and x.dtype.name in dtypes
        else x
        for x in sample.operands
    )
    return replace(sample, label=label, operands=operands)


HALVED = {"float64": "float32", "complex128": "complex64"}


def by_element(function: Callable[..., Any]) -> Callable[..., np.ndarray]:
    """A definition for Python numbers, applied to broadcast arrays."""

    def apply(*operands: Any) -> np.ndarray:
        arrays = np.broadcast_arrays(*operands)
        values = [function(*row) for row in zip(*(a.ravel().tolist() for a in arrays), strict=True)]
        return np.array(values).reshape(arrays[0].shape)

    return apply
