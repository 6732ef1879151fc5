"""Collectives under ``vmap(axis_name=...)`` against the same formulas on the whole batch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from functrans import lax
from functrans.errors import UnsupportedOperationError

XS = np.array([0.1, -0.2, 0.3, 0.5])
GRID = np.cos(np.arange(12.0)).reshape(4, 3)


@pytest.fixture(autouse=True)
def checked_programs() -> Any:
    with ft.config(check_jaxprs=True):
        yield


def softmax(x: Any) -> Any:
    return np.exp(x) / lax.psum(np.exp(x), "i")


def centred(x: Any) -> Any:
    return np.sin(x) * lax.pmean(x * x, "i")


def gathered(x: Any) -> Any:
    return np.sum(np.sin(lax.all_gather(x, "i")) * x)


def numbered(x: Any) -> Any:
    return x * lax.axis_index("i") + lax.psum(lax.axis_index("i"), "i") + lax.axis_size("i")


def spread_out(x: Any) -> Any:
    return x * lax.pmax(x, "i") - lax.pmin(x, "i") * x


CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "psum": (softmax, lambda x: np.exp(x) / np.sum(np.exp(x))),
    "pmean": (centred, lambda x: np.sin(x) * np.mean(x * x)),
    "all_gather": (gathered, lambda x: np.sum(np.sin(x)) * x),
    "axis_index": (numbered, lambda x: x * np.arange(4) + 6 + 4),
    "extrema": (spread_out, lambda x: x * np.max(x) - np.min(x) * x),
}
EACH = pytest.mark.parametrize(("local", "whole"), CASES.values(), ids=CASES.keys())


@EACH
def test_value_and_derivatives_over_vmap(local: Any, whole: Any) -> None:
    mapped = ft.vmap(local, axis_name="i")
    weights = np.array([1.0, -2.0, 3.0, 0.5])
    for over in (mapped, ft.jit(mapped), ft.vmap(ft.jit(local), axis_name="i")):
        assert_allclose(over(XS), whole(XS))
        assert_allclose(ft.jacrev(over)(XS), ft.jacrev(whole)(XS), atol=1e-15)
        assert_allclose(ft.jacfwd(over)(XS), ft.jacrev(whole)(XS), atol=1e-15)
    assert_allclose(
        ft.hessian(lambda x: np.sum(weights * np.sin(mapped(x))))(XS),
        ft.hessian(lambda x: np.sum(weights * np.sin(whole(x))))(XS),
        atol=1e-14,
    )


@EACH
def test_derivative_inside_vmap_collects_all_cotangents(local: Any, whole: Any) -> None:
    """Each element pulls the cotangent 1 back, so that the sum of all results is differentiated."""
    want = ft.grad(lambda x: np.sum(whole(x)))(XS)
    for inside in (ft.grad(local), ft.jit(ft.grad(local)), ft.grad(ft.jit(local))):
        assert_allclose(ft.vmap(inside, axis_name="i")(XS), want)
        assert_allclose(ft.jit(ft.vmap(inside, axis_name="i"))(XS), want)


@EACH
def test_forward_mode_inside_vmap(local: Any, whole: Any) -> None:
    pushed = ft.vmap(lambda x, t: ft.jvp(local, (x,), (t,))[1], axis_name="i")(XS, np.cos(XS))
    assert_allclose(pushed, ft.jvp(whole, (XS,), (np.cos(XS),))[1])


@EACH
def test_other_batch_axes_pass_through(local: Any, whole: Any) -> None:
    want = np.stack([whole(column) for column in GRID.T], 1)
    outer = ft.vmap(ft.vmap(local, axis_name="i"), in_axes=1, out_axes=1, axis_name="j")
    inner = ft.vmap(ft.vmap(local, axis_name="j"), axis_name="i")
    assert_allclose(outer(GRID), want)
    assert_allclose(inner(GRID), want)
    assert_allclose(ft.vmap(lambda x: local(x), axis_name="i")(GRID[:, 0]), want[:, 0])


def test_several_axes_at_once() -> None:
    def f(x: Any) -> Any:
        both = ("i", "j")
        return lax.psum(np.sin(x), both) * lax.axis_index(both) / lax.axis_size(both)

    result = ft.vmap(ft.vmap(f, axis_name="j"), axis_name="i")(GRID)
    assert_allclose(result, np.sum(np.sin(GRID)) * np.arange(12).reshape(4, 3) / 12)


def test_pytrees_constants_and_dtypes() -> None:
    def f(x: Any) -> Any:
        return lax.psum({"x": x, "one": 1, "flag": x > 0}, "i")

    out = ft.vmap(f, axis_name="i")(XS.astype(np.float32))
    assert out["x"].dtype == np.float32
    assert out["one"].tolist() == [4] * 4
    assert out["flag"].tolist() == [3] * 4
    assert ft.vmap(lambda x: lax.psum(2.0, "i"), axis_name="i")(XS).tolist() == [8.0] * 4
    assert ft.vmap(lambda x: lax.pmax(2.0, "i"), axis_name="i")(XS).tolist() == [2.0] * 4
    assert ft.vmap(softmax, axis_name="i")(np.zeros(0)).shape == (0,)


def test_all_gather_along_axes() -> None:
    xs = GRID[:, None, :]
    for axis in (0, 1, 2, -1):
        out = ft.vmap(lambda x: lax.all_gather(x, "i", axis=axis), axis_name="i")(xs)  # noqa: B023  # called here
        want = np.moveaxis(xs, 0, axis if axis >= 0 else 2)
        assert_allclose(out, np.broadcast_to(want, (4, *want.shape)))
    tiled = ft.vmap(lambda x: lax.all_gather(x, "i", axis=1, tiled=True), axis_name="i")(xs)
    assert_allclose(tiled[0], np.concatenate(list(xs), 1))
    constant = ft.vmap(lambda x: lax.all_gather(np.ones(2), "i") * x, axis_name="i")(XS)
    assert constant.shape == (4, 4, 2)
    with pytest.raises(UnsupportedOperationError, match="one axis"):
        ft.vmap(lambda x: lax.all_gather(x, ("i",)), axis_name="i")(XS)


def test_ties_share_the_derivative() -> None:
    over = ft.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")
    assert_allclose(ft.grad(lambda x: over(x)[0])(np.array([1.0, 2.0, 2.0])), [0.0, 0.5, 0.5])


def test_collectives_in_loops_and_custom_rules() -> None:
    def local(x: Any) -> Any:
        def step(c: Any, _: None) -> Any:
            return c * 0.5 + lax.psum(np.sin(c), "i") + lax.axis_index("i"), None

        return lax.scan(step, x, None, 3)[0]

    def whole(x: Any) -> Any:
        for _ in range(3):
            x = x * 0.5 + np.sum(np.sin(x)) + np.arange(4)
        return x

    for f in (local, ft.jit(local), ft.checkpoint(local)):
        assert_allclose(ft.vmap(f, axis_name="i")(XS), whole(XS))
        assert_allclose(
            ft.vmap(ft.grad(f), axis_name="i")(XS), ft.grad(lambda x: np.sum(whole(x)))(XS)
        )
        assert_allclose(ft.jacrev(ft.vmap(f, axis_name="i"))(XS), ft.jacrev(whole)(XS))

    @ft.custom_jvp
    def total(x: Any) -> Any:
        return lax.psum(x, "i")

    total.defjvp(lambda p, t: (total(*p), 10.0 * lax.psum(t[0], "i")))
    over = ft.vmap(total, axis_name="i")
    assert_allclose(ft.jvp(over, (XS,), (XS,))[1], np.full(4, 10 * XS.sum()))
    assert_allclose(ft.grad(lambda x: over(x)[0])(XS), np.full(4, 10.0))


def test_program_shows_the_collective() -> None:
    inner = ft.vmap(lambda x: ft.make_jaxpr(softmax)(x) and x, axis_name="i")
    seen: list[str] = []

    def f(x: Any) -> Any:
        seen.append(str(ft.make_jaxpr(softmax)(x)))
        return x

    ft.vmap(f, axis_name="i")(XS)
    assert "psum[axis_name='i']" in seen[0]
    assert inner(XS).shape == (4,)


@pytest.mark.parametrize(
    "call",
    [
        lambda: lax.psum(1.0, "i"),
        lambda: lax.axis_index("i"),
        lambda: lax.axis_size("i"),
        lambda: lax.all_gather(1.0, "i"),
        lambda: ft.vmap(lambda x: lax.pmax(x, "i"), axis_name="k")(XS),
        lambda: ft.vmap(lambda x: lax.pmean(x, ("k", "i")), axis_name="k")(XS),
    ],
)
def test_unknown_axis_raises(call: Any) -> None:
    with pytest.raises(NameError, match=r"axis_name='i'.*test_collectives\.py"):
        call()
