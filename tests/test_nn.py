"""``functrans.nn``: one table of functions, and every kind of operand, derivative and transform."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import nn
from functrans.errors import ShapeError
from functrans.testing import check_grads
from helpers import assert_close

SEEN = (-7.3, -4.1, -2.2, -0.8, -0.3, 0.4, 1.1, 2.6, 5.2, 8.7)
POSITIVE = tuple(abs(x) for x in SEEN)


def _phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def _expit(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _elu(x: float, alpha: float = 1.0, scale: float = 1.0) -> float:
    return scale * (x if x > 0 else alpha * (math.exp(x) - 1))


def _each(formula: Callable[..., float]) -> Callable[..., np.ndarray]:
    return np.vectorize(formula, otypes=[np.float64])


def _softmax(x: np.ndarray) -> np.ndarray:
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


@dataclass(frozen=True)
class Row:
    """One function.

    Attributes:
      formula: its definition, on float64 arrays.
      options: arguments beside the array.
      points: where it is smooth.
      keeps_integers: whether the result of integers is one of integers.
      is_elementwise: whether each element is by itself.
    """

    formula: Callable[..., np.ndarray]
    options: Mapping[str, Any] = field(default_factory=dict)
    points: tuple[float, ...] = SEEN
    keeps_integers: bool = False
    is_elementwise: bool = True
    name: str = ""


ROWS = {
    "celu": Row(_each(lambda x: x if x > 0 else 0.5 * math.expm1(2 * x)), {"alpha": 0.5}),
    "elu": Row(_each(_elu)),
    "elu of alpha": Row(_each(lambda x: _elu(x, 0.3)), {"alpha": 0.3}, name="elu"),
    "gelu": Row(
        _each(lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2)
    ),
    "exact gelu": Row(_each(lambda x: x * _phi(x)), {"approximate": False}, name="gelu"),
    "glu": Row(lambda x: x[..., :5] * _each(_expit)(x[..., 5:]), is_elementwise=False),
    "hard_sigmoid": Row(lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    "hard_silu": Row(lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
    "hard_tanh": Row(lambda x: np.clip(x, -1, 1), keeps_integers=True),
    "identity": Row(lambda x: x, keeps_integers=True),
    "leaky_relu": Row(lambda x: np.where(x > 0, x, 0.01 * x)),
    "log1mexp": Row(lambda x: np.log(1 - np.exp(-x)), points=POSITIVE),
    "log_sigmoid": Row(lambda x: np.log(1 / (1 + np.exp(-x)))),
    "log_softmax": Row(lambda x: np.log(_softmax(x)), is_elementwise=False),
    "logmeanexp": Row(lambda x: np.log(np.exp(x).mean()), is_elementwise=False),
    "logsumexp": Row(lambda x: np.log(np.exp(x).sum()), is_elementwise=False),
    "mish": Row(lambda x: x * np.tanh(np.log(1 + np.exp(x)))),
    "relu": Row(lambda x: np.maximum(x, 0), keeps_integers=True),
    "relu6": Row(lambda x: np.clip(x, 0, 6), keeps_integers=True),
    "selu": Row(_each(lambda x: _elu(x, 1.6732632423543772, 1.0507009873554805))),
    "sigmoid": Row(_each(_expit)),
    "silu": Row(lambda x: x / (1 + np.exp(-x))),
    "soft_sign": Row(lambda x: x / (1 + np.abs(x))),
    "softmax": Row(_softmax, is_elementwise=False),
    "softplus": Row(lambda x: np.log(1 + np.exp(x))),
    "sparse_plus": Row(
        _each(lambda x: 0.0 if x < -1 else x if x > 1 else (x + 1) ** 2 / 4),
        points=(*SEEN[:4], *SEEN[5:], 0.5),
    ),
    "sparse_sigmoid": Row(lambda x: np.clip((x + 1) / 2, 0, 1)),
    "squareplus": Row(lambda x: (x + np.sqrt(x**2 + 4)) / 2),
    "tanh": Row(np.tanh),
    "standardize": Row(
        lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5),
        is_elementwise=False,
    ),
}
PARAMETERS = [pytest.param(key, id=key) for key in ROWS]
FLOATS = (np.float64, np.float32)


def _function(key: str) -> Callable[[Any], Any]:
    row = ROWS[key]
    return lambda x: getattr(nn, row.name or key)(x, **row.options)


def _points(key: str, dtype: Any = np.float64) -> np.ndarray:
    return np.array(ROWS[key].points, dtype)


def test_every_function_has_a_row() -> None:
    tested = {row.name or key for key, row in ROWS.items()}
    others = {"dot_product_attention", "hard_swish", "initializers", "one_hot", "swish"}
    assert tested | others == set(nn.__all__)
    assert nn.hard_swish is nn.hard_silu
    assert nn.swish is nn.silu


@pytest.mark.parametrize("key", PARAMETERS)
def test_values_are_those_of_the_definition(key: str) -> None:
    x = _points(key)
    assert_close(_function(key)(x), ROWS[key].formula(x))


@pytest.mark.parametrize("key", PARAMETERS)
def test_a_list_is_an_array(key: str) -> None:
    function, x = _function(key), _points(key)
    np.testing.assert_array_equal(function(x.tolist()), function(x))
    total = ft.grad(lambda x: np.sum(function([x[i] for i in range(len(x))])))(x)
    assert_close(total, ft.grad(lambda x: np.sum(function(x)))(x))


@pytest.mark.parametrize(
    "key", [key for key, row in ROWS.items() if row.is_elementwise and key != "identity"]
)
def test_a_number_gives_a_number(key: str) -> None:
    x = _points(key)
    found = [_function(key)(number) for number in x.tolist()]
    assert {type(number) for number in found} == {np.float64}
    assert_close(np.array(found), _function(key)(x))


@pytest.mark.parametrize("key", PARAMETERS)
def test_single_precision_is_kept(key: str) -> None:
    found = _function(key)(_points(key, np.float32))
    assert found.dtype == np.float32
    assert_close(found, ROWS[key].formula(_points(key, np.float32).astype(np.float64)))


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.bool_])
@pytest.mark.parametrize("key", PARAMETERS)
def test_integers_are_promoted_or_kept(key: str, dtype: Any) -> None:
    x = np.array([-8, -1, 0, 1, 7, 3, -2, 5, 2, -4]).astype(dtype)
    x = np.maximum(x, x.dtype.type(1)) if key == "log1mexp" else x
    found = _function(key)(x)
    if not ROWS[key].keeps_integers:
        assert found.dtype == np.float64
    elif dtype is not np.bool_ or key == "identity":
        assert found.dtype == dtype
    else:
        assert found.dtype == np.int64
    assert_close(found.astype(np.float64), ROWS[key].formula(x.astype(np.float64)))
    assert_close(ft.jit(_function(key))(x), found)


@pytest.mark.parametrize(
    "key", [key for key in ROWS if key not in ("identity", "sigmoid", "logsumexp")]
)
def test_complex_numbers_are_refused(key: str) -> None:
    with pytest.raises(TypeError, match=r"nn\.\w+: expected real numbers, got complex128"):
        _function(key)(np.array([1.0 + 1j, 2.0]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("key", PARAMETERS)
def test_derivatives_agree_with_differences(key: str, dtype: Any) -> None:
    check_grads(_function(key), (_points(key, dtype),), order=2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("key", PARAMETERS)
def test_compiled_and_batched_is_eager(key: str, dtype: Any) -> None:
    function = _function(key)
    batch = np.stack([_points(key, dtype), _points(key, dtype)[::-1]])
    looped = np.stack([function(x) for x in batch])
    assert_close(ft.vmap(function)(batch), looped, "vmap")
    assert_close(ft.jit(function)(batch[0]), looped[0], "jit")
    assert_close(ft.jit(ft.vmap(function))(batch), looped, "jit of vmap")
    assert ft.jit(function)(batch[0]).dtype == looped.dtype

    def slope(x: Any) -> Any:
        return ft.grad(lambda x: np.sum(np.sin(function(x))))(x)

    assert_close(ft.jit(slope)(batch[0]), slope(batch[0]), "jit of grad")
    assert_close(ft.vmap(slope)(batch), np.stack([slope(x) for x in batch]), "vmap of grad")


# Far out: value, first and second derivative, from the definitions in 1000 digits (mpmath).
TAILS: dict[str, dict[float, tuple[float, float, float]]] = {
    "log1mexp": {
        1e-12: (-27.631021115929048, 999999999999.5, -1e24),
        1e-05: (-11.512930464966061, 99999.50000083333, -9999999999.916664),
        0.69: (-0.6963042971440567, 1.0063242110510318, -2.0190126287985133),
        40.0: (-4.248354255291589e-18, 4.248354255291589e-18, -4.248354255291589e-18),
        700.0: (-9.85967654375977e-305, 9.85967654375977e-305, -9.85967654375977e-305),
    },
    "log_sigmoid": {
        -700.0: (-700.0, 1.0, -9.85967654375977e-305),
        -40.0: (-40.0, 1.0, -4.248354255291589e-18),
        -1e-05: (-0.6931521805724453, 0.5000025, -0.24999999999375),
        40.0: (-4.248354255291589e-18, 4.248354255291589e-18, -4.248354255291589e-18),
        700.0: (-9.85967654375977e-305, 9.85967654375977e-305, -9.85967654375977e-305),
    },
    "softplus": {
        -700.0: (9.85967654375977e-305, 9.85967654375977e-305, 9.85967654375977e-305),
        -40.0: (4.248354255291589e-18, 4.248354255291589e-18, 4.248354255291589e-18),
        40.0: (40.0, 1.0, 4.248354255291589e-18),
        700.0: (700.0, 1.0, 9.85967654375977e-305),
    },
    "soft_sign": {
        -100000000.0: (-0.9999999900000001, 9.999999800000003e-17, 1.9999999400000014e-24),
        1e-09: (9.999999990000001e-10, 0.9999999980000001, -1.999999994),
        100000000.0: (0.9999999900000001, 9.999999800000003e-17, -1.9999999400000014e-24),
        1e100: (1.0, 1e-200, -2e-300),
    },
    "squareplus": {
        -100000000.0: (9.999999999999999e-09, 9.999999999999997e-17, 1.9999999999999987e-24),
        -3.0: (0.3027756377319947, 0.08397485283107815, 0.042669245863479165),
        100000000.0: (100000000.00000001, 0.9999999999999999, 1.9999999999999987e-24),
        -1e100: (1e-100, 1e-200, 2e-300),
    },
    "silu": {
        -700.0: (-6.90177358063184e-302, -6.891913904088079e-302, -6.88205422754432e-302),
        -40.0: (-1.6993417021166355e-16, -1.6568581595637197e-16, -1.6143746170108038e-16),
        40.0: (40.0, 1.0000000000000002, -1.6143746170108038e-16),
    },
    "mish": {
        -700.0: (-6.90177358063184e-302, -6.891913904088079e-302, -6.88205422754432e-302),
        -40.0: (-1.6993417021166355e-16, -1.6568581595637197e-16, -1.6143746170108038e-16),
        10.0: (9.99999995878067, 1.0000000783129834, -1.483716217854002e-07),
    },
    "gelu": {
        -14.0: (-2.569400277353559e-94, -1.1172002284854929e-92, -4.8422816509384964e-91),
        -6.0: (-8.439646700762297e-11, -7.709973930953696e-10, -6.824247274157189e-09),
        6.0: (5.9999999999156035, 1.0000000007709975, -6.824247274157189e-09),
    },
    "exact gelu": {
        -30.0: (-1.472014178144456e-196, -4.416031690708495e-195, -1.3233342291209357e-193),
        -9.0: (-1.0157295653584566e-18, -9.138937373906639e-18, -8.121021121618442e-17),
        6.0: (5.999999994080474, 1.0000000354687095, -2.065800168939917e-07),
    },
}


@pytest.mark.parametrize("run", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("key", [pytest.param(key, id=key) for key in TAILS])
def test_values_and_derivatives_are_accurate_far_out(key: str, run: Any) -> None:
    """In the relative sense; what grows with ``x`` is the condition of the exponential."""
    function = _function(key)
    slope = ft.grad(function)
    points = np.array(list(TAILS[key]))
    value, first, second = np.array(list(TAILS[key].values())).T
    np.testing.assert_allclose(run(function)(points), value, rtol=2e-13)
    np.testing.assert_allclose(run(ft.vmap(slope))(points), first, rtol=2e-13)
    np.testing.assert_allclose(run(ft.vmap(ft.grad(slope)))(points), second, rtol=2e-13)


@pytest.mark.parametrize("key", [key for key, row in ROWS.items() if row.is_elementwise])
def test_nothing_overflows_far_out(key: str) -> None:
    """No warning, no NaN: not in values, nor in derivatives of either mode."""
    sign = 1 if key == "log1mexp" else np.array([[1], [-1]])
    function = _function(key)
    for x in (np.array([1e307, 800.0, 1e-300]) * sign, np.float32([1e37, 100, 1e-30]) * sign):
        with np.errstate(under="ignore"):
            assert np.isfinite(function(x)).all()
            assert np.isfinite(ft.grad(lambda x: np.sum(function(x)))(x)).all()
            assert np.isfinite(ft.jvp(function, (x,), (np.ones_like(x),))[1]).all()


KINKS = {
    "relu": ((0.0, 0.0),), "relu6": ((0.0, 0.0), (6.0, 1.0)), "leaky_relu": ((0.0, 0.01),),
    "elu of alpha": ((0.0, 0.3),), "elu": ((0.0, 1.0),), "celu": ((0.0, 1.0),),
    "hard_tanh": ((-1.0, 1.0), (1.0, 1.0)), "hard_sigmoid": ((-3.0, 1 / 6), (3.0, 1 / 6)),
    "hard_silu": ((-3.0, -0.5), (3.0, 1.5)), "soft_sign": ((0.0, 1.0),),
    "squareplus": ((0.0, 0.5),),
}  # fmt: skip


@pytest.mark.parametrize("key", KINKS)
def test_slope_at_a_kink_is_the_declared_one(key: str) -> None:
    function = _function(key)
    for point, slope in KINKS[key]:
        assert_close(ft.grad(function)(point), np.array(slope), "reverse")
        assert_close(ft.jvp(function, (point,), (1.0,))[1], np.array(slope), "forward")
        assert_close(ft.jit(ft.grad(function))(point), np.array(slope), "jit")
        assert np.isfinite(ft.grad(ft.grad(function))(point))


@pytest.mark.parametrize(
    ("function", "parameter"),
    [(nn.leaky_relu, 0.1), (nn.elu, 0.7), (nn.celu, 0.7), (nn.squareplus, 2.0)],
)
def test_parameters_are_differentiable(function: Any, parameter: float) -> None:
    check_grads(function, (np.array(SEEN), parameter), order=2)
    single = np.array(SEEN, np.float32)
    assert function(single, parameter).dtype == function(single, 1).dtype == np.float32


def test_squareplus_without_curvature_is_relu() -> None:
    np.testing.assert_array_equal(nn.squareplus(np.array([-2.0, 0.0, 3.0]), 0.0), [0.0, 0.0, 3.0])


# along axes ---------------------------------------------------------------------------------------


def test_softmax_is_accurate_for_large_operands() -> None:
    far = np.array([1000.0, 1001.0])
    np.testing.assert_allclose(nn.softmax(far), nn.softmax(far - 1000.0), rtol=1e-15)
    np.testing.assert_allclose(nn.log_softmax(far), nn.log_softmax(far - 1000.0), rtol=1e-15)
    slope = ft.jacrev(nn.softmax)
    np.testing.assert_allclose(slope(far), slope(far - 1000.0), rtol=1e-14)


@pytest.mark.parametrize("axis", [0, 1, -1, (0, 1), None])
def test_softmax_sums_to_one_over_its_axes(axis: Any) -> None:
    x = np.sin(np.arange(12.0)).reshape(3, 4) * 5
    weights = nn.softmax(x, axis)
    assert_close(weights.sum(axis), np.ones(weights.sum(axis).shape))
    assert_close(np.exp(nn.log_softmax(x, axis)), weights)
    assert_close(weights, ft.scipy.special.softmax(x, axis))


def test_masked_elements_do_not_count() -> None:
    x = np.array([[1.0, np.inf, 3.0], [np.nan, 2.0, 1.0], [1.0, 2.0, 3.0]])
    mask = np.array([[True, False, True], [False, True, True], [False, False, False]])
    found = nn.softmax(x, where=mask)
    first, second = nn.softmax(np.array([1.0, 3.0])), nn.softmax(np.array([2.0, 1.0]))
    expected = np.array([[first[0], 0, first[1]], [0, second[0], second[1]], [0, 0, 0]])
    assert_close(found, expected)
    np.testing.assert_array_equal(nn.log_softmax(x, where=mask) == -np.inf, ~mask)
    slope = ft.grad(lambda x: np.sum(nn.softmax(x, where=mask) ** 2))(x)
    np.testing.assert_array_equal(slope != 0, mask & mask.any(1, keepdims=True))
    assert np.isnan(nn.softmax(np.array([np.nan, 1.0]), where=[True, True])).all()


def test_softmax_of_nothing_is_empty() -> None:
    assert nn.softmax(np.zeros((2, 0))).shape == (2, 0)
    assert nn.log_softmax(np.zeros((0, 2)), axis=0).shape == (0, 2)


def test_standardize_takes_moments_and_masks() -> None:
    x = np.array([[1.0, 2.0, 6.0], [0.0, 4.0, 5.0]])
    assert_close(nn.standardize(x, mean=1.0, variance=4.0, epsilon=0.0), (x - 1) / 2)
    mask = np.array([True, True, False])
    part = x[:, :2]
    expected = (x - part.mean(1, keepdims=True)) / part.std(1, keepdims=True)
    assert_close(nn.standardize(x, epsilon=0.0, where=mask), expected)
    shifted = nn.standardize(x + 1e8, axis=(0, 1), epsilon=0.0)
    assert_close(shifted, nn.standardize(x, axis=(0, 1), epsilon=0.0))


def test_glu_halves_the_axis() -> None:
    x = np.arange(8.0).reshape(2, 2, 2)
    assert nn.glu(x, 0).shape == (1, 2, 2)
    assert_close(nn.glu(x, 1), x[:, :1] / (1 + np.exp(-x[:, 1:])))
    with pytest.raises(ft.errors.ShapeError, match=r"axis 0 .* odd extent 3"):
        nn.glu(np.zeros(3))


def test_one_hot_is_rows_of_the_identity() -> None:
    classes = np.array([[0, 2], [1, 5]])
    expected = np.stack([np.eye(3)[[0, 2]], [[0, 1, 0], [0, 0, 0]]])
    np.testing.assert_array_equal(nn.one_hot(classes, 3), expected)
    np.testing.assert_array_equal(nn.one_hot(classes, 3, axis=0), np.moveaxis(expected, -1, 0))
    np.testing.assert_array_equal(nn.one_hot(classes, 3, axis=1), np.moveaxis(expected, -1, 1))
    np.testing.assert_array_equal(ft.vmap(lambda c: nn.one_hot(c, 3))(classes), expected)
    np.testing.assert_array_equal(ft.jit(lambda c: nn.one_hot(c, 3))(classes), expected)
    assert nn.one_hot([1, 0], 2, dtype=np.int8).dtype == np.int8
    assert nn.one_hot(True, 2).tolist() == [0.0, 1.0]


def test_one_hot_refuses_what_is_no_class() -> None:
    with pytest.raises(TypeError, match=r"nn\.one_hot: expected integers, got float64"):
        nn.one_hot([0.0, 1.0], 2)
    with pytest.raises(ValueError, match="num_classes must not be negative, got -1"):
        nn.one_hot([0], -1)
    with pytest.raises(np.exceptions.AxisError):
        nn.one_hot([0], 2, axis=2)


# attention ----------------------------------------------------------------------------------------


def _attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: Any = None) -> np.ndarray:
    """For one batch, in loops."""
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    for i in range(q.shape[0]):
        for h in range(q.shape[1]):
            own = h * k.shape[1] // q.shape[1]
            logits = k[:, own] @ q[i, h] / math.sqrt(q.shape[-1])
            weights = np.exp(logits) if mask is None else np.exp(logits) * mask[i]
            out[i, h] = weights / weights.sum() @ v[:, own]
    return out


def test_attention_weighs_values() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(3, heads, 4)) for heads in (2, 1, 1))
    assert_close(nn.dot_product_attention(q, k, v), _attention(q, k, v))
    causal = nn.dot_product_attention(q, k, v, is_causal=True)
    assert_close(causal, _attention(q, k, v, np.tri(3)))
    assert_close(nn.dot_product_attention(q, k, v, mask=np.tri(3, dtype=bool)), causal)
    stacked = ft.jit(nn.dot_product_attention)(*(np.stack([x, 2 * x]) for x in (q, k, v)))
    assert_close(stacked[1], _attention(2 * q, 2 * k, 2 * v))
    check_grads(nn.dot_product_attention, (q, k, v), order=2)
    with pytest.raises(ShapeError, match="multiple of those of the key"):
        nn.dot_product_attention(k, q, q)


# initializers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in nn.initializers.__all__ if "_" in n[1:]])
def test_initializers_scale_by_the_number_of_inputs_and_outputs(name: str) -> None:
    if name in ("truncated_normal", "variance_scaling"):
        init, variance = nn.initializers.variance_scaling(2.0, "fan_out", "normal"), 2 / 500
    else:
        init = getattr(nn.initializers, name)()
        family = name.partition("_")[0]
        variance = {"glorot": 2 / 700, "xavier": 2 / 700, "lecun": 1 / 200}.get(family, 2 / 200)
    weights = init(ft.random.key(1), (200, 500), np.float32)
    assert weights.dtype == np.float32
    assert abs(weights.mean()) < 4 * math.sqrt(variance / weights.size)
    assert abs(weights.var() / variance - 1) < 0.02


def test_initializers_name_what_they_need() -> None:
    with pytest.raises(ValueError, match=r"got shape \(3,\)"):
        nn.initializers.he_normal()(ft.random.key(0), (3,))
    with pytest.raises(ValueError, match="mode must be one of fan_in"):
        nn.initializers.variance_scaling(1.0, "fan", "normal")(ft.random.key(0), (3, 3))
    q = nn.initializers.orthogonal(2.0, column_axis=0)(ft.random.key(0), (3, 2, 4))
    assert_close(q.reshape(3, 8) @ q.reshape(3, 8).T, 4 * np.eye(3))


def test_masked_elements_do_not_count_in_logsumexp() -> None:
    x, mask = np.array([1.0, 800.0, 2.0]), np.array([True, False, True])
    assert_close(nn.logsumexp(x, where=mask), np.log(np.exp(x[mask]).sum()))
    assert_close(ft.grad(lambda x: nn.logsumexp(x, where=mask))(x)[1], np.array(0.0))
