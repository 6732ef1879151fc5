"""Rounds of a loop that know nothing of each other, on threads."""

import re
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.compiler import rounds
from functrans.transforms import chunks

ROUNDS = [8, 31, 32, 33, 100]
# Tolerances: programs and NumPy add the terms of a product, and all terms of a sum, in another
# order. An absolute error of some units in the last place of the terms is large beside a result in
# which they cancel; derivatives of derivatives sum 37 and more squares of such sums.


@pytest.fixture(autouse=True)
def _always_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small loops count as worth threads."""
    monkeypatch.setattr(rounds, "WORTH_CHUNKS", 1.0)


def _is_shared(f: Any, *args: Any) -> bool:
    return re.search(r"define internal void @rounds\d+", f.llvm(*args)) is not None


def _mapped(f: Any, reverse: bool = False) -> Any:
    def mapped(*xs: Any) -> Any:
        return lax.scan(lambda _, x: (None, f(*x)), None, xs, reverse=reverse)[1]

    return mapped


def _matrices(x: Any, y: Any) -> Any:
    h = fnp.tanh(x @ y)
    return h.sum(), h[0] > 0, fnp.where(h.T > 0.1, h.T, -1), (x[:2] * 3).astype("float32")


def _nested(x: Any, y: Any) -> Any:
    def step(carry: Any, row: Any) -> Any:
        return fnp.sin(carry) + row, carry[0]

    last, kept = lax.scan(step, x[0], y)
    return last, kept, fnp.sort(x, axis=0)


def _constants(x: Any, y: Any) -> Any:
    table = np.linspace(0, 1, 12).reshape(4, 3)
    return x * table + y.T[:, :3] @ np.eye(3), np.float64(2.0), lax.cond(
        x[0, 0] > 0, lambda: x + 1, lambda: x - 1
    )  # fmt: skip


@pytest.mark.parametrize("n", ROUNDS)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("body", [_matrices, _nested, _constants])
def test_numbers(body: Any, reverse: bool, n: int) -> None:
    rng = np.random.default_rng(n)
    xs, ys = rng.normal(size=(n, 4, 3)), rng.normal(size=(n, 3, 4))
    if body is _nested:
        ys = rng.normal(size=(n, 5, 3))
    f = ft.jit(_mapped(body, reverse))
    assert _is_shared(f, xs, ys)
    expected = _mapped(body, reverse)(xs, ys)
    for found, right in zip(f(xs, ys), expected, strict=True):
        assert found.dtype == right.dtype
        np.testing.assert_allclose(found, right, rtol=1e-14, atol=1e-14)


def test_bits_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(0)
    xs, ys = rng.normal(size=(40, 30, 20)), rng.normal(size=(40, 20, 30))
    f = ft.jit(_mapped(_matrices))
    before = ft.get_num_threads()
    try:
        results = []
        for count in (1, 2, 5):
            ft.set_num_threads(count)
            results.append(f(xs, ys))
    finally:
        ft.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_first_round_that_fails_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def body(x: Any, p: Any) -> Any:
        low = x**p  # an integer power
        return low + lax.scan(lambda c, i: (c + i // 1, None), low, np.arange(3))[0]

    xs, ps = np.full((64, 2), 3), np.full((64, 2), 2)
    f = ft.jit(_mapped(body))
    assert _is_shared(f, xs, ps)
    np.testing.assert_array_equal(f(xs, ps), _mapped(body)(xs, ps))
    for _ in range(5):
        wrong = ps.copy()
        wrong[40:, 1] = -1
        with pytest.raises(ValueError, match="negative integer powers"):
            f(xs, wrong)
    np.testing.assert_array_equal(f(xs, ps), _mapped(body)(xs, ps))  # nothing is left behind


def test_regions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long loops look at signals between regions."""
    monkeypatch.setattr(rounds, "WORK_PER_REGION", 1.0)
    rng = np.random.default_rng(0)
    xs, ys = rng.normal(size=(333, 4, 3)), rng.normal(size=(333, 3, 4))
    f = ft.jit(_mapped(_matrices))
    assert _is_shared(f, xs, ys)
    assert "PyErr_CheckSignals" in f.llvm(xs, ys)
    for found, right in zip(f(xs, ys), _mapped(_matrices)(xs, ys), strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("n", [37, 128, 129])
@pytest.mark.parametrize("transform", [ft.jacfwd, ft.jacrev, ft.hessian])
def test_jacobians_in_chunks(transform: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled Jacobians go through chunks that stay in the cache; the last two may overlap."""
    rng = np.random.default_rng(n)
    w, x = rng.normal(size=(5, n)), rng.normal(size=n)

    def f(x: Any) -> Any:
        h = fnp.tanh(w * x).sum(0) * x[::-1]
        return (h**2).sum() if transform is ft.hessian else {"h": h, "sum": h.sum(), "zero": w[0]}

    expected = transform(f)(x)
    whole = ft.jit(transform(f))
    assert "scan" not in str(whole.jaxpr(x))
    monkeypatch.setattr(chunks, "_CACHE_BYTES", 500 * n)
    monkeypatch.setattr(chunks, "_FEWEST_LANES", 2)
    g = ft.jit(transform(f))
    assert "scan" in str(g.jaxpr(x))
    for found in (g(x), whole(x), ft.jit(ft.vmap(transform(f)))(x[None])):
        for a, b in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.squeeze(a), np.squeeze(b), rtol=1e-12, atol=1e-13)


def test_gradients_of_jacobians_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_CACHE_BYTES", 20_000)
    monkeypatch.setattr(chunks, "_FEWEST_LANES", 2)
    x = np.linspace(0.1, 1, 37)

    def loss(x: Any) -> Any:
        return (ft.hessian(lambda x: (fnp.sin(x) * x[::-1]).sum() ** 2)(x) ** 2).sum()

    expected = ft.grad(loss)(x)
    for found in (ft.jit(ft.grad(loss))(x), ft.grad(ft.jit(loss))(x)):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11 * abs(expected).max())


def test_gradients() -> None:
    rng = np.random.default_rng(0)
    xs, ys = rng.normal(size=(20, 4, 3)), rng.normal(size=(20, 3, 4))

    def loss(xs: Any, ys: Any) -> Any:
        h = _mapped(lambda x, y: fnp.tanh(x @ y).sum())(xs, ys)
        return (h**2).sum()

    for found, right in zip(
        ft.jit(ft.grad(loss, (0, 1)))(xs, ys), ft.grad(loss, (0, 1))(xs, ys), strict=True
    ):
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-14)


def test_what_is_not_shared() -> None:
    """Loops that may not end, carried values, functions of libraries with state."""
    xs = np.linspace(1, 2, 4000).reshape(20, 200)

    def ended(x: Any) -> Any:
        return lax.while_loop(lambda v: v.sum() < 1e3, lambda v: v * 2, x)

    def special(x: Any) -> Any:
        return ft.scipy.special.gammainc(x, 2 * x)

    for body in (ended, special):
        f = ft.jit(_mapped(body))
        assert not _is_shared(f, xs)
        np.testing.assert_allclose(f(xs), _mapped(body)(xs), rtol=1e-14)
    carried = ft.jit(lambda xs: lax.scan(lambda c, x: (c + x, c * x), xs[0], xs)[1])
    assert not _is_shared(carried, xs)


def test_loops_in_shared_rounds_have_no_threads_of_their_own() -> None:
    rng = np.random.default_rng(0)
    xs = rng.normal(size=(8, 300, 300))
    f = ft.jit(_mapped(lambda x: fnp.exp(x) @ x))
    text = f.llvm(xs)
    calls = re.findall(r"call void @functrans.run_chunks\(ptr @(\w+?)\d*,", text)
    assert calls == ["rounds"]
    np.testing.assert_allclose(f(xs), _mapped(lambda x: np.exp(x) @ x)(xs), rtol=1e-11, atol=1e-11)
