"""The tables that are handed down at first use.

Here: the functions behind ``Jaxpr``'s methods, and NumPy's protocols and the ndarray methods of
tracers. ``functrans/__init__.py`` imports this module when one of them is needed: they are two
thirds of functrans's import time. Not here: the functions.

Layer: last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from functrans.control import table as control
from functrans.ir.encoding import install_primitives
from functrans.ir.printing import pretty, to_dot
from functrans.ir.serialize import load, reduce, save, structural_hash
from functrans.numpy.tables import install
from functrans.passes.costs import program_cost
from functrans.passes.pages import to_html
from functrans.primitives.slicing import BasicIndex
from functrans.primitives.table import PRIMITIVES


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


def install_numpy(load_scipy: Callable[[], Mapping[str, Callable[..., Any]]]) -> None:
    """Give tracers NumPy's protocols and the ndarray methods.

    Args:
      load_scipy: gives the table of the ufuncs of ``scipy.special``, when one of them is called.
    """
    install(load_scipy)
