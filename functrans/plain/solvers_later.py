"""SciPy's solvers where values are not known: called when the program runs.

Here: ``solved_later``. Not here: which condition belongs to which solver (``plain.optimize``), what
is done where values are known (``plain.implicit``).

Functions that the solver calls become programs of the unknowns and of all that they refer to. The
solver gets them, with numbers for what they refer to, in a callback; derivatives of what it finds
are those of its condition (``solvers.custom_root``).

Layer: ``plain``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans import pytrees as tree
from functrans.control.bodies import stage_body
from functrans.control.callbacks import pure_callback
from functrans.core.dispatch import aval_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.values import Operand
from functrans.jitted.forks import forked
from functrans.passes.evaluate import evaluate
from functrans.plain.memory import settled
from functrans.solvers.custom_root import custom_root
from functrans.transforms.jacobian import jacfwd

Functions = Mapping[str, Callable[[Any], Any]]


def _run(jaxpr: Jaxpr, treedef: Any, held: list[Any], v: Operand) -> Any:
    """The result of a program of what a function refers to and of its argument."""
    return tree.unflatten(treedef, evaluate(jaxpr, [*held, v]))


def solved_later(
    who: str,
    functions: Functions,
    condition: Callable[[Functions], Callable[[Any], Any]],
    solve: Callable[[Functions, np.ndarray], Any],
    start: object,
) -> tuple[Any, Functions]:
    """A solution as a part of the program that is staged.

    Args:
      who: what solves, for messages.
      functions: those that the solver calls, by name; each takes a vector.
      condition: of such functions, the function of a vector that vanishes at the solution.
      solve: calls the solver, of functions of plain vectors and a plain start; gives a vector.
      start: vector of floats.

    Returns:
      The solution, a vector; and the functions as programs.
    """
    aval = aval_of(start).strong()
    bodies = {
        name: stage_body(
            f"{who}: {name}",
            forked(lambda v, own=own: settled(own(v)), who, is_pure=True),
            tree.structure((start,)),
            [aval],
            is_branch=True,
        )
        for name, own in functions.items()
    }
    programs = {
        name: (body.jaxpr, body.treedef, len(body.captured)) for name, body in bodies.items()
    }
    held = [value for body in bodies.values() for value in body.captured]

    def rebuilt(values: Any) -> dict[str, Callable[[Any], Any]]:
        """The functions, of values for what they refer to."""
        own: dict[str, Callable[[Any], Any]] = {}
        place = 0
        for name, (jaxpr, treedef, n) in programs.items():
            own[name] = functools.partial(_run, jaxpr, treedef, list(values[place : place + n]))
            place += n
        return own

    def call(start: Any, *values: object) -> Any:
        plain = {
            name: lambda v, own=own: own(np.asarray(v, aval.dtype))
            for name, own in rebuilt(values).items()
        }
        return np.asarray(solve(plain, np.array(start)), aval.dtype).reshape(aval.shape)

    def search(_: object, start: object) -> Any:
        like = ShapeDtypeStruct(aval.shape, aval.dtype)
        return pure_callback(call, like, start, *held, vmap_method="sequential")

    def tangent(g: Any, y: Operand) -> Any:
        return np.linalg.solve(jacfwd(g)(fnp.zeros_like(y)), y)

    own = rebuilt(held)
    return custom_root(condition(own), start, search, tangent), own
