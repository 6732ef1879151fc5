"""Gravity and magnetic anomaly of a two-dimensional polygon under a profile.

M. Talwani, J. L. Worzel and M. Landisman (1959); I. J. Won and M. Bevis (1987); R. J. Blakely,
"Potential Theory in Gravity and Magnetic Applications", chapter 9.
"""
import numpy as np
from scipy.signal import argrelmax
from scipy.stats import linregress

G = 6.674e-11
SI2MGAL = 1e5


def polygon_gravity(xo, zo, xc, zc, rho):
    """Vertical attraction at (xo, zo), z positive down; corners clockwise."""
    total = 0.
    n = len(xc)
    for k in range(n):
        k2 = 0 if k == n - 1 else k + 1
        x1, z1 = xc[k] - xo, zc[k] - zo
        x2, z2 = xc[k2] - xo, zc[k2] - zo
        r1sq, r2sq = x1**2 + z1**2, x2**2 + z2**2
        if r1sq == 0. or r2sq == 0.:
            raise ValueError('field point on corner')
        denom = z2 - z1
        if denom == 0.:
            denom = 1e-6
        alpha = (x2 - x1) / denom
        beta = (x1 * z2 - x2 * z1) / denom
        factor = beta / (1. + alpha**2)
        term1 = 0.5 * (np.log(r2sq) - np.log(r1sq))
        term2 = np.arctan2(z2, x2) - np.arctan2(z1, x1)
        total += factor * (term1 - alpha * term2)
    return 2. * G * rho * total * SI2MGAL


def profile(stations, xc, zc, rho):
    out = np.zeros_like(stations)
    for i, s in enumerate(stations):
        out[i] = polygon_gravity(s, 0., xc, zc, rho)
    return out


def fault_block(depth, throw, dip, width=4000.):
    """Corners of a dyke-like block whose sides dip by the same angle (degrees)."""
    slope = throw / np.tan(np.radians(dip))
    xc = np.array([-width / 2, width / 2, width / 2 + slope, -width / 2 + slope])
    zc = np.array([depth, depth, depth + throw, depth + throw])
    return xc, zc


def half_width(stations, g):
    """Distance between the points of half the maximum, linear interpolation."""
    k = np.argmax(g)
    half = g[k] / 2
    i = k
    while g[i] > half:
        i -= 1
    left = stations[i] + (half - g[i]) / (g[i + 1] - g[i]) * (stations[i + 1] - stations[i])
    j = k
    while g[j] > half:
        j += 1
    right = stations[j] - (half - g[j]) / (g[j - 1] - g[j]) * (stations[j] - stations[j - 1])
    return right - left


STATIONS = np.linspace(-9000., 9000., 25)
POINT = np.array([800., 1500., 62., 320.])      # m, m, degrees, kg/m3
DECIDES = True


def anomaly(p):
    depth, throw, dip, drho = p
    xc, zc = fault_block(depth, throw, dip)
    return profile(STATIONS, xc, zc, drho)


def main(p):
    """Area of the anomaly within the profile, mGal km."""
    g = anomaly(p)
    return np.sum((g[1:] + g[:-1]) / 2 * np.diff(STATIONS)) / 1000.


def outputs(p):
    g = anomaly(p)
    trend = linregress(STATIONS / 1000., g)
    residual = g - (trend.intercept + trend.slope * STATIONS / 1000.)
    peaks = argrelmax(g)[0]
    gradient = np.gradient(g, STATIONS) * 1e4        # eotvos
    return np.array([g[peaks[0]], half_width(STATIONS, g) / 1000., trend.slope,
                     residual.std(), gradient.max(), gradient.min()])
