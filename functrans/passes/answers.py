"""Answers to Python's questions about values that a staging trace has no values of its own for.

Here: what evaluates such values when they are asked for (``CallValues`` of one call), and
``LaneAnswers``, the answers of all elements of a batch. Not here: what becomes of an answer in the
program of a call (``jitted.guards``), how ``vmap`` takes elements apart whose answers differ
(``transforms.vectorize``).

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from functrans.core.byte_order import in_native_order
from functrans.core.dispatch import Tracer
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var
from functrans.core.source import here
from functrans.errors import ConcretizationError
from functrans.passes.batch import evaluate_batched
from functrans.passes.layouts import plain_value
from functrans.passes.staging import StagingTrace, StagingTracer


class _Values:
    """The plain values of variables, computed when they are asked for (abstract).

    Attributes:
      values: what is known so far.
    """

    def __init__(self, values: dict[Var, Any]) -> None:
        self.values = values
        self._maker: dict[Var, int] = {}
        self._n_seen = 0

    def apply(self, eqn: Equation) -> Sequence[Any]:
        """Results of an equation whose operands are known."""
        raise NotImplementedError

    def constant(self, value: Any) -> Any:
        """What is kept of a plain value that the function refers to."""
        raise NotImplementedError

    def find(self, tracer: StagingTracer, what: str) -> Any:
        """The value of a tracer."""
        trace, wanted = tracer._trace, tracer._var
        eqns = trace.eqns
        for i in range(self._n_seen, len(eqns)):
            self._maker.update(dict.fromkeys(eqns[i].outputs, i))
        self._n_seen = len(eqns)
        needed: set[int] = set()
        pending = [wanted]
        while pending:
            var = pending.pop()
            if var in self.values:
                continue
            i = self._maker.get(var, -1)
            if i < 0:
                captured = trace.captured(trace.constvars.index(var))
                self.values[var] = self.constant(_known_value(captured, tracer, what))
            elif i not in needed:
                needed.add(i)
                pending.extend([atom for atom in eqns[i].inputs if type(atom) is Var])
        with np.errstate(all="ignore"):
            for i in sorted(needed):
                _check_no_effect(eqns[i], tracer, what)
                self.values.update(zip(eqns[i].outputs, self.apply(eqns[i]), strict=True))
        return self.values[wanted]


def _check_no_effect(eqn: Equation, tracer: StagingTracer, what: str) -> None:
    """Refuse a question whose answer depends on an effect."""
    if eqn.effects:
        raise ConcretizationError(
            f"{what} of {tracer._describe()} was asked{here()}, and the value depends on the "
            f"result of {eqn.primitive.name}, which has an effect: {tracer._trace.label} performs "
            "effects when the path through the function is known, so that no choice of Python's "
            "can depend on one. Choose with ft.lax.cond or np.where, or use ft.pure_callback"
        )


def _known_value(value: object, tracer: StagingTracer, what: str) -> Any:
    """The plain value of something that a function refers to."""
    plain = plain_value(value)
    if isinstance(value, Tracer) and plain is None:
        raise ConcretizationError(
            f"{what} of {tracer._describe()} was asked{here()}, and the value depends on "
            f"{value._describe()} of {value._trace.label}, which traces without values; pass "
            "it as an argument, or use np.where, ft.lax.cond or ft.lax.while_loop"
        )
    return plain


class CallValues(_Values):
    """Values of one call."""

    def apply(self, eqn: Equation) -> Sequence[Any]:
        """Results as NumPy computes them."""
        operands = [a.value if type(a) is Literal else self.values[a] for a in eqn.inputs]  # type: ignore[index]  # no literal
        outs: Sequence[Any] = eqn.primitive.impl(*in_native_order(operands), **eqn.params)
        return outs

    def constant(self, value: Any) -> Any:
        """The value."""
        return value


def refuse_float(tracer: StagingTracer, what: str) -> None:
    """Refuse a question with more answers than there can be paths.

    Raises:
      ConcretizationError: it is for the value of a float.
    """
    if tracer.dtype.kind in "fc" and what not in ("bool()", "int()", "index()"):
        raise ConcretizationError(_float_text(tracer, what))


def _float_text(tracer: StagingTracer, what: str) -> str:
    """What to say of a question for a number that is no integer."""
    remedy = {
        "format()": "print with ft.debug.print, which prints when the program runs",
        "a value-dependent shape": "give a mask of booleans: np.nonzero(x != 0)",
    }.get(
        what,
        "use array operations (np.sin instead of math.sin; np.zeros(n, like=x) for a buffer), or "
        "ask for what the choice depends on: x > c, int(np.floor(x))",
    )
    return (
        f"{what} of {tracer._describe()} was asked{here()}: {tracer._trace.label} makes a program "
        "for each answer, and of the values of a float there is no end. Truths, integers and "
        f"indices can be asked for; {remedy}. Where each value is to have its program, make the "
        "argument static: static_argnums"
    )


# the elements of a batch ------------------------------------------------------------------------


class LanesDiffer(BaseException):
    """Lanes of a batch give Python different answers; ``vmap`` takes them apart.

    No ``Exception``, which the traced function might catch.

    Attributes:
      lanes: which lanes.
      groups: their numbers, those with one answer together.
    """

    def __init__(self, lanes: LaneAnswers, groups: Sequence[np.ndarray]) -> None:
        self.lanes = lanes
        self.groups = groups


@contextmanager
def answering(trace: StagingTrace | None) -> Iterator[None]:
    """Let the lanes of ``vmap`` answer inside of a function that is specialised.

    Args:
      trace: the innermost trace that has no values itself.
    """
    if trace is None or trace.answers is not None or trace.lanes is None:
        yield
        return
    trace.answers = trace.lanes
    try:
        yield
    finally:
        trace.answers = None


class _LaneValues(_Values):
    """Values of all lanes, each with the position of the lane axis, ``None`` if it has none."""

    def __init__(self, size: int) -> None:
        super().__init__({})
        self.size = size

    def apply(self, eqn: Equation) -> Sequence[Any]:
        """Results of all lanes."""
        inputs = tuple(dict.fromkeys([atom for atom in eqn.inputs if type(atom) is Var]))
        program = Jaxpr((), (), inputs, (eqn,), eqn.outputs)
        args, dims = zip(*[self.values[var] for var in inputs], strict=True) if inputs else ((), ())
        outs, out_dims = evaluate_batched(program, self.size, args, dims)
        return list(zip(outs, out_dims, strict=True))

    def constant(self, value: Any) -> Any:
        """The value, without a lane axis."""
        return value, None


class LaneAnswers:
    """Answers for all elements of a batch: one where they agree.

    Args:
      size: number of elements.
      arrays: plain values of the mapped arguments.
      axes: their mapped axes.
    """

    def __init__(self, size: int, arrays: Sequence[Any], axes: Sequence[int]) -> None:
        self._arguments = list(zip(arrays, axes, strict=True))
        self._values = _LaneValues(size)

    def begin(self, tracers: Sequence[Any]) -> None:
        """Say which tracers stand for the arguments."""
        for tracer, argument in zip(tracers, self._arguments, strict=True):
            self._values.values[tracer._var] = argument

    def __call__(self, tracer: StagingTracer, what: str) -> Any:
        """The value of a tracer, where it is the same in all lanes as far as Python is concerned.

        Raises:
          LanesDiffer: it is not.
          ConcretizationError: a float was asked for.
        """
        refuse_float(tracer, what)
        value, dim = self._values.find(tracer, what)
        if dim is None:
            return value
        lanes = np.moveaxis(np.asarray(value), dim, 0)
        rows = lanes.reshape(len(lanes), -1)
        if what == "bool()":
            rows = rows != 0
        elif what == "int()" and rows.dtype.kind == "f":
            rows = np.trunc(rows)
        if rows.shape[1]:
            _, group = np.unique(rows, axis=0, return_inverse=True, equal_nan=True)
            group = group.reshape(-1)
            if group.any():
                raise LanesDiffer(self, [np.flatnonzero(group == g) for g in range(max(group) + 1)])
        return lanes[0]
