"""Joint-life annuity, whole life premium and reserves under Gompertz-Makeham mortality.

N. L. Bowers et al., "Actuarial Mathematics", chapters 3 to 7 and 9.
"""
import itertools
import math
import operator

import numpy as np

OMEGA = 120         # last age of the table


class LifeTable:
    """Mortality A + B c^x; l_x with radix 100 000."""

    def __init__(self, A, B, c, radix=100_000.0):
        if c <= 1:
            raise ValueError('c must exceed 1')
        self.A, self.B, self.c = A, B, c
        ages = range(OMEGA + 1)
        self.lx = list(itertools.accumulate((self.survival(x) for x in ages), operator.mul,
                                            initial=radix))

    def survival(self, x, t=1.0):
        """t-year survival probability at age x."""
        m = self.B / math.log(self.c)
        return math.exp(-self.A * t - m * self.c**x * (self.c**t - 1))

    def tpx(self, x, t):
        if x + t > OMEGA:
            return 0.0
        return self.lx[x + t] / self.lx[x]

    def qx(self, x):
        return 1 - self.lx[x + 1] / self.lx[x]

    def expectation(self, x):
        return sum(self.tpx(x, t) for t in range(1, OMEGA - x + 1))


def annuity_due(prob, v, n=None):
    """Sum of v^t prob(t), until the terms vanish."""
    total = 0.0
    for t in itertools.count():
        if n is not None and t >= n:
            return total
        term = v**t * prob(t)
        if term < 1e-14:
            return total
        total += term


def insurance(table, x, v):
    return sum(v**(t + 1) * table.tpx(x, t) * table.qx(x + t) for t in range(OMEGA - x))


def reserves(table, x, v, premium, benefit=1.0, expense=0.02):
    """Thiele's recursion forward from zero."""
    out = np.zeros(21)
    for t in range(20):
        q = table.qx(x + t)
        fund = (out[t] + premium * (1 - expense)) / v
        out[t + 1] = (fund - q * benefit) / (1 - q)
    return out


POINT = np.array([0.7, 5.0, 1.098, 3.2])     # 1000 A, 100000 B, c, interest in per cent
DECIDES = True


def valuation(p, x=60, y=57):
    A, B, c = p[0] / 1000, p[1] / 1e5, p[2]
    v = 1 / (1 + p[3] / 100)
    men = LifeTable(A, B, c)
    women = LifeTable(A, 0.6 * B, c)
    alone = annuity_due(lambda t: women.tpx(y, t), v)
    joint = annuity_due(lambda t: men.tpx(x, t) * women.tpx(y, t), v)
    first = annuity_due(lambda t: men.tpx(x, t), v)
    return men, v, alone, joint, first


def main(p):
    """Annuity of 1 to him, 0.6 to the surviving widow, per year."""
    men, v, alone, joint, first = valuation(p)
    return first + 0.6 * (alone - joint)


def outputs(p):
    men, v, alone, joint, first = valuation(p)
    Ax = insurance(men, 60, v)
    premium = Ax / annuity_due(lambda t: men.tpx(60, t), v, n=20)
    V = reserves(men, 60, v, premium / 0.98)
    assert abs(Ax - (1 - (1 - v) * first)) < 1e-6
    return np.array([alone, joint, Ax, premium, V[10], men.expectation(60)])
