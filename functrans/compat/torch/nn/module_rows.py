"""Modules that apply a function with settings: their classes, made of rows.

Here: ``Applied``, their base, and ``module_class``, which makes one of a name, a function, a
sentence and the settings. Not here: the rows (``nn.activation_modules``, ``nn.loss_modules`` and
others), ``Module`` (``nn.module``).

Layer: ``compat``.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from functrans.compat.torch.nn.module import Module

_DEPRECATED = ("size_average", "reduce")
"""Arguments of constructors that are not kept."""


class Applied(Module):
    """A function of tensors, and its settings as attributes."""

    _shown: ClassVar[str] = ""

    def extra_repr(self) -> str:
        """The settings."""
        text = self._shown.format(self)
        if "inplace" in self._shown or not getattr(self, "inplace", False):
            return text
        return f"{text}, inplace=True" if text else "inplace=True"


def _constructor(
    own: Mapping[str, inspect.Parameter], words: list[str], defaults: dict[str, Any]
) -> inspect.Signature:
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = []
    for word in words:
        if word == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            default = defaults.get(word, own[word].default)
            parameters.append(own[word].replace(kind=kind, default=default))
    return inspect.Signature(parameters, return_annotation="None")


def _bound(
    signature: inspect.Signature, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any]:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{name}() {error}") from None
    bound.apply_defaults()
    return bound.arguments


def _reader(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives attributes of a module; calls of modules should cost little."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    if not names:
        return lambda module: ()
    only = operator.attrgetter(*names)
    return lambda module: (only(module),)


def _initializer(
    constructor: inspect.Signature,
    name: str,
    prepare: Callable[[dict[str, Any]], None] | None,
    always: dict[str, Any],
) -> Callable[..., None]:
    """A constructor that makes attributes of its arguments, of tensors buffers."""
    parameters = constructor.parameters
    initial = {n: p.default for n, p in parameters.items()}
    is_complete = all(value is not inspect.Parameter.empty for value in initial.values())
    buffers = [n for n, p in parameters.items() if "Tensor" in p.annotation]

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if is_complete and not args and kwargs.keys() <= initial.keys():
            values = initial | kwargs
        else:
            values = _bound(constructor, name, args, kwargs)
        if prepare is not None:
            prepare(values)
        super(Applied, self).__init__()
        for key, value in (values | always).items():
            if key in buffers:
                self.register_buffer(key, value)
            else:
                setattr(self, key, value)

    return init


def _application(
    function: Callable[..., Any],
    own: Mapping[str, inspect.Parameter],
    call: inspect.Signature,
    name: str,
    kept: set[str],
) -> Callable[..., Any]:
    """A ``forward`` that calls the function, with arguments in order if they are in its order."""
    order, taken, passed = list(own), list(call.parameters), [n for n in own if n in kept]
    read = _reader(passed)
    n_leading = len(taken) if order[: len(taken)] == taken else None
    follow = order[: len(taken) + len(passed)] == taken + passed and all(
        own[n].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for n in passed
    )

    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        """The function of the arguments, with the settings."""
        values = read(self)
        if kwargs or len(args) != n_leading:
            tensors = _bound(call, name, args, kwargs)
            return function(**tensors, **dict(zip(passed, values, strict=True)))
        if follow:
            return function(*args, *values)
        return function(*args, **dict(zip(passed, values, strict=True)))

    return forward


def _method(function: Any, home: str, name: str, signature: inspect.Signature) -> Any:
    """A function as the method ``name``, whose signature can be read."""
    function.__module__, function.__qualname__ = home, name
    function.__name__ = name.rpartition(".")[2]
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *signature.parameters.values()]
    function.__signature__ = signature.replace(parameters=parameters)
    return function


def module_class(
    home: str,
    name: str,
    function: Callable[..., Any],
    summary: str,
    settings: str | None = None,
    *,
    takes: str = "input",
    base: type[Applied] = Applied,
    shown: str | None = None,
    prepare: Callable[[dict[str, Any]], None] | None = None,
    fixed: Mapping[str, Any] | None = None,
    forward: Callable[..., Any] | None = None,
    **defaults: Any,
) -> Any:
    """A subclass of ``Applied``.

    Types and defaults of the settings are those of the function's arguments. What is a tensor
    among them is a buffer. A function with an argument ``training`` is told the module's.

    Args:
      home: name of the module that has the class.
      name: of the class.
      function: what is applied.
      summary: first sentence of the documentation.
      settings: the constructor's arguments; all of the function's but tensors by default. Those
        after ``*`` are keywords.
      takes: arguments of ``forward``.
      base: the class above it.
      shown: text for ``extra_repr``, with ``{0.name}`` for a setting; all but ``inplace`` by
        default, which is shown if it is true.
      prepare: checks and changes the constructor's arguments.
      fixed: settings that the constructor does not take.
      forward: the method, if there is a faster one than for all.
      **defaults: where they differ from the function's.

    Example:
      >>> from functrans.compat.torch.nn import functional
      >>> Elu = module_class(__name__, "Elu", functional.elu, "The function ``elu``.", alpha=2.0)
      >>> Elu(inplace=True)
      Elu(alpha=2.0, inplace=True)
    """
    whole = inspect.signature(function)
    own = whole.parameters
    taken, always = takes.split(), dict(fixed or {})
    words = [n for n in own if n not in taken] if settings is None else settings.split()
    constructor = _constructor(own, words, defaults)
    if shown is None:
        shown = ", ".join(f"{n}={{0.{n}}}" for n in constructor.parameters if n != "inplace")
    call = whole.replace(parameters=[own[n] for n in taken])
    if forward is None:
        kept = {*words, *always, "training"}.difference(_DEPRECATED)
        forward = _application(function, own, call, f"{name}.forward", kept)
    init = _initializer(constructor, f"{name}.__init__", prepare, always)
    is_named = function.__name__.startswith("_") or "see ``" in summary
    see = "" if is_named else f"\n\nSee ``nn.functional.{function.__name__}``."
    members = {
        "__module__": home, "__qualname__": name, "__doc__": summary + see, "_shown": shown,
        "__init__": _method(init, home, f"{name}.__init__", constructor),
        "forward": _method(forward, home, f"{name}.forward", call),
    }  # fmt: skip
    return type(name, (base,), members)
