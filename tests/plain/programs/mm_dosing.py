"""Phenytoin: repeated oral doses with saturable elimination, peaks, troughs and exposure.

P. L. Bonate, "Pharmacokinetic-Pharmacodynamic Modeling and Simulation", chapter 3.
"""
from dataclasses import dataclass

import numpy as np
from scipy.integrate import cumulative_trapezoid, solve_ivp


@dataclass(frozen=True)
class Drug:
    vmax: float         # mg/h
    km: float           # mg/L
    volume: float       # L
    ka: float           # 1/h
    f: float = 0.9

    @property
    def intrinsic_clearance(self):
        return self.vmax / self.km

    def rhs(self, t, y):
        gut, amount = y
        c = amount / self.volume
        absorbed = self.ka * gut
        return np.array([-absorbed, absorbed - self.vmax * c / (self.km + c)])


def doses(amount, interval, n, loading=1.0):
    """Generator of (time, dose)."""
    for k in range(n):
        yield k * interval, amount * (loading if k == 0 else 1.0)


def regimen(drug, dose, interval=12.0, n=4):
    y = np.zeros(2)
    times, conc = [], []
    for t0, amount in doses(dose, interval, n, loading=2.0):
        y = y.copy()
        y[0] += drug.f * amount
        sol = solve_ivp(drug.rhs, (t0, t0 + interval), y, method='RK45',
                        t_eval=np.linspace(t0, t0 + interval, 13), rtol=1e-9, atol=1e-10)
        if not sol.success:
            raise RuntimeError(sol.message)
        times.extend(sol.t[:-1])
        conc.extend(sol.y[1, :-1] / drug.volume)
        y = sol.y[:, -1]
    times.append(n * interval)
    conc.append(y[1] / drug.volume)
    return np.array(times), np.array(conc)


def parabola_peak(t, c):
    """Peak by a parabola through the largest sample and its neighbours."""
    k = int(np.argmax(c))
    if k == 0 or k == len(c) - 1:
        return t[k], c[k]
    y0, y1, y2 = c[k - 1], c[k], c[k + 1]
    d = 0.5 * (y0 - y2) / (y0 - 2 * y1 + y2)
    return t[k] + d * (t[k + 1] - t[k]), y1 - 0.25 * (y0 - y2) * d


POINT = np.array([20.0, 5.0, 45.0, 0.8, 180.0])
DECIDES = True


def main(x):
    drug = Drug(*x[:4])
    t, c = regimen(drug, x[4])
    return parabola_peak(t[36:], c[36:])[1]


def outputs(x):
    drug = Drug(*x[:4])
    t, c = regimen(drug, x[4])
    t_max, c_max = parabola_peak(t[36:], c[36:])
    auc = cumulative_trapezoid(c, t, initial=0)
    return np.array([c_max, t_max - 36, c[-1], auc[-1] - auc[36], drug.intrinsic_clearance])
