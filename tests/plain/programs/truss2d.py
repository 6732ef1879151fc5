"""Plane truss by the direct stiffness method.

R. D. Cook, D. S. Malkus, M. E. Plesha, "Concepts and Applications of Finite
Element Analysis", chapter 2.
"""
from dataclasses import dataclass
from math import hypot

import numpy as np

E_STEEL = 210e9
DENSITY = 7850.0


@dataclass
class Bar:
    a: int
    b: int
    area: float
    young: float = E_STEEL

    def dofs(self):
        return [2 * self.a, 2 * self.a + 1, 2 * self.b, 2 * self.b + 1]

    def geometry(self, nodes):
        dx, dy = nodes[self.b] - nodes[self.a]
        L = hypot(dx, dy)
        return L, dx / L, dy / L

    def stiffness(self, nodes):
        L, c, s = self.geometry(nodes)
        t = np.array([[c * c, c * s], [c * s, s * s]])
        return self.young * self.area / L * np.block([[t, -t], [-t, t]])

    def force(self, nodes, u):
        """Axial force, tension positive."""
        L, c, s = self.geometry(nodes)
        return self.young * self.area / L * (np.array([-c, -s, c, s]) @ u[self.dofs()])


class Truss:
    def __init__(self, nodes, bars, supports):
        self.nodes = nodes
        self.bars = bars
        ndof = 2 * len(nodes)
        self.free = np.setdiff1d(np.arange(ndof), supports)
        self.loads = np.zeros(ndof)

    def add_load(self, node, fx=0.0, fy=0.0):
        self.loads[2 * node] += fx
        self.loads[2 * node + 1] += fy

    def add_self_weight(self, g=9.81):
        for bar in self.bars:
            L = bar.geometry(self.nodes)[0]
            half = 0.5 * DENSITY * bar.area * L * g
            for n in (bar.a, bar.b):
                self.loads[2 * n + 1] -= half

    def solve(self):
        n = len(self.loads)
        K = np.zeros((n, n))
        for bar in self.bars:
            d = bar.dofs()
            K[np.ix_(d, d)] += bar.stiffness(self.nodes)
        u = np.zeros(n)
        u[self.free] = np.linalg.solve(K[np.ix_(self.free, self.free)], self.loads[self.free])
        reactions = K @ u - self.loads
        return u, reactions


def bridge(chord, diagonal, height, load):
    """Six node bridge, span 12 m, pinned at node 0 and on a roller at node 3."""
    nodes = np.array([[0, 0], [4, 0], [8, 0], [12, 0], [4, height], [8, height]])
    bars = [Bar(i, j, chord) for i, j in [(0, 1), (1, 2), (2, 3), (4, 5)]]
    bars += [Bar(i, j, diagonal) for i, j in [(0, 4), (1, 4), (1, 5), (2, 5), (3, 5)]]
    truss = Truss(nodes, bars, supports=[0, 1, 7])
    truss.add_load(1, fy=-load)
    truss.add_load(2, fy=-0.5 * load)
    truss.add_self_weight()
    return truss


POINT = np.array([3.0e-3, 2.0e-3, 3.0, 1.5e5])   # m2, m2, m, N
DECIDES = False


def main(p):
    u, _ = bridge(*p).solve()
    return -1000 * u[3]          # sag under the main load, mm


def outputs(p):
    truss = bridge(*p)
    u, reactions = truss.solve()
    stress = [bar.force(truss.nodes, u) / bar.area / 1e6 for bar in truss.bars]
    return np.hstack([stress, u[truss.free] * 1e3, reactions[[1, 7]] / 1e3])
