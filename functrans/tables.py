"""All primitives, as those who read programs from files need them. Not here: the primitives.

Layer: last.
"""

from __future__ import annotations

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
from functrans.jitted import guards
from functrans.passes import remat
from functrans.primitives import table as first_order
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
