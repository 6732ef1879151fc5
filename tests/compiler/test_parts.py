"""Arrays of many small parts: updates one by one, and sums of parts, as gradients have them."""

import warnings
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.compiler import bodies
from functrans.compiler.inspect import plan
from functrans.compiler.parts import with_parts_in_place
from functrans.core.jaxpr import Jaxpr
from functrans.passes.evaluate import evaluate
from functrans.passes.simplify import simplify
from functrans.primitives.slicing import BasicIndex, embed, slice_update

PARTS: dict[str, Any] = {
    "elements": lambda i, n: (..., i % n),
    "elements_twice": lambda i, n: (..., i % (n // 2)),
    "ranges": lambda i, n: slice(i % (n - 3), i % (n - 3) + 3),
    "steps": lambda i, n: slice(i % 5, None, 7),
    "backwards": lambda i, n: slice(i % n, None, -9),
    "last": lambda i, n: (Ellipsis, -1 - i % n),
}
DTYPES = ("float64", "float32", "complex128", "int64", "float16", "bool")


def embedded(x: Any, where: Any, shape: Any) -> Any:
    """Zeros but for a part."""
    return embed(x, BasicIndex(where if type(where) is tuple else (where,)), shape)


def _staged(f: Any, *args: Any) -> Jaxpr:
    return simplify(ft.make_jaxpr(f)(*args))


def _same_bits(a: Any, b: Any) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind in "fc":
        np.testing.assert_array_equal(np.signbit(a.real), np.signbit(b.real))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("shape", [(40,), (3, 40), (40, 40)])
def test_sums_of_parts_have_the_same_bits(shape: Any, part: str, dtype: str) -> None:
    n = shape[-1]
    rng = np.random.default_rng(0)
    x = (rng.normal(size=shape) * 3).astype(dtype)
    x[..., :2] = x[..., 5] = -0.0

    def f(x: Any) -> Any:
        total = embedded(x[..., 0], (..., 0), shape) if part == "last" else x
        for i in range(20):
            where = PARTS[part](i, n)
            total = total + embedded(x[where], where, shape)
            if i == 11:
                total = total + x
            if i == 15:
                total = slice_update(total, -0.0 * x[..., 5], BasicIndex((..., 1)))
        return total, x

    jaxpr = _staged(f, x)
    written = with_parts_in_place(jaxpr)
    for a, b in zip(evaluate(written, (x,)), evaluate(jaxpr, (x,)), strict=True):
        _same_bits(a, b)


@pytest.mark.parametrize("part", PARTS)
def test_gradients_of_many_reads(part: str) -> None:
    def f(x: Any) -> Any:
        total = 0.0
        for i in range(3 * 40):
            y = x[PARTS[part](i, 40)]
            total = total + fnp.sum(y * y * (i + 1.0)) + total * 1e-3
        return total

    x = np.linspace(-1.0, 1.0, 40)
    jaxpr = _staged(ft.grad(f), x)
    assert (with_parts_in_place(jaxpr) is jaxpr) == (part == "steps")  # which are no small parts
    np.testing.assert_allclose(ft.jit(ft.grad(f))(x), ft.grad(f)(x), 1e-13)
    batch = np.stack([x, x**2])
    expected = [ft.grad(f)(row) for row in batch]
    np.testing.assert_allclose(ft.jit(ft.vmap(ft.grad(f)))(batch), expected, 1e-13)
    step = 1e-6 * np.cos(np.arange(40.0))
    along = (f(x + step) - f(x - step)) / 2
    np.testing.assert_allclose(ft.grad(f)(x) @ step, along, 1e-6)


def _by_row(x: Any, out: Any, i: int) -> None:
    out[i % 40] = x[i % 7] * i


def _read_before(x: Any, out: Any, i: int) -> None:
    out[(i + 1) % 40] = out[i % 40] + x[3]


def _read_of_whole(x: Any, out: Any, i: int) -> None:
    out[i % 40] = out.sum() * 1e-3 + x[0] if i % 10 == 0 else x[1]


def _of_itself(x: Any, out: Any, i: int) -> None:
    out[i % 30 : i % 30 + 4] = out[i % 30 + 3 : i % 30 + 7] * x[2]


CHAINS = {f.__name__: f for f in (_by_row, _read_before, _read_of_whole, _of_itself)}


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("shape", [(40,), (40, 8)])
@pytest.mark.parametrize("chain", CHAINS)
def test_updates_in_place_leave_what_is_read_later(chain: str, shape: Any, keeps: bool) -> None:
    """Values between updates that are results, or read later, are those of their time."""

    def f(x: Any, start: Any) -> Any:
        out, kept = start * 2.0, []
        for i in range(60):
            CHAINS[chain](x, out, i)
            if keeps and i % 13 == 0:
                kept.append(out.copy())
            if keeps and i % 17 == 0:
                kept.append(out.copy().reshape(-1)[::-1])
        return out, kept, start

    x, start = np.linspace(1.0, 2.0, 40), np.cos(np.arange(np.prod(shape))).reshape(shape)
    before = start.copy()
    with ft.config(native=False):
        expected = ft.jit(f)(x, start)
    got = ft.jit(f)(x, start)
    for a, b in zip(ft.tree.leaves(got), ft.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, 1e-14)
    np.testing.assert_array_equal(start, before)

    def looped(x: Any, start: Any) -> Any:
        return ft.lax.fori_loop(0, 3, lambda i, s: f(x, s)[0] * 0.5, start)

    with warnings.catch_warnings():  # some memory that is given away is read to the end
        warnings.simplefilter("ignore")
        given = ft.jit(looped, donate_argnums=1)(x, start.copy())
    with ft.config(native=False):
        np.testing.assert_allclose(given, ft.jit(looped)(x, start), 1e-13)

    def loss(x: Any) -> Any:
        return sum(fnp.sum(leaf**2) for leaf in ft.tree.leaves(f(x, start)))

    np.testing.assert_allclose(ft.jit(ft.grad(loss))(x), ft.grad(loss)(x), 1e-11)


@pytest.mark.parametrize("kind", ["reads", "updates", "stacks"])
def test_programs_are_planned_few_times(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of plans that are tried does not grow with the program."""
    counts: list[int] = []
    schedule = bodies.schedule

    def counted(*args: Any) -> Any:
        counts[-1] += 1
        return schedule(*args)

    def reads(x: Any) -> Any:
        total = 0.0
        for i in range(len(x)):
            total = total * 0.9 + x[i] * x[(3 * i) % len(x)]
        return total

    def updates(x: Any) -> Any:
        out = x * 0.0
        for i in range(1, len(x)):
            out[i] = x[i] * fnp.sin(x[i - 1]) + out[i - 1]
        return out @ out

    def stacks(x: Any) -> Any:
        total = 0.0
        for i in range(len(x) // 8):
            total = total + fnp.sum(fnp.stack([x[j] * x[i] for j in range(40)]) ** 2)
        return total

    monkeypatch.setattr(bodies, "schedule", counted)
    for n in (64, 256):
        counts.append(0)
        f = {"reads": reads, "updates": updates, "stacks": stacks}[kind]
        plan(_staged(ft.grad(f), np.ones(n)))
    assert counts[1] <= counts[0] + 2
