"""The explicit tuple of all primitives whose rules run a pass.

Here: ``PRIMITIVES``. First-order primitives stand in ``functrans.primitives``.

Layer: ``control`` (last module).
"""

from functrans.control import (
    branches,
    callbacks,
    checkpoint,
    collectives,
    custom_calls,
    external,
    guards,
    linear_solve,
    loops,
    native,
    revolve,
    while_loop,
)
from functrans.passes import remat

PRIMITIVES = (
    *native.PRIMITIVES, *branches.PRIMITIVES, *loops.PRIMITIVES, *while_loop.PRIMITIVES,
    *revolve.PRIMITIVES, *custom_calls.PRIMITIVES, *linear_solve.PRIMITIVES, *remat.PRIMITIVES,
    *checkpoint.PRIMITIVES, *callbacks.PRIMITIVES, *external.PRIMITIVES, *collectives.PRIMITIVES,
    *guards.PRIMITIVES,
)  # fmt: skip
