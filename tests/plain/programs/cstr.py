"""Start-up of a cooled stirred tank reactor, series reaction A -> B -> C.

H. S. Fogler, "Elements of Chemical Reaction Engineering", chapters 8 and 13.
"""
from functools import partial
from math import exp

import numpy
from numpy import array, zeros
from scipy.integrate import solve_ivp, trapezoid

R = 8.314

params = {
    'V': 0.1,            # m3
    'q': 1.0e-3,         # m3/s
    'cA_in': 1000.0,     # mol/m3
    'T_in': 310.0,
    'rho_cp': 4.0e6,
    'A1': 1.2e7, 'E1': 52000.0, 'dH1': -8.0e4,
    'A2': 1.5e9, 'E2': 68000.0, 'dH2': -5.0e4,
    'UA': 900.0, 'T_cool': 298.0,
}


def arrhenius(A, E, T):
    return A * exp(-E / (R * T))


def balances(t, y, par):
    cA, cB, cC, T = y
    r1 = arrhenius(par['A1'], par['E1'], T) * cA
    r2 = arrhenius(par['A2'], par['E2'], T) * cB
    tau = par['V'] / par['q']
    dydt = zeros(4)
    dydt[0] = (par['cA_in'] - cA) / tau - r1
    dydt[1] = -cB / tau + r1 - r2
    dydt[2] = -cC / tau + r2
    dydt[3] = ((par['T_in'] - T) / tau
               - (par['dH1'] * r1 + par['dH2'] * r2) / par['rho_cp']
               - par['UA'] * (T - par['T_cool']) / (par['rho_cp'] * par['V']))
    return dydt


def startup(E1, UA, T_in, cA_in, t_end=600.0, n=61, verbose=False):
    par = dict(params, E1=E1, UA=UA, T_in=T_in, cA_in=cA_in)
    y0 = array([0.0, 0.0, 0.0, T_in])
    sol = solve_ivp(partial(balances, par=par), (0.0, t_end), y0,
                    t_eval=numpy.linspace(0.0, t_end, n), rtol=1e-9, atol=1e-7)
    if verbose:
        print(f'{sol.nfev} evaluations, final T = {sol.y[3, -1]:.2f} K')
    return sol.t, sol.y


def selectivity(t, y):
    b_made = trapezoid(y[1], t)
    c_made = trapezoid(y[2], t)
    return b_made / (b_made + c_made)


POINT = array([52000.0, 900.0, 310.0, 1000.0])
DECIDES = False


def main(p):
    t, y = startup(*p)
    return y[1, -1]


def outputs(p):
    E1, UA, T_in, cA_in = p
    t, y = startup(E1, UA, T_in, cA_in)
    conversion = 1 - y[0, -1] / cA_in
    return numpy.concatenate([y[:, -1], y[3, 10:60:10], [conversion, selectivity(t, y)]])
