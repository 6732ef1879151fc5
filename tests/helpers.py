"""Comparisons that the test files share."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import functrans as ft
from functrans.testing import TOLERANCES
from samples import Row, Sample

# What rounding may do to a result, by dtype: relative and absolute.
ROUNDING = {
    "float64": 1e-11,
    "complex128": 1e-11,
    "float32": 2e-5,
    "complex64": 2e-5,
}


def rounding_of(*values: Any) -> float:
    """The loosest tolerance for rounding errors among the dtypes of values; 0 for integers."""
    return max((ROUNDING.get(np.asarray(value).dtype.name, 0.0) for value in values), default=0.0)


def evaluated(row: Row, sample: Sample) -> tuple[Any, ...]:
    """Results of ``impl``; NumPy may warn where the primitive is not smooth."""
    with np.errstate(all=None if sample.is_smooth else "ignore"):
        outs: tuple[Any, ...] = row.primitive.impl(*sample.operands, **sample.params)
    return outs


def assert_close(found: Any, expected: Any, what: str = "", rtol: float | None = None) -> None:
    """Compare two trees of arrays: structure, shapes, and values up to rounding."""
    found_leaves, found_def = ft.tree.flatten(found)
    expected_leaves, expected_def = ft.tree.flatten(expected)
    assert found_def == expected_def, f"{what}: {found_def} instead of {expected_def}"
    for i, (one, other) in enumerate(zip(found_leaves, expected_leaves, strict=True)):
        assert np.shape(one) == np.shape(other), (
            f"{what}: result {i} has shape {np.shape(one)} instead of {np.shape(other)}"
        )
        tolerance = rounding_of(one, other) if rtol is None else rtol
        np.testing.assert_allclose(
            one, other, rtol=tolerance, atol=tolerance, err_msg=f"{what}: result {i}"
        )


def derivative_tolerance(values: Sequence[Any], scale: float = 1.0) -> float:
    """Tolerance against difference quotients, by the coarsest dtype."""
    names = [np.asarray(value).dtype.name for value in values]
    return scale * max(TOLERANCES[name][1] for name in names if name in TOLERANCES)


def staged(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function run through its program: traced with shapes only, checked, evaluated."""

    def run(*args: Any) -> Any:
        jaxpr, shape = ft.make_jaxpr(fun, return_shape=True)(*args)
        ft.check_jaxpr(jaxpr)
        outs = ft.eval_jaxpr(jaxpr, None, *ft.tree.leaves(args))
        return ft.tree.unflatten(ft.tree.structure(shape), outs)

    return run


def fourth_order_differences(f: Any, x: np.ndarray, size: float = 1e-3) -> np.ndarray:
    """The Jacobian of a function of a vector by central differences of fourth order."""
    columns = []
    for step in size * np.eye(len(x)):
        near = (np.asarray(f(x + step)) - np.asarray(f(x - step))) / (2 * size)
        far = (np.asarray(f(x + 2 * step)) - np.asarray(f(x - 2 * step))) / (4 * size)
        columns.append((4 * near - far) / 3)
    return np.stack(columns, -1)


def check_scalar_program(f: Callable[[Any], Any], x: np.ndarray, is_short: bool = False) -> None:
    """Value and slope of a function that gives a number: in both modes, compiled, batched.

    Args:
      f: the function.
      x: vector.
      is_short: whether slopes of compiled and batched programs are left out.
    """
    expected = f(x)
    slope = np.array([(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(len(x))])
    near = functools.partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-8)
    value, tangent = ft.jvp(f, (x,), (np.ones(len(x)),))
    near(value, expected)
    near(tangent, slope.sum(), atol=1e-7)
    near(ft.grad(f)(x), slope)
    near(ft.jit(f)(x), expected)
    if is_short:
        return
    near(ft.jit(ft.grad(f))(x), slope)
    near(ft.vmap(ft.grad(f))(x[None])[0], slope)
