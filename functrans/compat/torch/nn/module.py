"""``Module``: parameters, buffers and submodules under names, and a ``forward``.

Not here: containers (``nn.containers``) and layers (``nn.modules``).

Layer: ``compat``. Reference: PyTorch's documentation of ``torch.nn.Module``, for the behaviour.
"""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import numpy as np

from functrans.autograd.dtypes import given_dtype
from functrans.autograd.hooks import Hooks
from functrans.autograd.methods.conversion import bfloat16_dtype, device
from functrans.autograd.modes import modes, no_grad
from functrans.autograd.tensors import Tensor, refuse_device
from functrans.compat.torch.nn.backward_hooks import BackwardHooks
from functrans.compat.torch.nn.module_hooks import HookRegistration, clear_grad, everywhere
from functrans.compat.torch.nn.module_texts import _IncompatibleKeys, indented, typename
from functrans.compat.torch.nn.parameter import Buffer, Parameter
from functrans.compat.torch.values import assign, value_of
from functrans.errors import TensorDeviceError
from functrans.primitives.structural import cast

_TABLES = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
    "_state_dict_hooks", "_state_dict_pre_hooks", "_load_pre_hooks", "_load_post_hooks",
)  # fmt: skip


class Module(HookRegistration):
    """The base of all layers and models.

    Parameters, buffers and modules that are assigned as attributes are registered under their
    names. Calling the module calls its hooks and its ``forward``.

    Example:
      >>> from functrans.compat.torch.nn import Linear, Module
      >>> class Model(Module):
      ...     def __init__(self):
      ...         super().__init__()
      ...         self.layer = Linear(2, 1)
      ...
      ...     def forward(self, x):
      ...         return self.layer(x)
      >>> [name for name, _ in Model().named_parameters()]
      ['layer.weight', 'layer.bias']
    """

    training: bool
    _version = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]

    def __init__(self) -> None:
        if modes.session is not None:
            modes.session.note_made(self)
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent"] = set()
        own["_modules"] = {}
        for name in _TABLES:
            own[name] = Hooks()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; subclasses define it.

        Raises:
          NotImplementedError: they did not.
        """
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function'
        )

    # calls ----------------------------------------------------------------------------------------

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call hooks and ``forward``."""
        if modes.session is not None:
            modes.session.meet(self)
        own = self.__dict__
        if not (
            own["_forward_hooks"]
            or own["_forward_pre_hooks"]
            or own["_backward_hooks"]
            or own["_backward_pre_hooks"]
            or everywhere.is_set
        ):
            return self.forward(*args, **kwargs)
        return self._call_with_hooks(args, kwargs)

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[Any] = set()
        try:
            return self._called(args, kwargs, called)
        except Exception:
            for after, with_kwargs, always in self._hooks_after():
                if always and after not in called:
                    extra = (kwargs,) if with_kwargs else ()
                    after(self, args, *extra, None)
            raise

    def _hooks_after(self) -> list[tuple[Any, bool, bool]]:
        general = [(hook, False, always) for hook, always in everywhere.after.values()]
        return [*general, *self.__dict__["_forward_hooks"].values()]

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any], called: set[Any]) -> Any:
        before = [(hook, False) for hook in everywhere.before.values()]
        for hook, with_kwargs in [*before, *self.__dict__["_forward_pre_hooks"].values()]:
            if with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, "
                            f"new_kwargs), but got {changed}."
                        )
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        backward = [*everywhere.backward.values(), *self.__dict__["_backward_hooks"].values()]
        pre = list(self.__dict__["_backward_pre_hooks"].values())
        watched = BackwardHooks(self, backward, pre) if backward or pre else None
        if watched is not None:
            args = watched.enter(args)
        result = self.forward(*args, **kwargs)
        for hook, with_kwargs, _ in self._hooks_after():
            called.add(hook)
            changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if changed is not None:
                result = changed
        return result if watched is None else watched.leave(result)

    # attributes -----------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            found = own.get(table)
            if found is not None and name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        parameters, modules, buffers = (
            own.get(table) for table in ("_parameters", "_modules", "_buffers")
        )
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, keep="_parameters")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, keep="_modules")
            modules[name] = value
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            modules[name] = value
        elif isinstance(value, Buffer) and buffers is not None and name not in buffers:
            self._forget(name, keep="_buffers")
            self.register_buffer(name, value, value.persistent)
        elif buffers is not None and name in buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, keep: str) -> None:
        """Remove a name from all tables but one."""
        self.__dict__.pop(name, None)
        for table in ("_parameters", "_buffers", "_modules"):
            if table != keep:
                self.__dict__.get(table, {}).pop(name, None)
        self.__dict__.get("_non_persistent", set()).discard(name)

    def __delattr__(self, name: str) -> None:
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__[table]:
                del self.__dict__[table][name]
                self.__dict__["_non_persistent"].discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        own = self.__dict__
        names = {*dir(type(self)), *own}
        for table in ("_parameters", "_buffers", "_modules"):
            names.update(own.get(table, ()))
        return sorted(name for name in names if not name[0].isdigit())

    def _check_name(self, kind: str, name: str, table: Mapping[str, Any]) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(
                f'{kind} name can\'t contain ".", got: {name}'
                if kind == "module"
                else f'{kind} name can\'t contain "."'
            )
        if not name:
            raise KeyError(
                f'{kind} name can\'t be empty string "", got: {name}'
                if kind == "module"
                else f'{kind} name can\'t be empty string ""'
            )
        if hasattr(self, name) and name not in table:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or a name without one.

        Raises:
          KeyError: the name is taken, empty, or has a dot.
          TypeError: it is no parameter.
          ValueError: it is no leaf.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                "the value in the forward() method."
            )
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is no parameter but belongs to the module's state.

        Args:
          name: of the attribute.
          tensor: the tensor, or ``None``.
          persistent: whether it is a part of ``state_dict``.

        Raises:
          KeyError: the name is taken, empty, or has a dot.
          TypeError: it is no tensor.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        if tensor is not None:
            tensor._follows = True
        self._buffers[name] = tensor
        non_persistent = self.__dict__["_non_persistent"]
        non_persistent.discard(name) if persistent else non_persistent.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule.

        Raises:
          KeyError: the name is taken, empty, or has a dot.
          TypeError: it is no module.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = module

    register_module = add_module

    # what there is --------------------------------------------------------------------------------

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                inner = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, inner, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The submodules with their names, each once."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The submodules."""
        for _, module in self.named_children():
            yield module

    def _named(
        self, table: str, prefix: str, recurse: bool, remove_duplicate: bool
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for start, module in modules:
            for name, value in module.__dict__[table].items():
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{start}.{name}" if start else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Parameters with their names, each once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Buffers with their names, each once."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The submodule of a dotted name.

        Raises:
          AttributeError: there is none.
        """
        module: Any = self
        for part in target.split(".") if target else ():
            if not hasattr(module, part):
                raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
            module = getattr(module, part)
            if not isinstance(module, Module):
                raise AttributeError(f"`{part}` is not an nn.Module")
        return module

    def _get(self, target: str, table: str, what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if name not in module.__dict__[table]:
            raise AttributeError(f"`{name}` is not {what}")
        return module.__dict__[table][name]

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name."""
        return self._get(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name."""
        return self._get(target, "_buffers", "a buffer")

    # state ----------------------------------------------------------------------------------------

    def state_of_steps(self) -> dict[str, Any]:
        """What a jitted step depends on, and may change: all attributes."""
        return self.__dict__

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Parameters and persistent buffers by dotted name.

        Args:
          *args: ``destination``, ``prefix``, ``keep_vars`` by position, as torch had them.
          destination: a dictionary to add to.
          prefix: of the names.
          keep_vars: the tensors themselves; otherwise tensors on their memory, outside of the
            graph.
        """
        given = dict(zip(("destination", "prefix", "keep_vars"), args, strict=False))
        destination = given.get("destination", destination)
        prefix = given.get("prefix", prefix)
        keep_vars = given.get("keep_vars", keep_vars)
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self.__dict__["_state_dict_pre_hooks"].values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook in self.__dict__["_state_dict_hooks"].values():
            changed = hook(self, destination, prefix, metadata)
            if changed is not None:
                destination = changed
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, value in self._own_state():
            destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not Module.get_extra_state:
            destination[f"{prefix}_extra_state"] = self.get_extra_state()

    def _own_state(self) -> Iterator[tuple[str, Any]]:
        for name, value in itertools.chain(self._parameters.items(), self._buffers.items()):
            if value is not None and name not in self.__dict__["_non_persistent"]:
                yield name, value

    def get_extra_state(self) -> Any:
        """What else belongs into ``state_dict``; subclasses may define it.

        Raises:
          RuntimeError: they did not.
        """
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called."
        )

    def set_extra_state(self, state: object) -> None:
        """Take back what ``get_extra_state`` gave.

        Raises:
          RuntimeError: it is not defined.
        """
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called."
        )

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy parameters and buffers from a dictionary.

        Nothing is changed if the dictionary does not fit, but by subclasses that load themselves.

        Args:
          state_dict: as ``state_dict()`` gives it.
          strict: whether the names must be the same.
          assign: whether the tensors themselves are taken over.

        Returns:
          ``(missing_keys, unexpected_keys)``.

        Raises:
          TypeError: it is no dictionary.
          RuntimeError: names or shapes differ.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        state = OrderedDict(state_dict)
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        copies: list[Callable[[], None]] = []
        metadata = getattr(state_dict, "_metadata", {})
        self._plan_load(state, "", metadata, assign, missing, unexpected, errors, copies)
        result = _IncompatibleKeys(missing, unexpected)
        for module in self.modules():
            for hook in module.__dict__["_load_post_hooks"].values():
                changed = hook(module, result)
                assert changed is None, (
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected "
                    "to return new values, if incompatible_keys need to be modified, it should be "
                    "done inplace."
                )
        if strict:
            for what, names in (("Unexpected", unexpected), ("Missing", missing)):
                if names:
                    quoted = ", ".join(f'"{name}"' for name in names)
                    errors.insert(0, f"{what} key(s) in state_dict: {quoted}. ")
        if errors:
            text = "\n\t".join(errors)
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{text}"
            )
        with no_grad():
            for copy in copies:
                copy()
        return result

    def _plan_load(
        self, state: Any, prefix: str, metadata: Any, take: bool, missing: list[str],
        unexpected: list[str], errors: list[str], copies: list[Callable[[], None]],
    ) -> None:  # fmt: skip
        """Note what is to be copied, and what does not fit, here and below."""
        local = {**metadata.get(prefix[:-1], {}), "assign_to_params_buffers": take}
        given = (state, prefix, local, True, missing, unexpected, errors)
        if type(self)._load_from_state_dict is Module._load_from_state_dict:
            self._plan_own(*given, copies)
        else:  # what it does after the copies is not known
            self._load_from_state_dict(*given)
        for name, module in self._modules.items():
            if module is not None:
                module._plan_load(
                    state, f"{prefix}{name}.", metadata, take, missing, unexpected, errors, copies
                )

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool,
        missing_keys: list[str], unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Copy what belongs to this module alone; subclasses may do more.

        Args:
          state_dict: names and values.
          prefix: how names of this module begin.
          local_metadata: what was noted of this module.
          strict: whether names that differ are noted.
          missing_keys: gets names that are missing.
          unexpected_keys: gets names that are not known.
          error_msgs: gets what does not fit.
        """
        copies: list[Callable[[], None]] = []
        self._plan_own(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs,
            copies,
        )  # fmt: skip
        with no_grad():
            for copy in copies:
                copy()

    def _plan_own(
        self, state: Any, prefix: str, metadata: Any, strict: bool, missing: list[str],
        unexpected: list[str], errors: list[str], copies: list[Callable[[], None]],
    ) -> None:  # fmt: skip
        """Note what is to be copied to this module, and what does not fit."""
        for hook in self.__dict__["_load_pre_hooks"].values():
            hook(state, prefix, metadata, strict, missing, unexpected, errors)
        take = metadata.get("assign_to_params_buffers", False)
        known = {prefix + name: (name, own) for name, own in self._own_state()}
        for key, (name, own) in known.items():
            if key not in state:
                if strict:
                    missing.append(key)
                continue
            given = state[key]
            if not isinstance(given, Tensor):
                errors.append(
                    f'While copying the parameter named "{key}", expected torch.Tensor or '
                    f"Tensor-like object from checkpoint but received {type(given)}"
                )
            elif given.shape != own.shape and not (own.shape == () and given.shape == (1,)):
                errors.append(
                    f"size mismatch for {key}: copying a param with shape {given.shape} from "
                    f"checkpoint, the shape in current model is {own.shape}."
                )
            else:
                copies.append(functools.partial(self._load_one, name, own, given, take))
        extra = f"{prefix}_extra_state"
        if type(self).set_extra_state is not Module.set_extra_state:
            if extra in state:
                copies.append(functools.partial(self.set_extra_state, state[extra]))
            elif strict:
                missing.append(extra)
        elif extra in state and strict:
            unexpected.append(extra)
        for key in state if strict else ():
            if key.startswith(prefix) and key != extra and key not in known:
                first = key[len(prefix) :].split(".", 1)
                if first[0] not in self._modules or len(first) == 1:
                    unexpected.append(key)

    def _load_one(self, name: str, own: Tensor, given: Any, take: bool) -> None:
        if take and isinstance(given, Tensor):
            if name in self._parameters:
                if isinstance(given, Parameter):
                    given.requires_grad_(own.requires_grad)
                else:
                    given = Parameter(given, requires_grad=own.requires_grad)
                self._parameters[name] = given
            else:
                self._buffers[name] = given
            return
        value = value_of(given) if isinstance(given, Tensor) else given
        value = value.reshape(own.shape) if value.shape != own.shape else value
        assign("copy_", own, cast(value, own.dtype))

    # modes and conversions ------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set training mode here and below.

        Raises:
          ValueError: ``mode`` is no bool.
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """``train(False)``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set ``requires_grad`` of all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients of all parameters.

        Args:
          set_to_none: ``None``, not zeros.
        """
        for parameter in self.parameters():
            clear_grad(parameter, set_to_none)

    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """Call a function with all modules below, and then with this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the values of all parameters, their gradients and buffers."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for own in itertools.chain(self._parameters.values(), self._buffers.values()):
            if own is None:
                continue
            for x in (own, own._grad):
                if x is None:
                    continue
                old = x.detach()
                made = fn(old)
                if made is not old:
                    x._value = new = made._memory()
                    if x._node is not None:
                        x._node.shape, x._node.dtype = new.shape, new.dtype
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Convert floating parameters and buffers to a dtype; the only device is the CPU.

        Args:
          *args: a dtype, a device, or a tensor whose dtype is meant.
          **kwargs: ``dtype``, ``device``, ``non_blocking``.

        Raises:
          TypeError: the dtype is not floating or complex.
          RuntimeError: another device is asked for.
        """
        dtype = kwargs.get("dtype")
        refuse_device(kwargs.get("device"))
        for arg in args:
            if isinstance(arg, (str, device)):
                refuse_device(arg)
            elif isinstance(arg, Tensor):
                dtype = arg.dtype
            elif arg is not None and not isinstance(arg, bool):
                dtype = given_dtype(arg, "to")
        if dtype is None:
            return self
        dtype = given_dtype(dtype, "to")
        if dtype.kind not in "fcV":
            raise TypeError(
                "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                f"dtype={dtype}"
            )
        return self._apply(lambda x: x.to(dtype) if x.dtype.kind in "fcV" else x)

    def type(self, dst_type: Any) -> Any:
        """Convert all parameters and buffers to a dtype."""
        return self._apply(lambda x: x.type(dst_type))

    def compile(self, *args: object, **kwargs: object) -> None:
        """Accepted for torch's sake, as ``torch.compile``: ``functrans.jit`` compiles."""

    def float(self) -> Any:
        """``to(float32)``."""
        return self.to(np.float32)

    def double(self) -> Any:
        """``to(float64)``."""
        return self.to(np.float64)

    def half(self) -> Any:
        """``to(float16)``."""
        return self.to(np.float16)

    def bfloat16(self) -> Any:
        """``to(bfloat16)``."""
        return self.to(bfloat16_dtype())

    def cuda(self, device: object = None) -> Any:
        """Refused: there is no GPU.

        Raises:
          TensorDeviceError: always.
        """
        raise TensorDeviceError("cuda(): functrans computes on the CPU; remove the call")

    def cpu(self) -> Self:
        """The module itself."""
        return self

    def share_memory(self) -> Self:
        """The module itself; accepted for torch's sake."""
        return self

    # texts ----------------------------------------------------------------------------------------

    def extra_repr(self) -> str:
        """What ``repr`` shows between the parentheses."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        """The module with its submodules, one per line."""
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        inner = self._inner_lines()
        if not inner and len(lines) <= 1:
            return f"{self._get_name()}({''.join(lines)})"
        body = "\n  ".join([*lines, *inner])
        return f"{self._get_name()}(\n  {body}\n)"

    def _inner_lines(self) -> list[str]:
        """One text per submodule."""
        return [f"({name}): {indented(repr(module), 2)}" for name, module in self._modules.items()]

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
