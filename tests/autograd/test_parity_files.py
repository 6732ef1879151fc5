"""Files of tensors between ``functrans.compat.torch`` and PyTorch, both ways."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import functrans.compat.torch as ours

torch = pytest.importorskip("torch")


def _through(obj, writer, reader, **options):
    buffer = io.BytesIO()
    writer.save(obj, buffer)
    buffer.seek(0)
    return reader.load(buffer, **options)


@pytest.mark.parametrize(
    "dtype",
    [
        "float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8",
        "bool", "complex64", "complex128", "uint16", "uint32", "uint64",
    ],
)  # fmt: skip
def test_tensors_go_there_and_back(dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")
    x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype)).t()
    mine = _through(x, torch, ours)
    assert mine.dtype.name == dtype
    assert mine.stride() == x.stride()
    back = _through(mine, ours, torch, weights_only=True)
    assert back.dtype == x.dtype
    assert back.stride() == x.stride()
    assert back.tolist() == x.tolist()


def _model(lib):
    return lib.nn.Sequential(
        lib.nn.Conv1d(1, 2, 3), lib.nn.BatchNorm1d(2), lib.nn.Flatten(), lib.nn.Linear(4, 1)
    )


def test_weights_of_a_model_give_the_same_results():
    x = np.random.RandomState(0).standard_normal((5, 1, 4)).astype(np.float32)
    theirs, mine = _model(torch), _model(ours)
    state = _through(theirs.state_dict(), torch, ours)
    assert type(state) is OrderedDict
    mine.load_state_dict(state)
    a = theirs(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(mine(ours.from_numpy(x)).detach().numpy(), a, rtol=1e-4, atol=1e-6)
    other = _model(torch)
    other.load_state_dict(_through(mine.state_dict(), ours, torch, weights_only=True))
    for p, q in zip(other.state_dict().values(), mine.state_dict().values(), strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_the_state_of_an_optimizer():
    theirs, mine = _model(torch), _model(ours)
    optimizer = torch.optim.Adam(theirs.parameters(), 0.01)
    theirs(torch.ones(2, 1, 4)).sum().backward()
    optimizer.step()
    own = ours.optim.Adam(mine.parameters())
    own.load_state_dict(_through(optimizer.state_dict(), torch, ours))
    assert own.param_groups[0]["lr"] == 0.01
    back = _through(own.state_dict(), ours, torch, weights_only=True)
    for number, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            np.testing.assert_array_equal(back["state"][number][name].numpy(), value.numpy())


@pytest.mark.parametrize("writer", [torch, ours])
@pytest.mark.parametrize("reader", [torch, ours])
def test_memory_is_shared_as_it_was(writer, reader):
    x = writer.zeros(4)
    kept = [x[1:], x, writer.nn.Parameter(x), writer.tensor(3.0, requires_grad=True)]
    found = _through(kept, writer, reader)
    found[0][0] = 5
    assert found[1].tolist() == found[2].tolist() == [0, 5, 0, 0]
    assert [y.requires_grad for y in found] == [False, False, True, True]
    assert isinstance(found[2], reader.nn.Parameter)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: torch.nn.Linear(2, 1), r"names torch\.nn\.modules\.linear\.Linear of PyTorch"),
        (lambda: torch.eye(2).to_sparse(), r"_rebuild_sparse_tensor of PyTorch"),
    ],
)
@pytest.mark.parametrize("weights_only", [True, False])
def test_what_is_not_read_says_how_to_save_it(make, text, weights_only):
    with pytest.raises(pickle.UnpicklingError, match=text):
        _through(make(), torch, ours, weights_only=weights_only)


def test_files_before_archives_are_named():
    buffer = io.BytesIO()
    torch.save(torch.ones(2), buffer, _use_new_zipfile_serialization=False)
    buffer.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=r"PyTorch before 1\.6"):
        ours.load(buffer)
