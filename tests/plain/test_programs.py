"""The programs of ``programs/``: differentiated and compiled as they stand, against differences.

Ordinary programs as scientists and engineers write them, of no library but NumPy, SciPy and
Python's own. Each has ``main``, the figure of merit at ``POINT``; ``outputs``, several results of
the same model; and says by ``DECIDES`` whether its control flow depends on what is computed.
"""

import importlib
import pkgutil
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each, share
from functrans.errors import FunctransError
from plain import programs

NAMES = sorted(module.name for module in pkgutil.iter_modules(programs.__path__))
STEPS = (1e-4, 4e-5)
"""Of differences, relative to the coordinate."""


def _program(name: str) -> ModuleType:
    return importlib.import_module(f"plain.programs.{name}")


def _differences(function: Any, point: Any, step: float) -> np.ndarray:
    """Central differences in every coordinate, times the coordinate."""
    at = np.atleast_1d(np.asarray(point, float))
    rows = []
    for i in range(at.size):
        ends = []
        for sign in (1, -1):
            moved = at.copy()
            moved[i] += sign * step * (abs(at[i]) or 1.0)
            ends.append(np.asarray(function(moved if np.ndim(point) else float(moved[0])), float))
        rows.append((ends[0] - ends[1]) / (2 * step))
    return np.stack(rows)


def test_there_are_programs_of_both_kinds() -> None:
    assert len(NAMES) >= 60
    assert sum(_program(name).DECIDES for name in NAMES) >= 30
    assert sum(not _program(name).DECIDES for name in NAMES) >= 5
    works = {name for name, _ in TRACED} & set(COMPILED)
    assert len(works) >= 57


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_smooth_at_its_point(name: str) -> None:
    program = _program(name)
    before = np.copy(program.POINT)
    for function, tolerance, floor in ((program.main, 1e-4, 1e-8), (program.outputs, 1e-3, 1e-6)):
        value = np.asarray(function(program.POINT), float)
        np.testing.assert_array_equal(function(program.POINT), value)  # again, the same
        wide, narrow = (_differences(function, program.POINT, step) for step in STEPS)
        sizes = np.maximum(np.abs(wide), np.abs(narrow))
        assert np.all(np.abs(wide - narrow) <= tolerance * sizes + floor * np.abs(value))
    np.testing.assert_array_equal(program.POINT, before)


REFUSED = {
    (name, kind): why
    for name, why in (("cir_option", "scipy.stats.ncx2, which functrans does not have"),)
    for kind in ("main", "outputs")
}
"""What is not yet differentiated: it raises."""

SINGULAR = {
    "source_panels": "arccos of exactly 1, of infinite slope, for panels that stay upright",
}
"""Programs with a step that has no derivative at their point, though what follows has: NaN."""

NOT_COMPILED = {
    "pr_flash": "a shape that depends on values",
}
"""Programs that are differentiated, but not compiled: they raise."""

FUNCTIONS = [(name, kind) for name in NAMES for kind in ("main", "outputs")]
TRACED = [one for one in FUNCTIONS if one not in REFUSED and one[0] not in SINGULAR]
COMPILED = [name for name in NAMES if (name, "main") not in REFUSED and name not in NOT_COMPILED]


def _scaled(derivative: Any, point: Any, axes: int = 1) -> np.ndarray:
    """A derivative in relative changes of the coordinates, as rows of them."""
    size = np.abs(np.atleast_1d(np.asarray(point, float)))
    size = np.where(size == 0, 1.0, size)
    found = np.asarray(derivative, float)
    for axis in range(axes):
        shape = [1] * found.ndim if np.ndim(point) else []
        if shape:
            shape[found.ndim - 1 - axis] = len(size)
        found = found * size.reshape(shape)
    return found


@each(("name", "kind"), TRACED, by="name", one_of=2)
def test_derivatives_are_those_of_differences(name: str, kind: str) -> None:
    program = _program(name)
    function, point = getattr(program, kind), program.POINT
    transform = ft.grad if kind == "main" else ft.jacobian
    found = _scaled(transform(function)(np.asarray(point, float)), point)
    wide, narrow = (_differences(function, point, step) for step in STEPS)
    found = found.T if np.ndim(point) else np.expand_dims(found, 0)
    value = np.abs(np.asarray(function(point), float))
    allowed = 1e-4 * np.maximum(np.abs(narrow), np.abs(wide)) + 3 * np.abs(wide - narrow)
    is_known = np.broadcast_to(np.isfinite(narrow), found.shape)
    wrong = is_known & ~(np.abs(found - narrow) <= allowed + 1e-6 * value)
    assert not np.any(wrong), (found[wrong], np.broadcast_to(narrow, found.shape)[wrong])


@pytest.mark.parametrize(("name", "kind"), REFUSED)
def test_what_is_not_differentiated_is_refused(name: str, kind: str) -> None:
    program = _program(name)
    with pytest.raises((FunctransError, TypeError)):
        ft.jacobian(getattr(program, kind))(np.asarray(program.POINT, float))


@pytest.mark.parametrize("name", SINGULAR)
def test_a_step_without_derivative_gives_nan_and_no_number(name: str) -> None:
    program = _program(name)
    assert np.isnan(ft.grad(program.main)(np.asarray(program.POINT, float))).any()


@pytest.mark.parametrize("name", NOT_COMPILED)
def test_what_is_not_compiled_is_refused(name: str) -> None:
    program = _program(name)
    with pytest.raises(FunctransError):
        ft.jit(program.main, specialize=True)(program.POINT)


@pytest.mark.parametrize("name", share([name for name, kind in TRACED if kind == "main"], 3))
def test_second_derivatives_are_those_of_gradients(name: str) -> None:
    program = _program(name)
    point = np.asarray(program.POINT, float)
    direction = np.cos(np.arange(point.size) + 1).reshape(point.shape) * np.where(
        point == 0, 1.0, np.abs(point)
    )
    found = _scaled(
        ft.hessian(program.main)(point) @ direction
        if point.ndim
        else ft.hessian(program.main)(point) * direction,
        point,
    )
    ends = [ft.grad(program.main)(point + step * direction) for step in (1e-5, -1e-5)]
    expected = _scaled((np.asarray(ends[0]) - np.asarray(ends[1])) / 2e-5, point)
    np.testing.assert_allclose(found, expected, 1e-4, 1e-4 * np.max(np.abs(expected)) + 1e-12)


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_programs_give_the_same(name: str) -> None:
    program = _program(name)
    compiled = ft.jit(program.main, specialize=program.DECIDES)
    expected = program.main(program.POINT)
    # to the tolerance of the integrators of SciPy and functrans, which differ
    np.testing.assert_allclose(compiled(program.POINT), expected, 1e-7)
    moved = np.asarray(program.POINT, float) * (1 + 1e-9)
    np.testing.assert_allclose(compiled(moved), expected, 1e-6)
