"""Derivatives of higher order in one pass: Taylor series, Laplacians, Gauss-Newton products.

Layer: ``higher``.
"""
