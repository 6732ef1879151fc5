"""Reflectance of a multilayer at oblique incidence by characteristic matrices.

M. Born and E. Wolf, "Principles of Optics", section 1.6; H. A. Macleod, "Thin-Film Optical
Filters", chapter 2.
"""
from functools import reduce
from operator import matmul

import numpy as np

DESIGN = 550.0      # nm


def cauchy(a, b):
    def index(lam):
        return a + b / (lam / 1000.0)**2
    return index


silica = cauchy(1.4580, 0.00354)
titania = cauchy(2.3300, 0.0350)


def silver(lam):
    """Drude model, nm; complex index n - ik."""
    energy = 1239.84 / lam
    eps = 4.0 - 9.0**2 / (energy * (energy - 0.021j))
    return np.sqrt(eps)


def layer_matrix(n, d, lam, n0, theta, pol):
    s = n0 * np.sin(theta)
    cos_t = np.sqrt(1 - (s / n + 0j)**2)
    delta = 2 * np.pi * n * d * cos_t / lam
    eta = n * cos_t if pol == 's' else n / cos_t
    return np.array([[np.cos(delta), 1j * np.sin(delta) / eta],
                     [1j * eta * np.sin(delta), np.cos(delta)]])


def stack_rt(layers, lam, theta, pol, n0=1.0, ns=1.52):
    """Reflectance and transmittance; layers from the side of incidence, (index function, nm)."""
    if pol not in ('s', 'p'):
        raise ValueError("polarisation is 's' or 'p'")
    mats = [layer_matrix(n(lam), d, lam, n0, theta, pol) for n, d in layers]
    M = reduce(matmul, mats)
    c0 = np.cos(theta)
    cs = np.sqrt(1 - (n0 * np.sin(theta) / ns)**2)
    eta0, etas = (n0 * c0, ns * cs) if pol == 's' else (n0 / c0, ns / cs)
    B, C = M @ np.array([1.0, etas])
    r = (eta0 * B - C) / (eta0 * B + C)
    R = abs(r)**2
    T = 4 * eta0 * etas / abs(eta0 * B + C)**2
    return R, T


def coating(d_low, d_high, d_metal):
    pairs = [(titania, d_high), (silica, d_low)]
    return pairs * 3 + [(silver, d_metal), (titania, d_high)]


POINT = np.array([94.0, 57.0, 12.0, 35.0])       # nm, nm, nm, degrees
DECIDES = False


def main(x):
    """Mean reflectance of the visible, unpolarised."""
    d1, d2, d3, angle = x
    layers = coating(d1, d2, d3)
    total = 0.0
    lams = np.arange(420.0, 681.0, 20.0)
    for lam in lams:
        total += sum(stack_rt(layers, lam, np.radians(angle), pol)[0] for pol in 'sp') / 2
    return total / len(lams)


def outputs(x):
    layers = coating(*x[:3])
    theta = np.deg2rad(x[3])
    res = {pol: stack_rt(layers, DESIGN, theta, pol) for pol in ('s', 'p')}
    absorbed = [1 - R - T for R, T in res.values()]
    return np.array([res['s'][0], res['p'][0], res['s'][1], res['p'][1], *absorbed])
