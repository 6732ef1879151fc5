"""Axes paired by key, places named twice or from the end, vectors of other dtypes."""

import enum
import itertools
from collections import OrderedDict, defaultdict
from typing import Any

import numpy as np
import pytest
import scipy.special

import functrans as ft
from functrans.flatten_util import ravel_pytree
from functrans.scipy import special


class Unordered(enum.Enum):
    """Keys that cannot be sorted."""

    W = 1
    B = 2


def mappings(w: Any, b: Any, keys: tuple[Any, Any]) -> list[Any]:
    """The same mapping as every kind of dict in both orders."""
    kinds = (dict, OrderedDict, lambda pairs: defaultdict(list, pairs))
    items = list(zip(keys, (w, b), strict=True))
    return [kind(order) for kind in kinds for order in (items, items[::-1])]


A = np.arange(4.0).reshape(2, 2)


@pytest.mark.parametrize("keys", [("w", "b"), (2, 1), (Unordered.W, Unordered.B)], ids=str)
def test_axes_belong_to_the_keys_of_the_argument_and_result(keys: tuple[Any, Any]) -> None:
    w, b = keys
    for axes, value in itertools.product(mappings(0, 1, keys), mappings(A, 10 * A, keys)):
        out = ft.vmap(lambda p: p[w] + 0 * p[b], in_axes=(axes,))(value)
        np.testing.assert_array_equal(out, A)
        out = ft.vmap(lambda p: p[b], in_axes=(axes,))(value)
        np.testing.assert_array_equal(out, 10 * A.T)
    for axes, like in itertools.product(mappings(0, 1, keys), mappings(0, 0, keys)):
        kind = type(like)
        made = ft.vmap(
            lambda x, kind=kind, like=like: kind(
                *([list] if kind is defaultdict else []),
                {k: x if k == w else 2 * x for k in like},
            ),
            out_axes=axes,
        )(A)
        np.testing.assert_array_equal(made[w], A)
        np.testing.assert_array_equal(made[b], 2 * A.T)


def test_axes_of_other_keys_raise() -> None:
    for axes in mappings(0, 1, ("w", "c")):
        with pytest.raises(ft.errors.TreeMismatchError, match="no tree prefix"):
            ft.vmap(lambda p: p["w"], in_axes=(axes,))({"w": A, "b": A})


# places -----------------------------------------------------------------------------------------

INDICES = np.array([0, 2, 2, -1, 5, 0, -7])
OPERATIONS = ("set", "add", "multiply", "divide", "power", "min", "max")


def _resolved(index: int, mode: str, n: int) -> int | None:
    if -n <= index < n:
        return index % n
    return {"clip": min(max(index + n * (index < 0), 0), n - 1), "wrap": index % n}.get(mode)


@pytest.mark.parametrize("mode", ["clip", "wrap", "drop", "fill"])
@pytest.mark.parametrize("is_traced", [False, True], ids=["known", "traced"])
def test_places_count_from_the_end_before_they_are_brought_into_bounds(
    mode: str, is_traced: bool
) -> None:
    x = np.array([2.0, 3.0, 1.5])
    combine = {
        "set": lambda old, new: new, "add": np.add, "multiply": np.multiply, "divide": np.divide,
        "power": np.power, "min": np.minimum, "max": np.maximum,
    }  # fmt: skip
    expected = {op: x.copy() for op in (*OPERATIONS, "apply")}
    for index in INDICES:
        place = _resolved(int(index), mode, 3)
        for op, out in expected.items() if place is not None else ():
            out[place] = out[place] ** 2 if op == "apply" else combine[op](out[place], 1.25)

    def f(x: Any, i: Any) -> list[Any]:
        results = [getattr(x.at[i], op)(1.25, mode=mode) for op in OPERATIONS]
        return [*results, x.at[i].apply(lambda v: v**2, mode=mode)]

    results = ft.jit(f)(x, INDICES) if is_traced else ft.jit(lambda x: f(x, INDICES))(x)
    for got, wanted in zip(results, expected.values(), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-13)


def test_take_clips_negative_positions_to_the_first_as_numpy_does() -> None:
    x = np.arange(3.0)
    got = ft.jit(lambda x: np.take(x, INDICES, mode="clip"))(x)
    np.testing.assert_array_equal(got, np.take(x, INDICES, mode="clip"))


@pytest.mark.parametrize("index", [[1, 1], ([0, 0], [1, 1]), -1, slice(1), np.array([True, False])])
def test_function_is_applied_as_often_as_a_place_is_named(index: Any) -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    expected = x.copy()
    np.square.at(expected, index)
    f = lambda x: x.at[index].apply(np.square)  # noqa: E731
    np.testing.assert_array_equal(ft.jit(f)(x), expected)
    np.testing.assert_allclose(ft.jacrev(f)(x), ft.jacfwd(f)(x), rtol=1e-14)
    np.testing.assert_allclose(
        ft.jvp(f, (x,), (x,))[1], (f_of(f, x * (1 + 1e-6)) - f_of(f, x * (1 - 1e-6))) / 2e-6,
        rtol=1e-8,
    )  # fmt: skip


def f_of(f: Any, x: np.ndarray) -> Any:
    """The function of a plain array, interpreted."""
    return ft.eval_jaxpr(ft.make_jaxpr(f)(x), None, x)[0]


def test_elements_out_of_bounds_are_the_extreme_of_their_dtype() -> None:
    for dtype, wanted in (
        ("f4", np.nan), ("c16", np.nan), ("i1", -128), ("i8", np.iinfo("i8").min), ("u2", 65535),
        ("u8", np.iinfo("u8").max), ("?", True),
    ):  # fmt: skip
        got = ft.jit(lambda x: x.at[np.array([1, 7])].get(mode="fill"))(np.zeros(3, dtype))
        np.testing.assert_array_equal(got, np.array([0, wanted], dtype))


# dtypes that do not fit -------------------------------------------------------------------------


def test_vector_of_another_kind_does_not_unravel() -> None:
    vector, unravel = ravel_pytree({"a": np.ones(2, np.float32), "b": np.ones(1)})
    assert unravel(vector.astype(np.float32))["a"].dtype == np.float32
    with pytest.raises(TypeError, match=r"complex128.*float64"):
        unravel(1j * vector)
    with pytest.raises(TypeError, match=r"float64.*int64"):
        ravel_pytree(np.arange(3))[1](np.ones(3))


def test_linear_transpose_does_not_cut_cotangents_to_integers() -> None:
    with pytest.raises(ft.errors.NonDifferentiableError, match="of integers"):
        ft.linear_transpose(lambda x: 2.0 * x, 1)
    for primal, ct in ((1, 3), (np.int64(1), np.int64(3)), (np.arange(2), np.array([3, 3]))):
        (out,) = ft.linear_transpose(lambda x: 2 * x, primal)(ct)
        assert out.dtype == np.int64
        assert np.all(out == 6)
    with pytest.raises(ft.errors.NonDifferentiableError, match="of integers"):
        ft.linear_transpose(lambda x: x.astype(int), np.array(1.0))
    cuts: list[tuple[Any, Any]] = [(1, 3.7), (np.arange(2), np.array([1.7, 2.6])), (True, 0.3)]
    for primal, ct in cuts:
        transposed = ft.linear_transpose(lambda x: 2 * x, primal)
        for pull in (transposed, ft.jit(transposed)):
            with pytest.raises(ft.errors.NonDifferentiableError, match="cut to integers"):
                pull(ct)


# numbers beside the ordinary ---------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of infinite and NaN powers
@pytest.mark.parametrize("base", [0, 0.0, np.zeros(1), np.array(0.0), 0j])
@pytest.mark.parametrize("exponent", [-1.5, -1 + 0.3j, 0.3j, 2.0, 2 + 1j, 0.0, 0j])
def test_slope_of_a_power_of_zero_in_its_exponent(base: Any, exponent: Any) -> None:
    """0 where the power is 0, the limit, or 1; minus infinity or NaN where it is no number."""
    exponent = exponent + 0j if np.iscomplexobj(base) else exponent
    value = np.power(np.asarray(base, complex if np.iscomplexobj(exponent) else float), exponent)
    wanted = 0 if exponent == 0 or np.real(exponent) > 0 else value * -np.inf
    one = type(exponent)(1)

    def slope(e: Any) -> Any:
        return ft.jvp(lambda e: np.power(base, e), (e,), (one,))[1]

    for run in (slope, ft.jit(slope)):
        np.testing.assert_array_equal(np.ravel(run(exponent)), np.ravel(wanted))


NUMBERS = [0, 1, -2, 10, 0.0, 2.5, -1.5, 1e200, np.inf, 0j, 2 + 1j, 1e200 + 0j]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # as above
@pytest.mark.parametrize("transform", [ft.jvp, ft.vjp])
def test_powers_of_python_numbers_are_numpys(transform: Any) -> None:
    """Python raises for 0 to a negative power and for overflow, and has complex roots."""
    exponents = [-1, 2, 3, 400, -1.0, 0.5, 400.0, 1j, 2 + 1j]
    for a, b in itertools.product(NUMBERS, exponents):
        if isinstance(a, int) and isinstance(b, int):
            continue  # of integers, as NumPy's
        wanted = np.power(a, b)
        for f, x in ((lambda x, b=b: x**b, a), (lambda x, a=a: np.power(a, x), b)):
            if isinstance(x, int):
                continue
            args = ((x,), (type(x)(1),)) if transform is ft.jvp else (x,)
            np.testing.assert_array_equal(transform(f, *args)[0], wanted)
            np.testing.assert_allclose(ft.jit(f)(x), wanted, rtol=1e-14)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
@pytest.mark.parametrize("y", [-2.0, np.float32(-2.5), np.array([-3.0, 0.5]), 2.0])
def test_real_operand_of_xlogy_beside_a_complex_one_has_the_complex_logarithm(
    name: str, y: Any
) -> None:
    f = getattr(special, name)
    wanted = getattr(np, "log" if name == "xlogy" else "log1p")(np.asarray(y, complex))

    def slope(x: Any) -> Any:
        return ft.jvp(lambda x: f(x, y), (x,), (1 + 0j,))[1]

    for x in (1 + 1j, -0.3j):
        np.testing.assert_allclose(slope(x), wanted, rtol=1e-6)
        np.testing.assert_allclose(ft.jit(slope)(x), wanted, rtol=1e-6)


@pytest.mark.parametrize("base", [-2.0, np.array(-2.0), np.float32(-2.0), 2.0, -2])
def test_complex_exponent_of_a_real_base_has_the_complex_logarithm(base: Any) -> None:
    exponent = 0.7 - 0.4j
    wanted = complex(base) ** exponent * np.log(complex(base))
    tolerance = 1e-6 if getattr(base, "dtype", None) == np.float32 else 1e-14
    for f in (lambda e: np.power(base, e), lambda e: base**e):
        got = ft.jvp(f, (exponent,), (1.0 + 0.0j,))[1]
        np.testing.assert_allclose(got, wanted, rtol=tolerance)
        got = ft.jit(ft.grad(f, holomorphic=True))(exponent)
        np.testing.assert_allclose(got, wanted, rtol=tolerance)
    if isinstance(base, float):
        tensor = ft.autograd.tensor(exponent, requires_grad=True)
        (base**tensor).backward(ft.autograd.tensor(1.0 + 0.0j))
        np.testing.assert_allclose(tensor.grad.numpy(), np.conj(wanted), rtol=1e-14)


I = np.inf  # noqa: E741  # infinity
NODES = (
    ([0, 1, 2, 2], [0, 1, 2, 3]), ([0, 0, 1, 2], [0, 1, 2, 3]), ([0, 1, 1, 2], [0, 1, 2, 3]),
    ([0, 1, 2], [0, I, 1]), ([0, 1, 2], [I, I, -I]), ([0, 1, 2], [-I, 0, I]), ([0, 0], [1, 2]),
    ([-I, 1, 2], [0, 1, 2]), ([0, 1, I], [0, 1, 2]), ([-I, I], [3, 4]), ([2, 2, 2], [1, 2, 5]),
    ([1], [4]),
)  # fmt: skip


def test_interpolation_at_double_and_infinite_nodes_is_numpys() -> None:
    x = np.array([0, 0.5, 1, 1.5, 2, 2.5, -1, np.nan, I, -I])
    nodes = [(np.array(xp, float), np.array(fp, float)) for xp, fp in NODES]
    results = ft.jit(lambda x: [np.interp(x, xp, fp) for xp, fp in nodes])(x)
    for (xp, fp), got in zip(nodes, results, strict=True):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(got, np.interp(x, xp, fp), err_msg=f"{xp} {fp}")


def test_derivatives_of_interpolation_at_double_nodes_are_finite_and_agree() -> None:
    x = np.array([0, 0.5, 1, 1.5, 2, 2.5, -1])
    for xp, fp in NODES[:3]:
        args = (x, np.array(xp, float), np.array(fp, float))
        forward, reverse = ft.jacfwd(np.interp, (0, 2))(*args), ft.jacrev(np.interp, (0, 2))(*args)
        for a, b in zip(forward, reverse, strict=True):
            assert np.all(np.isfinite(a))
            np.testing.assert_allclose(a, b, rtol=1e-14)


# what the plain function does otherwise -----------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, None, (0, 2)])
def test_sums_in_half_precision_are_those_of_single_precision_rounded_once(axis: Any) -> None:
    x = np.ones((3000, 2, 2), np.float16) * np.float16(0.7)
    wanted = np.sum(x, axis, dtype=np.float32).astype(np.float16)
    f = lambda x: np.sum(x, axis)  # noqa: E731
    for got in (ft.jit(f)(x), f_of(f, x), ft.vjp(f, x)[0]):
        assert got.dtype == np.float16
        np.testing.assert_allclose(got, wanted, rtol=2e-3)


def test_bessel_function_in_half_precision_overflows_only_with_its_result() -> None:
    x = np.array([8, 10, 11, 13], np.float16)
    for got in (ft.jit(np.i0)(x), f_of(np.i0, x)):
        assert got.dtype == np.float16
        np.testing.assert_allclose(got, np.i0(x.astype(float)), rtol=1e-3)


def test_list_times_a_traced_python_integer_raises() -> None:
    for f in (lambda n: [1, 2] * n, lambda n: n * (1, 2), lambda n: [1, 2] * (n + 1)):
        with pytest.raises(TypeError, match="repeats a"):
            ft.jit(f)(3)
    np.testing.assert_array_equal(ft.jit(lambda n: [1, 2] * n)(np.array(3)), [3, 6])
    np.testing.assert_array_equal(ft.jit(lambda x: [1, 2] * x)(2.5), [2.5, 5.0])


def test_jit_warns_of_numbers_from_the_global_generator() -> None:
    for draw in (np.random.rand, np.random.standard_normal, lambda: np.random.randint(9)):  # noqa: NPY002
        with pytest.warns(UserWarning, match="global generator"):
            ft.jit(lambda x, draw=draw: x + draw())(1.0)
    rng = np.random.default_rng(0)
    with pytest.warns(UserWarning, match="generator rng"):
        ft.jit(lambda x: x + rng.random())(1.0)
    ft.jit(lambda x: x + np.random.default_rng(0).random())(1.0)  # warnings are errors


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_a_scalar_has_an_axis_for_normalised_exponentials(name: str, axis: int | None) -> None:
    f = lambda x: getattr(special, name)(x, axis=axis)  # noqa: E731
    wanted = getattr(scipy.special, name)(np.array(3.0), axis=axis)
    np.testing.assert_array_equal(ft.jit(f)(np.array(3.0)), wanted)


def test_vectors_lose_no_integers() -> None:
    wide = {"a": np.array([3, 2**60 + 1]), "b": 1.5}
    with pytest.raises(ValueError, match=r"pytree\['a'\]: integers that float64, the common"):
        ravel_pytree(wide)
    vector, unravel = ravel_pytree({"a": np.array([3, -(2**60)]), "b": 1.5})
    np.testing.assert_array_equal(unravel(vector)["a"], [3, -(2**60)])
    assert ravel_pytree(np.array([2**60 + 1]))[0][0] == 2**60 + 1
