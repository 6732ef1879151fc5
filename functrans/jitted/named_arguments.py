"""Arguments that are named by ``static_argnums``, ``donate_argnames`` and their like.

Here: ``matched``. Not here: calls (``jitted.signatures``).

Layer: ``jitted``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from functrans.core.arguments import name_of, no_positions
from functrans.core.source import signature_of


def _numbers_of(option: str, value: Any) -> tuple[int, ...]:
    """Positions of arguments.

    Raises:
      TypeError: no int and no sequence of ints.
    """
    if value is None:
        return ()
    try:
        return (operator.index(value),)
    except TypeError:
        pass
    try:
        return tuple(operator.index(item) for item in value)
    except TypeError:
        what = f"{option} must be an int or a sequence of ints"
        raise no_positions("jit", what, value) from None


def _names_of(option: str, value: Any) -> tuple[str, ...]:
    """Names of arguments.

    Raises:
      TypeError: no str and no sequence of str.
    """
    if value is None:
        return ()
    try:
        names = (value,) if isinstance(value, str) else tuple(value)
    except TypeError:
        names = (None,)  # refused below
    if not all(isinstance(item, str) for item in names):
        raise TypeError(f"jit: {option} must be a str or a sequence of str, got {value!r}")
    return names


def matched(
    fun: Callable[..., Any], kind: str, argnums: object, argnames: object
) -> tuple[tuple[int, ...], frozenset[str]]:
    """Positions and names, each completed from the other by the signature.

    Args:
      fun: the function.
      kind: ``"static"`` or ``"donate"``, for messages.
      argnums: a position or several, negative ones counted from the end; or ``None``.
      argnames: a name or several; or ``None``.

    Raises:
      TypeError: they are no positions, or no names.
      ValueError: the function has no such argument.
    """
    if argnums is None and argnames is None:
        return (), frozenset()
    numbers = _numbers_of(f"{kind}_argnums", argnums)
    names = _names_of(f"{kind}_argnames", argnames)
    if not numbers and not names:
        return (), frozenset()
    try:
        parameters = list(signature_of(fun).parameters.values())
    except (TypeError, ValueError):
        return tuple(numbers), frozenset(names)
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    takes_any_name = any(p.kind is p.VAR_KEYWORD for p in parameters)
    known = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    n = len(by_position)
    for number in numbers:
        if not takes_any and not -n <= number < n:
            raise ValueError(
                f"jit: {kind}_argnums names argument {number}, but {name_of(fun)} has {n} "
                "positional parameters"
            )
    for name in names:
        if not takes_any_name and name not in known:
            raise ValueError(
                f"jit: {kind}_argnames names {name!r}, but {name_of(fun)} has the parameters "
                f"{', '.join(sorted(known)) or 'none'}"
            )
    all_numbers = {number % n if not takes_any else number for number in numbers}
    all_names = set(names)
    for i, parameter in enumerate(by_position):
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            continue
        if parameter.name in names:
            all_numbers.add(i)
        elif i in all_numbers:
            all_names.add(parameter.name)
    return tuple(sorted(all_numbers)), frozenset(all_names)
