"""``check_grads`` accepts right derivatives and names what is wrong with others."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.errors import NonDifferentiableError


@ft.custom_jvp
def wrong_forward(x: Any) -> Any:
    """Its derivative is off in the element 1."""
    return np.sin(x)


@wrong_forward.defjvp
def _wrong_forward_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return wrong_forward(x), t * np.cos(x) * np.array([1.0, 1.5, 1.0], x.dtype)


@ft.custom_vjp
def wrong_reverse(x: Any) -> Any:
    return np.sin(x)


wrong_reverse.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (-ct * np.cos(x),))


@ft.custom_jvp
def wrong_second(x: Any) -> Any:
    """Its first derivative is right at every point, the derivative of that is not."""
    return x**3


@wrong_second.defjvp
def _wrong_second_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return x**3, 3 * t * x * ft.stop_gradient(x)


POINT = np.array([0.3, 0.8, -0.5])


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("modes", ["fwd", "rev", ("fwd", "rev")])
def test_right_derivatives_pass(order: int, modes: Any) -> None:
    ft.check_grads(lambda x, y: np.sum(np.sin(x) * y), (POINT, 0.7), order=order, modes=modes)


def test_pytrees_integers_and_several_results() -> None:
    def f(params: Any, n: Any) -> Any:
        return {"out": params["w"] ** n, "count": n + 1, "both": (params["w"], params["b"] * n)}

    ft.check_grads(f, ({"w": POINT**2, "b": 2.0}, np.array([1, 2, 3])))


def test_complex_functions() -> None:
    z = np.array([1.0 + 0.5j, -0.3 + 2.0j])
    ft.check_grads(lambda z: np.exp(z) * z, (z,))
    ft.check_grads(lambda z: np.abs(z) ** 2 + np.conj(z).real, (z,))


def test_single_precision_has_its_own_step_and_tolerance() -> None:
    x = POINT.astype(np.float32)
    ft.check_grads(lambda x: np.tanh(x) * x, (x,))
    with pytest.raises(AssertionError, match=r"step 0\.005"):
        ft.check_grads(wrong_forward, (x,))


def test_step_one_is_exact_for_bilinear_functions() -> None:
    a = np.arange(6.0).reshape(2, 3) * 1e3
    ft.check_grads(lambda a, b: a @ b, (a, POINT * 1e-3), atol=1e-9, rtol=1e-12, eps=1.0)


def test_wrong_forward_rule_is_named_with_its_worst_element() -> None:
    with pytest.raises(AssertionError) as caught:
        ft.check_grads(lambda x: {"y": wrong_forward(x)}, (POINT,), modes="fwd")
    text = str(caught.value)
    assert "forward mode at order 1 of result['y'] (f64[3])" in text
    assert "1 of 3 elements; worst at (1,)" in text
    assert "by central differences (step 0.0001)" in text
    assert "derivative rule is wrong" in text


def test_wrong_backward_function_is_found_in_reverse_mode() -> None:
    with pytest.raises(AssertionError, match="reverse mode at order 1: the inner product"):
        ft.check_grads(wrong_reverse, (POINT,), modes="rev")


def test_wrong_second_derivative_is_found_at_order_two_only() -> None:
    ft.check_grads(wrong_second, (POINT,), order=1)
    with pytest.raises(AssertionError, match=r"at order 2 \(fwd of fwd\)"):
        ft.check_grads(wrong_second, (POINT,), order=2, modes="fwd")
    with pytest.raises(AssertionError, match=r"at order 2 \(rev of rev\)"):
        ft.check_grads(wrong_second, (POINT,), order=2, modes="rev")


def test_kink_within_the_step_is_found() -> None:
    with pytest.raises(AssertionError, match="within the step of a kink"):
        ft.check_grads(lambda x: np.maximum(x, 0.0) * 3 + np.abs(x), (np.array([1e-6]),))


def test_infinite_derivative_is_no_derivative() -> None:
    with pytest.raises(AssertionError, match="inf found"), np.errstate(all="ignore"):
        ft.check_grads(np.cbrt, (np.array([0.0, 1.0]),), order=1)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"args": 1.0}, TypeError, r"write \(x,\)"),
        ({"args": (3,)}, NonDifferentiableError, "no argument is floating"),
        ({"order": 0}, ValueError, "at least 1"),
        ({"modes": ("forward",)}, ValueError, "'fwd' and 'rev'"),
        ({"modes": ()}, ValueError, "'fwd' and 'rev'"),
        ({"f": 3.0}, TypeError, "expected a function"),
    ],
)
def test_wrong_arguments_are_refused(change: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        ft.check_grads(**{"f": np.sin, "args": (POINT,), **change})
