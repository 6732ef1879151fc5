"""Functions of ``nn.functional``: values, derivatives against differences, what is refused."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.compat.torch as torch
from functrans.autograd import grad, no_grad, tensor
from functrans.autograd.checks import gradcheck, gradgradcheck
from functrans.autograd.composites import composite
from functrans.autograd.func import grad as functional_grad
from functrans.autograd.graph import saved_tensors_hooks
from functrans.autograd.programs import Operation
from functrans.compat.torch.nn import functional as F  # noqa: N812  # as torch code has it


def leaf(values: Any) -> Any:
    return tensor(np.asarray(values, float), requires_grad=True)


X = np.array([[-2.3, -0.7, 0.2, 1.6], [0.9, -1.1, 3.4, -3.6]])
ACTIVATIONS = [
    F.relu, F.relu6, F.hardtanh, F.leaky_relu, F.elu, F.selu, F.celu, F.gelu, F.silu, F.mish,
    F.softplus, F.softsign, F.tanhshrink, F.hardsigmoid, F.hardswish, F.logsigmoid, F.softshrink,
    F.hardshrink, F.glu, F.sigmoid, F.tanh, F.normalize,
    lambda x: F.softmax(x, 1), lambda x: F.softmin(x, 1), lambda x: F.log_softmax(x, 1),
    lambda x: F.gelu(x, approximate="tanh"), lambda x: F.threshold(x, 0.5, -1.0),
    lambda x: F.layer_norm(x, (4,)), lambda x: F.rms_norm(x, (4,)),
    lambda x: F.group_norm(x, 2), lambda x: F.pad(x, (1, 2, 0, 1), value=3.0),
    lambda x: F.pad(x, (1, 2), mode="replicate"),
    lambda x: F.batch_norm(x, None, None, training=True),
]  # fmt: skip


@pytest.mark.parametrize("function", ACTIVATIONS)
def test_derivatives_of_functions_of_one_tensor(function: Callable[..., Any]) -> None:
    assert gradcheck(function, leaf(X), check_batched_grad=True)


@pytest.mark.parametrize(
    "function",
    [F.gelu, F.silu, lambda x: F.softmax(x, 1), lambda x: F.log_softmax(x, 1), F.mish, F.normalize],
)
def test_second_derivatives(function: Callable[..., Any]) -> None:
    assert gradgradcheck(function, leaf(X))


LOSSES = [
    F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss, F.binary_cross_entropy_with_logits,
    F.soft_margin_loss, F.hinge_embedding_loss,
    lambda x, y, **k: F.poisson_nll_loss(x, y, full=True, **k),
    lambda x, y, **k: F.binary_cross_entropy(F.sigmoid(x), y, **k),
    lambda x, y, **k: F.cross_entropy(x, F.softmax(y, 1), label_smoothing=0.1, **k),
    lambda x, y, **k: F.kl_div(x, y, **({"reduction": "batchmean"} | k)),
]  # fmt: skip


@pytest.mark.parametrize("function", LOSSES)
@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"reduction": "none"}])
def test_derivatives_of_losses(function: Callable[..., Any], options: Any) -> None:
    y = tensor(np.array([[0.3, 0.9, 0.1, 0.6], [0.2, 0.4, 0.8, 0.7]]))
    assert gradcheck(lambda x: function(x, y, **options), leaf(X))


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weight", [None, np.array([0.5, 1.0, 2.0, 1.5])])
@pytest.mark.parametrize("target", [[3, 1], [-100, 2]])
def test_cross_entropy_is_the_mean_of_negative_logarithms(
    smoothing: float, weight: Any, target: Any
) -> None:
    x = leaf(X)
    w = None if weight is None else tensor(weight)
    found = F.cross_entropy(x, tensor(np.array(target)), w, label_smoothing=smoothing)
    log_p = X - np.log(np.exp(X).sum(1, keepdims=True))
    factor = np.ones(4) if weight is None else weight
    rows = [i for i, t in enumerate(target) if t >= 0]
    total = sum(
        -(1 - smoothing) * log_p[i, target[i]] * factor[target[i]]
        - smoothing / 4 * (log_p[i] * factor).sum()
        for i in rows
    )
    assert_allclose(found.item(), total / sum(factor[target[i]] for i in rows))
    assert gradcheck(
        lambda x: F.cross_entropy(x, tensor(np.array(target)), w, label_smoothing=smoothing), x
    )


def test_many_classes_take_the_way_of_indices() -> None:
    x = leaf(np.linspace(-1, 1, 120).reshape(2, 60))
    target = tensor(np.array([7, 59]))
    assert_allclose(
        F.cross_entropy(x, target).item(),
        F.nll_loss(F.log_softmax(x, 1), target).item(),
    )
    assert gradcheck(lambda x: F.cross_entropy(x, target), x)


def test_logits_of_minus_infinity_have_no_gradient() -> None:
    x = leaf([[1.0, -np.inf, 2.0]])
    F.cross_entropy(x, tensor(np.array([0]))).backward()
    p = np.exp([1.0, -np.inf, 2.0]) / np.exp([1.0, 2.0]).sum()
    assert_allclose(x.grad.numpy(), [p - [1, 0, 0]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: F.cross_entropy(leaf(X), tensor(np.array([0, 4]))), IndexError, "Target 4 is out"),
        (lambda: F.cross_entropy(leaf(X), tensor(np.array([0]))), ValueError, "to match target"),
        (lambda: F.linear(leaf(X), leaf(np.ones((2, 3)))), RuntimeError, r"\(2x4 and 3x2\)"),
        (lambda: F.linear(leaf(X), tensor(np.ones((2, 4), "f"))), RuntimeError, "Double and Float"),
        (lambda: F.mse_loss(leaf(X), leaf(X), reduction="avg"), ValueError, "avg is not a valid"),
        (lambda: F.dropout(leaf(X), 1.5), ValueError, "between 0 and 1, but got 1.5"),
        (lambda: F.relu(X), TypeError, "must be Tensor, not numpy.ndarray"),
        (lambda: F.embedding(tensor(np.array([9])), leaf(X)), IndexError, "out of range in self"),
        (lambda: F.conv1d(leaf(np.ones((1, 2, 5))), leaf(np.ones((1, 3, 2)))), RuntimeError,
         "to have 3 channels, but got 2 channels instead"),
        (lambda: F.glu(leaf(np.ones(3))), RuntimeError, "must be even"),
        (lambda: F.max_pool2d(leaf(np.ones((1, 2, 2))), 3), RuntimeError, "too small"),
    ],
)  # fmt: skip
def test_what_is_refused(call: Callable[[], Any], error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_the_derivative_of_relu_at_0_is_0() -> None:
    x = leaf([-1.0, 0.0, 2.0, np.nan])
    y = F.relu(x)
    assert_array_equal(y.detach().numpy(), [0, 0, 2, np.nan])
    y.sum().backward()
    assert_array_equal(x.grad.numpy()[:3], [0, 0, 1])


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4)])
def test_linear_has_the_derivative_of_its_equations(rng: Any, shape: tuple[int, ...]) -> None:
    x, w, b = (leaf(rng.standard_normal(s)) for s in (shape, (5, 4), (5,)))
    assert gradcheck(F.linear, (x, w, b), check_batched_grad=True)
    assert gradgradcheck(F.linear, (x, w, b))


@pytest.mark.parametrize(
    "options",
    [{}, {"stride": 2, "padding": 1}, {"dilation": 2}, {"padding": "same"}],
)
def test_conv2d_is_a_correlation(rng: Any, options: Any) -> None:
    x, w, b = (rng.standard_normal(s) for s in ((2, 3, 6, 6), (4, 3, 3, 3), (4,)))
    found = F.conv2d(leaf(x), leaf(w), leaf(b), **options)
    s, d, p = options.get("stride", 1), options.get("dilation", 1), options.get("padding", 0)
    p = 1 if p == "same" else p
    wide = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    reach = 2 * d + 1
    n = (wide.shape[2] - reach) // s + 1
    expected = np.empty((2, 4, n, n))
    for i in range(n):
        for j in range(n):
            part = wide[:, :, i * s : i * s + reach : d, j * s : j * s + reach : d]
            expected[:, :, i, j] = np.einsum("ncij,ocij->no", part, w) + b
    assert_allclose(found.detach().numpy(), expected)
    assert gradcheck(
        lambda *a: F.conv2d(*a, **options), (leaf(x[:1]), leaf(w), leaf(b)), fast_mode=True
    )


def test_conv_transpose_refuses_to_have_no_output() -> None:
    x, w = (F.pad(tensor(np.ones((1, 1, 1))), (0, k)) for k in (0, 1))
    assert F.conv_transpose1d(x, w).shape == (1, 1, 2)
    with pytest.raises(RuntimeError, match=r"Calculated output size per channel: \(0\)"):
        F.conv_transpose1d(x, w, padding=1)


def test_conv_transpose_is_the_transpose(rng: Any) -> None:
    x, y, w = (leaf(rng.standard_normal(s)) for s in ((1, 2, 5), (1, 3, 3), (3, 2, 3)))
    left = (F.conv1d(x, w, stride=2, padding=1) * y).sum()
    right = (F.conv_transpose1d(y, w, stride=2, padding=1) * x).sum()
    assert_allclose(left.item(), right.item())


def test_max_pool_gives_its_gradient_to_the_first_of_equals() -> None:
    x = leaf([[[[1.0, 1.0, 0.0, 5.0], [1.0, 0.0, 5.0, 2.0]]]])
    y, places = F.max_pool2d(x, 2, return_indices=True)
    assert_array_equal(y.detach().numpy(), [[[[1, 5]]]])
    assert_array_equal(places.numpy(), [[[[0, 3]]]])
    y.sum().backward()
    assert_array_equal(x.grad.numpy(), [[[[1, 0, 0, 1], [0, 0, 0, 0]]]])


@pytest.mark.parametrize("include", [True, False])
def test_avg_pool_counts_its_padding_if_asked(include: bool) -> None:
    x = leaf(np.arange(1.0, 5.0).reshape(1, 1, 4))
    y = F.avg_pool1d(x, 2, padding=1, count_include_pad=include)
    edge = 2 if include else 1
    assert_allclose(y.detach().numpy(), [[[1 / edge, 2.5, 4 / edge]]])
    assert gradcheck(lambda x: F.avg_pool1d(x, 2, padding=1, count_include_pad=include), x)


def test_the_padding_row_of_an_embedding_gets_no_gradient() -> None:
    w = leaf(X)
    index = tensor(np.array([0, 1, 1]))
    F.embedding(index, w, padding_idx=0).sum().backward()
    assert_array_equal(w.grad.numpy(), [[0] * 4, [2] * 4])
    w.grad = None
    F.embedding(index, w, scale_grad_by_freq=True).sum().backward()
    assert_array_equal(w.grad.numpy(), np.ones((2, 4)))


def test_dropout_keeps_the_mean() -> None:
    x = leaf(np.ones(10_000))
    y = F.dropout(x, 0.25)
    assert set(np.unique(y.detach().numpy())) == {0.0, 1 / 0.75}
    assert abs(y.detach().numpy().mean() - 1) < 0.05
    y.sum().backward()
    assert_array_equal(x.grad.numpy(), y.detach().numpy())
    assert F.dropout(x, 0.25, training=False) is x


def test_a_jitted_step_draws_dropout_anew() -> None:
    x = tensor(np.ones(50))
    drop = ft.jit(lambda: F.dropout(x, 0.5))
    masks = {drop().numpy().tobytes() for _ in range(4)}
    assert len(masks) > 1


def test_attention_sees_no_later_row_if_causal(rng: Any) -> None:
    q, k, v = (leaf(rng.standard_normal((2, 3, 4))) for _ in range(3))
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert_allclose(out.detach().numpy()[:, 0], v.detach().numpy()[:, 0])
    (gradient,) = grad(out[:, 1].sum(), v)
    assert_array_equal(gradient.numpy()[:, 2], 0)
    assert gradcheck(F.scaled_dot_product_attention, (q, k, v), fast_mode=True)


# operations --------------------------------------------------------------------------------------


def _several(a: Any, b: Any) -> Any:
    return ft.numpy.sin(a) * b, a + b, ft.numpy.reshape(a, (-1,))


def test_an_operation_is_what_a_composite_is(rng: Any) -> None:
    a, b = leaf(rng.standard_normal((2, 3))), leaf(rng.standard_normal((2, 3)))
    operation = Operation("Several", _several)
    for _ in range(2):  # staged, then from the table
        found, expected = operation(a, b), composite("Several", _several, a, b)
        for x, y in zip(found, expected, strict=True):
            assert_allclose(x.detach().numpy(), y.detach().numpy())
            assert x.grad_fn.name() == "SeveralBackward0"
            got = grad(x.sum(), [a, b], retain_graph=True, allow_unused=True, create_graph=True)
            want = grad(y.sum(), [a, b], retain_graph=True, allow_unused=True)
            for g, h in zip(got, want, strict=True):
                assert (g is None) == (h is None)
                if g is not None:
                    assert_allclose(g.detach().numpy(), h.numpy())
    assert len(operation.plans) == 1


def test_an_operation_notices_writes_to_what_it_saved() -> None:
    a = leaf([1.0, 2.0])
    for operation, spoil in (
        (Operation("Square", lambda x: x * x), "operand"),
        (Operation("Exp", ft.numpy.exp), "result"),
    ):
        x = a * 1.0
        y = operation(x)
        with no_grad():
            (x if spoil == "operand" else y).mul_(2.0)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_the_result_of_an_operation_has_memory_of_its_own() -> None:
    x = tensor(np.ones((2, 3)))
    y = Operation("View", lambda x: ft.numpy.reshape(x, (3, 2)))(x)
    y[0, 0] = 5.0
    assert_array_equal(x.numpy(), np.ones((2, 3)))


def test_an_operation_frees_its_residuals() -> None:
    a = leaf([1.0, 2.0])
    y = F.gelu(a).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_hooks_for_saved_tensors_see_the_residuals_of_an_operation() -> None:
    a = leaf([1.0, 2.0])
    seen = []

    def pack(x: Any) -> Any:
        seen.append(x.shape)
        return x.numpy().copy()

    with saved_tensors_hooks(pack, lambda x: tensor(x)):
        y = F.silu(a).sum()
    y.backward()
    assert seen
    expected = grad(F.silu(b := leaf([1.0, 2.0])).sum(), b)[0]
    assert_allclose(a.grad.numpy(), expected.numpy())


def test_an_operation_works_under_functional_transforms() -> None:
    values = np.array([0.5, -1.0])
    slope = functional_grad(lambda x: F.silu(x).sum())(tensor(values))
    a = leaf(values)
    F.silu(a).sum().backward()
    assert_allclose(slope.numpy(), a.grad.numpy())


@pytest.mark.parametrize(
    ("mode", "expected"),
    [("circular", [1, 2, 3, 4, 0, 1]), ("replicate", [1, 2, 3, 4, 4, 4])],
)
def test_negative_pads_crop_in_every_mode(mode, expected):
    x = tensor(np.arange(5.0)[None])
    assert F.pad(x, (-1, 2), mode=mode).tolist() == [expected]


def test_targets_that_are_no_classes_are_named_by_torchs_word() -> None:
    with pytest.raises(RuntimeError, match="dtype to be Long or Byte, but got Float"):
        F.nll_loss(torch.ones(2, 3), torch.ones(2))


def test_shapes_that_do_not_broadcast_are_named() -> None:
    with pytest.raises(RuntimeError, match=r"single shape: got \(2,\), \(3,\)"):
        torch.broadcast_shapes((2,), (3,))


_SOFTMAXES = {
    "softmax": torch.nn.Softmax,
    "softmin": torch.nn.Softmin,
    "log_softmax": torch.nn.LogSoftmax,
}


@pytest.mark.parametrize(
    ("shape", "axis"), [((), 0), ((3,), 0), ((2, 3), 1), ((2, 3, 2), 0), ((2, 1, 2, 3), 1)]
)
@pytest.mark.parametrize("name", _SOFTMAXES)
def test_an_axis_that_is_not_given_is_chosen_with_a_warning(name, shape, axis):
    x = torch.arange(12.0)[: int(np.prod(shape))].reshape(shape)
    function = getattr(F, name)
    for call in (function, _SOFTMAXES[name]()):
        with pytest.warns(UserWarning, match=f"^Implicit dimension choice for {name} ") as record:
            found = call(x)
        assert record[0].filename == __file__
        assert_array_equal(found, function(x, axis))


@pytest.mark.parametrize("call", [torch.softmax, torch.log_softmax, torch.Tensor.softmax])
def test_methods_choose_no_axis(call):
    with pytest.raises(TypeError, match=r"softmax\(\) missing 1 required positional argument"):
        call(torch.ones(2))
    with pytest.raises(TypeError):
        call(torch.ones(2), None)
