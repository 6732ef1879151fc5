"""The short way of a jitted call: machine code that is all there is to do.

Here: ``Direct``, and when there is one. Not here: the look-up of programs (``jitted.jit``).

Layer: ``jitted``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.values import Array
from functrans.passes.staging import may_change
from functrans.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Direct:
    """Machine code that is all there is to do in a call like the last one.

    Attributes:
      call: a function of the leaves of the arguments, which checks them itself: whatever is not as
        it was is looked up again.
      treedef: structure of the arguments; their number if none is a container.
      static: key of the static arguments.
      result: structure of the result; ``None`` if what ``call`` returns is the result.
    """

    call: Callable[..., Any]
    treedef: Any
    static: Hashable
    result: Any


def direct_call(program: Any, treedef: object, static: Hashable) -> Direct | None:
    """The machine code of a program, where it needs nothing around it."""
    native = program.native
    if native is None or native.direct is None:
        return None
    call: Callable[..., Any] = native.direct.call
    if program.captured:
        call = functools.partial(call, *map(_in_order, program.captured))
    entry = native.direct.entry
    returned = tree.LEAF if entry.single else tree.structure((0,) * len(entry.outputs))
    result = None if program.treedef == returned else program.treedef
    return Direct(call, treedef, static, result)


def _in_order(value: object) -> Any:
    """A captured array as machine code takes it, where nobody can write to it."""
    is_array = type(value) is np.ndarray
    return np.asarray(value, order="C") if is_array and not may_change(value) else value


def structured(treedef: object, result: Sequence[Array]) -> Any:
    """What machine code returned, in the structure of the result."""
    if treedef is None:
        return result
    return tree.unflatten(treedef, result if type(result) is tuple else (result,))
