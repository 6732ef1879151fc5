"""Programs that call NumPy between native parts."""

import itertools

import numpy as np
import pytest

import functrans as ft
from functrans.compiler.support import HostCall


def native_of(fun):
    (program,) = fun.kept_programs()
    return program.native


@pytest.mark.parametrize("seed", range(8))
def test_parts_compute_what_they_need_in_order(seed):
    rng = np.random.default_rng(seed)
    choices = rng.integers(0, 3, 30), rng.integers(0, 2, 30), rng.integers(1, 6, (30, 2))

    def run(x):
        values = [x, x + 1]
        for kind, is_native, (i, j) in zip(*choices, strict=True):
            a, b = values[-min(i, len(values))], values[-min(j, len(values))]
            value = np.sin(a + b) if kind else a * np.cos(b)
            values.append(value if is_native else ft.scipy.special.lambertw(value).real / 3)
        return values[-1], sum(values)

    x = rng.normal(size=4)
    fun = ft.jit(run)
    for got, want in zip(fun(x), run(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    parts = native_of(fun).parts
    kinds = [isinstance(part, HostCall) for part in parts]
    assert all(first or second for first, second in itertools.pairwise(kinds))


def test_steps_of_a_python_loop_share_their_code():
    def run(x):
        for _ in range(12):
            x = ft.scipy.special.lambertw(np.sin(x) * 2 + 1).real / 2
        return x

    x = np.linspace(0, 1, 8)
    fun = ft.jit(run)
    np.testing.assert_allclose(fun(x), run(x), rtol=1e-9)
    native = [part for part in native_of(fun).parts if not isinstance(part, HostCall)]
    assert len(native) == 13
    assert len({id(part.call) for part in native}) <= 4


def test_an_error_in_code_that_steps_share_names_the_line_of_its_step():
    def run(x, i):
        y = np.fft.fft(x[i]).real
        z = np.fft.fft(x[i + 1]).real  # the second index is out of bounds
        return y + z

    x = np.ones((3, 4))
    fun = ft.jit(run)
    i = np.array([0, 1, 2, 2])
    with pytest.raises(IndexError) as caught:
        fun(x, i)
    assert "test_host_calls.py" in "".join(getattr(caught.value, "__notes__", [str(caught.value)]))


def test_effects_stay_in_order_between_parts():
    seen = []

    def run(x):
        ft.debug.callback(lambda v: seen.append(float(v)), x[0])
        y = np.fft.fft(np.sin(x)).real
        ft.debug.callback(lambda v: seen.append(float(v)), y[0])
        ft.debug.callback(lambda v: seen.append(float(v)), x[1])
        return y * 2

    x = np.array([0.5, 0.25, 0.0, 0.0])
    ft.jit(run)(x)
    assert seen == [0.5, float(np.fft.fft(np.sin(x)).real[0]), 0.25]


@pytest.mark.parametrize("n", [2, 3])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
def test_gradients_of_small_determinants_need_no_call(n, dtype):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(6, n, n)).astype(dtype)
    if dtype == "c16":
        a = a + 1j * rng.normal(size=a.shape)
    ct = rng.normal(size=6).astype(dtype)
    fun = ft.jit(lambda a: ft.vjp(np.linalg.det, a)[1](ct)[0])
    got = fun(a)
    want = ct[:, None, None] * np.linalg.det(a)[:, None, None] * np.swapaxes(np.linalg.inv(a), 1, 2)
    np.testing.assert_allclose(got, want, rtol=2e-4 if dtype == "f4" else 1e-11)
    assert got.dtype == a.dtype
    assert not any(isinstance(part, HostCall) for part in native_of(fun).parts)


@pytest.mark.parametrize("n", [2, 3])
def test_derivatives_of_small_determinants_at_singular_matrices(n):
    a = np.ones((n, n))
    ft.testing.check_grads(np.linalg.det, (a,), order=3)
    third = ft.jacfwd(ft.hessian(np.linalg.det))(np.zeros((n, n)))
    assert abs(third).max() == (1.0 if n == 3 else 0.0)
