"""Structural patterns of Jacobians and Hessians: ``sparsity_pattern``.

Here: the program whose index sets are the pattern, and the pattern as a ``scipy.sparse`` array. Not
here: index sets (``sparse.dependence``), the walk (``sparse.walk``).

The program is the derivative itself as a linear map, ``t -> f'(x) t`` or ``t -> f''(x) t``, with
``x`` unknown. So every rule that the derivative goes through counts as it is (custom rules,
``stop_gradient``, conventions at kinks), all operations on ``t`` are linear, and a Hessian is no
other case than a Jacobian: it is the Jacobian of the gradient's program, where an operation lets
two arguments meet exactly if its partials read them (the nonlinear interactions of Walther,
Computing sparse Hessians with automatic differentiation, TOMS 34 (2008)), and what does not reach
the result is not there.

Layer: ``sparse``. Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 7.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.core.arguments import (
    canonical,
    check_argnums,
    differentiable_leaf,
    name_of,
    positions,
    result_leaf,
)
from functrans.core.avals import ShapedArray, is_differentiable_dtype
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.values import Array
from functrans.errors import ConcretizationError, NonDifferentiableError, ShapeError
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.records import dataclass, replace
from functrans.sparse.dependence import Sets
from functrans.sparse.values import UNKNOWN, Value
from functrans.sparse.walk import Walk
from functrans.transforms.forward import jvp
from functrans.transforms.reverse import grad

_AS_CONSTANT = "bind it with functools.partial, since arguments are traced"
"""What to do with an argument that is no array."""


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call of a function, taken apart.

    Attributes:
      label: for messages.
      fun: the function.
      numbers: positions of the arguments that derivatives are taken in.
      leaves: all leaves of the arguments.
      treedef: structure of ``(args, kwargs)``.
      orders: of the dicts in them.
      moving: which leaves derivatives are taken in.
    """

    label: str
    fun: Callable[..., Any]
    numbers: tuple[int, ...]
    leaves: tuple[Any, ...]
    treedef: Any
    orders: tuple[tuple[Any, ...], ...]
    moving: tuple[bool, ...]

    @property
    def xs(self) -> list[Any]:
        """The leaves that derivatives are taken in."""
        return [leaf for leaf, flag in zip(self.leaves, self.moving, strict=True) if flag]

    @property
    def n_columns(self) -> int:
        """Number of their elements."""
        return sum(math.prod(shape_of(x)) for x in self.xs)

    def check_fixed(self) -> None:
        """Refuse indices and masks that are traced, whose elements the pattern needs.

        Raises:
          ConcretizationError: names the key path.
        """
        for i, (leaf, flag) in enumerate(zip(self.leaves, self.moving, strict=True)):
            if isinstance(leaf, Tracer) and is_fixed(leaf, flag):
                args, kwargs = tree.unflatten(self.treedef, range(len(self.leaves)))
                path = tree.key_paths((args, kwargs), "")[i]
                raise ConcretizationError(
                    f"{self.label}: argument {path} is {aval_of(leaf)} and traced (by jit or "
                    f"vmap){here()}, but integers and booleans are indices and masks that the "
                    "sparsity pattern depends on; close over them instead of tracing them, or give "
                    "the pattern: pattern=..."
                )

    def without_values(self) -> Call:
        """The same call with shapes and dtypes in place of arrays, so that none is kept."""
        leaves = tuple([_struct(leaf) for leaf in self.leaves])
        return replace(self, leaves=leaves)

    def flat(self, xs: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """The function of flat arguments, with flat floating results."""
        given = iter(xs)
        full = [
            next(given) if flag else leaf for leaf, flag in zip(leaves, self.moving, strict=True)
        ]
        args, kwargs = tree.unflatten(self.treedef, full)
        result = self.fun(*args, **kwargs)
        outs = tree.leaves(result)
        found = []
        for i, out in enumerate(outs):
            value = result_leaf(out, self.label, result, i)
            if not is_differentiable_dtype(dtype_of(value)):
                raise NonDifferentiableError(
                    f"{self.label}: result {i} is {aval_of(value)}{here()}, which has no derivative"
                )
            found.append(value)
        return found

    def derivative(self, order: int) -> Callable[..., list[Any]]:
        """The floating results, or the gradient, as a function of ``(xs, leaves)``."""
        if order == 1:
            return self.flat

        def gradient(xs: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
            def scalar(*own: Array) -> Any:
                outs = self.flat(own, leaves)
                if len(outs) != 1 or shape_of(outs[0]) != ():
                    shapes = ", ".join(str(shape_of(out)) for out in outs)
                    raise ShapeError(
                        f"{self.label}: a Hessian is that of one scalar result, got "
                        f"{len(outs)} of shape {shapes}{here()}; sum up what is to be minimised"
                    )
                return outs[0]

            return list(grad(scalar, tuple(range(len(xs))))(*xs))

        return gradient


def call_of(
    who: str, fun: Any, argnums: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Call:
    """Take a call apart and check the arguments.

    Raises:
      NonDifferentiableError: an argument to differentiate is not floating.
    """
    label = f"{who} of {name_of(fun)}"
    numbers = positions(label, argnums, len(args))
    leaves, treedef = tree.flatten((args, kwargs))
    paths: list[str] = []

    def path(i: int) -> str:
        if not paths:
            paths.extend(tree.key_paths((args, kwargs), ""))
        return f"{label}: argument {paths[i]}"

    counts = [len(tree.leaves(arg)) for arg in args]
    moving: list[bool] = []
    for number, count in enumerate(counts):
        moving.extend([number in numbers] * count)
    moving.extend([False] * (len(leaves) - len(moving)))
    own: list[Any] = []
    for i, (leaf, flag) in enumerate(zip(leaves, moving, strict=True)):
        describe = functools.partial(path, i)
        if isinstance(leaf, ShapeDtypeStruct):
            if flag and not is_differentiable_dtype(np.dtype(leaf.dtype)):
                raise NonDifferentiableError(
                    f"{describe()} has dtype {leaf.dtype}{here()}, which has no derivative"
                )
            own.append(leaf)
        else:
            own.append(
                differentiable_leaf(leaf, describe)
                if flag
                else canonical(leaf, describe, _AS_CONSTANT)
            )
    orders = tree.dict_orders((args, kwargs))
    return Call(label, fun, numbers, tuple(own), treedef, orders, tuple(moving))


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A pattern, and what it depends on besides shapes.

    Attributes:
      matrix: the pattern, a ``csr_array`` of booleans.
      captured: arrays whose elements the pattern was found from and that may change, with copies.
      is_complex: some result is complex, though arguments are real.
    """

    matrix: Any
    captured: tuple[tuple[np.ndarray, np.ndarray], ...] = ()
    is_complex: bool = False

    @property
    def is_valid(self) -> bool:
        """Whether the arrays that the function refers to are as they were."""
        return all(_is_unchanged(array, copy) for array, copy in self.captured)


def _is_unchanged(array: np.ndarray, copy: np.ndarray) -> bool:
    """Whether the elements are as they were; NaN equals NaN."""
    return np.array_equal(array, copy) or (
        array.dtype.kind in "fc" and np.array_equal(array, copy, equal_nan=True)
    )


def find_pattern(call: Call, order: int) -> Found:
    """The pattern of the Jacobian of a call, or of its Hessian.

    Raises:
      ConcretizationError: the function asks for values of its arguments, or indices among them have
        no values.
      MemoryError: a part of the derivative is dense and does not fit the budget.
    """
    call.check_fixed()
    xs = call.xs
    n_xs = len(xs)
    derivative = call.derivative(order)

    def linear_map(*tracers: Array) -> list[Any]:
        ts, leaves = tracers[:n_xs], tracers[n_xs:]
        own = [leaf for leaf, flag in zip(leaves, call.moving, strict=True) if flag]
        return list(jvp(lambda *v: derivative(v, leaves), tuple(own), tuple(ts))[1])

    avals = [_aval(leaf) for leaf in call.leaves]
    directions = [ShapedArray(shape_of(x), dtype_of(x)) for x in xs]
    try:
        jaxpr = simplify(stage(linear_map, [*directions, *avals], call.label))
    except ConcretizationError as error:
        what = str(error).partition(", but ")[0]
        raise ConcretizationError(
            f"{what}, but {call.label} looks for entries. A sparsity pattern holds at all points, "
            "so that it cannot depend on values; use np.where or ft.lax.cond in place of Python's "
            "if, which keep the entries of both branches, or give the pattern: pattern=..."
        ) from None
    sets = Sets(call.n_columns, call.label)
    deps = sets.arguments([aval.shape for aval in directions])
    arguments = [Value(aval, dep) for aval, dep in zip(directions, deps, strict=True)]
    arguments += [
        Value(aval, (), leaf if is_fixed(leaf, flag) else UNKNOWN)
        for aval, leaf, flag in zip(avals, call.leaves, call.moving, strict=True)
    ]
    walk = Walk(sets)
    outs = walk.run(jaxpr, arguments)
    captured = tuple(
        (own.array, own.copy) for own in walk.captured.values() if own.copy is not None
    )
    is_complex = any(out.aval.dtype.kind == "c" for out in outs)
    is_complex = is_complex and not any(dtype_of(x).kind == "c" for x in xs)
    return Found(_matrix(sets, outs), captured, is_complex)


def is_fixed(leaf: Any, is_moving: bool) -> bool:
    """Whether a pattern may depend on the elements of an argument: integers and booleans."""
    return not is_moving and not isinstance(leaf, ShapeDtypeStruct) and dtype_of(leaf).kind in "iub"


def _struct(leaf: Array) -> ShapeDtypeStruct:
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf
    return ShapeDtypeStruct(shape_of(leaf), dtype_of(leaf))


def _aval(leaf: Array) -> Any:
    if isinstance(leaf, ShapeDtypeStruct):
        return ShapedArray(tuple(leaf.shape), np.dtype(leaf.dtype))
    return aval_of(leaf)


def _matrix(sets: Sets, outs: Sequence[Value]) -> Any:
    """The sets of all results as the rows of a boolean array."""
    from scipy.sparse import csr_array

    indptrs, parts = [np.zeros(1, np.int64)], []
    n = n_rows = 0
    for out in outs:
        indptr, indices = sets.rows(out.dep, out.shape)
        indptrs.append(indptr[1:] + n)
        parts.append(indices)
        n += len(indices)
        n_rows += len(indptr) - 1
    indices = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    indptr = np.concatenate(indptrs)
    if n < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    matrix = csr_array((np.ones(n, bool), indices, indptr), shape=(n_rows, sets.n_columns))
    matrix.has_sorted_indices = True
    return matrix


@boundary
def sparsity_pattern(
    fun: Callable[..., Any],
    *args: object,
    argnums: int | Sequence[int] = 0,
    order: int = 1,
    **kwargs: object,
) -> Any:
    """Which entries of a Jacobian or Hessian may be nonzero, at any point.

    The pattern is that of the program: it contains every entry that is nonzero at some point, and
    entries that are zero by cancellation only (``x - x``). Elements of ``args`` do not count, only
    shapes and dtypes, but for integer and boolean arguments: those are indices and masks. Arrays
    that ``fun`` refers to count as constants.

    Args:
      fun: function of pytrees of arrays.
      *args: its arguments, arrays or ``ShapeDtypeStruct``.
      argnums: which positional arguments derivatives are taken in.
      order: 1 for the Jacobian, 2 for the Hessian of a scalar result.
      **kwargs: further arguments of ``fun``.

    Returns:
      ``scipy.sparse.csr_array`` of booleans, all stored entries true: a row per element of the
      results (for ``order=2``, of the arguments), a column per element of the arguments, both in
      the order of the leaves and row-major within.

    Raises:
      ConcretizationError: the program depends on values (Python's ``if`` on an array), or an
        integer or boolean argument is traced (by ``jit`` or ``vmap``).
      NonDifferentiableError: an argument or result is not floating.
      MemoryError: a part of the derivative is dense and does not fit
        ``ft.config(jacobian_memory_bytes=...)``.
      ValueError: ``order`` is neither 1 nor 2.

    Example:
      >>> import numpy as np
      >>> sparsity_pattern(lambda x: x[1:] * x[:-1], np.ones(4)).toarray().astype(int)
      array([[1, 1, 0, 0],
             [0, 1, 1, 0],
             [0, 0, 1, 1]])

    Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 7.
    """
    fun = traced_form("sparsity_pattern", fun)
    numbers = check_argnums("sparsity_pattern", argnums)
    if order not in (1, 2):
        raise ValueError(f"sparsity_pattern: order must be 1 or 2, got {order!r}")
    return find_pattern(call_of("sparsity_pattern", fun, numbers, args, kwargs), order).matrix
