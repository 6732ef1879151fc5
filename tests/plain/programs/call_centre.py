"""Waiting times in a call centre: Erlang B and C, and M/M/c/K with impatience.

L. Kleinrock, "Queueing Systems, Volume 1"; N. Gans, G. Koole, A. Mandelbaum,
"Telephone Call Centers: Tutorial, Review, and Research Prospects".
"""
from functools import lru_cache
import math
import numpy as np


@lru_cache(maxsize=None)
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


def erlang_b(servers, load):
    """Blocking probability by the usual recursion."""
    b = 1.0
    for k in range(1, servers + 1):
        b = load * b / (k + load * b)
    return b


def erlang_c(servers, load):
    top = load**servers / factorial(servers) * servers / (servers - load)
    bottom = sum(load**k / factorial(k) for k in range(servers)) + top
    return top / bottom


def service_level(servers, lam, mu, seconds):
    pw = erlang_c(servers, lam / mu)
    return 1.0 - pw * math.exp(-(servers * mu - lam) * seconds)


class BirthDeath:
    """Finite birth-death chain, stationary distribution from the balance equations."""

    def __init__(self, birth, death):
        n = len(birth) + 1
        Q = np.zeros((n, n))
        i = np.arange(n - 1)
        Q[i, i + 1] = birth
        Q[i + 1, i] = death
        np.fill_diagonal(Q, -Q.sum(axis=1))
        self.Q = Q

    def stationary(self):
        A = self.Q.T.copy()
        A[-1] = 1            # normalisation replaces one equation
        b = np.zeros(len(A))
        b[-1] = 1
        return np.linalg.solve(A, b)


def impatient_queue(lam, mu, theta, servers, places):
    """M/M/c/K + M : waiting callers hang up at rate theta."""
    death = [min(n, servers) * mu + max(n - servers, 0) * theta for n in range(1, places + 1)]
    pi = BirthDeath(np.full(places, lam), np.array(death)).stationary()
    n = np.arange(places + 1)
    waiting = np.maximum(n - servers, 0) @ pi
    abandoned = theta * waiting / lam
    busy = np.minimum(n, servers) @ pi
    return waiting, abandoned, pi[-1], busy / servers


POINT = 0.085           # calls per second
DECIDES = False

MU = 1 / 180.0          # mean call of three minutes
AGENTS = 18


def main(p):
    return service_level(AGENTS, p, MU, seconds=20)


def outputs(p):
    levels = np.vectorize(lambda s: service_level(AGENTS, p, MU, s))([0, 10, 30, 60])
    blocking = [erlang_b(c, p / MU) for c in (14, 16, 18, 20)]
    return np.concatenate([levels, blocking, impatient_queue(p, MU, 1 / 120, AGENTS, 30)])
