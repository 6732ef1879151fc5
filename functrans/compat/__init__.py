"""Names of other libraries over functrans: ``functrans.compat.torch``.

Layer: ``compat``.
"""
