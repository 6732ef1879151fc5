"""Deflection of a tapered beam on an elastic foundation (Hermite elements).

J. N. Reddy, "An Introduction to the Finite Element Method", chapter 5.
"""
import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import spsolve

E = 30.0e9     # concrete


def element_matrices(EI, k, L):
    """Bending plus Winkler foundation, dofs (w1, th1, w2, th2)."""
    Kb = EI / L**3 * np.array([[12, 6 * L, -12, 6 * L],
                               [6 * L, 4 * L**2, -6 * L, 2 * L**2],
                               [-12, -6 * L, 12, -6 * L],
                               [6 * L, 2 * L**2, -6 * L, 4 * L**2]])
    Kf = k * L / 420 * np.array([[156, 22 * L, 54, -13 * L],
                                 [22 * L, 4 * L**2, 13 * L, -3 * L**2],
                                 [54, 13 * L, 156, -22 * L],
                                 [-13 * L, -3 * L**2, -22 * L, 4 * L**2]])
    return Kb + Kf


def load_vector(q, L):
    return q * L / 12 * np.array([6, L, 6, -L])


def solve_beam(length, width, h0, h1, foundation, q, P, nel=16):
    ndof = 2 * (nel + 1)
    le = length / nel
    depth = np.linspace(h0, h1, nel + 1)
    rows, cols, vals = [], [], []
    f = np.zeros(ndof)
    for e in range(nel):
        h = 0.5 * (depth[e] + depth[e + 1])
        inertia = width * h**3 / 12
        ke = element_matrices(E * inertia, foundation, le)
        dofs = np.arange(2 * e, 2 * e + 4)
        for a in range(4):
            for b in range(4):
                rows.append(dofs[a])
                cols.append(dofs[b])
                vals.append(ke[a, b])
        np.add.at(f, dofs, load_vector(q, le))
    f[2 * (nel // 2)] += P          # point load at midspan
    K = csr_matrix((vals, (rows, cols)), shape=(ndof, ndof))

    # clamped at the left, simply supported at the right
    free = np.ones(ndof, dtype=bool)
    free[[0, 1, ndof - 2]] = False
    idx = np.flatnonzero(free)
    u = np.zeros(ndof)
    u[idx] = spsolve(K[idx][:, idx].tocsc(), f[idx])
    return u, depth


def bending_moments(u, depth, width, le):
    M = np.zeros(len(depth) - 1)
    for e in range(len(M)):
        w1, t1, w2, t2 = u[2 * e:2 * e + 4]
        h = (depth[e] + depth[e + 1]) / 2
        # curvature in the middle of the element
        M[e] = E * width * h**3 / 12 * (t2 - t1) / le
    return M


# length, depth left, depth right, foundation modulus, line load, point load
POINT = np.array([8.0, 0.6, 0.4, 2.0e6, 12e3, 40e3])
DECIDES = False
WIDTH = 0.3


def main(p):
    length, h0, h1, kf, q, P = p
    u, _ = solve_beam(length, WIDTH, h0, h1, kf, q, P)
    return u[0::2].max() * 1e3


def outputs(p):
    length, h0, h1, kf, q, P = p
    u, depth = solve_beam(length, WIDTH, h0, h1, kf, q, P)
    M = bending_moments(u, depth, WIDTH, length / 16)
    return np.r_[u[2:-2:2] * 1e3, M / 1e3]
