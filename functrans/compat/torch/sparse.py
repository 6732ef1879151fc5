"""``torch.sparse``: the names of its types, for annotations and ``isinstance``.

Layer: ``compat``.
"""

from __future__ import annotations

from typing import Any

from functrans.compat.torch.not_offered import nothing_else

_TYPES = (
    "BFloat16Tensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor",
    "IntTensor", "LongTensor", "ShortTensor",
)  # fmt: skip


def _new(cls: type, *args: object, **kwargs: object) -> Any:
    """No such tensor.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        f"torch.sparse.{cls.__name__}() makes a sparse tensor, which functrans.compat.torch does "
        "not offer: tensors are dense; use scipy.sparse beside them, or a mask"
    )


globals().update({name: type(name, (), {"__new__": _new}) for name in _TYPES})

__getattr__ = nothing_else(__name__)
