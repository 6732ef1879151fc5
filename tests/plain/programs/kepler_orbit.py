"""Position of a satellite from orbital elements, its ground track and eclipse.

R. H. Battin, "An Introduction to the Mathematics and Methods of Astrodynamics";
D. A. Vallado, "Fundamentals of Astrodynamics and Applications".
"""
from math import sin, cos, tan, atan, atan2, asin, sqrt, pi, degrees

import numpy as np

MU = 398600.4418      # km3/s2
R_EARTH = 6378.137
J2 = 1.08263e-3
OMEGA_EARTH = 7.2921159e-5


def solve_kepler(M, e, tol=1e-12, maxiter=50):
    M = M % (2 * pi)
    E = M if e < 0.8 else pi
    for _ in range(maxiter):
        f = E - e * sin(E) - M
        step = f / (1 - e * cos(E))
        E -= step
        if abs(step) < tol:
            return E
    raise RuntimeError("Kepler's equation did not converge")


def rot_x(a):
    return np.array([[1, 0, 0], [0, cos(a), -sin(a)], [0, sin(a), cos(a)]])


def rot_z(a):
    R = np.eye(3)
    R[:2, :2] = [[cos(a), -sin(a)], [sin(a), cos(a)]]
    return R


class Orbit:
    def __init__(self, a, e, inc, raan, argp, M0):
        self.a, self.e, self.inc = a, e, inc
        self.raan, self.argp, self.M0 = raan, argp, M0
        if e >= 1:
            raise ValueError('not an ellipse')

    @property
    def mean_motion(self):
        return sqrt(MU / self.a**3)

    @property
    def period(self):
        return 2 * pi / self.mean_motion

    def drift(self):
        """Secular rates of node and perigee due to J2."""
        p = self.a * (1 - self.e**2)
        k = 1.5 * self.mean_motion * J2 * (R_EARTH / p)**2
        return -k * cos(self.inc), k * (2 - 2.5 * sin(self.inc)**2)

    def state(self, t):
        E = solve_kepler(self.M0 + self.mean_motion * t, self.e)
        nu = 2 * atan(sqrt((1 + self.e) / (1 - self.e)) * tan(E / 2))
        r = self.a * (1 - self.e * cos(E))
        p = self.a * (1 - self.e**2)
        node_rate, peri_rate = self.drift()
        Q = rot_z(self.raan + node_rate * t) @ rot_x(self.inc) @ rot_z(self.argp + peri_rate * t)
        pos = Q @ np.array([r * cos(nu), r * sin(nu), 0.0])
        vel = Q @ (sqrt(MU / p) * np.array([-sin(nu), self.e + cos(nu), 0]))
        return pos, vel

    def ground_point(self, t):
        (x, y, z), _ = self.state(t)
        lon = atan2(y, x) - OMEGA_EARTH * t
        while lon < -pi:
            lon += 2 * pi
        lat = asin(z / sqrt(x * x + y * y + z * z))
        return degrees(lat), degrees(lon)


def in_shadow(pos, sun=np.array([1.0, 0.0, 0.0])):
    along = pos @ sun
    if along > 0:
        return False
    return np.linalg.norm(pos - along * sun) < R_EARTH


POINT = np.array([8200.0, 0.12, 1.1, 0.6, 0.9, 0.3])
DECIDES = True


def main(p):
    orb = Orbit(*p)
    pos, _ = orb.state(5400.0)
    return np.linalg.norm(pos) - R_EARTH        # altitude, km


def outputs(p):
    a, e, inc, raan, argp, M0 = [float(v) for v in p]
    orb = Orbit(a, e, inc, raan, argp, M0=M0)
    states = np.asarray([orb.state(t) for t in range(0, 6000, 1200)])     # (time, r/v, xyz)
    dark = [np.linalg.norm(v) for r, v in states if in_shadow(r)]
    lat, lon = orb.ground_point(3000.0)
    r, v = states[-1]
    h = np.cross(r, v)
    return np.concatenate([r, v, h / np.linalg.norm(h), [lat, lon, orb.period, sum(dark)]])
