"""Arrays without axes that a function writes to, by each way of writing and seen by each view."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from helpers import check_scalar_program

POINT = np.array([0.7, -0.4, 1.3])

MADE: dict[str, Callable[[Any], Any]] = {
    "array": lambda x: np.array(0.5),
    "zeros": lambda x: np.zeros(()),
    "full": lambda x: np.full((), 2.0),
    "copy": lambda x: np.array(0.5).copy(),
    "asarray": lambda x: np.asarray(0.5),
    "zeros_like": lambda x: np.zeros_like(x[0]),
    "array of a traced number": lambda x: np.array(x[2]),
    "full of a traced number": lambda x: np.full((), x[2]),
    "copy of one that is traced": lambda x: np.copy(_written(x)),
    "method copy": lambda x: _written(x).copy(),
    "astype": lambda x: _written(x).astype(float),
    "view of another": lambda x: np.zeros(3)[1, ...],
    "complex": lambda x: np.array(0.5 + 1j),
}


def _written(x: Any) -> Any:
    a = np.zeros(())
    a[()] = x[2]
    return a


def _augmented(a: Any, x: Any) -> None:
    a += x[0]
    a *= x[1]
    a -= 0.3
    a /= 1 + x[2] ** 2


def _at_ellipsis(a: Any, x: Any) -> None:
    a[...] = x[0]
    a[...] *= x[1]


def _at_nothing(a: Any, x: Any) -> None:
    a[()] = x[0]
    a[()] -= x[1]


def _by_mask(a: Any, x: Any) -> None:
    a[np.array(True)] = x[1]


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "augmented": _augmented,
    "[...]": _at_ellipsis,
    "[()]": _at_nothing,
    "mask": _by_mask,
    "fill": lambda a, x: a.fill(x[0]),
    "out of a ufunc": lambda a, x: np.multiply(x[0], x[1], out=a),
    "out by place": lambda a, x: np.multiply(x[0], x[1], a),
    "out of itself": lambda a, x: np.add(a, x[1], out=a),
    "out of sum": lambda a, x: np.sum(x, out=a),
    "out of sum by place": lambda a, x: np.sum(x, None, None, a),
    "out of dot": lambda a, x: np.dot(x, x, out=a),
    "out of a method": lambda a, x: x.sum(out=a),
    "out of prod": lambda a, x: x.prod(out=a),
    "out of reduce": lambda a, x: np.add.reduce(x, out=a),
    "copyto": lambda a, x: np.copyto(a, x[1]),
    "put": lambda a, x: np.put(a, 0, x[1]),
    "flat": lambda a, x: a.flat.__setitem__(0, x[1]),
    "at": lambda a, x: np.add.at(a, (), x[1]),
    "in a loop": lambda a, x: [np.add(a, v * v, out=a) for v in x],
}

VIEWS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda a: a,
    "[...]": lambda a: a[...],
    "[None]": lambda a: a[None],
    "asarray": np.asarray,
    "asanyarray": np.asanyarray,
    "reshape": lambda a: np.reshape(a, (1, 1)),
    "method reshape": lambda a: a.reshape(1),
    "ravel": lambda a: a.ravel(),
    "atleast_1d": np.atleast_1d,
    "atleast_2d": np.atleast_2d,
    "expand_dims": lambda a: np.expand_dims(a, 0),
    "squeeze": np.squeeze,
    "method squeeze": lambda a: a.squeeze(),
    "transpose": np.transpose,
    "T": lambda a: a.T,
    "view": lambda a: a.view(),
    "real": lambda a: a.real,
    "broadcast": lambda a: np.broadcast_to(a, 3),
}


check = functools.partial(check_scalar_program, x=POINT)


def _real(a: Any) -> Any:
    return np.sum(np.real(a) * np.arange(1.0, 4.0)[: np.size(a)]) + np.sum(np.imag(a)) ** 2


@each("write", WRITES)
@each("make", MADE, by="make")
def test_each_way_of_writing_reaches_other_names(make: str, write: str) -> None:
    if make == "complex" and write == "out of dot":
        pytest.skip("refused by NumPy")

    def f(x: Any) -> Any:
        a = MADE[make](x)
        other, before = a, a[()]
        WRITES[write](a, x)
        middle = a * 1.5
        number = a[()] if a.dtype.kind == "c" else float(a)
        WRITES[write](other, x[::-1])
        return _real(a) + 2 * _real(other) + 3 * _real(middle) + 4 * _real(number) + _real(before)

    check(f, is_short=True)


@each("view", VIEWS)
@each("make", MADE, by="make")
def test_views_of_one_are_written_to_and_read(make: str, view: str) -> None:
    is_read_only = view == "broadcast"

    def f(x: Any) -> Any:
        a = MADE[make](x)
        early = VIEWS[view](a)
        a += x[0]
        late = VIEWS[view](a)
        total = _real(early) + 2 * _real(late)
        if not is_read_only:
            early *= x[1]
            late[...] = late + x[2]
        a -= x[0] * x[1]
        return total + _real(early) + 2 * _real(late) + 3 * _real(a)

    check(f, is_short=True)


def numbers_are_no_arrays(x: Any) -> Any:
    a = np.array(0.0)
    a += x[0]
    number, same = a[()], a
    total = a.sum()
    plus = +a
    number += 1.0
    total += 1.0
    plus += 2.0
    for v in x:
        same += v
    return number * total * plus + 10.0 * a


def of_python(x: Any) -> Any:
    total, best = np.array(0.0), np.array(-1.0)
    for v in x:
        total += v
        best[()] = max(best, v)
    s = float(total)
    s += 1.0
    t = total.item()
    t *= 2.0
    values = [total, best, s]
    total -= 1.0
    return sum(values) + t + np.sum(values) + np.stack([total, best]) @ np.array([1.0, x[0]])


def indices(x: Any) -> Any:
    i, n = np.array(0), np.zeros((), int)
    out = np.zeros(3)
    while i < 3:
        out[i] = x[2 - i]
        i += 1
        n[()] = i
    return (out[: n - 1] * np.arange(n - 1)).sum() + out[int(n) - 1] + out[n - 3]


def in_objects(x: Any) -> Any:
    state = {"e": np.array(1.0), "n": 0}
    energy = state["e"]
    for v in x:
        state["e"] *= v
        state["n"] += 1
    return energy * state["n"]


def rows_summed_into_items(x: Any) -> Any:
    a = np.zeros((2, 2))
    item = a[0, 1, ...]
    a[0] = x[:2]
    item += x[2]
    return (a * np.arange(4.0).reshape(2, 2)).sum() * item


@pytest.mark.parametrize(
    "f", [numbers_are_no_arrays, of_python, indices, in_objects, rows_summed_into_items]
)
def test_programs_with_such_arrays(f: Any) -> None:
    check(f)


def test_an_array_of_integers_takes_no_fractions() -> None:
    def f(x: Any) -> Any:
        n = np.array(0)
        n[...] = x[0]
        return n * 1.0

    with pytest.raises(TypeError, match="array of int64"):
        ft.grad(f)(POINT)


OUTSIDE = np.array(1.5)


def test_an_array_from_outside_is_not_written_to() -> None:
    def f(x: Any) -> Any:
        a = OUTSIDE
        a += x[0]
        return a * 1.0

    with pytest.raises(ft.errors.UnsupportedOperationError, match="plain ndarray"):
        ft.grad(f)(POINT)

    def g(x: Any) -> Any:
        a = OUTSIDE.copy()
        a += x[0]
        return a * OUTSIDE

    check(g)
    assert OUTSIDE == 1.5
