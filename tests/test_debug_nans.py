"""``debug_nans``: which equation, pass, line, iteration and lane it names."""

import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import functrans as ft
from functrans import lax
from functrans.errors import NonFiniteError

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

XS = np.array([1.0, -2.0, 3.0])


def caught(call: Callable[[], Any], **options: Any) -> NonFiniteError:
    with ft.debug_nans(**options), pytest.raises(NonFiniteError) as found:
        call()
    return found.value


def line_of(function: Any, text: str) -> int:
    lines, start = inspect.getsourcelines(function)
    return next(start + i for i, line in enumerate(lines) if text in line)


def logs(x: Any) -> Any:
    y = 2.0 * x
    z = np.log(y)
    return np.sum(z)


def root(x: Any) -> Any:
    y = x * 0.0
    return np.sum(np.sqrt(y))


def loop(x: Any) -> Any:
    def body(c: Any, k: Any) -> Any:
        c = c - k
        return c, np.sqrt(c)

    return lax.scan(body, x, np.ones(4))[1].sum()


def test_forward_operation_and_its_values_are_named() -> None:
    error = caught(lambda: ft.grad(logs)(XS))
    assert (error.primitive, error.direction, error.index) == ("log", "forward", (1,))
    assert error.source.line == line_of(logs, "np.log")  # type: ignore[attr-defined]  # a line
    assert_array_equal(error.operands[0], 2 * XS)  # type: ignore[arg-type]  # an array
    text = str(error)
    assert "log gave NaN in the forward pass (at test_debug_nans.py" in text
    assert "result[1] = nan of f64[3], 1 of 3 elements" in text
    assert "operand 0: f64[3], here -4.0" in text
    assert isinstance(error, FloatingPointError)


def test_backward_operation_is_named() -> None:
    error = caught(lambda: ft.grad(root)(1.0))
    assert (error.primitive, error.direction) == ("multiply", "backward")
    assert error.source.line == line_of(root, "x * 0.0")  # type: ignore[attr-defined]  # a line
    error = caught(lambda: ft.jacrev(lambda x: np.sqrt(x * 0.0) * np.array([0.0, 1.0]))(1.0))
    assert (error.primitive, error.direction) == ("multiply", "backward")
    assert error.lane == 1


def test_infinities_are_found_on_request_and_before_the_nan() -> None:
    assert np.isinf(ft.grad(lambda x: np.sqrt(x))(0.0))
    with ft.debug_nans():
        assert np.isinf(ft.grad(lambda x: np.sqrt(x))(0.0))
    error = caught(lambda: ft.grad(lambda x: np.sqrt(x))(0.0), inf=True)
    assert (error.primitive, error.direction) == ("sqrt", "backward")
    error = caught(lambda: ft.grad(lambda x: np.log(x) * x)(0.0), inf=True)
    assert (error.primitive, error.direction) == ("log", "forward")
    assert "log gave infinity" in str(error)
    with ft.debug_nans(nan=False):
        assert np.isnan(ft.grad(root)(1.0))


def test_tangents_are_watched() -> None:
    error = caught(lambda: ft.jvp(logs, (XS,), (np.ones(3),)))
    assert (error.primitive, error.direction) == ("log", "forward")
    error = caught(lambda: ft.jvp(lambda x: np.sqrt(x) * 0.0, (0.0,), (1.0,)))
    assert (error.primitive, error.direction) == ("multiply", "tangent")


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_tangents_of_recorded_functions_are_watched(wrap: Any) -> None:
    def lost(x: Any) -> Any:
        return np.sqrt(x) * 0.0

    f = wrap(lost)
    line = line_of(lost, "0.0")
    for call, lane in (
        (lambda: ft.linearize(f, 0.0)[1](1.0), None),
        (lambda: ft.jacfwd(f)(np.array([1.0, 0.0])), 1),
        (lambda: ft.hessian(lambda x: np.sum(x * f(x)))(np.array([1.0, 0.0])), None),
        (
            lambda: ft.linearize(lambda x: lax.fori_loop(0, 3, lambda i, x: f(x), x), 0.0)[1](1.0),
            None,
        ),
    ):
        error = caught(call)
        assert error.direction == "tangent"
        assert error.primitive == "multiply"
        assert error.source is not None
        assert error.source.line == line
        assert lane is None or error.lane == lane


def test_jit_finds_what_machine_code_computed() -> None:
    jitted = ft.jit(logs)
    assert np.isnan(jitted(XS))
    error = caught(lambda: jitted(XS))
    assert (error.primitive, error.index) == ("log", (1,))
    assert error.source.line == line_of(logs, "np.log")  # type: ignore[attr-defined]  # a line
    assert len(jitted.explain()) == 1  # looking for NaN stages nothing anew
    error = caught(lambda: ft.jit(ft.grad(root))(1.0))
    assert error.source.line == line_of(root, "x * 0.0")  # type: ignore[attr-defined]  # a line
    error = caught(lambda: ft.grad(ft.jit(logs))(XS))
    assert error.primitive == "log"
    assert "in jit (at" in str(error)
    error = caught(lambda: ft.grad(ft.jit(root))(1.0))
    assert error.direction == "backward"
    assert error.source.line == line_of(root, "x * 0.0")  # type: ignore[attr-defined]  # a line


def test_vmap_names_the_lane() -> None:
    def f(x: Any) -> Any:
        return np.log(2.0 * x)

    for call in (lambda: ft.vmap(f)(XS), lambda: ft.jit(ft.vmap(f))(XS)):
        error = caught(call)
        assert error.primitive == "log"
    error = caught(lambda: ft.vmap(f)(XS))
    assert error.lane == 1
    assert error.source.line == line_of(f, "np.log")  # type: ignore[attr-defined]  # a line
    assert "in element 1 of the batch" in str(error)
    error = caught(lambda: ft.vmap(f, 1)(np.stack([np.ones(3), XS, XS])))
    assert error.lane == 1
    error = caught(lambda: ft.vmap(ft.grad(f))(np.array([1.0, 2.0, 0.0])), inf=True)
    assert (error.primitive, error.lane) == ("log", 2)
    error = caught(lambda: ft.grad(lambda x: np.sum(ft.vmap(f)(x)))(XS))
    assert (error.primitive, error.index) == ("log", (1,))
    assert error.source.line == line_of(f, "np.log")  # type: ignore[attr-defined]  # a line
    error = caught(lambda: ft.vmap(lambda x: f(x) + lax.psum(x, "i"), axis_name="i")(XS))
    assert error.lane == 1


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, ft.grad, lambda f: ft.grad(ft.jit(f))])
def test_loops_name_the_iteration(wrap: Any) -> None:
    error = caught(lambda: wrap(loop)(2.5))
    assert (error.primitive, error.direction) == ("sqrt", "forward")
    assert error.source.line == line_of(loop, "np.sqrt")  # type: ignore[attr-defined]  # a line
    assert any("iteration 2 of scan" in step for step in error.path)
    assert float(error.operands[0]) == -0.5  # type: ignore[arg-type]  # a number


def test_backward_pass_of_a_loop_names_the_iteration() -> None:
    error = caught(lambda: ft.grad(loop)(4.0), inf=True)
    assert error.direction == "backward"
    assert any("iteration 3 of scan" in step for step in error.path), error
    assert error.source.line == line_of(loop, "np.sqrt")  # type: ignore[attr-defined]  # a line


def test_while_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda c: c[1] < 5, lambda c: (np.log(c[0]), c[1] + 1), (x, 0))[0]

    for call in (lambda: ft.jit(f)(3.0), lambda: ft.jvp(f, (3.0,), (1.0,))):
        error = caught(call)
        assert error.primitive == "log"
        assert any("iteration 3 of while" in step for step in error.path)

    def g(x: Any) -> Any:
        return lax.cond(x > 0, lambda v: v, lambda v: np.sqrt(v), x)

    error = caught(lambda: ft.jit(g)(-1.0))
    assert error.primitive == "sqrt"
    assert any("branch 0 of cond" in step for step in error.path)
    assert caught(lambda: g(-1.0)).primitive == "sqrt"
    for call in (
        lambda: ft.vmap(g)(XS),
        lambda: ft.jit(ft.vmap(g))(XS),
        lambda: ft.grad(lambda x: np.sum(ft.vmap(g)(x)))(XS),
    ):
        error = caught(call)
        assert (error.primitive, error.lane) == ("sqrt", 1)


def test_nan_that_comes_in_is_no_finding() -> None:
    x = np.array([1.0, np.nan])
    with ft.debug_nans():
        assert np.isnan(ft.grad(lambda v: np.sum(v * v))(x)[1])
        assert np.isnan(ft.jit(lambda v: v + 1.0)(x)[1])
        assert ft.vmap(lambda v: 2.0 * v)(x)[0] == 2.0


def test_values_are_the_same_and_it_ends_with_the_block() -> None:
    want = ft.hessian(lambda x: np.sum(np.exp(x) * x))(XS)
    with ft.debug_nans():
        assert_array_equal(ft.hessian(lambda x: np.sum(np.exp(x) * x))(XS), want)
        assert_array_equal(ft.jit(ft.grad(loop))(9.0), ft.grad(loop)(9.0))
        others: list[Any] = []
        thread = threading.Thread(target=lambda: others.append(ft.grad(logs)(XS)))
        thread.start()
        thread.join()
        assert np.isfinite(others[0]).all()
    assert np.isnan(ft.jit(logs)(XS))
    ft.vjp(root, 1.0)[1](1.0)


def test_decorator_and_second_order() -> None:
    @ft.debug_nans()
    def run() -> Any:
        return ft.grad(ft.grad(lambda x: np.sqrt(x * 0.0)))(1.0)

    with pytest.raises(NonFiniteError, match="multiply gave NaN"):
        run()


def test_effects_are_not_repeated() -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        ft.debug.callback(lambda v: seen.append(float(v)), x)
        return np.log(x)

    error = caught(lambda: ft.jit(f)(-1.0))
    assert error.primitive == "log"
    assert seen == [-1.0]
