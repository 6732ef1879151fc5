"""Samplers: the order in which examples are taken.

Not here: datasets (``utils.datasets``), batches (``utils.loading``).

Layer: ``compat``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

import numpy as np

from functrans.autograd.methods.filling import multinomial
from functrans.autograd.random import Generator, default_generator
from functrans.autograd.tensors import Tensor, plain_of

T = TypeVar("T", covariant=True)


class Sampler(Generic[T]):
    """An order of indices; subclasses define ``__iter__`` and may define ``__len__``."""

    def __iter__(self) -> Iterator[T]:
        """The indices; subclasses define it.

        Raises:
          NotImplementedError: they did not.
        """
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """All indices in order."""

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


def drawn_seed(generator: Generator | None = None) -> int:
    """A seed from a stream."""
    words = (generator or default_generator).long_words(1)
    return int(words[0]) % (1 << 63)


def _own(generator: Generator | None) -> Generator:
    """A generator, by default a new one with a seed from the default stream."""
    return Generator().manual_seed(drawn_seed()) if generator is None else generator


def _check(name: str, count: object, **flags: object) -> None:
    """Refuse a number that is not positive, and what is no truth value."""
    if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={count}")
    for flag, value in flags.items():
        if not isinstance(value, bool):
            raise ValueError(f"{flag} should be a boolean value, but got {flag}={value}")


class RandomSampler(Sampler[int]):
    """Indices in random order.

    Args:
      data_source: the dataset.
      replacement: whether an index may come more than once.
      num_samples: how many, by default as many as there are.
      generator: of the random numbers.

    Raises:
      TypeError: ``replacement`` is no truth value.
      ValueError: the number is not positive.
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, but got num_samples="
                f"{self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = _own(self.generator)
        if self.replacement:
            for start in range(0, self.num_samples, 32):
                yield from generator.integers(min(32, self.num_samples - start), 0, n).tolist()
            return
        for _ in range(self.num_samples // n):
            yield from generator.permutation(n).tolist()
        yield from generator.permutation(n).tolist()[: self.num_samples % n]  # drawn in any case

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """Given indices in random order."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        generator = default_generator if self.generator is None else self.generator
        for i in generator.permutation(len(self.indices)).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Random indices with given weights.

    Args:
      weights: one number for each index.
      num_samples: how many indices.
      replacement: whether an index may come more than once.
      generator: of the random numbers.

    Raises:
      ValueError: a number or truth value is none; there are too few weights.
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check("num_samples", num_samples, replacement=replacement)
        values = np.asarray(plain_of(weights), np.float64)
        if values.ndim != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {values.shape}"
            )
        if not replacement and num_samples > np.count_nonzero(values):
            raise ValueError(
                f"{num_samples} indices without replacement need as many positive weights"
            )
        self.weights = Tensor.of(values)
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of a sampler in lists.

    Args:
      sampler: gives indices.
      batch_size: length of the lists.
      drop_last: whether a shorter last list is left out.

    Raises:
      ValueError: the size is not positive, or ``drop_last`` no truth value.

    Example:
      >>> list(BatchSampler(range(5), 2, drop_last=False))
      [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check("batch_size", batch_size, drop_last=drop_last)
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        count = len(self.sampler)  # type: ignore[arg-type]  # TypeError without, as in torch
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
