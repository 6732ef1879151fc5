"""What all transforms share: arguments in, results out, and their checks.

Here: the choice of arguments by ``argnums``, conversion and checks of leaves with key paths in
messages. Not here: results as arrays of their own (``core.ownership``), functions of plain code
(``core.calling``), the transforms.

Layer: ``core``.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from functrans import pytrees as tree
from functrans.core.avals import ShapedArray, Tape, aval_of_plain, is_differentiable_dtype
from functrans.core.dispatch import Tracer, aval_of, dtype_of, escaped, standing
from functrans.core.source import attribute, here
from functrans.core.tapes import TapeValue
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError, UnsupportedOperationError

Function = TypeVar("Function", bound=Callable[..., Any])

_READY = frozenset({np.float64, np.float32, float})


def name_of(fun: object) -> str:
    """The name of a function, for messages."""
    return attribute(fun, "__name__") or type(fun).__name__


def named(who: str, fun: Any) -> Callable[[Function], Function]:
    """Make a function print as a transform of another: ``<function grad(loss) at 0x...>``.

    Args:
      who: name of the transform.
      fun: what is transformed.

    Returns:
      A decorator, which hands on documentation, signature and attributes of ``fun``, too.
    """

    def decorate(function: Function) -> Function:
        functools.update_wrapper(function, fun, ("__module__", "__doc__"))
        function.__name__ = function.__qualname__ = f"{who}({name_of(fun)})"
        return function

    return decorate


def taken_over(fun: object) -> tuple[str, ...]:
    """What ``functools.wraps`` takes over of a callable, as far as that has it."""
    names = functools.WRAPPER_ASSIGNMENTS
    return (
        names
        if type(fun) is FunctionType
        else tuple([name for name in names if attribute(fun, name, fun) is not fun])
    )


def take_over(wrapper: Any, fun: Any) -> None:
    """Give an object that stands for a function its name, documentation and attributes.

    Attributes that the class of the object has keep their meaning. To be called before the object
    gets attributes of its own.
    """
    functools.update_wrapper(wrapper, fun, taken_over(fun), ())
    own = type(wrapper)
    for name, value in getattr(fun, "__dict__", {}).items():
        if name != "__wrapped__" and not hasattr(own, name):
            vars(wrapper)[name] = value


def part_of(fun: object, function: Function) -> Function:
    """A function that a transform of ``fun`` works on, under the name of ``fun``."""
    function.__name__ = function.__qualname__ = name_of(fun)
    return function


def further_arguments(args: object) -> tuple[Any, ...]:
    """Further arguments as a tuple: what is none is the only one, as in SciPy."""
    return args if isinstance(args, tuple) else (args,)


def check_callable(who: str, fun: object) -> None:
    """Refuse what cannot be called.

    Raises:
      TypeError: names the type received.
    """
    if not callable(fun):
        hint = ""
        if isinstance(fun, Tracer) or aval_of_plain(fun) is not None:
            hint = "; give the function itself, not its value f(x)"
        raise TypeError(f"{who}: expected a function, got {type(fun).__name__}{here()}{hint}")


def check_argnums(who: str, argnums: Any) -> int | tuple[int, ...]:
    """``argnums`` as an int or a tuple of ints.

    Raises:
      TypeError: it is neither.
      ValueError: it is empty or names an argument twice.
    """
    if isinstance(argnums, (tuple, list, range)):
        try:
            numbers = tuple(operator.index(n) for n in argnums)
        except TypeError:
            raise no_positions(who, _ARGNUMS, argnums) from None
        if not numbers:
            raise ValueError(f"{who}: argnums is empty{here()}; give at least one position")
        if len(set(numbers)) != len(numbers):
            raise ValueError(f"{who}: argnums={argnums!r} names an argument twice{here()}")
        return numbers
    try:
        return operator.index(argnums)
    except TypeError:
        raise no_positions(who, _ARGNUMS, argnums) from None


_ARGNUMS = "argnums must be an int or a tuple of ints"


def no_positions(who: str, option: str, value: object) -> TypeError:
    """The error for what is given in place of positions, such as the argument of the function."""
    what = f"{who}: {option}, got "
    if isinstance(value, (Tracer, np.ndarray, np.generic, float, complex)):
        return TypeError(
            f"{what}{aval_of(value)}{here()}; {who} makes a function, which takes the arguments: "
            f"{who}(f)(x)"
        )
    return TypeError(f"{what}{value!r}{here()}")


def positions(who: str, argnums: int | tuple[int, ...], n_args: int) -> tuple[int, ...]:
    """Non-negative positions of the differentiated arguments.

    Raises:
      ValueError: a position does not exist among the positional arguments of this call.
    """
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    for number in numbers:
        if not -n_args <= number < n_args:
            raise ValueError(
                f"{who}: argnums={argnums!r} asks for positional argument {number}, but the "
                f"function was called with {n_args} positional argument{'s' * (n_args != 1)}"
                f"{here()}; arguments to differentiate must be passed by position"
            )
    if not isinstance(argnums, tuple):
        return (argnums % n_args,)
    found = tuple(number % n_args for number in numbers)
    if len(set(found)) != len(found):
        raise ValueError(f"{who}: argnums={argnums!r} names an argument twice{here()}")
    return found


def canonical(value: Any, describe: Callable[[], str], remedy: str = "") -> Any:
    """A leaf as a plain ndarray, NumPy scalar, Python number or tracer.

    Args:
      value: the leaf.
      describe: gives its description for messages: ``grad of loss: args[0]['w']``.
      remedy: what to do if it is no array; by default what helps with an argument.

    Raises:
      UnsupportedOperationError: it is no array of numbers, or a kind of array whose meaning would
        be lost (masked arrays, matrices, objects of other libraries).
      EscapedTracerError: it is a tracer whose function has returned.
    """
    cls = type(value)
    if cls in _READY:
        return value
    if isinstance(value, Tracer):
        if not value._trace.is_open:
            raise escaped(value)
        return value
    if cls is np.ndarray:
        dtype = value.dtype
        if dtype.kind in "fciub" or dtype.name == "bfloat16":
            return value if dtype.isnative else value.astype(dtype.newbyteorder("="))
        raise UnsupportedOperationError(
            f"{describe()} is an array of dtype {dtype}{here()}; expected numbers. Convert it with "
            ".astype(float) first."
        )
    if isinstance(value, (np.ma.MaskedArray, np.matrix)):
        hint = (
            "fill it (x.filled(value)) and pass the mask apart"
            if isinstance(value, np.ma.MaskedArray)
            else "use np.asarray(x)"
        )
        raise UnsupportedOperationError(
            f"{describe()} is a {cls.__name__}{here()}, whose arithmetic differs from ndarray's; "
            f"{hint}."
        )
    if aval_of_plain(value) is not None:
        return np.asarray(value) if isinstance(value, np.ndarray) else value
    if cls is TapeValue:
        raise _is_record(describe())
    hint = remedy or _AS_ARGUMENT
    if cls.__module__ not in ("builtins", "numpy"):
        hint += f"; or {tree.HOW_TO_REGISTER}"
    if cls is str and "." in describe():
        hint = (
            'make a field that is no array static, name: str = field(metadata={"static": True}), '
            f"or {hint}"
        )
    if attribute(value, "__array__") is not None:
        hint = "convert it with np.asarray(x) first"
    raise UnsupportedOperationError(
        f"{describe()} is of type {cls.__module__}.{cls.__qualname__}{here()}, not an array of "
        f"numbers; {hint}."
    )


_AS_ARGUMENT = (
    "bind it with functools.partial, or pass it by keyword, or in a pytree of arrays (if it is the "
    "self of a method: argnums=1, or transform the bound method)"
)
_AS_RESULT = "return arrays and numbers (has_aux=True, where there is it, carries out the rest)"


def result_leaf(value: Array, label: str, result: object, i: int) -> Any:
    """A leaf of the result of a traced function, checked.

    Raises:
      UnsupportedOperationError: it is no array of numbers, nor of dtype ``float0``; names its key
        path.
    """
    if tree.is_float0(value):
        return value
    value = standing(value)
    if isinstance(value, Tracer) and type(aval_of(value)) is Tape:
        raise _is_record(leaf_description(label, result, i, "result"))
    return canonical(value, lambda: leaf_description(label, result, i, "result"), _AS_RESULT)


def _is_record(what: str) -> UnsupportedOperationError:
    return UnsupportedOperationError(
        f"{what} is what a while_loop keeps for its derivative{here()}, as many entries as it had "
        "rounds: no array. Call the pullback or pushforward that has it where it was made, or give "
        "the loop a length (ft.lax.scan, ft.lax.fori_loop)"
    )


def leaf_type(value: Any) -> ShapedArray | Tape:
    """The aval of a leaf, which may be of dtype ``float0``."""
    return ShapedArray(value.shape, value.dtype) if tree.is_float0(value) else aval_of(value)


def check_same_structure(
    who: str, expected: object, received: object, what: str, where: str
) -> None:
    """Refuse ``what`` if its structure is not the expected one, which is that of ``where``.

    Raises:
      TreeMismatchError: names both structures and the user's line.
    """
    if expected != received:
        tree.check_same(expected, received, f"{who}{here()}", where, what)


def argument_paths(who: str, args: Sequence[Any], numbers: Sequence[int]) -> Callable[[int], str]:
    """Describes leaves of some arguments by their numbers; looks at them when it is asked."""
    paths: list[str] = []

    def path(i: int) -> str:
        if not paths:
            for number in numbers:
                paths.extend(tree.key_paths(args[number], f"args[{number}]"))
        return f"{who}: {paths[i]}"

    return path


def leaf_description(who: str, arguments: object, index: int, root: str) -> str:
    """``grad of loss: args[0]['w']`` for the leaf of a number."""
    return f"{who}: {tree.key_paths(arguments, root)[index]}"


def tangent_dtype(dtype: np.dtype) -> np.dtype:
    """Dtype of the tangents of arrays of a dtype: the same, or ``float0``."""
    return dtype if is_differentiable_dtype(dtype) else tree.FLOAT0


_PASSED_THROUGH = ", or allow_int=True to pass it through with no gradient"


def differentiable_leaf(
    value: Array | complex,
    describe: Callable[[], str],
    *,
    allow_int: bool | None = None,
    is_complex_ok: bool = True,
) -> Any:
    """A leaf that a derivative is taken in.

    Args:
      value: the leaf.
      describe: gives its description for messages.
      allow_int: whether integers pass, and arrays of dtype ``float0``; ``None`` where the transform
        has no such option.
      is_complex_ok: whether complex numbers pass.

    Raises:
      NonDifferentiableError: it is of integer or boolean type and ``allow_int`` is off, or complex
        where a real one is needed.
    """
    if allow_int and tree.is_float0(value):
        return value
    value = canonical(value, describe)
    if type(value) is float:
        return value
    dtype = dtype_of(value)
    if not is_differentiable_dtype(dtype):
        if allow_int:
            return value
        kind = type(value).__name__ if type(value) in (int, bool) else f"dtype {dtype}"
        raise NonDifferentiableError(
            f"{describe()} is of {kind}{here()}; derivatives need floating-point inputs. Use a "
            f"float (2.0, x.astype(float)){'' if allow_int is None else _PASSED_THROUGH}."
        )
    if dtype.kind == "c" and not is_complex_ok:
        raise NonDifferentiableError(
            f"{describe()} is complex ({dtype}){here()}; use holomorphic=True for the complex "
            "derivative of a holomorphic function, or split it into real and imaginary parts."
        )
    return value


def flatten_call(
    args: Sequence[Any], numbers: tuple[int, ...]
) -> tuple[list[Any], list[Any], list[int]]:
    """Leaves of the differentiated arguments.

    Returns:
      Leaves, structure per argument, number of leaves per argument.
    """
    leaves: list[Any] = []
    treedefs = []
    counts = []
    for number in numbers:
        own, treedef = tree.flatten(args[number])
        leaves.extend(own)
        treedefs.append(treedef)
        counts.append(len(own))
    return leaves, treedefs, counts


def unflatten_call(
    args: Sequence[Any],
    numbers: tuple[int, ...],
    leaves: Sequence[Any],
    treedefs: Sequence[Any],
    counts: Sequence[int],
) -> list[Any]:
    """The arguments with new leaves in the differentiated ones."""
    new = list(args)
    start = 0
    for number, treedef, n in zip(numbers, treedefs, counts, strict=True):
        new[number] = tree.unflatten(treedef, leaves[start : start + n])
        start += n
    return new


def split_leaves(
    leaves: Sequence[Any], treedefs: Sequence[Any], counts: Sequence[int]
) -> list[Any]:
    """One tree per differentiated argument."""
    trees = []
    start = 0
    for treedef, n in zip(treedefs, counts, strict=True):
        trees.append(tree.unflatten(treedef, leaves[start : start + n]))
        start += n
    return trees
