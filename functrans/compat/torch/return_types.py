"""``torch.return_types``: the types of results with names.

Layer: ``compat``.
"""

from functrans.autograd.methods.rows import NAMED_RESULTS
from functrans.compat.torch import further_names as _further_names  # noqa: F401  # has some of them
from functrans.compat.torch.not_offered import nothing_else

_OF_LINALG = {"eig", "lstsq", "lu", "qr", "slogdet"}

for (_name, _fields), _kind in NAMED_RESULTS.items():
    _is_of_linalg = _name in _OF_LINALG or _name.endswith("_ex") or "Vh" in _fields
    globals()[f"linalg_{_name}" if _is_of_linalg else _name] = _kind

__getattr__ = nothing_else(__name__)
