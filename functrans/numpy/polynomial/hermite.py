"""``numpy.polynomial.hermite``: series in Hermite's polynomials of physics.

Here: the names. Not here: what they compute (``series``). The class and what takes no arrays are
NumPy's own.

Layer: ``numpy``.
"""

from numpy.polynomial.hermite import Hermite as Hermite
from numpy.polynomial.hermite import hermdomain as hermdomain
from numpy.polynomial.hermite import hermgauss as hermgauss
from numpy.polynomial.hermite import hermone as hermone
from numpy.polynomial.hermite import hermweight as hermweight
from numpy.polynomial.hermite import hermx as hermx
from numpy.polynomial.hermite import hermzero as hermzero

from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.numpy.polynomial.series import NAMES as _NAMES
from functrans.numpy.polynomial.series import Basis as _Basis
from functrans.numpy.polynomial.series import functions as _functions

_BASIS = _Basis("hermite", "herm", lambda k: (2.0, 0.0, -2.0 * k))

_of = _functions(_BASIS)
(
    hermadd, hermsub, hermmulx, hermmul, hermdiv, hermpow, hermval, hermval2d, hermval3d,
    hermgrid2d, hermgrid3d, hermvander, hermvander2d, hermvander3d, hermder, hermint, hermfit,
    hermcompanion, hermroots, hermfromroots, hermline, hermtrim,
) = map(_of, _NAMES)  # fmt: skip
herm2poly = _of("herm2poly")
poly2herm = _of("poly2herm")

__all__ = _exported(globals())
__dir__ = _listing(__all__)
