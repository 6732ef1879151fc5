"""Shape of a hanging chain of elastic links by direct minimisation of energy.

Quasi-Newton BFGS with backtracking; J. Nocedal and S. J. Wright, "Numerical
Optimization", chapters 3 and 6. The chain is a classical example of
C. Lanczos, "The Variational Principles of Mechanics".
"""
import numpy as np

N_FREE = 5
GRAVITY = 9.81


class Chain:
    """Free nodes between two anchors, springs between neighbours."""

    def __init__(self, span, drop, stiffness, mass, rest):
        self.left = np.zeros(2)
        self.right = np.array([span, -drop])
        self.k = stiffness
        self.m = mass
        self.rest = rest
        self.evaluations = 0

    def nodes(self, u):
        return np.vstack([self.left, u.reshape(N_FREE, 2), self.right])

    def energy(self, u):
        self.evaluations += 1
        xy = self.nodes(u)
        stretch = np.linalg.norm(np.diff(xy, axis=0), axis=1) - self.rest
        return 0.5 * self.k * (stretch**2).sum() + self.m * GRAVITY * xy[1:-1, 1].sum()

    def gradient(self, u):
        xy = self.nodes(u)
        seg = np.diff(xy, axis=0)
        length = np.sqrt((seg**2).sum(axis=1))
        tension = self.k * (1 - self.rest / length)[:, None] * seg
        g = tension[:-1] - tension[1:]
        g[:, 1] += self.m * GRAVITY
        return g.ravel()


def backtrack(f, x, fx, g, d, c1=1e-4, shrink=0.5):
    t = 1.0
    slope = g @ d
    slack = 1e-12 * abs(fx)          # rounding of f
    while f(x + t * d) > fx + c1 * t * slope + slack:
        t *= shrink
        if t < 1e-12:
            break
    return t


def bfgs(f, grad, x0, gtol=1e-10, maxiter=300, callback=None):
    x = np.array(x0, dtype=float)
    n = x.size
    H = np.eye(n) * 0.01
    g = grad(x)
    k = 0
    while np.abs(g).max() > gtol and k < maxiter:
        d = -H @ g
        if d @ g > 0:                 # lost positive definiteness, restart
            H = np.eye(n) * 0.01
            d = -H @ g
        t = backtrack(f, x, f(x), g, d)
        s = t * d
        x_new = x + s
        g_new = grad(x_new)
        y = g_new - g
        sy = s @ y
        if sy > 1e-12:
            rho = 1 / sy
            V = np.eye(n) - rho * np.outer(s, y)
            H = V @ H @ V.T + rho * np.outer(s, s)
        x, g = x_new, g_new
        k += 1
        if callback is not None:
            callback(k, x)
    return x, k


def hang(span, drop, stiffness, mass, rest, verbose=False):
    chain = Chain(span, drop, stiffness, mass, rest)
    s = np.linspace(0, 1, N_FREE + 2)[1:-1]
    guess = np.column_stack([s * span, -s * drop - 0.3 * s * (1 - s)])
    report = (lambda k, x: print(k, chain.energy(x))) if verbose else None
    u, iterations = bfgs(chain.energy, chain.gradient, guess.ravel(), callback=report)
    return chain, u


POINT = np.array([3.0, 0.4, 400.0, 0.8, 0.6])
DECIDES = True


def main(p):
    chain, u = hang(*p)
    return -u[1::2].min()                    # lowest free node


def outputs(p):
    chain, u = hang(*p)
    seg = np.diff(chain.nodes(u), axis=0)
    tension = [chain.k * (np.hypot(dx, dy) - chain.rest) for dx, dy in seg]
    return np.hstack([u, tension, chain.energy(u)])
