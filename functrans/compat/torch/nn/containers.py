"""Modules that hold others: ``Sequential``, ``ModuleList``, ``ModuleDict``, ``ParameterList``.

Layer: ``compat``.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.nn.module import Module
from functrans.compat.torch.nn.module_texts import indented
from functrans.compat.torch.nn.parameter import Parameter

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _position(index: Any, n: int) -> int:
    i = operator.index(index)
    if not -n <= i < n:
        raise IndexError(f"index {i} is out of range")
    return i % n


class _Numbered(Module):
    """Modules whose names are their positions."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def _renumber(self, modules: Iterable[Module]) -> None:
        self.__dict__["_modules"] = {str(i): module for i, module in enumerate(modules)}

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Add a module before another one."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._renumber(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end.

        Raises:
          TypeError: they cannot be iterated over.
        """
        _check_iterable(self, modules)
        for module in modules:
            self.append(module)
        return self


def _check_iterable(container: Module, values: object) -> None:
    if not isinstance(values, Iterable) or isinstance(values, Tensor):
        raise TypeError(
            f"{type(container).__name__}.extend should be called with an iterable, but got "
            f"{type(values).__name__}"
        )


class Sequential(_Numbered):
    """Modules called one after the other.

    Args:
      *args: modules, or one ordered dictionary of them.

    Example:
      >>> from functrans.compat.torch.nn import Linear, ReLU
      >>> Sequential(Linear(2, 3), ReLU())
      Sequential(
        (0): Linear(in_features=2, out_features=3, bias=True)
        (1): ReLU()
      )
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        """The result of the last module."""
        for module in self._modules.values():
            input = module(input)
        return input

    def _key(self, index: object) -> str:
        return list(self._modules)[_position(index, len(self))]

    def __getitem__(self, index: object) -> Any:
        if isinstance(index, slice):
            return type(self)(dict(list(self._modules.items())[index]))
        return self._modules[self._key(index)]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, self._key(index), module)

    def __delitem__(self, index: object) -> None:
        keys = list(self._modules)[index] if isinstance(index, slice) else [self._key(index)]
        for key in keys:
            del self._modules[key]
        self._renumber(self._modules.values())

    def insert(self, index: int, module: Module) -> Self:
        """Add a module before another one."""
        super().insert(index, module)
        return self


class ModuleList(_Numbered):
    """A list of modules.

    Args:
      modules: what is in it at first.
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: object) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[str(_position(index, len(self)))]

    def __setitem__(self, index: Any, module: Module) -> None:
        setattr(self, str(_position(index, len(self))), module)

    def __delitem__(self, index: Any) -> None:
        modules = list(self._modules.values())
        del modules[index]
        self._renumber(modules)

    def _inner_lines(self) -> list[str]:
        """One text per submodule; neighbours that print alike are taken together."""
        lines, first = [], 0
        for text, group in itertools.groupby(map(repr, self._modules.values())):
            n = len(list(group))
            name, times = (f"{first}-{first + n - 1}", f"{n} x ") if n > 1 else (f"{first}", "")
            lines.append(f"({name}): {times}{indented(text, 2)}")
            first += n
        return lines

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return type(self)([*self, *other])


class _Named(Module):
    """Values under names, which are the keys of a dictionary."""

    _keys: Any

    def __getitem__(self, key: str) -> Any:
        raise NotImplementedError  # of the kind that the subclass holds

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Any:
        """The names."""
        return self._keys.keys()

    def items(self) -> Any:
        """Names and values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Any:
        """The values."""
        return (self[key] for key in self._keys)

    def _add_all(self, values: Any) -> None:
        is_mapping = isinstance(values, (Mapping, _Named))
        for key, value in values.items() if is_mapping else values:
            self[key] = value

    def __setitem__(self, key: str, value: Any) -> None:
        raise NotImplementedError  # as above


class ModuleDict(_Named):
    """A dictionary of modules.

    Args:
      modules: what is in it at first.
    """

    _keys = property(lambda self: self._modules)

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def clear(self) -> None:
        """Remove all."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove one and return it."""
        return self._modules.pop(key)

    def update(self, modules: Any) -> None:
        """Add modules of a dictionary, or of pairs."""
        self._add_all(modules)

    def items(self) -> Any:
        """Names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """The modules."""
        return self._modules.values()


def _shown(x: Any) -> str:
    kind = type(x).__name__ if isinstance(x, Parameter) else "Object"
    if isinstance(x, Tensor):
        size = "x".join(map(str, x.shape))
        return f"{kind} containing: [torch.{x.dtype.name} of size {size}]"
    return f"Object of type: {type(x).__name__}"


class ParameterList(Module):
    """A list of parameters; tensors that are put into it become parameters.

    Args:
      values: what is in it at first.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index: object, value: Any) -> None:
        setattr(self, str(_position(index, len(self))), _as_parameter(value))

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add parameters at the end.

        Raises:
          TypeError: they cannot be iterated over.
        """
        _check_iterable(self, values)
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """One line per parameter."""
        return "\n".join(f"  ({i}): {_shown(x)}" for i, x in enumerate(self))


class ParameterDict(_Named):
    """A dictionary of parameters; tensors that are put into it become parameters.

    Args:
      parameters: what is in it at first.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def update(self, parameters: Any) -> None:
        """Add parameters of a dictionary, or of pairs."""
        self._add_all(parameters)

    def extra_repr(self) -> str:
        """One line per parameter."""
        return "\n".join(f"  ({key}): {_shown(x)}" for key, x in self.items())


def _as_parameter(value: Any) -> Tensor:
    return Parameter(value) if type(value) is Tensor else value
