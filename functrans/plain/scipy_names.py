"""What modules of SciPy stand for in twins, where it is not what functrans has under the name.

Loaded when the first name of SciPy is met, since it imports all of ``functrans.scipy``.

Here: the namespace, the tables of names and objects. Not here: matrices (``plain.sparse.names``)
and solvers (``plain.optimize``), how names are looked up (``plain.libraries``).

Layer: ``plain``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import functrans.scipy as namespace
from functrans.plain import integrate, optimize
from functrans.plain.sparse import names as sparse_names
from functrans.plain.sparse.in_twins import in_twins

__all__ = ["NAMES", "namespace", "of_matrix", "of_superlu"]

NAMES: dict[str, Callable[[], dict[str, Any]]] = {
    **sparse_names.NAMES,
    **optimize.NAMES,
    **integrate.NAMES,
}
"""By module of SciPy, what gives the twins of its names beside those of functrans."""

of_matrix = functools.partial(in_twins, is_from_outside=True)
of_superlu = sparse_names.from_superlu
sparse_names.register_container()
