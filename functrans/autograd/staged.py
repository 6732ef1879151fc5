"""``jit`` of functions that work on tensors: whole steps with ``backward`` and optimizers.

Here: how a step becomes a program, and ``StepPrograms``, the programs of a jitted function with
what each depends on. Not here: the tensors of a trace (``autograd.session``), its end
(``autograd.closing``), calling a program (``autograd.steps``), the Python state that a function
reaches (``autograd.reachable``), the compiler, the cache of programs without tensors
(``control.jit``).

The Python state that a function can reach is a part of what its programs depend on: a number that
somebody changes leads to another program, but for those that are arguments. A step that creates
tensors in that state (an optimizer's, in its first step) is staged once more, with these as
arguments.

Layer: ``autograd``.
"""

from __future__ import annotations

import time
import warnings
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from functrans import tree
from functrans.autograd.closing import closed
from functrans.autograd.modes import modes, torch_defaults
from functrans.autograd.reachable import State
from functrans.autograd.recording import PERMANENT, node_of
from functrans.autograd.session import Session
from functrans.autograd.steps import (
    Step,
    plain,
)
from functrans.autograd.tensors import Tensor
from functrans.control.explanations import explain
from functrans.control.jit import JitFunction, install_tensors
from functrans.control.lowered import LoweredStep
from functrans.errors import UnsupportedOperationError
from functrans.ir.jaxpr import Var
from functrans.staging import StagingTrace, StagingTracer
from functrans.state import current_config, open_traces
from functrans.trace import Tracer, aval_of, tracing

_MAX_PROGRAMS = 64
_MANY_PROGRAMS = 8
"""Programs for one kind of call with which a warning says what changes between calls."""
_settings: list[Callable[[], Hashable]] = []
"""Further settings that programs depend on; see ``depends_on``."""
_SETTLED = 3
"""Calls of one kind that may create state before it is an error."""


def depends_on(setting: Callable[[], Hashable]) -> None:
    """Let programs of steps depend on what a function returns at each call."""
    _settings.append(setting)


class _MeetsTransform(BaseException):
    """A step that is being staged refers to a value of a transform around the call."""


class _StepStaging(StagingTrace):
    """The trace of the values of a step, which is for permanent tensors alone."""

    def __init__(self, label: str) -> None:
        super().__init__(label)
        self.around = frozenset(map(id, open_traces.get()))

    def const(self, value: Any) -> Var:
        """The variable of a captured array; with tracers of transforms, the step runs as it is.

        Raises:
          _MeetsTransform: it is one.
        """
        if isinstance(value, Tracer) and id(value._trace) in self.around:
            raise _MeetsTransform
        return super().const(value)


class StepPrograms:
    """The programs of a jitted function that works on tensors."""

    def __init__(self, function: JitFunction) -> None:
        self._function = weakref.ref(function)
        self._programs: dict[Hashable, list[Step]] = {}
        self._unsettled: dict[Hashable, int] = {}
        """Calls in a row, by kind, that changed the state that they depend on."""

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the function through a program that fits."""
        function = self._function()
        assert function is not None
        leaves, treedef, static = function.split(args, kwargs)
        key = (
            treedef,
            static,
            tuple(map(_leaf_key, leaves)),
            _repeats(leaves),
            modes.grad,
            current_config.get(),
            torch_defaults.dtype,
            tuple([setting() for setting in _settings]),
        )
        name = getattr(function, "__name__", "step")
        known = self._programs.setdefault(key, [])
        for i, program in enumerate(known):
            if program.fits(leaves):
                if open_traces.get() and any(_is_traced(p.now(leaves)) for p in program.hidden):
                    return function.function(*args, **kwargs)
                if i:
                    known.insert(0, known.pop(i))
                return program.run(leaves, name)
        count = self._unsettled.get(key, 0)
        try:
            program, changed = _staged(function, args, kwargs, leaves, treedef, count < _SETTLED)
        except _MeetsTransform:
            return function.function(*args, **kwargs)
        if changed:
            self._unsettled[key] = count + 1
        else:
            self._unsettled.pop(key, None)
            self._keep(known, program)
        return program.run(leaves, name)

    def _keep(self, known: list[Step], program: Step) -> None:
        known.insert(0, program)
        del known[_MAX_PROGRAMS:]
        if len(known) == _MANY_PROGRAMS:
            function = self._function()
            label = repr(function)[1:-1]
            programs = sorted(known, key=lambda step: step.origin.number)
            report = explain(
                label, [(p.origin, p.jaxpr, None) for p in programs], current_config.get()
            )
            warnings.warn(
                f"{label} was compiled {_MANY_PROGRAMS} times for the same kinds of arguments; the "
                f"last time because of {'; '.join(report[-1].changes) or 'replaced state'}. A "
                "number that changes between calls is better a tensor; explain() tells of all "
                "programs",
                RuntimeWarning,
                stacklevel=5,
            )

    def lower(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> LoweredStep:
        """The program of a call, which is not run."""
        function = self._function()
        assert function is not None
        leaves, treedef, _ = function.split(args, kwargs)
        try:
            program, changed = _staged(function, args, kwargs, leaves, treedef, True, is_kept=False)
        except _MeetsTransform:
            raise UnsupportedOperationError(
                f"{repr(function)[1:-1]}: the function refers to a value of a transform around "
                "the call, for which it has no program; pass the value as an argument"
            ) from None
        return LoweredStep(function, program.jaxpr, program.captured, changed)

    def kept(self) -> list[Step]:
        """All programs."""
        return [program for programs in self._programs.values() for program in programs]

    def clear(self) -> None:
        """Forget all programs."""
        self._programs.clear()


def _repeats(leaves: Sequence[Any]) -> Hashable:
    """Which tensor arguments are the same as earlier ones."""
    first: dict[int, int] = {}
    return tuple(
        [first.setdefault(id(x), i) if isinstance(x, Tensor) else i for i, x in enumerate(leaves)]
    )


def _leaf_key(leaf: Any) -> Hashable:
    if isinstance(leaf, Tensor):
        return Tensor, leaf.shape, leaf.dtype, node_of(leaf) is None
    value = aval_of(leaf)
    return value.shape, value.dtype, value.weak  # type: ignore[union-attr]  # no tape


def _staged(
    function: JitFunction,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    leaves: Sequence[Any],
    treedef: Any,
    may_change: bool,
    is_kept: bool = True,
) -> tuple[Step, str]:
    """The program of a call, and what state it creates, so that the next is another.

    Args:
      function: the jitted function.
      args: its arguments.
      kwargs: its arguments by name.
      leaves: their leaves.
      treedef: their structure.
      may_change: whether it may create state.
      is_kept: whether state that it creates is to stay, for the program to fill.
    """
    label = repr(function)[1:-1]
    start = time.perf_counter()
    fun = function.function
    roots = [(fun, getattr(fun, "__name__", "step"))]
    before = State(roots)
    staging = _StepStaging(label)
    outer = modes.session
    is_done = False
    with tracing(staging):
        session = Session(staging, label)
        with tracing(session.trace):
            try:
                modes.update(session=session)
                inner: list[Any] = []
                arguments: list[StagingTracer] = []
                for leaf in leaves:
                    argument = staging.argument(aval_of(plain(leaf)))
                    arguments.append(argument)
                    if isinstance(leaf, Tensor):
                        session.adopt_argument(leaf, argument)
                        inner.append(leaf)
                    else:
                        inner.append(argument)
                for watch, key in before.numbers:
                    session.adopt_number(watch, key)
                for reached, _ in before.tensors:  # arrays among the arguments may meet them
                    if _is_free(reached):
                        session.adopt(reached)
                given, named, containers = function.arguments_with(args, kwargs, treedef, inner)
                result = fun(*given, **named)
                _refuse_changed_containers(label, containers, treedef, inner)
                step, changed = closed(
                    function, session, before, State(roots), leaves, arguments, result, start
                )
                if changed and not may_change:
                    raise UnsupportedOperationError(
                        f"{label}: each call changes {changed}, so that no program could be used "
                        "twice; do that outside of the jitted step"
                    )
                is_done = is_kept
                return step, changed
            finally:
                modes.session = outer
                modes.update()
                session.restore()
                if not is_done:
                    before.restore()


def _refuse_changed_containers(
    label: str, containers: Any, treedef: Any, leaves: Sequence[Any]
) -> None:
    """Refuse what a step stores in dictionaries and lists among its arguments.

    Raises:
      UnsupportedOperationError: it stored something.
    """
    now, structure = tree.flatten(containers)
    if structure != treedef or any(a is not b for a, b in zip(now, leaves, strict=True)):
        raise UnsupportedOperationError(
            f"{label}: the step stores something in a container among its arguments, which a "
            "program cannot do; write to the tensors in it (x.copy_(...)), or return the new ones"
        )


def _is_free(tensor: Tensor) -> bool:
    """Whether a tensor can be an argument just in case."""
    return (
        tensor._trace is PERMANENT
        and tensor._view is None
        and (tensor._node is None or tensor._node.primitive is None)
    )


# the way in --------------------------------------------------------------------------------------


class _NeedsTensors(BaseException):
    """A function that is being staged by ``jit`` met a tensor."""


class _Probe:
    """Stands for a session where none is: it says that there should be one."""

    @property
    def trace(self) -> Any:
        """Leave the trace."""
        raise _NeedsTensors

    @property
    def born(self) -> dict[int, Tensor]:
        """Nothing: constants are none of its business."""
        return {}

    def share(self, tensor: Tensor) -> None:
        """Nothing, as for constants."""

    def take(self, operands: Sequence[Any]) -> Any:
        """Leave the trace."""
        raise _NeedsTensors

    def touch(self, tensor: Tensor) -> Any:
        """Leave the trace."""
        raise _NeedsTensors


_PROBE = _Probe()


def _is_traced(leaf: Any) -> bool:
    """Whether an argument belongs to a transform around the call."""
    return isinstance(leaf, Tracer) and getattr(leaf, "_trace", None) is not PERMANENT


class Imperative:
    """What ``control.jit`` asks about tensors."""

    def __init__(self) -> None:
        self._programs: weakref.WeakKeyDictionary[JitFunction, StepPrograms] = (
            weakref.WeakKeyDictionary()
        )

    def is_known(self, function: JitFunction) -> bool:
        """Whether a function was found to work on tensors."""
        return function in self._programs

    @property
    def is_staging(self) -> bool:
        """Whether a step is being traced in this thread."""
        return isinstance(modes.session, Session)

    def is_tensor(self, leaf: Any) -> bool:
        """Whether an argument is a tensor; with those of a transform, functions run as they are."""
        return isinstance(leaf, Tensor)

    @contextmanager
    def looking_for_tensors(self, function: JitFunction) -> Iterator[list[bool]]:
        """Notice permanent tensors in a function that is being staged.

        Yields:
          A list that has an element afterwards if there were any; nothing was staged then.
        """
        found: list[bool] = []
        outer = modes.session
        try:
            modes.update(session=outer or _PROBE)
            yield found
        except _NeedsTensors:
            if outer is not None:
                raise
            found.append(True)
            self._programs[function] = StepPrograms(function)
        finally:
            modes.session = outer
            modes.update()

    def call(self, function: JitFunction, args: Any, kwargs: Any) -> Any:
        """Call a function that works on tensors; under a transform it runs as it is."""
        if any(map(_is_traced, tree.leaves((args, dict(kwargs))))):
            return function.function(*args, **kwargs)
        programs = self._programs.get(function)
        if programs is None:
            programs = self._programs[function] = StepPrograms(function)
        return programs.call(args, kwargs)

    def lower(self, function: JitFunction, args: Any, kwargs: Any) -> LoweredStep:
        """The program of a call of a function that works on tensors."""
        programs = self._programs.get(function)
        if programs is None:
            programs = self._programs[function] = StepPrograms(function)
        return programs.lower(args, kwargs)

    def programs(self, function: JitFunction) -> list[Step]:
        """The programs of a function that are kept."""
        programs = self._programs.get(function)
        return [] if programs is None else programs.kept()

    def clear(self, function: JitFunction) -> None:
        """Forget a function's programs."""
        programs = self._programs.get(function)
        if programs is not None:
            programs.clear()


IMPERATIVE = Imperative()
install_tensors(IMPERATIVE)
