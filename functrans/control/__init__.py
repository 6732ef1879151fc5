"""Higher-order primitives: staging, control flow, custom rules, checkpoint, callbacks, collectives.

Layer: ``control``.
"""
