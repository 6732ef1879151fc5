"""``scipy.signal`` for plain and traced arrays: SciPy's names, signatures, results.

Here: the namespace. Not here: the functions (``signal_convolution``, ``signal_filters``,
``signal_spectra``). Plain arguments go to SciPy itself. Windows and the design of filters make
constants; they are SciPy's own and are imported at first use.

Layer: ``scipy``.
"""

from functrans.core.boundary import guard as _guard
from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.scipy.dispatch import later as _later

# isort: off
from functrans.scipy.signal_convolution import (
    convolve as convolve, convolve2d as convolve2d, correlate2d as correlate2d,
    savgol_filter as savgol_filter, upfirdn as upfirdn,
)  # fmt: skip
from functrans.scipy.signal_filters import (
    deconvolve as deconvolve, detrend as detrend, lfilter as lfilter, lfilter_zi as lfilter_zi,
    lfiltic as lfiltic, medfilt as medfilt, medfilt2d as medfilt2d, order_filter as order_filter,
    sosfilt as sosfilt, wiener as wiener,
)  # fmt: skip
from functrans.scipy.signal_spectra import csd as csd, freqz as freqz, istft as istft
# isort: on

_CONSTANTS = (
    "bessel", "butter", "buttord", "cheby1", "cheby2", "choose_conv_method", "correlation_lags",
    "ellip", "firls", "firwin", "firwin2", "get_window", "iirfilter", "iirnotch", "iirpeak",
    "remez", "savgol_coeffs", "unit_impulse", "windows",
)  # fmt: skip
"""What makes constants: windows, filter coefficients, lags."""


_BY_CODE = (
    "coherence", "correlate", "decimate", "fftconvolve", "filtfilt", "hilbert", "oaconvolve",
    "periodogram", "resample", "resample_poly", "sosfilt_zi", "sosfiltfilt", "spectrogram", "stft",
    "welch",
)  # fmt: skip
"""What is traced by SciPy's own code."""

__getattr__ = _later("signal", _BY_CODE, _CONSTANTS)
__all__ = _exported(globals(), (*_BY_CODE, *_CONSTANTS))
__dir__ = _listing(__all__)
_guard(globals(), __all__)
