"""``torch.func``: functional transforms of functions of tensors.

Layer: ``compat``.
"""

from functrans.autograd.func import debug_unwrap as debug_unwrap
from functrans.autograd.func import functional_call as functional_call
from functrans.autograd.func import grad as grad
from functrans.autograd.func import grad_and_value as grad_and_value
from functrans.autograd.func import hessian as hessian
from functrans.autograd.func import jacfwd as jacfwd
from functrans.autograd.func import jacrev as jacrev
from functrans.autograd.func import jvp as jvp
from functrans.autograd.func import linearize as linearize
from functrans.autograd.func import stack_module_state as stack_module_state
from functrans.autograd.func import vjp as vjp
from functrans.autograd.func import vmap as vmap
from functrans.compat.torch.not_offered import nothing_else as _nothing_else

__path__: list[str] = []  # import statements ask for what is not here, too
__getattr__ = _nothing_else(__name__)
