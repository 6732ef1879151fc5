"""What staging tells the compiler of a program: the record ``Execution``.

Here: the record, and how one comes to that of a program. Not here: whoever fills it in
(``jitted.captured``, ``jitted.guards``), how programs have run (``control.native``).

Layer: ``compiler``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from functrans.core.analyses import Record, analysis
from functrans.core.jaxpr import Jaxpr, Var
from functrans.records import dataclass, field


@dataclass(slots=True, eq=False)
class Execution(Record):
    """What whoever stages a program tells of how it is to run.

    Attributes:
      constants: arguments of which every call passes the same array, that nobody can change: the
        basis of a Jacobian is one, the places of the entries of a sparse one another.
      lasting: arguments that are the same in all rounds of the loop that it is the body of.
      rolled: its form with loops for what repeats, if there is one; it is compiled in its place.
      gives_what_it_can: whether nobody is warned of memory that was given away for nothing.
      is_one_path: whether it is right for one path through the function only.
    """

    constants: Mapping[Var, np.ndarray] = field(default_factory=dict)
    lasting: tuple[Var, ...] = ()
    rolled: Jaxpr | None = None
    gives_what_it_can: bool = False
    is_one_path: bool = False

    def forget(self) -> None:
        """Nothing here was found out."""

    def __len__(self) -> int:
        """Nothing here was found out."""
        return 0


@analysis
def execution_of(jaxpr: Jaxpr) -> Execution:
    """What is told of how a program is to run."""
    return Execution()
