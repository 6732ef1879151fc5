"""Closed queueing network of a computer system: exact mean value analysis, two job classes.

E. D. Lazowska et al., "Quantitative System Performance", chapters 6 and 7.
"""
from dataclasses import dataclass, field
from itertools import product

import numpy as np


@dataclass
class Station:
    name: str
    demands: tuple              # seconds per class
    kind: str = 'queue'         # or 'delay'
    queue: dict = field(default_factory=dict)

    def residence(self, c, n):
        """Residence time of class c when the population is n."""
        if self.kind == 'delay':
            return self.demands[c]
        less = tuple(k - (i == c) for i, k in enumerate(n))
        return self.demands[c] * (1 + self.queue[less])


def mva(stations, population, think):
    """Throughputs and residence times at the full population."""
    classes = range(len(population))
    for s in stations:
        s.queue[(0,) * len(population)] = 0.0
    states = sorted(product(*(range(k + 1) for k in population)), key=sum)
    for n in states[1:]:
        R = {}
        X = [0.0] * len(population)
        for c in classes:
            if n[c] == 0:
                continue
            for s in stations:
                R[s.name, c] = s.residence(c, n)
            X[c] = n[c] / (think[c] + sum(R[s.name, c] for s in stations))
        for s in stations:
            s.queue[n] = sum(X[c] * R[s.name, c] for c in classes if n[c] > 0)
    return X, R


def bounds(demands, n, z):
    """Asymptotic bounds of a single class."""
    D, dmax = sum(demands), max(demands)
    return n / (D * n + z), min(n / (D + z), 1 / dmax)


def schweitzer(stations, population, think, tol=1e-13):
    """Approximate MVA by fixed point."""
    C, M = len(population), len(stations)
    N = np.array(population, dtype=float)
    D = np.array([s.demands for s in stations]).T
    delay = np.array([s.kind == 'delay' for s in stations])
    Q = np.tile(N[:, None] / M, (1, M))
    change = np.inf
    while change > tol:
        seen = Q.sum(axis=0) - Q / N[:, None]
        R = np.where(delay, D, D * (1 + seen))
        X = N / (np.asarray(think) + R.sum(axis=1))
        new = X[:, None] * R
        change = np.max(np.abs(new - Q))
        Q = new
    return X


def system(x):
    cpu, disk, ratio = x[0], x[1], x[2]
    return [
        Station('cpu', (cpu, ratio * cpu)),
        Station('disk1', (disk, 2.5 * disk)),
        Station('disk2', (0.7 * disk, 0.4 * disk)),
        Station('network', (0.05, 0.12), kind='delay'),
    ]


POINT = np.array([0.04, 0.055, 3.0, 2.0])      # CPU and disk demands, batch ratio, think time
DECIDES = True


def main(x):
    """Response time of the interactive class."""
    X, R = mva(system(x), (6, 3), (x[3], 0.0))
    return 6 / X[0] - x[3]


def outputs(x):
    stations = system(x)
    think = [x[3], 0.0]
    X, R = mva(stations, (6, 3), think)
    approx = schweitzer(stations, (6, 3), think)
    low, high = bounds([s.demands[0] for s in stations], 6, x[3])
    use = {s.name: sum(X[c] * s.demands[c] for c in (0, 1)) for s in stations[:3]}
    return np.array([X[0], X[1], use['disk1'], stations[1].queue[6, 3], approx[0], high])
