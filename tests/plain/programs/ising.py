"""Ising model on a 3 x 4 torus: enumeration by Gray code and by transfer matrix.

R. K. Pathria and P. D. Beale, "Statistical Mechanics", chapter 13; W. Krauth, "Statistical
Mechanics: Algorithms and Computations", section 5.1.
"""
from collections import Counter
from itertools import product

import numpy as np
from numpy.linalg import eigvals, matrix_power

ROWS, COLS = 3, 4


def neighbours(k):
    r, c = divmod(k, COLS)
    return [((r + 1) % ROWS) * COLS + c, ((r - 1) % ROWS) * COLS + c,
            r * COLS + (c + 1) % COLS, r * COLS + (c - 1) % COLS]


def enumerate_states():
    """Number of states with (bond sum horizontal, vertical, magnetisation), by single flips."""
    n = ROWS * COLS
    nbr = [neighbours(k) for k in range(n)]
    spin = [-1] * n
    ex, ey, mag = ROWS * COLS, ROWS * COLS, -n
    counts = Counter({(ex, ey, mag): 1})
    tau = list(range(1, n + 2))
    while True:
        k = tau[0]
        if k > n:
            return counts
        tau[k - 1] = tau[k]
        tau[k] = k + 1
        if k != 1:
            tau[0] = 1
        k -= 1
        down, up, right, left = (spin[j] for j in nbr[k])
        ex -= 2 * spin[k] * (right + left)
        ey -= 2 * spin[k] * (up + down)
        spin[k] = -spin[k]
        mag += 2 * spin[k]
        counts[ex, ey, mag] += 1


COUNTS = enumerate_states()
assert sum(COUNTS.values()) == 2 ** (ROWS * COLS)


def partition(T, h, jx, jy):
    """log Z, mean energy, heat capacity, |m| and susceptibility."""
    if T <= 0:
        raise ValueError('temperature must be positive')
    E, g, M = [], [], []
    for (ex, ey, mag), number in COUNTS.items():
        E.append(-jx * ex - jy * ey - h * mag)
        g.append(number)
        M.append(mag)
    E, g, M = np.array(E), np.array(g, dtype=float), np.array(M)
    low = E.min()
    w = g * np.exp(-(E - low) / T)
    Z = w.sum()
    p = w / Z
    e1, e2 = p @ E, p @ E**2
    m1, m2 = p @ np.abs(M), p @ M**2
    n = ROWS * COLS
    return np.log(Z) - low / T, e1 / n, (e2 - e1**2) / T**2 / n, m1 / n, (m2 - m1**2) / T / n


def transfer_log_z(T, h, jx, jy):
    rows = list(product([-1, 1], repeat=ROWS))
    size = len(rows)
    V = np.zeros((size, size))
    for a, s in enumerate(rows):
        inner_s = sum(s[i] * s[(i + 1) % ROWS] for i in range(ROWS))
        for b, t in enumerate(rows):
            across = sum(u * v for u, v in zip(s, t))
            inner_t = sum(t[i] * t[i - 1] for i in range(ROWS))
            V[a, b] = np.exp((jx * across + jy * (inner_s + inner_t) / 2
                              + h * (sum(s) + sum(t)) / 2) / T)
    return np.log(np.trace(matrix_power(V, COLS))), V


POINT = np.array([2.3, 0.1, 1.0, 0.8])
DECIDES = True


def main(x):
    return partition(*x)[2]


def outputs(x):
    log_z, e, c, m, chi = partition(*x)
    other, V = transfer_log_z(*x)
    lam = np.sort(np.abs(eigvals(V)))[::-1]
    length = 1 / np.log(lam[0] / lam[1])
    return np.array([log_z, other, e, m, chi, length])
