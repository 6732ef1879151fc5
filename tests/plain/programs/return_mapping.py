"""Cyclic von Mises plasticity at a material point, radial return with mixed hardening.

J. C. Simo and T. J. R. Hughes, "Computational Inelasticity", chapters 1 and 3.
"""
import copy

import numpy as np
from numpy import tensordot, trace

I2 = np.eye(3)


def dev(a):
    return a - trace(a) / 3. * I2


class J2Material(object):
    """Linear elasticity, Voce isotropic and linear kinematic hardening."""

    def __init__(self, young, nu, yield0, saturation, rate, h_kin):
        self.G = young / (2. * (1. + nu))
        self.K = young / (3. * (1. - 2. * nu))
        self.y0 = yield0
        self.ys = saturation
        self.delta = rate
        self.H = h_kin
        self.ep = np.zeros((3, 3))
        self.back = np.zeros((3, 3))
        self.alpha = 0.
        self.steps_plastic = 0

    def flow_stress(self, a):
        return self.y0 + (self.ys - self.y0) * (1. - np.exp(-self.delta * a))

    def hardening(self, a):
        return (self.ys - self.y0) * self.delta * np.exp(-self.delta * a)

    def update(self, strain):
        e = dev(strain)
        s_trial = 2. * self.G * (e - self.ep)
        xi = s_trial - self.back
        norm = np.sqrt(tensordot(xi, xi))
        r23 = np.sqrt(2. / 3.)
        f = norm - r23 * self.flow_stress(self.alpha)
        stress = s_trial + self.K * trace(strain) * I2
        if f <= 0.:
            return stress
        n = xi / norm
        # consistency: Newton on the plastic multiplier
        dg = 0.
        for it in range(50):
            a = self.alpha + r23 * dg
            g = norm - (2. * self.G + 2. / 3. * self.H) * dg - r23 * self.flow_stress(a)
            if abs(g) < 1e-12 * self.y0:
                break
            dg += g / (2. * self.G + 2. / 3. * (self.H + self.hardening(a)))
        self.alpha += r23 * dg
        self.ep += dg * n
        self.back += 2. / 3. * self.H * dg * n
        self.steps_plastic += 1
        return stress - 2. * self.G * dg * n


def uniaxial(mat, axial, lateral=0.):
    """Axial strain given, lateral stress zero: secant iteration on the lateral strain."""
    def try_lateral(el):
        trial = copy.deepcopy(mat)
        sig = trial.update(np.diag([axial, el, el]))
        return sig[1, 1], sig, trial
    e0, e1 = lateral, lateral - 1e-5
    s0 = try_lateral(e0)[0]
    s1, sig, state = try_lateral(e1)
    while abs(s1) > 1e-9:
        e0, e1, s0 = e1, e1 - s1 * (e1 - e0) / (s1 - s0), s1
        s1, sig, state = try_lateral(e1)
    return sig[0, 0], e1, state


def triangle_wave(amplitude, quarter=4, turns=5):
    path = []
    for k in range(turns):
        target = amplitude * (-1)**k
        start = path[-1] if path else 0.
        n = quarter if k == 0 else 2 * quarter
        path += [start + (target - start) * i / n for i in range(1, n + 1)]
    return path


POINT = np.array([250., 340., 25., 2200., 0.0063])    # yield, saturation, rate, H, amplitude
DECIDES = True


def cyclic(x):
    mat = J2Material(205e3, 0.29, *x[:4])
    strain, stress = [0.], [0.]
    lateral = 0.
    for eps in triangle_wave(x[4]):
        s, lateral, mat = uniaxial(mat, eps, lateral)
        strain.append(eps)
        stress.append(s)
    return np.array(strain), np.array(stress), mat


def main(x):
    """Work dissipated, MJ/m3, with the elastic rest subtracted."""
    e, s, mat = cyclic(x)
    work = np.sum(0.5 * (s[1:] + s[:-1]) * (e[1:] - e[:-1]))
    return work - s[-1]**2 / (2 * 205e3)


def outputs(x):
    e, s, mat = cyclic(x)
    residual = mat.back[0, 0] * 1.5
    return np.array([s.max(), s.min(), mat.alpha, residual, mat.ep[0, 0], s[10]])
