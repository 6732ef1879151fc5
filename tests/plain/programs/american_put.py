"""American put on a binomial tree, early exercise boundary and implied volatility.

J. C. Cox, S. A. Ross, M. Rubinstein, "Option Pricing: A Simplified Approach"
(1979); J. C. Hull, "Options, Futures and Other Derivatives", chapters 13 and 21.
"""
import math

import numpy as np
from scipy.optimize import brentq


def N(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def black_scholes(S, K, r, sigma, T, kind='put'):
    d1 = (math.log(S / K) + (r + 0.5 * sigma**2) * T) / (sigma * math.sqrt(T))
    d2 = d1 - sigma * math.sqrt(T)
    if kind == 'call':
        return S * N(d1) - K * math.exp(-r * T) * N(d2)
    return K * math.exp(-r * T) * N(-d2) - S * N(-d1)


def implied_vol(price, S, K, r, T):
    intrinsic = max(K * math.exp(-r * T) - S, 0.0)
    if price <= intrinsic:
        raise ValueError('price below the lower bound')
    return brentq(lambda s: black_scholes(S, K, r, s, T) - price, 1e-3, 3.0, xtol=1e-12)


class BinomialTree:
    def __init__(self, S, r, sigma, T, steps=40):
        self.S = S
        self.steps = steps
        dt = T / steps
        self.u = math.exp(sigma * math.sqrt(dt))
        self.d = 1 / self.u
        self.disc = math.exp(-r * dt)
        self.p = (math.exp(r * dt) - self.d) / (self.u - self.d)
        if not 0 < self.p < 1:
            raise ValueError(f'risk neutral probability {self.p} out of range, use more steps')

    def spot(self, i, j):
        return self.S * self.u**j * self.d**(i - j)

    def put(self, K, american=True):
        n = self.steps
        value = np.zeros(n + 1)
        for j in range(n + 1):
            value[j] = max(K - self.spot(n, j), 0.0)
        boundary = np.zeros(n)
        early = {}
        for i in range(n - 1, -1, -1):
            for j in range(i + 1):
                hold = self.disc * (self.p * value[j + 1] + (1 - self.p) * value[j])
                exercise = K - self.spot(i, j)
                if american and exercise > hold:
                    value[j] = exercise
                    boundary[i] = self.spot(i, j)
                else:
                    value[j] = hold
            if i <= 2:
                early[i] = value[:i + 1].copy()
        delta = (early[1][1] - early[1][0]) / (self.spot(1, 1) - self.spot(1, 0))
        theta_dt = early[2][1] - early[0][0]
        return value[0], delta, theta_dt, boundary


POINT = np.array([96.3, 100.0, 0.04, 0.27, 0.75])      # S, K, r, sigma, T
DECIDES = True


def main(p):
    S, K, r, sigma, T = p
    price, *_ = BinomialTree(S, r, sigma, T).put(K)
    return price


def outputs(p):
    S, K, r, sigma, T = p
    tree = BinomialTree(S, r, sigma, T)
    american, delta, theta, boundary = tree.put(K)
    european, *_ = tree.put(K, american=False)
    exact = black_scholes(S, K, r, sigma, T)
    vol = implied_vol(european, S, K, r, T)
    return [american, european, exact, vol, american - european, delta, theta, boundary[-1]]
