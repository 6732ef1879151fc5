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
from functrans.numpy.polynomial.series import NAMES as _NAMES
from functrans.numpy.polynomial.series import Basis as _Basis
from functrans.numpy.polynomial.series import functions as _functions

_BASIS = _Basis("hermite_e", "herme", lambda k: (1.0, 0.0, -1.0 * k))

_of = _functions(_BASIS)
(
    hermeadd, hermesub, hermemulx, hermemul, hermediv, hermepow, hermeval, hermeval2d, hermeval3d,
    hermegrid2d, hermegrid3d, hermevander, hermevander2d, hermevander3d, hermeder, hermeint,
    hermefit, hermecompanion, hermeroots, hermefromroots, hermeline, hermetrim,
) = map(_of, _NAMES)  # fmt: skip
herme2poly = _of("herme2poly")
poly2herme = _of("poly2herme")

__all__ = _exported(globals())
__dir__ = _listing(__all__)
