"""First-order primitives, one file per family; ``table.PRIMITIVES`` lists them all.

Layer: ``primitives``.
"""
