"""SciPy-shaped functions that can be traced.

Here: ``special``, as far as statistics and machine learning need it. More of SciPy is planned.

Layer: ``numpy``, ``scipy``.
"""

from functrans.scipy import fft as fft
from functrans.scipy import integrate as integrate
from functrans.scipy import interpolate as interpolate
from functrans.scipy import linalg as linalg
from functrans.scipy import ndimage as ndimage
from functrans.scipy import optimize as optimize
from functrans.scipy import signal as signal
from functrans.scipy import sparse as sparse
from functrans.scipy import special as special
from functrans.scipy import stats as stats
