"""``jit`` of functions that work on tensors: whole steps with ``backward`` and optimizers.

Layer: ``autograd.jitted``.
"""
