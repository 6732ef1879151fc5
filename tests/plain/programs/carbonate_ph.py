"""pH of a carbonate water with calcite and a base addition, activity corrections by Davies.

W. Stumm and J. J. Morgan, "Aquatic Chemistry", chapters 3 and 4.
"""
from math import log10, sqrt

import numpy as np
from scipy.optimize import brentq

CHARGE = {'H': 1, 'OH': -1, 'HCO3': -1, 'CO3': -2, 'Na': 1, 'Cl': -1, 'CaHCO3': 1, 'Ca': 2}


def constants(T):
    """Plummer and Busenberg (1982), T in kelvin; decimal logarithms."""
    lt = log10(T)
    k = dict()
    k['H'] = 108.3865 + 0.01985076 * T - 6919.53 / T - 40.45154 * lt + 669365.0 / T**2
    k['1'] = -356.3094 - 0.06091964 * T + 21834.37 / T + 126.8339 * lt - 1684915.0 / T**2
    k['2'] = -107.8871 - 0.03252849 * T + 5151.79 / T + 38.92561 * lt - 563713.9 / T**2
    k['w'] = -283.9710 - 0.05069842 * T + 13323.0 / T + 102.24447 * lt - 1119669.0 / T**2
    k['CaHCO3'] = 1209.12 + 0.31294 * T - 34765.05 / T - 478.782 * lt
    return {name: 10.0 ** v for name, v in k.items()}


def davies(z, I, T):
    A = 0.5085 * (298.15 / T) ** -0.25
    root = sqrt(I)
    return 10 ** (-A * z * z * (root / (1 + root) - 0.3 * I))


def species(pH, I, K, total_c, ca, T):
    g = {s: davies(z, I, T) for s, z in CHARGE.items()}
    h = 10 ** -pH                      # activity
    c = {'H': h / g['H'], 'OH': K['w'] / h / g['OH']}
    # all carbonate in terms of the activity of HCO3, calcium in terms of free Ca
    r_acid = h / K['1']
    r_base = K['2'] / h
    ion = K['CaHCO3'] * g['Ca'] / g['CaHCO3']
    # quadratic for the activity a of bicarbonate: pair formation with calcium
    s = r_acid + 1 / g['HCO3'] + r_base / g['CO3']
    qa, qb, qc = s * ion, s + ion * (ca - total_c), -total_c
    a = (-qb + sqrt(qb * qb - 4 * qa * qc)) / (2 * qa)
    c['Ca'] = ca / (1 + ion * a)
    c['CaHCO3'] = ca - c['Ca']
    c['HCO3'] = a / g['HCO3']
    c['CO3'] = a * r_base / g['CO3']
    c['CO2'] = a * r_acid
    return c


def solve(total_c, base, T, ca=1.0e-3, acid=1.0e-3):
    K = constants(T)
    I = 0.005
    for sweep in range(60):
        def balance(pH):
            c = species(pH, I, K, total_c, ca, T)
            c.update(Na=base, Cl=acid)
            return sum(CHARGE[s] * c[s] for s in CHARGE) * 1e3
        pH = brentq(balance, 3.0, 12.0, xtol=1e-14, rtol=1e-14)
        c = species(pH, I, K, total_c, ca, T)
        c.update(Na=base, Cl=acid)
        new = 0.5 * sum([c[s] * z**2 for s, z in CHARGE.items()])
        done = abs(new - I) < 1e-15
        I = new
        if done:
            break
    return pH, I, c, K


POINT = np.array([2.5, 1.4, 288.15])      # mmol/L carbon, mmol/L sodium, K
DECIDES = True


def main(x):
    pH, I, c, K = solve(1e-3 * x[0], 1e-3 * x[1], x[2])
    return pH


def outputs(x):
    pH, I, c, K = solve(1e-3 * x[0], 1e-3 * x[1], x[2])
    alk = c['HCO3'] + 2 * c['CO3'] + c['CaHCO3'] + c['OH'] - c['H']
    p_co2 = c['CO2'] / K['H']
    return np.array([pH, 1e3 * I, 1e3 * alk, log10(p_co2), 1e3 * c['HCO3'], 1e6 * c['CaHCO3']])
