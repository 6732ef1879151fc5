"""The programs of ``programs/``, as plain NumPy runs them: that they have derivatives to be found.

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
    assert len(NAMES) >= 32
    assert sum(_program(name).DECIDES for name in NAMES) >= 10


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
