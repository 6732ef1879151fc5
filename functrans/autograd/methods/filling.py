"""Methods of ``Tensor`` that overwrite it: copies, constants, random numbers.

Not here: in-place forms of operations, which are made of these (``rows``).

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd import factories
from functrans.autograd.composites import alias, named
from functrans.autograd.methods.rows import (
    constant,
    documented,
    drawn,
    drawn_with,
    lifted,
    looked_at,
    plain,
    seeds,
)
from functrans.autograd.modes import entered
from functrans.autograd.promotion import to_dtype, torch_kind
from functrans.autograd.random import Generator, scaled, stream
from functrans.autograd.recording import enter_session
from functrans.autograd.tensors import Tensor, called
from functrans.autograd.writes import check_write, write
from functrans.core.values import Array
from functrans.errors import ConcretizationError
from functrans.primitives.structural import broadcast_to


def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Write the elements of another tensor, which is broadcast and converted.

    Raises:
      RuntimeError: it does not broadcast.
    """
    check_write(self)
    source = lifted(other, self)
    try:
        np.broadcast_shapes(source.shape, self.shape)
    except ValueError:
        raise RuntimeError(
            f"The size of tensor a ({self.shape[-1] if self.shape else 1}) must match the size of "
            f"tensor b ({source.shape[-1] if source.shape else 1}) at non-singleton dimension "
            f"{max(len(self.shape) - 1, 0)}"
        ) from None
    converted = to_dtype(source, self.dtype)
    made = alias(converted) if converted is source else converted
    if made.shape != self.shape:
        made = broadcast_to(made, self.shape)
    return write("copy_", self, named(made, "torch::autograd::CopyBackwards"))


def fill_(self: Tensor, value: object) -> Tensor:
    """Write one number.

    Raises:
      RuntimeError: a tensor with axes was given.
    """
    check_write(self, is_constant=not isinstance(value, Tensor))
    if isinstance(value, Tensor):
        if value.shape:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{len(value.shape)} dimensions."
            )
        wide = broadcast_to(alias(to_dtype(value, self.dtype)), self.shape)
        return write("fill_", self, named(wide, "FillBackward3"))
    write("fill_", self, constant(np.asarray(value).astype(self.dtype)))
    return named(self, "FillBackward2") if self._view is None else self


def zero_(self: Tensor) -> Tensor:
    """Write zeros."""
    check_write(self, is_constant=True)
    return write("zero_", self, constant(np.zeros((), self.dtype)))


def fill(self: Tensor, value: object) -> Tensor:
    """One number in place of all elements."""
    return fill_(self.clone(), value)


class _Sample:
    """What random numbers are drawn for.

    Attributes:
      dtype: that of the tensor.
      shape: its extents; none are drawn by default, where only parameters are checked.
    """

    def __init__(self, dtype: np.dtype, shape: tuple[int, ...] = (0,)) -> None:
        self.dtype = dtype
        self.shape = shape


def _random(name: str, draw: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """A method that writes random numbers.

    Args:
      name: torch's name.
      draw: from the tensor, a generator and the parameters to numbers.
    """
    draw = called(draw, name)

    def method(
        self: Tensor, *args: object, generator: Generator | None = None, **kwargs: object
    ) -> Tensor:
        enter_session(self)
        with entered({"batches": ()}):
            draw(_Sample(self.dtype), Generator(), *args, **kwargs)
        check_write(self)

        def numbers(size: tuple[int, ...]) -> np.ndarray:
            return draw(_Sample(self.dtype, size), generator, *args, **kwargs)

        new = drawn(numbers, self.shape, self.dtype)
        return write(name, self, new)

    return documented(method, name, draw.__doc__)


def _check_floating(name: str, self: _Sample) -> None:
    if self.dtype.kind in "iub":
        raise NotImplementedError(f"\"{name}\" not implemented for '{torch_kind(self.dtype)}'")


def _normal(self: _Sample, generator: Any, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
    """Write numbers of a normal distribution."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    _check_floating("normal_kernel_cpu", self)
    return factories.normal(generator, self.shape, self.dtype) * std + mean


def _interval(name: str, a: Any, b: Any, **bounds: object) -> tuple[Any, Any]:
    """Bounds by position or by torch's names, of which one is a keyword of Python."""
    low, high = bounds.pop("from", a), bounds.pop("to", b)
    for keyword in bounds:
        raise TypeError(f"{name}() got an unexpected keyword argument {keyword!r}")
    return low, high


def _uniform(
    self: _Sample, generator: Any, a: float = 0.0, b: float = 1.0, **bounds: object
) -> Array:
    """Write numbers that are uniform in an interval."""
    low, high = _interval("uniform_", a, b, **bounds)
    _check_floating("check_uniform_bounds", self)
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}"
        )
    numbers = factories.uniform(generator, self.shape, self.dtype)
    kind = numbers.dtype.type
    with np.errstate(all="ignore"):
        return scaled(numbers, kind(high) - kind(low), low)


def _integers(self: _Sample, generator: Any, a: Any = None, b: Any = None, **bounds: Any) -> Any:
    """Write integers: below a number, in an interval, or all that the dtype holds."""
    low, high = _interval("random_", a, b, **bounds)
    if low is not None and high is None:
        low, high = 0, low
    count = math.prod(self.shape)
    if low is None:
        if self.dtype == np.int64:
            words = stream(generator).long_words(count)
            return (words % np.uint64(2**63)).astype(np.int64).reshape(self.shape)
        limit = 2 ** (np.finfo(self.dtype).nmant + 1) if self.dtype.kind == "f" else None
        low, high = 0, limit or int(np.iinfo(self.dtype).max) + 1
        if limit and limit > 2**32:
            words = stream(generator).long_words(count) % np.uint64(limit + 1)
            return words.reshape(self.shape)
        if limit:
            high = limit + 1
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    return stream(generator).integers(count, low, high).reshape(self.shape)


def _bernoulli(self: _Sample, generator: Any, p: Any = 0.5) -> np.ndarray:
    """Write 1 with a probability, else 0."""
    chance = np.asarray(looked_at(p))
    if np.any((chance < 0) | (chance > 1)):
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={chance}")
    return stream(generator).numpy().random(self.shape) < chance


def _exponential(self: _Sample, generator: Any, lambd: float = 1.0) -> np.ndarray:
    """Write numbers of an exponential distribution."""
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return stream(generator).numpy().exponential(1 / lambd, self.shape)


def _geometric(self: _Sample, generator: Any, p: float) -> np.ndarray:
    """Write numbers of trials up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    return stream(generator).numpy().geometric(p, self.shape)


def _cauchy(self: _Sample, generator: Any, median: float = 0.0, sigma: float = 1.0) -> np.ndarray:
    """Write numbers of a Cauchy distribution."""
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    return stream(generator).numpy().standard_cauchy(self.shape) * sigma + median


def _log_normal(self: _Sample, generator: Any, mean: float = 1.0, std: float = 2.0) -> np.ndarray:
    """Write numbers of a log-normal distribution."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    return stream(generator).numpy().lognormal(mean, std, self.shape)


def _array(x: Any, dtype: DTypeLike | None = None) -> Any:
    """The values of a parameter, ``None`` if it is traced."""
    try:
        return np.asarray(plain(x), dtype)
    except ConcretizationError:
        return None


def _heads(noise: np.ndarray, chance: np.ndarray) -> Array:
    if np.any((chance < 0) | (chance > 1)):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    return noise < chance


def bernoulli(
    input: Tensor, p: object = None, *, generator: Generator | None = None
) -> Tensor:  # torch's name
    """1 with the probability that each element gives, else 0.

    Raises:
      RuntimeError: a probability is not in [0, 1].
    """
    given = input if p is None else p
    chance = _array(given)

    def noise(size: tuple[int, ...]) -> np.ndarray:
        return stream(generator).numpy().random(size)

    if chance is None:
        whole = drawn(noise, input.shape, np.dtype(np.float64))
        found = drawn_with(whole, _heads, [given], input.shape, input.dtype)
        found._follows = input._follows
        return found
    _heads(np.zeros(()), chance)
    return _numbers(lambda size: noise(size) < chance, input.shape, input.dtype, input)


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Write 1 with a probability, or those of a tensor, else 0."""
    if not isinstance(p, Tensor):
        return _BERNOULLI(self, p, generator=generator)
    check_write(self)
    return write("bernoulli_", self, bernoulli(self, p, generator=generator))


_BERNOULLI = _random("bernoulli_", _bernoulli)


def _numbers(draw: Any, shape: tuple[int, ...], dtype: np.dtype, input: Tensor) -> Tensor:
    """Random numbers of distributions whose parameters are a tensor."""
    result = drawn(draw, shape, dtype)
    result._follows = input._follows
    return result


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:  # torch's name
    """Random numbers of Poisson distributions with given rates."""
    rates = _array(input)
    if rates is None:
        return drawn_with(
            seeds(generator),
            lambda words, rates: np.random.default_rng(words).poisson(rates),
            [input],
            input.shape,
            input.dtype,
        )

    def draw(size: tuple[int, ...]) -> np.ndarray:
        return stream(generator).numpy().poisson(rates, size)

    return _numbers(draw, rates.shape, input.dtype, input)


def _rows_of(weights: np.ndarray) -> np.ndarray:
    """Probabilities of the rows."""
    rows = np.atleast_2d(np.asarray(weights, np.float64))
    if np.any(rows < 0) or not np.all(np.isfinite(rows)):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    totals = rows.sum(1, keepdims=True)
    if np.any(totals <= 0):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    return rows / totals


def multinomial(
    input: Tensor,  # torch's name
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Positions drawn with probabilities in proportion to the elements of each row.

    Raises:
      RuntimeError: the elements are no probabilities, or there are too few.
    """
    if len(input.shape) not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    weights = _array(input, np.float64)
    shape, kind = (*input.shape[:-1], num_samples), np.dtype(np.int64)

    def chosen(chooser: np.random.Generator, rows: np.ndarray) -> list[Any]:
        return [chooser.choice(len(row), num_samples, replacement, row) for row in rows]

    def finish(words: np.ndarray, weights: np.ndarray) -> Any:
        return np.reshape(chosen(np.random.default_rng(words), _rows_of(weights)), shape)

    if weights is None:
        return drawn_with(seeds(generator), finish, [input], shape, kind)
    rows = _rows_of(weights)

    def draw(size: tuple[int, ...]) -> np.ndarray:
        chooser = stream(generator).numpy()
        times = math.prod(size) // (len(rows) * num_samples) if num_samples else 0
        return np.reshape([chosen(chooser, rows) for _ in range(times)], size)

    return _numbers(draw, shape, kind, input)


METHODS: dict[str, Any] = {
    "copy_": copy_,
    "fill_": fill_,
    "zero_": zero_,
    "normal_": _random("normal_", _normal),
    "uniform_": _random("uniform_", _uniform),
    "random_": _random("random_", _integers),
    "bernoulli_": bernoulli_,
    "exponential_": _random("exponential_", _exponential),
    "geometric_": _random("geometric_", _geometric),
    "cauchy_": _random("cauchy_", _cauchy),
    "log_normal_": _random("log_normal_", _log_normal),
    "bernoulli": bernoulli,
    "multinomial": multinomial,
}
FUNCTIONS: dict[str, Any] = {
    "fill": fill,
    "bernoulli": bernoulli,
    "poisson": poisson,
    "multinomial": multinomial,
}
