"""Arrays that a function refers to, as arguments of its program, and what planning knows of them.

Here: the form of a program that goes to the compiler. Not here: how captured arrays become
arguments (``passes.programs.hoist``), the caches of programs (``jitted.jit``,
``jitted.specialize``).

Layer: ``jitted``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.compiler.execution import execution_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.state import current_config
from functrans.core.values import Array
from functrans.passes.programs import hoist
from functrans.passes.staging import may_change
from functrans.rerolling.rewrite import reroll


def in_order(value: Array) -> Array:
    """A captured array that nobody can change, laid out as machine code reads it."""
    if type(value) is np.ndarray and not may_change(value):
        ordered = np.asarray(value, order="C")  # ascontiguousarray makes 0-d arrays 1-d
        ordered.flags.writeable = False  # it is a copy, or was so before
        return ordered
    return value


def for_compiler(jaxpr: Jaxpr) -> tuple[Jaxpr, tuple[Any, ...]]:
    """A program with captured arrays as arguments, and these arrays; repeated code as loops."""
    hoisted, captured = hoist(jaxpr)
    _roll(hoisted)
    return hoisted, tuple(map(in_order, captured))


def _roll(jaxpr: Jaxpr) -> None:
    """Keep the form with loops with the program, unless it is the program itself: no cycles."""
    rolled = reroll(jaxpr)
    if rolled is not jaxpr:
        execution_of(jaxpr).rolled = rolled


def prepare_to_compile(jaxpr: Jaxpr, captured: Sequence[Any]) -> None:
    """Leave with a program its form with loops, and what its first arguments will always be.

    Args:
      jaxpr: the program; nothing is done where it will be interpreted.
      captured: what its first arguments will be; planning may read arrays that nobody can change.
    """
    if not current_config.get().native:
        return
    _roll(jaxpr)
    for program in {jaxpr, execution_of(jaxpr).rolled or jaxpr}:
        execution_of(program).constants = {
            var: value
            for var, value in zip(program.invars, captured, strict=False)
            if type(value) is np.ndarray and not may_change(value)
        }
