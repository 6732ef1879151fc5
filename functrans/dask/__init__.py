"""Derivatives of functions that are spread over the workers of Dask: ``ft.dask``.

What travels is the program, as ``save`` writes it, once to each worker, which compiles it once.
Needs Dask: ``pip install 'functrans[dask]'``.

Layer: ``dask``.
"""

from functrans.core.boundary import guard as _guard
from functrans.dask.items import map as map
from functrans.dask.rows import jacobian as jacobian
from functrans.dask.shards import P as P
from functrans.dask.shards import shard_map as shard_map
from functrans.dask.sums import sum_over as sum_over
from functrans.namespaces import listing as _listing

__all__ = ["P", "jacobian", "map", "shard_map", "sum_over"]
__dir__ = _listing(__all__)
_guard(globals(), __all__)
