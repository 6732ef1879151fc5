"""``torch.special``: special functions, by name.

Here: names. Not here: the functions (``functrans.autograd.methods.special``).

Layer: ``compat``.
"""

from __future__ import annotations

from functrans.autograd.methods.special import SPECIAL
from functrans.autograd.overrides import overridable as _overridable
from functrans.compat.torch.not_offered import nothing_else
from functrans.compat.torch.polynomials import POLYNOMIALS
from functrans.core.boundary import guard as _guard

globals().update(SPECIAL)
globals().update(POLYNOMIALS)
_guard(
    globals(),
    list(globals()),
    homes=("functrans.compat.torch", "functrans.autograd"),
    make=_overridable,
)

__path__: list[str] = []  # import statements ask for what is not here, too
__getattr__ = nothing_else(__name__)
