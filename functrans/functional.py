"""Derivatives in one call, in the form of ``torch.autograd.functional``.

Here: ``jacobian``, ``hessian``, ``vjp``, ``jvp``, ``vhp``, ``hvp`` of a function at a point:
functions of arrays, not transforms. Inputs and outputs are one array or a tuple of them; results
are nested as in torch. Not here: the machinery (``transforms``).

Layer: ``functional``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from functrans.core.arguments import check_callable, differentiable_leaf, name_of
from functrans.core.boundary import boundary
from functrans.core.dispatch import aval_of, dtype_of, shape_of
from functrans.core.ownership import own_array, own_arrays
from functrans.core.source import here
from functrans.core.values import Array, Point, R
from functrans.errors import NonDifferentiableError, ShapeError
from functrans.namespaces import listing as _listing
from functrans.passes.nodes import Node
from functrans.passes.pullback import pull_back
from functrans.transforms.chunks import check_chunking
from functrans.transforms.dense import DenseJacobian
from functrans.transforms.forward import push_call
from functrans.transforms.linear_functions import fit_tangent
from functrans.transforms.reverse import Recorded, finish_cotangents, value_and_grad

Arrays: TypeAlias = Array | complex | tuple[Array | complex, ...]
_STRATEGIES = ("reverse-mode", "forward-mode")


def _describe(who: str, name: str, i: int | None) -> str:
    """``functional.vjp: v[0]`` for an item of a tuple, without the number for a single array."""
    return f"functional.{who}: {name}" if i is None else f"functional.{who}: {name}[{i}]"


def _as_tuple(who: str, name: str, values: Any) -> tuple[tuple[Any, ...], bool]:
    """Values as a tuple of checked arrays, and whether they came as one."""
    is_tuple = isinstance(values, tuple)
    items = values if is_tuple else (values,)
    if isinstance(values, (list, dict, set)):
        raise TypeError(
            f"functional.{who}: {name} must be an array or a tuple of arrays, got "
            f"{type(values).__name__}; use a tuple, or ft.{who} for pytrees"
        )
    checked = []
    for i, item in enumerate(items):
        describe = functools.partial(_describe, who, name, i if is_tuple else None)
        checked.append(differentiable_leaf(item, describe))
    return tuple(checked), is_tuple


def _check_result(who: str, result: object) -> None:
    """Refuse results that are neither an array nor a tuple of arrays."""
    items = result if isinstance(result, tuple) else (result,)
    for item in items:
        if item is None or isinstance(item, (list, tuple, dict)):
            raise TypeError(
                f"functional.{who}: the function must return an array or a tuple of arrays, got "
                f"{'a tuple with a ' if item is not result else ''}{type(item).__name__}{here()}; "
                f"ft.{who} takes any pytree"
            )


def _record(
    who: str, func: Callable[..., Any], inputs: object
) -> tuple[Recorded, tuple[Any, ...], bool, bool]:
    """Run a function under the recording trace; results must be an array or a tuple of arrays."""
    check_callable(f"functional.{who}", func)
    values, is_in_tuple = _as_tuple(who, "inputs", inputs)
    kind: list[bool] = []

    def call(tracers: list[Any]) -> Any:
        result = func(*tracers)
        kind.append(isinstance(result, tuple))
        _check_result(who, result)
        return tuple(result) if kind[0] else (result,)

    recorded = Recorded(call, values, f"functional.{who} of {name_of(func)}", False)
    return recorded, values, is_in_tuple, kind[0]


def _check_dependence(who: str, what: str, rows: Sequence[Sequence[bool]]) -> None:
    """``strict=True``: every result must depend on every input."""
    for i, row in enumerate(rows):
        for j, depends in enumerate(row):
            if not depends:
                raise RuntimeError(
                    f"functional.{who}: {what} {i} of the function is independent of input {j}"
                    f"{here()}, which strict=True does not allow; {_STRICT}"
                )


def _check_use(who: str, what: str, rows: Sequence[Sequence[bool]]) -> None:
    """``strict=True``: every result must depend on an input, and every input must be used."""
    for i, row in enumerate(rows):
        if not any(row):
            raise RuntimeError(
                f"functional.{who}: {what} {i} of the function depends on no input{here()}, which "
                f"strict=True does not allow; {_STRICT}"
            )
    for j, column in enumerate(zip(*rows, strict=True)):
        if not any(column):
            raise RuntimeError(
                f"functional.{who}: the function is independent of input {j}{here()}, which "
                f"strict=True does not allow; {_STRICT}"
            )


_STRICT = "use strict=False to get zeros"


def _depends(node: Node | None, inputs: Sequence[Node]) -> list[bool]:
    """Which inputs a result depends on, by its nodes."""
    if node is None:
        return [False] * len(inputs)
    seen = {node}
    pending = [node]
    while pending:
        for parent in pending.pop().parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                pending.append(parent)
    return [i in seen for i in inputs]


def _all_depends(recorded: Recorded) -> list[list[bool]]:
    """Per result, which inputs it depends on."""
    return [_depends(node, recorded.inputs) for node in recorded.out_nodes]


def _nested(values: Sequence[Any], is_tuple: bool) -> Any:
    return tuple(values) if is_tuple else values[0]


@boundary
def jacobian(
    func: Callable[..., Any],
    inputs: Arrays,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
    *,
    chunk_size: int | str = "auto",
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Any:
    """The Jacobian of a function at a point.

    Args:
      func: function of arrays that returns an array or a tuple of arrays. It runs once, on values.
      inputs: array or tuple of arrays of floating type.
      create_graph: accepted; results on traced inputs are differentiable in any case.
      strict: raise when a result does not depend on an input, in place of giving zeros.
      vectorize: accepted; the basis always goes through as one batch.
      strategy: ``"forward-mode"`` forces it. Both directions give the same numbers: the default
        takes the cheaper one for the shapes at hand.
      chunk_size: how many rows or columns are evaluated at once; ``"auto"``: as many as fit.
      memory_bytes: the budget; see :func:`ft.jacrev`.
      progress: ``True`` for a bar (of tqdm), or a function of ``(done, total)``.

    Returns:
      Array of shape ``output.shape + input.shape``; a tuple over inputs, over outputs, or of
      tuples over outputs then inputs where those are tuples.

    Raises:
      NonDifferentiableError: an input or output is not floating.
      RuntimeError: ``strict`` and a result is independent of an input; names both.
      ValueError: unknown ``strategy``; ``chunk_size`` or ``memory_bytes`` is no positive integer.
      MemoryError: the result, or a single row or column, exceeds the budget.

    Example:
      >>> import numpy as np
      >>> jacobian(lambda x: x**2, np.array([1.0, 2.0]))
      array([[2., 0.],
             [0., 4.]])
    """
    if strategy not in _STRATEGIES:
        raise ValueError(
            f"functional.jacobian: strategy must be one of {_STRATEGIES}, got {strategy!r}"
        )
    check_callable("functional.jacobian", func)
    chunking = check_chunking("functional.jacobian", chunk_size, memory_bytes, progress)
    values, is_in_tuple = _as_tuple("jacobian", "inputs", inputs)
    is_out_tuple: list[bool] = []

    def as_tuple(*args: object) -> tuple[Any, ...]:
        result = func(*args)
        _check_result("jacobian", result)
        is_out_tuple.append(isinstance(result, tuple))
        return result if is_out_tuple[0] else (result,)

    as_tuple.__name__ = name_of(func)
    argnums = tuple(range(len(values)))
    call = DenseJacobian(
        "functional.jacobian", as_tuple, argnums, values, {},
        has_aux=False, holomorphic=None, allow_int=None, chunking=chunking,
        direction="forward" if strategy == "forward-mode" else "auto",
    )  # fmt: skip
    call.check_size()
    if strict:
        _check_dependence("jacobian", "output", _all_depends(call.recorded))
    rows = call.assemble(call.blocks())
    return _nested([_nested(row, is_in_tuple) for row in rows], is_out_tuple[0])


def _is_holomorphic(values: Sequence[Any]) -> bool:
    return any(dtype_of(value).kind == "c" for value in values)


def _scalar_result(who: str, func: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its one-element result as a scalar."""
    check_callable(f"functional.{who}", func)

    def scalar(*args: object) -> Any:
        result = func(*args)
        if isinstance(result, tuple) and len(result) == 1:
            result = result[0]
        if isinstance(result, (tuple, list, dict)):
            raise ShapeError(
                f"functional.{who}: the function must return one scalar, got "
                f"{type(result).__name__} of {len(result)}"
            )
        shape = shape_of(result)
        if np.prod(shape, dtype=int) != 1:
            raise ShapeError(
                f"functional.{who}: the function must return a scalar (one element), got "
                f"{aval_of(result)}"
            )
        return result.reshape(()) if shape else result

    scalar.__name__ = name_of(func)
    return scalar


@boundary
def hessian(
    func: Callable[..., Any],
    inputs: Arrays,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
    *,
    chunk_size: int | str = "auto",
    memory_bytes: int | None = None,
    progress: bool | Callable[[int, int], Any] = False,
) -> Any:
    """The Hessian of a scalar function at a point: forward mode over reverse mode.

    Args:
      func: function of arrays that returns one element.
      inputs: array or tuple of arrays of floating type.
      create_graph: accepted; see :func:`jacobian`.
      strict: raise when the gradient does not depend on an input.
      vectorize: accepted; see :func:`jacobian`.
      outer_jacobian_strategy: accepted; both directions give the same numbers.
      chunk_size: how many columns are evaluated at once; ``"auto"``: as many as fit.
      memory_bytes: the budget; see :func:`ft.jacrev`.
      progress: ``True`` for a bar (of tqdm), or a function of ``(done, total)`` columns.

    Returns:
      Array of shape ``input.shape + input.shape``; for a tuple of inputs a tuple of tuples.

    Raises:
      ShapeError: the result has not exactly one element.
      RuntimeError: ``strict`` and the gradient is independent of an input.
      ValueError: ``chunk_size`` or ``memory_bytes`` is no positive integer.
      MemoryError: the result, or a single column, exceeds the budget.

    Example:
      >>> import numpy as np
      >>> hessian(lambda x: (x**3).sum(), np.array([1.0, 2.0]))
      array([[ 6.,  0.],
             [ 0., 12.]])
    """
    if outer_jacobian_strategy not in _STRATEGIES:
        raise ValueError(
            "functional.hessian: outer_jacobian_strategy must be one of "
            f"{_STRATEGIES}, got {outer_jacobian_strategy!r}"
        )
    chunking = check_chunking("functional.hessian", chunk_size, memory_bytes, progress)
    values, is_in_tuple = _as_tuple("hessian", "inputs", inputs)
    argnums = tuple(range(len(values)))
    scalar = _scalar_result("hessian", func)
    gradient = value_and_grad(scalar, argnums, holomorphic=_is_holomorphic(values))

    def gradients(*args: object) -> tuple[Any, ...]:
        return gradient(*args)[1]

    gradients.__name__ = name_of(func)
    call = DenseJacobian(
        "functional.hessian", gradients, argnums, values, {},
        has_aux=False, holomorphic=_is_holomorphic(values), allow_int=None,
        chunking=chunking,
    )  # fmt: skip
    call.check_size()
    if strict:
        _check_dependence("hessian", "the gradient in input", _all_depends(call.recorded))
    rows = call.assemble(call.blocks())
    return _nested([_nested(row, is_in_tuple) for row in rows], is_in_tuple)


def _vectors(who: str, name: str, v: Any, avals: Sequence[Any], is_tuple: bool) -> list[Any]:
    """The vector of a product: given, or one where there is a single element."""
    if v is None:
        if len(avals) != 1 or avals[0].size != 1:
            raise RuntimeError(
                f"functional.{who}: v is needed unless {name} is a single element; got "
                f"{', '.join(map(str, avals))}"
            )
        return [np.ones(avals[0].shape, avals[0].dtype)[()]]
    items = v if isinstance(v, tuple) else (v,)
    if len(items) != len(avals):
        raise RuntimeError(
            f"functional.{who}: v has {len(items)} arrays, but {name} has {len(avals)}"
        )
    return [
        fit_tangent(item, aval, functools.partial(_describe, who, "v", i if is_tuple else None))
        for i, (item, aval) in enumerate(zip(items, avals, strict=True))
    ]


@boundary
def vjp(
    func: Callable[..., R],
    inputs: Point,
    v: Arrays | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Point]:
    """The function's value, and the product of a vector with its Jacobian.

    Args:
      func: function of arrays that returns an array or a tuple of arrays.
      inputs: array or tuple of arrays of floating type.
      v: vector shaped like the result; may be left out when that is a single element.
      create_graph: accepted; see :func:`jacobian`.
      strict: raise when the result does not depend on an input.

    Returns:
      ``(outputs, product)``; the product is shaped like ``inputs``.

    Raises:
      RuntimeError: ``v`` is missing or has the wrong length, or ``strict`` is violated.
      ShapeError: ``v`` has the wrong shape.

    Example:
      >>> import numpy as np
      >>> vjp(lambda x: x**2, np.array([1.0, 2.0]), np.array([1.0, 1.0]))
      (array([1., 4.]), array([2., 4.]))
    """
    recorded, values, is_in_tuple, is_out_tuple = _record("vjp", func, inputs)
    avals = [aval_of(out) for out in recorded.outs]
    vectors = _vectors("vjp", "the result", v, avals, isinstance(v, tuple))
    _refuse_integers("vjp", avals)
    if strict:
        _check_use("vjp", "output", _all_depends(recorded))
    seeds = [
        (node, vector)
        for node, vector in zip(recorded.out_nodes, vectors, strict=True)
        if node is not None
    ]
    cts = pull_back(seeds, recorded.inputs)
    products = finish_cotangents(values, recorded.inputs, cts, foreign=vectors)
    outs = own_arrays(recorded.outs, values)
    return _nested(outs, is_out_tuple), _nested(products, is_in_tuple)


def _refuse_integers(who: str, avals: Sequence[Any]) -> None:
    """Refuse results without derivative."""
    for i, aval in enumerate(avals):
        if aval.dtype.kind not in "fc" and aval.dtype.name != "bfloat16":
            raise NonDifferentiableError(
                f"functional.{who}: result {i} is {aval}, which has no derivative"
            )


@boundary
def jvp(
    func: Callable[..., R],
    inputs: Arrays,
    v: Arrays | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, R]:
    """The function's value, and the product of its Jacobian with a vector (forward mode).

    Args:
      func: function of arrays that returns an array or a tuple of arrays.
      inputs: array or tuple of arrays of floating type.
      v: vector shaped like ``inputs``; may be left out when that is a single element.
      create_graph: accepted; see :func:`jacobian`.
      strict: raise when a result does not depend on the inputs.

    Returns:
      ``(outputs, product)``, both shaped like the result.

    Raises:
      RuntimeError: ``v`` is missing or has the wrong length, or ``strict`` is violated.
      ShapeError: ``v`` has the wrong shape.

    Example:
      >>> import numpy as np
      >>> jvp(lambda x: x**2, np.array([1.0, 2.0]), np.array([1.0, 0.0]))
      (array([1., 4.]), array([2., 0.]))
    """
    values, is_in_tuple = _as_tuple("jvp", "inputs", inputs)
    vectors = _vectors("jvp", "inputs", v, [aval_of(x) for x in values], is_in_tuple)
    if strict:
        recorded, _, _, _ = _record("jvp", func, inputs)
        _check_use("jvp", "output", _all_depends(recorded))

    def checked(*args: object) -> Any:
        result = func(*args)
        _check_result("jvp", result)
        return result

    checked.__name__ = name_of(func)
    return push_call("functional.jvp", checked, values, tuple(vectors))


@boundary
def hvp(
    func: Callable[..., R],
    inputs: Point,
    v: Arrays | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Point]:
    """The value of a scalar function, and the product of its Hessian with a vector.

    Args:
      func: function of arrays that returns one element.
      inputs: array or tuple of arrays of floating type.
      v: vector shaped like ``inputs``; may be left out when that is a single element.
      create_graph: accepted; see :func:`jacobian`.
      strict: raise when the result does not depend on an input.

    Returns:
      ``(output, product)``; the product is shaped like ``inputs``.

    Raises:
      ShapeError: the result has not exactly one element, or ``v`` has the wrong shape.
      RuntimeError: ``v`` is missing or has the wrong length, or ``strict`` is violated.

    Example:
      >>> import numpy as np
      >>> hvp(lambda x: (x**3).sum(), np.array([1.0, 2.0]), np.array([1.0, 0.0]))
      (array(9.), array([6., 0.]))
    """
    return _hessian_product("hvp", func, inputs, v, strict)


@boundary
def vhp(
    func: Callable[..., R],
    inputs: Point,
    v: Arrays | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[R, Point]:
    """The value of a scalar function, and the product of a vector with its Hessian.

    The Hessian is symmetric: arguments, result and errors as :func:`hvp`.

    Example:
      >>> import numpy as np
      >>> vhp(lambda x: (x**3).sum(), np.array([1.0, 2.0]), np.array([0.0, 1.0]))
      (array(9.), array([ 0., 12.]))
    """
    return _hessian_product("vhp", func, inputs, v, strict)


def _hessian_product(
    who: str, func: Callable[..., Any], inputs: object, v: Any, strict: bool
) -> tuple[Any, Any]:
    values, is_in_tuple = _as_tuple(who, "inputs", inputs)
    vectors = _vectors(who, "inputs", v, [aval_of(x) for x in values], is_in_tuple)
    argnums = tuple(range(len(values)))
    scalar = _scalar_result(who, func)
    if strict:
        recorded, _, _, _ = _record(who, scalar, inputs)
        _check_use(who, "output", _all_depends(recorded))
    transform = value_and_grad(scalar, argnums, holomorphic=_is_holomorphic(values))
    if strict:
        recorded, _, _, _ = _record(who, lambda *args: transform(*args)[1], inputs)
        for i, row in enumerate(_all_depends(recorded)):
            if not any(row):
                raise RuntimeError(
                    f"functional.{who}: the gradient in input {i} is constant{here()}, which "
                    f"strict=True does not allow; {_STRICT}"
                )

    def gradient(*args: object) -> tuple[Any, ...]:
        value, gradients = transform(*args)
        return (value, *gradients)

    out, products = push_call(f"functional.{who}", gradient, values, tuple(vectors))
    return own_array(out[0], values), _nested(products[1:], is_in_tuple)


__all__ = [
    "hessian", "hvp", "jacobian", "jvp", "vhp", "vjp",
]  # fmt: skip
__dir__ = _listing(__all__)
