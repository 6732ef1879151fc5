"""Dense linear algebra: all its records, and the functions that apply them.

Here: the list. The records are in ``linalg.triangular`` (triangular systems), ``linalg.solve`` (LU,
general systems), ``linalg.det`` (inverse, determinant, cofactors), ``linalg.factor`` (Cholesky,
QR), ``linalg.spectral`` (eigen- and singular values) and ``linalg.lstsq`` (pseudo-inverse, least
squares, the square root of norms), ``linalg.banded`` (banded systems), ``linalg.matrix_functions``
(exponential, logarithm, square root) and ``linalg.equations`` (Sylvester, Riccati). NumPy-shaped
functions are in ``functrans.numpy.linalg``.

Layer: ``primitives.linalg``.
"""

from __future__ import annotations

from functrans.primitives.linalg import banded as linalg_banded
from functrans.primitives.linalg import det as linalg_det
from functrans.primitives.linalg import equations as linalg_equations
from functrans.primitives.linalg import factor as linalg_factor
from functrans.primitives.linalg import lstsq as linalg_lstsq
from functrans.primitives.linalg import matrix_functions as linalg_matrix_functions
from functrans.primitives.linalg import solve as linalg_solve
from functrans.primitives.linalg import spectral as linalg_spectral
from functrans.primitives.linalg import triangular as linalg_triangular
from functrans.primitives.linalg.banded import banded_solve as banded_solve
from functrans.primitives.linalg.common import adjoint as adjoint
from functrans.primitives.linalg.common import from_triangle as from_triangle
from functrans.primitives.linalg.common import matrix_transpose as matrix_transpose
from functrans.primitives.linalg.det import cofactor as cofactor
from functrans.primitives.linalg.det import det as det
from functrans.primitives.linalg.det import inv as inv
from functrans.primitives.linalg.det import slogdet as slogdet
from functrans.primitives.linalg.equations import riccati as riccati
from functrans.primitives.linalg.equations import stein as stein
from functrans.primitives.linalg.equations import sylvester as sylvester
from functrans.primitives.linalg.factor import cholesky as cholesky
from functrans.primitives.linalg.factor import qr as qr
from functrans.primitives.linalg.lstsq import lstsq as lstsq
from functrans.primitives.linalg.lstsq import norm_sqrt as norm_sqrt
from functrans.primitives.linalg.lstsq import pinv as pinv
from functrans.primitives.linalg.matrix_functions import matrix_frechet as matrix_frechet
from functrans.primitives.linalg.matrix_functions import matrix_function as matrix_function
from functrans.primitives.linalg.matrix_functions import refuse_complex as refuse_complex
from functrans.primitives.linalg.solve import linear_solve as linear_solve
from functrans.primitives.linalg.solve import lu as lu
from functrans.primitives.linalg.solve import lu_factor as lu_factor
from functrans.primitives.linalg.spectral import eig as eig
from functrans.primitives.linalg.spectral import eigh as eigh
from functrans.primitives.linalg.spectral import eigvals as eigvals
from functrans.primitives.linalg.spectral import eigvalsh as eigvalsh
from functrans.primitives.linalg.spectral import svd as svd
from functrans.primitives.linalg.spectral import svdvals as svdvals
from functrans.primitives.linalg.triangular import triangular_solve as triangular_solve

PRIMITIVES = (
    *linalg_triangular.PRIMITIVES, *linalg_solve.PRIMITIVES, *linalg_det.PRIMITIVES,
    *linalg_factor.PRIMITIVES, *linalg_spectral.PRIMITIVES, *linalg_lstsq.PRIMITIVES,
    *linalg_banded.PRIMITIVES, *linalg_matrix_functions.PRIMITIVES, *linalg_equations.PRIMITIVES,
)  # fmt: skip
