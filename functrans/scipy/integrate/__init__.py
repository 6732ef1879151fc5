"""``scipy.integrate``: initial value problems and quadrature, traced and differentiated.

Here: re-exports of the modules of this package, and SciPy's ``IntegrationWarning``, which is given
where a tolerance or a time was not reached.

Layer: ``scipy``.
"""

import typing as _typing

from functrans.core.boundary import guard as _guard
from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.scipy.dispatch import later as _later
from functrans.scipy.integrate.odes import odeint as odeint
from functrans.scipy.integrate.odes import solve_ivp as solve_ivp
from functrans.scipy.integrate.odes_results import OdeResult as OdeResult
from functrans.scipy.integrate.odes_results import OdeSolution as OdeSolution
from functrans.scipy.integrate.quadrature import cumulative_simpson as cumulative_simpson
from functrans.scipy.integrate.quadrature import dblquad as dblquad
from functrans.scipy.integrate.quadrature import fixed_quad as fixed_quad
from functrans.scipy.integrate.quadrature import quad as quad
from functrans.scipy.integrate.quadrature import quad_vec as quad_vec
from functrans.scipy.integrate.quadrature import romb as romb
from functrans.scipy.integrate.quadrature import simpson as simpson

if _typing.TYPE_CHECKING:
    from scipy.integrate import IntegrationWarning as IntegrationWarning
    from scipy.integrate import cumulative_trapezoid as cumulative_trapezoid
    from scipy.integrate import trapezoid as trapezoid
else:
    __getattr__ = _later(
        "integrate", ("cumulative_trapezoid", "trapezoid"), ("IntegrationWarning",)
    )

__all__ = _exported(globals(), ("IntegrationWarning", "cumulative_trapezoid", "trapezoid"))
__dir__ = _listing(__all__)
_guard(globals(), __all__)
