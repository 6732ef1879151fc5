"""The transforms that users call: gradients, Jacobians, ``vmap`` and program inspection.

Layer: ``transforms``.
"""
