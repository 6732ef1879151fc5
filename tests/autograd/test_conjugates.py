"""Conjugates of complex tensors are views: writes go through, and are seen."""

import copy
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.compat.torch as torch
from cases import each
from functrans.compat.torch import func

VALUES = np.array([[1.0 + 2.0j, 0.5 - 1.0j], [-0.25 + 0.75j, 2.0 - 0.5j]])
FACTOR = torch.tensor([2.0 - 1.0j, 0.5j], dtype=torch.complex128)


class _Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.H

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient.H


PLAIN: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "conj": (lambda x: x.conj(), lambda x: x),
    "part of conj": (lambda x: x.conj()[1:], lambda x: x[1:]),
    "conj of part": (lambda x: x[:, 1].conj(), lambda x: x[:, 1]),
    "part of conj of part": (lambda x: x[1].conj()[:1], lambda x: x[1, :1]),
    "H": (lambda x: x.H, lambda x: x.t()),
    "mH": (lambda x: x.mH, lambda x: x.mT),
    "adjoint": (lambda x: x.adjoint()[0], lambda x: x[:, 0]),
    "turned in place": (lambda x: x.conj().t_()[1:], lambda x: x.t()[1:]),
    "three times": (lambda x: x.conj().t().conj()[0].conj(), lambda x: x[:, 0]),
}
"""Views with conjugates, and the same elements without."""
WRITES: dict[str, Callable[[Any], Any]] = {
    "mul_": lambda y: y.mul_(FACTOR[: y.shape[-1]]),
    "add_": lambda y: y.add_(1j),
    "exp_": lambda y: y.exp_(),
    "pow_": lambda y: y.pow_(3),
    "zero_": lambda y: y.zero_(),
    "copy_": lambda y: y.copy_(FACTOR[0]),
    "setitem": lambda y: y.__setitem__(0, y[..., 0].sum() * 1j),
    "mask": lambda y: y.__setitem__(y.real > 0.7, 3j),
}


def conjugated(y: Any) -> Any:
    return y.conj_physical()


def loss(x: Any) -> Any:
    return (x * x * (1.0 + 0.5j)).real.sum() + x.abs().square().sum()


def through(view: Any, write: Any) -> Any:
    def written(x: Any) -> Any:
        x = x * 1
        write(view(x))
        return x

    return written


def by_hand(plain: Any, write: Any) -> Any:
    def written(x: Any) -> Any:
        x = x * 1
        part = conjugated(plain(x))
        write(part)
        plain(x).copy_(conjugated(part))
        return x

    return written


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", PLAIN)
def test_writes_to_views_of_conjugates_reach_the_base(view: str, write: str) -> None:
    of_view, of_plain = PLAIN[view]
    found, expected = through(of_view, WRITES[write]), by_hand(of_plain, WRITES[write])
    x = torch.tensor(VALUES)
    want = expected(x).numpy()
    assert_allclose(found(x).numpy(), want)
    assert_allclose(found(x).conj().resolve_conj().numpy(), want.conj())
    gradients = []
    for function in (found, expected):
        leaf = torch.tensor(VALUES, requires_grad=True)
        loss(function(leaf)).backward()
        gradients.append(leaf.grad.numpy())
    assert_allclose(gradients[0], gradients[1])
    if write != "mask":
        inside = func.grad(lambda x: loss(found(x)))(x)
        assert_allclose(inside.numpy(), gradients[1])


@pytest.mark.parametrize("name", ["real", "imag", "view_as_real"])
def test_real_views_of_conjugates_are_written_to(name: str) -> None:
    leaf = torch.tensor(VALUES, requires_grad=True)
    x = leaf * 1
    part = torch.view_as_real(x.conj()) if name == "view_as_real" else getattr(x.conj(), name)
    own = part.clone()
    part.copy_(own * own + 0.25)
    real, imag = VALUES.real, VALUES.imag
    if name != "imag":
        real = real * real + 0.25
    if name != "real":
        imag = -(imag * imag + 0.25)
    assert_allclose(x.detach().numpy(), real + 1j * imag)
    x.real.sum().backward(retain_graph=True)
    assert_allclose(leaf.grad.numpy(), 1 + 0j if name == "imag" else 2 * VALUES.real)
    leaf.grad = None
    x.imag.sum().backward()
    slope = 1.0 if name == "real" else -2 * VALUES.imag
    assert_allclose(leaf.grad.numpy(), 1j * slope * np.ones((2, 2)))


READS: dict[str, Callable[[Any], Any]] = {
    "numpy": lambda y: y.numpy(),
    "asarray": np.asarray,
    "tolist": lambda y: y.tolist(),
    "item": lambda y: y[0, 0].item(),
    "complex": lambda y: complex(y[0, 1]),
    "repr": repr,
    "format": lambda y: f"{y[0, 0]}",
    "add": lambda y: (y + 1).numpy(),
    "sum": lambda y: y.sum().item(),
    "clone": lambda y: y.clone().numpy(),
    "contiguous": lambda y: y.contiguous().numpy(),
    "to": lambda y: y.to(torch.complex64).numpy(),
    "stack": lambda y: torch.stack([y, y]).numpy(),
    "matmul": lambda y: (y @ y).numpy(),
    "iterate": lambda y: [row.tolist() for row in y],
    "equal": lambda y: torch.equal(y, y * 1),
    "eq": lambda y: (y == y * 1).tolist(),
    "allclose": lambda y: torch.allclose(torch.tensor(VALUES).conj() * 2j, y),
    "detach": lambda y: y.detach().numpy(),
    "data": lambda y: y.data.tolist(),
    "unbind": lambda y: [part.tolist() for part in y.unbind()],
    "copy": lambda y: copy.copy(y).tolist(),
    "deepcopy": lambda y: copy.deepcopy(y).tolist(),
    "save": lambda y: _saved(y).tolist(),
    "copy_": lambda y: torch.zeros_like(y).copy_(y).tolist(),
    "tensor": lambda y: torch.tensor(y.tolist()).tolist(),
    "where": lambda y: torch.where(y.real > 0, y, 0).tolist(),
    "index": lambda y: y[torch.tensor([1, 0])].tolist(),
    "nonzero": lambda y: y.nonzero().tolist(),
    "grad": lambda y: func.grad(lambda z: (z * y).real.sum())(y).tolist(),
    "vmap": lambda y: func.vmap(lambda z: z * 2)(y).tolist(),
    "jit": lambda y: ft.jit(lambda z: z * 2)(y).tolist(),
    "closure of jit": lambda y: ft.jit(lambda z: z * y)(torch.ones(2)).tolist(),
    "exp_": lambda y: y.exp_().tolist(),
}


def _saved(y: Any) -> Any:
    file = io.BytesIO()
    torch.save(y, file)
    file.seek(0)
    return torch.load(file)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "mul_": lambda x: x.mul_(2j),
    "view": lambda x: x.view(-1).mul_(2j),
    "other conjugate": lambda x: x.t().conj().mul_(-2j),
    "detach": lambda x: x.detach().mul_(2j),
    "numpy": lambda x: np.multiply(x.numpy(), 2j, out=x.numpy()),
}


@each("change", CHANGES)
@each("read", READS)
def test_a_conjugate_that_was_made_before_shows_what_its_base_holds_now(
    read: str, change: str
) -> None:
    x = torch.tensor(VALUES)
    y = x.conj()
    y.tolist()
    CHANGES[change](x)
    found, expected = READS[read](y), READS[read](torch.tensor((VALUES * 2j).conj()))
    if isinstance(expected, str):
        assert found == expected
    else:
        assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)


def test_conjugates_say_what_they_are() -> None:
    x = torch.tensor(VALUES)
    assert all(y.is_conj() for y in (x.conj(), x.H, x.conj()[0]))
    others = (x, x.conj().conj(), x.conj().real, x.conj_physical(), x.conj() * 1)
    assert not any(torch.is_conj(y) for y in others)
    assert x.conj()._base is x
    assert x.resolve_conj() is x
    apart = x.conj().resolve_conj()
    apart.zero_()
    assert not apart.is_conj()
    assert_array_equal(x.numpy(), VALUES)
    with pytest.raises(ValueError, match="read-only"):
        x.conj().numpy()[0] = 0
    with pytest.raises(RuntimeError, match="not supported for conjugate view tensors"):
        x.conj().view(torch.float64)
    real = torch.tensor([1.0])
    assert real.conj() is real


def test_a_conjugate_that_a_function_returns_is_a_view() -> None:
    x = torch.tensor(VALUES)
    y = _Turned.apply(x)
    y.mul_(2j)
    assert_array_equal(x.numpy(), VALUES * -2j)
    assert_array_equal(y.numpy(), x.numpy().conj().T)


def test_a_view_that_is_turned_in_place_inside_a_transform_stays_a_view() -> None:
    def turned(x: Any) -> Any:
        x = x * 1
        y = x.view(2, 2).t_()
        y[1:].mul_(2)
        return x.sum()

    found = func.grad(turned)(torch.ones(2, 2))
    assert found.tolist() == [[1.0, 2.0], [1.0, 2.0]]


def test_what_a_derivative_reads_of_a_conjugate_is_guarded() -> None:
    leaf = torch.tensor(VALUES, requires_grad=True)
    x = leaf * 1
    out = (x.conj() * x.conj()).real.sum()
    x.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_a_jitted_step_writes_through_a_conjugate() -> None:
    x = torch.tensor(VALUES)
    y = x.conj()

    def step(factor: Any) -> Any:
        y.mul_(factor)
        x.conj()[0].add_(1)
        return y.sum()

    fast = ft.jit(step)
    expected = VALUES.conj().copy()
    for _ in range(3):
        expected *= 2j
        expected[0] += 1
        assert_allclose(fast(np.asarray(2j)).item(), expected.sum())
        assert_allclose(x.numpy(), expected.conj())
        assert_allclose(y.numpy(), expected)
