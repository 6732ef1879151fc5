"""Dispatch: which trace an operation belongs to.

Here: the abstract ``Trace`` and ``Tracer``, ``bind`` and ``elementwise`` (the two ways to apply an
operation whoever its operands belong to), and ``tracing`` (opening a trace). Not here: the traces
(``passes.recording``, ``passes.pushing``, ``passes.staging``) or the operators of ``Tracer``, which
come through ``deferred``.

The dispatch rule: an operation with no tracer operand and no effect is evaluated at once, under
every trace. Otherwise the innermost open trace that owns an operand takes it; operands of enclosing
traces are constants to it. An operand of a closed trace raises ``EscapedTracerError``. Which of two
traces is inner is decided by following ``parent``, by identity, never by a number.

Layer: ``core``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import PYTHON_SCALARS, WEAK_DTYPES, Aval, ShapedArray, aval_of_plain
from functrans.core.boundary import Refusals, at_user, note_traced, settle
from functrans.core.byte_order import in_native_order, native_dtype
from functrans.core.deferred import deferred
from functrans.core.jaxpr import subjaxprs
from functrans.core.primitive import Primitive
from functrans.core.source import Captured, SourceLine, capture, here, resolve
from functrans.core.state import current_config, open_traces, replayed
from functrans.core.tapes import TapeValue
from functrans.errors import EscapedTracerError, NestingError, UnsupportedOperationError
from functrans.pytrees import LEAF_TYPES


class Trace:
    """The owner of the operations on its tracers (abstract).

    Attributes:
      parent: the trace that was innermost when this one was opened, or ``None``.
      is_open: whether the traced function is still running.
      is_direct: whether its tracers' operations belong to it without a further look: it is open,
        and no branch was staged inside it.
      label: what is traced, for messages: ``grad of loss``.
      source: the user's line that opened it.
      n_before: how many equations the innermost trace around it that stages had when it was opened.
      at_end: what is called when it is closed.
      refusals: what its values refused, if they did.
    """

    __slots__ = (
        "at_end", "is_direct", "is_open", "label", "n_before", "parent", "refusals", "source",
    )  # fmt: skip
    is_staging = False
    is_branch = False
    """Whether it stages what may not run: operations on tracers from outside belong to it, too."""
    is_root = False
    """Whether it encloses every other trace: that of tensors does."""

    def __init__(self, label: str) -> None:
        if not _have_operators:
            _give_operators()
        self.parent: Trace | None = None
        self.is_open = True
        self.is_direct = True
        self.label = label
        self.source: Captured | None = None
        self.n_before = 0
        self.at_end: list[Callable[[], None]] = []
        self.refusals: Refusals | None = None

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Apply a primitive of which an operand belongs to this trace."""
        raise NotImplementedError

    def lift(self, value: Any) -> Tracer:
        """A tracer of this trace for a constant."""
        raise NotImplementedError

    def enter(self, tracer: Any) -> Any:
        """What stands for a tracer of this trace as a constant of a program that is staged."""
        return tracer

    def annotate(self, tracer: object, note: object, is_result: bool = True) -> None:
        """Attach an annotation to a value of this trace, or to the equation that made it.

        Traces that keep no equations forget it.
        """

    def elementwise(self, primitive: Primitive, operands: tuple[Any, ...]) -> Any:
        """Apply an elementwise primitive without parameters; the one result, not a tuple."""
        return self.process(primitive, operands, {})[0]


class Alias:
    """How a tracer's memory is shared, as NumPy's basic slices share it.

    Attributes:
      base: the tracer it is a view of, or ``None``.
      read: the view as a function of the base.
      write: the base after the view was written, as a function of base and view.
      index: the basic index of the view, or ``None`` for a view made otherwise.
      views: weak references to the tracers that are views of it.
    """

    __slots__ = ("base", "index", "read", "views", "write")

    def __init__(
        self, base: Any = None, read: Any = None, write: Any = None, index: Any = None
    ) -> None:
        self.base = base
        self.read = read
        self.write = write
        self.index = index
        self.views: list[Any] = []


class Tracer:
    """Stand-in for an array inside a traced function (abstract).

    ``isinstance(x, functrans.Tracer)`` tells whether a value is traced. Tensors always are.

    Example:
      >>> import functrans as ft
      >>> def f(x):
      ...     print(isinstance(x, ft.Tracer))
      ...     return x**2
      >>> f(3.0), ft.grad(f)(3.0)
      False
      True
      (9.0, array(6.))

    It gets its operators when the first trace is made, NumPy's protocols and the ndarray methods
    when the first of them is used.
    """

    __slots__ = ("__weakref__", "_alias", "_trace")
    _trace: Trace
    _alias: Alias | None
    _is_array = True
    """Whether its methods are those of an ndarray."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("functrans."):  # another's may be a container
            LEAF_TYPES.add(cls)

    if TYPE_CHECKING:

        def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
            """What functions of arrays take it for."""

    else:  # methods that come later are not of any type

        def __getattr__(self, name: str) -> Any:
            _give_methods()
            return getattr(self, name)

        def __array_ufunc__(self, *args: object, **kwargs: object) -> Any:
            _give_methods()
            return self.__array_ufunc__(*args, **kwargs)

        def __array_function__(self, *args: object, **kwargs: object) -> Any:
            _give_methods()
            return self.__array_function__(*args, **kwargs)

    @property
    def aval(self) -> ShapedArray:
        """Shape and dtype."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """NumPy dtype."""
        return self.aval.dtype

    def _rebind(self, other: Any) -> None:
        """Take over the contents of another tracer of the same trace (in-place syntax)."""
        raise NotImplementedError

    def _twin(self) -> Any:
        """Another tracer of the same value, which in-place syntax on this one does not reach."""
        raise NotImplementedError

    def _fresh(self) -> Any:
        """The copy that a user asks for: a twin, unless the trace records copies."""
        return self._twin()

    def _describe(self) -> str:
        """What it is, for messages."""
        raise NotImplementedError

    def _made_at(self) -> Captured | SourceLine | None:
        """The user's line that made it, if it is known."""
        return None

    def _concrete(self, what: str) -> Any:
        """The plain value, for Python control flow; raises where there is none."""
        raise NotImplementedError


_lock = RLock()  # several threads may be the first


_have_operators = False
"""Whether tracers have their operators."""


def _give_operators() -> None:
    """Give tracers their operators, which stand above this module: before the first trace opens."""
    global _have_operators
    with _lock:
        if not _have_operators:
            _give(deferred.operator_table())
            _have_operators = True


def _give_methods() -> None:
    """Give tracers the NumPy protocols and ndarray methods, in place of what calls this."""
    with _lock:
        if "__getattr__" in Tracer.__dict__:
            _give(deferred.tracer_methods())
            delattr(Tracer, "__getattr__")


def _give(methods: Mapping[str, Any]) -> None:
    for name, method in methods.items():
        setattr(Tracer, name, method)


def escaped(tracer: Tracer) -> EscapedTracerError:
    """The error for a tracer whose trace is closed."""
    trace = tracer._trace
    began, made = resolve(trace.source), resolve(tracer._made_at())
    where = f", which started at {began}," if began is not None else ""
    origin = f", made at {made}," if made is not None else ""
    return EscapedTracerError(
        f"{tracer._describe()}{origin} was used{here(3)} after {trace.label}{where} had returned. "
        "A traced value lives only while its function runs: return it from the function "
        "(has_aux=True carries extra results out) instead of storing it."
    )


def inner_trace(first: Trace, second: Trace) -> Trace:
    """Which of two traces is the inner one.

    Raises:
      UnsupportedOperationError: neither encloses the other: they run side by side in two threads or
        tasks, so that each would take the other's values for constants.
    """
    for inner, outer in ((first, second), (second, first)):
        if outer.is_root:
            _enclose(inner, outer)
            return inner
        trace: Trace | None = inner
        while trace is not None:
            if trace is outer:
                return inner
            trace = trace.parent
    raise UnsupportedOperationError(
        f"a value of {first.label} met a value of {second.label}{here(3)}, and neither of the two "
        "was started inside the other: they run in different threads or tasks. Pass the value as "
        "an argument, or start the inner one within the context of the outer one "
        "(contextvars.copy_context().run)."
    )


def _enclose(inner: Trace, root: Trace) -> None:
    """Note that a trace has met values of the root: its own values may be traced from now on."""
    while inner.parent is not None:
        inner = inner.parent
    if inner is not root:
        inner.parent = root


def owner(operands: Sequence[Any]) -> Trace | None:
    """The innermost trace that owns an operand; ``None`` when there is no tracer among them.

    Raises:
      EscapedTracerError: a tracer's function has returned.
    """
    found: Trace | None = None
    for operand in operands:
        if isinstance(operand, Tracer):
            trace = operand._trace
            if trace is not found:
                if not trace.is_direct:
                    trace = _taking(trace, operand)
                found = trace if found is None else inner_trace(found, trace)
    return found


def _taking(trace: Trace, operand: Tracer) -> Trace:
    """The trace that an operation on a tracer belongs to: a branch that is being staged inside."""
    if not trace.is_open:
        raise escaped(operand)
    for inner in reversed(open_traces.get()):
        if inner is trace:
            break
        if inner.is_branch and inner.is_open:
            return inner
    return trace


def bind(primitive: Primitive, *operands: Any, **params: object) -> tuple[Any, ...]:
    """Apply a primitive under the trace that its operands belong to.

    Args:
      primitive: the operation.
      *operands: arrays, scalars or tracers.
      **params: static parameters.

    Returns:
      One result per output, always a tuple.

    Raises:
      EscapedTracerError: an operand's traced function has returned.
    """
    trace = owner(operands)
    if primitive.effects or (primitive.holds_programs and program_effects(params)):
        trace = effect_owner(trace)
    if trace is None:
        if primitive.holds_programs:  # one look at the settings for all of it
            return at_user(primitive.impl, *in_native_order(operands), **params)
        return primitive.impl(*in_native_order(operands), **params)
    return trace.process(primitive, operands, params)


def elementwise(primitive: Primitive, *operands: Any) -> Any:
    """Apply an elementwise primitive without parameters: ``bind`` for the hottest family."""
    trace = owner(operands)
    if trace is None:
        return primitive.elementwise.function(*operands)  # type: ignore[union-attr]  # it is elementwise
    return trace.elementwise(primitive, operands)


def program_effects(params: Mapping[str, Any]) -> bool:
    """Whether a program among the parameters of an equation has an effect."""
    return any(jaxpr.effects for jaxpr in subjaxprs(params))


def effect_owner(trace: Trace | None) -> Trace | None:
    """The trace of an operation with an effect, of which ``trace`` owns the operands.

    An effect inside a function that is being staged belongs to its program, whatever it acts on.
    """
    staging: Trace | None = innermost_staging()
    if staging is None or trace is None:
        return staging or trace
    return inner_trace(staging, trace)


def innermost_staging() -> Any:
    """The innermost open staging trace of this context, which takes effects; or ``None``.

    A task that outlives the function that started it has closed traces in its context.
    """
    for trace in reversed(open_traces.get()):
        if trace.is_staging and trace.is_open:
            return trace
    return None


class within:  # noqa: N801  # used like ``tracing``
    """Operate on the values of a trace as if no other had been opened inside it.

    For what belongs to them and outlives a branch that is being staged: views that are made when
    they are asked for.
    """

    __slots__ = ("token", "trace")

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    def __enter__(self) -> None:
        stack = open_traces.get()
        place = stack.index(self.trace) + 1 if self.trace in stack else len(stack)
        self.token = open_traces.set(stack[:place])

    def __exit__(self, *_: object) -> None:
        open_traces.reset(self.token)


def pass_on(
    notes: Mapping[Any, tuple[Any, ...]], places: Sequence[Any], values: Sequence[Any], eqn: object
) -> None:
    """Attach to values what a program attaches to the variables that they stand for.

    Args:
      notes: annotations of the program.
      places: variables.
      values: their values.
      eqn: the equation that they come from, or ``None``.
    """
    traced = [(place, x) for place, x in zip(places, values, strict=True) if isinstance(x, Tracer)]
    for place, x in traced:
        for note in notes.get(place, ()):
            x._trace.annotate(x, note)
    for note in notes.get(eqn, ()) if traced else ():
        x._trace.annotate(x, note, False)


class replaying:  # noqa: N801  # used like ``tracing``
    """Let the equations that a pass makes keep the user's lines of those that it applies again.

    Attributes:
      is_on: whether a program is being made, or NaN is looked for.
    """

    __slots__ = ("is_on", "token")

    def __enter__(self) -> replaying:
        self.is_on = innermost_staging() is not None or current_config.get().nan_watch is not None
        self.token = replayed.set(replayed.get()) if self.is_on else None
        return self

    def at(self, source: object, scope: str) -> None:
        """Apply an equation of this source and name scope from now on."""
        replayed.set((source, scope))

    def __exit__(self, *_: object) -> None:
        """Leave the context as it was."""
        if self.token is not None:
            replayed.reset(self.token)


class tracing:  # noqa: N801  # used as a function, like contextlib's
    """Open a trace for the duration of a ``with`` block; always closed, also after an error.

    A class and not a generator: entering is on the path of every eager gradient (0.5 us against
    1.5 us).

    Args:
      trace: the trace.
      leaves: arguments of the traced function. They tell the enclosing trace in a thread that was
        started inside it, where the context knows of none.
    """

    __slots__ = ("leaves", "token", "trace")

    def __init__(self, trace: Trace, leaves: Sequence[Any] = ()) -> None:
        self.trace = trace
        self.leaves = leaves

    def __enter__(self) -> Trace:
        trace = self.trace
        stack = open_traces.get()
        if stack:
            trace.parent = stack[-1]
            around = next((outer for outer in reversed(stack) if outer.is_staging), None)
            trace.n_before = 0 if around is None else len(around.eqns)
        else:
            trace.parent = owner(self.leaves)
        trace.source = capture(2)
        if trace.is_branch:
            for outer in stack:
                outer.is_direct = False
        self.token = open_traces.set((*stack, trace))
        return trace

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Close the trace; a refusal that C code made another error of comes out again."""
        self.trace.is_open = self.trace.is_direct = False
        open_traces.reset(self.token)
        while self.trace.at_end:
            self.trace.at_end.pop()()
        if kind is RecursionError and self.trace.parent is None:
            _explain_recursion(self.trace, error, traceback)
        if isinstance(error, (TypeError, ValueError)):
            note_traced(error)
        if self.trace.refusals is not None:
            try:
                settle(self.trace, error)
            finally:  # no cycle of error, traceback and this frame
                del error, traceback


def _explain_recursion(trace: Trace, error: Any, traceback: Any) -> None:
    """Say what to do about a stack that is full of nested programs."""
    n_frames = n_traces = 0
    while traceback is not None:
        n_frames += 1
        n_traces += traceback.tb_frame.f_globals.get("__name__", "").startswith("functrans.")
        traceback = traceback.tb_next
    if 2 * n_traces > n_frames:
        raise NestingError(
            f"{trace.label[:100]}{here()}: control flow, jit, vmap or functions with rules stand "
            f"in one another deeper than Python's stack of {sys.getrecursionlimit()} calls allows; "
            "each level takes 7 to 20 of them. Write levels that are alike as a loop (lax.scan, "
            "lax.fori_loop), choices one beside the other (lax.switch), or allow more by "
            "sys.setrecursionlimit"
        ) from error.with_traceback(None)


def standing(value: object) -> Any:
    """What a value stands for: a buffer of plain code, or a selection by a mask, for an array."""
    own = getattr(type(value), "_standing", None)
    return value if own is None else own.__get__(value)


def written(value: Any) -> Any:
    """What a traced value is written to: for a buffer of plain code, the array that stands for it.

    From then on it does. Other values are themselves.
    """
    become_traced = getattr(type(value), "_written", None)
    return value if become_traced is None else become_traced(value)


def aval_of(value: Any) -> Aval:
    """The aval of a tracer, an ndarray or a number.

    Raises:
      UnsupportedOperationError: the value is not an array of numbers.
    """
    if isinstance(value, Tracer):
        return value.aval
    aval = aval_of_plain(value)
    if aval is None:
        if type(value) is TapeValue:
            return value.aval
        extra = f" of dtype {value.dtype}" if isinstance(value, np.ndarray) else ""
        raise UnsupportedOperationError(
            f"expected an array of numbers, got {type(value).__name__}{extra}{here()}; convert it "
            "with np.asarray(value, dtype=float) before the traced function"
        )
    return aval


def shape_of(value: Any) -> tuple[int, ...]:
    """Shape of a tracer, an ndarray or a number."""
    if type(value) in PYTHON_SCALARS:
        return ()
    try:
        return value.shape
    except AttributeError:
        return aval_of(value).shape


def dtype_of(value: Any) -> np.dtype:
    """Dtype of a tracer, an ndarray or a number, in the byte order of this machine."""
    weak = WEAK_DTYPES.get(type(value))
    if weak is not None:
        return weak
    try:
        return native_dtype(value.dtype)
    except AttributeError:
        return aval_of(value).dtype
