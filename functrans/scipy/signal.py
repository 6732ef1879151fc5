"""``scipy.signal`` for plain and traced arrays: SciPy's names, signatures, results.

Here: the namespace. Not here: the functions (``signal_convolution``, ``signal_filters``,
``signal_spectra``). Plain arguments go to SciPy itself. Windows and the design of filters make
constants; they are SciPy's own and are imported at first use.

Layer: ``scipy``.
"""

from typing import Any as _Any

from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.namespaces import missing as _missing
from functrans.scipy.dispatch import plain as _plain
from functrans.scipy.signal_convolution import convolve as convolve
from functrans.scipy.signal_convolution import convolve2d as convolve2d
from functrans.scipy.signal_convolution import correlate as correlate
from functrans.scipy.signal_convolution import correlate2d as correlate2d
from functrans.scipy.signal_convolution import fftconvolve as fftconvolve
from functrans.scipy.signal_convolution import oaconvolve as oaconvolve
from functrans.scipy.signal_convolution import resample_poly as resample_poly
from functrans.scipy.signal_convolution import savgol_filter as savgol_filter
from functrans.scipy.signal_convolution import upfirdn as upfirdn
from functrans.scipy.signal_filters import decimate as decimate
from functrans.scipy.signal_filters import deconvolve as deconvolve
from functrans.scipy.signal_filters import detrend as detrend
from functrans.scipy.signal_filters import filtfilt as filtfilt
from functrans.scipy.signal_filters import lfilter as lfilter
from functrans.scipy.signal_filters import lfilter_zi as lfilter_zi
from functrans.scipy.signal_filters import lfiltic as lfiltic
from functrans.scipy.signal_filters import medfilt as medfilt
from functrans.scipy.signal_filters import medfilt2d as medfilt2d
from functrans.scipy.signal_filters import order_filter as order_filter
from functrans.scipy.signal_filters import sosfilt as sosfilt
from functrans.scipy.signal_filters import sosfilt_zi as sosfilt_zi
from functrans.scipy.signal_filters import sosfiltfilt as sosfiltfilt
from functrans.scipy.signal_filters import wiener as wiener
from functrans.scipy.signal_spectra import coherence as coherence
from functrans.scipy.signal_spectra import csd as csd
from functrans.scipy.signal_spectra import freqz as freqz
from functrans.scipy.signal_spectra import hilbert as hilbert
from functrans.scipy.signal_spectra import istft as istft
from functrans.scipy.signal_spectra import periodogram as periodogram
from functrans.scipy.signal_spectra import resample as resample
from functrans.scipy.signal_spectra import spectrogram as spectrogram
from functrans.scipy.signal_spectra import stft as stft
from functrans.scipy.signal_spectra import welch as welch

_CONSTANTS = (
    "bessel",
    "butter",
    "buttord",
    "cheby1",
    "cheby2",
    "choose_conv_method",
    "correlation_lags",
    "ellip",
    "firls",
    "firwin",
    "firwin2",
    "get_window",
    "iirfilter",
    "iirnotch",
    "iirpeak",
    "remez",
    "savgol_coeffs",
    "unit_impulse",
    "windows",
)
"""What makes constants: windows, filter coefficients, lags."""


def __getattr__(name: str) -> _Any:
    """SciPy's windows and filter design, imported at first use."""
    if name in _CONSTANTS:
        return _plain(f"signal.{name}")
    raise _missing(__name__, name)


__all__ = _exported(globals(), _CONSTANTS)
__dir__ = _listing(__all__)
