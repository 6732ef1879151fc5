"""``scipy.fft``: values, derivatives, batches and compiled programs against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.fft
from scipy_cases import Case, check

import functrans as ft

R = np.random.default_rng(12)
V = R.standard_normal(6)
U = R.standard_normal(5)
X = R.standard_normal((3, 4))
Z = X + 1j * R.standard_normal((3, 4))

FOURIER = (
    Case("fft", lambda m, x: m.fft(x), Z),
    Case("fft real n axis", lambda m, x: m.fft(x, 5, axis=0, norm="ortho"), X),
    Case("ifft", lambda m, x: m.ifft(x, norm="forward"), Z),
    Case("rfft", lambda m, x: m.rfft(x), V),
    Case("irfft", lambda m, x: m.irfft(x, 7), Z),
    Case("hfft", lambda m, x: m.hfft(x), Z),
    Case("ihfft", lambda m, x: m.ihfft(x), U),
    Case("fft2", lambda m, x: m.fft2(x), Z),
    Case("ifft2", lambda m, x: m.ifft2(x), Z),
    Case("rfft2", lambda m, x: m.rfft2(x), X),
    Case("irfft2", lambda m, x: m.irfft2(x), Z),
    Case("fftn", lambda m, x: m.fftn(x), Z),
    Case("ifftn", lambda m, x: m.ifftn(x, s=(3,), axes=(1,)), Z),
    Case("rfftn", lambda m, x: m.rfftn(x, s=(3,)), X),
    Case("irfftn", lambda m, x: m.irfftn(x), Z),
    Case("fftshift", lambda m, x: m.fftshift(x), X),
    Case("ifftshift", lambda m, x: m.ifftshift(x, axes=1), X),
)


def _trigonometric() -> list[Case]:
    cases = []
    for name in ("dct", "idct", "dst", "idst"):
        for type_ in (1, 2, 3, 4):
            for norm in (None, "ortho", "forward"):
                cases.extend(
                    Case(
                        f"{name} {type_} {norm} {len(x)}",
                        lambda m, x, f=name, t=type_, s=norm: getattr(m, f)(x, t, norm=s),
                        x,
                    )
                    for x in ((V, U) if norm is None else (U,))
                )
        cases.append(Case(f"{name} n axis", lambda m, x, f=name: getattr(m, f)(x, n=5, axis=0), X))
        cases.append(
            Case(
                f"{name} orthogonalize",
                lambda m, x, f=name: getattr(m, f)(x, 1, n=3, orthogonalize=True),
                X,
            )
        )
        cases.append(Case(f"{name} complex", lambda m, x, f=name: getattr(m, f)(x), Z))
        cases.append(Case(f"{name}n", lambda m, x, f=name: getattr(m, f"{f}n")(x), X))
        cases.append(
            Case(
                f"{name}n s axes",
                lambda m, x, f=name: getattr(m, f"{f}n")(x, 3, s=(2, 5), axes=(1, 0), norm="ortho"),
                X,
            )
        )
    return cases


@pytest.mark.parametrize("case", [*FOURIER, *_trigonometric()], ids=repr)
def test_transform_agrees_with_scipy_and_differences(case: Case) -> None:
    check(case, "fft")


def test_functions_of_integers_are_scipys() -> None:
    assert ft.scipy.fft.next_fast_len(97) == scipy.fft.next_fast_len(97)
    assert ft.scipy.fft.prev_fast_len(97) == scipy.fft.prev_fast_len(97)
    np.testing.assert_array_equal(ft.scipy.fft.fftfreq(5, 0.1), scipy.fft.fftfreq(5, 0.1))


def test_one_point() -> None:
    x = np.array([1.5])
    for name in ("dct", "dst"):
        for type_ in (2, 3, 4):
            found = ft.jit(lambda x, f=name, t=type_: getattr(ft.scipy.fft, f)(x, t))(x)
            np.testing.assert_allclose(found, getattr(scipy.fft, name)(x, type_))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m, x: m.dct(x, 5), "type=5"),
        (lambda m, x: m.dct(x, norm="odd"), "norm='odd'"),
        (lambda m, x: m.dct(x, 1, n=1), "at least 2 points"),
        (lambda m, x: m.dst(x, n=0), "cannot transform 0 points"),
        (lambda m, x: m.dctn(x, s=(2,), axes=(0, 1)), "one per axis"),
    ],
)
def test_bad_input(call: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ft.vjp(lambda x: call(ft.scipy.fft, x), X)


DTYPES = (np.float16, np.float32, np.complex64, np.complex128, bool, np.int8, np.uint16, np.int64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("own", "plain"), [(ft.scipy.fft, scipy.fft), (np.fft, np.fft)])
def test_transforms_have_the_dtypes_and_shapes_of_the_plain_ones(
    own: Any, plain: Any, dtype: Any
) -> None:
    for name in ft.scipy.fft.__all__:
        if name.endswith(("fftfreq", "fast_len", "shift")) or not hasattr(plain, name):
            continue
        function = getattr(own, name)
        for shape in ((1, 2), (2, 4), (2, 1)):
            x = np.ones(shape, dtype)
            runs = [lambda x, f=function: ft.vjp(f, x)[0]]
            runs += [ft.jit(function)] * (shape == (1, 2))
            try:
                expected = getattr(plain, name)(x)
            except (TypeError, ValueError) as error:
                for run in runs:
                    with pytest.raises(type(error)):
                        run(x)
                continue
            for found in (run(x) for run in runs):
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape), (name, shape)
                np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
