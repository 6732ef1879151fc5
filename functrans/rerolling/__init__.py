"""Repeated straight-line code as loops again.

Here: how repeats are found, checked and written as ``scan`` equations.

Layer: ``rerolling``.
"""
