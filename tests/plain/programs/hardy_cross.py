"""Flows of a looped water network by the Hardy Cross method with Colebrook-White friction.

H. Cross, "Analysis of flow in networks of conduits or conductors" (1936); R. W. Jeppson,
"Analysis of Flow in Pipe Networks", chapters 2 and 4.
"""
from dataclasses import dataclass
from math import log10, pi

import numpy as np

g = 9.81
NU = 1.1e-6


@dataclass
class Pipe:
    length: float
    diameter: float
    roughness: float
    flow: float = 0.0

    @property
    def area(self):
        return pi * self.diameter**2 / 4

    @property
    def reynolds(self):
        return abs(self.flow) / self.area * self.diameter / NU

    def friction(self):
        re = max(self.reynolds, 1.0)
        if re < 2300:
            return 64 / re
        rel = self.roughness / (3.7 * self.diameter)
        # Colebrook by fixed-point iteration in 1/sqrt(f)
        y = -2 * log10(rel + 5.74 / re**0.9)
        while True:
            y_new = -2 * log10(rel + 2.51 * y / re)
            if abs(y_new - y) < 1e-14:
                break
            y = y_new
        return 1 / y_new**2

    @property
    def resistance(self):
        return self.friction() * self.length / (2 * g * self.diameter * self.area**2)

    def head_loss(self):
        return self.resistance * self.flow * abs(self.flow)


# each loop lists (pipe, direction)
LOOPS = [
    [(0, 1), (2, 1), (1, -1)],
    [(3, 1), (4, -1), (2, -1)],
]


def network(demand_b, demand_d, rough, d0):
    """Source at A; nodes B, C, D.  Pipes A-B, A-C, B-C, B-D, C-D."""
    inflow = demand_b + demand_d + 0.03
    pipes = [
        Pipe(600, d0, rough), Pipe(500, 0.30, rough), Pipe(400, 0.20, rough),
        Pipe(700, 0.25, rough), Pipe(450, 0.25, rough),
    ]
    # first guess that satisfies continuity
    start = [0.55 * inflow, 0.45 * inflow, 0.01]
    start.append(start[0] - start[2] - demand_b)
    start.append(demand_d - start[3])
    for pipe, q in zip(pipes, start):
        pipe.flow = q
    return pipes


def balance(pipes, tol=1e-15, maxit=500):
    for sweep in range(maxit):
        worst = 0.0
        for loop in LOOPS:
            num = den = 0.0
            for k, sign in loop:
                num += sign * pipes[k].head_loss()
                den += 2 * pipes[k].resistance * abs(pipes[k].flow)
            dq = -num / den
            for k, sign in loop:
                pipes[k].flow += sign * dq
            worst = max(worst, abs(dq))
        if worst < tol:
            return sweep
    raise RuntimeError(f'Hardy Cross: correction still {worst:.2e}')


POINT = np.array([45.0, 60.0, 0.25, 0.30])     # L/s, L/s, mm, m
DECIDES = True


def run(x):
    pipes = network(x[0] / 1e3, x[1] / 1e3, x[2] / 1e3, x[3])
    balance(pipes)
    return pipes


def main(x):
    pipes = run(x)
    return pipes[0].head_loss() + pipes[3].head_loss()       # from A to D


def outputs(x):
    pipes = run(x)
    flows = [1e3 * p.flow for p in pipes]
    return np.array(flows + [pipes[0].friction()])
