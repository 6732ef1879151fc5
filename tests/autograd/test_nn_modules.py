"""Modules: registration, state, hooks, modes, printing; layers against NumPy."""

import copy
import gc
import inspect
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans.compat.torch as torch
from functrans.autograd.checks import gradcheck
from functrans.compat.torch import nn
from functrans.compat.torch.nn import packing as rnn


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.ModuleList([nn.Linear(4, 4), nn.Tanh()])
        self.scale = nn.Parameter(torch.ones(4))
        self.register_buffer("offset", torch.zeros(4))
        self.register_buffer("cache", torch.zeros(1), persistent=False)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        for layer in self.rest:
            x = layer(x)
        return x * self.scale + self.offset


NAMES = ["scale", "first.weight", "first.bias", "rest.0.weight", "rest.0.bias"]


def test_parameters_and_buffers_have_names() -> None:
    model = Model()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert [name for name, _ in model.named_buffers()] == ["offset", "cache"]
    assert [name for name, _ in model.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert list(model.state_dict()) == ["scale", "offset", *NAMES[1:]]
    assert model.get_submodule("rest.0") is model.rest[0]
    assert model.get_parameter("first.weight") is model.first.weight
    assert all(p.dtype == np.float32 and p.is_leaf for p in model.parameters())


def test_shared_parameters_come_once() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[1].weight = model[0].weight
    assert len(list(model.parameters())) == 3
    assert len(list(model.named_parameters(remove_duplicate=False))) == 4


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda m: m.nothing, AttributeError, "'Model' object has no attribute 'nothing'"),
        (lambda m: setattr(m, "scale", torch.ones(4)), TypeError,
         r"cannot assign 'torch.FloatTensor' as parameter 'scale' \(torch.nn.Parameter or None"),
        (lambda m: setattr(m, "first", 1), TypeError, "as child module 'first'"),
        (lambda m: m.register_parameter("a.b", None), KeyError, "parameter name can.*t contain"),
        (lambda m: m.register_buffer("first", None), KeyError, "attribute 'first' already exists"),
        (lambda m: m.register_parameter("p", torch.ones(1)), TypeError, "object to parameter 'p'"),
        (lambda m: m.train("yes"), ValueError, "training mode is expected to be boolean"),
        (lambda m: m.to(torch.int64), TypeError, "only accepts floating point or complex dtypes"),
        (lambda m: nn.Module()(1), NotImplementedError, 'missing the required "forward" function'),
    ],
)  # fmt: skip
def test_what_modules_refuse(change: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        change(Model())


def test_parameters_need_an_initialized_module() -> None:
    class Hasty(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(torch.ones(1))

    with pytest.raises(AttributeError, match=r"before Module\.__init__"):
        Hasty()


def test_state_goes_from_model_to_model() -> None:
    a, b = Model(), Model()
    result = b.load_state_dict(a.state_dict())
    assert repr(result) == "<All keys matched successfully>"
    x = torch.randn(2, 3)
    assert_array_equal(a(x).detach().numpy(), b(x).detach().numpy())
    assert b.first.weight.data_ptr() != a.first.weight.data_ptr()


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    model = Model()
    before = model.scale.detach().numpy().copy()
    state = model.state_dict()
    state["scale"] = torch.zeros(4)
    state["first.bias"] = torch.zeros(5)
    state["other"] = torch.zeros(1)
    del state["offset"]
    with pytest.raises(RuntimeError) as caught:
        model.load_state_dict(state)
    text = str(caught.value)
    assert text.startswith("Error(s) in loading state_dict for Model:\n\t")
    assert 'Missing key(s) in state_dict: "offset". ' in text
    assert 'Unexpected key(s) in state_dict: "other". ' in text
    assert (
        "size mismatch for first.bias: copying a param with shape torch.Size([5]) from checkpoint, "
        "the shape in current model is torch.Size([4])."
    ) in text
    assert_array_equal(model.scale.detach().numpy(), before)
    del state["first.bias"], state["other"]
    result = model.load_state_dict(state, strict=False)
    assert result.missing_keys == ["offset", "first.bias"]
    shown = "missing_keys=['offset', 'first.bias'], unexpected_keys=[]"
    assert repr(result) == f"_IncompatibleKeys({shown})"
    assert str(model.load_state_dict(model.state_dict())) == "<All keys matched successfully>"
    assert_array_equal(model.scale.detach().numpy(), 0)


def test_modes_and_conversions_reach_all_submodules() -> None:
    model = Model()
    assert model.eval() is model
    assert not any(module.training for module in model.modules())
    model.double()
    assert {p.dtype.name for p in model.parameters()} == {"float64"}
    model(torch.ones(1, 3, dtype=torch.float64)).sum().backward()
    assert {p.grad.dtype.name for p in model.parameters()} == {"float64"}
    model.zero_grad(set_to_none=False)
    assert all((p.grad == 0).all() for p in model.parameters())
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.requires_grad_(False)
    assert not model(torch.ones(1, 3, dtype=torch.float64)).requires_grad
    seen: list[str] = []
    model.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "Linear", "Tanh", "ModuleList", "Model"]


def test_copies_are_independent() -> None:
    model = Model()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.scale._memory()[...] = 7.0
        assert_array_equal(model.scale.detach().numpy(), 1)
        assert isinstance(other.scale, nn.Parameter)
        assert other.scale.requires_grad


def test_repr() -> None:
    assert repr(Model()) == (
        "Model(\n  (first): Linear(in_features=3, out_features=4, bias=True)\n"
        "  (rest): ModuleList(\n    (0): Linear(in_features=4, out_features=4, bias=True)\n"
        "    (1): Tanh()\n  )\n)"
    )


# hooks -------------------------------------------------------------------------------------------


def test_forward_hooks_change_arguments_and_results() -> None:
    layer = nn.Identity()
    x = torch.ones(2)
    with layer.register_forward_pre_hook(lambda module, args: args[0] * 2):
        assert_array_equal(layer(x).numpy(), [2, 2])
        with layer.register_forward_hook(lambda module, args, out: out + args[0]):
            assert_array_equal(layer(x).numpy(), [4, 4])
    assert layer(x) is x


def test_hooks_with_keywords_and_hooks_that_are_always_called() -> None:
    class Failing(nn.Module):
        def forward(self, *, n: int) -> int:
            if n < 0:
                raise ValueError("negative")
            return n

    module = Failing()
    seen: list[Any] = []
    module.register_forward_pre_hook(
        lambda module, args, kwargs: (args, {"n": kwargs["n"] - 1}), with_kwargs=True
    )
    module.register_forward_hook(lambda module, args, out: seen.append(out), always_call=True)
    assert module(n=3) == 2
    with pytest.raises(ValueError, match="negative"):
        module(n=0)
    assert seen == [2, None]


def test_full_backward_hooks_see_and_replace_gradients() -> None:
    layer = nn.Linear(2, 1, bias=False)
    layer.weight.data = torch.tensor([[2.0, 3.0]])
    seen: list[Any] = []

    def hook(module: Any, grad_input: Any, grad_output: Any) -> Any:
        seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
        return (grad_input[0] * 10,)

    x = torch.tensor([[1.0, 1.0]], requires_grad=True)
    with layer.register_full_backward_hook(hook):
        layer(x).sum().backward()
    assert seen == [([[2.0, 3.0]], [[1.0]])]
    assert x.grad.tolist() == [[20.0, 30.0]]
    with layer.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 2,)):
        x.grad = None
        layer(x).sum().backward()
    assert x.grad.tolist() == [[4.0, 6.0]]


def test_full_backward_hooks_without_a_differentiated_input() -> None:
    layer = nn.Linear(2, 1)
    seen: list[Any] = []
    layer.register_full_backward_hook(lambda module, gi, go: seen.append((gi, go[0].tolist())))
    layer(torch.ones(1, 2)).sum().backward()
    assert seen == [((None,), [[1.0]])]


def test_hooks_of_all_modules() -> None:
    seen: list[str] = []
    handle = nn.modules.register_module_forward_hook(
        lambda module, args, out: seen.append(type(module).__name__)
    )
    with handle:
        Model()(torch.ones(1, 3))
    Model()(torch.ones(1, 3))
    assert seen == ["Linear", "Linear", "Tanh", "Model"]


# layers ------------------------------------------------------------------------------------------


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def test_lstm_is_its_equations() -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(3, 4).double()
    x = torch.randn(5, 2, 3, dtype=torch.float64)
    out, (h, c) = layer(x)
    w_ih, w_hh, b_ih, b_hh = (p.detach().numpy() for p in layer.all_weights[0])
    state, cell = np.zeros((2, 4)), np.zeros((2, 4))
    for t in range(5):
        i, f, g, o = np.split(x.numpy()[t] @ w_ih.T + b_ih + state @ w_hh.T + b_hh, 4, axis=1)
        cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
        state = sigmoid(o) * np.tanh(cell)
        assert_allclose(out.detach().numpy()[t], state)
    assert_allclose(h.detach().numpy()[0], state)
    assert_allclose(c.detach().numpy()[0], cell)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_derivatives_of_recurrent_layers(kind: Any) -> None:
    torch.manual_seed(0)
    layer = kind(2, 3, num_layers=2, bidirectional=True, batch_first=True).double()
    x = torch.randn(2, 4, 2, dtype=torch.float64).requires_grad_()
    parameters = list(layer.parameters())
    assert gradcheck(lambda x: layer(x)[0], x, fast_mode=True)
    out, _ = layer(x)
    out.sum().backward()
    value = parameters[0]._memory()
    for step in (1e-6, -1e-6):
        value[0, 0] += step
        moved = layer(x)[0].sum().item()
        value[0, 0] -= step
        if step > 0:
            high = moved
    assert_allclose((high - moved) / 2e-6, parameters[0].grad.numpy()[0, 0], rtol=1e-5)


LENGTHS = [2, 4, 1]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_packed_sequences_are_each_run_alone(kind: Any) -> None:
    torch.manual_seed(0)
    layer = kind(2, 3, num_layers=2, bidirectional=True).double()
    x = torch.randn(4, 3, 2, dtype=torch.float64).requires_grad_()
    states = [torch.randn(4, 3, 3, dtype=torch.float64) for _ in range(1 + (kind is nn.LSTM))]
    packed = rnn.pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    out, last = layer(packed, tuple(states) if kind is nn.LSTM else states[0])
    assert isinstance(out, rnn.PackedSequence)
    padded, lengths = rnn.pad_packed_sequence(out, padding_value=7.0, total_length=5)
    assert lengths.tolist() == LENGTHS
    total = 0.0
    for i, n in enumerate(LENGTHS):
        own = [s[:, i : i + 1] for s in states]
        alone, ends = layer(x[:n, i : i + 1], tuple(own) if kind is nn.LSTM else own[0])
        assert_allclose(padded[:n, i].detach().numpy(), alone[:, 0].detach().numpy())
        assert (padded[n:, i] == 7.0).all()
        lasts = zip(*((last, ends) if kind is nn.LSTM else ([last], [ends])), strict=True)
        for found, end in lasts:
            assert_allclose(found[:, i].detach().numpy(), end[:, 0].detach().numpy())
        total = total + alone.square().sum()
    parameters = list(layer.parameters())
    of_packed = torch.autograd.grad(out.data.square().sum(), [x, *parameters])
    for found, wanted in zip(of_packed, torch.autograd.grad(total, [x, *parameters]), strict=True):
        assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-10)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("first", [True, False])
def test_padded_and_packed_sequences_are_lists_of_sequences(side: str, first: bool) -> None:
    rows = [torch.arange(2.0 * n, requires_grad=True).reshape(n, 2) for n in LENGTHS]
    padded = rnn.pad_sequence(rows, first, -1, side)
    for i, (row, line) in enumerate(zip(rows, padded if first else padded.unbind(1), strict=True)):
        expected = np.full((4, 2), -1.0)
        place = slice(4 - LENGTHS[i], 4) if side == "left" else slice(LENGTHS[i])
        expected[place] = row.tolist()
        assert_array_equal(line.detach().numpy(), expected)
    assert torch.autograd.grad(padded.sum(), rows[2])[0].tolist() == [[1.0, 1.0]]
    if side == "right":
        parts = rnn.unpad_sequence(padded, torch.tensor(LENGTHS), first)
        assert [part.tolist() for part in parts] == [row.tolist() for row in rows]
    packed = rnn.pack_sequence(rows, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    assert [part.tolist() for part in rnn.unpack_sequence(packed)] == [r.tolist() for r in rows]
    assert packed.to(torch.float64).data.dtype == torch.float64
    assert packed.float() is packed


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: rnn.pad_sequence([]), RuntimeError, "empty list of sequences"),
        (lambda: rnn.pad_sequence([torch.tensor(1.0)]), RuntimeError, "without axes"),
        (lambda: rnn.pad_sequence([1.0]), TypeError, "expected Tensor as element 0"),
        (lambda: rnn.pad_sequence([torch.ones(1)], padding_side="top"), RuntimeError, "left or"),
        (lambda: rnn.pack_padded_sequence(torch.ones(4, 3), LENGTHS), RuntimeError, "decreasing"),
        (lambda: rnn.pack_padded_sequence(torch.ones(4, 2), [4, 0]), RuntimeError, "than 0"),
        (lambda: rnn.pack_padded_sequence(torch.ones(4, 2), [4]), RuntimeError, "batch_size=2"),
        (lambda: rnn.pad_packed_sequence(rnn.pack_sequence([torch.ones(3)]), total_length=2),
         ValueError, "total_length to be at least"),
        (lambda: nn.GRU(1, 1)(rnn.pack_sequence([torch.ones(3)])), RuntimeError, "2 dimensions"),
    ],
)  # fmt: skip
def test_what_is_refused_of_sequences(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


@pytest.mark.parametrize("kind", [nn.LSTMCell, nn.GRUCell, nn.RNNCell])
def test_a_cell_is_one_step_of_its_layer(kind: Any) -> None:
    torch.manual_seed(0)
    cell = kind(2, 3)
    layer = {nn.LSTMCell: nn.LSTM, nn.GRUCell: nn.GRU, nn.RNNCell: nn.RNN}[kind](2, 3)
    layer.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})
    x = torch.randn(4, 2)
    one = cell(x)
    whole, _ = layer(x.reshape(1, 4, 2))
    first = one[0] if isinstance(one, tuple) else one
    assert_allclose(first.detach().numpy(), whole.detach().numpy()[0], rtol=1e-5)


def test_batch_norm_moves_its_running_values() -> None:
    layer = nn.BatchNorm1d(2, momentum=0.5)
    x = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    out = layer(x)
    assert_allclose(out.detach().numpy(), [[-1, -1], [1, 1]], rtol=1e-4)
    assert layer.running_mean.tolist() == [1.0, 1.0]
    assert layer.running_var.tolist() == [1.5, 4.5]
    assert layer.num_batches_tracked.item() == 1
    layer.eval()
    assert_allclose(layer(x).detach().numpy()[0], [0, -1 / np.sqrt(4.5)], rtol=1e-4)
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        layer(torch.ones(2))


def test_initial_values_depend_on_the_seed_only() -> None:
    weights = []
    for _ in range(2):
        torch.manual_seed(3)
        weights.append(nn.Linear(5, 4).weight.detach().numpy())
    assert_array_equal(*weights)
    assert np.abs(weights[0]).max() <= 1 / np.sqrt(5)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_orthogonal_initial_values(shape: tuple[int, int]) -> None:
    q = nn.init.orthogonal_(torch.empty(*shape, dtype=torch.float64)).numpy()
    product = q.T @ q if shape[0] > shape[1] else q @ q.T
    assert_allclose(product, np.eye(4), atol=1e-12)


def test_clip_grad_norm_shortens_long_gradients_only() -> None:
    a, b = (torch.tensor(v, requires_grad=True) for v in ([3.0], [4.0]))
    (0.5 * a * a + 0.5 * b * b).sum().backward()
    assert nn.utils.clip_grad_norm_([a, b], 10.0).item() == 5.0
    assert (a.grad.item(), b.grad.item()) == (3.0, 4.0)
    nn.utils.clip_grad_norm_([a, b], 1.0)
    assert_allclose([a.grad.item(), b.grad.item()], [0.6, 0.8], rtol=1e-5)
    nn.utils.clip_grad_value_([a, b], 0.7)
    assert_allclose([a.grad.item(), b.grad.item()], [0.6, 0.7], rtol=1e-5)


def test_parameters_go_to_a_vector_and_back() -> None:
    model = nn.Linear(2, 3)
    vector = nn.utils.parameters_to_vector(model.parameters())
    nn.utils.vector_to_parameters(vector.detach() * 2, model.parameters())
    again = nn.utils.parameters_to_vector(model.parameters())
    assert_allclose(again.detach().numpy(), 2 * vector.detach().numpy())


def test_containers() -> None:
    layers = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    assert [type(m).__name__ for m in layers[1:]] == ["ReLU", "Linear"]
    del layers[1]
    assert len(layers) == 2
    assert layers[-1].out_features == 1
    table = nn.ModuleDict({"a": nn.ReLU()})
    table["b"] = nn.Tanh()
    table.update(modules={"c": nn.ReLU()})
    assert list(table.keys()) == ["a", "b", "c"]
    weights = nn.ParameterDict()
    weights.update(parameters=[("w", torch.ones(2))])
    assert [name for name, _ in weights.named_parameters()] == ["w"]
    numbers = nn.ParameterList([torch.ones(2), torch.zeros(3)])
    assert [tuple(p.shape) for p in numbers.parameters()] == [(2,), (3,)]
    with pytest.raises(IndexError, match="index 5 is out of range"):
        layers[5]


@pytest.mark.parametrize("kind", ["linear", "lstm", "hooked"])
def test_a_training_step_leaves_nothing_to_the_garbage_collector(kind: str) -> None:
    model = nn.LSTM(3, 4) if kind == "lstm" else nn.Sequential(nn.Linear(3, 4), nn.GELU())
    if kind == "hooked":
        model.register_full_backward_hook(lambda module, grad_input, grad_output: None)
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.ones(2, 5, 3, requires_grad=True)

    def step() -> None:
        optimizer.zero_grad()
        out = model(x)
        (out[0] if isinstance(out, tuple) else out).sum().backward()
        optimizer.step()

    step()
    gc.collect()
    gc.disable()
    try:
        for _ in range(3):
            step()
        assert gc.collect() == 0
    finally:
        gc.enable()


class _Steep(nn.LeakyReLU):
    def __init__(self) -> None:
        super().__init__(2.0, inplace=False)


def test_classes_of_rows_are_like_written_ones() -> None:
    assert str(inspect.signature(nn.HuberLoss)) == (
        "(reduction: 'str' = 'mean', delta: 'float' = 1.0) -> 'None'"
    )
    assert not inspect.signature(_Steep).parameters
    assert nn.ReLU.__qualname__ == "ReLU"
    assert nn.ReLU.__module__ == "functrans.compat.torch.nn.activation_modules"
    assert issubclass(nn.ReLU6, nn.Hardtanh)
    assert issubclass(nn.AvgPool3d, nn.AvgPool2d)
    for module in (_Steep(), nn.MaxPool2d(2), nn.BCELoss(torch.ones(2))):
        for other in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
            assert type(other) is type(module)
            assert repr(other) == repr(module)
            assert list(other.state_dict()) == list(module.state_dict())


def test_settings_of_classes_of_rows_can_be_changed() -> None:
    steep = _Steep()
    steep.negative_slope = 3.0
    assert steep(input=torch.tensor([-1.0])).item() == -3.0
    assert repr(steep) == "_Steep(negative_slope=3.0)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nn.Threshold(1.0), "Threshold.__init__.*missing.*'value'"),
        (lambda: nn.ReLU(place=True), "ReLU.__init__.*unexpected.*'place'"),
        (lambda: nn.ReLU()(torch.ones(1), True), "ReLU.forward.*too many"),
    ],
)
def test_wrong_arguments_of_classes_of_rows_are_refused(call: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_parameters_that_are_taken_over_require_gradients_as_those_before() -> None:
    for frozen in (True, False):
        m = torch.nn.Linear(1, 1).requires_grad_(not frozen)
        other = torch.nn.Linear(1, 1).requires_grad_(frozen)
        m.load_state_dict(other.state_dict(keep_vars=True), assign=True)
        assert m.weight is other.weight
        assert m.weight.requires_grad is not frozen
