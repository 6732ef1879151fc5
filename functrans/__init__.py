"""functrans: function transforms for numerical code on NumPy arrays.

The public names stand here once, where type checkers read them. At run time the same lines are read
as a table, and the module of a name is imported when the name is first asked for.
"""

from typing import TYPE_CHECKING
from typing import Any as _Any

from functrans.limits import register_controller as _register_controller
from functrans.namespaces import imported as _imported
from functrans.namespaces import listing as _listing
from functrans.namespaces import missing as _missing
from functrans.namespaces import places_in as _places_in

__version__ = "0.1.0"

if TYPE_CHECKING:
    from functrans import autograd as autograd
    from functrans import compat as compat
    from functrans import conventions as conventions
    from functrans import dask as dask
    from functrans import debug as debug
    from functrans import errors as errors
    from functrans import extend as extend
    from functrans import flatten_util as flatten_util
    from functrans import functional as functional
    from functrans import lax as lax
    from functrans import nn as nn
    from functrans import numpy as numpy
    from functrans import ops as ops
    from functrans import random as random
    from functrans import scipy as scipy
    from functrans import sparse as sparse
    from functrans import testing as testing
    from functrans import tree as tree
    from functrans.autograd import Tensor as Tensor
    from functrans.autograd import from_numpy as from_numpy
    from functrans.autograd import tensor as tensor
    from functrans.compiler.threads import get_num_threads as get_num_threads
    from functrans.compiler.threads import set_num_threads as set_num_threads
    from functrans.control.callbacks import io_callback as io_callback
    from functrans.control.callbacks import pure_callback as pure_callback
    from functrans.control.checkpoint import checkpoint as checkpoint
    from functrans.control.checkpoint import checkpoint_name as checkpoint_name
    from functrans.control.checkpoint import checkpoint_policies as checkpoint_policies
    from functrans.control.checkpoint import remat as remat
    from functrans.control.custom_rules import custom_gradient as custom_gradient
    from functrans.control.custom_rules import custom_jvp as custom_jvp
    from functrans.control.custom_rules import custom_vjp as custom_vjp
    from functrans.control.custom_rules import stop_gradient as stop_gradient
    from functrans.control.custom_rules import zero_from_primal as zero_from_primal
    from functrans.control.custom_vmap import custom_vmap as custom_vmap
    from functrans.control.custom_vmap import sequential_vmap as sequential_vmap
    from functrans.core.dispatch import Tracer as Tracer
    from functrans.core.jaxpr import Jaxpr as Jaxpr
    from functrans.core.state import config as config
    from functrans.core.state import named_scope as named_scope
    from functrans.core.structs import ShapeDtypeStruct as ShapeDtypeStruct
    from functrans.core.structs import SymbolicZero as SymbolicZero
    from functrans.core.values import Array as Array
    from functrans.debugging.versions import show_versions as show_versions
    from functrans.debugging.watching import debug_nans as debug_nans
    from functrans.higher.gauss_newton import ggn as ggn
    from functrans.higher.jet import jet as jet
    from functrans.higher.jet import nth_derivative as nth_derivative
    from functrans.higher.laplacian import forward_laplacian as forward_laplacian
    from functrans.higher.laplacian import laplacian as laplacian
    from functrans.higher.operators import hessian_operator as hessian_operator
    from functrans.higher.operators import jacobian_operator as jacobian_operator
    from functrans.ir.check import check_jaxpr as check_jaxpr
    from functrans.jitted.caches import cache_statistics as cache_statistics
    from functrans.jitted.caches import clear_caches as clear_caches
    from functrans.jitted.jit import disable_jit as disable_jit
    from functrans.jitted.jit import jit as jit
    from functrans.jitted.saved import load as load
    from functrans.plain.explain import explain_names as explain_names
    from functrans.pytrees import FLOAT0 as float0  # noqa: F401, N811  # JAX's name
    from functrans.solvers.custom_root import custom_root as custom_root
    from functrans.solvers.external import external as external
    from functrans.solvers.implicit import fixed_point as fixed_point
    from functrans.solvers.implicit import implicit_diff as implicit_diff
    from functrans.solvers.kernels import kernel as kernel
    from functrans.solvers.linear_solve import custom_linear_solve as custom_linear_solve
    from functrans.sparse.api import sparse_hessian as sparse_hessian
    from functrans.sparse.api import sparse_jacobian as sparse_jacobian
    from functrans.sparse.pattern import sparsity_pattern as sparsity_pattern
    from functrans.testing import check_grads as check_grads
    from functrans.transforms.forward import jvp as jvp
    from functrans.transforms.forward import linear_transpose as linear_transpose
    from functrans.transforms.forward import linearize as linearize
    from functrans.transforms.inspect import closure_convert as closure_convert
    from functrans.transforms.inspect import eval_jaxpr as eval_jaxpr
    from functrans.transforms.inspect import eval_shape as eval_shape
    from functrans.transforms.inspect import make_jaxpr as make_jaxpr
    from functrans.transforms.jacobian import hessian as hessian
    from functrans.transforms.jacobian import hessian_diag as hessian_diag
    from functrans.transforms.jacobian import jacfwd as jacfwd
    from functrans.transforms.jacobian import jacobian as jacobian
    from functrans.transforms.jacobian import jacrev as jacrev
    from functrans.transforms.products import hvp as hvp
    from functrans.transforms.products import vhp as vhp
    from functrans.transforms.residuals import residuals as residuals
    from functrans.transforms.reverse import grad as grad
    from functrans.transforms.reverse import value_and_grad as value_and_grad
    from functrans.transforms.reverse import vjp as vjp
    from functrans.transforms.vectorize import vmap as vmap

_PLACES = _places_in(__file__)
__all__ = sorted([*_PLACES, "__version__"])
__dir__ = _listing(__all__)
_register_controller()


def __getattr__(name: str) -> _Any:
    """Import what a public name stands for, at first use."""
    if name not in _PLACES:
        raise _missing(__name__, name)
    value = globals()[name] = _imported(*_PLACES[name])
    return value
