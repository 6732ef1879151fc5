"""``numpy.polynomial.chebyshev``: series in Chebyshev's polynomials of the first kind.

Here: the names. Not here: what they compute (``series``). The class and what takes no arrays are
NumPy's own.

Layer: ``numpy``.
"""

from numpy.polynomial.chebyshev import Chebyshev as Chebyshev
from numpy.polynomial.chebyshev import chebdomain as chebdomain
from numpy.polynomial.chebyshev import chebgauss as chebgauss
from numpy.polynomial.chebyshev import chebinterpolate as chebinterpolate
from numpy.polynomial.chebyshev import chebone as chebone
from numpy.polynomial.chebyshev import chebpts1 as chebpts1
from numpy.polynomial.chebyshev import chebpts2 as chebpts2
from numpy.polynomial.chebyshev import chebweight as chebweight
from numpy.polynomial.chebyshev import chebx as chebx
from numpy.polynomial.chebyshev import chebzero as chebzero

from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.numpy.polynomial.series import NAMES as _NAMES
from functrans.numpy.polynomial.series import Basis as _Basis
from functrans.numpy.polynomial.series import functions as _functions

_BASIS = _Basis("chebyshev", "cheb", lambda k: (2.0 if k else 1.0, 0.0, -1.0 if k else 0.0))

_of = _functions(_BASIS)
(
    chebadd, chebsub, chebmulx, chebmul, chebdiv, chebpow, chebval, chebval2d, chebval3d,
    chebgrid2d, chebgrid3d, chebvander, chebvander2d, chebvander3d, chebder, chebint, chebfit,
    chebcompanion, chebroots, chebfromroots, chebline, chebtrim,
) = map(_of, _NAMES)  # fmt: skip
cheb2poly = _of("cheb2poly")
poly2cheb = _of("poly2cheb")

__all__ = _exported(globals())
__dir__ = _listing(__all__)
