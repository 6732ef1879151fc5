"""``scipy.signal``: values, derivatives, batches and compiled programs against SciPy."""

from typing import Any

import numpy as np
import pytest
import scipy.signal
from scipy_cases import Case, check

import functrans as ft
from functrans.errors import ShapeError, UnsupportedOperationError

R = np.random.default_rng(14)
X = R.standard_normal((4, 5))
K = R.standard_normal((2, 3))
V = R.standard_normal(9)
W3 = R.standard_normal(3)
W4 = R.standard_normal(4)
LONG = R.standard_normal(40)
PAIR = R.standard_normal((2, 40))
Z = R.standard_normal(6) + 1j * R.standard_normal(6)
B = np.array([0.5, 0.3, -0.2])
A = np.array([1.5, -0.6, 0.2, 0.1])
SOS = np.array([[0.5, 0.2, 0.1, 1.0, -0.4, 0.2], [1.0, -0.3, 0.2, 1.0, 0.3, -0.1]])
MODES = ("full", "same", "valid")


def sections(b: Any, a: Any) -> Any:
    """Second-order sections; their first denominator is 1."""
    return np.concatenate((b, np.ones_like(a[:, :1]), a), axis=1)


CONVOLUTIONS = (
    *(Case(f"convolve {k}", lambda m, a, b, k=k: m.convolve(a, b, k), X, K) for k in MODES),
    *(
        Case(f"convolve fft {k}", lambda m, a, b, k=k: m.convolve(a, b, k, "fft"), X, K)
        for k in MODES
    ),
    *(Case(f"convolve even {k}", lambda m, a, b, k=k: m.convolve(a, b, k), V, W4) for k in MODES),
    Case("convolve valid swapped", lambda m, a, b: m.convolve(a, b, "valid"), W3, V),
    Case("convolve same swapped", lambda m, a, b: m.convolve(a, b, "same"), W3, V),
    Case("convolve complex", lambda m, a, b: m.convolve(a, b), Z, W3),
    *(Case(f"correlate {k}", lambda m, a, b, k=k: m.correlate(a, b, k), X, K) for k in MODES),
    *(Case(f"correlate even {k}", lambda m, a, b, k=k: m.correlate(a, b, k), V, W4) for k in MODES),
    Case("correlate valid swapped", lambda m, a, b: m.correlate(a, b, "valid"), W3, V),
    Case("correlate complex", lambda m, a, b: m.correlate(a, b, "same", "fft"), Z, Z[:3] * 1j),
    *(Case(f"fftconvolve {k}", lambda m, a, b, k=k: m.fftconvolve(a, b, k), X, K) for k in MODES),
    Case("fftconvolve axes", lambda m, a, b: m.fftconvolve(a, b, axes=1), X, K[:1]),
    Case("fftconvolve complex", lambda m, a, b: m.fftconvolve(a, b, "same"), Z, Z[:3]),
    Case("oaconvolve", lambda m, a, b: m.oaconvolve(a, b, "same"), LONG, W3),
    *(
        Case(f"convolve2d {k} {b}", lambda m, x, y, k=k, b=b: m.convolve2d(x, y, k, b, 0.5), X, K)
        for k in MODES
        for b in ("fill", "wrap", "symm")
    ),
    *(
        Case(f"correlate2d {k} {b}", lambda m, x, y, k=k, b=b: m.correlate2d(x, y, k, b), X, K)
        for k in MODES
        for b in ("fill", "wrap")
    ),
    Case("correlate2d even", lambda m, x, y: m.correlate2d(x, y, "same"), X, X[:2, :4]),
    Case("correlate2d swapped", lambda m, x, y: m.correlate2d(x, y, "valid"), K, X),
    Case("upfirdn", lambda m, h, x: m.upfirdn(h, x, 3, 2), W4, V),
    Case("upfirdn axis", lambda m, h, x: m.upfirdn(h, x, 2, 3, axis=0), W3, X),
    Case("resample_poly", lambda m, x: m.resample_poly(x, 3, 2), V),
    Case(
        "resample_poly axis", lambda m, x: m.resample_poly(x, 2, 5, axis=1, window="hamming"), PAIR
    ),
    *(
        Case(f"savgol_filter {k}", lambda m, x, k=k: m.savgol_filter(x, 5, 2, mode=k, cval=0.3), V)
        for k in ("interp", "mirror", "constant", "nearest", "wrap")
    ),
    Case("savgol_filter deriv", lambda m, x: m.savgol_filter(x, 3, 2, 1, 0.5, axis=0), X),
    Case("savgol_filter even", lambda m, x: m.savgol_filter(x, 4, 2, mode="nearest"), V),
    Case(
        "deconvolve",
        lambda m, s, d: m.deconvolve(s, d),
        np.convolve(W4, [1, 2.0]),
        np.array([1.0, 2.0]),
    ),
)

FILTERS = (
    Case("lfilter", lambda m, b, a, x: m.lfilter(b, a, x), B, A, V),
    Case("lfilter long numerator", lambda m, b, a, x: m.lfilter(b, a, x), A, B, V),
    Case("lfilter axis", lambda m, b, a, x: m.lfilter(b, a, x, axis=0), B, A, X),
    Case("lfilter fir", lambda m, b, x: m.lfilter(b, [2.0], x), B, X, keeps_single=False),
    Case("lfilter gain", lambda m, b, x: m.lfilter(b, [2.0], x), B[:1], X, keeps_single=False),
    Case("lfilter zi", lambda m, b, a, x, z: m.lfilter(b, a, x, zi=z), B, A, V, W3),
    Case(
        "lfilter zi rows",
        lambda m, b, a, x, z: m.lfilter(b, a, x, 0, z),
        B,
        A,
        X,
        R.standard_normal((3, 5)),
    ),
    Case("lfilter zi short", lambda m, b, a, x, z: m.lfilter(b, a, x, zi=z), B, A, V[:2], W3),
    Case("lfilter complex", lambda m, b, a, x: m.lfilter(b, a, x), B, A, Z),
    Case("lfiltic", lambda m, b, a, y, x: m.lfiltic(b, a, y, x), B, A, W3, V[:2]),
    Case("lfilter_zi", lambda m, b, a: m.lfilter_zi(b, a), B, A),
    *(
        Case(
            f"filtfilt {k}",
            lambda m, b, a, x, k=k: m.filtfilt(b, a, x, padtype=k),
            B,
            A,
            LONG,
            rtol=1e-10,
        )
        for k in ("odd", "even", "constant", None)
    ),
    Case(
        "filtfilt axis", lambda m, x: m.filtfilt(B, A, x, axis=0, padlen=2), X, keeps_single=False
    ),
    Case(
        "sosfilt",
        lambda m, b, a, x: m.sosfilt(sections(b, a), x, axis=0),
        SOS[:, :3],
        SOS[:, 4:],
        X,
    ),
    Case(
        "sosfilt zi",
        lambda m, b, a, x, z: m.sosfilt(sections(b, a), x, zi=z),
        SOS[:, :3],
        SOS[:, 4:],
        V,
        X[:2, :2],
    ),
    Case(
        "sosfilt_zi",
        lambda m, s: m.sosfilt_zi(sections(SOS[:, :3], s)),
        SOS[:, 4:],
        keeps_single=False,
    ),
    Case("sosfiltfilt", lambda m, x: m.sosfiltfilt(SOS, x), PAIR, keeps_single=False),
    Case("decimate", lambda m, x: m.decimate(x, 2), LONG, keeps_single=False, rtol=1e-10),
    Case("decimate fir", lambda m, x: m.decimate(x, 3, ftype="fir"), LONG),
    Case("decimate causal", lambda m, x: m.decimate(x, 2, 4, zero_phase=False, axis=1), PAIR),
    Case("decimate causal fir", lambda m, x: m.decimate(x, 2, ftype="fir", zero_phase=False), LONG),
    Case("medfilt", lambda m, x: m.medfilt(x, (3, 1)), X),
    Case("medfilt2d", lambda m, x: m.medfilt2d(x), X),
    Case("order_filter", lambda m, x: m.order_filter(x, np.ones((1, 3)), 2), X),
    Case("wiener", lambda m, x: m.wiener(x), V),
    Case("wiener noise", lambda m, x: m.wiener(x, (3, 3), 0.1), X),
    Case("detrend", lambda m, x: m.detrend(x), X),
    Case("detrend constant", lambda m, x: m.detrend(x, 0, "constant"), X),
    Case("detrend breaks", lambda m, x: m.detrend(x, bp=[3, 6]), V),
)

SPECTRA = (
    Case("hilbert", lambda m, x: m.hilbert(x), V),
    Case("hilbert even", lambda m, x: m.hilbert(x, 6, axis=0), X),
    Case("welch", lambda m, x: m.welch(x, nperseg=16)[1], LONG),
    Case(
        "welch options",
        lambda m, x: m.welch(x, 10.0, "blackman", 15, 5, 20, "linear", scaling="spectrum", axis=0)[
            1
        ],
        LONG[:, None],
    ),
    Case("welch median", lambda m, x: m.welch(x, nperseg=8, average="median")[1], LONG),
    Case("welch two-sided", lambda m, x: m.welch(x, nperseg=8, return_onesided=False)[1], LONG),
    Case(
        "welch complex",
        lambda m, x: m.welch(x, nperseg=4, detrend=False, return_onesided=False)[1],
        Z,
    ),
    Case("periodogram", lambda m, x: m.periodogram(x, 2.0)[1], V),
    Case("periodogram nfft", lambda m, x: m.periodogram(x, nfft=6, window="hann")[1], V),
    Case("csd", lambda m, x, y: m.csd(x, y, nperseg=16)[1], LONG, LONG[::-1]),
    Case("csd short", lambda m, x, y: m.csd(x, y, nperseg=8, average="median")[1], LONG, LONG[5:]),
    Case("coherence", lambda m, x, y: m.coherence(x, y, nperseg=16)[1], LONG, LONG[::-1]),
    Case("spectrogram", lambda m, x: m.spectrogram(x, nperseg=8)[2], LONG),
    *(
        Case(
            f"spectrogram {mode}",
            lambda m, x, mode=mode: m.spectrogram(x, 3.0, "hann", 8, 4, mode=mode)[2],
            LONG,
            order={"phase": 0, "angle": 1}.get(mode, 2),  # steps of whole turns
        )
        for mode in ("magnitude", "complex", "angle", "phase")
    ),
    Case("filtfilt gust", lambda m, x: m.filtfilt(B, A, x, method="gust"), LONG),
    Case("resample window", lambda m, x: m.resample(x, 4, window="hann"), V),
    Case("resample frequencies", lambda m, x: m.resample(x, 4, domain="freq").real, V * 1j + V),
    Case("resample_poly mean", lambda m, x: m.resample_poly(x, 2, 3, padtype="mean"), V),
    Case("spectrogram overlap", lambda m, x: m.spectrogram(x, 3.0, "hann", 10, 4)[2], PAIR),
    Case("stft", lambda m, x: m.stft(x, nperseg=8)[2], LONG),
    *(
        Case(
            f"stft {k}",
            lambda m, x, k=k: m.stft(x, 2.0, nperseg=9, noverlap=6, boundary=k, scaling="psd")[2],
            LONG,
        )
        for k in ("even", "odd", "constant", None)
    ),
    Case(
        "stft unpadded",
        lambda m, x: m.stft(x, nperseg=9, padded=False, detrend="constant")[2],
        PAIR,
    ),
    Case("stft complex", lambda m, x: m.stft(x, nperseg=4, return_onesided=False)[2], Z),
    Case(
        "istft",
        lambda m, x: m.istft(m.stft(LONG, nperseg=8)[2] * x)[1],
        np.ones((5, 11)),
        keeps_single=False,
    ),
    Case(
        "istft options",
        lambda m, x: m.istft(
            m.stft(LONG, nperseg=9, noverlap=6, scaling="psd")[2] * x,
            nperseg=9,
            noverlap=6,
            scaling="psd",
        )[1],
        np.ones((5, 14)),
        keeps_single=False,
    ),
    Case("resample", lambda m, x: m.resample(x, 14), V),
    *(
        Case(f"resample {n}", lambda m, x, n=n: m.resample(x, n, axis=1), X[:, :4])
        for n in (2, 3, 4, 6)
    ),
    *(
        Case(f"resample complex {n}", lambda m, x, n=n: m.resample(x, n), Z)
        for n in (4, 5, 6, 8, 9)
    ),
    Case("freqz", lambda m, b, a: m.freqz(b, a, 7)[1], B, A),
    Case(
        "freqz frequencies",
        lambda m, b: m.freqz(b, worN=[0.1, 0.5], fs=2.0)[1],
        B,
        keeps_single=False,
    ),
)


@pytest.mark.parametrize("case", [*CONVOLUTIONS, *FILTERS, *SPECTRA], ids=repr)
def test_function_agrees_with_scipy_and_differences(case: Case) -> None:
    check(case, "signal")


def test_frequencies_and_times_are_scipys() -> None:
    for name, options in (
        ("welch", {"nperseg": 15, "fs": 3.0}),
        ("stft", {"nperseg": 9, "fs": 3.0}),
        ("spectrogram", {"nperseg": 9, "fs": 3.0}),
        ("freqz", {"worN": 5, "include_nyquist": True, "fs": 3.0}),
        ("freqz", {"worN": 5, "whole": True}),
    ):
        ours = ft.vjp(lambda x, n=name, o=options: getattr(ft.scipy.signal, n)(x, **o)[-1], LONG)[0]
        theirs = getattr(scipy.signal, name)(LONG, **options)
        np.testing.assert_allclose(ours, theirs[-1], atol=1e-12)
        others: list[Any] = []
        ft.vjp(
            lambda x, n=name, o=options, k=others: (
                k.extend(getattr(ft.scipy.signal, n)(x, **o)[:-1]) or x
            ),
            LONG,
        )
        for found, expected in zip(others, theirs[:-1], strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-12)


def test_windows_and_designs_are_scipys() -> None:
    np.testing.assert_array_equal(
        ft.scipy.signal.get_window("hann", 5), scipy.signal.get_window("hann", 5)
    )
    np.testing.assert_array_equal(
        ft.scipy.signal.windows.hamming(5), scipy.signal.windows.hamming(5)
    )
    with pytest.raises(AttributeError, match="nonsense"):
        ft.scipy.signal.nonsense  # noqa: B018  # the access is what raises


def test_large_convolutions_go_through_fourier_transforms() -> None:
    x, y = R.standard_normal(3000), R.standard_normal(2000)
    text = str(ft.make_jaxpr(ft.scipy.signal.convolve)(x, y))
    assert "rfft" in text
    found = ft.jit(ft.scipy.signal.convolve)(x, y)
    np.testing.assert_allclose(found, np.convolve(x, y), atol=1e-10)


def test_filter_of_many_samples_is_one_equation() -> None:
    jaxpr = ft.make_jaxpr(lambda x: ft.scipy.signal.lfilter(B, A, x))(np.zeros(100_000))
    assert str(jaxpr).count("recursive_filter") == 1


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda m, x: m.convolve(x, x[0]), ShapeError, "equally many axes"),
        (lambda m, x: m.convolve(x, x, "odd"), ValueError, "mode='odd'"),
        (lambda m, x: m.convolve(x, x, method="odd"), ValueError, "method='odd'"),
        (lambda m, x: m.convolve(x[:1], x[:, :2], "valid"), ShapeError, "at least as large"),
        (lambda m, x: m.fftconvolve(x, x[:2], axes=1), ValueError, "incompatible shapes"),
        (lambda m, x: m.convolve2d(x, x, boundary="odd"), ValueError, "boundary='odd'"),
        (lambda m, x: m.upfirdn(x[0], x, mode="edge"), UnsupportedOperationError, "mode='edge'"),
        (lambda m, x: m.resample_poly(x, 2, 3, padtype="line"), UnsupportedOperationError, "line"),
        (lambda m, x: m.savgol_filter(x, 7, 2), ValueError, "at least 7"),
        (lambda m, x: m.lfilter(x, x, x), ShapeError, "vectors"),
        (lambda m, x: m.lfilter(B, A, x, zi=x), ShapeError, "initial state"),
        (lambda m, x: m.filtfilt(B, A, x), ValueError, "padlen, which is 12"),
        (lambda m, x: m.filtfilt(B, A, x, method="odd"), ValueError, "method"),
        (lambda m, x: m.sosfilt(x, x), ShapeError, "sections"),
        (lambda m, x: m.medfilt(x, 2), ValueError, "odd"),
        (lambda m, x: m.detrend(x, type="odd"), ValueError, "type='odd'"),
        (lambda m, x: m.detrend(x, bp=9), ValueError, "beyond"),
        (lambda m, x: m.welch(x, nperseg=4, noverlap=4), ValueError, "do not fit"),
        (lambda m, x: m.stft(x, nperseg=4, boundary="odd one"), ValueError, "boundary"),
        (lambda m, x: m.spectrogram(x, mode="odd"), ValueError, "mode odd"),
        (lambda m, x: m.resample(x, 3, domain="odd"), ValueError, "domain"),
        (lambda m, x: m.hilbert(x * 1j), ValueError, "real"),
        (lambda m, x: m.decimate(x, 2, ftype="odd"), ValueError, "invalid ftype"),
    ],
)
def test_bad_input(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ft.vjp(lambda x: call(ft.scipy.signal, x), X)


WHOLE = {
    "convolve": lambda m, x, y: m.convolve(x, y),
    "convolve by transforms": lambda m, x, y: m.convolve(x, y, "same", method="fft"),
    "correlate": lambda m, x, y: m.correlate(y, x, "valid"),
    "convolve2d": lambda m, x, y: m.convolve2d(x, y, "same", "wrap"),
    "correlate2d": lambda m, x, y: m.correlate2d(x, y),
    "medfilt": lambda m, x, y: m.medfilt(x, 3),
    "order_filter": lambda m, x, y: m.order_filter(x, np.ones((3, 3)), 2),
}


@pytest.mark.parametrize("dtype", ["i8", "i4", "u1", "i2"])
@pytest.mark.parametrize("name", WHOLE)
def test_signals_of_integers_give_integers(name: str, dtype: str) -> None:
    """Compiled or not; sums wrap round as those of the dtype."""
    x, y = (
        np.random.default_rng(2).integers(0, 90, shape).astype(dtype) for shape in ((6, 5), (3, 2))
    )
    expected = WHOLE[name](scipy.signal, x, y)
    found = ft.jit(lambda x, y: WHOLE[name](ft.scipy.signal, x, y))(x, y)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
