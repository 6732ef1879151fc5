"""Jitted functions: what a call is looked up by, staged, specialized, guarded and explained.

Not here: machine code (``compiler``), steps that work on tensors (``autograd.jitted``).

Layer: ``jitted``.
"""
