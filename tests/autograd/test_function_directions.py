"""Forward mode takes a ``Function``'s ``jvp``, reverse mode its ``backward``, in all transforms."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import functrans as ft
from functrans.compat import torch

func, forward_ad = torch.func, torch.autograd.forward_ad

X = torch.tensor([1.0, 2.0, 3.0])
Y = torch.tensor([2.0, 0.5, 4.0])
ONES = torch.ones(3)


class Both(torch.autograd.Function):
    """Has derivatives that differ: 10 and 1000 times ``y`` by ``jvp``, others by ``backward``."""

    generate_vmap_rule = True

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, scale: float) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x, y)
        ctx.scale = scale
        sign = torch.sign(x)
        ctx.mark_non_differentiable(sign)
        return x * y, x.sum() * scale, sign

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any, _: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 7 * g * x + 3 * h, 5 * g, None

    @staticmethod
    def jvp(ctx: Any, dx: Any, dy: Any, _: Any) -> Any:
        _, y = ctx.saved_tensors
        return 10 * y * dx + 1000 * y * dy, dx.sum() * ctx.scale, None


class Modern(torch.autograd.Function):
    """The same in other words."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, y: Any, scale: float) -> Any:
        return x * y, x.sum() * scale, torch.sign(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        x, y, ctx.scale = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x, y)
        ctx.mark_non_differentiable(output[2])

    backward = Both.backward
    jvp = Both.jvp


FUNCTIONS = {"forward with context": Both, "setup_context": Modern}


def _first(cls: Any) -> Callable[[Any], Any]:
    return lambda x: cls.apply(x, Y, 2.0)[0]


def _rows(f: Any, x: Any) -> Any:
    return func.vmap(f)(torch.stack([x, x]))


BY_JVP: dict[str, Callable[[Any, Any], Any]] = {
    "jvp": lambda f, x: func.jvp(f, (x,), (ONES,))[1],
    "jacfwd": lambda f, x: func.jacfwd(f)(x).sum(1),
    "linearize": lambda f, x: func.linearize(f, x)[1](ONES),
    "jvp of vmap": lambda f, x: func.jvp(lambda v: _rows(f, v)[1], (x,), (ONES,))[1],
    "jacfwd of vmap": lambda f, x: func.jacfwd(lambda v: _rows(f, v)[1])(x).sum(1),
    "linearize of vmap": lambda f, x: func.linearize(lambda v: _rows(f, v)[1], x)[1](ONES),
    "vmap of jvp": lambda f, x: _rows(lambda v: func.jvp(f, (v,), (ONES,))[1], x)[1],
    "vmap of jacfwd": lambda f, x: _rows(func.jacfwd(f), x)[1].sum(1),
    "vmap of linearize": lambda f, x: _rows(lambda v: func.linearize(f, v)[1](ONES), x)[1],
    "vmap of pushforwards": lambda f, x: func.vmap(func.linearize(f, x)[1])(torch.eye(3)).sum(0),
    "a level around": lambda f, x: func.vmap(
        lambda c: func.jacfwd(lambda v: f(v) + 0 * c)(x).sum(1)
    )(X)[0],
    "arrays": lambda f, x: torch.tensor(ft.jvp(f, (x.numpy(),), (np.ones(3, np.float32),))[1]),
    "jacfwd of arrays": lambda f, x: torch.tensor(ft.jacfwd(f)(x.numpy()).sum(1)),
    "dual tensors": lambda f, x: _dual(f, x),
}
BY_BACKWARD: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: func.grad(lambda v: f(v).sum())(x),
    "vjp": lambda f, x: func.vjp(f, x)[1](ONES)[0],
    "jacrev": lambda f, x: func.jacrev(f)(x).sum(0),
    "vjp of vmap": lambda f, x: func.vjp(lambda v: _rows(f, v)[1], x)[1](ONES)[0],
    "jacrev of vmap": lambda f, x: func.jacrev(lambda v: _rows(f, v)[1])(x).sum(0),
    "vmap of grad": lambda f, x: _rows(func.grad(lambda v: f(v).sum()), x)[1],
    "vmap of jacrev": lambda f, x: _rows(func.jacrev(f), x)[1].sum(0),
    "backward": lambda f, x: torch.autograd.functional.jacobian(f, x).sum(0),
}


def _dual(f: Any, x: Any) -> Any:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, ONES))).tangent


@pytest.mark.parametrize("cls", FUNCTIONS.values(), ids=list(FUNCTIONS))
@pytest.mark.parametrize("transform", BY_JVP)
def test_forward_mode_takes_jvp(transform: str, cls: Any) -> None:
    assert_array_equal(BY_JVP[transform](_first(cls), X), [20, 5, 40])


@pytest.mark.parametrize("cls", FUNCTIONS.values(), ids=list(FUNCTIONS))
@pytest.mark.parametrize("transform", BY_BACKWARD)
def test_reverse_mode_takes_backward(transform: str, cls: Any) -> None:
    assert_array_equal(BY_BACKWARD[transform](_first(cls), X), [7, 14, 21])


@pytest.mark.parametrize("cls", FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_every_argument_and_result_has_its_tangent(cls: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return cls.apply(x, y, 2.0)[:2]

    (a, b), (c, d) = func.jacfwd(f, (0, 1))(X, Y)
    assert_array_equal(a, np.diag([20, 5, 40]))
    assert_array_equal(b, np.diag([2000, 500, 4000]))
    assert_array_equal(c, [2, 2, 2])
    assert_array_equal(d, [0, 0, 0])
    _, push = func.linearize(f, X, Y)
    for given in (ONES, 0 * ONES), (0 * ONES, ONES), (X, Y):
        for one, other in zip(push(*given), func.jvp(f, (X, Y), given)[1], strict=True):
            assert_array_equal(one, other)
    both = func.vmap(func.jacfwd(f, 1), (0, None))(torch.stack([X, X]), Y)
    assert_array_equal(both[0][1], b)
    with_shared = func.jacfwd(lambda y: func.vmap(f, (0, None))(torch.stack([X, X]), y)[0])(Y)
    assert_array_equal(with_shared[1], b)


def test_derivatives_of_derivatives_go_through_the_rule_that_was_taken() -> None:
    def f(x: Any) -> Any:
        return Both.apply(x, x * x, 2.0)[0].sum()

    # by jvp: 10 y + 1000 y dy = 10 x^2 + 2000 x^3; by backward: 7 x + 5 * 2 x = 17 x
    x = torch.tensor([1.0, 2.0])
    assert_array_equal(func.jacfwd(f)(x), [2010, 16040])
    assert_array_equal(func.grad(f)(x), [17, 34])
    assert_array_equal(func.hessian(f)(x), np.diag([17, 17]))
    assert_array_equal(func.jacrev(func.jacrev(f))(x), np.diag([17, 17]))
    assert_array_equal(func.jacrev(func.jacfwd(f))(x), np.diag([6020, 24040]))
    assert_array_equal(func.jacfwd(func.jacfwd(f))(x), np.diag([6020, 24040]))


def test_a_program_keeps_both_rules() -> None:
    def f(x: Any) -> Any:
        return ft.jvp(_first(Both), (x,), (np.ones(3, np.float32),))[1]

    x = X.numpy()
    assert_array_equal(ft.jit(f)(x), [20, 5, 40])
    push = ft.linearize(_first(Both), x)[1]
    assert_array_equal(ft.jit(push)(np.ones(3, np.float32)), [20, 5, 40])
    assert_array_equal(ft.linear_transpose(push, x)(np.ones(3, np.float32))[0], [7, 14, 21])
