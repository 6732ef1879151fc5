"""Uses of selections and masks in plain NumPy, each a function of four numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


Y = np.array([0.5, 1.5, -2.0, 3.0])


# writing into a selection ------------------------------------------------------------------------


@program
def clipped_in_place(x):
    z = x[x > 0]
    z[z > 0.5] = 0.5
    return z.sum()


@program
def scaled_under_a_mask_of_it(x):
    z = x[x > 0]
    m = z > 0.5
    z[m] *= 2
    z[~m] = z[~m] ** 2
    return (z * z).sum()


@program
def two_refinements(x):
    z = x[x > 0]
    w = z[z < 1]
    return w[w > 0.1].sum() * z[0]


@program
def written_by_integers(x):
    z = x[x > 0]
    z[0] = 2 * x[1]
    z[-1] += x[0]
    z[1:] *= 3
    return (z**2).sum()


@program
def filled(x):
    z = x[x > 0]
    z.fill(x[0])
    return z.sum()


@program
def zeroed(x):
    z = x[x > 0]
    z[:] = x[0]
    z[...] += x[1]
    return z.sum()


# into other arrays -------------------------------------------------------------------------------


@program
def into_a_buffer(x):
    m = x > 0
    a = np.zeros(m.sum())
    a[:] = x[m]
    return (a**2).sum()


@program
def into_a_slice(x):
    m = x > 0
    a = np.zeros(6)
    n = int(m.sum())
    a[:n] = x[m]
    a[n : n + 4 - n] = x[~m]
    return (a**2 * np.arange(6.0)).sum()


@program
def into_a_buffer_by_its_mask(x):
    m = x > 0
    a = np.zeros(4)
    a[m] = x[m] ** 2
    a[~m] = -x[~m]
    return (a * np.arange(4.0)).sum()


@program
def into_a_buffer_by_another_mask(x):
    a = np.zeros(6)
    keep = np.arange(6) < (x > 0).sum()
    a[keep] = x[x > 0]
    return (a * np.arange(6.0)).sum()


@program
def added_to_a_buffer(x):
    m = x > 0
    a = np.ones(4)
    a[m] += x[m]
    a[m] -= 2 * Y[m]
    a[m] /= x[m] + 3
    a[m] **= 2
    return (a * np.arange(4.0)).sum()


@program
def added_whole(x):
    m = x > 0
    a = np.ones(int(m.sum()))
    a += x[m]
    a *= x[m]
    return a.sum()


@program
def into_rows(x):
    A = np.zeros((4, 3))
    m = x > 0
    A[m, 0] = x[m]
    A[m, 1] = 2.0
    A[m, 2] += x[m] ** 2
    return (A * np.arange(12.0).reshape(4, 3)).sum()


@program
def into_rows_whole(x):
    A = np.outer(x, np.arange(1.0, 4))
    m = x > 0
    A[m] = 0.5
    A[~m] *= 2
    A[m, :] += x[m][:, None]
    A[:, [True, False, True]] -= 1
    return (A**2).sum()


@program
def into_a_view(x):
    A = np.zeros((2, 4))
    row = A[1]
    m = x > 0
    row[m] = x[m]
    A[0][m] = 3.0
    return (A * A).sum()


@program
def out_of_a_ufunc(x):
    m = x > 0
    a = np.zeros(m.sum())
    np.multiply(x[m], 2, out=a)
    np.add(a, x[m], out=a)
    return (a**2).sum()


@program
def ufunc_where(x):
    m = x > 0
    a = np.zeros(4)
    np.sqrt(x, where=m, out=a)
    return a.sum()


@program
def copied_with_copyto(x):
    m = x > 0
    a = np.zeros(m.sum())
    np.copyto(a, x[m])
    b = np.zeros(4)
    np.copyto(b, x, where=m)
    return (a**2).sum() + (b**3).sum()


@program
def placed(x):
    a = x * 1.0
    np.place(a, a > 0.5, [0.25])
    b = np.zeros(4)
    np.place(b, x > 0, x[x > 0] * 2)
    return (a * b).sum() + b.sum()


@program
def put_under_a_mask(x):
    a = x * 1.0
    np.putmask(a, a < 0, a * a)
    b = np.ones(4)
    np.putmask(b, x > 0.5, x)
    return (a * b).sum()


@program
def added_at(x):
    a = np.zeros(4)
    np.add.at(a, np.flatnonzero(x > 0), x[x > 0])
    np.add.at(a, x > 0, 1.0)
    return (a**2).sum()


# products ----------------------------------------------------------------------------------------


@program
def product_with_itself(x):
    z = x[x > 0]
    return z @ z


@program
def dots(x):
    m = x > 0
    return np.dot(x[m], Y[m]) + x[m].dot(x[m]) + np.vdot(x[m], Y[m]) + np.inner(x[m], x[m])


@program
def matrix_products(x):
    m = x > 0
    A = np.outer(x, Y) + np.eye(4)
    return (A[m] @ x).sum() + (x @ A[:, m]).sum() + A[m][:, m].trace() + (A[:, m] @ x[m]).sum()


@program
def product_with_a_plain_matrix(x):
    m = x > 0
    n = int(m.sum())
    return (np.ones((2, n)) @ x[m]).sum() + (x[m] @ np.ones((n, 2))).sum() + np.arange(n) @ x[m]


@program
def norms(x):
    return np.linalg.norm(x[x > 0]) + np.linalg.norm(x[x < 0], 1) + np.outer(x[x > 0], x).sum()


@program
def einsums(x):
    m = x > 0
    return np.einsum("i,i", x[m], Y[m]) + np.tensordot(x[m], x[m], 1)


# a mask beside other indices ---------------------------------------------------------------------


@program
def beside_integers(x):
    A = np.outer(x, x)
    m = x > 0
    return A[m, 0].sum() + A[0, m].sum() * A[m, -1].sum()


@program
def beside_slices(x):
    A = np.outer(x, Y)
    m = x > 0
    return A[m, 1:].sum() + (A[1:3, m] ** 2).sum() + A[m, None].sum() + A[..., m].sum()


@program
def beside_arrays(x):
    A = np.outer(x, Y)
    m = x > 0
    return A[np.flatnonzero(m), 0].sum() + A[m, :2][:, 0].sum() + A[np.ix_(m, m)].sum()


@program
def two_masks(x):
    A = np.outer(x, Y)
    m = x > 0
    return A[m, m].sum() + A[m][:, ~m].sum()


@program
def of_columns(x):
    A = np.outer(x, Y)
    m = x > 0
    return (A[:, m].sum(axis=0) ** 2).sum() + A[:, m].shape[1] + (A[m].mean(axis=0) ** 2).sum()


@program
def of_two_axes(x):
    A = np.outer(x, Y)
    M = A > 0.2
    B = A * 1.0
    B[M] = 0.0
    B[~M] = A[~M] ** 2
    return (A[M] ** 2).sum() + A[M].reshape(-1, 1).sum() + B.sum() + np.sort(A[M])[0]


@program
def of_three_axes(x):
    T = np.multiply.outer(np.outer(x, x), Y)
    m = x > 0
    return (
        T[:, m, 0].sum() + T[m].sum() + T[:, :, m].sum() + (T[0, m] ** 2).sum() + T[m, 0, m].sum()
    )


@program
def of_a_slice(x):
    m = x > 0
    return x[1:][m[1:]].sum() + x[:-1][m[1:]].prod()


@program
def by_a_list_of_truths(x):
    return x[[x[0] > 0, x[1] > 0, x[2] > 0, x[3] > 0]].prod()


# where it is true --------------------------------------------------------------------------------


@program
def places(x):
    m = x > 0
    return (
        x[np.flatnonzero(m)].prod()
        + x[np.nonzero(m)].sum()
        + x[np.where(m)[0]][0]
        + x[np.argwhere(m)].sum()
        + x[m.nonzero()[0][-1]]
    )


@program
def places_in_a_loop(x):
    total = 0.0
    for i in np.where(x > 0)[0]:
        total += x[i] * i
    for i, j in np.argwhere(np.outer(x, Y) > 0.1):
        total += x[i] * x[j]
    for i, j in zip(*np.nonzero(np.outer(x, Y) > 0.1), strict=True):
        total += x[i] * x[j] ** 2
    return total


@program
def counts(x):
    m = x > 0
    n = int(m.sum())
    k = np.count_nonzero(m)
    a = np.zeros(n)
    a[:] = np.arange(m.sum())
    return x[:n].sum() * k + a.sum() * x[0] + x[: np.sum(m)].prod() + np.ones(k) @ np.full(n, x[1])


@program
def extremes(x):
    m = x > 0
    return x[np.argmax(m)] + x[m].max() * x[m].min() + x[m][np.argmax(x[m])] + np.ptp(x[m])


@program
def first_true(x):
    i = np.argmax(x > 0)
    return x[i] * Y[i] + x[np.flatnonzero(x > 0)[0] :].sum()


@program
def indices_filled_in_a_loop(x):
    idx = np.zeros(4, int)
    n = 0
    for i in range(4):
        if x[i] > 0:
            idx[n] = i
            n += 1
    return x[idx[:n]].prod()


@program
def masks_filled_in_a_loop(x):
    m = np.zeros(4, bool)
    for i in range(4):
        m[i] = x[i] > 0
    return x[m].prod() + x[~m].sum()


@program
def masks_that_are_written(x):
    m = x > 0
    m[1] = True
    m[2:] |= x[2:] < -0.1
    m &= x < 1.6
    return x[m].prod() + Y[m].sum()


@program
def boolean_algebra(x):
    m = x > 0
    n = x < 1
    return (
        x[m & n].prod() + x[m | n].sum() + x[m ^ n].sum() + x[np.logical_and(m, n)][0]
        + x[~(m & n)].sum() + x[np.logical_not(m)].sum() + x[~m].prod()
    )  # fmt: skip


# python on a selection ---------------------------------------------------------------------------


@program
def lengths(x):
    z = x[x > 0]
    return len(z) * x[0] + z.size * x[1] + z.shape[0] * x[2] + np.size(z) * np.shape(z)[0] * x[3]


@program
def loops(x):
    total = 0.0
    for v in x[x > 0]:
        total += v * v
    for i, v in enumerate(x[x > 0]):
        total += i * v
    for v, w in zip(x[x > 0], Y[x > 0], strict=True):
        total += v * w
    return total + sum(x[x > 0]) + max(x[x > 0]) + min(x[x > 0])


@program
def lists(x):
    z = x[x > 0].tolist()
    w = list(x[x > 0])
    return z[0] * w[-1] + sum(v * v for v in z) + len(w) + np.array(w).sum() + np.array(z)[0]


@program
def unpacked(x):
    first, *rest = x[x > 0]
    return first * len(rest) + rest[-1]


@program
def reversed_order(x):
    z = x[x > 0][::-1]
    return (z * np.arange(len(z))).sum() + x[x > 0][-1] * x[x > 0][1:].sum()


@program
def truths(x):
    z = x[x > 0]
    if z.size and z[0] > 0.5:
        return z.sum()
    if (z > 2).any() or np.all(z < 1):
        return z.prod()
    return 2 * z.sum()


@program
def comparisons(x):
    z = x[x > 0]
    return (z > 0.5).sum() * x[0] + np.sum(z <= Y[x > 0]) * x[1] + (z > 0.5).mean() * x[3]


@program
def contained(x):
    z = x[x > 0]
    return z.sum() if 5.0 in z else z.prod()


@program
def augmented_selection(x):
    z = x[x > 0]
    z -= z.mean()
    z /= np.arange(1, len(z) + 1)
    z += x[0]
    return (z**2).sum()


@program
def unary_and_binary(x):
    m = x > 0
    z = x[m]
    return (
        (-z).sum() + abs(z).sum() + (+z).sum() + (z % 0.3).sum() + (z // 0.3).sum()
        + (2**z).sum() + (1 / z).sum() + (z + Y[m]).sum() + (Y[m] * z).sum()
        + divmod(z, 0.3)[1].sum() + round(z.sum() + 0.02, 1) + z.round().sum()
    )  # fmt: skip


@program
def functions_of_one(x):
    z = x[x > 0]
    return (
        np.exp(z).sum() + np.log(z).mean() + np.sqrt(z)[0] + np.clip(z, 0.2, 0.6).sum()
        + np.where(z > 0.5, z, 0).sum() + np.maximum(z, 0.5).sum() + np.abs(z).max()
        + np.round(z).sum() + np.sign(z).sum() + np.isnan(z).sum() + np.nan_to_num(z).sum()
    )  # fmt: skip


@program
def functions_of_two_results(x):
    z = x[x > 0]
    whole, part = np.divmod(z, 0.25)
    fraction, integer = np.modf(z)
    return part.sum() + whole.sum() + fraction[0] + integer.sum() + np.frexp(z)[1].sum()


# methods and functions of whole selections -------------------------------------------------------


@program
def reductions(x):
    z = x[x > 0]
    return (
        z.mean() + z.std() + z.var() + z.prod() + z.max() + z.min() + z.cumsum()[-1]
        + np.median(z) + np.percentile(z, 30) + np.average(z, weights=z) + np.mean(z)
        + np.nansum(z) + np.sum(z, axis=0) + np.add.reduce(z) + np.cumprod(z)[0]
        + z.sum(keepdims=True)[0] + np.std(z, ddof=1)
    )  # fmt: skip


@program
def orders(x):
    z = x[x > 0]
    w = z.copy()
    w.sort()
    return (
        np.sort(z)[0] + z[np.argsort(z)][-1] + w[0] + z.argmax() * x[0] + z[z.argmin()]
        + sorted(z)[0] + np.unique(z)[0] + np.partition(z, 1)[1] + np.searchsorted(w, 0.5) * x[1]
    )  # fmt: skip


@program
def joined(x):
    m = x > 0
    return (
        (np.concatenate([x[m], Y]) ** 2).sum()
        + (np.concatenate((x[~m], x[m])) * np.arange(4)).sum()
        + np.hstack([x[m], x[~m]])[1] + np.append(x[m], 1.0).sum() + np.r_[x[m], x[0]].sum()
        + np.stack([x[m], Y[m]]).sum() + np.vstack([x[m], Y[m]])[1, 0] + np.c_[x[m], Y[m]].sum()
        + np.insert(x[m], 0, 5.0)[0] + np.column_stack([x[m], Y[m]])[0].prod()
    )  # fmt: skip


@program
def made_into_arrays(x):
    m = x > 0
    return (
        np.array(x[m]).sum() + np.asarray(x[m]).prod() + x[m].copy()[0] + x[m].astype(float).sum()
        + np.array([x[m], Y[m]])[0].sum() + np.zeros_like(x[m]).sum() + np.ones_like(x[m]) @ x[m]
        + np.atleast_1d(x[m])[0] + np.copy(x[m])[0] + np.array(x[m], dtype=float)[0]
        + np.empty(x[m].shape).size + np.full_like(x[m], 2.0).sum() + float(x[m].sum())
    )  # fmt: skip


@program
def reshaped(x):
    z = x[x > 0]
    return (
        z.reshape(-1, 1).sum() + z[:, None].sum() + z[np.newaxis, :].mean() + z.T[0]
        + z.ravel()[0] + z.flatten()[-1] + np.tile(z, 2).sum() + np.repeat(z, 2).sum()
        + np.roll(z, 1)[0] + np.flip(z)[0] + np.diff(z).sum() + np.pad(z, 1).sum() + z.take([0])[0]
        + z.flat[0] + np.expand_dims(z, 0).sum() + np.squeeze(z)[0] + z.repeat(3)[0] + z.real.sum()
    )  # fmt: skip


@program
def removed(x):
    return (
        np.delete(x, np.flatnonzero(x < 0)).prod()
        + np.compress(x > 0, x).prod()
        + np.extract(x > 0, x).sum()
        + x.compress(x > 0)[0]
        + np.delete(x, x < 0).sum()
    )


@program
def in_parts(x):
    z = x[x > 0]
    n = int((x > 0).sum())
    a, b = np.split(x, [n])
    c = np.array_split(z, 2)
    return a.sum() * 2 + b.sum() + c[0].prod() + c[1].sum() + np.split(z, len(z))[0][0]


@program
def interpolated(x):
    m = x > 0
    return (
        np.interp(x[m], [0.0, 1.0, 2.0], [0.0, 1.0, 4.0]).sum()
        + np.interp(0.5, np.sort(x[m]), np.arange(len(x[m])))
        + np.trapezoid(x[m]) + np.trapezoid(Y[m], x[m]) + np.gradient(x[m])[0]
        + np.polyval([1.0, 2.0], x[m]).sum() + np.convolve(x[m], [1.0, 2.0]).sum()
    )  # fmt: skip


@program
def fitted(x):
    m = x > 0
    A = np.stack([np.ones(4), Y], axis=1)
    solution = np.linalg.lstsq(A[m], x[m], rcond=None)[0]
    line = np.polyfit(Y[m], x[m], 1)
    return solution[1] + 2 * line[0] + line[1]


@program
def solved(x):
    m = x > 0
    A = np.outer(x, x) + 3 * np.eye(4)
    part = A[np.ix_(m, m)]
    return np.linalg.solve(part, x[m]).sum() + np.linalg.det(part) + np.linalg.inv(A[m][:, m])[0, 0]


@program
def spread(x):
    m = x > 0
    return np.cov(x[m]) + np.corrcoef(x[m], Y[m])[0, 1] + np.cov(np.stack([x[m], Y[m]]))[0, 1]


@program
def histograms(x):
    m = x > 0
    return (
        np.histogram(x[m], bins=[0.0, 0.5, 1.0, 2.0], weights=x[m])[0] @ np.arange(3.0)
        + np.bincount(np.array([0, 1, 0, 1])[m], weights=x[m])[0]
    )


@program
def sets(x):
    labels = np.array([0, 1, 0, 1])
    total = 0.0
    for k in np.unique(labels[x > -0.2]):
        total += x[(labels == k) & (x > 0)].sum() * (k + 1)
    return total + x[np.isin(np.arange(4), np.flatnonzero(x > 0))].prod()


# plain arrays under a traced mask ----------------------------------------------------------------


@program
def of_plain_arrays(x):
    m = x > 0
    labels = np.arange(4)[m]
    return (
        Y[m].sum() * x[0] + (Y[m] * x[m]).sum() + x[labels].prod() + np.arange(4)[m][0] * x[1]
        + x[np.arange(4)[m][-1]] + sum(labels) * x[3] + np.array(list("abcd"))[np.asarray(m)].size
    )  # fmt: skip


@program
def plain_arrays_written(x):
    m = x > 0
    a = np.arange(4.0)
    a[m] = 5.0
    b = np.zeros(4, int)
    b[m] = np.arange(m.sum())
    return (a * x).sum() + (b * x).sum() + x[b].sum()


# stored back --------------------------------------------------------------------------------------


@program
def stored_from_another(x):
    y = x * 2
    m = x > 0
    y[m] = x[m] ** 2
    y[~m] = x[m][0]
    y[x > 0.5] = np.sort(x[x > 0.5])
    return (y * np.arange(4.0)).sum()


@program
def powers_stored(x):
    y = x.copy()
    y[y > 0] *= 2
    y[y < 0] = y[y < 0] ** 2
    y[y > 1] -= y[y > 1].mean()
    y[y > 0.5] = np.arange(np.sum(y > 0.5)) * y[0]
    return (y * np.arange(4.0)).sum()


@program
def combined_with_other_lengths(x):
    m = x > 0
    z = x[m]
    n = len(z)
    w = z * np.arange(n)
    v = np.linspace(0, 1, n) + z
    u = z + x[:n]
    return w.sum() + v.prod() + u.sum() + (np.arange(n) - z).sum() + (z + list(range(n))).sum()


@program
def combined_with_another_mask(x):
    m, k = x > 0, Y > 0
    if m.sum() == k.sum():
        return (x[m] * x[k]).sum() + (x[m] + Y[k]).sum()
    return x[m].sum() * x[k].sum()


@program
def broadcast_against(x):
    z = x[x > 0]
    D = z[:, None] - z[None, :]
    E = z * np.ones((2, len(z)))
    return (
        (D**2).sum() + (E * E).sum() + (z + np.ones((3, 1))).sum() + np.subtract.outer(z, z)[0, 1]
    )


@program
def kept_in_containers(x):
    m = x > 0
    d = {"in": x[m], "out": x[~m]}
    parts = [x[m], x[~m]]
    return d["in"].sum() * d["out"].sum() + sum(p.prod() for p in parts) + len(parts[0])


@program
def given_to_functions(x):
    def norm(v, w=None):
        return np.sqrt((v**2).sum()) if w is None else v @ w

    m = x > 0
    z = x[m]
    return norm(z) + norm(z, Y[m]) + norm(w=Y[m], v=z[:])


@program
def apply_and_map(x):
    z = x[x > 0]
    return (
        sum(map(np.square, z)) + np.vectorize(lambda v: v**2)(z).sum()
        + np.sum([v for v in z if v > 0.5]) + float(np.prod(z)) + any(v > 1 for v in z)
        + np.apply_along_axis(lambda r: r.sum(), 0, z) + np.array([v**2 for v in z])[0]
        + np.fromiter((v for v in z), float).sum()
    )  # fmt: skip


@program
def complex_selections(x):
    z = x[x > 0] * (1 + 2j)
    return np.abs(z).sum() + z.real.sum() + (z * z.conj()).real.sum() + z.imag[0] + np.angle(z)[0]


@program
def until_nothing_is_left(x):
    rest = x * 1.0
    total = 0.0
    while len(rest):
        total += rest[0] * len(rest)
        rest = rest[rest > rest[0]]
    return total


@program
def bitwise_selections(x):
    m = x > 0
    n = m[m]
    k = (x > 0.5)[m]
    return x[m][k].sum() * n.sum() + (~k).sum() * x[0] + x[m][~k & n].sum()


@program
def no_element(x):
    z = x[x > 10]
    return (
        z.sum() + len(z) + x[x > -10].prod() + np.sum(z**2) + (np.ones(4)[x > 10] * z).sum() + x[0]
    )


@program
def indexed_by_an_array(x):
    z = x[x > 0]
    i = np.array([1, 0])
    return z[i][0] * z[[0, -1]].sum() + z[np.array([True] + [False] * (len(z) - 1))].sum()


@program
def formatted(x):
    z = x[x > 0]
    text = f"{z.shape} {len(z)}"
    return len(text) * z.sum()
