"""Special functions, by family.

Layer: ``primitives.special``.
"""
