"""Ordinary kriging of scattered measurements, leave-one-out validation and variogram model.

N. A. C. Cressie, "Statistics for Spatial Data", chapters 2 and 3.
"""
import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist, pdist, squareform

rng = np.random.default_rng(33)
SITES = rng.uniform(0, 10, size=(25, 2))
VALUES = (12 + 2 * np.sin(SITES[:, 0] / 2) + np.cos(SITES[:, 1] / 1.5)
          + 0.3 * rng.standard_normal(25))


def spherical(h, sill, rng_):
    h = np.asarray(h, dtype=float)
    out = np.zeros(np.shape(h))
    inside = h < rng_
    u = h[inside] / rng_
    out[inside] = sill * (1 - 1.5 * u + 0.5 * u**3)
    return out


def experimental(sites, values, edges):
    """Matheron's estimator per class of distance."""
    d = pdist(sites)
    i, j = np.triu_indices(len(values), k=1)
    sq = (values[i] - values[j])**2
    cls = np.digitize(d, edges) - 1
    n = np.bincount(cls, minlength=len(edges))[:len(edges) - 1]
    total = np.bincount(cls, weights=sq, minlength=len(edges))[:len(edges) - 1]
    return total / (2 * n), n


class OrdinaryKriging:
    def __init__(self, sites, values, sill, range_, nugget, anisotropy=1.0):
        if range_ <= 0 or sill <= 0 or nugget < 0:
            raise ValueError('invalid variogram')
        self.scale = np.array([1.0, anisotropy])
        self.x = sites * self.scale
        self.z = values
        self.sill, self.range, self.nugget = sill, range_, nugget
        C = spherical(squareform(pdist(self.x)), sill, range_)
        C[np.diag_indices_from(C)] += nugget
        self.cf = cho_factor(C, lower=True)
        ones = np.ones(len(values))
        self.ci1 = cho_solve(self.cf, ones)
        self.mean = self.ci1 @ values / self.ci1.sum()
        self.ciz = cho_solve(self.cf, values - self.mean)

    def __call__(self, where):
        p = np.atleast_2d(where) * self.scale
        c = spherical(cdist(p, self.x), self.sill, self.range)
        w = cho_solve(self.cf, c.T)
        lagrange = 1 - w.sum(axis=0)
        var = self.sill - np.einsum('ij,ji->i', c, w) + lagrange**2 / self.ci1.sum()
        return self.mean + c @ self.ciz, var

    def loglik(self):
        logdet = 2 * np.sum(np.log(np.diag(self.cf[0])))
        return -0.5 * (logdet + (self.z - self.mean) @ self.ciz + len(self.z) * np.log(2 * np.pi))

    def leave_one_out(self):
        inv = cho_solve(self.cf, np.eye(len(self.z)))
        return self.ciz / np.diag(inv)


GRID = np.array([(x, y) for x in (2.5, 5.0, 7.5) for y in (2.5, 5.0, 7.5)])
POINT = np.array([2.6, 5.5, 0.15, 0.8])       # sill, range, nugget, anisotropy
DECIDES = True


def main(p):
    return OrdinaryKriging(SITES, VALUES, *p).loglik()


def outputs(p):
    ok = OrdinaryKriging(SITES, VALUES, *p)
    est, var = ok(GRID)
    gamma, n = experimental(SITES, VALUES, np.linspace(0, 5, 6))
    h = np.array([0.5, 1.5, 2.5, 3.5, 4.5])
    misfit = np.sum(n * (gamma / (p[0] + p[2] - spherical(h, p[0], p[1])) - 1)**2)
    _, nearest = cKDTree(SITES).query([5.0, 5.0])
    errors = ok.leave_one_out()
    return np.array([est.mean(), est[4] - VALUES[nearest], var[4], misfit,
                     np.sqrt(np.mean(errors**2)), ok.mean])
