"""Derivatives of functions that are spread over the workers of Dask: ``ft.dask``.

What travels is the program, as ``save`` writes it, once to each worker, which compiles it once.
Needs Dask: ``pip install 'functrans[dask]'``. A module is imported when a name of it is first used.

Layer: ``dask``.
"""

from typing import TYPE_CHECKING
from typing import Any as _Any

from functrans.namespaces import imported as _imported
from functrans.namespaces import listing as _listing
from functrans.namespaces import missing as _missing
from functrans.namespaces import places_in as _places_in

if TYPE_CHECKING:
    from functrans.dask.items import map as map
    from functrans.dask.rows import jacobian as jacobian
    from functrans.dask.shards import P as P
    from functrans.dask.shards import shard_map as shard_map
    from functrans.dask.sums import sum_over as sum_over

_PLACES = _places_in(__file__)
__all__ = sorted(_PLACES)
__dir__ = _listing(__all__)


def __getattr__(name: str) -> _Any:
    """Import what a public name stands for, at first use."""
    if name not in _PLACES:
        raise _missing(__name__, name)
    value = globals()[name] = _imported(*_PLACES[name])
    return value
