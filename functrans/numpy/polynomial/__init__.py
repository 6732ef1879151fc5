"""``numpy.polynomial``: series in six bases, for plain and traced arrays.

Here: the namespaces. The classes are NumPy's own; they hold plain coefficients and take plain
points. Not here: what the functions compute (``series``).

>>> import numpy as np
>>> import functrans as ft
>>> import functrans.numpy as fnp
>>> value = lambda c: fnp.polynomial.chebyshev.chebval(0.5, c)
>>> ft.grad(value)(np.array([1.0, 2.0, 3.0]))
array([ 1. ,  0.5, -0.5])

Layer: ``numpy``.
"""

from numpy.polynomial import Chebyshev as Chebyshev
from numpy.polynomial import Hermite as Hermite
from numpy.polynomial import HermiteE as HermiteE
from numpy.polynomial import Laguerre as Laguerre
from numpy.polynomial import Legendre as Legendre
from numpy.polynomial import Polynomial as Polynomial
from numpy.polynomial import set_default_printstyle as set_default_printstyle

from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.numpy.polynomial import chebyshev as chebyshev
from functrans.numpy.polynomial import hermite as hermite
from functrans.numpy.polynomial import hermite_e as hermite_e
from functrans.numpy.polynomial import laguerre as laguerre
from functrans.numpy.polynomial import legendre as legendre
from functrans.numpy.polynomial import polynomial as polynomial

__all__ = _exported(
    globals(), ("chebyshev", "hermite", "hermite_e", "laguerre", "legendre", "polynomial")
)
__dir__ = _listing(__all__)
