"""Newton-Raphson power flow of a five-bus network in polar coordinates.

J. J. Grainger and W. D. Stevenson, "Power System Analysis", chapter 9.
"""
import numpy as np
from numpy import angle, conj, cos, sin

SLACK, PV, PQ = 0, 1, 2

LINES = [   # from, to, r, x, b
    (0, 1, 0.02, 0.06, 0.060),
    (0, 2, 0.08, 0.24, 0.050),
    (1, 2, 0.06, 0.18, 0.040),
    (1, 3, 0.06, 0.18, 0.040),
    (1, 4, 0.04, 0.12, 0.030),
    (2, 3, 0.01, 0.03, 0.020),
    (3, 4, 0.08, 0.24, 0.050),
]
TYPES = np.array([SLACK, PV, PQ, PQ, PQ])


def ybus(lines, n):
    Y = np.zeros((n, n), dtype=complex)
    for f, t, r, x, b in lines:
        y = 1 / complex(r, x)
        Y[f, f] += y + 0.5j * b
        Y[t, t] += y + 0.5j * b
        Y[f, t] -= y
        Y[t, f] -= y
    return Y


def power_flow(Y, P, Q, Vm, tol=1e-12, maxit=20):
    """Solve for voltage magnitudes and angles; P, Q scheduled injections."""
    n = len(P)
    V = Vm.copy()
    th = np.zeros(n)
    pvpq = np.flatnonzero(TYPES != SLACK)
    pq = np.flatnonzero(TYPES == PQ)
    G, B = Y.real, Y.imag
    for it in range(maxit):
        Vc = V * np.exp(1j * th)
        S = Vc * conj(Y @ Vc)
        mis = np.r_[P[pvpq] - S.real[pvpq], Q[pq] - S.imag[pq]]
        if np.abs(mis).max() < tol:
            break
        H = np.zeros((n, n)); N = np.zeros((n, n))
        J = np.zeros((n, n)); L = np.zeros((n, n))
        for i in range(n):
            for k in range(n):
                if i == k:
                    H[i, i] = -S.imag[i] - B[i, i] * V[i]**2
                    N[i, i] = S.real[i] / V[i] + G[i, i] * V[i]
                    J[i, i] = S.real[i] - G[i, i] * V[i]**2
                    L[i, i] = S.imag[i] / V[i] - B[i, i] * V[i]
                    continue
                d = th[i] - th[k]
                a = G[i, k] * sin(d) - B[i, k] * cos(d)
                c = G[i, k] * cos(d) + B[i, k] * sin(d)
                H[i, k] = V[i] * V[k] * a
                N[i, k] = V[i] * c
                J[i, k] = -V[i] * V[k] * c
                L[i, k] = V[i] * a
        jac = np.block([[H[np.ix_(pvpq, pvpq)], N[np.ix_(pvpq, pq)]],
                        [J[np.ix_(pq, pvpq)], L[np.ix_(pq, pq)]]])
        dx = np.linalg.solve(jac, mis)
        th[pvpq] += dx[:len(pvpq)]
        V[pq] += dx[len(pvpq):]
    else:
        raise RuntimeError('power flow did not converge')
    return V * np.exp(1j * th), S


POINT = np.array([0.60, 0.15, 0.40, 1.03])    # load P and Q at bus 4, generation, set voltage
DECIDES = True


def solve(x):
    load_p, load_q, gen, vset = x
    P = np.array([0, gen - 0.20, -0.45, -0.40, -load_p])
    Q = np.array([0, 0, -0.15, -0.05, -load_q])
    Vm = np.array([1.06, vset, 1.0, 1.0, 1.0])
    return power_flow(ybus(LINES, 5), P, Q, Vm)


def main(x):
    """Losses of the network, per cent of 100 MVA."""
    V, S = solve(x)
    return 100 * np.sum(S).real


def outputs(x):
    V, S = solve(x)
    return np.hstack([np.abs(V[2:]), np.rad2deg(angle(V[4])), S[0].real, S[1].imag])
