"""Higher-order primitives: conditions, loops, calls with rules, callbacks, collectives.

Here: equations whose parameters hold programs, and the running of programs. Not here: ``jit``
(``jitted``), solvers (``solvers``).

Layer: ``control``.
"""
