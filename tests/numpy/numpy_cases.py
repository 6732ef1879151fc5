"""What the tests of NumPy-shaped functions share: one check of a function in all ways to run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import functrans as ft

STEP = 1e-6
RTOL = 2e-6
ATOL = 2e-7


class Case:
    """A function of arrays and where to test it.

    Attributes:
      name: for the test's name: NumPy's name, and what is special.
      function: calls plain NumPy.
      args: floating or complex arrays; everything else is closed over.
      is_smooth: whether derivatives are compared with finite differences.
      is_staged: whether it can be traced without values.
      rtol: relative tolerance of derivatives.
      stays_single: single precision stays so, where NumPy's own function widens it.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *args: Any,
        is_smooth: bool = True,
        is_staged: bool = True,
        rtol: float = RTOL,
        stays_single: bool = False,
    ) -> None:
        self.name = name
        self.function = function
        self.args = tuple(np.asarray(arg) for arg in args)
        self.is_smooth = is_smooth
        self.is_staged = is_staged
        self.rtol = rtol
        self.stays_single = stays_single

    def __repr__(self) -> str:
        return self.name


def leaves(value: Any) -> list[Any]:
    return ft.tree.leaves(value)


def assert_same(actual: Any, expected: Any, name: str) -> None:
    """Equal structure, shapes, dtypes; values to rounding."""
    found, wanted = leaves(actual), leaves(expected)
    assert len(found) == len(wanted), name
    for a, e in zip(found, wanted, strict=True):
        assert np.shape(a) == np.shape(e), f"{name}: shape {np.shape(a)} != {np.shape(e)}"
        a, e = np.asarray(a), np.asarray(e)
        assert a.dtype == e.dtype, f"{name}: dtype {a.dtype} != {e.dtype}"
        if e.dtype.kind in "fc":
            eps = np.finfo(e.dtype).eps
            scale = max(1.0, float(np.max(np.abs(np.where(np.isfinite(e), e, 0)), initial=0.0)))
            np.testing.assert_allclose(a, e, rtol=200 * eps, atol=200 * eps * scale, err_msg=name)
        else:
            np.testing.assert_array_equal(a, e, err_msg=name)


def plain(case: Case) -> Any:
    with np.errstate(all="ignore"):
        return case.function(*case.args)


def recorded(case: Case) -> tuple[Any, Any]:
    with np.errstate(all="ignore"):
        return ft.vjp(case.function, *case.args)


def staged(case: Case) -> Any:
    with np.errstate(all="ignore"):
        jaxpr = ft.make_jaxpr(case.function)(*case.args)
        return ft.eval_jaxpr(jaxpr, None, *case.args)


def check_batched(case: Case) -> None:
    """A batch of two different arguments gives both results."""
    other = tuple((x * 0.95).astype(x.dtype) for x in case.args)
    with np.errstate(all="ignore"):
        pairs = [leaves(case.function(*args)) for args in (case.args, other)]
        batch = [np.stack(both) for both in zip(case.args, other, strict=True)]
        outs = leaves(ft.vmap(case.function)(*batch))
    expected = [np.stack(both) for both in zip(*pairs, strict=True)]
    assert_same(outs, expected, f"{case.name} batched")


def check_single_precision(case: Case) -> None:
    """Single-precision arguments: results have NumPy's dtypes, gradients those of the arguments."""
    single = {"f": np.float32, "c": np.complex64}
    args = [x.astype(single.get(x.dtype.kind, x.dtype)) for x in case.args]
    with np.errstate(all="ignore"):
        expected = [np.asarray(x).dtype for x in leaves(case.function(*args))]
        if case.stays_single:
            assert np.dtype(np.float64) in expected, case.name  # or the mark is out of date
            expected = [single.get(dtype.kind, dtype) for dtype in expected]
        out, pullback = ft.vjp(case.function, *args)
        assert [np.asarray(x).dtype for x in leaves(out)] == expected, case.name
        pulled = pullback(  # integers have no cotangent but 0
            ft.tree.map(lambda x: np.full_like(x, x.dtype.kind in "fc"), out)
        )
    assert [p.dtype for p in pulled] == [x.dtype for x in args], case.name


def direction(args: Any) -> list[Any]:
    rng = np.random.default_rng(7)
    result = []
    for x in args:
        t = rng.standard_normal(x.shape)
        if x.dtype.kind == "c":
            t = t + 1j * rng.standard_normal(x.shape)
        result.append(t.astype(x.dtype))
    return result


def differentiable(value: Any) -> list[Any]:
    return [np.asarray(x) for x in leaves(value) if np.asarray(x).dtype.kind in "fc"]


def finite_difference(case: Case, tangents: list[Any]) -> list[Any]:
    def at(h: float) -> list[Any]:
        moved = [x + h * t for x, t in zip(case.args, tangents, strict=True)]
        with np.errstate(all="ignore"):
            return differentiable(case.function(*moved))

    return [(a - b) / (2 * STEP) for a, b in zip(at(STEP), at(-STEP), strict=True)]


def cotangents(out: Any) -> Any:
    """Fixed random cotangents of a result; 0 for integers and Booleans."""
    rng = np.random.default_rng(3)

    def cotangent(x: Any) -> Any:
        x = np.asarray(x)
        if x.dtype.kind not in "fc":
            return np.zeros(x.shape, x.dtype)
        ct = rng.standard_normal(x.shape)
        if x.dtype.kind == "c":
            ct = ct + 1j * rng.standard_normal(x.shape)
        return ct.astype(x.dtype)

    return ft.tree.map(cotangent, out)


def check_second_order(case: Case) -> None:
    """The derivative along a direction, differentiated again: against differences, both ways."""
    tangents = direction(case.args)

    def pushed(*args: Any) -> list[Any]:
        outs = leaves(ft.jvp(case.function, args, tuple(tangents))[1])
        return [t for t in outs if t.dtype.kind in "fc"]

    with np.errstate(all="ignore"):
        cts = cotangents(case.function(*case.args))
        second = leaves(ft.jvp(pushed, case.args, tuple(tangents))[1])
        _, moved = ft.jvp(
            lambda *args: ft.vjp(case.function, *args)[1](cts), case.args, tuple(tangents)
        )
    expected = finite_difference(Case(case.name, pushed, *case.args), tangents)
    for t, e in zip(second, expected, strict=True):
        scale = max(1.0, float(np.max(np.abs(e), initial=0.0)))
        tolerance = max(1e-5, case.rtol)
        np.testing.assert_allclose(
            t, e, rtol=tolerance, atol=tolerance * scale, err_msg=f"{case.name}: second order"
        )
    kept = [c for c in leaves(cts) if np.asarray(c).dtype.kind in "fc"]
    left = sum(np.sum(np.asarray(c) * t) for c, t in zip(kept, second, strict=True))
    right = sum(np.sum(np.asarray(p) * t) for p, t in zip(moved, tangents, strict=True))
    np.testing.assert_allclose(
        np.real(left),
        np.real(right),
        rtol=1e-8,
        atol=1e-8,
        err_msg=f"{case.name}: forward over reverse",
    )


def check_compiled(case: Case) -> None:
    """Compiled, a function gives what it gives in plain NumPy."""
    with np.errstate(all="ignore"):
        assert_same(ft.jit(case.function)(*case.args), plain(case), f"{case.name} compiled")


def check_derivatives(case: Case) -> None:
    """Forward mode against finite differences, reverse mode against forward mode."""
    tangents = direction(case.args)
    with np.errstate(all="ignore"):
        _, pushed = ft.jvp(case.function, case.args, tuple(tangents))
    pushed = [t for t in leaves(pushed) if t.dtype.kind in "fc"]
    expected = finite_difference(case, tangents)
    assert len(pushed) == len(expected), case.name
    for t, e in zip(pushed, expected, strict=True):
        scale = max(1.0, float(np.max(np.abs(e), initial=0.0)))
        np.testing.assert_allclose(
            t, e, rtol=case.rtol, atol=max(ATOL, case.rtol) * scale, err_msg=f"{case.name}: jvp"
        )
    out, pullback = recorded(case)
    cts = cotangents(out)
    pulled = pullback(cts)
    left = sum(
        np.sum(np.asarray(c) * t)
        for c, t in zip(
            [c for c in leaves(cts) if np.asarray(c).dtype.kind in "fc"], pushed, strict=True
        )
    )
    right = sum(np.sum(np.asarray(p) * t) for p, t in zip(pulled, tangents, strict=True))
    for p, x in zip(pulled, case.args, strict=True):
        assert p.shape == x.shape
        assert p.dtype == x.dtype
    # A real result of complex arguments pairs by real parts.
    np.testing.assert_allclose(
        np.real(left), np.real(right), rtol=1e-9, atol=1e-9, err_msg=f"{case.name}: vjp"
    )


def check(case: Case) -> None:
    """Values recorded, staged and batched, dtypes, derivatives in both modes."""
    expected = plain(case)
    assert_same(recorded(case)[0], expected, f"{case.name} recorded")
    if case.is_staged:
        assert_same(staged(case), expected, f"{case.name} staged")
        check_batched(case)
        check_compiled(case)
    check_single_precision(case)
    if case.is_smooth:
        check_derivatives(case)
        check_second_order(case)
