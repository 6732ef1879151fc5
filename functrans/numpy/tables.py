"""The tables that NumPy's protocols use, and their one declared hand-over.

Here: the modules whose functions answer ``__array_function__``, what to use in place of NumPy
functions that cannot be traced, and ``install``. Not here: the functions, the look-up
(``dispatch``).

Layer: ``numpy`` (last module).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from functrans.numpy import (
    arranging,
    creation,
    cumulative,
    diagonals,
    einstein,
    elements,
    fft,
    joining,
    lanes,
    linalg,
    logic,
    means,
    nan_functions,
    padding,
    polynomials,
    products,
    quantiles,
    reductions,
    scimath,
    selection,
    sets,
    shaping,
    sorting,
    splitting,
    statistics,
)
from functrans.numpy.dispatch import install_tables, protocol_table
from functrans.numpy.methods import method_table
from functrans.numpy.ufunc_methods import UFUNC_METHODS
from functrans.numpy.ufuncs import UFUNCS
from functrans.trace import install_operators

MODULES = (
    arranging,
    creation,
    cumulative,
    diagonals,
    einstein,
    elements,
    fft,
    joining,
    lanes,
    linalg,
    logic,
    means,
    nan_functions,
    padding,
    polynomials,
    products,
    quantiles,
    reductions,
    scimath,
    selection,
    sets,
    shaping,
    sorting,
    splitting,
    statistics,
)

_TEXT = "format the value itself (str(x), repr(x)), or carry it out with has_aux=True"
_FILES = "carry the value out of the traced function (has_aux=True) and write it there"
_DATES = "dates have no derivatives; compute them before the traced function"
_BITS = "bits have no derivatives; compute them before the traced function"

REPLACEMENTS: dict[Callable[..., Any], str] = {
    np.array2string: _TEXT,
    np.array_repr: _TEXT,
    np.array_str: _TEXT,
    np.busday_count: _DATES,
    np.busday_offset: _DATES,
    np.datetime_as_string: _DATES,
    np.is_busday: _DATES,
    np.min_scalar_type: "it depends on the value; give the dtype that is wanted",
    np.packbits: _BITS,
    np.save: _FILES,
    np.savetxt: _FILES,
    np.savez: _FILES,
    np.savez_compressed: _FILES,
    np.unpackbits: _BITS,
}
"""NumPy functions that cannot be traced, to what to use instead."""


def install(load_scipy: Callable[[], Mapping[str, Callable[..., Any]]]) -> None:
    """Hand over NumPy's protocols and the methods of traced arrays; called once, at import.

    Args:
      load_scipy: gives the names of ufuncs in ``scipy.special`` and functions of their operands;
        called when the first of these ufuncs is.
    """
    install_tables(MODULES, UFUNCS, load_scipy, UFUNC_METHODS, REPLACEMENTS)
    install_operators(protocol_table())
    install_operators(method_table())
