"""``numpy.polynomial.laguerre``: series in Laguerre's polynomials.

Here: the names. Not here: what they compute (``series``). The class and what takes no arrays are
NumPy's own.

Layer: ``numpy``.
"""

from numpy.polynomial.laguerre import Laguerre as Laguerre
from numpy.polynomial.laguerre import lagdomain as lagdomain
from numpy.polynomial.laguerre import laggauss as laggauss
from numpy.polynomial.laguerre import lagone as lagone
from numpy.polynomial.laguerre import lagweight as lagweight
from numpy.polynomial.laguerre import lagx as lagx
from numpy.polynomial.laguerre import lagzero as lagzero

from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.numpy.polynomial.series import NAMES as _NAMES
from functrans.numpy.polynomial.series import Basis as _Basis
from functrans.numpy.polynomial.series import functions as _functions

_BASIS = _Basis("laguerre", "lag", lambda k: (-1 / (k + 1), (2 * k + 1) / (k + 1), -k / (k + 1)))

_of = _functions(_BASIS)
(
    lagadd, lagsub, lagmulx, lagmul, lagdiv, lagpow, lagval, lagval2d, lagval3d, laggrid2d,
    laggrid3d, lagvander, lagvander2d, lagvander3d, lagder, lagint, lagfit, lagcompanion, lagroots,
    lagfromroots, lagline, lagtrim,
) = map(_of, _NAMES)  # fmt: skip
lag2poly = _of("lag2poly")
poly2lag = _of("poly2lag")

__all__ = _exported(globals())
__dir__ = _listing(__all__)
