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
from functrans.numpy.polynomial.series import Basis as _Basis
from functrans.numpy.polynomial.series import functions as _functions

_BASIS = _Basis("hermite", "herm", lambda k: (2.0, 0.0, -2.0 * k))

_of = _functions(_BASIS)
hermadd = _of("add")
hermsub = _of("sub")
hermmulx = _of("mulx")
hermmul = _of("mul")
hermdiv = _of("div")
hermpow = _of("pow")
hermval = _of("val")
hermval2d = _of("val2d")
hermval3d = _of("val3d")
hermgrid2d = _of("grid2d")
hermgrid3d = _of("grid3d")
hermvander = _of("vander")
hermvander2d = _of("vander2d")
hermvander3d = _of("vander3d")
hermder = _of("der")
hermint = _of("int")
hermfit = _of("fit")
hermcompanion = _of("companion")
hermroots = _of("roots")
hermfromroots = _of("fromroots")
hermline = _of("line")
hermtrim = _of("trim")
herm2poly = _of("herm2poly")
poly2herm = _of("poly2herm")

__all__ = _exported(globals())
__dir__ = _listing(__all__)
