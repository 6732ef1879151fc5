"""``scipy.linalg`` for plain and traced arrays: SciPy's names, signatures, results.

Here: the namespace, and norms. Not here: the functions (``linalg_systems``, ``linalg_factors``,
``linalg_functions``, ``linalg_equations``, ``linalg_structured``). Plain arguments go to SciPy
itself. Options that only save memory or time (``overwrite_a``, ``check_finite``, ``lapack_driver``)
are not used on traced arrays: these are never written to, and are not searched for NaN.

``scipy.linalg`` has no protocol by which traced arrays could answer its own functions; call these.

Layer: ``scipy``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as _Any

from functrans.core.boundary import guard as _guard
from functrans.core.values import Array

# isort: off
from numpy.linalg import LinAlgError as LinAlgError

from functrans import numpy as _fnp
from functrans.namespaces import exported as _exported, listing as _listing
from functrans.numpy import kron as kron, tril as tril, triu as triu
from functrans.scipy.dispatch import implements as _implements, later as _later
from functrans.scipy.linalg_equations import (
    solve_continuous_are as solve_continuous_are,
    solve_continuous_lyapunov as solve_continuous_lyapunov,
    solve_discrete_are as solve_discrete_are, solve_discrete_lyapunov as solve_discrete_lyapunov,
    solve_lyapunov as solve_lyapunov, solve_sylvester as solve_sylvester,
)  # fmt: skip
from functrans.scipy.linalg_factors import (
    cho_factor as cho_factor, cho_solve as cho_solve, cholesky as cholesky,
    eig as eig, eigh as eigh, eigh_tridiagonal as eigh_tridiagonal,
    hessenberg as hessenberg, lu as lu, lu_factor as lu_factor,
    lu_solve as lu_solve, null_space as null_space, orth as orth,
    orthogonal_procrustes as orthogonal_procrustes, pinv as pinv, pinvh as pinvh, polar as polar,
    qr as qr, qr_multiply as qr_multiply, rq as rq, schur as schur, svd as svd,
)  # fmt: skip
from functrans.scipy.linalg_functions import (
    coshm as coshm, cosm as cosm, expm as expm, expm_frechet as expm_frechet,
    fractional_matrix_power as fractional_matrix_power, funm as funm, logm as logm, signm as signm,
    sinhm as sinhm, sinm as sinm, sqrtm as sqrtm, tanhm as tanhm, tanm as tanm,
)  # fmt: skip
from functrans.scipy.linalg_structured import (
    circulant as circulant, companion as companion,
    convolution_matrix as convolution_matrix,
    fiedler_companion as fiedler_companion, hankel as hankel,
    toeplitz as toeplitz,
)  # fmt: skip
from functrans.scipy.linalg_systems import (
    det as det, inv as inv, lstsq as lstsq, matmul_toeplitz as matmul_toeplitz, solve as solve,
    solve_banded as solve_banded, solve_circulant as solve_circulant,
    solve_toeplitz as solve_toeplitz, solve_triangular as solve_triangular,
    solveh_banded as solveh_banded,
)  # fmt: skip
# isort: on

_CONSTANTS = ("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal")
"""Functions of integers, which are SciPy's own."""


_BY_CODE = (
    "block_diag", "diagsvd", "eigvals", "eigvalsh", "fiedler", "khatri_rao", "leslie", "svdvals",
)  # fmt: skip
"""What is traced by SciPy's own code."""

__getattr__ = _later("linalg", _BY_CODE, _CONSTANTS)


@_implements("linalg.norm")
def norm(
    a: Array,
    ord: _Any = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    check_finite: bool = True,
) -> _Any:
    """Norms of vectors and matrices, as ``scipy.linalg.norm``; the derivative at 0 is 0."""
    return _fnp.linalg.norm(a, ord=ord, axis=axis, keepdims=keepdims)


__all__ = _exported(globals(), _BY_CODE)
__dir__ = _listing(__all__)
_guard(globals(), __all__)
