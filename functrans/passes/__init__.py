"""Passes over programs and recorded nodes: staging, recording, derivatives, batching, evaluation.

Here: what ``grad``, ``jvp``, ``vmap`` and ``jit`` are made of, and the traces that run a function
on values. Not here: the transforms that users call (``transforms``).

Layer: ``passes``.
"""
