"""``ft.lax``: control flow, collectives and windows, under JAX's names.

Re-exports what ``control`` and ``primitives`` define.

Layer: ``lax``.
"""

from functrans.control.branches import cond as cond
from functrans.control.branches import select as select
from functrans.control.branches import switch as switch
from functrans.control.collectives import all_gather as all_gather
from functrans.control.collectives import axis_index as axis_index
from functrans.control.collectives import axis_size as axis_size
from functrans.control.collectives import pmax as pmax
from functrans.control.collectives import pmean as pmean
from functrans.control.collectives import pmin as pmin
from functrans.control.collectives import psum as psum
from functrans.control.custom_rules import stop_gradient as stop_gradient
from functrans.control.scanning import associative_scan as associative_scan
from functrans.control.scanning import fori_loop as fori_loop
from functrans.control.scanning import map as map
from functrans.control.scanning import scan as scan
from functrans.control.scanning import while_loop as while_loop
from functrans.namespaces import exported as _exported
from functrans.namespaces import listing as _listing
from functrans.primitives.dynamic_slicing import dynamic_slice as dynamic_slice
from functrans.primitives.dynamic_slicing import dynamic_update_slice as dynamic_update_slice
from functrans.primitives.sorting import top_k as top_k
from functrans.solvers.custom_root import custom_root as custom_root
from functrans.solvers.linear_solve import custom_linear_solve as custom_linear_solve

__all__ = _exported(globals())
__dir__ = _listing(__all__)
