"""Radioactive chain with branching: Bateman's solution against the matrix exponential.

J. R. Lamarsh, "Introduction to Nuclear Reactor Theory", chapter 1; M. Moral and A. F. Pacheco
(2003) for the algebraic form.
"""
import math

import numpy as np
from scipy.linalg import expm, solve_triangular

LN2 = math.log(2)


class Nuclide:
    registry = {}

    def __init__(self, name, half_life, energy, daughters=None):
        self.name = name
        self.half_life = half_life
        self.energy = energy            # MeV per decay
        self.daughters = daughters or {}
        Nuclide.registry[name] = self

    @property
    def lam(self):
        return LN2 / self.half_life if math.isfinite(self.half_life) else 0.0

    def __repr__(self):
        return f'<{self.name}: {self.half_life:g} h>'


def build_chain(t_mo, branch, t_tc):
    """Mo-99 -> Tc-99m -> Tc-99 -> Ru-99, hours."""
    Nuclide.registry.clear()
    return [
        Nuclide('Mo99', t_mo, 0.54, {'Tc99m': branch, 'Tc99': 1 - branch}),
        Nuclide('Tc99m', t_tc, 0.14, {'Tc99': 1.0}),
        Nuclide('Tc99', 2.111e5 * 8766, 0.085, {'Ru99': 1.0}),
        Nuclide('Ru99', math.inf, 0.0),
    ]


def decay_matrix(chain):
    index = {nuc.name: i for i, nuc in enumerate(chain)}
    A = np.zeros((len(chain), len(chain)))
    for nuc in chain:
        j = index[nuc.name]
        A[j, j] -= nuc.lam
        for daughter, fraction in nuc.daughters.items():
            A[index[daughter], j] += fraction * nuc.lam
    return A


def bateman(lams, n0, t):
    """Amount of the last member of a linear chain, without branching."""
    total = 0.0
    for i, li in enumerate(lams):
        den = 1.0
        for j, lj in enumerate(lams):
            if j != i:
                den *= lj - li
        total += math.exp(-li * t) / den
    return n0 * math.prod(lams[:-1]) * total


def eigen_solution(A, n0, times):
    """Lower triangular A with distinct diagonal: N(t) = C exp(-L t) C^-1 n0."""
    n = len(A)
    C = np.eye(n)
    for j in range(n):
        for i in range(j + 1, n):
            s = 0.0
            for k in range(j, i):
                s += A[i, k] * C[k, j]
            C[i, j] = s / (A[j, j] - A[i, i])
    weights = solve_triangular(C, n0, lower=True, unit_diagonal=True)
    return np.array([C @ (np.exp(np.diag(A) * t) * weights) for t in times])


def milk(chain, n0, period=24.0, cycles=3, yield_=0.85):
    """Elute the technetium every period; activities collected."""
    A = decay_matrix(chain)
    step = expm(A * period)
    N = n0.copy()
    collected = []
    for _ in range(cycles):
        N = step @ N
        taken = yield_ * N[1:3]
        N[1:3] -= taken
        collected.append(chain[1].lam * taken[0])
    return np.array(collected), N


POINT = np.array([65.94, 0.876, 6.0072, 20.0])      # half-life, branching, half-life, time
DECIDES = True


def setup(x):
    chain = build_chain(*x[:3])
    n0 = np.zeros(4)
    n0[0] = 100.0 / chain[0].lam            # 100 GBq
    return chain, n0


def main(x):
    """Activity of Tc-99m at time x[3], GBq."""
    chain, n0 = setup(x)
    tc = bateman([chain[0].lam, chain[1].lam], n0[0], x[3])
    return chain[1].lam * x[1] * tc


def outputs(x):
    chain, n0 = setup(x)
    A = decay_matrix(chain)
    N = eigen_solution(A, n0, [x[3], 2 * x[3]])
    l1, l2 = chain[0].lam, chain[1].lam
    t_max = math.log(l2 / l1) / (l2 - l1)
    heat = sum(nuc.lam * n * nuc.energy for nuc, n in zip(chain, N[0]))
    eluted, rest = milk(chain, n0)
    return np.array([l2 * N[0, 1], l2 * N[1, 1], t_max, heat, eluted[0], eluted[2]])
