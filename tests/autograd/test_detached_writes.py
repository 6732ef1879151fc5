"""Writes to detached tensors: another graph on the same memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
import functrans.compat.torch as torch
from functrans.autograd import func, grad, gradcheck, tensor

MADE: dict[str, Callable[[Any], Any]] = {
    "detach": lambda x: x.detach(),
    "twice": lambda x: x.detach().detach(),
    "part": lambda x: x[0].detach(),
    "turned": lambda x: x.t().detach(),
    "gradient": lambda x: grad((x**3).sum(), x, create_graph=True)[0].detach(),
}
WRITTEN: dict[str, Callable[[Any, Any, Any], Any]] = {
    "whole": lambda d, x, w: d.mul_(w),
    "overwritten": lambda d, x, w: d.copy_(w.expand(d.shape)),
    "view": lambda d, x, w: d[0].mul_(w.sum()),
    "view of a view": lambda d, x, w: d[..., 1:][0].add_(w[0]),
    "earlier view": lambda d, x, w: [v.mul_(w.sum()) for v in [d[..., 0]]],
    "twice": lambda d, x, w: (d.mul_(w), d[0].add_(w.sum())),
    "both": lambda d, x, w: (d.mul_(w), x.mul_(2.0)),
    "base first": lambda d, x, w: (x.mul_(2.0), d.mul_(w)),
    "constant": lambda d, x, w: d.mul_(2.0),
}
POINT = np.array([[0.4, 0.9], [0.7, -1.2]])
WEIGHTS = np.array([1.3, 0.6])


def _losses(made: str, written: str, a: Any, w: Any) -> Any:
    x = a * a
    d = MADE[made](x)
    WRITTEN[written](d, x, w)
    numbers = tensor(np.arange(1.0, 1 + d.numel())).view(d.shape)
    return (d * d * numbers).sum(), (x * torch.tensor([2.0, 3.0], dtype=torch.float64)).sum()


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("written", WRITTEN)
def test_a_write_is_recorded_by_the_detached_tensor_alone(made: str, written: str) -> None:
    leaves = [tensor(POINT, requires_grad=True), tensor(WEIGHTS, requires_grad=True)]
    value = sum(_losses(made, written, *leaves))
    expected = grad(value, leaves, allow_unused=True, materialize_grads=True)

    @ft.jit
    def step() -> Any:
        for leaf in leaves:
            leaf.grad = None
        loss = sum(_losses(made, written, *leaves))
        loss.backward()
        return loss.detach()

    assert_allclose(step().numpy(), value.detach().numpy(), rtol=1e-13)
    found = [leaf.grad for leaf in leaves]
    for one, other in zip(found, expected, strict=True):
        assert_allclose(0.0 if one is None else one.numpy(), other.numpy(), rtol=1e-13)
    points = [leaf.detach() for leaf in leaves]
    gradients = torch.func.grad(lambda a, w: sum(_losses(made, written, a, w)), argnums=(0, 1))(
        *points
    )
    for one, other in zip(gradients, expected, strict=True):
        assert_allclose(one.numpy(), other.numpy(), rtol=1e-13)


# A later write to the other tensor changes the numbers here, but has no derivative here.
@pytest.mark.parametrize("written", [name for name in WRITTEN if name != "both"])
def test_gradients_of_what_is_written_are_those_of_differences(written: str) -> None:
    def loss(w: Any) -> Any:  # the memory of the other tensor is written to, not its derivative
        return _losses("detach", written, tensor(POINT), w)[0] + w.sum()

    assert gradcheck(loss, tensor(WEIGHTS, requires_grad=True))


def test_a_detached_conjugate_has_derivatives_of_its_own() -> None:
    x = tensor(np.array([1 + 2j, 3 - 1j]), requires_grad=True)
    w = tensor(np.array([2.0, 0.5]), requires_grad=True)
    y = x * 1
    d = y.conj().detach()
    part = d[1:]
    d.mul_(w)
    part.mul_(w[0])
    assert_allclose(y.detach().numpy(), [2 + 4j, 3 - 1j])
    (d.real.sum() + y.real.sum()).backward()
    assert_allclose(w.grad.numpy(), [1 + 0.5 * 3, 2 * 3])
    assert_allclose(x.grad.numpy(), [1, 1])


def test_a_detached_leaf_is_not_written_to() -> None:
    def step() -> Any:
        return (tensor([1.0]) * 2).detach().requires_grad_().mul_(2).detach()

    for call in (step, ft.jit(step)):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            call()


WITHOUT_AXES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: x.sum(),
    "median": lambda x: x.median(),
    "product": lambda x: x @ x,
    "part": lambda x: x[1],
    "sum of a part": lambda x: x[1] * 2.0,
}


@pytest.mark.parametrize("made", WITHOUT_AXES)
@pytest.mark.parametrize("kind", ["leaf", "view", "plain"])
def test_data_that_are_set_share_memory_without_axes_too(made: str, kind: str) -> None:
    value = WITHOUT_AXES[made](torch.tensor([0.25, 0.5, 1.0]))
    target = {
        "leaf": torch.zeros(2, requires_grad=True),
        "view": torch.zeros(2, 2)[0],
        "plain": torch.zeros(()),
    }[kind]
    target.data = value
    before = value.item()
    value.mul_(3.0)
    assert target.item() == 3.0 * before
    target.data.mul_(2.0)
    assert value.item() == 6.0 * before


def test_data_that_are_set_in_a_dual_level_share_memory_without_axes_too() -> None:
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.zeros(()), torch.ones(()))
        value = torch.tensor([0.25, 0.5]).sum()
        dual.data = value
        value.mul_(2.0)
        assert dual.item() == 1.5


@pytest.mark.parametrize("requires", [False, True])
@pytest.mark.parametrize("is_over", [False, True])
def test_the_data_of_a_dual_tensor_share_memory(requires: bool, is_over: bool) -> None:
    level = torch.autograd.forward_ad
    x, value = torch.ones(2, requires_grad=requires), torch.full((2,), 5.0)
    with level.dual_level():
        dual = level.make_dual(1.0 * x, torch.ones(2))
        dual.data = value
        if not is_over:
            value.mul_(2.0)
        product = level.unpack_dual(dual * dual)
    if is_over:
        value.mul_(2.0)
    assert dual.tolist() == [10.0, 10.0]
    assert product.tangent.tolist() == ([10.0, 10.0] if is_over else [20.0, 20.0])
    if requires:
        (3.0 * dual).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize("kind", ["leaf", "view", "plain", "dual"])
@pytest.mark.parametrize("given", ["dual", "view of a dual"])
def test_data_that_are_set_to_a_dual_tensor_are_its_numbers_alone(kind: str, given: str) -> None:
    level = torch.autograd.forward_ad
    with level.dual_level():
        primal = torch.tensor([[0.25, 0.5, 1.0]])
        value = level.make_dual(primal, torch.full((1, 3), 9.0))
        if given != "dual":
            value = value[0]
        shape = value.shape if kind == "dual" else (2,)
        target = {
            "leaf": torch.zeros(2, requires_grad=True),
            "view": torch.zeros(2, 2)[0],
            "plain": torch.zeros(()),
            "dual": level.make_dual(torch.zeros(shape), torch.full(shape, 2.0)),
        }[kind]
        target.data = value
        assert_allclose(target.detach().reshape(3).numpy(), [0.25, 0.5, 1.0])
        parts = level.unpack_dual(2.0 * target)
        assert parts.primal.shape == value.shape
        assert kind == "dual" or parts.tangent is None
        assert kind != "dual" or parts.tangent.flatten().tolist() == [4.0] * 3
        primal.mul_(2.0)
        assert_allclose(target.detach().reshape(3).numpy(), [0.5, 1.0, 2.0])
    assert tuple(target.shape) == tuple(value.shape)
    assert_allclose((target + 1.0).detach().reshape(3).numpy(), [1.5, 2.0, 3.0])


@pytest.mark.parametrize("shape", [(), (1,), (2, 2)])
@pytest.mark.parametrize("requires", [False, True])
def test_a_strided_view_of_a_tensor_without_axes_shares_its_memory(
    shape: tuple[int, ...], requires: bool
) -> None:
    x = torch.tensor([0.25, 0.5], requires_grad=requires).sum()
    view = x.as_strided(shape, (0,) * len(shape))
    x.mul_(2.0)
    assert_allclose(view.detach().numpy(), np.full(shape, 1.5))
    if len(shape) < 2:
        view.detach().add_(1.0)
        assert x.item() == 2.5


def test_data_of_a_conjugate_are_set_and_no_longer_those_of_the_base() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    base = torch.complex(x, x)
    conjugate = base.conj()
    part = conjugate[1:]
    conjugate.data = torch.tensor([3.0j, 4.0j], dtype=torch.complex128)
    assert_allclose(conjugate.detach().numpy(), [3.0j, 4.0j])
    assert_allclose(part.detach().numpy(), [2.0 - 2.0j])
    base.detach().mul_(2.0)
    assert_allclose(conjugate.detach().numpy(), [3.0j, 4.0j])
    conjugate.imag.sum().backward()
    assert_allclose(x.grad, [-1.0, -1.0])
    plain = torch.zeros(2, dtype=torch.complex128)
    plain.data = base.detach().conj()
    plain.mul_(2.0)
    assert_allclose(base.detach().numpy(), [2.0 + 2.0j, 4.0 + 4.0j])


def test_data_of_an_argument_that_is_not_differentiated_stay_in_the_graphs_around() -> None:
    """They are outside of the innermost transform's graph, in which the argument has no part."""
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0], requires_grad=True)

    def product(u: Any, v: Any) -> Any:
        return (u * v.data * v).sum()

    func.grad(product)(x, y).sum().backward()
    np.testing.assert_array_equal(y.grad, [6.0, 8.0])
    both = func.grad(lambda v: func.grad(product)(x, v).sum())(y.detach())
    np.testing.assert_array_equal(both, [6.0, 8.0])

    def written(u: Any, v: Any) -> Any:
        v.data.mul_(2)
        return (u * v).sum()

    z = y * 1
    pushed = func.grad(written)(x, z)
    np.testing.assert_array_equal(pushed.detach(), [6.0, 8.0])
    (slope,) = torch.autograd.grad(pushed.sum(), [y])
    np.testing.assert_array_equal(slope, [2.0, 2.0])
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        func.grad(written)(x, y)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    "change", [lambda x: x.squeeze_(), lambda x: x.t_(), lambda x: x.swapaxes_(0, 0)]
)
def test_a_change_of_shape_that_changes_nothing_keeps_a_leaf(mode: Any, change: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    with mode():
        change(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    np.testing.assert_array_equal(slope, [3.0, 3.0])
