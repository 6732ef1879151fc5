"""SciPy's namespaces for traced arrays: the same names, signatures and values, differentiable.

Here: ``special`` (gamma, error, Bessel, elliptic, hypergeometric functions, distribution functions,
sums of exponentials), ``stats`` (densities, distribution functions, quantiles, summaries),
``linalg`` (systems, factorizations, functions of matrices, matrix equations), ``fft``, ``signal``,
``ndimage``, ``interpolate``, ``integrate`` (quadrature, differential equations), ``optimize``,
``sparse`` and ``spatial`` (distances). Not here: how plain NumPy and SciPy calls find them
(``dispatch``, ``numpy.dispatch``). docs/support.md lists every function and what it can do.

SciPy is imported when the first function that calls it runs.

Layer: ``numpy``, ``scipy``.

Example:
  >>> import functrans as ft
  >>> from functrans.scipy import special
  >>> round(float(ft.grad(special.gammaln)(2.0)), 6)
  0.422784
"""

from functrans.namespaces import listing as _listing
from functrans.scipy import fft as fft
from functrans.scipy import integrate as integrate
from functrans.scipy import interpolate as interpolate
from functrans.scipy import linalg as linalg
from functrans.scipy import ndimage as ndimage
from functrans.scipy import optimize as optimize
from functrans.scipy import signal as signal
from functrans.scipy import sparse as sparse
from functrans.scipy import spatial as spatial
from functrans.scipy import special as special
from functrans.scipy import stats as stats

__all__ = [
    "fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "sparse",
    "spatial", "special", "stats",
]  # fmt: skip
__dir__ = _listing(__all__)
