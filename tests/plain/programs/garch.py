"""GJR-GARCH(1,1) volatility of daily returns, Student-t likelihood.

T. Bollerslev (1986), L. Glosten, R. Jagannathan, D. Runkle (1993); notation as
in R. Tsay, "Analysis of Financial Time Series", chapter 3.
"""
from math import lgamma, log, pi, sqrt
import statistics

import numpy as np

TRADING_DAYS = 252


def _make_returns(n=250, seed=7):
    rng = np.random.default_rng(seed)
    r = np.zeros(n)
    s2 = 1.0
    for i in range(n):
        r[i] = 0.03 + sqrt(s2) * rng.standard_normal()
        s2 = 0.05 + 0.1 * (r[i] - 0.03)**2 + 0.85 * s2
    return r


RETURNS = _make_returns()
SAMPLE_VARIANCE = statistics.variance(RETURNS.tolist())


class GJR:
    def __init__(self, mu, omega, alpha, gamma, beta, nu=8.0):
        self.mu = float(mu)
        self.omega = float(omega)
        self.alpha = float(alpha)
        self.gamma = float(gamma)
        self.beta = float(beta)
        self.nu = nu

    @property
    def persistence(self):
        return self.alpha + self.beta + 0.5 * self.gamma

    @property
    def unconditional_variance(self):
        return self.omega / (1.0 - self.persistence)

    def filter(self, returns):
        e = returns - self.mu
        sigma2 = np.empty_like(e)
        sigma2[0] = SAMPLE_VARIANCE
        for t in range(1, len(e)):
            leverage = self.gamma * (e[t - 1] < 0)
            sigma2[t] = (self.omega + (self.alpha + leverage) * e[t - 1]**2
                         + self.beta * sigma2[t - 1])
        return e, sigma2

    def loglik(self, returns):
        e, sigma2 = self.filter(returns)
        nu = self.nu
        const = lgamma((nu + 1) / 2) - lgamma(nu / 2) - 0.5 * log(pi * (nu - 2))
        ll = 0.0
        for et, s2 in zip(e, sigma2):
            ll += const - 0.5 * log(s2) - 0.5 * (nu + 1) * log(1 + et**2 / (s2 * (nu - 2)))
        return ll

    def forecast(self, returns, horizon):
        """Annualised volatility, 1..horizon days ahead."""
        e, sigma2 = self.filter(returns)
        out = np.zeros(horizon)
        out[0] = self.omega + self.alpha * e[-1]**2 + self.beta * sigma2[-1]
        for h in range(1, horizon):
            out[h] = self.omega + self.persistence * out[h - 1]
        return np.sqrt(TRADING_DAYS * out)


POINT = np.array([0.04, 0.06, 0.07, 0.05, 0.82])
DECIDES = False


def main(p):
    mu, omega, alpha, gamma, beta = p
    return -GJR(mu, omega, alpha, gamma, beta).loglik(RETURNS) / len(RETURNS)


def outputs(p):
    model = GJR(*p, nu=6.0)
    vol = model.forecast(RETURNS, 10)
    return [*vol, sqrt(model.unconditional_variance), model.persistence]
