"""Functions of SciPy in compiled programs: its own loops, to the bit, for all of them."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each, share
from functrans.compiler.inspect import plan
from functrans.core.dispatch import bind
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive
from functrans.passes.simplify import simplify
from functrans.primitives.table import PRIMITIVES
from functrans.scipy import special

LOOPS = {
    p.name: p for p in PRIMITIVES if p.elementwise is not None and isinstance(p.lower, Routine)
}
"""Elementwise primitives whose code is a routine: the functions of SciPy."""

POINTS = [0.0, -0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 7.5, -0.5, -1.0, -2.25, 20.0, 1e-9]
ENDS = [np.nan, 1e-310]
FAR = [np.inf, -np.inf, 1e300, -1e300]
"""For functions of one number; SciPy may not come back from these with several operands."""


def operands(p: Primitive, dtype: str, shapes: str) -> list[Any]:
    """Points of all kinds, for each operand in another order."""
    rng = np.random.default_rng(len(p.name))
    count = len(p.elementwise.partials)  # type: ignore[union-attr]  # one of LOOPS
    found: list[Any] = []
    for k in range(count):
        points = POINTS + ENDS * (dtype[0] == "f") + FAR * (dtype[0] == "f" and count == 1)
        x = np.array(points, complex if dtype[0] == "c" else float)
        if dtype[0] == "c":
            x = x + 1j * rng.permutation(x)
        with np.errstate(all="ignore"):
            x = rng.permutation(np.clip(x, 0, 50) if dtype[0] in "iu" else x).astype(dtype)
        if p.name == "expn" and k == 0:
            x = np.abs(np.trunc(np.nan_to_num(x)))  # SciPy warns of other orders
        if shapes == "broadcast" and count > 1:
            x = x[:6].reshape((-1,) + (1,) * (count - 1 - k))
        elif shapes == "number" and k < count - 1:
            x = x[3]
        elif shapes == "strided":
            x = x[::-1].reshape(-1, 2).T
        found.append(x)
    return found


def kinds(p: Primitive) -> list[str]:
    """Dtypes that a function takes, of one for each of its kinds."""
    taken = []
    for dtype in ("f8", "f4", "f2", "i4", "c16"):
        try:
            p.abstract_eval(*[ft.extend.aval_of(x) for x in operands(p, dtype, "same")])
        except TypeError:
            continue
        taken.append(dtype)
    return taken


CASES = [
    (name, dtype, shapes)
    for name, p in LOOPS.items()
    for dtype in kinds(p)
    for shapes in ("same", "broadcast", "number", "strided")
]


@each(("name", "dtype", "shapes"), share(CASES, 6), by="name")
def test_values_are_the_interpreters(name: str, dtype: str, shapes: str) -> None:
    p = LOOPS[name]
    given = operands(p, dtype, shapes)
    if p.lower.supports is not None and not p.lower.supports(*map(ft.extend.aval_of, given)):  # type: ignore[union-attr]  # a routine
        pytest.fail("SciPy has no loop for it")
    with np.errstate(all="ignore"):
        (expected,) = bind(p, *given)
        found = ft.jit(lambda *xs: bind(p, *xs)[0])(*given)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    zeros = found == 0
    np.testing.assert_array_equal(np.signbit(found.real[zeros]), np.signbit(expected.real[zeros]))


def test_a_program_of_them_has_one_part() -> None:
    def survival(x: Any) -> Any:
        return np.sum(special.gammaincc(2.5, x) * special.jv(0.5, x)) + special.ellipk(0.3)

    jaxpr = simplify(ft.make_jaxpr(survival)(np.ones(3)))
    text = str(plan(jaxpr))
    assert "NumPy" not in text
    x = np.linspace(0.5, 3.0, 7)
    slope = ft.jit(ft.grad(survival))(x)
    np.testing.assert_allclose(slope, ft.grad(survival)(x), rtol=1e-14)


def test_in_a_loop() -> None:
    def sum_of_three(x: Any) -> Any:
        return ft.lax.scan(lambda c, _: (special.gammainc(2.0, c) + 0.5, None), x, None, 50)[0]

    assert ft.jit(sum_of_three)(1.0) == sum_of_three(1.0)
    batch = np.linspace(0.1, 2.0, 5)
    np.testing.assert_array_equal(
        ft.jit(ft.vmap(sum_of_three))(batch), [sum_of_three(x) for x in batch]
    )
