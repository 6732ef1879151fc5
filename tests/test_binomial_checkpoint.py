"""Binomial checkpointing: the same derivatives, minimal recomputation, bounded memory."""

import tracemalloc
from functools import cache
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
from functrans import lax
from functrans.control.binomial import (
    cut,
    first_positions,
    online_stores,
    repetitions,
)

BINOMIAL = ft.checkpoint_policies.binomial
RNG = np.random.default_rng(5)
STATE, TOTAL = RNG.normal(size=2), 0.3


def step(carry: Any, x: Any) -> Any:
    state, total = carry
    state = np.sin(1.3 * state) + 0.5 * x
    return (state, total + np.sum(state * x)), state * total


def scanned(state: Any, total: Any, xs: Any, policy: Any = None, reverse: bool = False) -> Any:
    (state, total), ys = lax.scan(step, (state, total), xs, reverse=reverse, checkpoint=policy)
    return np.sum(state) * total + np.sum(ys**2)


def looped(x: Any, count: Any, policy: Any = None) -> Any:
    def body(c: Any) -> Any:
        return c[0] + 1, np.sin(1.3 * c[1]) * x[0] + 0.2 * x

    return np.sum(lax.while_loop(lambda c: c[0] < count, body, (0, x), checkpoint=policy)[1] ** 2)


# the schedule -----------------------------------------------------------------------------------


@cache
def least(length: int, n: int) -> int:
    """The minimal number of forward steps, by dynamic programming."""
    if length <= 1:
        return 0
    if n == 1:
        return length * (length - 1) // 2
    return min(m + least(length - m, n - 1) + least(m, n) for m in range(1, length))


def forward_steps(length: int, n: int) -> int:
    """The steps that the formula of Griewank and Walther counts beside each step's own reversal."""
    if length < 1:
        return 0
    r = repetitions(length, n)
    return r * length - comb(n + r, n + 1)


def test_forward_steps_are_minimal() -> None:
    for length in range(50):
        for n in range(1, 8):
            assert forward_steps(length, n) == least(length, n), (length, n)


def test_every_cut_is_optimal() -> None:
    for length in range(2, 50):
        for n in range(2, 8):
            m = cut(length, n)
            assert m + least(length - m, n - 1) + least(m, n) == least(length, n), (length, n)


def test_repetitions_grow_slowly() -> None:
    assert repetitions(1000, 1000) == 1
    assert repetitions(10**6, 30) == 6
    assert first_positions(1, 4) == [0]
    assert len(first_positions(10**6, 30)) == 30


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_online_stores_keep_states_at_one_distance(n: int) -> None:
    steps, places = online_stores(n)
    held: dict[int, int] = {}
    for number, (at, place) in enumerate(zip(steps[:200], places[:200], strict=True)):
        held[place] = at
        assert len(held) <= n
        assert 0 in held.values()
        assert number == 0 or at > steps[number - 1]
        gaps = np.diff([*sorted(held.values()), at + 1])
        assert max(gaps) <= 4 * max(1, (at + 1) // n)


# loops ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 6])
@pytest.mark.parametrize("length", [0, 1, 2, 7, 20])
def test_gradients_of_scan_are_those_without(length: int, n: int, reverse: bool) -> None:
    xs = np.cos(np.arange(2.0 * length)).reshape(length, 2)
    want = ft.jit(ft.grad(lambda *a: scanned(*a, reverse=reverse), (0, 1, 2)))(STATE, TOTAL, xs)

    def f(*args: Any) -> Any:
        return scanned(*args, policy=BINOMIAL(n), reverse=reverse)

    assert f(STATE, TOTAL, xs) == scanned(STATE, TOTAL, xs, reverse=reverse)
    for transform in (lambda f: ft.grad(f, (0, 1, 2)), lambda f: ft.jit(ft.grad(f, (0, 1, 2)))):
        for own, expected in zip(transform(f)(STATE, TOTAL, xs), want, strict=True):
            assert_allclose(own, expected, rtol=1e-14, atol=1e-14)


def test_gradient_is_bitwise_that_of_the_plain_scan() -> None:
    def final(x: Any, policy: Any = None) -> Any:
        return np.sum(lax.scan(lambda c, _: (np.sin(c) * 1.01, None), x, None, 40,
                               checkpoint=policy)[0])  # fmt: skip

    x = RNG.normal(size=300)
    want = ft.jit(ft.grad(final))(x)
    for n in (1, 3, 7, 40, 100):
        assert_array_equal(ft.jit(ft.grad(lambda x, n=n: final(x, BINOMIAL(n))))(x), want)


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 2, 9, 30])
def test_gradients_of_while_loop_are_those_without(count: int, n: int) -> None:
    x = np.array([0.4, -0.7, 1.1])
    want = ft.grad(looped)(x, count)
    f = lambda x, count: looped(x, count, BINOMIAL(n))  # noqa: E731  # one line
    assert_allclose(ft.grad(f)(x, count), want, rtol=1e-14)
    assert_allclose(ft.jit(ft.grad(f))(x, count), want, rtol=1e-14)


@pytest.mark.parametrize(
    "transform",
    [
        ft.hessian,
        lambda f: ft.jit(ft.hessian(f)),
        lambda f: ft.jacrev(ft.jacrev(f)),
        lambda f: ft.jit(ft.jacrev(ft.jacrev(f))),
        lambda f: ft.jacfwd(ft.jacfwd(f)),
        lambda f: ft.jacrev(ft.jacfwd(f)),
        lambda f: lambda x: ft.jvp(f, (x,), (np.cos(x),))[1],
    ],
)
def test_second_order_and_forward_mode(transform: Any) -> None:
    x = np.array([0.4, -0.7, 1.1])
    own = transform(lambda x: looped(x, 9, BINOMIAL(3)))(x)
    assert_allclose(own, transform(lambda x: looped(x, 9))(x), rtol=1e-12)
    xs = RNG.normal(size=(7, 2))

    own = transform(lambda s: scanned(s, TOTAL, xs, BINOMIAL(2), True))(STATE)
    assert_allclose(own, transform(lambda s: scanned(s, TOTAL, xs, None, True))(STATE), rtol=1e-12)


def test_check_grads() -> None:
    xs = RNG.normal(size=(5, 2))
    ft.check_grads(lambda *a: scanned(*a, policy=BINOMIAL(2)), (STATE, TOTAL, xs), order=2)
    ft.check_grads(lambda x: looped(x, 6, BINOMIAL(2)), (np.array([0.4, -0.7, 1.1]),), order=2)


@pytest.mark.parametrize("outer", [lambda f: f, ft.jit])
def test_batches_whose_elements_run_differently_long(outer: Any) -> None:
    xs, counts = RNG.normal(size=(4, 3)), np.array([3, 0, 7, 12])
    f = lambda x, n: looped(x, n, BINOMIAL(3))  # noqa: E731  # one line
    want = np.stack([ft.grad(looped)(x, n) for x, n in zip(xs, counts, strict=True)])
    assert_allclose(outer(ft.vmap(ft.grad(f)))(xs, counts), want, rtol=1e-12)
    assert_allclose(outer(ft.grad(lambda xs: np.sum(ft.vmap(f)(xs, counts))))(xs), want, rtol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 6])
@pytest.mark.parametrize("n", [5, 6, 7])
def test_loops_that_fit_run_no_iteration_again(count: int, n: int) -> None:
    runs: list[int] = []

    def seen(x: Any) -> Any:
        runs.append(1)
        return np.asarray(x)

    @ft.custom_jvp
    def counted(x: Any) -> Any:
        return ft.pure_callback(seen, ft.ShapeDtypeStruct((), np.float64), x)

    counted.defjvp(lambda primals, tangents: (counted(*primals), tangents[0]))

    def repeated(x: Any) -> Any:
        return lax.while_loop(
            lambda s: s[0] < count, lambda s: (s[0] + 1, np.sin(counted(s[1])) * 1.1), (0, x),
            checkpoint=BINOMIAL(n),
        )[1]  # fmt: skip

    def scanned(x: Any) -> Any:
        return lax.fori_loop(
            0, count, lambda i, c: np.sin(counted(c)) * 1.1, x, checkpoint=BINOMIAL(n)
        )

    def unrolled(x: Any) -> Any:
        for _ in range(count):
            x = np.sin(x) * 1.1
        return x

    expected = ft.grad(unrolled)(0.3)
    for f in (scanned, repeated):
        _, pullback = ft.vjp(f, 0.3)
        forward = len(runs)
        assert_allclose(pullback(1.0)[0], expected, rtol=1e-14)
        assert (len(runs) == forward) == (count <= n)
        runs.clear()


def test_policy_of_a_function_with_several_loops() -> None:
    def f(x: Any) -> Any:
        y = lax.fori_loop(0, 10, lambda i, y: np.sin(y) + i * 0.1, x * 2.0)
        y = ft.jit(lambda y: lax.scan(lambda c, _: (np.cos(c), c), y, None, 6)[1])(y)
        return np.sum(np.exp(y))

    x = np.array([0.3, 0.4])
    saving = ft.checkpoint(f, policy=BINOMIAL(3))
    assert_allclose(saving(x), f(x))
    assert_allclose(ft.grad(saving)(x), ft.grad(f)(x), rtol=1e-14)
    kept = ft.residuals(saving, x)
    assert kept.size_bytes < ft.residuals(f, x).size_bytes


def test_carried_integers_complex_values_and_single_precision() -> None:
    def f(x: Any, policy: Any = None) -> Any:
        def body(c: Any, _: None) -> Any:
            k, z, s = c
            return (k + 1, z * (0.9 + 0.1j * k) + s, (s * 0.5).astype(np.float32)), None

        start = (np.int32(0), x * (1 + 2j), np.full(2, 0.5, np.float32))
        _, z, s = lax.scan(body, start, None, 6, checkpoint=policy)[0]
        return np.sum(np.abs(z) ** 2) + np.sum(s)

    x = np.array([0.4, 0.9])
    assert_allclose(ft.grad(lambda x: f(x, BINOMIAL(2)))(x), ft.grad(f)(x), rtol=1e-14)
    y = np.float32([0.4, 0.9])
    g = ft.jit(ft.grad(lambda y: np.sum(lax.fori_loop(0, 5, lambda i, c: np.sin(c), y,
                                                      checkpoint=BINOMIAL(2)))))(y)  # fmt: skip
    assert g.dtype == np.float32


# work and memory --------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "n"), [(1, 1), (10, 3), (10, 10), (12, 1), (30, 4), (57, 5)])
def test_recomputation_is_the_minimum(length: int, n: int) -> None:
    runs: list[int] = []

    def seen(x: Any) -> Any:
        runs.append(1)
        return np.asarray(x)

    @ft.custom_jvp
    def counted(x: Any) -> Any:
        return ft.pure_callback(seen, ft.ShapeDtypeStruct((), np.float64), x)

    counted.defjvp(lambda primals, tangents: (counted(*primals), tangents[0]))

    def f(x: Any) -> Any:
        return lax.fori_loop(0, length, lambda i, c: np.sin(counted(c)), x, checkpoint=BINOMIAL(n))

    _, pullback = ft.vjp(f, 0.7)
    assert len(runs) == length
    pullback(1.0)
    # each step once more for its own reversal; the first sweep was that of the forward pass
    again = forward_steps(length, n) - (length - 1)
    assert len(runs) == (length + again + length if n < length else length)


def test_memory_between_the_passes_is_that_of_the_kept_states() -> None:
    size, length, n = 20_000, 200, 6
    x = np.linspace(0.0, 1.0, size)

    def chain(x: Any, policy: Any) -> Any:
        return np.sum(lax.scan(lambda c, _: (np.sin(c) * np.exp(-c), None), x, None, length,
                               checkpoint=policy)[0])  # fmt: skip

    def held_bytes(policy: Any) -> int:
        f = ft.jit(lambda x: chain(x, policy))
        ft.vjp(f, x)
        tracemalloc.start()
        try:
            _, pullback = ft.vjp(f, x)
            held = tracemalloc.get_traced_memory()[0]
            del pullback
            return held
        finally:
            tracemalloc.stop()

    assert held_bytes(None) > length * 8 * size
    assert held_bytes(BINOMIAL(n)) < (n + 3) * 8 * size
    plain = ft.residuals(lambda x: chain(x, None), x)
    saving = ft.residuals(lambda x: chain(x, BINOMIAL(n)), x)
    assert plain.size_bytes >= length * 8 * size
    assert saving.size_bytes <= (n + 2) * 8 * size


# errors -----------------------------------------------------------------------------------------


def test_bad_policies() -> None:
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        BINOMIAL(0)
    with pytest.raises(TypeError):
        BINOMIAL(2.5)  # type: ignore[arg-type]  # what is tested
    policies = ft.checkpoint_policies
    with pytest.raises(TypeError, match=r"scan: checkpoint must be None or .*binomial\(n\)"):
        lax.scan(step, (STATE, TOTAL), np.ones((2, 2)), checkpoint=policies.dots_saveable)  # type: ignore[arg-type]  # what is tested
    both = policies.save_from_both_policies(policies.nothing_saveable, BINOMIAL(2))
    with pytest.raises(TypeError, match="does not combine with other policies"):
        ft.grad(ft.checkpoint(lambda x: np.sin(np.sin(x)), policy=both))(1.0)


# residuals --------------------------------------------------------------------------------------


def test_residuals_name_arguments_operations_and_lines() -> None:
    def f(w: Any, x: Any) -> Any:
        return np.sum(np.tanh(w @ np.sin(x)))

    w, x = np.ones((3, 4)), np.ones(4)
    found = ft.residuals(f, w, x)
    assert {entry.origin for entry in found.entries} >= {"argument args[0]", "argument args[1]"}
    computed = [entry for entry in found.entries if entry.is_computed]
    assert all("test_binomial_checkpoint.py" in str(entry) for entry in computed)
    assert found.size_bytes == sum(8 * entry.aval.size for entry in computed) > 0
    assert str(found).startswith(f"residuals of f: {found.size_bytes} bytes")
    assert ft.residuals(ft.checkpoint(f), w, x).size_bytes == 0
    structs = ft.ShapeDtypeStruct((3, 4), float), ft.ShapeDtypeStruct((4,), float)
    assert ft.residuals(f, *structs).size_bytes == found.size_bytes


def test_residuals_of_a_while_loop_are_tapes() -> None:
    x = np.array([0.4, -0.7, 1.1])
    assert ft.residuals(lambda x: looped(x, 5), x).has_tapes
    saving = ft.residuals(lambda x: looped(x, 5, BINOMIAL(3)), x)
    assert not saving.has_tapes
