"""``torch.autograd``: gradients, the recorded graph, functions of users.

Layer: ``compat``.
"""

from functrans.autograd import anomaly as _anomaly
from functrans.autograd import checks as _checks
from functrans.autograd import forward_ad as forward_ad
from functrans.autograd import function as function
from functrans.autograd import graph as graph
from functrans.autograd import legacy as _legacy
from functrans.autograd import modes as _modes
from functrans.autograd import profiler as profiler
from functrans.autograd import profiler_events as profiler_util
from functrans.autograd.anomaly import detect_anomaly as detect_anomaly
from functrans.autograd.anomaly import set_detect_anomaly as set_detect_anomaly
from functrans.autograd.api import backward as backward
from functrans.autograd.api import grad as grad
from functrans.autograd.checks import gradcheck as gradcheck
from functrans.autograd.checks import gradgradcheck as gradgradcheck
from functrans.autograd.function import Function as Function
from functrans.autograd.function import NestedIOFunction as NestedIOFunction
from functrans.autograd.legacy import Variable as Variable
from functrans.autograd.legacy import variable as variable
from functrans.autograd.modes import _profiler_enabled as _profiler_enabled
from functrans.autograd.modes import enable_grad as enable_grad
from functrans.autograd.modes import inference_mode as inference_mode
from functrans.autograd.modes import is_multithreading_enabled as is_multithreading_enabled
from functrans.autograd.modes import no_grad as no_grad
from functrans.autograd.modes import set_grad_enabled as set_grad_enabled
from functrans.autograd.modes import set_multithreading_enabled as set_multithreading_enabled
from functrans.compat.torch.autograd import functional as functional
from functrans.compat.torch.not_offered import nothing_else as _nothing_else
from functrans.compat.torch.submodules import add_aliases as _add_aliases

__getattr__ = _nothing_else(__name__)

_add_aliases(
    __name__,
    {
        "anomaly_mode": _anomaly,
        "forward_ad": forward_ad,
        "function": function,
        "grad_mode": _modes,
        "gradcheck": _checks,
        "graph": graph,
        "profiler": profiler,
        "profiler_util": profiler_util,
        "variable": _legacy,
    },
)
