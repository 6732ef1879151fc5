"""Design flood: SCS curve number losses, triangular unit hydrograph, Muskingum routing.

V. T. Chow, D. R. Maidment and L. W. Mays, "Applied Hydrology", chapters 5, 7 and 8.
"""
import numpy as np

# design storm, mm in steps of half an hour
RAIN = np.array([2., 3, 4, 7, 12, 21, 14, 8, 5, 3, 2, 1])
DT = 0.5


def excess_rain(cn, ratio=0.2):
    """Cumulative and incremental excess rain, mm."""
    if not 0 < cn <= 100:
        raise ValueError("curve number must be in (0, 100]")
    S = 25400. / cn - 254.
    Ia = ratio * S
    P = np.cumsum(RAIN)
    Pe = np.where(P > Ia, (P - Ia)**2 / (P + (1 - ratio) * S), 0.)
    return np.diff(Pe, prepend=0.)


def unit_hydrograph(area, tlag, dt=DT):
    """SCS triangle sampled every dt, m3/s for 1 mm."""
    tp = dt / 2. + tlag
    qp = 0.208 * area / tp
    tb = 2.67 * tp
    n = int(tb / dt) + 1
    t = dt * np.arange(1, n + 1)
    u = np.zeros(n)
    rising = t <= tp
    u[rising] = qp * t[rising] / tp
    falling = ~rising & (t < tb)
    u[falling] = qp * (tb - t[falling]) / (tb - tp)
    return u * (area / 3.6 / (u.sum() * dt))      # keeps the volume


def muskingum(inflow, K, X, dt=DT):
    if dt < 2 * K * X or dt > 2 * K * (1 - X):
        # subdivide the reach so that all coefficients are positive
        n_sub = int(np.ceil(2 * K * X / dt))
        out = inflow
        for _ in range(n_sub):
            out = muskingum(out, K / n_sub, X, dt)
        return out
    D = 2 * K * (1 - X) + dt
    C0 = (dt - 2 * K * X) / D
    C1 = (dt + 2 * K * X) / D
    C2 = (2 * K * (1 - X) - dt) / D
    assert abs(C0 + C1 + C2 - 1) < 1e-12
    Q = np.zeros(len(inflow))
    Q[0] = inflow[0]
    for i in range(1, len(inflow)):
        Q[i] = C0 * inflow[i] + C1 * inflow[i - 1] + C2 * Q[i - 1]
    return Q


POINT = np.array([78., 1.7, 1.9, 0.22])    # curve number, lag (h), K (h), X
DECIDES = True


def run(p, area=42., base=1.5):
    cn, tlag, K, X = p
    pe = excess_rain(cn)
    u = unit_hydrograph(area, tlag)
    inflow = np.zeros(48)
    direct = np.convolve(pe, u)
    inflow[:len(direct)] += direct
    inflow += base
    return pe, inflow, muskingum(inflow, K, X)


def main(p):
    return run(p)[2].max()


def outputs(p):
    pe, I, Q = run(p)
    stored = np.cumsum(I - Q) * DT * 3600
    t = DT * np.arange(len(Q))
    centroid = np.average(t, weights=Q - Q.min())
    return np.array([pe.sum(), I.max(), Q.max(), stored.max() / 1e3, centroid])
