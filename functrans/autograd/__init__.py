"""The imperative side: tensors that record what is done to them, ``backward``, hooks.

The names and behaviour are those of ``torch.autograd``.
"""

from functrans.autograd.api import backward as backward
from functrans.autograd.api import grad as grad
from functrans.autograd.factories import from_numpy as from_numpy
from functrans.autograd.factories import tensor as tensor
from functrans.autograd.methods import arithmetic as _arithmetic
from functrans.autograd.methods import comparison as _comparison
from functrans.autograd.methods import indexing as _indexing
from functrans.autograd.methods import reductions as _reductions
from functrans.autograd.methods import shaping as _shaping
from functrans.autograd.methods import state as _state
from functrans.autograd.modes import enable_grad as enable_grad
from functrans.autograd.modes import inference_mode as inference_mode
from functrans.autograd.modes import is_grad_enabled as is_grad_enabled
from functrans.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from functrans.autograd.modes import is_multithreading_enabled as is_multithreading_enabled
from functrans.autograd.modes import no_grad as no_grad
from functrans.autograd.modes import set_grad_enabled as set_grad_enabled
from functrans.autograd.modes import set_multithreading_enabled as set_multithreading_enabled
from functrans.autograd.tensor import Tensor as Tensor
from functrans.autograd.tensor import install as _install

for _family in (_state, _arithmetic, _comparison, _shaping, _reductions, _indexing):
    _install(_family.METHODS)
