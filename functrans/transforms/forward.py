"""Forward mode and linearization: ``jvp``, ``linearize``, ``linear_transpose``.

Here: JAX's interface over the pushing and the recording trace. Not here: Jacobians
(``transforms.jacobian``).

Layer: ``transforms``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import (
    canonical,
    check_same_structure,
    differentiable_leaf,
    leaf_description,
    leaf_type,
    name_of,
    result_leaf,
    tangent_dtype,
)
from functrans.core.avals import ShapedArray, aval_of_plain
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of, dtype_of, innermost_staging, standing, tracing
from functrans.core.ownership import own_arrays, private_arrays
from functrans.core.source import here
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.values import Array, Aux, R
from functrans.debugging.watched import pushing_trace
from functrans.errors import NonDifferentiableError
from functrans.passes.pushing import PushingTracer
from functrans.passes.staging import stage
from functrans.primitives.structural import cast
from functrans.transforms.linear_functions import (
    Pullback,
    Pushforward,
    RecordedPush,
    Side,
    TransposedProgram,
    fit_tangent,
)
from functrans.transforms.reverse import plain_leaf, private, record_primals, split_aux


def _pairs(label: str, primals: object, tangents: object) -> tuple[list[Any], list[Any], Any]:
    """Flat primals and tangents of one structure, checked."""
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise TypeError(
            f"{label}: primals and tangents must be tuples with one item per argument, got "
            f"{type(primals).__name__} and {type(tangents).__name__}{here()}"
        )
    leaves, treedef = tree.flatten(tuple(primals))
    given, given_treedef = tree.flatten(tuple(tangents))
    check_same_structure(label, treedef, given_treedef, "tangents", "primals")
    values, pushed = [], []
    for i, (leaf, tangent) in enumerate(zip(leaves, given, strict=True)):
        value = differentiable_leaf(
            leaf, functools.partial(leaf_description, label, primals, i, "primals"), allow_int=True
        )
        pushed.append(
            fit_tangent(
                tangent,
                leaf_type(value),
                functools.partial(leaf_description, label, tangents, i, "tangents"),
            )
        )
        values.append(value)
    staging = innermost_staging()
    if staging is not None:  # a constant direction times a captured array is not a constant
        pushed = [
            t if isinstance(t, Tracer) or tree.is_float0(t) else staging.lift(t) for t in pushed
        ]
    return values, pushed, treedef


@overload
def jvp(
    fun: Callable[..., R],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[False] = False,
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, Aux]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: Literal[True],
) -> tuple[R, R, Aux]: ...
@boundary
def jvp(
    fun: Callable[..., Any], primals: object, tangents: object, has_aux: bool = False
) -> tuple[Any, ...]:
    """Evaluate a function and its directional derivative, by forward mode.

    Args:
      fun: function of pytrees of arrays. It gets integers and booleans as they are.
      primals: tuple of arguments; leaves ``f64[...]``, ``f32[...]``, complex, integers or booleans.
      tangents: tuple of the same structure and shapes: the direction; of dtype ``float0``, or 0,
        for integers and booleans.
      has_aux: whether ``fun`` returns ``(out, aux)``; ``aux`` is not differentiated.

    Returns:
      ``(out, out_tangent)`` or ``(out, out_tangent, aux)``; the tangents of integers and booleans
      have dtype ``float0``.

    Raises:
      NonDifferentiableError: the tangent of an integer or a boolean is not zero.
      TreeMismatchError, ShapeError: tangents do not fit the primals; names the key path.

    Example:
      >>> jvp(lambda x: x**3, (2.0,), (1.0,))
      (array(8.), array(12.))
    """
    return push_call("jvp", fun, primals, tangents, has_aux)


def push_call(
    who: str, fun: Callable[..., Any], primals: object, tangents: object, has_aux: bool = False
) -> tuple[Any, ...]:
    """``jvp`` under the name of the transform that uses it."""
    fun = traced_form(who, fun)
    label = f"{who} of {name_of(fun)}"
    values, pushed, treedef = _pairs(label, primals, tangents)
    trace = pushing_trace(label)
    with tracing(trace, [*values, *pushed]):
        tracers = [
            private(v) if tree.is_float0(t) else PushingTracer(trace, v, t)
            for v, t in zip(values, pushed, strict=True)
        ]
        result = fun(*tree.unflatten(treedef, tracers))
        aux = None
        if has_aux:
            result, aux = split_aux(result, label)
            aux = tree.map(lambda leaf: plain_leaf(trace, leaf), aux)
        outs, out_treedef = tree.flatten(result)
        out_values: list[Any] = []
        out_tangents: list[Any] = []
        constants: list[Any] = []  # which may be the caller's arrays
        for i, out in enumerate(map(standing, outs)):
            value, tangent = trace.split(out)
            if value is out:
                value = result_leaf(out, label, result, i)
            out_values.append(value)
            if tangent is None:
                constants.append(value)
            out_tangents.append(zero_tangent(value) if tangent is None else fitted(tangent, value))
    primal_out = tree.unflatten(out_treedef, own_arrays(out_values, [*values, *constants]))
    tangent_out = tree.unflatten(out_treedef, own_arrays(out_tangents, [*values, *pushed]))
    return (primal_out, tangent_out, aux) if has_aux else (primal_out, tangent_out)


def zero_tangent(value: Any) -> Array:
    """A zero tangent: an array of zeros, of dtype ``float0`` for integers."""
    aval = leaf_type(value)
    return np.zeros(aval.shape, tangent_dtype(aval.dtype))


def fitted(tangent: Any, value: object) -> Array:
    """A tangent in the dtype of its value."""
    dtype = dtype_of(value)
    return tangent if dtype_of(tangent) == dtype else cast(tangent, dtype)


@overload
def linearize(
    fun: Callable[..., R], *primals: object, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...
@overload
def linearize(
    fun: Callable[..., tuple[R, Aux]], *primals: object, has_aux: Literal[True]
) -> tuple[R, Callable[..., R], Aux]: ...
@boundary
def linearize(fun: Callable[..., Any], *primals: object, has_aux: bool = False) -> tuple[Any, ...]:
    """Evaluate a function and return its derivative at the point as a linear function.

    Args:
      fun: function of pytrees of arrays. It gets integers and booleans as they are.
      *primals: point of evaluation.
      has_aux: whether ``fun`` returns ``(out, aux)``.

    Returns:
      ``(out, pushforward)`` or ``(out, pushforward, aux)``; ``pushforward(*tangents)`` gives the
      tangent of ``out``. The function is not run again: only what its derivative needs is kept.
      Tangents of integers and booleans are as for ``jvp``. It is a pytree, whose leaves are the
      arrays that it keeps: ``jit`` takes and returns it, and it pickles.

    Example:
      >>> out, pushforward = linearize(lambda x: x**3, 2.0)
      >>> pushforward(1.0)
      array(12.)

    Reference: Radul et al., You Only Linearize Once, POPL 2023.
    """
    recorded, leaves, treedef = record_primals("linearize", fun, primals, has_aux)
    pushforward = Pushforward(
        f"pushforward of {name_of(fun)}",
        Side(treedef, tuple(map(leaf_type, leaves)), "the tangents", "the primals", "tangents"),
        Side(recorded.treedef, tuple(map(leaf_type, recorded.outs)), "", "the result", ""),
        RecordedPush(recorded.inputs, recorded.out_nodes, ()),
    )
    out = tree.unflatten(recorded.treedef, private_arrays(recorded.outs))
    return (out, pushforward, recorded.aux) if has_aux else (out, pushforward)


@boundary
def linear_transpose(fun: Callable[..., Any], *primals: object) -> Callable[[Any], Any]:
    """Transpose a function that is linear.

    Args:
      fun: linear function of pytrees of arrays.
      *primals: arrays, or ``ShapeDtypeStruct``: only shapes and dtypes are used.

    Returns:
      Function of a cotangent shaped like the result; returns a tuple shaped like ``primals``.

    Raises:
      NonDifferentiableError: the function is not linear; names the operation and its line.

    Example:
      >>> transposed = linear_transpose(lambda x: 3.0 * x, 1.0)
      >>> transposed(2.0)
      (array(6.),)
    """
    fun = traced_form("linear_transpose", fun)
    label = f"linear_transpose of {name_of(fun)}"
    leaves, treedef = tree.flatten(primals)
    avals = [leaf_aval(leaf, label) for leaf in leaves]
    structure: list[Any] = []

    def flat(*tracers: Array) -> list[Any]:
        outs, out_treedef = tree.flatten(fun(*tree.unflatten(treedef, tracers)))
        structure.append(out_treedef)
        return outs

    jaxpr = stage(flat, avals, label)
    out_treedef = structure[0]
    for aval in avals:
        for out in jaxpr.out_avals:
            if (aval.dtype.kind in "biu") != (out.dtype.kind in "biu"):
                raise NonDifferentiableError(
                    f"{label}{here()}: the argument {aval} and the result {out}, of which one is "
                    "of integers and one is not; cotangents would be cut to integers. Give an "
                    "argument of floats, such as 1.0, and return floats"
                )

    return Pullback(
        label,
        Side(out_treedef, jaxpr.out_avals, "the cotangent", "the result", "ct", integers=True),
        Side(treedef, tuple(avals), "", "the primals", "", integers=True),
        TransposedProgram(jaxpr),
    )


def leaf_aval(leaf: Any, label: str) -> Any:
    """The aval of an array, a ``ShapeDtypeStruct``, or another object with shape and dtype.

    Raises:
      UnsupportedOperationError: it is none of them.
    """
    from_struct = getattr(leaf, "aval", None)
    if isinstance(from_struct, ShapedArray):
        return from_struct
    if aval_of_plain(leaf) is None and not isinstance(leaf, (np.ndarray, Tracer)):
        shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
        if isinstance(shape, tuple) and dtype is not None:
            return ShapeDtypeStruct(shape, dtype).aval
    return aval_of(canonical(leaf, lambda: label, _STATIC))


_STATIC = "pass an array or a ShapeDtypeStruct, or make the argument static (static_argnums)"
