"""``gradcheck`` and ``gradgradcheck``: what they accept, and that they find wrong derivatives."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.compat.torch as torch
from functrans.autograd import Function, forward_ad, func, grad, no_grad, tensor
from functrans.autograd.checks import GradcheckError, gradcheck, gradgradcheck
from functrans.autograd.composites import composite

OPTIONS: list[dict[str, Any]] = [
    {},
    {"fast_mode": True},
    {"check_forward_ad": True},
    {"check_forward_ad": True, "check_backward_ad": False, "fast_mode": True},
    {"check_batched_grad": True, "check_grad_dtypes": True},
    {"check_forward_ad": True, "check_batched_forward_grad": True},
]


def leaf(values: Any) -> Any:
    return tensor(np.asarray(values), requires_grad=True)


REAL = np.array([[0.4, -1.2], [2.0, 0.7]])
COMPLEX = np.array([0.4 - 1.0j, -1.2 + 0.3j])


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda x: x * x + x.exp(), REAL),
        (lambda x: (x.sum(), x * 2), REAL),
        (lambda z: z * z * z, COMPLEX),
        (lambda z: (z * z).sum(), COMPLEX),
    ],
)
def test_right_derivatives_pass(function: Any, values: Any, options: Any) -> None:
    assert gradcheck(function, leaf(values), **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"fast_mode": True}, {"check_fwd_over_rev": True}, {"gen_non_contig_grad_outputs": True}],
)
def test_right_second_derivatives_pass(options: Any) -> None:
    assert gradgradcheck(lambda x, y: (x * y.sin()).exp(), (leaf(REAL), leaf(REAL.T)), **options)


@ft.custom_vjp
def skewed(x: Any) -> Any:
    return x * x


def _skew(x: Any, ct: Any) -> Any:
    factor = np.ones((2, 2))
    factor[1, 0] = 1.5
    return (ct * 2 * x * factor,)


skewed.defvjp(lambda x: (x * x, x), _skew)


@pytest.mark.parametrize("options", [{}, {"fast_mode": True}])
def test_a_wrong_derivative_is_named_with_its_worst_element(options: Any) -> None:
    def wrong(x: Any) -> Any:
        return composite("Skewed", skewed, x)

    with pytest.raises(GradcheckError) as caught:
        gradcheck(wrong, leaf(REAL), **options)
    text = str(caught.value)
    assert "Jacobian mismatch for output 0 with respect to input 0,\nnumerical:" in text
    assert "d output[1, 0] / d input[1, 0]: numerical 4, analytical 6." in text
    assert gradcheck(wrong, leaf(REAL), raise_exception=False, **options) is False


def test_a_function_of_detached_values_has_no_derivative() -> None:
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, leaf(REAL))
    assert gradcheck(lambda x: tensor(np.ones(2)), leaf(REAL))


def test_a_backward_pass_that_is_not_reentrant_is_noticed() -> None:
    noise = iter(range(100))

    def noisy(x: Any) -> Any:
        y = x * 1.0
        if y.requires_grad:
            y.register_hook(lambda g: None if g is None else g + 1e-7 * next(noise))
        return y

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(noisy, leaf(REAL))
    assert gradcheck(noisy, leaf(REAL), nondet_tol=1e-5)


def test_inputs_that_cannot_be_checked() -> None:
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x * 2, tensor(REAL))
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double"):
        gradcheck(lambda x: x * 2, leaf(REAL.astype("f")), eps=1e-2, atol=1e-2)
    with pytest.raises(RuntimeError, match="has a dimension with stride 0"):
        gradcheck(lambda x: x * 2, tensor(np.ones(1)).expand(3).requires_grad_())
    with pytest.raises(AssertionError, match="at least one of check_forward_ad"):
        gradcheck(lambda x: x * 2, leaf(REAL), check_backward_ad=False)


def test_arguments_are_not_changed() -> None:
    x = leaf(REAL.copy())
    gradcheck(lambda x: x * x, x)
    assert np.array_equal(x.detach().numpy(), REAL)
    assert x.grad is None


BASE = np.array([1.0, 2.0])
CHANGES = {
    "as many": lambda y: (y, y),
    "same shape": lambda y: y[None],
    "same dtype": lambda y: y.to(np.float32),
}


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("side", [-1, 0, 1])
@pytest.mark.parametrize("what", CHANGES)
def test_a_function_whose_results_change_their_kinds_is_refused(
    what: str, side: int, backward: bool, fast_mode: bool
) -> None:
    def changing(x: Any) -> Any:
        move = x.detach().numpy()[0] - BASE[0]
        changes = move * side > 0 if side else move != 0
        return CHANGES[what](x * 1) if changes else x * 1

    with pytest.raises(AssertionError, match=what):
        gradcheck(
            changing, leaf(BASE), fast_mode=fast_mode, check_forward_ad=not backward,
            check_backward_ad=backward, raise_exception=False,
        )  # fmt: skip


def _gradient_inside(x: Any) -> Any:
    return grad((x**3).sum(), x, create_graph=True)[0]


def _hook_inside(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g)
    return y * y


def _leaf_inside(x: Any) -> Any:
    own = x.detach().requires_grad_()
    grad((own**2).sum(), own)
    return x * 1


FUNCTIONS = {
    "func.grad": lambda x: func.grad(lambda z: (z**3).sum())(x),
    "func.jacrev": lambda x: func.jacrev(lambda z: z**3)(x),
    "func.hessian": lambda x: func.hessian(lambda z: (z**3).sum())(x),
    "autograd.grad": _gradient_inside,
    "register_hook": _hook_inside,
    "own leaf": _leaf_inside,
}


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_differentiate_inside_are_judged_rightly(name: str, fast_mode: bool) -> None:
    for check in (gradcheck, gradgradcheck):
        with no_grad():
            assert check(FUNCTIONS[name], leaf(BASE), fast_mode=fast_mode)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_forward_mode_moves_one_input_at_a_time_and_asks_for_no_gradients(fast_mode: bool) -> None:
    seen = set()

    def watched(x: Any, y: Any, z: Any) -> Any:
        if forward_ad._levels.current is not None:
            tangents = [forward_ad.unpack_dual(t).tangent is not None for t in (x, y, z)]
            seen.add((*tangents, x.requires_grad or z.requires_grad))
        return x * y * z

    inputs = (leaf(BASE), tensor(BASE), leaf(BASE))
    gradcheck(watched, inputs, fast_mode=fast_mode, check_forward_ad=True)
    assert seen == {(True, False, False, False), (False, False, True, False)}


class Noisy(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 2 + 0 * torch.rand_like(gradient)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_random_numbers_in_batches_of_gradients_are_refused(fast_mode: bool) -> None:
    options = {"fast_mode": fast_mode, "nondet_tol": 1.0}
    assert gradcheck(Noisy.apply, leaf(BASE), **options)
    with pytest.raises(GradcheckError, match=r"While computing batched gradients.*random"):
        gradcheck(Noisy.apply, leaf(BASE), check_batched_grad=True, **options)

    def noisy(x: Any) -> Any:
        return x + 0 * torch.rand(2)

    assert gradcheck(noisy, leaf(BASE), check_forward_ad=True, **options)
    with pytest.raises(GradcheckError, match=r"While computing batched gradients.*random"):
        gradcheck(
            noisy, leaf(BASE), check_forward_ad=True, check_batched_forward_grad=True, **options
        )
