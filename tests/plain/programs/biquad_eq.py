"""Parametric equaliser: peaking and low-pass biquads, response and filtered noise.

R. Bristow-Johnson, "Cookbook formulae for audio EQ biquad filter coefficients";
A. V. Oppenheim and R. W. Schafer, "Discrete-Time Signal Processing".
"""
import cmath
from math import cos, sin, pi, log10

import numpy as np
from scipy import signal

FS = 8000.0
NOISE = np.random.default_rng(5).standard_normal(256)


class Biquad:
    def __init__(self, b, a):
        self.b = np.array(b) / a[0]
        self.a = np.array(a) / a[0]

    @classmethod
    def peaking(cls, f0, gain_db, Q):
        A = 10**(gain_db / 40)
        w0 = 2 * pi * f0 / FS
        alpha = sin(w0) / (2 * Q)
        return cls([1 + alpha * A, -2 * cos(w0), 1 - alpha * A],
                   [1 + alpha / A, -2 * cos(w0), 1 - alpha / A])

    @classmethod
    def lowpass(cls, f0, Q=0.7071):
        w0 = 2 * pi * f0 / FS
        alpha = sin(w0) / (2 * Q)
        c = cos(w0)
        return cls([(1 - c) / 2, 1 - c, (1 - c) / 2], [1 + alpha, -2 * c, 1 - alpha])

    def response(self, f):
        w = 2 * pi * f / FS
        z = complex(cos(w), -sin(w))
        num = self.b[0] + self.b[1] * z + self.b[2] * z**2
        den = self.a[0] + self.a[1] * z + self.a[2] * z**2
        return num / den

    def process(self, x):
        """Direct form II transposed, sample by sample."""
        y = np.zeros(len(x))
        s1 = s2 = 0.0
        b0, b1, b2 = self.b
        _, a1, a2 = self.a
        for n, xn in enumerate(x):
            yn = b0 * xn + s1
            s1 = b1 * xn - a1 * yn + s2
            s2 = b2 * xn - a2 * yn
            y[n] = yn
        return y


def chain_db(filters, freqs):
    db = []
    for f in freqs:
        h = complex(1, 0)
        for flt in filters:
            h *= flt.response(f)
        db.append(20 * log10(abs(h)))
    return np.array(db)


def band_power(x, lo, hi):
    window = np.hanning(len(x))
    spec = np.fft.rfft(x * window)
    freq = np.fft.rfftfreq(len(x), 1 / FS)
    band = (freq >= lo) & (freq < hi)
    return np.mean(np.abs(spec[band])**2)


POINT = np.array([1000.0, 6.0, 1.4, 2800.0])    # centre, gain, Q, cut-off
DECIDES = False


def main(p):
    f0, gain, Q, fc = p
    eq = [Biquad.peaking(f0, gain, Q), Biquad.lowpass(fc)]
    y = eq[1].process(eq[0].process(NOISE))
    return 10 * log10(band_power(y, 800, 1200))


def outputs(p):
    f0, gain, Q, fc = p
    peak = Biquad.peaking(f0, gain, Q)
    low = Biquad.lowpass(fc)
    db = chain_db([peak, low], [100, 500, 900, 1200, 2000, 3000])
    phase = [cmath.phase(peak.response(f)) for f in (700, 1500)]
    y = signal.lfilter(low.b, low.a, signal.lfilter(peak.b, peak.a, NOISE))
    bands = [band_power(y, lo, lo + 500) for lo in range(0, 4000, 500)]
    return np.concatenate([db, phase, np.log10(bands), [y.std(), np.max(np.abs(y))]])
