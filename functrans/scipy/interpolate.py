"""``scipy.interpolate`` for plain and traced arrays.

Here: the namespace. Interpolants are pytrees: they may be arguments and results of every transform,
and are differentiable in data, abscissas and points. They have SciPy's names, arguments and values;
those whose name SciPy gives to a subclass are functions that return the common class.

Layer: ``scipy``.
"""

from functrans.core.boundary import guard as _guard
from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.scipy.interpolate_multivariate import (
    BarycentricInterpolator as BarycentricInterpolator,
)
from functrans.scipy.interpolate_multivariate import KroghInterpolator as KroghInterpolator
from functrans.scipy.interpolate_multivariate import Polynomial as Polynomial
from functrans.scipy.interpolate_multivariate import RadialInterpolant as RadialInterpolant
from functrans.scipy.interpolate_multivariate import RBFInterpolator as RBFInterpolator
from functrans.scipy.interpolate_multivariate import (
    RegularGridInterpolator as RegularGridInterpolator,
)
from functrans.scipy.interpolate_multivariate import interpn as interpn
from functrans.scipy.interpolate_multivariate import lagrange as lagrange
from functrans.scipy.interpolate_piecewise import Akima1DInterpolator as Akima1DInterpolator
from functrans.scipy.interpolate_piecewise import CubicHermiteSpline as CubicHermiteSpline
from functrans.scipy.interpolate_piecewise import CubicSpline as CubicSpline
from functrans.scipy.interpolate_piecewise import PchipInterpolator as PchipInterpolator
from functrans.scipy.interpolate_piecewise import PPoly as PPoly
from functrans.scipy.interpolate_splines import BSpline as BSpline
from functrans.scipy.interpolate_splines import Interpolant as Interpolant
from functrans.scipy.interpolate_splines import interp1d as interp1d
from functrans.scipy.interpolate_splines import make_interp_spline as make_interp_spline
from functrans.scipy.interpolate_splines import splev as splev
from functrans.scipy.interpolate_splines import splint as splint
from functrans.scipy.interpolate_splines import splrep as splrep

__all__ = _exported(globals())
__dir__ = _listing(__all__)
_guard(globals(), __all__)
