"""The functions behind ``Jaxpr``'s methods, which read the table of primitives.

Here: their table. ``deferred`` imports this module when the first of them is called. Not here: the
functions.

Layer: last.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functrans.control import table as control
from functrans.ir.encoding import install_primitives
from functrans.ir.printing import pretty, to_dot
from functrans.ir.serialize import load, reduce, save, structural_hash
from functrans.passes.costs import program_cost
from functrans.passes.pages import to_html
from functrans.primitives.slicing import BasicIndex
from functrans.primitives.table import PRIMITIVES


@functools.cache
def jaxpr_methods() -> dict[str, Callable[..., Any]]:
    """The functions behind ``Jaxpr``'s methods."""
    install_primitives((*PRIMITIVES, *control.PRIMITIVES), (BasicIndex,))
    return {
        "pretty": pretty,
        "to_dot": to_dot,
        "to_html": to_html,
        "cost": program_cost,
        "structural_hash": structural_hash,
        "save": save,
        "load": load,
        "reduce": reduce,
    }
