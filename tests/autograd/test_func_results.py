"""What transforms give are tensors, those of the namespace that the arguments are of."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import functrans as ft
from functrans import autograd, tree
from functrans.compat import torch

func, forward_ad, functional = torch.func, torch.autograd.forward_ad, torch.autograd.functional


def _dual(f: Any, x: Any) -> Any:
    with forward_ad.dual_level():
        return tuple(forward_ad.unpack_dual(f(forward_ad.make_dual(x, x))))


TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: func.grad(lambda v: f(v).sum())(x),
    "grad_and_value": lambda f, x: func.grad_and_value(lambda v: f(v).sum())(x),
    "vjp": lambda f, x: (func.vjp(f, x)[0], func.vjp(f, x)[1](x)),
    "vjp with aux": lambda f, x: func.vjp(lambda v: (f(v), v * 2), x, has_aux=True)[::2],
    "jvp": lambda f, x: func.jvp(f, (x,), (x,)),
    "jvp with aux": lambda f, x: func.jvp(lambda v: (f(v), v * 2), (x,), (x,), has_aux=True),
    "linearize": lambda f, x: (func.linearize(f, x)[0], func.linearize(f, x)[1](x)),
    "jacrev": lambda f, x: func.jacrev(f)(x),
    "jacfwd": lambda f, x: func.jacfwd(f)(x),
    "hessian": lambda f, x: func.hessian(lambda v: f(v).sum())(x),
    "vmap": lambda f, x: func.vmap(f)(x),
    "vmap of vmap": lambda f, x: func.vmap(func.vmap(f))(x[None]),
    "vmap of jvp": lambda f, x: func.vmap(lambda v: func.jvp(f, (v,), (v,)))(x),
    "dual tensors": _dual,
    "functional.jacobian": lambda f, x: functional.jacobian(f, x),
    "functional.hessian": lambda f, x: functional.hessian(lambda v: f(v).sum(), x),
    "functional.jvp": lambda f, x: functional.jvp(f, x, x),
    "functional.vjp": lambda f, x: functional.vjp(f, x, x),
    "functional.hvp": lambda f, x: functional.hvp(lambda v: f(v).sum(), x, x),
    "functional.vhp": lambda f, x: functional.vhp(lambda v: f(v).sum(), x, x),
}


def _sum(x: Any) -> Any:
    return (np.sin(x) * x).sum()


OF_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "grad": ft.grad(_sum),
    "grad of grad": ft.grad(lambda x: ft.grad(_sum)(x).sum()),
    "value_and_grad": ft.value_and_grad(_sum),
    "hessian": ft.hessian(_sum),
    "jacobian": ft.jacobian(np.sin),
    "jacfwd": ft.jacfwd(np.sin),
    "jvp": lambda x: ft.jvp(_sum, (x,), (x,)),
    "vjp": lambda x: (ft.vjp(np.sin, x)[0], ft.vjp(np.sin, x)[1](x)),
    "linearize": lambda x: (ft.linearize(np.sin, x)[0], ft.linearize(np.sin, x)[1](x)),
    "vmap": ft.vmap(np.sin),
    "vmap of grad": ft.vmap(ft.grad(np.sin)),
    "cond": lambda x: ft.lax.cond(True, np.sin, np.cos, x),
    "scan": lambda x: ft.lax.scan(lambda c, v: (c + v, c * v), x[0], x),
    "fori_loop": lambda x: ft.lax.fori_loop(0, 3, lambda _, v: np.sin(v), x),
    "checkpoint": ft.checkpoint(np.sin),
    "functional.hvp": lambda x: ft.functional.hvp(_sum, x, x),
    "functional.jacobian": lambda x: ft.functional.jacobian(np.sin, x),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tensors_of_torch_give_tensors_of_torch(transform: str, dtype: Any) -> None:
    seen = []

    def f(v: Any) -> Any:
        seen.append(v)
        return torch.sin(v) * v

    x = torch.tensor([1.0, 2.0], dtype=dtype)
    results = tree.leaves(TRANSFORMS[transform](f, x))
    for tensor in (*results, *seen):
        assert isinstance(tensor, torch.Tensor)
        assert tensor.dtype == dtype
        assert tensor._follows
    for tensor in results:
        assert ("dtype=torch.float64" in repr(tensor)) == (dtype == torch.float64)
        assert ("dtype" in repr(tensor)) == (dtype == torch.float64)


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("transform", OF_ARRAYS)
def test_transforms_of_functions_of_arrays_give_tensors_of_torch(
    transform: str, jitted: bool
) -> None:
    applied = OF_ARRAYS[transform]
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0], dtype=torch.float64)):
        found = (ft.jit(applied) if jitted else applied)(x)
        for result in tree.leaves(found):
            assert result.dtype is x.dtype
            assert ("dtype" in repr(result)) == (x.dtype == torch.float64)
    x = autograd.tensor([1.0, 2.0])
    found = (ft.jit(applied) if jitted else applied)(x)
    assert all(result.dtype is x.dtype for result in tree.leaves(found))


def test_a_constant_gradient_is_a_tensor_of_torch() -> None:
    x = torch.tensor([1.0, 2.0])
    assert repr(ft.grad(lambda x: x.sum())(x)) == "tensor([1., 1.])"
    assert repr(ft.grad(lambda x: (x * x[0]).sum() * 0.0)(x)) == "tensor([0., 0.])"


@pytest.mark.parametrize("jitted", [False, True])
def test_what_does_not_depend_on_tensors_is_one_where_they_are_given(jitted: bool) -> None:
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    for transform in (
        ft.grad(lambda x: y.sum()),
        ft.value_and_grad(lambda x: torch.ones(2).sum()),
        ft.jacfwd(lambda x: y * 1),
        ft.jacrev(lambda x: y * 1),
        ft.hessian(lambda x: x.sum()),
        lambda x: ft.jvp(lambda x: y, (x,), (x,)),
        lambda x: ft.vjp(lambda x: y, x)[1](y),
    ):
        found = (ft.jit(transform) if jitted else transform)(x)
        for result in tree.leaves(found):
            assert type(result) is torch.Tensor, transform
            assert repr(result / 3).count("dtype") == 0


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_other_tensors_give_others(transform: str) -> None:
    results = tree.leaves(TRANSFORMS[transform](lambda v: v * v, autograd.tensor([1.0, 2.0])))
    assert not any(tensor._follows for tensor in results)


def test_integers_become_the_floats_of_their_namespace() -> None:
    x = torch.tensor([3.0, 1.0])
    numbers = torch.tensor([1, 2])
    halves = [
        func.vmap(lambda n: n / 2)(numbers),
        func.vmap(lambda n: n)(numbers) / 2,
        func.vjp(lambda v: (v.sum(), v.argmax()), x, has_aux=True)[2] / 2,
        func.jvp(lambda v: (v.sum(), v.argmax()), (x,), (x,), has_aux=True)[2] / 2,
        func.grad(lambda v: (v.sum(), numbers), has_aux=True)(x)[1] / 2,
        func.vmap(lambda v: torch.tensor([1, 2]))(x) / 2,
    ]
    assert [half.dtype for half in halves] == [torch.float32] * len(halves)
    assert func.vmap(lambda n: n / 2)(autograd.tensor([1, 2])).dtype == np.float64


E = torch.arange(6.0).reshape(2, 3)
CAPTURED: dict[str, tuple[Callable[[], Any], Any]] = {
    "vmap of a captured index": (
        lambda: func.vmap(lambda i: func.vmap(lambda e: e[i])(E))(torch.arange(2)),
        E.numpy()[:, :2].T,
    ),
    "grad that is constant": (
        lambda: func.vmap(func.grad(torch.trace))(torch.ones(2, 3, 3)),
        [np.eye(3)] * 2,
    ),
    "jvp of what is not mapped": (
        lambda: func.vmap(lambda x: func.jvp(lambda v: v * 2, (E,), (E,))[1])(torch.arange(2.0)),
        [2 * E.numpy()] * 2,
    ),
    "tangent that is not mapped": (
        lambda: func.vmap(lambda x: func.jvp(lambda v: v.sum(), (x,), (torch.ones(3),))[1])(E),
        [3, 3],
    ),
    "vjp of what is not mapped": (
        lambda: func.vmap(lambda x: func.vjp(lambda v: v * 2, E)[1](E)[0])(torch.arange(2.0)),
        [2 * E.numpy()] * 2,
    ),
    "two levels": (
        lambda: func.vmap(func.vmap(lambda i: func.vmap(lambda e: e[i])(E)))(torch.arange(2)[None]),
        E.numpy()[:, :2].T[None],
    ),
    "grad around": (
        lambda: func.grad(
            lambda x: (func.vmap(lambda i: func.vmap(lambda e: e[i])(E))(torch.arange(2)) * x).sum()
        )(torch.ones(2, 2)),
        E.numpy()[:, :2].T,
    ),
}


@pytest.mark.parametrize("case", CAPTURED)
def test_results_that_depend_on_captured_values_only_are_tensors(case: str) -> None:
    run, expected = CAPTURED[case]
    assert_array_equal(run(), expected)


def test_within_a_transform_of_arrays_results_are_those_of_arrays() -> None:
    def f(a: Any) -> Any:
        return func.jvp(torch.sin, (a,), (np.ones(()),))[1]

    rows = func.grad(lambda x: (torch.tensor(ft.vmap(f)(np.zeros(2))) * x).sum())(torch.ones(2))
    assert_array_equal(rows, [1, 1])


@pytest.mark.parametrize("recorded", [True, False])
def test_arguments_that_vmap_returns_are_the_tensors_of_the_caller(recorded: bool) -> None:
    x, y = torch.ones(2, 3, requires_grad=recorded), torch.ones(3, 2)
    one, other = torch.func.vmap(lambda a, b: (a, b), in_dims=(0, 1))(x, y)
    assert one is x
    assert other.shape == (2, 3)
    other.mul_(2)
    assert y.tolist() == [[2.0, 2.0]] * 3
    moved = torch.func.vmap(lambda a: a, out_dims=1)(y)
    assert moved.shape == (2, 3)
    assert moved._base is y
    nested = torch.func.vmap(torch.func.vmap(lambda a: a))(y)
    assert nested.tolist() == y.tolist()


def _stepped(name: str) -> list[Any]:
    """What is in the state of an optimizer."""
    model = torch.nn.Linear(3, 2)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = model(torch.ones(1, 3)).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    optimizer.load_state_dict(optimizer.state_dict())
    return [x for state in optimizer.state.values() for x in state.values()]


OPTIMIZERS = [
    name
    for name in dir(torch.optim)
    if isinstance(kind := getattr(torch.optim, name), type)
    and issubclass(kind, torch.optim.Optimizer)
    and kind is not torch.optim.Optimizer
]
MADE: dict[str, Callable[[], Any]] = {
    **{name: (lambda name=name: _stepped(name)) for name in OPTIMIZERS},  # type: ignore[misc]
    "clip_grad_norm_": lambda: torch.nn.utils.clip_grad_norm_([], 1.0),
    "get_total_norm": lambda: torch.nn.utils.get_total_norm([torch.ones(2)]),
    "from_dlpack": lambda: torch.from_dlpack(np.ones(2)),
    "frombuffer": lambda: torch.frombuffer(bytearray(8), dtype=torch.float32),
    "hann_window": lambda: torch.hann_window(3),
    "mask": lambda: torch.nn.Transformer.generate_square_subsequent_mask(3),
    "batch_norm": lambda: list(torch.nn.BatchNorm1d(3).buffers()),
    "default_collate": lambda: torch.utils.data.default_collate([1.0, 2.0]),
    "lstm": lambda: torch.nn.LSTM(3, 4)(torch.ones(2, 3)),
    "attention": lambda: torch.nn.MultiheadAttention(4, 2)(*[torch.ones(3, 1, 4)] * 3),
}


@pytest.mark.parametrize("name", MADE)
def test_what_torch_makes_is_a_tensor_of_torch(name: str) -> None:
    found = [x for x in tree.leaves(MADE[name]()) if isinstance(x, torch.Tensor)]
    assert found or name in ("SGD", "LBFGS")  # states without tensors
    assert all(isinstance(x.dtype, torch.dtype) for x in found)


IN_BRANCHES: dict[str, Callable[[Any], Any]] = {
    "of two tensors": lambda s: s * s + s / (s - 7.0),
    "with numbers": lambda s: (s * 2.5 - 1) ** 2 / 3.0 + s**2.0,
    "reflected": lambda s: 2.0 / s - (1.5 - s) * 3,
    "functions": lambda s: torch.sin(s) + s.exp() + torch.lerp(s, s + 1, 0.3) + abs(-s),
    "views": lambda s: s[1] * s.reshape(3, 1)[:, 0] + s[None][0] - s.flip(0)[1:].sum(),
    "sums and products": lambda s: torch.softmax(s, 0) * s.sum() + torch.matmul(s, s),
}


@pytest.mark.parametrize("name", IN_BRANCHES)
@pytest.mark.parametrize("transform", ["grad", "jacrev", "jacfwd", "vmap", "vmap of jvp"])
def test_branches_compute_with_tensors_of_the_transform_around_them(
    name: str, transform: str
) -> None:
    compute = IN_BRANCHES[name]

    def branched(s: Any) -> Any:
        return ft.lax.cond(s.sum() > 0, lambda n: n * compute(s), lambda n: n - compute(s), s)

    rows = torch.tensor([[1.0, 2.0, 3.0], [-1.0, -2.0, -3.0]], dtype=torch.float64)
    for x, direct in (rows[0], lambda s: s * compute(s)), (rows[1], lambda s: s - compute(s)):
        x = x[None] if transform.startswith("vmap") else x
        found = tree.leaves(TRANSFORMS[transform](branched, x))
        expected = tree.leaves(TRANSFORMS[transform](direct, x))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-12)
