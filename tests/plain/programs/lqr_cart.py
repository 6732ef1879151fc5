"""Linear quadratic regulator of an inverted pendulum on a cart, tested on the nonlinear model.

B. Friedland, "Control System Design", chapters 2 and 9.
"""
import numpy as np
import scipy.linalg as la
from scipy.integrate import odeint

g = 9.81
M = 1.0         # cart, kg


def linear_model(m, l):
    A = np.zeros([4, 4])
    A[0, 1] = 1
    A[1, 2] = -m * g / M
    A[2, 3] = 1
    A[3, 2] = (M + m) * g / (M * l)
    B = np.array([[0], [1 / M], [0], [-1 / (M * l)]], dtype=float)
    return A, B


def lqr(A, B, Q, R):
    X = la.solve_continuous_are(A, B, Q, R)
    K = la.inv(R).dot(B.T).dot(X)
    return K, X, la.eigvals(A - B.dot(K))


def cartpole(s, t, K, m, l):
    x, v, th, w = s
    u = -K.dot(s)[0]
    sn, cs = np.sin(th), np.cos(th)
    D = M + m * sn**2
    return [v,
            (u + m * l * w**2 * sn - m * g * sn * cs) / D,
            w,
            (-u * cs - m * l * w**2 * sn * cs + (M + m) * g * sn) / (l * D)]


def closed_loop(p, T=3.0, n=61):
    m, l, q_angle, r = p
    A, B = linear_model(m, l)
    Q = np.diag([1.0, 0.1, q_angle, 0.1])
    R = np.array([[r]])
    K, X, poles = lqr(A, B, Q, R)
    t = np.linspace(0, T, n)
    s0 = [0.0, 0.0, 0.25, 0.0]
    y = odeint(cartpole, s0, t, args=(K, m, l), rtol=1e-11, atol=1e-12)
    return t, y, K, X, poles


POINT = np.array([0.3, 0.6, 10.0, 0.2])
DECIDES = False


def main(p):
    t, y, K, X, poles = closed_loop(p)
    u = -(y @ K.T)[:, 0]
    cost = y[:, 0]**2 + 0.1 * y[:, 1]**2 + p[2] * y[:, 2]**2 + 0.1 * y[:, 3]**2 + p[3] * u**2
    h = t[1] - t[0]
    return h * (cost.sum() - 0.5 * (cost[0] + cost[-1]))


def outputs(p):
    t, y, K, X, poles = closed_loop(p)
    return np.concatenate([K.ravel(), [poles.real.max(), y[20, 0]]])
