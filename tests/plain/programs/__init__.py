"""Ordinary programs of NumPy and SciPy, written as their users write them; see `test_programs`."""
