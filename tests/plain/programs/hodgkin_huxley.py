"""Hodgkin-Huxley axon: spike under a current step, Rush-Larsen integration of the gates.

A. L. Hodgkin and A. F. Huxley (1952); P. Dayan and L. F. Abbott, "Theoretical Neuroscience",
chapter 5.
"""
from math import exp

import numpy as np

E_NA, E_K, E_L = 50.0, -77.0, -54.387      # mV


def vtrap(x, y):
    """x / (exp(x/y) - 1) without 0/0."""
    if abs(x / y) < 1e-6:
        return y * (1 - x / y / 2)
    return x / (exp(x / y) - 1)


class Gate:
    def __init__(self, alpha, beta):
        self.alpha, self.beta = alpha, beta

    def steady(self, v):
        a, b = self.alpha(v), self.beta(v)
        return a / (a + b)

    def advance(self, z, v, dt, q10=1.0):
        a, b = q10 * self.alpha(v), q10 * self.beta(v)
        z_inf = a / (a + b)
        return z_inf + (z - z_inf) * exp(-dt * (a + b))


GATES = {
    'm': Gate(lambda v: 0.1 * vtrap(-(v + 40), 10), lambda v: 4 * exp(-(v + 65) / 18)),
    'h': Gate(lambda v: 0.07 * exp(-(v + 65) / 20), lambda v: 1 / (1 + exp(-(v + 35) / 10))),
    'n': Gate(lambda v: 0.01 * vtrap(-(v + 55), 10), lambda v: 0.125 * exp(-(v + 65) / 80)),
}


def simulate(g_na, g_k, g_l, current, dt=0.02, t_end=12.0, v0=-65.0):
    steps = int(round(t_end / dt))
    t = np.arange(steps + 1) * dt
    V = np.empty(steps + 1)
    V[0] = v0
    state = {name: gate.steady(v0) for name, gate in GATES.items()}
    ions = np.zeros((steps + 1, 3))
    for k in range(steps):
        v = V[k]
        for name, gate in GATES.items():
            state[name] = gate.advance(state[name], v, dt)
        gna = g_na * state['m']**3 * state['h']
        gk = g_k * state['n']**4
        ions[k] = gna * (v - E_NA), gk * (v - E_K), g_l * (v - E_L)
        stim = current if 1.0 <= t[k] < 11.0 else 0.0
        # exponential Euler for the membrane, C = 1 uF/cm2
        g_tot = gna + gk + g_l
        v_inf = (gna * E_NA + gk * E_K + g_l * E_L + stim) / g_tot
        V[k + 1] = v_inf + (v - v_inf) * exp(-dt * g_tot)
    return t, V, ions


def spikes(t, V, threshold=0.0):
    """Upward crossings, by linear interpolation."""
    times = []
    for k in range(len(V) - 1):
        if V[k] < threshold <= V[k + 1]:
            frac = (threshold - V[k]) / (V[k + 1] - V[k])
            times.append(t[k] + frac * (t[k + 1] - t[k]))
    return times


POINT = np.array([120.0, 36.0, 0.3, 12.0])
DECIDES = True


def main(p):
    """Latency of the first spike, ms."""
    t, V, _ = simulate(*p)
    found = spikes(t, V)
    if not found:
        raise RuntimeError('no spike')
    return found[0] - 1.0


def outputs(p):
    t, V, ions = simulate(*p)
    charge = np.sum(ions, axis=0) * (t[1] - t[0])
    return np.array([V.max(), V.min(), V[400], charge[0], charge[1]])
