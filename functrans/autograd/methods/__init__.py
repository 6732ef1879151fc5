"""Methods of ``Tensor``, by family: each module has a table ``METHODS``.

Layer: ``autograd``.
"""
