"""Kalman filter likelihood of a radar track (constant velocity model).

Y. Bar-Shalom, X. R. Li, T. Kirubarajan, "Estimation with Applications to
Tracking and Navigation", chapters 5 and 6.
"""
import numpy as np
import numpy.linalg as la
from scipy import linalg

_rng = np.random.default_rng(12)
N = 40
DT = 0.5
_t = DT * np.arange(N)
TRUTH = np.c_[10 + 3.0 * _t + 0.4 * np.sin(_t), -5 + 1.5 * _t]
MEASURED = TRUTH + 0.8 * _rng.standard_normal(TRUTH.shape)


class KalmanFilter(object):
    def __init__(self, F, H, Q, R, x0, P0):
        self.F, self.H, self.Q, self.R = F, H, Q, R
        self.x = x0.copy()
        self.P = P0.copy()
        self.loglik = 0.0

    def predict(self):
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.T + self.Q

    def update(self, z):
        y = z.reshape(-1, 1) - self.H @ self.x
        S = self.H @ self.P @ self.H.T + self.R
        K = self.P @ self.H.T @ la.inv(S)
        self.x += K @ y
        I_KH = np.eye(len(self.x)) - K @ self.H
        # Joseph form
        self.P = I_KH @ self.P @ I_KH.T + K @ self.R @ K.T
        sign, logdet = la.slogdet(2 * np.pi * S)
        self.loglik -= 0.5 * (logdet + (y.T @ la.solve(S, y)).item())


class ConstantVelocity(KalmanFilter):
    """State (px, py, vx, vy), position measurements."""

    def __init__(self, dt, accel_var, meas_std, first, v_std=5.0):
        F = np.eye(4)
        F[0, 2] = dt
        F[1, 3] = dt
        H = np.zeros((2, 4))
        H[0, 0] = H[1, 1] = 1
        q = np.array([[dt**4 / 4, dt**3 / 2],
                      [dt**3 / 2, dt**2]]) * accel_var
        Q = np.kron(q, np.eye(2))
        R = np.diag([meas_std**2, meas_std**2])
        x0 = np.zeros((4, 1))
        x0[:2, 0] = first
        P0 = linalg.block_diag(R, v_std**2 * np.eye(2))
        super().__init__(F, H, Q, R, x0, P0)


def run_filter(zs, accel_var, meas_std, v_std):
    kf = ConstantVelocity(DT, accel_var, meas_std, zs[0], v_std)
    xs = np.zeros((len(zs), 4))
    xs[0] = kf.x.ravel()
    for i, z in enumerate(zs[1:], start=1):
        kf.predict()
        kf.update(z)
        xs[i] = kf.x.ravel()
    return xs, kf


POINT = np.array([0.3, 0.9, 4.0])
DECIDES = False


def main(p):
    xs, kf = run_filter(MEASURED, *p)
    return -kf.loglik


def outputs(p):
    xs, kf = run_filter(MEASURED, *p)
    rms = np.sqrt(np.mean((xs[5:, :2] - TRUTH[5:])**2, axis=0))
    return np.concatenate([kf.x.ravel(), np.sqrt(np.diag(kf.P)), rms, [kf.loglik]])
