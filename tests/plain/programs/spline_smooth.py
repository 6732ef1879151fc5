"""Penalised B-spline smoothing of a calibration curve, with integral and slope.

C. de Boor, "A Practical Guide to Splines"; P. H. C. Eilers and B. D. Marx,
"Flexible smoothing with B-splines and penalties" (1996).
"""
from functools import lru_cache

import numpy as np
from scipy.linalg import cholesky, cho_solve
from scipy.interpolate import BSpline
from scipy.sparse import diags

DEGREE = 3
X = np.linspace(0.0, 1.0, 30)


@lru_cache(maxsize=None)
def knot(i, nseg):
    return (i - DEGREE) / nseg


def basis(x, i, k, nseg):
    """Cox - de Boor recursion."""
    t = lambda m: knot(m, nseg)
    if k == 0:
        return np.where((x >= t(i)) & (x < t(i + 1)), 1.0, 0.0)
    left = (x - t(i)) / (t(i + k) - t(i)) * basis(x, i, k - 1, nseg)
    right = (t(i + k + 1) - x) / (t(i + k + 1) - t(i + 1)) * basis(x, i + 1, k - 1, nseg)
    return left + right


def design(x, nseg):
    return np.column_stack([basis(x, i, DEGREE, nseg) for i in range(nseg + DEGREE)])


class PSpline:
    def __init__(self, x, nseg=10, order=2):
        self.x = x
        self.nseg = nseg
        n = nseg + DEGREE
        # the last point belongs to the last segment
        self.B = design(np.minimum(x, 1 - 1e-9), nseg)
        D = diags([1.0, -2.0, 1.0], [0, 1, 2], shape=(n - order, n)).toarray()
        self.P = D.T @ D

    def fit(self, y, lam, weights=None):
        W = np.ones_like(y) if weights is None else weights
        A = self.B.T @ (W[:, None] * self.B) + lam * self.P
        L = cholesky(A, lower=True)
        self.coef = cho_solve((L, True), self.B.T @ (W * y))
        self.fitted = self.B @ self.coef
        self.edf = np.trace(cho_solve((L, True), self.B.T @ (W[:, None] * self.B)))
        return self

    def gcv(self, y):
        n = len(y)
        return n * np.sum((y - self.fitted)**2) / (n - self.edf)**2

    def spline(self):
        t = np.array([knot(i, self.nseg) for i in range(self.nseg + 2 * DEGREE + 1)])
        return BSpline(t, self.coef, DEGREE)


_rng = np.random.default_rng(21)
SCATTER = 0.05 * _rng.standard_normal(len(X))


def sensor(p):
    """Readings of a saturating sensor with a resonance bump."""
    gain, saturation, bump, log_lam = p
    y = gain * X / (X + saturation)
    y += bump * np.exp(-((X - 0.6) / 0.1)**2)
    return y + SCATTER, np.exp(log_lam)


POINT = np.array([1.5, 0.3, 0.2, -2.0])
DECIDES = False


def main(p):
    y, lam = sensor(p)
    ps = PSpline(X).fit(y, lam)
    return ps.gcv(y)


def outputs(p):
    y, lam = sensor(p)
    w = 1.0 / (1.0 + y**2)
    ps = PSpline(X, nseg=8).fit(y, lam, weights=w)
    s = ps.spline()
    slopes = s(np.array([0.1, 0.35, 0.6, 0.9]), 1)
    area = s.integrate(0.0, 1.0).item()
    return np.hstack([ps.coef, slopes, area, ps.edf])
