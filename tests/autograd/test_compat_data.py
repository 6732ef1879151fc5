"""``functrans.compat.torch.utils.data``: datasets, samplers and loaders."""

from __future__ import annotations

from collections import Counter, namedtuple

import numpy as np
import pytest

import functrans.compat.torch as torch
from functrans.compat.torch.utils.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    random_split,
)


class Squares(Dataset):
    def __getitem__(self, index):
        return index**2

    def __len__(self):
        return 5


class Counting(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n))

    def __len__(self):
        return self.n


def _lists(loader):
    return [batch.tolist() for batch in loader]


@pytest.mark.parametrize(
    ("options", "batches"),
    [
        ({}, [[0], [1], [4], [9], [16]]),
        ({"batch_size": 2}, [[0, 1], [4, 9], [16]]),
        ({"batch_size": 2, "drop_last": True}, [[0, 1], [4, 9]]),
        ({"sampler": [3, 0], "batch_size": 2}, [[9, 0]]),
        ({"batch_sampler": [[1, 2], [4]]}, [[1, 4], [16]]),
    ],
)
def test_batches(options, batches):
    loader = DataLoader(Squares(), **options)
    assert _lists(loader) == batches
    assert len(loader) == len(batches)


@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_of_an_iterable(drop_last):
    loader = DataLoader(Counting(5), batch_size=2, drop_last=drop_last)
    assert _lists(loader) == [[0, 1], [2, 3]] + [[4]] * (not drop_last)
    assert len(loader) == 3 - drop_last


def test_without_batches_examples_are_converted_only():
    data = [np.array([1.0, 2.0]), np.array([3.0])]
    found = list(DataLoader(data, batch_size=None))
    assert [x.tolist() for x in found] == [[1.0, 2.0], [3.0]]
    assert all(isinstance(x, torch.Tensor) for x in found)


def test_shuffle_is_another_permutation_in_each_pass_and_the_same_by_seed():
    def passes():
        loader = DataLoader(range(20), 20, True, generator=torch.Generator().manual_seed(1))
        return [_lists(loader)[0] for _ in range(2)]

    first, second = passes()
    assert sorted(first) == sorted(second) == list(range(20))
    assert first != second
    assert passes() == [first, second]


def test_collate_fn_is_called_with_the_examples():
    assert list(DataLoader(Squares(), 3, collate_fn=sum)) == [5, 25]


def test_default_collate_of_structures():
    pair = namedtuple("pair", "a b")  # as users have them
    batch = default_collate([pair(torch.ones(2), "x"), pair(torch.zeros(2), "y")])
    assert batch.a.tolist() == [[1, 1], [0, 0]]
    assert batch.b == ["x", "y"]
    nested = default_collate([{"n": [1, 2.5]}, {"n": [3, 4.5]}])
    assert [x.tolist() for x in nested["n"]] == [[1, 3], [2.5, 4.5]]
    assert nested["n"][0].dtype == np.int64
    assert default_collate([np.float32(1), np.float32(2)]).dtype == np.float32


@pytest.mark.parametrize(
    ("batch", "error", "text"),
    [
        ([object()], TypeError, "default_collate: batch must contain tensors"),
        ([[1], [1, 2]], RuntimeError, "each element in list of batch should be of equal size"),
        ([torch.ones(2), torch.ones(3)], RuntimeError, "stack expects each tensor to be equal"),
    ],
)
def test_what_cannot_be_collated(batch, error, text):
    with pytest.raises(error, match=text):
        default_collate(batch)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"num_workers": -1}, ValueError, "num_workers option should be non-negative"),
        ({"sampler": [1], "shuffle": True}, ValueError, "mutually exclusive with shuffle"),
        ({"batch_sampler": [[1]], "drop_last": True}, ValueError, "batch_sampler option is"),
        ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
        ({"batch_size": 0}, ValueError, "batch_size should be a positive integer"),
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option"),
        ({"persistent_workers": True}, ValueError, "persistent_workers option needs"),
        ({"timeout": -1}, ValueError, "timeout option should be non-negative"),
    ],
)
def test_options_that_are_refused(options, error, text):
    with pytest.raises(error, match=text):
        DataLoader(Squares(), **options)


@pytest.mark.parametrize("name", ["shuffle", "sampler", "batch_sampler"])
def test_an_iterable_has_no_order(name):
    with pytest.raises(ValueError, match=f"expected unspecified {name} option"):
        DataLoader(Counting(3), **{name: [1]})


def test_tensor_dataset():
    data = TensorDataset(torch.arange(3), torch.ones(3, 2))
    assert len(data) == 3
    assert data[2][0] == 2
    x, y = next(iter(DataLoader(data, 2)))
    assert x.tolist() == [0, 1]
    assert y.shape == (2, 2)
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(torch.ones(2), torch.ones(3))


def test_concatenation_and_parts():
    both = Squares() + Subset(Squares(), [4, 3])
    assert isinstance(both, ConcatDataset)
    assert [both[i] for i in range(len(both))] == [0, 1, 4, 9, 16, 16, 9]
    assert both[-1] == 9
    with pytest.raises(ValueError, match="absolute value of index"):
        both[-8]
    assert list(Counting(2) + Counting(1)) == [0, 1, 0]
    assert len(ChainDataset([Counting(2), Counting(3)])) == 5
    assert _lists(DataLoader(Subset(Squares(), [4, 0]), 2)) == [[16, 0]]


def test_stacked_datasets():
    assert StackDataset(Squares(), [10] * 5)[3] == (9, 10)
    assert StackDataset(a=Squares(), b=range(5))[3] == {"a": 9, "b": 3}
    with pytest.raises(ValueError, match="Size mismatch between datasets"):
        StackDataset(Squares(), [1])


@pytest.mark.parametrize(("lengths", "sizes"), [([6, 4], [6, 4]), ([0.5, 0.25, 0.25], [6, 2, 2])])
def test_random_split(lengths, sizes):
    parts = random_split(range(10), lengths, torch.Generator().manual_seed(0))
    assert [len(part) for part in parts] == sizes
    assert sorted(x for part in parts for x in part) == list(range(10))


def test_random_split_refuses_other_sums():
    with pytest.raises(ValueError, match="Sum of input lengths does not equal"):
        random_split(range(10), [3, 3])


def test_samplers():
    assert list(SequentialSampler("abc")) == [0, 1, 2]
    assert sorted(RandomSampler("abc")) == [0, 1, 2]
    several = list(RandomSampler("abc", num_samples=7))
    assert sorted(several[:3]) == sorted(several[3:6]) == [0, 1, 2]
    repeated = list(RandomSampler("abc", replacement=True, num_samples=70))
    assert len(repeated) == 70
    assert set(repeated) == {0, 1, 2}
    assert sorted(SubsetRandomSampler([5, 7])) == [5, 7]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="num_samples should be a positive integer"):
        RandomSampler("")


def test_weighted_sampler():
    torch.manual_seed(0)
    counts = Counter(WeightedRandomSampler([0.0, 1.0, 3.0], 4000))
    assert counts[0] == 0
    assert 2.5 < counts[2] / counts[1] < 3.5
    assert sorted(WeightedRandomSampler([1.0, 2.0, 0.0], 2, replacement=False)) == [0, 1]
    torch.manual_seed(1)
    drawn = list(WeightedRandomSampler([1.0, 2.0, 3.0], 8))
    torch.manual_seed(1)
    weights = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    assert drawn == torch.multinomial(weights, 8, True).tolist()  # as in PyTorch


def test_a_model_is_trained_from_a_loader():
    torch.manual_seed(0)
    x = torch.randn(64, 3)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]])
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        for inputs, target in DataLoader(TensorDataset(x, y), 16, shuffle=True):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), target).backward()
            optimizer.step()
    np.testing.assert_allclose(model.weight.detach().numpy(), [[1.0, -2.0, 0.5]], atol=1e-3)
