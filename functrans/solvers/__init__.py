"""Solvers and functions from outside as differentiable operations.

Here: linear systems, roots and fixed points by the implicit function theorem, ``external``.

Layer: ``solvers``.
"""
