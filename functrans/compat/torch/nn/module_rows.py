"""Modules that apply a function with settings: their classes, made of the words of a statement.

Here: ``Applied``, their base, which gives each class its constructor and its ``forward``, and
``ClassWords``, the words. Not here: the classes (``nn.activation_modules``, ``nn.loss_modules`` and
others), ``Module`` (``nn.module``).

Layer: ``compat``.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypedDict, Unpack

from functrans.compat.torch.nn.module import Module

_DEPRECATED = ("size_average", "reduce")
"""Arguments of constructors that are not kept."""


class ClassWords(TypedDict, total=False):
    """The words of a class statement; those of a base count where a class does not give its own."""

    function: Callable[..., Any]
    """What is applied. An argument ``training`` of it is the module's."""
    settings: str
    """The constructor's arguments, after ``*`` keywords; by default all but ``takes``."""
    takes: str
    """The arguments of ``forward``, by default ``input``."""
    defaults: Mapping[str, Any]
    """Defaults of settings, where they differ from the function's."""
    fixed: Mapping[str, Any]
    """Settings that the constructor does not take."""
    prepare: Callable[[dict[str, Any]], None]
    """Checks and changes the settings."""
    shown: str
    """``extra_repr``, with ``{0.name}`` for a setting; by default all but ``inplace``."""


class Applied(Module):
    """A function of tensors, and its settings as attributes.

    A subclass whose statement has words, those of ``ClassWords``, is made of them: types and
    defaults of its settings are those of the function's arguments. What is a tensor among them is a
    buffer.

    Example:
      >>> from functrans.compat.torch.nn import functional
      >>> class Elu(Applied, function=functional.elu, defaults={"alpha": 2.0}):
      ...     pass
      >>> Elu(inplace=True)
      Elu(alpha=2.0, inplace=True)
    """

    _row: ClassVar[ClassWords] = {}
    _shown: ClassVar[str] = ""

    def __init_subclass__(cls, **words: Unpack[ClassWords]) -> None:
        super().__init_subclass__()
        cls._row = {**cls._row, **words}
        if words and "function" in cls._row:
            for name, member in _members(cls, **cls._row).items():
                setattr(cls, name, member)

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def extra_repr(self) -> str:
        """The settings."""
        text = self._shown.format(self)
        if "inplace" in self._shown or not getattr(self, "inplace", False):
            return text
        return f"{text}, inplace=True" if text else "inplace=True"


def _members(
    cls: type[Applied], function: Callable[..., Any], settings: str | None = None,
    takes: str = "input", defaults: Mapping[str, Any] | None = None,
    fixed: Mapping[str, Any] | None = None, prepare: Callable[[dict[str, Any]], None] | None = None,
    shown: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """What a class has that it does not write itself."""
    whole = inspect.signature(function)
    own = whole.parameters
    taken, always = takes.split(), dict(fixed or {})
    words = [n for n in own if n not in taken] if settings is None else settings.split()
    constructor = _constructor(own, words, defaults or {})
    if shown is None:
        shown = ", ".join(f"{n}={{0.{n}}}" for n in constructor.parameters if n != "inplace")
    init = _initializer(constructor, f"{cls.__name__}.__init__", prepare, always)
    members = {"_shown": shown, "__init__": _method(cls, "__init__", init, constructor)}
    if "forward" not in cls.__dict__:
        call = whole.replace(parameters=[own[n] for n in taken])
        kept = {*words, *always, "training"}.difference(_DEPRECATED)
        forward = _application(function, own, call, f"{cls.__name__}.forward", kept)
        members["forward"] = _method(cls, "forward", forward, call)
    summary = cls.__dict__.get("__doc__")
    if summary and not function.__name__.startswith("_") and "see ``" not in summary:
        members["__doc__"] = f"{summary}\n\nSee ``nn.functional.{function.__name__}``."
    return members


def _constructor(
    own: Mapping[str, inspect.Parameter], words: list[str], defaults: Mapping[str, Any]
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

    def init(self: Any, *args: object, **kwargs: object) -> None:
        if is_complete and not args and kwargs.keys() <= initial.keys():
            values = initial | kwargs
        else:
            values = _bound(constructor, name, args, kwargs)
        values |= always
        if prepare is not None:
            prepare(values)
        super(Applied, self).__init__()
        for key, value in values.items():
            if key in buffers:
                self.register_buffer(key, value)
            else:
                setattr(self, key, value)

    return init


def _reader(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives attributes of a module; calls of modules should cost little."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    if not names:
        return lambda module: ()
    only = operator.attrgetter(*names)
    return lambda module: (only(module),)


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


def _method(
    cls: type, name: str, function: Any, signature: inspect.Signature
) -> Callable[..., Any]:
    """A function as a method, whose signature can be read."""
    function.__module__, function.__name__ = cls.__module__, name
    function.__qualname__ = f"{cls.__qualname__}.{name}"
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *signature.parameters.values()]
    function.__signature__ = signature.replace(parameters=parameters)
    return function
