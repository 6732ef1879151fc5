"""The explicit tuple of all first-order primitives.

Here: ``PRIMITIVES``. Control flow and other primitives whose rules run a pass stand in
``functrans.control``.

Layer: ``primitives`` (last module).
"""

from functrans.primitives import (
    complex_parts,
    convolution,
    cumulative,
    dot,
    dynamic_slicing,
    elementwise,
    fft,
    indexing,
    linalg,
    movement,
    reduction,
    slicing,
    sorting,
    special,
    structural,
    tapes,
    torch_elementwise,
)

PRIMITIVES = (
    *structural.PRIMITIVES,
    *elementwise.PRIMITIVES,
    *complex_parts.PRIMITIVES,
    *special.PRIMITIVES,
    *torch_elementwise.PRIMITIVES,
    *slicing.PRIMITIVES,
    *movement.PRIMITIVES,
    *indexing.PRIMITIVES,
    *dynamic_slicing.PRIMITIVES,
    *reduction.PRIMITIVES,
    *cumulative.PRIMITIVES,
    *sorting.PRIMITIVES,
    *dot.PRIMITIVES,
    *convolution.PRIMITIVES,
    *fft.PRIMITIVES,
    *linalg.PRIMITIVES,
    *tapes.PRIMITIVES,
)
