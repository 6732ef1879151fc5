"""Jitted functions on tensors within functional transforms do what they do without ``jit``."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from functrans import tree
from functrans.compat import torch
from functrans.errors import UnsupportedOperationError

func, forward_ad = torch.func, torch.autograd.forward_ad

X = torch.tensor([0.5, 2.0])
LAYER = torch.nn.Linear(2, 2)


def _dual(f: Any, x: Any) -> Any:
    with forward_ad.dual_level():
        return tuple(forward_ad.unpack_dual(f(forward_ad.make_dual(x, x * 3))))


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "methods": lambda x: x.sin().mul(2),
    "names": lambda x: torch.sin(x) * 2,
    "operators": lambda x: x * x + 1,
    "in place": lambda x: x.clone().mul_(2).exp_(),
    "a tensor made inside": lambda x: x * torch.arange(2.0),
    "a captured tensor": lambda x: x.sin() * X,
    "a module": lambda x: LAYER(x).tanh(),
    "NumPy": lambda x: np.sin(x) * 2,
    "a transform inside": lambda x: func.vmap(lambda e: e.cos())(x),
    "jit inside": lambda x: ft.jit(lambda v: v.sin())(x) * 2,
}
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: func.grad(lambda x: f(x).sum())(X),
    "vjp": lambda f: func.vjp(f, X)[1](X),
    "jvp": lambda f: func.jvp(f, (X,), (X * 3,)),
    "linearize": lambda f: func.linearize(f, X)[1](X),
    "jacrev": lambda f: func.jacrev(f)(X),
    "jacfwd": lambda f: func.jacfwd(f)(X),
    "hessian": lambda f: func.hessian(lambda x: f(x).sum())(X),
    "vmap": lambda f: func.vmap(f)(torch.stack([X, X * 3])),
    "vmap of grad": lambda f: func.vmap(func.grad(lambda x: f(x).sum()))(torch.stack([X, X * 3])),
    "dual tensors": lambda f: _dual(f, X),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_jitted_function_is_transformed_as_without_jit(name: str, transform: str) -> None:
    f, run = FUNCTIONS[name], TRANSFORMS[transform]
    expected = [leaf.detach().numpy() for leaf in tree.leaves(run(f))]
    fast = ft.jit(f)
    for _ in range(2):  # before and after a call outside of a transform
        found = tree.leaves(run(fast))
        assert all(isinstance(leaf, torch.Tensor) for leaf in found)
        for leaf, value in zip(found, expected, strict=True):
            assert_allclose(leaf.detach().numpy(), value, rtol=1e-6)
        assert_allclose(fast(X).detach().numpy(), f(X).detach().numpy(), rtol=1e-6)


def test_a_jitted_function_writes_to_the_arguments_of_the_caller() -> None:
    def f(x: Any) -> Any:
        return x.mul_(2).sum()

    x = torch.ones(2, 3)
    assert_allclose(func.vmap(ft.jit(f))(x).numpy(), [6, 6])
    assert_allclose(x.numpy(), np.full((2, 3), 2))


AROUND: dict[str, Any] = {
    "func.grad": lambda f: func.grad(f)(torch.tensor([0.5, 2.0])),
    "func.vjp": lambda f: func.vjp(f, torch.ones(2))[1](torch.ones(())),
    "func.jvp": lambda f: func.jvp(f, (torch.ones(2),), (torch.tensor([1.0, 2.0]),)),
    "func.jacrev": lambda f: func.jacrev(f)(torch.ones(2)),
    "func.jacfwd": lambda f: func.jacfwd(f)(torch.ones(2)),
    "func.hessian": lambda f: func.hessian(f)(torch.ones(2)),
    "func.vmap": lambda f: func.vmap(f)(torch.ones(3, 2)),
    "func.vmap of grad": lambda f: func.vmap(func.grad(f))(torch.ones(3, 2)),
    "ft.grad": lambda f: ft.grad(f)(np.ones(2)),
    "ft.jvp": lambda f: ft.jvp(f, (np.ones(2),), (np.array([1.0, 2.0]),)),
    "ft.vmap": lambda f: ft.vmap(f)(np.ones((3, 2))),
}


def _plain(x: Any) -> Any:
    return [np.asarray(leaf) for leaf in tree.leaves(x)]


@pytest.mark.parametrize("given", ["a tensor", "an array", "nothing"])
@pytest.mark.parametrize("name", AROUND)
def test_a_jitted_function_may_refer_to_values_of_a_transform_around_it(
    name: str, given: str
) -> None:
    own = torch.tensor([2.0, 3.0])
    args = {"a tensor": (own,), "an array": (own.numpy(),), "nothing": ()}[given]
    box: dict[str, Any] = {"v": torch.tensor([1.0, 1.0])}

    def inner(*args: Any) -> Any:
        u = args[0] if args else own
        return (u * box["v"] * box["v"] * box["v"]).sum()

    def run(call: Any) -> Any:
        def outer(v: Any) -> Any:
            box["v"] = v
            return call(*args)

        return _plain(AROUND[name](outer))

    jitted = ft.jit(inner)
    assert jitted(*args).item() == 5.0  # this program is of no use within the transform
    for _ in range(2):
        for found, expected in zip(run(jitted), run(inner), strict=True):
            assert_allclose(found, expected, 1e-6)
    box["v"] = torch.tensor([1.0, 1.0])
    assert jitted(*args).item() == 5.0


def test_a_program_is_not_lowered_of_values_of_a_transform() -> None:
    def lowered(v: Any) -> Any:
        return ft.jit(lambda u: (u * v).sum()).lower(torch.ones(2))

    with pytest.raises(UnsupportedOperationError, match="refers to a value of a transform"):
        func.grad(lowered)(torch.ones(2))


def test_tensors_made_in_a_compiled_function_decide_branches_in_branches() -> None:
    def run(a: Any) -> Any:
        p, scale = torch.tensor(True), torch.tensor(2.0)

        def inner(o: Any) -> Any:
            return ft.lax.cond(p, lambda q: (a * q * scale).sum(), lambda q: (a - q).sum(), o)

        return ft.lax.cond(p, inner, lambda o: (a * o).sum(), a) + (scale * a).sum()

    x = torch.tensor([1.0, 2.0])
    for form in (run, ft.jit(run), torch.func.grad_and_value(run), ft.jit(torch.func.grad(run))):
        found = form(x)
        if isinstance(found, tuple):
            found = found[0]
        expected = 16.0 if found.ndim == 0 else [6.0, 10.0]
        assert found.tolist() == expected
