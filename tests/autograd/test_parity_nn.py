"""``nn`` and ``optim`` against torch, where torch is installed."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans.compat.torch as own

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")


def both(function: Callable[[Any], Any]) -> tuple[Any, Any]:
    """What a function of the module gives here and in torch, from the same seed."""
    results = []
    for module in (own, torch):
        module.manual_seed(0)
        results.append(function(module))
    return results[0], results[1]


def assert_same(a: Any, b: Any, tolerance: float = 2e-6) -> None:
    if isinstance(b, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y, tolerance)
        return
    if b is None:
        assert a is None
        return
    assert tuple(a.shape) == tuple(b.shape)
    assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=tolerance, atol=tolerance)


LAYERS: list[tuple[Callable[[Any], Any], tuple[int, ...]]] = [
    (lambda nn: nn.Linear(5, 3), (4, 5)),
    (lambda nn: nn.Linear(5, 3, bias=False), (2, 4, 5)),
    (
        lambda nn: nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 2)),
        (4, 5),
    ),
    (lambda nn: nn.BatchNorm1d(5), (6, 5)),
    (lambda nn: nn.BatchNorm2d(3), (2, 3, 4, 4)),
    (lambda nn: nn.GroupNorm(2, 4), (2, 4, 5)),
    (lambda nn: nn.RMSNorm(5), (3, 5)),
    (lambda nn: nn.Conv1d(3, 4, 3, padding=1), (2, 3, 7)),
    (lambda nn: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2), (2, 4, 7, 7)),
    (lambda nn: nn.Conv2d(2, 3, 3, padding="same", padding_mode="circular"), (1, 2, 5, 5)),
    (lambda nn: nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, output_padding=1), (2, 3, 4, 4)),
    (lambda nn: nn.MaxPool2d(2, stride=1, padding=1, ceil_mode=True), (2, 3, 5, 5)),
    (lambda nn: nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True), (2, 3, 6, 6)),
    (lambda nn: nn.AdaptiveAvgPool2d((3, 2)), (2, 3, 7, 5)),
    (lambda nn: nn.PReLU(), (4, 5)),
    (lambda nn: nn.Softplus(2.0), (4, 5)),
    (lambda nn: nn.ELU(0.5), (4, 5)),
    (lambda nn: nn.GELU("tanh"), (4, 5)),
    (lambda nn: nn.LSTM(3, 4, 2, bidirectional=True), (5, 2, 3)),
    (lambda nn: nn.LSTM(3, 5, proj_size=2, batch_first=True), (2, 4, 3)),
    (lambda nn: nn.GRU(3, 4, 2, batch_first=True), (2, 5, 3)),
    (lambda nn: nn.RNN(3, 4, nonlinearity="relu"), (5, 3)),
    (lambda nn: nn.LSTMCell(3, 4), (2, 3)),
    (lambda nn: nn.GRUCell(3, 4), (2, 3)),
]


@pytest.mark.parametrize(("make", "shape"), LAYERS)
def test_layers_give_the_same_from_the_same_seed(make: Any, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x_values = rng.standard_normal(shape).astype("f")

    def run(module: Any) -> Any:
        layer = make(module.nn)
        x = module.tensor(x_values, requires_grad=True)
        out = layer(x)
        main = out[0] if isinstance(out, tuple) else out
        weights = np.random.default_rng(1).standard_normal(tuple(main.shape)).astype("f")
        (main * module.tensor(weights)).sum().backward()
        return (
            main,
            x.grad,
            [p.grad for p in layer.parameters()],
            list(layer.buffers()),
            repr(layer),
        )

    a, b = both(run)
    assert a[-1] == b[-1]
    assert_same(a[:-1], b[:-1], 2e-5)


LOSSES: list[tuple[str, dict[str, Any]]] = [
    ("MSELoss", {}), ("L1Loss", {}), ("SmoothL1Loss", {"beta": 0.5}), ("HuberLoss", {"delta": 0.5}),
    ("BCEWithLogitsLoss", {}), ("SoftMarginLoss", {}), ("KLDivLoss", {"reduction": "batchmean"}),
    ("PoissonNLLLoss", {"full": True}), ("HingeEmbeddingLoss", {}), ("CrossEntropyLoss", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "options"), LOSSES)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(name: str, options: Any, reduction: str) -> None:
    rng = np.random.default_rng(0)
    x_values, y_values = rng.standard_normal((4, 5)), rng.uniform(0.1, 1.0, (4, 5))

    def run(module: Any) -> Any:
        loss = getattr(module.nn, name)(**({"reduction": reduction} | options))
        x = module.tensor(x_values, requires_grad=True)
        out = loss(x, module.tensor(y_values))
        out.sum().backward()
        return out, x.grad, repr(loss)

    a, b = both(run)
    assert a[-1] == b[-1]
    assert_same(a[:-1], b[:-1], 1e-12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(6, 5), (2, 5, 3), (4, 70)])
def test_cross_entropy_of_classes(smoothing: float, weighted: bool, shape: Any) -> None:
    rng = np.random.default_rng(0)
    x_values = rng.standard_normal(shape)
    target = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    target.flat[1] = -100
    weights = rng.uniform(0.5, 2.0, shape[1]) if weighted else None

    def run(module: Any) -> Any:
        x = module.tensor(x_values, requires_grad=True)
        w = None if weights is None else module.tensor(weights)
        out = module.nn.functional.cross_entropy(
            x, module.tensor(target), w, label_smoothing=smoothing
        )
        out.backward()
        return out, x.grad

    assert_same(*both(run), 1e-12)


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "maximize": True}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}),
    ("AdamW", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01}),
    ("RMSprop", {"lr": 0.01, "centered": True, "momentum": 0.5, "weight_decay": 0.01}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1}),
    ("Adadelta", {}),
    ("Adamax", {"lr": 0.01}),
    ("NAdam", {"lr": 0.01}),
    ("Rprop", {"lr": 0.01}),
    ("LBFGS", {"lr": 0.5, "max_iter": 4}),
    ("LBFGS", {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 4}),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_optimizers_agree_step_by_step(name: str, options: Any) -> None:
    rng = np.random.default_rng(0)
    x_values, y_values = rng.standard_normal((20, 4)), rng.standard_normal((20, 2))

    def run(module: Any) -> Any:
        model = module.nn.Sequential(
            module.nn.Linear(4, 5), module.nn.Tanh(), module.nn.Linear(5, 2)
        ).double()
        optimizer = getattr(module.optim, name)(model.parameters(), **options)
        x, y = module.tensor(x_values), module.tensor(y_values)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = module.nn.functional.mse_loss(model(x), y)
            loss.backward()
            return loss

        path = []
        for _ in range(6):
            loss = optimizer.step(closure)
            path.append([loss, *[p.detach().clone() for p in model.parameters()]])
        state = optimizer.state_dict()
        keys = [sorted(entry) for entry in state["state"].values()]
        return path, keys, repr(optimizer)

    a, b = both(run)
    assert a[2] == b[2]
    if name != "LBFGS":
        assert a[1] == b[1]
    # differences of nearly equal numbers: centred squares, and curvatures
    is_sensitive = name == "LBFGS" or "centered" in options
    assert_same(a[0], b[0], 1e-5 if is_sensitive else 1e-10)


SCHEDULES: list[Callable[[Any, Any], Any]] = [
    lambda s, o: s.StepLR(o, 3, 0.5),
    lambda s, o: s.MultiStepLR(o, [2, 5, 5], 0.5),
    lambda s, o: s.ExponentialLR(o, 0.9),
    lambda s, o: s.LinearLR(o, 0.2, 0.8, 6),
    lambda s, o: s.ConstantLR(o, 0.5, 4),
    lambda s, o: s.PolynomialLR(o, 7, 1.5),
    lambda s, o: s.CosineAnnealingLR(o, 4, 0.01),
    lambda s, o: s.CosineAnnealingWarmRestarts(o, 2, 2),
    lambda s, o: s.LambdaLR(o, lambda n: 0.95**n),
    lambda s, o: s.MultiplicativeLR(o, lambda n: 0.9),
    lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9)], [3]),
]


@pytest.mark.parametrize("make", SCHEDULES)
def test_schedules_agree(make: Any) -> None:
    def run(module: Any) -> Any:
        optimizer = module.optim.SGD([module.ones(1, requires_grad=True)], lr=1.0)
        schedule = make(module.optim.lr_scheduler, optimizer)
        rates = []
        for _ in range(12):
            rates.append(float(optimizer.param_groups[0]["lr"]))
            optimizer.step()
            schedule.step()
        return rates

    assert_allclose(*both(run), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "change",
    [
        lambda t, m: m.load_state_dict({}),
        lambda t, m: m.load_state_dict({"weight": t.zeros(1), "x": t.zeros(1)}),
        lambda t, m: setattr(m, "weight", 3),
        lambda t, m: m.register_parameter("", None),
        lambda t, m: m.register_parameter("weight.x", None),
        lambda t, m: m.register_buffer("forward", None),
        lambda t, m: m.register_buffer("b", 3),
        lambda t, m: m.add_module("b", 3),
        lambda t, m: m.nothing,
        lambda t, m: m.get_submodule("a"),
        lambda t, m: m.get_parameter("in_features"),
        lambda t, m: m(t.ones(2, 5)),
        lambda t, m: t.optim.SGD([t.ones(1) * m.weight.sum()], lr=1.0),
        lambda t, m: t.optim.SGD(m.weight, lr=1.0),
        lambda t, m: t.optim.Adam(m.parameters(), betas=(2.0, 0.9)),
        lambda t, m: t.nn.functional.cross_entropy(t.ones(2, 3), t.tensor([0, 3])),
        lambda t, m: t.nn.functional.cross_entropy(t.ones(2, 3), t.tensor([0])),
        lambda t, m: t.nn.functional.mse_loss(t.ones(2, 3), t.ones(2, 4)),
        lambda t, m: t.nn.functional.softshrink(t.ones(2), -1.0),
        lambda t, m: t.nn.functional.gelu(t.ones(2), approximate="none at all"),
        lambda t, m: t.nn.Conv2d(3, 4, 2, groups=2),
        lambda t, m: t.nn.LSTM(3, 0),
        lambda t, m: t.nn.init.kaiming_uniform_(t.ones(3)),
        lambda t, m: t.nn.init.calculate_gain("none"),
    ],
)
def test_errors_are_torchs(change: Any) -> None:
    errors = []
    for module in (own, torch):
        with pytest.raises(Exception) as caught:  # noqa: PT011  # compared below
            change(module, module.nn.Linear(3, 2))
        errors.append(caught.value)
    assert type(errors[0]) is type(errors[1])
    assert str(errors[0]).splitlines()[0] == str(errors[1]).splitlines()[0]


def test_modules_print_as_in_torch() -> None:
    def run(module: Any) -> str:
        nn = module.nn
        model = nn.ModuleDict({
            "a": nn.Sequential(nn.Conv2d(1, 2, 3, bias=False), nn.BatchNorm2d(2), nn.ReLU()),
            "b": nn.ModuleList([nn.Dropout(0.1), nn.Embedding(3, 4, padding_idx=0), nn.Softmax(1)]),
            "c": nn.LSTM(2, 3, num_layers=2, batch_first=True),
        })  # fmt: skip
        return repr(model)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        a, b = both(run)
    assert a == b
