"""``functrans.compat.torch.utils.data`` against torch: the same order by the same seed."""

from __future__ import annotations

import pytest

import functrans.compat.torch as ours

torch = pytest.importorskip("torch")


def _passes(lib, make):
    lib.manual_seed(7)
    loader = make(lib, lib.utils.data)
    return [[batch.tolist() for batch in loader] for _ in range(2)]


@pytest.mark.parametrize(
    "make",
    [
        lambda lib, d: d.DataLoader(range(23), 4, shuffle=True),
        lambda lib, d: d.DataLoader(range(23), 4, True, generator=lib.Generator().manual_seed(5)),
        lambda lib, d: d.DataLoader(range(9), 2, sampler=d.SubsetRandomSampler([1, 5, 8])),
        lambda lib, d: d.DataLoader(
            range(9), 2, sampler=d.RandomSampler(range(9), replacement=True, num_samples=70)
        ),
        lambda lib, d: d.DataLoader(d.random_split(range(11), [0.6, 0.4])[1], 2, drop_last=True),
    ],
)
def test_order(make):
    assert _passes(ours, make) == _passes(torch, make)
