"""Looking into running programs: ``ft.debug.print``, ``callback`` and ``breakpoint``.

Re-exports what ``control.callbacks`` defines, under JAX's names.

Layer: ``control`` (its public face).
"""

from functrans.control.callbacks import debug_breakpoint as breakpoint
from functrans.control.callbacks import debug_callback as callback
from functrans.control.callbacks import debug_print as print

__all__ = ["breakpoint", "callback", "print"]
