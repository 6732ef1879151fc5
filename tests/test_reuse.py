"""Writing into memory that is no longer needed changes no result."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import functrans as ft
from functrans import lax
from functrans.passes import reuse
from functrans.passes.evaluate import executable
from functrans.passes.executables import last_uses
from functrans.passes.reuse import plan_reuse


@pytest.fixture(autouse=True)
def reuse_small_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuse, "_SMALLEST_BYTES", 0)


@pytest.fixture(autouse=True)
def _interpreted() -> Iterator[None]:
    """The plan of reuse is the interpreter's."""
    with ft.config(native=False):
        yield


def same_as_eager(fun: Any, *args: Any) -> None:
    """The executable, which may write in place, gives what the function gives; arguments stay."""
    before = [np.array(arg) for arg in args]
    want = fun(*args)
    jitted = ft.jit(fun)
    for _ in range(3):
        got = jitted(*args)
        for own, expected in zip(np.atleast_1d(got), np.atleast_1d(want), strict=True):
            assert_array_equal(own, expected)
    for arg, old in zip(args, before, strict=True):
        assert_array_equal(arg, old)


X = np.linspace(-1.0, 1.0, 40)


def test_elementwise_chain() -> None:
    jaxpr = ft.jit(lambda x: -(np.sin(x) * 2.0 + x) / 3.0).jaxpr(X)
    plan = plan_reuse(jaxpr, last_uses(jaxpr))
    assert plan is not None
    assert len(plan.updates) == len(jaxpr.eqns) - 1
    same_as_eager(lambda x: -(np.sin(x) * 2.0 + x) / 3.0, X)


CASES = {
    "value used later": lambda x: (lambda y: np.sum(np.exp(y) * 2.0 + y))(np.sin(x)),
    "view used later": lambda x: (lambda y: np.sum(np.exp(y)) + np.sum(y[3:]))(np.sin(x)),
    "view of a view": lambda x: (lambda y: np.sum(np.exp(y) + y.reshape(8, 5).T.reshape(-1)))(
        np.sin(x)
    ),
    "reversed view as an operand": lambda x: (lambda y: (y + y[::-1]) * 2.0)(np.sin(x)),
    "argument": lambda x: np.sin(x) * 2.0 + x * 3.0 - x,
    "captured": lambda x: (X + 1.0) * 2.0 + np.sin(X) - X,
    "returned twice": lambda x: (lambda y: np.stack([y, y * 2.0, y + y]))(np.sin(x)),
    "same operand twice": lambda x: (lambda y: y * y + 1.0)(np.sin(x)),
    "broadcast": lambda x: (np.sin(x)[:, None] + np.cos(x)) * 2.0,
    "scalar result": lambda x: np.sum(np.sin(x)) * 2.0 + 1.0,
    "mixed dtypes": lambda x: np.sin(x) + x.astype(np.float32) * np.float32(2.0) + 1,
    "inner program": lambda x: (lambda y: lax.cond(True, lambda y: y, lambda y: y + 1, y) * 2 + y)(
        np.sin(x)
    ),
    "update of an argument": lambda x: x.at[3].set(5.0).at[4].add(2.0) + x,
    "update and old value": lambda x: (lambda y: y.at[0].set(9.0) + y)(ft.numpy.sin(x) * 1.0),
}


@pytest.mark.parametrize("name", CASES)
def test_values_that_are_still_read_are_not_written(name: str) -> None:
    fun = CASES[name]
    want = ft.eval_jaxpr(ft.make_jaxpr(fun)(X), None, X)
    held = X.copy()
    for _ in range(2):
        closed = ft.jit(fun).jaxpr(held)
        (own,) = executable(closed)(*closed.consts, held)
        assert_array_equal(own, want[0])
        assert_array_equal(held, X)


def test_callback_may_keep_what_it_was_given() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        y = np.sin(x)
        ft.debug.callback(seen.append, y)
        return (y * 2.0 + 1.0) * 3.0

    for _ in range(2):
        ft.jit(f)(X)
    for value in seen:
        assert_array_equal(value, np.sin(X))


# loops ------------------------------------------------------------------------------------------


def fill(n: int) -> Any:
    def f(v: Any) -> Any:
        def body(i: Any, a: Any) -> Any:
            a[i] = np.sin(v * i)
            return a

        return lax.fori_loop(0, n, body, np.zeros(n))

    return f


def test_carried_array_is_written_in_place_after_one_copy() -> None:
    start = np.zeros(40)

    def body(i: Any, a: Any) -> Any:
        a[i] = a[i - 1] + 1.0
        return a

    for _ in range(2):
        result = lax.fori_loop(1, 40, body, start)
        assert_array_equal(result, np.arange(40.0))
        assert_array_equal(start, np.zeros(40))


def test_carried_arrays_that_change_places_are_copied() -> None:
    def body(i: Any, ab: Any) -> Any:
        a, b = ab
        a[i] = 1.0 + i
        return b, a

    def plain(a: Any, b: Any) -> Any:
        for i in range(5):
            a = a.copy()
            a[i] = 1.0 + i
            a, b = b, a
        return a, b

    zeros, ones = np.zeros(6), np.ones(6)
    for own, want in zip(lax.fori_loop(0, 5, body, (zeros, ones)), plain(zeros, ones), strict=True):
        assert_array_equal(own, want)
    assert_array_equal(zeros, np.zeros(6))


def test_old_values_stored_by_the_loop_stay() -> None:
    def step(a: Any, i: Any) -> Any:
        old = a
        row = a[2:4]
        a = a.at[i].add(10.0)
        return a, (old, row, a)

    a = np.zeros(5)
    want_a, rows = a.copy(), []
    for i in range(5):
        new = want_a.copy()
        new[i] += 10.0
        rows.append((want_a, want_a[2:4], new))
        want_a = new
    final, (olds, parts, news) = lax.scan(step, a, np.arange(5))
    assert_array_equal(final, want_a)
    for j, stack in enumerate((olds, parts, news)):
        assert_array_equal(stack, np.stack([row[j] for row in rows]))


def test_filling_an_array_and_pulling_back_copies_nothing_per_element() -> None:
    """A loop over n elements takes time in proportion to n, forwards and backwards."""
    jaxpr = ft.jit(ft.grad(lambda v: np.sum(fill(100)(v) ** 2))).jaxpr(0.1)
    loops = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan"]
    assert len(loops) == 2
    for eqn in loops:
        body, first = eqn.params["jaxpr"], eqn.params["n_consts"]
        carry = body.invars[first : first + eqn.params["n_carry"]]
        plan = plan_reuse(body, last_uses(body), carry)
        writes = {i for i, e in enumerate(body.eqns) if e.primitive.name == "scatter_set"}
        assert plan is not None
        assert writes <= set(plan.updates), str(body)
