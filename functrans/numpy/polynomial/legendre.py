"""``numpy.polynomial.legendre``: series in Legendre's polynomials.

Here: the names. Not here: what they compute (``series``). The class and what takes no arrays are
NumPy's own.

Layer: ``numpy``.
"""

from numpy.polynomial.legendre import Legendre as Legendre
from numpy.polynomial.legendre import legdomain as legdomain
from numpy.polynomial.legendre import leggauss as leggauss
from numpy.polynomial.legendre import legone as legone
from numpy.polynomial.legendre import legweight as legweight
from numpy.polynomial.legendre import legx as legx
from numpy.polynomial.legendre import legzero as legzero

from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.numpy.polynomial.series import NAMES as _NAMES
from functrans.numpy.polynomial.series import Basis as _Basis
from functrans.numpy.polynomial.series import functions as _functions

_BASIS = _Basis("legendre", "leg", lambda k: ((2 * k + 1) / (k + 1), 0.0, -k / (k + 1)))

_of = _functions(_BASIS)
(
    legadd, legsub, legmulx, legmul, legdiv, legpow, legval, legval2d, legval3d, leggrid2d,
    leggrid3d, legvander, legvander2d, legvander3d, legder, legint, legfit, legcompanion, legroots,
    legfromroots, legline, legtrim,
) = map(_of, _NAMES)  # fmt: skip
leg2poly = _of("leg2poly")
poly2leg = _of("poly2leg")

__all__ = _exported(globals())
__dir__ = _listing(__all__)
