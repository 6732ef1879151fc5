"""The imperative side: tensors that record what is done to them, ``backward``, hooks.

The names and behaviour are those of ``torch.autograd``.

Where to read: a tensor is ``tensors.Tensor``; its operations are rows of tables in ``methods``,
which end in ``recording.ImperativeTrace``; that evaluates them and makes ``nodes.GraphNode``;
``api.backward`` checks its arguments, and ``engine.Pass`` runs the nodes backwards.
"""

from functrans.autograd import checkpoint as checkpoint
from functrans.autograd import forward_ad as forward_ad
from functrans.autograd import func as func
from functrans.autograd import function as function
from functrans.autograd import graph as graph
from functrans.autograd import profiler as profiler
from functrans.autograd.anomaly import detect_anomaly as detect_anomaly
from functrans.autograd.anomaly import is_anomaly_enabled as is_anomaly_enabled
from functrans.autograd.anomaly import set_detect_anomaly as set_detect_anomaly
from functrans.autograd.api import backward as backward
from functrans.autograd.api import grad as grad
from functrans.autograd.checks import GradcheckError as GradcheckError
from functrans.autograd.checks import gradcheck as gradcheck
from functrans.autograd.checks import gradgradcheck as gradgradcheck
from functrans.autograd.factories import from_numpy as from_numpy
from functrans.autograd.factories import tensor as tensor
from functrans.autograd.function import Function as Function
from functrans.autograd.function import NestedIOFunction as NestedIOFunction
from functrans.autograd.legacy import Variable as Variable
from functrans.autograd.legacy import variable as variable
from functrans.autograd.methods import arithmetic as _arithmetic
from functrans.autograd.methods import array_protocol as _array_protocol
from functrans.autograd.methods import blending as _blending
from functrans.autograd.methods import comparison as _comparison
from functrans.autograd.methods import complex_numbers as _complex_numbers
from functrans.autograd.methods import conversion as _conversion
from functrans.autograd.methods import filling as _filling
from functrans.autograd.methods import gathering as _gathering
from functrans.autograd.methods import indexing as _indexing
from functrans.autograd.methods import joining as _joining
from functrans.autograd.methods import legacy_types as _legacy_types
from functrans.autograd.methods import linear_algebra as _linear_algebra
from functrans.autograd.methods import ordering as _ordering
from functrans.autograd.methods import parts as _parts
from functrans.autograd.methods import pointwise as _pointwise
from functrans.autograd.methods import printing as _printing
from functrans.autograd.methods import products as _products
from functrans.autograd.methods import reductions as _reductions
from functrans.autograd.methods import shaping as _shaping
from functrans.autograd.methods import special as _special
from functrans.autograd.methods import state as _state
from functrans.autograd.modes import enable_grad as enable_grad
from functrans.autograd.modes import inference_mode as inference_mode
from functrans.autograd.modes import is_grad_enabled as is_grad_enabled
from functrans.autograd.modes import is_inference_mode_enabled as is_inference_mode_enabled
from functrans.autograd.modes import is_multithreading_enabled as is_multithreading_enabled
from functrans.autograd.modes import no_grad as no_grad
from functrans.autograd.modes import set_grad_enabled as set_grad_enabled
from functrans.autograd.modes import set_multithreading_enabled as set_multithreading_enabled
from functrans.autograd.staged import IMPERATIVE as IMPERATIVE
from functrans.autograd.tensors import Tensor as Tensor
from functrans.autograd.tensors import install as _install

for _family in (
    _state, _arithmetic, _blending, _pointwise, _special, _comparison, _complex_numbers, _shaping,
    _parts, _joining, _reductions, _ordering, _products, _linear_algebra, _indexing, _gathering,
    _filling, _conversion, _array_protocol, _legacy_types, _printing,
):  # fmt: skip
    _install(_family.METHODS)

__all__ = [
    "Function",
    "GradcheckError",
    "NestedIOFunction",
    "Tensor",
    "Variable",
    "backward",
    "checkpoint",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "from_numpy",
    "func",
    "function",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "is_multithreading_enabled",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
    "tensor",
    "variable",
]


def __dir__() -> list[str]:
    """All public names."""
    return sorted(__all__)
