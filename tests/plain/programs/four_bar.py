"""Four-bar linkage: position by loop closure, velocity, coupler curve and transmission angle.

R. L. Norton, "Design of Machinery", chapters 4 and 6 (Freudenstein's equation).
"""
import cmath
import math

import numpy as np
from scipy.optimize import fsolve


class FourBar:
    def __init__(self, ground, crank, coupler, rocker):
        lengths = [ground, crank, coupler, rocker]
        if min(lengths) <= 0:
            raise ValueError('lengths must be positive')
        self.d, self.a, self.b, self.c = lengths
        s, l = min(lengths), max(lengths)
        if s + l > sum(lengths) - s - l:
            raise ValueError('not a Grashof linkage: s + l > p + q')

    def closed_form(self, th2, crossed=False):
        """Rocker and coupler angles from Freudenstein's equation."""
        a, b, c, d = self.a, self.b, self.c, self.d
        k1, k2 = d / a, d / c
        k3 = (a**2 - b**2 + c**2 + d**2) / (2 * a * c)
        A = math.cos(th2) - k1 - k2 * math.cos(th2) + k3
        B = -2 * math.sin(th2)
        C = k1 - (k2 + 1) * math.cos(th2) + k3
        root = math.sqrt(B * B - 4 * A * C)
        th4 = 2 * math.atan2(-B + root if crossed else -B - root, 2 * A)
        z = cmath.rect(c, th4) + d - cmath.rect(a, th2)
        return cmath.phase(z), th4

    def newton(self, th2, guess):
        def loop(q):
            th3, th4 = q
            return [self.a * np.cos(th2) + self.b * np.cos(th3) - self.c * np.cos(th4) - self.d,
                    self.a * np.sin(th2) + self.b * np.sin(th3) - self.c * np.sin(th4)]

        def dloop(q):
            th3, th4 = q
            return [[-self.b * np.sin(th3), self.c * np.sin(th4)],
                    [self.b * np.cos(th3), -self.c * np.cos(th4)]]
        return fsolve(loop, guess, fprime=dloop, xtol=1e-13)

    def rates(self, th2, th3, th4, w2=1.0):
        w3 = w2 * self.a / self.b * math.sin(th4 - th2) / math.sin(th3 - th4)
        w4 = w2 * self.a / self.c * math.sin(th2 - th3) / math.sin(th4 - th3)
        return w3, w4


def coupler_curve(bar, px, py, n=24):
    """Positions of a point of the coupler over one turn, as complex numbers."""
    th2 = np.linspace(0, 2 * np.pi, n, endpoint=False)
    pts = np.empty(n, dtype=complex)
    rocker = []
    q = bar.closed_form(th2[0])
    for k, t in enumerate(th2):
        q = bar.newton(t, q)
        rocker.append(q[1])
        pts[k] = bar.a * np.exp(1j * t) + complex(px, py) * np.exp(1j * q[0])
    return pts, np.array(rocker)


POINT = np.array([0.40, 1.10, 0.85, 0.55, 0.30])   # crank, coupler, rocker, coupler point
DECIDES = True


def main(x):
    """Area enclosed by the coupler curve (shoelace)."""
    crank, coupler, rocker, px, py = x
    pts, _ = coupler_curve(FourBar(1.0, crank, coupler, rocker), px, py)
    nxt = np.roll(pts, -1)
    return 0.5 * abs(np.sum(pts.real * nxt.imag - nxt.real * pts.imag))


def outputs(x):
    bar = FourBar(1.0, *x[:3])
    pts, rocker = coupler_curve(bar, *x[3:])
    th2 = math.radians(70)
    th3, th4 = bar.closed_form(th2)
    w3, w4 = bar.rates(th2, th3, th4)
    transmission = math.degrees(abs(th4 - th3)) % 180
    if transmission > 90:
        transmission = 180 - transmission
    return np.array([np.ptp(rocker), w3, w4, transmission, np.max(np.abs(pts))])
