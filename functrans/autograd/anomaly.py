"""Anomaly mode: which operation a failing gradient belongs to.

Here: ``detect_anomaly``, ``set_detect_anomaly``, ``is_anomaly_enabled``, and what the backward pass
says of a node that failed. Not here: where operations remember the stack (``autograd.recording``).

While the mode is on, recorded operations remember the Python stack in ``metadata["traceback_"]``,
and a gradient with NaN raises. An error in the backward pass warns with the stack of the operation
that it belongs to; if that was recorded by another backward pass (``create_graph``), also with that
of the operation that was differentiated there.

Layer: ``autograd``. Reference: PyTorch's ``torch.autograd.detect_anomaly``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd.labels import edge_of
from functrans.autograd.modes import Scope, modes
from functrans.autograd.nodes import GraphNode
from functrans.ir.avals import Zero
from functrans.ir.source import resolve
from functrans.trace import Tracer


class _Anomaly(Scope):
    """Anomaly mode in a ``with`` block."""

    def __init__(self, mode: bool, check_nan: bool) -> None:
        self.mode = bool(mode)
        self.check_nan = bool(check_nan)
        self._before = modes.anomaly, modes.check_nan

    def __enter__(self) -> None:
        modes.update(anomaly=self.mode, check_nan=self.check_nan)

    def __exit__(self, *_: object) -> None:
        """Restore the mode."""
        anomaly, check = self._before
        modes.update(anomaly=anomaly, check_nan=check)


class detect_anomaly(_Anomaly):  # noqa: N801  # torch's name
    """Find the operation whose gradient fails or is NaN; for debugging, since it takes time.

    A context manager and a decorator, for the calling thread. Operations have to be recorded inside
    for their stack to be known.

    Args:
      check_nan: whether NaN in a gradient raises.

    Example:
      >>> import warnings
      >>> from functrans.autograd import tensor
      >>> x = tensor(0.0, requires_grad=True)
      >>> with warnings.catch_warnings():
      ...     warnings.simplefilter("ignore")
      ...     with detect_anomaly():
      ...         try:
      ...             (x / x).backward()
      ...         except RuntimeError as error:
      ...             print(error)
      Function 'DivBackward0' returned nan values in its 1th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        super().__init__(True, check_nan)
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._before = modes.anomaly, modes.check_nan
        super().__enter__()

    def clone(self) -> Any:
        """Another one of the same meaning, for one call of a decorated function."""
        return set_detect_anomaly(True, self.check_nan)


class set_detect_anomaly(_Anomaly):  # noqa: N801  # torch's name
    """Switch anomaly mode at once; at the end of a ``with`` block it is as before.

    Args:
      mode: whether it is on.
      check_nan: whether NaN in a gradient raises.

    Example:
      >>> with set_detect_anomaly(True):
      ...     is_anomaly_enabled()
      True
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(mode, check_nan)
        modes.update(anomaly=self.mode, check_nan=self.check_nan)

    def clone(self) -> Any:
        """Another one of the same meaning, for one call of a decorated function."""
        return set_detect_anomaly(self.mode, self.check_nan)


def is_anomaly_enabled() -> bool:
    """Whether this thread is in anomaly mode.

    Example:
      >>> is_anomaly_enabled()
      False
    """
    return modes.anomaly


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN.

    Example:
      >>> is_anomaly_check_nan_enabled()
      True
    """
    return modes.check_nan


# what the backward pass asks ---------------------------------------------------------------------


def check_nan(node: GraphNode, pulled: Sequence[Any], gradient: Callable[[Any, Any], Any]) -> None:
    """Raise on NaN in a gradient.

    Args:
      node: the node that ran.
      pulled: cotangents of its operands.
      gradient: makes of a cotangent and its node a tensor.

    Raises:
      RuntimeError: names the node and the operand.
    """
    for i, (ct, parent) in enumerate(zip(pulled, node.parents, strict=True)):
        if ct is None or parent is None or type(ct) is Zero:
            continue
        value = gradient(ct, parent)._value
        if not isinstance(value, Tracer) and np.isnan(value).any():
            raise RuntimeError(f"Function '{node.name()}' returned nan values in its {i}th output.")


def explain(node: Any, error: Exception) -> None:
    """Say where the operation was recorded whose gradient failed.

    Args:
      node: the node that was running, or ``None``.
      error: what it raised; gets a note with the user's line.
    """
    if not isinstance(node, GraphNode):
        return
    node = edge_of(node)[0]
    line = resolve(node.source)
    if line is not None:
        error.add_note(f"in the gradient of {node.name()}, recorded at {line}")
    if modes.anomaly:
        _warn_of(node)


def _warn_of(node: Any) -> None:
    """Warn with the stacks of a node and of those that led to it."""
    stack = node.forward_stack
    if stack is None:
        text = (
            f"Error detected in {node.name()}. No forward pass information available. Enable "
            "detect anomaly during forward pass for more information."
        )
    else:
        text = (
            f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n"
            f"{stack}"
        )
    warnings.warn(text, stacklevel=2)
    while True:
        origin = node.metadata.get("parent_")
        if origin is None:
            return
        stack = origin.forward_stack
        text = f"Previous calculation was induced by {origin.name()}. " + (
            f"Traceback of forward call that induced the previous calculation:\n{stack}"
            if stack is not None
            else "No forward pass information available. Enable detect anomaly during forward "
            "pass for more information."
        )
        warnings.warn(text, stacklevel=2)
        node = origin
