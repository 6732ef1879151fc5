"""Functions that numba compiles: our own loops that NumPy has no function for, and users'.

Here: nothing is imported. Our kernels stand in ``recurrences``, ``scatters`` and ``colorings``,
their names in ``table``; ``entries`` makes a loop of a user's function; ``loops`` compiles, keeps
and calls both, ``fingerprints`` names what is kept. Compiled programs have code of their own for
most operations, written by the ``lower`` rules of ``primitives``; a user's they call by its address
(``primitives.kernels``).

Layer: ``kernels``.
"""
