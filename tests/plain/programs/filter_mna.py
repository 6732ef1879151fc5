"""AC and transient analysis of a passive ladder by modified nodal analysis.

L. O. Chua, C. A. Desoer, E. S. Kuh, "Linear and Nonlinear Circuits"; companion
models as in L. W. Nagel's SPICE2 memorandum.
"""
import cmath
import math

import numpy as np
from scipy.linalg import lu_factor, lu_solve


COIL_RESISTANCE = 1.5      # ohm, neglected in the transient
LOSS_TANGENT = 1e-3


class Circuit:
    """Node 0 is ground. One voltage source, connected to node 1."""

    def __init__(self, n_nodes, r_source):
        self.n = n_nodes
        self.rs = r_source
        self.parts = []

    def R(self, a, b, value):
        self.parts.append(('R', a, b, value))

    def L(self, a, b, value):
        self.parts.append(('L', a, b, value))

    def C(self, a, b, value):
        self.parts.append(('C', a, b, value))

    @staticmethod
    def stamp(Y, a, b, y):
        if a > 0:
            Y[a - 1, a - 1] += y
        if b > 0:
            Y[b - 1, b - 1] += y
        if a > 0 and b > 0:
            Y[a - 1, b - 1] -= y
            Y[b - 1, a - 1] -= y

    def ac(self, f, amplitude=1.0):
        w = 2 * math.pi * f
        Y = np.zeros((self.n, self.n), dtype=complex)
        for kind, a, b, val in self.parts:
            if kind == 'R':
                y = 1 / val
            elif kind == 'L':
                y = 1 / complex(COIL_RESISTANCE, w * val)
            else:
                y = complex(w * val * LOSS_TANGENT, w * val)
            self.stamp(Y, a, b, y)
        Y[0, 0] += 1 / self.rs
        J = np.zeros(self.n, dtype=complex)
        J[0] = amplitude / self.rs
        return np.linalg.solve(Y, J)

    def step_response(self, dt, steps):
        """Trapezoidal rule, unit step at the source."""
        G = np.zeros((self.n, self.n))
        G[0, 0] = 1 / self.rs
        for kind, a, b, val in self.parts:
            g = {'R': 1 / val, 'L': dt / (2 * val), 'C': 2 * val / dt}[kind]
            self.stamp(G, a, b, g)
        lu = lu_factor(G)
        store = [k for k in self.parts if k[0] != 'R']
        i_eq = np.zeros(len(store))
        v = np.zeros(self.n)
        out = np.zeros((steps, self.n))
        for s in range(steps):
            J = np.zeros(self.n)
            J[0] += 1 / self.rs
            for m, (kind, a, b, val) in enumerate(store):
                if a: J[a - 1] += i_eq[m]
                if b: J[b - 1] -= i_eq[m]
            v = lu_solve(lu, J)
            for m, (kind, a, b, val) in enumerate(store):
                vab = (v[a - 1] if a else 0) - (v[b - 1] if b else 0)
                if kind == 'C':
                    i_eq[m] = 4 * val / dt * vab - i_eq[m]
                else:
                    i_eq[m] = -dt / val * vab + i_eq[m]
            out[s] = v
        return out


def ladder(c1, l1, c2, load=50.0):
    ckt = Circuit(2, 50.0)
    ckt.C(1, 0, c1); ckt.L(1, 2, l1); ckt.C(2, 0, c2); ckt.R(2, 0, load)
    return ckt


POINT = np.array([330e-9, 1.6e-3, 300e-9, 55.0])
DECIDES = False


def main(p):
    v = ladder(*p).ac(9e3)
    return 20 * math.log10(abs(v[1]))


def outputs(p):
    ckt = ladder(*p)
    hs = [ckt.ac(f)[1] for f in (1e3, 5e3, 8e3, 12e3, 20e3)]
    step = ckt.step_response(dt=2e-6, steps=60)
    return np.r_[[abs(h) for h in hs], [cmath.phase(h) for h in hs], step[9::10, 1]]
