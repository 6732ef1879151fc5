"""Age-structured population: growth rate, elasticities, generation time and harvested projection.

H. Caswell, "Matrix Population Models", chapters 4, 5 and 9.
"""
import numpy as np
from numpy import linalg as LA

AGES = 8


def leslie(s_juv, s_adult, fecundity, maturity):
    """Fecundity rises logistically with age around `maturity`."""
    L = np.zeros((AGES, AGES))
    for a in range(AGES):
        L[0, a] = fecundity / (1. + np.exp(-2. * (a - maturity)))
    for a in range(AGES - 1):
        L[a + 1, a] = s_juv if a < 2 else s_adult
    L[-1, -1] = 0.5 * s_adult
    return L


def dominant(L):
    vals, vecs = LA.eig(L)
    k = np.argmax(np.abs(vals))
    lam = vals[k].real
    w = vecs[:, k].real
    w = w / w.sum()
    vals_t, vecs_t = LA.eig(L.T)
    v = vecs_t[:, np.argmax(np.abs(vals_t))].real
    return lam, w, v / v[0]


def sensitivity(lam, w, v):
    return np.outer(v, w) / np.dot(v, w)


def damping_ratio(L):
    mods = np.sort(np.abs(LA.eigvals(L)))[::-1]
    return mods[0] / mods[1]


def euler_lotka(L, tol=1e-13):
    """Growth rate by Newton from the net maternity function."""
    l = np.cumprod(np.concatenate(([1.], np.diag(L, -1))))
    phi = L[0] * l
    phi = phi[:-1]          # the last class handled as a geometric tail
    tail = L[0, -1] * l[-1]
    s = L[-1, -1]
    age = np.arange(1, AGES)
    lam = 1.2
    for _ in range(100):
        f = np.sum(phi * lam**-age) + tail * lam**-(AGES - 1) / (lam - s) - 1.
        df = (np.sum(-age * phi * lam**(-age - 1.))
              - tail * lam**-(AGES - 1) / (lam - s) * ((AGES - 1) / lam + 1 / (lam - s)))
        new = lam - f / df
        if abs(new - lam) < tol * lam:
            return new
        lam = new
    raise RuntimeError('Newton failed')


def project(L, n0, years, capacity=500., quota=0.05):
    n = np.array(n0, dtype=float)
    yearly = []
    catch = 0.
    for t in range(years):
        crowd = 1. / (1. + n.sum() / capacity)
        n = L.dot(n)
        n[0] *= crowd
        if n.sum() > 120.:
            take = quota * n[3:]
            n[3:] -= take
            catch += take.sum()
        yearly.append(n.sum())
    return n, np.array(yearly), catch


POINT = np.array([0.55, 0.81, 1.4, 2.6])
DECIDES = True


def main(p):
    lam, w, v = dominant(leslie(*p))
    S = sensitivity(lam, w, v)
    L = leslie(*p)
    E = S * L / lam
    # generation time after Bienvenu and Legendre: inverse of the fecundity elasticities
    return 1. / E[0].sum()


def outputs(p):
    L = leslie(*p)
    lam, w, v = dominant(L)
    n, totals, catch = project(L, [60, 30, 20, 10, 5, 5, 2, 1], 15)
    return np.array([lam, euler_lotka(L), damping_ratio(L), v.max(), totals[-1], catch])
