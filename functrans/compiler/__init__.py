"""The native compiler: programs of the IR become machine code.

``prepare``, ``support`` and ``schedule`` plan a program; ``programs``, ``bodies``, ``blocks`` and
``nests`` write LLVM's text, ``parallel`` the code that runs large nests on threads. ``engine``
turns text into object code and object code into addresses, ``cache`` keeps object code on disk,
``entry`` makes native programs callable from Python, and ``compiled`` puts it all together. Only
``engine`` imports llvmlite, at first use. ``docs/compiler.md`` describes the steps.

Layer: ``compiler``.
"""
