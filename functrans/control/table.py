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
    jit,
    loops,
    while_loop,
)
from functrans.passes import remat

PRIMITIVES = (
    *jit.PRIMITIVES,
    *branches.PRIMITIVES,
    *loops.PRIMITIVES,
    *while_loop.PRIMITIVES,
    *custom_calls.PRIMITIVES,
    *remat.PRIMITIVES,
    *checkpoint.PRIMITIVES,
    *callbacks.PRIMITIVES,
    *collectives.PRIMITIVES,
)
