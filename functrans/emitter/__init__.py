"""The vocabulary that lowerings speak: typed values, instructions, NumPy's arithmetic, vector math.

Layer: ``emitter``.
"""
