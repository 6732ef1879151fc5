"""Kernels compiled by numba: loops of the interpreter that NumPy has no function for.

Here: nothing is imported. The kernels stand in ``recurrences`` and ``scatters``, their names and
compilation in ``table``. Compiled programs have code of their own for the same operations, written
by the ``lower`` rules of ``primitives``; they may call a kernel by its address.

Layer: ``kernels``.
"""
