"""Forward and inverse kinematics of a six-axis arm, manipulability and torques.

J. J. Craig, "Introduction to Robotics: Mechanics and Control", chapters 3-6.
"""
import numpy as np
from numpy import sin, cos, pi
from scipy.optimize import fsolve

# a, alpha, d, link mass (roughly a PUMA 560)
DH = [(0.0, pi / 2, 0.67, 0.0),
      (0.43, 0.0, 0.0, 17.4),
      (0.02, -pi / 2, 0.15, 4.8),
      (0.0, pi / 2, 0.43, 0.8),
      (0.0, -pi / 2, 0.0, 0.3),
      (0.0, 0.0, 0.06, 0.1)]


def dh_matrix(theta, a, alpha, d):
    ct, st = cos(theta), sin(theta)
    ca, sa = cos(alpha), sin(alpha)
    return np.array([[ct, -st * ca, st * sa, a * ct],
                     [st, ct * ca, -ct * sa, a * st],
                     [0, sa, ca, d],
                     [0, 0, 0, 1]])


class Arm:
    def __init__(self, table=DH, tool=0.1):
        self.table = table
        self.tool = np.eye(4)
        self.tool[2, 3] = tool

    def frames(self, q):
        T = np.eye(4)
        result = [T]
        for qi, (a, alpha, d, _) in zip(q, self.table):
            T = T @ dh_matrix(qi, a, alpha, d)
            result.append(T)
        return result

    def pose(self, q):
        return self.frames(q)[-1] @ self.tool

    def jacobian(self, q):
        frames = self.frames(q)
        tip = (frames[-1] @ self.tool)[:3, 3]
        J = np.zeros((6, len(q)))
        for i, T in enumerate(frames[:-1]):
            z, o = T[:3, 2], T[:3, 3]
            J[:3, i] = np.cross(z, tip - o)
            J[3:, i] = z
        return J

    def manipulability(self, q):
        J = self.jacobian(q)
        return np.sqrt(np.linalg.det(J @ J.T))

    def gravity_torque(self, q, g=9.81):
        tau = np.zeros(len(q))
        frames = self.frames(q)
        for j, row in enumerate(self.table):
            com = 0.5 * (frames[j][:3, 3] + frames[j + 1][:3, 3])
            weight = np.array([0, 0, -g * row[3]])
            for i in range(j + 1):
                arm = com - frames[i][:3, 3]
                tau[i] -= np.dot(frames[i][:3, 2], np.cross(arm, weight))
        return tau

    def reach(self, target, q0):
        """Joint angles 1-3 that put the tip on the target, wrist fixed."""
        wrist = q0[3:]

        def gap(q3):
            return self.pose(np.hstack([q3, wrist]))[:3, 3] - target

        return np.hstack([fsolve(gap, q0[:3], xtol=1e-13), wrist])


POINT = np.array([0.3, 0.7, -0.9, 0.4, 0.8, -0.2])
DECIDES = False


def main(p):
    return Arm().manipulability(p)


def outputs(p):
    arm = Arm(tool=0.12)
    T = arm.pose(p)
    rpy = [np.arctan2(T[1, 0], T[0, 0]), -np.arcsin(T[2, 0]), np.arctan2(T[2, 1], T[2, 2])]
    q = arm.reach(T[:3, 3] + np.array([0.02, -0.01, 0.03]), p)
    return np.concatenate([T[:3, 3], rpy, arm.gravity_torque(p)[:5], q[:3]])
