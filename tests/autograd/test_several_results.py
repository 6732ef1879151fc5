"""Operations with several results: derivatives of tensors to order 3 are those of functions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
import functrans.compat.torch as torch
import functrans.numpy as fnp
from functrans.autograd import grad, tensor

POINT = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 3.0]])
WEIGHTS = np.array([[1.0, 0.4, 0.2], [0.4, -0.7, 0.9], [0.2, 0.9, 0.3]])
NUMPY: dict[str, Callable[[Any], Any]] = {
    "svd values": lambda x: fnp.linalg.svd(x, compute_uv=False) ** 2,
    "svd products": lambda x: (lambda u, s, v: (u * s**2) @ v)(*fnp.linalg.svd(x)),
    "eigh": lambda x: (lambda w, v: (v * w**3) @ v.T)(*fnp.linalg.eigh((x + x.T) / 2)),
    "eigh values": lambda x: fnp.linalg.eigvalsh((x + x.T) / 2) ** 3,
    "eig": lambda x: fnp.linalg.eigvals(x).real ** 3,
    "qr": lambda x: (lambda q, r: q * r**2)(*fnp.linalg.qr(x)),
    "slogdet": lambda x: fnp.linalg.slogdet(x)[1],
    "split": lambda x: (lambda a, b, c: a * b * c)(*fnp.split(x * x, 3)),
    "modf": lambda x: (lambda part, whole: part**3 * (whole + 1))(*fnp.modf(x * 1.5)),
    "frexp": lambda x: fnp.frexp(x)[0] ** 4,
    "sort": lambda x: fnp.sort(x, axis=0) ** 4,
    "unstack": lambda x: (lambda a, b, c: a * b**2 * c**3)(*fnp.unstack(x)),
}
TORCH: dict[str, Callable[[Any], Any]] = {
    "svd": lambda x: (lambda u, s, v: (u * s**2) @ v)(*torch.linalg.svd(x)),
    "svdvals": lambda x: torch.linalg.svdvals(x) ** 3,
    "eigh": lambda x: (lambda w, v: (v * w**3) @ v.T)(*torch.linalg.eigh((x + x.T) / 2)),
    "eigvals": lambda x: torch.linalg.eigvals(x).real ** 3,
    "qr": lambda x: (lambda q, r: q * r**2)(*torch.linalg.qr(x)),
    "lu": lambda x: (lambda p, low, up: low**2 @ up**2)(*torch.linalg.lu(x)),
    "cond": lambda x: torch.linalg.cond(x),
    "nuclear": lambda x: torch.linalg.norm(x, "nuc") ** 2,
    "spectral": lambda x: torch.linalg.norm(x, 2) ** 2,
    "max": lambda x: x.max(0).values ** 4,
    "topk": lambda x: x.topk(2).values ** 4,
    "aminmax": lambda x: (lambda low, high: low**2 * high**2)(*x.aminmax(dim=0)),
    "var_mean": lambda x: (lambda v, m: v**2 * m**2)(*torch.var_mean(x, 0)),
    "lstm": lambda x: _recurrent(x),
}


def _recurrent(x: Any) -> Any:
    torch.manual_seed(0)
    layer = torch.nn.LSTM(3, 2).double().requires_grad_(False)
    out, (hidden, cell) = layer(x)
    return (out * hidden).sum() + (cell**2).sum()


def _orders(function: Callable[[Any], Any], grad_of: Callable[[Any], Any]) -> list[Any]:
    """Weighted gradients of the sum, of that, and of that."""
    found, inner = [], lambda x: function(x).sum()
    for _ in range(3):
        derivative = grad_of(inner)
        found.append(derivative)
        inner = lambda x, d=derivative: (d(x) * WEIGHTS).sum()  # noqa: E731  # of this order
    return found


def _recorded(function: Callable[[Any], Any]) -> list[np.ndarray]:
    x = tensor(POINT, requires_grad=True)
    total, found = function(x).sum(), []
    for _ in range(3):
        (derivative,) = grad(total, x, create_graph=True, materialize_grads=True)
        found.append(derivative.detach().numpy())
        total = (derivative * tensor(WEIGHTS)).sum()
        if total.grad_fn is None:
            break
    return found


@pytest.mark.parametrize("name", NUMPY)
def test_recorded_derivatives_of_numpy_functions(name: str) -> None:
    expected = [f(POINT) for f in _orders(NUMPY[name], ft.grad)]
    for one, other in zip(_recorded(NUMPY[name]), expected, strict=False):
        assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", TORCH)
def test_recorded_derivatives_of_tensor_functions(name: str) -> None:
    weights = tensor(WEIGHTS)
    function, found = TORCH[name], _recorded(TORCH[name])
    inner = lambda x: function(x).sum()  # noqa: E731  # of the first order
    for one in found:
        derivative = torch.func.grad(inner)
        assert_allclose(one, derivative(tensor(POINT)).numpy(), rtol=1e-9, atol=1e-9)
        inner = lambda x, d=derivative: (d(x) * weights).sum()  # noqa: E731  # of the next
