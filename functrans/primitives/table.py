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
    kernels,
    movement,
    reduction,
    slicing,
    sorting,
    structural,
    tapes,
    threefry,
    torch_elementwise,
)
from functrans.primitives.linalg import functions as linalg
from functrans.primitives.sparse import products as sparse_products
from functrans.primitives.sparse import solve as sparse_solve
from functrans.primitives.special import bessel as special_bessel
from functrans.primitives.special import cylinder as special_cylinder
from functrans.primitives.special import distributions as special_distributions
from functrans.primitives.special import elementary as special_elementary
from functrans.primitives.special import functions as special
from functrans.primitives.special import gamma as special_gamma
from functrans.primitives.special import hypergeometric as special_hypergeometric
from functrans.primitives.special import polynomials as special_polynomials

PRIMITIVES = (
    *structural.PRIMITIVES, *elementwise.PRIMITIVES, *complex_parts.PRIMITIVES, *special.PRIMITIVES,
    *special_gamma.PRIMITIVES, *special_hypergeometric.PRIMITIVES, *special_elementary.PRIMITIVES,
    *special_bessel.PRIMITIVES, *special_cylinder.PRIMITIVES, *special_polynomials.PRIMITIVES,
    *special_distributions.PRIMITIVES, *torch_elementwise.PRIMITIVES, *slicing.PRIMITIVES,
    *movement.PRIMITIVES, *indexing.PRIMITIVES, *dynamic_slicing.PRIMITIVES, *reduction.PRIMITIVES,
    *cumulative.PRIMITIVES, *sorting.PRIMITIVES, *dot.PRIMITIVES, *sparse_products.PRIMITIVES,
    *sparse_solve.PRIMITIVES, *convolution.PRIMITIVES, *fft.PRIMITIVES, *filters.PRIMITIVES,
    *linalg.PRIMITIVES, *tapes.PRIMITIVES, *threefry.PRIMITIVES,
    *kernels.PRIMITIVES,
)  # fmt: skip
