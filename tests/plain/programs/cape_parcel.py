"""Lifted parcel on a sounding: condensation level, CAPE, CIN and updraft.

R. B. Stull, "Practical Meteorology", chapters 4 and 5; LCL temperature of D. Bolton (1980).
"""
import numpy as np
from scipy.interpolate import PchipInterpolator, interp1d

RD, CP, LV, G = 287.04, 1005.7, 2.501e6, 9.81
EPS = 0.622

# sounding: pressure (hPa), temperature (C), dew point (C)
SOUNDING = np.array([
    [1000, 27.0, 20.5], [950, 23.4, 18.6], [900, 21.8, 15.0], [850, 19.6, 10.9],
    [800, 15.9, 6.0], [700, 7.3, -4.2], [600, -2.4, -14.8], [500, -12.2, -26.0],
    [400, -24.5, -38.0], [300, -40.8, -55.0], [250, -50.2, -63.0], [200, -56.0, -70.0],
])
P, T, TD = SOUNDING.T
temperature = PchipInterpolator(np.log(P[::-1]), T[::-1] + 273.15)
dewpoint = interp1d(np.log(P[::-1]), TD[::-1] + 273.15)


def es(t):
    """Saturation vapour pressure over water, hPa (Bolton), t in kelvin."""
    tc = t - 273.15
    return 6.112 * np.exp(17.67 * tc / (tc + 243.5))


def mixing_ratio(p, t):
    e = es(t)
    return EPS * e / (p - e)


def virtual(t, w):
    return t * (1 + w / EPS) / (1 + w)


def lcl(p, t, td):
    t_lcl = 1 / (1 / (td - 56) + np.log(t / td) / 800) + 56
    return p * (t_lcl / t) ** (CP / RD), t_lcl


def moist_lapse(p, t):
    """dT/dp along a pseudoadiabat, K/hPa."""
    w = mixing_ratio(p, t)
    num = RD * t + LV * w
    den = CP + LV**2 * w * EPS / (RD * t**2)
    return num / den / p


def lift(p0, t0, td0, levels):
    """Parcel temperature and mixing ratio at descending pressures."""
    w0 = mixing_ratio(p0, td0)
    p_lcl, t_lcl = lcl(p0, t0, td0)
    tp = np.empty_like(levels)
    wp = np.full(levels.shape, w0)
    dry = levels >= p_lcl
    tp[dry] = t0 * (levels[dry] / p0) ** (RD / CP)
    p, t = p_lcl, t_lcl
    for i in np.nonzero(~dry)[0]:
        n = 4
        h = (levels[i] - p) / n
        for _ in range(n):
            k1 = moist_lapse(p, t)
            k2 = moist_lapse(p + h / 2, t + h / 2 * k1)
            k3 = moist_lapse(p + h / 2, t + h / 2 * k2)
            k4 = moist_lapse(p + h, t + h * k3)
            t = t + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
            p = p + h
        p = levels[i]
        tp[i] = t
        wp[i] = mixing_ratio(p, t)
    return tp, wp, p_lcl


def energies(p0, t0, td0):
    levels = np.linspace(p0, 205.0, 41)
    tp, wp, p_lcl = lift(p0, t0, td0, levels)
    lp = np.log(levels)
    tv_env = virtual(temperature(lp), mixing_ratio(levels, dewpoint(lp)))
    buoyancy = virtual(tp, wp) - tv_env
    cape = cin = 0.0
    free = False            # above the level of free convection
    for i in range(len(levels) - 1):
        b0, b1 = buoyancy[i], buoyancy[i + 1]
        width = lp[i] - lp[i + 1]
        if b0 * b1 >= 0:
            parts = [0.5 * (b0 + b1) * width]
        else:
            f = b0 / (b0 - b1)
            parts = [0.5 * b0 * f * width, 0.5 * b1 * (1 - f) * width]
        for area in parts:
            if area > 0:
                free = free or levels[i] < p_lcl
                cape += RD * area
            elif not free:
                cin += RD * area
    return cape, cin, p_lcl, tp, levels


POINT = np.array([984.3, 300.2, 292.8])     # hPa, K, K
DECIDES = True


def main(x):
    return energies(*x)[0]


def outputs(x):
    cape, cin, p_lcl, tp, levels = energies(*x)
    height = RD / G * 0.5 * (x[1] + x[2]) * np.log(x[0] / p_lcl)
    t500 = np.interp(-500.0, -levels, tp)
    updraft = np.sqrt(2 * cape) if cape > 0 else 0.0
    return np.array([cape, cin, p_lcl, height, temperature(np.log(500.0)) - t500, updraft])
