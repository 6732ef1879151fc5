"""``jit`` of functions that work on tensors: whole steps with ``backward`` and optimizers.

Here: how a step becomes a program, and ``StepPrograms``, the programs of a jitted function with
what each depends on. Not here: the tensors of a trace (``autograd.jitted.session``), its end
(``autograd.jitted.closing``), calling a program (``autograd.jitted.steps``), the state that a
function holds (``autograd.jitted.held``), the compiler, the cache of programs without tensors
(``jitted.jit``).

The state that a function holds is a part of what its programs depend on: a number that somebody
changes leads to another program, but for those that are arguments. A step that creates tensors in
that state (an optimizer's, in its first step) is staged once more in the next call, with these as
arguments, and is interpreted in the first, unless it has long loops; one that meets a module or
optimizer that it does not hold is traced anew at once.

Layer: ``autograd.jitted``.
"""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from functrans import pytrees as tree
from functrans.autograd.jitted.closing import Counts, closed
from functrans.autograd.jitted.held import Part, State, check_declared
from functrans.autograd.jitted.session import Meets, Session
from functrans.autograd.jitted.steps import Step, plain
from functrans.autograd.modes import modes, torch_defaults
from functrans.autograd.recording import PERMANENT, node_of
from functrans.autograd.tensors import Tensor
from functrans.control.loops import scan_p
from functrans.core.boundary import warn
from functrans.core.caching import Recent
from functrans.core.dispatch import Tracer, aval_of, tracing
from functrans.core.jaxpr import Jaxpr, Var, subjaxprs
from functrans.core.state import config, current_config, open_traces
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.jitted.explanations import explain
from functrans.jitted.imperative import door
from functrans.jitted.jit import JitFunction
from functrans.jitted.lowered import LoweredStep
from functrans.passes.staging import StagingTrace, StagingTracer

_MAX_KINDS = 256
_MAX_PROGRAMS = 64
_MANY_PROGRAMS = 8
"""Programs for one kind of call with which a warning says what changes between calls."""
_settings: list[Callable[[], Hashable]] = []
"""Further settings that programs depend on; see ``depends_on``."""
_MAX_MET = 64
"""Objects that a step may meet beside what it holds; copies that it makes are new in each trace."""
_MANY_RUNS = 20_000
"""Equations that are run with which a program that is called once is compiled all the same."""
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
        """The variable of a captured array; with tracers of transforms, the step runs as it is."""
        if isinstance(value, Tracer) and id(value._trace) in self.around:
            raise _MeetsTransform
        if isinstance(value, Tensor) and _is_free(value) and id(value) not in modes.session.born:
            raise Meets(value)  # which is the tensors' trace's to process
        return super().const(value)


class StepPrograms:
    """The programs of a jitted function that works on tensors."""

    def __init__(self, function: JitFunction) -> None:
        self._function = weakref.ref(function)
        self._programs: Recent[Hashable, list[Step]] = Recent(_MAX_KINDS)
        self._unsettled: dict[Hashable, int] = {}
        """Calls in a row, by kind, that changed the state that they depend on."""
        self._counts: dict[tuple[int, Any], bool] = {}
        """Numbers that the function changes, and whether they are arguments."""

    def call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the function through a program that fits."""
        function = self._function()
        assert function is not None
        leaves, treedef, static = function.signature.split(args, kwargs)
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
        known = self._programs.kept(key, [])
        for i, program in enumerate(known):
            if program.fits(leaves):
                if open_traces.get() and any(_is_traced(p.find(leaves)) for p in program.hidden):
                    return function.function(*args, **kwargs)
                if i:
                    known.insert(0, known.pop(i))
                return program.run(leaves, name)
        count = self._unsettled.get(key, 0)
        try:
            program, changed, before = self._staged(args, kwargs, count < _SETTLED)
        except _MeetsTransform:
            return function.function(*args, **kwargs)
        if changed:
            self._unsettled[key] = count + 1
        else:
            self._unsettled.pop(key, None)
            self._keep(known, program)
        try:
            if changed and _n_runs(program.jaxpr) < _MANY_RUNS:  # called once: not worth compiling
                with config(native=False):
                    return program.run(leaves, name)
            return program.run(leaves, name)
        except BaseException:
            if changed:  # what was created has no values
                before.restore()
            raise

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
            warn(
                f"{label} was compiled {_MANY_PROGRAMS} times for the same kinds of arguments; the "
                f"last time because of {'; '.join(report[-1].changes) or 'replaced state'}. A "
                "number that changes between calls is better a tensor, and what the step does not "
                "use does not count if what it uses is declared: ft.jit(step, state=...); "
                "explain() tells of all programs",
                RuntimeWarning,
            )

    def lower(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> LoweredStep:
        """The program of a call, which is not run."""
        function = self._function()
        assert function is not None
        try:
            program, changed, _ = self._staged(args, kwargs, True, is_kept=False)
        except _MeetsTransform:
            raise UnsupportedOperationError(
                f"{repr(function)[1:-1]}: the function refers to a value of a transform around "
                "the call, for which it has no program; pass the value as an argument"
            ) from None
        return LoweredStep(function.signature, program.jaxpr, program.captured, changed)

    def _staged(
        self, args: Sequence[Any], kwargs: object, may_change: bool, is_kept: bool = True
    ) -> tuple[Step, str, State]:
        """The program of a call, what state that creates, and the state before.

        The function is traced until it is known what it meets beside what it holds, and which
        numbers it changes: these are arguments, but where Python asks for their values.
        """
        function = self._function()
        assert function is not None
        met: list[Any] = []
        counts = dict(self._counts)
        while True:
            trace = _Trace(function, met, counts)
            try:
                found = trace.run(args, kwargs, may_change, is_kept)
                self._counts = counts
                return *found, trace.before
            except Meets as meeting:
                met.append(meeting.value)
            except Counts as counting:
                counts[counting.place] = True
            except (TypeError, UnsupportedOperationError):
                if not trace.numbers:
                    raise
                counts.update(dict.fromkeys(trace.numbers, False))

    def kept(self) -> list[Step]:
        """All programs."""
        return [program for programs in self._programs.all() for program in programs]

    def clear(self) -> None:
        """Forget all programs."""
        self._programs.clear()
        self._unsettled.clear()
        self._counts = {}


def _n_runs(jaxpr: Jaxpr) -> float:
    """How many equations an interpreter runs; infinite where values tell how often."""
    total = 0.0
    for eqn in jaxpr.eqns:
        is_known = eqn.primitive.is_call or eqn.primitive is scan_p
        times = eqn.params.get("length", 1) if is_known else None
        inner = sum(map(_n_runs, subjaxprs(eqn.params)))
        total += 1 + (inner and inner * (math.inf if times is None else times))
    return total


def _repeats(leaves: Sequence[Any]) -> Hashable:
    """Which tensor arguments are the same as earlier ones."""
    first: dict[int, int] = {}
    return tuple(
        [first.setdefault(id(x), i) if isinstance(x, Tensor) else i for i, x in enumerate(leaves)]
    )


def _leaf_key(leaf: Any) -> Hashable:
    if isinstance(leaf, Tensor):
        own = leaf._memory()  # which elements share memory, and where numbers are drawn
        layout = None if isinstance(own, Tracer) or own.flags.c_contiguous else own.strides
        return Tensor, leaf.shape, leaf.dtype, node_of(leaf) is None, layout
    value = aval_of(leaf)
    return value.shape, value.dtype, value.weak  # type: ignore[union-attr]  # no tape


class _Trace:
    """One attempt to trace a step.

    Args:
      function: the jitted function.
      met: what it is known to meet beside what it holds.
      counts: numbers that it changes, and whether they are arguments.

    Attributes:
      numbers: where the numbers stand that were arguments.
    """

    def __init__(
        self, function: JitFunction, met: Sequence[Any], counts: Mapping[tuple[int, Any], bool]
    ) -> None:
        self.function = function
        self.label = repr(function)[1:-1]
        self.start = time.perf_counter()
        self.counts = counts
        self.meets = len(met) < _MAX_MET
        self.before = before = State(function, met)
        numbers = [
            *before.numbers,
            *((p, k) for p in before.parts for k in p.keys if p.is_declared),
        ]
        default = set(map(_place, before.numbers))
        self._arguments = {
            _place(number): number
            for number in numbers
            if counts.get(_place(number), _place(number) in default)
        }
        self.numbers: list[tuple[int, Any]] = []

    def run(
        self, args: Sequence[Any], kwargs: object, may_change: bool, is_kept: bool
    ) -> tuple[Step, str]:
        """The program of a call, and what state it creates, so that the next is another.

        Args:
          args: the arguments.
          kwargs: those by name.
          may_change: whether it may create state.
          is_kept: whether state that it creates is to stay, for the program to fill.
        """
        before, label = self.before, self.label
        staging = _StepStaging(label)
        outer = modes.session
        is_done = False
        try:
            with tracing(staging):
                session = Session(staging, label, before.known, self.meets)
                with tracing(session.trace):
                    try:
                        modes.update(session=session)
                        step, changed = self._traced(session, args, kwargs)
                    finally:
                        modes.session = outer
                        modes.update()
                        session.restore()
            if changed and not may_change:
                raise UnsupportedOperationError(
                    f"{label}: each call changes {changed}, so that no program could be used "
                    "twice; do that outside of the jitted step"
                )
            for name in before.changed_readings():
                raise UnsupportedOperationError(
                    f"{label}: the step changes what {name} gives, which a program cannot put "
                    "back; use tensors, or let it give the dictionary or list that holds the "
                    "numbers (vars(self))"
                )
            is_done = is_kept
            return step, changed
        finally:
            if not is_done:
                before.restore()

    def _traced(self, session: Session, args: Any, kwargs: Any) -> tuple[Step, str]:
        function, before, staging = self.function, self.before, session.staging
        leaves, treedef, _ = function.signature.split(args, kwargs)
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
        for place, (part, key) in self._arguments.items():
            if session.adopt_number(part, key):
                self.numbers.append(place)
        for reached in before.tensors:  # arrays among the arguments may meet them
            if _is_free(reached):
                session.adopt(reached)
        given, named, containers = function.signature.arguments_with(args, kwargs, treedef, inner)
        result = function.function(*given, **named)
        _refuse_changed_containers(self.label, containers, treedef, inner)
        return closed(function, session, before, self.counts, leaves, arguments, result, self.start)


def _place(number: tuple[Part, Any]) -> tuple[int, Any]:
    """How the place of a number is told from others: its key may be a tensor."""
    part, key = number
    return id(part.holder), key if isinstance(key, (str, int)) else id(key)


def _refuse_changed_containers(
    label: str, containers: Sequence[Any], treedef: object, leaves: Sequence[Any]
) -> None:
    """Refuse what a step stores in dictionaries and lists among its arguments."""
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
    """Stands for a session where none is: what asks for it leaves the trace."""

    def __init__(self) -> None:
        self.born: dict[int, Tensor] = {}
        self._made: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        raise _NeedsTensors

    def share(self, tensor: Tensor) -> None:
        """Nothing: constants are none of its business."""

    def meet(self, holder: object) -> None:
        """Leave the trace: what a module or an optimizer holds counts."""
        if id(holder) not in self._made:
            raise _NeedsTensors

    def note_made(self, holder: object) -> None:
        """Note that an object with state was made by the function."""
        self._made[id(holder)] = holder


def _is_traced(leaf: Any) -> bool:
    """Whether an argument belongs to a transform around the call."""
    return isinstance(leaf, Tracer) and getattr(leaf, "_trace", None) is not PERMANENT


class _Tensors:
    """What ``jitted.jit`` asks about tensors: an ``Imperative``."""

    def is_known(self, function: JitFunction) -> bool:
        return function.state is not None or function._imperative is not None

    @property
    def is_staging(self) -> bool:
        return isinstance(modes.session, Session)

    def check_state(self, state: object) -> None:
        check_declared(state)

    def meet(self, function: JitFunction) -> None:
        modes.session.meet(function)

    def note_made(self, function: JitFunction) -> None:
        if modes.session is not None:
            modes.session.note_made(function)

    def is_tensor(self, leaf: Array | Tensor) -> bool:
        return isinstance(leaf, Tensor)

    @contextmanager
    def looking_for_tensors(self, function: JitFunction) -> Iterator[None]:
        outer = modes.session
        try:
            modes.update(session=outer or _Probe())
            yield
        except _NeedsTensors:
            if outer is not None:
                raise
            function._imperative = StepPrograms(function)
        finally:
            modes.session = outer
            modes.update()

    def call(self, function: JitFunction, args: Any, kwargs: Any) -> Any:
        if any(map(_is_traced, tree.leaves((args, dict(kwargs))))):
            return function.function(*args, **kwargs)
        found: Any = self._programs_of(function).call(args, kwargs)
        return found

    def lower(self, function: JitFunction, args: Any, kwargs: Any) -> LoweredStep:
        return self._programs_of(function).lower(args, kwargs)

    def _programs_of(self, function: JitFunction) -> StepPrograms:
        """The programs of a function that works on tensors."""
        if function._imperative is None:
            function._imperative = StepPrograms(function)
        assert isinstance(function._imperative, StepPrograms)
        return function._imperative


IMPERATIVE = _Tensors()
door.side = IMPERATIVE
