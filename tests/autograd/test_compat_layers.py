"""Layers and optimizers of ``functrans.compat.torch``: values by hand, derivatives, transforms."""

from __future__ import annotations

import numpy as np
import pytest

import functrans as ft
import functrans.compat.torch as torch
from functrans.autograd import gradcheck

F = torch.nn.functional
RNG = np.random.RandomState


def _leaf(seed, *shape):
    values = RNG(seed).standard_normal(shape)
    return torch.from_numpy(values).requires_grad_()


def test_causal_attention_of_the_first_row_is_its_value():
    x = torch.randn(4, 3)
    np.testing.assert_allclose(
        F.scaled_dot_product_attention(x, x, x, is_causal=True)[0].numpy(), x[0].numpy(), rtol=1e-6
    )


def test_rows_that_see_nothing_are_zero_and_have_no_gradient():
    x = _leaf(0, 2, 3)
    mask = torch.tensor([[True, True], [False, False]])
    out = F.scaled_dot_product_attention(x, x.detach(), x.detach(), attn_mask=mask)
    out.sum().backward()
    np.testing.assert_array_equal(out[1].detach().numpy(), np.zeros(3))
    np.testing.assert_array_equal(x.grad[1].numpy(), np.zeros(3))


def test_dropout_of_weights_keeps_the_mean():
    torch.manual_seed(0)
    x = torch.ones(20, 50, 4)
    out = F.scaled_dot_product_attention(x, x, x, dropout_p=0.5)
    assert out.std() > 0.05
    np.testing.assert_allclose(out.mean().item(), 1.0, atol=0.02)


def test_fold_of_unfold_counts_the_windows():
    ones = torch.ones(1, 1, 4, 4)
    folded = F.fold(F.unfold(ones, 3), (4, 4), 3)
    line = np.array([1.0, 2.0, 2.0, 1.0])
    np.testing.assert_array_equal(folded[0, 0].numpy(), np.outer(line, line))


def test_pixel_unshuffle_is_the_inverse_of_pixel_shuffle():
    x = torch.arange(48.0).reshape(1, 12, 2, 2)
    np.testing.assert_array_equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2).numpy(), x.numpy())


def test_linear_functions_are_interpolated_exactly():
    x = torch.arange(5.0, dtype=torch.float64).reshape(1, 1, 5)
    out = F.interpolate(x, 9, mode="linear", align_corners=True)
    np.testing.assert_allclose(out[0, 0].numpy(), np.linspace(0, 4, 9))


def test_the_identity_grid_gives_the_image_back():
    x = _leaf(1, 2, 3, 4, 5).detach()
    theta = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]] * 2, dtype=torch.float64)
    grid = F.affine_grid(theta, x.shape, align_corners=False)
    np.testing.assert_allclose(F.grid_sample(x, grid, align_corners=False).numpy(), x.numpy())


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.interpolate(x, (5, 3), mode="bicubic"),
        lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True),
        lambda x: F.unfold(x, 2, stride=2),
        lambda x: F.local_response_norm(x, 2, alpha=0.3),
        lambda x: F.adaptive_max_pool2d(x, (3, 2)),
        lambda x: F.scaled_dot_product_attention(x, x, x),
        lambda x: F.pdist(x.reshape(8, 4)),
        lambda x: F.instance_norm(x),
    ],
)
def test_derivatives(function):
    assert gradcheck(function, _leaf(2, 1, 2, 4, 4))


def test_derivatives_of_grid_sample():
    grid = torch.from_numpy(RNG(3).uniform(-0.9, 0.9, (1, 2, 2, 2))).requires_grad_()
    assert gradcheck(
        lambda x, g: F.grid_sample(x, g, align_corners=True), (_leaf(4, 1, 2, 4, 3), grid)
    )


def test_derivatives_of_ctc_loss():
    targets = torch.tensor([[1, 2]])
    assert gradcheck(lambda x: F.ctc_loss(x.log_softmax(2), targets, (5,), (2,)), _leaf(5, 5, 1, 4))


def test_ctc_loss_of_one_label_by_hand():
    p = np.array([[0.6, 0.4], [0.3, 0.7]])  # steps by (blank, label)
    loss = F.ctc_loss(torch.from_numpy(np.log(p))[:, None], torch.tensor([[1]]), (2,), (1,))
    paths = 0.4 * 0.7 + 0.4 * 0.3 + 0.6 * 0.7  # both steps, the first, the second
    np.testing.assert_allclose(loss.item(), -np.log(paths))


def test_gumbel_softmax_draws_classes_by_their_probability():
    torch.manual_seed(0)
    logits = torch.log(torch.tensor([0.2, 0.8])).expand(4000, 2).clone().requires_grad_()
    out = F.gumbel_softmax(logits, hard=True)
    np.testing.assert_allclose(out.detach().sum(1).numpy(), np.ones(4000), rtol=1e-6)
    np.testing.assert_allclose(out[:, 1].mean().item(), 0.8, atol=0.03)
    (out[:, 0]).sum().backward()
    assert logits.grad.abs().sum() > 0


def test_alpha_dropout_keeps_mean_and_deviation():
    torch.manual_seed(0)
    out = F.alpha_dropout(torch.randn(40_000), 0.3, training=True)
    np.testing.assert_allclose([out.mean().item(), out.std().item()], [0.0, 1.0], atol=0.03)


def test_rrelu_in_training_has_slopes_between_the_bounds():
    torch.manual_seed(0)
    x = -torch.ones(1000)
    slopes = -F.rrelu(x, 0.1, 0.3, training=True).numpy()
    assert 0.1 <= slopes.min() < 0.12
    assert 0.28 < slopes.max() <= 0.3


def test_dropout3d_drops_whole_channels():
    torch.manual_seed(0)
    out = F.dropout3d(torch.ones(8, 8, 2, 2, 2)).numpy().reshape(64, 8)
    assert set(out[:, 0]) == {0.0, 2.0}
    assert (out == out[:, :1]).all()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.interpolate(torch.ones(1, 1, 2)), ValueError, "either size or scale_factor"),
        (
            lambda: F.interpolate(torch.ones(1, 1, 2), 3, mode="bilinear"),
            NotImplementedError,
            "Input Error: Only 3D, 4D and 5D input Tensors supported",
        ),
        (
            lambda: F.interpolate(torch.ones(1, 1, 2), 3, align_corners=True),
            ValueError,
            "align_corners option can only be set",
        ),
        (lambda: F.pixel_shuffle(torch.ones(3, 2, 2), 2), RuntimeError, "is not divisible by 4"),
        (lambda: F.unfold(torch.ones(1, 1, 2, 2), 3), RuntimeError, "at least one"),
        (lambda: F.fold(torch.ones(1, 3, 4), 3, 2), RuntimeError, "divisible by the product"),
        (lambda: torch.nn.MultiheadAttention(5, 2), AssertionError, "must be divisible by num"),
        (
            lambda: torch.nn.MultiheadAttention(4, 2)(
                torch.ones(1, 1, 1, 4), *[torch.ones(1, 4)] * 2
            ),
            AssertionError,
            "query should be unbatched 2D or batched 3D",
        ),
        (
            lambda: torch.nn.Transformer(4, 2, 1, 1, 4)(torch.ones(2, 3, 4), torch.ones(2, 2, 4)),
            RuntimeError,
            "the batch number of src and tgt must be equal",
        ),
        (
            lambda: torch.nn.TransformerEncoderLayer(4, 2, activation="tanh"),
            RuntimeError,
            "activation should be relu/gelu, not tanh",
        ),
        (
            lambda: F.embedding_bag(torch.tensor([1]), torch.ones(2, 2)),
            ValueError,
            "offsets has to be a 1D Tensor but got None",
        ),
        (
            lambda: F.ctc_loss(torch.zeros(2, 1, 3), torch.tensor([[1]]), (3,), (1,)),
            RuntimeError,
            "Expected input_lengths to have value at most 2",
        ),
        (
            lambda: F.max_unpool1d(torch.ones(1, 1, 1), torch.tensor([[[5]]]), 2),
            RuntimeError,
            "Found an invalid max index: 5",
        ),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_attention_under_vmap_and_func_grad():
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(4, 6, 8)
    whole = attention(x, x, x)[0].detach().numpy()
    each = torch.vmap(lambda row: attention(row, row, row)[0])(x).detach().numpy()
    np.testing.assert_allclose(each, whole, rtol=1e-5, atol=1e-6)
    parameters = dict(attention.named_parameters())

    def loss(given):
        return (torch.func.functional_call(attention, given, (x, x, x))[0] ** 2).sum()

    gradients = torch.func.grad(loss)(parameters)
    loss(parameters).backward()
    for name, p in parameters.items():
        found = gradients[name].detach().numpy()
        np.testing.assert_allclose(found, p.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("RAdam", {"lr": 0.01, "betas": (0.9, 0.8)}),
        ("ASGD", {"lr": 0.1, "t0": 2}),
        ("Adafactor", {"lr": 0.05}),
        ("Rprop", {"lr": 0.01}),
    ],
)
def test_a_jitted_step_of_a_transformer_is_the_step(kind, options):
    def losses(is_jitted):
        torch.manual_seed(0)
        model = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)
        optimizer = getattr(torch.optim, kind)(model.parameters(), **options)
        x, target = torch.randn(5, 3, 8), torch.randn(5, 3, 8)

        def step(x, target):
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), target)
            loss.backward()
            optimizer.step()
            return loss

        run = ft.jit(step) if is_jitted else step
        return [run(x, target).item() for _ in range(6)]

    plain = losses(False)
    np.testing.assert_allclose(losses(True), plain, rtol=1e-5)
    assert plain[-1] < plain[0]
