"""Special functions under SciPy's names: ours on all operands, SciPy's own on traced ones."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.errors import UnsupportedOperationError
from scipy import special

X = np.array([0.3, 0.6, 0.9])
# The others have cases in tests/scipy.
NAMES = (
    "digamma", "erf", "erfc", "erfcx", "erfinv", "expit", "gammainc", "gammaincc", "gammaln", "i0",
    "i0e", "i1", "i1e", "j0", "j1", "k0", "k0e", "k1", "k1e", "log_expit", "log_ndtr", "ndtr",
    "ndtri", "y0", "y1", "gamma", "betainc", "hyp1f1", "jv", "xlogy", "stdtr", "ellipk", "huber",
)  # fmt: skip


def _operands(name: str) -> tuple[Any, ...]:
    return (X,) * special.__dict__[name].nin


@pytest.mark.parametrize("name", [*NAMES, "psi"])
def test_ours_has_the_values_of_scipy(name: str) -> None:
    ours, theirs = getattr(ft.scipy.special, name), getattr(special, name)
    operands = _operands(name)
    np.testing.assert_allclose(ours(*operands), theirs(*operands), rtol=1e-14)
    lists = [list(x) for x in operands]
    np.testing.assert_allclose(ours(*lists), theirs(*lists), rtol=1e-14)
    np.testing.assert_allclose(ft.jit(ours)(*operands), theirs(*operands), rtol=1e-13)


@pytest.mark.parametrize("name", [*NAMES, "psi"])
def test_ufuncs_of_scipy_take_traced_arrays(name: str) -> None:
    ours, theirs = getattr(ft.scipy.special, name), getattr(special, name)
    *first, x = _operands(name)

    def gradient(function: Any) -> Any:
        return ft.grad(lambda x: np.sum(function(*first, x)))(x)

    np.testing.assert_array_equal(gradient(theirs), gradient(ours))
    np.testing.assert_array_equal(ft.jit(theirs)(*first, x), ft.jit(ours)(*first, x))


def test_zeta_is_riemanns_by_default() -> None:
    assert ft.scipy.special.zeta(2.0) == pytest.approx(np.pi**2 / 6, rel=1e-15)
    np.testing.assert_array_equal(ft.scipy.special.zeta(3.0, X), special.zeta(3.0, X))


def test_density_at_the_edge() -> None:
    assert ft.grad(ft.scipy.special.gammainc, 1)(1.0, 0.0) == 1.0
    assert ft.grad(ft.scipy.special.gammainc, 1)(2.0, 0.0) == 0.0


def test_other_ufuncs_of_scipy_are_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match="smirnov cannot be traced"):
        ft.grad(lambda x: special.smirnov(3, x))(0.2)


@each("dtype", ["float16", "float32", "bool", "int8", "int64"], by="dtype")
@each("name", NAMES)
def test_dtypes(name: str, dtype: str) -> None:
    x = np.array([1, 0]).astype(dtype)
    function = getattr(ft.scipy.special, name)
    operands = (x,) * len(_operands(name))
    expected = np.dtype(dtype if dtype.startswith("float") else "float64")
    with np.errstate(all="ignore"):
        plain, compiled = function(*operands), ft.jit(function)(*operands)
    assert plain.dtype == compiled.dtype == expected
    tolerance = 1e-2 if dtype == "float16" else 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(compiled, plain, rtol=tolerance, atol=tolerance)
