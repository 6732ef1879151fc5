"""Least-squares polynomial by Householder QR written out, condition by inverse iteration.

G. H. Golub and C. F. Van Loan, "Matrix Computations", sections 5.1 to 5.3; Chebyshev series by
Clenshaw's recurrence; divided differences from S. D. Conte and C. de Boor.
"""
import numpy as np
from numpy import sqrt


def house(x):
    """Vector v (v[0] = 1) and beta of the reflection that maps x to a multiple of e1."""
    sigma = x[1:].dot(x[1:])
    v = x.copy()
    v[0] = 1.0
    if sigma == 0:
        return v, 0.0
    mu = sqrt(x[0]**2 + sigma)
    v0 = x[0] - mu if x[0] <= 0 else -sigma / (x[0] + mu)
    beta = 2 * v0**2 / (sigma + v0**2)
    v[1:] = x[1:] / v0
    return v, beta


def qr_inplace(A):
    """R in the upper triangle, the essential parts of the vectors below it."""
    m, n = A.shape
    betas = []
    for j in range(n):
        v, beta = house(A[j:, j])
        A[j:, j:] -= beta * np.outer(v, v @ A[j:, j:])
        if j < m - 1:
            A[j + 1:, j] = v[1:]
        betas.append(beta)
    return betas


def apply_qt(A, betas, b):
    y = b.copy()
    for j, beta in enumerate(betas):
        v = np.concatenate(([1.0], A[j + 1:, j]))
        y[j:] -= beta * v.dot(y[j:]) * v
    return y


def back_substitution(R, y):
    n = R.shape[1]
    x = np.zeros(n)
    for i in range(n - 1, -1, -1):
        if abs(R[i, i]) < 1e-14:
            raise ZeroDivisionError('matrix is singular')
        x[i] = (y[i] - R[i, i + 1:n].dot(x[i + 1:])) / R[i, i]
    return x


def smallest_singular(R, tol=1e-13):
    """Inverse iteration on R'R."""
    n = R.shape[1]
    z = np.ones(n) / sqrt(n)
    old = 0.0
    while True:
        # forward with R', back with R
        w = np.zeros(n)
        for i in range(n):
            w[i] = (z[i] - R[:i, i].dot(w[:i])) / R[i, i]
        z = back_substitution(R, w)
        norm = sqrt(z.dot(z))
        z /= norm
        if abs(norm - old) <= tol * norm:
            return 1 / sqrt(norm)
        old = norm


def cheb_matrix(t, degree):
    V = np.ones((len(t), degree + 1))
    V[:, 1] = t
    for k in range(2, degree + 1):
        V[:, k] = 2 * t * V[:, k - 1] - V[:, k - 2]
    return V


def clenshaw(c, t):
    b1 = b2 = 0.0
    for ck in c[:0:-1]:
        b1, b2 = 2 * t * b1 - b2 + ck, b1
    return t * b1 - b2 + c[0]


def divided_differences(xs, ys):
    coef = np.array(ys, dtype=float)
    for k in range(1, len(xs)):
        coef[k:] = (coef[k:] - coef[k - 1:-1]) / (xs[k:] - xs[:-k])
    return coef


def newton_eval(xs, coef, t):
    p = coef[-1]
    for x, c in zip(xs[-2::-1], coef[-2::-1]):
        p = p * (t - x) + c
    return p


POINT = np.array([1.3, 0.4, 2.0, 0.7])
DECIDES = True


def setup(p, m=15, degree=5):
    t = np.linspace(-1, 1, m)
    y = np.exp(p[0] * t) / (1 + p[1] * t**2) + 0.1 * np.sin(p[2] * t)
    weights = np.exp(-p[3] * t**2)
    A = cheb_matrix(t, degree) * weights[:, np.newaxis]
    return t, y, weights, A


def solve(p):
    t, y, w, A = setup(p)
    n = A.shape[1]
    betas = qr_inplace(A)
    qty = apply_qt(A, betas, w * y)
    R = np.triu(A[:n])
    return back_substitution(R, qty[:n]), R, np.sum(qty[n:]**2), t, y


def main(p):
    """Extrapolated value plus a penalty for the size of the residual."""
    c, R, rss, t, y = solve(p)
    return clenshaw(c, 1.1) + 100 * sqrt(rss)


def outputs(p):
    c, R, rss, t, y = solve(p)
    xs = t[::3]
    interpolated = newton_eval(xs, divided_differences(xs, y[::3]), 0.33)
    return np.array([c[1], c[-1], 1e3 * sqrt(rss), smallest_singular(R), interpolated])
