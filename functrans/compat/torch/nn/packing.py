"""``torch.nn.utils.rnn``: sequences of different lengths, padded and packed.

Here: ``pad_sequence``, ``PackedSequence`` and the functions between lists, padded tensors and
packed ones. Not here: the layers that take packed sequences (``nn.recurrent_modules``).

Layer: ``compat``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from functrans.autograd.composites import composite
from functrans.autograd.methods.rows import check_tensor, plain
from functrans.autograd.promotion import exact, torch_tensor
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.not_offered import nothing_else
from functrans.core.dispatch import shape_of
from functrans.primitives import movement, structural

__getattr__ = nothing_else("functrans.compat.torch.nn.utils.rnn")


class _Fields(NamedTuple):
    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(_Fields):
    """Sequences of different lengths without padding, the longest first.

    Args:
      data: elements of all sequences by time, ``[sum of lengths, ...]``.
      batch_sizes: how many sequences there are at each time.
      sorted_indices: where each sequence was before it was sorted by its length.
      unsorted_indices: the inverse, which is computed where it is not given.
    """

    __slots__ = ()

    def __new__(  # noqa: D102  # the class says it
        cls,
        data: Tensor,
        batch_sizes: Tensor,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: object, **kwargs: object) -> PackedSequence:
        """The data converted as by ``Tensor.to``."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._replace(data=data)

    def cpu(self) -> PackedSequence:
        """The same: everything is on the CPU."""
        return self

    @property
    def is_cuda(self) -> bool:
        """``False``."""
        return False

    def double(self) -> PackedSequence:
        """The data in float64."""
        return self.to(np.float64)

    def float(self) -> PackedSequence:
        """The data in float32."""
        return self.to(np.float32)

    def half(self) -> PackedSequence:
        """The data in float16."""
        return self.to(np.float16)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that takes another one back; ``None`` of ``None``."""
    return None if permutation is None else torch_tensor(np.argsort(plain(permutation)))


# padded -------------------------------------------------------------------------------------------


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of different lengths in one tensor ``[longest, n, ...]``.

    Args:
      sequences: tensors ``[length, ...]``.
      batch_first: axes ``[n, longest, ...]``.
      padding_value: what is put where a sequence has no element.
      padding_side: at its ``"right"`` or ``"left"`` end.

    Raises:
      RuntimeError: there is no sequence, one is a number, or another side.
      TypeError: one is no tensor.

    Example:
      >>> from functrans.autograd import tensor
      >>> pad_sequence([tensor([1.0, 2.0]), tensor([3.0])], batch_first=True)
      tensor([[1., 2.],
              [3., 0.]])
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    given = list(sequences)
    for i, x in enumerate(given):
        if not isinstance(x, Tensor):
            raise TypeError(
                f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}"
            )
    if not given or not all(x.shape for x in given):
        raise RuntimeError(
            "pad_sequence: received an empty list of sequences, or a tensor without axes; give "
            "tensors [length, ...]"
        )
    longest, dtype, tail = max(x.shape[0] for x in given), given[0].dtype, given[0].shape[1:]
    filler = exact(padding_value, dtype)

    def padded(x: Any) -> Any:
        count = shape_of(x)[0]
        rows = structural.broadcast_to(structural.cast(x, dtype), (count, *tail))
        ends = (longest - count, 0, 0) if padding_side == "left" else (0, longest - count, 0)
        return movement.pad(rows, filler, [ends, *[(0, 0, 0)] * len(tail)])

    axis = 0 if batch_first else 1
    return composite("Stack", lambda *xs: movement.stack([padded(x) for x in xs], axis), *given)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Iterable[Any], batch_first: bool = False
) -> list[Tensor]:
    """The sequences of which a padded tensor is made."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(rows, lengths, strict=True)]


# packed -------------------------------------------------------------------------------------------


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """A padded tensor without its padding.

    Args:
      input: ``[longest, n, ...]``.
      lengths: of the sequences, as a tensor or list.
      batch_first: axes ``[n, longest, ...]``.
      enforce_sorted: whether the lengths must decrease; else the sequences are sorted.

    Raises:
      RuntimeError: the lengths are not sorted, not positive, or not one for each sequence.
    """
    check_tensor("pack_padded_sequence", input)
    x = input.transpose(0, 1) if batch_first else input
    counts = np.asarray(plain(lengths) if isinstance(lengths, Tensor) else lengths, np.int64)
    if counts.ndim != 1 or len(counts) != x.shape[1]:
        raise RuntimeError(
            "Expected `len(lengths)` to be equal to batch_size, but got lengths of shape "
            f"{counts.shape} (batch_size={x.shape[1]})"
        )
    if counts.size and counts.min() <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    order = np.argsort(-counts, kind="stable")
    if enforce_sorted and (np.diff(counts) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True; "
            "give enforce_sorted=False"
        )
    times, lanes = np.nonzero(counts[order] > np.arange(counts.max(initial=0))[:, None])
    sizes = torch_tensor(np.bincount(times))
    data = x[torch_tensor(times), torch_tensor(order[lanes])]
    return PackedSequence(data, sizes, None if enforce_sorted else torch_tensor(order))


def mask_of(packed: PackedSequence) -> np.ndarray:
    """Which of ``[longest, n]`` are elements of packed sequences."""
    sizes = plain(packed.batch_sizes)
    return np.asarray(np.arange(sizes.max(initial=0)) < sizes[:, None])


def padded_of(packed: PackedSequence, padding_value: float = 0.0) -> Tensor:
    """Packed sequences as ``[longest, n, ...]``, in the order in which they are packed."""
    mask = mask_of(packed)
    places = np.where(mask, np.cumsum(mask).reshape(mask.shape) - 1, 0)
    rows = packed.data[torch_tensor(places)]
    outside = ~mask.reshape(mask.shape + (1,) * (len(rows.shape) - 2))
    return rows.masked_fill(torch_tensor(outside), padding_value)


def packed_like(x: Tensor, packed: PackedSequence) -> PackedSequence:
    """A tensor ``[longest, n, ...]`` packed as other sequences are."""
    times, lanes = map(torch_tensor, np.nonzero(mask_of(packed)))
    return packed._replace(data=x[times, lanes])


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Packed sequences as a padded tensor, in their first order, and their lengths.

    Args:
      sequence: the packed sequences.
      batch_first: axes ``[n, longest, ...]``.
      padding_value: what is put where a sequence has no element.
      total_length: to which all are padded; by default the longest.

    Raises:
      ValueError: the total length is shorter than a sequence.
    """
    mask = mask_of(sequence)
    longest, lengths = len(mask), torch_tensor(mask.sum(0))
    x = padded_of(sequence, padding_value)
    if total_length is not None:
        if total_length < longest:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in "
                f"input, but got total_length={total_length} and max sequence length being "
                f"{longest}"
            )
        rest = x.new_full((total_length - longest, *x.shape[1:]), padding_value)
        x = composite("Cat", lambda *xs: movement.concatenate(xs, 0), x, rest)
    if sequence.unsorted_indices is not None:
        x = x.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return (x.transpose(0, 1) if batch_first else x), lengths


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences of different lengths, packed.

    Example:
      >>> from functrans.autograd import tensor
      >>> pack_sequence([tensor([1.0, 2.0]), tensor([3.0])]).data
      tensor([1., 3., 2.])
    """
    given = list(sequences)
    lengths = [x.shape[0] for x in given]
    return pack_padded_sequence(pad_sequence(given), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
