"""Grad modes: what imperative operations record, per thread.

Not here: what is recorded (``autograd.recording``).

The modes of a thread are attributes of one ``threading.local``: every operation reads them.

Layer: ``autograd``.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from functrans.core.boundary import boundary, warn


class Modes(threading.local):
    """Modes of the calling thread.

    Attributes:
      grad: whether operations on tensors that require gradients are recorded.
      is_asked: whether ``enable_grad`` asks for it in inference mode, where nothing is recorded.
      inference: whether results are inference tensors.
      forward: whether transforms of forward mode around it see tangents; inference mode hides them.
      multithreading: kept for torch's sake; the backward pass runs in the calling thread.
      packers: innermost last, pairs ``(pack, unpack)`` of hooks for saved tensors.
      no_packers: why hooks for saved tensors are refused, if they are.
      mutation: keeps saved tensors that are written to; see
        ``graph.allow_mutation_on_saved_tensors``.
      anomaly: whether recorded operations remember the stack, and their gradients are checked.
      check_nan: whether anomaly mode looks for NaN.
      observers: called with ``(name, operands)`` around every operation; see
        ``autograd.profiler``.
      batches: levels of ``vmap``, outermost first, which say how random numbers are drawn.
      session: the tracing of a step by ``jit`` that this thread is in (``autograd.jitted``).
      level: the number of the innermost transform of ``torch.func`` that runs, 0 outside of all; a
        transform has a higher number than those before it.
      derivative: the numbers of the transforms that differentiate, and the tensors that they hand
        on as they are, by identities of the arguments that stand for them: nothing else from
        outside of one of them may be written to.
      mapped: arguments of ``vmap``, which reads them when the function has run.
      is_inside: whether a new tensor has to look at ``session`` and ``level``.
      is_watched: whether an operation has to look at ``observers`` and ``session`` first.
      is_special: whether an operation has to look at more than ``grad``.
      overwritten: the storage that an in-place operation is about to write to, where hooks for
        saved tensors have to see copies.
      is_viewing: whether a view is being made, whose result is told itself what it shares.
    """

    grad = True
    is_asked = False
    inference = False
    forward = True
    multithreading = True
    packers: tuple[Any, ...] = ()
    no_packers: str | None = None
    mutation: Any = None
    anomaly = False
    check_nan = True
    observers: tuple[Any, ...] = ()
    batches: tuple[Any, ...] = ()
    session: Any = None
    level = 0
    derivative: tuple[tuple[int, ...], Mapping[int, Any]] = ((), MappingProxyType({}))
    mapped: tuple[Any, ...] = ()
    is_inside = False
    is_watched = False
    is_special = False
    is_viewing = False
    overwritten: Any = None

    def record(self, grad: bool) -> None:
        """Record from now on, or do not; inference mode is stronger."""
        self.grad = grad and not self.inference
        self.is_asked = grad and self.inference

    def update(self, **values: object) -> None:
        """Set some of them.

        Where modes are restored, set them as attributes and then call this without arguments: an
        interrupt may come before the first instruction of any function.
        """
        self.__dict__.update(values)
        self.is_inside = bool(self.level or self.session is not None)
        self.is_watched = bool(self.observers or self.session is not None)
        self.is_special = bool(self.inference or self.packers or self.anomaly or self.observers)

    def change(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Set some of them, or none where an interrupt comes.

        Returns:
          What they were, by name.
        """
        before = {name: getattr(self, name) for name in values}
        try:
            self.update(**values)
        except BaseException:
            self.__dict__.update(before)
            self.update()
            raise
        return before


modes = Modes()


RECORDING = {"grad": True, "is_asked": False, "inference": False, "forward": True}
"""The modes in which everything is recorded."""


class entered:  # noqa: N801  # used as a function, like contextlib's
    """Modes of other values, for a ``with`` block.

    Args:
      values: by the names of ``Modes``.
    """

    __slots__ = ("before", "values")

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def __enter__(self) -> None:
        self.before = modes.change(self.values)

    def __exit__(self, *_: object) -> None:
        """Restore the modes."""
        modes.__dict__.update(self.before)
        modes.update()


class TorchDefaults:
    """Settings of ``functrans.compat.torch``, for the process.

    Attributes:
      dtype: of Python floats there, and of floating results from integer tensors made there.
      warns_always: whether what is warned of once is warned of each time.
    """

    dtype = np.dtype(np.float32)
    warns_always = False


torch_defaults = TorchDefaults()


class Scope:
    """A mode for a ``with`` block, a decorated function or a decorated generator.

    A decorated generator has the mode while it runs, and not while it waits.
    """

    _settings: tuple[str, ...] = ()
    """The arguments of the constructor, which are attributes."""

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *_: object) -> None:
        raise NotImplementedError

    def clone(self) -> Scope:
        """Another one of the same meaning, for one call of a decorated function."""
        return type(self)(*[getattr(self, name) for name in self._settings])

    def __call__(self, fun: Callable[..., Any]) -> Any:
        """Decorate a function."""
        if inspect.isclass(fun):
            warn(
                f"{type(self).__name__} decorates the class {fun.__name__}, which is deprecated: "
                "the mode is that of its `__init__` only, and the name stands for a function. "
                "Decorate methods",
                FutureWarning,
            )
        if inspect.isgeneratorfunction(fun):
            return self._on_generator(fun)

        @functools.wraps(fun)
        def in_mode(*args: object, **kwargs: object) -> Any:
            with self.clone():
                return fun(*args, **kwargs)

        return in_mode

    def _on_generator(self, fun: Callable[..., Any]) -> Any:
        @functools.wraps(fun)
        def in_mode(*args: object, **kwargs: object) -> Any:
            generator = fun(*args, **kwargs)
            try:
                with self.clone():
                    item = next(generator)
                while True:
                    try:
                        sent = yield item
                    except GeneratorExit:
                        with self.clone():
                            generator.close()
                        raise
                    except BaseException as error:
                        with self.clone():
                            item = generator.throw(error)
                    else:
                        with self.clone():
                            item = generator.send(sent)
            except StopIteration as end:
                return end.value

        return in_mode


class _GradMode(Scope):
    """Recording on or off."""

    value: bool

    def __new__(cls, fun: Any = None) -> Any:
        """``@no_grad`` without parentheses decorates."""
        self = object.__new__(cls)
        return self if fun is None else self(fun)

    def __enter__(self) -> None:
        self._before = modes.grad, modes.is_asked
        modes.record(self.value)

    def __exit__(self, *_: object) -> None:
        """Restore the mode."""
        modes.grad, modes.is_asked = self._before


class no_grad(_GradMode):  # noqa: N801  # torch's name
    """Operations are not recorded; results do not require gradients.

    A context manager and a decorator, for the calling thread only.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0], requires_grad=True)
      >>> with no_grad():
      ...     y = x * 2
      >>> y.requires_grad
      False
    """

    value = False


class enable_grad(_GradMode):  # noqa: N801  # torch's name
    """Operations are recorded, also inside ``no_grad``.

    A context manager and a decorator, for the calling thread only.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0], requires_grad=True)
      >>> with no_grad(), enable_grad():
      ...     (x * 2).requires_grad
      True
    """

    value = True


class set_grad_enabled(Scope):  # noqa: N801  # torch's name
    """Switch recording at once; at the end of a ``with`` block it is as before.

    Args:
      mode: whether operations are recorded.

    Raises:
      TypeError: ``mode`` is no bool.

    Example:
      >>> with set_grad_enabled(False):
      ...     is_grad_enabled()
      False
    """

    _settings = ("mode",)

    @boundary
    def __init__(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(
                "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not "
                f"{type(mode).__name__}"
            )
        self.mode = mode
        self._before = modes.grad, modes.is_asked
        modes.record(mode)

    def __enter__(self) -> None:
        modes.record(self.mode)

    def __exit__(self, *_: object) -> None:
        """Restore the mode."""
        modes.grad, modes.is_asked = self._before

    def __call__(self, fun: Callable[..., Any]) -> Any:
        """Decorate a function; the mode is no longer set outside of it."""
        modes.grad, modes.is_asked = self._before
        return super().__call__(fun)


class inference_mode(Scope):  # noqa: N801  # torch's name
    """Nothing is recorded, and results are inference tensors: never part of a recording.

    Args:
      mode: ``False`` switches it off inside.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0], requires_grad=True)
      >>> with inference_mode():
      ...     y = x * 2
      >>> y.is_inference()
      True
    """

    _settings = ("mode",)

    def __new__(cls, mode: Any = True) -> Any:
        """``@inference_mode`` without parentheses decorates."""
        self = object.__new__(cls)
        if isinstance(mode, bool):
            return self
        self.__init__(True)  # type: ignore[misc]  # the decorator without parentheses
        return self(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = bool(mode) if isinstance(mode, bool) else True

    def __enter__(self) -> None:
        normal = not self.mode
        values = {"grad": normal, "is_asked": False, "inference": self.mode, "forward": normal}
        self._scope = entered(values)
        self._scope.__enter__()

    def __exit__(self, *_: object) -> None:
        """Restore the modes."""
        self._scope.__exit__()


class set_multithreading_enabled(Scope):  # noqa: N801  # torch's name
    """Accepted for torch's sake: the backward pass always runs in the thread that calls it.

    Args:
      mode: what ``is_multithreading_enabled`` returns from now on.
    """

    _settings = ("mode",)

    @boundary
    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._before = modes.multithreading
        modes.multithreading = self.mode

    def __enter__(self) -> None:
        modes.multithreading = self.mode

    def __exit__(self, *_: object) -> None:
        """Restore the mode."""
        modes.multithreading = self._before


def is_grad_enabled() -> bool:
    """Whether operations are recorded in this thread.

    Example:
      >>> is_grad_enabled()
      True
    """
    return modes.grad or modes.is_asked


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode.

    Example:
      >>> is_inference_mode_enabled()
      False
    """
    return modes.inference


def is_multithreading_enabled() -> bool:
    """What ``set_multithreading_enabled`` set; ``True`` at first.

    Example:
      >>> is_multithreading_enabled()
      True
    """
    return modes.multithreading


def _profiler_enabled() -> bool:
    """Whether a profiler records."""
    return bool(modes.observers)
