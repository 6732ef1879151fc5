"""``numpy.polynomial.polynomial``: series in powers of ``x``.

Here: the names. Not here: what they compute (``series``). The class and what takes no arrays are
NumPy's own.

Layer: ``numpy``.
"""

import numpy as np
from numpy.polynomial.polynomial import Polynomial as Polynomial
from numpy.polynomial.polynomial import polydomain as polydomain
from numpy.polynomial.polynomial import polyone as polyone
from numpy.polynomial.polynomial import polyx as polyx
from numpy.polynomial.polynomial import polyzero as polyzero
from numpy.typing import ArrayLike

from functrans.core.dispatch import shape_of
from functrans.core.values import Array
from functrans.namespaces import listing as _listing
from functrans.numpy.common import as_array, inexact
from functrans.numpy.dispatch import implements
from functrans.numpy.polynomial.series import NAMES, Basis, functions
from functrans.numpy.reductions import prod
from functrans.numpy.shaping import at_least
from functrans.primitives import structural

_BASIS = Basis("polynomial", "poly", lambda k: (1.0, 0.0, 0.0))

_of = functions(_BASIS)
(
    polyadd, polysub, polymulx, polymul, polydiv, polypow, polyval, polyval2d, polyval3d,
    polygrid2d, polygrid3d, polyvander, polyvander2d, polyvander3d, polyder, polyint, polyfit,
    polycompanion, polyroots, polyfromroots, polyline, polytrim,
) = map(_of, NAMES)  # fmt: skip


@implements(np.polynomial.polynomial.polyvalfromroots)
def polyvalfromroots(x: ArrayLike, r: ArrayLike, tensor: bool = True) -> Array:
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
