"""Machine code: LLVM, and the cache on disk.

Here: nothing is imported. ``engine`` makes code of LLVM's text and loads it, ``cache`` keeps it.

Layer: ``machine``.
"""
