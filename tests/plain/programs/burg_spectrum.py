"""Autoregressive spectrum by Burg's method beside a windowed periodogram and Goertzel's filter.

S. M. Kay, "Modern Spectral Estimation", chapters 4 and 7; G. Goertzel (1958).
"""
import math

import numpy as np
from scipy import signal

FS = 100.0
N = 128
noise = np.random.default_rng(77).standard_normal(N)


def synthesise(f1, f2, damping, level):
    """Two tones through a resonant biquad by lfilter, plus noise through a one-pole loop."""
    t = np.arange(N) / FS
    x = np.sin(2 * np.pi * f1 * t) + 0.5 * np.cos(2 * np.pi * f2 * t)
    w0 = 2 * np.pi * 15.0 / FS
    b = [1 - damping]
    a = [1.0, -2 * damping * np.cos(w0), damping**2]
    x = signal.lfilter(b, a, x)
    y = np.zeros(N)
    y[0] = noise[0]
    for n in range(1, N):
        y[n] = 0.6 * y[n - 1] + noise[n]
    return x + level * y


def burg(x, order):
    """Prediction coefficients a[0] = 1, ... and the error power."""
    f = x.copy()
    b = x.copy()
    a = np.array([1.0])
    power = x.dot(x) / len(x)
    for m in range(order):
        fp = f[1:]
        bp = b[:-1]
        k = -2.0 * bp.dot(fp) / (fp.dot(fp) + bp.dot(bp))
        if abs(k) >= 1:
            raise ArithmeticError('reflection coefficient out of range')
        f, b = fp + k * bp, bp + k * fp
        a = np.append(a, 0.0)
        a = a + k * a[::-1]
        power *= 1 - k * k
    return a, power


def ar_spectrum(a, power, nfft=256):
    A = np.fft.rfft(a, nfft)
    return power / FS / np.abs(A)**2


def goertzel(x, freq):
    coeff = 2 * math.cos(2 * math.pi * freq / FS)
    s1 = s2 = 0.0
    for v in x:
        s1, s2 = v + coeff * s1 - s2, s1
    return s1 * s1 + s2 * s2 - coeff * s1 * s2


def periodogram(x):
    w = np.hanning(len(x))
    X = np.fft.rfft(w * (x - x.mean()))
    p = np.abs(X)**2 / (FS * np.sum(w**2))
    p[1:-1] *= 2
    return np.fft.rfftfreq(len(x), 1 / FS), p


def flatness(p):
    return np.exp(np.mean(np.log(p))) / np.mean(p)


def autocorrelation(x):
    F = np.fft.fft(x, 2 * len(x))
    r = np.fft.ifft(F * F.conj())[:len(x)].real
    return r / r[0]


POINT = np.array([12.3, 21.7, 0.85, 0.4])       # Hz, Hz, pole radius, noise level
DECIDES = True


def main(p):
    """Spectral entropy of the Burg estimate, order 8."""
    x = synthesise(*p)
    a, power = burg(x - x.mean(), 8)
    S = ar_spectrum(a, power)
    q = S / S.sum()
    return -np.sum(q * np.log2(q))


def outputs(p):
    x = synthesise(*p)
    f, P = periodogram(x)
    a, power = burg(x, 8)
    S = ar_spectrum(a, power)
    top = np.argmax(S)
    poles = np.roots(a)
    radius = max(abs(z) for z in poles if z.imag > 0)
    centroid = np.sum(f * P) / np.sum(P)
    return np.array([centroid, 10 * math.log10(S[top]), radius, goertzel(x, 12.5),
                     flatness(P[1:]), autocorrelation(x)[5]])
