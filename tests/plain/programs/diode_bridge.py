"""Transient of a full-wave bridge rectifier with smoothing capacitor, nodal analysis with Newton.

L. W. Nagel, "SPICE2: A Computer Program to Simulate Semiconductor Circuits", chapters 2 and 5.
"""
import statistics

import numpy as np

VT = 0.02585
GMIN = 1e-5          # leakage


class Diode:
    def __init__(self, a, c, i_s=1e-9, n=1.8):
        self.a, self.c = a, c
        self.i_s, self.nvt = i_s, n * VT
        self.vcrit = self.nvt * np.log(self.nvt / (np.sqrt(2) * i_s))
        self.v = 0.0

    def current(self, v):
        """Current and conductance."""
        e = np.exp(v / self.nvt)
        return self.i_s * (e - 1) + GMIN * v, self.i_s * e / self.nvt + GMIN

    def limit(self, v):
        """Junction voltage of this iteration, limited in SPICE's way (pnjlim)."""
        if v > self.vcrit and abs(v - self.v) > 2 * self.nvt:
            if self.v > 0:
                arg = 1 + (v - self.v) / self.nvt
                v = self.v + self.nvt * np.log(arg) if arg > 0 else self.vcrit
            else:
                v = self.nvt * np.log(v / self.nvt)
        self.v = v
        return v

    def stamp(self, G, rhs, V):
        va = V[self.a] if self.a >= 0 else 0.0
        vc = V[self.c] if self.c >= 0 else 0.0
        vd = self.limit(va - vc)
        i, g = self.current(vd)
        ieq = i - g * vd
        for node, other, sign in [(self.a, self.c, -1.0), (self.c, self.a, 1.0)]:
            if node < 0:
                continue
            G[node, node] += g
            rhs[node] += sign * ieq
            if other >= 0:
                G[node, other] -= g


# nodes: 0 and 1 the two ends of the source, 2 the load; ground is -1
BRIDGE = [(0, 2), (1, 2), (-1, 0), (-1, 1)]


def transient(r_load, cap, amplitude, freq=50.0, r_src=1.0, dt=5e-4, steps=60):
    diodes = [Diode(a, c) for a, c in BRIDGE]
    V = np.zeros(3)
    out = np.zeros(steps + 1)
    for k in range(1, steps + 1):
        vs = amplitude * np.sin(2 * np.pi * freq * k * dt)
        v_old = V[2]
        for it in range(100):
            G = np.zeros((3, 3))
            rhs = np.zeros(3)
            # Norton equivalent of the source
            gs = 1 / r_src
            G[0, 0] += gs; G[1, 1] += gs
            G[0, 1] -= gs; G[1, 0] -= gs
            rhs[0] += gs * vs
            rhs[1] -= gs * vs
            G[2, 2] += 1 / r_load + cap / dt
            rhs[2] += cap / dt * v_old
            for d in diodes:
                d.stamp(G, rhs, V)
            new = np.linalg.solve(G, rhs)
            change = np.max(np.abs(new - V))
            V = new
            if change < 1e-10:
                break
        else:
            raise RuntimeError('no convergence at step %d' % k)
        out[k] = V[2]
    return out


POINT = np.array([180.0, 60.0, 5.0])       # ohm, microfarad, volt
DECIDES = True


def run(x):
    return transient(x[0], x[1] * 1e-6, x[2])


def main(x):
    v = run(x)
    return v[-1]


def outputs(x):
    v = run(x)
    last = v[-20:]
    return np.array([last.max(), last.min(), last.max() - last.min(),
                     statistics.fmean([float(u) for u in last]), v[15]])
