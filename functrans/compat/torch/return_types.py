"""``torch.return_types``: the types of results with names.

Layer: ``compat``.
"""

from functrans.autograd.methods.rows import NAMED_RESULTS
from functrans.compat.torch import further_names as _further_names  # noqa: F401  # has some of them
from functrans.compat.torch.not_offered import nothing_else

globals().update({name: kind for (name, _), kind in NAMED_RESULTS.items()})

__getattr__ = nothing_else(__name__)
