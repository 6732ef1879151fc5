"""The native compiler: programs of the IR become machine code.

Planning and code generation write LLVM's text; ``engine`` turns text into object code and object
code into addresses, ``cache`` keeps object code on disk, ``entry`` makes native programs callable
from Python, ``threads`` runs the chunks of a parallel region. Only ``engine`` imports llvmlite, at
first use.

Layer: ``compiler``.
"""
