"""Arrays that a function fills, where they meet each other, arguments and arrays from outside."""

import itertools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from cases import each

POINT = np.array([1.5, 2.05, 3.1])
OUTSIDE = np.array([2.1, 1.0, 4.0])


def filled(p: Any) -> Any:
    """Made by the function, with traced values."""
    z = np.zeros(3)
    for i in range(3):
        z[i] = 2.0 * p[i] - 0.5
    return z


LEFT: dict[str, Callable[[Any], Any]] = {
    "argument": lambda p: p,
    "filled": filled,
    "view": lambda p: np.stack([filled(p), p])[0],
    "constant": lambda p: np.arange(1.0, 4.0),
    "outside": lambda p: OUTSIDE,
    "list": lambda p: [filled(p)[0], 1.0, 2.0],
}
RIGHT = {name: LEFT[name] for name in ("argument", "filled", "view")}


def _in_place(name: str) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        own = np.array(a)
        return getattr(operator, name)(own, b)

    return apply


def _written(write: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        own = np.array(a)
        write(own, b)
        return own

    return apply


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    **{
        name: getattr(operator, name)
        for name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv", "matmul")
    },
    "divmod": lambda a, b: divmod(np.asarray(a), b)[1],
    "less": lambda a, b: np.where(np.asarray(a) < b, a, b),
    **{name: _in_place(name) for name in ("iadd", "isub", "imul", "itruediv", "ipow")},
    "imatmul": lambda a, b: _in_place("imatmul")(np.outer(a, a), np.outer(b, b)),
    "dot": lambda a, b: np.asarray(a).dot(b),
    "clip": lambda a, b: np.asarray(a).clip(b * 0.8, 1.1 * b),
    "clip by keyword": lambda a, b: np.asarray(a).clip(min=b * 0.8, max=None),
    "searchsorted": lambda a, b: np.sort(np.asarray(a)).searchsorted(b) * 1.0,
    "searchsorted in": lambda a, b: np.sort(b).searchsorted(np.asarray(a)) * 1.0,
    "sum where": lambda a, b: np.asarray(a).sum(where=b > 2.7),
    "max initial": lambda a, b: np.asarray(a).max(initial=b[2] * 0.93),
    "std mean": lambda a, b: np.asarray(a).std(mean=b.mean(keepdims=True)),
    "std": lambda a, b: np.asarray(a).std(ddof=1) * b,
    "take": lambda a, b: np.asarray(a).take((b > 2.7).astype(int)),
    "compress": lambda a, b: np.asarray(a).compress(b > 2.7),
    "choose": lambda a, b: np.array([0, 1, 0]).choose([b, np.asarray(a)]),
    "repeat": lambda a, b: np.asarray(a).repeat((b > 2.7).astype(int) + 1),
    "by mask": lambda a, b: np.asarray(a)[b > 2.7],
    "by index": lambda a, b: np.asarray(a)[(b > 2.7).astype(int)],
    "item": lambda a, b: np.asarray(a).item(int(b[0] > 2.7)) * b,
    "written": _written(lambda own, b: own.__setitem__(slice(None), b)),
    "written by mask": _written(lambda own, b: own.__setitem__(b > 2.7, b[:1])),
    "put": _written(lambda own, b: own.put([0, 1], b[1:])),
    "fill": _written(lambda own, b: own.fill(b[1])),
    "real": _written(lambda own, b: setattr(own, "real", b)),
    "flat": _written(lambda own, b: own.flat.__setitem__(slice(1, 3), b[:2])),
    "list of arrays": lambda a, b: np.asarray(a).dot([b, b, 2.0 * b]),
    "joined": lambda a, b: np.concatenate([np.asarray(a), b]),
    "array of both": lambda a, b: np.array([a, b]),
}


def _is_known_only_by_values(name: str) -> bool:
    return name in ("compress", "by mask", "repeat", "item")


@each("right", RIGHT)
@each("left", LEFT)
@each("name", OPERATIONS, by="name", one_of=2)
def test_arrays_that_are_filled_are_operands_as_others(name: str, left: str, right: str) -> None:
    operation, a, b = OPERATIONS[name], LEFT[left], RIGHT[right]
    if left == "list" and name in ("sub", "add", "mul", "mod", "floordiv"):
        a = lambda p: np.array(LEFT[left](p))  # noqa: E731  # operators of lists are not these
    if left == "list" and name.startswith(("less", "matmul", "pow", "truediv")):
        a = lambda p: np.asarray(LEFT[left](p))  # noqa: E731

    def f(p: Any) -> Any:
        return operation(a(p), b(p))

    expected = np.asarray(f(POINT))
    step = 1e-6
    slope = (np.asarray(f(POINT + step)) - np.asarray(f(POINT - step))) / (2 * step)
    value, tangent = ft.jvp(f, (POINT,), (np.ones(3),))
    assert_allclose(value, expected, 1e-13)
    assert_allclose(tangent, slope, 1e-6, 1e-8)
    assert_allclose(np.sum(ft.jacrev(f)(POINT), axis=-1), slope, 1e-6, 1e-8)
    if not _is_known_only_by_values(name):
        assert_allclose(ft.jit(f)(POINT), expected, 1e-13)
        assert_allclose(ft.vmap(f)(POINT[None])[0], expected, 1e-13)
    np.testing.assert_array_equal(OUTSIDE, [2.1, 1.0, 4.0])


# what is written while it is read -----------------------------------------------------------------

VALUES = np.array([1.7, 0.3, -0.4, 0.8])


def running_sums(x: Any) -> Any:
    y = x * 1
    for i, v in enumerate(y):
        if i < 3:
            y[i + 1] += v
    return y.sum() * y[2]


def pairs(x: Any) -> Any:
    y = x * 1
    for a, b in itertools.pairwise(y):
        y[3] += a * b
    for i, (a, b) in enumerate(zip(y, y[1:])):  # noqa: B905, RUF007  # as people write it
        y[2] += a * b * i
    return (y * y).sum()


def rows(x: Any) -> Any:
    y = np.outer(x, x)
    for i, row in enumerate(y):
        row *= 2.0
        y[(i + 1) % 4] += row
    return (y * np.arange(16.0).reshape(4, 4)).sum()


def filled_in_a_loop(x: Any) -> Any:
    out = np.zeros(4)
    for i, v in enumerate(out):
        out[i] = x[i] + v
    return (out**2).sum()


def filled_backwards(x: Any) -> Any:
    out, total = np.zeros(4), 0.0
    for i, v in enumerate(out.flat):
        total += v * v
        out[3 - i] = x[i]
    return total + out.sum()


def taken_one_by_one(x: Any) -> Any:
    out = np.zeros(4)
    items = iter(out)
    first = next(items)
    out[:] = x
    return first + next(items) * 3.0 + sum(map(lambda v, w: v * w, out, items))


def product_in_place(x: Any) -> Any:
    a = x.reshape(2, 2) * 1
    view = a.T

    def swap(m: Any) -> None:
        m @= np.array([[0.0, 1.0], [2.0, 0.0]])

    swap(a)
    view @= np.array([[1.0, 1.0], [0.0, 1.0]])
    return (a * np.arange(4.0).reshape(2, 2)).sum()


def copied_columns(x: Any) -> Any:
    a = np.zeros((4, 2))[:, 0]
    a[:] = x
    r = a.ravel()
    r[0] = 7
    b = np.zeros((2, 2)).T
    b[0] = x[:2]
    b.reshape(-1)[3] = 5
    b.ravel()[0] = 7
    return (a * r).sum() + (b**2).sum()


def fields_of_records(x: Any) -> Any:
    y = x * 1
    total = 0.0
    for v in y:
        y += 0.1 * v
        total += v
    return total * y[0]


def windows(x: Any) -> Any:
    b = np.zeros(6)
    w = np.lib.stride_tricks.sliding_window_view(b, 3)
    b[1:5] = x
    return (w**2 * np.arange(12.0).reshape(4, 3)).sum()


def strides(x: Any) -> Any:
    b = np.zeros(6)
    w = np.lib.stride_tricks.as_strided(b, (3, 2), (16, 8))
    u, v = np.asarray(memoryview(b)), np.frombuffer(b)
    b[1:5] = x
    w[0, 0] = x[1]
    return (w**2).sum() + b[0] + u[2] * v[3]


READ_AND_WRITTEN = [
    windows, strides,
    running_sums, pairs, rows, filled_in_a_loop, filled_backwards, taken_one_by_one,
    product_in_place, copied_columns, fields_of_records,
]  # fmt: skip


@pytest.mark.parametrize("f", READ_AND_WRITTEN)
def test_what_is_written_while_it_is_read_is_as_in_numpy(f: Any) -> None:
    expected = f(VALUES)
    slope = [(f(VALUES + e) - f(VALUES - e)) / 2e-6 for e in 1e-6 * np.eye(4)]
    assert_allclose(ft.jvp(f, (VALUES,), (np.ones(4),))[0], expected)
    assert_allclose(ft.grad(f)(VALUES), slope, 1e-6, 1e-8)
    assert_allclose(ft.jacfwd(f)(VALUES), slope, 1e-6, 1e-8)
    if f is copied_columns:  # whether a reshape copies depends on a layout that is not known
        return
    assert_allclose(ft.jit(f)(VALUES), expected)
    assert_allclose(ft.jit(ft.grad(f))(VALUES), slope, 1e-6, 1e-8)
    assert_allclose(ft.vmap(ft.grad(f))(VALUES[None])[0], slope, 1e-6, 1e-8)
