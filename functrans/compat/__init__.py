"""Names of other libraries over functrans: torch, JAX, autograd.

Layer: ``compat``.
"""
