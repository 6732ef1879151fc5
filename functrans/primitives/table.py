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
    filters,
    indexing,
    linalg,
    movement,
    reduction,
    slicing,
    sorting,
    sparse_products,
    sparse_solve,
    special,
    special_bessel,
    special_cylinder,
    special_distributions,
    special_elementary,
    special_gamma,
    special_hypergeometric,
    special_polynomials,
    structural,
    tapes,
    threefry,
    torch_elementwise,
)

PRIMITIVES = (
    *structural.PRIMITIVES, *elementwise.PRIMITIVES, *complex_parts.PRIMITIVES, *special.PRIMITIVES,
    *special_gamma.PRIMITIVES, *special_hypergeometric.PRIMITIVES, *special_elementary.PRIMITIVES,
    *special_bessel.PRIMITIVES, *special_cylinder.PRIMITIVES, *special_polynomials.PRIMITIVES,
    *special_distributions.PRIMITIVES, *torch_elementwise.PRIMITIVES, *slicing.PRIMITIVES,
    *movement.PRIMITIVES, *indexing.PRIMITIVES, *dynamic_slicing.PRIMITIVES, *reduction.PRIMITIVES,
    *cumulative.PRIMITIVES, *sorting.PRIMITIVES, *dot.PRIMITIVES, *sparse_products.PRIMITIVES,
    *sparse_solve.PRIMITIVES, *convolution.PRIMITIVES, *fft.PRIMITIVES, *filters.PRIMITIVES,
    *linalg.PRIMITIVES, *tapes.PRIMITIVES, *threefry.PRIMITIVES,
)  # fmt: skip
