"""Constructors of primitive families.

Here: ``unary``, ``binary``, ``ternary`` and ``elementwise_primitive`` (elementwise operations from
one line each), and rules that families share. Not here: the records (one file per family).

An elementwise primitive broadcasts and promotes as NumPy does. Its derivative is a diagonal linear
map per operand, written as ``partial(t, *operands, y)``: tangent in, tangent out. A diagonal map is
its own transpose, so that the same expression pulls cotangents back. ``saves`` names what the
partial reads, so that only that is kept: letters ``x`` (unary), ``ab`` (binary), ``abc`` (ternary),
``y`` for the result.

Layer: ``primitives``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import PYTHON_SCALARS, ShapedArray, Zero
from functrans.core.caching import remembered
from functrans.core.dispatch import Tracer, aval_of, dtype_of, elementwise, shape_of
from functrans.core.lowering import Pointwise
from functrans.core.primitive import (
    Elementwise,
    Lowering,
    Marker,
    Primitive,
    Work,
    is_linear,
    nondifferentiable,
)
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.primitives.structural import (
    broadcast_to,
    cast,
    moveaxis,
    reshape,
    unbroadcast,
    weaken,
)

if TYPE_CHECKING:
    from functrans.emitter.numbers import Number, Numbers

_WEAK_TYPES = {"f": float, "c": complex, "i": int}


def dtype_key(aval: ShapedArray) -> Any:
    """What ``ufunc.resolve_dtypes`` wants: a dtype, or the Python type of a weak scalar."""
    return _WEAK_TYPES.get(aval.dtype.kind, aval.dtype) if aval.weak else aval.dtype


@remembered(4096)
def _resolve(ufunc: np.ufunc, keys: tuple[Any, ...]) -> tuple[np.dtype, ...]:
    """Result dtypes of a ufunc (NumPy's own promotion)."""
    all_weak = all(isinstance(key, type) for key in keys)
    if all_weak:
        keys = tuple(np.dtype(key) for key in keys)
    resolved = ufunc.resolve_dtypes((*keys, *(None,) * ufunc.nout))
    return resolved[ufunc.nin :]


def promoted_dtype(avals: tuple[ShapedArray, ...]) -> np.dtype:
    """NumPy's common dtype of several operands; weak ones give way."""
    return np.result_type(
        *(aval.dtype.type(0).item() if aval.weak else aval.dtype for aval in avals)
    )


def broadcast_shapes(name: str, shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The broadcast shape.

    Raises:
      ShapeError: the shapes do not broadcast; names the primitive and both shapes.
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        text = " and ".join(str(tuple(shape)) for shape in shapes)
        raise ShapeError(
            f"{name}: operands of shapes {text} do not broadcast; extents must be equal or 1, "
            "counted from the last axis"
        ) from None


OF_TRUTHS = frozenset(
    {
        np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
        np.bitwise_and, np.bitwise_or, np.bitwise_xor,
    }
)  # fmt: skip
"""What gives a truth for Python's truths; all other operators compute with the integers 0, 1."""


def _are_truths(avals: tuple[Any, ...]) -> bool:
    return all(aval.dtype.kind == "b" for aval in avals)


def _numbers_of_truths(operands: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Operands of an operator, Python's truths as the integers that Python computes with."""
    avals = [aval_of(x) for x in operands]
    if all(aval.weak and aval.dtype.kind == "b" for aval in avals):  # type: ignore[union-attr]  # no tape
        operands = tuple([integer_of_truth(x) for x in operands])
    return operands, {}


def integer_of_truth(x: Any) -> Any:
    """Python's truth as Python's integer."""
    return weaken(cast(x, np.int64)) if isinstance(x, Tracer) else int(x)


def _ufunc_abstract_eval(
    name: str, ufunc: np.ufunc, keeps_weak: bool, kinds: str
) -> Callable[..., Any]:
    """``abstract_eval`` of an elementwise primitive whose dtypes are those of a ufunc."""

    def abstract_eval(*avals: ShapedArray) -> tuple[ShapedArray, ...]:
        shape = broadcast_shapes(name, [aval.shape for aval in avals])
        if any(aval.dtype.kind in "biu" and aval.dtype.kind not in kinds for aval in avals):
            raise TypeError(f"{name}: not defined for operands {', '.join(map(str, avals))}")
        weak = keeps_weak and all(aval.weak for aval in avals)
        if weak and _are_truths(avals) and ufunc not in OF_TRUTHS:
            avals = tuple(ShapedArray(aval.shape, np.dtype(int), True) for aval in avals)
        try:
            dtypes = _resolve(ufunc, tuple(map(dtype_key, avals)))
        except TypeError as error:
            text = ", ".join(map(str, avals))
            raise TypeError(f"{name}: not defined for operands {text}; {error}") from None
        return tuple(ShapedArray(shape, dtype, weak) for dtype in dtypes)

    return abstract_eval


def add_tangents(first: Any, second: Any) -> Any:
    """Sum of two tangents either of which may be ``Zero``."""
    if type(first) is Zero:
        return second
    if type(second) is Zero:
        return first
    return first + second


def apply_partial(partial: Any, tangent: Any, operands: tuple[Any, ...], out: Any) -> Any:
    """One partial derivative applied to a tangent or cotangent."""
    if partial == 1:
        return tangent
    if partial == -1:
        return -tangent
    return partial(tangent, *operands, out)


_PRECISION = {"e": 0, "E": 0, "f": 1, "F": 1, "d": 2, "D": 2}
"""By the letter of a floating dtype; dtypes of one number round alike."""
_REAL, _COMPLEX = ("e", "f", "d"), ("F", "F", "D")


def in_precision_of_result(partial: Callable[..., Any], saves: int, n: int) -> Callable[..., Any]:
    """A partial derivative that reads operands in the precision in which the result is computed.

    NumPy widens the narrower operands of a function; a logarithm of one alone would be rounded.
    Only what the partial saves is looked at (bits as in ``Elementwise``).

    Args:
      partial: a function of a tangent, the operands and the result.
      saves: what it reads.
      n: number of operands.
    """
    reads = [i for i in range(n) if saves >> i & 1]
    reads_result = bool(saves >> n & 1)

    def widened(t: Any, *operands: Any) -> Any:
        source = operands[-1] if reads_result else t
        dtype = dtype_of(source) if type(source) in PYTHON_SCALARS else source.dtype
        for i in reads:
            x = operands[i]
            if type(x) not in PYTHON_SCALARS and x.dtype is not dtype:
                wanted = _PRECISION.get(dtype.char, -1)
                return partial(t, *[_widened(y, wanted) if j in reads else y
                                    for j, y in enumerate(operands)])  # fmt: skip
        return partial(t, *operands)

    return widened if reads else partial


def _widened(x: Any, wanted: int) -> Any:
    if type(x) in PYTHON_SCALARS or _PRECISION.get(x.dtype.char, 2) >= wanted:
        return x
    return cast(x, np.dtype((_COMPLEX if x.dtype.kind == "c" else _REAL)[wanted]))


def _elementwise_jvp(family: Elementwise) -> Callable[..., Any]:
    """The jvp of an elementwise primitive: sum of partials applied to tangents."""

    def jvp(
        primals: tuple[Array | complex, ...], tangents: tuple[Any, ...], outs: tuple[Array, ...]
    ) -> tuple[Any, ...]:
        (out,) = outs
        aval = aval_of(out)
        total: Any = Zero(aval)
        for partial, tangent in zip(family.partials, tangents, strict=True):
            if type(tangent) is Zero or partial is None or partial == 0:
                continue
            total = add_tangents(total, apply_partial(partial, tangent, primals, out))
        if type(total) is Zero:
            return (total,)
        return (broadcast_to(cast(total, aval.dtype), aval.shape),)

    return jvp


def _elementwise_transpose(name: str, family: Elementwise) -> Callable[..., Any]:
    """The transpose of an elementwise primitive in the operands whose partials are constant."""

    def transpose(cts: Any, operands: Any) -> tuple[Any, ...]:
        (ct,) = cts
        results: list[Any] = []
        linear_bits = sum(1 << i for i, operand in enumerate(operands) if is_linear(operand))
        linear_bits |= 1 << len(operands)
        for i, operand in enumerate(operands):
            if not is_linear(operand):
                results.append(None)
                continue
            partial = family.partials[i]
            if partial is None or family.saves[i] & linear_bits:
                raise TypeError(f"{name} is not linear in operand {i}; it has no transpose there")
            ct_in = apply_partial(partial, ct, operands, None)
            results.append(unbroadcast(ct_in, operand.aval.shape, operand.aval.dtype))
        return tuple(results)

    return transpose


def move_batch_axes(operands: Any, dims: Any, ndims: list[int]) -> list[Any]:
    """Bring every batch axis to the front and pad ranks, so that NumPy broadcasting is right.

    Args:
      operands: arrays.
      dims: batch axis per operand, or ``None``.
      ndims: rank of each operand without its batch axis.

    Returns:
      Operands which broadcast over a common leading batch axis.
    """
    rank = max(ndims, default=0)
    moved = []
    for operand, dim, ndim in zip(operands, dims, ndims, strict=True):
        if dim is None:
            moved.append(operand)
            continue
        front = moveaxis(operand, dim, 0)
        if ndim < rank:
            shape = shape_of(front)
            front = reshape(front, (shape[0],) + (1,) * (rank - ndim) + shape[1:])
        moved.append(front)
    return moved


def _elementwise_batch(get: Callable[[], Primitive]) -> Callable[..., Any]:
    """The batching rule of an elementwise primitive."""

    def batch(size: int, operands: Any, dims: Any) -> tuple[Any, Any]:
        ndims = [
            len(shape_of(x)) - (dim is not None) for x, dim in zip(operands, dims, strict=True)
        ]
        moved = move_batch_axes(operands, dims, ndims)
        return (elementwise(get(), *moved),), (0,)

    return batch


# work, for elementwise primitives of which the cost of an element does not tell it ---------------


def _per_element(real: int, of_complex: int) -> Callable[..., Work]:
    def work(*avals: ShapedArray, **params: object) -> Work:
        size = math.prod(np.broadcast_shapes(*[aval.shape for aval in avals]))
        is_complex = any(aval.dtype.kind == "c" for aval in avals)
        return Work(float(size * (of_complex if is_complex else real)))

    return work


arithmetic = _per_element(1, 2)
products = _per_element(1, 6)
quotients = _per_element(1, 11)
nothing = _per_element(0, 0)


def once_each(x: ShapedArray, *others: ShapedArray, **params: object) -> Work:
    """The ``work`` of what adds, multiplies or compares each element of its first operand once."""
    return Work(float(x.size * (2 if x.dtype.kind == "c" else 1)))


def pointwise(name: str, cost: int = 1) -> Pointwise:
    """The lowering of a primitive that the emitter has a method for, of the same name."""

    def write(e: Numbers, *numbers: Number) -> Number:
        result: Number = getattr(e, name)(*numbers)
        return result

    return Pointwise(write, cost)


def elementwise_primitive(
    name: str,
    function: Callable[..., Any],
    partials: tuple[Any, ...] | Marker,
    saves: tuple[str, ...],
    names: str,
    *,
    ufunc: np.ufunc | None = None,
    abstract_eval: Callable[..., Any] | None = None,
    keeps_weak: bool = False,
    has_plain_partials: bool = False,
    jvp: Any = None,
    transpose: Any = None,
    lower: Lowering | None = None,
    operator: str = "",
    cost: int = 1,
    work: Callable[..., Work] | None = None,
    reasons: tuple[tuple[str, str], ...] = (),
    kinds: str = "biuf",
) -> Primitive:
    """An elementwise primitive; see the module docstring.

    Args:
      name: name in printed programs: NumPy's.
      function: evaluates it on plain arrays.
      partials: one per operand, or ``nondifferentiable``.
      saves: letters that each partial reads.
      names: letters of the operands in order.
      ufunc: the ufunc whose dtype resolution holds; by default ``function`` itself, and none where
        ``abstract_eval`` is given.
      abstract_eval: used instead of the ufunc's.
      keeps_weak: Python scalars in give a Python scalar out, as with an ``operator``.
      has_plain_partials: whether partials may meet operands of less precision than the result, as
        products may.
      jvp: where the derivative is no diagonal map over the operand's own field (complex parts).
      transpose: the transpose that goes with ``jvp=linear``.
      lower: by default the emitter's method of the primitive's name.
      operator: as in ``Elementwise``.
      cost: of that method: work per element in units of one addition.
      work: as in ``Primitive``.
      reasons: why fields are ``None``; where it names ``lower``, there is no native form.
      kinds: of real operands that it takes: integers (``iu``), booleans (``b``), floating numbers
        (``f``); others would make ``function`` give another dtype than the ufunc.
    """
    keeps_weak = keeps_weak or bool(operator)
    if abstract_eval is None:
        ufunc = ufunc or function  # type: ignore[assignment]  # function is a ufunc then
        abstract_eval = _ufunc_abstract_eval(name, ufunc, keeps_weak, kinds)  # type: ignore[arg-type]  # it is set
    is_differentiable = not isinstance(partials, Marker)
    letters = names + "y"
    saved = [sum(1 << letters.index(c) for c in text) for text in saves]
    if not isinstance(partials, Marker) and len(names) > 1 and not has_plain_partials:
        partials = tuple(
            in_precision_of_result(p, bits, len(names)) if callable(p) else p
            for p, bits in zip(partials, saved, strict=True)
        )
    family = Elementwise(
        function,
        partials if is_differentiable else (None,) * len(names),  # type: ignore[arg-type]  # a tuple, no marker
        tuple(saved) if is_differentiable else (0,) * len(names),
        ufunc,
        operator,
    )

    def impl(*operands: Array | complex) -> tuple[Any, ...]:
        return (function(*operands),)

    if jvp is None:
        jvp = _elementwise_jvp(family) if is_differentiable else nondifferentiable
        transpose = _elementwise_transpose(name, family) if is_differentiable else None
    primitive = Primitive(
        name,
        impl=impl,
        abstract_eval=abstract_eval,
        jvp=jvp,
        transpose=transpose,
        batch=_elementwise_batch(lambda: primitive),
        elementwise=family,
        lower=None if "lower" in dict(reasons) else lower or pointwise(name, cost),
        work=work,
        stage=_numbers_of_truths if keeps_weak and ufunc not in OF_TRUTHS else None,
        reasons=reasons if is_differentiable else (("transpose", "has no derivative"), *reasons),
    )
    return primitive


def unary(name: str, function: Any, partial: object, saves: str = "", **options: Any) -> Primitive:
    """An elementwise primitive of one operand ``x``."""
    partials = partial if isinstance(partial, Marker) else (partial,)
    return elementwise_primitive(name, function, partials, (saves,), "x", **options)


def binary(
    name: str, function: Any, partials: Any, saves: tuple[str, str] = ("", ""), **options: Any
) -> Primitive:
    """An elementwise primitive of two operands ``a`` and ``b``."""
    return elementwise_primitive(name, function, partials, saves, "ab", **options)


def ternary(
    name: str, function: Any, partials: Any, saves: tuple[str, str, str], **options: Any
) -> Primitive:
    """An elementwise primitive of three operands ``a``, ``b`` and ``c``."""
    return elementwise_primitive(name, function, partials, saves, "abc", **options)


def user_function(primitive: Primitive, doc: str | None = None) -> Callable[..., Any]:
    """The function of arrays that applies an elementwise primitive under the current trace."""
    plain = primitive.elementwise.function  # type: ignore[union-attr]  # it is elementwise

    def function(*operands: Any) -> Any:
        for operand in operands:
            if type(operand) is not np.ndarray:
                return elementwise(primitive, *operands)
        return plain(*operands)

    function.__name__ = function.__qualname__ = primitive.name
    function.__doc__ = doc or f"Apply ``{primitive.name}`` elementwise, as NumPy does."
    return function
