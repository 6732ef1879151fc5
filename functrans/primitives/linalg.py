"""Dense linear algebra: all its records, and the functions that apply them.

Here: the list. The records are in ``linalg_triangular`` (triangular systems), ``linalg_solve`` (LU,
general systems), ``linalg_det`` (inverse, determinant, cofactors), ``linalg_factor`` (Cholesky,
QR), ``linalg_spectral`` (eigen- and singular values) and ``linalg_lstsq`` (pseudo-inverse, least
squares, the square root of norms), ``linalg_banded`` (banded systems), ``linalg_matrix_functions``
(exponential, logarithm, square root) and ``linalg_equations`` (Sylvester, Riccati). NumPy-shaped
functions are in ``functrans.numpy.linalg``.

Layer: ``primitives``.
"""

from __future__ import annotations

from functrans.primitives import (
    linalg_banded,
    linalg_det,
    linalg_equations,
    linalg_factor,
    linalg_lstsq,
    linalg_matrix_functions,
    linalg_solve,
    linalg_spectral,
    linalg_triangular,
)
from functrans.primitives.linalg_banded import banded_solve as banded_solve
from functrans.primitives.linalg_common import adjoint as adjoint
from functrans.primitives.linalg_common import from_triangle as from_triangle
from functrans.primitives.linalg_common import matrix_transpose as matrix_transpose
from functrans.primitives.linalg_det import cofactor as cofactor
from functrans.primitives.linalg_det import det as det
from functrans.primitives.linalg_det import inv as inv
from functrans.primitives.linalg_det import slogdet as slogdet
from functrans.primitives.linalg_equations import riccati as riccati
from functrans.primitives.linalg_equations import stein as stein
from functrans.primitives.linalg_equations import sylvester as sylvester
from functrans.primitives.linalg_factor import cholesky as cholesky
from functrans.primitives.linalg_factor import qr as qr
from functrans.primitives.linalg_lstsq import lstsq as lstsq
from functrans.primitives.linalg_lstsq import norm_sqrt as norm_sqrt
from functrans.primitives.linalg_lstsq import pinv as pinv
from functrans.primitives.linalg_matrix_functions import matrix_frechet as matrix_frechet
from functrans.primitives.linalg_matrix_functions import matrix_function as matrix_function
from functrans.primitives.linalg_matrix_functions import refuse_complex as refuse_complex
from functrans.primitives.linalg_solve import linear_solve as linear_solve
from functrans.primitives.linalg_solve import lu as lu
from functrans.primitives.linalg_solve import lu_factor as lu_factor
from functrans.primitives.linalg_spectral import eig as eig
from functrans.primitives.linalg_spectral import eigh as eigh
from functrans.primitives.linalg_spectral import eigvals as eigvals
from functrans.primitives.linalg_spectral import eigvalsh as eigvalsh
from functrans.primitives.linalg_spectral import svd as svd
from functrans.primitives.linalg_spectral import svdvals as svdvals
from functrans.primitives.linalg_triangular import triangular_solve as triangular_solve

PRIMITIVES = (
    *linalg_triangular.PRIMITIVES, *linalg_solve.PRIMITIVES, *linalg_det.PRIMITIVES,
    *linalg_factor.PRIMITIVES, *linalg_spectral.PRIMITIVES, *linalg_lstsq.PRIMITIVES,
    *linalg_banded.PRIMITIVES, *linalg_matrix_functions.PRIMITIVES, *linalg_equations.PRIMITIVES,
)  # fmt: skip
