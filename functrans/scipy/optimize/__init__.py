"""``functrans.scipy.optimize``: solvers with exact derivatives.

Here: ``as_scipy``, which prepares a function for SciPy's solvers; SciPy's ``minimize``,
``minimize_scalar``, ``root``, ``root_scalar``, ``least_squares``, ``curve_fit`` with derivatives
filled in; and solvers that are programs themselves, which can be compiled and batched: ``newton``,
``bisect``, ``brentq``, ``root_newton``, ``minimize_bfgs``. Not here: derivatives through solvers
(``ft.implicit_diff``, ``ft.custom_root``, ``ft.fixed_point``).

Layer: ``scipy``.
"""

from functrans.core.boundary import guard as _guard
from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.scipy.optimize.drivers import minimize as minimize
from functrans.scipy.optimize.drivers import minimize_scalar as minimize_scalar
from functrans.scipy.optimize.drivers import root as root
from functrans.scipy.optimize.drivers import root_scalar as root_scalar
from functrans.scipy.optimize.fitting import curve_fit as curve_fit
from functrans.scipy.optimize.fitting import least_squares as least_squares
from functrans.scipy.optimize.objective import ScipyFunction as ScipyFunction
from functrans.scipy.optimize.objective import as_scipy as as_scipy
from functrans.scipy.optimize.objective import rosen as rosen
from functrans.scipy.optimize.traced import MinimizeResult as MinimizeResult
from functrans.scipy.optimize.traced import bisect as bisect
from functrans.scipy.optimize.traced import brentq as brentq
from functrans.scipy.optimize.traced import minimize_bfgs as minimize_bfgs
from functrans.scipy.optimize.traced import newton as newton
from functrans.scipy.optimize.traced import root_newton as root_newton

__all__ = _exported(globals())
__dir__ = _listing(__all__)
_guard(globals(), __all__)
