"""Saved values by torch's names: ``grad_fn._saved_self``, ``grad_fn._raw_saved_result``.

Here: which residual of a node has which name, and ``SavedTensor``, on which hooks can be set. Not
here: residuals (``autograd.residuals``).

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd.labels import label_of
from functrans.autograd.residuals import FREED, Packed, modified, pack_tensor
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import Tracer
from functrans.core.primitive import multilinear
from functrans.core.values import Array
from functrans.passes.nodes import LinearProgram, is_jointly_linear

PREFIXES = ("_", "_raw_")

_NAMES: dict[str, tuple[str | None, ...]] = {
    "power": ("self", "exponent", "result"),
    "where": ("condition", "self", "other", None),
    "clip": ("self", "min", "max", None),
    "dot_general": ("self", "mat2"),
}
"""Names of operands, then of the result, where they are not ``self``, ``other``, ``result``."""

_NAMES_BY_LABEL: dict[str, tuple[str | None, ...]] = {
    "Mv": ("self", "vec"),
    "Dot": ("self", "tensor"),
}

_OF_PARAMS: dict[str, dict[str, Callable[[Any], Any]]] = {
    "Sum": {"self_sym_sizes": lambda node: node.parents[0].shape},
    "Expand": {"self_sym_sizes": lambda node: node.parents[0].shape},
    "View": {"self_sym_sizes": lambda node: node.parents[0].shape},
    "Permute": {"dims": lambda node: tuple(node.params["axes"])},
}
"""By label, names of what a node knows from its parameters."""


def saved_names(node: Any) -> dict[str, int | Callable[[Any], Any]]:
    """What a node saved: by torch's name the position of a residual, or a function of the node."""
    primitive = node.primitive
    label = node.label or label_of(primitive)
    found: dict[str, int | Callable[[Any], Any]] = dict(_OF_PARAMS.get(label, {}))
    n = len(node.parents)
    if primitive is None or isinstance(node.saved, LinearProgram):
        return found
    names = _NAMES_BY_LABEL.get(label) or _NAMES.get(primitive.name.removeprefix("torch_"))
    if names is None:
        names = (*("self", "other", "third")[:n], "result") if n <= 3 else ()
    needed = -1
    if primitive.elementwise is not None:
        needed = 0
        for bits in primitive.elementwise.saves:
            needed |= bits
    elif is_jointly_linear(primitive):
        return found
    elif primitive.jvp is multilinear:
        needed = (1 << n) - 1
    elif node.shape is None or label == "CopySlices" or not primitive.jvp:
        return found
    found.update({name: i for i, name in enumerate(names) if name is not None and needed >> i & 1})
    return found


def position_of(node: Any, name: str) -> int:
    """Which residual torch calls by a name.

    Raises:
      AttributeError: none.
    """
    position = saved_names(node).get(name)
    if not isinstance(position, int):
        raise AttributeError(f"{node.name()!r} object has no saved tensor {name!r}")
    return position


def saved_by_name(node: Any, name: str) -> Any:
    """What torch calls ``_saved_<name>``.

    Raises:
      AttributeError: the node saved nothing of the name.
      RuntimeError: it was given up, or written to since.
    """
    place = saved_names(node).get(name)
    if place is None:
        raise AttributeError(f"{node.name()!r} object has no attribute '_saved_{name}'")
    if not isinstance(place, int):
        return place(node)
    if node.is_freed:
        raise RuntimeError(FREED)
    value = _residual(node.saved, place)
    if value is None:
        return None
    storage = None
    if type(value) is Packed:
        packed = value.tensor()
        value, storage = packed._value, packed._stored()
    else:
        for guard in node.guards:
            if guard.value is value:
                if guard.storage.version != guard.version:
                    raise modified(guard, node)
                storage = guard.storage
                break
    if not hasattr(value, "shape") or not isinstance(value, (np.ndarray, np.generic, Tracer)):
        return value if name == "exponent" else Tensor.of(np.asarray(value))
    origin = _origin(node, place)
    if origin is not None and origin.primitive is None:
        owner = origin.owner()
        if owner is not None and owner._value is value:
            return owner
    tensor = Tensor.of(value, origin)
    if storage is not None:
        tensor._storage = storage
    return tensor


def _origin(node: Any, place: int) -> Any:
    return node.parents[place] if place < len(node.parents) else node


def _residual(saved: Any, place: int) -> Array | Packed:
    if saved and type(saved[0]) is tuple:
        operands, outs = saved
        return (*operands, *outs)[place]
    return saved[place]


def _with_residual(saved: Any, place: int, value: object) -> Any:
    """Residuals with another one at a place; of the same structure."""
    if saved and type(saved[0]) is tuple:
        operands, outs = saved
        n = len(operands)
        if place < n:
            return (*operands[:place], value, *operands[place + 1 :]), outs
        return operands, (*outs[: place - n], value, *outs[place - n + 1 :])
    changed = list(saved)
    changed[place] = value
    return changed if type(saved) is list else tuple(changed)


class SavedTensor:
    """A place where a node keeps a residual; torch's ``_raw_saved_*``.

    Attributes:
      node: the node.
      place: which of its residuals.
    """

    __slots__ = ("node", "place")

    def __init__(self, node: Any, place: int) -> None:
        self.node = node
        self.place = place

    def register_hooks(self, pack: Callable[[Any], Any], unpack: Callable[[Any], Any]) -> None:
        """Keep what ``pack`` makes of the tensor; ``unpack`` gives it back when it is needed.

        Args:
          pack: called at once with the tensor.
          unpack: called with what ``pack`` returned.

        Raises:
          TypeError: they cannot be called.
          RuntimeError: there is no tensor (any more), it has hooks, it was written to.

        Example:
          >>> from functrans.autograd import tensor
          >>> x = tensor([1.0, 2.0], requires_grad=True)
          >>> y = x.exp()
          >>> y.grad_fn._raw_saved_result.register_hooks(lambda t: t.numpy() * 10, tensor)
          >>> y.grad_fn._saved_result
          tensor([27.1828, 73.8906], grad_fn=<ExpBackward0>)
        """
        if not callable(pack) or not callable(unpack):
            raise TypeError("register_hooks(): incompatible function arguments: pass two callables")
        node = self.node
        if node.is_freed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved "
                "intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the "
                "graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        value = _residual(node.saved, self.place)
        if value is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        if type(value) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
                "only one pair of hooks is allowed at a time."
            )
        guards = list(node.guards)
        tensor = Tensor.of(value if hasattr(value, "shape") else np.asarray(value))
        for i, guard in enumerate(guards):
            if guard.value is value:
                if guard.storage.version != guard.version:
                    raise modified(guard, node)
                tensor._storage = guard.storage
                del guards[i]
                break
        packed = pack_tensor(tensor, pack, unpack, node.name(), node.source)
        node.saved = _with_residual(node.saved, self.place, packed)
        node.note_packed(pack)
        node.guards = guards
