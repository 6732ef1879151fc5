"""Indices mean what they mean in PyTorch, whose answers are in ``index_kinds.json``."""

import json
import warnings

import numpy as np
import pytest

import functrans.compat.torch as torch
from tests.autograd.index_kinds import DATA, KINDS, SHAPE, outcome

EXPECTED = json.loads(DATA.read_text())


def test_indices_of_all_kinds_read_and_write_what_torch_reads_and_writes():
    assert set(EXPECTED) == set(KINDS)
    wrong = [kind for kind in KINDS if outcome(torch, kind) != EXPECTED[kind]]
    assert not wrong


def test_a_list_that_holds_lists_is_a_tuple_of_indices_in_the_graph_too():
    x = torch.arange(12.0).reshape(SHAPE).requires_grad_()
    y = x * 1
    with pytest.warns(UserWarning, match="non-tuple sequence") as caught:
        y[[[0, 1], [1, 2]]] = 0.0
    assert {w.filename for w in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (y * y)[[slice(None), [1]]].sum().backward()
    expected = torch.zeros(SHAPE)
    expected[1, 1] = 2 * x.detach()[1, 1]
    assert x.grad.tolist() == expected.tolist()


@pytest.mark.parametrize("index", [None, 0, slice(1), [0], [True, False, False]])
def test_none_is_no_number_to_be_written(index):
    """NumPy takes it for NaN."""
    x = torch.zeros(3)
    with pytest.raises(TypeError, match="can't assign a NoneType"):
        x[index] = None
    assert x.tolist() == [0.0] * 3


def test_what_is_written_to_a_part_is_cast() -> None:
    z, rows, truth = torch.arange(4), torch.arange(4).reshape(2, 2), torch.arange(4) > 2
    z[1] = torch.tensor(5.7)
    z[2:] = torch.tensor(6.7)
    rows[1] = torch.ones(2) * 2.7
    truth[2] = torch.tensor(3)
    assert (z.tolist(), rows.tolist()) == ([0, 5, 6, 6], [[0, 1], [2, 2]])
    assert truth.tolist() == [False, False, True, True]
    z[0] = np.float64(2.7)
    z[z > 5] = np.float64(2.7)
    assert z.tolist() == [2, 5, 2, 2]
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    part = torch.zeros(2, 2)
    part[1] = x * 3
    part.sum().backward()
    assert x.grad is not None
    assert (x.grad.dtype, x.grad.tolist()) == (torch.float64, [3.0, 3.0])
