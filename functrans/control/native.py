"""Running programs: machine code or the interpreter, and the primitive that is a program.

Here: ``run``, ``native_program`` (when a program is compiled), ``Runs`` (how it has run),
``call_program``, the primitive ``jit``. Not here: staging and the cache of programs
(``jitted.jit``), evaluation (``passes.evaluate``), the compiler (``compiler.compiled``).

Layer: ``control``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from functrans.compiler.compiled import Compiled, compile_or_warn, predicted_compile_s
from functrans.compiler.execution import execution_of
from functrans.compiler.reference import evaluate_like_compiled
from functrans.control.calls import (
    Binder,
    call_batch,
    call_jvp,
    call_linearize,
    call_prune,
    call_transpose,
)
from functrans.core.analyses import Record, analysis
from functrans.core.avals import Aval
from functrans.core.boundary import warn
from functrans.core.dispatch import Tracer, bind
from functrans.core.jaxpr import Jaxpr
from functrans.core.lowering import Structured
from functrans.core.ownership import own_arrays
from functrans.core.primitive import Joint, Primitive
from functrans.core.state import current_config
from functrans.core.values import Array
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram
from functrans.passes.programs import Flags
from functrans.records import dataclass, field


@dataclass(slots=True, eq=False)
class Runs(Record):
    """How a program has run.

    Attributes:
      codes: by whether arguments are given away, its machine code; ``None`` if it has none, since
        it could not be compiled.
      compile_s: how long it took to compile or load it.
      interpreted_s: for how long it has been interpreted.
    """

    codes: dict[bool, Compiled | None] = field(default_factory=dict)
    compile_s: float | None = None
    interpreted_s: float | None = None

    def forget(self) -> None:
        """Forget machine code, and how long the program ran without."""
        self.codes.clear()
        self.compile_s = self.interpreted_s = None

    def __len__(self) -> int:
        """Number of machine codes, and of failures to make one."""
        return len(self.codes)


@analysis
def runs_of(jaxpr: Jaxpr) -> Runs:
    """How a program has run."""
    return Runs()


def run(jaxpr: Jaxpr, args: Sequence[Any]) -> Sequence[Any]:
    """Evaluate a program on plain values."""
    return evaluate(jaxpr, args)


def run_silently(
    jaxpr: Jaxpr,
    args: Sequence[Any],
    given: Sequence[int] = (),
    native: Compiled | None = None,
) -> Sequence[Any]:
    """Evaluate the program of a jitted function: compiled, or interpreted without warnings.

    Args:
      jaxpr: the program.
      args: arrays and numbers.
      given: positions of arguments whose memory results may take over.
      native: machine code that was made for these arguments, if it is known.
    """
    if current_config.get().compiler_math:
        return evaluate_like_compiled(jaxpr, args)
    if native is None:
        native = native_program(jaxpr, given)
    if native is not None:
        with np.errstate(all="ignore"):
            return native(args)
    start = time.perf_counter()
    with np.errstate(all="ignore"):
        outs = run(jaxpr, args)
    known = runs_of(jaxpr)
    known.interpreted_s = (known.interpreted_s or 0.0) + time.perf_counter() - start
    return outs


def native_program(jaxpr: Jaxpr, given: Sequence[int] = ()) -> Compiled | None:
    """The machine code of a program, made when it is first needed; ``None`` to interpret it."""
    settings = current_config.get()
    if not settings.native:
        return None
    known = runs_of(jaxpr)
    key = bool(given)
    if key in known.codes:
        return known.codes[key]
    budget_s = settings.compile_budget_s + (known.interpreted_s or 0.0)
    if predicted_compile_s(as_compiled(jaxpr)) > budget_s:
        return None
    return compile_now(jaxpr, given)


def as_compiled(jaxpr: Jaxpr) -> Jaxpr:
    """The form of a program that is compiled: with loops for what repeats, if ``jit`` made one."""
    return execution_of(jaxpr).rolled or jaxpr


def compile_now(jaxpr: Jaxpr, given: Sequence[int] = ()) -> Compiled | None:
    """Make the machine code of a program, whatever it costs; ``None``, with a warning, on failure.

    Args:
      jaxpr: the program.
      given: positions of arguments whose memory results may take over; it is a part of the program,
        so that the code is kept under its name.
    """
    known = runs_of(jaxpr)
    native = known.codes.get(bool(given))
    if native is None:
        start = time.perf_counter()
        native = known.codes[bool(given)] = compile_or_warn(as_compiled(jaxpr), given)
        known.compile_s = time.perf_counter() - start
        is_asked = not execution_of(jaxpr).gives_what_it_can
        if native is not None and native.donations.unused and is_asked:
            _warn_of_unused(native)
    return native


def _warn_of_unused(native: Compiled) -> None:
    """Say which arguments were given away for nothing, as JAX does."""
    inputs = (*native.prepared.constvars, *native.prepared.invars)
    unused = [f"{inputs[i].aval} ({reason})" for i, reason in native.donations.unused.items()]
    warn(
        f"Some donated buffers were not usable: {', '.join(unused)}; the program "
        f"{native.prepared.name} leaves these arguments as they are",
        UserWarning,
    )


def call_program(
    jaxpr: Jaxpr,
    operands: Sequence[Any],
    name: str,
    given: tuple[int, ...] = (),
    native: Compiled | None = None,
) -> list[Any]:
    """Run a program on values, or make it a part of the programs around it.

    Args:
      jaxpr: the program.
      operands: its arguments.
      name: for printed programs.
      given: positions of operands whose memory results may take over; not under a transform, which
        reads them later.
      native: machine code that was made before.

    Returns:
      Arrays that share no memory with operands that were not given away.
    """
    watch = current_config.get().nan_watch
    if jaxpr.effects or any(isinstance(operand, Tracer) for operand in operands):
        results = bind(jit_p, *operands, jaxpr=jaxpr, name=name)
        if watch is not None and not any(isinstance(operand, Tracer) for operand in operands):
            watch.program(jaxpr, operands, results)
        return own_arrays(results, operands)
    before = operands if watch is None or not given else list(map(np.copy, operands))
    outs = run_silently(jaxpr, operands, given, native)
    if watch is not None:
        watch.program(jaxpr, before, outs)
    if given:
        operands = [operand for i, operand in enumerate(operands) if i not in given]
    return own_arrays(outs, operands)


# the primitive ----------------------------------------------------------------------------------


def _jit_impl(*operands: Array | complex, jaxpr: Jaxpr, name: str) -> tuple[Any, ...]:
    return tuple(run_silently(jaxpr, operands))


def _jit_aval(*avals: Aval, jaxpr: Jaxpr, name: str) -> tuple[Aval, ...]:
    return jaxpr.out_avals


def _jit_jvp(
    primals: tuple[Array | complex, ...], tangents: tuple[Any, ...], *, jaxpr: Jaxpr, name: str
) -> tuple[Any, ...]:
    return call_jvp(_binder(name), jaxpr, primals, tangents)


def _jit_linearize(
    needs: Flags, operands: Any, *, jaxpr: Jaxpr, name: str
) -> tuple[tuple[Any, ...], LinearProgram]:
    return call_linearize(_binder(name), jaxpr, needs, operands)


def _jit_transpose(
    cts: tuple[Any, ...], operands: Any, *, jaxpr: Jaxpr, name: str
) -> tuple[Any, ...]:
    return call_transpose(_binder(name), jaxpr, cts, operands)


def _jit_batch(size: int, operands: Any, dims: Any, *, jaxpr: Jaxpr, name: str) -> tuple[Any, ...]:
    return call_batch(_binder(name), jaxpr, size, operands, dims)


def _jit_prune(used: Flags, *, jaxpr: Jaxpr, name: str) -> tuple[Any, ...]:
    return call_prune(_binder(name), jaxpr, used)


jit_p = Primitive(
    "jit",
    impl=_jit_impl,
    abstract_eval=_jit_aval,
    jvp=Joint(_jit_jvp),
    linearize=_jit_linearize,
    transpose=_jit_transpose,
    takes_masks=True,
    batch=_jit_batch,
    prune=_jit_prune,
    lower=Structured("call"),
    holds_programs=True,
    is_call=True,
)


def _binder(name: str) -> Binder:
    return Binder(jit_p, (("name", name),))


PRIMITIVES: tuple[Primitive, ...] = (jit_p,)
