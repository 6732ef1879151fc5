"""``scipy.signal`` for plain and traced arrays: SciPy's names, signatures, results.

Here: the namespace. Not here: the functions (``signal_convolution``, ``signal_filters``,
``signal_spectra``). Plain arguments go to SciPy itself. Windows and the design of filters make
constants; they are SciPy's own and are imported at first use.

Layer: ``scipy``.
"""

from typing import Any as _Any

from functrans.core.boundary import guard as _guard
from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.namespaces import missing as _missing
from functrans.scipy.dispatch import plain as _plain

# isort: off
from functrans.scipy.signal_convolution import (
    convolve as convolve, convolve2d as convolve2d, correlate as correlate,
    correlate2d as correlate2d, fftconvolve as fftconvolve, oaconvolve as oaconvolve,
    resample_poly as resample_poly, savgol_filter as savgol_filter, upfirdn as upfirdn,
)  # fmt: skip
from functrans.scipy.signal_filters import (
    decimate as decimate, deconvolve as deconvolve, detrend as detrend, filtfilt as filtfilt,
    lfilter as lfilter, lfilter_zi as lfilter_zi, lfiltic as lfiltic, medfilt as medfilt,
    medfilt2d as medfilt2d, order_filter as order_filter, sosfilt as sosfilt,
    sosfilt_zi as sosfilt_zi, sosfiltfilt as sosfiltfilt, wiener as wiener,
)  # fmt: skip
from functrans.scipy.signal_spectra import (
    coherence as coherence, csd as csd, freqz as freqz, hilbert as hilbert, istft as istft,
    periodogram as periodogram, resample as resample, spectrogram as spectrogram, stft as stft,
    welch as welch,
)  # fmt: skip
# isort: on

_CONSTANTS = (
    "bessel", "butter", "buttord", "cheby1", "cheby2", "choose_conv_method", "correlation_lags",
    "ellip", "firls", "firwin", "firwin2", "get_window", "iirfilter", "iirnotch", "iirpeak",
    "remez", "savgol_coeffs", "unit_impulse", "windows",
)  # fmt: skip
"""What makes constants: windows, filter coefficients, lags."""


def __getattr__(name: str) -> _Any:
    """SciPy's windows and filter design, imported at first use."""
    if name in _CONSTANTS:
        return _plain(f"signal.{name}")
    raise _missing(__name__, name)


__all__ = _exported(globals(), _CONSTANTS)
__dir__ = _listing(__all__)
_guard(globals(), __all__)
