"""Tracing with values: the program of one path through a Python function, and what decides it.

Here: ``stage_path``. Not here: how values are found while a function is traced
(``passes.answers``), how the program of a path is cut into steps (``jitted.steps``), the paths of
a function and how one of them is found (``jitted.specialize``).

While a function is traced with values, each question that Python asks of a traced value (a truth,
an integer, an index, a mask) becomes a *guard*: integers that the program computes, which must be
what they were for the same path to be taken again. A question is answered from the values of the
call at hand; only what it depends on is evaluated, when it is asked.

Layer: ``jitted``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.compiler.execution import execution_of
from functrans.core.dispatch import tracing
from functrans.core.jaxpr import Jaxpr, Var
from functrans.core.primitive import Primitive, nondifferentiable
from functrans.core.source import Captured, capture, here, resolve
from functrans.errors import (
    ConcretizationError,
    FunctransError,
    PathLimitError,
    UnsupportedOperationError,
)
from functrans.passes.answers import CallValues, refuse_float
from functrans.passes.dce import dce
from functrans.passes.evaluate import evaluate
from functrans.passes.simplify import simplify
from functrans.passes.staging import StagingTrace, StagingTracer
from functrans.primitives import elementwise as ew
from functrans.primitives.complex_parts import absolute
from functrans.primitives.movement import concatenate
from functrans.primitives.structural import cast, reshape
from functrans.records import dataclass, replace

_MAX_QUESTIONS = 10_000
"""How often one line may ask within one path."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A question of Python's and its answer.

    Attributes:
      what: how Python asked: ``bool()``.
      source: the user's line.
      outcome: the integers of the answer.
      answer: the answer as text.
    """

    what: str
    source: Captured | None
    outcome: bytes
    answer: str

    @property
    def line(self) -> str:
        """``model.py:12 (loss)``; empty where there is no line of a user's."""
        line = resolve(self.source)
        return "" if line is None else str(line)


# tracing with values ----------------------------------------------------------------------------


def _guard_impl(*_: object) -> tuple[Any, ...]:
    return ()


guard_p = Primitive(
    "guard",
    impl=_guard_impl,
    abstract_eval=_guard_impl,
    jvp=nondifferentiable,
    effects=frozenset({"guard"}),
    reasons=(
        ("transpose", "it has no results"),
        ("batch", "it marks a place in a program that is never batched"),
        ("lower", "it marks a place in a program, and is taken out before the program runs"),
    ),
)
"""Marks where a guard was asked for; its operand are the integers. Never run."""
PRIMITIVES: tuple[Primitive, ...] = (guard_p,)


class _Answers:
    """Answers Python's questions about traced values and notes them as guards."""

    def __init__(self, trace: StagingTrace, values: dict[Var, Any]) -> None:
        self.trace = trace
        self.guards: list[Guard] = []
        self._values = CallValues(values)
        self._known: dict[tuple[Var, bool], Any] = {}
        self._counts: dict[Any, int] = {}

    def __call__(self, tracer: StagingTracer, what: str) -> Any:
        """The plain value of a tracer."""
        key = tracer._var, what == "bool()"
        if key in self._known:
            return self._known[key]
        refuse_float(tracer, what)
        value = self._values.find(tracer, what)
        integers = _integers(tracer, value, what)
        if integers is not None:
            self._note(*integers, value, what)
        self._known[key] = value
        return value

    def _note(self, asked: Any, outcome: np.ndarray, value: Any, what: str) -> None:
        """Append a guard to the program."""
        source = capture()
        count = self._counts[source] = self._counts.get(source, 0) + 1
        if count > _MAX_QUESTIONS:
            raise PathLimitError(
                f"{self.trace.label}: {what} was asked {_MAX_QUESTIONS} times{here()} in one call; "
                "a loop that ends by values (while error > tolerance) has one program for each "
                "number of rounds, as long as the rounds are many: use ft.lax.while_loop"
            )
        self.trace.process(guard_p, (asked,), {})
        truth = bool(value) if what == "bool()" else value
        answer = str(truth) if np.ndim(truth) == 0 else f"an array of shape {np.shape(truth)}"
        self.guards.append(Guard(what, source, outcome.tobytes(), answer))


def _integers(tracer: StagingTracer, value: Any, what: str) -> tuple[Any, np.ndarray] | None:
    """The integers that an answer depends on: traced, and their values.

    ``None`` where Python raises whatever the value is.
    """
    kind = tracer.dtype.kind
    if what == "bool()":
        if np.size(value) != 1:
            return None
        traced: Any = tracer if kind == "b" else ew.not_equal(tracer, 0)
        plain = np.asarray(value) != 0
    elif what == "int()" and kind == "f":
        if np.size(value) != 1:
            return None
        return _whole_part(tracer, value, what)
    elif kind in "fc":
        return None
    else:
        traced, plain = tracer, np.asarray(value)
    return reshape(cast(traced, np.int64), (plain.size,)), plain.astype(np.int64).reshape(-1)


_TWO_63 = 2.0**63


def _whole_part(x: StagingTracer, value: object, what: str) -> tuple[Any, np.ndarray]:
    """Two integers for ``int(x)`` of a float: of which kind it is, and its whole part."""
    number = float(np.asarray(value).reshape(())[()])
    is_small = abs(number) < _TWO_63
    if not is_small and np.isfinite(number):
        raise ConcretizationError(
            f"{what} of {number!r} was asked{here()}: {x._trace.label} keeps programs for integers "
            "of 64 bits only"
        )
    small = ew.less(absolute(x), _TWO_63)
    whole = cast(ew.where(small, x, cast(0.0, x.dtype)), np.int64)
    sort = cast(ew.isnan(x), np.int64) - cast(ew.isinf(x), np.int64)
    parts = [reshape(cast(part, np.int64), (1,)) for part in (small, sort, whole)]
    plain = [is_small, int(np.isnan(number)) - int(np.isinf(number)), number if is_small else 0]
    return concatenate(parts), np.array([int(part) for part in plain], np.int64)


@dataclass(frozen=True, slots=True)
class StagedPath:
    """What a call of a function with values left.

    Attributes:
      jaxpr: the program, with an equation ``guard`` where each guard was asked for.
      guards: in order.
    """

    jaxpr: Jaxpr
    guards: tuple[Guard, ...]


def stage_path(
    fun: Callable[..., Sequence[Any]],
    avals: Sequence[Any],
    values: Sequence[Any],
    label: str,
    *,
    name: str,
    arg_names: Sequence[str],
    is_branch: bool = False,
) -> StagedPath:
    """Trace a function of flat arguments into the program of the path that it takes.

    A function that raises has had the effects that came before; they are performed.

    Args:
      fun: takes one tracer per aval, returns a flat sequence of arrays.
      avals: shapes and dtypes of the arguments.
      values: plain arrays and numbers, one per argument.
      label: what is traced, for messages.
      name: name of the program.
      arg_names: key path of each argument.
      is_branch: see ``StagingTrace``.

    Raises:
      ConcretizationError: the function asks for a float, or for what depends on an effect.
      PathLimitError: one line asks again and again.
    """
    trace = StagingTrace(label, is_branch=is_branch)
    invars: list[Var] = []
    try:
        with tracing(trace):
            arguments = [
                trace.argument(aval, arg) for aval, arg in zip(avals, arg_names, strict=True)
            ]
            invars.extend([argument._var for argument in arguments])
            answers = _Answers(trace, dict(zip(invars, values, strict=True)))
            trace.answers = answers
            outs = fun(*arguments)
            jaxpr = trace.jaxpr(invars, outs, name, arg_names)
    except FunctransError:
        raise
    except Exception:
        if any(eqn.effects - guard_p.effects for eqn in trace.eqns):
            evaluate(simplify(unmarked(trace.jaxpr(invars, (), name, arg_names))), values)
        raise
    finally:
        trace.answers = None
    return StagedPath(jaxpr, tuple(answers.guards))


def of_one_path(staged: StagedPath) -> Jaxpr:
    """The program of a path without guards, to look at; marked if there are other paths."""
    jaxpr = simplify(unmarked(staged.jaxpr))
    if staged.guards:
        execution_of(jaxpr).is_one_path = True
    return jaxpr


def check_all_paths(jaxpr: Jaxpr, what: str) -> None:
    """Refuse to run a program that is right for one path only.

    Args:
      jaxpr: the program.
      what: what would run it, for messages.

    Raises:
      UnsupportedOperationError: it is that of one path of a function.
    """
    if execution_of(jaxpr).is_one_path:
        raise UnsupportedOperationError(
            f"{what} of {jaxpr.name or 'a function'}: the program is that of one path through the "
            "function, and would be wrong for arguments that lead along another one. Write the "
            "choices as np.where, ft.lax.cond or ft.lax.while_loop"
        )


def unmarked(jaxpr: Jaxpr) -> Jaxpr:
    """A program without the places of guards."""
    eqns = tuple([eqn for eqn in jaxpr.eqns if eqn.primitive is not guard_p])
    return dce(replace(jaxpr, eqns=eqns, cache={}), (True,) * len(jaxpr.outvars))
