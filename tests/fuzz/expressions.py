"""Expressions: many in one case, without machine code, so that each is met in many forms.

As ``programs``, but long and wide: shapes, dtypes and special values of single expressions are
what is searched. What the library refuses of plain arrays is no step, so that the rest is judged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.errors import FunctransError

from .programs import Programs, evaluated
from .reference import TRACED


class Expressions(Programs):
    """See the module's docstring."""

    name = "expressions"
    sizes = ((4, 8), (20, 40))
    runs = ("eager", "jvp", "interpreted")
    always = "interpreted"

    def accepts(self, text: str, values: dict[str, Any]) -> bool:
        """Whether the library computes it of plain arrays; other errors are found by the runs."""
        try:
            with np.errstate(all="ignore"):
                evaluated(text, TRACED, values)
        except FunctransError:
            return False
        except Exception:
            return True
        return True


KIND = Expressions()
