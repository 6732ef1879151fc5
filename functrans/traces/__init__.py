"""Traces that run a function on values: recording (reverse mode) and pushing (forward mode).

Layer: ``traces``.
"""
