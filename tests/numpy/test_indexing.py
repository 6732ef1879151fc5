"""Indexing by everything NumPy knows: reading, writing, placement of axes, ``at``, selection."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy_cases import Case, assert_same, check

import functrans as ft
import functrans.numpy as fnp
from functrans.numpy.at import At

R = np.random.default_rng(3)
V = R.standard_normal(6)
X = R.standard_normal((3, 4))
T = R.standard_normal((3, 4, 5))
MASK = np.array([True, False, True])
GRID = X > 0

INDICES = {
    "list": ([0, 2, 0],),
    "array": (np.array([[0, 1], [2, -1]]),),
    "array slice": (np.array([0, 2]), slice(1, 3)),
    "slice array": (slice(None), np.array([3, 0])),
    "two arrays": (np.array([0, 2]), np.array([1, -1])),
    "broadcast arrays": (np.array([[0], [2]]), np.array([1, 3])),
    "array int": (np.array([0, 2]), 1),
    "int slice array": (1, slice(None), np.array([4, 0, 1])),
    "int array": (1, np.array([3, 0]), slice(None)),
    "apart": (np.array([0, 2]), slice(None), np.array([1, 4])),
    "apart by ellipsis": (np.array([0, 2]), ..., np.array([1, 4])),
    "apart by none": (np.array([0, 2]), None, np.array([1, 3])),
    "new axes": (None, np.array([0, 2]), None, slice(1, None), None),
    "trailing": (..., np.array([0, 4]), None),
    "none before": (None, slice(None), np.array([0, 2])),
    "mask": (MASK,),
    "mask int": (MASK, 1),
    "mask slice": (MASK, slice(1, 3), np.array([0, 4])),
    "mask array": (slice(None), slice(None), R.uniform(size=5) > 0.5),
    "grid": (GRID,),
    "grid array": (GRID, np.array(2)),
    "empty": ([],),
    "true": (True,),
    "false": (False, slice(1, 2)),
    "scalar mask and array": (np.bool_(True), np.array([0, 1])),
    "uint": (np.array([1, 2], np.uint8),),
    "negative slice": (np.array([0, 1]), slice(None, None, -2)),
    "0-d": (np.array(1), np.array([0, 2])),
    "tuple": ((0, 1), [2, 2]),
    "all ints": (np.int64(1), 2, np.array(3)),
    "ellipsis empty": (np.array([0, 1]), ..., np.array([0, 1]), np.array([0, 1])),
}


@pytest.mark.parametrize("name", INDICES)
def test_reading_agrees_with_numpy(name: str) -> None:
    index = INDICES[name]
    check(Case(name, lambda x: x[index] * 2.0, T))


@pytest.mark.parametrize("name", INDICES)
def test_writing_agrees_with_numpy(name: str) -> None:
    index = INDICES[name]
    value = R.standard_normal(T[index].shape)

    def f(x, v):
        y = x * 1.0
        y[index] = v
        y[index] += 1.0
        return y

    check(Case(name, f, T, value))


@pytest.mark.parametrize("name", INDICES)
def test_writing_a_scalar_agrees_with_numpy(name: str) -> None:
    index = INDICES[name]

    def f(x, v):
        y = x * 1.0
        y[index] = v
        return y

    check(Case(name, f, T, np.asarray(2.5)))


@st.composite
def mixed_indices(draw):
    """An index of mixed parts for an array of shape (3, 4, 5)."""
    shape = (3, 4, 5)
    common = draw(st.sampled_from([(), (2,), (2, 1), (0,)]))
    parts = []
    axis = 0
    for _ in range(draw(st.integers(1, 4))):
        if axis == 3:
            break
        kind = draw(st.sampled_from(["int", "slice", "array", "none", "mask", "ellipsis"]))
        n = shape[axis]
        if kind == "none":
            parts.append(None)
            continue
        if kind == "ellipsis":
            if not any(part is Ellipsis for part in parts):
                parts.append(Ellipsis)
            continue
        if any(part is Ellipsis for part in parts):
            n = 3
        if kind == "int":
            parts.append(draw(st.integers(-n, n - 1)))
        elif kind == "slice":
            bound = st.one_of(st.none(), st.integers(-n, n))
            step = draw(st.sampled_from([None, 1, 2, -1]))
            parts.append(slice(draw(bound), draw(bound), step))
        elif kind == "array":
            size = int(np.prod(common, dtype=int))
            values = draw(st.lists(st.integers(-n, n - 1), min_size=size, max_size=size))
            parts.append(np.array(values, int).reshape(common))
        else:
            values = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            parts.append(np.array(values))
        axis += 1
    return tuple(parts)


@given(mixed_indices())
def test_any_mixture_agrees_with_numpy(index) -> None:
    try:
        expected = T[index]
    except IndexError:
        with pytest.raises(IndexError):
            ft.vjp(lambda x: x[index], T)
        return
    out, pullback = ft.vjp(lambda x: x[index], T)
    assert_same(out, expected, str(index))
    (jaxpr_out,) = ft.eval_jaxpr(ft.make_jaxpr(lambda x: x[index])(T), None, T)
    assert_same(jaxpr_out, expected, str(index))
    ct = np.arange(1.0, expected.size + 1).reshape(expected.shape)
    accumulated = np.zeros_like(T)
    np.add.at(accumulated, index, ct)
    np.testing.assert_allclose(pullback(ct)[0], accumulated)

    def f(x, v):
        x = x * 1.0
        x[index] = v
        return x

    written = T.copy()
    written[index] = ct
    np.testing.assert_array_equal(ft.vjp(f, T, ct)[0], written)
    (staged,) = ft.eval_jaxpr(ft.make_jaxpr(f)(T, ct), None, T, ct)
    np.testing.assert_array_equal(staged, written)


def test_last_of_repeated_writes_counts() -> None:
    def f(x, v):
        x = x * 1.0
        x[[0, 1, 0]] = v
        return x

    check(Case("repeated", f, V, V[:3]))


def test_traced_integers_index() -> None:
    i, j = np.array([[0, 2], [1, 1]]), np.array(3)

    def f(x, i, j):
        return x[i], x[j % 3], x[1:, j], x[i, ..., j], x[i, 1:3], x[[j - 3, 2]], x[..., j, None]

    jaxpr = ft.make_jaxpr(f)(T, i, j)
    for out, expected in zip(ft.eval_jaxpr(jaxpr, None, T, i, j), f(T, i, j), strict=True):
        np.testing.assert_array_equal(out, expected)

    def g(x, i, j):
        x = x * 1.0
        x[i, j] = 5.0
        x[j % 2, 1:] += 1.0
        return x

    (out,) = ft.eval_jaxpr(ft.make_jaxpr(g)(T, i, j), None, T, i, j)
    np.testing.assert_array_equal(out, g(T, i, j))


def test_index_out_of_bounds_names_it() -> None:
    with pytest.raises(IndexError, match="7"):
        ft.grad(lambda x: x[[0, 7]].sum())(V)
    with pytest.raises(IndexError, match="axis 0"):
        ft.grad(lambda x: x[np.ones(5, bool)].sum())(V)
    with pytest.raises(IndexError, match="too many"):
        ft.grad(lambda x: x[[0], [1]].sum())(V)
    with pytest.raises(IndexError, match="valid indices"):
        ft.grad(lambda x: x[[0.5]].sum())(V)
    with pytest.raises(IndexError, match="valid indices"):
        ft.grad(lambda x: x["a"].sum())(V)
    with pytest.raises(ft.errors.ShapeError, match="broadcast"):
        ft.grad(lambda x: x.__setitem__([0, 1], x[:3]) or x.sum())(V)


# masks ------------------------------------------------------------------------------------------


def staged(f, *args):
    jaxpr = ft.make_jaxpr(f)(*args)
    return ft.eval_jaxpr(jaxpr, None, *args)[0]


MASKED = {
    "set": lambda x: x.__setitem__(x > 0, 2.0),
    "function": lambda x: x.__setitem__(x > 0, 0.0),
    "augmented": lambda x: _augmented(x),
    "row": lambda x: x.__setitem__(x[:, 0] > 0, np.arange(4.0)),
    "row of one": lambda x: x.__setitem__(x[:, 0] > 0, np.arange(4.0)[None]),
    "columns": lambda x: x.__setitem__((slice(None), x[0] > 0), 3.0),
    "column values": lambda x: x.__setitem__((..., x[0] > 0), x[:, :1] * 1.0),
    "selection": lambda x: _selection(x),
    "both": lambda x: _both(x),
}


def _augmented(x):
    x[x < 0] *= -2.0


def _selection(x):
    positive = x > 0
    x[positive] = np.log(x[positive]) + 2 * x[positive] ** 2 - x[positive] / 3


def _both(x):
    y = np.exp(x)
    mask = y > 1
    x[mask] = y[mask] + x[mask]


@pytest.mark.parametrize("name", MASKED)
def test_masked_write_agrees_with_numpy(name: str) -> None:
    def f(x):
        y = x * 1.0
        MASKED[name](y)
        return y

    expected = f(X)
    np.testing.assert_allclose(staged(f, X), expected)
    check(Case(name, f, X))
    np.testing.assert_allclose(ft.vmap(f)(np.stack([X, 2 * X])), np.stack([f(X), f(2 * X)]))


@pytest.mark.parametrize(
    "use",
    [
        lambda x, m: x[m].sum(),
        lambda x, m: np.sum(x[m]),
        lambda x, m: x[m][0],
        lambda x, m: len(x[m]),
        lambda x, m: x[m] + np.arange(2.0),
        lambda x, m: x[m] + x[x > 0.1],
        lambda x, m: x.__setitem__(m, np.arange(3.0)),
        lambda x, m: np.asarray(x[m]),
        lambda x, m: list(x[m]),
        lambda x, m: x[None][:, m, None],
        lambda x, m: np.where(x[m] > 0, 1, 2),
        lambda x, m: bool(x[m] > 0),
    ],
)
def test_staged_selection_that_needs_values_raises(use) -> None:
    with pytest.raises(ft.errors.ConcretizationError, match="mask"):
        ft.make_jaxpr(lambda x: use(x, x > 0))(V)


# at ---------------------------------------------------------------------------------------------

AT = (
    Case("at set", lambda x: _at(x).at[1:3].set(5.0), V),
    Case("at add repeated", lambda x: _at(x).at[[0, 0, 2]].add(x[:3]), V),
    Case("at subtract", lambda x: _at(x).at[[0, 0, 2]].subtract(x[:3]), V),
    Case("at multiply", lambda x: _at(x).at[[1, 1]].multiply(x[:2]), V),
    Case("at divide", lambda x: _at(x).at[[1, 1]].divide(x[:2] + 9), V),
    Case("at power", lambda x: _at(x * x).at[[1, 1]].power(2.0), V),
    Case("at min", lambda x: _at(x).at[[0, 2]].min(0.1), V),
    Case("at max", lambda x: _at(x).at[..., 0].max(0.1), V),
    Case("at get", lambda x: _at(x).at[[0, 5]].get(), V),
    Case("at apply", lambda x: _at(x).at[1:3].apply(lambda v: v * v), V),
    Case("at basic add", lambda x: _at(x).at[0].add(1.0), X),
)


class _PlainAt:
    """``at`` of plain arrays, by NumPy."""

    def __init__(self, x):
        self.x = x

    at = property(lambda self: self)

    def __getitem__(self, index):
        self.index = index
        return self

    def _do(self, ufunc, v):
        y = self.x.copy()
        ufunc.at(y, self.index, v)
        return y

    def set(self, v):
        y = self.x.copy()
        y[self.index] = v
        return y

    def get(self):
        return self.x[self.index]

    def apply(self, f):
        return self.set(f(self.x[self.index]))

    add = lambda self, v: self._do(np.add, v)  # noqa: E731  # methods in one line each
    subtract = lambda self, v: self._do(np.subtract, v)  # noqa: E731  # methods in one line each
    multiply = lambda self, v: self._do(np.multiply, v)  # noqa: E731  # methods in one line each
    divide = lambda self, v: self._do(np.divide, v)  # noqa: E731  # methods in one line each
    power = lambda self, v: self._do(np.power, v)  # noqa: E731  # methods in one line each
    min = lambda self, v: self._do(np.minimum, v)  # noqa: E731  # methods in one line each
    max = lambda self, v: self._do(np.maximum, v)  # noqa: E731  # methods in one line each


def _at(x):
    return x if hasattr(x, "at") else _PlainAt(x)


@pytest.mark.parametrize("case", AT, ids=repr)
def test_at_agrees_with_numpy_and_differences(case: Case) -> None:
    check(case)


def test_at_modes() -> None:
    def f(x):
        return (
            x.at[[0, 9]].set(5.0, mode="drop"),
            x.at[9].add(5.0, mode="clip"),
            x.at[[-1, 7]].multiply(2.0, mode="wrap"),
            x.at[[1, 9]].get(mode="fill", fill_value=-1.0),
            x.at[[1, 9]].get(mode="fill"),
            x.at[[1, 9]].get(mode="clip"),
            x.at[x > 0].set(0.0),
            x.at[x > 0].add(1.0),
        )

    outs = ft.eval_jaxpr(ft.make_jaxpr(f)(V), None, V)
    recorded = ft.vjp(f, V)[0]
    expected = [V.copy() for _ in range(3)]
    expected[0][0] = 5
    expected[1][5] += 5
    expected[2][[5, 1]] *= 2
    expected += [
        np.array([V[1], -1.0]),
        np.array([V[1], np.nan]),
        V[[1, 5]],
        np.where(V > 0, 0.0, V),
        np.where(V > 0, V + 1, V),
    ]
    for out, other, wanted in zip(outs, recorded, expected, strict=True):
        np.testing.assert_allclose(out, wanted)
        np.testing.assert_allclose(other, wanted)
    with pytest.raises(ValueError, match="mode"):
        ft.grad(lambda x: x.at[0].get(mode="bounce"))(V)
    with pytest.raises(IndexError):
        ft.grad(lambda x: x.at[[9]].set(1.0).sum())(V)


EMPTY_MASKS = [(0,), (2, 0), (0, 3), (0, 7), (2, 7), (0, 3, 1)]


@pytest.mark.parametrize("shape", EMPTY_MASKS, ids=str)
@pytest.mark.parametrize("way", ["read", "write", "write an array"])
def test_masks_without_elements_select_nothing_or_are_refused_as_in_numpy(shape, way) -> None:
    x, mask = X[:2, :3].copy(), np.zeros(shape, bool)

    def f(x, mask=mask):
        if way == "read":
            return x[mask] * 2.0
        y = x * 1.0
        y[mask] = 7.0 if way == "write" else np.zeros(x[mask].shape)
        return y

    ways = (
        ft.jit(f),
        lambda x: ft.vjp(f, x)[0],
        lambda x: ft.vmap(f)(x[None])[0],
        lambda x: ft.jit(f)(x, mask),
    )
    try:
        expected = f(x)
    except IndexError:
        for run in ways:
            with pytest.raises(IndexError):
                run(x)
        return
    for run in ways:
        np.testing.assert_array_equal(run(x), expected, strict=True)


@pytest.mark.parametrize("mode", ["clip", "wrap"])
@pytest.mark.parametrize("axis", [0, 1])
def test_take_from_arrays_without_elements_is_that_of_numpy(mode, axis) -> None:
    """No index is out of bounds where another axis is empty; any is where its own is."""
    x = np.zeros((3, 0))

    def f(x):
        return np.take(x, np.array([5, -7]), axis=axis, mode=mode)

    for run in (f, ft.jit(f), lambda x: ft.vjp(f, x)[0], lambda x: ft.vmap(f)(x[None])[0]):
        if axis:
            with pytest.raises(IndexError):
                run(x)
        else:
            assert run(x).shape == (2, 0)


# functions about indices ------------------------------------------------------------------------

I = np.array([[0, 2], [3, 1]])  # noqa: E741  # positions
FUNCTIONS = (
    Case("where", lambda x, y: np.where(x > 0, x, y), X, X[::-1]),
    Case("where scalar", lambda x: np.where(GRID, x, 2.0), X),
    Case("take", lambda x: np.take(x, I), X),
    Case("take axis", lambda x: np.take(x, [[0, 1]], axis=1), T),
    Case("take scalar", lambda x: np.take(x, 1, axis=-1), T),
    Case("take wrap", lambda x: np.take(x, [-1, 7], axis=0, mode="wrap"), X),
    Case("take clip", lambda x: np.take(x, [-1, 7], axis=1, mode="clip"), X),
    Case("take_along_axis", lambda x: np.take_along_axis(x, np.argsort(X, 1)[:, :2], 1), X),
    Case("take_along_axis flat", lambda x: np.take_along_axis(x, I[0], None), X),
    Case("compress", lambda x: np.compress([True, False, True], x, axis=0), X),
    Case("extract", lambda x: np.extract(GRID, x), X),
    Case("choose", lambda x: np.choose([0, 2, 1, 0], [x[0], x[1], x[2]]), X),
    Case("choose wrap", lambda x: np.choose([0, 5], [x, 2 * x], mode="wrap"), V[:2]),
    Case("select", lambda x: np.select([x > 1, x > 0], [x**2, np.exp(x)], 3.0), X),
    Case("diag", np.diag, X),
    Case("diag vector", lambda x: np.diag(x, -2), V),
    Case("diagonal", lambda x: np.diagonal(x, 1, 0, 2), T),
    Case("diagflat", lambda x: np.diagflat(x, 1), X),
    Case("trace", lambda x: np.trace(x, 1), X),
    Case("trace axes", lambda x: np.trace(x, axis1=1, axis2=2), T),
    Case("tril", lambda x: np.tril(x, 1), T),
    Case("triu", lambda x: np.triu(x, -1), X),
    Case("triu vector", np.triu, V),
    Case("ix_", lambda x: x[np.ix_([0, 2], [1, 3])], X),
    Case("nonzero", lambda x: x[np.nonzero(x > 0)], X, is_staged=False),
    Case("flatnonzero", lambda x: x.ravel()[np.flatnonzero(x > 0)], X, is_staged=False),
    Case("argwhere", lambda x: x[tuple(np.argwhere(x > 0).T)], X, is_staged=False),
    Case("where one", lambda x: x[np.where(x > 0)], X, is_staged=False),
    Case("tril_indices_from", lambda x: x[np.tril_indices_from(x)], X),
    Case("triu_indices_from", lambda x: x[np.triu_indices_from(x, 1)], X),
    Case("diag_indices_from", lambda x: x[np.diag_indices_from(x)], X[:, :3]),
    Case("sort", np.sort, X),
    Case("sort axis", lambda x: np.sort(x, axis=0, kind="stable"), X),
    Case("sort flat", lambda x: np.sort(x, axis=None), X),
    Case("argsort", lambda x: np.take_along_axis(x, np.argsort(x, axis=0), 0), X),
    Case("partition", lambda x: np.sort(np.partition(x, 2)[..., :2]), X),
    Case("argpartition", lambda x: np.take(x, np.argpartition(x, -2)[-2:]).sum(), V),
    Case("lexsort", lambda x: x[np.lexsort((x, [1, 0, 1, 0, 1, 0]))], V),
    Case("sort_complex", np.sort_complex, V + 1j * V[::-1]),
    Case("searchsorted", lambda x: x * np.searchsorted([-1.0, 0.0, 1.0], x), V),
    Case("searchsorted sorter", lambda x: x * np.searchsorted(x, 0.3, sorter=np.argsort(x)), V),
    Case("unique", np.unique, np.round(X, 0), is_smooth=False, is_staged=False),
    Case("unique all", lambda x: np.unique(x, True, True, True), V, is_staged=False),
    Case("unique axis", lambda x: np.unique(x, axis=0), X, is_staged=False),
    Case("unique_values", np.unique_values, V, is_staged=False),
    Case("unique_counts", lambda x: tuple(np.unique_counts(x)), V, is_staged=False),
    Case("unique_inverse", lambda x: tuple(np.unique_inverse(x)), X, is_staged=False),
    Case("unique_all", lambda x: tuple(np.unique_all(x)), V, is_staged=False),
    Case("union1d", lambda x, y: np.union1d(x, y), V, V[:3] + 1, is_staged=False),
    Case(
        "intersect1d", lambda x: np.intersect1d(x, V[[4, 1]]), V, is_staged=False, is_smooth=False
    ),
    Case("setdiff1d", lambda x: np.setdiff1d(x, [V[2]]), V, is_staged=False, is_smooth=False),
    Case("setxor1d", lambda x, y: np.setxor1d(x, y), V, V[:3] + 1, is_staged=False),
    Case("isin", lambda x: np.where(np.isin(x, [V[0], V[3]]), x, 0), V, is_smooth=False),
)


@pytest.mark.parametrize("case", FUNCTIONS, ids=repr)
def test_function_agrees_with_numpy_and_differences(case: Case) -> None:
    check(case)


WRITES = {
    "copyto": lambda y, v: np.copyto(y, v[0]),
    "copyto where": lambda y, v: np.copyto(y, v, where=GRID),
    "put": lambda y, v: np.put(y, [0, 5, 5], v[0, :3]),
    "put wrap": lambda y, v: np.put(y, [0, 15], v[0, 0], mode="wrap"),
    "place": lambda y, v: np.place(y, GRID, v[0]),
    "place scalar": lambda y, v: np.place(y, GRID, [v[0, 0]]),
    "putmask": lambda y, v: np.putmask(y, GRID, v[0]),
    "put_along_axis": lambda y, v: np.put_along_axis(y, np.array([[1], [0], [3]]), v[:, :1], 1),
    "put_along_axis flat": lambda y, v: np.put_along_axis(y, np.array([1, 0, 7]), v[0, :3], None),
    "fill_diagonal": lambda y, v: np.fill_diagonal(y, v[0, :3]),
    "fill_diagonal wrap": lambda y, v: np.fill_diagonal(y.T, v[0, 0], wrap=True),
}


@pytest.mark.parametrize("name", WRITES)
def test_function_that_writes_agrees_with_numpy(name: str) -> None:
    def f(x, v):
        y = x * 1.0
        WRITES[name](y, v)
        return y

    check(Case(name, f, X, X[::-1] + 3.0))


@pytest.mark.parametrize(
    "function",
    [
        lambda n: np.unravel_index(n, (3, 4)),
        lambda n: np.unravel_index(n, (3, 4), order="F"),
        lambda n: np.ravel_multi_index((n % 3, n % 4), (3, 4)),
        lambda n: np.ravel_multi_index((n, n), (3, 4), mode=("clip", "wrap"), order="F"),
        lambda n: fnp.nonzero(n > 3, size=6),
        lambda n: fnp.argwhere(n.reshape(3, 1) > 3, size=2),
    ],
)
def test_integer_functions_are_staged(function) -> None:
    n = np.array([1, 5, 11])
    outs = ft.eval_jaxpr(ft.make_jaxpr(function)(n), None, n)
    for out, expected in zip(outs, ft.tree.leaves(_sized(function, n)), strict=True):
        np.testing.assert_array_equal(out, expected)


def _sized(function, n):
    try:
        return function(n)
    except TypeError:  # NumPy's own functions have no size=
        jaxpr = ft.make_jaxpr(function)(n)
        full = {6: (np.array([1, 2, 0, 0, 0, 0]),), 2: np.array([[1, 0], [2, 0]])}
        return full[jaxpr.out_avals[0].shape[0]]


@pytest.mark.parametrize("name", ["nonzero", "flatnonzero", "argwhere", "where"])
def test_staged_search_names_the_size_remedy(name: str) -> None:
    with pytest.raises(ft.errors.ConcretizationError, match="size="):
        ft.make_jaxpr(lambda x: getattr(np, name)(x > 0))(X)


@pytest.mark.parametrize("transform", [ft.jit, ft.vmap])
def test_traced_mask_beside_an_integer_names_the_remedy(transform: object) -> None:
    def fun(x):  # the mask fits the axis that the integer leaves
        return x[1, x[0] > 0]

    x = X[None] if transform is ft.vmap else X
    with pytest.raises(ft.errors.ConcretizationError, match=r"other indices.*np\.where"):
        transform(fun)(x)


def _updated_or_refused(update: Callable[..., Any], x: np.ndarray, value: np.ndarray) -> Any:
    try:
        return update(x, value)
    except (TypeError, ValueError):
        return None


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "power", "min", "max"])
@pytest.mark.parametrize("index", [np.s_[:1], [0, 0], [True, False]], ids=str)
@np.errstate(all="ignore")
def test_values_are_converted_to_the_dtype_of_the_array(op: str, index: Any) -> None:
    def update(x: Any, value: Any) -> Any:
        return getattr(At(x)[index], op)(value)

    jitted = ft.jit(update)
    for own, other in itertools.product("?bBhHiIqQefdFD", repeat=2):
        if not np.can_cast(np.dtype(other).type(1), own, "same_kind") and other in "efdFD":
            continue  # refused
        runs = [update, jitted] if own + other in ("hH", "Bh", "qQ", "eH", "fd") else [update]
        for number in (3, 100, -2):
            x = np.array([4, 12]).astype(own)
            value = np.array([number]).astype(other)
            expected = _updated_or_refused(update, x, value.astype(own))
            for run in runs:
                got = _updated_or_refused(run, x, value)
                assert (got is None) == (expected is None), (own, other, number)
                if got is not None:
                    assert got.dtype == x.dtype
                    np.testing.assert_array_equal(got, expected, str((own, other, number)))
