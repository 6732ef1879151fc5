"""functrans: function transforms for numerical code on NumPy arrays.

This module re-exports the public names. What the transforms themselves do not need is imported when
it is first used: submodules such as ``functrans.numpy``, and the tables of ``functrans.tables``. It
is the only place where an import of functrans is deferred.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

from functrans import errors as errors
from functrans import tree as tree
from functrans.ir.jaxpr import Jaxpr as Jaxpr
from functrans.ir.jaxpr import install_jaxpr_methods as _install_jaxpr_methods
from functrans.namespaces import missing as _missing
from functrans.operators import install_conversion_error as _install_conversion_error
from functrans.operators import operator_table as _operator_table
from functrans.state import config as config
from functrans.state import named_scope as named_scope
from functrans.trace import install_lazy_methods as _install_lazy_methods
from functrans.trace import install_operators as _install_operators
from functrans.transforms.arguments import ShapeDtypeStruct as ShapeDtypeStruct
from functrans.transforms.arguments import install_plain as _install_plain
from functrans.transforms.dense import install_scan as _install_scan
from functrans.transforms.forward import jvp as jvp
from functrans.transforms.forward import linear_transpose as linear_transpose
from functrans.transforms.forward import linearize as linearize
from functrans.transforms.inspect import eval_jaxpr as eval_jaxpr
from functrans.transforms.inspect import eval_shape as eval_shape
from functrans.transforms.inspect import make_jaxpr as make_jaxpr
from functrans.transforms.jacobian import hessian as hessian
from functrans.transforms.jacobian import hessian_diag as hessian_diag
from functrans.transforms.jacobian import install_sparse as _install_sparse
from functrans.transforms.jacobian import jacfwd as jacfwd
from functrans.transforms.jacobian import jacobian as jacobian
from functrans.transforms.jacobian import jacrev as jacrev
from functrans.transforms.products import hvp as hvp
from functrans.transforms.products import vhp as vhp
from functrans.transforms.reverse import grad as grad
from functrans.transforms.reverse import value_and_grad as value_and_grad
from functrans.transforms.reverse import vjp as vjp
from functrans.transforms.vectorize import vmap as vmap
from functrans.tree import FLOAT0 as float0  # noqa: N811  # JAX's name

if TYPE_CHECKING:
    from functrans import autograd as autograd
    from functrans import compat as compat
    from functrans import conventions as conventions
    from functrans import debug as debug
    from functrans import extend as extend
    from functrans import flatten_util as flatten_util
    from functrans import functional as functional
    from functrans import lax as lax
    from functrans import nn as nn
    from functrans import numpy as numpy
    from functrans import random as random
    from functrans import scipy as scipy
    from functrans import sparse as sparse
    from functrans import testing as testing
    from functrans.autograd import Tensor as Tensor
    from functrans.autograd import from_numpy as from_numpy
    from functrans.autograd import tensor as tensor
    from functrans.compiler.threads import get_num_threads as get_num_threads
    from functrans.compiler.threads import set_num_threads as set_num_threads
    from functrans.control.caches import cache_statistics as cache_statistics
    from functrans.control.caches import clear_caches as clear_caches
    from functrans.control.callbacks import io_callback as io_callback
    from functrans.control.callbacks import pure_callback as pure_callback
    from functrans.control.checkpoint import checkpoint as checkpoint
    from functrans.control.checkpoint import checkpoint_name as checkpoint_name
    from functrans.control.checkpoint import checkpoint_policies as checkpoint_policies
    from functrans.control.checkpoint import remat as remat
    from functrans.control.custom_root import custom_root as custom_root
    from functrans.control.custom_rules import custom_gradient as custom_gradient
    from functrans.control.custom_rules import custom_jvp as custom_jvp
    from functrans.control.custom_rules import custom_vjp as custom_vjp
    from functrans.control.custom_rules import stop_gradient as stop_gradient
    from functrans.control.external import external as external
    from functrans.control.jit import disable_jit as disable_jit
    from functrans.control.jit import jit as jit
    from functrans.control.linear_solve import custom_linear_solve as custom_linear_solve
    from functrans.control.watching import debug_nans as debug_nans
    from functrans.ir.check import check_jaxpr as check_jaxpr
    from functrans.plain.explain import explain_names as explain_names
    from functrans.sparse.api import sparse_hessian as sparse_hessian
    from functrans.sparse.api import sparse_jacobian as sparse_jacobian
    from functrans.sparse.pattern import sparsity_pattern as sparsity_pattern
    from functrans.testing import check_grads as check_grads
    from functrans.transforms.gauss_newton import ggn as ggn
    from functrans.transforms.higher import hessian_operator as hessian_operator
    from functrans.transforms.higher import jacobian_operator as jacobian_operator
    from functrans.transforms.implicit import fixed_point as fixed_point
    from functrans.transforms.implicit import implicit_diff as implicit_diff
    from functrans.transforms.laplacian import forward_laplacian as forward_laplacian
    from functrans.transforms.laplacian import laplacian as laplacian
    from functrans.transforms.residuals import residuals as residuals
    from functrans.transforms.taylor import jet as jet
    from functrans.transforms.taylor import nth_derivative as nth_derivative

__version__ = "0.1.0"

__all__ = [
    "Jaxpr",
    "ShapeDtypeStruct",
    "Tensor",
    "__version__",
    "autograd",
    "cache_statistics",
    "check_grads",
    "check_jaxpr",
    "checkpoint",
    "checkpoint_name",
    "checkpoint_policies",
    "clear_caches",
    "compat",
    "config",
    "conventions",
    "custom_gradient",
    "custom_jvp",
    "custom_linear_solve",
    "custom_root",
    "custom_vjp",
    "debug",
    "debug_nans",
    "disable_jit",
    "errors",
    "eval_jaxpr",
    "eval_shape",
    "explain_names",
    "extend",
    "external",
    "fixed_point",
    "flatten_util",
    "float0",
    "forward_laplacian",
    "from_numpy",
    "functional",
    "get_num_threads",
    "ggn",
    "grad",
    "hessian",
    "hessian_diag",
    "hessian_operator",
    "hvp",
    "implicit_diff",
    "io_callback",
    "jacfwd",
    "jacobian",
    "jacobian_operator",
    "jacrev",
    "jet",
    "jit",
    "jvp",
    "laplacian",
    "lax",
    "linear_transpose",
    "linearize",
    "make_jaxpr",
    "named_scope",
    "nn",
    "nth_derivative",
    "numpy",
    "pure_callback",
    "random",
    "remat",
    "residuals",
    "scipy",
    "set_num_threads",
    "sparse",
    "sparse_hessian",
    "sparse_jacobian",
    "sparsity_pattern",
    "stop_gradient",
    "tensor",
    "testing",
    "tree",
    "value_and_grad",
    "vhp",
    "vjp",
    "vmap",
]

_MODULES = (
    "autograd",
    "compat",
    "conventions",
    "debug",
    "extend",
    "flatten_util",
    "functional",
    "lax",
    "nn",
    "numpy",
    "random",
    "scipy",
    "sparse",
    "testing",
)
_NAMES = {
    "Tensor": "functrans.autograd",
    "cache_statistics": "functrans.control.caches",
    "check_grads": "functrans.testing",
    "check_jaxpr": "functrans.ir.check",
    "checkpoint": "functrans.control.checkpoint",
    "checkpoint_name": "functrans.control.checkpoint",
    "checkpoint_policies": "functrans.control.checkpoint",
    "clear_caches": "functrans.control.caches",
    "custom_gradient": "functrans.control.custom_rules",
    "custom_jvp": "functrans.control.custom_rules",
    "custom_linear_solve": "functrans.control.linear_solve",
    "custom_root": "functrans.control.custom_root",
    "custom_vjp": "functrans.control.custom_rules",
    "debug_nans": "functrans.control.watching",
    "disable_jit": "functrans.control.jit",
    "external": "functrans.control.external",
    "fixed_point": "functrans.transforms.implicit",
    "forward_laplacian": "functrans.transforms.laplacian",
    "from_numpy": "functrans.autograd",
    "get_num_threads": "functrans.compiler.threads",
    "implicit_diff": "functrans.transforms.implicit",
    "ggn": "functrans.transforms.gauss_newton",
    "hessian_operator": "functrans.transforms.higher",
    "io_callback": "functrans.control.callbacks",
    "jacobian_operator": "functrans.transforms.higher",
    "jet": "functrans.transforms.taylor",
    "jit": "functrans.control.jit",
    "laplacian": "functrans.transforms.laplacian",
    "nth_derivative": "functrans.transforms.taylor",
    "pure_callback": "functrans.control.callbacks",
    "remat": "functrans.control.checkpoint",
    "residuals": "functrans.transforms.residuals",
    "explain_names": "functrans.plain.explain",
    "set_num_threads": "functrans.compiler.threads",
    "sparse_hessian": "functrans.sparse.api",
    "sparse_jacobian": "functrans.sparse.api",
    "sparsity_pattern": "functrans.sparse.pattern",
    "stop_gradient": "functrans.control.custom_rules",
    "tensor": "functrans.autograd",
}


def __getattr__(name: str) -> _Any:
    """Import a submodule, or the module of a name, at first use."""
    if name in _MODULES:
        return _import_module(f"functrans.{name}")
    if name in _NAMES:
        value = getattr(_import_module(_NAMES[name]), name)
        globals()[name] = value
        return value
    raise _missing(__name__, name)


def __dir__() -> list[str]:
    """All public names, imported or not."""
    return sorted(__all__)


_install_operators(_operator_table())
_install_lazy_methods(
    lambda: _import_module("functrans.tables").install_numpy(
        lambda: _import_module("functrans.scipy.special_ufuncs").TABLE
    )
)
_install_conversion_error(lambda: _import_module("functrans.conversion").conversion_error)
_install_jaxpr_methods(lambda: _import_module("functrans.tables").jaxpr_methods())
_install_scan(lambda: _import_module("functrans.control.scanning").scan)
_install_plain(
    needs_twin=lambda: _import_module("functrans.plain.decide").needs_twin,
    call_twin=lambda: _import_module("functrans.plain.entry").call_twin,
    call_within=lambda: _import_module("functrans.plain.entry").call_within,
    scipy=lambda: _import_module("functrans.plain.scipy_names"),
)
_install_sparse(lambda: _import_module("functrans.sparse.api").jacobian_of_sparsity)
