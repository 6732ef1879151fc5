"""Passes over programs and recorded nodes: evaluation, derivatives, batching, simplification.

Layer: ``passes``.
"""
