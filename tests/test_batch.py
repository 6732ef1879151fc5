"""The batching rule of every primitive agrees with a Python loop over the batch."""

from itertools import product
from typing import Any

import numpy as np

import functrans as ft
from cases import each
from helpers import assert_close
from samples import Row, Sample, each_sample

SIZE = 3


def _batchable(sample: Sample) -> tuple[int, ...]:
    """Operands that can have a batch axis: arrays and NumPy scalars, no Python numbers."""
    return tuple(
        i for i, x in enumerate(sample.operands) if isinstance(x, (np.ndarray, np.generic))
    )


def _combinations(sample: Sample) -> list[tuple[int | None, ...]]:
    """Batch axes of the operands, ``None`` for unbatched: every subset, on every operand the first
    axis, the last axis, or the two in turn."""
    positions = _batchable(sample)
    choices: list[tuple[int | None, ...]] = []
    for flags in product((False, True), repeat=len(positions)):
        chosen = [i for i, flag in zip(positions, flags, strict=True) if flag]
        for axes in ((0, 0), (-1, -1), (0, -1))[: 2 + (len(chosen) > 1)] if chosen else ():
            own = {i: axes[k % 2] for k, i in enumerate(chosen)}
            choices.append(tuple(own.get(i) for i in range(len(sample.operands))))
    return choices


BATCHED = each_sample(lambda row, sample: bool(_batchable(sample)))


def test_there_are_samples() -> None:
    assert len(BATCHED) > 1500


@each(("row", "label"), BATCHED, by="row")
def test_batch_is_the_loop(row: Row, label: str) -> None:
    examples = [row.sample(label, seed) for seed in range(SIZE)]
    sample = examples[0]
    fun = row.bound(sample)
    looped: dict[tuple[bool, ...], tuple[Any, ...]] = {}
    for axes in _combinations(sample):
        mapped = tuple(axis is not None for axis in axes)
        operands = [
            x if axis is None else np.stack([example.operands[i] for example in examples], axis)
            for i, (x, axis) in enumerate(zip(sample.operands, axes, strict=True))
        ]
        with np.errstate(all="warn" if sample.is_smooth else "ignore"):
            outs = ft.vmap(fun, in_axes=axes)(*operands)
            if mapped not in looped:
                own = [
                    [(example if mapped[i] else sample).operands[i] for i in range(len(mapped))]
                    for example in examples
                ]
                rows = [fun(*operands) for operands in own]
                looped[mapped] = tuple(np.stack(column) for column in zip(*rows, strict=True))
        expected = looped[mapped]
        assert_close(outs, expected, f"in_axes={axes}")
        assert [out.dtype for out in outs] == [out.dtype for out in expected], axes


@each(("row", "label"), BATCHED, by="row", one_of=3, full=2)
def test_batch_of_none_is_empty(row: Row, label: str) -> None:
    sample = row.sample(label)
    fun = row.bound(sample)
    with np.errstate(all="ignore"):
        expected = fun(*sample.operands)
    for axes in _combinations(sample):
        operands = [
            x if axis is None else np.stack([x] * 2, axis)[_none(axis)]
            for x, axis in zip(sample.operands, axes, strict=True)
        ]
        outs = ft.vmap(fun, in_axes=axes)(*operands)
        for out, one in zip(outs, expected, strict=True):
            assert out.shape == (0, *np.shape(one)), axes
            assert out.dtype == np.asarray(one).dtype, axes


def _none(axis: int) -> Any:
    return (slice(0, 0),) if axis == 0 else (Ellipsis, slice(0, 0))
