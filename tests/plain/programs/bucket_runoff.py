"""Daily rainfall-runoff with snow, a soil bucket and Muskingum routing.

After the HBV model (S. Bergstrom, 1976) and K. Beven, "Rainfall-Runoff
Modelling: The Primer"; routing from V. T. Chow, "Applied Hydrology", chapter 8.
"""
import math
import statistics

import numpy as np
from scipy.interpolate import interp1d

_gen = np.random.default_rng(2024)
DAYS = 90
RAIN = np.where(_gen.random(DAYS) < 0.35, _gen.gamma(1.2, 9.0, DAYS), 0.0)
TEMP = 2.0 + 9.0 * np.sin(2 * np.pi * (np.arange(DAYS) - 20) / 180) + _gen.normal(0, 2.0, DAYS)


# gauge: discharge (mm/day) to stage (m)
stage_of = interp1d([0.0, 0.5, 1.5, 3.0, 6.0, 12.0], [0.10, 0.35, 0.62, 0.91, 1.30, 1.80], kind='cubic')


class Catchment:
    def __init__(self, capacity, beta, k_quick, k_slow, degree_day=3.5, threshold=12.0):
        self.capacity = capacity
        self.beta = beta
        self.k_quick = k_quick
        self.k_slow = k_slow
        self.degree_day = degree_day
        self.threshold = threshold
        self.snow = 0.0
        self.soil = 0.4 * capacity
        self.upper = 5.0
        self.lower = 20.0

    def day(self, rain, temp):
        # snow
        if temp < 0:
            self.snow += rain
            water = 0.0
        else:
            melt = min(self.snow, self.degree_day * temp)
            self.snow -= melt
            water = rain + melt
        # soil moisture
        wetness = self.soil / self.capacity
        recharge = water * wetness**self.beta
        self.soil += water - recharge
        if self.soil > self.capacity:
            recharge += self.soil - self.capacity
            self.soil = self.capacity
        potential = max(0.0, 0.25 * temp + 0.5)
        evap = potential * min(1.0, self.soil / (0.7 * self.capacity))
        self.soil = max(self.soil - evap, 0.0)
        # two reservoirs
        self.upper += recharge
        quick = self.k_quick * max(self.upper - self.threshold, 0)
        percolation = min(1.5, self.upper - quick)
        self.upper -= quick + percolation
        self.lower += percolation
        slow = self.k_slow * self.lower
        self.lower -= slow
        return quick + slow, evap


def muskingum(inflow, K=1.8, x=0.2, dt=1.0):
    denom = 2 * K * (1 - x) + dt
    c0 = (dt - 2 * K * x) / denom
    c1 = (dt + 2 * K * x) / denom
    c2 = (2 * K * (1 - x) - dt) / denom
    out = np.zeros_like(inflow)
    out[0] = inflow[0]
    for i in range(1, len(inflow)):
        out[i] = c0 * inflow[i] + c1 * inflow[i - 1] + c2 * out[i - 1]
    return out


def season(p):
    basin = Catchment(*p)
    runoff = np.zeros(DAYS)
    total_evap = 0
    for i, (r, t) in enumerate(zip(RAIN, TEMP)):
        runoff[i], e = basin.day(r, t)
        total_evap += e
    return basin, muskingum(runoff), total_evap


# capacity, exponent, quick and slow recession, degree-day factor
POINT = np.array([150.0, 2.0, 0.3, 0.05, 3.1])
DECIDES = True


def main(p):
    basin, q, evap = season(p)
    return float(stage_of(q.max()))


def outputs(p):
    basin, q, evap = season(p)
    weekly = [statistics.mean(q[i:i + 7]) for i in range(0, 84, 7)]
    stages = stage_of(q[::10])
    peakedness = math.log(q.max() / statistics.median(q.tolist()))
    return np.concatenate([weekly, stages, [basin.soil, basin.upper, basin.lower, evap, peakedness]])
