"""Vapour-liquid flash of a natural gas mixture with the Peng-Robinson equation.

D.-Y. Peng and D. B. Robinson (1976); algorithm from M. L. Michelsen and
J. M. Mollerup, "Thermodynamic Models: Fundamentals & Computational Aspects".
"""
import numpy as np
from numpy import sqrt, exp, log
from scipy.optimize import brentq

R = 8.314462618

#           methane   propane   n-pentane
TC = np.array([190.56, 369.83, 469.70])
PC = np.array([4.599e6, 4.248e6, 3.370e6])
ACENTRIC = np.array([0.0115, 0.1523, 0.2515])
KIJ = np.array([[0, 0.014, 0.023], [0.014, 0, 0.0027], [0.023, 0.0027, 0]])


class PengRobinson:
    def __init__(self, T, P):
        self.T, self.P = T, P
        kappa = 0.37464 + 1.54226 * ACENTRIC - 0.26992 * ACENTRIC**2
        alpha = (1 + kappa * (1 - sqrt(T / TC)))**2
        a = 0.45724 * R**2 * TC**2 / PC * alpha
        self.b = 0.07780 * R * TC / PC
        self.aij = sqrt(np.outer(a, a)) * (1 - KIJ)

    def ln_phi(self, x, phase):
        RT = R * self.T
        am = x @ self.aij @ x
        bm = x @ self.b
        A = am * self.P / RT**2
        B = bm * self.P / RT
        Z = self.compressibility(A, B, phase)
        s2 = sqrt(2)
        bracket = 2 * (self.aij @ x) / am - self.b / bm
        out = self.b / bm * (Z - 1) - log(Z - B)
        out -= A / (2 * s2 * B) * bracket * log((Z + (1 + s2) * B) / (Z + (1 - s2) * B))
        return out, Z

    @staticmethod
    def compressibility(A, B, phase):
        roots = np.roots([1, B - 1, A - 3 * B**2 - 2 * B, -(A * B - B**2 - B**3)])
        real = [z.real for z in roots if abs(z.imag) < 1e-9 and z.real > B]
        return max(real) if phase == 'vapour' else min(real)


def wilson(T: float, P: float) -> np.ndarray:
    return PC / P * exp(5.373 * (1 + ACENTRIC) * (1 - TC / T))


def rachford_rice(z, K):
    def g(beta):
        return np.sum(z * (K - 1) / (1 + beta * (K - 1)))
    if g(0.0) <= 0:
        return 0.0
    if g(1.0) >= 0:
        return 1.0
    return brentq(g, 0, 1, xtol=1e-14)


def flash(z, T, P, tol=1e-11, verbose=False):
    eos = PengRobinson(T, P)
    K = wilson(T, P)
    change, it = 1.0, 0
    while change > tol and it < 200:
        beta = rachford_rice(z, K)
        x = z / (1 + beta * (K - 1))
        y = K * x
        x, y = x / x.sum(), y / y.sum()
        lnL, ZL = eos.ln_phi(x, 'liquid')
        lnV, ZV = eos.ln_phi(y, 'vapour')
        K_new = exp(lnL - lnV)
        change = np.max(np.abs(log(K_new / K)))
        K = K_new
        it += 1
        if verbose:
            print('%3d  beta = %.6f  change = %.2e' % (it, beta, change))
    return beta, x, y, ZL, ZV


POINT = np.array([320.0, 3.0, 0.45, 0.35])     # K, MPa, mole fractions of the first two
DECIDES = True


def run(p):
    T, P, z1, z2 = p
    z = np.array([z1, z2, 1 - z1 - z2])
    return flash(z, float(T), float(P) * 1e6)


def main(p):
    return run(p)[0]


def outputs(p):
    beta, x, y, ZL, ZV = run(p)
    volumes = [Z * R * p[0] / (p[1] * 1e6) for Z in (ZL, ZV)]
    return np.concatenate([[beta], x, y, [ZL, ZV], np.array(volumes) * 1e6])
