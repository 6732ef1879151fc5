"""Sparse derivatives for users: ``sparse_jacobian``, ``sparse_hessian``.

Here: the functions and the object that they return, its plans (one per kind of call) and pictures.
Not here: patterns (``sparse.pattern``), colourings (``sparse.coloring``), the compiled programs
(``sparse.compression``).

Layer: ``sparse``.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from functrans.arrays.sparse import SparseArray
from functrans.core.arguments import check_argnums, check_callable
from functrans.core.boundary import boundary, warn
from functrans.core.caching import Recent, listed
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.transformed import by_name
from functrans.debugging.documents import framed
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.jitted.jit import jit
from functrans.records import dataclass, replace
from functrans.sparse.coloring import Coloring, as_pattern, color_pattern, is_symmetric
from functrans.sparse.compression import as_constant, entries_program
from functrans.sparse.pattern import Call, Found, call_of, find_pattern, is_fixed
from functrans.sparse.pattern_pages import pattern_page
from functrans.sparse.picture import draw
from functrans.transforms.forward import jvp

_MAX_PLANS = 32
_MODES = {
    1: {"auto": "auto", "forward": "column", "reverse": "row", "bidirectional": "bidirectional"},
    2: {"auto": "star", "symmetric": "star", "forward": "column"},
}
_FORMATS = ("csr", "csc", "coo")


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """How calls of one kind are evaluated.

    Attributes:
      found: the pattern.
      coloring: its colouring.
      evaluate: compiled, leaves to entries in the order of the result.
      build: entries to a sparse array.
      traced: traced entries to one that holds them; ``None`` where the format has none.
      only: shape and dtype of the argument, where there is just one array.
    """

    found: Found
    coloring: Coloring
    evaluate: Callable[..., Any]
    build: Callable[[np.ndarray], Any]
    traced: Callable[[Any], SparseArray] | None
    only: tuple[Any, Any] | None


_LARGE = 10**6
"""Entries from which on a dense derivative in a sparse matrix is worth a warning."""


class SparseFunction:
    """A function that gives a sparse derivative; made by ``sparse_jacobian``, ``sparse_hessian``.

    Calling it gives a ``scipy.sparse`` array. The pattern is found, coloured and compiled at the
    first call with arguments of new shapes or dtypes (or new integers: those are indices), and
    kept.
    """

    def __init__(
        self,
        who: str,
        fun: Callable[..., Any],
        argnums: int | tuple[int, ...],
        order: int,
        pattern: Any,
        coloring: Coloring | None,
        mode: str,
        format: str,
    ) -> None:
        self._who = who
        self._given = (who, fun, argnums, order, pattern, coloring, mode, format)
        self._fun = traced_form(who, fun)
        self._argnums = argnums
        self._order = order
        self._pattern = pattern
        self._coloring = coloring
        self._kind = _MODES[order][mode]
        self._format = format
        self._plans: Recent[Hashable, _Plan] = listed("sparse plans", Recent(_MAX_PLANS))
        self._last: _Plan | None = None
        functools.update_wrapper(
            self, fun, assigned=("__name__", "__qualname__", "__module__", "__doc__"), updated=()
        )

    @boundary
    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The derivative as a ``scipy.sparse`` array of its own memory.

        Inside a transformed function it is a :class:`functrans.scipy.sparse.SparseArray`.
        """
        plan, leaves = self._planned(args, kwargs)
        data = plan.evaluate(*leaves)
        if not isinstance(data, Tracer):
            return plan.build(data)
        if plan.traced is None:
            raise UnsupportedOperationError(
                f"{self._label()}: format {self._format!r} takes no traced entries{here()}; use "
                "format='csr' or 'csc', or .values(...), the entries in the order of the pattern"
            )
        return plan.traced(data)

    def __reduce__(self) -> Any:
        """Pickled as what it was made of, without what is known of calls."""
        return by_name(self, self._given[1]) or (SparseFunction, self._given)

    def values(self, *args: object, **kwargs: object) -> Any:
        """The entries alone: ``data`` of the sparse array, one native call.

        It can be differentiated, batched and jitted.
        """
        plan, leaves = self._planned(args, kwargs)
        return plan.evaluate(*leaves)

    def pattern(self, *args: object, **kwargs: object) -> Any:
        """The pattern for arguments (arrays or ``ShapeDtypeStruct``): a ``csr_array`` of booleans.

        Without arguments, that of the last call.
        """
        if args or kwargs:
            return self._plan_of(args, kwargs)[0].found.matrix.copy()
        return self._known("pattern").found.matrix.copy()

    @property
    def coloring(self) -> Coloring:
        """The colouring of the last call, or the one that was given."""
        if self._last is None and self._coloring is not None:
            return self._coloring
        return self._known("coloring").coloring

    @property
    def n_colors(self) -> int:
        """Number of products with vectors that an evaluation needs."""
        return self.coloring.n_colors

    def check(
        self, *args: object, seed: int = 0, rtol: float | None = None, **kwargs: object
    ) -> None:
        """Refuse a pattern that misses an entry at a point, or a function that is not holomorphic.

        The sparse derivative times a random vector is compared with the directional derivative;
        they differ, with probability one, in each row in which an entry is missing, or in which a
        function of complex arguments has no complex derivative.

        Args:
          *args: the point.
          seed: of the vector.
          rtol: tolerance relative to the size of the terms of a row; by default ``1e4`` times the
            resolution of the dtype.
          **kwargs: further arguments.

        Raises:
          ValueError: names a row.
        """
        matrix = self(*args, **kwargs)
        call = call_of(self._who, self._fun, self._argnums, args, kwargs)
        rng = np.random.default_rng(seed)
        xs = call.xs
        directions = [_direction(rng, shape_of(x), dtype_of(x)) for x in xs]
        derivative = call.derivative(self._order)
        pushed = jvp(lambda *own: derivative(own, call.leaves), tuple(xs), tuple(directions))[1]
        if not pushed:
            return
        dense = np.concatenate([np.ravel(part) for part in pushed])
        vector = np.concatenate([np.ravel(d) for d in directions])
        product = matrix @ vector
        if rtol is None:
            rtol = 1e4 * float(np.finfo(matrix.dtype).eps)
        size = abs(matrix) @ abs(vector) + abs(dense)
        bad = np.flatnonzero(~(abs(product - dense) <= rtol * size) & np.isfinite(dense))
        if len(bad):
            row = int(bad[0])
            raise ValueError(
                f"{self._label()}: row {row} of the sparse derivative times a vector is "
                f"{product[row]}, but the directional derivative is {dense[row]} ({len(bad)} rows "
                f"differ){here()}; the pattern misses entries there (ft.sparsity_pattern finds it)"
                + (", or the function is not holomorphic" if dense.dtype.kind == "c" else "")
            )

    def spy(
        self, ax: object = None, rows: slice | None = None, columns: slice | None = None
    ) -> Any:
        """Draw the pattern of the last call, each entry in the colour that it is evaluated with.

        Args:
          ax: matplotlib's axes; by default the current ones.
          rows: which rows to draw; by default all.
          columns: which columns to draw.

        Returns:
          The axes.

        Raises:
          RuntimeError: there was no call yet.
        """
        plan = self._known("spy()")
        return draw(plan.found.matrix, plan.coloring, ax, rows, columns)

    def to_html(self) -> str:
        """A page that needs nothing else: the pattern of the last call in the colours of products.

        Raises:
          RuntimeError: there was no call yet.
        """
        plan = self._known("to_html()")
        return pattern_page(plan.found.matrix, plan.coloring, repr(self))

    def _repr_html_(self) -> str | None:
        """What a notebook shows: ``to_html`` in a frame; its text before the first call."""
        return None if self._last is None else framed(self.to_html(), 20)

    def __repr__(self) -> str:
        """``sparse_jacobian(f)``."""
        return f"{self._who}({getattr(self._fun, '__name__', self._fun)!s})"

    # plans ---------------------------------------------------------------------------------------

    def _label(self) -> str:
        return f"{self._who} of {getattr(self._fun, '__name__', type(self._fun).__name__)}"

    def _known(self, what: str) -> _Plan:
        if self._last is None:
            raise RuntimeError(
                f"{self._label()}: {what} is known after the first call, since it depends on the "
                "shapes of the arguments; call the function, or .pattern(*args), first"
            )
        return self._last

    def _planned(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Plan, Any]:
        """The plan and the leaves of a call."""
        last = self._last
        if (
            last is not None
            and last.only is not None
            and len(args) == 1
            and not kwargs
            and type(args[0]) is np.ndarray
            and (args[0].shape, args[0].dtype) == last.only
            and (not last.found.captured or last.found.is_valid)
        ):
            return last, args
        return self._plan_of(args, kwargs)

    def _plan_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Plan, Any]:
        call = call_of(self._who, self._fun, self._argnums, args, kwargs)
        key = _key(call, is_found=self._pattern is None)
        plan = self._plans.used(key)
        if plan is None or not plan.found.is_valid:
            plan = self._plans[key] = self._new_plan(call, args, kwargs)
        self._last = plan
        return plan, call.leaves

    def _new_plan(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Plan:
        found = self._find(call)
        matrix = found.matrix
        if self._pattern is None and matrix.nnz > max(_LARGE, math.prod(matrix.shape) // 2):
            warn(
                f"{self._label()}: {matrix.nnz} of {matrix.shape[0]} x {matrix.shape[1]} entries "
                "may be other than zero, so that nothing is saved: use ft.jacobian or ft.hessian, "
                "or products with vectors (ft.jvp, ft.vjp, ft.hvp)"
            )
        coloring = self._coloring
        if coloring is None:
            kind = self._kind
            if kind == "auto" and found.is_complex:
                kind = "column"  # reverse mode has no complex results of real arguments
            coloring = color_pattern(matrix, kind)
        else:
            coloring.check(matrix)
        positions, build, traced = _builder(matrix, self._format)
        evaluate = jit(
            entries_program(
                call.without_values(),
                self._order,
                matrix,
                coloring,
                positions,
                [array for array, _ in found.captured],
            ),
            specialize=self._pattern is not None,  # it holds whatever values decide
        )
        only = None
        if len(args) == 1 and not kwargs and type(args[0]) is np.ndarray:
            only = (args[0].shape, args[0].dtype)
        return _Plan(found, coloring, evaluate, build, traced, only)

    def _find(self, call: Call) -> Found:
        """The pattern: the one that was given, or that of the program."""
        if self._pattern is None:
            found = find_pattern(call, self._order)
            if self._order == 2 and not is_symmetric(found.matrix):
                union = as_pattern(found.matrix + found.matrix.T, self._who)
                return replace(found, matrix=union)
            return found
        matrix = as_pattern(self._pattern, self._who)
        n = call.n_columns
        if matrix.shape[1] != n or (self._order == 2 and matrix.shape[0] != n):
            raise ShapeError(
                f"{self._label()}: the pattern has shape {matrix.shape}, but the arguments have "
                f"{n} elements{here()}; a pattern has a row per element of the "
                f"{'arguments' if self._order == 2 else 'results'} and a column per element of the "
                "arguments"
            )
        return Found(matrix)


def _direction(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """A random vector without small elements."""
    direction = rng.uniform(0.5, 1.5, shape)
    if dtype.kind == "c":
        direction = direction + 1j * rng.uniform(0.5, 1.5, shape)
    return np.asarray(direction, dtype)


def _key(call: Call, *, is_found: bool) -> Hashable:
    """What a pattern and a program depend on in a call.

    Args:
      call: the call.
      is_found: whether the pattern is found from the program, with its integers as indices.
    """
    if is_found:
        call.check_fixed()
    parts: list[Hashable] = [call.treedef, call.orders]
    for leaf, flag in zip(call.leaves, call.moving, strict=True):
        if isinstance(leaf, ShapeDtypeStruct):
            parts.append((leaf.shape, leaf.dtype))
            continue
        aval = aval_of(leaf)
        parts.append((aval.shape, aval.dtype))
        if is_found and is_fixed(leaf, flag):
            parts.append(np.asarray(leaf).tobytes())
    return tuple(parts)


def _builder(
    matrix: Any, format: str
) -> tuple[np.ndarray, Callable[[np.ndarray], Any], Callable[[Any], SparseArray] | None]:
    """The order of the entries in a format, and what makes the sparse array of them.

    The array is a shallow copy of one that was checked once, with memory of its own. Traced entries
    have another class, whose indices are constants.
    """
    from scipy.sparse import coo_array, csr_array

    shape = matrix.shape
    numbered = csr_array((np.arange(matrix.nnz), matrix.indices, matrix.indptr), shape=shape)
    if format == "coo":
        numbered = numbered.tocoo()
        row, column = numbered.coords
        return (
            numbered.data,
            lambda data: coo_array((data, (row.copy(), column.copy())), shape),
            None,
        )
    numbered = numbered.asformat(format)
    numbered.sort_indices()
    numbered.has_canonical_format = True
    positions, indices, indptr = numbered.data, numbered.indices, numbered.indptr
    numbered.data = np.zeros(0)
    extents = (int(shape[0]), int(shape[1]))
    fixed = (as_constant(indices), as_constant(indptr), extents, format)

    def build(data: np.ndarray) -> Any:
        found = copy.copy(numbered)
        found.data, found.indices, found.indptr = data, indices.copy(), indptr.copy()
        return found

    return positions, build, lambda data: SparseArray(data, *fixed)


def _sparse_function(
    who: str,
    fun: Callable[..., Any],
    argnums: object,
    order: int,
    pattern: object,
    coloring: object,
    mode: str,
    format: str,
) -> SparseFunction:
    check_callable(who, fun)
    numbers = check_argnums(who, argnums)
    if mode not in _MODES[order]:
        raise ValueError(f"{who}: mode must be one of {tuple(_MODES[order])}, got {mode!r}")
    if format not in _FORMATS:
        raise ValueError(f"{who}: format must be one of {_FORMATS}, got {format!r}")
    if coloring is not None and not isinstance(coloring, Coloring):
        raise TypeError(
            f"{who}: coloring must be a Coloring, as ft.sparse.color_pattern gives, got "
            f"{type(coloring).__name__}{here()}"
        )
    if pattern is not None:
        pattern = as_pattern(pattern, who)
        if (
            order == 2
            and (coloring is None or coloring.kind == "star")
            and not is_symmetric(pattern)
        ):
            raise ValueError(
                f"{who}: the pattern of a Hessian is symmetric, the given one is not{here()}; take "
                "its union with the transpose"
            )
        if coloring is not None:
            coloring.check(pattern)
    return SparseFunction(who, fun, numbers, order, pattern, coloring, mode, format)


def sparse_jacobian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    pattern: object = None,
    coloring: Coloring | None = None,
    mode: str = "auto",
    format: str = "csr",
) -> SparseFunction:
    """Jacobian as a sparse array, from as few products with vectors as its pattern allows.

    Args:
      fun: function of pytrees of arrays; it is traced without values. A function of complex
        arguments must be holomorphic, which is not checked (``.check(*args)`` does).
      argnums: which positional arguments to differentiate.
      pattern: which entries may be nonzero, anything that ``scipy.sparse.csr_array`` accepts; by
        default found from the program, as by :func:`sparsity_pattern`. Entries that it misses give
        wrong results without notice; ``.check(*args)`` finds them.
      coloring: of the pattern; by default found by :func:`functrans.sparse.color_pattern`.
      mode: ``"forward"`` (columns are coloured), ``"reverse"`` (rows), ``"bidirectional"``, or
        ``"auto"``: the least work.
      format: ``"csr"``, ``"csc"`` or ``"coo"``.

    Returns:
      Function with the arguments of ``fun`` that gives a ``scipy.sparse`` array: a row per element
      of the results, a column per element of the arguments, both in the order of the leaves and
      row-major within. It has ``values``, ``pattern``, ``coloring``, ``n_colors``, ``check`` and
      ``spy``.

    Raises:
      ConcretizationError: (by the function) ``fun`` depends on values of its arguments.
      NonDifferentiableError: (by the function) an argument or result is not floating.
      ShapeError: (by the function) the pattern does not fit the arguments and results.
      TypeError, ValueError: a pattern, colouring, mode or format that is none.

    Example:
      >>> import numpy as np
      >>> jac = sparse_jacobian(lambda x: x[1:] * x[:-1])
      >>> jac(np.array([1.0, 2.0, 3.0])).toarray()
      array([[2., 1., 0.],
             [0., 3., 2.]])
      >>> jac.coloring
      Coloring('column', 2 colors, 2 x 3)

    Reference: Gebremedhin, Manne & Pothen, What color is your Jacobian?, SIAM Review 47 (2005).
    """
    return _sparse_function("sparse_jacobian", fun, argnums, 1, pattern, coloring, mode, format)


def jacobian_of_sparsity(
    fun: Callable[..., Any], argnums: object, mode: str, sparsity: object
) -> SparseFunction:
    """``ft.jacobian`` with ``sparsity=``: a pattern, or ``True`` for that of the program."""
    pattern = None if sparsity is True else sparsity
    return _sparse_function("jacobian", fun, argnums, 1, pattern, None, mode, "csr")


def sparse_hessian(
    fun: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    pattern: object = None,
    coloring: Coloring | None = None,
    mode: str = "auto",
    format: str = "csr",
) -> SparseFunction:
    """Hessian of a scalar function as a sparse array, from few Hessian-vector products.

    Args:
      fun: scalar function of pytrees of arrays; it is traced without values.
      argnums: which positional arguments to differentiate twice.
      pattern: which entries may be nonzero, symmetric; see :func:`sparse_jacobian`.
      coloring: of the pattern; by default a star colouring.
      mode: ``"symmetric"`` (a star colouring: each entry is read in one of its two places),
        ``"forward"`` (columns without regard to symmetry), or ``"auto"``: symmetric.
      format: ``"csr"``, ``"csc"`` or ``"coo"``; both triangles are stored.

    Returns:
      As :func:`sparse_jacobian`, square.

    Raises:
      ConcretizationError, NonDifferentiableError, TypeError, ValueError: as
        :func:`sparse_jacobian`.
      ShapeError: (by the function) ``fun`` is not scalar, or the pattern does not fit.

    Example:
      >>> import numpy as np
      >>> hess = sparse_hessian(lambda x: np.sum(x[1:] * x[:-1] ** 2))
      >>> hess(np.array([1.0, 2.0, 3.0])).toarray()
      array([[4., 2., 0.],
             [2., 6., 4.],
             [0., 4., 0.]])

    Reference: Gebremedhin, Tarafdar, Pothen & Walther, Efficient computation of sparse Hessians
    using coloring and automatic differentiation, INFORMS J. Comput. 21 (2009).
    """
    return _sparse_function("sparse_hessian", fun, argnums, 2, pattern, coloring, mode, format)
