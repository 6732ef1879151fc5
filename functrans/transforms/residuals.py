"""What reverse mode keeps between its two passes: ``residuals``.

Here: the list, with the lines of the user's program. Not here: the choice of what is kept
(``control.checkpoint``, ``passes.remat``).

Layer: ``transforms``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.control.inline import inline_calls
from functrans.control.native import jit_p
from functrans.core.arguments import name_of
from functrans.core.avals import ShapedArray, Tape, is_differentiable_dtype
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.jaxpr import Jaxpr, Literal
from functrans.core.source import SourceLine, resolve
from functrans.passes.programs import linearize_jaxpr
from functrans.passes.simplify import simplify
from functrans.records import dataclass
from functrans.transforms.inspect import make_jaxpr


@dataclass(frozen=True, slots=True)
class Residual:
    """One value that is kept for the backward pass.

    Attributes:
      aval: its shape and dtype; of a tape, those of the entry of one iteration.
      origin: ``argument args[0]``, ``constant``, or ``result of sin``.
      source: the user's line that computes it, if it is computed.
      size_bytes: its memory; ``None`` for a tape, whose length is known when the program has run.
    """

    aval: Any
    origin: str
    source: SourceLine | None
    size_bytes: int | None

    @property
    def is_computed(self) -> bool:
        """Whether it takes memory besides the arguments and constants."""
        return self.origin.startswith("result")

    def __str__(self) -> str:
        """``f64[3] result of sin, model.py:12 (loss)``."""
        where = "" if self.source is None else f", {self.source}"
        return f"{self.aval} {self.origin}{where}"


@dataclass(frozen=True, slots=True)
class Residuals:
    """All values that are kept for the backward pass; prints as a table.

    Attributes:
      name: of the function.
      entries: the values.
    """

    name: str
    entries: tuple[Residual, ...]

    @property
    def size_bytes(self) -> int:
        """Memory of what is computed, tapes not counted: the most that is held between passes."""
        return sum(entry.size_bytes or 0 for entry in self.entries if entry.is_computed)

    @property
    def has_tapes(self) -> bool:
        """Whether the memory grows with the iterations of a ``while_loop``."""
        return any(entry.size_bytes is None for entry in self.entries)

    def __len__(self) -> int:
        """Number of values."""
        return len(self.entries)

    def __str__(self) -> str:
        """One line per value, and the sum."""
        tapes = ", and tapes" if self.has_tapes else ""
        lines = [f"residuals of {self.name}: {self.size_bytes:,} bytes{tapes}"]
        lines += [f"  {entry}" for entry in self.entries]
        return "\n".join(lines)

    __repr__ = __str__


@boundary
def residuals(fun: Callable[..., Any], *args: object, **kwargs: object) -> Residuals:
    """What reverse mode of a function keeps between the forward and the backward pass.

    The function is staged and linearized in all floating arguments, as ``jit(grad(fun))`` does, and
    not run. What ``checkpoint`` and its policies save can so be seen before anything is computed.

    Args:
      fun: function of pytrees of arrays.
      *args: arrays or ``ShapeDtypeStruct``.
      **kwargs: likewise.

    Returns:
      ``Residuals``: entries with type, origin and the user's line; ``size_bytes`` is the memory of
      those that are computed.

    Raises:
      ConcretizationError: ``fun`` asks for the value of an argument.

    Example:
      >>> import functrans as ft
      >>> import numpy as np
      >>> x = np.ones(1000)
      >>> f = lambda x: np.sum(np.sin(np.sin(x)))
      >>> residuals(f, x).size_bytes, residuals(ft.checkpoint(f), x).size_bytes
      (8000, 0)
    """
    fun = traced_form("residuals", fun)
    jaxpr = simplify(inline_calls(make_jaxpr(fun)(*args, **kwargs), jit_p))
    needs = tuple([is_differentiable_dtype(aval.dtype) for aval in jaxpr.in_avals])
    parts = linearize_jaxpr(jaxpr, needs)
    names = list(jaxpr.arg_names) or [f"args[{i}]" for i in range(len(jaxpr.invars))]
    kept = parts.primal.outvars[len(parts.primal.outvars) - parts.n_residuals :]
    entries = _entries(parts.primal, kept, names)
    return Residuals(name_of(fun), entries)


def _entries(primal: Jaxpr, kept: Any, names: list[str]) -> tuple[Residual, ...]:
    """Where values of a program come from; each is listed once."""
    arguments = dict(zip(primal.invars, names, strict=True))
    makers = {var: eqn for eqn in primal.eqns for var in eqn.outputs}
    found: dict[Any, Residual] = {}
    for atom in kept:
        if isinstance(atom, Literal):
            continue
        aval = atom.aval
        source = None
        if atom in arguments:
            origin = f"argument {arguments[atom]}"
        elif atom in makers:
            eqn = makers[atom]
            origin, source = f"result of {eqn.primitive.name}", resolve(eqn.source)
        else:
            origin = "constant"
        found[atom] = Residual(aval, origin, source, _size_bytes(aval))
    return tuple(found.values())


def _size_bytes(aval: object) -> int | None:
    """Memory of an array; ``None`` for a tape."""
    if type(aval) is Tape:
        return None
    assert type(aval) is ShapedArray
    return aval.size * aval.dtype.itemsize
