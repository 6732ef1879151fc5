"""What ``jit`` and the compiler know of a program: the record ``Execution``.

Here: the record, and how one comes to that of a program. Not here: whoever fills it in: staging
(``jitted.captured``, ``jitted.jit``), running and compiling (``control.native``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from functrans.core.analyses import Record, analysis
from functrans.core.jaxpr import Jaxpr, Var

if TYPE_CHECKING:
    from functrans.compiler.compiled import Compiled


@dataclass(slots=True, eq=False)
class Execution(Record):
    """What is known of how a program runs.

    Whoever stages it tells the first four.

    Attributes:
      constants: arguments of which every call passes the same array, that nobody can change: the
        basis of a Jacobian is one, the places of the entries of a sparse one another.
      rolled: its form with loops for what repeats, if there is one; it is compiled in its place.
      gives_what_it_can: whether nobody is warned of memory that was given away for nothing.
      is_one_path: whether it is right for one path through the function only.
      codes: by whether arguments are given away, its machine code; ``None`` if it has none, since
        it could not be compiled.
      compile_s: how long it took to compile or load it.
      interpreted_s: for how long it has been interpreted.
    """

    constants: Mapping[Var, np.ndarray] = field(default_factory=dict)
    rolled: Jaxpr | None = None
    gives_what_it_can: bool = False
    is_one_path: bool = False
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
def execution_of(jaxpr: Jaxpr) -> Execution:
    """What ``jit`` and the compiler know of a program."""
    return Execution()
