"""Gaussian process regression: evidence, prediction and expected improvement.

C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine
Learning", algorithm 2.1; D. R. Jones et al., "Efficient global optimization".
"""
from abc import ABC, abstractmethod
import numpy as np
import scipy.stats
from scipy.linalg import cho_factor, cho_solve, solve_triangular


class Kernel(ABC):
    @abstractmethod
    def __call__(self, a, b): ...

    def __add__(self, other):
        return Sum(self, other)


class Sum(Kernel):
    def __init__(self, left, right):
        self.left, self.right = left, right

    def __call__(self, a, b):
        return self.left(a, b) + self.right(a, b)


class RBF(Kernel):
    def __init__(self, scale, amplitude):
        self.scale = scale
        self.amplitude = amplitude

    def __call__(self, a, b):
        d = np.subtract.outer(a, b) / self.scale
        return self.amplitude**2 * np.exp(-0.5 * d**2)


class Periodic(Kernel):
    def __init__(self, period, scale, amplitude):
        self.period, self.scale, self.amplitude = period, scale, amplitude

    def __call__(self, a, b):
        K = np.empty((len(a), len(b)))
        for i in range(len(a)):
            for j in range(len(b)):
                s = np.sin(np.pi * (a[i] - b[j]) / self.period)
                K[i, j] = self.amplitude**2 * np.exp(-2 * s**2 / self.scale**2)
        return K


class GaussianProcess:
    def __init__(self, kernel, noise):
        self.kernel = kernel
        self.noise = noise

    def fit(self, x, y):
        self.x_train = np.asarray(x, dtype=float)
        self.y_mean = y.mean()
        r = y - self.y_mean
        K = self.kernel(self.x_train, self.x_train)
        K[np.diag_indices_from(K)] += self.noise**2
        self.chol = cho_factor(K, lower=True)
        self.alpha = cho_solve(self.chol, r)
        self.log_evidence = (-0.5 * r @ self.alpha - np.log(np.diag(self.chol[0])).sum()
                             - 0.5 * len(r) * np.log(2 * np.pi))
        return self

    def predict(self, x):
        Ks = self.kernel(self.x_train, x)
        mean = self.y_mean + Ks.T @ self.alpha
        v = solve_triangular(self.chol[0], Ks, lower=True)
        var = np.diag(self.kernel(x, x)) - np.sum(v**2, axis=0)
        return mean, var

    def expected_improvement(self, x, best):
        mean, var = self.predict(x)
        sd = np.sqrt(var)
        z = (best - mean) / sd
        return (best - mean) * scipy.stats.norm.cdf(z) + sd * scipy.stats.norm.pdf(z)


rng = np.random.default_rng(3)
XT = np.sort(rng.uniform(0, 6, 18))
YT = np.sin(2 * XT) + 0.4 * XT + 0.1 * rng.standard_normal(18)

POINT = np.array([1.8, 1.2, 3.1, 1.0, 0.7, 0.15])
DECIDES = False


def main(p):
    gp = GaussianProcess(RBF(p[0], p[1]) + Periodic(p[2], p[3], p[4]), noise=p[5])
    return -gp.fit(XT, YT).log_evidence


def outputs(p):
    gp = GaussianProcess(RBF(p[0], p[1]) + Periodic(*p[2:5]), p[5]).fit(XT, YT)
    grid = np.linspace(0.3, 6.5, 8)
    mean, var = gp.predict(grid)
    return np.concatenate([mean, np.sqrt(var), gp.expected_improvement(grid, best=1.5)])
