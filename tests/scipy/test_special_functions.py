"""Functions of elements in ``scipy.special``: values, derivatives, batches, programs, refusals."""

from typing import Any

import mpmath as mp
import numpy as np
import pytest
from special_cases import CASES, Case

import functrans as ft
from cases import each
from functrans.errors import NonDifferentiableError
from functrans.scipy import special as ours
from functrans.scipy.special_ufuncs import SCIPY_UFUNCS
from functrans.testing import central_difference
from scipy import special as theirs

IDS = [pytest.param(case, id=case.name) for case in CASES]


def _results(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _finite(values: Any) -> list[Any]:
    return [np.where(np.isfinite(x), x, 0) for x in _results(values)]


def _moved(case: Case, function: Any) -> Any:
    """The results as real arrays, as a function of the operands that derivatives are taken in."""
    operands = case.operands()

    def fun(*values: Any) -> tuple[Any, ...]:
        given = list(operands)
        for i, value in zip(case.positions, values, strict=True):
            given[i] = value
        outs = []
        for out in _results(function(*given)):
            outs += [out.real, out.imag] if out.dtype.kind == "c" else [out]
        return tuple(outs)

    return fun


def _point(case: Case) -> tuple[np.ndarray, ...]:
    return tuple(case.operands()[i] for i in case.positions)


def test_every_ufunc_has_a_case() -> None:
    assert len(CASES) > 150
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert not sorted(set(SCIPY_UFUNCS) - set(names))


@each("case", IDS)
def test_values_are_those_of_scipy(case: Case) -> None:
    operands = case.operands()
    expected = _results(getattr(theirs, case.name)(*operands))
    for function in (getattr(ours, case.name), ft.jit(getattr(ours, case.name))):
        found = _results(function(*operands))
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(one, other, rtol=case.rtol, atol=1e-14)


@each("case", [each for each in IDS if each.values[0].exact])
def test_first_derivatives_are_exact(case: Case) -> None:
    """Against mpmath, differentiated in 40 digits."""
    function = getattr(ours, case.name)
    for point in case.points:
        for position in case.positions:

            def value(x: Any, point: Any = point, position: int = position) -> Any:
                operands = [*point[:position], x, *point[position + 1 :]]
                return _results(function(*operands))[: len(case.exact)]

            x = float(point[position])
            found = ft.jvp(value, (np.float64(x),), (np.float64(1.0),))[1]
            with mp.workdps(40):
                for number, (slope, definition) in enumerate(zip(found, case.exact, strict=True)):

                    def along(
                        t: Any, definition: Any = definition, at: int = position, near: Any = point
                    ) -> Any:
                        wide = [z if isinstance(z, int) else mp.mpf(z) for z in near]
                        wide[at] = t
                        return definition(*wide)

                    step = mp.mpf(10) ** -14
                    low, high = along(mp.mpf(x) - step), along(mp.mpf(x) + step)
                    expected = complex((high - low) / (2 * step))
                    message = f"{point}, operand {position}, result {number}"
                    np.testing.assert_allclose(
                        slope, expected, rtol=max(case.rtol, 2e-12), atol=1e-13, err_msg=message
                    )


@pytest.mark.parametrize("case", IDS)
def test_both_modes_agree_with_differences(case: Case) -> None:
    fun, point = _moved(case, getattr(ours, case.name)), _point(case)
    rng = np.random.default_rng(3)
    direction = tuple(rng.standard_normal(x.shape) for x in point)
    outs, pushed = ft.jvp(fun, point, direction)
    plain = _moved(case, getattr(theirs, case.name))
    numerical = central_difference(plain, point, direction, 1e-5)
    for found, expected in zip(pushed, numerical, strict=True):
        np.testing.assert_allclose(found, expected, rtol=case.tolerance, atol=case.tolerance)
    cts = tuple(rng.standard_normal(out.shape) for out in outs)
    pulled = ft.vjp(fun, *point)[1](cts)
    forward = sum(float(np.sum(a * b)) for a, b in zip(cts, pushed, strict=True))
    backward = sum(float(np.sum(a * b)) for a, b in zip(pulled, direction, strict=True))
    assert backward == pytest.approx(forward, rel=1e-11, abs=1e-12)


@pytest.mark.parametrize("case", [each for each in IDS if each.values[0].order > 1])
def test_second_derivatives(case: Case) -> None:
    fun, point = _moved(case, getattr(ours, case.name)), _point(case)

    def gradient(*xs: Any) -> Any:
        outs, pull = ft.vjp(fun, *xs)
        return pull(tuple(np.ones(np.shape(out)) for out in outs))

    rng = np.random.default_rng(4)
    direction = tuple(rng.standard_normal(x.shape) for x in point)
    found = ft.jvp(gradient, point, direction)[1]
    numerical = central_difference(gradient, point, direction, 1e-5)
    for one, other in zip(found, numerical, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    again = ft.vjp(gradient, *point)[1](direction)
    for one, other in zip(again, found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", IDS)
def test_compiled_and_batched(case: Case) -> None:
    function, operands, point = getattr(ours, case.name), case.operands(), _point(case)
    fun = _moved(case, function)

    def gradient(*xs: Any) -> Any:
        outs, pull = ft.vjp(fun, *xs)
        return pull(tuple(np.ones(np.shape(out)) for out in outs))

    for one, other in zip(ft.jit(gradient)(*point), gradient(*point), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)
    batched = _results(ft.vmap(function)(*operands))
    for number, expected in enumerate(_results(function(*operands))):
        np.testing.assert_allclose(batched[number], expected, rtol=1e-14)
    empty = [x[:0] for x in operands]
    assert all(out.shape == (0,) for out in _results(function(*empty)))


@each("case", [each for each in IDS if each.values[0].has_f32])
def test_single_precision_is_kept(case: Case) -> None:
    if any(np.asarray(x).dtype.kind == "i" for x in case.operands()):
        # Python's integers are weak, arrays of them are not.
        operands = tuple(
            x[0].item() if x.dtype.kind == "i" else x[:1] for x in case.operands(np.float32)
        )
    else:
        operands = case.operands(np.float32)
    wide = _results(getattr(ours, case.name)(*case.operands()))
    for function in (getattr(ours, case.name), ft.jit(getattr(ours, case.name))):
        for one, other in zip(_results(function(*operands)), wide, strict=True):
            assert one.dtype in (np.float32, np.complex64)
            np.testing.assert_allclose(one, other[: len(one)], rtol=3e-4, atol=3e-5)
    for i in case.positions:
        slope = ft.grad(
            lambda x, i=i: np.sum(
                _results(getattr(ours, case.name)(*operands[:i], x, *operands[i + 1 :]))[0].real
            )
        )(operands[i])
        assert slope.dtype == np.float32


REFUSED = [pytest.param(case, i, id=f"{case.name}-{i}") for case in CASES for i in case.refused]


@pytest.mark.parametrize(("case", "position"), REFUSED)
def test_derivatives_in_orders_and_parameters_are_refused(case: Case, position: int) -> None:
    operands = list(case.points[0])
    operands[position] = float(operands[position])
    if case.name.startswith("spherical"):
        pytest.skip("the order is an integer, which has no derivative")

    def value(x: Any) -> Any:
        given = [*operands[:position], x, *operands[position + 1 :]]
        return _results(getattr(ours, case.name)(*given))[0].real

    with pytest.raises(NonDifferentiableError, match="has no derivative in its"):
        ft.grad(value)(operands[position])


UFUNCS = [each for each in IDS if each.values[0].name in SCIPY_UFUNCS]


@each("case", UFUNCS)
def test_ufuncs_of_scipy_reach_the_same_code(case: Case) -> None:
    point = _point(case)

    def gradient(function: Any) -> Any:
        fun = _moved(case, function)
        outs, pull = ft.vjp(fun, *point)
        return pull(tuple(np.ones(np.shape(out)) for out in outs))

    for one, other in zip(
        gradient(getattr(theirs, case.name)), gradient(getattr(ours, case.name)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


COMPLEX = {
    "gamma": mp.gamma, "loggamma": mp.loggamma, "rgamma": mp.rgamma, "erf": mp.erf,
    "erfc": mp.erfc, "erfi": mp.erfi, "exp1": mp.e1, "expi": mp.ei,
    "jv": lambda z: mp.besselj(1.5, z), "yv": lambda z: mp.bessely(1.5, z),
    "iv": lambda z: mp.besseli(1.5, z), "kv": lambda z: mp.besselk(1.5, z),
    "hankel1": lambda z: mp.hankel1(1.5, z), "hankel2": lambda z: mp.hankel2(1.5, z),
    "airy": mp.airyai, "spence": lambda z: mp.polylog(2, 1 - z), "lambertw": mp.lambertw,
    "sici": mp.si, "shichi": mp.shi, "fresnel": mp.fresnels,
    "wofz": lambda z: mp.exp(-z * z) * mp.erfc(-1j * z),
    "hyp0f1": lambda z: mp.hyp0f1(1.5, z), "wrightomega": lambda z: mp.lambertw(mp.exp(z)),
    "eval_legendre": lambda z: mp.legendre(1.5, z),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("z", [0.7 + 0.4j, 1.3 - 0.6j])
def test_complex_derivatives(name: str, z: complex) -> None:
    with_order = ("jv", "yv", "iv", "kv", "hankel1", "hankel2", "hyp0f1", "eval_legendre")
    order = (1.5,) if name in with_order else ()

    def value(z: Any) -> Any:
        return _results(getattr(ours, name)(*order, z))[0]

    with mp.workdps(30):
        point = mp.mpc(z)
        expected = complex(COMPLEX[name](point))
        slope = complex(mp.diff(COMPLEX[name], point))
    np.testing.assert_allclose(value(np.complex128(z)), expected, rtol=1e-11)
    np.testing.assert_allclose(ft.jit(value)(np.complex128(z)), expected, rtol=1e-11)
    found = ft.grad(value, holomorphic=True)(np.complex128(z))
    np.testing.assert_allclose(found, slope, rtol=1e-11)


@pytest.mark.parametrize(
    ("a", "b", "x", "slope_a", "slope_b"),
    [
        (1.0, 1.0, 1e-3, -0.00690775527898214, 0.00099949983324995),
        (2.5, 1.0, 0.3, -0.0593498757197, 0.0707880721143),
        (1e-8, 1e-8, 1e-12, -25000006.9078, 24999993.0922),
    ],
)
def test_slopes_of_betainc_where_one_of_their_series_vanishes(a, b, x, slope_a, slope_b):
    """By mpmath with 60 digits; where a parameter is 1 a part of the fraction is constant."""
    found = ft.grad(ft.scipy.special.betainc, (0, 1))(a, b, x)
    np.testing.assert_allclose(found, (slope_a, slope_b), rtol=1e-11)
