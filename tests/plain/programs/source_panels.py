"""Potential flow around an elliptic cylinder in a stream by flat source panels (Hess and Smith).

J. L. Hess and A. M. O. Smith (1967); J. D. Anderson, "Fundamentals of Aerodynamics", section 3.17.
"""
import numpy as np
from numpy import arctan2, cos, log, pi, sin, sqrt

N = 24


class Panel:
    def __init__(self, xa, ya, xb, yb):
        self.xa, self.ya = xa, ya
        self.xb, self.yb = xb, yb
        self.xc, self.yc = (xa + xb) / 2, (ya + yb) / 2
        self.length = sqrt((xb - xa)**2 + (yb - ya)**2)
        # angle of the outward normal
        if xb - xa <= 0.:
            self.beta = np.arccos((yb - ya) / self.length)
        else:
            self.beta = pi + np.arccos(-(yb - ya) / self.length)
        self.sigma = 0.
        self.vt = 0.
        self.cp = 0.

    def velocity(self, x, y):
        """Velocity at (x, y) per unit source strength."""
        phi = arctan2(self.yb - self.ya, self.xb - self.xa)
        c, s = cos(phi), sin(phi)
        # panel coordinates
        X = (x - self.xa) * c + (y - self.ya) * s
        Y = -(x - self.xa) * s + (y - self.ya) * c
        r1 = X**2 + Y**2
        r2 = (X - self.length)**2 + Y**2
        u = log(r1 / r2) / (4 * pi)
        v = (arctan2(Y, X - self.length) - arctan2(Y, X)) / (2 * pi)
        return u * c - v * s, u * s + v * c


def make_ellipse(a, b, n=N):
    th = 2 * pi * (np.arange(n + 1) + 0.5) / n
    x, y = a * cos(th), b * sin(th)
    return [Panel(x[i], y[i], x[i + 1], y[i + 1]) for i in range(n)]


def solve(panels, u_inf, alpha):
    n = len(panels)
    A = np.empty((n, n), dtype=float)
    T = np.zeros_like(A)
    np.fill_diagonal(A, 0.5)
    for i, p in enumerate(panels):
        for j, q in enumerate(panels):
            if i == j:
                continue
            u, v = q.velocity(p.xc, p.yc)
            A[i, j] = u * cos(p.beta) + v * sin(p.beta)
            T[i, j] = -u * sin(p.beta) + v * cos(p.beta)
    beta = np.array([p.beta for p in panels])
    b = -u_inf * cos(alpha - beta)
    sigma = np.linalg.solve(A, b)
    vt = T.dot(sigma) + u_inf * sin(alpha - beta)
    for p, s, v in zip(panels, sigma, vt):
        p.sigma, p.vt = s, v
        p.cp = 1.0 - (v / u_inf)**2
    return panels


POINT = np.array([1.0, 0.6, 12.0, 0.25])       # semi-axes, speed, angle of attack
DECIDES = True


def compute(x):
    a, b, speed, alpha = x
    return solve(make_ellipse(a, b), speed, alpha)


def main(x):
    """Kinetic energy of the tangential flow along the surface."""
    return sum(p.vt**2 * p.length for p in compute(x)) / 2


def outputs(x):
    panels = compute(x)
    cp = [p.cp for p in panels]
    leak = sum(p.sigma * p.length for p in panels if p.xc < 0)
    moment = sum(-p.cp * p.length * (p.xc * sin(p.beta) - p.yc * cos(p.beta)) for p in panels)
    return np.array([min(cp), cp[5], panels[2].vt, leak, moment])
