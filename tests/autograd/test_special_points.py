"""Values and derivatives at special points, by hand: torch's conventions on the imperative side.

The whole grid is compared with torch in test_parity_special_points.py. Here are also the warnings:
there are none of NumPy's.
"""

import math
import threading
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.compat.torch as torch_like
from cases import each
from functrans.autograd import grad, tensor
from functrans.autograd.random import scaled
from functrans.compat.torch.nn import activations

F = torch_like.nn.functional
inf, nan = math.inf, math.nan


def value_and_slopes(function: Callable[..., Any], *points: Any) -> tuple[Any, list[Any]]:
    xs = [tensor(p, dtype=torch_like.float64, requires_grad=True) for p in points]
    out = function(*xs)
    return out.detach().numpy(), [g.numpy() for g in grad(out.sum(), xs)]


def curvature(function: Callable[..., Any], point: Any) -> Any:
    x = tensor(point, dtype=torch_like.float64, requires_grad=True)
    (slope,) = grad(function(x).sum(), x, create_graph=True)
    return grad(slope.sum(), x)[0].numpy()


ONE: list[tuple[Any, Any, Any, Any]] = [
    (lambda x: x.abs(), [0.0, nan, -2.0], [0.0, nan, 2.0], [0.0, 0.0, -1.0]),
    (lambda x: x.sign(), [nan, -3.0], [0.0, -1.0], [0.0, 0.0]),
    (lambda x: x.reshape(2, 2).amax(1), [nan, 1.0, 3.0, 3.0], [nan, 3.0], [nan, nan, 0.5, 0.5]),
    (
        lambda x: torch_like.aminmax(x, dim=0, keepdim=True).min,
        [1.0, inf, nan],
        [nan],
        [nan, nan, nan],
    ),
    (lambda x: x.max(), [nan, 1.0, nan], nan, [0.5, 0.0, 0.5]),
    (lambda x: x.relu(), [nan, 0.0, -1.0], [nan, 0.0, 0.0], [1.0, 0.0, 0.0]),
    (F.relu, [nan, 0.0, 1.0], [nan, 0.0, 1.0], [1.0, 0.0, 1.0]),
    (F.relu6, [nan, 0.0, 6.0, 3.0], [nan, 0.0, 6.0, 3.0], [0.0, 0.0, 0.0, 1.0]),
    (F.hardshrink, [nan, 0.5, 0.6], [nan, 0.0, 0.6], [0.0, 0.0, 1.0]),
    (F.hardsigmoid, [nan, -3.0, 0.0], [nan, 0.0, 0.5], [0.0, 0.0, 1 / 6]),
    (lambda x: x.clamp(0.0, 1.0), [nan, 0.0, 1.0, 2.0], [nan, 0.0, 1.0, 1.0], [0, 1, 1, 0]),
    (lambda x: x.clamp(min=nan), [1.0], [nan], [0.0]),
    (lambda x: x.clamp(1.0, -1.0), [0.0], [-1.0], [0.0]),
    (
        lambda x: x.sinc(),
        [0.0, 1e-310, 1e-20],
        [1.0, 1.0, 1.0],
        [0.0, *(-(math.pi**2) / 3 * np.array([1e-310, 1e-20]))],
    ),
    (lambda x: x.lgamma(), [-inf, inf], [inf, inf], [nan, inf]),
    (lambda x: x.logit(), [0.0, 1.0, 2.0], [-inf, inf, nan], [inf, inf, nan]),
    (lambda x: x.logit(0.25), [0.0, 0.25], [-math.log(3)] * 2, [0.0, 16 / 3]),
    (torch_like.special.entr, [0.0, -1.0, 1.0], [0.0, -inf, 0.0], [inf, nan, -1.0]),
    (lambda x: 0.0**x, [2.0, 0.0, -1.0], [0.0, 1.0, inf], [0.0, 0.0, -inf]),
    (lambda x: x**-0.5, [-0.0, 4.0, -inf], [-inf, 0.5, nan], [-inf, -1 / 16, -0.0]),
    (lambda x: torch_like.frexp(x)[0], [2.0**-1050, 8.0], [0.5, 0.5], [inf, 1 / 16]),
    (lambda x: x.angle(), [nan, -1.0, 0.0], [nan, math.pi, 0.0], [0.0, 0.0, 0.0]),
    (F.elu, [-100.0, 0.0], [-1.0, 0.0], [math.exp(-100.0), 1.0]),
    (lambda x: x.norm(-1), [0.0, 2.0], 0.0, [0.0, 0.0]),
    (lambda x: x.norm(1), [nan, 1.0], nan, [0.0, 1.0]),
    (lambda x: x.logsumexp(0), [-inf, -inf], -inf, [nan, nan]),
    (lambda x: x.logsumexp(0), [inf, 1.0], inf, [nan, 0.0]),
    (lambda x: x.logsumexp(0), [-inf, 1.0], 1.0, [0.0, 1.0]),
    (lambda x: x.log_softmax(0), [inf, 1.0], [nan, nan], [nan, nan]),
    (lambda x: x.mode().values, [2.0, 1.0, 2.0, 1.0], 1.0, [0.0, 0.0, 0.0, 1.0]),
    (lambda x: x.quantile(0.5), [inf, 1.0, 2.0], 2.0, [0.0, 0.0, 1.0]),
    (lambda x: x.quantile(0.25), [1.0, 3.0, nan], nan, [0.0, 0.0, 1.0]),
    (lambda x: x.nanquantile(0.25), [1.0, 3.0, nan], 1.5, [0.75, 0.25, 0.0]),
    (lambda x: F.normalize(x, p=1.0, dim=0), [0.0, 2.0], [0.0, 1.0], [0.5, 0.0]),
    (lambda x: F.normalize(x, p=inf, dim=0), [0.0, 2.0], [0.0, 1.0], [0.5, 0.0]),
    (lambda x: F.normalize(x, dim=0), [0.0, 0.0], [0.0, 0.0], [1e12, 1e12]),
    (lambda x: torch_like.var(x, 0, correction=2), [1.0, 3.0], inf, [inf, inf]),
]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom:UserWarning")
@pytest.mark.parametrize(("function", "point", "value", "slope"), ONE)
def test_functions_of_one_operand(function: Any, point: Any, value: Any, slope: Any) -> None:
    found, (found_slope,) = value_and_slopes(function, point)
    assert_allclose(found, value, 1e-14)
    assert_allclose(found_slope, slope, 1e-14)


STEP, SCALE = 1.6732632423543772, 1.0507009873554805  # of selu
LINES: dict[str, tuple[Any, Any]] = {  # slope and offset far below and far above 0
    **dict.fromkeys(("gelu", "hardswish", "mish", "relu", "silu", "softplus"), ((0, 0), (1, 0))),
    **dict.fromkeys(("celu", "elu"), ((0, -1), (1, 0))),
    "hardshrink": ((1, 0), (1, 0)),
    "hardsigmoid": ((0, 0), (0, 1)),
    "hardtanh": ((0, -1), (0, 1)),
    "leaky_relu": ((0.01, 0), (1, 0)),
    "logsigmoid": ((1, 0), (0, 0)),
    "relu6": ((0, 0), (0, 6)),
    "selu": ((0, -STEP * SCALE), (SCALE, 0)),
    "sigmoid": ((0, 0), (0, 1)),
    "softshrink": ((1, 0.5), (1, -0.5)),
    "softsign": ((0, -1), (0, 1)),
    "tanh": ((0, -1), (0, 1)),
    "tanhshrink": ((1, 1), (1, -1)),
}
OTHERS = ("glu", "log_softmax", "prelu", "softmax", "softmin", "threshold", "relu_", "swish")
# torch multiplies: (function, point) with 0 * inf or inf / inf in the value, in the slope
VALUELESS = {(name, -inf) for name in ("gelu", "mish", "silu", "softsign")} | {("softsign", inf)}
SLOPELESS = VALUELESS | {(name, inf) for name in ("gelu", "mish", "silu")}


def test_every_activation_has_its_lines() -> None:
    assert {*LINES, *OTHERS} == set(activations.__all__)


@each("name", LINES)
def test_activations_far_from_zero_are_lines(name: str) -> None:
    for sign, (slope, offset) in zip((-1, 1), LINES[name], strict=True):
        for dtype, sizes in (("float64", (1e3, 1e30, 1e308, inf)), ("float32", (1e3, 3e38, inf))):
            for point in (sign * size for size in sizes):
                x = torch_like.full((17,), point, dtype=getattr(torch_like, dtype))
                x.requires_grad_()
                y = getattr(F, name)(x)
                value = nan if (name, point) in VALUELESS else (slope and slope * point) + offset
                assert_allclose(y.detach().numpy(), value, 2e-3, 1e-30, err_msg=f"{dtype} {point}")
                wanted = nan if (name, point) in SLOPELESS else slope
                assert_allclose(grad(y.sum(), x)[0].numpy(), wanted, 1e-6, 1e-5)
    assert np.isnan(getattr(F, name)(tensor([nan])).numpy()).all()


TWO: list[tuple[Any, Any, Any, Any, Any, Any]] = [
    (torch_like.maximum, [1.0, nan, 2.0], [1.0, 1.0, 1.0], [1, nan, 2], [0.5, 1, 1], [0.5, 1, 0]),
    (torch_like.minimum, [1.0, 1.0, 2.0], [1.0, nan, 1.0], [1, nan, 1], [0.5, 1, 0], [0.5, 1, 1]),
    (torch_like.fmax, [1.0, nan, 1.0], [1.0, 1.0, nan], [1, 1, 1], [1, 0, 1], [0, 1, 0]),
    (torch_like.fmin, [1.0, nan, 1.0], [1.0, 1.0, nan], [1, 1, 1], [1, 0, 1], [0, 1, 0]),
    (torch_like.atan2, [0.0], [0.0], [0.0], [0.0], [0.0]),
    (torch_like.hypot, [0.0, 3.0], [0.0, 4.0], [0.0, 5.0], [nan, 0.6], [nan, 0.8]),
    (torch_like.logaddexp, [-inf, 1e308], [-inf, 1e308], [-inf, 1e308], [nan, 0.5], [nan, 0.5]),
    (torch_like.logaddexp, [inf, 0.0], [1.0, -inf], [inf, 0.0], [1.0, 1.0], [0.0, 0.0]),
    (torch_like.copysign, [0.0, 2.0], [-1.0, -1.0], [-0.0, -2.0], [0.0, -1.0], [0.0, 0.0]),
    (torch_like.xlogy, [0.0, 0.0, 0.0], [0.0, inf, nan], [0, 0, nan], [0, inf, nan], [nan, 0, nan]),
    (torch_like.remainder, [1.0], [-inf], [-inf], [1.0], [1.0]),
    (torch_like.pow, [0.0, 0.0], [0.0, -1.0], [1.0, inf], [0.0, -inf], [0.0, -inf]),
    # The result is the bound: PyTorch has its slope in forward mode, and none in reverse mode.
    (lambda x, y: torch_like.clamp(x, y, y), [0.0, 1.0], [1.0, 1.0], [1, 1], [0, 1], [1, 0]),
    (lambda x, y: torch_like.clamp(x, min=y), [1.0, 0.0], [1.0, nan], [1, nan], [1, 0], [0, 0]),
    (lambda x, y: F.l1_loss(x, y, reduction="none"), [1.0, nan], [1.0, 0.0], [0.0, nan],
     [0.0, 0.0], [0.0, 0.0]),
    (lambda x, y: F.huber_loss(x, y, reduction="none"), [nan, 1.0], [0.0, 0.0], [nan, 0.5],
     [nan, 1.0], [nan, -1.0]),
    (lambda x, y: F.smooth_l1_loss(x, y, reduction="none"), [2.0, 0.0], [1.0, 0.0], [0.5, 0.0],
     [1.0, 0.0], [-1.0, 0.0]),
    (lambda x, y: F.cosine_similarity(x, y, 0), [0.0, 0.0], [1.0, 0.0], 0.0, [1e8, 0.0],
     [0.0, 0.0]),
    (lambda x, y: F.cosine_similarity(x, y, 0), [1e200, 0.0], [1.0, 0.0], 0.0, [0, 0], [0, 0]),
    (lambda x, y: torch_like.cdist(x[None], y[None])[0], [1.0, 2.0], [1.0, 2.0], [0.0], [0.0, 0.0],
     [0.0, 0.0]),
]  # fmt: skip


@pytest.mark.parametrize(("function", "x", "y", "value", "by_x", "by_y"), TWO)
def test_functions_of_two_operands(
    function: Any, x: Any, y: Any, value: Any, by_x: Any, by_y: Any
) -> None:
    found, slopes = value_and_slopes(function, x, y)
    assert_allclose(found, value, 1e-14)
    assert_array_equal(np.signbit(found), np.signbit(value))
    assert_allclose(slopes[0], by_x, 1e-14)
    assert_allclose(slopes[1], by_y, 1e-14)


@pytest.mark.parametrize(
    ("function", "point", "expected"),
    [
        (F.elu, [0.0, -1.0, 1.0], [0.0, math.exp(-1.0), 0.0]),
        (F.celu, [0.0], [0.0]),
        (F.selu, [0.0], [0.0]),
        (F.softplus, [20.0, 21.0, 0.0], [0.0, 0.0, 0.25]),
        (lambda x: x.sinc(), [0.0], [-(math.pi**2) / 3]),
        (lambda x: x.abs() ** 2, [0.0, 3.0], [0.0, 2.0]),
        (lambda x: torch_like.special.i1(x), [0.0, 1e-20], [0.0, 0.0]),
    ],
)
def test_second_derivatives_at_joints(function: Any, point: Any, expected: Any) -> None:
    x = tensor(point, dtype=torch_like.float64, requires_grad=True)
    (slope,) = grad(function(x).sum(), x, create_graph=True)
    if expected is None:
        assert not slope.requires_grad
    else:
        assert_allclose(grad(slope.sum(), x)[0].numpy(), expected, 1e-13, 1e-15)


def test_cross_entropy_of_saturated_probabilities() -> None:
    points, targets = [0.0, 1.0, 0.0, 1.0, 0.5], [1.0, 0.0, 0.0, 1.0, 1.0]

    def loss(x: Any) -> Any:
        return F.binary_cross_entropy(x, tensor(targets), reduction="none")

    found, (slope,) = value_and_slopes(loss, points)
    assert_allclose(found, [100.0, 100.0, 0.0, 0.0, math.log(2)], 1e-15)
    assert_allclose(slope, [-1e12, 1e12, 0.0, 0.0, -2.0], 1e-14)


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_variance_of_one_element_is_nan_with_a_warning(name: str) -> None:
    x = tensor([2.0], requires_grad=True)
    with pytest.warns(UserWarning, match=rf"^{name}\(\): degrees of freedom is <= 0\. Correction"):
        found = getattr(torch_like, name)(x, 0)
    spread = found[0] if isinstance(found, tuple) else found
    (slope,) = grad(spread, x)
    assert math.isnan(spread.item())
    assert_array_equal(slope.numpy(), [nan])


def test_complex_numbers_at_zero() -> None:
    z = tensor([0j, 3 + 4j], requires_grad=True)
    for function, expected in (
        (lambda z: z.abs(), [0, 0.6 + 0.8j]),
        (lambda z: z.angle(), [0, -0.16 + 0.12j]),
        (lambda z: z.norm(-1), [0, 0]),
    ):
        assert_allclose(grad(function(z).sum(), z)[0].numpy(), expected, 1e-14, 1e-16)


def test_mode_is_differentiated_along_any_axis() -> None:
    x = tensor([[1.0, 2.0, 1.0], [3.0, 3.0, 0.0]], requires_grad=True)
    values, indices = x.mode(1)
    assert values.tolist() == [1.0, 3.0]
    assert indices.tolist() == [2, 1]
    assert grad(values.sum(), x)[0].tolist() == [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    kept = x.mode(0, keepdim=True)
    assert kept.values.tolist() == [[1.0, 2.0, 0.0]]
    assert kept.indices.tolist() == [[0, 0, 1]]


# what differs from torch on purpose, because torch's result is no derivative ----------------------


@pytest.mark.parametrize(
    ("function", "point", "slope"),
    [
        (lambda x: x.prod(), [inf, 1.0, 2.0], [2.0, inf, inf]),
        (lambda x: x.sqrt() ** 2, [0.0], [0.0]),
        (lambda x: torch_like.where(x > 0, x.log(), x), [0.0], [1.0]),
    ],
)
def test_slopes_that_torch_has_no_number_for(function: Any, point: Any, slope: Any) -> None:
    assert_array_equal(value_and_slopes(function, point)[1][0], slope)


# warnings ----------------------------------------------------------------------------------------

NOISY: dict[str, Callable[[Any], Any]] = {
    "one_primitive": lambda x: (x / 0).log().exp(),
    "with_parameters": lambda x: (x * 1e308).sum() * 1e308,
    "composite": lambda x: x.logsumexp(0) + (x - x).xlogy(x).sum() + x.prod(),
    "program": lambda x: F.gelu(x * 1e308 * 10) + F.softplus(x * inf),
    "number": lambda x: 0.0 ** (-x) + x % 0,
}


@pytest.mark.parametrize("requires_grad", [True, False])
@pytest.mark.parametrize("name", NOISY)
def test_no_warnings_of_numpy(name: str, requires_grad: bool) -> None:
    x = tensor([-1.0, 0.0, 2.0, inf, nan], requires_grad=requires_grad)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = NOISY[name](x)
        if requires_grad:
            out.sum().backward()


def test_the_error_state_of_the_caller_stays() -> None:
    x = tensor([0.0])
    with np.errstate(divide="raise"):
        assert x.log().item() == -inf
        with pytest.raises(FloatingPointError):
            np.log(np.zeros(1))
        with pytest.raises(RuntimeError, match="broadcast"):
            tensor([1.0, 2.0]) * tensor([1.0, 2.0, 3.0])
        assert np.geterr()["divide"] == "raise"


def test_other_threads_are_quiet_too() -> None:
    caught: list[Any] = []

    def work() -> None:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            tensor([0.0]).log()
        caught.extend(found)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not caught


def test_arrays_of_the_functional_side_still_warn() -> None:
    with pytest.warns(RuntimeWarning, match="divide by zero"):
        ft.numpy.log(np.zeros(1))


def test_sums_of_complex_exponentials_at_infinity_are_limits() -> None:
    inf = np.inf
    for a, b, expected in (
        (-inf, -inf, -inf), (-inf, 1.0, 1.0), (1 + 2j, -inf, 1 + 2j), (inf, inf, inf),
        (complex(-inf, 2), complex(-inf, 3), complex(-inf, 3)),
        # as PyTorch, not wrapped to the principal branch
        (3 + 4j, 1 - 2j, np.log(np.exp(3 + 4j) + np.exp(1 - 2j)) + 2j * np.pi),
    ):  # fmt: skip
        x = torch_like.tensor([a], dtype=torch_like.complex128, requires_grad=True)
        found = torch_like.logaddexp(x, torch_like.tensor([b], dtype=torch_like.complex128))
        np.testing.assert_allclose(found.detach().numpy(), [expected], rtol=1e-14)
        found.real.sum().backward()
        assert torch_like.isfinite(x.grad).all()


# random numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scaled_numbers_are_rounded_once(dtype: Any) -> None:
    numbers = np.random.default_rng(0).random(200).astype(dtype)
    factor, offset = dtype(0.3), dtype(-0.1)
    exact = [
        Fraction(float(x)) * Fraction(float(factor)) + Fraction(float(offset)) for x in numbers
    ]
    found = scaled(numbers, float(factor), float(offset))
    assert found.dtype == dtype
    for x, expected in zip(found, exact, strict=True):
        half = Fraction(float(np.spacing(np.abs(x)))) / 2
        assert abs(Fraction(float(x)) - expected) <= half


def test_uniform_numbers_lie_in_their_interval() -> None:
    torch_like.manual_seed(0)
    x = torch_like.empty(1000).uniform_(2.0, 5.0).numpy()
    assert x.dtype == np.float32
    assert 2.0 <= x.min() < 2.05
    assert 4.95 < x.max() <= 5.0
