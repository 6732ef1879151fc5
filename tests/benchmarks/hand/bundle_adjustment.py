"""The Jacobian of bundle adjustment by hand: one loop over observations.

With ``p`` the point in the camera's frame, the projection is ``q = p[:2] / p[2]``, distorted by
``L = 1 + a |q|^2 + b |q|^4``. As in the hand-written code of ADBench, derivatives are those of each
step, multiplied from the projection back to the rotation.
"""

import math

import numpy as np
from numba import njit


@njit(fastmath=False, error_model="numpy")
def _rotate(
    camera: np.ndarray, x: np.ndarray, out: np.ndarray, by_axis: np.ndarray, by_point: np.ndarray
) -> None:
    """Rotate ``x``; write the result, and its derivatives by ``camera[:3]`` and ``x``."""
    angle = math.sqrt(camera[0] * camera[0] + camera[1] * camera[1] + camera[2] * camera[2])
    inverse = 1.0 / angle
    c, s = math.cos(angle), math.sin(angle)
    ax, ay, az = camera[0] * inverse, camera[1] * inverse, camera[2] * inverse
    dot = ax * x[0] + ay * x[1] + az * x[2]
    rest = 1.0 - c
    cx, cy, cz = ay * x[2] - az * x[1], az * x[0] - ax * x[2], ax * x[1] - ay * x[0]
    out[0] = x[0] * c + cx * s + ax * dot * rest
    out[1] = x[1] * c + cy * s + ay * dot * rest
    out[2] = x[2] * c + cz * s + az * dot * rest
    a = (ax, ay, az)
    cross = (cx, cy, cz)
    by_point[0, 0], by_point[0, 1], by_point[0, 2] = c, -az * s, ay * s
    by_point[1, 0], by_point[1, 1], by_point[1, 2] = az * s, c, -ax * s
    by_point[2, 0], by_point[2, 1], by_point[2, 2] = -ay * s, ax * s, c
    for i in range(3):
        for j in range(3):
            by_point[i, j] += a[i] * a[j] * rest
    for k in range(3):
        # the unit axis changes by (e_k - a a_k) / angle, the angle by a_k
        ux = ((1.0 if k == 0 else 0.0) - ax * a[k]) * inverse
        uy = ((1.0 if k == 1 else 0.0) - ay * a[k]) * inverse
        uz = ((1.0 if k == 2 else 0.0) - az * a[k]) * inverse
        dot_k = ux * x[0] + uy * x[1] + uz * x[2]
        turn = dot_k * rest + dot * s * a[k]
        u = (ux, uy, uz)
        cross_k = (uy * x[2] - uz * x[1], uz * x[0] - ux * x[2], ux * x[1] - uy * x[0])
        for i in range(3):
            by_axis[i, k] = (
                (cross[i] * c - x[i] * s) * a[k] + cross_k[i] * s + u[i] * dot * rest + a[i] * turn
            )


@njit(fastmath=False, error_model="numpy")
def entries(
    cameras: np.ndarray,
    points: np.ndarray,
    weights: np.ndarray,
    seen_by: np.ndarray,
    seen: np.ndarray,
    features: np.ndarray,
) -> np.ndarray:
    """Return the entries by rows: 15 for each error of an observation, then one per weight."""
    n = len(weights)
    out = np.empty(31 * n)
    x, p = np.empty(3), np.empty(3)
    by_axis, by_point = np.empty((3, 3)), np.empty((3, 3))
    for i in range(n):
        camera, point, w = cameras[seen_by[i]], points[seen[i]], weights[i]
        for k in range(3):
            x[k] = point[k] - camera[3 + k]
        _rotate(camera, x, p, by_axis, by_point)
        inverse = 1.0 / p[2]
        qx, qy = p[0] * inverse, p[1] * inverse
        square = qx * qx + qy * qy
        distortion = 1.0 + camera[9] * square + camera[10] * square * square
        slope = 2.0 * (camera[9] + 2.0 * camera[10] * square)
        f = camera[6] * w
        # by q: f (L I + slope q q^T); by p: through q = p[:2] / p[2]
        xx = f * (distortion + slope * qx * qx)
        xy = f * slope * qx * qy
        yy = f * (distortion + slope * qy * qy)
        x0, x1, x2 = xx * inverse, xy * inverse, -(xx * qx + xy * qy) * inverse
        y0, y1, y2 = xy * inverse, yy * inverse, -(xy * qx + yy * qy) * inverse
        first = 30 * i
        for k in range(3):
            out[first + k] = x0 * by_axis[0, k] + x1 * by_axis[1, k] + x2 * by_axis[2, k]
            out[first + 15 + k] = y0 * by_axis[0, k] + y1 * by_axis[1, k] + y2 * by_axis[2, k]
            by_x = x0 * by_point[0, k] + x1 * by_point[1, k] + x2 * by_point[2, k]
            by_y = y0 * by_point[0, k] + y1 * by_point[1, k] + y2 * by_point[2, k]
            out[first + 3 + k], out[first + 18 + k] = -by_x, -by_y
            out[first + 11 + k], out[first + 26 + k] = by_x, by_y
        out[first + 6], out[first + 21] = w * qx * distortion, w * qy * distortion
        out[first + 7], out[first + 22] = w, 0.0
        out[first + 8], out[first + 23] = 0.0, w
        out[first + 9], out[first + 24] = f * qx * square, f * qy * square
        out[first + 10], out[first + 25] = f * qx * square * square, f * qy * square * square
        fd = camera[6] * distortion
        out[first + 14] = qx * fd + camera[7] - features[i, 0]
        out[first + 29] = qy * fd + camera[8] - features[i, 1]
        out[30 * n + i] = -2.0 * w
    return out
