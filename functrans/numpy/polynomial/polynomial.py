"""``numpy.polynomial.polynomial``: series in powers of ``x``.

Here: the names. Not here: what they compute (``series``). The class and what takes no arrays are
NumPy's own.

Layer: ``numpy``.
"""

from typing import Any

import numpy as np
from numpy.polynomial.polynomial import Polynomial as Polynomial
from numpy.polynomial.polynomial import polydomain as polydomain
from numpy.polynomial.polynomial import polyone as polyone
from numpy.polynomial.polynomial import polyx as polyx
from numpy.polynomial.polynomial import polyzero as polyzero

from functrans.namespaces import listing as _listing
from functrans.numpy.common import as_array, inexact
from functrans.numpy.dispatch import implements
from functrans.numpy.polynomial.series import Basis, functions
from functrans.numpy.reductions import prod
from functrans.numpy.shaping import at_least
from functrans.primitives import structural
from functrans.trace import shape_of

_BASIS = Basis("polynomial", "poly", lambda k: (1.0, 0.0, 0.0))

_of = functions(_BASIS)
polyadd = _of("add")
polysub = _of("sub")
polymulx = _of("mulx")
polymul = _of("mul")
polydiv = _of("div")
polypow = _of("pow")
polyval = _of("val")
polyval2d = _of("val2d")
polyval3d = _of("val3d")
polygrid2d = _of("grid2d")
polygrid3d = _of("grid3d")
polyvander = _of("vander")
polyvander2d = _of("vander2d")
polyvander3d = _of("vander3d")
polyder = _of("der")
polyint = _of("int")
polyfit = _of("fit")
polycompanion = _of("companion")
polyroots = _of("roots")
polyfromroots = _of("fromroots")
polyline = _of("line")
polytrim = _of("trim")


@implements(np.polynomial.polynomial.polyvalfromroots)
def polyvalfromroots(x: Any, r: Any, tensor: bool = True) -> Any:
    """Value of the monic polynomial with given roots; ``r: f64[n, ...]``."""
    zeros, points = inexact(at_least(as_array(r), 1)), as_array(x)
    shape = shape_of(zeros)
    if tensor:
        zeros = structural.reshape(zeros, shape + (1,) * len(shape_of(points)))
    elif len(shape_of(points)) >= len(shape):
        raise ValueError("x.ndim must be < r.ndim when tensor == False")
    return prod.traced(points - zeros, 0)  # type: ignore[attr-defined]  # set by implements


__all__ = [
    "Polynomial", "polyadd", "polycompanion", "polyder", "polydiv", "polydomain", "polyfit",
    "polyfromroots", "polygrid2d", "polygrid3d", "polyint", "polyline", "polymul", "polymulx",
    "polyone", "polypow", "polyroots", "polysub", "polytrim", "polyval", "polyval2d", "polyval3d",
    "polyvalfromroots", "polyvander", "polyvander2d", "polyvander3d", "polyx", "polyzero",
]  # fmt: skip
__dir__ = _listing(__all__)
