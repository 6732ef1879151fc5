"""Fixation of an allele: Moran chain with selection and mutation against Kimura's diffusion.

W. J. Ewens, "Mathematical Population Genetics", chapters 3 and 5.
"""
import numpy as np
from scipy import sparse
from scipy.integrate import quad
from scipy.sparse.linalg import spsolve
from scipy.special import betaln, gammaln

N = 30


def moran_rates(s, h, N=N):
    """Probabilities of one step up and down from i = 1 .. N-1 copies."""
    i = np.arange(1, N)
    x = i / float(N)
    # marginal fitnesses, dominance h
    wA = 1 + s * (x + h * (1 - x))
    wa = 1 + s * h * x
    mean = x * wA + (1 - x) * wa
    up = x * wA / mean * (1 - x)
    down = (1 - x) * wa / mean * x
    return up, down


def fixation_chain(s, h):
    up, down = moran_rates(s, h)
    A = sparse.diags([-down[1:], up + down, -up[:-1]], [-1, 0, 1], format='csc')
    b = np.zeros(N - 1)
    b[-1] = up[-1]
    u = spsolve(A, b)
    times = spsolve(A, np.ones(N - 1))        # mean time to absorption in steps
    return u, times


def kimura(s, h, x0):
    def G(x):
        return np.exp(-N * s * ((2 * h - 1) * x * (1 - x) + x))
    top = quad(G, 0, x0, epsabs=1e-13)[0]
    return top / (top + quad(G, x0, 1, epsabs=1e-13)[0])


def stationary_spectrum(u, v, n=12):
    """Beta-binomial sampling distribution under symmetric drift, theta_1 = 2Nu, theta_2 = 2Nv."""
    a, b = 2 * N * v, 2 * N * u
    k = np.arange(n + 1)
    logchoose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return np.exp(logchoose + betaln(k + a, n - k + b) - betaln(a, b))


POINT = np.array([0.06, 0.35, 0.01])       # selection, dominance, mutation rate
DECIDES = False


def main(p):
    s, h, mu = p
    u, times = fixation_chain(s, h)
    spectrum = stationary_spectrum(mu, 2 * mu)
    heterozygous = 0.0
    n = len(spectrum) - 1
    for k, f in enumerate(spectrum):
        heterozygous += f * 2 * k * (n - k) / (n * (n - 1))
    # long-run flux: new mutants times fixation
    return 1e3 * N * mu * u[0] * (1 + heterozygous)


def outputs(p):
    s, h, mu = p
    u, times = fixation_chain(s, h)
    spec = stationary_spectrum(mu, 2 * mu)
    return np.array([u[0], u[N // 2 - 1], times[0], kimura(s, h, 1 / N), spec[0], spec[6]])
