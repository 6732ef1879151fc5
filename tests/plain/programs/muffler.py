"""Transmission loss of a muffler: expansion chamber with extended inlet, perforate and resonator.

M. L. Munjal, "Acoustics of Ducts and Mufflers", chapters 2 and 3.
"""
import numpy as np
from scipy.special import jv, struve

RHO = 1.2
C0 = 343.0


class Element(object):
    """Acoustic four-pole in pressure and volume velocity."""

    def matrix(self, k):
        raise NotImplementedError

    def __mul__(self, other):
        return Chain([self, other])


class Chain(Element):
    def __init__(self, parts):
        self.parts = list(parts)

    def __mul__(self, other):
        return Chain(self.parts + [other])

    def matrix(self, k):
        M = np.eye(2, dtype=complex)
        for part in self.parts:
            M = np.dot(M, part.matrix(k))
        return M


class Duct(Element):
    def __init__(self, length, radius):
        self.l = length
        self.S = np.pi * radius**2

    def matrix(self, k):
        kc = k * (1 - 0.004j)           # wall losses
        Y = RHO * C0 / self.S
        M = np.zeros((2, 2), complex)
        M[0, 0] = M[1, 1] = np.cos(kc * self.l)
        M[0, 1] = 1j * Y * np.sin(kc * self.l)
        M[1, 0] = 1j / Y * np.sin(kc * self.l)
        return M


class Shunt(Element):
    def __init__(self, impedance):
        self.Z = impedance

    def matrix(self, k):
        M = np.eye(2, dtype=complex)
        M[1, 0] = 1 / self.Z(k)
        return M


def quarter_wave(length, area):
    def Z(k):
        kc = k * (1 - 0.01j)
        return -1j * RHO * C0 / area / np.tan(kc * length)
    return Z


def helmholtz(neck_length, neck_radius, volume):
    area = np.pi * neck_radius**2

    def Z(k):
        # piston radiation at the outer end of the neck
        x = 2 * k * neck_radius
        rad = RHO * C0 / area * (1 - 2 * jv(1, x) / x + 2j * struve(1, x) / x)
        mass = 1j * RHO * C0 * k * (neck_length + 0.6 * neck_radius) / area
        stiff = RHO * C0 / (1j * k * volume)
        return rad + mass + stiff
    return Z


def transmission_loss(system, f, r_pipe):
    k = 2 * np.pi * f / C0
    (A, B), (Cc, D) = system.matrix(k)
    Y = RHO * C0 / (np.pi * r_pipe**2)
    return 20 * np.log10(abs(A + B / Y + Cc * Y + D) / 2)


def muffler(length, r_chamber, ext, volume, r_pipe=0.025):
    ring = np.pi * (r_chamber**2 - r_pipe**2)
    return (Duct(0.1, r_pipe) * Shunt(quarter_wave(ext, ring)) * Duct(length - ext, r_chamber)
            * Shunt(helmholtz(0.03, 0.012, volume)) * Duct(0.15, r_pipe))


POINT = np.array([0.40, 0.075, 0.12, 0.8])       # m, m, m, litres
DECIDES = False
BANDS = np.array([125., 160, 200, 250, 315, 400, 500, 630, 800, 1000])


def spectrum(x):
    sys = muffler(x[0], x[1], x[2], x[3] * 1e-3)
    return np.array([transmission_loss(sys, f, 0.025) for f in BANDS])


def main(x):
    """Insertion-weighted mean loss, dB, from energies."""
    TL = spectrum(x)
    return -10 * np.log10(np.mean(10 ** (-TL / 10)))


def outputs(x):
    TL = spectrum(x)
    return TL[[0, 3, 5, 7, 9]]
