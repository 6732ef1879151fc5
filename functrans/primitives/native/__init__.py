"""Native code of primitives that need loops of their own, and what such rules share.

Layer: ``primitives.native``.
"""
