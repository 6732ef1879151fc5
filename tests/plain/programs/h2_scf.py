"""Restricted Hartree-Fock for a diatomic two-electron molecule in the STO-3G basis.

A. Szabo and N. S. Ostlund, "Modern Quantum Chemistry", section 3.5 and appendices A and B.
"""
import numpy as np
from scipy.linalg import eigh
from scipy.special import erf

# exponents and contraction coefficients for zeta = 1
EXPON = np.array([0.109818, 0.405771, 2.22766])
COEF = np.array([0.444635, 0.535328, 0.154329])


def F0(t):
    if t < 1e-6:
        return 1 - t / 3
    return 0.5 * np.sqrt(np.pi / t) * erf(np.sqrt(t))


def overlap(a, b, r2):
    return (np.pi / (a + b))**1.5 * np.exp(-a * b / (a + b) * r2)


def kinetic(a, b, r2):
    p = a * b / (a + b)
    return p * (3 - 2 * p * r2) * overlap(a, b, r2)


def attraction(a, b, r2, rcp2, Z):
    return -2 * np.pi / (a + b) * Z * F0((a + b) * rcp2) * np.exp(-a * b / (a + b) * r2)


def repulsion(a, b, c, d, rab2, rcd2, rpq2):
    p, q = a + b, c + d
    pre = 2 * np.pi**2.5 / (p * q * np.sqrt(p + q))
    return pre * F0(p * q / (p + q) * rpq2) * np.exp(-a * b / p * rab2 - c * d / q * rcd2)


class Molecule:
    def __init__(self, R, zeta, charges):
        self.pos = [0.0, R]
        self.Z = charges
        self.R = R
        self.basis = []
        for x, z in zip(self.pos, zeta):
            a = EXPON * z**2
            self.basis.append((x, a, COEF * (2 * a / np.pi)**0.75))

    def integrals(self):
        n = len(self.basis)
        S, T, V = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
        for i, (xi, ai, ci) in enumerate(self.basis):
            for j, (xj, aj, cj) in enumerate(self.basis):
                r2 = (xi - xj)**2
                for a, c in zip(ai, ci):
                    for b, d in zip(aj, cj):
                        S[i, j] += c * d * overlap(a, b, r2)
                        T[i, j] += c * d * kinetic(a, b, r2)
                        xp = (a * xi + b * xj) / (a + b)
                        for Z, xc in zip(self.Z, self.pos):
                            V[i, j] += c * d * attraction(a, b, r2, (xp - xc)**2, Z)
        return S, T + V

    def two_electron(self):
        n = len(self.basis)
        TT = np.zeros((n,) * 4)
        for i, j, k, l in np.ndindex(n, n, n, n):
            if i < j or k < l or (i, j) < (k, l):
                continue
            (xi, ai, ci), (xj, aj, cj), (xk, ak, ck), (xl, al, cl) = (
                self.basis[m] for m in (i, j, k, l))
            value = 0.0
            for a, ca in zip(ai, ci):
                for b, cb in zip(aj, cj):
                    xp = (a * xi + b * xj) / (a + b)
                    for c, cc in zip(ak, ck):
                        for d, cd in zip(al, cl):
                            xq = (c * xk + d * xl) / (c + d)
                            value += ca * cb * cc * cd * repulsion(
                                a, b, c, d, (xi - xj)**2, (xk - xl)**2, (xp - xq)**2)
            for p, q in ((i, j), (j, i)):
                for r, s in ((k, l), (l, k)):
                    TT[p, q, r, s] = TT[r, s, p, q] = value
        return TT

    def scf(self, tol=1e-12, maxit=200):
        S, H = self.integrals()
        TT = self.two_electron()
        P = np.zeros_like(S)
        for it in range(maxit):
            G = np.einsum('kl,ijkl->ij', P, TT) - 0.5 * np.einsum('kl,ilkj->ij', P, TT)
            F = H + G
            eps, C = eigh(F, S)
            P_new = 2 * np.outer(C[:, 0], C[:, 0])
            delta = np.sqrt(np.mean((P_new - P)**2))
            P = P_new
            if delta < tol:
                break
        else:
            raise RuntimeError('SCF did not converge')
        energy = 0.5 * np.sum(P * (2 * H + np.einsum('kl,ijkl->ij', P, TT)
                                   - 0.5 * np.einsum('kl,ilkj->ij', P, TT)))
        return energy + self.Z[0] * self.Z[1] / self.R, eps, P, S


POINT = np.array([1.4632, 2.0925, 1.24])     # HeH+: distance, zeta of He, zeta of H
DECIDES = True


def main(x):
    return Molecule(x[0], x[1:], (2.0, 1.0)).scf()[0]


def outputs(x):
    E, eps, P, S = Molecule(x[0], x[1:], (2.0, 1.0)).scf()
    mulliken = np.diag(P @ S)
    return np.array([E, eps[0], eps[1], 2 - mulliken[0], S[0, 1]])
