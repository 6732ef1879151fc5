"""``DataLoader``: batches of a dataset.

Not here: datasets and samplers.

Everything is loaded in the thread that asks for it, also where workers are asked for.

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic

import numpy as np

from functrans.autograd.composites import composite
from functrans.autograd.promotion import torch_tensor
from functrans.autograd.random import Generator
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.utils.datasets import Examples, IterableDataset, T
from functrans.compat.torch.utils.samplers import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    drawn_seed,
)
from functrans.core.boundary import warn
from functrans.primitives import movement


def default_convert(data: Any) -> Any:
    """Arrays in a structure as tensors; everything else as it is."""
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        return data if data.dtype.kind in "SUO" else torch_tensor(np.asarray(data))
    if isinstance(data, Mapping):
        return {key: default_convert(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[default_convert(item) for item in data])
    if isinstance(data, (tuple, list)):
        return [default_convert(item) for item in data]
    return data


def default_collate(batch: Any) -> Any:
    """One structure of batches of a list of equal structures.

    Tensors and arrays get a new first axis, numbers become tensors, strings stay a list.

    Raises:
      TypeError: something cannot be collated.
      RuntimeError: sequences are of different lengths, or extents differ.

    Example:
      >>> default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
      {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    first = batch[0]
    if isinstance(first, Tensor):
        for i, x in enumerate(batch):
            if x.shape != first.shape:
                raise RuntimeError(
                    "stack expects each tensor to be equal size, but got "
                    f"{list(first.shape)} at entry 0 and {list(x.shape)} at entry {i}"
                )
        return composite("Stack", lambda *xs: movement.stack(list(xs)), *batch)
    if isinstance(first, (np.ndarray, np.generic)):
        if first.dtype.kind in "SUO":
            raise TypeError(_CANNOT.format(first.dtype))
        return torch_tensor(np.stack([np.asarray(x) for x in batch]))
    if isinstance(first, float):
        return torch_tensor(np.array(batch, np.float64))
    if isinstance(first, int):
        return torch_tensor(np.array(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        made = {key: default_collate([item[key] for item in batch]) for key in first}
        return made if type(first) is dict else _like(first, made)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*[default_collate(list(items)) for items in zip(*batch, strict=True)])
    if isinstance(first, Sequence):
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(list(items)) for items in zip(*batch, strict=True)]
    raise TypeError(_CANNOT.format(type(first)))


_CANNOT = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _like(first: Any, made: dict[Any, Any]) -> Any:
    try:
        return type(first)(made)
    except TypeError:  # a mapping that is made otherwise
        return made


class DataLoader(Generic[T]):
    """Batches of a dataset.

    Args:
      dataset: examples by index, or an ``IterableDataset``.
      batch_size: examples in a batch; ``None``: examples one by one.
      shuffle: whether the order is random, another one in each pass.
      sampler: gives indices.
      batch_sampler: gives lists of indices.
      num_workers: examples are loaded in the thread that asks for them all the same, with a
        warning.
      collate_fn: makes a batch of a list of examples, by default ``default_collate``.
      pin_memory: accepted for torch's sake.
      drop_last: whether a smaller last batch is left out.
      timeout: accepted for torch's sake.
      worker_init_fn: accepted and never called; there are no workers.
      multiprocessing_context: accepted with ``num_workers``.
      generator: of the random order.
      prefetch_factor: accepted with ``num_workers``.
      persistent_workers: accepted with ``num_workers``.
      pin_memory_device: accepted for torch's sake.
      in_order: accepted for torch's sake.

    Raises:
      ValueError: options exclude each other.

    Example:
      >>> [batch.tolist() for batch in DataLoader([1, 2, 3, 4, 5], batch_size=2)]
      [[1, 2], [3, 4], [5]]
    """

    def __init__(
        self, dataset: Examples[T], batch_size: int | None = 1, shuffle: bool | None = None,
        sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False,
        drop_last: bool = False, timeout: float = 0, worker_init_fn: Any = None,
        multiprocessing_context: Any = None, generator: Generator | None = None, *,
        prefetch_factor: int | None = None, persistent_workers: bool = False,
        pin_memory_device: str = "", in_order: bool = True,
    ) -> None:  # fmt: skip
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if multiprocessing_context is not None and not num_workers:
            raise ValueError(
                "multiprocessing_context can only be used with multi-process loading (num_workers "
                f"> 0), but got num_workers={num_workers}"
            )
        is_iterable = isinstance(dataset, IterableDataset)
        if is_iterable:
            _check_iterable(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                    "and drop_last"
                )
            batch_size, drop_last = None, False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with "
                "drop_last"
            )
        if sampler is None and not is_iterable:
            if shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]  # which says its length
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]  # likewise
        if batch_size is not None and batch_sampler is None and not is_iterable:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        if is_iterable and batch_size is not None:
            BatchSampler((), batch_size, drop_last)  # checks its arguments
        self.dataset: Any = dataset
        self.batch_size = batch_size
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.num_workers = num_workers
        self.drop_last = drop_last
        self.generator = generator
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.prefetch_factor = prefetch_factor
        self.persistent_workers = persistent_workers
        if collate_fn is None:
            collate_fn = default_collate if self._makes_batches else default_convert
        self.collate_fn = collate_fn

    @property
    def _makes_batches(self) -> bool:
        return self.batch_sampler is not None or (
            isinstance(self.dataset, IterableDataset) and self.batch_size is not None
        )

    def __iter__(self) -> Iterator[Any]:
        """The batches of one pass."""
        drawn_seed(self.generator)  # torch draws one for its workers in each pass
        return self._batches()

    def _batches(self) -> Iterator[Any]:
        collate = self.collate_fn
        if isinstance(self.dataset, IterableDataset):
            if self.batch_size is None:
                yield from map(collate, self.dataset)
                return
            for batch in BatchSampler(self.dataset, self.batch_size, self.drop_last):
                yield collate(batch)
        elif self.batch_sampler is not None:
            many = getattr(self.dataset, "__getitems__", None)
            for indices in self.batch_sampler:
                if callable(many):
                    yield collate(many(indices))
                else:
                    yield collate([self.dataset[i] for i in indices])
        else:
            for index in self.sampler:
                yield collate(self.dataset[index])

    def __len__(self) -> int:
        """The number of batches.

        Raises:
          TypeError: the dataset or the sampler does not know its length.
        """
        if isinstance(self.dataset, IterableDataset):
            count = len(self.dataset)  # type: ignore[arg-type]  # TypeError without, as in torch
            if self.batch_size is None:
                return count
            return count // self.batch_size if self.drop_last else -(-count // self.batch_size)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)


def _check_workers(workers: int, timeout: float, prefetch: Any, persistent: bool) -> None:
    """Warn that there are no workers in other processes."""
    if workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if workers:
        if prefetch is not None and prefetch < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        warn(
            f"DataLoader: num_workers={workers} starts no processes here: examples are loaded in "
            "the thread that asks for them. num_workers=0 does the same without this warning."
        )
        return
    if prefetch is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers > 0 "
            "to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if persistent:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(
    shuffle: object, sampler: list[int] | None, batch_sampler: list[int] | None
) -> None:
    """Refuse an order of a dataset that has no indices."""
    if shuffle:
        raise ValueError(
            "DataLoader with IterableDataset: expected unspecified shuffle option, but got "
            f"shuffle={shuffle}"
        )
    for name, value in (("sampler", sampler), ("batch_sampler", batch_sampler)):
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got "
                f"{name}={value}"
            )


def get_worker_info() -> None:
    """``None``: examples are loaded in the main process."""
    return
