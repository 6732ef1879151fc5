"""How tensors are made: from data, from sizes, from random numbers.

Here: ``Factories``, torch's functions that make tensors, for a default dtype; ``tensor`` and
``from_numpy`` with NumPy's. Not here: the streams of random numbers (``random``), methods that fill
a tensor (``methods.filling``).

Layer: ``autograd``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.autograd.given_data import array_of
from functrans.autograd.methods.layouts import laid_out
from functrans.autograd.methods.rows import (
    check_tensor,
    documented,
    drawn,
    drawn_in,
    drawn_with,
    number,
    plain,
    with_out,
)
from functrans.autograd.methods.shaping import extents, new_extents
from functrans.autograd.modes import modes
from functrans.autograd.promotion import (
    default_dtype,
    exact,
    torch_kind,
)
from functrans.autograd.random import Generator, check_parameters, made_like, stream
from functrans.autograd.recording import ImperativeTrace
from functrans.autograd.sizes import integer, wrong_type
from functrans.autograd.tensors import Tensor, called
from functrans.core.avals import is_differentiable_dtype
from functrans.core.dispatch import Tracer
from functrans.core.source import here
from functrans.core.state import open_traces
from functrans.errors import ConcretizationError, UnsupportedOperationError
from functrans.numpy.common import NO_VALUE
from functrans.passes.staging import StagingTracer

_INT64 = np.dtype(np.int64)
_STEPS = "number of steps must be non-negative"

# random numbers ---------------------------------------------------------------------------------


def uniform(
    generator: Generator | None, shape: tuple[int, ...], dtype: np.dtype, is_plain: bool = True
) -> np.ndarray:
    """Random numbers in [0, 1), whatever memory they are for."""
    count = math.prod(shape)
    if dtype.kind == "c":
        part = np.dtype(np.float64 if dtype.itemsize == 16 else np.float32)
        values = stream(generator).uniform(2 * count, part)
        return values.view(dtype).reshape(shape)
    return stream(generator).uniform(count, dtype).reshape(shape)


def normal(
    generator: Generator | None, shape: tuple[int, ...], dtype: np.dtype, is_plain: bool = True
) -> np.ndarray:
    """Random numbers of the normal distribution; complex ones have variance 1, too.

    Args:
      generator: where they come from.
      shape: of the numbers.
      dtype: of the numbers.
      is_plain: whether they are for memory in row-major order, where PyTorch draws them at once.
    """
    count = math.prod(shape)
    if not is_plain and dtype.kind != "c":
        return stream(generator).single_normals(shape).astype(dtype)
    if dtype.kind == "c":
        part = np.dtype(np.float64 if dtype.itemsize == 16 else np.float32)
        values = stream(generator).normal(2 * count, part) * part.type(math.sqrt(0.5))
        return values.view(dtype).reshape(shape)
    return stream(generator).normal(count, dtype).reshape(shape)


def _integers(
    generator: Generator | None, low: Any, high: Any
) -> Callable[[tuple[int, ...]], np.ndarray]:
    """What gives random integers in [low, high).

    Raises:
      RuntimeError: there are none.
    """
    low, high = integer(low, "low", "randint"), integer(high, "high", "randint")
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    return lambda size: stream(generator).integers(math.prod(size), low, high).reshape(size)


# families of factories ---------------------------------------------------------------------------


def _filled(name: str, text: str, make: Callable[..., np.ndarray]) -> Callable[..., Tensor]:
    def factory(
        self: Factories, *sizes: object, size: object = None, dtype: DTypeLike | None = None,
        requires_grad: bool = False, **_: object,
    ) -> Tensor:  # fmt: skip
        shape = self._sizes(name, sizes or (size,))
        return self.made(make(shape, dtype or self.default()), requires_grad)

    return documented(factory, name, text)


def _filled_like(name: str, text: str, number: int = 0) -> Callable[..., Tensor]:
    def factory(
        self: Factories, input: Tensor, *, dtype: DTypeLike | None = None,
        requires_grad: bool = False, **_: object,
    ) -> Tensor:  # fmt: skip
        check_tensor(name, input)
        value = laid_out(input, dtype)
        if number:
            value[...] = number
        return self._like(input, value, requires_grad)

    return documented(factory, name, text)


def _random(
    name: str, what: str, kernel: str, draw: Callable[..., np.ndarray]
) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Random numbers of given extents, and of those of a tensor; ``kernel`` is for messages."""

    def factory(
        self: Factories, *sizes: object, size: object = None, generator: Generator | None = None,
        dtype: DTypeLike | None = None, requires_grad: bool = False, **_: object,
    ) -> Tensor:  # fmt: skip
        shape = self._sizes(name, sizes or (size,))
        kind = self._floating(kernel, dtype)
        return self.drawn(lambda size: draw(generator, size, kind), shape, kind, requires_grad)

    def like(
        self: Factories, input: Tensor, *, generator: Generator | None = None,
        dtype: DTypeLike | None = None, requires_grad: bool = False, **_: object,
    ) -> Tensor:  # fmt: skip
        check_tensor(f"{name}_like", input)
        kind = self._floating(kernel, dtype or input.dtype)

        def numbers(size: tuple[int, ...], is_plain: bool) -> np.ndarray:
            return draw(generator, size, kind, is_plain)

        return self.drawn(numbers, input.shape, kind, requires_grad, laid_out(input))

    return documented(factory, name, f"Random numbers{what}."), documented(
        like, f"{name}_like", f"Random numbers{what}, with extents and dtype of another tensor."
    )


# factories ---------------------------------------------------------------------------------------


class Factories:
    """Torch's functions that make tensors, for one default dtype.

    Keywords of torch that mean nothing here (``device``, ``layout``, ``pin_memory``,
    ``memory_format``, ``names``) are accepted and ignored.

    Attributes:
      default: gives the dtype of Python floats and of results without dtype.
      follows_torch: whether integers become torch's default dtype in floating operations.
    """

    def __init__(self, default: Callable[[], np.dtype], follows_torch: bool) -> None:
        self.default = default
        self.follows_torch = follows_torch

    def made(self, value: np.ndarray, requires_grad: bool) -> Tensor:
        """A tensor on an array.

        Raises:
          RuntimeError: gradients of integers are asked for.
        """
        if requires_grad and not is_differentiable_dtype(value.dtype):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        result = Tensor.of(value)
        result._follows = self.follows_torch
        if modes.inference:
            result._inference = True
        if requires_grad:
            result.requires_grad_()
        return result

    def drawn(
        self,
        draw: Callable[..., np.ndarray],
        shape: tuple[int, ...],
        dtype: Any,
        requires_grad: bool,
        layout: np.ndarray | None = None,
    ) -> Tensor:
        """A tensor of random numbers; see ``rows.drawn`` and ``rows.drawn_in``."""
        kind = np.dtype(dtype)
        result = drawn(draw, shape, kind) if layout is None else drawn_in(layout, draw, kind)
        result._follows = self.follows_torch
        return result.requires_grad_() if requires_grad else result

    # data

    def tensor(
        self,
        data: object,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """A tensor with a copy of data.

        Raises:
          UnsupportedOperationError: the data belong to a transform of a function of arrays.
        """
        if modes.session is not None and isinstance(data, np.ndarray):  # read anew in each call
            copied: Any = self.from_numpy(data).clone()
            copied = copied if dtype is None else copied.to(np.dtype(dtype))
            return copied.requires_grad_() if requires_grad else copied
        if isinstance(data, Tracer) and not isinstance(data, Tensor):
            lifted = self._traced(data)
            if lifted is not None:
                kind = dtype if dtype is not None else lifted.dtype
                result = lifted.to(np.dtype(kind))
                return result.requires_grad_() if requires_grad else result
            raise UnsupportedOperationError(
                f"tensor(): {data._describe()}{here()} cannot become a tensor: its derivative "
                "would be lost. Give the tensor to the transform (ft.grad(f)(tensor(x)), or "
                "functrans.autograd.func.grad), or compute with functrans.numpy"
            )
        return self.made(array_of(data, dtype, self.default()), requires_grad)

    def _traced(self, data: object) -> Tensor | None:
        """An array argument of a step that ``jit`` traces, as a tensor; ``None`` for others."""
        session = modes.session
        if session is None or not isinstance(data, StagingTracer):
            return None
        trace = session.trace  # leaves a trace that knows of no tensors
        others = [t for t in open_traces.get() if not isinstance(t, ImperativeTrace)]
        if others != [session.staging] or data._trace is not session.staging:
            return None  # the argument may itself belong to a transform around the step
        result: Tensor = trace.tensor(data)
        result._follows = self.follows_torch
        return result

    def as_tensor(self, data: object, dtype: DTypeLike | None = None, **_: object) -> Tensor:
        """Data as a tensor: without a copy for tensors and arrays of the dtype."""
        if isinstance(data, Tensor):
            return data if dtype is None else data.to(np.dtype(dtype))
        if isinstance(data, np.ndarray) and (dtype is None or data.dtype == dtype):
            return self.from_numpy(data)
        return self.tensor(data, dtype=dtype)

    def asarray(
        self,
        obj: object,
        *,
        dtype: DTypeLike | None = None,
        copy: bool | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """Data as a tensor; with ``copy`` in memory of its own."""
        result = self.tensor(obj, dtype=dtype) if copy else self.as_tensor(obj, dtype)
        return result.requires_grad_() if requires_grad else result

    def from_numpy(self, ndarray: np.ndarray) -> Tensor:
        """A tensor on the memory of an array.

        In a step that ``jit`` traces an array that is an argument is a value, and is copied.

        Raises:
          TypeError: it is no array of numbers.
        """
        traced = self._traced(ndarray)
        if traced is not None:
            return traced
        if not isinstance(ndarray, np.ndarray):
            raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
        if ndarray.dtype.kind not in "fciub" and ndarray.dtype.name != "bfloat16":
            raise TypeError(f"can't convert np.ndarray of type {ndarray.dtype}")
        result = self.made(ndarray, False)
        if modes.session is not None:
            modes.session.share(result)
        return result

    def scalar_tensor(
        self, s: object, *, dtype: DTypeLike | None = None, requires_grad: bool = False, **_: object
    ) -> Tensor:
        """A number as a tensor, floating by default."""
        return self.made(np.array(s, dtype or self.default()), requires_grad)

    # sizes

    def _sizes(self, name: str, size: Any) -> tuple[int, ...]:
        shape = extents(size, name)
        if any(n < 0 for n in shape):
            raise RuntimeError(f"{name}: Dimension size must be non-negative.")
        return shape

    zeros = _filled("zeros", "Zeros.", np.zeros)
    ones = _filled("ones", "Ones.", np.ones)
    empty = _filled("empty", "A tensor whose elements are not set: zeros.", np.zeros)

    def empty_strided(
        self,
        size: Any,
        stride: Any,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """A tensor of a layout whose elements are not set: zeros.

        Raises:
          RuntimeError: sizes or strides are negative, or their numbers differ.
        """
        kind, size = np.dtype(dtype or self.default()), new_extents((size,), "empty_strided")
        stride = extents((stride,), "empty_strided", "stride")
        if len(size) != len(stride):
            raise RuntimeError(
                f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
                f"({len(stride)})"
            )
        if all(size) and any(n > 1 and s < 0 for n, s in zip(size, stride, strict=True)):
            words = f"with sizes={[*size]} and strides={[*stride]}"
            raise RuntimeError(f"Storage size calculation overflowed {words}")
        count = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        memory = np.zeros(count if all(size) else 0, kind)
        steps = tuple(s * kind.itemsize for s in stride)
        value = np.lib.stride_tricks.as_strided(memory, size, steps)
        return self.made(value, requires_grad)

    def full(
        self,
        size: object,
        fill_value: object,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """A tensor of one number; its dtype is that of the number."""
        shape = self._sizes("full", size)
        if fill_value is None or isinstance(fill_value, (str, bytes, list, tuple)):
            raise wrong_type(fill_value, "fill_value", "full", "Number")
        number = plain(fill_value, "item()")
        kind = (
            dtype
            or array_of(
                number.item() if hasattr(number, "item") else number, None, self.default()
            ).dtype
        )
        return self.made(np.full(shape, exact(number, np.dtype(kind))), requires_grad)

    def eye(
        self,
        n: int,
        m: Any = NO_VALUE,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """The identity matrix.

        Raises:
          RuntimeError: a negative size.
        """
        words = "{} must be greater or equal to 0, got {{}}"
        n = integer(n, "n", "eye", least=0, words=words.format("n"))
        m = n if m is NO_VALUE else integer(m, "m", "eye", least=0, words=words.format("m"))
        return self.made(np.eye(n, m, dtype=dtype or self.default()), requires_grad)

    def arange(
        self,
        start: Any = None,
        end: Any = None,
        step: Any = 1,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """Numbers from ``start`` up to but not including ``end``: int64 if all are integers.

        Raises:
          RuntimeError: the step is 0, or leads away from the end.
        """
        if end is None:
            start, end = 0, start
        start = number("arange", "start", 0 if start is None else start)
        end, step = number("arange", "end", end), number("arange", "step", step)
        start, end, step = (x.item() if hasattr(x, "item") else x for x in (start, end, step))
        if step == 0:
            raise RuntimeError("step must be nonzero")
        if (end - start) * step < 0:
            raise RuntimeError("upper bound and lower bound inconsistent with step sign")
        is_integer = all(isinstance(x, int) for x in (start, end, step))
        kind = np.dtype(dtype or (_INT64 if is_integer else self.default()))
        count = math.ceil((end - start) / step)
        working = np.dtype(np.int64) if is_integer else np.dtype(np.float64)
        value = (start + np.arange(count, dtype=working) * step).astype(kind)
        return self.made(value, requires_grad)

    def range(
        self,
        start: Any,
        end: Any,
        step: Any = 1,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """Numbers from ``start`` up to and including ``end``."""
        count = math.floor((end - start) / step) + 1
        value = (start + np.arange(count) * step).astype(dtype or self.default())
        return self.made(value, requires_grad)

    def linspace(
        self,
        start: Any,
        end: Any,
        steps: int,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """Numbers at even distances, both ends included.

        Raises:
          RuntimeError: a negative number of them, or ends that the dtype does not have.
        """
        steps = integer(steps, "steps", "linspace", least=0, words=_STEPS)
        start, end = number("linspace", "start", start), number("linspace", "end", end)
        value = _spaced(float(start), float(end), steps, np.dtype(dtype or self.default()))
        return self.made(value, requires_grad)

    def logspace(
        self,
        start: Any,
        end: Any,
        steps: int,
        base: float = 10.0,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """Powers of a base, whose exponents have even distances."""
        steps = integer(steps, "steps", "logspace", least=0, words=_STEPS)
        value = np.linspace(float(start), float(end), steps)
        value = np.power(float(base), value).astype(dtype or self.default())
        return self.made(value, requires_grad)

    # like another tensor

    def _like(self, input: Tensor, value: np.ndarray, requires_grad: bool) -> Tensor:
        result = self.made(value, requires_grad)
        if value.dtype.kind in "iub" and input.dtype.kind in "iub":
            result._follows = input._follows
        return made_like(result, input)

    zeros_like = _filled_like(
        "zeros_like", "Zeros with the extents, dtype and layout of another tensor."
    )
    ones_like = _filled_like(
        "ones_like", "Ones with the extents, dtype and layout of another tensor.", 1
    )
    empty_like = _filled_like(
        "empty_like", "A tensor like another one whose elements are not set: zeros."
    )

    def full_like(
        self,
        input: Tensor,
        fill_value: object,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """One number with the extents, dtype and layout of another tensor."""
        check_tensor("full_like", input)
        kind = np.dtype(dtype or input.dtype)
        number = exact(plain(fill_value, "item()"), kind)
        value = laid_out(input, kind)
        value[...] = number
        return self._like(input, value, requires_grad)

    # random numbers

    def _floating(self, name: str, dtype: DTypeLike | None) -> np.dtype:
        kind = np.dtype(dtype or self.default())
        if kind.kind in "iub":
            raise NotImplementedError(f"\"{name}\" not implemented for '{torch_kind(kind)}'")
        return kind

    rand, rand_like = _random("rand", ", uniform in [0, 1)", "check_uniform_bounds", uniform)
    randn, randn_like = _random("randn", " of the normal distribution", "normal_kernel_cpu", normal)

    def randint(
        self,
        low: Any = 0,
        high: Any = None,
        size: object = None,
        *,
        generator: Generator | None = None,
        dtype: object = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """Random integers in [low, high).

        Raises:
          RuntimeError: there are none.
        """
        if size is None:
            low, high, size = 0, low, high
        elif high is None:
            low, high = 0, low
        shape = self._sizes("randint", size)
        numbers = _integers(generator, low, high)
        return self.drawn(numbers, shape, dtype or np.int64, requires_grad)

    def randperm(
        self,
        n: int,
        *,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """The integers below ``n`` in random order."""
        n = integer(n, "n", "randperm", least=0)

        def draw(size: tuple[int, ...]) -> np.ndarray:
            count = math.prod(size[:-1])
            orders = [stream(generator).permutation(n) for _ in range(count)]
            return np.reshape(orders, size)

        return self.drawn(draw, (n,), dtype or np.int64, requires_grad)

    def randint_like(
        self,
        input: Tensor,
        low: int = 0,
        high: int | None = None,
        *,
        dtype: DTypeLike | None = None,
        requires_grad: bool = False,
        **_: object,
    ) -> Tensor:
        """Random integers in [low, high), with extents and dtype of another tensor."""
        check_tensor("randint_like", input)
        kind = dtype or input.dtype
        if high is None:
            low, high = 0, low
        numbers = _integers(None, low, high)
        return self.drawn(
            lambda size, is_plain: numbers(size), input.shape, kind, requires_grad, laid_out(input)
        )

    def normal(
        self,
        mean: Any,
        std: Any = 1.0,
        size: Any = None,
        *,
        generator: Generator | None = None,
        dtype: DTypeLike | None = None,
        **_: object,
    ) -> Tensor:
        """Random numbers of normal distributions.

        Raises:
          RuntimeError: a negative deviation.
        """
        typed = [x.dtype for x in (mean, std) if isinstance(x, Tensor) and size is None]
        kind = self._floating("normal_kernel_cpu", dtype or (typed[0] if typed else None))
        shapes = (x.shape if isinstance(x, Tensor) else np.shape(x) for x in (mean, std))
        shape = np.broadcast_shapes(*shapes) if size is None else tuple(size)

        check_parameters(mean, std)

        def noise(size: tuple[int, ...]) -> np.ndarray:
            return normal(generator, size, kind)

        try:
            middle, width = (np.asarray(plain(x)) for x in (mean, std))
        except ConcretizationError:
            whole = self.drawn(noise, shape, kind, False)
            return drawn_with(whole, _placed_normal, [std, mean], shape, kind)
        _placed_normal(np.zeros(()), width, middle)
        return self.drawn(
            lambda size: _placed_normal(noise(size), width, middle), shape, kind, False
        )

    def table(self) -> dict[str, Any]:
        """The functions by name."""
        of_data = (
            "tensor", "as_tensor", "asarray", "from_numpy", "scalar_tensor", "empty_strided",
            "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like",
            "randint_like",
        )  # fmt: skip
        of_sizes = (
            "zeros", "ones", "empty", "full", "eye", "arange", "range", "linspace", "logspace",
            "rand", "randn", "randint", "randperm", "normal",
        )  # fmt: skip
        return {
            **{name: called(getattr(self, name), name) for name in of_data},
            **{name: with_out(name, getattr(self, name), True) for name in of_sizes},
        }


def _spaced(start: float, end: float, steps: int, dtype: np.dtype) -> np.ndarray:
    """Numbers at even distances, as PyTorch computes them in single and double precision.

    Its ends are numbers of the dtype, each element is counted from the nearer one and rounded once
    (here, of double precision, one of about a thousand twice).

    Raises:
      RuntimeError: the dtype has no such end.
    """
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        for limit in (start, end):
            if not limits.min <= limit <= limits.max:
                raise RuntimeError(f"value cannot be converted to type {dtype} without overflow")
        start, end = int(start), int(end)
    if dtype.char not in "fd":
        return np.linspace(start, end, steps).astype(dtype)
    with np.errstate(over="ignore"):
        first, last = dtype.type(start), dtype.type(end)
    if np.isinf([first, last]).tolist() != np.isinf([start, end]).tolist():
        raise RuntimeError(f"value cannot be converted to type {dtype} without overflow")
    if steps == 1:
        return np.array([first])
    with np.errstate(over="ignore", invalid="ignore"):
        step = (last - first) / dtype.type(max(steps - 1, 1))
        wide = np.float64 if dtype.char == "f" else np.longdouble
        after: Any = np.arange(steps, dtype=wide)
        from_first, from_last = first + step * after, last - step * after[::-1]
        return np.where(after < steps // 2, from_first, from_last).astype(dtype)


def _placed_normal(noise: np.ndarray, std: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Numbers of other normal distributions."""
    if np.any(std < 0):
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std.min():g}")
    return np.asarray(noise * std + mean)


FLOAT64 = Factories(lambda: default_dtype, follows_torch=False)
"""The factories of ``functrans.autograd``."""


def tensor(data: object, dtype: DTypeLike | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor with a copy of data.

    Args:
      data: a number, nested sequences of numbers, an array.
      dtype: that of the tensor; by default that of NumPy.
      requires_grad: whether gradients are accumulated in it.

    Raises:
      RuntimeError: gradients of integers are asked for, or the data are no numbers.
      ValueError: sequences of different lengths, or of text.

    Example:
      >>> tensor([1.0, 2.0], requires_grad=True)
      tensor([1., 2.], requires_grad=True)
    """
    return FLOAT64.tensor(data, dtype=dtype, requires_grad=requires_grad)


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor on the memory of an array: writes to either are seen in the other.

    Raises:
      TypeError: it is no array of numbers.

    Example:
      >>> a = np.zeros(2)
      >>> t = from_numpy(a)
      >>> a[0] = 5.0
      >>> t
      tensor([5., 0.])
    """
    return FLOAT64.from_numpy(array)
