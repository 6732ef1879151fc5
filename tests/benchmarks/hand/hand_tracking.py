"""The Jacobian of hand tracking by hand.

An angle of a finger moves the bones behind it only, so that its derivative skins three bones of 22;
the global rotation and translation come after all bones. As in the hand-written code of ADBench,
angles that no bone depends on take no work.
"""

import math

import numpy as np
from numba import njit


@njit(fastmath=False, error_model="numpy")
def _turn(a: float, axis: int, is_derivative: bool, out: np.ndarray) -> None:
    """Write the rotation about an axis, or its derivative, to ``out: f64[3, 3]``."""
    c, s = math.cos(a), math.sin(a)
    if is_derivative:
        c, s = -s, c
    out[:] = 0.0
    out[axis, axis] = 0.0 if is_derivative else 1.0
    i, j = (axis + 1) % 3, (axis + 2) % 3
    out[i, i] = out[j, j] = c
    out[i, j], out[j, i] = -s, s


@njit(fastmath=False, error_model="numpy")
def _times(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = 0.0
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            out[i, j] = total


@njit(fastmath=False, error_model="numpy")
def _relative(rest: np.ndarray, angles: np.ndarray, varied: int, out: np.ndarray) -> None:
    """Write ``rest (Rz Ry Rx)`` or its derivative in angle ``varied`` (x, z, y; -1 for none)."""
    x, y, z = np.empty((3, 3)), np.empty((3, 3)), np.empty((3, 3))
    _turn(angles[0], 0, varied == 0, x)
    _turn(angles[1], 2, varied == 1, z)
    _turn(angles[2], 1, varied == 2, y)
    zy, zyx = np.empty((3, 3)), np.empty((3, 3))
    _times(z, y, zy)
    _times(zy, x, zyx)
    out[:] = 0.0
    _times(rest[:3, :3], zyx, out[:3, :3])
    if varied < 0:
        out[:, 3] = rest[:, 3]


@njit(fastmath=False, error_model="numpy")
def _rotation(axis: np.ndarray, out: np.ndarray, out_dot: np.ndarray) -> None:
    """Write the rotation by a vector and its three derivatives."""
    angle = math.sqrt((axis * axis).sum())
    n = axis / angle
    c, s = math.cos(angle), math.sin(angle)
    cross = np.array([[0.0, -n[2], n[1]], [n[2], 0.0, -n[0]], [-n[1], n[0], 0.0]])
    for i in range(3):
        for j in range(3):
            out[i, j] = n[i] * n[j] * (1.0 - c) + cross[i, j] * s + (c if i == j else 0.0)
    for k in range(3):
        n_dot = -n * n[k] / angle
        n_dot[k] += 1.0 / angle
        c_dot, s_dot = -s * n[k], c * n[k]
        cross_dot = np.array(
            [[0.0, -n_dot[2], n_dot[1]], [n_dot[2], 0.0, -n_dot[0]], [-n_dot[1], n_dot[0], 0.0]]
        )
        for i in range(3):
            for j in range(3):
                out_dot[k, i, j] = (
                    (n_dot[i] * n[j] + n[i] * n_dot[j]) * (1.0 - c)
                    - n[i] * n[j] * c_dot
                    + cross_dot[i, j] * s
                    + cross[i, j] * s_dot
                    + (c_dot if i == j else 0.0)
                )


@njit(fastmath=False, error_model="numpy")
def _skin(transform: np.ndarray, base: np.ndarray, weights: np.ndarray, out: np.ndarray) -> None:
    """Add the vertices moved by one bone to ``out: f64[3, n]``."""
    for i in range(3):
        a, b, c, d = transform[i, 0], transform[i, 1], transform[i, 2], transform[i, 3]
        for v in range(out.shape[1]):
            moved = a * base[0, v] + b * base[1, v] + c * base[2, v] + d * base[3, v]
            out[i, v] += moved * weights[v]


@njit(fastmath=False, error_model="numpy")
def _difference(
    positions: np.ndarray, where: np.ndarray, triangles: np.ndarray, out: np.ndarray
) -> None:
    """Write minus the points on the triangles to ``out: f64[3, points]``."""
    for i in range(3):
        for p in range(out.shape[1]):
            u, v = where[0, p], where[1, p]
            out[i, p] = -(
                u * positions[i, triangles[0, p]]
                + v * positions[i, triangles[1, p]]
                + (1.0 - u - v) * positions[i, triangles[2, p]]
            )


@njit(fastmath=False, error_model="numpy")
def _turned(rotation: np.ndarray, vertices: np.ndarray, out: np.ndarray) -> None:
    for i in range(3):
        a, b, c = rotation[i, 0], rotation[i, 1], rotation[i, 2]
        for v in range(out.shape[1]):
            out[i, v] = a * vertices[0, v] + b * vertices[1, v] + c * vertices[2, v]


@njit(fastmath=False, error_model="numpy")
def jacobian(
    theta: np.ndarray,
    where: np.ndarray,
    base: np.ndarray,
    inverses: np.ndarray,
    rest: np.ndarray,
    weights: np.ndarray,
    triangles: np.ndarray,
    scan: np.ndarray,
    parents: np.ndarray,
    numbers: np.ndarray,
) -> np.ndarray:
    """Return the Jacobian ``f64[28, 3, points]``."""
    n_bones, n_angles, n = len(parents), len(theta), base.shape[1]
    out = np.empty((2 + n_angles, 3, scan.shape[1]))
    angles = np.zeros((n_bones, 3))
    relative, absolute = np.empty((n_bones, 4, 4)), np.empty((n_bones, 4, 4))
    transform = np.empty((4, 4))
    skinned = np.zeros((3, n))
    for bone in range(n_bones):
        for k in range(3):
            if numbers[bone, k] < n_angles:
                angles[bone, k] = theta[numbers[bone, k]]
        _relative(rest[bone], angles[bone], -1, relative[bone])
        if parents[bone] < 0:
            absolute[bone] = relative[bone]
        else:
            _times(absolute[parents[bone]], relative[bone], absolute[bone])
        _times(absolute[bone], inverses[bone], transform)
        _skin(transform, base, weights[bone], skinned)

    rotation, rotation_dot = np.empty((3, 3)), np.empty((3, 3, 3))
    _rotation(theta[:3], rotation, rotation_dot)
    positions = np.empty((3, n))
    _turned(rotation, skinned, positions)
    for i in range(3):
        positions[i] += theta[3 + i]
    for p in range(scan.shape[1]):
        for i in range(3):
            last = positions[i, triangles[2, p]]
            out[0, i, p] = last - positions[i, triangles[0, p]]
            out[1, i, p] = last - positions[i, triangles[1, p]]
    for k in range(3):
        _turned(rotation_dot[k], skinned, positions)
        _difference(positions, where, triangles, out[2 + k])
        out[5 + k] = 0.0
        out[5 + k, k] = -1.0

    tangents = np.empty((n_bones, 4, 4))
    is_moved = np.empty(n_bones, dtype=np.bool_)
    relative_dot = np.empty((4, 4))
    skinned_dot = np.empty((3, n))
    for first in range(n_bones):
        for k in range(3):
            if numbers[first, k] >= n_angles:
                continue
            is_moved[:] = False
            skinned_dot[:] = 0.0
            _relative(rest[first], angles[first], k, relative_dot)
            for bone in range(first, n_bones):
                parent = parents[bone]
                if bone == first:
                    _times(absolute[parent], relative_dot, tangents[bone])
                elif parent >= first and is_moved[parent]:
                    _times(tangents[parent], relative[bone], tangents[bone])
                else:
                    continue
                is_moved[bone] = True
                _times(tangents[bone], inverses[bone], transform)
                _skin(transform, base, weights[bone], skinned_dot)
            _turned(rotation, skinned_dot, positions)
            _difference(positions, where, triangles, out[2 + numbers[first, k]])
    return out
