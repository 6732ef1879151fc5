"""Zero curve from par swap rates, and the price, yield and risk of a bond on it.

J. C. Hull, "Options, Futures and Other Derivatives", chapters 4 and 7.
"""
from math import exp, log

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

TENORS = [1, 2, 3, 5, 7, 10]


def bootstrap(rates):
    """Annual swaps; missing maturities get linearly interpolated par rates."""
    years = np.arange(1, TENORS[-1] + 1)
    par = np.interp(years, TENORS, rates)
    dfs = []
    for s in par:
        annuity = sum(dfs)
        dfs.append((1 - s * annuity) / (1 + s))
    return years, np.array(dfs)


class ZeroCurve:
    def __init__(self, years, dfs):
        zeros = [-log(d) / t for t, d in zip(years, dfs)]
        # flat to the left of the first pillar
        self._spline = CubicSpline(np.r_[0, years], np.r_[zeros[0], zeros], bc_type='natural')

    def zero(self, t: float) -> float:
        return float(self._spline(t))

    def df(self, t: float) -> float:
        return exp(-self.zero(t) * t)

    def forward(self, t1: float, t2: float) -> float:
        return log(self.df(t1) / self.df(t2)) / (t2 - t1)


class Bond:
    def __init__(self, coupon, maturity, freq=2, face=100.0):
        self.freq = freq
        n = int(maturity * freq)
        self.times = [(i + 1) / freq for i in range(n)]
        self.flows = np.full(n, face * coupon / freq)
        self.flows[-1] += face

    def price(self, curve):
        return np.dot(self.flows, np.vectorize(curve.df)(self.times))

    def price_from_yield(self, y):
        return sum(cf * exp(-y * t) for t, cf in zip(self.times, self.flows))

    def ytm(self, price):
        return brentq(lambda y: self.price_from_yield(y) - price, -0.05, 0.5, xtol=1e-13)

    def duration_convexity(self, y):
        pv = np.fromiter((cf * exp(-y * t) for t, cf in zip(self.times, self.flows)),
                         dtype=float, count=len(self.times))
        t = np.array(self.times)
        return pv @ t / pv.sum(), pv @ t**2 / pv.sum()


POINT = np.array([0.031, 0.0325, 0.034, 0.0362, 0.0375, 0.0391])
DECIDES = False


def main(p):
    curve = ZeroCurve(*bootstrap(p))
    return Bond(0.045, 8).price(curve)


def outputs(p):
    years, dfs = bootstrap(p)
    curve = ZeroCurve(years, dfs)
    bond = Bond(coupon=0.045, maturity=8)
    price = bond.price(curve)
    y = bond.ytm(price)
    dur, conv = bond.duration_convexity(y)
    fwds = [curve.forward(t, t + 1) for t in range(1, 9)]
    return np.array([price, y, dur, conv] + fwds)
