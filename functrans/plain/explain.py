"""``explain_names``: what the names in a function stand for while it is traced.

Layer: ``plain`` (last module).
"""

from __future__ import annotations

import builtins
import types
from typing import Any

import numpy as np

from functrans.core.arguments import check_callable, name_of
from functrans.core.boundary import boundary
from functrans.core.source import attribute
from functrans.plain.decide import (
    MAKES_ARRAYS,
    MISSING,
    look_at,
    meaning,
    names_in,
    reason_for_twin,
)
from functrans.plain.entry import twin
from functrans.plain.library_calls import is_of_code
from functrans.plain.numbers import has_twin
from functrans.plain.numpy_names import ScalarType
from functrans.plain.standins import StandIn
from functrans.plain.users import is_user_module
from functrans.records import dataclass


@dataclass(frozen=True)
class NamesExplanation:
    """What the names in a function stand for while it is traced.

    Attributes:
      function: its name.
      reason: for what it is traced by a twin; empty if it is traced as it is.
      replaced: what another function stands for, by the name in the code.
      followed: functions, classes and objects of user code that are traced in the same way.
      kept: names of libraries that mean what they always mean.
    """

    function: str
    reason: str
    replaced: dict[str, str]
    followed: tuple[str, ...]
    kept: tuple[str, ...]

    def __repr__(self) -> str:
        """A table."""
        if not self.reason:
            return f"{self.function} is traced as it is: every name in it takes traced values"
        lines = [f"{self.function} is traced by its twin, for {self.reason}"]
        width = max(map(len, self.replaced), default=0)
        lines += [f"  {name:{width}}  ->  {what}" for name, what in self.replaced.items()]
        if self.followed:
            lines.append(f"  traced likewise: {', '.join(self.followed)}")
        if self.kept:
            lines.append(f"  as they are: {', '.join(self.kept)}")
        return "\n".join(lines)


@boundary
def explain_names(fun: object) -> NamesExplanation:
    """What the names in a function stand for while it is traced.

    Functions that are written for NumPy, SciPy and Python's numbers are traced as they stand: by a
    *twin* of the same code, in which those names stand for functions that trace. Functions that
    take traced values as they are have none.

    Args:
      fun: function, method, partial or object with ``__call__``.

    Returns:
      An object that prints as a table; its attributes are the parts.

    Raises:
      TypeError: it cannot be called.

    Example:
      >>> import math
      >>> import numpy as np
      >>> def energy(x):
      ...     out = np.zeros(2)
      ...     out[0] = math.exp(x)
      ...     return out.sum()
      >>> explain_names(energy)
      energy is traced by its twin, for a[...] = ... (line 3) of energy
        np.zeros  ->  functrans's zeros: an array that may be filled
        math.exp  ->  functrans's exp
    """
    check_callable("explain_names", fun)
    replaced: dict[str, str] = {}
    followed: dict[str, None] = {}
    kept: dict[str, None] = {}
    _look_into(fun, replaced, followed, kept, set())
    return NamesExplanation(
        name_of(fun), reason_for_twin(fun), replaced, tuple(followed), tuple(kept)
    )


def _look_into(fun: object, replaced: Any, followed: object, kept: Any, seen: set[int]) -> None:
    while not isinstance(fun, types.FunctionType):
        inner = attribute(fun, "__func__") or attribute(fun, "func")
        inner = inner or attribute(fun, "__wrapped__")
        inner = inner or type(fun).__dict__.get("__call__")
        if inner is None or inner is fun or id(fun) in seen:
            return
        seen.add(id(fun))
        fun = inner
    if id(fun) in seen:
        return
    seen.add(id(fun))
    names = names_in(fun)
    pending = [fun.__code__]
    while pending:
        code = pending.pop()
        look = look_at(code)
        pending.extend(look.codes)
        for chain in look.chains:
            value, n = meaning(chain, names)
            name = ".".join(chain[:n])
            if value is MISSING:
                if has_twin(name):
                    replaced[name] = f"{name}, which leaves values traced"
                elif hasattr(builtins, name):
                    kept[name] = None
                continue
            _note(name, value, replaced, followed, kept, seen)


def _note(
    name: str, value: object, replaced: Any, followed: Any, kept: Any, seen: set[int]
) -> None:
    module = getattr(value, "__module__", None) or type(value).__module__
    if isinstance(value, (types.FunctionType, types.MethodType)) and is_user_module(module):
        followed[name] = None
        _look_into(value, replaced, followed, kept, seen)
    elif callable(value) and not is_user_module(module):
        other = twin(value)
        if other is value:
            kept[name] = None
        else:
            replaced[name] = _described(value, other)
    elif is_user_module(module) and (isinstance(value, type) or hasattr(value, "__dict__")):
        followed[name] = None
        cls = value if isinstance(value, type) else type(value)
        for member in list(cls.__dict__.values()):
            inner = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
            if isinstance(inner, types.FunctionType):
                _look_into(inner, replaced, followed, kept, seen)


def _described(value: object, twin: object) -> str:
    """What a twin of a library's function is, in words."""
    name = attribute(value, "__name__") or type(value).__name__
    if isinstance(value, np.ufunc):
        return f"{name}, also of lists of traced values"
    if isinstance(twin, ScalarType):
        return f"{name}, which leaves values traced"
    if isinstance(twin, StandIn):
        return f"{name}, which is given traced values"
    if getattr(twin, "__wrapped__", None) is value and is_of_code(twin):
        return f"SciPy's {name}, whose code is traced"
    text = f"functrans's {name}"
    return f"{text}: an array that may be filled" if name in MAKES_ARRAYS else text
