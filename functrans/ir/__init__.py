"""The intermediate representation: avals, primitives, programs, their text and their files.

Layer: ``ir``.
"""
