"""Bezier curves: de Casteljau, subdivision, arc length by Romberg, offset area and fairness.

G. Farin, "Curves and Surfaces for CAGD", chapters 4 and 5; Romberg's scheme from J. Stoer and
R. Bulirsch, "Introduction to Numerical Analysis", section 3.4.
"""
from math import comb, hypot

import numpy as np


def casteljau(points, t):
    if len(points) == 1:
        return points[0]
    return casteljau([(1 - t) * p + t * q for p, q in zip(points[:-1], points[1:])], t)


def split(points, t=0.5):
    """Control points of the two halves."""
    left, right = [], []
    level = list(points)
    while level:
        left.append(level[0])
        right.insert(0, level[-1])
        level = [(1 - t) * level[i] + t * level[i + 1] for i in range(len(level) - 1)]
    return left, right


def derivative(points):
    n = len(points) - 1
    return [n * (b - a) for a, b in zip(points, points[1:])]


def bernstein(points, t):
    n = len(points) - 1
    return sum(comb(n, k) * t**k * (1 - t)**(n - k) * p for k, p in enumerate(points))


def romberg(f, a, b, levels=8, tol=1e-13):
    R = np.zeros((levels, levels))
    h = b - a
    R[0, 0] = h / 2 * (f(a) + f(b))
    for i in range(1, levels):
        h /= 2
        mids = sum(f(a + (2 * k - 1) * h) for k in range(1, 2**(i - 1) + 1))
        R[i, 0] = R[i - 1, 0] / 2 + h * mids
        for j in range(1, i + 1):
            R[i, j] = R[i, j - 1] + (R[i, j - 1] - R[i - 1, j - 1]) / (4**j - 1)
        if i > 3 and abs(R[i, i] - R[i - 1, i - 1]) < tol * abs(R[i, i]):
            return R[i, i]
    return R[levels - 1, levels - 1]


def flatten(points, tol=1e-3):
    """Recursive subdivision into chords; yields the end points."""
    chord = points[-1] - points[0]
    d = hypot(*chord)
    dev = max(abs(chord[0] * (p - points[0])[1] - chord[1] * (p - points[0])[0]) / d
              for p in points[1:-1])
    if dev < tol:
        yield points[-1]
    else:
        for half in split(points):
            yield from flatten(half, tol)


def curvature(points, t):
    d1 = derivative(points)
    v, a = bernstein(d1, t), bernstein(derivative(d1), t)
    return (v[0] * a[1] - v[1] * a[0]) / hypot(v[0], v[1])**3


def control(x):
    return [np.array(p) for p in ([0.0, 0.0], [x[0], x[1]], [x[2], x[3]], [3.0, 1.8], [4.0, 0.0])]


POINT = np.array([0.7, 1.9, 2.1, -0.6])
DECIDES = True


def main(x):
    pts = control(x)
    d1 = derivative(pts)

    def speed(t):
        v = casteljau(d1, t)
        return hypot(v[0], v[1])
    return romberg(speed, 0.0, 1.0)


def outputs(x):
    pts = control(x)
    poly = [pts[0]] + list(flatten(pts))
    chords = sum(hypot(*(q - p)) for p, q in zip(poly, poly[1:]))
    area = 0.5 * sum(p[0] * q[1] - q[0] * p[1] for p, q in zip(poly, poly[1:] + poly[:1]))
    mid = casteljau(pts, 0.5)
    return np.array([chords, area, mid[0], mid[1], curvature(pts, 0.3), curvature(pts, 0.8)])
