"""Methods of ``Tensor`` that overwrite it: copies, constants, random numbers.

Not here: in-place forms of operations, which are made of these (``rows``).

Layer: ``autograd``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd import factories
from functrans.autograd.composites import alias, named
from functrans.autograd.methods.layouts import laid_out, memory_of
from functrans.autograd.methods.rows import (
    by_name,
    constant,
    documented,
    drawn,
    drawn_by_numpy,
    drawn_in,
    drawn_with,
    lifted,
    looked_at,
    plain,
    with_out_by_name,
)
from functrans.autograd.modes import entered
from functrans.autograd.promotion import exact, to_dtype, torch_kind
from functrans.autograd.random import Generator, check_filled, check_parameters, scaled, stream
from functrans.autograd.recording import enter_session
from functrans.autograd.sizes import integer, wrong_type
from functrans.autograd.tensors import Tensor, called
from functrans.autograd.writes import check_read, check_write, write
from functrans.core.dispatch import Tracer
from functrans.core.values import Array
from functrans.errors import ConcretizationError
from functrans.primitives.structural import broadcast_to


def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Write the elements of another tensor, which is broadcast and converted.

    Raises:
      RuntimeError: it does not broadcast.
      TypeError: it is neither a tensor nor an array nor a number.
    """
    if not isinstance(other, (Tensor, Tracer, np.ndarray, np.generic, int, float, complex)):
        raise wrong_type(other, "other", "copy_", "Tensor")
    check_write(self)
    check_read("copy_", other)
    source = lifted(other, self)
    try:
        full: tuple[int, ...] = self.shape
        if source.shape != full:
            full = np.broadcast_shapes(source.shape, full)
    except ValueError:
        raise RuntimeError(
            f"The size of tensor a ({self.shape[-1] if self.shape else 1}) must match the size of "
            f"tensor b ({source.shape[-1] if source.shape else 1}) at non-singleton dimension "
            f"{max(len(self.shape) - 1, 0)}"
        ) from None
    if full != self.shape:
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(full)}"
        )
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
        check_read("fill_", value)
        if value.shape:
            raise RuntimeError(
                "fill_ only supports 0-dimension value tensor but got tensor with "
                f"{len(value.shape)} dimensions."
            )
        wide = broadcast_to(alias(to_dtype(value, self.dtype)), self.shape)
        return write("fill_", self, named(wide, "FillBackward3"))
    write("fill_", self, constant(exact(value, self.dtype)))
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
      is_plain: whether its memory is in row-major order.
    """

    def __init__(
        self, dtype: np.dtype, shape: tuple[int, ...] = (0,), is_plain: bool = True
    ) -> None:
        self.dtype = dtype
        self.shape = shape
        self.is_plain = is_plain


_NO_NUMBERS = Generator()
"""What checks of parameters are given."""


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
            draw(_Sample(self.dtype), _NO_NUMBERS, *args, **kwargs)
        check_write(self)
        check_filled(name, self)

        def numbers(size: tuple[int, ...], is_plain: bool) -> np.ndarray:
            return draw(_Sample(self.dtype, size, is_plain), generator, *args, **kwargs)

        return write(name, self, drawn_in(memory_of(self), numbers, np.dtype(self.dtype)))

    return documented(method, name, draw.__doc__)


def _check_floating(name: str, self: _Sample) -> None:
    if self.dtype.kind in "iub":
        raise NotImplementedError(f"\"{name}\" not implemented for '{torch_kind(self.dtype)}'")


def _normal(self: _Sample, generator: Any, mean: float = 0.0, std: float = 1.0) -> np.ndarray:
    """Write numbers of a normal distribution."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    _check_floating("normal_kernel_cpu", self)
    return factories.normal(generator, self.shape, self.dtype, self.is_plain) * std + mean


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
    return _share(self, generator) < chance


def _share(self: _Sample, generator: Any) -> np.ndarray:
    """Uniform numbers, of full precision for every dtype."""
    return factories.uniform(generator, self.shape, np.dtype(np.float64))


def _exponential(self: _Sample, generator: Any, lambd: float = 1.0) -> np.ndarray:
    """Write numbers of an exponential distribution."""
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return np.asarray(np.log1p(-_share(self, generator)) * (-1 / lambd))


def _geometric(self: _Sample, generator: Any, p: float) -> np.ndarray:
    """Write numbers of trials up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    with np.errstate(divide="ignore"):
        return np.asarray(np.ceil(np.log(_share(self, generator)) / np.log1p(-p)))


def _cauchy(self: _Sample, generator: Any, median: float = 0.0, sigma: float = 1.0) -> np.ndarray:
    """Write numbers of a Cauchy distribution."""
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    return np.asarray(median + sigma * np.tan(math.pi * (_share(self, generator) - 0.5)))


def _log_normal(self: _Sample, generator: Any, mean: float = 1.0, std: float = 2.0) -> np.ndarray:
    """Write numbers of a log-normal distribution."""
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    return np.asarray(np.exp(mean + std * stream(generator).single_normals(self.shape)))


def _array(x: Any, dtype: DTypeLike | None = None) -> Any:
    """The values of a parameter, ``None`` if it is traced."""
    check_parameters(x)
    try:
        return np.asarray(plain(x), dtype)
    except ConcretizationError:
        return None


def _heads(noise: np.ndarray, chance: np.ndarray) -> Array:
    if np.any((chance < 0) | (chance > 1)):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    return noise < chance


def bernoulli(input: Tensor, p: object = None, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that each element gives, else 0.

    Raises:
      RuntimeError: a probability is not in [0, 1].
    """
    check_parameters(input)
    return _heads_of(input, input if p is None else p, generator)


def _heads_of(
    input: Tensor, given: Any, generator: Generator | None, layout: np.ndarray | None = None
) -> Tensor:
    """1 with given probabilities, else 0; numbers decide of the precision of the probabilities."""
    chance = _array(given)
    is_single = isinstance(given, Tensor) and given.dtype.itemsize < 8
    kind = np.dtype(np.float32 if is_single else np.float64)

    def noise(size: tuple[int, ...]) -> np.ndarray:
        return factories.uniform(generator, size, kind)

    if chance is None or not (layout is None or layout.flags.c_contiguous):
        whole = _noise(noise, input.shape, kind, layout)
        found = drawn_with(whole, _heads, [given], input.shape, input.dtype)
        found._follows = input._follows
        return found
    _heads(np.zeros(()), chance)
    return _numbers(lambda size: noise(size) < chance, input.shape, input.dtype, input)


def _noise(
    draw: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], kind: np.dtype,
    layout: np.ndarray | None,
) -> Tensor:  # fmt: skip
    """Random numbers, in the order of memory of a layout if there is one."""
    if layout is None:
        return drawn(draw, shape, kind)
    return drawn_in(layout, lambda size, is_plain: draw(size), kind)


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Write 1 with a probability, or those of a tensor, else 0."""
    if not isinstance(p, Tensor):
        return _BERNOULLI(self, p, generator=generator)
    check_write(self)
    check_parameters(p)
    check_filled("bernoulli_", self, p)
    return write("bernoulli_", self, _heads_of(self, p, generator, memory_of(self)))


_BERNOULLI = _random("bernoulli_", _bernoulli)


def _numbers(draw: Any, shape: tuple[int, ...], dtype: np.dtype, input: Tensor) -> Tensor:
    """Random numbers of distributions whose parameters are a tensor."""
    result = drawn(draw, shape, dtype)
    result._follows = input._follows
    return result


def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Random numbers of Poisson distributions with given rates."""

    def draw(chooser: np.random.Generator, size: Any, rates: Any) -> Any:
        return chooser.poisson(rates, size)

    found = drawn_by_numpy(generator, draw, input.shape, np.dtype(input.dtype), input)
    found._follows = input._follows
    return found


def _check_binomial(count: Any, prob: Any) -> None:
    for name, given in (("count", count), ("prob", prob)):
        if not isinstance(given, Tensor):
            raise TypeError(
                f"binomial(): argument '{name}' must be Tensor, not {type(given).__name__}"
            )
        if given.dtype.kind != "f":
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: "
                f"{torch_kind(given.dtype)}"
            )
    if count.dtype != prob.dtype:
        raise RuntimeError(
            f"Found dtype {torch_kind(prob.dtype)} but expected {torch_kind(count.dtype)}"
        )


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of successes in ``count`` trials of probability ``prob``; both broadcast.

    Raises:
      TypeError: one of them is no tensor.
      ValueError: one of them is of integers.
      RuntimeError: their dtypes differ, or one of them holds NaN.
    """
    _check_binomial(count, prob)
    shape = np.broadcast_shapes(count.shape, prob.shape)

    def draw(chooser: np.random.Generator, size: Any, trials: Any, chance: Any) -> Any:
        if np.any(np.isnan(trials)) or np.any(np.isnan(chance)):
            raise RuntimeError("binomial: count and prob must not be NaN")
        whole = np.maximum(trials, 0).astype(np.int64)
        return chooser.binomial(whole, np.clip(chance, 0, 1), size)

    found = drawn_by_numpy(generator, draw, shape, np.dtype(count.dtype), count, prob)
    found._follows = count._follows
    return found


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
    input: Tensor,
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
    words = "cannot sample n_sample <= 0 samples"
    num_samples = integer(num_samples, "num_samples", "multinomial", least=1, words=words)
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        )
    weights = _array(input, np.float64)
    shape, kind = (*input.shape[:-1], num_samples), np.dtype(np.int64)
    is_searched = replacement and num_samples > 1
    each = shape if is_searched else input.shape
    shares = functools.partial(factories.uniform, generator, dtype=np.dtype(np.float64))

    def chosen(u: np.ndarray, rows: np.ndarray) -> np.ndarray:
        n = rows.shape[-1]
        if is_searched:
            pairs = zip(np.cumsum(rows, -1).reshape(-1, n), u.reshape(-1, num_samples), strict=True)
            return np.minimum([np.searchsorted(*pair) for pair in pairs], n - 1).reshape(u.shape)
        with np.errstate(divide="ignore"):
            order = np.argsort(np.log1p(-u) / rows, -1, kind="stable")
        return np.asarray(order[..., ::-1][..., :num_samples])

    def checked(weights: np.ndarray) -> np.ndarray:
        rows = _rows_of(weights)
        if not replacement and np.any((rows > 0).sum(-1) < num_samples):
            raise RuntimeError(
                "invalid multinomial distribution (with replacement=False, not enough "
                "non-negative category to sample)"
            )
        return rows

    def finish(u: np.ndarray, weights: np.ndarray) -> Any:
        rows = checked(weights)
        return chosen(u.reshape(len(rows), each[-1]), rows).reshape(shape)

    if weights is not None:
        checked(weights)
    layout = None if is_searched else laid_out(input)
    if weights is None or not (layout is None or layout.flags.c_contiguous):
        noise = _noise(shares, each, np.dtype(np.float64), layout)
        return drawn_with(noise, finish, [input], shape, kind)
    rows = checked(weights)

    def draw(size: tuple[int, ...]) -> np.ndarray:
        lead = size[: len(size) - len(shape)]
        many = np.broadcast_to(rows, (math.prod(lead), *rows.shape))
        u = shares((*lead, *each)).reshape(*many.shape[:-1], each[-1])
        return chosen(u, many).reshape(size)

    return _numbers(draw, shape, kind, input)


METHODS: dict[str, Any] = {
    **by_name(copy_, fill_, zero_, bernoulli_, bernoulli, multinomial),
    "normal_": _random("normal_", _normal),
    "uniform_": _random("uniform_", _uniform),
    "random_": _random("random_", _integers),
    "exponential_": _random("exponential_", _exponential),
    "geometric_": _random("geometric_", _geometric),
    "cauchy_": _random("cauchy_", _cauchy),
    "log_normal_": _random("log_normal_", _log_normal),
}  # fmt: skip
FUNCTIONS: dict[str, Any] = {
    **by_name(fill, binomial, poisson),
    **with_out_by_name(bernoulli, multinomial),
}  # fmt: skip
