"""Products and systems with sparse matrices.

Layer: ``primitives.sparse``.
"""
