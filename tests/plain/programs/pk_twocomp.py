"""Two-compartment pharmacokinetics, repeated oral doses and an infusion.

J. Gabrielsson and D. Weiner, "Pharmacokinetic and Pharmacodynamic Data
Analysis"; M. Rowland and T. N. Tozer, "Clinical Pharmacokinetics".
"""
from dataclasses import dataclass, field

import numpy as np
from scipy.integrate import trapezoid
from scipy.linalg import expm


@dataclass
class Patient:
    clearance: float       # L/h
    v_central: float       # L
    q: float               # L/h
    v_periph: float        # L
    ka: float              # 1/h
    weight: float = 70.0
    bioavailability: float = 0.8
    log: list = field(default_factory=list)

    def __post_init__(self):
        # allometric scaling to the body weight
        scale = (self.weight / 70.0)
        self.clearance = float(self.clearance * scale**0.75)
        self.v_central = float(self.v_central * scale)

    def rate_matrix(self):
        """Amounts in gut, central and peripheral compartments, and eliminated."""
        k10 = self.clearance / self.v_central
        k12 = self.q / self.v_central
        k21 = self.q / self.v_periph
        A = np.zeros((4, 4))
        A[0, 0] = -self.ka
        A[1] = [self.ka, -(k10 + k12), k21, 0]
        A[2, 1:3] = k12, -k21
        A[3, 1] = k10
        return A

    def half_lives(self):
        k10, k12, k21 = (self.clearance / self.v_central, self.q / self.v_central,
                         self.q / self.v_periph)
        b = k10 + k12 + k21
        root = np.sqrt(b * b - 4 * k10 * k21)
        return [np.log(2) / lam for lam in ((b + root) / 2, (b - root) / 2)]


def simulate(patient, dose, interval=12.0, n_doses=4, dt=0.5, infusion=0.0):
    A = patient.rate_matrix()
    # constant input handled by augmenting the matrix
    M = np.zeros((5, 5))
    M[:4, :4] = A
    M[1, 4] = infusion
    step = expm(M * dt)
    x = np.zeros(5)
    x[4] = 1
    per = int(round(interval / dt))
    conc = np.zeros(n_doses * per + 1)
    k = 0
    for d in range(n_doses):
        x[0] += patient.bioavailability * dose
        patient.log.append((d * interval, dose))
        for _ in range(per):
            x = step @ x
            k += 1
            conc[k] = x[1] / patient.v_central
    return dt * np.arange(len(conc)), conc, x


POINT = np.array([5.0, 20.0, 8.0, 45.0, 1.2])
DECIDES = False


def main(p):
    pat = Patient(*p, weight=82)
    t, c, _ = simulate(pat, dose=250.0)
    return trapezoid(c[-25:], t[-25:])      # area under the curve, last interval


def outputs(p):
    cl, v1, q, v2, ka = p
    pat = Patient(clearance=cl, v_central=v1, q=q, v_periph=v2, ka=ka)
    t, c, amounts = simulate(pat, 250.0, infusion=5.0)
    trough = c[24::24]
    return np.concatenate([c[2:26:4], trough, amounts[:4], pat.half_lives()])
