"""Functions of SciPy that functrans does not have: their own code is traced, as user code is.

With ``SCIPY_ARRAY_API=1`` SciPy asks arrays whose functions to call; the same holds then.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytest
import scipy.cluster.vq as vq
import scipy.integrate as si
import scipy.signal as ss
import scipy.special as sp
import scipy.stats as st
from numpy.testing import assert_allclose

import functrans as ft
from cases import each

X = np.linspace(0.1, 2.0, 12)
BESIDE = np.linspace(0.5, 3.0, 12) ** 2
DIRECTION = np.sin(np.arange(12.0) + 1)

OWN_CODE: dict[str, Callable[[Any], Any]] = {
    "variation": lambda x: st.variation(x),
    "gstd": lambda x: st.gstd(x),
    "describe": lambda x: st.describe(x).variance,
    "differential_entropy": lambda x: st.differential_entropy(x),
    "circmean": lambda x: st.circmean(x),
    "circstd": lambda x: st.circstd(x),
    "ttest_1samp": lambda x: st.ttest_1samp(x, 1.0).statistic,
    "ttest_ind": lambda x: st.ttest_ind(x, BESIDE).statistic,
    "jarque_bera": lambda x: st.jarque_bera(x).statistic,
    "skewtest": lambda x: st.skewtest(x).statistic,
    "chisquare": lambda x: st.chisquare(x, x.sum() / 12 + 0 * x).statistic,
    "power_divergence": lambda x: (
        st.power_divergence(x, x.sum() / 12 + 0 * x, lambda_=0.5).statistic
    ),
    "directional_stats": lambda x: st.directional_stats(x.reshape(4, 3)).mean_resultant_length,
    "lmoment": lambda x: st.lmoment(x, 2),
    "iqr": lambda x: st.iqr(x),
    "quantile": lambda x: st.quantile(x, 0.3),
    "rankdata": lambda x: (st.rankdata(x) * x).sum(),
    "obrientransform": lambda x: st.obrientransform(x, BESIDE)[0].sum(),
    "bartlett": lambda x: st.bartlett(x, BESIDE).statistic,
    "envelope": lambda x: ss.envelope(x)[0].sum(),
    "firwin": lambda x: (ss.firwin(5, x[0] / 3) ** 2).sum(),
    "whiten": lambda x: (vq.whiten(x.reshape(4, 3)) ** 3).sum(),
    "cubature": lambda x: si.cubature(lambda t: np.exp(-t[:, 0] * x[0]), [0.0], [1.0]).estimate,
}
"""Functions whose code is SciPy's."""

OURS: dict[str, Callable[[Any], Any]] = {
    "expit": lambda x: sp.expit(x).sum(),
    "gammaln": lambda x: sp.gammaln(x).sum(),
    "xlogy": lambda x: sp.xlogy(BESIDE, x).sum(),
    "logsumexp": lambda x: sp.logsumexp(x, b=BESIDE),
    "skew": lambda x: st.skew(x),
    "zmap": lambda x: st.zmap(x, BESIDE).sum(),
    "pearsonr": lambda x: st.pearsonr(x, BESIDE).statistic,
    "convolve": lambda x: ss.convolve(x, BESIDE).sum(),
    "hilbert": lambda x: np.abs(ss.hilbert(x)).sum(),
}
"""Functions that functrans has, which SciPy's code calls, too."""


def along(f: Callable[[Any], Any], step: float = 1e-5) -> Any:
    """The derivative along the direction, by differences."""
    ahead, behind = f(X + step * DIRECTION), f(X - step * DIRECTION)
    return (np.asarray(ahead) - np.asarray(behind)) / (2 * step)


@each("name", [*OWN_CODE, *OURS])
def test_derivatives_of_both_orders(name: str) -> None:
    f = {**OWN_CODE, **OURS}[name]
    gradient = ft.grad(f)
    np.testing.assert_allclose(gradient(X) @ DIRECTION, along(f), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ft.hvp(f, (X,), (DIRECTION,)), along(gradient), rtol=1e-4, atol=1e-5)


@each("name", OWN_CODE)
def test_compiled_along_the_path_that_values_take(name: str) -> None:
    f = OWN_CODE[name]
    compiled = ft.jit(ft.grad(f), specialize=True)
    np.testing.assert_allclose(compiled(X), ft.grad(f)(X), rtol=1e-9, atol=1e-12)
    batch = np.stack([X, X[::-1].copy(), X**2])
    found = ft.vmap(ft.jit(f, specialize=True))(batch)
    np.testing.assert_allclose(found, [f(row) for row in batch], rtol=1e-9, atol=1e-12)


@each("name", OWN_CODE)
def test_plain_arrays_get_scipys_result(name: str) -> None:
    def f(x: Any, y: Any) -> Any:
        return x * OWN_CODE[name](y)

    assert ft.grad(f)(1.0, X) == OWN_CODE[name](X)


def test_float32_stays() -> None:
    gradient = ft.grad(lambda x: st.iqr(x))(X.astype(np.float32))
    assert gradient.dtype == np.float32


def test_what_asks_for_values_names_scipys_function_and_the_way() -> None:
    match = r"scipy\.stats.* was given a traced value .*test_scipys_own_code\.py.*specialize=True"
    with pytest.raises(ft.errors.ConcretizationError, match=match):
        ft.jit(lambda x: st.circmean(x))(X)


def test_errors_of_scipy_say_whose_code_it_was() -> None:
    with pytest.raises(ValueError, match="order") as caught:
        ft.grad(lambda x: st.lmoment(x, -1))(X)
    assert "scipy.stats" in caught.value.__notes__[0]


def test_code_without_python_is_refused_by_name() -> None:
    with pytest.raises(ft.errors.ConcretizationError, match=r"scipy\.stats\.shapiro"):
        ft.grad(lambda x: st.shapiro(x).statistic)(X)


def test_it_is_explained() -> None:
    text = str(ft.explain_names(lambda x: st.ttest_ind(x, BESIDE).statistic))
    assert "st.ttest_ind  ->  SciPy's ttest_ind, whose code is traced" in text


def test_types_are_types_for_scipy() -> None:
    def f(x: Any) -> Any:
        kinds = [np.issubdtype(np.dtype(float), k) for k in (np.float64, np.bool_, np.floating)]
        return x * (kinds == [True, False, True]) + np.zeros(1)[0]

    assert ft.grad(f)(2.0) == 1


def test_the_same_with_scipys_array_api() -> None:
    if os.environ.get("SCIPY_ARRAY_API"):
        pytest.skip("it is on")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout


@pytest.mark.skipif(not os.environ.get("SCIPY_ARRAY_API"), reason="with SCIPY_ARRAY_API=1")
def test_special_functions_of_traced_arrays_without_twins() -> None:
    with ft.config(plain=False):
        for name in ("expit", "gammaln", "erf"):
            gradient = ft.grad(lambda x, name=name: getattr(sp, name)(x).sum())(X)
            np.testing.assert_allclose(
                gradient @ DIRECTION, along(lambda x, name=name: getattr(sp, name)(x).sum()),
                rtol=1e-6,
            )  # fmt: skip


GIVEN = {
    "scipy.linalg": ("expm", "det", "inv", "svdvals", "sinm", "cholesky", "toeplitz", "norm"),
    "scipy.special": ("logsumexp", "softmax", "log_softmax", "multigammaln", "sinc"),
    "scipy.signal": ("detrend", "resample", "convolve", "hilbert"),
    "scipy.stats": ("zscore", "skew", "kurtosis", "gmean"),
    "scipy.ndimage": ("gaussian_laplace", "sobel", "laplace"),
    "scipy.integrate": ("trapezoid", "simpson", "cumulative_simpson"),
}
FURTHER = {
    "multigammaln": (2,), "resample": (3,), "convolve": (np.array([1.0, 2.0]),),
    "gaussian_laplace": (1.0,),
}  # fmt: skip


@each("name", [f"{module}.{name}" for module, names in GIVEN.items() for name in names])
def test_scipys_functions_are_transformed_themselves(name: str) -> None:
    """``jit(scipy.linalg.expm)``, as ``jit(lambda a: scipy.linalg.expm(a))``."""
    function = resolve_name(name)
    further = FURTHER.get(name.rpartition(".")[2], ())
    x = np.array([[2.0, 0.3], [0.4, 1.5]]) if "linalg" in name else X + 1.2
    if name.endswith(("gaussian_laplace", "sobel", ".laplace")):
        x = X.reshape(3, 4)

    def called(x: Any) -> Any:
        return function(x, *further)

    expected = np.asarray(called(x))
    assert_allclose(ft.vjp(lambda y: function(y, *further), x)[0], expected, 1e-12, 1e-14)
    assert_allclose(ft.jacfwd(function)(x, *further), ft.jacfwd(called)(x), 1e-12, 1e-14)
    axes = (0, *[None] * len(further))
    assert_allclose(ft.vmap(function, axes)(x[None], *further), expected[None], 1e-12, 1e-14)
    assert_allclose(ft.jit(called)(x), expected, 1e-12, 1e-14)
