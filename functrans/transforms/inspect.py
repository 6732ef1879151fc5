"""Looking at programs: ``make_jaxpr``, ``eval_shape``, ``eval_jaxpr``, ``closure_convert``.

Layer: ``transforms``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import name_of, named, result_leaf
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer
from functrans.core.jaxpr import Jaxpr
from functrans.core.ownership import own_arrays
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.transformed import transform
from functrans.core.values import Array, P, R
from functrans.passes.evaluate import evaluate
from functrans.passes.programs import fitted, hoist
from functrans.passes.staging import stage
from functrans.transforms.forward import leaf_aval


def _stage_call(
    who: str,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static: frozenset[int],
) -> tuple[Jaxpr, Any]:
    """The Jaxpr of a call and the structure of its result."""
    label = f"{who} of {name_of(fun)}"
    if any(map(_is_float0, tree.leaves((args, kwargs)))):
        args, kwargs = tree.fold_float0(tree.map(_as_float0, (args, kwargs)))
    traced = [arg for i, arg in enumerate(args) if i not in static]
    leaves, treedef = tree.flatten((traced, kwargs))
    names = []
    for i, arg in enumerate(args):
        if i not in static:
            names.extend(tree.key_paths(arg, f"args[{i}]"))
    names.extend(tree.key_paths(kwargs, "kwargs"))
    structure: list[Any] = []

    def flat(*tracers: Array) -> list[Any]:
        own_args, own_kwargs = tree.unflatten(treedef, tracers)
        given = iter(own_args)
        full = [arg if i in static else next(given) for i, arg in enumerate(args)]
        result = fun(*full, **own_kwargs)
        outs, out_treedef = tree.flatten_folded(result)
        structure.append(out_treedef)
        return [result_leaf(out, label, result, i) for i, out in enumerate(outs)]

    avals = [leaf_aval(leaf, f"{label}: {name}") for leaf, name in zip(leaves, names, strict=True)]
    jaxpr = stage(flat, avals, label, name=name_of(fun), arg_names=names)
    return jaxpr, structure[0]


@overload
def make_jaxpr(
    fun: np.ufunc, static_argnums: int | Sequence[int] = (), return_shape: Literal[False] = False
) -> Callable[..., Jaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] = (),
    return_shape: Literal[False] = False,
) -> Callable[P, Jaxpr]: ...
@overload
def make_jaxpr(
    fun: Callable[P, Any],
    static_argnums: int | Sequence[int] = (),
    *,
    return_shape: Literal[True],
) -> Callable[P, tuple[Jaxpr, Any]]: ...
@transform
def make_jaxpr(
    fun: Callable[..., Any], static_argnums: int | Sequence[int] = (), return_shape: bool = False
) -> Callable[..., Any]:
    """Transform a function into one that returns its program.

    Args:
      fun: function of pytrees of arrays.
      static_argnums: positional arguments that are passed as they are.
      return_shape: whether to return ``(jaxpr, shapes of the result)``.

    Returns:
      Function with the arguments of ``fun`` (arrays or ``ShapeDtypeStruct``) that returns a
      ``Jaxpr``.

    Raises:
      ConcretizationError: ``fun`` asks for the value of an argument.
      TypeError: ``static_argnums`` is no int or tuple of ints.

    Example:
      >>> make_jaxpr(lambda x: 2.0 * x)(1.0).eqns[0].primitive.name
      'multiply'
    """
    fun = traced_form("make_jaxpr", fun)
    static = _static_positions(static_argnums)

    @named("make_jaxpr", fun)
    def jaxpr_maker(*args: object, **kwargs: object) -> Any:
        numbers = frozenset(i % len(args) for i in static) if args else frozenset()
        jaxpr, out_treedef = _stage_call("make_jaxpr", fun, args, kwargs, numbers)
        if not return_shape:
            return jaxpr
        return jaxpr, _shapes(jaxpr, out_treedef)

    return jaxpr_maker


def _static_positions(static_argnums: object) -> frozenset[int]:
    """``static_argnums`` as a set of ints."""
    given = (static_argnums,) if isinstance(static_argnums, int) else static_argnums
    if not isinstance(given, (tuple, list)) or not all(isinstance(n, int) for n in given):
        raise TypeError(
            "make_jaxpr: static_argnums must be an int or a tuple of ints, got "
            f"{type(static_argnums).__name__}; the arguments of the function go into a second "
            "call: make_jaxpr(f)(x)"
        )
    return frozenset(given)


def _shapes(jaxpr: Jaxpr, out_treedef: object) -> Any:
    structs = [ShapeDtypeStruct(aval.shape, aval.dtype) for aval in jaxpr.out_avals]
    shapes = tree.unflatten(out_treedef, structs)
    return tree.map(
        lambda leaf: ShapeDtypeStruct(leaf.shape, leaf.dtype) if tree.is_float0(leaf) else leaf,
        shapes,
    )


def _as_float0(leaf: Any) -> Any:
    """The array that a struct of dtype ``float0`` stands for; other leaves as they are."""
    return np.zeros(leaf.shape, leaf.dtype) if _is_float0(leaf) else leaf


def _is_float0(leaf: Any) -> bool:
    """Whether a leaf is an array of dtype ``float0``, or the shape and dtype of one."""
    return tree.is_float0(leaf) or (type(leaf) is ShapeDtypeStruct and leaf.dtype == tree.FLOAT0)


@boundary
def eval_shape(fun: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    """Shapes and dtypes of a function's result, without computing it.

    Args:
      fun: function of pytrees of arrays.
      *args: arrays or ``ShapeDtypeStruct``.
      **kwargs: likewise.

    Returns:
      The result's structure with ``ShapeDtypeStruct`` leaves.

    Example:
      >>> eval_shape(lambda x: x @ x, ShapeDtypeStruct((3, 3), np.float32))
      ShapeDtypeStruct(f32[3,3])
    """
    fun = traced_form("eval_shape", fun)
    jaxpr, out_treedef = _stage_call("eval_shape", fun, args, kwargs, frozenset())
    return _shapes(jaxpr, out_treedef)


@boundary
def closure_convert(
    fun: Callable[..., R], *example_args: object
) -> tuple[Callable[..., R], list[Any]]:
    """Make the traced values that a function refers to arguments of it.

    A function with rules of its own that takes ``fun`` then has derivatives in them, too.

    Args:
      fun: function of pytrees of arrays.
      *example_args: arguments (arrays or ``ShapeDtypeStruct``) like those that it is called with.

    Returns:
      Function ``(*args, *consts)`` for arguments of these shapes and dtypes, and the list of the
      traced values.

    Raises:
      ConcretizationError: ``fun`` asks for the value of an argument.

    Example:
      >>> import functrans as ft
      >>> def f(scale):
      ...     function, consts = closure_convert(lambda x: scale * x, 1.0)
      ...     return function(3.0, *consts)
      >>> ft.grad(f)(2.0)
      array(3.)
    """
    fun = traced_form("closure_convert", fun)
    jaxpr, treedef = _stage_call("closure_convert", fun, example_args, {}, frozenset())
    program, captured = hoist(jaxpr)
    is_traced = [isinstance(value, Tracer) for value in captured]
    expected = tree.structure(tree.fold_float0(example_args))
    n = len(example_args)

    def converted(*args: object) -> Any:
        given = iter(args[n:])
        consts = [
            next(given) if flag else value for flag, value in zip(is_traced, captured, strict=True)
        ]
        leaves, received = tree.flatten_folded(args[:n])
        tree.check_same(expected, received, label, "the examples", "args")
        outs = run_program(label, program, None, [*consts, *leaves])
        return tree.unflatten(treedef, outs)

    label = f"closure_convert of {name_of(fun)}"
    return converted, [value for value in captured if isinstance(value, Tracer)]


@boundary
def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any] | None, *args: object) -> list[Any]:
    """Evaluate a program.

    Args:
      jaxpr: the program.
      consts: values for its constants, or ``None`` for its own.
      *args: one array per argument.

    Returns:
      List of results.

    Raises:
      TypeError: a wrong number of arguments or constants.
      ShapeError: an argument has another shape, or a dtype that cannot be converted.

    Example:
      >>> eval_jaxpr(make_jaxpr(lambda x: 2.0 * x)(1.0), None, 3.0)
      [array(6.)]
    """
    return run_program("eval_jaxpr", jaxpr, consts, args)


def run_program(
    who: str, jaxpr: Jaxpr, consts: Sequence[Any] | None, args: Sequence[Any]
) -> list[Any]:
    """What ``eval_jaxpr`` does, for all that evaluate a program; ``who`` is for messages."""
    if len(args) != len(jaxpr.invars):
        raise TypeError(f"{who}: the program takes {len(jaxpr.invars)} arguments, got {len(args)}")
    if consts is not None and len(consts) != len(jaxpr.constvars):
        raise TypeError(
            f"{who}: the program has {len(jaxpr.constvars)} constants, got {len(consts)}"
        )
    paths = [f"args[{i}]" for i in range(len(args))]
    values = fitted(who, paths, args, jaxpr.in_avals)
    outs = evaluate(jaxpr, values, consts)
    return own_arrays(outs, [*values, *(jaxpr.consts if consts is None else consts)])
