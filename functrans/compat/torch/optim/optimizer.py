"""``Optimizer``: groups of parameters, their state, and steps.

Not here: the algorithms (``optim.algorithms``, ``optim.lbfgs``) and schedules of the learning rate
(``optim.lr_scheduler``).

An update is a function of values: of arrays, which are overwritten with the results, or of what
stands for them while ``jit`` traces a step. Numbers that a step changes are tensors, so that they
are part of a traced step.

Layer: ``compat``. Reference: PyTorch's documentation of ``torch.optim``, for the behaviour.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from functrans.autograd.hooks import Hooks, RemovableHandle
from functrans.autograd.labels import torch_type
from functrans.autograd.modes import enable_grad, modes, no_grad
from functrans.autograd.promotion import torch_tensor
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn.module_hooks import add_entry, clear_grad
from functrans.compat.torch.values import value_of
from functrans.primitives.structural import cast


class _Required:
    """The default of an option that must be given."""

    def __repr__(self) -> str:
        """As torch prints it."""
        return "<required parameter>"


required = _Required()


class Past:
    """What an optimizer did, for warnings; no part of its state, nor of a jitted step's.

    Attributes:
      has_stepped: whether ``step`` was called.
    """

    __slots__ = ("has_stepped",)

    def __init__(self) -> None:
        self.has_stepped = False


class Optimizer:
    """The base of all optimizers.

    Args:
      params: parameters, pairs of names and parameters, or dictionaries with ``"params"`` and
        options.
      defaults: options of groups that do not give them.

    Raises:
      TypeError: ``params`` is a tensor, or has something else in it.
      ValueError: there are none, or one comes twice.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {torch_type(params.dtype)}"
            )
        if modes.session is not None:
            modes.session.note_made(self)
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self.past = Past()
        self._pre_hooks = Hooks()
        self._post_hooks = Hooks()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own.

        Raises:
          TypeError: it is no dictionary, or has something else than tensors.
          ValueError: a parameter is no leaf, or belongs to another group; an option is missing.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        given = group["params"]
        if isinstance(given, Tensor):
            given = [given]
        elif isinstance(given, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        given = list(given)
        if given and isinstance(given[0], tuple):
            group["param_names"] = [name for name, _ in given]
            given = [p for _, p in given]
        group["params"] = given
        for p in given:
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {type(p)}"
                )
            if not (p.is_leaf or p._retains):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            group.setdefault(name, default)
        if len({id(p) for p in given}) != len(given):
            raise ValueError("some parameters appear in more than one parameter group")
        known = {id(p) for other in self.param_groups for p in other["params"]}
        if not known.isdisjoint(id(p) for p in given):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(group)

    # steps ----------------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters from their gradients.

        Args:
          closure: computes the loss and its gradients anew; it is called first.

        Returns:
          The loss that ``closure`` returns, or ``None``.
        """
        if modes.session is not None:
            modes.session.meet(self)
        self.past.has_stepped = True
        if self._pre_hooks:
            self._call_pre_hooks(closure)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                self.update(group)
        if self._post_hooks:
            self._call_post_hooks(closure)
        return loss

    def _call_pre_hooks(self, closure: object) -> None:
        for hook in list(self._pre_hooks.values()):
            changed = hook(self, () if closure is None else (closure,), {})
            if changed is not None and not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    f"{type(self).__name__}.step must return None or a tuple of (new_args, "
                    f"new_kwargs), but got {changed}."
                )

    def _call_post_hooks(self, closure: object) -> None:
        for hook in list(self._post_hooks.values()):
            hook(self, () if closure is None else (closure,), {})

    def update(self, group: dict[str, Any]) -> None:
        """Update the parameters of a group; subclasses define it.

        Raises:
          NotImplementedError: they did not.
        """
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters.

        Args:
          set_to_none: ``None``, not zeros.
        """
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                else:
                    clear_grad(p, False)

    # jit ------------------------------------------------------------------------------------------

    def state_of_steps(self) -> dict[str, Any]:
        """What a jitted step depends on, and may change: groups, state and hooks."""
        return self.__dict__

    def numbers_of_steps(self) -> list[tuple[dict[str, Any], str]]:
        """Where numbers stand that are arguments of a jitted step, not parts of its program.

        A schedule changes learning rates between steps, and some change the momentum; the updates
        of this package take them as they come. Those of a user's subclass may not.
        """
        if not type(self).update.__module__.startswith(__package__):
            return []
        rates = [(group, "lr") for group in self.param_groups]
        cycled = [group for group in self.param_groups if "base_momentum" in group]
        betas = [(group, "betas") for group in cycled if "betas" in group]
        return rates + betas + [(group, "momentum") for group in cycled if group.get("momentum")]

    # hooks ----------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step."""
        return add_entry(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return add_entry(self._post_hooks, hook)

    # state ----------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """State and options, with numbers in place of parameters."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {
            (numbers[id(key)] if isinstance(key, Tensor) else key): value
            for key, value in self.state.items()
        }
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave; nothing is changed if it does not fit.

        Raises:
          ValueError: the groups are of other numbers or sizes.
        """
        own, given = self.param_groups, copy.deepcopy(state_dict["param_groups"])
        if len(own) != len(given):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(own, given, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        numbers = [n for group in given for n in group["params"]]
        parameters = [p for group in own for p in group["params"]]
        place = dict(zip(numbers, parameters, strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            p = place.get(key)
            if p is None:
                state[key] = value
            else:
                state[p] = {name: _fitted(name, x, p) for name, x in value.items()}
        for group, new in zip(own, given, strict=True):
            new["params"] = group["params"]
        self.state = state
        self.param_groups = given

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.past = Past()
        self._pre_hooks = Hooks()
        self._post_hooks = Hooks()

    def __repr__(self) -> str:
        """The options of all groups, one per line."""
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])


def _fitted(name: str, x: Any, p: Tensor) -> Any:
    """A copy of a part of the state, in the dtype of its parameter."""
    if not isinstance(x, Tensor):
        return copy.deepcopy(x)
    value = value_of(x)
    if name != "step" and p.dtype.kind in "fcV":
        value = cast(value, p.dtype)
    return torch_tensor(np.array(value))
