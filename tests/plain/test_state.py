"""What a function writes to the objects of a program is there afterwards, as after a plain call."""

import collections
import dataclasses
import math
import types
from typing import Any, ClassVar

import numpy as np
import pytest

import functrans as ft

total: Any = 0.0
history: list[Any] = []
table: dict[str, Any] = {}
ring: Any = collections.deque(maxlen=2)
space = types.SimpleNamespace()


class Model:
    """A class that keeps what it computes."""

    kept: ClassVar[list[Any]] = []
    last: Any = None

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.named: dict[str, Any] = {}
        self.value: Any = None
        self.child: Any = None


@dataclasses.dataclass
class Record:
    """A record of two values."""

    a: Any
    b: Any = None


Pair = collections.namedtuple("Pair", "x y")


def counting(x: Any, seen: list[Any] = []) -> Any:  # noqa: B006  # as people count
    seen.append(x)
    counting.last = x  # type: ignore[attr-defined]  # a function's
    return x


def _closure() -> Any:
    best = None

    def look(x: Any) -> Any:
        nonlocal best
        best = x if best is None else best + x
        return x

    return look, lambda: best


look, found = _closure()
model = Model()


def _reset() -> None:
    global total, look, found, model, space
    total = 0.0
    history.clear()
    table.clear()
    ring.clear()
    look, found = _closure()
    model = Model()
    Model.kept.clear()
    Model.last = None
    counting.__defaults__[0].clear()  # type: ignore[index]  # it has one
    space = types.SimpleNamespace(rows=[])


def _state() -> Any:
    rows = vars(model)
    child = model.child
    return {
        "total": total, "history": list(history), "table": dict(table), "ring": list(ring),
        "closure": found(), "rows": rows["rows"], "named": rows["named"], "value": rows["value"],
        "child": None if child is None else vars(child), "class": list(Model.kept),
        "last": Model.last, "counted": list(counting.__defaults__[0]),  # type: ignore[index]  # it has one
        "attribute": getattr(counting, "last", None), "space": vars(space),
    }  # fmt: skip


def program(x: Any) -> Any:
    global total
    out = np.zeros(2)
    out[:] = x * 2
    total += x.sum()
    history.append(math.sin(x[0]))
    history.append([x * 2, (x[1], 3)])
    table["k"] = Pair(x[0] * 3, out)
    ring.append(float(x[0]) * 2)
    look(x[0])
    model.rows.append(out)
    model.named["s"] = {"t": x @ x}
    model.value = np.array([x[0], 1.0])
    model.child = Record(x * 4, b=[x[0]])
    Model.kept.append(out.sum())
    Model.last = x[1]
    counting(x[0] * 5)
    space.w = x + 1
    space.rows.append(x[0])
    return (out**2).sum() * x[0]


def _assert_same(found: Any, expected: Any, where: str) -> None:
    assert type(found) is type(expected), where
    if isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key in expected:
            _assert_same(found[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), where
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            _assert_same(a, b, f"{where}[{i}]")
    elif isinstance(expected, (float, np.ndarray)):
        np.testing.assert_allclose(found, expected, 1e-14, err_msg=where)
    else:
        assert found == expected, where


TRANSFORMS = {
    "grad": lambda f, x: ft.grad(f)(x),
    "value_and_grad": lambda f, x: ft.value_and_grad(f)(x)[1],
    "vjp": lambda f, x: ft.vjp(f, x)[1](1.0)[0],
    "jvp": lambda f, x: ft.jvp(f, (x,), (np.ones(2),)),
    "jacrev": lambda f, x: ft.jacrev(f)(x),
    "jacfwd": lambda f, x: ft.jacfwd(f)(x),
    "hvp": lambda f, x: ft.hvp(f, (x,), (x,)),
    "hessian": lambda f, x: ft.hessian(f)(x),
    "third": lambda f, x: ft.jacobian(ft.hessian(f))(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_state_is_that_after_a_plain_call(name: str) -> None:
    x = np.array([0.5, 1.5])
    _reset()
    program(x)
    program(x)
    expected = _state()
    _reset()
    TRANSFORMS[name](program, x)
    again = TRANSFORMS[name](program, x)
    _assert_same(_state(), expected, "")
    program(x + 1)  # plain calls go on from there
    _reset()
    for a, b in zip(
        ft.tree.leaves(again), ft.tree.leaves(TRANSFORMS[name](program, x)), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_what_is_kept_may_be_written_to_before_the_pullback() -> None:
    _reset()
    x = np.array([0.5, 1.5])
    _, pull = ft.vjp(program, x)
    model.rows[0][:] = 100.0
    model.child.a[:] = 100.0
    np.testing.assert_allclose(pull(1.0)[0], ft.grad(program)(x))


def test_derivatives_of_what_an_inner_transform_kept() -> None:
    """Inside of an outer transform, values that the inner one wrote are traced by the outer one."""

    def inner(y: Any) -> Any:
        out = np.zeros(2)
        out[:] = y
        model.value = (y * y, out)
        history.append(y[0])
        return (out**3).sum()

    def outer(x: Any) -> Any:
        slope = ft.grad(inner)(x * 2)
        return (model.value[0] * slope).sum() + history[-1] * model.value[1][1]

    x = np.array([0.5, 1.5])

    def plain(x: Any) -> Any:
        y = 2 * x
        return (y * y * 3 * y * y).sum() + y[0] * y[1]

    for _ in range(2):
        _reset()
        np.testing.assert_allclose(outer(x), plain(x))
        np.testing.assert_allclose(ft.grad(outer)(x), ft.grad(plain)(x))
        np.testing.assert_allclose(ft.jvp(outer, (x,), (x,))[1], ft.grad(plain)(x) @ x)
        np.testing.assert_allclose(ft.hessian(outer)(x), ft.hessian(plain)(x))


def test_functions_called_by_solvers_keep_traced_values() -> None:
    """A function that an integrator calls is not all of the trace that is open."""

    def run(x: Any) -> Any:
        memory = Model()

        def rhs(t: Any, y: Any) -> Any:
            out = np.zeros(1)
            out[0] = -x[0] * y[0]
            memory.value = x[1] * 2
            return out

        from scipy.integrate import solve_ivp

        end = solve_ivp(rhs, (0.0, 1.0), [1.0], rtol=1e-10, atol=1e-10).y[0, -1]
        return end + memory.value

    x = np.array([0.5, 1.5])
    np.testing.assert_allclose(ft.grad(run)(x), [-math.exp(-0.5), 2.0], 1e-7)


def test_state_after_an_error() -> None:
    def failing(x: Any) -> Any:
        program(x)
        raise KeyError("lost")

    x = np.array([0.5, 1.5])
    _reset()
    program(x)
    expected = _state()
    _reset()
    with pytest.raises(KeyError):
        ft.grad(failing)(x)
    _assert_same(_state(), expected, "")


def _counts(x: Any) -> Any:
    global total
    total = total + x @ x
    return (x * x).sum()


def _keeps(x: Any) -> Any:
    model.value = x * 2.0
    return (x * x).sum()


@pytest.mark.parametrize("f", [_counts, _keeps])
def test_functions_that_need_no_twin_else_leave_numbers(f: Any) -> None:
    x = np.array([0.5, 1.5])
    _reset()
    f(x)
    expected = _state()
    _reset()
    ft.grad(f)(x)
    _assert_same(_state(), expected, "")
