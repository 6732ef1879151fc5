"""``functrans.compat.torch.load`` of files that nobody vouches for."""

import collections
import io
import pickle
import sys
import tracemalloc
from inspect import isfunction

import numpy as np
import pytest

import functrans.compat.torch as torch
from functrans.autograd import tensor
from functrans.autograd.methods import state
from functrans.compat.torch import archives
from tests.fuzz.payloads import (
    EIGHT,
    HOSTILE,
    ORDERED,
    REBUILD,
    TENSOR,
    archive,
    array,
    build,
    call,
    dtype,
    lit,
    storage,
    view,
    whole,
)  # fmt: skip


def _load(data, **options):
    return torch.load(io.BytesIO(data), **options)


def _attributes():
    classes = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer, torch.Size, torch.device)
    functions = [f for f in (*vars(state).values(), *vars(archives).values()) if isfunction(f)]
    return (
        [dict(vars(cls)) for cls in classes],
        [dict(f.__dict__) for f in functions],
        [f.__defaults__ for f in functions],
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused_without_a_trace(name):
    data = HOSTILE[name]
    _load(archive(lit(1)))  # zipfile imports the encoding of names
    before, modules = _attributes(), set(sys.modules)
    tracemalloc.start()
    try:
        with pytest.raises(pickle.UnpicklingError):
            _load(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200 * len(data) + (1 << 20)
    assert _attributes() == before
    assert set(sys.modules) == modules


@pytest.mark.parametrize("trusted", [False, True])
def test_a_tensor_beyond_its_memory_is_refused_also_in_files_that_are_trusted(trusted):
    with pytest.raises((pickle.UnpicklingError, ValueError), match="does not lie in a memory"):
        _load(archive(view(0, 0, (4000,), (1,)), {"data/0": b""}), weights_only=not trusted)


def _values():
    ordered = collections.OrderedDict(a=1)
    ordered._metadata = collections.OrderedDict(version=2)
    return [
        np.arange(3.0), np.arange(6).reshape(2, 3).T, np.arange(3, dtype=">i4"), np.array(True),
        np.zeros((0, 3)), np.ones(2000, np.float32), np.array([True, False]), np.float32(2),
        np.complex64(1j), np.dtype("f4"), np.dtype(">f8"), tensor([1.0, 2.0]),
        tensor([3.0], requires_grad=True), torch.ones(2, 2)[1], torch.nn.Parameter(torch.ones(3)),
        torch.nn.Buffer(torch.ones(3)), torch.ones(2, 1).expand(2, 3), torch.Size([2, 3]),
        {1, 2}, frozenset({1}), 1 + 2j, slice(1, None, 2), range(3), bytearray(b"ab"),
        b"", b"ab\xff", "\u00e9\n\ud800", ordered, collections.defaultdict(list, {1: [2]}),
        collections.deque([1, 2], 3), collections.Counter("aab"), None, True, 1 << 100, -5, 1.5,
        [1, (2, 3, 4, 5)], {"a": {(1, "b"): []}},
    ]  # fmt: skip


def _same(found, expected):
    assert type(found) is type(expected)
    if isinstance(expected, (np.ndarray, torch.Tensor)):
        a, b = np.asarray(found.detach() if isinstance(found, torch.Tensor) else found), expected
        b = np.asarray(b.detach() if isinstance(b, torch.Tensor) else b)
        assert (a.dtype, a.shape, a.strides) == (b.dtype, b.shape, b.strides)
        assert a.tolist() == b.tolist()
        assert vars(found) == vars(expected) if type(found) is torch.nn.Buffer else True
    else:
        assert found == expected
        assert getattr(found, "__dict__", None) == getattr(expected, "__dict__", None)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_of_data_is_read_as_pickle_reads_it(protocol):
    for value in _values():
        data = pickle.dumps(value, protocol)
        found, expected = _load(data), pickle.loads(data)
        if isinstance(value, torch.nn.Buffer):
            assert found.persistent is True
        elif isinstance(value, torch.Tensor):
            assert found.requires_grad == value.requires_grad
            np.testing.assert_array_equal(found.detach().numpy(), value.detach().numpy())
        else:
            _same(found, expected)
    both = _load(pickle.dumps([x := np.ones(2000), x], protocol))
    assert both[0] is both[1]


def test_save_with_pickle_and_several_pickles_in_one_file_are_read():
    stream = io.BytesIO()
    torch.save({"w": torch.ones(2, 3)}, stream, pickle_module=pickle)
    torch.save(np.arange(3), stream, pickle_module=pickle)
    stream.seek(0)
    assert torch.load(stream)["w"].tolist() == [[1] * 3] * 2
    assert torch.load(stream).tolist() == [0, 1, 2]
    stream.seek(0)
    assert torch.load(stream, weights_only=False)["w"].shape == (2, 3)
    assert torch.load(stream, weights_only=False).tolist() == [0, 1, 2]


def test_files_of_pytorch_before_archives_are_named():
    old = pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2)
    for options in ({}, {"weights_only": False}):
        with pytest.raises(pickle.UnpicklingError, match=r"PyTorch before 1\.6"):
            _load(old, **options)


def test_a_module_that_unpickles_is_trusted_or_refused():
    data = pickle.dumps({"a": 1})
    assert _load(data, pickle_module=pickle) == {"a": 1}
    assert _load(data, pickle_module=pickle, weights_only=False) == {"a": 1}
    with pytest.raises(RuntimeError, match="Can not safely load weights"):
        _load(data, pickle_module=pickle, weights_only=True)


def test_truth_values_of_a_file_are_zero_and_one():
    code = call(
        REBUILD, storage(4, "BoolStorage"), lit(0), lit((4,)), lit((1,)), lit(False), ORDERED,
    )  # fmt: skip
    found = _load(archive(code, {"data/0": bytes([0, 1, 2, 255])}))
    raw = _load(whole(array(lit((8,)), dtype("b1"), EIGHT)))
    assert found.numpy().view(np.uint8).tolist() == [0, 1, 1, 1]
    assert raw.view(np.uint8).tolist() == [0] + [1] * 7


def test_an_array_does_not_share_memory_with_bytes_of_the_file():
    raw = b"B" + (4000).to_bytes(4, "little") + bytes(4000)
    code = raw + b"q\x630" + array(lit((500,)), dtype("f8"), b"h\x63") + b"h\x63\x86"
    found, data = _load(whole(code))
    found[:] = 7
    assert data == bytes(4000)


def test_attributes_that_users_put_on_tensors_are_read():
    x = torch.nn.Parameter(torch.ones(2))
    x.tag = ["a"]
    stream = io.BytesIO()
    torch.save(x, stream)
    for data in (stream.getvalue(), pickle.dumps(x)):
        assert _load(data).tag == ["a"]
    with pytest.raises(pickle.UnpicklingError, match="sets the state of"):
        _load(whole(build(TENSOR, lit({"tag": 1}))))
