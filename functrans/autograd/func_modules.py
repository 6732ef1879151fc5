"""Modules as functions of their parameters and buffers (``torch.func``).

Here: ``functional_call``, ``stack_module_state``. Not here: the transforms (``autograd.func``).

Layer: ``autograd``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from functrans.autograd.nodes import LeafNode
from functrans.autograd.recording import node_of
from functrans.autograd.tensors import Tensor
from functrans.core.boundary import boundary


@boundary
def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: object = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of its parameters and buffers.

    Args:
      module: a module with ``named_parameters`` and ``named_buffers``.
      parameter_and_buffer_dicts: tensors by name, or several such dictionaries.
      args: the argument of the module, or a tuple of arguments.
      kwargs: arguments by name.
      tie_weights: whether a tensor that goes by several names is replaced under all of them.
      strict: whether every parameter and buffer must be given.

    Returns:
      What the module returns; the module is as it was.

    Raises:
      KeyError: a name does not exist.
      ValueError: a name is in two dictionaries.
      RuntimeError: ``strict``, and a name is missing.
    """
    given: dict[str, Any] = {}
    dicts = parameter_and_buffer_dicts
    for own in [dicts] if isinstance(dicts, Mapping) else dicts:
        for name, value in own.items():
            if name in given:
                raise ValueError(f"{name} appears in multiple dictionaries")
            given[name] = value
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _exchanged(module, given, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def _slots(module: Any) -> dict[str, tuple[Any, str, Any]]:
    """By name the dictionary, key and tensor of each parameter and buffer."""
    found = {}
    for prefix, part in module.named_modules():
        for table in (part._parameters, part._buffers):
            for key, tensor in table.items():
                if tensor is not None:
                    found[f"{prefix}.{key}" if prefix else key] = (table, key, tensor)
    return found


@contextmanager
def _exchanged(
    module: object, given: Mapping[str, Any], tie_weights: bool, strict: bool
) -> Iterator[None]:
    """Other tensors in a module, for a ``with`` block."""
    slots = _slots(module)
    unknown = sorted(set(given) - set(slots))
    if unknown:
        raise KeyError(f"functional_call: the module has no parameter or buffer {unknown[0]!r}")
    new = dict(given)
    if tie_weights:
        by_tensor = {id(slots[name][2]): value for name, value in given.items()}
        for name, (_, _, tensor) in slots.items():
            if id(tensor) in by_tensor:
                new.setdefault(name, by_tensor[id(tensor)])
    missing = sorted(set(slots) - set(new))
    if strict and missing:
        raise RuntimeError(f"Error(s) in loading state_dict: missing key(s): {', '.join(missing)}.")
    try:
        for name, value in new.items():
            table, key, _ = slots[name]
            table[key] = value
        yield
    finally:
        for name in new:
            table, key, tensor = slots[name]
            table[key] = tensor


@boundary
def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and buffers of modules of one kind, stacked for :func:`vmap`.

    Args:
      models: modules with the same names and shapes.

    Returns:
      Parameters and buffers by name, with an axis in front for the modules; the parameters are
      leaves that require gradients, if those of the modules do.

    Raises:
      RuntimeError: there are no modules, or they are of different classes or modes.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not all(type(model) is type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if len({bool(getattr(model, "training", True)) for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    parameters = _stacked([dict(model.named_parameters()) for model in models])
    buffers = _stacked([dict(model.named_buffers()) for model in models])
    return parameters, buffers


def _stacked(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    result = {}
    for name in tables[0]:
        tensors = [table[name] for table in tables]
        if len({t.requires_grad for t in tensors}) > 1:
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        stacked = Tensor.of(np.stack([np.asarray(t._value) for t in tensors]))
        if node_of(tensors[0]) is not None:
            stacked._node = LeafNode(stacked._weak(), stacked._value.shape, stacked._value.dtype)
        stacked._follows = tensors[0]._follows
        result[name] = stacked
    return result
