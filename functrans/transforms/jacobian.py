"""Jacobians and Hessians: ``jacrev``, ``jacfwd``, ``jacobian``, ``hessian``, ``hvp``, ``vhp``.

Here: the choice of direction, the basis of tangents or cotangents pushed or pulled as one batch
(in chunks within the memory budget), and the assembly of the result. Not here: the passes over the
recorded nodes (``passes.pullback``, ``passes.pushforward``).

The function runs once on values, so that Python's ``if`` and ``while`` work.

Layer: ``transforms``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import tree
from functrans.errors import NonDifferentiableError
from functrans.ir.avals import ShapedArray, is_differentiable_dtype
from functrans.ir.source import here
from functrans.passes.nodes import Node, ordered_nodes
from functrans.passes.pullback import pull_back
from functrans.passes.pushforward import push_forward
from functrans.primitives.creation import diagonal
from functrans.primitives.movement import concatenate
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast, reshape, transpose
from functrans.state import current_config
from functrans.trace import aval_of, dtype_of, shape_of
from functrans.transforms.arguments import (
    check_argnums,
    check_callable,
    differentiable_leaf,
    flatten_call,
    name_of,
    own_arrays,
    positions,
    split_leaves,
    unflatten_call,
)
from functrans.transforms.forward import push_call
from functrans.transforms.reverse import Recorded, grad


class _Call:
    """One recorded call of a function, and what its Jacobian needs."""

    def __init__(
        self,
        who: str,
        fun: Callable[..., Any],
        argnums: int | tuple[int, ...],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        has_aux: bool,
        holomorphic: bool | None,
        allow_int: bool,
        chunk_size: int | None = None,
        direction: str = "forward",
    ) -> None:
        self.label = label = f"{who} of {name_of(fun)}"
        self.chunk_size = chunk_size
        self.direction = direction
        self.argnums = argnums
        numbers = positions(label, argnums, len(args))
        leaves, self.treedefs, self.counts = flatten_call(args, numbers)
        paths: list[str] = []

        def path(i: int) -> str:
            if not paths:
                for number in numbers:
                    paths.extend(tree.key_paths(args[number], f"args[{number}]"))
            return f"{label}: {paths[i]}"

        self.leaves = [
            differentiable_leaf(
                leaf,
                functools.partial(path, i),
                allow_int=allow_int,
                is_complex_ok=holomorphic is not False or direction != "forward",
            )
            for i, leaf in enumerate(leaves)
        ]
        if holomorphic:
            for i, leaf in enumerate(self.leaves):
                if dtype_of(leaf).kind != "c":
                    raise NonDifferentiableError(
                        f"{path(i)} is {aval_of(leaf)}{here()}; holomorphic=True needs complex "
                        "inputs"
                    )

        def call(tracers: list[Any]) -> Any:
            return fun(
                *unflatten_call(args, numbers, tracers, self.treedefs, self.counts), **kwargs
            )

        self.recorded = Recorded(call, self.leaves, label, has_aux)
        self.outs = self.recorded.outs
        self._check_kinds(holomorphic)

    def _check_kinds(self, holomorphic: bool | None) -> None:
        """Refuse results without derivative, and complex ones that a direction cannot give.

        Forward mode pushes real directions only, reverse mode pulls real functionals only, unless
        the function is holomorphic (``None``: it is, if arguments and results all are complex).

        Raises:
          NonDifferentiableError: names the result.
        """
        for i, out in enumerate(self.outs):
            if not is_differentiable_dtype(dtype_of(out)):
                raise NonDifferentiableError(
                    f"{self.label}: result {i} is {aval_of(out)}{here()}, which has no derivative"
                )
        complex_leaves = [dtype_of(leaf).kind == "c" for leaf in self.leaves]
        complex_outs = [dtype_of(out).kind == "c" for out in self.outs]
        if holomorphic is None:
            holomorphic = all(complex_leaves) and all(complex_outs)
        if holomorphic:
            if not all(complex_outs):
                i = complex_outs.index(False)
                raise NonDifferentiableError(
                    f"{self.label}: result {i} is {aval_of(self.outs[i])}{here()}; "
                    "holomorphic=True needs complex results"
                )
            return
        if self.direction == "auto" and (any(complex_leaves) or any(complex_outs)):
            self.direction = "reverse" if any(complex_leaves) else "forward"
        if self.direction == "forward" and any(complex_leaves):
            i = complex_leaves.index(True)
            raise NonDifferentiableError(
                f"{self.label}: an argument is complex ({aval_of(self.leaves[i])}){here()}, and "
                "forward "
                "mode gives no derivative of a function that is not holomorphic; use reverse mode"
            )
        if self.direction == "reverse" and any(complex_outs):
            i = complex_outs.index(True)
            raise NonDifferentiableError(
                f"{self.label}: result {i} is complex ({aval_of(self.outs[i])}){here()}; use "
                "holomorphic=True for a holomorphic function of complex inputs, or its real and "
                "imaginary parts"
            )

    def is_reverse(self) -> bool:
        """Whether reverse mode is wanted, or cheaper."""
        if self.direction != "auto":
            return self.direction == "reverse"
        n_out = sum(math.prod(shape_of(out)) for out in self.outs)
        n_in = sum(math.prod(shape_of(leaf)) for leaf in self.leaves)
        is_reverse = n_out <= n_in
        import logging  # 3 ms at import, and few want it

        logging.getLogger("functrans").debug(
            "%s: %s mode for %d results of %d arguments",
            self.label,
            "reverse" if is_reverse else "forward",
            n_out,
            n_in,
        )
        return is_reverse

    def blocks(self) -> list[list[Any]]:
        """Blocks by result and input, in the direction that was asked for or is cheaper."""
        return self.reverse() if self.is_reverse() else self.forward()

    def reverse(self) -> list[list[Any]]:
        """Blocks by result and input, a batch of cotangents pulled back."""
        inputs = self.recorded.inputs
        wanted = [node for node in inputs if node is not None]
        rows = []
        for out, node in zip(self.outs, self.recorded.out_nodes, strict=True):
            blocks = self._rows(out, node, wanted)
            found = iter(blocks)
            row = []
            for leaf, own in zip(self.leaves, inputs, strict=True):
                shape = shape_of(out) + shape_of(leaf)
                block = next(found) if own is not None else None
                if own is None:
                    row.append(np.zeros(shape, np.dtype([("float0", "V")])))
                elif block is None:
                    row.append(np.zeros(shape, own.dtype))
                else:
                    row.append(reshape(cast(block, own.dtype), shape))
            rows.append(row)
        return rows

    def _rows(self, out: Any, node: Node | None, wanted: list[Node]) -> list[Any]:
        """The rows of one result: a cotangent batch per input, or ``None``."""
        if node is None:
            return [None] * len(wanted)
        shape, dtype = shape_of(out), dtype_of(out)
        n = math.prod(shape)
        if n == 0:
            return [None] * len(wanted)
        if n == 1:
            seed = np.ones(shape, dtype)[()]
            return pull_back([(node, seed)], wanted)
        step = self._chunk(n, [node])
        pieces = []
        for start in range(0, n, step):
            size = min(step, n - start)
            seeds = _basis(n, start, size, shape, dtype)
            pieces.append(pull_back([(node, seeds)], wanted, size=size))
        return [_join(column) for column in zip(*pieces, strict=True)]

    def forward(self) -> list[list[Any]]:
        """Blocks by result and input, a batch of tangents pushed forward."""
        out_nodes = self.recorded.out_nodes
        nodes = ordered_nodes([node for node in out_nodes if node is not None])
        columns = []
        for leaf, node in zip(self.leaves, self.recorded.inputs, strict=True):
            shape = shape_of(leaf)
            n = math.prod(shape)
            pieces = []
            step = self._chunk(n, nodes)
            for start in range(0, n if node is not None else 0, step):
                size = min(step, n - start)
                seeds = _basis(n, start, size, shape, node.dtype)
                pieces.append(push_forward(nodes, [(node, seeds)], out_nodes, size=size))
            column = []
            for k, out in enumerate(self.outs):
                full = shape_of(out) + shape
                block = _join([piece[k] for piece in pieces]) if pieces else None
                if node is None:
                    column.append(np.zeros(full, np.dtype([("float0", "V")])))
                elif block is None:
                    column.append(np.zeros(full, dtype_of(out)))
                else:
                    moved = _last(cast(block, dtype_of(out)))
                    column.append(reshape(moved, full))
            columns.append(column)
        return [list(row) for row in zip(*columns, strict=True)]

    def diagonal(self) -> Any:
        """The diagonal of a square Jacobian, in the structure of the argument."""
        out_nodes = self.recorded.out_nodes
        nodes = ordered_nodes([node for node in out_nodes if node is not None])
        diagonals = []
        for k, (leaf, node) in enumerate(zip(self.leaves, self.recorded.inputs, strict=True)):
            shape = shape_of(leaf)
            n = math.prod(shape)
            step = self._chunk(n, nodes)
            pieces = []
            for start in range(0, n, step):
                size = min(step, n - start)
                seeds = _basis(n, start, size, shape, node.dtype)
                (tangents,) = push_forward(nodes, [(node, seeds)], [out_nodes[k]], size=size)
                if tangents is None:
                    tangents = np.zeros((size, n), node.dtype)
                rows = reshape(tangents, (size, n))
                pieces.append(diagonal(slice_index(rows, _columns(start, size))))
            joined = _join(pieces) if pieces else np.zeros(0, node.dtype)
            diagonals.append(reshape(joined, shape))
        return split_leaves(own_arrays(diagonals, self.leaves), self.treedefs, self.counts)[0]

    def _chunk(self, n: int, roots: Sequence[Node]) -> int:
        """How many rows or columns to evaluate at a time: as asked, or within the memory budget.

        The estimate: about four arrays of the largest intermediate's size live at once.
        """
        if self.chunk_size is not None:
            return self.chunk_size
        budget = current_config.get().jacobian_memory_bytes
        largest = max(
            (
                math.prod(node.shape) * np.dtype(node.dtype).itemsize
                for node in ordered_nodes(roots)
                if node.shape is not None and type(node.aval) is ShapedArray  # tapes have no size
            ),
            default=1,
        )
        return max(1, min(n, budget // max(1, 4 * largest))) if n else 1

    def check_size(self) -> None:
        """Refuse a result that cannot fit.

        Raises:
          MemoryError: with the estimate and the budget.
        """
        n_out = sum(math.prod(shape_of(out)) for out in self.outs)
        n_in = sum(math.prod(shape_of(leaf)) for leaf in self.leaves)
        n_bytes = n_out * n_in * max((dtype_of(x).itemsize for x in self.outs), default=8)
        budget = current_config.get().jacobian_memory_bytes
        if n_bytes > budget:
            raise MemoryError(
                f"{self.label}: the dense result of {n_out} x {n_in} entries needs "
                f"{n_bytes / 2**30:.1f} GiB, more than the budget of {budget / 2**30:.1f} GiB. Use "
                "products with vectors (ft.jvp, ft.vjp, ft.hvp), or raise the budget with "
                "ft.config(jacobian_memory_bytes=...)."
            )

    def assemble(self, rows: list[list[Any]]) -> Any:
        """Trees of results over trees of arguments."""
        flat = own_arrays([block for row in rows for block in row], self.leaves)
        n = len(self.leaves)
        built = []
        for i in range(len(rows)):
            trees = split_leaves(flat[i * n : (i + 1) * n], self.treedefs, self.counts)
            built.append(trees[0] if isinstance(self.argnums, int) else tuple(trees))
        return tree.unflatten(self.recorded.treedef, built)


def _basis(n: int, start: int, size: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Rows ``start`` to ``start + size`` of the identity, each in a shape."""
    rows = np.zeros((size, n), dtype)
    rows[np.arange(size), np.arange(start, start + size)] = 1
    rows.flags.writeable = False  # nobody's to change: staged, it is a constant of the program
    return rows.reshape((size, *shape))


def _columns(start: int, size: int) -> BasicIndex:
    """The index of some columns."""
    return BasicIndex((slice(None), slice(start, start + size)))


def _join(pieces: Sequence[Any]) -> Any:
    """The chunks of a batch as one, ``None`` where none has anything."""
    if pieces[0] is None:
        return None
    return pieces[0] if len(pieces) == 1 else concatenate(pieces, 0)


def _last(block: Any) -> Any:
    """Move the leading batch axis to the end."""
    axes = (*range(1, len(shape_of(block))), 0)
    return transpose(block, axes)


def _jacobian_transform(
    who: str, fun: Callable[..., Any], argnums: Any, direction: str, options: dict[str, Any]
) -> Callable[..., Any]:
    check_callable(who, fun)
    numbers = check_argnums(who, argnums)
    has_aux = options["has_aux"]

    @functools.wraps(fun, assigned=("__name__", "__qualname__", "__module__", "__doc__"))
    def jacobian_function(*args: Any, **kwargs: Any) -> Any:
        call = _Call(who, fun, numbers, args, kwargs, direction=direction, **options)
        call.check_size()
        result = call.assemble(call.blocks())
        return (result, call.recorded.aux) if has_aux else result

    return jacobian_function


def jacrev(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """Jacobian by reverse mode: good when there are fewer results than arguments.

    Args:
      fun: function of pytrees of arrays; it runs on values, once.
      argnums: which positional arguments to differentiate.
      has_aux: whether ``fun`` returns ``(out, aux)``.
      holomorphic: whether ``fun`` is a holomorphic function of complex arguments.
      allow_int: whether integer arguments are accepted (gradient of dtype ``float0``).

    Returns:
      Function that gives, in the structure of the result, per leaf the structure of the argument,
      blocks of shape ``out.shape + in.shape``.

    Raises:
      NonDifferentiableError: an argument or result is not floating; names the key path.
      MemoryError: the dense result exceeds ``ft.config(jacobian_memory_bytes=...)``.

    Example:
      >>> import numpy as np
      >>> jacrev(lambda x: x**2)(np.array([1.0, 2.0]))
      array([[2., 0.],
             [0., 4.]])
    """
    options = {"has_aux": has_aux, "holomorphic": holomorphic, "allow_int": allow_int}
    return _jacobian_transform("jacrev", fun, argnums, "reverse", options)


def jacfwd(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Jacobian by forward mode: good when there are fewer arguments than results.

    Arguments, result and errors as :func:`jacrev`.

    Example:
      >>> import numpy as np
      >>> jacfwd(lambda x: np.stack([x, x**2]))(3.0)
      array([1., 6.])
    """
    options = {"has_aux": has_aux, "holomorphic": holomorphic, "allow_int": False}
    return _jacobian_transform("jacfwd", fun, argnums, "forward", options)


def jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    mode: str = "auto",
    chunk_size: int | str = "auto",
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Jacobian in the cheaper direction.

    Args:
      fun: function of pytrees of arrays; it runs on values, once.
      argnums: which positional arguments to differentiate.
      has_aux: whether ``fun`` returns ``(out, aux)``.
      mode: ``"reverse"``, ``"forward"``, or ``"auto"``: reverse when there are no more results than
        arguments. The logger ``functrans`` tells at level DEBUG which was taken.
      chunk_size: how many tangents or cotangents go through the recorded function at once;
        ``"auto"``: as many as fit ``ft.config(jacobian_memory_bytes=...)``.
      holomorphic: whether ``fun`` is a holomorphic function of complex arguments.

    Returns:
      As :func:`jacrev`.

    Raises:
      NonDifferentiableError: an argument or result is not floating; names the key path.
      MemoryError: the dense result exceeds the budget.
      ValueError: unknown ``mode`` or ``chunk_size``.

    Example:
      >>> import numpy as np
      >>> jacobian(np.sin)(np.zeros(2))
      array([[1., 0.],
             [0., 1.]])
    """
    if mode not in ("auto", "forward", "reverse"):
        raise ValueError(f"jacobian: mode must be 'auto', 'forward' or 'reverse', got {mode!r}")
    options = {
        "has_aux": has_aux,
        "holomorphic": holomorphic,
        "allow_int": False,
        "chunk_size": check_chunk_size("jacobian", chunk_size),
    }
    return _jacobian_transform("jacobian", fun, argnums, mode, options)


def check_chunk_size(who: str, chunk_size: int | str) -> int | None:
    """A chunk size given by the user; ``None`` for ``"auto"``.

    Raises:
      ValueError: it is neither ``"auto"`` nor a positive integer.
    """
    if chunk_size == "auto":
        return None
    if isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size < 1:
        raise ValueError(
            f"{who}: chunk_size must be 'auto' or a positive integer, got {chunk_size!r}"
        )
    return chunk_size


def hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """Hessian: forward mode over reverse mode.

    Args:
      fun: function of pytrees of arrays, scalar or not; it runs on values, once.
      argnums: which positional arguments to differentiate twice.
      has_aux: whether ``fun`` returns ``(out, aux)``.
      holomorphic: whether ``fun`` is a holomorphic function of complex arguments.

    Returns:
      Function that gives blocks of shape ``out.shape + in.shape + in.shape``, nested by result,
      argument, argument.

    Raises:
      NonDifferentiableError: an argument or result is not floating; names the key path.
      MemoryError: the dense result exceeds ``ft.config(jacobian_memory_bytes=...)``.

    Example:
      >>> import numpy as np
      >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
      array([[ 6.,  0.],
             [ 0., 12.]])
    """
    check_callable("hessian", fun)
    first = jacrev(fun, argnums, has_aux, holomorphic)
    options = {"has_aux": has_aux, "holomorphic": holomorphic, "allow_int": False}
    return _jacobian_transform("hessian", first, argnums, "forward", options)


def hvp(fun: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    """Hessian-vector product of a scalar function: forward mode over reverse mode.

    Args:
      fun: scalar function of pytrees of floating arrays.
      primals: tuple of arguments.
      tangents: tuple of the same structure: the vector.

    Returns:
      Product, shaped like the primals (a single one is not wrapped in a tuple).

    Raises:
      NonDifferentiableError, ShapeError, TreeMismatchError: as :func:`ft.jvp` and :func:`ft.grad`.

    Example:
      >>> import numpy as np
      >>> hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
      array([6., 0.])
    """
    return _hessian_product("hvp", fun, primals, tangents)


def _hessian_product(who: str, fun: Callable[..., Any], primals: Any, tangents: Any) -> Any:
    check_callable(who, fun)
    for name, values in (("primals", primals), ("tangents", tangents)):
        if not isinstance(values, (tuple, list)):
            raise TypeError(
                f"{who} of {name_of(fun)}: {name} must be a tuple with one item per argument, got "
                f"{type(values).__name__}{here()}"
            )
    argnums = tuple(range(len(primals)))
    gradient = grad(fun, argnums if len(argnums) > 1 else 0)
    return push_call(who, gradient, primals, tangents)[1]


def hessian_diag(
    fun: Callable[..., Any], argnums: int = 0, chunk_size: int | str = "auto"
) -> Callable[..., Any]:
    """The diagonal of the Hessian of a scalar function, without the Hessian in memory.

    Args:
      fun: scalar function of arrays; it runs on values, once.
      argnums: which positional argument (one array, or a pytree).
      chunk_size: how many columns are evaluated at once; see :func:`jacobian`.

    Returns:
      Function that gives second derivatives by each element, shaped like the argument. The work is
      that of the Hessian; the memory that of ``chunk_size`` of its columns.

    Raises:
      NonDifferentiableError, ShapeError: as :func:`ft.grad`.

    Example:
      >>> import numpy as np
      >>> hessian_diag(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
      array([ 6., 12.])
    """
    check_callable("hessian_diag", fun)
    number = check_argnums("hessian_diag", argnums)
    if not isinstance(number, int):
        raise TypeError(f"hessian_diag: argnums must be one int, got {argnums!r}")
    step = check_chunk_size("hessian_diag", chunk_size)
    first = grad(fun, number)

    @functools.wraps(fun, assigned=("__name__", "__qualname__", "__module__", "__doc__"))
    def diagonal_function(*args: Any, **kwargs: Any) -> Any:
        call = _Call(
            "hessian_diag", first, number, args, kwargs,
            has_aux=False, holomorphic=False, allow_int=False, chunk_size=step,
        )  # fmt: skip
        return call.diagonal()

    return diagonal_function


def vhp(fun: Callable[..., Any], primals: Any, cotangents: Any) -> Any:
    """Vector-Hessian product of a scalar function: equal to :func:`hvp`, by symmetry.

    Arguments, result and errors as :func:`hvp`.
    """
    return _hessian_product("vhp", fun, primals, cotangents)
