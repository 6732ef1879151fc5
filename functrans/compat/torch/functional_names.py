"""The functions of ``torch`` by name.

Here: ``FUNCTIONS``, put together from the tables of ``functrans.autograd.methods``; the factories
with torch's default dtype; queries. Not here: the operations themselves.

Layer: ``compat``.
"""

from __future__ import annotations

import math
from typing import Any

from functrans.autograd.factories import Factories
from functrans.autograd.methods import (
    arithmetic,
    blending,
    comparison,
    complex_numbers,
    filling,
    gathering,
    joining,
    linear_algebra,
    ordering,
    parts,
    pointwise,
    products,
    reductions,
    shaping,
    special,
    state,
)
from functrans.autograd.methods.legacy_types import TYPES
from functrans.autograd.methods.printing import set_printoptions
from functrans.autograd.methods.rows import by_name, check_tensor, function_form
from functrans.autograd.overrides import overridable
from functrans.autograd.promotion import torch_defaults
from functrans.autograd.sizes import Size
from functrans.autograd.tensors import Tensor, called

TORCH = Factories(lambda: torch_defaults.dtype, follows_torch=True)
"""The factories of ``functrans.compat.torch``: Python floats become its default dtype."""


def is_tensor(obj: object) -> bool:
    """Whether an object is a tensor.

    Example:
      >>> import functrans.compat.torch as torch
      >>> is_tensor(torch.zeros(2))
      True
    """
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements."""
    check_tensor("numel", input)
    return math.prod(input.shape)


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same extents."""
    check_tensor("is_same_size", input)
    check_tensor("is_same_size", other, "other", 2)
    return input.shape == other.shape


_FAMILIES: tuple[Any, ...] = (
    arithmetic, blending, pointwise, special, comparison, complex_numbers, shaping, parts, joining,
    reductions, ordering, products, linear_algebra, gathering, filling,
)  # fmt: skip
_OF_METHODS = (state.clone, state.detach, state.detach_, filling.zero_, filling.fill_)
_TABLE: dict[str, Any] = {
    **{name: f for family in _FAMILIES for name, f in family.FUNCTIONS.items()},
    **TORCH.table(),
    **{method.__name__: function_form(method.__name__, method) for method in _OF_METHODS},
    **{name: kind for name, kind in TYPES.items() if not name.startswith("Complex")},
    **by_name(set_printoptions, numel, is_same_size, is_tensor, Size),
}

FUNCTIONS: dict[str, Any] = {name: overridable(called(f, name)) for name, f in _TABLE.items()}
