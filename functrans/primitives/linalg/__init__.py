"""Dense linear algebra: factors, systems, spectra, functions of matrices.

Layer: ``primitives.linalg``.
"""
