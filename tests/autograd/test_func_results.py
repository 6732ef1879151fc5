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
