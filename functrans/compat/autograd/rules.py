"""``autograd.extend``: functions with derivative rules of their own.

A ``primitive`` is called as it is on plain values. On traced ones it is a ``custom_vjp``, or a
``custom_jvp`` where forward mode asks, with the rules that ``defvjp`` and ``defjvp`` gave it.

Layer: ``compat``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees
from functrans.compat.autograd.spaces import vspace
from functrans.control.custom_rules import custom_jvp, custom_vjp
from functrans.core.avals import is_differentiable_dtype
from functrans.core.dispatch import Tracer, dtype_of
from functrans.core.values import Array, Operand
from functrans.numpy.common import is_known, value_of
from functrans.passes.pushing import PushingTracer


def isbox(x: Any) -> bool:
    """Whether a value is traced."""
    return isinstance(x, Tracer)


def getval(x: Any) -> Any:
    """The plain value behind a traced one."""
    return value_of(x)


def _like(x: Any) -> Any:
    """A plain value of the type of what a traced one stands for."""
    if not isbox(x):
        return x
    return getval(x) if is_known(x) else np.broadcast_to(np.zeros((), x.dtype), x.shape)[()]


def type_of(x: Any) -> type:
    """The type of the plain value behind a traced one."""
    return type(_like(x))


def is_instance(x: Any, classes: Any) -> bool:
    """``isinstance`` of the plain value behind a traced one."""
    return isinstance(_like(x), classes)


def notrace_primitive(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gets plain values, and whose result has no derivative."""

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return function(*pytrees.map(getval, args), **kwargs)

    return call


def _is_traced(value: Any) -> bool:
    return any(isinstance(leaf, Tracer) for leaf in pytrees.leaves(value))


def _is_pushed(value: Sequence[Any]) -> bool:
    return any(isinstance(leaf, PushingTracer) for leaf in pytrees.leaves(value))


def _is_differentiable(value: Any) -> bool:
    try:
        return all(is_differentiable_dtype(dtype_of(leaf)) for leaf in pytrees.leaves(value))
    except TypeError:
        return False


class primitive:  # noqa: N801  # autograd's name
    """A function whose derivatives are given by rules.

    Args:
      function: of positional arguments to differentiate, and keywords that are not.

    Attributes:
      vjp: ``(argnums, ans, args, kwargs) -> (g -> cotangents)``, or ``None``.
      jvp: ``(argnums, tangents, ans, args, kwargs) -> tangent``, or ``None``.

    Example:
      >>> @primitive
      ... def cube(x):
      ...     return x * x * x
      >>> defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
      >>> import functrans as ft
      >>> ft.grad(cube)(2.0)
      array(12.)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.fun = function
        self.vjp: Callable[..., Any] | None = None
        self.jvp: Callable[..., Any] | None = None

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The value, which carries the rules if an argument is traced."""
        places = [k for k, arg in enumerate(args) if _is_traced(arg) and _is_differentiable(arg)]
        if not places:
            return self.fun(*args, **kwargs)

        rest = [None if k in places else arg for k, arg in enumerate(args)]

        def whole(values: Iterable[Any]) -> list[Any]:
            given = list(rest)
            for place, value in zip(places, values, strict=True):
                given[place] = value
            return given

        def run(*values: object) -> Any:
            return self.fun(*whole(values), **kwargs)

        functools.update_wrapper(run, self.fun)
        del run.__wrapped__  # type: ignore[attr-defined]  # its parameters are others
        traced = [args[place] for place in places]
        if self.jvp is not None and (self.vjp is None or _is_pushed(traced)):
            return self._pushing(run, whole, places, kwargs)(*traced)
        return self._pulling(run, whole, places, kwargs)(*traced)

    def _pulling(
        self,
        run: Callable[..., Any],
        whole: Callable[..., Any],
        places: list[int],
        kwargs: dict[str, Any],
    ) -> custom_vjp:
        function = custom_vjp(run)

        def forward(*values: Any) -> Any:
            ans = self(*whole(values), **kwargs)  # of values that an outer trace may follow
            return ans, (ans, values)

        def backward(kept: tuple[Any, ...], g: Operand) -> Any:
            ans, values = kept
            if self.vjp is None:
                raise NotImplementedError(
                    f"VJP of {self.__name__} wrt argnums {places} not defined; use defvjp"  # type: ignore[attr-defined]  # of the function
                )
            return tuple(self.vjp(tuple(places), ans, whole(values), kwargs)(g))

        function.defvjp(forward, backward)
        return function

    def _pushing(
        self,
        run: Callable[..., Any],
        whole: Callable[..., Any],
        places: list[int],
        kwargs: dict[str, Any],
    ) -> custom_jvp:
        function = custom_jvp(run)
        rule: Any = self.jvp

        def push(values: Sequence[Any], tangents: Sequence[Array]) -> tuple[Any, ...]:
            ans = self(*whole(values), **kwargs)
            return ans, rule(tuple(places), tangents, ans, whole(values), kwargs)

        function.defjvp(push)
        return function

    def __get__(self, instance: object, owner: object = None) -> Any:
        """As a method."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        """``primitive(cube)``."""
        return f"primitive({self.__name__})"  # type: ignore[attr-defined]  # of the function


def _checked(who: str, function: object) -> primitive:
    if not isinstance(function, primitive):
        raise TypeError(
            f"{who}: expected a function decorated with primitive, got {function!r}; rules of "
            "NumPy's functions are those of functrans"
        )
    return function


def _by_number(makers: Sequence[Any], options: dict[str, Any]) -> dict[int, Any]:
    return dict(zip(options.get("argnums", itertools.count()), makers, strict=False))


def defvjp_argnums(fun: object, vjpmaker: Callable[..., Any]) -> None:
    """Give one rule for all arguments: ``(argnums, ans, args, kwargs) -> (g -> cotangents)``."""
    _checked("defvjp_argnums", fun).vjp = vjpmaker


def defvjp_argnum(fun: object, vjpmaker: Callable[..., Any]) -> None:
    """Give one rule for each argument: ``(argnum, ans, args, kwargs) -> (g -> cotangent)``."""

    def rule(
        argnums: Sequence[Any], ans: Array | complex, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        pulls = [vjpmaker(argnum, ans, args, kwargs) for argnum in argnums]
        return lambda g: [pull(g) for pull in pulls]

    _checked("defvjp_argnum", fun).vjp = rule


def defvjp(fun: Any, *vjpmakers: object, **options: object) -> None:
    """Give rules, one per argument: ``(ans, *args, **kwargs) -> (g -> cotangent)``.

    Args:
      fun: a primitive.
      *vjpmakers: rules; ``None`` for an argument that the result does not depend on.
      **options: ``argnums``, the arguments that they are for.
    """
    makers = _by_number(vjpmakers, options)

    def make(
        argnum: int, ans: Array | complex, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Callable[..., Any]:
        if argnum not in makers:
            raise NotImplementedError(f"VJP of {fun.__name__} wrt argnum {argnum} not defined")
        maker = makers[argnum]
        if maker is None:
            return lambda g: vspace(args[argnum]).zeros()
        return maker(ans, *args, **kwargs)

    defvjp_argnum(_checked("defvjp", fun), make)


def defjvp_argnums(fun: object, jvpmaker: Callable[..., Any]) -> None:
    """Give one rule for all arguments: ``(argnums, tangents, ans, args, kwargs) -> tangent``."""
    _checked("defjvp_argnums", fun).jvp = jvpmaker


def defjvp_argnum(fun: object, jvpmaker: Callable[..., Any]) -> None:
    """Give one rule for each argument: ``(argnum, tangent, ans, args, kwargs) -> tangent``."""

    def rule(
        argnums: Sequence[Any],
        tangents: Sequence[Array],
        ans: Array | complex,
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> Any:
        space, total = vspace(ans), None
        for argnum, tangent in zip(argnums, tangents, strict=True):
            total = space.mut_add(total, jvpmaker(argnum, tangent, ans, args, kwargs))
        return total

    _checked("defjvp_argnum", fun).jvp = rule


def defjvp(fun: Any, *jvpfuns: object, **options: object) -> None:
    """Give rules, one per argument: ``(tangent, ans, *args, **kwargs) -> tangent``.

    Args:
      fun: a primitive.
      *jvpfuns: rules; ``None`` for an argument that the result does not depend on, ``"same"`` for
        one in which the function is linear.
      **options: ``argnums``, the arguments that they are for.
    """
    rules = _by_number(jvpfuns, options)

    def push(
        argnum: int,
        tangent: Array,
        ans: Array | complex,
        args: Sequence[Any],
        kwargs: dict[str, Any],
    ) -> Any:
        if argnum not in rules:
            raise NotImplementedError(f"JVP of {fun.__name__} wrt argnum {argnum} not defined")
        rule = rules[argnum]
        if rule is None:
            return vspace(ans).zeros()
        if rule == "same":
            given = list(args)
            given[argnum] = tangent
            return fun(*given, **kwargs)
        return rule(tangent, ans, *args, **kwargs)

    defjvp_argnum(_checked("defjvp", fun), push)


def def_linear(fun: object) -> None:
    """Say that a primitive is linear in each argument."""
    defjvp(fun, *(["same"] * 64))
