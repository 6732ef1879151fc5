"""What everything stands on: types and records of programs, and how an operation finds its trace.

Here: avals, ``Jaxpr``, ``Primitive``, the kinds of lowering, source lines, tapes, configuration,
arguments. Not here: programs as text and files (``ir``), the primitives (``primitives``).

Layer: ``core``.
"""
