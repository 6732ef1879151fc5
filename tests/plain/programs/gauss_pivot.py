"""Flows in a water network: Gaussian elimination with partial pivoting, Newton
iteration on the loop heads, and a conjugate gradient cross-check.

G. H. Golub and C. F. Van Loan, "Matrix Computations", chapters 3 and 11;
network equations after H. Cross, "Analysis of flow in networks" (1936).
"""
import numpy as np


class SingularMatrix(Exception): pass


def lu_decompose(A):
    """In-place Doolittle factorisation of a copy, returns LU, permutation, sign."""
    LU = np.array(A, dtype=float)
    n = len(LU)
    perm = list(range(n))
    sign = 1
    for k in range(n):
        piv = k
        for i in range(k + 1, n):
            if abs(LU[i, k]) > abs(LU[piv, k]):
                piv = i
        if abs(LU[piv, k]) < 1e-14:
            raise SingularMatrix(f'no pivot in column {k}')
        if piv != k:
            LU[[k, piv]] = LU[[piv, k]]
            perm[k], perm[piv] = perm[piv], perm[k]
            sign = -sign
        for i in range(k + 1, n):
            LU[i, k] /= LU[k, k]
            LU[i, k + 1:] -= LU[i, k] * LU[k, k + 1:]
    return LU, perm, sign


def lu_solve(LU, perm, b):
    n = len(b)
    x = np.zeros(n)
    for i in range(n):
        x[i] = b[perm[i]] - LU[i, :i] @ x[:i]
    for i in reversed(range(n)):
        x[i] = (x[i] - LU[i, i + 1:] @ x[i + 1:]) / LU[i, i]
    return x


def determinant(A):
    LU, _, sign = lu_decompose(A)
    det = sign
    for d in np.diag(LU):
        det *= d
    return det


def conjugate_gradient(A, b, tol=1e-12):
    x = np.zeros_like(b)
    r = b - A @ x
    d = r.copy()
    rho = r @ r
    while np.sqrt(rho) > tol * np.linalg.norm(b):
        q = A @ d
        a = rho / (d @ q)
        x += a * d
        r -= a * q
        rho, old = r @ r, rho
        d = r + (rho / old) * d
    return x


PIPES = [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3), (3, 4), (2, 4)]   # 5 is the reservoir
FEED = (5, 0)


def network_matrix(conductance, feed):
    """Unknowns: heads of five nodes and the reservoir inflow (unsymmetric order)."""
    A = np.zeros((6, 6))
    for (i, j), c in zip(PIPES, conductance):
        A[i, i] += c; A[j, j] += c
        A[i, j] -= c; A[j, i] -= c
    A[0, 5] = -1.0
    A[5, 0] = 1.0
    A[5, 5] = 1.0 / feed
    return A[[5, 4, 2, 0, 1, 3]]


def solve_network(p, head=50.0):
    conductance, feed, demand = p[:7], p[7], p[8:]
    A = network_matrix(conductance, feed)
    b = np.zeros(6)
    b[0] = head
    b[1], b[5], b[2] = -demand
    LU, perm, _ = lu_decompose(A)
    x = lu_solve(LU, perm, b)
    x += lu_solve(LU, perm, b - A @ x)        # iterative refinement
    return A, x


POINT = np.array([0.8, 0.5, 0.3, 0.6, 0.4, 0.7, 0.2, 2.0, 3.0, 2.0, 4.0])
DECIDES = True


def main(p):
    A, x = solve_network(p)
    return x[:5].min()             # lowest head in the network


def outputs(p):
    A, x = solve_network(p)
    flows = [c * (x[i] - x[j]) for (i, j), c in zip(PIPES, p)]
    cg = conjugate_gradient(A.T @ A, A.T @ np.ones(6))
    return np.array([*x, *flows, determinant(A), *cg])
