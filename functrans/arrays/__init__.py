"""What traced arrays understand: operators, indices, masked arrays, sparse operands.

Not here: NumPy's functions (``numpy``).

Layer: ``arrays``.
"""
