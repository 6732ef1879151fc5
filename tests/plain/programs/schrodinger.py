"""Tunnelling splitting and transition rates in a double well.

Finite difference Schroedinger equation; D. J. Griffiths, "Introduction to
Quantum Mechanics"; the quartic well as in L. D. Landau and E. M. Lifshitz,
"Quantum Mechanics", section 50. Units hbar = m = 1.
"""
from numpy import *
from scipy.linalg import eigh_tridiagonal, expm
from scipy.special import eval_hermite, factorial


class Grid:
    def __init__(self, half_width=6.0, n=121):
        self.x, self.h = linspace(-half_width, half_width, n, retstep=True)


def double_well(x, barrier, separation, tilt=0.0):
    a = separation / 2
    return barrier * ((x / a)**2 - 1)**2 + tilt * x


def levels(grid, potential, k=4):
    """Lowest k energies and normalised wave functions (columns)."""
    n = len(grid.x)
    diag = 1 / grid.h**2 + potential
    off = full(n - 1, -0.5 / grid.h**2)
    E, psi = eigh_tridiagonal(diag, off, select='i', select_range=(0, k - 1))
    psi = psi / sqrt(grid.h)
    return E, psi


def oscillator_state(x, n, omega, centre):
    xi = sqrt(omega) * (x - centre)
    norm = (omega / pi)**0.25 / sqrt(2.0**n * factorial(n))
    return norm * eval_hermite(n, xi) * exp(-xi**2 / 2)


def dipole_matrix(grid, psi):
    k = psi.shape[1]
    D = empty((k, k))
    for i in range(k):
        for j in range(k):
            D[i, j] = grid.h * sum(psi[:, i] * grid.x * psi[:, j])
    return D


def survival(E, psi, start, grid, times):
    """|<start| exp(-iHt) |start>|^2 in the truncated eigenbasis."""
    c = grid.h * psi.T @ start
    amp = array([sum(c**2 * exp(-1j * E * t)) for t in times])
    return abs(amp)**2


def driven_two_level(delta, coupling, t):
    H = array([[0, coupling], [coupling, delta]], dtype=complex)
    U = expm(-1j * H * t)
    return abs(U[1, 0])**2


POINT = 2.0               # height of the barrier
DECIDES = False
GRID = Grid()


def main(p):
    E, psi = levels(GRID, double_well(GRID.x, p, 2.6, tilt=0.08))
    return E[1] - E[0]


def outputs(p):
    sep = 2.6
    E, psi = levels(GRID, double_well(GRID.x, p, sep, 0.08))
    D = dipole_matrix(GRID, psi)
    omega = sqrt(32 * p) / sep          # curvature at the minima
    start = oscillator_state(GRID.x, 0, omega, -sep / 2)
    surv = survival(E, psi, start, GRID, times=linspace(0, 8, 5))
    rabi = driven_two_level(E[1] - E[0], 0.1 * abs(D[0, 1]), t=10.0)
    return concatenate([E, diag(D), [abs(D[0, 1])], surv, [rabi]])
