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
from functrans.numpy.polynomial.series import Basis as _Basis
from functrans.numpy.polynomial.series import functions as _functions

_BASIS = _Basis("legendre", "leg", lambda k: ((2 * k + 1) / (k + 1), 0.0, -k / (k + 1)))

_of = _functions(_BASIS)
legadd = _of("add")
legsub = _of("sub")
legmulx = _of("mulx")
legmul = _of("mul")
legdiv = _of("div")
legpow = _of("pow")
legval = _of("val")
legval2d = _of("val2d")
legval3d = _of("val3d")
leggrid2d = _of("grid2d")
leggrid3d = _of("grid3d")
legvander = _of("vander")
legvander2d = _of("vander2d")
legvander3d = _of("vander3d")
legder = _of("der")
legint = _of("int")
legfit = _of("fit")
legcompanion = _of("companion")
legroots = _of("roots")
legfromroots = _of("fromroots")
legline = _of("line")
legtrim = _of("trim")
leg2poly = _of("leg2poly")
poly2leg = _of("poly2leg")

__all__ = _exported(globals())
__dir__ = _listing(__all__)
