"""All primitives, and the functions behind ``Jaxpr``'s methods.

Here: their tables. ``deferred`` imports this module when the first of them is called. Not here: the
functions and primitives.

Layer: last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.control import (
    branches,
    callbacks,
    checkpoint,
    collectives,
    custom_calls,
    custom_vmap,
    loops,
    native,
    revolve,
    while_loop,
)
from functrans.dask import mapping
from functrans.debugging.costs import program_cost
from functrans.debugging.pages import in_notebook, to_html
from functrans.ir.printing import pretty, to_dot
from functrans.ir.serialize import load, reduce, save, structural_hash
from functrans.jitted import guards
from functrans.passes import remat
from functrans.primitives import table as first_order
from functrans.primitives.slicing import BasicIndex
from functrans.solvers import external_maps, linear_solve

HIGHER_ORDER = (
    *native.PRIMITIVES,
    *branches.PRIMITIVES,
    *loops.PRIMITIVES,
    *while_loop.PRIMITIVES,
    *revolve.PRIMITIVES,
    *custom_calls.PRIMITIVES,
    *custom_vmap.PRIMITIVES,
    *linear_solve.PRIMITIVES,
    *remat.PRIMITIVES,
    *checkpoint.PRIMITIVES,
    *callbacks.PRIMITIVES,
    *external_maps.PRIMITIVES,
    *collectives.PRIMITIVES,
    *guards.PRIMITIVES,
    *mapping.PRIMITIVES,
)
"""All primitives whose rules run a pass; the others are listed in ``primitives.table``."""

BY_NAME = {p.name: p for p in (*first_order.PRIMITIVES, *HIGHER_ORDER)}
"""All primitives by name, as files and hashes know them; no two have one name."""

RECORDS = {record.__name__: record for record in (BasicIndex,)}
"""Immutable classes of parameters, whose ``__slots__`` are the arguments of the constructor."""


def jaxpr_methods() -> dict[str, Callable[..., Any]]:
    """The functions behind ``Jaxpr``'s methods."""
    return {
        "pretty": pretty,
        "to_dot": to_dot,
        "in_notebook": in_notebook,
        "to_html": to_html,
        "cost": program_cost,
        "structural_hash": structural_hash,
        "save": save,
        "load": load,
        "reduce": reduce,
    }
