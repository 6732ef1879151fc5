"""The evaluate pass: run a Jaxpr on values.

Here: ``evaluate``, a loop over equations. Every other way to run a program (staged into another
one, batched, differentiated) is this loop under another trace, since it goes through ``bind``. Not
here: the Python function that a program on plain values becomes when it runs more than once
(``passes.executables``), native code (``compiler``).

Layer: ``passes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any

from functrans.core.analyses import analysis
from functrans.core.byte_order import in_native_order
from functrans.core.dispatch import Tracer, bind, elementwise, innermost_staging, pass_on, replaying
from functrans.core.jaxpr import Jaxpr, Literal
from functrans.passes.executables import add_place, generated, last_uses

_LARGEST_PROGRAM = 20_000


@analysis
def _runs(jaxpr: Jaxpr) -> Iterator[int]:
    """How often a program ran before, up to the run for which it becomes an executable."""
    return count()


def evaluate(jaxpr: Jaxpr, args: Sequence[Any], consts: Sequence[Any] | None = None) -> list[Any]:
    """Run a program.

    Args:
      jaxpr: the program.
      args: one value or tracer per argument.
      consts: values for ``constvars`` in place of the captured ones.

    Returns:
      One value per result. Values are dropped after their last use.
    """
    consts = jaxpr.consts if consts is None else consts
    if _is_plain(args) and _is_plain(consts) and not (jaxpr.effects and innermost_staging()):
        run = jaxpr.cache.get(executable)
        if run is not None:
            return list(run(*in_native_order(consts), *in_native_order(args)))
        if next(_runs(jaxpr)):
            return executable(jaxpr)(*in_native_order(consts), *in_native_order(args))
    return _interpret(jaxpr, args, consts)


def _is_plain(values: Sequence[Any]) -> bool:
    """Whether no tracer is among the values."""
    for value in values:  # noqa: SIM110  # twice as fast as any() of a generator
        if isinstance(value, Tracer):
            return False
    return True


def _interpret(jaxpr: Jaxpr, args: Sequence[Any], consts: Sequence[Any]) -> list[Any]:
    """Run a program equation by equation, under the traces that its operands belong to."""
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    notes = jaxpr.annotations
    if notes:
        pass_on(notes, jaxpr.invars, args, None)
    with replaying() as replay:
        for eqn, dying in zip(jaxpr.eqns, last_uses(jaxpr), strict=True):
            if replay.is_on:
                replay.at(eqn.source, eqn.scope)
            operands = [a.value if type(a) is Literal else env[a] for a in eqn.inputs]
            primitive = eqn.primitive
            try:
                if primitive.elementwise is not None and not eqn.params:
                    env[eqn.outputs[0]] = elementwise(primitive, *operands)
                else:
                    outs = bind(primitive, *operands, **eqn.params)
                    env.update(zip(eqn.outputs, outs, strict=True))
            except Exception as error:
                add_place(jaxpr, eqn, error)
                raise
            if notes:
                pass_on(notes, eqn.outputs, [env[var] for var in eqn.outputs], eqn)
            del operands
            for var in dying:
                del env[var]
    return [a.value if type(a) is Literal else env[a] for a in jaxpr.outvars]


@analysis
def executable(jaxpr: Jaxpr) -> Callable[..., list[Any]]:
    """The function ``(*consts, *args) -> results`` of plain values that a program stands for."""
    if len(jaxpr.eqns) <= _LARGEST_PROGRAM:
        return generated(jaxpr)
    return partial(_run_long, jaxpr)


def _run_long(jaxpr: Jaxpr, *values: object) -> list[Any]:
    """Run a program that is too long to generate source for."""
    n = len(jaxpr.constvars)
    return _interpret(jaxpr, values[n:], values[:n])
