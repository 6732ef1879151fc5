"""``scipy.linalg`` for plain and traced arrays: SciPy's names, signatures, results.

Here: the namespace, and norms. Not here: the functions (``linalg_systems``, ``linalg_factors``,
``linalg_functions``, ``linalg_equations``, ``linalg_structured``). Plain arguments go to SciPy
itself. Options that only save memory or time (``overwrite_a``, ``check_finite``, ``lapack_driver``)
are not used on traced arrays: these are never written to, and are not searched for NaN.

``scipy.linalg`` has no protocol by which traced arrays could answer its own functions; call these.

Layer: ``scipy``.
"""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError as LinAlgError

from functrans import numpy as fnp
from functrans.namespaces import listing as _listing
from functrans.namespaces import missing as _missing
from functrans.numpy import kron as kron
from functrans.numpy import tril as tril
from functrans.numpy import triu as triu
from functrans.scipy.dispatch import implements, plain
from functrans.scipy.linalg_equations import solve_continuous_are as solve_continuous_are
from functrans.scipy.linalg_equations import solve_continuous_lyapunov as solve_continuous_lyapunov
from functrans.scipy.linalg_equations import solve_discrete_are as solve_discrete_are
from functrans.scipy.linalg_equations import solve_discrete_lyapunov as solve_discrete_lyapunov
from functrans.scipy.linalg_equations import solve_lyapunov as solve_lyapunov
from functrans.scipy.linalg_equations import solve_sylvester as solve_sylvester
from functrans.scipy.linalg_factors import cho_factor as cho_factor
from functrans.scipy.linalg_factors import cho_solve as cho_solve
from functrans.scipy.linalg_factors import cholesky as cholesky
from functrans.scipy.linalg_factors import diagsvd as diagsvd
from functrans.scipy.linalg_factors import eig as eig
from functrans.scipy.linalg_factors import eigh as eigh
from functrans.scipy.linalg_factors import eigh_tridiagonal as eigh_tridiagonal
from functrans.scipy.linalg_factors import eigvals as eigvals
from functrans.scipy.linalg_factors import eigvalsh as eigvalsh
from functrans.scipy.linalg_factors import hessenberg as hessenberg
from functrans.scipy.linalg_factors import lu as lu
from functrans.scipy.linalg_factors import lu_factor as lu_factor
from functrans.scipy.linalg_factors import lu_solve as lu_solve
from functrans.scipy.linalg_factors import null_space as null_space
from functrans.scipy.linalg_factors import orth as orth
from functrans.scipy.linalg_factors import orthogonal_procrustes as orthogonal_procrustes
from functrans.scipy.linalg_factors import pinv as pinv
from functrans.scipy.linalg_factors import pinvh as pinvh
from functrans.scipy.linalg_factors import polar as polar
from functrans.scipy.linalg_factors import qr as qr
from functrans.scipy.linalg_factors import rq as rq
from functrans.scipy.linalg_factors import schur as schur
from functrans.scipy.linalg_factors import svd as svd
from functrans.scipy.linalg_factors import svdvals as svdvals
from functrans.scipy.linalg_functions import coshm as coshm
from functrans.scipy.linalg_functions import cosm as cosm
from functrans.scipy.linalg_functions import expm as expm
from functrans.scipy.linalg_functions import expm_frechet as expm_frechet
from functrans.scipy.linalg_functions import fractional_matrix_power as fractional_matrix_power
from functrans.scipy.linalg_functions import funm as funm
from functrans.scipy.linalg_functions import logm as logm
from functrans.scipy.linalg_functions import signm as signm
from functrans.scipy.linalg_functions import sinhm as sinhm
from functrans.scipy.linalg_functions import sinm as sinm
from functrans.scipy.linalg_functions import sqrtm as sqrtm
from functrans.scipy.linalg_functions import tanhm as tanhm
from functrans.scipy.linalg_functions import tanm as tanm
from functrans.scipy.linalg_structured import block_diag as block_diag
from functrans.scipy.linalg_structured import circulant as circulant
from functrans.scipy.linalg_structured import companion as companion
from functrans.scipy.linalg_structured import convolution_matrix as convolution_matrix
from functrans.scipy.linalg_structured import fiedler as fiedler
from functrans.scipy.linalg_structured import hankel as hankel
from functrans.scipy.linalg_structured import khatri_rao as khatri_rao
from functrans.scipy.linalg_structured import leslie as leslie
from functrans.scipy.linalg_structured import toeplitz as toeplitz
from functrans.scipy.linalg_systems import det as det
from functrans.scipy.linalg_systems import inv as inv
from functrans.scipy.linalg_systems import lstsq as lstsq
from functrans.scipy.linalg_systems import matmul_toeplitz as matmul_toeplitz
from functrans.scipy.linalg_systems import solve as solve
from functrans.scipy.linalg_systems import solve_banded as solve_banded
from functrans.scipy.linalg_systems import solve_circulant as solve_circulant
from functrans.scipy.linalg_systems import solve_toeplitz as solve_toeplitz
from functrans.scipy.linalg_systems import solve_triangular as solve_triangular
from functrans.scipy.linalg_systems import solveh_banded as solveh_banded

_CONSTANTS = ("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal")
"""Functions of integers, which are SciPy's own."""


def __getattr__(name: str) -> Any:
    """SciPy's constant matrices, imported at first use."""
    if name in _CONSTANTS:
        return plain(f"linalg.{name}")
    raise _missing(__name__, name)


@implements("linalg.norm")
def norm(
    a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True
) -> Any:
    """Norms of vectors and matrices, as ``scipy.linalg.norm``; the derivative at 0 is 0."""
    return fnp.linalg.norm(a, ord=ord, axis=axis, keepdims=keepdims)


__all__ = [
    "LinAlgError", "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion",
    "convolution_matrix", "coshm", "cosm", "det", "diagsvd", "eig", "eigh", "eigh_tridiagonal",
    "eigvals", "eigvalsh", "expm", "expm_frechet", "fiedler", "fractional_matrix_power", "funm",
    "hankel", "hessenberg", "inv", "khatri_rao", "kron", "leslie", "logm", "lstsq", "lu",
    "lu_factor", "lu_solve", "matmul_toeplitz", "norm", "null_space", "orth",
    "orthogonal_procrustes", "pinv", "pinvh", "polar", "qr", "rq", "schur", "signm", "sinhm",
    "sinm", "solve", "solve_banded", "solve_circulant", "solve_continuous_are",
    "solve_continuous_lyapunov", "solve_discrete_are", "solve_discrete_lyapunov", "solve_lyapunov",
    "solve_sylvester", "solve_toeplitz", "solve_triangular", "solveh_banded", "sqrtm", "svd",
    "svdvals", "tanhm", "tanm", "toeplitz", "tril", "triu",
]  # fmt: skip
__dir__ = _listing(__all__)
