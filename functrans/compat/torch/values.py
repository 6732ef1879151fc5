"""Reading and overwriting the values of tensors outside of the graph, also while a step is traced.

Here: ``value_of`` and ``assign``, for what optimizers, buffers and initial values need. Not here:
in-place methods of tensors, which are recorded (``autograd.writes``).

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.autograd.overlaps import check_memory
from functrans.autograd.recording import ImperativeTrace, enter_session, node_of
from functrans.autograd.residuals import root_of
from functrans.autograd.tensors import Tensor
from functrans.autograd.writes import write
from functrans.core.dispatch import Tracer, inner_trace
from functrans.core.state import open_traces


def value_of(x: Tensor) -> Any:
    """The array of a tensor; what stands for it while ``jit`` traces a step."""
    enter_session(x)
    if x._view is not None:
        node_of(x)
    return x._value


def assign(label: str, x: Tensor, value: Any) -> None:
    """Overwrite a tensor's memory, without a check whether it is a leaf; call it in ``no_grad``.

    Args:
      label: name of the operation, for messages.
      x: the tensor.
      value: an array of its shape, or a tracer.

    Raises:
      RuntimeError: elements that share memory would get several numbers; a tensor made outside of
        a transform would get a value of it.
    """
    enter_session(x)
    memory = x._memory()
    own: Any = x.__dict__.get("_trace")
    if isinstance(value, Tracer):
        trace = value._trace
        if not isinstance(memory, Tracer) or inner_trace(memory._trace, trace) is not memory._trace:
            traces = reversed(open_traces.get())
            own = next((trace for trace in traces if isinstance(trace, ImperativeTrace)), None)
        if own is not x.__dict__.get("_trace") and not (own and own.takes(root_of(x))):
            raise RuntimeError(
                f"{label}: a tensor made outside of {trace.label} would be given a value of it, "
                "which would outlive the transform (running statistics of a layer, for example: "
                "call its eval(), or make it with track_running_stats=False)"
            )
    if isinstance(memory, Tracer) or isinstance(value, Tracer):
        write(label, x, Tensor.of(value, None, own))
        return
    check_memory(memory, is_constant=type(value) is np.ndarray and not any(value.strides))
    x._stored().release()
    np.copyto(memory, value)
    x._stored().bump(label, None)
