"""Reverse mode: ``vjp``, ``grad``, ``value_and_grad``.

Here: the recording of a function and the backward pass behind JAX's interface. Not here: what is
recorded (``passes.recording``), the backward pass (``passes.pullback``), Jacobians
(``transforms.jacobian``).

``grad(f)(x)`` from call to result: the leaves of ``x`` become tracers of a ``RecordingTrace``;
``f`` runs on them, each operation evaluating and leaving a node; ``pull_back`` walks the nodes from
the result back to the inputs.

Layer: ``transforms``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import (
    check_argnums,
    differentiable_leaf,
    flatten_call,
    leaf_description,
    leaf_type,
    name_of,
    named,
    positions,
    result_leaf,
    split_leaves,
    unflatten_call,
)
from functrans.core.avals import is_differentiable_dtype
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import (
    Trace,
    Tracer,
    aval_of,
    dtype_of,
    escaped,
    shape_of,
    standing,
    tracing,
)
from functrans.core.ownership import own_array, own_arrays, private_arrays
from functrans.core.source import here
from functrans.core.state import current_config
from functrans.core.transformed import transform
from functrans.core.values import Argnums, Aux, P, R
from functrans.debugging.watched import recording_trace
from functrans.errors import NonDifferentiableError, ShapeError
from functrans.passes.layouts import copy_in_layout
from functrans.passes.nodes import Node, input_node
from functrans.passes.pullback import pull_back
from functrans.passes.recording import RecordingTrace, RecordingTracer
from functrans.passes.staging import may_change
from functrans.primitives.structural import cast
from functrans.transforms.linear_functions import Pullback, RecordedPull, Side


class Recorded:
    """A function that has run under a recording trace.

    Attributes:
      outs: leaves of the result (values of the enclosing trace).
      out_nodes: node of each leaf, ``None`` where it depends on no input.
      treedef: structure of the result.
      aux: second result when ``has_aux``.
      inputs: node of each differentiated leaf.
      leaves: the leaves as the function got them.
      trace: under which it ran.
    """

    __slots__ = ("aux", "inputs", "leaves", "out_nodes", "outs", "trace", "treedef")

    def __init__(
        self,
        fun: Callable[[list[Any]], Any],
        leaves: Sequence[Any],
        label: str,
        has_aux: bool,
        make_trace: Callable[[str], RecordingTrace] = recording_trace,
    ) -> None:
        self.trace = trace = make_trace(label)
        self.leaves = leaves = [private(leaf) for leaf in leaves]  # residuals may be inputs
        with tracing(trace, leaves):
            self.inputs: list[Any] = [
                input_node(leaf) if is_differentiable_dtype(dtype_of(leaf)) else None
                for leaf in leaves
            ]
            tracers = [
                RecordingTracer(trace, leaf, node) if node is not None else leaf
                for leaf, node in zip(leaves, self.inputs, strict=True)
            ]
            result = fun(tracers)
            self.aux = None
            if has_aux:
                result, aux = split_aux(result, label)
                self.aux = tree.map(lambda leaf: plain_leaf(trace, leaf), aux)
            if type(result) is RecordingTracer:
                outs: list[Any] = [result]
                self.treedef: Any = tree.LEAF
            else:
                outs, self.treedef = tree.flatten(result)
            self.outs = []
            self.out_nodes: list[Node | None] = []
            for i, out in enumerate(map(standing, outs)):
                if type(out) is RecordingTracer and out._trace is trace:
                    value, node = out._value, out._node
                else:
                    node = None
                    value = result_leaf(out, label, result, i)
                if node is None:  # a constant, which may be the caller's array
                    value = own_array(value, (value,))
                self.outs.append(value)
                self.out_nodes.append(node)


def private(leaf: Any) -> Any:
    """An input as a value that its owner cannot write to, in the same layout."""
    if type(leaf) is np.ndarray:
        if may_change(leaf) and current_config.get().copy_residuals:
            return copy_in_layout(leaf, leaf)
        return leaf
    return leaf._twin() if isinstance(leaf, Tracer) else leaf


def plain_leaf(trace: Trace, leaf: object) -> Any:
    """A leaf of an auxiliary result without this trace's tracers, as an array of its own.

    Raises:
      EscapedTracerError: it is a tracer of a function that has returned.
    """
    if not isinstance(leaf, Tracer):
        return leaf
    if leaf._trace is trace:
        value = leaf._value  # type: ignore[attr-defined]  # the traces that have values
        return own_array(value, (value,))
    if not leaf._trace.is_open:
        raise escaped(leaf)
    return leaf


def split_aux(result: object, label: str) -> tuple[Any, Any]:
    """``(out, aux)`` of a function with ``has_aux``.

    Raises:
      TypeError: the function did not return a pair.
    """
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        raise TypeError(
            f"{label}: has_aux=True needs the function to return a pair (out, aux), got "
            f"{got}{here()}"
        )
    return result


def _gradient(
    who: str,
    fun: Callable[..., Any],
    argnums: int | tuple[int, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    has_aux: bool,
    holomorphic: bool,
    allow_int: bool,
) -> tuple[Any, Any, Any]:
    """Value, gradient and auxiliary result."""
    label = f"{who} of {name_of(fun)}"
    numbers = positions(label, argnums, len(args))
    leaves, treedefs, counts = flatten_call(args, numbers)
    checked = []
    for i, leaf in enumerate(leaves):

        def describe(i: int = i) -> str:
            return _path(label, args, numbers, i)

        value = differentiable_leaf(leaf, describe, allow_int=allow_int)
        if holomorphic and dtype_of(value).kind != "c":
            raise NonDifferentiableError(
                f"{describe()} is {aval_of(value)}{here()}; holomorphic=True needs complex inputs"
            )
        checked.append(value)

    def call(tracers: list[Any]) -> Any:
        return fun(*unflatten_call(args, numbers, tracers, treedefs, counts), **kwargs)

    recorded = Recorded(call, checked, label, has_aux)
    outs = recorded.outs
    if recorded.treedef is not tree.LEAF:
        got = tree.in_words(recorded.treedef).replace("None", "None: the function returns nothing")
        raise TypeError(
            f"{label} needs a function with a scalar result, got {got}{here()}; return one scalar "
            "(has_aux=True for more results)"
        )
    (out,) = outs
    (node,) = recorded.out_nodes
    if shape_of(out):
        raise ShapeError(
            f"{label} needs a function with a scalar result, got {aval_of(out)}{here()}; sum it "
            "(f(x).sum()) or use ft.jacobian / ft.vjp"
        )
    dtype = dtype_of(out)
    if not is_differentiable_dtype(dtype):
        raise NonDifferentiableError(
            f"{label} needs a floating-point result, got {aval_of(out)}{here()}, which has no "
            "derivative"
        )
    if dtype.kind == "c" and not holomorphic:
        advice = "use abs(.)**2 or .real"
        if any(dtype_of(x).kind == "c" for x in checked):
            advice += ", or holomorphic=True for a holomorphic function of complex inputs"
        else:
            advice += (
                ". Eigenvalues, logarithms and roots of real matrices are complex where values are "
                "not known (jit, vmap); sqrtm and logm have real=True"
            )
        raise NonDifferentiableError(
            f"{label} needs a real result, got {aval_of(out)}{here()}; {advice}"
        )
    if dtype.kind != "c" and holomorphic:
        raise NonDifferentiableError(
            f"{label} with holomorphic=True needs a complex result, got {aval_of(out)}{here()}; a "
            "real function of complex arguments is differentiated without holomorphic"
        )
    inputs = recorded.inputs
    aux = recorded.aux
    recorded.out_nodes = []
    outputs = [] if node is None else [(node, dtype.type(1))]
    node = None
    cts = pull_back(outputs, [i for i in inputs if i is not None], keep=False)
    gradients = finish_cotangents(checked, inputs, cts)
    trees = split_leaves(gradients, treedefs, counts)
    gradient = trees[0] if isinstance(argnums, int) else tuple(trees)
    return own_array(out, checked), gradient, aux


def _path(label: str, args: tuple[Any, ...], numbers: tuple[int, ...], i: int) -> str:
    """Key path of a leaf of the differentiated arguments."""
    paths: list[str] = []
    for number in numbers:
        paths.extend(tree.key_paths(args[number], f"args[{number}]"))
    return f"{label}: {paths[i]}"


def finish_cotangents(
    leaves: Sequence[Any],
    inputs: Sequence[Node | None],
    cts: Sequence[Any],
    foreign: Sequence[Any] = (),
) -> list[Any]:
    """Cotangents as results, zeros where none came: arrays of their own, none of ``foreign``."""
    found = iter(cts)
    results = []
    for leaf, node in zip(leaves, inputs, strict=True):
        if node is None:
            results.append(np.zeros(shape_of(leaf), tree.FLOAT0))
            continue
        ct = next(found)
        if ct is None:
            ct = np.zeros(node.shape, node.dtype)
        results.append(ct if dtype_of(ct) == node.dtype else cast(ct, node.dtype))
    return own_arrays(results, [*leaves, *foreign])


@overload
def value_and_grad(
    fun: np.ufunc, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]: ...  # fmt: skip
@overload
def value_and_grad(
    fun: Callable[P, R],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[R, Any]]: ...
@transform
def value_and_grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Transform a scalar function into one that gives value and gradient.

    Args:
      fun: function of pytrees of arrays with a scalar result ``f64[]`` or ``f32[]``. It runs on
        values: Python's ``if`` and ``while`` work.
      argnums: which positional arguments to differentiate.
      has_aux: whether ``fun`` returns ``(out, aux)``; ``aux`` is passed through.
      holomorphic: whether ``fun`` is a holomorphic function of complex arguments.
      allow_int: whether integer arguments are accepted; their gradient has dtype ``float0``.

    Returns:
      Function with the arguments of ``fun`` that returns ``(value, gradient)``, or
      ``((value, aux), gradient)``; the gradient has the structure of the argument (a tuple of them
      for a tuple of ``argnums``), and its leaves shape and dtype of the argument's leaves.

    Raises:
      NonDifferentiableError: an argument or the result is not floating; names the key path.
      ShapeError: the result is no scalar.
      ValueError: ``argnums`` names an argument that the call does not have.

    Example:
      >>> import numpy as np
      >>> value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
      (array(5.), array([2., 4.]))
    """
    fun = traced_form("value_and_grad", fun)
    numbers = check_argnums("value_and_grad", argnums)

    @named("value_and_grad", fun)
    def value_and_gradient(*args: object, **kwargs: object) -> tuple[Any, Any]:
        value, gradient, aux = _gradient(
            "value_and_grad", fun, numbers, args, kwargs,
            has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int,
        )  # fmt: skip
        return ((value, aux) if has_aux else value), gradient

    return value_and_gradient


@overload
def grad(
    fun: np.ufunc, argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]: ...  # fmt: skip
@overload
def grad(
    fun: Callable[P, tuple[Any, Aux]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, Aux]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: Literal[False] = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...
@transform
def grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Transform a scalar function into its gradient, by reverse mode.

    Args:
      fun: function of pytrees of arrays with a scalar result ``f64[]`` or ``f32[]``. It runs on
        values: Python's ``if`` and ``while`` work.
      argnums: which positional arguments to differentiate.
      has_aux: whether ``fun`` returns ``(out, aux)``; ``aux`` is passed through.
      holomorphic: whether ``fun`` is a holomorphic function of complex arguments.
      allow_int: whether integer arguments are accepted; their gradient has dtype ``float0``.

    Returns:
      Function with the arguments of ``fun`` that returns the gradient, or ``(gradient, aux)``.

    Raises:
      NonDifferentiableError: an argument or the result is not floating; names the key path.
      ShapeError: the result is no scalar.
      ValueError: ``argnums`` names an argument that the call does not have.

    Example:
      >>> import numpy as np
      >>> grad(lambda x: np.sum(np.sin(x)))(np.zeros(3))
      array([1., 1., 1.])

    Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 3.
    """
    fun = traced_form("grad", fun)
    numbers = check_argnums("grad", argnums)

    @named("grad", fun)
    def gradient(*args: object, **kwargs: object) -> Any:
        _, result, aux = _gradient(
            "grad", fun, numbers, args, kwargs,
            has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int,
        )  # fmt: skip
        return (result, aux) if has_aux else result

    return gradient


def record_primals(
    who: str, fun: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool
) -> tuple[Recorded, list[Any], Any]:
    """Record a function of several pytrees."""
    fun = traced_form(who, fun)
    label = f"{who} of {name_of(fun)}"
    if not primals:
        raise TypeError(f"{label}: give at least one primal to differentiate at{here()}")
    leaves, treedef = tree.flatten(primals)
    checked = []
    for i, leaf in enumerate(leaves):
        value = differentiable_leaf(
            leaf, functools.partial(leaf_description, label, primals, i, "primals"), allow_int=True
        )
        checked.append(value)
    recorded = Recorded(
        lambda tracers: fun(*tree.unflatten(treedef, tracers)), checked, label, has_aux
    )
    return recorded, checked, treedef


@overload
def vjp(
    fun: Callable[..., R], *primals: object, has_aux: Literal[False] = False
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, Aux]], *primals: object, has_aux: Literal[True]
) -> tuple[R, Callable[[Any], tuple[Any, ...]], Aux]: ...
@boundary
def vjp(fun: Callable[..., Any], *primals: object, has_aux: bool = False) -> tuple[Any, ...]:
    """Evaluate a function and return its pullback.

    Args:
      fun: function of pytrees of arrays. It gets integers and booleans as they are.
      *primals: point of evaluation; leaves ``f64[...]``, ``f32[...]``, complex, integers or
        booleans.
      has_aux: whether ``fun`` returns ``(out, aux)``; ``aux`` is not differentiated.

    Returns:
      ``(out, pullback)`` or ``(out, pullback, aux)``; ``pullback`` takes a cotangent shaped like
      ``out`` and returns a tuple shaped like ``primals``. It can be called any number of times. It
      is a pytree, whose leaves are the arrays that it keeps: ``jit`` takes and returns it, and it
      pickles.
      Cotangents of integers and booleans are arrays of dtype ``float0``; given ones may be 0.

    Raises:
      TreeMismatchError, ShapeError: (by the pullback) the cotangent does not fit ``out``.

    Example:
      >>> import numpy as np
      >>> out, pullback = vjp(lambda x, y: x * y, 3.0, 4.0)
      >>> pullback(1.0)
      (array(4.), array(3.))

    Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 3.
    """
    recorded, leaves, treedef = record_primals("vjp", fun, primals, has_aux)
    out_avals = [leaf_type(out) for out in recorded.outs]
    pullback = Pullback(
        f"pullback of {name_of(fun)}",
        Side(recorded.treedef, tuple(out_avals), "the cotangent", "the result", "ct"),
        Side(treedef, tuple(map(leaf_type, leaves)), "", "the primals", ""),
        RecordedPull(recorded.inputs, recorded.out_nodes, leaves),
    )
    out = tree.unflatten(recorded.treedef, private_arrays(recorded.outs))
    return (out, pullback, recorded.aux) if has_aux else (out, pullback)
