"""Comparisons of ``Tensor``: results are tensors of truth values.

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans.autograd.methods.arithmetic import _other, apply
from functrans.autograd.tensor import Tensor
from functrans.primitives import elementwise as ew


def _comparison(primitive: Any) -> Callable[..., Any]:
    def method(self: Tensor, other: Any) -> Any:
        other = _other(self, other)
        if other is NotImplemented:
            return NotImplemented
        return apply(primitive, self, other)

    return method


METHODS: dict[str, Any] = {}
for _name, _primitive in (
    ("eq", ew.equal_p),
    ("ne", ew.not_equal_p),
    ("lt", ew.less_p),
    ("le", ew.less_equal_p),
    ("gt", ew.greater_p),
    ("ge", ew.greater_equal_p),
):
    METHODS[f"__{_name}__"] = METHODS[_name] = _comparison(_primitive)
