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

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from functrans.autograd.labels import edge_of, label_of
from functrans.autograd.modes import Scope, modes
from functrans.autograd.nodes import GraphNode
from functrans.control.callbacks import debug_callback
from functrans.core.annotations import ANOMALY_ORIGIN
from functrans.core.avals import Zero
from functrans.core.boundary import boundary, warn
from functrans.core.dispatch import Tracer
from functrans.core.source import resolve
from functrans.core.state import config, current_config
from functrans.core.values import Array
from functrans.passes.cotangents import plain
from functrans.passes.nodes import Node
from functrans.passes.pullback import pull
from functrans.passes.pushforward import push
from functrans.passes.staging import StagingTracer


class _Anomaly(Scope):
    """Anomaly mode in a ``with`` block."""

    def __init__(self, mode: bool, check_nan: bool) -> None:
        self.mode = bool(mode)
        self.check_nan = bool(check_nan)
        self._before = modes.anomaly, modes.check_nan

    def __enter__(self) -> None:
        modes.change({"anomaly": self.mode, "check_nan": self.check_nan})

    def __exit__(self, *_: object) -> None:
        """Restore the mode."""
        modes.anomaly, modes.check_nan = self._before
        modes.update()

    def clone(self) -> set_detect_anomaly:
        """Another one of the same meaning, for one call of a decorated function."""
        return set_detect_anomaly(self.mode, self.check_nan)


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
        warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging."
        )

    def __enter__(self) -> None:
        self._before = modes.anomaly, modes.check_nan
        super().__enter__()


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

    @boundary
    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        super().__init__(mode, check_nan)
        modes.update(anomaly=self.mode, check_nan=self.check_nan)


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


def check_nan(node: Node, pulled: Sequence[Any]) -> None:
    """Raise on NaN in what a node pulled back.

    A value that is not known yet, as under ``vmap``, is checked when its program runs. A step that
    ``jit`` traces gets no checks: its program is kept, and runs outside of the mode, too.

    Args:
      node: the node that ran.
      pulled: cotangents of its operands.

    Raises:
      RuntimeError: names the node and the operand.
    """
    for i, (ct, parent) in enumerate(zip(pulled, node.parents, strict=True)):
        if ct is None or parent is None or type(ct) is Zero:
            continue
        value = plain(ct)
        while isinstance(value, Tracer) and not isinstance(value, StagingTracer):
            value = value._value  # type: ignore[attr-defined]  # the traces that have values
        check = _Check(node, i)
        if not isinstance(value, StagingTracer):
            check(value)
        elif modes.session is None:
            debug_callback(check, value)


class _Check:
    """Raises on NaN in the cotangent of an operand."""

    __slots__ = ("name", "position", "source")
    __name__ = "check of a gradient"

    def __init__(self, node: Node, position: int) -> None:
        self.name = _name_of(node)
        self.position = position
        self.source = node.source

    def __call__(self, value: Array | complex) -> None:
        if np.isnan(value).any():
            error = RuntimeError(
                f"Function '{self.name}' returned nan values in its {self.position}th output."
            )
            _locate(error, self.name, self.source)
            raise error


def _name_of(node: Node) -> str:
    """Torch's name of a node, also of one that a functional transform recorded."""
    return node.name() if isinstance(node, GraphNode) else f"{label_of(node.primitive)}Backward0"


def _locate(error: Exception, name: str, source: Any) -> None:
    """Note in an error where the operation was recorded whose gradient failed."""
    line = resolve(source)
    note = f"in the gradient of {name}, recorded at {line}"
    if line is not None and note not in getattr(error, "__notes__", ()):
        error.add_note(note)


class _Watch:
    """Checks the backward pass of a functional transform; stands in the configuration.

    Attributes:
      other: what looks for NaN besides, since ``debug_nans`` is on.
    """

    __slots__ = ("other",)

    def __init__(self, other: Any) -> None:
        self.other = other

    def pull(self, node: Node, ct: Any, size: int | None = None) -> Sequence[Any]:
        """``passes.pullback.pull``, checked."""
        pulled: Sequence[Any] = (pull if self.other is None else self.other.pull)(node, ct, size)
        check_nan(node, pulled)
        return pulled

    def push(self, node: Node, tangents: Sequence[Any], size: int | None = None) -> Any:
        """``passes.pushforward.push``; tangents are not checked, nor are they in torch."""
        return (push if self.other is None else self.other.push)(node, tangents, size)

    def __getattr__(self, name: str) -> Any:
        """The further checks of ``debug_nans``."""
        return _no_check if self.other is None else getattr(self.other, name)


def _no_check(*_: object) -> None:
    """What other operations are checked for: nothing."""


def watching() -> AbstractContextManager[Any]:
    """Check what functional transforms pull back meanwhile, if this thread is in the mode."""
    if not (modes.anomaly and modes.check_nan):
        return nullcontext()
    return config(nan_watch=_Watch(current_config.get().nan_watch))


def unwatched() -> AbstractContextManager[Any]:
    """The end of ``watching`` for the function that is transformed."""
    watch = current_config.get().nan_watch
    return config(nan_watch=watch.other) if type(watch) is _Watch else nullcontext()


def explain(node: Any, error: Exception) -> None:
    """Say where the operation was recorded whose gradient failed.

    Args:
      node: the node that was running, or ``None``.
      error: what it raised; gets a note with the user's line.
    """
    if not isinstance(node, GraphNode):
        return
    node = edge_of(node)[0]
    _locate(error, node.name(), node.source)
    if modes.anomaly:
        _warn_of(node)


def _stack_of(node: Any) -> str | None:
    """Where a node was recorded, if that was in anomaly mode."""
    return next((n.value for n in node.annotations if n.kind is ANOMALY_ORIGIN), None)


def _warn_of(node: Any) -> None:
    """Warn with the stacks of a node and of those that led to it.

    Where warnings are errors, they are printed: the error that is on its way is more important.
    """
    stack = _stack_of(node)
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
    _tell(text)
    while True:
        origin = node.metadata.get("parent_")
        if origin is None:
            return
        stack = _stack_of(origin)
        text = f"Previous calculation was induced by {origin.name()}. " + (
            f"Traceback of forward call that induced the previous calculation:\n{stack}"
            if stack is not None
            else "No forward pass information available. Enable detect anomaly during forward "
            "pass for more information."
        )
        _tell(text)
        node = origin


def _tell(text: str) -> None:
    try:
        warn(text)
    except Warning as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
