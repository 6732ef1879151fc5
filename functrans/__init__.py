"""functrans: function transforms for numerical code on NumPy arrays.

This module re-exports the public names and hands over the tables that go down by injection
(operators of tracers, NumPy's ufuncs and array functions, the methods of ``Jaxpr``).
"""

from functrans import conventions as conventions
from functrans import errors as errors
from functrans import flatten_util as flatten_util
from functrans import tree as tree
from functrans.ir.check import check_jaxpr as check_jaxpr
from functrans.ir.encoding import install_primitives
from functrans.ir.jaxpr import Jaxpr as Jaxpr
from functrans.ir.jaxpr import install_jaxpr_methods
from functrans.ir.printing import pretty, to_dot
from functrans.ir.serialize import load, reduce, save, structural_hash
from functrans.operators import operator_table
from functrans.primitives import PRIMITIVES
from functrans.primitives.slicing import BasicIndex
from functrans.state import config as config
from functrans.trace import install_operators
from functrans.transforms.forward import jvp as jvp
from functrans.transforms.forward import linear_transpose as linear_transpose
from functrans.transforms.forward import linearize as linearize
from functrans.transforms.inspect import ShapeDtypeStruct as ShapeDtypeStruct
from functrans.transforms.inspect import eval_jaxpr as eval_jaxpr
from functrans.transforms.inspect import eval_shape as eval_shape
from functrans.transforms.inspect import make_jaxpr as make_jaxpr
from functrans.transforms.jacobian import hessian as hessian
from functrans.transforms.jacobian import hessian_diag as hessian_diag
from functrans.transforms.jacobian import hvp as hvp
from functrans.transforms.jacobian import jacfwd as jacfwd
from functrans.transforms.jacobian import jacobian as jacobian
from functrans.transforms.jacobian import jacrev as jacrev
from functrans.transforms.jacobian import vhp as vhp
from functrans.transforms.reverse import grad as grad
from functrans.transforms.reverse import value_and_grad as value_and_grad
from functrans.transforms.reverse import vjp as vjp
from functrans.transforms.vectorize import vmap as vmap

install_operators(operator_table())
install_jaxpr_methods(
    pretty=pretty, to_dot=to_dot, structural_hash=structural_hash, save=save, load=load, reduce=reduce
)
install_primitives(PRIMITIVES, (BasicIndex,))
