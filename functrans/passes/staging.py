"""Staging: tracing a function with avals only, into a Jaxpr.

Here: ``StagingTrace``, its tracer, and ``stage``. Not here: traces that have values
(``traces``), the transforms that call ``stage``.

Arrays and tracers of enclosing traces that the function captures become constants of the Jaxpr
(``consts``), by identity, not copied: a captured writable array is a hidden input.

Layer: ``passes`` (runs abstract evaluation only, no pass).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.core.avals import PYTHON_SCALARS, Aval, ShapedArray
from functrans.core.deferred import deferred
from functrans.core.dispatch import Trace, Tracer, aval_of, escaped, standing, tracing
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.core.primitive import Primitive
from functrans.core.source import Captured, SourceLine, capture, here, resolve
from functrans.core.state import current_config, name_scope, replayed
from functrans.core.tapes import TapeValue
from functrans.core.values import Array, Operand
from functrans.errors import ConcretizationError, ShapeError
from functrans.primitives.tapes import empty_tape_p


def may_change(value: Any) -> bool:
    """Whether a value is an array whose elements its owner can write to, if only through a base."""
    while isinstance(value, np.ndarray):
        if value.flags.writeable:
            return True
        value = value.base
    return False


class StagingTrace(Trace):
    """Collects equations.

    Attributes:
      annotations: of the program.
      axes: named axes of ``vmap`` being traced, name to size.
      const_of: by ``id`` of a captured object its position among the constants.
      contents: by position of a captured array that may change, its elements when it was captured.
      answers: what Python gets that asks a tracer for its value, from the tracer and what was
        asked; ``None`` where values are not known.
      lanes: what would answer for all elements of the batch that ``vmap`` traces one of, inside of
        functions that are specialised; ``None`` where that is not known.
      is_branch: whether the program may not run, as a branch of ``cond``.
    """

    __slots__ = (
        "annotations", "answers", "axes", "const_of", "consts", "constvars", "contents", "eqns",
        "is_branch", "lanes", "var_names",
    )  # fmt: skip
    is_staging = True

    def __init__(
        self, label: str, axes: Mapping[str, int] | None = None, is_branch: bool = False
    ) -> None:
        super().__init__(label)
        self.is_branch = is_branch
        self.annotations: dict[Any, tuple[Any, ...]] = {}
        self.eqns: list[Equation] = []
        self.consts: list[Any] = []
        self.constvars: list[Var] = []
        self.const_of: dict[int, int] = {}
        self.contents: dict[int, bytes] = {}
        self.var_names: dict[Var, str] = {}
        self.axes: Mapping[str, int] = axes or {}
        self.answers: Callable[[StagingTracer, str], Any] | None = None
        self.lanes: Callable[[StagingTracer, str], Any] | None = None

    def argument(self, aval: Aval, name: str = "") -> StagingTracer:
        """A tracer for a new argument."""
        var = Var(aval)
        if name:
            self.var_names[var] = name
        return StagingTracer(self, var)

    def atom(self, value: Operand) -> Literal | Var:
        """The Var or Literal for an operand."""
        if type(value) is StagingTracer and value._trace is self:
            return value._var
        if type(value) in PYTHON_SCALARS or isinstance(value, np.generic):
            return Literal(value)
        own = standing(value)
        return self.const(value) if own is value else self.atom(own)

    def const(self, value: Any) -> Var:
        """The variable of a captured array or outer tracer, one per object and contents.

        A function that writes into a captured array while it is traced (a buffer that it uses
        again) means other contents from there on; what was captured before stays as it was.
        """
        memory = value
        if isinstance(value, Tracer):
            value = value._trace.enter(value)
            memory = value._value if getattr(value, "_is_held", False) else None
        position = self.const_of.get(id(value))
        if position is not None:
            if not self._has_changed(position):
                return self.constvars[position]
            self._freeze(position)
        if type(value) is TapeValue and not value.length:
            (empty,) = self.process(empty_tape_p, (), {"aval": value.aval})
            return empty._var
        var = Var(aval_of(value))
        position = self.const_of[id(value)] = len(self.consts)
        self.consts.append(value)  # keeps the object alive, so that its id stays its own
        self.constvars.append(var)
        if may_change(memory) and current_config.get().copy_residuals:
            self.contents[position] = np.ndarray.tobytes(memory)  # whatever subclass it is
        return var

    def _has_changed(self, position: int) -> bool:
        """Whether a captured array was written to since it was captured."""
        contents = self.contents.get(position)
        return contents is not None and np.ndarray.tobytes(self._memory(position)) != contents

    def _memory(self, position: int) -> Array:
        value = self.consts[position]
        return value._value if isinstance(value, Tracer) else value  # type: ignore[attr-defined]  # see ``const``

    def _freeze(self, position: int) -> None:
        """Put an array with the contents at capture in the place of one that was written to."""
        self.consts[position] = self.captured(position)
        del self.contents[position]

    def captured(self, position: int) -> Array:
        """A constant as it was when it was captured."""
        value, contents = self.consts[position], self.contents.get(position)
        if contents is None:
            return value
        array = np.frombuffer(contents, (m := self._memory(position)).dtype).reshape(m.shape)
        return value._frozen(array) if isinstance(value, Tracer) else array  # type: ignore[attr-defined]  # as above

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Append an equation."""
        if primitive.stage is not None:
            operands, params = primitive.stage(operands, **params)
        inputs = tuple([self.atom(operand) for operand in operands])
        try:
            avals = primitive.abstract_eval(*[atom.aval for atom in inputs], **params)
        except ShapeError as error:
            raise located(error) from None
        outputs = tuple([Var(aval) for aval in avals])
        source, scope = replayed.get() or (capture(), name_scope.get())
        self.eqns.append(Equation(primitive, inputs, params, outputs, source, scope))
        return tuple([StagingTracer(self, var) for var in outputs])

    def annotate(self, tracer: Any, note: object, is_result: bool = True) -> None:
        """Attach an annotation to a variable, or to the equation that it comes from."""
        place = var = tracer._var
        if not is_result:
            place = next((eqn for eqn in reversed(self.eqns) if var in eqn.outputs), None)
        if place is not None:
            self.annotations[place] = (*self.annotations.get(place, ()), note)

    def lift(self, value: Operand) -> StagingTracer:
        """A tracer of this trace for a constant."""
        if type(value) is StagingTracer and value._trace is self:
            return value
        return StagingTracer(self, self.const(value))

    def jaxpr(
        self, invars: Sequence[Var], outs: Sequence[Any], name: str, arg_names: Sequence[str]
    ) -> Jaxpr:
        """Close the program over its results."""
        outvars = tuple([self.atom(out) for out in outs])
        for position in list(self.contents):
            if self._has_changed(position):
                self._freeze(position)
        self.contents.clear()
        return Jaxpr(
            tuple(self.constvars),
            tuple(self.consts),
            tuple(invars),
            tuple(self.eqns),
            outvars,
            name,
            tuple(arg_names),
            self.annotations,
        )


def located(error: ShapeError) -> ShapeError:
    """The same error with the user's line in its message."""
    text = str(error)
    where = here(3)
    return error if " (at " in text else type(error)(text + where)


class StagingTracer(Tracer):
    """Stand-in for an array of which only shape and dtype are known."""

    __slots__ = ("_var",)
    _trace: StagingTrace

    def __init__(self, trace: StagingTrace, var: Var) -> None:
        self._trace = trace
        self._var = var
        self._alias = None

    @property
    def aval(self) -> ShapedArray:
        """Shape and dtype."""
        return self._var.aval  # type: ignore[return-value]  # a tape only inside loops

    def _rebind(self, other: StagingTracer) -> None:
        self._var = other._var

    def _twin(self) -> StagingTracer:
        return StagingTracer(self._trace, self._var)

    def _describe(self) -> str:
        """``x of jit of f: f64[3]``, for messages."""
        origin = self._origin()
        return f"a traced value of type {self._var.aval}{origin}"

    def _origin(self) -> str:
        """Which argument or operation it came from."""
        trace = self._trace
        name = trace.var_names.get(self._var)
        if name:
            return f" (argument {name})"
        names = trace_origins(trace, self._var)
        return f" (computed from {', '.join(names)})" if names else ""

    def _made_at(self) -> Captured | SourceLine | None:
        made = (eqn.source for eqn in self._trace.eqns if self._var in eqn.outputs)
        return next(made, None)

    def _concrete(self, what: str) -> Any:
        """The value, where the trace knows it; else refuse."""
        if not self._trace.is_open:
            raise escaped(self)
        answers = self._trace.answers
        if answers is not None:
            return answers(self, what)
        raise ConcretizationError(
            f"{what} of {self._describe()} was asked{here()}, but {self._trace.label} traces with "
            f"shapes and dtypes only, without values. {deferred.staged_remedy(self, what)}"
        )

    def __repr__(self) -> str:
        """``Traced<f64[3]>``."""
        return f"Traced<{self._var.aval}>"


def trace_origins(trace: StagingTrace, var: Var, limit: int = 4) -> list[str]:
    """Names of the arguments that a variable was computed from."""
    maker = {out: eqn for eqn in trace.eqns for out in eqn.outputs}
    seen: set[Var] = set()
    names: list[str] = []
    pending = [var]
    while pending and len(names) < limit:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        if current in trace.var_names:
            names.append(trace.var_names[current])
        elif current in maker:
            pending.extend(a for a in maker[current].inputs if isinstance(a, Var))
    return sorted(names)


def has_answer(value: Any) -> bool:
    """Whether a traced value stands on one of which the trace can tell the plain value."""
    while isinstance(value, Tracer) and type(value) is not StagingTracer:
        value = getattr(value, "_value", None)
    return type(value) is StagingTracer and value._trace.answers is not None


def stage(
    fun: Callable[..., Sequence[Any]],
    avals: Sequence[Any],
    label: str,
    *,
    name: str = "",
    arg_names: Sequence[str] = (),
    axes: Mapping[str, int] | None = None,
    lanes: Callable[[Any, str], Any] | None = None,
    is_branch: bool = False,
) -> Jaxpr:
    """Trace a function of flat arguments into a Jaxpr.

    Args:
      fun: takes one tracer per aval, returns a flat sequence of arrays.
      avals: shapes and dtypes of the arguments.
      label: what is traced, for messages: ``jit of loss``.
      name: name of the program.
      arg_names: key path of each argument, for messages.
      axes: named axes that collectives inside may use.
      lanes: see ``StagingTrace``.
      is_branch: likewise.

    Returns:
      The program; captured arrays and outer tracers are its ``consts``.
    """
    trace = StagingTrace(label, axes, is_branch)
    trace.lanes = lanes
    names = list(arg_names) or [""] * len(avals)
    with tracing(trace):
        arguments = [trace.argument(aval, arg) for aval, arg in zip(avals, names, strict=True)]
        invars = [argument._var for argument in arguments]
        outs = fun(*arguments)
        return trace.jaxpr(invars, outs, name, arg_names)


def source_text(eqn: Equation) -> str:
    """The user's line of an equation, for messages."""
    line = resolve(eqn.source)
    return f" (at {line})" if line is not None else ""
