"""Transient temperature of a steel rod heated at one end.

One-dimensional conduction, fixed temperature at the hot end and convection at
the tip, Crank-Nicolson in time (M. N. Ozisik, "Finite Difference Methods in
Heat Transfer"; F. P. Incropera and D. P. DeWitt, "Fundamentals of Heat and
Mass Transfer", chapter 5).
"""
import numpy as np
from scipy.linalg import solve_banded

RHO = 7850.0        # kg/m3
CP = 475.0          # J/kg K
T_START = 293.15    # K


class Rod:
    """Uniform grid of n nodes along a rod."""

    def __init__(self, length, conductivity, n=31):
        self.n = n
        self.k = conductivity
        self.x = np.linspace(0, length, n)
        self.dx = self.x[1] - self.x[0]
        self.T = np.full(n, T_START)

    @property
    def diffusivity(self):
        return self.k / (RHO * CP)

    def _bands(self, dt, h):
        """Matrix (I - dt/2 A) in the diagonal ordered form of solve_banded."""
        r = self.diffusivity * dt / self.dx**2
        ab = np.zeros((3, self.n))
        ab[0, 2:] = -0.5 * r
        ab[1, 1:-1] = 1.0 + r
        ab[2, :-2] = -0.5 * r
        # hot end: Dirichlet
        ab[1, 0] = 1.0
        # tip: half cell with convection
        biot = h * self.dx / self.k
        ab[1, -1] = 1.0 + r * (1.0 + biot)
        ab[2, -2] = -r
        return ab, r, biot

    def run(self, T_hot, h, T_air, dt=10.0, steps=120):
        ab, r, biot = self._bands(dt, h)
        history = np.zeros((steps + 1, self.n))
        self.T[0] = T_hot
        history[0] = self.T
        rhs = np.empty_like(self.T)
        lap = np.zeros(self.n - 2)
        for it in range(steps):
            T = self.T
            rhs[0] = T_hot
            np.add(T[2:], T[:-2], out=lap)
            lap -= 2 * T[1:-1]
            rhs[1:-1] = T[1:-1] + 0.5 * r * lap
            rhs[-1] = T[-1] + r * (T[-2] - (1 + biot) * T[-1]) + 2 * r * biot * T_air
            np.copyto(self.T, solve_banded((1, 1), ab, rhs))
            history[it + 1] = self.T
        return history

    def heat_flux_in(self):
        """Second order one-sided difference at the hot end (W/m2)."""
        T = self.T
        return -self.k * (-3 * T[0] + 4 * T[1] - T[2]) / (2 * self.dx)


def simulate(conductivity, length=0.25, T_hot=480.0, h=60.0):
    rod = Rod(length, conductivity)
    hist = rod.run(T_hot, h, T_air=288.15)
    return rod, hist


POINT = 43.0          # conductivity, W/mK
DECIDES = False


def main(p):
    rod, hist = simulate(p)
    return hist[-1, -1].item()


def outputs(p):
    rod, hist = simulate(p)
    probes = hist[[30, 60, 120]][:, [5, 15, 30]]
    return np.append(probes.ravel(), rod.heat_flux_in())
