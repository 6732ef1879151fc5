"""Programs of plain NumPy with masks and labels, each a function of four numbers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


Y = np.array([0.5, 1.5, -2.0, 3.0])
LABELS = np.array(["a", "b", "a", "b"])
TABLE = np.array([(1.0, 2), (3.0, 4), (5.0, 6), (7.0, 8)], [("p", float), ("q", int)])


def _filled(x):
    m = np.zeros(4, bool)
    for i in range(4):
        m[i] = x[i] > 0
    return m


@program
def labels_under_masks(x):
    m = x > 0
    total = 0.0
    for name in np.unique(LABELS[m]):
        total += x[m & (name == LABELS)].prod()
    return total + len(LABELS[m]) * x[0] + {"a": 2.0, "b": 3.0}[LABELS[m][0]] * x[1]


@program
def labels_under_masks_that_are_filled(x):
    m = _filled(x)
    names = LABELS.copy()
    names[m] = "c"
    return len(LABELS[m]) * x[0] + (names == "c").sum() * x[1] + LABELS[m].size * x[2]


@program
def tables_under_masks_that_are_filled(x):
    m = _filled(x)
    objects = np.array([1, "b", None, 2.0], dtype=object)
    return TABLE["p"][m].sum() * x[0] + TABLE[m]["q"].sum() * x[1] + len(objects[m]) * x[3]


@program
def tables_by_indices_that_are_filled(x):
    k = np.zeros(4, int)
    for i in range(4):
        k[i] = 2 if x[i] > 0 else 1
    return TABLE["p"][k].sum() * x[0] + (LABELS[k] == "a").sum() * x[1] + Y[k] @ x


@program
def another_rank_of_the_same_mask(x):
    A = np.outer(x, x + 1)
    m = x >= x.max()  # one element, which goes along a row of four
    B = A * 1.0
    B[m] = x[m]
    C = A * 1.0
    C[m] *= x[m]
    return (x[m] * A[m]).sum() + (A[m] * x[m]).sum() + B.sum() + C.sum()


@program
def broadcast_along_other_axes(x):
    A = np.outer(x, x)[:, :1]
    m = x > 0
    return (A[m] * np.arange(1.0, 4)).sum() + (np.arange(1.0, 4) - A[m]).prod()


@program
def copies(x):
    m = x > 0
    z = x[m]
    n = len(z)
    parts = [copy.copy(z), copy.deepcopy(z), z.copy(), np.copy(z), z[:], z * 1]
    for part in parts:
        part[0] = 5 * x[0]
    return z.sum() * n + sum(p.sum() for p in parts)


@program
def lists_stored(x):
    y = x * 1.0
    y[x >= x.max()] = [x[1] * 2]
    z = x[x > 0]
    return y.sum() + (z + [x[0], x[1], 2.0]).sum()  # noqa: RUF005  # a sum of numbers


@program
def flat_under_masks(x):
    A = np.outer(x, Y)
    A.flat[(A > 0.2).ravel()] = 1.5
    B = np.zeros((2, 2))
    B.flat[x > 0] = x[0]
    return (A * np.arange(16.0).reshape(4, 4)).sum() + (B * np.arange(4.0).reshape(2, 2)).sum()


@program
def buffers_beside_selections(x):
    m = x > 0
    one = np.zeros(1)
    one[0] = x[0]
    many = np.zeros(int(m.sum()))
    many[:] = x[m]
    return (x[m] * one).sum() + (x[m] * many).sum() + np.dot(many, x[m]) + (many + x[m]).prod()


@program
def buffer_methods(x):
    m = x > 0
    a = np.zeros(int(m.sum()))
    a.put(np.arange(len(a)), x[m])
    b = np.zeros(4)
    b[: len(a)] += x[m]
    b[-1:] = x[m].sum()
    c = np.empty((2, len(a)))
    c[0] = x[m]
    c[1] = c[0] - x[m].mean()
    return a.dot(x[m]) + (b**2).sum() + (c**2).sum() + np.sum(c, axis=1)[0]


@program
def weighted(x):
    m = x > 0
    edges = np.cumsum(np.abs(x)) + 0.1
    z = np.array([1 + 0.0j, 2.0])[: len(x[m])] * x[m][0]
    return (
        np.average(x, weights=x**2) + np.average(x[m], weights=Y[m] ** 2)
        + np.digitize(x, edges)[1] * x[0] + np.digitize(x, -edges)[1] * x[1]
        + np.histogram(x, bins=edges, weights=x)[0].sum() + np.real_if_close(z).sum().real
        + np.cov(x, aweights=x**2) + np.trim_zeros(np.where(m, x, 0)).sum()
    )  # fmt: skip


@program
def uniques(x):
    z = np.concatenate([x[x > 0], x[:2]])
    values, first, inverse, counts = np.unique(
        z, return_index=True, return_inverse=True, return_counts=True
    )
    return (
        values @ counts + z[first].sum() + (values[inverse] * np.arange(len(z))).sum()
        + np.unique(np.sign(x)).size * x[0] + len(np.unique(x[x > 0]))
        + np.union1d(x[:2], x[x > 0]).sum() + np.unique(x[x > 10]).size
        + np.isin(x, x[x > 0]).sum() * x[1]
    )  # fmt: skip


@program
def real_parts_where_close(x):
    z = x + 1j * np.where(x[0] > 1, 0.0, x)
    return (np.real_if_close(z) ** 2).real.sum()


@program
def shapes_from_counts(x):
    m = x > 0
    n = m.sum()
    A = np.zeros((n, 2))
    A[:, 0] = x[m]
    B = np.ones((2, n)) * x[m]
    C = np.full((n, n), x[0])
    D = np.eye(n) * x[m]
    return (
        A.sum()
        + B.sum()
        + C.sum()
        + D.sum()
        + np.empty(n).size
        + len(range(n))
        + sum(x[i] for i in range(n))
    )


@program
def statistics_by_group(x):
    groups = np.digitize(x, [0.0, 0.8])
    means = np.array([x[groups == g].mean() if np.any(groups == g) else 0.0 for g in range(3)])
    counts = np.array([(groups == g).sum() for g in range(3)])
    return (means * np.arange(3.0)).sum() + counts @ np.array([1.0, 2.0, 3.0]) * x[0]


@program
def outliers_are_dropped(x):
    kept = x
    for _ in range(3):
        good = np.abs(kept - kept.mean()) <= 1.2 * kept.std()
        if good.all():
            break
        kept = kept[good]
    return kept.mean() * len(kept)


@program
def active_set(x):
    A = np.outer(x, x) + 3 * np.eye(4)
    free = np.ones(4, bool)
    solution = np.zeros(4)
    for _ in range(4):
        solution[:] = 0.0
        solution[free] = np.linalg.solve(A[np.ix_(free, free)], x[free])
        negative = solution < 0
        if not negative.any():
            break
        free &= ~negative
    return (solution * np.arange(1.0, 5)).sum()


@program
def nearest_neighbours(x):
    D = np.abs(x[:, None] - x[None, :])
    near = (D < 0.6) & ~np.eye(4, dtype=bool)
    total = 0.0
    for i in range(4):
        if near[i].any():
            total += x[near[i]].mean() * D[i, near[i]].sum() + D[near[i], i].max()
    return total + D[near].sum() + D[np.triu(near)].sum() + near.sum(axis=0) @ x


@program
def upwind(x):
    speed = x
    u = np.linspace(0.0, 1.0, 4) * x[1]
    du = np.zeros(4)
    right = speed[1:-1] > 0
    du[1:-1][right] = (u[1:-1] - u[:-2])[right]
    du[1:-1][~right] = (u[2:] - u[1:-1])[~right]
    return (speed * du).sum()


@program
def masks_of_masks(x):
    m = x > 0
    k = np.zeros(4, bool)
    k[m] = x[m] > 0.5
    n = np.zeros_like(m)
    n[~k] = True
    return x[k].sum() + x[n & m].prod() + k.sum() * x[0] + m[m].size * x[1] + x[k | ~m].sum()


@program
def running_indices(x):
    order = np.argsort(x)
    m = x[order] > 0
    first = order[m]
    rank = np.empty(4, int)
    rank[order] = np.arange(4)
    y = np.zeros(4)
    y[first] = x[first] ** 2
    y[order[~m]] = -1.0
    return (y * np.arange(4.0)).sum() + x[first][0] * x[rank][1] + first.sum() * x[0]


@program
def where_is_read_and_written(x):
    y = np.where(x > 0, x, -x)
    i = np.where(x > 0.5)
    y[i] = x[i] ** 2
    j, k = np.where(np.outer(x, Y) > 0.3)
    A = np.zeros((4, 4))
    A[j, k] = x[j] * Y[k]
    A[np.where(A == 0)] = x[0]
    return (y * np.arange(4.0)).sum() + (A * np.arange(16.0).reshape(4, 4)).sum()


@program
def selection_in_place_by_functions(x):
    z = x[x > 0]
    np.negative(z, out=z)
    np.multiply(z, 2.0, out=z)
    np.add.at(z, 0, x[0])
    np.put(z, [1], x[1])
    np.copyto(z[:1], 3 * x[0])
    z[::2] *= -1
    z.sort()
    z[z < 0] = 0.5
    return (z * np.arange(1.0, 1 + len(z))).sum()


@program
def matrices_in_place(x):
    A = np.outer(x, Y)
    m = x > 0
    A[m] /= A[m].sum(axis=1, keepdims=True)
    A[:, m] += 1.0
    A[np.ix_(m, ~m)] = x[0]
    A[m, :2] -= x[m][:, np.newaxis]
    A[~m, -1] = x[~m]
    A[1, m] *= 2
    return (A * np.arange(16.0).reshape(4, 4)).sum()


@program
def classes(x):
    class Cells:
        def __init__(self, mass):
            self.mass = mass
            self.alive = mass > 0

        def step(self):
            self.mass[self.alive] *= 0.9
            self.alive &= self.mass > 0.3
            self.mass[~self.alive] = 0.1
            return self.mass[self.alive].sum() * self.alive.sum()

    cells = Cells(x * 1.0)
    return sum(cells.step() for _ in range(3)) + cells.mass.sum()
