"""Planets around a star, kick-drift-kick leapfrog.

C. D. Murray and S. F. Dermott, "Solar System Dynamics"; integrator as in
S. Tremaine and J. Binney, "Galactic Dynamics", section 3.4.
Units: AU, year, solar mass.
"""
import itertools
import numpy as np

G = 4 * np.pi**2


class System:
    def __init__(self):
        self.names = []
        self.mass = []
        self._pos = []
        self._vel = []

    def add(self, name, m, pos, vel):
        self.names.append(name)
        self.mass.append(m)
        self._pos.append(pos)
        self._vel.append(vel)

    def finish(self):
        self.m = np.array(self.mass)
        self.x = np.array(self._pos, dtype=float)
        self.v = np.array(self._vel, dtype=float)
        pairs = np.array(list(itertools.combinations(range(len(self.m)), 2)))
        self.i, self.j = pairs.T
        # centre of mass frame
        self.x -= self.m @ self.x / self.m.sum()
        self.v -= self.m @ self.v / self.m.sum()
        self.acc = np.zeros_like(self.x)

    def update_acc(self):
        d = self.x[self.j] - self.x[self.i]
        r3 = (d**2).sum(axis=1)**1.5
        f = G * d / r3[:, None]
        self.acc.fill(0)
        np.add.at(self.acc, self.i, f * self.m[self.j][:, None])
        np.subtract.at(self.acc, self.j, f * self.m[self.i][:, None])

    def step(self, dt):
        self.v += 0.5 * dt * self.acc
        self.x += dt * self.v
        self.update_acc()
        self.v += 0.5 * dt * self.acc

    def energy(self):
        kin = 0.5 * np.sum(self.m[:, None] * self.v**2)
        pot = 0.0
        for a, b in zip(self.i, self.j):
            pot -= G * self.m[a] * self.m[b] / np.linalg.norm(self.x[a] - self.x[b])
        return kin + pot


def build(m_jup, a_jup, v_factor):
    s = System()
    s.add('sun', 1.0, [0, 0, 0], [0, 0, 0])
    s.add('mars', 3.2e-7, [1.52, 0, 0.05], [0, v_factor * np.sqrt(G / 1.52), 0])
    s.add('jupiter', m_jup, [0, a_jup, 0], [-np.sqrt(G / a_jup), 0, 0])
    s.finish()
    return s


def march(system, n, dt):
    """Generator over the states of the integration."""
    system.update_acc()
    for k in range(1, n + 1):
        system.step(dt)
        yield k, system.x


def integrate(system, years=1.4, dt=0.01, every=20):
    n = round(years / dt)
    track = [x[1] - x[0] for k, x in march(system, n, dt) if k % every == 0]
    return np.asarray(track)


POINT = np.array([9.5e-4, 5.2, 1.02])
DECIDES = False


def main(p):
    track = integrate(build(*p))
    return np.linalg.norm(track[-1])


def outputs(p):
    s = build(p[0], p[1], p[2])
    e0 = s.energy()
    track = integrate(s)
    return np.concatenate([track[:, 0], track[:, 1], [e0, s.energy()]])
