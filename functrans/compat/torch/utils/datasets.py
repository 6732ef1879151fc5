"""Datasets: collections of examples, parts of them and chains.

Not here: the order in which examples are taken (``utils.samplers``), batches
(``utils.loading``).

Layer: ``compat``.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from functrans.autograd.random import Generator, stream
from functrans.autograd.tensors import plain_of

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Examples(Protocol[T_co]):
    """What gives examples by index."""

    def __getitem__(self, index: int, /) -> T_co: ...


class Dataset(Generic[T]):
    """A collection of examples by index; subclasses define ``__getitem__`` and ``__len__``."""

    def __getitem__(self, index: Any) -> T:
        """An example; subclasses define it.

        Raises:
          NotImplementedError: they did not.
        """
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> ConcatDataset:
        """Both, one after the other."""
        return ConcatDataset([self, other])


class IterableDataset(Dataset[Any]):
    """Examples one after the other; subclasses define ``__iter__``."""

    def __iter__(self) -> Iterator[Any]:
        """The examples; subclasses define it.

        Raises:
          NotImplementedError: they did not.
        """
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: object) -> Any:
        """Both, one after the other."""
        return ChainDataset([self, other])


class TensorDataset(Dataset[Any]):
    """Tensors of examples along their first axes.

    Args:
      *tensors: tensors with the same extent of the first axis.

    Raises:
      AssertionError: the extents differ.

    Example:
      >>> from functrans.autograd import tensor
      >>> TensorDataset(tensor([1.0, 2.0]), tensor([3, 4]))[1]
      (tensor(2.), tensor(4))
    """

    def __init__(self, *tensors: Any) -> None:
        if any(tensor.shape[0] != tensors[0].shape[0] for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: object) -> tuple[Any, ...]:
        return tuple([tensor[index] for tensor in self.tensors])

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Several datasets side by side, in a tuple or by name.

    Raises:
      ValueError: there are none, or both kinds; their lengths differ.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            what = "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like"
            raise ValueError(
                f"{what} input/output, but both types are given."
                if args
                else "At least one dataset should be passed"
            )
        parts: Any = args or kwargs
        lengths = {len(part) for part in (args or kwargs.values())}
        if len(lengths) != 1:
            raise ValueError("Size mismatch between datasets")
        self.datasets = parts
        self._length = lengths.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {key: part[index] for key, part in self.datasets.items()}
        return tuple([part[index] for part in self.datasets])

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[Any]):
    """Datasets one after the other.

    Raises:
      AssertionError: there are none, or one has no indices.
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(part, IterableDataset) for part in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = list(itertools.accumulate(len(part) for part in self.datasets))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        i = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[i - 1] if i else 0
        return self.datasets[i][index - before]


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        """All examples.

        Raises:
          AssertionError: a dataset has no iterator.
        """
        for part in self.datasets:
            if not isinstance(part, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from part

    def __len__(self) -> int:
        return sum(len(part) for part in self.datasets)


class Subset(Dataset[Any]):
    """Examples of a dataset by a list of indices."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """Several examples."""
        own = [self.indices[i] for i in indices]
        many = getattr(self.dataset, "__getitems__", None)
        return many(own) if callable(many) else [self.dataset[i] for i in own]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Any, lengths: Sequence[Any], generator: Generator | None = None
) -> list[Subset]:
    """Parts of a dataset, chosen at random.

    Args:
      dataset: the dataset.
      lengths: of the parts; or shares that sum up to 1.
      generator: of the random numbers.

    Raises:
      ValueError: the lengths do not sum up to that of the dataset.

    Example:
      >>> [len(part) for part in random_split(range(10), [0.7, 0.3])]
      [7, 3]
    """
    total = len(dataset)
    sizes = [plain_of(length) for length in lengths]
    if math.isclose(sum(sizes), 1) and sum(sizes) <= 1 + 1e-9 and total != 1:
        shares = sizes
        for i, share in enumerate(shares):
            if share < 0 or share > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(total * share) for share in shares]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
    if sum(sizes) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = np.asarray(stream(generator).permutation(int(sum(sizes)))).tolist()
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, order[end - size : end]) for end, size in zip(ends, sizes, strict=True)]
