"""The imperative side: tensors that record what is done to them, ``backward``, hooks.

The names and behaviour are those of ``torch.autograd``.

Where to read: a tensor is ``tensors.Tensor``; its operations are rows of tables in ``methods``,
which end in ``recording.ImperativeTrace``; that evaluates them and makes ``nodes.GraphNode``;
``api.backward`` checks its arguments, and ``engine.Pass`` runs the nodes backwards.
"""

# isort: off
from functrans.core.boundary import guard as _guard
from functrans.autograd import (
    checkpoint as checkpoint, forward_ad as forward_ad, func as func, function as function,
    graph as graph, profiler as profiler,
)  # fmt: skip
from functrans.autograd.anomaly import (
    detect_anomaly as detect_anomaly, is_anomaly_enabled as is_anomaly_enabled,
    set_detect_anomaly as set_detect_anomaly,
)  # fmt: skip
from functrans.autograd.api import backward as backward, grad as grad
from functrans.autograd.checks import (
    GradcheckError as GradcheckError, gradcheck as gradcheck, gradgradcheck as gradgradcheck,
)  # fmt: skip
from functrans.autograd.factories import from_numpy as from_numpy, tensor as tensor
from functrans.autograd.function import Function as Function, NestedIOFunction as NestedIOFunction
from functrans.autograd.legacy import Variable as Variable, variable as variable
from functrans.autograd.methods import (
    arithmetic as _arithmetic, array_protocol as _array_protocol, blending as _blending,
    comparison as _comparison, complex_numbers as _complex_numbers, conversion as _conversion,
    filling as _filling, gathering as _gathering, indexing as _indexing, joining as _joining,
    legacy_types as _legacy_types, linear_algebra as _linear_algebra, ordering as _ordering,
    parts as _parts, pointwise as _pointwise, printing as _printing, products as _products,
    reductions as _reductions, shaping as _shaping, special as _special, state as _state,
    storages as _storages,
)  # fmt: skip
from functrans.autograd.modes import (
    enable_grad as enable_grad, inference_mode as inference_mode,
    is_grad_enabled as is_grad_enabled, is_inference_mode_enabled as is_inference_mode_enabled,
    is_multithreading_enabled as is_multithreading_enabled, no_grad as no_grad,
    set_grad_enabled as set_grad_enabled, set_multithreading_enabled as set_multithreading_enabled,
)  # fmt: skip
from functrans.autograd.jitted.staged import IMPERATIVE as IMPERATIVE
from functrans.autograd.tensors import Tensor as Tensor

# isort: on
from functrans.autograd.overrides import install as _install

for _family in (
    _state, _arithmetic, _blending, _pointwise, _special, _comparison, _complex_numbers, _shaping,
    _parts, _joining, _reductions, _ordering, _products, _linear_algebra, _indexing, _gathering,
    _filling, _conversion, _array_protocol, _legacy_types, _printing, _storages,
):  # fmt: skip
    _install(_family.METHODS)

__all__ = [
    "Function", "GradcheckError", "NestedIOFunction", "Tensor", "Variable", "backward",
    "checkpoint", "detect_anomaly", "enable_grad", "forward_ad", "from_numpy", "func", "function",
    "grad", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_anomaly_enabled",
    "is_grad_enabled", "is_inference_mode_enabled", "is_multithreading_enabled", "no_grad",
    "profiler", "set_detect_anomaly", "set_grad_enabled", "set_multithreading_enabled", "tensor",
    "variable",
]  # fmt: skip
_guard(globals(), __all__)


def __dir__() -> list[str]:
    """All public names."""
    return sorted(__all__)
