"""Saturation pressure and heat of vaporisation with the Soave-Redlich-Kwong equation of state.

J. M. Smith, H. C. Van Ness and M. M. Abbott, "Introduction to Chemical Engineering
Thermodynamics", chapters 3, 6 and 14; cubic by Cardano.
"""
import cmath
import math

import numpy as np

R = 8.314462618


def cubic_roots(b, c, d):
    """Real roots of z^3 + b z^2 + c z + d, ascending."""
    p = c - b * b / 3
    q = 2 * b**3 / 27 - b * c / 3 + d
    disc = (q / 2)**2 + (p / 3)**3
    if disc > 0:
        u = -q / 2 + math.sqrt(disc)
        u = math.copysign(abs(u) ** (1 / 3), u)
        return [u - p / (3 * u) - b / 3]
    u = (-q / 2 + cmath.sqrt(disc)) ** (1 / 3)
    turn = cmath.exp(2j * math.pi / 3)
    roots = []
    for _ in range(3):
        roots.append(2 * u.real - b / 3)
        u *= turn
    return sorted(roots)


class SoaveFluid:
    """A pure fluid given by its critical constants (K, Pa) and acentric factor."""

    def __init__(self, tc, pc, omega):
        self.tc = tc
        self.pc = pc
        self.m = 0.480 + 1.574 * omega - 0.176 * omega**2
        self.ac = 0.42748 * (R * tc)**2 / pc
        self.b = 0.08664 * R * tc / pc

    def alpha(self, T):
        return (1 + self.m * (1 - math.sqrt(T / self.tc)))**2

    def dadT(self, T):
        return -self.ac * self.m * math.sqrt(self.alpha(T) / (T * self.tc))

    def z_factors(self, T, P):
        A = self.ac * self.alpha(T) * P / (R * T)**2
        B = self.b * P / (R * T)
        roots = [z for z in cubic_roots(-1.0, A - B - B * B, -A * B) if z > B]
        return roots[0], roots[-1], A, B

    @staticmethod
    def ln_phi(Z, A, B):
        return Z - 1 - math.log(Z - B) - A / B * math.log(1 + B / Z)

    def h_residual(self, Z, T, B):
        a = self.ac * self.alpha(T)
        return R * T * (Z - 1) + (T * self.dadT(T) - a) / self.b * math.log(1 + B / Z)

    def saturation(self, T, tol=1e-13):
        if T >= self.tc:
            raise ValueError('no saturation above the critical temperature')
        tr = T / self.tc
        P = self.pc * 10 ** (7 / 3 * (1 + (self.m - 0.48) / 1.574) * (1 - 1 / tr))
        n = 0
        while True:
            ZL, ZV, A, B = self.z_factors(T, P)
            if ZV - ZL < 1e-6:         # one phase only: fall back
                P *= 0.9
                continue
            ratio = math.exp(self.ln_phi(ZL, A, B) - self.ln_phi(ZV, A, B))
            P *= ratio
            n += 1
            if abs(ratio - 1) < tol or n > 300:
                break
        ZL, ZV, A, B = self.z_factors(T, P)
        dh = self.h_residual(ZV, T, B) - self.h_residual(ZL, T, B)
        return P, ZL, ZV, dh


POINT = np.array([300.0, 425.12, 37.96, 0.200])      # K, K, bar, -  (n-butane)
DECIDES = True


def main(x):
    fluid = SoaveFluid(x[1], 1e5 * x[2], x[3])
    return fluid.saturation(x[0])[0] / 1e5


def outputs(x):
    T = x[0]
    P, ZL, ZV, dh = SoaveFluid(x[1], 1e5 * x[2], x[3]).saturation(T)
    density = [P / (Z * R * T) for Z in (ZL, ZV)]
    return np.array([P / 1e5, dh / 1e3, density[0] / 1e3, density[1], dh / T])
