"""Geodesics on the WGS84 ellipsoid and a small traverse computation.

T. Vincenty, "Direct and inverse solutions of geodesics on the ellipsoid with
application of nested equations", Survey Review (1975); B. Hofmann-Wellenhof,
"GPS: Theory and Practice" (geodetic coordinates).
"""
import math
from math import sin, cos, tan, atan, atan2, sqrt, radians, degrees
import numpy as np

A = 6378137.0
F = 1 / 298.257223563
B = A * (1 - F)


def _series(u2):
    big_a = 1 + u2 / 16384 * (4096 + u2 * (-768 + u2 * (320 - 175 * u2)))
    big_b = u2 / 1024 * (256 + u2 * (-128 + u2 * (74 - 47 * u2)))
    return big_a, big_b


def _delta_sigma(big_b, sin_s, cos_s, cos2m):
    return big_b * sin_s * (cos2m + big_b / 4 * (
        cos_s * (-1 + 2 * cos2m**2)
        - big_b / 6 * cos2m * (-3 + 4 * sin_s**2) * (-3 + 4 * cos2m**2)))


def inverse(lat1, lon1, lat2, lon2):
    """Distance (m) and forward azimuths (deg) between two points in degrees."""
    if lat1 == lat2 and lon1 == lon2:
        return 0.0, 0.0, 0.0
    L = radians(lon2 - lon1)
    U1 = atan((1 - F) * tan(radians(lat1)))
    U2 = atan((1 - F) * tan(radians(lat2)))
    su1, cu1, su2, cu2 = sin(U1), cos(U1), sin(U2), cos(U2)
    lam = L
    for _ in range(100):
        sin_s = math.hypot(cu2 * sin(lam), cu1 * su2 - su1 * cu2 * cos(lam))
        cos_s = su1 * su2 + cu1 * cu2 * cos(lam)
        sigma = atan2(sin_s, cos_s)
        sin_a = cu1 * cu2 * sin(lam) / sin_s
        cos2a = 1 - sin_a**2
        try:
            cos2m = cos_s - 2 * su1 * su2 / cos2a
        except ZeroDivisionError:      # equatorial line
            cos2m = 0.0
        C = F / 16 * cos2a * (4 + F * (4 - 3 * cos2a))
        previous = lam
        lam = L + (1 - C) * F * sin_a * (
            sigma + C * sin_s * (cos2m + C * cos_s * (-1 + 2 * cos2m**2)))
        if abs(lam - previous) < 1e-13:
            break
    else:
        raise ValueError('nearly antipodal points')
    big_a, big_b = _series(cos2a * (A**2 - B**2) / B**2)
    s = B * big_a * (sigma - _delta_sigma(big_b, sin_s, cos_s, cos2m))
    az1 = atan2(cu2 * sin(lam), cu1 * su2 - su1 * cu2 * cos(lam))
    az2 = atan2(cu1 * sin(lam), -su1 * cu2 + cu1 * su2 * cos(lam))
    return s, degrees(az1) % 360, degrees(az2) % 360


def to_ecef(lat, lon, h=0.0):
    phi, lam = np.radians([lat, lon])
    e2 = F * (2 - F)
    N = A / np.sqrt(1 - e2 * np.sin(phi)**2)
    return np.array([(N + h) * cos(phi) * cos(lam),
                     (N + h) * cos(phi) * sin(lam),
                     (N * (1 - e2) + h) * sin(phi)])


def from_ecef(xyz):
    x, y, z = xyz
    e2 = F * (2 - F)
    p = sqrt(x**2 + y**2)
    lat, h, old = atan2(z, p * (1 - e2)), 0.0, 1e9
    while abs(h - old) > 1e-6:
        old = h
        N = A / sqrt(1 - e2 * sin(lat)**2)
        h = p / cos(lat) - N
        lat = atan2(z, p * (1 - e2 * N / (N + h)))
    return degrees(lat), degrees(atan2(y, x)), h


POINT = np.array([48.1372, 11.5756, 59.9139, 10.7522])     # Munich, Oslo
DECIDES = True


def main(p):
    lat1, lon1, lat2, lon2 = map(float, p)
    return inverse(lat1, lon1, lat2, lon2)[0] / 1000


def outputs(p):
    lat1, lon1, lat2, lon2 = p
    s, az1, az2 = inverse(lat1, lon1, lat2, lon2)
    a, b = to_ecef(lat1, lon1, 500.0), to_ecef(lat2, lon2, 20.0)
    mid = from_ecef(np.mean([a, b], axis=0))
    return np.r_[s / 1000, az1, az2, (b - a) / 1000, mid[0], mid[1], mid[2] / 1000]
