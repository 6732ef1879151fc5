"""``scipy.integrate``: initial value problems and quadrature, traced and differentiated.

Here: re-exports of the modules of this package.

Layer: ``scipy``.
"""

from functrans.scipy.integrate.odes import IntegrationWarning as IntegrationWarning
from functrans.scipy.integrate.odes import OdeResult as OdeResult
from functrans.scipy.integrate.odes import OdeSolution as OdeSolution
from functrans.scipy.integrate.odes import odeint as odeint
from functrans.scipy.integrate.odes import solve_ivp as solve_ivp
from functrans.scipy.integrate.quadrature import cumulative_simpson as cumulative_simpson
from functrans.scipy.integrate.quadrature import cumulative_trapezoid as cumulative_trapezoid
from functrans.scipy.integrate.quadrature import dblquad as dblquad
from functrans.scipy.integrate.quadrature import fixed_quad as fixed_quad
from functrans.scipy.integrate.quadrature import quad as quad
from functrans.scipy.integrate.quadrature import quad_vec as quad_vec
from functrans.scipy.integrate.quadrature import romb as romb
from functrans.scipy.integrate.quadrature import simpson as simpson
from functrans.scipy.integrate.quadrature import trapezoid as trapezoid
