"""Meridional and skew ray tracing through a cemented doublet.

W. J. Smith, "Modern Optical Engineering", chapters 2 and 10; glasses by the
Sellmeier formula (E. Hecht, "Optics", chapter 3).
"""
from dataclasses import dataclass
import statistics

import numpy as np

# Schott catalogue
BK7 = ([1.03961212, 0.231792344, 1.01046945], [0.00600069867, 0.0200179144, 103.560653])
SF5 = ([1.52481889, 0.187085527, 1.42729015], [0.011254756, 0.0588995392, 129.141675])


def sellmeier(glass, um):
    return (1 + sum(b * um**2 / (um**2 - c) for b, c in zip(*glass)))**0.5


@dataclass
class Surface:
    radius: float
    thickness: float
    glass: tuple = None
    aperture: float = 15.0

    def index(self, um):
        return 1.0 if self.glass is None else sellmeier(self.glass, um)


class RayError(Exception): pass


def refract(d, normal, n1, n2):
    mu, cos_i = n1 / n2, -normal @ d
    k = 1 - mu**2 * (1 - cos_i**2)
    if k < 0:
        raise RayError('total internal reflection')
    return mu * d + (mu * cos_i - np.sqrt(k)) * normal


def intersect(o, d, surf):
    """Distance to the sphere with its vertex at the origin."""
    centre = np.array([0.0, 0.0, surf.radius])
    oc = o - centre; b = oc @ d
    disc = b * b - (oc @ oc - surf.radius**2)
    if disc < 0:
        raise RayError('misses surface')
    root = np.sqrt(disc)
    s = -b - root if surf.radius > 0 else -b + root
    hit = o + s * d
    if hit[0]**2 + hit[1]**2 > surf.aperture**2:
        raise RayError('vignetted')
    return hit, (hit - centre) / surf.radius


def trace(surfaces, o, d, um):
    n1 = 1.0
    o, d = np.array(o, dtype=float), np.array(d, dtype=float)
    d /= np.linalg.norm(d)
    for surf in surfaces:
        n2 = surf.index(um)
        o, normal = intersect(o, d, surf)
        if normal @ d > 0:
            normal = -normal
        d = refract(d, normal, n1, n2)
        o[2] -= surf.thickness
        n1 = n2
    return o, d


def axis_crossing(surfaces, height, um=0.5876):
    o, d = trace(surfaces, [0, height, -20.0], [0, 0, 1], um)
    return o[2] - o[1] * d[2] / d[1]


def spot(surfaces, field_deg, um=0.5876):
    """Centroid and r.m.s. radius of a fan of rays in the image plane z = 0."""
    th = np.deg2rad(field_deg)
    xs, ys = [], []
    for px in (-6.0, -3.0, 0.0, 6.0, 11.0, 14.9):
        for py in (-6.0, 0.0, 6.0):
            try:
                o, d = trace(surfaces, [px, py, -5.0], [0, np.sin(th), np.cos(th)], um)
            except RayError:
                continue
            xs.append(o[0] - d[0] / d[2] * o[2])
            ys.append(o[1] - d[1] / d[2] * o[2])
    cy = statistics.fmean(ys)
    r2 = np.fromiter((x**2 + (y - cy)**2 for x, y in zip(xs, ys)), dtype=float)
    return cy, np.sqrt(r2.mean())


def doublet(p):
    r1, r2, r3, t1, bfl = p
    return [Surface(r1, t1, BK7), Surface(r2, 3.0, SF5), Surface(r3, bfl)]


POINT = np.array([61.0, -45.0, -130.0, 7.0, 94.0])      # mm
DECIDES = True


def main(p):
    return spot(doublet(p), field_deg=1.5)[1]


def outputs(p):
    lens = doublet(p)
    crossings = [axis_crossing(lens, h, w) for h in (1.0, 7.0) for w in (0.4861, 0.5876, 0.6563)]
    return np.array([*crossings, *spot(lens, 0.0), *spot(lens, 2.0)])
