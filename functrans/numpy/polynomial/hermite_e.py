"""``numpy.polynomial.hermite_e``: series in Hermite's polynomials of probability.

Here: the names. Not here: what they compute (``series``). The class and what takes no arrays are
NumPy's own.

Layer: ``numpy``.
"""

from numpy.polynomial.hermite_e import HermiteE as HermiteE
from numpy.polynomial.hermite_e import hermedomain as hermedomain
from numpy.polynomial.hermite_e import hermegauss as hermegauss
from numpy.polynomial.hermite_e import hermeone as hermeone
from numpy.polynomial.hermite_e import hermeweight as hermeweight
from numpy.polynomial.hermite_e import hermex as hermex
from numpy.polynomial.hermite_e import hermezero as hermezero

from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.numpy.polynomial.series import Basis as _Basis
from functrans.numpy.polynomial.series import functions as _functions

_BASIS = _Basis("hermite_e", "herme", lambda k: (1.0, 0.0, -1.0 * k))

_of = _functions(_BASIS)
hermeadd = _of("add")
hermesub = _of("sub")
hermemulx = _of("mulx")
hermemul = _of("mul")
hermediv = _of("div")
hermepow = _of("pow")
hermeval = _of("val")
hermeval2d = _of("val2d")
hermeval3d = _of("val3d")
hermegrid2d = _of("grid2d")
hermegrid3d = _of("grid3d")
hermevander = _of("vander")
hermevander2d = _of("vander2d")
hermevander3d = _of("vander3d")
hermeder = _of("der")
hermeint = _of("int")
hermefit = _of("fit")
hermecompanion = _of("companion")
hermeroots = _of("roots")
hermefromroots = _of("fromroots")
hermeline = _of("line")
hermetrim = _of("trim")
herme2poly = _of("herme2poly")
poly2herme = _of("poly2herme")

__all__ = _exported(globals())
__dir__ = _listing(__all__)
