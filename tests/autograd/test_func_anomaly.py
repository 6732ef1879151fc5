"""Anomaly mode finds NaN in gradients that functional transforms compute."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import functrans as ft
from functrans.autograd.anomaly import set_detect_anomaly
from functrans.compat import torch

func = torch.func

pytestmark = pytest.mark.filterwarnings("ignore:invalid value", "ignore:Error detected in Sqrt")

POINT = torch.tensor([-1.0, 4.0])
GOOD = torch.tensor([1.0, 4.0])
ONES = torch.tensor([1.0, 1.0])


def _f(x: Any) -> Any:
    return torch.sqrt(x).sum()


INNER: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: func.grad(_f)(x),
    "grad_and_value": lambda x: func.grad_and_value(_f)(x)[0],
    "vjp": lambda x: func.vjp(torch.sqrt, x)[1](ONES)[0],
    "jacrev": lambda x: func.jacrev(torch.sqrt)(x).sum(0),
    "rows of jacrev": lambda x: func.jacrev(torch.sqrt, chunk_size=1)(x).sum(0),
    "hessian": lambda x: func.hessian(_f)(x).sum(0),
    "grad of vmap": lambda x: func.grad(lambda y: func.vmap(torch.sqrt)(y).sum())(x),
    "vmap of grad": lambda x: func.vmap(func.grad(torch.sqrt))(x),
    "autograd.grad": lambda x: func.grad(
        lambda y: torch.autograd.grad(_f(y), y, create_graph=True)[0].sum()
    )(x),
}
OUTER: dict[str, Callable[[Any, Any], Any]] = {
    "alone": lambda f, x: f(x),
    "vmap": lambda f, x: func.vmap(f)(torch.stack([GOOD, x])),
    "vmap of vmap": lambda f, x: func.vmap(func.vmap(f))(torch.stack([GOOD, x])[None]),
    "grad": lambda f, x: func.grad(lambda y: f(y).sum())(x),
    "jvp": lambda f, x: func.jvp(f, (x,), (ONES,))[0],
    "jacfwd": lambda f, x: func.jacfwd(f)(x),
    "jacrev": lambda f, x: func.jacrev(f)(x),
    "vmap of jvp": lambda f, x: func.vmap(lambda y: func.jvp(f, (y,), (ONES,))[1])(x[None]),
    "jvp of vmap": lambda f, x: func.jvp(func.vmap(f), (x[None],), (ONES[None],))[1],
    "recorded": lambda f, x: f(x.clone().requires_grad_()),
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_nan_in_a_gradient_raises_within_every_transform(outer: str, inner: str) -> None:
    run = OUTER[outer]
    expected = run(INNER[inner], GOOD).detach().numpy()
    with set_detect_anomaly(True):
        assert_array_equal(run(INNER[inner], GOOD).detach().numpy(), expected)
        with pytest.raises(RuntimeError, match=r"'SqrtBackward0' returned nan .* 0th") as caught:
            run(INNER[inner], POINT)
    (note,) = [note for note in caught.value.__notes__ if "SqrtBackward0" in note]
    assert "test_func_anomaly.py" in note
    with set_detect_anomaly(True, check_nan=False):
        assert np.isnan(run(INNER[inner], POINT).detach().numpy()).any()
    assert np.isnan(run(INNER[inner], POINT).detach().numpy()).any()


def test_the_function_and_the_operand_are_named() -> None:
    with set_detect_anomaly(True):
        with pytest.raises(RuntimeError, match=r"'DivBackward0' returned nan values in its 1th"):
            func.grad(lambda x: x / x)(torch.tensor(0.0))
        with pytest.raises(RuntimeError, match=r"'MulBackward0' returned nan values in its 0th"):
            func.grad(lambda x: x * torch.tensor(float("nan")))(torch.tensor(1.0))


def test_a_pullback_is_checked_if_the_mode_is_on_when_it_runs() -> None:
    _, pullback = func.vjp(torch.sqrt, POINT)
    assert np.isnan(pullback(ONES)[0].numpy()[0])
    with set_detect_anomaly(True):
        with pytest.raises(RuntimeError, match="SqrtBackward0"):
            pullback(ONES)
        _, pullback = func.vjp(torch.sqrt, POINT)
    assert np.isnan(pullback(ONES)[0].numpy()[0])


def test_tangents_and_values_may_be_nan() -> None:
    with set_detect_anomaly(True):
        assert np.isnan(func.jvp(torch.sqrt, (POINT,), (ONES,))[1].numpy()[0])
        assert np.isnan(func.jacfwd(torch.sqrt)(POINT).numpy()[0, 0])
        gradient, value = func.grad_and_value(lambda x: (x * 2 + torch.log(POINT)).sum())(GOOD)
        assert_array_equal(gradient.numpy(), [2, 2])
        assert np.isnan(value.numpy())


def test_the_mode_leaves_that_of_debug_nans_as_it_is() -> None:
    with set_detect_anomaly(True), ft.debug_nans():
        with pytest.raises(ft.errors.NonFiniteError, match="sqrt gave NaN in the forward pass"):
            func.grad(torch.sqrt)(torch.tensor(-1.0))
        with pytest.raises(ft.errors.NonFiniteError, match="in the backward pass"):
            func.grad(lambda x: torch.sqrt(0.0 * x))(torch.tensor(1.0))
    with set_detect_anomaly(True), ft.debug_nans(nan=False, inf=True):
        with pytest.raises(RuntimeError, match="SqrtBackward0"):
            func.grad(torch.sqrt)(torch.tensor(-1.0))
        with pytest.raises(ft.errors.NonFiniteError, match="infinity"):
            func.grad(torch.sqrt)(torch.tensor(0.0))


def test_a_program_traced_in_the_mode_does_not_raise_outside_of_it() -> None:
    step = ft.jit(lambda x: func.grad(_f)(x))
    with set_detect_anomaly(True):
        assert_array_equal(step(GOOD).numpy(), [0.5, 0.25])
    assert_array_equal(np.isnan(step(POINT).numpy()), [True, False])
