"""Regression with autocorrelated errors: OLS with Newey-West errors and Prais-Winsten GLS.

W. H. Greene, "Econometric Analysis", chapters 4, 9 and 20.
"""
import numpy as np
from numpy.linalg import inv, lstsq
from scipy import stats

rng = np.random.default_rng(1987)
T = 80
trend = np.arange(T) / T
income = 2.0 + 0.8 * trend + 0.3 * np.sin(0.4 * np.arange(T)) + 0.1 * rng.standard_normal(T)
price = 1.0 - 0.2 * trend + 0.15 * rng.standard_normal(T)
shock = rng.standard_normal(T)


def ar1(eps, rho, sigma):
    u = np.empty_like(eps)
    u[0] = sigma * eps[0] / np.sqrt(1 - rho**2)
    for t in range(1, len(eps)):
        u[t] = rho * u[t - 1] + sigma * eps[t]
    return u


class OLS:
    def __init__(self, y, X, names=None):
        self.y = np.asarray(y)
        self.X = np.column_stack([np.ones(len(X)), X])
        self.names = ['const'] + list(names or [f'x{i}' for i in range(X.shape[1])])
        self.n, self.k = self.X.shape

    def fit(self):
        self.beta, _, rank, _ = lstsq(self.X, self.y, rcond=None)
        if rank < self.k:
            raise np.linalg.LinAlgError('regressors are collinear')
        self.resid = self.y - self.X @ self.beta
        self.s2 = self.resid @ self.resid / (self.n - self.k)
        self.xtx_inv = inv(self.X.T @ self.X)
        return self

    @property
    def se(self):
        return np.sqrt(self.s2 * np.diag(self.xtx_inv))

    def newey_west(self, lags):
        Xe = self.X * self.resid[:, None]
        S = Xe.T @ Xe
        for l in range(1, lags + 1):
            w = 1 - l / (lags + 1)
            G = Xe[l:].T @ Xe[:-l]
            S += w * (G + G.T)
        V = self.xtx_inv @ S @ self.xtx_inv
        return V * self.n / (self.n - self.k)

    @property
    def durbin_watson(self):
        return np.sum(np.diff(self.resid)**2) / np.sum(self.resid**2)

    def r_squared(self):
        return 1 - self.resid.var() / self.y.var()

    def summary(self):
        lines = [f'{n:>10s} {b:10.4f} {s:9.4f}' for n, b, s in zip(self.names, self.beta, self.se)]
        return '\n'.join(lines)


def prais_winsten(model, sweeps=40):
    rho = 0.0
    for _ in range(sweeps):
        ys, Xs = model.y.copy(), model.X.copy()
        ys[1:] -= rho * model.y[:-1]
        Xs[1:] -= rho * model.X[:-1]
        ys[0] *= np.sqrt(1 - rho**2)
        Xs[0] *= np.sqrt(1 - rho**2)
        b = np.linalg.solve(Xs.T @ Xs, Xs.T @ ys)
        e = model.y - model.X @ b
        rho = (e[1:] @ e[:-1]) / (e[:-1] @ e[:-1])
    return b, rho


POINT = np.array([0.9, -0.6, 0.55, 0.2])    # elasticities, autocorrelation, sigma
DECIDES = True


def estimate(p):
    y = 1.0 + p[0] * np.log(income) + p[1] * np.log(price)**2 + ar1(shock, p[2], p[3])
    X = np.column_stack((income, price))
    return OLS(y, X, names=('income', 'price')).fit()


def main(p):
    """t statistic of income with Newey-West errors."""
    fit = estimate(p)
    V = fit.newey_west(int(4 * (T / 100) ** (2 / 9)))
    return fit.beta[1] / np.sqrt(V[1, 1])


def outputs(p):
    fit = estimate(p)
    t_price = fit.beta[2] / fit.se[2]
    pval = 2 * stats.t.sf(abs(t_price), fit.n - fit.k)
    b, rho = prais_winsten(fit)
    return np.array([fit.beta[1], pval, fit.durbin_watson, fit.r_squared(), b[1], rho])
