"""Products of tensors: matrices, vectors, batches of them, contractions, outer products.

Layer: ``autograd``.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable, Sequence
from typing import Any

from functrans import numpy as fnp
from functrans.arrays.sparse import is_sparse
from functrans.arrays.sparse import matmul as sparse_matmul
from functrans.autograd.composites import composite, named
from functrans.autograd.methods.reductions import vector_norm_of
from functrans.autograd.methods.rows import (
    Row,
    by_name,
    check_tensor,
    documented,
    functions_of,
    into,
    methods_of,
    number,
    rows_of,
    with_out,
)
from functrans.autograd.methods.shaping import axis_of
from functrans.autograd.overrides import refused, type_name
from functrans.autograd.promotion import as_tensor, result_dtype
from functrans.autograd.tensors import Tensor
from functrans.core.dispatch import shape_of
from functrans.primitives import dot as dot_primitives
from functrans.primitives import structural

_C_NAMES = {
    "float64": "double", "float32": "float", "float16": "c10::Half", "int64": "int64_t",
    "int32": "int", "int16": "short", "int8": "signed char", "uint8": "unsigned char",
    "complex128": "c10::complex<double>", "complex64": "c10::complex<float>",
}  # fmt: skip


def c_name(x: Tensor) -> str:
    """The name of a dtype in torch's messages about matrix products."""
    return _C_NAMES.get(x.dtype.name, x.dtype.name)


def same_dtype(a: Tensor, b: Tensor) -> None:
    """Refuse factors of different dtypes.

    Raises:
      RuntimeError: they differ.
    """
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {c_name(a)} != {c_name(b)}"
        )


def _check_factors(a: Tensor, b: Tensor) -> None:
    """Refuse factors that do not fit."""
    m, n = a.shape, b.shape
    if not m or not n:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {len(m)}D and {len(n)}D"
        )
    inner = n[0] if len(n) == 1 else n[-2]
    if m[-1] == inner:
        return
    if len(m) == 1 == len(n):
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{m[0]}] and src [{n[0]}] to have the same "
            f"number of elements, but got {m[0]} and {n[0]} elements respectively"
        )
    if len(n) == 1 and len(m) == 2:
        raise RuntimeError(f"size mismatch, got input ({m[0]}), mat ({m[0]}x{m[1]}), vec ({n[0]})")
    if len(m) > 2 < len(n):
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{math.prod(m[:-2])}, {m[-1]}] but got: [{math.prod(n[:-2])}, {n[-2]}]."
        )
    rows = 1 if len(m) == 1 else math.prod(m[:-1])
    raise RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({rows}x{m[-1]} and "
        f"{inner}x{1 if len(n) == 1 else n[-1]})"
    )


_LABELS = {(1, 1): "Dot", (2, 1): "Mv", (2, 2): "Mm", (1, 2): "SqueezeBackward4"}


def matmul(input: Tensor, other: Any) -> Tensor:
    """Matrix product, as ``np.matmul``.

    Raises:
      RuntimeError: shapes or dtypes do not fit.
    """
    if not isinstance(other, Tensor):
        other = as_tensor(other, input)
        if not isinstance(other, Tensor):
            raise TypeError(
                f"matmul(): argument 'other' (position 1) must be Tensor, not {type_name(other)}"
            )
    same_dtype(input, other)
    _check_factors(input, other)
    ndims = (len(input.shape), len(other.shape))
    label = _LABELS.get(ndims)
    if label is None:
        return composite("UnsafeView", dot_primitives.matmul, input, other)
    return named(dot_primitives.matmul(input, other), label)


def _matmul_operator(self: Tensor, other: object) -> Tensor:
    if is_sparse(other):
        return composite("Mm", lambda x: sparse_matmul(x, other), self)
    other = as_tensor(other, self)
    return matmul(self, other) if isinstance(other, Tensor) else refused(other)


def _rmatmul_operator(self: Tensor, other: object) -> Tensor:
    if is_sparse(other):
        return composite("Mm", lambda x: sparse_matmul(other, x), self)
    other = as_tensor(other, self)
    return matmul(other, self) if isinstance(other, Tensor) else refused(other)


def _of_ranks(name: str, label: str, ranks: tuple[int, int]) -> Callable[..., Any]:
    """A product of tensors of given numbers of axes."""
    kinds = {1: "vector", 2: "matrix", 3: "3D tensor"}

    def operation(input: Tensor, mat2: Tensor) -> Tensor:
        check_tensor(name, mat2, "mat2", 2)
        found = (len(input.shape), len(mat2.shape))
        if found != ranks:
            if name == "dot":
                raise RuntimeError(
                    f"1D tensors expected, but got {found[0]}D and {found[1]}D tensors"
                )
            if name == "bmm":
                raise RuntimeError(f"batch{1 if found[0] != 3 else 2} must be a 3D tensor")
            if name == "mm":
                which = "self" if found[0] != 2 else "mat2"
                raise RuntimeError(f"{which} must be a matrix")
            raise RuntimeError(f"vector + matrix @ vector expected, got 1, {found[0]}, {found[1]}")
        if name == "dot" and input.dtype != mat2.dtype:
            raise RuntimeError(
                "dot : expected both vectors to have same dtype, but found "
                f"{c_name(input)} and {c_name(mat2)}"
            )
        same_dtype(input, mat2)
        if name == "bmm" and (input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]):
            raise RuntimeError(
                "Expected size for first two dimensions of batch2 tensor to be: "
                f"[{input.shape[0]}, {input.shape[2]}] but got: "
                f"[{mat2.shape[0]}, {mat2.shape[1]}]."
            )
        _check_factors(input, mat2)
        return named(dot_primitives.matmul(input, mat2), label)

    return documented(
        operation, name, f"The product of a {kinds[ranks[0]]} and a {kinds[ranks[1]]}."
    )


mm = _of_ranks("mm", "Mm", (2, 2))
mv = _of_ranks("mv", "Mv", (2, 1))
bmm = _of_ranks("bmm", "Bmm", (3, 3))
dot = _of_ranks("dot", "Dot", (1, 1))


def vdot(input: Tensor, other: Tensor) -> Tensor:
    """The product of the conjugate of a vector and another one."""
    if input.dtype.kind != "c":
        return named(dot(input, other), "Vdot")
    return composite("Vdot", dot_primitives.vdot, input, other)


def _adding(
    label: str, product: Callable[..., Any], ranks: tuple[int, int], names: tuple[str, str]
) -> Callable[..., Any]:
    """``beta * input + alpha * product``; without ``input`` for ``beta`` 0."""

    def operation(
        input: Tensor, first: Tensor, second: Tensor, *, beta: object = 1, alpha: object = 1
    ) -> Tensor:
        if (len(first.shape), len(second.shape)) != ranks:
            raise RuntimeError(
                f"{names[0]} and {names[1]} must have {ranks[0]} and {ranks[1]} dimensions, got "
                f"{len(first.shape)}D and {len(second.shape)}D"
            )
        if ranks != (1, 1):
            _check_factors(first, second)
        same_dtype(first, second)
        if input.dtype != first.dtype:
            raise RuntimeError(
                f"self and mat2 must have the same dtype, but got {input.dtype} and {first.dtype}"
            )

        alpha = number(label.lower(), "alpha", alpha)
        beta = number(label.lower(), "beta", beta)
        if input.dtype.kind in "iu":
            if label == "Addr" and float in (type(alpha), type(beta)):
                raise RuntimeError(
                    "For integral input tensors, arguments alpha and beta must not be floating "
                    "point numbers."
                )
            alpha, beta = (int(x) if isinstance(x, float) else x for x in (alpha, beta))

        def of(x: Any, a: Any, b: Any) -> Any:
            made = product(a, b)
            made = made if alpha == 1 else made * alpha
            if beta == 0:
                return made
            return (x if beta == 1 else x * beta) + made

        return composite(label, of, input, first, second)

    def renamed(input: Tensor, *args: object, **kwargs: Any) -> Tensor:
        missing = [name for name in names[len(args) :] if name not in kwargs]
        if missing:
            raise TypeError(
                f"{label.lower()}() missing {len(missing)} required positional arguments: "
                f"{', '.join(map(repr, missing))}"
            )
        given = [*args, *(kwargs.pop(name) for name in names[len(args) :])]
        return operation(input, *given, **kwargs)

    operation.__qualname__ = label.lower()
    renamed.__doc__ = "``beta * input + alpha * product``, where the product is that of the others."
    return renamed


def _sum_of_products(a: Any, b: Any) -> Any:
    return structural.reduce_sum(dot_primitives.matmul(a, b), (0,))


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """All products of elements of two vectors.

    Raises:
      RuntimeError: one is no vector.
    """
    for x, name in ((input, "self"), (vec2, "vec2")):
        if len(x.shape) != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {len(x.shape)}-D")
    return composite("Mul", lambda a, b: structural.reshape(a, (*shape_of(a), 1)) * b, input, vec2)


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sums of products over the last axes."""
    return composite("View", dot_primitives.inner, input, other)


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: object = None) -> Tensor:
    """Sums of products over some axes of each."""
    if out is not None:
        return into(out, "tensordot", tensordot, a, b, dims)
    if isinstance(dims, (tuple, list)):
        dims = tuple(tuple(d) if isinstance(d, (tuple, list)) else (d,) for d in dims)
    elif not hasattr(dims, "__index__") or dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, or a tuple of ints, but got dims={dims}")
    same_dtype(a, b)
    return composite("View", lambda x, y: dot_primitives.tensordot(x, y, dims), a, b)


_LETTERS = string.ascii_uppercase + string.ascii_lowercase


def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sums of products in the notation of Einstein.

    Instead of an equation each operand may be followed by a list of numbers of its axes, and all by
    one for the result: ``einsum(a, [0, 1], b, [1, 2], [0, 2])``.

    Raises:
      RuntimeError: the equation does not fit.
      ValueError: there is no operand, or a number in a list is not one of 0 to 51.
    """
    if isinstance(equation, Tensor) and operands:
        equation, operands = _lettered((equation, *operands))
    elif len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    if not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, or at least one "
            "operand and its subscripts list"
        )
    if not isinstance(equation, str):
        raise TypeError(
            f"einsum(): argument 'equation' (position 1) must be str, not {type(equation).__name__}"
        )
    try:
        made = composite("View", lambda *xs: fnp.einsum(equation, *xs), *operands)
    except ValueError as error:
        raise RuntimeError(f"einsum(): {_unequal(equation, operands) or error}") from error
    return made


def _lettered(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation and the operands of ``einsum`` where lists of numbers stand for letters."""
    *pairs, result = given if len(given) % 2 else (*given, None)
    equation = ",".join(map(_letters, pairs[1::2]))
    if result is not None:
        equation += "->" + _letters(result)
    return equation, tuple(pairs[::2])


def _letters(axes: Any) -> str:
    """The part of an equation that a list of numbers, or of ``...``, stands for."""
    if not isinstance(axes, (tuple, list)):
        raise TypeError(f"einsum(): expected a list of subscripts, but got {type(axes).__name__}")
    letters = []
    for axis in axes:
        if axis is not ... and not 0 <= axis < len(_LETTERS):
            raise ValueError(
                "einsum(): subscript in subscript list is not within the valid range [0, 52)"
            )
        letters.append("..." if axis is ... else _LETTERS[axis])
    return "".join(letters)


def _unequal(equation: str, operands: tuple[Any, ...]) -> str:
    """Which subscripts do not fit, in PyTorch's words; nothing if all do."""
    seen: dict[str, int] = {}
    parts = equation.partition("->")[0].split(",")
    for k, (part, x) in enumerate(zip(parts, operands, strict=False)):
        first, dots, last = part.replace(" ", "").partition("...")
        if not dots and len(first) != len(x.shape):
            return (
                f"the number of subscripts in the equation ({len(first)}) does not match the "
                f"number of dimensions ({len(x.shape)}) for operand {k} and no ellipsis was given"
            )
        sizes = (*x.shape[: len(first)], *x.shape[len(x.shape) - len(last) :])
        own: dict[str, int] = {}
        for label, n in zip(first + last, sizes if dots else x.shape, strict=False):
            if own.setdefault(label, n) != n:
                words = f"subscript {label} is repeated for operand {k} but the sizes don't match"
                return f"{words}, {n} != {own[label]}"
        for label, n in own.items():
            before = seen.get(label, 1)
            if 1 not in (n, before) and n != before:
                words = f"subscript {label} has size {n} for operand {k} which does not broadcast"
                return f"{words} with previously seen size {before}"
            seen[label] = n if before == 1 else before
    return ""


def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product."""
    dtype = result_dtype(input, other)
    return composite(
        "UnsafeView",
        lambda a, b: fnp.kron(structural.cast(a, dtype), structural.cast(b, dtype)),
        input,
        other,
    )


def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The vector product along an axis of extent 3.

    Raises:
      RuntimeError: the axis has another extent.
    """
    axis = -1 if dim is None else dim
    if dim is None:
        axis = next((i for i, n in enumerate(input.shape) if n == 3), -1)
    if input.shape[axis] != 3 or other.shape[axis] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {axis} must have length 3. Got {input.shape[axis]} "
            f"and {other.shape[axis]}"
        )
    axis = axis_of(axis, len(input.shape))

    def of(a: Any, b: Any) -> Any:
        shape = fnp.broadcast_shapes(shape_of(a), shape_of(b))
        a, b = structural.broadcast_to(a, shape), structural.broadcast_to(b, shape)
        return fnp.cross(a, b, axis=axis)

    return composite("LinalgCross", of, input, other)


def chain_matmul(*matrices: Any) -> Tensor:
    """The product of matrices, in the cheapest order; one alone is itself.

    Raises:
      RuntimeError: there are none, or they are no matrices.
    """
    given = matrices[0] if len(matrices) == 1 and not isinstance(matrices[0], Tensor) else matrices
    if not given:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for x in given:
        if len(x.shape) != 2:
            raise RuntimeError(f"Tensor dimension is {len(x.shape)}, expected 2 instead.")
    return given[0].view_as(given[0]) if len(given) == 1 else multi_dot(given)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices, in the cheapest order; the first and last may be vectors."""
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, x in enumerate(tensors):
        end = {0: "the first", len(tensors) - 1: "the last"}.get(i)
        if len(x.shape) != 2 and not (end and len(x.shape) == 1):
            what = f"{end} tensor must be 1D or 2D" if end else f"tensor {i} must be 2D"
            raise RuntimeError(f"multi_dot(): {what} but got {len(x.shape)}D")
    return composite("View", lambda *xs: fnp.linalg.multi_dot(xs), *tensors)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Products of vectors along an axis; the first is conjugated."""
    if not x.shape and not y.shape:
        axis_of(dim, 0)
        return vecdot(x[None], y[None], dim=0)
    return composite("SumBackward1", lambda a, b: dot_primitives.vecdot(a, b, dim), x, y)


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = None) -> Tensor:
    """The norms of the differences of all pairs of rows."""
    check_tensor("cdist", x1, "x1")
    check_tensor("cdist", x2, "x2", 2)
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")

    def of(a: Any, b: Any) -> Any:
        m, n = shape_of(a), shape_of(b)
        a = structural.reshape(a, (*m[:-1], 1, m[-1]))
        b = structural.reshape(b, (*n[:-2], 1, *n[-2:]))
        d = a - b
        return vector_norm_of(d, (len(shape_of(d)) - 1,), float(p))

    return composite("Cdist", of, x1, x2)


ROWS: tuple[Row, ...] = (
    *rows_of("mf", matmul, mm, mv, bmm, dot, vdot, inner, kron, cross),
    Row("outer", outer, ("ger",)),
    Row("addmm", _adding("Addmm", dot_primitives.matmul, (2, 2), ("mat1", "mat2")), (), "mfi"),
    Row("addmv", _adding("Addmv", dot_primitives.matmul, (2, 1), ("mat", "vec")), (), "mfi"),
    Row("addr", _adding("Addr", dot_primitives.outer, (1, 1), ("vec1", "vec2")), (), "mfi"),
    Row("addbmm", _adding("Addbmm", _sum_of_products, (3, 3), ("batch1", "batch2")), (), "mfi"),
    Row(
        "baddbmm",
        _adding("Baddbmm", dot_primitives.matmul, (3, 3), ("batch1", "batch2")),
        (),
        "mfi",
    ),
)  # fmt: skip

METHODS: dict[str, Any] = {
    **methods_of(ROWS),
    "__matmul__": _matmul_operator,
    "__rmatmul__": _rmatmul_operator,
}
FUNCTIONS: dict[str, Any] = {
    **functions_of(ROWS),
    **by_name(tensordot, einsum, cdist),
    "chain_matmul": with_out("chain_matmul", chain_matmul),
}  # fmt: skip
