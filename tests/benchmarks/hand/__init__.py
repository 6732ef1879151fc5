"""Derivatives written by hand as numba kernels: what a patient expert would reach.

Each module imports numba at its top; workloads import them inside the ``numba-hand`` builders
only. All kernels keep IEEE semantics (``fastmath=False``).
"""
