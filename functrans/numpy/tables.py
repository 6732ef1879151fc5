"""The tables that NumPy's protocols use.

Here: the modules whose functions answer ``__array_function__``, and what to use in place of NumPy
functions that cannot be traced. Not here: the functions, the look-up (``protocols``).

Layer: ``numpy``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# isort: off
from functrans.numpy import (
    arranging, creation, cumulative, diagonals, einstein, elements, fft, joining, lanes, linalg,
    logic, means, nan_functions, padding, polynomials, products, quantiles, reductions, scimath,
    selection, sets, shaping, sorting, splitting, statistics,
)  # fmt: skip
# isort: on

MODULES = (
    arranging, creation, cumulative, diagonals, einstein, elements, fft, joining, lanes, linalg,
    logic, means, nan_functions, padding, polynomials, products, quantiles, reductions, scimath,
    selection, sets, shaping, sorting, splitting, statistics,
)  # fmt: skip

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
