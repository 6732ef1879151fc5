"""Pullbacks, pushforwards and transposes as values: pytrees that pickle and that programs carry."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from cases import each
from functions import CASES
from functrans import lax
from functrans.errors import UnsupportedOperationError

X = np.array([0.5, 1.5, 2.5])


def _mixed(x: Any, p: Any) -> Any:
    """Several leaves, integers, a constant, a number of Python, a narrower dtype."""
    return {
        "a": np.sin(x) * p["s"],
        "b": np.sum(x**2) * p["w"].astype(np.float32),
        "n": np.argmax(x),
        "c": np.ones(2),
    }


MIXED = (X, {"s": 2.0, "w": np.float64(3.0), "k": np.arange(2)})


def seeds(tree: Any, rng: np.random.Generator) -> Any:
    """Tangents or cotangents like a tree."""

    def like(leaf: Any) -> Any:
        array = np.asarray(leaf)
        if array.dtype.kind not in "fc":
            return np.zeros(array.shape, ft.float0)
        return rng.normal(size=array.shape).astype(array.dtype)

    return ft.tree.map(like, tree)


FORMS: dict[str, Callable[[Any], Any]] = {
    "flattened": lambda f: ft.tree.unflatten(ft.tree.structure(f), ft.tree.leaves(f)),
    "pickled": lambda f: pickle.loads(pickle.dumps(f)),
    "copied": copy.deepcopy,
    "through jit": ft.jit(lambda f: f),
    "called in jit": lambda f: lambda *args: ft.jit(lambda g, *own: g(*own))(f, *args),
}


def same(found: Any, expected: Any) -> None:
    assert ft.tree.structure(found) == ft.tree.structure(expected)
    for own, other in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        assert (own.shape, own.dtype) == (other.shape, other.dtype)
        if own.dtype != ft.float0:
            assert_allclose(own, other, rtol=1e-6 if own.dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["vjp", "linearize", "vjp in jit", "linearize in jit"])
def test_every_form_computes_the_same(kind: str, form: str, rng: np.random.Generator) -> None:
    transform = ft.vjp if kind.startswith("vjp") else ft.linearize
    out, expected = transform(_mixed, *MIXED)
    given = (seeds(out, rng),) if transform is ft.vjp else seeds(MIXED, rng)
    function = expected
    if kind.endswith("jit"):
        _, function = ft.jit(lambda *args: transform(_mixed, *args))(*MIXED)
    same(FORMS[form](function)(*given), expected(*given))


@each("case", CASES, ids=lambda case: case.name)
def test_pullbacks_of_all_cases_go_through_programs(case: Any) -> None:
    point = np.asarray(case.point)
    _, pullback = ft.vjp(case.fun, point)
    _, other = ft.vjp(case.fun, point * (1 + 1e-9))
    expected = pullback(1.0)[0]
    assert_allclose(pickle.loads(pickle.dumps(pullback))(1.0)[0], expected, rtol=1e-12, atol=1e-14)
    assert_allclose(ft.jit(lambda f: f(1.0))(pullback)[0], expected, rtol=1e-9, atol=1e-12)
    assert ft.tree.structure(pullback) == ft.tree.structure(other)


def test_leaves_are_what_is_read_and_no_more() -> None:
    _, pullback = ft.vjp(lambda x, y: np.sin(x) * 2.0 + y, X, X)
    (leaf,) = ft.tree.leaves(pullback)
    assert_allclose(leaf, X)
    _, pushforward = ft.linearize(lambda x: x * 3.0 + np.ones(3), X)
    assert ft.tree.leaves(pushforward) == []


def test_they_compare_hash_and_print() -> None:
    _, first = ft.vjp(np.sin, X)
    _, second = ft.vjp(np.sin, X.copy())
    _, third = ft.vjp(np.sin, X + 1)
    assert first == second
    assert hash(first) == hash(second)
    assert first != third
    assert first != ft.linearize(np.sin, X)[1]
    assert first != 1
    assert repr(first) == "<pullback of sin: f64[3] -> f64[3]>"


def test_one_program_serves_pullbacks_from_all_points() -> None:
    use = ft.jit(lambda f, ct: f(ct)[0])
    for x in (X, X + 1.0, X * 2.0):
        assert_allclose(use(ft.vjp(np.sin, x)[1], X), np.cos(x) * X)
    assert len(use._programs) == 1


def test_a_loop_carries_a_pullback() -> None:
    def step(f: Any, _: None) -> Any:
        (g,) = f(np.ones(3))
        return ft.vjp(lambda z: np.sin(z) * z, g)[1], g

    def rounds(x: Any) -> Any:
        return lax.scan(step, ft.vjp(lambda z: np.sin(z) * z, x)[1], None, length=3)[1]

    x, expected = X, []
    for _ in range(3):
        x = np.cos(x) * x + np.sin(x)
        expected.append(x)
    assert_allclose(rounds(X), expected)
    assert_allclose(ft.jit(rounds)(X), expected)
    ft.check_grads(lambda x: np.sum(rounds(x)), (X,), order=2)


def test_derivatives_go_through_what_a_pullback_keeps() -> None:
    make = ft.jit(lambda x: ft.vjp(np.sin, x)[1])
    assert_allclose(ft.grad(lambda x: np.sum(make(x)(np.ones(3))[0]))(X), -np.sin(X))
    stacked = ft.vmap(lambda x: ft.vjp(np.sin, x)[1])(X)
    assert_allclose(ft.vmap(lambda f, ct: f(ct)[0])(stacked, X), np.cos(X) * X)


def test_custom_rules_and_captured_arrays() -> None:
    @ft.custom_vjp
    def twice(x: Any) -> Any:
        return np.sin(x)

    twice.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (2 * ct * np.cos(x),))
    matrix = np.eye(3)
    _, pullback = ft.vjp(lambda x: matrix @ twice(x), X)
    through = ft.tree.unflatten(ft.tree.structure(pullback), ft.tree.leaves(pullback))
    matrix[:] = 0.0
    assert_allclose(pullback(X)[0], 2 * np.cos(X) * X)
    assert_allclose(through(X)[0], 2 * np.cos(X) * X)


def test_transposes_travel() -> None:
    transposed = ft.linear_transpose(lambda v: X * v * 2, X)
    for form in FORMS.values():
        assert_allclose(form(transposed)(X)[0], 2 * X * X)


def _doubled(x: Any) -> Any:
    return lax.while_loop(lambda c: np.sum(c) < 50.0, lambda c: c * x + c, x)


def test_the_record_of_a_while_loop_pickles_and_is_refused_by_programs() -> None:
    _, pullback = ft.vjp(_doubled, X)
    assert_allclose(pickle.loads(pickle.dumps(pullback))(X)[0], pullback(X)[0])
    for refused in (
        lambda: ft.jit(lambda f: f(X))(pullback),
        lambda: ft.jit(lambda x: ft.vjp(_doubled, x)[1])(X),
    ):
        with pytest.raises(UnsupportedOperationError, match="while_loop keeps for its derivative"):
            refused()


def test_bad_cotangents_are_refused_in_every_form() -> None:
    _, pullback = ft.vjp(np.sin, X)
    for form in (pullback, FORMS["pickled"](pullback)):
        with pytest.raises(ft.errors.ShapeError, match=r"pullback of sin: ct has shape \(2,\)"):
            form(np.ones(2))
        with pytest.raises(ft.errors.TreeMismatchError, match="the cotangent"):
            form((X, X))


def test_executables_travel() -> None:
    compiled = ft.jit(np.sin).lower(X).compile()
    again = pickle.loads(pickle.dumps(compiled))
    assert_allclose(again(X), np.sin(X))
    assert again.is_native == compiled.is_native
