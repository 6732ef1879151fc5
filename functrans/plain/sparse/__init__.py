"""Sparse matrices of plain code, with traced entries.

Layer: ``plain.sparse``.
"""
