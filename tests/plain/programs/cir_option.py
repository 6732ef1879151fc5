"""Option on a zero bond in the Cox-Ingersoll-Ross model, against a binomial lattice.

J. C. Cox, J. E. Ingersoll and S. A. Ross (1985), equations 23 and 32; lattice of D. B. Nelson
and K. Ramaswamy (1990).
"""
from collections import namedtuple

import numpy as np
from numpy import exp, log, sqrt
from scipy.stats import ncx2

CIR = namedtuple('CIR', 'kappa theta sigma r0')


def ab(m, tau):
    g = sqrt(m.kappa**2 + 2 * m.sigma**2)
    den = (g + m.kappa) * (exp(g * tau) - 1) + 2 * g
    A = (2 * g * exp((m.kappa + g) * tau / 2) / den) ** (2 * m.kappa * m.theta / m.sigma**2)
    B = 2 * (exp(g * tau) - 1) / den
    return A, B


def zero_bond(m, tau, r=None):
    r = m.r0 if r is None else r
    A, B = ab(m, tau)
    return A * exp(-B * r)


def call_on_bond(m, T, S, K):
    """Expiry T of a call on the bond that pays 1 at S."""
    A, B = ab(m, S - T)
    r_star = log(A / K) / B
    g = sqrt(m.kappa**2 + 2 * m.sigma**2)
    phi = 2 * g / (m.sigma**2 * (exp(g * T) - 1))
    psi = (m.kappa + g) / m.sigma**2
    df = 4 * m.kappa * m.theta / m.sigma**2
    grow = 2 * phi**2 * m.r0 * exp(g * T)
    c1 = ncx2.cdf(2 * r_star * (phi + psi + B), df, grow / (phi + psi + B))
    c2 = ncx2.cdf(2 * r_star * (phi + psi), df, grow / (phi + psi))
    return zero_bond(m, S) * c1 - K * zero_bond(m, T) * c2


def lattice_call(m, T, S, K, n=40):
    """Binomial lattice in x = 2 sqrt(r) / sigma, jumps of sqrt(dt)."""
    dt = T / n
    x0 = 2 * sqrt(m.r0) / m.sigma

    def rate(x):
        return m.sigma**2 * x**2 / 4 if x > 0 else 0.0
    V = np.zeros(n + 1)
    for j in range(n + 1):
        V[j] = max(zero_bond(m, S - T, rate(x0 + (2 * j - n) * sqrt(dt))) - K, 0.0)
    for i in range(n - 1, -1, -1):
        new = np.zeros(i + 1)
        for j in range(i + 1):
            x = x0 + (2 * j - i) * sqrt(dt)
            r = rate(x)
            up, down = rate(x + sqrt(dt)), rate(x - sqrt(dt))
            if up > down:
                p = (m.kappa * (m.theta - r) * dt + r - down) / (up - down)
                p = min(max(p, 0.0), 1.0)
            else:
                p = 1.0         # reflected at zero
            new[j] = exp(-r * dt) * (p * V[j + 1] + (1 - p) * V[j])
        V = new
    return V[0]


POINT = np.array([0.6, 0.05, 0.12, 0.04])
DECIDES = True


def main(x):
    m = CIR(*x)
    if 2 * m.kappa * m.theta < m.sigma**2:
        raise ValueError('Feller condition violated')
    return 100 * call_on_bond(m, 1.0, 4.0, 0.86)


def outputs(x):
    m = CIR(*x)
    yields = [-log(zero_bond(m, tau)) / tau for tau in (1.0, 5.0, 10.0)]
    return np.array(yields + [call_on_bond(m, 1.0, 4.0, 0.86), lattice_call(m, 1.0, 4.0, 0.86)])
