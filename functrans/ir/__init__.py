"""Programs as text, files and hashes: printing, checking, saving, loading.

Not here: the records they are made of (``core``).

Layer: ``ir``.
"""
