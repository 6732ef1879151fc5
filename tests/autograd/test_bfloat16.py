"""Operations on tensors of bfloat16: results have torch's dtype and are rounded once."""

from __future__ import annotations

import numpy as np
import pytest

import functrans.compat.torch as torch

pytest.importorskip("ml_dtypes")

F = torch.nn.functional
# Random numbers, results of a dtype of their own, the next number, memory of other libraries.
LEFT_OUT = {
    "FloatTensor", "bernoulli", "binomial", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "empty_like", "from_dlpack", "gumbel_softmax", "normal", "poisson", "rand_like", "randn_like",
    "rrelu", "rrelu_", "scalar_tensor",
}  # fmt: skip


def _operand() -> torch.Tensor:
    return torch.tensor(np.random.default_rng(0).random((2, 3, 4, 4)) * 0.75 + 0.125)


def _of_one_tensor() -> list[tuple[str, object]]:
    """All functions of one tensor that give a floating tensor."""
    found = []
    x = _operand().to(torch.float32)
    for module in (torch, torch.special, F):
        where = module.__name__.rpartition(".")[2]
        for name in sorted(dir(module)):
            function = getattr(module, name)
            if (
                name.startswith(("_", "set", "use", "manual"))
                or name in LEFT_OUT
                or isinstance(function, type)
                or not callable(function)
            ):
                continue
            try:
                result = function(x.clone())
            except Exception:  # of other operands
                continue
            if isinstance(result, torch.Tensor) and result.dtype == torch.float32:
                found.append((f"{where}.{name}", function))
    return found


@pytest.mark.parametrize("function", [pytest.param(f, id=n) for n, f in _of_one_tensor()])
def test_functions_of_one_tensor(function):
    x = _operand().to(torch.bfloat16)
    found, expected = function(x.clone()), function(x.float())
    assert found.dtype == torch.bfloat16
    np.testing.assert_allclose(found.float().numpy(), expected.numpy(), rtol=2e-2, atol=1e-2)


def _of_numbers(x):
    yield from (x * 2.5, 2.5 / x, x - 1.5, x**1.5, x + 1, torch.add(x, x, alpha=0.5))
    yield from (torch.where(x > 0.5, x, 0.25), x.masked_fill(x > 0.5, 0.3), x.clamp(0.25, 0.75))
    yield from (torch.lerp(x, 2 * x, 0.3), torch.addcmul(x, x, x, value=0.5), x.mean(1), x.std())
    yield from (x.clone().mul_(2.5).add_(1.5), x * torch.tensor(2.5), x.logsumexp(1), x.norm(p=3))
    yield from (F.avg_pool2d(x, 2), F.max_pool2d(x, 2), F.adaptive_avg_pool2d(x, 3))
    yield from (F.layer_norm(x, (4,)), F.rms_norm(x, (4,)), F.mse_loss(x, x**2), F.l1_loss(x, x**2))
    yield F.scaled_dot_product_attention(x, x, x)


def test_numbers_take_the_dtype():
    x = _operand().to(torch.bfloat16)
    for found, expected in zip(_of_numbers(x), _of_numbers(x.float()), strict=True):
        assert found.dtype == torch.bfloat16
        np.testing.assert_allclose(found.float().numpy(), expected.numpy(), rtol=3e-2, atol=1e-2)


@pytest.mark.parametrize("records", [True, False])
def test_derivatives(records):
    x = _operand().to(torch.bfloat16).requires_grad_()
    wide = x.detach().float().requires_grad_()
    first, second = [], []
    for z in (x, wide):
        loss = F.max_pool2d(F.softplus(F.layer_norm(z * 1.5, (4,))), 2).square().mean()
        (slope,) = torch.autograd.grad(loss, z, create_graph=records)
        first.append(slope)
        if records:
            second.append(torch.autograd.grad(slope.square().sum(), z)[0])
    for found, expected in filter(None, (first, second)):
        assert found.dtype == torch.bfloat16
        scale = expected.abs().max().item()
        np.testing.assert_allclose(
            found.detach().float().numpy(), expected.detach().numpy(), atol=5e-2 * scale
        )


def test_common_dtypes():
    half, x = torch.ones(2, dtype=torch.float16), torch.ones(2, dtype=torch.bfloat16)
    for other, common in [
        (half, torch.float32), (half.float(), torch.float32), (half.double(), torch.float64),
        (half.int(), torch.bfloat16), (half.bool(), torch.bfloat16), (1j, torch.complex64),
    ]:  # fmt: skip
        assert (x + other).dtype == (other + x).dtype == common
        assert torch.result_type(x, other) == common


def test_explicit_dtypes_stay():
    x = _operand().to(torch.bfloat16)
    for name in ("sum", "mean", "prod"):
        assert getattr(x, name)(dtype=torch.float32).dtype == torch.float32
    assert x.softmax(1, dtype=torch.float32).dtype == x.float().dtype == torch.float32


def test_modules_are_converted():
    layer = torch.nn.Linear(4, 2).bfloat16()
    layer(_operand().to(torch.bfloat16)).mean().backward()
    assert layer.weight.dtype == layer.weight.grad.dtype == torch.bfloat16


def test_text_shows_points():
    found = repr(torch.tensor([1.0, 2.5], dtype=torch.bfloat16))
    assert found == "tensor([1. , 2.5], dtype=torch.bfloat16)"
