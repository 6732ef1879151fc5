"""Random numbers of the imperative side: generators, ``manual_seed``, distributions.

Here: ``Generator`` and the streams of numbers that fill tensors. Not here: the functions that make
random tensors (``factories``), methods that fill one (``methods.filling``).

The generator is the Mersenne Twister; uniform, normal and integer numbers are drawn from its 32-bit
words as PyTorch's CPU generator draws them, so that a seed means the same numbers, up to rounding
in ``log`` and ``cos``.

Layer: ``autograd``. Sources: Matsumoto & Nishimura, Mersenne Twister, ACM TOMACS 8 (1998); Box &
Muller, A note on the generation of random normal deviates, Ann. Math. Stat. 29 (1958).
"""

from __future__ import annotations

import functools
import math
import secrets
import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from functrans.autograd.modes import modes
from functrans.autograd.promotion import torch_tensor
from functrans.autograd.recording import innermost
from functrans.autograd.tensors import Tensor
from functrans.control.callbacks import io_callback
from functrans.core.dispatch import Tracer, within
from functrans.core.source import here
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError

_DEFAULT_SEED = 67280421310721
_BLOCK = 16
_STATE = np.dtype(
    [
        *[("seed", "<u8"), ("left", "<i4"), ("seeded", "<i4"), ("next", "<u8")],
        *[("words", "<u8", 624), ("x", "<f8"), ("spare", "<f8"), ("rho", "<f8")],
        *[("has_spare", "<i4"), ("pad", "<i4"), ("float_spare", "<f4"), ("has_float", "<i4")],
    ]
)
"""PyTorch's state of a generator, in bytes. 624 words and ``left - 1`` of them not yet drawn."""


def _stream_of(seed: int) -> np.random.RandomState:
    return np.random.RandomState(seed & 0xFFFFFFFF)  # the seeding of the original generator


def _raw_words(stream: np.random.RandomState, count: int) -> np.ndarray:
    words: np.ndarray = np.asarray(stream._bit_generator.random_raw(count), np.uint64)
    return words


def words_of_seed(seed: int, count: int) -> np.ndarray:
    """The first 32-bit words of a seed's stream, which are the same in each call of a step."""
    return _raw_words(_stream_of(seed), count)


class Generator:
    """A stream of random numbers.

    Args:
      device: accepted and ignored.

    Example:
      >>> g = Generator().manual_seed(0)
      >>> g.initial_seed()
      0
    """

    def __init__(self, device: object = "cpu") -> None:
        self.device = device
        self._lock = threading.RLock()
        self._start(_DEFAULT_SEED)
        if modes.session is not None:  # a new one in each call
            self.manual_seed(_DEFAULT_SEED)

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream that belongs to a seed.

        Raises:
          ValueError: the seed has more than 64 bits.
        """
        number = int(seed)
        if not -(1 << 63) <= number < 1 << 64:
            raise ValueError(f"Overflow when unpacking long long: {number} has more than 64 bits")
        if modes.session is None:
            self._start(number)
        else:
            staged(functools.partial(self._start, number), None)
        return self

    def _start(self, seed: int) -> None:
        with self._lock:
            self._seed = seed % (1 << 64)
            self._words = _stream_of(self._seed)
            self._spare: float | None = None

    def seed(self) -> int:
        """Start a stream that nobody knows; returns its seed."""
        self._check_running("seed()")
        seed = secrets.randbits(53)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed of the stream."""
        self._check_running("initial_seed()")
        return self._seed

    def _check_running(self, what: str) -> None:
        """Refuse what would be a constant of a step that ``jit`` traces.

        Raises:
          UnsupportedOperationError: one is traced.
        """
        if modes.session is not None:
            raise UnsupportedOperationError(
                f"{modes.session.staging.label}: {what} of a generator, asked for{here()} while "
                "the step is traced, would be the same in each call. Ask outside and pass them as "
                "arguments; operations on tensors (torch.rand, torch.randperm) draw anew"
            )

    def get_state(self) -> Tensor:
        """The place in the stream, for ``set_state``: the bytes that PyTorch keeps of it."""
        if modes.session is None:
            return torch_tensor(self._bytes())
        state = staged(self._bytes, ShapeDtypeStruct((_STATE.itemsize,), np.dtype(np.uint8)))
        return torch_tensor(state._value, state._trace)

    def _bytes(self) -> np.ndarray:
        with self._lock:
            state_of: Any = self._words.get_state(legacy=True)
            words, place = state_of[1:3]
            state = np.zeros(1, _STATE)
            for name, value in {
                "seed": self._seed, "left": len(words) + 1 - place, "seeded": 1, "next": place,
                "words": words, "spare": self._spare or 0.0, "has_spare": self._spare is not None,
            }.items():  # fmt: skip
                state[name] = value
        return state.view(np.uint8)

    def set_state(self, new_state: Tensor) -> Generator:
        """Go to a place in a stream.

        Raises:
          TypeError: it is no tensor of bytes.
          RuntimeError: it is none that ``get_state`` gives.
        """
        if not isinstance(new_state, Tensor):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
        if new_state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if modes.session is None:
            self._go(new_state.numpy())
        else:
            staged(self._go, None, new_state)
        return self

    def _go(self, new_state: np.ndarray) -> None:
        numbers: np.ndarray = np.ascontiguousarray(new_state).reshape(-1)
        if numbers.size != _STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.itemsize} but found the input "
                f"RNG state size to be {numbers.size}"
            )
        state = numbers.view(_STATE)[0]
        words: Any = state["words"].astype(np.uint32)
        left = int(state["left"])
        if not state["seeded"] or not 0 < left <= len(words):
            raise RuntimeError("Invalid mt19937 state: it is none that get_state() gives")
        with self._lock:
            self._seed = int(state["seed"])
            self._words.set_state(("MT19937", words, len(words) + 1 - left, 0, 0.0))
            self._spare = float(state["spare"]) if state["has_spare"] else None

    # streams

    def words(self, count: int) -> np.ndarray:
        """32-bit words."""
        if count:
            self._check_running("random numbers")
        with self._lock:
            return _raw_words(self._words, count)

    def long_words(self, count: int) -> np.ndarray:
        """64-bit words: two of 32 bits each, the high one first."""
        pairs = self.words(2 * count).reshape(count, 2)
        return np.asarray((pairs[:, 0] << np.uint64(32)) | pairs[:, 1], np.uint64)

    def uniform(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Numbers in [0, 1) of full precision of a dtype."""
        if dtype == np.float64:
            mask = np.uint64((1 << 53) - 1)
            return np.asarray((self.long_words(count) & mask) * 2.0**-53)
        bits = {"float32": 24, "float16": 11, "bfloat16": 8}[dtype.name]
        mask = np.uint64((1 << bits) - 1)
        return ((self.words(count) & mask) * 2.0**-bits).astype(dtype)

    def normal(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Numbers of the normal distribution with mean 0 and deviation 1."""
        if count < _BLOCK:
            return np.array([self._one_normal() for _ in range(count)]).astype(dtype)
        working = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        values = self.uniform(count, working)
        whole = count - count % _BLOCK
        values[:whole] = _pairs(values[:whole])
        if whole < count:
            values[-_BLOCK:] = _pairs(self.uniform(_BLOCK, working))
        return np.asarray(values, dtype)

    def single_normals(self, shape: tuple[int, ...]) -> np.ndarray:
        """Those that come one after the other, whatever their number is, in float64."""
        return np.array([self._one_normal() for _ in range(math.prod(shape))]).reshape(shape)

    def _one_normal(self) -> float:
        """The next one; they come in pairs."""
        self._check_running("random numbers")
        with self._lock:
            if self._spare is not None:
                value, self._spare = self._spare, None
                return value
            first, second = self.uniform(2, np.dtype(np.float64)).tolist()
            radius = math.sqrt(-2 * math.log1p(-second))
            self._spare = radius * math.sin(2 * math.pi * first)
            return radius * math.cos(2 * math.pi * first)

    def integers(self, count: int, low: int, high: int) -> np.ndarray:
        """Integers in [low, high)."""
        span = high - low
        words = self.long_words(count) if span >= 1 << 32 else self.words(count)
        return (words % np.uint64(span)).astype(np.int64) + low

    def permutation(self, count: int) -> np.ndarray:
        """The integers below a number in random order."""
        words = self.words(max(count - 1, 0))
        left = np.arange(count, 1, -1, dtype=np.uint64)
        order = list(range(count))  # its elements are exchanged faster than an array's
        for i, step in enumerate((words % left).tolist()):
            order[i], order[i + step] = order[i + step], order[i]
        return np.array(order, np.int64)

    def numpy(self) -> np.random.Generator:
        """A generator of NumPy, seeded from the stream: for the other distributions."""
        return np.random.default_rng(self.words(4).tolist())


def _pairs(uniform: np.ndarray) -> np.ndarray:
    """Normal numbers of uniform ones: the halves of each block are radius and angle."""
    blocks = uniform.reshape(-1, 2, _BLOCK // 2)
    radius = np.sqrt(-2 * np.log(1 - blocks[:, 0]))
    angle = (2 * math.pi) * blocks[:, 1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)


def scaled(numbers: np.ndarray, factor: float, offset: float) -> np.ndarray:
    """``numbers * factor + offset``, rounded once as by a fused multiply-add.

    Args:
      numbers: floating numbers.
      factor: rounded to their dtype.
      offset: rounded to their dtype.

    Reference: Dekker, A floating-point technique for extending the available precision, Numer.
    Math. 18 (1971), for the exact product; Knuth, TAOCP 2, 4.2.2, for the exact sum.
    """
    dtype = numbers.dtype
    a, b = dtype.type(factor), dtype.type(offset)
    if dtype == np.float32:
        return np.asarray(numbers.astype(np.float64) * np.float64(a) + np.float64(b), dtype)
    if dtype != np.float64:
        return np.asarray(numbers * a + b)
    product = numbers * a
    high, low = _halves(numbers)
    a_high, a_low = _halves(a)
    lost = ((high * a_high - product) + high * a_low + low * a_high) + low * a_low
    total = product + b
    part = total - product
    rest = (product - (total - part)) + (b - part)
    return np.asarray(np.where(np.isfinite(lost), total + (rest + lost), total))


def _halves(x: Array) -> tuple[Any, Any]:
    """Two numbers of half the precision of float64 whose sum is ``x``."""
    shifted = x * 134217729.0  # 2**27 + 1
    high = shifted - (shifted - x)
    return high, x - high


def staged(effect: Callable[..., Any], result: Any, *operands: object) -> Any:
    """What a step that ``jit`` traces does in each call, once for examples that do not matter.

    Args:
      effect: function of arrays.
      result: extents and dtype of what it gives, or ``None``.
      *operands: tensors, arrays or numbers.

    Returns:
      A tensor, or ``None``.
    """
    around = None
    for level in reversed(modes.batches):
        if any(map(level.maps, operands)):
            break
        around = level.around
    with nullcontext() if around is None else within(around):
        modes.session.take(operands)  # leaves a trace that knows of no tensors
        value = io_callback(effect, result, *operands)
        is_made = result is None or isinstance(value, Tensor)
        return value if is_made else innermost().tensor(value)


default_generator = Generator()
"""The stream of all functions that are given no generator."""


def manual_seed(seed: int) -> Generator:
    """Start the default stream that belongs to a seed.

    Example:
      >>> manual_seed(0).initial_seed()
      0
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Start a default stream that nobody knows; returns its seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default stream."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The place in the default stream, for ``set_rng_state``."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Go to a place in a default stream."""
    default_generator.set_state(new_state)


class BatchLevel:
    """How random numbers are drawn inside one ``vmap``.

    Attributes:
      randomness: ``"error"``, ``"same"`` or ``"different"``.
      size: how many examples there are.
      lane: number of the example, traced; for different numbers only.
      trace: of the tensors that depend on the example, or ``None``.
      around: the innermost trace around the ``vmap``, or ``None``.
    """

    __slots__ = ("around", "lane", "randomness", "size", "trace")

    def __init__(
        self, randomness: str, size: int = 0, lane: Any = None, trace: Any = None,
        around: Any = None,
    ) -> None:  # fmt: skip
        self.randomness = randomness
        self.size = size
        self.lane = lane
        self.trace = trace
        self.around = around

    def maps(self, x: object) -> bool:
        """Whether a value depends on the example, or was made the like of one that does."""
        number = getattr(self.trace, "level", None)
        view = getattr(x, "_view", None)
        if number in getattr(x if view is None else view.base, "_mapped", ()):
            return True
        while isinstance(x, Tracer):
            if x._trace is self.trace:
                return True
            x = getattr(x, "_value", None)
        return False


def different_levels() -> list[BatchLevel]:
    """The levels of ``vmap`` whose examples get numbers of their own, outermost first.

    Raises:
      RuntimeError: a level allows no random operation.
    """
    if any(level.randomness == "error" for level in modes.batches):
        raise RuntimeError(
            "vmap: called random operation while in randomness error mode. Please either use the "
            "'same' or 'different' randomness flags on vmap or perform the randomness operation "
            "out of vmap"
        )
    return [level for level in modes.batches if level.randomness == "different"]


def made_like(x: Any, like: Any) -> Any:
    """A new tensor that got extents or dtype of another one: mapped over if that is."""
    if modes.batches:
        x._mapped = tuple([level.trace.level for level in modes.batches if level.maps(like)])
    return x


def check_parameters(*parameters: object) -> None:
    """Refuse parameters of a distribution that depend on the example, where all draw the same.

    Raises:
      RuntimeError: one of them does, or a level allows no random operation.
    """
    if not modes.batches:
        return
    different_levels()
    for level in modes.batches:
        if level.randomness == "same" and any(map(level.maps, parameters)):
            raise RuntimeError(
                "Vmap does not currently support same randomness with a batched tensor input: "
                "examples with parameters of their own cannot draw the same numbers. Use "
                "randomness='different', or draw outside of vmap"
            )


def check_filled(name: str, x: object, *parameters: object) -> None:
    """Refuse to fill a tensor that all examples share with numbers of each.

    Args:
      name: of the operation.
      x: the tensor.
      *parameters: of the distribution.

    Raises:
      RuntimeError: it is shared, and numbers or parameters are not.
    """
    for level in different_levels() if modes.batches else ():
        if level.maps(x):
            continue
        if any(map(level.maps, parameters)):
            raise RuntimeError(
                f"vmap: inplace {name}(self, *extra_args) is not possible because there exists a "
                "Tensor `other` in extra_args that has more elements than `self`: `other` is "
                "mapped over and `self` is not. Use an operation that is not in-place"
            )
        raise RuntimeError(
            f"vmap: Cannot ask for different inplace randomness on an unbatched tensor: {name} "
            "would write the numbers of all examples to one tensor. Make the tensor from a mapped "
            "one (x.new_empty, torch.empty_like), or use an operation that is not in-place"
        )


def stream(generator: Generator | None) -> Generator:
    """A generator, or the default one.

    Raises:
      RuntimeError: a ``vmap`` around it allows no random operation, or asks for different numbers,
        which only operations can give that draw them for all examples.
    """
    if modes.batches and different_levels():
        raise RuntimeError(
            "vmap: this random operation draws the same numbers for all examples; use "
            "randomness='same', or draw outside of vmap"
        )
    return default_generator if generator is None else generator
