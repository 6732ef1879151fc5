"""Radiation of a hot filament in the visible, and its temperature under a current.

Adaptive Simpson quadrature (J. N. Lyness, 1969) of Planck's law, step-doubling
Runge-Kutta for the heating (W. H. Press et al., "Numerical Recipes", 16.2).
"""
import math

import numpy as np
from scipy.integrate import quad

H, C, KB = 6.62607015e-34, 2.99792458e8, 1.380649e-23
SIGMA = 5.670374419e-8


def planck(lam, T):
    """Spectral exitance in W/m2 per metre."""
    x = H * C / (lam * KB * T)
    if x > 700:
        return 0.0
    return 2 * math.pi * H * C**2 / lam**5 / math.expm1(x)


def adaptive_simpson(f, a, b, eps):
    calls = 0

    def fc(x):
        nonlocal calls
        calls += 1
        return f(x)

    def simpson(fa, fm, fb, width):
        return width / 6 * (fa + 4 * fm + fb)

    def recurse(a, fa, b, fb, m, fm, whole, eps, depth):
        lm, rm = (a + m) / 2, (m + b) / 2
        flm, frm = fc(lm), fc(rm)
        left = simpson(fa, flm, fm, m - a)
        right = simpson(fm, frm, fb, b - m)
        delta = left + right - whole
        if depth <= 0 or abs(delta) <= 15 * eps:
            return left + right + delta / 15
        return (recurse(a, fa, m, fm, lm, flm, left, eps / 2, depth - 1)
                + recurse(m, fm, b, fb, rm, frm, right, eps / 2, depth - 1))

    m = (a + b) / 2
    fa, fm, fb = fc(a), fc(m), fc(b)
    total = recurse(a, fa, b, fb, m, fm, simpson(fa, fm, fb, b - a), eps, 20)
    return total, calls


def band_exitance(T, lo, hi, eps=1e-3):
    value, calls = adaptive_simpson(lambda lam: planck(lam, T), lo, hi, eps)
    return value


def rk4(f, t, y, h):
    k1 = f(t, y)
    k2 = f(t + h / 2, y + h / 2 * k1)
    k3 = f(t + h / 2, y + h / 2 * k2)
    k4 = f(t + h, y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def heat_up(current, t_end=0.4, tol=1e-3):
    """Tungsten wire 50 um thick, per metre; resistivity grows with temperature."""
    d = 50e-6
    area, surface = math.pi * d**2 / 4, math.pi * d
    heat_capacity = 19300 * 140 * area

    def rate(t, T):
        rho = 5.6e-8 * (T / 300)**1.2
        emissivity = 0.03 + 1e-4 * T
        return (current**2 * rho / area - emissivity * SIGMA * surface * (T**4 - 300.0**4)) / heat_capacity

    t, T, h = 0.0, 300.0, 0.01
    ts, Ts = [t], [T]
    while t < t_end:
        h = min(h, t_end - t)
        big = rk4(rate, t, T, h)
        small = rk4(rate, t + h / 2, rk4(rate, t, T, h / 2), h / 2)
        err = abs(small - big) / 15
        if err <= tol:
            t += h
            T = small + (small - big) / 15
            ts.append(t)
            Ts.append(T)
        h *= min(4.0, max(0.2, 0.9 * (tol / (err + 1e-30))**0.2))
    return np.array(ts), np.array(Ts)


POINT = 0.62           # ampere
DECIDES = True


def main(p):
    ts, Ts = heat_up(p)
    T = Ts[-1]
    return band_exitance(T, 380e-9, 780e-9) / (SIGMA * T**4)


def outputs(p):
    ts, Ts = heat_up(p)
    temps = np.interp([0.1, 0.2, 0.3, 0.4], ts, Ts)
    T = temps[-1].item()
    bands = [band_exitance(T, lo * 1e-9, (lo + 100) * 1e-9) for lo in range(400, 800, 100)]
    infrared = quad(planck, 0.8e-6, 5e-6, args=(T,))[0]
    spectrum = np.vectorize(planck)(np.linspace(0.4e-6, 2e-6, 5), T) * 1e-9
    return np.concatenate([temps, bands, [infrared], spectrum])
